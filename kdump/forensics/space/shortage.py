"""How many bytes each file system of a broker lacks, and the mildest lower retention that frees them.

What is freed on one file system is no help to another: with several log directories, each is considered by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdump.forensics.space.answers import RECORDS, SpaceCandidate, SpaceStep
from kdump.forensics.space.due_segments import RetainedLog
from kdump.forensics.space.lower_retention import RetainedTopic


@dataclass
class Shortage:
    """What is missing in log directories that share a file system, in bytes. `missing` is None if no goal is known."""

    sources: frozenset[str]
    missing: int | None

    @property
    def is_over(self) -> bool:
        return self.missing is not None and self.missing <= 0

    def take_steps(
        self, steps: Sequence[SpaceStep], topics: Sequence[RetainedTopic], due: Mapping[str, list[int]]
    ) -> None:
        """Subtract what the steps free that cost no records, and what is due for deletion."""
        if self.missing is None:
            return
        own = sum(each.frees for each in steps if each.source in self.sources and each.cost != RECORDS)
        several = sum(each.frees for each in steps if each.step == "compaction")
        held = sum(topic.allocated for topic in topics)
        here = sum(log.usage.allocated for topic in topics for log in self.logs(topic))
        self.missing -= own + (several * here // held if held else 0)
        for topic in topics:
            counts = zip(topic.logs, due[topic.name])
            self.missing -= sum(log.allocated(0, count) for log, count in counts if self.has(log))

    def take_candidate(self, topic: RetainedTopic, due: Sequence[int], candidate: SpaceCandidate) -> None:
        """Subtract what the lower retention frees."""
        if self.missing is not None:
            self.missing -= self.frees(topic, due, candidate)

    def has(self, log: RetainedLog) -> bool:
        return log.usage.place.source in self.sources

    def logs(self, topic: RetainedTopic) -> list[RetainedLog]:
        return [log for log in topic.logs if self.has(log)]

    def frees(self, topic: RetainedTopic, due: Sequence[int], candidate: SpaceCandidate) -> int:
        """Return what the lower retention frees here, without what is due anyway."""
        return sum(
            log.allocated(count, max(count, segments_below(log, candidate)))
            for log, count in zip(topic.logs, due)
            if self.has(log)
        )


def largest_first(topics: list[RetainedTopic], short: Sequence[Shortage]) -> list[RetainedTopic]:
    """Return the topics in the order of what they occupy where something is missing."""
    short = [each for each in short if not each.is_over]
    if not short:
        return topics
    return sorted(
        topics,
        key=lambda topic: (
            -sum(log.usage.allocated for each in short for log in each.logs(topic)),
            -topic.allocated,
            topic.name,
        ),
    )


def mildest(
    topic: RetainedTopic, due: Sequence[int], tries: Sequence[SpaceCandidate], short: Sequence[Shortage]
) -> SpaceCandidate | None:
    """Return the candidate that frees the least of those that free enough wherever the topic has logs and something is
    missing, or else the one that frees most there; None if none frees anything there."""
    short = [each for each in short if not each.is_over and each.logs(topic)]
    helpful = [(sum(found), each) for each in tries if sum(found := [one.frees(topic, due, each) for one in short])]
    enough = [pair for pair in helpful if all(one.frees(topic, due, pair[1]) >= (one.missing or 0) for one in short)]
    if enough:
        return min(enough, key=lambda pair: pair[0])[1]
    return max(helpful, key=lambda pair: pair[0])[1] if helpful else None


def segments_below(log: RetainedLog, candidate: SpaceCandidate) -> int:
    """Return how many of the log's first segments the lower retention deletes."""
    for each in candidate.logStartOffsets:
        if each.partition == log.usage.key[1]:
            return sum(segment.base < each.logStartOffset for segment in log.segments[:-1])
    return 0
