"""What is known of the records in one directory: which are aborted, superseded, below the log start, and when they go.
Found out when the first match needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.core.record_columns import keep_keys
from kdump.io.errors import SourceError
from kdump.io.run import LISTENERS, QUIET_RUN, ignore
from kdump.log.batch_records import decode_columns, records, rows_of
from kdump.log.file_kinds import SEGMENT
from kdump.log.log_directory import directory_above
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, batches_of
from kdump.log.region_reader import Depth
from kdump.log.walk import PartitionReader
from kdump.questions.find.answer import (
    ABORTED,
    BELOW,
    CLEANED,
    DELETED,
    IN_DELETION,
    LIVE,
    OPEN,
    STRAY,
    SUPERSEDED,
    SWAP,
    UNKNOWN,
    Found,
)
from kdump.questions.find.listing import states_of
from kdump.questions.read_committed import ReadCommitted, surroundings_of_gates

if TYPE_CHECKING:  # only --when needs it
    from kdump.questions.retention.answer import SegmentRetention

CHUNK = 10_000
"""Maximum number of matches in a compacted log that are kept until the newest records of their keys are known."""
FEWER = 8
"""How many times as many are kept as the time before."""
MAX_LABELLED = 20 * CHUNK
"""Matches in a compacted log after which no more are."""
FEW_KEYS = 64
"""Keys that the core compares faster than a set does."""
READABLE = frozenset({LIVE, SUPERSEDED})
"""States of what a consumer may receive."""
GOES = {
    IN_DELETION: ("a startup deletes the directory", 0),
    DELETED: ("a startup deletes the file", 0),
    CLEANED: ("a startup deletes the file", 0),
    SWAP: ("a startup installs the file as a segment", None),
    STRAY: ("nothing deletes a stray directory", None),
}
"""What removes what is not live, and when."""


class SearchSurroundings:
    """What is known from the log directories around all files of a search. Each is read once, and what cannot be read
    of them is not reported."""

    def __init__(self, options: Options) -> None:
        self.options = replace(options, **(LISTENERS | {"unreadable": ignore}))
        self.partitions = Surroundings(self.options)
        self.gates = surroundings_of_gates(options.limits)


class SearchedDirectory:
    """A directory whose `files` are searched."""

    def __init__(self, files: list[Target], around: SearchSurroundings) -> None:
        self.files = files
        self.options = around.options
        self.around = around
        self._views: dict[bool, ReadCommitted] = {}
        self._turned: dict[bool, str] = {}
        self._newest: dict[bytes | None, int] = {}
        """Offset of the newest record in the log with a key; -1 if there is none that counts."""

    @cached_property
    def place(self) -> PartitionDirectory | None:
        """The partition directory; None if it is none."""
        first = next(iter(self.files), None)
        if first is None or first.path == "-" or "://" in first.path:
            return None
        above = directory_above(first.path)
        return above if isinstance(above, PartitionDirectory) else None

    @cached_property
    def known(self) -> PartitionContext:
        """What is known of the partition from its directory and its log directory."""
        return PartitionContext() if self.place is None else self.around.partitions.of_partition(self.place)

    @cached_property
    def log_start(self) -> int:
        """The log start offset; 0 if it is not known."""
        segments = [] if self.place is None else self.place.segments
        return (self.known.log_start_offset(segments[0].offset) if segments else self.known.log_start) or 0

    def is_aborted(self, file: Target, batch: Batch) -> bool | None:
        """Return whether a transactional batch is of an aborted transaction; None if that cannot be found out."""
        view = self._view(file)
        return None if view is None else view.is_aborted(batch)

    def is_received(self, found: Found) -> bool:
        """Return True if a consumer with isolation.level=read_committed receives the record now: no marker, and nothing
        from the first open transaction on."""
        is_readable = READABLE.issuperset(found.states) and not found.record.is_control
        return is_readable and not self._is_open(found.target, found.record)

    def _is_open(self, file: Target, record: Record) -> bool:
        view = self._view(file)
        stable = None if view is None else view.view.stable
        return stable is not None and record.offset is not None and record.offset >= stable

    def _view(self, file: Target) -> ReadCommitted | None:
        """Return what consumers receive of a file; of one that no broker serves, what the markers say."""
        is_live = states_of(file) == (LIVE,)
        if is_live not in self._views:
            self._views[is_live] = ReadCommitted(
                self.options.limits, ignore, by_markers=not is_live, surroundings=self.around.gates
            )
        if self._turned.get(is_live) != file.path:
            try:
                window = self.options.open(file)
                with closing(window.source):
                    self._views[is_live].turn_to(file, window)
            except SourceError:
                return None
            self._turned[is_live] = file.path
        return self._views[is_live]

    def labelled(self, matches: Iterator[Found], limit: int | None) -> Iterator[Found]:
        """Yield the matches with what each is. In a compacted log, newer records are looked for that have the key of
        the first match, then those of the next FEWER, and so on: the first is shown early, and the log is read only a
        few times more."""
        count, size = 0, 1
        for first in matches:
            if not self._may_be_superseded(first) or (count > MAX_LABELLED and first.record.key not in self._newest):
                state = (UNKNOWN,) if self._may_be_superseded(first) else first.states
                yield self._with_state(first._replace(states=state))
                continue
            if first.record.key in self._newest:
                yield self._superseded(self._with_state(first))
                continue
            waiting = [self._with_state(first.alone())]
            waiting += [self._with_state(found.alone()) for found in islice(matches, min(size, limit or size) - 1)]
            count, size = count + len(waiting), min(size * FEWER, CHUNK)
            self._look_ahead(waiting)
            yield from map(self._superseded, waiting)

    def _may_be_superseded(self, found: Found) -> bool:
        return found.states == (LIVE,) and found.record.key is not None and self.known.is_cleaned

    def _superseded(self, found: Found) -> Found:
        offset = self._newest.get(found.record.key or b"", -1)
        if found.states != (LIVE,) or offset <= (found.record.offset or 0):
            return found
        return found._replace(states=(SUPERSEDED,), superseded_by=offset)

    def _with_state(self, found: Found) -> Found:
        record, file = found.record, found.target
        states = [state for state in found.states if state != LIVE]
        if record.batch.isTransactional and not record.is_control:
            if self.is_aborted(file, record.batch):
                states.append(ABORTED)
            elif not states and self._is_open(file, record):
                states.append(OPEN)
        if found.states == (LIVE,) and record.offset is not None and record.offset < self.log_start:
            states.append(BELOW)
        return found._replace(states=tuple(states) or found.states)

    def _look_ahead(self, waiting: list[Found]) -> None:
        """Note the offset of the newest record with the key of each match, from the last segment backwards."""
        if len(self._newest) > CHUNK:
            self._newest.clear()
        keys = {found.record.key for found in waiting if self._may_be_superseded(found)} - self._newest.keys()
        reader = PartitionReader(self.options.open, replace(QUIET_RUN, limits=self.options.limits))
        segments = [file for file in self.files if states_of(file) == (LIVE,) and file.kind is SEGMENT]
        first = next((n for n, file in enumerate(segments) if file.path == waiting[0].target.path), 0)
        for file in reversed(segments[first:]):
            newest: dict[bytes | None, int] = {}
            for region in reader.segment(file, Depth.CHECKSUMS) if keys else ():
                for batch in batches_of(region):
                    for record in self._with_keys(batch, keys) if batch.crcValid and not batch.lacks else ():
                        if record.offset is not None and not (batch.isTransactional and self.is_aborted(file, batch)):
                            newest[record.key] = record.offset
            self._newest |= newest
            keys -= newest.keys()
        self._newest |= dict.fromkeys(keys, -1)

    @staticmethod
    def _with_keys(batch: Batch, keys: set[bytes | None]) -> Iterator[Record]:
        if batch.isControlBatch:
            return
        if not isinstance(batch, DefaultRecordBatch):
            yield from (record for record in records(batch) if record.key in keys)
            return
        for columns, base in decode_columns(batch):
            if len(keys) <= FEW_KEYS:
                keep_keys(columns, [key for key in keys if key is not None])
            yield from (record for record in rows_of(batch, columns, base, 0) if record.key in keys)

    def with_end(self, found: Found) -> Found:
        """Return the match with what removes it, and when."""
        for state in found.states:
            if state in GOES:
                return found._replace(goes=GOES[state][0], goes_at=GOES[state][1])
        goes, at = self._retention.get(os.path.abspath(found.target.path), ("not known", None))
        record = found.record
        if record.value is None and self._may_be_superseded(found):
            horizon = record.batch.deleteHorizonMs
            return found._replace(goes="the log cleaner, delete.retention.ms after its first cleaning", goes_at=horizon)
        if SUPERSEDED in found.states:
            goes = f"the log cleaner, when it next cleans the partition; else {goes}"
        return found._replace(goes=goes, goes_at=at)

    @cached_property
    def _retention(self) -> dict[str, tuple[str, int | None]]:
        """What retention does with the segments, by path."""
        from kdump.questions.retention.answer import SegmentRetention
        from kdump.questions.retention.partition import RetentionQuery
        from kdump.questions.retention.run import run_query

        found: dict[str, tuple[str, int | None]] = {}
        if self.place is None:
            return found
        try:
            for answer in run_query([self.place.path], RetentionQuery(deep=False), run=self.options):
                if isinstance(answer, SegmentRetention):
                    found[os.path.abspath(answer.file)] = _end_of(answer)
        except SourceError:
            pass
        return found


def _end_of(segment: SegmentRetention) -> tuple[str, int | None]:
    """Return in words what removes a segment, and when; 0: at the next check."""
    rule = segment.deletionRule or "retention"
    if segment.deletion == "now":
        return f"{rule}, at the next check", 0
    if segment.deletion == "later":
        more = segment.deletesAfterBytes
        after = "" if more is None else f" (or retention.bytes, after {more:,} more bytes)"
        return f"{rule}{after}", segment.deletesAt
    if segment.deletion == "held":
        return f"due by {rule}, and kept by {segment.blockedBy}", None
    return "no rule deletes it" if segment.deletion == "kept" else "not known", None
