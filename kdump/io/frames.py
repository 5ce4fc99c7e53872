"""Bytes as frames of zstd's, in its seekable format (contrib/seekable_format), so that a piece of them can be read
without the rest, and `zstd -d` reads them all. What has been written so is a part: a file, or a piece of one, that
begins anywhere and is found by its end (docs/bundle.md).

It comes from another host, so nothing in it is believed: no frame expands to more than FRAME bytes, and each has a
checksum."""

from __future__ import annotations

import json
import sys
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from itertools import accumulate
from struct import Struct
from typing import Any, NamedTuple, Protocol

from kdump.format.checksum import castagnoli
from kdump.format.codec.source import library
from kdump.format.errors import DecodeError
from kdump.io.untrusted_json import text

STRUCT = "Frames"
FRAME = 1 << 20
"""Maximum bytes of a frame, expanded."""
HELD = 3
"""Number of expanded frames that a reader keeps."""
LEVEL = 3
"""zstd's default level: higher ones take several times as long for a few percent."""
SKIPPABLE = Struct("<II")
"""Head of a frame that zstd skips: its magic, and the size of the rest."""
ABOUT_MAGIC, TABLE_MAGIC = 0x184D2A5D, 0x184D2A5E
ROW = Struct("<II")
"""Of the seek table: stored and expanded size of a frame."""
FOOTER = Struct("<IBI")
"""At the end of the seek table: number of frames, a descriptor that is 0 (no checksums), and SEEKABLE."""
SEEKABLE = 0x8F92EAB1
END = Struct("<II")
"""At the end of what precedes the table: the size of its JSON, and the CRC-32C of that and of the table's rows."""
MAX_ABOUT = 64 << 10

ReadAt = Callable[[int, int], bytes]
"""Returns bytes: position, count. Raises any error of its own."""


class Writable(Protocol):
    """What a part is written to, from its beginning to its end."""

    def write(self, data: bytes, /) -> int: ...


class FramesWriter:
    """Writes a part."""

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._compressor = library("zstandard", "zstandard", STRUCT).ZstdCompressor(level=LEVEL, write_checksum=True)
        self._held, self._blank, self._size = bytearray(FRAME), bytes(FRAME), 0
        self._rows = bytearray()
        self._zeros = b""
        self.position = 0
        """Number of bytes so far, expanded."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.position += len(data)
        view = memoryview(data)
        while view:
            count = min(len(view), FRAME - self._size)
            self._held[self._size : self._size + count] = view[:count]
            self._fill(count)
            view = view[count:]

    def zeros(self, count: int) -> None:
        """Write zeros, of which whole frames are compressed once."""
        self.position += count
        while count:
            step = min(count, FRAME - self._size)
            if step == FRAME:
                self._zeros = self._zeros or self._compressor.compress(bytes(FRAME))
                self._add(self._zeros, FRAME)
            else:
                self._fill(step)
            count -= step

    def _fill(self, count: int) -> None:
        self._size += count
        if self._size == FRAME:
            self.cut()

    def cut(self) -> None:
        """End the frame, if there is one: what follows can be read without it."""
        if self._size:
            held = memoryview(self._held)[: self._size]
            self._add(self._compressor.compress(held), self._size)
            held[:] = memoryview(self._blank)[: self._size]
            self._size = 0

    def _add(self, stored: bytes, size: int) -> None:
        self._file.write(stored)
        self._rows += ROW.pack(len(stored), size)

    def finish(self, name: str, **about: Any) -> None:
        """Write what is left, and the end. `name`: that of the part; `about`: objects of JSON's types that a reader
        needs first."""
        self.cut()
        data = json.dumps({"part": name, **about}, separators=(",", ":")).encode()
        assert len(data) <= MAX_ABOUT
        end = END.pack(len(data), castagnoli(data + self._rows))
        self._file.write(SKIPPABLE.pack(ABOUT_MAGIC, len(data) + END.size) + data + end)
        rows = bytes(self._rows)
        self._file.write(SKIPPABLE.pack(TABLE_MAGIC, len(rows) + FOOTER.size) + rows)
        self._file.write(FOOTER.pack(len(rows) // ROW.size, 0, SEEKABLE))


class Part(NamedTuple):
    """Where a part is in a file: its first byte, and its end. `about`: what its writer says about it; `rows`: its seek
    table."""

    name: str
    start: int
    end: int
    about: dict[str, Any]
    rows: bytes


def part_before(read_at: ReadAt, end: int) -> Part:
    """Return the part that ends at a position of a file. Raises DecodeError if none does."""
    least = SKIPPABLE.size + FOOTER.size
    if end < least:
        raise DecodeError(STRUCT, "footer", 0, f"{end} bytes are not part of a bundle")
    count, descriptor, magic = FOOTER.unpack(read_at(end - FOOTER.size, FOOTER.size))
    table = end - FOOTER.size - count * ROW.size - SKIPPABLE.size
    if magic != SEEKABLE or descriptor or table < SKIPPABLE.size + END.size:
        raise DecodeError(STRUCT, "footer", end - FOOTER.size, "no part of a bundle ends here")
    data = read_at(table - END.size, END.size + SKIPPABLE.size + count * ROW.size)
    size, crc = END.unpack_from(data)
    rows = data[END.size + SKIPPABLE.size :]
    about_at = table - END.size - size
    heads = SKIPPABLE.pack(TABLE_MAGIC, len(rows) + FOOTER.size), SKIPPABLE.pack(ABOUT_MAGIC, size + END.size)
    if size > MAX_ABOUT or about_at < SKIPPABLE.size or data[END.size : END.size + SKIPPABLE.size] != heads[0]:
        raise DecodeError(STRUCT, "about", table, "no part of a bundle ends here")
    about = read_at(about_at - SKIPPABLE.size, SKIPPABLE.size + size)
    if about[: SKIPPABLE.size] != heads[1] or castagnoli(about[SKIPPABLE.size :] + rows) != crc:
        raise DecodeError(STRUCT, "crc", about_at, "the checksum of the end of a part does not match")
    start = about_at - SKIPPABLE.size - sum(array_of(rows)[::2])
    if start < 0:
        raise DecodeError(STRUCT, "rows", table, "frames of more bytes than there are")
    try:
        values = json.loads(about[SKIPPABLE.size :])
        return Part(text(values["part"]), start, end, values, rows)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DecodeError(STRUCT, "about", about_at, str(error)) from error


def array_of(rows: bytes) -> array[int]:
    """Return the numbers of a seek table."""
    numbers = array("I", rows)
    if numbers.itemsize != 4:
        raise AssertionError("the platform has no 32-bit array type")
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def last_end(read_at: ReadAt, size: int) -> int:
    """Return where the last part of a file ends that was cut off; 0 if there is none."""
    wanted = SEEKABLE.to_bytes(4, "little")
    stop = size
    while stop:
        start = max(0, stop - FRAME)
        data = read_at(start, min(stop + len(wanted) - 1, size) - start)
        found = data.rfind(wanted)
        while found >= 0:
            try:
                return part_before(read_at, start + found + len(wanted)).end
            except DecodeError:
                found = data.rfind(wanted, 0, found + len(wanted) - 1)
        stop = start
    return 0


class FramesReader:
    """Reads the expanded bytes of a part. Raises DecodeError for everything that no FramesWriter writes."""

    def __init__(self, read_at: ReadAt, part: Part) -> None:
        self._read_at = read_at
        numbers = array_of(part.rows)
        if any(size > FRAME or not size for size in numbers[1::2]):
            raise DecodeError(STRUCT, "rows", part.end, f"an empty frame, or one of more than {FRAME}")
        self.part = part
        self._starts = array("q", accumulate(numbers[1::2], initial=0))
        self._places = array("q", accumulate(numbers[::2], initial=part.start))
        self._held: OrderedDict[int, bytes] = OrderedDict()
        self.size = self._starts[-1]
        """Number of bytes, expanded."""

    def read(self, position: int, count: int) -> bytes:
        """Return bytes, fewer at the end."""
        count = max(0, min(count, self.size - position))
        parts = []
        number = bisect_right(self._starts, position) - 1
        while count:
            inside = position - self._starts[number]
            piece = self._frame(number)[inside : inside + count]
            parts.append(piece)
            position, count, number = position + len(piece), count - len(piece), number + 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _frame(self, number: int) -> bytes:
        data = self._held.pop(number, None)
        if data is None:
            data = self._expanded(number)
            if len(self._held) >= HELD:
                self._held.popitem(last=False)
        self._held[number] = data
        return data

    def _expanded(self, number: int) -> bytes:
        place, size = self._places[number], self._starts[number + 1] - self._starts[number]
        stored = self._read_at(place, self._places[number + 1] - place)
        zstd = library("zstandard", "zstandard", STRUCT)
        try:
            # The library allocates what the frame's own header states.
            if zstd.frame_content_size(stored) != size:
                raise DecodeError(STRUCT, "frame", place, "its size differs from that in the table")
            if not zstd.get_frame_parameters(stored).has_checksum:
                raise DecodeError(STRUCT, "frame", place, "it has no checksum")
            return bytes(zstd.ZstdDecompressor().decompress(stored, max_output_size=size))
        except zstd.ZstdError as error:
            raise DecodeError(STRUCT, "frame", place, str(error)) from error
