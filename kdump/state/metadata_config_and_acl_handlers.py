"""Handlers for the records of configs, client quotas, ACLs, SCRAM credentials and delegation tokens.

Source: org.apache.kafka.image.ConfigurationDelta, ClientQuotaDelta, AclsDelta, ScramDelta and DelegationTokenDelta;
ConfigurationControlManager, AclControlManager and ScramControlManager of org.apache.kafka.controller."""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import getsizeof
from typing import Any

from kdump.format.metadata_names import (
    ACL_OPERATION,
    ACL_PERMISSION,
    ACL_RESOURCE,
    CONFIG_RESOURCE,
    PATTERN,
    SCRAM_MECHANISM,
    enum_name,
)
from kdump.state.internal_records import ENTRY
from kdump.state.metadata_image import (
    BROKER,
    TOPIC,
    DelegationToken,
    QuotaEntityKey,
    ScramCredential,
    ScramKeys,
    StandardAcl,
)
from kdump.state.metadata_refusal import Rule
from kdump.state.metadata_replay_state import ReplayState

JAVA_INT = re.compile(r"[+-]?\d{1,20}", re.ASCII)
NO_BROKER_NUMBER = Rule('NumberFormatException: For input string: "{resourceName}"', since=(4, 0))
NO_ACL = Rule(
    "RuntimeException: Unable to replay RemoveAccessControlEntryRecord(…): no acl with that ID found.",
    "IllegalStateException: Failed to find existing ACL with ID {id} in either image or changes",
)
SAME_ACL = Rule(
    "RuntimeException: Unable to replay RemoveAccessControlEntryRecord(…) for StandardAcl(…): acl not found in "
    "existingAcls."
)
NO_CREDENTIAL = Rule(
    "RuntimeException: Unable to find credential to delete: ScramCredentialKey(username={name}, mechanism={mechanism})",
    since=(3, 5),
)
NO_PRINCIPAL = Rule(
    loader="IllegalArgumentException: expected a string in format principalType:principalName but got {principal}",
    since=(3, 6),
)


def config(replay: ReplayState, values: dict[str, Any]) -> None:
    """Set a config of a topic, broker or other resource; a null value removes it."""
    resource, name, value = (values["resourceType"], values["resourceName"]), values["name"], values["value"]
    known = replay.metadata.configs
    if resource[0] == BROKER and resource[1] and resource not in known and not _is_java_int(resource[1]):
        replay.refuse(NO_BROKER_NUMBER, f"a config of broker {resource[1]}, which is not a number", **values)
        return
    topic = replay.metadata.topics.get(resource[1]) if resource[0] == TOPIC else None
    if resource not in known and (
        value is None or not (topic is not None or replay.charge(ENTRY + getsizeof(resource[1])))
    ):
        return
    configs = known.setdefault(resource, {})
    if topic is not None:
        topic.configs = configs
    before = configs.get(name)
    freed = _config_size(name, before) if before is not None else 0
    if value is None:
        configs.pop(name, None)
        replay.room += freed
    elif replay.charge(_config_size(name, value) - freed):
        configs[name] = value
    else:
        return
    named = f"{enum_name(CONFIG_RESOURCE, resource[0])} {resource[1] or '<default>'}"
    replay.report_change("config", named, *({name: each} if each is not None else None for each in (before, value)))


def _is_java_int(text: str) -> bool:
    return JAVA_INT.fullmatch(text) is not None and -(2**31) <= int(text) < 2**31


def _config_size(name: str, value: str) -> int:
    return ENTRY + getsizeof(name) + getsizeof(value)


def quota(replay: ReplayState, values: dict[str, Any]) -> None:
    entity: QuotaEntityKey = tuple(
        sorted(
            ((part["entityType"], part["entityName"]) for part in values["entity"]),
            key=lambda part: (part[0], part[1] or ""),  # None is the default of the type
        )
    )
    key, quotas = values["key"], replay.metadata.quotas
    if values["remove"]:
        if key in quotas.get(entity, ()):
            replay.drop(quotas[entity], key, "quota", f"{quota_name(entity)} {key}")
            if not quotas[entity]:
                del quotas[entity]
    elif entity in quotas or replay.charge(ENTRY + sum(getsizeof(name or "") for _, name in entity)):
        replay.keep(quotas.setdefault(entity, {}), key, values["value"], "quota", f"{quota_name(entity)} {key}")


def quota_name(entity: QuotaEntityKey) -> str:
    """Return the name of a quota entity, such as user=ann, client-id=<default>."""
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)


def acl(replay: ReplayState, values: dict[str, Any]) -> None:
    entry = StandardAcl(
        values["id"],
        enum_name(ACL_RESOURCE, values["resourceType"]),
        values["resourceName"],
        enum_name(PATTERN, values["patternType"]),
        values["principal"],
        values["host"],
        enum_name(ACL_OPERATION, values["operation"]),
        enum_name(ACL_PERMISSION, values["permissionType"]),
    )
    if replay.keep(replay.metadata.acls, entry.id, entry, "acl", entry.id):
        replay.acls.add(entry[1:])
        replay.created(entry.id)


def remove_acl(replay: ReplayState, values: dict[str, Any]) -> None:
    number = values["id"]
    acl = replay.metadata.acls.get(number)
    if acl is None:
        if not replay.is_full:
            rule = replay.for_controller(NO_ACL, number)
            replay.refuse(rule, f"there is no ACL with the ID {number}", **values)
        return
    if acl[1:] not in replay.acls:
        replay.refuse(SAME_ACL, "an ACL with the same content has been removed")
    replay.acls.discard(acl[1:])
    replay.removed(number)
    replay.drop(replay.metadata.acls, number, "acl", number)


def scram(replay: ReplayState, values: dict[str, Any]) -> None:
    mechanism = enum_name(SCRAM_MECHANISM, values["mechanism"])
    entry = ScramCredential(values["name"], mechanism, values["iterations"])
    credentials, key, name = replay.metadata.scram, (entry.name, mechanism), f"{entry.name} {mechanism}"
    if credentials.get(key) == entry:
        # Salt and keys are not kept, so a new password would not show as a change.
        replay.report_change(
            "scram", name, entry._asdict() | {"password": "before"}, entry._asdict() | {"password": "set again"}
        )
    replay.keep(credentials, key, entry, "scram", name)
    if replay.choice is not None:
        replay.metadata.scram_keys[key] = ScramKeys(*(values[field] for field in ScramKeys._fields))


def remove_scram(replay: ReplayState, values: dict[str, Any]) -> None:
    mechanism = enum_name(SCRAM_MECHANISM, values["mechanism"])
    key, name = (values["name"], mechanism), values["name"]
    replay.metadata.scram_keys.pop(key, None)
    if not replay.drop(replay.metadata.scram, key, "scram", f"{name} {mechanism}") and not replay.is_full:
        of = mechanism.replace("-", "_") if values["mechanism"] in SCRAM_MECHANISM else "UNKNOWN"
        replay.refuse(NO_CREDENTIAL, f"there is no credential {mechanism} of {name}", name=name, mechanism=of)


def token(replay: ReplayState, values: dict[str, Any]) -> None:
    for principal in (*values["renewers"], values["owner"], values["requester"]):
        if ":" not in principal:
            replay.refuse(NO_PRINCIPAL, f"{principal} is not a principal", principal=principal)
            return
    entry = DelegationToken(
        **{**{n: values[n] for n in DelegationToken._fields}, "renewers": tuple(values["renewers"])}
    )
    replay.keep(replay.metadata.tokens, entry.tokenId, entry, "delegationToken", entry.tokenId)


def remove_token(replay: ReplayState, values: dict[str, Any]) -> None:
    replay.drop(replay.metadata.tokens, values["tokenId"], "delegationToken", values["tokenId"])


HANDLERS: dict[str, Callable[[ReplayState, dict[str, Any]], None]] = {
    "ConfigRecord": config,
    "ClientQuotaRecord": quota,
    "AccessControlEntryRecord": acl,
    "RemoveAccessControlEntryRecord": remove_acl,
    "UserScramCredentialRecord": scram,
    "RemoveUserScramCredentialRecord": remove_scram,
    "DelegationTokenRecord": token,
    "RemoveDelegationTokenRecord": remove_token,
}
