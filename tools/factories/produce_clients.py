"""Produces the same kinds of records with clients that share no code with Kafka's own.

Run: python produce_clients.py BOOTSTRAP   (needs kafka-python, aiokafka, confluent-kafka)
Each client fills its own topics, one per codec that it supports."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

BOOT = sys.argv[1]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
HEADERS = [("trace", b"abc"), ("empty", b""), ("cl\u00e9", bytes([0, 255]))]


def value(i: int) -> bytes | None:
    return None if i % 13 == 0 else json.dumps({"i": i, "text": "x" * (i % 50), "u": "\u4f60\u597d"}).encode()


def key(i: int) -> bytes | None:
    return None if i % 5 == 0 and i % 13 else f"key-{i % 17}".encode()


def librdkafka() -> None:
    for codec in CODECS:
        p = Producer(
            {
                "bootstrap.servers": BOOT,
                "compression.type": codec,
                "enable.idempotence": codec == "zstd",
                "linger.ms": 5,
            }
        )
        for i in range(120):
            p.produce(
                f"librdkafka-{codec}",
                value(i),
                key(i),
                headers=HEADERS if i % 4 == 0 else None,
                timestamp=1600000000000 + i,
            )
            if i % 40 == 39:
                p.flush()


def kafka_python() -> None:
    for codec in CODECS:
        p = KafkaProducer(bootstrap_servers=BOOT, compression_type=None if codec == "none" else codec, linger_ms=5)
        for i in range(120):
            p.send(
                f"kafkapython-{codec}",
                value(i),
                key(i),
                headers=HEADERS if i % 4 == 0 else [],
                timestamp_ms=1600000000000 + i,
            )
            if i % 40 == 39:
                p.flush()
        p.close()


async def aio() -> None:
    for codec in CODECS:
        p = AIOKafkaProducer(
            bootstrap_servers=BOOT,
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
            enable_idempotence=codec == "gzip",
        )
        await p.start()
        for i in range(120):
            await p.send(
                f"aiokafka-{codec}",
                value(i),
                key(i),
                headers=HEADERS if i % 4 == 0 else [],
                timestamp_ms=1600000000000 + i,
            )
            if i % 40 == 39:
                await p.flush()
        await p.stop()


admin = AdminClient({"bootstrap.servers": BOOT})
topics = [f"{c}-{k}" for c in ("librdkafka", "kafkapython", "aiokafka", "kafkajs", "franz") for k in CODECS]
for f in admin.create_topics([NewTopic(t, 1, 1) for t in topics]).values():
    f.result()
for step in (librdkafka, kafka_python, lambda: asyncio.run(aio())):
    try:
        step()
    except Exception as e:  # a client that cannot run leaves its topics empty
        print("FAILED", step, repr(e))
