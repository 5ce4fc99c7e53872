"""Summary of a log directory: its IDs, how its broker shut down, and the contents and disk usage of each partition.

Names and sizes come first, from the directories alone; headers are read later, partition by partition."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kdump.cluster.disks import Disks
from kdump.cluster.partition_summary import PartitionSummary, Release, partition_summary
from kdump.io import file_system
from kdump.io.directory_listing import length
from kdump.io.run import Limits
from kdump.kafka.small_files import OffsetCheckpoints, properties
from kdump.log import file_kinds
from kdump.log.file_kinds import REMOTE_CACHE
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import META, LogDirectory, log_directory_above
from kdump.log.partition_directory import PartitionDirectory
from kdump.state.unknown_offsets import NO_FILE

if TYPE_CHECKING:  # most directories need no metadata
    from kdump.cluster.missing_partitions import PartitionKey
    from kdump.cluster.remote_log import RemoteLog
    from kdump.format.kafka_release import KafkaRelease
    from kdump.state.metadata_image import MetadataImage


@dataclass
class LogDirectorySummary:
    """Summary of a log directory. `identity`: the contents of meta.properties; `clean`: whether the broker shut down
    cleanly, None for a directory in which no broker has run (see `had_clean_shutdown`)."""

    directory: LogDirectory
    identity: dict[str, str]
    partitions: list[PartitionSummary]
    clean: bool | None
    shutdown: dict[str, str]
    """Contents of .kafka_cleanshutdown: version, brokerEpoch."""
    dated: int | None
    """Modification time (epoch ms) of .kafka_cleanshutdown or, without it, of the newest checkpoint. In a copy made
    without preserving times, the time of the copy."""
    absent: list[PartitionKey]
    """Partitions that the log directory had and whose directories are missing (see missing_partitions)."""
    created: dict[PartitionKey, str]
    """Partitions without a directory that it did not have, or that had no records, each with what is known of it."""
    remote_cache: int
    """Size in bytes of the cached indexes of remote storage."""
    broken: list[str]
    """Names of checkpoint and property files in the root that are damaged or cannot be read."""

    @property
    def live(self) -> list[PartitionSummary]:
        return [facts for facts in self.partitions if not facts.partition.state]


def had_clean_shutdown(directory: LogDirectory) -> bool | None:
    """Return True if the broker shut down cleanly. Returns None if no broker has run here, as in a controller's
    directory or a copy of partitions: there are no offset checkpoints and no clean-shutdown file."""
    ran = any(
        target.kind in (file_kinds.OFFSET_CHECKPOINT, file_kinds.CLEAN_SHUTDOWN) for target in directory.files.values()
    )
    return directory.is_clean if ran else None


ReadsRemoteLog = Callable[[], "RemoteLog"]


def partition_summary_in(
    place: PartitionDirectory,
    clean: bool | None,
    offsets: OffsetCheckpoints,
    metadata: Callable[[], MetadataImage | None],
    remote: ReadsRemoteLog,
    release: Release,
) -> PartitionSummary:
    """Return the facts of a partition of a log directory. `metadata` reads the cluster's metadata, `remote`
    __remote_log_metadata."""
    # The metadata log is recovered at every startup, even after a clean shutdown (KafkaRaftLog).
    facts = partition_summary(place, False if place.topic == METADATA_TOPIC else clean)
    facts.release = release
    if place.state in ("", "future") and place.topic is not None and place.partition is not None:
        facts.checkpoints = {name: noted.offset for name, noted in offsets.of(place).items()}
        facts.checkpoint_files = offsets.files
        start, first = facts.checkpoints.get("log-start-offset"), facts.first_offset
        if not first or (start is not None and start >= first):
            return facts
        from kdump.cluster.remote_log import deleted_below
        from kdump.state.effective_config import is_tiered

        image = metadata()
        if is_tiered(image, place.topic):
            facts.tiered = True
            described = image.topics.get(place.topic) if image is not None else None
            topic_id = described.id if described else None
            noted = offsets.of(place).get("log-start-offset")
            deleted = deleted_below(place, None if noted is None else noted.target)
            start = remote().start_of(topic_id, place.partition, start, deleted)
            facts.checkpoints["log-start-offset"] = start
            lacking = remote().lacks(topic_id, place.partition, start, first)
            facts.unreadable = None if lacking is None else tuple(lacking)
    return facts


LogDirectoryStates = dict[
    str, tuple[bool | None, OffsetCheckpoints, "Callable[[], MetadataImage | None]", ReadsRemoteLog, Release]
]
"""By log directory: whether the broker shut down cleanly, the checkpointed offsets, and what reads the metadata,
__remote_log_metadata and the release."""


def single_partition_summary(place: PartitionDirectory, known: LogDirectoryStates | None = None) -> PartitionSummary:
    """Return the facts of a single partition directory; if it is in a log directory, these include its checkpointed
    offsets and whether the broker shut down cleanly. `known` keeps what was read of log directories."""
    above = log_directory_above(place.path)
    if above is None:
        return partition_summary(place)
    known = {} if known is None else known
    if above.path not in known:
        states = had_clean_shutdown(above), OffsetCheckpoints(above)
        known[above.path] = *states, *_what_reads(above, Disks([above]))
    return partition_summary_in(place, *known[above.path])


def _what_reads(
    directory: LogDirectory, disks: Disks
) -> tuple[Callable[[], MetadataImage | None], ReadsRemoteLog, Release]:
    """Return what reads the metadata of a log directory's cluster, __remote_log_metadata and the release, when first
    called."""

    def release() -> KafkaRelease:
        from kdump.cluster.release_evidence import applied_release

        paths = [each.path for each in disks.node_of(directory).directories]
        return applied_release(paths, metadata(), None).release

    metadata = cache(lambda: disks.newest_metadata(directory.path)[1])
    return metadata, cache(lambda: disks.node_of(directory).remote_log(metadata(), Limits())), cache(release)


def log_directory_summary(directory: LogDirectory, disks: Disks) -> LogDirectorySummary:
    """Return the facts of a log directory, from the files in its root and the names and sizes below it. `disks`: what
    was given, which is searched, and its metadata logs read, only if a partition may be missing, or may start in remote
    storage."""
    offsets, clean = OffsetCheckpoints(directory), had_clean_shutdown(directory)
    broken = [f"{name}-checkpoint" for name, unknown in offsets.unread.items() if unknown.code != NO_FILE]
    identity = _identity(directory, broken)
    metadata, remote, release = _what_reads(directory, disks)
    return LogDirectorySummary(
        directory,
        identity,
        [partition_summary_in(place, clean, offsets, metadata, remote, release) for place in directory.partitions],
        clean,
        properties(directory.files.get(".kafka_cleanshutdown")),
        _dated(directory),
        *_absent(directory, disks, metadata),
        sum(length(path) or 0 for path in _below(os.path.join(directory.path, REMOTE_CACHE))),
        broken,
    )


def _identity(directory: LogDirectory, broken: list[str]) -> dict[str, str]:
    """Return the contents of meta.properties. Almost any text is a property to Java, so that the file also counts as
    broken if it states no node ID."""
    values = properties(directory.files.get(META), broken)
    if META in directory.files and META not in broken:
        from kdump.format.meta_properties import meta_properties

        try:
            states_node = meta_properties(values).node_id is not None
        except ValueError:
            states_node = False
        if not states_node:
            broken.append(META)
    return values


def _absent(
    directory: LogDirectory, disks: Disks, metadata: Callable[[], MetadataImage | None]
) -> tuple[list[PartitionKey], dict[PartitionKey, str]]:
    from kdump.cluster import missing_partitions as found  # ls of partitions starts without

    noted = found.checkpointed_partitions(directory.files)
    if not disks.has_logs(directory) or not found.may_be_missing(directory.path, noted):
        return [], {}
    others = [*(each.path for each in disks.others(directory)), *disks.unlisted]
    here = {(each.topic, each.partition) for each in directory.partitions if not each.state}
    path, ids, image = directory.path, disks.ids(directory), metadata()
    missing = found.missing_partitions(found.Expected.of(path, others, ids, noted, image))
    created = {key: found.without_directory(path, key, ids, image, is_lost=False) for key in missing.never}
    # One that went away in the meantime was deleted.
    return [key for key in missing.lost if key not in here], created


def _dated(directory: LogDirectory) -> int | None:
    marks = [target for name, target in directory.files.items() if name == ".kafka_cleanshutdown"]
    marks = marks or [target for target in directory.files.values() if target.kind is file_kinds.OFFSET_CHECKPOINT]
    times = []
    for target in marks:
        try:
            times.append(file_system.stat(target.path).st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return max(times, default=None)


def _below(directory: str) -> Iterator[str]:
    for path, _, names in file_system.walk(directory):
        yield from (os.path.join(path, name) for name in names)
