"""Answers of `kdump rescue`: the copies, what was done with each record, what was invented, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, OFFSET, PATH, Doc, PathText, Shown, answer

if TYPE_CHECKING:
    from kdump.questions.rescue.first_start import FirstStart

USED, SAME, BEHIND, DIVERGES, AHEAD, EMPTY = "used", "same", "behind", "diverges", "ahead", "empty"
KEPT, LEFT_OUT, DEPENDENT, UNCOMMITTED, AFTER, DAMAGED, OTHER = (
    *("kept", "leftOut", "dependent", "uncommitted", "afterMoment", "damaged", "otherHistory"),
)


CONTROLLER_STEP = "controller"
"""The step that puts a new metadata log in place."""


class RescueError(Exception):
    """The metadata cannot be rescued from these paths, or not without a decision; the message says why, and what to do.
    Nothing has been written."""


@answer("rescueCopy")
@dataclass
class RescueCopy:
    """A copy of the metadata log on the disks."""

    path: Annotated[PathText, Doc("log directory"), Shown("log directory", least=20, after="ownOffsets", cuts=PATH)]
    nodeId: Annotated[int | None, Doc("node.id of its meta.properties"), Shown("node")]
    state: Annotated[
        str,
        Doc(
            "used (the state is taken from it), same, behind (it ends earlier), diverges (it has other records after "
            "sameUntil), ahead (it has more records, and is not used), damaged (what it has from endOffset on is not "
            "known), empty (neither a segment nor a snapshot)"
        ),
        Shown(),
    ]
    snapshot: Annotated[int | None, Doc("end offset of its newest valid metadata snapshot", OFFSET)] = None
    endOffset: Annotated[int | None, Doc("offset after its last record", OFFSET), Shown("end offset")] = None
    leaderEpoch: Annotated[int | None, Doc("last leader epoch in it"), Shown("epoch")] = None
    endTimestamp: Annotated[int | None, Doc("timestamp of its last record", EPOCH_MS)] = None
    sameUntil: Annotated[
        int | None,
        Doc("offset up to which (exclusive) its leader epochs are those of the copy that is used", OFFSET),
        Shown("same until"),
    ] = None
    ownOffsets: Annotated[
        int, Doc("number of offsets that it has after that", "offsets"), Shown("only here", blank=0)
    ] = 0
    ownEpochs: Annotated[tuple[int, ...], Doc("leader epochs of these")] = ()
    problems: Annotated[list[PathText], Doc("what in it cannot be read or applied")] = field(default_factory=list)


@answer("rescueRecord")
class RescueRecord(NamedTuple):
    """What was done with the records of the metadata log from one offset to another. Those of the copy that is used
    cover it without gaps, in order."""

    fate: Annotated[
        str,
        Doc(
            "kept; leftOut (a node cannot apply it, or it was named with --leave-out); dependent (it cannot be applied "
            "without one that is left out); uncommitted (in a metadata transaction that was aborted, or did not end); "
            "afterMoment (after --as-of); damaged (the end of the copy, which a node truncates); otherHistory "
            "(in another copy only)"
        ),
    ]
    offset: Annotated[int | None, Doc("first offset; null: a record in the metadata snapshot", OFFSET)]
    lastOffset: Annotated[int | None, Doc("last offset; null: unknown", OFFSET)]
    file: Annotated[PathText, Doc("file, or log directory, that has them")]
    record: Annotated[str, Doc("type of the record; empty for several types")] = ""
    about: Annotated[str, Doc("topic, partition, broker or setting that it is about")] = ""
    reason: Annotated[str, Doc("why it is not kept: the exception of a node")] = ""
    because: Annotated[int | None, Doc("offset of the record without which it cannot be applied", OFFSET)] = None
    dependents: Annotated[int, Doc("number of records that are left out because this one is")] = 0
    later: Annotated[int, Doc("number of later records about the same that are kept, and applied without it")] = 0


@answer("rescueTopic")
@dataclass
class RescueTopic:
    """A topic that --from-data rebuilds."""

    topic: Annotated[str, Doc("name")]
    topicId: Annotated[str, Doc("topic ID")]
    idFrom: Annotated[str, Doc("partition.metadata, configs (the file of --configs) or made (nothing states it)")]
    partitions: Annotated[int, Doc("number of partitions")]
    lost: Annotated[list[int], Doc("partitions without a copy: written as empty ones")]
    replicas: Annotated[int, Doc("largest number of replicas of a partition")]
    fewest: Annotated[int, Doc("smallest number of replicas of a partition")]
    configs: Annotated[dict[str, str], Doc("topic configs that are written")]
    shown: Annotated[list[str], Doc("what these configs are taken from, and what else the logs show")]


@answer("rescueLoss")
class RescueLoss(NamedTuple):
    """Records of a replica that its partition's leader does not have, or the whole of a partition."""

    topic: Annotated[str, Doc("topic")]
    partition: Annotated[int, Doc("number of the partition")]
    leader: Annotated[int, Doc("node that will lead: of the copies, the one with the highest leader epoch, then end")]
    leaderEndOffset: Annotated[
        int | None, Doc("end of its log; null: it has no copy and begins with an empty log", OFFSET)
    ]
    nodeId: Annotated[int | None, Doc("node whose records are lost; null: of every node, because no copy was found")]
    path: Annotated[PathText | None, Doc("its partition directory")]
    firstOffset: Annotated[int | None, Doc("first offset that is lost; null: unknown", OFFSET)]
    lastOffset: Annotated[int | None, Doc("last one; null: unknown", OFFSET)]
    committed: Annotated[
        bool | None, Doc("whether some of them are below a high watermark that is known; null: unknown")
    ]
    reason: Annotated[str, Doc("why")]


@answer("rescueDirectory")
class RescueDirectory(NamedTuple):
    """A partition directory that is not used as it is, or whose node needs a command before it starts."""

    path: Annotated[PathText, Doc("the directory")]
    nodeId: Annotated[int, Doc("node")]
    state: Annotated[
        str,
        Doc(
            "stray, delete, future (the broker has set it aside, or deletes or moves it), otherId (of another topic of "
            "this name), otherName (another topic has its ID), twice (the node has another one), noId (it has no valid "
            "partition.metadata), used (a stray or future one that is rebuilt)"
        ),
    ]
    topicId: Annotated[str | None, Doc("topic ID in its partition.metadata")]
    reason: Annotated[str, Doc("why, and what becomes of it")]
    command: Annotated[PathText | None, Doc("shell command that the node needs; null: none")] = None


@answer("rescueUnknown")
class RescueUnknown(NamedTuple):
    """Something that only the metadata had, and that --from-data cannot know."""

    what: Annotated[str, Doc("what it is")]
    reason: Annotated[str, Doc("what follows until it is set again")]
    command: Annotated[str, Doc("command that sets it again, with the values to fill in in capitals")]


@answer("rescueInvention")
class RescueInvention(NamedTuple):
    """Something that is written and is in no copy."""

    what: Annotated[str, Doc("what it is")]
    was: Annotated[Any, Doc("value in the copy that is used; null if it has none")]
    now: Annotated[Any, Doc("value that is written")]
    reason: Annotated[str, Doc("why")]


@answer("rescueController")
class RescueController(NamedTuple):
    """A log directory that is written for a controller."""

    nodeId: Annotated[int, Doc("node.id")]
    directory: Annotated[PathText | None, Doc("its new log directory; null with --dry-run")]
    directoryId: Annotated[str | None, Doc("directory.id in its meta.properties; null before Kafka 3.7")]
    endpoint: Annotated[str | None, Doc("host and port; null if neither the log nor --controller states it")]
    found: Annotated[PathText | None, Doc("log directory with its old copy of the metadata; null if it was not found")]


@answer("rescueStep")
class RescueStep(NamedTuple):
    """What you do next, in order."""

    step: Annotated[str, Doc("stop, check, controller, broker, start or look")]
    text: Annotated[PathText, Doc("what to do and why")]
    command: Annotated[PathText | None, Doc("shell command; null if there is none")] = None


@answer("rescueSummary")
@dataclass(kw_only=True)
class RescueSummary:
    """The state that is rescued."""

    clusterId: Annotated[str, Doc("cluster ID")]
    release: Annotated[str, Doc("release of Kafka whose rules apply")]
    source: Annotated[PathText | None, Doc("log directory of the copy that is used; null with --from-data")] = None
    out: Annotated[PathText | None, Doc("directory that was written; null with --dry-run")]
    ledger: Annotated[PathText | None, Doc("path of the ledger in it")]
    snapshot: Annotated[int | None, Doc("end offset of the metadata snapshot that the replay starts with", OFFSET)]
    endOffset: Annotated[int, Doc("offset after the last record that is replayed", OFFSET)]
    endTimestamp: Annotated[int | None, Doc("timestamp of that record", EPOCH_MS)]
    leaderEpoch: Annotated[int, Doc("last leader epoch of that copy")]
    damagedOffset: Annotated[
        int | None, Doc("offset from which on the copy is damaged up to its end, where a node truncates it", OFFSET)
    ] = None
    committedOffset: Annotated[
        int | None,
        Doc(
            "everything below is known to be committed, by snapshots and leader epochs or a majority of the voters' "
            "copies; what is above is kept, but may never have been",
            OFFSET,
        ),
    ] = None
    newOffset: Annotated[int, Doc("end offset of the snapshot that is written, at which the new log starts", OFFSET)]
    newEpoch: Annotated[int, Doc("its leader epoch, and that of quorum-state")]
    metadataVersion: Annotated[str | None, Doc("release that metadata.version stands for")]
    kraftVersion: Annotated[int, Doc("0: the quorum's voters are static; 1: dynamic")]
    records: Annotated[int, Doc("number of records in the snapshot that is written, without control records")] = 0
    leftOut: Annotated[int, Doc("number of records that are left out, without their dependents")] = 0
    dependents: Annotated[int, Doc("number of records that cannot be applied without those")] = 0
    brokers: Annotated[int, Doc("number of registered brokers")]
    topics: Annotated[int, Doc("number of topics")]
    partitions: Annotated[int, Doc("number of partitions")]
    configs: Annotated[int, Doc("number of dynamic configs")]
    acls: Annotated[int, Doc("number of ACLs")]
    scramCredentials: Annotated[int, Doc("number of SCRAM credentials")]
    fromData: Annotated[bool, Doc("whether it is rebuilt from the partition directories (--from-data)")] = False
    lostPartitions: Annotated[int, Doc("number of partitions without any copy, which begin empty (--from-data)")] = 0
    lostOffsets: Annotated[
        int, Doc("number of offsets that replicas have and the leaders do not (--from-data)", "offsets")
    ] = 0
    notUsed: Annotated[
        int, Doc("number of partition directories that are not used, or whose topics the state does not have")
    ] = 0
    losesAtStart: Annotated[
        int,
        Doc(
            "offsets that replicas lose at the first start of the brokers with this state, in the worst order",
            "offsets",
        ),
    ] = 0
    losesLeast: Annotated[int, Doc("the same in the order of the steps", "offsets")] = 0
    worstAtStart: Annotated[
        PathText, Doc("what the replica that loses most loses then, and why; empty if none loses any")
    ] = ""
    notes: Annotated[list[PathText], Doc("other remarks")] = field(default_factory=list)


@dataclass
class Rescue:
    """What was, or with `out` None would be, rescued."""

    summary: RescueSummary
    copies: list[RescueCopy]
    records: list[RescueRecord]
    inventions: list[RescueInvention]
    controllers: list[RescueController]
    steps: list[RescueStep] = field(default_factory=list)
    losses: list[RescueLoss] = field(default_factory=list)
    topics: list[RescueTopic] = field(default_factory=list)
    directories: list[RescueDirectory] = field(default_factory=list)
    unknowns: list[RescueUnknown] = field(default_factory=list)
    firstStart: FirstStart | None = None
    """What the first start of the brokers costs; None with --from-data, where it is in `losses`."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing that was found on the disks is lost."""
        summary = self.summary
        lost = summary.leftOut or summary.dependents or summary.fromData or summary.notUsed
        lost = lost or summary.damagedOffset is not None or summary.losesAtStart
        return not (lost or any(copy.ownOffsets or copy.state == DAMAGED for copy in self.copies))

    @property
    def ledger(self) -> list[Any]:
        """What is written to the ledger."""
        return [*self.records, *self.losses, *self.topics, *self.directories, *self.unknowns, *self.inventions]
