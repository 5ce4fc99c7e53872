"""The errors and warnings of a scan that its report lists: read in tasks, each of which returns its worst ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import pyarrow.compute as pc

from kdump.answer import answer_keys
from kdump.check.finding import INFO, SEVERITIES, Finding
from kdump.check.rules.bytes import UNREADABLE_BYTES
from kdump.spark.pack_reader import entries, rows_of
from kdump.spark.packs import Pack
from kdump.spark.store import Store
from kdump.spark.tables import FINDINGS

Row = dict[str, Any]
MAX_FINDINGS = 2000
"""Maximum number of findings to print."""
COLUMNS = [key.name for key in answer_keys(Finding)]


class FindingsTask(NamedTuple):
    """The input of a task: packs whose findings are read."""

    store: Store
    packs: tuple[Pack, ...]


def severe_findings(task: FindingsTask) -> list[Row]:
    """Return the worst errors and warnings of some packs, without what could not be read, which is no finding of
    kdump verify. Raises StoreError."""
    return worst(chain.from_iterable(_severe(task.store, pack) for pack in task.packs if FINDINGS.name in pack.tables))


def worst(found: Iterable[Row]) -> list[Row]:
    """Return the first MAX_FINDINGS rows: errors before warnings."""
    return heapq.nsmallest(MAX_FINDINGS, found, key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    return SEVERITIES.index(row["severity"]), row["source"] or "", row["file"], row["position"]


def _severe(store: Store, pack: Pack) -> Iterator[Row]:
    """Yield them of a pack; nothing is read of units that have none."""
    ranges = [
        (rows["start"], rows["count"])
        for entry in entries(store, pack, ["codes", "rows"])
        if any(each["severity"] != INFO for each in entry["codes"] or ())
        for rows in entry["rows"]
        if rows["table"] == FINDINGS.name
    ]
    for batch in rows_of(store, pack, FINDINGS.name, sorted(ranges)):
        unread = pc.and_(pc.equal(batch["code"], UNREADABLE_BYTES.code), pc.equal(batch["size"], 0))
        chosen = pc.and_(pc.not_equal(batch["severity"], INFO), pc.invert(pc.fill_null(unread, False)))
        yield from batch.filter(chosen).select(COLUMNS).to_pylist()
