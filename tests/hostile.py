"""Hostile inputs: small files that claim or contain too much, each in its own log directory, and commands over them.

A broker stores what a client sends without changes, so any client can put most of these on a disk."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import lz4.frame
import snappy
import zstandard

from tests import craft

MIB = 1 << 20


def large_record(before_value: bytes, size: int, after_value: bytes, fill: bytes = b"v") -> Iterator[bytes]:
    """Yield the parts of a v2 record whose fields are these bytes, with `size` bytes of `fill` between them."""
    yield craft.varint(len(before_value) + size + len(after_value)) + before_value
    for start in range(0, size, MIB):
        yield (fill * MIB)[: min(MIB, size - start)]
    yield after_value


def value_record(size: int, key: bytes | None = None, attributes: int = 0) -> Iterator[bytes]:
    """Return a record with a value of `size` bytes."""
    fields = struct.pack(">b", attributes) + b"\0\0" + craft.sized(key) + craft.varint(size)
    return large_record(fields, size, b"\0")


def headers_record(count: int) -> Iterator[bytes]:
    """Return a record with `count` headers of two bytes each."""
    return large_record(b"\0\0\0" + craft.varint(-1) * 2 + craft.varint(count), 2 * count, b"", b"\0\1")


def compressed(codec: str, pieces: Iterator[bytes]) -> bytes:
    """Return the compressed parts; except for Snappy, they are never in memory together."""
    if codec == "gzip":
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(map(deflate.compress, pieces)) + deflate.flush()
    if codec == "zstd":
        return b"".join(_zstd(pieces))
    if codec == "lz4":
        with lz4.frame.LZ4FrameCompressor(block_linked=False, block_size=4) as frame:
            return frame.begin() + b"".join(map(frame.compress, pieces)) + frame.flush()
    if codec == "snappy":
        blocks = (piece[at : at + 32768] for piece in pieces for at in range(0, len(piece), 32768))
        return craft.xerial(*blocks)
    return b"".join(pieces)


def _zstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    stream = zstandard.ZstdCompressor(3).compressobj()
    yield from map(stream.compress, pieces)
    yield stream.flush()


def snappy_block(pieces: Iterator[bytes]) -> bytes:
    """Return one raw Snappy block, as librdkafka and Go clients write a payload."""
    return bytes(snappy.compress(b"".join(pieces)))


def snappy_chunk(pieces: Iterator[bytes]) -> bytes:
    """Return one block in snappy-java's framing."""
    block = snappy_block(pieces)
    return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block


def _v2(pieces: Iterator[bytes], codec: str, pack: Callable[[Iterator[bytes]], bytes] | None = None) -> bytes:
    payload = pack(pieces) if pack else compressed(codec, pieces)
    return craft.batch(b"", codec, count=1, payload=payload) + craft.one(b"behind", 1)


def _legacy(magic: int, codec: str, size: int, pack: Callable[[Iterator[bytes]], bytes] | None = None) -> bytes:
    """Return a wrapper around a message with a value of `size` bytes, or for codec none that message itself."""
    inner = craft.message(magic, b"v" * size)
    behind = craft.message(magic, b"behind", offset=1)
    if codec == "none":
        return inner + behind
    payload = (
        pack(iter((inner,))) if pack else compressed(codec, (inner[i : i + MIB] for i in range(0, len(inner), MIB)))
    )
    return craft.message(magic, payload, attributes=craft.CODECS.index(codec)) + behind


def many(count: int) -> bytes:
    """Return a batch of about `count` empty records."""
    each = craft.record() * 65536
    pieces = (each for _ in range(count // 65536))
    return craft.batch(b"", "zstd", count=count // 65536 * 65536, payload=compressed("zstd", pieces))


def header_of(key: int, value: int) -> Iterator[bytes]:
    """Return a record with one header, with a key and a value of these sizes in bytes."""
    before = b"\0\0\0" + craft.varint(-1) * 2 + craft.varint(1)
    end = craft.varint(value) + b"h" * value
    return large_record(before + craft.varint(key), key, end, b"k")


def offset_commit() -> bytes:
    """Return an offset commit with 100 MiB of metadata (invalid, because its length field has 16 bits)."""
    key = struct.pack(">hh", 1, 5) + b"group" + struct.pack(">h", 5) + b"topic" + struct.pack(">i", 0)
    return _v2(value_record(100 * MIB, key), "zstd")


def claiming(**fields: int) -> bytes:
    """Return a batch with false header fields, but a matching checksum, followed by a valid batch."""
    return craft.patch(craft.one(b"before"), **fields) + craft.one(b"behind", 1)


V2 = "payments-0"

HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "value-none": (V2, lambda: _v2(value_record(90 * MIB), "none")),
    "value-gzip": (V2, lambda: _v2(value_record(250 * MIB), "gzip")),
    "value-snappy": (V2, lambda: _v2(value_record(200 * MIB), "snappy")),
    "value-snappy-block": (V2, lambda: _v2(value_record(200 * MIB), "snappy", snappy_block)),
    "value-snappy-chunk": (V2, lambda: _v2(value_record(200 * MIB), "snappy", snappy_chunk)),
    "value-lz4": (V2, lambda: _v2(value_record(250 * MIB), "lz4")),
    "value-zstd": (V2, lambda: _v2(value_record(250 * MIB), "zstd")),
    "headers-million": (V2, lambda: _v2(headers_record(1_000_000), "zstd")),
    "headers-8-million": (V2, lambda: _v2(headers_record(8_000_000), "zstd")),
    "header-key": (V2, lambda: _v2(header_of(90 * MIB, 9), "zstd")),
    "header-value": (V2, lambda: _v2(header_of(9, 90 * MIB), "zstd")),
    "key": (V2, lambda: _v2(large_record(b"\0\0\0" + craft.varint(90 * MIB), 90 * MIB, b"\1\0"), "zstd")),
    "records-many": (V2, lambda: many(8_000_000)),
    "control": (
        V2,
        lambda: (
            craft.batch(
                b"",
                "zstd",
                count=1,
                attributes=0x34,
                producerId=7,
                producerEpoch=0,
                payload=compressed("zstd", value_record(90 * MIB, b"\0\0\0\1")),
            )
            + craft.one(b"behind", 1)
        ),
    ),
    "message-0": (V2, lambda: _legacy(0, "none", 90 * MIB)),
    "message-1": (V2, lambda: _legacy(1, "none", 90 * MIB)),
    "wrapper-0-gzip": (V2, lambda: _legacy(0, "gzip", 100 * MIB)),
    "wrapper-0-snappy-block": (V2, lambda: _legacy(0, "snappy", 100 * MIB, snappy_block)),
    "wrapper-1-snappy": (V2, lambda: _legacy(1, "snappy", 100 * MIB)),
    "wrapper-1-lz4": (V2, lambda: _legacy(1, "lz4", 100 * MIB)),
    "claims-length": (V2, lambda: claiming(batchLength=2**31 - 1)),
    "claims-count": (V2, lambda: claiming(recordCount=2**31 - 1, lastOffsetDelta=2**31 - 2)),
    "offsets": ("__consumer_offsets-0", offset_commit),
    "transactions": ("__transaction_state-0", lambda: _v2(value_record(100 * MIB, b"\0\0\0\3abc"), "zstd")),
    "metadata": ("__cluster_metadata-0", lambda: _v2(value_record(100 * MIB), "zstd")),
    "share": ("__share_group_state-0", lambda: _v2(value_record(100 * MIB, b"\0\0\0\3abc"), "zstd")),
}
"""Partition and contents of its only segment, by name."""
SMALL_FILES = {
    "root-files": ("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
                   "log-start-offset-checkpoint", "cleaner-offset-checkpoint", "bootstrap.checkpoint"),
    "partition-files": tuple(f"{V2}/{name}" for name in (
        "leader-epoch-checkpoint", "partition.metadata", f"{1:020}.snapshot", f"{0:020}.index", f"{0:020}.timeindex",
        f"{0:020}.txnindex")),
    "quorum": ("__cluster_metadata-0/quorum-state", f"__cluster_metadata-0/{1:020}-0000000001.checkpoint"),
}  # fmt: skip
"""Files that Kafka keeps small, here 300 MiB of zeros that take no disk space."""
ALL = [*HOSTILE, *SMALL_FILES]


def make(name: str, root: Path) -> Path:
    """Return the log directory of a hostile input; creates it below `root` if it does not exist."""
    directory = root / name
    if directory.exists():
        return directory
    partition, build = HOSTILE.get(name, (V2, lambda: craft.one(b"value") + craft.one(b"behind", 1)))
    craft.write_file(directory / partition / f"{0:020}.log", build())
    for file in SMALL_FILES.get(name, ()):
        (directory / file).parent.mkdir(exist_ok=True)
        with (directory / file).open("wb") as opened:
            opened.truncate(300 * MIB)
    if name not in ("root-files",):
        (directory / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    return directory


def log_of(directory: Path) -> Path:
    """Return the segment of a hostile input."""
    return next(directory.glob("*-0/*.log"))
