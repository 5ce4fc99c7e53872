"""Summarizes the headers of a segment: offsets, times, formats, codecs, and bytes that belong to no batch.

A batch counts once the next one begins where it ends, with a larger offset. The only checksum that is computed of v2
batches is that of the last one, which decides where the log ends: damage inside earlier batches is not detected here.
"""

from __future__ import annotations

__lazy_modules__ = {"kdump.log.offset_index_lookup"}

from collections.abc import Sequence
from functools import partial

from kdump.core.batch_scan import read_one_header
from kdump.format.batch_header import BATCH_HEADER, LOG_OVERHEAD, BatchHeader
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.io.source import SMALL, FileSource
from kdump.io.window import LARGE, Window
from kdump.log.file_kinds import INDEX, TIME_INDEX
from kdump.log.header_candidate import candidate_at
from kdump.log.header_totals import HeaderTotals
from kdump.log.offset_index_lookup import begins_batch, last_entry
from kdump.log.paths import Target
from kdump.log.region_reader import Depth, regions
from kdump.log.region_totals import RegionTotals
from kdump.log.walk import RegionObserver, observe
from kdump.log.withheld import withheld_segment

BLOCK = 256 * 1024
FEW_READS, FEW_HEADERS = 16, 128
"""A segment that takes at most this many reads of a block, and headers, is always read completely: opening its two
indexes, and finding their last entries by bisection, takes as many reads and more CPU."""


def summarize_headers(
    target: Target, window: Window, *, quick: bool = False, run: Run = PLAIN_RUN, others: Sequence[RegionObserver] = ()
) -> HeaderTotals:
    """Summarize the headers of the segment in `window`. If `quick`, read only the first batch, the batches from the
    last entry of its .index on, and the last entry of its .timeindex; without a usable .index, and if that is cheaper,
    read all batches. `others` see each region, too, after damage all of them again. Raises SourceError."""
    source = partial(regions, window, name_offset=target.name_offset, limits=Limits())
    withheld = withheld_segment(window.source)
    if withheld is not None:
        run.more(window.source.size or 0)
        if others:
            observe(source, others)
        return withheld.totals()
    if quick or (window.source.size or LARGE) >= LARGE:
        window.seek_headers(LARGE)
    is_file = isinstance(window.source, FileSource)
    totals = RegionTotals(target.name_offset)
    start = _last_indexed(target, window, totals) if quick and is_file else 0
    run.more(start)
    totals.depth = Depth.HEADERS if is_file else Depth.CHECKSUMS
    observe(partial(source, start=start), (totals, *others), run)
    if is_file and not (totals.is_end_checked or totals.ends_in_run):
        # Damage follows the last batches that were accepted by their headers: read all again, with their checksums.
        totals, start = RegionTotals(target.name_offset), 0
        observe(source, (totals, *others), run)
    headers = totals.finished()
    if start:
        headers.partial = True
        latest = last_entry(target, TIME_INDEX)
        if latest is not None and headers.last is not None and latest.offset <= headers.last:
            headers.times(-1, latest.timestamp)
    return headers


def _last_indexed(target: Target, window: Window, totals: RegionTotals) -> int:
    """Count the first batch, and return the position of the last entry of the .index. Return 0, with nothing counted,
    if the index does not lead to a batch after the first, or if reading all batches is as cheap: those of a small file
    have been read, else this is estimated from the length of the first. Only v2 batches can be skipped."""
    head, size = window.view(0, BATCH_HEADER.size), window.source.size or 0
    if len(head) < BATCH_HEADER.size or size <= SMALL:
        return 0
    length = max(LOG_OVERHEAD + int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True), BATCH_HEADER.size)
    if size // (BLOCK if length < LARGE else length) <= FEW_READS and size // length <= FEW_HEADERS:
        return 0
    first = candidate_at(window, 0, Limits())
    header, name = first.header, target.name_offset or 0
    if not isinstance(header, BatchHeader) or first.error is not None or header.recordCount != header.possible_records:
        return 0
    if not name <= header.baseOffset <= header.lastOffset:
        return 0
    heads = read_one_header(bytes(window.view(0, BATCH_HEADER.size)), 0)
    entry = last_entry(target, INDEX)
    if entry is None or entry.position <= first.end:
        return 0
    window.seek_headers(0)  # the bytes from there on are read in any case
    if not begins_batch(window, entry.position, entry.offset, target.name_offset):
        return 0
    totals.headers(heads, tuple)
    return entry.position
