"""Bundles among the paths that a task reads. Each task mounts those that it needs: it may run in a process that has
read other paths, or an earlier version of the same bundle."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from kdump.io import file_system
from kdump.io.directory_listing import DirectoryEntry, is_url, items, names, real_path
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.log.bundle_names import CONTAINER, PACKED, bundle_of, is_bundle
from kdump.log.file_kinds import AT_ROOT, by_name
from kdump.log.find_directories import find_directories
from kdump.log.mounted_bundles import mount_bundles, origin, unmount_bundles
from kdump.log.paths import natural


def mount_for_task(paths: Iterable[str]) -> None:
    """Mount the bundles that these paths are, or are in, and no others. One that cannot be read now is not mounted, so
    that its files are missing."""
    unmount_bundles()
    for path in {place for place in map(bundle_of, paths) if place is not None}:
        try:
            mount_bundles([path])
        except SourceError:
            continue


def with_bundles(path: str) -> list[str]:
    """Return the bundles in a directory, and what else there may have Kafka's files or be what is left of a bundle. If
    there is no bundle, or if it is a log directory, where a bundle is a finding, return the path itself."""
    if is_url(path) or is_bundle(path) or bundle_of(path) is not None:
        return [path]
    try:
        entries = items(path)
    except OSError:
        return [path]
    bundles = {entry.path for entry in entries if is_bundle(entry.path)}
    if not bundles or AT_ROOT & {by_name(entry.name)[0] for entry in entries}:
        return [path]
    paths = [entry.path for entry in entries if entry.path in bundles or _may_be_read(entry)]
    return sorted(paths, key=natural)


def _may_be_read(entry: DirectoryEntry) -> bool:
    """Return True for what is next to bundles and must not be left out without a word."""
    if not entry.is_directory:
        return by_name(entry.name)[0] is not None or PACKED in entry.name
    unlisted: list[SourceError] = []
    try:
        has_files = next(find_directories(entry.path, Run(unreadable=unlisted.append)), None) is not None
    except SourceError:  # there is nothing, unless its manifest is missing
        return any(name.endswith(CONTAINER) for name in _names(f"{entry.path}/0"))
    return has_files or bool(unlisted)


def _names(path: str) -> list[str]:
    try:
        return names(path)
    except OSError:
        return []


def recorded_place(path: str) -> str | None:
    """Return the host and the path there of a log directory in a bundle that is mounted; None for any other path."""
    host, place = origin(path)
    return None if host is None else f"{host}:{place}"


def place_on_host(path: str) -> str | None:
    """Return the host and the path there of a log directory: this host's, or those that a bundle records. The path is
    without links if it is of this host. None for a URL."""
    own = f"{socket.gethostname()}:"
    recorded = recorded_place(path) or own + path
    return None if is_url(path) else own + real_path(recorded[len(own) :]) if recorded.startswith(own) else recorded


def same_place(sources: Iterable[tuple[str, str | None, str | None]], remedy: str) -> str | None:
    """Return the message for two bundles without IDs that were made of the same path on hosts of the same name; None if
    there are none. `sources`: path, recorded place if it is a bundle that nothing else identifies, and broker of each
    source."""
    seen: dict[tuple[str, str | None], str] = {}
    for path, recorded, broker in sources:
        if recorded is None:
            continue
        other = seen.setdefault((recorded, broker), path)
        if other != path:
            return (
                f"{other} and {path} are both bundles of {recorded}, without meta.properties: are they two brokers, or"
                f" the same disk twice? Name the brokers with {remedy}, or leave one out"
            )
    return None


def content_of(path: str) -> str:
    """Return what a bundle that contains a path has of its disk; empty if the path is in none. The same file can have
    more in another bundle."""
    tree = file_system.tree_at(path)
    manifest = getattr(tree[0], "manifest", None) if tree is not None else None
    return f"{manifest.depth} {manifest.internal} {sorted(manifest.topics)}" if manifest is not None else ""
