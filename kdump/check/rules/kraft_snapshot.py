"""Checks a metadata snapshot: its batches, and its first and last records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from kdump.check.finding import Code, Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import SegmentContext
from kdump.check.rules.bytes import batch_findings, region_finding
from kdump.check.rules.records import count_findings
from kdump.check.totals import CheckTotals
from kdump.format.control_record import decode_control
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.partition_directory import SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import TORN, Batch, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.walk import RegionObserver, walk

KRAFT_SNAPSHOT_MISSING = Code("kraft-snapshot-missing")
KRAFT_SNAPSHOT_INVALID = Code("kraft-snapshot-invalid")


METADATA_RECORD_REFUSED = Code("metadata-record-refused")

CORRUPT, INCOMPLETE = "snapshotCorrupt", "snapshotIncomplete"
"""Cases of damage. A metadata snapshot is not recovered as a log is: a node reads it from the first byte to the last,
or as far as it goes."""


def kraft_snapshot(
    target: Target, context: PartitionContext, options: Options, totals: CheckTotals
) -> Iterator[Finding]:
    """Yield findings for a metadata snapshot: invalid batches, or a first record that is not the header or a last one
    that is not the footer."""
    try:
        window = options.open(target)
    except SourceError as error:
        totals.add_unreadable(error)
        return
    totals.count_file(window.source.size)
    part = SegmentContext(SegmentFiles("", 0, target), target, False, False, context.now, window.source.size)
    batches = _Batches(part, window)
    try:
        yield from walk(partial(regions, window, limits=options.limits), [batches])
    except SourceError as error:
        totals.add_unreadable(error)
        return
    finally:
        window.source.close()
    if "checkpoints" not in options.chosen or batches.damaged:
        return
    first, position = batches.first, batches.position
    bootstrap = os.path.basename(target.path).startswith("bootstrap")
    for name, is_there, where in (("SNAPSHOT_HEADER", first, 0), ("SNAPSHOT_FOOTER", batches.last, position)):
        if is_there != name and not (bootstrap and first is None):
            what = "starts" if where == 0 else "ends"
            there = "with no record" if is_there is None else f"with a {is_there or 'data'} record"
            message = f"the snapshot {what} {there}, expected {name}"
            yield KRAFT_SNAPSHOT_INVALID.finding(
                target, message=message, position=where, expected=name, actual=is_there
            )


class _Batches(RegionObserver):
    """Checks the batches, which are not counted: they are no part of a log. `first` and `last`: types of the first and
    the last record, empty for data; `position`: that of the last valid batch."""

    depth = Depth.BATCHES

    def __init__(self, part: SegmentContext, window: Window) -> None:
        self.part, self.window = part, window
        self.first: str | None = None
        self.last: str | None = None
        self.position = 0
        self.damaged = False

    def region(self, region: Region) -> Iterator[Finding]:
        if not isinstance(region, Batch):
            self.damaged = True
            case = INCOMPLETE if region.kind == TORN else CORRUPT
            yield region_finding(self.part, region, self.window.source.size).in_case(case)
            return
        if not is_valid(region):
            self.damaged = True
            yield from (finding.in_case(CORRUPT) for finding in batch_findings(self.part, region))
            return
        yield from count_findings(self.part.target, region)
        types = _control_types(region) if region.isControlBatch else ("",)
        if types:
            self.first = types[0] if self.first is None else self.first
            self.last = types[-1]
        self.position = region.position


def _control_types(batch: Batch) -> tuple[str, ...]:
    return tuple(decode_control(record.key, record.value).type for record in records(batch, values=False))


def missing_snapshot(log: Target, log_start: int) -> Finding:
    """Return the finding for a metadata log that starts above offset 0 without a snapshot."""
    message = f"the metadata log starts at offset {log_start}, and there is no .checkpoint"
    return KRAFT_SNAPSHOT_MISSING.finding(log, message=message, offset=log_start)


def record_refused(log: Target, text: str, exception: str, position: int, offset: int | None) -> Finding:
    """Return the finding for a record that a node cannot apply; `text` says which, `exception` is Kafka's."""
    return METADATA_RECORD_REFUSED.finding(log, message=f"{text}: {exception}", position=position, offset=offset)
