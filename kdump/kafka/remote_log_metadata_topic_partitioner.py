"""The partition of __remote_log_metadata that has the records of a tiered partition.

Source: org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner."""

from __future__ import annotations

import base64
import struct

from kdump.format.murmur2 import partition_of

HALVES = struct.Struct(">QQ")


def metadata_partition(topic_id: str, partition: int, partitions: int) -> int:
    """Return the number of the partition, of so many `partitions`. Raises ValueError if it is not a topic ID."""
    data = base64.urlsafe_b64decode(f"{topic_id}==")
    if len(data) != HALVES.size:
        raise ValueError(topic_id)
    most, least = HALVES.unpack(data)
    number = 1  # Objects.hash of the two halves and the partition
    for part in (least ^ least >> 32, most ^ most >> 32, partition):
        number = (31 * number + part) & 0xFFFFFFFF
    return partition_of(number.to_bytes(4, "big"), partitions)
