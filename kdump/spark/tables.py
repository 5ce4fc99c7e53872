"""Tables of the data source, and their columns: the keys of the JSON objects, with their Spark types. docs/spark.md is
generated from this.

A column that is also a field of a layout has that field's width. Times in epoch ms are followed by a timestamp column
and not replaced by it, because a damaged value may not fit into a timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kdump.answer import Key
from kdump.format.batch import BATCH_HEADER
from kdump.format.index import INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.layout import Layout
from kdump.format.record import RECORD
from kdump.format.snapshot import PRODUCER_ENTRY
from kdump.render.all_answers import TYPES
from kdump.render.objects import BATCH_KEYS, RECORD_KEYS


class Column(NamedTuple):
    """A column, with its type in Spark's DDL. `of`: the column in epoch ms from which a timestamp column is
    computed."""

    name: str
    type: str
    unit: str
    meaning: str
    of: str = ""


INT, BIGINT, STRING, BINARY, BOOLEAN, TIMESTAMP = "int", "bigint", "string", "binary", "boolean", "timestamp"
WIDTHS = {"INT8": INT, "INT16": INT, "INT32": INT, "VARINT": INT, "UINT32": BIGINT, "INT64": BIGINT, "VARLONG": BIGINT}
NARROW = ("partition", "sequence", "lastSequence", "epoch")
"""Names of 32-bit numbers that no file layout declares under that name."""
PARTITIONS = "array<struct<topic:string,partitions:array<int>>>"
NESTED = {
    "headers": "array<struct<key:binary,value:binary>>",
    "control": "struct<type:string,version:int,coordinatorEpoch:int,value:string>",
    "beside": "array<string>",
    "compressions": "array<string>",
    "errors": "array<string>",
    "formats": "array<int>",
}

IDENTITY = (
    Column("cluster", STRING, "", "cluster.id of the meta.properties around it; null: there is none"),
    Column("broker", STRING, "", "node.id (broker.id before KRaft) there; else what the options say; else null"),
    Column("logDirectory", STRING, "", "directory.id there (KIP-858)"),
    Column("source", STRING, "", "the log directory, or the path that was given: two copies of a disk differ in it"),
    Column(
        "copyOf",
        STRING,
        "",
        "source of an earlier copy of the same disk among the paths; null: count it. Rows with it are another copy's",
    ),
)
PLACE = (
    Column("topic", STRING, "", "from the name of the file's directory"),
    Column("partition", INT, "", "from the name of the file's directory"),
)
STATE = Column("state", STRING, "", "of the partition's directory: live, delete, future or stray")
COMMON = (*IDENTITY, *PLACE, STATE)

FROM_BATCH = (
    "partitionLeaderEpoch",
    "magic",
    "compression",
    "producerId",
    "producerEpoch",
    "isTransactional",
    "isControlBatch",
)
"""Columns of a record that come from its batch."""
DECODED = ("Decoded", "Problem", "Note", "Encoding")
"""Endings of record keys without a column: bytes need no encoding here, and decoders run after reading."""


def columns_of(keys: Iterable[Key], *layouts: Layout[Any], types: dict[str, str] | None = None) -> list[Column]:
    """Return the columns for the keys of a JSON object. `layouts` determine widths; `types` has precedence over both
    them and the keys."""
    widths = {field.name: field.wire.name for layout in layouts for field in layout.fields}
    found: list[Column] = []
    for key in keys:
        kind = (types or {}).get(key.name) or NESTED.get(key.name) or _type(key, widths)
        found.append(Column(key.name, kind, key.unit, key.meaning))
        if key.unit == "epoch ms" and kind == BIGINT:
            about = f"{key.name} as a timestamp; null outside the years 1 to 9999"
            found.append(Column(_time_name(key.name), TIMESTAMP, "", about, of=key.name))
    return found


def _type(key: Key, widths: dict[str, str]) -> str:
    kind = key.type.removesuffix(" or null")
    if kind == "number":
        return WIDTHS.get(widths.get(key.name, ""), INT if key.name in NARROW else BIGINT)
    return BOOLEAN if kind == "boolean" else STRING


def _time_name(name: str) -> str:
    """Return the name of the timestamp column: timestamp -> time, maxTimestamp -> maxTime, deleteHorizonMs ->
    deleteHorizonTime."""
    for ending, time in (("timestamp", "time"), ("Timestamp", "Time"), ("Ms", "Time")):
        if name.endswith(ending):
            return name.removesuffix(ending) + time
    return name + "Time"


class Table(NamedTuple):
    """A table: what a row is, and its columns. `splits`: whether a file can be read in several parts."""

    name: str
    row: str
    columns: tuple[Column, ...]
    splits: bool = False

    def column(self, name: str) -> Column:
        """Return the column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def ddl(self, names: Iterable[str] | None = None) -> str:
        """Return the Spark schema of all columns, or of `names`. Raises KeyError."""
        chosen = self.columns if names is None else [self.column(name) for name in names]
        return ", ".join(f"`{each.name}` {each.type} COMMENT '{_quoted(each.meaning)}'" for each in chosen)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _table(name: str, row: str, *groups: Iterable[Column], splits: bool = False) -> Table:
    """Return a table with the columns of all groups; of columns with the same name, the first is used."""
    columns: dict[str, Column] = {}
    for column in (column for group in groups for column in group):
        columns.setdefault(column.name, column)
    return Table(name, row, tuple(columns.values()), splits)


SEGMENTS = _table("segments", "a live segment, by its headers", COMMON, columns_of(TYPES["logSegment"]))
BATCHES = _table(
    "batches",
    "a record batch, or a message of magic 0 and 1",
    COMMON,
    columns_of(BATCH_KEYS, BATCH_HEADER),
    splits=True,
)
RECORDS = _table(
    "records",
    "a record",
    COMMON,
    columns_of(
        (key for key in RECORD_KEYS if not key.name.endswith(DECODED) and key.name != "names"),
        RECORD,
        types={"key": BINARY, "value": BINARY, "crc": BIGINT},
    ),
    columns_of((key for key in BATCH_KEYS if key.name in FROM_BATCH), BATCH_HEADER),
    splits=True,
)
FINDINGS = _table(
    "findings",
    "something that is wrong, or legal and unusual, as kdump verify tells it; also what could not be read",
    IDENTITY,
    PLACE,
    columns_of(TYPES["finding"], types=dict.fromkeys(("expected", "actual"), STRING)),
)
INDEX_ENTRIES = _table(
    "index_entries",
    "an entry of an .index, a .timeindex or a .txnindex",
    COMMON,
    [Column("index", STRING, "", "which file: index, timeindex or txnindex")],
    columns_of(TYPES["indexEntry"], INDEX_ENTRY),
    columns_of(TYPES["timeIndexEntry"]),
    columns_of(TYPES["txnIndexEntry"], TXN_INDEX_ENTRY),
)
PRODUCER_STATES = _table(
    "producer_states",
    "a producer in a .snapshot",
    COMMON,
    [Column("snapshotOffset", BIGINT, "offset", "in the file's name: the state below it")],
    columns_of(TYPES["producerState"], PRODUCER_ENTRY),
)
CHECKPOINTS = _table(
    "checkpoints",
    "a line of a checkpoint file",
    IDENTITY,
    [Column("checkpoint", STRING, "", "name of the file: replication-offset-checkpoint, leader-epoch-checkpoint …")],
    PLACE,
    columns_of(TYPES["checkpointEntry"]),
)

_OF_RECORD = [
    Column("file", STRING, "", "the segment that the record is in"),
    Column("recordOffset", BIGINT, "offset", "of the record"),
    *columns_of(key for key in RECORD_KEYS if key.name == "timestamp"),
]
_PROBLEM = Column("problem", STRING, "", "why the record does not decode, or no further; null: it does")
_TOMBSTONE = Column("tombstone", BOOLEAN, "", "whether the record takes away what was said before")
_OF_COMMIT = ("groupId", "topic", "partition", "offset", "leaderEpoch", "metadata", "commitTimestamp")
GROUP_OFFSETS = _table(
    "group_offsets",
    "a record of __consumer_offsets in which a group commits an offset, or forgets one; aborted ones, too",
    IDENTITY,
    _OF_RECORD,
    columns_of(key for key in TYPES["groupOffset"] if key.name in (*_OF_COMMIT, "expireTimestamp", "topicId")),
    [
        Column("producerId", BIGINT, "", "of the transaction that the commit is part of; -1: of none"),
        _TOMBSTONE,
        _PROBLEM,
    ],
    splits=True,
)
TRANSACTIONS = _table(
    "transactions",
    "a record of __transaction_state: what a coordinator has written of a transactional id",
    IDENTITY,
    _OF_RECORD,
    [
        Column("transactionalId", STRING, "", "the id"),
        Column("producerId", BIGINT, "", "its producer id; -1: none"),
        Column("producerEpoch", INT, "", "its epoch; -1: none"),
        Column("state", STRING, "", "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead"),
        Column("partitions", PARTITIONS, "", "those that it has written to and that have no marker yet"),
        *columns_of(
            Key(name, "number", "epoch ms", f"{about}; -1: not said")
            for name, about in (
                ("transactionStartTimestampMs", "when the transaction began"),
                ("transactionLastUpdateTimestampMs", "when it last changed"),
            )
        ),
        Column("transactionTimeoutMs", BIGINT, "ms", "after which the coordinator aborts it"),
        Column("clientTransactionVersion", INT, "", "2: each transaction has an epoch of its own (KIP-890)"),
        _TOMBSTONE,
        _PROBLEM,
    ],
    splits=True,
)
METADATA_RECORDS = _table(
    "metadata_records",
    "a record of __cluster_metadata",
    IDENTITY,
    _OF_RECORD,
    [
        Column("name", STRING, "", "Kafka's name of its message, TopicRecord …; or of a control record"),
        Column("apiKey", INT, "", "number of the message"),
        Column("version", INT, "", "its version"),
        Column("data", STRING, "", "its fields, by Kafka's names: JSON, for get_json_object or from_json"),
        _PROBLEM,
    ],
    splits=True,
)

_OF_FILES = (SEGMENTS, BATCHES, RECORDS, FINDINGS, INDEX_ENTRIES, PRODUCER_STATES, CHECKPOINTS)
TABLES = {table.name: table for table in (*_OF_FILES, GROUP_OFFSETS, TRANSACTIONS, METADATA_RECORDS)}

REPLICAS = _table(
    "replicas",
    "where the replicas of a partition first differ, batch by batch: made by `kdump scan`",
    [IDENTITY[0]],
    PLACE,
    [
        Column(
            "kind",
            STRING,
            "",
            "diverged; damaged (a batch there fails its checksum); missing (one lacks offsets between others that it"
            " has); compacted (the cleaner has written the batches anew, which is no damage)",
        ),
        Column(
            "severity",
            STRING,
            "",
            "error: they say something else under one leader epoch, or a batch is damaged, and nothing mends that;"
            " warning: a follower that starts truncates what is of the earlier epoch, or one lacks offsets; info:"
            " compacted",
        ),
        Column("firstDivergentOffset", BIGINT, "offset", "base offset of the first batch that they do not share"),
        Column("brokers", "array<string>", "", "whose replicas they are; null where a broker is not known"),
        Column("sources", "array<string>", "", "the log directory of each, in the same order"),
        Column("leaderEpochs", "array<int>", "", "leader epoch of each one's batch there"),
        Column("lastOffsets", "array<bigint>", "offset", "the last offset of each"),
        Column("explanation", STRING, "", "what the leader epochs say of it"),
    ],
)
RESULTS = {table.name: table for table in (*_OF_FILES, REPLICAS)}
"""Tables that `kdump scan` writes and `kdump query` reads."""
