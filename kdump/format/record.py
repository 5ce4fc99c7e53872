"""Records of a v2 batch: variable-length integers throughout, deltas to the batch header.

Source: https://kafka.apache.org/documentation/#record and org.apache.kafka.common.record.DefaultRecord.

The layout below is the declaration. `decode` is its one permitted restatement, a tight loop that fills columns and
checks every bound; a test holds the two together, on corrupt bytes too.
"""

from typing import Annotated, NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.layout import ARRAY, BYTES, INT8, VARINT, VARLONG, Field, layout
from kdump.format.varint import Bytes, read_varint, read_varlong


class RecordHeader(NamedTuple):
    """A header of a record: keys may repeat, values may be null."""

    headerKeySize: Annotated[int, Field(VARINT, "bytes of the header's key", "bytes")]
    headerKey: Annotated[bytes, Field(BYTES, "header key", sized_by="headerKeySize")]
    headerValueSize: Annotated[int, Field(VARINT, "bytes of the header's value; -1: null", "bytes")]
    headerValue: Annotated[bytes | None, Field(BYTES, "header value", sized_by="headerValueSize")]


RECORD_HEADER = layout(RecordHeader, "DefaultRecord; documentation, section Record Header")


class RecordV2(NamedTuple):
    """The specification says length, keyLength and valueLength; JSON has kafka-dump-log's keySize and valueSize."""

    length: Annotated[int, Field(VARINT, "bytes of the record behind this field", "bytes")]
    attributes: Annotated[int, Field(INT8, "unused", "hex")]
    timestampDelta: Annotated[int, Field(VARLONG, "ms to add to baseTimestamp", "delta ms")]
    offsetDelta: Annotated[int, Field(VARINT, "to add to baseOffset", "delta offset")]
    keySize: Annotated[int, Field(VARINT, "bytes of the key; -1: null", "bytes")]
    key: Annotated[bytes | None, Field(BYTES, "key", sized_by="keySize")]
    valueSize: Annotated[int, Field(VARINT, "bytes of the value; -1: null (a tombstone)", "bytes")]
    value: Annotated[bytes | None, Field(BYTES, "value", sized_by="valueSize")]
    headersCount: Annotated[int, Field(VARINT, "headers that follow")]
    headers: Annotated[tuple[RecordHeader, ...], Field(ARRAY, "headers", sized_by="headersCount", of=RECORD_HEADER)]


RECORD = layout(RecordV2, "DefaultRecord; documentation, section Record")
MIN_RECORD_SIZE = 7
"""Bytes of a record with null key, null value and no headers: length, attributes, and five one-byte varints."""


class Columns:
    """Records of one stretch of decompressed payload, a column a field; starts index into `data`.

    `key_size` and `value_size` are -1 for null. `start` and `end` bound a record, its length field included.
    """

    __slots__ = (
        "attributes",
        "data",
        "end",
        "headers_count",
        "headers_start",
        "key_size",
        "key_start",
        "offset_delta",
        "start",
        "timestamp_delta",
        "value_size",
        "value_start",
    )

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.start: list[int] = []
        self.end: list[int] = []
        self.attributes: list[int] = []
        self.timestamp_delta: list[int] = []
        self.offset_delta: list[int] = []
        self.key_start: list[int] = []
        self.key_size: list[int] = []
        self.value_start: list[int] = []
        self.value_size: list[int] = []
        self.headers_start: list[int] = []
        self.headers_count: list[int] = []

    def __len__(self) -> int:
        return len(self.end)


def decode(columns: Columns, position: int, end: int, count: int, final: bool) -> int:
    """Append up to `count` records of columns.data[position:end] to the columns; the position behind the last.

    Stops before a record that runs past `end` when more bytes will come (`final` is false). Raises DecodeError at the
    first field that is wrong; the records before it stay in the columns.
    """
    data = columns.data
    while count > 0:
        start = position
        # The length field itself may be cut by the end of the chunk.
        if not final and end - position < 5 and not _whole_varint(data, position, end):
            return start
        length, position = read_varint(data, position, end, "Record", "length")
        stop = position + length
        if stop > end or length < 0:
            if length < 0:
                raise DecodeError("Record", "length", start, f"length {length} is negative")
            if final:
                raise past_end(start, length, end - position)
            return start
        if length == 0:
            raise DecodeError("Record", "attributes", position, "length 0 leaves no room for a record")
        attributes = data[position]
        timestamp_delta, position = read_varlong(data, position + 1, stop, "Record", "timestampDelta")
        offset_delta, position = read_varint(data, position, stop, "Record", "offsetDelta")
        size_at = position
        key_size, key_start = read_varint(data, position, stop, "Record", "keySize")
        position = key_start + key_size if key_size > 0 else key_start
        if key_size < -1 or position > stop:
            raise DecodeError("Record", "keySize", size_at, f"keySize {key_size}, {stop - key_start} bytes left")
        size_at = position
        value_size, value_start = read_varint(data, position, stop, "Record", "valueSize")
        position = value_start + value_size if value_size > 0 else value_start
        if value_size < -1 or position > stop:
            reason = f"valueSize {value_size}, {stop - value_start} bytes left"
            raise DecodeError("Record", "valueSize", size_at, reason)
        size_at = position
        headers_count, headers_start = read_varint(data, position, stop, "Record", "headersCount")
        position = headers_start
        if headers_count:
            # A header takes at least two bytes; a larger count is a lie that would cost time.
            if headers_count < 0 or headers_count * 2 > stop - position:
                reason = f"headersCount {headers_count}, {stop - position} bytes left"
                raise DecodeError("Record", "headersCount", size_at, reason)
            for _ in range(headers_count):
                position = _skip_header(data, position, stop)
        if position != stop:
            reason = f"{stop - position} bytes are left over in the record"
            raise DecodeError("Record", "length", start, f"length {length}: {reason}")
        columns.start.append(start)
        columns.end.append(stop)
        columns.attributes.append(attributes - 256 if attributes > 127 else attributes)
        columns.timestamp_delta.append(timestamp_delta)
        columns.offset_delta.append(offset_delta)
        columns.key_start.append(key_start)
        columns.key_size.append(key_size)
        columns.value_start.append(value_start)
        columns.value_size.append(value_size)
        columns.headers_start.append(headers_start)
        columns.headers_count.append(headers_count)
        count -= 1
    return position


def past_end(position: int, length: int, left: int) -> DecodeError:
    """A record whose length claims more than the `left` bytes behind it."""
    return DecodeError("Record", "length", position, f"length {length} runs past the end, {left} bytes left")


def _whole_varint(data: Bytes, position: int, end: int) -> bool:
    return any(data[i] < 0x80 for i in range(position, end))


def _skip_header(data: Bytes, position: int, stop: int) -> int:
    start = position
    size, position = read_varint(data, position, stop, "RecordHeader", "headerKeySize")
    if size < 0 or position + size > stop:
        # DefaultRecord.readHeaders: a null header key is an error, unlike a null header value.
        code = "header-key-invalid" if size == -1 else "record-malformed"
        reason = f"headerKeySize {size}, {stop - position} bytes left"
        raise DecodeError("RecordHeader", "headerKeySize", start, reason, code)
    start = position + size
    size, position = read_varint(data, start, stop, "RecordHeader", "headerValueSize")
    if size < -1 or position + size > stop:
        reason = f"headerValueSize {size}, {stop - position} bytes left"
        raise DecodeError("RecordHeader", "headerValueSize", start, reason)
    return position + size if size > 0 else position


def headers(data: Bytes, position: int, count: int, end: int) -> list[tuple[bytes, bytes | None]]:
    """The headers that `decode` has checked: keys and values as they stand."""
    found: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        size, position = read_varint(data, position, end, "RecordHeader", "headerKeySize")
        key = bytes(data[position : position + size])
        size, position = read_varint(data, position + size, end, "RecordHeader", "headerValueSize")
        value = None if size < 0 else bytes(data[position : position + size])
        position += max(0, size)
        found.append((key, value))
    return found
