"""The list of rules: which rule belongs to which families, what it needs, and which of them a scan is to have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.rule import Observer
from kdump.check.rules.leader_epochs import LeaderEpochRule
from kdump.check.rules.newer_release import CoordinatorRecordRule
from kdump.check.rules.offset_index import OffsetIndexRule
from kdump.check.rules.offsets import OffsetRule
from kdump.check.rules.producer_snapshots import ProducerSnapshotRule
from kdump.check.rules.producers import ProducerSequenceRule
from kdump.check.rules.segment_size import SegmentSizeRule
from kdump.check.rules.time_index import TimeIndexRule
from kdump.check.rules.timestamps import TimestampRule
from kdump.check.rules.transactions import TransactionRule
from kdump.check.rules.txn_index import TxnIndexRule
from kdump.log.internal_topics import COORDINATOR_TOPICS


class RuleEntry(NamedTuple):
    """A rule, or the watcher that some rules need, and the families that need it."""

    families: frozenset[str]
    make: Callable[[PartitionScan], Observer]
    topics: tuple[str, ...] = ()
    """The topics to which the rule applies; empty for all."""
    ledgers: bool = False
    """Whether the ledgers of producers and transactions are built on it."""

    def applies(self, topic: str | None) -> bool:
        return not self.topics or topic in self.topics


def _for(*families: str, make: Callable[[PartitionScan], Observer], **others: Any) -> RuleEntry:
    return RuleEntry(frozenset(families), make, **others)


RULES = (
    _for("files", make=lambda scan: SegmentSizeRule()),
    _for(
        "records",
        make=lambda scan: CoordinatorRecordRule(scan.known.topic or "", scan.options.limits),
        topics=COORDINATOR_TOPICS,
    ),
    _for("offsets", "snapshots", ledgers=True, make=lambda scan: scan.compaction),
    _for("offsets", make=lambda scan: OffsetRule(scan.compaction, separate=not scan.is_one_log)),
    _for("epochs", make=lambda scan: LeaderEpochRule(scan.known)),
    _for("timestamps", make=lambda scan: TimestampRule()),
    # Before the current batch changes the state of its producer.
    _for(
        "snapshots",
        make=lambda scan: ProducerSnapshotRule(
            scan.producers,
            scan.compaction,
            scan.partition.snapshots,
            scan.neighbor_files.snapshot,
            scan.start,
            scan.partition.segments[-1].log if scan.partition.segments else None,
        ),
    ),
    _for(
        ledgers=True,
        make=lambda scan: ProducerSnapshotRule(
            scan.producers, scan.compaction, scan.partition.snapshots, scan.neighbor_files.snapshot
        ),
    ),
    _for("producers", "snapshots", ledgers=True, make=lambda scan: scan.producers),
    _for("producers", ledgers=True, make=lambda scan: ProducerSequenceRule(scan.producers)),
    _for("indexes", ledgers=True, make=lambda scan: scan.entries_of_index),
    _for("transactions", "indexes", ledgers=True, make=lambda scan: scan.seeded_transactions()),
    _for("transactions", ledgers=True, make=lambda scan: TransactionRule(scan.transactions, scan.known)),
    _for(
        "indexes",
        ledgers=True,
        make=lambda scan: TxnIndexRule(
            scan.transactions, scan.known, scan.neighbor_files.aborted, scan.neighbor_files.begins
        ),
    ),
    _for("indexes", make=lambda scan: OffsetIndexRule(scan.neighbor_files.entry_runs, scan.known)),
    _for("indexes", make=lambda scan: TimeIndexRule(scan.neighbor_files.entry_runs, scan.known)),
)
"""All rules that see the batches of a partition, in the order in which they see each batch."""


def rules(scan: PartitionScan) -> list[Observer]:
    """Return the rules of verify that the options of a scan choose and the watchers that they need, in order."""
    families = scan.options.chosen
    if scan.alone:
        families -= {"indexes", "snapshots"}  # their rules read the files next to the segments
    if scan.options.headers_only:
        families -= {"records"}
    if not scan.is_one_log:
        families -= {"snapshots"}
    entries = (entry for entry in RULES if entry.families & families and entry.applies(scan.known.topic))
    return [entry.make(scan) for entry in entries]


def ledger_rules(scan: PartitionScan) -> list[Observer]:
    """Return the rules and watchers that ledgers are built on, whatever the options choose."""
    return [entry.make(scan) for entry in RULES if entry.ledgers]
