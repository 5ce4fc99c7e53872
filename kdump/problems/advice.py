"""What follows from a problem and what to do about it: the texts of the catalogue, with what the problem states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kdump.problems.catalogue import PAST_IT, Action, declaration, fact_clauses, lowered, shared_impact

NO_VALUES: Mapping[str, object] = {}
NO_FACTS: Mapping[str, bool | None] = {}
PLACEHOLDER = re.compile(
    rf"(?<![\w-])(?:TOPIC:PARTITION|TOPIC|PARTITION|DIR|SEGMENT|POSITION|{PAST_IT}|OFFSET|PRODUCER-ID|GROUP|CONNECTOR)(?![\w-])"
)
"""The words of the catalogue's actions that stand for what a problem is about."""
STOP = re.compile(r"Stop the (?:broker|node)(?:,| and|\.) ")
"""How an action begins that needs no stop if the broker is not running."""
PLACELESS = (
    ("reaches offset {offset}", "reaches these bytes"),
    ("stop at offset {offset}", "stop there"),
    ("wait at offset {offset}", "wait there"),
    ("from offset {offset} on", "from there on"),
    ("from offset {offset} exits", "from there exits"),
    ("stays at {offset}", "stays there"),
    ("{offset}", "the first affected offset"),
)
"""Phrases of impacts that contain an offset, and their replacements if no offset is known."""


def joined_cases(*cases: str) -> str:
    """Return several cases as one, of which the first decides."""
    return "+".join(cases)


def cases_of(case: str) -> list[str]:
    """Return the cases that are joined in one."""
    return case.split("+")


def impact(code: str, case: str = "", *, has_offset: bool) -> str:
    """Return the impact of a problem, with its fields. `case`: the name of the impact that applies in place of the
    usual one, or several (joined_cases); `has_offset`: whether the first offset affected is known."""
    declared = declaration(code)
    texts = (declared.impacts.get(one) or shared_impact(one) for one in cases_of(case))
    text = "; ".join(filter(None, texts)) or declared.consequence
    for words, instead in () if has_offset else PLACELESS:
        text = text.replace(words, instead)
    return text


def has_case(code: str, case: str) -> bool:
    """Return True if a problem has an impact of that name: a file may state any."""
    return not case or case in declaration(code).impacts or bool(shared_impact(case))


def open_actions(actions: Iterable[Action], facts: Mapping[str, bool | None]) -> list[Action]:
    """Return the actions none of whose conditions is false, each with those that are unknown."""
    return [each for one in actions if (each := _open(one, facts)) is not None]


def chosen_texts(actions: Iterable[Action], facts: Mapping[str, bool | None]) -> list[str]:
    """Return the actions whose conditions hold. A condition that is unknown, or that `facts` lacks, is asked once, in
    front of all that depends on it; "Otherwise" precedes what the other answer needs."""
    left = open_actions(actions, facts)
    texts = []
    while left:
        asked = _asked(left)
        if asked is None:
            texts.append(left.pop(0).conditional)
            continue
        fact, wanted = asked
        branches = [[each for each in left if (fact, value) in each.when] for value in (wanted, not wanted)]
        left = [each for each in left if each not in branches[0] and each not in branches[1]]
        begin = f"If {fact_clauses(fact)[wanted]}"
        for branch in filter(None, branches):
            rest = (each._replace(when=tuple(one for one in each.when if one[0] != fact)) for each in branch)
            texts.append(f"{begin}{':' if branch[1:] else ','} {lowered('. '.join(each.conditional for each in rest))}")
            begin = "Otherwise"
    return texts


def _open(action: Action, facts: Mapping[str, bool | None]) -> Action | None:
    """Return an action with those of its conditions that are unknown; None if one is false."""
    known = [(facts.get(fact), wanted) for fact, wanted in action.when]
    if any(value is not None and value != wanted for value, wanted in known):
        return None
    if facts.get("running") is False and (stop := STOP.match(action.do)):
        rest = action.do[stop.end() :]
        action = action._replace(do=rest[:1].upper() + rest[1:])
    return action._replace(when=tuple(one for one, (value, _) in zip(action.when, known) if value is None))


def _asked(actions: list[Action]) -> tuple[str, bool] | None:
    """Return an unknown condition of the first action on which another one depends, too, with the answer that has a
    clause: first one whose other answer needs something else. None if there is none."""
    others = [one for each in actions[1:] for one in each.when]
    for fact, wanted in actions[0].when:
        if (fact, not wanted) in others:
            return fact, wanted == bool(fact_clauses(fact)[wanted])
    return next((one for one in actions[0].when if one in others and fact_clauses(one[0])[one[1]]), None)
