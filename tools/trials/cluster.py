"""A controller and a broker on copied disks, and Kafka's own tools run against them. Everything listens on
127.0.0.1."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from kdump.format.kafka_release import KafkaRelease, parse_release

KAFKA = "4.3.1"
START_SECONDS = 180
LEADING_SECONDS = 6
"""Time in s after startup in which a broker has become the leader of what it may lead."""
IDLE_MS = 4000
"""Timeout of a consumer in ms: without a new record for this long, it has read everything that it can."""

LOGGING = [
    f"-Dorg.slf4j.simpleLogger.{option}"
    for option in ("showThreadName=false", "showShortLogName=true", "log.org.apache.kafka.common.config=warn")
]
TOOL = "org.apache.kafka.tools."
STARTED = re.compile(r"Kafka Server started|\[KafkaServer id=\d+\] started")
"""Line that a broker logs after startup; the second form is that of a broker with ZooKeeper."""

REMOTE = """
remote.log.storage.system.enable=true
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor=1
rlmm.config.remote.log.metadata.topic.num.partitions=1
"""
"""Remote storage, whatever the plugin."""
LOCAL_TIER = (
    REMOTE
    + """remote.log.storage.manager.class.name=org.apache.kafka.server.log.remote.storage.LocalTieredStorage
rsm.config.dir={tier}
"""
)
"""That of Kafka's tests, a directory."""
INTERNAL_TOPICS = """offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
"""
"""One partition of each, with one replica."""
COMMON = (
    """
node.id={node}
process.roles={roles}
controller.quorum.voters={voter}@127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={dirs}
"""
    + INTERNAL_TOPICS
    + """share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=20000000
log.retention.ms=-1
log.retention.check.interval.ms=2000
log.initial.task.delay.ms=1000
log.segment.delete.delay.ms=600000
log.index.size.max.bytes=65536
auto.create.topics.enable=false
unclean.leader.election.enable=true
transaction.max.timeout.ms=900000
producer.id.expiration.ms=2147483647
broker.session.timeout.ms=4000
"""
)
LISTENERS = {
    "controller": "listeners=CONTROLLER://127.0.0.1:{port}\n",
    "broker": "listeners=PLAINTEXT://127.0.0.1:{port}\ninter.broker.listener.name=PLAINTEXT\n",
    "combined": (
        "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        "inter.broker.listener.name=PLAINTEXT\n"
    ),
}


class Reading(NamedTuple):
    """Offsets that a consumer read, and the warnings and errors that it logged."""

    offsets: list[int]
    lines: list[str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def said(text: str) -> list[str]:
    """Return the lines of a log without stack frames."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("\t")]


def release_of(jars: Path) -> KafkaRelease:
    """Return the release that these jars are."""
    (clients,) = jars.glob("kafka-clients-*.jar")
    return parse_release(clients.stem.removeprefix("kafka-clients-"))


def classpath(jars: Path) -> str:
    """Return a class path with slf4j-simple as the only logging backend: some releases depend on another. Raises
    FileNotFoundError without jars: a JVM without them would be a broker that does not start."""
    found = sorted(jars.glob("*.jar"), key=lambda path: (not path.name.startswith("slf4j-simple"), path.name))
    used = [str(path) for path in found if not re.match(r"slf4j-reload4j|slf4j-log4j", path.name)]
    if not used:
        raise FileNotFoundError(f"{jars}: no jars")
    return ":".join(used)


def config_command(jars: Path) -> str:
    """Return the class of kafka-configs.sh, which 4.4 has moved."""
    return f"{TOOL}ConfigCommand" if release_of(jars).line >= (4, 4) else "kafka.admin.ConfigCommand"


class Cluster:
    """Runs both processes inside a `with` block. `dirs`: the broker's log.dirs; `metadata`: its metadata.log.dir, None
    if not set; `user`: user ID that the broker runs as; `combined`: the broker is its own controller, the only one;
    `configs`: further lines of the broker's configuration; `others`: the log directory of each further broker, which
    have the node IDs from 2 on, and start after the broker or, with `others_first`, before it; `later`: the roles that
    `start` starts."""

    start_seconds: float = START_SECONDS

    def __init__(
        self,
        jars: Path,
        work: Path,
        controller_dir: Path,
        dirs: Sequence[Path],
        *,
        metadata: Path | None = None,
        user: int | None = None,
        combined: bool = False,
        configs: str = "",
        others: Sequence[Path] = (),
        others_first: bool = False,
        later: Sequence[str] = (),
    ) -> None:
        self.jars, self.work = jars.resolve(), work
        self.ports = {"controller": free_port(), "broker": free_port()}
        self.dirs = {"controller": [controller_dir], "broker": list(dirs)}
        for node, path in enumerate(others, 2):
            self.ports[f"broker-{node}"], self.dirs[f"broker-{node}"] = free_port(), [path]
        self.metadata, self.user, self.combined = metadata, user, combined
        self.configs = configs
        self.others_first, self.later = others_first, later
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.edited: set[str] = set()
        """The roles whose properties files are there, and stay as they are."""

    def __enter__(self) -> Cluster:
        nodes = [*self.ports]
        others = [role for role in nodes if role not in ("controller", "broker")]
        first, last = (others, ["broker"]) if self.others_first else (["broker"], others)
        for role in ("controller", *first, *last):
            if role == "controller" and self.combined:
                continue
            if role in last and others:
                self._wait_for(first)
            if role not in self.later:
                self.start_node(role)
        return self

    def start_node(self, role: str) -> None:
        """Start the process of a node."""
        if role not in self.edited:
            self.write_properties(role)
        with (self.work / f"{role}.log").open("wb") as log:
            command = self.command(role)
            user = self.user if role == "broker" else None
            self.processes[role] = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.work,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )

    def write_properties(self, role: str) -> Path:
        """Write the properties file of a node, and return its path."""
        path = self.work / f"{role}.properties"
        path.write_text(self._properties([*self.ports].index(role), role))
        return path

    def format_disks(self, cluster_id: str = "", *roles: str, options: Sequence[str] = ()) -> None:
        """Format the log directories of these nodes, or of all; without `cluster_id`, for a new cluster. `options`: of
        kafka-storage.sh."""
        while not cluster_id or cluster_id.startswith("-"):  # which is an option then: Uuid.randomUuid has none
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        for role in roles or [role for role in self.ports if not (self.combined and role == "controller")]:
            path = self.work / f"{role}.properties" if role in self.edited else self.write_properties(role)
            self.java_run("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(path), *options)

    def command(self, role: str) -> list[str]:
        """Return the command that starts a process with its properties file."""
        return self.java("kafka.Kafka", str(self.work / f"{role}.properties"))

    def _properties(self, node: int, role: str) -> str:
        roles, voter, controller = role.split("-")[0], 0, self.ports["controller"]
        kind = roles
        if self.combined:
            roles, voter, kind = "broker,controller", node, "combined"
        dirs = ",".join(map(str, self.dirs[role]))
        text = COMMON.format(node=node, roles=roles, voter=voter, port=controller, dirs=dirs)
        if role == "broker" and self.metadata is not None:
            text += f"metadata.log.dir={self.metadata}\n"
        if role == "broker":
            text += self.configs
        return text + LISTENERS[kind].format(port=self.ports[role], controller=controller)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def java(self, name: str, *arguments: str, heap: str = "500m") -> list[str]:
        options = [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *LOGGING]
        return ["java", *options, "-cp", classpath(self.jars), name, *arguments]

    def log(self, role: str) -> list[str]:
        """Return the lines logged so far; the temporary directory is replaced with an ellipsis."""
        text = (self.work / f"{role}.log").read_text(errors="replace")
        return said(text.replace(f"{self.work}/", "…/"))

    def ended(self, role: str) -> bool:
        return self.processes[role].poll() is not None

    def started(self) -> bool:
        """Wait for startup. Returns True if both are up, False if one has exited or takes too long."""
        until = time.monotonic() + self.start_seconds
        brokers = [role for role in [*self.ports][1:] if role not in self.later]
        while time.monotonic() < until:
            time.sleep(0.3)
            if any(map(self.ended, self.processes)):
                return False
            if all(map(self._is_up, brokers)):
                time.sleep(2)
                return not any(map(self.ended, brokers))
        return False

    def _is_up(self, role: str) -> bool:
        return any(map(STARTED.search, self.log(role)))

    def _wait_for(self, roles: Sequence[str]) -> None:
        """Wait until brokers are up, and lead what they can, or have exited."""
        until = time.monotonic() + self.start_seconds
        while time.monotonic() < until and not all(self._is_up(role) or self.ended(role) for role in roles):
            time.sleep(0.3)
        time.sleep(LEADING_SECONDS)

    def tool(self, name: str, *arguments: str, timeout: float = 60) -> tuple[str, str]:
        command = self.java(TOOL + name, "--bootstrap-server", f"127.0.0.1:{self.ports['broker']}", *arguments)
        with contextlib.suppress(subprocess.TimeoutExpired):
            result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)
            return result.stdout, result.stderr
        return "", "the tool does not end"

    def java_run(self, *arguments: str, timeout: float = 300) -> str:
        done = subprocess.run(self.java(*arguments), capture_output=True, text=True, check=False, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stdout[-1000:]}{done.stderr[-3000:]}")
        return done.stdout

    def alive(self) -> str:
        """Return the address of a broker that is up."""
        return f"127.0.0.1:{self.ports['broker']}"

    def configure_topic(self, topic: str, config: str) -> None:
        arguments = ["--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", config]
        self.java_run(config_command(self.jars), "--bootstrap-server", self.alive(), *arguments)

    def ends(self, when: str = "latest", *topic: str) -> dict[str, int]:
        """Return an offset of each partition that the broker serves: latest, earliest, or at a timestamp."""
        out, _ = self.tool("GetOffsetShell", "--time", when, *(f"--topic={name}" for name in topic))
        found = re.findall(r"^(\S+):(\d+):(-?\d*)$", out, re.MULTILINE)
        return {f"{name}-{number}": int(offset) for name, number, offset in found if offset}

    def consume(self, partition: str, start: str = "earliest", committed: bool = False, limit: int = 0) -> Reading:
        topic, _, number = partition.rpartition("-")
        arguments = ["--topic", topic, "--partition", number, "--offset", start, "--timeout-ms", str(IDLE_MS)]
        for option in ("print.offset=true", "print.value=false"):
            arguments += ["--formatter-property", option]
        if committed:
            arguments += ["--isolation-level", "read_committed"]
        if limit:
            arguments += ["--max-messages", str(limit)]
        out, err = self.tool("consumer.ConsoleConsumer", *arguments)
        lines = [
            line for line in said(err) if re.match(r"\[?\w*\]?\s*(WARN|ERROR)|[\w.$]+(Exception|Error)|Caused", line)
        ]
        quiet = [line for line in lines if "TimeoutException" not in line]
        if len(quiet) < len(lines):
            quiet = [line for line in quiet if "terminating consumer process" not in line]
        return Reading([int(offset) for offset in re.findall(r"^Offset:(\d+)", out, re.MULTILINE)], quiet)
