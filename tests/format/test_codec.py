"""The codecs: what Java's readers accept is decompressed, anything else raises DecodeError, and nothing takes too much
memory.

What Java accepts was tried with Kafka 4.3.1's own classes on JDK 17 and 25, with about 86,000 damaged payloads."""

from __future__ import annotations

import gzip
import random
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator

import lz4.block
import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kdump.format.codec import decompress
from kdump.format.codec.lz4 import header_checksum, xxh32_short
from kdump.format.errors import DecodeError
from tests.conftest import examples, numbers_in, sample
from tests.each_case import each_case

LIMIT = 1 << 20
RANDOM = random.Random(6)
NOISE = RANDOM.randbytes(40)
TEXT = b"".join(b'{"id": %d, "name": "order"} ' % i for i in range(9)) + NOISE


def xerial(*blocks: bytes, version: int = 1) -> bytes:
    header = b"\x82SNAPPY\0" + struct.pack(">ii", version, 1)
    return header + b"".join(struct.pack(">i", len(block)) + block for block in map(snappy.compress, blocks))


def lz4_frame(data: bytes, **options: object) -> bytes:
    return lz4.frame.compress(data, **{"block_linked": False, "store_size": False, "block_size": 4, **options})


def zstd_frame(*blocks: bytes, checksum: bool = False, size: int = -1, level: int = 3) -> bytes:
    """Return a frame with one or more blocks for each of `blocks`."""
    stream = zstandard.ZstdCompressor(level=level, write_checksum=checksum).compressobj(size=size)
    parts = [stream.compress(b) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for b in blocks]
    return b"".join(parts) + stream.flush()


def gzip_member(data: bytes, *, reserved_flags: int = 0, header_crc_off_by: int = 0) -> bytes:
    """Return a gzip member with all optional parts of a header."""
    header = b"\x1f\x8b\x08" + bytes([2 | 4 | 8 | 16 | reserved_flags]) + bytes(6)
    header += struct.pack("<H", 5) + b"extra" + b"a name\0" + b"a comment\0"
    header += struct.pack("<H", (zlib.crc32(header) + header_crc_off_by) & 0xFFFF)
    raw = zlib.compressobj(wbits=-15)
    return header + raw.compress(data) + raw.flush() + struct.pack("<II", zlib.crc32(data), len(data))


SKIPPABLE = struct.pack("<II", 0x184D2A57, 5) + b"skip!"
# name -> codec, payload, its decompressed form, and sizes at which truncation is no error (some formats have no end)
GZIP, MEMBER = gzip.compress(TEXT, mtime=0), gzip_member(TEXT)
HEADER_OF_MEMBER = 10 + 2 + 5 + 7 + 10 + 2
ZSTD = zstd_frame(TEXT, checksum=True)
XERIAL = xerial(TEXT[:100], TEXT[100:])
CUT = len(xerial(TEXT[:100]))
SAMPLES: dict[str, tuple[str, bytes, bytes, set[int]]] = {
    "gzip": ("gzip", GZIP, TEXT, set()),
    "gzip members": (
        "gzip",
        GZIP + MEMBER + GZIP,
        TEXT * 3,
        {
            # an incomplete next header is ignored
            *range(len(GZIP), len(GZIP) + HEADER_OF_MEMBER),
            *range(len(GZIP + MEMBER), len(GZIP + MEMBER) + 10),
        },
    ),
    "gzip empty": ("gzip", gzip.compress(b"", mtime=0), b"", set()),
    "snappy raw": ("snappy", snappy.compress(TEXT), TEXT, set()),
    "snappy raw, shorter than a header": ("snappy", snappy.compress(b"short"), b"short", set()),
    "snappy raw, empty": ("snappy", snappy.compress(b""), b"", set()),
    "snappy xerial": ("snappy", XERIAL, TEXT, {*range(16, 20), *range(CUT, CUT + 4)}),
    "snappy xerial twice": (
        "snappy",
        xerial(TEXT) + xerial(TEXT),
        TEXT * 2,
        {
            *range(16, 20),
            *range(len(xerial(TEXT)), len(xerial(TEXT)) + 4),
            *(len(xerial(TEXT)) + i for i in range(16, 20)),
        },
    ),
    "lz4": ("lz4", lz4_frame(TEXT), TEXT, set()),
    "lz4 everything": (
        "lz4",
        lz4_frame(TEXT, block_checksum=True, content_checksum=True, store_size=True, block_size=7),
        TEXT,
        set(),
    ),
    "lz4 stored": ("lz4", lz4_frame(NOISE, block_checksum=True), NOISE, set()),
    "lz4 empty": ("lz4", lz4_frame(b""), b"", set()),
    "zstd": ("zstd", ZSTD, TEXT, set()),
    "zstd with content size": ("zstd", zstandard.compress(TEXT), TEXT, set()),
    "zstd blocks": ("zstd", zstd_frame(TEXT, NOISE, bytes(1000), TEXT), TEXT + NOISE + bytes(1000) + TEXT, set()),
    "zstd frames": ("zstd", ZSTD + SKIPPABLE + ZSTD, TEXT * 2, {len(ZSTD), len(ZSTD + SKIPPABLE)}),
    "zstd empty": ("zstd", zstd_frame(b""), b"", set()),
}
EACH_SAMPLE = each_case("name", SAMPLES)


def run(codec: str, payload: bytes, split: int = 0, **options: object) -> tuple[bytes, DecodeError | None]:
    """Return everything that was decompressed, and the error at the end."""
    output = bytearray()
    error = None
    chunks = [payload] if not split else [memoryview(payload)[i : i + split] for i in range(0, len(payload), split)]
    try:
        for piece in decompress(codec, chunks, **{"limit": LIMIT, "size": len(payload), **options}):  # type: ignore[arg-type]
            assert isinstance(piece, bytes)
            assert piece
            output += piece
    except DecodeError as problem:
        error = problem
    if error:
        assert 0 <= error.position <= len(payload)
        assert error.code in ("decompression-failed", "lz4-frame-unsupported")
    return bytes(output), error


def fails(codec: str, payload: bytes, **options: object) -> DecodeError:
    error = run(codec, payload, **options)[1]
    assert error
    return error


def same(first: tuple[bytes, DecodeError | None], second: tuple[bytes, DecodeError | None]) -> bool:
    return first[0] == second[0] and str(first[1]) == str(second[1])


@EACH_SAMPLE
@each_case("chunk_size", [1, 7, 1 << 20])
@each_case("split", [0, 1, 3])
def test_round_trip(name: str, split: int, chunk_size: int) -> None:
    codec, payload, data, _ = SAMPLES[name]
    output, error = run(codec, payload, split, chunk_size=chunk_size)
    assert error is None
    assert output == data


@EACH_SAMPLE
def test_cut_anywhere(name: str) -> None:
    codec, payload, data, accepted = SAMPLES[name]
    for size in range(len(payload)):
        output, error = run(codec, payload[:size])
        assert data.startswith(output)
        assert (error is None) == (size in accepted), size
        assert same((output, error), run(codec, payload[:size], split=1)), size
        # If the missing bytes were announced, the result is the same, except for the size that limits a raw Snappy
        # block.
        promised = run(codec, payload[:size], size=len(payload))
        assert promised[0] == output
        assert (promised[1] is None) == (error is None)


@pytest.mark.sampled
@EACH_SAMPLE
def test_every_flipped_bit(name: str) -> None:
    codec, payload, _, _ = SAMPLES[name]
    for bit in sample(range(len(payload) * 8), 15, name):  # the odd step reaches every bit of a byte
        damaged = bytearray(payload)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        result = run(codec, bytes(damaged), limit=4096)
        assert len(result[0]) <= 4096
        if bit % 5 == 0:
            assert same(result, run(codec, bytes(damaged), 1, limit=4096, chunk_size=5)), bit


@EACH_SAMPLE
def test_every_limit(name: str) -> None:
    codec, payload, data, _ = SAMPLES[name]
    for limit in range(len(data)):
        output, error = run(codec, payload, limit=limit)
        assert error
        assert (error.is_ours, error.field, numbers_in(error.reason)) == (True, "output", [limit])
        # A Snappy block is decompressed completely or not at all.
        assert output == data[:limit] if codec != "snappy" else data[:limit].startswith(output)
    assert run(codec, payload, limit=len(data)) == (data, None)


PREFIXES = {
    "gzip": [b"", b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\x1f\x8b\x08"],
    "snappy": [b"", XERIAL[:16], XERIAL[:20]],
    "lz4": [b"", lz4_frame(b"")[:7], lz4_frame(b"", block_checksum=True)[:7]],
    "zstd": [b"", ZSTD[:4], ZSTD[:6]],
}


@pytest.mark.sampled
@pytest.mark.parametrize("codec", PREFIXES)
@examples(150)
@given(st.integers(0, 2), st.binary(max_size=80), st.integers(1, 20))
@example(0, b"", 1)
def test_noise(codec: str, prefix: int, noise: bytes, split: int) -> None:
    payload = PREFIXES[codec][prefix] + noise
    assert same(run(codec, payload), run(codec, payload, split, chunk_size=3))


@each_case("codec", PREFIXES)
def test_large_noise_and_text_come_in_bounded_pieces(codec: str) -> None:
    data = RANDOM.randbytes(300_000) + b"kafka " * 200_000
    payload = {
        "gzip": gzip.compress,
        "snappy": lambda data: xerial(data[:40_000], data[40_000:]),
        "lz4": lz4_frame,
        "zstd": lambda data: zstd_frame(data, size=len(data)),
    }[codec](data)
    for split in (0, 1000):
        chunks = [payload[i : i + split] for i in range(0, len(payload), split)] if split else [payload]
        pieces = list(decompress(codec, chunks, limit=len(data), size=len(payload), chunk_size=100_000))
        assert b"".join(pieces) == data
        assert max(map(len, pieces)) <= 128 << 10


@EACH_SAMPLE
def test_views_are_let_go(name: str) -> None:
    # The reader's window moves when the next chunk is requested: the old bytes change, and the buffer shrinks.
    codec, payload, data, _ = SAMPLES[name]

    def chunks() -> Iterator[memoryview]:
        window = bytearray()
        for start in range(0, len(payload), 5):
            window += payload[start : start + 5]
            yield memoryview(window)
            window[:] = b"\xff" * len(window)
            window.clear()

    assert b"".join(decompress(codec, chunks(), limit=LIMIT, size=len(payload))) == data


def test_errors_of_the_reader_pass() -> None:
    def chunks() -> Iterator[bytes]:
        yield GZIP[:20]
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(decompress("gzip", chunks(), limit=LIMIT, size=len(GZIP)))


def test_streams_side_by_side() -> None:
    # Contexts are reused, but never by two streams at a time.
    for codec, payload, data in [(c, p, d) for c, p, d, _ in SAMPLES.values()]:
        streams = [decompress(codec, [payload], limit=LIMIT, size=len(payload), chunk_size=50) for _ in range(3)]
        outputs = [b"", b"", b""]
        while any(pieces := [next(stream, b"") for stream in streams]):
            outputs = [output + piece for output, piece in zip(outputs, pieces)]
        assert outputs == [data] * 3


def test_none_is_passed_on_in_pieces() -> None:
    assert list(decompress("none", [b"", b"abcde", memoryview(b"fg")], limit=0, size=7, chunk_size=2)) == [
        b"ab",
        b"cd",
        b"e",
        b"fg",
    ]


@each_case("codec", PREFIXES)
def test_empty_payload(codec: str) -> None:
    assert fails(codec, b"").position == 0


def test_unknown_codec() -> None:
    error = fails("unknown(5)", b"abc")
    assert (error.field, error.position, error.code) == ("compression", 0, "decompression-failed")
    assert "unknown(5)" in error.reason


@each_case(
    "codec, module, package",
    [("snappy", "cramjam", "python-snappy"), ("lz4", "lz4.block", "lz4"), ("zstd", "zstandard", "zstandard")],
)
def test_missing_library(codec: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    payload = next(p for c, p, _, _ in SAMPLES.values() if c == codec)
    error = fails(codec, payload)
    assert (error.is_ours, error.field) == (True, "codec")
    assert error.reason.endswith(f": pip install {package}")


def test_libraries_are_imported_late() -> None:
    code = "import kdump.format.codec, sys; print({'cramjam', 'lz4', 'zstandard'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Decompression bombs, and false sizes


def test_bombs() -> None:
    # 200 MiB of zeros in each codec: decompression stops at 20 MiB, and the process grows by a few MiB.
    piece = bytes(1 << 20)
    stream = zlib.compressobj(1, wbits=31)
    bombs = {
        "gzip": b"".join(stream.compress(piece) for _ in range(200)) + stream.flush(),
        "snappy": snappy.compress(bytes(200 << 20)),
        "snappy xerial": XERIAL[:16] + 200 * xerial(piece)[16:],
        "lz4": lz4_frame(bytes(200 << 20), block_size=7),
        # Blocks of one repeated byte: 4 bytes become 128 KiB.
        "zstd": b"\x28\xb5\x2f\xfd\x00\x58" + 1600 * (((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"),
    }
    code = """
import resource, sys
from kdump.format.codec import decompress
from kdump.format.errors import DecodeError
import zlib, cramjam, lz4.block, zstandard
codec, size = sys.argv[1], int(sys.argv[2])
payload = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = 0
try:
    for piece in decompress(codec, [memoryview(payload)], limit=20 << 20, size=size):
        total += len(piece)
        assert len(piece) <= 4 << 20
        del piece
    error = None
except DecodeError as problem:
    error = type(problem).__name__, problem.field
print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""
    for name, payload in bombs.items():
        codec = name.split()[0]
        done = subprocess.run(
            [sys.executable, "-c", code, codec, str(len(payload))], input=payload, capture_output=True, check=True
        )
        total, grown, error = done.stdout.decode().split(maxsplit=2)
        assert error.strip() == "('OurLimitError', 'output')", name
        assert int(total) == (0 if name == "snappy" else 20 << 20), name
        assert int(grown) < 16 << 10, name  # in KiB


def test_zstd_giant_claims() -> None:
    # A content size of 2**60 in a single segment: the window would have the same size.
    frame = b"\x28\xb5\x2f\xfd" + bytes([3 << 6 | 0x20]) + (1 << 60).to_bytes(8, "little") + ZSTD[6:]
    error = fails("zstd", frame)
    assert (error.field, error.reason) == ("frameHeader", "Frame requires too much memory for decoding")
    # Without a single segment, only the blocks take memory, and the library detects the wrong size at the end.
    blocks = zstandard.compress(TEXT)
    header_size = zstandard.frame_header_size(blocks)
    frame = b"\x28\xb5\x2f\xfd" + bytes([3 << 6, 0x58]) + (1 << 60).to_bytes(8, "little") + blocks[header_size:]
    assert fails("zstd", frame).field == "block"


@each_case("log, accepted", [(27, True), (28, False)])
def test_zstd_window(log: int, accepted: bool) -> None:
    blocks = zstd_frame(TEXT)
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([(log - 10) << 3]) + blocks[zstandard.frame_header_size(blocks) :]
    assert (run("zstd", frame)[1] is None) == accepted


@each_case("more", [-300, -1, 1, 300])
def test_zstd_content_size_is_compared(more: int) -> None:
    data = TEXT * 2
    blocks = zstd_frame(data, size=len(data))
    assert blocks[4] == 1 << 6 | 0x20
    lie = blocks[:5] + (len(data) - 256 + more).to_bytes(2, "little") + blocks[7:]
    assert run("zstd", lie)[1]
    # Raw and repeated blocks with an empty last one: here the library by itself is not strict.
    assert fails("zstd", b"\x28\xb5\x2f\xfd\x20\x20\x01\0\0").field == "contentSize"


@each_case(
    "block",
    [
        (1 << 3 | 3 << 1 | 1).to_bytes(3, "little") + b"x",
        ((128 << 10) + 1 << 3 | 0 << 1 | 1).to_bytes(3, "little") + bytes((128 << 10) + 1),
        ((128 << 10) + 1 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"x",
    ],
    ids=["reserved type", "raw too large", "repeated too large"],
)
def test_zstd_blocks_that_cannot_be(block: bytes) -> None:
    assert fails("zstd", b"\x28\xb5\x2f\xfd\0\x58" + block).field == "blockHeader"


def test_zstd_empty_compressed_block() -> None:
    block = (0 << 3 | 2 << 1 | 1).to_bytes(3, "little")
    assert run("zstd", b"\x28\xb5\x2f\xfd\0\x58" + block) == (b"", None)
    assert fails("zstd", b"\x28\xb5\x2f\xfd\x20\0" + block).field == "blockHeader"


def test_zstd_checksum_and_garbage() -> None:
    output, error = run("zstd", ZSTD[:-1] + bytes([ZSTD[-1] ^ 1]))
    assert error
    assert (error.field, error.position, output) == ("contentChecksum", len(ZSTD) - 4, TEXT)
    output, error = run("zstd", ZSTD + b"garbage")
    assert error
    assert (error.field, error.position, output) == ("magic", len(ZSTD), TEXT)


def test_zstd_blocks_before_a_bad_one_come_out() -> None:
    good = zstd_frame(TEXT, checksum=True)[:-7]  # without the last, empty block and the checksum
    output, error = run("zstd", good + (50 << 3 | 2 << 1).to_bytes(3, "little") + b"\xff" * 50)
    assert error
    assert (error.field, error.position, output) == ("block", len(good), TEXT)


# gzip


def test_gzip_ignores_what_is_no_member() -> None:
    for tail in (b"\0", b"garbage", b"\x1f\x8b", b"\x1f\x8b\x07" + bytes(20), gzip_member(TEXT, header_crc_off_by=1)):
        assert run("gzip", GZIP + tail) == (TEXT, None)
    assert run("gzip", GZIP + GZIP[:11])[1]


def test_gzip_header() -> None:
    assert fails("gzip", gzip_member(TEXT, header_crc_off_by=1)).field == "headerCrc"
    # Java ignores these flags; zlib's own gzip reader rejects them.
    assert run("gzip", gzip_member(TEXT, reserved_flags=0xE0)) == (TEXT, None)
    assert fails("gzip", b"\x1f\x8b\x07" + GZIP[3:]).field == "method"
    assert fails("gzip", b"PK" + GZIP[2:]).field == "magic"
    # A name without an end is skipped and not kept.
    assert fails("gzip", GZIP[:3] + b"\x08" + GZIP[4:10] + b"n" * 400_000).position == 400_010


def test_gzip_trailer() -> None:
    for at, field in ((-8, "crc32"), (-4, "isize")):
        damaged = bytearray(GZIP)
        damaged[at] ^= 1
        output, error = run("gzip", bytes(damaged))
        assert error
        assert (error.field, error.position, output) == (field, len(GZIP) + at, TEXT)


def test_gzip_gives_all_that_comes_before_an_error() -> None:
    data = b"kafka" * 50_000
    stream = zlib.compressobj(wbits=31)
    payload = stream.compress(data) + stream.flush(zlib.Z_FULL_FLUSH)
    for split in (0, 1):
        output, error = run("gzip", payload + b"\x07\xff\xff", split, chunk_size=1000)
        assert output == data
        assert error
        assert (error.field, error.position) == ("data", len(payload))


# Snappy


def raw_length(length: int) -> bytes:
    """Return the size of a raw block, a varint at its start."""
    parts = []
    while length >= 0x80:
        parts.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*parts, length])


@each_case("length", [64 * 3 + 1, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 35) - 1, 1 << 40])
def test_snappy_lying_length(length: int) -> None:
    # The 9 bytes after it cannot become more than 192.
    payload = raw_length(length) + bytes(9)
    error = fails("snappy", payload, limit=1 << 62)
    assert (error.struct, error.field) == ("SnappyBlock", "length")
    framed = XERIAL[:16] + struct.pack(">i", len(payload)) + payload
    error = fails("snappy", framed, limit=1 << 62)
    assert (error.struct, error.field, error.position) == ("SnappyBlock", "length", 20)
    # Neither is a payload of the claimed size collected, nor memory allocated for a size that it cannot reach.
    assert fails("snappy", payload, limit=100, size=1 << 40).field in ("length", "output")


def test_snappy_longest_copies() -> None:
    # One byte, then copies of 64 bytes in 3 bytes each: the maximum of the format.
    count = 1000
    payload = raw_length(1 + 64 * count) + b"\0x" + bytes([63 << 2 | 2, 1, 0]) * count
    assert run("snappy", payload) == (b"x" * (1 + 64 * count), None)


@each_case("wrong", [-1, 1])
def test_snappy_length_must_match(wrong: int) -> None:
    payload = snappy.compress(TEXT)
    assert payload[:2] == raw_length(len(TEXT))
    assert fails("snappy", raw_length(len(TEXT) + wrong) + payload[2:])


@each_case("size", [0, -1, -(1 << 31), (512 << 20) + 1])
def test_snappy_chunk_size(size: int) -> None:
    output, error = run("snappy", XERIAL + struct.pack(">i", size) + bytes(100))
    assert error
    assert (error.field, error.position, output) == ("chunkSize", len(XERIAL), TEXT)


def test_snappy_headers() -> None:
    # The version in the first header is ignored, that in a later one is not.
    assert run("snappy", xerial(TEXT, version=0)) == (TEXT, None)
    output, error = run("snappy", XERIAL + xerial(TEXT, version=0))
    assert error
    assert (error.field, error.position, output) == ("version", len(XERIAL) + 8, TEXT)
    assert fails("snappy", XERIAL + b"\x82SNAP" + bytes(30)).field == "magic"
    # If it is too short for a header, it is a raw block.
    assert fails("snappy", XERIAL[:15]).struct == "SnappyBlock"


# LZ4


def with_header(flags: int, bd: int = 0x40, rest: bytes = bytes(4)) -> bytes:
    return b"\x04\x22\x4d\x18" + bytes([flags, bd, header_checksum(bytes([flags, bd]))]) + rest


@each_case(
    "flags, bd",
    [(0x40, 0x40), (0x61, 0x40), (0x62, 0x40), (0x20, 0x40), (0xA0, 0x40), (0xE0, 0x40), (0x60, 0x41), (0x60, 0xC0)],
)
def test_lz4_unsupported(flags: int, bd: int) -> None:
    error = fails("lz4", with_header(flags, bd))
    assert error.code == "lz4-frame-unsupported"
    assert error.position == (4 if bd == 0x40 else 5)


def test_lz4_linked_blocks_of_a_real_writer() -> None:
    frame = lz4_frame(TEXT * 1000, block_linked=True)
    assert lz4.frame.decompress(frame) == TEXT * 1000
    assert fails("lz4", frame).code == "lz4-frame-unsupported"


@each_case("magic", [0x184D2A50, 0x184D2A5F, 0x184C2102])
def test_lz4_other_frames(magic: int) -> None:
    assert fails("lz4", struct.pack("<II", magic, 4) + b"skip" + lz4_frame(TEXT)).code == "lz4-frame-unsupported"


@each_case("bd", [0x00, 0x30])
def test_lz4_block_size_code(bd: int) -> None:
    error = fails("lz4", with_header(0x60, bd))
    assert (error.field, error.code) == ("BD", "decompression-failed")


@each_case("stored", range(0, 256, 5))
def test_lz4_header_checksum(stored: int) -> None:
    frame = bytearray(lz4_frame(TEXT, store_size=True))
    expected = frame[14]
    frame[14] = stored
    assert run("lz4", bytes(frame), ignore_header_checksum=True) == (TEXT, None)
    if stored != expected:
        error = fails("lz4", bytes(frame))
        assert (error.field, error.position) == ("headerChecksum", 14)
        assert re.findall(r"\b0x\w+", error.reason) == [f"0x{stored:02x}", f"0x{expected:02x}"]


def test_lz4_header_checksum_of_old_clients() -> None:
    frame = bytearray(lz4_frame(TEXT))
    frame[6] = header_checksum(bytes(frame[:6]))
    assert "covers the magic" in fails("lz4", bytes(frame)).reason
    assert run("lz4", bytes(frame), ignore_header_checksum=True) == (TEXT, None)


@each_case("data, expected", [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)])
def test_xxh32(data: bytes, expected: int) -> None:
    assert xxh32_short(data) == expected


@given(st.integers(1, 1 << 40))
@settings(max_examples=100)
def test_header_checksum_is_the_library_s(size: int) -> None:
    begun = lz4.frame.LZ4FrameCompressor(block_linked=False).begin(source_size=size)
    assert begun[-1] == header_checksum(begun[4:-1])
    assert len(begun) == 15


def test_lz4_content_checksum_is_not_compared_but_there() -> None:
    frame = lz4_frame(TEXT, content_checksum=True)
    assert run("lz4", frame[:-4] + b"\0\0\0\0") == (TEXT, None)
    output, error = run("lz4", frame[:-1])
    assert error
    assert (error.field, error.position, output) == ("contentChecksum", len(frame) - 4, TEXT)


@each_case("data", [NOISE, NOISE[:1], TEXT, TEXT * 1000], ids=["stored", "one byte", "text", "blocks"])
@each_case("block_size", [4, 5, 6, 7])
def test_lz4_block_checksum(data: bytes, block_size: int) -> None:
    frame = bytearray(lz4_frame(data, block_checksum=True, block_size=block_size))
    assert run("lz4", bytes(frame)) == (data, None)
    size = int.from_bytes(frame[7:11], "little") & 0x7FFFFFFF
    frame[11 + size] ^= 1
    error = fails("lz4", bytes(frame))
    assert (error.field, error.position) == ("blockChecksum", 11 + size)


def test_lz4_ends_at_the_first_end_mark() -> None:
    frame = lz4_frame(TEXT)
    assert run("lz4", frame + b"garbage") == (TEXT, None)
    assert run("lz4", frame + lz4_frame(TEXT)) == (TEXT, None)
    # Java accepts an end mark with the bit for uncompressed data.
    assert run("lz4", frame[:-1] + b"\x80") == (TEXT, None)
    assert run("lz4", frame[:-4])[1]


def test_lz4_blocks() -> None:
    stored = (1 << 31 | 65536).to_bytes(4, "little") + bytes(65536)
    assert run("lz4", with_header(0x60, rest=stored + bytes(4))) == (bytes(65536), None)
    for size in (65537, 1 << 31 | 65537, (1 << 31) - 1, (1 << 32) - 1):
        output, error = run("lz4", with_header(0x60, rest=stored + size.to_bytes(4, "little") + bytes(70000)))
        assert error
        assert (error.field, error.position, output) == ("blockSize", 7 + 4 + 65536, bytes(65536))
    # A block may not become larger than the header states.
    large = lz4.block.compress(bytes(65537), store_size=False)
    error = fails("lz4", with_header(0x60, rest=len(large).to_bytes(4, "little") + large + bytes(4)))
    assert (error.field, error.position) == ("block", 11)
    assert run("lz4", with_header(0x60, 0x50, rest=len(large).to_bytes(4, "little") + large + bytes(4)))[1] is None
