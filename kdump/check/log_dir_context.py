"""What is known about a partition from outside its segments: checkpoints, clean shutdown, the cluster's metadata."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from kdump.answer import of_fact
from kdump.check.options import Options
from kdump.check.partition_context import CheckpointedEpoch, PartitionContext
from kdump.cluster.disks import Disks
from kdump.format.kafka_release import AppliedRelease
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.directory_listing import is_url, parent
from kdump.kafka.checkpoint_file import accepted_epochs
from kdump.kafka.index_builder import INTERVAL, LARGEST_INDEX
from kdump.kafka.small_files import OffsetCheckpoints
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.internal_topics import COMPACTED_TOPICS, TRANSACTION_TOPIC
from kdump.log.live_files import FileWatch, identity
from kdump.log.lock_holder import is_running
from kdump.log.log_directory import META, LogDirectory, directory_above, log_directory_above
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.paths import target as as_target
from kdump.state.unknown_offsets import CHECKPOINT_OF

if TYPE_CHECKING:  # a check of a single file does not need the cluster's state
    from kdump.cluster.remote_log import RemoteLog
    from kdump.cluster.transaction_coordinator import TransactionCoordinatorState

MARK = CHECKPOINT_OF["highWatermark"]
CHECKPOINT = re.compile("-checkpoint$")
"""Files that a broker writes once a minute; a copy of partitions may have a meta.properties, but none of them."""


class LogDirContext:
    """What the files of a log directory contain about its partitions. `disks`: the log directories of the run, among
    them this one."""

    def __init__(self, directory: LogDirectory, options: Options, disks: Disks) -> None:
        self.directory, self.disks = directory, disks
        self.watch = FileWatch()
        """The files that all of this was read from."""
        self.options = options
        options = replace(options, open_source=self.watch.opening(options.open_source))
        meta = directory.files.get(META)
        if meta is not None and not is_url(meta.path):
            self.watch.look(meta.path, identity(meta.path))
        if directory.is_clean and not is_url(directory.path):  # a broker that starts deletes the file
            mark = os.path.join(directory.path, CLEAN_MARK)
            self.watch.look(mark, identity(mark))
        self.ids = disks.ids(directory)
        self.checkpoints = OffsetCheckpoints(directory, options.open_source)
        self.node = node = disks.node_of(directory)
        self.watch.also, self.metadata = disks.watched_metadata(directory.path)
        from kdump.cluster.release_evidence import applied_release

        self.release = applied_release([each.path for each in node.directories], self.metadata, options.kafka_version)
        self.coordinator: TransactionCoordinatorState | None = None
        if "transactions" in options.chosen:
            for path in node.logs_of(TRANSACTION_TOPIC):
                self.watch.look_at_log(path)
            self.coordinator = node.coordinator(self.metadata, options.limits)

    @cached_property
    def running(self) -> bool | None:
        """Whether a broker is running on the directory."""
        return None if is_url(self.directory.path) else is_running(self.directory.path)

    @cached_property
    def remote(self) -> RemoteLog:
        """__remote_log_metadata of the node."""
        return self.node.remote_log(self.metadata, self.options.limits)

    def known(self, partition: PartitionDirectory) -> PartitionContext:
        """Return what is known about one partition of the directory."""
        context = own_context(partition, self.options, is_copy=not any(map(CHECKPOINT.search, self.directory.files)))
        topic, number = partition.topic, partition.partition
        if topic is None or number is None:
            return context
        # A directory without any broker file at its root is a copy of partitions: how the broker was shut down is
        # unknown.
        at_root = any(name != "bootstrap.checkpoint" for name in self.directory.files)
        checkpoints, files = self.checkpoints.of(partition), self.checkpoints.files
        if MARK in checkpoints and self.disks.is_of_older_topic(checkpoints[MARK].target.path, partition.path, topic):
            checkpoints = {name: noted for name, noted in checkpoints.items() if name != MARK}
            files = files.without(MARK)
        context = replace(
            context,
            clean=self.directory.is_clean if at_root else None,
            running=self.running if at_root else None,
            checkpoints=checkpoints,
            checkpoint_files=files,
            coordinator=self.coordinator,
            release=self.release,
        )
        return self._described(context, partition, topic, number)

    def _described(
        self, context: PartitionContext, partition: PartitionDirectory, topic: str, number: int
    ) -> PartitionContext:
        """Return the context with what the cluster's metadata says about the partition."""
        described = self.metadata.topics.get(topic) if self.metadata else None
        if self.metadata is None or described is None:
            return context
        from kdump.cluster.remote_log import deleted_below, never_copied
        from kdump.kafka.small_files import topic_id
        from kdump.state.effective_config import effective, is_tiered, size_config
        from kdump.state.other_replicas import other_replicas

        node_id = parse_int(self.ids.get("node.id"))
        policy = effective(self.metadata, topic, "cleanup.policy", node_id)
        max_bytes = parse_int(effective(self.metadata, topic, "max.message.bytes", node_id))
        tiered, remote_start = is_tiered(self.metadata, topic), None
        first = partition.segments[0].offset if partition.segments else 0
        if tiered and first > (context.log_start or 0):
            noted = context.checkpoints.get("log-start-offset")
            deleted = deleted_below(partition, None if noted is None else noted.target)
            remote_start = self.remote.start_of(described.id, number, context.log_start, deleted, context.lineage)
        bases = [segment.offset for segment in partition.segments]
        snapshots = {each.name_offset or 0 for each in partition.snapshots}
        lacking = None
        if tiered and not partition.state and not snapshots.issuperset(bases[1:]):
            lacking = never_copied(bases, snapshots, self.remote.end_of(described.id, number))
        own_id = topic_id(partition) if not partition.state else None
        of_deleted = None if own_id is None else self.disks.topic_history(own_id, self.directory.path)[1]
        interval = size_config(self.metadata, topic, "index.interval.bytes", node_id, INTERVAL)
        return replace(
            context,
            compacted=context.compacted or ("compact" in policy if policy is not None else None),
            delete_retention=parse_int(effective(self.metadata, topic, "delete.retention.ms", node_id)),
            max_message_bytes=context.max_message_bytes or max_bytes,
            index_interval=interval,
            index_size=size_config(self.metadata, topic, "segment.index.bytes", node_id, LARGEST_INDEX),
            topic_id=described.id if not partition.state else None,
            of_deleted_topic=of_deleted,
            tiered=tiered,
            remote_start=remote_start,
            never_copied=lacking,
            replicas=other_replicas(self.metadata, topic, number, node_id),
        )


class Surroundings:
    """What is known about partitions and segments that were given as paths, from the directories around them. Each is
    read once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._contexts: dict[str, LogDirContext] = {}
        self._newest: dict[str, tuple[PartitionContext, int | None]] = {}
        """By partition directory: what is known about it, and the base offset of its last segment."""

    def of_partition(self, place: PartitionDirectory) -> PartitionContext:
        """Return what is known about a partition directory, including from its log directory, if any."""
        above = log_directory_above(place.path)
        if above is None:
            return own_context(place, self.options)
        if above.path not in self._contexts:
            self._contexts[above.path] = LogDirContext(above, self.options, self.options.disks([above]))
        return self._contexts[above.path].known(place)

    def only_remote(self, place: PartitionDirectory) -> tuple[int, int] | None:
        """Return the log start offset and the first offset here of a live tiered partition whose log starts in remote
        storage; None for any other."""
        if place.state or not place.segments or not place.segments[0].offset:
            return None
        return self.of_partition(place).only_remote(place.segments[0].offset)

    def of_file(self, target: Target) -> PartitionContext:
        """Return what is known about a file, including from the partition directory that it is in, if any."""
        options = self.options
        if "://" in target.path or not file_system.isfile(target.path):
            return PartitionContext(
                now=options.now,
                topic=target.topic,
                max_message_bytes=options.max_message_bytes,
                release=named_release(options),
            )
        directory = parent(target.path)
        if directory not in self._newest:
            place = directory_above(target.path)
            if not isinstance(place, PartitionDirectory):
                return PartitionContext(
                    now=options.now, max_message_bytes=options.max_message_bytes, release=named_release(options)
                )
            newest = max((segment.offset for segment in place.segments), default=None)
            self._newest[directory] = self.of_partition(place), newest
        context, newest = self._newest[directory]
        return replace(
            context, last=None if target.name_offset is None or newest is None else target.name_offset >= newest
        )


def own_context(partition: PartitionDirectory, options: Options, *, is_copy: bool = True) -> PartitionContext:
    """Return what is known about a partition from its own directory alone. `is_copy`: files may be missing."""
    name = "leader-epoch-checkpoint"
    target, lines = partition.text(name), None
    if target is not None:
        lines = accepted_epochs(target.path, options.open_source)
    elif not is_copy and not partition.state and not partition.listing_errors:
        target, lines = as_target(os.path.join(partition.path, name)), []
    epochs = None
    if lines is not None:
        epochs = tuple(
            CheckpointedEpoch(line.values["epoch"], line.values["startOffset"], line.position, line.size)
            for line in lines
        )
    return of_fact(
        PartitionContext,
        partition,
        options,
        compacted=True if partition.topic in COMPACTED_TOPICS else None,
        epochs=epochs,
        epochs_at=target,
        is_copy=is_copy,
        release=named_release(options),
    )


def named_release(options: Options) -> AppliedRelease:
    """Return the release that was asked for, or the newest one: nothing around a file states another."""
    release = options.kafka_version
    return AppliedRelease() if release is None else AppliedRelease(release, release, release)
