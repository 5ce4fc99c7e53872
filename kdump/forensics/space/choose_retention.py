"""Chooses the topics whose retention is lowered, and the values: as few records as reach the goal, and as make room for
a stopped broker to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdump.forensics.space.answers import SpaceCandidate
from kdump.forensics.space.lower_retention import RetainedTopic, candidates
from kdump.forensics.space.shortage import Shortage, mildest
from kdump.forensics.space.startup_steps import Room, may_be_removed, removable


class LowerRetention:
    """The values that could be set, of the examined topics, and those that are. `due`: number of due segments by topic
    and partition; `short`: what is missing, which becomes less with each value that is chosen."""

    def __init__(
        self, examined: Sequence[RetainedTopic], due: Mapping[str, list[int]], short: Sequence[Shortage]
    ) -> None:
        self.examined = examined
        self.due = due
        self.short = short
        self.values = {topic.name: candidates(topic) for topic in examined}
        self.chosen: dict[str, SpaceCandidate] = {}

    def reach_goal(self) -> None:
        """Choose what frees enough, beginning with the largest topic."""
        for topic in self.examined:
            self._choose(topic, self.short)

    def make_room(self, rooms: Sequence[Room], topics: Sequence[RetainedTopic]) -> None:
        """Choose what lets a stopped broker start, by segments that may then be removed by hand."""
        for room in rooms:
            for topic in self.examined:
                left = room.lacks - sum(removable(each, room, self.due[each.name], self.chosen) for each in topics)
                if left > 0 and topic.name not in self.chosen and may_be_removed(topic, "cleanup.policy"):
                    self._choose(topic, [Shortage(room.sources, left)])

    def _choose(self, topic: RetainedTopic, short: Sequence[Shortage]) -> None:
        due = self.due[topic.name]
        found = mildest(topic, due, self.values[topic.name], short)
        if found is not None:
            self.chosen[topic.name] = found
            for each in self.short:
                each.take_candidate(topic, due, found)
