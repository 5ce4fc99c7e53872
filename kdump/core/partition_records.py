# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Applies the records of partitions in a metadata log straight from their bytes: nearly all records of a large log are
changes of leader, ISR or replicas.

Compiled if there is a C compiler; otherwise runs as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from kdump.core.record_columns import RecordColumns
from kdump.format.batch_header import BatchHeader
from kdump.format.kafka_uuid import uuid_text
from kdump.format.metadata_names import RECOVERY_STATE
from kdump.format.numbers import int32
from kdump.format.schema import load_folder

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import int32_at, plus
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import int32_at, plus

FIELDS = {
    "replicas": REPLICAS_FIELD,
    "directories": DIRECTORIES_FIELD,
    "leader": LEADER_FIELD,
    "leaderEpoch": LEADER_EPOCH_FIELD,
    "isr": ISR_FIELD,
    "addingReplicas": ADDING_FIELD,
    "removingReplicas": REMOVING_FIELD,
    "eligibleLeaderReplicas": ELIGIBLE_FIELD,
    "lastKnownElr": LAST_KNOWN_FIELD,
    "leaderRecoveryState": RECOVERY_FIELD,
    "partitionEpoch": PARTITION_EPOCH_FIELD,
}
CHANGE = "PartitionChangeRecord"
MOST = 10_000
"""Maximum number of topics whose partitions are remembered."""
NOTHING = [(), (), -1, 0, (), (), (), (), (), RECOVERY_STATE[0], 0]


class _Unusual(Exception):
    """Raised if state.metadata_topic_handlers must apply the record."""


@cython.cclass
class PartitionRecords:
    """`make`: state.PartitionRegistration; `directories`: the IDs of log directories that are known; `find`: returns
    the partitions of the topic with an ID, None if no record of them is applied here."""

    _make: Callable[[Any], Any]
    _find: Callable[[str], dict[int, Any] | None]
    _known: dict[str, str]
    _topics: dict[bytes, dict[int, Any]]
    _layouts: dict[bytes, Any]
    _directories: dict[bytes, str]
    _columns: object
    _data: bytes

    def __init__(
        self, make: Callable[[Any], Any], directories: dict[str, str], find: Callable[[str], dict[int, Any] | None]
    ) -> None:
        self._make = make
        self._find = find
        self._known = directories
        self._topics = {}
        self._layouts = {}
        self._directories = {}
        self._columns = None
        self._data = b""

    def see(self, frame: bytes) -> None:
        """Apply records with this frame from now on, if they are of partitions or have no effect."""
        layout = _layouts().get(frame)
        if layout is not None:
            self._layouts[frame] = layout

    def forget(self) -> None:
        """Ask for the partitions of each topic again: one was removed, or its records are not applied here any more."""
        self._topics.clear()

    def apply(
        self,
        columns: RecordColumns,
        row: cython.Py_ssize_t,
        batch: BatchHeader,
        offset: cython.longlong,
        last_offset: cython.longlong,
        last_time: cython.longlong,
        room: cython.longlong,
    ) -> tuple[int, int, int]:
        """Apply the records of a batch from number `row` on, of which the first must have this offset, and the others
        those that follow; -1: in a snapshot, any. Return the number of the first that is not applied, the timestamp of
        the one before, and what is left of the `room` in bytes. Not applied are records that are unusual or refused,
        all others, and those after these limits."""
        count: cython.Py_ssize_t = columns.count
        rows: cython.longlong[::1] = columns.block
        base: cython.longlong = batch.baseOffset
        base_time: cython.longlong = batch.baseTimestamp
        newest: cython.longlong = batch.maxTimestamp
        is_appended: cython.bint = batch.timestampType == "LogAppendTime"
        time: cython.longlong = newest
        next_time: cython.longlong
        at: cython.Py_ssize_t
        start: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        data: bytes
        view: cython.const[cython.uchar][::1]
        if columns is not self._columns:
            self._columns, self._data = columns, bytes(columns.data)
        view = data = self._data
        while row < count:
            at = row * RECORD_WIDTH
            next_time = newest if is_appended else plus(base_time, rows[at + TIMESTAMP_DELTA])
            if offset >= 0:
                if plus(base, rows[at + OFFSET_DELTA]) != offset or offset > last_offset or next_time > last_time:
                    break
                offset += 1
            start = rows[at + VALUE_START]
            stop = start + rows[at + VALUE_SIZE]
            layout = self._layouts.get(data[start : start + FRAME_WIDTH]) if stop >= start + FRAME_WIDTH else None
            if layout is None or rows[at + KEY_SIZE] >= 0 or rows[at + TIMESTAMP_DELTA] or rows[at + HEADERS_COUNT]:
                break
            if not layout:
                if stop != start + FRAME_WIDTH + 1 or view[start + FRAME_WIDTH]:
                    break
            else:
                if stop < start + FIELDS_AT:
                    break
                partitions = self._partitions(data[start + TOPIC_ID_AT : start + FIELDS_AT])
                if partitions is None:
                    break
                try:
                    room -= self._put(partitions, layout, view, start, stop, room)
                except _Unusual:
                    break
            time = next_time
            row += 1
        return row, time, room

    @cython.cfunc
    @cython.exceptval(check=True)
    @cython.returns(cython.longlong)
    def _put(
        self,
        partitions: dict[int, Any],
        layout: tuple[bytes, bytes, bool],
        view: cython.const[cython.uchar][::1],
        start: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        room: cython.longlong,
    ):
        """Store a partition, or change it, as the record that begins at `start` says. Return the bytes that it takes in
        addition."""
        number = int32_at(view, start + FRAME_WIDTH)
        before: Any = partitions.get(number)
        values: list[Any]
        more: cython.longlong = -_list_bytes(before) if before is not None else STATE_ENTRY
        if not layout[2]:
            values = NOTHING.copy()
        elif before is None:
            raise _Unusual
        else:
            values = list(before)
            values[PARTITION_EPOCH_FIELD] = int32(before[PARTITION_EPOCH_FIELD] + 1)
            values[LEADER_FIELD] = NO_LEADER_CHANGE
        values[REPLICAS_FIELD] = None
        self._read(layout, view, start + FIELDS_AT, stop, values)
        if layout[2] and values[LEADER_FIELD] == NO_LEADER_CHANGE:
            values[LEADER_FIELD] = before[LEADER_FIELD]
        elif layout[2]:
            values[LEADER_EPOCH_FIELD] = int32(before[LEADER_EPOCH_FIELD] + 1)
        replicas: Any = values[REPLICAS_FIELD]
        directories: Any = values[DIRECTORIES_FIELD]
        if replicas is None:
            values[REPLICAS_FIELD] = replicas = before[REPLICAS_FIELD]
        elif directories and len(directories) != len(replicas):
            raise _Unusual  # it is refused
        if values[ISR_FIELD] == replicas:
            values[ISR_FIELD] = replicas
        more += _list_bytes(values)
        if more > room:
            raise _Unusual
        partitions[number] = self._make(values)
        return more

    @cython.cfunc
    @cython.exceptval(-1)
    @cython.returns(cython.Py_ssize_t)
    def _read(
        self,
        layout: tuple[bytes, bytes, bool],
        view: cython.const[cython.uchar][::1],
        at: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        values: list[Any],
    ):
        """Read the fields of a record that are after the topic ID."""
        plain: bytes = layout[0]
        tagged: bytes = layout[1]
        i: cython.Py_ssize_t
        _: cython.Py_ssize_t
        count: cython.Py_ssize_t
        tag: cython.Py_ssize_t
        last: cython.Py_ssize_t = -1
        for i in range(len(plain)):
            at = self._field(view, at, stop, plain[i], values)
        count = view[at] if at < stop else 0x80
        at += 1
        if count > 0x7F:
            raise _Unusual
        for _ in range(count):
            tag = view[at] if stop - at >= 2 else 0x80
            if tag <= last or tag >= len(tagged) or tagged[tag] == PARTITION_FIELDS or view[at + 1] > 0x7F:
                raise _Unusual
            last = tag
            stop_of_field: cython.Py_ssize_t = at + 2 + view[at + 1]
            at = self._field(view, at + 2, stop, tagged[tag], values)
            if at != stop_of_field:
                raise _Unusual
        if at != stop:
            raise _Unusual
        return 0

    @cython.cfunc
    @cython.exceptval(-1)
    @cython.returns(cython.Py_ssize_t)
    def _field(
        self,
        view: cython.const[cython.uchar][::1],
        at: cython.Py_ssize_t,
        stop: cython.Py_ssize_t,
        field: cython.Py_ssize_t,
        values: list[Any],
    ):
        """Read the field at `at`. Return the position after it."""
        count: cython.Py_ssize_t
        width: cython.Py_ssize_t = 16 if field == DIRECTORIES_FIELD else 4
        items: list[Any] = []
        if field == RECOVERY_FIELD:
            if at >= stop or view[at] > 1:
                raise _Unusual
            values[field] = RECOVERY_STATE[view[at]]
            return at + 1
        if field in (LEADER_FIELD, LEADER_EPOCH_FIELD, PARTITION_EPOCH_FIELD):
            if stop - at < 4:
                raise _Unusual
            values[field] = int32_at(view, at)
            return at + 4
        count = view[at] - 1 if at < stop else -1
        at += 1
        # Those of ELR are empty in most records.
        if not 0 <= count < (1 if field in (ELIGIBLE_FIELD, LAST_KNOWN_FIELD) else 0x7F) or stop - at < width * count:
            raise _Unusual
        while len(items) < count:
            items.append(int32_at(view, at) if width == 4 else self._directory(bytes(view[at : at + width])))
            at += width
        values[field] = tuple(items)
        return at

    def _partitions(self, topic_id: bytes) -> dict[int, Any] | None:
        partitions = self._topics.get(topic_id)
        if partitions is None:
            partitions = self._find(uuid_text(topic_id))
            if partitions is not None:
                if len(self._topics) == MOST:
                    self._topics.clear()
                self._topics[topic_id] = partitions
        return partitions

    def _directory(self, name: bytes) -> str:
        """Return the ID of a log directory, which is stored once."""
        directory = self._directories.get(name)
        if directory is None:
            directory = self._known.get(uuid_text(name))
            if directory is None:
                raise _Unusual
            self._directories[name] = directory
        return directory


@cython.cfunc
@cython.exceptval(-1)
@cython.returns(cython.longlong)
def _list_bytes(values: Any):
    """Return the bytes that the lists take, as state.metadata_topic_handlers counts them."""
    if values[ELIGIBLE_FIELD] or values[LAST_KNOWN_FIELD]:
        raise _Unusual
    total: cython.longlong = 0 if values[ISR_FIELD] == values[REPLICAS_FIELD] else OWN_ISR
    for moving in (values[ADDING_FIELD], values[REMOVING_FIELD]):
        if moving:
            total += MOVING_LIST + 8 * len(moving)
    return total + 8 * (len(values[REPLICAS_FIELD]) + len(values[DIRECTORIES_FIELD]))


@cache
def _layouts() -> dict[bytes, tuple[()] | tuple[bytes, bytes, bool]]:
    """Return by frame what is read of each version of the records: the fields after the topic ID, and
    those with each tag; whether it is a change. Nothing of a record that has no effect."""
    schemas, layouts = load_folder("metadata"), {}
    for name in ("PartitionRecord", CHANGE, "NoOpRecord"):
        schema = schemas[name]
        for version in range(schema.valid.lowest, schema.valid.highest + 1):
            fields = schema.struct(version)
            plain = [FIELDS[each.name] for each in fields.plain[2:]]
            tags = [fields.tagged.get(tag) for tag in range(max(fields.tagged, default=-1) + 1)]
            tagged = [PARTITION_FIELDS if each is None else FIELDS[each.name] for each in tags]
            frame = bytes((1, schema.apiKey or 0, version))
            layouts[frame] = (bytes(plain), bytes(tagged), name == CHANGE) if fields.plain else ()
    return layouts
