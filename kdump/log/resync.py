"""Finding the next sound batch in bytes that no longer make sense.

A candidate must have a plausible header, a length that fits, an offset above the last good one and within 31 bits of
the file's name, and a checksum that holds; and it must not lie in a value, which may itself hold a valid batch. It
need not have a successor, so that a good batch between two bad ones is not lost. Of a file whose batches may be out of
order (`unordered`) its offset may be any.
"""

from __future__ import annotations

import re

from kdump.format.batch import CRC_START as BATCH_CRC_START
from kdump.format.batch import LOG_OVERHEAD, BatchHeader
from kdump.format.checksum import checksum
from kdump.format.message import CRC_START as MESSAGE_CRC_START
from kdump.log.claim import LEAST, REACH, Claim, claim_at, near
from kdump.log.nested import LOOK_BACK, Nesting
from kdump.log.region import Limits
from kdump.log.window import Window

FREE_WORK = 64 * 1024 * 1024
WORK_PER_BYTE = 8
"""Bytes of checksum that candidates may cost for each byte searched: crafted input must not cost its square."""
RESERVE = FREE_WORK // 2
"""What is kept of that for candidates with a successor: chance makes the others."""
FIRST_LOOK = 4096
"""Bytes that are searched at first; the next sound batch is mostly near."""

NOT_ZERO = re.compile(rb"[^\x00]")


class Resync:
    """Searches one file. `name_offset` is the offset that its name gives, None where it has no such name. `unordered`:
    neither that nor the offset before the damage limits what is found."""

    def __init__(self, window: Window, limits: Limits, name_offset: int | None, *, unordered: bool = False) -> None:
        self.window = window
        self.limits = limits
        self.unordered = unordered
        self.name_offset = None if unordered else name_offset
        self.nesting = Nesting(window, lambda at: self._sound(claim_at(window, at, limits), None))
        self.work_left = FREE_WORK
        self.paid_to = 0
        self.searched: tuple[int | None, int, int, int | None] = (None, 0, 0, None)
        """The last search: above which offset, from where, up to where there is none, and what there is then."""

    def next_sound(self, start: int, stop: int | None, boundary: int, last_good: int | None) -> int | None:
        """Position of the first sound batch at or behind `start`, None if there is none before `stop` (None: the end).
        What cannot be read began at `boundary`; with a `stop`, all from there on can still be read afterwards."""
        if self.unordered:
            last_good = None
        above, begun, clear, found = self.searched
        if above != last_good or not begun <= start <= clear:
            begun, clear, found = start, start, None
        if found is None and (stop is None or clear < stop):
            self.nesting.begin(boundary)
            clear, found = self._search(clear, stop, start - 1, last_good)
            self.searched = last_good, begun, clear, found
        return found

    def forget_name(self) -> None:
        """The file's name is wrong: it says nothing of the offsets in it."""
        self.name_offset = None
        self.searched = (None, 0, 0, None)

    def walked(self, position: int) -> None:
        """The file has been read to `position`: what that allows candidates to cost."""
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
                    # Zeros match for as long as they last; go on where the next header could begin.
                    other = NOT_ZERO.search(block, inside)
                    inside = max(inside + 1, (other.start() if other else len(block)) - LOG_OVERHEAD)
                    continue
                at = position + inside
                claimed = at + LOG_OVERHEAD + int.from_bytes(block[inside + 8 : inside + 12], "big")
                inside += 1
                if claimed > (self.window.source.size or at + LOOK_BACK):
                    continue  # most of what only looks like a header
                candidate = claim_at(self.window, at, self.limits)
                if self._sound(candidate, last_good):
                    end = self.nesting.around(candidate)
                    if end is None:
                        return candidate.position, candidate.position
                    inside = end - position
            position = max(position + len(block) - LEAST + 1, position + inside)
        return position, None

    def _pattern(self, last_good: int | None) -> re.Pattern[bytes]:
        """The upper halves that an offset can have here, a length that is not negative, a known magic."""
        base = self.name_offset if self.name_offset is not None else last_good
        if base is None:
            upper = rb"[\x00-\x7f].{3}"
        else:
            halves = {offset >> 32 for offset in (max(0, base - REACH), base, base + REACH)}
            upper = b"(?:" + b"|".join(re.escape(half.to_bytes(4, "big")) for half in sorted(halves)) + b")"
        return re.compile(upper + rb".{4}[\x00-\x7f].{3}.{4}[\x00-\x02]", re.DOTALL)

    def _sound(self, candidate: Claim, last_good: int | None) -> bool:
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
        return self.checksum_holds(candidate.position, candidate.size, header.magic, header.crc)

    def checksum_holds(self, position: int, size: int, magic: int, crc: int) -> bool:
        """Whether bytes position..position+size-1 give the checksum `crc`. No, without looking, once the search has
        cost too much."""
        if size > self.work_left:
            return False
        self.work_left -= size
        start = BATCH_CRC_START if magic > 1 else MESSAGE_CRC_START
        return checksum(magic, self.window.peeks(position + start, size - start)) == crc

    def chains(self, claim: Claim) -> bool:
        """Whether what lies behind `claim` can lie behind a batch: a successor, zeros, or less than a header. One of
        the successor's fields may be damaged in turn."""
        data = self.window.peek(claim.end, LEAST)
        if len(data) < LEAST or not any(data):
            return self.window.reaches(claim.end)
        offset, length_fits, magic_known = self._successor(claim, data)
        if claim.last_offset < offset < claim.last_offset + REACH:
            return magic_known or length_fits
        return magic_known and length_fits and near(offset, claim.last_offset)

    def follows(self, claim: Claim) -> bool:
        """Whether `claim` ends where its successor begins, beyond doubt: a header with the very next offset."""
        data = self.window.peek(claim.end, LEAST)
        if len(data) < LEAST:
            return False
        offset, length_fits, magic_known = self._successor(claim, data)
        return offset == claim.last_offset + 1 and length_fits and magic_known

    def _successor(self, claim: Claim, data: memoryview) -> tuple[int, bool, bool]:
        """What `data` behind `claim` says: its offset, whether its length can be, and its magic."""
        length = int.from_bytes(data[8:12], "big", signed=True)
        length_fits = length >= LEAST - LOG_OVERHEAD and self.window.reaches(claim.end + LOG_OVERHEAD + length)
        return int.from_bytes(data[:8], "big", signed=True), length_fits, data[16] <= 2
