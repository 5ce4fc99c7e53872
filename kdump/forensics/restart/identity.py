"""Whose the log directories are: meta.properties as a node reads them first of all, before any log.

Source: MetaPropertiesEnsemble (load, verify), MetaProperties.Builder, KafkaRaftServer.initializeLogDirs.
"""

from __future__ import annotations

import os
import re

from kdump.forensics.restart.checkpoint_file import number, read_text
from kdump.forensics.restart.plan import EXIT, DirectoryPlan, RestartPlan, Step, Stop
from kdump.format.text import properties
from kdump.log.errors import SourceError
from kdump.state.image import Metadata

META = "meta.properties"
RESERVED = {"A" * 21 + suffix for suffix in ("A", "Q", "g", "w")}
"""Directory ids with a meaning of their own begin with zeros (DirectoryId.reserved: the first hundred)."""


def identify(directories: list[DirectoryPlan], plan: RestartPlan) -> None:
    """Reads each meta.properties, and tells what stops the node."""
    valid = []
    for directory in directories:
        try:
            reason = _read(directory)
        except SourceError as error:  # kdump cannot read it; the broker may
            directory.unread.append(str(error))
            continue
        path = os.path.join(directory.path, META)
        if reason is None:
            valid.append(directory)
        elif len(directories) == 1 or reason == "":
            message = reason or f"{path} is missing"
            what = "RuntimeException: No readable meta.properties files found."
            if len(directories) > 1:
                what = f"RuntimeException: No `meta.properties` found in {directory.path}"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, _remedy(path)))
        else:
            # One that cannot be read is an offline directory, and the others serve.
            directory.stops.append(
                Stop("offline", path, None, None, reason, f"RuntimeException: {reason}", _remedy(path))
            )
    if not valid and len(directories) > 1 and not any(each.unread for each in directories):
        message = "no log directory has a meta.properties that can be read"
        what = "RuntimeException: No readable meta.properties files found."
        plan.stops.append(Stop(EXIT, directories[0].path, None, None, message, what, _remedy(directories[0].path)))
    _agree(valid)


def _remedy(path: str) -> str:
    return (
        f"write {path} again, as the other log directories have it: version=1, cluster.id, node.id, directory.id"
        " (kdump cluster --show brokers names the ids); do not format the directory"
    )


def _read(directory: DirectoryPlan) -> str | None:
    """Why the broker cannot read the file; empty if it is missing, None if it is sound. Raises SourceError."""
    lines = read_text(os.path.join(directory.path, META), utf8=False)
    if lines is None:
        return ""
    text = "\n".join(line.text for line in lines).encode("utf-8", "surrogateescape")
    said = {line.values["name"]: line.values["value"] for line in properties(text) if line.values}
    directory.clusterId, directory.directoryId = said.get("cluster.id"), said.get("directory.id")
    version = said.get("version", "0")
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
    """One cluster, one node, and a directory.id of its own each."""
    seen: dict[str, str] = {}
    for directory in directories:
        first, path = directories[0], os.path.join(directory.path, META)
        here = f"is {directory.path} a disk of this broker?"
        if directory.clusterId != first.clusterId:
            message = f"cluster.id {directory.clusterId}, but {first.path} has {first.clusterId}"
            what = f"RuntimeException: Invalid cluster.id in: {path}. Expected {first.clusterId}, but read"
            directory.stops.append(Stop(EXIT, path, None, None, message, f"{what} {directory.clusterId}", here))
        if directory.nodeId != first.nodeId:
            message = f"node.id {directory.nodeId}, but {first.path} has {first.nodeId}"
            what = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {first.nodeId}"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, here))
        if directory.directoryId is None:
            directory.steps.append(Step("write", path, None, None, 0, "with a new directory.id: it has none"))
            continue
        if directory.directoryId in RESERVED:
            message = f"directory.id {directory.directoryId} is reserved"
            what = "RuntimeException: Invalid reserved directory ID"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, _remedy(path)))
        other = seen.setdefault(directory.directoryId, directory.path)
        if other != directory.path:
            message = f"directory.id {directory.directoryId} is that of {other} too"
            what = f"RuntimeException: Duplicate directory ID {directory.directoryId}"
            remedy = "one of them is a copy of the other: start with only one"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, remedy))


def registered(directories: list[DirectoryPlan], metadata: Metadata, plan: RestartPlan) -> None:
    """The ids beside those that the cluster knows: the node's own configuration is not on the disk, but the cluster's
    metadata says which broker has which directories."""
    owners = {each: number for number, ids in metadata.broker_directories.items() for each in ids}
    for directory in directories:
        if directory.stops or directory.nodeId is None or directory.directoryId is None:
            continue
        path = os.path.join(directory.path, META)
        owner = owners.get(directory.directoryId)
        if owner is not None and owner != directory.nodeId:
            message = f"node.id {directory.nodeId}, but the cluster knows this directory.id as one of broker {owner}"
            what = f"RuntimeException: Stored node id {directory.nodeId} doesn't match previous node id {owner}"
            remedy = f"set node.id={owner} in {path}, if that is what the broker's configuration says"
            directory.stops.append(Stop(EXIT, path, None, None, message, what, remedy))
            plan.assumptions.append(f"the broker's configuration says node.id={owner}")
        known = metadata.broker_directories.get(directory.nodeId)
        if owner is None and known:
            directory.warnings.append(
                f"directory.id {directory.directoryId} is not among those that the cluster knows of broker "
                f"{directory.nodeId} ({', '.join(known)}): partitions that are assigned to another id are not served "
                "until the controller has reassigned them; a wrong id in meta.properties is to be put right"
            )
