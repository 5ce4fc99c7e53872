"""Clients of the brokers in a trial, without a JVM of their own: what consumers read, who leads, what groups have
committed."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import confluent_kafka as kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tools.trials.cluster import Cluster

SECONDS = 25
"""How long a client waits for an answer."""
TIMEOUT_MS = "600000"
"""transaction.timeout.ms: an open transaction stays open until the trial has ended."""


class Served(NamedTuple):
    """What consumers get of a partition: records as offset and value. `start`, `end`: log start offset, high
    watermark; None if it has no leader."""

    start: int | None
    end: int | None
    records: set[tuple[int, str]]
    committed: set[tuple[int, str]]


class Clients:
    """`at`: returns the addresses of the brokers that are up."""

    def __init__(self, at: Callable[[], str]) -> None:
        self.at = at

    def _config(self, **more: Any) -> dict[str, Any]:
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {"bootstrap.servers": self.at(), "log_level": 0, "socket.timeout.ms": 20_000, **named}

    def create(self, topic: str, replicas: list[int], **configs: str) -> None:
        new = NewTopic(topic, num_partitions=1, replica_assignment=[replicas], config=configs)
        admin = AdminClient(self._config())  # which has to live until it has the answer
        admin.create_topics([new])[topic].result(SECONDS)

    def produce(self, topic: str, values: list[str], acks: str) -> int:
        """Return how many records were acknowledged."""
        failed: list[object] = []

        def delivered(error: object, _: object) -> None:
            failed.extend([error] if error else [])

        producer = kafka.Producer(self._config(acks=acks, message_timeout_ms=15_000, linger_ms=0))
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=delivered)
            producer.poll(0)
        left: int = producer.flush(SECONDS)
        return len(values) - len(failed) - left

    def transaction(self, name: str, topic: str, values: list[str], end: str) -> None:
        """`end`: commit, abort or open."""
        configs = {"transactional_id": name, "transaction_timeout_ms": TIMEOUT_MS}
        producer = kafka.Producer(self._config(**configs))
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(SECONDS)
        if end == "commit":
            producer.commit_transaction(SECONDS)
        elif end == "abort":
            producer.abort_transaction(SECONDS)

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit the offset, once the group's coordinator is there."""
        consumer = kafka.Consumer(self._config(group_id=group))
        until = time.monotonic() + SECONDS
        while True:
            try:
                consumer.commit(offsets=[kafka.TopicPartition(topic, 0, offset)], asynchronous=False)
                break
            except kafka.KafkaException:
                if time.monotonic() > until:
                    raise
                time.sleep(1)
        consumer.close()

    def committed(self, group: str, topic: str) -> int | None:
        """Return the group's offset; None if it has none, or its coordinator does not answer."""
        consumer = kafka.Consumer(self._config(group_id=group))
        try:
            (found,) = consumer.committed([kafka.TopicPartition(topic, 0)], timeout=SECONDS)
            return int(found.offset) if found.offset >= 0 else None
        except kafka.KafkaException:
            return None
        finally:
            consumer.close()

    def leaders(self) -> dict[str, int | None]:
        """Return the leader of each partition."""
        topics = AdminClient(self._config()).list_topics(timeout=SECONDS).topics
        return {
            f"{topic}-{number}": None if each.leader < 0 else each.leader
            for topic, found in topics.items()
            for number, each in found.partitions.items()
        }

    def served(self, topic: str) -> Served:
        read = {}
        start = end = None
        for isolation in ("read_uncommitted", "read_committed"):
            consumer = kafka.Consumer(
                self._config(
                    group_id="reader",
                    isolation_level=isolation,
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                    enable_partition_eof=True,
                )
            )
            try:
                partition = kafka.TopicPartition(topic, 0, kafka.OFFSET_BEGINNING)
                if isolation == "read_uncommitted":
                    start, end = consumer.get_watermark_offsets(partition, timeout=SECONDS)
                consumer.assign([partition])
                read[isolation] = _to_end(consumer)
            except kafka.KafkaException:
                return Served(None, None, set(), set())
            finally:
                consumer.close()
        return Served(start, end, read["read_uncommitted"], read["read_committed"])


def _to_end(consumer: Any) -> set[tuple[int, str]]:
    found = set()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is None:
            found.add((message.offset(), (message.value() or b"").decode(errors="replace")))
        elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
            break
    return found


def transactions(cluster: Cluster, at: str) -> dict[str, str]:
    """Return the state of each transactional ID, as Kafka's tool lists it."""
    command = cluster.java("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", at, "list", heap="100m")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return dict(re.findall(r"^(\S+)\s+\d+\s+\d+\s+(\w+)\s*$", done.stdout, re.MULTILINE))
