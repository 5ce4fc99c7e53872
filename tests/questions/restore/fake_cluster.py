"""A cluster in memory: what a transaction has produced is there once it is committed, and gone if it is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from kdump.questions.restore.cluster import TargetCluster, TargetRecord, TopicState
from kdump.questions.restore.source import SourceRecord


class Killed(BaseException):
    """The process ends here."""


class KafkaException(Exception):
    pass


@dataclass
class FakeTopic:
    configs: dict[str, str]
    logs: list[list[SourceRecord | None]]
    """By partition, the records; None for the offset of a marker, or of an aborted record."""
    id: str = "1"
    denied: bool = False


@dataclass
class World:
    """What outlives a process. `kill_after`: number of calls to the producer after which the process is killed."""

    topics: dict[str, FakeTopic] = field(default_factory=dict)
    groups: dict[str, tuple[str, dict[tuple[str, int], int]]] = field(default_factory=dict)
    pending: list[tuple[str, int, SourceRecord]] = field(default_factory=list)
    committed: list[tuple[str, int, SourceRecord]] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    """Topics that must not be created."""
    kill_after: int = 1 << 60
    made: int = 0

    def add(self, name: str, partitions: int = 2, **configs: str) -> FakeTopic:
        self.made += 1
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.topics[name] = FakeTopic(named, [[] for _ in range(partitions)], str(self.made))
        return self.topics[name]

    def mark(self) -> None:
        """Write the markers of the transaction that was committed last, which its coordinator does later."""
        for topic, partition, record in self.committed:
            self.topics[topic].logs[partition].append(record)
        for topic, partition in {place[:2] for place in self.committed}:
            self.topics[topic].logs[partition].append(None)
        self.committed.clear()

    def abort(self) -> None:
        for topic, partition, _ in self.pending:
            self.topics[topic].logs[partition].append(None)
        self.pending.clear()


class FakeProducer:
    def __init__(self, world: World) -> None:
        self.world = world
        world.mark()
        world.abort()

    def _call(self) -> None:
        self.world.kill_after -= 1
        if self.world.kill_after < 0:
            raise Killed

    def begin_transaction(self) -> None:
        self._call()
        self.world.mark()

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: Any,
        partition: int = 0,
        on_delivery: Any = None,
        callback: Any = None,
        timestamp: int = 0,
        headers: Any = (),
    ) -> None:
        self._call()
        key = key.encode() if isinstance(key, str) else key
        made = SourceRecord(0, timestamp or None, key, value, list(headers or []))
        self.world.pending.append((topic, partition, made))

    def poll(self, seconds: float) -> None:
        pass

    def flush(self, seconds: float) -> None:
        self._call()

    def commit_transaction(self, seconds: float) -> None:
        self._call()
        self.world.committed += self.world.pending
        self.world.pending.clear()
        self._call()

    def abort_transaction(self, seconds: float) -> None:
        self.world.abort()


class FakeCluster(TargetCluster):
    """TargetCluster without its clients."""

    def __init__(self, world: World, config: Mapping[str, str] = {}) -> None:
        self.kafka: Any = SimpleNamespace(KafkaException=KafkaException)
        self.world, self.bootstrap, self.transactional_id = world, "kafka:9092", "kdump-restore"
        self._secrets = list(config.values())

    def names(self) -> set[str]:
        return set(self.world.topics)

    def topic(self, name: str) -> TopicState:
        topic = self.world.topics[name]
        return TopicState(topic.id, len(topic.logs), topic.configs, topic.denied)

    def is_hidden(self, name: str) -> bool:
        return False

    def may_create(self, name: str) -> bool:
        return name not in self.world.forbidden

    def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        self.world.add(name, partitions).configs.update(configs)

    def end(self, topic: str, partition: int) -> int:
        return len(self.world.topics[topic].logs[partition])

    def records(self, topic: str, partition: int, start: int | None) -> Iterator[TargetRecord]:
        for offset, record in enumerate(self.world.topics[topic].logs[partition]):
            if record is not None and offset >= (start or 0):
                yield TargetRecord(offset, partition, record)

    def producer(self, states: Iterable[TopicState]) -> Any:
        return FakeProducer(self.world)

    def close(self) -> None:
        pass

    def group_offsets(self, group: str) -> tuple[str, dict[tuple[str, int], int]]:
        return self.world.groups.get(group, ("", {}))

    def set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        state, before = self.group_offsets(group)
        self.world.groups[group] = (state or "EMPTY", {**before, **offsets})


def random_kill(world: World, random: Random) -> None:
    world.kill_after = random.randint(1, 25)
