"""Regions tile any file, and one damaged batch never hides a valid one."""

from __future__ import annotations

import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import kdump.io.window
import kdump.log.resync
from kdump.format.batch_header import BATCH_HEADER
from kdump.io.run import Limits
from kdump.io.source import StreamSource
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.legacy_records import read_wrapper
from kdump.log.reading import Reading
from kdump.log.region import BatchRun, DefaultRecordBatch, LegacyRecordBatch, Region, batches_of
from kdump.log.region_reader import Depth, Reader, regions
from kdump.log.walk import RegionObserver, walk
from tests import craft
from tests.conftest import (
    SEED,
    WINDOWS,
    all_facts,
    batches,
    each_segment,
    examples,
    iter_regions,
    opened,
    read_regions,
    sample,
    segment,
    some_segments,
    tiles,
    window_of,
)
from tests.each_case import each_case

REAL = {
    name: craft.split(segment(name).read_bytes())
    for name in (
        *("clean-1/trimmed-0", "clean-1/orders-none-0", "clean-1/orders-zstd-0", "clean-1/payments-0"),
        *("legacy/v0-client09-none-0", "legacy/v1-logappend-lz4-0", "legacy/upgraded-gzip-0"),
    )
}
"""Valid batches of every format, in offset order."""
FORMATS = each_case("sound", REAL.values(), ids=REAL)
V2 = each_case("name", ["clean-1/trimmed-0", "clean-1/orders-zstd-0", "clean-1/payments-0"])

RANDOM = random.Random(9)
JUNK = {
    "random": RANDOM.randbytes(700),
    "text": b"2026-01-01 12:00:00 ERROR the disk is on fire\n" * 20,
    "ones": b"\xff" * 600,
    "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + RANDOM.randbytes(300),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00>\x00\x01\x00\x00\x00" + bytes(40) + RANDOM.randbytes(90),
    "one byte": b"\x01",
    "a short header": bytes(7) + b"\x63" + bytes(3) + b"\x09" + bytes(4) + b"\x02",
    "less than a header": RANDOM.randbytes(16),
    "nearly a header": RANDOM.randbytes(60),
}


def place(*parts: bytes | Region) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the parts in a row, and where each begins and ends."""
    data = b""
    spans = []
    for part in parts:
        assert isinstance(part, bytes)
        spans.append((len(data), len(data) + len(part)))
        data += part
    return data, spans


def spans_of(found: list[Region]) -> list[tuple[int, int]]:
    """Return the positions of the batches whose checksums match."""
    return [(region.position, region.end) for region in batches(found) if region.crcValid]


def check(
    data: bytes,
    good: list[tuple[int, int]],
    name_offset: int | None = 0,
    windows: Any = WINDOWS,
    doubtful: list[tuple[int, int]] | None = None,
) -> list[Region]:
    """Check, with every window, that the regions tile `data` and that the `good` batches are exactly those with a
    matching checksum. The `doubtful` ones may be among them."""
    found: list[Region] = []
    for window in windows:
        found = read_regions(data, window, name_offset)
        assert tiles(found, len(data))
        assert [span for span in spans_of(found) if span not in (doubtful or [])] == good
    return found


# Valid files


@each_case("path", each_segment())
def test_fixtures(path: Path) -> None:
    data = path.read_bytes()
    _, spans = place(*craft.split(data))
    for window in WINDOWS:
        found = read_regions(path, window)
        assert tiles(found, len(data))
        assert spans_of(found) == spans
        readings = [Reading(batch) for batch in batches(found)]
        assert not [problem for each in readings for _ in records(each) for problem in each.problems]
        rest = [region.kind for region in found[len(spans) :]]
        assert rest == (["padding"] if "prealloc" in str(path) else [])


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 40))
def test_windows_agree(path: Path) -> None:
    expected = all_facts(path)
    for window in (*WINDOWS, 1000, 65536):
        assert all_facts(path, window) == expected


class Pipe:
    """A stream that returns its bytes in pieces of irregular sizes, and cannot seek."""

    def __init__(self, data: bytes) -> None:
        self.stream = io.BytesIO(data)
        self.sizes = random.Random(1)

    def read1(self, count: int) -> bytes:
        return self.stream.read(min(count, self.sizes.choice([1, 7, 100, 5000])))

    def close(self) -> None:
        pass


def piped(data: bytes) -> StreamSource:
    return StreamSource("-", Pipe(data))


def copies(path: Path, there: Path) -> Iterator[str]:
    """The same file in the forms in which people ship it."""
    data = path.read_bytes()
    for ending, packed in ((".gz", gzip.compress(data)), (".zst", zstandard.compress(data))):
        copy = craft.write_file(there / (path.name + ending), packed)
        yield str(copy)
    fsspec = pytest.importorskip("fsspec")
    for name, stored in ((path.name, data), (path.name + ".gz", gzip.compress(data))):
        fsspec.filesystem("memory").pipe(f"/{path.parent.name}/{name}", stored)
        yield f"memory://{path.parent.name}/{name}"


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 40))
def test_sources_agree(path: Path, tmp_path: Path) -> None:
    expected = all_facts(path)
    name_offset = int(path.stem) if path.suffix == ".log" else None
    for window in (1 << 20, 4096):
        assert all_facts(piped(path.read_bytes()), window, name_offset=name_offset) == expected
    for copy in copies(path, tmp_path):
        assert all_facts(opened(copy), name_offset=name_offset) == expected


@FORMATS
def test_sources_agree_on_damage(sound: list[bytes], tmp_path: Path) -> None:
    data = damaged(sound[:18])
    expected = all_facts(data, name_offset=0)
    assert len(expected) > len(sound[:18])
    for window in WINDOWS:
        assert all_facts(data, window, name_offset=0) == expected
        assert all_facts(piped(data), window, name_offset=0) == expected
    path = craft.write_file(tmp_path / f"{0:020}.log", data)
    for copy in copies(path, tmp_path):
        assert all_facts(opened(copy), name_offset=0) == expected


def damaged(sound: list[bytes]) -> bytes:
    """Valid batches with various damage between them: of 18, with all of JUNK."""
    parts: list[bytes] = []
    for index, (batch, junk) in enumerate(zip(sound, list(JUNK.values()) * len(sound))):
        parts += [batch, junk] if index % 2 else [batch, craft.flip(batch, 8 * len(batch) - 1), bytes(100)]
    return b"".join([*parts, sound[-1][: len(sound[-1]) // 2]])


def test_a_damaged_gzip_copy_ends_where_it_breaks(tmp_path: Path) -> None:
    path = segment("clean-1/orders-none-0")
    packed = gzip.compress(path.read_bytes())
    copy = craft.write_file(tmp_path / f"{0:020}.log.gz", packed[: len(packed) // 2])
    source = opened(copy)
    found = all_facts(source, name_offset=0)
    assert source.error
    assert source.size is not None
    assert sum(region["size"] for region in found) == source.size < len(path.read_bytes())
    expected = all_facts(path)
    assert found[:-1] == expected[: len(found) - 1]
    assert found[-1]["kind"] == "torn"


@each_case("window", WINDOWS)
def test_start(window: int) -> None:
    """Reading may start at any region."""
    path = segment("clean-1/payments-0")
    expected = read_regions(path)
    for region in expected[:: len(expected) // 7]:
        found = list(Reader(window_of(path, window), 0, Limits()).regions(region.position))
        rest = [other for other in expected if other.position >= region.position]
        assert [(r.kind, r.position, r.size) for r in found] == [(r.kind, r.position, r.size) for r in rest]


def test_empty() -> None:
    assert read_regions(b"") == []
    assert list(iter_regions(piped(b""))) == []


# Any bytes


@settings(derandomize=True)
@given(st.binary(max_size=600), st.sampled_from(WINDOWS), st.sampled_from([None, 0, 5_000_000_000]))
def test_any_bytes_tile(data: bytes, window: int, name_offset: int | None) -> None:
    found = read_regions(data, window, name_offset)
    assert tiles(found, len(data))
    assert not spans_of(found)


SMALL = [batch for name in ("clean-1/payments-0", "clean-1/users-0", "legacy/v0-client09-none-0") for batch in
         craft.split(segment(name).read_bytes())[:12]]  # fmt: skip
NOISE: st.SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=80),
    st.integers(1, 900).map(bytes),
    st.sampled_from(list(JUNK.values())),
    st.tuples(st.sampled_from(SMALL), st.integers(0, 60), st.binary(min_size=1, max_size=20)).map(
        lambda t: craft.flip(craft.overwrite(t[0], t[1], t[2])[: len(t[0])], 8 * len(t[0]) - 2)
    ),
    st.tuples(st.sampled_from(SMALL), st.integers(1, 200)).map(lambda t: t[0][: t[1]]),
).filter(lambda noise: noise not in SMALL)


@pytest.mark.sampled
@settings(examples(500), derandomize=True)
@given(
    st.lists(st.one_of(NOISE, st.integers(0, len(SMALL) - 1)), max_size=12),
    st.sampled_from(WINDOWS),
    st.sampled_from([None, 0]),
)
def test_any_splice_of_batches_and_junk(parts: list[bytes | int], window: int, name_offset: int | None) -> None:
    """Each real batch is found, whatever is between them; offsets are in ascending order, as in a log."""
    data, good, offset = b"", [], 0
    for part in parts:
        if isinstance(part, int):
            batch = craft.rebase(SMALL[part], offset)
            offset += 1000
            good.append((len(data), len(data) + len(batch)))
            data += batch
        else:
            data += part
    found = read_regions(data, window, name_offset)
    assert tiles(found, len(data))
    there = spans_of(found)
    # The first zeros of a batch may complete an incomplete batch before it.
    lost = [span for span in good if span not in there and not any(start < span[0] < end for start, end in there)]
    assert not lost


# Junk around batches


@each_case("junk", JUNK.values(), ids=JUNK)
@FORMATS
def test_junk_before_between_and_behind(sound: list[bytes], junk: bytes) -> None:
    sound = sound[:6]
    for at in range(len(sound) + 1):
        data, spans = place(*sound[:at], junk, *sound[at:])
        gap = spans.pop(at)
        found = check(data, spans)
        others = [region for region in found if (region.position, region.end) not in spans]
        assert [(region.position, region.end) for region in others] == [gap]
        assert others[0].kind != "batch"


@FORMATS
def test_junk_everywhere(sound: list[bytes]) -> None:
    parts: list[bytes] = []
    for batch, junk in zip(sound, list(JUNK.values()) * len(sound)):
        parts += [junk, batch]
    data, spans = place(*parts)
    check(data, spans[1::2])


@FORMATS
def test_a_file_whose_name_is_far_off(sound: list[bytes]) -> None:
    """The batches of a file with a wrong name are found once two batches agree that it is wrong."""
    sound = [craft.rebase(batch, 50_000 + int.from_bytes(batch[:8], "big")) for batch in sound[:7]]
    data, spans = place(*sound[:3], JUNK["random"], *sound[3:])
    for name_offset in (10**15, 1_000_000, 50_000):
        check(data, spans[:3] + spans[4:], name_offset)


@each_case("size", [512, 4096])
@FORMATS
def test_a_zeroed_block(sound: list[bytes], size: int) -> None:
    data, spans = place(*sound)
    for block in range(0, len(data), size):
        check_block(craft.overwrite(data, block, bytes(min(size, len(data) - block))), data, spans)


@FORMATS
def test_a_block_of_another_file(sound: list[bytes]) -> None:
    data, spans = place(*sound)
    for block in range(0, len(data), 512):
        check_block(craft.overwrite(data, block, RANDOM.randbytes(min(512, len(data) - block))), data, spans)


def check_block(hurt: bytes, data: bytes, spans: list[tuple[int, int]]) -> None:
    good = [(start, end) for start, end in spans if hurt[start:end] == data[start:end]]
    # If the block changes only bytes of a base offset, no checksum detects it.
    doubtful = [(start, end) for start, end in spans if hurt[start + 8 : end] == data[start + 8 : end]]
    doubtful = [span for span in doubtful if span not in good]
    check(hurt, good, windows=WINDOWS[:2], doubtful=doubtful)


# Ends of files


def some_ends(start: int, stop: int) -> list[int]:
    """Return where a batch is cut: anywhere in its header, and at a sample of the other bytes."""
    return sorted({*range(start, min(start + craft.HEADER, stop)), *sample(range(start, stop), 19, start), stop - 1})


@pytest.mark.sampled
@FORMATS
def test_a_torn_tail(sound: list[bytes]) -> None:
    sound = sound[:4]
    data, spans = place(*sound)
    start = spans[-1][0]
    for end in some_ends(start + 1, len(data)):
        found = check(data[:end], spans[:-1], windows=WINDOWS[:1])
        zeros = not any(data[start:end])
        assert [(r.kind, r.position) for r in found[len(spans) - 1 :]] == [("padding" if zeros else "torn", start)]


@pytest.mark.sampled
@FORMATS
def test_a_torn_first_batch(sound: list[bytes]) -> None:
    for end in some_ends(13, len(sound[0])):
        found = check(sound[0][:end], [], windows=WINDOWS[:1])
        assert [(region.kind, region.size) for region in found] == [("torn" if end > 11 else "padding", end)]


@each_case("zeros", [1, 11, 16, 17, 60, 61, 4095, 4096, 70_000])
@FORMATS
def test_padding_at_the_end(sound: list[bytes], zeros: int) -> None:
    data, spans = place(*sound[:5])
    found = check(data + bytes(zeros), spans)
    assert [(region.kind, region.size) for region in found[len(spans) :]] == [("padding", zeros)]


@FORMATS
def test_a_bad_last_batch_before_padding(sound: list[bytes]) -> None:
    data, spans = place(*sound[:5])
    found = check(craft.flip(data, 8 * len(data) - 3) + bytes(8192), spans[:-1])
    assert [(region.kind, region.position, region.end) for region in found[-2:]] == [
        ("batch", *spans[-1]),
        ("padding", len(data), len(data) + 8192),
    ]


@FORMATS
def test_a_tail_of_which_only_the_start_was_written(sound: list[bytes]) -> None:
    """A preallocated file after a crash: an incomplete batch, then zeros."""
    data, spans = place(*sound[:4])
    cut = len(sound[3]) - max(1, len(sound[3]) // 3)
    end = spans[3][0] + cut
    found = check(data[:end] + bytes(50_000), spans[:3])
    assert all(region.kind != "batch" or not region.crcValid for region in found[3:])  # type: ignore[attr-defined]
    assert found[-1].kind == "padding"


@each_case("base", [0, 1, 5, 255, 256, 65535, 1 << 24, (1 << 31) + 5])
@each_case("zeros", [1, 7, 8, 11, 12, 13, 16, 17, 18, 61, 512, 4096, 70_001])
def test_zeros_before_a_batch(base: int, zeros: int) -> None:
    """The zeros end where the batch begins, although its own first bytes are zeros too."""
    first = craft.rebase(REAL["clean-1/trimmed-0"][0], base)
    second = craft.rebase(REAL["clean-1/trimmed-0"][1], base + 100)
    for name_offset in (base // 1000, None):
        data, spans = place(bytes(zeros), first, second)
        found = check(data, spans[1:], name_offset)
        assert [(region.kind, region.size) for region in found[:1]] == [("padding", zeros)]
    data, spans = place(first, bytes(zeros), second)
    found = check(data, [spans[0], spans[2]], base)
    assert [(region.kind, region.size) for region in found[1:2]] == [("padding", zeros)]


def test_zeros_before_messages() -> None:
    for sound in (REAL["legacy/v0-client09-none-0"], REAL["legacy/v1-logappend-lz4-0"]):
        data, spans = place(bytes(512), sound[0], bytes(512), sound[1], bytes(17), sound[2], bytes(3))
        found = check(data, spans[1:6:2])
        assert [region.kind for region in found] == ["padding", "batch"] * 3 + ["padding"]


@pytest.mark.slow
def test_four_gibibytes_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    first, last = REAL["clean-1/trimmed-0"][:2]
    with path.open("wb") as file:
        file.write(first)
        file.truncate((4 << 30) - len(last))
        file.seek(0, os.SEEK_END)
        file.write(last)
    found = read_regions(path)
    assert [(region.kind, region.size) for region in found] == [
        ("batch", len(first)),
        ("padding", (4 << 30) - len(first) - len(last)),
        ("batch", len(last)),
    ]


# False header fields


@each_case("at", [0, 2, -1])
@FORMATS
def test_a_flipped_length_is_found_by_the_checksum(sound: list[bytes], at: int) -> None:
    sound = sound[:5]
    data, spans = place(*sound)
    start, end = spans[at]
    count = len(list(records(batches(read_regions(data, name_offset=0))[at])))
    for bit in range(64, 96):
        hurt = craft.flip(data, 8 * start + bit)
        found = check(hurt, spans, windows=WINDOWS[:2])
        (batch,) = [region for region in batches(found) if region.problems]
        (problem,) = batch.problems
        assert (batch.position, batch.end, batch.crcValid) == (start, end, True)
        assert (problem.code, problem.position) == ("batch-length-invalid", start + 8)
        assert (problem.expected, problem.actual) == (end - start - 12, batch.batchLength)
        assert len(list(records(batch))) == count


@FORMATS
def test_a_flipped_length_before_padding(sound: list[bytes]) -> None:
    data, spans = place(*sound[:3])
    for bit in range(64, 96):
        check(craft.flip(data, 8 * spans[-1][0] + bit) + bytes(5000), spans[:-1], windows=WINDOWS[:1])


@each_case("at", [0, 2, -1])
@FORMATS
def test_a_flipped_magic(sound: list[bytes], at: int) -> None:
    sound = sound[:5]
    data, spans = place(*sound)
    start, end = spans[at]
    is_v2 = sound[at][16] == 2  # the checksum covers the magic of the other formats
    good = spans if is_v2 else [span for span in spans if span != (start, end)]
    for bit in range(128, 136):
        found = check(craft.flip(data, 8 * start + bit), good)
        (region,) = (region for region in found if region.position == start)
        assert region.end == end
        if is_v2:
            assert isinstance(region, DefaultRecordBatch)
            assert [(each.code, each.actual & 0xFF) for each in region.problems] == [
                ("magic-unknown", 2 ^ 1 << 7 - bit % 8)
            ]
            assert region.stored_header[3] & 0xFF == 2 ^ 1 << 7 - bit % 8


@each_case("name_offset", [0, None])
@each_case("at", [0, 2, -1])
@FORMATS
def test_a_flipped_base_offset(sound: list[bytes], at: int, name_offset: int | None) -> None:
    """The checksum does not cover it: the batch is valid, and only its neighbors show that its offset is wrong."""
    sound = sound[:6]
    data, spans = place(*sound)
    for bit in range(64):
        check(craft.flip(data, 8 * spans[at][0] + bit), spans, name_offset, windows=WINDOWS[:1])


@pytest.mark.sampled
@each_case("name_offset", [0, None])
@each_case("at", [0, 1, 2])
@FORMATS
def test_a_flipped_base_offset_hides_nothing_behind_damage(
    sound: list[bytes], at: int, name_offset: int | None
) -> None:
    """Later batches must not be compared with a wrong offset."""
    sound = sound[:8]
    for wreck in range(at + 1, min(at + 3, len(sound))):
        parts = [*sound[:wreck], JUNK["random"][: len(sound[wreck])], *sound[wreck + 1 :]]
        data, spans = place(*parts)
        good = spans[:wreck] + spans[wreck + 1 :]
        for bit in sample(range(64), 11, wreck):
            check(craft.flip(data, 8 * spans[at][0] + bit), good, name_offset, windows=WINDOWS[:1])


@each_case("field", ["lastOffsetDelta", "batchLength", "recordCount", "maxTimestamp", "producerId"])
@V2
def test_a_lying_field_in_a_bad_batch_hides_nothing(name: str, field: str) -> None:
    """The checksum does not match, so the field must not be trusted."""
    sound = REAL[name][:8]
    bits = 8 * BATCH_HEADER.field(field).wire.size  # type: ignore[operator]
    parts = [*sound[:3], sound[3], JUNK["random"], *sound[4:]]
    data, spans = place(*parts)
    for bit in range(bits):
        where = 8 * (spans[3][0] + BATCH_HEADER.positions[field]) + bit
        check(craft.flip(data, where), spans[:3] + spans[5:], windows=WINDOWS[:1])


@FORMATS
def test_two_bad_batches_and_a_good_one_between(sound: list[bytes]) -> None:
    sound = sound[:5]

    def wrecks(batch: bytes) -> Iterator[bytes]:
        yield craft.flip(craft.flip(batch, 8 * 16 + 5), 8 * 30)  # magic, and a byte that a checksum covers
        yield craft.flip(batch, 8 * len(batch) - 1)  # the last byte
        yield craft.overwrite(batch, 0, JUNK["random"][: min(61, len(batch))])  # the whole header
        yield craft.overwrite(batch, 0, bytes(min(61, len(batch))))
        yield JUNK["random"][: len(batch)]

    for first in wrecks(sound[1]):
        for second in wrecks(sound[3]):
            data, spans = place(sound[0], first, sound[2], second, sound[4])
            check(data, spans[::2], windows=WINDOWS[:2])
            data, spans = place(first, sound[2], second)
            check(data, spans[1:2], windows=WINDOWS[:2])


# A value that contains a batch


def nests(inner: bytes, second: bytes) -> dict[str, bytes]:
    text = b'{"segment": "' + b"x" * 40
    return {
        "exactly": inner,
        "with a prefix": text + inner,
        "with a suffix": inner + text,
        "within": text + inner + text,
        "two": inner + second,
        "two within": text + inner + second + text,
        "two apart": inner + text + second,
        "before zeros": inner + bytes(100),
        "and half of another": inner + second[: len(second) // 2],
    }


WRECKS: dict[str, Callable[[bytes], bytes]] = {
    "magic": lambda batch: craft.flip(batch, 8 * 16 + 5),
    "length to large": lambda batch: craft.flip(batch, 8 * 8 + 3),
    "length to small": lambda batch: craft.overwrite(batch, 8, (70).to_bytes(4, "big")),
    "length to less than a header": lambda batch: craft.overwrite(batch, 8, (7).to_bytes(4, "big")),
    "negative length": lambda batch: craft.flip(batch, 8 * 8),
    "offset": lambda batch: craft.flip(batch, 1),
    "crc": lambda batch: craft.flip(batch, 8 * 19),
    "crc of a message": lambda batch: craft.flip(batch, 8 * 13),
    "the first 17 bytes": lambda batch: craft.overwrite(batch, 0, b"\xab" * 17),
    "zeros up to the checksum": lambda batch: craft.overwrite(batch, 0, bytes(17)),
    "the header": lambda batch: craft.overwrite(batch, 0, JUNK["random"][:61]),
    "the header zeroed": lambda batch: craft.overwrite(batch, 0, bytes(61)),
    "the length, and a byte of a record": lambda batch: craft.flip(craft.flip(batch, 8 * 8 + 3), 8 * len(batch) - 10),
}


@each_case("wreck", WRECKS.values(), ids=WRECKS)
@each_case("nest", list(nests(b"", b"")))
def test_a_batch_in_a_value_is_not_reported(nest: str, wreck: Callable[[bytes], bytes]) -> None:
    """The batches inside its records are reported neither for a valid batch nor for a damaged one."""
    before = craft.rebase(REAL["clean-1/trimmed-0"][0], 0)
    behind = craft.rebase(REAL["clean-1/trimmed-0"][1], 1000)
    inner, second = craft.one(b"nested", offset=500), craft.one(b"nested too", offset=501)
    value = nests(inner, second)[nest]
    outer = craft.batch(
        [
            craft.record(0, b"a", b"an ordinary value " * 9),
            craft.record(1, b"key", value, [(b"header", b"of the record")]),
            craft.record(2, b"b", b"another ordinary value " * 9),
        ],
        offset=100,
    )
    sound, spans = place(before, outer, behind)
    check(sound, spans)
    for parts in ([before, wreck(outer), behind], [wreck(outer), behind], [before, wreck(outer)], [wreck(outer)]):
        data, spans = place(*parts)
        for window in WINDOWS:
            found = read_regions(data, window, 0)
            assert tiles(found, len(data))
            for span, part in zip(spans, parts):
                if part in (before, behind):
                    assert span in spans_of(found)
            inside = data.index(inner)
            assert not [span for span in spans_of(found) if span[0] >= inside and span[1] <= inside + len(value)]


@each_case("magic", [0, 1])
@each_case("nest", list(nests(b"", b"")))
def test_a_message_in_a_value_is_not_reported(nest: str, magic: int) -> None:
    before = craft.message(magic, b"before", offset=0)
    behind = craft.message(magic, b"behind", offset=1000)
    inner, second = craft.message(magic, b"nested", offset=500), craft.message(magic, b"nested too", offset=501)
    outer = craft.message(magic, nests(inner, second)[nest], offset=100, key=b"key")
    for name in ("magic", "length to large", "length to small", "negative length", "crc of a message", "offset"):
        data, spans = place(before, WRECKS[name](outer), behind)
        for window in WINDOWS:
            found = read_regions(data, window, 0)
            assert tiles(found, len(data))
            assert {spans[0], spans[2]} <= set(spans_of(found))
            inside = data.find(inner)
            if inside > 0:
                assert not [span for span in spans_of(found) if inside <= span[0] < inside + len(inner)]


def test_a_torn_batch_whose_value_holds_a_batch() -> None:
    before = craft.rebase(REAL["clean-1/trimmed-0"][0], 0)
    inner = craft.one(b"nested", offset=500)
    outer = craft.one(b"prefix " + inner + b" suffix" * 20, offset=100)
    for cut in range(len(outer) - 1, 61, -1):
        found = check(before + outer[:cut], [(0, len(before))], windows=WINDOWS[:1])
        assert [region.kind for region in found] == ["batch", "torn"]


# Crafted input that would take long


def tiny(offset: int) -> bytes:
    return craft.batch([], offset=offset)


def bogus(offset: int, size: int) -> bytes:
    """Return the header of a batch that does not exist."""
    return craft.patch(tiny(offset), crc=False, batchLength=size - 12)[:17] + b"\x12\x34\x56\x78" + tiny(offset)[21:]


def headers_to_the_end(size: int) -> bytes:
    """Return consecutive headers, each of which claims everything up to the same valid batch."""
    count = size // 61
    return b"".join(bogus(1 + i, 61 * (count - i)) for i in range(count)) + tiny(count + 10)


def headers_of_a_tenth(size: int) -> bytes:
    count = size // 61
    return b"".join(bogus(1 + i, size // 10) for i in range(count)) + tiny(count + 10)


def headers_to_nowhere(size: int) -> bytes:
    return b"".join(bogus(1 + i, 2**31 - 1) for i in range(size // 61)) + tiny(size)


def large_claims_between_small_batches(size: int) -> bytes:
    return b"".join(bogus(2 * i, size // 10) + tiny(2 * i + 1) for i in range(size // 122))


def one_byte_between_batches(size: int) -> bytes:
    return b"".join(b"\x01" + tiny(i) for i in range(size // 62))


def batches_in_one_record(size: int) -> bytes:
    inner = b"".join(tiny(10 + i) for i in range(size // 61))
    return craft.overwrite(craft.one(inner, offset=1), 0, b"\xab" * 17) + tiny(size)


def batches_in_many_records(size: int) -> bytes:
    records = [craft.record(i, value=tiny(10 + i)) for i in range(size // 70)]
    return craft.overwrite(craft.batch(records, offset=1), 0, b"\xab" * 17) + tiny(size)


def lengths_before_batches(size: int) -> bytes:
    """Return repeated bytes that may be the start of a record around the batch."""
    count = size // 4100
    return b"".join(b"\xff\xff\x7f\x00" * 1000 + tiny(i) for i in range(count))


def messages_of_nothing(size: int) -> bytes:
    return b"".join(craft.overwrite(craft.message(0, b"x" * 9, offset=i), 12, b"\1\2\3\4") for i in range(size // 35))


class Counted:
    """Counts the bytes that are read from a source."""

    def __init__(self, data: bytes) -> None:
        self.name, self.error, self.keep = "bytes", None, True
        self.data = data
        self.size: int | None = len(data)
        self.reads = self.bytes = 0

    def read_at(self, position: int, count: int) -> bytes:
        found = self.data[position : position + count]
        self.reads += 1
        self.bytes += len(found)
        return found

    def next_data(self, position: int) -> int:
        return position

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass


HOSTILE = [
    *(headers_to_the_end, headers_of_a_tenth, headers_to_nowhere, large_claims_between_small_batches),
    *(one_byte_between_batches, batches_in_one_record, batches_in_many_records, lengths_before_batches),
    messages_of_nothing,
]


@pytest.mark.sampled
@each_case("window", sample([1 << 20, 4096], 4, "windows"))
@each_case("make", HOSTILE)
def test_crafted_input_costs_no_more_than_its_size(
    make: Callable[[int], bytes], window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is counted, not timed: bytes in checksums, bytes read, and accesses to the window."""
    size = 1 << 19 if SEED else 1 << 15
    monkeypatch.setattr("kdump.log.resync.FREE_WORK", 2 * size)
    monkeypatch.setattr("kdump.log.resync.RESERVE", size)
    summed = looks = 0

    def checksum(magic: int, chunks: Any) -> int:
        nonlocal summed
        parts = [bytes(chunk) for chunk in chunks]
        summed += sum(map(len, parts))
        return real(magic, parts)

    real = kdump.log.resync.checksum
    monkeypatch.setattr("kdump.log.resync.checksum", checksum)

    class Window(kdump.io.window.Window):
        def view(self, position: int, count: int) -> memoryview:
            nonlocal looks
            looks += 1
            return super().view(position, count)

        def peek(self, position: int, count: int) -> memoryview:
            nonlocal looks
            looks += 1
            return super().peek(position, count)

    data = make(size)
    source = Counted(data)
    found = list(Reader(Window(source, window), 0, Limits()).regions(0))
    assert tiles(found, len(data))
    assert summed <= 2 * size + 10 * len(data)
    assert source.bytes <= summed + 12 * len(data)
    assert looks <= len(data)


class _Batches(RegionObserver):
    """Answers the position of each batch; asks for this depth."""

    def __init__(self, depth: Depth) -> None:
        self.depth = depth
        self.runs = 0

    def region(self, region: Region) -> Iterator[int]:
        self.runs += isinstance(region, BatchRun)
        for batch in batches_of(region):
            yield batch.position


@each_case("depths", [(Depth.HEADERS, Depth.CHECKSUMS), (Depth.BATCHES, Depth.HEADERS)])
def test_observers_of_one_walk_see_all_batches(depths: tuple[Depth, Depth]) -> None:
    """What is read is as deep as either needs."""
    observers = [_Batches(depth) for depth in depths]
    path = segment("clean-1/trimmed-0")
    asked = []

    def source(depth: Depth) -> Iterator[Region]:
        asked.append(depth)
        return regions(Window(opened(path)), name_offset=0, depth=depth)

    answers = list(walk(source, observers))
    assert asked == [max(depths)]
    assert len(answers) == 2 * len(set(answers)) == 2 * len(REAL["clean-1/trimmed-0"])
    assert all(bool(observer.runs) == (max(depths) != Depth.BATCHES) for observer in observers)


def test_what_an_observer_finds_inside_a_wrapper_is_no_damage_of_it_to_the_next(tmp_path: Path) -> None:
    (path := tmp_path / f"{0:020}.log").write_bytes(craft.wrapper(1, [craft.message(1, b"inner")], "zstd"))

    class Wrappers(RegionObserver):
        def region(self, region: Region) -> Iterator[tuple[bool, int]]:
            assert isinstance(region, LegacyRecordBatch)
            valid = is_valid(region)
            read_wrapper(region)
            yield valid, len(region.problems)

    source = partial(regions, Window(opened(path)), name_offset=0)
    assert list(walk(source, [Wrappers(), Wrappers()])) == [(True, 1)] * 2
