"""Finds the schemas by which records are decoded: in a registry's topic on a disk, or in what was exported from it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from kdump.cluster.schema_registries import RegistryLog, find_registries, read_registry, versions_in_deleted_logs
from kdump.decode.known_schemas import KnownSchemas
from kdump.io import file_system
from kdump.io.directory_listing import parent
from kdump.io.errors import SourceError, listing_error
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.log.paths import target
from kdump.state.schema_registry import SchemaRegistry
from kdump.state.schema_registry_replay import RegistryReplay

MAX_EXPORT_BYTES = 256 * 1024 * 1024
"""Maximum size in bytes of a file with exported schemas."""


def schemas_at(path: str) -> KnownSchemas:
    """Return the schemas at a path: a log directory, a directory or segment of the registry's topic, whatever its name,
    the directory that `kdump registry --export` writes, or a file with the answer of a registry to GET /schemas. Raises
    SourceError."""
    exported = exported_schemas(path)
    if exported is not None:
        return KnownSchemas(exported)
    problems: list[SourceError] = []
    for topic in (SCHEMAS_TOPIC, target(path).topic, target(os.path.join(path, "0.log")).topic):
        logs = find_registries([path], topic, Run(unreadable=problems.append)).registries if topic else []
        if logs:
            return _only(path, logs)
    raise problems[0] if problems else SourceError.at(path, f"no {SCHEMAS_TOPIC} found")


def schemas_beside(directory: str, others: Iterable[str]) -> KnownSchemas | None:
    """Return the schemas of the registry in this log directory or, of the same cluster, in one of the others; None if
    there is none. Raises SourceError."""
    own = os.path.join(directory, f"{SCHEMAS_TOPIC}-0")
    if file_system.isdir(own):
        if file_system.isdir(os.path.join(directory, f"{SCHEMAS_TOPIC}-1")):
            raise SourceError.at(directory, f"{SCHEMAS_TOPIC} has several partitions, which a registry rejects")
        return _only(own, find_registries([own], SCHEMAS_TOPIC, PLAIN_RUN).registries)
    registries = find_registries([directory, *others], SCHEMAS_TOPIC, PLAIN_RUN)
    mine = [
        registry
        for registry in registries.registries
        if registry.cluster == registries.topics.disks.cluster_at(directory)
    ]
    return _only(directory, mine) if mine else None


def _only(path: str, logs: list[RegistryLog]) -> KnownSchemas:
    if len(logs) > 1:
        several = "several partitions" if len({log.cluster for log in logs}) < len(logs) else "several clusters"
        raise SourceError.at(path, f"{len(logs)} registries found, not one: {several}; name the directory of one")
    (registry,) = logs
    state = read_registry(registry, keep_gone=True)
    gone = [version for _, version in versions_in_deleted_logs(registry.deleted, state)]
    return KnownSchemas(state, parent(registry.log.path), gone)


def exported_schemas(path: str) -> SchemaRegistry | None:
    """Return the registry of which a file or the files of a directory are an export; None if they are none. Raises
    SourceError if they cannot be read."""
    if file_system.tree_at(path) is not None:
        return None
    try:
        if file_system.isdir(path):
            names = sorted(name for name in file_system.listdir(path) if name.endswith(".json"))
            files = [os.path.join(path, name) for name in names]
        elif file_system.isfile(path) and target(path).kind is None:
            files = [path]
        else:
            return None
        registry = SchemaRegistry()
        replay = RegistryReplay(registry, keep_gone=True)
        for file in files:
            for value in _values(file):
                replay.register(value)
    except OSError as error:
        raise SourceError(listing_error(error, path)) from None
    return registry if registry.end_offset else None


def _values(file: str) -> Iterator[dict[str, Any]]:
    """Yield the versions in a file: an object, a list of them, or one in each line."""
    if file_system.getsize(file) > MAX_EXPORT_BYTES:
        raise SourceError.at(file, f"too large to be an export of schemas (at most {MAX_EXPORT_BYTES} bytes)")
    with open(file, "rb") as stream:
        start = stream.read(1)
        if start not in (b"[", b"{"):
            return
        stream.seek(0)
        content = stream.read()
    try:
        try:
            values = json.loads(content)
        except json.JSONDecodeError:
            values = [json.loads(line) for line in content.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise SourceError.at(file, f"not JSON: {type(error).__name__}: {error}") from None
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, dict) and isinstance(value.get("schema"), str) and "version" in value:
            yield _stored(value)


def _stored(value: dict[str, Any]) -> dict[str, Any]:
    """Return an exported version as a registry stores it: with the hash of which the GUID consists."""
    guid = str(value.get("guid", "")).replace("-", "")
    try:
        md5 = base64.b64encode(bytes.fromhex(guid)).decode()
    except ValueError:
        return value
    return value | ({"md5": md5} if len(guid) == 32 else {})
