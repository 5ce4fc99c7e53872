"""python -m tools.find_trial JARS [--keys N] [--keep DIR]

Plants keys with real producers (Java, librdkafka, kafka-python) on a real broker: five codecs, text, JSON, Avro and
Protobuf, some superseded and compacted away, some in aborted transactions; kills the broker, truncates a segment and
adds an LZ4 frame to a batch. Then every planted key must be where an independent reader finds it, and nowhere else, and
what was never planted must be reported as not there.

JARS is a directory with Kafka's jars. Needs Java 17, confluent-kafka and kafka-python. Takes some minutes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fastavro
import lz4.frame
import snappy
import zstandard

import kdump
from kdump.questions.find.answer import Found, SearchCoverage

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PORT = 19_477
SERVER = f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{PORT + 1}
listeners=PLAINTEXT://127.0.0.1:{PORT},CONTROLLER://127.0.0.1:{PORT + 1}
controller.listener.names=CONTROLLER
log.dirs=%s
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
num.partitions=1
log.cleaner.backoff.ms=200
file.delete.delay.ms=3600000
"""
AVRO = {"type": "record", "name": "Who", "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}]}
PROTO = 'syntax = "proto3"; message Who { int64 id = 1; string who = 2; }'


def value_of(form: str, number: int, name: str) -> bytes:
    """Return a value in which the name of a plant is, in one of four formats."""
    if form == "text":
        return f"{number} {name} some text".encode()
    if form == "json":
        return json.dumps({"id": number, "who": name}).encode()
    if form == "avro":
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), {"id": number, "who": name})
        return b"\0\0\0\0\1" + out.getvalue()
    whole, rest = bytearray(), number
    while rest >= 0x80:
        whole.append(rest & 0x7F | 0x80)
        rest >>= 7
    return b"\0\0\0\0\2\0\x08" + bytes((*whole, rest)) + b"\x12" + bytes((len(name),)) + name.encode()


class Broker:
    """A broker that is its own controller."""

    def __init__(self, jars: Path, work: Path) -> None:
        self.jars, self.work, self.logs = jars, work, work / "logs"
        (work / "server.properties").write_text(SERVER % self.logs)
        settings = str(work / "server.properties")
        self.java("kafka.tools.StorageTool", "format", "-t", "q1Sh-9_ISia_zwGINzRvyQ", "-c", settings)
        words = self.command("kafka.Kafka", settings)
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        until = time.monotonic() + 180
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1):
                return
            time.sleep(0.5)
        raise RuntimeError("the broker does not start")

    def command(self, name: str, *words: str) -> list[str]:
        return ["java", "-Xmx400m", "-cp", f"{self.jars}/*", name, *words]

    def java(self, name: str, *words: str, text: str = "") -> None:
        subprocess.run(
            self.command(name, *words),
            input=text.encode(),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def plant(broker: Broker, keys: int) -> dict[str, str]:
    """Produce, and return the format of the value of each planted key."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafka import KafkaProducer

    server = f"127.0.0.1:{PORT}"
    admin = AdminClient({"bootstrap.servers": server})
    compact = {"cleanup.policy": "compact", "segment.bytes": "1048576", "segment.ms": "1000"}
    compact["min.cleanable.dirty.ratio"] = "0.01"
    topics = [NewTopic(f"{client}-{codec}", 1, 1) for client in ("java", "rd", "py") for codec in CODECS]
    topics += [NewTopic("transactions", 1, 1), NewTopic("_schemas", 1, 1), NewTopic("compacted", 1, 1, config=compact)]
    for future in admin.create_topics(topics).values():
        future.result(60)
    plants: dict[str, str] = {}
    each, number = keys // 16, 0
    for codec in CODECS:
        rd = Producer({"bootstrap.servers": server, "compression.type": codec, "linger.ms": 50})
        py = KafkaProducer(bootstrap_servers=server, compression_type=None if codec == "none" else codec, linger_ms=50)
        lines = []
        for i in range(each):
            for client in ("rd", "py", "java"):
                number += 1
                name, form = f"plant-{client}-{codec}-{i}", ("text", "json", "avro", "proto")[i % 4]
                headers = [("who", name.encode())]
                if client == "java":
                    form = ("text", "json")[i % 2]
                    lines.append(f"{name}\t{value_of(form, number, name).decode()}\n")
                elif client == "rd":
                    rd.produce(f"rd-{codec}", value_of(form, number, name), name, headers=headers)
                else:
                    py.send(f"py-{codec}", value_of(form, number, name), name.encode(), headers=headers)
                plants[name] = form
            if not i % 500:
                rd.poll(0)
        rd.flush()
        py.flush()
        words = ["--bootstrap-server", server, "--topic", f"java-{codec}", "--compression-codec", codec]
        words += ["--property", "parse.key=true"]
        broker.java("org.apache.kafka.tools.ConsoleProducer", *words, text="".join(lines))
    schemas = Producer({"bootstrap.servers": server})
    for number, (kind, text) in enumerate((("AVRO", json.dumps(AVRO)), ("PROTOBUF", PROTO)), 1):
        key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
        body = {
            "subject": f"s{number}",
            "version": 1,
            "id": number,
            "schema": text,
            "deleted": False,
            "schemaType": kind,
        }
        schemas.produce("_schemas", json.dumps(body), json.dumps(key))
    schemas.flush()
    for turn in range(4):
        writer = Producer({"bootstrap.servers": server, "transactional.id": f"t{turn}"})
        writer.init_transactions(30)
        writer.begin_transaction()
        for i in range(each // 8):
            name = f"plant-txn-{turn}-{i}"
            writer.produce("transactions", value_of("json", i, name), name)
            plants[name] = "json"
        writer.flush()
        (writer.abort_transaction if turn % 2 else writer.commit_transaction)(30)
    for turn in range(3):  # values, then others, then tombstones for half of them
        writer = Producer({"bootstrap.servers": server})
        for i in range(each // 2):
            name = f"plant-compacted-{i}"
            plants[name] = "json"
            writer.produce("compacted", None if turn == 2 and i % 2 else value_of("json", turn, name), name)
        writer.flush()
        time.sleep(3)
    time.sleep(10)  # the log cleaner
    return plants


def damage(logs: Path) -> None:
    """Truncate a segment, and add a frame to a batch, as no producer does."""
    torn = logs / "rd-none-0" / f"{0:020}.log"
    os.truncate(torn, torn.stat().st_size - 30)
    from crc32c import crc32c

    path = logs / "rd-lz4-0" / f"{0:020}.log"
    data = path.read_bytes()
    size = 12 + struct.unpack_from(">i", data, 8)[0]
    name = b"plant-second-frame"
    body = b"\0\0\0" + bytes((2 * len(name),)) + name + b"\x02x\0"
    frame = lz4.frame.compress(bytes((2 * len(body),)) + body, store_size=False)
    rest = data[21:size] + frame
    batch = data[:8] + struct.pack(">i", size - 12 + len(frame)) + data[12:17] + struct.pack(">I", crc32c(rest)) + rest
    path.write_bytes(batch + data[size:])


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def payloads(codec: int, data: bytes) -> Iterator[bytes]:
    """Yield the decompressed frames of a batch, with the libraries that kdump has no part in."""
    if codec == 0:
        yield data
    elif codec == 1:
        yield gzip.decompress(data)
    elif codec == 2:
        at, out = 16, b""
        if not data.startswith(b"\x82SNAPPY"):
            yield snappy.decompress(data)
            return
        while at < len(data):
            size = struct.unpack_from(">i", data, at)[0]
            out += snappy.decompress(data[at + 4 : at + 4 + size])
            at += 4 + size
        yield out
    elif codec == 3:
        while data:
            frame = lz4.frame.LZ4FrameDecompressor()
            yield frame.decompress(data)
            data = frame.unused_data or b""
    else:
        yield zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


def read(path: Path) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Yield offset, key and value of each record of a segment, that of an incomplete batch, too."""
    data, position = path.read_bytes(), 0
    while position + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, position)
        attributes = struct.unpack_from(">h", data, position + 21)[0]
        if length <= 0:
            return
        for payload in payloads(attributes & 7, data[position + 61 : position + 12 + length]):
            at = 0
            try:
                while at < len(payload):
                    size, at = varint(payload, at)
                    end = at + size
                    _, at = varint(payload, at + 1)
                    delta, at = varint(payload, at)
                    parts: list[bytes | None] = []
                    for _ in range(2):
                        count, at = varint(payload, at)
                        parts.append(None if count < 0 else payload[at : at + count])
                        at += max(0, count)
                    if end <= len(payload):
                        yield base + delta, parts[0], parts[1]
                    at = end
            except IndexError:
                break
        position += 12 + length


def search(expression: str, logs: Path) -> tuple[set[tuple[str, int, bool]], SearchCoverage]:
    """Return the file, the offset and whether it is a tombstone of what kdump finds."""
    found = set()
    for answer in kdump.find(str(logs), expression):
        if isinstance(answer, Found):
            found.add((answer.target.path, answer.record.offset or 0, answer.record.value is None))
        else:
            coverage = answer
    return found, coverage


def compare(logs: Path, plants: dict[str, str], dice: random.Random) -> int:
    """Return the number of misses and of false finds, and print them."""
    there: dict[str, set[tuple[str, int, bool]]] = {}
    values: dict[str, set[tuple[str, int, bool]]] = {}
    for path in sorted(logs.rglob("*.log*")):
        for offset, key, value in read(path) if "__cluster_metadata" not in str(path) else ():
            if key is not None and key.startswith(b"plant-"):
                there.setdefault(key.decode(), set()).add((str(path), offset, value is None))
                if value is not None:
                    values.setdefault(key.decode(), set()).add((str(path), offset, False))
    wrong = 0

    def check(what: str, expression: str, expected: set[tuple[str, int, bool]]) -> None:
        nonlocal wrong
        found, coverage = search(expression, logs)
        if found != expected or (not found and not expected and coverage.matches):
            wrong += 1
            print(f"{what}: {expression}: missed {sorted(expected - found)[:3]}, false {sorted(found - expected)[:3]}")

    every = set().union(*there.values())
    print(f"{len(there)} of {len(plants)} planted keys are on the disk, in {len(every)} records")
    check("all", "key ~ '^plant-'", every)
    for name in dice.sample(sorted(plants), min(120, len(plants))):
        check("key", f"key == '{name}'", there.get(name, set()))
        if plants[name] == "text":
            check("text", f"value ~ '{name} '", values.get(name, set()))
        else:
            check(plants[name], f"value.who == '{name}'", values.get(name, set()))
    last = max(int(name.rsplit("-", 1)[1]) for name in plants if name.startswith("plant-rd-none-"))
    for name in ("plant-second-frame", f"plant-rd-none-{last}"):
        check("hidden or torn", f"key == '{name}'", there.get(name, set()))
    for form in ("text", "json", "avro", "proto"):
        check("never", f"value.who == 'never-{form}' or 'never-{form}' in any", set())
    return wrong


def main() -> int:
    """Run the trial; the status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp())
    broker = Broker(options.jars, work)
    try:
        plants = plant(broker, options.keys)
    finally:
        broker.process.kill()
        broker.process.wait()
    damage(broker.logs)
    wrong = compare(broker.logs, plants, random.Random(1))
    print(f"{wrong} wrong")
    if options.keep:
        shutil.copytree(broker.logs, options.keep)
    shutil.rmtree(work)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
