"""python -m tools.election_trials JARS [--only NAME,…] [--out docs/election-trials.json]

Formats three real controllers, lets them write metadata, and makes their disks differ: an older copy, a tail of a
leader that was not elected again, a formatted disk, a disk that is not there. Then predicts with
kdump.restart_cluster who can be elected and what that loses, starts them in several orders, and compares: who led,
which configs the leader lacks that a disk had, and who exited. docs/restart-plan.md contains the result as a table (its
test writes it if KDUMP_REWRITE=1 is set).

JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17, 1 GB of memory and 40 minutes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from kdump.cluster.metadata_log import read_metadata
from kdump.questions.restart_plan.replicas.restart_cluster import ClusterPlan, restart_cluster
from tools import quorum_trials
from tools.quorum_trials import Controllers
from tools.trials.cluster import KAFKA, config_command
from tools.trials.recorded_results import RecordedResults, chosen, trial_options

Result = dict[str, Any]
LEADER = re.compile(r"Completed transition to Leader\(.*?epoch=(\d+)")
ACTIVE = r"Becoming the active controller at epoch"
KEYS = (
    *("log.flush.interval.messages", "background.threads", "num.io.threads", "num.network.threads"),
    *("num.replica.fetchers", "num.recovery.threads.per.data.dir", "log.cleaner.threads", "max.connections"),
)
"""Configs of all brokers that are set one after the other, the first by a leader that cannot commit it."""
EXITS = ("startup-forgotten-leader", "startup-epoch-again")
ELECTION_SECONDS = 60
FIRST_SECONDS = 12
"""How long the first voters run before the others start."""


class Case(NamedTuple):
    """`quorum`: static or dynamic; `steps`: what makes the disks differ; `orders`: groups of voters that start
    together, one group after the other."""

    name: str
    what: str
    quorum: str
    steps: tuple[str, ...]
    orders: tuple[tuple[tuple[int, ...], ...], ...]


AT_ONCE = ((1, 2, 3),)
OLDER = ("run", "config 3", "kill", "save 2", "save 3", "run 1 2", "config 3", "kill", "restore 2")
TAIL = ("run", "config 3", "leave", "run others", "config 2", "kill")
KILLED = ("run", "config 3", "kill")
CASES = (
    Case(
        "older-copy",
        "voter 2 is an older copy, voter 3 was down",
        "static",
        OLDER,
        (AT_ONCE, ((2, 3), (1,)), ((1, 2), (3,))),
    ),
    Case(
        "older-copy-dynamic",
        "voter 2 is an older copy, voter 3 was down",
        "dynamic",
        OLDER,
        (((2, 3), (1,)), ((1, 3), (2,))),
    ),
    Case(
        "older-copy-two-given",
        "voter 2 is an older copy, voter 3 was down, voter 1 does not come back",
        "dynamic",
        (*OLDER, "drop 1"),
        (((2, 3),),),
    ),
    Case("tail", "a leader had records that no other fetched, and another one was elected", "static", TAIL, (AT_ONCE,)),
    Case(
        "tail-dynamic",
        "a leader had records that no other fetched, and another one was elected",
        "dynamic",
        TAIL,
        (AT_ONCE,),
    ),
    Case(
        "tail-old-leader-first",
        "the same, and the leader before starts with one other",
        "dynamic",
        TAIL,
        (((0, 1), (2,)),),
    ),
    Case("formatted-one", "the disk of voter 3 was formatted again", "static", (*KILLED, "format 3"), (AT_ONCE,)),
    Case(
        "formatted-two",
        "the disks of voters 2 and 3 were formatted again",
        "static",
        (*KILLED, "format 2", "format 3"),
        (((2, 3), (1,)), ((1, 2), (3,))),
    ),
    Case(
        "formatted-one-dynamic", "the disk of voter 3 was formatted again", "dynamic", (*KILLED, "format 3"), (AT_ONCE,)
    ),
    Case(
        "formatted-two-dynamic",
        "the disks of voters 1 and 3 were formatted again",
        "dynamic",
        (*KILLED, "format 1", "format 3"),
        (AT_ONCE,),
    ),
    Case("two-of-three", "voter 3 does not come back", "static", (*KILLED, "drop 3"), (((1, 2),),)),
    Case("killed-at-once", "all were killed at once", "dynamic", KILLED, (AT_ONCE,)),
)


class Lab:
    """The controllers of a case. `leader`: who leads, and led last."""

    def __init__(self, controllers: Controllers) -> None:
        self.controllers = controllers
        self.number = 0
        self.leader = 0
        self.dropped: set[int] = set()

    def start(self, nodes: tuple[int, ...]) -> None:
        self.controllers.start(*(set(self.controllers.nodes) - set(nodes)))

    def run(self, nodes: tuple[int, ...]) -> None:
        """Start these, and wait until one leads. Raises RuntimeError if none does."""
        self.start(nodes)
        until = time.monotonic() + 180
        while self.leads(nodes) is None or not self.is_active(nodes):
            if time.monotonic() > until:
                raise RuntimeError(f"none of {nodes} became active")
            time.sleep(1)
        self.leader = self.leads(nodes) or 0
        time.sleep(4)

    def is_active(self, nodes: tuple[int, ...]) -> bool:
        return any(re.search(ACTIVE, line) for node in nodes for line in self.controllers.log(f"controller-{node}"))

    def leads(self, nodes: tuple[int, ...]) -> int | None:
        """Return who was elected in the highest epoch."""
        epochs = {}
        for node in nodes:
            lines = map(LEADER.search, self.controllers.log(f"controller-{node}"))
            epochs[node] = max((int(line[1]) for line in lines if line), default=0)
        best = max(epochs, key=epochs.__getitem__)
        return best if epochs[best] else None

    def config_command(self, key: str) -> list[str]:
        """Return the command that sets a config of all brokers, on the leader."""
        where = ("--bootstrap-controller", self.controllers._at(self.leader), "--alter", "--entity-type", "brokers")
        what = ("--entity-default", "--add-config", f"{key}=4")
        return self.controllers.java(config_command(self.controllers.jars), *where, *what, heap="100m")

    def config(self, count: int) -> None:
        """Set so many configs."""
        for _ in range(count):
            self.number += 1
            command = self.config_command(KEYS[self.number])
            done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
            if done.returncode or "Completed" not in done.stdout:
                raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")

    def do(self, step: str) -> None:
        word, *rest = step.split()
        disk = {node: self.controllers.path(node, "disk") for node in self.controllers.nodes}
        if word == "run":
            others = tuple(node for node in self.controllers.nodes if node != self.leader)
            self.run(others if rest == ["others"] else tuple(map(int, rest)) or self.controllers.nodes)
        elif word == "config":
            self.config(int(rest[0]))
        elif word == "kill":
            self.controllers.kill()
        elif word == "leave":  # the leader alone, which cannot commit any more, and takes another request
            for node in self.controllers.nodes:
                if node != self.leader:
                    self.controllers.processes[f"controller-{node}"].kill()
            with subprocess.Popen(
                self.config_command(KEYS[0]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as tool:
                time.sleep(8)
                tool.kill()
            self.controllers.kill()
        elif word == "save":
            shutil.copytree(disk[int(rest[0])], self.controllers.work / f"older-{rest[0]}")
        elif word == "restore":
            shutil.rmtree(disk[int(rest[0])])
            shutil.copytree(self.controllers.work / f"older-{rest[0]}", disk[int(rest[0])])
        elif word == "format":
            shutil.rmtree(disk[int(rest[0])])
            self.controllers.format(int(rest[0]), again=True)
        elif word == "drop":
            self.dropped.add(int(rest[0]))


def configs(disk: Path) -> set[str]:
    """Return the brokers' configs that the metadata of a controller has."""
    image = read_metadata(str(disk))
    return set() if image is None else set(image.broker_configs.get("", ()))


def started(lab: Lab, order: tuple[tuple[int, ...], ...], ground: Path, plan: ClusterPlan) -> Result:
    controllers = lab.controllers
    for node in controllers.nodes:
        shutil.rmtree(controllers.path(node, "disk"), ignore_errors=True)
        if node not in lab.dropped:
            shutil.copytree(ground / f"disk-{node}", controllers.path(node, "disk"))
    if 0 in order[0]:  # the leader that was not elected again, and another one
        last = max(controllers.nodes, key=lambda node: node == lab.leader)
        order = ((_old_leader(plan, last), last), tuple(set(controllers.nodes) - {_old_leader(plan, last), last}))
    running: tuple[int, ...] = ()
    for group in order:
        if running:
            time.sleep(FIRST_SECONDS)
        lab.start(group)
        running += group
    until = time.monotonic() + ELECTION_SECONDS
    while time.monotonic() < until and not (lab.leads(running) and lab.is_active(running)):
        time.sleep(1)
    time.sleep(10)
    leader = lab.leads(running)
    ended = [node for node in running if controllers.ended(f"controller-{node}")]
    controllers.kill()
    every = set().union(*(configs(ground / f"disk-{node}") for node in running))
    left = configs(controllers.path(leader, "disk")) if leader else every
    facts: Result = {"order": [list(group) for group in order], "leader": leader, "ended": ended}
    facts["lost"] = len(every - left)
    return facts | {"differences": differences(facts, plan)}


def _old_leader(plan: ClusterPlan, last: int) -> int:
    own = {node: each.quorum.epoch for node, each in plan.plans.items() if each.quorum is not None}
    return min((node for node in own if node != last), key=own.__getitem__)


def differences(facts: Result, plan: ClusterPlan) -> list[str]:
    """Return the differences between the plan and what the controllers did."""
    summary, leader = plan.summary, facts["leader"]
    assert summary is not None
    found = []
    if leader is None:
        return [f"nobody leads, predicted {summary.electable}"] if summary.electable else []
    if leader not in summary.electable:
        found.append(f"{leader} leads, predicted {summary.electable}")
    if facts["lost"] and not summary.quorumLoses:
        found.append(f"{facts['lost']} configs lost, predicted none")
    if not facts["lost"] and summary.quorumLosesLeast:
        found.append(f"no config lost, predicted {summary.quorumLosesLeast} records")
    exits = {
        node
        for node, each in plan.plans.items()
        if any(problem.code in EXITS for problem in each.directories[0].problems)
    }
    unexpected = set(facts["ended"]) - exits
    if unexpected:
        found.append(f"{sorted(unexpected)} exited")
    return found


def trial(jars: Path, case: Case) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="election-") as folder:
        work = Path(folder)
        quorum = quorum_trials.Case(case.name, case.what, case.quorum)
        with Controllers(jars, work, quorum) as controllers:
            lab = Lab(controllers)
            for step in case.steps:
                print(f"{case.name}: {step}", file=sys.stderr, flush=True)
                lab.do(step)
            ground = work / "ground"
            given = [node for node in controllers.nodes if node not in lab.dropped]
            for node in given:
                shutil.copytree(controllers.path(node, "disk"), ground / f"disk-{node}")
            plan = restart_cluster([str(ground / f"disk-{node}") for node in given], kafka_version=KAFKA)
            assert plan.summary is not None
            said = plan.summary
            predicted: Result = {"electable": said.electable, "first": said.firstVoters, "hasQuorum": said.hasQuorum}
            predicted |= {"loses": said.quorumLoses, "losesLeast": said.quorumLosesLeast}
            results = []
            for order in case.orders:
                done = started(lab, order, ground, plan)
                about: Result = {"name": case.name, "what": case.what, "quorum": case.quorum, "kafka": KAFKA}
                results.append({**about, **done, "predicted": predicted})
                print(f"{case.name} {done['order']}: {done} {predicted}", file=sys.stderr, flush=True)
    return results


def main() -> None:
    options = trial_options(__doc__, "docs/election-trials.json").parse_args()
    record = RecordedResults(options.out, CASES)
    for case in chosen(CASES, options.only):
        record.keep(case.name, trial(options.jars.resolve(), case))


if __name__ == "__main__":
    main()
