"""Finds the next valid batch after damage.

A candidate must have a plausible header, a length that fits, an offset above the last trusted one and within 31 bits of
the file's name, and a matching checksum. It must not be inside a record, which may itself contain a valid batch. No
batch has to follow it, so that a valid batch between two damaged ones is found. If the batches of a file may be out of
order (`unordered`), any offset is accepted."""

from __future__ import annotations

import re

from kdump.format.batch_formats import FORMATS, format_of
from kdump.format.batch_header import LOG_OVERHEAD, BatchHeader
from kdump.format.checksum import checksum
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.log.embedded_batch import LOOK_BACK, EmbeddedBatchCheck
from kdump.log.header_candidate import LEAST, REACH, HeaderCandidate, candidate_at, near

FREE_WORK = 64 * 1024 * 1024
WORK_PER_BYTE = 8
"""Bytes of checksums computed for candidates per byte searched: crafted input must not make the cost quadratic."""
RESERVE = FREE_WORK // 2
"""Bytes of that work reserved for candidates that another batch follows: the others are mostly chance matches."""
FIRST_LOOK = 4096
"""Bytes searched at first: the next valid batch is usually near."""

NOT_ZERO = re.compile(rb"[^\x00]")


class Resync:
    """Searches one file. `name_offset` is the offset in its name, None if the name has none. `unordered`: neither that
    nor the offset before the damage restricts the search."""

    def __init__(self, window: Window, limits: Limits, name_offset: int | None, *, unordered: bool = False) -> None:
        self.window, self.limits, self.unordered = window, limits, unordered
        self.name_offset = None if unordered else name_offset
        self.nesting = EmbeddedBatchCheck(window)
        self.work_left = FREE_WORK
        self.paid_to = 0
        self.searched: tuple[int | None, int, int, int | None] = (None, 0, 0, None)
        """The last search: the offset it had to exceed, its start, the end of the part without a batch, the result."""

    def next_valid(self, start: int, stop: int | None, boundary: int, last_good: int | None) -> int | None:
        """Return the position of the first valid batch at or after `start`, None if there is none before `stop` (None:
        the end). The damage begins at `boundary`; with a `stop`, bytes from `start` on can still be read afterwards."""
        if self.unordered:
            last_good = None
        above, begun, clear, next_found = self.searched
        if above != last_good or not begun <= start <= clear:
            begun, clear, next_found = start, start, None
        if next_found is None and (stop is None or clear < stop):
            self.nesting.begin(boundary)
            clear, next_found = self._search(clear, stop, start - 1, last_good)
            self.searched = last_good, begun, clear, next_found
        return next_found

    def forget_name(self) -> None:
        """Ignore the file's name from now on, because it contradicts the offsets in the file."""
        self.name_offset = None
        self.searched = (None, 0, 0, None)

    def walked(self, position: int) -> None:
        """Add to the work budget for candidates, because the file has been read up to `position`."""
        self.work_left += WORK_PER_BYTE * max(0, position - self.paid_to)
        self.paid_to = max(self.paid_to, position)

    def _search(self, position: int, stop: int | None, keep_from: int, last_good: int | None) -> tuple[int, int | None]:
        pattern = self._pattern(last_good)
        size = min(FIRST_LOOK, self.window.size)
        while stop is None or position < stop:
            data = self.window.view(position, size)
            if len(data) < LEAST:
                break
            size = min(2 * size, self.window.size)
            if stop is None:
                self.window.release(max(keep_from, position - LOOK_BACK))
            block = bytes(data)
            self.walked(position + len(block))
            inside = 0
            while match := pattern.search(block, inside):
                inside = match.start()
                if not any(block[inside : inside + LEAST]):
                    # Zeros match at every position: continue where the next header could begin.
                    other = NOT_ZERO.search(block, inside)
                    inside = max(inside + 1, (other.start() if other else len(block)) - LOG_OVERHEAD)
                    continue
                at = position + inside
                claimed = at + LOG_OVERHEAD + int.from_bytes(block[inside + 8 : inside + 12], "big")
                inside += 1
                if claimed > (self.window.source.size or at + LOOK_BACK):
                    continue  # excludes most false candidates
                candidate = candidate_at(self.window, at, self.limits)
                if self._is_valid(candidate, last_good):
                    end = self.nesting.end_of_container(candidate, self._is_valid_at)
                    if end is None:
                        return candidate.position, candidate.position
                    inside = end - position
            position = max(position + len(block) - LEAST + 1, position + inside)
        return position, None

    def _pattern(self, last_good: int | None) -> re.Pattern[bytes]:
        """Return a pattern for headers: an upper half that an offset can have here, a length >= 0, a known magic."""
        base = self.name_offset if self.name_offset is not None else last_good
        if base is None:
            upper = rb"[\x00-\x7f].{3}"
        else:
            halves = {offset >> 32 for offset in (max(0, base - REACH), base, base + REACH)}
            upper = b"(?:" + b"|".join(re.escape(half.to_bytes(4, "big")) for half in sorted(halves)) + b")"
        return re.compile(upper + rb".{4}[\x00-\x7f].{3}.{4}[" + bytes(FORMATS) + b"]", re.DOTALL)

    def _is_valid_at(self, position: int) -> bool:
        return self._is_valid(candidate_at(self.window, position, self.limits), None)

    def _is_valid(self, candidate: HeaderCandidate, last_good: int | None) -> bool:
        header = candidate.header
        if header is None or candidate.error is not None:
            return False
        if isinstance(header, BatchHeader) and not 0 <= header.recordCount <= header.lastOffsetDelta + 1:
            return False
        offset = candidate.first_offset
        if last_good is not None and offset <= last_good:
            return False
        for base in (self.name_offset, last_good):
            if base is not None and not near(offset, base):
                return False
        if self.name_offset is not None and candidate.last_offset < self.name_offset:
            return False
        if candidate.size > LOOK_BACK and self.window.source.size is None:
            return False
        if not self.window.reaches(candidate.end):
            return False
        if candidate.size > self.work_left - RESERVE and not self.chains(candidate):
            return False
        return self.checksum_matches(candidate.position, candidate.size, header.magic, header.crc)

    def checksum_matches(self, position: int, size: int, magic: int, crc: int) -> bool:
        """Return True if the batch or message in bytes position..position+size-1 has the checksum `crc`. Always False
        once the work budget is spent."""
        if size > self.work_left:
            return False
        self.work_left -= size
        start = format_of(magic).crc_start
        return checksum(magic, self.window.peeks(position + start, size - start)) == crc

    def chains(self, claim: HeaderCandidate) -> bool:
        """Return True if the bytes after `claim` may follow a batch: a header, zeros, or fewer bytes than a header. One
        field of that header may be damaged."""
        data = self.window.peek(claim.end, LEAST)
        if len(data) < LEAST or not any(data):
            return self.window.reaches(claim.end)
        offset, length_fits, magic_known = self._successor(claim.end, data)
        if claim.last_offset < offset < claim.last_offset + REACH:
            return magic_known or length_fits
        return magic_known and length_fits and near(offset, claim.last_offset)

    def follows(self, end: int, last: int, reach: int = 1) -> bool:
        """Return True if a plausible header starts where a batch ends, at byte `end`, whose offset is the next one
        after the batch's `last`, or at most `reach` above that."""
        data = self.window.peek(end, LEAST) if reach == 1 else self.window.view(end, LEAST)
        if len(data) < LEAST:
            return False
        offset, length_fits, magic_known = self._successor(end, data)
        return 0 < offset - last <= reach and length_fits and magic_known

    def _successor(self, end: int, data: memoryview) -> tuple[int, bool, bool]:
        """Parse `data` at byte `end`: its offset, whether its length is possible, and whether its magic is known."""
        length = int.from_bytes(data[8:12], "big", signed=True)
        length_fits = length >= LEAST - LOG_OVERHEAD and self.window.reaches(end + LOG_OVERHEAD + length)
        return int.from_bytes(data[:8], "big", signed=True), length_fits, data[16] in FORMATS
