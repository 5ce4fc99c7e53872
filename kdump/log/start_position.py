"""Where to start reading a segment for a range of offsets, positions or timestamps, from its indexes."""

from __future__ import annotations

from bisect import bisect_right

from kdump.log.offset_index_lookup import begins_batch, open_index_lookup
from kdump.log.paths import Target
from kdump.log.selection import Selection
from kdump.log.source import FileSource
from kdump.log.time_index_lookup import offset_before
from kdump.log.window import Window


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
