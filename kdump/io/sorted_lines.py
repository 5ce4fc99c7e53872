"""Rows with keys, in lines of a part of a bundle: the row of a key is found without reading all, however many there are
(docs/bundle.md). Checked when they are read: they come from another host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.io.frames import FramesReader
from kdump.io.untrusted_json import natural

STRUCT = "BundleLines"
CHUNK = 32 << 10
MAX_LINE = 1 << 20
"""Maximum bytes of a line."""


class Extent(NamedTuple):
    """Where bytes are among the expanded ones of a part."""

    start: int
    size: int


def extent_of(row: Any) -> Extent:
    """Raises TypeError or ValueError."""
    start, size = map(natural, row)
    return Extent(start, size)


def line_of(key: int | str, row: Any) -> bytes:
    """Return the line of a row, an object of JSON's types."""
    return json.dumps([key, row], separators=(",", ":")).encode() + b"\n"


class SortedLines:
    """Reads the rows, whose keys rise: all numbers or all texts. Raises DecodeError for anything else."""

    def __init__(self, frames: FramesReader, extent: Extent) -> None:
        if extent.start + extent.size > frames.size:
            raise DecodeError(STRUCT, "extent", extent.start, f"{extent.size} bytes are not in this part")
        self._frames, self._start, self._size = frames, extent.start, extent.size
        self._few: list[tuple[Any, Any]] | None = None
        """All rows, if they are few and have been read."""

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Yield keys and rows."""
        return self._from(0)

    def find(self, key: int | str) -> Any:
        """Return the row of a key; None if there is none."""
        first, row = next(self.from_key(key), (None, None))
        return row if first == key else None

    def from_key(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """Yield keys and rows from the last one on whose key is not above this one, or else all."""
        low, high = 0, self._size
        while high - low > CHUNK:
            middle = (low + high) // 2
            line = self._line_after(middle)
            if line is None or line >= high or self._key_at(line, type(key)) > key:
                high = middle
            else:
                low = line
        last: tuple[Any, Any] | None = None
        rows = self._from(low)
        for row in rows:
            if type(row[0]) is not type(key):
                raise DecodeError(STRUCT, "key", low, f"{str(row[0])[:40]!r} is a key of another kind")
            if row[0] > key:
                yield from (row,) if last is None else (last, row)
                yield from rows
                return
            last = row
        if last is not None:
            yield last

    def _read(self, position: int, count: int) -> bytes:
        return self._frames.read(self._start + position, min(count, self._size - position))

    def _line_after(self, position: int) -> int | None:
        """Return where the first line after a position begins."""
        found = max(0, self._read(position, CHUNK).find(b"\n")) or self._read(position, MAX_LINE).find(b"\n")
        return None if found < 0 or position + found + 1 >= self._size else position + found + 1

    def _key_at(self, position: int, kind: type) -> Any:
        line, newline, _ = self._read(position, CHUNK).partition(b"\n")
        key, _ = _row(line if newline else self._read(position, MAX_LINE).partition(b"\n")[0])
        if type(key) is not kind:
            raise DecodeError(STRUCT, "key", position, f"{str(key)[:40]!r} is a key of another kind")
        return key

    def _from(self, position: int) -> Iterator[tuple[Any, Any]]:
        if self._size > CHUNK:
            return self._parsed(position)
        if self._few is None:
            self._few = list(self._parsed(0))
        return iter(self._few)

    def _parsed(self, position: int) -> Iterator[tuple[Any, Any]]:
        before, rest = None, b""
        while position < self._size:
            data = self._read(position, CHUNK)
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if max(map(len, (rest, *lines[:1]))) > MAX_LINE:
                raise DecodeError(STRUCT, "line", position, f"it has more than {MAX_LINE} bytes")
            for line in lines:
                key, row = _row(line)
                if before is not None and (type(key) is not type(before) or key <= before):
                    raise DecodeError(STRUCT, "key", position, f"{str(key)[:40]!r} follows {str(before)[:40]!r}")
                before = key
                yield key, row
        if rest:
            raise DecodeError(STRUCT, "line", position, "the last line has no end")


def _row(line: bytes) -> tuple[Any, Any]:
    try:
        key, row = json.loads(line)
        if type(key) not in (int, str):
            raise ValueError("a key is neither a number nor a text")
    except (ValueError, TypeError, RecursionError) as error:
        raise DecodeError(STRUCT, "line", 0, str(error)) from error
    return key, row
