"""Names of partition directories, and replicas that are moved from one log directory to another.

A broker continues such a move after startup: it fills the -future directory, which replaces the live one as soon as it
has all its records.

Source: UnifiedLog.parseTopicPartitionName, LogManager.replaceCurrentWithFutureLog, ReplicaAlterLogDirsThread."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.numbers import parse_int
from kdump.io.directory_listing import items
from kdump.io.errors import SourceError
from kdump.kafka import checkpoint_file
from kdump.questions.restart_plan.answer import DirectoryPlan, PartitionPlan
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.identity import starts_as
from kdump.state.releases import STRAY_NAMES

SUFFIXED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|future|stray)")


def parse_name(name: str, release: KafkaRelease = NEWEST) -> tuple[str, int, str] | None:
    """Return topic, partition and state from a directory's name; None for a name at which the broker exits."""
    state, own = "", name
    suffixes = ("delete", "future", "stray") if STRAY_NAMES.applies(release) else ("delete", "future")
    for suffix in suffixes:
        if name.endswith(f"-{suffix}"):
            if not SUFFIXED.fullmatch(name):
                return None
            state, own = suffix, name.rpartition(".")[0]
    topic, dash, number = own.rpartition("-")
    partition = parse_int(number)
    return None if not (dash and topic) or partition is None else (topic, partition, state)


def partition_directories(path: str, release: KafkaRelease) -> Iterator[tuple[str, str, int, str]]:
    """Yield path, topic, partition and state of each partition directory in a log directory; none if it cannot be
    listed."""
    with suppress(OSError):
        for item in items(path):
            parsed = parse_name(item.name, release) if item.is_directory else None
            if parsed is not None:
                yield (item.path, *parsed)


class Moves:
    """The replicas that are being moved between a broker's log directories, found by the names of their directories."""

    def __init__(
        self, directories: Sequence[DirectoryPlan], strays: StrayPartitions, release: KafkaRelease = NEWEST
    ) -> None:
        self.live: dict[tuple[str, int], str] = {}
        self.future: dict[tuple[str, int], str] = {}
        for directory in directories:
            for path, topic, partition, state in partition_directories(directory.path, release):
                if not state:
                    self.live[topic, partition] = path
                elif state == "future" and not _is_stray(path, topic, partition, starts_as(directory), strays):
                    self.future[topic, partition] = path

    def other_end(self, plan: PartitionPlan) -> str | None:
        """Return the directory in another log directory that will replace a live one, or that a -future one will
        replace; None if there is none."""
        path = (self.live if plan.state else self.future).get((plan.topic, plan.partition))
        return None if path is None or os.path.dirname(path) == os.path.dirname(plan.path) else path


def _is_stray(path: str, topic: str, partition: int, node: int | None, strays: StrayPartitions) -> bool:
    try:
        topic_id = checkpoint_file.topic_id(os.path.join(path, "partition.metadata"))
    except (checkpoint_file.BadLine, SourceError):
        return True
    return topic_id is None or strays.problem(topic, partition, topic_id, node) is not None
