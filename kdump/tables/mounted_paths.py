"""What is mounted of the paths that a task reads. Each task mounts what it needs: it may run in a process that has read
other paths, or an earlier version of the same file."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from kdump.io.directory_listing import DirectoryEntry, is_url, items, names, real_path
from kdump.io.errors import SourceError
from kdump.io.mounted_paths import is_left_of_one, is_mount_point, mount_paths, mount_point, origin, unmount_paths
from kdump.io.run import Run
from kdump.log.file_kinds import AT_ROOT, by_name
from kdump.log.find_directories import find_directories
from kdump.log.paths import natural


def mount_for_task(paths: Iterable[str]) -> None:
    """Mount what these paths are, or are in, and nothing else. One that cannot be read now is not mounted, so
    that its files are missing."""
    unmount_paths()
    for path in {place for place in map(mount_point, paths) if place is not None}:
        try:
            mount_paths([path])
        except SourceError:
            continue


def with_mounts(path: str) -> list[str]:
    """Return what can be mounted in a directory, and what else there may have Kafka's files or be what is left of such
    a thing. If there is none, or if it is a log directory, where one is a finding, return the path itself."""
    if is_url(path) or mount_point(path) is not None:
        return [path]
    try:
        entries = items(path)
    except OSError:
        return [path]
    points = {entry.path for entry in entries if is_mount_point(entry.path)}
    if not points or AT_ROOT & {by_name(entry.name)[0] for entry in entries}:
        return [path]
    paths = [entry.path for entry in entries if entry.path in points or _may_be_read(entry)]
    return sorted(paths, key=natural)


def _may_be_read(entry: DirectoryEntry) -> bool:
    """Return True for what is next to a mount point and must not be left out without a word."""
    if not entry.is_directory:
        return by_name(entry.name)[0] is not None or is_left_of_one(entry.name, ())
    unlisted: list[SourceError] = []
    try:
        has_files = next(find_directories(entry.path, Run(unreadable=unlisted.append)), None) is not None
    except SourceError:  # there is nothing, unless its manifest is missing
        return is_left_of_one("", _names(f"{entry.path}/0"))
    return has_files or bool(unlisted)


def _names(path: str) -> list[str]:
    try:
        return names(path)
    except OSError:
        return []


def recorded_place(path: str) -> str | None:
    """Return the host and the path there of a log directory that is mounted; None for any other path."""
    host, place = origin(path)
    return None if host is None else f"{host}:{place}"


def place_on_host(path: str) -> str | None:
    """Return the host and the path there of a log directory: this host's, or those of what is mounted. The path is
    without links if it is of this host. None for a URL."""
    own = f"{socket.gethostname()}:"
    recorded = recorded_place(path) or own + path
    return None if is_url(path) else own + real_path(recorded[len(own) :]) if recorded.startswith(own) else recorded


def same_place(sources: Iterable[tuple[str, str | None, str | None]], remedy: str) -> str | None:
    """Return the message for two sources without IDs that were made of the same path on hosts of the same name; None if
    there are none. `sources`: path, recorded place if nothing else identifies it, and broker of each source."""
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
