# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Offset commits of which only the newest of each group and partition is decoded: nearly all are overwritten.

Compiled if there is a C compiler; otherwise runs as plain Python."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache

from kdump.core.record_columns import RecordColumns
from kdump.format.batch_header import BatchHeader
from kdump.format.schema import FIXED, load_folder

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import plus
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import plus

MAX_BYTES = 24 * 1024 * 1024
"""Maximum memory of the commits that are kept: some 100,000 of usual sizes."""
ENTRY = 200
"""Approximate memory in bytes of a commit besides its key and value."""
_OFFSET = struct.Struct(">q")
OFFSET_COMMIT = 1
"""Type of an OffsetCommitKey."""
VERSION = 2
"""Size in bytes of the version before a value."""
COMMITTED = 8 + VERSION
"""Position of the committed offset in what is kept: the first field of each version of the value."""
LONGEST = 0x7FFF
"""Largest size of a string in bytes."""
LARGEST = 0x20000
"""Size in bytes above which neither a key nor a value is plain: both have less than two of the longest strings."""
TOPIC_ID = b"\1\0\x10"
"""Start of the tagged fields if the topic ID is the only one; its 16 bytes follow."""


@cython.cclass
class NewestCommits:
    """The newest commits, as bytes, in the order in which their keys came. `most`: the bytes of memory for them."""

    _newest: dict[bytes, bytes]
    _bytes: cython.Py_ssize_t
    _most: cython.Py_ssize_t
    _version: cython.int
    _at: cython.Py_ssize_t
    _fixed: cython.Py_ssize_t
    _is_flexible: cython.bint

    def __init__(self, most: cython.Py_ssize_t) -> None:
        self._newest = {}
        """By key: the offset of the record in 8 bytes, and its value."""
        self._bytes = 0
        self._most = most
        self._version = -1
        """The version of the latest value, and its layout."""
        self._at = self._fixed = 0
        self._is_flexible = False

    def put(
        self,
        columns: RecordColumns,
        row: cython.Py_ssize_t,
        batch: BatchHeader,
        last_offset: cython.longlong,
        last_time: cython.longlong,
    ) -> int:
        """Keep the commits in the records of a batch from number `row` on in place of earlier ones. Returns the number
        of the first that is not kept: any other record, a commit that may not decode, one of a lower offset than the
        earlier one or of a negative one, one for which there is no room, and one after these limits. The batch must be
        neither a control batch nor in a transaction."""
        data: bytes = bytes(columns.data)
        rows: cython.longlong[::1] = columns.block
        count: cython.Py_ssize_t = columns.count
        base: cython.longlong = batch.baseOffset
        time: cython.longlong
        is_appended: cython.bint = batch.timestampType == "LogAppendTime"
        offset: cython.longlong
        at: cython.Py_ssize_t
        key_size: cython.Py_ssize_t
        value_size: cython.Py_ssize_t
        start: cython.Py_ssize_t
        while row < count:
            at = row * RECORD_WIDTH
            offset = plus(base, rows[at + OFFSET_DELTA])
            time = batch.maxTimestamp if is_appended else plus(batch.baseTimestamp, rows[at + TIMESTAMP_DELTA])
            key_size = rows[at + KEY_SIZE]
            value_size = rows[at + VALUE_SIZE]
            if (
                offset > last_offset
                or time > last_time
                or not (0 <= key_size <= LARGEST and 0 <= value_size <= LARGEST)
            ):
                break
            start = rows[at + KEY_START]
            key = data[start : start + key_size]
            start = rows[at + VALUE_START]
            if not self._keep(key, data[start : start + value_size], offset):
                break
            row += 1
        return row

    @cython.cfunc
    @cython.exceptval(-1)
    @cython.returns(cython.bint)
    def _keep(self, key: bytes, value: bytes, offset: cython.longlong):
        """Keep a commit. Returns False as `put` says."""
        data: bytes
        more: cython.Py_ssize_t
        if not self.is_plain_value(value):
            return False
        if value[VERSION] & 0x80:  # negative: its bytes do not compare like numbers
            return False
        data = _OFFSET.pack(offset) + value
        before = self._newest.get(key)
        if before is None:
            if not is_plain_key(key):
                return False
            more = ENTRY + len(key) + len(data)
        else:
            if data[COMMITTED : COMMITTED + 8] < before[COMMITTED : COMMITTED + 8]:
                return False  # the caller notes that the offset went back
            more = len(data) - len(before)
        if more:
            if self._bytes + more > self._most:
                return False
            self._bytes += more
        self._newest[key] = data
        return True

    def take(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield the key, the offset and the value of each record that was kept, and forget them."""
        newest, self._newest, self._bytes = self._newest, {}, 0
        for key, data in newest.items():
            yield key, _OFFSET.unpack_from(data)[0], data[_OFFSET.size :]

    @cython.cfunc
    @cython.exceptval(-1)
    @cython.returns(cython.bint)
    def is_plain_value(self, value: bytes):
        """Return True if a value is an OffsetCommitValue with metadata in ASCII, which decodes."""
        size: cython.Py_ssize_t
        left: cython.Py_ssize_t = len(value)
        at: cython.Py_ssize_t
        if left < VERSION:
            return False
        if value[0] * 256 + value[1] != self._version:
            layout = _layouts().get(value[0] * 256 + value[1])
            if layout is None:
                return False
            self._version = value[0] * 256 + value[1]
            self._at, self._fixed, self._is_flexible = layout
        at = self._at
        left -= self._fixed
        if left < 0:
            return False
        if self._is_flexible:
            size = value[at] - 1
            if size < 0 or size >= 0x7F or left < size:
                return False
            return _is_ascii(value, at + 1, at + 1 + size) and _ends(value[self._fixed - 1 + size :])
        size = value[at] * 256 + value[at + 1]
        return left == size and size <= LONGEST and _is_ascii(value, at + 2, at + 2 + size)


def is_plain_key(key: bytes) -> bool:
    """Return True if a key is an OffsetCommitKey in ASCII, which decodes."""
    size: cython.Py_ssize_t = len(key)
    topic: cython.Py_ssize_t
    group_size: cython.Py_ssize_t
    topic_size: cython.Py_ssize_t
    if size < 10 or key[0] * 256 + key[1] != OFFSET_COMMIT:
        return False
    group_size = key[2] * 256 + key[3]
    topic = 4 + group_size
    if group_size > LONGEST or size < topic + 6:
        return False
    topic_size = key[topic] * 256 + key[topic + 1]
    if topic_size > LONGEST or size != topic + topic_size + 6:
        return False
    return _is_ascii(key, 4, topic) and _is_ascii(key, topic + 2, topic + 2 + topic_size)


@cython.cfunc
@cython.exceptval(-1)
@cython.returns(cython.bint)
def _is_ascii(data: bytes, start: cython.Py_ssize_t, stop: cython.Py_ssize_t):
    """Return True if data[start:stop], which exists, is ASCII."""
    if not cython.compiled:
        return data[start:stop].isascii()
    while start < stop:
        if data[start] > 0x7F:
            return False
        start += 1
    return True


@cache
def _layouts() -> dict[int, tuple[int, int, bool]]:
    """Return, by version of OffsetCommitValue: the position of the size of its metadata, its bytes without the metadata
    and what is in tagged fields, and whether it is flexible. Only versions in which the metadata is the one field of
    variable size."""
    schema, layouts = load_folder("group-coordinator")["OffsetCommitValue"], {}
    for version in range(schema.valid.lowest, schema.valid.highest + 1):
        fields = schema.struct(version)
        names = [node.name for node in fields.plain]
        at = names.index("metadata")
        if all(node.kind in FIXED for node in fields.plain if node.name != "metadata"):
            before = sum(node.least for node in fields.plain[:at])
            layouts[version] = (VERSION + before, VERSION + fields.least, fields.flexible)
    return layouts


def _ends(tags: bytes) -> bool:
    return tags == b"\0" or (len(tags) == len(TOPIC_ID) + 16 and tags.startswith(TOPIC_ID))
