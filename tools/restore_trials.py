"""python -m tools.restore_trials JARS TARGET_JARS [--records 1000000] [--kills 50] [--seed 1] [--out FILE]

Fills ten topics of a broker (five codecs, tombstones, headers without a value, records of 10 MB, a compacted and a
transactional topic), stops it, and restores its disk to a new cluster of three brokers, while `kdump restore` or a
broker is killed again and again. What the Java consumer and librdkafka receive from the new cluster must be what they
received from the old one: partition, order, key, value, headers, timestamp. Each argument is a directory with the jars
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
from collections.abc import Callable, Iterator
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
            consumer.assign([kafka.TopicPartition(topic, partition, 0)])
            digest, count, is_at_end = hashlib.sha256(), 0, False
            while not is_at_end:
                for message in consumer.consume(5000, timeout=1):
                    if message.error():
                        is_at_end = message.error().code() == kafka.KafkaError._PARTITION_EOF
                        if not is_at_end:
                            raise SystemExit(str(message.error()))
                        break
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


def restored(
    cluster: Cluster, command: list[str], options: argparse.Namespace, random: Random, note: Callable[[str], None]
) -> tuple[int, int]:
    """Run restore to its end, with kills before that. Returns how often kdump was killed, and a broker."""
    killed, kills = 0, options.kills
    brokers = [role for role in cluster.ports if role != "controller"]
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        role = None
        if kills > 0:
            try:
                process.wait(random.uniform(2, options.within))
            except subprocess.TimeoutExpired:
                kills -= 1
                if random.random() >= options.of_brokers:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
                    note(f"{kills} left: kdump is killed")
                else:
                    role = random.choice(brokers)
                    cluster.processes[role].kill()
                    cluster.processes[role].wait()
                    note(f"{kills} left: {role} is killed")
        if role is not None:
            time.sleep(random.uniform(0, 8))
            cluster.start_node(role)
        out = process.communicate()[0]
        if role is not None:
            until = time.monotonic() + 60
            while time.monotonic() < until and not cluster._is_up(role):
                time.sleep(0.3)
        if process.returncode == 0 and kills <= 0:
            return killed, options.kills - kills - killed
        if process.returncode not in (0, -signal.SIGKILL):
            note(f"exit {process.returncode}: {out[-600:]}")
            if role is None:
                raise SystemExit(out)
        if process.returncode == 0:
            note("restored, so there is nothing left to interrupt")
            return killed, options.kills - kills - killed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.restore_trials", description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--max-rate", default="", help="--max-rate of restore, so that there is time to kill it")
    parser.add_argument("--of-brokers", type=float, default=0.4, help="part of the kills that are of a broker")
    parser.add_argument("--within", type=float, default=30, help="seconds after the start of a run until a kill")
    parser.add_argument("--keep", type=Path, help="keep the disks here if a partition differs")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "restore-trials.json")
    options = parser.parse_args()

    def note(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    random, topics = Random(options.seed), [*TOPICS]
    with tempfile.TemporaryDirectory(prefix="kdump-") as name:
        work = Path(name)
        with running(options.jars, work / "source", 1) as cluster:
            fill(bootstrap(cluster), options.records, random)
            settle(bootstrap(cluster))
            expected = read(bootstrap(cluster), topics)
            if read_by_java(cluster, bootstrap(cluster), topics) != expected:
                raise SystemExit("librdkafka and the Java consumer receive different records")
            note(f"the source has {sum(count for count, _ in expected.values()):,} records")
        with running(options.target, work / "target", options.brokers) as cluster:
            config = work / "client.properties"
            config.write_text(f"message.max.bytes={LARGE + 900_000}\n")
            to = bootstrap(cluster)
            command = [sys.executable, "-m", "kdump", "restore", str(work / "source" / "disk-1"), "--to", to]
            command += ["--config", str(config), "--create", "--append"]
            rate = ["--max-rate", options.max_rate] if options.max_rate else []
            began = time.monotonic()
            of_kdump, of_brokers = restored(cluster, [*command, *rate, "--yes"], options, random, note)
            took = time.monotonic() - began
            found, java = read(to, topics), read_by_java(cluster, to, topics)
            differs = sorted(name for name in expected if not expected[name] == found[name] == java[name])
            check = subprocess.run([*command, "--check", "--json"], capture_output=True, text=True)
        if differs and options.keep:
            shutil.copytree(work, options.keep)
    result = {
        "source": str(release_of(options.jars)),
        "target": str(release_of(options.target)),
        "brokers": options.brokers,
        "records": sum(count for count, _ in expected.values()),
        "partitions": len(expected),
        "killsOfKdump": of_kdump,
        "killsOfBrokers": of_brokers,
        "seconds": round(took),
        "differs": differs,
        "check": check.returncode,
    }
    print(json.dumps(result))
    if differs or check.returncode:
        for name in differs:
            note(f"{name}: {expected[name][0]} records, {found[name][0]} and {java[name][0]} in the target")
        note("\n".join(line for line in check.stdout.splitlines() if "Difference" in line))
        sys.exit(1)
    done = json.loads(options.out.read_text()) if options.out.exists() else []
    options.out.write_text(json.dumps([*done, result], indent=1) + "\n")


if __name__ == "__main__":
    main()
