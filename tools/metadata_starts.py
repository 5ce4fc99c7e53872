"""python -m tools.metadata_starts JARS [--only RELEASE-CASE-ROLE,…] [--out docs/metadata-starts.json]

Starts real nodes of several releases of Kafka with a metadata log to which records were appended that they cannot
apply, or that only look so: controllers, combined nodes and brokers. Compares what kdump.restart_plan says (whether the
node comes up, at which offset it halts and with which exception) with what the node logs. Brokers also follow a
controller of an older release, which has committed a record that they refuse: they log a fault, keep their image, apply
what comes later, and take no more snapshots.

JARS contains a directory with the jars of tools/kafka-jars.xml for each release. Needs Java 17, 1 GB of memory and half
an hour."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kdump.check.options import Options
from kdump.format.kafka_release import parse_release
from kdump.format.known_releases import known
from kdump.kafka.server_properties import read_properties
from kdump.questions.restart_plan.answer import STOPPED
from kdump.questions.restart_plan.run import restart_plan
from tests.craft import split, with_metadata_record
from tools.metadata_trials import IDS, ROOT, TRIED, Entry, value_of
from tools.trials.cluster import LISTENERS, STARTED, classpath, free_port, said
from tools.trials.recorded_results import RecordedResults, chosen, trial_options

RESULTS = ROOT / "docs" / "metadata-starts.json"
CONTROLLER, COMBINED, BROKER = ROLES = ("controller", "combined", "broker")
SECONDS = 300
HALTED = re.compile(r"Encountered fatal fault|Exiting Kafka due to fatal exception|Got exception while starting")
OLDER = "4.0.0"
"""Release of a controller that takes a listener without a name; 4.1 and later do not."""
UNNAMED = Entry(
    "RegisterBrokerRecord",
    {
        "brokerId": 77,
        "brokerEpoch": 5,
        "fenced": True,
        "incarnationId": IDS["X"],
        "logDirs": [IDS["E"]],
        "endPoints": [{"name": "", "host": "localhost", "port": 9092, "securityProtocol": 0}],
    },
)
CONFIG = """
node.id={node}
process.roles={roles}
controller.quorum.voters={voter}@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={disk}
offsets.topic.replication.factor=1
log.cleaner.dedupe.buffer.size=20000000
metadata.log.max.record.bytes.between.snapshots={between}
"""


def topic(letter: str, name: str) -> Entry:
    return Entry("TopicRecord", {"name": name, "topicId": IDS[letter]})


def partition(letter: str, **values: Any) -> Entry:
    numbers = {"partitionId": 0, "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "topicId": IDS[letter]}
    return Entry("PartitionRecord", {**numbers, "replicas": [1], "isr": [1], "directories": [IDS["F"]], **values})


def level(name: str, number: int) -> Entry:
    return Entry("FeatureLevelRecord", {"name": name, "featureLevel": number})


def config(kind: int, resource: str, name: str, value: str) -> Entry:
    values = {"resourceType": kind, "resourceName": resource, "name": name, "value": value}
    return Entry("ConfigRecord", values)


RECORDS: dict[str, tuple[list[Entry], tuple[str, ...]]] = {
    "topic-unknown": ([Entry("RemoveTopicRecord", {"topicId": IDS["Z"]})], (CONTROLLER, COMBINED)),
    "topic-twice": ([topic("T", "t"), topic("U", "t")], (CONTROLLER, COMBINED)),
    "partition-unknown": (
        [topic("T", "t"), Entry("PartitionChangeRecord", {"partitionId": 9, "topicId": IDS["T"], "isr": [1]})],
        (COMBINED,),
    ),
    "broker-unknown": ([Entry("FenceBrokerRecord", {"id": 77, "epoch": 1})], (CONTROLLER,)),
    "producer-id-lower": (
        [Entry("ProducerIdsRecord", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": each}) for each in (90000, 10)],
        (CONTROLLER,),
    ),
    "level-unknown": ([level("metadata.version", 99)], (CONTROLLER,)),
    "type-unknown": ([Entry("", {}, None, b"\x01\x7b\x00\x00")], (COMBINED, BROKER)),
    "version-unknown": ([Entry("", {}, None, b"\x01\x02\x09\x02x" + b"?" * 16 + b"\x00")], (CONTROLLER,)),
    "isr-empty": ([topic("T", "t"), partition("T", isr=[], leader=7)], (CONTROLLER,)),
    "retention-invalid": (
        [topic("T", "t"), partition("T"), config(2, "t", "retention.ms", "abc")],
        (CONTROLLER, COMBINED),
    ),
    "retention-low": ([topic("T", "t"), partition("T"), config(2, "t", "retention.ms", "-5")], (COMBINED,)),
    "segment-small": ([topic("T", "t"), partition("T"), config(2, "t", "segment.bytes", "1000")], (COMBINED,)),
    "policy-unknown": ([topic("T", "t"), config(2, "t", "cleanup.policy", "keep")], (COMBINED,)),
    "config-unknown": ([topic("T", "t"), config(2, "t", "retention.hours", "abc")], (COMBINED,)),
    "broker-config-invalid": ([config(4, "1", "log.cleaner.threads", "abc")], (COMBINED,)),
    "resource-unknown": ([config(99, "x", "y", "z")], (COMBINED,)),
}


class Case(NamedTuple):
    """A start of a release with some records after its log; `role`: of the node."""

    name: str
    release: str
    records: str
    role: str


CASES = [
    Case(f"{release}-{name}-{role}", release, name, role)
    for release in TRIED
    for name, (_, roles) in RECORDS.items()
    for role in roles
] + [Case(f"{release}-follows-{OLDER}", release, "", BROKER) for release in ("4.3.1", "4.4.0")]


class Node:
    """A node on one disk; `work` is its directory."""

    def __init__(self, jars: Path, work: Path) -> None:
        self.jars, self.work, self.disk = jars, work, work / "disk"
        self.properties = work / "server.properties"
        self.ports = {"port": free_port(), "controller": free_port()}

    def configure(self, role: str, node: int = 1, between: int = 20_971_520) -> None:
        """Write server.properties for a role. The voter of a broker alone is another node, which need not run."""
        roles = "broker,controller" if role == COMBINED else role
        voter = 2 if role == BROKER else 1
        voter = node if role == CONTROLLER else voter
        text = CONFIG.format(roles=roles, node=node, voter=voter, between=between, disk=self.disk, **self.ports)
        listeners = LISTENERS[role].format(**self.ports)
        if role == CONTROLLER:
            listeners = LISTENERS[role].format(port=self.ports["controller"])
        self.properties.write_text(text + listeners)

    def java(self, name: str, *arguments: str) -> list[str]:
        logging = "-Dorg.slf4j.simpleLogger.showThreadName=false"
        return ["java", "-Xmx250m", logging, "-cp", classpath(self.jars), name, *arguments]

    def format(self) -> None:
        arguments = ["format", "--cluster-id", "FN96DRb6S3GeSIQS03itlw", "--config", str(self.properties)]
        subprocess.run(self.java("kafka.tools.StorageTool", *arguments), check=True, capture_output=True, timeout=180)

    def run(self, then: Callable[[], object] = lambda: None) -> tuple[bool, list[str]]:
        """Start the node until it has come up, or has ended; return which, and its log. Call `then` while it is up."""
        log = self.work / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(self.java("kafka.Kafka", str(self.properties)), stdout=out, stderr=out)
        try:
            return self._wait(process, log, then)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], log: Path, then: Callable[[], object]) -> tuple[bool, list[str]]:
        until = time.monotonic() + SECONDS
        lines: list[str] = []
        while time.monotonic() < until:
            time.sleep(1)
            lines = said(log.read_text(errors="replace"))
            if process.poll() is not None or any(HALTED.search(line) for line in lines):
                break
            if any(STARTED.search(line) for line in lines):
                time.sleep(4)
                then()
                break
        time.sleep(1)  # the exception follows the line that it is fatal
        lines = said(log.read_text(errors="replace"))
        halted = process.poll() is not None or any(HALTED.search(line) for line in lines)
        started = any(STARTED.search(line) for line in lines)
        if not halted and not started:
            raise TimeoutError("neither up nor ended in time")
        return not halted, lines


def base(jars: Path, work: Path) -> Path:
    """Return the disk of a combined node of a release that was formatted, started and stopped."""
    node = Node(jars, work)
    node.configure(COMBINED)
    node.format()
    started, lines = node.run()
    if not started:
        raise RuntimeError("\n".join(lines[-20:]))
    return node.disk


def following(jars: Path, case: Case) -> dict[str, Any]:
    """Start a broker that fetches a record that it refuses from a controller of the older release."""
    with tempfile.TemporaryDirectory(prefix="metadata-") as folder:
        (controller_dir := Path(folder, "controller")).mkdir()
        (broker_dir := Path(folder, "broker")).mkdir()
        controller, broker = Node(jars.parent / OLDER, controller_dir), Node(jars, broker_dir)
        controller.configure(CONTROLLER, node=2)
        controller.format()
        controller.run()
        log = max((controller.disk / "__cluster_metadata-0").glob("*.log"))
        whole = b"".join(split(log.read_bytes()))
        log.write_bytes(with_metadata_record(whole, value_of(UNNAMED, known(parse_release(OLDER).line))))
        broker.ports["controller"] = controller.ports["controller"]
        broker.configure(BROKER, between=1)
        broker.format()
        seen: list[Any] = []

        def topic_of() -> None:
            server = f"127.0.0.1:{broker.ports['port']}"
            arguments = ["--bootstrap-server", server, "--create", "--topic", "t", "--partitions", "1"]
            command = broker.java("org.apache.kafka.tools.TopicCommand", *arguments)
            subprocess.run(command, capture_output=True, timeout=120)
            time.sleep(10)
            snapshots = broker.disk.glob("__cluster_metadata-0/*.checkpoint")
            seen.append((broker.disk / "t-0").exists())
            seen.append(sorted(each.name for each in snapshots if not each.name.startswith("0" * 20)))

        first: list[Any] = []
        controller.run(lambda: first.append(broker.run(topic_of)))
        ((started, lines),) = first
        options = Options(server=read_properties(str(broker.properties)))
        plan = restart_plan([str(broker.disk)], options, kafka_version=case.release)
    warned = [each for each in plan.warnings if "a broker alone logs a fault" in each]
    says = {"starts": plan.verdict != STOPPED, "verdict": plan.verdict, "warnings": warned}
    faults = [line[-300:] for line in lines if re.search(r"ERROR|FATAL|Exception", line)][:6]
    does = {"starts": started, "log": faults, "createsTopic": seen[0], "snapshots": seen[1]}
    found = differences(says, does)
    if not warned or not any("Broker listeners must be named" in line for line in faults):
        found.append(f"the fault is {faults}, and kdump warns of {warned}")
    if not seen[0] or seen[1]:
        found.append("it does not go on, or takes snapshots")
    return {"name": case.name, "role": case.role, "kdump": says, "node": does, "differences": found}


def trial(jars: Path, case: Case, disk: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="metadata-") as folder:
        node = Node(jars, Path(folder))
        shutil.copytree(disk, node.disk)
        node.configure(case.role)
        log = max((node.disk / "__cluster_metadata-0").glob("*.log"))
        facts = known(parse_release(case.release).line)
        for entry in RECORDS[case.records][0]:
            data = log.read_bytes()
            whole = b"".join(split(data))  # an unclean stop may leave zeros
            log.write_bytes(with_metadata_record(whole, value_of(entry, facts)))
        options = Options(server=read_properties(str(node.properties)))
        plan = restart_plan([str(node.disk)], options, kafka_version=case.release)
        stop = plan.allStops[0] if plan.allStops else None
        started, lines = node.run()
    says = {"starts": plan.verdict != STOPPED, "verdict": plan.verdict}
    if stop is not None:
        says |= {"offset": stop.offset, "exception": stop.exception}
    faults = [line for line in lines if re.search(r"ERROR|FATAL|Exception", line)]
    does = {"starts": started, "log": [line[-300:] for line in faults[:6]]}
    return {"name": case.name, "role": case.role, "kdump": says, "node": does, "differences": differences(says, does)}


def differences(says: dict[str, Any], does: dict[str, Any]) -> list[str]:
    found = [] if says["starts"] == does["starts"] else [f"starts: {says['starts']}, then {does['starts']}"]
    text = "\n".join(does["log"])
    if says["starts"] or does["starts"]:
        return found
    # Each of two threads may be the first that ends the node.
    starts = [re.split(r"\(…\)|: \(", each)[0][:70] for each in says["exception"].split(", or ")]
    if not any(each in text for each in starts):
        found.append(f"none of {starts} is in the log")
    offset = re.search(r"(?:from|at) offset (\d+)", text)
    if offset and says["offset"] is not None and int(offset[1]) != says["offset"]:
        found.append(f"offset {says['offset']}, then {offset[1]}")
    return found


def main() -> None:
    options = trial_options(__doc__, str(RESULTS)).parse_args()
    record = RecordedResults(options.out, CASES)
    with tempfile.TemporaryDirectory(prefix="metadata-base-") as folder:
        disks: dict[str, Path] = {}
        for case in chosen(CASES, options.only):
            jars = (options.jars / case.release).resolve()
            if case.records and case.release not in disks:
                work = Path(folder, case.release)
                work.mkdir()
                disks[case.release] = base(jars, work)
            try:
                result = trial(jars, case, disks[case.release]) if case.records else following(jars, case)
            except TimeoutError as error:
                print(f"{case.name}: left out: {error}", file=sys.stderr, flush=True)
                continue
            print(f"{case.name}: {result['differences'] or 'agrees'}", file=sys.stderr, flush=True)
            record.keep(case.name, [result])


if __name__ == "__main__":
    main()
