"""Compresses a payload as Kafka's Java client does: in the framing and with the block sizes that every client reads.

Source: org.apache.kafka.common.compress (Lz4BlockOutputStream: independent blocks of 64 KiB; snappy-java's framing with
blocks of 32 KiB)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from kdump.format.codec.snappy import MAGIC, MIN_VERSION
from kdump.format.codec.source import library

SNAPPY_BLOCK = 32 * 1024


def compress(codec: str, pieces: Iterable[bytes]) -> bytes:
    """Return the payload that is made of these pieces. Raises DecodeError if the codec's library is missing."""
    return b"".join(_COMPRESSED[codec](pieces))


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield from _through(zlib.compressobj(wbits=31), pieces)


def _zstd(pieces: Iterable[bytes]) -> Iterator[bytes]:
    zstd: Any = library("zstandard", "zstandard", "ZstdFrame")
    yield from _through(zstd.ZstdCompressor(level=3).compressobj(), pieces)


def _lz4(pieces: Iterable[bytes]) -> Iterator[bytes]:
    frame: Any = library("lz4.frame", "lz4", "Lz4Frame")
    stream = frame.LZ4FrameCompressor(block_size=frame.BLOCKSIZE_MAX64KB, block_linked=False)
    yield stream.begin()
    yield from _through(stream, pieces)


def _through(stream: Any, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield stream.compress(piece)
    yield stream.flush()


def _snappy(pieces: Iterable[bytes]) -> Iterator[bytes]:
    cramjam: Any = library("cramjam", "python-snappy", "SnappyBlock")
    yield MAGIC + MIN_VERSION.to_bytes(4, "big") * 2
    rest = bytearray()
    for piece in chain(pieces, (b"",)):
        rest += piece
        while len(rest) >= SNAPPY_BLOCK or (rest and not piece):
            block = bytes(cramjam.snappy.compress_raw(bytes(rest[:SNAPPY_BLOCK])))
            yield len(block).to_bytes(4, "big") + block
            del rest[:SNAPPY_BLOCK]


_Codec = Callable[[Iterable[bytes]], Iterable[bytes]]
_COMPRESSED: dict[str, _Codec] = {"none": iter, "gzip": _gzip, "snappy": _snappy, "lz4": _lz4, "zstd": _zstd}
