"""Which of several replicas is followed, and up to where the others are of the same history.

Leader epochs decide, as between brokers (KIP-101): a batch whose epoch is not the one that the followed copy has at
its offset was written by a leader that the others never heard, and so was all behind it. Where two copies have other
records at one offset in the same epoch, nothing in them says which is right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kdump.check.options import Options
from kdump.forensics.copies import Copy
from kdump.forensics.copy_facts import CopyFacts
from kdump.forensics.diff import Diff, diff_copies
from kdump.forensics.differences import RECORDS


@dataclass
class Parting:
    """Where the history of a copy (by its number) leaves the one that is followed: from `offset` on nothing of it is
    taken. `reason` says what decided that."""

    copy: int
    offset: int
    reason: str


@dataclass
class Histories:
    """What was decided of the copies. `epochs`: (epoch, start offset) of the followed copy, empty where it has none;
    `noted`: they are those of its leader-epoch-checkpoint, and not of its batches in the order of positions. `stop`:
    from here on two histories cannot be told apart by anything but the operator; None: nowhere."""

    order: list[int]
    """The copies by their numbers as given, the one that is followed first: a copy's number here is its place in it."""
    epochs: list[tuple[int, int]] = field(default_factory=list)
    partings: dict[int, Parting] = field(default_factory=dict)
    noted: bool = True
    stop: int | None = None
    notes: list[str] = field(default_factory=list)

    def parted(self, copy: int, base: int, last: int, epoch: int) -> str:
        """Why a batch of a copy (by its place in `order`) is of another history; empty if it is not. Of the live
        segments of the one that is followed none is: their own epochs (-1 here) say nothing."""
        parting = self.partings.get(copy)
        if parting is not None and last >= parting.offset:
            return parting.reason
        if epoch < 0 or not self.epochs:
            return ""
        at = bisect_right([start for _, start in self.epochs], base) - 1
        if at < 0 or self.epochs[at][0] == epoch:
            return ""
        return f"its leader epoch is {epoch}, the copy that is followed has {self.epochs[at][0]} at offset {base}"


def histories_of(copies: Sequence[Copy], options: Options, prefer: int | None, met: Callable[[int], None]) -> Histories:
    """What is decided of these copies; `prefer`: the one (by its number) that is followed whatever the others say. Two
    and more are read for it, each as often as there are others."""
    if len(copies) == 1:
        given = [(each.epoch, each.startOffset) for each in copies[0].epochs or ()]
        rises = all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(given))
        return Histories([0], given if rises else [])
    found = diff_copies(list(copies), options, met)
    facts = found.copies
    order = sorted(range(len(copies)), key=lambda number: (number != prefer, -_newest(facts[number]), number))
    made = Histories(order, _epochs(facts[order[0]]), noted=facts[order[0]].epochs is not None)
    for place in range(len(order)):
        for above in range(place):
            _hold(made, found, above, place, prefer)
    first = facts[order[0]]
    if len(order) > 1:
        why = "it is preferred" if prefer is not None else "its leader epoch is the highest"
        if prefer is None and _newest(first) == _newest(facts[order[1]]):
            why = "none has a higher leader epoch, and it was given first"
        made.notes.append(f"{first.path} is followed: {why}")
    return made


def _hold(made: Histories, found: Diff, above: int, place: int, prefer: int | None) -> None:
    """What comes of the first offset at which two copies have other records."""
    one, other = made.order[above], made.order[place]
    pair = found.pairs[(min(one, other), max(one, other))]
    parting = min((each.first for each in pair.differences if each.kind == RECORDS), default=None)
    known = made.partings.get(place)
    if parting is None or (known is not None and known.offset <= parting):
        return
    higher = made.partings.get(above)
    if higher is not None and higher.offset <= parting:
        return  # it is no measure from there on
    standing = pair.standing.get(parting, (None, None))
    epochs = [None if each is None else each.leaderEpoch for each in standing]
    mine, theirs = epochs if one < other else reversed(epochs)
    paths = found.copies[one].path, found.copies[other].path
    if one == prefer and above == 0:
        reason = f"from offset {parting} on it says something else than {paths[0]}, which is preferred"
    elif mine is not None and theirs is not None and mine > theirs:
        reason = f"from offset {parting} on {paths[0]} has leader epoch {mine}, and this copy {theirs}"
    else:
        said = f"both in leader epoch {mine}" if mine == theirs else f"in leader epochs {mine} and {theirs}"
        both = f"{paths[0]} and {paths[1]} have other records at offset {parting}, {said}"
        choose = "--prefer PATH says which to follow, and kdump diff how they differ"
        if above:  # the one that is followed goes on, and neither of these can fill what it lacks
            for each in (above, place):
                made.partings[each] = Parting(each, parting, f"{both}, and nothing says which is right")
            made.notes.append(f"{both}: neither fills holes from there on; {choose}")
            return
        made.stop = parting if made.stop is None else min(made.stop, parting)
        made.notes.append(f"{both}: nothing from there on is written; {choose}")
        return
    made.partings[place] = Parting(place, parting, reason)


def _newest(facts: CopyFacts) -> int:
    """The highest leader epoch that a copy knows."""
    return max((epoch for epoch, _ in facts.lineage.epochs), default=-1)


def _epochs(facts: CopyFacts) -> list[tuple[int, int]]:
    return list(facts.lineage.epochs)
