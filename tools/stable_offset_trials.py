"""python -m tools.stable_offset_trials JARS [--partitions 300] [--seed 1] [--out docs/stable-offset-trials.json]

Fills the partitions of a real broker that was shut down cleanly with logs of transactions, each with two or three
damages, starts it, and compares the last stable offset of each partition with that of `kdump transactions`, and the
high watermark, which is the log end without other replicas, with the log ends of `transactions` and `restart-plan`. A
partition whose damage would stop the broker, by `kdump restart-plan`, is filled again.

JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17, 1 GB of memory and a minute."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import kdump
from kdump.format.kafka_release import parse_release
from kdump.questions.transactions.answer import PartitionTransactions
from tools.trials.cluster import KAFKA, STARTED, Cluster
from tools.trials.recorded_results import trial_options

Result = dict[str, Any]
LOGS: Any = import_module("tests.questions.transactions.test_broker_start")
"""Makes and damages logs."""
DAMAGES: Any = import_module("tests.damages")
TOPIC = "payments"
CLUSTER = "k2xrTMYLRJGYFaSRS_Wf6w"
COMPARED = {
    "lastStableOffset": "brokerLastStableOffset",
    "logEndOffset": "brokerLogEndOffset",
    "restartPlanLogEndOffset": "brokerLogEndOffset",
}
CLIENT = Path(__file__).parent / "trials" / "StableOffsets.java"


def ask(cluster: Cluster, what: str, count: int) -> list[list[int]]:
    command = ["java", "-Xmx200m", "-cp", f"{cluster.jars}/*", str(CLIENT)]
    command += [f"127.0.0.1:{cluster.ports['broker']}", what, TOPIC, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]


def started(cluster: Cluster) -> None:
    while not STARTED.search("\n".join(cluster.log("broker"))):
        if cluster.processes["broker"].poll() is not None:
            raise RuntimeError("\n".join(cluster.log("broker")[-30:]))
        time.sleep(0.5)


def fill(folder: Path, work: Path, dice: random.Random) -> tuple[dict[str, int], Result] | None:
    """Put a damaged log in place of an empty one. Returns its offsets in checkpoints, and what kdump predicts; None if
    the broker would not start with it."""
    disk = work / "disk"
    shutil.rmtree(disk, ignore_errors=True)
    disk.mkdir()
    made, end = LOGS.random_log(disk, dice)
    done = [LOGS.damage(made, end, dice) for _ in range(dice.choice((2, 3)))]
    DAMAGES.aged(disk)  # else each look waits for changes that may follow
    plan = kdump.restart_plan([str(disk)], kafka_version=KAFKA)
    (partition,) = plan.partitions
    if partition.logEndOffset is None or plan.stops or partition.stops:
        return None
    rows = kdump.transactions(str(disk), run=kdump.Options(kafka_version=parse_release(KAFKA)))
    (row,) = (row for row in rows if isinstance(row, PartitionTransactions))
    for path in [*folder.glob("0*"), folder / "leader-epoch-checkpoint"]:
        path.unlink(missing_ok=True)
    for path in made.iterdir():
        shutil.copy(path, folder)
    starts = disk / "log-start-offset-checkpoint"
    start = int(starts.read_text().split()[-1]) if starts.exists() else 0
    facts = {"damages": done, "lastStableOffset": row.lastStableOffset, "logEndOffset": row.startLogEndOffset}
    facts |= {"open": row.open, "restartPlanLogEndOffset": partition.logEndOffset}
    return {"log-start-offset": start, "replication-offset": end}, facts


def trial(jars: Path, count: int, seed: int) -> list[Result]:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="stable-") as folder:
        work = Path(folder)
        root = work / "broker"
        root.mkdir()
        (root / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n")
        cluster = Cluster(jars, work, work / "unused", [root], combined=True)
        with cluster:
            started(cluster)
            ask(cluster, "create", count)
            while len(list(root.glob(f"{TOPIC}-*/partition.metadata"))) < count:
                time.sleep(1)
            cluster.processes["broker"].terminate()
            cluster.processes["broker"].wait()
        results: list[Result] = []
        lines: dict[str, list[str]] = {"log-start-offset": [], "replication-offset": []}
        for number in range(count):
            while (filled := fill(root / f"{TOPIC}-{number}", work, dice)) is None:
                pass
            offsets, facts = filled
            for name, offset in offsets.items():
                lines[name] += [f"{TOPIC} {number} {offset}\n"] if offset else []
            results.append({"kafka": KAFKA, "seed": seed, "partition": number, **facts})
        for name, rows in lines.items():
            (root / f"{name}-checkpoint").write_text(f"0\n{len(rows)}\n{''.join(rows)}")
        with cluster:
            started(cluster)
            time.sleep(5)
            for number, stable, end in ask(cluster, "print", count):
                results[number] |= {"brokerLastStableOffset": stable, "brokerLogEndOffset": end}
    return results


def main() -> None:
    parser = trial_options(__doc__, "docs/stable-offset-trials.json")
    parser.add_argument("--partitions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    results = trial(options.jars.resolve(), options.partitions, options.seed)
    for key, broker in COMPARED.items():
        agree = sum(result[key] == result[broker] for result in results)
        print(f"{key}: {agree} of {len(results)} agree")
    before = json.loads(options.out.read_text()) if options.out.exists() else []
    others = [result for result in before if result["seed"] != options.seed]
    results = sorted(others + results, key=lambda result: (result["seed"], result["partition"]))
    options.out.write_text("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n")


if __name__ == "__main__":
    main()
