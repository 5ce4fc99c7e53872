"""Control records of v2 batches: transaction markers, and the records that KRaft leaders and snapshots write.

The key contains the record's type; the value of each type is one of Kafka's own messages. Every value starts with its
version as an INT16: before the message of a transaction marker, and as the first field of the KRaft messages.

Source: org.apache.kafka.common.record.ControlRecordType, EndTransactionMarker and ControlRecordUtils, KIP-98, KIP-595
(KRaft), KIP-630 (snapshots) and KIP-853 (voters). Kafka writes version 0 of each, and reads every value as version 0,
whatever version it states; kdump decodes the stated version."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, NamedTuple

from kdump.format.count_text import count_text
from kdump.format.errors import DecodeError
from kdump.format.kafka_release import newer_text
from kdump.format.layout import BYTES, INT16, Bits, Field, Span, layout


class ControlType(NamedTuple):
    """A type of control record. `message` names the schema of the value; `marker`: the version precedes the message."""

    name: str
    message: str
    marker: bool = False


SNAPSHOT_HEADER_TYPE = 3
"""Type of the first record of a KRaft snapshot."""
CONTROL_TYPES = {
    0: ControlType("ABORT", "EndTxnMarker", marker=True),
    1: ControlType("COMMIT", "EndTxnMarker", marker=True),
    2: ControlType("LEADER_CHANGE", "LeaderChangeMessage"),
    SNAPSHOT_HEADER_TYPE: ControlType("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ControlType("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ControlType("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ControlType("KRAFT_VOTERS", "VotersRecord"),
}
TYPE = Bits("type", 0, 16, {number: control.name for number, control in CONTROL_TYPES.items()})


class ControlRecordKey(NamedTuple):
    """The key of a control record. Later versions may add fields, but must keep these."""

    version: Annotated[int, Field(INT16, "version of the key")]
    type: Annotated[int, Field(INT16, "type of the control record", "", (TYPE,))]


class ControlRecordValue(NamedTuple):
    """The version at the start of every control record's value."""

    version: Annotated[int, Field(INT16, "version of the value")]


KEY = layout(ControlRecordKey, "ControlRecordType")
VALUE = layout(ControlRecordValue, "EndTransactionMarker")
REST = Field(BYTES, "bytes that belong to no known field", name="rest")


class ControlRecord(NamedTuple):
    """A decoded control record.

    `type` is Kafka's name for `typeId`, UNKNOWN(7) for a type that Kafka does not define. `value` contains the fields
    of its message, up to the `problem` if there is one; None for an unknown type. `coordinatorEpoch` is set for
    transaction markers. `typeId` and `keyVersion` are None if the key is too short.

    `note` states what is unusual but legal. `rest` contains the bytes of the value that belong to no known field: those
    after its message or from a problem on, or the whole value of an unknown type; otherwise None."""

    type: str
    typeId: int | None
    keyVersion: int | None
    version: int | None = None
    value: dict[str, Any] | None = None
    coordinatorEpoch: int | None = None
    problem: DecodeError | None = None
    note: str = ""
    rest: bytes | None = None

    @property
    def newer(self) -> str:
        """What only a newer release than the newest known one writes; empty for other records."""
        if self.typeId is not None and self.typeId > max(CONTROL_TYPES):
            return newer_text("control record type", self.typeId, max(CONTROL_TYPES))
        if self.keyVersion is not None and self.keyVersion > 0:
            return newer_text(f"{KEY.name} version", self.keyVersion, 0)
        from kdump.format.schema import load

        highest = load(CONTROL_TYPES[self.typeId].message).valid.highest if self.typeId in CONTROL_TYPES else 0
        if self.version is not None and self.version > highest:
            return newer_text(f"{self.type} version", self.version, highest)
        return ""


def decode_control(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Decode the control record with this key and value. Never raises: a decoding error becomes its `problem`.

    The problem's position is in the key if its struct is ControlRecordKey, otherwise in the value."""
    return _decode(key, value, [])


def control_spans(key: bytes | None, value: bytes | None) -> tuple[list[Span], list[Span]]:
    """Return the spans that tile the key and those that tile the value, with positions relative to each.

    The last span of each covers the bytes that belong to no known field, or those from a problem on."""
    keys: list[Span] = []
    values: list[Span] = []
    with suppress(DecodeError):
        keys.extend(KEY.walk(key or b"", 0, len(key or b"")))
    _decode(key, value, values)
    return _tiled(keys, key or b""), _tiled(values, value or b"")


def _tiled(spans: list[Span], data: bytes) -> list[Span]:
    position = spans[-1].position + spans[-1].size if spans else 0
    if position < len(data):
        spans.append(Span(position, len(data) - position, REST, data[position:], 0))
    return spans


def _decode(key: bytes | None, value: bytes | None, spans: list[Span]) -> ControlRecord:
    """Like decode_control; appends the spans of the value's known fields to `spans`."""
    try:
        head = KEY.read(key or b"")
    except DecodeError as error:
        return ControlRecord("UNKNOWN", None, None, problem=_problem(error, key), rest=value)
    control = CONTROL_TYPES.get(head.type)
    if control is None:
        record = ControlRecord(f"UNKNOWN({head.type})", head.type, head.version, rest=value)
    else:
        record = _decode_value(ControlRecord(control.name, head.type, head.version), control, value, spans)
    if head.version < 0:
        return record._replace(
            problem=_problem(DecodeError(KEY.name, "version", 0, f"version {head.version} is negative"), key)
        )
    if head.version > 0:
        note = f"{newer_text('version of the key', head.version, 0)}; decoded as the latter"
        return record._replace(note="; ".join(filter(None, (note, record.note))))
    return record


def _decode_value(record: ControlRecord, control: ControlType, value: bytes | None, spans: list[Span]) -> ControlRecord:
    """Return the record, whose type the key has given, with its decoded value."""
    try:
        version = VALUE.read(value or b"").version
        if version < 0:
            raise DecodeError(control.message, "version", 0, f"version {version} is negative")
    except DecodeError as error:
        return record._replace(problem=_problem(error, value), rest=value)
    from kdump.format.schema import load
    from kdump.format.versioned_messages import try_decode

    assert value is not None
    start = VALUE.size if control.marker else 0
    spans.extend(VALUE.walk(value, 0, start) if control.marker else ())
    decoded, problem = try_decode(load(control.message), version, value, start, spans=spans)
    note = decoded.note
    if decoded.rest and not problem:
        note = "; ".join(filter(None, (note, f"{count_text(len(decoded.rest), 'byte')} left over after the message")))
    return record._replace(
        version=version,
        value=decoded.value,
        coordinatorEpoch=decoded.value.get("coordinatorEpoch"),
        problem=_problem(problem, value) if problem else None,
        note=note,
        rest=decoded.rest or None,
    )


def _problem(error: DecodeError, data: bytes | None) -> DecodeError:
    return error.changed(reason="null" if data is None else error.reason, code="control-batch-invalid")
