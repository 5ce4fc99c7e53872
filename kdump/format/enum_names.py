"""Kafka's names for the numbers in its own messages, which the schemas do not contain.

Source: the Kafka enums that represent these fields: TransactionState, coordinator.group.modern.MemberState,
coordinator.group.streams.MemberState, server.share.fetch.RecordState, metadata.LeaderRecoveryState,
metadata.BrokerRegistrationFencingChange, BrokerRegistrationInControlledShutdownChange, ScramMechanism, AclOperation,
PatternType, AclPermissionType, ResourceType, ConfigResource.Type, SecurityProtocol, RemoteLogSegmentState,
RemotePartitionDeleteState, ZkMigrationState."""

from __future__ import annotations

from kdump.format.transaction_record import STATES


def _numbered(words: str, first: int = 0) -> dict[int, str]:
    return dict(enumerate(words.split(), first))


_MEMBER = _numbered("STABLE UNREVOKED_PARTITIONS UNRELEASED_PARTITIONS")
_SEGMENT = "COPY_SEGMENT_STARTED COPY_SEGMENT_FINISHED DELETE_SEGMENT_STARTED DELETE_SEGMENT_FINISHED"
_DELETE = "DELETE_PARTITION_MARKED DELETE_PARTITION_STARTED DELETE_PARTITION_FINISHED"
_OPERATIONS = "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS"
_OPERATIONS += " IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT"
_RESOURCES = "UNKNOWN ANY TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER"

MEANINGS: dict[str, dict[int, str]] = {
    "transactionStatus": dict(enumerate(STATES)),
    "ConsumerGroupCurrentMemberAssignmentValue.state": _MEMBER,
    "ShareGroupCurrentMemberAssignmentValue.state": _MEMBER,
    "StreamsGroupCurrentMemberAssignmentValue.state": _numbered("STABLE UNREVOKED_TASKS UNRELEASED_TASKS", 1),
    "deliveryState": _numbered("AVAILABLE ACQUIRED ACKNOWLEDGED ARCHIVING ARCHIVED"),
    "leaderRecoveryState": _numbered("RECOVERED RECOVERING"),
    "BrokerRegistrationChangeRecord.fenced": {-1: "UNFENCE", 0: "NONE", 1: "FENCE"},
    "BrokerRegistrationChangeRecord.inControlledShutdown": {0: "NONE", 1: "IN_CONTROLLED_SHUTDOWN"},
    "mechanism": _numbered("UNKNOWN SCRAM-SHA-256 SCRAM-SHA-512"),
    "operation": _numbered(_OPERATIONS),
    "patternType": _numbered("UNKNOWN ANY MATCH LITERAL PREFIXED"),
    "permissionType": _numbered("UNKNOWN ANY DENY ALLOW"),
    "AccessControlEntryRecord.resourceType": _numbered(_RESOURCES),
    "ConfigRecord.resourceType": {
        0: "UNKNOWN",
        2: "TOPIC",
        4: "BROKER",
        8: "BROKER_LOGGER",
        16: "CLIENT_METRICS",
        32: "GROUP",
    },
    "securityProtocol": _numbered("PLAINTEXT SSL SASL_PLAINTEXT SASL_SSL"),
    "remoteLogSegmentState": _numbered(_SEGMENT),
    "remotePartitionDeleteState": _numbered(_DELETE),
    "zkMigrationState": _numbered("NONE MIGRATION PRE_MIGRATION POST_MIGRATION ZK"),
}
"""Field, or message.field if the field name is ambiguous -> names by number."""


def enum_names(message: str, field: str) -> dict[int, str] | None:
    """Return Kafka's names for the numbers in a field; None if they have no names."""
    return MEANINGS.get(field) or MEANINGS.get(f"{message}.{field}")


def is_timestamp(field: str) -> bool:
    """Return True if a field of Kafka's own messages is a time in epoch ms. (The schemas do not mark times.)"""
    return field.endswith(("imestamp", "imestampMs"))
