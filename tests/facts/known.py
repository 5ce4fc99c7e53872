"""Contradictions that are known. Each has an example, and the test fails once the example does not contradict any more:
then the entry goes."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """`commands`: any two of them may differ; `example`: disk and number of a random damage (random_damage.damaged)."""

    fact: str
    commands: tuple[str, ...]
    reason: str
    example: tuple[str, int]


KNOWN = [
    Known(
        "metadata offset",
        ("cluster", "space"),
        "of a damaged metadata log, cluster goes on after the damage, space stops there",
        ("3.6.2-kraft/controller", 8),
    ),
    Known(
        "logStartOffset",
        ("ls", "transactions", "producers", "retention", "diff", "restart-plan"),
        "of a checkpoint that a broker cannot parse, and ignores, all others take the lines that can be read",
        ("3.6.2-zk/clean", 134),
    ),
    Known(
        "truncated bytes",
        ("restart-plan", "reindex"),
        "reindex does not know the rules by which the metadata log is recovered",
        ("4.3.1-kraft/controller", 365),
    ),
]


def known(kind: tuple[str, str, str]) -> Known | None:
    """Return the entry for a class of contradictions."""
    fact, *commands = kind
    return next((each for each in KNOWN if each.fact == fact and set(commands) <= set(each.commands)), None)
