"""python -m tools.rescue_trials JARS [--only CASE,…] [--out docs/rescue-trials.json]

Runs real clusters with topics, one of them with remote storage, records, transactions, groups of all protocols, a user,
an ACL, a quota and a reassignment in flight, ends them with kill -9, and damages their metadata: a record that no
controller can apply, disks of controllers that are lost, copies that diverge. Runs kdump.rescue, and then exactly the
commands that it names. Starts the cluster again, and compares: controllers have a leader and do not halt, no directory
becomes stray, and clients see every topic, record, offset, user, ACL and quota that was there; a new topic, a new
producer ID and the old transactional producers work. The disks that were read must be unchanged.

JARS contains a directory with the jars of tools/kafka-jars.xml, and that of kafka-streams, for each release. Needs Java
17, 3 GB of memory, and three minutes for each case."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kdump.format.batch_writer import new_batch
from kdump.format.control_record import KEY, ControlRecordKey
from kdump.format.count_text import count_text
from kdump.format.kafka_release import parse_release
from kdump.format.known_releases import known
from kdump.format.message_writer import encode
from kdump.format.schema import load
from kdump.questions.rescue.answer import CONTROLLER_STEP, Rescue, RescueError
from kdump.questions.rescue.rescuer import NewController
from kdump.questions.rescue.run import rescue
from kdump.state.as_of import AsOf
from tests.craft import split, with_metadata_record
from tools.metadata_starts import partition, topic
from tools.metadata_trials import IDS, ROOT, Entry, value_of
from tools.trials.cluster import STARTED, classpath, free_port, said
from tools.trials.recorded_results import RecordedResults, chosen, trial_options

RESULTS = ROOT / "docs" / "rescue-trials.json"
CLIENT = ROOT / "tools" / "trials" / "Rescue.java"
CLIENTS = [CLIENT, CLIENT.with_name("RescueStorage.java")]
NEWER_CLIENTS = [CLIENT.with_name("RescueShare.java"), CLIENT.with_name("RescueStreams.java")]
WITH_NEWER_GROUPS = (4, 2)
CLUSTER = "FN96DRb6S3GeSIQS03itlw"
SECONDS = 600
TOPICS = 60
LOG = "__cluster_metadata-0"
HALTED = re.compile(r"Encountered fatal fault|Exiting Kafka due to fatal exception|Got exception while starting")
ACTIVE = re.compile(r"Becoming the active controller|Becoming active at|becomes? the active controller", re.IGNORECASE)
STATIC, DYNAMIC = "static", "dynamic"
CONFIG = """
node.id={node}
process.roles={roles}
controller.listener.names=CONTROLLER
listeners={listeners}
log.dirs={disk}
{quorum}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
offsets.topic.replication.factor={replicas}
offsets.topic.num.partitions=2
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
transaction.max.timeout.ms=86400000
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
log.cleaner.dedupe.buffer.size=20000000
log.cleaner.backoff.ms=500
num.network.threads=2
num.io.threads=2
background.threads=2
group.initial.rebalance.delay.ms=0
initial.broker.registration.timeout.ms=600000
remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=RescueStorage
rsm.config.dir={remote}
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor={replicas}
rlmm.config.remote.log.metadata.topic.num.partitions=2
remote.log.manager.task.interval.ms=500
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=500
broker.session.timeout.ms=60000
controller.quorum.election.timeout.ms=5000
controller.quorum.fetch.timeout.ms=20000
controller.quorum.request.timeout.ms=20000
request.timeout.ms=120000
"""


class Layout(NamedTuple):
    """A cluster. `controllers` are nodes 1, 2, …, `brokers` 11, 12, …; `combined`: the only node, 11, is both."""

    release: str
    controllers: int = 1
    brokers: int = 1
    quorum: str = STATIC
    combined: bool = False

    @property
    def name(self) -> str:
        kind = "combined" if self.combined else f"{self.controllers}+{self.brokers}"
        return f"{self.release}-{kind}-{self.quorum}"


Request = dict[str, Any]
"""Arguments of kdump.rescue."""


class Case(NamedTuple):
    """`damage`: changes the disks and says what to ask kdump.rescue; `missing`: matches the names of the facts that are
    lost; `clean`: the nodes are shut down before."""

    name: str
    what: str
    layout: Layout
    damage: Callable[[Nodes], Request]
    missing: str = ""
    clean: bool = False


class Nodes:
    """The nodes of a layout, with their disks below `work`, on the same ports wherever that is."""

    def __init__(self, jars: Path, layout: Layout, work: Path, ports: dict[int, int] | None = None) -> None:
        self.layout, self.work = layout, work
        self.jars, self.classes = jars, work
        self.controllers = [11] if layout.combined else list(range(1, layout.controllers + 1))
        self.brokers = list(range(11, 11 + layout.brokers))
        self.ports = ports or {each: free_port() for each in (*self.controllers, *self.brokers)}
        self.ports.setdefault(-11, free_port())
        self.voters = list(self.controllers)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def all(self) -> list[int]:
        return list(dict.fromkeys((*self.controllers, *self.brokers)))

    def disk(self, node: int) -> Path:
        return self.work / f"disk-{node}"

    @property
    def remote(self) -> Path:
        """The directory that is the remote storage."""
        return self.work / "remote"

    def log(self, node: int) -> Path:
        return self.disk(node) / LOG

    def controller_port(self, node: int) -> int:
        return self.ports[-11] if self.layout.combined else self.ports[node]

    def address(self, node: int) -> str:
        return f"127.0.0.1:{self.controller_port(node)}"

    def configure(self, node: int) -> Path:
        """Write the properties of a node for the voters as they are now, and return their path."""
        broker, controller = node in self.brokers, node in self.controllers
        listeners = [f"PLAINTEXT://127.0.0.1:{self.ports[node]}"] if broker else []
        listeners += [f"CONTROLLER://{self.address(node)}"] if controller else []
        addresses = ",".join(map(self.address, self.voters))
        quorum = f"controller.quorum.bootstrap.servers={addresses}"
        if self.layout.quorum == STATIC:
            quorum = "controller.quorum.voters=" + ",".join(f"{each}@{self.address(each)}" for each in self.voters)
        if broker:
            quorum += "\ninter.broker.listener.name=PLAINTEXT"
        text = CONFIG.format(
            node=node,
            roles=",".join(["broker"] * broker + ["controller"] * controller),
            listeners=",".join(listeners),
            disk=self.disk(node),
            quorum=quorum,
            replicas=min(3, len(self.brokers)),
            remote=self.remote,
        )
        path = self.work / f"{node}.properties"
        path.write_text(text)
        return path

    def java(self, name: str, *arguments: str, heap: str = "200m") -> list[str]:
        options = [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        options.append("-Dorg.slf4j.simpleLogger.showThreadName=false")
        return ["java", *options, "-cp", f"{classpath(self.jars)}:{self.classes}", name, *arguments]

    def format(self) -> None:
        for node in self.all:
            arguments = ["format", "--cluster-id", CLUSTER, "--config", str(self.configure(node))]
            if self.layout.quorum == DYNAMIC:
                voters = ",".join(f"{each}@{self.address(each)}:{IDS['GTU'[each - 1]]}" for each in self.controllers)
                arguments += (
                    ["--initial-controllers", voters] if node in self.controllers else ["--no-initial-controllers"]
                )
            command = self.java("kafka.tools.StorageTool", *arguments)
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)

    def start(self) -> None:
        """Start all nodes, and wait until each has come up. Raises TimeoutError, and RuntimeError if one ends."""
        for node in self.all:
            command = self.java(
                "kafka.Kafka", str(self.configure(node)), heap="350m" if node in self.brokers else "200m"
            )
            with (self.work / f"{node}.log").open("wb") as log:
                self.processes[node] = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + SECONDS
        waiting = set(self.all)
        while waiting:
            if time.monotonic() > until:
                raise TimeoutError(f"nodes {sorted(waiting)} have not come up")
            time.sleep(1)
            for node in sorted(waiting):
                if self.processes[node].poll() is not None or any(map(HALTED.search, self.lines(node))):
                    raise RuntimeError(f"node {node} has ended")
                if any(map(STARTED.search, self.lines(node))):
                    waiting.discard(node)

    def lines(self, node: int) -> list[str]:
        return said((self.work / f"{node}.log").read_text(errors="replace"))

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes.clear()

    def client(self, what: str) -> list[str]:
        """Run the clients against the first broker, and return the lines that they print."""
        servers = ",".join(f"127.0.0.1:{self.ports[each]}" for each in self.brokers)
        arguments = [what, servers, str(min(3, len(self.brokers))), str(TOPICS)]
        command = self.java("Rescue", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800, cwd=self.work)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr[-3000:])
        return done.stdout.splitlines()

    def stop(self) -> None:
        """Shut all nodes down, brokers first."""
        for node in reversed(self.all):
            self.processes[node].terminate()
            try:
                self.processes[node].wait(60)
            except subprocess.TimeoutExpired:
                self.processes[node].kill()
        self.kill()

    def tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's tools against the brokers, and return what it prints."""
        servers = ",".join(f"127.0.0.1:{self.ports[each]}" for each in self.brokers)
        command = self.java(name, "--bootstrap-server", servers, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout

    def strays(self) -> list[str]:
        return [
            each.name for node in self.brokers for each in self.disk(node).iterdir() if each.name.endswith("-stray")
        ]

    def append(self, nodes: list[int], *entries: Entry) -> None:
        """Append records to the metadata logs of nodes, in the same place in all of them."""
        facts = known(parse_release(self.layout.release).line)
        longest = max((self._whole(node) for node in nodes), key=len)
        for entry in entries:
            longest = with_metadata_record(longest, value_of(entry, facts))
        for node in nodes:
            self._segment(node).write_bytes(longest)

    def append_epoch(self, node: int, *entries: Entry) -> None:
        """Append a record of a new leader epoch, with this node as leader, and records to a node's metadata log."""
        data = self._whole(node)
        last = split(data)[-1]
        offset = int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1
        epoch = int.from_bytes(last[12:16], "big") + 1
        voters = [{"voterId": each} for each in self.voters]
        message = {**load("LeaderChangeMessage").struct(0).default(), "leaderId": node, "voters": voters}
        key = KEY.struct.pack(*ControlRecordKey(0, 2))
        value = encode(load("LeaderChangeMessage"), 0, message)
        data += new_batch(offset, epoch, round(time.time() * 1000), [(key, value)], is_control=True)
        facts = known(parse_release(self.layout.release).line)
        for entry in entries:
            data = with_metadata_record(data, value_of(entry, facts))
        self._segment(node).write_bytes(data)

    def _segment(self, node: int) -> Path:
        return max(self.log(node).glob("*.log"))

    def _whole(self, node: int) -> bytes:
        return b"".join(split(self._segment(node).read_bytes()))  # an unclean stop may leave zeros

    def end(self, node: int) -> int:
        last = split(self._segment(node).read_bytes())[-1]
        return int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1


def lose(*nodes: int) -> Callable[[Nodes], Request]:
    """Return the damage that these nodes' disks are lost."""

    def damage(cluster: Nodes) -> Request:
        for node in nodes:
            shutil.rmtree(cluster.disk(node))
        return {}

    return damage


def fatal(*entries: Entry) -> Callable[[Nodes], Request]:
    """Return the damage that records are in every copy of the log, also in those of the brokers."""

    def damage(cluster: Nodes) -> Request:
        cluster.append(cluster.all, *entries)
        # What looks newer than kdump is left out only for a release that is named.
        return {"kafka_version": cluster.layout.release}

    return damage


def config(name: str, value: str) -> Entry:
    return Entry("ConfigRecord", {"resourceType": 2, "resourceName": "configured", "name": name, "value": value})


def fewer_controllers(cluster: Nodes) -> Request:
    """Two of three controllers are lost; the rescued cluster has one."""
    for node in (2, 3):
        shutil.rmtree(cluster.disk(node))
    cluster.controllers = cluster.voters = [1]
    host, _, port = cluster.address(1).rpartition(":")
    return {"controllers": (NewController(1, host, int(port)),)}


def diverging(cluster: Nodes) -> Request:
    """Controller 1 has records that were never committed, controller 2 those of a later leader; 3 is lost."""
    cluster.append([1], topic("V", "never-committed"))
    cluster.append_epoch(2, topic("W", "of-the-later-leader"))
    shutil.rmtree(cluster.disk(3))
    return {}


def earlier(cluster: Nodes) -> Request:
    """The last records, by which a topic was made, are not wanted."""
    end = cluster.end(cluster.brokers[0])
    cluster.append(cluster.all, topic("V", "unwanted"), partition("V", replicas=[11], isr=[11], leader=11))
    return {"as_of": AsOf(offset=end - 1)}


def asked(cluster: Nodes) -> Request:
    """A record is left out on request."""
    end = cluster.end(cluster.brokers[0])
    cluster.append(cluster.all, topic("V", "unwanted"))
    return {"leave_out": frozenset((end,))}


def without_metadata(cluster: Nodes) -> Request:
    """The controllers' disks, and every copy of the metadata log on brokers, are lost."""
    for node in cluster.all:
        if node not in cluster.brokers:
            shutil.rmtree(cluster.disk(node))
        shutil.rmtree(cluster.log(node), ignore_errors=True)
    controllers = tuple(NewController(each, "127.0.0.1", cluster.controller_port(each)) for each in cluster.voters)
    return {
        "controllers": controllers,
        "kafka_version": cluster.layout.release,
        "from_data": True,
        "dynamic_quorum": cluster.layout.quorum == DYNAMIC,
    }


def without_logs(cluster: Nodes) -> Request:
    """Every copy of the metadata log is lost, but the controllers' disks still have their meta.properties."""
    kept = {node: (cluster.disk(node) / "meta.properties").read_bytes() for node in cluster.controllers}
    request = without_metadata(cluster)
    for node, data in kept.items():
        cluster.disk(node).mkdir(exist_ok=True)
        (cluster.disk(node) / "meta.properties").write_bytes(data)
    return request


def set_aside(cluster: Nodes) -> Request:
    """The brokers have been started with newly formatted controllers, and have set every directory aside."""
    request = without_metadata(cluster)
    for node in cluster.brokers:
        for number, each in enumerate(sorted(cluster.disk(node).glob("*-[0-9]*"))):
            if each.is_dir() and "." not in each.name.rpartition("-")[2] and not each.name.endswith("-delete"):
                each.rename(each.with_name(f"{each.name}.{number:032x}-stray"))
    return request | {"with_stray": True}


def without_ids(cluster: Nodes) -> Request:
    """Some directories have lost their partition.metadata, one topic all of them."""
    request = without_metadata(cluster)
    for node in cluster.brokers:
        for name in ("t0-0", "t3-0", "t3-1"):
            (cluster.disk(node) / name / "partition.metadata").unlink(missing_ok=True)
    return request


def with_configs(cluster: Nodes) -> Request:
    """There is an old listing of the topics."""
    request = without_metadata(cluster)
    return request | {"configs": str(cluster.classes / LISTING)}


def without_broker(cluster: Nodes) -> Request:
    """The disk of broker 12 is lost, too."""
    request = without_metadata(cluster)
    shutil.rmtree(cluster.disk(12))
    cluster.brokers.remove(12)
    return request


def behind(cluster: Nodes) -> Request:
    """Broker 12 has lost the end of a log, broker 11 that of another one."""
    request = without_metadata(cluster)
    for node, name in ((12, "t4-0"), (11, "t5-1")):
        segment = max((cluster.disk(node) / name).glob("*.log"))
        batches = split(segment.read_bytes())
        segment.write_bytes(b"".join(batches[: len(batches) // 2]))
    return request


def moving(cluster: Nodes) -> Request:
    """The only copy of a partition that is moved between disks is the new one."""
    request = without_metadata(cluster)
    place = cluster.disk(11) / "t6-0"
    place.rename(place.with_name(f"t6-0.{7:032x}-future"))
    return request


FATAL: dict[str, tuple[Entry, ...]] = {
    "topic-unknown": (Entry("RemoveTopicRecord", {"topicId": IDS["Z"]}),),
    "topic-twice": (topic("T", "t0"), partition("T", replicas=[11], isr=[11], leader=11)),
    "partition-unknown": (Entry("PartitionChangeRecord", {"partitionId": 9, "topicId": IDS["T"], "isr": [11]}),),
    "broker-unknown": (Entry("FenceBrokerRecord", {"id": 77, "epoch": 1}),),
    "producer-id-lower": (Entry("ProducerIdsRecord", {"brokerId": 11, "brokerEpoch": 1, "nextProducerId": 10}),),
    "level-unknown": (Entry("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 99}),),
    "type-unknown": (Entry("", {}, None, b"\x01\x7b\x00\x00"),),
    "empty": (Entry("", {}, None, b"\x00\x02\x00"),),
    "acl-unknown": (Entry("RemoveAccessControlEntryRecord", {"id": IDS["Z"]}),),
    "transaction-end": (Entry("EndTransactionRecord", {}),),
    "retention-invalid": (config("retention.ms", "abc"),),
}
SMALL = {release: Layout(release) for release in ("4.3.1", "4.4.0", "3.9.1", "4.0.0")}
COMBINED = {release: Layout(release, combined=True) for release in ("4.3.1", "4.4.0")}
LARGE = {release: Layout(release, 3, 2) for release in ("4.3.1", "3.9.1")}
LARGE_DYNAMIC = {release: Layout(release, 3, 2, DYNAMIC) for release in ("4.3.1", "4.4.0", "3.9.1")}
LARGE_NEWEST = Layout("4.4.0", 3, 2)
THREE_BROKERS = (Layout("4.3.1", 1, 3), Layout("4.3.1", 3, 3), Layout("4.4.0", 3, 3, DYNAMIC), Layout("3.9.1", 3, 3))
UNKNOWN = "users|ACLs|quotas|configs of brokers|configs of group|reassignments"
"""Facts that --from-data cannot know."""
LISTING = "topics.txt"
HELD = {"retention.ms=-1", "retention.bytes=-1"}
KNOWN = ("cleaned", "appended", "tiered", "__consumer_offsets", "__transaction_state", "__share_group_state")
"""Topics whose logs, or names, show each config but those of LOST."""
LOST = ("segment.ms", "min.cleanable.dirty.ratio", "local.retention.bytes")


def _cases() -> Iterator[Case]:
    for release, layout in SMALL.items():
        kinds = FATAL if release in ("4.3.1", "4.4.0") else ("topic-unknown", "level-unknown", "type-unknown")
        for name in kinds:
            yield Case(
                f"{release}-fatal-{name}", f"the log has a record that kills: {name}", layout, fatal(*FATAL[name])
            )
        yield Case(f"{release}-controller-lost", "the disk of the only controller is lost", layout, lose(1))
        yield Case(f"{release}-as-of", "the state before the last records is taken", layout, earlier)
        yield Case(f"{release}-leave-out", "a record is left out on request", layout, asked)
    for release, layout in COMBINED.items():
        damage = fatal(*FATAL["topic-unknown"])
        yield Case(f"{release}-combined", "a combined node has a record that kills", layout, damage)
    for layout in THREE_BROKERS:
        damage = lose(1) if layout.controllers == 1 else lose(2, 3)
        yield Case(f"{layout.name}-controllers-lost", "the only controller, or a majority, is lost", layout, damage)
        damage = fatal(*FATAL["topic-unknown"])
        yield Case(f"{layout.name}-fatal", "all copies have a record that kills", layout, damage)
    for layouts in (LARGE, LARGE_DYNAMIC):
        for layout in layouts.values():
            name = f"{layout.release}-{layout.quorum}"
            yield Case(f"{name}-majority-lost", "two of three controllers are lost", layout, lose(2, 3))
            yield Case(f"{name}-all-lost", "all controllers are lost", layout, lose(1, 2, 3))
            yield Case(f"{name}-fewer", "two of three are lost, and one remains", layout, fewer_controllers)
            yield Case(f"{name}-diverging", "two copies diverge, the third is lost", layout, diverging, "of-the-later")
            damage = fatal(*FATAL["topic-unknown"])
            yield Case(f"{name}-fatal", "all copies have a record that kills", layout, damage)
    several = (*LARGE.values(), *LARGE_DYNAMIC.values(), LARGE_NEWEST, *THREE_BROKERS)
    for layout in (*SMALL.values(), *COMBINED.values(), *several):
        yield Case(f"{layout.name}-no-metadata", "all metadata is lost", layout, without_metadata, UNKNOWN)
    for layout in (SMALL["4.3.1"], SMALL["3.9.1"], LARGE_DYNAMIC["4.4.0"]):
        name = layout.name
        yield Case(f"{name}-no-metadata-clean", "after a clean shutdown", layout, without_metadata, UNKNOWN, clean=True)
        yield Case(f"{name}-no-logs", "controllers keep meta.properties", layout, without_logs, UNKNOWN)
        yield Case(f"{name}-stray", "every directory was set aside as stray", layout, set_aside, UNKNOWN)
        yield Case(f"{name}-no-ids", "some partition.metadata are lost", layout, without_ids, f"{UNKNOWN}|topic t3")
        yield Case(f"{name}-configs", "an old listing of topics is there", layout, with_configs, UNKNOWN)
        yield Case(f"{name}-future", "only a future directory is left", layout, moving, UNKNOWN)
    for layout in several:
        missing = f"{UNKNOWN}|topic "
        yield Case(f"{layout.name}-no-broker", "a broker's disk is lost, too", layout, without_broker, missing)
        yield Case(f"{layout.name}-behind", "replicas have lost the end of a log", layout, behind, UNKNOWN)


CASES = list(_cases())


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def apply(made: Rescue, cluster: Nodes) -> list[str]:
    """Run the commands of the steps, as they are printed, and return them."""
    done = []
    for each in made.steps:
        if each.command is None or each.command.startswith(("kdump", "kafka-")):
            continue
        command = each.command
        if each.step == CONTROLLER_STEP and "LOG_DIR" in command:
            node = int(re.findall(r"controller (\d+)", each.text)[0])
            cluster.disk(node).mkdir(exist_ok=True)
            command = command.replace("LOG_DIR", str(cluster.disk(node)))
        subprocess.run(command, shell=True, check=True)
        done.append(command.replace(f"{cluster.work}/", "…/"))
    return done


def base(jars: Path, layout: Layout, work: Path, clean: bool = False) -> tuple[Nodes, list[str]]:
    """Return the disks of a cluster that was used and killed, or shut down, and what its clients saw."""
    nodes = Nodes(jars, layout, work)
    clients = CLIENTS + (NEWER_CLIENTS if parse_release(layout.release).line >= WITH_NEWER_GROUPS else [])
    nodes.remote.mkdir()
    compiled = ["javac", "-cp", f"{jars}/*", "-d", str(work), *map(str, clients)]
    subprocess.run(compiled, check=True, capture_output=True)
    nodes.format()
    try:
        nodes.start()
        nodes.client("prepare")
        time.sleep(3)
        facts = nodes.client("ask")
        (work / LISTING).write_text(nodes.tool("org.apache.kafka.tools.TopicCommand", "--describe"))
        if clean:
            nodes.stop()
    finally:
        nodes.kill()
    return nodes, facts


def trial(jars: Path, case: Case, before: Nodes, facts: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rescue-") as folder:
        cluster = Nodes(jars, case.layout, Path(folder), before.ports)
        cluster.classes = before.classes
        for node in cluster.all:
            shutil.copytree(before.disk(node), cluster.disk(node))
        shutil.copytree(before.remote, cluster.remote)
        request = case.damage(cluster)
        disks = [str(cluster.disk(node)) for node in before.all if cluster.disk(node).exists()]
        read = hashes(cluster.work)
        topics = sum(line.startswith("topic ") for line in facts)
        nodes = f"{count_text(len(before.controllers), 'controller')}, {count_text(len(before.brokers), 'broker')}"
        result: dict[str, Any] = {
            "name": case.name,
            "what": case.what,
            "cluster": f"{nodes}, {case.layout.quorum} quorum, {topics} topics",
            "differences": [],
        }
        try:
            made = rescue(disks, out=f"{folder}/rescued", **request)
        except RescueError as error:
            return result | {"differences": [str(error)]}
        now = hashes(cluster.work)
        changed = sorted(name for name, each in read.items() if now.get(name) != each)
        result["losses"] = [list(each) for each in made.losses]
        result["leftOut"] = [[each.fate, each.record, each.reason] for each in made.records if each.fate != "kept"]
        result["commands"] = apply(made, cluster)
        found = result["differences"]
        found += [f"the disk that was read has changed: {name}" for name in changed]
        try:
            cluster.start()
            answered = cluster.client("check")
            after = answered[: answered.index("--")]
            found += _compared(facts, after, case.missing, rebuilt="from_data" in request and "configs" not in request)
            result["lost"] = [each.what for each in made.unknowns]
            result["works"] = [line.replace("\t", ": ") for line in answered[answered.index("--") + 1 :]]
            found += [line for line in result["works"] if not line.endswith(": works")]
            time.sleep(5)
            found += [f"node {node} has ended" for node, each in cluster.processes.items() if each.poll() is not None]
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
            found.append(str(error)[-1000:])
        finally:
            cluster.kill()
        found += [f"stray: {name}" for name in cluster.strays()]
        for node in cluster.all:
            faults = [line[-300:] for line in cluster.lines(node) if HALTED.search(line) or "stray" in line.lower()]
            found += [f"node {node}: {line}" for line in faults if "Found stray log dir" in line or HALTED.search(line)]
        if found:
            keep = Path(tempfile.gettempdir()) / f"rescue-failed-{case.name}"
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(folder, keep)
    return result


def _compared(before: list[str], after: list[str], missing: str, rebuilt: bool) -> Iterator[str]:
    """Yield the facts that differ. `missing`: matches those that are lost, or only the damage has made; `rebuilt`: the
    order of replicas and the configs of topics are not known."""
    known_before, known_after = ({line.partition("\t")[0]: line for line in each} for each in (before, after))
    for name in sorted({*known_before, *known_after}):
        one, other = known_before.get(name, ""), known_after.get(name, "")
        if missing and re.search(missing, name):
            continue
        if rebuilt and name.startswith("topic "):
            one, other = (re.sub(r"\[([\d, ]+)\]", _sorted, each) for each in (one, other))
        if rebuilt and name.startswith("configs of "):
            own, now = ({*re.findall(r"[\w.]+=[^\]]*?(?=, [\w.]+=|\])", each)} for each in (one, other))
            # That of Kafka's own topics is in server.properties; with ELR, a new cluster has one for all topics.
            own, now = ({each for each in some if not each.startswith("min.insync")} for some in (own, now))
            if now <= own | HELD and (
                name[11:] not in KNOWN or {each for each in own if not each.startswith(LOST)} <= now
            ):
                continue
        if one != other:
            yield f"{one or None} is now {other or None}"


def _sorted(match: re.Match[str]) -> str:
    return str(sorted(map(int, match[1].split(","))))


def main() -> None:
    options = trial_options(__doc__, str(RESULTS)).parse_args()
    record = RecordedResults(options.out, CASES)
    with tempfile.TemporaryDirectory(prefix="rescue-base-") as folder:
        bases: dict[str, tuple[Nodes, list[str]] | None] = {}
        for case in chosen(CASES, options.only):
            jars = (options.jars / case.layout.release).resolve()
            name = f"{case.layout.name}{'-clean' * case.clean}"
            if name not in bases:
                work = Path(folder, name)
                work.mkdir()
                try:
                    bases[name] = base(jars, case.layout, work, case.clean)
                except (RuntimeError, TimeoutError, subprocess.SubprocessError) as error:
                    print(f"{name}: {error}", file=sys.stderr, flush=True)
                    bases[name] = None
            made = bases[name]
            if made is None:
                continue
            result = trial(jars, case, *made)
            print(f"{case.name}: {result['differences'] or 'agrees'}", file=sys.stderr, flush=True)
            record.keep(case.name, [result])


if __name__ == "__main__":
    main()
