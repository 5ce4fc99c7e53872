"""Options of a check: what to check, and how to read the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kdump.format.kafka_release import KafkaRelease
from kdump.io.fault_tolerant import refuse_zeros
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import Source, open_source
from kdump.io.window import DEFAULT_SIZE, Window
from kdump.log.file_kinds import SEGMENT
from kdump.log.live_files import open_target
from kdump.log.paths import Target
from kdump.query import option

if TYPE_CHECKING:  # a check of a single file needs no disks
    from kdump.cluster.disks import Disks
    from kdump.kafka.server_properties import ServerProperties
    from kdump.log.log_directory import Place
    from kdump.log.remote_objects import RemoteStorage
    from kdump.problems.catalogue import Declaration

__all__ = ["Options"]


CRC_FAMILIES = frozenset({"bytes", "offsets"})
"""The families for which headers and checksums are enough."""


@dataclass(frozen=True)
class Options(Run):
    """Options of a check, which is a run. `only`: names of families, empty for all; family bytes is always checked.
    `headers_only`: checksums, headers and offsets, with nothing decompressed. Times in ms, sizes in bytes;
    `open_source` opens a path."""

    only: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()
    headers_only: bool = False
    transaction_timeout: int = 900_000
    max_message_bytes: int | None = None
    now: int = 0
    window: int = option("--window", type="size", default=DEFAULT_SIZE, hidden=True)
    open_source: Callable[[str], Source] = open_source
    kafka_version: KafkaRelease | None = None
    """The release whose rules apply; None: the one that the disk states."""
    server: ServerProperties | None = None
    """The node's server.properties; None: its roles and directories are not known."""
    servers: tuple[ServerProperties, ...] = ()  # those that were found for the nodes
    remote: RemoteStorage | None = None
    """The remote storage to check; None: none is."""

    @classmethod
    def of(cls, run: Run, **more: Any) -> Options:
        """Return options that read and tell as the run does. `more`: other fields."""
        return cls(**({field.name: getattr(run, field.name) for field in fields(run)} | more))

    @classmethod
    def given(cls, run: Run | None, **defaults: Any) -> Options:
        """Return the run if it is options; else options that read and tell as it does, with these defaults."""
        return run if isinstance(run, cls) else cls.of(run or PLAIN_RUN, **defaults)

    @classmethod
    def as_of(cls, run: Run | None, now: int | None = None, **more: Any) -> Options:
        """Return options that read and tell as the run does, with ages at `now`, by default the current time. `more`:
        other fields, of which None sets nothing."""
        given = {name: value for name, value in more.items() if value is not None}
        if now is None and not (isinstance(run, cls) and run.now):
            now = round(time.time() * 1000)
        return cls.of(run or PLAIN_RUN, **(given if now is None else given | {"now": now}))

    def open(self, target: Target) -> Window:
        """Open a window over the file. Raises SourceError, as reads do if the device cannot read bytes of a file other
        than a segment: zeros in their place would be findings."""
        source = open_target(target, self.open_source)
        if target.kind not in (None, SEGMENT):
            refuse_zeros(source)
        window = Window(source, self.window)
        window.is_nameless = target.kind is None
        return window

    def disks(self, places: Iterable[Place], unlisted: Sequence[str] = ()) -> Disks:
        """Return the disks that consist of what was found, read with these options."""
        from kdump.cluster.disks import Disks

        return Disks(places, self.open, self, unlisted, self.server, self.servers)

    def disks_at(self, paths: Iterable[str]) -> Disks:
        """Return what is at or below the paths, read with these options; see Disks.at."""
        from kdump.cluster.disks import Disks

        return Disks.at(paths, self, open_=self.open, server=self.server, servers=self.servers)

    @cached_property
    def chosen(self) -> frozenset[str]:
        """The families to check."""
        from kdump.problems.catalogue import FAMILIES, families

        names = self.only or (CRC_FAMILIES if self.headers_only else {*FAMILIES})
        return frozenset(family for name in {*names, "bytes"} for family in families(name))

    def wants(self, code: Declaration) -> bool:
        """Return True if findings with this code are to be reported."""
        return code.code not in self.ignore and (code.always_checked or code.family in self.chosen)
