"""python -m tools.election_trials JARS [--only NAME,…] [--jobs N] [--ground DIR] [--out docs/election-trials.json]

Formats three real controllers and a broker, lets them write metadata and records, and makes the controllers' disks
differ: a voter that was down, an older copy, a tail of a leader that was not elected again, a formatted disk, a disk
that is not there. Then predicts with kdump.restart_cluster who can be elected and what that loses, starts them in
several orders, the broker last, and compares: who led, where each node truncated its metadata log, which topics and
configs the leader lacks that a disk had, who exited, which directories became stray, and what consumers read, the
group's offset and the transactions. What is lost and was not predicted is a false comfort. docs/restart-plan.md
contains the result as a table (its test writes it if KDUMP_REWRITE=1 is set).

JARS is a directory with the jars of one release (make build/release-jars/RELEASE), which each result names. Needs Java
17, confluent-kafka, 1 GB of memory for each job, and two minutes for each case."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kdump.check.options import Options
from kdump.cluster.metadata_log import read_metadata
from kdump.questions.restart_plan.answer import STOPPED
from kdump.questions.restart_plan.replicas.quorum_replicas import quorum_replicas
from kdump.questions.restart_plan.replicas.replica_answer import LeaderOutcome
from kdump.questions.restart_plan.replicas.restart_cluster import ClusterPlan, RecordCounter, restart_cluster
from tests.craft import split
from tools import quorum_trials
from tools.quorum_trials import CLUSTER, EXITS, LED, Controllers
from tools.trials.clients import Clients, Served, transactions
from tools.trials.cluster import INTERNAL_TOPICS, STARTED, config_command, free_port, release_of
from tools.trials.recorded_results import KeptGround, RecordedResults, chosen, trial_options, tried

Result = dict[str, Any]
ACTIVE = r"Becoming the active controller at epoch"
TAIL_KEY = "log.flush.interval.messages"
"""A config of all brokers that is set by a leader that cannot commit it."""
ELECTION_SECONDS = 45
FIRST_SECONDS = 12
"""How long the first voters run before the others start."""
BROKER, NODE = "broker", 11
BROKER_CONFIG = (
    """
node.id=11
process.roles=broker
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
log.dirs={disk}
"""
    + INTERNAL_TOPICS
    + """log.retention.ms=-1
log.cleaner.dedupe.buffer.size=20000000
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
"""
)
RECORDS, GROUP, COMMITTED = 10, "group", 7
MAJORITY = 2


class Case(NamedTuple):
    """`quorum`: static or dynamic; `steps`: what makes the disks differ, and `change`, once all are down; `orders`:
    groups of voters that start together, one group after the other."""

    name: str
    what: str
    quorum: str
    steps: tuple[str, ...]
    change: tuple[str, ...]
    orders: tuple[tuple[tuple[int, ...], ...], ...]


class Group(NamedTuple):
    """Cases with the same steps, which are done once."""

    name: str
    cases: list[Case]


AT_ONCE = ((1, 2, 3),)
OLDER = ("run", "use", "topics 2", "kill", "save 2", "save 3", "run 1 2", "topics 2", "kill", "restore 2")
BEHIND = ("run", "use", "topics 1", "kill", "run 1 2", "topics 2", "kill")
YESTERDAY = ("run", "use", "kill", "save 2", "save 3", "run", "topics 2", "kill", "restore 2", "restore 3")
TAIL = ("run", "use", "topics 1", "leave", "run others", "topics 2", "kill")
KILLED = ("run", "use", "topics 2", "kill")
WHAT_OLDER = "voter 2 is an older copy, voter 3 was down"
WHAT_BEHIND = "voter 3 was down"
WHAT_YESTERDAY = "voters 2 and 3 are copies from the day before"
WHAT_TAIL = "a leader had records that no other fetched, and another one was elected"
LEADER_FIRST = f"{WHAT_TAIL}; the leader before starts with one other"
STATIC, DYNAMIC = "static", "dynamic"
CASES = (
    Case("older-copy", WHAT_OLDER, STATIC, OLDER, (), (AT_ONCE, ((2, 3), (1,)), ((1, 2), (3,)))),
    Case("older-copy-dynamic", WHAT_OLDER, DYNAMIC, OLDER, (), (((2, 3), (1,)), ((1, 3), (2,)))),
    Case(
        "older-copy-two-given",
        f"{WHAT_OLDER}, voter 1 does not come back",
        DYNAMIC,
        OLDER,
        ("drop 1",),
        (((2, 3),),),
    ),
    Case("behind", WHAT_BEHIND, STATIC, BEHIND, (), (AT_ONCE, ((2, 3), (1,)))),
    Case("behind-dynamic", WHAT_BEHIND, DYNAMIC, BEHIND, (), (((1, 3), (2,)), ((3, 2), (1,)))),
    Case(
        "behind-two-given",
        f"{WHAT_BEHIND}, voter 1 does not come back",
        STATIC,
        BEHIND,
        ("drop 1",),
        (((2, 3),), ((3,), (2,))),
    ),
    Case("yesterday", WHAT_YESTERDAY, STATIC, YESTERDAY, (), (((2, 3), (1,)), ((1, 2), (3,)))),
    Case("yesterday-dynamic", WHAT_YESTERDAY, DYNAMIC, YESTERDAY, (), (((2, 3), (1,)), ((1, 3), (2,)))),
    Case("tail", WHAT_TAIL, STATIC, TAIL, (), (AT_ONCE,)),
    Case("tail-dynamic", WHAT_TAIL, DYNAMIC, TAIL, (), (AT_ONCE,)),
    Case("tail-old-leader-first", LEADER_FIRST, DYNAMIC, TAIL, (), (((0, 1), (2,)),)),
    Case("formatted-one", "the disk of voter 3 was formatted again", STATIC, KILLED, ("format 3",), (AT_ONCE,)),
    Case(
        "formatted-two",
        "the disks of voters 2 and 3 were formatted again",
        STATIC,
        KILLED,
        ("format 2", "format 3"),
        (((2, 3), (1,)), ((1, 2), (3,))),
    ),
    Case(
        "formatted-one-dynamic",
        "the disk of voter 3 was formatted again",
        DYNAMIC,
        KILLED,
        ("format 3",),
        (AT_ONCE,),
    ),
    Case(
        "formatted-two-dynamic",
        "the disks of voters 1 and 3 were formatted again",
        DYNAMIC,
        KILLED,
        ("format 1", "format 3"),
        (AT_ONCE,),
    ),
    Case("two-of-three", "voter 3 does not come back", STATIC, KILLED, ("drop 3",), (((1, 2),),)),
    Case("two-of-three-dynamic", "voter 1 does not come back", DYNAMIC, KILLED, ("drop 1",), (((2, 3),),)),
    Case("killed-at-once", "all were killed at once", DYNAMIC, KILLED, (), (AT_ONCE,)),
)


class Quorum(Controllers):
    """The controllers of a case, and a broker."""

    def __init__(self, jars: Path, work: Path, case: quorum_trials.Case) -> None:
        super().__init__(jars, work, case)
        self.ports[BROKER] = free_port()
        self.configure()

    def configure(self) -> None:
        super().configure()
        if BROKER in self.ports:
            quorum = self._configuration(1).splitlines()[-1]
            text = BROKER_CONFIG.format(port=self.ports[BROKER], disk=self.path(NODE, "disk"))
            (self.work / "broker.properties").write_text(f"{text}{quorum}\n")

    def __enter__(self) -> Quorum:
        super().__enter__()
        arguments = ["format", "--cluster-id", CLUSTER, "--config", str(self.work / "broker.properties")]
        arguments += [] if self.case.quorum == "static" else ["--no-initial-controllers"]
        command = self.java("kafka.tools.StorageTool", *arguments, heap="100m")
        subprocess.run(command, check=True, capture_output=True, timeout=180)
        return self

    def start_broker(self, seconds: float) -> bool:
        """Start the broker, and return whether it comes up in this time."""
        with (self.work / "broker.log").open("wb") as log:
            command = self.java("kafka.Kafka", str(self.work / "broker.properties"), heap="250m")
            self.processes[BROKER] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.ended(BROKER):
            if any(map(STARTED.search, self.log(BROKER))):
                return True
            time.sleep(0.5)
        return False


class Lab:
    """The nodes of a case. `leader`: who leads, and led last; `seen`: what consumers read of each topic."""

    def __init__(self, controllers: Quorum) -> None:
        self.controllers = controllers
        self.leader = 0
        self.dropped: set[int] = set()
        self.clients = Clients(self.at)
        self.seen: dict[str, Served] = {}
        self.transactions: dict[str, str] = {}

    def at(self) -> str:
        return f"127.0.0.1:{self.controllers.ports[BROKER]}"

    def start(self, nodes: tuple[int, ...]) -> None:
        self.controllers.start(*(set(self.controllers.nodes) - set(nodes)))

    def run(self, nodes: tuple[int, ...]) -> None:
        """Start these and the broker, and wait until one leads. Raises RuntimeError if none does."""
        self.start(nodes)
        until = time.monotonic() + 120
        while self.leads(nodes) is None or not self.is_active(nodes):
            if time.monotonic() > until:
                raise RuntimeError(f"none of {nodes} became active")
            time.sleep(1)
        self.leader = self.leads(nodes) or 0
        if not self.controllers.start_broker(120):
            raise RuntimeError("the broker does not come up:\n" + "\n".join(self.controllers.log(BROKER)[-20:]))
        time.sleep(2)

    def is_active(self, nodes: tuple[int, ...]) -> bool:
        return any(re.search(ACTIVE, line) for node in nodes for line in self.controllers.log(f"controller-{node}"))

    def leads(self, nodes: tuple[int, ...]) -> int | None:
        """Return who was elected in the highest epoch."""
        epochs = {}
        for node in nodes:
            lines = map(LED.search, self.controllers.log(f"controller-{node}"))
            epochs[node] = max((int(line[1]) for line in lines if line), default=0)
        best = max(epochs, key=epochs.__getitem__)
        return best if epochs[best] else None

    def use(self) -> None:
        """Make a topic with transactions, and a group with an offset."""
        self.topic()
        self.clients.transaction("committed", "t1", ["committed"], "commit")
        self.clients.transaction("aborted", "t1", ["aborted"], "abort")
        self.clients.transaction("open", "t1", ["open"], "open")
        self.clients.commit(GROUP, "t1", COMMITTED)
        self.seen["t1"] = self.clients.served("t1")
        self.transactions = transactions(self.controllers, self.at())

    def topic(self) -> None:
        name = f"t{len(self.seen) + 1}"
        self.clients.create(name, [NODE])
        self.clients.produce(name, [f"{name}-{number}" for number in range(RECORDS)], "-1")
        self.seen[name] = self.clients.served(name)

    def do(self, step: str) -> None:
        word, *rest = step.split()
        disk = {node: self.controllers.path(node, "disk") for node in self.controllers.nodes}
        if word == "run":
            others = tuple(node for node in self.controllers.nodes if node != self.leader)
            self.run(others if rest == ["others"] else tuple(map(int, rest)) or self.controllers.nodes)
        elif word == "use":
            self.use()
        elif word == "topics":
            for _ in range(int(rest[0])):
                self.topic()
        elif word == "kill":
            self.controllers.kill()
        elif word == "leave":  # the leader alone, which cannot commit any more, and takes another request
            self.controllers.processes[BROKER].kill()
            for node in self.controllers.nodes:
                if node != self.leader:
                    self.controllers.processes[f"controller-{node}"].kill()
            where = ("--bootstrap-controller", self.controllers._at(self.leader), "--alter", "--entity-type", "brokers")
            command = (*where, "--entity-default", "--add-config", f"{TAIL_KEY}=4")
            java = self.controllers.java(config_command(self.controllers.jars), *command, heap="100m")
            with subprocess.Popen(java, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
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


def known(disk: Path) -> set[str]:
    """Return the topics and the brokers' configs that the metadata on a disk has."""
    image = read_metadata(str(disk))
    return set() if image is None else {*image.broker_configs.get("", ()), *image.topics}


def batches(disk: Path) -> list[tuple[int, bytes]]:
    """Return the base offset of each batch of a metadata log, and what tells it from others."""
    logs = sorted((disk / "__cluster_metadata-0").glob("*.log"))
    found = [batch for path in logs for batch in split(path.read_bytes()) if len(batch) > 21]
    return [(int.from_bytes(batch[:8], "big"), batch[12:]) for batch in found]


class Happened(NamedTuple):
    """What the nodes did. `truncated`: the first offset of the log before that a node does not have afterwards."""

    order: list[list[int]]
    leader: int | None
    ended: list[int]
    truncated: dict[int, int]
    lost: set[str]
    stray: list[str]
    up: bool
    served: dict[str, Served]
    committed: int | None
    transactions: dict[str, str]
    errors: dict[int, list[str]]


def started(lab: Lab, order: tuple[tuple[int, ...], ...], ground: Path, plan: ClusterPlan) -> Happened:
    controllers = lab.controllers
    nodes = [node for node in (*controllers.nodes, NODE) if node not in lab.dropped]
    for node in (*controllers.nodes, NODE):
        shutil.rmtree(controllers.path(node, "disk"), ignore_errors=True)
        if node in nodes:
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
    leader = lab.leads(running)
    up = controllers.start_broker(40 if leader else 5)
    time.sleep(8)
    leader = lab.leads(running)
    served, committed, states = {}, None, {}
    if up and not controllers.ended(BROKER):
        there = {each for each, _ in lab.clients.leaders().items()}
        served = {topic: lab.clients.served(topic) for topic in lab.seen if f"{topic}-0" in there}
        committed = lab.clients.committed(GROUP, "t1")
        states = transactions(controllers, lab.at())
    ended = [node for node in running if controllers.ended(f"controller-{node}")]
    ended += [NODE] if controllers.ended(BROKER) else []
    logs = {node: controllers.log(BROKER if node == NODE else f"controller-{node}") for node in ended}
    errors = {
        node: [line[:300] for line in lines if re.search(r"ERROR|Exception", line)][:4] for node, lines in logs.items()
    }
    controllers.kill()
    truncated = {}
    for node in (*running, NODE):
        left = set(batches(controllers.path(node, "disk")))
        if gone := [each[0] for each in batches(ground / f"disk-{node}") if each not in left]:
            truncated[node] = gone[0]
    every = set().union(*(known(ground / f"disk-{node}") for node in (*running, NODE)))
    lost = every - known(controllers.path(leader, "disk")) if leader else set()
    stray = sorted(each.name.rpartition(".")[0] for each in controllers.path(NODE, "disk").glob("*-stray"))
    groups = [list(group) for group in order]
    return Happened(groups, leader, ended, truncated, lost, stray, up, served, committed, states, errors)


def _old_leader(plan: ClusterPlan, last: int) -> int:
    own = {node: each.quorum.epoch for node, each in plan.plans.items() if each.quorum is not None and node != NODE}
    return min((node for node in own if node != last), key=own.__getitem__)


class Predicted(NamedTuple):
    """The plan, and the outcome of each voter that may be elected."""

    plan: ClusterPlan
    outcomes: dict[int, LeaderOutcome]

    @property
    def exits(self) -> set[int]:
        """The nodes that exit, or may."""
        return {
            node
            for node, each in self.plan.plans.items()
            if each.verdict == STOPPED or any(problem.code in EXITS for problem in each.directories[0].problems)
        }

    def truncated(self, leader: int | None) -> dict[int, int | None]:
        """Return where each node truncates; None if the plan says that this is unknown."""
        outcome = self.outcomes.get(leader or 0)
        return {each.broker: each.truncatesTo for each in (() if outcome is None else outcome.replicas) if each.lost}

    def strays(self, leader: int | None) -> list[str]:
        outcome = self.outcomes.get(leader or 0)
        found = [] if outcome is None else [f"{each.topic}-{each.partition}" for each in outcome.strays]
        return sorted({*found, *(log.name for log in self.plan.plans[NODE].partitions if log.stray)})


def predicted(disks: list[str], release: Any) -> Predicted:
    found: list[Any] = []
    plan = restart_cluster(disks, Options(found=found.append), kafka_version=release)
    quorum = next(
        (each for each in found if getattr(each, "topic", "") == "__cluster_metadata" and hasattr(each, "isr")), None
    )
    quorum = quorum or quorum_replicas(plan.plans, RecordCounter(Options()).count)
    return Predicted(plan, {each.leader: each for each in quorum.outcomes} if quorum else {})


def differences(did: Happened, said: Predicted, lab: Lab) -> list[str]:
    """Return the differences between the plan and what the nodes did; a false comfort first."""
    summary, leader = said.plan.summary, did.leader
    assert summary is not None
    found = []
    if leader is None:
        found += [f"nobody leads, predicted {summary.electable}"] if summary.electable else []
    elif leader not in summary.electable:
        found.append(f"{leader} leads, predicted {summary.electable}")
    outcome = said.outcomes.get(leader or 0)
    committed = 0 if outcome is None else outcome.acknowledged + outcome.possiblyAcknowledged
    topics = sorted(did.lost & set(lab.seen))
    if topics and not summary.loses:
        found.insert(0, f"FALSE COMFORT: topics {topics} are lost")
    if bool(topics) != bool(committed):
        found.append(f"topics {topics} lost, predicted {committed} records of the metadata")
    if unexpected := sorted(set(did.ended) - said.exits):
        found.append(f"{unexpected} exited")
    ran = {node for group in did.order for node in group}
    if leader is not None and (leader in did.ended or len(ran - set(did.ended)) < MAJORITY):
        return found  # nobody leads for good until they are started again
    said_of = said.truncated(leader)
    expected = {node: offset for node, offset in said_of.items() if node in {*ran, NODE} - set(did.ended)}
    if {
        node: None if node in said_of and said_of[node] is None else to for node, to in did.truncated.items()
    } != expected:
        found.append(f"truncated to: predicted {expected}, the nodes {did.truncated}")
    if leader is not None and NODE not in did.ended and did.stray != said.strays(leader):
        found.append(f"stray: predicted {said.strays(leader)}, did {did.stray}")
    if not did.up:
        return found if leader is None or NODE in said.exits else [*found, "the broker does not come up"]
    for topic, before in lab.seen.items():
        if f"{topic}-0" in said.strays(leader):
            continue
        after = did.served.get(topic)
        if after != before:
            now = None if after is None else [after.start, after.end, len(after.records), len(after.committed)]
            was = [before.start, before.end, len(before.records), len(before.committed)]
            found.append(f"{topic}: {was} before (start, end, records, committed ones), {now} after")
    if did.committed != COMMITTED and "__consumer_offsets-0" not in said.strays(leader):
        found.append(f"the group's offset is {did.committed}")
    if did.transactions != lab.transactions and "__transaction_state-0" not in said.strays(leader):
        found.append(f"transactions: {lab.transactions} before, {did.transactions} after")
    return found


def trial(jars: Path, record: RecordedResults, ground: KeptGround, group: Group) -> None:
    first = group.cases[0]
    steps = (first.quorum, *first.steps)
    with tempfile.TemporaryDirectory(prefix="election-") as folder, ExitStack() as stack:
        controllers = Quorum(jars, Path(folder), quorum_trials.Case(first.name, first.what, first.quorum))
        stack.push(controllers)
        lab = Lab(controllers)
        state = ground.restored(steps, controllers.work)
        if state is None:
            controllers.__enter__()
            for step in first.steps:
                lab.do(step)
            for node in (*controllers.nodes, NODE):
                shutil.copytree(controllers.path(node, "disk"), controllers.work / "down" / f"disk-{node}")
            state = (controllers.ports, lab.seen, lab.transactions, lab.leader)
            ground.keep(steps, controllers.work, ("down",), state)
        else:
            controllers.ports, lab.seen, lab.transactions, lab.leader = state
            controllers.configure()
        for case in group.cases:
            kept: list[Result] = []
            for result in courses(lab, case):
                kept.append(result)
                record.keep(case.name, kept)


def courses(lab: Lab, case: Case) -> Iterator[Result]:
    """Yield what happened in each order, and what was predicted."""
    controllers, ground = lab.controllers, lab.controllers.work / case.name
    nodes = (*controllers.nodes, NODE)
    for node in nodes:
        shutil.rmtree(controllers.path(node, "disk"), ignore_errors=True)
        shutil.copytree(controllers.work / "down" / f"disk-{node}", controllers.path(node, "disk"))
    lab.dropped.clear()
    for step in case.change:
        lab.do(step)
    given = [node for node in nodes if node not in lab.dropped]
    for node in given:
        shutil.copytree(controllers.path(node, "disk"), ground / f"disk-{node}")
    said = predicted([str(ground / f"disk-{node}") for node in given], controllers.release)
    summary = said.plan.summary
    assert summary is not None
    plan: Result = {"electable": summary.electable, "first": summary.firstVoters, "hasQuorum": summary.hasQuorum}
    plan |= {"loses": summary.quorumLoses, "losesLeast": summary.quorumLosesLeast, "exits": sorted(said.exits)}
    for order in case.orders:
        did = started(lab, order, ground, said.plan)
        about: Result = {"name": case.name, "what": case.what, "quorum": case.quorum}
        about |= {"kafka": controllers.release.number, "order": did.order, "leader": did.leader, "ended": did.ended}
        about |= {"truncated": did.truncated, "lost": sorted(did.lost), "stray": did.stray}
        about["served"] = {
            topic: {"logStart": each.start, "logEnd": each.end, "read": len(each.records)}
            | {"readCommitted": len(each.committed)}
            for topic, each in did.served.items()
        }
        about |= {"log": did.errors} if did.errors else {}
        about |= {"committedOffset": did.committed, "transactions": did.transactions}
        about["differences"] = differences(did, said, lab)
        if about["differences"]:
            keep = Path(tempfile.gettempdir()) / f"election-differs-{case.name}"
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(ground, keep)
            for log in controllers.work.glob("*.log"):
                shutil.copy(log, keep)
        print(f"{case.name} {did.order}: {about['differences'] or 'agrees'}", file=sys.stderr, flush=True)
        so: Result = {"truncated": said.truncated(did.leader), "stray": said.strays(did.leader)}
        yield about | {"predicted": plan | so}


def main() -> None:
    parser = trial_options(__doc__, "docs/election-trials.json")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ground", type=Path)
    options = parser.parse_args()
    record = RecordedResults(options.out, CASES)
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in chosen(CASES, options.only):
        groups.setdefault((case.quorum, *case.steps), []).append(case)
    together = (Group(", ".join(each.name for each in cases), cases) for cases in groups.values())
    ground = KeptGround(options.ground, release_of(options.jars).number)
    tried(together, partial(trial, options.jars.resolve(), record, ground), options.jobs)


if __name__ == "__main__":
    main()
