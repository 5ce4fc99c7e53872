"""What `kdump.transactions` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: the disk does not say.
`file` and `position` are the evidence: where it stands that it is so."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, MS, OFFSET, Doc, PathText, answer
from kdump.format.snapshot import PRODUCER_ENTRY

SourcePath = Annotated[PathText, Doc("the log directory, or the path that was given")]
TopicName = Annotated[str | None, Doc("from the name of the directory")]
PartitionNumber = Annotated[int | None, Doc("from the name of the directory")]
TransactionalId = Annotated[str | None, Doc("as __transaction_state on the same disks has it; null: not there")]
ProducerId = Annotated[int, Doc("whose it is")]
"""Fields that answers about partitions share."""

COMMITTED, ABORTED, OPEN, HANGING = "committed", "aborted", "open", "hanging"


@answer("transaction")
class Transaction(NamedTuple):
    """A transaction in one partition, open until a marker ends it. `producerEpoch` is the epoch of its data, and
    `markerEpoch` one higher since transaction version 2 (KIP-890)."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    transactionalId: TransactionalId
    producerId: ProducerId
    producerEpoch: Annotated[int | None, Doc("epoch of its data; null: none is on the disk")]
    state: Annotated[
        str,
        Doc(
            "committed or aborted, by its marker; open: none came; hanging: none will: its coordinator does not know it"
        ),
    ]
    firstOffset: Annotated[int | None, Doc("of its data; null: not known", OFFSET)]
    lastOffset: Annotated[int | None, Doc("of its data; null: none is on the disk", OFFSET)]
    records: Annotated[int, Doc("of its data, on the disk")]
    batches: Annotated[int, Doc("of its data, on the disk")]
    bytes: Annotated[int, Doc("of its data, on the disk", BYTES)]
    begun: Annotated[int | None, Doc("the largest timestamp of its first batch", EPOCH_MS)]
    lastTimestamp: Annotated[int | None, Doc("the largest timestamp of its last batch", EPOCH_MS)]
    ended: Annotated[int | None, Doc("timestamp of the marker", EPOCH_MS)]
    age: Annotated[int | None, Doc("since it begun, where it has not ended", MS)]
    idle: Annotated[int | None, Doc("since its last batch, where it has not ended", MS)]
    markerOffset: Annotated[int | None, Doc("of its COMMIT or ABORT marker", OFFSET)]
    markerEpoch: Annotated[int | None, Doc("epoch of the marker; above that of the data since transaction version 2")]
    coordinatorEpoch: Annotated[int | None, Doc("of the coordinator that had the marker written")]
    inTxnIndex: Annotated[bool | None, Doc("whether the .txnindex has it; null: not aborted, or no sound index")]
    file: Annotated[PathText, Doc("where it is said that it began: a segment, a .snapshot, a .txnindex")]
    position: Annotated[int, Doc("of its first batch, or the entry", FILE_BYTE)]
    markerFile: Annotated[PathText | None, Doc("the segment that has the marker")]
    markerPosition: Annotated[int | None, Doc("of the marker", FILE_BYTE)]
    remarks: Annotated[
        tuple[str, ...], Doc("what is not certain, and why; what its coordinator says of an open one")
    ] = ()
    abort: Annotated[str | None, Doc("the command that ends it, where that is for a person to do")] = None
    abortBefore3: Annotated[str | None, Doc("the same for brokers before 3.0")] = None


@answer("transactionPartition")
class PartitionTransactions(NamedTuple):
    """A partition, after all its transactions. `lastStableOffset` is the first offset of the transaction that is open
    for longest, else the log end; None for segments that are not the newest. `highWatermark` is written every 5 s; no
    consumer gets beyond it either."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    path: Annotated[PathText, Doc("the directory, or the file that was given")]
    logStartOffset: Annotated[int | None, Doc("by log-start-offset-checkpoint, else that of the first segment", OFFSET)]
    logEndOffset: Annotated[int | None, Doc("behind the last sound batch", OFFSET)]
    highWatermark: Annotated[int | None, Doc("as replication-offset-checkpoint has it, written down every 5 s", OFFSET)]
    lastStableOffset: Annotated[
        int | None,
        Doc(
            "where read_committed consumers stop once all is replicated; null: the newest segment was not asked for",
            OFFSET,
        ),
    ]
    heldBy: Annotated[int | None, Doc("producer id of the transaction that holds it back; null: none")]
    committed: Annotated[int, Doc("transactions with a COMMIT marker")]
    aborted: Annotated[int, Doc("transactions with an ABORT marker")]
    open: Annotated[int, Doc("transactions without a marker")]
    hanging: Annotated[int, Doc("those that their coordinator does not know as ongoing; not counted in open")]
    emptyMarkers: Annotated[int, Doc("markers that compaction has emptied: nothing of their transactions is left")]
    segments: Annotated[int, Doc("that were read")]
    damages: Annotated[int, Doc("damaged stretches, which could not be taken into account")]
    seededFrom: Annotated[PathText | None, Doc("the .snapshot that told what was open where the first segment begins")]


@answer("transactionCoordinator")
class CoordinatorTransaction(NamedTuple):
    """What a coordinator said last of a transactional id: the record at `offset` of the directory `path`."""

    source: SourcePath
    path: Annotated[PathText, Doc("partition of __transaction_state")]
    offset: Annotated[int, Doc("of the record that says so", OFFSET)]
    transactionalId: Annotated[str, Doc("transactional.id of the producer")]
    producerId: Annotated[int, Doc("its producer id")]
    producerEpoch: Annotated[int, Doc("its epoch")]
    state: Annotated[str, Doc("Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort …")]
    transactionTimeoutMs: Annotated[int, Doc("after which the coordinator aborts it", MS)]
    transactionStartTimestampMs: Annotated[int | None, Doc("when its last transaction began", EPOCH_MS)]
    transactionLastUpdateTimestampMs: Annotated[int | None, Doc("of the last change", EPOCH_MS)]
    age: Annotated[int | None, Doc("since it began, where it has not ended", MS)]
    partitions: Annotated[tuple[str, ...], Doc("topic-partition of each that has no marker yet")]


@answer("transactionDifference")
class Difference(NamedTuple):
    """Where the log and the coordinator say different things of a transaction."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    transactionalId: Annotated[str, Doc("whose transaction it is")]
    producerId: ProducerId
    producerEpoch: Annotated[int, Doc("of the marker")]
    offset: Annotated[int | None, Doc("of the marker; null: there is none", OFFSET)]
    file: Annotated[PathText, Doc("the segment that has the marker; the partition's directory without one")]
    position: Annotated[int, Doc("of the marker", FILE_BYTE)]
    coordinator: Annotated[PathText, Doc("partition of __transaction_state")]
    coordinatorOffset: Annotated[int, Doc("of the record that decided", OFFSET)]
    message: Annotated[str, Doc("what differs")]


LIVE, EXPIRED, UNKNOWN = "live", "expired", "unknown"

Gaps = Annotated[int, Doc("data batches whose sequence leaves some out")]
Duplicates = Annotated[int, Doc("data batches whose sequence had come already")]
Fenced = Annotated[int, Doc("data batches with an epoch older than one before")]
EpochStarts = Annotated[int, Doc("new epochs that do not begin with sequence 0")]
StateFrom = Annotated[
    PathText,
    Doc(
        "the .snapshot that a broker begins with; log: it replays all; nothing: it starts without, or that is not here"
    ),
]


def _in_broker(name: str) -> Doc:
    """Return what a field of ProducerSnapshot means, for the state of a broker."""
    field = PRODUCER_ENTRY.field(name)
    return Doc(f"in the broker: {field.meaning}", field.unit)


@answer("producer")
class Producer(NamedTuple):
    """A producer id in one partition: what its batches on the disk say, and what a broker that starts on this disk
    would know of it. On the disk: `firstEpoch` to `epochStarts`. In the broker, by the names of ProducerSnapshot:
    `epoch` to `currentTxnFirstOffset`, None where it would not know the producer; it drops one that is idle for
    producer.id.expiration.ms."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    transactionalId: TransactionalId
    producerId: ProducerId
    firstEpoch: Annotated[int | None, Doc("on the disk: its first epoch; null: nothing of it is there")]
    lastEpoch: Annotated[int | None, Doc("on the disk: its highest epoch")]
    batches: Annotated[int, Doc("on the disk: its data batches")]
    records: Annotated[int, Doc("on the disk: its records")]
    bytes: Annotated[int, Doc("on the disk: of its data batches", BYTES)]
    firstOffset: Annotated[int | None, Doc("on the disk: of its data", OFFSET)]
    lastDataOffset: Annotated[int | None, Doc("on the disk: of its data", OFFSET)]
    firstTimestamp: Annotated[int | None, Doc("on the disk: the largest of its first data batch", EPOCH_MS)]
    lastBatchTimestamp: Annotated[int | None, Doc("on the disk: of its last batch or marker", EPOCH_MS)]
    commits: Annotated[int, Doc("on the disk: its COMMIT markers")]
    aborts: Annotated[int, Doc("on the disk: its ABORT markers")]
    gaps: Gaps
    duplicates: Duplicates
    fenced: Fenced
    epochStarts: EpochStarts
    state: Annotated[str, Doc("live; expired: the broker drops it; unknown: the broker would not know it")]
    epoch: Annotated[int | None, _in_broker("epoch")]
    lastSequence: Annotated[int | None, _in_broker("lastSequence")]
    lastOffset: Annotated[int | None, _in_broker("lastOffset")]
    offsetDelta: Annotated[int | None, _in_broker("offsetDelta")]
    timestamp: Annotated[int | None, _in_broker("timestamp")]
    coordinatorEpoch: Annotated[int | None, _in_broker("coordinatorEpoch")]
    currentTxnFirstOffset: Annotated[int | None, _in_broker("currentTxnFirstOffset")]
    stateFrom: StateFrom
    inSnapshot: Annotated[bool | None, Doc("whether that .snapshot has it; null without one")]
    idle: Annotated[int | None, Doc("since its last batch or marker", MS)]
    file: Annotated[PathText, Doc("that has its last batch or marker; the .snapshot, if nothing of it is on the disk")]
    position: Annotated[int, Doc("of that batch or marker; of the entry", FILE_BYTE)]
    remarks: Annotated[tuple[str, ...], Doc("what is not as usual, and why")] = ()


@answer("producerEvent")
class ProducerEvent(NamedTuple):
    """Something in a producer's history: first (its first batch here), epoch (its data have a new epoch), gap,
    duplicate, fenced (an older epoch), epochStart (a new epoch that does not begin with sequence 0), forgotten (idle
    for so long that a broker had forgotten it), COMMIT or ABORT (a marker)."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    offset: Annotated[int, Doc("of the batch", OFFSET)]
    timestamp: Annotated[int | None, Doc("of the batch: the largest in it", EPOCH_MS)]
    transactionalId: TransactionalId
    producerId: ProducerId
    producerEpoch: Annotated[int, Doc("of the batch")]
    event: Annotated[str, Doc("first, epoch, gap, duplicate, fenced, epochStart, forgotten, COMMIT, ABORT")]
    baseSequence: Annotated[int, Doc("of the batch; -1: none")]
    lastSequence: Annotated[int, Doc("of the batch; -1: none")]
    message: Annotated[str, Doc("what happened")]
    file: Annotated[PathText, Doc("the segment")]
    position: Annotated[int, Doc("of the batch", FILE_BYTE)]


@answer("producerPartition")
class PartitionProducers(NamedTuple):
    """A partition, after all its producers. `stateFrom` is "nothing" where a broker forgets all, or the newest segment
    was not asked for."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    path: Annotated[PathText, Doc("the directory, or the file that was given")]
    logStartOffset: Annotated[int | None, Doc("by log-start-offset-checkpoint, else that of the first segment", OFFSET)]
    logEndOffset: Annotated[int | None, Doc("behind the last sound batch", OFFSET)]
    producers: Annotated[int, Doc("on the disk, or in the snapshot")]
    live: Annotated[int, Doc("that a broker which starts on this disk knows")]
    expired: Annotated[int, Doc("that it drops, for they were idle for too long")]
    unknown: Annotated[int, Doc("that are on the disk, and that it does not know")]
    gaps: Gaps
    duplicates: Duplicates
    fenced: Fenced
    epochStarts: EpochStarts
    snapshotOnly: Annotated[int, Doc("in the snapshot, with nothing on the disk")]
    stateFrom: StateFrom
    stateOffset: Annotated[int | None, Doc("of that snapshot: the log behind is replayed", OFFSET)]
    segments: Annotated[int, Doc("that were read")]
    damages: Annotated[int, Doc("damaged stretches, which could not be taken into account")]
    forgotten: Annotated[int, Doc("producers for which there was no room")]


@answer("note")
class Note(NamedTuple):
    """What could not be read, or not be taken into account."""

    source: Annotated[PathText, Doc("the path that it is about; empty where the message says it")]
    message: Annotated[PathText, Doc("what could not be read, or does not fit")]


class ChangedField(NamedTuple):
    """A field that a record changed; None for what was not there, or is gone."""

    name: str
    old: Any
    new: Any


@answer("change")
class RecordedChange(NamedTuple):
    """What one record of a coordinator's log, or of the metadata log, changed."""

    source: Annotated[PathText, Doc("the log it stands in")]
    offset: Annotated[int, Doc("of the record", OFFSET)]
    timestamp: Annotated[int | None, Doc("of the record", EPOCH_MS)]
    record: Annotated[str, Doc("its type: Kafka's name of its message, or COMMIT and ABORT for markers")]
    groupId: Annotated[str | None, Doc("the group; null in the cluster's metadata")]
    entity: Annotated[
        str, Doc("what it changed: offset, group, member, shareState; topic, partition, broker, config …")
    ]
    name: Annotated[str, Doc("which")]
    action: Annotated[str, Doc("created, changed, removed; pending or aborted in a transaction")]
    fields: Annotated[tuple[ChangedField, ...], Doc("of {…}: what differs, and what a new or removed one says")]
