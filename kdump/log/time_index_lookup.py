"""The time index of a segment, as a hint where to begin a lookup by timestamp. Like the offset index, it is never
trusted.

An entry states that no record up to its offset is newer than its timestamp. Entries must be in ascending order, and the
one that is used must match its batch; then only a forged index could mislead. Source: TimeIndex.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

from kdump.format.batch_header import BatchHeader
from kdump.format.index import TIME_INDEX_ENTRY
from kdump.log.header_candidate import candidate_at
from kdump.log.offset_index_lookup import IndexLookup, begins_batch, index_bytes
from kdump.log.paths import Target
from kdump.log.region import Limits
from kdump.log.window import Window

STEPS = 10_000
"""Maximum batches read from an entry of the .index to the batch of a time index entry."""


def offset_before(window: Window, target: Target, hints: IndexLookup, timestamp: int) -> int | None:
    """Return the largest offset in the .timeindex up to which all records of the segment are older than `timestamp`
    (epoch ms), None if there is none. `hints` are those of the segment's .index, to find the batch."""
    entries = read_times(target)
    number = bisect_left(entries, timestamp, key=lambda entry: entry[0]) - 1
    if number < 0:
        return None
    newest, offset = entries[number]
    return offset if _has(window, target, hints, offset, newest) else None


def read_times(target: Target) -> list[tuple[int, int]]:
    """Return the entries of the .timeindex of the segment `target`, as timestamp (epoch ms) and offset; none if they
    are not in ascending order. Zeros after the last one are preallocation."""
    stem, dot, ending = target.path.rpartition(".log")
    if not dot or target.name_offset is None:
        return []
    data = index_bytes(stem + ".timeindex" + ending)
    size = TIME_INDEX_ENTRY.size
    if data is None or len(data) % size:
        return []
    used = -(-len(data.rstrip(b"\0")) // size) * size
    rows = TIME_INDEX_ENTRY.struct.iter_unpack(data[:used])
    found = [(timestamp, target.name_offset + relative) for timestamp, relative in rows]
    rises = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(found))
    return found if rises and (not found or found[0][1] >= target.name_offset) else []


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
