"""A node's server.properties: its roles, directories and defaults, which no log directory states.

Source: java.util.Properties.load; ConfigDef.parseType, which trims values; AbstractKafkaConfig (logDirs,
metadataLogDir), KafkaConfig.processRoles."""

from __future__ import annotations

__lazy_modules__ = {"kdump.format.java_properties"}

import os
import re
from typing import NamedTuple

from kdump.format.java_properties import properties
from kdump.format.numbers import parse_int
from kdump.io.directory_listing import real_path
from kdump.io.errors import SourceError, reason

MAX_BYTES = 1 << 20
"""Maximum size of such a file in bytes."""
DIRECTORIES = ("log.dirs", "log.dir", "metadata.log.dir")
VOTERS = "controller.quorum.voters"
PROVIDED = re.compile(r"\$\{[^}]*\}")
"""What a config provider replaces, ${env:NAME}, or a script of an image, ${NAME} (AbstractConfig.CONFIG_PROVIDERS)."""


class ServerProperties(NamedTuple):
    """The file's names and values, without secrets. `unresolved`: names whose values a config provider completes when
    the broker starts, which are not among the values; `repeated`: names with several values, of which the last one
    counts."""

    path: str
    values: dict[str, str]
    unresolved: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    def words(self, name: str) -> list[str]:
        """Return the values of a list; none if it is not set."""
        return [word for part in self.values.get(name, "").split(",") if (word := part.strip())]

    def paths(self, name: str) -> list[str]:
        """Return the paths in a list; those with a part that a config provider completes if they exist."""
        return [path for word in self.words(name) for path in (_matches(word) if "${" in word else (word,))]

    def overridden(self, values: dict[str, str]) -> ServerProperties:
        """Return these properties with other values of some names."""
        return self._replace(values={**self.values, **_shown(values)})

    def seen_from(self, directory: str, root: str) -> ServerProperties:
        """Return these properties with paths that lead from here to where they lead a process. `directory`: its current
        directory; `root`: what precedes its paths."""
        named = {name: self.words(name) for name in DIRECTORIES if name in self.values}
        joined = {
            name: ",".join(root + os.path.join(directory, path) for path in paths) for name, paths in named.items()
        }
        return self._replace(values={**self.values, **joined})

    @property
    def roles(self) -> frozenset[str] | None:
        """process.roles; None if the file does not set it, as with ZooKeeper."""
        return frozenset(self.words("process.roles")) or None

    @property
    def node_id(self) -> int | None:
        """node.id, or broker.id; None if the file sets neither, or -1, for which a broker takes a free one."""
        number = parse_int(self.values.get("node.id") or self.values.get("broker.id", ""))
        return None if number is None or number < 0 else number

    @property
    def voters(self) -> frozenset[int]:
        """The node IDs in controller.quorum.voters, ID@HOST:PORT each; empty if it is not set or not known."""
        numbers = [parse_int(word.partition("@")[0]) for word in self.words(VOTERS)]
        return frozenset(number for number in numbers if number is not None) if None not in numbers else frozenset()

    @property
    def stated_log_dirs(self) -> list[str]:
        """log.dirs, else log.dir, as the file has them."""
        return self.paths("log.dirs") or self.paths("log.dir")

    @property
    def log_dirs(self) -> list[str]:
        """The real paths of log.dirs, of which the first is metadata.log.dir, unless that is set."""
        return [real_path(path) for path in self.stated_log_dirs]

    @property
    def metadata_log_dir(self) -> str | None:
        """The real path of metadata.log.dir; None if it is not known."""
        own = self.paths("metadata.log.dir")
        return real_path(own[0]) if own else next(iter(self.log_dirs), None)

    def names(self, path: str) -> bool:
        """Return True if a directory is one of the node's."""
        return real_path(path) in (*self.log_dirs, self.metadata_log_dir)

    def has_logs(self, path: str) -> bool:
        """Return True if the node loads logs from a directory: it is a broker, and this is one of its log.dirs."""
        return self.is_broker and real_path(path) in self.log_dirs

    @property
    def is_broker(self) -> bool:
        return self.roles is None or "broker" in self.roles


def read_properties(path: str) -> ServerProperties:
    """Return what the file states; of duplicate names, the last one wins. Raises SourceError if the file cannot be
    read, is too large, is binary, or has a bad escape, with which no broker starts."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError.at(path, reason(error, path)) from None
    if len(data) > MAX_BYTES or b"\0" in data:
        raise SourceError.at(path, f"not a properties file: {'too large' if len(data) > MAX_BYTES else 'binary'}")
    stated: dict[str, str] = {}
    repeated = []
    for line in properties(data):
        if line.problem:
            raise SourceError.at(path, f"not a properties file: byte {line.position}: {line.problem}")
        if line.values:
            name, value = line.values["name"], line.values["value"].strip()
            if stated.setdefault(name, value) != value:
                repeated.append(name)
            stated[name] = value
    from kdump.state.secrets import is_secret  # ls starts without

    unresolved = tuple(name for name, value in stated.items() if "${" in value and not is_secret(name))
    values = {name: value for name, value in stated.items() if name not in unresolved or name in DIRECTORIES}
    return ServerProperties(path, _shown(values), unresolved, tuple(dict.fromkeys(repeated)))


def client_properties(path: str) -> dict[str, str]:
    """Return what the configuration of a client states, secrets included. Raises SourceError."""
    try:
        with open(path, "rb") as file:
            lines = list(properties(file.read(MAX_BYTES)))
    except OSError as error:
        raise SourceError.at(path, reason(error, path)) from None
    bad = next((line for line in lines if line.problem), None)
    if bad is not None:
        raise SourceError.at(path, f"not a properties file: byte {bad.position}: {bad.problem}")
    return {line.values["name"]: line.values["value"].strip() for line in lines if line.values}


def _shown(values: dict[str, str]) -> dict[str, str]:
    from kdump.state.secrets import is_secret

    return {name: value for name, value in values.items() if not is_secret(name)}


def _matches(path: str) -> list[str]:
    """Return the directories that a path may be, of which a config provider completes parts."""
    import glob

    return sorted(glob.glob("*".join(map(glob.escape, PROVIDED.split(path)))))
