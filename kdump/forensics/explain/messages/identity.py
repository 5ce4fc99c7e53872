"""Messages about whose a disk is: cluster, node and directory IDs in meta.properties."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

COMMANDS = ("cat {disk}/meta.properties", "kdump ls {disk}", "kdump restart-plan {disk}")

INCONSISTENT_CLUSTER_ID = Message(
    name="cluster-id-inconsistent",
    texts=(
        "The Cluster ID {clusterId} doesn't match stored clusterId Some({otherClusterId}) in meta.properties. "
        "The broker is trying to join the wrong cluster. Configured zookeeper.connect may be wrong.",
        "Unexpected error INCONSISTENT_CLUSTER_ID in {} response: {}",
        "Invalid cluster.id in: {file}. Expected {clusterId}, but read {otherClusterId}",
        "Expected cluster ID {clusterId}, but got {otherClusterId}",
    ),
    exceptions=("InconsistentClusterIdException", "INCONSISTENT_CLUSTER_ID"),
    source="KafkaServer, KafkaRaftClient, MetaPropertiesEnsemble, QuorumController",
    meaning="The disk, or the other node, belongs to another cluster",
    cause="meta.properties has another cluster.id than the cluster, or than the other directories of this node: a "
    "disk of another broker, directories formatted with another ID, or a wrong quorum or zookeeper.connect",
    impact="The broker exits, or never joins the cluster",
    commands=COMMANDS,
    action="Find out which of the two is wrong. If the disk is the right one, correct the address of the cluster; if "
    "the node was formatted with the wrong ID and has no data yet, format it again",
    never="Do not delete meta.properties and do not edit cluster.id to get it started: the broker would serve another "
    "cluster's records, delete topics that this cluster does not have, or mark them stray",
    codes=("meta-properties-invalid",),
    incident="inconsistent-cluster-id",
    plan=True,
)

NODE_ID_MISMATCH = Message(
    name="node-id-mismatch",
    texts=(
        "Stored node id {otherNodeId} doesn't match previous node id {nodeId} in {file}. If you moved your data, "
        "make sure your configured node id matches. If you intend to create a new node, you should remove all "
        "data in your data directories.",
        "Configured broker.id {nodeId} doesn't match stored broker.id Some({otherNodeId}) in meta.properties. If "
        "you moved your data, make sure your configured broker.id matches. If you intend to create a new broker, "
        "you should remove all data in your data directories (log.dirs).",
        "Configured node.id `{nodeId}` doesn't match stored node.id `{otherNodeId}' in meta.properties. If you "
        "moved your data, make sure your configured controller.id matches. If you intend to create a new broker, "
        "you should remove all data in your data directories (log.dirs).",
    ),
    exceptions=("InconsistentBrokerIdException", "InconsistentNodeIdException"),
    source="MetaPropertiesEnsemble, KafkaServer, KafkaRaftServer",
    meaning="The disk belongs to another node than the one that is configured",
    cause="node.id (broker.id) in server.properties differs from meta.properties: a disk attached to the wrong host, "
    "or a wrong configuration",
    impact="The node exits at startup",
    commands=COMMANDS,
    action="Attach the disk to its own node, or correct node.id",
    never="Do not edit meta.properties: two disks with one node ID, or the replicas of one node under another, lose "
    "records",
    codes=("meta-properties-invalid",),
    plan=True,
)

META_PROPERTIES_UNREADABLE = Message(
    name="meta-properties-unreadable",
    texts=(
        "Error while reading meta.properties file {file}",
        "No readable meta.properties files found.",
        "No `meta.properties` found in {directory} (have you run `kafka-storage.sh` to format the directory?)",
        "Failed to find {}",
        "Unknown meta.properties version number {version}",
        "Unable to read {} as a base-10 number.",
        "Error: node ID not found in {directory}",
        "Error: cluster ID not found in {directory}",
        "Found unexpected metadata location in data directory `{file}` (the configured metadata directory is "
        "{directory}).",
        "Encountered I/O error in metadata log directory {directory}. Cannot continue.",
    ),
    exceptions=("InconsistentBrokerMetadataException",),
    source="MetaPropertiesEnsemble, MetaProperties, BrokerMetadataCheckpoint, KafkaRaftServer",
    meaning="The file meta.properties of a log directory is missing, or cannot be used",
    cause="The directory was never formatted, is the wrong one (an empty mount point), or the file was damaged",
    impact="The node exits at startup",
    commands=COMMANDS,
    action="Check that the file system is mounted. Write the file from the values that the other directories, or the "
    "cluster, have: version, cluster.id, node.id, directory.id",
    never="Do not format the directory again before you have looked into it: kafka-storage.sh gives it a new directory "
    "ID, and the broker is then a new one",
    codes=("meta-properties-invalid",),
    plan=True,
)

DUPLICATE_DIRECTORY_ID = Message(
    name="directory-id-duplicate",
    texts=(
        "Duplicate directory ID Optional[{topicId}] found. It was the ID of {directory}, but also of {otherFile}",
        "Duplicate directory ID {topicId} found. It was the ID of {directory}, but also of {otherFile}",
    ),
    source="MetaPropertiesEnsemble",
    releases=f"3.7 to {LAST}",
    meaning="Two log directories of the node have the same directory.id",
    cause="One of them is a copy of the other, made with its meta.properties",
    impact="The node exits at startup",
    commands=COMMANDS,
    action="Remove the copy from log.dirs. If it is meant as a new, empty log directory, remove its meta.properties "
    "and all partitions",
    never="Do not give the copy a new directory.id with the partitions in it: they would be there twice",
    codes=("meta-properties-invalid", "partition-duplicate"),
    plan=True,
)

TOPIC_ID_INCONSISTENT = Message(
    name="topic-id-inconsistent",
    texts=(
        "Topic ID in memory: {topicId} does not match the topic ID for partition {partition} received: {otherTopicId}.",
        "Tried to assign topic ID {topicId} to log for topic partition {partition},but log already contained "
        "topic ID {otherTopicId}",
        "Tried to assign topic ID {topicId} to log for topic partition {partition}, but log already contained "
        "topic ID {otherTopicId}",
        "Resetting the last seen epoch of partition {partition} to {leaderEpoch} since the associated topicId "
        "changed from {topicId} to {otherTopicId}",
    ),
    exceptions=(
        "InconsistentTopicIdException",
        "INCONSISTENT_TOPIC_ID",
        "UnknownTopicIdException",
        "UNKNOWN_TOPIC_ID",
    ),
    source="ReplicaManager, UnifiedLog, Metadata",
    meaning="The topic was deleted and created again: its name has another topic ID now than the log, or the client, "
    "has",
    cause="Since 2.8 each topic has an ID, which its partitions keep in partition.metadata",
    impact="The replica is not served, or the client refreshes its metadata. The records of the old topic are not "
    "those of the new one",
    commands=("cat {path}/partition.metadata", "kdump cluster {disk} --show topics"),
    action="If it lasts, compare both IDs. A directory of the old topic becomes stray: move it away",
    never="Do not write the new ID into partition.metadata: the broker would serve old records as the new topic's",
    codes=("partition-metadata-invalid",),
    incident="recreated-topic",
    plan=True,
)
