"""python -m tools.fleet_trial JARS [--keep DIR]

Starts a controller and three brokers, in which a replica diverges by an unclean leader election, a transaction hangs
and a group is behind; bundles the log directory of each broker while it runs and is written to; and scans the bundles
alone on a standalone Spark cluster of two workers. Exits with 1 unless SQL finds the three. Prints the queries and
their output, as docs/spark.md has them.

The network between brokers 1 and 2 is cut when broker 1 comes back after broker 2 was elected without its last entries:
so it cannot truncate them, and both brokers run with logs that differ.

JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17, 4 GB of memory and 3 minutes."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.trials.cluster import free_port
from tools.trials.proxy import Proxy
from tools.trials.replicas import BROKERS, Replicas
from tools.trials.spark_cluster import SETTINGS, spark_cluster

CLIENTS = Path(__file__).parent / "trials" / "FleetClients.java"
BROKER_SETTINGS = "offsets.topic.num.partitions=3\nlog.segment.bytes=1048576\nreplica.lag.time.max.ms=3000\n"
WAIT_SECONDS = 90
LOAD_SECONDS = 20
"""Seconds of load before the brokers are bundled: what has been open or unread for longer is not at work."""
BEFORE, CUT_OFF, AFTER = 50, 20, 15
"""Entries of ledger that both replicas have, and those that only the old or only the new leader has."""
BEHIND = 6 * 100
"""Sum of the offsets that the group billing has committed."""
TIMEOUT = 1200

DIFFERENCES = """
select topic, partition, firstOffset, brokers, records, lost, leaderEpochs from replica_differences
where kind = 'diverged'
"""
HANGING = """
select topic, partition, firstOffset, records, transactionalId, coordinatorState, count(distinct source) as replicas
from open_transactions where time < (select max(maxTime) from batches) - interval 15 seconds group by all
"""
LAG = """
select groupId, sum(lag) as lag, sum(offset) as committed, max(commitTime) as lastCommit from group_lag
where commitTime < (select max(maxTime) from batches) - interval 15 seconds group by 1 having lag > 0
"""
UNREPLICATED = """
select leader, isr, replicas, count(*) as partitions from partitions where state = 'live' and broker = '3'
group by all order by partitions desc
"""


class Fleet(Replicas):
    """A controller, and three brokers, of which the others reach the second through a proxy."""

    def __init__(self, jars: Path, work: Path) -> None:
        super().__init__(jars, work, BROKER_SETTINGS)
        self.internal = {role: free_port() for role in BROKERS}
        self.proxy = Proxy(self.internal[BROKERS[1]])

    def configure(self, role: str) -> None:
        super().configure(role)
        if role not in BROKERS:
            return
        path = self.work / f"{role}.properties"
        clients, own = f"PLAINTEXT://127.0.0.1:{self.ports[role]}", self.internal[role]
        seen = self.proxy.port if role == BROKERS[1] else own
        lines = (
            f"listeners={clients},INTERNAL://127.0.0.1:{own}",
            f"advertised.listeners={clients},INTERNAL://127.0.0.1:{seen}",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name=INTERNAL",
        )
        kept = [line for line in path.read_text().splitlines() if not line.startswith(("listeners=", "inter.broker."))]
        path.write_text("\n".join((*kept, *lines)) + "\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.proxy.close()


class Clients:
    """The clients of one or more brokers."""

    def __init__(self, cluster: Fleet, *roles: str) -> None:
        addresses = ",".join(f"127.0.0.1:{cluster.ports[role]}" for role in roles)
        self.log = cluster.work / f"clients-{'-'.join(roles)}.log"
        command = ["java", "-Xmx300m", "-cp", f"{cluster.jars}/*", str(CLIENTS), addresses]
        with self.log.open("w") as errors:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True)

    def say(self, words: str) -> str:
        """Send a line, and return the answer. Raises RuntimeError if the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"the clients ended at {words}:\n{self.log.read_text()[-3000:]}")
        return answer

    def wait_for(self, words: str, wanted: Callable[[str], bool]) -> None:
        """Ask until the answer is as wanted. Raises RuntimeError after WAIT_SECONDS."""
        until = time.monotonic() + WAIT_SECONDS
        while not wanted(answer := self.say(words)):
            if time.monotonic() > until:
                raise RuntimeError(f"{words}: still {answer} after {WAIT_SECONDS} s")
            time.sleep(1)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def clients(cluster: Fleet, *roles: str) -> Iterator[Clients]:
    started = Clients(cluster, *roles)
    try:
        yield started
    finally:
        started.end()


def kdump(*arguments: str) -> str:
    """Run a command, and return its output. Raises RuntimeError if it exits with 2 or writes a traceback."""
    command = [sys.executable, "-m", "kdump", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(f"kdump {' '.join(arguments)} exits with {done.returncode}:\n{done.stderr}{done.stdout}")
    if done.stderr:
        print(done.stderr, end="", file=sys.stderr)
    return done.stdout


def bundle_while_running(jars: Path, work: Path, bundles: Path) -> tuple[int, int]:
    """Run the cluster until each broker's log directory is bundled. Returns the sum of the log end offsets of orders,
    before and after."""
    with Fleet(jars, work) as cluster, clients(cluster, *BROKERS[1:]) as others:
        cluster.wait(*BROKERS)
        step(f"prepare: ledger is {others.say('prepare')}")
        cluster.kill("broker-2")
        others.wait_for("leader", lambda answer: answer == "1 [1]")
        step(f"broker 2 is down: ledger is {others.say(f'ledger {BEFORE + 1} {BEFORE + CUT_OFF}')}")
        cluster.kill("broker-1")
        others.wait_for("leader", lambda answer: answer.startswith("-1 "))
        cluster.start("broker-2")
        cluster.wait("broker-2")
        others.wait_for("leader", lambda answer: answer.startswith("2 "))
        step(f"broker 1 is down, broker 2 is elected: ledger is {others.say(f'ledger 1001 {1000 + AFTER}')}")
        cluster.proxy.cut()
        cluster.start("broker-1")
        cluster.wait("broker-1")
        step("broker 1 is back, but does not reach broker 2")
        others.say("load")
        time.sleep(LOAD_SECONDS)
        start = int(others.say("ends"))
        for role in BROKERS:
            done = json.loads(kdump("bundle", str(cluster.dirs[role][0]), "--out", str(bundles / role), "--json"))
            step(f"bundled {role} while it ran: " + json.dumps(done))
        end = int(others.say("ends"))
        for role in BROKERS:
            if cluster.ended(role):
                raise RuntimeError(f"{role} has ended:\n" + "\n".join(cluster.log(role)[-30:]))
    for role in cluster.ports:
        shutil.rmtree(cluster.dirs[role][0])
    return start, end


def step(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr)


def ask(out: Path, sql: str, shown: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a query, and add it to what is shown."""
    shown += [sql.strip(), "", kdump("query", str(out), sql).rstrip(), ""]
    return [json.loads(line) for line in kdump("query", str(out), sql, "--json").splitlines()]


def expect(failures: list[str], about: str, found: object, wanted: object) -> None:
    if found != wanted:
        failures.append(f"{about}: {found}, expected {wanted}")


def examine(out: Path, start: int, end: int, shown: list[str]) -> list[str]:
    """Return what SQL has not found, or found otherwise."""
    failures: list[str] = []
    wanted: list[dict[str, Any]] = [
        {"topic": "ledger", "partition": 0, "firstOffset": BEFORE, "brokers": ["1", "2"]}
        | {"records": [min(CUT_OFF, AFTER)] * 2, "lost": CUT_OFF}
    ]
    differences = ask(out, DIFFERENCES, shown)
    epochs = [each.pop("leaderEpochs") for each in differences]
    expect(failures, "divergence", differences, wanted)
    expect(failures, "leader epochs", [first < second for first, second in epochs], [True])
    wanted = [
        {"topic": "payments", "partition": 0, "firstOffset": 10, "records": 3, "transactionalId": "tx-hang"}
        | {"coordinatorState": "Ongoing", "replicas": 3}
    ]
    expect(failures, "hanging transaction", ask(out, HANGING, shown), wanted)
    lag = ask(out, LAG, shown)
    expect(failures, "groups behind", [(each["groupId"], each["committed"]) for each in lag], [("billing", BEHIND)])
    if lag and not start <= int(lag[0]["lag"]) + BEHIND <= end:
        failures.append(f"lag: {lag[0]['lag']}, expected {start - BEHIND} to {end - BEHIND}")
    ask(out, UNREPLICATED, shown)
    return failures


def trial(jars: Path, work: Path) -> tuple[list[str], list[str]]:
    """Return the output to show, and the failures."""
    brokers, bundles, spark, out = (work / name for name in ("brokers", "bundles", "spark", "fleet"))
    for each in (brokers, bundles, spark):
        each.mkdir()
    start, end = bundle_while_running(jars, brokers, bundles)
    with spark_cluster(spark) as master:
        step(f"scan the bundles on {master}")
        summary = json.loads(kdump("scan", str(bundles), "--out", str(out), "--json", "--master", master, *SETTINGS))
    step(f"scanned in {summary['seconds']} s: {summary['partitions']} partitions, {summary['batches']} batches")
    shown: list[str] = []
    failures = examine(out, start, end, shown)
    expect(failures, "error findings", summary["findings"]["error"], 0)
    expect(failures, "not read", summary["unread"], [])
    expect(failures, "brokers", [each["broker"] for each in summary["brokers"]], ["1", "2", "3"])
    if failures:
        failures += [json.dumps(summary)]
    return shown, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--keep", type=Path, help="new directory for the bundles and the result, which are kept")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="fleet-trial-")) if options.keep is None else options.keep.resolve()
    work.mkdir(parents=True, exist_ok=options.keep is None)
    try:
        shown, failures = trial(options.jars.resolve(), work)
    finally:
        if options.keep is None:
            shutil.rmtree(work, ignore_errors=True)
    print("\n".join(shown))
    for failure in failures:
        print(f"FAILED {failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main()
