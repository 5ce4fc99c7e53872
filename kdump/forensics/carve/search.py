"""Any bytes -> the sound batches in them, in order, at whatever byte they begin.

A header that could be one (format.candidates) and a checksum that holds: nothing else is asked of a batch, not that
another follows it, nor which offset it has. What lies in a sound batch is searched too, for a value may hold a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kdump.format.batch import BATCH_HEADER, BatchHeader
from kdump.format.batch import CRC_START as BATCH_CRC_START
from kdump.format.candidates import LEAST, candidates
from kdump.format.checksum import checksum
from kdump.format.errors import DecodeError
from kdump.format.message import CRC_START as MESSAGE_CRC_START
from kdump.format.message import VALUE_SIZE, MessageHeader, key_problem
from kdump.format.record import MIN_RECORD_SIZE
from kdump.format.varint import read_varint
from kdump.log.claim import HEADER, Claim, claim_at
from kdump.log.nested import LOOK_BACK
from kdump.log.region import Batch, Limits, make_batch
from kdump.log.resync import FREE_WORK, RESERVE, WORK_PER_BYTE
from kdump.log.window import Window

PIECE = 64 * 1024
"""Bytes that are looked at at once: if they are zeros, there is nothing to look for."""
ZEROS = bytes(PIECE)
MARKS = {"gzip": b"\x1f\x8b", "lz4": b"\x04\x22\x4d\x18", "zstd": b"\x28\xb5\x2f\xfd"}
"""With what a payload begins."""
EDGE = 16
"""The first bytes of a batch that may be zeros, those of a small offset and length among them."""


@dataclass(frozen=True)
class CarvedBatch:
    """A sound batch in `file`. `within`: the position of the sound batch in whose bytes it lies; None: in none's.
    `run`: the number of the run that it belongs to, from 1; None for one that lies within another."""

    file: str
    batch: Batch
    within: int | None = None
    run: int | None = None


class Search:
    """One search through one source. `unchecked` counts headers that were not held against their checksum: in bytes
    made to look like headers, that would cost the square of their number."""

    def __init__(self, window: Window, limits: Limits, met: Callable[[int], None] = lambda position: None) -> None:
        self.window = window
        self.limits = limits
        self.met = met
        self.unchecked = 0
        self.work_left = FREE_WORK
        self.skipped = 0
        """Bytes of holes that were not read."""

    def batches(self) -> Iterator[CarvedBatch]:
        """What is found. A batch can be read until the next is asked for. Raises SourceError."""
        outer, outer_end = 0, 0
        for at in self._candidates():
            claim = claim_at(self.window, at, self.limits)
            if not self._is_sound(claim):
                continue
            within = outer if at < outer_end else None
            if within is None:
                outer, outer_end = at, claim.end
            assert claim.header is not None
            batch = make_batch(self.window, at, claim.size, self.limits, claim.header, crc=claim.header.crc)
            yield CarvedBatch(self.window.source.name, batch, within)

    def _candidates(self) -> Iterator[int]:
        """Positions with a header that could be one."""
        window, source = self.window, self.window.source
        position = 0
        while True:
            ahead = source.next_data(position)
            if ahead > position + PIECE:
                self.skipped += ahead - position - EDGE
                position = ahead - EDGE
            # The header of what begins in the last bytes of a piece lies in the next.
            data, start = window.at_hand(position, PIECE + HEADER)
            there = len(data) - start
            if there < LEAST:
                return
            stop = start + min(PIECE, there)
            if data.startswith(ZEROS[: stop - start], start):
                start = max(start, stop - EDGE)
            for at in candidates(data, start, stop):
                yield position + at - (stop - min(PIECE, there))
            position += min(PIECE, there)
            self.work_left += WORK_PER_BYTE * PIECE
            self.met(position)
            window.release(position - LOOK_BACK)

    def _is_sound(self, claim: Claim) -> bool:
        """Whether it lies whole in the source, and its checksum holds."""
        header = claim.header
        if header is None or claim.error is not None:
            return False
        if isinstance(header, MessageHeader) and not self._fills(claim.position, header):
            return False
        if self.window.source.size is None and claim.size > LOOK_BACK:
            return False  # a stream is kept no further
        if not self.window.reaches(claim.end):
            return False
        likely = claim.size <= self.work_left - RESERVE or self._begins_records(claim)
        if claim.size > self.work_left or not likely:
            self.unchecked += 1
            return False
        self.work_left -= claim.size
        start = BATCH_CRC_START if header.magic > 1 else MESSAGE_CRC_START
        pieces = self.window.peeks(claim.position + start, claim.size - start)
        return checksum(header.magic, pieces) == header.crc

    def _begins_records(self, claim: Claim) -> bool:
        """Whether what lies behind a header looks like records, by their first bytes: asked when work runs short."""
        header = claim.header
        if not isinstance(header, BatchHeader):
            return True
        data = bytes(self.window.peek(claim.position + BATCH_HEADER.size, 10))
        if header.compression in MARKS:
            return data.startswith(MARKS[header.compression])
        if header.compression != "none" or not header.recordCount:
            return True
        try:
            length, size = read_varint(data, 0, len(data), "Record", "length")
        except DecodeError:
            return False
        return MIN_RECORD_SIZE - 1 <= length <= claim.size - BATCH_HEADER.size - size

    def _fills(self, position: int, header: MessageHeader) -> bool:
        """Whether key and value fill a message exactly: hardly anything else that looks like one is read to its end."""
        if key_problem(header, 0) is not None:
            return False
        at = header.headerSize + max(0, header.keySize)
        data = self.window.peek(position + at, VALUE_SIZE.size)
        size = int.from_bytes(data, "big", signed=True)
        return len(data) == VALUE_SIZE.size and at + VALUE_SIZE.size + max(0, size) == header.size and size >= -1
