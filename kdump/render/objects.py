"""The JSON objects: every key of every type, with its unit, declared once. docs/json.md is made from this.

Keys that a specification names come from the declaration of its layout.
"""

from __future__ import annotations

import base64
from typing import Any

from kdump.check.catalogue import SEVERITIES, Code
from kdump.check.finding import Finding
from kdump.check.totals import Totals
from kdump.decode.said import Reading
from kdump.format.batch import BATCH_HEADER
from kdump.format.control import decode_control
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.layout import Layout
from kdump.format.snapshot import PRODUCER_ENTRY
from kdump.log.entries import Entry
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Region
from kdump.render.carve_keys import CARVE_TYPES
from kdump.render.decoded import put_reading
from kdump.render.diff_keys import DIFF_TYPES
from kdump.render.escape import path_text
from kdump.render.key import Key as Key
from kdump.render.overview_keys import OVERVIEW_TYPES
from kdump.render.reindex_keys import REINDEX_TYPES
from kdump.render.restart_keys import RESTART_TYPES
from kdump.render.salvage_keys import SALVAGE_TYPES
from kdump.render.scan_keys import SCAN_TYPES
from kdump.render.state_keys import STATE_TYPES
from kdump.render.stats_keys import STATS_TYPES
from kdump.render.struct_keys import STRUCT_TYPES

Object = dict[str, Any]


LEGACY_HAS = ("batchLength", "magic", "crc", "attributes")
"""Fields of a v2 header that a message of v0 or v1 has too, whatever their names there."""


def _header_keys() -> list[Key]:
    return [
        Key(
            field.name,
            "number" if field.name in LEGACY_HAS else "number or null",
            field.unit if field.unit != "hex" else "bits",
            field.meaning,
        )
        for field in BATCH_HEADER.fields
    ]


FILE = Key("file", "string", "", "path as given, or found below a directory that was given")
POSITION = Key("position", "number", "byte of the file", "where it begins; in a compressed file, of what it unpacks to")
SIZE = Key("size", "number", "bytes", "its length in the file")

BATCH_KEYS = (
    FILE,
    POSITION,
    SIZE,
    *_header_keys(),
    Key("crcValid", "boolean", "", "whether the stored checksum is that of the bytes"),
    Key("compression", "string", "", "none, gzip, snappy, lz4, zstd, or unknown(N) for an id that Kafka has not"),
    Key("timestampType", "string", "", "CreateTime, LogAppendTime, or NoTimestampType (magic 0)"),
    Key("isTransactional", "boolean or null", "", "attribute bit 4"),
    Key("isControlBatch", "boolean or null", "", "attribute bit 5"),
    Key("hasDeleteHorizonMs", "boolean or null", "", "attribute bit 6: baseTimestamp is the delete horizon"),
    Key("deleteHorizonMs", "number or null", "epoch ms", "when the cleaner may drop tombstones and markers here"),
    Key("lastOffset", "number", "offset", "baseOffset + lastOffsetDelta; the stored offset of a v0 or v1 message"),
    Key("lastSequence", "number or null", "", "sequence number of the last record; -1: none"),
)

RECORD_KEYS = (
    FILE,
    Key("position", "number", "byte of the file", "where its batch begins"),
    Key("offset", "number or null", "offset", "null if damage to a v1 wrapper hides it"),
    Key("timestamp", "number or null", "epoch ms", "null in magic 0"),
    Key("timestampType", "string", "", "CreateTime, LogAppendTime, or NoTimestampType (magic 0)"),
    Key("attributes", "number", "bits", "of the record; of the message itself in magic 0 and 1"),
    Key("offsetDelta", "number or null", "", "offset, less the batch's baseOffset; null in magic 0 and 1"),
    Key("timestampDelta", "number or null", "ms", "as stored, less baseTimestamp; null in magic 0 and 1"),
    Key("sequence", "number or null", "", "sequence number; -1: none; null in magic 0 and 1"),
    Key("keySize", "number", "bytes", "-1 for a null key"),
    Key("valueSize", "number", "bytes", "-1 for a null value (a tombstone)"),
    Key("key", "string or null", "", "text if it is valid UTF-8, else base64"),
    Key("keyEncoding", "string", "", '"base64" where key is that', True),
    Key("value", "string or null", "", "text if it is valid UTF-8, else base64"),
    Key("valueEncoding", "string", "", '"base64" where value is that', True),
    Key("headers", "array", "", "of {key, value}, in order; each with keyEncoding and valueEncoding as above"),
    Key("crc", "number", "CRC-32", "stored in the message itself: magic 0 and 1 only", True),
    Key("crcValid", "boolean", "", "whether it holds: magic 0 and 1 only", True),
    Key(
        "control",
        "object",
        "",
        "of a control record: type (COMMIT, ABORT, LEADER_CHANGE …), version, coordinatorEpoch or the decoded value",
        True,
    ),
    Key("keyDecoded", "any", "", "what a decoder says of the key; see decoders.md", True),
    Key("keyProblem", "string", "", "why the key does not decode, or no further, and at which of its bytes", True),
    Key("keyNote", "string", "", "what is unusual about the key, and legal: a newer version", True),
    Key("valueDecoded", "any", "", "what a decoder says of the value; see decoders.md", True),
    Key("valueProblem", "string", "", "why the value does not decode, or no further, and at which of its bytes", True),
    Key("valueNote", "string", "", "what is unusual about the value, and legal: a newer version", True),
    Key("names", "object", "", "ids in keyDecoded and valueDecoded, and the topic or user that each stands for", True),
    Key("damaged", "boolean", "", "true where the checksum of its batch, or its own, does not hold", True),
)

REGION_KEYS = (
    Key("kind", "string", "", "torn, junk or padding"),
    FILE,
    POSITION,
    SIZE,
    Key("reason", "string", "", "why no batch is read here"),
    Key("baseOffset", "number or null", "offset", "what a torn batch's header says"),
    Key("batchLength", "number or null", "bytes", "what a torn batch's header says"),
)

FINDING_KEYS = (
    Key("code", "string", "", "which rule fired"),
    Key("severity", "string", "", "error, warning or info"),
    Key("topic", "string or null", "", "from the name of the file's directory"),
    Key("partition", "number or null", "", "from the name of the file's directory"),
    FILE,
    Key("position", "number", "byte of the file", "where the bytes that are wrong begin"),
    Key("size", "number", "bytes", "how many there are"),
    Key("offset", "number or null", "offset", "the first that is hit"),
    Key("expected", "any", "", "what should be there, where one value says it"),
    Key("actual", "any", "", "what is there"),
    Key("message", "string", "", "what is wrong"),
    Key("consequence", "string", "", "what a broker or a consumer does about it"),
    Key("source", "string", "", "the log directory, or the path that was given: two copies of a disk differ in it"),
)

SUMMARY_KEYS = (
    Key("partitions", "number", "", "partition directories"),
    Key("files", "number", "", "files that were read"),
    Key("bytes", "number", "bytes", "their length"),
    Key("batches", "number", "", "batches, and messages of magic 0 and 1"),
    Key("records", "number", "", "records in sound batches"),
    Key("findings", "object", "", "how many of each severity: error, warning, info"),
    Key("known", "number", "", "findings that the baseline has, and that are not told"),
    Key("unread", "array", "", "what could not be read, and why"),
    Key("notes", "array", "", "what else is to be said: files that grew, went away, or kept changing"),
    Key("seconds", "number", "s", "how long it took"),
)

CODE_KEYS = (
    Key("code", "string", "", "its name"),
    Key("family", "string", "", "what --only selects it by"),
    Key("severity", "string", "", "error, warning or info; see unless"),
    Key("unless", "string", "", "when it is another severity; empty if never"),
    Key("meaning", "string", "", "when it fires"),
    Key("consequence", "string", "", "what a broker or a consumer does about it"),
    Key("fix", "string", "", "what to do"),
    Key("kafka", "string", "", "where Kafka's own rule stands"),
)

INDEX_KEYS = (
    FILE,
    Key("offset", "number", "offset", "relative offset as stored, plus the base offset in the file's name"),
    Key("position", "number", "byte of the .log", INDEX_ENTRY.field("position").meaning),
)

TIME_INDEX_KEYS = (
    FILE,
    Key("timestamp", "number", "epoch ms", TIME_INDEX_ENTRY.field("timestamp").meaning),
    Key("offset", "number", "offset", "relative offset as stored, plus the base offset in the file's name"),
)

CHECKPOINT_KEYS = (
    FILE,
    Key("topic", "string", "", "of an offset checkpoint", True),
    Key("partition", "number", "", "of an offset checkpoint", True),
    Key("offset", "number", "offset", "of an offset checkpoint", True),
    Key("epoch", "number", "", "of a leader epoch checkpoint", True),
    Key("startOffset", "number", "offset", "of a leader epoch checkpoint: where the epoch begins", True),
)

PROPERTY_KEYS = (
    FILE,
    Key("name", "string", "", "as it stands in the file"),
    Key("value", "string", "", "as it stands in the file; JSON for what is no string there"),
)


def _layout_keys(layout: Layout[Any]) -> tuple[Key, ...]:
    return (FILE, *(Key(field.name, "number", field.unit, field.meaning) for field in layout.fields))


TYPES = {"batch": BATCH_KEYS, "record": RECORD_KEYS, "region": REGION_KEYS, "finding": FINDING_KEYS} | {
    "indexEntry": INDEX_KEYS,
    "timeIndexEntry": TIME_INDEX_KEYS,
    "txnIndexEntry": _layout_keys(TXN_INDEX_ENTRY),
    "producerState": _layout_keys(PRODUCER_ENTRY),
    "checkpointEntry": CHECKPOINT_KEYS,
    "property": PROPERTY_KEYS,
    "summary": SUMMARY_KEYS,
    "code": CODE_KEYS,
    **OVERVIEW_TYPES,
    **STRUCT_TYPES,
    **STATE_TYPES,
    **DIFF_TYPES,
    **RESTART_TYPES,
    **STATS_TYPES,
    **SCAN_TYPES,
    **REINDEX_TYPES,
    **CARVE_TYPES,
    **SALVAGE_TYPES,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""

_BATCH_VALUES = tuple(key.name for key in BATCH_KEYS if key is not FILE)


def put_bytes(out: Object, name: str, data: bytes | None) -> None:
    """out[name]: text if `data` is valid UTF-8, else base64 and a sibling that says so. Lossless."""
    if data is None:
        out[name] = None
        return
    try:
        out[name] = data.decode()
    except UnicodeDecodeError:
        out[name] = base64.b64encode(data).decode()
        out[name + "Encoding"] = "base64"


def batch_object(target: Target, batch: Batch) -> Object:
    out: Object = {"type": "batch", "file": path_text(target.path)}
    for name in _BATCH_VALUES:
        out[name] = getattr(batch, name)
    return out


def record_object(target: Target, record: Record, reading: Reading | None = None) -> Object:
    out = before_key(target, record)
    put_bytes(out, "key", record.key)
    put_bytes(out, "value", record.value)
    headers = []
    for key, value in record.headers:
        header: Object = {}
        put_bytes(header, "key", key)
        put_bytes(header, "value", value)
        headers.append(header)
    out["headers"] = headers
    return out | after_headers(record, reading)


def before_key(target: Target, record: Record) -> Object:
    """What a record's object begins with."""
    return {
        "type": "record",
        "file": path_text(target.path),
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


def after_headers(record: Record, reading: Reading | None) -> Object:
    """What it ends with."""
    out: Object = {}
    if record.crc is not None:
        out["crc"] = record.crc
        out["crcValid"] = record.crcValid
    if record.is_control:
        out["control"] = control_object(record)
    if reading is not None:
        put_reading(out, reading)
    if not record.batch.crcValid or record.crcValid is False:
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
    return {"type": entry.type, "file": path_text(target.path), **entry.values}


def region_object(target: Target, region: Region) -> Object:
    claimed = region.claimed
    return {
        "type": "region",
        "kind": region.kind,
        "file": path_text(target.path),
        "position": region.position,
        "size": region.size,
        "reason": region.reason,
        "baseOffset": claimed[0] if claimed and region.kind == "torn" else None,
        "batchLength": claimed[1] if claimed and region.kind == "torn" else None,
    }


def finding_object(finding: Finding) -> Object:
    texts = {"file": path_text(finding.file), "source": path_text(finding.source)}
    return {"type": "finding", **finding._asdict(), **texts}


def summary_object(totals: Totals, seconds: float) -> Object:
    return {
        "type": "summary",
        "partitions": totals.partitions,
        "files": totals.files,
        "bytes": totals.bytes,
        "batches": totals.batches,
        "records": totals.records,
        "findings": {severity: totals.findings[severity] for severity in SEVERITIES},
        "known": totals.known,
        "unread": [path_text(text) for text in totals.unread],
        "notes": [path_text(text) for text in totals.notes],
        "seconds": round(seconds, 3),
    }


def code_object(code: Code) -> Object:
    values = code._asdict()
    return {"type": "code", **{key.name: values["source" if key.name == "kafka" else key.name] for key in CODE_KEYS}}
