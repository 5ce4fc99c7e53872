"""What must not be deleted to make room, where it applies to the disk, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.forensics.space.answers import RUNNING, STOPPED, SpaceKept
from kdump.forensics.space.file_systems import FileSystem
from kdump.forensics.space.usage import DirectoryUsage
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import CLEAN_MARK

SHARE = 0.05
"""Share of a file system from which what is not in the log directories is mentioned."""
OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"


def kept_files(usage: DirectoryUsage, broker: str, *, is_full: bool) -> Iterator[SpaceKept]:
    """Yield what must stay in a log directory. `is_full`: whether a stopped broker lacks space to start."""
    path = usage.directory.path
    live = list(usage.live())
    if is_full and broker != RUNNING:
        yield _never(
            path,
            None,
            "do not start the broker before there is room: since 4.0, recovery empties a segment whose producer "
            "snapshot the disk does not take, and deletes those after it; it recovers the metadata log at every start",
        )
    if any(each.bases for each in live):
        yield _never(
            f"{path}/*/",
            None,
            "the segment with the highest offset in its name is the active one: acknowledged "
            "records, and offsets that would be given again",
        )
        yield _never(
            f"{path}/*/*.index",
            None,
            "rebuilding them needs the same space again, and recovery truncates the "
            "log at the first damage; .timeindex and .txnindex likewise",
        )
        yield _never(
            f"{path}/*/*.snapshot",
            None,
            "without the newest, the broker no longer recognizes duplicates and open transactions",
        )
    for topic, what in (
        (OFFSETS_TOPIC, "all groups lose their committed offsets"),
        (TRANSACTIONS_TOPIC, "transactions are never ended, and read_committed consumers stop"),
    ):
        size = sum(each.allocated for each in live if each.place.topic == topic)
        if size:
            yield _never(f"{path}/{topic}-*", size, f"{what}; compaction makes it smaller, see kdump retention")
    metadata = [each for each in usage.partitions if each.place.topic == METADATA_TOPIC and not each.place.state]
    for each in metadata:
        yield _never(
            each.place.path,
            each.allocated,
            "the cluster's metadata; the broker itself deletes what is below its "
            "newest .checkpoint, above metadata.max.retention.bytes",
        )
    names = [name for name in usage.directory.files if name.endswith("-checkpoint")]
    if names:
        yield _never(
            f"{path}/*-checkpoint",
            None,
            "a few bytes; without them the broker recovers every log from the start, "
            "and followers may truncate committed records",
        )
    if CLEAN_MARK in usage.directory.files:
        yield _never(
            os.path.join(path, CLEAN_MARK),
            None,
            "without it, the broker recovers every log, which needs more space than it frees",
        )
    elif broker != RUNNING and names:
        yield _never(
            os.path.join(path, CLEAN_MARK),
            None,
            "do not create it: the broker would skip recovery, and append to logs that may end in half a batch",
        )
    for each in live:
        if each.has_swap or (each.cleaned_files and broker != STOPPED):
            yield _never(
                f"{each.place.path}/*.swap",
                None,
                "startup completes or discards what the log cleaner "
                "left, by which of .cleaned and .swap exist: without them it may discard the only copy",
            )
            break
    linked = usage.all_linked
    if linked:
        yield SpaceKept(
            path,
            linked,
            False,
            "files with further hard links, such as those of a backup: to remove them here frees nothing while their "
            "other names exist (find -links +1)",
        )
    future = sum(each.allocated for each in usage.in_state("future"))
    if future:
        yield SpaceKept(
            f"{path}/*-future",
            future,
            False,
            "replicas that are being moved here from another log directory: "
            "this goes on as soon as the broker is up, and needs the rest of their size; cancel with "
            "kafka-reassign-partitions.sh --cancel",
        )


def kept_elsewhere(system: FileSystem, own: int) -> Iterator[SpaceKept]:
    """Yield what takes space on the file system without being in the log directories, of which all take `own` bytes."""
    elsewhere = system.used - own
    if elsewhere >= system.total * SHARE:
        yield SpaceKept(
            system.mount or "",
            elsewhere,
            False,
            "other files on this file system, or deleted files that a process still holds open (du -x, lsof +L1)",
        )


def _never(path: str, allocated: int | None, text: str) -> SpaceKept:
    return SpaceKept(path, allocated, True, text)
