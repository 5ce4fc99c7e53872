"""Records of MirrorMaker's topics: offset syncs, checkpoints, heartbeats. Values of the latter two begin with their
version, of which there is only 0.

Source: org.apache.kafka.connect.mirror: OffsetSync, Checkpoint, Heartbeat (KIP-382)."""

from __future__ import annotations

from kdump.format.schema import MessageSchema


def _message(name: str, fields: str, about: str) -> MessageSchema:
    """Return a message; `fields`: name and type of each."""
    words = fields.split()
    listed = [{"name": name, "type": kind, "versions": "0+"} for name, kind in zip(words[::2], words[1::2])]
    condensed = {"about": about, "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": listed}
    return MessageSchema(name, condensed)


MIRROR_MESSAGES = {
    name: _message(name, fields, about)
    for name, fields, about in (
        ("OffsetSyncKey", "Topic string Partition int32", "partition of the source cluster"),
        (
            "OffsetSyncValue",
            "UpstreamOffset int64 Offset int64",
            "offset in the source cluster, and the one of the same record in the target cluster",
        ),
        (
            "CheckpointKey",
            "Group string Topic string Partition int32",
            "group, topic and partition in the target cluster",
        ),
        (
            "CheckpointValue",
            "Version int16 UpstreamOffset int64 Offset int64 Metadata string",
            "committed offset of the group in the source cluster, and its translation",
        ),
        (
            "HeartbeatKey",
            "SourceClusterAlias string TargetClusterAlias string",
            "clusters between which MirrorMaker runs",
        ),
        ("HeartbeatValue", "Version int16 Timestamp int64", "time at which it ran"),
    )
}
