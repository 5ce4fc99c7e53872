"""Decodes a message of format v0 or v1: itself or, for a wrapper, the compressed messages in its value; a large one
without its value, as log.skim reads a record of v2.

Source: org.apache.kafka.common.record.AbstractLegacyRecordBatch.DeepRecordsIterator. Inner offsets are absolute in v0
and relative to the first in v1, where the wrapper's own offset is that of the last one (KIP-31), so the first is known
only after reading the whole wrapper. A wrapper with LogAppendTime passes its timestamp to all inner messages (KIP-32).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from kdump.core.message_set import read_message_set
from kdump.core.record_columns import RecordColumns, each_row
from kdump.format.batch_header import LOG_OVERHEAD
from kdump.format.codec import decompress
from kdump.format.codec_table import BY_NAME
from kdump.format.count_text import plain_count
from kdump.format.errors import BATCH_LENGTH_INVALID, IN_CODEC, MESSAGE_SET_INVALID, DecodeError
from kdump.format.legacy_message import (
    CRC_START,
    MAGIC_POSITION,
    MESSAGES,
    VALUE_SIZE,
    Body,
    MessageHeader,
    body,
    body_of,
    key_problem,
    read_header,
    size_problem,
)
from kdump.format.numbers import int64
from kdump.format.varint import Bytes
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, Defect, LegacyRecordBatch, WrapperContents
from kdump.log.skim import HEAD, hasher

KEEP = 4 * 1024 * 1024
"""Maximum size in bytes of decompressed messages that are kept between the pass that finds the offsets and the pass
that yields; a larger wrapper is decompressed twice, so that memory does not grow with it."""

LONE = 16 * 1024
"""Maximum size in bytes of a message outside of a wrapper that is read as columns: the checksum of a larger one takes
longer than that saves."""


def messages(source: Batch | Reading[Any], *, keys: bool = True, values: bool = True) -> Iterator[Record]:
    """Yield the inner messages of a wrapper, or the message itself. Problems are added to the reading, if one is
    passed.

    Without `values`, a large message is yielded without its value; without `keys` as well, also without its key. No
    memory is used for them."""
    reading = Reading.of(source)
    batch = reading.batch
    assert isinstance(batch, LegacyRecordBatch)
    if not batch.is_compressed:
        yield from _lone(reading) if values or batch.size <= KEEP else _skimmed_lone(reading, keys)
        return
    kept = read_wrapper(reading)
    if batch.recordCount is None:
        return
    if batch.inner is not None and not reading.problems:
        yield from messages_of(batch, batch.inner)
        return
    base = batch.inner_base
    has_offsets = not any(problem.space or problem.code != BATCH_LENGTH_INVALID for problem in reading.problems)
    for index, (header, inner, data, start, space) in enumerate(kept or _inner(reading, keys, values)):
        record = _record(batch, header, inner, data, start, space)
        record.index = index
        if batch.format.has_timestamp:
            record.offset = int64(base + header.offset) if base is not None and has_offsets else None
            if header.timestamp is not None and batch.timestampType == "LogAppendTime":
                record.timestamp, record.timestampType = batch.maxTimestamp, batch.timestampType
        yield record


def read_wrapper(source: LegacyRecordBatch | Reading[Any]) -> list[Inner] | None:
    """Set what a wrapper contains, by reading it once, and add its problems to the reading, if one is passed. Return
    its messages, if it was read now and they are small."""
    reading = Reading.of(source)
    batch: LegacyRecordBatch = reading.batch
    if not batch.is_compressed:
        return None
    kept = None
    if batch.contents is None:
        batch.contents = batch.known.contents
        if batch.contents is None:
            batch.inner, inside = _columns(batch), Reading(batch)
            batch.contents, kept = _read_inside(inside, batch.inner)
            batch.ignored = inside.ignored
        batch.baseOffset, batch.recordCount, batch.inner_base, batch.inner_last, _ = batch.contents
    reading.ignored = batch.ignored
    reading.note(*batch.contents.problems)
    return kept


def _read_inside(
    reading: Reading[LegacyRecordBatch], columns: RecordColumns | None
) -> tuple[WrapperContents, list[Inner] | None]:
    """Return what a wrapper contains, and its messages, if they are small and not in the columns."""
    batch = reading.batch
    kept: list[Inner] | None = []
    size = count = 0
    first = last = base = inner_base = inner_last = None
    if columns is not None:
        offsets = columns.offset_delta
        kept, first, last, count = None, offsets[0], offsets[-1], len(columns)
    for item in _inner(reading, False, False) if columns is None else ():
        first = item[0].offset if first is None else first
        last = item[0].offset
        count += 1
        size += item[0].size
        if size > KEEP:  # and this one may have no value
            kept = None
        elif kept is not None:
            kept.append(item)
    is_unknown = first is None and bool(reading.problems)
    if first is None or last is None:
        if not reading.problems:
            reason = "a wrapper without messages"
            reading.note(Defect(MESSAGE_SET_INVALID, "Message", "value", batch.position, reason))
    elif not batch.format.has_timestamp:
        base, inner_last = first, last
    elif 0 < batch.lastOffset < last:
        reason = f"the last inner offset {last} is above the wrapper's offset {batch.lastOffset}"
        reading.note(Defect(MESSAGE_SET_INVALID, "Message", "offset", batch.position, reason))
    else:
        # Old versions of librdkafka wrote a wrapper offset of 0; Kafka then treats the inner offsets as absolute.
        inner_base = int64(batch.lastOffset - last) if batch.lastOffset else 0
        complete = not any(problem.space for problem in reading.problems)
        base = int64(inner_base + first) if complete else None
    problems = tuple(reading.problems[len(batch.header_problems) :])
    return WrapperContents(base, None if is_unknown else count, inner_base, inner_last, problems), kept


def plain_messages(source: LegacyRecordBatch | Reading[Any]) -> RecordColumns | None:
    """Return the messages of a wrapper, or the message itself, as columns; None if one is large or unusual. Reads a
    wrapper as read_wrapper does."""
    batch: LegacyRecordBatch = Reading.of(source).batch
    if batch.is_compressed:
        read_wrapper(source)
    elif batch.contents is None and batch.size <= LONE and not batch.lacks:
        batch.contents = WrapperContents(batch.baseOffset, 1, None, None, ())
        batch.inner = read_message_set(b"".join(batch.chunks(0, batch.size)), batch.magic)
        if batch.inner is not None:
            batch._computed = batch.crc
    return None if batch.problems else batch.inner


def contents_of(batch: LegacyRecordBatch) -> WrapperContents:
    """Return what reading a wrapper shows."""
    read_wrapper(batch)
    assert batch.contents is not None
    return batch.contents


def _columns(batch: LegacyRecordBatch) -> RecordColumns | None:
    """Return the messages of a small wrapper in which nothing is unusual; None for any other."""
    from kdump.format.codec.decompress_small import SMALL, decompress_small

    try:
        bounds = value_bounds(batch)
    except DecodeError:
        return None
    if not 0 < bounds.valueSize <= SMALL:
        return None
    value = b"".join(batch.chunks(bounds.valuePosition, bounds.valueSize))
    payload = decompress_small(batch.compression, memoryview(value), batch.limits.max_decompressed_size)
    return (
        None
        if payload is None or not BY_NAME[batch.compression].in_messages
        else read_message_set(payload, batch.magic)
    )


def messages_of(batch: LegacyRecordBatch, columns: RecordColumns) -> Iterator[Record]:
    """Yield the messages of a wrapper that are in the columns, which are those of core.message_set."""
    base, kind, has_timestamp = batch.inner_base or 0, batch.timestampType, batch.format.has_timestamp
    appended = batch.maxTimestamp if kind == "LogAppendTime" else None
    for index, row in enumerate(each_row(columns)):
        record = Record()
        record.batch = batch
        record.index = index
        record.magic = batch.magic
        record.start, record.end, record.attributes, timestamp, offset = row[:5]
        record.key_start, record.keySize, record.value_start, record.valueSize, record.crc = row[5:10]
        record.offset = int64(base + offset)
        record.timestamp = (timestamp if appended is None else appended) if has_timestamp else None
        record.timestampType = kind
        record.offsetDelta = record.timestampDelta = record.sequence = None
        record.header_start = record.header_count = 0
        record.data, record.space_position = columns.data, record.start if batch.is_compressed else batch.position
        record._crc_valid = True
        yield record


Inner = tuple[MessageHeader, Body, Bytes, int, int]
"""A message inside a wrapper: header, body, the buffer that contains it, its position in the buffer, and in the
payload."""


def _lone(reading: Reading[LegacyRecordBatch]) -> Iterator[Record]:
    batch = reading.batch
    data = bytearray()  # extended in place: joining pieces would take the same memory again
    for piece in batch.chunks(0, batch.size):
        data += piece
    try:
        yield _record(batch, batch.header, body(batch.header, data), data, 0, batch.position)
    except DecodeError as error:
        reading.note(Defect.of(error, batch.position))


def _skimmed_lone(reading: Reading[LegacyRecordBatch], keys: bool) -> Iterator[Record]:
    batch = reading.batch
    try:
        inner = value_bounds(batch)
    except DecodeError as error:
        reading.note(Defect.of(error, batch.position))
        return
    pieces = map(bytes, batch.chunks(0, batch.size))
    _, _, data, _ = skim(next(pieces), pieces, batch.size, keys)
    yield _record(batch, batch.header, inner, data, 0, batch.position)


def _record(
    batch: LegacyRecordBatch, header: MessageHeader, inner: Body, data: Bytes, start: int, space: int
) -> Record:
    record = Record()
    record.batch = batch
    record.index = 0
    record.magic = header.magic
    record.offset = header.offset
    record.timestamp, record.timestampType = header.timestamp, header.timestampType
    record.attributes = header.attributes
    record.offsetDelta = record.timestampDelta = record.sequence = None
    record.crc = header.crc
    record.data, record.start, record.end = data, start, start + header.size
    record.space_position = space
    record.key_start, record.keySize = start + inner.keyPosition, inner.keySize
    record.value_start, record.valueSize = start + inner.valuePosition, inner.valueSize
    record.header_start = record.header_count = 0
    if isinstance(data, Skimmed):
        record._crc_valid = data.crc == header.crc
    return record


def value_bounds(batch: LegacyRecordBatch) -> Body:
    """Return the positions of key and value in the message. Reads nothing of the value. Raises DecodeError."""
    problem = key_problem(batch.header, 0)
    if problem:
        raise problem
    size_at = batch.header.headerSize + max(0, batch.header.keySize)
    return body_of(batch.header, b"".join(batch.chunks(size_at, VALUE_SIZE.size)))


def _inner(reading: Reading[LegacyRecordBatch], keys: bool, values: bool) -> Iterator[Inner]:
    """Yield the messages in a wrapper's value as a stream; the first error ends it and is added to the reading.
    Without `values`, the bytes of a large message are Skimmed."""
    batch, space = reading.batch, ""
    try:
        bounds = value_bounds(batch)
        if batch.compression in BY_NAME and not BY_NAME[batch.compression].in_messages:
            reason = f"{batch.compression} in a message of format v0 or v1"
            raise DecodeError("Message", "attributes", 17, reason, MESSAGE_SET_INVALID)
        if bounds.valueSize < 0:
            reason = "a compressed message with a null value"
            raise DecodeError("Message", "valueSize", bounds.valuePosition - 4, reason, MESSAGE_SET_INVALID)
        pieces = decompress(
            batch.compression,
            batch.chunks(bounds.valuePosition, bounds.valueSize),
            limit=batch.limits.max_decompressed_size,
            size=bounds.valueSize,
            ignore_header_checksum=not batch.format.has_timestamp,
            ignored=reading.ignore,
        )
        space = batch.compression
        yield from _parsed(pieces, batch.limits.max_decompressed_size, keys, values)
    except DecodeError as error:
        if error.code in IN_CODEC:
            reading.note(Defect.of(error, batch.position + bounds.valuePosition))
        else:
            reading.note(Defect.of(error, 0 if space else batch.position, space))


def _parsed(pieces: Iterator[bytes], limit: int, keys: bool, values: bool) -> Iterator[Inner]:
    rest: Bytes = b""
    done = 0  # position of rest in the decompressed payload
    pending = bytearray()
    needed = 0
    for piece in pieces:
        if pending or needed:
            pending += piece
            if len(pending) < needed:
                continue
            rest, pending, needed = pending, bytearray(), 0
        else:
            rest = piece
        position = 0
        needed = LOG_OVERHEAD + 5
        while len(rest) - position >= needed:
            size = LOG_OVERHEAD + int.from_bytes(rest[position + 8 : position + 12], "big", signed=True)
            if size > limit - done - position:
                for _ in pieces:  # if the payload is larger than the limit, that is what is wrong
                    pass
                reason = f"messageSize {size - LOG_OVERHEAD} extends past the end of the payload"
                raise DecodeError("Message", "messageSize", done + position + 8, reason)
            message = MESSAGES.get(rest[position + MAGIC_POSITION])
            skims = size > KEEP and (message is None or not values)
            needed = max(0 if skims else size, message.size if message else 0)
            if needed > len(rest) - position:
                break
            start, data = position, rest
            try:
                if skims:
                    header, inner, data, rest = skim(bytes(rest[position:]), pieces, size, keys)
                    start = 0
                else:
                    header = read_header(rest, position)
                    problem = size_problem(header, position)
                    if problem:
                        raise problem
                    inner = body(header, rest, position)
            except DecodeError as error:
                raise error.moved(done + (position if skims else 0)) from None
            if header.codec:
                reason = "a compressed message inside a wrapper"
                raise DecodeError("Message", "attributes", done + position + 17, reason, MESSAGE_SET_INVALID)
            yield header, inner, data, start, done + position
            position += size
            if skims:
                done, position = done + position, 0
            needed = LOG_OVERHEAD + 5
        pending = bytearray(rest[position:])
        done += position
        if not pending:
            needed = 0
    if pending:
        raise cut(len(pending)).moved(done)


class Skimmed(bytearray):
    """The first bytes of a message, up to its key or the end of its key, without the value. `crc`: the checksum of the
    whole message; `digest`: of its key, if only the first HEAD bytes of that are kept."""

    crc: int = 0
    digest: bytes = b""


def skim(head: bytes, pieces: Iterator[bytes], size: int, keys: bool) -> tuple[MessageHeader, Body, Skimmed, bytes]:
    """Read a message of `size` bytes: `head` has the first ones, including its fixed fields, and `pieces` the following
    ones. With `keys`, its key is kept. The last item returned has the bytes after the message. Raises DecodeError,
    after reading the message."""
    skimmed = Skimmed()
    size_at, kept = size, 0
    value_size = bytearray()
    problem: DecodeError | None = None
    digest = None
    key_at = 0
    try:
        header = read_header(head)
        problem = size_problem(header, 0) or key_problem(header, 0)
        size_at = header.headerSize + max(0, header.keySize)
        kept = key_at = header.headerSize
        if keys and not problem:
            kept = min(size_at, key_at + HEAD)
            digest = hasher(b"") if kept < size_at else None
    except DecodeError as error:
        problem = error
    position = 0
    piece = head
    while True:
        part = piece[: size - position]
        skimmed += part[: max(0, kept - position)]
        if digest is not None:
            digest.update(part[max(0, key_at - position) : max(0, size_at - position)])
        value_size += part[max(0, size_at - position) : max(0, size_at + VALUE_SIZE.size - position)]
        skimmed.crc = zlib.crc32(part[max(0, CRC_START - position) :], skimmed.crc)
        position += len(part)
        if position == size:
            break
        piece = next(pieces, b"")
        if not piece:
            raise cut(position)
    if problem:
        raise problem
    if digest is not None:
        skimmed.digest = digest.digest()
    return header, body_of(header, value_size), skimmed, piece[len(part) :]


def cut(count: int) -> DecodeError:
    """Return the error for a payload that ends with `count` bytes of a message."""
    # Java's reader treats a message truncated at the end as the end of the set; a broker that validates does not.
    return DecodeError("Message", "offset", 0, f"{plain_count(count, 'byte')} after the last inner message")
