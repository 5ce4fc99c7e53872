"""Sends one Produce request with the bytes of a batch unchanged. Kafka's producers send no invalid batches, and cannot
be given a producer ID and sequence."""

from __future__ import annotations

import socket
import struct

PRODUCE, VERSION = 0, 7
"""Newest version of the request without compact types. Source: ProduceRequest.json, KIP-98."""

ERRORS = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    45: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    46: "DUPLICATE_SEQUENCE_NUMBER",
    47: "INVALID_PRODUCER_EPOCH",
    48: "INVALID_TXN_STATE",
    56: "KAFKA_STORAGE_ERROR",
    59: "UNKNOWN_PRODUCER_ID",
    87: "INVALID_RECORD",
}
"""Errors that a broker is likely to return here. Source: org.apache.kafka.common.protocol.Errors."""


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def produce(port: int, partition: str, batch: bytes, seconds: float = 10) -> tuple[str, int]:
    """Send a v2 batch to `partition` (topic-number). Returns the name of the broker's error, NONE if it accepted the
    batch, and the base offset assigned to the batch. Raises OSError if the broker does not answer."""
    topic, _, number = partition.rpartition("-")
    request = struct.pack(">hhi", PRODUCE, VERSION, 1) + text("trial") + text(None) + struct.pack(">hi", 1, 10_000)
    request += struct.pack(">i", 1) + text(topic) + struct.pack(">iii", 1, int(number), len(batch)) + batch
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            (size,) = struct.unpack(">i", exactly(answer.read(4), 4))
            body = exactly(answer.read(size), size)
    # Correlation ID, one topic with its name, one partition with its number; then the error code and the base offset.
    error, offset = struct.unpack_from(">hq", body, 4 + 4 + 2 + len(topic) + 4 + 4)
    return ERRORS.get(error, str(error)), offset


def exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
    return data
