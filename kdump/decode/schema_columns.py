"""The fields of a topic's newest schema as columns, and the values of records as rows of these.

An Avro value is resolved from the schema with which it was written to the newest one, as Avro's own readers do it
(fastavro); a Protobuf message must fit its own schema whole, and is then read by the newest one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timezone
from typing import Any, NamedTuple

from kdump import jsonl
from kdump.decode.avro import LOGICAL, parsed_schemas, schemas_payload
from kdump.decode.decoder_interface import DecodedPart, DecoderError, FormatError, context_of
from kdump.decode.jsonable import to_json
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.registry_decoder import (
    Reader,
    Reading,
    RegistryDecoder,
    SchemaSource,
    avro_schemas,
    protobuf_descriptors,
    protobuf_reader,
)
from kdump.format.numbers import LONG_MAX
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.state.schema_registry import SchemaVersion

DEEPEST = 20
"""Maximum depth of nested columns. What is deeper, or recursive, is JSON text."""
LONGEST = 100_000
"""Maximum number of characters of the type of a column."""
Convert = Callable[[Any], Any] | None
"""Converts a decoded value to that of a column; None: it is that already."""


class Column(NamedTuple):
    """A field as a column. `type`: in Spark's DDL, with timestamp_us for a timestamp of microseconds."""

    name: str
    type: str
    convert: Convert


class ColumnDecoder(RegistryDecoder):
    """Reads values as rows of the columns of the newest schema of a topic. The constructor raises DecoderError if there
    is none, or if it has no columns."""

    def __init__(self, source: SchemaSource, topic: str) -> None:
        super().__init__(source)
        known, subject = source.known(), f"{topic}-value"
        newest = None if known is None else max(known.registry.rows(subject), default=None)
        version = None if known is None or newest is None else known.version(subject, newest)
        if known is None or version is None:
            raise DecoderError(source.problem or f"no schema with the subject {subject} in {source.place}")
        self.newest = version
        try:
            if version.schema_type == "AVRO":
                self.parsed, named = parsed_schemas(avro_schemas(known, version), subject)
                self.columns = AvroColumns(named).of_record(self.parsed)
            elif version.schema_type == "PROTOBUF":
                from kdump.decode.protobuf import first_message

                self.message = first_message(protobuf_descriptors(known, version), subject)
                self.columns = proto_columns(self.message.DESCRIPTOR)
            else:
                raise DecoderError(f"its type is {version.schema_type[:40]}, which has no columns")
        except DecoderError as error:
            raise DecoderError(f"{subject} version {version.version}: {error}") from None

    def row(self, target: Target, record: Record) -> dict[str, Any] | str:
        """Return the values of a record's columns by name; or why it does not fit."""
        value = record.value
        if value is None:
            return {}
        try:
            part = NOT_FRAMED if self.skips(value, record) else self(value, lambda: context_of("value", target, record))
        except FormatError as error:
            return error.reason
        row: dict[str, Any] | str = part.value["data"] if part.is_decoded else part.problem or part.note or NO_ID
        return row

    @staticmethod
    def _other(data: bytes, reason: str) -> DecodedPart:
        return DecodedPart(note=reason)  # of what has the size of a number, too

    def make_reader(self, registry: KnownSchemas, version: SchemaVersion) -> Reader:
        kind = self.newest.schema_type
        if version.schema_type != kind:
            raise DecoderError(f"it is of type {version.schema_type[:40]}, and the newest schema of type {kind}")
        return self._avro(registry, version) if kind == "AVRO" else self._protobuf(registry, version)

    def _avro(self, registry: KnownSchemas, version: SchemaVersion) -> Reader:
        payload = schemas_payload(avro_schemas(registry, version), version.subject, self.parsed)

        def read(data: bytes, start: int, head: bytes, at: int) -> Reading:
            value, left_over = payload(data, start, ())
            if left_over:
                raise FormatError(f"the schema does not fit: {left_over}")
            try:
                return Reading(row_of(self.columns, value))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise FormatError(f"the schema does not fit: {type(error).__name__}: {error}"[:300]) from None

        return read

    def _protobuf(self, registry: KnownSchemas, version: SchemaVersion) -> Reader:
        as_written = protobuf_reader(registry, version)

        def read(data: bytes, start: int, head: bytes, at: int) -> Reading:
            reading = as_written(data, start, head, at)
            if reading.indexes != FIRST:
                raise FormatError(f"it is the message {list(reading.indexes or ())}, not the first one of the schema")
            message = self.message()
            message.ParseFromString(data[reading.start :])
            return reading._replace(value=row_of_message(self.columns, message))

        return read


FIRST = (0,)
"""The path to the first message of a schema."""
NO_ID = "it begins with no schema ID that is known here"
NOT_FRAMED = DecodedPart(note="it begins with no schema ID")


def text_of(value: Any) -> str | None:
    """Return a value as JSON text."""
    return None if value is None else jsonl.line(to_json(value))


def row_of(columns: tuple[Column, ...], value: Any) -> dict[str, Any]:
    """Return the values of the columns by name."""
    return {
        name: value[name] if convert is None or value[name] is None else convert(value[name])
        for name, _, convert in columns
    }


class AvroColumns:
    """The columns of Avro types. `named`: the types with names."""

    def __init__(self, named: dict[str, Any]) -> None:
        self.named = named
        fields = [field for schema in named.values() for field in schema.get("fields", ()) if "default" in field]
        try:
            defaults = [self.native(field["type"], field["default"]) for field in fields]
        except Exception as error:  # such as one that is endless
            raise DecoderError(f"a default value is invalid: {type(error).__name__}: {error}"[:300]) from None
        for field, default in zip(fields, defaults):
            field["default"] = default  # fastavro returns it as it is

    def native(self, schema: Any, default: Any) -> Any:
        """Return a default value, which is JSON in the schema, as fastavro returns values that it reads."""
        from fastavro import read as fastavro_read

        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        if isinstance(schema, list):
            return self.native(schema[0], default)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in ("bytes", "fixed") and isinstance(default, str):
            default = default.encode("latin-1")
        if isinstance(schema, str):
            return default
        read = fastavro_read.LOGICAL_READERS.get(f"{kind}-{schema.get('logicalType')}")
        if read is not None:
            return read(default, schema, schema)
        if kind == "array":
            return [self.native(schema["items"], item) for item in default]
        if kind == "map":
            return {key: self.native(schema["values"], item) for key, item in default.items()}
        if kind in ("record", "error"):
            given = {field["name"]: default.get(field["name"], field.get("default")) for field in schema["fields"]}
            return {field["name"]: self.native(field["type"], given[field["name"]]) for field in schema["fields"]}
        return default if kind in AVRO_TYPES else self.native(kind, default)

    def of_record(self, schema: Any) -> tuple[Column, ...]:
        """Return the columns of a record. Raises DecoderError for another type."""
        schema = self.named.get(schema, schema) if isinstance(schema, str) else schema
        if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
            raise DecoderError("its type is not a record, so that it has no columns; valueDecoded has such values")
        return tuple(
            Column(field["name"], *self.column(field["type"], (schema["name"],))) for field in schema["fields"]
        )

    def column(self, schema: Any, within: tuple[str, ...]) -> tuple[str, Convert]:
        """Return the type and the conversion of a type that is within these records."""
        if isinstance(schema, str):
            plain = AVRO_TYPES.get(schema)
            return plain if plain is not None else self.column(self.named[schema], within)
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            return self.column(branches[0], within) if len(branches) == 1 else ("string", text_of)
        kind = schema.get("type")
        logical = f"{kind}-{schema.get('logicalType')}"
        if logical in LOGICAL:
            return AVRO_TIMES.get(logical, ("string", LOGICAL[logical]))
        if kind in ("record", "error"):
            if schema["name"] in within or len(within) > DEEPEST or not schema["fields"]:
                return "string", text_of
            fields = tuple(
                Column(field["name"], *self.column(field["type"], (*within, schema["name"])))
                for field in schema["fields"]
            )
            return struct_of(fields), None if not any(field.convert for field in fields) else _of_struct(fields)
        if kind == "array":
            return array_of(*self.column(schema["items"], within))
        if kind == "map":
            return map_of(*self.column(schema["values"], within))
        return self.column(kind, within) if kind not in AVRO_TYPES else AVRO_TYPES[kind]


AVRO_TYPES: dict[str, tuple[str, Convert]] = {
    "null": ("string", None),
    "boolean": ("boolean", None),
    "int": ("int", None),
    "long": ("bigint", None),
    "float": ("double", None),
    "double": ("double", None),
    "string": ("string", None),
    "enum": ("string", None),
    "bytes": ("binary", None),
    "fixed": ("binary", None),
}
AVRO_TIMES: dict[str, tuple[str, Convert]] = {
    "long-timestamp-millis": ("timestamp", None),
    "long-timestamp-micros": ("timestamp_us", None),
}


def struct_of(fields: tuple[Column, ...]) -> str:
    """Return the type of a struct. Raises DecoderError if it has too many fields."""
    strange = next((field.name for field in fields if not field.name.isidentifier()), None)
    if strange is not None:
        raise DecoderError(f"the name of a field is invalid: {strange[:100]!r}")
    kind = f"struct<{','.join(f'{field.name}:{field.type}' for field in fields)}>"
    if len(kind) > LONGEST:
        raise DecoderError("its records are nested in each other too often")
    return kind


def _of_struct(fields: tuple[Column, ...]) -> Convert:
    return lambda value: row_of(fields, value)


def array_of(kind: str, convert: Convert) -> tuple[str, Convert]:
    """Return the type and the conversion of an array of these."""
    if convert is None:
        return f"array<{kind}>", None
    return f"array<{kind}>", lambda values: [None if value is None else convert(value) for value in values]


def map_of(kind: str, convert: Convert) -> tuple[str, Convert]:
    """Return the type and the conversion of a map to these: an array of keys and values."""

    def pairs(value: Any) -> list[dict[str, Any]]:
        return [
            {"key": str(key), "value": item if convert is None or item is None else convert(item)}
            for key, item in value.items()
        ]

    return f"array<struct<key:string,value:{kind}>>", pairs


def proto_columns(message: Any, within: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Return the columns of a Protobuf message, by its descriptor. Their conversions are of the whole message."""
    return tuple(_proto_columns(message, (*within, message.full_name)))


def _proto_columns(message: Any, within: tuple[str, ...]) -> Iterator[Column]:
    for field in message.fields:
        kind, convert = _proto_type(field, within)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            kind, convert = map_of(*_proto_type(field.message_type.fields_by_name["value"], within))
        elif is_repeated(field):
            kind, convert = array_of(kind, convert or _same)
        yield Column(field.name, kind, _of_field(field, convert))


def is_repeated(field: Any) -> bool:
    """Return whether a field is repeated; older versions of the library have its label instead."""
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def _same(value: Any) -> Any:
    return value


def _of_field(field: Any, convert: Convert) -> Convert:
    name, has_presence = field.name, field.has_presence

    def read(message: Any) -> Any:
        if has_presence and not message.HasField(name):
            return None
        value = getattr(message, name)
        return value if convert is None else convert(value)

    return read


def _proto_type(field: Any, within: tuple[str, ...]) -> tuple[str, Convert]:
    """Return the type of a single value of a field, and its conversion."""
    message, names = field.message_type, field.enum_type
    if names is not None:
        known = {number: value.name for number, value in names.values_by_number.items()}
        return "string", lambda number: known.get(number, str(number))
    if message is None:
        return ("binary", None) if field.type == field.TYPE_BYTES else PROTO_TYPES[field.cpp_type]
    if message.full_name == "google.protobuf.Timestamp":
        return "timestamp_us", lambda value: value.ToDatetime(timezone.utc)
    if message.full_name in within or len(within) > DEEPEST or not message.fields:
        return "string", _message_text
    fields = proto_columns(message, within)
    return struct_of(fields), lambda value: row_of_message(fields, value)


def _message_text(value: Any) -> str | None:
    from google.protobuf.json_format import MessageToDict

    return text_of(MessageToDict(value, preserving_proto_field_name=True))


def row_of_message(columns: tuple[Column, ...], message: Any) -> dict[str, Any]:
    """Return the values of the columns of a Protobuf message by name."""
    try:
        return {name: convert(message) for name, _, convert in columns if convert is not None}
    except (ValueError, OverflowError) as error:  # a time that Python has no date for
        raise FormatError(str(error)) from None


def _unsigned(value: int) -> int:
    if value > LONG_MAX:
        raise FormatError(f"{value} is larger than 64 bits with a sign can hold")
    return value


PROTO_TYPES: dict[int, tuple[str, Convert]] = {
    1: ("int", None),
    2: ("bigint", None),
    3: ("bigint", None),
    4: ("bigint", _unsigned),
    5: ("double", None),
    6: ("double", None),
    7: ("boolean", None),
    9: ("string", None),
}
"""By FieldDescriptor.cpp_type."""
