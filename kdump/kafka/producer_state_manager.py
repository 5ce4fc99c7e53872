"""Producer snapshots during startup: which are read, deleted and written, and which batches stop the broker.

Of the producers, only what can stop a startup is kept: which of them have an open transaction.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerAppendInfo.append, EndTransactionMarker.
"""

from __future__ import annotations

from collections.abc import Callable

from kdump.format.control_record import KEY, decode_control
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.kafka.errors import CorruptRecord, RejectedBatch
from kdump.kafka.file_log_input_stream import FileLogInputStream, RecordBatchView
from kdump.log import file_kinds
from kdump.log.batch_records import records
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.paths import Target
from kdump.log.region import Limits
from kdump.log.window import Window
from kdump.state.releases import MARKER_UNDERFLOW

NEVER = -1
LARGEST = 256 * 1024 * 1024
"""Size in bytes of the largest producer snapshot that is read: five million producers."""
END_TXN_VALUE = 6
"""Size in bytes of the value of a transaction marker: version and coordinator epoch."""
Open = Callable[[Target], Window]


class SnapshotFiles:
    """The .snapshot files of a directory, by offset."""

    def __init__(
        self,
        files: dict[int, Target],
        open_: Open,
        on_write: Callable[[int], None] = lambda offset: None,
        on_delete: Callable[[str], None] = lambda path: None,
    ) -> None:
        self.on_write, self.on_delete = on_write, on_delete
        """Called before a snapshot is written or deleted; may raise an exception."""
        self.files: dict[int, Target | None] = dict(files)
        """The snapshot files by offset; None for one that this startup has written."""
        self.open = open_
        self.corrupt: dict[int, str] = {}
        self.contents: dict[int, dict[int, int]] = {}
        """Open transactions in the snapshots that this startup has written."""
        self.removed: dict[int, str] = {}

    def remove(self, offset: int, reason: str) -> None:
        target = self.files.pop(offset, None)
        self.contents.pop(offset, None)
        if target is not None:
            self.on_delete(target.path)
            self.removed[offset] = reason

    def write(self, offset: int, open_transactions: dict[int, int]) -> None:
        self.on_write(offset)
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
            raise SourceError(f"{target.path}: {size} bytes, too large for a snapshot (at most {LARGEST} are read)")
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
        return found

    def remove_stray(self, bases: list[int]) -> None:
        """removeStraySnapshots: removes snapshots without a segment, except the newest if it is above the last
        segment."""
        known, newest = set(bases), None
        for offset in sorted(self.files):
            if offset not in known:
                if newest is not None:
                    self.remove(newest, "no segment starts at its offset")
                newest = offset
        if newest is not None and bases and newest < max(bases):
            self.remove(newest, "no segment starts at its offset")


class ProducerStateManager:
    """Simulates ProducerStateManager: `map_end` is its mapEndOffset, `last_snap` its lastSnapOffset."""

    def __init__(self, snapshots: SnapshotFiles, release: KafkaRelease = NEWEST) -> None:
        self.snapshots, self.release = snapshots, release
        self.open: dict[int, int] = {}
        self.known = False
        """Whether the state contains any producer."""
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
        self.known = False
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

    def take_snapshot(self) -> None:
        if self.map_end > self.last_snap:
            self.snapshots.write(self.map_end, self.open)
            self.last_snap = self.map_end

    def append(self, window: Window, head: RecordBatchView) -> None:
        """Add a batch; one without a producer ID changes nothing. Raises CorruptRecord if recovery truncates here,
        RejectedBatch if the broker exits."""
        header = head.header
        if header is None or header.producerId < 0:
            return
        self.known = True
        producer = header.producerId
        if header.isControlBatch:
            if _ends_transaction(window, head, self.release):
                self.open.pop(producer, None)
        elif header.isTransactional:
            self.open.setdefault(producer, head.base)
        elif producer in self.open:
            message = f"producer {producer} wrote a non-transactional batch while its transaction from offset "
            message += f"{self.open[producer]} is open"
            exception = f"InvalidTxnStateException: Expected transactional write from producer {producer}"
            raise RejectedBatch(message, exception, head.position, head.base)


def _ends_transaction(window: Window, head: RecordBatchView, release: KafkaRelease) -> bool:
    """Return True if a control batch contains a marker; False if compaction has removed it."""
    assert head.header is not None
    batch = FileLogInputStream(window).batch(head, Limits())
    record = next(iter(records(batch, values=False)), None)
    if record is None:
        if head.header.recordCount > 0 and batch.problems:
            raise CorruptRecord(head.position, f"Invalid record: {batch.problems[0].reason}", invalid=True)
        return False
    key, value = record.key or b"", record.value
    if len(key) < KEY.size:
        reason = "Invalid value size found for control record key. Must have at least 4 bytes, but found only"
        raise CorruptRecord(head.position, f"{reason} {len(key)}", invalid=True)
    control = decode_control(record.key, record.value)
    if control.type not in ("COMMIT", "ABORT"):
        message = f"a producer's control record has type {control.typeId}, expected a transaction marker"
        kind = control.type.partition("(")[0]
        exception = f"IllegalArgumentException: Invalid control record type for end transaction marker {kind}"
        raise RejectedBatch(message, exception, head.position, head.base)
    if len(value or b"") < END_TXN_VALUE and not MARKER_UNDERFLOW.applies(release):
        reason = (
            f"Invalid value size found for end transaction marker. Must have at least {END_TXN_VALUE} bytes, but found"
        )
        raise CorruptRecord(head.position, f"{reason} only {len(value or b'')}", invalid=True)
    if value is None or len(value) < END_TXN_VALUE:
        message = f"the value of a transaction marker has {len(value or b'')} bytes"
        raise RejectedBatch(message, "BufferUnderflowException", head.position, head.base)
    if int.from_bytes(value[:2], "big", signed=True) < 0:
        raise CorruptRecord(head.position, "Invalid version found for end transaction marker", invalid=True)
    return True
