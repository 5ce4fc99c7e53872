"""Hides the secrets in batches of the cluster's metadata, and of Kafka Connect's topics: a bundle never contains them.

Source: the records of org.apache.kafka.common.metadata that carry credentials (UserScramCredentialRecord,
DelegationTokenRecord, RemoveDelegationTokenRecord, ConfigRecord), and KIP-900 for SCRAM in bootstrap.checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from kdump.core.column_numbers import MARKER_SIZE
from kdump.decode.redaction.rules import MASK
from kdump.format.control_record import KEY, decode_control
from kdump.format.layout import Span
from kdump.format.metadata_record import MetadataRecord, decode_metadata_record, read_frame
from kdump.log.batch_records import records
from kdump.log.internal_topics import system_topic
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.state.connect_records import PREFIXES, BadRecord, connect_value, hides
from kdump.state.effective_config import is_public
from kdump.state.secrets import CONFIG, SECRET_FIELDS


def without_secrets(batch: DefaultRecordBatch) -> bytes | None:
    """Return the bytes of a batch with its secrets replaced by as many other characters; None if they cannot be
    distinguished from the rest: the batch is compressed and has some, or a record cannot be decoded. Of a newer release
    than the newest known one, records of new types are kept, and those that may have secrets have zeros."""
    if batch.isControlBatch:
        return control_bytes(batch)
    if not batch.crcValid:
        return None  # in a bundle made from headers alone: damage can make one type of record look like another
    return _masked(batch, lambda record: None if record.key is not None or record.header_count else _hidden(record))


Mask = tuple[int, bytes]
"""A position in the data of a record, and what to write over it."""


def _masked(batch: Batch, masks_of: Callable[[Record], list[Mask] | None]) -> bytes | None:
    """Return the bytes of a batch with what `masks_of` says written over its records; None if it returns None for a
    record, if the batch is compressed and has any, or if it does not decode."""
    data = bytearray(b"".join(batch.chunks(0, batch.size)))
    reading = Reading(batch)
    for record in records(reading):
        masks = masks_of(record)
        if masks is None or (masks and batch.is_compressed):
            return None
        for start, mask in masks:
            position = record.space_position - batch.position + start - record.start
            data[position : position + len(mask)] = mask
    return None if reading.has_found else bytes(data)


def control_bytes(batch: Batch) -> bytes | None:
    """Return the bytes of a control batch; None if it has anything but control records, such as after damage to the
    attributes of another batch."""
    if not batch.isControlBatch or not batch.crcValid:
        return None
    reading = Reading(batch)
    if batch.size != MARKER_SIZE:  # a marker leaves no room for anything else
        for record in records(reading):
            control = decode_control(record.key, record.value)
            if control.rest or control.problem or record.keySize != KEY.size or record.header_count:
                return None
    return None if reading.has_found else b"".join(batch.chunks(0, batch.size))


def looks_like_metadata(batch: Batch) -> bool:
    """Return True if the first record of a batch is one of the cluster's metadata: a copy of that log under another
    name. (The log itself is never compressed.)"""
    if batch.is_compressed or batch.format.is_message:
        return False
    first = next(records(batch), None)
    return first is not None and first.key is None and decode_metadata_record(first.value).values is not None


def _hidden(record: Record) -> list[Mask] | None:
    """Return what to write over a record's value; None if that is unknown."""
    value = record.value
    if value is None:
        return None
    spans: list[Span] = []
    decoded = decode_metadata_record(bytes(value), spans=spans)
    if decoded.newer:
        return _hidden_of_newer(decoded, bytes(value), record.value_start)
    if decoded.values is None or decoded.problem is not None or decoded.note:
        return None
    names: tuple[str, ...] = SECRET_FIELDS.get(decoded.name, ())
    if decoded.name == CONFIG and not is_public(decoded.values):
        names = ("value",)
    return [(record.value_start + start, mask) for name in names for start, mask in _masks(name, spans)]


def _hidden_of_newer(record: MetadataRecord, value: bytes, value_start: int) -> list[Mask]:
    """Return the same for a record of a newer release than the newest known one."""
    start = 1
    if record.apiKey is not None:
        if record.name not in SECRET_FIELDS and record.name != CONFIG:
            return []
        start = read_frame(value).position
    return [(value_start + start, bytes(len(value) - start))]


def _masks(name: str, spans: list[Span]) -> Iterator[Mask]:
    for span in spans:
        if span.field.name != name or span.depth or span.value is None:
            continue
        stored = span.value if isinstance(span.value, bytes) else str(span.value).encode()
        start = span.position + span.size - len(stored)
        # An ID stays different from other IDs, and random ones cannot be guessed from their hashes.
        digest = sha256(stored).hexdigest().encode()
        mask = digest * (len(stored) // len(digest) + 1) if name == "tokenId" else MASK * len(stored)
        yield start, mask[: len(stored)]


CONNECT = "connect-"
PAIR = re.compile(rb'("(?:[^"\\]|\\.)*")\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,:{}\[\]"]+)')
"""A name in a JSON object, and its value, if that is no object or array."""


def connect_bytes(batch: Batch, topic: str) -> bytes | None:
    """Return the bytes of a batch, with as many * in place of the secrets if its records are Connect's; None if they
    cannot be distinguished from the rest: a record is not JSON, or the batch is compressed and has some."""
    system = system_topic(topic)
    is_named = system is not None and system.decoder.startswith(CONNECT)
    if batch.isControlBatch or not (is_named or _looks_like_connect(batch)):
        return b"".join(batch.chunks(0, batch.size))
    if batch.format.is_message or not batch.crcValid or batch.problems:
        return None

    def masks_of(record: Record) -> list[Mask] | None:
        try:
            return [(start, MASK * size) for start, size in _secrets_in(record)]
        except BadRecord:
            return None if (is_named and system is not None and system.is_sure) or _is_config(record) else []

    return _masked(batch, masks_of)


def _looks_like_connect(batch: Batch) -> bool:
    """Return True if the key of the first record is one of Connect's configs."""
    first = next(records(batch), None)
    return first is not None and _is_config(first)


def _is_config(record: Record) -> bool:
    return bool(PREFIXES["connect-configs"].match((record.key or b"").decode(errors="replace")))


def _secrets_in(record: Record) -> Iterator[tuple[int, int]]:
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
            begin, end = pair.start(2) + quoted, pair.end(2) - quoted
            yield start + begin, end - begin


def _scalar(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise BadRecord("not JSON") from None
