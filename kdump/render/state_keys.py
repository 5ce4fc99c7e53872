"""The JSON objects of `kdump groups` and `kdump cluster`: every key, with its unit, declared once."""

from __future__ import annotations

from typing import Any

from kdump.answer import Key

TEXT, NUMBER, FLAG, LIST = "string", "number", "boolean", "array"
NULL_TEXT, NULL_NUMBER = "string or null", "number or null"
OFFSET, TIME, EPOCH = "offset", "epoch ms", ""

GROUP_ID = Key("groupId", TEXT, "", "the group")
TOPIC_NAME = Key("topic", TEXT, "", "its name; its id where the name is not known")
PARTITION = Key("partition", NUMBER, "", "of the topic")
TOPIC_ID = Key("topicId", NULL_TEXT, "", "id of the topic, as Kafka prints it")
ENDS = (
    Key("logStartOffset", NULL_NUMBER, OFFSET, "first offset of the partition on the same disk; null: it is not there"),
    Key("logEndOffset", NULL_NUMBER, OFFSET, "behind its last sound batch on that disk"),
    Key("highWatermark", NULL_NUMBER, OFFSET, "as replication-offset-checkpoint has it, written down every 5 s"),
)
RECORD_OFFSET = Key("recordOffset", NULL_NUMBER, OFFSET, "of the record that says so, in the coordinator's log")
ENDPOINTS = Key("endPoints", LIST, "", "of {name, host, port, securityProtocol}")
FEATURES = Key("features", LIST, "", "of {name, minSupportedVersion, maxSupportedVersion}: what the node knows")
ASSIGNED = "of {topic, partitions}"

GROUP_KEYS = (
    GROUP_ID,
    Key("groupType", TEXT, "", "classic, consumer, share or streams"),
    Key(
        "state",
        TEXT,
        "",
        "that in which a coordinator would load it: Empty, Stable, Assigning, Reconciling, NotReady, Dead",
    ),
    Key("epoch", NUMBER, EPOCH, "epoch of the group; the generation of a classic one; -1: none"),
    Key("protocolType", NULL_TEXT, "", "of a classic group: consumer, connect …"),
    Key("protocol", NULL_TEXT, "", "of a classic group: the assignor it agreed on"),
    Key("leader", NULL_TEXT, "", "of a classic group: id of the member that assigns"),
    Key("stateTimestamp", NULL_NUMBER, TIME, "of a classic group: when it got into the state"),
    Key("assignmentEpoch", NUMBER, EPOCH, "group epoch that the target assignment was made for; -1: none"),
    Key("assignmentTimestamp", NULL_NUMBER, TIME, "when the target assignment was made"),
    Key("topologyEpoch", NULL_NUMBER, EPOCH, "of a streams group"),
    Key("validatedTopologyEpoch", NULL_NUMBER, EPOCH, "of a streams group: the topology whose topics are there"),
    Key("subtopologies", LIST, "", "of a streams group: their ids"),
    Key("regexes", "object", "", "what regular expressions of the members matched: topics by expression"),
    Key("shareTopics", "object", "", "of a share group: initializing, initialized or deleting, by topic"),
    Key("isSimple", FLAG, "", "offsets without a group: a client that commits, and never joined"),
    Key("members", NUMBER, "", "how many"),
    Key("partitions", NUMBER, "", "in which it has an offset, or a share group state"),
    Key("pending", NUMBER, "", "offsets in transactions that have not ended"),
    Key("lag", NULL_NUMBER, "records", "of all partitions whose end is known; null: of none"),
    Key("lagUnknown", NUMBER, "", "partitions whose end is not known"),
    Key("remarks", NUMBER, "", "partitions whose offset has something wrong"),
    Key("lastCommit", NULL_NUMBER, TIME, "the newest commitTimestamp"),
    Key("offsetsPartition", NUMBER, "", "partition of __consumer_offsets that has the group"),
)
MEMBER_KEYS = (
    GROUP_ID,
    Key("memberId", TEXT, "", "its id"),
    Key("instanceId", NULL_TEXT, "", "group.instance.id of a static member"),
    Key("rackId", NULL_TEXT, "", "client.rack"),
    Key("clientId", NULL_TEXT, "", "client.id"),
    Key("clientHost", NULL_TEXT, "", "where it connects from"),
    Key("memberEpoch", NULL_NUMBER, EPOCH, "assignment epoch that it has come to; -1: it has left; null: classic"),
    Key("previousMemberEpoch", NULL_NUMBER, EPOCH, "the one before"),
    Key(
        "state", NULL_TEXT, "", "STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNREVOKED_TASKS, UNRELEASED_TASKS"
    ),
    Key("subscribedTopicNames", LIST, "", "topics that it asks for"),
    Key("subscribedTopicRegex", NULL_TEXT, "", "regular expression that it asks by"),
    Key("serverAssignor", NULL_TEXT, "", "assignor that it asks for"),
    Key("rebalanceTimeoutMs", NULL_NUMBER, "ms", "rebalance timeout"),
    Key("sessionTimeoutMs", NULL_NUMBER, "ms", "session timeout of a classic member"),
    Key("assigned", LIST, "", ASSIGNED + ": what it has; in a streams group active tasks, by subtopology"),
    Key("revoking", LIST, "", ASSIGNED + ": what it has yet to give up"),
    Key("target", LIST, "", ASSIGNED + ": what it shall have"),
    Key("standby", LIST, "", ASSIGNED + ": standby tasks"),
    Key("warmup", LIST, "", ASSIGNED + ": warmup tasks"),
    Key("processId", NULL_TEXT, "", "of a streams member"),
    Key("topologyEpoch", NULL_NUMBER, EPOCH, "of a streams member"),
)
GROUP_OFFSET_KEYS = (
    GROUP_ID,
    TOPIC_NAME,
    PARTITION,
    Key("offset", NULL_NUMBER, OFFSET, "committed: the next record to read; null: only a transaction has one yet"),
    Key("leaderEpoch", NULL_NUMBER, EPOCH, "of the last record that was read"),
    Key("metadata", NULL_TEXT, "", "what the client put beside the offset"),
    Key("commitTimestamp", NULL_NUMBER, TIME, "when it was committed"),
    Key("expireTimestamp", NULL_NUMBER, TIME, "when it expires, where a client of before Kafka 2.1 said so"),
    TOPIC_ID,
    Key("pending", LIST, "", "of {producerId, offset, recordOffset}: in transactions that have not ended"),
    *ENDS,
    Key(
        "lag",
        NULL_NUMBER,
        "records",
        "logEndOffset - offset, never below 0; null: not known, or as of an earlier moment",
    ),
    Key("remark", TEXT, "", "what is wrong with the offset; empty: nothing"),
    RECORD_OFFSET,
)
GROUP_SHARE_KEYS = (
    GROUP_ID,
    TOPIC_NAME,
    PARTITION,
    Key("startOffset", NUMBER, OFFSET, "all below is done with; -1: not begun"),
    Key("deliveryCompleteCount", NUMBER, "records", "done with above startOffset; -1: not said"),
    Key("stateEpoch", NUMBER, EPOCH, "epoch of the state; -1: not said"),
    Key("leaderEpoch", NUMBER, EPOCH, "of the partition's leader that wrote it"),
    TOPIC_ID,
    *ENDS,
    Key("lag", NULL_NUMBER, "records", "logEndOffset - startOffset - deliveryCompleteCount; null: not known"),
    Key("remark", TEXT, "", "what is wrong with the offset; empty: nothing"),
    RECORD_OFFSET,
)
CHANGE_KEYS = (
    Key("source", TEXT, "", "the log it stands in"),
    Key("offset", NUMBER, OFFSET, "of the record"),
    Key("timestamp", NULL_NUMBER, TIME, "of the record"),
    Key("record", TEXT, "", "its type: Kafka's name of its message, or COMMIT and ABORT for markers"),
    Key("groupId", NULL_TEXT, "", "the group; null in the cluster's metadata"),
    Key("entity", TEXT, "", "what it changed: offset, group, member, shareState; topic, partition, broker, config …"),
    Key("name", TEXT, "", "which"),
    Key("action", TEXT, "", "created, changed, removed; pending or aborted in a transaction"),
    Key("fields", LIST, "", "of {name, old, new}: what differs, and what a new or removed one says"),
)
CLUSTER_KEYS = (
    Key("source", TEXT, "", "the directory or file that was read"),
    Key("clusterId", NULL_TEXT, "", "from meta.properties beside it"),
    Key("nodeId", NULL_TEXT, "", "the node whose disk it is, from meta.properties"),
    Key("metadataVersion", NULL_TEXT, "", "the release that metadata.version stands for"),
    Key("leaderId", NULL_NUMBER, "", "who became leader of the quorum last"),
    Key("leaderEpoch", NULL_NUMBER, EPOCH, "its epoch"),
    Key("kraftVersion", NULL_NUMBER, "", "kraft.version; null: never written, which means 0"),
    Key("zkMigrationState", NULL_TEXT, "", "of the migration from ZooKeeper"),
    Key("snapshot", NULL_NUMBER, OFFSET, "end of the snapshot that the reading began with; null: none"),
    Key("endOffset", NUMBER, OFFSET, "behind the last record that was read"),
    Key("endTimestamp", NULL_NUMBER, TIME, "of that record"),
    Key(
        "committedOffset",
        NULL_NUMBER,
        OFFSET,
        "all below is committed, by the newest snapshot; what is above may be undone",
    ),
    Key("brokers", NUMBER, "", "registered brokers"),
    Key("fencedBrokers", NUMBER, "", "those of them that are fenced"),
    Key("topics", NUMBER, "", "how many"),
    Key("partitions", NUMBER, "", "how many"),
    Key("offlinePartitions", NUMBER, "", "those without a leader"),
    Key("underReplicatedPartitions", NUMBER, "", "those with fewer in-sync replicas than replicas"),
    Key("underMinIsrPartitions", NUMBER, "", "those with fewer in-sync replicas than min.insync.replicas"),
    Key("reassigningPartitions", NUMBER, "", "those with replicas being added or removed"),
    Key("configs", NUMBER, "", "dynamic configs"),
    Key("quotas", NUMBER, "", "client quotas"),
    Key("acls", NUMBER, "", "how many"),
    Key("scramCredentials", NUMBER, "", "how many"),
    Key("delegationTokens", NUMBER, "", "how many"),
    Key("nextProducerId", NULL_NUMBER, "", "where the next block of producer ids begins"),
)
BROKER_KEYS = (
    Key("brokerId", NUMBER, "", "node.id"),
    Key("state", TEXT, "", "active, fenced (serves nobody), or shutting down"),
    Key("rack", NULL_TEXT, "", "broker.rack"),
    Key("brokerEpoch", NUMBER, EPOCH, "offset of its registration"),
    Key("incarnationId", TEXT, "", "of its process"),
    Key("fenced", FLAG, "", "as registered"),
    Key("inControlledShutdown", FLAG, "", "as registered"),
    Key("leaders", NUMBER, "", "partitions that it leads"),
    Key("replicas", NUMBER, "", "partitions that it has a replica of"),
    Key("outOfSync", NUMBER, "", "those of them that it is not in sync with"),
    ENDPOINTS,
    Key("logDirs", LIST, "", "ids of its log directories"),
    Key("cordonedLogDirs", "array or null", "", "those that take no new replicas"),
    FEATURES,
    Key("isMigratingZkBroker", FLAG, "", "whether it was one of ZooKeeper's"),
)
CONTROLLER_KEYS = (
    Key("controllerId", NUMBER, "", "node.id"),
    Key("incarnationId", TEXT, "", "of its process"),
    ENDPOINTS,
    FEATURES,
    Key("zkMigrationReady", FLAG, "", "whether it can migrate from ZooKeeper"),
)
VOTER_KEYS = (
    Key("voterId", NUMBER, "", "node.id"),
    Key("isLeader", FLAG, "", "whether it became leader last"),
    Key("voterDirectoryId", NULL_TEXT, "", "id of its metadata directory; null: voters are static"),
    Key("endpoints", LIST, "", "of {name, host, port, securityProtocol}"),
)
FEATURE_KEYS = (
    Key("name", TEXT, "", "of the feature"),
    Key("featureLevel", NUMBER, "", "finalized level"),
    Key("release", NULL_TEXT, "", "what the level of metadata.version is called"),
)
TOPIC_KEYS = (
    Key("topic", TEXT, "", "its name"),
    Key("topicId", TEXT, "", "its id, as Kafka prints it"),
    Key("partitions", NUMBER, "", "how many"),
    Key("replicationFactor", NUMBER, "", "of the partition with most replicas, those being added aside"),
    Key("offline", NUMBER, "", "partitions without a leader"),
    Key("underReplicated", NUMBER, "", "partitions with fewer in-sync replicas than replicas"),
    Key("underMinIsr", NUMBER, "", "partitions with fewer in-sync replicas than min.insync.replicas"),
    Key("reassigning", NUMBER, "", "partitions with replicas being added or removed"),
    Key("configs", "object", "", "its own, by name"),
)
CLUSTER_PARTITION_KEYS = (
    Key("topic", TEXT, "", "name of its topic"),
    PARTITION,
    Key(
        "state",
        TEXT,
        "",
        "empty, or offline, under-replicated, under-min-isr, reassigning, recovering; several by comma",
    ),
    Key("leader", NUMBER, "", "broker that leads it; -1: none"),
    Key("leaderEpoch", NUMBER, EPOCH, "how often it changed"),
    Key("isr", LIST, "", "brokers in sync"),
    Key("replicas", LIST, "", "brokers with a replica, the preferred leader first"),
    Key("addingReplicas", LIST, "", "being added"),
    Key("removingReplicas", LIST, "", "being removed"),
    Key("eligibleLeaderReplicas", LIST, "", "out of sync, and with all that is committed (KIP-966)"),
    Key("lastKnownElr", LIST, "", "the last that were eligible before they had an unclean shutdown"),
    Key("leaderRecoveryState", TEXT, "", "RECOVERING after an unclean election, else RECOVERED"),
    Key("partitionEpoch", NUMBER, EPOCH, "how often anything of it changed"),
    Key("directories", LIST, "", "id of the log directory of each replica"),
)
CONFIG_KEYS = (
    Key("resourceType", TEXT, "", "TOPIC, BROKER, CLIENT_METRICS, GROUP"),
    Key("resourceName", TEXT, "", "its name; empty: the default of all brokers"),
    Key("name", TEXT, "", "of the config"),
    Key("value", TEXT, "", "as it was set; [hidden] for a secret, unless --show-secrets"),
)
QUOTA_KEYS = (
    Key("entity", LIST, "", "of {type, name}: user, client-id, ip; null for the default"),
    Key("name", TEXT, "", "of the quota"),
    Key("value", NUMBER, "", "its value"),
)
ACL_KEYS = (
    Key("resourceType", TEXT, "", "TOPIC, GROUP, CLUSTER …"),
    Key("resourceName", TEXT, "", "its name, or prefix"),
    Key("patternType", TEXT, "", "LITERAL or PREFIXED"),
    Key("principal", TEXT, "", "User:name"),
    Key("permissionType", TEXT, "", "ALLOW or DENY"),
    Key("operation", TEXT, "", "READ, WRITE …"),
    Key("host", TEXT, "", "from where; * for anywhere"),
    Key("id", TEXT, "", "of the entry"),
)
SCRAM_KEYS = (
    Key("name", TEXT, "", "user"),
    Key("mechanism", TEXT, "", "SCRAM-SHA-256 or SCRAM-SHA-512"),
    Key("iterations", NUMBER, "", "of the hash; salt and keys are not shown"),
)
TOKEN_KEYS = (
    Key("tokenId", TEXT, "", "of the token; its secret is not on the disk"),
    Key("owner", TEXT, "", "principal"),
    Key("requester", TEXT, "", "principal"),
    Key("renewers", LIST, "", "principals"),
    Key("issueTimestamp", NUMBER, TIME, "when it was made"),
    Key("expirationTimestamp", NUMBER, TIME, "when it expires, unless renewed"),
    Key("maxTimestamp", NUMBER, TIME, "beyond which it cannot be renewed"),
)

STATE_TYPES: dict[str, tuple[Key, ...]] = {
    "group": GROUP_KEYS,
    "groupMember": MEMBER_KEYS,
    "groupOffset": GROUP_OFFSET_KEYS,
    "groupShare": GROUP_SHARE_KEYS,
    "cluster": CLUSTER_KEYS,
    "clusterVoter": VOTER_KEYS,
    "clusterController": CONTROLLER_KEYS,
    "clusterBroker": BROKER_KEYS,
    "clusterFeature": FEATURE_KEYS,
    "clusterTopic": TOPIC_KEYS,
    "clusterPartition": CLUSTER_PARTITION_KEYS,
    "clusterConfig": CONFIG_KEYS,
    "clusterQuota": QUOTA_KEYS,
    "clusterAcl": ACL_KEYS,
    "clusterScram": SCRAM_KEYS,
    "clusterToken": TOKEN_KEYS,
    "change": CHANGE_KEYS,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""


def ordered(value: dict[str, Any]) -> dict[str, Any]:
    """The object with its declared keys, in their order. Raises KeyError for one that is missing."""
    kind = value["type"]
    return {"type": kind, **{key.name: value[key.name] for key in STATE_TYPES[kind]}}
