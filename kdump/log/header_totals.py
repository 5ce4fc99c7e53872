"""Totals over the headers of a segment, or of several."""

from __future__ import annotations

__lazy_modules__ = {"kdump.io.untrusted_json"}

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeVar

from kdump.format.batch_formats import NEWEST
from kdump.format.errors import DecodeError
from kdump.io.untrusted_json import integer, natural, optional_long, text

ValueT = TypeVar("ValueT")


@dataclass(slots=True)
class HeaderTotals:
    """Totals over the headers of a segment, or of several. Offsets are inclusive, times in epoch ms; None if unknown.
    `records` is None if the count is only inside compressed messages of magic 0 or 1; `uncounted` is the number of
    batches whose record count cannot be true.

    `oldest` is the smallest first timestamp of a batch and `newest` the largest maxTimestamp: a record inside a batch
    may be older, but none is newer. `partial`: not all headers were read, so that there may be more formats and codecs.
    `damage` describes the first damage and its position, empty if there is none. `end`: the offset after the last batch
    by its header, whether or not its checksum matches; None if it is that after `last`."""

    batches: int = 0
    records: int | None = 0
    uncounted: int = 0
    first: int | None = None
    last: int | None = None
    oldest: int | None = None
    newest: int | None = None
    formats: frozenset[int] = frozenset()
    codecs: frozenset[str] = frozenset()
    partial: bool = False
    torn: int = 0
    junk: int = 0
    padding: int = 0
    damage: str = ""
    tail: str = ""
    """torn or padding, if the last segment ends with that, as after a crash, a copy or preallocation."""
    end: int | None = None

    def row(self) -> list[Any]:
        """Return the totals as an object of JSON's types."""
        values = [getattr(self, field.name) for field in fields(self)]
        return [sorted(value) if isinstance(value, frozenset) else value for value in values]

    def used(self, magic: int, codec: str) -> None:
        """Include a format and a codec."""
        if magic not in self.formats:
            self.formats = _shared(self.formats | {magic})
        if codec not in self.codecs:
            self.codecs = _shared(self.codecs | {codec})

    @classmethod
    def of(cls, row: Any) -> HeaderTotals:
        """Return the totals of a row from another host. Raises DecodeError."""
        try:
            names = [field.name for field in fields(cls)]
            values = dict(zip(names, [*row, None] if len(row) == len(names) - 1 else row, strict=True))
            for name in ("batches", "uncounted", "torn", "junk", "padding"):
                natural(values[name])
            for name in ("records", "first", "last", "oldest", "newest", "end"):
                optional_long(values[name])
            values["formats"] = _shared(frozenset(integer(magic, 0, NEWEST) for magic in values["formats"]))
            values["codecs"] = _shared(frozenset(text(codec) for codec in values["codecs"]))
            values["damage"], values["tail"] = text(values["damage"]), text(values["tail"])
            values["partial"] = values["partial"] is True
        except (KeyError, TypeError, ValueError) as error:
            raise DecodeError("HeaderTotals", "", 0, f"{type(error).__name__}: {error}") from error
        return cls(**values)

    def merge(self, other: HeaderTotals) -> None:
        """Add the totals of another segment, which follows this one."""
        self.batches += other.batches
        self.records = None if self.records is None or other.records is None else self.records + other.records
        self.uncounted += other.uncounted
        self.first = _least(self.first, other.first)
        self.last = _most(self.last, other.last)
        self.oldest = _least(self.oldest, other.oldest)
        self.newest = _most(self.newest, other.newest)
        self.formats = _shared(self.formats | other.formats)
        self.codecs = _shared(self.codecs | other.codecs)
        self.partial = self.partial or other.partial
        self.torn += other.torn
        self.junk += other.junk
        self.padding += other.padding
        self.damage = self.damage or other.damage
        self.tail = other.tail
        self.end = other.end

    def times(self, oldest: int, newest: int) -> None:
        """Include two more timestamps (epoch ms); negative ones are ignored."""
        if oldest >= 0 and (self.oldest is None or oldest < self.oldest):
            self.oldest = oldest
        if newest >= 0 and (self.newest is None or newest > self.newest):
            self.newest = newest


@lru_cache(64)
def _shared(values: frozenset[ValueT]) -> frozenset[ValueT]:
    """Return an equal set: the same one for all of a hundred thousand segments."""
    return values


def _least(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)


def _most(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)
