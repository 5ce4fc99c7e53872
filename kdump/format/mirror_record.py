"""Records of MirrorMaker's topics: offset syncs, checkpoints, heartbeats. Values of the latter two begin with their
version, of which there is only 0.

Source: org.apache.kafka.connect.mirror: OffsetSync, Checkpoint, Heartbeat (KIP-382).
"""

from __future__ import annotations

from kdump.format.schema import MessageSchema


def _message(name: str, fields: str) -> MessageSchema:
    """Return a message; `fields`: name and type of each."""
    words = fields.split()
    listed = [{"name": name, "type": kind, "versions": "0+"} for name, kind in zip(words[::2], words[1::2])]
    return MessageSchema(name, {"type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": listed})


MIRROR_MESSAGES = {
    name: _message(name, fields)
    for name, fields in (
        ("OffsetSyncKey", "Topic string Partition int32"),
        ("OffsetSyncValue", "UpstreamOffset int64 Offset int64"),
        ("CheckpointKey", "Group string Topic string Partition int32"),
        ("CheckpointValue", "Version int16 UpstreamOffset int64 Offset int64 Metadata string"),
        ("HeartbeatKey", "SourceClusterAlias string TargetClusterAlias string"),
        ("HeartbeatValue", "Version int16 Timestamp int64"),
    )
}
