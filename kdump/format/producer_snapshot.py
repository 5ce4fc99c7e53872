"""The producer snapshot (.snapshot): the state of each producer at the offset in the file's name.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager and the schema ProducerSnapshot. The header and the
entries are declared as layouts for speed, because a snapshot may contain a million producers; a test compares them with
the schema."""

from typing import Annotated, NamedTuple

from kdump.format.kafka_release import newer_text
from kdump.format.layout import INT16, INT32, INT64, UINT32, Field, layout

VERSIONS = (0, 1)
"""Kafka reads and writes version 1; version 0, from a development version, has the same fields."""


class SnapshotHeader(NamedTuple):
    """The header of a producer snapshot."""

    version: Annotated[int, Field(INT16, "version of the snapshot")]
    crc: Annotated[int, Field(UINT32, "CRC-32C of all bytes after this field", "crc")]
    producerEntries: Annotated[int, Field(INT32, "number of producers that follow")]


class ProducerEntry(NamedTuple):
    """The state of one producer."""

    producerId: Annotated[int, Field(INT64, "ID of the producer")]
    epoch: Annotated[int, Field(INT16, "its current epoch")]
    lastSequence: Annotated[int, Field(INT32, "last sequence number written; -1: none")]
    lastOffset: Annotated[int, Field(INT64, "offset of its last data record; -1: none", "offset")]
    offsetDelta: Annotated[int, Field(INT32, "last offset minus base offset of its last batch")]
    timestamp: Annotated[int, Field(INT64, "largest timestamp of its last batch", "epoch ms")]
    coordinatorEpoch: Annotated[
        int, Field(INT32, "epoch of the transaction coordinator that wrote its last marker; -1: none")
    ]
    currentTxnFirstOffset: Annotated[int, Field(INT64, "first offset of its open transaction; -1: none", "offset")]


def newer_snapshot(version: int, what: str = "version") -> str:
    """Return that a snapshot has a version that only a release newer than the newest known one writes; empty if it has
    another one."""
    return newer_text(what, version, max(VERSIONS)) if version > max(VERSIONS) else ""


SNAPSHOT_HEADER = layout(SnapshotHeader, "ProducerStateManager; schema ProducerSnapshot")
PRODUCER_ENTRY = layout(ProducerEntry, "ProducerStateManager; schema ProducerSnapshot")
CRC_START = SNAPSHOT_HEADER.positions["producerEntries"]
