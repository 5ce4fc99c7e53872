"""Tells the log directories of several brokers apart: by cluster.id and node.id in meta.properties, and by the node
that has registered a directory.id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kdump.format.numbers import parse_int
from kdump.log import file_system
from kdump.log.directory_listing import is_url
from kdump.log.errors import SourceError
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.log.paths import UnlistedCollector
from kdump.log.region import Limits
from kdump.state.metadata import read_metadata
from kdump.state.metadata_image import MetadataImage
from kdump.state.newest_metadata import newest_metadata
from kdump.state.siblings import with_node_id
from kdump.state.small_files import properties


class Brokers(NamedTuple):
    """The paths of each node, by its ID; and the newest cluster metadata on any of them, with the directory that has
    it. `metadata` is None if there is none, or if all paths are those of one node."""

    paths: dict[int, list[str]]
    metadata: MetadataImage | None
    source: str


class _Directory(NamedTuple):
    """A path, the log directories at or below it, and what meta.properties states if there is one of them."""

    path: str
    places: list[str]
    cluster: str | None = None
    node: int | None = None
    directory: str | None = None


def brokers(paths: Iterable[str], limits: Limits) -> Brokers:
    """Return the paths by node. Directories of different clusters, or that do not state a node, are not told apart: no
    broker starts with such a mixture, which is what the plan of one broker says. Raises SourceError for a path that
    states no node next to paths of several nodes."""
    named = list(dict.fromkeys(paths))
    if len(named) < 2:
        return Brokers({-1: named}, None, "")
    found = [_directory(path) for path in named]
    nodes = {each.node for each in found if each.node is not None}
    if len(nodes) < 2 or len({each.cluster for each in found if each.cluster}) != 1:
        return Brokers({-1: [each.path for each in found]}, None, "")
    places = (place for each in found for place in each.places)
    source, metadata = newest_metadata((place, read_metadata(place, limits)) for place in places)
    registered = {} if metadata is None else metadata.broker_directories
    of_directory = {directory: node for node, each in registered.items() for directory in each}
    groups: dict[int, list[str]] = {}
    for each in found:
        node = of_directory.get(each.directory or "", each.node)
        if node is None:
            listed = ", ".join(map(str, sorted(nodes)))
            raise SourceError(
                f"{each.path}: no meta.properties states whose it is, next to log directories of nodes {listed}; pass "
                "those of its node alone"
            )
        groups.setdefault(node, []).append(each.path)
    if len(groups) == 1:
        metadata, source = None, ""
    return Brokers(dict(sorted(groups.items())), metadata, source)


def _directory(path: str) -> _Directory:
    if path == "-" or is_url(path) or not file_system.isdir(path):
        return _Directory(path, [])
    try:
        place = directory_at(path)
        collector = UnlistedCollector(lambda error: None)
        found = [place] if isinstance(place, LogDirectory) else list(find_directories(path, collector))
    except (OSError, SourceError):
        return _Directory(path, [])
    here = [each for each in found if isinstance(each, LogDirectory)]
    places = [each.path for each in here]
    if len(here) != 1:
        return _Directory(path, places)
    ids = with_node_id(properties(here[0].files.get("meta.properties")))
    return _Directory(path, places, ids.get("cluster.id"), parse_int(ids.get("node.id")), ids.get("directory.id"))
