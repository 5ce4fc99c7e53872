"""The JSON objects of `inspect`, one by one. kdump.log.inspect_answer declares their keys; key, value and
headers of a record are written one by one, because the line of a large one is built in pieces, without a second copy of
its value and without an object for each of its headers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from kdump import jsonl
from kdump.answer import Object, answer_object, of_fact, put_bytes
from kdump.core.record_columns import each_header
from kdump.decode.decoder_interface import DecodedRecord
from kdump.format.control_record import decode_control
from kdump.log.entries import Entry
from kdump.log.inspect_answer import InspectedBatch, InspectedRegion
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Region
from kdump.log.remote_files import tier
from kdump.render.decoded_values import add_decoded
from kdump.render.escape import LARGE, PIECE, is_text, path_text, texts
from kdump.state.secrets import HIDDEN


def file_keys(target: Target) -> Object:
    """What every object of inspect states of its file."""
    return {"file": path_text(target.path), "topic": target.topic, "partition": target.partition}


def log_keys(target: Target) -> Object:
    """What every batch, record and region of inspect states of its file."""
    where = tier(target.path)
    return file_keys(target) if where is None else {**file_keys(target), "tier": where}


def batch_object(target: Target, batch: Batch) -> Object:
    return answer_object(InspectedBatch(target.path, target.topic, target.partition, tier(target.path), batch))


def record_object(target: Target, record: Record, reading: DecodedRecord | None = None) -> Object:
    out = before_key(target, record)
    for name in ("key", "value"):
        if _hides(reading, name):
            out[name] = HIDDEN
        else:
            put_bytes(out, name, getattr(record, name))
    headers = []
    for key, value in record.headers:
        header: Object = {}
        put_bytes(header, "key", key)
        put_bytes(header, "value", value)
        headers.append(header)
    out["headers"] = headers
    return out | after_headers(record, reading)


def _hides(reading: DecodedRecord | None, part: str) -> bool:
    """Return True if the decoder has hidden secrets in a key or value: its bytes would show them."""
    return reading is not None and bool(getattr(reading, part).hides)


def before_key(target: Target, record: Record) -> Object:
    """What a record's object begins with: the file, and the record's own numbers as InspectedRecord declares them."""
    return {
        "type": "record",
        **log_keys(target),
        "position": record.batch.position,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": record.timestampType,
        "attributes": record.attributes,
        "offsetDelta": record.offsetDelta,
        "timestampDelta": record.timestampDelta,
        "sequence": record.sequence,
        "keySize": record.keySize,
        "valueSize": record.valueSize,
    }


def after_headers(record: Record, reading: DecodedRecord | None) -> Object:
    """What it ends with."""
    out: Object = {}
    if record.crc is not None:
        out["crc"] = record.crc
        out["crcValid"] = record.crcValid
    if record.is_control:
        out["control"] = control_object(record)
    if reading is not None:
        add_decoded(out, reading)
    if record.is_damaged:
        out["damaged"] = True
    return out


def control_object(record: Record) -> Object:
    """What a control record says: type, version, and coordinatorEpoch or the decoded value."""
    control = decode_control(record.key, record.value)
    out: Object = {"type": control.type, "version": control.version}
    if control.coordinatorEpoch is not None:
        out["coordinatorEpoch"] = control.coordinatorEpoch
    elif control.value is not None:
        out["value"] = plain(control.value)
    return out


def plain(value: Any) -> Any:
    """A decoded message with its bytes as text or base64."""
    if isinstance(value, dict):
        out: Object = {}
        for name, item in value.items():
            if isinstance(item, bytes):
                put_bytes(out, name, item)
            else:
                out[name] = plain(item)
        return out
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def entry_object(target: Target, entry: Entry) -> Object:
    return {"type": entry.type, **file_keys(target), **entry.values}


def region_object(target: Target, region: Region) -> Object:
    claimed = region.claimed if region.kind == "torn" else None
    offset, length = claimed[:2] if claimed else (None, None)
    place = {"file": target.path, "topic": target.topic, "partition": target.partition, "tier": tier(target.path)}
    return answer_object(of_fact(InspectedRegion, region, **place, baseOffset=offset, batchLength=length))


def record_line(target: Target, record: Record, reading: DecodedRecord | None = None) -> Iterator[bytes]:
    """Yield the line in pieces, including the newline."""
    yield _encoded(before_key(target, record))[:-1]
    with memoryview(record.data) as data:
        for name, start, size in (
            ("key", record.key_start, record.keySize),
            ("value", record.value_start, record.valueSize),
        ):
            yield b","
            if _hides(reading, name):
                yield _encoded({name: HIDDEN})[1:-1]
            else:
                yield from _member(name, data[start : start + size] if size >= 0 else None)
        yield b',"headers":['
        yield from _headers(record, data)
    rest = _encoded(after_headers(record, reading))
    yield (b"]," if len(rest) > 2 else b"]") + rest[1:] + b"\n"


def _encoded(value: Object) -> bytes:
    return jsonl.line(value).encode("utf-8", "backslashreplace")


def _headers(record: Record, data: memoryview) -> Iterator[bytes]:
    """Yield the headers with commas between them, many small ones at once."""
    gathered: list[bytes] = []
    size = 0
    comma = b""
    if not record.header_count:
        return
    for key, value in each_header(data, record.header_start, record.header_count, record.end):
        if len(key) + len(value or b"") < LARGE:
            small: Object = {}
            put_bytes(small, "key", bytes(key))
            put_bytes(small, "value", None if value is None else bytes(value))
            gathered.append(comma + _encoded(small))
            size += len(gathered[-1])
            if size > PIECE:
                yield b"".join(gathered)
                gathered, size = [], 0
        else:
            yield b"".join(gathered) + comma + b"{"
            gathered, size = [], 0
            yield from _member("key", key)
            yield b","
            yield from _member("value", value)
            yield b"}"
        comma = b","
    yield b"".join(gathered)


def _member(name: str, data: memoryview | None) -> Iterator[bytes]:
    """Yield a key or value with its name, and its encoding if it is not UTF-8."""
    if data is None or len(data) < LARGE:
        small: Object = {}
        put_bytes(small, name, None if data is None else bytes(data))
        yield _encoded(small)[1:-1]
        return
    yield b'"%s":"' % name.encode()
    if is_text(data):
        for piece in texts(data):
            yield jsonl.line(piece).encode()[1:-1]
        yield b'"'
        return
    for start in range(0, len(data), PIECE):
        yield base64.b64encode(data[start : start + PIECE])
    yield b'","%sEncoding":"base64"' % name.encode()
