"""Checks the course of a startup: its events in time, and what they lose."""

from __future__ import annotations

from kdump.problems.problem import Problem
from kdump.questions.restart_plan.course import (
    BEFORE,
    FIRST_CHECKS,
    HORIZON,
    LOADING,
    MAY,
    OFFSETS,
    RECORDS,
    Loss,
    Part,
    StartupEvent,
    UnansweredStep,
    course_of,
)

STRAY = Problem("startup-stray")


def test_the_worst_within_the_hour_comes_first_and_nothing_is_lost_only_if_all_is_answered() -> None:
    later = StartupEvent(FIRST_CHECKS, STRAY, HORIZON + 1, loss=Loss(RECORDS, records=9))
    few, many = (StartupEvent(LOADING, STRAY, None, loss=Loss(RECORDS, records=number)) for number in (1, 2))
    maybe = StartupEvent(BEFORE, STRAY, 0, loss=Loss(RECORDS, MAY, records=3))
    offsets = StartupEvent(FIRST_CHECKS, STRAY, 600_000, loss=Loss(OFFSETS, offsets=100))
    harmless = StartupEvent(BEFORE, STRAY, 0)
    unanswered = UnansweredStep("retention", "no configs")
    course = course_of(
        [Part((later, few, maybe)), Part((many, offsets, harmless), (unanswered,)), Part((), (unanswered,))]
    )
    assert course.losses == [many, few, offsets, maybe]
    assert course.losesWithinHour == "certain"
    assert course.in_order == [maybe, harmless, few, many, offsets, later]
    assert course.unanswered == [unanswered]
    assert course_of([Part((maybe, later))]).losesWithinHour == "may"
    assert course_of([Part((harmless, later), (unanswered,))]).losesWithinHour == "unknown"
    assert course_of([Part((harmless, later))]).losesWithinHour == "no"
