"""Input of a task: slices of segments, files or units, each with its owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kdump.tables.disk_identity import DiskIdentity

OPENING = 256 * 1024
"""Minimum size in bytes that a file counts as, because opening it costs as much as reading that many."""


@dataclass
class TaskItem:
    """One thing to read. `input` depends on the table; `size` in bytes; `state` of its partition directory."""

    input: Any
    identity: DiskIdentity
    size: int
    state: str | None = None


def packed(pieces: Iterable[TaskItem], max_bytes: int, parallelism: int) -> Iterator[list[TaskItem]]:
    """Group the pieces, in order, into parts of at most `max_bytes` bytes, or at most an equal share for each of
    `parallelism` tasks, whichever is less. A larger piece is a part of its own."""
    every = list(pieces)
    share = sum(max(piece.size, OPENING) for piece in every) // max(1, parallelism) + 1
    limit = max(1, min(max_bytes, share))
    held: list[TaskItem] = []
    size = 0
    for piece in every:
        counts = max(piece.size, min(OPENING, limit))
        if held and size + counts > limit:
            yield held
            held, size = [], 0
        held.append(piece)
        size += counts
    if held:
        yield held


def largest_first(pieces: Iterable[TaskItem], max_bytes: int, parallelism: int) -> Iterator[list[TaskItem]]:
    """Like `packed`, largest piece first: for pieces that cannot be divided and whose order does not matter."""
    return packed(sorted(pieces, key=lambda piece: -piece.size), max_bytes, parallelism)
