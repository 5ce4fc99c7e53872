"""Records of the topics that Kafka's coordinators write: __consumer_offsets, __transaction_state, __share_group_state.

A key starts with an INT16 that says which message it is (the apiKey of the schemas), a value with one that says its
version; the message follows. A null value is a tombstone: the coordinator has forgotten the key.

Source: org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde, GroupCoordinatorRecordSerde,
ShareCoordinatorRecordSerde and CoordinatorRecordTypeGenerator; kafka.coordinator.transaction.TransactionLog.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import INT16, Field, layout
from kdump.format.messages import Decoded, attempt
from kdump.format.schema import Schema, load_folder


class RecordPrefix(NamedTuple):
    """The start of every key and value."""

    number: Annotated[int, Field(INT16, "of a key: which message it is; of a value: the version of its message")]


PREFIX = layout(RecordPrefix, "CoordinatorRecord")


class Part(NamedTuple):
    """A key or a value. `number` is what its prefix says, None where there is none; `schema` and `decoded` are None
    where no message is known for it. The position of `problem` is one in the key or value."""

    number: int | None = None
    schema: Schema | None = None
    decoded: Decoded | None = None
    problem: DecodeError | None = None


class CoordinatorRecord(NamedTuple):
    """What a record says. `value` is None for a tombstone, and where the key does not say what the value is."""

    key: Part
    value: Part | None


def decode_coordinator_record(folder: str, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """The record of the coordinator whose schemas are in `folder` (group-coordinator, transaction-coordinator,
    share-coordinator). Never raises: what does not decode is a problem of its part."""
    said = _key(folder, key)
    if value is None or said.schema is None:
        return CoordinatorRecord(said, None)
    return CoordinatorRecord(said, _value(folder, said.schema, value))


def _key(folder: str, data: bytes | None) -> Part:
    number, problem = _prefix("key", data)
    if number is None or data is None:
        return Part(problem=problem)
    schema = _schemas(folder, "coordinator-key").get(number)
    if schema is None:
        return Part(number, problem=DecodeError(PREFIX.name, "key", 0, f"no record has the type {number}"))
    # The message behind a type has one version, whatever that schema says else.
    return Part(number, schema, *_whole(schema, *attempt(schema, schema.valid.lowest, data, PREFIX.size)))


def _value(folder: str, key: Schema, data: bytes) -> Part:
    number, problem = _prefix("value", data)
    assert key.apiKey is not None
    schema = _schemas(folder, "coordinator-value").get(key.apiKey)
    if number is None or schema is None:
        return Part(number, schema, problem=problem)
    return Part(number, schema, *_whole(schema, *attempt(schema, number, data, PREFIX.size)))


def _whole(schema: Schema, decoded: Decoded, problem: DecodeError | None) -> tuple[Decoded, DecodeError | None]:
    """The same, with what is left over as the problem. A newer version may well have more fields than are known."""
    if problem is None and decoded.rest and not decoded.note:
        reason = f"{len(decoded.rest)} bytes are left over behind the message"
        problem = DecodeError(schema.name, "", decoded.position, reason)
    return decoded, problem


def _prefix(part: str, data: bytes | None) -> tuple[int | None, DecodeError | None]:
    if data is None:
        return None, DecodeError(PREFIX.name, part, 0, "null")
    try:
        return PREFIX.read(data).number, None
    except DecodeError as error:
        return None, DecodeError(PREFIX.name, part, error.position, error.reason)


@cache
def _schemas(folder: str, kind: str) -> dict[int, Schema]:
    """The messages of one kind by their apiKey."""
    known = load_folder(folder).values()
    return {schema.apiKey: schema for schema in known if schema.type == kind and schema.apiKey is not None}
