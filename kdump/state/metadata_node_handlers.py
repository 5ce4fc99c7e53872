"""Handlers for the records of brokers, controllers and cluster features, and for control records.

Source: org.apache.kafka.image.ClusterDelta, FeaturesDelta and ProducerIdsDelta; BrokerRegistrationFencingChange and
BrokerRegistrationInControlledShutdownChange for the numbers; org.apache.kafka.controller.ClusterControlManager,
ProducerIdControlManager and OffsetControlManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kdump.format.control_record import ControlRecord
from kdump.format.metadata_names import SECURITY_PROTOCOL, ZK_MIGRATION, enum_name
from kdump.format.metadata_record import MetadataRecord
from kdump.state.metadata_image import (
    BrokerRegistration,
    ControllerRegistration,
    ProducerIds,
    QuorumLeader,
    SupportedFeature,
    Voter,
    endpoints,
)
from kdump.state.metadata_problem import Kind
from kdump.state.metadata_refusal import Rule
from kdump.state.metadata_replay_state import ReplayState

METADATA_VERSION = "metadata.version"
FEATURE_LEVEL = "FeatureLevelRecord"
MAX_LEVELS = 1000
"""Maximum number of levels of features that are remembered."""
MAX_EPOCHS = 100_000
"""Maximum number of leader epochs that are remembered."""
FENCE, UNFENCE, NO_CHANGE, SHUTTING_DOWN = 1, -1, 0, 1

NO_BROKER = Rule(
    "RuntimeException: Unable to replay {record}(…): no broker registration found for that id",
    "IllegalStateException: Tried to {verb} broker {number}, but that broker was not registered.",
)
OTHER_EPOCH = Rule(
    "RuntimeException: Unable to replay {record}(…): no broker registration with that epoch found",
    "IllegalStateException: Tried to {verb} broker {number}, but the given epoch, {epoch}, did not match the current "
    "broker epoch, {known}",
)
_UNKNOWN_VALUE = (
    "IllegalStateException: Unable to replay BrokerRegistrationChangeRecord(…): unknown value for {field} field"
)
UNKNOWN_VALUE = Rule(f"{_UNKNOWN_VALUE}: {{byte:x}}", f"{_UNKNOWN_VALUE}: {{value}}")
OTHER_OWNER = Rule("IllegalStateException: BUG: directory {directory} already assigned to broker {owner}", since=(3, 7))
UNKNOWN_PROTOCOL = Rule(
    "RuntimeException: Unknown security protocol {securityProtocol} in listener {name}", since=(3, 7)
)
_NO_NAME = "IllegalArgumentException: Broker listeners must be named."
UNNAMED_LISTENER = Rule(_NO_NAME, _NO_NAME, since=(4, 1))
_PROTOCOL = "RuntimeException: Unknown security protocol {securityProtocol}"
CONTROLLER_PROTOCOL = Rule(_PROTOCOL, _PROTOCOL, since=(3, 7))
NO_CONTROLLER = Rule(
    "RuntimeException: Unable to replay UnregisterControllerRecord(…): no controller registration found for that id"
)
LOWER_PRODUCER_ID = Rule(
    "RuntimeException: Next Producer ID from replayed record ({nextProducerId}) is not greater than current next "
    "Producer ID in block (ProducerIdsBlock(assignedBrokerId={known.brokerId}, firstProducerId={known.nextProducerId}, "
    "size=1000))"
)
_MIGRATION = "IllegalArgumentException: Value {zkMigrationState} is not a valid Zk migration state"
UNKNOWN_MIGRATION = Rule(_MIGRATION, _MIGRATION, until=(3, 9))
BEGUN = Rule(
    "RuntimeException: Can't replay a BeginTransactionRecord at {offset} because the transaction at {begun} was never "
    "closed.",
    "RuntimeException: Encountered BeginTransactionRecord while already in a transaction",
)
COMMITTED_LATER = Rule(
    "RuntimeException: Can't create a new in-memory snapshot at epoch {before} because there is already a snapshot "
    "with epoch {stable}. Snapshot epochs are {stable}",
    is_certain=True,
)
NOT_BEGUN = Rule(
    "RuntimeException: Can't replay an {record} at {offset} because there is no open transaction.",
    "RuntimeException: Encountered {record} without having seen a BeginTransactionRecord",
)
IN_SNAPSHOT = Rule(
    "RuntimeException: {record} cannot appear within a snapshot.",
    "RuntimeException: Unknown metadata record type {type}",
)
TRANSACTION_TYPES = {
    "BeginTransactionRecord": "BEGIN_TRANSACTION_RECORD",
    "EndTransactionRecord": "END_TRANSACTION_RECORD",
    "AbortTransactionRecord": "ABORT_TRANSACTION_RECORD",
}


def register_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    cordoned, number = values.get("cordonedLogDirs"), values["brokerId"]
    log_dirs = values.get("logDirs") or []
    if _is_protocol_unknown(replay, values, UNKNOWN_PROTOCOL):
        replay.left_out(_id(number))
        return
    if any(not endpoint["name"] for endpoint in values["endPoints"]):
        replay.refuse(UNNAMED_LISTENER, "a listener has no name")
        return
    if not _own(replay, number, log_dirs):
        return
    broker = BrokerRegistration(
        number,
        values["brokerEpoch"],
        values["incarnationId"],
        values["rack"],
        values["fenced"],
        values.get("inControlledShutdown", False),
        replay.ids(log_dirs),
        None if cordoned is None else replay.ids(cordoned),
        endpoints(values["endPoints"], SECURITY_PROTOCOL),
        _features(values),
        values.get("isMigratingZkBroker", False),
    )
    replay.keep(replay.metadata.brokers, number, broker, "broker", str(number))


def _is_protocol_unknown(replay: ReplayState, values: dict[str, Any], rule: Rule) -> bool:
    """Refuse a registration with a security protocol that is not known; return whether it has one."""
    for endpoint in values["endPoints"]:
        number = endpoint["securityProtocol"]
        if number not in SECURITY_PROTOCOL:
            replay.refuse(rule, f"security protocol {number} of listener {endpoint['name']} is unknown", **endpoint)
            return True
    return False


def _own(replay: ReplayState, number: int, log_dirs: Sequence[str]) -> bool:
    """Note that the log directories are the broker's, and no others are; return False if one is another broker's."""
    owners, before = replay.directory_owners, replay.metadata.brokers.get(number)
    for directory in log_dirs:
        if owners.get(directory, number) != number:
            owner = owners[directory]
            text = f"log directory {directory} is one of broker {owner}"
            replay.refuse(OTHER_OWNER, text, directory=directory, owner=owner)
            replay.left_out(_id(number))
            return False
    for directory in before.logDirs if before is not None else ():
        owners.pop(directory, None)
    owners.update(dict.fromkeys(log_dirs, number))
    return True


def unregister_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    number = values["brokerId"]
    if _registered(replay, number, values["brokerEpoch"], "") is not None:
        _own(replay, number, ())
        replay.drop(replay.metadata.brokers, number, "broker", str(number))


def _registered(replay: ReplayState, number: int, epoch: int, verb: str) -> BrokerRegistration | None:
    """Return the broker that a record changes; None if it is unknown, or has another epoch. `verb`: what MetadataLoader
    calls the change, empty if it does not check the broker."""
    broker = replay.metadata.brokers.get(number)
    if broker is not None and broker.brokerEpoch == epoch:
        return broker
    if broker is None and replay.is_full:
        return None
    rule, text, known = NO_BROKER, f"broker {number} is not registered", None
    if broker is not None:
        rule, known = OTHER_EPOCH, broker.brokerEpoch
        text = f"broker {number} is registered with epoch {known}, but the record has epoch {epoch}"
    rule = replay.for_controller(rule, _id(number)) if verb else rule._replace(loader="")
    replay.refuse(rule, text, known=known, record=replay.record, verb=verb, number=number, epoch=epoch)
    return None


def _id(number: int) -> str:
    return f"broker {number}"


def fence_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    _change(replay, values["id"], values["epoch"], "fence", fenced=True)


def unfence_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    _change(replay, values["id"], values["epoch"], "unfence", fenced=False)


def broker_change(replay: ReplayState, values: dict[str, Any]) -> None:
    changed: dict[str, Any] = {}
    for name, numbers in (("fenced", (FENCE, UNFENCE, NO_CHANGE)), ("inControlledShutdown", (0, SHUTTING_DOWN))):
        value = values.get(name, 0)
        if value not in numbers:
            text = f"{name} is {value}, which Kafka does not define"
            replay.refuse(UNKNOWN_VALUE, text, field=name, byte=value & 0xFF, value=value)
            return
    if values["fenced"] != NO_CHANGE:
        changed["fenced"] = values["fenced"] == FENCE
    if values.get("inControlledShutdown") == SHUTTING_DOWN:
        changed["inControlledShutdown"] = True
    if values.get("logDirs"):
        changed["logDirs"] = replay.ids(values["logDirs"])
    if values.get("cordonedLogDirs") is not None:
        changed["cordonedLogDirs"] = replay.ids(values["cordonedLogDirs"])
    _change(replay, values["brokerId"], values["brokerEpoch"], "change", **changed)


def _change(replay: ReplayState, number: int, epoch: int, verb: str, **changed: Any) -> None:
    broker = _registered(replay, number, epoch, verb)
    if broker is not None and ("logDirs" not in changed or _own(replay, number, changed["logDirs"])):
        replay.keep(replay.metadata.brokers, number, broker._replace(**changed), "broker", str(number))


def register_controller(replay: ReplayState, values: dict[str, Any]) -> None:
    if _is_protocol_unknown(replay, values, CONTROLLER_PROTOCOL):
        return
    controller = ControllerRegistration(
        values["controllerId"],
        values["incarnationId"],
        values["zkMigrationReady"],
        endpoints(values["endPoints"], SECURITY_PROTOCOL),
        _features(values),
    )
    number = controller.controllerId
    replay.keep(replay.metadata.controllers, number, controller, "controller", str(number))


def unregister_controller(replay: ReplayState, values: dict[str, Any]) -> None:
    number = values["controllerId"]
    if number not in replay.metadata.controllers and not replay.is_full:
        replay.refuse(NO_CONTROLLER, f"controller {number} is not registered")
    replay.drop(replay.metadata.controllers, number, "controller", str(number))


def _features(values: dict[str, Any]) -> tuple[SupportedFeature, ...]:
    return tuple(
        SupportedFeature(*(feature[name] for name in SupportedFeature._fields)) for feature in values["features"]
    )


def feature_level(replay: ReplayState, values: dict[str, Any]) -> None:
    name, level = values["name"], values["featureLevel"]
    if len(replay.metadata.levels) < MAX_LEVELS:
        replay.mark(replay.metadata.levels, (name, level))
    if level == 0 and name != METADATA_VERSION:
        replay.drop(replay.metadata.features, name, "feature", name)
    else:
        replay.keep(replay.metadata.features, name, level, "feature", name)


def formatted(replay: ReplayState, record: MetadataRecord) -> None:
    """Note what a record states that kafka-storage has written into a snapshot at offset 0."""
    replay.metadata.has_format = True
    if record.newer:
        replay.note_newer(record.newer)
    if record.name == FEATURE_LEVEL and record.problem is None and record.values is not None:
        replay.metadata.formatted[record.values["name"]] = record.values["featureLevel"]


def zk_migration(replay: ReplayState, values: dict[str, Any]) -> None:
    if values["zkMigrationState"] not in ZK_MIGRATION:
        replay.add_refusal(UNKNOWN_MIGRATION, **values)
    state = enum_name(ZK_MIGRATION, values["zkMigrationState"])
    replay.keep(replay.metadata.zk_migration, "", state, "zkMigration", "")


def producer_ids(replay: ReplayState, values: dict[str, Any]) -> None:
    known = replay.metadata.producer_ids.get("")
    if known is not None and values["nextProducerId"] <= known.nextProducerId:
        text = f"the next producer ID is {values['nextProducerId']}, after {known.nextProducerId}"
        replay.refuse(LOWER_PRODUCER_ID, text, known=known, **values)
        return
    block = ProducerIds(values["brokerId"], values["brokerEpoch"], values["nextProducerId"])
    replay.keep(replay.metadata.producer_ids, "", block, "producerIds", "")


def transaction(replay: ReplayState, values: dict[str, Any]) -> None:
    """Begin, end or abort a metadata transaction (KIP-868); which records count is decided where they are read."""
    names = {"record": replay.record, "offset": replay.offset, "begun": replay.transaction}
    if not replay.in_log:
        replay.refuse(IN_SNAPSHOT, "a snapshot has no transactions", type=TRANSACTION_TYPES[replay.record], **names)
    elif replay.record == "BeginTransactionRecord":
        if replay.transaction is not None:
            replay.refuse(BEGUN, f"the transaction at offset {replay.transaction} was never closed", **names)
        else:
            before = (replay.offset or 0) - 1
            if before < replay.stable:  # OffsetControlManager has a state of each stable offset, in ascending order
                text = f"a batch before it has the offset {replay.stable}"
                replay.refuse(COMMITTED_LATER, text, before=before, stable=replay.stable)
            replay.transaction, replay.begun_at = replay.offset, (replay.file, replay.position)
    elif replay.transaction is None:
        replay.refuse(NOT_BEGUN, "there is no open transaction", **names)
    else:
        replay.transaction = None


def control(replay: ReplayState, record: ControlRecord, epoch: int | None, offset: int | None) -> None:
    """Apply a control record of the log or of a snapshot: leader, KRaft version or voters (KIP-595, KIP-853)."""
    metadata, value = replay.metadata, record.value
    if record.newer:
        replay.note_newer(record.newer)
    if record.problem is not None:
        replay.at(Kind.REFUSED, str(record.problem))
        return
    if value is None:
        return
    replay.record = record.type
    if record.type == "LEADER_CHANGE":
        leader = QuorumLeader(value["leaderId"], -1 if epoch is None else epoch, offset)
        replay.report_change("quorum", "leader", metadata.leader, leader)
        metadata.leader = leader
        if offset is not None and len(metadata.epochs) < MAX_EPOCHS:
            metadata.epochs.append((leader.leaderEpoch, offset))
        if not any(voter.voterDirectoryId for voter in metadata.voters.values()):
            metadata.voters = {each["voterId"]: Voter(each["voterId"]) for each in value["voters"]}
    elif record.type == "KRAFT_VERSION":
        replay.report_change("quorum", "kraft.version", metadata.kraft_version, value["kRaftVersion"])
        metadata.kraft_version = value["kRaftVersion"]
    elif record.type == "KRAFT_VOTERS":
        voters = {
            each["voterId"]: Voter(each["voterId"], each["voterDirectoryId"], endpoints(each["endpoints"], {}))
            for each in value["voters"]
        }
        replay.report_change("quorum", "voters", {"voters": tuple(metadata.voters)}, {"voters": tuple(voters)})
        metadata.voters = voters


HANDLERS: dict[str, Callable[[ReplayState, dict[str, Any]], None]] = {
    "RegisterBrokerRecord": register_broker,
    "UnregisterBrokerRecord": unregister_broker,
    "FenceBrokerRecord": fence_broker,
    "UnfenceBrokerRecord": unfence_broker,
    "BrokerRegistrationChangeRecord": broker_change,
    "RegisterControllerRecord": register_controller,
    "UnregisterControllerRecord": unregister_controller,
    FEATURE_LEVEL: feature_level,
    "ZkMigrationStateRecord": zk_migration,
    "ProducerIdsRecord": producer_ids,
    **dict.fromkeys(TRANSACTION_TYPES, transaction),
}
