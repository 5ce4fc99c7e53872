"""The JSON objects of `inspect`, one by one, and of `verify`. kdump.log.inspect_answer declares their keys; a record is
written key by key, because a large one is written in parts (kdump.render.long_record).
"""

from __future__ import annotations

import base64
from typing import Any

from kdump.answer import Object as Object
from kdump.answer import answer_object
from kdump.check.finding import SEVERITIES, Code
from kdump.check.summary import CheckSummary
from kdump.check.totals import CheckTotals
from kdump.decode.decoder_interface import DecodedRecord
from kdump.format.control_record import decode_control
from kdump.log.entries import Entry
from kdump.log.inspect_answer import InspectedBatch, InspectedRegion
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Region
from kdump.render.decoded_values import add_decoded
from kdump.render.escape import path_text


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
    return answer_object(InspectedBatch(target.path, batch))


def record_object(target: Target, record: Record, reading: DecodedRecord | None = None) -> Object:
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
    claimed = region.claimed if region.kind == "torn" else None
    return answer_object(
        InspectedRegion(
            kind=region.kind,
            file=target.path,
            position=region.position,
            size=region.size,
            reason=region.reason,
            baseOffset=claimed[0] if claimed else None,
            batchLength=claimed[1] if claimed else None,
        )
    )


def summary_object(totals: CheckTotals, seconds: float) -> Object:
    return answer_object(
        CheckSummary(
            partitions=totals.partitions,
            files=totals.files,
            bytes=totals.bytes,
            batches=totals.batches,
            records=totals.records,
            damagedBatches=totals.damaged_batches,
            damagedRecords=totals.damaged_records,
            findings={severity: totals.findings[severity] for severity in SEVERITIES},
            known=totals.known,
            unread=totals.unread,
            notes=totals.notes,
            notInBundle=dict(totals.not_in_bundle) or None,
            seconds=round(seconds, 3),
        )
    )


def code_object(code: Code) -> Object:
    return answer_object(code)
