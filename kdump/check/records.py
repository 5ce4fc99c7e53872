"""Family records: problems inside a batch whose checksum matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kdump.check.batch import batch_finding, first_offset, record_findings
from kdump.check.catalogue import INFO, WARNING
from kdump.check.finding import Finding, found
from kdump.check.rule import PartitionContext, SegmentContext
from kdump.format.batch import BATCH_ATTRIBUTES
from kdump.format.control import CONTROL_TYPES, decode_control
from kdump.format.count_text import count_text
from kdump.format.numbers import int64
from kdump.format.record_columns import RecordColumns, check_records, headers, invalid_header
from kdump.log import legacy_records
from kdump.log.batch_records import decode_columns, records
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch

KNOWN_BITS = sum(bits.mask for bits in BATCH_ATTRIBUTES)
MARKERS = ("COMMIT", "ABORT")
Make = Callable[..., Finding]


def findings(part: SegmentContext, known: PartitionContext, batch: Batch) -> Iterator[Finding]:
    """Yield findings for the header and records of a valid batch, reading it once. Includes all problems noted in the
    batch: before decoding, a valid batch has none."""
    make: Make = partial(_found, part, batch)
    limit = known.max_message_bytes
    if limit is not None and batch.size > limit:
        yield make("size-over-limit", f"{batch.size} bytes, but max.message.bytes is {limit}", expected=limit)
    if isinstance(batch, DefaultRecordBatch):
        yield from _header(make, batch)
        yield from _control(part, make, batch) if batch.isControlBatch else _data(make, known, batch)
    elif isinstance(batch, LegacyRecordBatch):
        yield from _messages(part, make, known, batch)
    for problem in batch.problems:
        yield batch_finding(part.target, batch, problem)


def _found(
    part: SegmentContext, batch: Batch, code: str, message: str, offset: int | None = None, **more: object
) -> Finding:
    at = first_offset(batch) if offset is None else offset
    return found(code, part.target, message, position=batch.position, size=batch.size, offset=at, **more)  # type: ignore[arg-type]


def _header(make: Make, batch: DefaultRecordBatch) -> Iterator[Finding]:
    unknown = batch.attributes & 0xFFFF & ~KNOWN_BITS
    if unknown:
        yield make(
            "attributes-reserved", f"attributes 0x{batch.attributes & 0xFFFF:04x}: reserved bits 0x{unknown:04x} set"
        )
    header = batch.header
    said = f"producerId {header.producerId}, producerEpoch {header.producerEpoch}, baseSequence {header.baseSequence}"
    if header.producerId < 0:
        if header.isTransactional:
            yield make("producer-fields-invalid", f"a transactional batch without a producer ID: {said}")
    elif header.producerEpoch < 0:
        yield make("producer-fields-invalid", f"a batch with a producer ID, but without an epoch: {said}")
    elif header.baseSequence < 0 and not header.isControlBatch:
        yield make("producer-fields-invalid", f"a data batch with a producer ID, but without a sequence: {said}")


def _data(make: Make, known: PartitionContext, batch: DefaultRecordBatch) -> Iterator[Finding]:
    last = -1
    largest = None
    reserved = unkeyed = misplaced = 0
    first_unkeyed = 0
    bad_header: tuple[int, str] | None = None
    end = batch.lastOffsetDelta or 0
    for columns, _ in decode_columns(batch, keys=False, values=False):
        seen = check_records(columns, last, end, batch.header.baseTimestamp)
        if seen.misplaced and not misplaced:
            delta, behind = seen.wrong_delta, seen.wrong_behind
            reason = (
                "is negative"
                if delta < 0
                else f"follows {behind}"
                if delta <= behind
                else f"is above lastOffsetDelta {end}"
            )
            yield make("offset-delta-invalid", f"offsetDelta {delta} {reason}", actual=delta)
        misplaced += seen.misplaced
        last = seen.last
        largest = seen.largest_timestamp if largest is None else max(largest, seen.largest_timestamp)
        reserved += seen.reserved
        if known.compacted and seen.unkeyed:
            first_unkeyed = first_unkeyed if unkeyed else seen.first_unkeyed
            unkeyed += seen.unkeyed
        if bad_header is None:
            bad_header = _bad_header(columns)
    base = batch.header.baseOffset
    if reserved:
        yield make(
            "attributes-reserved", f"{count_text(reserved, 'record')} with attributes other than 0", severity=INFO
        )
    if unkeyed:
        yield make(
            "null-key-compacted", f"{count_text(unkeyed, 'record')} without a key", offset=int64(base + first_unkeyed)
        )
    if bad_header is not None:
        delta, reason = bad_header
        yield make("header-key-invalid", reason, offset=int64(base + delta), severity=WARNING, consequence=NOT_TEXT)
    if largest is None or batch.problems or batch.timestampType == "LogAppendTime":
        return
    expected = max(-1, largest)  # brokers and clients start from -1, no timestamp
    if expected != batch.maxTimestamp:
        message = f"maxTimestamp is {batch.maxTimestamp}, but the largest timestamp of its records is {largest}"
        yield make("timestamp-mismatch", message, expected=expected, actual=batch.maxTimestamp)


FIRST_ONLY = "brokers and consumers read the first record of such a batch and ignore the others"
NOT_TEXT = "consumers receive the key with U+FFFD or a null character in it"


def _bad_header(columns: RecordColumns) -> tuple[int, str] | None:
    """Return the offsetDelta of the first record with a header key that is not UTF-8 or contains a null character, and
    the reason; None if there is none."""
    if columns.skimmed:
        return (columns.offset_delta[0], columns.odd) if columns.odd else None
    i = -1
    while (i := invalid_header(columns, i + 1)) < len(columns):
        for key, _ in headers(columns.data, columns.headers_start[i], columns.headers_count[i], columns.end[i]):
            if b"\0" in key:
                return columns.offset_delta[i], "a header key with a null character"
            try:
                key.decode()
            except UnicodeDecodeError:
                return columns.offset_delta[i], f"a header key that is not UTF-8: 0x{key[:32].hex()}"
    return None


def _control(part: SegmentContext, make: Make, batch: DefaultRecordBatch) -> Iterator[Finding]:
    count = 0
    markers = False
    for record in records(batch, values=False):
        count += 1
        yield from record_findings(part.target, record)
        control = decode_control(record.key, record.value)
        markers = markers or control.type in MARKERS
        if control.problem is None and control.typeId is not None and control.typeId not in CONTROL_TYPES:
            message = f"control record of type {control.typeId}, which is not a type of Kafka 4.3"
            if batch.isTransactional:  # ProducerAppendInfo.append treats it as an end marker
                consequence = "a broker that rebuilds its producer state from it exits (IllegalArgumentException)"
                yield make("control-batch-invalid", message, consequence=consequence)
            else:
                yield make("control-batch-invalid", message, severity=INFO, consequence="brokers and consumers skip it")
    if markers and count > 1:
        message = f"{count} records in the batch of a transaction marker, expected 1"
        yield make("control-batch-invalid", message, severity=WARNING, consequence=FIRST_ONLY)


def _messages(part: SegmentContext, make: Make, known: PartitionContext, batch: LegacyRecordBatch) -> Iterator[Finding]:
    last = largest = None
    count = unkeyed = 0
    other_magic: int | None = None
    ordinary = batch.inner if batch.looked_inside and not batch.problems else None
    if ordinary is not None:
        seen = check_records(ordinary, 0, 0, 0)
        last, count, unkeyed = int64(ordinary.offset_delta[-1] + (batch.inner_base or 0)), len(ordinary), seen.unkeyed
        largest = seen.largest_timestamp if batch.magic else None
    for record in legacy_records.messages(batch, keys=False, values=False) if ordinary is None else ():
        count += 1
        yield from record_findings(part.target, record)
        last = record.offset
        if record.timestamp is not None:
            largest = record.timestamp if largest is None else max(largest, record.timestamp)
        if record.magic != batch.magic:
            other_magic = record.magic
        unkeyed += record.keySize < 0
    if known.compacted and unkeyed:
        yield make("null-key-compacted", f"{count_text(unkeyed, 'message')} without a key")
    if not batch.is_compressed:
        if batch.attributes & ~0x0F:
            yield make("attributes-reserved", f"attributes 0x{batch.attributes & 0xFF:02x}: reserved bits set")
        return
    mild = {"severity": WARNING, "consequence": "current brokers and consumers use the inner messages and ignore it"}
    if batch.header.keySize >= 0:
        yield make("message-set-invalid", "a wrapper with a key", **mild)
    if other_magic is not None:
        yield make(
            "message-set-invalid", f"a message of magic {other_magic} inside a wrapper of magic {batch.magic}", **mild
        )
    if batch.problems or not count:
        return
    if batch.magic == 0 and last != batch.lastOffset:
        message = f"the wrapper's offset is {batch.lastOffset}, but the last inner offset is {last}"
        yield make("message-set-invalid", message, expected=last, actual=batch.lastOffset, **mild)
    if batch.magic == 1 and batch.timestampType == "CreateTime" and other_magic is None and largest is not None:
        expected = max(-1, largest)
        if expected != batch.maxTimestamp:
            message = f"the wrapper's timestamp is {batch.maxTimestamp}, but the largest of its messages is {largest}"
            yield make("timestamp-mismatch", message, expected=expected, actual=batch.maxTimestamp)
