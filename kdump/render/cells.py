# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes table rows, and JSON objects of batches, directly from columns, without creating an object per row. Special
cases are left to the code that writes one row at a time (render.table, render.views). For all other rows, the output of
both is identical.

Compiled if a C compiler is available. As plain Python, it is slower than that code, and only tests use it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from kdump.format.errors import DecodeError
from kdump.format.header_columns import HeaderColumns
from kdump.format.record_columns import RecordColumns, decode

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.format.header_columns import sequence_at
    from cython.cimports.kdump.format.numbers import minus, plus
    from cython.cimports.kdump.render.record_lines import header_size, put_number, put_piece, put_text
else:
    from kdump.format.header_columns import sequence_at
    from kdump.format.numbers import minus, plus
    from kdump.render.record_lines import header_size, put_number, put_piece, put_text

COMPILED: bool = cython.compiled
BATCH_CELLS = (
    "position", "size", "baseOffset", "batchLength", "partitionLeaderEpoch", "magic", "crc", "attributes",
    "lastOffsetDelta", "baseTimestamp", "maxTimestamp", "producerId", "producerEpoch", "baseSequence", "recordCount",
    "crcValid", "compression", "timestampType", "isTransactional", "isControlBatch", "hasDeleteHorizonMs",
    "deleteHorizonMs", "lastOffset", "lastSequence",
)  # fmt: skip
"""What a cell of a batch can contain, by JSON key; the kinds after these, by name of the table's column:"""
BATCH_COLUMNS = ("offsets", "flags", "moment", "producer", "sequences", "ok")
RECORD_COLUMNS = ("offset", "timestamp", "sequence", "position", "keySize", "valueSize", "key", "headers", "value")
"""What a cell of a record can contain."""
FIXED = 100
"""Maximum bytes per cell, except for keys, values and headers."""


class RowPlan:
    """Layout of a line: the kind of each cell (an index into the tuples above), the text before each cell and after the
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
    """Write a cell of the batch whose numbers start at rows[at]. Returns the position after it; -1 for special
    cases."""
    start: cython.Py_ssize_t = rows[at]
    attributes: cython.longlong = rows[at + 5]
    codec: cython.longlong
    first: cython.Py_ssize_t = to
    if kind == 0:
        return put_number(out, to, start + shift)
    if kind == 1:
        return put_number(out, to, rows[at + 1] - start)
    if kind == 2:
        return put_number(out, to, rows[at + 2])
    if kind == 3:
        return put_number(out, to, rows[at + 1] - start - 12)
    if kind == 4:
        return put_number(out, to, rows[at + 4])
    if kind == 5:
        return put_number(out, to, 2)
    if kind == 6:
        return put_number(
            out,
            to,
            cython.cast(cython.longlong, data[start + 17]) << 24
            | cython.cast(cython.longlong, data[start + 18]) << 16
            | cython.cast(cython.longlong, data[start + 19]) << 8
            | data[start + 20],
        )
    if kind == 7:
        return put_number(out, to, attributes)
    if kind == 8:
        return put_number(out, to, minus(rows[at + 3], rows[at + 2]))
    if kind == 9:
        return put_number(out, to, rows[at + 11])
    if kind == 10:
        return put_number(out, to, rows[at + 6])
    if kind <= 14:
        return put_number(out, to, rows[at + kind - 4])
    if kind == 15:
        return put_text(out, to, b"true", 4)
    if kind == 16:
        codec = attributes & 7
        if codec == 0:
            return put_text(out, to, b"none", 4)
        if codec == 1:
            return put_text(out, to, b"gzip", 4)
        if codec == 2:
            return put_text(out, to, b"snappy", 6)
        if codec == 3:
            return put_text(out, to, b"lz4", 3)
        return put_text(out, to, b"zstd", 4) if codec == 4 else -1
    if kind == 17:
        return put_text(out, to, b"LogAppendTime", 13) if attributes & 8 else put_text(out, to, b"CreateTime", 10)
    if kind <= 20:
        return _bool(out, to, attributes >> (kind - 14) & 1)
    if kind == 21:
        return put_number(out, to, rows[at + 11]) if attributes & 0x40 else put_text(out, to, b"null", 4)
    if kind == 22:
        return put_number(out, to, rows[at + 3])
    if kind == 23:
        return put_number(out, to, sequence_at(rows[at + 9], minus(rows[at + 3], rows[at + 2])))
    if kind == 24:
        return _span(out, to, rows[at + 2], rows[at + 3])
    if kind == 25:
        if attributes & 0x10:
            to = put_text(out, to, b"txn,", 4)
        if attributes & 0x20:
            to = put_text(out, to, b"control,", 8)
        if attributes & 0x40:
            to = put_text(out, to, b"horizon,", 8)
        if attributes & 0x08:
            to = put_text(out, to, b"logAppend,", 10)
        return to - 1 if to > first else to
    if kind == 26:
        return _time(out, to, rows[at + 6])
    if kind == 27:
        if rows[at + 7] == -1 and rows[at + 8] == -1:
            return to
        to = put_number(out, to, rows[at + 7])
        to = put_text(out, to, b"/", 1)
        return put_number(out, to, rows[at + 8])
    if kind == 28:
        if rows[at + 9] == -1:
            return to
        return _span(out, to, rows[at + 9], sequence_at(rows[at + 9], minus(rows[at + 3], rows[at + 2])))
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
                    to = _batch_cell(out, to, empty[i], rows, row * 12, data, shift)
            if to != used:
                break
            for i in range(cells):
                to = put_piece(out, to, texts, starts[i], starts[i + 1])
                begun = to
                to = _batch_cell(out, to, kinds[i], rows, row * 12, data, shift)
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
    odd: cython.uint = 0
    i: cython.Py_ssize_t
    if size < 0:
        return put_text(out, to, b"null", 4)
    for i in range(size):
        odd |= (
            ((data[at + i] - 32) & 0xFF) > 94
            if not cython.compiled
            else cython.cast(cython.uchar, data[at + i] - 32) > 94
        )
        out[to + i] = data[at + i]
    return -1 if odd else to + size


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
    if kind == 0:
        return put_number(out, to, plus(base_offset, rows[at + 4]))
    if kind == 1:
        return _time(out, to, timestamp)
    if kind == 2:
        sequence = sequence_at(sequence, rows[at + 4])
        return to if sequence == -1 else put_number(out, to, sequence)
    if kind == 3:
        return put_number(out, to, position)
    if kind == 4:
        return put_number(out, to, rows[at + 6])
    if kind == 5:
        return put_number(out, to, rows[at + 8])
    if kind == 6:
        return _bytes(out, to, data, rows[at + 5], rows[at + 6])
    if kind == 7:
        return _headers(out, to, data, rows[at + 9], rows[at + 10])
    return _bytes(out, to, data, rows[at + 7], rows[at + 8])


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
    place: cython.Py_ssize_t = batch * 12
    position: cython.longlong = head[place] + cython.cast(cython.longlong, heads.shift)
    base: cython.longlong = head[place + 2]
    sequence: cython.longlong = head[place + 9]
    appended: cython.bint = head[place + 5] & 8 != 0
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
            at = row * 11
            # A null in a header needs up to four bytes more than its encoded size.
            if used + most + rows[at + 1] - rows[at] + 8 * rows[at + 10] > size:
                break
            timestamp = head[place + 6] if appended else plus(head[place + 11], rows[at + 3])
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
        at = batch * 12
        if rows[at + 5] & 0x27 or rows[at + 10] < 0:
            break
        columns.count = 0
        try:
            if decode(columns, rows[at] + 61, rows[at + 1], rows[at + 10], True) != rows[at + 1]:
                break
        except DecodeError:
            break
        if columns.count != rows[at + 10]:
            break
        before = used
        row, used = write_record_rows(room, used, columns, 0, plan, heads, batch)
        if row < columns.count:
            used = before
            break
        batch += 1
    return batch, used
