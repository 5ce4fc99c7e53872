"""The log directories of a broker and their file systems: what is on them, what each lacks to reach the goal, and what
it lacks for the broker to start.

What is freed on one file system is no help to another: everything is computed by file system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kdump.cluster.disks import Node
from kdump.forensics.space.answers import FILES, JUDGE, NOTHING, REPLICA, STOPPED, SpaceKept, SpaceStep
from kdump.forensics.space.file_systems import FileSystem, file_system_of
from kdump.forensics.space.kept_files import kept_elsewhere
from kdump.forensics.space.shortage import Shortage
from kdump.forensics.space.startup_room import LEAST, needed_inodes
from kdump.forensics.space.startup_steps import Room, room_of
from kdump.forensics.space.usage import DirectoryUsage, read_usage
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.run import Run
from kdump.state.metadata_image import MetadataImage

GOAL = 0.15
"""Share of the file system that is free once the goal is reached, unless --need states another."""


class BrokerDisks:
    """What is on the disks of a broker. `systems`: the file systems by device; `sources`: paths of the log directories
    on each."""

    def __init__(self, broker: Node, run: Run) -> None:
        self.usages = [read_usage(each, run) for each in broker.directories]
        self.systems: dict[int, FileSystem] = {}
        self.sources: dict[int, frozenset[str]] = {}
        self._devices: dict[str, int] = {}
        self._needs: dict[str, int] = {}
        for usage in self.usages:
            path = usage.directory.path
            system = file_system_of(usage.directory)
            if system is not None:
                self.systems[system.device] = system
                self.sources[system.device] = self.sources.get(system.device, frozenset()) | {path}
                self._devices[path] = system.device

    def need(self, usage: DirectoryUsage, needed: int) -> None:
        """Set what must be free for the broker to start, because of one of its log directories."""
        self._needs[usage.directory.path] = needed

    def needed(self, usage: DirectoryUsage) -> int | None:
        """Return what was set by `need`; None for a running broker."""
        return self._needs.get(usage.directory.path)

    @property
    def needed_to_start(self) -> int | None:
        return sum(self._needs.values()) if self._needs else None

    def system(self, usage: DirectoryUsage) -> FileSystem | None:
        """Return the file system of a log directory, as it was when it was first looked at."""
        device = self._devices.get(usage.directory.path)
        return None if device is None else self.systems[device]

    def elsewhere(self, usage: DirectoryUsage) -> int | None:
        """Return what is used on the file system of a log directory by other files than those of the broker."""
        system = self.system(usage)
        return None if system is None else max(0, system.used - self._own(system.device))

    def kept_elsewhere(self) -> Iterator[SpaceKept]:
        """Yield what takes space outside of the log directories."""
        for device, system in self.systems.items():
            yield from kept_elsewhere(system, self._own(device))

    def shortages(self, need: int | None) -> list[Shortage]:
        """Return what each file system lacks to reach the goal; or all together, if `need` bytes are the goal."""
        if need is not None or not self.systems:
            return [Shortage(frozenset(each.directory.path for each in self.usages), need)]
        return [
            Shortage(self.sources[device], max(0, int(each.total * GOAL) - each.free))
            for device, each in self.systems.items()
        ]

    def rooms(self, steps: Sequence[SpaceStep]) -> list[Room]:
        """Return the file systems on which a startup lacks space, even after the steps that cost nothing."""
        found = []
        for device, sources in self.sources.items():
            missing = self._lacks(device) - room_of(steps, sources, (NOTHING, REPLICA))
            if missing > 0:
                found.append(Room(self._on(device), sources, missing, missing - room_of(steps, sources, (JUDGE,))))
        return found

    def missing_to_start(self, steps: Sequence[SpaceStep], state: str) -> int | None:
        """Return how many bytes a stopped broker still lacks to start after the steps that work before it starts; None
        if that does not apply, or is unknown."""
        if state != STOPPED or not self.systems:
            return None
        lacks = (
            self._lacks(device) - sum(each.frees for each in _before_start(steps, sources))
            for device, sources in self.sources.items()
        )
        return sum(max(0, each) for each in lacks)

    def left_at_start(self, steps: Sequence[SpaceStep]) -> Iterator[tuple[frozenset[str], int]]:
        """Yield the log directories of each file system, and what is free there when a stopped broker starts."""
        for device, sources in self.sources.items():
            freed = sum(each.frees for each in _before_start(steps, sources))
            yield sources, self.systems[device].free + freed

    def inodes_missing(self, steps: Sequence[SpaceStep], state: str) -> int:
        """Return how many inodes a stopped broker still lacks to start after these steps."""
        if state != STOPPED:
            return 0
        missing = 0
        for device, sources in self.sources.items():
            free = self.systems[device].inodes_free
            if free is not None:
                freed = sum(each.files for each in _before_start(steps, sources))
                missing += max(0, needed_inodes(self._logs(device)) - free - freed)
        return missing

    def is_full(self) -> bool:
        """Return whether the broker cannot start with what is free, or cannot go on."""
        return any(
            (each.inodes_free is not None and each.inodes_free < needed_inodes(self._logs(device)))
            or each.free < (self._need(device) if self._needs else LEAST)
            for device, each in self.systems.items()
        )

    def emptied_metadata(self, metadata: MetadataImage) -> str | None:
        """Return what is missing if the log of the broker's own metadata has been emptied, as by a recovery on a full
        disk (IO_ERROR_EMPTIES): it is then that of the last snapshot. None if it has not."""
        end = metadata.snapshot
        for usage in self.usages:
            for each in usage.in_state(""):
                is_empty = each.place.topic == METADATA_TOPIC and each.bases and not any(each.sizes)
                if is_empty and end is not None and each.bases[0] < end:
                    return f"{each.place.path} is empty, and what came after its snapshot at offset {end} is missing"
        return None

    def _on(self, device: int) -> list[DirectoryUsage]:
        return [each for each in self.usages if each.directory.path in self.sources[device]]

    def _own(self, device: int) -> int:
        return sum(each.allocated for each in self._on(device))

    def _logs(self, device: int) -> int:
        return sum(1 for usage in self._on(device) for _ in usage.live())

    def _need(self, device: int) -> int:
        return sum(self._needs.get(path, 0) for path in self.sources[device])

    def _lacks(self, device: int) -> int:
        return self._need(device) - self.systems[device].free


def _before_start(steps: Iterable[SpaceStep], sources: frozenset[str]) -> Iterator[SpaceStep]:
    """Yield the steps whose space is free before a stopped broker starts."""
    for each in steps:
        is_at_once = each.how == FILES or each.freesAfter == 0
        if each.source in sources and each.needs != "running" and is_at_once:
            yield each
