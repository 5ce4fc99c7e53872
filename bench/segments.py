"""Segments for the benchmark: written by Kafka's own classes if Java is available, otherwise real batches of the
fixtures, repeated."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.kafka import ROOT, Kafka
from tests import craft

MIB = 1 << 20
FIRST = f"{0:020}.log"
INDEX_INTERVAL = 4096
HEAD = struct.Struct(">qi")
V2 = struct.Struct(">qiibIhi")


class Kind(NamedTuple):
    """Kind of segment: its codec and size, and the fixture that is repeated if Kafka's writer is not available."""

    codec: str
    megabytes: int
    value_bytes: int = 300
    batch_records: int = 100
    fixture: str = "clean-1/orders-none-0"


def kinds(size: int) -> dict[str, Kind]:
    """Return the kinds of segments by name. `size`: MiB of the uncompressed one; the others are in proportion."""
    part = size * 3 // 16
    quarter = size // 4
    kinds = {"none": Kind("none", size)}
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        kinds[codec] = Kind(codec, part, fixture=f"clean-1/orders-{codec}-0")
    return kinds | {
        "one-record batches": Kind("none", quarter, 200, 1, "clean-1/acks0-0"),
        "10k-record batches": Kind("none", quarter, 300, 10_000),
        "records of 100 B": Kind("none", quarter, 100, 100),
        "records of 100 kB": Kind("none", quarter, 100_000, 10),
        "v1 gzip": Kind("legacy", part, fixture="legacy/v1-client010-gzip-0"),
        "v0": Kind("legacy", part // 2, fixture="legacy/v0-client09-none-0"),
    }


def make(kind: Kind, directory: Path, kafka: Kafka | None) -> Path:
    """Return the path of the segment; writes it if it does not exist yet."""
    path = directory / FIRST
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        part = directory / "part"
        if kafka is not None and kind.codec != "legacy":
            kafka.write(part, kind.codec, kind.megabytes, kind.value_bytes, kind.batch_records)
        else:
            repeat(ROOT / "fixtures" / kind.fixture / FIRST, part, kind.megabytes * MIB)
        part.rename(path)
    return path


def batches(data: bytes) -> Iterator[bytes]:
    """Yield the batches or messages of a valid segment."""
    position = 0
    while position < len(data):
        _, length = HEAD.unpack_from(data, position)
        yield data[position : position + 12 + length]
        position += 12 + length


def last_offset(batch: bytes) -> int:
    fields = V2.unpack_from(batch)
    return int(fields[0] + fields[6]) if fields[3] == 2 else int(fields[0])


def records(path: Path) -> int | None:
    """Return the number of records; None for the old formats, whose headers do not contain it."""
    count = 0
    for batch in batches(path.read_bytes()):
        if batch[16] < 2:
            return None
        count += int.from_bytes(batch[57:61], "big")
    return count


def last_of(path: Path) -> int:
    """Return the last offset of the segment."""
    *_, last = batches(path.read_bytes())
    return last_offset(last)


def rebased(batch: bytes, by: int) -> bytes:
    """Return the batch with its base offset, which no checksum covers, raised by `by`."""
    (offset,) = struct.unpack_from(">q", batch)
    return struct.pack(">q", offset + by) + batch[8:]


def repeat(source: Path, path: Path, size: int) -> None:
    """Write the batches of `source` to `path` repeatedly, with continuous offsets, until it has at least `size`
    bytes."""
    found = list(batches(source.read_bytes()))
    span = last_offset(found[-1]) + 1
    written = base = 0
    with path.open("wb") as out:
        while written < size:
            written += out.write(b"".join(rebased(batch, base) for batch in found))
            base += span


def split(source: Path, directory: Path, count: int) -> Path:
    """Split the segment `source` into a partition of `count` segments."""
    if directory.exists():
        return directory
    part = directory.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    each = source.stat().st_size // count
    block: list[bytes] = []
    size = 0
    for batch in batches(source.read_bytes()):
        block.append(batch)
        size += len(batch)
        if size >= each:
            _segment(part, block)
            block, size = [], 0
    if block:
        _segment(part, block)
    part.rename(directory)
    return directory


def _segment(directory: Path, block: list[bytes]) -> None:
    (base,) = struct.unpack_from(">q", block[0])
    (directory / f"{base:020}.log").write_bytes(b"".join(block))


def partitions(source: Path, directory: Path, count: int) -> Path:
    """Link the segment `source` into `count` partitions."""
    for number in range(count):
        partition = directory / f"topic-{number}"
        partition.mkdir(parents=True, exist_ok=True)
        if not (partition / FIRST).exists():
            os.link(source, partition / FIRST)
    return directory


def doubled(source: Path, directory: Path) -> Path:
    """Write the batches of `source` twice, one after the other, with the .index that a broker of 4.1 or later
    writes."""
    path = directory / FIRST
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    data = source.read_bytes()
    position = behind = base = 0
    part = directory / "part"
    with part.open("wb") as out, (directory / FIRST).with_suffix(".index").open("wb") as index:
        for _ in range(2):
            last = base
            for batch in batches(data):
                batch = rebased(batch, base)
                last = last_offset(batch)
                behind += len(batch)
                if behind > INDEX_INTERVAL:
                    index.write(struct.pack(">ii", last, position))
                    behind = 0
                position += out.write(batch)
            base = last + 1
    part.rename(path)
    return path


def crafted(directory: Path, content: bytes, size: int) -> Path:
    """Write these batches or messages again and again, `size` MiB of them."""
    path = directory / FIRST
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "once").write_bytes(content)
        repeat(directory / "once", directory / "part", size * MIB)
        (directory / "part").rename(path)
    return path


def nested() -> bytes:
    """Return a wrapper message that contains three with ten messages each. No Kafka writes or reads such a one."""
    inner = (
        craft.wrapper(1, [craft.message(1, b"value" * 9, offset=n) for n in range(last - 9, last + 1)], offset=last)
        for last in (9, 19, 29)
    )
    return craft.wrapper(1, inner, offset=29)


def binary_values() -> bytes:
    """Return a hundred batches of records whose values are 1000 random bytes."""
    dice = random.Random(55)
    found = (
        craft.batch([craft.record(n, b"user-%d" % n, dice.randbytes(1000)) for n in range(16)], offset=base)
        for base in range(0, 1600, 16)
    )
    return b"".join(found)


def registry(directory: Path, count: int) -> Path:
    """Write the topic of a schema registry with `count` versions, ten of each subject, in batches of 100."""
    partition = directory / "_schemas-0"
    if partition.exists():
        return directory
    part = directory / "part"
    part.mkdir(parents=True, exist_ok=True)
    with (part / FIRST).open("wb") as out:
        for base in range(0, count, 100):
            rows = [craft.record(number - base, *_version(number)) for number in range(base, base + 100)]
            out.write(craft.batch(rows, offset=base))
    part.rename(partition)
    return directory


def _version(number: int) -> tuple[bytes, bytes]:
    """Return the key and value of a record of SCHEMA."""
    subject, version = f"com.shop.team{number % 97}.topic-{number // 10}-value", number % 10 + 1
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    fields = [{"name": "id", "type": "long"}, {"name": "to", "type": ["null", "string"], "default": None}]
    schema = json.dumps({"type": "record", "name": f"Order{number}", "fields": fields})
    value = {"subject": subject, "version": version, "id": number + 1, "schema": schema, "deleted": False}
    return json.dumps(key, separators=(",", ":")).encode(), json.dumps(value, separators=(",", ":")).encode()


def all_segments(directory: Path, size: int, kafka: Kafka | None) -> dict[str, Path]:
    """Return every segment and directory by name; writes those that do not exist yet."""
    paths = {name: make(kind, directory / name.replace(" ", "-"), kafka) for name, kind in kinds(size).items()}
    paths["small"] = ROOT / "fixtures" / "clean-1" / "orders-none-0" / f"{0:020}.log"
    paths["large, indexed"] = doubled(paths["none"], directory / "indexed")
    paths["20 segments"] = split(paths["none"], directory / "many-0", 20)
    paths["4 partitions"] = partitions(paths["zstd"], directory / "four", 4)
    paths["v1 gzip, nested"] = crafted(directory / "nested", nested(), max(1, size // 64))
    paths["binary values"] = crafted(directory / "binary", binary_values(), size // 4)
    paths["100,000 versions"] = registry(directory / "registry", 100_000)
    return paths


def total(path: Path) -> int | None:
    """Return the number of records of a segment, or of all segments in a directory; None if one has an old format."""
    found = [records(file) for file in (path.rglob("*.log") if path.is_dir() else [path])]
    return None if None in found else sum(count or 0 for count in found)
