"""Reads the state of the cluster from the KRaft metadata on a disk: the newest valid snapshot, then the log after it.

The log is a chain of changes. For `verify`, the replay ends at the first invalid bytes, and the result is correct as of
that offset; `replay_metadata` reports them and continues. Nothing on the disk states how far the log is committed: a
snapshot contains only committed records, but on a controller that lost its quorum, the last records after it may be
undone later.

Source: org.apache.kafka.image.loader.MetadataLoader and MetadataBatchLoader (transactions),
org.apache.kafka.snapshot.RecordsSnapshotReader, KIP-630, KIP-868."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kdump.cluster.internal_log import Malformed, bounded, read_records
from kdump.cluster.metadata_files import BOOTSTRAP, SNAPSHOT, MetadataFiles, Unreachable, metadata_files, too_early
from kdump.core.record_columns import RecordColumns
from kdump.format.control_record import decode_control
from kdump.format.metadata_record import decode_metadata_record, metadata_record_name
from kdump.format.numbers import LONG_MAX
from kdump.io.directory_listing import length
from kdump.io.errors import Gone, SourceError, Unread, listing_error, unread
from kdump.io.run import PLAIN_RUN, Run, ignore
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.state import metadata_node_handlers
from kdump.state.as_of import AsOf, ChangeListener
from kdump.state.internal_records import MAX_PROBLEMS, ROOM, ROOM_METADATA, too_large
from kdump.state.left_out_records import RecordChoice
from kdump.state.metadata_image import MetadataImage
from kdump.state.metadata_node_handlers import TRANSACTION_TYPES
from kdump.state.metadata_problem import Kind, MetadataProblem
from kdump.state.metadata_replay import MetadataReplay

MAX_ABORTED_RANGES = 100_000
"""Maximum number of offset ranges that are ignored because their transaction was aborted."""
MAX_COPIES = 100
"""Maximum number of aborted transactions whose records are checked: each needs a copy of the state."""
MAX_TOPICS = 1_000_000
"""Maximum number of topics whose times of creation and deletion are kept."""
NO_OP, TOPIC, REMOVE_TOPIC = "NoOpRecord", "TopicRecord", "RemoveTopicRecord"
BEGIN, END, ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"


def read_metadata(directory: str, run: Run = PLAIN_RUN, choice: RecordChoice | None = None) -> MetadataImage | None:
    """Read the state of the cluster from __cluster_metadata-0 in the log directory `directory`. Returns None if there
    is no such directory, or no snapshot or segment in it. Never raises: `problems` has what cannot be read. Calls
    `run.at` as replay_metadata does. `choice`: see there."""
    folder = os.path.join(directory, METADATA_LOG)
    try:
        files = metadata_files(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return MetadataImage(problems=[_problem_of(unread(SourceError(listing_error(error, folder))))])
    if not files.snapshots and not files.segments:
        return None
    reader = _MetadataReader(
        files, AsOf(), replace(run, limits=bounded(run.limits)), ROOM_METADATA, None, False, choice
    )
    return reader.read(files.snapshots[::-1])


def replay_metadata(
    files: MetadataFiles,
    moment: AsOf | None = None,
    *,
    on_change: ChangeListener | None = None,
    room: int = ROOM,
    run: Run = PLAIN_RUN,
    choice: RecordChoice | None = None,
) -> MetadataImage:
    """Return the full state of the cluster in `files` as of `moment` (None: the end of the log).

    With `choice`, which is filled in, the state has what is needed to write it again. With `on_change`, the replay
    starts as early as possible, and `on_change` is called with every change that a record of the log makes. Calls
    `run.at` with the bytes read so far, and the total, which increases if a snapshot turns out to be invalid or the
    log to contain transactions. Invalid bytes are added to `problems`, and the replay continues after them. Raises
    Unreachable if no snapshot is old enough for the moment and the log does not start at offset 0."""
    moment = moment or AsOf()
    reader = _MetadataReader(files, moment, replace(run, limits=bounded(run.limits)), room, on_change, True, choice)
    start = files.log_start
    if files.bootstrap is not None and not files.snapshots and start is None:
        return reader.read(((0, files.bootstrap),))
    fitting = [snapshot for snapshot in files.snapshots if moment.offset is None or snapshot[0] <= moment.offset + 1]
    if on_change is not None:
        # As little as possible from a snapshot, because it contains no history.
        usable = [] if start == 0 else [snapshot for snapshot in fitting if start is None or snapshot[0] >= start]
    else:
        usable = fitting[::-1]
    is_limited = moment != AsOf()
    if is_limited and not usable and start != 0:
        raise Unreachable(too_early(files, ()))
    metadata = reader.read(usable)
    if is_limited and metadata.snapshot is None and start != 0:
        raise Unreachable(too_early(files, reader.snapshot_problems))
    return metadata


def changes_between(files: MetadataFiles, first: int, end: int, run: Run = PLAIN_RUN) -> bool:
    """Return whether a record of the log at the offsets first..end-1 changes anything, or may because it cannot be
    read. A NoOpRecord, which the leader appends twice a second, and a control record do not."""
    bases = [target(path).name_offset or 0 for path in files.segments]
    expected = first
    for number, path in enumerate(files.segments):
        is_last = number + 1 == len(bases)
        if bases[number] >= end or (not is_last and bases[number + 1] <= first):
            continue
        for record in read_records(path, lambda problem: None, Run(bounded(run.limits))):
            if record is None or record.offset is None:
                return True
            if not first <= record.offset < end:
                continue
            if not record.is_control and metadata_record_name(record.value) != NO_OP:
                return True
            expected = record.offset + 1
    return expected < end


class TopicTimes(NamedTuple):
    """When topics were created, and when deleted, in epoch ms, by topic ID. `is_complete`: no record before the end of
    the log is deleted, damaged or missing."""

    created: dict[str, int]
    deleted: dict[str, int]
    is_complete: bool


def topic_times(directory: str, run: Run = PLAIN_RUN) -> TopicTimes:
    """Return what the records state that the metadata log in a log directory still has."""
    times: dict[str, dict[str, int]] = {TOPIC: {}, REMOVE_TOPIC: {}}
    end, is_complete = 0, True
    try:
        segments = metadata_files(os.path.join(directory, METADATA_LOG)).segments
    except OSError:
        segments = ()
    for path in segments:
        for record in read_records(path, lambda problem: None, Run(bounded(run.limits))):
            is_complete &= record is not None and record.offset == end
            end += 1
            of_kind = None if record is None or record.is_control else times.get(metadata_record_name(record.value))
            if record is None or of_kind is None:
                continue
            is_complete &= len(of_kind) < MAX_TOPICS
            topic_id = (decode_metadata_record(record.value).values or {}).get("topicId")
            if topic_id is not None and record.timestamp is not None and len(of_kind) < MAX_TOPICS:
                of_kind[topic_id] = record.timestamp
    return TopicTimes(times[TOPIC], times[REMOVE_TOPIC], is_complete and end > 0)


@dataclass
class _MetadataReader:
    """One read of the files."""

    files: MetadataFiles
    moment: AsOf
    run: Run
    room: int
    on_change: ChangeListener | None
    go_on: bool
    choice: RecordChoice | None = None
    snapshot_problems: list[str] = field(default_factory=list)
    """Why snapshots were rejected."""
    done: int = 0
    """Bytes read so far."""
    total: int = 0
    """Bytes that will have been read at the end, if nothing has to be read again."""
    gap: int | None = None
    """Offset of the first record that is missing or invalid, if any."""
    is_broken: bool = False
    """Whether a node does not read what follows there."""
    reading: str = ""
    """The segment with the record that was read last."""
    newest_epoch: int | None = None
    """Highest leader epoch of the batches that were read of the log: no checksum covers that of a batch."""

    def read(self, snapshots: Sequence[tuple[int, str]]) -> MetadataImage:
        """Read the first of the `snapshots` that is valid and old enough, and the log after it; or the log alone."""
        replay = self._replay()
        skipped: list[str] = []
        start = None
        for end, path in snapshots:
            self.total = self.done + _bytes((path, *self._needed(end)))
            tried = self._replay()
            tried.on_change = None
            reason, time = self._read_snapshot(tried, path, is_format=end == 0)
            if self.moment.time is not None and time is not None and time > self.moment.time:
                continue
            if not reason:
                replay, start = tried, end
                self._begin_with(replay.metadata, end, path)
                replay.metadata.end_time = time
                break
            skipped.append(f"{os.path.basename(path)}: not a valid snapshot: {reason}")
        if skipped and start is None and self.go_on and not self.files.segments and self.moment == AsOf():
            # There is nothing else: use what can be read of it.
            self.total = self.done + _bytes((snapshots[0][1],))
            self._read_snapshot(replay, snapshots[0][1], go_on=True)
            self._begin_with(replay.metadata, *snapshots[0])
            self.gap = 0
            self.is_broken = replay.is_partial = True
        self.snapshot_problems = skipped
        replay.on_change = self.on_change
        problems = [MetadataProblem(Kind.SKIPPED, text, self.gap) for text in skipped[:MAX_PROBLEMS]]
        replay.metadata.problems[:0] = problems
        replay.in_log = True
        self._read_log(replay, start)
        older = self.newest_epoch
        if start is not None and older is not None and older < replay.metadata.snapshot_epoch:
            replay = self._snapshot_alone(start, replay.metadata)
            text = f"the records from offset {start} on are of leader epoch {older}, before that of the snapshot "
            text += f"({replay.metadata.snapshot_epoch}): a node deletes them when it starts"
            replay.note(MetadataProblem(Kind.DAMAGED, text))
        if replay.transaction is not None:
            replay.metadata.open_transaction = replay.transaction
            replay.metadata.places[replay.transaction] = (*replay.begun_at, None)
        log_start, segments = self.files.log_start, self.files.segments
        if start is not None and log_start is not None and log_start < start and not _bytes(segments):
            missing = f"is empty, and what came after its snapshot at offset {start} is missing"
            replay.metadata.emptied = MetadataProblem(Kind.EMPTIED, f"{self.files.path} {missing}")
        replay.metadata.gap = self.gap
        replay.metadata.is_too_large = replay.is_full
        replay.metadata.is_partial = replay.is_partial or replay.is_full or self.is_broken
        return replay.metadata

    def _snapshot_alone(self, end: int, before: MetadataImage) -> MetadataReplay:
        """Return the replay of the snapshot that ends there, without the log: KafkaRaftLog.truncateToLatestSnapshot."""
        replay = self._replay()
        path = next(path for offset, path in self.files.snapshots if offset == end)
        _, replay.metadata.end_time = self._read_snapshot(replay, path)
        self._begin_with(replay.metadata, end, path)
        replay.metadata.problems[:0] = [each for each in before.problems if each.kind == Kind.SKIPPED]
        self.gap, self.is_broken = None, False
        return replay

    @staticmethod
    def _begin_with(metadata: MetadataImage, end: int, path: str) -> None:
        metadata.snapshot = metadata.end_offset = metadata.committed = end
        match = SNAPSHOT.fullmatch(os.path.basename(path))
        metadata.snapshot_epoch = 0 if match is None else int(match["epoch"])

    def _more(self, count: int) -> None:
        self.done += count
        self.run.at(self.done, self.total)

    def _needed(self, start: int | None) -> list[str]:
        """Return the segments with records from offset `start` on, up to the moment."""
        paths = self.files.segments
        bases = [target(path).name_offset or 0 for path in paths]
        # A segment is needed if the next one starts after `start`.
        needed = [path for i, path in enumerate(paths) if start is None or i + 1 == len(paths) or bases[i + 1] > start]
        if self.moment.offset is not None:
            needed = [path for path in needed if (target(path).name_offset or 0) <= self.moment.offset]
        return needed

    def _replay(self) -> MetadataReplay:
        replay = MetadataReplay(MetadataImage(), self.room)
        if self.choice is not None:
            self.choice.start_over()
            replay.choice = self.choice
        return replay

    def _read_snapshot(
        self, replay: MetadataReplay, path: str, go_on: bool = False, is_format: bool = False
    ) -> tuple[str, int | None]:
        """Apply a snapshot's records. Return why it is invalid, empty if it is valid, and the time that its header
        states. `is_format`: kafka-storage has written it, and what is not a control record in it is no state: a
        controller appends it to a log that has no record yet (KIP-1170)."""
        first, last, time = None, "", None
        replay.file, replay.number = path, -1
        is_state = not is_format or (self.go_on and not self.files.segments)
        reason = ""

        def note(problem: str) -> None:
            nonlocal reason
            reason = problem
            replay.note(_problem_of(problem))

        def take(batch: DefaultRecordBatch, columns: RecordColumns, row: int) -> int:
            nonlocal first, last
            if is_format or not is_state:
                return row
            end, _ = replay.take(columns, row, batch.header, -1, LONG_MAX, LONG_MAX)
            if end > row:
                first, last = first or "", ""
                replay.number += end - row
            return end

        for record in read_records(path, note, Run(self.run.limits, more=self._more), take, replay.refuse_empty):
            if record is None:
                if go_on:
                    continue
                return reason, time
            is_control = record.is_control and not too_large(record)
            control = decode_control(record.key, record.value) if is_control else None
            last = control.type if control else ""
            first = last if first is None else first
            if last == "SNAPSHOT_HEADER" and control and control.value:
                time = control.value.get("lastContainedLogTimestamp")
                if self.moment.time is not None and time is not None and time > self.moment.time:
                    return "", time  # too late: the rest is not needed
            if not record.is_control:
                value = record.value
                if is_format and os.path.basename(path) != BOOTSTRAP:
                    metadata_node_handlers.formatted(replay, decode_metadata_record(value))
                replay.number += 1
                if is_state:
                    replay.apply(record, value, metadata_record_name(value))
            elif control is not None:
                replay.offset = record.offset
                metadata_node_handlers.control(replay, control, None, None)
        if first != "SNAPSHOT_HEADER" and os.path.basename(path) != BOOTSTRAP:
            return "the first record is not its header", time
        # A bootstrap.checkpoint that kafka-storage writes may have no footer in old releases; a snapshot always has
        # one.
        is_complete = last == "SNAPSHOT_FOOTER" or os.path.basename(path) == BOOTSTRAP
        return "" if is_complete else "the last record is not its footer", time

    def _read_log(self, replay: MetadataReplay, start: int | None) -> None:
        """Apply the log's records from offset `start` on; None if there is no snapshot."""
        needed = self._needed(start)
        self.total = self.done + _bytes(needed)
        dropped: list[tuple[int, int]] | None = None
        metadata = replay.metadata
        taken_back = _TakenBack(replay)
        led: int | None = None

        def take(batch: DefaultRecordBatch, columns: RecordColumns, row: int, offset: int) -> int:
            nonlocal led
            if dropped:
                return row
            last = LONG_MAX - 1 if self.moment.offset is None else self.moment.offset
            last = last if self.choice is None else min(last, self.choice.last_before(offset))
            last_time = LONG_MAX if self.moment.time is None else self.moment.time
            end, time = replay.take(columns, row, batch.header, offset, last, last_time)
            if end > row:
                metadata.end_offset, metadata.end_time = offset + end - row, time
                self.newest_epoch = max(self.newest_epoch or 0, batch.header.partitionLeaderEpoch)
                if led is not None:
                    metadata.committed, led = led, None
            return end

        def refuse_empty(batch: Batch) -> None:
            replay.file = self.reading
            replay.refuse_empty(batch)

        for record in self._log(needed, start, replay.note, take, refuse_empty):
            assert record.offset is not None
            is_control = record.is_control
            value = record.value
            name = "" if is_control else metadata_record_name(value)
            if dropped is None and name == BEGIN:
                dropped = self._uncommitted(replay, needed, start)
            replay.is_partial |= metadata.end_offset == 0 and start is None and record.offset > 0
            if record.index == 0:
                replay.stable = max(replay.stable, metadata.end_offset - 1)
            metadata.end_offset, metadata.end_time = record.offset + 1, record.timestamp
            self.newest_epoch = max(self.newest_epoch or 0, record.batch.partitionLeaderEpoch or 0)
            replay.file, replay.is_partial = self.reading, replay.is_partial or self.is_broken
            while dropped and dropped[-1][1] < record.offset:
                dropped.pop()
                taken_back.copy = None
            if is_control:
                if not too_large(record):
                    replay.offset, replay.timestamp = record.offset, record.timestamp
                    control = decode_control(record.key, record.value)
                    metadata_node_handlers.control(replay, control, record.batch.partitionLeaderEpoch, record.offset)
                    led = record.offset if control.type == "LEADER_CHANGE" else led
                continue
            if led is not None:
                metadata.committed, led = led, None
            if not (dropped and dropped[-1][0] <= record.offset) or name in TRANSACTION_TYPES:
                replay.apply(record, value, name)
            else:
                taken_back.apply(record, value, name, self.reading)

    def _uncommitted(self, replay: MetadataReplay, paths: Sequence[str], start: int | None) -> list[tuple[int, int]]:
        """Return the ranges of offsets in transactions that are not committed, the last first. How one ends decides
        whether its records count: only logs with a transaction are read twice."""
        self.total += _bytes(paths)
        ranges = uncommitted_ranges(replay, self._log(paths, start, lambda problem: None))
        if self.choice is not None:
            self.choice.uncommitted = list(ranges)
        return ranges[::-1]

    def _has_gap(self, offset: int, *, is_broken: bool = True) -> bool:
        """Note that records are missing from `offset` on; return whether reading ends there. `is_broken`: a node does
        not read on without them."""
        self.gap = offset if self.gap is None else self.gap
        self.is_broken = self.is_broken or is_broken
        return is_broken and not self.go_on

    def _log(
        self,
        paths: Sequence[str],
        start: int | None,
        note: Callable[[MetadataProblem], None],
        take: Callable[[DefaultRecordBatch, RecordColumns, int, int], int] = lambda batch, columns, row, offset: row,
        on_empty: Callable[[Batch], object] = ignore,
    ) -> Iterator[Record]:
        """Yield the log's records from offset `start` up to the moment, in order, but those that `take` takes, which
        must have this offset and the next ones. Ends at invalid bytes, and at an offset that is not above that of the
        record before, unless `go_on` is set.
        Records below `start` are in the snapshot: invalid bytes there are only reported."""
        expected = start
        ends_at: int | None = None
        begun = False
        has_end = self.moment != AsOf()

        def take_next(batch: DefaultRecordBatch, columns: RecordColumns, row: int) -> int:
            nonlocal expected
            if not begun or expected is None:
                return row
            end = take(batch, columns, row, expected)
            expected += end - row
            return end

        def damaged(problem: str) -> None:
            note(_problem_of(problem, (expected or 0) if begun or start is None else None))

        def empty(batch: Batch) -> None:
            if start is None or batch.lastOffset >= start:
                self.reading = path
                on_empty(batch)

        for path in paths:
            for record in read_records(path, damaged, Run(self.run.limits, more=self._more), take_next, empty):
                if record is None:
                    if (begun or start is None) and self._has_gap(expected or 0):
                        return
                    continue
                _count_from_base(record, path, note)
                if record.offset is None or (not begun and start is not None and record.offset < start):
                    continue
                if has_end and self.moment.is_before(record.offset, record.timestamp):
                    if self.moment.time is not None:
                        return
                    continue  # an offset has no checksum: one that is too high must not hide later records
                if expected is None and record.offset > 0:
                    reason = f"the log starts at offset {record.offset}, and there is no valid snapshot of the records"
                    note(MetadataProblem(Kind.MISSING, Unread(f"{reason} before it")))
                if expected is not None and record.offset not in (expected, ends_at):
                    text = f"{os.path.basename(path)}: offset {record.offset}, expected {expected}"
                    note(MetadataProblem(Kind.MISSING, text, expected))
                    if self._has_gap(expected, is_broken=record.offset < expected or not begun):
                        return
                begun = True
                expected, ends_at = record.offset + 1, record.batch.lastOffset + 1
                self.reading = path
                yield record


class _TakenBack:
    """Applies the records of a transaction that is not committed to a copy of the replay, as a node does before it
    takes them back: one of them may stop it."""

    def __init__(self, replay: MetadataReplay) -> None:
        self.replay = replay
        self.copy: MetadataReplay | None = None
        self.copies = 0

    def apply(self, record: Record, value: bytes | None, name: str, path: str) -> None:
        if self.copy is None and self.copies < MAX_COPIES:
            self.copy, self.copies = self.replay.copied(), self.copies + 1
        if self.copy is not None:
            self.copy.file = path
            self.copy.apply(record, value, name)
        else:
            self.replay.at(Kind.NOT_CHECKED, "not checked: it is in a transaction that was aborted, or never ended")


def _problem_of(text: str, offset: int | None = None) -> MetadataProblem:
    """Return the problem that read_records states. `offset`: of the first record that is missing because of it."""
    if isinstance(text, Malformed):
        return MetadataProblem(Kind.DAMAGED, Unread(text), offset)  # a node may halt there
    return MetadataProblem(Kind.UNREAD if isinstance(text, (Unread, Gone)) else Kind.DAMAGED, text, offset)


def _count_from_base(record: Record, path: str, note: Callable[[MetadataProblem], None]) -> None:
    """Give a record the offset that a node reads: MetadataBatchLoader and RecordsIterator count the records of a batch
    from its base offset on."""
    if record.offset is not None and isinstance(record.batch, DefaultRecordBatch) and not record.is_control:
        position = record.batch.header.baseOffset + record.index
        if record.offset != position:
            text = f"{os.path.basename(path)}: offset {record.offset}, which a node reads as {position}"
            note(MetadataProblem(Kind.DAMAGED, text))
            record.offset = position


def _bytes(paths: Iterable[str]) -> int:
    return sum(length(path) or 0 for path in paths)


def uncommitted_ranges(replay: MetadataReplay, log: Iterator[Record]) -> list[tuple[int, int]]:
    """Return the first and last offsets of the metadata transactions that were aborted or never ended."""
    ranges: list[tuple[int, int]] = []
    begun = None
    for record in log:
        assert record.offset is not None
        name = "" if record.is_control else metadata_record_name(record.value)
        if begun is not None and name == ABORT:
            ranges.append((begun, record.offset - 1))
            if len(ranges) == MAX_ABORTED_RANGES:
                text = f"at offset {record.offset}: more than {MAX_ABORTED_RANGES} aborted transactions; "
                text += "the rest of the log is ignored"
                replay.note(MetadataProblem(Kind.TOO_LARGE, text, record.offset))
                return [*ranges, (record.offset, sys.maxsize)]
        if name == BEGIN:
            # A node refuses a second one, which is left out.
            begun = record.offset if begun is None else begun
        elif name in (ABORT, END):
            begun = None
    return ranges if begun is None else [*ranges, (begun, sys.maxsize)]
