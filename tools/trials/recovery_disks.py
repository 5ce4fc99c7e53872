"""Disks of a broker after an unclean shutdown, with gigabytes of batches, for tools/recovery_trials.py.

Segments are generated once. The disk of a case has hard links to them, which is safe because recovery of a valid
segment does not write to it, and its own copies of what a broker rewrites."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import crc32c
import lz4.frame
import zstandard

MIB = 1 << 20
HEAD = struct.Struct(">qiibI")
REST = struct.Struct(">hiqqqhii")
INDEX_INTERVAL = 4096
INDEX_SIZE = 10 * MIB
"""log.index.size.max.bytes: size of the indexes of the segment that is written to."""
CODECS = {"none": 0, "lz4": 3, "zstd": 4}
CREATED = 1_790_000_000_000


class DataSet(NamedTuple):
    """`logs` partitions of `segments` segments each; sizes in bytes. `idempotent`: the producer has an ID."""

    name: str
    logs: int
    segments: int
    segment_size: int
    batch_size: int
    codec: str = "none"
    idempotent: bool = True

    @property
    def records(self) -> int:
        """Number of records in a batch."""
        return max(1, self.batch_size // 1024)


class Written(NamedTuple):
    """Base offset of each segment, and the log end offset."""

    bases: list[int]
    end: int


def write_data(data: DataSet, root: Path) -> Path:
    """Create the logs of a data set in a directory, if they are not there yet; return it."""
    target = root / data.name
    if (target / "complete").exists():
        return target
    shutil.rmtree(target, ignore_errors=True)
    first = target / "0"
    first.mkdir(parents=True)
    offset = 0
    payload = record_payload(data)
    for _ in range(data.segments):
        offset = write_segment(first, offset, data, payload)
        (first / f"{offset:020}.snapshot").write_bytes(snapshot(offset, data.idempotent))
    for number in range(1, data.logs):
        shutil.copytree(first, target / str(number))
    os.sync()
    (target / "complete").touch()
    return target


def written(log: Path) -> Written:
    """Return the offsets of a generated log."""
    bases = sorted(int(path.stem) for path in log.glob("*.log"))
    return Written(bases, max(int(path.stem) for path in log.glob("*.snapshot")))


def write_segment(directory: Path, base: int, data: DataSet, payload: bytes) -> int:
    """Write a segment with its indexes; return the next offset."""
    count, attributes = data.records, CODECS[data.codec]
    index, times = bytearray(), bytearray()
    position, indexed, offset = 0, 0, base
    path = directory / f"{base:020}.log"
    with path.open("wb", buffering=MIB) as out:
        while position < data.segment_size:
            timestamp = CREATED + offset
            producer = (7, 0, offset & 0x7FFFFFFF) if data.idempotent else (-1, -1, -1)
            rest = REST.pack(attributes, count - 1, timestamp, timestamp, *producer, count) + payload
            head = HEAD.pack(offset, len(rest) + 9, 0, 2, crc32c.crc32c(rest))
            last = offset + count - 1
            if position - indexed > INDEX_INTERVAL:
                index += struct.pack(">ii", last - base, position)
                times += struct.pack(">qi", timestamp, last - base)
                indexed = position
            out.write(head)
            out.write(rest)
            position += len(head) + len(rest)
            offset += count
    path.with_suffix(".index").write_bytes(index)
    path.with_suffix(".timeindex").write_bytes(times)
    return offset


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def record_payload(data: DataSet) -> bytes:
    """Return records that fill a batch. Compressed, they are half as large."""
    size = data.batch_size if data.codec == "none" else 2 * data.batch_size
    length = max(1, (size - 61) // data.records - 12)
    value = os.urandom(length) if data.codec == "none" else (os.urandom(length // 2) * 3)[:length]
    out = bytearray()
    for delta in range(data.records):
        if data.codec != "none":
            value = (os.urandom(length // 2) * 3)[:length]
        body = b"\0\0" + varint(delta) + varint(-1) + varint(len(value)) + value + b"\0"
        out += varint(len(body)) + body
    if data.codec == "lz4":
        return bytes(lz4.frame.compress(bytes(out), block_linked=False))
    return zstandard.ZstdCompressor().compress(bytes(out)) if data.codec == "zstd" else bytes(out)


def snapshot(offset: int, idempotent: bool) -> bytes:
    """Return a producer snapshot of the end offset."""
    sequence = (offset - 1) & 0x7FFFFFFF
    entry = struct.pack(">qhiqiqiq", 7, 0, sequence, offset - 1, 0, CREATED + offset, -1, -1) if idempotent else b""
    body = struct.pack(">i", int(idempotent)) + entry
    return struct.pack(">hI", 1, crc32c.crc32c(body)) + body


def crashed_log(source: Path, target: Path, *, flushed: int, without: Iterable[str]) -> int:
    """Create a partition directory, as it is after a crash, from a generated log; return the recovery point. `flushed`:
    number of segments below the recovery point. `without`: endings of files that are missing."""
    offsets = written(source)
    lost = {f".{ending}" for ending in without}
    for path in source.iterdir():
        if path.suffix == ".log":
            os.link(path, target / path.name)
        elif path.suffix not in lost and not (path.suffix == ".snapshot" and int(path.stem) == offsets.end):
            shutil.copyfile(path, target / path.name)
    active = target / f"{offsets.bases[-1]:020}"
    for ending, entry in ((".index", 8), (".timeindex", 12)):
        if ending not in lost:
            os.truncate(active.with_suffix(ending), INDEX_SIZE // entry * entry)
    (target / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for path in target.iterdir():
        if path.suffix != ".log":
            os.utime(path, (CREATED / 1000, CREATED / 1000))
    return offsets.bases[flushed] if flushed < len(offsets.bases) else offsets.end


def write_checkpoints(directory: Path, points: dict[tuple[str, int], int]) -> None:
    """Write a log directory's checkpoints, and remove its clean-shutdown file."""
    rows = [f"{topic} {number} {offset}" for (topic, number), offset in points.items()]
    text = "\n".join(["0", str(len(rows)), *rows, ""])
    (directory / "recovery-point-offset-checkpoint").write_text(text)
    (directory / "log-start-offset-checkpoint").write_text("0\n0\n")
    (directory / ".kafka_cleanshutdown").unlink(missing_ok=True)


def evict(root: Path) -> None:
    """Write dirty pages back and drop all pages of the files from the page cache."""
    os.sync()
    for path in root.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
