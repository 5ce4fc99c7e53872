"""Answers of `kdump cluster`: the cluster according to its metadata log (kdump.state.metadata_image)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, INLINE, NAME, OFFSET, Cell, Doc, PathText, Shown, answer
from kdump.cluster.release_evidence import newer_in
from kdump.format.known_releases import metadata_levels
from kdump.format.metadata_names import CONFIG_RESOURCE, enum_name
from kdump.format.numbers import parse_int
from kdump.state.metadata_image import (
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    MetadataImage,
    PartitionRegistration,
    ScramCredential,
    StandardAcl,
    TopicImage,
    Voter,
)
from kdump.state.partition_problems import least_isr, trouble
from kdump.state.secrets import HIDDEN, is_secret
from kdump.state.value_texts import entity_text


@answer("cluster")
class Cluster(NamedTuple):
    """The cluster as a whole: IDs, offsets and counts."""

    source: Annotated[PathText, Doc("directory or file that was read")]
    clusterId: Annotated[str | None, Doc("cluster ID, from meta.properties in the same log directory")]
    nodeId: Annotated[str | None, Doc("ID of the node that the disk belongs to, from meta.properties")]
    metadataVersion: Annotated[str | None, Doc("release that metadata.version stands for")]
    newer: Annotated[
        tuple[str, ...],
        Doc("what only a release newer than the newest known one writes; its effect is not known, and not shown"),
    ]
    leaderId: Annotated[int | None, Doc("node that became leader of the quorum last")]
    leaderEpoch: Annotated[int | None, Doc("epoch of that leader")]
    kraftVersion: Annotated[int | None, Doc("kraft.version; null if never written, which means 0")]
    zkMigrationState: Annotated[str | None, Doc("state of the migration from ZooKeeper")]
    snapshot: Annotated[
        int | None, Doc("end offset of the snapshot that was loaded first; null if there is none", OFFSET)
    ]
    endOffset: Annotated[int, Doc("offset after the last record that was read", OFFSET)]
    endTimestamp: Annotated[int | None, Doc("timestamp of that record", EPOCH_MS)]
    replayedOffset: Annotated[
        int,
        Doc("end offset of what a node replays: endOffset, or the offset at which the first record is missing", OFFSET),
    ]
    committedOffset: Annotated[
        int | None, Doc("below it, all is committed, by snapshots and leader epochs; above, it may be undone", OFFSET)
    ]
    brokers: Annotated[int, Doc("number of registered brokers")]
    fencedBrokers: Annotated[int, Doc("number of fenced brokers")]
    topics: Annotated[int, Doc("number of topics")]
    partitions: Annotated[int, Doc("number of partitions")]
    offlinePartitions: Annotated[int, Doc("number without a leader")]
    underReplicatedPartitions: Annotated[int, Doc("number with fewer in-sync replicas than replicas")]
    underMinIsrPartitions: Annotated[int, Doc("number with fewer in-sync replicas than min.insync.replicas")]
    reassigningPartitions: Annotated[int, Doc("number with replicas being added or removed")]
    configs: Annotated[int, Doc("number of dynamic configs")]
    quotas: Annotated[int, Doc("number of client quotas")]
    acls: Annotated[int, Doc("number of ACLs")]
    scramCredentials: Annotated[int, Doc("number of SCRAM credentials")]
    delegationTokens: Annotated[int, Doc("number of delegation tokens")]
    nextProducerId: Annotated[int | None, Doc("first producer ID of the next block")]


@answer("clusterVoter")
class ClusterVoter(NamedTuple):
    """A voter of the quorum."""

    voter: Annotated[Voter, INLINE]
    isLeader: Annotated[bool, Doc("whether it became leader last", after="voterId"), Shown("leader")]


@answer("clusterBroker", lambda value: "" if value.state == "active" else "torn")
class ClusterBroker(NamedTuple):
    """A registered broker."""

    registration: Annotated[BrokerRegistration, INLINE]
    state: Annotated[str, Doc("active, fenced (serves no clients), or shutting down", after="brokerId"), Shown()]
    leaders: Annotated[int, Doc("number of partitions that it leads", after="inControlledShutdown"), Shown(rank=7)]
    replicas: Annotated[int, Doc("number of partitions of which it has a replica", after="leaders"), Shown(rank=6)]
    outOfSync: Annotated[
        int, Doc("number of these for which it is not in sync", after="replicas"), Shown("out of sync", 6, blank=0)
    ]


@answer("clusterFeature")
class ClusterFeature(NamedTuple):
    """A finalized feature."""

    name: Annotated[str, Doc("name of the feature"), Shown("feature")]
    featureLevel: Annotated[int, Doc("finalized level"), Shown("level")]
    release: Annotated[str | None, Doc("release that the level of metadata.version stands for"), Shown(rank=5)]


def _topic_style(value: ClusterTopic) -> str:
    return "bad" if value.offline else "torn" if value.underReplicated or value.underMinIsr else ""


@answer("clusterTopic", _topic_style)
class ClusterTopic(NamedTuple):
    """A topic."""

    topic: Annotated[str, Doc("name of the topic"), Shown(least=16, cuts=NAME)]
    topicId: Annotated[str, Doc("topic ID, as Kafka prints it"), Shown(rank=2)]
    partitions: Annotated[int, Doc("number of partitions"), Shown()]
    replicationFactor: Annotated[
        int, Doc("largest number of replicas of a partition, without those being added"), Shown("replicas", 7)
    ]
    offline: Annotated[int, Doc("number of partitions without a leader"), Shown(rank=8, blank=0)]
    underReplicated: Annotated[
        int,
        Doc("number of partitions with fewer in-sync replicas than replicas"),
        Shown("under-replicated", 8, blank=0),
    ]
    underMinIsr: Annotated[
        int,
        Doc("number of partitions with fewer in-sync replicas than min.insync.replicas"),
        Shown("under-min-isr", 6, blank=0),
    ]
    reassigning: Annotated[
        int, Doc("number of partitions with replicas being added or removed"), Shown(rank=6, blank=0)
    ]
    configs: Annotated[dict[str, Any], Doc("the topic's own configs, by name"), Shown(rank=4, least=24)]


def _partition_style(value: ClusterPartition) -> str:
    if not value.state:
        return ""
    return "bad" if any(word in value.state for word in ("offline", "under-min-isr")) else "torn"


@answer("clusterPartition", _partition_style)
class ClusterPartition(NamedTuple):
    """A partition."""

    topic: Annotated[str, Doc("name of the topic"), Shown(least=16, cuts=NAME)]
    partition: Annotated[int, Doc("partition of the topic"), Shown()]
    state: Annotated[
        str,
        Doc("empty, or offline, under-replicated, under-min-isr, reassigning, recovering; comma-separated"),
        Shown(least=10, after="lastKnownElr"),
    ]
    registration: Annotated[PartitionRegistration, INLINE]


@answer("clusterConfig")
class ClusterConfig(NamedTuple):
    """A dynamic config."""

    resourceType: Annotated[str, Doc("TOPIC, BROKER, CLIENT_METRICS, GROUP"), Shown("of")]
    resourceName: Annotated[
        str, Doc("name of the resource; empty for the default of all brokers"), Shown("resource", least=12, cuts=NAME)
    ]
    name: Annotated[str, Doc("name of the config"), Shown()]
    value: Annotated[str, Doc("value as it was set; [hidden] for a secret, unless --show-secrets"), Shown(least=16)]


class QuotaEntity(NamedTuple):
    """What a quota applies to; `name` is None for the default."""

    type: str
    name: str | None


@answer("clusterQuota")
class ClusterQuota(NamedTuple):
    """A client quota."""

    entity: Annotated[
        tuple[QuotaEntity, ...],
        Doc("what the quota applies to, each {…}; type: user, client-id, ip; name is null for the default"),
        Shown(least=16, cuts=NAME),
        Cell(entity_text),
    ]
    name: Annotated[str, Doc("name of the quota"), Shown("quota")]
    value: Annotated[float, Doc("value of the quota"), Shown()]


TopicPredicate = Callable[[str], bool]
"""Predicate for topic names."""

LEVEL = "metadata.version"


def count_troubles(troubles: Counter[str], partitions: Iterable[PartitionRegistration], least: int) -> None:
    """Add how many partitions of a topic have each problem."""
    for info in partitions:
        for name in trouble(info, least):
            troubles[name] += 1


def summary_of(metadata: MetadataImage, source: str, identity: dict[str, str], committed: int | None) -> Cluster:
    """Return the cluster as a whole. `identity`: contents of meta.properties; `committed` as in
    MetadataFiles."""
    troubles: Counter[str] = Counter()
    for topic in metadata.topics.values():
        count_troubles(troubles, topic.partitions.values(), least_isr(metadata, topic))
    level = metadata.features.get(LEVEL)
    block = metadata.producer_ids.get("")
    return Cluster(
        source=source,
        clusterId=identity.get("cluster.id"),
        nodeId=identity.get("node.id", identity.get("broker.id")),
        metadataVersion=None if level is None else enum_name(metadata_levels(), level),
        newer=tuple(newer_in(metadata, parse_int(identity.get("node.id")))),
        leaderId=metadata.leader.leaderId if metadata.leader else None,
        leaderEpoch=metadata.leader.leaderEpoch if metadata.leader else None,
        kraftVersion=metadata.kraft_version,
        zkMigrationState=metadata.zk_migration.get(""),
        snapshot=metadata.snapshot,
        endOffset=metadata.end_offset,
        endTimestamp=metadata.end_time,
        replayedOffset=metadata.replayed_offset,
        committedOffset=committed,
        brokers=len(metadata.brokers),
        fencedBrokers=sum(broker.fenced for broker in metadata.brokers.values()),
        topics=len(metadata.topics),
        partitions=sum(len(topic.partitions) for topic in metadata.topics.values()),
        offlinePartitions=troubles["offline"],
        underReplicatedPartitions=troubles["under-replicated"],
        underMinIsrPartitions=troubles["under-min-isr"],
        reassigningPartitions=troubles["reassigning"],
        configs=sum(map(len, metadata.configs.values())),
        quotas=sum(map(len, metadata.quotas.values())),
        acls=len(metadata.acls),
        scramCredentials=len(metadata.scram),
        delegationTokens=len(metadata.tokens),
        nextProducerId=block.nextProducerId if block else None,
    )


def voters(metadata: MetadataImage, _: TopicPredicate) -> Iterator[ClusterVoter]:
    leader = metadata.leader.leaderId if metadata.leader else None
    for number, voter in sorted(metadata.voters.items()):
        yield ClusterVoter(voter, number == leader)


def brokers(metadata: MetadataImage, _: TopicPredicate) -> Iterator[ClusterBroker]:
    leads: Counter[int] = Counter()
    has: Counter[int] = Counter()
    lagging: Counter[int] = Counter()
    for topic in metadata.topics.values():
        for info in topic.partitions.values():
            leads[info.leader] += 1
            for replica in info.replicas:
                has[replica] += 1
            if info.isr != info.replicas:
                lagging.update(replica for replica in info.replicas if replica not in info.isr)
    for number, broker in sorted(metadata.brokers.items()):
        state = "shutting down" if broker.inControlledShutdown else "active"
        yield ClusterBroker(
            broker,
            state="fenced" if broker.fenced else state,
            leaders=leads[number],
            replicas=has[number],
            outOfSync=lagging[number],
        )


def features(metadata: MetadataImage, _: TopicPredicate) -> Iterator[ClusterFeature]:
    for name, level in sorted(metadata.features.items()):
        release = enum_name(metadata_levels(), level) if name == LEVEL else None
        yield ClusterFeature(name, level, release)


def _topics(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[TopicImage]:
    yield from (topic for name, topic in sorted(metadata.topics.items()) if is_selected(name))


def topics(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[ClusterTopic]:
    for topic in _topics(metadata, is_selected):
        troubles: Counter[str] = Counter()
        infos = list(topic.partitions.values())
        count_troubles(troubles, infos, least_isr(metadata, topic))
        factors = [len(info.replicas) - len(info.addingReplicas) for info in infos]
        yield ClusterTopic(
            topic=topic.name,
            topicId=topic.id,
            partitions=len(infos),
            replicationFactor=max(factors, default=0),
            offline=troubles["offline"],
            underReplicated=troubles["under-replicated"],
            underMinIsr=troubles["under-min-isr"],
            reassigning=troubles["reassigning"],
            configs=dict(sorted(topic.configs.items())),
        )


def partitions(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[ClusterPartition]:
    for topic in _topics(metadata, is_selected):
        least = least_isr(metadata, topic)
        for number, info in sorted(topic.partitions.items()):
            state = ", ".join(trouble(info, least))
            yield ClusterPartition(topic.name, number, state, info)


def configs(
    metadata: MetadataImage, is_selected: TopicPredicate, show_secrets: bool = False
) -> Iterator[ClusterConfig]:
    for (kind, resource), values in sorted(metadata.configs.items()):
        kind_name = enum_name(CONFIG_RESOURCE, kind)
        if kind_name == "TOPIC" and not is_selected(resource):
            continue
        for name, value in sorted(values.items()):
            shown = value if show_secrets or not is_secret(name) else HIDDEN
            yield ClusterConfig(kind_name, resource, name, shown)


def quotas(metadata: MetadataImage, _: TopicPredicate) -> Iterator[ClusterQuota]:
    for entity, values in sorted(metadata.quotas.items(), key=str):
        parts = tuple(QuotaEntity(kind, name) for kind, name in entity)
        for name, value in sorted(values.items()):
            yield ClusterQuota(parts, name, value)


def acls(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[StandardAcl]:
    for acl in sorted(metadata.acls.values(), key=lambda acl: acl[1:]):
        if acl.resourceType != "TOPIC" or acl.patternType != "LITERAL" or is_selected(acl.resourceName):
            yield acl


def _in_order(found: Mapping[Any, Any]) -> Iterator[Any]:
    return (found[key] for key in sorted(found))


PARTS: dict[str, tuple[type, Callable[..., Iterator[Any]]]] = {
    "voters": (ClusterVoter, voters),
    "controllers": (ControllerRegistration, lambda metadata, _: _in_order(metadata.controllers)),
    "brokers": (ClusterBroker, brokers),
    "features": (ClusterFeature, features),
    "topics": (ClusterTopic, topics),
    "partitions": (ClusterPartition, partitions),
    "configs": (ClusterConfig, configs),
    "quotas": (ClusterQuota, quotas),
    "acls": (StandardAcl, acls),
    "scram": (ScramCredential, lambda metadata, _: _in_order(metadata.scram)),
    "tokens": (DelegationToken, lambda metadata, _: _in_order(metadata.tokens)),
}
"""Values of --show: the class of its answers, and the function that builds them."""
