"""Compares the speed of `kdump restore` with that of kafka-producer-perf-test: pairs of runs with the same records, to
one broker. Run as python -m bench.restore JARS, with a directory of a release's jars."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from os import getloadavg
from pathlib import Path

from tools.trials.cluster import TOOL, Cluster

SIZE = 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.restore", description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--codec", default="none", help="of perf-test and of restore")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdump-") as name:
        work = Path(name)
        (work / "client.properties").write_text(f"compression.type={options.codec}\n")
        cluster = Cluster(options.jars, work, work / "disk-0", [work / "disk-1"], combined=True)
        cluster.format_disks()
        with cluster:
            if not cluster.started():
                raise SystemExit("\n".join(cluster.log("broker")[-20:]))
            produce(cluster, "warm", options)
            print("| perf-test | restore | ratio | load |\n| --: | --: | --: | --: |", flush=True)
            ratios = [pair(cluster, work, f"t{number}", options) for number in range(options.pairs)]
    print(f"median ratio {statistics.median(ratios):.2f}")


def produce(cluster: Cluster, topic: str, options: argparse.Namespace) -> float:
    """Return the records per second that perf-test states, which is without the start of its JVM."""
    cluster.tool("TopicCommand", "--create", "--topic", topic, "--partitions", str(options.partitions))
    what = ["--topic", topic, "--num-records", str(options.records), "--record-size", str(SIZE), "--throughput", "-1"]
    client = [f"bootstrap.servers={cluster.alive()}", "acks=all", "enable.idempotence=true"]
    command = [*what, "--producer-props", *client, f"compression.type={options.codec}"]
    out = cluster.java_run(f"{TOOL}ProducerPerformance", *command)
    return float(re.findall(r"([\d.]+) records/sec", out)[-1])


def pair(cluster: Cluster, work: Path, topic: str, options: argparse.Namespace) -> float:
    """Return what part of perf-test's speed restore reaches: plan, producing and the last commit."""
    rate = produce(cluster, topic, options)
    time.sleep(2)
    words = ["restore", str(work / "disk-1"), "--topic", f"{topic}={topic}-back", "--to", cluster.alive(), "--create"]
    words += ["--config", str(work / "client.properties"), "--yes", "--json"]
    done = subprocess.run([sys.executable, "-m", "kdump", *words], capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout.splitlines()[-1])
    if summary["produced"] != options.records:
        raise SystemExit(done.stdout + done.stderr)
    reached: float = options.records / summary["seconds"]
    print(f"| {rate:,.0f}/s | {reached:,.0f}/s | {reached / rate:.2f} | {getloadavg()[0]:.1f} |", flush=True)
    time.sleep(2)
    return reached / rate


if __name__ == "__main__":
    main()
