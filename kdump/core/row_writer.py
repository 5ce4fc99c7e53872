# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes lines of batches and of records, table rows and JSON alike, directly from columns, without creating an object
per row. A RowPlan says which cells a line has. Special cases are left to the code that writes one row at a time
(render.table, questions.inspect.views). For all other rows, the output of both is identical.

Compiled if a C compiler is available. As plain Python, it is slower than that code, and only tests use it."""

from __future__ import annotations

from collections.abc import Callable

from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, keep_keys, may_hold_schema_ids
from kdump.core.row_plan import RowPlan

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.cells import *
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import minus, plus, sequence_at
    from cython.cimports.kdump.core.json_values import put_json_bytes, put_json_headers
    from cython.cimports.kdump.core.output_buffer import put_number, put_piece, put_text
    from cython.cimports.kdump.core.record_columns import decode_all, read_rows
    from cython.cimports.kdump.core.table_values import put_plain_bytes, put_plain_headers, put_time
else:
    from kdump.core.cells import *
    from kdump.core.column_numbers import *
    from kdump.core.integers import minus, plus, sequence_at
    from kdump.core.json_values import put_json_bytes, put_json_headers
    from kdump.core.output_buffer import put_number, put_piece, put_text
    from kdump.core.record_columns import decode_all, read_rows
    from kdump.core.table_values import put_plain_bytes, put_plain_headers, put_time

COMPILED: bool = cython.compiled
ROOM = 1 << 20
"""Bytes of lines that are collected before they are written."""
MAX_LINE_BYTES = 16 << 20
"""Maximum bytes that one line may need at worst; longer lines are written elsewhere."""

Members = Callable[[bytes | None, bytes | None], bytes | None]
"""Returns what a record's JSON object has besides its cells, given key and value: members, without the first comma;
None if its line is a special case."""


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
def _trimmed(out: cython.p_uchar, start: cython.Py_ssize_t, to: cython.Py_ssize_t):
    """Return the end of the line out[start:to] without its trailing spaces."""
    while to > start and out[to - 1] == 32:
        to -= 1
    return to


@cython.cfunc
@cython.inline
@cython.nogil
@cython.returns(cython.p_longlong)
def _from(numbers: cython.p_longlong, at: cython.Py_ssize_t):
    """Return the numbers from number `at` on."""
    return numbers + at if cython.compiled else memoryview(numbers)[at:]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _last_sequence(head: cython.p_longlong):
    return sequence_at(head[BASE_SEQUENCE], minus(head[LAST_OFFSET], head[BASE_OFFSET]))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _timestamp(head: cython.p_longlong, record: cython.p_longlong):
    """Return the timestamp of a record."""
    if head[ATTRIBUTES] & LOG_APPEND_TIME:
        return head[MAX_TIMESTAMP]
    return plus(head[BASE_TIMESTAMP], record[TIMESTAMP_DELTA])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _is_odd(head: cython.p_longlong):
    """Return whether a batch may have flags of damage, which kdump.check.rules.records.header_findings decides."""
    delta: cython.longlong = minus(head[LAST_OFFSET], head[BASE_OFFSET])
    if head[BASE_OFFSET] < 0 or delta < 0 or head[ATTRIBUTES] & ~KNOWN_ATTRIBUTES:
        return True
    room: cython.longlong = head[BATCH_END] - head[BATCH_START] - HEADER_SIZE
    if head[RECORD_COUNT] < 0 or head[RECORD_COUNT] * MIN_RECORD_SIZE > room:
        return True
    if head[PRODUCER_ID] < 0:
        return head[ATTRIBUTES] & IS_TRANSACTIONAL != 0
    return head[PRODUCER_EPOCH] < 0 or (head[BASE_SEQUENCE] < 0 and not head[ATTRIBUTES] & IS_CONTROL)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _codec(out: cython.p_uchar, to: cython.Py_ssize_t, codec: cython.longlong):
    if codec == 0:
        return put_text(out, to, b"none", 4)
    if codec == 1:
        return put_text(out, to, b"gzip", 4)
    if codec == 2:
        return put_text(out, to, b"snappy", 6)
    if codec == 3:
        return put_text(out, to, b"lz4", 3)
    return put_text(out, to, b"zstd", 4) if codec == 4 else -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _flags(out: cython.p_uchar, to: cython.Py_ssize_t, attributes: cython.longlong):
    start: cython.Py_ssize_t = to
    if attributes & IS_TRANSACTIONAL:
        to = put_text(out, to, b"txn,", 4)
    if attributes & IS_CONTROL:
        to = put_text(out, to, b"control,", 8)
    if attributes & HAS_DELETE_HORIZON:
        to = put_text(out, to, b"horizon,", 8)
    if attributes & LOG_APPEND_TIME:
        to = put_text(out, to, b"logAppend,", 10)
    return to - 1 if to > start else to


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _stored_crc(out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, at: cython.Py_ssize_t):
    crc: cython.longlong = 0
    i: cython.Py_ssize_t
    for i in range(4):
        crc = crc << 8 | data[at + i]
    return put_number(out, to, crc)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _batch_cell(
    out: cython.p_uchar, to: cython.Py_ssize_t, kind: cython.longlong, head: cython.p_longlong,
    data: cython.p_uchar, shift: cython.longlong,
):  # fmt: skip
    attributes: cython.longlong = head[ATTRIBUTES]
    if kind == POSITION_CELL:
        return put_number(out, to, head[BATCH_START] + shift)
    elif kind == SIZE_CELL:
        return put_number(out, to, head[BATCH_END] - head[BATCH_START])
    elif kind == LENGTH_CELL:
        return put_number(out, to, head[BATCH_END] - head[BATCH_START] - LOG_OVERHEAD)
    elif kind == MAGIC_CELL:
        return put_text(out, to, b"2", 1)
    elif kind == CRC_CELL:
        return _stored_crc(out, to, data, head[BATCH_START] + CRC_AT)
    elif kind == LAST_OFFSET_DELTA_CELL:
        return put_number(out, to, minus(head[LAST_OFFSET], head[BASE_OFFSET]))
    elif kind == CRC_VALID_CELL:
        return put_text(out, to, b"true", 4)
    elif kind == COMPRESSION_CELL:
        return _codec(out, to, attributes & CODEC)
    elif kind == TIMESTAMP_TYPE_CELL:
        if attributes & LOG_APPEND_TIME:
            return put_text(out, to, b"LogAppendTime", 13)
        return put_text(out, to, b"CreateTime", 10)
    elif kind == TRANSACTIONAL_CELL:
        return _bool(out, to, attributes & IS_TRANSACTIONAL)
    elif kind == CONTROL_CELL:
        return _bool(out, to, attributes & IS_CONTROL)
    elif kind == HAS_DELETE_HORIZON_CELL:
        return _bool(out, to, attributes & HAS_DELETE_HORIZON)
    elif kind == DELETE_HORIZON_CELL:
        if attributes & HAS_DELETE_HORIZON:
            return put_number(out, to, head[BASE_TIMESTAMP])
        return put_text(out, to, b"null", 4)
    elif kind == LAST_SEQUENCE_CELL:
        return put_number(out, to, _last_sequence(head))
    elif kind == OFFSETS_CELL:
        return _span(out, to, head[BASE_OFFSET], head[LAST_OFFSET])
    elif kind == FLAGS_CELL:
        return -1 if _is_odd(head) else _flags(out, to, attributes)
    elif kind == MOMENT_CELL:
        return put_time(out, to, head[MAX_TIMESTAMP])
    elif kind == PRODUCER_CELL:
        if head[PRODUCER_ID] == -1 and head[PRODUCER_EPOCH] == -1:
            return to
        to = put_text(out, put_number(out, to, head[PRODUCER_ID]), b"/", 1)
        return put_number(out, to, head[PRODUCER_EPOCH])
    elif kind == SEQUENCES_CELL:
        return to if head[BASE_SEQUENCE] == -1 else _span(out, to, head[BASE_SEQUENCE], _last_sequence(head))
    elif kind == OK_CELL:
        return put_text(out, to, b"ok", 2)
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _record_cell(
    out: cython.p_uchar, to: cython.Py_ssize_t, kind: cython.longlong, head: cython.p_longlong,
    record: cython.p_longlong, data: cython.p_uchar,
):  # fmt: skip
    sequence: cython.longlong
    if kind == OFFSET_CELL:
        return put_number(out, to, plus(head[BASE_OFFSET], record[OFFSET_DELTA]))
    elif kind == TIMESTAMP_CELL:
        return put_number(out, to, _timestamp(head, record))
    elif kind == TIME_CELL:
        return put_time(out, to, _timestamp(head, record))
    elif kind in (SEQUENCE_CELL, SEQUENCE_OR_EMPTY_CELL):
        sequence = sequence_at(head[BASE_SEQUENCE], record[OFFSET_DELTA])
        return to if sequence == -1 and kind == SEQUENCE_OR_EMPTY_CELL else put_number(out, to, sequence)
    elif kind == KEY_CELL:
        return put_plain_bytes(out, to, data, record[KEY_START], record[KEY_SIZE], False)
    elif kind == VALUE_CELL:
        return put_plain_bytes(out, to, data, record[VALUE_START], record[VALUE_SIZE], True)
    elif kind == HEADERS_CELL:
        return put_plain_headers(out, to, data, record[HEADERS_START], record[HEADERS_COUNT])
    elif kind == JSON_KEY_CELL:
        return put_json_bytes(out, to, False, data, record[KEY_START], record[KEY_SIZE])
    elif kind == JSON_VALUE_CELL:
        return put_json_bytes(out, to, True, data, record[VALUE_START], record[VALUE_SIZE])
    elif kind == JSON_HEADERS_CELL:
        to = put_text(out, to, b"[", 1)
        to = put_json_headers(out, to, data, record[HEADERS_START], record[HEADERS_COUNT])
        return put_text(out, to, b"]", 1)
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _cell(
    out: cython.p_uchar, to: cython.Py_ssize_t, kind: cython.longlong, head: cython.p_longlong,
    record: cython.p_longlong, data: cython.p_uchar, shift: cython.longlong,
):  # fmt: skip
    """Write a cell of the batch with the numbers `head`, or of its record with the numbers `record`. `data`: the bytes
    of the batches, or of the records. Returns the position after the cell; -1 for special cases."""
    if kind < FIRST_CELL:
        return put_number(out, to, head[kind] if kind < OF_RECORD else record[kind - OF_RECORD])
    if kind < OFFSET_CELL:
        return _batch_cell(out, to, kind, head, data, shift)
    return _record_cell(out, to, kind, head, record, data)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _line(
    out: cython.p_uchar, used: cython.Py_ssize_t, plan: cython.p_longlong, texts: cython.p_uchar,
    head: cython.p_longlong, record: cython.p_longlong, data: cython.p_uchar, shift: cython.longlong,
):  # fmt: skip
    """Write one line after the `used` bytes of `out`. Returns the position after it; -1 for special cases."""
    at: cython.Py_ssize_t = PLAN_START
    end: cython.Py_ssize_t = PLAN_START + plan[PLAN_CELLS] * PLAN_WIDTH
    kinds: cython.Py_ssize_t = end + 2 * PLAN_WIDTH
    i: cython.Py_ssize_t
    begun: cython.Py_ssize_t
    to: cython.Py_ssize_t = used
    for i in range(plan[PLAN_OMITTED]):
        if _cell(out, used, plan[kinds + i], head, record, data, shift) != used:
            return -1
    while at < end:
        begun = put_piece(out, to, texts, plan[at + CELL_TEXT], plan[at + PLAN_WIDTH + CELL_TEXT])
        to = _cell(out, begun, plan[at + CELL_KIND], head, record, data, shift)
        if to < 0:
            return -1
        to = _pad(out, begun, to, plan[at + CELL_WIDTH], plan[at + CELL_RIGHT])
        at += PLAN_WIDTH
    to = _trimmed(out, used, to)
    return put_piece(out, to, texts, plan[at + CELL_TEXT], plan[at + PLAN_WIDTH + CELL_TEXT])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t))
def _record_lines(
    out: cython.p_uchar, used: cython.Py_ssize_t, size: cython.Py_ssize_t, plan: cython.p_longlong,
    texts: cython.p_uchar, head: cython.p_longlong, rows: cython.p_longlong, row: cython.Py_ssize_t,
    count: cython.Py_ssize_t, data: cython.p_uchar, shift: cython.longlong,
):  # fmt: skip
    """Write the lines of the records row..count of a batch after the `used` bytes of `out`, which has `size` bytes.
    Returns the first record that is not written, and the number of bytes used."""
    record: cython.p_longlong
    to: cython.Py_ssize_t
    need: cython.Py_ssize_t
    line_bytes: cython.Py_ssize_t = plan[PLAN_LINE_BYTES]
    per_byte: cython.Py_ssize_t = plan[PLAN_PER_BYTE]
    per_header: cython.Py_ssize_t = plan[PLAN_PER_HEADER]
    while row < count:
        record = _from(rows, row * RECORD_WIDTH)
        need = per_byte * (record[RECORD_END] - record[RECORD_START])
        if used + line_bytes + need + per_header * record[HEADERS_COUNT] > size:
            break
        to = _line(out, used, plan, texts, head, record, data, shift)
        if to < 0:
            break
        used = to
        row += 1
    return (row, used)


@cython.cfunc
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t))
def _lines(
    out: cython.p_uchar, used: cython.Py_ssize_t, size: cython.Py_ssize_t, plan: cython.p_longlong,
    texts: cython.p_uchar, head: cython.p_longlong, rows: cython.p_longlong, row: cython.Py_ssize_t,
    count: cython.Py_ssize_t, data: cython.p_uchar, shift: cython.longlong, members: Members | None,
):  # fmt: skip
    """Like _record_lines; `members`: for JSON objects with more members."""
    then: cython.Py_ssize_t
    at: cython.Py_ssize_t
    next: cython.Py_ssize_t
    more: bytes | None
    if members is None:
        with cython.nogil:
            row, used = _record_lines(out, used, size, plan, texts, head, rows, row, count, data, shift)
        return (row, used)
    while row < count:
        next, then = _record_lines(out, used, size, plan, texts, head, rows, row, row + 1, data, shift)
        if next == row:
            break
        at = row * RECORD_WIDTH
        more = members(
            _bytes(data, rows[at + KEY_START], rows[at + KEY_SIZE]),
            _bytes(data, rows[at + VALUE_START], rows[at + VALUE_SIZE]),
        )
        if more is None:
            break
        if more:
            if then + len(more) + 1 > size:
                break
            then = put_text(out, then - 2, b",", 1)
            then = put_text(out, then, more, len(more))
            then = put_text(out, then, b"}\n", 2)
        used = then
        row = next
    return (row, used)


@cython.cfunc
def _bytes(data: cython.p_uchar, start: cython.longlong, size: cython.longlong):
    return None if size < 0 else bytes(data[start : start + size])


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
    block: cython.longlong[::1] = heads.block
    layout: cython.longlong[::1] = plan.numbers
    between: bytes = plan.texts
    texts: cython.p_uchar = between
    data: cython.p_uchar
    out: cython.p_uchar
    head: cython.p_longlong
    numbers: cython.p_longlong
    if cython.compiled:
        data, out = cython.cast(cython.p_uchar, cython.address(buffer[0])), cython.address(target[0])
        head, numbers = cython.address(block[0]), cython.address(layout[0])
    else:
        data, out, head, numbers = buffer, target, block, layout
    shift: cython.longlong = heads.shift
    last: cython.Py_ssize_t = len(room) - layout[PLAN_LINE_BYTES]
    to: cython.Py_ssize_t
    with cython.nogil:
        while row < stop and used <= last:
            to = _line(
                out, used, numbers, texts, _from(head, row * HEADER_WIDTH), head,
                data, shift,
            )  # fmt: skip
            if to < 0:
                break
            used = to
            row += 1
    return row, used


def write_record_rows(
    room: bytearray,
    used: cython.Py_ssize_t,
    columns: RecordColumns,
    row: cython.Py_ssize_t,
    plan: RowPlan,
    heads: HeaderColumns,
    batch: cython.Py_ssize_t,
    members: Members | None = None,
) -> tuple[int, int]:
    """Write the lines of the columns' records from number `row` on, which belong to batch number `batch`, into `room`
    after its `used` bytes. Returns the first record that is not written, because it is a special case or there is no
    room (see `bytes_needed`), and the number of bytes used. `members`: more of each JSON object, in front of its
    end."""
    source: cython.const[cython.uchar][::1] = columns.data
    target: cython.uchar[::1] = room
    block: cython.longlong[::1] = heads.block
    rows: cython.longlong[::1] = columns.block
    layout: cython.longlong[::1] = plan.numbers
    between: bytes = plan.texts
    texts: cython.p_uchar = between
    data: cython.p_uchar
    out: cython.p_uchar
    head: cython.p_longlong
    record: cython.p_longlong
    numbers: cython.p_longlong
    if cython.compiled:
        data, out = cython.cast(cython.p_uchar, cython.address(source[0])), cython.address(target[0])
        head, record = cython.address(block[0]), cython.address(rows[0])
        numbers = cython.address(layout[0])
    else:
        data, out, head, record, numbers = source, target, block, rows, layout
    shift: cython.longlong = heads.shift
    size: cython.Py_ssize_t = len(room)
    count: cython.Py_ssize_t = columns.count
    return _lines(
        out, used, size, numbers, texts, _from(head, batch * HEADER_WIDTH), record, row, count, data, shift, members
    )


@cython.cfunc
@cython.exceptval(-1, check=False)
@cython.returns(cython.bint)
def _decoded(
    columns: RecordColumns, data: cython.const[cython.uchar][::1], rows: cython.longlong[::1], head: cython.p_longlong
):
    """Decode the records of a batch that is neither compressed nor a control batch; return False for special cases.
    `data` and `rows`: views of the columns, which cost as much as ten records if each batch takes them anew."""
    start: cython.Py_ssize_t = head[BATCH_START] + HEADER_SIZE
    count: cython.longlong = head[RECORD_COUNT]
    place: cython.Py_ssize_t
    _: cython.Py_ssize_t
    status: cython.Py_ssize_t
    if head[ATTRIBUTES] & (CODEC | IS_CONTROL) or count < 0:
        return False
    if count * RECORD_WIDTH > len(rows):  # which replaces columns.block
        return decode_all(columns, start, head[BATCH_END], count)
    place, _, status = read_rows(data, start, head[BATCH_END], count, True, rows, 0, len(rows))
    return status == ROWS_READ and place == head[BATCH_END]


def write_batches_records(
    room: bytearray, used: cython.Py_ssize_t, columns: RecordColumns, plan: RowPlan, heads: HeaderColumns,
    batch: cython.Py_ssize_t, stop: cython.Py_ssize_t, keys: list[bytes], highest_id: cython.longlong = -1,
    members: Members | None = None,
) -> tuple[int, int]:  # fmt: skip
    """Write the lines of all records of the batches batch..stop, like write_record_rows. Returns the first batch that
    is not completely written, and the number of bytes used. Such a batch is compressed, is a control batch, cannot be
    decoded, contains a special case, or does not fit. `columns` must refer to the data of `heads`. `keys`: write only
    records with one of these keys; empty: all. `highest_id`: stop before records that may hold schema IDs; -1: do
    not. `members`: as in write_record_rows."""
    source: cython.const[cython.uchar][::1] = columns.data
    target: cython.uchar[::1] = room
    block: cython.longlong[::1] = heads.block
    rows: cython.longlong[::1] = columns.block
    layout: cython.longlong[::1] = plan.numbers
    between: bytes = plan.texts
    texts: cython.p_uchar = between
    data: cython.p_uchar
    out: cython.p_uchar
    head: cython.p_longlong
    record: cython.p_longlong
    numbers: cython.p_longlong
    if cython.compiled:
        data, out = cython.cast(cython.p_uchar, cython.address(source[0])), cython.address(target[0])
        head, numbers = cython.address(block[0]), cython.address(layout[0])
    else:
        data, out, head, numbers = source, target, block, layout
    shift: cython.longlong = heads.shift
    size: cython.Py_ssize_t = len(room)
    h: cython.Py_ssize_t
    row: cython.Py_ssize_t
    count: cython.Py_ssize_t
    then: cython.Py_ssize_t
    while batch < stop:
        h = batch * HEADER_WIDTH
        count = block[h + RECORD_COUNT]
        if not _decoded(columns, source, rows, _from(head, h)):
            break
        if count * RECORD_WIDTH > len(rows):
            rows = columns.block
        if keys or highest_id >= 0:
            columns.count = count
            if keys:
                keep_keys(columns, keys)
            if highest_id >= 0 and may_hold_schema_ids(columns, highest_id):
                break
            count = columns.count
        if cython.compiled:
            record = cython.address(rows[0])
        else:
            record = rows
        row, then = _lines(out, used, size, numbers, texts, _from(head, h), record, 0, count, data, shift, members)
        if row < count:
            break
        used = then
        batch += 1
    return batch, used
