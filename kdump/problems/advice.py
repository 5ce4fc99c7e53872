"""What follows from a problem and what to do about it: the texts of the catalogue, with what the problem states."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kdump.problems.catalogue import Action, declaration, fact_clauses, is_shared_impact, shared_impact

NO_VALUES: Mapping[str, object] = {}
NO_FACTS: Mapping[str, bool | None] = {}
PLACEHOLDER = re.compile(
    r"(?<![\w-])(?:TOPIC:PARTITION|TOPIC|PARTITION|DIR|SEGMENT|POSITION|NEXT-OFFSET|OFFSET|PRODUCER-ID|GROUP|CONNECTOR)(?![\w-])"
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


def impact(code: str, case: str = "", offset: int | None = None, values: Mapping[str, object] = NO_VALUES) -> str:
    """Return the impact of a problem. `case`: the name of the impact that applies in place of the usual one, or several
    joined with +; `offset`: the first one affected, None if it is unknown."""
    declared = declaration(code)
    cases = case.split("+") if case else ()
    text = "; ".join(declared.impacts.get(one) or shared_impact(one) for one in cases) or declared.consequence
    if offset is None:
        for words, instead in PLACELESS:
            text = text.replace(words, instead)
    return text.format_map({"offset": offset, **values})


def has_case(code: str, case: str) -> bool:
    """Return True if a problem has an impact of that name: a file may state any."""
    return not case or case in declaration(code).impacts or is_shared_impact(case)


def chosen_text(action: Action, facts: Mapping[str, bool | None]) -> str:
    """Return an action after its conditions that are unknown, which are also those that `facts` lacks; empty if one is
    false."""
    unknown = []
    for fact, wanted in action.when:
        value = facts.get(fact)
        if value is None:
            unknown.append(fact_clauses(fact)[wanted])
        elif value != wanted:
            return ""
    if facts.get("running") is False and (stop := STOP.match(action.do)):
        rest = action.do[stop.end() :]
        action = action._replace(do=rest[:1].upper() + rest[1:])
    return action.after(unknown)
