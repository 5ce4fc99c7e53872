"""What `kdump.transactions` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: the disk does not say.
`file` and `position` are the evidence: where it stands that it is so."""

from __future__ import annotations

from typing import NamedTuple

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


class Note(NamedTuple):
    """What could not be read, or not be taken into account. `source`: a path; empty where the message says it."""

    source: str
    message: str
