"""Cluster, node and directory IDs: checks meta.properties, which a node reads before any log.

Source: MetaPropertiesEnsemble (load, verify), MetaProperties.Builder, KafkaRaftServer.initializeLogDirs.
"""

from __future__ import annotations

import base64
import os
import re

from kdump.forensics.restart.checkpoint_file import number, read_text
from kdump.forensics.restart.log_files import denied
from kdump.forensics.restart.plan import EXIT, OFFLINE, DirectoryPlan, RestartPlan, Step, Stop
from kdump.forensics.restart.rights import Rights
from kdump.format.text import properties
from kdump.log.errors import SourceError
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.state.image import Metadata

META = "meta.properties"


def identify(directories: list[DirectoryPlan], plan: RestartPlan, rights: Rights) -> None:
    """Read each meta.properties into its directory's plan, and add the stops that follow from them."""
    valid = []
    for directory in directories:
        path = os.path.join(directory.path, META)
        try:
            reason = rights.java_error(path) or _read(directory)
        except SourceError as error:  # kdump cannot read it; the broker may
            directory.unread.append(str(error))
            continue
        if reason is None:
            valid.append(directory)
            if directory.failed:
                what = f"IOException: {os.path.abspath(directory.path)} is not a readable log directory."
                directory.stops.append(denied(directory.path, "list", what, rights))
        elif reason == "":
            message = f"{directory.path if directory.failed else path} is missing"
            what = "RuntimeException: No readable meta.properties files found."
            if len(directories) > 1:
                what = f"RuntimeException: No `meta.properties` found in {directory.path}"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, _remedy(directory)))
        else:
            directory.stops.append(_unreadable(directory, path, reason, alone=len(directories) == 1))
    if not valid and len(directories) > 1 and not any(each.unread for each in directories):
        message = "no directory has a readable meta.properties"
        what = "RuntimeException: No readable meta.properties files found."
        plan.stops.append(Stop(EXIT, directories[0].path, None, None, message, what, _remedy(directories[0])))
    _agree(sorted(valid, key=lambda each: each.path))
    _one_metadata_log(valid, directories)


def _unreadable(directory: DirectoryPlan, path: str, reason: str, alone: bool) -> Stop:
    """Return the stop for a meta.properties that cannot be read. The directory goes offline and the broker uses the
    others; without others, or if it is metadata.log.dir, the node exits."""
    kind, what = OFFLINE, reason
    if alone:
        kind, what = EXIT, "RuntimeException: No readable meta.properties files found."
    elif directory.metadataLogDir:
        kind = EXIT
        what = f"RuntimeException: Encountered I/O error in metadata log directory {directory.path}. Cannot continue."
    elif "Exception" not in reason:
        what = f"RuntimeException: {reason}"
    message = f"{directory.path} is {directory.failed}" if directory.failed else f"{META}: {reason}"
    if directory.failed and not directory.failed.startswith("not "):
        message = f"{directory.path} cannot be read: {directory.failed}"
    return Stop(kind, path, None, None, message, what, _remedy(directory))


def _one_metadata_log(valid: list[DirectoryPlan], directories: list[DirectoryPlan]) -> None:
    """Add a stop for each metadata log outside metadata.log.dir (initializeLogDirs)."""
    configured = next((each.path for each in directories if each.metadataLogDir), "")
    for directory in valid:
        path = os.path.join(directory.path, f"{METADATA_TOPIC}-0")
        if directory.metadataLogDir or not os.path.exists(path):
            continue
        message = f"there is a metadata log here and in {configured}: a node has only one, in metadata.log.dir"
        what = f"KafkaException: Found unexpected metadata location in data directory `{path}`"
        remedy = f"check metadata.log.dir for the node's own, and move the other out of log.dirs (not {configured}"
        directory.stops.append(Stop(EXIT, path, None, None, message, what, f"{remedy} unless it is the older one)"))


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
    lines = read_text(os.path.join(directory.path, META), utf8=False)
    if lines is None:
        return ""
    text = "\n".join(line.text for line in lines).encode("utf-8", "surrogateescape")
    said = {line.values["name"]: line.values["value"] for line in properties(text) if line.values}
    directory.clusterId, directory.directoryId = said.get("cluster.id"), said.get("directory.id")
    directory.version = version = said.get("version", "0")
    if version not in ("0", "1"):
        return f"Unknown meta.properties version number {version}"
    name = "broker.id" if version == "0" and "broker.id" in said else "node.id"
    if version == "1" or name in said:
        if name not in said:
            return f"Failed to find {name}"
        directory.nodeId = number(said[name], 32)
        if directory.nodeId is None:
            return f"Unable to read {name} as a base-10 number: {said[name]!r}"
    if version == "1" and directory.clusterId is None:
        return "cluster.id was not found"
    if directory.directoryId is not None and not re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", directory.directoryId):
        return f"Unable to read directory.id as a Uuid: {directory.directoryId!r}"
    if directory.nodeId is None or directory.clusterId is None:
        return f"Error: {'node' if directory.nodeId is None else 'cluster'} ID not found"
    return None


def _agree(directories: list[DirectoryPlan]) -> None:
    """Check that all have the same cluster ID and node ID, and each its own directory ID."""
    seen: dict[str, str] = {}
    for directory in directories:
        first, path = directories[0], os.path.join(directory.path, META)
        here = f"check that {directory.path} belongs to this broker"
        if directory.clusterId != first.clusterId:
            message = f"cluster.id {directory.clusterId}, but {first.path} has {first.clusterId}"
            what = f"RuntimeException: Invalid cluster.id in: {path}. Expected {first.clusterId}, but read"
            directory.stops.append(Stop(EXIT, path, None, None, message, f"{what} {directory.clusterId}", here))
        if directory.nodeId != first.nodeId:
            message = f"node.id {directory.nodeId}, but {first.path} has {first.nodeId}"
            what = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {first.nodeId}"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, here))
        if directory.directoryId is None:
            directory.steps.append(Step("write", path, None, None, 0, "with a new directory.id, because it has none"))
            continue
        if is_reserved(directory.directoryId):
            message = f"directory.id {directory.directoryId} is reserved"
            what = "RuntimeException: Invalid reserved directory ID"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, _remedy(directory)))
        other = seen.setdefault(directory.directoryId, directory.path)
        if other != directory.path:
            message = f"directory.id {directory.directoryId} is also that of {other}"
            what = f"RuntimeException: Duplicate directory ID {directory.directoryId}"
            remedy = "one of them is a copy of the other: start the broker with only one"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, remedy))


def registered(directories: list[DirectoryPlan], metadata: Metadata, plan: RestartPlan) -> None:
    """Compare the IDs with the cluster's metadata, which lists the directories of each broker: the node's own
    configuration is not on the disk."""
    owners = {each: number for number, ids in metadata.broker_directories.items() for each in ids}
    for directory in directories:
        if directory.stops or directory.nodeId is None or directory.directoryId is None or not directory.logDir:
            continue
        path = os.path.join(directory.path, META)
        owner = owners.get(directory.directoryId)
        if owner is not None and owner != directory.nodeId:
            message = f"node.id {directory.nodeId}, but the cluster's metadata has this directory.id for broker {owner}"
            what = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {owner}"
            remedy = f"set node.id={owner} in {path}, if the broker's configuration has that ID"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, remedy))
            plan.assumptions.append(f"the broker's configuration has node.id={owner}")
        known = metadata.broker_directories.get(directory.nodeId)
        if owner is None and known:
            directory.warnings.append(
                f"directory.id {directory.directoryId} is not among those of broker {directory.nodeId} in the "
                f"cluster's metadata ({', '.join(known)}): partitions assigned to a different ID are not served until "
                "the controller has reassigned them; if the ID in meta.properties is wrong, correct it"
            )


def is_reserved(directory_id: str) -> bool:
    """Return True if it is one of the first hundred IDs, which no directory may have (DirectoryId.reserved)."""
    try:
        data = base64.urlsafe_b64decode(f"{directory_id}==")
    except ValueError:
        return False
    return len(data) == 16 and not any(data[:8]) and int.from_bytes(data[8:], "big", signed=True) < 100
