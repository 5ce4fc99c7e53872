"""One partition, every batch in order, with what `kdump verify` says of its producers and transactions on the way: who
asks a question watches, and nothing is decided twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from kdump.check.beside import Aborted
from kdump.check.options import Options
from kdump.check.partition import PartitionCheck
from kdump.check.producers import Row, Sequences, Snapshots
from kdump.check.rule import Known, Part, Rule, Seen
from kdump.check.totals import Totals
from kdump.check.transactions import TransactionIndex, Transactions
from kdump.forensics.index_entries import IndexEntries
from kdump.log.disk import Partition
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.producers import Producers
from kdump.state.transactions import MOST_OPEN


class Walk(PartitionCheck):
    """The walk. `sequences` and `transactions` have the state behind the batch at hand when a watcher sees it."""

    sequences: Sequences
    transactions: Transactions
    entries_of_index: IndexEntries

    def __init__(
        self,
        partition: Partition,
        known: Known,
        options: Options,
        totals: Totals,
        state: Producers | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self._state = state
        self._index: tuple[Target, Aborted] | None = None
        super().__init__(partition, known, options, totals, alone=alone)

    def _make_rules(self) -> list[Rule]:
        self.sequences, self.transactions = Sequences(self.known, self._state), Transactions(self.known)
        self.entries_of_index = IndexEntries(self.transactions, self._aborted)
        index = TransactionIndex(self.transactions, self.known, self._aborted, self.beside.begins)
        return [
            Snapshots(
                self.sequences, self.partition.snapshots, self.beside.snapshot
            ),  # before the batch changes the state
            self.sequences,
            self.entries_of_index,
            self.transactions,
            index,
        ]

    def _aborted(self, part: Part) -> Aborted:
        """Several ask for the entries of a segment's .txnindex."""
        if self._index is None or self._index[0] is not part.target:
            self._index = (part.target, super()._aborted(part))
        return self._index[1]

    def run(self, *watchers: Rule) -> Iterator[Any]:
        """Findings, and what the watchers answer, in the order of the log."""
        self.watch(*watchers)
        return iter(self.findings())

    def snapshot_at_start(self) -> tuple[Target, list[Row]] | None:
        """The open transactions of the snapshot of producer states at the first offset of the first segment, those that
        began first in front: what the log below would have told. None where the log begins at 0, or there is no such
        snapshot, or it is not sound."""
        first = self.partition.segments[0].offset if self.partition.segments else 0
        for at in self.partition.snapshots if first > 0 else ():
            if at.name_offset == first:
                rows = self.beside.snapshot(at)
                if rows is None:
                    return None
                found = list(islice((row for row in rows if row[1]["currentTxnFirstOffset"] >= 0), MOST_OPEN))
                return at, sorted(found, key=lambda row: row[1]["currentTxnFirstOffset"])
        return None


class Watch(Rule):
    """Who watches a walk: `batch`, `finish` and `end` answer what they like."""

    def batch(self, seen: Seen) -> Any:
        return ()

    def region(self, part: Part, region: Region) -> Any:
        return ()

    def finish(self, part: Part) -> Any:
        return ()

    def end(self) -> Any:
        return ()
