"""python -m tools.bucket_trials JARS [--rounds N] [--out docs/bucket-trials.json]

Makes a topic of 64 partitions with a real broker and LocalTieredStorage. In each round, changes the bucket of each
partition in one way while the broker is down, starts the broker with it, and reads each partition with the Java
consumer: the first offset that it does not get is the first of the errors that `kdump verify --remote` has, except for
those of time indexes, which no fetch by offset reads.

JARS has the jars of tools/kafka-test-jars.xml. Needs Java 17, 1 GB of memory, and two minutes for a round.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from kdump.check.engine.remote_check import remote_check
from kdump.check.engine.units import units_of
from kdump.check.finding import ERROR
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.log.remote_objects import RemoteStorage
from tools.remote_trials import CONFIG
from tools.trials.cluster import Cluster

RESULTS = Path(__file__).parent.parent / "docs" / "bucket-trials.json"
TOPIC, PARTITIONS = "many", 64
QUIET = 15_000
"""Milliseconds without a record after which a consumer is stuck."""
KEEP = "\nlog.retention.check.interval.ms=6000000\nlog.initial.task.delay.ms=6000000\n"
COPY = "\nremote.log.manager.task.interval.ms=1000\nlog.segment.delete.delay.ms=1000\n"
CREATE = [
    *("remote.storage.enable=true", "internal.segment.bytes=20000", "local.retention.bytes=1"),
    *("retention.bytes=100000000", "index.interval.bytes=1000"),
]
KINDS = [
    *("deleted", "index gone", "time index gone", "snapshot and epochs gone", "flipped", "flipped", "flipped", "cut"),
    *("cut", "emptied", "swapped", "renamed", "duplicated", "zeros at the end", "index flipped", "index cut"),
    *("index of another", "longer", "zeroed", "of another partition"),
]


def make(jars: Path, base: Path) -> None:
    """Make the disk and the bucket."""
    disk, tier = base / "disk", base / "tier"
    for each in (disk, tier, base / "controller"):
        each.mkdir(parents=True)
    configs = CONFIG.format(tier=tier) + COPY
    cluster = Cluster(jars, base, base / "controller", [disk], combined=True, configs=configs)
    cluster.format_disks("MkU3OEVBNTcwNTJENDM2Qk")
    with cluster:
        assert cluster.started(), cluster.log("broker")[-20:]
        options = [part for config in CREATE for part in ("--config", config)]
        cluster.tool("TopicCommand", "--create", "--topic", TOPIC, "--partitions", str(PARTITIONS), *options)
        producer = ["batch.size=2000", "linger.ms=20", f"bootstrap.servers={cluster.alive()}"]
        cluster.java_run(
            *("org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--record-size", "80"),
            *("--num-records", str(PARTITIONS * 1100), "--throughput", "20000"),
            *(part for config in producer for part in ("--command-property", config)),
        )
        for _ in range(90):
            time.sleep(1)
            if all(len([*(disk / f"{TOPIC}-{n}").glob("*.log")]) == 1 for n in range(PARTITIONS)):
                break
        for process in cluster.processes.values():
            process.terminate()
            process.wait(60)


def other_name(path: Path) -> Path:
    """Return the name of the same object of another segment."""
    return path.with_name(f"{path.name[:21]}AAAAAAAAAAAAAAAAAAAA{path.name[41:]}")


def change(rng: random.Random, partition: Path, others: list[Path]) -> str:
    """Change what a bucket has of a partition, and return how."""
    logs = sorted(partition.glob("*.log"))
    log, kind = rng.choice(logs), rng.choice(KINDS)
    other = rng.choice([each for each in logs if each != log])
    data = bytearray(log.read_bytes())
    at = rng.randrange(len(data))
    new: dict[str, bytes | bytearray] = {
        "flipped": data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
        "cut": data[: at or 1],
        "emptied": b"",
        "zeros at the end": data[: len(data) // 3] + bytes(len(data) - len(data) // 3),
        "longer": data + data[-100:],
        "zeroed": (data[:at] + bytes(4096) + data[at + 4096 :])[: len(data)],
        "swapped": other.read_bytes(),
        "of another partition": rng.choice(sorted(rng.choice(others).glob("*.log"))).read_bytes(),
    }
    if kind == "swapped":
        other.write_bytes(data)
    if kind in new:
        log.write_bytes(new[kind])
    gone = {"deleted": ["log"], "index gone": ["index"], "time index gone": ["timeindex"]}
    gone["snapshot and epochs gone"] = ["snapshot", "leader_epoch_checkpoint"]
    for suffix in gone.get(kind, []):
        log.with_suffix(f".{suffix}").unlink()
    if kind == "renamed":
        log.rename(other_name(log))
    for suffix in ("log", "index", "timeindex") if kind == "duplicated" else ():
        shutil.copy(log.with_suffix(f".{suffix}"), other_name(log.with_suffix(f".{suffix}")))
    if kind.startswith("index ") and kind != "index gone":
        suffix = rng.choice([".index", ".timeindex"])
        index = bytearray(log.with_suffix(suffix).read_bytes())
        if not index:
            return "unchanged"
        at = rng.randrange(len(index))
        flipped = index[:at] + bytes([index[at] ^ 1 << rng.randrange(8)]) + index[at + 1 :]
        changed: dict[str, bytes | bytearray] = {"index flipped": flipped, "index cut": index[:at]}
        log.with_suffix(suffix).write_bytes(changed.get(kind, other.with_suffix(suffix).read_bytes()))
        kind += f" ({suffix[1:]})"
    return kind


def predicted(disk: Path, tier: Path) -> dict[int, int]:
    """Return the first offset of the errors that kdump has, by partition."""
    options = Options(remote=RemoteStorage(str(tier)), now=4_000_000_000_000)
    disks, totals = options.disks_at([str(disk)]), CheckTotals()
    check = remote_check(disks, options, [*units_of(disks, options)], totals)
    assert check is not None
    first: dict[int, int] = {}
    for place, topic in check.places():
        for finding in check.findings(place, topic, totals):
            is_error = finding.severity == ERROR and finding.code != "time-index-mismatch"
            if is_error and finding.offset is not None:
                first[place[1]] = min(first.get(place[1], finding.offset), finding.offset)
    return first


def tried(number: int, jars: Path, made: Path, classes: Path) -> list[dict[str, Any]]:
    """Return the results of one round."""
    rng = random.Random(number)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for each in ("disk", "tier"):
            shutil.copytree(made / each, work / each)
        (work / "controller").mkdir()
        disk, tier = work / "disk", work / "tier"
        parts = {int(re.findall(r"-(\d+)-", path.name)[0]): path for path in tier.glob(f"*/{TOPIC}-*")}
        chosen = {n: path for n, path in sorted(parts.items()) if len([*path.glob("*.log")]) > 1}
        changes = {n: change(rng, path, [p for p in chosen.values() if p != path]) for n, path in chosen.items()}
        first = predicted(disk, tier)
        configs = CONFIG.format(tier=tier) + KEEP
        with Cluster(jars, work, work / "controller", [disk], combined=True, configs=configs) as cluster:
            assert cluster.started(), cluster.log("broker")[-20:]
            command = ["java", "-Xmx500m", "-cp", f"{classes}:{jars}/*", "ReadAll", cluster.alive(), TOPIC]
            text = subprocess.run([*command, str(PARTITIONS), str(QUIET)], capture_output=True, text=True, check=True)
    results = []
    for partition, got, end, thrown in re.findall(r"^read (\d+) (\d+) (\d+) (.*)$", text.stdout, re.MULTILINE):
        n = int(partition)
        if n in changes:
            wanted = min(first.get(n, int(end)), int(end))
            result = {"round": number, "partition": n, "change": changes[n], "predicted": wanted, "got": int(got)}
            results.append(result | {"end": int(end), "thrown": thrown})
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    others = []
    with tempfile.TemporaryDirectory() as name:
        made, classes = Path(name) / "made", Path(name) / "classes"
        source = Path(__file__).parent / "trials" / "ReadAll.java"
        subprocess.run(["javac", "-d", classes, "-cp", f"{options.jars}/*", source], check=True)
        make(options.jars, made)
        for number in range(1, options.rounds + 1):
            results = tried(number, options.jars, made, classes)
            kinds.update(result["change"] for result in results if result["change"] != "unchanged")
            others += [result for result in results if result["predicted"] != result["got"]]
            print(number, len(results), len(others), file=sys.stderr, flush=True)
            summary = {"changes": kinds.total(), "otherwise": others, "kinds": dict(sorted(kinds.items()))}
            options.out.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
