"""Decodes Avro and Protobuf in the Confluent wire format: magic 0, the ID of the schema in its registry, for Protobuf
the path to the message within its schema, then the data.

Source: Confluent's documentation, "Schema Registry wire format"; AbstractKafkaSchemaSerDe and MessageIndexes of its
clients. The registry is not contacted: the schema comes from a file, and the record's schema ID is part of the result.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from kdump.decode.decoder_interface import MAX_FRAMED_BYTES, DecodedPart, FormatError, RecordContext
from kdump.format.errors import DecodeError
from kdump.format.layout import BYTES, INT8, INT32, Field, Span, layout
from kdump.format.varint import read_unsigned, read_varint

Payload = Callable[[bytes, int, tuple[int, ...]], tuple[Any, str]]
"""(all bytes, start of the data, path to the message) -> value and note. May raise FormatError."""
DEEPEST = 32
"""Maximum length of a path to a nested message."""


class ConfluentFraming(NamedTuple):
    """The fields before the data."""

    magic: Annotated[int, Field(INT8, "0 in the Confluent wire format")]
    schemaId: Annotated[int, Field(INT32, "ID of the schema in the schema registry")]


FRAMING = layout(ConfluentFraming, "Confluent wire format")


INDEXES = Field(BYTES, "path to the message type in the schema", name="messageIndexes")
DATA = Field(BYTES, "encoded with the schema", name="data")


def _rest(data: bytes, start: int) -> list[Span]:
    return [Span(start, len(data) - start, DATA, data[start:], 0)] if start < len(data) else []


class ConfluentDecoder:
    """Decodes the framing and, if there is a schema, the data after it with `payload`. `indexed`: the schema ID is
    followed by a path to the message, as in Protobuf."""

    def __init__(self, *, indexed: bool, payload: Payload | None) -> None:
        self.indexed, self.payload = indexed, payload

    def spans(self, data: bytes) -> list[Span]:
        """Return the fields of the framing, and the data as one more field; empty if `data` is not in this format."""
        if data[:1] != b"\0" or len(data) < FRAMING.size:
            return []
        found = list(FRAMING.walk(data, 0, FRAMING.size))
        start = FRAMING.size
        if self.indexed:
            try:
                path, start = message_path(data, start)
            except FormatError:
                return found + _rest(data, start)
            numbers = ", ".join(map(str, path))
            found.append(Span(FRAMING.size, start - FRAMING.size, INDEXES, numbers, 0))
        return found + _rest(data, start)

    def __call__(self, data: bytes, about: Callable[[], RecordContext]) -> DecodedPart:
        if data[:1] != b"\0":
            found = f"starts with 0x{data[0]:02x}, not 0x00" if data else "empty"
            raise FormatError(f"not in the Confluent wire format: {found}", 0)
        try:
            framing = FRAMING.read(data)
        except DecodeError:
            raise FormatError(f"the schema ID needs 4 bytes, {len(data) - 1} left", 1) from None
        value: dict[str, Any] = {"magic": framing.magic, "schemaId": framing.schemaId}
        start = FRAMING.size
        path: tuple[int, ...] = ()
        try:
            if self.indexed:
                path, start = message_path(data, start)
                value["messageIndexes"] = list(path)
            if self.payload is None:
                return DecodedPart(value | {"payload": base64.b64encode(data[start:]).decode()})
            if len(data) > MAX_FRAMED_BYTES:
                raise FormatError(f"too large to decode: {len(data)} bytes, at most {MAX_FRAMED_BYTES}")
            value["data"], note = self.payload(data, start, path)
        except FormatError as error:
            where = "" if error.position is None else f"at byte {error.position}: "
            return DecodedPart(value, problem=where + error.reason, stop=error.position)
        return DecodedPart(value, note=note)


def message_path(data: bytes, start: int, *, zigzag: bool = True) -> tuple[tuple[int, ...], int]:
    """Return the path to the message in its schema, and the start of the data. The path is stored as a count and that
    many indexes, all zigzag varints; a lone 0 stands for the first message. (Older clients in Python wrote plain
    varints: use.deprecated.format.) Raises FormatError."""
    read = read_varint if zigzag else _read_plain
    try:
        count, position = read(data, start, len(data), "MessageIndexes", "count")
        if not 0 <= count <= DEEPEST:
            raise FormatError(f"{count} message indexes; 0 to {DEEPEST} are valid", start)
        path = []
        for _ in range(count):
            index, position = read(data, position, len(data), "MessageIndexes", "index")
            path.append(index)
    except DecodeError as error:
        raise FormatError(f"message indexes: {error.reason}", error.position) from None
    return tuple(path) or (0,), position


def _read_plain(data: bytes, position: int, end: int, struct: str, field: str) -> tuple[int, int]:
    return read_unsigned(data, position, end, 32, struct, field)
