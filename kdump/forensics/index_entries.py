"""The entries of the .txnindex files as a log goes by: that of the marker at hand, and those whose markers are gone.

Where damage has taken an ABORT marker, its entry still says that the transaction ended there: it is closed before the
next sound batch could be added to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdump.check.beside import Aborted
from kdump.check.finding import Finding
from kdump.check.producers import Row
from kdump.check.rule import NONE, Part, Rule, Seen, hides
from kdump.check.transactions import Transactions
from kdump.format.heads import BASE, Heads, within
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.marker import ABORT
from kdump.state.transactions import Open

Read = Callable[[Part], Aborted]


class Lost(NamedTuple):
    """An entry without its marker: at `position` of the file `at`. `transaction` is what it closed, None where no data
    of it were open."""

    at: Target
    position: int
    entry: dict[str, int]
    transaction: Open | None


class IndexEntries(Rule):
    """Runs before the transactions see a batch. `is_sound`: the segment has a sound .txnindex, or none and needs none;
    `entry`: that of the ABORT marker at hand, None without one. `lost` are entries whose markers damage has taken, and
    `unmatched` those that have none in a segment without damage, until somebody takes them."""

    def __init__(self, transactions: Transactions, read: Read) -> None:
        self.transactions = transactions
        self.read = read
        self.files = 0
        self.is_sound = False
        self.entry: dict[str, int] | None = None
        self.lost: list[Lost] = []
        self.unmatched: list[Lost] = []
        self._at: Target | None = None
        self._waiting: list[Row] = []
        self._next = 0
        self._damaged = False

    def begin(self, part: Part) -> list[Finding]:
        read = self.read(part)
        self.is_sound = read is not None
        self._at, rows = read if read is not None else (None, [])
        self.files += self._at is not None
        self._waiting = sorted(rows, key=lambda row: row[1]["lastOffset"])
        self._next = 0
        self._damaged = False
        return []

    def region(self, part: Part, region: Region) -> tuple[Finding, ...]:
        self._damaged = self._damaged or hides(part, region)
        return NONE

    def batch(self, seen: Seen) -> tuple[Finding, ...]:
        self.entry = None
        if not seen.sound:
            self._damaged = True
            return NONE
        batch = seen.batch
        self._pass(batch.lastOffset if batch.baseOffset is None else batch.baseOffset)
        if seen.marker is not None and seen.marker.type == ABORT and self._next < len(self._waiting):
            entry = self._waiting[self._next][1]
            if (entry["lastOffset"], entry["producerId"]) == (batch.lastOffset, batch.producerId):
                self.entry = entry
                self._next += 1
        return NONE

    def free(self, part: Part, heads: Heads, first: int, stop: int) -> int:
        """Up to the next entry: its marker comes by itself, and what lies behind it, where the marker is gone."""
        if self._next == len(self._waiting):
            return stop
        return within(heads, BASE, first, stop, 0, self._waiting[self._next][1]["lastOffset"])

    def take(self, part: Part, heads: Heads, first: int, stop: int) -> None:
        self.entry = None

    def finish(self, part: Part) -> tuple[Finding, ...]:
        self._pass(None)
        return NONE

    def _pass(self, offset: int | None) -> None:
        """Entries below `offset` (None: all that are left) have no marker any more."""
        while self._next < len(self._waiting):
            position, entry = self._waiting[self._next]
            if offset is not None and entry["lastOffset"] >= offset:
                return
            self._next += 1
            assert self._at is not None
            closed = close(self.transactions, entry) if self._damaged else None
            (self.lost if self._damaged else self.unmatched).append(Lost(self._at, position, entry, closed))


def close(transactions: Transactions, entry: dict[str, int]) -> Open | None:
    """The open transaction that an entry says was aborted; it is open no more. None where there is none."""
    running = transactions.state.open.get(entry["producerId"])
    if running is None or running.first_offset > entry["lastOffset"]:
        return None
    return transactions.state.open.pop(entry["producerId"])
