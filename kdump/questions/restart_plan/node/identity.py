"""Cluster, node and directory IDs: checks meta.properties, which a node reads before any log.

Up to 3.6, with ZooKeeper it may be missing and has version 0; with KRaft every log directory has one.

Source: MetaPropertiesEnsemble (load, verify), MetaProperties.Builder, KafkaRaftServer.initializeLogDirs. Up to 3.6
(2.8.2 to 3.6.2): BrokerMetadataCheckpoint (getBrokerMetadataAndOfflineDirs, read), RawMetaProperties,
MetaProperties.parse, KafkaServer.startup, KafkaRaftServer.initializeLogDirs; LogManager.createAndValidateLogDirs."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping

from kdump.cluster.release_evidence import LEVEL
from kdump.format.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from kdump.format.known_releases import metadata_levels
from kdump.format.meta_properties import meta_properties
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.kafka.checkpoint_file import BadLine, meta_values
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import META
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import (
    EXIT,
    MISSING,
    NO_DIRECTORY,
    OFFLINE,
    DirectoryPlan,
    StartupFailure,
    Step,
    failure,
)
from kdump.questions.restart_plan.node.access_rights import (
    ENTER,
    WRITE,
    JavaError,
    Rights,
    access_denied,
    denied,
    temporary_file_stop,
)
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import META_CREATED, META_ENSEMBLE, META_EQUAL, META_VERSION_0, META_VERSION_1

DIFFERS = "startup-node-id-differs"
"""The node.id in a meta.properties is not that of the others."""


def identify(directories: list[DirectoryPlan], rights: Rights, release: KafkaRelease) -> None:
    """Read each meta.properties into its directory's plan, and add the stops that follow from them."""
    if not META_ENSEMBLE.applies(release):
        valid = identify_by_checkpoint(directories, rights, release)
        if release.mode == KRAFT:
            _one_metadata_log(valid, directories)
        return
    creates = META_CREATED.applies(release)
    valid = []
    for directory in directories:
        path = os.path.join(directory.path, META)
        barrier = None if directory.failed else rights.barrier(directory.path)
        denial = rights.java_error(path) if barrier is None else access_denied(path)
        try:
            reason, exception = (denial.exception, denial.exception) if denial else _read(directory)
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
            exception = "RuntimeException: No readable meta.properties files found."
            if len(directories) > 1:
                exception = f"RuntimeException: No `meta.properties` found in {directory.path}"
            directory.stops.append(_missing_stop(directory, exception, release))
        else:
            stop = _unreadable(directory, reason, exception, release, alone=len(directories) == 1)
            if barrier is not None:
                values = {"user": rights.name, "barrier": barrier, "directory": directory.path}
                stop = stop._replace(problem=Problem("startup-directory-barred", values))
            elif denial is not None and not denial.reason and not directory.failed:
                stop = stop._replace(problem=denied(path, "read", reason, rights).problem)
            directory.stops.append(stop)
    if not valid and not creates and len(directories) > 1 and not any(each.unread for each in directories):
        _stop_at_first(directories, "RuntimeException: No readable meta.properties files found.")
    _agree(sorted(valid, key=lambda each: each.path), rights, release)
    if META_VERSION_0.applies(release):
        _version_0(valid, release)
        return
    _one_metadata_log(valid, directories)
    _complete(valid, release)


def starts_as(*directories: DirectoryPlan) -> int | None:
    """Return the node ID with which a node starts once what stops it is corrected; None if it is unknown which of its
    directories are another node's."""
    for directory in directories:
        owner = directory.nodeId if directory.owner is None else directory.owner
        if owner is not None and not any(stop.code == DIFFERS for stop in directory.stops):
            return owner
    return None


def _stop_at_first(directories: list[DirectoryPlan], exception: str) -> None:
    """Make the node exit with this exception, because of what makes the first of its directories unusable."""
    stops = next((each.stops for each in directories if each.stops), directories[0].stops)
    if not stops:
        stops.append(_failed_stop(EXIT, directories[0].path, directories[0], exception))
    stops[0] = stops[0]._replace(kind=EXIT, exception=exception)


def _stop(
    kind: str,
    problem: str,
    directory: DirectoryPlan,
    exception: str,
    release: KafkaRelease,
    case: str = "",
    **more: object,
) -> StartupFailure:
    """Return the stop for a meta.properties. `problem`: the end of the code; `more`: of its fields."""
    own = "directory.id" if META_ENSEMBLE.applies(release) else ""
    lines = ", ".join(filter(None, ("version=1", "cluster.id", "node.id", own)))
    values = {
        "directory": directory.path,
        "lines": "version=0, cluster.id, broker.id" if release.mode == ZOOKEEPER else lines,
        **more,
    }
    path, facts = os.path.join(directory.path, META), {"listed": not directory.failed}
    return failure(kind, f"startup-meta-properties-{problem}", path, exception, case=case, facts=facts, values=values)


def _differs(
    code: str, directory: DirectoryPlan, exception: str, own: object, expected: object, other: str = ""
) -> None:
    """Add the stop for an ID that is another one than expected, or that of the directory `other`."""
    values = {"directory": directory.path, "own": own, "expected": expected, "other": other}
    directory.stops.append(failure(EXIT, code, os.path.join(directory.path, META), exception, values=values))


def _version_0(directories: list[DirectoryPlan], release: KafkaRelease) -> None:
    """Add a stop for each meta.properties of a KRaft node (VerificationFlag.REQUIRE_V0)."""
    exception = "RuntimeException: Found unexpected version in loaded `meta.properties`"
    for directory in directories:
        if directory.version != "0":
            directory.stops.append(_stop(EXIT, "of-kraft", directory, exception, release, version=directory.version))


def _unreadable(
    directory: DirectoryPlan, reason: str, exception: str, release: KafkaRelease, alone: bool
) -> StartupFailure:
    """Return the stop for a meta.properties that cannot be read. The directory goes offline and the broker uses the
    others; without others, or if it is metadata.log.dir, the node exits."""
    kind = OFFLINE
    if alone:
        kind, exception = EXIT, "RuntimeException: No readable meta.properties files found."
    elif directory.metadataLogDir:
        kind = EXIT
        exception = f"Encountered I/O error in metadata log directory {directory.path}. Cannot continue."
        exception = f"RuntimeException: {exception}"
    if directory.failed:
        return _failed_stop(kind, os.path.join(directory.path, META), directory, exception)
    return _stop(kind, "unreadable", directory, exception, release, reason=reason)


def _failed_stop(kind: str, file: str, directory: DirectoryPlan, exception: str) -> StartupFailure:
    """Return the stop for a directory that cannot be listed."""
    case = "" if directory.failed in (MISSING, NO_DIRECTORY) else "unreadable"
    values = {"directory": directory.path, "reason": directory.failed}
    return failure(kind, "startup-directory-failed", file, exception, case=case, values=values)


def _missing_stop(directory: DirectoryPlan, exception: str, release: KafkaRelease) -> StartupFailure:
    if directory.failed:
        return _failed_stop(EXIT, os.path.join(directory.path, META), directory, exception)
    return _stop(EXIT, "missing", directory, exception, release)


def _one_metadata_log(valid: list[DirectoryPlan], directories: list[DirectoryPlan]) -> None:
    """Add a stop for each metadata log outside metadata.log.dir (initializeLogDirs)."""
    configured = next((plan.path for plan in directories if plan.metadataLogDir), "")
    for directory in valid:
        path = os.path.join(directory.path, METADATA_LOG)
        if directory.metadataLogDir or not file_system.exists(path):
            continue
        exception = f"KafkaException: Found unexpected metadata location in data directory `{path}`"
        directory.stops.append(failure(EXIT, "startup-metadata-logs-differ", path, exception, configured=configured))


def _read(directory: DirectoryPlan) -> tuple[str | None, str]:
    """Read meta.properties into the plan, and return why the broker cannot, empty if it is missing, None if it is
    valid; and its exception. Raises SourceError."""
    try:
        values = meta_values(os.path.join(directory.path, META))
        if values is None:
            return "", ""
        meta = meta_properties(values)
    except BadLine as error:
        return error.exception, error.exception
    except ValueError as error:
        return str(error), f"RuntimeException: {error}"
    directory.version = str(meta.version)
    directory.nodeId, directory.clusterId, directory.directoryId = meta.node_id, meta.cluster_id, meta.directory_id
    return None, ""


def _complete(directories: list[DirectoryPlan], release: KafkaRelease) -> None:
    """Add a stop for each meta.properties without a node ID or cluster ID. The node exits after it has read all of
    them, also if other directories are valid (initializeLogDirs)."""
    for directory in directories:
        both = {"node": directory.nodeId, "cluster": directory.clusterId}
        if missing := [name for name, value in both.items() if value is None]:
            exception = f"RuntimeException: Error: {missing[0]} ID not found in {directory.path}"
            ids, case = " and no ".join(missing), "version0" if directory.version == "0" else ""
            directory.stops.append(_stop(EXIT, "incomplete", directory, exception, release, ids=ids, case=case))


def _agree(directories: list[DirectoryPlan], rights: Rights, release: KafkaRelease) -> None:
    """Check that all that have a cluster ID and a node ID have the same, and each its own directory ID. With KRaft, the
    node adds a directory ID if there is none."""
    seen: dict[str, str] = {}
    for directory in directories:
        cluster = next((plan for plan in directories if plan.clusterId is not None), directory)
        node = next((plan for plan in directories if plan.nodeId is not None), directory)
        path = os.path.join(directory.path, META)
        if directory.clusterId not in (None, cluster.clusterId):
            exception = f"RuntimeException: Invalid cluster.id in: {path}. Expected {cluster.clusterId}, but read"
            exception += f" {directory.clusterId}"
            ids = directory.clusterId, cluster.clusterId, cluster.path
            _differs("startup-cluster-id-differs", directory, exception, *ids)
        if directory.nodeId not in (None, node.nodeId):
            exception = f"Stored node id {directory.nodeId} doesn't match previous node id {node.nodeId}"
            exception = f"RuntimeException: {exception}"
            _differs(DIFFERS, directory, exception, directory.nodeId, node.nodeId, node.path)
        if directory.directoryId is None and META_CREATED.applies(release):
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
            exception = "RuntimeException: Invalid reserved directory ID"
            directory.stops.append(_stop(EXIT, "reserved", directory, exception, release, own=directory.directoryId))
        other = seen.setdefault(directory.directoryId, directory.path)
        if other != directory.path:
            exception = f"RuntimeException: Duplicate directory ID {directory.directoryId}"
            _differs("startup-directory-id-duplicate", directory, exception, directory.directoryId, None, other)


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
            kind = "Node" if is_kraft else "Broker"
            exception = f"Inconsistent{kind}IdException: Configured {ids} in meta.properties"
        _differs("startup-node-id-configured", directory, exception, directory.nodeId, node, server.path)


JBOD_LEVEL = 17
"""3.7-IV2: the first level at which controllers know in which directory a replica is (KIP-858, KAFKA-16606)."""


def registered(directories: list[DirectoryPlan], metadata: MetadataImage) -> Iterator[str]:
    """Compare the IDs with the cluster's metadata, which lists the directories of each broker: the node's own
    configuration is not on the disk. Yield what that assumes of it."""
    for directory in directories:
        if directory.stops or directory.nodeId is None or directory.directoryId is None or not directory.logDir:
            continue
        owner = metadata.owner_of(directory.directoryId)
        if owner is not None and owner != directory.nodeId:
            exception = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {owner}"
            _differs("startup-node-id-registered", directory, exception, directory.nodeId, owner)
            directory.owner = owner
            yield f"the broker's configuration has node.id={owner}"
        own = metadata.broker_directories.get(directory.nodeId)
        if owner is None and own:
            values = {"own": directory.directoryId, "node": directory.nodeId, "registered": ", ".join(own)}
            values["file"] = os.path.join(directory.path, META)
            directory.problems.append(Problem("startup-directory-id-unregistered", values))
    level = metadata.features.get(LEVEL, 0)
    if 0 < level < JBOD_LEVEL and sum(directory.logDir for directory in directories) > 1:
        directories[0].problems.append(Problem("startup-jbod-unsupported", {"level": metadata_levels()[level]}))


def is_reserved(directory_id: str) -> bool:
    """Return True if it is one of the first hundred IDs, which no directory may have (DirectoryId.reserved)."""
    try:
        data = base64.urlsafe_b64decode(f"{directory_id}==")
    except ValueError:
        return False
    return len(data) == 16 and not any(data[:8]) and int.from_bytes(data[8:], "big", signed=True) < 100


def identify_by_checkpoint(
    directories: list[DirectoryPlan], rights: Rights, release: KafkaRelease
) -> list[DirectoryPlan]:
    """Read each meta.properties into its directory's plan, and add the stops that follow from them. Return the
    directories whose file could be read."""
    stated: list[tuple[DirectoryPlan, dict[str, str]]] = []
    for directory in directories:
        path = os.path.join(directory.path, META)
        denial = rights.java_error(path)
        if not directory.failed and rights.barrier(directory.path) is not None:
            denial = access_denied(path)
        if denial is not None:
            directory.stops.append(_offline(directory, denial, release, rights))
            continue
        try:
            values = meta_values(path)
        except SourceError as error:  # kdump cannot read it; the broker may
            directory.unread.append(str(error))
            continue
        except BadLine as error:
            directory.stops.append(_stop(EXIT, "unreadable", directory, error.exception, release, reason=error))
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
        exception = "Shutdown broker because none of the specified log dirs can be created or validated"
        _stop_at_first(directories, exception)
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
    if META_CREATED.applies(release):
        exception = f"IOException: {os.path.abspath(directory.path)} is not a readable log directory."
        directory.stops.append(_failed_stop(OFFLINE, directory.path, directory, exception))
        return
    exception = f"KafkaException: No `meta.properties` found in {directory.path} (have you run `kafka-storage.sh` to"
    directory.stops.append(_missing_stop(directory, f"{exception} format the directory?)", release))


def _offline(directory: DirectoryPlan, error: JavaError, release: KafkaRelease, rights: Rights) -> StartupFailure:
    """Return the stop for a file that cannot be read: the directory goes offline; a KRaft node exits if it is
    metadata.log.dir."""
    path, text = os.path.join(directory.path, META), error.exception
    stop = denied(path, "read", text, rights)
    if error.reason:
        stop = _stop(OFFLINE, "unreadable", directory, text, release, reason=text)
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
        exception = "InconsistentBrokerMetadataException: BrokerMetadata is not consistent across log.dirs."
        if names == ["directory.id"]:
            ids = values.get(names[0]), expected.get(names[0]), first.path
            _differs("startup-directory-id-unknown", directory, exception, *ids)
            continue
        one = {"ids": ", ".join(names), "own": values.get(names[0]), "expected": expected.get(names[0])}
        case = "one" if len(names) == 1 else ""
        directory.stops.append(_stop(EXIT, "differ", directory, exception, release, case, other=first.path, **one))


def _parse(directory: DirectoryPlan, values: Mapping[str, str], release: KafkaRelease) -> None:
    """Add the stop for values that a node cannot use."""
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
        problem = "of-kraft" if release.mode == ZOOKEEPER and version == 1 else "unreadable"
        stop = _stop(EXIT, problem, directory, f"RuntimeException: {exception}", release, version=1, reason=exception)
        directory.stops.append(stop)
