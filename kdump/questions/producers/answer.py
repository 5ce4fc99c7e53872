"""What `kdump.producers` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: the disk does not say.
`file` and `position` are the evidence: where it stands that it is so."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, MS, OFFSET, PATH, TEXT, Doc, PathText, Shown, answer
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.questions.partition_fields import (
    KafkaVersion,
    PartitionNumber,
    ProducerId,
    SourcePath,
    TopicName,
    TransactionalId,
)
from kdump.state.unknown_offsets import LogEndOffset, LogStartOffset

LIVE, EXPIRED, UNKNOWN = "live", "expired", "unknown"

Gaps = Annotated[int, Doc("number of data batches before which sequence numbers are missing")]
Duplicates = Annotated[int, Doc("number of data batches with repeated sequence numbers")]
Fenced = Annotated[int, Doc("number of data batches with an older epoch than an earlier batch")]
EpochStarts = Annotated[int, Doc("number of new epochs that do not start with sequence 0")]
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


def _is_broken(value: Producer | PartitionProducers) -> bool:
    return bool(value.gaps or value.duplicates or value.fenced or value.epochStarts)


def _style(value: Producer) -> str:
    if _is_broken(value):
        return "bad"
    open_from = value.currentTxnFirstOffset
    return "torn" if open_from is not None and open_from >= 0 else "" if value.state == "live" else "dim"


@answer("producer", _style)
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
    remarks: Annotated[
        tuple[str, ...], Doc("what is unusual, and why"), Shown(rank=6, least=24, blank=0, cuts=TEXT)
    ] = ()


def _event_style(value: ProducerEvent) -> str:
    is_bad = value.event in ("gap", "duplicate", "fenced", "epochStart")
    return "bad" if is_bad else "control" if value.event in ("COMMIT", "ABORT") else ""


@answer("producerEvent", _event_style)
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
    message: Annotated[str, Doc("explanation"), Shown(least=24, after="position", cuts=TEXT)]
    file: Annotated[PathText, Doc("path of the segment")]
    position: Annotated[int, Doc("position of the batch", FILE_BYTE), Shown("at byte", 3)]


def _partition_style(value: PartitionProducers) -> str:
    return "bad" if _is_broken(value) else "torn" if value.damages else ""


@answer("producerPartition", _partition_style)
class PartitionProducers(NamedTuple):
    """A partition, after all its producers. `stateFrom` is "nothing" if a broker loads no producer state, or if the
    newest segment was not selected."""

    source: Annotated[SourcePath, Shown("in", least=12, cuts=PATH)]
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
