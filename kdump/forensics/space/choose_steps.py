"""Chooses the steps that reach a goal, the cheapest first, and puts them in order."""

from __future__ import annotations

from kdump.forensics.space.answers import CONFIG, DUE, FILES, JUDGE, NOTHING, RECORDS, REPLICA, WAIT, SpaceStep

COSTS = (NOTHING, DUE, JUDGE, REPLICA, RECORDS)
"""From the cheapest to the most expensive: records that consumers may still read come last."""
HOW = (CONFIG, WAIT, FILES)
FOR_STARTUP = "oldestSegments"


def steps_for_goal(steps: list[SpaceStep], goal: int, needed: int) -> list[SpaceStep]:
    """Return the cheapest steps that free `goal` bytes together; all of them if they free less. Those without which the
    broker cannot start (`needed` bytes) stay, as do those that free nothing now."""
    is_lowered = any(each.step == FOR_STARTUP and each.cost == RECORDS for each in steps)
    kept: list[SpaceStep] = []
    freed = room = 0
    for each in sorted(steps, key=lambda step: (COSTS.index(step.cost), -step.frees)):
        if each.step == FOR_STARTUP or not each.frees or (each.step == "retention" and is_lowered):
            kept.append(each)
            continue
        makes_room = each.needs != "running" and each.how == FILES
        if freed >= goal and not (makes_room and room < needed):
            continue
        kept.append(each)
        freed += each.frees
        room += each.frees if makes_room else 0
    return kept


def ordered(steps: list[SpaceStep]) -> list[SpaceStep]:
    """Return the steps numbered in the order in which to take them: configuration commands, then what the broker does
    by itself, then files; in each the cheapest first, then what frees most."""
    found = sorted(steps, key=lambda step: (HOW.index(step.how), COSTS.index(step.cost), -step.frees))
    return [each._replace(number=number) for number, each in enumerate(found, 1)]
