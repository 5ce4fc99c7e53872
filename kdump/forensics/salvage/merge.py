"""The batches of several files as one log: each offset once, from the best copy, and never of two histories.

The rule, for batches that share offsets: what is whole before what is made of damaged records; live segments of the
copy that is followed before those of other replicas, and these before .deleted, .swap and .cleaned files; then the
higher leader epoch; then the one that begins first; then the one with more records. So the others only fill holes of
the first. Which copy is followed, and up to where the others are of its history, is decided before (histories.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

from kdump.forensics.salvage.fates import CONTRADICTS, DIVERGED, DUPLICATE, OVERLAPS, SUPERSEDED, UNDECIDED, UNUSED
from kdump.forensics.salvage.heads import Head
from kdump.forensics.salvage.histories import Histories
from kdump.forensics.salvage.strand import Strand
from kdump.log.region import BatchV2

Disposed = Callable[[Head, str, str], None]
"""Is told of a sound batch that is not written: its fate, and why."""
COMPACTED = (
    "the log is compacted, and the copy that is followed lacks it without damage: the cleaner may have dropped it"
)


class Merge:
    """Walks the strands side by side. `damaged`: something of the copy that is followed was lost since its last batch;
    whoever hears of losses sets it. `compacted`: the log is known to be."""

    def __init__(self, strands: Sequence[Strand], histories: Histories, disposed: Disposed, *, compacted: bool) -> None:
        self.waiting = sorted(strands, key=lambda each: (each.place.name, each.tier, each.place.copy, each.place.order))
        self.active: list[Strand] = []
        self.histories = histories
        self.disposed = disposed
        self.last: int | None = None
        self.epoch = -1
        self.damaged = False
        self._compacted = compacted
        self._followed = False
        """Whether a batch of the copy that is followed has been taken."""

    def chosen(self) -> Iterator[Head]:
        """The batches to write, in order of offsets; each can be read until the next is asked for."""
        while True:
            first = self._first()
            if first is None:
                return
            other = self._of_other(first)
            if other is not None:
                self._drop(first, *other)
            elif self.last is not None and first.base <= self.last:
                self._behind(first)
            elif self._is_unwanted(first):
                self._drop(first, UNUSED, COMPACTED)
            else:
                rivals = [head for head in self._heads() if head is not first and head.base <= first.last]
                rivals = [head for head in rivals if self._of_other(head) is None and not self._is_unwanted(head)]
                winner = min([first, *rivals], key=_preference)
                if winner is first:
                    yield from self._take(first, rivals)
                else:
                    self._drop(first, *self._beside(first, winner))

    def _take(self, first: Head, rivals: list[Head]) -> Iterator[Head]:
        digest: bytes | None = None
        for rival in rivals:
            if rival.last <= first.last:
                if digest is None and _alike(first, rival):
                    digest = _digest(first)
                same = digest is not None and _alike(first, rival) and _digest(rival) == digest
                self._drop(rival, DUPLICATE if same else self._instead(rival), f"{_where(first)} was taken")
        yield first
        self.last, self.epoch = first.last, max(first.epoch, self.epoch)
        if first.strand.tier == 0:
            self.damaged, self._followed = False, True
        first.strand.advance()

    def _heads(self) -> list[Head]:
        return [strand.head for strand in self.active if strand.head is not None]

    def _first(self) -> Head | None:
        """The head that begins first, once every strand that may have a part in its offsets has begun."""
        while True:
            self.active = [strand for strand in self.active if strand.head is not None]
            first = min(self._heads(), key=lambda head: (head.base, _preference(head)), default=None)
            if not self.waiting or (first is not None and self.waiting[0].place.name > first.last):
                return first
            strand = self.waiting.pop(0)
            strand.begin()
            self.active.append(strand)

    def _of_other(self, head: Head) -> tuple[str, str] | None:
        """Fate and reason of a batch of another history, or of one that may be."""
        stop = self.histories.stop
        if stop is not None and head.last >= stop:
            return UNDECIDED, f"histories part at offset {stop}, and nothing says which is right"
        epoch = head.epoch if head.strand.tier else -1
        parted = self.histories.parted(head.strand.place.copy, head.base, head.last, epoch)
        if parted or not head.strand.tier or head.epoch < 0:
            return (DIVERGED, parted) if parted else None
        if head.epoch < self.epoch and (self.last is None or head.base > self.last):
            return DIVERGED, f"its leader epoch, {head.epoch}, is below {self.epoch}, which comes before it"
        for other in self._heads():
            if other.strand.tier == 0 and other.base > head.last and 0 <= other.epoch < head.epoch:
                return DIVERGED, f"its leader epoch, {head.epoch}, is above {other.epoch}, which comes behind it"
        return None

    def _is_unwanted(self, head: Head) -> bool:
        """Whether the cleaner may have dropped it: what fills a hole of a compacted log has to be missed there."""
        return bool(head.strand.tier) and self._is_compacted and not self._may_fill()

    @property
    def _is_compacted(self) -> bool:
        self._compacted = self._compacted or any(each.compacted for each in self.active)
        return self._compacted

    def _may_fill(self) -> bool:
        """Whether the copy that is followed may have lost here what another has: it is damaged, has not begun, or has
        ended."""
        ended = not any(strand.tier == 0 for strand in (*self.active, *self.waiting))
        made = any(head.recovered is not None for head in self._heads() if head.strand.tier == 0)
        return self.damaged or made or not self._followed or ended

    def _behind(self, head: Head) -> None:
        """It begins at or below the last offset that was taken."""
        assert self.last is not None
        if head.last <= self.last:
            self._drop(head, self._instead(head), f"offsets up to {self.last} had been taken")
        else:
            reason = f"offsets up to {self.last} had been taken; {self.last + 1}..{head.last} of it are not written"
            self._drop(head, OVERLAPS, reason)

    def _beside(self, head: Head, winner: Head) -> tuple[str, str]:
        if winner.base <= head.base and head.last <= winner.last:
            return self._instead(head), f"{_where(winner)} is better"
        return OVERLAPS, f"it overlaps with {_where(winner)}, which is better"

    def _instead(self, head: Head) -> str:
        """The fate of a batch all of whose offsets another one has. Live segments of one copy do not overlap, but where
        the cleaner was stopped: what gives way to another of its own copy, which has the offsets, may have records that
        are nowhere else."""
        own = head.strand.tier == 0 and head.recovered is None
        return CONTRADICTS if own and not self._is_compacted else SUPERSEDED

    def _drop(self, head: Head, fate: str, reason: str) -> None:
        self.disposed(head, fate, reason)
        head.strand.advance()


def _preference(head: Head) -> tuple[bool, int, int, int, int, int, int]:
    """The least is best."""
    strand = head.strand
    return (
        head.recovered is not None,
        strand.tier,
        -head.epoch,
        strand.place.copy,
        head.base,
        -head.records,
        strand.place.order,
    )


def _where(head: Head) -> str:
    return f"the batch at {head.position} of {head.strand.place.at.path}"


def _alike(one: Head, other: Head) -> bool:
    """Whether the headers are the same, the leader epoch aside, which no checksum covers."""
    mine, theirs = one.batch, other.batch
    if isinstance(mine, BatchV2) and isinstance(theirs, BatchV2):
        return mine.header._replace(partitionLeaderEpoch=0) == theirs.header._replace(partitionLeaderEpoch=0)
    return type(mine) is type(theirs) and (one.base, one.last, mine.crc) == (other.base, other.last, theirs.crc)


def _digest(head: Head) -> bytes:
    """Of the bytes that the checksum covers."""
    digest = hashlib.blake2b(digest_size=16)
    batch = head.batch
    for chunk in batch.chunks(batch.crc_start, batch.size - batch.crc_start):
        digest.update(chunk)
    return digest.digest()
