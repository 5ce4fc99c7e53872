"""Contradictions that are known. Each has an example, and the test fails once the example does not contradict any more:
then the entry goes."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """`command` contradicts the `others`, which agree; `example`: disk and number of a random damage
    (random_damage.damaged)."""

    fact: str
    command: str
    others: tuple[str, ...]
    reason: str
    example: tuple[str, int]


KNOWN = [
    Known(
        "metadata offset",
        "space",
        ("cluster",),
        "of a damaged metadata log, cluster goes on after the damage, space stops there",
        ("3.6.2-kraft/controller", 8),
    ),
    Known(
        "truncated bytes",
        "reindex",
        ("restart-plan",),
        "reindex does not know the rules by which the metadata log is recovered",
        ("4.3.1-kraft/controller", 365),
    ),
]


def known(kind: tuple[str, str, str]) -> Known | None:
    """Return the entry for a class of contradictions: the fact, and two commands."""
    fact, *commands = kind
    return next((each for each in KNOWN if each.fact == fact and _is_about(each, commands)), None)


def _is_about(entry: Known, commands: list[str]) -> bool:
    return entry.command in commands and {*commands} <= {entry.command, *entry.others}
