"""python -m tools.replica_trials JARS [--only NAME,…] [--out docs/replica-trials.json]

Starts a controller and three real brokers, makes their replicas differ (outages, unclean elections, disks that lose
something), and stops them. Then predicts with kdump.restart_cluster what the replicas lose once the brokers have
joined, starts the brokers in several orders, and records the leader, where each follower truncates, and which records
no replica has any more. docs/restart-plan.md contains the result as a table (its test writes it if KDUMP_REWRITE=1 is
set).

JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17, 2 GB of memory and 15 minutes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from kdump.questions.restart_plan.replicas.replica_answer import PartitionReplicas
from kdump.questions.restart_plan.replicas.restart_cluster import ClusterPlan, restart_cluster
from tools.trials.cluster import KAFKA
from tools.trials.recorded_results import RecordedResults, chosen, trial_options
from tools.trials.replicas import BROKERS, Replicas

Result = dict[str, Any]
Record = tuple[int, str]
TOPICS = {
    "unclean": ("min.insync.replicas=1", "unclean.leader.election.enable=true"),
    "single": ("min.insync.replicas=1", "unclean.leader.election.enable=false"),
    "safe": ("min.insync.replicas=2", "unclean.leader.election.enable=false"),
}
"""Topics with three replicas each, and their configs."""
FENCING_SECONDS = 12
"""broker.session.timeout.ms is 4000: the controller has noticed an outage after this time."""
TRUNCATING = re.compile(
    r"Truncating partition (\S+) with OffsetTruncationState\(offset=(\d+)|"
    r"Truncating partition (\S+) with TruncationState\(offset=(\d+)|"
    r"partition=(\S+?)[,\]].* Truncating to offset (\d+)"
)


class Case(NamedTuple):
    """Steps that make the replicas differ, and the orders in which the brokers are then started."""

    name: str
    what: str
    steps: tuple[str, ...]
    orders: tuple[tuple[int, ...], ...]


CASES = (
    Case(
        "outages",
        "brokers fail one after another; the last one in sync fails, too, and one that failed before starts alone",
        (
            *("produce 50 all", "kill 3", "produce 10 all", "kill 2", "produce 10 1", "kill 1", "start 3"),
            *("produce 5 1 unclean", "kill 3"),
        ),
        ((1, 2, 3), (2, 1, 3), (3, 1, 2)),
    ),
    Case(
        "power-loss",
        "all nodes fail at once, and broker 1 loses the end of its logs",
        ("produce 40 all", "produce 20 all", "kill 1 2 3", "cut 1"),
        ((1, 2, 3), (3, 2, 1)),
    ),
    Case(
        "power-loss-no-elr",
        "the same without eligible leader replicas",
        ("no-elr", "produce 40 all", "produce 20 all", "kill 1 2 3", "cut 1"),
        ((1, 2, 3), (3, 2, 1)),
    ),
    Case(
        "disk-replaced",
        "all brokers are shut down cleanly, and broker 3, the last one in sync, loses the partitions' directories",
        ("produce 40 all", "stop 1", "produce 10 all", "stop 2", "stop 3", "lose 3"),
        ((3, 1, 2), (1, 2, 3)),
    ),
    Case(
        "disk-formatted",
        "all brokers are shut down cleanly, and the disk of broker 3, the last one in sync, is replaced and formatted",
        ("produce 40 all", "stop 1", "produce 10 all", "stop 2", "stop 3", "format 3"),
        ((3, 1, 2), (1, 2, 3)),
    ),
    Case(
        "two-elections",
        "two unclean elections, each of a broker that lacks what the one before had",
        (
            *("produce 20 all", "kill 2 3", "produce 10 1", "kill 1", "start 2", "produce 7 1 unclean"),
            *("kill 2", "start 3", "produce 4 1 unclean", "kill 3"),
        ),
        ((1, 2, 3), (2, 3, 1), (3, 2, 1)),
    ),
)


class Lab:
    """The brokers of one case."""

    def __init__(self, cluster: Replicas) -> None:
        self.cluster = cluster
        self.sent = 0

    def tool(self, name: str, *arguments: str, stdin: str = "", check: bool = True) -> str:
        command = self.cluster.java(f"org.apache.kafka.tools.{name}", *arguments, heap="128m")
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{name} {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def at(self) -> str:
        alive = [role for role in BROKERS if role in self.cluster.processes and not self.cluster.ended(role)]
        return ",".join(f"127.0.0.1:{self.cluster.ports[role]}" for role in alive)

    def create(self) -> None:
        for name, configs in TOPICS.items():
            options = [word for config in configs for word in ("--config", config)]
            where = ("--bootstrap-server", self.at(), "--create", "--topic", name)
            self.tool("TopicCommand", *where, "--replica-assignment", "1:2:3", *options)

    def produce(self, count: int, acks: str, topics: list[str]) -> None:
        for topic in topics:
            lines = "".join(f"{topic}-{self.sent + number}\n" for number in range(count))
            options = ("--bootstrap-server", self.at(), "--topic", topic, "--command-property", f"acks={acks}")
            self.tool(
                "ConsoleProducer",
                *options,
                "--command-property",
                "delivery.timeout.ms=20000",
                "--command-property",
                "request.timeout.ms=10000",
                stdin=lines,
            )
        self.sent += count

    def do(self, step: str) -> None:
        word, *rest = step.split()
        if word == "produce":
            self.produce(int(rest[0]), rest[1], rest[2:] or list(TOPICS))
        elif word == "kill":
            for node in rest:
                self.cluster.kill(f"broker-{node}")
            time.sleep(0 if len(rest) == 3 else FENCING_SECONDS)
        elif word == "stop":
            self.cluster.stop(f"broker-{rest[0]}")
            time.sleep(2)
        elif word == "start":
            self.cluster.start(f"broker-{rest[0]}")
            self.cluster.wait(f"broker-{rest[0]}")
        elif word == "cut":
            for log in self.logs(rest[0]):
                whole = log.read_bytes()
                log.write_bytes(whole[: len(whole) - len(whole) // 6])
        elif word == "lose":
            for log in self.logs(rest[0]):
                shutil.rmtree(log.parent)
        elif word == "format":
            role = f"broker-{rest[0]}"
            disk = self.cluster.dirs[role][0]
            meta = (disk / "meta.properties").read_text()
            shutil.rmtree(disk)
            cluster_id = re.search("cluster.id=(.*)", meta)
            assert cluster_id is not None
            arguments = (
                "format",
                "--cluster-id",
                cluster_id[1],
                "--config",
                str(self.cluster.work / f"{role}.properties"),
            )
            self.cluster._run("kafka.tools.StorageTool", *arguments)
        elif word == "no-elr":
            options = ("--bootstrap-server", self.at(), "downgrade", "--feature", "eligible.leader.replicas.version=0")
            self.tool("FeatureCommand", *options)

    def logs(self, node: str) -> list[Path]:
        root = self.cluster.dirs[f"broker-{node}"][0]
        return [root / f"{topic}-0" / f"{0:020}.log" for topic in TOPICS]

    def leaders(self) -> dict[str, int | None]:
        """Return the leader of each partition."""
        text = self.tool("TopicCommand", "--bootstrap-server", self.at(), "--describe")
        found = re.findall(r"Topic: (\S+)\s+Partition: 0\s+Leader: (\S+)", text)
        return {f"{topic}-0": int(leader) if leader.isdigit() else None for topic, leader in found if topic in TOPICS}


def records(root: Path, name: str) -> set[Record]:
    """Return the records of a partition as offset and value."""
    if not (root / name).is_dir():
        return set()
    command = [sys.executable, "-m", "kdump", "inspect", "--records", "--json", str(root / name)]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    found = map(json.loads, lines)
    return {(each["offset"], each["value"]) for each in found if each["type"] == "record"}


def started(lab: Lab, order: tuple[int, ...], ground: Path, plan: ClusterPlan) -> Result:
    """Start the brokers in this order on copies of the disks, and return what they did, and the differences from the
    plan."""
    cluster = lab.cluster
    for role in cluster.ports:
        disk = cluster.dirs[role][0]
        shutil.rmtree(disk)
        shutil.copytree(ground / disk.name, disk)
    cluster.start("controller")
    time.sleep(FENCING_SECONDS)
    for node in order:
        cluster.start(f"broker-{node}")
        cluster.wait(f"broker-{node}")
        time.sleep(FENCING_SECONDS)
    leaders = lab.leaders()
    logs = {role: cluster.log(role) for role in BROKERS}
    for role in cluster.ports:
        cluster.kill(role)
    found: Result = {"order": list(order), "partitions": {}, "differences": []}
    for name, leader in leaders.items():
        seen = {role: records(ground / cluster.dirs[role][0].name, name) for role in BROKERS}
        every = set().union(*seen.values())
        left = records(cluster.dirs[f"broker-{leader}"][0], name) if leader else every
        truncated = {
            int(role[-1]): min(offsets) for role in BROKERS if (offsets := truncations(logs[role], name, seen[role]))
        }
        facts = {"leader": leader, "lost": len(every - left), "truncated": truncated}
        found["partitions"][name] = facts
        found["differences"] += differences(name, facts, order, plan)
    return found


def truncations(lines: list[str], name: str, had: set[Record]) -> list[int]:
    """Return the offsets to which a follower has truncated below what it had."""
    end = max((offset for offset, _ in had), default=-1) + 1
    found = [groups for line in lines for groups in TRUNCATING.findall(line)]
    offsets = [
        int(number) for groups in found for partition, number in zip(groups[::2], groups[1::2]) if partition == name
    ]
    return [offset for offset in offsets if offset < end]


def differences(name: str, facts: Result, order: tuple[int, ...], plan: ClusterPlan) -> list[str]:
    """Return the differences between the plan and what the brokers did with a partition."""
    each = next((each for each in plan.replicas if each.name == name), None)
    if each is None:
        return [f"{name}: {facts['lost']} lost, the plan expects nothing"] if facts["lost"] else []
    found = []
    allowed = [outcome.leader for outcome in each.expected]
    expected = [predicted_leader(each, order)] if each.firstLeads else allowed
    if facts["leader"] not in expected:
        found.append(f"{name}: leader: predicted {expected}, the cluster {facts['leader']}")
    outcome = next((it for it in each.outcomes if it.leader == facts["leader"]), None)
    if outcome is None:
        return [*found, *([f"{name}: no outcome for leader {facts['leader']}"] if facts["leader"] else [])]
    if outcome.lost != facts["lost"]:
        found.append(f"{name}: lost: predicted {outcome.lost}, the cluster {facts['lost']}")
    told = {loss.broker: loss.truncatesTo for loss in outcome.replicas if loss.by != "startup" and loss.lost}
    for broker, offset in told.items():
        if facts["truncated"].get(broker) != offset:
            found.append(f"{name}: {broker} truncates: predicted {offset}, broker {facts['truncated'].get(broker)}")
    return found


def predicted_leader(each: PartitionReplicas, order: tuple[int, ...]) -> int | None:
    allowed = [outcome.leader for outcome in each.expected]
    return next((broker for broker in order if broker in allowed), None)


def trial(jars: Path, case: Case) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="replicas-") as folder:
        work = Path(folder)
        ground = work / "ground"
        with Replicas(jars, work, "") as cluster:
            lab = Lab(cluster)
            cluster.wait(*BROKERS)
            lab.create()
            time.sleep(3)
            for step in case.steps:
                print(f"{case.name}: {step}", file=sys.stderr, flush=True)
                lab.do(step)
            for role in cluster.ports:
                cluster.kill(role)
            for role in cluster.ports:
                disk = cluster.dirs[role][0]
                shutil.copytree(disk, ground / disk.name)
            plan = restart_cluster([str(path) for path in sorted(ground.iterdir())])
            results = []
            for order in case.orders:
                done = started(lab, order, ground, plan)
                results.append(
                    {"name": case.name, "what": case.what, "kafka": KAFKA, **done, "plan": told(plan, order)}
                )
                print(f"{case.name} {order}: {done['differences'] or 'agrees'}", file=sys.stderr, flush=True)
    return results


def told(plan: ClusterPlan, order: tuple[int, ...]) -> Result:
    """Return what the plan says of each partition, for the table and for later comparison."""
    return {
        each.name: {
            "leader": predicted_leader(each, order) if each.firstLeads else None,
            "outcomes": {
                str(it.leader): {
                    "election": it.election,
                    "allowed": it.allowed,
                    "lost": it.lost,
                    "acknowledged": it.acknowledged,
                    "truncated": {str(loss.broker): loss.truncatesTo for loss in it.replicas if loss.lost},
                }
                for it in each.outcomes
            },
        }
        for each in plan.replicas
    }


def main() -> None:
    options = trial_options(__doc__, "docs/replica-trials.json").parse_args()
    record = RecordedResults(options.out, CASES)
    for case in chosen(CASES, options.only):
        record.keep(case.name, trial(options.jars.resolve(), case))


if __name__ == "__main__":
    main()
