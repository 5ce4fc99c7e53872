# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Numbers the rows of a table by 64-bit IDs, in a few bytes per ID: a log may have a million producers.

Compiled if a compiler is available, and otherwise run as Python."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

try:
    import cython
except ImportError:
    from kdump import nocython as cython

FIRST_ROWS = 64


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.ulonglong)
def _mixed(number: cython.longlong):
    """Return a hash of the number: IDs are often consecutive, or multiples of 1,000."""
    bits: cython.ulonglong
    one: cython.ulonglong
    other: cython.ulonglong
    if not cython.compiled:
        number &= 0xFFFFFFFFFFFFFFFF
    # In halves: Cython computes with Python's integers where a literal has more than 32 bits.
    one = cython.cast(cython.ulonglong, 0x7FB5D329) << 32 | 0x728EA185
    other = cython.cast(cython.ulonglong, 0x165667B1) << 32 | 0x1E3779F9
    bits = cython.cast(cython.ulonglong, number)
    bits = (bits ^ bits >> 33) * one
    if not cython.compiled:
        bits &= 0xFFFFFFFFFFFFFFFF
    bits = (bits ^ bits >> 29) * other
    if not cython.compiled:
        bits &= 0xFFFFFFFFFFFFFFFF
    return bits ^ bits >> 33


@cython.cclass
class IdRows:
    """Row numbers from 0 on, by ID. If `by_age`, it also knows the order in which the IDs were last added or touched,
    and can give the row of the oldest to a new ID. Takes 14 to 21 bytes per ID, with ages 22 to 30."""

    _ids: cython.longlong[::1]
    _older: cython.uint[::1]
    _newer: cython.uint[::1]
    _slots: cython.uint[::1]
    _count: cython.Py_ssize_t
    _mask: cython.Py_ssize_t
    _by_age: cython.bint
    _oldest: cython.Py_ssize_t
    _newest: cython.Py_ssize_t

    def __init__(self, by_age: bool = False) -> None:
        self._by_age = by_age
        self._count = 0
        self._oldest = self._newest = -1
        self._ids = array("q", bytes(8 * FIRST_ROWS))
        self._older = self._newer = array("I", b"")
        if by_age:
            self._older = array("I", bytes(4 * FIRST_ROWS))
            self._newer = array("I", bytes(4 * FIRST_ROWS))
        self._rehash(2 * FIRST_ROWS)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        """Yield the row numbers, oldest first if `by_age`, else in order."""
        row: cython.Py_ssize_t
        if not self._by_age:
            yield from range(self._count)
            return
        row = self._oldest
        while row >= 0:
            yield row
            if self._newer[row] == 0xFFFFFFFF:
                return
            row = self._newer[row]

    def id_of(self, row: cython.Py_ssize_t) -> int:
        """Return the ID of a row that exists."""
        return self._ids[row]

    def find(self, number: cython.longlong) -> int:
        """Return the row of an ID, -1 if it has none."""
        place: cython.Py_ssize_t = self._place(number)
        return cython.cast(cython.Py_ssize_t, self._slots[place]) - 1

    def add(self, number: cython.longlong) -> int:
        """Return the row of an ID, a new one at the end if it has none, and make it the newest."""
        place: cython.Py_ssize_t = self._place(number)
        row: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self._slots[place]) - 1
        if row >= 0:
            if self._by_age and row != self._newest:
                self._unlink(row)
                self._link(row)
            return row
        if self._count == len(self._ids):
            self._grow()
        if 4 * (self._count + 1) > 3 * (self._mask + 1):
            self._rehash(2 * (self._mask + 1))
        row = self._count
        self._count += 1
        self._ids[row] = number
        self._slots[self._place(number)] = row + 1
        if self._by_age:
            self._link(row)
        return row

    def replace_oldest(self, number: cython.longlong) -> int:
        """Give the row of the oldest ID to `number`, which has none, and make it the newest; return the row."""
        row: cython.Py_ssize_t = self._oldest
        self._free(self._place(self._ids[row]))
        self._unlink(row)
        self._ids[row] = number
        self._slots[self._place(number)] = row + 1
        self._link(row)
        return row

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.returns(cython.Py_ssize_t)
    def _place(self, number: cython.longlong):
        """Return the slot of an ID, or the free slot that it would take. A slot is a row number + 1, 0 if it is
        free."""
        mask: cython.Py_ssize_t = self._mask
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, _mixed(number) & mask)
        while self._slots[place] and self._ids[self._slots[place] - 1] != number:
            place = (place + 1) & mask
        return place

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.returns(cython.void)
    def _free(self, place: cython.Py_ssize_t):
        """Free a slot; those after it that cannot be found across a free one move up."""
        mask: cython.Py_ssize_t = self._mask
        after: cython.Py_ssize_t = place
        home: cython.Py_ssize_t
        while True:
            after = (after + 1) & mask
            if not self._slots[after]:
                break
            home = cython.cast(cython.Py_ssize_t, _mixed(self._ids[self._slots[after] - 1]) & mask)
            if ((after - home) & mask) >= ((after - place) & mask):
                self._slots[place] = self._slots[after]
                place = after
        self._slots[place] = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.returns(cython.void)
    def _link(self, row: cython.Py_ssize_t):
        self._newer[row] = 0xFFFFFFFF
        self._older[row] = 0xFFFFFFFF
        if self._newest >= 0:
            self._older[row] = self._newest
            self._newer[self._newest] = row
        else:
            self._oldest = row
        self._newest = row

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.returns(cython.void)
    def _unlink(self, row: cython.Py_ssize_t):
        older: cython.uint = self._older[row]
        newer: cython.uint = self._newer[row]
        if row == self._oldest:
            self._oldest = newer
        else:
            self._newer[older] = newer
        if row == self._newest:
            self._newest = older
        else:
            self._older[newer] = older
        if older == 0xFFFFFFFF and newer == 0xFFFFFFFF:
            self._oldest = self._newest = -1

    def _grow(self) -> None:
        """Make room for an eighth more rows."""
        more: cython.Py_ssize_t = max(FIRST_ROWS, self._count // 8)
        self._ids = _longer(self._ids, 8 * more)
        if self._by_age:
            self._older = _longer(self._older, 4 * more)
            self._newer = _longer(self._newer, 4 * more)

    def _rehash(self, size: cython.Py_ssize_t) -> None:
        row: cython.Py_ssize_t
        self._slots = array("I", b"")  # free it before there is another
        self._slots = array("I", bytes(4)) * size
        self._mask = size - 1
        for row in range(self._count):
            self._slots[self._place(self._ids[row])] = row + 1


def _longer(numbers: object, size: int) -> array[int]:
    """Return a copy with `size` bytes of zeros at the end."""
    view = memoryview(numbers)  # type: ignore[arg-type]
    longer = array(view.format)
    longer.frombytes(view.cast("B"))
    longer.frombytes(bytes(size))
    return longer
