"""Which other brokers have what is damaged on one: the batches of their copies are read and checked."""

from __future__ import annotations

from kdump.check.engine.units import CheckUnit
from kdump.check.finding import Finding
from kdump.format.number_range import Range
from kdump.incident.doctor.disks import Disks
from kdump.io.errors import SourceError
from kdump.kafka.small_files import topic_id
from kdump.log.batch_validity import is_valid
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.log.selection import Selection
from kdump.log.start_position import start_position

MAX_BATCHES = 10_000
"""Maximum number of batches that are read of a copy: what is not found then is unknown."""


class IntactCopies:
    """The partitions of the disks, by topic and number."""

    def __init__(self, disks: Disks) -> None:
        self.options = disks.options
        self._cluster = {
            directory.path: number for number, own in enumerate(disks.clusters.values()) for directory in own
        }
        self._broker = {
            directory.path: broker
            for broker in disks.brokers
            for directory in broker.directories
            if directory.path not in broker.copy_of
        }
        self._copies: dict[tuple[str, int], list[PartitionDirectory]] = {}
        if len(disks.brokers) > 1:
            for unit in disks.units:
                place = unit.partition
                if place is not None and not place.state and place.topic is not None and place.partition is not None:
                    self._copies.setdefault((place.topic, place.partition), []).append(place)

    def of(self, finding: Finding, unit: CheckUnit) -> tuple[bool | None, list[str]]:
        """Return whether another broker has the offsets of a finding intact, None if that is unknown because not all
        replicas are here; and the directories of those that have them."""
        last = finding.offset if finding.next_offset is None else finding.next_offset - 1
        return self.of_offsets(finding.offset, last, unit)

    def of_offsets(self, first: int | None, last: int | None, unit: CheckUnit) -> tuple[bool | None, list[str]]:
        """Return the same for these offsets."""
        place, replicas = unit.partition, unit.known.replicas
        if place is None or place.topic is None or place.partition is None or first is None or last is None:
            return None, []
        intact: list[str] = []
        without: set[int | None] = set()
        for copy in self._copies.get((place.topic, place.partition), ()):
            broker = self._broker.get(copy.source)
            if broker is None or broker is self._broker.get(place.source):
                continue
            if self._cluster[copy.source] != self._cluster.get(place.source):
                continue
            if topic_id(copy) != topic_id(place):
                continue
            has = self._has(copy, first, last)
            if has:
                intact.append(copy.path)
            elif has is not None:
                without.add(broker.node_id)
        all_lack = replicas is not None and without >= set(replicas.brokers)
        return True if intact else False if all_lack else None, intact

    def _has(self, copy: PartitionDirectory, first: int, last: int) -> bool | None:
        """Return whether valid batches of a copy cover the offsets; None if that is unknown."""
        logs = [segment.log for segment in copy.segments if segment.log is not None]
        below = [log for log in logs if (log.name_offset or 0) <= first]
        wanted = first
        try:
            for log in (*below[-1:], *(log for log in logs if first < (log.name_offset or 0) <= last)):
                window = self.options.open(log)
                try:
                    start = start_position(Selection(offsets=Range(wanted, last)), log, window)
                    every = regions(window, name_offset=log.name_offset, start=start, limits=self.options.limits)
                    for number, region in enumerate(every):
                        if number > MAX_BATCHES:
                            return None
                        if not isinstance(region, Batch) or not is_valid(region) or region.lastOffset < wanted:
                            continue
                        if (region.lastOffset if region.baseOffset is None else region.baseOffset) > wanted:
                            return False
                        wanted = region.lastOffset + 1
                        if wanted > last:
                            return True
                finally:
                    window.source.close()
        except SourceError:
            return None
        return False
