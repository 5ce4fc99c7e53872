"""Formats batches and records as kafka-dump-log 4.3 does.

Source: org.apache.kafka.tools.DumpLogSegments (printBatchLevel, dumpBatchRecords): what its lines contain, and in which
order. Numbers overflow as in Java, so that a damaged header looks the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from kdump.format.batch import (
    BATCH_HEADER,
    CONTROL,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    codec_name,
    sequence,
)
from kdump.format.columns import each_row, headers
from kdump.format.control import CONTROL_TYPES, decode_control
from kdump.format.messages import Decoded, kafka_json
from kdump.format.numbers import int32, int64
from kdump.format.schema import load
from kdump.format.utf8 import java_text
from kdump.log.legacy import messages
from kdump.log.payload import columns_of
from kdump.log.region import Batch, BatchLegacy, BatchV2
from kdump.render.java import boolean, jackson, optional_long

LARGEST = (1 << 63) - 1
SIZE = struct.Struct(">i")
TOGETHER = 64 * 1024
"""Number of characters of old messages' lines that are written together."""
NAMES = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
"""kafka-dump-log's names for the control records of KRaft, including the colon after the first."""

Contents = Callable[[int, "bytes | None", "bytes | None"], "tuple[str | None, str | None]"]
"""Maps offset, key and value of a record to the text printed as its key and as its payload; None for nothing. Raises
Undecodable."""


class Undecodable(Exception):
    """The selected decoder cannot read a key or value; kafka-dump-log stops here."""


class RecordLine:
    """How records are printed. `metadata`: offset, timestamp and so on; `contents`: key and payload, None for
    neither."""

    def __init__(self, metadata: bool, contents: Contents | None, refuse: Callable[[int, str], None]) -> None:
        self.metadata = metadata
        self.contents = contents
        self.refuse = refuse
        """Called with the offset of a record that cannot be decoded, and the reason."""

    def shown(self, offset: int, key: bytes | None, value: bytes | None) -> str:
        """Return key and payload, to follow the metadata or, without metadata, the bar."""
        if self.contents is None:
            return ""
        prefix = " " if self.metadata else "| "
        try:
            said, payload = self.contents(offset, key, value)
        except Undecodable as error:
            self.refuse(offset, str(error))
            return ""
        if said is None:
            return "" if payload is None else f"{prefix}payload: {payload}"
        if payload is None:
            return f"{prefix}key: {said}"
        return f"{prefix}key: {said} payload: {payload}"


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
    if not isinstance(batch, BatchV2):
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        return (
            f"offset: {batch.lastOffset} position: {batch.position} {batch.timestampType}: {timestamp}"
            f" size: {batch.size} magic: {batch.magic} compresscodec: {batch.compression} crc: {batch.crc}"
            f" isvalid: {boolean(batch.crcValid)}"
        )
    head = batch.header
    said = _attributes(head.attributes)
    sound = batch.size >= BATCH_HEADER.size and batch.crcValid
    return (
        f"baseOffset: {head.baseOffset} lastOffset: {int64(head.lastOffset)} count: {head.recordCount}"
        f" baseSequence: {head.baseSequence} lastSequence: {_last_sequence(head.baseSequence, head.lastOffsetDelta)}"
        f" producerId: {head.producerId} producerEpoch: {head.producerEpoch}"
        f" partitionLeaderEpoch: {head.partitionLeaderEpoch} isTransactional: {said.transactional}"
        f" isControl: {said.control} deleteHorizonMs: {optional_long(head.deleteHorizonMs)}"
        f" position: {batch.position} {said.kind}: {head.maxTimestamp} size: {batch.size} magic: {head.magic}"
        f" compresscodec: {said.codec} crc: {head.crc} isvalid: {boolean(sound)}"
    )


def _last_sequence(base: int, delta: int) -> int:
    """DefaultRecordBatch.lastSequence, which only checks for -1."""
    return NO_SEQUENCE if base == NO_SEQUENCE else _increment(base, delta)


def _increment(base: int, delta: int) -> int:
    """DefaultRecordBatch.incrementSequence, also for invalid numbers."""
    if base > int32(MAX_SEQUENCE - delta):
        return int32(delta - (MAX_SEQUENCE - base) - 1)
    return int32(base + delta)


def record_lines(batch: Batch, form: RecordLine) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the lines of a batch's records with their offsets, one piece at a time. Afterwards batch.problems has what
    cannot be decoded."""
    if isinstance(batch, BatchLegacy):
        yield from _legacy(batch, form)
    elif isinstance(batch, BatchV2) and batch.recordCount:  # Kafka does not decode a batch with a count of 0
        yield from _v2(batch, form)


def _v2(batch: BatchV2, form: RecordLine) -> Iterator[tuple[list[str], list[int]]]:
    head = batch.header
    base_offset, base_timestamp, base_sequence = head.baseOffset, head.baseTimestamp, head.baseSequence
    control, kind, metadata = head.isControlBatch, head.timestampType, form.metadata
    appended = head.maxTimestamp if kind == "LogAppendTime" else None
    shown, silent = form.shown, form.contents is None
    for columns, _ in columns_of(batch):
        lines, offsets = [], []
        data = columns.data
        for row in each_row(columns):
            (_, end, _, timestamp_delta, delta, key_start, key_size, value_start, value_size, at, count) = row
            offset = base_offset + delta
            if not -LARGEST <= offset <= LARGEST:
                offset = int64(offset)
            line = ""
            if metadata:
                timestamp = base_timestamp + timestamp_delta if appended is None else appended
                if not -LARGEST <= timestamp <= LARGEST:
                    timestamp = int64(timestamp)
                keys = ",".join([java_text(key) for key, _ in headers(data, at, count, end)]) if count else ""
                number = (
                    sequence(base_sequence, delta)
                    if delta >= 0 or base_sequence < 0
                    else _increment(base_sequence, delta)
                )
                line = (
                    f"| offset: {offset} {kind}: {timestamp} keySize: {key_size} valueSize: {value_size}"
                    f" sequence: {number} headerKeys: [{keys}]"
                )
            if not silent or control:
                key = None if key_size < 0 else bytes(data[key_start : key_start + key_size])
                value = None if value_size < 0 else bytes(data[value_start : value_start + value_size])
                if not control:
                    line += shown(offset, key, value)
                elif metadata:
                    line += _control(form, offset, key, value)
                key = value = None  # may be large
            lines.append(line)
            offsets.append(offset)
        yield lines, offsets


def _control(form: RecordLine, offset: int, key: bytes | None, value: bytes | None) -> str:
    """Return the text of a control record."""
    said = decode_control(key, value)
    if said.problem is not None:
        form.refuse(offset, f"control record {said.type}: {said.problem}")
        if said.typeId is None:
            return ""
    if said.type in ("COMMIT", "ABORT"):
        epoch = "" if said.coordinatorEpoch is None else f" coordinatorEpoch: {said.coordinatorEpoch}"
        return f" endTxnMarker: {said.type}{epoch}"
    name = NAMES.get(said.type)
    if name is None:
        return f" controlType: UNKNOWN({said.typeId})"
    if said.value is None or said.problem is not None:
        return f" {name}"
    schema = load(CONTROL_TYPES[said.typeId or 0].message)
    version = min(said.version or 0, schema.valid.highest)
    return f" {name} {jackson(kafka_json(schema, Decoded(said.value, version, 0, '', b'')))}"


def _legacy(batch: BatchLegacy, form: RecordLine) -> Iterator[tuple[list[str], list[int]]]:
    if not batch.is_compressed:
        yield from _lone(batch, form)
        return
    lines: list[str] = []
    offsets: list[int] = []
    size = 0
    for record in messages(batch, values=form.contents is not None):
        offset = None if record.offset is None else int64(record.offset)
        sizes = (record.keySize, record.valueSize)
        line = _message_line(form, batch, offset, record.timestamp, sizes, bool(record.crcValid), record.crc)
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


def _lone(batch: BatchLegacy, form: RecordLine) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the line of a message that is not a wrapper. Kafka does not check whether key and value fill it
    (LegacyRecord)."""
    data = b"".join(batch.chunks(0, batch.size))
    try:
        key_size, value_at = _sized(data, batch.header.headerSize - SIZE.size)
        value_size, end = _sized(data, value_at)
        if end > len(data):
            raise struct.error
    except struct.error:
        form.refuse(batch.lastOffset, "the sizes of key and value are beyond the message")
        return
    sizes = (key_size, value_size)
    line = _message_line(form, batch, batch.lastOffset, batch.maxTimestamp, sizes, batch.crcValid, batch.crc)
    if form.contents is not None:
        key = None if key_size < 0 else data[value_at - key_size : value_at]
        line += form.shown(batch.lastOffset, key, None if value_size < 0 else data[end - value_size : end])
    yield [line], [batch.lastOffset]


def _sized(data: bytes, position: int) -> tuple[int, int]:
    """Return the size stored at `position`, and the end of the bytes that have this size. Raises struct.error."""
    (size,) = SIZE.unpack_from(data, position)
    return size, position + SIZE.size + max(0, size)


def _message_line(
    form: RecordLine,
    batch: BatchLegacy,
    offset: int | None,
    timestamp: int | None,
    sizes: tuple[int, int],
    sound: bool,
    crc: int | None,
) -> str:
    if not form.metadata:
        return ""
    return (
        f"| offset: {'unknown' if offset is None else offset} {batch.timestampType}:"
        f" {-1 if timestamp is None else timestamp} keySize: {sizes[0]} valueSize: {sizes[1]}"
        f" isValid: {boolean(sound)} crc: {crc}"
    )
