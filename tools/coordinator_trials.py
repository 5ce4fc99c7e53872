"""python -m tools.coordinator_trials JARS [--only NAME,…] [--out docs/coordinator-trials.json]

Starts three real brokers with a replica of each of the three coordinator topics, stops the broker that is the
coordinator, and records whether the next one loads its own replica and what clients get from it: with
log.preallocate=true, where the active segment ends in zeros, and without. Then tries what an operator can do about it.

JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17, 3 GB of memory and 20 minutes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tools.trials.cluster import KAFKA
from tools.trials.recorded_results import trial_options
from tools.trials.replicas import BROKERS, Replicas

Result = dict[str, Any]
PARTITIONS = (
    *("__consumer_offsets-0", "__consumer_offsets-1", "__consumer_offsets-2", "__transaction_state-0"),
    *("__share_group_state-0", "orders-0", "users-0"),
)
"""Partitions that are examined. In __consumer_offsets, the share group is in the first, the consumer group in the
second, and no group in the third."""
SETTINGS = "log.preallocate={}\noffsets.topic.num.partitions=3\n"
ELECTION_SECONDS = 15
TELLING = re.compile(
    r"(Failed to load metadata|Finished loading of metadata|Error loading transactions|Finished loading \d+ trans)"
    r".*__\w+-\d|ERROR .*[Cc]lean|Exception: Record size 0"
)
"""Matches log lines about loading a coordinator, with the exceptions thrown, and errors of the log cleaner."""
CLIENTS = Path(__file__).parent / "trials" / "Coordinators.java"


class Lab:
    """Brokers and their clients, for one trial."""

    def __init__(self, cluster: Replicas) -> None:
        self.cluster = cluster
        self.seen: dict[str, int] = {}
        """Number of lines of each broker's log that have been examined."""
        command = ["java", "-Xmx300m", "-cp", f"{cluster.jars}/*", str(CLIENTS), cluster.bootstrap]
        self.errors = (cluster.work / "clients.log").open("w")
        pipe = subprocess.PIPE
        self.clients = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True)

    def close(self) -> None:
        self.clients.kill()
        self.clients.wait()
        self.errors.close()

    def say(self, word: str) -> Result:
        """Send a command to the clients and return their answer."""
        assert self.clients.stdin is not None
        assert self.clients.stdout is not None
        self.clients.stdin.write(word + "\n")
        self.clients.stdin.flush()
        line = self.clients.stdout.readline()
        if not line:
            raise RuntimeError(f"the clients ended at {word}:\n" + (self.cluster.work / "clients.log").read_text())
        return dict(json.loads(line))

    def loading(self) -> dict[str, list[str]]:
        """Return what each running broker has logged about loading since the last call, without durations."""
        found = {}
        for role in BROKERS:
            if self.cluster.ended(role):
                continue
            lines = self.cluster.log(role)
            loaded = [
                re.sub(r" in \d+ ?m.*", "", line)[:300]
                for line in lines[self.seen.get(role, 0) :]
                if TELLING.search(line)
            ]
            self.seen[role] = len(lines)
            if loaded:
                found[role] = list(dict.fromkeys(loaded))
        return found

    def disks(self) -> Result:
        """Return the last segment of each partition on the running brokers, and what kdump verify reports about them.
        `severity`: of the zeros at its end; `cleaned`: the offset up to which the cleaner has cleaned topic users."""
        found: Result = {}
        for role in BROKERS:
            root = self.cluster.dirs[role][0]
            if self.cluster.ended(role):
                continue
            command = [sys.executable, "-m", "kdump", "verify", "--json", str(root)]
            lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
            reported = [each for each in map(json.loads, lines) if "code" in each]
            partitions = {}
            for name in PARTITIONS:
                logs = sorted((root / name).glob("0*.log"))
                zeros = [
                    each
                    for each in reported
                    if each["code"] == "zero-padding" and Path(each["file"]).parent.name == name
                ]
                partitions[name] = {
                    "segments": len(logs),
                    "bytes": logs[-1].stat().st_size,
                    "zeros": sum(each["size"] for each in zeros),
                    "severity": zeros[0]["severity"] if zeros else None,
                }
            cleaned = re.search(r"^users 0 (\d+)$", (root / "cleaner-offset-checkpoint").read_text(), re.MULTILINE)
            found[role] = {
                "partitions": partitions,
                "findings": sorted({f"{each['severity']} {each['code']}" for each in reported}),
                "cleaned": int(cleaned[1]) if cleaned else None,
            }
        return found

    def start(self, role: str) -> None:
        self.seen.pop(role, None)
        self.cluster.start(role)
        self.cluster.wait(role)

    def do(self, step: str) -> Result:
        """Run one step of a case and return its name and results."""
        word, _, node = step.partition(" ")
        role, found = f"broker-{node}", {}
        if word == "kill":
            self.cluster.kill(role)
            time.sleep(ELECTION_SECONDS)
        elif word == "stop":
            self.cluster.stop(role)
            time.sleep(ELECTION_SECONDS)
        elif word == "start":
            self.start(role)
        elif word == "restart":
            self.cluster.stop(role)
            self.start(role)
        elif word == "set":
            self.cluster.settings = SETTINGS.format(node)
        elif word == "elect":
            self.cluster.elect()
            time.sleep(ELECTION_SECONDS)
        elif word == "look":
            found["disks"] = self.disks()
        else:
            found["clients"] = self.say(word)
            found["log"] = self.loading()
        return {"step": step} | found


class Case(NamedTuple):
    """Trial: its description, the brokers' log.preallocate, and the steps."""

    name: str
    what: str
    preallocate: bool
    steps: tuple[str, ...]


CASES = (
    Case(
        "plain-killed",
        "log.preallocate=false; the coordinator is killed with -9",
        False,
        ("prepare", "look", "kill 1", "ask", "end"),
    ),
    Case(
        "preallocated-killed",
        "log.preallocate=true; the coordinator is killed with -9; later it is started again, and is elected",
        True,
        ("prepare", "look", "kill 1", "ask", "end", "look", "start 1", "elect", "ask", "look"),
    ),
    Case(
        "preallocated-stopped",
        "log.preallocate=true; the coordinator is shut down cleanly; then all brokers are restarted, one after "
        "another, with log.preallocate=false",
        True,
        ("prepare", "stop 1", "ask", "set false", "start 1", "restart 2", "restart 3", "elect", "ask", "end", "look"),
    ),
    Case(
        "preallocated-rolled",
        "log.preallocate=true; preallocate=false is set on the topics and their segments are rolled, with no restart; "
        "then the coordinator is killed with -9",
        True,
        ("prepare", "roll", "look", "kill 1", "ask", "end"),
    ),
    Case(
        "preallocated-restarted",
        "log.preallocate=true; both other brokers are restarted, one after another, before the coordinator is killed "
        "with -9",
        True,
        ("prepare", "restart 2", "restart 3", "look", "kill 1", "ask", "end"),
    ),
)


def run(jars: Path, case: Case) -> Result:
    with tempfile.TemporaryDirectory() as name:
        settings = SETTINGS.format(str(case.preallocate).lower())
        with Replicas(jars, Path(name), settings) as cluster:
            cluster.wait(*BROKERS)
            lab = Lab(cluster)
            try:
                steps = [lab.do(step) for step in case.steps]
            finally:
                lab.close()
    return {"name": case.name, "what": case.what, "kafka": KAFKA, "preallocate": case.preallocate, "steps": steps}


def main() -> None:
    parser = trial_options(__doc__, "docs/coordinator-trials.json")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    results: dict[str, Result] = {}
    if only and options.out.exists():
        results = {result["name"]: result for result in json.loads(options.out.read_text())}
    for case in CASES:
        if not only or case.name in only:
            print(case.name, file=sys.stderr)
            results[case.name] = run(options.jars.resolve(), case)
            ordered = [results[each.name] for each in CASES if each.name in results]
            options.out.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
