"""The load of one log: unfinished work is finished or thrown away, segments are opened, recovered and cut, and what
is known of producers is put together again.

Source: org.apache.kafka.storage.internals.log.LogLoader (4.3.1).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from kdump.forensics.restart import checkpoint_file
from kdump.forensics.restart.epoch_cache import EpochCache
from kdump.forensics.restart.index_file import txn_index_problem
from kdump.forensics.restart.log_changes import tell_epochs, tell_snapshots
from kdump.forensics.restart.log_end import below_start, log_end
from kdump.forensics.restart.log_files import FOREVER, LogFiles
from kdump.forensics.restart.losses import cut_from, whole_segment
from kdump.forensics.restart.plan import DELETED, EXIT, TRUNCATED, PartitionPlan, Stop, Stopped
from kdump.forensics.restart.producer_rebuild import rebuild_producers
from kdump.forensics.restart.producer_state import Open, ProducerState, Snapshots, snapshot_files
from kdump.forensics.restart.recovery import INTERVAL, InvalidOffset, Overflow, Recovered, recover
from kdump.forensics.restart.segment import Segment, segment_at
from kdump.log.region import Limits

INDEXES = (".index", ".timeindex", ".txnindex")


@dataclass
class Loading:
    """What a log's load depends on. `log_start`, `recovery_point`: by the checkpoints, 0 without a line. `interval`:
    index.interval.bytes. `remote`: whether the topic is tiered."""

    open: Open
    clean: bool
    log_start: int = 0
    recovery_point: int = 0
    interval: int = INTERVAL
    remote: bool = False
    limits: Limits = field(default_factory=Limits)
    met: Callable[[int], None] = lambda count: None


def load(plan: PartitionPlan, how: Loading) -> None:
    """Fills in the plan. Raises Stopped, SourceError, OSError."""
    _LogLoader(plan, how).load()


class _LogLoader:
    def __init__(self, plan: PartitionPlan, how: Loading) -> None:
        self.plan, self.how = plan, how
        self.files = LogFiles(plan, how.open)
        self.sizes: dict[int, int] = {}
        """Bytes of each segment before anything is done, by base offset."""
        self.segments: list[Segment] = []
        self.epochs = EpochCache()
        self.snapshots = Snapshots({}, how.open)

    def load(self) -> None:
        plan, how = self.plan, self.how
        found = checkpoint_file.epochs(os.path.join(plan.path, "leader-epoch-checkpoint"))
        if found is not None:
            plan.epochsBefore = tuple(found)
            self.epochs.load(found)
            if list(found) != self.epochs.entries:
                self.epochs.written = True
        self.files.finish()
        self.snapshots.files.update(
            snapshot_files([path for name, path in self.files.files.items() if name.endswith(".snapshot")])
        )
        before = {offset: at for offset, at in self.snapshots.files.items() if at is not None}
        self._open_segments()
        if plan.state == "delete":
            next_offset = 0
        else:
            next_offset = self._recover_log()
        self.epochs.truncate_from_end(next_offset)
        first = self.segments[0].base if self.segments else how.log_start
        plan.logStartOffset = how.log_start if how.remote else max(how.log_start, first)
        self.epochs.truncate_from_start(how.log_start)
        self.snapshots.remove_stray([segment.base for segment in self.segments])
        state = ProducerState(self.snapshots)
        self._rebuild(state, plan.logStartOffset, next_offset, how.clean)
        if not (plan.state or how.remote):
            below_start(self.segments, plan.logStartOffset, self.files)
        plan.segments, plan.openTransactions = max(1, len(self.segments)), len(state.open)
        plan.logEndOffset = next_offset
        plan.epochsAfter = tuple(self.epochs.entries)
        if self.epochs.written and plan.epochsAfter != plan.epochsBefore:
            tell_epochs(self.files)
        tell_snapshots(self.files, self.snapshots, {offset: at.path for offset, at in before.items()})

    # --- segments ---

    def _open_segments(self) -> None:
        """loadSegmentFiles, again after each split."""
        plan = self.plan
        for name in sorted(self.files.files):
            if name.endswith(INDEXES):
                base = self.files.offset(name)
                if f"{base:020}.log" not in self.files.files:
                    self.files.delete(name, "an index without a segment")
            elif name.endswith(".log"):
                base = self.files.offset(name)
                path = self.files.files[name]
                segment = segment_at(path, base, self.how.open, ".swap" if path.endswith(".swap") else "")
                self.sizes[base] = segment.size
                if segment.size > (1 << 31) - 1:
                    message = f"a segment of {segment.size} bytes: no more than 2147483647 can be"
                    what = "KafkaException: The size of segment is larger than the maximum allowed segment size"
                    raise Stopped(
                        Stop(EXIT, path, None, None, message, what, "no broker wrote it so: cut it on a copy")
                    )
                self._sanity(segment)
                if self.segments and self.segments[-1].base == base:
                    plan.notes.append(f"{name}: another name of the segment {base}")
                self.segments.append(segment)

    def _sanity(self, segment: Segment) -> None:
        """LogSegment.sanityCheck, and recovery of a segment that does not pass."""
        stem = f"{segment.base:020}"
        if stem + ".index" not in self.files.files:
            self.files.step("rebuild", segment.stem + ".index", "it is missing: the segment is recovered for it")
            self._recover_at_load(segment)
            return
        if stem + ".timeindex" not in self.files.files:
            self.files.step(
                "create",
                segment.stem + ".timeindex",
                "it is missing: an empty one is made, and not filled" if self.how.clean else "it is missing",
            )
        at = self.files.files.get(stem + ".txnindex")
        wrong = txn_index_problem(at, segment.base) if at is not None else None
        if wrong is None or at is None:
            return
        position, message, ends = wrong
        if ends:
            remedy = f"delete {at} and {segment.stem}.index: the broker then rebuilds both"
            raise Stopped(Stop(EXIT, at, position, None, message, f"KafkaException: {message}", remedy))
        self.files.step("rebuild", at, f"{message}: the segment is recovered", position=position)
        self._recover_at_load(segment)

    def _recover_at_load(self, segment: Segment) -> None:
        """A segment whose index is missing or wrong is recovered whatever the recovery point; what it loses leaves the
        segments behind it alone."""
        try:
            found = self._recover_segment(segment)
        except InvalidOffset as error:
            message = f"{error}"
            remedy = f"move {segment.at.path} away, or salvage it: its offsets go back at byte {error.head.position}"
            what = f"InvalidOffsetException: Attempt to append an offset {error.head.last}"
            raise Stopped(
                Stop(EXIT, segment.at.path, error.head.position, error.head.base, message, what, remedy)
            ) from error
        except Overflow as error:
            self._split(error)
            return
        self._cut(segment, found.valid, found.reason)

    def _recover_segment(self, segment: Segment) -> Recovered:
        """recoverSegment: producers as of its start, every batch checked, a snapshot at its end."""
        plan = self.plan
        state = ProducerState(self.snapshots)
        self._rebuild(state, self.how.log_start, segment.base, False)
        plan.recovered += 1
        plan.bytesRead += segment.size
        whole = segment.size
        found = recover(segment, state, self.epochs, self.how.interval, self.how.met)
        state.take_snapshot()
        self.files.step(
            "recover",
            segment.at.path,
            found.reason,
            position=found.valid if found.valid < whole else None,
            offset=segment.base,
            size=whole,
        )
        return found

    def _cut(self, segment: Segment, valid: int, reason: str) -> bool:
        """The segment ends at `valid` now; whether that takes anything away."""
        whole = self.sizes[segment.base]
        if valid >= whole:
            return False
        cut = cut_from(segment, valid, TRUNCATED, reason, whole, self.how.limits)
        self.plan.cuts.append(cut)
        self.files.step("truncate", segment.at.path, cut.reason, position=valid, size=whole - valid)
        self.sizes[segment.base] = valid
        return True

    def _rebuild(self, state: ProducerState, log_start: int, end: int, clean: bool) -> None:
        rebuild_producers(state, self.segments, log_start, end, clean, self._scanned)

    def _scanned(self, segment: Segment, offset: int, size: int) -> None:
        self.plan.bytesRead += size
        reason = f"for its producers, from offset {offset} on"
        self.files.step("scan", segment.at.path, reason, offset=offset, size=size)

    def _split(self, error: Overflow) -> None:
        """splitOverflowedSegment: batches keep their offsets, in segments that can hold them."""
        segment, head = error.segment, error.head
        if not segment.fits(head.base) and head.base < segment.base:
            message = f"offset {head.base} lies below the segment's name {segment.base}"
            remedy = f"give {segment.at.path} and its indexes the name of its first offset, or salvage it"
            what = "IllegalArgumentException: Split operation is only permitted for segments with overflow"
            raise Stopped(Stop(EXIT, segment.at.path, head.position, head.base, message, what, remedy))
        self.files.step(
            "split",
            segment.at.path,
            f"{error}: more than 2147483647 above its name",
            position=head.position,
            offset=head.base,
            size=segment.size,
        )
        self.plan.notes.append("a segment is split, and what is loaded after that is not foretold in detail")
        segment.index = None

    # --- recovery of the log ---

    def _recover_log(self) -> int:
        """recoverLog: the log end offset."""
        how, plan = self.how, self.plan
        if not how.clean:
            self._recover_unflushed()
        if self.segments:
            end = log_end(self.segments[-1], self.files, how.limits)
            if end < how.log_start:
                reason = f"the log ends at offset {end}, below the log start {how.log_start} of the checkpoint"
                self._drop(self.segments, reason)
                self.epochs.clear()
                for offset in list(self.snapshots.files):
                    self.snapshots.remove(offset, "all segments are deleted")
                self.segments = []
        if not self.segments:
            name = f"{how.log_start:020}.log"
            path = os.path.join(plan.path, name)
            self.files.step("create", path, "a log without segments begins anew", offset=how.log_start)
            return how.log_start
        return end

    def _recover_unflushed(self) -> None:
        point = self.how.recovery_point
        floor = max((segment.base for segment in self.segments if segment.base <= point), default=-FOREVER)
        unflushed = [segment for segment in self.segments if segment.base >= floor]
        for number, segment in enumerate(unflushed):
            try:
                found = self._recover_segment(segment)
                lost = self._cut(segment, found.valid, found.reason)
            except InvalidOffset as error:
                reason = f"{error}; the broker then empties the whole segment"
                segment.size, segment.index, segment.rebuilt = 0, None, True
                self.files.step(
                    "recover",
                    segment.at.path,
                    reason,
                    position=error.head.position,
                    offset=segment.base,
                    size=self.sizes[segment.base],
                )
                lost = self._cut(segment, 0, reason)
            except Overflow as error:
                self._split(error)
                continue
            if lost:
                behind = unflushed[number + 1 :]
                reason = f"behind the cut in {os.path.basename(segment.at.path)}: sound or not, all of it goes"
                self._drop(behind, reason)
                self.segments = [each for each in self.segments if each not in behind]
                return
            if segment is not unflushed[-1]:
                segment.index = None  # memory: only the last one's is needed again

    def _drop(self, segments: list[Segment], reason: str) -> None:
        """Segments that are deleted, with their indexes and snapshots."""
        for segment in segments:
            cut = whole_segment(segment, DELETED, reason)
            self.plan.cuts.append(cut)
            self.files.step("delete", segment.at.path, reason, offset=segment.base, size=cut.size)
            if segment.base in self.snapshots.files:
                self.snapshots.remove(segment.base, "its segment is deleted")
