"""Follows a log that is still being written: its last segment, those that follow it, and what replaces them.

A broker truncates a log, after an election or a restart: it deletes segments, truncates the last one, and appends to
it, perhaps all before the next look. So the batches that were read are compared with those that are there.

Source: org.apache.kafka.storage.internals.log.UnifiedLog.truncateTo and truncateFullyAndStartAt, LocalLog.roll."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

from kdump.format.batch_formats import LARGEST_HEADER
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.io.source import FileSource, open_source
from kdump.io.window import Window
from kdump.log.paths import Target, seen_file
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.served_files import current_segments

POLL = 0.25
"""Seconds between two checks of whether a file has grown."""
MAX_KEPT = 4096
"""Maximum number of batches, the last ones, that are compared with those that are there."""


class ReadBatch(NamedTuple):
    """A batch that was read: from `position` to `end` of a file, with the first bytes of its header, which has the
    checksum of the rest; `next_offset`: the offset after it."""

    path: str
    position: int
    end: int
    next_offset: int
    header: bytes

    def is_in(self, source: FileSource) -> bool:
        """Return True if the batch is still there. Raises SourceError."""
        return bool(source.read_at(self.position, len(self.header)) == self.header)

    @property
    def is_there(self) -> bool:
        """Whether it is still in the file of that name."""
        try:
            with closing(open_source(self.path)) as source:
                return isinstance(source, FileSource) and self.is_in(source)
        except SourceError:
            return False


class FollowedLog:
    """The log of which `target` is the last segment, or a file that is no segment.

    `on_wait` is called before each pause; `on_note` with a file and a message if what was read is not there any more.
    """

    def __init__(
        self, target: Target, limits: Limits, on_wait: Callable[[], None], on_note: Callable[[Target, str], None]
    ) -> None:
        self.target: Target | None = target
        """The file that is read next; None if there is nothing more to read."""
        self.position = 0
        """Where to start in it."""
        self.has_moved = True
        """Whether `regions` has set them after it was read to its end."""
        self.limits, self.on_wait, self.on_note = limits, on_wait, on_note
        self._read: deque[ReadBatch] = deque(maxlen=MAX_KEPT)

    def skim(self, target: Target, window: Window) -> int:
        """Take the batches in a file for read, and return where they end (`complete_end`)."""
        count, starts = 0, deque[tuple[int, int]]()
        for region in regions(window, name_offset=target.name_offset, limits=self.limits, depth=Depth.HEADERS):
            starts.append((count, region.position))
            count += region.run.batches if isinstance(region, BatchRun) else isinstance(region, Batch)
            while len(starts) > 1 and count - starts[1][0] >= MAX_KEPT:
                starts.popleft()
        start = starts[0][1] if starts else 0
        for region in regions(window, name_offset=target.name_offset, start=start, limits=self.limits):
            if isinstance(region, Batch):
                self._add(target, region)
        return complete_end(target, window, start, self.limits)

    def skim_previous(self) -> None:
        """Take the batches in the segment before the last one for read."""
        assert self.target is not None
        offset = self.target.name_offset
        before = [name for name in self._names(self.target) if offset is not None and int(name[:20]) < offset]
        if before:
            previous = seen_file(os.path.join(os.path.dirname(self.target.path), before[-1]))
            try:
                with closing(open_source(previous.path)) as source:
                    self.skim(previous, Window(source))
            except SourceError:  # without it, more may be shown again after a truncation
                pass

    def _add(self, target: Target, batch: Batch) -> None:
        header = b"".join(batch.chunks(0, min(LARGEST_HEADER, batch.size)))
        self._read.append(ReadBatch(target.path, batch.position, batch.end, batch.lastOffset + 1, header))

    def regions(self, window: Window) -> Iterator[Region]:
        """Yield the regions of `target` from `position` on as it grows, until what follows is in another file, or
        elsewhere in this one. A last region that is not a batch may still be being written, so it is yielded only if
        there is a newer segment. Raises SourceError."""
        target, source = self.target, window.source
        assert target is not None
        assert isinstance(source, FileSource)
        self.has_moved = False
        following: Target | None = None
        while True:
            state = source.state()
            # A preallocated segment is written in place, so discard whatever was read ahead.
            window.forget()
            source.extend()
            for region in regions(window, name_offset=target.name_offset, start=self.position, limits=self.limits):
                if not isinstance(region, Batch) and region.end == source.size and following is None:
                    break
                if self._has_changed(target, source):
                    break
                self.position = region.end
                if isinstance(region, Batch):
                    self._add(target, region)
                yield region
            if self._has_changed(target, source):
                self.resume()
                return
            if following is not None:
                self._go_on(following, self._after)
                return
            self.on_wait()
            while following is None and source.state() == state:
                # One more iteration reads what was written before the segment was rolled.
                following = newer(target)
                if following is None and self._is_replaced(target, source):
                    self.resume()
                    return
                if following is None:
                    time.sleep(POLL)
            if following is not None and self._is_replaced(target, source):
                self.resume()
                return

    def _has_changed(self, target: Target, source: FileSource) -> bool:
        """Return True if what was read of an open file is not in it any more."""
        if source.state()[0] < self.position:
            return True
        last = self._read[-1] if self._read else None
        return last is not None and last.path == target.path and not last.is_in(source)

    @staticmethod
    def _is_replaced(target: Target, source: FileSource) -> bool:
        """Return True if an open file does not have its name any more."""
        try:
            status = file_system.stat(target.path)
        except OSError:
            return True
        return (status.st_dev, status.st_ino) != source.identity()[:2]

    def _go_on(self, following: Target, after: int | None) -> None:
        """Go on in the next segment. `after`: the offset after the last batch that was read, if any was."""
        if after is not None and following.name_offset is not None and following.name_offset > after:
            self.on_note(
                following, f"offsets {after}..{following.name_offset - 1} are in no file; continuing after them"
            )
        self._move(following, 0)

    @property
    def _after(self) -> int | None:
        return self._read[-1].next_offset if self._read else None

    def _move(self, target: Target | None, position: int) -> None:
        self.target, self.position, self.has_moved = target, position, True

    def resume(self) -> None:
        """Go to the end of the last batch that was read and is still there; if there is none, to where the log now
        begins. Waits for a log that has no segment, as long as its directory exists."""
        current = self.target
        assert current is not None
        oldest = self._read[0] if self._read else None
        after = self._after
        while self._read:
            last = self._read[-1]
            if last.is_there:
                if last.next_offset != after:
                    self._note_truncation(seen_file(last.path), last.next_offset)
                self._move(seen_file(last.path), last.end)
                return
            self._read.pop()
        following = newer(current)
        if following is not None and not any(map(file_system.exists, {current.path, oldest.path if oldest else ""})):
            self._go_on(following, after)
            return
        first = self._first(current, oldest)
        if first is None:
            self.on_note(current, "was deleted; there is nothing more to read")
        elif after is not None:
            self._note_truncation(first, first.name_offset)
        self._move(first, 0)

    def _note_truncation(self, target: Target, offset: int | None) -> None:
        to = "" if offset is None else f" to offset {offset}"
        self.on_note(target, f"the log was truncated{to}, or replaced from there on; continuing from there")

    def _first(self, current: Target, oldest: ReadBatch | None) -> Target | None:
        """Return the file with which to begin again: the oldest of those that were read, or else the log's first."""
        for path in (oldest.path if oldest else current.path, current.path):
            if file_system.exists(path):
                return seen_file(path)
        directory = os.path.dirname(current.path) or "."
        while current.name_offset is not None and file_system.isdir(directory):
            names = self._names(current)
            if names:
                return seen_file(os.path.join(directory, names[0]))
            self.on_wait()
            time.sleep(POLL)
        return None

    @staticmethod
    def _names(current: Target) -> list[str]:
        """Return the names of the segments in the directory of a file, in offset order."""
        return current_segments(os.path.dirname(current.path) or ".")


def newer(current: Target) -> Target | None:
    """Return the partition's next segment, None if this is the newest."""
    if current.name_offset is None:
        return None
    directory = os.path.dirname(current.path) or "."
    for name in current_segments(directory):
        following = seen_file(os.path.join(directory, name))
        if following.name_offset is not None and following.name_offset > current.name_offset:
            return following
    return None


def complete_end(target: Target, window: Window, start: int, limits: Limits) -> int:
    """Return where the batches from byte `start` on end: that of the file, or where bytes begin at its end that are not
    a batch, because one may still be being written there."""
    end = start
    for region in regions(window, name_offset=target.name_offset, start=start, limits=limits, depth=Depth.HEADERS):
        if isinstance(region, (Batch, BatchRun)) or region.end != window.source.size:
            end = region.end
    return end
