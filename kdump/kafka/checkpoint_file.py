"""Reads checkpoints, partition.metadata and meta.properties as Java does, and raises what Java throws. A checkpoint has
two results: what can be read of it, and that exception.

Source: org.apache.kafka.server.common.CheckpointFile.read, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataReadBuffer, CheckpointFileWithFailureHandler."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kdump.format.java_properties import MALFORMED, properties
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.known_releases import newer_version
from kdump.format.numbers import parse_int
from kdump.format.text_files import (
    CHECKPOINT,
    LARGEST_TEXT,
    TextLine,
    epoch_checkpoint,
    offset_checkpoint,
    partition_metadata,
)
from kdump.io import file_system
from kdump.io.directory_listing import is_no_file, is_url
from kdump.io.errors import SourceError, SourceNotFound
from kdump.io.fault_tolerant import read_problem
from kdump.io.source import open_source
from kdump.kafka.errors import KafkaError
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.log.live_files import Opener, read_stable
from kdump.state.releases import CHECKPOINT_NUMBERS

MAX_SHOWN_CHARACTERS = 60
PLAIN_EPOCHS = re.compile(rb"0\n(\d{1,9})\n((?:\d{1,9} \d{1,18}\n)*)")
PLAIN_ID = re.compile(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n?")
"""leader-epoch-checkpoint and partition.metadata as brokers write them."""
Parser = Callable[[bytes], Iterator[TextLine]]
Offsets = dict[tuple[str, int], int]


class BadLine(KafkaError):
    """The exception that Java throws at a byte of a small file. `is_number`: an unchecked exception, usually a
    NumberFormatException, which no handler treats as a disk failure; `newer`: what only a newer release than the newest
    known one writes, empty if that is not the reason; `is_version`: it is the version, and nothing else is wrong."""

    def __init__(
        self,
        position: int | None,
        message: str,
        exception: str,
        is_number: bool = False,
        newer: str = "",
        *,
        is_version: bool = False,
    ) -> None:
        super().__init__(message, exception, position)
        self.newer, self.is_number, self.is_version = newer, is_number, is_version


class Checkpoint(NamedTuple):
    """`entries`: the lines that can be read; `error`: what Kafka throws, which then uses none of them; `lines`: the
    number of lines in the file, None if it does not exist."""

    entries: list[TextLine]
    error: BadLine | None
    lines: int | None

    @property
    def offsets(self) -> Offsets:
        """The offset of each partition that can be read in an offset checkpoint."""
        return {(entry.values["topic"], entry.values["partition"]): entry.values["offset"] for entry in self.entries}

    @property
    def accepted(self) -> Checkpoint:
        """The same. Raises the error, if any."""
        if self.error is not None:
            raise self.error
        return self


def read_small(path: str, opener: Opener | None = None) -> bytes | None:
    """Return the content of a small file; None if it does not exist. Raises SourceError."""
    if not is_url(path) and not file_system.isfile(path):
        if not file_system.lexists(path):
            return None
        if is_no_file(path) or (file_system.islink(path) and not file_system.exists(path)):
            raise SourceError.at(path, "not a file")
    try:
        source = (opener or open_source)(path)
    except SourceNotFound:  # it went away in the meantime
        return None
    try:
        data = source.read_at(0, LARGEST_TEXT + 1)
        if problem := read_problem(source):
            raise SourceError(problem)
    finally:
        source.close()
    if len(data) > LARGEST_TEXT:
        raise SourceError.at(path, f"more than {LARGEST_TEXT} bytes, too large for a checkpoint")
    return data


def read_checkpoint(
    path: str, parse: Parser = offset_checkpoint, release: KafkaRelease = NEWEST, opener: Opener | None = None
) -> Checkpoint:
    """Read a checkpoint, again if a broker was writing it. Raises SourceError."""
    return read_stable(path, lambda: _read(path, parse, release, opener), lambda found: found.error is None)


def accepted_epochs(path: str, opener: Opener) -> list[TextLine] | None:
    """Return the entries that a broker reads in leader-epoch-checkpoint; None if it rejects the file, which is a
    finding of its own, or if it cannot be read."""
    try:
        return read_checkpoint(path, epoch_checkpoint, opener=opener).accepted.entries
    except (BadLine, SourceError):
        return None


def _read(path: str, parse: Parser, release: KafkaRelease, opener: Opener | None) -> Checkpoint:
    lines: list[TextLine] = []
    thrown = None
    try:
        data = _data(path, opener)
        if data is None:
            return Checkpoint([], None, None)
        lines = list(parse(data))
        _check(lines, data, os.path.abspath(path), release)
    except BadLine as error:
        error.file = path
        thrown = error
    entries = [line for line in lines if line.values and not line.problem]
    return Checkpoint(entries, thrown, sum(line.size > 0 for line in lines))


def _data(path: str, opener: Opener | None = None) -> bytes | None:
    """Return the content of a small file; None if it does not exist. Raises SourceError, and BadLine for a directory
    with the file's name."""
    try:
        return read_small(path, opener)
    except SourceError:
        if file_system.isdir(path):
            raise BadLine(0, "is a directory", "IOException: Is a directory") from None
        raise


def _decode(data: bytes) -> None:
    """Raise BadLine for the first byte that is not UTF-8: Java decodes a block before it looks at the lines."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {data[error.start]:#04x} is not UTF-8"
        raise BadLine(error.start, message, "MalformedInputException") from None


def _check(lines: list[TextLine], data: bytes, path: str, release: KafkaRelease) -> None:
    """Raise BadLine for the first line that a broker does not read, or does not load."""
    _decode(data)
    is_java, (version, entries_missing, malformed) = CHECKPOINT_NUMBERS.applies(release), _wordings(release)
    count, entries = lines[1:2], sum(bool(line.values) for line in lines)
    are_others_valid = len(lines) > 1 and not any(each.problem or each.bad is not None for each in lines[1:])
    for line in lines:
        number = parse_int(text := _text(line, data))
        is_version = line.what == "version" and are_others_valid
        if line.newer or (line.what == "version" and number not in (0, None)):
            newer = newer_version(CHECKPOINT, number)
            exception = version.format(path=path, version=number)
            message = f"Unrecognised version:{number}, expected version: 0"
            raise BadLine(line.position, message, exception, newer=newer, is_version=is_version)
        if line.what == "count" and not line.size:
            stated = _text(count[0], data)
            exception = entries_missing.format(path=path, count=stated, entries=entries)
            message = f"Expected [{stated}] entries in checkpoint file, but found only [{entries}]"
            raise BadLine(count[0].position, message, exception)
        if line.what == "count" and (number or 0) < 0 and is_java:
            message = f"Illegal Capacity: {number}"
            raise BadLine(line.position, message, f"IllegalArgumentException: {message}", is_number=True)
        if line.bad is not None and is_java:
            message = f'For input string: "{line.bad}"'
            raise BadLine(line.position, message, f"NumberFormatException: {message}", is_number=True)
        if line.problem and not line.values:
            exception = malformed.format(path=path, line=text)
            message = f"Malformed line in checkpoint file: {_short(text)}"
            raise BadLine(line.position, message, exception, is_version=is_version)
    for line in lines:
        if line.problem:
            message = f"Received invalid partition leader epoch entry {' '.join(map(str, line.values.values()))}"
            raise BadLine(line.position, message, f"IllegalArgumentException: {message}", is_number=True)


def _wordings(release: KafkaRelease) -> tuple[str, str, str]:
    """Return what CheckpointFile throws for a version, for entries that are missing, and for a line."""
    if CHECKPOINT_NUMBERS.applies(release):  # the class in Java
        return (
            "IOException: Unrecognised version:{version}, expected version: 0 in checkpoint file at: {path}",
            "IOException: Expected [{count}] entries in checkpoint file [{path}], but found only [{entries}]",
            "IOException: Malformed line in checkpoint file [{path}]: {line}",
        )
    return (
        "IOException: Unrecognized version of the checkpoint file ({path}): {version}",
        "IOException: Expected {count} entries in checkpoint file ({path}), but found only {entries}",
        "IOException: Malformed line in checkpoint file ({path}): '{line}'",
    )


def _text(line: TextLine, data: bytes) -> str:
    return data[line.position : line.position + line.size].decode().rstrip("\r\n")


def _short(line: str) -> str:
    return repr(line) if len(line) <= MAX_SHOWN_CHARACTERS else f"{line[:MAX_SHOWN_CHARACTERS]!r} …"


def offsets(path: str, release: KafkaRelease = NEWEST) -> Offsets:
    """Read an offset checkpoint as a broker does; empty if the file does not exist. Raises BadLine, SourceError."""
    return read_checkpoint(path, release=release).accepted.offsets


def epochs(path: str, release: KafkaRelease = NEWEST) -> list[EpochEntry] | None:
    """Read leader-epoch-checkpoint as a broker does; None if the file does not exist. Raises BadLine, SourceError."""
    plain = PLAIN_EPOCHS.fullmatch(read_small(path) or b"") if file_system.isfile(path) else None
    if plain is not None and int(plain[1]) == plain[2].count(b"\n"):  # most files; to find what is wrong takes longer
        numbers = iter(map(int, plain[2].split()))
        return [EpochEntry(epoch, offset) for epoch, offset in zip(numbers, numbers)]
    accepted = read_checkpoint(path, epoch_checkpoint, release).accepted
    return None if accepted.lines is None else [EpochEntry(**entry.values) for entry in accepted.entries]


def topic_id(
    path: str,
    newer: list[str] | None = None,
    release: KafkaRelease = NEWEST,
    is_newer: Callable[[str], bool] = lambda path: True,
) -> str | None:
    """Read the topic ID in partition.metadata; None if the file does not exist. A version that only a release newer
    than the newest known one writes is added to `newer`, if the file `is_newer`: the known ones read on. Raises
    BadLine, SourceError."""
    file, plus = os.path.abspath(path), "+ " if (3, 7) <= release.line < (4, 2) else ""
    with named(path):
        data = _data(path)
        if data is None:
            return None
        plain = PLAIN_ID.fullmatch(data)
        if plain is not None and plain[1] != ZERO_UUID.encode():
            return plain[1].decode()
        _decode(data)
        lines = list(partition_metadata(data))[:2]
        if not lines:
            raise BadLine(0, "it is empty", "NullPointerException", is_number=True)
        for line in lines:
            value = parse_int(line.values.get("value")) if line is lines[0] else 0
            text = _text(line, data)
            if line.problem or value is None:
                what = "checkpoint" if release.line < (4, 2) else "partition metadata"
                where = f"({file}): '{text}'" if release.line < (3, 7) else f"[{file}]: {text}"
                raise BadLine(line.position, _short(text), f"IOException: Malformed line in {what} file {where}")
            if value < 0:
                exception = f"Unrecognized version of partition metadata file {plus}({file}): {value}"
                raise BadLine(line.position, _short(text), f"IOException: {exception}")
            if line is lines[0] and newer is not None:
                text = newer_version("PartitionMetadataFile", value, "partition.metadata version")
                newer += [text] if text and is_newer(path) else []
        if len(lines) < 2:
            raise BadLine(None, "it ends after its version", "NullPointerException", is_number=True)
        stated: str = lines[1].values["value"]
        if len(stated) > 24 or not re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", stated):
            message = f"invalid topic ID: {stated!r}"
            raise BadLine(lines[1].position, message, "IllegalArgumentException", is_number=True)
        if stated == ZERO_UUID:
            exception = f"IOException: Invalid topic ID in partition metadata file ({stated})"
            raise BadLine(lines[1].position, "the zero topic ID", exception)
        return stated


def meta_values(path: str) -> dict[str, str] | None:
    """Return the properties that a broker reads in meta.properties; None if the file does not exist. Raises BadLine,
    SourceError."""
    data = read_small(path)
    if data is None:
        return None
    lines = list(properties(data))
    for line in lines:
        if line.problem:
            raise BadLine(line.position, MALFORMED, f"IllegalArgumentException: {MALFORMED}")
    return {line.values["name"]: line.values["value"] for line in lines if line.values}


@contextmanager
def named(path: str) -> Iterator[None]:
    """Let an exception name the file that was read."""
    try:
        yield
    except KafkaError as error:
        error.file = path
        raise
