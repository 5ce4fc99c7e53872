"""Loads one log: completes or deletes unfinished work, opens, recovers and truncates segments, splits one with an
offset too far from its base offset (KAFKA-6264), rebuilds the producer state, and reports what is outside the log
then: bytes after its end, segments below its start.

Source: org.apache.kafka.storage.internals.log.LogLoader, UnifiedLog.rebuildProducerState (4.3.1),
UnifiedLog.deleteLogStartOffsetBreachedSegments, LogSegment.readNextOffset and appendFromFile,
LocalLog.splitOverflowedSegment."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from kdump.cluster.release_evidence import START_CHECKPOINT
from kdump.format.count_text import count_text
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.kafka import checkpoint_file
from kdump.kafka.errors import InvalidOffset, KafkaError, Overflow
from kdump.kafka.file_log_input_stream import read_batches
from kdump.kafka.file_records import base_offset
from kdump.kafka.file_versions import NO_EVIDENCE, VersionEvidence
from kdump.kafka.index_builder import INTERVAL, LARGEST_INDEX
from kdump.kafka.leader_epoch_file_cache import LeaderEpochFileCache
from kdump.kafka.log_segment import LogEnd, LogSegment, Recovered, first_unflushed, recover, segment_at
from kdump.kafka.offset_index import OffsetIndex
from kdump.kafka.producer_state_manager import ProducerStateManager, SnapshotFiles
from kdump.kafka.transaction_index import sanity_problem
from kdump.kafka.unified_log import batch_of, rebuild_producers
from kdump.log.indexed_timestamp import indexed_timestamp
from kdump.log.live_files import Open, SeenDirectory
from kdump.log.paths import Target, seen_file
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET, MAX_SEGMENT_SIZE
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import (
    EXIT,
    HIDDEN,
    TRUNCATED,
    PartitionPlan,
    StartupFailed,
    StartupFailure,
    failure,
)
from kdump.questions.restart_plan.log_loading.log_files import INDEXES, LogFiles, padded
from kdump.questions.restart_plan.log_loading.removed_bytes import bytes_of_deleted_segment, removed_bytes
from kdump.questions.restart_plan.node.access_rights import ENTER, READ, WRITE, Rights, denied, directory_stop
from kdump.state.releases import EPOCHS_AT_LOAD, EPOCHS_FROM_CHECKPOINT, REMOTE_LOG_START


def split(segment: LogSegment, error: Overflow) -> list[LogSegment]:
    """Return the segments that replace `segment`, as parts of its file; `error`: that of the batch that does not fit.
    Raises StartupFailed, KafkaError, SourceError."""
    segment.index = OffsetIndex(segment.base)
    last = segment.next_offset().offset - 1
    if last < segment.base or segment.fits(last):
        exception = "IllegalArgumentException: Split operation is only permitted for segments with overflow"
        raise StartupFailed(_stop(segment, error.position, error.last_offset, exception, end=last))
    parts: list[LogSegment] = []
    with segment.window() as window:
        position = segment.first
        while position < segment.size:
            first = next(read_batches(window, position, segment.size), None)
            if first is None:
                raise StartupFailed(_stop(segment, position, None, "NoSuchElementException", "incomplete"))
            base = base_offset(window, first)
            part = LogSegment(base, segment.target, position, segment.open, OffsetIndex(base))
            part.rebuilt, part.first, part.release = True, position, segment.release
            for batch in read_batches(window, position, segment.size):
                if not part.fits(batch.lastOffset):
                    break
                part.size = batch.end
            if part.size == position:
                exception = f"IllegalStateException: Failed to append records from position {position}"
                raise StartupFailed(_stop(segment, position, base, exception, "alone"))
            parts.append(part)
            position = part.size
    return parts


def _stop(
    segment: LogSegment, position: int, offset: int | None, exception: str, case: str = "", end: int | None = None
) -> StartupFailure:
    code, path, values = "startup-segment-not-split", segment.target.path, {"last": offset, "end": end}
    return failure(EXIT, code, path, exception, position, offset, case=case, values=values)


def report_hidden_bytes(last: LogSegment, end: LogEnd, files: LogFiles, limits: Limits) -> None:
    """Report the bytes of the last segment after the log end: they stay in the file, but are not part of the log.
    Raises SourceError."""
    if end.position >= last.size and end.highest < end.offset:
        return
    position = end.position
    if position == last.first:
        entry = last.offset_index().last_offset
        reason = f"the last index entry, offset {entry}, leads to no batch: the broker treats the log as empty"
        back = _going_back(last)
        files.plan.cause = None if back is None else (last.target.path, back)
    elif end.highest >= end.offset:
        files.plan.cause = last.target.path, end.last
        position = last.position_of(end.offset)
        reason = f"the last batch goes back to offset {end.offset - 1}: the broker ends the log there"
    else:
        reason = "no batch starts there, and after a clean shutdown nothing is truncated"
    cut = removed_bytes(last, position, HIDDEN, reason, last.size, limits)
    if cut.loses or position > last.first:
        files.plan.cuts.append(cut)


def _going_back(last: LogSegment) -> int | None:
    """Return the first byte of the batch after the last index entry whose offset is below that of the batch before, so
    that FileRecords.searchForOffsetFromPosition passes what it looks for; None if there is none. Raises SourceError."""
    start = last.offset_index().lookup(last.offset_index().last_offset)[1]
    with last.window() as window, suppress(KafkaError):
        for before, head in pairwise(read_batches(window, max(start, last.first), last.size)):
            if head.lastOffset < before.lastOffset:
                return head.position
    return None


def below_start(segments: list[LogSegment], log_start: int, files: LogFiles) -> None:
    """Report the segments that the first retention check after startup deletes because they are below the log start
    offset (UnifiedLog.deleteLogStartOffsetBreachedSegments)."""
    for segment, following in pairwise(segments):
        if following.base > log_start:
            return
        reason = f"entirely below the log start offset {log_start}: the first retention check deletes it"
        files.step("delete", segment.target.path, reason, offset=segment.base, size=segment.size)


@dataclass
class LoadParameters:
    """What the loading of a log depends on. `log_start`, `recovery_point`: offsets from the checkpoints, 0 without a
    line. `interval`: index.interval.bytes, `largest`: segment.index.bytes. `remote`: whether the topic uses remote
    storage; `expires`: whether time-based retention may apply."""

    open: Open
    rights: Rights
    clean: bool
    log_start: int = 0
    recovery_point: int = 0
    interval: int = INTERVAL
    largest: int = LARGEST_INDEX
    remote: bool = False
    expires: bool = True
    release: KafkaRelease = NEWEST
    evidence: VersionEvidence = NO_EVIDENCE
    run: Run = PLAIN_RUN


def load(plan: PartitionPlan, how: LoadParameters, seen: SeenDirectory) -> list[LogSegment]:
    """Load the log from its files as they were `seen`, fill in its plan, and return its segments. Raises StartupFailed,
    KafkaError, SourceError, OSError."""
    loader = _LogLoader(plan, how, seen)
    loader.load()
    return loader.segments


class _CheckedSnapshots(SnapshotFiles):
    """The producer snapshots in a directory whose files a startup writes and deletes."""

    def __init__(self, open_: Open, path: str, log: LogFiles, rights: Rights) -> None:
        super().__init__({}, open_)
        self.path, self.log, self.rights = path, log, rights

    def writes(self, offset: int) -> None:
        """Check that a producer snapshot can be written. Raises StartupFailed if not."""
        name = f"{padded(offset)}.snapshot"
        if name in self.log.directories:
            raise StartupFailed(directory_stop(self.log.directories[name]))
        self.log.needs(os.path.join(self.path, name))

    def deletes(self, path: str) -> None:
        """Check that a producer snapshot can be deleted. Raises StartupFailed if not."""
        if not self.rights.can(self.path, WRITE | ENTER):
            raise StartupFailed(denied(path, "delete", f"AccessDeniedException: {path}", self.rights))


class _LogLoader:
    def __init__(self, plan: PartitionPlan, how: LoadParameters, seen: SeenDirectory) -> None:
        self.plan, self.how = plan, how
        self.files = LogFiles(plan, how.open, how.rights, seen, how.release)
        self.seen = seen
        self.sizes: dict[int, int] = {}
        """Size of each segment in bytes, by base offset, before the recovery in progress."""
        self.segments: list[LogSegment] = []
        self.epochs = LeaderEpochFileCache()
        self.snapshots = _CheckedSnapshots(how.open, plan.path, self.files, how.rights)
        self.indexed: dict[int, Target] = {}
        """The segments whose .timeindex is used as it is, by base offset."""

    def load(self) -> None:
        plan, how = self.plan, self.how
        epochs_at = os.path.join(plan.path, "leader-epoch-checkpoint")
        self.files.needs(epochs_at, READ)
        entries = checkpoint_file.epochs(epochs_at, how.release)
        if entries is not None:
            plan.epochsBefore = tuple(entries)
            self.epochs.load(entries)
            if list(entries) != self.epochs.entries:
                self.epochs.written = True
        self._list_snapshots()
        swaps = self.files.finish()
        left = set(self.files.files.values())  # a .swap file also replaces snapshots
        for offset, snapshot in list(self.snapshots.files.items()):
            if snapshot is not None and snapshot.path not in left:
                del self.snapshots.files[offset]
        newest, newer = self.snapshots.newest, self.snapshots.newer()
        if newest is not None and newer and how.evidence.is_newer(newest.path):
            plan.newer.append(newer)
        before = {offset: target for offset, target in self.snapshots.files.items() if target is not None}
        self._open_segments()
        for name in swaps:
            self._complete_swap(name)
        if plan.state == "delete":
            next_offset = 0
        else:
            next_offset = self._recover_log()
        self.epochs.truncate_from_end(next_offset)
        first = self.segments[0].base if self.segments else how.log_start
        is_remote = how.remote and REMOTE_LOG_START.applies(how.release)
        plan.logStartOffset = how.log_start if is_remote else max(how.log_start, first)
        is_from_checkpoint = EPOCHS_FROM_CHECKPOINT.applies(how.release)
        self.epochs.truncate_from_start(how.log_start if is_from_checkpoint else plan.logStartOffset)
        self.snapshots.remove_stray([segment.base for segment in self.segments])
        if how.clean and not before and not plan.state:
            self._forget_transactions(plan.logStartOffset, next_offset)
        state = ProducerStateManager(self.snapshots, how.release)
        self._rebuild(state, plan.logStartOffset, next_offset, how.clean)
        if state.first_unstable is not None:
            batch_of(self.segments, max(state.first_unstable, plan.logStartOffset))
        if not (plan.state or how.remote):
            below_start(self.segments, plan.logStartOffset, self.files)
        if how.expires and not plan.state:
            self._report_zeros()
        plan.segments, plan.openTransactions = max(1, len(self.segments)), dict(state.open)
        plan.logEndOffset = next_offset
        plan.epochsAfter = tuple(self.epochs.entries)
        if self.epochs.written and plan.epochsAfter != plan.epochsBefore:
            report_epoch_changes(self.files)
        report_snapshot_changes(self.files, self.snapshots, {offset: target.path for offset, target in before.items()})

    def _forget_transactions(self, log_start: int, end: int) -> None:
        """Count the open transactions in a log without a producer snapshot: after a clean shutdown, the broker does not
        read it (UnifiedLog.rebuildProducerState)."""
        state = ProducerStateManager(SnapshotFiles({}, self.how.open), self.how.release)
        try:
            rebuild_producers(state, self.segments, log_start, end, False, lambda *_: None)
            self.plan.forgets = len(state.open)
        except KafkaError:  # which the broker does not meet
            self.plan.forgets = None

    # --- producer snapshots ---

    def _list_snapshots(self) -> None:
        """List the producer snapshots (ProducerStateManager.loadSnapshots). Raises StartupFailed for a name without an
        offset."""
        for name, path in sorted(self.files.files.items()):
            if name.endswith(".snapshot"):
                self.snapshots.files[self.files.offset(name)] = seen_file(path)

    # --- segments ---

    def _open_segments(self) -> None:
        """Open all segments, and delete indexes without a segment (loadSegmentFiles)."""
        plan, files, lost = self.plan, self.files, set[int]()
        for name in sorted(files.files):
            if name.endswith(INDEXES):
                base = files.offset(name)
                if f"{padded(base)}.log" not in files.files:
                    listed = self.seen.identities.get(name)
                    if listed and listed.size and not any(x.startswith(f"{padded(base)}.log") for x in self.seen.files):
                        lost.add(base)
                    files.delete(name, "an index without a segment")
            elif name.endswith(".log"):
                base = files.offset(name)
                own = f"{padded(base)}.log"
                created = own not in files.files
                if created:
                    files.files[own] = os.path.join(plan.path, own)
                    reason = f"an empty segment {base}, because of the file name {name}"
                    files.step("create", files.files[own], reason, offset=base)
                path = files.files[own]
                files.needs(path)
                suffix = ".swap" if path.endswith(".swap") else ""
                segment = segment_at(seen_file(path), base, self.how.open, suffix, self.how.release, created=created)
                self.sizes[base] = segment.size
                if segment.size > MAX_SEGMENT_SIZE:
                    exception = (
                        f"The size of segment {path} ({segment.size}) is larger than the maximum allowed segment"
                    )
                    exception = f"KafkaException: {exception} size of {MAX_SEGMENT_SIZE}"
                    values = {"size": segment.size, "largest": MAX_SEGMENT_SIZE, "directory": plan.path}
                    raise StartupFailed(failure(EXIT, "startup-segment-too-large", path, exception, values=values))
                if any(segment.base == base for segment in self.segments):
                    plan.notes.append(f"{name}: a second name for segment {base}")
                    self.segments = [segment for segment in self.segments if segment.base != base]
                self.segments = sorted([*self.segments, *self._opened(segment)], key=lambda each: each.base)
        if lost and not plan.state:
            of = count_text(len(lost), "segment")
            plan.notes.append(
                f"the .log files of {of} from offset {min(lost)} on are gone already: only indexes are left"
            )

    def _opened(self, segment: LogSegment) -> list[LogSegment]:
        """Check a segment (LogSegment.sanityCheck), and recover it if that fails. Return it, or the segments into which
        recovery split it."""
        stem, files = padded(segment.base), self.files.files
        if self.files.has_directory(segment.base):
            return [segment]
        if stem + ".index" not in files:
            self.files.step("rebuild", segment.stem + ".index", "missing: rebuilt by recovering the segment")
            return self._recover_at_load(segment)
        if stem + ".timeindex" not in files:
            reason = "missing: created empty, and not filled" if self.how.clean else "missing"
            self.files.step("create", segment.stem + ".timeindex", reason)
        file = files.get(stem + ".txnindex")
        if file is not None:
            self.files.needs(file)
        newer: list[str] = []
        wrong = sanity_problem(file, segment.base, self.how.release, newer) if file is not None else None
        self.plan.newer += newer
        if wrong is None or file is None:
            self.indexed[segment.base] = segment.target
            return [segment]
        position, message, ends = wrong
        if ends:
            values = {"reason": message, "index": f"{segment.stem}.index"}
            exception = f"KafkaException: {message}"
            code, of = "startup-txn-index-invalid", "".join(newer)
            raise StartupFailed(failure(EXIT, code, file, exception, position, newer=of, values=values))
        self.files.step("rebuild", file, f"{message}: the segment is recovered", position=position)
        return self._recover_at_load(segment)

    def _recover_at_load(self, segment: LogSegment) -> list[LogSegment]:
        """Recover a segment whose index is missing or invalid, whatever the recovery point. If it is truncated, the
        segments after it are kept."""
        epochs = self.epochs if EPOCHS_AT_LOAD.applies(self.how.release) else LeaderEpochFileCache()
        try:
            recovered = self._recover_segment(segment, epochs)
        except Overflow as error:
            return self._split(segment, error, is_registered=False)
        self._cut(segment, recovered)
        return [segment]

    def _recover_segment(self, segment: LogSegment, epochs: LeaderEpochFileCache) -> Recovered:
        """Recover a segment (recoverSegment): rebuild the producer state up to its base offset, check every batch, add
        their leader epochs to `epochs`, and write a producer snapshot at its end."""
        self.indexed.pop(segment.base, None)
        plan = self.plan
        state = ProducerStateManager(self.snapshots, self.how.release)
        self._rebuild(state, self.how.log_start, segment.base, False)
        self._needs_indexes(segment)
        plan.recovered += 1
        whole = segment.size
        plan.bytesRead += whole - segment.first
        try:
            recovered = recover(segment, state, epochs, self.how.interval, self.how.largest, self.how.run)
        except Overflow as error:
            path, position = segment.target.path, error.position
            self.files.step("recover", path, str(error), position=position, offset=segment.base, size=whole)
            raise
        state.take_snapshot()
        self.files.step(
            "recover",
            segment.target.path,
            recovered.reason,
            position=recovered.valid if recovered.valid < whole else None,
            offset=segment.base,
            size=whole,
        )
        return recovered

    def _report_zeros(self) -> None:
        """Warn of segments that retention deletes because their .timeindex ends with timestamp 0."""
        bases = []
        for segment in self.segments:
            if segment.size and segment.base in self.indexed:
                segment.newest = indexed_timestamp(self.indexed[segment.base])
                bases += [segment.base] if segment.newest == 0 else []
        if bases:
            values = {"log": self.plan.name, "segments": count_text(len(bases), "segment"), "first": bases[0]}
            self.plan.problems.append(Problem("startup-time-index-zeros", {**values, "directory": self.plan.path}))

    def _needs_indexes(self, segment: LogSegment) -> None:
        """Check that both indexes can be mapped for writing. Raises StartupFailed if not."""
        for suffix in (".index", ".timeindex"):
            self.files.needs(os.path.join(self.plan.path, padded(segment.base) + suffix), random=True)

    def _cut(self, segment: LogSegment, recovered: Recovered) -> bool:
        """Truncate the segment after its valid batches; return True if that removes anything."""
        whole, valid = self.sizes[segment.base], recovered.valid
        if valid >= whole:
            return False
        cut = removed_bytes(segment, valid, TRUNCATED, recovered.reason, whole, self.how.run.limits, recovered.before)
        self.plan.cuts.append(cut)
        self.files.step("truncate", segment.target.path, cut.reason, position=valid, size=whole - valid)
        self.sizes[segment.base] = valid
        return True

    def _rebuild(self, state: ProducerStateManager, log_start: int, end: int, clean: bool) -> None:
        rebuild_producers(state, self.segments, log_start, end, clean, self._scanned)

    def _scanned(self, segment: LogSegment, offset: int, size: int) -> None:
        self.plan.bytesRead += size
        self.how.run.more(size)
        reason = f"to load producer state, from offset {offset} on"
        self.files.step("scan", segment.target.path, reason, offset=offset, size=size)

    def _split(self, segment: LogSegment, error: Overflow, *, is_registered: bool) -> list[LogSegment]:
        """Split a segment, and return the segments of the log in its place; batches keep their offsets. A segment that
        was only being opened is not registered in the log, and stays, unless a part has its name
        (LocalLog.replaceSegments)."""
        parts = split(segment, error)
        name, path = os.path.basename(segment.target.path), segment.target.path
        is_replaced = any(part.base == segment.base for part in parts)
        into = count_text(len(parts), "segment")
        reason = f"{error} is more than {MAX_RELATIVE_OFFSET} above its base offset: split into {into}"
        stays = not (is_registered or is_replaced)
        if stays:
            self.plan.notes.append(
                f"{name} stays next to the {into} that its batches are copied to: they are read twice"
            )
        position = parts[0].size if is_replaced else None
        size = segment.size - segment.first
        self.files.step("split", path, reason, position=position, offset=error.offset, size=size)
        if is_registered and not is_replaced:
            self.files.step(
                "delete", path, "its batches are in the segments that it is split into", offset=segment.base
            )
            if segment.base in self.snapshots.files:
                self.snapshots.remove(segment.base, "its segment is split")
        for part in parts:
            self.sizes[part.base] = part.size
            if part.base != segment.base:
                new = os.path.join(self.plan.path, f"{part.base:020}.log")
                self.files.step("create", new, f"split off {name}", offset=part.base)
        return [segment, *parts] if stays else parts

    def _complete_swap(self, name: str) -> None:
        """Recover a .log.swap file, and put it in the place of the segments that it replaces, as 2.8 does
        (Log.completeSwapOperations)."""
        base = self.files.offset(name)
        path = self.files.files.pop(name)
        segment = segment_at(seen_file(path), base, self.how.open, ".swap", self.how.release)
        size_before = self.sizes.get(base)
        self.sizes[base] = segment.size
        self._recover_at_load(segment)
        size, end = self.sizes[base], segment.next_offset().offset
        if size_before is not None:
            self.sizes[base] = size_before
        floor = max((segment.base for segment in self.segments if segment.base <= base), default=base)
        for old in [segment for segment in self.segments if floor <= segment.base < end]:
            if old.next_offset().offset > base:
                self.segments.remove(old)
                self.files.replaced(old.base)
        self.sizes[base] = size
        self.files.files[f"{padded(base)}.log"] = path
        self.files.step("rename", path, f"to {padded(base)}.log: completes the compaction")
        self.segments = sorted([*self.segments, segment], key=lambda each: each.base)

    # --- recovery of the log ---

    def _recover_log(self) -> int:
        """Recover the log (recoverLog), and return the log end offset."""
        how, plan = self.how, self.plan
        if not how.clean:
            self._recover_unflushed()
        if self.segments:
            last = self.segments[-1]
            if not self.files.has_directory(last.base):
                self._needs_indexes(last)
            end = last.next_offset()
            if end.offset < how.log_start:
                reason = f"log end offset {end.offset} is below the log start offset {how.log_start} in the checkpoint"
                if not plan.cuts:  # else a truncation has put it there
                    plan.cause = os.path.join(plan.source, START_CHECKPOINT), None
                self._drop(self.segments, reason)
                self.epochs.clear()
                for offset in list(self.snapshots.files):
                    self.snapshots.remove(offset, "all segments are deleted")
                self.segments = []
        if not self.segments:
            name = f"{how.log_start:020}.log"
            path = os.path.join(plan.path, name)
            if name in self.files.directories:
                raise StartupFailed(directory_stop(path))
            self.files.needs(path)
            self.files.step("create", path, "a new, empty segment: the log has none", offset=how.log_start)
            return how.log_start
        report_hidden_bytes(last, end, self.files, how.run.limits)
        return end.offset

    def _recover_unflushed(self) -> None:
        """Recover the segment that contains the recovery point and those after it; start again after a split."""
        point = self.how.recovery_point
        while True:
            unflushed = self.segments[first_unflushed([segment.base for segment in self.segments], point) :]
            try:
                for number, segment in enumerate(unflushed):
                    if self._recover_one(segment):
                        self._drop_following(segment, unflushed[number + 1 :])
                        return
                    if segment is not unflushed[-1]:
                        segment.index = None  # frees memory: only the last segment's is needed again
                return
            except Overflow as error:
                parts = self._split(segment, error, is_registered=True)
                replaced = {segment.base, *(part.base for part in parts)}
                kept = [segment for segment in self.segments if segment.base not in replaced]
                self.segments = sorted([*kept, *parts], key=lambda each: each.base)

    def _recover_one(self, segment: LogSegment) -> bool:
        """Recover a segment; return True if it is truncated. Raises Overflow, StartupFailed, SourceError."""
        try:
            recovered = self._recover_segment(segment, self.epochs)
            return self._cut(segment, recovered)
        except InvalidOffset as error:
            reason = f"{error}; the broker then empties the whole segment"
            segment.size, segment.index, segment.rebuilt = segment.first, None, True
            path, size = segment.target.path, self.sizes[segment.base]
            self.plan.cause = path, error.position
            self.files.step("recover", path, reason, position=error.position, offset=segment.base, size=size)
            return self._cut(segment, Recovered(segment.first, reason, None))

    def _drop_following(self, segment: LogSegment, following: list[LogSegment]) -> None:
        name = os.path.basename(segment.target.path)
        self._drop(following, f"follows the truncation in {name}: all of it is deleted, valid or not")
        self.segments = [segment for segment in self.segments if segment not in following]

    def _drop(self, segments: list[LogSegment], reason: str) -> None:
        """Delete segments with their indexes and producer snapshots."""
        for segment in segments:
            size = self.sizes[segment.base] - segment.first
            if size > 0:  # truncated bytes have been reported already
                self.plan.cuts.append(bytes_of_deleted_segment(segment, size, reason))
            self.files.step("delete", segment.target.path, reason, offset=segment.base, size=size)
            if segment.base in self.snapshots.files:
                self.snapshots.remove(segment.base, "its segment is deleted")


def report_epoch_changes(files: LogFiles) -> None:
    """Add the step that rewrites leader-epoch-checkpoint, with the lines that are removed and added."""
    path = os.path.join(files.plan.path, "leader-epoch-checkpoint")
    before, after = files.plan.epochsBefore or (), files.plan.epochsAfter or ()
    gone = ", ".join(f"{entry.epoch}@{entry.startOffset}" for entry in before if entry not in after)
    new = ", ".join(f"{entry.epoch}@{entry.startOffset}" for entry in after if entry not in before)
    files.step(
        "write", path, "; ".join(filter(None, [f"removes {gone}" if gone else "", f"adds {new}" if new else ""]))
    )


def report_snapshot_changes(files: LogFiles, snapshots: SnapshotFiles, before: dict[int, str]) -> None:
    """Add a step for each producer snapshot that is deleted, overwritten or new."""
    now = snapshots.files
    for offset, path in sorted(before.items()):
        reason = snapshots.removed.get(offset)
        if reason is not None and offset in now:
            kind = "rebuild" if offset in snapshots.corrupt else "write"
            files.step(kind, path, f"rewritten: {reason}", offset=offset)
        elif reason is not None:
            files.step("delete" if offset in snapshots.corrupt else "sweep", path, reason, offset=offset)
    for offset in sorted(set(now) - set(before)):
        files.step("write", os.path.join(files.plan.path, f"{offset:020}.snapshot"), "producer snapshot", offset=offset)
