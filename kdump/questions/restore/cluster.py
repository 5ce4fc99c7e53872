"""The running cluster: the only module of kdump that opens a connection to one. With confluent-kafka (librdkafka).

Positions are in a topic of their own, `kdump-restore`, and not in headers of the records: the records stay as they
were, and where a run continues is read at once, without the restored topics. Each position is committed in the
transaction of the records that it follows."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kdump.extras import how_to_install
from kdump.questions.restore.answer import RestoreError
from kdump.questions.restore.source import LEDGER, OVERHEAD, SourceRecord

LARGEST_BATCH = 1_000_000
TRANSACTIONAL_ID = "kdump-restore"
"""One for all runs, so that a run fences another one that still writes."""
SECONDS = 30.0
SECRETS = ("password", "secret", "sasl.jaas.config", "ssl.key.pem", "token")
CLIENT = {"client.id": "kdump-restore"}
PRODUCER: dict[str, Any] = {
    "enable.idempotence": True,
    "delivery.report.only.error": True,
    "message.max.bytes": 1_000_000_000,
    "queue.buffering.max.kbytes": 32 * 1024,
    "linger.ms": 20,
    "compression.type": "lz4",
    "transaction.timeout.ms": 60_000,
    "partitioner": "murmur2_random",
}
CONSUMER: dict[str, Any] = {
    "group.id": "kdump-restore",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.message.max.bytes": 4 << 20,
    "fetch.wait.max.ms": 20,
    "queued.max.messages.kbytes": 32 * 1024,
}
OF_PRODUCERS = (
    *("acks", "batch.", "compression.", "linger.", "message.", "queue.buffering.", "transaction", "partitioner"),
)
"""Beginnings of the names of options that consumers do not take."""


class Position(NamedTuple):
    """What the ledger states: the offset in the source that is next, how many records the target has up to there, and
    the offset in the target at which they begin."""

    next: int
    records: int
    start: int | None


class TopicState(NamedTuple):
    """A topic of the cluster. `denied`: whether it must not be written to, or not be read, or its configs not."""

    id: str
    partitions: int
    configs: dict[str, str]
    denied: bool


class TargetRecord(NamedTuple):
    """A record of the target, and its offset there."""

    offset: int
    partition: int
    record: SourceRecord


def library() -> Any:
    """Import the client. Raises RestoreError if it is not installed."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise RestoreError(f"confluent-kafka is not installed: {how_to_install('restore')}") from None


class TargetCluster:
    """The cluster at `bootstrap`. `config`: options of the client, by librdkafka's names. Raises RestoreError for what
    it does not answer; no secret is in its messages."""

    def __init__(self, bootstrap: str, config: Mapping[str, str]) -> None:
        self.kafka = library()
        self.bootstrap = bootstrap
        own = {name: value for name, value in config.items() if name != "transactional.id"}
        self.config = {**CLIENT, **own, "bootstrap.servers": bootstrap}
        self.transactional_id = config.get("transactional.id", TRANSACTIONAL_ID)
        self._secrets = [value for name, value in config.items() if any(part in name for part in SECRETS) and value]
        self._problem = ""
        self._is_down = False
        admin = importlib.import_module("confluent_kafka.admin")
        self.kinds = admin
        self.admin = self._made(admin.AdminClient, self._others())
        self._consumer: Any = None

    # -- clients

    def _others(self) -> dict[str, Any]:
        return {name: value for name, value in self.config.items() if not name.startswith(OF_PRODUCERS)}

    def _made(self, kind: Any, config: dict[str, Any]) -> Any:
        try:
            return kind({**config, "error_cb": self._note}, logger=_Quiet())
        except self.kafka.KafkaException as error:
            raise RestoreError(f"--config: {self.text(error)}") from None

    def _note(self, error: Any) -> None:
        self._is_down = self._is_down or error.code() == self.kafka.KafkaError._ALL_BROKERS_DOWN
        if not (self._is_down and self._problem):  # which states why
            self._problem = self.text(error)

    def text(self, error: Any) -> str:
        """Return the message of an error, without secrets."""
        argument = error.args[0] if getattr(error, "args", None) else error
        message = str(argument.str()) if hasattr(argument, "str") else str(argument)
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return message

    @property
    def consumer(self) -> Any:
        if self._consumer is None:
            self._consumer = self._made(self.kafka.Consumer, {**self._others(), **CONSUMER})
        return self._consumer

    def producer(self, states: Iterable[TopicState]) -> Any:
        """Return a transactional producer to these topics, after it has ended what an earlier one has left open."""
        limits = [int(state.configs.get("max.message.bytes", LARGEST_BATCH)) for state in states]
        size = max(1, min([LARGEST_BATCH, *limits]) - OVERHEAD)
        config = {**PRODUCER, "batch.size": size, **self.config, "transactional.id": self.transactional_id}
        producer = self._made(self.kafka.Producer, config)
        producer.init_transactions(2 * SECONDS)
        return producer

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # -- topics

    def _wait(self, future: Any, what: str) -> Any:
        try:
            return future.result(SECONDS)
        except self.kafka.KafkaException as error:
            raise RestoreError(f"{self.bootstrap}: {what}: {self.text(error)}") from None
        except TimeoutError:
            raise RestoreError(
                f"{self.bootstrap}: {what}: no answer; {self._problem or 'is it the right address?'}"
            ) from None

    def names(self) -> set[str]:
        """Return the names of the topics. librdkafka tries until the timeout even if nothing listens there."""
        end = time.monotonic() + SECONDS
        while True:
            try:
                return set(self.admin.list_topics(timeout=1).topics)
            except self.kafka.KafkaException as error:
                self.admin.poll(0)  # passes errors to _note
                if self._is_down or time.monotonic() >= end:
                    raise RestoreError(f"{self.bootstrap}: {self._problem or self.text(error)}") from None

    def topic(self, name: str) -> TopicState:
        """Return a topic that exists."""
        topics = self.kafka.TopicCollection([name])
        described = self._wait(
            self.admin.describe_topics(topics, include_authorized_operations=True)[name], f"topic {name}"
        )
        allowed = described.authorized_operations
        operations = {"ALL"} if allowed is None else {operation.name for operation in allowed}
        denied = "ALL" not in operations and not operations >= {"READ", "WRITE", "DESCRIBE_CONFIGS"}
        configs = {} if denied else self._configs(name)
        return TopicState(str(described.topic_id), len(described.partitions), configs, denied)

    def _configs(self, name: str) -> dict[str, str]:
        resource = self.kinds.ConfigResource(self.kinds.ResourceType.TOPIC, name)
        entries = self._wait(self.admin.describe_configs([resource])[resource], f"configs of topic {name}")
        return {entry.name: entry.value for entry in entries.values() if entry.value is not None}

    def is_hidden(self, name: str) -> bool:
        """Return True if a topic that `names` does not have must not be described: whether it exists is unknown."""
        try:
            self.admin.describe_topics(self.kafka.TopicCollection([name]))[name].result(SECONDS)
        except self.kafka.KafkaException as error:
            return bool(error.args[0].code() == self.kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED)
        return False

    def may_create(self, name: str) -> bool:
        """Return False if the topic must not be created."""
        try:
            self.admin.create_topics([self.kinds.NewTopic(name, 1)], validate_only=True)[name].result(SECONDS)
        except self.kafka.KafkaException as error:
            return error.args[0].name() not in ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
        return True

    def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        new = self.kinds.NewTopic(name, num_partitions=partitions, config=dict(configs))
        self._wait(self.admin.create_topics([new])[name], f"topic {name} cannot be created")
        deadline = time.monotonic() + SECONDS
        while name not in self.names() and time.monotonic() < deadline:
            time.sleep(0.2)

    def is_empty(self, topic: str, partition: int) -> bool:
        """Return True if a read_committed consumer receives nothing of the partition."""
        return next(self.records(topic, partition, None), None) is None

    def end(self, topic: str, partition: int) -> int:
        """Return the end that ListOffsets states to a read_committed consumer."""
        return self._ends(topic, partition)[1]

    def _ends(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the log start and the end. A broker that fails meanwhile is not the answer."""
        place, deadline = self.kafka.TopicPartition(topic, partition), time.monotonic() + SECONDS
        while True:
            try:
                low, end = self.consumer.get_watermark_offsets(place, timeout=SECONDS, cached=False)
                return int(low), int(end)
            except self.kafka.KafkaException as error:
                if error.args[0].name().endswith("AUTHORIZATION_FAILED") or time.monotonic() >= deadline:
                    raise
                time.sleep(0.5)

    def records(self, topic: str, partition: int, start: int | None) -> Iterator[TargetRecord]:
        """Yield what a read_committed consumer receives from offset `start` on (None: from the beginning), up to the
        end as it is now."""
        kafka, consumer = self.kafka, self.consumer
        try:
            low, end = self._ends(topic, partition)
            consumer.assign([kafka.TopicPartition(topic, partition, max(low, start or 0))])
            silent_since = time.monotonic()
            while True:
                first = consumer.poll(0.5)  # consume waits for all that it is asked for
                messages = [first, *consumer.consume(1000, timeout=0)] if first is not None else []
                if messages:
                    silent_since = time.monotonic()
                elif time.monotonic() - silent_since > 2 * SECONDS:
                    raise RestoreError(
                        f"{self.bootstrap}: {topic}-{partition} cannot be read: {self._problem or 'timeout'}"
                    )
                for message in messages:
                    error = message.error()
                    if error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                        if message.offset() >= end:
                            return
                        continue  # a new leader that does not know yet what has been committed
                    if error is not None and error.code() == kafka.KafkaError.GROUP_AUTHORIZATION_FAILED:
                        continue  # librdkafka looks for a coordinator, although no group is joined
                    if error is not None:
                        raise RestoreError(f"{self.bootstrap}: {topic}-{partition}: {self.text(error)}")
                    yield TargetRecord(message.offset(), partition, _record(message))
        except kafka.KafkaException as error:
            raise RestoreError(f"{self.bootstrap}: {topic}-{partition}: {self.text(error)}") from None
        finally:
            consumer.unassign()

    # -- the ledger

    def positions(self) -> dict[str, Position]:
        """Return the newest positions in the ledger, by key."""
        if LEDGER not in self.names():
            return {}
        newest: dict[str, Position] = {}
        for found in self.records(LEDGER, 0, None):
            key, value = found.record.key, found.record.value
            if key is not None and value is not None:
                stated = json.loads(value)
                newest[key.decode()] = Position(stated["next"], stated["records"], stated["start"])
        return newest

    def create_ledger(self) -> None:
        if LEDGER not in self.names():
            self.create(LEDGER, 1, {"cleanup.policy": "compact"})

    # -- groups

    def group_offsets(self, group: str) -> tuple[str, dict[tuple[str, int], int]]:
        """Return the state of a group, empty if there is none, and its committed offsets."""
        state = ""
        try:
            state = self.admin.describe_consumer_groups([group])[group].result(SECONDS).state.name
        except self.kafka.KafkaException as error:
            if error.args[0].code() != self.kafka.KafkaError.GROUP_ID_NOT_FOUND:
                raise RestoreError(f"{self.bootstrap}: group {group}: {self.text(error)}") from None
        asked = self.kafka.ConsumerGroupTopicPartitions(group)
        stored = self._wait(self.admin.list_consumer_group_offsets([asked])[group], f"group {group}")
        places = {(each.topic, each.partition): each.offset for each in stored.topic_partitions if each.offset >= 0}
        return state, places

    def set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        places = [self.kafka.TopicPartition(topic, partition, at) for (topic, partition), at in offsets.items()]
        asked = self.kafka.ConsumerGroupTopicPartitions(group, places)
        self._wait(self.admin.alter_consumer_group_offsets([asked])[group], f"group {group}")


def _record(message: Any) -> SourceRecord:
    _, time_ms = message.timestamp()
    return SourceRecord(
        message.offset(),
        time_ms if time_ms > 0 else None,
        message.key(),
        message.value(),
        list(message.headers() or []),
    )


class _Quiet:
    """A logger for librdkafka: what matters comes as an error."""

    def log(self, *line: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return self.log
