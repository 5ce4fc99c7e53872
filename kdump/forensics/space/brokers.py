"""The broker whose disk is full, and the other brokers of its cluster, whose disks or bundles are given with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdump.forensics.restart.lock_holder import lock_holder
from kdump.forensics.space.answers import RUNNING, STOPPED, UNKNOWN
from kdump.forensics.space.file_systems import not_the_disk
from kdump.format.numbers import parse_int
from kdump.log.errors import OnUnreadable, SourceError
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory
from kdump.log.region import Limits
from kdump.state.identity import meta_properties
from kdump.state.metadata import read_metadata
from kdump.state.metadata_image import MetadataImage
from kdump.state.newest_metadata import newest_metadata
from kdump.state.siblings import with_node_id


@dataclass
class BrokerDirectories:
    """Log directories of one broker. `metadata`: the newest of the copies on them; None if there is none."""

    node_id: int | None
    cluster_id: str | None
    directories: list[LogDirectory] = field(default_factory=list)
    ids: list[Mapping[str, str]] = field(default_factory=list)
    metadata: MetadataImage | None = None

    @property
    def state(self) -> str:
        """Whether the broker is running, by the locks on its log directories."""
        if any(not_the_disk(each) is not None for each in self.directories):
            return UNKNOWN
        return RUNNING if any(lock_holder(each.path) is not None for each in self.directories) else STOPPED


def read_brokers(paths: Iterable[str], limits: Limits, on_unreadable: OnUnreadable) -> list[BrokerDirectories]:
    """Return the log directories at or below the paths, by broker: those with the same cluster.id and node.id; without
    these IDs, all of one path are one broker's. A second copy of a log directory (the same directory.id) is left out.
    Raises SourceError for a path that has no log directory."""
    found: dict[tuple[str, str], BrokerDirectories] = {}
    for path in dict.fromkeys(paths):
        here = [each for each in find_directories(path, on_unreadable) if isinstance(each, LogDirectory)]
        if not here:
            raise SourceError(f"{path}: not a log directory; pass a broker's log directories")
        for directory in here:
            ids = with_node_id(dict(meta_properties(directory)))
            cluster, node = ids.get("cluster.id"), ids.get("node.id")
            key = (cluster or "", node if node is not None else f"path {path}")
            broker = found.setdefault(key, BrokerDirectories(parse_int(node), cluster))
            own = ids.get("directory.id")
            is_copy = own is not None and any(each.get("directory.id") == own for each in broker.ids)
            if is_copy or any(each.path == directory.path for each in broker.directories):
                continue
            broker.directories.append(directory)
            broker.ids.append(ids)
    for broker in found.values():
        paths = (each.path for each in broker.directories)
        _, broker.metadata = newest_metadata((path, read_metadata(path, limits)) for path in paths)
    return list(found.values())
