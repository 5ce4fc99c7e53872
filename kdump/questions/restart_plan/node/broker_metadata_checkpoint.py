"""Checks meta.properties as releases up to 3.6 do: with ZooKeeper it may be missing and has version 0; with KRaft every
log directory has one.

Source: BrokerMetadataCheckpoint (getBrokerMetadataAndOfflineDirs, read), RawMetaProperties, MetaProperties.parse,
KafkaServer.startup, KafkaRaftServer.initializeLogDirs (2.8.2 to 3.6.2); LogManager.createAndValidateLogDirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from kdump.format.kafka_release import ZOOKEEPER, KafkaRelease
from kdump.format.numbers import parse_int
from kdump.io.errors import SourceError
from kdump.kafka.checkpoint_file import BadLine, meta_values
from kdump.log.log_directory import META
from kdump.questions.restart_plan.answer import EXIT, OFFLINE, DirectoryPlan, RestartPlan, StartupFailure, Step
from kdump.questions.restart_plan.node.access_rights import Rights, denied
from kdump.state.releases import META_CREATED, META_EQUAL, META_VERSION_0, META_VERSION_1


def identify_by_checkpoint(
    directories: list[DirectoryPlan], plan: RestartPlan, rights: Rights, release: KafkaRelease
) -> list[DirectoryPlan]:
    """Read each meta.properties into its directory's plan, and add the stops that follow from them. Return the
    directories whose file could be read."""
    stated: list[tuple[DirectoryPlan, dict[str, str]]] = []
    for directory in directories:
        path = os.path.join(directory.path, META)
        denial = rights.java_error(path)
        if not directory.failed and rights.barrier(directory.path) is not None:
            denial = f"AccessDeniedException: {path}"
        if denial is not None:
            directory.stops.append(_offline(directory, denial, release, rights))
            continue
        try:
            values = meta_values(path)
        except SourceError as error:  # kdump cannot read it; the broker may
            directory.unread.append(str(error))
            continue
        except BadLine as error:
            directory.stops.append(_exit(path, f"{META}: {error}", error.exception, release))
            continue
        if values is None:
            _missing(directory, path, release)
            continue
        _read(directory, values)
        stated.append((directory, values))
    _equal(stated, release)
    for directory, values in stated:
        _parse(directory, values, release)
    live = [each for each in directories if not each.failed and not any(x.kind == OFFLINE for x in each.stops)]
    if not live and release.mode == ZOOKEEPER and not any(each.unread for each in directories):
        message = "no log directory can be used"
        exception = "Shutdown broker because none of the specified log dirs can be created or validated"
        first = directories[0].path
        plan.stops.append(StartupFailure(EXIT, first, None, None, message, exception, f"make {first} readable"))
    return [directory for directory, _ in stated]


def _read(directory: DirectoryPlan, values: Mapping[str, str]) -> None:
    directory.version = values.get("version", "0").strip()
    name = "node.id" if directory.version == "1" else "broker.id"
    directory.nodeId = parse_int(values.get(name))
    directory.clusterId, directory.directoryId = values.get("cluster.id"), values.get("directory.id")


def _missing(directory: DirectoryPlan, path: str, release: KafkaRelease) -> None:
    if META_CREATED.applies(release) and not directory.failed:
        reason = "missing: written with the cluster ID in ZooKeeper and the configured broker.id"
        directory.steps.append(Step("create", path, None, None, 0, reason))
        return
    message = f"{directory.path if directory.failed else path} is missing"
    if META_CREATED.applies(release):
        exception = f"IOException: {os.path.abspath(directory.path)} is not a readable log directory."
        remedy = f"mount or repair {directory.path}, or remove it from log.dirs"
        directory.stops.append(StartupFailure(OFFLINE, directory.path, None, None, message, exception, remedy))
        return
    exception = f"KafkaException: No `meta.properties` found in {directory.path} (have you run `kafka-storage.sh` to"
    directory.stops.append(_exit(path, message, f"{exception} format the directory?)", release))


def _offline(directory: DirectoryPlan, reason: str, release: KafkaRelease, rights: Rights) -> StartupFailure:
    """Return the stop for a file that cannot be read: the directory goes offline; a KRaft node exits if it is
    metadata.log.dir."""
    path = os.path.join(directory.path, META)
    stop = denied(path, "read", reason, rights)
    if release.mode != ZOOKEEPER and directory.metadataLogDir:
        exception = "KafkaException: Cannot start server since `meta.properties` could not be loaded from"
        return stop._replace(kind=EXIT, exception=f"{exception} {directory.path}")
    return stop


def _equal(stated: list[tuple[DirectoryPlan, dict[str, str]]], release: KafkaRelease) -> None:
    """Add a stop to each directory that differs from the first one."""
    whole = release.mode == ZOOKEEPER or META_VERSION_1.applies(release)
    for directory, values in stated[1:] if META_EQUAL.applies(release) else ():
        first, expected = stated[0]
        if whole:
            names = sorted(name for name in {*values, *expected} if values.get(name) != expected.get(name))
        else:
            pairs = (("cluster.id", "clusterId"), ("node.id", "nodeId"))
            names = [name for name, key in pairs if getattr(directory, key) != getattr(first, key)]
        if not names:
            continue
        path = os.path.join(directory.path, META)
        message = f"{', '.join(names)} differ from those in {first.path}"
        if len(names) == 1:
            message = f"{names[0]} {values.get(names[0])}, but {first.path} has {expected.get(names[0])}"
        exception = "InconsistentBrokerMetadataException: BrokerMetadata is not consistent across log.dirs."
        remedy = f"check that {directory.path} belongs to this broker"
        if names == ["directory.id"]:
            remedy = f"remove the lines directory.id, which Kafka {release.number} does not know, from {META}"
        directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, remedy))


def _parse(directory: DirectoryPlan, values: Mapping[str, str], release: KafkaRelease) -> None:
    """Add the stop for values that a node cannot use."""
    path = os.path.join(directory.path, META)
    version = parse_int(values.get("version", "0"))
    exception = ""
    for name in ("version", "broker.id", "node.id"):
        if name in values and parse_int(values[name]) is None:
            exception = f'Failed to parse {name} property as an int: For input string: "{values[name]}"'
    if exception:
        pass
    elif META_VERSION_0.applies(release):
        if version != 0:
            exception = "Found unexpected version in loaded `meta.properties`"
    elif META_VERSION_1.applies(release) and version != 1:
        exception = f"Expected version 1, but got version {version}"
    elif version not in (0, 1):
        exception = f"Expected version 0 or 1, but got version {version}"
    if not exception and release.mode != ZOOKEEPER:
        name = "node.id" if version == 1 else "broker.id"
        lacking = next((required for required in ("cluster.id", name) if required not in values), None)
        if lacking is not None:
            exception = f"Failed to find required property {lacking}."
    if exception:
        message = f"{META}: {exception}"
        if release.mode == ZOOKEEPER and version == 1:
            message = f"{META} has version 1, that of a KRaft node: a broker with ZooKeeper reads only version 0"
        directory.stops.append(_exit(path, message, f"RuntimeException: {exception}", release))


def _exit(path: str, message: str, exception: str, release: KafkaRelease) -> StartupFailure:
    lines = "version=0, cluster.id, broker.id" if release.mode == ZOOKEEPER else "version=1, cluster.id, node.id"
    remedy = f"write {path} again, as in the other log directories: {lines}; do not format the directory"
    return StartupFailure(EXIT, path, None, None, message, exception, remedy)
