"""Parses the header at a position, and checks its plausibility before any checksum is computed."""

from __future__ import annotations

from kdump.format.batch_formats import LARGEST_HEADER
from kdump.format.batch_header import LOG_OVERHEAD, BatchHeader
from kdump.format.errors import BATCH_LENGTH_INVALID, DecodeError
from kdump.format.legacy_message import MessageHeader
from kdump.format.varint import Bytes
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.log.region import length_problem, read_header

LEAST = 17
"""Bytes up to and including the magic: with fewer, the format is unknown."""
REACH = 1 << 31
"""A segment's offsets are within 31 bits of the offset in its name (its indexes store them as 4-byte integers)."""


class HeaderCandidate:
    """A header parsed at a position, or the error that explains why none could be parsed."""

    __slots__ = ("error", "header", "position")

    def __init__(self, position: int, header: BatchHeader | MessageHeader | None, error: DecodeError | None) -> None:
        self.position, self.header, self.error = position, header, error

    @property
    def first_offset(self) -> int:
        """baseOffset of a batch; the stored offset of a message, which in a wrapper is the last one inside."""
        assert self.header is not None
        return self.header[0]

    @property
    def last_offset(self) -> int:
        assert self.header is not None
        return self.header.lastOffset if isinstance(self.header, BatchHeader) else self.header.offset

    @property
    def size(self) -> int:
        assert self.header is not None
        return self.header[1] + LOG_OVERHEAD

    @property
    def end(self) -> int:
        return self.position + self.size


def candidate_at(window: Window, position: int, limits: Limits) -> HeaderCandidate:
    """Parse the header at `position`. `error` is set if no batch can start here; `header` is set as well if only the
    length is invalid."""
    return candidate_in(window.view(position, LARGEST_HEADER), position, limits)


def candidate_in(data: Bytes, position: int, limits: Limits) -> HeaderCandidate:
    """Do the same, given the first LARGEST_HEADER bytes there."""
    try:
        header = read_header(data)
    except DecodeError as unreadable:
        return HeaderCandidate(position, None, unreadable)
    error = length_problem(header)
    if error is None and limits.max_batch_size is not None and header[1] + LOG_OVERHEAD > limits.max_batch_size:
        reason = f"a batch of {header[1] + LOG_OVERHEAD} bytes exceeds --max-batch-size {limits.max_batch_size}"
        error = DecodeError("RecordBatch", "batchLength", 8, reason, BATCH_LENGTH_INVALID)
    return HeaderCandidate(position, header, error)


def near(offset: int, other: int) -> bool:
    """Return True if two offsets may be in the same segment."""
    return offset >= 0 and -REACH < offset - other < REACH
