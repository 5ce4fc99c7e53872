"""What `kdump.transactions` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: the disk does not say.
`file` and `position` are the evidence: where it stands that it is so."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, MS, OFFSET, Doc, PathText, Shown, UnknownKeys, answer
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.state.unknown_offsets import LogEndOffset, LogStartOffset

SourcePath = Annotated[PathText, Doc("log directory, or the path that was passed")]
TopicName = Annotated[str | None, Doc("topic, from the directory's name")]
PartitionNumber = Annotated[int | None, Doc("partition, from the directory's name")]
TransactionalId = Annotated[
    str | None, Doc("transactional ID, from __transaction_state on the same disks; null if not there")
]
ProducerId = Annotated[int, Doc("producer ID")]
"""Fields that answers about partitions share."""

COMMITTED, ABORTED, OPEN, HANGING = "committed", "aborted", "open", "hanging"


@answer("transaction")
class Transaction(NamedTuple):
    """A transaction in one partition, open until a marker ends it. `producerEpoch` is the epoch of its data, and
    `markerEpoch` one higher since transaction version 2 (KIP-890)."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    transactionalId: Annotated[TransactionalId, Shown("transactional ID", 7)]
    producerId: Annotated[ProducerId, Shown("producer")]
    producerEpoch: Annotated[int | None, Doc("epoch of its data; null if there is none on the disk"), Shown("epoch", 8)]
    state: Annotated[
        str,
        Doc(
            "committed or aborted (by its marker), open (no marker), hanging (no marker, and its coordinator does not "
            "list it as Ongoing)"
        ),
        Shown(),
    ]
    firstOffset: Annotated[
        int | None, Doc("first offset of its data; null if unknown", OFFSET), Shown("first", after="")
    ]
    lastOffset: Annotated[
        int | None,
        Doc("last offset of its data; null if there is none on the disk", OFFSET),
        Shown("last", after="firstOffset"),
    ]
    records: Annotated[int, Doc("number of its records on the disk"), Shown(rank=6, after="lastOffset")]
    batches: Annotated[int, Doc("number of its data batches on the disk")]
    bytes: Annotated[int, Doc("size of its data batches on the disk", BYTES)]
    begun: Annotated[int | None, Doc("largest timestamp of its first batch", EPOCH_MS), Shown(rank=5)]
    lastTimestamp: Annotated[int | None, Doc("largest timestamp of its last batch", EPOCH_MS)]
    ended: Annotated[int | None, Doc("timestamp of the marker", EPOCH_MS), Shown(rank=4)]
    age: Annotated[int | None, Doc("time since begun, if it has not ended", MS)]
    idle: Annotated[int | None, Doc("time since its last batch, if it has not ended", MS)]
    markerOffset: Annotated[
        int | None, Doc("offset of its COMMIT or ABORT marker", OFFSET), Shown("marker", 8, after="state")
    ]
    markerEpoch: Annotated[
        int | None, Doc("epoch of the marker; since transaction version 2, higher than that of the data")
    ]
    coordinatorEpoch: Annotated[int | None, Doc("epoch of the coordinator that wrote the marker")]
    inTxnIndex: Annotated[
        bool | None,
        Doc("whether the .txnindex contains it; null if not aborted, or without a valid index"),
        Shown("in .txnindex", 3),
    ]
    file: Annotated[PathText, Doc("file that shows its start: a segment, a .snapshot, a .txnindex")]
    position: Annotated[int, Doc("position of its first batch, or of the entry", FILE_BYTE)]
    markerFile: Annotated[PathText | None, Doc("segment that contains the marker")]
    markerPosition: Annotated[int | None, Doc("position of the marker", FILE_BYTE)]
    remarks: Annotated[
        tuple[str, ...],
        Doc("what is uncertain, and why; for an open one, the coordinator's state"),
        Shown(rank=8, least=24, blank=0),
    ] = ()
    abort: Annotated[str | None, Doc("command that aborts it, if no coordinator will")] = None
    abortBefore3: Annotated[
        str | None, Doc("the same for brokers before 3.0, if the disk does not state the release")
    ] = None


@answer("transactionPartition")
class PartitionTransactions(NamedTuple):
    """A partition, after all its transactions. `lastStableOffset` is the first offset of the transaction that is open
    for longest, else the log end; None for segments that are not the newest. `highWatermark` is written every 5 s; no
    consumer gets beyond it either."""

    source: Annotated[SourcePath, Shown("in", least=12)]
    topic: Annotated[TopicName, Shown()]
    partition: Annotated[PartitionNumber, Shown()]
    path: Annotated[PathText, Doc("partition directory, or the file that was passed")]
    logStartOffset: Annotated[LogStartOffset, Shown("log start", 4, after="hanging")]
    logEndOffset: Annotated[LogEndOffset, Shown("log end", 7, after="lastStableOffset")]
    highWatermark: Annotated[
        int | None,
        Doc("high watermark in replication-offset-checkpoint, written every 5 s", OFFSET),
        Shown("high watermark", 2, after="logEndOffset"),
    ]
    lastStableOffset: Annotated[
        int | None,
        Doc(
            "offset at which read_committed consumers stop once everything is replicated; null if the newest segment "
            "was not selected",
            OFFSET,
        ),
        Shown("last stable", after="logStartOffset"),
    ]
    heldBy: Annotated[
        int | None,
        Doc("producer ID of the transaction that blocks lastStableOffset; null if none does"),
        Shown("blocked by producer", 6, after="highWatermark"),
    ]
    committed: Annotated[int, Doc("number of transactions with a COMMIT marker"), Shown()]
    aborted: Annotated[int, Doc("number of transactions with an ABORT marker"), Shown()]
    open: Annotated[int, Doc("number of transactions without a marker"), Shown()]
    hanging: Annotated[
        int,
        Doc("number of transactions that their coordinator does not list as Ongoing; not counted in open"),
        Shown(rank=8, blank=0),
    ]
    emptyMarkers: Annotated[
        int, Doc("number of markers emptied by compaction, with nothing left of their transactions")
    ]
    repeatedMarkers: Annotated[
        int,
        Doc("number of markers that a coordinator wrote again after a failover; not counted in committed or aborted"),
    ]
    segments: Annotated[int, Doc("number of segments read")]
    damages: Annotated[
        int, Doc("number of damaged byte ranges, which could not be considered"), Shown("damaged", 5, blank=0)
    ]
    seededFrom: Annotated[
        PathText | None, Doc(".snapshot with the transactions open at the start of the first segment")
    ]
    unknown: UnknownKeys


@answer("transactionCoordinator")
class CoordinatorTransaction(NamedTuple):
    """The coordinator's last record for a transactional ID: the record at `offset` in the directory `path`."""

    source: SourcePath
    path: Annotated[
        PathText,
        Doc("partition directory of __transaction_state"),
        Shown("in", 1, after="transactionLastUpdateTimestampMs"),
    ]
    offset: Annotated[int, Doc("offset of the record", OFFSET), Shown(rank=2, after="path")]
    transactionalId: Annotated[str, Doc("transactional.id of the producer"), Shown("transactional ID")]
    producerId: Annotated[int, Doc("producer ID"), Shown("producer")]
    producerEpoch: Annotated[int, Doc("producer epoch"), Shown("epoch")]
    state: Annotated[str, Doc("Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort …"), Shown()]
    transactionTimeoutMs: Annotated[
        int, Doc("time after which the coordinator aborts a transaction", MS), Shown("timeout ms", 4)
    ]
    transactionStartTimestampMs: Annotated[
        int | None, Doc("start of its last transaction", EPOCH_MS), Shown("started", 6)
    ]
    transactionLastUpdateTimestampMs: Annotated[
        int | None, Doc("time of the last change", EPOCH_MS), Shown("updated", 3)
    ]
    age: Annotated[int | None, Doc("time since the transaction started, if it has not ended", MS)]
    partitions: Annotated[
        tuple[str, ...],
        Doc("partitions of its transaction, as topic-partition; none once all have a marker"),
        Shown(rank=7, least=16),
    ]


@answer("transactionDifference")
class Difference(NamedTuple):
    """A contradiction between the log and the coordinator about a transaction."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    transactionalId: Annotated[str, Doc("transactional ID"), Shown("transactional ID")]
    producerId: Annotated[ProducerId, Shown("producer")]
    producerEpoch: Annotated[int, Doc("epoch of the marker")]
    offset: Annotated[int | None, Doc("offset of the marker; null if there is none", OFFSET), Shown()]
    file: Annotated[PathText, Doc("segment that contains the marker, or the partition directory if there is none")]
    position: Annotated[int, Doc("position of the marker", FILE_BYTE)]
    coordinator: Annotated[PathText, Doc("partition directory of __transaction_state")]
    coordinatorOffset: Annotated[int, Doc("offset of the record with the decision", OFFSET)]
    message: Annotated[str, Doc("explanation"), Shown(least=24)]


LIVE, EXPIRED, UNKNOWN = "live", "expired", "unknown"

Gaps = Annotated[int, Doc("number of data batches before which sequence numbers are missing")]
Duplicates = Annotated[int, Doc("number of data batches with repeated sequence numbers")]
Fenced = Annotated[int, Doc("number of data batches with an older epoch than an earlier batch")]
EpochStarts = Annotated[int, Doc("number of new epochs that do not start with sequence 0")]
KafkaVersion = Annotated[str, Doc("release of Kafka whose rules were applied")]
StateFrom = Annotated[
    PathText,
    Doc(
        ".snapshot that a broker loads; log if it replays the whole log; nothing if it starts without producer state, "
        "or if that is unknown here"
    ),
]


def _in_broker(name: str) -> Doc:
    """Return what a field of ProducerSnapshot means, for the state of a broker."""
    field = PRODUCER_ENTRY.field(name)
    return Doc(f"broker's state: {field.meaning}", field.unit)


@answer("producer")
class Producer(NamedTuple):
    """A producer ID in one partition: its batches on the disk (`firstEpoch` to `epochStarts`), and the state that a
    broker would load at startup (`epoch` to `currentTxnFirstOffset`, with the names of ProducerSnapshot; None if the
    broker would not load the producer). A broker removes a producer that is idle for producer.id.expiration.ms."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    transactionalId: Annotated[TransactionalId, Shown("transactional ID", 7, after="producerId")]
    producerId: Annotated[ProducerId, Shown("producer")]
    firstEpoch: Annotated[int | None, Doc("on the disk: its first epoch; null if it has no batches there")]
    lastEpoch: Annotated[int | None, Doc("on the disk: its highest epoch")]
    batches: Annotated[int, Doc("on the disk: number of its data batches"), Shown(rank=5)]
    records: Annotated[int, Doc("on the disk: number of its records"), Shown(rank=6)]
    bytes: Annotated[int, Doc("on the disk: size of its data batches", BYTES)]
    firstOffset: Annotated[int | None, Doc("on the disk: first offset of its data", OFFSET), Shown("first", 6)]
    lastDataOffset: Annotated[int | None, Doc("on the disk: last offset of its data", OFFSET), Shown("last", 8)]
    firstTimestamp: Annotated[int | None, Doc("on the disk: largest timestamp of its first data batch", EPOCH_MS)]
    lastBatchTimestamp: Annotated[
        int | None,
        Doc("on the disk: timestamp of its last batch or marker", EPOCH_MS),
        Shown("last written", 5, after="epochStarts"),
    ]
    commits: Annotated[int, Doc("on the disk: number of its COMMIT markers"), Shown(rank=4, blank=0)]
    aborts: Annotated[int, Doc("on the disk: number of its ABORT markers"), Shown(rank=4, blank=0)]
    gaps: Annotated[Gaps, Shown(rank=8, blank=0)]
    duplicates: Annotated[Duplicates, Shown(rank=8, blank=0)]
    fenced: Annotated[Fenced, Shown(rank=8, blank=0)]
    epochStarts: Annotated[EpochStarts, Shown("odd epoch starts", 7, blank=0)]
    state: Annotated[
        str,
        Doc("live, expired (the broker removes it), unknown (not in the broker's state)"),
        Shown(after="transactionalId"),
    ]
    epoch: Annotated[int | None, _in_broker("epoch"), Shown(blank=-1, after="state")]
    lastSequence: Annotated[
        int | None, _in_broker("lastSequence"), Shown("last sequence", 7, blank=-1, after="lastDataOffset")
    ]
    lastOffset: Annotated[int | None, _in_broker("lastOffset")]
    offsetDelta: Annotated[int | None, _in_broker("offsetDelta")]
    timestamp: Annotated[int | None, _in_broker("timestamp")]
    coordinatorEpoch: Annotated[int | None, _in_broker("coordinatorEpoch")]
    currentTxnFirstOffset: Annotated[
        int | None, _in_broker("currentTxnFirstOffset"), Shown("open from", 8, blank=-1, after="lastSequence")
    ]
    stateFrom: StateFrom
    inSnapshot: Annotated[
        bool | None, Doc("whether that .snapshot contains it; null without one"), Shown("in snapshot", 3)
    ]
    idle: Annotated[int | None, Doc("time since its last batch or marker", MS)]
    file: Annotated[PathText, Doc("file with its last batch or marker; the .snapshot if it has no batches on the disk")]
    position: Annotated[int, Doc("position of that batch or marker, or of the entry", FILE_BYTE)]
    remarks: Annotated[tuple[str, ...], Doc("what is unusual, and why"), Shown(rank=6, least=24, blank=0)] = ()


@answer("producerEvent")
class ProducerEvent(NamedTuple):
    """An event in a producer's history: first (its first batch here), epoch (its data has a new epoch), gap, duplicate,
    fenced (an older epoch), epochStart (a new epoch that does not start with sequence 0), forgotten (idle for so long
    that a broker no longer had its state), COMMIT or ABORT (a marker)."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    offset: Annotated[int, Doc("first offset of the batch", OFFSET), Shown()]
    timestamp: Annotated[int | None, Doc("largest timestamp in the batch", EPOCH_MS), Shown("time", 6)]
    transactionalId: Annotated[TransactionalId, Shown("transactional ID", 5, after="producerId")]
    producerId: Annotated[ProducerId, Shown("producer")]
    producerEpoch: Annotated[int, Doc("epoch of the batch"), Shown("epoch")]
    event: Annotated[str, Doc("first, epoch, gap, duplicate, fenced, epochStart, forgotten, COMMIT, ABORT"), Shown()]
    baseSequence: Annotated[int, Doc("first sequence number of the batch; -1: none"), Shown("sequence", 7, blank=-1)]
    lastSequence: Annotated[int, Doc("last sequence number of the batch; -1: none"), Shown("to", 7, blank=-1)]
    message: Annotated[str, Doc("explanation"), Shown(least=24, after="position")]
    file: Annotated[PathText, Doc("path of the segment")]
    position: Annotated[int, Doc("position of the batch", FILE_BYTE), Shown("at byte", 3)]


@answer("producerPartition")
class PartitionProducers(NamedTuple):
    """A partition, after all its producers. `stateFrom` is "nothing" if a broker loads no producer state, or if the
    newest segment was not selected."""

    source: Annotated[SourcePath, Shown("in", least=12)]
    topic: Annotated[TopicName, Shown()]
    partition: Annotated[PartitionNumber, Shown()]
    path: Annotated[PathText, Doc("partition directory, or the file that was passed")]
    logStartOffset: LogStartOffset
    logEndOffset: Annotated[LogEndOffset, Shown("log end", 4, after="epochStarts")]
    producers: Annotated[int, Doc("number of producers on the disk or in the snapshot"), Shown()]
    live: Annotated[int, Doc("number of these in the state of a broker that starts on this disk"), Shown()]
    expired: Annotated[
        int, Doc("number of these that the broker removes because they were idle for too long"), Shown(rank=7, blank=0)
    ]
    unknown: Annotated[
        int, Doc("number of these that are on the disk, but not in the broker's state"), Shown(rank=6, blank=0)
    ]
    gaps: Annotated[Gaps, Shown(rank=8, blank=0)]
    duplicates: Annotated[Duplicates, Shown(rank=8, blank=0)]
    fenced: Annotated[Fenced, Shown(rank=8, blank=0)]
    epochStarts: Annotated[EpochStarts, Shown("odd epoch starts", 7, blank=0)]
    snapshotOnly: Annotated[
        int,
        Doc("number of producers in the snapshot without batches on the disk"),
        Shown("only in snapshot", 5, blank=0, after="unknown"),
    ]
    stateFrom: StateFrom
    stateOffset: Annotated[
        int | None, Doc("offset of that snapshot, after which the log is replayed", OFFSET), Shown("snapshot", 3)
    ]
    segments: Annotated[int, Doc("number of segments read")]
    damages: Annotated[
        int, Doc("number of damaged byte ranges, which could not be considered"), Shown("damaged", 5, blank=0)
    ]
    forgotten: Annotated[int, Doc("number of producers that are left out for lack of memory")]
    kafkaVersion: KafkaVersion
    producerIdExpirationMs: Annotated[int, Doc("time after which an idle producer expires", MS)]


@answer("note")
class Note(NamedTuple):
    """Something that could not be read or considered."""

    source: Annotated[PathText, Doc("path to which it refers; empty if the message contains it")]
    message: Annotated[PathText, Doc("what could not be read, or is inconsistent")]


class ChangedField(NamedTuple):
    """A field that a record changed; None for a value that did not exist before, or does not exist any more."""

    name: str
    old: Any
    new: Any


@answer("change")
class RecordedChange(NamedTuple):
    """What one record of a coordinator's log, of the metadata log, or of a topic of a registry or Connect changed."""

    source: Annotated[PathText, Doc("log that contains the record")]
    offset: Annotated[int, Doc("offset of the record", OFFSET), Shown(rank=6)]
    timestamp: Annotated[int | None, Doc("timestamp of the record", EPOCH_MS), Shown("time")]
    record: Annotated[
        str,
        Doc("type of the record: Kafka's name of the message, or COMMIT and ABORT for markers"),
        Shown(rank=3, least=14),
    ]
    groupId: Annotated[
        str | None,
        Doc("group ID; null in the cluster's metadata, in a registry and in Connect"),
        Shown("group", 8, least=10),
    ]
    entity: Annotated[
        str,
        Doc(
            "kind of object that it changed: offset, group, member, shareState; topic, partition, broker, config …; "
            "schema; connector, commit, taskStatus, sourceOffset …"
        ),
        Shown(rank=4),
    ]
    name: Annotated[str, Doc("name of the object"), Shown(least=12)]
    action: Annotated[
        str, Doc("created, changed, removed; pending or aborted in a transaction; ignored by a registry"), Shown(rank=7)
    ]
    fields: Annotated[
        tuple[ChangedField, ...],
        Doc("changed fields, or all fields of a new or removed object, each {…}"),
        Shown(least=18),
    ]
