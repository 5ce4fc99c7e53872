"""The compressed payload as the codecs read it: forward, across the pieces that it comes in, with a position."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes

NOTHING = memoryview(b"")


class Source:
    """Reads `chunks` forward. `position` counts the bytes read, `size` is what all chunks should add up to.

    What is handed out is a copy: a chunk may be a view of a buffer that moves on, or is resized, with the next one.
    """

    __slots__ = ("_at", "_chunk", "_chunks", "position", "size")

    def __init__(self, chunks: Iterable[Bytes], size: int) -> None:
        self.size = size
        self.position = 0
        self._chunks = iter(chunks)
        self._chunk = NOTHING
        self._at = 0

    def _at_hand(self) -> int:
        """How many unread bytes are at hand; 0 only at the end."""
        while self._at >= len(self._chunk):
            # Let go of the old chunk first: a view pins the buffer that the next chunk may come in.
            self._chunk = NOTHING
            self._at = 0
            try:
                self._chunk = memoryview(next(self._chunks))
            except StopIteration:
                break
        return len(self._chunk) - self._at

    def peek(self, most: int) -> bytes:
        """Some bytes, at most `most`, that stay unread; none only at the end."""
        self._at_hand()
        return bytes(self._chunk[self._at : self._at + most])

    def skip(self, count: int) -> int:
        """Read past `count` bytes, or to the end; how many they were."""
        start = self.position
        while count > 0 and (step := min(count, self._at_hand())):
            self._at += step
            self.position += step
            count -= step
        return self.position - start

    def take(self, count: int) -> bytes | bytearray:
        """The next `count` bytes, fewer at the end. Takes no more memory than there are bytes to read."""
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
    """The error for a payload that the codec rejects."""
    return DecodeError(struct, field, position, reason, "decompression-failed")


def over_limit(struct: str, position: int, limit: int) -> DecodeError:
    """The error for a payload that decompresses to more than `limit` bytes."""
    return failed(struct, "output", position, f"decompresses to more than {limit} bytes (--max-decompressed-size)")


def library(module: str, package: str, struct: str) -> Any:
    """The codec library `module`. Raises DecodeError with the `package` to install when it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        reason = f"the {package} library is not installed: pip install {package}"
        raise failed(struct, "codec", 0, reason) from None
