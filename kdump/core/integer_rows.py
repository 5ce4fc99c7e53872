# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Rows of 64-bit integers, each column in as few bytes as its values need: a log may have a million producers, most of
whose counts are small, and whose offsets are near each other.

Compiled if a compiler is available, and otherwise run as Python."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

try:
    import cython
except ImportError:
    from kdump import nocython as cython

FIRST_ROWS = 4
MASK = 0xFFFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.ulonglong)
def _code(value: cython.longlong, near: cython.longlong):
    """Return the difference of two numbers, positive and negative ones in turn (zigzag), plus 1."""
    difference: cython.ulonglong = cython.cast(cython.ulonglong, value) - cython.cast(cython.ulonglong, near)
    sign: cython.ulonglong
    if not cython.compiled:
        difference &= MASK
    sign = difference >> 63
    if not cython.compiled:
        return ((difference << 1 & MASK) ^ (MASK if sign else 0)) + 1 & MASK
    return ((difference << 1) ^ (0 - sign)) + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _value(code: cython.ulonglong, near: cython.longlong):
    """Return the number with this code."""
    zigzag: cython.ulonglong = code - 1
    if not cython.compiled:
        return _signed(near + (zigzag >> 1 ^ -(zigzag & 1)))
    return cython.cast(cython.longlong, cython.cast(cython.ulonglong, near) + ((zigzag >> 1) ^ (0 - (zigzag & 1))))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _signed(bits: cython.ulonglong):
    """Return the number that 64 bits stand for."""
    if not cython.compiled:
        bits &= MASK
        return bits - (1 << 64) if bits >> 63 else bits
    return cython.cast(cython.longlong, bits)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _width(code: cython.ulonglong):
    """Return the bytes that a code needs, 8 for one that wrapped around to 0."""
    width: cython.Py_ssize_t = 0
    if code == 0:
        return 8
    while code:
        code >>= 8
        width += 1
    return width


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.ulonglong)
def _read(data: cython.uchar[::1], at: cython.Py_ssize_t, width: cython.Py_ssize_t):
    bits: cython.ulonglong = 0
    place: cython.Py_ssize_t = at + width
    while place > at:
        place -= 1
        bits = bits << 8 | data[place]
    return bits


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.void)
def _write(data: cython.uchar[::1], at: cython.Py_ssize_t, width: cython.Py_ssize_t, bits: cython.ulonglong):
    stop: cython.Py_ssize_t = at + width
    while at < stop:
        data[at] = bits & 255
        bits >>= 8
        at += 1


@cython.cclass
class IntegerRows:
    """Rows by number, from 0 on, of one integer for each of `defaults`. `near`: for each column an earlier one whose
    values are close, or -1 if there is none.

    Rows are stored in blocks of 256, which have their widths in common. A column of 8 bytes has the values themselves.
    A narrower one has codes: 0 for the default, else the difference from the value of the `near` column or, if there is
    none, from the first value of the column in the block. A column that has only defaults takes nothing."""

    _defaults: cython.longlong[::1]
    _near: cython.longlong[::1]
    _values: cython.longlong[::1]
    _widths: cython.longlong[::1]
    _blocks: list[bytearray]
    _columns: cython.Py_ssize_t
    _count: cython.Py_ssize_t

    def __init__(self, defaults: Sequence[int], near: Sequence[int]) -> None:
        self._columns = len(defaults)
        self._count = 0
        if len(near) != len(defaults) or any(each >= column for column, each in enumerate(near)):
            raise ValueError("near: earlier columns only")
        self._defaults = array("q", defaults)
        self._near = array("q", near)
        self._values = array("q", bytes(8 * self._columns))
        """The row that is being put or read."""
        self._widths = array("q", bytes(8 * self._columns))
        """The widths that the row being put needs."""
        self._blocks = []
        """Each begins with the first value of each column (8 bytes), the widths (1 byte), and the size of a row (2)."""

    def __len__(self) -> int:
        return self._count

    def get(self, row: cython.Py_ssize_t) -> tuple[int, ...]:
        """Return a row that exists."""
        data: cython.uchar[::1]
        column: cython.Py_ssize_t
        if row < 0 or row >= self._count:
            raise IndexError(row)
        data = self._blocks[row >> 8]
        self._load(data, row & 255)
        found: list[int] = [0] * self._columns
        for column in range(self._columns):
            found[column] = self._values[column]
        return tuple(found)

    def put(self, row: cython.Py_ssize_t, values: Sequence[int]) -> None:
        """Store a row: one that exists, or the next one."""
        data: cython.uchar[::1]
        column: cython.Py_ssize_t
        columns: cython.Py_ssize_t = self._columns
        width: cython.Py_ssize_t
        needed: cython.Py_ssize_t
        is_wider: cython.bint = False
        if row < 0 or row > self._count or len(values) != columns:
            raise IndexError(row)
        for column in range(columns):
            self._values[column] = values[column]
        if row == self._count:
            if row & 255 == 0:
                self._blocks.append(bytearray(9 * columns + 2))
            self._count += 1
        data = self._blocks[row >> 8]
        for column in range(columns):
            width = needed = data[8 * columns + column]
            if width < 8 and self._values[column] != self._defaults[column]:
                if width == 0:  # the first value of the column
                    _write(data, 8 * column, 8, cython.cast(cython.ulonglong, self._values[column]))
                needed = _width(_code(self._values[column], self._reference(data, column)))
            if needed > width:
                is_wider = True
                width = needed
            self._widths[column] = width
        if is_wider or ((row & 255) + 1) * self._size(data) > len(data) - 9 * columns - 2:
            self._blocks[row >> 8] = self._resized(data, row >> 8)
            data = self._blocks[row >> 8]
        self._store(data, row & 255)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.returns(cython.Py_ssize_t)
    def _size(self, data: cython.uchar[::1]):
        """Return the size of a row of a block."""
        return cython.cast(cython.Py_ssize_t, _read(data, 9 * self._columns, 2))

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.returns(cython.longlong)
    def _reference(self, data: cython.uchar[::1], column: cython.Py_ssize_t):
        """Return the value that the code of a column is relative to."""
        near: cython.Py_ssize_t = self._near[column]
        if near >= 0 and self._values[near] != self._defaults[near]:
            return self._values[near]
        return _signed(_read(data, 8 * column, 8))

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.returns(cython.void)
    def _load(self, data: cython.uchar[::1], row: cython.Py_ssize_t):
        """Decode a row of a block into `_values`."""
        columns: cython.Py_ssize_t = self._columns
        column: cython.Py_ssize_t
        width: cython.Py_ssize_t
        bits: cython.ulonglong
        at: cython.Py_ssize_t = 9 * columns + 2 + row * self._size(data)
        for column in range(columns):
            width = data[8 * columns + column]
            bits = _read(data, at, width)
            at += width
            if width == 8:
                self._values[column] = _signed(bits)
            elif bits == 0:
                self._values[column] = self._defaults[column]
            else:
                self._values[column] = _value(bits, self._reference(data, column))

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.returns(cython.void)
    def _store(self, data: cython.uchar[::1], row: cython.Py_ssize_t):
        """Encode `_values` into a row of a block, whose widths suffice."""
        columns: cython.Py_ssize_t = self._columns
        column: cython.Py_ssize_t
        width: cython.Py_ssize_t
        bits: cython.ulonglong
        at: cython.Py_ssize_t = 9 * columns + 2 + row * self._size(data)
        for column in range(columns):
            width = data[8 * columns + column]
            if width == 8:
                bits = cython.cast(cython.ulonglong, self._values[column])
            elif self._values[column] == self._defaults[column]:
                bits = 0
            else:
                bits = _code(self._values[column], self._reference(data, column))
            _write(data, at, width, bits)
            at += width

    def _resized(self, old: cython.uchar[::1], number: cython.Py_ssize_t) -> bytearray:
        """Return a block with the rows of another and room for more, whose columns have the widths in `_widths`."""
        columns: cython.Py_ssize_t = self._columns
        head: cython.Py_ssize_t = 9 * columns + 2
        column: cython.Py_ssize_t
        row: cython.Py_ssize_t
        rows: cython.Py_ssize_t = self._count - 256 * number
        room: cython.Py_ssize_t = 256
        size: cython.Py_ssize_t = 0
        data: cython.uchar[::1]
        for column in range(columns):
            size += self._widths[column]
        rows = rows if rows < 256 else 256
        if number == 0:  # most tables are small
            room = min(256, max(FIRST_ROWS, rows + rows // 2))
        made = bytearray(head + size * room)
        data = made
        data[: 8 * columns] = old[: 8 * columns]
        for column in range(columns):
            data[8 * columns + column] = self._widths[column]
        _write(data, 9 * columns, 2, size)
        current = self._values
        self._values = array("q", bytes(8 * columns))
        for row in range(rows):
            if (row + 1) * self._size(old) <= len(old) - head:
                self._load(old, row)
                self._store(data, row)
        self._values = current
        return made
