"""Rows of the tables that are not read from batches, built from the same objects as the JSON output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from kdump.answer import answer_keys, answer_object
from kdump.check.engine.units import CheckUnit
from kdump.check.finding import Finding
from kdump.check.rules.bytes import not_checked
from kdump.check.totals import CheckTotals
from kdump.cluster.partition_summary import SegmentSummary, read_segment
from kdump.cluster.segment_answer import segment_answer
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError, is_about
from kdump.log import file_kinds
from kdump.log.entries import Entry, entries
from kdump.log.paths import Target, target
from kdump.render.escape import path_text
from kdump.tables.segment_split import opened

Row = dict[str, Any]


def segment_rows(pair: tuple[SegmentSummary, bool | None]) -> Iterator[Row]:
    """Yield the row of a segment for the table segments; none if the segment is gone."""
    facts, clean = pair
    read_segment(facts)
    if not facts.is_deleted:
        yield answer_object(segment_answer(facts, clean))


def entry_rows(target: Target) -> Iterator[Row]:
    """Yield rows of the tables index_entries, producer_states and checkpoints; none for a file that cannot be read."""
    assert target.kind is not None
    own: Row = {"file": path_text(target.path)}
    if target.kind is file_kinds.PRODUCER_SNAPSHOT:
        own["snapshotOffset"] = target.name_offset
    elif target.kind in (file_kinds.OFFSET_CHECKPOINT, file_kinds.EPOCH_CHECKPOINT):
        own["checkpoint"] = os.path.basename(target.path)
    else:
        own["index"] = target.kind.name
    try:
        window = opened(target)
    except SourceError:
        return
    window.source.keep = True
    try:
        for item in entries(target.kind, window, target.name_offset or 0):
            if isinstance(item, Entry) and item.type:
                yield own | item.values
    except SourceError:
        return
    finally:
        window.source.close()


def finding_rows(what: CheckUnit | tuple[str, str], totals: CheckTotals) -> Iterator[Row]:
    """Yield a unit's findings as rows, and add what was read to `totals`; nothing for a path without a unit."""
    if isinstance(what, CheckUnit):
        for finding in what.run(totals):
            yield row_of(finding)


def unread_rows(what: CheckUnit | tuple[str, str], totals: CheckTotals) -> Iterator[Row]:
    """Yield what could not be read as rows of the table findings; to be called after `finding_rows` has finished."""
    if not isinstance(what, CheckUnit):
        path, why = what
        yield row_of(not_checked(target(path), why))
        return
    for why in totals.unread:
        yield row_of(not_checked(_named(what, why), why))


def row_of(finding: Finding) -> Row:
    """Return the row of a finding, with `expected` and `actual` as text: a string as it is, anything else as JSON."""
    row = answer_object(finding)
    for name in ("expected", "actual"):
        value = row[name]
        if value is not None and not isinstance(value, str):
            row[name] = json.dumps(value, ensure_ascii=False)
    return row


def finding_of(row: Row) -> Finding:
    """Return the finding of such a row, with whole numbers in `expected` and `actual` as numbers."""
    stated = {name: row[name] or "" for name in ("expected", "actual")}
    numbers = {name: int(text) for name, text in stated.items() if text.removeprefix("-").isdecimal()}
    return Finding(**{key.name: row[key.name] for key in answer_keys(Finding)} | numbers)


def _named(unit: CheckUnit, message: str) -> Target:
    """Return the file of the unit that an error message is about."""
    place = unit.partition
    files = list(place.files()) if place is not None else list(unit.directory.files.values()) if unit.directory else []
    for file in files:
        if is_about(message, file.path):
            return file
    if place is not None:
        return Target(place.path, None, place.topic, place.partition, None, place.source)
    if unit.target is not None:
        return unit.target
    return target(unit.name, source=unit.name) if not is_url(unit.name) else Target(unit.name, None, None, None)
