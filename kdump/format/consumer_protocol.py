"""What the members of a classic consumer group have told one another: subscription and assignment, as the bytes fields
of GroupMetadataValue hold them. Each is a version (INT16), then one of Kafka's own messages.

Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol, KIP-429 (owned partitions), KIP-881 (rack). A
version newer than the known ones is read as the newest known, as Kafka does too. Other protocol types (Connect's)
have bytes of their own, which stay bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import INT16, Field, Span, layout
from kdump.format.messages import Decoded, attempt, kafka_json
from kdump.format.schema import load

PROTOCOL_TYPE = "consumer"
MESSAGES = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
"""Field of GroupMetadataValue's members -> the message in it."""


class ConsumerProtocolPrefix(NamedTuple):
    """The start of each."""

    version: Annotated[int, Field(INT16, "version of the message that follows")]


PREFIX = layout(ConsumerProtocolPrefix, "ConsumerProtocol")


class Inner(NamedTuple):
    """A decoded field: the message as Kafka's JSON has it, None where it does not decode. `note` is for what is unusual
    or wrong with it."""

    value: dict[str, Any] | None
    note: str = ""


def attempt_inner(
    field: str, data: bytes, spans: list[Span] | None = None
) -> tuple[Decoded | None, DecodeError | None]:
    """What the bytes of the field `subscription` or `assignment` say, as far as it goes, and the error that ends it;
    neither for no bytes. Appends the known fields to `spans`."""
    if not data:
        return None, None
    try:
        version = PREFIX.read(data).version
    except DecodeError as error:
        return None, error
    if spans is not None:
        spans.extend(PREFIX.walk(data, 0, PREFIX.size))
    return attempt(load(MESSAGES[field]), version, data, PREFIX.size, spans=spans)


def decode_inner(field: str, data: bytes) -> Inner:
    """The bytes of the field `subscription` or `assignment`, if all of them decode. Never raises."""
    name = MESSAGES[field]
    decoded, error = attempt_inner(field, data)
    if error is not None:
        return Inner(None, f"{name}.{error.field} at byte {error.position}: {error.reason}")
    if decoded is None:
        return Inner(None)
    return Inner(kafka_json(load(name), decoded), f"{name}: {decoded.note}" if decoded.note else "")


def with_members(data: dict[str, Any], members: list[dict[str, Any]]) -> list[str]:
    """Put what decodes into `data`, a GroupMetadataValue as Kafka's JSON has it, in place of the base64 of its
    `members`, whose bytes are those of the decoded message. What is to be noted of them."""
    notes = []
    for shown, member in zip(data["members"], members):
        for field in MESSAGES:
            inner = decode_inner(field, member[field])
            if inner.value is not None:
                shown[field] = inner.value
            if inner.note:
                notes.append(f"member {member['memberId']}: {inner.note}")
    return notes


def inner_spans(span: Span) -> list[Span]:
    """The spans that tile that of a `subscription` or `assignment`: its length, the fields of the message, and what no
    known field claims."""
    data: bytes = span.value
    start = span.size - len(data)
    inner: list[Span] = []
    attempt_inner(span.field.name, data, inner)
    if not inner:
        return [span]
    length = span.field._replace(meaning="bytes that follow", unit="bytes")
    tiles = [Span(span.position, start, length, len(data), span.depth)]
    base = span.position + start
    tiles += [part._replace(position=base + part.position, depth=span.depth + 1 + part.depth) for part in inner]
    end = inner[-1].position + inner[-1].size
    if end < len(data):
        rest = span.field._replace(meaning="bytes that no known field claims")
        tiles.append(Span(base + end, len(data) - end, rest, data[end:], span.depth + 1))
    return tiles
