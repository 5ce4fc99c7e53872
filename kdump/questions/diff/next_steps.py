"""What to do about copies that differ: what a broker would do with either as the leader, and what to save first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kdump.log.source import RECORDS
from kdump.questions.diff.differences import DAMAGE, SAME
from kdump.questions.diff.run import Diff, FollowerOutcome


def letter(number: int) -> str:
    """Return the letter that identifies a copy in the report: A, B, C …"""
    return chr(ord("A") + number) if number < 26 else f"#{number + 1}"


def next_steps(diff: Diff) -> Iterator[str]:
    """Yield what a broker would do, and what you should do."""
    choices = diff.choices
    if diff.relation == SAME:
        choices = [each for each in choices if each.does.loses]
    if diff.majority:
        choices = [each for each in choices if each.leader == diff.majority[0]]
    for each in choices:
        yield _choice(diff, each)
    damaged = [number for number, copy in enumerate(diff.copies) if copy.damaged]
    for number in damaged:
        yield (
            f"{letter(number)} is damaged: run kdump verify {diff.copies[number].path}; with its broker stopped, you"
            " can replace it with an intact copy that ends no earlier"
        )
    if diff.history is not None:
        where = ", on its broker" if RECORDS in diff.copies[0].lacks else ""
        yield f"before you delete one, save what it has from offset {diff.history} on{where}:"


def save_commands(diff: Diff) -> Iterator[str]:
    """Yield the commands that save what the copies have from where they diverge."""
    if diff.history is None:
        return
    for number, copy in enumerate(diff.copies):
        if copy.logEndOffset is None or copy.logEndOffset > diff.history:
            path = shlex.quote(copy.path)
            yield f"kdump inspect {path} --records --offset {diff.history}.. --json > {letter(number)}.jsonl"


def _choice(diff: Diff, each: FollowerOutcome) -> str:
    leader, follower, does = letter(each.leader), letter(each.follower), each.does
    text = f"{leader} elected: {follower} "
    if does.by == "logStart":
        return text + f"deletes all its records and restarts at offset {does.offset}, the log start offset of {leader}"
    if does.offset is None:
        return text + "has no leader epochs and truncates to its high watermark, which is unknown here"
    if does.loses:
        text += f"truncates to offset {does.offset} and loses its offsets {does.offset}..{does.offset + does.loses - 1}"
    else:
        text += f"truncates nothing and fetches from offset {does.offset}"
    if does.by == "highWatermark":
        text += " (by its high watermark: it has no leader epochs)"
    pair = diff.pairs[(min(each.leader, each.follower), max(each.leader, each.follower))]
    if each.mends is False and pair.first is not None:
        offset = pair.first.first
        if pair.first.kind == DAMAGE:
            text += f"; the damage at offset {offset} stays: no broker repairs it by itself"
        else:
            text += f"; the copies still differ at offset {offset}, and no broker detects it"

    return text
