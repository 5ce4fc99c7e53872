"""Cluster, node and directory IDs: checks meta.properties, which a node reads before any log.

Up to 3.6, with ZooKeeper it may be missing and has version 0; with KRaft every log directory has one.

Source: MetaPropertiesEnsemble (load, verify), MetaProperties.Builder, KafkaRaftServer.initializeLogDirs. Up to 3.6
(2.8.2 to 3.6.2): BrokerMetadataCheckpoint (getBrokerMetadataAndOfflineDirs, read), RawMetaProperties,
MetaProperties.parse, KafkaServer.startup, KafkaRaftServer.initializeLogDirs; LogManager.createAndValidateLogDirs.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping

from kdump.format.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from kdump.format.meta_properties import meta_properties
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.kafka.checkpoint_file import BadLine, meta_values
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import META
from kdump.questions.restart_plan.answer import EXIT, OFFLINE, DirectoryPlan, RestartPlan, StartupFailure, Step
from kdump.questions.restart_plan.node.access_rights import ENTER, WRITE, Rights, denied, temporary_file_stop
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import META_CREATED, META_ENSEMBLE, META_EQUAL, META_VERSION_0, META_VERSION_1


def identify(directories: list[DirectoryPlan], plan: RestartPlan, rights: Rights, release: KafkaRelease) -> None:
    """Read each meta.properties into its directory's plan, and add the stops that follow from them."""
    if not META_ENSEMBLE.applies(release):
        valid = identify_by_checkpoint(directories, plan, rights, release)
        if release.mode == KRAFT:
            _one_metadata_log(valid, directories)
        return
    creates = META_CREATED.applies(release)
    valid = []
    for directory in directories:
        path = os.path.join(directory.path, META)
        barrier = None if directory.failed else rights.barrier(directory.path)
        denial = rights.java_error(path)
        if barrier is not None:
            denial = f"AccessDeniedException: {path}"
        try:
            reason = denial or _read(directory)
        except SourceError as error:  # kdump cannot read it; the broker may
            directory.unread.append(str(error))
            continue
        if reason is None:
            valid.append(directory)
            if directory.failed:
                exception = f"IOException: {os.path.abspath(directory.path)} is not a readable log directory."
                directory.stops.append(denied(directory.path, "list", exception, rights))
        elif reason == "" and creates and not directory.failed:
            directory.steps.append(_created(path))
        elif reason == "":
            message = f"{directory.path if directory.failed else path} is missing"
            exception = "RuntimeException: No readable meta.properties files found."
            if len(directories) > 1:
                exception = f"RuntimeException: No `meta.properties` found in {directory.path}"
            directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, _remedy(directory)))
        else:
            stop = _unreadable(directory, path, reason, alone=len(directories) == 1)
            if barrier is not None:
                message = f"user {rights.name} has no permission to enter {barrier}, which is above {directory.path}"
                remedy = f"let {rights.name} enter {barrier} (chmod +x, for its group or for all)"
                remedy += "; if the broker runs as another user, run kdump as that user"
                stop = stop._replace(message=message, remedy=remedy)
            elif "AccessDenied" in reason and not directory.failed:
                stop = stop._replace(remedy=denied(path, "read", reason, rights).remedy)
            directory.stops.append(stop)
    if not valid and not creates and len(directories) > 1 and not any(each.unread for each in directories):
        message = "no directory has a readable meta.properties"
        exception = "RuntimeException: No readable meta.properties files found."
        plan.stops.append(
            StartupFailure(EXIT, directories[0].path, None, None, message, exception, _remedy(directories[0]))
        )
    _agree(sorted(valid, key=lambda each: each.path), rights, adds_ids=not creates)
    if META_VERSION_0.applies(release):
        _version_0(valid)
        return
    _one_metadata_log(valid, directories)
    _complete(valid)


def _version_0(directories: list[DirectoryPlan]) -> None:
    """Add a stop for each meta.properties of a KRaft node (VerificationFlag.REQUIRE_V0)."""
    for directory in directories:
        if directory.version == "0":
            continue
        path = os.path.join(directory.path, META)
        message = f"{META} has version {directory.version}, that of a KRaft node: a broker with ZooKeeper reads only 0"
        exception = "RuntimeException: Found unexpected version in loaded `meta.properties`"
        remedy = "start the node with KRaft (process.roles), as it ran before"
        directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, remedy))


def _unreadable(directory: DirectoryPlan, path: str, reason: str, alone: bool) -> StartupFailure:
    """Return the stop for a meta.properties that cannot be read. The directory goes offline and the broker uses the
    others; without others, or if it is metadata.log.dir, the node exits."""
    kind, exception = OFFLINE, reason
    if alone:
        kind, exception = EXIT, "RuntimeException: No readable meta.properties files found."
    elif directory.metadataLogDir:
        kind = EXIT
        exception = (
            f"RuntimeException: Encountered I/O error in metadata log directory {directory.path}. Cannot continue."
        )
    elif "Exception" not in reason:
        exception = f"RuntimeException: {reason}"
    message = f"{directory.path} is {directory.failed}" if directory.failed else f"{META}: {reason}"
    if directory.failed and not directory.failed.startswith("not "):
        message = f"{directory.path} cannot be read: {directory.failed}"
    return StartupFailure(kind, path, None, None, message, exception, _remedy(directory))


def _one_metadata_log(valid: list[DirectoryPlan], directories: list[DirectoryPlan]) -> None:
    """Add a stop for each metadata log outside metadata.log.dir (initializeLogDirs)."""
    configured = next((plan.path for plan in directories if plan.metadataLogDir), "")
    for directory in valid:
        path = os.path.join(directory.path, METADATA_LOG)
        if directory.metadataLogDir or not file_system.exists(path):
            continue
        message = f"there is a metadata log here and in {configured}: a node has only one, in metadata.log.dir"
        exception = f"KafkaException: Found unexpected metadata location in data directory `{path}`"
        remedy = f"check metadata.log.dir for the node's own, and move the other out of log.dirs (not {configured}"
        directory.stops.append(
            StartupFailure(EXIT, path, None, None, message, exception, f"{remedy} unless it is the older one)")
        )


def _remedy(directory: DirectoryPlan) -> str:
    if directory.failed:
        return f"mount or repair {directory.path}, or remove it from log.dirs: this node then loses its partitions"
    path = os.path.join(directory.path, META)
    return (
        f"write {path} again, as in the other log directories: version=1, cluster.id, node.id, directory.id"
        " (kdump cluster --show brokers shows the IDs); do not format the directory"
    )


def _read(directory: DirectoryPlan) -> str | None:
    """Read meta.properties into the plan, and return why the broker cannot; empty if it is missing, None if it is
    valid. Raises SourceError."""
    try:
        values = meta_values(os.path.join(directory.path, META))
        if values is None:
            return ""
        meta = meta_properties(values)
    except BadLine as error:
        return error.exception
    except ValueError as error:
        return str(error)
    directory.version = str(meta.version)
    directory.nodeId, directory.clusterId, directory.directoryId = meta.node_id, meta.cluster_id, meta.directory_id
    return None


def _complete(directories: list[DirectoryPlan]) -> None:
    """Add a stop for each meta.properties without a node ID or cluster ID. The node exits after it has read all of
    them, also if other directories are valid (initializeLogDirs)."""
    for directory in directories:
        missing = [
            name for name, value in (("node", directory.nodeId), ("cluster", directory.clusterId)) if value is None
        ]
        if missing:
            path = os.path.join(directory.path, META)
            exception = f"RuntimeException: Error: {missing[0]} ID not found in {directory.path}"
            message = f"{META} states no {' and no '.join(missing)} ID"
            if directory.version == "0":
                message += ": it has version 0, or no version, in which only broker.id and cluster.id are read"
            directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, _remedy(directory)))


def _agree(directories: list[DirectoryPlan], rights: Rights, *, adds_ids: bool) -> None:
    """Check that all that have a cluster ID and a node ID have the same, and each its own directory ID. `adds_ids`:
    whether the node adds a directory ID if there is none."""
    seen: dict[str, str] = {}
    for directory in directories:
        cluster = next((plan for plan in directories if plan.clusterId is not None), directory)
        node = next((plan for plan in directories if plan.nodeId is not None), directory)
        path = os.path.join(directory.path, META)
        here = f"check that {directory.path} belongs to this broker"
        if directory.clusterId not in (None, cluster.clusterId):
            message = f"cluster.id {directory.clusterId}, but {cluster.path} has {cluster.clusterId}"
            exception = f"RuntimeException: Invalid cluster.id in: {path}. Expected {cluster.clusterId}, but read"
            directory.stops.append(
                StartupFailure(EXIT, path, None, None, message, f"{exception} {directory.clusterId}", here)
            )
        if directory.nodeId not in (None, node.nodeId):
            message = f"node.id {directory.nodeId}, but {node.path} has {node.nodeId}"
            exception = (
                f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {node.nodeId}"
            )
            directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, here))
        if directory.directoryId is None and not adds_ids:
            continue
        if directory.directoryId is None:
            directory.steps.append(Step("write", path, None, None, 0, "with a new directory.id, because it has none"))
            stop = temporary_file_stop(path, rights)
            if not rights.can(directory.path, WRITE | ENTER):
                stop = denied(f"{path}.tmp", "write", f"FileNotFoundException: {path}.tmp (Permission denied)", rights)
            if stop is not None:  # the node exits: MetaPropertiesEnsemble.Copier
                directory.stops.append(stop._replace(kind=EXIT))
            continue
        if is_reserved(directory.directoryId):
            message = f"directory.id {directory.directoryId} is reserved"
            exception = "RuntimeException: Invalid reserved directory ID"
            directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, _remedy(directory)))
        other = seen.setdefault(directory.directoryId, directory.path)
        if other != directory.path:
            message = f"directory.id {directory.directoryId} is also that of {other}"
            exception = f"RuntimeException: Duplicate directory ID {directory.directoryId}"
            remedy = "one of them is a copy of the other: start the broker with only one"
            directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, remedy))


def configured(directories: list[DirectoryPlan], server: ServerProperties, release: KafkaRelease) -> None:
    """Compare the node's ID with the one that its server.properties states."""
    node, is_kraft = server.node_id, release.mode != ZOOKEEPER
    for directory in directories:
        if node is None or directory.nodeId in (None, node) or directory.stops or not server.names(directory.path):
            continue
        exception = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {node}"
        if not META_ENSEMBLE.applies(release):
            ids = f"node.id `{node}` doesn't match stored node.id `{directory.nodeId}'" if is_kraft else ""
            ids = ids or f"broker.id {node} doesn't match stored broker.id Some({directory.nodeId})"
            exception = (
                f"Inconsistent{'Node' if is_kraft else 'Broker'}IdException: Configured {ids} in meta.properties"
            )
        path = os.path.join(directory.path, META)
        message = f"node.id {directory.nodeId}, but {server.path} has {node}"
        remedy = f"mount the directories of node {node} there, or set node.id={directory.nodeId} in {server.path}"
        directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, remedy))


def registered(directories: list[DirectoryPlan], metadata: MetadataImage, plan: RestartPlan) -> None:
    """Compare the IDs with the cluster's metadata, which lists the directories of each broker: the node's own
    configuration is not on the disk."""
    for directory in directories:
        if directory.stops or directory.nodeId is None or directory.directoryId is None or not directory.logDir:
            continue
        path = os.path.join(directory.path, META)
        owner = metadata.owner_of(directory.directoryId)
        if owner is not None and owner != directory.nodeId:
            message = f"node.id {directory.nodeId}, but the cluster's metadata has this directory.id for broker {owner}"
            exception = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {owner}"
            remedy = f"set node.id={owner} in {path}, if the broker's configuration has that ID"
            directory.stops.append(StartupFailure(EXIT, path, None, None, message, exception, remedy))
            plan.assumptions.append(f"the broker's configuration has node.id={owner}")
        own = metadata.broker_directories.get(directory.nodeId)
        if owner is None and own:
            directory.warnings.append(
                f"directory.id {directory.directoryId} is not among those of broker {directory.nodeId} in the "
                f"cluster's metadata ({', '.join(own)}): partitions assigned to a different ID are not served until "
                "the controller has reassigned them; if the ID in meta.properties is wrong, correct it"
            )


def is_reserved(directory_id: str) -> bool:
    """Return True if it is one of the first hundred IDs, which no directory may have (DirectoryId.reserved)."""
    try:
        data = base64.urlsafe_b64decode(f"{directory_id}==")
    except ValueError:
        return False
    return len(data) == 16 and not any(data[:8]) and int.from_bytes(data[8:], "big", signed=True) < 100


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
        _read_values(directory, values)
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


def _read_values(directory: DirectoryPlan, values: Mapping[str, str]) -> None:
    directory.version = values.get("version", "0").strip()
    name = "node.id" if directory.version == "1" else "broker.id"
    directory.nodeId = parse_int(values.get(name))
    directory.clusterId, directory.directoryId = values.get("cluster.id"), values.get("directory.id")


def _created(path: str) -> Step:
    reason = "missing: written with the cluster ID in ZooKeeper and the configured broker.id"
    return Step("create", path, None, None, 0, reason)


def _missing(directory: DirectoryPlan, path: str, release: KafkaRelease) -> None:
    if META_CREATED.applies(release) and not directory.failed:
        directory.steps.append(_created(path))
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
