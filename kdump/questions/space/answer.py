"""What `kdump.space` answers. Sizes are bytes; `allocated` is what files occupy on the disk, which is less than their
size if they are sparse (preallocated indexes)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import (
    BYTES,
    EPOCH_MS,
    INLINE,
    MS,
    NESTED,
    NUMBER,
    OFFSET,
    TEXT,
    Cell,
    Doc,
    PathText,
    Shown,
    answer,
    columns,
)
from kdump.format.count_text import duration_text, size_text
from kdump.questions.retention.remote_deletion import RemoteRetention
from kdump.text import path_text

RUNNING, STOPPED, UNKNOWN = "running", "stopped", "unknown"
"""States of a broker. unknown: the paths are not its own disk, or it cannot be determined on this system."""

CONFIG, FILES, WAIT = "config", "files", "wait"
"""How a step frees space. config: a command of Kafka's or of the file system; files: a command that removes files;
wait: the broker does it by itself."""

NOTHING, DUE, RECORDS, REPLICA, JUDGE = "nothing", "due", "records", "replica", "judge"
"""What a step costs. nothing: no record that a consumer can read. due: records that retention deletes anyway. records:
records that retention would have kept. replica: a replica that is complete elsewhere. judge: the files are not Kafka's
or no longer the cluster's, and only you can say whether they are needed."""

COSTS = {
    NOTHING: "nothing",
    DUE: "what is due anyway",
    RECORDS: "records",
    REPLICA: "a replica",
    JUDGE: "you decide",
}
TITLES = {
    "reservedBlocks": "blocks reserved for root",
    "postponeCleaning": "postpone the log cleaner's work",
    "retentionDue": "segments that are due",
    "replicas": "replicas that are complete elsewhere",
    "otherFiles": "files that are not Kafka's",
    "deleted": "deleted files",
    "stray": "stray directory",
}


class KeptFrom(NamedTuple):
    """A partition, and the log start offset that it gets."""

    partition: int
    logStartOffset: int


@answer("spaceDirectory", measures=lambda disk: [("kdump_filesystem_free_bytes", disk.free, path_text(disk.path))])
class SpaceDirectory(NamedTuple):
    """A log directory of the broker whose disk is full. The sizes of the file system are None if the path is not the
    broker's own disk (`unknownBecause`)."""

    path: Annotated[PathText, Doc("log directory")]
    nodeId: Annotated[int | None, Doc("node.id in meta.properties")]
    broker: Annotated[str, Doc("running (a process holds the lock), stopped, or unknown (not the broker's own disk)")]
    unknownBecause: Annotated[
        str | None,
        Doc("what the path is if it is not the broker's own disk: a bundle, a URL, a copy of partitions; else null"),
    ]
    isClean: Annotated[
        bool | None,
        Doc("whether .kafka_cleanshutdown exists; null while the broker is running, and in a copy of partitions"),
    ]
    mount: Annotated[PathText | None, Doc("mount point of the file system")]
    fileSystem: Annotated[str | None, Doc("type of the file system, such as ext4")]
    device: Annotated[PathText | None, Doc("device that is mounted")]
    total: Annotated[int | None, Doc("size of the file system", BYTES)]
    free: Annotated[int | None, Doc("free for the broker's user", BYTES)]
    reserved: Annotated[int | None, Doc("free for root only", BYTES)]
    inodesFree: Annotated[int | None, Doc("free inodes; null if the file system does not limit them")]
    allocated: Annotated[int, Doc("allocated by all files in the log directory", BYTES)]
    elsewhere: Annotated[
        int | None,
        Doc(
            "used on the file system, but not by files in the given log directories: other directories, and deleted "
            "files that a process holds open",
            BYTES,
        ),
    ]
    liveBytes: Annotated[int, Doc("allocated by live partitions", BYTES)]
    deletedBytes: Annotated[int, Doc("allocated by .deleted and .cleaned files, and -delete directories", BYTES)]
    strayBytes: Annotated[int, Doc("allocated by -stray directories", BYTES)]
    futureBytes: Annotated[int, Doc("allocated by -future directories", BYTES)]
    metadataBytes: Annotated[int, Doc("allocated by __cluster_metadata-0", BYTES)]
    otherBytes: Annotated[int, Doc("allocated by files and directories that are not Kafka's", BYTES)]
    linkedBytes: Annotated[
        int, Doc("allocated by files with further hard links, which nothing else here counts: see spaceKept", BYTES)
    ]
    partitions: Annotated[int, Doc("number of live partitions, with the metadata log")]
    neededToStart: Annotated[
        int | None,
        Doc(
            "free bytes with which a stopped broker starts for certain, and stays up until retention runs; with less, "
            "it may; null in a copy of partitions",
            BYTES,
        ),
    ]


def _some(size: int | None) -> str:
    return size_text(size) if size else ""


def _ms(topic: SpaceTopic) -> str:
    if "delete" not in topic.cleanupPolicy:
        return ""
    text = "none" if topic.retentionMs < 0 else duration_text(topic.retentionMs)
    text += "" if topic.isConfigKnown else "?"
    return text + _local(topic.retentionMsConfig)


def _bytes(topic: SpaceTopic) -> str:
    return "" if topic.retentionBytes < 0 else size_text(topic.retentionBytes) + _local(topic.retentionBytesConfig)


def _local(config: str) -> str:
    return " (local)" if config.startswith("local.") else ""


@columns(
    ms=Shown("retention.ms", 8, right=True, cell=_ms),
    bytes=Shown("retention.bytes", 7, right=True, cell=_bytes),
    due=Shown("due now", 8, right=True, cell=lambda topic: _some(topic.dueNow)),
    tier=Shown("remote", 6, right=True, cell=lambda topic: _some(topic.remote.remoteBytes)),
    later=Shown("within 24 h", 4, right=True, cell=lambda topic: _some(topic.dueIn24h)),
)
@answer("spaceTopic", measures=lambda topic: [("kdump_topic_bytes", topic.size, topic.topic)])
class SpaceTopic(NamedTuple):
    """A topic, with all its live partitions in the log directories. Only the largest are reported."""

    topic: Annotated[str, Doc("topic"), Shown("  topic", least=14), Cell("  {}".format)]
    partitions: Annotated[int, Doc("number of partitions here"), Shown(rank=5), NUMBER]
    segments: Annotated[int, Doc("number of segments")]
    size: Annotated[int, Doc("size of all files", BYTES)]
    allocated: Annotated[int, Doc("allocated by them", BYTES), Shown("on disk"), Cell(size_text)]
    cleanupPolicy: Annotated[str, Doc("delete, compact, both, or empty"), Shown("policy", 6)]
    retentionMs: Annotated[int, Doc("retention by time in force on this disk; -1: none", MS)]
    retentionMsConfig: Annotated[str, Doc("config of retentionMs: retention.ms, or local.retention.ms if tiered")]
    retentionBytes: Annotated[int, Doc("retention by size in force on this disk, for each partition; -1: none", BYTES)]
    retentionBytesConfig: Annotated[
        str, Doc("config of retentionBytes: retention.bytes, or local.retention.bytes if tiered")
    ]
    isConfigKnown: Annotated[bool, Doc("whether the topic's own configs were found")]
    dueNow: Annotated[
        int, Doc("allocated by segments that the next retention check deletes, without active segments", BYTES)
    ]
    dueIn24h: Annotated[int, Doc("allocated by further segments that retention deletes within 24 h", BYTES)]
    remote: Annotated[RemoteRetention, INLINE]


def _title(step: SpaceStep) -> str:
    about = f" of {step.topic}" if step.topic else ""
    if step.step != "retention":
        return TITLES[step.step] + about
    now, then = ("none" if value is None or value < 0 else _amount(step, value) for value in (step.current, step.value))
    return f"{step.config}{about}: {now} -> {then}"


def _amount(step: SpaceStep, value: int) -> str:
    return duration_text(value) if (step.config or "").endswith(".ms") else size_text(value)


@columns(
    title=Shown("step", least=20, cell=_title, cuts=TEXT),
    gain=Shown(
        "frees", right=True, cell=lambda step: "about " * (step.isEstimate and step.frees > 0) + _some(step.frees)
    ),
    then=Shown("free then", 7, right=True, cell=lambda step: "" if step.freeThen is None else size_text(step.freeThen)),
    costs=Shown(rank=8, cell=lambda step: COSTS[step.cost]),
    needed=Shown(" ", 8, cell=lambda step: "not needed" if step.isNeeded is False else ""),
)
@answer("spaceStep")
class SpaceStep(NamedTuple):
    """A row of the table of what may be done, in the order in which to do it: the cheapest first, on each file system.
    Each of several lower values of a config states what it frees in addition to those above it."""

    step: Annotated[
        str,
        Doc(
            "reservedBlocks, deleted, stray, postponeCleaning, retentionDue, otherFiles, replicas, retention",
            after="number",
        ),
    ]
    how: Annotated[
        str, Doc("config (a command of Kafka's or of the file system), files (removes files), or wait", after="step")
    ]
    source: Annotated[PathText, Doc("log directory; empty if it concerns several", after="how")]
    text: Annotated[PathText, Doc("what it does, and what it costs", after="isNeeded")]
    number: Annotated[int, Doc("position in the order in which to do it"), Shown("  #"), Cell("{:>3}".format)] = 0
    mount: Annotated[PathText | None, Doc("mount point of the file system; null if it is unknown")] = None
    topic: Annotated[str | None, Doc("topic; null if it concerns several, or none")] = None
    config: Annotated[
        str | None, Doc("retention.ms or retention.bytes; local.… if segments are copied to remote storage")
    ] = None
    value: Annotated[int | None, Doc("the lower value")] = None
    current: Annotated[int | None, Doc("value in force; -1: none")] = None
    frees: Annotated[int, Doc("bytes on the disk that it frees", BYTES)] = 0
    freesAtOnce: Annotated[int, Doc("bytes of them that it frees before a stopped broker starts", BYTES)] = 0
    freeThen: Annotated[
        int | None, Doc("free on the file system after it and all before it; null if it is unknown", BYTES)
    ] = None
    size: Annotated[int, Doc("size of the files that go", BYTES)] = 0
    files: Annotated[int, Doc("number of files that go; of retention, of segments")] = 0
    isEstimate: Annotated[bool, Doc("whether frees is an estimate")] = False
    cost: Annotated[
        str, Doc("nothing, due (retention deletes it anyway), records, replica (complete elsewhere), judge")
    ] = NOTHING
    needs: Annotated[str, Doc("state in which the broker must be: stopped, running, or any")] = "any"
    freesAfter: Annotated[
        int, Doc("ms until all of it is free: after the command, or after startup of a stopped broker", MS)
    ] = 0
    isNeeded: Annotated[
        bool | None, Doc("false: those above it reach the goal, and let a stopped broker start; null without a goal")
    ] = None
    command: Annotated[PathText, Doc("the command, or several lines; empty if there is nothing to do but wait")] = ""
    undo: Annotated[str, Doc("command that sets a config back; empty if there is none")] = ""
    paths: Annotated[
        tuple[PathText, ...], Doc("files and directories that the command removes; none for a config alone")
    ] = ()
    logStartOffsets: Annotated[
        tuple[KeptFrom, ...],
        Doc(f"of retention: log start offset of each partition that loses segments, each {NESTED}"),
    ] = ()


@answer("spaceKept")
class SpaceKept(NamedTuple):
    """Something on this disk that must not be done, or is not offered."""

    path: Annotated[PathText, Doc("file, directory, or a pattern of such")]
    allocated: Annotated[int | None, Doc("allocated by it", BYTES)]
    isForbidden: Annotated[bool, Doc("true: never; false: not offered because something is unknown")]
    text: Annotated[PathText, Doc("why")]


@answer("space")
class SpaceSummary(NamedTuple):
    """The whole answer, after the others."""

    verdict: Annotated[
        str,
        Doc(
            "full (on one of the file systems, the broker cannot start, or can no longer write), low, enough (the "
            "goal is reached), or unknown (without the broker's own disk or --need)"
        ),
    ]
    broker: Annotated[str, Doc("running, stopped or unknown")]
    free: Annotated[int | None, Doc("free now, on all file systems", BYTES)]
    goal: Annotated[
        int | None, Doc("bytes to free: --need on each file system, or what it takes to have 15 % free", BYTES)
    ]
    neededToStart: Annotated[int | None, Doc("free bytes with which the broker starts for certain", BYTES)]
    missingToStart: Annotated[
        int | None,
        Doc(
            "bytes that a stopped broker still lacks to start for certain, after the steps that work before it starts; "
            "null if it is not stopped",
            BYTES,
        ),
    ]
    frees: Annotated[int, Doc("what all steps free together, also those that are not needed", BYTES)]
    steps: Annotated[int, Doc("number of steps")]
    isEnough: Annotated[
        bool | None,
        Doc("whether a stopped broker can start after the steps, and they reach the goal; null without one"),
    ]
    unknownTopics: Annotated[
        int, Doc("number of topics whose own configs were not found, so that Kafka's defaults are assumed")
    ]
    metadataProblem: Annotated[
        PathText | None,
        Doc("first problem in the metadata, whose configs may therefore be outdated; null if there is none"),
    ]
    now: Annotated[int, Doc("time that ages were computed as of", EPOCH_MS)]
    metadataOffset: Annotated[
        int | None, Doc("end offset of the newest metadata among the paths; null without metadata", OFFSET)
    ]
    unread: Annotated[int, Doc("number of paths that could not be read")]
