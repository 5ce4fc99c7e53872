"""Where to start reading a segment for a range of offsets, positions or timestamps, from its indexes, which are hints
and never trusted.

An entry of the time index states that no record up to its offset is newer than its timestamp. Entries must be in
ascending order, and the one that is used must match its batch; then only a forged index could mislead. Source:
TimeIndex."""

from __future__ import annotations

from bisect import bisect_right

from kdump.format.batch_header import BatchHeader
from kdump.format.index import TIME_INDEX_ENTRY
from kdump.io.run import Limits
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.log.header_candidate import candidate_at
from kdump.log.offset_index_lookup import IndexLookup, UnusableIndex, begins_batch, index_pieces, open_index_lookup
from kdump.log.paths import Target
from kdump.log.selection import Selection

MIN_LONG = -(1 << 63)
STEPS = 10_000
"""Maximum batches read from an entry of the .index to the batch of a time index entry."""


def offset_before(window: Window, target: Target, hints: IndexLookup, timestamp: int) -> int | None:
    """Return the largest offset in the .timeindex up to which all records of the segment are older than `timestamp`
    (epoch ms), None if there is none. `hints` are those of the segment's .index, to find the batch."""
    entry = last_entry_before(target, timestamp)
    if entry is None:
        return None
    newest, offset = entry
    return offset if _has(window, target, hints, offset, newest) else None


def last_entry_before(target: Target, timestamp: int) -> tuple[int, int] | None:
    """Return timestamp (epoch ms) and offset of the last entry below `timestamp` in the .timeindex of the segment
    `target`; None if there is none, or if the entries are not in ascending order. Zeros after the last one are
    preallocation. Reads all entries, and keeps none: an index may have millions."""
    stem, dot, ending = target.path.rpartition(".log")
    if not dot or target.name_offset is None:
        return None
    found: tuple[int, int] | None = None
    before, offset = MIN_LONG, 0
    try:
        for piece in index_pieces(stem + ".timeindex" + ending, TIME_INDEX_ENTRY.size):
            for entry in TIME_INDEX_ENTRY.struct.iter_unpack(piece):
                if entry[0] < before or entry[1] < offset:
                    return None
                before, offset = entry
                if before < timestamp:
                    found = before, target.name_offset + offset
    except UnusableIndex:
        return None
    return found


def _has(window: Window, target: Target, hints: IndexLookup, offset: int, newest: int) -> bool:
    """Return True if the batch with `offset` has `newest` as its maxTimestamp."""
    entry = bisect_right(hints.offsets, offset) - 1
    if entry < 0 or not begins_batch(window, hints.positions[entry], hints.offsets[entry], target.name_offset):
        return False
    position = hints.positions[entry]
    for _ in range(STEPS):
        claim = candidate_at(window, position, Limits())
        if not isinstance(claim.header, BatchHeader) or claim.error is not None or claim.first_offset > offset:
            return False
        if offset <= claim.last_offset:
            return claim.header.maxTimestamp == newest
        position = claim.end
    return False


def start_position(selection: Selection, target: Target, window: Window) -> int:
    """Return the position in bytes from which a file must be read so that nothing in the selection is missed. Uses the
    indexes as far as they are correct."""
    offsets, positions, times = selection.offsets, selection.positions, selection.times
    first = offsets.first if offsets else None
    at = positions.first if positions else None
    since = times.first if times else None
    is_restricted = any(end is not None for end in (first, at, since))
    if not is_restricted or not isinstance(window.source, FileSource):
        return 0
    hints = open_index_lookup(target.path, target.name_offset)
    entry = len(hints)
    if since is not None and len(hints):
        older = offset_before(window, target, hints, since)
        first = first if older is None else max(first or 0, older + 1)
    if first is None and at is None:
        return 0
    if first is not None:
        entry = min(entry, bisect_right(hints.offsets, first))
    if at is not None:
        entry = min(entry, bisect_right(hints.positions, at))
    while entry > 0:
        entry -= 1
        if begins_batch(window, hints.positions[entry], hints.offsets[entry], target.name_offset):
            return hints.positions[entry]
    return 0
