"""Decodes keys and values into the text that kafka-dump-log prints, with the selected decoder.

Source: org.apache.kafka.tools.DumpLogSegments (its MessageParsers), org.apache.kafka.tools.api.Decoder and its four
implementations, CoordinatorRecordSerde and AbstractApiMessageSerde, whose exceptions are part of the output.

Source: org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate and
RemotePartitionDeleteMetadata, org.apache.kafka.server.log.remote.metadata.storage.RemoteLogSegmentMetadataSnapshot."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kdump.format.consumer_protocol import PROTOCOL_TYPE, with_members
from kdump.format.coordinator_record import MessagePart, decode_coordinator_record
from kdump.format.errors import DecodeError, ElementsError, FrameVersionError, LengthError, NullError, TooLargeError
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.known_releases import at_most
from kdump.format.metadata_record import FRAME_VERSION, read_frame
from kdump.format.schema import MessageSchema, by_api_key
from kdump.format.transaction_record import STATES
from kdump.format.utf8 import java_text, java_texts, texts
from kdump.format.varint import Bytes
from kdump.format.versioned_messages import UNKNOWN_TAGS, Decoded, kafka_json, try_decode
from kdump.questions.dump_log.batch import Undecodable
from kdump.questions.dump_log.java import boolean, jackson
from kdump.state.releases import STATUS_NAMES

DecodedTexts = tuple["str | None", "str | None"]
Text = Callable[[Bytes], str]
TRANSACTION = "TransactionLogValue"
_SNAKE = re.compile("(?<=[a-z0-9])(?=[A-Z])")


def _number(form: str, name: str, data: Bytes) -> str:
    if len(data) < struct.calcsize(form):
        raise Undecodable(f"{len(data)} bytes, but the decoder needs {struct.calcsize(form)} for {name}")
    return str(struct.unpack_from(form, data)[0])


def _bytes_as_they_are(data: Bytes) -> str:
    return str(data, "utf-8", "surrogateescape")


DECODER_CLASSES: dict[str, Text] = {
    "org.apache.kafka.tools.api.StringDecoder": java_text,
    "org.apache.kafka.tools.api.DefaultDecoder": _bytes_as_they_are,
    "org.apache.kafka.tools.api.IntegerDecoder": partial(_number, ">i", "an int"),
    "org.apache.kafka.tools.api.LongDecoder": partial(_number, ">q", "a long"),
}
"""The decoder classes of Kafka 4.3. For its DefaultDecoder, Kafka's tool prints the identity of a Java array
([B@1b2c638e), which differs on every run; kdump prints the bytes themselves."""
DEFAULT_CLASS = "org.apache.kafka.tools.api.StringDecoder"


_PIECES: dict[Text, Callable[[memoryview, int], Iterator[str]]] = {
    java_text: java_texts,
    _bytes_as_they_are: partial(texts, errors="surrogateescape"),
}


class ClassDecoder:
    """A decoder that uses two classes of DECODER_CLASSES."""

    def __init__(self, key_class: str, value_class: str) -> None:
        self.key_text, self.value_text = DECODER_CLASSES[key_class], DECODER_CLASSES[value_class]

    def __call__(self, offset: int, key: bytes | None, value: bytes | None) -> DecodedTexts:
        return None if key is None else self.key_text(key), None if value is None else self.value_text(value)

    def pieces(
        self, key: memoryview | None, value: memoryview | None, size: int
    ) -> tuple[Iterator[str] | None, Iterator[str] | None]:
        """Return what a call returns, in pieces of about `size` bytes."""
        return _in_pieces(self.key_text, key, size), _in_pieces(self.value_text, value, size)


def _in_pieces(decode: Text, data: memoryview | None, size: int) -> Iterator[str] | None:
    if data is None:
        return None
    pieces = _PIECES.get(decode)
    return pieces(data, size) if pieces else iter((decode(data),))


def _coordinator(
    folder: str, release: KafkaRelease, offset: int, key: bytes | None, value: bytes | None
) -> DecodedTexts:
    """Decode a record of a coordinator's topic with the schemas in `folder`."""
    if key is None:
        raise Undecodable("a record without a key, which this decoder cannot read")
    decoded = decode_coordinator_record(folder, key, value)
    if decoded.key.number is not None and decoded.key.schema is None:
        return f"Unknown record type {decoded.key.number} at offset {offset}, skipping.", None
    wrong = _wrong(decoded.key, "key")
    if not wrong and decoded.value is not None:
        wrong = _unknown_version(decoded.value) or _wrong(decoded.value, "value")
    if wrong:
        return f"Error at offset {offset}, skipping. {wrong}", None
    schema, data = _data(decoded.key)
    key_json = jackson({"type": str(schema.apiKey), "data": data})
    if decoded.value is None:
        return key_json, "<DELETE>"
    schema, data = _data(decoded.value)
    assert decoded.value.decoded is not None
    if schema.name == "GroupMetadataValue" and data.get("protocolType") == PROTOCOL_TYPE:
        with_members(data, decoded.value.decoded.value["members"])
    data = _as_of(schema, decoded.value.decoded.version, data, release)
    return key_json, jackson({"version": str(decoded.value.number), "data": data})


def _as_of(schema: MessageSchema, version: int, data: dict[str, Any], release: KafkaRelease) -> dict[str, Any]:
    """Return the JSON of a value as the tool of this release prints it: without the tagged fields that it lacks."""
    if schema.name == TRANSACTION and STATUS_NAMES.applies(release):
        number = data["transactionStatus"]
        return {**data, "transactionStatus": STATES[number] if 0 <= number < len(STATES) else str(number)}
    if release.line >= NEWEST.line:
        return data
    highest = at_most(release.line).tags.get(schema.name, -1)
    added = {node.name for tag, node in schema.struct(version).tagged.items() if tag > highest}
    return {name: value for name, value in data.items() if name not in added}


def _wrong(part: MessagePart, name: str) -> str:
    """Return the message of the exception that Kafka throws for a key or a value; empty if none. Kafka ignores trailing
    bytes."""
    if part.number is None:
        return f"Could not read version from {name}'s buffer."
    problem = part.problem
    if problem is None or part.decoded is None or not problem.field:
        return ""
    why = message(problem)
    return f"Could not read record with version {part.number} from {name}'s buffer due to: {why}."


def _unknown_version(value: MessagePart) -> str:
    schema = value.schema
    if value.number is None or schema is None or schema.valid.hold(value.number):
        return ""
    return f"Found an unknown record version {value.number} for {schema.apiKey} type"


def _data(part: MessagePart) -> tuple[MessageSchema, dict[str, Any]]:
    """Return schema and JSON of a decoded key or value."""
    assert part.schema is not None
    assert part.decoded is not None
    return part.schema, kafka_json(part.schema, part.decoded)


def _metadata(release: KafkaRelease, offset: int, key: bytes | None, value: bytes | None) -> DecodedTexts:
    """Decode a record of KRaft's metadata log."""
    framed = _framed("metadata", value, release)
    if isinstance(framed, str):
        return None, f"Error at {offset}, skipping. {framed}"
    schema, version, decoded = framed
    name = _SNAKE.sub("_", schema.name).upper()
    return None, jackson({"type": name, "version": version, "data": kafka_json(schema, decoded)})


def _remote(release: KafkaRelease, offset: int, key: bytes | None, value: bytes | None) -> DecodedTexts:
    """Decode a record of __remote_log_metadata."""
    if value is None:
        why = (
            'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of'
            ' "org.apache.kafka.common.record.internal.Record.value()" is null'
        )
        return None, f"Error at offset {offset}, skipping. {why}"
    framed = _framed("storage", value, release)
    if isinstance(framed, str):
        return None, f"Error at offset {offset}, skipping. {framed}"
    schema, _, decoded = framed
    if wrong := rejection_reason(decoded.value):
        return None, f"Error at offset {offset}, skipping. {wrong}"
    return None, remote_text(schema.name, decoded.value)


def _framed(folder: str, value: bytes | None, release: KafkaRelease) -> tuple[MessageSchema, int, Decoded] | str:
    """Decode a framed message. Returns its schema, the version in the frame, and the decoded message; otherwise the
    message of the exception that AbstractApiMessageSerde throws."""
    try:
        frame = read_frame(value)
    except DecodeError as error:
        return _frame_message(error, value)
    schema = by_api_key(folder).get(frame.apiKey)
    if schema is None or (release.line < NEWEST.line and schema.name not in at_most(release.line).messages[folder]):
        return f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {frame.apiKey}"
    assert value is not None
    decoded, problem = try_decode(schema, frame.version, value, frame.position)
    # Kafka's generated classes check the version only when they read a nested structure.
    unknown = not schema.valid.hold(frame.version) and _holds_structures(decoded.value)
    if problem is not None or unknown:
        return f"Failed to deserialize record with type {frame.apiKey}"
    if decoded.rest:
        return f"Found {len(decoded.rest)} byte(s) of garbage after {frame.apiKey}"
    return schema, frame.version, decoded


def _holds_structures(fields: dict[str, Any]) -> bool:
    values = (value for name, value in fields.items() if name != UNKNOWN_TAGS)
    return any(isinstance(value[0] if isinstance(value, list) and value else value, dict) for value in values)


def _frame_message(error: DecodeError, value: bytes | None) -> str:
    name = {"frameVersion": "frame version", "apiKey": "type"}.get(error.field, "version")
    if isinstance(error, TooLargeError):
        return f"Value for {name} was too large."
    if not isinstance(error, FrameVersionError):
        return f"Error while reading {name}"
    if error.number == 0:
        return (
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of"
            " KRaft in 2.8 to newer versions are not supported."
        )
    return (
        f"Could not deserialize metadata record due to unknown frame version {error.number}"
        f"(only frame version {FRAME_VERSION} is supported)"
    )


def message(error: DecodeError) -> str:
    """Return the message that Kafka's generated classes throw for an error of try_decode; "null" for an exception
    without a message, such as BufferUnderflowException."""
    name = error.field.rpartition(".")[2].replace("[]", " element")
    if isinstance(error, NullError):
        return f"non-nullable field {name} was serialized as null"
    if isinstance(error, LengthError):
        return f"Error reading byte array of {error.length} byte(s): only {error.left} byte(s) available"
    if isinstance(error, ElementsError):
        return f"Tried to allocate a collection of size {error.count}, but there are only {error.left} bytes remaining."
    return "null"


DECODERS: dict[str, Callable[..., DecodedTexts]] = {
    "offsets-decoder": partial(_coordinator, "group-coordinator"),
    "transaction-log-decoder": partial(_coordinator, "transaction-coordinator"),
    "cluster-metadata-decoder": _metadata,
    "remote-log-metadata-decoder": _remote,
    "share-group-state-decoder": partial(_coordinator, "share-coordinator"),
}
"""Decoders by option, which take a release first; if several options are given, the first in this order applies."""


SEGMENT_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
FIELDS = {
    "RemoteLogSegmentMetadataRecord": (
        "RemoteLogSegmentMetadata",
        "remoteLogSegmentId startOffset endOffset brokerId maxTimestampMs eventTimestampMs segmentLeaderEpochs"
        " segmentSizeInBytes customMetadata state txnIdxEmpty",
    ),
    "RemoteLogSegmentMetadataUpdateRecord": (
        "RemoteLogSegmentMetadataUpdate",
        "remoteLogSegmentId customMetadata state eventTimestampMs brokerId",
    ),
    "RemotePartitionDeleteMetadataRecord": (
        "RemotePartitionDeleteMetadata",
        "topicPartition state eventTimestampMs brokerId",
    ),
    "RemoteLogSegmentMetadataSnapshotRecord": (
        "RemoteLogSegmentMetadataSnapshot",
        "segmentId startOffset endOffset maxTimestampMs segmentLeaderEpochs segmentSizeInBytes customMetadata state"
        " txnIdxEmpty",
    ),
}
"""By record name: the name of the Java class, and its fields in the order of its toString."""


def rejection_reason(values: dict[str, Any]) -> str:
    """Return the message with which Java's constructors reject these values; empty if they accept them."""
    start, end = values.get("startOffset", 0), values.get("endOffset", 0)
    snapshot = "segmentId" in values  # its offsets are not validated
    if start < 0 and not snapshot:
        return f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
    if end < start and not snapshot:
        return (
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        )
    if not values.get("segmentLeaderEpochs", [None]):
        return "segmentLeaderEpochs can not be null or empty"
    if not 0 <= values.get("remoteLogSegmentState", 0) < len(SEGMENT_STATES):
        return "state can not be null"
    return "" if 0 <= values.get("remotePartitionDeleteState", 0) < len(DELETE_STATES) else "null"


def remote_text(record: str, values: dict[str, Any]) -> str:
    """Format the record with this name (in Kafka's schema) and these values, which Java's constructors accept."""
    name, fields = FIELDS[record]
    return f"{name}{{{', '.join(f'{field}={_text(field, values)}' for field in fields.split())}}}"


def _text(field: str, values: dict[str, Any]) -> str:
    if field == "remoteLogSegmentId":
        segment = values[field]
        return f"RemoteLogSegmentId{{topicIdPartition={_partition(segment)}, id={segment['id']}}}"
    if field == "topicPartition":
        return _partition(values)
    if field == "segmentLeaderEpochs":
        epochs = {entry["leaderEpoch"]: entry["offset"] for entry in values[field]}
        return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(epochs.items())) + "}"
    if field == "customMetadata":
        custom = values[field]
        return "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"
    if field == "state":
        if "remotePartitionDeleteState" in values:
            return DELETE_STATES[values["remotePartitionDeleteState"]]
        return SEGMENT_STATES[values["remoteLogSegmentState"]]
    if field == "txnIdxEmpty":
        return boolean(values["txnIndexEmpty"])
    return str(values[field])


def _partition(values: dict[str, Any]) -> str:
    partition = values["topicIdPartition"]
    return f"{partition['id']}:{partition['name']}-{partition['partition']}"
