"""All structures by name: the layouts that kdump's modules declare, and Kafka's messages.

Source: org.apache.kafka.storage.internals.checkpoint.CheckpointFileWithFailureHandler and OffsetCheckpointFile,
LeaderEpochCheckpointFile, PartitionMetadataFile; org.apache.kafka.metadata.properties.MetaPropertiesVersion;
org.apache.kafka.raft.FileQuorumStateStore; CleanShutdownFileHandler.

Source: KIP-98, KIP-595, KIP-630, KIP-853 (control records); KIP-429, KIP-848, KIP-932, KIP-1071 (groups); KIP-631
(KRaft's metadata); KIP-405 (tiered storage); and Kafka's classes that write and replay them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from kdump.format.layout import Field, Layout
from kdump.format.mirror_record import MIRROR_MESSAGES
from kdump.format.schema import FOLDERS, MessageSchema, load_folder

LAYOUTS = {
    "Batches and records": ("batch_header", "record", "legacy_message"),
    "Control records": ("control_record",),
    "Indexes and snapshots": ("index", "producer_snapshot"),
    "Prefixes of the messages in Kafka's internal topics": (
        "coordinator_record",
        "consumer_protocol",
        "metadata_record",
    ),
    "Ends of keys in the topics of Kafka Streams": ("streams_record",),
}
"""Modules of kdump.format whose layouts are listed, by heading."""
TEXT_FILES = {
    "offset-checkpoint": "OffsetCheckpointFile",
    "leader-epoch-checkpoint": "LeaderEpochCheckpointFile",
    "partition-metadata": "PartitionMetadataFile",
    "meta-properties": "MetaPropertiesVersion",
    "quorum-state": "FileQuorumStateStore",
    "clean-shutdown": "CleanShutdownFileHandler",
}
"""Kinds of text files (kdump.format.structs), and Kafka's class."""
MESSAGES = {
    "control": "Values of control records, and the consumer protocol",
    "group-coordinator": "Records of __consumer_offsets",
    "transaction-coordinator": "Records of __transaction_state",
    "share-coordinator": "Records of __share_group_state",
    "metadata": "Records of __cluster_metadata",
    "storage": "Records of __remote_log_metadata, and the producer snapshot",
    "raft": "The file quorum-state",
}
"""Headings of schema folders."""


class NamedStruct(NamedTuple):
    """A structure. A message has a `schema`; others have `fields`, with the positions of the leading ones. `size` is in
    bytes, None if it depends on the data. `source` is the section of the specification or Kafka's class."""

    name: str
    group: str
    source: str
    about: str = ""
    fields: tuple[Field, ...] = ()
    positions: dict[str, int] = {}
    size: int | None = None
    schema: MessageSchema | None = None
    text_fields: tuple[TextField, ...] = ()


def structs() -> Iterator[NamedStruct]:
    """Yield all structures, group by group, in the order in which they are declared."""
    for group, modules in LAYOUTS.items():
        for name in modules:
            yield from _declared(import_module(f"kdump.format.{name}"), group)
    for kind, source in TEXT_FILES.items():
        yield NamedStruct(kind, "Text files", source, TEXT_ABOUT[kind], text_fields=TEXT_FIELDS[kind])
    for schema in MIRROR_MESSAGES.values():
        group, source = "Records of MirrorMaker's topics", "org.apache.kafka.connect.mirror"
        yield NamedStruct(schema.name, group, source, describe_message(schema), schema=schema)
    for folder in FOLDERS:
        group = MESSAGES[folder]
        for schema in load_folder(folder).values():
            yield NamedStruct(
                schema.name, group, f"Kafka's schema {schema.name}.json", describe_message(schema), schema=schema
            )


def _declared(module: Any, group: str) -> Iterator[NamedStruct]:
    layouts = [value for value in vars(module).values() if isinstance(value, Layout)]
    for layout in layouts:
        if layout.cls.__module__ == module.__name__:
            fixed = all(field.wire.size is not None for field in layout.fields)
            about = " ".join((layout.cls.__doc__ or "").split())
            size = layout.size if fixed else None
            yield NamedStruct(layout.name, group, layout.source, about, layout.fields, layout.positions, size)
    if hasattr(module, "FRAME"):
        source = "AbstractApiMessageSerde"
        yield NamedStruct(
            module.FRAME, group, source, "The prefix of every message; the record's key is null.", module.FIELDS
        )


def describe_message(schema: MessageSchema) -> str:
    """Describe a message: its purpose, and from its type and number where it is stored."""
    return "; ".join(filter(None, (schema.about, _place(schema))))


def _place(schema: MessageSchema) -> str:
    from kdump.format.control_record import CONTROL_TYPES

    number = schema.apiKey
    if schema.type == "coordinator-key":
        return f"key of type {number}, an INT16 before it"
    if schema.type == "coordinator-value":
        return f"value for a key of type {number}; its version is an INT16 before it"
    if schema.type == "metadata":
        return f"record of apiKey {number}"
    types = [control.name for control in CONTROL_TYPES.values() if control.message == schema.name]
    return f"value of {' and '.join(types)} records" if types else ""


class UnknownStruct(ValueError):
    """Raised if a name matches no structure, or several; the message suggests candidates."""


def find(name: str) -> NamedStruct:
    """Find the structure that `name` denotes, ignoring case and punctuation: its full name, its name without a version
    suffix (RecordV2), or a prefix or part of only one name. Raises UnknownStruct."""
    declared = list(structs())
    plain_name = _plain(name)
    for matches in (
        lambda plain: plain == plain_name,
        lambda plain: re.sub(r"v\d$", "", plain) == plain_name,
        lambda plain: plain.startswith(plain_name),
        lambda plain: plain_name in plain,
    ):
        matching = [struct for struct in declared if matches(_plain(struct.name))] if plain_name else []
        matching = [struct for struct in matching if not struct.text_fields or _plain(struct.name) == plain_name]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise UnknownStruct(f"{name!r} matches several structures: {', '.join(struct.name for struct in matching)}")
    plain_names = {_plain(struct.name): struct.name for struct in declared}
    close = [plain_names[plain] for plain in difflib.get_close_matches(plain_name, plain_names, 3, 0.5)]
    hint = f": did you mean {' or '.join(close)}?" if close else "; run kdump schema to list them all"
    raise UnknownStruct(f"there is no structure {name!r}{hint}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class TextField(NamedTuple):
    """A word of a line, or a property. `type` is the type that its text must have."""

    name: str
    type: str
    meaning: str


_VERSION = TextField("version", "number", "version of the file format; 0")
_COUNT = TextField("count", "number", "number of entries that follow, one per line")

TEXT_FIELDS: dict[str, tuple[TextField, ...]] = {
    "offset-checkpoint": (
        _VERSION,
        _COUNT,
        TextField("topic", "text", "in each entry: topic name, followed by a space"),
        TextField("partition", "number", "partition number, followed by a space"),
        TextField("offset", "number", "the checkpointed offset of that partition"),
    ),
    "leader-epoch-checkpoint": (
        _VERSION,
        _COUNT,
        TextField("epoch", "number", "in each entry: leader epoch, followed by a space"),
        TextField("startOffset", "number", "first offset of this epoch"),
    ),
    "partition-metadata": (
        TextField("version", "number", "version of the file format; 0"),
        TextField(
            "topic_id", "UUID", "topic ID, in base64; a topic created again under the same name has a different one"
        ),
    ),
    "meta-properties": (
        TextField("version", "number", "1: KRaft; 0: ZooKeeper, with broker.id instead of node.id"),
        TextField("cluster.id", "text", "ID of the cluster; the controllers of another cluster reject the node"),
        TextField("node.id", "number", "ID of the node in the cluster"),
        TextField("broker.id", "number", "ID of the broker, before KRaft"),
        TextField("directory.id", "UUID", "ID of this log directory of the node (KIP-858)"),
    ),
    "quorum-state": (
        TextField("data_version", "number", "0: static voters; 1: the voters are in the log (KIP-853)"),
        TextField("clusterId", "text", "always empty"),
        TextField("leaderId", "number", "ID of the leader; -1: unknown"),
        TextField("leaderEpoch", "number", "latest epoch that the node has seen; it does not vote in an older one"),
        TextField("votedId", "number", "ID of the node that it voted for in that epoch; -1: none"),
        TextField("votedDirectoryId", "UUID", "directory ID of the node that it voted for"),
        TextField("appliedOffset", "number", "always 0: KRaft never sets it"),
        TextField("currentVoters", "list", "the voters, each with a voterId"),
    ),
    "clean-shutdown": (
        TextField("version", "number", "version of the file format; 0"),
        TextField("brokerEpoch", "number", "broker epoch at the clean shutdown (KIP-966)"),
    ),
}
"""Fields by the name of the kind of file (kdump.log.file_kinds)."""
_LINES = "line 1: version; line 2: number of entries; then one entry a line"
TEXT_ABOUT = {
    "offset-checkpoint": f"replication-, recovery-point-, log-start- or cleaner-offset-checkpoint; {_LINES}",
    "leader-epoch-checkpoint": f"leader epochs of a partition, and where they begin; {_LINES}",
    "partition-metadata": "partition.metadata: one property a line",
    "meta-properties": "meta.properties: one property a line",
    "quorum-state": "JSON: a node's state of the quorum, and its vote",
    "clean-shutdown": ".kafka_cleanshutdown: JSON (empty before 3.7)",
}
"""What each kind of file is, and its lines."""
