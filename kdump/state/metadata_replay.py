"""Replays KRaft metadata records into an image of the cluster, with bounded memory.

The record handlers are in metadata_topic_handlers (topics, partitions), metadata_node_handlers (brokers, controllers,
features) and metadata_config_and_acl_handlers (configs, quotas, ACLs, credentials, tokens). Source: the delta classes
in org.apache.kafka.image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.format.metadata_record import decode_metadata_record, is_usual, plain_values
from kdump.log.record import Record
from kdump.state import metadata_config_and_acl_handlers, metadata_node_handlers, metadata_topic_handlers
from kdump.state.as_of import ChangeListener
from kdump.state.internal_records import ROOM, too_large
from kdump.state.metadata_image import MetadataImage
from kdump.state.metadata_replay_state import ReplayState

HANDLERS: dict[str, Callable[[ReplayState, dict[str, Any]], None]] = {
    **metadata_topic_handlers.HANDLERS,
    **metadata_node_handlers.HANDLERS,
    **metadata_config_and_acl_handlers.HANDLERS,
}
"""Handlers by record name."""
NO_EFFECT = {
    "NoOpRecord": "the leader writes it to advance the committed offset",
    "BeginTransactionRecord": "its transaction is applied only if it was committed: see metadata.uncounted",
    "EndTransactionRecord": "see BeginTransactionRecord",
    "AbortTransactionRecord": "see BeginTransactionRecord",
}
"""Records without an effect of their own, and the reason."""


class MetadataReplay(ReplayState):
    """Applies records in order. `room`: memory budget in bytes; `only`: names of the records to apply (None: all);
    `on_change` is called with each change."""

    def __init__(
        self,
        metadata: MetadataImage,
        room: int = ROOM,
        only: frozenset[str] | None = None,
        on_change: ChangeListener | None = None,
    ) -> None:
        super().__init__(metadata, room, on_change)
        self.handlers = HANDLERS if only is None else {name: HANDLERS[name] for name in only}

    def apply(self, record: Record, value: bytes | None, name: str) -> None:
        """Apply a record that is not a control record; one that does not decode changes nothing. `name` is the
        metadata_record_name of its value."""
        self.offset, self.timestamp = record.offset, record.timestamp
        if too_large(record):
            self.at(f"the record is too large: {record.valueSize} bytes")
            return
        handler = self.handlers.get(name)
        # Records without a handler are not decoded; unknown and newer ones are, to note that.
        if handler is None and value is not None and is_usual(value):
            return
        values = plain_values(value) if handler is not None and value is not None else None
        if handler is not None and values is not None:
            self.record = name
            handler(self, values)
            return
        decoded = decode_metadata_record(value)
        if decoded.newer:
            self.note_newer(decoded.newer)
        elif decoded.problem is not None and (handler is not None or name.startswith("UNKNOWN")):
            self.at(str(decoded.problem))
        if decoded.problem is not None:
            return
        if handler is not None:
            assert decoded.values is not None
            self.record = name
            handler(self, decoded.values)
