"""What `kdump.transactions` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: the disk does not say.
`file` and `position` are the evidence: where it stands that it is so."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import (
    BYTES,
    EPOCH_MS,
    FILE_BYTE,
    MS,
    OFFSET,
    PATH,
    TEXT,
    Doc,
    PathText,
    Shown,
    UnknownKeys,
    answer,
    columns,
)
from kdump.questions.partition_fields import PartitionNumber, ProducerId, SourcePath, TopicName, TransactionalId
from kdump.state.unknown_offsets import LogEndOffset, LogStartOffset

COMMITTED, ABORTED, OPEN, HANGING, LOST = "committed", "aborted", "open", "hanging", "lost"


def _style(value: Transaction) -> str:
    return {ABORTED: "dim", OPEN: "torn", HANGING: "bad", LOST: "bad"}.get(value.state, "")


@columns(
    place=Shown("partition", 8, after="", only="partition", cell=lambda each: f"{each.topic}-{each.partition}"),
)
@answer("transaction", _style)
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
            "list it as Ongoing), lost (no marker that can be read, and a broker does not have it open)"
        ),
        Shown(),
    ]
    firstOffset: Annotated[
        int | None, Doc("first offset of its data; null if unknown", OFFSET), Shown("first", after="")
    ] = None
    lastOffset: Annotated[
        int | None,
        Doc("last offset of its data; null if there is none on the disk", OFFSET),
        Shown("last", after="firstOffset"),
    ] = None
    records: Annotated[int, Doc("number of its records on the disk"), Shown(rank=6, after="lastOffset")] = 0
    batches: Annotated[int, Doc("number of its data batches on the disk")] = 0
    bytes: Annotated[int, Doc("size of its data batches on the disk", BYTES)] = 0
    begun: Annotated[int | None, Doc("largest timestamp of its first batch", EPOCH_MS), Shown(rank=5)] = None
    lastTimestamp: Annotated[int | None, Doc("largest timestamp of its last batch", EPOCH_MS)] = None
    ended: Annotated[int | None, Doc("timestamp of the marker", EPOCH_MS), Shown(rank=4)] = None
    age: Annotated[int | None, Doc("time since begun, if it has not ended", MS)] = None
    idle: Annotated[int | None, Doc("time since its last batch, if it has not ended", MS)] = None
    markerOffset: Annotated[
        int | None, Doc("offset of its COMMIT or ABORT marker", OFFSET), Shown("marker", 8, after="state")
    ] = None
    markerEpoch: Annotated[
        int | None, Doc("epoch of the marker; since transaction version 2, higher than that of the data")
    ] = None
    coordinatorEpoch: Annotated[int | None, Doc("epoch of the coordinator that wrote the marker")] = None
    inTxnIndex: Annotated[
        bool | None,
        Doc("whether the .txnindex contains it; null if not aborted, or without a valid index"),
        Shown("in .txnindex", 3),
    ] = None
    file: Annotated[PathText, Doc("file that shows its start: a segment, a .snapshot, a .txnindex")] = ""
    position: Annotated[int, Doc("position of its first batch, or of the entry", FILE_BYTE)] = 0
    markerFile: Annotated[PathText | None, Doc("segment that contains the marker")] = None
    markerPosition: Annotated[int | None, Doc("position of the marker", FILE_BYTE)] = None
    remarks: Annotated[
        tuple[str, ...],
        Doc("what is uncertain, and why; for an open one, the coordinator's state"),
        Shown(rank=8, least=24, blank=0, cuts=TEXT),
    ] = ()
    outcome: Annotated[
        str | None,
        Doc(
            "COMMIT or ABORT: how the coordinator of a hanging one ended it, without a marker here; null if not certain"
        ),
    ] = None
    abort: Annotated[
        str | None, Doc("command that aborts it, if no coordinator will, and its outcome is not COMMIT")
    ] = None
    abortBefore3: Annotated[
        str | None, Doc("the same for brokers before 3.0, if the disk does not state the release")
    ] = None


def _partition_style(value: PartitionTransactions) -> str:
    return "bad" if value.hanging else "torn" if value.open or value.damages else ""


@answer("transactionPartition", _partition_style)
class PartitionTransactions(NamedTuple):
    """A partition, after all its transactions. `lastStableOffset` is the first offset of the transaction that is open
    for longest, but not below the batch with `logStartOffset`, else `startLogEndOffset`; None for segments that are not
    the newest. `highWatermark` is written every 5 s; no consumer gets beyond it either."""

    source: Annotated[SourcePath, Shown("in", least=12, cuts=PATH)]
    topic: Annotated[TopicName, Shown()]
    partition: Annotated[PartitionNumber, Shown()]
    path: Annotated[PathText, Doc("partition directory, or the file that was passed")]
    logStartOffset: Annotated[LogStartOffset, Shown("log start", 4, after="hanging")]
    logEndOffset: Annotated[LogEndOffset, Shown("log end", 7, after="lastStableOffset")]
    startLogEndOffset: Annotated[
        int | None,
        Doc(
            "the same as logEndOffset; null if the newest segment was not selected",
            OFFSET,
        ),
    ]
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
    aborted: Annotated[
        int,
        Doc("number of transactions with an ABORT marker, or of which damage has left only the entry in the .txnindex"),
        Shown(),
    ]
    open: Annotated[int, Doc("number of transactions without a marker"), Shown()]
    hanging: Annotated[
        int,
        Doc("number of transactions that their coordinator does not list as Ongoing; not counted in open"),
        Shown(rank=8, blank=0),
    ]
    lost: Annotated[
        int,
        Doc(
            "number of transactions whose outcome is lost: no marker can be read, and a broker does not have them open"
        ),
        Shown(rank=6, blank=0),
    ]
    belowLogStart: Annotated[
        int,
        Doc("number of transactions without a marker below logStartOffset; no broker has them, and no row lists them"),
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


def _age_style(value: CoordinatorTransaction) -> str:
    return "torn" if value.age is not None else ""


@answer("transactionCoordinator", _age_style)
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


@answer("transactionDifference", problem=lambda value: True)
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
    message: Annotated[str, Doc("explanation"), Shown(least=24, cuts=TEXT)]
