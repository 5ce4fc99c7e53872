"""The list of rules: which rule belongs to which families, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdump.check.engine.neighbor_files import NeighborFiles
from kdump.check.partition_context import PartitionContext
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
from kdump.check.watchers.broker_start import BrokerStart
from kdump.check.watchers.compaction import CompactionWatcher
from kdump.check.watchers.producers import ProducerWatcher
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.check.watchers.txn_index_entries import TxnIndexEntries
from kdump.io.run import Limits
from kdump.log.internal_topics import COORDINATOR_TOPICS
from kdump.log.partition_directory import PartitionDirectory


class RuleInputs(NamedTuple):
    """What the rules of one partition are made from. `is_one_log`: whether the segments form one log, unlike copies in
    remote storage."""

    partition: PartitionDirectory
    known: PartitionContext
    files: NeighborFiles
    producers: ProducerWatcher
    transactions: TransactionWatcher
    entries: TxnIndexEntries
    compaction: CompactionWatcher
    limits: Limits
    is_one_log: bool
    start: Callable[[], BrokerStart]


class RuleEntry(NamedTuple):
    """A rule, or the watcher that some rules need, and the families that need it."""

    families: frozenset[str]
    make: Callable[[RuleInputs], Observer]
    topics: tuple[str, ...] = ()
    """The topics to which the rule applies; empty for all."""

    def applies(self, topic: str | None) -> bool:
        return not self.topics or topic in self.topics


def _for(*families: str, make: Callable[[RuleInputs], Observer], topics: tuple[str, ...] = ()) -> RuleEntry:
    return RuleEntry(frozenset(families), make, topics)


RULES = (
    _for("files", make=lambda given: SegmentSizeRule()),
    _for(
        "records",
        make=lambda given: CoordinatorRecordRule(given.known.topic or "", given.limits),
        topics=COORDINATOR_TOPICS,
    ),
    _for("offsets", "snapshots", make=lambda given: given.compaction),
    _for("offsets", make=lambda given: OffsetRule(given.compaction, separate=not given.is_one_log)),
    _for("epochs", make=lambda given: LeaderEpochRule(given.known)),
    _for("timestamps", make=lambda given: TimestampRule()),
    # Before the current batch changes the state of its producer.
    _for(
        "snapshots",
        make=lambda given: ProducerSnapshotRule(
            given.producers,
            given.compaction,
            given.partition.snapshots,
            given.files.snapshot,
            given.start(),
            given.partition.segments[-1].log if given.partition.segments else None,
        ),
    ),
    _for("producers", "snapshots", make=lambda given: given.producers),
    _for("producers", make=lambda given: ProducerSequenceRule(given.producers)),
    _for("indexes", make=lambda given: given.entries),
    _for("transactions", "indexes", make=lambda given: given.transactions),
    _for("transactions", make=lambda given: TransactionRule(given.transactions, given.known)),
    _for(
        "indexes",
        make=lambda given: TxnIndexRule(given.transactions, given.known, given.files.aborted, given.files.begins),
    ),
    _for("indexes", make=lambda given: OffsetIndexRule(given.files.entry_runs, given.known)),
    _for("indexes", make=lambda given: TimeIndexRule(given.files.entry_runs, given.known)),
)
"""All rules that see the batches of a partition, in the order in which they see each batch."""


NEXT_TO_SEGMENTS = frozenset({"indexes", "snapshots"})
"""Families whose rules read the files next to the segments."""


def make_observers(given: RuleInputs, families: frozenset[str]) -> list[Observer]:
    """Return the rules of these families and the watchers that they need, in order."""
    entries = (entry for entry in RULES if entry.families & families and entry.applies(given.known.topic))
    return [entry.make(given) for entry in entries]
