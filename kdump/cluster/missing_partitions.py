"""Partitions that a log directory should contain and does not.

A broker creates every partition that the cluster's metadata assigns to it and that it does not find: with an empty log,
and without an error. So a partition directory that was lost shows only in what else names it:

- the log directory's checkpoints: the recovery points, which a broker writes for exactly the logs that it has, each
  minute, at a clean shutdown, and as soon as it has renamed a deleted log to -delete. High watermarks
  (every 5 s) are written only to log directories that have a partition, so that lines stay after the last one has left:
  they count only if the recovery points were lost;
- the metadata, if the disk has it, which also states whether a checkpoint names a topic that was deleted since.

The metadata alone is not evidence of a loss, because the broker may have stopped before it created the partition; it is
if the log directory's checkpoints were lost, too: deleted, emptied or damaged. Something else with its name, a file
or a link to a directory that is gone, is evidence as well: the broker then cannot create the directory.

A checkpoint is replaced as a whole, by a rename after an fsync (CheckpointFile.write), so that no crash of a broker
leaves a part of one:

- one with an invalid line or a wrong count was damaged later. A broker uses nothing of it: it takes the log directory
  offline (IOException, CheckpointFileWithFailureHandler.read), or goes on without it (NumberFormatException of
  OffsetCheckpointFile, caught by LogManager.loadLogs). As a list it may lack lines, so that it does not show that a
  partition was never created; but its valid lines still name partitions that were there;
- an empty one, or one that ends after its version, is valid for a broker and has no entries (CheckpointFile.read). A
  broker creates it empty at its first startup (the constructor of CheckpointFile) and from then on writes a version and
  a count, even for no log. The recovery points come within a minute or two and at a clean shutdown, high watermarks
  within 5 s of the first partition: if only the former are empty after an unclean shutdown, the broker's first run was
  short, and the latter name its logs. If both are empty, the files were emptied, or the first run ended within
  seconds, and nothing on the disk shows which: what the metadata assigns to the log directory and is not there is then
  reported, as not shown by any checkpoint.

A partition of __remote_log_metadata that no other broker has was there if remote storage has offsets that it names.

A partition whose recovery point and high watermark are 0 in valid checkpoints had no records. If it has no other
replica, the broker loses nothing with its directory.

Source: LogManager.asyncDelete, checkpointRecoveryOffsetsInDir, getOrCreateLog and createLogDirectory,
ReplicaManager.getOrCreatePartition and checkpointHighWatermarks, Partition.createLogInAssignedDirectoryId (4.3.1).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.directory_listing import items
from kdump.io.errors import SourceError
from kdump.kafka.checkpoint_file import read_checkpoint
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.live_files import Opener
from kdump.log.paths import PARTITION, Target, natural
from kdump.log.served_files import current_segments

if TYPE_CHECKING:  # most directories need no metadata
    from kdump.state.metadata_image import MetadataImage

PartitionKey = tuple[str, int]

EVIDENCE = ("recovery-point-offset", "replication-offset")
"""Checkpoints that name every log of a log directory, without '-checkpoint': the first valid one counts."""

LEGAL = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}", re.ASCII)
"""Names that a topic may have (Topic.validate)."""


class CheckpointedPartitions(NamedTuple):
    """The partitions in a log directory's checkpoints. `is_whole`: whether they are all that the log directory had; if
    no checkpoint is valid, they are those in the valid lines. `empty`: those that had no records."""

    keys: frozenset[PartitionKey]
    is_whole: bool
    empty: frozenset[PartitionKey] = frozenset()


class Expected(NamedTuple):
    """What names a log directory's partitions. `path`: the log directory; `others`: the node's other ones; `node` and
    `directory`: node.id and directory.id; `checkpointed`: the partitions in its checkpoints; `metadata`: of the
    cluster, None if the disk has none."""

    path: str
    others: tuple[str, ...]
    node: int | None
    directory: str | None
    checkpointed: CheckpointedPartitions
    metadata: MetadataImage | None

    @classmethod
    def of(
        cls,
        path: str,
        others: Iterable[str],
        ids: Mapping[str, str],
        checkpointed: CheckpointedPartitions,
        metadata: MetadataImage | None,
    ) -> Expected:
        """Return the same for a log directory with the meta.properties `ids`."""
        return cls(path, tuple(others), parse_int(ids.get("node.id")), ids.get("directory.id"), checkpointed, metadata)

    @property
    def is_known(self) -> bool:
        """Whether the disk's metadata states which partitions the node has; damaged metadata may be out of date."""
        return self.metadata is not None and self.metadata.doubt is None and bool(self.metadata.topics)

    def is_only_replica(self, key: PartitionKey) -> bool:
        """Return True if the metadata assigns the partition to this node alone."""
        topic = None if self.metadata is None or not self.is_known else self.metadata.topics.get(key[0])
        info = None if topic is None else topic.partitions.get(key[1])
        return info is not None and set(info.replicas) == {self.node}

    def assigned(self) -> Iterable[tuple[PartitionKey, str | None]]:
        """Yield the node's partitions according to the metadata, each with the ID of its log directory; None if the
        metadata assigns it to no log directory."""
        for topic in self.metadata.topics.values() if self.metadata is not None else ():
            for number, info in sorted(topic.partitions.items()):
                if self.node in info.replicas:
                    yield (topic.name, number), info.directory_of(self.node)


class MissingPartitions(NamedTuple):
    """Partitions without a directory. `lost`: those that the log directory had; `never`: those that the metadata
    assigns to it and that no checkpoint names, so that the broker probably did not create them before it stopped, or
    that had no records and have no other replica.
    `blocked`: those of `lost` in whose place there is something else, by its path; `remote`: those without which the
    broker no longer finds offsets in remote storage, with these."""

    lost: list[PartitionKey]
    never: list[PartitionKey]
    blocked: dict[PartitionKey, str]
    remote: dict[PartitionKey, list[str]]


def checkpointed_partitions(checkpoints: Mapping[str, Target], opener: Opener | None = None) -> CheckpointedPartitions:
    """Return the partitions in the first valid one of a log directory's checkpoints that name all its logs; if there is
    none, because each is missing, empty or damaged, those in the valid lines. One that cannot be read is not lost, so
    that nothing shows that others are missing. `checkpoints`: the files of the log directory by name."""
    is_unread = False
    named: set[PartitionKey] = set()
    whole: frozenset[PartitionKey] | None = None
    offsets: list[Mapping[PartitionKey, int]] = []
    for name in EVIDENCE:
        target = checkpoints.get(f"{name}-checkpoint")
        if target is None:
            continue
        try:
            checkpoint = read_checkpoint(target.path, opener=opener)
        except SourceError:
            is_unread = True
            continue
        keys = frozenset(key for key in checkpoint.offsets if is_legal(key))
        # A broker's first startup creates it empty, and reads such a file without an error.
        if checkpoint.error is None and (checkpoint.lines or 0) > 1:
            whole = keys if whole is None else whole
            offsets.append(checkpoint.offsets)
        named |= keys
    if whole is None:
        return CheckpointedPartitions(frozenset(named), is_unread)
    empty = {key for key in whole if all(each.get(key) == 0 for each in offsets)} if len(offsets) > 1 else ()
    return CheckpointedPartitions(whole, True, frozenset(empty))


def missing_partitions(expected: Expected) -> MissingPartitions:
    """Return the partitions that the log directory should contain and does not, in the order of their names. Looks at
    the directories as they are now; one that cannot be listed contains anything."""
    checkpointed = set(expected.checkpointed.keys)
    try:
        found, in_place = _states(expected.path)
        live = {key for path in expected.others for key, states in _states(path)[0].items() if "" in states}
    except OSError:
        return MissingPartitions([], [], {}, {})
    if expected.is_known:
        assigned = dict(expected.assigned())
        here = {key for key, directory in assigned.items() if directory and directory == expected.directory}
        anywhere = {key for key, directory in assigned.items() if not directory}
        requested = here | (anywhere & (checkpointed | in_place.keys()))
    else:
        requested = checkpointed
    # A -future directory takes the place of a live one that is gone (LogManager.recoverAbandonedFutureLogs). Without
    # metadata, any directory explains why a checkpoint names the partition.
    instead = {"", "future"} if expected.is_known else {"", "future", "delete", "stray"}
    gone = {key for key in requested if key not in live and not found.get(key, set()) & instead}
    lost = gone & (checkpointed | in_place.keys()) if expected.checkpointed.is_whole else gone
    lost -= {key for key in expected.checkpointed.empty - in_place.keys() if expected.is_only_replica(key)}
    remote = _remote(expected, {key for key in gone if key[0] == REMOTE_METADATA_TOPIC})
    lost |= remote.keys()
    blocked = {key: in_place[key] for key in lost if key in in_place}
    return MissingPartitions(_ordered(lost), _ordered(gone - lost), blocked, remote)


def metadata_partition_of(metadata: MetadataImage, topic: str, partition: int) -> int:
    """Return the partition of __remote_log_metadata that has the records of a tiered partition."""
    from kdump.kafka.remote_log_metadata_topic_partitioner import metadata_partition  # ls starts without

    count = len(metadata.topics[REMOTE_METADATA_TOPIC].partitions)
    return metadata_partition(metadata.topics[topic].id, partition, count)


def _remote(expected: Expected, gone: set[PartitionKey]) -> dict[PartitionKey, list[str]]:
    """Return, for each of these partitions of __remote_log_metadata, the offsets of the node's logs that only it finds
    in remote storage: those from the log start offset on that are not here."""
    metadata, names = expected.metadata, defaultdict[PartitionKey, list[str]](list)
    only = {key for key in gone if expected.is_only_replica(key)}
    if metadata is None or not only:
        return {}
    from kdump.state.effective_config import is_tiered  # ls starts without

    for path in (expected.path, *expected.others):
        starts: Mapping[PartitionKey, int] = {}
        with suppress(SourceError):
            starts = read_checkpoint(os.path.join(path, "log-start-offset-checkpoint")).offsets
        for log, states in _states(path)[0].items():
            if "" not in states or not is_tiered(metadata, log[0]):
                continue
            key = (REMOTE_METADATA_TOPIC, metadata_partition_of(metadata, *log))
            start = starts.get(log, 0)
            segments = current_segments(os.path.join(path, name_of(log))) if key in only else []
            if segments and start < int(segments[0][:20]):
                names[key].append(f"{name_of(log)} {start}..{int(segments[0][:20]) - 1}")
    return dict(names)


def may_be_missing(path: str, checkpointed: CheckpointedPartitions) -> bool:
    """Return False if `missing_partitions` reports nothing lost, whatever the metadata and other log directories have:
    each partition in the log directory's checkpoints has its directory, and nothing else has a partition's name."""
    try:
        states, in_place = _states(path)
    except OSError:
        return False
    return (
        not checkpointed.is_whole or bool(in_place) or any("" not in states.get(key, ()) for key in checkpointed.keys)
    )


def is_legal(key: PartitionKey) -> bool:
    """Return True if a broker can have the partition: whatever else a damaged checkpoint names is no partition."""
    return LEGAL.fullmatch(key[0]) is not None and 0 <= key[1] < 1 << 31


def name_of(key: PartitionKey) -> str:
    """Return the name of the partition's directory."""
    return f"{key[0]}-{key[1]}"


def without_directory(
    path: str, key: PartitionKey, ids: Mapping[str, str], metadata: MetadataImage | None, *, is_lost: bool = True
) -> str:
    """Return what is known of a partition that the log directory at `path`, with the meta.properties `ids`, lacks: why
    nothing of it can be read, and who has it. `is_lost`: see MissingPartitions."""
    from kdump.state.other_replicas import other_replicas, who_has_it  # ls starts without

    replicas = other_replicas(metadata, *key, parse_int(ids.get("node.id")))
    nor = "" if is_lost else ", nor any record by the checkpoints"
    return f"{os.path.join(path, name_of(key))}: it has no directory here{nor}; {who_has_it(replicas)}"


def what_is_at(path: str) -> str:
    """Return in words what is at a path where there is no directory."""
    if file_system.islink(path):
        what = "not a directory" if file_system.exists(path) else "missing"
        return f"a link to {file_system.readlink(path)}, which is {what},"
    return "a file"


def _ordered(keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    return sorted(keys, key=lambda key: (natural(key[0]), key[1]))


def _states(path: str) -> tuple[dict[PartitionKey, set[str]], dict[PartitionKey, str]]:
    """Return the partitions that a log directory contains, each with the states of its directories: "" is a live one;
    and the paths of what else has a live partition's name. Raises OSError."""
    states: dict[PartitionKey, set[str]] = {}
    in_place: dict[PartitionKey, str] = {}
    for item in items(path):
        match = PARTITION.match(item.name)
        if match is None:
            continue
        key = match["topic"], int(match["partition"])
        if item.is_directory:
            states.setdefault(key, set()).add(match["state"] or "")
        elif item.name == name_of(key):
            in_place[key] = item.path
    return states, in_place
