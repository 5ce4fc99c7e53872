"""Identity of the disk that a row comes from, and the rule by which two disks are copies of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

BY_NODE, BY_PLACE, BY_OPTION, BY_PATH = "node.id and partitions", "host and path", "option and path", "path"
"""What distinguishes a disk without a directory.id from others (column identifiedBy)."""


@dataclass(frozen=True)
class DiskIdentity:
    """The owner of a place, as in the columns of the same names."""

    cluster: str | None = None
    broker: str | None = None
    logDirectory: str | None = None
    copyOf: str | None = None
    identifiedBy: str | None = None


class DiskFacts(NamedTuple):
    """What a place is recognized by. `partitions`: names of the live ones if it is a log directory without a
    directory.id; the name of a partition itself. `on_host`: the host of the disk and the path there, if there are no
    IDs."""

    path: str
    identity: DiskIdentity
    is_log_directory: bool
    partitions: tuple[str, ...] = ()
    on_host: str | None = None

    def names(self) -> list[tuple[str | None, ...]]:
        """Return names of which a copy of the same disk or partition has one, too; none if nothing identifies it."""
        owner = (self.identity.cluster, self.identity.broker)
        if not (self.is_log_directory or self.partitions):
            return []
        if self.identity.cluster is None:
            return [(self.on_host, self.identity.broker)] if self.on_host is not None else []
        if not self.is_log_directory:
            return [(*owner, self.identity.logDirectory, "", name) for name in self.partitions]
        if self.identity.logDirectory is not None:
            return [(*owner, self.identity.logDirectory)]
        return [(*owner, "", name) for name in self.partitions]


def with_copies(places: Iterable[DiskFacts]) -> Iterator[DiskIdentity]:
    """Yield the identity of each place, with `copyOf` if it is a copy of an earlier one: a log directory with the same
    cluster, broker and directory.id. Without a directory.id (before KIP-858), a directory is a copy if it has a
    partition that an earlier one of the same broker has, because a broker cannot have a partition twice. A single
    partition is a copy of another one of the same name. Without any IDs, a disk and a bundle that was made of it are
    known by the host and the path."""
    first: dict[tuple[str | None, ...], str] = {}
    for place in places:
        names = place.names()
        before = next((first[name] for name in names if name in first), None)
        yield place.identity if before is None else replace(place.identity, copyOf=before)
        for name in names:
            first.setdefault(name, place.path)
