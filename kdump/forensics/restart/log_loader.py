"""The load of one log: unfinished work is finished or thrown away, segments are opened, recovered and cut, and what
is known of producers is put together again.

Source: org.apache.kafka.storage.internals.log.LogLoader, UnifiedLog.rebuildProducerState (4.3.1).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from kdump.forensics.restart import checkpoint_file
from kdump.forensics.restart.epoch_cache import EpochCache
from kdump.forensics.restart.index_file import txn_index_problem
from kdump.forensics.restart.losses import cut_from, whole_segment
from kdump.forensics.restart.plan import DELETED, EXIT, HIDDEN, TRUNCATED, PartitionPlan, Step, Stop, Stopped
from kdump.forensics.restart.producer_state import Open, ProducerState, Snapshots, snapshot_files
from kdump.forensics.restart.recovery import INTERVAL, InvalidOffset, Overflow, Recovered, recover
from kdump.forensics.restart.segment import LogEnd, Segment, segment_at
from kdump.log.errors import SourceError
from kdump.log.listing import items
from kdump.log.region import Limits

INDEXES = (".index", ".timeindex", ".txnindex")
FOREVER = (1 << 63) - 1


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
        self.files = {item.name: item.path for item in items(plan.path) if os.path.isfile(item.path)}
        self.sizes: dict[int, int] = {}
        """Bytes of each segment before anything is done, by base offset."""
        self.segments: list[Segment] = []
        self.epochs = EpochCache()
        self.snapshots = Snapshots({}, how.open)

    def step(
        self,
        kind: str,
        file: str,
        reason: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        size: int = 0,
    ) -> None:
        self.plan.steps.append(Step(kind, file, position, offset, size, reason))

    def load(self) -> None:
        plan, how = self.plan, self.how
        found = checkpoint_file.epochs(os.path.join(plan.path, "leader-epoch-checkpoint"))
        if found is not None:
            plan.epochsBefore = tuple(found)
            self.epochs.load(found)
            if list(found) != self.epochs.entries:
                self.epochs.written = True
        self._swaps(self._temporary())
        self.snapshots.files.update(
            snapshot_files([path for name, path in self.files.items() if name.endswith(".snapshot")])
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
        self._rebuild_producers(state, plan.logStartOffset, next_offset, how.clean)
        self._below_start(plan.logStartOffset)
        plan.segments, plan.openTransactions = max(1, len(self.segments)), len(state.open)
        plan.logEndOffset = next_offset
        plan.epochsAfter = tuple(self.epochs.entries)
        if self.epochs.written and plan.epochsAfter != plan.epochsBefore:
            self._tell_epochs()
        self._tell_snapshots({offset: at.path for offset, at in before.items()})

    # --- unfinished work ---

    def _temporary(self) -> list[str]:
        """removeTempFilesAndCollectSwapFiles: the names of .swap files that are good."""
        lowest, cleaned, swaps = FOREVER, [], []
        for name in sorted(self.files):
            if not os.access(self.files[name], os.R_OK):
                raise SourceError(
                    f"{self.files[name]}: no right to read it; a broker that has none fails the log directory"
                )
            if name.endswith(".deleted") and not name.endswith(".checkpoint.deleted"):
                self._delete(name, "it was to be deleted before", "sweep")
            elif name.endswith(".cleaned"):
                lowest = min(lowest, self._offset(name))
                cleaned.append(name)
            elif name.endswith(".swap"):
                swaps.append(name)
        good = []
        for name in swaps:
            if self._offset(name) >= lowest:
                self._delete(name, "a split or cleaning that was not finished: .cleaned files are left of it")
            else:
                good.append(name)
        for name in cleaned:
            self._delete(name, "a cleaning or a split that was not finished")
        return good

    def _offset(self, name: str) -> int:
        """LogFileUtils.offsetFromFile. Raises Stopped."""
        found = checkpoint_file.number(name.partition(".")[0], 64)
        if found is None:
            message = f"the name {name!r} does not begin with an offset"
            remedy = "move the file away: no broker wrote it"
            what = f'NumberFormatException: For input string: "{name.partition(".")[0]}"'
            raise Stopped(Stop(EXIT, self.files[name], None, None, message, what, remedy))
        return found

    def _delete(self, name: str, reason: str, kind: str = "delete") -> None:
        path = self.files.pop(name)
        size = 0
        with suppress(OSError):
            size = os.stat(path).st_size
        self.step(kind, path, reason, size=size)

    def _swaps(self, swaps: list[str]) -> None:
        """Cleaned segments take the place of those that they were made of."""
        low, high = FOREVER, -FOREVER
        for name in swaps:
            if name.endswith(".log.swap"):
                base = self._offset(name)
                segment = segment_at(self.files[name], base, self.how.open, ".swap")
                low, high = min(low, base), max(high, segment.next_offset().offset)
        for name in sorted(self.files):
            if not name.endswith(".swap"):
                offset = checkpoint_file.number(name.partition(".")[0], 64)
                if offset is not None and low <= offset < high:
                    self._delete(name, "a .swap file has taken its place: compaction was all but finished")
        for name in sorted(swaps):
            path = self.files.pop(name)
            self.files[name.removesuffix(".swap")] = path
            self.step("rename", path, f"to {name.removesuffix('.swap')}: compaction is finished")

    # --- segments ---

    def _open_segments(self) -> None:
        """loadSegmentFiles, again after each split."""
        plan = self.plan
        for name in sorted(self.files):
            if name.endswith(INDEXES):
                base = self._offset(name)
                if f"{base:020}.log" not in self.files:
                    self._delete(name, "an index without a segment")
            elif name.endswith(".log"):
                base = self._offset(name)
                path = self.files[name]
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
        if stem + ".index" not in self.files:
            self.step("rebuild", segment.stem + ".index", "it is missing: the segment is recovered for it")
            self._recover_at_load(segment)
            return
        if stem + ".timeindex" not in self.files:
            self.step(
                "create",
                segment.stem + ".timeindex",
                "it is missing: an empty one is made, and not filled" if self.how.clean else "it is missing",
            )
        at = self.files.get(stem + ".txnindex")
        wrong = txn_index_problem(at, segment.base) if at is not None else None
        if wrong is None or at is None:
            return
        position, message, ends = wrong
        if ends:
            remedy = f"delete {at} and {segment.stem}.index: the broker then rebuilds both"
            raise Stopped(Stop(EXIT, at, position, None, message, f"KafkaException: {message}", remedy))
        self.step("rebuild", at, f"{message}: the segment is recovered", position=position)
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
        self._rebuild_producers(state, self.how.log_start, segment.base, False)
        plan.recovered += 1
        plan.bytesRead += segment.size
        whole = segment.size
        found = recover(segment, state, self.epochs, self.how.interval, self.how.met)
        state.take_snapshot()
        self.step(
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
        self.step("truncate", segment.at.path, cut.reason, position=valid, size=whole - valid)
        return True

    def _split(self, error: Overflow) -> None:
        """splitOverflowedSegment: batches keep their offsets, in segments that can hold them."""
        segment, head = error.segment, error.head
        if not segment.fits(head.base) and head.base < segment.base:
            message = f"offset {head.base} lies below the segment's name {segment.base}"
            remedy = f"give {segment.at.path} and its indexes the name of its first offset, or salvage it"
            what = "IllegalArgumentException: Split operation is only permitted for segments with overflow"
            raise Stopped(Stop(EXIT, segment.at.path, head.position, head.base, message, what, remedy))
        self.step(
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
            end = self._log_end()
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
            self.step("create", path, "a log without segments begins anew", offset=how.log_start)
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
                self.step(
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
                where = f"it stands behind what is cut off {os.path.basename(segment.at.path)}"
                self._drop(behind, f"{where}: sound or not, it goes")
                self.segments = [each for each in self.segments if each not in behind]
                return
            if segment is not unflushed[-1]:
                segment.index = None  # memory: only the last one's is needed again

    def _drop(self, segments: list[Segment], reason: str) -> None:
        """Segments that are deleted, with their indexes and snapshots."""
        for segment in segments:
            cut = whole_segment(segment, DELETED, reason)
            self.plan.cuts.append(cut)
            self.step("delete", segment.at.path, reason, offset=segment.base, size=cut.size)
            if segment.base in self.snapshots.files:
                self.snapshots.remove(segment.base, "its segment is deleted")

    def _log_end(self) -> int:
        """readNextOffset of the last segment; what it leaves behind is in the file, and no longer in the log."""
        last = self.segments[-1]
        end = last.next_offset()
        if end.position < last.size or end.highest >= end.offset:
            self._hidden(last, end)
        return end.offset

    def _hidden(self, last: Segment, end: LogEnd) -> None:
        position = end.position
        if position == 0:
            entry = last.offset_index().last_offset
            reason = f"the index, whose last entry is offset {entry}, leads to no batch: the log is taken to be empty"
        elif end.highest >= end.offset:
            position = last.position_of(end.offset)
            reason = f"the last batch goes back to offset {end.offset - 1}: the log is taken to end there"
        else:
            reason = "the broker finds no batch there, believes the clean shutdown, and leaves the bytes where they are"
        cut = cut_from(last, position, HIDDEN, reason, last.size, self.how.limits)
        if cut.loses or position:
            self.plan.cuts.append(cut)

    def _below_start(self, log_start: int) -> None:
        """UnifiedLog.deleteLogStartOffsetBreachedSegments, at the first check of retention after the start."""
        if self.plan.state or self.how.remote:
            return
        for segment, following in pairwise(self.segments):
            if following.base > log_start:
                return
            reason = f"all of it lies below the log start {log_start}: it goes with the first check of retention"
            self.step("delete", segment.at.path, reason, offset=segment.base, size=segment.size)

    # --- producers ---

    def _rebuild_producers(self, state: ProducerState, log_start: int, end: int, clean: bool) -> None:
        """UnifiedLog.rebuildProducerState."""
        bases = [segment.base for segment in self.segments]
        to_snapshot = [*sorted(bases)[-2:], end]
        if not self.snapshots.files and clean:
            for offset in to_snapshot:
                state.map_end = offset
                state.take_snapshot()
            return
        was_empty = not state.known and state.map_end >= end
        state.truncate_and_reload(log_start, end)
        if end > state.map_end and not was_empty:
            floor = max((base for base in bases if base <= end), default=None)
            start = max((base for base in bases if base <= state.map_end), default=-FOREVER)
            for segment in [each for each in self.segments if start <= each.base < end]:
                begin = max(segment.base, state.map_end, log_start)
                state.map_end = begin
                if segment.base in to_snapshot:
                    state.take_snapshot()
                read = segment.load_producers(state, begin, end if segment.base == floor else None)
                self.plan.bytesRead += read
                if read:
                    self.step(
                        "scan", segment.at.path, f"for its producers, from offset {begin} on", offset=begin, size=read
                    )
        state.map_end = end
        state.take_snapshot()

    # --- what is told at the end ---

    def _tell_epochs(self) -> None:
        path = os.path.join(self.plan.path, "leader-epoch-checkpoint")
        before, after = self.plan.epochsBefore or (), self.plan.epochsAfter or ()
        gone = ", ".join(f"{each.epoch}@{each.startOffset}" for each in before if each not in after)
        new = ", ".join(f"{each.epoch}@{each.startOffset}" for each in after if each not in before)
        self.step(
            "write", path, "; ".join(filter(None, [f"without {gone}" if gone else "", f"with {new}" if new else ""]))
        )

    def _tell_snapshots(self, before: dict[int, str]) -> None:
        """Snapshots that were there and go, and new ones; one that is written over is both."""
        now = self.snapshots.files
        for offset, path in sorted(before.items()):
            reason = self.snapshots.removed.get(offset)
            if reason is not None and offset in now:
                kind = "rebuild" if offset in self.snapshots.corrupt else "write"
                self.step(kind, path, f"anew: {reason}", offset=offset)
            elif reason is not None:
                self.step("delete" if offset in self.snapshots.corrupt else "sweep", path, reason, offset=offset)
        for offset in sorted(set(now) - set(before)):
            self.step("write", os.path.join(self.plan.path, f"{offset:020}.snapshot"), "of producers", offset=offset)
