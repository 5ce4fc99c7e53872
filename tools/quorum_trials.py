"""python -m tools.quorum_trials JARS [--only NAME,…] [--jobs N] [--out docs/quorum-trials.json]

Formats three real controllers (with static voters, with --initial-controllers, or one with --standalone), lets them
elect a leader and write metadata, kills them, and changes their disks. Then compares what kdump.restart_plan says of
the quorum with what each controller logs when it starts: the voters that it finds, whether it is one of them, and its
first state. Of voters whose logs differ, because some have a record that none can apply, it compares what kdump says of
all together: who may be elected, who halts, and who truncates its log. docs/restart-plan.md contains the result as a
table (its test writes it if KDUMP_REWRITE=1 is set).

JARS is a directory with the jars of one release (make build/release-jars/RELEASE), which each result names. Needs Java
17, 1 GB of memory for each job, and a minute for each case."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kdump import doctor
from kdump.check.options import Options
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import refusals
from kdump.format.kafka_release import KafkaRelease
from kdump.kafka.server_properties import read_properties
from kdump.questions.restart_plan.answer import STOPPED
from kdump.questions.restart_plan.replicas.quorum_replicas import quorum_replicas
from kdump.questions.restart_plan.replicas.restart_cluster import RecordCounter, restart_cluster
from kdump.questions.restart_plan.run import restart_plan
from tests.craft import split, with_metadata_record
from tools.trials.cluster import START_SECONDS, Cluster, free_port, release_of
from tools.trials.recorded_results import RecordedResults, chosen, trial_options, tried

Result = dict[str, Any]
CLUSTER, DIRECTORIES = "FN96DRb6S3GeSIQS03itlw", {1: "iAgH5VBLppbNjuKAyjYpcA", 2: "oE8qcd_iUG6Hx2IlmSa0HQ"}
DIRECTORIES[3] = "NC0LDPpABlNgsHloSKd7mg"
OTHER_DIRECTORY = "yOs7EGq-SHmE9VUF0LhreQ"
SETTLING_SECONDS = 25
CONFIG = """
node.id={node}
process.roles=controller
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:{port}
log.dirs={disk}
"""
LEADER = r"Becoming the active controller at epoch"
STATE = re.compile(r"Completed transition to (\w+)\((.*) from null")
LED = re.compile(r"Completed transition to Leader\(.*?epoch=(\d+)")
VOTERS = re.compile(r"Starting voters are VoterSet\(voters=\{(.*)\}\)")
VOTER = re.compile(
    r"voterKey=ReplicaKey\(id=(\d+), directoryId=(?:Optional\[)?(<undefined>|Optional\.empty|[\w-]+)\]?\)"
)
"""With the words of 3.9, which has an Optional, and of later releases."""

UNDEFINED = ("<undefined>", "Optional.empty")

EXITS = ("startup-forgotten-leader", "startup-epoch-again", "startup-other-leader", "startup-voter-without-state")
"""Problems that make a node exit, or may, by the disks of all."""


class Case(NamedTuple):
    """`quorum`: static, dynamic or standalone; `change`: what happens to the disk of controller 1; `runs`: whether the
    controllers run before that; `refused`: controllers to whose logs, all equal, a record is appended that none can
    apply, or that none can read (`is_unread`); `outdated`: whether the others then elect a leader first;
    `acts`: whether the action that doctor or the plan prints is done then."""

    name: str
    what: str
    quorum: str
    change: str = ""
    runs: bool = True
    refused: tuple[int, ...] = ()
    is_unread: bool = False
    outdated: bool = False
    acts: bool = False


CASES = (
    Case("dynamic", "three voters, after kill -9", "dynamic"),
    Case("dynamic-formatted", "three voters, formatted and never started", "dynamic", runs=False),
    Case("dynamic-new-disk", "the disk of voter 1 is replaced and formatted", "dynamic", "format"),
    Case("dynamic-snapshot-lost", "voter 1 has lost the first metadata snapshot", "dynamic", "snapshot"),
    Case("dynamic-quorum-state-lost", "voter 1 has lost quorum-state", "dynamic", "quorum-state"),
    Case("dynamic-log-lost", "voter 1 has lost its metadata log and keeps meta.properties", "dynamic", "log"),
    Case("static", "three voters in controller.quorum.voters, after kill -9", "static"),
    Case("static-new-disk", "the disk of voter 1 of a static quorum is replaced and formatted", "static", "format"),
    Case("standalone", "one voter, formatted with --standalone, after kill -9", "standalone"),
    Case("standalone-formatted", "one voter, formatted with --standalone and never started", "standalone", runs=False),
    Case("standalone-other-directory", "the directory.id of the only voter is another one", "standalone", "id"),
    Case(
        "standalone-snapshot-lost",
        "the only voter was never started, and has lost the first snapshot",
        "standalone",
        "snapshot",
        runs=False,
    ),
    Case("refused-alone", "voter 1 alone has a record that no controller can apply", "dynamic", refused=(1,)),
    Case("refused-majority", "voters 1 and 2 have a record that no controller can apply", "dynamic", refused=(1, 2)),
    Case(
        "refused-outdated",
        "voter 1 alone has a record that no controller can apply, and the others have had another leader since",
        "static",
        refused=(1,),
        outdated=True,
    ),
    Case("log-is-file", "there is a file in place of voter 1's metadata log", "static", "file", acts=True),
    Case("majority-formatted", "the disks of voters 1 and 2 are replaced and formatted", "dynamic", "two", acts=True),
    Case("unread-alone", "voter 1 alone has a record of an unknown type", "static", refused=(1,), is_unread=True),
    Case(
        "unread-majority", "voters 1 and 2 have a record of an unknown type", "dynamic", refused=(1, 2), is_unread=True
    ),
)
REFUSED, UNREAD = b"\x01\x09\x00" + b"?" * 16 + b"\x00", b"\x01\x7b\x00\x00"
"""A RemoveTopicRecord of an unknown topic, and a record of an unknown type."""


class Controllers(Cluster):
    """The controllers of a case, each with a disk of its own."""

    def __init__(self, jars: Path, work: Path, case: Case) -> None:
        super().__init__(jars, work, work / "unused", [])
        self.case = case
        self.release = release_of(jars)
        self.nodes = (1,) if case.quorum == "standalone" else (1, 2, 3)
        self.ports = {f"controller-{node}": free_port() for node in self.nodes}
        self.configure()

    def configure(self) -> None:
        for node in self.nodes:
            self.path(node, "properties").write_text(self._configuration(node))

    def __enter__(self) -> Controllers:
        for node in self.nodes:
            self.format(node)
        return self

    def path(self, node: int, kind: str) -> Path:
        return self.work / (f"disk-{node}" if kind == "disk" else f"controller-{node}.{kind}")

    def _at(self, node: int) -> str:
        return f"127.0.0.1:{self.ports[f'controller-{node}']}"

    def _configuration(self, node: int) -> str:
        text = CONFIG.format(node=node, port=self.ports[f"controller-{node}"], disk=self.path(node, "disk"))
        if self.case.quorum == "static":
            return text + "controller.quorum.voters=" + ",".join(f"{each}@{self._at(each)}" for each in self.nodes)
        return text + "controller.quorum.bootstrap.servers=" + ",".join(map(self._at, self.nodes))

    def format(self, node: int, *, again: bool = False) -> None:
        arguments = ["format", "--cluster-id", CLUSTER, "--config", str(self.path(node, "properties"))]
        if self.case.quorum != "static":
            voters = ",".join(f"{each}@{self._at(each)}:{DIRECTORIES[each]}" for each in self.nodes)
            how = ["--no-initial-controllers"] if again else ["--initial-controllers", voters]
            arguments += ["--standalone"] if self.case.quorum == "standalone" else how
        command = self.java("kafka.tools.StorageTool", *arguments, heap="100m")
        subprocess.run(command, check=True, capture_output=True, timeout=180)

    def start(self, *but: int) -> None:
        for node in self.nodes:
            if node in but:
                continue
            with self.path(node, "log").open("wb") as log:
                command = self.java("kafka.Kafka", str(self.path(node, "properties")), heap="150m")
                self.processes[f"controller-{node}"] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def settle(self, pattern: str, seconds: float = 120) -> bool:
        """Wait until a controller logs the pattern."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if any(re.search(pattern, line) for node in self.nodes for line in self.log(f"controller-{node}")):
                return True
            time.sleep(1)
        return False

    def settle_all(self) -> None:
        """Wait until each controller has logged its first state, or has exited."""
        until = time.monotonic() + START_SECONDS
        waiting = [f"controller-{node}" for node in self.nodes]
        while waiting and time.monotonic() < until:
            time.sleep(1)
            waiting = [each for each in waiting if not self.ended(each) and not any(map(STATE.search, self.log(each)))]

    def append(self) -> None:
        """Make the logs of all controllers equal, and append the record to some of them."""
        logs = {node: max(self.metadata_log(node).glob("*.log")) for node in self.nodes}
        whole = max((b"".join(split(path.read_bytes())) for path in logs.values()), key=len)
        value = UNREAD if self.case.is_unread else REFUSED
        for node, path in logs.items():
            path.write_bytes(with_metadata_record(whole, value) if node in self.case.refused else whole)
        if self.case.outdated:
            self.start(*self.case.refused)
            if not self.settle(LEADER):
                raise RuntimeError("no controller became active")
            time.sleep(5)
            self.kill()

    def metadata_log(self, node: int) -> Path:
        return self.path(node, "disk") / "__cluster_metadata-0"

    def refusing(self) -> list[int]:
        """Return the controllers that have a record that they cannot apply."""
        return [node for node in self.nodes if refused(self.metadata_log(node), self.release)]

    def change(self) -> None:
        if self.case.refused:
            self.append()
        disk = self.path(1, "disk")
        log = disk / "__cluster_metadata-0"
        if self.case.change == "format":
            shutil.rmtree(disk)
            self.format(1, again=True)
        elif self.case.change == "snapshot":
            (log / "00000000000000000000-0000000000.checkpoint").unlink()
        elif self.case.change == "quorum-state":
            (log / "quorum-state").unlink()
        elif self.case.change == "log":
            shutil.rmtree(log)
        elif self.case.change == "file":
            shutil.rmtree(log)
            log.touch()
        elif self.case.change == "two":
            for node in (1, 2):
                self.path(node, "disk").rename(self.work / f"before-{node}")
                self.format(node, again=True)
        elif self.case.change == "id":
            meta = disk / "meta.properties"
            meta.write_text(re.sub("directory.id=.*", f"directory.id={OTHER_DIRECTORY}", meta.read_text()))

    def end(self, node: int) -> int:
        """Return the last offset of a metadata log."""
        last = split(b"".join(path.read_bytes() for path in sorted(self.metadata_log(node).glob("*.log"))))[-1]
        return int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big")

    def act(self) -> tuple[str, str]:
        """Do what is printed, and start all. Return the action, and what was done."""
        disk = self.path(1, "disk")
        if self.case.change == "file":
            options = Options(server=read_properties(str(self.path(1, "properties"))))
            (stop,) = restart_plan([str(disk)], options, kafka_version=self.release).allStops
            action = next(each for each in stop.actions if re.search("(?i)once .* other voters", each))
            self.start(1)
            if not self.settle(LEADER):
                raise RuntimeError("no controller became active")
            self.metadata_log(1).rename(self.work / "moved")
            self.start(2, 3)
            return action, "controllers 2 and 3 are started, and elect a leader; the file is moved out"
        found = doctor([str(self.path(node, "disk")) for node in self.nodes]).items
        (lost,) = [each for each in found if each.code == "startup-quorum-lost"]
        action = next(each for each in lost.actions if "ut back the log directory that node 1" in each)
        for node in (1, 2):
            shutil.rmtree(self.path(node, "disk"))
            (self.work / f"before-{node}").rename(self.path(node, "disk"))
        self.start()
        return action, "both log directories are put back"


def predicted(disk: str, properties: Path, release: KafkaRelease) -> Result:
    plan = restart_plan([disk], Options(server=read_properties(str(properties))), kafka_version=release)
    quorum = plan.quorum
    facts: Result = {"starts": plan.verdict != STOPPED, "warnings": len(plan.directories[0].warnings)}
    if quorum is None:
        return facts
    voters = sorted([each.voterId, each.voterDirectoryId] for each in quorum.voters)
    return facts | {"voters": voters, "isVoter": quorum.isVoter, "state": quorum.state, "epoch": quorum.epoch}


def refused(folder: Path, release: KafkaRelease) -> bool:
    return bool(refusals(replay_metadata(metadata_files(str(folder))), release))


def together(controllers: Controllers) -> Result:
    """Return who may be elected with these disks, and of each whether it halts then, and who truncates its log."""
    disks = [str(controllers.path(node, "disk")) for node in controllers.nodes]
    cluster = restart_cluster(disks, kafka_version=controllers.release)
    found = quorum_replicas(cluster.plans, RecordCounter(Options()).count)
    return {
        str(each.leader): {"halts": each.halts, "truncate": [loss.broker for loss in each.replicas]}
        for each in (found.outcomes if found else ())
    } | {"starts": [node for node, plan in cluster.plans.items() if plan.votes]}


def joined(controllers: Controllers) -> Result:
    """Return what the controllers did together: who led, one after the other, and who ended."""
    halted = [node for node in controllers.nodes if controllers.ended(f"controller-{node}")]
    epochs = {
        node: int(found[1])
        for node in controllers.nodes
        if (found := LED.search("\n".join(controllers.log(f"controller-{node}"))))
    }
    return {"led": sorted(epochs, key=epochs.__getitem__), "ended": halted}


def differences_together(said: Result, did: Result, had: list[int]) -> list[str]:
    # Whoever leads later may have got the log of the first.
    found = [f"{node} led, and cannot be elected" for node in did["led"][:1] if str(node) not in said]
    halts = any(said.get(str(node), {}).get("halts") for node in did["led"])
    absent = [node for node in (1, 2, 3) if node not in said["starts"]]
    if halts and len(did["ended"]) < 2:
        found.append(f"a leader with the record, and only {did['ended']} halted")
    if not halts and (did["ended"] != absent or not (did["led"] or len(absent) > 1)):
        found.append(f"{absent} cannot start, and {did['ended']} ended")
    if not halts and did["led"] and did["refusing"] != absent:
        found.append(f"{had} had the record, and {did['refusing']} still have it")
    return found


def done(lines: list[str], exited: bool) -> Result:
    """Return what a controller logged: the voters that it found, and its first state."""
    text = "\n".join(lines)
    # A node that only waits for a leader does not come up.
    comes_up = "finished catching up" in text or "high water mark" not in text
    facts: Result = {"starts": not exited and comes_up, "leads": "Completed transition to Leader(" in text}
    if found := VOTERS.search(text):
        keys = VOTER.findall(found[1])
        facts["voters"] = sorted([int(node), None if own in UNDEFINED else own] for node, own in keys)
    if found := STATE.search(text):
        epoch = re.search(r"epoch=(\d+)", found[2])
        facts |= {"state": found[1].removesuffix("State").lower(), "epoch": int(epoch[1]) if epoch else None}
    if exited:
        facts["log"] = [line[:200] for line in lines if re.search(r"ERROR|Exception", line)][:5]
    return facts


def differences(said: Result, did: Result, *, static: bool) -> list[str]:
    """Return the differences. Static voters are on the disk only if quorum-state or the log names them."""
    if said["mayExit"] and not did["starts"]:
        return []
    found = [] if said["starts"] == did["starts"] else [f"starts: predicted {said['starts']}, then {did['starts']}"]
    if not did["starts"]:
        return found
    if said.get("voters") != did.get("voters") and not (static and not said.get("voters")):
        found.append(f"voters: predicted {said.get('voters')}, then {did.get('voters')}")
    if said.get("state") == "leader":
        if not did["leads"]:
            found.append("predicted that it leads at once")
    elif said.get("state") != did.get("state"):
        found.append(f"state: predicted {said.get('state')}, then {did.get('state')}")
    elif said.get("epoch") != did.get("epoch"):
        found.append(f"epoch: predicted {said.get('epoch')}, then {did.get('epoch')}")
    if said.get("isVoter") is False and did["leads"]:
        found.append("predicted that it is no voter, but it leads")
    return found


def trial(jars: Path, record: RecordedResults, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="quorum-") as folder, Controllers(jars, Path(folder), case) as controllers:
        if case.runs:
            controllers.start()
            if not controllers.settle(LEADER):
                raise RuntimeError("no controller became active")
            time.sleep(SETTLING_SECONDS)
            controllers.kill()
        before = max(map(controllers.end, controllers.nodes)) if case.acts else 0
        controllers.change()
        if case.acts:
            action, done_by_hand = controllers.act()
            led = controllers.settle(LEADER, SETTLING_SECONDS * 2)
            time.sleep(SETTLING_SECONDS)
            ended = [node for node in controllers.nodes if controllers.ended(f"controller-{node}")]
            controllers.kill()
            ends = {node: controllers.end(node) for node in controllers.nodes}
            wrong = [f"{ended} ended"] * bool(ended) + ["no leader"] * (not led)
            wrong += [f"{node} ends at {end}, before {before}" for node, end in ends.items() if end < before]
            result: Result = {"name": case.name, "what": case.what, "kafka": controllers.release.number}
            result |= {"action": action.replace(folder, "…"), "did": done_by_hand, "before": before, "ends": ends}
            record.keep(case.name, [result | {"differences": wrong}])
            return
        had = controllers.refusing() if case.refused else []
        of_all = together(controllers) if case.refused else {}
        disks = {node: str(controllers.path(node, "disk")) for node in controllers.nodes}
        said = {
            node: predicted(disk, controllers.path(node, "properties"), controllers.release)
            for node, disk in disks.items()
        }
        for node, each in restart_cluster(disks.values(), kafka_version=controllers.release).plans.items():
            said[node]["mayExit"] = any(problem.code in EXITS for problem in each.directories[0].problems)
        controllers.start()
        controllers.settle_all()
        controllers.settle(LEADER, SETTLING_SECONDS * 2)
        time.sleep(5)
        result = {"name": case.name, "what": case.what, "kafka": controllers.release.number}
        result |= {"nodes": {}, "differences": []}
        for node in controllers.nodes:
            role = f"controller-{node}"
            did = done(controllers.log(role), controllers.ended(role))
            result["nodes"][str(node)] = {"predicted": said[node], "controller": did}
            if case.refused:
                continue
            found = differences(said[node], did, static=case.quorum == "static")
            result["differences"] += [f"{node}: {each}" for each in found]
        did = joined(controllers) if case.refused else {}
        controllers.kill()
        if case.refused:
            did["refusing"] = controllers.refusing()
            result |= {"predicted": of_all, "controllers": did, "differences": differences_together(of_all, did, had)}
    print(f"{case.name}: {result['differences'] or 'agrees'}", file=sys.stderr, flush=True)
    record.keep(case.name, [result])


def main() -> None:
    parser = trial_options(__doc__, "docs/quorum-trials.json")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    record = RecordedResults(options.out, CASES)
    tried(chosen(CASES, options.only), partial(trial, options.jars.resolve(), record), options.jobs)


if __name__ == "__main__":
    main()
