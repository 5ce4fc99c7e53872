"""Hides the secrets in batches of Kafka Connect's topics: a bundle with their records never contains them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kdump.log.batch_records import records
from kdump.log.internal_topics import system_topic
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.state.connect_records import PREFIXES, BadRecord, connect_value, hides

CONNECT = "connect-"
PAIR = re.compile(rb'("(?:[^"\\]|\\.)*")\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,:{}\[\]"]+)')
"""A name in a JSON object, and its value, if that is no object or array."""


def connect_bytes(batch: Batch, topic: str) -> bytes | None:
    """Return the bytes of a batch, with as many * in place of the secrets if its records are Connect's; None if they
    cannot be distinguished from the rest: a record is not JSON, or the batch is compressed and has some."""
    system = system_topic(topic)
    is_named = system is not None and system.decoder.startswith(CONNECT)
    data = bytearray(b"".join(batch.chunks(0, batch.size)))
    if batch.isControlBatch or not (is_named or _looks_like_connect(batch)):
        return bytes(data)
    if batch.format.is_message or not batch.crcValid:
        return None
    for record in records(batch):
        try:
            hidden = list(_hidden(record))
        except BadRecord:
            if (is_named and system is not None and system.is_sure) or _is_config(record):
                return None
            continue
        for start, size in hidden:
            if batch.is_compressed:
                return None
            at = record.space_position - batch.position + start - record.start
            data[at : at + size] = b"*" * size
    return None if batch.problems else bytes(data)


def _looks_like_connect(batch: Batch) -> bool:
    """Return True if the key of the first record is one of Connect's configs."""
    first = next(records(batch), None)
    return first is not None and _is_config(first)


def _is_config(record: Record) -> bool:
    return bool(PREFIXES["connect-configs"].match((record.key or b"").decode(errors="replace")))


def _hidden(record: Record) -> Iterator[tuple[int, int]]:
    """Yield position in the record's data and size of each secret. Raises BadRecord."""
    key, value = record.key, record.value
    if key is not None and key[:1] in (b"[", b"{"):
        yield from _secrets(key, record.key_start, "")
    if value is not None:
        yield from _secrets(value, record.value_start, (key or b"").decode(errors="replace"))


def _secrets(data: bytes, start: int, key: str) -> Iterator[tuple[int, int]]:
    connect_value(data)
    for pair in PAIR.finditer(data):
        name, value = _scalar(pair[1]), _scalar(pair[2])
        if hides(name, value, key):
            quoted = pair[2].startswith(b'"')
            at, end = pair.start(2) + quoted, pair.end(2) - quoted
            yield start + at, end - at


def _scalar(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise BadRecord("not JSON") from None
