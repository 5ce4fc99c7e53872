"""A payload that is decompressed in one call gives the same as its stream, or nothing: for valid payloads, and for
every kind of damage."""

from __future__ import annotations

import gzip
import os

import lz4.frame
import snappy
import zstandard

from kdump.format.codec import decompress
from kdump.format.codec.decompress_small import decompress_small
from kdump.format.errors import DecodeError
from tests import craft
from tests.conftest import batches, each_segment, read_regions
from tests.each_case import each_case

LIMIT = 1 << 16
TEXT = b"".join(b"some words and %d " % i for i in range(700))
SMALL = {codec: craft.compress(codec, TEXT[:300]) for codec in ("gzip", "snappy", "lz4", "zstd")}
LARGE = {codec: craft.compress(codec, TEXT) for codec in SMALL}
RAW = bytes(snappy.compress(TEXT[:300]))


def streamed(codec: str, payload: bytes) -> bytes | None:
    """Return the output of the stream; None if it ends with an error."""
    try:
        return b"".join(decompress(codec, [payload], limit=LIMIT, size=len(payload)))
    except DecodeError:
        return None


def check(codec: str, payload: bytes) -> bool:
    """Return True if the payload was decompressed in one call, after checking the output."""
    found = decompress_small(codec, memoryview(payload), LIMIT)
    if found is not None:
        assert isinstance(found, bytes)
        assert found == streamed(codec, payload)
    return found is not None


@each_case("path", each_segment())
def test_real_payloads_come_at_one_go(path: os.PathLike[str]) -> None:
    for batch in batches(read_regions(path)):  # type: ignore[arg-type]
        if batch.magic == 2 and batch.is_compressed:
            payload = b"".join(batch.chunks(craft.HEADER, batch.size))
            flags = payload[4] if batch.compression == "lz4" else 0x60
            assert check(batch.compression, payload) or flags not in (0x60, 0x64)


def test_damage_of_a_raw_snappy_block() -> None:
    assert check("snappy", RAW)
    for bit in range(8 * len(RAW)):
        check("snappy", craft.flip(RAW, bit))
    for cut in range(len(RAW)):
        check("snappy", RAW[:cut])
        check("snappy", RAW[:cut] + RAW[cut + 1 :])
    for behind in (b"\0", b"x" * 9, RAW):
        check("snappy", RAW + behind)


@each_case("codec", SMALL)
def test_damage(codec: str) -> None:
    assert check(codec, SMALL[codec])
    for bit in range(8 * len(SMALL[codec])):
        check(codec, craft.flip(SMALL[codec], bit))
    for cut in range(len(SMALL[codec])):
        check(codec, SMALL[codec][:cut])
        check(codec, SMALL[codec][:cut] + SMALL[codec][cut + 1 :])
    for behind in (b"\0", b"x" * 9, SMALL[codec], SMALL[codec][-8:], b"\0" * 20):
        check(codec, SMALL[codec] + behind)
    large = LARGE[codec]
    assert check(codec, large)
    for bit in range(0, 8 * len(large), 101):
        check(codec, craft.flip(large, bit))


@each_case("codec", SMALL)
def test_limits(codec: str) -> None:
    for most in (0, 1, 299, 300, 301):
        found = decompress_small(codec, memoryview(SMALL[codec]), most)
        assert found == (TEXT[:300] if most >= 300 else None)
    bomb = craft.compress(codec, bytes(4 << 20))
    assert decompress_small(codec, memoryview(bomb), 1 << 20) is None


def test_no_codec_and_nothing() -> None:
    assert decompress_small("none", memoryview(b"x"), 9) is None
    assert decompress_small("unknown(5)", memoryview(b"x"), 9) is None
    for codec in SMALL:
        assert decompress_small(codec, memoryview(b""), 9) is None


def test_frames_of_other_writers() -> None:
    for level in (1, 9):
        check("gzip", gzip.compress(TEXT, level))
    check("gzip", b"\x1f\x8b\x08\x08" + SMALL["gzip"][4:10] + b"name\0" + SMALL["gzip"][10:])
    for options in ({"write_content_size": False}, {"write_checksum": True}, {"level": 19}):
        compressor = zstandard.ZstdCompressor(**options)
        assert check("zstd", compressor.compress(TEXT))
        stream = compressor.compressobj()
        assert check("zstd", stream.compress(TEXT) + stream.flush())
    for size, linked, content, block in ((4, True, False, False), (7, False, True, False), (5, False, False, True)):
        frame = lz4.frame.compress(
            TEXT, block_size=size, block_linked=linked, content_checksum=content, block_checksum=block, store_size=False
        )
        check("lz4", frame)
    big = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    ).compressobj()
    assert not check("zstd", big.compress(TEXT) + big.flush())
