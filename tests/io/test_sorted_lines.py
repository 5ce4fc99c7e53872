"""Sorted lines: each row is found by its key, and what is out of order is refused."""

from __future__ import annotations

import io
from typing import Any

import pytest

from kdump.format.errors import DecodeError
from kdump.io.frames import FramesReader, FramesWriter, part_before
from kdump.io.sorted_lines import CHUNK, MAX_LINE, Extent, SortedLines, extent_of, line_of
from tests.conftest import seeded
from tests.each_case import each_case


def stored(data: bytes) -> SortedLines:
    file = io.BytesIO()
    writer = FramesWriter(file)
    writer.write(b"before")
    writer.write(data)
    writer.write(b"[0,0]\nafter")
    writer.finish("a")
    part = file.getvalue()

    def read_at(position: int, count: int) -> bytes:
        return part[position : position + count]

    return SortedLines(FramesReader(read_at, part_before(read_at, len(part))), Extent(6, len(data)))


def rows(count: int, longest: int) -> list[tuple[int, Any]]:
    dice = seeded("lines")
    return [(number * 3, "x" * dice.randrange(longest)) for number in range(count)]


@each_case("count, longest", [(0, 1), (1, 1), (5, 10), (3000, 100), (50, 3 * CHUNK), (10, MAX_LINE - 100)])
def test_each_row_is_found(count: int, longest: int) -> None:
    expected = rows(count, longest)
    lines = stored(b"".join(line_of(*row) for row in expected))
    assert list(lines) == expected
    for key in (-1, 0, 1, 2, 3, *(3 * (count // 7) * number + 1 for number in range(8)), 3 * count - 3, 3 * count):
        from_key = list(lines.from_key(key))
        at = max((number for number, row in enumerate(expected) if row[0] <= key), default=0)
        assert from_key == expected[at:], key
        assert lines.find(key) == dict(expected).get(key)


def test_names_are_keys_too() -> None:
    names = sorted(("", "a", "a.b", "a-b", "\udcff", "é", "Z"))
    lines = stored(b"".join(line_of(name, number) for number, name in enumerate(names)))
    assert [lines.find(name) for name in names] == list(range(len(names)))
    assert lines.find("b") is None


@each_case(
    "data",
    [
        b"[1,0]\n[0,0]\n",
        b"[1,0]\n[1,0]\n",
        b'[1,0]\n["2",0]\n',
        b"[1,0]\n[2,0]",
        b"[1,0]\n\n",
        b"[1]\n",
        b"[1.5,0]\n",
        b"[null,0]\n",
        b"[" * 100_000 + b"\n",
        b"5\n",
        b"\xff\n",
        b"[0," + b" " * (MAX_LINE + 10) + b"0]\n",
    ],
)
def test_what_is_not_in_order_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        list(stored(data))
    with pytest.raises(DecodeError):
        list(stored(data).from_key(9))


def test_lines_that_are_not_there() -> None:
    with pytest.raises(DecodeError):
        SortedLines(stored(b"")._frames, Extent(1 << 40, 5))
    for row in ([0], [0, -1], [-1, 0], ["0", 1], None, {}, [0, 1, 2]):
        with pytest.raises((TypeError, ValueError)):
            extent_of(row)
