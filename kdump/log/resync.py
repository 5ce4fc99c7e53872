"""Finding the next sound batch in bytes that no longer make sense.

A candidate must have a plausible header, a length that fits, an offset above the last good one and within 31 bits of
the file's name, a checksum that holds, and a next header that chains: an uncompressed value may itself hold a valid
batch. Only where the bytes before it claim nothing is one accepted without a successor, so that a good batch between
two bad ones is not lost.
"""

from __future__ import annotations

import re

from kdump.format.batch import CRC_START as BATCH_CRC_START
from kdump.format.batch import LOG_OVERHEAD, BatchHeader
from kdump.format.checksum import checksum
from kdump.format.message import CRC_START as MESSAGE_CRC_START
from kdump.log.claim import LEAST, REACH, Claim, claim_at, near
from kdump.log.region import Limits
from kdump.log.window import Window

FREE_WORK = 64 * 1024 * 1024
WORK_PER_BYTE = 8
"""Bytes of checksum that candidates may cost for each byte searched: crafted input must not cost its square."""
LOOK_BACK = 64 * 1024 * 1024
"""Bytes of a stream that are kept while the next sound batch is searched: damage longer than that is just junk."""


NOT_ZERO = re.compile(rb"[^\x00]")


class Resync:
    """Searches one file. `name_offset` is the offset that its name gives, None where it has no such name."""

    def __init__(self, window: Window, limits: Limits, name_offset: int | None) -> None:
        self.window = window
        self.limits = limits
        self.name_offset = name_offset
        self.work_left = FREE_WORK

    def next_sound(self, start: int, stop: int | None, last_good: int | None, *, claimed: bool) -> int | None:
        """Position of the first sound batch at or behind `start` and before `stop` (None: the end); None if there is
        none. `claimed`: a header that may be right says that these bytes are its own."""
        pattern = self._pattern(last_good)
        position = start
        while stop is None or position < stop:
            data = self.window.view(position, self.window.size)
            if len(data) < LEAST:
                return None
            if stop is None:
                self.window.release(max(start - 1, position - LOOK_BACK))
            self.work_left += WORK_PER_BYTE * len(data)
            block = bytes(data)
            inside = 0
            while match := pattern.search(block, inside):
                inside = match.start()
                if not any(block[inside : inside + LEAST]):
                    # Zeros match for as long as they last; go on where the next header could begin.
                    other = NOT_ZERO.search(block, inside)
                    inside = max(inside + 1, (other.start() if other else len(block)) - LOG_OVERHEAD)
                    continue
                at = position + inside
                if stop is not None and at >= stop:
                    return None
                if self._sound(at, last_good, claimed):
                    return at
                inside += 1
            position += len(block) - LEAST + 1
        return None

    def _pattern(self, last_good: int | None) -> re.Pattern[bytes]:
        """The upper halves that an offset can have here, a length that is not negative, a known magic."""
        base = self.name_offset if self.name_offset is not None else last_good
        if base is None:
            upper = rb"[\x00-\x7f].{3}"
        else:
            halves = {offset >> 32 for offset in (max(0, base - REACH), base, base + REACH)}
            upper = b"(?:" + b"|".join(re.escape(half.to_bytes(4, "big")) for half in sorted(halves)) + b")"
        return re.compile(rb"(?=" + upper + rb".{4}[\x00-\x7f].{3}.{4}[\x00-\x02])", re.DOTALL)

    def _sound(self, position: int, last_good: int | None, claimed: bool) -> bool:
        candidate = claim_at(self.window, position, self.limits)
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
        if not self.window.reaches(candidate.end):
            return False
        chained = self.chains(candidate)
        if not chained and (claimed or self._looks_nested(candidate)):
            return False
        return self.checksum_holds(position, candidate.size, header.magic, header.crc)

    def checksum_holds(self, position: int, size: int, magic: int, crc: int) -> bool:
        """Whether bytes position..position+size-1 give the checksum `crc`. No, without looking, once the search has
        cost too much."""
        if size > self.work_left:
            return False
        self.work_left -= size
        start = BATCH_CRC_START if magic > 1 else MESSAGE_CRC_START
        return checksum(magic, self.window.chunks(position + start, size - start)) == crc

    def chains(self, claim: Claim) -> bool:
        """Whether what lies behind `claim` can lie behind a batch: a successor, zeros, or less than a header."""
        data = self.window.view(claim.end, LEAST)
        return len(data) < LEAST or not any(data) or self.follows(claim)

    def follows(self, claim: Claim) -> bool:
        """Whether `claim` ends where the file does or where its successor begins: a header with an offset near by,
        and a length or a magic that can be right (one of the two may be damaged in turn)."""
        data = self.window.view(claim.end, LEAST)
        if len(data) < LEAST:
            return not data and self.window.reaches(claim.end)
        offset = int.from_bytes(data[:8], "big", signed=True)
        length = int.from_bytes(data[8:12], "big", signed=True)
        magic_known = data[16] <= 2
        length_fits = length >= LEAST - LOG_OVERHEAD and self.window.reaches(claim.end + LOG_OVERHEAD + length)
        if claim.last_offset < offset < claim.last_offset + REACH:
            return magic_known or length_fits
        return magic_known and length_fits and near(offset, claim.last_offset)

    def _looks_nested(self, claim: Claim) -> bool:
        """Whether the bytes before it are the varint of its own size, as before a value in a record."""
        size = claim.size << 1
        varint = bytearray()
        while size >= 0x80:
            varint.append(size & 0x7F | 0x80)
            size >>= 7
        varint.append(size)
        before = max(0, claim.position - len(varint))
        return bytes(self.window.view(before, claim.position - before)) == bytes(varint)
