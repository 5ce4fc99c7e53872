"""Reads the logs of group and share coordinators from disk into groups, offsets and share group state.

Source: org.apache.kafka.coordinator.share.ShareCoordinatorShard (handleShareSnapshot, handleShareUpdate, merge),
KIP-932; KIP-1226 for deliveryCompleteCount, which is subtracted from the lag."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdump.cluster.internal_log import Take, bounded, read_records
from kdump.cluster.partition_summary import log_end
from kdump.core.record_columns import RecordColumns
from kdump.io.directory_listing import is_directory, length, parent, real_path
from kdump.io.errors import within
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.batch_records import rows_of
from kdump.log.internal_topics import SHARE_TOPIC
from kdump.log.partition_directory import partition
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.log.region import DefaultRecordBatch
from kdump.state.as_of import AsOf, ChangeListener
from kdump.state.group_replay import GroupReplay, finish
from kdump.state.groups import GroupCoordinatorState, LogRead, ShareState
from kdump.state.internal_records import ENTRY, ROOM, memory


class CoordinatorLog(NamedTuple):
    """A partition of __consumer_offsets or __share_group_state: its directory, or the file that was given, and its
    segments in order."""

    topic: str
    partition: int
    path: str
    segments: tuple[str, ...]


def size_of(logs: Iterable[CoordinatorLog]) -> int:
    """Return the bytes of their segments; those that do not exist any more have none."""
    return sum(length(path) or 0 for log in logs for path in log.segments)


def read_groups(
    logs: Iterable[CoordinatorLog],
    moment: AsOf | None = None,
    *,
    on_change: ChangeListener | None = None,
    room: int = ROOM,
    run: Run = PLAIN_RUN,
) -> GroupCoordinatorState:
    """Read `logs` as of `moment` (None: their ends). A moment given by offset makes sense only for a single log.

    Calls `on_change` with each change and `run.more` with the number of bytes read since its last call. Never raises
    for what is on the disk: whatever is not valid is listed in `problems`, and reading continues after it, because the
    records are independent of each other."""
    groups = GroupCoordinatorState()
    replay = GroupReplay(groups, room)
    replay.on_change = on_change
    for log in logs:
        replay.begin(log.partition, "")
        groups.logs.append(_read(replay, log, moment or AsOf(), run))
    replay.flush()
    finish(groups)
    return groups


def _read(replay: GroupReplay, log: CoordinatorLog, moment: AsOf, run: Run) -> LogRead:
    end = 0
    place = log_name(log)

    def note(problem: str) -> None:
        replay.note(within(place, problem))

    replay.name = place
    if not log.segments:
        replay.note("no segments")
    replay.name = ""

    taken: tuple[DefaultRecordBatch, RecordColumns, int] | None = None

    def take(batch: DefaultRecordBatch, columns: RecordColumns, row: int) -> int:
        nonlocal taken
        stop = replay.take(batch, columns, row, moment, place)
        if stop > row:
            taken = batch, columns, stop - 1
        return stop

    for record in log_records(log, moment, note, run, None if log.topic == SHARE_TOPIC else take):
        assert record.offset is not None
        end, taken = record.offset + 1, None
        replay.name = place
        if log.topic == SHARE_TOPIC:
            apply_share(replay, record)
        else:
            replay.apply(record)
        replay.name = ""
    if taken is not None:
        batch, columns, row = taken
        (last,) = rows_of(batch, columns.only(row), 0, row)
        end = (last.offset or 0) + 1
    return LogRead(log.topic, log.partition, log.path, end)


def log_name(log: CoordinatorLog) -> str:
    """Return how problems name a log."""
    path = log.path
    place = os.path.join(os.path.basename(parent(path)), os.path.basename(path))
    return f"{log.topic}-{log.partition}" if is_directory(path) else place


def log_records(
    log: CoordinatorLog, moment: AsOf, note: Callable[[str], None], run: Run = PLAIN_RUN, take: Take | None = None
) -> Iterator[Record]:
    """Yield the records of a log that have an offset, up to `moment`; what is not valid is passed to `note`. `take`: as
    in read_records; it takes none after `moment`."""
    has_end, bound = moment != AsOf(), Run(bounded(run.limits), more=run.more)
    for path in log.segments:
        if moment.offset is not None and (target(path).name_offset or 0) > moment.offset:
            break
        for record in read_records(path, note, bound, take):
            if record is None or record.offset is None:
                continue
            if has_end and moment.is_before(record.offset, record.timestamp):
                if moment.time is not None:
                    return
                continue  # checksums do not cover offsets: one that is too high must not hide later records
            yield record


def merged(logs: Sequence[CoordinatorLog]) -> list[CoordinatorLog]:
    """Merge logs in the same directory into one: the caller may have given several of its segments, or the directory
    and one of them."""
    by_place: dict[tuple[str, int, str], CoordinatorLog] = {}
    for log in logs:
        folder = os.path.dirname(log.segments[0]) if log.segments else log.path
        key = (log.topic, log.partition, real_path(folder))
        other = by_place.get(key)
        if other is not None:
            paths = {real_path(path): path for path in (*log.segments, *other.segments)}
            segments = sorted(paths.values(), key=lambda path: (target(path).name_offset or 0, path))
            log = log._replace(path=folder, segments=tuple(segments))
        by_place[key] = log
    return [by_place[key] for key in sorted(by_place)]


def newest(logs: Sequence[CoordinatorLog]) -> list[CoordinatorLog]:
    """Return one log per partition, sorted by topic and partition: of several copies, the one with the highest end
    offset."""
    copies: dict[tuple[str, int], list[CoordinatorLog]] = {}
    for log in merged(logs):
        copies.setdefault((log.topic, log.partition), []).append(log)
    return [found[0] if len(found) == 1 else max(found, key=_end) for _, found in sorted(copies.items())]


def _end(log: CoordinatorLog) -> int:
    """Return the offset after its last valid batch: no other is replayed."""
    return (log_end(partition(os.path.dirname(log.segments[-1])), False, []) or 0) if log.segments else 0


NONE = -1


def apply_share(replay: GroupReplay, record: Record) -> None:
    """Apply a record of __share_group_state; one that does not decode changes nothing."""
    replay.go_to(record)
    if record.is_control or not replay.fits(record):
        return
    decoded = replay.read("share-coordinator", record.key, record.value)
    if decoded is None:
        return
    key, value = decoded
    group, at = key["groupId"], (key["topicId"], key["partition"])
    states = replay.groups.share.get(group, {})
    before = states.get(at)
    size = ENTRY + 100 + memory(group) + memory(at)
    after = None
    if value is not None:
        after = _after(before, value, replay.record == "ShareUpdate", replay.offset)
    if after is not None and (before is not None or replay.charge(size)):
        replay.groups.share.setdefault(group, states)[at] = after
    elif after is None and before is not None:
        del states[at]
        replay.room += size
        if not states:
            del replay.groups.share[group]
    old, new = ({} if state is None else state._asdict() for state in (before, after))
    replay.report_change(
        "shareState", f"{at[0]}-{at[1]}", group, old, new, quiet=("recordOffset", "writeTimestamp", "snapshotOffset")
    )


def _after(before: ShareState | None, value: dict[str, int], is_update: bool, offset: int) -> ShareState:
    """Return the state after a record. A ShareUpdate omits what has not changed; a ShareSnapshot contains
    everything."""
    after = ShareState(
        value["startOffset"],
        value.get("stateEpoch", NONE),
        value["leaderEpoch"],
        value["snapshotEpoch"],
        value["deliveryCompleteCount"],
        value.get("writeTimestamp"),
        offset,
        -1 if is_update else offset,
    )
    if not is_update or before is None:
        return after
    return after._replace(
        startOffset=before.startOffset if after.startOffset == NONE else after.startOffset,
        leaderEpoch=before.leaderEpoch if after.leaderEpoch == NONE else after.leaderEpoch,
        stateEpoch=before.stateEpoch,
        snapshotEpoch=before.snapshotEpoch,
        writeTimestamp=before.writeTimestamp,
        snapshotOffset=before.snapshotOffset,
    )
