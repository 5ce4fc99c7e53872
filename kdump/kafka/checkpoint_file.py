"""Reads checkpoints and partition.metadata as Java does: which errors it tolerates, and which it throws.

Source: org.apache.kafka.server.common.CheckpointFile.read, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataReadBuffer, CheckpointFileWithFailureHandler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.known_releases import newer_version
from kdump.format.numbers import parse_int, parse_long
from kdump.format.text_files import CHECKPOINT
from kdump.kafka.errors import KafkaError
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.log import file_system
from kdump.log.directory_listing import is_no_file
from kdump.log.entries import LARGEST_TEXT
from kdump.log.errors import SourceError, SourceNotFound
from kdump.log.source import open_source
from kdump.state.releases import CHECKPOINT_NUMBERS

MAX_SHOWN_CHARACTERS = 60
SPACES = re.compile(r"[ \t\n\x0b\f\r]+")


class BadLine(KafkaError):
    """The exception that Java throws at a byte of a small file. `is_number`: an unchecked exception, usually a
    NumberFormatException, which no handler treats as a disk failure; `newer`: what only a newer release than the newest
    known one writes, empty if that is not the reason."""

    def __init__(
        self, position: int | None, message: str, is_number: bool = False, exception: str = "", newer: str = ""
    ) -> None:
        io_exception = f"IOException: Error while reading checkpoint file: {message}"
        super().__init__(message, exception or io_exception, position)
        self.newer, self.is_number = newer, is_number


class CheckpointLine(NamedTuple):
    position: int
    text: str


def read_small(path: str) -> bytes | None:
    """Return the content of a small file; None if it does not exist. Raises SourceError."""
    if not file_system.lexists(path):
        return None
    if is_no_file(path) or (file_system.islink(path) and not file_system.exists(path)):
        raise SourceError(f"{path}: not a file")
    try:
        source = open_source(path)
    except SourceNotFound:  # it went away in the meantime
        return None
    try:
        data = source.read_at(0, LARGEST_TEXT + 1)
    finally:
        source.close()
    if len(data) > LARGEST_TEXT:
        raise SourceError(f"{path}: more than {LARGEST_TEXT} bytes, too large for a checkpoint")
    return data


def read_text(path: str) -> list[CheckpointLine] | None:
    """Return the lines of a file; None if it does not exist. Raises SourceError, and BadLine for the first byte that is
    not UTF-8, as Java does, and for a directory with the file's name."""
    if file_system.isdir(path):
        raise BadLine(0, "is a directory", exception="IOException: Is a directory")
    data = read_small(path)
    if data is None:
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {data[error.start]:#04x} is not UTF-8"
        raise BadLine(error.start, message, exception="MalformedInputException") from None
    found = []
    for match in re.finditer(rb"([^\r\n]*)(\r\n|\n|\r)|([^\r\n]+)$", data):
        text = (match[1] if match[2] else match[3]).decode("utf-8", "surrogateescape")
        found.append(CheckpointLine(match.start(), text))
    return found


def _short(text: str) -> str:
    return repr(text) if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]!r} …"


def number(text: str, bits: int) -> int | None:
    """Parse an integer as Integer.parseInt or Long.parseLong do; None if those throw."""
    return parse_int(text) if bits == 32 else parse_long(text)


def rows(
    lines: list[CheckpointLine], columns: int, release: KafkaRelease = NEWEST
) -> list[tuple[CheckpointLine, list[str]]]:
    """Return the entries of a checkpoint, split into words. Raises BadLine."""
    if len(lines) < 2:
        if lines and number(lines[0].text, 32) != 0:
            raise _version(lines[0])
        return []
    if number(lines[0].text, 32) != 0:
        raise _version(lines[0])
    count = number(lines[1].text, 32)
    if count is None:
        raise BadLine(lines[1].position, f"Malformed line in checkpoint file: {_short(lines[1].text)}")
    if count < 0 and CHECKPOINT_NUMBERS.applies(release):
        raise BadLine(lines[1].position, f"Illegal Capacity: {count}", is_number=True)
    found = []
    for line in lines[2:]:
        # Java's split keeps an empty first part and drops empty last ones.
        words = SPACES.split(line.text)
        while words and not words[-1]:
            words.pop()
        if len(words) != columns:
            raise BadLine(line.position, f"Malformed line in checkpoint file: {_short(line.text)}")
        found.append((line, words))
    if len(found) != count:
        raise BadLine(
            lines[1].position, f"Expected [{count}] entries in checkpoint file, but found only [{len(found)}]"
        )
    return found


def _version(line: CheckpointLine) -> BadLine:
    version = number(line.text, 32)
    if version is None:
        return BadLine(line.position, f"Malformed line in checkpoint file: {_short(line.text)}")
    newer = newer_version(CHECKPOINT, version)
    return BadLine(line.position, f"Unrecognised version:{version}, expected version: 0", newer=newer)


def offsets(path: str, release: KafkaRelease = NEWEST) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint; empty if the file does not exist. Raises BadLine, SourceError."""
    found = {}
    for line, words in rows(read_text(path) or [], 3, release):
        partition, offset = number(words[1], 32), number(words[2], 64)
        if partition is None or offset is None:
            raise _bad_number(line, words[1] if partition is None else words[2], release)
        found[words[0], partition] = offset
    return found


def _bad_number(line: CheckpointLine, text: str, release: KafkaRelease) -> BadLine:
    if CHECKPOINT_NUMBERS.applies(release):
        message = f'For input string: "{text}"'
        return BadLine(line.position, message, True, f"NumberFormatException: {message}")
    return BadLine(line.position, f"Malformed line in checkpoint file: {_short(line.text)}")


def epochs(path: str, release: KafkaRelease = NEWEST) -> list[EpochEntry] | None:
    """Read leader-epoch-checkpoint; None if the file does not exist. Raises BadLine, SourceError."""
    with named(path):
        lines = read_text(path)
        if lines is None:
            return None
        found = []
        for line, words in rows(lines, 2, release):
            epoch, start = number(words[0], 32), number(words[1], 64)
            if epoch is None or start is None:
                raise _bad_number(line, words[0] if epoch is None else words[1], release)
            if epoch < 0 or start < 0:
                message = f"Received invalid partition leader epoch entry {epoch} {start}"
                raise BadLine(line.position, message, True, f"IllegalArgumentException: {message}")
            found.append(EpochEntry(epoch, start))
        return found


def topic_id(path: str, newer: list[str] | None = None) -> str | None:
    """Read the topic ID in partition.metadata; None if the file does not exist. A version that only a release newer
    than the newest known one writes is added to `newer`: the known ones read on. Raises BadLine, SourceError."""
    with named(path):
        lines = read_text(path)
        if lines is None:
            return None
        if not lines:
            raise BadLine(0, "it is empty", True, "NullPointerException")
        for number_of, line in enumerate(lines[:2]):
            words = SPACES.split(line.text)
            value = number(words[1], 32) if len(words) == 2 and number_of == 0 else 0
            if len(words) != 2 or value is None or value < 0:
                exception = "IOException: Malformed line in partition metadata file"
                raise BadLine(line.position, _short(line.text), exception=exception)
            if number_of == 0 and newer is not None:
                newer += filter(None, [newer_version("PartitionMetadataFile", value, "partition.metadata version")])
        if len(lines) < 2:
            raise BadLine(None, "it ends after its version", True, "NullPointerException")
        found = SPACES.split(lines[1].text)[1]
        if len(found) > 24 or not re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", found):
            message = f"invalid topic ID: {found!r}"
            raise BadLine(lines[1].position, message, True, "IllegalArgumentException")
        if found == "A" * 22:
            raise BadLine(lines[1].position, "the zero topic ID", exception="IOException: Invalid topic ID")
        return found


@contextmanager
def named(path: str) -> Iterator[None]:
    """Let an exception name the file that was read."""
    try:
        yield
    except KafkaError as error:
        error.file = path
        raise
