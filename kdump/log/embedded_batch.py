"""Decides whether a valid batch belongs to a record and not to the log: the value of an uncompressed record may be a
complete valid batch.

Needed only after damage, where no batch header shows to what the bytes belong. The records themselves show it: each
begins with its length and contains the sizes of its fields; messages of v0 and v1 have sizes at fixed positions."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

from kdump.format.batch_header import BATCH_HEADER, LOG_OVERHEAD
from kdump.format.errors import DecodeError
from kdump.format.legacy_message import CRC_START, MESSAGES, VALUE_SIZE
from kdump.format.record import MIN_RECORD_SIZE
from kdump.format.varint import Bytes, read_varint, read_varlong
from kdump.io.window import Window
from kdump.log.header_candidate import HeaderCandidate

LOOK_BACK = 64 * 1024 * 1024
"""Bytes of a stream that are kept while searching for the next valid batch: longer damage is simply junk."""
LOOK_AROUND = 1 << 20
"""Bytes before a batch that are searched for the start of a record around it."""
MAX_HEADERS = 1000
"""Maximum headers of a record; bytes that claim more are not a record."""

FRAMING = re.compile(rb"(?=[\x80-\xff]{1,4}[\x00-\x7f]\x00)", re.DOTALL)
"""The length of a record large enough to contain a batch, and its attributes, which are always 0."""
NEXT_RECORD = re.compile(rb"(?:[\x80-\xff]{1,4}[\x00-\x7f]|[\x0c-\x7f])\x00", re.DOTALL)
"""The length and attributes of any record; zeros do not match."""


class EmbeddedBatchCheck:
    """Finds the record or message that contains a batch, in damage that began at `boundary`."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.boundary = -1
        self.anchor = self.known = 0

    def begin(self, boundary: int) -> None:
        """Set where the damage begins: a batch at `boundary` would have its first record 61 bytes later."""
        if boundary != self.boundary:
            self.boundary = self.known = boundary
            self.anchor = boundary + BATCH_HEADER.size

    def end_of_container(self, inner: HeaderCandidate, is_valid_batch: Callable[[int], bool]) -> int | None:
        """Return the end of the record or message that has `inner` in its key, value or a header; None if none has.
        `is_valid_batch`: whether a valid batch begins at a position."""
        end = None
        if inner.position - self.boundary < LOOK_BACK:
            end = self._by_hops(inner, is_valid_batch) or self._by_message(inner)
        end = end or self._by_search(inner, is_valid_batch)
        if end is not None:
            self.anchor = self.known = end
        return end

    def _by_hops(self, inner: HeaderCandidate, is_valid_batch: Callable[[int], bool]) -> int | None:
        """Follow the lengths of records from the start of the damage, or from the last record that was found."""
        while self.anchor < inner.position:
            try:
                length, after = self._varint(self.anchor)
            except DecodeError:
                return None
            stop = after + length
            if length < MIN_RECORD_SIZE - 1 or self._bytes(after, 1) != b"\0":
                return None
            if stop > inner.position:
                end = self._record_end(self.anchor, inner, self._claimed_end())
                return end if end and (self._goes_on(end, is_valid_batch) or not self._bytes(end, 1)) else None
            self.anchor = stop
        return None

    def _by_message(self, inner: HeaderCandidate) -> int | None:
        """Try a message of v0 or v1 where the damage began: the sizes of its key and value must be right, and its
        length or its checksum, too."""
        for layout in MESSAGES.values():
            position = self.boundary + layout.size
            key_size = self._size(position - VALUE_SIZE.size)
            value_at = position + max(0, key_size) + VALUE_SIZE.size
            end = value_at + max(0, self._size(value_at - VALUE_SIZE.size))
            held = any(
                a <= inner.position and inner.end <= b for a, b in ((position, position + key_size), (value_at, end))
            )
            if held and key_size >= -1 and (end == self._claimed_end() or self._crc_matches(end)):
                return end
        return None

    def _by_search(self, inner: HeaderCandidate, is_valid_batch: Callable[[int], bool]) -> int | None:
        """Search for a record anywhere before it, in case the damage extends into the records."""
        start = max(self.known, inner.position - LOOK_AROUND)
        for match in FRAMING.finditer(self._bytes(start, inner.position - start)):
            end = self._record_end(start + match.start(), inner, 0)
            if end is not None and self._goes_on(end, is_valid_batch):
                return end
        return None

    def _record_end(self, start: int, inner: HeaderCandidate, torn_end: int) -> int | None:
        """Return the end of the record at `start`, if one begins there that contains `inner`, else None. If it extends
        past the end of the file, its end must not exceed `torn_end`."""
        try:
            length, position = self._varint(start)
            stop = position + length
            if stop < inner.end:
                return None
            torn = not self.window.reaches(stop)
            if torn and stop > torn_end:
                return None
            _, position = self._varint(position + 1, read_varlong)
            _, position = self._varint(position)
            held = False
            for begin, end in self._fields(position, stop):
                held = held or (begin <= inner.position and inner.end <= end)
                if held and torn:
                    break
            return stop if held else None
        except DecodeError:
            return None

    def _fields(self, position: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of key, value and headers, which must fill a record from keySize at `at` to `stop`.
        Raises DecodeError."""
        left = 2
        counted = False
        while left:
            size, begin = self._varint(position)
            position = begin + max(0, size)
            if size < -1 or position > stop:
                raise DecodeError("Record", "keySize", begin, "no record")
            yield begin, position
            left -= 1
            if not left and not counted:
                count, position = self._varint(position)
                if not 0 <= count <= MAX_HEADERS:
                    raise DecodeError("Record", "headersCount", position, "no record")
                left, counted = 2 * count, True
        if position != stop:
            raise DecodeError("Record", "length", position, "no record")

    def _crc_matches(self, end: int) -> bool:
        start = self.boundary + CRC_START
        stored = self._bytes(start - 4, 4)
        return (
            self.window.reaches(end)
            and end - start <= LOOK_AROUND
            and (zlib.crc32(self._bytes(start, end - start)) == int.from_bytes(stored, "big"))
        )

    def _goes_on(self, position: int, is_valid_batch: Callable[[int], bool]) -> bool:
        """Return True if a record or a batch begins at `position`."""
        return bool(NEXT_RECORD.match(self._bytes(position, 6))) or is_valid_batch(position)

    def _claimed_end(self) -> int:
        """Return the end of the batch or message that begins where the damage does, according to its stored length."""
        return self.boundary + LOG_OVERHEAD + self._size(self.boundary + 8)

    def _size(self, position: int) -> int:
        data = self._bytes(position, VALUE_SIZE.size)
        return int.from_bytes(data, "big", signed=True) if len(data) == VALUE_SIZE.size else -1

    def _varint(
        self, position: int, read: Callable[[Bytes, int, int, str, str], tuple[int, int]] = read_varint
    ) -> tuple[int, int]:
        data = self._bytes(position, 10)
        value, size = read(data, 0, len(data), "Record", "length")
        return value, position + size

    def _bytes(self, position: int, count: int) -> bytes:
        return bytes(self.window.peek(position, count))
