"""Brokers that are running on this machine, as far as /proc shows them: in containers, too.

Source: kafka-run-class.sh and kafka.Kafka.getPropsFromArgs (the file, then --override name=value)."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import NamedTuple

from kdump.io.errors import SourceError
from kdump.kafka.server_properties import ServerProperties, read_properties

PROC = "/proc"
MAIN = ("kafka.Kafka", "kafka.docker.KafkaDockerWrapper", "io.confluent.support.metrics.SupportedKafka")
"""Main classes of a broker. In apache/kafka-native the program has the first name."""
OVERRIDE = "--override"
DEFAULT_LOG_DIR = "/tmp/kafka-logs"
"""Kafka's default of log.dir (ServerLogConfigs.LOG_DIR_DEFAULT)."""
MAX_ARGUMENTS = 1 << 20
"""Maximum bytes that are read of a process's command line."""


class RunningBroker(NamedTuple):
    """A process. `root`: what precedes its paths, empty if it sees the same files; `directory`: the current one;
    `file`: its server.properties; None if it has none; `is_denied`: this process may not see any of them."""

    process: int
    root: str
    directory: str
    file: str | None
    overrides: dict[str, str]
    is_denied: bool = False

    @property
    def name(self) -> str:
        return f"the running broker (process {self.process})"

    def properties(self) -> ServerProperties:
        """Return its configuration, with paths that lead to its files from here. Raises SourceError."""
        if self.is_denied:
            raise SourceError("this user may not see its files: run as its user, or as root with CAP_SYS_PTRACE")
        server = ServerProperties(OVERRIDE, {}) if self.file is None else read_properties(self.file)
        server = server.overridden(self.overrides)
        if not server.stated_log_dirs:
            server = server.overridden({"log.dir": DEFAULT_LOG_DIR})
        return server.seen_from(self.directory, self.root)


def running_brokers(root: str = "") -> list[RunningBroker]:
    """Return the brokers whose command lines can be read. `root`: what precedes every path."""
    brokers = (_broker(f"{root}{PROC}/{name}", int(name)) for name in _numbers(f"{root}{PROC}"))
    return [broker for broker in brokers if broker is not None]


def _broker(place: str, process: int) -> RunningBroker | None:
    """Return the broker that a process is; None if it is none, or has ended."""
    try:
        with open(f"{place}/cmdline", "rb") as line:
            words = [os.fsdecode(word) for word in line.read(MAX_ARGUMENTS).split(b"\0")]
        at = next((number for number, word in enumerate(words) if os.path.basename(word) in MAIN), None)
        if at is None or os.path.basename(words[0]) not in ("java", *MAIN):
            return None
        directory, shares = os.readlink(f"{place}/cwd"), _mounts(place) == _mounts(f"{os.path.dirname(place)}/self")
    except PermissionError:
        return RunningBroker(process, "", "", None, {}, is_denied=True)
    except OSError:
        return None
    root = "" if shares else f"{place}/root"
    rest = words[at + 1 :]
    overrides = dict(word.split("=", 1) for before, word in pairwise(rest) if before == OVERRIDE and "=" in word)
    file = next((word for word in rest if word.endswith(".properties")), None)
    if file is not None:
        file = f"{root}{os.path.join(directory, file)}"
    return RunningBroker(process, root, directory, file, overrides)


def _mounts(place: str) -> tuple[str, str]:
    """Return what a process's paths depend on: its mount namespace and its root directory."""
    return os.readlink(f"{place}/ns/mnt"), os.readlink(f"{place}/root")


def _numbers(proc: str) -> list[str]:
    try:
        return sorted((name for name in os.listdir(proc) if name.isdigit()), key=int)
    except OSError:
        return []
