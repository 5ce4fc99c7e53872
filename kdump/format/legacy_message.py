"""Messages of format v0 and v1: alone or, if compressed, inside the value of a wrapper message.

Source: https://kafka.apache.org/documentation/#messageset, KIP-31 (relative offsets) and KIP-32 (timestamps), and
org.apache.kafka.common.record.LegacyRecord and AbstractLegacyRecordBatch."""

import struct
from typing import Annotated, NamedTuple

from kdump.format.batch_header import LOG_OVERHEAD, TIMESTAMP_TYPE
from kdump.format.codec_table import CODECS, codec_name
from kdump.format.errors import BATCH_LENGTH_INVALID, MAGIC_UNKNOWN, DecodeError
from kdump.format.layout import BYTES, INT8, INT32, INT64, UINT32, Bits, Field, Layout, layout
from kdump.format.varint import Bytes

NO_TIMESTAMP_TYPE = "NoTimestampType"
COMPRESSION = Bits("compression", 0, 3, CODECS, "compression of all inner messages together")


class MessageV0(NamedTuple):
    """Message format v0, of Kafka 0.8 and 0.9."""

    offset: Annotated[int, Field(INT64, "offset; in a wrapper, that of the last inner message", "offset")]
    messageSize: Annotated[int, Field(INT32, "bytes of the message after this field", "bytes")]
    crc: Annotated[int, Field(UINT32, "CRC-32 of all bytes from magic on", "crc")]
    magic: Annotated[int, Field(INT8, "format version")]
    attributes: Annotated[int, Field(INT8, "flags", "hex", (COMPRESSION,))]
    keySize: Annotated[int, Field(INT32, "bytes of the key; -1: null", "bytes")]
    key: Annotated[bytes | None, Field(BYTES, "key", sized_by="keySize")]
    valueSize: Annotated[int, Field(INT32, "bytes of the value; -1: null", "bytes")]
    value: Annotated[bytes | None, Field(BYTES, "value; in a wrapper, the inner messages", sized_by="valueSize")]


class MessageV1(NamedTuple):
    """Message format v1, of Kafka 0.10: adds a timestamp; inner offsets are relative to the first in the wrapper."""

    offset: Annotated[
        int, Field(INT64, "offset; in a wrapper, that of the last inner message; relative inside it", "offset")
    ]
    messageSize: Annotated[int, Field(INT32, "bytes of the message after this field", "bytes")]
    crc: Annotated[int, Field(UINT32, "CRC-32 of all bytes from magic on", "crc")]
    magic: Annotated[int, Field(INT8, "format version")]
    attributes: Annotated[int, Field(INT8, "flags", "hex", (COMPRESSION, TIMESTAMP_TYPE))]
    timestamp: Annotated[
        int, Field(INT64, "timestamp; in a wrapper, the largest inside, or the append time", "epoch ms")
    ]
    keySize: Annotated[int, Field(INT32, "bytes of the key; -1: null", "bytes")]
    key: Annotated[bytes | None, Field(BYTES, "key", sized_by="keySize")]
    valueSize: Annotated[int, Field(INT32, "bytes of the value; -1: null", "bytes")]
    value: Annotated[bytes | None, Field(BYTES, "value; in a wrapper, the inner messages", sized_by="valueSize")]


MESSAGE_V0 = layout(MessageV0, "LegacyRecord; documentation, section Old Message Format")
MESSAGE_V1 = layout(MessageV1, "LegacyRecord; documentation, section Old Message Format")
MESSAGES: dict[int, Layout[MessageV0] | Layout[MessageV1]] = {0: MESSAGE_V0, 1: MESSAGE_V1}
MIN_MESSAGE_SIZE = 14
"""LegacyRecord.RECORD_OVERHEAD_V0: the smallest size that the broker accepts, for any magic."""
HEADER_SIZES = {magic: layout.size for magic, layout in MESSAGES.items()}
MIN_SIZES = {0: MIN_MESSAGE_SIZE, 1: MIN_MESSAGE_SIZE + 8}
MAGIC_POSITION = MESSAGE_V0.positions["magic"]
CRC_START = MAGIC_POSITION
VALUE_SIZE = struct.Struct(">i")


class MessageHeader(NamedTuple):
    """The fixed fields at the start of a message of either version."""

    offset: int
    messageSize: int
    crc: int
    magic: int
    attributes: int
    timestamp: int | None
    """Epoch ms; None in v0, which has no timestamp."""
    keySize: int

    @property
    def layout(self) -> Layout[MessageV0] | Layout[MessageV1]:
        return MESSAGES[self.magic]

    def packed(self) -> bytes:
        """Return it as it is stored. Raises struct.error for a number that is beyond its field."""
        return self.layout.struct.pack(*(number for number in self if number is not None))

    @property
    def size(self) -> int:
        """Size in bytes of the whole message in the log, as messageSize states."""
        return LOG_OVERHEAD + self.messageSize

    @property
    def headerSize(self) -> int:
        """Number of bytes before the key."""
        return HEADER_SIZES[self.magic]

    @property
    def codec(self) -> int:
        return self.attributes & 0x07

    @property
    def compression(self) -> str:
        return codec_name(self.codec)

    @property
    def timestampType(self) -> str:
        if self.timestamp is None:
            return NO_TIMESTAMP_TYPE
        return TIMESTAMP_TYPE.meanings[TIMESTAMP_TYPE.of(self.attributes)]


class Body(NamedTuple):
    """Positions of key and value, relative to the start of the message; sizes are -1 for null."""

    keyPosition: int
    keySize: int
    valuePosition: int
    valueSize: int


def read_header(data: Bytes, position: int = 0) -> MessageHeader:
    """Read the fixed fields of the message at `position`. Raises DecodeError for too few bytes, or a magic above 1."""
    left = len(data) - position
    magic = data[position + MAGIC_POSITION] if left > MAGIC_POSITION else 0
    message = MESSAGES.get(magic)
    if message is None:
        reason = f"magic {magic} is invalid in a message set"
        raise DecodeError("Message", "magic", position + MAGIC_POSITION, reason, MAGIC_UNKNOWN)
    if left < message.size:
        raise DecodeError(message.name, "offset", position, f"{left} bytes left, {message.size} needed")
    values = message.struct.unpack_from(data, position)
    return MessageHeader._make(values if magic else (*values[:5], None, values[5]))


def size_problem(header: MessageHeader, position: int) -> DecodeError | None:
    """Return why messageSize is invalid for its magic, None if it is not."""
    least = MIN_SIZES[header.magic]
    if header.messageSize >= least:
        return None
    reason = f"messageSize {header.messageSize} is below the minimum, {least}"
    return DecodeError(f"MessageV{header.magic}", "messageSize", position + 8, reason, BATCH_LENGTH_INVALID)


def key_problem(header: MessageHeader, position: int) -> DecodeError | None:
    """Return why keySize is invalid for this messageSize, None if it is not."""
    left = header.size - header.headerSize - VALUE_SIZE.size
    if -1 <= header.keySize <= left:
        return None
    reason = f"keySize {header.keySize}, {left} bytes left"
    return DecodeError(f"MessageV{header.magic}", "keySize", position + header.headerSize - 4, reason)


def body(header: MessageHeader, data: Bytes, position: int = 0) -> Body:
    """Return the body of the message whose first bytes, up to valueSize, are data[position:].

    Raises DecodeError if key and value do not fill messageSize exactly, or `data` ends before valueSize."""
    problem = key_problem(header, position)
    if problem:
        raise problem
    size_at = header.headerSize + max(0, header.keySize)
    return body_of(header, data[position + size_at : position + size_at + VALUE_SIZE.size], position)


def body_of(header: MessageHeader, value_size: Bytes, position: int = 0) -> Body:
    """Return the body of a message at `position` with a valid keySize, from the bytes of its field valueSize. Raises
    DecodeError."""
    size_at = header.headerSize + max(0, header.keySize)
    name = f"MessageV{header.magic}"
    if len(value_size) < VALUE_SIZE.size:
        raise DecodeError(name, "valueSize", position + size_at, "the message ends before the value")
    (size,) = VALUE_SIZE.unpack(value_size)
    value_at = size_at + VALUE_SIZE.size
    if size < -1 or value_at + max(0, size) != header.size:
        reason = f"valueSize {size}, {header.size - value_at} bytes left"
        raise DecodeError(name, "valueSize", position + size_at, reason)
    return Body(header.headerSize, header.keySize, value_at, size)
