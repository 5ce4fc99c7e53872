"""What a task gets: some slices, files or units, and whose each is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.sql.datasource import InputPartition

from kdump.spark.fleet import Identity

OPENING = 256 * 1024
"""Bytes that a file counts for at least: opening it costs as much as reading them."""


@dataclass
class Piece:
    """One thing to be read: `what` depends on the table; `size` in bytes; `state` of its directory."""

    what: Any
    identity: Identity
    size: int
    state: str | None = None


class Part(InputPartition):
    """The pieces that one task reads, in order."""

    def __init__(self, pieces: list[Piece]) -> None:
        super().__init__(len(pieces))
        self.pieces = pieces


T = TypeVar("T")


def packed(pieces: Iterable[Piece], most: int, parallelism: int) -> Iterator[Part]:
    """The pieces in order, together as long as they are no more than `most` bytes, or their share of all of them."""
    every = list(pieces)
    share = sum(max(piece.size, OPENING) for piece in every) // max(1, parallelism) + 1
    limit = max(1, min(most, share))
    held: list[Piece] = []
    size = 0
    for piece in every:
        counts = max(piece.size, min(OPENING, limit))
        if held and size + counts > limit:
            yield Part(held)
            held, size = [], 0
        held.append(piece)
        size += counts
    if held:
        yield Part(held)


def largest_first(pieces: Iterable[Piece], most: int, parallelism: int) -> Iterator[Part]:
    """The same for pieces that cannot be divided and whose order does not matter."""
    return packed(sorted(pieces, key=lambda piece: -piece.size), most, parallelism)


Refused = Callable[[str, str], None]
