"""What `kdump restart-plan` foretells, as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kdump.forensics.restart.plan import DirectoryPlan, PartitionPlan, RestartPlan
from kdump.render.escape import path_text
from kdump.render.restart_keys import RESTART_TYPES

Object = dict[str, Any]


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return path_text(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _object(kind: str, item: Any, more: Object | None = None) -> Object:
    more = more or {}
    names = [key.name for key in RESTART_TYPES[kind]]
    return {"type": kind, **{name: _plain(more[name] if name in more else getattr(item, name)) for name in names}}


def partition_object(plan: PartitionPlan) -> Object:
    return _object("restartPartition", plan)


def directory_object(plan: DirectoryPlan) -> Object:
    return _object("restartDirectory", plan)


def plan_object(plan: RestartPlan, seconds: float) -> Object:
    numbers = totals(plan.partitions)
    return _object("restartPlan", plan, {**numbers._asdict(), "stops": plan.allStops, "seconds": round(seconds, 3)})


class Totals(NamedTuple):
    """Sums over partitions."""

    partitions: int
    recoveredPartitions: int
    recovered: int
    bytesRead: int
    bytesCut: int
    losing: int
    strays: int


def totals(partitions: Sequence[PartitionPlan]) -> Totals:
    return Totals(
        len(partitions),
        sum(1 for each in partitions if each.recovered),
        sum(each.recovered for each in partitions),
        sum(each.bytesRead for each in partitions),
        sum(each.bytesCut for each in partitions),
        sum(1 for each in partitions if each.loses),
        sum(1 for each in partitions if each.stray),
    )
