"""python -m tools.at_work JARS [--minutes 3 | --rounds N] [--out build/at-work.json] [--seed 1]
python -m tools.at_work TEST_JARS --tiered --every 60 --steady --minutes 60

Runs a Kafka broker whose disk changes all the time (small segments, retention of seconds, compaction, transactions,
topics that are created and deleted), shuts it down or kills it every few seconds and starts it again, and runs every
command of kdump over its log directories in turn. A healthy disk has no errors, whatever the broker does to it during a
run, but for one that is true: a transaction that hangs because a shutdown skipped its markers (broker.log: "likely
deleted already"). A round is a run of every command, several at a time; scan, which starts a JVM, is run in one round
of 25. Exits with 1 after an error finding, an exit status of 2 or a traceback, or if `kdump verify` finds an error
after the broker has been stopped. JARS is a directory with the jars listed in tools/kafka-jars.xml. Needs Java 17.

With --tiered (jars of tools/kafka-test-jars.xml), the broker copies its topics to LocalTieredStorage, and deletes them
there after a minute, and the commands with --remote are run: a finding of any severity, or something that doctor
says is to be done, is a failure. With --steady, the broker is not stopped; with --every N, a round begins each N
seconds, and its commands run one after the other."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random

from tools.trials.working import Working, commands, remote_commands

TIMEOUT = 240
"""Timeout of a single command in seconds."""
AT_A_TIME = 4
"""Number of commands that run in parallel."""
SCANNED = 25
"""Number of rounds in which `scan` is run once."""
SHOWN = 2000
"""Number of characters of a failed command's output that are kept."""


@dataclass
class Count:
    """Counts of the runs of one command."""

    runs: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    errors: int = 0
    tracebacks: int = 0
    notes: int = 0
    """Lines on stderr about files that were deleted or kept changing."""
    seconds: float = 0.0

    @property
    def failures(self) -> int:
        """Number of runs that exited with 2 or more, tracebacks and error findings."""
        return (
            self.errors + self.tracebacks + self.statuses[2] + sum(n for code, n in self.statuses.items() if code > 2)
        )


ERRORS = ('"severity":"error"',)
ANY = ('"severity":"error"', '"severity":"warning"', '"type":"doctorItem"')
"""What lines have that count as failures: without and with remote storage."""
TRUE = ("directory-stray",)
"""Warnings that are true of a broker at work: it deletes a topic's directory after a delay."""
GONE = re.compile(r"^note: \S+: deleted during this run.*\n(?: .*\n)*", re.MULTILINE)
HANGS = '"code":"transaction-hanging"'


def findings(text: str, wanted: tuple[str, ...], broker: Working) -> list[str]:
    """Return the lines of findings in JSON Lines, without those that are known to be true."""
    lines = [line for line in text.splitlines() if any(part in line for part in wanted)]
    broker.note_skipped()
    true = [*(f'"code":"{code}"' for code in TRUE), *(f"{HANGS}[^\n]*{re.escape(name)}\\b" for name in broker.skipped)]
    return [line for line in lines if not any(re.search(pattern, line) for pattern in true)]


def run(
    name: str,
    arguments: list[str],
    count: Count,
    failures: list[dict[str, object]],
    broker: Working,
    wanted: tuple[str, ...] = ERRORS,
) -> None:
    """Run a command once and count the result. Adds an object to `failures` if it fails."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kdump", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as expired:
        status, out, err = 124, "", f"timed out after {expired.timeout} s"
    count.runs += 1
    count.seconds += time.monotonic() - began
    count.statuses[status] += 1
    lines = findings(out, wanted, broker)
    errors = len(lines) or int(status == 1 and arguments[0] in ("verify", "scan"))
    count.errors += errors
    traceback = "Traceback (most recent call last)" in err + out
    count.tracebacks += traceback
    count.notes += err.count("went away while this ran") + err.count("kept changing while this ran")
    if errors or traceback or status not in (0, 1):
        failures.append(
            {
                "at": int(time.time() * 1000),
                "command": name,
                "arguments": arguments,
                "status": status,
                "errors": lines[:10],
                "stderr": err[-SHOWN:],
                "stdout": "" if lines else GONE.sub("", out)[-SHOWN:],
            }
        )


def table(counts: dict[str, Count]) -> str:
    """Return a table with one row per command."""
    titles = ("runs", "exit 0", "exit 1", "exit 2", "other", "errors", "traces", "notes")
    lines = [f"{'command':<28}" + "".join(f"{title:>8}" for title in titles)]
    for name, count in counts.items():
        known = [count.statuses[status] for status in (0, 1, 2)]
        cells = [count.runs, *known, count.runs - sum(known), count.errors, count.tracebacks, count.notes]
        lines.append(f"{name:<28}" + "".join(f"{cell:>8}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--rounds", type=int, help="instead of minutes")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tiered", action="store_true")
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("--every", type=float, default=0)
    parser.add_argument("--only", default="", help="names of commands, separated by commas")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="at-work-"))
    counts: dict[str, Count] = {}
    failures: list[dict[str, object]] = []
    rounds = 0
    only = set(filter(None, options.only.split(",")))
    wanted, since = ANY if options.tiered else ERRORS, time.monotonic()

    def keep() -> None:
        if options.out is not None:
            minutes = round((time.monotonic() - since) / 60, 1)
            result = {"rounds": rounds, "minutes": minutes, "table": table(counts).splitlines(), "failures": failures}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(result, indent=1) + "\n")

    try:
        with Working(options.jars.resolve(), work, options.seed, tiered=options.tiered) as broker:
            ends = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                going = (
                    pool.submit(ends.wait)
                    if options.steady
                    else pool.submit(broker.come_and_go, ends, Random(options.seed))
                )
                try:
                    until = inf if options.rounds else time.monotonic() + options.minutes * 60
                    while time.monotonic() < until and rounds != options.rounds and not going.done():
                        rounds += 1
                        began = time.monotonic()
                        given = (
                            remote_commands(broker.log_dirs, broker.tier)
                            if options.tiered
                            else commands(broker.log_dirs, work / f"out-{rounds}")
                        )
                        chosen = [
                            (name, arguments, counts.setdefault(name, Count()), failures, broker, wanted)
                            for name, arguments in given
                            if not only or re.split("[ ,]", name)[0] in only
                            if name != "scan" or rounds % SCANNED == 1
                        ]
                        with ThreadPoolExecutor(1 if options.every else AT_A_TIME) as at_once:
                            list(at_once.map(lambda case: run(*case), chosen))
                        shutil.rmtree(work / f"out-{rounds}", ignore_errors=True)
                        if options.steady:
                            broker.is_working()
                        keep()
                        time.sleep(max(0, began + options.every - time.monotonic()))
                finally:
                    ends.set()
                going.result()
            broker.is_working()
            broker.stop()
        stopped = Count()
        run("verify, stopped", ["verify", "--json", *map(str, broker.log_dirs)], stopped, failures, broker)
        counts["verify, stopped"] = stopped
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = table(counts)
    print(text)
    failed = sum(count.failures for count in counts.values()) + stopped.statuses[1]
    for failure in failures[:20]:
        print(json.dumps(failure, indent=1))
    runs, ends_of_broker = sum(count.runs for count in counts.values()), Counter(broker.ways)
    stops = f"{ends_of_broker['stop']} clean stops and {ends_of_broker['kill']} kills of the broker"
    print(f"{runs} runs in {rounds} rounds, with {stops}: {failed} failures")
    keep()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main()
