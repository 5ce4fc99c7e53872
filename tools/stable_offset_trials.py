"""python -m tools.stable_offset_trials JARS [--partitions 300] [--out docs/stable-offset-trials.json]

Fills the partitions of a real broker that was shut down cleanly with logs of transactions, each with two or three
damages, starts it, and compares the last stable offset of each partition with that of `kdump transactions`. A
partition whose damage would stop the broker, by `kdump restart-plan`, is filled again. 4.3 states the base offset of
the batch in which the last stable offset is (LogSegment.read): below it if the log start offset is inside a batch.

JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17, 1 GB of memory and five minutes.
"""

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
from kdump.questions.transactions.answer import PartitionTransactions
from tools.trials.cluster import KAFKA, STARTED, Cluster
from tools.trials.recorded_results import trial_options

Result = dict[str, Any]
LOGS: Any = import_module("tests.questions.transactions.test_broker_start")
"""Makes and damages logs."""
TOPIC = "payments"
CLUSTER = "k2xrTMYLRJGYFaSRS_Wf6w"
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


def fill(folder: Path, work: Path, dice: random.Random) -> tuple[int, Result] | None:
    """Put a damaged log in place of an empty one. Returns its log start offset, and what kdump predicts; None if the
    broker would not start with it."""
    disk = work / "disk"
    shutil.rmtree(disk, ignore_errors=True)
    disk.mkdir()
    made, end = LOGS.random_log(disk, dice)
    done = [LOGS.damage(made, end, dice) for _ in range(dice.choice((2, 3)))]
    plan = kdump.restart_plan([str(disk)])
    (partition,) = plan.partitions
    if partition.logEndOffset is None or plan.stops:
        return None
    (row,) = (row for row in kdump.transactions(str(disk)) if isinstance(row, PartitionTransactions))
    for path in [*folder.glob("0*"), folder / "leader-epoch-checkpoint"]:
        path.unlink(missing_ok=True)
    for path in made.iterdir():
        shutil.copy(path, folder)
    starts = disk / "log-start-offset-checkpoint"
    start = int(starts.read_text().split()[-1]) if starts.exists() else 0
    facts = {"damages": done, "lastStableOffset": row.lastStableOffset, "logEndOffset": row.logEndOffset}
    return start, facts | {"open": row.open, "restartPlanLogEndOffset": partition.logEndOffset}


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
            time.sleep(10)
            cluster.processes["broker"].terminate()
            cluster.processes["broker"].wait()
        results, starts = [], {}
        for number in range(count):
            while (filled := fill(root / f"{TOPIC}-{number}", work, dice)) is None:
                pass
            starts[number], facts = filled
            results.append({"kafka": KAFKA, "partition": number, **facts})
        lines = [f"{TOPIC} {number} {start}\n" for number, start in starts.items() if start]
        (root / "log-start-offset-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}")
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
    agree = sum(each["lastStableOffset"] == each["brokerLastStableOffset"] for each in results)
    print(f"{agree} of {len(results)} agree")
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
