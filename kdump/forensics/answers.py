"""What `kdump.transactions` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: the disk does not say.
`file` and `position` are the evidence: where it stands that it is so."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import Doc, PathText

SourcePath = Annotated[PathText, Doc("the log directory, or the path that was given")]
TopicName = Annotated[str | None, Doc("from the name of the directory")]
PartitionNumber = Annotated[int | None, Doc("from the name of the directory")]
"""Fields that answers about partitions share."""

COMMITTED, ABORTED, OPEN, HANGING = "committed", "aborted", "open", "hanging"


class Transaction(NamedTuple):
    """A transaction in one partition.

    `state`: committed and aborted by the marker at `markerOffset`; open: none came; hanging: none will come, for the
    coordinator does not know it as ongoing. `firstOffset` and `lastOffset` are those of its data, `producerEpoch` the
    epoch of those, and `markerEpoch` that of the marker: one higher since transaction version 2 (KIP-890). `begun` is
    the largest timestamp of its first batch, `lastTimestamp` that of its last, `ended` the marker's. `age` and `idle`
    are reckoned from the first two, for one that has not ended.

    `inTxnIndex`: whether the .txnindex beside the marker has it; None where that says nothing (it was not aborted, or
    there is no sound index). `remarks` say what is not certain and why; `abort` and `abortBefore3` are the commands
    that end it, where that is for a person to do.
    """

    source: str
    topic: str | None
    partition: int | None
    transactionalId: str | None
    producerId: int
    producerEpoch: int | None
    state: str
    firstOffset: int | None
    lastOffset: int | None
    records: int
    batches: int
    bytes: int
    begun: int | None
    lastTimestamp: int | None
    ended: int | None
    age: int | None
    idle: int | None
    markerOffset: int | None
    markerEpoch: int | None
    coordinatorEpoch: int | None
    inTxnIndex: bool | None
    file: str
    position: int
    markerFile: str | None
    markerPosition: int | None
    remarks: tuple[str, ...] = ()
    abort: str | None = None
    abortBefore3: str | None = None


class PartitionTransactions(NamedTuple):
    """A partition, behind all its transactions.

    `lastStableOffset` is where a read_committed consumer has to stop once everything is replicated: at the first offset
    of the transaction that is open for longest (`heldBy`, its producer id), else at the log end; None for segments that
    are not the newest. `highWatermark` is as replication-offset-checkpoint has it, which is written every 5 s; no
    consumer gets beyond it either. `segments` were read, of which `damages` stretches could not be taken into account;
    `seededFrom` is the snapshot that told which transactions were open where the first of them begins.
    """

    source: str
    topic: str | None
    partition: int | None
    path: str
    logStartOffset: int | None
    logEndOffset: int | None
    highWatermark: int | None
    lastStableOffset: int | None
    heldBy: int | None
    committed: int
    aborted: int
    open: int
    hanging: int
    emptyMarkers: int
    segments: int
    damages: int
    seededFrom: str | None


class CoordinatorTransaction(NamedTuple):
    """What a coordinator said last of a transactional id: the record at `offset` of the directory `path`.
    `partitions` (topic-partition) are those that have no marker yet. `age` is that of its transaction, None without
    one."""

    source: str
    path: str
    offset: int
    transactionalId: str
    producerId: int
    producerEpoch: int
    state: str
    transactionTimeoutMs: int
    transactionStartTimestampMs: int | None
    transactionLastUpdateTimestampMs: int | None
    age: int | None
    partitions: tuple[str, ...]


class Difference(NamedTuple):
    """Where the log and the coordinator say different things of a transaction of `producerId`. `offset` is the
    marker's, None where there is none. The coordinator's record is at `coordinatorOffset` of `coordinator`."""

    source: str
    topic: str | None
    partition: int | None
    transactionalId: str
    producerId: int
    producerEpoch: int
    offset: int | None
    file: str
    position: int
    coordinator: str
    coordinatorOffset: int
    message: str


LIVE, EXPIRED, UNKNOWN = "live", "expired", "unknown"


class Producer(NamedTuple):
    """A producer id in one partition: what its batches on the disk say, and what a broker that starts on this disk
    would know of it.

    On the disk: `firstEpoch` to `lastEpoch`, its data from `firstOffset` to `lastDataOffset` (of `lastBatchTimestamp`),
    and how many of its data batches did not follow the one before: a gap in the sequences, a sequence that had come
    already, an older epoch (`fenced`), a new epoch that does not begin with sequence 0.

    In the broker, by the names of ProducerSnapshot: `epoch` to `currentTxnFirstOffset`, None where it would not know
    the producer. `state`: live; expired: idle for producer.id.expiration.ms, so that the broker drops it; unknown: on
    the disk, and not in the snapshot that the broker begins with (`stateFrom`; "log" where it replays all).
    `inSnapshot` tells whether that snapshot has it, None without one.

    `file` and `position` are its last batch or marker on the disk; the entry of the snapshot, if there is none.
    """

    source: str
    topic: str | None
    partition: int | None
    transactionalId: str | None
    producerId: int
    firstEpoch: int | None
    lastEpoch: int | None
    batches: int
    records: int
    bytes: int
    firstOffset: int | None
    lastDataOffset: int | None
    firstTimestamp: int | None
    lastBatchTimestamp: int | None
    commits: int
    aborts: int
    gaps: int
    duplicates: int
    fenced: int
    epochStarts: int
    state: str
    epoch: int | None
    lastSequence: int | None
    lastOffset: int | None
    offsetDelta: int | None
    timestamp: int | None
    coordinatorEpoch: int | None
    currentTxnFirstOffset: int | None
    stateFrom: str
    inSnapshot: bool | None
    idle: int | None
    file: str
    position: int
    remarks: tuple[str, ...] = ()


class ProducerEvent(NamedTuple):
    """Something in a producer's history, at `offset`. `event`: first (its first batch here), epoch (its data have a new
    epoch), gap, duplicate, fenced (an older epoch), epochStart (a new epoch that does not begin with sequence 0),
    forgotten (idle for so long that a broker had forgotten it), COMMIT or ABORT (a marker). `baseSequence` and
    `lastSequence` are the batch's, -1 for a marker."""

    source: str
    topic: str | None
    partition: int | None
    offset: int
    timestamp: int | None
    transactionalId: str | None
    producerId: int
    producerEpoch: int
    event: str
    baseSequence: int
    lastSequence: int
    message: str
    file: str
    position: int


class PartitionProducers(NamedTuple):
    """A partition, behind all its producers. `stateFrom`: the snapshot that a broker begins with, as of `stateOffset`,
    and replays the log behind; "log" where it replays all; "nothing" where it forgets all, or the newest segment was
    not asked for. `damages`: stretches that could not be taken into account; `forgotten`: producers for which there was
    no room."""

    source: str
    topic: str | None
    partition: int | None
    path: str
    logStartOffset: int | None
    logEndOffset: int | None
    producers: int
    live: int
    expired: int
    unknown: int
    gaps: int
    duplicates: int
    fenced: int
    epochStarts: int
    snapshotOnly: int
    stateFrom: str
    stateOffset: int | None
    segments: int
    damages: int
    forgotten: int


class Note(NamedTuple):
    """What could not be read, or not be taken into account. `source`: a path; empty where the message says it."""

    source: str
    message: str
