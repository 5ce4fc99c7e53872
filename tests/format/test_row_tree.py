"""The index of a container: what one name costs, and what no writer writes."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from kdump.format import row_tree
from kdump.format.container import ContainerReader, ContainerWriter, Frame
from kdump.format.errors import DecodeError
from kdump.format.row_tree import HELD, MAX_NODE, MAX_ROW, NODE, RowTreeReader, RowTreeWriter, Tree
from tests.each_case import each_case

ROWS = 100_000
MIB = 1 << 20


def built(write: Callable[[ContainerWriter], Tree]) -> tuple[bytes, Tree]:
    file = io.BytesIO()
    container = ContainerWriter(file)
    tree = write(container)
    container.finish(0)
    return file.getvalue(), tree


class Counted(ContainerReader):
    """Counts the frames that are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(lambda position, count: data[position : position + count], len(data))
        self.frames: list[int] = []

    def read(self, frame: Frame, limit: int = row_tree.MAX_NODE) -> bytes:
        self.frames = [*getattr(self, "frames", ()), frame.size]
        return super().read(frame, limit)


def rows(count: int) -> Iterator[tuple[str, Any]]:
    dice = random.Random(count)
    for number in range(count):
        yield f"{number:020}.log", {"status": [dice.getrandbits(40) for _ in range(8)]}


def with_rows(count: int) -> Callable[[ContainerWriter], Tree]:
    def write(container: ContainerWriter) -> Tree:
        tree = RowTreeWriter(container)
        for name, row in rows(count):
            tree.add(name, row)
        return tree.finish()

    return write


@pytest.fixture(scope="module")
def large() -> tuple[bytes, Tree]:
    return built(with_rows(ROWS))


@each_case("count", [0, 1, 2, 200, 3000])
def test_what_was_written_is_read(count: int) -> None:
    data, tree = built(with_rows(count))
    reader = RowTreeReader(Counted(data), tree)
    expected = list(rows(count))
    assert list(reader) == expected
    assert len(reader) == count
    for name, row in expected[:: max(1, count // 50)]:
        assert reader.find(name) == row
        assert reader.find(name + "x") is None
    assert reader.find("") is None
    assert reader.find("\U0010ffff") is None


def test_nodes_of_several_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_tree, "NODE", 300)
    data, tree = built(with_rows(600))
    assert tree.height > 3
    reader = RowTreeReader(Counted(data), tree)
    assert list(reader) == list(rows(600))
    assert all(reader.find(name) == row for name, row in rows(600))


def test_rows_of_the_largest_size() -> None:
    names = ["\U0001f600" * 60 + str(number) for number in range(4)]

    def write(container: ContainerWriter) -> Tree:
        tree = RowTreeWriter(container)
        for name in names:
            tree.add(name, "x" * (MAX_ROW - 2))
        return tree.finish()

    assert row_tree.fits("x" * (MAX_ROW - 2))
    assert not row_tree.fits("x" * (MAX_ROW - 1))
    data, tree = built(write)
    assert [name for name, _ in RowTreeReader(Counted(data), tree)] == names


def test_one_name_costs_a_path_from_the_root(large: tuple[bytes, Tree]) -> None:
    data, tree = large
    container = Counted(data)
    container.frames.clear()
    reader = RowTreeReader(container, tree)
    assert reader.find(f"{ROWS // 2:020}.log") is not None
    assert len(container.frames) == tree.height == 2
    assert sum(container.frames) < 3 * NODE
    for number in range(ROWS // 2, ROWS // 2 + 500):
        reader.find(f"{number:020}.log")
    assert len(container.frames) < 12, "names in order read each node once"


# --- What no writer writes --------------------------------------------------------------------------------------------


def leaf(container: ContainerWriter, *names: str) -> Frame:
    return container.add("\n".join(f"{json.dumps(name)}\t1" for name in names).encode())


def node(container: ContainerWriter, *below: tuple[str, Frame]) -> Frame:
    return container.add("\n".join(f"{json.dumps(name)}\t{json.dumps(frame)}" for name, frame in below).encode())


def twice(container: ContainerWriter) -> Tree:
    one = leaf(container, "a", "b")
    return Tree(2, 4, node(container, ("a", one), ("b", one)))


def repeated_for_ever(container: ContainerWriter) -> Tree:
    """8 levels of nodes with 500 times the same node: 500^8 rows."""
    root = leaf(container, "a")
    for _ in range(7):
        root = node(container, *((f"a{number:04}" if number else "a", root) for number in range(500)))
    return Tree(8, 1, root)


LIES: dict[str, Callable[[ContainerWriter], Tree]] = {
    "blocks out of order": lambda c: Tree(2, 4, node(c, ("c", leaf(c, "c", "d")), ("a", leaf(c, "a", "b")))),
    "the first names are exchanged": lambda c: Tree(2, 4, node(c, ("a", leaf(c, "c", "d")), ("c", leaf(c, "a", "b")))),
    "a name in two blocks": lambda c: Tree(2, 4, node(c, ("a", leaf(c, "a", "c")), ("c", leaf(c, "c", "d")))),
    "a name of the next block": lambda c: Tree(2, 4, node(c, ("a", leaf(c, "a", "d")), ("c", leaf(c, "c", "e")))),
    "a block before its name": lambda c: Tree(2, 2, node(c, ("b", leaf(c, "a", "b")))),
    "a block after its name": lambda c: Tree(2, 2, node(c, ("", leaf(c, "a", "b")))),
    "a name twice": lambda c: Tree(1, 2, leaf(c, "a", "a")),
    "names that fall": lambda c: Tree(1, 2, leaf(c, "b", "a")),
    "a block twice": twice,
    "500^8 rows": repeated_for_ever,
    "more rows than stated": lambda c: Tree(1, 1, leaf(c, "a", "b")),
    "fewer rows than stated": lambda c: Tree(1, 3, leaf(c, "a", "b")),
    "no levels": lambda c: Tree(0, 2, leaf(c, "a", "b")),
    "a negative height": lambda c: Tree(-1, 2, leaf(c, "a", "b")),
    "a million levels": lambda c: Tree(1 << 20, 2, leaf(c, "a", "b")),
    "more levels than there are": lambda c: Tree(2, 2, leaf(c, "a", "b")),
    "nothing in a block": lambda c: Tree(1, 0, c.add(b"")),
    "a number for a name": lambda c: Tree(1, 1, c.add(b"1\t1")),
    "no row": lambda c: Tree(1, 1, c.add(b'"a"')),
    "half a row": lambda c: Tree(1, 1, c.add(b'"a"\t[1,')),
    "a row nested too deeply": lambda c: Tree(1, 1, c.add(b'"a"\t' + b"[" * 100_000)),
    "a frame of floats": lambda c: Tree(2, 1, c.add(b'"a"\t[1.5,1,1,1]')),
    "a frame of nothing": lambda c: Tree(2, 1, c.add(b'"a"\tnull')),
    "a frame beyond the end": lambda c: Tree(2, 1, c.add(b'"a"\t[1000000000,10,10,1]')),
    "a block of 1 MiB": lambda c: Tree(1, 1, c.add(b'"a"\t' + b"1" * MIB)),
    "200,000 lines": lambda c: Tree(1, 1, c.add(b"\n" * (MAX_NODE - 1))),
    "a row of 140,000 bytes": lambda c: Tree(1, 1, c.add(b'"a"\t"' + b"x" * 140_000 + b'"')),
}


@each_case("lie", LIES)
def test_a_tree_that_no_writer_wrote(lie: str) -> None:
    data, tree = built(LIES[lie])
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            list(RowTreeReader(Counted(data), tree))
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


@each_case(
    "lie, found",
    [("the first names are exchanged", ""), ("a name of the next block", "ce"), ("a block before its name", "")],
)
def test_a_name_is_not_found_where_no_listing_has_it(lie: str, found: str) -> None:
    data, tree = built(LIES[lie])
    there = ""
    for name in "abcde":
        with suppress(DecodeError):
            there += name if RowTreeReader(Counted(data), tree).find(name) is not None else ""
    assert there == found


def test_what_is_held_of_the_worst_nodes() -> None:
    """Short names and short rows make the most of memory."""
    lines = b"\n".join(b'"%06x"\t1' % number for number in range(MAX_NODE // 11))

    def write(container: ContainerWriter) -> Tree:
        one = container.add(lines)
        return Tree(1, 1, one)

    data, tree = built(write)
    tracemalloc.start()
    try:
        assert RowTreeReader(Counted(data), tree).find("000000") == 1
        assert tracemalloc.get_traced_memory()[1] * HELD * 8 < 80 * MIB
    finally:
        tracemalloc.stop()
