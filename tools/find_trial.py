"""python -m tools.find_trial JARS [--keys N] [--keep DIR] [--out docs/find-trial.json]

Plants keys with real producers (Java, librdkafka, kafka-python) on a real broker: five codecs, text, JSON, Avro and
Protobuf, some superseded, tombstoned or compacted away, some in aborted transactions, some in expired segments; kills
the broker, truncates segments and adds an LZ4 frame to a batch. Then every planted key must be where kafka-dump-log and
an independent reader find it, as what they find it, and nowhere else; what is gone, or was never planted, must be
reported as not there.

JARS is a directory with Kafka's jars. Needs Java 17, confluent-kafka and kafka-python. Takes ten minutes."""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import lz4.frame
import snappy
import zstandard

import kdump
from kdump.questions.find.answer import ABORTED, DELETED, HIDDEN, LIVE, SUPERSEDED, TORN, Found, SearchCoverage
from tools.trials.cluster import Cluster, release_of

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CLIENTS = ("rd", "py", "java")
FORMS = ("text", "json", "avro", "proto")
AVRO = {"type": "record", "name": "Who", "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}]}
PROTO = 'syntax = "proto3"; message Who { int64 id = 1; string who = 2; }'
CONFIGS = "log.cleaner.backoff.ms=200\nfile.delete.delay.ms=3600000\nlog.retention.check.interval.ms=1000\n"
COMPACT = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
GONE = {**COMPACT, "delete.retention.ms": "0", "file.delete.delay.ms": "100"}
EXPIRED = {"retention.ms": "1000", "segment.ms": "1000"}
PLANT = b"plant-"
OF_DUMP = re.compile(rb"\| offset: (\d+) .*? valueSize: (-?\d+) .*? key: (plant-\S+)")
MARKER = re.compile(rb"\| offset: (\d+) .*? endTxnMarker: (\w+)")
BATCH = re.compile(rb"baseOffset: (\d+) .*? producerId: (-?\d+) .*? isTransactional: (\w+)")
GROUP = 100
"""Keys that one search looks for."""

Place = tuple[str, int]
"""Path and offset of a record."""


class Plants(NamedTuple):
    """The format of the value of each planted key, and the keys of which nothing is left."""

    forms: dict[str, str]
    gone: set[str]


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


def plant(cluster: Cluster, keys: int) -> Plants:
    """Produce at least so many keys."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafka import KafkaProducer

    server, forms, each, number = cluster.alive(), {}, -(-keys // 16), 0
    topics = [NewTopic(f"{client}-{codec}", 1, 1) for client in CLIENTS for codec in CODECS]
    topics += [NewTopic("transactions", 1, 1), NewTopic("_schemas", 1, 1)]
    more = {"compacted": COMPACT, "gone": GONE, "expired": EXPIRED}
    topics += [NewTopic(name, 1, 1, config=config) for name, config in more.items()]
    admin = AdminClient({"bootstrap.servers": server})
    for future in admin.create_topics(topics).values():
        future.result(60)
    lines = []
    for codec in CODECS:
        rd = Producer({"bootstrap.servers": server, "compression.type": codec, "linger.ms": 50})
        py = KafkaProducer(bootstrap_servers=server, compression_type=None if codec == "none" else codec, linger_ms=50)
        for i in range(each):
            form = FORMS[i % 4]
            for client in CLIENTS:
                number += 1
                name = f"plant-{client}-{codec}-{i}"
                value, headers = value_of(form, number, name), [("who", name.encode())]
                if client == "java":
                    data = [base64.b64encode(part).decode() for part in (name.encode(), value)]
                    lines.append(f"java-{codec} {codec} {data[0]} {data[1]}\n")
                elif client == "rd":
                    rd.produce(f"rd-{codec}", value, name, headers=headers)
                else:
                    py.send(f"py-{codec}", value, name.encode(), headers=headers)
                forms[name] = form
            if not i % 500:
                rd.poll(0)
        rd.flush()
        py.flush()
    source = str(Path(__file__).with_name("PlantRecords.java"))
    subprocess.run(cluster.java(source, server), input="".join(lines).encode(), check=True, capture_output=True)
    plain = Producer({"bootstrap.servers": server})
    for number, (kind, text) in enumerate((("AVRO", json.dumps(AVRO)), ("PROTOBUF", PROTO)), 1):
        key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
        body = {"subject": f"s{number}", "version": 1, "id": number, "schema": text, "deleted": False}
        plain.produce("_schemas", json.dumps(body | {"schemaType": kind}), json.dumps(key))
    for turn in range(4):
        writer = Producer({"bootstrap.servers": server, "transactional.id": f"t{turn}"})
        writer.init_transactions(30)
        writer.begin_transaction()
        for i in range(each // 8):
            name = f"plant-txn-{turn}-{i}"
            writer.produce("transactions", value_of("json", i, name), name)
            forms[name] = "json"
        writer.flush()
        (writer.abort_transaction if turn % 2 else writer.commit_transaction)(30)
    gone = {f"plant-gone-{i}" for i in range(each // 4)}
    for turn in range(4):  # values, then others, then tombstones for half of them or, in gone, for all; then a roll
        for i in range(each // 2 if turn < 3 else 1):
            name = f"plant-compacted-{i}" if turn < 3 else "plant-last"
            written = None if turn == 2 and i % 2 else value_of("json", turn, name)
            plain.produce("compacted", written, name)
            forms[name] = "json"
            if turn < 3 and i < len(gone):
                plain.produce("gone", None if turn == 2 else written, f"plant-gone-{i}")
            if not turn:
                plain.produce("expired", value_of("json", i, f"plant-expired-{i}"), f"plant-expired-{i}")
                forms[f"plant-expired-{i}"] = "json"
        plain.flush()
        time.sleep(3)
    for _ in range(10):  # the log cleaner, which never cleans an active segment
        plain.produce("gone", "x", "roll")
        plain.flush()
        time.sleep(3)
    for i in range(each // 4):
        plain.produce("compacted", value_of("json", i, f"plant-compacted-{i}"), f"plant-compacted-{i}")
    plain.flush()
    return Plants(forms | dict.fromkeys(gone, "json"), gone)


def damage(logs: Path) -> set[str]:
    """Truncate segments, and add a frame to a batch, as no producer does. Returns the paths of the truncated ones."""
    torn = [logs / f"py-{codec}-0" / f"{0:020}.log" for codec in CODECS]
    for path in torn:
        os.truncate(path, path.stat().st_size - 30)
    from crc32c import crc32c

    path = logs / "rd-lz4-0" / f"{0:020}.log"
    data = path.read_bytes()
    size = 12 + struct.unpack_from(">i", data, 8)[0]
    name = b"plant-second-frame"
    body = b"\0\0\x80\x7d" + bytes((2 * len(name),)) + name + b"\x02x\0"
    frame = lz4.frame.compress(bytes((2 * len(body),)) + body, store_size=False)
    rest = data[21:size] + frame
    batch = data[:8] + struct.pack(">i", size - 12 + len(frame)) + data[12:17] + struct.pack(">I", crc32c(rest)) + rest
    path.write_bytes(batch + data[size:])
    return set(map(str, torn))


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
    """Yield the decompressed frames of a batch, as far as they are there, with libraries that kdump has no part in."""
    if codec == 0:
        yield data
    elif codec == 1:
        yield zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)
    elif codec == 2:
        at, out = 16, b""
        if not data.startswith(b"\x82SNAPPY"):
            with suppress(snappy.UncompressError):
                yield snappy.decompress(data)
            return
        while at + 4 <= len(data):
            size = struct.unpack_from(">i", data, at)[0]
            with suppress(snappy.UncompressError):
                out += snappy.decompress(data[at + 4 : at + 4 + size])
            at += 4 + size
        yield out
    elif codec == 3:
        while data:
            frame = lz4.frame.LZ4FrameDecompressor()
            yield frame.decompress(data)
            data = frame.unused_data or b""
    else:
        yield zstandard.ZstdDecompressor().decompressobj().decompress(data)


def read(path: Path) -> Iterator[tuple[int, bytes | None, int, int]]:
    """Yield offset, key, size of the value (-1: null) and frame of each record of a segment, those of an incomplete
    batch, too."""
    data, position = path.read_bytes(), 0
    while position + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, position)
        attributes = struct.unpack_from(">h", data, position + 21)[0]
        if length <= 0:
            return
        for frame, payload in enumerate(payloads(attributes & 7, data[position + 61 : position + 12 + length])):
            at = 0
            try:
                while at < len(payload):
                    size, at = varint(payload, at)
                    end = at + size
                    _, at = varint(payload, at + 1)
                    delta, at = varint(payload, at)
                    count, at = varint(payload, at)
                    key = None if count < 0 else payload[at : at + count]
                    value_size, at = varint(payload, at + max(0, count))
                    if end <= len(payload):
                        yield base + delta, key, value_size, frame
                    at = end
            except IndexError:
                break
        position += 12 + length


class Truth:
    """What is on the disk. `places`: of each planted key, with the size of the value; `states`: what a record is, and
    the offset that supersedes it."""

    def __init__(self, cluster: Cluster, logs: Path, torn: set[str]) -> None:
        self.places: dict[str, dict[Place, int]] = {}
        self.states: dict[Place, tuple[str, int | None]] = {}
        self.of_dump = 0
        """Records that kafka-dump-log shows."""
        self.differences: list[str] = []
        segments = sorted(path for path in logs.rglob("*.log*") if "__cluster_metadata" not in str(path))
        for path in segments:
            own = {}
            for offset, key, size, frame in read(path):
                if key is not None and key.startswith(PLANT):
                    place = str(path), offset
                    self.places.setdefault(key.decode(), {})[place] = size
                    own[offset, size, key] = frame
                    state = DELETED if path.suffix == ".deleted" else LIVE
                    self.states[place] = HIDDEN if frame else state, None
            dumped = self._dumped(cluster, path)
            if not dumped <= set(own):
                self.differences.append(f"{path}: only in kafka-dump-log: {sorted(dumped - set(own))[:3]}")
            for offset, size, key in set(own) - dumped:
                if str(path) in torn:
                    self.states[str(path), offset] = TORN, None
                elif not own[offset, size, key]:
                    self.differences.append(f"{path}: not in kafka-dump-log: {offset}")
        newest: dict[str, int] = {}
        for name, places in self.places.items():
            live = [offset for (path, offset) in places if "compacted-0" in path and path.endswith(".log")]
            newest |= {name: max(live)} if live else {}
        for name, places in self.places.items():
            for place in places:
                if "compacted-0" in place[0] and place[0].endswith(".log") and place[1] < newest[name]:
                    self.states[place] = SUPERSEDED, newest[name]

    def _dumped(self, cluster: Cluster, path: Path) -> set[tuple[int, int, bytes]]:
        """Return offset, size of the value and key of the plants that kafka-dump-log shows, and note aborted ones."""
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place, path.name.removesuffix(".deleted"))
            shutil.copyfile(path, copy)
            tool = "org.apache.kafka.tools.DumpLogSegments"
            command = cluster.java(tool, "--files", str(copy), "--print-data-log", "--deep-iteration")
            out = subprocess.run(command, capture_output=True, check=False).stdout
        producer, found, pending = -1, set(), dict[int, list[Place]]()
        for line in out.splitlines():
            if head := BATCH.match(line):
                producer = int(head[2]) if head[3] == b"true" else -1
            elif marker := MARKER.match(line):
                ended = pending.pop(producer, [])
                if marker[2] == b"ABORT":
                    self.states |= dict.fromkeys(ended, (ABORTED, None))
            elif row := OF_DUMP.match(line):
                found.add((int(row[1]), int(row[2]), row[3]))
                if producer >= 0:
                    pending.setdefault(producer, []).append((str(path), int(row[1])))
        self.of_dump += len(found)
        return found


class Comparison:
    """Searches, and what they missed or found that is not there."""

    def __init__(self, logs: Path, truth: Truth) -> None:
        self.logs, self.truth = logs, truth
        self.counts = Counter[str]()

    def check(self, expression: str, expected: set[Place], path: Path | None = None) -> SearchCoverage:
        found: set[Place] = set()
        self.counts["searches"] += 1
        for answer in kdump.find(str(path or self.logs), expression):
            if isinstance(answer, SearchCoverage):
                coverage = answer
                continue
            place = answer.target.path, answer.record.offset or 0
            found.add(place)
            self._label(place, answer)
        for what, places in (("missed", expected - found), ("false", found - expected)):
            self.counts[what] += len(places)
            if places:
                print(f"{what} by {expression[:100]}: {sorted(places)[:3]}")
        if coverage.matches != len(found):
            self.counts["false"] += 1
        return coverage

    def _label(self, place: Place, found: Found) -> None:
        state = self.truth.states.get(place)
        if state is None or found.states != (state[0],) or found.superseded_by != state[1]:
            self.counts["wrongLabels"] += 1
            print(f"{place}: {found.states} {found.superseded_by}, expected {state}")

    def nothing(self, expression: str, path: Path) -> None:
        """Check that nothing matches, and that all of it was searched: exit status 1."""
        coverage = self.check(expression, set(), path)
        command = [sys.executable, "-m", "kdump", "find", expression, str(path)]
        status = subprocess.run(command, capture_output=True, check=False).returncode
        if not coverage.isComplete or status != 1:
            self.counts["incomplete"] += 1
            print(f"{expression}: {coverage.notSearched}, status {status}")


def compare(logs: Path, plants: Plants, truth: Truth, dice: random.Random) -> Comparison:
    """Search for every planted key, in groups, by key, header and value, and for some alone."""
    comparison, forms = Comparison(logs, truth), plants.forms
    places = truth.places

    def test(name: str) -> str:
        return f"value ~ ' {name} '" if forms[name] == "text" else f"value.who == '{name}'"

    comparison.check("key ~ '^plant-'", set().union(*places.values()))
    names = sorted(forms)
    dice.shuffle(names)
    for start in range(0, len(names), GROUP):
        group = names[start : start + GROUP]
        there = {name: places.get(name, {}) for name in group}
        every = {place for name in group for place in there[name]}
        comparison.check(" or ".join(f"key == '{name}'" for name in group), every)
        valued = {place for name in group for place, size in there[name].items() if size >= 0}
        comparison.check(" or ".join(map(test, group)), valued)
        headed = {place for name in group for place in there[name] if name.split("-")[1] in CLIENTS}
        comparison.check(" or ".join(f"header.who == '{name}'" for name in group), headed)
    torn = [key for key, found in places.items() if any(truth.states[place][0] == TORN for place in found)]
    for name in (*dice.sample(names, 60), *torn[:20], "plant-second-frame"):
        comparison.check(f"key == '{name}'", set(places.get(name, {})))
        whole = {place for place, size in places.get(name, {}).items() if size >= 0}
        if name in forms:
            comparison.check(test(name), whole)
            comparison.check(f"'{name}' in any", {place for key in places if name in key for place in places[key]})
    for name in sorted(plants.gone)[:5]:
        comparison.nothing(f"'{name}' in any", logs / "gone-0")
    for codec in CODECS:
        comparison.nothing(f"value.who == 'never' or key == 'never-{codec}'", logs / f"java-{codec}-0")
        comparison.check(f"value.who == 'never' or 'never-{codec}' in any", set())
    return comparison


def main() -> int:
    """Run the trial; the status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--keys", type=int, default=10_400)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/find-trial.json"))
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp())
    logs = work / "logs"
    cluster = Cluster(options.jars.resolve(), work, logs, [logs], combined=True, configs=CONFIGS)
    cluster.format_disks()
    with cluster:
        if not cluster.started():
            raise RuntimeError("the broker does not start")
        plants = plant(cluster, options.keys)
    torn = damage(logs)
    if options.keep:
        shutil.copytree(logs, options.keep)
    truth = Truth(cluster, logs, torn)
    comparison = compare(logs, plants, truth, random.Random(1))
    forms, places = plants.forms, truth.places
    counts = {name: comparison.counts[name] for name in ("searches", "missed", "false", "wrongLabels", "incomplete")}
    result: dict[str, Any] = {
        "kafka": str(release_of(options.jars)),
        "keys": len(forms),
        "keysOnDisk": len(places),
        "keysGone": len(plants.gone - set(places)),
        "records": sum(map(len, places.values())),
        "recordsOfDumpLog": truth.of_dump,
        "tombstones": sum(size < 0 for found in places.values() for size in found.values()),
        "formats": Counter(forms.values()),
        "producers": Counter(name.split("-")[1] for name in forms if name.split("-")[1] in CLIENTS),
        "states": Counter(state for state, _ in truth.states.values()),
        "oraclesDiffer": len(truth.differences),
        **counts,
    }
    print(*truth.differences, json.dumps(result, indent=1), sep="\n")
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    shutil.rmtree(work)
    return int(any((truth.differences, *list(counts.values())[1:])))


if __name__ == "__main__":
    sys.exit(main())
