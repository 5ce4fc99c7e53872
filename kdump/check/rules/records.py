"""Family records: problems inside a batch whose checksum matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kdump.check.finding import INFO, SEVERITIES, WARNING, Code, Finding, codes_in
from kdump.check.rules import bytes as byte_rules
from kdump.check.rules.bytes import (
    crc_mismatch,
    first_offset,
    inner_crc_mismatch,
    next_offset,
    offset_findings,
    problem_finding,
)
from kdump.core.record_checks import check_records, invalid_header
from kdump.core.record_columns import RecordColumns, headers
from kdump.format.batch_header import KNOWN_ATTRIBUTES
from kdump.format.control_record import CONTROL_TYPES, decode_control
from kdump.format.count_text import count_text, plain_count
from kdump.format.kafka_release import newer_text
from kdump.format.numbers import LONG_MAX, LONG_MIN, int64
from kdump.log import legacy_records
from kdump.log.batch_records import decode_columns, records
from kdump.log.batch_validity import undecoded_count_problem
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, Defect, LegacyRecordBatch
from kdump.problems.advice import has_case

if TYPE_CHECKING:  # inspect needs no rules
    from kdump.check.partition_context import PartitionContext
    from kdump.check.rule import SegmentContext
    from kdump.log.stored_verdicts import RecordVerdict

RECORD_COUNT_MISMATCH = Code("record-count-mismatch")
RECORD_MALFORMED = Code("record-malformed")
DECOMPRESSION_FAILED = Code("decompression-failed")
LZ4_FRAME_UNSUPPORTED = Code("lz4-frame-unsupported")
ATTRIBUTES_RESERVED = Code("attributes-reserved")
OFFSET_DELTA_INVALID = Code("offset-delta-invalid")
TIMESTAMP_MISMATCH = Code("timestamp-mismatch")
CONTROL_BATCH_INVALID = Code("control-batch-invalid")
PRODUCER_FIELDS_INVALID = Code("producer-fields-invalid")
HEADER_KEY_INVALID = Code("header-key-invalid")
SIZE_OVER_LIMIT = Code("size-over-limit")
MESSAGE_SET_INVALID = Code("message-set-invalid")
NULL_KEY_COMPACTED = Code("null-key-compacted")


CODES = {**byte_rules.CODES, **codes_in(globals())}
"""The codes that decoding may note by name."""

MARKERS = ("COMMIT", "ABORT")
Make = Callable[..., Finding]
Shown = TypeVar("Shown")


def findings(part: SegmentContext, context: PartitionContext, source: Batch | Reading[Any]) -> Iterator[Finding]:
    """Yield findings for the header and records of a valid batch, reading it once. Includes all problems that decoding
    notes: before, a valid batch has none."""
    target, reading = part.target, Reading.of(source)
    batch = reading.batch
    limit = context.max_message_bytes
    if limit is not None and batch.size > limit:
        message = f"{plain_count(batch.size, 'byte')}, but max.message.bytes is {limit}"
        yield _found(target, batch, SIZE_OVER_LIMIT, message=message, expected=limit)
    keyed = bool(context.compacted)
    if batch.known.records is not None:
        yield from _stored(target, reading, batch.known.records, keyed=keyed)
    else:
        yield from decoded_findings(target, reading, keyed=keyed)
    for problem in reading.problems:
        yield _noted(target, batch, problem)


def _stored(target: Target, reading: Reading[Batch], judged: RecordVerdict, *, keyed: bool) -> Iterator[Finding]:
    """Yield the findings of a verdict, and note its problems."""
    reading.note(*judged.problems)
    for stored in judged.findings:
        code = CODES.get(stored.code)
        if code is None or stored.severity not in SEVERITIES or (code is NULL_KEY_COMPACTED and not keyed):
            continue
        values = stored._asdict()
        del values["code"]
        if not has_case(code.code, stored.case):
            values["case"] = ""
        yield code.finding(target, next_offset=next_offset(reading.batch), **values)


def decoded_findings(target: Target, reading: Reading[Any], *, keyed: bool) -> Iterator[Finding]:
    """Decode a valid batch and yield the findings about its header and records, but those about limits, and for the
    problems noted then. `keyed`: a null key is a finding."""
    batch = reading.batch
    make: Make = partial(_found, target, batch)
    if isinstance(batch, DefaultRecordBatch):
        yield from _header(make, batch)
        yield from _control(target, make, reading) if batch.isControlBatch else _data(make, reading, keyed=keyed)
    elif isinstance(batch, LegacyRecordBatch):
        yield from _messages(target, make, reading, keyed=keyed)


def _found(target: Target, batch: Batch, code: Code, *, offset: int | None = None, **more: Any) -> Finding:
    first = first_offset(batch) if offset is None else offset
    after = next_offset(batch)
    return code.finding(target, position=batch.position, size=batch.size, offset=first, next_offset=after, **more)


def _header(make: Make, batch: DefaultRecordBatch) -> Iterator[Finding]:
    unknown = batch.attributes & 0xFFFF & ~KNOWN_ATTRIBUTES
    if unknown:
        yield make(
            ATTRIBUTES_RESERVED,
            message=f"attributes 0x{batch.attributes & 0xFFFF:04x}: reserved bits 0x{unknown:04x} set",
            wrong_field="attributes",
        )
    header = batch.header
    fields = f"producerId {header.producerId}, producerEpoch {header.producerEpoch}, baseSequence {header.baseSequence}"
    if header.producerId < 0:
        if header.isTransactional:
            message = f"producerId of a transactional batch is missing: {fields}"
            yield make(PRODUCER_FIELDS_INVALID, message=message, facts={"noSequence": False}, wrong_field="producerId")
    elif header.producerEpoch < 0:
        message = f"producerEpoch of a batch with a producer ID is missing: {fields}"
        yield make(PRODUCER_FIELDS_INVALID, message=message, facts={"noSequence": False}, wrong_field="producerEpoch")
    elif header.baseSequence < 0 and not header.isControlBatch:
        message = f"baseSequence of a data batch with a producer ID is missing: {fields}"
        yield make(PRODUCER_FIELDS_INVALID, message=message, facts={"noSequence": True}, wrong_field="baseSequence")


def _data(make: Make, reading: Reading[DefaultRecordBatch], *, keyed: bool) -> Iterator[Finding]:
    batch = reading.batch
    last = -1
    largest = None
    reserved = unkeyed = misplaced = 0
    first_unkeyed = 0
    bad_header: tuple[int, str] | None = None
    end = batch.lastOffsetDelta or 0
    for columns, _ in decode_columns(reading, keys=False, values=False):
        seen = check_records(columns, last, end, batch.header.baseTimestamp)
        if seen.misplaced and not misplaced:
            delta, previous = seen.wrong_delta, seen.wrong_previous
            reason = (
                "is negative"
                if delta < 0
                else f"follows {previous}"
                if delta <= previous
                else f"is above lastOffsetDelta {end}"
            )
            yield make(OFFSET_DELTA_INVALID, message=f"offsetDelta {delta} {reason}", actual=delta)
        misplaced += seen.misplaced
        last = seen.last
        largest = seen.largest_timestamp if largest is None else max(largest, seen.largest_timestamp)
        reserved += seen.reserved
        if keyed and seen.unkeyed:
            first_unkeyed = first_unkeyed if unkeyed else seen.first_unkeyed
            unkeyed += seen.unkeyed
        if bad_header is None:
            bad_header = _bad_header(columns)
    base = batch.header.baseOffset
    if reserved:
        yield make(
            ATTRIBUTES_RESERVED, message=f"{count_text(reserved, 'record')} with attributes other than 0", severity=INFO
        )
    if unkeyed:
        yield make(
            NULL_KEY_COMPACTED,
            message=f"{count_text(unkeyed, 'record')} without a key",
            offset=int64(base + first_unkeyed),
        )
    if bad_header is not None:
        delta, reason = bad_header
        yield make(HEADER_KEY_INVALID, message=reason, offset=int64(base + delta), severity=WARNING, case="notText")
    if largest is None or reading.problems or batch.timestampType == "LogAppendTime":
        return
    expected = max(-1, largest)  # brokers and clients start from -1, no timestamp
    if expected != batch.maxTimestamp:
        message = f"maxTimestamp is {batch.maxTimestamp}, but the largest timestamp of its records is {largest}"
        compared = _compared(expected, batch.maxTimestamp)
        yield make(TIMESTAMP_MISMATCH, message=message, wrong_field="maxTimestamp", **compared)


def _compared(expected: int, stated: int | None) -> dict[str, Any]:
    return {"expected": expected, "actual": stated, "facts": {"expiresEarly": stated is not None and stated < expected}}


def _bad_header(columns: RecordColumns) -> tuple[int, str] | None:
    """Return the offsetDelta of the first record with a header key that is not UTF-8 or contains a null character, and
    the reason; None if there is none."""
    if columns.skimmed:
        return (columns.offset_delta[0], columns.header_problem) if columns.header_problem else None
    i = -1
    while (i := invalid_header(columns, i + 1)) < len(columns):
        for key, _ in headers(columns.data, columns.headers_start[i], columns.headers_count[i], columns.end[i]):
            if b"\0" in key:
                return columns.offset_delta[i], "a header key with a null character"
            try:
                key.decode()
            except UnicodeDecodeError:
                return columns.offset_delta[i], f"a header key of {plain_count(len(key), 'byte')} that is not UTF-8"
    return None


def _control(target: Target, make: Make, reading: Reading[DefaultRecordBatch]) -> Iterator[Finding]:
    count = 0
    markers = False
    for record in records(reading, values=False):
        count += 1
        yield from record_findings(target, record)
        control = decode_control(record.key, record.value)
        markers = markers or control.type in MARKERS
        if control.problem is None and control.typeId is not None and control.typeId not in CONTROL_TYPES:
            message = newer_text("control record of type", control.typeId, None)
            if reading.batch.isTransactional:  # ProducerAppendInfo.append treats it as an end marker
                yield make(CONTROL_BATCH_INVALID, message=message, case="unknownInTransaction")
            else:
                yield make(CONTROL_BATCH_INVALID, message=message, severity=INFO, case="unknownType")
    if markers and count > 1:
        message = f"{plain_count(count, 'record')} in the batch of a transaction marker, expected 1"
        yield make(CONTROL_BATCH_INVALID, message=message, severity=WARNING, case="several")


def _messages(target: Target, make: Make, reading: Reading[LegacyRecordBatch], *, keyed: bool) -> Iterator[Finding]:
    batch = reading.batch
    last = largest = None
    repeated: tuple[int, int] | None = None  # the first offset that is not above an earlier one, and that one
    highest = LONG_MIN
    count = unkeyed = 0
    other_magic: int | None = None
    ordinary = legacy_records.plain_messages(reading)
    if ordinary is not None:
        seen = check_records(ordinary, LONG_MIN, LONG_MAX, 0)
        if seen.misplaced:
            base = batch.inner_base or 0
            repeated = int64(seen.wrong_delta + base), int64(seen.wrong_previous + base)
        last, count, unkeyed = int64(ordinary.offset_delta[-1] + (batch.inner_base or 0)), len(ordinary), seen.unkeyed
        largest = seen.largest_timestamp if batch.magic else None
    for record in legacy_records.messages(reading, keys=False, values=False) if ordinary is None else ():
        count += 1
        yield from record_findings(target, record)
        last = record.offset
        if last is not None:
            if last <= highest and repeated is None:
                repeated = last, highest
            highest = max(highest, last)
        if record.timestamp is not None:
            largest = record.timestamp if largest is None else max(largest, record.timestamp)
        if record.magic != batch.magic:
            other_magic = record.magic
        unkeyed += record.keySize < 0
    if keyed and unkeyed:
        yield make(NULL_KEY_COMPACTED, message=f"{count_text(unkeyed, 'message')} without a key")
    if not batch.is_compressed:
        yield from _message_attributes(make, batch)
        return
    if repeated is not None:
        message = f"the inner offset {repeated[0]} follows {repeated[1]}"
        yield make(OFFSET_DELTA_INVALID, message=message, actual=repeated[0], case="skipped")
    mild = {"severity": WARNING, "case": "ignored"}
    if batch.header.keySize >= 0:
        yield make(MESSAGE_SET_INVALID, message="a wrapper with a key", wrong_field="keySize", **mild)
    if other_magic is not None:
        yield make(
            MESSAGE_SET_INVALID,
            message=f"a message of magic {other_magic} inside a wrapper of magic {batch.magic}",
            **mild,
        )
    if reading.problems or not count:
        return
    if not batch.format.has_timestamp and last != batch.lastOffset:
        message = f"the wrapper's offset is {batch.lastOffset}, but the last inner offset is {last}"
        compared = {"expected": last, "actual": batch.lastOffset}
        yield make(MESSAGE_SET_INVALID, message=message, wrong_field="offset", **compared, **mild)
    if batch.timestampType == "CreateTime" and other_magic is None and largest is not None:
        expected = max(-1, largest)
        if expected != batch.maxTimestamp:
            message = f"the wrapper's timestamp is {batch.maxTimestamp}, but the largest of its messages is {largest}"
            compared = _compared(expected, batch.maxTimestamp)
            yield make(TIMESTAMP_MISMATCH, message=message, wrong_field="timestamp", **compared)


def _message_attributes(make: Make, batch: LegacyRecordBatch) -> Iterator[Finding]:
    if not batch.is_compressed and batch.attributes & ~0x0F:
        message = f"attributes 0x{batch.attributes & 0xFF:02x}: reserved bits set"
        yield make(ATTRIBUTES_RESERVED, message=message, wrong_field="attributes")


def noted_findings(target: Target, source: Batch | Reading[Any]) -> Iterator[Finding]:
    """Yield findings for a checksum that does not match and for the problems that a reading has noted so far."""
    reading = Reading.of(source)
    batch = reading.batch
    if not batch.crcValid and not batch.is_torn:
        yield crc_mismatch(target, batch)
    for problem in reading.problems:
        yield _noted(target, batch, problem)


def with_findings(
    target: Target, reading: Reading[Any], records: Iterable[Shown], on_finding: Callable[[Finding], object]
) -> Iterator[Shown]:
    """Yield the records of a batch that are shown, or columns of them, and call `on_finding` with the findings about
    them and their batch: with what is known before its records are read, after a record with those about it, and at
    the end with what reading them has noted."""
    known = 0
    if reading.problems or not reading.batch.crcValid:
        known = len(reading.problems)
        for finding in noted_findings(target, reading):
            on_finding(finding)
    for record in records:
        yield record
        if isinstance(record, Record) and (record.crc is not None or record.is_control):
            for finding in record_findings(target, record):
                on_finding(finding)
    for problem in reading.problems[known:]:
        on_finding(_noted(target, reading.batch, problem))
    for finding in count_findings(target, reading):
        on_finding(finding)


def noted_and_count_findings(target: Target, batch: Batch | Reading[Batch]) -> Iterator[Finding]:
    """Yield findings for the checksum, for the problems that a reading has noted so far, and for a record count that
    cannot be true."""
    yield from noted_findings(target, batch)
    yield from count_findings(target, batch)


def count_findings(target: Target, batch: Batch | Reading[Batch]) -> Iterator[Finding]:
    """Yield a finding for a record count that cannot be true, unless a reading has noted a problem with the count."""
    reading = Reading.of(batch)
    problem = undecoded_count_problem(reading.batch, reading.problems)
    if problem is not None:
        yield _noted(target, reading.batch, problem)


def header_findings(target: Target, batch: Batch) -> Iterator[Finding]:
    """Yield the findings about a batch that its header, its checksum and, once read, the contents of a wrapper show,
    without decoding its records."""
    reading = Reading(batch)
    reading.note(*batch.problems)
    yield from noted_and_count_findings(target, reading)
    yield from offset_findings(target, batch)
    if batch.crcValid:
        make: Make = partial(_found, target, batch)
        if isinstance(batch, DefaultRecordBatch):
            yield from _header(make, batch)
        elif isinstance(batch, LegacyRecordBatch):
            yield from _message_attributes(make, batch)


def _noted(target: Target, batch: Batch, problem: Defect) -> Finding:
    return problem_finding(CODES[problem.code], target, batch, problem)


def record_findings(target: Target, record: Record) -> Iterator[Finding]:
    """Yield findings for a single record: the checksum of an inner message, a control record that does not decode."""
    batch = record.batch
    if record.crcValid is False and batch.is_compressed:
        yield inner_crc_mismatch(target, record)
    if not record.is_control:
        return
    control = decode_control(record.key, record.value)
    is_marker = control.type in ("COMMIT", "ABORT")  # their value has six bytes
    if control.problem is not None and (is_marker or not record.is_cut):
        problem = control.problem
        yield CODES[problem.code].finding(
            target,
            message=f"offset {record.offset}: {problem.struct}.{problem.field}: {problem.reason}",
            position=batch.position,
            size=batch.size,
            offset=first_offset(batch),
        )
