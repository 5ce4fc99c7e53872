"""Answers of `kdump cluster`: the cluster according to its metadata log (kdump.state.image)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, OFFSET, Doc, PathText, answer
from kdump.state.image import Endpoint, Supported


@answer("cluster")
class Cluster(NamedTuple):
    """The cluster as a whole: IDs, offsets and counts."""

    source: Annotated[PathText, Doc("the directory or file that was read")]
    clusterId: Annotated[str | None, Doc("from meta.properties beside it")]
    nodeId: Annotated[str | None, Doc("the node whose disk it is, from meta.properties")]
    metadataVersion: Annotated[str | None, Doc("the release that metadata.version stands for")]
    leaderId: Annotated[int | None, Doc("who became leader of the quorum last")]
    leaderEpoch: Annotated[int | None, Doc("its epoch")]
    kraftVersion: Annotated[int | None, Doc("kraft.version; null: never written, which means 0")]
    zkMigrationState: Annotated[str | None, Doc("of the migration from ZooKeeper")]
    snapshot: Annotated[int | None, Doc("end of the snapshot that the reading began with; null: none", OFFSET)]
    endOffset: Annotated[int, Doc("behind the last record that was read", OFFSET)]
    endTimestamp: Annotated[int | None, Doc("of that record", EPOCH_MS)]
    committedOffset: Annotated[
        int | None, Doc("all below is committed, by the newest snapshot; what is above may be undone", OFFSET)
    ]
    brokers: Annotated[int, Doc("registered brokers")]
    fencedBrokers: Annotated[int, Doc("those of them that are fenced")]
    topics: Annotated[int, Doc("how many")]
    partitions: Annotated[int, Doc("how many")]
    offlinePartitions: Annotated[int, Doc("those without a leader")]
    underReplicatedPartitions: Annotated[int, Doc("those with fewer in-sync replicas than replicas")]
    underMinIsrPartitions: Annotated[int, Doc("those with fewer in-sync replicas than min.insync.replicas")]
    reassigningPartitions: Annotated[int, Doc("those with replicas being added or removed")]
    configs: Annotated[int, Doc("dynamic configs")]
    quotas: Annotated[int, Doc("client quotas")]
    acls: Annotated[int, Doc("how many")]
    scramCredentials: Annotated[int, Doc("how many")]
    delegationTokens: Annotated[int, Doc("how many")]
    nextProducerId: Annotated[int | None, Doc("where the next block of producer ids begins")]


@answer("clusterVoter")
class ClusterVoter(NamedTuple):
    """A voter of the quorum."""

    voterId: Annotated[int, Doc("node.id")]
    isLeader: Annotated[bool, Doc("whether it became leader last")]
    voterDirectoryId: Annotated[str | None, Doc("id of its metadata directory; null: voters are static")]
    endpoints: Annotated[tuple[Endpoint, ...], Doc("of {…}")]


@answer("clusterController")
class ClusterController(NamedTuple):
    """A registered controller."""

    controllerId: Annotated[int, Doc("node.id")]
    incarnationId: Annotated[str, Doc("of its process")]
    endPoints: Annotated[tuple[Endpoint, ...], Doc("of {…}")]
    features: Annotated[tuple[Supported, ...], Doc("of {…}: what the node knows")]
    zkMigrationReady: Annotated[bool, Doc("whether it can migrate from ZooKeeper")]


@answer("clusterBroker")
class ClusterBroker(NamedTuple):
    """A registered broker."""

    brokerId: Annotated[int, Doc("node.id")]
    state: Annotated[str, Doc("active, fenced (serves nobody), or shutting down")]
    rack: Annotated[str | None, Doc("broker.rack")]
    brokerEpoch: Annotated[int, Doc("offset of its registration")]
    incarnationId: Annotated[str, Doc("of its process")]
    fenced: Annotated[bool, Doc("as registered")]
    inControlledShutdown: Annotated[bool, Doc("as registered")]
    leaders: Annotated[int, Doc("partitions that it leads")]
    replicas: Annotated[int, Doc("partitions that it has a replica of")]
    outOfSync: Annotated[int, Doc("those of them that it is not in sync with")]
    endPoints: Annotated[tuple[Endpoint, ...], Doc("of {…}")]
    logDirs: Annotated[tuple[str, ...], Doc("ids of its log directories")]
    cordonedLogDirs: Annotated[tuple[str, ...] | None, Doc("those that take no new replicas")]
    features: Annotated[tuple[Supported, ...], Doc("of {…}: what the node knows")]
    isMigratingZkBroker: Annotated[bool, Doc("whether it was one of ZooKeeper's")]


@answer("clusterFeature")
class ClusterFeature(NamedTuple):
    """A finalized feature."""

    name: Annotated[str, Doc("of the feature")]
    featureLevel: Annotated[int, Doc("finalized level")]
    release: Annotated[str | None, Doc("what the level of metadata.version is called")]


@answer("clusterTopic")
class ClusterTopic(NamedTuple):
    """A topic."""

    topic: Annotated[str, Doc("its name")]
    topicId: Annotated[str, Doc("its id, as Kafka prints it")]
    partitions: Annotated[int, Doc("how many")]
    replicationFactor: Annotated[int, Doc("of the partition with most replicas, those being added aside")]
    offline: Annotated[int, Doc("partitions without a leader")]
    underReplicated: Annotated[int, Doc("partitions with fewer in-sync replicas than replicas")]
    underMinIsr: Annotated[int, Doc("partitions with fewer in-sync replicas than min.insync.replicas")]
    reassigning: Annotated[int, Doc("partitions with replicas being added or removed")]
    configs: Annotated[dict[str, Any], Doc("its own, by name")]


@answer("clusterPartition")
class ClusterPartition(NamedTuple):
    """A partition."""

    topic: Annotated[str, Doc("name of its topic")]
    partition: Annotated[int, Doc("of the topic")]
    state: Annotated[
        str, Doc("empty, or offline, under-replicated, under-min-isr, reassigning, recovering; several by comma")
    ]
    leader: Annotated[int, Doc("broker that leads it; -1: none")]
    leaderEpoch: Annotated[int, Doc("how often it changed")]
    isr: Annotated[tuple[int, ...], Doc("brokers in sync")]
    replicas: Annotated[tuple[int, ...], Doc("brokers with a replica, the preferred leader first")]
    addingReplicas: Annotated[tuple[int, ...], Doc("being added")]
    removingReplicas: Annotated[tuple[int, ...], Doc("being removed")]
    eligibleLeaderReplicas: Annotated[tuple[int, ...], Doc("out of sync, and with all that is committed (KIP-966)")]
    lastKnownElr: Annotated[tuple[int, ...], Doc("the last that were eligible before they had an unclean shutdown")]
    leaderRecoveryState: Annotated[str, Doc("RECOVERING after an unclean election, else RECOVERED")]
    partitionEpoch: Annotated[int, Doc("how often anything of it changed")]
    directories: Annotated[tuple[str, ...], Doc("id of the log directory of each replica")]


@answer("clusterConfig")
class ClusterConfig(NamedTuple):
    """A dynamic config."""

    resourceType: Annotated[str, Doc("TOPIC, BROKER, CLIENT_METRICS, GROUP")]
    resourceName: Annotated[str, Doc("its name; empty: the default of all brokers")]
    name: Annotated[str, Doc("of the config")]
    value: Annotated[str, Doc("as it was set; [hidden] for a secret, unless --show-secrets")]


class QuotaEntity(NamedTuple):
    """What a quota applies to; `name` is None for the default."""

    type: str
    name: str | None


@answer("clusterQuota")
class ClusterQuota(NamedTuple):
    """A client quota."""

    entity: Annotated[tuple[QuotaEntity, ...], Doc("of {…}: user, client-id, ip; null for the default")]
    name: Annotated[str, Doc("of the quota")]
    value: Annotated[float, Doc("its value")]


@answer("clusterAcl")
class ClusterAcl(NamedTuple):
    """An ACL."""

    resourceType: Annotated[str, Doc("TOPIC, GROUP, CLUSTER …")]
    resourceName: Annotated[str, Doc("its name, or prefix")]
    patternType: Annotated[str, Doc("LITERAL or PREFIXED")]
    principal: Annotated[str, Doc("User:name")]
    permissionType: Annotated[str, Doc("ALLOW or DENY")]
    operation: Annotated[str, Doc("READ, WRITE …")]
    host: Annotated[str, Doc("from where; * for anywhere")]
    id: Annotated[str, Doc("of the entry")]


@answer("clusterScram")
class ClusterScram(NamedTuple):
    """A SCRAM credential of a user."""

    name: Annotated[str, Doc("user")]
    mechanism: Annotated[str, Doc("SCRAM-SHA-256 or SCRAM-SHA-512")]
    iterations: Annotated[int, Doc("of the hash; salt and keys are not shown")]


@answer("clusterToken")
class ClusterToken(NamedTuple):
    """A delegation token."""

    tokenId: Annotated[str, Doc("of the token; its secret is not on the disk")]
    owner: Annotated[str, Doc("principal")]
    requester: Annotated[str, Doc("principal")]
    renewers: Annotated[tuple[str, ...], Doc("principals")]
    issueTimestamp: Annotated[int, Doc("when it was made", EPOCH_MS)]
    expirationTimestamp: Annotated[int, Doc("when it expires, unless renewed", EPOCH_MS)]
    maxTimestamp: Annotated[int, Doc("beyond which it cannot be renewed", EPOCH_MS)]
