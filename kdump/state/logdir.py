"""A log directory at a glance: whose it is, how its broker ended, what is in each partition and how much of the disk
that takes. Names and sizes come first, from the directories alone; headers are read partition by partition."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from kdump.log import kinds
from kdump.log.disk import REMOTE_CACHE, LogDirectory, Partition, place_of
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.state.partition_log import PartitionFacts, partition_facts, sizes_of
from kdump.state.small_files import offsets, properties


@dataclass
class DirectoryFacts:
    """A log directory. `identity` is what meta.properties says; `clean` whether its broker shut down cleanly, None for
    a directory that has no checkpoints: a controller's, or a copy of partitions."""

    directory: LogDirectory
    identity: dict[str, str]
    partitions: list[PartitionFacts]
    clean: bool | None
    shutdown: dict[str, str]
    """What .kafka_cleanshutdown says: version, brokerEpoch."""
    dated: int | None
    """When .kafka_cleanshutdown was written, or, without it, the newest checkpoint: epoch ms of the file. A copy that
    did not keep times has its own."""
    absent: list[str]
    """Live partitions that the checkpoints name and that are not here."""
    remote_cache: int
    """Bytes of the copies of a tier's indexes."""
    broken: list[str]
    """Names of small files at the root that are damaged or cannot be read."""

    @property
    def live(self) -> list[PartitionFacts]:
        return [facts for facts in self.partitions if not facts.partition.state]


CHECKPOINTS = ("log-start-offset", "replication-offset", "recovery-point-offset")
Noted = dict[tuple[str, int], dict[str, int]]
"""Offsets by topic and partition, and by the checkpoint's name less '-checkpoint'."""


def noted_offsets(directory: LogDirectory, broken: list[str] | None = None) -> Noted:
    """What the offset checkpoints of a log directory say, as far as they can be read."""
    noted: Noted = {}
    for name in CHECKPOINTS:
        for key, offset in offsets(directory.files.get(name + "-checkpoint"), broken).items():
            noted.setdefault(key, {})[name] = offset
    return noted


def was_clean(directory: LogDirectory) -> bool | None:
    """Whether the broker shut down cleanly; None where no broker has run: it would have left checkpoints."""
    ran = any(at.kind in (kinds.OFFSET_CHECKPOINT, kinds.CLEAN_SHUTDOWN) for at in directory.files.values())
    return directory.is_clean if ran else None


def facts_in(place: Partition, clean: bool | None, noted: Noted) -> PartitionFacts:
    """The facts of a partition of a log directory; its offsets are taken out of `noted`."""
    # The metadata log is recovered at every start, however the last run ended (KafkaRaftLog).
    facts = partition_facts(place, False if place.topic == METADATA_TOPIC else clean)
    if not place.state and place.topic is not None and place.partition is not None:
        facts.checkpoints = noted.pop((place.topic, place.partition), {})
    return facts


def facts_alone(place: Partition) -> PartitionFacts:
    """The facts of a partition's directory that was asked for; the log directory that it lies in says more."""
    above = place_of(os.path.dirname(os.path.abspath(place.path)))
    if isinstance(above, LogDirectory):
        return facts_in(place, was_clean(above), noted_offsets(above))
    return partition_facts(place)


def directory_facts(directory: LogDirectory) -> DirectoryFacts:
    """What the files at the root, and names and sizes below it, tell of a log directory."""
    broken: list[str] = []
    noted, clean = noted_offsets(directory, broken), was_clean(directory)
    return DirectoryFacts(
        directory,
        properties(directory.files.get("meta.properties"), broken),
        [facts_in(place, clean, noted) for place in directory.partitions],
        clean,
        properties(directory.files.get(".kafka_cleanshutdown")),
        _dated(directory),
        sorted(f"{topic}-{partition}" for topic, partition in noted),
        sum(sizes_of(path)[0] for path in _below(os.path.join(directory.path, REMOTE_CACHE))),
        broken,
    )


def _dated(directory: LogDirectory) -> int | None:
    marks = [at for name, at in directory.files.items() if name == ".kafka_cleanshutdown"]
    marks = marks or [at for at in directory.files.values() if at.kind is kinds.OFFSET_CHECKPOINT]
    times = []
    for at in marks:
        try:
            times.append(os.stat(at.path).st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return max(times, default=None)


def _below(directory: str) -> Iterator[str]:
    for path, _, names in os.walk(directory):
        yield from (os.path.join(path, name) for name in names)
