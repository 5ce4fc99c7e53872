"""Records of a v2 batch: variable-length integers throughout, with deltas relative to the batch header.

Source: https://kafka.apache.org/documentation/#record and org.apache.kafka.common.record.DefaultRecord.

The layout below is the declaration; the optimized loop in kdump.core.record_columns reads most records."""

from typing import Annotated, NamedTuple

from kdump.format.layout import ARRAY, BYTES, INT8, VARINT, VARLONG, Field, layout


class RecordHeader(NamedTuple):
    """A header of a record: keys may repeat, values may be null."""

    headerKeySize: Annotated[int, Field(VARINT, "bytes of the header's key", "bytes")]
    headerKey: Annotated[bytes, Field(BYTES, "header key", sized_by="headerKeySize")]
    headerValueSize: Annotated[int, Field(VARINT, "bytes of the header's value; -1: null", "bytes")]
    headerValue: Annotated[bytes | None, Field(BYTES, "header value", sized_by="headerValueSize")]


RECORD_HEADER = layout(RecordHeader, "DefaultRecord; documentation, section Record Header")


class RecordV2(NamedTuple):
    """A v2 record. The specification's keyLength and valueLength are keySize and valueSize, as in kafka-dump-log. A
    VARINT is in zigzag encoding, 7 bits a byte, the lowest first: 04 is 2, a6 01 is 83."""

    length: Annotated[int, Field(VARINT, "bytes of the record after this field", "bytes")]
    attributes: Annotated[int, Field(INT8, "unused", "hex")]
    timestampDelta: Annotated[int, Field(VARLONG, "milliseconds to add to baseTimestamp", "delta ms")]
    offsetDelta: Annotated[int, Field(VARINT, "to add to baseOffset", "delta offset")]
    keySize: Annotated[int, Field(VARINT, "bytes of the key; -1: null", "bytes")]
    key: Annotated[bytes | None, Field(BYTES, "key", sized_by="keySize")]
    valueSize: Annotated[int, Field(VARINT, "bytes of the value; -1: null (a tombstone)", "bytes")]
    value: Annotated[bytes | None, Field(BYTES, "value", sized_by="valueSize")]
    headersCount: Annotated[int, Field(VARINT, "number of headers that follow")]
    headers: Annotated[tuple[RecordHeader, ...], Field(ARRAY, "headers", sized_by="headersCount", of=RECORD_HEADER)]


RECORD = layout(RecordV2, "DefaultRecord; documentation, section Record")
MIN_RECORD_SIZE = 7
"""Bytes of a record with a null key, a null value and no headers: length, attributes, and five one-byte varints."""
