"""Chooses the reference copy among several replicas, and finds the offset up to which the others share its history.

Leader epochs decide, as between brokers (KIP-101). If a batch's epoch differs from that of the reference copy at the
same offset, it was written by a leader whose records the others never received, and so was everything after it. If two
copies have different records at one offset in the same epoch, nothing in them shows which is correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kdump.check.options import Options
from kdump.kafka.leader_epoch_file_cache import StoredEpoch, epoch_for_offset, first_falling
from kdump.questions.diff.copy_facts import CopyFacts
from kdump.questions.diff.differences import RECORDS
from kdump.questions.diff.run import Diff, diff_copies
from kdump.questions.find_copies import Copy


@dataclass
class ReplicaHistories:
    """The decisions about the copies. `epochs`: those of the reference copy, empty if it has none;
    `from_checkpoint`: they are from its leader-epoch-checkpoint, not from its batches in order of position. `stop`:
    from this offset on, only the operator can decide between two histories; None if there is no such offset."""

    order: list[int]
    """Numbers of the copies as given, the reference copy first. Elsewhere here a copy's number is its index in this."""
    epochs: Sequence[StoredEpoch] = field(default_factory=list)
    divergences: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By copy, where it diverges from the reference copy, so that nothing from this offset on is used, and what decided
    that."""
    from_checkpoint: bool = True
    stop: int | None = None
    notes: list[str] = field(default_factory=list)

    def divergence_of(self, copy: int, base: int, last: int, epoch: int) -> str:
        """Return why a batch of a copy (an index in `order`) belongs to another history; empty if it does not. No batch
        in live segments of the reference copy does: the caller passes -1 as their epoch."""
        divergence = self.divergences.get(copy)
        if divergence is not None and last >= divergence[0]:
            return divergence[1]
        own = epoch_for_offset(self.epochs, base)
        if epoch < 0 or own is None or own == epoch:
            return ""
        return f"its leader epoch is {epoch}, but the reference copy has {own} at offset {base}"


def histories_of(copies: Sequence[Copy], options: Options, prefer: int | None) -> ReplicaHistories:
    """Choose the reference copy, and find where the others diverge. `prefer`: the number of the copy to follow whatever
    the others contain. If there are several, each copy is read once per other copy."""
    if len(copies) == 1:
        given = copies[0].epochs or ()
        return ReplicaHistories([0], given if first_falling(given) is None else ())
    diff = diff_copies(list(copies), options, asks_keys=False)
    facts = diff.copies
    order = sorted(range(len(copies)), key=lambda number: (number != prefer, -_newest(facts[number]), number))
    made = ReplicaHistories(order, facts[order[0]].history, from_checkpoint=facts[order[0]].epochs is not None)
    for place in range(len(order)):
        for above in range(place):
            _add_divergence(made, diff, above, place, prefer)
    first = facts[order[0]]
    if len(order) > 1:
        why = "chosen with --prefer" if prefer is not None else "it has the highest leader epoch"
        if prefer is None and _newest(first) == _newest(facts[order[1]]):
            why = "no other has a higher leader epoch, and it was given first"
        made.notes.append(f"{first.path} is the reference copy: {why}")
    return made


def _add_divergence(made: ReplicaHistories, diff: Diff, above: int, place: int, prefer: int | None) -> None:
    """Record what follows from the first offset at which two copies have different records."""
    one, other = made.order[above], made.order[place]
    pair = diff.pairs[(min(one, other), max(one, other))]
    divergence = min((each.first for each in pair.differences if each.kind == RECORDS), default=None)
    earlier = made.divergences.get(place)
    if divergence is None or (earlier is not None and earlier[0] <= divergence):
        return
    higher = made.divergences.get(above)
    if higher is not None and higher[0] <= divergence:
        return  # that copy has diverged already, and decides nothing here
    batches = pair.batches_at.get(divergence, (None, None))
    epochs = [None if each is None else each.leaderEpoch for each in batches]
    mine, theirs = epochs if one < other else reversed(epochs)
    paths = diff.copies[one].path, diff.copies[other].path
    if one == prefer and above == 0:
        reason = f"from offset {divergence} on it differs from {paths[0]}, which was chosen with --prefer"
    elif mine is not None and theirs is not None and mine > theirs:
        reason = f"from offset {divergence} on {paths[0]} has leader epoch {mine}, and this copy has {theirs}"
    else:
        epoch_text = f"both in leader epoch {mine}" if mine == theirs else f"in leader epochs {mine} and {theirs}"
        both = f"{paths[0]} and {paths[1]} have different records at offset {divergence}, {epoch_text}"
        choose = "run kdump diff to see how they differ, and choose one with --prefer PATH"
        if above:  # the reference copy is not affected, but neither of these can fill its gaps
            for each in (above, place):
                made.divergences[each] = divergence, f"{both}, and nothing shows which is right"
            made.notes.append(f"{both}: from there on, neither fills gaps; {choose}")
            return
        made.stop = divergence if made.stop is None else min(made.stop, divergence)
        made.notes.append(f"{both}: from there on, nothing is written; {choose}")
        return
    made.divergences[place] = divergence, reason


def _newest(facts: CopyFacts) -> int:
    """Return the highest leader epoch of a copy, -1 without one."""
    return max((entry.epoch for entry in facts.history), default=-1)
