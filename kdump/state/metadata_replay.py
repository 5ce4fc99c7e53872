"""Replays KRaft metadata records into an image of the cluster, with bounded memory.

The record handlers are in metadata_topic_handlers (topics, partitions), metadata_node_handlers (brokers, controllers,
features) and metadata_config_and_acl_handlers (configs, quotas, ACLs, credentials, tokens). Source: the delta classes
in org.apache.kafka.image."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from kdump.core.record_columns import RecordColumns
from kdump.format.batch_header import BatchHeader
from kdump.format.count_text import plain_count
from kdump.format.errors import DecodeError, FrameVersionError, LeftOverError, OurLimitError
from kdump.format.metadata_record import MetadataRecord, decode_metadata_record, plain_values, read_frame
from kdump.format.schema import by_api_key
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.state import metadata_config_and_acl_handlers, metadata_node_handlers, metadata_topic_handlers
from kdump.state.internal_records import ROOM, too_large
from kdump.state.metadata_image import MetadataImage
from kdump.state.metadata_problem import Kind
from kdump.state.metadata_refusal import Rule
from kdump.state.metadata_replay_state import ReplayState

HANDLERS: dict[str, Callable[[ReplayState, dict[str, Any]], None]] = {
    **metadata_topic_handlers.HANDLERS,
    **metadata_node_handlers.HANDLERS,
    **metadata_config_and_acl_handlers.HANDLERS,
}
"""Handlers by record name."""
MAX_COPIED = 20_000
"""Maximum number of partitions of a state that is copied."""
MAX_FRAMES = 1000
"""Maximum number of types and versions of records that are remembered."""
UNREADABLE = {
    "version 0": Rule(
        reader="MetadataParseException: Could not deserialize metadata record with frame version 0. Note that upgrades "
        "from the preview release of KRaft in 2.8 to newer versions are not supported."
    ),
    "other version": Rule(
        reader="MetadataParseException: Could not deserialize metadata record due to unknown frame version {version}"
        "(only frame version 1 is supported)"
    ),
    "timestamp": Rule(
        reader="IllegalArgumentException: Got timestamp delta of {delta}, but this is invalid because it is not 0 as "
        "expected."
    ),
    "key": Rule(reader="IllegalArgumentException: Got key in the record when no key was expected"),
    "missing": Rule(reader="IllegalArgumentException: Missing value in the record when a value was expected"),
    "headers": Rule(
        reader="IllegalArgumentException: Got numHeaders of {count}, but this is invalid because it is not 0 as "
        "expected."
    ),
    "no records": Rule(
        reader="IllegalArgumentException: Batch must contain at least one record; baseOffset = {offset}; "
        "epoch = {epoch}"
    ),
    "empty": Rule(reader="IllegalArgumentException: Got an unexpected empty value in the record"),
    "rest": Rule(reader="MetadataParseException: Found {count} byte(s) of garbage after {apiKey}"),
    "content": Rule(reader="MetadataParseException: Failed to deserialize record with type {apiKey}"),
}
NESTED = {
    "RegisterBrokerRecord": ("endPoints", "features"),
    "RegisterControllerRecord": ("endPoints", "features"),
    "ClientQuotaRecord": ("entity",),
}
"""Records with arrays of structures, which a release reads only in versions that it knows."""


class MetadataReplay(ReplayState):
    """Applies records in order. `room`: memory budget in bytes; `on_change` is called with each change."""

    def __init__(self, metadata: MetadataImage, room: int = ROOM) -> None:
        super().__init__(metadata, room)
        self._frames: set[bytes] = set()

    def apply(self, record: Record, value: bytes | None, name: str) -> None:
        """Apply a record that is not a control record; one that does not decode changes nothing. `name` is the
        metadata_record_name of its value."""
        self.offset, self.timestamp, self.source, self.record = record.offset, record.timestamp, record, name
        self.position = record.batch.position
        if too_large(record):
            self.at(Kind.TOO_LARGE, f"the record is too large: {plain_count(record.valueSize, 'byte')}")
            return
        if self.choice is not None and (rule := self.choice.reason(self.log_offset, name, value or b"")) is not None:
            self.add_refusal(rule)
            return
        if self._refuse_frame(record):
            return
        handler = HANDLERS.get(name)
        if value is not None and value[:3] not in self._frames:
            self._see_frame(value)
        # Records without a handler are not decoded; unknown and newer ones are, to note that.
        values = plain_values(value) if value is not None else None
        if handler is None and values is not None:
            return
        if handler is None or values is None:
            decoded = decode_metadata_record(value)
            if decoded.newer:
                self.note_newer(decoded.newer)
            if decoded.problem is not None:
                self._refuse_unreadable(decoded, value)
                return
            values = decoded.values
        if handler is not None and values is not None:
            if name in NESTED and value is not None and any(values[field] for field in NESTED[name]):
                self.mark(self.metadata.frames, (value[1], value[2], True))
            handler(self, values)
            if self.choice is not None:
                self.choice.applied(self.log_offset, name, values)

    def refuse_empty(self, batch: Batch) -> None:
        """Refuse a batch without records, which no node reads."""
        self.offset, self.source, self.record, self.position = batch.baseOffset, None, "RecordBatch", batch.position
        values = {"offset": batch.baseOffset, "epoch": batch.partitionLeaderEpoch}
        self.refuse(UNREADABLE["no records"], "a batch without records, which no node reads", **values)

    def take(
        self, columns: RecordColumns, row: int, batch: BatchHeader, offset: int, last_offset: int, last_time: int
    ) -> tuple[int, int]:
        """Do what `apply` does with the records of a batch from number `row` on, without objects for them, as
        PartitionRecords.apply says. Return the number of the first that is not applied, and the timestamp of the one
        before."""
        if self.on_change is not None or self.is_full:
            return row, 0
        # In a snapshot the configs follow the partitions and matter more: reserve memory for them.
        reserve = self.all_room // 3
        row, time, room = self.partition_records.apply(
            columns, row, batch, offset, last_offset, last_time, self.room - reserve
        )
        self.room = room + reserve
        return row, time

    def copied(self) -> MetadataReplay | None:
        """Return a copy that notes what it refuses in the same place; None if the state is too large for one."""
        metadata = self.metadata
        if sum(len(each.partitions) for each in metadata.topics.values()) > MAX_COPIED:
            return None
        shared = (
            *(metadata.refusals, metadata.problems, metadata.levels, metadata.frames, metadata.places),
            *(metadata.newer, self.noted),
        )
        made = deepcopy(
            self,
            {id(each): each for each in (*shared, self.on_change, self.source, self.choice, self.partition_records)},
        )
        made.on_change = made.choice = None
        made.partition_records = made.new_partition_records()
        return made

    def _see_frame(self, value: bytes) -> None:
        """Note the type and version of a record, if it is the first."""
        self._frames.add(value[:3])
        self.partition_records.see(value[:3])
        try:
            frame = read_frame(value)
        except DecodeError:
            return
        if len(self.metadata.frames) < MAX_FRAMES:
            self.mark(self.metadata.frames, (frame.apiKey, frame.version, False))

    def _refuse_frame(self, record: Record) -> bool:
        """Refuse a record of which a node does not even read the value (RecordsIterator.readRecord): it expects no key,
        and that the last byte, the number of headers, is 0."""
        last = record.data[record.end - 1]
        if record.timestampDelta:
            name = "timestamp"
        elif record.keySize >= 0:
            name = "key"
        elif record.valueSize < 0:
            name = "missing"
        elif last:
            name = "headers"
        else:
            return False
        values = {"delta": record.timestampDelta, "count": last - 256 if last > 127 else last}
        self.refuse(UNREADABLE[name], "no node reads the record: it has more than a value", **values)
        return True

    def _refuse_unreadable(self, decoded: MetadataRecord, value: bytes | None) -> None:
        """Refuse a record that does not decode; of one that is newer, that is noted."""
        problem, name, kind, refusal = decoded.problem, "content", Kind.REFUSED, None
        values = {"apiKey": decoded.apiKey, "version": getattr(problem, "number", None)}
        if not value:
            name = "empty"
        elif isinstance(problem, FrameVersionError):
            name = "other version" if problem.number else "version 0"
        elif isinstance(problem, LeftOverError):
            name, values["count"] = "rest", len(value) - problem.position
        elif isinstance(problem, OurLimitError):
            kind = Kind.TOO_LARGE
        # Whether a release knows the type of an unknown one is decided later.
        if kind == Kind.REFUSED and (decoded.apiKey is None or decoded.apiKey in by_api_key("metadata")):
            refusal = self.add_refusal(UNREADABLE[name], of_newer=bool(decoded.newer), **values)
        if not decoded.newer:
            self.at(kind, str(problem), refusal)
