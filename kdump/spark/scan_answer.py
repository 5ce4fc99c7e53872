"""What `kdump scan` is asked, and what it answers: the summary of a fleet (kdump.spark.summary computes it). Knows
nothing of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from kdump.answer import BYTES, NAME, NUMBER, Cell, Doc, PathText, Shown, answer, columns
from kdump.check.summary import NotInBundle
from kdump.format.count_text import size_text
from kdump.query import Names, Query, flag, many, option

if TYPE_CHECKING:
    from kdump.log.remote_objects import RemoteStorage

ALL = (
    *("segments", "batches", "producers", "findings", "index_entries", "producer_states", "checkpoints"),
    *("group_offsets", "transactions", "metadata_records"),
)
"""Tables that a scan writes by default; records have to be requested."""
NEEDED = ("segments", "batches", "producers", "findings", "checkpoints", "transactions")
"""Those from which the summary is computed."""

FIRST = "only the largest; `kdump query` shows all"
TOPIC = Shown(least=12, cuts=NAME)
Number = Annotated[int, Shown(), NUMBER]
Size = Annotated[int, Shown("size"), Cell(size_text)]


def _tables() -> Iterator[tuple[str, str]]:
    return ((name, "") for name in (*ALL, "records"))


def _broker(typed: str) -> tuple[str, str]:
    """Return path and name. Raises ValueError."""
    path, _, name = typed.rpartition("=")
    if not path:
        raise ValueError(f"{typed!r} is not PATH=NAME")
    return path, name


@dataclass(frozen=True, kw_only=True)
class ScanQuery(Query):
    """What a scan reads and writes. Sizes in bytes."""

    tables: Iterable[str] = option(
        "--tables",
        metavar="NAME,…",
        type=Names(_tables, "table"),
        otherwise=(),
        help="Write these tables, and those that the summary needs.  [all but records]",
    )
    records: bool = flag("--records", help="Also write the records.")
    brokers: Iterable[tuple[str, str]] = many(
        "--broker",
        metavar="PATH=NAME",
        type=_broker,
        help="Name the broker of a disk that has no meta.properties; repeatable.",
    )
    from_scratch: bool = flag(
        "--from-scratch", help="Read everything again, and use nothing of an earlier scan into DIR."
    )
    compact: bool = flag("--compact", help="Also merge files of a table that are smaller than 64 MiB.")
    split_size: int | None = option("--split-size", type="size", help="Read at least this much in one task.  [64M]")
    remote: RemoteStorage | None = None

    @property
    def of_disks(self) -> tuple[str, ...]:
        """The tables that are written, without records."""
        return tuple(name for name in ALL if not self.tables or name in (*self.tables, *NEEDED))

    @property
    def has_records(self) -> bool:
        return self.records or "records" in self.tables


class ScannedBroker(NamedTuple):
    """A broker, and the log directories of it that were read."""

    cluster: str | None
    broker: str | None
    sources: list[PathText]


class DiskCopy(NamedTuple):
    """A log directory that is another copy of a disk among the paths."""

    source: PathText
    copyOf: str


class ReplicaDifference(NamedTuple):
    """A range of offsets at which the replicas of a partition differ: a row of the table replica_differences."""

    cluster: str | None
    topic: str
    partition: int
    kind: str
    severity: str
    firstOffset: int
    lastOffset: int
    brokers: list[str | None]
    sources: list[str]
    leaderEpochs: list[int | None]
    records: list[int]
    lost: int | None
    lastOffsets: list[int]
    explanation: str


@columns(
    producer=Shown(cell=lambda row: f"{row.producerId}/{row.producerEpoch}", right=True, after="partition"),
)
class FleetTransaction(NamedTuple):
    """A transaction that is open at the end of a log."""

    cluster: str | None
    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, Shown()]
    source: str
    producerId: int
    producerEpoch: int
    firstOffset: Annotated[int, Shown("from offset"), NUMBER]
    timestamp: Annotated[int, Shown("started", 3, right=False, after="records")]
    records: Number
    transactionalId: Annotated[str | None, TOPIC]
    state: Annotated[str | None, Shown(rank=4)]


class FleetGroup(NamedTuple):
    """A consumer group or share group, and its lag."""

    cluster: str | None
    groupId: Annotated[str, Shown("group", least=12, cuts=NAME)]
    groupType: Annotated[str, Shown("type")]
    state: Annotated[str, Shown()]
    lag: Annotated[int | None, Shown(), NUMBER]
    lagUnknown: int
    remarks: int


class FleetTopic(NamedTuple):
    """A topic, and how evenly its partitions are filled."""

    topic: Annotated[str, TOPIC]
    partitions: Number
    bytes: Size
    records: Number
    largest: Annotated[int, Shown(), Cell(size_text)]
    skew: Annotated[float | None, Shown(), Cell(str)]


class FleetProducer(NamedTuple):
    """A producer, and what it wrote."""

    producerId: Annotated[int, Shown("producer")]
    epochs: Number
    topics: int
    partitions: Number
    batches: Number
    records: Number
    bytes: Size
    first: Annotated[int, Shown(rank=3, right=False)]
    last: Annotated[int, Shown(rank=4, right=False)]
    recordsPerSecond: Annotated[float | None, Shown("records/s"), NUMBER]


class FrequentKey(NamedTuple):
    """A key that many records of a topic have."""

    topic: str
    key: str
    records: int
    share: float


class FormatUse(NamedTuple):
    """The batches of one format and codec."""

    magic: Annotated[int, Shown()]
    compression: Annotated[str, Shown("codec")]
    batches: Number
    records: Number
    bytes: Size


class BatchFill(NamedTuple):
    """How full the batches of a topic are."""

    topic: Annotated[str, TOPIC]
    batches: Number
    bytesPerBatch: Annotated[float, Shown("bytes/batch"), NUMBER]
    recordsPerBatch: Annotated[float, Shown("records/batch"), NUMBER]


class FleetTimestamps(NamedTuple):
    """The range of timestamps, and those that are out of range."""

    future: int
    negative: int
    oldest: int | None
    newest: int | None


class OverdueTopic(NamedTuple):
    """The segments of a topic that are older than retention.ms."""

    topic: Annotated[str, TOPIC]
    segments: Number
    bytes: Size
    retentionMs: int


class DirtyPartition(NamedTuple):
    """A partition that the log cleaner has not cleaned up to its active segment."""

    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, Shown()]
    source: str
    dirtyBytes: Annotated[int, Shown("dirty"), Cell(size_text)]
    bytes: Size
    ratio: float


class ScannedUnits(NamedTuple):
    """How many partitions and files were read, and how many did not have to be."""

    read: int
    continued: int
    kept: int
    gone: int


@answer("scan")
class FleetSummary(NamedTuple):
    """A fleet of disks in numbers."""

    paths: Annotated[list[PathText], Doc("paths that were passed")]
    out: Annotated[str, Doc("directory of the tables")]
    tables: Annotated[list[str], Doc("names of the tables written")]
    brokers: Annotated[list[ScannedBroker], Doc("brokers whose disks were read, each {…}")]
    copies: Annotated[list[DiskCopy], Doc("other copies of a disk, which are compared but not counted, each {…}")]
    partitions: Annotated[
        int, Doc("number of partition directories; this and the following exclude other copies of a disk")
    ]
    files: Annotated[int, Doc("number of files read")]
    bytes: Annotated[int, Doc("total length of these files", BYTES)]
    batches: Annotated[int, Doc("number of batches, and of messages of magic 0 and 1")]
    records: Annotated[int, Doc("number of records in valid batches")]
    damagedBatches: Annotated[
        int, Doc("number of batches that are not valid, or whose records do not decode: they are not in records")
    ]
    damagedRecords: Annotated[
        int, Doc("records that the headers of damagedBatches state, as far as these have room for them")
    ]
    findings: Annotated[dict[str, int], Doc("number of findings by severity (error, warning, info), in all copies")]
    codes: Annotated[dict[str, int], Doc("number of findings by code")]
    unread: Annotated[list[str], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("other remarks: files that grew, disappeared or kept changing")]
    notInBundle: NotInBundle
    replicas: Annotated[
        list[ReplicaDifference], Doc(f"where replicas differ at the same offsets, the worst first, each {{…}}; {FIRST}")
    ]
    replicaDifferences: Annotated[int, Doc("number of ranges of offsets at which replicas differ")]
    compactedReplicas: Annotated[int, Doc("number of partitions whose replicas differ only because of compaction")]
    openTransactions: Annotated[
        list[FleetTransaction],
        Doc("transactions without a marker at the end of a log, each {…}; the last two from __transaction_state"),
    ]
    groups: Annotated[list[FleetGroup], Doc(f"groups by lag, each {{…}}; {FIRST}")]
    producers: Annotated[list[FleetProducer], Doc(f"producers, with times in epoch ms, each {{…}}; {FIRST}")]
    keys: Annotated[list[FrequentKey], Doc(f"with --records: most frequent keys of a topic, each {{…}}; {FIRST}")]
    topics: Annotated[list[FleetTopic], Doc(f"topics by skew (largest partition to the mean), each {{…}}; {FIRST}")]
    formats: Annotated[list[FormatUse], Doc("formats and codecs in use, each {…}")]
    fill: Annotated[
        list[BatchFill],
        Doc("mean size of the batches of a topic, only the smallest, each {…}; `kdump query` shows all"),
    ]
    timestamps: Annotated[
        FleetTimestamps,
        Doc("future: number of findings timestamp-in-future; negative: number of batches; oldest, newest in epoch ms"),
    ]
    retention: Annotated[
        list[OverdueTopic], Doc(f"segments that exist although older than retention.ms, by topic, each {{…}}; {FIRST}")
    ]
    compaction: Annotated[list[DirtyPartition], Doc(f"partitions not yet cleaned, each {{…}}; {FIRST}")]
    units: Annotated[
        ScannedUnits,
        Doc(
            "read: number of partitions and files read now; continued: of these, read only from a later segment on; "
            "kept: unchanged; gone: no longer there"
        ),
    ]
    seconds: Annotated[float, Doc("elapsed time, including Spark's startup", "s")]
