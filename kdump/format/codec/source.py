"""Reads a compressed payload for the codecs: forward, across its pieces, with a position."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from kdump.format.errors import DECOMPRESSION_FAILED, DecodeError, OurLimitError
from kdump.format.varint import Bytes

NOTHING = memoryview(b"")


class PieceOptions(NamedTuple):
    """How a payload is decompressed; see decompress."""

    limit: int
    chunk_size: int
    ignore_header_checksum: bool


class CompressedInput:
    """Reads `chunks` forward. `position` is the number of bytes read, `size` the expected total size of the chunks,
    `ignored` how many of those that were read no reader looks into.

    Returns copies, because a chunk may be a view of a buffer that moves, or is resized, with the next chunk."""

    __slots__ = ("_at", "_chunk", "_chunks", "ignored", "position", "size")

    def __init__(self, chunks: Iterable[Bytes], size: int) -> None:
        self.size = size
        self.position = 0
        self.ignored = 0
        self._chunks = iter(chunks)
        self._chunk = NOTHING
        self._at = 0

    def _at_hand(self) -> int:
        """Return the number of unread bytes in the current chunk, after moving to the next if needed; 0 at the end."""
        while self._at >= len(self._chunk):
            # Release the old chunk first: a view pins the buffer that the next chunk may reuse.
            self._chunk = NOTHING
            self._at = 0
            try:
                self._chunk = memoryview(next(self._chunks))
            except StopIteration:
                break
        return len(self._chunk) - self._at

    def peek(self, count: int) -> bytes:
        """Return some of the next bytes, at most `count`, without consuming them; empty only at the end."""
        self._at_hand()
        return bytes(self._chunk[self._at : self._at + count])

    def skip(self, count: int) -> int:
        """Skip `count` bytes, or to the end; return the number of bytes skipped."""
        start = self.position
        while count > 0 and (step := min(count, self._at_hand())):
            self._at += step
            self.position += step
            count -= step
        return self.position - start

    def take(self, count: int) -> bytes | bytearray:
        """Return the next `count` bytes, fewer only at the end. Uses no more memory than there are bytes to read."""
        data = self.peek(count)
        self._at += len(data)
        self.position += len(data)
        if len(data) == count or not self._at_hand():
            return data
        gathered = bytearray(data)
        while more := self.peek(count - len(gathered)):
            self.skip(len(more))
            gathered += more
        return gathered


def failed(struct: str, field: str, position: int, reason: str) -> DecodeError:
    """Return the error for a payload that the codec rejects."""
    return DecodeError(struct, field, position, reason, DECOMPRESSION_FAILED)


def over_limit(struct: str, position: int, limit: int) -> DecodeError:
    """Return the error for a payload that decompresses to more than `limit` bytes."""
    reason = f"decompresses to more than {limit} bytes (--max-decompressed-size)"
    return OurLimitError(struct, "output", position, reason, DECOMPRESSION_FAILED)


_COMPLETE: dict[str, Any] = {}
"""Libraries that are imported completely: sys.modules has one before that, import_module waits for another thread, but
takes longer than some batches."""


def library(module: str, package: str, struct: str) -> Any:
    """Import the codec library `module`. If it is missing, raises DecodeError with the `package` to install."""
    found = _COMPLETE.get(module)
    if found is not None and sys.modules.get(module) is found:
        return found
    try:
        _COMPLETE[module] = importlib.import_module(module)
        return _COMPLETE[module]
    except ImportError:
        reason = f"the {package} library is not installed: pip install {package}"
        raise OurLimitError(struct, "codec", 0, reason, DECOMPRESSION_FAILED) from None
