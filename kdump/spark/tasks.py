"""What a task does with the pieces of a table that is no stream of batches: rows, from the same objects as the JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from kdump.answer import answer_object
from kdump.check.finding import Finding, found
from kdump.check.run import Unit
from kdump.check.totals import Totals
from kdump.log import kinds
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.listing import is_url
from kdump.log.paths import Target, target
from kdump.render.escape import path_text
from kdump.render.overview_objects import segment_object
from kdump.spark.walk import opened
from kdump.state.partition_log import SegmentFacts, read_segment

Row = dict[str, Any]


def segment_rows(what: tuple[SegmentFacts, bool | None]) -> Iterator[Row]:
    """Table segments."""
    facts, clean = what
    read_segment(facts)
    if not facts.gone:
        yield segment_object(facts, clean)


def entry_rows(at: Target) -> Iterator[Row]:
    """Tables index_entries, producer_states and checkpoints. A file that cannot be read has none."""
    assert at.kind is not None
    own: Row = {"file": path_text(at.path)}
    if at.kind is kinds.PRODUCER_SNAPSHOT:
        own["snapshotOffset"] = at.name_offset
    elif at.kind in (kinds.OFFSET_CHECKPOINT, kinds.EPOCH_CHECKPOINT):
        own["checkpoint"] = os.path.basename(at.path)
    else:
        own["index"] = at.kind.name
    try:
        window = opened(at)
    except SourceError:
        return
    window.source.keep = True
    try:
        for item in entries(at.kind, window, at.name_offset or 0):
            if isinstance(item, Entry) and item.type:
                yield own | item.values
    except SourceError:
        return
    finally:
        window.source.close()


def finding_rows(what: Unit | tuple[str, str], totals: Totals) -> Iterator[Row]:
    """Table findings: those of a unit; what was read is added to `totals`. Of a path that leads to none there are
    none."""
    if isinstance(what, Unit):
        for finding in what.run(totals, lambda size: None):
            yield row_of(finding)


def unread_rows(what: Unit | tuple[str, str], totals: Totals) -> Iterator[Row]:
    """The same for what could not be read, once the others have been taken."""
    if not isinstance(what, Unit):
        path, text = what
        yield row_of(_unread(target(path), text))
        return
    for text in totals.unread:
        yield row_of(_unread(_named(what, text), text))


def row_of(finding: Finding) -> Row:
    """`expected` and `actual` as text: a string as it is, anything else as JSON."""
    row = answer_object(finding)
    for name in ("expected", "actual"):
        value = row[name]
        if value is not None and not isinstance(value, str):
            row[name] = json.dumps(value, ensure_ascii=False)
    return row


def _unread(at: Target, text: str) -> Finding:
    return found("unreadable-bytes", at, text, consequence="what is there was not checked")


def _named(unit: Unit, text: str) -> Target:
    """The file of the unit that a complaint is about."""
    place = unit.partition
    files = list(place.files()) if place is not None else list(unit.directory.files.values()) if unit.directory else []
    for at in files:
        if text.startswith(at.path + ":"):
            return at
    if place is not None:
        return Target(place.path, None, place.topic, place.partition, None, place.source)
    if unit.target is not None:
        return unit.target
    return target(unit.name, source=unit.name) if not is_url(unit.name) else Target(unit.name, None, None, None)
