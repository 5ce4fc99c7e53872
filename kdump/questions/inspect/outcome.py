"""What a run of `kdump inspect` amounts to: its exit status, and on stderr what was not searched and why nothing was
shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from kdump.command_line.command_run import print_error
from kdump.format.errors import DecodeError
from kdump.format.number_range import Range
from kdump.io.errors import SourceError
from kdump.io.run import QUIET_RUN
from kdump.log.batch_records import records
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Selection
from kdump.questions.inspect.selected_files import SelectedFiles


def exit_status(files: SelectedFiles, *, is_empty: bool) -> int:
    """Return the exit status: 2 if something selected by name, path or offset could not be shown; 1 if a filter leaves
    nothing, which is then reported (--read-committed is a view of the log and not a filter)."""
    if files.coverage is not None:
        return _search_status(files, files.coverage)
    if files.failed:
        return 2
    if replace(files.selection, gate=None).is_all or not is_empty:
        return 0
    outside = _outside(files)
    print_error(outside or _gap(files) or "nothing matches")
    return 2 if outside else 1


def _search_status(files: SelectedFiles, coverage: SearchCoverage) -> int:
    """Return the exit status of a search for content: 1 if nothing matches in all that was to be searched, 2 if nothing
    matches in the part of it that could be."""
    if files.selection.offsets is None:  # else, what may have a selected offset was shown
        coverage.omitted(files.scan)
    if not coverage.matched and files.selection.offsets is None:
        coverage.remote += _only_remote(files)
    is_all = coverage.is_complete and not files.failed
    outside = "" if coverage.matched else _outside(files)
    gaps = coverage.gaps()
    if gaps:
        print_error(f"NOT SEARCHED: {'; '.join(gaps)}")
    if not coverage.matched and (coverage.files or not files.failed):
        # With --last, batches are read more than once, so their number would be wrong.
        batches = None if files.options.last else files.scan.batches
        print_error(outside or coverage.result(batches, is_complete=is_all))
    left_out = coverage.left_out()
    if left_out:
        print_error(left_out)
    if files.failed or outside:
        return 2
    return 0 if coverage.matched else 1 if is_all else 2


def _only_remote(files: SelectedFiles) -> Iterator[str]:
    """Yield the offsets of tiered partitions that were searched without them."""
    from kdump.check.log_dir_context import Surroundings
    from kdump.check.options import Options
    from kdump.log.log_directory import directory_at
    from kdump.log.partition_directory import PartitionDirectory

    surroundings = Surroundings(Options.of(QUIET_RUN))
    for path in files.searched:
        place = None if path == "-" or "://" in path else directory_at(path)
        offsets = surroundings.only_remote(place) if isinstance(place, PartitionDirectory) else None
        if offsets is not None:
            yield f"offsets {offsets[0]}..{offsets[1] - 1} of {os.path.basename(path)}"


def _outside(files: SelectedFiles) -> str:
    """Return a message if the selected offsets are outside the log, with the log's first or end offset; else an empty
    string."""
    offsets, scan = files.selection.offsets, files.scan
    low = [*files.named, *([scan.lowest] if scan.lowest is not None else [])]
    high = [*files.named, *([scan.highest + 1] if scan.highest is not None else [])]
    if offsets is None or not low:
        return ""
    if offsets.first is not None and offsets.first >= max(high, default=0):
        return f"offset {offsets.first} does not exist: the log end offset is {max(high)}"
    if offsets.last is not None and offsets.last < min(low):
        return f"offset {offsets.last} does not exist: the first offset here is {min(low)}"
    return ""


def _gap(files: SelectedFiles) -> str:
    """Return a message if no record has the selected offsets, with the offset of the next one; else an empty string."""
    offsets = files.selection.offsets
    if offsets is None or offsets.first is None or files.selection != Selection(offsets=offsets):
        return ""
    following = _next_record(files, offsets.first)
    if following is None:
        return ""
    last = "" if offsets.last in (None, offsets.first) else f"..{offsets.last}"
    return f"offset {offsets.first}{last}: no record: compaction removed it, or it is lost; the next is {following}"


def _next_record(files: SelectedFiles, offset: int) -> int | None:
    """Return the offset of the first record at `offset` or above; None if there is none, or it cannot be read."""
    scan = RegionScan(Selection(offsets=Range(offset, None)), files.scan.limits, keeps=True)
    for target in files.listed:
        try:
            window = scan.open(target)
            with closing(window.source):
                for region in scan.chosen(target, window):
                    offsets = (record.offset for record in records(region)) if isinstance(region, Batch) else ()
                    following = [number for number in offsets if number is not None and number >= offset]
                    if following:
                        return min(following)
        except (SourceError, DecodeError):
            return None
    return None
