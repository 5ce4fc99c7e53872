"""python -m tools.replica_trials JARS [--only NAME,…] [--jobs N] [--ground DIR] [--out docs/replica-trials.json]

Starts a controller and three real brokers with records, transactions and a group, makes their replicas differ (outages,
unclean elections, disks that are lost, formatted, or restored from an older copy), and stops them; in some cases, the
controller's disk is lost, and kdump.rescue makes it again. Then predicts with kdump.restart_cluster what happens,
starts the brokers in several orders, and compares: where each log is loaded, which are created empty, who leads, where
each follower truncates, what both kinds of consumers read, the group's offset, and the transactions. What is lost and
was not predicted is a false comfort. docs/restart-plan.md contains the result as a table (its test writes it if
KDUMP_REWRITE=1 is set).

JARS is a directory with the jars of one release (make build/release-jars/RELEASE), which each result names. Needs Java
17, confluent-kafka, 2 GB of memory for each job, and three minutes for each case."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import kdump
from kdump.check.options import Options
from kdump.cluster.metadata_log import read_metadata
from kdump.log.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kdump.questions.rescue.answer import CONTROLLER_STEP
from kdump.questions.rescue.rescuer import NewController
from kdump.questions.rescue.run import rescue
from kdump.questions.restart_plan.answer import STOPPED
from kdump.questions.restart_plan.replicas.replica_answer import LeaderOutcome, PartitionReplicas
from kdump.questions.restart_plan.replicas.restart_cluster import (
    ClusterPlan,
    RecordCounter,
    _examined,
    _replicas,
    restart_cluster,
)
from tools.trials.clients import Clients, Served, transactions
from tools.trials.cluster import START_SECONDS, STARTED, release_of
from tools.trials.recorded_results import KeptGround, RecordedResults, chosen, trial_options, tried
from tools.trials.replicas import BROKERS, Replicas

Result = dict[str, Any]
Record = tuple[int, str]
TOPICS = {
    "unclean": {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    "single": {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"},
    "safe": {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
    "open": {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"},
}
"""Topics with three replicas each, and their configs; the last one has a transaction that stays open."""
PARTITIONS = [f"{topic}-0" for topic in TOPICS]
GROUP, COMMITTED = "group", 7
COMMON = """
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
unclean.leader.election.enable=false
group.initial.rebalance.delay.ms=0
"""
FENCING_SECONDS = 8
"""broker.session.timeout.ms is 4000: the controller has noticed an outage after this time."""
LEADER_SECONDS = 45
"""A replica on a new log directory is no leader before the broker has assigned it to that, and tries again."""
ELECT = 0
"""In an order: an unclean election by an administrator."""
TRUNCATING = re.compile(
    r"Truncating partition (\S+) with OffsetTruncationState\(offset=(\d+)|"
    r"Truncating partition (\S+) with TruncationState\(offset=(\d+)|"
    r"partition=(\S+?)[,\]].* Truncating to offset (\d+)"
)
LOADED = re.compile(r"Completed load of Log\(dir=\S*?/([^/,]+), .*logStartOffset=(\d+), logEndOffset=(\d+)\)")
CREATED = re.compile(r"Created log for partition (\S+) in ")


class Case(NamedTuple):
    """Steps that make the replicas differ, what happens to the disks once all nodes are down, and the orders in which
    the brokers are then started."""

    name: str
    what: str
    steps: tuple[str, ...]
    change: tuple[str, ...]
    orders: tuple[tuple[int, ...], ...]


class Group(NamedTuple):
    """Cases with the same steps, which are done once."""

    name: str
    cases: list[Case]


AT_ONCE = ("produce 40 all", "stop 3", "save 3", "start 3", "produce 20 all", "kill 1 2 3")
ONE_BY_ONE = ("produce 40 all", "save 3", "produce 20 all", "stop 1", "produce 10 all", "stop 2", "stop 3")
LAST_FAILS = ("produce 40 all", "stop 3", "produce 10 all", "stop 2", "kill 1")
OUTAGES = ("produce 50 all", "kill 3", "produce 10 all", "kill 2", "produce 10 1", "kill 1")
LAST = "all brokers are shut down cleanly, and broker 3, the last one in sync,"
RESCUED = "the controller's disk is lost, and kdump rescue makes it again"
CASES = (
    Case(
        "outages",
        "brokers fail one after another; the last one in sync fails, too, and one that failed before starts alone",
        (*OUTAGES, "start 3", "produce 5 1 unclean", "kill 3"),
        (),
        ((1, 2, 3), (2, 1, 3), (3, 1, 2)),
    ),
    Case(
        "power-loss",
        "all nodes fail at once, and broker 1 loses the end of its logs",
        AT_ONCE,
        ("cut 1",),
        ((1, 2, 3), (3, 2, 1)),
    ),
    Case(
        "power-loss-no-elr",
        "the same without eligible leader replicas",
        ("no-elr", "produce 40 all", "produce 20 all", "kill 1 2 3"),
        ("cut 1",),
        ((1, 2, 3), (3, 2, 1)),
    ),
    Case("disk-replaced", f"{LAST} loses the partitions' directories", ONE_BY_ONE, ("lose 3",), ((3, 1, 2), (1, 2, 3))),
    Case("disk-formatted", f"{LAST} has a new disk, formatted", ONE_BY_ONE, ("format 3",), ((3, 1, 2), (1, 2, 3))),
    Case(
        "disk-formatted-in-sync",
        "all nodes fail at once, and broker 3 has a new disk, formatted",
        AT_ONCE,
        ("format 3",),
        ((3, 1, 2), (1, 2, 3)),
    ),
    Case(
        "two-elections",
        "two unclean elections, each of a broker that lacks what the one before had",
        (
            *("produce 20 all", "kill 2 3", "produce 10 1", "kill 1", "start 2", "produce 7 1 unclean"),
            *("kill 2", "start 3", "produce 4 1 unclean", "kill 3"),
        ),
        (),
        ((1, 2, 3), (2, 3, 1), (3, 2, 1)),
    ),
    Case("restored", f"{LAST} gets an older copy of its disk", ONE_BY_ONE, ("restore 3",), ((3, 1, 2), (1, 2, 3))),
    Case(
        "restored-clean",
        "all nodes fail at once, and broker 3 gets a copy of its disk from its shutdown before",
        AT_ONCE,
        ("restore 3",),
        ((3, 1, 2), (1, 2, 3)),
    ),
    Case(
        "out-of-isr",
        "broker 3 fails, and the others are shut down later, one after the other",
        ("produce 40 all", "kill 3", "produce 20 all", "stop 1", "produce 10 1", "stop 2"),
        (),
        ((3, 1, 2), (1, 3, 2), (2, 1, 3)),
    ),
    Case(
        "eligible",
        "brokers 3 and 2 are shut down, and broker 1, the last one in sync, fails",
        LAST_FAILS,
        (),
        ((2, 3, 1), (3, 2, 1), (1, 2, 3)),
    ),
    Case("eligible-formatted", "the same, and 1 has a new disk", LAST_FAILS, ("format 1",), ((2, 3, 1), (1, 2, 3))),
    Case(
        "elected-by-hand",
        "broker 1, the last one in sync, does not start, and an administrator elects another one",
        OUTAGES,
        (),
        ((2, 3, ELECT, 1), (3, ELECT, 2, 1)),
    ),
    Case("rescued", f"all nodes fail at once, {RESCUED}", AT_ONCE, ("rescue",), ((1, 2, 3), (3, 2, 1))),
    Case(
        "rescued-formatted",
        f"{LAST} has a new disk, formatted; {RESCUED}",
        ONE_BY_ONE,
        ("format 3", "rescue"),
        ((3, 1, 2), (1, 2, 3)),
    ),
    Case(
        "rescued-restored",
        f"{LAST} gets an older copy of its disk; {RESCUED}",
        ONE_BY_ONE,
        ("restore 3", "rescue"),
        ((3, 1, 2), (1, 2, 3)),
    ),
)


class Lab:
    """The brokers of one case. `seen`: what consumers have read of each topic before, by isolation."""

    def __init__(self, cluster: Replicas) -> None:
        self.cluster = cluster
        self.clients = Clients(self.at)
        self.sent = 0
        self.seen: dict[str, tuple[set[Record], set[Record]]] = {topic: (set(), set()) for topic in TOPICS}
        self.transactions: dict[str, str] = {}

    def tool(self, name: str, *arguments: str) -> None:
        command = self.cluster.java(f"org.apache.kafka.tools.{name}", "--bootstrap-server", self.at(), *arguments)
        subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def at(self) -> str:
        alive = [role for role in BROKERS if role in self.cluster.processes and not self.cluster.ended(role)]
        return ",".join(f"127.0.0.1:{self.cluster.ports[role]}" for role in alive)

    def begin(self) -> None:
        """Create the topics, transactions and the group's offset."""
        for name, configs in TOPICS.items():
            self.clients.create(name, [1, 2, 3], **configs)
        for topic in TOPICS:
            self.clients.transaction("committed", topic, [f"{topic}-committed-{each}" for each in range(5)], "commit")
            self.clients.transaction("aborted", topic, [f"{topic}-aborted-{each}" for each in range(5)], "abort")
        self.clients.transaction("open", "open", [f"open-{each}" for each in range(5)], "open")
        self.clients.commit(GROUP, "safe", COMMITTED)
        self.transactions = transactions(self.cluster, self.at())

    def produce(self, count: int, acks: str, topics: list[str]) -> None:
        for topic in topics:
            values = [f"{topic}-{self.sent + number}" for number in range(count)]
            self.clients.produce(topic, values, "-1" if acks == "all" else acks)
            served = self.clients.served(topic)
            self.seen[topic][0].update(served.records)
            self.seen[topic][1].update(served.committed)
        self.sent += count

    def do(self, step: str) -> None:
        word, *rest = step.split()
        roles = [f"broker-{node}" for node in rest if node.isdigit()]
        if word == "produce":
            self.produce(int(rest[0]), rest[1], rest[2:] or list(TOPICS))
        elif word == "kill":
            for role in roles:
                self.cluster.kill(role)
            time.sleep(0 if len(rest) == 3 else FENCING_SECONDS)
        elif word == "stop":
            self.cluster.stop(roles[0])
            time.sleep(2)
        elif word == "start":
            self.cluster.start(roles[0])
            self.cluster.wait(roles[0])
        elif word == "cut":
            for log in self.logs(rest[0]):
                whole = log.read_bytes()
                log.write_bytes(whole[: len(whole) - len(whole) // 6])
        elif word == "lose":
            for log in self.logs(rest[0]):
                shutil.rmtree(log.parent)
        elif word == "save":
            shutil.copytree(self.cluster.dirs[roles[0]][0], self.cluster.work / f"older-{rest[0]}")
        elif word == "restore":
            shutil.rmtree(self.cluster.dirs[roles[0]][0])
            shutil.copytree(self.cluster.work / f"older-{rest[0]}", self.cluster.dirs[roles[0]][0])
        elif word == "format":
            self.format(roles[0])
        elif word == "rescue":
            self.rescue()
        elif word == "no-elr":
            self.tool("FeatureCommand", "downgrade", "--feature", "eligible.leader.replicas.version=0")

    def format(self, role: str) -> None:
        disk = self.cluster.dirs[role][0]
        cluster_id = re.search("cluster.id=(.*)", (disk / "meta.properties").read_text())
        assert cluster_id is not None
        shutil.rmtree(disk)
        path = str(self.cluster.work / f"{role}.properties")
        self.cluster._run("kafka.tools.StorageTool", "format", "--cluster-id", cluster_id[1], "--config", path)

    def rescue(self) -> None:
        """Lose the controller's disk, rescue it from those of the brokers, and do what the steps say."""
        disk = self.cluster.dirs["controller"][0]
        shutil.rmtree(disk)
        controllers = (NewController(0, "127.0.0.1", self.cluster.ports["controller"]),)
        out = self.cluster.work / "made"
        shutil.rmtree(out, ignore_errors=True)
        made = rescue([str(self.cluster.dirs[role][0]) for role in BROKERS], out=str(out), controllers=controllers)
        for each in made.steps:
            if each.command is not None and not each.command.startswith(("kdump", "kafka-")):
                disk.mkdir(exist_ok=True)
                command = each.command.replace("LOG_DIR", str(disk)) if each.step == CONTROLLER_STEP else each.command
                subprocess.run(command, shell=True, check=True)

    def logs(self, node: str) -> list[Path]:
        root = self.cluster.dirs[f"broker-{node}"][0]
        return [root / f"{topic}-0" / f"{0:020}.log" for topic in TOPICS]


@cache
def records(disk: Path) -> dict[str, set[Record]]:
    """Return the records of each partition on a disk as offset and value, without markers."""
    found: dict[str, set[Record]] = {name: set() for name in PARTITIONS}
    for name in PARTITIONS:
        if (disk / name).is_dir():
            every = [each for each in kdump.open(disk / name).records(damaged=True) if not each.batch.isControlBatch]
            found[name] = {(each.offset or 0, (each.value or b"").decode()) for each in every}
    return found


@cache
def committed_records(disk: Path) -> dict[str, set[Record]]:
    """Return the same of what a read_committed consumer gets."""
    found: dict[str, set[Record]] = {name: set() for name in PARTITIONS}
    here = [str(disk / name) for name in PARTITIONS if (disk / name).is_dir()]
    command = [sys.executable, "-m", "kdump", "inspect", "--records", "--json", "--read-committed", *here]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines() if here else []
    for each in map(json.loads, lines):
        if each["type"] == "record":
            found[f"{each['topic']}-{each['partition']}"].add((each["offset"], each["value"]))
    return found


class Happened(NamedTuple):
    """What the brokers did. `loaded`: start and end offset of each log on each broker; `created`: logs that were not
    there; `truncated`: the lowest offset to which a follower truncated below its end; `ended`, `stray`: processes, and
    directories."""

    leaders: dict[str, int | None]
    loaded: dict[int, dict[str, tuple[int, int]]]
    created: dict[int, list[str]]
    truncated: dict[int, dict[str, int]]
    ended: list[int]
    stray: dict[int, list[str]]
    served: dict[str, Served]
    committed: int | None
    transactions: dict[str, str]


def started(lab: Lab, order: tuple[int, ...], ground: Path) -> Happened:
    """Start the brokers in this order on copies of the disks."""
    cluster = lab.cluster
    copied(cluster, ground, back=True)
    cluster.start("controller")
    time.sleep(FENCING_SECONDS + 3)
    for node in order:
        if node == ELECT:
            for topic in (*TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC):
                where = ("--election-type", "unclean", "--topic", topic, "--partition", "0")
                lab.tool("LeaderElectionCommand", *where)
            continue
        role, until = f"broker-{node}", time.monotonic() + START_SECONDS
        cluster.start(role)
        while time.monotonic() < until and not cluster.ended(role) and not any(map(STARTED.search, cluster.log(role))):
            time.sleep(0.5)
        time.sleep(FENCING_SECONDS)
    until = time.monotonic() + LEADER_SECONDS
    while None in (leaders := lab.clients.leaders()).values() and time.monotonic() < until:
        time.sleep(2)
    served = {topic: lab.clients.served(topic) for topic in TOPICS}
    committed = lab.clients.committed(GROUP, "safe")
    states = transactions(cluster, lab.at())
    logs = {int(role[-1]): cluster.log(role) for role in BROKERS}
    ended = [node for node in logs if cluster.ended(f"broker-{node}")]
    for role in cluster.ports:
        cluster.kill(role)
    loaded, created, truncated, stray = {}, {}, {}, {}
    for node, lines in logs.items():
        of_logs = [match.groups() for line in lines for match in LOADED.finditer(line)]
        loaded[node] = {name: (int(start), int(end)) for name, start, end in of_logs}
        loaded[node].pop(f"{METADATA_TOPIC}-0", None)
        names = {match[1] for line in lines for match in CREATED.finditer(line)}
        created[node] = sorted(names - set(loaded[node]))
        ends = {name: end for name, (_, end) in loaded[node].items()}
        truncated[node] = truncations(lines, ends)
        disk = cluster.dirs[f"broker-{node}"][0]
        stray[node] = sorted(each.name.rpartition(".")[0] for each in disk.glob("*-stray"))
    return Happened(leaders, loaded, created, truncated, ended, stray, served, committed, states)


def truncations(lines: list[str], ends: dict[str, int]) -> dict[str, int]:
    """Return the lowest offset below its end to which each follower has truncated its log."""
    found: dict[str, int] = {}
    for line in lines:
        for groups in TRUNCATING.findall(line):
            for name, number in zip(groups[::2], groups[1::2]):
                if name in ends and int(number) < ends[name]:
                    found[name] = min(found.get(name, ends[name]), int(number))
    return found


class Predicted:
    """What the plan says, in the terms of what happened."""

    def __init__(self, plan: ClusterPlan, ground: Path, *, by_hand: bool) -> None:
        self.plan, self.ground = plan, ground
        self.of = {each.name: each for each in plan.replicas}
        if by_hand:  # of which the plan shows what the controllers do by themselves alone
            metadata, counter = read_metadata(str(ground / "disk-0")), RecordCounter(Options())
            found = (_examined(each, metadata, counter) for each in _replicas(plan.plans, metadata, lambda _: True))
            self.of |= {each.name: each for each in found if each is not None}
        self.brokers = {node: each for node, each in plan.plans.items() if node}

    def log(self, node: int, name: str) -> tuple[int, int]:
        """Return start and end offset of a log once it is loaded; 0, 0 if it is created."""
        for log in self.brokers[node].partitions:
            if log.name == name and not (log.missing or log.state or log.stray):
                return log.logStartOffset or 0, log.logEndOffset or 0
        return 0, 0

    def loaded(self, node: int) -> dict[str, tuple[int, int]]:
        logs = [log for log in self.brokers[node].logs if not log.state]
        return {log.name: (log.logStartOffset or 0, log.logEndOffset or 0) for log in logs}

    def created(self, node: int) -> list[str]:
        """Return the replicas that the metadata assigns to the broker, and of which it has nothing: empty logs."""
        image = read_metadata(str(self.ground / "disk-0"))
        topics = {} if image is None else image.topics
        assigned = {
            f"{name}-{n}" for name, of in topics.items() for n, it in of.partitions.items() if node in it.replicas
        }
        return sorted(assigned - set(self.loaded(node)))

    def outcome(self, name: str, leader: int | None) -> LeaderOutcome | None:
        each = self.of.get(name)
        return None if each is None else next((it for it in each.outcomes if it.leader == leader), None)

    def truncated(self, name: str, leader: int | None) -> dict[int, int]:
        outcome = self.outcome(name, leader)
        losses = () if outcome is None else outcome.replicas
        return {
            loss.broker: loss.truncatesTo
            for loss in losses
            if loss.by != "startup"
            and loss.truncatesTo is not None
            and loss.truncatesTo < self.log(loss.broker, name)[1]
        }

    def served(self, name: str, leader: int, read: Callable[[Path], dict[str, set[Record]]]) -> set[Record]:
        start, end = self.log(leader, name)
        return {each for each in read(self.ground / f"disk-{leader}")[name] if start <= each[0] < end}

    @property
    def comforts(self) -> bool:
        """Whether it says that nothing is lost."""
        summary = self.plan.summary
        assert summary is not None
        return not (summary.loses or any(each.course.losses for each in self.brokers.values()))


def differences(order: tuple[int, ...], plan: Predicted, did: Happened, lab: Lab) -> list[str]:
    """Return the differences between the plan and what happened; a false comfort first."""
    found = []
    for node, each in plan.brokers.items():
        if (node in did.ended) != (each.verdict == STOPPED):
            found.append(f"broker {node}: predicted {each.verdict}, ended {node in did.ended}")
        for what, said, done in (
            ("loads", plan.loaded(node), did.loaded[node]),
            ("creates", plan.created(node), did.created[node]),
            ("makes stray", sorted(log.name for log in each.partitions if log.stray), did.stray[node]),
        ):
            if said != done:
                found.append(f"broker {node} {what}: predicted {_beyond(said, done)}, did {_beyond(done, said)}")
    lost = {}
    for name, leader in did.leaders.items():
        if name.startswith("__share"):
            continue
        found += leader_differences(name, leader, order, plan, did)
        if leader is not None and name in PARTITIONS:
            topic = name.rpartition("-")[0]
            lost[name] = len(lab.seen[topic][0] - did.served[topic].records)
            found += served_differences(name, leader, plan, did.served[topic], lab)
    if plan.comforts and any(lost.values()):
        found.insert(0, f"FALSE COMFORT: {lost}")
    for what, name, before, after in (
        ("the group's offset", f"{OFFSETS_TOPIC}-0", COMMITTED, did.committed),
        ("transactions", f"{TRANSACTION_TOPIC}-0", lab.transactions, did.transactions),
    ):
        outcome = plan.outcome(name, did.leaders.get(name))
        if before != after and (outcome is None or not outcome.lost):
            found.append(f"{what}: {before} before, {after} after, and the plan loses nothing of {name}")
    return found


def _beyond(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {key: value for key, value in one.items() if other.get(key) != value}
    return [each for each in one if each not in other]


def leader_differences(
    name: str, leader: int | None, order: tuple[int, ...], plan: Predicted, did: Happened
) -> list[str]:
    each, found = plan.of.get(name), []
    by_hand = ELECT in order and (each is None or leader not in [it.leader for it in each.expected])
    if each is not None and not by_hand:
        allowed = [outcome.leader for outcome in each.expected]
        expected = [predicted_leader(each, order)] if each.firstLeads else allowed
        if leader not in expected:
            found.append(f"{name}: leader: predicted {expected}, the cluster {leader}")
    elif leader is None:
        found.append(f"{name}: nobody leads, and the plan expects nothing")
    said = plan.truncated(name, leader)
    done = {node: logs[name] for node, logs in did.truncated.items() if name in logs}
    if said != done:
        found.append(f"{name}: truncated to: predicted {said}, the brokers {done}")
    return found


def served_differences(name: str, leader: int, plan: Predicted, served: Served, lab: Lab) -> list[str]:
    found = []
    whole, committed = plan.served(name, leader, records), plan.served(name, leader, committed_records)
    for what, said, done in (("all records", whole, served.records), ("committed", committed, served.committed)):
        if said != done:
            found.append(f"{name}: {what}: {_offsets(said - done)} are not read, {_offsets(done - said)} are")
    if (served.start, served.end) != plan.log(leader, name):
        found.append(f"{name}: predicted {plan.log(leader, name)}, the leader {(served.start, served.end)}")
    outcome = plan.outcome(name, leader)
    seen = lab.seen[name.rpartition("-")[0]]
    # What the consumers saw, or a disk has: what an unclean election had removed before may be on a disk.
    gone = {each for each in seen[0] if each not in whole}
    if outcome is None and gone:
        found.append(f"{name}: {len(gone)} records are lost, and the plan expects nothing")
    if outcome is not None and len(gone) > outcome.lost:
        found.append(f"{name}: {len(gone)} records that consumers had read are lost, predicted {outcome.lost}")
    return found


def _offsets(records: set[Record]) -> str:
    offsets = sorted(offset for offset, _ in records)
    return f"{len(offsets)} ({offsets[0]}..{offsets[-1]})" if offsets else "none"


def predicted_leader(each: PartitionReplicas, order: tuple[int, ...]) -> int | None:
    allowed = [outcome.leader for outcome in each.expected]
    return next((broker for broker in order if broker in allowed), None)


def trial(jars: Path, record: RecordedResults, ground: KeptGround, group: Group) -> None:
    steps = group.cases[0].steps
    with tempfile.TemporaryDirectory(prefix="replicas-") as folder, ExitStack() as stack:
        cluster = Replicas(jars, Path(folder), "", common=COMMON)
        stack.push(cluster)
        lab = Lab(cluster)
        state = ground.restored(steps, cluster.work)
        if state is None:
            cluster.__enter__()
            cluster.wait(*BROKERS)
            lab.begin()
            for step in steps:
                lab.do(step)
            for role in cluster.ports:
                cluster.kill(role)
            copied(cluster, cluster.work / "down")
            ground.keep(steps, cluster.work, ("down", "older-*"), (lab.seen, lab.transactions))
        else:
            lab.seen, lab.transactions = state
            for role in cluster.ports:
                cluster.configure(role)
        for case in group.cases:
            kept: list[Result] = []
            for result in courses(lab, case):
                kept.append(result)
                record.keep(case.name, kept)


def copied(cluster: Replicas, target: Path, *, back: bool = False) -> None:
    """Copy the disks, or put the copies back."""
    for role in cluster.ports:
        disk = cluster.dirs[role][0]
        if back:
            shutil.rmtree(disk, ignore_errors=True)
        shutil.copytree(*((target / disk.name, disk) if back else (disk, target / disk.name)))


def courses(lab: Lab, case: Case) -> Iterator[Result]:
    """Yield what happened in each order, and what was predicted."""
    cluster, ground = lab.cluster, lab.cluster.work / case.name
    copied(cluster, cluster.work / "down", back=True)
    for step in case.change:
        lab.do(step)
    copied(cluster, ground)
    release = release_of(cluster.jars)
    plan = restart_cluster([str(path) for path in sorted(ground.iterdir())], kafka_version=release)
    predicted = Predicted(plan, ground, by_hand=any(ELECT in order for order in case.orders))
    for order in case.orders:
        did = started(lab, order, ground)
        result: Result = {"name": case.name, "what": case.what, "kafka": release.number, "order": list(order)}
        result["partitions"] = {name: told(name, node, predicted, did) for name, node in did.leaders.items()}
        result["comforts"] = predicted.comforts
        result["differences"] = differences(order, predicted, did, lab)
        if result["differences"]:
            keep = Path(tempfile.gettempdir()) / f"replicas-differ-{case.name}"
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(ground, keep)
            shutil.copytree(cluster.dirs["controller"][0], keep / "end-0")
            for log in cluster.work.glob("*.log"):
                shutil.copy(log, keep)
        print(f"{case.name} {order}: {result['differences'] or 'agrees'}", file=sys.stderr, flush=True)
        yield result | {"plan": outcomes(plan, order)}


def told(name: str, leader: int | None, plan: Predicted, did: Happened) -> Result:
    """Return what happened to a partition."""
    truncated = {str(node): logs[name] for node, logs in did.truncated.items() if name in logs}
    facts: Result = {"leader": leader, "truncated": truncated}
    if name in PARTITIONS:
        served = did.served[name.rpartition("-")[0]]
        every = set().union(*(records(plan.ground / f"disk-{node}")[name] for node in plan.brokers))
        facts |= {"logStart": served.start, "logEnd": served.end, "read": len(served.records)}
        facts |= {"readCommitted": len(served.committed), "lost": len(every - served.records)}
    return facts


def outcomes(plan: ClusterPlan, order: tuple[int, ...]) -> Result:
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
    parser = trial_options(__doc__, "docs/replica-trials.json")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ground", type=Path)
    options = parser.parse_args()
    record = RecordedResults(options.out, CASES)
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in chosen(CASES, options.only):
        groups.setdefault(case.steps, []).append(case)
    together = (Group(", ".join(each.name for each in cases), cases) for cases in groups.values())
    ground = KeptGround(options.ground, release_of(options.jars).number)
    tried(together, partial(trial, options.jars.resolve(), record, ground), options.jobs)


if __name__ == "__main__":
    main()
