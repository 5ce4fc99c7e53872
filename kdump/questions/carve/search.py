"""Finds the valid batches in arbitrary bytes, in order, wherever they begin.

A batch needs only a plausible header (core.candidates) and a matching checksum; its offset and the bytes after it do
not matter. Valid batches are searched inside, too, because a record value may contain a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kdump.core.candidates import LEAST, find_candidates
from kdump.format.batch_formats import FORMATS, LARGEST_HEADER
from kdump.format.batch_header import BatchHeader
from kdump.format.checksum import checksum
from kdump.format.codec_table import BY_ID
from kdump.format.errors import DecodeError
from kdump.format.legacy_message import VALUE_SIZE, MessageHeader, key_problem
from kdump.format.record import MIN_RECORD_SIZE
from kdump.format.varint import read_varint
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.window import Window
from kdump.log.embedded_batch import LOOK_BACK
from kdump.log.header_candidate import HeaderCandidate, candidate_at
from kdump.log.region import Batch, make_batch
from kdump.log.resync import FREE_WORK, RESERVE, WORK_PER_BYTE
from kdump.log.torn_batch import beginning_of
from kdump.questions.salvage.source.damaged_records import LARGEST, rescue_torn

__all__ = ["CarvedBatch"]

PIECE = 64 * 1024
"""Bytes examined at a time. If they are all zeros, only a batch that begins in the last EDGE of them is possible."""
ZEROS = bytes(PIECE)
MARKS = {codec.name: codec.mark for codec in BY_ID if codec.mark}
"""Magic bytes at which a compressed payload begins."""
EDGE = 16
"""Upper bound for the zeros at the beginning of a batch: a small offset and the first bytes of its length."""


MAX_TORN = 8
"""Headers that are tried as that of a batch which the end of the file truncates."""


@dataclass(frozen=True)
class CarvedBatch:
    """A valid batch in `file`. `within`: position of the valid batch whose bytes contain it, None if there is none.
    `run`: number of its batch run, from 1; None for a batch within another. `records_before`: of a batch that was made
    of the complete records of one that the end of the file truncates, how many that one had."""

    file: str
    batch: Batch
    within: int | None = None
    run: int | None = None
    records_before: int | None = None


class Search:
    """One search of one source, or of its bytes from `start` to `stop`. `unchecked` counts headers whose checksum was
    not computed: in bytes crafted to look like headers, computing all of them would take quadratic time."""

    def __init__(self, window: Window, run: Run = PLAIN_RUN, start: int = 0, stop: int | None = None) -> None:
        self.window = window
        self.start, self.stop = start, stop
        self.limits = run.limits
        self._run = run
        self.is_stream = window.source.size is None
        self.unchecked = 0
        self.work_left = FREE_WORK
        self.skipped = 0
        """Bytes in holes of a sparse file, which were not read."""

    def batches(self) -> Iterator[CarvedBatch]:
        """Yield the batches found. A batch can be read only until you request the next one. Raises SourceError."""
        outer, outer_end = 0, 0
        torn: list[HeaderCandidate] = []
        """Headers after the last valid batch of batches that the end of the file may truncate."""
        for position in self._candidates():
            claim = candidate_at(self.window, position, self.limits)
            if not self._is_valid(claim):
                if position >= outer_end and len(torn) < MAX_TORN and self._may_be_torn(claim):
                    torn.append(claim)
                continue
            within = outer if position < outer_end else None
            if within is None:
                outer, outer_end = position, claim.end
                torn = []
            assert claim.header is not None
            batch = make_batch(self.window, position, claim.size, self.limits, claim.header, crc=claim.header.crc)
            yield CarvedBatch(self.window.source.name, batch, within)
        found = next(filter(None, map(self._torn, torn)), None)
        if found is not None:
            yield found

    def _may_be_torn(self, claim: HeaderCandidate) -> bool:
        """Return True if the file seems to end within an uncompressed batch."""
        header, size = claim.header, self.window.source.size
        if not isinstance(header, BatchHeader) or claim.error is not None or self.is_stream:
            return False
        if size is None or claim.end <= size:
            return False
        return header.compression == "none" and self._begins_records(claim)

    def _torn(self, claim: HeaderCandidate) -> CarvedBatch | None:
        """Return the complete records of a batch that the end of the file truncates, as a batch."""
        size = (self.window.source.size or 0) - claim.position
        if not isinstance(claim.header, BatchHeader) or size > LARGEST:
            return None
        torn = beginning_of(claim.header, self.window, claim.position, size, self.limits)
        made = None if torn is None else rescue_torn(torn)
        return None if made is None else CarvedBatch(self.window.source.name, made[0], records_before=made[1])

    def _candidates(self) -> Iterator[int]:
        """Yield the positions of plausible headers."""
        window, source = self.window, self.window.source
        position, end = self.start, self.stop
        while end is None or position < end:
            ahead = source.next_data(position)
            if ahead > position + PIECE:
                self.skipped += ahead - position - EDGE
                position = ahead - EDGE
            # A header that begins in the last bytes of a piece extends into the next one.
            data, start = window.at_hand(position, PIECE + LARGEST_HEADER)
            length = len(data) - start
            if length < LEAST:
                return
            piece = min(PIECE, length) if end is None else min(PIECE, length, end - position)
            stop = start + piece
            if data.startswith(ZEROS[: stop - start], start):
                start = max(start, stop - EDGE)
            for candidate in find_candidates(data, start, stop):
                yield position + candidate - (stop - piece)
            position += piece
            self.work_left += WORK_PER_BYTE * PIECE
            self._run.at(position, window.source.size)
            window.release(position - LOOK_BACK)

    def _is_valid(self, claim: HeaderCandidate) -> bool:
        """Return True if the batch is complete in the source and its checksum matches."""
        header = claim.header
        if header is None or claim.error is not None:
            return False
        if isinstance(header, MessageHeader) and not self._fills(claim.position, header):
            return False
        if self.window.source.size is None and claim.size > LOOK_BACK:
            return False  # a stream buffers no more than this
        if not self.window.reaches(claim.end):
            return False
        likely = claim.size <= self.work_left - RESERVE or self._begins_records(claim)
        if claim.size > self.work_left or not likely:
            self.unchecked += 1
            return False
        self.work_left -= claim.size
        start = FORMATS[header.magic].crc_start
        pieces = self.window.peeks(claim.position + start, claim.size - start)
        return checksum(header.magic, pieces) == header.crc

    def _begins_records(self, claim: HeaderCandidate) -> bool:
        """Return True if the first bytes after a header look like records. Used when the work budget runs low."""
        header = claim.header
        if not isinstance(header, BatchHeader):
            return True
        data = bytes(self.window.peek(claim.position + header.headerSize, 10))
        if header.compression in MARKS:
            return data.startswith(MARKS[header.compression])
        if header.compression != "none" or not header.recordCount:
            return True
        try:
            length, size = read_varint(data, 0, len(data), "Record", "length")
        except DecodeError:
            return False
        return MIN_RECORD_SIZE - 1 <= length <= claim.size - header.headerSize - size

    def _fills(self, position: int, header: MessageHeader) -> bool:
        """Return True if key and value fill the message exactly. This rejects most false headers before their bytes are
        read."""
        if key_problem(header, 0) is not None:
            return False
        value_at = header.headerSize + max(0, header.keySize)
        data = self.window.peek(position + value_at, VALUE_SIZE.size)
        size = int.from_bytes(data, "big", signed=True)
        return len(data) == VALUE_SIZE.size and value_at + VALUE_SIZE.size + max(0, size) == header.size and size >= -1
