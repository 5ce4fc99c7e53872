"""Offset commits of which only the newest of each group and partition is decoded: nearly all are overwritten."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache

from kdump.format.schema import FIXED, load_folder
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.state.internal_records import too_large

MAX_BYTES = 24 * 1024 * 1024
"""Maximum memory of the commits that are kept: some 100,000 of usual sizes."""
ENTRY = 200
"""Approximate memory in bytes of a commit besides its key and value."""
_OFFSET = struct.Struct(">q")
KEY_TYPE = b"\0\1"
VERSION = 2
"""Size in bytes of the version before a value."""
LONGEST = 0x7FFF
"""Largest size of a string in bytes."""
TOPIC_ID = b"\1\0\x10"
"""Start of the tagged fields if the topic ID is the only one; its 16 bytes follow."""


class NewestCommits:
    """The newest commits, as bytes, in the order in which their keys came."""

    def __init__(self) -> None:
        self._newest: dict[bytes, bytes] = {}
        """By key: the offset of the record in 8 bytes, and its value."""
        self._bytes = 0
        self._batch: Batch | None = None
        """The batch of the latest record, and whether it is neither a control batch nor in a transaction."""
        self._is_plain = False

    def put(self, record: Record) -> bool:
        """Keep a commit in place of an earlier one. Returns False for any other record, for a commit in a transaction,
        for one that may not decode, and if there is no room."""
        batch = record.batch
        if batch is not self._batch:
            in_transaction = batch.producerId is not None and batch.producerId >= 0
            self._batch, self._is_plain = batch, not (batch.isControlBatch or in_transaction)
        if not self._is_plain or too_large(record):
            return False
        key, value = record.key, record.value
        if key is None or value is None or not is_plain_value(value):
            return False
        newest = self._newest
        before = newest.get(key)
        data = _OFFSET.pack(record.offset or 0) + value
        if before is None:
            if not is_plain_key(key):
                return False
            more = ENTRY + len(key) + len(data)
        else:
            more = len(data) - len(before)
        if more:
            if self._bytes + more > MAX_BYTES:
                return False
            self._bytes += more
        newest[key] = data
        return True

    def take(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield the key, the offset and the value of each record that was kept, and forget them."""
        newest, self._newest, self._bytes = self._newest, {}, 0
        for key, data in newest.items():
            yield key, _OFFSET.unpack_from(data)[0], data[_OFFSET.size :]


def is_plain_key(key: bytes) -> bool:
    """Return True if a key is an OffsetCommitKey in ASCII, which decodes."""
    group_size = int.from_bytes(key[2:4], "big")
    topic = 4 + group_size
    topic_size = int.from_bytes(key[topic : topic + 2], "big")
    end = topic + 2 + topic_size
    if key[:2] != KEY_TYPE or end + 4 != len(key) or max(group_size, topic_size) > LONGEST:
        return False
    return key[4:topic].isascii() and key[topic + 2 : end].isascii()


def is_plain_value(value: bytes) -> bool:
    """Return True if a value is an OffsetCommitValue with metadata in ASCII, which decodes."""
    layout = _layouts().get(value[:2])
    if layout is None:
        return False
    at, fixed, is_flexible = layout
    if is_flexible:
        size = value[at] - 1 if len(value) > at else -1
        tags = value[fixed - 1 + size :]
        return 0 <= size < 0x7F and _ends(tags) and value[at + 1 : at + 1 + size].isascii()
    size = int.from_bytes(value[at : at + 2], "big")
    return len(value) == fixed + size and size <= LONGEST and value[at + 2 : at + 2 + size].isascii()


@cache
def _layouts() -> dict[bytes, tuple[int, int, bool]]:
    """Return, by the two bytes of the version of OffsetCommitValue: the position of the size of its metadata, its bytes
    without the metadata and what is in tagged fields, and whether it is flexible. Only versions in which the metadata
    is the one field of variable size."""
    schema, layouts = load_folder("group-coordinator")["OffsetCommitValue"], {}
    for version in range(schema.valid.lowest, schema.valid.highest + 1):
        fields = schema.struct(version)
        names = [node.name for node in fields.plain]
        at = names.index("metadata")
        if all(node.kind in FIXED for node in fields.plain if node.name != "metadata"):
            number = version.to_bytes(VERSION, "big")
            before = sum(node.least for node in fields.plain[:at])
            layouts[number] = (VERSION + before, VERSION + fields.least, fields.flexible)
    return layouts


def _ends(tags: bytes) -> bool:
    return tags == b"\0" or (len(tags) == len(TOPIC_ID) + 16 and tags.startswith(TOPIC_ID))
