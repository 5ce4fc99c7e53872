"""Family files, snapshots: producer snapshots on their own, and compared with the log.

Source: ProducerStateManager."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kdump.check.finding import WARNING, Code, Finding
from kdump.check.resume_state import NAMES, NUMBER
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.check.watchers.broker_start import BrokerStart
from kdump.check.watchers.compaction import CompactionWatcher
from kdump.check.watchers.producers import ProducerWatcher
from kdump.core.column_numbers import BASE_OFFSET
from kdump.core.header_columns import HeaderColumns, within
from kdump.format.count_text import count_text
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.producer_state import ProducerStateEntry

SNAPSHOT_INVALID = Code("snapshot-invalid")
SNAPSHOT_MISMATCH = Code("snapshot-mismatch")
SNAPSHOT_MISSING = Code("snapshot-missing")
TIER_SNAPSHOT_MISSING = Code("tier-snapshot-missing")


def invalid_region(target: Target, region: Region) -> Finding:
    """Return the finding for bytes of a snapshot that are not an entry."""
    return SNAPSHOT_INVALID.finding(target, message=region.reason, position=region.position, size=region.size)


def interrupted(finding: Finding) -> Finding:
    """Return the finding about the newest snapshot, which is empty, after an unclean shutdown: the file is created and
    then written (ProducerStateManager.writeSnapshot), and a broker that is killed in between leaves it empty."""
    return finding.in_case("interrupted", WARNING)


SnapshotEntry = tuple[int, dict[str, Any]]
"""An entry of a producer snapshot: its position in the file, and its values."""


class ProducerSnapshotRule(Observer):
    """Compares each producer snapshot with the log once the batches below its offset have been processed, and
    reports a transaction that a broker forgets because there is none. `read` returns the entries of a snapshot, None if
    it is not valid; `start`: what a broker does with the snapshots, None if it is unknown."""

    saved_fields = {"first": NUMBER, "compared": NAMES}

    def __init__(
        self,
        producers: ProducerWatcher,
        compaction: CompactionWatcher,
        snapshots: list[Target],
        read: Callable[[Target], Iterator[SnapshotEntry] | None],
        start: BrokerStart | None = None,
        last: Target | None = None,
    ) -> None:
        self.start, self.last, self.producers, self.compaction = start, last, producers, compaction
        self.read = read
        self.waiting = sorted(snapshots, key=lambda target: target.name_offset or 0)
        self.newest = self.waiting[-1] if self.waiting else None
        self.first: int | None = None
        """First offset on the disk."""
        self.compared: list[str] = []
        """Paths of the snapshots that have been compared."""

    def resumed(self) -> None:
        self.waiting = [target for target in self.waiting if target.path not in self.compared]

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if not self.waiting or not seen.is_valid:
            return NONE
        base = seen.batch.lastOffset if seen.batch.baseOffset is None else seen.batch.baseOffset
        self.first = base if self.first is None else self.first
        findings: list[Finding] = []
        while self.waiting and (self.waiting[0].name_offset or 0) <= base:
            findings.extend(self._compare(self.waiting.pop(0)))
        return findings

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if not self.waiting:
            return stop
        return (
            first
            if self.first is None
            else within(heads, BASE_OFFSET, first, stop, 0, (self.waiting[0].name_offset or 0) - 1)
        )

    def end(self) -> Iterable[Finding]:
        findings = [finding for target in self.waiting for finding in self._compare(target)]
        return [*findings, *self._forgotten(), *self._never_copied()]

    def _never_copied(self) -> Iterator[Finding]:
        """Yield a finding if remote storage never gets a segment, because there is no snapshot at its end."""
        lacking = None if self.start is None else self.start.known.never_copied
        if self.start is None or lacking is None:
            return
        *_, before = (each for each in self.start.partition.segments if each.offset < lacking)
        if before.log is not None:
            message = f"{lacking:020}.snapshot is missing, without which this segment is never copied to remote storage"
            yield TIER_SNAPSHOT_MISSING.finding(before.log, message=message, offset=before.offset)

    def _forgotten(self) -> Iterator[Finding]:
        """Yield a finding if a broker starts without producer state, though a transaction is open in the log."""
        if self.start is None or self.last is None or not self.start.starts_empty or self.producers.damages:
            return
        if self.producers.known.state or self.compaction.compacted:  # the cleaner removes markers, too
            return
        begins = sorted(entry.txn_first_offset for _, entry in self.producers.state.items())
        running = [offset for offset in begins if offset >= self.start.log_start]
        if running:
            yield SNAPSHOT_MISSING.finding(
                self.last,
                message=f"no .snapshot after a clean shutdown, and {count_text(len(running), 'open transaction')}, "
                f"the earliest from offset {running[0]}",
                offset=running[0],
            )

    def _compare(self, target: Target) -> Iterator[Finding]:
        self.compared.append(target.path)
        if self.producers.damages:
            return
        for position, entry in self.read(target) or ():
            disk = self.producers.state.get(entry["producerId"])
            if disk is None:
                continue
            wrong = self._compare_transaction(disk, entry["currentTxnFirstOffset"])
            if wrong or disk.last_offset < 0 or entry["lastOffset"] < 0:
                pass
            elif disk.last_offset > entry["lastOffset"]:
                wrong = ("lastOffset", disk.last_offset, entry["lastOffset"])
            elif disk.last_offset == entry["lastOffset"]:
                for name, values in (
                    ("epoch", (disk.batch_epoch, disk.epoch, disk.highest_epoch)),
                    ("lastSequence", (disk.last_sequence,)),
                    ("offsetDelta", (disk.offset_delta,)),
                    ("timestamp", (disk.batch_timestamp, disk.timestamp)),
                ):
                    if entry[name] not in values and not (name == "timestamp" and self._may_be_cleaned(entry, disk)):
                        wrong = (name, values[0], entry[name])
                        break
            if wrong:
                name, expected, actual = wrong
                is_older = target != self.newest
                is_unused = is_older and self.producers.known.clean is True
                yield SNAPSHOT_MISMATCH.finding(
                    target,
                    message=f"producer {entry['producerId']}: {name} is {actual}, but {expected} in the log",
                    position=position,
                    offset=disk.last_offset,
                    expected=expected,
                    actual=actual,
                    severity=WARNING if is_unused else None,
                    case="older" if is_unused else "",
                    facts={"latestSnapshot": not is_older},
                )

    def _may_be_cleaned(self, entry: dict[str, Any], disk: ProducerStateEntry) -> bool:
        """Return True if the log cleaner may have removed the record with the timestamp of the snapshot: of a batch, it
        leaves the largest timestamp of the remaining records (MemoryRecords.buildRetainedRecordsInto)."""
        return self.compaction.compacted and bool(entry["timestamp"] > disk.batch_timestamp)

    def _compare_transaction(self, disk: ProducerStateEntry, stored: int) -> tuple[str, int, int] | None:
        """Return how a snapshot's open transaction differs from the log's, as (field, expected, actual); None if it
        does not. A transaction that began below the first offset on the disk is known only to the snapshot, and
        compaction may have removed the batch that began it."""
        if self.producers.known.compacted or disk.txn_first_offset == stored or 0 <= stored < (self.first or 0):
            return None
        return "currentTxnFirstOffset", disk.txn_first_offset, stored
