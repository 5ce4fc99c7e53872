"""What the log cleaner writes after a startup, before any space is freed.

The cleaner begins as soon as the broker has started. It writes the cleaned segments next to the old ones, which are
deleted file.delete.delay.ms (1 min) later: until then, cleaning a log can take up to the size of the segments that it
reads (LogCleanerManager.grabFilthiestCompactedLog, Cleaner.cleanSegments). If the disk is full before, the log
directory goes offline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kdump.questions.retention.compaction import compaction
from kdump.questions.retention.configs import FOREVER
from kdump.questions.space.retained_topics import RetainedLog, RetainedTopic


class Cleaning(NamedTuple):
    """A partition that the cleaner cleans after a startup: at most how many bytes it writes, and to one segment.
    `is_postponable`: whether min.cleanable.dirty.ratio=1 prevents it."""

    topic: RetainedTopic
    log: RetainedLog
    writes: int
    segment: int
    is_postponable: bool


def first_cleanings(topics: Iterable[RetainedTopic]) -> list[Cleaning]:
    """Return the partitions that the cleaner would clean, as far as sizes and configs show. One whose cleaning was
    interrupted is cleaned again."""
    return [
        cleaning
        for topic in topics
        if topic.settings.compacts and topic.settings["log.cleaner.enable"]
        for log in topic.logs
        if (cleaning := _cleaning(topic, log)) is not None
    ]


def _cleaning(topic: RetainedTopic, log: RetainedLog) -> Cleaning | None:
    found = compaction(log.segments, log.facts, topic.settings, log.cleaned)
    # Whether max.compaction.lag.ms has passed is in the batches.
    is_overdue = topic.settings["max.compaction.lag.ms"] < FOREVER and found.cleanable_bytes > 0
    if not (found.is_taken or is_overdue or (".cleaned" in log.usage.by_suffix and found.cleanable_bytes)):
        return None
    stop = sum(segment.base < found.stop for segment in log.segments)
    read = log.usage.allocs[:stop]
    return Cleaning(topic, log, sum(read), max(read, default=0), not is_overdue)


def room_for_cleanings(cleanings: Sequence[Cleaning], source: str) -> int:
    """Return what the cleaner writes in a log directory before it deletes anything: at least a segment in each of its
    threads, and all of what cannot be postponed."""
    here = [each for each in cleanings if each.log.usage.place.source == source]
    threads = max((each.topic.settings["log.cleaner.threads"] for each in here), default=1)
    segments = sorted((each.segment for each in here if each.is_postponable), reverse=True)[:threads]
    return sum(segments) + sum(each.writes for each in here if not each.is_postponable)
