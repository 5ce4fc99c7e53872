"""Limits on the records of the logs in which Kafka keeps its own state, and on the memory of what is kept of them."""

from __future__ import annotations

import sys
from typing import Any

from kdump.core.column_numbers import STATE_ENTRY
from kdump.log.record import Record

MAX_VALUE_BYTES = 512 * 1024
"""Maximum size in bytes of a key or value that is decoded: decoded, it takes a hundred times as much."""
MAX_PROBLEMS = 100
ROOM = 48 * 1024 * 1024
"""Memory budget in bytes for state that is kept in addition to other work."""
ROOM_METADATA = 128 * 1024 * 1024
"""The same for the metadata of a cluster, which decides more. A third is kept for configs, so that 200,000 partitions
of large topics have room; with a topic for every four, half as many."""
ROOM_ALONE = 512 * 1024 * 1024
"""Memory budget in bytes if showing the state is the only work."""
ENTRY = STATE_ENTRY
"""Approximate bytes that a partition, a config or a transaction takes in addition to its text."""


def too_large(record: Record) -> bool:
    """Return True if the key or value exceeds MAX_VALUE_BYTES and must not be decoded."""
    return record.keySize > MAX_VALUE_BYTES or record.valueSize > MAX_VALUE_BYTES


def memory(value: Any) -> int:
    """Return the approximate bytes of memory that a value takes: texts, numbers, and tuples, lists and dicts of
    them."""
    if isinstance(value, str):
        return sys.getsizeof(value)
    if isinstance(value, dict):
        return ENTRY + sum(memory(name) + memory(item) for name, item in value.items())
    if isinstance(value, (tuple, list)):
        return 56 + 8 * len(value) + sum(memory(item) for item in value if item.__class__ is not int)
    return 0
