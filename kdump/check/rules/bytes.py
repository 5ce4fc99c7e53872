"""Family bytes: bytes that are not part of a valid batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding, codes_in
from kdump.format.batch_formats import format_of
from kdump.format.batch_header import BatchHeader
from kdump.format.count_text import plain_count
from kdump.format.legacy_message import MIN_MESSAGE_SIZE
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import PADDING, TORN, Batch, DefaultRecordBatch, Defect, Region

if TYPE_CHECKING:  # inspect needs no rules
    from kdump.check.rule import SegmentContext

CRC_MISMATCH = Code("crc-mismatch")
BATCH_LENGTH_INVALID = Code("batch-length-invalid")
BATCH_TRUNCATED = Code("batch-truncated")
TRAILING_BYTES = Code("trailing-bytes")
JUNK_BYTES = Code("junk-bytes")
ZERO_PADDING = Code("zero-padding")
MAGIC_UNKNOWN = Code("magic-unknown")
OFFSET_INVALID = Code("offset-invalid")
UNREADABLE_BYTES = Code("unreadable-bytes")


CODES = codes_in(globals())
"""The codes of this module: the reader notes some of them by name."""

AFTER_BATCHES = {
    OFFSETS_TOPIC: (WARNING, "unloaded"),
    SHARE_TOPIC: (WARNING, "unloaded"),
    TRANSACTION_TOPIC: (INFO, "loaded"),
}
"""Severity and case of preallocated zeros after the batches of a coordinator's topic, when a coordinator loads it.
Source: CoordinatorLoaderImpl and TransactionStateManager, which read to the end of the file, not of the log
(FileRecords.readInto); tested with 4.3.1 (tools/coordinator_trials.py). A segment without batches is not read."""


def region_finding(part: SegmentContext, region: Region, end: int | None, *, served: bool = True) -> Finding:
    """Return the finding for bytes that belong to no batch. At the end of a last segment that a broker will recover, it
    is milder: an incomplete batch is an interrupted write, and zeros are left by preallocation. `end`: size of the file
    in bytes; `served`: whether a broker can be the leader of this log."""
    code = CODES[region.code]
    at_end = part.last and part.recovers is not False and region.end == end
    severity, case = ERROR, ""
    values: dict[str, object] = {}
    if code is TRAILING_BYTES and not at_end:
        case, values = _short_tail(region, part)
    if at_end and region.kind == TORN:
        severity, case = WARNING, "interrupted"
    elif at_end and region.kind == PADDING:
        severity, case = INFO, "truncated"
        if served and region.position > 0:
            severity, case = AFTER_BATCHES.get(part.target.topic or "", (severity, case))
    elif region.kind == PADDING and region.position == 0 and region.end == end:
        case = "onlyZeros"
    claimed = None if code is JUNK_BYTES else region.claimed  # of no batch, so that its offset is none
    offset = claimed[0] if claimed is not None and claimed[0] >= 0 else None
    expected = actual = None
    if code is BATCH_LENGTH_INVALID and claimed is not None:
        expected, actual = region.size - 12, claimed[1]
    return code.finding(
        part.target,
        message=region.reason,
        position=region.position,
        size=region.size,
        offset=offset,
        expected=expected,
        actual=actual,
        severity=severity,
        case=case,
        values=values,
        facts={"lastSegment": part.last, "offsetsTopic": part.target.topic in (OFFSETS_TOPIC, SHARE_TOPIC)},
    )


def _short_tail(region: Region, part: SegmentContext) -> tuple[str, dict[str, object]]:
    """Return the case of fewer bytes than a header has at the end of a segment, and its values
    (FileLogInputStream.nextBatch, loadBatchWithSize; LogSegment.readNextOffset)."""
    if not part.last:
        return "earlierSegment", {}
    view = region.broker_view
    if view is None or view.header is None:
        return "", {}
    if view.length < MIN_MESSAGE_SIZE:
        wrong, exception = f"below {MIN_MESSAGE_SIZE}", "CorruptRecordException"
    elif view.header.size <= region.size and not format_of(view.header.magic).is_message:
        wrong, exception = "that of a batch without a complete header", "KafkaException"
    else:
        return "", {}
    return "exits", {"length": view.length, "wrong": wrong, "exception": exception}


def batch_findings(part: SegmentContext, batch: Batch) -> Iterator[Finding]:
    """Yield findings for a checksum that does not match, with a diagnosis of the damage, for an invalid length and for
    negative offsets."""
    from kdump.check.diagnosis.diagnose import diagnose

    for problem in batch.problems:
        yield problem_finding(CODES[problem.code], part.target, batch, problem)
    if not batch.crcValid:
        yield crc_mismatch(part.target, batch, diagnose(batch).text)
    yield from offset_findings(part.target, batch)


def offset_findings(target: Target, batch: Batch) -> Iterator[Finding]:
    """Yield findings for negative offsets in a header."""
    header = getattr(batch, "header", None)
    if isinstance(header, BatchHeader):
        for name in ("baseOffset", "lastOffsetDelta"):
            value = getattr(header, name)
            if value < 0:
                message = f"{name} {value} is negative"
                yield OFFSET_INVALID.finding(
                    target,
                    message=message,
                    position=batch.position,
                    size=batch.size,
                    offset=batch.baseOffset,
                    actual=value,
                    wrong_field=name,
                )
    elif batch.lastOffset < 0:
        message = f"offset {batch.lastOffset} is negative"
        yield OFFSET_INVALID.finding(
            target,
            message=message,
            position=batch.position,
            size=batch.size,
            offset=first_offset(batch),
            wrong_field="offset",
        )


def problem_finding(code: Code, target: Target, batch: Batch, problem: Defect) -> Finding:
    """Return the finding of this code for a problem that decoding noted. Its position and size are those of the problem
    if its bytes are in the file, else those of the batch."""
    where = f"{problem.struct}.{problem.field} at byte {problem.position}"
    if problem.space:
        where += f" of the payload (decompressed from {problem.space})"
    size = problem.size or batch.end - max(batch.position, problem.position)
    inside = not problem.space and size > 0
    position, size = (problem.position, size) if inside else (batch.position, batch.size)
    return code.finding(
        target,
        message=f"{where}: {problem.reason}",
        position=position,
        size=size,
        offset=first_offset(batch),
        expected=problem.expected,
        actual=problem.actual,
        case="ours" if problem.is_ours else "",
        facts={"tooLarge": problem.is_ours},
        next_offset=next_offset(batch),
    )


def first_offset(batch: Batch) -> int:
    """Return the first offset of the batch, or its last if the first is unknown."""
    return batch.lastOffset if batch.baseOffset is None else batch.baseOffset


def next_offset(batch: Batch) -> int | None:
    """Return the first offset after the batch; None if a damaged header may state it."""
    header = batch.header if isinstance(batch, DefaultRecordBatch) else None
    if header is not None and not batch.crcValid and header.recordCount != header.lastOffsetDelta + 1:
        return None
    return batch.lastOffset + 1 if batch.lastOffset >= first_offset(batch) >= 0 else None


def crc_mismatch(target: Target, batch: Batch, looks_like: str = "") -> Finding:
    """Return the finding for a checksum that does not match. `looks_like`: clause that describes the probable
    damage."""
    message = f"stored {batch.format.crc_name} 0x{batch.crc:08x}, computed 0x{batch.computedCrc:08x}"
    # CompletedFetch.maybeEnsureValid, LogSegment.recover
    case = "wrapper" if batch.format.is_message and batch.is_compressed else ""
    is_marker = bool(batch.isControlBatch and batch.isTransactional)
    message += ", of a transaction marker" if is_marker else ""
    return CRC_MISMATCH.finding(
        target,
        message=f"{message}: {looks_like}" if looks_like else message,
        position=batch.position,
        size=batch.size,
        offset=first_offset(batch),
        expected=batch.computedCrc,
        actual=batch.crc,
        case=case,
        next_offset=next_offset(batch),
        facts={"marker": is_marker},
    )


def inner_crc_mismatch(target: Target, record: Record) -> Finding:
    """Return the finding for the checksum of a message inside a wrapper."""
    batch = record.batch
    return CRC_MISMATCH.finding(
        target,
        message=f"offset {record.offset}: the stored CRC-32 0x{record.crc:08x} of the inner message does not match",
        position=batch.position,
        size=batch.size,
        offset=first_offset(batch),
        actual=record.crc,
        next_offset=next_offset(batch),
        facts={"exactRepair": False, "marker": False},
    )


def not_checked(target: Target, reason: str) -> Finding:
    """Return the finding for a path that could not be read at all."""
    return UNREADABLE_BYTES.finding(target, message=reason, case="notChecked")


def unreadable_bytes(target: Target, source: Any) -> Iterator[Finding]:
    """Yield findings for the bytes that the device could not read, if the source of the file counts them."""
    for position, size in getattr(source, "unreadable", ()):
        message = f"the device cannot read {plain_count(size, 'byte')}"
        yield UNREADABLE_BYTES.finding(target, message=message, position=position, size=size)
