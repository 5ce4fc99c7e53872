"""Family bytes: bytes that are not part of a valid batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kdump.check.advice import RECOVER_ONE, RESTORE, SAVE_RECORDS, SKIP, STOPS, TRUNCATES
from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding, codes_in
from kdump.format.batch_formats import format_of
from kdump.format.batch_header import BatchHeader
from kdump.format.count_text import plain_count
from kdump.format.legacy_message import MIN_MESSAGE_SIZE
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import PADDING, TORN, Batch, DefaultRecordBatch, Problem, Region

if TYPE_CHECKING:  # inspect needs no rules
    from kdump.check.rule import SegmentContext

UNCLEAN = "at the end of a log's last segment after an unclean shutdown: recovery truncates it"

APPENDS = (
    "recovery truncates these bytes; after a clean shutdown the broker appends after them, and consumers cannot reach "
    "what it appends"
)
EARLIER_TAIL = (
    "a read that reaches these bytes may fail; recovery of this segment truncates them, and deletes the segments after "
    "it"
)
# Each in docs/remedy-trials.json: torn-index-removed, tail-index-removed.
CUT_TAIL = (
    "First look for the missing records on another replica: if the log was longer before, its last records are lost "
    "here. In the last segment, start the broker after an unclean shutdown; after a clean one, "
    f"{RECOVER_ONE}. In an earlier segment, recovery would delete the later ones. {RESTORE}"
)

PREALLOCATED = (
    "If log.preallocate=true left the zeros in __consumer_offsets or __share_group_state: restart the brokers that "
    "have a replica, one after another, with log.preallocate=false; then elect the preferred leaders. While the groups "
    "are still served, set preallocate=false on the topic and lower its segment.ms until each replica has a new "
    "segment: that needs no restart. The committed offsets are not lost: kdump groups shows them"
)

CRC_MISMATCH = Code(
    code="crc-mismatch",
    family="bytes",
    severity=ERROR,
    meaning="The stored checksum (CRC-32C in magic 2, CRC-32 in 0 and 1) does not match the bytes.",
    consequence=f"{STOPS}; {TRUNCATES}",
    fix=f"{RESTORE}. {SAVE_RECORDS}. {SKIP}",
    source=(
        "DefaultRecordBatch.ensureValid, LegacyRecord.ensureValid, CompletedFetch, AbstractFetcherThread, "
        "LogSegment.recover"
    ),
)

BATCH_LENGTH_INVALID = Code(
    code="batch-length-invalid",
    family="bytes",
    severity=ERROR,
    meaning=(
        "The length is below the format's minimum (49 for a batch, 14 for a message), negative, or contradicted by "
        "the bytes after it."
    ),
    consequence=(
        "brokers and consumers look for the next batch at the wrong position: reads stop at offset {offset}, and a "
        "broker that encounters a length below 14 while loading the log exits; " + TRUNCATES
    ),
    fix=RESTORE,
    source="FileLogInputStream.nextBatch, ByteBufferLogInputStream.nextBatchSize",
)

BATCH_TRUNCATED = Code(
    code="batch-truncated",
    family="bytes",
    severity=ERROR,
    meaning="The last batch extends past the end of the file.",
    consequence=APPENDS,
    fix=CUT_TAIL,
    source="FileLogInputStream.nextBatch, LogSegment.recover",
    unless=f"warning {UNCLEAN}",
)

TRAILING_BYTES = Code(
    code="trailing-bytes",
    family="bytes",
    severity=ERROR,
    meaning="The file ends with fewer bytes than a batch header has.",
    consequence=APPENDS,
    fix=CUT_TAIL,
    source="FileLogInputStream.nextBatch, LogSegment.recover",
    unless=f"warning {UNCLEAN}",
)

JUNK_BYTES = Code(
    code="junk-bytes",
    family="bytes",
    severity=ERROR,
    meaning="Bytes between two valid batches, or after the last one, that belong to no batch.",
    consequence="reads stop before these bytes, and at startup the broker may end the log there; " + TRUNCATES,
    fix=f"{RESTORE}. kdump inspect shows the valid batches after these bytes",
    source="FileLogInputStream.nextBatch, LogSegment.recover",
)

ZERO_PADDING = Code(
    code="zero-padding",
    family="bytes",
    severity=ERROR,
    meaning="Zeros where a batch should start, left by preallocation or a lost write.",
    consequence=(
        "a broker that reads them while loading the log exits ('Found record size 0 smaller than minimum record "
        "overhead'), and reads stop before them; " + TRUNCATES
    ),
    fix=(
        f"If kdump inspect shows valid batches after the zeros, or the log was longer before: {RESTORE}. If the zeros "
        f"reach to the end of the last segment, {RECOVER_ONE}. {PREALLOCATED}"
    ),
    source="FileLogInputStream.nextBatch, LogSegment.recover, CoordinatorLoaderImpl (KAFKA-20841)",
    unless=(
        "info at the end of a log's last segment after an unclean shutdown: log.preallocate=true leaves them; warning "
        "there after batches of __consumer_offsets and __share_group_state: a broker that becomes the leader cannot "
        "load their groups"
    ),
)

MAGIC_UNKNOWN = Code(
    code="magic-unknown",
    family="bytes",
    severity=ERROR,
    meaning=(
        "Magic is not 0, 1 or 2, although a batch starts there, or not 2, although the checksum is that of a batch of "
        "magic 2."
    ),
    consequence=(
        "consumers stop at offset {offset} with a KafkaException, and followers retry there and leave the ISR; "
        "recovery keeps the batch if magic is above 2, because the checksum does not cover it, and truncates the log "
        "here otherwise"
    ),
    fix=RESTORE,
    source="FileLogInputStream.nextBatch, ByteBufferLogInputStream.nextBatchSize, LogSegment.recover",
)

OFFSET_INVALID = Code(
    code="offset-invalid",
    family="bytes",
    severity=ERROR,
    meaning="baseOffset or lastOffsetDelta is negative.",
    consequence=(
        "brokers and consumers compute wrong offsets at this batch; if it is the last one, the log end offset is wrong "
        "and the broker assigns offsets a second time"
    ),
    fix=RESTORE,
    source="DefaultRecordBatch, LogLoader.recoverSegment, LogSegment.readNextOffset",
)

UNREADABLE_BYTES = Code(
    code="unreadable-bytes",
    family="bytes",
    severity=ERROR,
    meaning="The device cannot read these bytes.",
    consequence=(
        "a fetch that includes these bytes ends in a closed connection, which consumers and followers retry without "
        "end; a broker that recovers the segment at startup exits; a failed write or flush takes the whole log "
        "directory offline"
    ),
    fix=(
        "First copy what is readable to another disk (ddrescue), then replace the disk. Do not start the broker on the "
        "failing disk"
    ),
    source="FileRecords.writeTo, RecordBatchIterator.makeNext, LogDirFailureChannel; read(2), EIO",
)


CODES = codes_in(globals())
"""The codes of this module: the reader notes some of them by name."""

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
    code = CODES[region.code]
    at_end = part.last and part.recovers is not False and region.end == end
    severity, consequence = ERROR, None
    if code is TRAILING_BYTES and not at_end:
        consequence = _short_tail(region, part)
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
        consequence=consequence,
    )


def _short_tail(region: Region, part: SegmentContext) -> str | None:
    """Return the impact of fewer bytes than a header has at the end of a segment, where it is not that of the code
    (FileLogInputStream.nextBatch, loadBatchWithSize; LogSegment.readNextOffset)."""
    if not part.last:
        return EARLIER_TAIL
    view = region.broker_view
    if view is None or view.header is None:
        return None
    if view.length < MIN_MESSAGE_SIZE:
        wrong, exception = f"length, {view.length}, is below {MIN_MESSAGE_SIZE}", "CorruptRecordException"
    elif view.header.size <= region.size and not format_of(view.header.magic).is_message:
        wrong, exception = f"length, {view.length}, is that of a batch without a complete header", "KafkaException"
    else:
        return None
    return (
        f"their {wrong}: a broker that loads the log after a clean shutdown exits ({exception}); recovery truncates "
        "these bytes"
    )


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
                )
    elif batch.lastOffset < 0:
        message = f"offset {batch.lastOffset} is negative"
        position, size = batch.position, batch.size
        yield OFFSET_INVALID.finding(target, message=message, position=position, size=size, offset=first_offset(batch))


OURS = "kdump could not decode it; whether a consumer can read it is unknown"
"""Impact if the cause is kdump's own limit or a missing library: brokers and consumers may read the batch."""


def problem_finding(code: Code, target: Target, batch: Batch, problem: Problem) -> Finding:
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
        consequence=OURS if problem.is_ours else None,
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


WRAPPER = f"consumers check the checksums of the messages inside it, not this one; {TRUNCATES}"
"""Source: CompletedFetch.maybeEnsureValid, LogSegment.recover."""


def crc_mismatch(target: Target, batch: Batch, looks_like: str = "") -> Finding:
    """Return the finding for a checksum that does not match. `looks_like`: clause that describes the probable
    damage."""
    message = f"stored {batch.format.crc_name} 0x{batch.crc:08x}, computed 0x{batch.computedCrc:08x}"
    consequence = WRAPPER if batch.format.is_message and batch.is_compressed else None
    return CRC_MISMATCH.finding(
        target,
        message=f"{message}: {looks_like}" if looks_like else message,
        position=batch.position,
        size=batch.size,
        offset=first_offset(batch),
        expected=batch.computedCrc,
        actual=batch.crc,
        consequence=consequence,
        next_offset=next_offset(batch),
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
    )


def not_checked(target: Target, reason: str) -> Finding:
    """Return the finding for a path that could not be read at all."""
    return UNREADABLE_BYTES.finding(target, message=reason, consequence="its contents were not checked")


def unreadable_bytes(target: Target, source: Any) -> Iterator[Finding]:
    """Yield findings for the bytes that the device could not read, if the source of the file counts them."""
    for position, size in getattr(source, "unreadable", ()):
        message = f"the device cannot read {plain_count(size, 'byte')}"
        yield UNREADABLE_BYTES.finding(target, message=message, position=position, size=size)
