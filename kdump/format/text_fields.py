"""Fields of the text files in a log directory, by name; kdump.format.text parses the files.

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


_VERSION = TextField("version", "number", "of the file's form; 0")
_COUNT = TextField("count", "number", "entries that follow, one a line")

TEXT_FIELDS: dict[str, tuple[TextField, ...]] = {
    "offset-checkpoint": (
        _VERSION,
        _COUNT,
        TextField("topic", "text", "in each entry: the topic, then a space"),
        TextField("partition", "number", "the number of the partition, then a space"),
        TextField("offset", "number", "what this checkpoint says of that partition"),
    ),
    "leader-epoch-checkpoint": (
        _VERSION,
        _COUNT,
        TextField("epoch", "number", "in each entry: the epoch of a leader, then a space"),
        TextField("startOffset", "number", "the first offset that this leader appended"),
    ),
    "partition-metadata": (
        TextField("version", "number", "of the file's form; 0"),
        TextField(
            "topic_id", "UUID", "which topic this is, in base64: a topic created again under its name has another"
        ),
    ),
    "meta-properties": (
        TextField("version", "number", "1: KRaft; 0: ZooKeeper, with broker.id in the place of node.id"),
        TextField("cluster.id", "text", "which cluster the disk belongs to: a node of another does not start on it"),
        TextField("node.id", "number", "which node of it"),
        TextField("broker.id", "number", "the same, before KRaft"),
        TextField("directory.id", "UUID", "which log directory of the node (KIP-858)"),
    ),
    "quorum-state": (
        TextField("data_version", "number", "0: static voters; 1: voters stand in the log (KIP-853)"),
        TextField("clusterId", "text", "empty: it is not written"),
        TextField("leaderId", "number", "the node that this one follows, or is; -1: it knows none"),
        TextField("leaderEpoch", "number", "the newest epoch that it has seen: it votes in no older one"),
        TextField("votedId", "number", "whom it has voted for in that epoch; -1: for nobody"),
        TextField("votedDirectoryId", "UUID", "and which disk of that one"),
        TextField("appliedOffset", "number", "not used"),
        TextField("currentVoters", "list", "the voters, each a voterId"),
    ),
    "clean-shutdown": (
        TextField("version", "number", "of the file's form; 0"),
        TextField("brokerEpoch", "number", "under which the broker was registered when it stopped (KIP-966)"),
    ),
}
"""Fields by the name of the kind of file (kdump.log.kinds)."""
