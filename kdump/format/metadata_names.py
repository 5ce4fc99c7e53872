"""Names of the numbers in KRaft's metadata records.

Source: org.apache.kafka.common.acl.AclOperation and AclPermissionType, ResourceType, PatternType, ConfigResource.Type,
ScramMechanism, SecurityProtocol; LeaderRecoveryState; ZkMigrationState."""

from __future__ import annotations

from collections.abc import Mapping

ACL_OPERATION = dict(
    enumerate(
        [
            *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
            *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS"),
            *("DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
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


def enum_name(names: Mapping[int, str], number: int) -> str:
    """Return the name, UNKNOWN(9) for a number that has none."""
    name = names.get(number)
    return f"UNKNOWN({number})" if name is None else name


def enum_number(names: Mapping[int, str], name: str) -> int:
    """Return the number that enum_name has given this name. Raises ValueError."""
    number = next((number for number, member in names.items() if member == name), None)
    return int(name.removeprefix("UNKNOWN(").removesuffix(")")) if number is None else number
