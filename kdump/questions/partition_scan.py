"""Scan of one partition, batch by batch, with verify's producer and transaction state; questions attach as observers,
so that nothing is decided twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdump.answer import Note
from kdump.check.engine.partition_check import PartitionCheck
from kdump.check.engine.second_look import Looking
from kdump.check.finding import INFO, Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import Observer
from kdump.check.rules import bytes
from kdump.check.rules.producer_snapshots import ProducerSnapshotRule
from kdump.check.rules.producers import ProducerSequenceRule
from kdump.check.rules.transactions import TransactionRule
from kdump.check.rules.txn_index import TxnIndexRule
from kdump.check.totals import CheckTotals
from kdump.check.watchers.producers import ProducerWatcher
from kdump.io.errors import SourceError
from kdump.log import file_kinds
from kdump.log.batch_validity import COUNT
from kdump.log.file_kinds import by_name
from kdump.log.partition_directory import PartitionDirectory
from kdump.state.producer_state import ProducerState

DAMAGES = frozenset(bytes.CODES)
"""Codes of findings about damaged bytes."""
REPORTED = DAMAGES | {COUNT}
"""Codes of findings that are yielded together with the answers: the bytes could not be considered, or the number of
records is not counted, because it cannot be true."""


class PartitionScan(PartitionCheck):
    """The scan. `producers` and `transactions` have the state after the current batch when an observer is called with
    it."""

    def __init__(
        self,
        partition: PartitionDirectory,
        known: PartitionContext,
        options: Options,
        totals: CheckTotals,
        state: ProducerState[Any] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self._state = state
        super().__init__(partition, known, options, totals, alone=alone)

    def _producer_watcher(self) -> ProducerWatcher:
        return ProducerWatcher(self.known, self._state)

    def _make_observers(self) -> list[Observer]:
        self.entries_of_index.keeps = True
        snapshots = ProducerSnapshotRule(
            self.producers, self.compaction, self.partition.snapshots, self.neighbor_files.snapshot
        )
        return [
            self.compaction,
            snapshots,  # before the batch changes the state
            self.producers,
            ProducerSequenceRule(self.producers),
            self.entries_of_index,
            self.transactions,
            TransactionRule(self.transactions, self.known),
            TxnIndexRule(self.transactions, self.known, self.neighbor_files.aborted, self.neighbor_files.begins),
        ]

    def run(self, *watchers: Observer) -> Iterator[Any]:
        """Yield the findings and the answers of the observers, in log order."""
        own = len(self._observers)
        self.watch(*watchers)
        try:
            yield from self.findings()
        finally:
            del self._observers[own:]  # they refer to this scan


def certain_answers(
    scan: PartitionScan,
    observer: Observer,
    row: type[NamedTuple],
    looking: Looking | None,
    is_shown: Callable[[Finding], bool],
) -> Iterator[Any]:
    """Scan the partition; yield the observer's answers, and the findings for which `is_shown` is true and that hold
    even if a broker is changing the files (check/engine/second_look.py). Findings of damaged bytes precede the
    partition's `row`, the observer's last answer, which counts them. Notes come last; what could not be read is passed
    to the `unreadable` of the scan's options."""
    damages = 0

    def confirmed() -> Iterator[Finding]:
        # A further look applies every rule of verify, not only those of this scan.
        if looking is not None:
            yield from (each for each in looking.rest(scan.totals) if each.code in looking.doubted and is_shown(each))

    for answer in scan.run(observer):
        if isinstance(answer, row):
            for finding in confirmed():
                damages += is_damage(finding)
                yield finding
            yield answer._replace(damages=damages)
        elif not isinstance(answer, Finding):
            yield answer
        elif is_shown(answer) and (looking is None or looking.holds(answer)):
            damages += is_damage(answer)
            yield answer
    yield from confirmed()
    for unread in scan.totals.unread:
        scan.options.unreadable(SourceError(unread))
    for note in scan.totals.notes:
        yield Note("", note)


def is_damage(finding: Finding) -> bool:
    """Return True if the finding is about damaged bytes of the log, of which a metadata snapshot is no part."""
    return (
        finding.code in DAMAGES
        and finding.severity != INFO
        and by_name(finding.file)[0] is not file_kinds.KRAFT_SNAPSHOT
    )
