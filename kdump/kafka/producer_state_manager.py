"""Producer snapshots during startup: which are read, deleted and written, and which batches stop the broker.

Of the producers, only what can stop a startup is kept: which of them have an open transaction.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerAppendInfo.append, EndTransactionMarker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from operator import itemgetter
from typing import NamedTuple

from kdump.format.control_record import CONTROL_TYPES, KEY, decode_control
from kdump.format.count_text import plain_count
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.producer_snapshot import SNAPSHOT_HEADER, newer_snapshot
from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.kafka.errors import CorruptRecord, RejectedBatch
from kdump.kafka.file_log_input_stream import FileLogInputStream, RecordBatchView
from kdump.log import file_kinds
from kdump.log.batch_records import records
from kdump.log.entries import Entry, entries
from kdump.log.live_files import Open
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.state.releases import MARKER_UNDERFLOW
from kdump.state.transaction_marker import ABORT, COMMIT
from kdump.state.transaction_tracker import MAX_OPEN_TRANSACTIONS

LARGEST = 256 * 1024 * 1024
"""Size in bytes of the largest producer snapshot that is read: five million producers."""
END_TXN_VALUE = 6
"""Size in bytes of the value of a transaction marker: version and coordinator epoch."""
REMAINING = "Incorrect declared batch size, records still remaining in file"


class SnapshotFiles:
    """The .snapshot files of a directory, by offset."""

    def __init__(self, files: dict[int, Target], open_: Open) -> None:
        self.files: dict[int, Target | None] = dict(files)
        """The snapshot files by offset; None for one that this startup has written."""
        self.open = open_
        self.corrupt: dict[int, str] = {}
        self.contents: dict[int, dict[int, int]] = {}
        """Open transactions in the snapshots that this startup has written."""
        self.removed: dict[int, str] = {}

    def writes(self, offset: int) -> None:
        """Called before a snapshot is written; may raise an exception."""

    def deletes(self, path: str) -> None:
        """Called before a snapshot is deleted; may raise an exception."""

    def remove(self, offset: int, reason: str) -> None:
        target = self.files.pop(offset, None)
        self.contents.pop(offset, None)
        if target is not None:
            self.deletes(target.path)
            self.removed[offset] = reason

    def write(self, offset: int, open_transactions: dict[int, int]) -> None:
        self.writes(offset)
        self.files[offset] = None
        self.contents[offset] = dict(open_transactions)

    def read(self, offset: int) -> dict[int, int] | None:
        """Read the first offsets of open transactions by producer ID; None if the snapshot is corrupt. Raises
        SourceError."""
        target = self.files[offset]
        if target is None:
            return dict(self.contents[offset])
        window = self.open(target)
        window.source.keep = True
        size = window.source.size or 0
        if size > LARGEST:
            window.source.close()
            raise SourceError.at(
                target.path, f"{plain_count(size, 'byte')}, too large for a snapshot (at most {LARGEST} are read)"
            )
        found: dict[int, int] = {}
        try:
            for item in entries(file_kinds.PRODUCER_SNAPSHOT, window, offset):
                if isinstance(item, Entry):
                    if not item.type and item.values.get("version") != 1:
                        return None
                    if item.type and item.values["currentTxnFirstOffset"] >= 0:
                        found[item.values["producerId"]] = item.values["currentTxnFirstOffset"]
                else:
                    return None
        finally:
            window.source.close()
        return dict(sorted(found.items(), key=itemgetter(1)))

    @property
    def newest(self) -> Target | None:
        """The newest snapshot."""
        return self.files[max(self.files)] if self.files else None

    def newer(self) -> str:
        """Return that the newest snapshot has a version that only a release newer than the newest known one writes;
        empty if it has another one. The release that ran last has written it. Raises SourceError."""
        target = self.newest
        if target is None:
            return ""
        window = self.open(target)
        with closing(window.source):
            data = bytes(window.view(0, SNAPSHOT_HEADER.size))
        if len(data) < SNAPSHOT_HEADER.size:
            return ""
        return newer_snapshot(SNAPSHOT_HEADER.read(data).version, ".snapshot version")

    def remove_stray(self, bases: list[int]) -> None:
        """removeStraySnapshots: removes snapshots without a segment, except the newest if it is above the last
        segment."""
        bases_left, newest = set(bases), None
        for offset in sorted(self.files):
            if offset not in bases_left:
                if newest is not None:
                    self.remove(newest, "no segment starts at its offset")
                newest = offset
        if newest is not None and bases and newest < max(bases):
            self.remove(newest, "no segment starts at its offset")


class CompletedTxn(NamedTuple):
    """A transaction that a marker at `offset` has ended. `first_offset`: None if no data of it is known; `stable`: last
    stable offset after it."""

    producer_id: int
    is_aborted: bool
    offset: int
    first_offset: int | None
    stable: int


class OngoingTxns:
    """The producers' open transactions, as far as batches change them (ongoingTxns; ProducerAppendInfo.append)."""

    def __init__(self, ongoing: Mapping[int, int] | None = None, release: KafkaRelease = NEWEST) -> None:
        self.release = release
        self.open: dict[int, int] = dict(ongoing or {})
        """First offsets by producer ID, in ascending order."""
        self.known = bool(self.open)
        """Whether the state contains any producer."""
        self.unreplicated: int | None = None
        """The first offset of the earliest transaction that batches have ended (unreplicatedTxns): until the high
        watermark is above its marker."""

    def append(self, head: RecordBatchView | Batch, stream: FileLogInputStream | None = None) -> CompletedTxn | None:
        """Add a batch, and return the transaction that it ends; one without a producer ID changes nothing. `stream`:
        reads the batch of a view. Raises CorruptRecord if recovery truncates here, RejectedBatch if the broker exits,
        and SourceError if it is not known."""
        header = head.header if isinstance(head, (RecordBatchView, DefaultRecordBatch)) else None
        if header is None or header.producerId < 0:
            return None
        self.known = True
        producer = header.producerId
        if header.isControlBatch:
            batch = head if stream is None or isinstance(head, Batch) else stream.batch(head, Limits())
            assert isinstance(batch, Batch)
            marker = _marker(batch, self.release)
            if marker is None:
                return None
            first = self.open.pop(producer, None)
            if first is not None:
                self.unreplicated = first if self.unreplicated is None else min(first, self.unreplicated)
            stable = next(iter(self.open.values()), header.baseOffset + 1)
            return CompletedTxn(producer, marker == ABORT, header.baseOffset, first, stable)
        if header.isTransactional:
            self.open.setdefault(producer, header.baseOffset)
            if len(self.open) > MAX_OPEN_TRANSACTIONS:
                raise SourceError(f"more than {MAX_OPEN_TRANSACTIONS} transactions are open")
        elif producer in self.open:
            message = f"producer {producer} wrote a non-transactional batch while its transaction from offset "
            message += f"{self.open[producer]} is open"
            exception = f"InvalidTxnStateException: Expected transactional write from producer {producer}"
            raise RejectedBatch(message, exception, head.position, header.baseOffset)
        return None


class ProducerStateManager(OngoingTxns):
    """Simulates ProducerStateManager: `map_end` is its mapEndOffset, `last_snap` its lastSnapOffset."""

    def __init__(self, snapshots: SnapshotFiles, release: KafkaRelease = NEWEST) -> None:
        super().__init__(release=release)
        self.snapshots = snapshots
        self.map_end = 0
        self.last_snap = 0

    def truncate_and_reload(self, log_start: int, log_end: int) -> None:
        """As truncateAndReload. Raises SourceError."""
        for offset in sorted(self.snapshots.files):
            if offset > log_end:
                self.snapshots.remove(offset, f"above offset {log_end}, up to which producer state is rebuilt")
            elif offset <= log_start:
                self.snapshots.remove(offset, f"at or below the log start offset {log_start}")
        if log_end == self.map_end:
            if self.map_end < log_start:
                self.map_end = log_start
            self.last_snap = max(self.snapshots.files, default=log_start)
            return
        self.open.clear()
        self.known, self.unreplicated = False, None
        while self.snapshots.files:
            newest = max(self.snapshots.files)
            found = self.snapshots.read(newest)
            if found is None:
                self.snapshots.corrupt[newest] = "corrupt"
                self.snapshots.remove(newest, "corrupt")
                continue
            self.open, self.known = found, bool(found)
            self.map_end = self.last_snap = newest
            return
        self.map_end = self.last_snap = log_start

    @property
    def first_unstable(self) -> int | None:
        """The first offset that is not stable as long as no high watermark is known (firstUnstableOffset)."""
        return min((*self.open.values(), *(() if self.unreplicated is None else (self.unreplicated,))), default=None)

    def take_snapshot(self) -> None:
        if self.map_end > self.last_snap:
            self.snapshots.write(self.map_end, self.open)
            self.last_snap = self.map_end


def _marker(batch: Batch, release: KafkaRelease) -> str | None:
    """Return the marker in a control batch of a producer, COMMIT or ABORT; None if compaction has removed it."""
    reading = Reading(batch)
    rows = records(reading, values=False)
    record = next(rows, None)
    if record is not None and batch.recordCount == 1:
        next(rows, None)
        if reading.problems:  # DefaultRecordBatch.RecordIterator.next checks it with the last record
            raise CorruptRecord(batch.position, REMAINING, invalid=True)
    if record is None:
        if (batch.recordCount or 0) > 0 and reading.problems:
            raise CorruptRecord(batch.position, f"Invalid record: {reading.problems[0].reason}", invalid=True)
        return None
    key, value = record.key or b"", record.value
    if len(key) < KEY.size:
        what = "control record key" if release.line >= (4, 3) else "end control record key"
        reason = f"Invalid value size found for {what}. Must have at least 4 bytes, but found only"
        raise CorruptRecord(batch.position, f"{reason} {len(key)}", invalid=True)
    control = decode_control(record.key, record.value)
    if control.type not in (COMMIT, ABORT):
        message = f"a producer's control record has type {control.typeId}, expected a transaction marker"
        kind = CONTROL_TYPES[control.typeId].name if control.typeId in CONTROL_TYPES else "UNKNOWN"
        exception = f"IllegalArgumentException: Invalid control record type for end transaction marker {kind}"
        raise RejectedBatch(message, exception, batch.position, batch.baseOffset)
    if len(value or b"") < END_TXN_VALUE and not MARKER_UNDERFLOW.applies(release):
        reason = (
            f"Invalid value size found for end transaction marker. Must have at least {END_TXN_VALUE} bytes, but found"
        )
        raise CorruptRecord(batch.position, f"{reason} only {len(value or b'')}", invalid=True)
    if value is None or len(value) < END_TXN_VALUE:
        message = f"the value of a transaction marker has {plain_count(len(value or b''), 'byte')}"
        raise RejectedBatch(message, "BufferUnderflowException", batch.position, batch.baseOffset)
    if int.from_bytes(value[:2], "big", signed=True) < 0:
        raise CorruptRecord(batch.position, "Invalid version found for end transaction marker", invalid=True)
    return control.type
