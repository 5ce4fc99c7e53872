"""Handlers for the records of brokers, controllers and cluster features, and for control records.

Source: org.apache.kafka.image.ClusterDelta, FeaturesDelta and ProducerIdsDelta; BrokerRegistrationFencingChange and
BrokerRegistrationInControlledShutdownChange for the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
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
from kdump.state.metadata_replay_state import ReplayState

METADATA_VERSION = "metadata.version"
FEATURE_LEVEL = "FeatureLevelRecord"
MAX_LEVELS = 1000
"""Maximum number of levels of features that are remembered."""
FENCE, UNFENCE, NO_CHANGE, SHUTTING_DOWN = 1, -1, 0, 1


def register_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    cordoned = values.get("cordonedLogDirs")
    broker = BrokerRegistration(
        values["brokerId"],
        values["brokerEpoch"],
        values["incarnationId"],
        values["rack"],
        values["fenced"],
        values.get("inControlledShutdown", False),
        replay.ids(values.get("logDirs")),
        None if cordoned is None else replay.ids(cordoned),
        endpoints(values["endPoints"], SECURITY_PROTOCOL),
        _features(values),
        values.get("isMigratingZkBroker", False),
    )
    replay.keep(replay.metadata.brokers, broker.brokerId, broker, "broker", str(broker.brokerId))


def unregister_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    replay.drop(replay.metadata.brokers, values["brokerId"], "broker", str(values["brokerId"]))


def fence_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    _change(replay, values["id"], values["epoch"], fenced=True)


def unfence_broker(replay: ReplayState, values: dict[str, Any]) -> None:
    _change(replay, values["id"], values["epoch"], fenced=False)


def broker_change(replay: ReplayState, values: dict[str, Any]) -> None:
    changed: dict[str, Any] = {}
    if values["fenced"] in (FENCE, UNFENCE):
        changed["fenced"] = values["fenced"] == FENCE
    elif values["fenced"] != NO_CHANGE:
        replay.at(f"fenced is {values['fenced']}, which Kafka does not define")
    if values.get("inControlledShutdown") == SHUTTING_DOWN:
        changed["inControlledShutdown"] = True
    if values.get("logDirs"):
        changed["logDirs"] = replay.ids(values["logDirs"])
    if values.get("cordonedLogDirs") is not None:
        changed["cordonedLogDirs"] = replay.ids(values["cordonedLogDirs"])
    _change(replay, values["brokerId"], values["brokerEpoch"], **changed)


def _change(replay: ReplayState, number: int, epoch: int, **changed: Any) -> None:
    known = replay.metadata.brokers.get(number)
    if known is None:
        replay.at(f"broker {number} is not registered")
        return
    if known.brokerEpoch != epoch:
        # Kafka throws an exception here; this replay notes the problem and applies the change.
        replay.at(f"broker {number} is registered with epoch {known.brokerEpoch}, but the record has epoch {epoch}")
    replay.keep(replay.metadata.brokers, number, known._replace(**changed), "broker", str(number))


def register_controller(replay: ReplayState, values: dict[str, Any]) -> None:
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
    replay.drop(replay.metadata.controllers, number, "controller", str(number))


def _features(values: dict[str, Any]) -> tuple[SupportedFeature, ...]:
    return tuple(
        SupportedFeature(*(feature[name] for name in SupportedFeature._fields)) for feature in values["features"]
    )


def feature_level(replay: ReplayState, values: dict[str, Any]) -> None:
    name, level = values["name"], values["featureLevel"]
    if len(replay.metadata.levels) < MAX_LEVELS:
        replay.metadata.levels.setdefault((name, level), replay.log_offset)
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
    state = enum_name(ZK_MIGRATION, values["zkMigrationState"])
    replay.keep(replay.metadata.zk_migration, "", state, "zkMigration", "")


def producer_ids(replay: ReplayState, values: dict[str, Any]) -> None:
    block = ProducerIds(values["brokerId"], values["brokerEpoch"], values["nextProducerId"])
    replay.keep(replay.metadata.producer_ids, "", block, "producerIds", "")


def control(replay: ReplayState, record: ControlRecord, epoch: int | None, offset: int | None) -> None:
    """Apply a control record of the log or of a snapshot: leader, KRaft version or voters (KIP-595, KIP-853)."""
    metadata, value = replay.metadata, record.value
    if record.newer:
        replay.note_newer(record.newer)
    if record.problem is not None:
        replay.at(str(record.problem))
        return
    if value is None:
        return
    replay.record = record.type
    if record.type == "LEADER_CHANGE":
        leader = QuorumLeader(value["leaderId"], -1 if epoch is None else epoch, offset)
        replay.report_change("quorum", "leader", metadata.leader, leader)
        metadata.leader = leader
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
}
