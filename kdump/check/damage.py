"""Family bytes: regions that are no batch, and batches that cannot be believed -> findings."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.check.batch import batch_finding, crc_mismatch, first_offset
from kdump.check.catalogue import ERROR, INFO, WARNING
from kdump.check.diagnosis import diagnose
from kdump.check.finding import Finding, found
from kdump.check.rule import Part
from kdump.format.batch import BatchHeader
from kdump.log.region import PADDING, TORN, Batch, Region


def region_finding(part: Part, region: Region, end: int | None) -> Finding:
    """What bytes that no batch claims amount to. At the end of a last segment that a broker will recover, a torn batch
    is no more than a write that power cut short, and zeros are what preallocation leaves. `end` is where the file ends,
    in bytes."""
    code = region.code
    at_end = part.last and part.recovers is not False and region.end == end
    severity, consequence = ERROR, None
    if at_end and region.kind == TORN:
        severity = WARNING
        consequence = (
            "a broker that recovers this log truncates these bytes: they are not a whole batch; no consumer has read "
            "it, unless the file was cut short later"
        )
    elif at_end and region.kind == PADDING:
        severity = INFO
        consequence = "on restart the broker cuts the zeros off"
    elif region.kind == PADDING and region.position == 0 and region.end == end:
        consequence = "the segment is empty of batches, whatever its size says; a broker that recovers it truncates it"
    claimed = region.claimed
    offset = claimed[0] if claimed is not None and claimed[0] >= 0 else None
    expected = actual = None
    if code == "batch-length-invalid" and claimed is not None:
        expected, actual = region.size - 12, claimed[1]
    return found(
        code,
        part.target,
        region.reason,
        position=region.position,
        size=region.size,
        offset=offset,
        expected=expected,
        actual=actual,
        severity=severity,
        consequence=consequence,
    )


def batch_findings(part: Part, batch: Batch) -> Iterator[Finding]:
    """A checksum that does not hold, with what the damage looks like; a length, or offsets, that cannot be."""
    for problem in batch.problems:
        yield batch_finding(part.target, batch, problem)
    if not batch.crcValid:
        yield crc_mismatch(part.target, batch, diagnose(batch).text)
    header = getattr(batch, "header", None)
    if isinstance(header, BatchHeader):
        for name in ("baseOffset", "lastOffsetDelta"):
            value = getattr(header, name)
            if value < 0:
                message = f"{name} {value} is negative"
                yield found(
                    "offset-invalid",
                    part.target,
                    message,
                    position=batch.position,
                    size=batch.size,
                    offset=batch.baseOffset,
                    actual=value,
                )
    elif batch.lastOffset < 0:
        message = f"offset {batch.lastOffset} is negative"
        position, size = batch.position, batch.size
        yield found("offset-invalid", part.target, message, position=position, size=size, offset=first_offset(batch))
