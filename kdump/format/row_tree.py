"""Rows with names, in the order of the names, as a tree of a container's frames: the row of one name costs a frame or
two, however many there are (docs/bundle.md).

A leaf has rows; any other node has, for each node below it, the first name there and its frame. In a node, each line is
a name as a JSON string, a tab, and JSON.

It comes from another host, so no node is believed: its names rise, the first is the one by which it was found, and all
are before the name that follows that one. So none is twice in a tree, and a listing and a lookup see the same.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.format.container import ContainerReader, ContainerWriter, Frame
from kdump.format.errors import DecodeError

STRUCT = "RowTree"
NODE = 32 << 10
"""Bytes after which a node ends."""
MAX_ROW = 128 << 10
"""Maximum bytes of a row."""
MAX_NODE = NODE + MAX_ROW + 4096
MAX_HEIGHT = 8
"""Maximum number of levels; with 5 there is room for a million million rows."""
HELD = 4
"""Number of nodes that a reader keeps: a path from the root, and what is looked up next to it."""


class Tree(NamedTuple):
    """Where a tree is: the number of its levels and rows, and its root, which is None if there are no rows."""

    height: int
    rows: int
    root: Frame | None


def fits(row: Any) -> bool:
    """Return True if a row, an object of JSON's types, is not larger than MAX_ROW."""
    return len(_text(row)) <= MAX_ROW


def _text(row: Any) -> str:
    return json.dumps(row, separators=(",", ":"))


class RowTreeWriter:
    """Writes a tree."""

    def __init__(self, container: ContainerWriter) -> None:
        self._container = container
        self._levels: list[_Level] = [_Level()]
        self._rows = 0

    def add(self, name: str, row: Any) -> None:
        """Add a row that fits. Names must rise."""
        self._rows += 1
        self._add(0, name, _text(row))

    def _add(self, number: int, name: str, line: str) -> None:
        if number == len(self._levels):
            self._levels.append(_Level())
        level = self._levels[number]
        if level.size >= NODE:
            self._end(number)
        level.first = level.first if level.lines else name
        level.lines.append(f"{json.dumps(name)}\t{line}")
        level.size += len(level.lines[-1]) + 1

    def _end(self, number: int) -> None:
        level = self._levels[number]
        frame = self._container.add("\n".join(level.lines).encode())
        level.lines, level.size = [], 0
        self._add(number + 1, level.first, _text(frame))

    def finish(self) -> Tree:
        """Write what is left."""
        number = 0
        while number < len(self._levels) - 1 or len(self._levels[number].lines) > 1 or number == 0:
            if not self._levels[number].lines:
                return Tree(0, 0, None)
            self._end(number)
            number += 1
        [root] = self._levels[number].lines
        return Tree(number, self._rows, Frame(*json.loads(root.partition("\t")[2])))


class _Level:
    """A node that is being collected."""

    def __init__(self) -> None:
        self.first = ""
        self.lines: list[str] = []
        self.size = 0


class _Node(NamedTuple):
    names: list[str]
    rows: list[bytes]
    stop: str | None
    """The first name after it; None if none follows."""


class RowTreeReader:
    """Reads a tree. Raises DecodeError for everything that no RowTreeWriter writes."""

    def __init__(self, container: ContainerReader, tree: Tree) -> None:
        if not 0 <= tree.height <= MAX_HEIGHT or (tree.root is None) != (not tree.height):
            raise DecodeError(STRUCT, "height", 0, f"a tree of {tree.height} levels is impossible")
        self._container = container
        self._tree = tree
        self._held: OrderedDict[Frame, _Node] = OrderedDict()

    def __len__(self) -> int:
        return self._tree.rows

    def find(self, name: str) -> Any:
        """Return the row of a name; None if there is none."""
        root = self._tree.root
        if root is None:
            return None
        node = self._node(root, None, None)
        for _ in range(self._tree.height - 1):
            number = bisect_right(node.names, name) - 1
            if number < 0:
                return None
            node = self._below(node, number)
        number = bisect_right(node.names, name) - 1
        return _parsed(node.rows[number]) if number >= 0 and node.names[number] == name else None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield names and rows."""
        root = self._tree.root
        count = 0
        if root is not None:
            for found in self._rows_below(self._node(root, None, None), self._tree.height - 1):
                count += 1
                if count > self._tree.rows:
                    break
                yield found
        if count != self._tree.rows:
            raise DecodeError(STRUCT, "rows", 0, f"{self._tree.rows} rows expected, but not found")

    def _rows_below(self, node: _Node, levels: int) -> Iterator[tuple[str, Any]]:
        for number, name in enumerate(node.names):
            if levels:
                yield from self._rows_below(self._below(node, number), levels - 1)
            else:
                yield name, _parsed(node.rows[number])

    def _below(self, node: _Node, number: int) -> _Node:
        """Return the node below one that is found by its name with the number `at`."""
        stop = node.names[number + 1] if number + 1 < len(node.names) else node.stop
        return self._node(_frame(_parsed(node.rows[number])), node.names[number], stop)

    def _node(self, frame: Frame, first: str | None, stop: str | None) -> _Node:
        node = self._held.pop(frame, None) or _read(self._container.read(frame, MAX_NODE))
        if (first is not None and node.names[0] != first) or (stop is not None and node.names[-1] >= stop):
            reason = f"names from {node.names[0][:40]!r} to {node.names[-1][:40]!r}, not where they belong"
            raise DecodeError(STRUCT, "name", frame.position, reason)
        self._held[frame] = node
        if len(self._held) > HELD:
            self._held.popitem(last=False)
        return node._replace(stop=stop)


def _read(data: bytes) -> _Node:
    names: list[str] = []
    rows = []
    for line in data.split(b"\n"):
        row_name, _, row = line.partition(b"\t")
        name = _parsed(row_name)
        if not isinstance(name, str) or (names and name <= names[-1]):
            raise DecodeError(STRUCT, "name", 0, f"{str(name)[:40]!r} is not a name that follows those before")
        names.append(name)
        rows.append(row)
    return _Node(names, rows, None)


def _parsed(line: bytes) -> Any:
    if len(line) > MAX_ROW:
        raise DecodeError(STRUCT, "row", 0, f"a row of {len(line)} bytes")
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DecodeError(STRUCT, "row", 0, str(error)) from error


def _frame(row: Any) -> Frame:
    if not isinstance(row, list) or [type(value) for value in row] != [int] * len(Frame._fields):
        raise DecodeError(STRUCT, "frame", 0, f"{str(row)[:40]!r} is not a frame")
    return Frame(*row)
