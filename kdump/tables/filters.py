"""Uses the filters that Spark pushes down to reduce what is read. Spark applies each of them again, so reading too much
does no harm."""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from kdump.format.number_range import Range
from kdump.log.paths import Target
from kdump.log.selection import Selection

OFFSETS = ("offset", "baseOffset", "lastOffset")
"""Columns with offsets. A batch matches a bound on either of its ends if any of its offsets is within that bound."""
TIMESTAMPS = ("timestamp", "maxTimestamp")
TIMES = ("time", "maxTime")


@dataclass(frozen=True)
class PushedFilters:
    """The topics, partitions, batches and records to read; None: all."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    brokers: frozenset[str] | None = None
    prefixes: tuple[str, ...] = ()
    """What the names of topics begin with: all of these."""
    selection: Selection = field(default_factory=Selection)

    def place(self, target: Target) -> bool:
        """Return True if the directory of a file may contain anything to read."""
        return (
            (self.topics is None or target.topic in self.topics)
            and (self.partitions is None or target.partition in self.partitions)
            and all((target.topic or "").startswith(prefix) for prefix in self.prefixes)
        )

    def disk(self, broker: str | None) -> bool:
        """Return True if the disk of a broker may contain anything to read."""
        return self.brokers is None or broker in self.brokers

    def also(self, name: str, operator: str, values: tuple[Any, ...]) -> PushedFilters:
        """Return a copy with one more filter. `operator` is =, <=, >=, in, or like (a prefix); filters on unknown
        columns are ignored."""
        if name == "topic" and operator in ("=", "in"):
            return replace(self, topics=_meet(self.topics, values))
        if name == "partition" and operator in ("=", "in"):
            return replace(self, partitions=_meet(self.partitions, values))
        if name == "topic" and operator == "like":
            return replace(self, prefixes=(*self.prefixes, *values))
        if name == "broker" and operator in ("=", "in"):
            return replace(self, brokers=_meet(self.brokers, values))
        if name == "producerId" and operator in ("=", "in"):
            ids = _meet(self.selection.producer_ids or None, values)
            # An empty set would match every producer, and no producer has the ID -2.
            return replace(self, selection=replace(self.selection, producer_ids=ids or frozenset({-2})))
        if name in OFFSETS:
            return self._range("offsets", operator, values)
        if name in TIMESTAMPS:
            return self._range("times", operator, values)
        if name in TIMES and all(isinstance(value, datetime) for value in values):
            return self._range("times", operator, tuple(_milliseconds(value) for value in values))
        return self

    def _range(self, name: str, operator: str, values: tuple[Any, ...]) -> PushedFilters:
        if not values or not all(isinstance(value, int) for value in values):
            return self
        before = getattr(self.selection, name) or Range(None, None)
        first = None if operator == "<=" else min(values)
        last = None if operator == ">=" else max(values)
        made = Range(_both(max, before.first, first), _both(min, before.last, last))
        offsets = name == "offsets"
        selection = replace(self.selection, offsets=made) if offsets else replace(self.selection, times=made)
        return replace(self, selection=selection)


def _both(choose: Any, one: int | None, other: int | None) -> int | None:
    bounds = [bound for bound in (one, other) if bound is not None]
    return choose(bounds) if bounds else None


def _meet(before: frozenset[Any] | None, values: tuple[Any, ...]) -> frozenset[Any]:
    return frozenset(values) if before is None else before & frozenset(values)


def _milliseconds(value: datetime) -> int:
    """Return epoch ms, rounded down: comparable with a record's timestamp."""
    aware = value if value.tzinfo else value.astimezone()
    moment = aware.astimezone(timezone.utc)
    return calendar.timegm(moment.timetuple()) * 1000 + moment.microsecond // 1000


def pushed_filters(filters: list[Any]) -> PushedFilters:
    """Return what has to be read if all of Spark's filters apply."""
    from pyspark.sql.datasource import (
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        LessThan,
        LessThanOrEqual,
        StringStartsWith,
    )

    operators = {
        EqualTo: "=",
        GreaterThan: ">=",
        GreaterThanOrEqual: ">=",
        LessThan: "<=",
        LessThanOrEqual: "<=",
        StringStartsWith: "like",
    }
    pushed = PushedFilters()
    for pushed_filter in filters:
        kind = type(pushed_filter)
        if kind is In and len(pushed_filter.attribute) == 1:
            pushed = pushed.also(pushed_filter.attribute[0], "in", tuple(pushed_filter.value))
        elif kind in operators and len(pushed_filter.attribute) == 1:
            pushed = pushed.also(pushed_filter.attribute[0], operators[kind], (pushed_filter.value,))
    return pushed
