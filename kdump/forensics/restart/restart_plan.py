"""The question as a whole: what does the broker of these log directories do when it is started next?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from kdump.check.options import Options
from kdump.forensics.restart.identity import identify, registered
from kdump.forensics.restart.log_manager import LogManager
from kdump.forensics.restart.plan import DirectoryPlan, PartitionPlan, RestartPlan
from kdump.forensics.restart.running import holder
from kdump.forensics.restart.strays import Strays
from kdump.log.disk import LOCK, LogDirectory, place_of, places
from kdump.log.errors import SourceError
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.listing import is_directory, is_url, names
from kdump.state.image import Metadata
from kdump.state.metadata import read_metadata
from kdump.state.metadata_files import BOOTSTRAP

VERSION = "4.3.1"
"""The release whose start is replayed."""


def restart_plan(
    paths: Iterable[str],
    options: Options | None = None,
    *,
    wanted: Callable[[str], bool] = lambda topic: True,
    found: Callable[[PartitionPlan], None] = lambda plan: None,
    met: Callable[[int], None] = lambda count: None,
) -> RestartPlan:
    """What a broker of Kafka 4.3.1 does at its next start on these log directories, all of one broker.

    `wanted` is asked of each topic; what stops the start elsewhere is then not seen. `found` is told of each partition
    as it has been looked at, `met` of bytes as they have been read. Only what the broker itself would read is read, and
    behind a cut what is lost there. Raises SourceError for a path that is no log directory; what cannot be read in one
    is in `unread`. Source: see the modules of kdump.forensics.restart.
    """
    options = options or Options()
    plan = RestartPlan([_directory(each) for each in _log_directories(list(paths))])
    identify(plan.directories, plan)
    metadata = _metadata(plan, options)
    if metadata is not None:
        registered(plan.directories, metadata, plan)
    is_broker = _is_broker(plan, metadata)
    manager = LogManager(plan.directories, options, Strays(metadata), metadata, wanted, met)

    def add(each: PartitionPlan) -> None:
        plan.partitions.append(each)
        if wanted(each.topic):
            found(each)

    for each in manager.metadata_logs():
        add(each)
    is_whole = metadata is not None and not _is_cut(plan, metadata)
    if not is_whole:
        manager.strays = Strays(None)
    if is_broker:
        for each in manager.logs():
            add(each)
    if not wanted(METADATA_TOPIC):
        plan.partitions = [each for each in plan.partitions if each.topic != METADATA_TOPIC or each.stops]
    _assume(plan, metadata, is_broker, is_whole)
    return plan


def _is_cut(plan: RestartPlan, metadata: Metadata) -> bool:
    """Whether the metadata on the disk lacks something that it once had: a tail that was never finished is nothing."""
    return bool(metadata.problems) and any(each.loses or each.stops for each in plan.partitions)


def _log_directories(paths: list[str]) -> list[LogDirectory]:
    """Raises SourceError."""
    found: list[LogDirectory] = []
    for path in paths:
        if path == "-" or is_url(path) or not is_directory(path):
            raise SourceError(f"{path}: not a directory: a broker's log directory is needed")
        try:
            names(path)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from error
        place = place_of(path)
        if isinstance(place, LogDirectory):
            if not any(name != BOOTSTRAP for name in place.files):
                reason = "no file of a broker at its root (meta.properties, checkpoints): a copy of partitions"
                raise SourceError(f"{path}: {reason} does not say how its broker was shut down")
            found.append(place)
            continue
        if place is None and len(paths) > 1 and _is_new(path):
            found.append(LogDirectory(path))  # a new disk: log.dirs may name it
            continue
        refused: list[SourceError] = []
        below = [each for each in places(path, refused.append) if isinstance(each, LogDirectory)]
        if not below:
            raise SourceError(f"{path}: no log directory; a partition alone does not say how its broker was shut down")
        if len(below) > 1:
            said = ", ".join(each.path for each in below[:4])
            raise SourceError(f"{path}: {len(below)} log directories below it ({said} …): name those of one broker")
        found += below
    return found


def _is_new(path: str) -> bool:
    """Whether nothing of Kafka was ever there."""
    try:
        return set(names(path)) <= {LOCK, "lost+found"}
    except OSError:
        return False


def _directory(place: LogDirectory) -> DirectoryPlan:
    clean = os.path.lexists(os.path.join(place.path, ".kafka_cleanshutdown"))
    plan = DirectoryPlan(place.path, clean)
    process = holder(place.path)
    if process is not None:
        plan.warnings.append(
            f"process {process} holds {os.path.join(place.path, LOCK)}: a broker runs on these files, and the plan is "
            "of a start after it was killed at this moment; a second broker does not start"
        )
    return plan


def _metadata(plan: RestartPlan, options: Options) -> Metadata | None:
    """What the cluster's metadata in one of the directories says; None without it."""
    for directory in plan.directories:
        found = read_metadata(directory.path, options.limits)
        if found is not None and found.topics:
            return found
    return None


def _is_broker(plan: RestartPlan, metadata: Metadata | None) -> bool:
    """Whether the node has logs besides the metadata: a controller has none, and no checkpoints."""
    for directory in plan.directories:
        place = place_of(directory.path)
        if isinstance(place, LogDirectory):
            logs = any(each.topic != METADATA_TOPIC for each in place.partitions)
            if logs or place.unknown or any(name.endswith("-offset-checkpoint") for name in place.files):
                return True
    nodes = {directory.nodeId for directory in plan.directories}
    return metadata is None or bool(nodes & set(metadata.brokers))


def _assume(plan: RestartPlan, metadata: Metadata | None, is_broker: bool, is_whole: bool) -> None:
    said = [f"the node runs Kafka {VERSION}, and nothing else changes the files before it starts"]
    many = len(plan.directories) > 1
    ids = " and ".join(sorted({f"{each.clusterId}" for each in plan.directories if each.clusterId}))
    if ids:
        said.append(f"the cluster that the node is to join has the id {ids}: with another it does not come up")
    said.append(f"log.dirs names {'these directories' if many else 'this directory'} and no other")
    if not is_broker:
        plan.directories[0].clean = None
        said.append("the node is a controller: it has no logs but the metadata")
    elif metadata is None:
        said.append("no cluster metadata could be read here, so that strays and the topics' configs are not known")
    elif not is_whole:
        said.append(
            f"the cluster's metadata on this disk is damaged behind offset {metadata.end_offset}: which directories "
            f"are strays is not told ({metadata.problems[0]})"
        )
    else:
        said.append(
            f"the cluster's topics and replicas are as the metadata on this disk has them, up to offset "
            f"{metadata.end_offset}: the broker asks the controllers for what is newer"
        )
    if is_broker and metadata is not None:
        said.append("index.interval.bytes is the topic's own, or else 4096")
    plan.assumptions = said + plan.assumptions
