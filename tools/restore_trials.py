"""python -m tools.restore_trials JARS TARGET_JARS [--records 1000000] [--kills 50] [--source DIR] [--out FILE]

Fills ten topics of a broker (five codecs, tombstones, headers without a value, records of 10 MB, a compacted and a
transactional topic), stops it, and restores its disk to a new cluster of three brokers, while `kdump restore` or a
broker is killed again and again. What the Java consumer and librdkafka receive from the new cluster must be what they
received from the old one: partition, order, key, value, headers, timestamp. Until there were so many kills, the topics
are deleted and restored again. Each argument is a directory with the jars
of a release (make build/release-jars/RELEASE). Needs Java 17 and confluent-kafka.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import confluent_kafka as kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tools.trials.cluster import Cluster, classpath, release_of

ROOT = Path(__file__).parents[1]
PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGE = 10_000_000
CONFIGS = f"""
message.max.bytes={LARGE + 1_000_000}
replica.fetch.max.bytes={LARGE + 1_000_000}
socket.request.max.bytes=104857600
"""
THREE = """
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
unclean.leader.election.enable=false
broker.session.timeout.ms=9000
"""
TOPICS: dict[str, dict[str, str]] = {
    **{f"codec-{codec}": {} for codec in CODECS},
    "tombstones": {},
    "headers": {},
    "large": {"max.message.bytes": str(LARGE + 500_000)},
    "compacted": {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01",
    },
    "transactional": {},
}
FOREVER = "9223372036854775807"
Digests = dict[str, tuple[int, str]]
"""By partition: number of records, and their SHA-256."""


@contextmanager
def running(jars: Path, work: Path, brokers: int) -> Iterator[Cluster]:
    """Format and start a cluster: one combined node, or a controller and several brokers."""
    dirs = [work / f"disk-{number}" for number in range(brokers + 1)]
    work.mkdir()
    cluster = Cluster(
        jars,
        work,
        dirs[0],
        [dirs[1]],
        combined=brokers == 1,
        configs=CONFIGS,
        others=dirs[2:],
    )
    for role in cluster.ports if brokers > 1 else ():
        path = cluster.write_properties(role)
        path.write_text(path.read_text() + CONFIGS + THREE)
        cluster.edited.add(role)
    cluster.format_disks()
    with cluster:
        if not cluster.started():
            raise SystemExit("\n".join(cluster.log("broker")[-20:]))
        yield cluster


def bootstrap(cluster: Cluster) -> str:
    return ",".join(f"127.0.0.1:{port}" for role, port in cluster.ports.items() if role != "controller")


def fill(to: str, records: int, random: Random) -> None:
    """Create the topics and produce to them."""
    admin = AdminClient({"bootstrap.servers": to})
    for future in admin.create_topics(
        [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, config=each) for name, each in TOPICS.items()]
    ).values():
        future.result()
    now = int(time.time() * 1000) - 3_600_000
    each = records // (len(TOPICS) - 1)
    for topic in TOPICS:
        codec = topic.partition("-")[2] or random.choice(CODECS)
        config = {"bootstrap.servers": to, "compression.type": codec, "linger.ms": 20, "batch.size": 100_000}
        config |= {"message.max.bytes": LARGE + 400_000, "queue.buffering.max.kbytes": 200_000}
        if topic == "transactional":
            config["transactional.id"] = "filling"
        producer = kafka.Producer(config)
        if topic == "transactional":
            producer.init_transactions()
            producer.begin_transaction()
        for number in range(15 if topic == "large" else each):
            if topic == "transactional" and number % 5000 == 4999:
                producer.flush()
                (producer.abort_transaction if random.random() < 0.3 else producer.commit_transaction)()
                producer.begin_transaction()
            key = None if topic == "headers" and number % 3 == 0 else b"k%d" % random.randrange(each // 4 + 1)
            value: bytes | None = b'{"number": %d, "text": "%x"}' % (number, random.getrandbits(400))
            if topic in ("tombstones", "compacted") and key is not None and random.random() < 0.1:
                value = None
            if topic == "large":
                value = random.randbytes(LARGE if number % 5 == 0 else 900_000)
            headers = []
            if number % 4 == 0 or topic == "headers":
                headers = [("trace", b"%d" % number), ("empty", b""), ("none", None), ("trace", b"\xff\x00")]
            send(producer, topic, value, key, number % PARTITIONS, now + number, headers)
        if topic == "transactional":
            producer.commit_transaction()
        producer.flush()


def send(producer: Any, topic: str, value: Any, key: Any, partition: int, at: int, headers: Any) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition, timestamp=at, headers=headers)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def settle(to: str) -> None:
    """Wait until the cleaner has compacted, then keep it from doing so again."""
    before = None
    while (now := read(to, ["compacted"])) != before:
        before = now
        time.sleep(8)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "compacted")
    for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
        resource.add_incremental_config(ConfigEntry(name, FOREVER, incremental_operation=AlterConfigOpType.SET))
    admin = AdminClient({"bootstrap.servers": to})  # which must live until they are altered
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def read(to: str, topics: list[str]) -> Digests:
    """Return what librdkafka receives, read_committed."""
    config = {"bootstrap.servers": to, "group.id": "reading", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = kafka.Consumer(config | {"isolation.level": "read_committed", "fetch.message.max.bytes": LARGE * 2})
    found: Digests = {}
    for topic in topics:
        for partition in range(PARTITIONS):
            place = kafka.TopicPartition(topic, partition, 0)
            end = consumer.get_watermark_offsets(place, timeout=60, cached=False)[1]
            consumer.assign([place])
            digest, count, is_at_end = hashlib.sha256(), 0, False
            while not is_at_end:
                for message in consumer.consume(5000, timeout=1):
                    if message.error():
                        if message.error().code() != kafka.KafkaError._PARTITION_EOF:
                            raise SystemExit(str(message.error()))
                        is_at_end = message.offset() >= end  # a new leader learns only later what was committed
                        continue
                    count += 1
                    digest.update(message.timestamp()[1].to_bytes(8, "big", signed=True))
                    for part in (message.key(), message.value()):
                        add(digest, part)
                    for name, value in message.headers() or ():
                        add(digest, name.encode())
                        add(digest, value)
            found[f"{topic}-{partition}"] = (count, digest.hexdigest())
    consumer.close()
    return found


def add(digest: Any, data: bytes | None) -> None:
    digest.update((-1 if data is None else len(data)).to_bytes(4, "big", signed=True))
    if data is not None:
        digest.update(data)


def read_by_java(cluster: Cluster, to: str, topics: list[str]) -> Digests:
    """Return what the Java consumer receives, read_committed."""
    command = ["java", "-Xmx500m", "-cp", classpath(cluster.jars), str(ROOT / "tools" / "ReadBack.java"), to, *topics]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: (int(count), digest) for name, count, digest in lines}


class Round:
    """One restore, started again after each kill, until it is done. Counts the kills."""

    def __init__(self, cluster: Cluster, command: list[str], options: argparse.Namespace, random: Random) -> None:
        self.cluster, self.command, self.options, self.random = cluster, command, options, random
        self.brokers = [role for role in cluster.ports if role != "controller"]
        self.of_kdump = self.of_brokers = 0

    def run(self, kills: int) -> None:
        """Restore, with at most so many kills."""
        process = self._start()
        while True:
            try:
                process.wait(self.random.uniform(*self.options.within) if kills > 0 else None)
            except subprocess.TimeoutExpired:
                kills -= self._kill(process)
                if process.poll() is not None:
                    process = self._start()
                continue
            if process.returncode == 0:
                self._wait_for_brokers()
                return
            output = self.output.read_text()
            note(f"exit {process.returncode}: {output[-600:]}")
            if not self.of_brokers:
                raise SystemExit(output)
            self._wait_for_brokers()
            process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.output = self.cluster.work / "restore.out"
        with self.output.open("wb") as out:
            return subprocess.Popen(self.command, stdout=out, stderr=out)

    def _kill(self, process: subprocess.Popen[bytes]) -> int:
        """Kill kdump, or a broker if all are up, which is started again soon after. Returns 1 if something was."""
        if self.random.random() >= self.options.of_brokers:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.of_kdump += 1
            note("kdump is killed")
            return 1
        if not all(map(self.cluster._is_up, self.brokers)):
            return 0
        role = self.random.choice(self.brokers)
        self.cluster.processes[role].kill()
        self.cluster.processes[role].wait()
        self.of_brokers += 1
        note(f"{role} is killed")
        time.sleep(self.random.uniform(0, 8))
        self.cluster.start_node(role)
        return 1

    def _wait_for_brokers(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not all(map(self.cluster._is_up, self.brokers)):
            time.sleep(0.3)


def note(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def made_source(jars: Path, place: Path, records: int, random: Random) -> Digests:
    """Fill a cluster in `place`, unless an earlier run has, and return what both consumers receive from it."""
    stated = place / "expected.json"
    if stated.exists():
        return {name: (count, digest) for name, (count, digest) in json.loads(stated.read_text()).items()}
    with running(jars, place, 1) as cluster:
        fill(bootstrap(cluster), records, random)
        settle(bootstrap(cluster))
        expected = read(bootstrap(cluster), [*TOPICS])
        if read_by_java(cluster, bootstrap(cluster), [*TOPICS]) != expected:
            raise SystemExit("librdkafka and the Java consumer receive different records")
    stated.write_text(json.dumps(expected))
    note(f"the source has {sum(count for count, _ in expected.values()):,} records")
    return expected


def compare(cluster: Cluster, command: list[str], expected: Digests) -> list[str]:
    """Return the partitions of which a consumer receives other records than those of the source, or --check says so."""
    to = bootstrap(cluster)
    check = subprocess.run([*command, "--check", "--json"], capture_output=True, text=True)
    found, java = read(to, [*TOPICS]), read_by_java(cluster, to, [*TOPICS])
    differs = sorted(name for name in expected if not expected[name] == found[name] == java[name])
    for name in differs:
        note(f"{name}: {expected[name][0]} records, {found[name][0]} and {java[name][0]} in the target")
    if check.returncode:
        note("\n".join(line for line in check.stdout.splitlines() if "Difference" in line) + check.stderr[-2000:])
        differs.append("--check")
    return differs


def delete_topics(to: str) -> None:
    admin = AdminClient({"bootstrap.servers": to})
    for future in admin.delete_topics([*TOPICS]).values():
        future.result()
    while set(admin.list_topics(timeout=10).topics) & set(TOPICS):
        time.sleep(0.3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.restore_trials", description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--of-brokers", type=float, default=0.4, help="part of the kills that are of a broker")
    parser.add_argument("--within", type=float, nargs=2, default=(2, 30), help="seconds from one kill to the next")
    parser.add_argument("--seconds", type=float, default=3600, help="no further round begins after so many")
    parser.add_argument("--source", type=Path, help="the source, which is filled there if it does not exist")
    parser.add_argument("--keep", type=Path, help="keep the disks here if a partition differs")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "restore-trials.json")
    options = parser.parse_args()
    random, began = Random(options.seed), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kdump-") as name:
        work = Path(name)
        source = options.source or work / "source"
        expected = made_source(options.jars, source, options.records, random)
        if options.seconds <= 0:
            return
        of_kdump = of_brokers = rounds = 0
        with running(options.target, work / "target", options.brokers) as cluster:
            command = [sys.executable, "-m", "kdump", "restore", str(source / "disk-1"), "--to", bootstrap(cluster)]
            command.append("--create")
            while True:
                done = Round(cluster, [*command, "--yes"], options, random)
                done.run(options.kills - of_kdump - of_brokers)
                rounds, of_kdump, of_brokers = rounds + 1, of_kdump + done.of_kdump, of_brokers + done.of_brokers
                note(f"restored; {of_kdump} kills of kdump, {of_brokers} of brokers so far")
                differs = compare(cluster, command, expected)
                is_done = of_kdump + of_brokers >= options.kills or time.monotonic() - began > options.seconds
                if differs or is_done:
                    break
                delete_topics(bootstrap(cluster))
        if differs and options.keep:
            shutil.copytree(work, options.keep)
    result = {
        "source": str(release_of(options.jars)),
        "target": str(release_of(options.target)),
        "brokers": options.brokers,
        "records": sum(count for count, _ in expected.values()),
        "partitions": len(expected),
        "restores": rounds,
        "killsOfKdump": of_kdump,
        "killsOfBrokers": of_brokers,
        "seconds": round(time.monotonic() - began),
        "differs": differs,
    }
    print(json.dumps(result))
    done_before = json.loads(options.out.read_text()) if options.out.exists() else []
    options.out.write_text(json.dumps([*done_before, result], indent=1) + "\n")
    sys.exit(bool(differs))


if __name__ == "__main__":
    main()
