"""What the log cleaner writes after a startup, before any space is freed, and the step that postpones it.

The cleaner begins as soon as the broker has started. It writes the cleaned segments next to the old ones, which are
deleted file.delete.delay.ms (1 min) later: until then, cleaning a log can take up to the size of the segments that it
reads (LogCleanerManager.grabFilthiestCompactedLog, Cleaner.cleanSegments). If the disk is full before, the log
directory goes offline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdump.forensics.retention.compaction import compaction
from kdump.forensics.retention.configs import FOREVER
from kdump.forensics.space.answers import CONFIG, NOTHING, SpaceStep
from kdump.forensics.space.due_segments import RetainedLog, with_value
from kdump.forensics.space.leftover_steps import step
from kdump.forensics.space.lower_retention import BY_CONTROLLER, RetainedTopic, alter_topic, undo

RATIO = "min.cleanable.dirty.ratio"
LOW_RATIO = 0.01
"""The value that a `compaction` step sets, so that a topic is cleaned."""


class Cleaning(NamedTuple):
    """A partition that the cleaner cleans after a startup: at most how many bytes it writes, and to one segment.
    `is_postponable`: whether min.cleanable.dirty.ratio=1 prevents it."""

    topic: RetainedTopic
    log: RetainedLog
    writes: int
    segment: int
    is_postponable: bool


def first_cleanings(topics: Iterable[RetainedTopic], wanted: Collection[str]) -> list[Cleaning]:
    """Return the partitions that the cleaner would clean, as far as sizes and configs show. One whose cleaning was
    interrupted is cleaned again. `wanted`: topics for which a `compaction` step is considered."""
    return [
        cleaning
        for topic in topics
        if topic.settings.compacts and topic.settings["log.cleaner.enable"]
        for log in topic.logs
        if (cleaning := _cleaning(topic, log, is_wanted=topic.name in wanted)) is not None
    ]


def _cleaning(topic: RetainedTopic, log: RetainedLog, *, is_wanted: bool) -> Cleaning | None:
    settings = with_value(topic.settings, RATIO, LOW_RATIO) if is_wanted else topic.settings
    found = compaction(log.segments, log.facts, settings, log.cleaned)
    # Whether max.compaction.lag.ms has passed is in the batches.
    is_overdue = topic.settings["max.compaction.lag.ms"] < FOREVER and found.cleanable_bytes > 0
    if not (found.is_taken or is_overdue or (log.usage.cleaned_files and found.cleanable_bytes)):
        return None
    stop = sum(segment.base < found.stop for segment in log.segments)
    read = log.usage.allocs[:stop]
    return Cleaning(topic, log, sum(read), max(read, default=0), not is_overdue)


def room_for_cleanings(cleanings: Sequence[Cleaning], sources: frozenset[str]) -> int:
    """Return what the cleaner writes there before it deletes anything: at least a segment in each of its threads, and
    all of what cannot be postponed."""
    here = [each for each in cleanings if each.log.usage.place.source in sources]
    threads = max((each.topic.settings["log.cleaner.threads"] for each in here), default=1)
    segments = sorted((each.segment for each in here if each.is_postponable), reverse=True)[:threads]
    return sum(segments) + sum(each.writes for each in here if not each.is_postponable)


def postponed(
    cleanings: Sequence[Cleaning], sources: frozenset[str], room: int, compacted: frozenset[str]
) -> Iterator[SpaceStep]:
    """Yield the steps that postpone the cleaning of topics, if all of it takes more than `room` bytes. `compacted`:
    topics that a step wants to be cleaned."""
    here = [each for each in cleanings if each.log.usage.place.source in sources]
    if sum(each.writes for each in here) <= room:
        return
    writes: dict[str, int] = {}
    topics = {}
    for each in here:
        if each.is_postponable and each.topic.name not in compacted:
            writes[each.topic.name] = writes.get(each.topic.name, 0) + each.writes
            topics[each.topic.name] = each.topic
    for name, size in sorted(writes.items(), key=lambda pair: (-pair[1], pair[0])):
        yield step(
            "postponeCleaning",
            CONFIG,
            "",
            topic=name,
            size=size,
            cost=NOTHING,
            needs="any",
            text="the log cleaner begins at startup, and writes cleaned segments next to the old ones, which it "
            "deletes 1 min later: more than is free then. This postpones it until you set the value back; "
            f"{BY_CONTROLLER}",
            command=alter_topic(name, f"--add-config {RATIO}=1"),
            undo=undo(topics[name], RATIO),
        )
