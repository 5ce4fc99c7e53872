"""The three indexes of a segment: entries of one fixed layout each, without header or checksum.

Source: org.apache.kafka.storage.internals.log.OffsetIndex, TimeIndex, and TransactionIndex with AbortedTxn. The first
two are preallocated while their segment is active: zeros after the last entry are not entries."""

from typing import Annotated, NamedTuple

from kdump.format.layout import INT16, INT32, INT64, Field, layout


class IndexEntry(NamedTuple):
    """A position in the .log from which to search for an offset."""

    relativeOffset: Annotated[int, Field(INT32, "offset minus the base offset in the file's name")]
    position: Annotated[int, Field(INT32, "start of a batch in the .log, at or before the batch with this offset")]


class TimeIndexEntry(NamedTuple):
    """The largest timestamp so far, and the offset at which it occurs."""

    timestamp: Annotated[int, Field(INT64, "largest timestamp of the segment's records up to this offset", "epoch ms")]
    relativeOffset: Annotated[int, Field(INT32, "offset minus the base offset in the file's name")]


class TxnIndexEntry(NamedTuple):
    """An aborted transaction: a read_committed consumer skips its records."""

    version: Annotated[int, Field(INT16, "version of the entry")]
    producerId: Annotated[int, Field(INT64, "ID of the producer")]
    firstOffset: Annotated[int, Field(INT64, "first offset of the transaction", "offset")]
    lastOffset: Annotated[int, Field(INT64, "offset of its ABORT marker", "offset")]
    lastStableOffset: Annotated[int, Field(INT64, "the log's last stable offset after that marker", "offset")]


INDEX_ENTRY = layout(IndexEntry, "OffsetIndex")
TIME_INDEX_ENTRY = layout(TimeIndexEntry, "TimeIndex")
TXN_INDEX_ENTRY = layout(TxnIndexEntry, "AbortedTxn")
