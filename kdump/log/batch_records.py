"""Decodes a batch into records, as a stream of bounded pieces, never as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from kdump.core.column_numbers import ATTRIBUTES, BATCH_END, BATCH_START
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, decode, decode_all, each_row, past_end
from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, NO_SEQUENCE, sequence
from kdump.format.codec import decompress
from kdump.format.codec.decompress_small import SMALL, decompress_small
from kdump.format.codec_table import codec_name
from kdump.format.count_text import count_text
from kdump.format.errors import IN_CODEC, DecodeError
from kdump.format.numbers import LONG_MAX, LONG_MIN, int64
from kdump.format.record import RECORD
from kdump.format.varint import Bytes, read_varint
from kdump.log import legacy_records
from kdump.log.batch_validity import count_problem, impossible_count
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, Defect, LegacyRecordBatch
from kdump.log.skim import HEAD, KEYS, LARGE, SIZES, Keep, Skim

NOTHING = memoryview(b"")
Pieces = Iterator[bytes | memoryview]
MAX_LOOKAHEAD_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes that are collected only to find out whether they are a record."""


def records(source: Batch | Reading[Any], *, values: bool = True) -> Iterator[Record]:
    """Yield the records of a batch, in order. A problem is added to the reading, if one is passed, when the iteration
    reaches it, and ends it: after the first bad byte of a payload, no further record can be located.

    Without `values`, a large record is truncated (Record.is_cut): no memory is used for its value and headers."""
    reading = Reading.of(source)
    batch = reading.batch
    if isinstance(batch, DefaultRecordBatch):
        seen = 0
        for columns, base in decode_columns(reading, values=values):
            yield from rows_of(batch, columns, base, seen)
            seen += len(columns)
    else:
        yield from legacy_records.messages(reading, values=values)


def decode_columns(
    source: DefaultRecordBatch | Reading[Any], *, keys: bool = True, values: bool = True, keep: Keep | None = None
) -> Iterator[tuple[RecordColumns, int]]:
    """Yield the records as columns, one piece at a time, with the position of the piece in the file or in the
    decompressed payload. The index of a piece's first record is the number of records before it.

    Without `values`, a large record has only the beginning of its value and no headers (log.skim); without `keys` as
    well, no key either. No memory is used for them. `keep` selects in more detail what a large record has. Problems are
    added to the reading, if one is passed."""
    reading = Reading.of(source)
    batch: DefaultRecordBatch = reading.batch
    if keep is None and not values:
        keep = KEYS if keys else SIZES
    size, space = batch.payload_size, batch.compression if batch.is_compressed else ""
    base = 0 if space else batch.position + BATCH_HEADER.size
    limit = batch.limits.max_decompressed_size if space else size
    left = batch.recordCount or 0
    if left < 0:
        impossible = impossible_count(batch)
        assert impossible is not None
        reading.note(count_problem(batch, impossible.reason))
        return
    if left == 0 and size == 0:
        return
    pieces, whole = _payload(reading, space, size, limit)
    if whole:
        columns = RecordColumns(whole)
        if left and decode_all(columns, 0, len(whole), left):
            reading.decoded_to = base + len(whole)
            yield columns, base
            return
        pieces = iter((whole,))
    reading.decoded_to = base
    try:
        yield from _decode_pieces(reading, pieces, base, limit, keep)
    except DecodeError as error:
        # An error of a codec has a position in the file; an error in a record, in the decompressed payload.
        in_codec = error.code in IN_CODEC and error.struct != "Record"
        start = batch.position + BATCH_HEADER.size if in_codec else base
        reading.note(Defect.of(error, start, "" if in_codec else space))


def _payload(reading: Reading[Any], space: str, size: int, limit: int) -> tuple[Pieces, bytes | None]:
    """Return the pieces of the decompressed payload; or all of it, if it is small, or not compressed and one piece,
    unless something about it is unusual. `space`: the codec, empty for none; `size`: of the stored payload."""
    pieces = reading.batch.chunks(BATCH_HEADER.size, size)
    if not space or 0 < size <= SMALL:
        first = next(pieces, NOTHING)
        if len(first) == size:
            whole = decompress_small(space, first, limit) if space else bytes(first)
            if whole or not space:
                return pieces, whole
        pieces = chain((first,), pieces)
    return decompress(space, pieces, limit=limit, size=size, ignored=reading.ignore) if space else pieces, None


def _decode_pieces(
    reading: Reading[Any], pieces: Pieces, base: int, limit: int, keep: Keep | None
) -> Iterator[tuple[RecordColumns, int]]:
    """Like decode_columns, for a payload whose pieces may divide records. Raises DecodeError at the first invalid byte,
    with its position in the payload."""
    left = reading.batch.recordCount or 0
    rest = bytearray()
    rest_of_payload = b""
    """Bytes read after a record that was skimmed."""
    needed = done = 0
    piece: Bytes
    while piece := rest_of_payload or next(pieces, b""):
        rest_of_payload = b""
        done += len(piece)
        if rest:
            rest += piece
            if len(rest) < needed:
                continue
            piece, rest = rest, bytearray()
        columns = RecordColumns(piece if isinstance(piece, bytearray) else bytes(piece))
        start = done - len(piece)
        invalid = None
        try:
            position = decode(columns, 0, len(piece), left, False)
        except DecodeError as error:
            invalid = error.moved(start)
        left -= len(columns)
        if len(columns):
            reading.decoded_to = base + start + columns.end[-1]
            yield columns, base + start
        if invalid is not None:
            raise invalid
        if not left and position < len(piece):
            break
        rest = bytearray(piece[position:])
        del columns
        piece = b""  # a large piece must be referenced only by `rest`
        more = pieces if reading.batch.is_compressed else None
        needed = _needed(rest, limit - done + len(rest), done - len(rest), more) if left else 0
        if keep is not None and needed > LARGE:
            skim = Skim(bytes(rest), pieces, done - len(rest), keep)
            columns = skim.record()
            left -= 1
            reading.decoded_to = base + skim.stop
            yield columns, base + skim.start
            rest, rest_of_payload, needed, done = bytearray(), skim.rest, 0, skim.stop
    else:
        position, piece = 0, bytes(rest)
    _end(reading, bytes(piece[position:]), done - len(piece) + position, pieces, left)


def _end(reading: Reading[Any], over: bytes, at: int, pieces: Pieces, left: int) -> None:
    """Note it, or raise DecodeError, if bytes or records are left over: `over`, at position `at` of the payload, and
    `left` records."""
    batch = reading.batch
    total = batch.recordCount or 0
    if over and not left:
        if _holds_record(bytearray(over), pieces):
            reading.note(count_problem(batch, f"recordCount is {total}, but the batch has more records"))
            return
        size = "" if batch.is_compressed else f"{batch.payload_size - at} "
        raise DecodeError("RecordBatch", "records", at, f"{size}bytes are left over after the last record of {total}")
    if over:
        # The payload has ended inside a record: the decoder reports where.
        try:
            decode(RecordColumns(over), 0, len(over), 1, True)
        except DecodeError as error:
            raise error.moved(at) from None
    if left:
        reason = f"recordCount is {total}, but the batch has {count_text(total - left, 'record')}"
        reading.note(count_problem(batch, reason, total - left))


def _holds_record(rest: bytearray, pieces: Pieces) -> bool:
    """Return True if the bytes after the last record that was claimed start with another record."""
    while True:
        columns = RecordColumns(bytes(rest))
        try:
            decode(columns, 0, len(rest), 1, False)
            if len(columns):
                return True
            rest += next(pieces)
        except (DecodeError, StopIteration):
            return False
        if len(rest) > MAX_LOOKAHEAD_BYTES:
            return False


def unpacked(batch: Batch, position: int, count: int) -> bytes:
    """Return `count` bytes at `position` of the decompressed payload, or as many as there are."""
    if isinstance(batch, DefaultRecordBatch):
        start, size = batch.headerSize, batch.payload_size
    else:
        assert isinstance(batch, LegacyRecordBatch)
        bounds = legacy_records.value_bounds(batch)
        start, size = bounds.valuePosition, bounds.valueSize
    taken = b""
    done = 0
    limit = batch.limits.max_decompressed_size
    old = not batch.format.has_timestamp
    with suppress(DecodeError):
        pieces = batch.chunks(start, size)
        for piece in decompress(batch.compression, pieces, limit=limit, size=size, ignore_header_checksum=old):
            taken += piece[max(0, position - done) : max(0, position + count - done)]
            done += len(piece)
            if done >= position + count:
                break
    return taken


def _needed(rest: bytearray, limit: int, position: int, pieces: Pieces | None) -> int:
    """Return the total size in bytes of the record that starts in `rest`, at `position` of the payload: nothing is
    decoded before they are all available. Raises DecodeError if the size exceeds `limit`, so that no memory is used for
    it. `pieces`: the rest of a compressed payload, which is then decompressed to its end: either the record extends
    past it, or the payload exceeds --max-decompressed-size, and the codec raises."""
    try:
        length, start = read_varint(rest, 0, len(rest), RECORD.name, "length")
    except DecodeError:
        return 0
    if start + length > limit:
        if pieces is not None:
            limit = len(rest) + sum(map(len, pieces))
        raise past_end(position, length, limit - start)
    return start + length


def rows_of(batch: DefaultRecordBatch, columns: RecordColumns, base: int, index: int) -> Iterator[Record]:
    """Yield the records in the columns, whose bytes start at `base`; `index` is that of the first one."""
    header = batch.header
    base_offset, base_timestamp, base_sequence = header.baseOffset, header.baseTimestamp, header.baseSequence
    kind = header.timestampType
    appended = header.maxTimestamp if kind == "LogAppendTime" else None
    for row in each_row(columns):
        record = Record()
        record.batch = batch
        record.index = index
        record.magic = 2
        (
            record.start,
            record.end,
            record.attributes,
            timestamp_delta,
            delta,
            record.key_start,
            record.keySize,
            record.value_start,
            record.valueSize,
            record.header_start,
            record.header_count,
        ) = row
        record.offset = base_offset + delta
        if not LONG_MIN <= record.offset <= LONG_MAX:
            record.offset = int64(record.offset)
        record.offsetDelta = delta
        record.timestampDelta = timestamp_delta
        record.timestamp = base_timestamp + timestamp_delta if appended is None else appended
        if not LONG_MIN <= record.timestamp <= LONG_MAX:
            record.timestamp = int64(record.timestamp)
        record.timestampType = kind
        record.sequence = NO_SEQUENCE if base_sequence < 0 else sequence(base_sequence, delta)
        record.crc = None
        record.data = columns.data
        record.space_position = base + record.start
        if columns.skimmed:
            record.key_start, record.value_start = 0, min(max(0, record.keySize), HEAD)
        index += 1
        yield record


def payload_of(heads: HeaderColumns, row: int, limit: int) -> bytes | None:
    """Return the decompressed payload of a batch; None if it is invalid or too large for the fast path."""
    start, end = heads.of(row, BATCH_START) + BATCH_HEADER.size, heads.of(row, BATCH_END)
    number = COMPRESSION.of(heads.of(row, ATTRIBUTES))
    if not number:
        return bytes(memoryview(heads.data)[start:end]) if end - start <= SMALL else None
    return decompress_small(codec_name(number), memoryview(heads.data)[start:end], limit)
