"""Formats batches and records as kafka-dump-log does.

Source: org.apache.kafka.tools.DumpLogSegments (printBatchLevel, dumpBatchRecords): what its lines contain, and in which
order. Numbers overflow as in Java, so that a damaged header looks the same."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol, Union, runtime_checkable

from kdump.core.record_columns import RecordColumns, each_header, each_row, headers
from kdump.format.batch_header import CONTROL, MAX_SEQUENCE, NO_SEQUENCE, TIMESTAMP_TYPE, TRANSACTIONAL, sequence
from kdump.format.codec_table import codec_name
from kdump.format.control_record import CONTROL_TYPES, decode_control
from kdump.format.numbers import int32, int64
from kdump.format.schema import load
from kdump.format.utf8 import java_text, java_texts
from kdump.format.versioned_messages import Decoded, kafka_json
from kdump.log.batch_records import decode_columns
from kdump.log.legacy_records import messages
from kdump.log.reading import Reading
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from kdump.log.skim import HEAD, Keep
from kdump.questions.dump_log.java import boolean, jackson, optional_long

LARGEST = (1 << 63) - 1
SIZE = struct.Struct(">i")
TOGETHER = 64 * 1024
"""Number of characters of old messages' lines that are written together."""
LONG = 1 << 20
"""Size in bytes of a record above which its line is written in pieces."""
PIECE = 1 << 18
"""Number of bytes decoded for one piece."""
MAX_HEADER_KEYS = 10_000
"""Maximum number of header keys in a piece."""
NAMES = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
"""kafka-dump-log's names for the control records of KRaft, including the colon after the first."""

Lines = Union["list[str]", Iterator[str]]
"""Some lines, or the pieces of one."""
Contents = Callable[[int, "bytes | None", "bytes | None"], "tuple[str | None, str | None]"]
"""Maps offset, key and value of a record to the text printed as its key and as its payload; None for nothing. Raises
Undecodable."""


@runtime_checkable
class StreamingDecoder(Protocol):
    """Contents of keys and values of any size, of which no copy is made. Raises Undecodable before the first piece."""

    def pieces(
        self, key: memoryview | None, value: memoryview | None, size: int
    ) -> tuple[Iterator[str] | None, Iterator[str] | None]: ...


class Undecodable(Exception):
    """The selected decoder cannot read a key or value; kafka-dump-log stops here."""


class RecordLineFormat:
    """How records are printed. `metadata`: offset, timestamp and so on; `contents`: key and payload, None for
    neither."""

    def __init__(
        self, metadata: bool, contents: Contents | None, report_undecodable: Callable[[int, str], None]
    ) -> None:
        self.metadata, self.contents = metadata, contents
        self.report_undecodable = report_undecodable
        """Called with the offset of a record that cannot be decoded, and the reason."""

    def shown(self, offset: int, key: bytes | None, value: bytes | None) -> str:
        """Return key and payload, to follow the metadata or, without metadata, the bar."""
        if self.contents is None:
            return ""
        prefix = " " if self.metadata else "| "
        try:
            key_text, payload = self.contents(offset, key, value)
        except Undecodable as error:
            self.report_undecodable(offset, str(error))
            return ""
        if key_text is None:
            return "" if payload is None else f"{prefix}payload: {payload}"
        if payload is None:
            return f"{prefix}key: {key_text}"
        return f"{prefix}key: {key_text} payload: {payload}"

    def in_pieces(self, offset: int, key: memoryview | None, value: memoryview | None) -> Iterator[str]:
        """Return what `shown` returns, in pieces."""
        if not isinstance(self.contents, StreamingDecoder):
            return iter((self.shown(offset, _bytes(key), _bytes(value)),))
        prefix = " " if self.metadata else "| "
        try:
            key_pieces, payload = self.contents.pieces(key, value, PIECE)
        except Undecodable as error:
            self.report_undecodable(offset, str(error))
            return iter(())
        parts: Iterable[str] = () if key_pieces is None else chain((f"{prefix}key: ",), key_pieces)
        if payload is not None:
            parts = chain(parts, (f"{prefix if key_pieces is None else ' '}payload: ",), payload)
        return iter(parts)


def _bytes(data: memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)


def _part(data: memoryview, start: int, size: int) -> memoryview | None:
    """Return a key or value; None for null."""
    return None if size < 0 else data[start : start + size]


class Attributes(NamedTuple):
    """The attributes of a v2 batch as they are printed."""

    transactional: str
    control: str
    kind: str
    codec: str


@lru_cache(256)
def _attributes(attributes: int) -> Attributes:
    return Attributes(
        boolean(bool(attributes & TRANSACTIONAL.mask)),
        boolean(bool(attributes & CONTROL.mask)),
        TIMESTAMP_TYPE.meanings[TIMESTAMP_TYPE.of(attributes)],
        codec_name(attributes & 0x07),
    )


def batch_line(batch: Batch) -> str:
    """Return the line of a batch, or of a message of v0 or v1."""
    if not isinstance(batch, DefaultRecordBatch):
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        return (
            f"offset: {batch.lastOffset} position: {batch.position} {batch.timestampType}: {timestamp}"
            f" size: {batch.size} magic: {batch.magic} compresscodec: {batch.compression} crc: {batch.crc}"
            f" isvalid: {boolean(batch.crcValid)}"
        )
    head = batch.header
    fields = _attributes(head.attributes)
    is_valid = batch.size >= batch.headerSize and batch.crcValid
    return (
        f"baseOffset: {head.baseOffset} lastOffset: {int64(head.lastOffset)} count: {head.recordCount}"
        f" baseSequence: {head.baseSequence} lastSequence: {_last_sequence(head.baseSequence, head.lastOffsetDelta)}"
        f" producerId: {head.producerId} producerEpoch: {head.producerEpoch}"
        f" partitionLeaderEpoch: {head.partitionLeaderEpoch} isTransactional: {fields.transactional}"
        f" isControl: {fields.control} deleteHorizonMs: {optional_long(head.deleteHorizonMs)}"
        f" position: {batch.position} {fields.kind}: {head.maxTimestamp} size: {batch.size} magic: {head.magic}"
        f" compresscodec: {fields.codec} crc: {head.crc} isvalid: {boolean(is_valid)}"
    )


def _last_sequence(base: int, delta: int) -> int:
    """DefaultRecordBatch.lastSequence, which only checks for -1."""
    return NO_SEQUENCE if base == NO_SEQUENCE else _increment(base, delta)


def _increment(base: int, delta: int) -> int:
    """DefaultRecordBatch.incrementSequence, also for invalid numbers."""
    if base > int32(MAX_SEQUENCE - delta):
        return int32(delta - (MAX_SEQUENCE - base) - 1)
    return int32(base + delta)


def record_lines(reading: Reading[Batch], form: RecordLineFormat) -> Iterator[tuple[Lines, list[int]]]:
    """Yield the lines of a batch's records, several at a time or one in pieces, with their offsets. Afterwards the
    reading has what cannot be decoded."""
    if isinstance(reading.batch, LegacyRecordBatch):
        yield from _legacy(reading, form)
    elif reading.batch.recordCount:  # Kafka does not decode a batch with a count of 0
        yield from _v2(reading, form)


def _v2(reading: Reading[Any], form: RecordLineFormat) -> Iterator[tuple[Lines, list[int]]]:
    batch: DefaultRecordBatch = reading.batch
    head = batch.header
    base_offset, base_timestamp, base_sequence = head.baseOffset, head.baseTimestamp, head.baseSequence
    control, kind, metadata = head.isControlBatch, head.timestampType, form.metadata
    appended = head.maxTimestamp if kind == "LogAppendTime" else None
    shown, silent = form.shown, form.contents is None
    keep = Keep(control, metadata, _is_shown) if silent or control else None
    for columns, _ in decode_columns(reading, keep=keep):
        lines: list[str] = []
        offsets: list[int] = []
        data = columns.data
        for row in each_row(columns):
            (start, end, _, timestamp_delta, delta, key_start, key_size, value_start, value_size, headers_at, count) = (
                row
            )
            offset = base_offset + delta
            if not -LARGEST <= offset <= LARGEST:
                offset = int64(offset)
            is_long = end - start > LONG or columns.skimmed
            line = ""
            if metadata:
                timestamp = base_timestamp + timestamp_delta if appended is None else appended
                if not -LARGEST <= timestamp <= LARGEST:
                    timestamp = int64(timestamp)
                keys = (
                    ",".join([java_text(key) for key, _ in headers(data, headers_at, count, end)])
                    if count and not is_long
                    else ""
                )
                number = (
                    sequence(base_sequence, delta)
                    if delta >= 0 or base_sequence < 0
                    else _increment(base_sequence, delta)
                )
                line = (
                    f"| offset: {offset} {kind}: {timestamp} keySize: {key_size} valueSize: {value_size}"
                    f" sequence: {number} headerKeys: [{keys}]"
                )
            if is_long:
                if lines:
                    yield lines, offsets
                    lines, offsets = [], []
                yield _long(form, columns, row, offset, line, control), [offset]
                continue
            if not silent or control:
                key = None if key_size < 0 else bytes(data[key_start : key_start + key_size])
                value = None if value_size < 0 else bytes(data[value_start : value_start + value_size])
                if not control:
                    line += shown(offset, key, value)
                elif metadata:
                    line += _control(form, offset, key, value)
            lines.append(line)
            offsets.append(offset)
        if lines:
            yield lines, offsets
        del columns, data  # which may be large


def _is_shown(key: bytes) -> bool:
    """Return True if the value of the control record with this key is printed, which is not one of six bytes."""
    kind = decode_control(key, None).type
    return kind in NAMES


def _long(
    form: RecordLineFormat, columns: RecordColumns, row: tuple[int, ...], offset: int, line: str, control: bool
) -> Iterator[str]:
    """Return the pieces of the line of a long record; `line` is its metadata without header keys."""
    (_, end, _, _, _, key_start, key_size, value_start, value_size, headers_at, count) = row
    data = memoryview(columns.data)
    if columns.skimmed:  # its headers are there if there is metadata
        end = len(data)
        key_start, value_start = 0, min(max(0, key_size), HEAD)
        value_size = min(value_size, headers_at - value_start)
    parts: list[Iterable[str]] = []
    if form.metadata:
        parts = [(line[:-1],), _header_keys(data, headers_at, count, end), ("]",)]
    key, value = _part(data, key_start, key_size), _part(data, value_start, value_size)
    if not control:
        if form.contents is not None:
            parts.append(form.in_pieces(offset, key, value))
    elif form.metadata:
        parts.append((_control(form, offset, _bytes(key), _bytes(value)),))
    return chain.from_iterable(parts)


def _header_keys(data: memoryview, position: int, count: int, end: int) -> Iterator[str]:
    """Yield the keys, separated by commas, in pieces of many keys."""
    gathered: list[str] = []
    size = 0
    comma = ""
    for key, _ in each_header(data, position, count, end):
        if gathered and (size + len(key) > PIECE or len(gathered) == MAX_HEADER_KEYS):
            yield comma + ",".join(gathered)
            gathered, size, comma = [], 0, ","
        if len(key) > PIECE:
            yield comma
            yield from java_texts(key, PIECE)
            comma = ","
        else:
            gathered.append(java_text(key))
            size += len(key)
    if gathered:
        yield comma + ",".join(gathered)


def _control(form: RecordLineFormat, offset: int, key: bytes | None, value: bytes | None) -> str:
    """Return the text of a control record."""
    control = decode_control(key, value)
    if control.problem is not None:
        form.report_undecodable(offset, f"control record {control.type}: {control.problem}")
        if control.typeId is None:
            return ""
    if control.type in ("COMMIT", "ABORT"):
        epoch = "" if control.coordinatorEpoch is None else f" coordinatorEpoch: {control.coordinatorEpoch}"
        return f" endTxnMarker: {control.type}{epoch}"
    name = NAMES.get(control.type)
    if name is None:
        return f" controlType: UNKNOWN({control.typeId})"
    if control.value is None or control.problem is not None:
        return f" {name}"
    schema = load(CONTROL_TYPES[control.typeId or 0].message)
    version = min(control.version or 0, schema.valid.highest)
    return f" {name} {jackson(kafka_json(schema, Decoded(control.value, version, 0, '', b'')))}"


def _legacy(reading: Reading[Any], form: RecordLineFormat) -> Iterator[tuple[Lines, list[int]]]:
    batch: LegacyRecordBatch = reading.batch
    if not batch.is_compressed:
        yield from _lone(batch, form)
        return
    lines: list[str] = []
    offsets: list[int] = []
    size = 0
    for record in messages(reading, values=form.contents is not None):
        offset = None if record.offset is None else int64(record.offset)
        sizes = (record.keySize, record.valueSize)
        line = _message_line(form, batch, offset, record.timestamp, sizes, bool(record.crcValid), record.crc)
        if form.contents is not None and record.end - record.start > LONG:
            if lines:
                yield lines, offsets
                lines, offsets, size = [], [], 0
            data = memoryview(record.data)
            key = _part(data, record.key_start, record.keySize)
            value = _part(data, record.value_start, record.valueSize)
            pieces = form.in_pieces(-1 if offset is None else offset, key, value)
            yield chain((line,), pieces), [] if offset is None else [offset]
            del record, data, key, value, pieces  # which may be large
            continue
        if form.contents is not None:
            line += form.shown(-1 if offset is None else offset, record.key, record.value)
        lines.append(line)
        if offset is not None:
            offsets.append(offset)
        size += len(line)
        if size > TOGETHER:
            yield lines, offsets
            lines, offsets, size = [], [], 0
    if lines:
        yield lines, offsets


def _lone(batch: LegacyRecordBatch, form: RecordLineFormat) -> Iterator[tuple[Lines, list[int]]]:
    """Yield the line of a message that is not a wrapper. Kafka does not check whether key and value fill it
    (LegacyRecord)."""
    try:
        key_size, value_at = _sized(batch, batch.header.headerSize - SIZE.size)
        value_size, end = _sized(batch, value_at)
        if end > batch.size:
            raise struct.error
    except struct.error:
        form.report_undecodable(batch.lastOffset, "the sizes of key and value exceed the message")
        return
    sizes = (key_size, value_size)
    line = _message_line(form, batch, batch.lastOffset, batch.maxTimestamp, sizes, batch.crcValid, batch.crc)
    if form.contents is None:
        yield [line], [batch.lastOffset]
        return
    content = bytearray()  # which is extended in place: pieces to be joined would be as much again
    for piece in batch.chunks(0, batch.size):
        content += piece
    data = memoryview(content)
    key, value = _part(data, value_at - key_size, key_size), _part(data, end - value_size, value_size)
    if batch.size > LONG:
        yield chain((line,), form.in_pieces(batch.lastOffset, key, value)), [batch.lastOffset]
    else:
        yield [line + form.shown(batch.lastOffset, _bytes(key), _bytes(value))], [batch.lastOffset]


def _sized(batch: LegacyRecordBatch, position: int) -> tuple[int, int]:
    """Return the size stored at `position`, and the end of the bytes that have this size. Raises struct.error."""
    (size,) = SIZE.unpack(b"".join(batch.chunks(position, SIZE.size)))
    return size, position + SIZE.size + max(0, size)


def _message_line(
    form: RecordLineFormat,
    batch: LegacyRecordBatch,
    offset: int | None,
    timestamp: int | None,
    sizes: tuple[int, int],
    is_valid: bool,
    crc: int | None,
) -> str:
    if not form.metadata:
        return ""
    return (
        f"| offset: {'unknown' if offset is None else offset} {batch.timestampType}:"
        f" {-1 if timestamp is None else timestamp} keySize: {sizes[0]} valueSize: {sizes[1]}"
        f" isValid: {boolean(is_valid)} crc: {crc}"
    )
