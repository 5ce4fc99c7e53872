"""Records of KRaft's metadata log and of its snapshots, and of __remote_log_metadata: a frame of three varints, then
one of Kafka's own messages. Their keys are null.

Kafka throws on every problem here, which faults the node that reads the log; what it throws on and this reads is a
version newer than the known ones, with a note.

Source: org.apache.kafka.server.common.serialization.AbstractApiMessageSerde, its heirs
org.apache.kafka.metadata.MetadataRecordSerde and org.apache.kafka.server.log.remote.metadata.storage.serialization
.RemoteLogMetadataSerde, KIP-631, KIP-405.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import Field, Span
from kdump.format.messages import Decoded, attempt, kafka_json, note_of
from kdump.format.schema import UNSIGNED_VARINT, by_api_key, load_folder
from kdump.format.varint import read_unsigned

FRAME_VERSION = 1
"""The only one. The preview of KRaft in Kafka 2.8 wrote 0, which no later release reads."""
FRAME = "MetadataRecord"
API_KEY = Field(UNSIGNED_VARINT, "which message follows", name="apiKey")
FIELDS = (
    Field(UNSIGNED_VARINT, "version of the frame", name="frameVersion"),
    API_KEY,
    Field(UNSIGNED_VARINT, "version of the message that follows", name="version"),
)
MAX_SHORT = 0x7FFF


class MetadataRecord(NamedTuple):
    """What a metadata record says.

    `name` is that of its message, UNKNOWN(99) for an apiKey that Kafka has not given out, UNKNOWN where the frame does
    not say one. `values` are the fields of the message, those in front of the `problem` if there is one; None without
    a known message. `version` is the one that the frame says. `note` says what is unusual and legal.
    """

    name: str
    apiKey: int | None
    version: int | None
    values: dict[str, Any] | None
    problem: DecodeError | None = None
    note: str = ""


class Frame(NamedTuple):
    """What stands in front of the message."""

    apiKey: int
    version: int
    position: int
    """Where the message begins."""


def decode_metadata_record(
    value: bytes | None, folder: str = "metadata", spans: list[Span] | None = None
) -> MetadataRecord:
    """The metadata record with this value; of remote log metadata, if `folder` is storage. Never raises: what does not
    decode is its `problem`, whose position is one in the value. Appends the known fields to `spans`."""
    try:
        frame = read_frame(value, spans)
    except DecodeError as error:
        return MetadataRecord("UNKNOWN", None, None, None, error)
    assert value is not None
    schema = by_api_key(folder).get(frame.apiKey)
    if schema is None:
        problem = DecodeError(FRAME, "apiKey", 1, f"no record has apiKey {frame.apiKey}")
        return MetadataRecord(f"UNKNOWN({frame.apiKey})", frame.apiKey, frame.version, None, problem)
    decoded, error_in_message = attempt(schema, frame.version, value, frame.position, spans=spans)
    # A newer version may well have more fields than are known; in a known one, Kafka throws on what is left over.
    if error_in_message is None and decoded.rest and not decoded.note:
        reason = f"{len(decoded.rest)} bytes are left over behind the message"
        error_in_message = DecodeError(schema.name, "", decoded.position, reason)
    return MetadataRecord(schema.name, frame.apiKey, frame.version, decoded.value, error_in_message, note_of(decoded))


def metadata_json(record: MetadataRecord, folder: str = "metadata") -> dict[str, Any]:
    """The values of a record of a known message as Kafka's own JSON has them."""
    assert record.values is not None
    assert record.version is not None
    schema = load_folder(folder)[record.name]
    version = min(record.version, schema.valid.highest)
    return kafka_json(schema, Decoded(record.values, version, 0, "", b"")) if schema.valid.hold(version) else {}


def metadata_record_name(value: bytes | None) -> str:
    """As the name of `decode_metadata_record`, read from the frame alone: for those who want few of the records."""
    try:
        frame = read_frame(value)
    except DecodeError:
        return "UNKNOWN"
    schema = by_api_key("metadata").get(frame.apiKey)
    return schema.name if schema else f"UNKNOWN({frame.apiKey})"


def read_frame(value: bytes | None, spans: list[Span] | None = None) -> Frame:
    """The frame that a value begins with. Raises DecodeError."""
    if value is None:
        raise DecodeError(FRAME, "frameVersion", 0, "null")
    numbers: list[int] = []
    position = 0
    for field in FIELDS:
        start = position
        number, position = read_unsigned(value, start, len(value), 32, FRAME, field.name)
        if number > MAX_SHORT:
            raise DecodeError(FRAME, field.name, start, f"{number} does not fit into an INT16")
        if not numbers and number != FRAME_VERSION:
            raise DecodeError(FRAME, field.name, start, f"version {number} of the frame, the known one is 1")
        numbers.append(number)
        if spans is not None:
            spans.append(Span(start, position - start, field, number, 0))
    return Frame(numbers[1], numbers[2], position)
