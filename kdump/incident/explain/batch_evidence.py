"""What a segment on this disk has at an offset or a byte that a message names."""

from __future__ import annotations

from contextlib import closing

from kdump.format.count_text import count_text
from kdump.incident.explain.answer import BATCH, Evidence
from kdump.log import file_kinds
from kdump.log.batch_validity import damage_of
from kdump.log.errors import SourceError
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target, target
from kdump.log.region import Batch, Region
from kdump.log.region_scan import RegionScan
from kdump.log.run import Limits
from kdump.log.selection import Range, Selection


def at_offset(place: PartitionDirectory, offset: int, log_start: int | None, limits: Limits) -> Evidence | None:
    """Return what a partition has at an offset: a batch, damage, or nothing, and whether the offset is below the log
    start offset, so that no consumer gets it. Reads the segment's batches near it only, as far as the offset index is
    valid. None without segments."""
    segments = [each for each in place.segments if each.log is not None]
    if not segments:
        return None
    if offset < segments[0].offset:
        text = f"offset {offset}: below the first segment, which starts at offset {segments[0].offset}"
        return Evidence(BATCH, place.path, None, offset, text)
    log = [each for each in segments if each.offset <= offset][-1].log
    assert log is not None
    below = f"below the log start offset {log_start}; on the disk " if offset < (log_start or 0) else ""
    head = f"offset {offset}: {below}"
    return _first(log, Selection(offsets=Range(offset, offset)), limits, head, None, offset)


def at_position(path: str, position: int, limits: Limits) -> Evidence | None:
    """Return what a segment has at a byte. None for another file."""
    log = target(path)
    if log.kind is not file_kinds.SEGMENT:
        return None
    return _first(log, Selection(positions=Range(position, position)), limits, f"byte {position}: ", position, None)


def _first(
    log: Target, selection: Selection, limits: Limits, head: str, position: int | None, offset: int | None
) -> Evidence:
    """Describe the first region of a segment in the selection."""
    scan = RegionScan(selection, limits)
    try:
        window = scan.open(log)
        with closing(window.source):
            for region in scan.chosen(log, window):
                return _describe(region, log.path, head, offset)
    except SourceError as error:
        return Evidence(BATCH, log.path, position, offset, f"{head}not read: {error}")
    return Evidence(BATCH, log.path, position, offset, f"{head}there is no batch")


def _describe(region: Region, path: str, head: str, offset: int | None) -> Evidence:
    at = f"{count_text(region.size, 'byte')} at byte {region.position}"
    if not isinstance(region, Batch):
        what = {"torn": "an incomplete batch", "padding": "zeros"}.get(region.kind, "bytes that belong to no batch")
        reason = f" ({region.reason})" if region.reason else ""
        return Evidence(BATCH, path, region.position, offset, f"{head}{what}, {at}{reason}")
    first = region.lastOffset if region.baseOffset is None else region.baseOffset
    parts = [f"a batch with offsets {first}..{region.lastOffset}", at]
    if region.recordCount is not None:
        parts.append(count_text(region.recordCount, "record"))
    if region.producerId is not None and region.producerId >= 0:
        parts.append(f"producer {region.producerId} epoch {region.producerEpoch}, sequence {region.baseSequence}")
    damage = damage_of(region)
    if damage is None:
        parts.append("its checksum matches")
    elif not region.crcValid:
        parts.append(f"its checksum does not match (stored {region.crc:#010x}, computed {region.computedCrc:#010x})")
    else:
        parts.append(damage.reason)
    return Evidence(BATCH, path, region.position, first if offset is None else offset, head + ", ".join(parts))
