"""Which files of a directory a broker serves: its segments, with the .swap files that a startup installs because a
compaction or split had written everything, and without what it deletes for them. A broker that is running renames them
at once: for a moment, its directories look like this, too.

Source: LogLoader.removeTempFilesAndCollectSwapFiles and load (4.3.1); Log.removeTempFilesAndCollectSwapFiles (2.8)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from kdump.format.count_text import count_text
from kdump.format.numbers import LONG_MAX, parse_long
from kdump.io import file_system
from kdump.io.command_line_paths import no_kafka_files
from kdump.io.directory_listing import items, names
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.window import Window
from kdump.log.file_kinds import BATCHES, SEGMENT, FileKind, by_name
from kdump.log.paths import Target, UnlistedCollector, directories, is_live, is_replaced, reject_pipe, target
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth
from kdump.log.segment_summary import summarize_headers
from kdump.log.walk import RegionObserver


class Swaps(NamedTuple):
    """What a startup does because of the .swap files in a directory: it installs those with the names `installed`, and
    deletes the files named from `low` to below `high`."""

    installed: frozenset[str] = frozenset()
    low: int = 0
    high: int = -1

    def replaces(self, name: str) -> bool:
        """Return True if it deletes the file because .swap files take its place."""
        if not self.installed or is_replaced(name):
            return False
        base = parse_long(name.partition(".")[0])
        return f"{name}.swap" in self.installed or (base is not None and self.low <= base < self.high)


def targets(
    path: str,
    kind: FileKind | None = None,
    run: Run = PLAIN_RUN,
    *,
    all_files: bool = False,
    on_other: Callable[[str], None] | None = None,
) -> Iterator[Target]:
    """Yield the files that `path` denotes: a file itself (with the given `kind`), a directory's live segments in offset
    order, then those of the directories below it, in order of their names. With `all_files`, the live segments of a
    directory are followed by its other files with batches: .deleted, .swap and .cleaned segments, and metadata
    snapshots. Calls `run.unreadable` for a directory that cannot be read, and `on_other` with the path of each other
    file in the directories. Raises SourceError if there are no segments, and all directories could be read."""
    if path == "-" or "://" in path or not file_system.isdir(path):
        yield target(path, kind)
        return
    has_any, left_over = False, 0
    collector = UnlistedCollector(run)
    for directory in directories(path, collector.run):
        try:
            entries = items(directory)
        except OSError:  # already reported, or it went away
            continue
        chosen = _segments(directory, [entry.name for entry in entries])
        if all_files:
            live = set(chosen)
            chosen += [entry.name for entry in entries if by_name(entry.name)[0] in BATCHES and entry.name not in live]
        if on_other is not None:
            shown = set(chosen)
            for entry in entries:
                if not entry.is_directory and entry.name not in shown:
                    on_other(entry.path)
        has_any = has_any or bool(chosen)
        left_over += sum(by_name(entry.name)[0] in BATCHES for entry in entries) if not chosen else 0
        for name in chosen:
            yield target(os.path.join(directory, name), source=path)
    if not has_any and not collector.unlisted:
        lack = f"{path}: no segment (<20 digits>.log) in this directory or below it"
        if left_over:
            lack += f", but {count_text(left_over, 'file')} with batches that a broker does not serve (--all-files)"
        raise no_kafka_files(path, lack)


def segments_in(directory: str) -> list[str]:
    """Return the names of the live segments in a directory, in offset order. Raises OSError."""
    return _segments(directory, names(directory))


def current_segments(directory: str) -> list[str]:
    """Return the same; none of a directory that went away or cannot be listed."""
    try:
        return segments_in(directory)
    except OSError:
        return []


def _segments(directory: str, listed: list[str]) -> list[str]:
    swaps = swaps_in(directory, listed)
    return sorted(name for name in listed if by_name(name)[0] is SEGMENT and is_served(name, swaps))


def is_served(name: str, swaps: Swaps) -> bool:
    """Return True if a broker reads the file after a startup."""
    return name in swaps.installed or (is_live(name) and not swaps.replaces(name))


def swaps_in(directory: str, listed: Iterable[str]) -> Swaps:
    """Return what a startup does because of .swap files among the files of these names in a directory."""
    unfinished = [name for name in listed if name.endswith((".swap", ".cleaned"))]
    return _complete_swaps(directory, unfinished) if unfinished else Swaps()


def is_complete(offset: int, cleaned: Iterable[int]) -> bool:
    """Return True if a startup installs the .swap files named `offset`; it deletes them if there are .cleaned files
    named `cleaned` at or below that."""
    return offset < min(cleaned, default=LONG_MAX)


def _complete_swaps(directory: str, unfinished: Iterable[str]) -> Swaps:
    """Return what a startup does because of the .swap and .cleaned files of these names: it deletes the files named
    from the lowest base offset of a .log.swap file to the end of the last one; if that end cannot be read, those with
    the name of a .swap file."""
    bases = {name: base for name in unfinished if (base := parse_long(name.partition(".")[0])) is not None}
    cleaned = [base for name, base in bases.items() if name.endswith(".cleaned")]
    installed = {name for name, base in bases.items() if name.endswith(".swap") and is_complete(base, cleaned)}
    logs = [name for name in installed if name.endswith(".log.swap")]
    low = min((bases[name] for name in logs), default=0)
    return Swaps(frozenset(installed), low, max((_end(directory, name, bases[name]) for name in logs), default=-1))


def _end(directory: str, name: str, base: int) -> int:
    """Return the offset after the last batch (LogSegment.readNextOffset), which may be damaged."""
    end = _NextOffset(base)
    file = target(os.path.join(directory, name), source=directory)
    try:
        reject_pipe(file)
        with closing((window := Window(careful_source(file.path))).source):
            summarize_headers(file, window, quick=True, others=(end,))
    except SourceError:
        return base
    return end.offset


class _NextOffset(RegionObserver):
    """The offset after the last batch so far."""

    depth = Depth.HEADERS

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def region(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            self.offset = region.run.last_offset + 1
        elif isinstance(region, Batch):
            self.offset = region.lastOffset + 1
