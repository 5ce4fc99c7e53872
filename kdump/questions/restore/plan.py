"""What would be produced, and what forbids it: everything that can be known before the first record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kdump.format.count_text import count_text
from kdump.format.numbers import parse_int
from kdump.questions.restore.answer import RestorePartition, RestoreRefusal
from kdump.questions.restore.cluster import Position, TargetCluster, TopicState
from kdump.questions.restore.source import LEDGER, RestoreSource
from kdump.state.metadata_image import TopicImage
from kdump.text import host_word

OPERATIONS = ("Read", "Write", "Describe", "DescribeConfigs")
"""What restore does with a topic."""
FOREVER = "9223372036854775807"
NOT_COPIED = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
"""Configs of the topic on the disk that name its brokers."""


def key_of(source: RestoreSource, state: TopicState) -> str:
    """Return the key of a source and its target in the ledger: a topic that is created again has another ID."""
    return json.dumps([source.plan.name, source.topic_id, source.target_topic, state.id, source.target_partition])


def configure(cluster: str, topic: str, *configs: str) -> str:
    """Return the command that sets configs of a topic."""
    alter = f"kafka-configs.sh --bootstrap-server {cluster} --alter --entity-type topics --entity-name {topic}"
    return f"{alter} --add-config {','.join(configs)}"


def copied_configs(image: TopicImage | None) -> dict[str, str]:
    """Return the configs with which --create makes a topic."""
    if image is None:
        return {}
    return {name: value for name, value in image.configs.items() if name not in NOT_COPIED}


def allowing(cluster: str, resource: str, *operations: str) -> str:
    """Return the command that allows operations; `resource`: the option that names a resource, and its name."""
    each = " ".join(f"--operation {operation}" for operation in operations)
    return f"kafka-acls.sh --bootstrap-server {cluster} --add --allow-principal User:NAME {each} {resource}"


class Refusals:
    """Finds what forbids to produce the records of `sources`, which have been surveyed, to `cluster`."""

    def __init__(
        self,
        cluster: TargetCluster,
        sources: Sequence[RestoreSource],
        states: dict[str, TopicState],
        positions: dict[str, Position],
        *,
        append: bool,
        creates: bool,
        skips_large: bool,
    ) -> None:
        self.cluster, self.sources, self.states, self.positions = cluster, sources, states, positions
        self.append, self.creates, self.skips_large = append, creates, skips_large
        self.now = round(time.time() * 1000)

    def all(self) -> Iterator[RestoreRefusal]:
        for source in self.sources:
            plan = source.plan
            if plan.damages:
                reason = f"{plan.path}: {count_text(plan.damages, 'place')} with damage, or batches out of order"
                yield RestoreRefusal(
                    plan.name, reason, f"kdump salvage {host_word(plan.path)} --out NEW, then restore NEW"
                )
            if plan.undecided:
                reason = f"{count_text(plan.undecided, 'record')} of which nothing shows whether --without matches"
                yield RestoreRefusal(plan.name, reason, "another expression, or --without-keys")
        by_topic: dict[str, list[RestorePartition]] = {}
        for source in self.sources:
            by_topic.setdefault(source.target_topic, []).append(source.plan)
        for topic, plans in by_topic.items():
            if topic not in self.states and self.cluster.is_hidden(topic):
                yield RestoreRefusal(topic, "no permission to describe the topic", self._allow(topic))
                continue
            if topic not in self.states:
                if self.creates and not self.cluster.may_create(topic):
                    yield RestoreRefusal(topic, "no permission to create the topic", self._allow(topic, "Create"))
                elif not self.creates:
                    yield RestoreRefusal(topic, "the topic does not exist", "--create, with its partitions and configs")
                continue
            state = self.states[topic]
            if state.denied:
                yield RestoreRefusal(
                    topic, "no permission to read or write the topic or its configs", self._allow(topic)
                )
                continue
            for reason, action in self._of_topic(topic, state, plans):
                yield RestoreRefusal(topic, reason, action)
        ledger = self.states.get(LEDGER)
        if ledger is None and not self.cluster.may_create(LEDGER):
            reason = "no permission to create the topic that has the positions"
            yield RestoreRefusal(LEDGER, reason, self._allow(LEDGER, "Create"))
        elif ledger is not None and ledger.denied:
            reason = "no permission to read or write the topic that has the positions"
            yield RestoreRefusal(LEDGER, reason, self._allow(LEDGER))

    def _allow(self, topic: str, *more: str) -> str:
        return allowing(self.cluster.bootstrap, f"--topic {topic}", *OPERATIONS, *more)

    def _of_topic(self, topic: str, state: TopicState, plans: list[RestorePartition]) -> Iterator[tuple[str, str]]:
        """Yield reasons and actions for a topic that exists."""
        configs = state.configs
        set_to = partial(configure, self.cluster.bootstrap, topic)
        left = [plan for plan in plans if plan.restored < plan.records]
        if configs.get("message.timestamp.type") == "LogAppendTime":
            yield (
                "message.timestamp.type=LogAppendTime replaces every timestamp",
                set_to("message.timestamp.type=CreateTime"),
            )
        yield from self._times(configs, left, set_to)
        limit, largest = parse_int(configs.get("max.message.bytes")), max((plan.largest for plan in left), default=0)
        if limit is not None and largest > limit and not self.skips_large:
            yield (
                f"a record of {largest:,} bytes is larger than max.message.bytes={limit}",
                (set_to(f"max.message.bytes={largest}") + ", or --skip-too-large"),
            )
        highest = max((plan.targetPartition for plan in plans if plan.targetPartition is not None), default=-1)
        if highest >= state.partitions:
            yield (
                f"it has {count_text(state.partitions, 'partition')}, and partition {highest} is restored",
                (
                    f"kafka-topics.sh --bootstrap-server {self.cluster.bootstrap} --alter --topic {topic} --partitions "
                    f"{highest + 1}, or --repartition"
                ),
            )
        if "compact" in configs.get("cleanup.policy", "") and any(plan.nullKeys for plan in left):
            count = count_text(sum(plan.nullKeys for plan in left), "record")
            yield f"{count} without a key, which a compacted topic rejects", set_to("cleanup.policy=delete")
        for part, unframed in (("key", "unframedKeys"), ("value", "unframedValues")):
            name = f"confluent.{part}.schema.validation"
            count_of = sum(getattr(plan, unframed) for plan in left)
            if configs.get(name) == "true" and count_of:
                yield (
                    f"{name}=true, and {count_text(count_of, f'{part} has', f'{part}s have')} no schema ID",
                    set_to(f"{name}=false"),
                )
        if not self.append:
            yield from self._not_empty(topic, state, left)

    def _times(
        self, configs: dict[str, str], left: list[RestorePartition], set_to: Callable[[str], str]
    ) -> Iterator[tuple[str, str]]:
        oldest = min((plan.oldest for plan in left if plan.oldest is not None), default=None)
        newest = max((plan.newest for plan in left if plan.newest is not None), default=None)
        if oldest is None or newest is None:
            return
        for name, age in (
            ("message.timestamp.before.max.ms", self.now - oldest),
            ("message.timestamp.after.max.ms", newest - self.now),
            ("message.timestamp.difference.max.ms", max(self.now - oldest, newest - self.now)),
        ):
            most = parse_int(configs.get(name))
            if most is not None and age > most:
                yield f"{name}={most} rejects timestamps that are restored", set_to(f"{name}={FOREVER}")
        if "delete" not in configs.get("cleanup.policy", "delete"):
            return
        keeps = parse_int(configs.get("retention.ms"))
        if keeps is not None and keeps >= 0 and oldest < self.now - keeps:
            yield f"retention.ms={keeps} deletes records as old as these at once", set_to("retention.ms=-1")
        room = parse_int(configs.get("retention.bytes"))
        most_bytes = max(plan.bytes for plan in left)
        if room is not None and 0 <= room < most_bytes:
            yield (
                f"retention.bytes={room} is less than a partition of {most_bytes:,} bytes",
                set_to("retention.bytes=-1"),
            )

    def _not_empty(self, topic: str, state: TopicState, left: list[RestorePartition]) -> Iterator[tuple[str, str]]:
        mine = {source.plan.name: key_of(source, state) for source in self.sources if source.target_topic == topic}
        own = {source.target_partition for source in self.sources if mine.get(source.plan.name) in self.positions}
        numbers = {plan.targetPartition for plan in left}
        places = range(state.partitions) if None in numbers else sorted(n for n in numbers if n is not None)
        for number in places:
            is_own = number in own or (None in numbers and any(key in self.positions for key in mine.values()))
            if number < state.partitions and not is_own and not self.cluster.is_empty(topic, number):
                yield f"partition {number} is not empty", f"--append, or another topic: --topic {left[0].topic}=NEW"
                return
