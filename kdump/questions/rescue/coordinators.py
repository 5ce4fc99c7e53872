"""What the logs of the group and transaction coordinators show: producer IDs, partitions of other topics, and how many
partitions these logs had."""

from __future__ import annotations

from collections.abc import Mapping

from kdump.cluster.read_groups import CoordinatorLog, read_groups
from kdump.cluster.topic_coverage import hash_code
from kdump.cluster.transaction_coordinator import read_coordinator
from kdump.io.run import Run
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.questions.rescue.data_copies import FoundTopic, LogCopy

MOST_PARTITIONS = 10_000


class Coordinators:
    """`committed`: the highest partition of each topic that a group has an offset of; `producer_id`: the highest in
    __transaction_state; `keys`: by topic of a coordinator, the groups or transactional IDs with their partitions."""

    def __init__(self, offsets: FoundTopic | None, transactions: FoundTopic | None, run: Run) -> None:
        self.committed: dict[str, int] = {}
        self.producer_id = -1
        self.keys: dict[str, dict[str, int]] = {}
        run = Run(run.limits)
        if offsets is not None:
            self._groups(offsets, run)
        for copy in transactions.every() if transactions is not None else ():
            self._transactions(copy, run)

    def _groups(self, topic: FoundTopic, run: Run) -> None:
        logs = []
        for number, mine in topic.copies.items():
            best = max(mine, key=lambda copy: copy.rank)
            segments = tuple(segment.log.path for segment in best.log.segments if segment.log is not None)
            logs.append(CoordinatorLog(OFFSETS_TOPIC, number, best.log.path, segments))
        groups = read_groups(logs, run=run)
        self.keys[topic.name] = {name: group.partition for name, group in groups.groups.items()}
        for group in groups.offsets:
            for name, number in groups.offsets[group]:
                self.committed[name] = max(number, self.committed.get(name, 0))

    def _transactions(self, copy: LogCopy, run: Run) -> None:
        names = self.keys.setdefault(copy.key[0], {})
        coordinator = read_coordinator([copy.log.path], limits=run.limits)
        for name, producer in coordinator.by_id.items() if coordinator is not None else ():
            names[name] = copy.key[1]
            own = producer.producerId, producer.previousProducerId, producer.nextProducerId
            self.producer_id = max(self.producer_id, *own)


def partition_count(keys: Mapping[str, int], least: int) -> int:
    """Return the lowest number of partitions, at least `least`, with which each key is in its partition; `least` if
    there is none, because the number was changed."""
    hashes = [(abs(hash_code(key)), number) for key, number in keys.items()]
    for count in range(least, MOST_PARTITIONS):
        if all(code % count == number for code, number in hashes):
            return count
    return least
