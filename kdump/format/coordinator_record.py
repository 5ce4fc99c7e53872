"""Records of the topics that Kafka's coordinators write: __consumer_offsets, __transaction_state, __share_group_state.

A key starts with an INT16 that selects its message (the apiKey of the schemas), a value with an INT16 version; the
message follows. A null value is a tombstone: the coordinator has removed the key. A version newer than the known ones,
on which Kafka throws, is decoded with a note.

Source: org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde, GroupCoordinatorRecordSerde,
ShareCoordinatorRecordSerde and CoordinatorRecordTypeGenerator; kafka.coordinator.transaction.TransactionLog."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from kdump.format.count_text import count_text
from kdump.format.errors import DecodeError
from kdump.format.kafka_release import newer_text
from kdump.format.layout import INT16, Field, Layout, Span, layout
from kdump.format.plain_messages import Plain, PlainText, plain_reader, plain_text
from kdump.format.schema import MessageSchema, by_api_key
from kdump.format.versioned_messages import Decoded, decode_problem, try_decode


class KeyPrefix(NamedTuple):
    """The type at the start of every key."""

    type: Annotated[int, Field(INT16, "type of the message that follows")]


class ValuePrefix(NamedTuple):
    """The version at the start of every value."""

    version: Annotated[int, Field(INT16, "version of the message that follows")]


KEY = layout(KeyPrefix, "CoordinatorRecordSerde")
VALUE = layout(ValuePrefix, "CoordinatorRecordSerde")
STRUCT = "CoordinatorRecord"


class MessagePart(NamedTuple):
    """A key or a value. `number` is its prefix, None if it has none; `schema` and `decoded` are None if no message is
    known for it. The position of `problem` is relative to the key or value. `note` states what is unusual but legal."""

    number: int | None = None
    schema: MessageSchema | None = None
    decoded: Decoded | None = None
    problem: DecodeError | None = None
    note: str = ""
    newerType: str = ""
    """Of a key, that only a newer release than the newest known one writes its type; else empty."""

    @property
    def newer(self) -> str:
        """The type of a key or the version of a value that only a newer release than the newest known one writes; else
        empty."""
        schema = self.schema
        if self.newerType:
            return self.newerType
        if schema is None or schema.type != "coordinator-value" or (self.number or 0) <= schema.valid.highest:
            return ""
        return newer_text(f"{schema.name} version", self.number or 0, schema.valid.highest)


class CoordinatorRecord(NamedTuple):
    """A decoded record. `value` is None for a tombstone, and if the key does not determine the type of the value."""

    key: MessagePart
    value: MessagePart | None

    @property
    def newer(self) -> str:
        """What only a newer release than the newest known one writes; else empty."""
        return self.key.newer or ("" if self.value is None else self.value.newer)


def decode_coordinator_record(folder: str, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """Decode a record of the coordinator whose schemas are in `folder` (group-coordinator, transaction-coordinator,
    share-coordinator). Never raises: a decoding error becomes the `problem` of its part."""
    decoded = decode_key(folder, key)
    return CoordinatorRecord(decoded, decode_value(folder, decoded, value))


def coordinator_spans(folder: str, key: bytes | None, value: bytes | None) -> tuple[list[Span], list[Span]]:
    """Return the spans of the known fields of the key and of the value, with positions relative to each."""
    keys: list[Span] = []
    values: list[Span] = []
    decode_value(folder, decode_key(folder, key, keys), value, values)
    return keys, values


def decode_key(folder: str, data: bytes | None, spans: list[Span] | None = None) -> MessagePart:
    """Decode the key as `decode_coordinator_record` does. Appends the known fields to `spans`."""
    if spans is None and data is not None:
        plain = _plain_key(folder, data[: KEY.size])
        decoded = plain and _plain_part(*plain, data, KEY.size)
        if decoded:
            return decoded
    number, problem = _prefix(KEY, STRUCT, data, spans)
    if number is None or data is None:
        return MessagePart(problem=problem)
    schema = by_api_key(folder, "coordinator-key").get(number)
    if schema is None:
        newest = max(by_api_key(folder, "coordinator-key"))
        newer = newer_text("type", number, newest) if number > newest else ""
        problem = DecodeError(STRUCT, "type", 0, newer or f"type {number} is unknown")
        return MessagePart(number, problem=problem, newerType=newer and f"{STRUCT} {newer}")
    # The type implies the version of the key's message: the lowest, whatever else the schema lists.
    return _message(number, schema, *try_decode(schema, schema.valid.lowest, data, KEY.size, spans=spans))


def decode_value(
    folder: str, key: MessagePart, data: bytes | None, spans: list[Span] | None = None
) -> MessagePart | None:
    """Decode the value for `key` as `decode_coordinator_record` does. Appends the known fields to `spans`."""
    if data is None or key.schema is None:
        return None
    assert key.schema.apiKey is not None
    schema = by_api_key(folder, "coordinator-value").get(key.schema.apiKey)
    if spans is None and schema is not None:
        plain = _plain_value(schema, data[: VALUE.size])
        decoded = plain and _plain_part(*plain, data, VALUE.size)
        if decoded:
            return decoded
    number, problem = _prefix(VALUE, STRUCT if schema is None else schema.name, data, spans)
    if number is None or schema is None:
        return MessagePart(number, schema, problem=problem)
    return _message(number, schema, *try_decode(schema, number, data, VALUE.size, spans=spans))


def key_text(folder: str, prefix: bytes) -> tuple[MessageSchema, int, PlainText] | None:
    """Return the message of the keys that start with this type, the type, and what reads their fields as JSON. None if
    anything about that is unusual."""
    plain = _plain_key(folder, prefix)
    return (plain[1], plain[0], plain_text(plain[1], plain[2])) if plain else None


def value_text(folder: str, key: MessageSchema, prefix: bytes) -> tuple[MessageSchema, int, PlainText] | None:
    """Return the same for the values of such keys, whose prefix is their version."""
    assert key.apiKey is not None
    schema = by_api_key(folder, "coordinator-value").get(key.apiKey)
    plain = _plain_value(schema, prefix) if schema is not None else None
    return (plain[1], plain[2], plain_text(plain[1], plain[2])) if plain else None


@lru_cache(1024)
def _plain_key(folder: str, prefix: bytes) -> tuple[int, MessageSchema, int, Plain] | None:
    """Return the type after this prefix, its schema and version, and its fast decoder; None if it has none."""
    if len(prefix) < KEY.size:
        return None
    number = KEY.read(prefix).type
    schema = by_api_key(folder, "coordinator-key").get(number)
    if schema is None:
        return None
    return number, schema, schema.valid.lowest, plain_reader(schema, schema.valid.lowest)


@lru_cache(1024)
def _plain_value(schema: MessageSchema, prefix: bytes) -> tuple[int, MessageSchema, int, Plain] | None:
    """Return the same for a value, whose prefix is its version."""
    if len(prefix) < VALUE.size:
        return None
    version = VALUE.read(prefix).version
    return (version, schema, version, plain_reader(schema, version)) if schema.valid.hold(version) else None


def _plain_part(
    number: int, schema: MessageSchema, version: int, read: Plain, data: bytes, position: int
) -> MessagePart | None:
    """Return a part if nothing about it is unusual."""
    message = read(data, position)
    if message is None or message[1] != len(data):
        return None
    return MessagePart(number, schema, Decoded(message[0], version, message[1], "", b""))


def _message(number: int, schema: MessageSchema, decoded: Decoded, problem: DecodeError | None) -> MessagePart:
    notes = [decode_problem(decoded)]
    # Kafka ignores leftover bytes. A newer version may have fields that are not known here.
    if problem is None and decoded.rest:
        notes.append(f"{count_text(len(decoded.rest), 'byte')} left over after the message")
    return MessagePart(number, schema, decoded, problem, "; ".join(filter(None, notes)))


def _prefix(
    layout: Layout[Any], struct: str, data: bytes | None, spans: list[Span] | None
) -> tuple[int | None, DecodeError | None]:
    field = layout.names[0]
    if data is None:
        return None, DecodeError(struct, field, 0, "null")
    try:
        number: int = layout.read(data)[0]
    except DecodeError as error:
        return None, error.changed(struct=struct, field=field)
    if spans is not None:
        spans.extend(layout.walk(data, 0, layout.size))
    return number, None
