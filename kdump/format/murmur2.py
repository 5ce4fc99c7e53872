"""The partition that Kafka's default partitioner chooses for a key.

Source: org.apache.kafka.common.utils.Utils.murmur2 and toPositive, and
org.apache.kafka.clients.producer.internals.BuiltInPartitioner.partitionForKey. The hash is MurmurHash2."""

from __future__ import annotations

SEED, FACTOR, SHIFT = 0x9747B28C, 0x5BD1E995, 24
MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of a key, as a signed integer."""
    size = len(data)
    hashed = SEED ^ size
    whole = size & ~3
    for position in range(0, whole, 4):
        part = int.from_bytes(data[position : position + 4], "little") * FACTOR & MASK
        part = (part ^ part >> SHIFT) * FACTOR & MASK
        hashed = (hashed * FACTOR & MASK) ^ part
    if whole < size:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * FACTOR & MASK
    hashed = (hashed ^ hashed >> 13) * FACTOR & MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with that number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
