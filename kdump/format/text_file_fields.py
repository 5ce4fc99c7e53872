"""Fields of the text files in a log directory, by name; kdump.format.text_files parses the files.

Source: org.apache.kafka.storage.internals.checkpoint.CheckpointFileWithFailureHandler and OffsetCheckpointFile,
LeaderEpochCheckpointFile, PartitionMetadataFile; org.apache.kafka.metadata.properties.MetaPropertiesVersion;
org.apache.kafka.raft.FileQuorumStateStore; CleanShutdownFileHandler.
"""

from __future__ import annotations

from typing import NamedTuple


class TextField(NamedTuple):
    """A word of a line, or a property. `type` is the type that its text must have."""

    name: str
    type: str
    meaning: str


_VERSION = TextField("version", "number", "version of the file format; 0")
_COUNT = TextField("count", "number", "number of entries that follow, one per line")

TEXT_FIELDS: dict[str, tuple[TextField, ...]] = {
    "offset-checkpoint": (
        _VERSION,
        _COUNT,
        TextField("topic", "text", "in each entry: topic name, followed by a space"),
        TextField("partition", "number", "partition number, followed by a space"),
        TextField("offset", "number", "the checkpointed offset of that partition"),
    ),
    "leader-epoch-checkpoint": (
        _VERSION,
        _COUNT,
        TextField("epoch", "number", "in each entry: leader epoch, followed by a space"),
        TextField("startOffset", "number", "first offset of this epoch"),
    ),
    "partition-metadata": (
        TextField("version", "number", "version of the file format; 0"),
        TextField(
            "topic_id", "UUID", "topic ID, in base64; a topic created again under the same name has a different one"
        ),
    ),
    "meta-properties": (
        TextField("version", "number", "1: KRaft; 0: ZooKeeper, with broker.id instead of node.id"),
        TextField("cluster.id", "text", "ID of the cluster; the controllers of another cluster reject the node"),
        TextField("node.id", "number", "ID of the node in the cluster"),
        TextField("broker.id", "number", "ID of the broker, before KRaft"),
        TextField("directory.id", "UUID", "ID of this log directory of the node (KIP-858)"),
    ),
    "quorum-state": (
        TextField("data_version", "number", "0: static voters; 1: the voters are in the log (KIP-853)"),
        TextField("clusterId", "text", "always empty"),
        TextField("leaderId", "number", "ID of the leader; -1: unknown"),
        TextField("leaderEpoch", "number", "latest epoch that the node has seen; it does not vote in an older one"),
        TextField("votedId", "number", "ID of the node that it voted for in that epoch; -1: none"),
        TextField("votedDirectoryId", "UUID", "directory ID of the node that it voted for"),
        TextField("appliedOffset", "number", "always 0: KRaft never sets it"),
        TextField("currentVoters", "list", "the voters, each with a voterId"),
    ),
    "clean-shutdown": (
        TextField("version", "number", "version of the file format; 0"),
        TextField("brokerEpoch", "number", "broker epoch at the clean shutdown (KIP-966)"),
    ),
}
"""Fields by the name of the kind of file (kdump.log.file_kinds)."""
_LINES = "line 1: version; line 2: number of entries; then one entry a line"
TEXT_ABOUT = {
    "offset-checkpoint": f"replication-, recovery-point-, log-start- or cleaner-offset-checkpoint; {_LINES}",
    "leader-epoch-checkpoint": f"leader epochs of a partition, and where they begin; {_LINES}",
    "partition-metadata": "partition.metadata: one property a line",
    "meta-properties": "meta.properties: one property a line",
    "quorum-state": "JSON: what a node knows of the quorum, and its vote",
    "clean-shutdown": ".kafka_cleanshutdown: JSON (empty before 3.7)",
}
"""What each kind of file is, and its lines."""
