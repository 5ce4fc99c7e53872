"""The records of a metadata snapshot, from the image that they replay to.

Source: write of org.apache.kafka.image.MetadataImage and of the images in it, toRecord of BrokerRegistration,
ControllerRegistration and PartitionRegistration; MetadataVersion for the versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kdump.format.known_releases import Line
from kdump.format.metadata_names import (
    ACL_OPERATION,
    ACL_PERMISSION,
    ACL_RESOURCE,
    PATTERN,
    RECOVERY_STATE,
    SCRAM_MECHANISM,
    SECURITY_PROTOCOL,
    ZK_MIGRATION,
    enum_number,
)
from kdump.format.metadata_record import metadata_record_value
from kdump.state.metadata_image import BrokerRegistration, Endpoint, MetadataImage, PartitionRegistration

METADATA_VERSION = "metadata.version"
FEATURE_LEVELS, SHUTTING_DOWN, MIGRATION, SCRAM, TOKENS = 4, 7, 8, 11, 14
CONTROLLERS, DIRECTORIES, ELIGIBLE_REPLICAS, CORDONED = 15, 17, 23, 30
"""The levels of metadata.version from which on a snapshot has these: 3.3-IV0, 3.3-IV3, 3.4-IV0, 3.5-IV2, 3.6-IV2,
3.7-IV0, 3.7-IV2, 4.0-IV1 and 4.3-IV0."""
WITHOUT_MIGRATION = (4, 0)
"""First release whose snapshots have no ZkMigrationStateRecord."""

Values = dict[str, Any]
OnPartition = Callable[[str, int, PartitionRegistration], PartitionRegistration]


def as_it_is(topic: str, number: int, partition: PartitionRegistration) -> PartitionRegistration:
    """Return a partition unchanged."""
    return partition


def image_records(image: MetadataImage, line: Line, on_partition: OnPartition = as_it_is) -> Iterator[bytes]:
    """Yield the values of the records in the order in which a node of a minor release writes them. `on_partition`:
    returns what is written for a partition of a topic. Raises ValueError for what a record cannot have."""
    level = image.features.get(METADATA_VERSION, 1)
    for name, version, values in _records(image, level, line, on_partition):
        yield metadata_record_value(name, version, values)


def _records(
    image: MetadataImage, level: int, line: Line, on_partition: OnPartition
) -> Iterator[tuple[str, int, Values]]:
    if level >= FEATURE_LEVELS:
        names = sorted(image.features, key=lambda name: name != METADATA_VERSION)
        for name in names:
            yield "FeatureLevelRecord", 0, {"name": name, "featureLevel": image.features[name]}
    if level >= MIGRATION and line < WITHOUT_MIGRATION:
        for state in image.zk_migration.values():
            if state in ZK_MIGRATION.values():
                yield "ZkMigrationStateRecord", 0, {"zkMigrationState": enum_number(ZK_MIGRATION, state)}
    for broker in image.brokers.values():
        yield "RegisterBrokerRecord", _first(level, CORDONED, DIRECTORIES, MIGRATION, SHUTTING_DOWN), _broker(broker)
    for controller in image.controllers.values() if level >= CONTROLLERS else ():
        values = controller._asdict() | {"endPoints": _endpoints(controller.endPoints)}
        yield "RegisterControllerRecord", 0, values | {"features": [each._asdict() for each in controller.features]}
    version = _first(level, ELIGIBLE_REPLICAS, DIRECTORIES)
    for topic in image.topics.values():
        yield "TopicRecord", 0, {"name": topic.name, "topicId": topic.id}
        for number, partition in sorted(topic.partitions.items()):
            values = _partition(on_partition(topic.name, number, partition))
            yield "PartitionRecord", version, {"topicId": topic.id, "partitionId": number, **values}
    yield from _settings(image, level)


def _settings(image: MetadataImage, level: int) -> Iterator[tuple[str, int, Values]]:
    """Yield the records of configs, quotas, producer IDs, ACLs, credentials and tokens."""
    for (kind, resource), configs in image.configs.items():
        for name, value in configs.items():
            values = {"resourceType": kind, "resourceName": resource, "name": name, "value": value}
            yield "ConfigRecord", 0, values
    for entity, quotas in image.quotas.items():
        parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
        for key, quota in quotas.items():
            yield "ClientQuotaRecord", 0, {"entity": parts, "key": key, "value": quota, "remove": False}
    for block in image.producer_ids.values():
        yield "ProducerIdsRecord", 0, {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": block.nextProducerId}
    for acl in image.acls.values():
        fields: Values = acl._asdict()
        for name, names in (
            ("resourceType", ACL_RESOURCE),
            ("patternType", PATTERN),
            ("operation", ACL_OPERATION),
            ("permissionType", ACL_PERMISSION),
        ):
            fields[name] = enum_number(names, fields[name])
        yield "AccessControlEntryRecord", 0, fields
    for (user, mechanism), keys in image.scram_keys.items() if level >= SCRAM else ():
        iterations = image.scram[user, mechanism].iterations
        values = {"name": user, "mechanism": enum_number(SCRAM_MECHANISM, mechanism), "iterations": iterations}
        yield "UserScramCredentialRecord", 0, {**values, **keys._asdict()}
    for token in image.tokens.values() if level >= TOKENS else ():
        yield "DelegationTokenRecord", 0, {**token._asdict(), "renewers": list(token.renewers)}


def _first(level: int, *since: int) -> int:
    """Return the version of a record: as many as the changes of its versions, newest first, up to this level."""
    return sum(level >= first for first in since)


def _broker(broker: BrokerRegistration) -> Values:
    cordoned = broker.cordonedLogDirs
    return broker._asdict() | {
        "logDirs": list(broker.logDirs),
        "cordonedLogDirs": None if cordoned is None else list(cordoned),
        "endPoints": _endpoints(broker.endPoints),
        "features": [feature._asdict() for feature in broker.features],
    }


def _endpoints(endpoints: tuple[Endpoint, ...]) -> list[Values]:
    protocols: Mapping[int, str] = SECURITY_PROTOCOL
    return [each._asdict() | {"securityProtocol": enum_number(protocols, each.securityProtocol)} for each in endpoints]


def _partition(partition: PartitionRegistration) -> Values:
    lists = ("replicas", "isr", "addingReplicas", "removingReplicas", "directories")
    return partition._asdict() | {
        **{name: list(getattr(partition, name)) for name in lists},
        "leaderRecoveryState": enum_number(RECOVERY_STATE, partition.leaderRecoveryState),
        # Tagged fields, null if they have no contents.
        "eligibleLeaderReplicas": list(partition.eligibleLeaderReplicas) or None,
        "lastKnownElr": list(partition.lastKnownElr) or None,
    }
