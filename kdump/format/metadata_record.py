"""Records of KRaft's metadata log and snapshots, and of __remote_log_metadata: a frame of three varints, followed by
one of Kafka's own messages. Their keys are null.

Kafka throws on every problem here, which triggers a fault of the node that reads the log. A version newer than the
known ones, on which Kafka also throws, is decoded with a note.

Source: org.apache.kafka.server.common.serialization.AbstractApiMessageSerde, its subclasses
org.apache.kafka.metadata.MetadataRecordSerde and org.apache.kafka.server.log.remote.metadata.storage.serialization
.RemoteLogMetadataSerde, KIP-631, KIP-405."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError, FrameVersionError, LeftOverError, TooLargeError
from kdump.format.kafka_release import newer_text
from kdump.format.layout import Field, Span
from kdump.format.message_writer import encode
from kdump.format.numbers import int16, int32
from kdump.format.plain_messages import Plain, PlainText, plain_reader, plain_text
from kdump.format.schema import UNSIGNED_VARINT, by_api_key, load_folder
from kdump.format.varint import read_unsigned
from kdump.format.versioned_messages import Decoded, decode_problem, kafka_json, try_decode

FRAME_VERSION = 1
"""The only valid version. The KRaft preview in Kafka 2.8 wrote 0, which no later release reads."""
FRAME = "MetadataRecord"
API_KEY = Field(UNSIGNED_VARINT, "type of the message that follows", name="apiKey")
FIELDS = (
    Field(UNSIGNED_VARINT, "version of the frame", name="frameVersion"),
    API_KEY,
    Field(UNSIGNED_VARINT, "version of the message that follows", name="version"),
)
MAX_SHORT = 0x7FFF
FRAME_SIZE = 3
"""Bytes of the usual frame."""


class MetadataRecord(NamedTuple):
    """A decoded metadata record.

    `name` is the name of its message, UNKNOWN(99) for an apiKey that Kafka does not define, UNKNOWN if the frame is
    invalid. `values` are the fields of the message, up to the `problem` if there is one; None if the message is
    unknown. `version` is the one in the frame. `note` states what is unusual but legal. `newer` states what only a
    newer release than the newest known one writes; the values are then those that are known."""

    name: str
    apiKey: int | None
    version: int | None
    values: dict[str, Any] | None
    problem: DecodeError | None = None
    note: str = ""
    newer: str = ""


class MetadataRecordFrame(NamedTuple):
    """The frame before a message."""

    apiKey: int
    version: int
    position: int
    """Position of the message in the value."""


def decode_metadata_record(
    value: bytes | None, folder: str = "metadata", spans: list[Span] | None = None
) -> MetadataRecord:
    """Decode the metadata record with this value; if `folder` is storage, a record of __remote_log_metadata. Never
    raises: a decoding error becomes its `problem`, with a position in the value. Appends the known fields to `spans`.
    """
    if spans is None and value is not None:
        plain = _plain(folder, value[:FRAME_SIZE])
        message = plain[-1](value, FRAME_SIZE) if plain else None
        if plain and message and message[1] == len(value):
            return MetadataRecord(*plain[:3], message[0])
    try:
        frame = read_frame(value, spans)
    except DecodeError as error:
        return MetadataRecord("UNKNOWN", None, None, None, error, newer=_newer_frame(error))
    assert value is not None
    schema = by_api_key(folder).get(frame.apiKey)
    if schema is None:
        newer = newer_record(frame.apiKey, frame.version, folder)
        problem = DecodeError(FRAME, "apiKey", 1, newer or f"apiKey {frame.apiKey} is unknown")
        return MetadataRecord(f"UNKNOWN({frame.apiKey})", frame.apiKey, frame.version, None, problem, newer=newer)
    decoded, error_in_message = try_decode(schema, frame.version, value, frame.position, spans=spans)
    # A newer version may have fields that are not known here; in a known version, Kafka throws on leftover bytes.
    if error_in_message is None and decoded.rest and not decoded.note:
        reason = f"{len(decoded.rest)} bytes are left over after the message"
        error_in_message = LeftOverError(schema.name, "", decoded.position, reason)
    newer = newer_record(frame.apiKey, frame.version, folder)
    return MetadataRecord(
        schema.name, frame.apiKey, frame.version, decoded.value, error_in_message, decode_problem(decoded), newer
    )


def newer_record(api_key: int, version: int, folder: str = "metadata") -> str:
    """Return that a record has a type or a version above those that the newest known release writes; empty if it has
    another one."""
    schemas = by_api_key(folder)
    schema = schemas.get(api_key)
    if schema is None:
        newest = max(schemas)
        return newer_text(f"{FRAME} apiKey", api_key, newest) if api_key > newest else ""
    newest = schema.valid.highest
    return newer_text(f"{schema.name} version", version, newest) if version > newest else ""


def _newer_frame(error: DecodeError) -> str:
    """Return what is newer about a frame, if that is why it cannot be read."""
    if isinstance(error, FrameVersionError) and error.number > FRAME_VERSION:
        return newer_text(f"{FRAME} frameVersion", error.number, FRAME_VERSION)
    return ""


def metadata_record_value(name: str, version: int, values: dict[str, Any]) -> bytes:
    """Return the value of a metadata record; fields that are not in `values` have their defaults. Raises ValueError for
    a value that a field cannot have."""
    schema = load_folder("metadata")[name]
    assert schema.apiKey is not None
    message = encode(schema, version, {**schema.struct(version).default(), **values})
    return bytes((FRAME_VERSION, schema.apiKey, version)) + message


def is_usual(value: bytes) -> bool:
    """Return whether the frame is that of a known message in a known version."""
    return _plain("metadata", value[:FRAME_SIZE]) is not None


def plain_values(value: bytes) -> dict[str, Any] | None:
    """Return the `values` of `decode_metadata_record`, if nothing about the record is unusual."""
    plain = _plain("metadata", value[:FRAME_SIZE])
    message = plain[-1](value, FRAME_SIZE) if plain else None
    return message[0] if message and message[1] == len(value) else None


@lru_cache(1024)
def _plain(folder: str, frame: bytes) -> tuple[str, int, int, Plain] | None:
    """Return the name, apiKey and version of the message after these three bytes, and its fast decoder; None if
    anything about the frame is unusual."""
    if len(frame) < FRAME_SIZE or frame[0] != FRAME_VERSION or max(frame) > 0x7F:
        return None
    schema = by_api_key(folder).get(frame[1])
    if schema is None or not schema.valid.hold(frame[2]):
        return None
    return schema.name, frame[1], frame[2], plain_reader(schema, frame[2])


def metadata_text(folder: str, frame: bytes) -> tuple[str, int, int, PlainText] | None:
    """Return the name, apiKey and version of the message after these three bytes, and what reads its fields as JSON;
    None if anything about the frame is unusual."""
    plain = _plain(folder, frame)
    return (*plain[:3], plain_text(by_api_key(folder)[plain[1]], plain[2])) if plain else None


def metadata_json(record: MetadataRecord, folder: str = "metadata") -> dict[str, Any]:
    """Return the values of a record with a known message in Kafka's own JSON form."""
    assert record.values is not None
    assert record.version is not None
    schema = load_folder(folder)[record.name]
    version = min(record.version, schema.valid.highest)
    if not schema.valid.hold(version):
        return {}
    # `values` may have unknown tags only if there is a note.
    tags = frozenset((-1,)) if record.note else frozenset[int]()
    return kafka_json(schema, Decoded(record.values, version, 0, "", b"", tags))


def metadata_record_name(value: bytes | None) -> str:
    """Return the name that `decode_metadata_record` gives, from the frame alone, for callers that need few records."""
    plain = _plain("metadata", value[:FRAME_SIZE]) if value is not None else None
    if plain is not None:
        return plain[0]
    try:
        frame = read_frame(value)
    except DecodeError:
        return "UNKNOWN"
    schema = by_api_key("metadata").get(frame.apiKey)
    return schema.name if schema else f"UNKNOWN({frame.apiKey})"


def read_frame(value: bytes | None, spans: list[Span] | None = None) -> MetadataRecordFrame:
    """Read the frame at the start of a value. Raises DecodeError."""
    if value is None:
        raise DecodeError(FRAME, "frameVersion", 0, "null")
    numbers: list[int] = []
    position = 0
    for field in FIELDS:
        start = position
        number, position = read_unsigned(value, start, len(value), 32, FRAME, field.name)
        number = int32(number)  # ByteUtils.readUnsignedVarint
        if number > MAX_SHORT:
            raise TooLargeError(FRAME, field.name, start, f"{number} does not fit into an INT16")
        number = int16(number)  # AbstractApiMessageSerde.unsignedIntToShort casts a negative one
        if not numbers and number != FRAME_VERSION:
            raise FrameVersionError(FRAME, field.name, start, number, FRAME_VERSION)
        numbers.append(number)
        if spans is not None:
            spans.append(Span(start, position - start, field, number, 0))
    return MetadataRecordFrame(numbers[1], numbers[2], position)
