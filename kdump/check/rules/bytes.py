"""Family bytes: findings for regions that are not a batch, and for batches that are not valid."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.check.batch import batch_finding, crc_mismatch, first_offset
from kdump.check.catalogue import ERROR, INFO, WARNING
from kdump.check.diagnosis.diagnose import diagnose
from kdump.check.finding import Finding, found
from kdump.check.rule import SegmentContext
from kdump.format.batch import BatchHeader
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from kdump.log.region import PADDING, TORN, Batch, Region

ZEROS_TRUNCATED = "the broker truncates the zeros at its next startup"
UNLOADED = (
    "a running broker that becomes the leader of this partition cannot load it ('Record size 0 is less than the "
    "minimum record overhead (14)', KAFKA-20841): its groups have no coordinator until a broker whose restart has "
    "removed the zeros becomes the leader"
)
LOADED = (
    "a running broker that becomes the leader of this partition logs 'Error loading transactions' (KAFKA-20841), with "
    "all transactions loaded; " + ZEROS_TRUNCATED
)
AFTER_BATCHES = {
    OFFSETS_TOPIC: (WARNING, UNLOADED),
    SHARE_TOPIC: (WARNING, UNLOADED),
    TRANSACTION_TOPIC: (INFO, LOADED),
}
"""Severity and impact of preallocated zeros after the batches of a coordinator's topic, when a coordinator loads it.
Source: CoordinatorLoaderImpl and TransactionStateManager, which read to the end of the file, not of the log
(FileRecords.readInto); tested with 4.3.1 (tools/coordinator_trials.py). A segment without batches is not read."""


def region_finding(part: SegmentContext, region: Region, end: int | None, *, served: bool = True) -> Finding:
    """Return the finding for bytes that belong to no batch. At the end of a last segment that a broker will recover, it
    is milder: an incomplete batch is an interrupted write, and zeros are left by preallocation. `end`: size of the file
    in bytes; `served`: whether a broker can be the leader of this log."""
    code = region.code
    at_end = part.last and part.recovers is not False and region.end == end
    severity, consequence = ERROR, None
    if at_end and region.kind == TORN:
        severity = WARNING
        consequence = (
            "a broker that recovers this log truncates these bytes: they are an incomplete batch, which no consumer "
            "has read, unless the file was truncated later"
        )
    elif at_end and region.kind == PADDING:
        severity, consequence = INFO, ZEROS_TRUNCATED
        if served and region.position > 0:
            severity, consequence = AFTER_BATCHES.get(part.target.topic or "", (INFO, ZEROS_TRUNCATED))
    elif region.kind == PADDING and region.position == 0 and region.end == end:
        consequence = "the segment contains only zeros and no batches; a broker that recovers it truncates it"
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


def batch_findings(part: SegmentContext, batch: Batch) -> Iterator[Finding]:
    """Yield findings for a checksum that does not match, with a diagnosis of the damage, for an invalid length and for
    negative offsets."""
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
