"""What a startup does, as values: steps, truncations, failures, and the plan of a partition, a log directory and a
broker."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, INLINE, NAME, NESTED, OFFSET, TEXT, Doc, PathText, Shown, answer, columns
from kdump.cluster.release_evidence import OPTION, ChosenRelease
from kdump.format.count_text import size_text
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.errors import CorruptRecord, FullIndex, InvalidOffset, KafkaError, RejectedBatch, UnreadableMessage
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.problems.advice import NO_FACTS, NO_VALUES
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.course import Course, Part, StartupEvent, UnansweredStep
from kdump.state.other_replicas import OtherReplicas, replica_facts
from kdump.state.releases import STORAGE_EXCEPTION
from kdump.text import host_word

__all__ = ["RestartPlan"]

EXIT, OFFLINE = "exit", "offline"
"""Effect of a failure: the broker exits, or the log directory goes offline; a broker without another one then exits,
too."""

CLEAN, RECOVERY, DEGRADED, STOPPED, UNKNOWN = "clean", "recovery", "degraded", "stopped", "unknown"
"""Verdicts: the broker starts without recovery; it starts and recovers logs; it starts without some log directory; it
does not start; whether it starts is not known."""

TRUNCATED, DELETED, HIDDEN = "truncated", "deleted", "hidden"
"""What happens to bytes: truncated from a segment; deleted with their segment; left in the file after the log end,
where no consumer reads them."""

USUAL = ("recover", "scan", "write", "sweep")
"""Kinds of steps that are part of every startup."""


OF_NEWER_RELEASE = Problem("startup-file-of-newer-release")


class NewerLevelDoubt(str):
    """A doubt about a level that only a release newer than the newest known one has. RestartPlan.newer has it, too."""


class StartupFailure(NamedTuple):
    """Why the broker does not start, or a log directory goes offline. `file`: the file at which it fails; `position`: a
    byte of it."""

    problem: Problem
    kind: Annotated[str, Doc()]
    file: Annotated[PathText, Doc()]
    exception: Annotated[PathText, Doc()]
    """The exception as the broker's log will show it."""
    position: Annotated[int | None, Doc(after="file")] = None
    offset: Annotated[int | None, Doc(after="position")] = None
    newer: Annotated[PathText, Doc()] = ""
    """What only a newer release than the newest known one writes; empty if that is not the reason."""
    of_newer: bool = False
    """Whether only a newer release writes the file: no older version is to be written over it."""
    either: tuple[str, ...] = ()
    """The exceptions of which the log will show one; empty if it shows `exception`."""

    @property
    def code(self) -> Annotated[str, Doc(after="kind")]:
        """Its code in the catalogue of problems."""
        return self.problem.code

    @property
    def message(self) -> Annotated[PathText, Doc(after="offset")]:
        return self.problem.title

    @property
    def advice(self) -> Problem:
        """The problem whose actions are to be done."""
        return OF_NEWER_RELEASE if self.of_newer else self.problem

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do, in order."""
        return self.advice.actions

    @property
    def remedy(self) -> Annotated[PathText, Doc(after="exception")]:
        return ". ".join(self.actions)

    def given(self, facts: Mapping[str, bool | None]) -> StartupFailure:
        """Return the failure with more facts; what it has stated itself stays."""
        return self._replace(problem=self.problem.given(facts))


class StartupFailed(Exception):
    """Raised when the replay of a startup reaches a StartupFailure."""

    def __init__(self, stop: StartupFailure) -> None:
        super().__init__(stop.message)
        self.stop = stop


def failure(
    kind: str,
    code: str,
    file: str,
    exception: str,
    position: int | None = None,
    offset: int | None = None,
    *,
    case: str = "",
    newer: str = "",
    facts: Mapping[str, bool | None] = NO_FACTS,
    values: Mapping[str, object] = NO_VALUES,
    **more: object,
) -> StartupFailure:
    """Return the failure with this code of the catalogue; `values`, `more`: of the fields in its texts, in which
    {file}, {name} and {position} are its own."""
    own = {"file": file, "SEGMENT": file, "DIR": os.path.dirname(file) or os.curdir}
    values = {**own, "name": os.path.basename(file), "position": position, **values, **more}
    return StartupFailure(Problem(code, values, facts, case), kind, file, exception, position, offset, newer)


CODES: dict[type[KafkaError], str] = {
    CorruptRecord: "startup-batch-corrupt",
    UnreadableMessage: "startup-message-unreadable",
    InvalidOffset: "startup-offset-decreases",
    FullIndex: "startup-index-full",
    RejectedBatch: "startup-batch-rejected",
}
SMALL_FILES = {
    "leader-epoch-checkpoint": "startup-epochs-unreadable",
    "partition.metadata": "startup-topic-id-unreadable",
}


def startup_failure(error: KafkaError, release: KafkaRelease = NEWEST) -> StartupFailure:
    """Return the stop for an exception that nothing handles while a log is loaded: the broker exits."""
    file, code = error.file, CODES.get(type(error), "")
    partition = os.path.dirname(file)
    topic = os.path.basename(partition).rpartition("-")[0]
    values = {"DIR": partition or os.curdir, "TOPIC": topic, "problem": error, "root": os.path.dirname(partition)}
    if not isinstance(error, BadLine):
        return failure(EXIT, code, file, error.exception, error.position, error.offset, values=values)
    name = os.path.basename(file)
    newer = f"{name} {error.newer}" if error.newer else ""
    kind = EXIT if error.is_number else OFFLINE
    facts = {"versionOnly": error.is_version}
    stop = failure(
        kind, SMALL_FILES[name], file, error.exception, error.position, newer=newer, facts=facts, values=values
    )
    return storage_stop(stop, release)


def storage_stop(stop: StartupFailure, release: KafkaRelease) -> StartupFailure:
    """Return the stop for an IOException that reading a partition's small file has turned into a KafkaStorageException:
    releases that do not handle it while they load logs exit."""
    return stop._replace(kind=EXIT) if STORAGE_EXCEPTION.applies(release) else stop


class Step(NamedTuple):
    """Something that startup does to a file. `kind`: recover (a segment is re-read and its indexes are rebuilt), scan
    (a segment is read for its producers), truncate, delete, sweep (delete a file that was already due for deletion),
    rename, rebuild (an index, outside recovery), split, write (a snapshot or a checkpoint), create (a file, or the
    directory of a missing partition). `size` in bytes."""

    kind: str
    file: PathText
    position: int | None
    offset: int | None
    size: int
    reason: PathText


@dataclass
class RemovedBytes:
    """Bytes that are no longer part of the log after startup. `kind`: truncated, deleted or hidden.

    `batches`, `records` and `soundBytes` count what is valid among them: it is lost only because of what precedes it.
    In deleted segments only headers are read, and no checksum is verified.

    `tornRecords`, `tornOffset` and `tornLastOffset` are those of an incomplete batch at the end, by its header; None if
    that is not complete either.

    `damagedBatches` are complete according to their headers, but their checksum does not match; their records are not
    counted in `records`, but in `damagedRecords`, as far as the batch has room for as many. `offset` and `lastOffset`:
    the offsets in the headers of valid and damaged batches, None if there are none."""

    kind: str
    file: PathText
    position: int
    size: int
    offset: int | None = None
    lastOffset: int | None = None
    batches: int = 0
    records: int | None = 0
    soundBytes: int = 0
    damagedBatches: int = 0
    damagedRecords: int = 0
    reason: PathText = ""
    tornRecords: int | None = 0
    tornOffset: int | None = None
    tornLastOffset: int | None = None

    def add(self, batches: int, records: int | None, size: int, first: int, last: int) -> None:
        """Count valid batches with the offsets first..last. `records`: None if their number is unknown."""
        self.batches += batches
        self.records = None if self.records is None or records is None else self.records + records
        self.soundBytes += size
        self.span(first, last)

    def span(self, first: int, last: int) -> None:
        """Include the offsets of a header, unless they are impossible."""
        if 0 <= first <= last:
            self.offset = first if self.offset is None else min(self.offset, first)
            self.lastOffset = last if self.lastOffset is None else max(self.lastOffset, last)

    @property
    def loses(self) -> bool:
        """Whether records are lost. An incomplete tail contains none, unless it stays in the file: consumers cannot
        read what is appended after it."""
        return bool(self.batches or self.damagedBatches or self.kind == HIDDEN)


Steps = Annotated[
    list[Step],
    Doc(
        f"what startup does to files, each {NESTED}; kind: recover (re-read a segment and rebuild its indexes), scan "
        "(read a segment for producer state), truncate, delete, sweep (delete a file already marked for deletion), "
        "rename, rebuild, split, write, create; position and offset are null if they do not apply"
    ),
]
STOPS = (
    f"failures, each {NESTED}; kind: exit (the broker exits) or offline (the log directory goes offline); exception: "
    "what the broker's log will show; remedy: what to do; newer: what only a release newer than the newest known one "
    "writes, if that is why"
)
Stops = Annotated[list[StartupFailure], Doc(STOPS)]
COPY_FIRST = "paths to copy elsewhere before startup"
UNREAD = "what could not be read, and why; the plan may be wrong there"
UnreadTexts = Annotated[list[PathText], Doc(UNREAD)]


def created_segments(log: PartitionPlan) -> list[str]:
    """Return the segments that startup creates."""
    return [step.file for step in log.steps if step.kind == "create" and step.file.endswith(".log")]


def _remarks(log: PartitionPlan) -> str:
    """Return what is unusual, in few words."""
    remarks = []
    if log.stops:
        remarks.append("startup fails")
    if log.stray:
        remarks.append("deleted as stray" if log.strayDeleted else "becomes stray")
    if log.missing:
        remarks.append("missing")
    if log.otherTopic:
        remarks.append("not served")
    if any(event.code == "startup-retention" for event in log.later):
        remarks.append("retention deletes")
    if log.state == "delete":
        remarks.append("deleted")
    words = {"truncated": f"truncated to offset {log.logEndOffset}", "deleted": "segments deleted"}
    words["hidden"] = f"ends early at offset {log.logEndOffset}"
    for kind in dict.fromkeys(cut.kind for cut in log.cuts):
        remarks.append(words.get(kind, kind))
    kinds = [step.kind for step in log.steps]
    if created_segments(log) and not log.missing:
        remarks.append("segment created")
    if "rebuild" in kinds or (kinds.count("create") > len(created_segments(log)) and not log.missing):
        remarks.append("index or snapshot rebuilt")
    if "split" in kinds:
        remarks.append("segment split")
    if "rename" in kinds and not log.stray:
        remarks.append("renames files")
    if log.unread:
        remarks.append("not all was read")
    return ", ".join(remarks)


@columns(
    log=Shown(
        "partition", least=16, cell=lambda log: log.name + (f" ({log.state})" if log.state else ""), after="", cuts=NAME
    ),
    reads=Shown(rank=7, right=True, cell=lambda log: size_text(log.bytesRead) if log.bytesRead else ""),
    removed=Shown(rank=8, right=True, cell=lambda log: size_text(log.bytesCut) if log.bytesCut else ""),
    does=Shown(" ", 8, 20, cell=_remarks, cuts=TEXT),
)
@answer("restartPartition")
@dataclass
class PartitionPlan:
    """A partition directory. Offsets after startup are None if startup does not get that far."""

    topic: Annotated[PathText, Doc("topic, from the directory's name")]
    partition: Annotated[int, Doc("partition, from the directory's name")]
    path: Annotated[PathText, Doc("partition directory")]
    source: Annotated[PathText, Doc("log directory")]
    state: Annotated[
        str, Doc('suffix of the directory\'s name: "delete", "future" or "stray"; empty for a live partition')
    ]
    clean: Annotated[
        bool, Doc("whether the last shutdown was clean, so that nothing is recovered (except the metadata log)")
    ]
    recoveryPoint: Annotated[
        int | None,
        Doc("everything below is flushed; null if the checkpoint lacks it: everything is re-read", OFFSET),
        Shown(rank=4),
    ] = None
    highWatermark: Annotated[int | None, Doc("high watermark in replication-offset-checkpoint", OFFSET)] = None
    logStartOffset: Annotated[
        int | None, Doc("log start offset after startup; null if it fails before", OFFSET), Shown("logStart", 5)
    ] = None
    logEndOffset: Annotated[
        int | None, Doc("log end offset after startup; null if it fails before", OFFSET), Shown("logEnd")
    ] = None
    logEndIfRecovered: Annotated[
        int | None,
        Doc("if bytes stay after the log end: the log end offset if .kafka_cleanshutdown were missing", OFFSET),
    ] = None
    segments: Annotated[int, Doc("number of segments after startup"), Shown(rank=3)] = 0
    recovered: Annotated[
        int, Doc("number of segments that recovery re-reads and checks"), Shown("re-read", 8, blank=0)
    ] = 0
    bytesRead: Annotated[int, Doc("bytes of segments that startup reads, for recovery and producer state", BYTES)] = 0
    steps: Steps = field(default_factory=list)
    cuts: Annotated[
        list[RemovedBytes],
        Doc(
            f"byte ranges that are no longer part of the log, each {NESTED}; kind: truncated, deleted (with the "
            "segment) or hidden (left in the file after the log end); batches, records and soundBytes: what is valid "
            "among them and lost because of what precedes it (in deleted segments by headers alone); offset and "
            "lastOffset: from the headers of valid and damaged batches; records is null if compressed messages of "
            "magic 0 and 1 do not state it, or a stated number cannot be true"
        ),
    ] = field(default_factory=list)
    stops: Stops = field(default_factory=list)
    epochsBefore: Annotated[
        tuple[EpochEntry, ...] | None, Doc(f"entries of leader-epoch-checkpoint, each {NESTED}; null if it is missing")
    ] = None
    epochsAfter: Annotated[tuple[EpochEntry, ...] | None, Doc("the same after startup; null if it fails before")] = None
    coveredTo: int | None = None
    """End offset of the metadata snapshot at which an emptied metadata log starts again: what is lost below it is in
    the snapshot."""
    lastEpoch: int = 0
    """Leader epoch of a metadata log after startup: of its last record, or of the snapshot in whose place it starts."""
    topicId: str | None = None
    """Topic ID in its partition.metadata; None if it states none, or was not read."""
    otherTopic: tuple[str, str] | None = None
    """The other topic that has its topic ID, and the ID of its own; None if it is its own."""
    replicas: OtherReplicas | None = None
    assignedTo: tuple[int, ...] | None = None
    """The brokers that have the partition of a stray directory, by its topic ID; None if that is unknown."""
    newer: list[str] = field(default_factory=list)
    """What only a release newer than the newest known one writes, and does not stop the known ones by itself."""
    later: tuple[StartupEvent, ...] = ()
    """What happens to the loaded log within the hour."""
    openTransactions: dict[int, int] = field(default_factory=dict)
    """First offsets of the open transactions in the producer state at the log end, by producer ID."""
    hanging: tuple[int, ...] = ()
    """Producer IDs of those that no coordinator will end."""
    forgets: int | None = 0
    """Number of open transactions that the broker forgets because no producer snapshot is left; None if unknown."""
    problem: Problem | None = None
    """Why the directory is stray, or that it is missing; None if it is neither."""
    strayDeleted: Annotated[bool, Doc("whether the stray directory is deleted (Kafka 3.0 to 3.6), not renamed")] = False
    missing: Annotated[
        bool, Doc("whether the directory is missing, though the log directory had it: the broker creates an empty log")
    ] = False
    notes: Annotated[list[PathText], Doc("other remarks")] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Warnings of its log directory that only this log shows."""
    cause: tuple[str, int | None] | None = None
    """File and byte of what makes it lose records, if these begin elsewhere: a damaged batch or
    the checkpoint with its log start offset."""
    inRemoteStorage: bool | None = False
    """Whether remote storage has what it loses; None if it is unknown."""
    unread: UnreadTexts = field(default_factory=list)

    def again(self) -> PartitionPlan:
        """Return the plan without what was collected while the log was loaded."""
        return replace(
            self,
            steps=[],
            cuts=[],
            stops=[],
            newer=[],
            notes=[],
            problems=[],
            unread=[],
            later=(),
            forgets=0,
            cause=None,
        )

    def take_recovered(self, instead: PartitionPlan) -> None:
        """Note where a recovery would end the log, and the damage there."""
        self.logEndIfRecovered = instead.logEndOffset
        if instead.cuts and self.cause is None:
            self.cause = instead.cause or (instead.cuts[0].file, instead.cuts[0].position)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def stray(
        self,
    ) -> Annotated[
        PathText,
        Doc("why the broker treats the directory as stray and renames it; empty if it does not", after="epochsAfter"),
    ]:
        return self.problem.title if self.problem is not None and not self.missing else ""

    @property
    def remedy(
        self,
    ) -> Annotated[
        PathText, Doc("what to do if the directory is missing, or should not become stray", after="missing")
    ]:
        return ". ".join(self.actions)

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do if the directory is missing, or should not become stray, in order."""
        return self.problem.given(self.facts).actions if self.problem is not None else ()

    @property
    def facts(self) -> dict[str, bool | None]:
        """What it knows of the facts on which actions depend (problems/facts.toml). What the metadata on the disk does
        not state may be so by now."""
        return {
            "metadataLog": self.topic == METADATA_TOPIC,
            **replica_facts(self.replicas),
            "strayDeleted": self.strayDeleted,
            "inRemoteStorage": self.inRemoteStorage,
        }

    @property
    def loses(
        self,
    ) -> Annotated[
        bool, Doc("whether records are lost that are valid or that consumers may have read", after="bytesCut")
    ]:
        """Whether a live log loses records at startup that consumers have read or could have read, or will lose what is
        appended."""
        return not self.state and (any(map(self._loses, self.cuts)) or self.acknowledged > 0)

    def _loses(self, cut: RemovedBytes) -> bool:
        """Return True if records are lost with `cut` that no metadata snapshot covers."""
        covered = self.coveredTo is not None and cut.lastOffset is not None and cut.lastOffset < self.coveredTo
        return cut.loses and not covered

    @property
    def mayLoseTorn(self) -> bool:
        """Whether only an incomplete batch at the end is removed, which may have been acknowledged. A controller
        commits what it has flushed."""
        is_torn = any(cut.tornRecords != 0 for cut in self.cuts)
        return is_torn and not (self.loses or self.state or self.stray or self.topic == METADATA_TOPIC)

    @property
    def losesOnlyNew(self) -> bool:
        """Whether no existing record is lost, but bytes stay at the end, after which consumers cannot read what is
        appended."""
        gone = any(cut.batches or cut.damagedBatches for cut in self.cuts) or self.acknowledged > 0
        return self.loses and not gone

    @property
    def acknowledged(
        self,
    ) -> Annotated[int, Doc("number of lost offsets below the high watermark", "offsets", after="loses")]:
        """Number of offsets below the last checkpointed high watermark that the log no longer reaches: consumers may
        have read them."""
        if self.highWatermark is None or self.state or self.stray or (self.logEndOffset is None and not self.missing):
            return 0
        return max(0, self.highWatermark - (self.logEndOffset or 0))

    @property
    def otherReplicas(
        self,
    ) -> Annotated[
        tuple[int, ...] | None,
        Doc(
            "IDs of the other brokers with a replica, by the metadata on the disk; null if it does not state them",
            after="acknowledged",
        ),
    ]:
        return None if self.replicas is None else self.replicas.brokers

    @property
    def bytesCut(self) -> Annotated[int, Doc("bytes that are no longer part of the log", BYTES, after="bytesRead")]:
        return sum(cut.size for cut in self.cuts)

    @property
    def costs_nothing(self) -> bool:
        """Whether it becomes stray without a loss: it is empty, or its topic was deleted."""
        is_empty = self.logEndOffset is not None and self.logEndOffset == self.logStartOffset
        of_deleted = self.problem is not None and bool(self.problem.facts.get("ofDeleted"))
        return is_empty or (of_deleted and not self.strayDeleted)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to report except that it is loaded or recovered."""
        usual = all(step.kind in USUAL for step in self.steps)
        remarks = self.stops or self.stray or self.missing or self.notes or self.unread or self.later or self.otherTopic
        return usual and not (self.cuts or remarks or self.state)

    @property
    def copyFirst(self) -> Annotated[list[PathText], Doc(COPY_FIRST, after="remedy")]:
        """Paths to copy before the startup, if anything is lost here: the whole directory, because salvage needs all of
        it."""
        if self.strayDeleted:
            return [self.path]
        is_lost = self.loses or self.mayLoseTorn or (self.stops and self.cuts)
        return [self.path] if is_lost and not (self.stray or self.missing) else []

    @property
    def salvage(
        self,
    ) -> Annotated[
        PathText,
        Doc(
            "kdump command that saves the valid batches after the startup's truncation, and the readable records of "
            "damaged and incomplete ones; empty if there are none",
            after="copyFirst",
        ),
    ]:
        is_damaged = self.mayLoseTorn or any(cut.damagedBatches for cut in self.cuts)
        if not self.copyFirst or not (is_damaged or any(cut.batches for cut in self.cuts)):
            return ""
        records = " --damaged-records" if is_damaged else ""
        return f"kdump salvage {host_word(self.path)}{records} --out NEW-DIRECTORY"


def _is_without_metadata(log: PartitionPlan) -> bool:
    """Return whether a directory becomes stray because the metadata that assigned it is lost."""
    facts = log.problem.facts if log.stray and log.problem is not None else {}
    return bool(facts.get("metadataLost") and not facts.get("ofDeleted"))


MISSING, NO_DIRECTORY = "missing", "not a directory"
"""Why a directory cannot be listed; otherwise what the operating system says."""


@answer("restartDirectory")
@dataclass
class DirectoryPlan:
    """A log directory, or metadata.log.dir."""

    path: Annotated[PathText, Doc("the directory, from log.dirs or metadata.log.dir")]
    clean: Annotated[
        bool | None,
        Doc(
            "whether it was shut down cleanly; null for a controller's directory or metadata.log.dir, which have no "
            ".kafka_cleanshutdown, and if the directory failed",
            after="failed",
        ),
    ]
    logDir: Annotated[bool, Doc("whether its files show that log.dirs contains it")] = True
    metadataLogDir: Annotated[bool, Doc("whether the node's metadata log is there")] = False
    failed: Annotated[PathText, Doc("why it cannot be listed; empty if it can be")] = ""
    clusterId: Annotated[PathText | None, Doc("cluster.id in meta.properties")] = None
    nodeId: Annotated[int | None, Doc("node.id in meta.properties")] = None
    directoryId: Annotated[PathText | None, Doc("directory.id in meta.properties")] = None
    version: str | None = None
    """Version in meta.properties; None if it cannot be read."""
    owner: int | None = None
    """The node that has registered its directory.id, if that is another one than nodeId."""
    steps: Steps = field(default_factory=list)
    stops: Stops = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Problems that startup tolerates."""
    unread: UnreadTexts = field(default_factory=list)
    newPartitions: Annotated[
        int,
        Doc(
            "number of partitions that the metadata assigns to the directory, and that it did not have by its "
            "checkpoints, or had without records and as the only replica: the broker creates them with empty logs"
        ),
    ] = 0
    unlisted: list[str] = field(default_factory=list)
    """Other directories below the path that was given, which cannot be listed: each may be a log directory."""
    copies: list[str] = field(default_factory=list)
    """Given directories that are copies of it: no broker starts with both, and they are not examined."""

    @property
    def warnings(
        self,
    ) -> Annotated[
        list[PathText], Doc("problems that startup tolerates, but that you should know of before", after="stops")
    ]:
        return [problem.sentence for problem in self.problems]

    @property
    def is_offline(self) -> bool:
        """Whether the directory goes offline before its logs are loaded."""
        return any(stop.kind == OFFLINE for stop in self.stops)


LEADER, RESIGNED, CANDIDATE, FOLLOWER, UNATTACHED = "leader", "resigned", "candidate", "follower", "unattached"
"""States in which a node starts: leader at once, because it is the only voter; it led, and waits for an election; it
voted for itself, and asks for votes again; it follows the leader that it knew; it knows no leader."""


class QuorumVoter(NamedTuple):
    """A voter; its directory ID is null with kraft.version 0."""

    voterId: int
    voterDirectoryId: PathText | None


class Quorum(NamedTuple):
    """The quorum as this node's files state it."""

    kraftVersion: Annotated[int, Doc("finalized kraft.version")]
    voters: Annotated[list[QuorumVoter], Doc("the voters; empty if no file states them")]
    isVoter: Annotated[bool | None, Doc("whether this node is one of them; null if unknown")]
    hasOtherDirectory: Annotated[
        bool, Doc("whether its node ID is that of a voter, but its directory ID is not: then it is an observer")
    ]
    state: Annotated[str, Doc("state in which it starts: leader, resigned, candidate, follower, unattached")]
    leaderId: Annotated[int | None, Doc("leader in quorum-state; null if there is none")]
    epoch: Annotated[int, Doc("epoch in which it starts")]

    @property
    def facts(self) -> dict[str, bool | None]:
        """What it knows of the facts on which actions depend (problems/facts.toml)."""
        return {"voter": self.isVoter, "soleVoter": self.isVoter and len(self.voters) == 1}

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1


class ReleaseChange(NamedTuple):
    """Another release than the one of the disk is started. `rewrites`: what it writes to the files; `wayBack`: what a
    return to the older release loses, or what makes it impossible."""

    rewrites: list[str]
    wayBack: list[str]


class RestartTotals(NamedTuple):
    """Totals over partitions."""

    partitions: Annotated[int, Doc("number of partitions examined")]
    recoveredPartitions: Annotated[int, Doc("number of partitions with segments that are re-read")]
    recovered: Annotated[int, Doc("number of segments that are re-read")]
    bytesRead: Annotated[int, Doc("bytes of segments that startup reads", BYTES)]
    bytesCut: Annotated[int, Doc("bytes that are no longer part of a log after startup", BYTES)]
    losing: Annotated[int, Doc("number of partitions that lose records")]
    strays: Annotated[int, Doc("number of partitions whose directories are renamed to -stray and not served")]


def totals(partitions: Sequence[PartitionPlan]) -> RestartTotals:
    """Return the totals over these partitions."""
    return RestartTotals(
        len(partitions),
        sum(1 for plan in partitions if plan.recovered),
        sum(plan.recovered for plan in partitions),
        sum(plan.bytesRead for plan in partitions),
        sum(plan.bytesCut for plan in partitions),
        sum(1 for plan in partitions if plan.loses),
        sum(1 for plan in partitions if plan.stray),
    )


@answer("restartPlan")
@dataclass
class RestartPlan:
    """The plan of the whole broker: log directories, partitions in the order in which they are examined, and
    assumptions about what no disk states."""

    directories: list[DirectoryPlan] = field(default_factory=list)
    release: Annotated[
        ChosenRelease | None,
        Doc(
            "the release of Kafka that is started, {version, mode, source, reason, doubt, diskVersion, newer, tried}; "
            "source: option, disk or default; tried: whether its rules have been compared with real brokers",
            after="nodeId",
        ),
    ] = None
    """The release that is started; None only while the plan is being made."""
    quorum: Annotated[
        Quorum | None,
        Doc(
            f"the controller quorum as the files of this node state it, {NESTED}; null with ZooKeeper, or if "
            "unreadable",
            after="wayBack",
        ),
    ] = None
    change: ReleaseChange | None = None
    """What the start of another release than the disk's changes; None if it is the disk's own."""
    partitions: list[PartitionPlan] = field(default_factory=list)
    stops: list[StartupFailure] = field(default_factory=list)
    """Failures of the broker as a whole."""
    refusedAt: list[int | None] = field(default_factory=list)
    """Offsets of the records of the metadata log to which stops belong that a controller takes part in elections
    before: it halts when it applies the first, once it is committed. None: of one in a snapshot."""
    doubts: list[str] = field(default_factory=list)
    """Why it is not known whether the release starts, if it is a known one."""
    assumptions: Annotated[
        list[PathText], Doc("what the plan assumes because no disk states it", after="copyFirst")
    ] = field(default_factory=list)
    withoutMetadata: Annotated[
        bool,
        Doc(
            "whether no directory has a metadata log, or it has no topics: if the controllers have none either, all "
            "partitions become stray",
            after="offline",
        ),
    ] = False
    course: Course = field(default_factory=Course)
    """What happens at the startup and in the hour after it."""
    later: tuple[Part, ...] = ()
    """The parts of the course that other files than the logs show: committed offsets that expire, unanswered checks."""
    withoutTopics: bool = False
    """Whether there is a metadata log, but it has no topics."""
    seconds: Annotated[float, Doc("elapsed time", "s", after="unread")] = 0.0

    @property
    def nodeId(self) -> Annotated[int | None, Doc("node.id in meta.properties; null if no log directory states it")]:
        return next((directory.nodeId for directory in self.directories if directory.nodeId is not None), None)

    @property
    def totals(self) -> Annotated[RestartTotals, INLINE]:
        return totals(self.partitions)

    @property
    def rewrites(
        self,
    ) -> Annotated[
        list[PathText],
        Doc(
            "what a start of another release than the disk's own writes that the disk's own did not; empty otherwise",
            after="release",
        ),
    ]:
        return self.change.rewrites if self.change else []

    @property
    def wayBack(
        self,
    ) -> Annotated[
        list[PathText],
        Doc(
            "what a return to the older one of the two releases loses, or makes impossible; empty otherwise",
            after="rewrites",
        ),
    ]:
        return self.change.wayBack if self.change else []

    @property
    def places(self) -> list[DirectoryPlan | PartitionPlan]:
        """All directories, each with its own failures and what could not be read."""
        return [*self.directories, *self.partitions]

    @property
    def logs(self) -> list[PartitionPlan]:
        """The logs whose directories are there, without the metadata log."""
        return [plan for plan in self.partitions if plan.topic != METADATA_TOPIC and not plan.missing]

    @property
    def missing(self) -> list[PartitionPlan]:
        """The partitions whose directories are missing."""
        return [plan for plan in self.partitions if plan.missing]

    @property
    def metadata_log(self) -> PartitionPlan | None:
        return next((plan for plan in self.partitions if plan.topic == METADATA_TOPIC), None)

    @property
    def metadata_directory(self) -> DirectoryPlan | None:
        """The directory that is metadata.log.dir."""
        return next((directory for directory in self.directories if directory.metadataLogDir), None)

    @property
    def allStops(self) -> Annotated[Stops, Doc(STOPS, name="stops", after="strays")]:
        """All failures, the broker's own first."""
        return [*self.stops, *(stop for place in self.places for stop in place.stops)]

    @property
    def offline(self) -> Annotated[list[PathText], Doc("log directories that go offline", after="stops")]:
        paths = [directory.path for directory in self.directories if directory.is_offline]
        paths += [
            partition.source for partition in self.partitions if any(stop.kind == OFFLINE for stop in partition.stops)
        ]
        return list(dict.fromkeys(paths))

    @property
    def newer(self) -> list[str]:
        """What only a newer release than the newest known one writes."""
        texts = [] if self.release is None else list(self.release.newer)
        texts += (stop.newer for stop in self.allStops if stop.newer)
        return list(dict.fromkeys([*texts, *(reason for plan in self.partitions for reason in plan.newer)]))

    @property
    def unknowns(self) -> list[str]:
        """Why it is not known whether the node starts; empty if it is known."""
        if not self.is_named:
            doubts = (doubt for doubt in self.doubts if not isinstance(doubt, NewerLevelDoubt))
            return list(dict.fromkeys([*self.newer, *doubts]))
        return [] if self.verdictOfRules == STOPPED else self.doubts

    @property
    def is_named(self) -> bool:
        """Whether a known release was asked for: what it does with a version that it does not know is certain."""
        return self.release is not None and self.release.source == OPTION and not self.release.doubt

    @property
    def verdict(
        self,
    ) -> Annotated[
        str,
        Doc(
            "clean (starts without recovery), recovery (starts and recovers logs), degraded (starts without a log "
            "directory), stopped (does not start), unknown (see release.newer, or what was lowered before)",
            after="quorum",
        ),
    ]:
        return UNKNOWN if self.unknowns else self.verdictOfRules

    @property
    def verdictOfRules(self) -> str:
        """The verdict by the rules of the release that is started, or else of the newest known one."""
        offline = self.offline
        left = [directory for directory in self.directories if directory.logDir and directory.path not in offline]
        if any(stop.kind == EXIT for stop in self.allStops) or not left:
            return STOPPED
        if offline:
            return DEGRADED
        return RECOVERY if any(directory.clean is False for directory in self.directories) else CLEAN

    @property
    def votes(self) -> bool:
        """Whether the node, as a voter, takes part in elections, if only until it halts."""
        exits = sum(stop.kind == EXIT for stop in self.allStops)
        return self.verdict != STOPPED or exits == len(self.refusedAt)

    @property
    def loses(
        self,
    ) -> Annotated[
        bool, Doc("whether records are lost or hidden, or directories become stray or are missing", after="verdict")
    ]:
        return any(plan.loses or plan.stray or plan.missing for plan in self.partitions)

    @property
    def loses_metadata(self) -> bool:
        return self.metadata_log is not None and self.metadata_log.loses

    @property
    def losesWithinHour(
        self,
    ) -> Annotated[
        str,
        Doc(
            "what the startup and the hour after it lose, as in lost.md: certain, may, no, or unknown if a step is not "
            "answered; see the restartEvent objects",
            after="loses",
        ),
    ]:
        return self.course.losesWithinHour

    @property
    def unanswered(
        self,
    ) -> Annotated[
        list[UnansweredStep], Doc(f"the steps whose events are not known, each {NESTED}", after="losesWithinHour")
    ]:
        return self.course.unanswered

    @property
    def unread(self) -> Annotated[UnreadTexts, Doc(UNREAD, after="assumptions")]:
        return [problem for place in self.places for problem in place.unread]

    @property
    def warnings(self) -> list[str]:
        """The warnings about all log directories."""
        return [warning for directory in self.directories for warning in directory.warnings]

    @property
    def status(self) -> int:
        """Exit status of `kdump restart-plan`: 3 if the broker does not start, else 2 if something could not be read or
        is a copy, or it is not known whether it starts, else 0 or 1."""
        if self.verdict == STOPPED:
            return 3
        if self.unread or any(each.copies for each in self.directories) or self.verdict == UNKNOWN:
            return 2
        troubled = self.verdict == DEGRADED or (self.withoutMetadata and bool(self.partitions)) or bool(self.warnings)
        return int(troubled or self.loses or bool(self.course.losses))

    @property
    def copyFirst(self) -> Annotated[list[PathText], Doc(COPY_FIRST, after="withoutMetadata")]:
        """Those of the partitions; the log directory, if partitions become stray because the metadata is lost: the
        checkpoints no longer have their offsets (LogManager.logsByDir)."""
        whole = {plan.source for plan in self.partitions if _is_without_metadata(plan)}
        paths = (path for plan in self.partitions if plan.source not in whole for path in plan.copyFirst)
        return [*sorted(whole), *paths]
