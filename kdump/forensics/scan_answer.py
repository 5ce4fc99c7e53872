"""What `kdump scan` answers: the summary of a fleet (kdump.spark.summary computes it). Knows nothing of Spark."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer

FIRST = "the first so many, the most first; `kdump query` has all"


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
    """Where the replicas of a partition first differ: a row of the table replicas."""

    cluster: str | None
    topic: str
    partition: int
    kind: str
    severity: str
    firstDivergentOffset: int
    brokers: list[str | None]
    sources: list[str]
    leaderEpochs: list[int | None]
    lastOffsets: list[int | None]
    explanation: str


class FleetTransaction(NamedTuple):
    """A transaction that is open at the end of a log."""

    cluster: str | None
    topic: str | None
    partition: int | None
    source: str
    producerId: int
    producerEpoch: int
    firstOffset: int
    timestamp: int
    records: int
    transactionalId: str | None
    state: str | None


class FleetGroup(NamedTuple):
    """A consumer group or share group, and its lag."""

    cluster: str | None
    groupId: str
    groupType: str
    state: str
    lag: int | None
    lagUnknown: int
    remarks: int


class FleetTopic(NamedTuple):
    """A topic, and how evenly its partitions are filled."""

    topic: str
    partitions: int
    bytes: int
    records: int
    largest: int
    skew: float | None


class FleetProducer(NamedTuple):
    """A producer, and what it wrote."""

    producerId: int
    epochs: int
    topics: int
    partitions: int
    batches: int
    records: int
    bytes: int
    first: int
    last: int
    recordsPerSecond: float | None


class FrequentKey(NamedTuple):
    """A key that many records of a topic have."""

    topic: str
    key: str
    records: int
    share: float


class FormatUse(NamedTuple):
    """The batches of one format and codec."""

    magic: int
    compression: str
    batches: int
    records: int
    bytes: int


class BatchFill(NamedTuple):
    """How full the batches of a topic are."""

    topic: str
    batches: int
    bytesPerBatch: float
    recordsPerBatch: float


class FleetTimestamps(NamedTuple):
    """The range of timestamps, and those that are out of range."""

    future: int
    negative: int
    oldest: int | None
    newest: int | None


class OverdueTopic(NamedTuple):
    """The segments of a topic that are older than retention.ms."""

    topic: str
    segments: int
    bytes: int
    retentionMs: int


class DirtyPartition(NamedTuple):
    """A partition that the log cleaner has not cleaned up to its active segment."""

    topic: str | None
    partition: int | None
    source: str
    dirtyBytes: int
    bytes: int
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

    paths: Annotated[list[PathText], Doc("that were given")]
    out: Annotated[str, Doc("where the tables are")]
    tables: Annotated[list[str], Doc("that were written")]
    brokers: Annotated[list[ScannedBroker], Doc("of {…}: whose disks were read")]
    copies: Annotated[list[DiskCopy], Doc("of {…}: other copies of a disk, compared and not counted")]
    partitions: Annotated[int, Doc("partition directories; this and what follows without other copies of a disk")]
    files: Annotated[int, Doc("files that were read")]
    bytes: Annotated[int, Doc("their length", BYTES)]
    batches: Annotated[int, Doc("batches, and messages of magic 0 and 1")]
    records: Annotated[int, Doc("records in sound batches")]
    findings: Annotated[dict[str, int], Doc("how many of each severity: error, warning, info; those of all copies")]
    codes: Annotated[dict[str, int], Doc("how many of each code")]
    unread: Annotated[list[str], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("what else is to be said: files that grew, went away, or kept changing")]
    replicas: Annotated[
        list[ReplicaDifference], Doc("of {…}: where replicas say something else about the same offsets")
    ]
    compactedReplicas: Annotated[int, Doc("partitions whose replicas differ by what the cleaner has done: no damage")]
    openTransactions: Annotated[
        list[FleetTransaction],
        Doc("of {…}: without a marker by the end of a log; the last two as __transaction_state has them"),
    ]
    groups: Annotated[list[FleetGroup], Doc(f"of {{…}}: the farthest behind; {FIRST}")]
    producers: Annotated[list[FleetProducer], Doc(f"of {{…}}: times in epoch ms; {FIRST}")]
    keys: Annotated[list[FrequentKey], Doc(f"of {{…}}, with --records: keys that a topic has most of; {FIRST}")]
    topics: Annotated[list[FleetTopic], Doc(f"of {{…}}: the largest partition to the mean; {FIRST}")]
    formats: Annotated[list[FormatUse], Doc("of {…}: formats and codecs in use")]
    fill: Annotated[list[BatchFill], Doc(f"of {{…}}: the smallest batches first; {FIRST}")]
    timestamps: Annotated[
        FleetTimestamps,
        Doc("future: findings timestamp-in-future; negative: batches; oldest, newest in epoch ms"),
    ]
    retention: Annotated[list[OverdueTopic], Doc(f"of {{…}}: older than retention.ms, and there; {FIRST}")]
    compaction: Annotated[list[DirtyPartition], Doc(f"of {{…}}: not yet cleaned; {FIRST}")]
    units: Annotated[
        ScannedUnits,
        Doc(
            "read: partitions and files read now; continued: those of them that were read from a later segment than "
            "the first on; kept: as they were; gone: no longer there"
        ),
    ]
    seconds: Annotated[float, Doc("how long it took, Spark's start included", "s")]
