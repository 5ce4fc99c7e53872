"""A node's server.properties next to its disks: where it is, and what on the disks contradicts it; and the brokers that
are running on this machine, as far as /proc shows them: in containers, too.

Source: the Dockerfiles and start scripts of the images in docs/kubernetes.md; AbstractKafkaConfig.logDirs;
MetaPropertiesEnsemble.verify; kafka-run-class.sh and kafka.Kafka.getPropsFromArgs (the file, then --override
name=value)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, NamedTuple

from kdump.answer import Doc, PathText, answer
from kdump.cluster.disks import Disks
from kdump.io import file_system
from kdump.io.directory_listing import is_url, real_path
from kdump.io.errors import SourceError
from kdump.kafka.quorum_state import quorum_state
from kdump.kafka.server_properties import VOTERS, ServerProperties, read_properties
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import META, LogDirectory

PROC = "/proc"
MAIN = ("kafka.Kafka", "kafka.docker.KafkaDockerWrapper", "io.confluent.support.metrics.SupportedKafka")
"""Main classes of a broker. In apache/kafka-native the program has the first name."""
OVERRIDE = "--override"
DEFAULT_LOG_DIR = "/tmp/kafka-logs"
"""Kafka's default of log.dir (ServerLogConfigs.LOG_DIR_DEFAULT)."""
MAX_ARGUMENTS = 1 << 20
"""Maximum bytes that are read of a process's command line."""


BESIDE = ("server.properties", "kafka.properties", "config/server.properties", "config/kraft/server.properties")
"""Where the file may be in a log directory or in one of the two above it."""
PLACES = (
    *("/tmp/strimzi.properties", "/opt/kafka/custom-config/server.config"),  # Strimzi: as started, and as generated
    *("/opt/confluentinc/etc/kafka/kafka.properties", "/opt/bitnami/kafka/config/server.properties"),
    *("/etc/kafka/kafka.properties", "/etc/kafka/server.properties", "/etc/kafka/kraft/server.properties"),
    *("/opt/kafka/config/server.properties", "/opt/kafka/config/kraft/server.properties"),
)
"""Where operators, images and packages have the file."""
GIVEN = "--properties"
OF_NODE = ("node.id", "broker.id", "process.roles", VOTERS, *("log.dirs", "log.dir", "metadata.log.dir"))


@answer("serverProperties")
@dataclass
class NodeConfiguration:
    """A node's server.properties, as far as it is known here."""

    path: Annotated[PathText, Doc("the file")]
    why: Annotated[str, Doc("why it is taken: --properties, or where it was found")]
    nodeId: Annotated[int | None, Doc("node.id or broker.id; null if it is not set or not known")]
    roles: Annotated[list[str], Doc("process.roles; empty if it is not set or not known")]
    logDirs: Annotated[list[PathText], Doc("log.dirs")]
    metadataLogDir: Annotated[PathText | None, Doc("metadata.log.dir, or the first of log.dirs")]
    unresolved: Annotated[list[str], Doc("names whose values config providers complete: they are not known")]
    contradictions: Annotated[list[str], Doc("what on the disks contradicts it")] = field(default_factory=list)

    @property
    def is_given(self) -> bool:
        return self.why == GIVEN


class PropertiesSearch:
    """Looks for the server.properties of each node whose disks are at the paths of a command: the first one that names
    one of its log directories. `root`: what precedes all other paths."""

    def __init__(self, paths: Iterable[str], disks: Disks, root: str = "") -> None:
        self.paths = sorted(paths, key=real_path)
        self.disks, self.root = disks, root
        self._unreadable: list[str] = []

    @property
    def unreadable(self) -> list[str]:
        """Why files cannot be read that may be the one of a node."""
        return [*dict.fromkeys(self._unreadable)]

    def find(self) -> list[tuple[ServerProperties, str]]:
        """Return the file of each node that has one, and where it was found; none if the disks are in bundles or
        stores."""
        if any(each == "-" or is_url(each) or file_system.tree_at(each) is not None for each in self.paths):
            return []
        nodes = [sorted(each.path for each in node.directories) for node in self.disks.nodes]
        if not nodes:  # partitions, or segments
            above = [each for path in self.paths for each in _above(path)]
            nodes = [sorted({each for each in above if os.path.isfile(os.path.join(each, META))})]
        found = []
        for directories in filter(None, nodes):
            candidates = self._candidates(directories)
            found.append(next((each for each in candidates if any(map(each[0].names, directories))), None))
        return [each for each in found if each is not None]

    @cached_property
    def _running(self) -> list[RunningBroker]:
        return [each for each in running_brokers(self.root) if not each.is_denied]

    def _candidates(self, directories: list[str]) -> Iterator[tuple[ServerProperties, str]]:
        for broker in self._running:
            try:
                yield _named_as(broker.properties(), directories), f"of {broker.name}"
            except SourceError as error:
                self._unreadable.append(f"configuration of {broker.name}: {error}")
        near = dict.fromkeys(above for each in directories for above in (real_path(each), *_above(each)))
        for path in (os.path.join(above, name) for above in near for name in BESIDE):
            try:
                yield read_properties(path), "next to the log directory"
            except SourceError as error:
                if os.path.lexists(path):
                    self._unreadable.append(str(error))
        for place in PLACES:
            with suppress(SourceError):
                yield read_properties(self.root + place), "in a usual place"


def _above(path: str) -> tuple[str, str]:
    above = os.path.dirname(real_path(path))
    return above, os.path.dirname(above)


def _named_as(server: ServerProperties, directories: list[str]) -> ServerProperties:
    """Return the properties of a process with these names of its directories where they are the same ones: a container
    may have mounted the disk at another path."""
    names = {}
    for path in directories:
        with suppress(OSError):
            status = os.stat(path)
            names[status.st_dev, status.st_ino] = path
    values = dict(server.values)
    for name in ("log.dirs", "log.dir", "metadata.log.dir"):
        if name in values:
            values[name] = ",".join(_named(path, names) for path in server.paths(name))
    return server._replace(values=values)


def _named(path: str, names: dict[tuple[int, int], str]) -> str:
    with suppress(OSError):
        status = os.stat(path)
        return names.get((status.st_dev, status.st_ino), path)
    return path


def configure(
    disks: Disks, paths: Iterable[str], given: ServerProperties | None
) -> tuple[list[NodeConfiguration], list[str]]:
    """Let the disks use the server.properties of their nodes: the given one, else those that are found. Return what is
    known of each, and why files cannot be read that may be one."""
    search = PropertiesSearch(paths, disks)
    found = search.find() if given is None else [(given, GIVEN)]
    if found:
        disks.configure([server for server, _ in found])
    return [configuration(*each, disks) for each in found], search.unreadable


def configuration(server: ServerProperties, why: str, disks: Disks) -> NodeConfiguration:
    """Return what is known of a node's configuration, and what on the disks contradicts it."""
    return NodeConfiguration(
        server.path,
        why,
        server.node_id,
        sorted(server.roles or ()),
        server.stated_log_dirs,
        next(iter((*server.paths("metadata.log.dir"), *server.stated_log_dirs)), None),
        [name for name in server.unresolved if name in OF_NODE or name.startswith("log.")],
        list(_contradictions(server, disks)),
    )


def _contradictions(server: ServerProperties, disks: Disks) -> Iterator[str]:
    directories = disks.directories
    named = [each for each in directories if server.names(each.path)]
    for name in server.repeated:
        if name in OF_NODE or name.startswith("log."):
            yield f"{server.path} sets {name} several times; the last one counts"
    nodes = {each.path: disks.ids(each).get("node.id") for each in (named or directories)}
    if server.node_id is not None:
        for path, number in nodes.items():
            if number not in (None, str(server.node_id)):
                yield f"{os.path.join(path, META)} has node.id {number}, {server.path} {server.node_id}"
    clusters = {cluster: each.path for each in named if (cluster := disks.ids(each).get("cluster.id")) is not None}
    if len(clusters) > 1:
        yield "log.dirs has directories of several clusters: " + ", ".join(
            f"{at} of {id}" for id, at in clusters.items()
        )
    if not named:
        return
    examined = {real_path(each.path) for each in directories}
    for path in dict.fromkeys((*server.stated_log_dirs, *server.paths("metadata.log.dir"))):
        if not os.path.isdir(path):
            yield f"{path}, which {server.path} names, does not exist"
        elif real_path(path) not in examined:
            empty = _is_empty(path)
            what = "is empty: it is new, or nothing is mounted there" if empty else "is not examined: pass it, too"
            yield f"{path}, which {server.path} names, {what}"
    own = disks.node_of(named[0]).directories
    yield from _other_voters(server, disks, own)
    for each in own:
        if not server.names(each.path):
            yield f"{each.path} has the IDs of this node, but {server.path} does not name it: the node does not read it"
    metadata = [each.path for each in own if os.path.isdir(os.path.join(each.path, METADATA_LOG))]
    if server.metadata_log_dir is not None and metadata and server.metadata_log_dir not in map(real_path, metadata):
        yield f"metadata.log.dir is {server.metadata_log_dir}, which has no metadata log; {metadata[0]} has one"


def _other_voters(server: ServerProperties, disks: Disks, own: list[LogDirectory]) -> Iterator[str]:
    if not server.voters:
        return
    stated = [quorum_state(os.path.join(each.path, METADATA_LOG)).voters for each in own]
    voters = frozenset(number for each in stated for number in each or ())
    metadata = disks.newest_metadata(*(each.path for each in own))[1]
    counts, where = "", "quorum-state"
    if metadata is not None and (metadata.kraft_version or not voters):
        voters, where = frozenset(metadata.voters), "the metadata"
        counts = ", which count" if metadata.kraft_version else ""
    if voters and voters != server.voters:
        named, known = (", ".join(map(str, sorted(each))) for each in (server.voters, voters))
        yield f"{VOTERS} in {server.path} has the nodes {named}, {where} the voters {known}{counts}"


def _is_empty(path: str) -> bool:
    with suppress(OSError), os.scandir(path) as entries:
        return not any(entry.name != "lost+found" for entry in entries)
    return False


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
