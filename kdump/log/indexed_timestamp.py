"""The largest timestamp of a segment according to its .timeindex, as a broker takes it for retention.

A broker does not check a .timeindex when it loads a segment that it does not recover: the last 12 bytes are the last
entry, also if they are zeros that were left of the preallocation. Source: LogSegment.readMaxTimestampAndOffsetSoFar and
sanityCheck, TimeIndex.lastEntryFromIndexFile, AbstractIndex.createMappedBuffer."""

from __future__ import annotations

from contextlib import closing

from kdump.format.index import TIME_INDEX_ENTRY
from kdump.io.errors import SourceError
from kdump.log.offset_index_lookup import open_index
from kdump.log.paths import Target

SIZE = TIME_INDEX_ENTRY.size


def indexed_timestamp(target: Target) -> int | None:
    """Return the timestamp (epoch ms) of the last entry in the .timeindex of the segment `target`, as a broker has it:
    0 if the last entry is zeros. None without an entry, or with a negative timestamp: the broker then takes the
    modification time of the .log. Part of an entry at the end does not count."""
    last = _last_two(target)[-1:]
    return last[0][0] if last and last[0][0] >= 0 else None


def complete_timestamp(target: Target) -> int | None:
    """Return the same for an index that is as a broker leaves it when it rolls a segment, whose last entry is then the
    largest timestamp of the batches: without zeros at the end, and in ascending order. None if it is not."""
    entries = _last_two(target)
    if not entries or entries != sorted(entries) or min(entries[-1]) < 0 or entries[-1] == (0, 0):
        return None
    return entries[-1][0]


def _last_two(target: Target) -> list[tuple[int, int]]:
    """Return timestamps and relative offsets of the last two entries, or fewer; empty if there is no readable index."""
    stem, dot, ending = target.path.rpartition(".log")
    if not dot:
        return []
    try:
        with closing(open_index(stem + ".timeindex" + ending)) as source:
            end = (source.size or 0) // SIZE * SIZE
            start = max(0, end - 2 * SIZE)
            return list(TIME_INDEX_ENTRY.struct.iter_unpack(source.read_at(start, end - start)))
    except (OSError, SourceError):
        return []
