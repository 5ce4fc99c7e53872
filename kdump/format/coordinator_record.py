"""Records of the topics that Kafka's coordinators write: __consumer_offsets, __transaction_state, __share_group_state.

A key starts with an INT16 that says which message it is (the apiKey of the schemas), a value with one that says its
version; the message follows. A null value is a tombstone: the coordinator has forgotten the key. What Kafka throws on
here and this reads is a version newer than the known ones, with a note.

Source: org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde, GroupCoordinatorRecordSerde,
ShareCoordinatorRecordSerde and CoordinatorRecordTypeGenerator; kafka.coordinator.transaction.TransactionLog.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import INT16, Field, Layout, Span, layout
from kdump.format.messages import Decoded, attempt, note_of
from kdump.format.schema import Schema, by_api_key


class KeyPrefix(NamedTuple):
    """The start of every key."""

    type: Annotated[int, Field(INT16, "which message follows")]


class ValuePrefix(NamedTuple):
    """The start of every value."""

    version: Annotated[int, Field(INT16, "version of the message that follows")]


KEY = layout(KeyPrefix, "CoordinatorRecordSerde")
VALUE = layout(ValuePrefix, "CoordinatorRecordSerde")
STRUCT = "CoordinatorRecord"


class Part(NamedTuple):
    """A key or a value. `number` is what its prefix says, None where there is none; `schema` and `decoded` are None
    where no message is known for it. The position of `problem` is one in the key or value. `note` says what is unusual
    and legal."""

    number: int | None = None
    schema: Schema | None = None
    decoded: Decoded | None = None
    problem: DecodeError | None = None
    note: str = ""


class CoordinatorRecord(NamedTuple):
    """What a record says. `value` is None for a tombstone, and where the key does not say what the value is."""

    key: Part
    value: Part | None


def decode_coordinator_record(folder: str, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """The record of the coordinator whose schemas are in `folder` (group-coordinator, transaction-coordinator,
    share-coordinator). Never raises: what does not decode is a problem of its part."""
    said = decode_key(folder, key)
    return CoordinatorRecord(said, decode_value(folder, said, value))


def coordinator_spans(folder: str, key: bytes | None, value: bytes | None) -> tuple[list[Span], list[Span]]:
    """The spans of the fields that are known of the key, and of the value, each counted from its own start."""
    keys: list[Span] = []
    values: list[Span] = []
    decode_value(folder, decode_key(folder, key, keys), value, values)
    return keys, values


def decode_key(folder: str, data: bytes | None, spans: list[Span] | None = None) -> Part:
    """As the key of `decode_coordinator_record`. Appends the known fields to `spans`."""
    number, problem = _prefix(KEY, STRUCT, data, spans)
    if number is None or data is None:
        return Part(problem=problem)
    schema = by_api_key(folder, "coordinator-key").get(number)
    if schema is None:
        return Part(number, problem=DecodeError(STRUCT, "type", 0, f"no record has the type {number}"))
    # The message behind a type has one version, whatever that schema says else.
    return _message(number, schema, *attempt(schema, schema.valid.lowest, data, KEY.size, spans=spans))


def decode_value(folder: str, key: Part, data: bytes | None, spans: list[Span] | None = None) -> Part | None:
    """As the value of `decode_coordinator_record`, for that `key`. Appends the known fields to `spans`."""
    if data is None or key.schema is None:
        return None
    assert key.schema.apiKey is not None
    schema = by_api_key(folder, "coordinator-value").get(key.schema.apiKey)
    number, problem = _prefix(VALUE, STRUCT if schema is None else schema.name, data, spans)
    if number is None or schema is None:
        return Part(number, schema, problem=problem)
    return _message(number, schema, *attempt(schema, number, data, VALUE.size, spans=spans))


def _message(number: int, schema: Schema, decoded: Decoded, problem: DecodeError | None) -> Part:
    notes = [note_of(decoded)]
    # Kafka does not look at what is left over. A newer version may well have more fields than are known.
    if problem is None and decoded.rest:
        count = len(decoded.rest)
        notes.append(f"{count} {'byte is' if count == 1 else 'bytes are'} left over behind the message")
    return Part(number, schema, decoded, problem, "; ".join(filter(None, notes)))


def _prefix(
    layout: Layout[Any], struct: str, data: bytes | None, spans: list[Span] | None
) -> tuple[int | None, DecodeError | None]:
    field = layout.names[0]
    if data is None:
        return None, DecodeError(struct, field, 0, "null")
    try:
        number: int = layout.read(data)[0]
    except DecodeError as error:
        return None, DecodeError(struct, field, error.position, error.reason)
    if spans is not None:
        spans.extend(layout.walk(data, 0, layout.size))
    return number, None
