"""Tables of the data source, and their columns: the keys of the JSON objects, with their Spark types. docs/spark.md is
generated from this.

A column that is also a field of a layout has that field's width. Times in epoch ms are followed by a timestamp column
and not replaced by it, because a damaged value may not fit into a timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kdump.answer import Key, answer_keys, keys_by_type
from kdump.check.finding import Finding
from kdump.cluster.lag import CommittedPosition
from kdump.cluster.segment_answer import ListedSegment
from kdump.format.batch_formats import FORMATS, NEWEST
from kdump.format.index import INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.layout import Layout
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.format.record import RECORD
from kdump.log import inspect_answer
from kdump.state.unknown_offsets import CheckpointedOffsets

OWN = "_kdump"
"""Directory of a scan's result with what scans need to know about its tables."""


class SparkColumn(NamedTuple):
    """A column, with its type in Spark's DDL. `of`: the column in epoch ms from which a timestamp column is
    computed."""

    name: str
    type: str
    meaning: str = ""
    unit: str = ""
    of: str = ""


TYPES = keys_by_type(
    ListedSegment,
    inspect_answer.InspectedBatch,
    inspect_answer.InspectedRecord,
    Finding,
    inspect_answer.InspectedIndexEntry,
    inspect_answer.InspectedTimeIndexEntry,
    inspect_answer.InspectedTxnIndexEntry,
    inspect_answer.InspectedProducer,
    inspect_answer.InspectedCheckpointEntry,
    CommittedPosition,
)
"""The JSON objects whose keys are columns, by type."""
INT, BIGINT, STRING, BINARY, BOOLEAN, TIMESTAMP = "int", "bigint", "string", "binary", "boolean", "timestamp"
WIDTHS = {"INT8": INT, "INT16": INT, "INT32": INT, "VARINT": INT, "UINT32": BIGINT, "INT64": BIGINT, "VARLONG": BIGINT}
NARROW = ("partition", "sequence", "lastSequence", "epoch")
"""Names of 32-bit numbers that no file layout declares under that name."""
IN_TRANSACTION = "array<struct<topic:string,partitions:array<int>>>"
NESTED = {
    "headers": "array<struct<key:binary,value:binary>>",
    "control": "struct<type:string,version:int,coordinatorEpoch:int,value:string>",
    "beside": "array<string>",
    "compressions": "array<string>",
    "errors": "array<string>",
    "formats": "array<int>",
}
AS_BYTES = {
    "key": "its bytes; null for a null key",
    "value": "its bytes; null for a null value (a tombstone)",
    "headers": "keys and values as bytes, in order",
}
"""Meanings of columns that JSON shows as text, or in base64."""

IDENTITY = (
    SparkColumn("cluster", STRING, "cluster.id in the meta.properties of its log directory; null if there is none"),
    SparkColumn(
        "broker", STRING, "node.id in meta.properties (broker.id before KRaft); else as set by the options, or null"
    ),
    SparkColumn("logDirectory", STRING, "directory.id in meta.properties (KIP-858)"),
    SparkColumn("source", STRING, "path of the log directory, or the given path; different for each copy of a disk"),
    SparkColumn(
        "copyOf",
        STRING,
        "set for rows of a second copy of a disk: source of the first one; count only rows where it is null",
    ),
    SparkColumn(
        "identifiedBy",
        STRING,
        "null if cluster.id, node.id and directory.id identify the disk; otherwise what does: `node.id and partitions` "
        "(before Kafka 3.7), `host and path` (of the bundle), `option and path`, or `path`",
    ),
)
PLACE = (
    SparkColumn(
        "topic",
        STRING,
        "from the name of the file's directory; of a segment in remote storage whose path has only the topic ID, the"
        " name in a cluster's metadata on one of the disks, or else the ID",
    ),
    SparkColumn("partition", INT, "from the name of the file's directory"),
)
FROM_ENTRY = "from the entry; for leader-epoch-checkpoint from the name of its directory"
STATE = SparkColumn("state", STRING, "state of the partition directory: live, delete, future or stray")
HEADER = FORMATS[NEWEST].header
COMMON = (*IDENTITY, *PLACE, STATE)

FROM_BATCH = (
    *("partitionLeaderEpoch", "magic", "compression", "producerId", "producerEpoch", "isTransactional"),
    "isControlBatch",
)
"""Columns of a record that come from its batch."""
DECODED = ("Decoded", "Problem", "Note")
"""Endings of record keys that only have a column if it is named: decoding takes many times as long as reading."""
WITHOUT_COLUMN = (*DECODED, "Encoding", "names", "tier")
"""Endings of record keys without another column: bytes need no encoding here, and the path states the tier."""


def own_columns(kind: str, *names: str) -> Iterator[SparkColumn]:
    """Return columns of a table that only scans read."""
    return (SparkColumn(name, kind) for name in names)


def columns_of(keys: Iterable[Key], *layouts: Layout[Any], types: dict[str, str] | None = None) -> list[SparkColumn]:
    """Return the columns for the keys of a JSON object. `layouts` determine widths; `types` has precedence over both
    them and the keys."""
    widths = {field.name: field.wire.name for layout in layouts for field in layout.fields}
    columns: list[SparkColumn] = []
    for key in keys:
        kind = (types or {}).get(key.name) or NESTED.get(key.name) or _type(key, widths)
        meaning = AS_BYTES.get(key.name, key.meaning) if "binary" in kind else key.meaning
        column = SparkColumn(key.name, kind, meaning, key.unit)
        columns += with_time(column) if key.unit == "epoch ms" and kind == BIGINT else [column]
    return columns


def with_time(column: SparkColumn) -> list[SparkColumn]:
    """Return a column in epoch ms, and the same as a timestamp."""
    about = f"{column.name} as a timestamp; null outside the years 1 to 9999"
    return [column, SparkColumn(_time_name(column.name), TIMESTAMP, about, of=column.name)]


def _times(name: str, meaning: str) -> list[SparkColumn]:
    return with_time(SparkColumn(name, BIGINT, meaning, "epoch ms"))


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


class SparkTable(NamedTuple):
    """A table: what a row is, and its columns. `splits`: whether a file can be read in several parts. `derived`:
    whether a scan computes it from the other tables. `on_request`: columns that are only read if they are named."""

    name: str
    row: str
    columns: tuple[SparkColumn, ...]
    splits: bool = False
    derived: bool = False
    on_request: tuple[SparkColumn, ...] = ()

    @property
    def every_column(self) -> tuple[SparkColumn, ...]:
        """The columns, including those on request."""
        return (*self.columns, *self.on_request)

    def column(self, name: str) -> SparkColumn:
        """Return the column of that name. Raises KeyError."""
        for column in self.every_column:
            if column.name == name:
                return column
        raise KeyError(name)

    def ddl(self, names: Iterable[str] | None = None, remark: str = "") -> str:
        """Return the Spark schema of the columns, or of those with `names`; `remark` is added to the comment on the
        first one. Raises KeyError."""
        chosen = self.columns if names is None else [self.column(name) for name in names]
        comments = [column.meaning for column in chosen]
        comments[0] += remark
        return ", ".join(
            f"`{column.name}` {column.type} COMMENT '{_quoted(about)}'" for column, about in zip(chosen, comments)
        )


def _quoted(comment: str) -> str:
    return comment.replace("\\", "\\\\").replace("'", "\\'")


def _table(
    name: str, row: str, *groups: Iterable[SparkColumn], splits: bool = False, derived: bool = False
) -> SparkTable:
    """Return a table with the columns of all groups; of columns with the same name, the first is used."""
    columns: dict[str, SparkColumn] = {}
    for column in (column for group in groups for column in group):
        columns.setdefault(column.name, column)
    return SparkTable(name, row, tuple(columns.values()), splits, derived)


SEGMENTS = _table(
    "segments",
    "a segment that is not marked as deleted, summarized from its batch headers",
    COMMON,
    columns_of(TYPES["logSegment"]),
)
BATCHES = _table(
    "batches",
    "a record batch, or a message of magic 0 and 1",
    COMMON,
    columns_of((key for key in TYPES["batch"] if key.name != "tier"), HEADER),
    splits=True,
)
RECORDS = _table(
    "records",
    "a record",
    COMMON,
    columns_of(
        (key for key in TYPES["record"] if not key.name.endswith(WITHOUT_COLUMN)),
        RECORD,
        types={"key": BINARY, "value": BINARY, "crc": BIGINT},
    ),
    columns_of((key for key in TYPES["batch"] if key.name in FROM_BATCH), HEADER),
    splits=True,
)._replace(
    on_request=tuple(
        SparkColumn(key.name, STRING, key.meaning + ", as JSON" * key.name.endswith("Decoded"))
        for key in TYPES["record"]
        if key.name.endswith(DECODED)
    )
)
REJECTED = _table(
    "rejected",
    "a record whose value does not fit the newest schema of its topic",
    COMMON,
    (RECORDS.column(name) for name in ("file", "position", "offset", "timestamp", "time", "key", "value")),
    [SparkColumn("reason", STRING, "why it does not fit")],
)
FINDINGS = _table(
    "findings",
    "a finding of kdump verify, informational ones included, or something that could not be read",
    IDENTITY,
    PLACE,
    columns_of(TYPES["finding"], types=dict.fromkeys(("expected", "actual"), STRING)),
)
INDEX_ENTRIES = _table(
    "index_entries",
    "an entry of an .index, a .timeindex or a .txnindex",
    COMMON,
    [SparkColumn("index", STRING, "type of the index file: index, timeindex or txnindex")],
    columns_of(TYPES["indexEntry"], INDEX_ENTRY),
    columns_of(TYPES["timeIndexEntry"]),
    columns_of(TYPES["txnIndexEntry"], TXN_INDEX_ENTRY),
)
PRODUCER_STATES = _table(
    "producer_states",
    "a producer in a .snapshot",
    COMMON,
    [SparkColumn("snapshotOffset", BIGINT, "from the file name: the snapshot contains the state below it", "offset")],
    columns_of(TYPES["producerState"], PRODUCER_ENTRY),
)
CHECKPOINTS = _table(
    "checkpoints",
    "an entry of a checkpoint file",
    IDENTITY,
    [
        SparkColumn(
            "checkpoint", STRING, "name of the file: replication-offset-checkpoint, leader-epoch-checkpoint, …"
        ),
        SparkColumn("topic", STRING, FROM_ENTRY),
        SparkColumn("partition", INT, FROM_ENTRY),
    ],
    columns_of(TYPES["checkpointEntry"]),
)

_OF_RECORD = [
    SparkColumn("file", STRING, "path of the segment that contains the record"),
    SparkColumn("recordOffset", BIGINT, "offset of the record", "offset"),
    *columns_of(key for key in TYPES["record"] if key.name == "timestamp"),
]
_PROBLEM = SparkColumn("problem", STRING, "why the record was not decoded, or only in part; null if it was decoded")
_TOMBSTONE = SparkColumn("tombstone", BOOLEAN, "whether the record deletes what earlier records with its key stored")
_OF_COMMIT = ("groupId", "topic", "partition", "offset", "leaderEpoch", "metadata", "commitTimestamp")
GROUP_OFFSETS = _table(
    "group_offsets",
    "a record of __consumer_offsets that commits or deletes an offset of a group, even if its transaction was aborted",
    IDENTITY,
    _OF_RECORD,
    columns_of(key for key in TYPES["groupOffset"] if key.name in (*_OF_COMMIT, "expireTimestamp", "topicId")),
    [
        SparkColumn("producerId", BIGINT, "producer of the transaction that contains the commit; -1: none"),
        _TOMBSTONE,
        _PROBLEM,
    ],
    splits=True,
)
TRANSACTIONS = _table(
    "transactions",
    "a record of __transaction_state, with the state of a transactional ID as its coordinator wrote it",
    IDENTITY,
    _OF_RECORD,
    [
        SparkColumn("transactionalId", STRING, "transactional ID"),
        SparkColumn("producerId", BIGINT, "its producer ID; -1: none"),
        SparkColumn("producerEpoch", INT, "its producer epoch; -1: none"),
        SparkColumn(
            "state", STRING, "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead"
        ),
        SparkColumn(
            "partitions", IN_TRANSACTION, "partitions of the transaction; none once all have a COMMIT or ABORT marker"
        ),
        *_times("transactionStartTimestampMs", "when the transaction began; -1: not set"),
        *_times("transactionLastUpdateTimestampMs", "when its state last changed; -1: not set"),
        SparkColumn("transactionTimeoutMs", BIGINT, "time after which the coordinator aborts the transaction", "ms"),
        SparkColumn("clientTransactionVersion", INT, "2: every transaction has its own producer epoch (KIP-890)"),
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
        SparkColumn("name", STRING, "name of the message in Kafka, such as TopicRecord, or of the control record"),
        SparkColumn("apiKey", INT, "apiKey of the message"),
        SparkColumn("version", INT, "version of the message"),
        SparkColumn("data", STRING, "fields with Kafka's names, as JSON for get_json_object or from_json"),
        _PROBLEM,
    ],
    splits=True,
)

_OF_FILES = (SEGMENTS, BATCHES, RECORDS, FINDINGS, INDEX_ENTRIES, PRODUCER_STATES, CHECKPOINTS)
TABLES = {table.name: table for table in (*_OF_FILES, GROUP_OFFSETS, TRANSACTIONS, METADATA_RECORDS)}

PRODUCERS = _table(
    "producers",
    "a producer ID and epoch in a segment, with what its batches add up to, without control batches and batches whose"
    " checksum does not match; if there are very many producers, one may have several rows",
    COMMON,
    columns_of((key for key in TYPES["batch"] if key.name in ("file", "producerId", "producerEpoch")), HEADER),
    [
        SparkColumn("batches", BIGINT, "number of batches"),
        SparkColumn("records", BIGINT, "number of records"),
        SparkColumn("size", BIGINT, "size of the batches", "bytes"),
        *_times("firstTimestamp", "smallest maxTimestamp of a batch"),
        *_times("lastTimestamp", "largest maxTimestamp of a batch"),
    ],
)
REPLICA_DIFFERENCES = _table(
    "replica_differences",
    "a range of offsets at which the replicas of a partition differ, which have the same topic ID",
    [IDENTITY[0]],
    PLACE,
    [
        SparkColumn(
            "kind",
            STRING,
            "diverged; damaged (the checksum of a batch there does not match in one of them); missing (a replica lacks"
            " offsets between others that it has); compacted (the log cleaner has rewritten the batches, which is not"
            " damage: one row for all of the partition)",
        ),
        SparkColumn(
            "severity",
            STRING,
            "error: a follower that starts loses records of the earlier epoch, or a replica lacks records that the"
            " log cleaner did not remove; valid batches of one leader epoch differ, or a batch is damaged, which no"
            " follower repairs. warning: a follower truncates nothing that has records, or a replica lacks offsets and"
            " the keys are not in its bundle. info: compacted",
        ),
        SparkColumn("firstOffset", BIGINT, "base offset of the first batch that not all replicas have", "offset"),
        SparkColumn("lastOffset", BIGINT, "last offset of the last such batch in a row", "offset"),
        SparkColumn("brokers", "array<string>", "broker of each replica; null if unknown"),
        SparkColumn("sources", "array<string>", "log directory of each replica, in the same order"),
        SparkColumn("leaderEpochs", "array<int>", "leader epoch of each replica there; null if it has no batch"),
        SparkColumn("records", "array<bigint>", "records of each replica there"),
        SparkColumn(
            "lost",
            BIGINT,
            "diverged: the most records that a replica of an earlier leader epoch has from firstOffset to its end, and"
            " loses by truncation; missing: the records that a replica lacks, not lost while the other leads; otherwise"
            " null",
        ),
        SparkColumn("lastOffsets", "array<bigint>", "last offset of each replica", "offset"),
        SparkColumn("explanation", STRING, "explanation of the difference, based on the leader epochs"),
    ],
    derived=True,
)
_FROM_METADATA = "from the newest cluster metadata; null without any"
PARTITIONS = _table(
    "partitions",
    "a replica of a partition, as its log directory and the cluster's metadata describe it; or, with a null in source"
    " and in all columns about its log, a partition of the metadata that is on none of the disks",
    COMMON,
    [
        SparkColumn("topicId", STRING, _FROM_METADATA),
        SparkColumn("leader", INT, f"node.id of the leader, -1: none; {_FROM_METADATA}"),
        SparkColumn("partitionLeaderEpoch", INT, f"epoch of the leader; {_FROM_METADATA}"),
        SparkColumn("replicas", "array<int>", _FROM_METADATA),
        SparkColumn("isr", "array<int>", f"in-sync replicas; {_FROM_METADATA}"),
        SparkColumn("eligibleLeaderReplicas", "array<int>", f"KIP-966; {_FROM_METADATA}"),
        SparkColumn("retentionMs", BIGINT, "retention.ms if the topic has time-based retention", "ms"),
        SparkColumn(
            "logStartOffset",
            BIGINT,
            "base offset of the first segment, or log-start-offset-checkpoint if later",
            "offset",
        ),
        SparkColumn("highWatermark", BIGINT, "from replication-offset-checkpoint; null if it has none", "offset"),
        *columns_of(answer_keys(CheckpointedOffsets)),
        SparkColumn("lastStableOffset", BIGINT, "first offset of an open transaction, or logEndOffset", "offset"),
        SparkColumn("logEndOffset", BIGINT, "offset after the last record; null if the end was not read", "offset"),
        SparkColumn("behind", BIGINT, "difference to the highest logEndOffset of the partition's replicas", "offset"),
        SparkColumn("segments", BIGINT, "number of segments"),
        SparkColumn("size", BIGINT, "size of the segments", "bytes"),
        SparkColumn("batches", BIGINT, "number of batches"),
        SparkColumn("records", BIGINT, "number of records in valid batches"),
        *_times("oldestTimestamp", "of the batches"),
        *_times("newestTimestamp", "of the batches"),
    ],
    derived=True,
)
OPEN_TRANSACTIONS = _table(
    "open_transactions",
    "a transaction without a COMMIT or ABORT marker at the end of a log",
    COMMON,
    [
        SparkColumn("producerId", BIGINT, "ID of the producer"),
        SparkColumn("producerEpoch", INT, "epoch of that producer"),
        SparkColumn("firstOffset", BIGINT, "first offset of the transaction", "offset"),
        *_times("timestamp", "of its first batch"),
        SparkColumn("records", BIGINT, "records of it in the partition"),
        SparkColumn("transactionalId", STRING, "from __transaction_state; null if it is not on the disks"),
        SparkColumn("coordinatorState", STRING, "its newest state there, such as Ongoing; null if it is not there"),
    ],
    derived=True,
)
GROUP_LAG = _table(
    "group_lag",
    "an offset that a group has committed, with the group's lag",
    [IDENTITY[0]],
    # A scan does not count the records behind: that takes reading the end of each log again.
    columns_of(key for key in TYPES["groupOffset"] if key.name not in ("pending", "recordsBehind", "lagIsMinimum")),
    derived=True,
)
SCANS = _table(
    "scans",
    "a scan that can be read: `kdump query --as-of` takes its number, or a time",
    [
        SparkColumn("scan", BIGINT, "its number: 1, 2, …"),
        SparkColumn("run", STRING, "name of the scan, with which the names of its files begin"),
        SparkColumn("finished", TIMESTAMP, "when it was finished"),
        SparkColumn("paths", "array<string>", "as they were given"),
        SparkColumn("read", BIGINT, "number of units (partitions, files) that it read"),
        SparkColumn("kept", BIGINT, "number of units that had not changed"),
        SparkColumn("gone", BIGINT, "number of units that were no longer there"),
        SparkColumn("versions", STRING, "version of each Delta table, as a JSON object"),
    ],
    derived=True,
)
OF_TOPICS = {table.name: table for table in (GROUP_OFFSETS, TRANSACTIONS, METADATA_RECORDS)}
"""Tables of the records of Kafka's own topics."""
_DERIVED: tuple[SparkTable, ...] = (PARTITIONS, REPLICA_DIFFERENCES, OPEN_TRANSACTIONS, GROUP_LAG, SCANS)
RESULTS: dict[str, SparkTable] = {
    table.name: table for table in (*_OF_FILES, PRODUCERS, *OF_TOPICS.values(), *_DERIVED)
}
"""Tables that `kdump scan` writes and `kdump query` reads."""

COUNTS = {
    **{name: name for name in ("partitions", "files", "bytes", "batches", "records")},
    "damagedBatches": "damaged_batches",
    "damagedRecords": "damaged_records",
}
"""Counts in an entry of UNITS, with the attributes of CheckTotals that they come from."""
UNITS = SparkTable(
    f"{OWN}/units",
    "the entry of a unit",
    (
        *own_columns("string", "key", "group", "unit", "fingerprint", "run"),
        *IDENTITY,
        *own_columns("string", "topic"),
        *own_columns("int", "partition"),
        *own_columns("string", "state", "topicId"),
        *own_columns("bigint", *COUNTS),
        *own_columns("array<string>", "unread", "notes", "notInBundle"),
        *own_columns(
            "array<struct<magic:int,compression:string,batches:bigint,records:bigint,bytes:bigint>>", "formats"
        ),
        *own_columns("array<struct<code:string,severity:string,count:bigint>>", "codes"),
        *own_columns("bigint", "dataBatches", "dataRecords", "dataBytes"),
        *own_columns("bigint", "segments", "size", "negative", "oldest", "newest"),
        *own_columns("bigint", "logStartOffset", "lastStableOffset", "logEndOffset"),
        *own_columns(
            "array<struct<producerId:bigint,producerEpoch:int,firstOffset:bigint,timestamp:bigint,records:bigint>>",
            "open",
        ),
        *own_columns("double", "seconds"),
        *own_columns("bigint", "firstSegment"),
        *own_columns("string", "kept"),
        *own_columns("binary", "keptState"),
    ),
)
"""`group`: what it is planned with; `topicId`: in the partition.metadata of a live partition; `firstSegment`: number
of segments that were not read again; `kept`: the point at which the check can resume, with the state `keptState`."""
