"""Builds the JSON objects of the cluster's metadata; tables show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kdump.answer import answer_object
from kdump.cluster.release_evidence import newer_in
from kdump.forensics.cluster_answer import (
    Cluster,
    ClusterAcl,
    ClusterBroker,
    ClusterConfig,
    ClusterController,
    ClusterFeature,
    ClusterPartition,
    ClusterQuota,
    ClusterScram,
    ClusterToken,
    ClusterTopic,
    ClusterVoter,
    QuotaEntity,
)
from kdump.format.known_releases import metadata_levels
from kdump.format.metadata_names import CONFIG_RESOURCE, enum_name
from kdump.format.numbers import parse_int
from kdump.state.metadata_image import MetadataImage, TopicImage
from kdump.state.partition_problems import least_isr, trouble
from kdump.state.partition_table import PartitionRegistration
from kdump.state.secrets import HIDDEN, is_secret

Object = dict[str, Any]
TopicPredicate = Callable[[str], bool]
"""Predicate for topic names."""

LEVEL = "metadata.version"


def count_troubles(found: Counter[str], partitions: Iterable[PartitionRegistration], least: int) -> None:
    """Add how many partitions of a topic have each problem."""
    for info in partitions:
        for name in trouble(info, least):
            found[name] += 1


def cluster_object(metadata: MetadataImage, source: str, identity: dict[str, str], committed: int | None) -> Object:
    """Return the object of the cluster as a whole. `identity`: contents of meta.properties; `committed` as in
    MetadataFiles."""
    found: Counter[str] = Counter()
    for topic in metadata.topics.values():
        count_troubles(found, topic.partitions.values(), least_isr(metadata, topic))
    level = metadata.features.get(LEVEL)
    block = metadata.producer_ids.get("")
    return answer_object(
        Cluster(
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
            replayedOffset=metadata.end_offset if metadata.gap is None else metadata.gap,
            committedOffset=committed,
            brokers=len(metadata.brokers),
            fencedBrokers=sum(broker.fenced for broker in metadata.brokers.values()),
            topics=len(metadata.topics),
            partitions=sum(len(topic.partitions) for topic in metadata.topics.values()),
            offlinePartitions=found["offline"],
            underReplicatedPartitions=found["under-replicated"],
            underMinIsrPartitions=found["under-min-isr"],
            reassigningPartitions=found["reassigning"],
            configs=sum(map(len, metadata.configs.values())),
            quotas=sum(map(len, metadata.quotas.values())),
            acls=len(metadata.acls),
            scramCredentials=len(metadata.scram),
            delegationTokens=len(metadata.tokens),
            nextProducerId=block.nextProducerId if block else None,
        )
    )


def voters(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    leader = metadata.leader.leaderId if metadata.leader else None
    for number, voter in sorted(metadata.voters.items()):
        yield answer_object(
            ClusterVoter(
                voterId=number,
                isLeader=number == leader,
                voterDirectoryId=voter.voterDirectoryId,
                endpoints=voter.endpoints,
            )
        )


def controllers(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for _, controller in sorted(metadata.controllers.items()):
        yield answer_object(ClusterController(**controller._asdict()))


def brokers(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
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
        yield answer_object(
            ClusterBroker(
                **broker._asdict(),
                state="fenced" if broker.fenced else state,
                leaders=leads[number],
                replicas=has[number],
                outOfSync=lagging[number],
            )
        )


def features(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for name, level in sorted(metadata.features.items()):
        release = enum_name(metadata_levels(), level) if name == LEVEL else None
        yield answer_object(ClusterFeature(name, level, release))


def _topics(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[TopicImage]:
    yield from (topic for name, topic in sorted(metadata.topics.items()) if is_selected(name))


def topics(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for topic in _topics(metadata, is_selected):
        found: Counter[str] = Counter()
        infos = list(topic.partitions.values())
        count_troubles(found, infos, least_isr(metadata, topic))
        factors = [len(info.replicas) - len(info.addingReplicas) for info in infos]
        yield answer_object(
            ClusterTopic(
                topic=topic.name,
                topicId=topic.id,
                partitions=len(infos),
                replicationFactor=max(factors, default=0),
                offline=found["offline"],
                underReplicated=found["under-replicated"],
                underMinIsr=found["under-min-isr"],
                reassigning=found["reassigning"],
                configs=dict(sorted(topic.configs.items())),
            )
        )


def partitions(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for topic in _topics(metadata, is_selected):
        least = least_isr(metadata, topic)
        for number, info in sorted(topic.partitions.items()):
            state = ", ".join(trouble(info, least))
            yield answer_object(
                ClusterPartition(
                    topic=topic.name,
                    partition=number,
                    state=state,
                    **info._asdict(),
                )
            )


def configs(metadata: MetadataImage, is_selected: TopicPredicate, show_secrets: bool = False) -> Iterator[Object]:
    for (kind, resource), values in sorted(metadata.configs.items()):
        kind_name = enum_name(CONFIG_RESOURCE, kind)
        if kind_name == "TOPIC" and not is_selected(resource):
            continue
        for name, value in sorted(values.items()):
            shown = value if show_secrets or not is_secret(name) else HIDDEN
            yield answer_object(ClusterConfig(kind_name, resource, name, shown))


def quotas(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for entity, values in sorted(metadata.quotas.items(), key=str):
        parts = tuple(QuotaEntity(kind, name) for kind, name in entity)
        for name, value in sorted(values.items()):
            yield answer_object(ClusterQuota(parts, name, value))


def acls(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for acl in sorted(metadata.acls.values(), key=lambda acl: acl[1:]):
        if acl.resourceType != "TOPIC" or acl.patternType != "LITERAL" or is_selected(acl.resourceName):
            yield answer_object(ClusterAcl(**acl._asdict()))


def scram(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for _, credential in sorted(metadata.scram.items()):
        yield answer_object(ClusterScram(**credential._asdict()))


def tokens(metadata: MetadataImage, is_selected: TopicPredicate) -> Iterator[Object]:
    for _, token in sorted(metadata.tokens.items()):
        yield answer_object(ClusterToken(**token._asdict()))


PARTS: dict[str, tuple[str, Callable[..., Iterator[Object]]]] = {
    "voters": ("clusterVoter", voters),
    "controllers": ("clusterController", controllers),
    "brokers": ("clusterBroker", brokers),
    "features": ("clusterFeature", features),
    "topics": ("clusterTopic", topics),
    "partitions": ("clusterPartition", partitions),
    "configs": ("clusterConfig", configs),
    "quotas": ("clusterQuota", quotas),
    "acls": ("clusterAcl", acls),
    "scram": ("clusterScram", scram),
    "tokens": ("clusterToken", tokens),
}
"""Values of --show: the type of its objects, and the function that builds them."""
