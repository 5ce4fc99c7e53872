"""Incidents that need brokers of several releases, several starts, or another configuration.

Each changes the disks of a trial: disk-0 is the controller's (or ZooKeeper's), disk-1 that of broker 1."""

from __future__ import annotations

import importlib
import re
import shutil
import signal
import time
from pathlib import Path

from kdump.format.known_releases import known
from kdump.log.log_directory import META
from tests.craft import with_metadata_record
from tools.incident.disk import CLUSTER, DIRECTORY, METADATA, ORDERS, SECOND_DIRECTORY, Disk, change_metadata
from tools.metadata_trials import Entry, value_of
from tools.trials.cluster import LEADING_SECONDS, Cluster
from tools.trials.node import USER, Node
from tools.trials.release import ReleaseCluster, named
from tools.trials.startup_incidents import OTHER_CLUSTER, second_directory, set_property, with_config, with_property

PLAIN = "plain-0"
"""A partition of the disks of releases."""


def other_node_id(properties: str) -> str:
    """server.properties has another node.id."""
    return with_property(properties, "node.id", "7")


def as_it_was(properties: str) -> str:
    """server.properties is as the broker had it."""
    return properties


def other_voter(properties: str) -> str:
    """controller.quorum.voters has another node."""
    return re.sub(r"(?m)^(controller\.quorum\.voters)=0@", r"\1=5@", properties)


def without_voters(properties: str) -> str:
    """server.properties has no controller.quorum.voters, and the node is the only voter of a static quorum."""
    return re.sub(r"(?m)^controller\.quorum\.voters=.*\n", "", properties)


def own_controller(disk: Disk) -> Node:
    """The node was its own controller, the only voter of a static quorum; server.properties has no voters any more."""
    path = disk.file(f"{METADATA}/quorum-state")
    path.write_text(path.read_text().replace('"voterId":0', '"voterId":1').replace('"leaderId":0', '"leaderId":1'))
    return Node((disk.root,), combined=True)


def sole_voter_without_snapshot(disk: Disk) -> Node:
    """The node is its own controller; its metadata log starts at 327, and the snapshot up to there is gone."""
    importlib.import_module("tests.damages").lose_kraft_snapshot(disk.root)
    return own_controller(disk)


def voters_of_other(disk: Disk) -> None:
    """quorum-state has another voter than the cluster, which server.properties has."""
    path = disk.file(f"{METADATA}/quorum-state")
    path.write_text(path.read_text().replace('"voterId":0', '"voterId":5'))


def directory_of_other_node(disk: Disk) -> Node:
    """log.dirs has a log directory of another node and of another cluster."""
    node = second_directory(disk)
    path = node.dirs[1] / META
    text = with_property(path.read_text(), "node.id", "2")
    path.write_text(with_property(text, "cluster.id", OTHER_CLUSTER))
    return node


def directory_ids(disk: Disk) -> Node:
    """Each of two log directories has a directory.id, which a later release has written."""
    node = second_directory(disk)
    for path, directory_id in zip(node.dirs, (SECOND_DIRECTORY[::-1], SECOND_DIRECTORY)):
        text = re.sub(r"(?m)^directory\.id=.*\n", "", (path / META).read_text())
        (path / META).write_text(f"{text}directory.id={directory_id}\n")
    return node


def meta_of_root(disk: Disk) -> Node:
    """The broker runs as nobody, and its meta.properties belongs to root, who alone may read it."""
    for path in (disk.root, *disk.root.rglob("*")):
        shutil.chown(path, USER, USER)
    shutil.chown(disk.file(META), "root", "root")
    disk.file(META).chmod(0o600)
    return Node((disk.root,), user=True)


def unassigned(disk: Disk) -> None:
    """The metadata has assigned a partition to broker 2 alone, while broker 1 was stopped."""
    topic_id = re.findall(r"topic_id: (\S+)", disk.file(f"{PLAIN}/partition.metadata").read_text())[0]
    values = {"partitionId": 0, "topicId": topic_id, "isr": [2], "replicas": [2], "leader": 2}
    for root in (disk.root.parent / "disk-0", disk.root):
        path = max((root / METADATA).glob("*.log"))
        data = value_of(Entry("PartitionChangeRecord", values), known((3, 6)))
        path.write_bytes(with_metadata_record(path.read_bytes(), data))


def deletion_denied(disk: Disk) -> Node:
    """The broker runs as nobody, and a -delete directory belongs to root."""
    deleted = disk.file(f"{ORDERS}.0123456789abcdef0123456789abcdef-delete")
    shutil.copytree(disk.file(ORDERS), deleted)
    for path in deleted.glob("*.snapshot"):
        path.unlink()
    for path in (disk.root, *disk.root.rglob("*")):
        shutil.chown(path, USER, USER)
    shutil.chown(deleted, "root", "root")
    deleted.chmod(0o755)
    return Node((disk.root,), user=True, configs="log.segment.delete.delay.ms=1000\n")


def future_in_place(disk: Disk) -> None:
    """A -future directory is next to the live one that it is to replace: a move between directories was interrupted."""
    name = "orders-zstd-0"
    shutil.copytree(disk.file(name), disk.file(f"{name}.0123456789abcdef0123456789abcdef-future"))


def unchanged(disk: Disk) -> None:
    """Nothing is changed on the disk."""


# --- Disks that real brokers make -------------------------------------------------------------------------------------

STOP_SECONDS = 60
TOPIC, RECORDS = "mine", 50
MINE = f"{TOPIC}-0"
LEVEL = b"metadata.version"


def stop(cluster: Cluster) -> None:
    """Shut the nodes down cleanly, the controller last."""
    for process in reversed(cluster.processes.values()):
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=STOP_SECONDS)


def records(cluster: Cluster) -> None:
    """Create a topic with some records, on a running cluster."""
    cluster.tool("TopicCommand", "--create", "--topic", TOPIC)
    words = ("--topic", TOPIC, "--num-records", str(RECORDS), "--record-size", "10", "--throughput", "-1")
    cluster.java_run(
        "org.apache.kafka.tools.ProducerPerformance", *words, "--producer-props", f"bootstrap.servers={cluster.alive()}"
    )


def dynamic(properties: str) -> str:
    """Replace the voters in a server.properties with the address of the node's own controller."""
    return re.sub(r"(?m)^controller\.quorum\.voters=\d+@", "controller.quorum.bootstrap.servers=", properties)


def formatted(jars: Path, disks: Path, work: Path) -> Cluster:
    """Format a node of Kafka 4.4.0 that is the only voter of a dynamic quorum. Return it; it is not started."""
    (work / "disk-0").mkdir()
    jars = jars.parent / "release-jars" / "4.4.0"
    cluster = Cluster(jars, work, work / "disk-0", [work / "disk-1"], combined=True)
    path = cluster.write_properties("broker")
    path.write_text(dynamic(path.read_text()))
    cluster.edited = {"broker"}
    voter = f"1@127.0.0.1:{cluster.ports['controller']}:{DIRECTORY}"
    cluster.java_run(
        "kafka.tools.StorageTool", "format", "--initial-controllers", voter, "-t", CLUSTER, "-c", str(path)
    )
    return cluster


SNAPSHOTS = "metadata.log.max.snapshot.interval.ms=3000"
SNAPSHOT_SECONDS = 60


def of_release(name: str, jars: Path, work: Path) -> ReleaseCluster:
    """Return the controller and the broker on the disks of a trial with a release; they are not started."""
    (work / "disk-0").mkdir(exist_ok=True)
    return ReleaseCluster(named(name), jars.parent / "release-jars", work, work / "disk-0", [work / "disk-1"])


def with_snapshots(cluster: ReleaseCluster) -> ReleaseCluster:
    """Let the nodes take metadata snapshots often."""
    for role in cluster.ports:
        path = cluster.write_properties(role)
        path.write_text(f"{path.read_text()}{SNAPSHOTS}\n")
    cluster.edited = {*cluster.ports}
    return cluster


def low_level(jars: Path, disks: Path, work: Path) -> None:
    """The cluster was formatted with metadata.version 3.3-IV0, and ran with 3.9.1."""
    cluster = of_release("3.9.1-kraft", jars, work)
    cluster.format_disks(options=("--release-version", "3.3-IV0"))
    with cluster:
        assert cluster.started()
        records(cluster)
        stop(cluster)


def lowered_level(jars: Path, disks: Path, work: Path) -> None:
    """The cluster ran with 4.4.0, and its metadata.version was lowered to that of 4.3 just before it was stopped."""
    cluster = of_release("4.4.0-kraft", jars, work)
    cluster.format_disks(options=("--release-version", "4.4-IV0"))
    with cluster:
        assert cluster.started()
        records(cluster)
        levels = ("--feature", "metadata.version=30", "--feature", "share.version=1")
        out, _ = cluster.tool("FeatureCommand", "downgrade", *levels)
        assert out.count("was downgraded") == len(levels) / 2
        stop(cluster)


def only_voter(jars: Path, disks: Path, work: Path) -> None:
    """Make a node that is the only voter of a dynamic quorum, and has a topic."""
    with formatted(jars, disks, work) as cluster:
        assert cluster.started()
        records(cluster)
        stop(cluster)


def without_level(disk: Disk) -> Node:
    """The checkpoint that kafka-storage wrote for a controller has no metadata.version, and group.version twice."""
    group = value_of(Entry("FeatureLevelRecord", {"name": "group.version", "featureLevel": 1}), known((4, 3)))
    change_metadata(disk, lambda _, value: group if LEVEL in value else value)
    return Node((disk.root,), combined=True)


def without_first_checkpoint(disk: Disk) -> Node:
    """The checkpoint that kafka-storage wrote for a controller is gone; it was never started."""
    (checkpoint,) = disk.file(METADATA).glob("*.checkpoint")
    checkpoint.rename(disk.root.parent / "backup")
    return Node((disk.root,), combined=True)


def other_disk(disk: Disk) -> Node:
    """The only voter has another disk, with a copy of its metadata log, which was formatted."""
    shutil.copytree(disk.root, disk.root.parent / "backup")
    return formatted_again(disk)


def formatted_again(disk: Disk) -> Node:
    """meta.properties has another directory.id, as it was written by hand after it was lost."""
    set_property(disk.file(META), "directory.id", SECOND_DIRECTORY)
    return Node((disk.root,), combined=True)


def follower_gone(jars: Path, disks: Path, work: Path) -> None:
    """The broker of one of two in-sync replicas was stopped, and min.insync.replicas is 2."""
    copy_disk = importlib.import_module("tests.damages").copy_disk
    nodes = [copy_disk(disks / "kafka-4.3" / f"clean-{node}", work / f"disk-{node}") for node in range(3)]
    with_config(Disk(nodes[1]), "ledger", "min.insync.replicas", "2")
    with Cluster(jars, work, nodes[0], nodes[1:2], others=nodes[2:]) as cluster:
        assert cluster.started()
        time.sleep(LEADING_SECONDS)
        cluster.processes["broker-2"].terminate()
        cluster.processes["broker-2"].wait(STOP_SECONDS)
        time.sleep(LEADING_SECONDS)
        for role in ("controller", "broker"):
            cluster.processes[role].kill()
            cluster.processes[role].wait(STOP_SECONDS)
