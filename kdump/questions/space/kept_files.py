"""What must not be deleted to make room, where it applies to the disk, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import CLEAN_MARK
from kdump.questions.space.answer import RUNNING, STOPPED, SpaceKept
from kdump.questions.space.usage import DirectoryUsage

START = (
    "do not start the broker before there is room: since 4.0, recovery empties a segment whose producer snapshot the "
    "disk does not take, and deletes those after it; it recovers the metadata log at every start"
)
WITH_LOGS = {
    "*/": "the segment with the highest offset in its name is the active one: acknowledged records, and offsets that "
    "would be given again",
    "*/*.index": "rebuilding them needs the same space again, and recovery truncates the log at the first damage; "
    ".timeindex and .txnindex likewise",
    "*/*.snapshot": "without the newest, the broker no longer recognizes duplicates and open transactions",
}
TOPICS = {
    "__consumer_offsets": "all groups lose their committed offsets",
    "__transaction_state": "transactions are never ended, and read_committed consumers stop",
}
METADATA = (
    "the cluster's metadata; the broker itself deletes what is below its newest .checkpoint, above "
    "metadata.max.retention.bytes"
)
CHECKPOINTS = (
    "a few bytes; without them the broker recovers every log from the start, and followers may truncate committed "
    "records"
)
MARK = "without it, the broker recovers every log, which needs more space than it frees"
NO_MARK = "do not create it: the broker would skip recovery, and append to logs that may end in half a batch"
SWAP = (
    "startup completes or discards what the log cleaner left, by which of .cleaned and .swap exist: without them it "
    "may discard the only copy"
)
LINKED = (
    "files with further hard links, such as those of a backup: to remove them here frees nothing while their other "
    "names exist (find -links +1)"
)
FUTURE = (
    "replicas that are being moved here from another log directory: this goes on as soon as the broker is up, and "
    "needs the rest of their size; cancel with kafka-reassign-partitions.sh --cancel"
)


def kept_files(usage: DirectoryUsage, broker: str, *, is_full: bool) -> Iterator[SpaceKept]:
    """Yield what must stay in a log directory. `is_full`: whether a stopped broker lacks space to start."""
    path = usage.directory.path
    live = usage.live()
    if is_full and broker != RUNNING:
        yield SpaceKept(path, None, True, START)
    if any(log.segments for log in live):
        yield from (SpaceKept(f"{path}/{pattern}", None, True, why) for pattern, why in WITH_LOGS.items())
    for topic, what in TOPICS.items():
        size = sum(log.allocated for log in live if log.place.topic == topic)
        if size:
            text = f"{what}; compaction makes it smaller, see kdump retention"
            yield SpaceKept(f"{path}/{topic}-*", size, True, text)
    for log in usage.in_state(""):
        if log.place.topic == METADATA_TOPIC:
            yield SpaceKept(log.place.path, log.allocated, True, METADATA)
    names = [name for name in usage.directory.files if name.endswith("-checkpoint")]
    if names:
        yield SpaceKept(f"{path}/*-checkpoint", None, True, CHECKPOINTS)
    has_mark = CLEAN_MARK in usage.directory.files
    if has_mark or (broker != RUNNING and names):
        yield SpaceKept(os.path.join(path, CLEAN_MARK), None, True, MARK if has_mark else NO_MARK)
    for log in live:
        if ".swap" in log.left or (".cleaned" in log.left and broker != STOPPED):
            yield SpaceKept(f"{log.place.path}/*.swap", None, True, SWAP)
            break
    linked = usage.total().linked
    if linked:
        yield SpaceKept(path, linked, False, LINKED)
    future = sum(log.allocated for log in usage.in_state("future"))
    if future:
        yield SpaceKept(f"{path}/*-future", future, False, FUTURE)
