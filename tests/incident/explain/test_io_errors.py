"""Every error of the operating system, as Java throws it, of every kind of file that Kafka has, with each operation:
the reason, the files and the operation decide what it is, and never the line around it or its class alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

import click
import pytest

from kdump.cli import cli, command_of
from kdump.incident.explain.answer import Explanation
from kdump.incident.explain.broker_paths import is_windows
from kdump.incident.explain.catalogue import by_error, messages
from kdump.incident.explain.io_errors import CLASS_REASONS, io_error, key_of
from kdump.incident.explain.run import explain_text
from kdump.problems.catalogue import conditions, fact_clauses
from tests.conftest import SEED, sample
from tests.each_case import each_case

UUID = "9d271740a25e45aba27820dbfe632ce6"
SEGMENT = f"{0:020}"
IN_PARTITION = (
    *(f"{SEGMENT}.{suffix}" for suffix in ("log", "index", "timeindex", "txnindex")),
    *(f"{SEGMENT}.{suffix}" for suffix in ("log.swap", "index.cleaned", "index.swap", "log.gz")),
    "leader-epoch-checkpoint",
    "leader-epoch-checkpoint.tmp",
    "partition.metadata",
    "partition.metadata.tmp",
)
AT_ROOT = (
    *("", ".lock", ".kafka_cleanshutdown", "bootstrap.checkpoint", "meta.properties", "meta.properties.tmp"),
    *("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"),
    *("recovery-point-offset-checkpoint.tmp", "replication-offset-checkpoint.tmp", "log-start-offset-checkpoint.tmp"),
    *("cleaner-offset-checkpoint", "cleaner-offset-checkpoint.tmp"),
)
FILES = {
    **{f"orders-0/{name}": "file" for name in IN_PARTITION},
    **dict.fromkeys(AT_ROOT, "log directory"),
    "__cluster_metadata-0/quorum-state": "file",
    "__cluster_metadata-0/quorum-state.tmp": "file",
    "__cluster_metadata-0": "partition directory",
    "__cluster_metadata-0/00000000000000000010-0000000001.checkpoint": "file",
    "__cluster_metadata-0/00000000000000000010-0000000001.checkpoint.part": "file",
    "__cluster_metadata-0/00000000000000000010-0000000001.checkpoint.deleted": "deleted",
    "remote-log-index-cache/10_AN96DRb6S3GeSIQS03itlw.index": "file",
    "orders-0/00000000000000000010.snapshot": "producer snapshot",
    "orders-0": "partition directory",
    "my.topic-with-17-3": "partition directory",
    f"orders-0/{SEGMENT}.log.deleted": "deleted",
    f"orders-0/{SEGMENT}.snapshot.deleted": "deleted",
    f"orders-0.{UUID}-delete": "deleted",
    f"orders-0.{UUID}-delete/{SEGMENT}.log": "deleted",
    f"orders-0.{UUID}-stray": "partition directory",
    f"orders-0.{UUID}-future": "partition directory",
    f"orders-0.{UUID}-future/{SEGMENT}.timeindex": "file",
}
"""Every kind of file in a log directory, and what it counts as."""
OUTSIDE = ("/opt/kafka/config/server.properties", "/etc/ssl/broker.keystore.jks", "/opt/kafka/logs/server.log")
DIRECTORIES = ("/data", "/var/lib/kafka/disk-1", "/srv/o'brien's disk", "C:\\kafka\\data", "\\\\server\\share\\kafka")
LINES = {
    "write": "Error while writing to checkpoint file {file}",
    "force": "Error while flushing log for {partition} in dir {directory} with offset 39 and recovery point 3",
    "read": "Error while reading checkpoint file {file}",
    "delete": "Error while deleting segments for {partition} in dir {directory}",
    "append": "Error while appending records to {partition} in dir {directory}",
    "stop": "Stopping serving logs in dir {directory}",
    "load": "Error while loading log dir {directory}",
    "clean": "Failed to clean up log for {partition} in dir {directory} due to IOException",
}
"""What Kafka logs around the exception, by operation."""
ALWAYS = {
    "no-space-left": ("No space left on device", "Disk quota exceeded", "There is not enough space on the disk"),
    "too-many-open-files": ("Too many open files", "Too many open files in system"),
    "input-output-error": (
        *(
            "Input/output error",
            "Structure needs cleaning",
            "No such device",
            "No such device or address",
            "sync failed",
        ),
        *("Data error (cyclic redundancy check)", "The device is not ready"),
        "The request could not be performed because of an I/O device error",
    ),
    "network-file-system-lost": (
        *("Stale file handle", "Stale NFS file handle", "Transport endpoint is not connected", "Host is down"),
        *("Remote I/O error", "Software caused connection abort", "The network path was not found"),
        "The specified network name is no longer available",
    ),
    "memory-map-failed": ("Map failed", "Cannot allocate memory"),
    "file-system-without-locks": (
        *("Invalid argument", "No locks available", "Operation not supported", "Function not implemented"),
        "Resource temporarily unavailable",
    ),
    "file-in-use-on-windows": (
        "The process cannot access the file because it is being used by another process",
        "The process cannot access the file because another process has locked a portion of the file",
        "The requested operation cannot be performed on a file with a user-mapped section open",
    ),
    "file-type-unexpected": (
        *("Is a directory", "Not a directory", "Too many levels of symbolic links", "The directory name is invalid"),
    ),
    "file-busy": ("Device or resource busy", "Text file busy"),
    "rename-across-file-systems": (
        *("Invalid cross-device link", "The system cannot move the file to a different disk drive"),
    ),
    "file-too-large": ("File too large",),
    "file-name-too-long": ("File name too long",),
    "channel-closed": ("channel closed",),
}
"""The reasons that mean the same of every file."""
MISSING = (
    *("No such file or directory", "The system cannot find the file specified"),
    "The system cannot find the path specified",
)
EXISTS = ("File exists", "Cannot create a file when that file already exists")
NOT_EMPTY = ("Directory not empty", "The directory is not empty")
DENIED = ("Permission denied", "Access is denied")
NOT_PERMITTED = ("Operation not permitted",)
READ_ONLY = ("Read-only file system", "The media is write protected")
BY_FILE = (*MISSING, *EXISTS, *NOT_EMPTY, *DENIED, *NOT_PERMITTED, *READ_ONLY)
OF_MISSING = {
    "deleted": "deleted-file-gone",
    "log directory": "log-directory-gone",
    "producer snapshot": "producer-snapshot-gone",
    "partition directory": "partition-directory-gone",
    "file": "file-not-found",
    "outside": "file-outside-missing",
}


class Case(NamedTuple):
    """A file with an error. `new`: the name that it was to get; `kind`: what the file counts as."""

    directory: str
    file: str
    kind: str
    new: str
    reason: str

    @property
    def expected(self) -> str:
        for name, reasons in ALWAYS.items():
            if self.reason in reasons:
                return "no-space-left-outside" if (name, self.kind) == ("no-space-left", "outside") else name
        has_suffix = self.new.endswith(("-delete", "-future", "-stray"))
        if self.reason in MISSING:
            return OF_MISSING[self.kind]
        if self.reason in DENIED and (is_windows(self.file) or self.reason == "Access is denied"):
            return "access-denied-on-windows"
        if self.reason in (*DENIED, *NOT_PERMITTED) and has_suffix:
            return "directory-rename-refused"
        if self.reason in DENIED:
            return "access-denied-outside" if self.kind == "outside" else "access-denied"
        if self.reason in NOT_PERMITTED:
            return "operation-not-permitted"
        if self.reason in READ_ONLY:
            return "read-only-outside" if self.kind == "outside" else "read-only-file-system"
        if self.new and not has_suffix:
            return "rename-target-exists"
        return "directory-not-emptied" if self.reason in NOT_EMPTY else "file-exists"

    @property
    def thrown(self) -> Iterator[str]:
        """Yield the exceptions that Java throws for it."""
        files = f"{self.file} -> {self.new}" if self.new else self.file
        if self.reason not in ("channel closed", "sync failed", "Map failed"):
            yield f"java.nio.file.FileSystemException: {files}: {self.reason}"
            yield f"java.io.UncheckedIOException: java.nio.file.FileSystemException: {files}: {self.reason}"
            if not self.new:
                yield f"java.io.FileNotFoundException: {self.file} ({self.reason})"
        for name, reason in CLASS_REASONS.items():
            if reason == self.reason and name == "AtomicMoveNotSupportedException":
                yield f"java.nio.file.{name}: {files}: {reason}"
            elif reason == self.reason and name == "FileNotFoundException" and self.new:
                continue
            elif reason == self.reason and name == "FileNotFoundException":
                yield f"java.io.{name}: {self.file} ({reason})"
            elif reason == self.reason and reason == "sync failed":
                yield f"java.io.{name}: {reason}"
            elif reason == self.reason:
                yield f"java.nio.channels.{name}" if reason == "channel closed" else f"java.nio.file.{name}: {files}"


def cases() -> Iterator[Case]:
    directories = cycle(DIRECTORIES)
    number = 0
    for reason in (*(each for reasons in ALWAYS.values() for each in reasons), *BY_FILE):
        for name, kind in FILES.items():
            number += 1
            if reason not in BY_FILE and number % 3:
                continue
            directory = next(directories)
            slash = "\\" if is_windows(directory) else "/"
            path = slash.join((directory, *name.split("/"))) if name else directory
            yield Case(directory, path, kind, "", reason)
            if name.endswith(".tmp"):
                yield Case(directory, path, kind, path.removesuffix(".tmp"), reason)
            elif kind == "file" and name.startswith("orders-0/0"):
                yield Case(directory, path, kind, f"{path}.deleted", reason)
            elif name in ("orders-0", "my.topic-with-17-3"):
                yield Case(directory, path, kind, f"{path}.{UUID}-delete", reason)
            elif name.endswith("-future"):
                yield Case(directory, path, kind, slash.join((directory, "orders-0")), reason)
        for path in OUTSIDE:
            yield Case("", path, "outside", "", reason)


@pytest.mark.sampled
def test_the_table() -> None:
    lines, contexts = cycle(LINES.values()), cycle(range(3))
    wrong, count = [], 0
    for case in sample(list(cases()), 13, "errors of the operating system"):
        for thrown in case.thrown:
            line = "Disk error while locking directory {directory}" if case.file == case.directory else next(lines)
            line = line.format(file=case.file, partition="orders-0", directory=case.directory)
            text = (
                thrown,
                f"[2026-11-24 08:22:38,922] ERROR {line} (k.LogDirFailureChannel)\n{thrown}\n\tat a.B.c(B.java:1)",
                f"ERROR x (k.C)\norg.apache.kafka.common.errors.KafkaStorageException: {line}\nCaused by: {thrown}",
            )[0 if case.kind == "outside" else 1 if case.file == case.directory else next(contexts)]
            count += 1
            found, _ = explain_text(text)
            assert isinstance(found, Explanation)
            files = found.about.get("file"), found.about.get("otherFile", "")
            has_files = thrown.endswith(("Exception", ": sync failed")) or files == (case.file, case.new)
            is_consequence = case.reason == "channel closed" and found.message == "log-directory-failed"
            if (found.message, has_files) != (case.expected, True) and not is_consequence:
                wrong.append((case.expected, found.message, files, text))
            wrong += [("does not run", command, text) for command in found.commands if not parses(command)]
            wrong += [("no log directory", command, text) for command in found.commands if is_of_cache(command)]
    assert wrong == [], f"{len(wrong)} of {count}: {wrong[:5]}"
    assert count > (700 if SEED else 300)


def is_of_cache(command: str) -> bool:
    """Return whether a command of kdump gets the cache of indexes in remote storage, which is no log directory."""
    return command.startswith("kdump") and "remote-log-index-cache" in command


def parses(command: str) -> bool:
    """Return whether kdump's own command line accepts a command; True for commands of others."""
    words = shlex.split(command.partition("|")[0])
    if words[0] != "kdump":
        return "{" not in command or "awk" in command
    try:
        above = click.Context(cli, **cli.context_settings)
        command_of(words[1]).make_context(words[1], words[2:], parent=above)
    except click.UsageError:
        return False
    return True


def test_each_reason_is_in_the_table() -> None:
    reasons = {key_of(each) for each in (*(each for some in ALWAYS.values() for each in some), *BY_FILE)}
    assert reasons == by_error().keys()
    assert all(not each[-1].when for each in by_error().values()), "the last one has no condition"


@each_case(
    "text", ["java.io.IOException: {}", "java.util.concurrent.ExecutionException: java.io.IOException: {}", "{}"]
)
def test_a_reason_without_a_file(text: str) -> None:
    for reasons in by_error().values():
        for reason in reasons[-1].errors:
            if reason != "channel closed":
                found, _ = explain_text(text.format(reason))
                assert isinstance(found, Explanation)
                expected = "access-denied-on-windows" if reason == "Access is denied" else reasons[-1].name
                assert found.message == expected, reason


@each_case(
    "line",
    [
        "java.nio.file.FileSystemException: /data/orders-0: Der Datenträger ist voll",
        "java.io.IOException: Connection to host failed.",
        "java.io.FileNotFoundException: class path resource [a.xml] cannot be opened because it does not exist",
        "java.io.FileNotFoundException: /data/x (Unbekannt)",
        "java.io.IOException: Broken pipe",
        "the disk has no space left on device, says somebody",
        "java.io.IOException",
    ],
)
def test_what_is_not_known_stays_unknown(line: str) -> None:
    assert io_error(line, by_error()) is None


@each_case(
    "line, name, file",
    [
        (
            "mkdir: cannot create directory '/bitnami/kafka/config': Read-only file system",
            "read-only-outside",
            "/bitnami/kafka/config",
        ),
        ("/opt/run.sh: line 12: /opt/kafka/server.properties: Permission denied", "access-denied-outside", None),
        ("tee: /x/y: No space left on device", "no-space-left-outside", "/x/y"),
        ("chown: changing ownership of ‘/data/a b’: Operation not permitted", "operation-not-permitted", "/data/a b"),
        ("bash: /opt/kafka/bin/x.sh: No such file or directory", "file-outside-missing", "/opt/kafka/bin/x.sh"),
    ],
)
def test_programs_of_a_shell(line: str, name: str, file: str | None) -> None:
    found, _ = explain_text(line)
    assert isinstance(found, Explanation)
    assert found.message == name
    assert file in (None, found.about["file"])
    assert all(map(parses, found.commands))


def test_a_suppressed_exception_is_no_cause() -> None:
    text = (
        "ERROR Error while flushing log for orders-0 in dir /d with offset 3 (exclusive) and recovery point 3 (a.B)\n"
    )
    text += "java.io.IOException: Input/output error\n\tat a.B.c(B.java:1)\n"
    text += "\tSuppressed: java.nio.file.NoSuchFileException: /d/orders-0/x.log\n\t\tat a.B.c(B.java:1)\n"
    text += "\tCaused by: java.io.IOException: No space left on device\n"
    found, _ = explain_text(text)
    assert isinstance(found, Explanation)
    assert found.message == "input-output-error"


def test_facts_of_conditions_exist() -> None:
    for message in messages():
        for fact, _ in (*conditions(message.when), *(fact for action in message.actions for fact in action.when)):
            assert any(fact_clauses(fact)), (message.name, fact)
