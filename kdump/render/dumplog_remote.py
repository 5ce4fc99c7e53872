"""Formats records of __remote_log_metadata like Java's toString, which is what kafka-dump-log prints.

Source: org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate and
RemotePartitionDeleteMetadata, org.apache.kafka.server.log.remote.metadata.storage.RemoteLogSegmentMetadataSnapshot.
"""

from __future__ import annotations

from typing import Any

from kdump.render.java import boolean

SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
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
