"""Finds a broker's log directories, if none are given: those of a running broker, else those in the usual places.

Source: kafka-run-class.sh and kafka.Kafka.getPropsFromArgs (the file, then --override name=value); the defaults of
config/*.properties and of the images in docs/carry.md.
"""

from __future__ import annotations

import glob
import os
from itertools import pairwise
from typing import NamedTuple

from kdump.format.count_text import count_text
from kdump.kafka.server_properties import ServerProperties, read_properties
from kdump.log.errors import SourceError
from kdump.log.log_directory import META

PROC = "/proc"
MAIN = ("kafka.Kafka", "kafka.docker.KafkaDockerWrapper", "io.confluent.support.metrics.SupportedKafka")
"""Main classes of a broker. In apache/kafka-native the program has the first name."""
OVERRIDE = "--override"
DEFAULT_LOG_DIR = "/tmp/kafka-logs"
"""Kafka's default of log.dir (ServerLogConfigs.LOG_DIR_DEFAULT)."""
MAX_ARGUMENTS = 1 << 20
"""Maximum bytes that are read of a process's command line."""
PLACES = (
    *("/var/lib/kafka", "/var/lib/kafka/data*", "/var/lib/kafka/data*/kafka-log*", "/var/lib/kafka-logs"),
    *("/mnt/data/data*/logs", "/bitnami/kafka/data", "/var/kafka-logs", "/opt/kafka/data", "/data/kafka*", "/kafka*"),
    *("/tmp/kafka-logs", "/tmp/kraft-combined-logs", "/tmp/kraft-broker-logs", "/tmp/kraft-controller-logs"),
)
"""Patterns of the directories that packages, images and operators use."""


class FoundLogDirectories(NamedTuple):
    """`directories`: log directories; `why`: where they were found; `server`: the broker's server.properties, if its
    paths are those of this process."""

    directories: tuple[str, ...]
    why: str
    server: ServerProperties | None = None


class _Broker(NamedTuple):
    """A running broker. `root`: what precedes its paths, empty if it sees the same files; `file`: its
    server.properties; None if it has none."""

    process: int
    root: str
    file: str | None
    overrides: dict[str, str]


def find_log_directories(root: str = "") -> FoundLogDirectories:
    """Return the log directories on this machine. `root`: what precedes every path. Raises SourceError if there are
    none, or if it is not clear which: those of several brokers."""
    brokers = [each for name in _numbers(f"{root}{PROC}") if (each := _broker(f"{root}{PROC}/{name}", int(name)))]
    if len(brokers) > 1:
        ids = ", ".join(str(each.process) for each in brokers)
        raise SourceError(f"{len(brokers)} brokers are running (processes {ids}): pass the log directories of one")
    if brokers:
        return _of_broker(brokers[0])
    found = sorted({path for place in PLACES for path in glob.glob(root + place) if _is_log_directory(path)})
    if not found:
        raise SourceError(
            f"no path given, no broker is running, and no log directory in {root}/var/lib/kafka or another usual place:"
            " pass the directories in log.dirs"
        )
    return FoundLogDirectories(tuple(found), f"with {META}, in the usual places; no broker is running")


def _of_broker(broker: _Broker) -> FoundLogDirectories:
    what = f"the running broker (process {broker.process})"
    values: dict[str, str] = {}
    if broker.file is not None:
        try:
            values = read_properties(broker.file).values
        except SourceError as error:
            raise SourceError(f"log.dirs of {what}: {error}; run as its user, or pass its log directories") from None
    values = {**values, **broker.overrides}
    server = ServerProperties(broker.file or OVERRIDE, values)
    named = server.stated_log_dirs or [DEFAULT_LOG_DIR]
    named += [own for own in server.words("metadata.log.dir") if own not in named]
    directories = tuple(os.path.join(broker.root or "/", each.lstrip("/")) for each in named)
    missing = [path for path in directories if not os.path.isdir(path)]
    if len(missing) == len(directories):
        raise SourceError(f"log.dirs of {what}: {missing[0]}: no such directory, or not readable: run as its user")
    note = f", of which {count_text(len(missing), 'is', 'are')} missing: {', '.join(missing)}" if missing else ""
    why = f"log.dirs of {what}, {server.path}{note}"
    return FoundLogDirectories(
        tuple(each for each in directories if each not in missing), why, None if broker.root else server
    )


def _broker(place: str, process: int) -> _Broker | None:
    """Return the broker that a process is; None if it is none, has ended, or is another user's."""
    try:
        with open(f"{place}/cmdline", "rb") as line:
            words = [os.fsdecode(word) for word in line.read(MAX_ARGUMENTS).split(b"\0")]
        at = next((number for number, word in enumerate(words) if os.path.basename(word) in MAIN), None)
        if at is None or os.path.basename(words[0]) not in ("java", *MAIN):
            return None
        directory, shares = os.readlink(f"{place}/cwd"), _mounts(place) == _mounts(f"{os.path.dirname(place)}/self")
    except OSError:
        return None
    root = "" if shares else f"{place}/root"
    rest = words[at + 1 :]
    overrides = dict(word.split("=", 1) for before, word in pairwise(rest) if before == OVERRIDE and "=" in word)
    file = next((word for word in rest if word.endswith(".properties")), None)
    if file is not None:
        file = f"{root}{os.path.join(directory, file)}"
    return _Broker(process, root, file, overrides)


def _mounts(place: str) -> tuple[str, str]:
    """Return what a process's paths depend on: its mount namespace and its root directory."""
    return os.readlink(f"{place}/ns/mnt"), os.readlink(f"{place}/root")


def _numbers(proc: str) -> list[str]:
    try:
        return sorted((name for name in os.listdir(proc) if name.isdigit()), key=int)
    except OSError:
        return []


def _is_log_directory(path: str) -> bool:
    return os.path.isfile(os.path.join(path, META))
