"""What the first bytes at a position claim to be, and whether that can be believed before any checksum is taken."""

from __future__ import annotations

from kdump.format.batch import LOG_OVERHEAD, BatchHeader
from kdump.format.errors import DecodeError
from kdump.format.message import MessageHeader
from kdump.log.region import Limits, length_problem, read_header
from kdump.log.window import Window

HEADER = 61
"""Bytes that hold the whole fixed header of any format."""
LEAST = 17
"""Bytes up to and with the magic: fewer cannot even say what they are."""
REACH = 1 << 31
"""A segment's offsets lie within 31 bits of its file's name (its indexes store them as 4-byte integers)."""


class Claim:
    """A header at a position, or the error that says why there is none."""

    __slots__ = ("error", "header", "position")

    def __init__(self, position: int, header: BatchHeader | MessageHeader | None, error: DecodeError | None) -> None:
        self.position = position
        self.header = header
        self.error = error

    @property
    def first_offset(self) -> int:
        """baseOffset of a batch; the stored offset of a message, which is the last one of a wrapper."""
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


def claim_at(window: Window, position: int, limits: Limits) -> Claim:
    """What the bytes at `position` claim. `error` is set when no batch can begin like that; `header` too if the
    fields can be read and only the length is wrong."""
    data = window.view(position, HEADER)
    try:
        header = read_header(data)
    except DecodeError as unreadable:
        return Claim(position, None, unreadable)
    error = length_problem(header)
    if error is None and limits.max_batch_size is not None and header[1] + LOG_OVERHEAD > limits.max_batch_size:
        reason = f"{header[1] + LOG_OVERHEAD} bytes exceed --max-batch-size {limits.max_batch_size}"
        error = DecodeError("RecordBatch", "batchLength", 8, reason, "batch-length-invalid")
    return Claim(position, header, error)


def near(offset: int, other: int) -> bool:
    """Whether two offsets may stand in one segment."""
    return offset >= 0 and -REACH < offset - other < REACH
