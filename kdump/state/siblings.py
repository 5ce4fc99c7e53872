"""The other log directories of a node, among the paths of a command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from kdump.log import file_system
from kdump.log.directory_listing import is_url
from kdump.log.errors import SourceError
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory
from kdump.log.paths import UnlistedCollector
from kdump.state.small_files import properties


def with_node_id(found: dict[str, str]) -> dict[str, str]:
    """Return the content of a meta.properties with the name node.id, which was broker.id before KRaft."""
    if "broker.id" in found:
        found.setdefault("node.id", found["broker.id"])
    return found


def same_broker(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return True if two meta.properties are from different log directories of one broker, not from copies of one."""
    names = ("cluster.id", "node.id")
    return all(one.get(name) is not None and one.get(name) == other.get(name) for name in names) and (
        one.get("directory.id") is not None and one.get("directory.id") != other.get("directory.id")
    )


def unlisted(paths: Iterable[str], found: Iterable[str], collector: UnlistedCollector) -> list[str]:
    """Return the directories that cannot be listed, or do not exist, each of which may be another log directory of a
    broker. `paths`: those of the command; `found`: those of what is in them; `collector`: of the search."""
    return [
        *collector.apart_from(found),
        *(path for path in paths if path != "-" and not is_url(path) and not file_system.exists(path)),
    ]


class _Found(NamedTuple):
    """The log directories in the paths, each with its meta.properties, and what may be one."""

    directories: list[tuple[str, dict[str, str]]]
    unlisted: list[str]


class Siblings:
    """Finds the other log directories of a node in `paths`, which are searched when they are first needed."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)

    def of(self, own: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return the paths of the node's other log directories, and of directories that cannot be listed and may be
        such. `own`: the content of the log directory's meta.properties."""
        return [path for path, ids in self._found.directories if same_broker(own, ids)], self._found.unlisted

    @cached_property
    def _found(self) -> _Found:
        collector = UnlistedCollector(lambda error: None)
        directories, every = [], []
        for path in self.paths:
            try:
                for place in find_directories(path, collector):
                    every.append(place.path)
                    if isinstance(place, LogDirectory):
                        ids = with_node_id(properties(place.files.get("meta.properties")))
                        directories.append((place.path, ids))
            except SourceError:
                continue
        return _Found(directories, unlisted(self.paths, every, collector))
