"""The course of a startup: what happens at it and in the hour after it, as events in time, and what each loses.

What counts as lost: docs/lost.md. A step of the prediction returns its Part; the course of a node is the sum of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, MS, NESTED, OFFSET, Doc, PathText, answer
from kdump.problems.problem import Problem

BEFORE, LOADING, FIRST_MINUTES, FIRST_CHECKS = PHASES = ("before", "loading", "firstMinutes", "firstChecks")
"""before: what keeps the node from starting, or a log directory from being used. loading: the logs are loaded,
recovered, truncated, deleted or made stray. firstMinutes: the node registers, partitions get their leaders, replicas
follow them, coordinators load. firstChecks: retention and other checks run for the first time."""
HORIZON = 3_600_000
"""Up to how many ms after the start a course is complete."""

RECORDS, OFFSETS, TRANSACTIONS, METADATA = "records", "committedOffsets", "transactions", "metadata"
CERTAIN, MAY, NO = "certain", "may", "no"
_WORST = (METADATA, RECORDS, OFFSETS, TRANSACTIONS)
WHILE_LOADING = "as soon as its log directory is loaded"
"""Why an event while logs are loaded has no time: that takes as long as recovery does (--estimate)."""


class Loss(NamedTuple):
    """What an event loses, as in docs/lost.md. A number that is unknown, or does not apply, is None."""

    what: Annotated[str, Doc("records, committedOffsets, transactions or metadata")]
    certainty: Annotated[str, Doc("certain or may")] = CERTAIN
    records: Annotated[int | None, Doc()] = None
    offsets: Annotated[int | None, Doc()] = None
    bytes: Annotated[int | None, Doc(unit=BYTES)] = None
    firstOffset: Annotated[int | None, Doc(unit=OFFSET)] = None
    lastOffset: Annotated[int | None, Doc(unit=OFFSET)] = None
    elsewhere: Annotated[
        tuple[int, ...] | None, Doc("brokers with another replica; null if unknown, or if it does not apply")
    ] = None


@answer("restartEvent")
class StartupEvent(NamedTuple):
    """Something that happens at a startup or within an hour of it. Its sentence is that of its problem."""

    phase: Annotated[str, Doc("before, loading, firstMinutes, firstChecks")]
    problem: Problem
    dueMs: Annotated[
        int | None, Doc("time after the start before which it does not happen; null if no file states it", MS)
    ]
    dueReason: Annotated[str, Doc("what it waits for; empty if only for that time")] = ""
    node: Annotated[int | None, Doc("node ID; null if unknown", after="phase")] = None
    topic: Annotated[PathText | None, Doc("topic; null if it is about the node", after="node")] = None
    partition: Annotated[int | None, Doc("partition; null if it is about the node", after="topic")] = None
    file: Annotated[PathText | None, Doc("file or directory; null if there is none", after="partition")] = None
    loss: Annotated[Loss | None, Doc(f"what it loses, {NESTED}; null if it loses nothing")] = None

    @property
    def code(self) -> Annotated[str, Doc("code in the catalogue of problems", after="dueReason")]:
        return self.problem.code

    @property
    def message(self) -> Annotated[PathText, Doc("what happens", after="code")]:
        return self.problem.title

    @property
    def is_within_the_hour(self) -> bool:
        return self.dueMs is None or self.dueMs <= HORIZON

    @property
    def is_of_log(self) -> bool:
        """Whether the examination of its log alone shows it."""
        return self.phase == LOADING or self.code == "startup-missing"

    @property
    def order(self) -> tuple[int, int]:
        """Place in the course."""
        return PHASES.index(self.phase), self.dueMs or 0

    @property
    def cost(self) -> tuple[int, int, int]:
        """The worst first: smaller is worse."""
        if self.loss is None:
            return 2, 0, 0
        size = self.loss.records or self.loss.offsets or self.loss.bytes or 0
        return self.loss.certainty != CERTAIN, _WORST.index(self.loss.what), -size


TOGETHER = "what follows is in the plan of the nodes together"
"""Why the plan of a node does not answer what other nodes decide, whose disks were given, too."""


class UnansweredStep(NamedTuple):
    """A step of the course whose events are not known."""

    step: Annotated[str, Doc("loading, leaders, transactions, committedOffsets, retention, remoteStorage")]
    reason: Annotated[PathText, Doc()]


class Part(NamedTuple):
    """What one step of the prediction returns."""

    events: tuple[StartupEvent, ...] = ()
    unanswered: tuple[UnansweredStep, ...] = ()


@dataclass
class Course:
    """The events of a startup, and the steps that are not answered."""

    events: list[StartupEvent] = field(default_factory=list)
    unanswered: list[UnansweredStep] = field(default_factory=list)

    def add(self, part: Part) -> None:
        self.events += part.events
        self.unanswered += (step for step in part.unanswered if step not in self.unanswered)

    def answered_together(self) -> None:
        """Note that the plan of several nodes has what their disks decide together."""
        others = [step for step in self.unanswered if step.step not in ("leaders", "quorum")]
        if len(others) < len(self.unanswered):
            self.unanswered = [*others, UnansweredStep("leaders", TOGETHER)]

    @property
    def in_order(self) -> list[StartupEvent]:
        """All events, the first in time first."""
        return sorted(self.events, key=lambda event: event.order)

    @property
    def losses(self) -> list[StartupEvent]:
        """The events within the hour that lose something, the worst first."""
        losing = (event for event in self.events if event.loss is not None and event.is_within_the_hour)
        return sorted(losing, key=lambda event: event.cost)

    @property
    def losesWithinHour(self) -> str:
        """certain, may, unknown or no."""
        if losses := self.losses:
            loss = losses[0].loss
            assert loss is not None
            return loss.certainty
        return "unknown" if self.unanswered else NO


def course_of(parts: Iterable[Part]) -> Course:
    """Return the course that consists of these parts."""
    course = Course()
    for part in parts:
        course.add(part)
    return course
