"""python -m tools.incident_trials JARS DISKS [--only NAME,…] [--out docs/incident-trials.json]

Makes incidents on the disks of a real broker, takes the first action of the item that `kdump doctor` prints for each,
or another one that the incident names, does it as printed, starts the broker, reads the partition, stops the broker and
runs doctor again: the item must be gone, no error left, and nothing else lost.

JARS is a directory with the jars listed in tools/kafka-jars.xml. DISKS contains kafka-4.3. Needs Java 17 and a minute
an incident."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kdump import restart_plan
from kdump.check.engine.units import units
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.incident.doctor.answer import page_order
from kdump.kafka.server_properties import ServerProperties, read_properties
from kdump.log.log_directory import META
from tools.incident import damaged_bytes, groups, producers
from tools.incident.disk import CLUSTER, METADATA, ORDERS, PAYMENTS, USERS, ZERO, Disk
from tools.trials import release_incidents as incidents
from tools.trials import startup_incidents as damage
from tools.trials.cluster import KAFKA, LEADING_SECONDS, Cluster, config_command
from tools.trials.node import USER, Node
from tools.trials.recorded_results import RecordedResults, chosen, trial_options
from tools.trials.release import ReleaseCluster, named
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
    return sorted(found, key=lambda row: page_order(row["priority"], row["severity"]))


class Operator:
    """Does what an action says, in a copy of the broker's log directory."""

    def __init__(self, work: Path, nodes: list[Path], actions: list[str], dirs: Sequence[Path], jars: Path) -> None:
        self.work, self.nodes, self.actions = work, nodes, actions
        self.dirs = [*dirs]
        """log.dirs of broker 1."""
        self.jars = jars
        self.cluster: Cluster | None = None

    def words(self, action: str, pattern: str) -> re.Match[str]:
        match = re.search(pattern, action)
        if match is None:
            raise SystemExit(f"the action is another one now: {action}")
        return match

    def replace(self, action: str) -> str:
        """Run the salvage of an action, and put its output in place of the partition's directory."""
        match = self.words(
            action,
            r"(?:in place of (\S+) while|up and save|save its valid|wrote it so)"
            r".*?(kdump salvage (\S+) (?:--\S+ )*--out) NEW",
        )
        out = self.work / "new"
        report = kdump(*match[2].split()[1:], str(out))
        place = Path(match[3])
        if "delete .kafka_cleanshutdown" in report:
            (place.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
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

    def commit(self, action: str) -> str:
        """Let the producer of a transaction, which had been stopped, commit another one in the partition."""
        assert self.cluster is not None
        self.words(action, r"Do not abort it.*Let its producer commit its next transaction in this partition")
        configs = f"bootstrap.servers=127.0.0.1:{self.cluster.ports['broker']}"
        words = ("--topic", "payments", "--num-records", "1", "--record-size", "8", "--throughput", "-1")
        sent = ("--transactional-id", "tx-b", "--transaction-duration-ms", "1", "--producer-props", configs)
        self.cluster.java_run("org.apache.kafka.tools.ProducerPerformance", *words, *sent)
        return "tx-b commits a transaction of one record in payments-0"

    def fetch_again(self, action: str) -> str:
        """Move the directory of a replica that does not lead away, while its broker is stopped, and start it."""
        assert self.cluster is not None
        pattern = r"Once another broker is Leader .*--describe (--topic \S+)\), move (\S+) out of log.dirs and start"
        match = self.words(action, pattern)
        where = ("--bootstrap-server", f"127.0.0.1:{self.cluster.ports['broker-2']}", "--describe", *match[1].split())
        out = self.cluster.java_run("org.apache.kafka.tools.TopicCommand", *where)
        self.words(out, r"Leader: 2\s.*Isr: 2\s+Elr:\s*(?:2\s*)?(?:N/A\s*)?LastKnownElr")
        Path(match[2]).rename(self.work / "moved")
        self.start_broker()
        return f"kafka-topics.sh --describe {match[1]}: Leader 2, Isr 2; {match[2]} is moved out of log.dirs"

    def start(self, action: str) -> str:
        self.words(
            action,
            r"(?i)Start (the broker(:| once another one that has them is Leader)|Kafka 4\.3 or later)",
        )
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
        match = self.words(action, r"[Mm]ove (\S+) (?:out of the (?:log )?directory|(?:of this node )?away)")
        (self.nodes[1] / match[1]).rename(self.work / "moved")
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

    def recover_last(self, action: str) -> str:
        """Delete the .index of the last segment of a partition, or of every segment and leader-epoch-checkpoint."""
        last = re.search(r"Back (\S+) up and delete the .index of the last segment", action)
        pattern = r"[Bb]ack (\S+) up, move leader-epoch-checkpoint away and delete the .index of every segment"
        place = Path((last or self.words(action, pattern))[1])
        shutil.copytree(place, self.work / "backed-up")
        gone = [max(place.glob("*.index"))] if last else [*place.glob("*.index"), place / "leader-epoch-checkpoint"]
        for path in gone:
            path.unlink()
        return f"{place} is copied; deleted: {' and '.join(sorted(path.name for path in gone))}"

    def write_version(self, action: str) -> str:
        """Write 0 as the version of a checkpoint."""
        path = Path(self.words(action, r"Write 0 as the first line of (\S+), as")[1])
        path.write_text("\n".join(["0", *path.read_text().splitlines()[1:], ""]))
        return f"the first line of {path} is 0"

    def check_and_move(self, action: str) -> str:
        """Check the logs, and move the file away, as the second action states."""
        match = self.words(self.actions[1], r"[Mm]ove (?:the file|(\S+recovery-point-offset-checkpoint)) (?:away|out)")
        found = re.findall(r'"severity":"error"[^}]*', kdump("verify", "--json", str(self.nodes[1])))
        (self.nodes[1] / "recovery-point-offset-checkpoint").rename(self.work / "moved")
        return f"kdump verify: {len(found)} errors; the file is moved away ({match[0]})"

    def restore_marker(self, action: str) -> str:
        """Put the partition back from a backup that has the marker."""
        self.words(action, "Look for a replica or a backup that has this transaction marker")
        (self.nodes[1] / PAYMENTS).rename(self.work / "moved")
        shutil.copytree(self.work / "backup", self.nodes[1] / PAYMENTS)
        return "the partition is found in a backup that has the marker, and put back"

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
        match = self.words(action, r"(?i)write the lines 'version: 0' and '(topic_id: \S+)' to its partition.metadata")
        (self.nodes[1] / ORDERS / "partition.metadata").write_text(f"version: 0\n{match[1]}")
        return f"the lines are written: {match[1]}"

    def out_of_log_dirs(self, action: str) -> str:
        """Take a directory out of log.dirs: it does not belong to the broker, or its disk is gone."""
        self.words(
            action,
            r"Check that \S+ belongs to this broker|or remove it from log.dirs|(?i:s)tart the broker with only one|"
            r"move the other out of (?:log.dirs|the log directory)",
        )
        (other,) = [path for path in self.dirs if path.name == "disk-1-second"]
        self.dirs.remove(other)
        return "the second directory is taken out of log.dirs"

    def move_other_out(self, action: str) -> str:
        """Move one of two directories of a partition away."""
        self.words(action, r"move the (?:one|other)")
        (place,) = self.nodes[1].parent.glob("disk-1-second/*-[0-9]")
        place.rename(self.work / "moved")
        return f"kdump diff shows that they are the same; {place} is moved out"

    def give_to_user(self, action: str) -> str:
        match = self.words(action, r"Give (\S+) to (\S+) \(chown -R\)")
        subprocess.run(["chown", "-R", match[2], match[1]], check=True)
        subprocess.run(["chmod", "-R", "u+rwX", match[1]], check=True)
        return f"chown -R {match[2]} {match[1]}"

    def let_enter(self, action: str) -> str:
        match = self.words(action, r"Let (\S+) enter (\S+) \(chmod \+x, for its group or for all\)")
        Path(match[2]).chmod(Path(match[2]).stat().st_mode | 0o111)
        return f"chmod +x {match[2]}"

    def set_node_id(self, action: str) -> str:
        match = self.words(action, r"set node.id=(\d+) in (\S+)")
        return damage.set_property(Path(match[2]), "node.id", match[1])

    def copy_checkpoint(self, action: str) -> str:
        """Put the newest metadata snapshot of the controller in place."""
        match = self.words(
            action, r"[Rr]eplace the file with the .checkpoint of the same name|Copy the latest .checkpoint"
        )
        newest = max((self.nodes[0] / METADATA).glob("*.checkpoint"))
        shutil.copy(newest, self.nodes[1] / METADATA / newest.name)
        return f"{newest.name} is copied from the controller ({match[0]})"

    def move_segment(self, action: str) -> str:
        """Move the segment that does not belong out, with its indexes."""
        self.words(action, r"move the .log that does not belong out of the directory, together with its indexes")
        place = self.nodes[1] / ORDERS
        (log,) = [path for path in place.glob("*.log") if path.stem != ZERO]
        for path in place.glob(f"{log.stem}.*"):
            path.rename(self.work / path.name)
        return f"{log.name} is moved out, with its indexes"

    def delete_mark(self, action: str) -> str:
        """Delete .kafka_cleanshutdown, as no log is damaged."""
        self.words(action, r"^Delete .kafka_cleanshutdown before the broker starts")
        (self.nodes[1] / ".kafka_cleanshutdown").unlink()
        return ".kafka_cleanshutdown is deleted"

    def raise_retention(self, action: str) -> str:
        """Raise retention.ms of the topic, on the running cluster."""
        assert self.cluster is not None
        match = self.words(
            ". ".join(self.actions), r"raise retention.ms: (kafka-configs.sh .*?--topic (\S+)) --add-config"
        )
        self.cluster.configure_topic(match[2], "retention.ms=315360000000")
        return f"{match[1]} --add-config retention.ms=315360000000"

    def skip(self, action: str) -> str:
        """Move a group past the batch, on the running cluster."""
        assert self.cluster is not None
        command = r"--group GROUP (--topic (\S+):0 --reset-offsets --to-offset (\d+)) --execute"
        match = self.words(". ".join(self.actions), command)
        group = ("--group", "app")
        self.cluster.tool("consumer.group.ConsumerGroupCommand", *group, *match[1].split(), "--execute")
        words = ("--topic", match[2], *group, "--timeout-ms", "10000", "--formatter-property", "print.offset=true")
        out, _ = self.cluster.tool("consumer.ConsoleConsumer", *words)
        offsets = sorted({int(offset) for offset in re.findall(r"^Offset:(\d+)", out, re.M)})
        return f"--group app {match[1]} --execute, after which it reads {ranges(offsets)}"

    def look(self, action: str) -> str:
        """Look at the producer, as the first action says, and keep the files that the second one names."""
        match = self.words(self.actions[0], r"kdump (inspect \S+ --producer-id \d+)")
        self.words(action, "Keep the .index and the producer snapshots")
        return f"kdump {match[1]}: {len(kdump(*match[1].split(), '--json').splitlines())} rows; the files are kept"

    def other_directory_id(self, action: str) -> str:
        """Set another directory.id in the second directory, which has partitions of its own."""
        match = self.words(action, r"set another directory.id in (\S+): the broker registers it")
        return damage.set_property(Path(match[1]), "directory.id", "SECONDpABlNgsHloSKd7mg")

    def compare_meta(self, action: str) -> str:
        """Write the directory.id that the metadata has."""
        match = self.words(action, r"kdump (cluster \S+ --show=brokers) shows the registered ones")
        directory = self.words(kdump(*match[1].split()), r"(?m)^ +1 .* (\S+)$")[1]
        done = damage.set_property(self.nodes[1] / META, "directory.id", directory)
        return f"kdump {match[1]}, and {done}"

    def mount(self, action: str) -> str:
        """Mount the file system again."""
        self.words(action, "Mount it read-write")
        subprocess.run(["mount", "-o", "remount,rw", self.nodes[1]], check=True)
        return "it is mounted read-write"

    def free(self, action: str) -> str:
        """Do the first step of kdump space."""
        self.words(action, r"Free some of it \(kdump space shows how\)")
        commands = re.findall(r"(?m)^ +(rm -r?f \S+)$", kdump("space", str(self.nodes[1])))
        for command in commands:
            subprocess.run(command, shell=True, check=True)
        return f"kdump space {self.nodes[1]}, and its commands: {'; '.join(commands)}"

    def start_again(self, action: str) -> str:
        """Start the broker that does not run."""
        number = self.words(action, r"Start broker (\d) again|Find out why broker (\d) does not follow: is it up")
        self.start_broker("broker" if "1" in number.groups() else "broker-2")
        return f"broker {number[1] or number[2]} is started"

    def start_broker(self, role: str = "broker") -> None:
        assert self.cluster is not None
        self.cluster.later = ()
        self.cluster.start_node(role)
        assert self.cluster.started()
        time.sleep(LEADING_SECONDS)

    def delete_config(self, action: str) -> str:
        """Delete a config while only the controller is up, and start the broker."""
        assert self.cluster is not None
        match = self.words(
            action, r"kafka-configs.sh --bootstrap-controller HOST:PORT (--alter .* --delete-config \S+);"
        )
        return self.configure_and_start(match[1])

    def configure_and_start(self, words: str) -> str:
        assert self.cluster is not None
        controller = ("--bootstrap-controller", f"127.0.0.1:{self.cluster.ports['controller']}")
        self.cluster.java_run(config_command(self.cluster.jars), *controller, *words.split())
        self.start_broker()
        return f"{words} on the controller; the broker is started"

    def compact(self, action: str) -> str:
        """Copy the partition, and compact it, on the running cluster."""
        assert self.cluster is not None
        match = self.words(action, r"Copy (\S+) elsewhere, while it has the records")
        shutil.copytree(match[1], self.work / "elsewhere")
        other = self.words(self.actions[1], r"--entity-name (\S+) --add-config (cleanup.policy=compact)")
        self.cluster.configure_topic(other[1], other[2])
        return f"{match[1]} is copied; --add-config {other[2]}"

    def correct_cluster_id(self, action: str) -> str:
        """Correct the cluster ID of a broker."""
        match = re.search(r"set cluster.id=(\S+), which its controller has, in (\S+)", action)
        if match is None:
            self.words(action, "correct cluster.id where it is wrong")
            return damage.set_property(self.nodes[1] / META, "cluster.id", CLUSTER)
        return damage.set_property(Path(match[2]), "cluster.id", match[1])

    def repair_metadata(self, action: str) -> str:
        """Copy the files of the repaired metadata log over the damaged ones."""
        pattern = r"copy its files over those of (\S+) while the node is stopped.*?(kdump salvage \S+ \S+ --out) NEW"
        match = self.words(action, pattern)
        out = self.work / "new"
        kdump(*match[2].split()[1:], str(out))
        for path in (out / METADATA).iterdir():
            shutil.copy(path, Path(match[1]) / path.name)
        return f"{match[2]} {NEW}, whose files are copied over those of {match[1]}"

    def copy_topic_id(self, action: str) -> str:
        """Copy partition.metadata from another replica."""
        self.words(action, f"opy partition.metadata from another replica of {LEDGER}")
        shutil.copy(self.nodes[2] / LEDGER / "partition.metadata", self.nodes[1] / LEDGER)
        return f"{LEDGER}/partition.metadata is copied from broker 2"

    def repair_and_delete_mark(self, action: str) -> str:
        """Repair the damaged log as kdump verify says, which deletes .kafka_cleanshutdown, too."""
        self.words(action, r"ut the damaged logs here right \(kdump verify\), then delete .kafka_cleanshutdown")
        place = self.nodes[1] / ORDERS
        report = " ".join(kdump("verify", str(self.nodes[1])).split())
        done = self.replace(self.words(report, rf"in place of {place} while.*? --out NEW")[0])
        (self.nodes[1] / ".kafka_cleanshutdown").unlink(missing_ok=True)
        return f"kdump verify; {done}; .kafka_cleanshutdown is deleted"

    def use_subdirectory(self, action: str) -> str:
        """Move what is in the log directory to a subdirectory, which becomes the log directory."""
        self.words(action, "se a subdirectory of the file system as the log directory")
        root, new = self.nodes[1], self.nodes[1] / "kafka"
        paths = [path for path in root.iterdir() if path.name != "lost+found"]
        new.mkdir()
        for path in paths:
            path.rename(new / path.name)
        self.dirs[:] = [new]
        return f"all but lost+found is moved to {new}, which is log.dirs now"

    def mount_target(self, action: str) -> str:
        """Make the target of a link available."""
        self.words(action, "ake the link's target available again")
        (self.work / "volume").rename(self.work / "mounted")
        return "the target of the link is there again"

    def raise_index_bytes(self, action: str) -> str:
        """Raise a config while only the controller is up, and start the broker."""
        assert self.cluster is not None
        match = self.words(action, r"kafka-configs.sh --bootstrap-controller HOST:PORT (--alter .* --add-config \S+)$")
        return self.configure_and_start(match[1])

    def restore_disk(self, action: str) -> str:
        """Put the disk of the voter in place."""
        self.words(action, "estore the disk of the voter")
        self.nodes[1].rename(self.work / "moved")
        (self.work / "backup").rename(self.nodes[1])
        return "the voter's own disk is in its place again"

    def restore_snapshot(self, action: str) -> str:
        """Put the snapshot in place, of which there is a backup."""
        match = self.words(action, r"estore the snapshot|put back (\S+.checkpoint)")
        backup = self.work / "backup"
        backup = backup if backup.exists() else max((self.nodes[0] / METADATA).glob("*.checkpoint"))
        name = match[1] or backup.name
        shutil.copy(backup, self.nodes[1] / METADATA / name)
        return f"{name} is put back from a backup"

    def keep_one(self, action: str) -> str:
        """Keep the live directory of two."""
        match = self.words(action, r"Decide which of the two to keep \(kdump diff\), name it (\S+), and move")
        (future,) = self.nodes[1].glob(f"{match[1]}.*-future")
        report = kdump("diff", str(self.nodes[1] / match[1]), str(future)).splitlines()[0]
        future.rename(self.work / "moved")
        return f"kdump diff: {report}; the -future directory is moved out"

    def set_configured_id(self, action: str) -> str:
        """Set the node.id of the directories in server.properties."""
        match = self.words(action, r"set node.id=(\d+) in (\S+)")
        return damage.set_property(Path(match[2]), "node.id", match[1])

    def set_voters(self, action: str) -> str:
        """Set the voters in server.properties, to those that the quorum has."""
        match = re.search(r"Set (controller.quorum.voters=\d+@)HOST:PORT in (\S+),", action)
        path = self.work / "broker.properties"
        port = re.findall(r"CONTROLLER://127.0.0.1:(\d+)", path.read_text())
        if match is not None:
            path.write_text(f"{path.read_text()}{match[1]}127.0.0.1:{port[0]}\n")
            return f"{match[1]}127.0.0.1:{port[0]} is set in {match[2]}"
        self.words(action, r"et controller.quorum.voters to the cluster's voters")
        voters = re.findall(r"(?m)^controller.quorum.voters=\d+(@.*)$", path.read_text())[0]
        return damage.set_property(path, "controller.quorum.voters", f"0{voters}")

    def remove_lines(self, action: str) -> str:
        """Remove the lines directory.id."""
        self.words(action, r"Remove the lines directory.id, .*, from meta.properties")
        for root in self.dirs:
            text = (root / META).read_text()
            (root / META).write_text(re.sub(r"(?m)^directory\.id=.*\n", "", text))
        return "the lines directory.id are removed from both files"

    def start_as_it_ran(self, action: str) -> str:
        self.words(action, r"Start the node with KRaft|Start the broker with the release that it ran before")
        return "the node is started as it ran before"

    def copy_formatted(self, action: str) -> str:
        """Copy the checkpoint from another controller, which is formatted for that."""
        match = self.words(action, r"Copy (\S+) from another controller that was formatted in the same way")
        with tempfile.TemporaryDirectory() as name:
            incidents.formatted(self.jars, self.work, Path(name))
            shutil.copy(Path(name) / "disk-1" / METADATA / match[1], self.nodes[1] / METADATA / match[1])
        return f"{match[1]} is copied from a controller that kafka-storage.sh has formatted for the same cluster"

    def change_level(self, action: str) -> str:
        """Start another release, upgrade with it, and run it until both nodes have the metadata snapshot."""
        pattern = r"Start (?:Kafka (3\.9)|the release that ran here),? on every node(?:.*HOST:PORT (.*))?$"
        match = self.words(action, pattern)
        plan = self.words(self.actions[1], r"kdump (restart-plan) \S+ (--kafka-version \S+) states then")
        cluster = incidents.of_release("3.9.1-kraft" if match[1] else "4.4.0-kraft", self.jars, self.work)
        with incidents.with_snapshots(cluster):
            assert cluster.started()
            if match[2]:
                cluster.tool("FeatureCommand", *match[2].split())
            until = time.monotonic() + incidents.SNAPSHOT_SECONDS
            while any("DOES NOT START" in kdump(plan[1], str(node), *plan[2].split()) for node in self.nodes[:2]):
                assert time.monotonic() < until
                time.sleep(1)
            incidents.stop(cluster)
        done = f"Kafka {cluster.release.version} is started" + (f"; kafka-features.sh {match[2]}" if match[2] else "")
        return f"{done}; it runs with {incidents.SNAPSHOTS} until kdump {plan[1]} {plan[2]} states that both start"

    def set_directory_id(self, action: str) -> str:
        match = self.words(action, r"[Ss]et (directory.id)=(\S+) in its meta.properties")
        return damage.set_property(self.nodes[1] / META, match[1], match[2])

    def rescue(self, action: str) -> str:
        """Rebuild the metadata, and put it in place as the report of rescue shows."""
        match = self.words(action, r"(kdump rescue (?:\S+ )+--out) NEW")
        report = kdump(*match[1].split()[1:], str(self.work / "rescued"))
        copies = re.findall(r"cp -a (\S+/controller-0/\.) LOG_DIR/", report)
        shutil.copytree(copies[0], self.nodes[0], dirs_exist_ok=True)
        return f"{match[1]} {NEW}, and cp -a {NEW}/controller-0/. in place of the controller's log directory"


class Incident(NamedTuple):
    """An incident. `damage`: makes it on the disk of broker 1; `code`: of doctor's item; `act`: does its first
    action; `partition`: that the item is about, and that is read afterwards; `is_running`: the action is done
    on the running cluster; `given`: the nodes whose disks doctor gets, 0 is the controller; `release`: that is
    to be started, if it is another one than that of the disk; `first`: the broker that is started first;
    `is_of_partition`: whether the item is about the partition alone; `recipe`: one of those for startups, which
    makes the incident; `stays`: what is wrong stays on the disk, and its action is to live with it; `later`:
    the nodes that the action starts; `words`: of the action that is done, if it is not the first one."""

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
    recipe: str = ""
    stays: bool = False
    later: tuple[str, ...] = ()
    disk: str = ""
    properties: Callable[[str], str] | None = None
    made: Callable[[Path, Path, Path], object] | None = None
    words: str = ""


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


def torn_tail_of_replica(disk: Disk) -> None:
    """Half of the last batch of ledger-0 reached the disk of broker 1, which is a follower and was killed; the replica
    of broker 2 is intact."""
    same_replica(disk)
    disk.crashed(LEDGER, 0)
    start, header = disk.batches(LEDGER)[-1]
    os.truncate(disk.log(LEDGER), start + header.size // 2)


def diverged_replicas(disk: Disk) -> None:
    """Nothing is changed: after an unclean leader election, the replicas of ledger-0 differ from offset 50 on."""


def other_cluster_id(disk: Disk) -> None:
    """The meta.properties of the broker has another cluster.id than that of its controller and its topics."""
    path = disk.file(META)
    path.write_text(path.read_text().replace(CLUSTER, damage.OTHER_CLUSTER))


def lost_controller(disk: Disk) -> None:
    """The disk of the only controller is a new one: it has meta.properties, as kafka-storage.sh format writes it."""
    shutil.rmtree(disk.root.parent / "disk-0" / METADATA)


def downgrade(disk: Disk) -> None:
    """Nothing is changed: the metadata.version is 4.3-IV0, and the broker is started with Kafka 3.9.1."""


def of_node(name: str, code: str, damage: Callable[[Disk], object], act: Callable[[Operator, str], str]) -> Incident:
    """Return an incident that stops the broker, or a part of it."""
    return Incident(name, code, damage, act, given=(0, 1), is_of_partition=False)


def of_recipe(name: str, recipe: str, code: str, act: Callable[[Operator, str], str]) -> Incident:
    """Return one that a recipe for startups makes."""
    return Incident(name, code, diverged_replicas, act, given=(0, 1), is_of_partition=False, recipe=recipe)


def of_disk(
    disk: str, name: str, code: str, damage: Callable[[Disk], object], act: Callable[[Operator, str], str]
) -> Incident:
    """Return one that stops a broker of another release."""
    return Incident(name, code, damage, act, incidents.PLAIN, is_of_partition=False, disk=disk)


def of_batch(name: str, code: str, act: Callable[[Operator, str], str]) -> Incident:
    """Return one that a batch makes, which was written so; its recipe has the same name."""
    partition = {"lz4-linked": "kafkapython-lz4-0", "header-key-null": "librdkafka-none-0"}.get(
        name, "kafkapython-zstd-0"
    )
    return Incident(name, code, diverged_replicas, act, partition, True, (0, 1), recipe=name, stays=True)


INCIDENTS = [
    Incident("torn-tail", "startup-loses", damaged_bytes.torn_tail, Operator.copy),
    Incident("flipped-bit", "crc-mismatch", damaged_bytes.flipped_bit_after_shutdown, Operator.replace),
    Incident("flipped-bit-unclean", "startup-loses", damaged_bytes.flipped_bit_before_recovery, Operator.replace),
    Incident(
        "flipped-bit-replica",
        "crc-mismatch",
        flipped_bit_of_replica,
        Operator.fetch_again,
        LEDGER,
        is_running=True,
        given=(0, 1, 2),
        first=2,
        later=("broker",),
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
    Incident("marker-skipped", "transaction-hanging", producers.marker_skipped, Operator.commit, PAYMENTS, True),
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
    Incident("downgrade", "startup-stops", downgrade, Operator.start, release="3.9.1-kraft", is_of_partition=False),
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
        Operator.write_version,
        given=(0, 1),
        is_of_partition=False,
    ),
    Incident(
        "epochs-unreadable",
        "startup-offline",
        damage.epochs_unreadable,
        Operator.recover_last,
        given=(0, 1),
        is_of_partition=False,
    ),
    of_node("epochs-version", "startup-offline", damage.epochs_version, Operator.write_version),
    of_node("epochs-count", "startup-offline", damage.epochs_count, Operator.recover_last),
    of_node("recovery-points-unreadable", "startup-stops", damage.recovery_points_unreadable, Operator.check_and_move),
    Incident("marker-damaged", "crc-mismatch", damage.marker_damaged, Operator.restore_marker, PAYMENTS),
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
    Incident("index-beyond-log", "startup-loses", damage.index_beyond_log, Operator.reindex),
    of_node("node-id-wrong", "startup-stops", damage.node_id_wrong, Operator.set_node_id),
    of_node("meta-unreadable", "startup-stops", damage.meta_escape, Operator.write_meta),
    of_node("meta-reserved", "startup-stops", damage.meta_reserved, Operator.write_meta),
    of_node("cluster-id-of-two", "startup-cluster-id-differs", damage.cluster_id_of_two, Operator.out_of_log_dirs),
    of_recipe(
        "directory-id-twice", "directory-id-twice", "startup-directory-id-duplicate", Operator.other_directory_id
    )._replace(words="another directory.id"),
    of_node("directory-is-a-file", "startup-directory-failed", damage.directory_is_file, Operator.out_of_log_dirs),
    of_recipe("epoch-largest", "quorum-epoch-largest", "startup-stops", Operator.move_out),
    of_recipe("batch-too-short", "short-batch", "startup-stops", Operator.recover_last),
    of_recipe("message-codec", "magic-0-gzip", "startup-stops", Operator.replace),
    of_recipe("offset-decreases", "index-lost-offset-back", "startup-stops", Operator.replace),
    of_recipe("transaction-rejected", "transaction-recovery", "startup-stops", Operator.replace),
    of_recipe("permission-log", "write-log", "startup-offline", Operator.give_to_user),
    of_recipe("directory-barred", "user", "startup-stops", Operator.let_enter),
    of_recipe("left-over-of-root", "left-over-epochs", "startup-offline", Operator.delete),
    of_recipe("delete-of-root", "delete-directory-of-root", "startup-offline", Operator.give_to_user),
    of_node("partition-twice", "startup-stops", damage.partition_twice, Operator.move_other_out),
    of_node("segment-extended", "startup-stops", damage.segment_too_large, Operator.replace),
    of_node("segments-overlap", "segment-overlap", damage.segments_overlap, Operator.move_segment),
    of_node("metadata-snapshot-damaged", "startup-stops", damage.metadata_snapshot_short, Operator.move_out),
    of_recipe(
        "metadata-snapshot-torn", "kraft-snapshot-no-header-clean-1", "kraft-snapshot-invalid", Operator.copy_checkpoint
    ),
    of_recipe("metadata-snapshot-gone", "kraft-snapshot-lost-clean-1", "startup-stops", Operator.move_out),
    of_recipe(
        "metadata-snapshot-copied", "kraft-snapshot-lost-clean-1", "kraft-snapshot-missing", Operator.copy_checkpoint
    ),
    of_batch("lz4-linked", "lz4-frame-unsupported", Operator.skip),
    of_batch("header-key-null", "header-key-invalid", Operator.skip),
    of_batch("max-timestamp", "timestamp-mismatch", Operator.raise_retention),
    Incident(
        "broker-stopped",
        "partition-offline",
        diverged_replicas,
        Operator.start_again,
        is_running=True,
        given=(0,),
        later=("broker",),
    ),
    Incident(
        "config-invalid",
        "startup-stops",
        damage.config_invalid,
        Operator.delete_config,
        is_running=True,
        given=(0, 1),
        is_of_partition=False,
        later=("broker",),
    ),
    Incident(
        "state-topic-deleted",
        "state-topic-deleted",
        damage.state_is_deleted,
        Operator.compact,
        "__consumer_offsets-0",
        is_running=True,
        given=(0, 1),
        is_of_partition=False,
    ),
    of_node("node-id-of-two", "startup-node-id-differs", damage.node_id_of_two, Operator.out_of_log_dirs),
    of_node("metadata-log-twice", "startup-metadata-logs-differ", damage.metadata_log_twice, Operator.out_of_log_dirs),
    of_node("directory-id-wrong", "meta-properties-invalid", damage.directory_id_wrong, Operator.compare_meta),
    of_node("read-only", "startup-stops", damage.read_only, Operator.mount),
    Incident(
        "data-in-transaction",
        "transaction-invalid",
        damage.data_in_transaction,
        Operator.look,
        PAYMENTS,
        given=(0, 1),
        stays=True,
        words="Keep the .index",
    ),
    of_node("disk-full", "startup-stops", damage.disk_full, Operator.free),
    of_node("snapshots-gone", "snapshot-missing", damage.snapshots_gone, Operator.delete_mark),
    of_node("stray-of-other-id", "startup-stray", damage.topic_id_wrong, Operator.write_own_id)._replace(
        words="rite the lines"
    ),
    of_node("future-in-place", "startup-stops", incidents.future_in_place, Operator.keep_one),
    of_node("deletion-denied", "startup-offline", incidents.deletion_denied, Operator.give_to_user),
    of_node("node-id-configured", "startup-stops", incidents.unchanged, Operator.set_configured_id)._replace(
        properties=incidents.other_node_id
    ),
    of_node("no-voters", "startup-stops", incidents.own_controller, Operator.set_voters)._replace(
        given=(1,), properties=incidents.without_voters
    ),
    of_disk(
        "4.4.0-kraft", "sole-voter", "startup-stops", incidents.formatted_again, Operator.set_directory_id
    )._replace(partition=incidents.MINE, given=(1,), made=incidents.only_voter, properties=incidents.dynamic),
    Incident(
        "follower-stopped",
        "partition-under-min-isr",
        incidents.unchanged,
        Operator.start_again,
        LEDGER,
        is_running=True,
        given=(0,),
        later=("broker-2",),
        made=incidents.follower_gone,
    ),
    of_disk("3.6.2-kraft", "voters-differ", "startup-stops", incidents.unchanged, Operator.set_voters)._replace(
        properties=incidents.other_voter
    ),
    of_disk(
        "3.6.2-kraft",
        "node-of-other-cluster",
        "startup-meta-properties-differ",
        incidents.directory_of_other_node,
        Operator.out_of_log_dirs,
    ),
    of_disk(
        "3.6.2-zk", "directory-ids-unknown", "startup-stops", incidents.directory_ids, Operator.remove_lines
    )._replace(release="3.6.2-zk"),
    of_disk("3.6.2-zk", "meta-of-root", "startup-stops", incidents.meta_of_root, Operator.give_to_user),
    of_disk("3.6.2-kraft", "unassigned", "startup-stray", incidents.unassigned, Operator.copy)._replace(given=(0, 1)),
    of_disk("3.9.1-kraft", "with-zookeeper", "startup-stops", incidents.unchanged, Operator.start_as_it_ran)._replace(
        release="3.9.1-zk"
    ),
    of_disk("3.9.1-zk", "without-zookeeper", "startup-stray", incidents.unchanged, Operator.start_as_it_ran)._replace(
        release="4.3.1-kraft"
    ),
    of_disk("4.3.1-kraft", "level-too-low", "startup-stops", incidents.unchanged, Operator.change_level)._replace(
        partition=incidents.MINE, given=(0, 1), release="4.3.1-kraft", made=incidents.low_level
    ),
    of_disk("4.3.1-kraft", "level-lowered", "startup-stops", incidents.unchanged, Operator.change_level)._replace(
        partition=incidents.MINE, given=(0, 1), release="4.3.1-kraft", made=incidents.lowered_level
    ),
    of_disk("4.4.0-kraft", "level-missing", "startup-stops", incidents.without_level, Operator.copy_formatted)._replace(
        given=(1,), made=incidents.formatted, properties=incidents.dynamic
    ),
]
INCIDENTS += [
    Incident(
        "torn-tail-replica",
        "batch-truncated",
        torn_tail_of_replica,
        Operator.start,
        LEDGER,
        given=(0, 1, 2),
        first=2,
        words="tart the broker: it truncates these bytes",
    ),
    Incident(
        "segment-renamed-and-damaged",
        "segment-name-mismatch",
        damage.segment_renamed_and_damaged,
        Operator.replace,
        words="o not rename the file",
    ),
    *(
        of_node(name, code, made, act)._replace(words=words)
        for name, code, made, act, words in (
            (
                "snapshots-gone-and-bit",
                "snapshot-missing",
                damage.snapshots_gone_and_bit,
                Operator.repair_and_delete_mark,
                "ut the damaged logs here right",
            ),
            (
                "directory-copied",
                "startup-directory-id-duplicate",
                damage.directory_copied,
                Operator.out_of_log_dirs,
                "tart the broker with only one",
            ),
            ("lost-and-found", "startup-stops", damage.lost_and_found, Operator.use_subdirectory, "se a subdirectory"),
            (
                "broken-link",
                "startup-partition-blocked",
                damage.broken_link,
                Operator.mount_target,
                "ake the link's target available again",
            ),
            ("record-unreadable", "startup-stops", damage.record_unreadable, Operator.move_out, "ove "),
        )
    ),
    of_node("cluster-id-of-others", "startup-cluster-id-wrong", other_cluster_id, Operator.correct_cluster_id)._replace(
        given=(1, 2), words="orrect cluster.id where it is wrong"
    ),
    of_node("metadata-bit", "crc-mismatch", damage.metadata_bit, Operator.repair_metadata)._replace(
        words="rite the log"
    ),
    of_node("topic-id-unknown", "startup-stray", damage.topic_id_unknown, Operator.copy_topic_id)._replace(
        given=(1,), words="opy partition.metadata from another replica"
    ),
    of_node("index-full", "startup-stops", damage.index_full, Operator.raise_index_bytes)._replace(
        is_running=True, later=("broker",)
    ),
    of_disk("3.6.2-kraft", "voters-of-other", "startup-stops", incidents.voters_of_other, Operator.move_out)._replace(
        properties=incidents.as_it_was, words="ove "
    ),
    of_node(
        "sole-voter-without-snapshot",
        "startup-stops",
        incidents.sole_voter_without_snapshot,
        Operator.restore_snapshot,
    )._replace(given=(1,), words="estore the snapshot"),
    of_disk(
        "4.4.0-kraft",
        "first-checkpoint-gone",
        "startup-stops",
        incidents.without_first_checkpoint,
        Operator.restore_snapshot,
    )._replace(given=(1,), made=incidents.formatted, properties=incidents.dynamic, words="put back"),
    of_disk(
        "4.4.0-kraft", "sole-voter-other-disk", "startup-stops", incidents.other_disk, Operator.restore_disk
    )._replace(
        partition=incidents.MINE,
        given=(1,),
        made=incidents.only_voter,
        properties=incidents.dynamic,
        words="estore the disk of the voter",
    ),
]
DIVERGENCE = {"startup-order", "replicas-diverge"}
"""Codes of what is usual on these disks, and is an incident."""


class Trial:
    """One trial: the disks of an incident in a directory of its own, and its clusters."""

    def __init__(self, incident: Incident, jars: Path, disks: Path, work: Path) -> None:
        self.incident, self.jars, self.work = incident, jars, work
        self.releases = jars.parent / "release-jars"
        copy_disk = importlib.import_module("tests.damages").copy_disk
        if incident.made is not None:
            incident.made(jars, disks, work)
            self.nodes = sorted(work.glob("disk-[0-9]"))
        elif incident.disk:
            source = disks.parent / "releases" / incident.disk
            names = (named(incident.disk).keeper, "clean")
            self.nodes = [copy_disk(source / name, work / f"disk-{node}") for node, name in enumerate(names)]
        else:
            source = disks / "kafka-4.3"
            self.nodes = [copy_disk(source / f"clean-{node}", work / f"disk-{node}") for node in range(3)]
        high = high_watermarks(self.nodes[1])
        self.usual = {row["code"] for row in items(*(self.nodes[number] for number in incident.given))} - DIVERGENCE
        self.node, self.what = Node((self.nodes[1],)), incident.damage.__doc__
        if incident.recipe:
            recipe = startup_recipes()[incident.recipe]
            if recipe.disk == "crash-1":  # that one is older than the controller's
                (self.nodes[1] / ".kafka_cleanshutdown").unlink()
            self.node, self.what = recipe.node(self.nodes[1]), recipe.what
        else:
            made = incident.damage(Disk(self.nodes[1]))
            self.node = made if isinstance(made, Node) else self.node
            if incident.damage is incidents.unchanged:
                self.what = (incident.properties or incident.made or incident.damage).__doc__
        self.acknowledged = left_of(high, self.nodes[1])

    @property
    def given(self) -> list[Path]:
        """The log directories that doctor gets."""
        own = self.node.paths
        return [path for number in self.incident.given for path in (own if number == 1 else [self.nodes[number]])]

    def mine(self, rows: list[Result]) -> list[Result]:
        """Return the items of the partition, or of the node."""
        key = self.incident.partition
        of_partition = self.incident.is_of_partition
        return [
            row
            for row in rows
            if (f"{row['topic']}-{row['partition']}" == key if of_partition else row["code"] not in self.usual)
        ]

    def cluster(self, dirs: Sequence[Path]) -> Cluster:
        """Return the cluster that the action starts."""
        incident, node = self.incident, self.node
        user = USER if node.user else None
        if incident.disk:
            release = named(incident.disk)
            return ReleaseCluster(
                release,
                self.releases,
                self.work,
                self.nodes[0],
                dirs,
                configs=node.configs,
                user=user,
                combined=node.combined,
            )
        return Cluster(
            self.jars,
            self.work,
            self.nodes[0],
            dirs,
            metadata=node.metadata,
            user=user,
            combined=node.combined,
            configs=node.configs,
            others=self.nodes[2:3] if 2 in incident.given or "broker-2" in incident.later else [],
            others_first=incident.first == 2,
            later=incident.later,
        )

    def before(self) -> str:
        """Return what the release that is to be started does without the action, on copies of the disks."""
        with tempfile.TemporaryDirectory() as name:
            paths = (self.nodes[0], *self.node.dirs)
            copies = [shutil.copytree(path, Path(name) / path.name) for path in paths]
            release = named(self.incident.release)
            with ReleaseCluster(release, self.releases, Path(name), copies[0], copies[1:]) as cluster:
                return "starts" if cluster.started() else "exits"


def tried(incident: Incident, jars: Path, disks: Path) -> Result:
    """Return what happened."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        work.chmod(0o700 if incident.name == "directory-barred" else 0o755)
        trial = Trial(incident, jars, disks, work)
        nodes, node, mine, usual = trial.nodes, trial.node, trial.mine, trial.usual
        dirs, given = [*node.dirs], trial.given
        options: tuple[str, ...] = ("--kafka-version", incident.release) if incident.release else ()
        cluster = trial.cluster(dirs)
        if incident.properties is not None:
            path = cluster.write_properties("broker")
            path.write_text(incident.properties(path.read_text()))
            options += ("--properties", str(path))
        before = items(*given, options=(*NOW, *options))
        item = next((row for row in mine(before) if row["code"] == incident.code), None)
        server = None
        if item is None:  # nothing that doctor puts first
            server = read_properties(str(cluster.write_properties("broker")))
            before = [row for row in others_found(node.paths, given, server) if row["code"] == incident.code]
            item = next(row for row in before if row["code"] == incident.code)
        others = [row["code"] for row in before[: before.index(item)] if row["code"] not in usual]
        action = next(each for each in item["actions"] if incident.words in each)
        result: Result = {"name": incident.name, "what": " ".join(str(trial.what).split())}
        result["kafka"] = incident.disk or KAFKA
        result |= {"code": item["code"]} | ({} if incident.words else {"isFirst": not others})
        result["action"] = shown(action, work)
        result["problems"] = problems(node.paths, server)
        if incident.release and item["code"] == "startup-stops":
            result["before"] = trial.before()
        operator = Operator(work, nodes, item["actions"], dirs, jars)
        if not incident.is_running:
            result["did"] = shown(incident.act(operator, action), work)
        cluster.dirs["broker"] = operator.dirs
        cluster.edited = {"broker"} if incident.properties is not None else set()
        client = Cluster(jars, work, nodes[0], dirs)  # the tools of a release that reads from each
        client.ports = cluster.ports
        with cluster:
            result["broker"] = "starts" if cluster.started() else "exits"
            if incident.is_running:
                operator.cluster = cluster
                result["did"] = shown(incident.act(operator, action), work)
            if 2 in incident.given:
                time.sleep(FETCHING_SECONDS)
            ends = client.ends()
            result["logEnd"] = ends.get(incident.partition)
            result["lost"] = {
                name: [high, ends[name]] for name, high in trial.acknowledged.items() if ends.get(name, high) < high
            }
            every = (("consumed", False), ("consumedCommitted", True))
            for key, committed in () if incident.stays or not ends else every[: 1 + incident.is_of_partition]:
                reading = client.consume(incident.partition, committed=committed)
                result[key] = ranges(sorted(set(reading.offsets)))
                result |= {f"{key}Log": reading.lines[:2]} if reading.lines else {}
            checkpoint = nodes[1] / "cleaner-offset-checkpoint"
            cleaned = re.search(
                rf"^{incident.partition[:-2]} 0 (\d+)$", checkpoint.read_text() if checkpoint.exists() else "", re.M
            )
            result |= {"cleanedTo": int(cleaned[1])} if cleaned else {}
            running = mine(items(*given)) if incident.given == (0,) else []
            for role in [*cluster.ports][1:]:
                cluster.processes[role].terminate()
                cluster.processes[role].wait(STOP_SECONDS)
        after = mine(
            items(*(path for path in given if path not in dirs), *(path for path in operator.dirs if dirs[0] in given))
        )
        after = running if incident.given == (0,) else after
        left = {row["code"] for row in after if row["severity"] == "error" or row["code"] == incident.code}
        left -= {incident.code} if incident.stays else set()
        if os.path.ismount(nodes[1]):
            subprocess.run(["umount", nodes[1]], check=True)
        return result | {"left": sorted(left - usual)}


def startup_recipes() -> dict[str, Any]:
    module = importlib.import_module("tests.questions.restart_plan.restart_damages")
    damages = importlib.import_module("tests.damages").DAMAGES
    every = [module.Recipe(each.name, each.disk, each.what, (each.apply,)) for each in damages]
    return {recipe.name: recipe for recipe in [*every, *module.chosen()]}


def others_found(paths: Sequence[Path], given: Sequence[Path], server: ServerProperties) -> list[Result]:
    """Return what restart-plan finds of a node and verify on the disks given, each with its actions."""
    stops = restart_plan(map(str, paths), Options(server=server)).allStops
    found: list[Result] = [{"code": stop.code, "actions": [*stop.actions]} for stop in stops]
    findings = (one for unit in units(tuple(map(str, given)), Options()) for one in unit.run(CheckTotals()))
    return found + [{"code": one.code, "actions": [*one.actions]} for one in findings if one.severity != "info"]


def problems(paths: Sequence[Path], server: ServerProperties | None) -> list[str]:
    """Return the codes of what stops the startup, and of directories that are stray."""
    plan = restart_plan(map(str, paths), Options(server=server))
    codes = [stop.code for stop in plan.allStops]
    codes += [each.problem.code for each in plan.partitions if each.problem is not None]
    return list(dict.fromkeys(codes))


def high_watermarks(disk: Path) -> dict[str, int]:
    """Return the last checkpointed high watermark of each partition."""
    path = disk / "replication-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    rows = (line.split() for line in lines)
    return {f"{topic}-{number}": int(offset) for topic, number, offset in rows}


def left_of(high: dict[str, int], disk: Path) -> dict[str, int]:
    """Return what an incident has left of what was acknowledged; all of a partition whose directory it has removed."""
    rows = map(json.loads, kdump("ls", "--json", str(disk)).splitlines())
    ends = {f"{row['topic']}-{row['partition']}": row["logEndOffset"] for row in rows if row["type"] == "partitionLog"}
    return {name: offset if ends.get(name) is None else min(offset, ends[name]) for name, offset in high.items()}


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
