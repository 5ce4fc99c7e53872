"""python -m tools.incident_trials JARS DISKS [--only NAME,…] [--out docs/incident-trials.json]

Makes incidents on the disks of a real broker, takes the first action of the item that `kdump doctor` prints for each,
does it as printed, starts the broker, reads the partition, stops the broker and runs doctor again: the item must be
gone, and nothing else lost.

JARS is a directory with the jars listed in tools/kafka-jars.xml. DISKS contains kafka-4.3. Needs Java 17 and a minute
an incident.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tools.incident import damaged_bytes, producers
from tools.incident.disk import ORDERS, PAYMENTS, USERS, ZERO, Disk
from tools.trials.cluster import KAFKA, Cluster
from tools.trials.recorded_results import RecordedResults, chosen, trial_options
from tools.trials.wording import ranges

NEW = "NEW-DIRECTORY"
STOP_SECONDS = 60
Result = dict[str, Any]
NOW = ("--now", "2026-11-21T09:00Z")


def kdump(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "kdump", *words], capture_output=True, text=True, check=False)
    return done.stdout


def items(root: Path) -> list[Result]:
    """Return the items of doctor, in the order of its page."""
    rows = map(json.loads, kdump("doctor", "--json", str(root), *NOW).splitlines())
    found = [row for row in rows if row["type"] == "doctorItem"]
    return sorted(found, key=lambda row: int(row["priority"]))


class Operator:
    """Does what an action says, in a copy of the broker's log directory."""

    def __init__(self, work: Path, root: Path, cluster: Cluster | None = None) -> None:
        self.work, self.root, self.cluster = work, root, cluster

    def words(self, action: str, pattern: str) -> re.Match[str]:
        match = re.search(pattern, action)
        if match is None:
            raise SystemExit(f"the action is another one now: {action}")
        return match

    def replace(self, action: str) -> str:
        """Run the salvage of an action, and put its output in place of the partition's directory."""
        match = self.words(
            action, r"(?:in place of (\S+) while|up and save).*?(kdump salvage (\S+) (?:--\S+ )*--out) NEW"
        )
        out = self.work / "new"
        kdump(*match[2].split()[1:], str(out))
        place = Path(match[3])
        place.rename(self.work / f"old-{place.name}")
        shutil.copytree(out / place.name, place)
        return f"{match[2]} {NEW}, whose {place.name} takes the place of the old one"

    def copy(self, action: str) -> str:
        """Copy a directory elsewhere."""
        match = self.words(action, r"(?i)copy (\S+) (?:elsewhere )?before you start the broker")
        shutil.copytree(match[1], self.work / "elsewhere")
        return "the partition's directory is copied"

    def nothing(self, action: str) -> str:
        self.words(action, "Do nothing")
        return "nothing"

    def reindex(self, action: str) -> str:
        """Put the indexes that reindex writes in place."""
        match = self.words(action, r"(kdump reindex (\S+) --out) NEW")
        out = self.work / "indexes"
        kdump(*match[1].split()[1:], str(out))
        for path in out.rglob("*index"):
            shutil.copy(path, Path(match[2]) / path.name)
        return f"{match[1]} {NEW}, whose files take the place of the old ones"

    def restore(self, action: str) -> str:
        """Put the directory back, which was found in a backup."""
        self.words(action, r"(?i)look for the directory|where the directory is")
        shutil.copytree(self.work / "backup", self.root / ORDERS)
        return "the directory is found in a backup, and put back"

    def abort(self, action: str) -> str:
        """Confirm that a transaction hangs, and abort it, on the running cluster."""
        assert self.cluster is not None
        self.words(action, r"kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging --topic (\S+)")
        out, _ = self.cluster.tool("TransactionsCommand", "find-hanging", "--topic", PAYMENTS.rpartition("-")[0])
        found = "hangs" if re.search(r"^payments\s+0\s", out, re.M) else "is not listed"
        start = self.words(self.actions[1], r"--start-offset (\d+)")[1]
        where = ("--topic", "payments", "--partition", "0", "--start-offset", start)
        self.cluster.tool("TransactionsCommand", "abort", *where)
        return f"find-hanging: it {found}; abort --start-offset {start}"

    actions: list[str] = []


class Incident(NamedTuple):
    """An incident. `damage`: makes it on the broker's disk; `code`: of doctor's item; `act`: does its first action;
    `is_running`: on the running cluster; `partition`: that is read afterwards."""

    name: str
    code: str
    damage: Callable[[Disk], object]
    act: Callable[[Operator, str], str]
    partition: str = ORDERS
    is_running: bool = False


def index_gone(disk: Disk) -> None:
    """The .index of the first of two segments is gone, and the broker was shut down cleanly."""
    disk.file(f"{USERS}/{ZERO}.index").unlink()


def index_gone_unclean(disk: Disk) -> None:
    """The .index of a segment is gone, and the broker was killed."""
    disk.file(f"{ORDERS}/{ZERO}.index").unlink()
    disk.crashed(ORDERS, 0)


def directory_gone(disk: Disk) -> None:
    """The directory of a partition with one replica is gone."""
    shutil.copytree(disk.file(ORDERS), disk.root.parent / "backup")
    shutil.rmtree(disk.file(ORDERS))


HANGS = producers.hanging_transaction
INCIDENTS = [
    Incident("torn-tail", "startup-loses", damaged_bytes.torn_tail, Operator.copy),
    Incident("flipped-bit", "crc-mismatch", damaged_bytes.flipped_bit_after_shutdown, Operator.replace),
    Incident("flipped-bit-unclean", "startup-loses", damaged_bytes.flipped_bit_before_recovery, Operator.replace),
    Incident("index-damaged", "index-mismatch", damaged_bytes.corrupt_index, Operator.reindex),
    Incident("index-gone", "index-missing", index_gone, Operator.reindex, USERS),
    Incident("index-gone-unclean", "index-missing", index_gone_unclean, Operator.nothing),
    Incident("directory-gone", "startup-missing", directory_gone, Operator.restore),
    Incident(
        "hanging-transaction", "transaction-hanging", producers.hanging_transaction, Operator.abort, PAYMENTS, True
    ),
]


def tried(incident: Incident, jars: Path, disks: Path) -> Result:
    """Return what happened."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        copy_disk = importlib.import_module("tests.damages").copy_disk
        controller, root = (copy_disk(disks / "kafka-4.3" / f"clean-{node}", work / f"disk-{node}") for node in (0, 1))
        usual = {row["code"] for row in items(root)}
        incident.damage(Disk(root))
        before = items(root)
        mine = [row for row in before if row["code"] == incident.code and row["partition"] is not None]
        mine = [row for row in mine if f"{row['topic']}-{row['partition']}" == incident.partition]
        item = mine[0]
        others = [row["code"] for row in before[: before.index(item)] if row["code"] not in usual]
        action = item["actions"][0]
        result: Result = {"name": incident.name, "what": " ".join(str(incident.damage.__doc__).split()), "kafka": KAFKA}
        shown = action.replace(f"{work}/", "…/")
        result |= {"code": item["code"], "isFirst": not others, "action": shown}
        operator = Operator(work, root)
        operator.actions = item["actions"]
        if not incident.is_running:
            result["did"] = incident.act(operator, action).replace(f"{work}/", "…/")
        with Cluster(jars, work, controller, [root]) as cluster:
            result["broker"] = "starts" if cluster.started() else "exits"
            if incident.is_running:
                operator.cluster = cluster
                result["did"] = incident.act(operator, action)
            result["logEnd"] = cluster.ends().get(incident.partition)
            for key, committed in (("consumed", False), ("consumedCommitted", True)):
                reading = cluster.consume(incident.partition, committed=committed)
                result[key] = ranges(sorted(set(reading.offsets)))
                result |= {f"{key}Log": reading.lines[:2]} if reading.lines else {}
            cluster.processes["broker"].terminate()
            cluster.processes["broker"].wait(STOP_SECONDS)
        codes = {row["code"] for row in items(root) if f"{row['topic']}-{row['partition']}" == incident.partition}
        return result | {"left": sorted(codes - usual)}


def main() -> None:
    parser = trial_options(__doc__, "docs/incident-trials.json")
    parser.add_argument("disks", type=Path)
    options = parser.parse_args()
    results = RecordedResults(options.out, INCIDENTS)
    for incident in chosen(INCIDENTS, options.only):
        print(incident.name, file=sys.stderr)
        results.keep(incident.name, [tried(incident, options.jars.resolve(), options.disks.resolve())])


if __name__ == "__main__":
    main()
