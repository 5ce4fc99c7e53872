"""The tables of the data source, and their columns: the keys of the JSON objects, with the types that Spark has for
them. docs/spark.md is made from this.

A column that is also a field of a layout has that field's width; an epoch in milliseconds stands beside a timestamp,
for a damaged one is beyond what a timestamp can hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kdump.format.batch import BATCH_HEADER
from kdump.format.index import INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.layout import Layout
from kdump.format.record import RECORD
from kdump.format.snapshot import PRODUCER_ENTRY
from kdump.render.key import Key
from kdump.render.objects import BATCH_KEYS, RECORD_KEYS, TYPES


class Column(NamedTuple):
    """A column: its type as Spark's DDL has it. `of` is the column in epoch ms that it is the timestamp of."""

    name: str
    type: str
    unit: str
    meaning: str
    of: str = ""


INT, BIGINT, STRING, BINARY, BOOLEAN, TIMESTAMP = "int", "bigint", "string", "binary", "boolean", "timestamp"
WIDTHS = {"INT8": INT, "INT16": INT, "INT32": INT, "VARINT": INT, "UINT32": BIGINT, "INT64": BIGINT, "VARLONG": BIGINT}
NARROW = ("partition", "sequence", "lastSequence", "epoch")
"""Numbers of 32 bits that no layout of a file declares under that name."""
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
"""What a row of records says of its batch."""
DECODED = ("Decoded", "Problem", "Note", "Encoding")
"""Keys of a record that it has no column for: bytes need no encoding here, and decoders run after the reading."""


def columns_of(keys: Iterable[Key], *layouts: Layout[Any], types: dict[str, str] | None = None) -> list[Column]:
    """The columns for the keys of a JSON object; `layouts` tell widths, `types` what neither they nor the key do."""
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
    """timestamp -> time, maxTimestamp -> maxTime, deleteHorizonMs -> deleteHorizonTime."""
    for ending, time in (("timestamp", "time"), ("Timestamp", "Time"), ("Ms", "Time")):
        if name.endswith(ending):
            return name.removesuffix(ending) + time
    return name + "Time"


class Table(NamedTuple):
    """A table: what a row is, and its columns. `splits`: a file of it is read in several parts."""

    name: str
    row: str
    columns: tuple[Column, ...]
    splits: bool = False

    def column(self, name: str) -> Column:
        """Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def ddl(self, names: Iterable[str] | None = None) -> str:
        """The schema for Spark, of all columns or of those named. Raises KeyError."""
        chosen = self.columns if names is None else [self.column(name) for name in names]
        return ", ".join(f"`{each.name}` {each.type} COMMENT '{_quoted(each.meaning)}'" for each in chosen)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _table(name: str, row: str, *groups: Iterable[Column], splits: bool = False) -> Table:
    """The columns of all groups, each once, as the first group has it."""
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

TABLES = {
    table.name: table for table in (SEGMENTS, BATCHES, RECORDS, FINDINGS, INDEX_ENTRIES, PRODUCER_STATES, CHECKPOINTS)
}

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
        Column("firstDivergentOffset", BIGINT, "offset", "base offset of the first batch that they do not share"),
        Column("brokers", "array<string>", "", "whose replicas they are; null where a broker is not known"),
        Column("sources", "array<string>", "", "the log directory of each, in the same order"),
        Column("leaderEpochs", "array<int>", "", "leader epoch of each one's batch there"),
        Column("lastOffsets", "array<bigint>", "offset", "the last offset of each"),
        Column("explanation", STRING, "", "what the leader epochs say of it"),
    ],
)
RESULTS = {**TABLES, REPLICAS.name: REPLICAS}
"""What `kdump scan` writes, and `kdump query` reads."""
