"""What is known of the records in one directory: which are aborted, superseded, below the log start, and when they go.
Found out when the first match needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.core.record_search import note_newest
from kdump.io.errors import SourceError
from kdump.io.run import LISTENERS, QUIET_RUN, ignore
from kdump.log.batch_records import decode_columns, records
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
    Found,
)
from kdump.questions.find.listing import states_of
from kdump.questions.read_committed import ReadCommitted, surroundings_of_gates

if TYPE_CHECKING:  # only --when needs it
    from kdump.questions.retention.answer import SegmentRetention

MOST_KEYS = 300_000
"""Maximum number of keys whose newest offsets are known at a time, at 100 bytes each."""
Place = tuple[int, int]
"""Number of a segment, and position of a batch in it."""
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
        self._newest: dict[int, int] = {}
        """Offsets of the newest records in the log, by the hashes of their keys."""
        self._newest_of: tuple[Place, Place] = ((0, 0), (0, 0))
        """Where the batches begin and end whose keys these are all."""

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

    def labelled(self, matches: Iterator[Found]) -> Iterator[Found]:
        """Yield the matches with what each is."""
        for found in matches:
            labelled = self._with_state(found)
            yield self._superseded(labelled) if self._may_be_superseded(labelled) else labelled

    def _may_be_superseded(self, found: Found) -> bool:
        return found.states == (LIVE,) and found.record.key is not None and self.known.is_cleaned

    def _superseded(self, found: Found) -> Found:
        """Return a match in a compacted log with whether a newer record has its key."""
        number = self._numbers.get(found.target.path)
        place = (0, 0) if number is None else (number, found.record.batch.position)
        if not self._newest_of[0] <= place < self._newest_of[1]:
            self._look_ahead(place)
        offset = self._newest.get(hash(found.record.key), -1)
        if offset <= (found.record.offset or 0):
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

    @cached_property
    def _segments(self) -> list[Target]:
        return [file for file in self.files if states_of(file) == (LIVE,) and file.kind is SEGMENT]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {file.path: number for number, file in enumerate(self._segments)}

    def _look_ahead(self, start: Place) -> None:
        """Note the newest offsets of the keys in the batches from `start` on, of as many as there is room for: the log
        is read once for every MOST_KEYS keys in it."""
        self._newest, end = {}, (len(self._segments), 0)
        reader = PartitionReader(self.options.open, replace(QUIET_RUN, limits=self.options.limits))
        for number, file in enumerate(self._segments):
            for region in reader.segment(file, Depth.CHECKSUMS) if number >= start[0] else ():
                for batch in batches_of(region):
                    place = number, batch.position
                    if place < start or not batch.crcValid or batch.lacks or batch.isControlBatch:
                        continue
                    if batch.isTransactional and self.is_aborted(file, batch):
                        continue
                    most = MOST_KEYS if place > start else sys.maxsize
                    if not self._note_keys(batch, most) and place < end:
                        end = place
        self._newest_of = start, end

    def _note_keys(self, batch: Batch, most: int) -> bool:
        """Note the newest offsets of the keys in a batch. Return whether there is room for all of them."""
        if isinstance(batch, DefaultRecordBatch):
            is_noted = True
            for columns, _ in decode_columns(batch):
                is_noted = note_newest(columns, batch.baseOffset, self._newest, most) and is_noted
            return is_noted
        is_noted = True
        for record in records(batch):
            key = hash(record.key)
            if record.key is not None and record.offset is not None:
                if key in self._newest or len(self._newest) < most:
                    self._newest[key] = record.offset
                else:
                    is_noted = False
        return is_noted

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
        from kdump.questions.retention.run import answers

        found: dict[str, tuple[str, int | None]] = {}
        if self.place is None:
            return found
        try:
            for answer in answers(RetentionQuery([self.place.path], deep=False, run=self.options)):
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
