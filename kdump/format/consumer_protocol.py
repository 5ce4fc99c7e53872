"""Subscriptions and assignments of the members of a classic consumer group, which GroupMetadataValue contains as bytes
fields. Each is a version (INT16) followed by one of Kafka's own messages.

Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol, KIP-429 (owned partitions), KIP-881 (rack). A
version newer than the known ones is read as the newest known, as in Kafka. Other protocol types (Connect's) have their
own formats and are not decoded."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import INT16, Field, Span, layout
from kdump.format.schema import load
from kdump.format.versioned_messages import Decoded, kafka_json, try_decode

PROTOCOL_TYPE = "consumer"
MESSAGES = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
"""Field of a member in GroupMetadataValue -> the message that it contains."""


class ConsumerProtocolPrefix(NamedTuple):
    """The version at the start of each subscription and assignment."""

    version: Annotated[int, Field(INT16, "version of the message that follows")]


PREFIX = layout(ConsumerProtocolPrefix, "ConsumerProtocol")


class NestedMessage(NamedTuple):
    """A decoded field: the message in Kafka's JSON form, None if it does not decode. `note` states what is unusual or
    invalid."""

    value: dict[str, Any] | None
    note: str = ""


def try_decode_nested(
    field: str, data: bytes, spans: list[Span] | None = None
) -> tuple[Decoded | None, DecodeError | None]:
    """Decode the bytes of the field `subscription` or `assignment` as far as possible; return the message and the error
    that ended it, None for both if there are no bytes. Appends the known fields to `spans`."""
    if not data:
        return None, None
    try:
        version = PREFIX.read(data).version
    except DecodeError as error:
        return None, error
    if spans is not None:
        spans.extend(PREFIX.walk(data, 0, PREFIX.size))
    return try_decode(load(MESSAGES[field]), version, data, PREFIX.size, spans=spans)


def decode_nested(field: str, data: bytes) -> NestedMessage:
    """Decode the bytes of the field `subscription` or `assignment`; `value` is None on any error. Never raises."""
    name = MESSAGES[field]
    decoded, error = try_decode_nested(field, data)
    if error is not None:
        return NestedMessage(None, f"{name}.{error.field} at byte {error.position}: {error.reason}")
    if decoded is None:
        return NestedMessage(None)
    return NestedMessage(kafka_json(load(name), decoded), f"{name}: {decoded.note}" if decoded.note else "")


def with_members(data: dict[str, Any], members: list[dict[str, Any]]) -> list[str]:
    """Replace the base64 subscriptions and assignments in `data`, a GroupMetadataValue in Kafka's JSON form, with the
    decoded messages; `members` are its members with the fields as bytes. Returns notes on what is unusual."""
    notes = []
    for shown, member in zip(data["members"], members):
        for field in MESSAGES:
            inner = decode_nested(field, member[field])
            if inner.value is not None:
                shown[field] = inner.value
            if inner.note:
                notes.append(f"member {member['memberId']}: {inner.note}")
    return notes


def nested_spans(span: Span) -> list[Span]:
    """Return the spans that tile the span of a `subscription` or `assignment`: its length, the fields of the message,
    and bytes that belong to no known field."""
    data: bytes = span.value
    start = span.size - len(data)
    inner: list[Span] = []
    try_decode_nested(span.field.name, data, inner)
    if not inner:
        return [span]
    length = span.field._replace(meaning="number of bytes that follow", unit="bytes")
    tiles = [Span(span.position, start, length, len(data), span.depth)]
    base = span.position + start
    tiles += [part._replace(position=base + part.position, depth=span.depth + 1 + part.depth) for part in inner]
    end = inner[-1].position + inner[-1].size
    if end < len(data):
        rest = span.field._replace(meaning="bytes that belong to no known field")
        tiles.append(Span(base + end, len(data) - end, rest, data[end:], span.depth + 1))
    return tiles
