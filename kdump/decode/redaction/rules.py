"""What becomes of each text in a message of Kafka's own topics. A field that no rule is declared for has none, and a
message with one is not in the bundle: a field of a later version of Kafka might have any name.

Source: the schemas of the messages (kdump/format/schemas); org.apache.kafka.common.quota.ClientQuotaEntity;
org.apache.kafka.server.common.Feature; the assignors of org.apache.kafka.clients.consumer and of
org.apache.kafka.coordinator.group.assignor."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from kdump.format.consumer_protocol import PROTOCOL_TYPE
from kdump.format.metadata_names import ACL_RESOURCE, CONFIG_RESOURCE, PATTERN
from kdump.log.pseudonyms import WILDCARD, Pseudonyms
from kdump.state.effective_config import is_public

Values = dict[str, Any]
"""The fields of a message, or of a structure in one, by name."""
Rule = Callable[[Pseudonyms, Any, Values], Any]
"""Returns the replacement of a field's value; `around` has the fields next to it."""

SAFE_VALUE = re.compile(r"-?\d{1,20}(\.\d{1,20})?|[\d:,]*|\*|\d{1,2}\.\d{1,2}(\.\d{1,2})?(-IV\d{1,2})?", re.ASCII)
"""Values of configs that say nothing about anyone: numbers, lists of replicas (throttled), and versions."""
SAFE_WORDS = frozenset(
    [
        *("true", "false", "compact", "delete", "compact,delete", "delete,compact", "producer", "uncompressed"),
        *("none", "gzip", "snappy", "lz4", "zstd", "CreateTime", "LogAppendTime", "earliest", "latest"),
        *("read_committed", "read_uncommitted"),
    ]
)
MASK = b"*"
"""What replaces each byte of a secret."""
HIDDEN = MASK.decode() * 8
QUOTAS = frozenset(
    [
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    ]
)
FEATURES = frozenset(
    f"{name}.version"
    for name in ("metadata", "kraft", "transaction", "group", "share", "streams", "eligible.leader.replicas")
)
PROTOCOL_TYPES = (PROTOCOL_TYPE, "connect")
ASSIGNORS = frozenset(
    [
        *("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "simple", "stream", "default"),
        *("compatible", "sessioned"),
    ]
)
CLUSTER = "kafka-cluster"
ENTITIES = {"user": Pseudonyms.user, "client-id": lambda names, text: names.of("client", text), "ip": Pseudonyms.host}


def prefixed(prefix: str, *kept: str) -> Rule:
    """Return the rule for a name that is replaced unless it is one of `kept`."""
    return lambda names, text, around: text if text in kept else names.of(prefix, text)


def _rule(replace: Callable[[Pseudonyms, str], str]) -> Rule:
    return lambda names, text, around: replace(names, text)


def _safe_value(names: Pseudonyms, value: str, around: Values) -> str:
    return value if SAFE_VALUE.fullmatch(value) or value in SAFE_WORDS else HIDDEN


def _config_value(names: Pseudonyms, value: str, around: Values) -> str:
    return _safe_value(names, value, around) if is_public(around) else HIDDEN


def _config_resource(names: Pseudonyms, name: str, around: Values) -> str:
    kind = CONFIG_RESOURCE.get(around["resourceType"])
    if kind in ("BROKER", "BROKER_LOGGER") and name.isascii() and name.isdecimal():
        return name
    if kind in ("TOPIC", "GROUP"):
        return names.topic(name) if kind == "TOPIC" else names.group(name)
    return names.of("metrics" if kind == "CLIENT_METRICS" else "resource", name)


def _acl_resource(names: Pseudonyms, name: str, around: Values) -> str:
    kind = ACL_RESOURCE.get(around["resourceType"])
    if name == WILDCARD or (kind == "CLUSTER" and name == CLUSTER):
        return name
    if PATTERN.get(around["patternType"]) == "PREFIXED":
        return names.of("prefix", name)
    replacements: dict[str | None, Callable[[str], str]] = {
        "TOPIC": names.topic,
        "GROUP": names.group,
        "TRANSACTIONAL_ID": names.transactional_id,
        "DELEGATION_TOKEN": partial(names.of, "token"),
        "USER": names.principal,
    }
    return replacements.get(kind, partial(names.of, "resource"))(name)


def _quota_entity(names: Pseudonyms, name: str, around: Values) -> str:
    entity = ENTITIES.get(around["entityType"])
    return entity(names, name) if entity else names.of("entity", name)


def _subtopology(names: Pseudonyms, text: str, around: Values) -> str:
    """Keep what Kafka Streams numbers, unless an application names it."""
    return text if re.fullmatch(r"[0-9]{1,6}", text) else names.of("subtopology", text)


def _nothing(names: Pseudonyms, value: Any, around: Values) -> Any:
    """Drop what only the client knows the meaning of."""
    return b"" if isinstance(value, bytes) else ""


def _hidden(names: Pseudonyms, value: bytes, around: Values) -> bytes:
    return MASK * len(value)


TOPIC_NAME, GROUP_NAME, HOST = _rule(Pseudonyms.topic), _rule(Pseudonyms.group), _rule(Pseudonyms.host)
PRINCIPAL, USER, LISTENER = _rule(Pseudonyms.principal), _rule(Pseudonyms.user), _rule(Pseudonyms.listener)
CONFIG = _rule(Pseudonyms.config)
CLIENT, MEMBER, INSTANCE, RACK = map(prefixed, ("client", "member", "instance", "rack"))
REGEX, TOKEN, TAG = map(prefixed, ("regex", "token", "tag"))
ASSIGNOR = prefixed("assignor", *ASSIGNORS)
FEATURE = prefixed("feature", *FEATURES)

RULES: dict[str, Rule] = {
    "group": GROUP_NAME,
    "groupId": GROUP_NAME,
    "topic": TOPIC_NAME,
    "topicName": TOPIC_NAME,
    "topics[]": TOPIC_NAME,
    "subscribedTopicNames[]": TOPIC_NAME,
    "sourceTopics[]": TOPIC_NAME,
    "repartitionSinkTopics[]": TOPIC_NAME,
    "memberId": MEMBER,
    "leader": MEMBER,
    "clientId": CLIENT,
    "clientHost": HOST,
    "host": HOST,
    "instanceId": INSTANCE,
    "groupInstanceId": INSTANCE,
    "rackId": RACK,
    "rack": RACK,
    "racks[]": RACK,
    "regularExpression": REGEX,
    "subscribedTopicRegex": REGEX,
    "sourceTopicRegex[]": REGEX,
    "protocolType": prefixed("protocol", *PROTOCOL_TYPES),
    "protocol": ASSIGNOR,
    "serverAssignor": ASSIGNOR,
    "processId": prefixed("process"),
    "subtopologyId": _subtopology,
    "transactionalId": _rule(Pseudonyms.transactional_id),
    "tokenId": TOKEN,
    "owner": PRINCIPAL,
    "requester": PRINCIPAL,
    "renewers[]": PRINCIPAL,
    "principal": PRINCIPAL,
    "metadata": _nothing,
    "userData": _nothing,
    "customMetadata": _nothing,
    "reason": _nothing,
    "salt": _hidden,
    "storedKey": _hidden,
    "serverKey": _hidden,
    "endPoints[].name": LISTENER,
    "endpoints[].name": LISTENER,
    "features[].name": FEATURE,
    "supportedProtocols[].name": ASSIGNOR,
    "stateChangelogTopics[].name": TOPIC_NAME,
    "repartitionSourceTopics[].name": TOPIC_NAME,
    "topicIdPartition.name": TOPIC_NAME,
    "topicConfigs[].key": CONFIG,
    "topicConfigs[].value": _safe_value,
    "lastAssignmentConfigs[].key": CONFIG,
    "lastAssignmentConfigs[].value": _safe_value,
    "clientTags[].key": TAG,
    "clientTags[].value": TAG,
    "TopicRecord.name": TOPIC_NAME,
    "UserScramCredentialRecord.name": USER,
    "RemoveUserScramCredentialRecord.name": USER,
    "FeatureLevelRecord.name": FEATURE,
    "BeginTransactionRecord.name": _nothing,
    "ClientQuotaRecord.key": prefixed("quota", *QUOTAS),
    "entity[].entityType": prefixed("entity", *ENTITIES),
    "entity[].entityName": _quota_entity,
    "ConfigRecord.resourceName": _config_resource,
    "ConfigRecord.name": CONFIG,
    "ConfigRecord.value": _config_value,
    "AccessControlEntryRecord.resourceName": _acl_resource,
}
"""By the end of `message.path.field`, of which the longest that is declared holds."""


@cache
def rule_for(message: str, path: str) -> Rule | None:
    """Return the rule of a field, None if it has none."""
    parts = f"{message}.{path}".split(".")
    return next((RULES[end] for start in range(len(parts)) if (end := ".".join(parts[start:])) in RULES), None)
