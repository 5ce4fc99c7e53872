"""Names of the numbers in KRaft's metadata records.

Source: org.apache.kafka.common.acl.AclOperation and AclPermissionType, ResourceType, PatternType, ConfigResource.Type,
ScramMechanism, SecurityProtocol; org.apache.kafka.server.common.MetadataVersion; LeaderRecoveryState;
ZkMigrationState.
"""

from __future__ import annotations

ACL_OPERATION = dict(
    enumerate(
        [
            "UNKNOWN",
            "ANY",
            "ALL",
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "CREATE_TOKENS",
            "DESCRIBE_TOKENS",
            "TWO_PHASE_COMMIT",
        ]
    )
)
ACL_PERMISSION = dict(enumerate(["UNKNOWN", "ANY", "DENY", "ALLOW"]))
ACL_RESOURCE = dict(
    enumerate(["UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"])
)
PATTERN = dict(enumerate(["UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"]))
CONFIG_RESOURCE = {0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
SCRAM_MECHANISM = {0: "UNKNOWN", 1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
SECURITY_PROTOCOL = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
RECOVERY_STATE = {0: "RECOVERED", 1: "RECOVERING"}
ZK_MIGRATION = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION", 4: "ZK"}

METADATA_VERSION = dict(
    enumerate(
        [
            "3.0-IV1",
            "3.1-IV0",
            "3.2-IV0",
            "3.3-IV0",
            "3.3-IV1",
            "3.3-IV2",
            "3.3-IV3",
            "3.4-IV0",
            "3.5-IV0",
            "3.5-IV1",
            "3.5-IV2",
            "3.6-IV0",
            "3.6-IV1",
            "3.6-IV2",
            "3.7-IV0",
            "3.7-IV1",
            "3.7-IV2",
            "3.7-IV3",
            "3.7-IV4",
            "3.8-IV0",
            "3.9-IV0",
            "4.0-IV0",
            "4.0-IV1",
            "4.0-IV2",
            "4.0-IV3",
            "4.1-IV0",
            "4.1-IV1",
            "4.2-IV0",
            "4.2-IV1",
            "4.3-IV0",
            "4.4-IV0",
        ],
        1,
    )
)
"""Release of each level of the feature metadata.version."""
METADATA_CHANGED = frozenset({1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels that changed the metadata: a controller refuses to lower metadata.version from one of them, or across one
(MetadataVersion.didMetadataChange and checkIfMetadataChanged)."""


def enum_name(names: dict[int, str], number: int) -> str:
    """Return the name, UNKNOWN(9) for a number that has none."""
    name = names.get(number)
    return f"UNKNOWN({number})" if name is None else name
