"""Reads a large record without its value: its fields are decoded, and its bytes are discarded as they come.

For callers that need sizes and not the values themselves: memory must not grow with one record, nor with a million
headers. Errors are those that core.record_columns.decode would report for the whole record."""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kdump.core.record_checks import walk_headers
from kdump.core.record_columns import RecordColumns, past_end
from kdump.format.count_text import plain_count
from kdump.format.errors import HEADER_KEY_INVALID, RECORD_MALFORMED, DecodeError
from kdump.format.varint import Bytes, read_varint, read_varlong

if TYPE_CHECKING:  # most runs have no long keys
    from hashlib import blake2b

HEAD = 64 * 1024
"""Maximum number of bytes that are kept of the value, and of the key."""
LARGE = 2 * 1024 * 1024
"""Size in bytes of a record above which it is read this way."""
NULL = b"\1"
"""The size of a header value that is null."""
VARINT = 10
"""Maximum number of bytes of a variable-length integer."""


def key_digest(key: Bytes) -> bytes:
    """Return a 16-byte digest that identifies a long key."""
    return hasher(key).digest()


def hasher(data: Bytes) -> blake2b:
    """Return a hasher for the key_digest of a key that comes in pieces, of which `data` is the first."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16)


def _never(key: bytes) -> bool:
    return False


class Keep(NamedTuple):
    """What is kept of a large record: `key`; `header_keys`; the whole value, if `value` returns True for the key."""

    key: bool = True
    header_keys: bool = False
    value: Callable[[bytes], bool] = _never


KEYS, SIZES = Keep(), Keep(key=False)


class Skim:
    """One record: `head` has its first bytes, at `position` of the payload, and `pieces` the following ones. `keep`:
    what is kept of it."""

    def __init__(self, head: bytes, pieces: Iterator[bytes | memoryview], position: int, keep: Keep) -> None:
        self.pieces, self.keep = pieces, keep
        self.kept = bytearray()
        """Key, value and headers with null instead of their values, if header keys are kept."""
        self.start = position
        self.header_problem = ""
        self._piece = head
        self._at = 0
        self._base = position
        """Position of the piece's first byte in the payload."""

    @property
    def position(self) -> int:
        return self._base + self._at

    @property
    def rest(self) -> bytes:
        """Bytes taken from `pieces` that follow the record."""
        return self._piece[self._at :]

    def record(self) -> RecordColumns:
        """Return the record as columns of one row, whose positions are relative to its first byte. Raises DecodeError
        with the position in the payload."""
        length = self._varint("length", 5)
        begun = self.position
        self.stop = begun + length
        try:
            return self._record(length)
        except DecodeError as error:
            if error.struct not in ("Record", "RecordHeader"):  # from the codec
                raise
            # For a record that the payload truncates, this is the error, whatever its contents.
            while self.position < self.stop:
                self._at = min(len(self._piece), self.stop - self._base)
                if self.position < self.stop and not self._need(1):
                    raise past_end(self.start, length, self.position - begun) from None
            raise

    def _record(self, length: int) -> RecordColumns:
        stop = self.stop
        if not self._need(1):
            raise past_end(self.start, length, 0)
        attributes = self._piece[self._at]
        self._at += 1
        timestamp_delta = self._varint("timestampDelta", VARINT, stop)
        offset_delta = self._varint("offsetDelta", 5, stop)
        key_size = self._size("keySize")
        key, digest = self._key(key_size) if self.keep.key else (self._skip(key_size), b"")
        value_size = self._size("valueSize")
        value_start = self.position - self.start
        value = self._take(value_size if self.keep.value(key) else min(value_size, HEAD))
        self._skip(value_size - len(value))
        position = self.position
        count = self._varint("headersCount", 5, stop)
        headers_start = self.position - self.start
        if count < 0 or count * 2 > stop - self.position:
            reason = f"headersCount {count}, {plain_count(stop - self.position, 'byte')} left"
            raise DecodeError("Record", "headersCount", position, reason)
        if self.keep.header_keys:
            self.kept += key + value
            headers_start = len(self.kept)
        self._headers(count)
        if self.position != stop:
            reason = f"{plain_count(stop - self.position, 'byte')} are left over in the record"
            raise DecodeError("Record", "length", self.start, f"length {length}: {reason}")
        columns = RecordColumns(self.kept if self.keep.header_keys else key + value)
        columns.skimmed, columns.digest, columns.header_problem, columns.count = True, digest, self.header_problem, 1
        signed = attributes - 256 if attributes > 127 else attributes
        row = (0, stop - self.start, signed, timestamp_delta, offset_delta, 0, key_size, value_start, value_size)
        columns.block = array("q", (*row, headers_start, count))
        return columns

    def _need(self, count: int) -> bool:
        """Make this many bytes available; return False if there are not as many."""
        while len(self._piece) - self._at < count:
            more = next(self.pieces, b"")
            if not more:
                return False
            self._base += self._at
            self._piece = self._piece[self._at :] + bytes(more)
            self._at = 0
        return True

    def _varint(self, field: str, max_size: int, stop: int | None = None, struct: str = "Record") -> int:
        self._need(max_size)
        end = len(self._piece) if stop is None else min(len(self._piece), stop - self._base)
        read = read_varlong if max_size == VARINT else read_varint
        try:
            value, self._at = read(self._piece, self._at, end, struct, field)
        except DecodeError as error:
            raise error.moved(self._base) from None
        return value

    def _size(self, field: str) -> int:
        position = self.position
        size = self._varint(field, 5, self.stop)
        if size < -1 or max(0, size) > self.stop - self.position:
            raise DecodeError(
                "Record", field, position, f"{field} {size}, {plain_count(self.stop - self.position, 'byte')} left"
            )
        return size

    def _skip(self, count: int) -> bytes:
        for _ in self._parts(count):
            pass
        return b""

    def _key(self, size: int) -> tuple[bytes, bytes]:
        """Return the key; for a long one, its first HEAD bytes and a digest of all of it."""
        key = self._take(min(size, HEAD))
        if size <= HEAD:
            return key, b""
        digest = hasher(key)
        for part in self._parts(size - len(key)):
            digest.update(part)
        return key, digest.digest()

    def _take(self, count: int) -> bytes:
        return b"".join(self._parts(count))

    def _parts(self, count: int) -> Iterator[bytes]:
        """Yield the next `count` bytes, one piece at a time."""
        while count > 0:
            self._need(1)
            part = self._piece[self._at : self._at + count]
            if not part:
                raise DecodeError("Record", "length", self.start, "the payload ends inside the record")
            self._at += len(part)
            count -= len(part)
            yield part

    def _headers(self, left: int) -> None:
        while left > 0:
            self._need(VARINT)
            begun, total = self._at, left
            end = min(len(self._piece), self.stop - self._base)
            self._at, left, invalid = walk_headers(RecordColumns(self._piece), begun, end, left)
            if self.keep.header_keys:
                self._keep_keys(begun, total - left)
            if invalid >= 0 and not self.header_problem:
                size, key = read_varint(self._piece, invalid, end, "RecordHeader", "headerKeySize")
                self._look([self._piece[key : key + size]])
            if left == total:  # a header that is larger than the piece, or invalid
                self._header()
                left -= 1

    def _keep_keys(self, position: int, count: int) -> None:
        """Keep the keys of the first headers of the piece, which are valid."""
        piece, kept = self._piece, self.kept
        for _ in range(count):
            size, key = read_varint(piece, position, len(piece), "RecordHeader", "headerKeySize")
            kept += piece[position : key + size] + NULL
            size, position = read_varint(piece, key + size, len(piece), "RecordHeader", "headerValueSize")
            position += max(0, size)

    def _header(self) -> None:
        at, begun = self.position, self._at
        size = self._varint("headerKeySize", 5, self.stop, "RecordHeader")
        if size < 0 or size > self.stop - self.position:
            # As in columns.decode.
            code = HEADER_KEY_INVALID if size == -1 else RECORD_MALFORMED
            reason = f"headerKeySize {size}, {plain_count(self.stop - self.position, 'byte')} left"
            raise DecodeError("RecordHeader", "headerKeySize", at, reason, code)
        if self.keep.header_keys:
            self.kept += self._piece[begun : self._at]
            self._look(self._kept(size))
            self.kept += NULL
        else:
            self._look(self._parts(size))
        at = self.position
        size = self._varint("headerValueSize", 5, self.stop, "RecordHeader")
        if size < -1 or max(0, size) > self.stop - self.position:
            reason = f"headerValueSize {size}, {plain_count(self.stop - self.position, 'byte')} left"
            raise DecodeError("RecordHeader", "headerValueSize", at, reason)
        self._skip(size)

    def _kept(self, size: int) -> Iterator[bytes]:
        for part in self._parts(size):
            self.kept += part
            yield part

    def _look(self, key: Iterator[bytes] | list[bytes]) -> None:
        """Record why a header key is not valid text, if it is not."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        size, has_null, is_text = 0, False, True
        for part in key:
            size += len(part)
            has_null = has_null or b"\0" in part
            is_text = is_text and _decodes(decoder, part)
        if self.header_problem:
            return
        if has_null:
            self.header_problem = "a header key with a null character"
        elif not (is_text and _decodes(decoder, b"", True)):
            self.header_problem = f"a header key of {plain_count(size, 'byte')} that is not UTF-8"


def _decodes(decoder: codecs.IncrementalDecoder, part: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(part, final)
    except UnicodeDecodeError:
        return False
    return True
