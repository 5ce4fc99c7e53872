# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes table rows, and JSON objects of batches, directly from columns, without creating an object per row. Special
cases are left to the code that writes one row at a time (render.table, render.inspect_views). For all other rows, the
output of both is identical.

Compiled if a C compiler is available. As plain Python, it is slower than that code, and only tests use it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, decode_all

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.cells import *  # noqa: F403
    from cython.cimports.kdump.core.column_numbers import *  # noqa: F403
    from cython.cimports.kdump.core.integers import minus, plus, sequence_at
    from cython.cimports.kdump.core.json_lines import header_size, put_number, put_piece, put_text
else:
    from kdump.core.cells import (
        ATTRIBUTES_CELL,
        BASE_OFFSET_CELL,
        BASE_SEQUENCE_CELL,
        BASE_TIMESTAMP_CELL,
        BATCH_POSITION_CELL,
        COMPRESSION_CELL,
        CONTROL_CELL,
        CRC_CELL,
        CRC_VALID_CELL,
        DELETE_HORIZON_CELL,
        FLAGS_CELL,
        HAS_DELETE_HORIZON_CELL,
        HEADERS_CELL,
        KEY_CELL,
        KEY_SIZE_CELL,
        LAST_OFFSET_CELL,
        LAST_OFFSET_DELTA_CELL,
        LAST_SEQUENCE_CELL,
        LEADER_EPOCH_CELL,
        LENGTH_CELL,
        MAGIC_CELL,
        MAX_TIMESTAMP_CELL,
        MOMENT_CELL,
        OFFSET_CELL,
        OFFSETS_CELL,
        POSITION_CELL,
        PRODUCER_CELL,
        PRODUCER_EPOCH_CELL,
        PRODUCER_ID_CELL,
        RECORD_COUNT_CELL,
        SEQUENCE_CELL,
        SEQUENCES_CELL,
        SIZE_CELL,
        TIMESTAMP_CELL,
        TIMESTAMP_TYPE_CELL,
        TRANSACTIONAL_CELL,
        VALUE_SIZE_CELL,
    )
    from kdump.core.column_numbers import (
        ATTRIBUTES,
        BASE_OFFSET,
        BASE_SEQUENCE,
        BASE_TIMESTAMP,
        BATCH_END,
        BATCH_START,
        CODEC,
        CRC_AT,
        HAS_DELETE_HORIZON,
        HEADER_SIZE,
        HEADER_WIDTH,
        HEADERS_COUNT,
        HEADERS_START,
        IS_CONTROL,
        IS_TRANSACTIONAL,
        KEY_SIZE,
        KEY_START,
        LAST_OFFSET,
        LEADER_EPOCH,
        LOG_APPEND_TIME,
        LOG_OVERHEAD,
        MAX_TIMESTAMP,
        OFFSET_DELTA,
        PRODUCER_EPOCH,
        PRODUCER_ID,
        RECORD_COUNT,
        RECORD_END,
        RECORD_START,
        RECORD_WIDTH,
        TIMESTAMP_DELTA,
        VALUE_SIZE,
        VALUE_START,
    )
    from kdump.core.integers import minus, plus, sequence_at
    from kdump.core.json_lines import header_size, put_number, put_piece, put_text

COMPILED: bool = cython.compiled
FIXED = 100
"""Maximum bytes per cell, except for keys, values and headers."""


class RowPlan:
    """Layout of a line: the kind of each cell (see kdump.core.cells), the text before each cell and after the
    last, the minimum widths, and which cells are right-aligned. `empty`: kinds of the columns that are not displayed; a
    row that has a value for one of them is not written. `most`: maximum bytes per line, except for keys, values and
    headers."""

    __slots__ = ("empty", "kinds", "most", "rights", "starts", "texts", "widths")

    def __init__(
        self,
        kinds: Sequence[int],
        texts: Sequence[bytes],
        widths: Sequence[int] = (),
        rights: Sequence[bool] = (),
        empty: Sequence[int] = (),
    ) -> None:
        self.kinds = array("q", kinds)
        self.texts = b"".join(texts)
        self.starts = array("q", [sum(map(len, texts[:i])) for i in range(len(texts) + 1)])
        self.widths = array("q", widths or [0] * len(kinds))
        self.rights = array("q", rights or [False] * len(kinds))
        self.empty = array("q", empty)
        self.most = len(self.texts) + sum(self.widths) + FIXED * (len(kinds) + 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _pad(
    out: cython.p_uchar, start: cython.Py_ssize_t, to: cython.Py_ssize_t, width: cython.Py_ssize_t, right: cython.bint
):
    """Pad the cell out[start:to] with spaces to its width, on the left if `right`. Returns the position after it."""
    missing: cython.Py_ssize_t = width - (to - start)
    i: cython.Py_ssize_t
    if missing <= 0:
        return to
    if right:
        i = to - 1
        while i >= start:
            out[i + missing] = out[i]
            i -= 1
        for i in range(start, start + missing):
            out[i] = 32
    else:
        for i in range(to, to + missing):
            out[i] = 32
    return to + missing


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _bool(out: cython.p_uchar, to: cython.Py_ssize_t, value: cython.longlong):
    return put_text(out, to, b"true", 4) if value else put_text(out, to, b"false", 5)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _span(out: cython.p_uchar, to: cython.Py_ssize_t, first: cython.longlong, last: cython.longlong):
    """Write A..B, or A if both are equal."""
    to = put_number(out, to, first)
    if first != last:
        to = put_text(out, to, b"..", 2)
        to = put_number(out, to, last)
    return to


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _digits(
    out: cython.p_uchar, at: cython.Py_ssize_t, number: cython.longlong, size: cython.Py_ssize_t, after: cython.uchar
):
    """Write `number` with `size` digits, then one more character, at out[at:]. Returns the position after it."""
    i: cython.Py_ssize_t
    for i in range(size):
        out[at + size - 1 - i] = cython.cast(cython.uchar, 48 + number % 10)
        number = number // 10
    out[at + size] = after
    return at + size + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _time(out: cython.p_uchar, at: cython.Py_ssize_t, milliseconds: cython.longlong):
    """Write epoch ms at out[at:] as render.times.iso does in UTC. Returns the position after it; -1 for times before
    1970 (except -1, "no timestamp") and after the year 9999."""
    if milliseconds == -1:
        return put_text(out, at, b"-1", 2)
    days: cython.longlong = milliseconds // 86400000
    if milliseconds < 0 or days > 2932896:
        return -1
    rest: cython.longlong = milliseconds % 86400000
    # Converts days to a civil date; days count from March 1 of year 0, in eras of 400 years.
    days += 719468
    era: cython.longlong = days // 146097
    day: cython.longlong = days % 146097
    year: cython.longlong = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month: cython.longlong = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3
    year += era * 400
    if month > 12:
        month -= 12
        year += 1
    at = _digits(out, at, year, 4, 45)
    at = _digits(out, at, month, 2, 45)
    at = _digits(out, at, day, 2, 84)
    at = _digits(out, at, rest // 3600000, 2, 58)
    at = _digits(out, at, rest // 60000 % 60, 2, 58)
    at = _digits(out, at, rest // 1000 % 60, 2, 46)
    return _digits(out, at, rest % 1000, 3, 90)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _batch_cell(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    kind: cython.longlong,
    rows: cython.longlong[::1],
    at: cython.Py_ssize_t,
    data: cython.p_uchar,
    shift: cython.longlong,
):
    """Write a cell of the batch whose numbers start at rows[at]. Returns the position after it; -1 if it cannot."""
    start: cython.Py_ssize_t = rows[at + BATCH_START]
    attributes: cython.longlong = rows[at + ATTRIBUTES]
    codec: cython.longlong
    first: cython.Py_ssize_t = to
    if kind == POSITION_CELL:
        return put_number(out, to, start + shift)
    if kind == SIZE_CELL:
        return put_number(out, to, rows[at + BATCH_END] - start)
    if kind == BASE_OFFSET_CELL:
        return put_number(out, to, rows[at + BASE_OFFSET])
    if kind == LENGTH_CELL:
        return put_number(out, to, rows[at + BATCH_END] - start - LOG_OVERHEAD)
    if kind == LEADER_EPOCH_CELL:
        return put_number(out, to, rows[at + LEADER_EPOCH])
    if kind == MAGIC_CELL:
        return put_text(out, to, b"2", 1)
    if kind == CRC_CELL:
        return put_number(
            out,
            to,
            cython.cast(cython.longlong, data[start + CRC_AT]) << 24
            | cython.cast(cython.longlong, data[start + CRC_AT + 1]) << 16
            | cython.cast(cython.longlong, data[start + CRC_AT + 2]) << 8
            | data[start + CRC_AT + 3],
        )
    if kind == ATTRIBUTES_CELL:
        return put_number(out, to, attributes)
    if kind == LAST_OFFSET_DELTA_CELL:
        return put_number(out, to, minus(rows[at + LAST_OFFSET], rows[at + BASE_OFFSET]))
    if kind == BASE_TIMESTAMP_CELL:
        return put_number(out, to, rows[at + BASE_TIMESTAMP])
    if kind == MAX_TIMESTAMP_CELL:
        return put_number(out, to, rows[at + MAX_TIMESTAMP])
    if kind == PRODUCER_ID_CELL:
        return put_number(out, to, rows[at + PRODUCER_ID])
    if kind == PRODUCER_EPOCH_CELL:
        return put_number(out, to, rows[at + PRODUCER_EPOCH])
    if kind == BASE_SEQUENCE_CELL:
        return put_number(out, to, rows[at + BASE_SEQUENCE])
    if kind == RECORD_COUNT_CELL:
        return put_number(out, to, rows[at + RECORD_COUNT])
    if kind == CRC_VALID_CELL:
        return put_text(out, to, b"true", 4)
    if kind == COMPRESSION_CELL:
        codec = attributes & CODEC
        if codec == 0:
            return put_text(out, to, b"none", 4)
        if codec == 1:
            return put_text(out, to, b"gzip", 4)
        if codec == 2:
            return put_text(out, to, b"snappy", 6)
        if codec == 3:
            return put_text(out, to, b"lz4", 3)
        return put_text(out, to, b"zstd", 4) if codec == 4 else -1
    if kind == TIMESTAMP_TYPE_CELL:
        return (
            put_text(out, to, b"LogAppendTime", 13)
            if attributes & LOG_APPEND_TIME
            else put_text(out, to, b"CreateTime", 10)
        )
    if kind == TRANSACTIONAL_CELL:
        return _bool(out, to, attributes & IS_TRANSACTIONAL)
    if kind == CONTROL_CELL:
        return _bool(out, to, attributes & IS_CONTROL)
    if kind == HAS_DELETE_HORIZON_CELL:
        return _bool(out, to, attributes & HAS_DELETE_HORIZON)
    if kind == DELETE_HORIZON_CELL:
        return (
            put_number(out, to, rows[at + BASE_TIMESTAMP])
            if attributes & HAS_DELETE_HORIZON
            else put_text(out, to, b"null", 4)
        )
    if kind == LAST_OFFSET_CELL:
        return put_number(out, to, rows[at + LAST_OFFSET])
    if kind == LAST_SEQUENCE_CELL:
        return put_number(
            out, to, sequence_at(rows[at + BASE_SEQUENCE], minus(rows[at + LAST_OFFSET], rows[at + BASE_OFFSET]))
        )
    if kind == OFFSETS_CELL:
        return _span(out, to, rows[at + BASE_OFFSET], rows[at + LAST_OFFSET])
    if kind == FLAGS_CELL:
        if attributes & IS_TRANSACTIONAL:
            to = put_text(out, to, b"txn,", 4)
        if attributes & IS_CONTROL:
            to = put_text(out, to, b"control,", 8)
        if attributes & HAS_DELETE_HORIZON:
            to = put_text(out, to, b"horizon,", 8)
        if attributes & LOG_APPEND_TIME:
            to = put_text(out, to, b"logAppend,", 10)
        return to - 1 if to > first else to
    if kind == MOMENT_CELL:
        return _time(out, to, rows[at + MAX_TIMESTAMP])
    if kind == PRODUCER_CELL:
        if rows[at + PRODUCER_ID] == -1 and rows[at + PRODUCER_EPOCH] == -1:
            return to
        to = put_number(out, to, rows[at + PRODUCER_ID])
        to = put_text(out, to, b"/", 1)
        return put_number(out, to, rows[at + PRODUCER_EPOCH])
    if kind == SEQUENCES_CELL:
        if rows[at + BASE_SEQUENCE] == -1:
            return to
        return _span(
            out,
            to,
            rows[at + BASE_SEQUENCE],
            sequence_at(rows[at + BASE_SEQUENCE], minus(rows[at + LAST_OFFSET], rows[at + BASE_OFFSET])),
        )
    return put_text(out, to, b"ok", 2)


def write_batch_rows(
    room: bytearray,
    used: cython.Py_ssize_t,
    heads: HeaderColumns,
    row: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    plan: RowPlan,
) -> tuple[int, int]:
    """Write the lines of the batches row..stop, whose checksums match, into `room` after its `used` bytes. Returns the
    first batch that is not written, because it is a special case or there is no room, and the number of bytes used."""
    buffer: cython.const[cython.uchar][::1] = heads.data
    target: cython.uchar[::1] = room
    rows: cython.longlong[::1] = heads.block
    kinds: cython.longlong[::1] = plan.kinds
    widths: cython.longlong[::1] = plan.widths
    rights: cython.longlong[::1] = plan.rights
    starts: cython.longlong[::1] = plan.starts
    empty: cython.longlong[::1] = plan.empty
    data: cython.p_uchar
    out: cython.p_uchar
    if cython.compiled:
        data = cython.cast(cython.p_uchar, cython.address(buffer[0]))
        out = cython.address(target[0])
    else:
        data, out = buffer, target
    between: bytes = plan.texts
    texts: cython.p_uchar = between
    shift: cython.longlong = heads.shift
    most: cython.Py_ssize_t = plan.most
    size: cython.Py_ssize_t = len(room)
    cells: cython.Py_ssize_t = len(plan.kinds)
    hidden: cython.Py_ssize_t = len(plan.empty)
    i: cython.Py_ssize_t
    to: cython.Py_ssize_t
    begun: cython.Py_ssize_t
    with cython.nogil:
        while row < stop and used + most <= size:
            to = used
            for i in range(hidden):
                if to == used:
                    to = _batch_cell(out, to, empty[i], rows, row * HEADER_WIDTH, data, shift)
            if to != used:
                break
            for i in range(cells):
                to = put_piece(out, to, texts, starts[i], starts[i + 1])
                begun = to
                to = _batch_cell(out, to, kinds[i], rows, row * HEADER_WIDTH, data, shift)
                if to < 0:
                    break
                to = _pad(out, begun, to, widths[i], rights[i])
            if to < 0:
                break
            used = put_piece(out, _trimmed(out, used, to), texts, starts[cells], starts[cells + 1])
            row += 1
    return row, used


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _trimmed(out: cython.p_uchar, start: cython.Py_ssize_t, to: cython.Py_ssize_t):
    """Return the end of the line out[start:to] without its trailing spaces."""
    while to > start and out[to - 1] == 32:
        to -= 1
    return to


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _bytes(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, at: cython.Py_ssize_t, size: cython.longlong
):
    """Write a key or value like render.escape.shown. Returns -1 if it is neither null nor printable ASCII."""
    special: cython.uint = 0
    i: cython.Py_ssize_t
    if size < 0:
        return put_text(out, to, b"null", 4)
    for i in range(size):
        special |= (
            ((data[at + i] - 32) & 0xFF) > 94
            if not cython.compiled
            else cython.cast(cython.uchar, data[at + i] - 32) > 94
        )
        out[to + i] = data[at + i]
    return -1 if special else to + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _headers(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, position: cython.Py_ssize_t,
    count: cython.longlong,
):  # fmt: skip
    """Write headers as key=value, key=value. Returns -1 if they are not printable ASCII."""
    header: cython.longlong
    length: cython.longlong
    part: cython.int
    for header in range(count):
        if header:
            to = put_text(out, to, b", ", 2)
        for part in range(2):
            length, position = header_size(data, position)
            if part:
                to = put_text(out, to, b"=", 1)
            to = _bytes(out, to, data, position, length)
            if to < 0:
                return -1
            if length > 0:
                position += length
    return to


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _record_cell(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    kind: cython.longlong,
    rows: cython.longlong[::1],
    at: cython.Py_ssize_t,
    data: cython.p_uchar,
    position: cython.longlong,
    base_offset: cython.longlong,
    timestamp: cython.longlong,
    sequence: cython.longlong,
):
    """Write a cell of the record whose numbers start at rows[at]. Returns the position after it; -1 for special cases.
    `sequence` is the base sequence of the batch."""
    if kind == OFFSET_CELL:
        return put_number(out, to, plus(base_offset, rows[at + OFFSET_DELTA]))
    if kind == TIMESTAMP_CELL:
        return _time(out, to, timestamp)
    if kind == SEQUENCE_CELL:
        sequence = sequence_at(sequence, rows[at + OFFSET_DELTA])
        return to if sequence == -1 else put_number(out, to, sequence)
    if kind == BATCH_POSITION_CELL:
        return put_number(out, to, position)
    if kind == KEY_SIZE_CELL:
        return put_number(out, to, rows[at + KEY_SIZE])
    if kind == VALUE_SIZE_CELL:
        return put_number(out, to, rows[at + VALUE_SIZE])
    if kind == KEY_CELL:
        return _bytes(out, to, data, rows[at + KEY_START], rows[at + KEY_SIZE])
    if kind == HEADERS_CELL:
        return _headers(out, to, data, rows[at + HEADERS_START], rows[at + HEADERS_COUNT])
    return _bytes(out, to, data, rows[at + VALUE_START], rows[at + VALUE_SIZE])


def write_record_rows(
    room: bytearray,
    used: cython.Py_ssize_t,
    columns: RecordColumns,
    row: cython.Py_ssize_t,
    plan: RowPlan,
    heads: HeaderColumns,
    batch: cython.Py_ssize_t,
) -> tuple[int, int]:
    """Write the lines of the columns' records from number `row` on, which belong to batch number `batch`, into `room`
    after its `used` bytes. Returns the first record that is not written, because it is a special case or there is no
    room, and the number of bytes used."""
    source: cython.const[cython.uchar][::1] = columns.data
    target: cython.uchar[::1] = room
    rows: cython.longlong[::1] = columns.block
    head: cython.longlong[::1] = heads.block
    kinds: cython.longlong[::1] = plan.kinds
    widths: cython.longlong[::1] = plan.widths
    rights: cython.longlong[::1] = plan.rights
    starts: cython.longlong[::1] = plan.starts
    empty: cython.longlong[::1] = plan.empty
    data: cython.p_uchar
    out: cython.p_uchar
    if cython.compiled:
        data = cython.cast(cython.p_uchar, cython.address(source[0]))
        out = cython.address(target[0])
    else:
        data, out = source, target
    between: bytes = plan.texts
    texts: cython.p_uchar = between
    place: cython.Py_ssize_t = batch * HEADER_WIDTH
    position: cython.longlong = head[place + BATCH_START] + cython.cast(cython.longlong, heads.shift)
    base: cython.longlong = head[place + BASE_OFFSET]
    sequence: cython.longlong = head[place + BASE_SEQUENCE]
    appended: cython.bint = head[place + ATTRIBUTES] & LOG_APPEND_TIME != 0
    most: cython.Py_ssize_t = plan.most
    size: cython.Py_ssize_t = len(room)
    cells: cython.Py_ssize_t = len(plan.kinds)
    hidden: cython.Py_ssize_t = len(plan.empty)
    count: cython.Py_ssize_t = columns.count
    timestamp: cython.longlong
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t
    begun: cython.Py_ssize_t
    with cython.nogil:
        while row < count:
            at = row * RECORD_WIDTH
            # A null in a header needs up to four bytes more than its encoded size.
            if used + most + rows[at + RECORD_END] - rows[at + RECORD_START] + 8 * rows[at + HEADERS_COUNT] > size:
                break
            timestamp = (
                head[place + MAX_TIMESTAMP]
                if appended
                else plus(head[place + BASE_TIMESTAMP], rows[at + TIMESTAMP_DELTA])
            )
            to = used
            for i in range(hidden):
                if to == used:
                    to = _record_cell(out, to, empty[i], rows, at, data, position, base, timestamp, sequence)
            if to != used:
                break
            for i in range(cells):
                to = put_piece(out, to, texts, starts[i], starts[i + 1])
                begun = to
                to = _record_cell(out, to, kinds[i], rows, at, data, position, base, timestamp, sequence)
                if to < 0:
                    break
                to = _pad(out, begun, to, widths[i], rights[i])
            if to < 0:
                break
            used = put_piece(out, _trimmed(out, used, to), texts, starts[cells], starts[cells + 1])
            row += 1
    return row, used


def write_batches_records(
    room: bytearray,
    used: cython.Py_ssize_t,
    columns: RecordColumns,
    plan: RowPlan,
    heads: HeaderColumns,
    batch: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> tuple[int, int]:
    """Write the lines of all records of the batches batch..stop, like write_record_rows. Returns the first batch that
    is not completely written, and the number of bytes used. Such a batch is compressed, is a control batch, cannot be
    decoded, contains a special case, or does not fit. `columns` must refer to the data of `heads`."""
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t
    before: cython.Py_ssize_t
    while batch < stop:
        at = batch * HEADER_WIDTH
        if rows[at + ATTRIBUTES] & (CODEC | IS_CONTROL) or rows[at + RECORD_COUNT] < 0:
            break
        if not decode_all(columns, rows[at + BATCH_START] + HEADER_SIZE, rows[at + BATCH_END], rows[at + RECORD_COUNT]):
            break
        before = used
        row, used = write_record_rows(room, used, columns, 0, plan, heads, batch)
        if row < columns.count:
            used = before
            break
        batch += 1
    return batch, used
