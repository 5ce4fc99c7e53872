"""The header of a record batch, message format v2: 61 bytes, followed by the records, compressed or not.

Source: https://kafka.apache.org/documentation/#recordbatch, KIP-98, KIP-534 (delete horizon), and
org.apache.kafka.common.record.DefaultRecordBatch."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.format.codec_table import CODECS, MAX_EXPANSION, codec_name
from kdump.format.layout import INT8, INT16, INT32, INT64, UINT32, Bits, Field, Layout, layout
from kdump.format.numbers import int64

LOG_OVERHEAD = 12
"""Bytes of baseOffset and batchLength (v2), or offset and messageSize (v0, v1), which the length does not include."""

NO_SEQUENCE = -1
MAX_SEQUENCE = 2147483647

COMPRESSION = Bits("compression", 0, 3, CODECS, "compression of all records together")
TIMESTAMP_TYPE = Bits(
    "timestampType",
    3,
    1,
    {0: "CreateTime", 1: "LogAppendTime"},
    "0: the producer set the timestamps; 1: all records have the time at which the broker appended them",
)
TRANSACTIONAL = Bits(
    "isTransactional",
    4,
    1,
    {1: "transactional"},
    "1: part of a transaction; a read_committed consumer receives it only after the producer's COMMIT marker",
)
CONTROL = Bits(
    "isControlBatch",
    5,
    1,
    {1: "control"},
    "1: contains no data, but a control record of a broker or controller; applications never receive it",
)
DELETE_HORIZON = Bits(
    "hasDeleteHorizonMs",
    6,
    1,
    {1: "delete horizon"},
    "1: from baseTimestamp on, the log cleaner may remove the tombstones and markers in it",
)
BATCH_ATTRIBUTES = (COMPRESSION, TIMESTAMP_TYPE, TRANSACTIONAL, CONTROL, DELETE_HORIZON)
KNOWN_ATTRIBUTES = sum(bits.mask for bits in BATCH_ATTRIBUTES)
"""The attributes that Kafka has given a meaning."""
_CONTROL = CONTROL.mask
"""Asked for each record."""


class BatchHeader(NamedTuple):
    """A v2 batch header of 13 fields, named as in the specification; Kafka's sources call the last one recordsCount."""

    baseOffset: Annotated[int, Field(INT64, "offset of the first record, even if compaction removed it", "offset")]
    batchLength: Annotated[int, Field(INT32, "bytes of the batch after this field", "bytes")]
    partitionLeaderEpoch: Annotated[int, Field(INT32, "epoch of the leader that appended the batch; -1: none")]
    magic: Annotated[int, Field(INT8, "format version")]
    crc: Annotated[int, Field(UINT32, "CRC-32C of all bytes from attributes on", "crc")]
    attributes: Annotated[int, Field(INT16, "flags", "hex", BATCH_ATTRIBUTES)]
    lastOffsetDelta: Annotated[int, Field(INT32, "last offset minus baseOffset; compaction keeps it")]
    baseTimestamp: Annotated[
        int, Field(INT64, "base of the timestamp deltas; the delete horizon if bit 6 is set", "epoch ms")
    ]
    maxTimestamp: Annotated[
        int, Field(INT64, "largest timestamp of a record; the append time if LogAppendTime", "epoch ms")
    ]
    producerId: Annotated[
        int, Field(INT64, "ID of the idempotent producer that wrote it, or whose transaction it ends; -1: none")
    ]
    producerEpoch: Annotated[int, Field(INT16, "epoch of that producer; -1: none")]
    baseSequence: Annotated[int, Field(INT32, "sequence number of the first record; -1: none")]
    recordCount: Annotated[int, Field(INT32, "number of records; 0 if compaction removed all")]

    @property
    def layout(self) -> Layout[BatchHeader]:
        return BATCH_HEADER

    @property
    def headerSize(self) -> int:
        """Number of bytes before the records."""
        return self.layout.size

    def packed(self) -> bytes:
        """Return it as it is stored. Raises struct.error for a number that is beyond its field."""
        return self.layout.struct.pack(*self)

    @property
    def size(self) -> int:
        """Bytes of the whole batch in the log, according to batchLength."""
        return LOG_OVERHEAD + self.batchLength

    @property
    def lastOffset(self) -> int:
        """Last offset of the batch as a Java long: a sum above 2^63 - 1 wraps around and is negative."""
        return int64(self.baseOffset + self.lastOffsetDelta)

    @property
    def lastSequence(self) -> int:
        """Sequence number of the last record, wrapping to 0 after 2147483647; -1 if the batch has none."""
        return sequence(self.baseSequence, self.lastOffsetDelta)

    @property
    def codec(self) -> int:
        return self.attributes & 0x07

    @property
    def compression(self) -> str:
        return codec_name(self.codec)

    @property
    def timestampType(self) -> str:
        return TIMESTAMP_TYPE.meanings[TIMESTAMP_TYPE.of(self.attributes)]

    @property
    def isTransactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL.mask)

    @property
    def isControlBatch(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def hasDeleteHorizonMs(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON.mask)

    @property
    def deleteHorizonMs(self) -> int | None:
        """Epoch ms from which the cleaner may remove tombstones and markers in the batch (KIP-534); None if not set."""
        return self.baseTimestamp if self.hasDeleteHorizonMs else None

    @property
    def possible_records(self) -> int:
        """recordCount as a part of a sum: 0 if it is negative, or more than the batch has room for."""
        return self.recordCount if 0 <= self.recordCount <= max_records(self.size - self.headerSize, self.codec) else 0


BATCH_HEADER = layout(BatchHeader, "DefaultRecordBatch; documentation, section Record Batch")
MIN_BATCH_LENGTH = BATCH_HEADER.size - LOG_OVERHEAD
MAGIC_POSITION = BATCH_HEADER.positions["magic"]
CRC_START = BATCH_HEADER.positions["attributes"]
MIN_RECORD_SIZE = 7
"""Bytes of the smallest record: one each for length, attributes, timestamp delta, offset delta, the sizes of the null
key and the null value, and the number of headers (DefaultRecord.writeTo)."""


def max_records(size: int, codec: int) -> int:
    """Return the number of records for which a payload of `size` bytes has room."""
    expansion = MAX_EXPANSION[codec] if codec < len(MAX_EXPANSION) else max(MAX_EXPANSION)
    return size * expansion // MIN_RECORD_SIZE


def sequence(base: int, delta: int) -> int:
    """Return the sequence number `delta` after `base`, wrapping to 0; -1 if `base` is negative.

    Source: DefaultRecordBatch.incrementSequence."""
    if base < 0:
        return NO_SEQUENCE
    if base > MAX_SEQUENCE - delta:
        return delta - (MAX_SEQUENCE - base) - 1
    return base + delta
