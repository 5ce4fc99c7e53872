"""python -m tools.incident_trials JARS DISKS [--only NAME,…] [--out docs/incident-trials.json]

Makes incidents on the disks of a real broker, takes the first action of the item that `kdump doctor` prints for each,
does it as printed, starts the broker, reads the partition, stops the broker and runs doctor again: the item must be
gone, no error left, and nothing else lost.

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
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kdump.log.log_directory import META
from tools.incident import damaged_bytes, groups, producers
from tools.incident.disk import CLUSTER, METADATA, ORDERS, PAYMENTS, USERS, ZERO, Disk
from tools.trials import startup_incidents as damage
from tools.trials.cluster import KAFKA, Cluster
from tools.trials.recorded_results import RecordedResults, chosen, trial_options
from tools.trials.wording import ranges

NEW = "NEW-DIRECTORY"
LEDGER = "ledger-0"
STOP_SECONDS = 60
FETCHING_SECONDS = 10
"""Time in s in which a follower has fetched everything."""
Result = dict[str, Any]
NOW = ("--now", "2026-11-21T09:00Z")


def kdump(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "kdump", *words], capture_output=True, text=True, check=False)
    return done.stdout


def items(*roots: Path, options: Sequence[str] = ()) -> list[Result]:
    """Return the items of doctor, in the order of its page."""
    rows = map(json.loads, kdump("doctor", "--json", *map(str, roots), *options).splitlines())
    found = [row for row in rows if row["type"] == "doctorItem"]
    return sorted(found, key=lambda row: int(row["priority"]))


class Operator:
    """Does what an action says, in a copy of the broker's log directory."""

    def __init__(self, work: Path, nodes: list[Path], actions: list[str]) -> None:
        self.work, self.nodes, self.actions = work, nodes, actions
        self.cluster: Cluster | None = None

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
        shutil.copytree(self.work / "backup", self.nodes[1] / ORDERS)
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

    def fetch_again(self, action: str) -> str:
        """Move the directory of a replica that does not lead away."""
        match = self.words(action, r"Once another broker is Leader .* move (\S+) out of log.dirs and start the broker")
        Path(match[1]).rename(self.work / "moved")
        return "broker 2 leads, and the directory is moved out of log.dirs of broker 1"

    def start(self, action: str) -> str:
        self.words(action, r"Start (the broker once another one that has them is Leader|Kafka 4\.3 or later)")
        return "the broker is started"

    def save(self, action: str) -> str:
        """Save what each replica has of its own, with the commands that kdump diff states."""
        match = self.words(action, r"kdump (diff [^;:]*?) states")
        commands = re.findall(r"^ +kdump (inspect .*) > (\S+)$", kdump(*match[1].split()), re.M)
        saved = {name: kdump(*words.split()).count('"type":"record"') for words, name in commands}
        return f"kdump {match[1]}, and its commands, which save " + " and ".join(
            f"{count} records" for count in saved.values()
        )

    def set_offsets(self, action: str) -> str:
        """Set a group's offsets, which is stopped."""
        assert self.cluster is not None
        match = self.words(
            action,
            r"kafka-consumer-groups.sh --bootstrap-server HOST:PORT (--group .*?) --dry-run, then again with --execute",
        )
        out = "".join(
            self.cluster.tool("consumer.group.ConsumerGroupCommand", *match[1].split(), last)[0]
            for last in ("--dry-run", "--execute")
        )
        found = re.findall(r"^tx-group\s+orders-none\s+0\s+(\d+)", out, re.M)
        return f"{match[1]}: --dry-run, and then --execute: the new offset is {' and '.join(found)}"

    def move_out(self, action: str) -> str:
        """Move a file or directory out of the log directory."""
        match = self.words(action, r"[Mm]ove (\S+) out of the (?:log )?directory")
        Path(match[1]).rename(self.work / "moved")
        return f"{match[1]} is moved out"

    def put_back(self, action: str) -> str:
        """Put the directory back, which was found in a backup, in place of what is there."""
        (self.nodes[1] / ORDERS).rename(self.work / "moved")
        return self.restore(action)

    def delete(self, action: str) -> str:
        """Delete one or two files."""
        match = self.words(action, r"Delete (\S+?)(?: and (\S+?))?[: ]")
        for name in filter(None, match.groups()):
            Path(name).unlink()
        return "deleted: " + " and ".join(filter(None, match.groups()))

    def write_meta(self, action: str) -> str:
        """Write meta.properties with the IDs that kdump cluster shows."""
        match = self.words(action, r"Write (\S+) again: version=1, .* kdump (cluster \S+ --show=brokers) the other IDs")
        out = kdump(*match[2].split())
        cluster = re.findall(r"(?m)^cluster.id=(\S+)", (self.nodes[0] / META).read_text())[0]
        node, directory = self.words(out, r"(?m)^ +(1) .* (\S+)$").groups()
        Path(match[1]).write_text(f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory}\n")
        return f"kdump {match[2]}, and {match[1]} is written with cluster.id={cluster} and directory.id={directory}"

    def write_topic_id(self, action: str) -> str:
        """Write partition.metadata with the topic ID that kdump cluster shows."""
        match = self.words(action, r"Write (\S+) again, .* kdump (cluster \S+ --topic (\S+)) shows the ID")
        topic_id = self.words(kdump(*match[2].split()), rf"(?m)^{match[3]} +(\S{{22}}) ")[1]
        Path(match[1]).write_text(f"version: 0\ntopic_id: {topic_id}")
        return f"kdump {match[2]}, and {match[1]} is written with topic_id: {topic_id}"

    def write_own_id(self, action: str) -> str:
        """Write partition.metadata with the topic ID that is printed."""
        match = self.words(action, r"write the lines 'version: 0' and '(topic_id: \S+)' to its partition.metadata")
        (self.nodes[1] / ORDERS / "partition.metadata").write_text(f"version: 0\n{match[1]}")
        return f"the lines are written: {match[1]}"

    def correct_cluster_id(self, action: str) -> str:
        """Correct the cluster ID of a broker."""
        match = self.words(action, r"set cluster.id=(\S+), which its controller has, in (\S+)")
        path = Path(match[2])
        path.write_text(re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={match[1]}", path.read_text()))
        return f"cluster.id={match[1]} is set in {path}"

    def rescue(self, action: str) -> str:
        """Rebuild the metadata, and put it in place as the report of rescue shows."""
        match = self.words(action, r"(kdump rescue (?:\S+ )+--out) NEW")
        report = kdump(*match[1].split()[1:], str(self.work / "rescued"))
        copies = re.findall(r"cp -a (\S+/controller-0/\.) LOG_DIR/", report)
        shutil.copytree(copies[0], self.nodes[0], dirs_exist_ok=True)
        return f"{match[1]} {NEW}, and cp -a {NEW}/controller-0/. in place of the controller's log directory"


class Incident(NamedTuple):
    """An incident. `damage`: makes it on the disk of broker 1; `code`: of doctor's item; `act`: does its first action;
    `partition`: that the item is about, and that is read afterwards; `is_running`: the action is done on the running
    cluster; `given`: the nodes whose disks doctor gets, 0 is the controller; `release`: that is to be started, if it is
    another one than that of the disk; `first`: the broker that is started first; `is_of_partition`: whether the item is
    about the partition alone."""

    name: str
    code: str
    damage: Callable[[Disk], object]
    act: Callable[[Operator, str], str]
    partition: str = ORDERS
    is_running: bool = False
    given: tuple[int, ...] = (1,)
    release: str = ""
    first: int = 1
    is_of_partition: bool = True


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


def flipped_bit_of_replica(disk: Disk) -> None:
    """A bit flipped in ledger-0 of broker 1, which is a follower; the replica of broker 2 is intact."""
    same_replica(disk)
    disk.flip(disk.log(LEDGER), disk.batches(LEDGER)[0][0] + 90)


def flipped_bit_of_replica_unclean(disk: Disk) -> None:
    """A bit flipped in ledger-0 of broker 1, which is a follower and was killed; the replica of broker 2 is intact."""
    flipped_bit_of_replica(disk)
    disk.crashed(LEDGER, 0)


def same_replica(disk: Disk) -> None:
    """Make the replica of broker 1 the same as that of broker 2."""
    shutil.rmtree(disk.file(LEDGER))
    shutil.copytree(disk.root.parent / "disk-2" / LEDGER, disk.file(LEDGER))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        disk.checkpoint(name, LEDGER, disk.end(LEDGER))


def diverged_replicas(disk: Disk) -> None:
    """Nothing is changed: after an unclean leader election, the replicas of ledger-0 differ from offset 50 on."""


def other_cluster_id(disk: Disk) -> None:
    """The meta.properties of the broker has another cluster.id than that of its controller and its topics."""
    path = disk.file(META)
    path.write_text(path.read_text().replace(CLUSTER, "q0eGNDWzT3mZ8kZ6sXn1Lw"))


def lost_controller(disk: Disk) -> None:
    """The disk of the only controller is a new one: it has meta.properties, as kafka-storage.sh format writes it."""
    shutil.rmtree(disk.root.parent / "disk-0" / METADATA)


def downgrade(disk: Disk) -> None:
    """Nothing is changed: the metadata.version is 4.3-IV0, and the broker is started with Kafka 3.9.1."""


INCIDENTS = [
    Incident("torn-tail", "startup-loses", damaged_bytes.torn_tail, Operator.copy),
    Incident("flipped-bit", "crc-mismatch", damaged_bytes.flipped_bit_after_shutdown, Operator.replace),
    Incident("flipped-bit-unclean", "startup-loses", damaged_bytes.flipped_bit_before_recovery, Operator.replace),
    Incident(
        "flipped-bit-replica", "crc-mismatch", flipped_bit_of_replica, Operator.fetch_again, LEDGER, given=(0, 1, 2)
    ),
    Incident(
        "flipped-bit-replica-unclean",
        "startup-loses",
        flipped_bit_of_replica_unclean,
        Operator.start,
        LEDGER,
        given=(0, 1, 2),
        first=2,
    ),
    Incident("index-damaged", "index-mismatch", damaged_bytes.corrupt_index, Operator.reindex),
    Incident("index-gone", "index-missing", index_gone, Operator.reindex, USERS),
    Incident("index-gone-unclean", "index-missing", index_gone_unclean, Operator.nothing),
    Incident("directory-gone", "startup-missing", directory_gone, Operator.restore),
    Incident(
        "diverged-replicas",
        "startup-order",
        diverged_replicas,
        Operator.save,
        LEDGER,
        given=(0, 1, 2),
        is_of_partition=False,
    ),
    Incident(
        "hanging-transaction", "transaction-hanging", producers.hanging_transaction, Operator.abort, PAYMENTS, True
    ),
    Incident("cleaner-stopped", "crc-mismatch", damaged_bytes.compaction_stopped, Operator.replace, USERS),
    Incident(
        "group-reset",
        "group-offsets-unusable",
        groups.offsets_reset,
        Operator.set_offsets,
        ORDERS,
        True,
        is_of_partition=False,
    ),
    Incident(
        "wrong-cluster-id",
        "startup-cluster-id-wrong",
        other_cluster_id,
        Operator.correct_cluster_id,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "lost-controller",
        "startup-controller-empty",
        lost_controller,
        Operator.rescue,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident("downgrade", "startup-stops", downgrade, Operator.start, release="3.9.1", is_of_partition=False),
    Incident("file-name", "startup-stops", damage.file_name, Operator.move_out, given=(0, 1), is_of_partition=False),
    Incident(
        "directory-name", "startup-stops", damage.directory_name, Operator.move_out, given=(0, 1), is_of_partition=False
    ),
    Incident(
        "directory-in-place",
        "startup-offline",
        damage.clean_mark_is_directory,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "checkpoint-directory",
        "startup-stops",
        damage.checkpoint_is_directory,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "checkpoint-unreadable",
        "startup-offline",
        damage.checkpoint_unreadable,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "checkpoint-unreadable-open-transaction",
        "startup-stops",
        damage.start_checkpoint_unreadable,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "epochs-unreadable",
        "startup-offline",
        damage.epochs_unreadable,
        Operator.delete,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "topic-id-unreadable",
        "startup-offline",
        damage.topic_id_unreadable,
        Operator.write_topic_id,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "topic-id-missing",
        "startup-stray",
        damage.topic_id_missing,
        Operator.write_own_id,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "txn-index-invalid",
        "startup-stops",
        damage.txn_index_invalid,
        Operator.delete,
        PAYMENTS,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "meta-missing", "startup-stops", damage.meta_missing, Operator.write_meta, given=(0, 1), is_of_partition=False
    ),
    Incident(
        "meta-empty", "startup-stops", damage.meta_unreadable, Operator.write_meta, given=(0, 1), is_of_partition=False
    ),
    Incident(
        "meta-without-cluster",
        "startup-stops",
        damage.meta_without_cluster,
        Operator.write_meta,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "quorum-state-empty",
        "startup-stops",
        damage.quorum_state_unreadable,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "bootstrap-damaged",
        "startup-stops",
        damage.bootstrap_unreadable,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "metadata-log-is-file",
        "startup-stops",
        damage.metadata_log_is_file,
        Operator.move_out,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "partition-is-file",
        "startup-missing",
        damage.partition_is_file,
        Operator.put_back,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident("index-not-sorted", "index-not-sorted", damage.index_not_sorted, Operator.reindex),
    Incident("time-index-not-sorted", "time-index-not-sorted", damage.time_index_not_sorted, Operator.reindex),
    Incident("time-index-mismatch", "time-index-mismatch", damage.time_index_mismatch, Operator.reindex),
]
DIVERGENCE = {"startup-order", "replicas-diverge"}
"""Codes of what is usual on these disks, and is an incident."""


def tried(incident: Incident, jars: Path, disks: Path) -> Result:
    """Return what happened."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        copy_disk = importlib.import_module("tests.damages").copy_disk
        nodes = [copy_disk(disks / "kafka-4.3" / f"clean-{node}", work / f"disk-{node}") for node in range(3)]
        given = [nodes[node] for node in incident.given]
        options = ("--kafka-version", incident.release) if incident.release else ()
        usual = {row["code"] for row in items(*given)} - DIVERGENCE
        incident.damage(Disk(nodes[1]))
        before = items(*given, options=(*NOW, *options))

        def mine(rows: list[Result]) -> list[Result]:
            """Return the items of the partition, or of the node."""
            key = incident.partition
            return [
                row
                for row in rows
                if (
                    f"{row['topic']}-{row['partition']}" == key
                    if incident.is_of_partition
                    else row["code"] not in usual
                )
            ]

        item = next(row for row in mine(before) if row["code"] == incident.code)
        others = [row["code"] for row in before[: before.index(item)] if row["code"] not in usual]
        action = item["actions"][0]
        result: Result = {"name": incident.name, "what": " ".join(str(incident.damage.__doc__).split()), "kafka": KAFKA}
        result |= {"code": item["code"], "isFirst": not others, "action": shown(action, work)}
        operator = Operator(work, nodes, item["actions"])
        if not incident.is_running:
            result["did"] = shown(incident.act(operator, action), work)
        others_disks = nodes[2:3] if 2 in incident.given else []
        with Cluster(
            jars, work, nodes[0], nodes[1:2], others=others_disks, others_first=incident.first == 2
        ) as cluster:
            result["broker"] = "starts" if cluster.started() else "exits"
            if incident.is_running:
                operator.cluster = cluster
                result["did"] = incident.act(operator, action)
            if 2 in incident.given:
                time.sleep(FETCHING_SECONDS)
            result["logEnd"] = cluster.ends().get(incident.partition)
            for key, committed in (("consumed", False), ("consumedCommitted", True)):
                reading = cluster.consume(incident.partition, committed=committed)
                result[key] = ranges(sorted(set(reading.offsets)))
                result |= {f"{key}Log": reading.lines[:2]} if reading.lines else {}
            cleaned = re.search(
                rf"^{incident.partition[:-2]} 0 (\d+)$", (nodes[1] / "cleaner-offset-checkpoint").read_text(), re.M
            )
            result |= {"cleanedTo": int(cleaned[1])} if cleaned else {}
            for role in [*cluster.ports][1:]:
                cluster.processes[role].terminate()
                cluster.processes[role].wait(STOP_SECONDS)
        after = mine(items(*given))
        left = {row["code"] for row in after if row["severity"] == "error" or row["code"] == incident.code}
        return result | {"left": sorted(left - usual)}


def shown(text: str, work: Path) -> str:
    return text.replace(f"{work}/", "…/")


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
