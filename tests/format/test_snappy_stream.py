"""A large raw Snappy block that is decompressed in pieces gives the same as the library does for the whole block, also
if it is damaged."""

from __future__ import annotations

import importlib.util
import random
import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import snappy

from kdump.check.finding import Finding
from kdump.check.rules.records import noted_findings
from kdump.format.codec import decompress, decompress_small, snappy_stream, snappy_tags
from kdump.format.codec import snappy as blocks
from kdump.format.errors import DecodeError
from kdump.log.batch_records import records
from kdump.log.paths import target
from kdump.log.reading import Reading
from kdump.log.region import DefaultRecordBatch
from kdump.problems.catalogue import shared_impact
from tests import craft
from tests.conftest import few, iter_regions, numbers_in, seeded

TEXT = b"".join(b'{"id": %d, "name": "order"} ' % number for number in range(40_000))
WHOLE = 1 << 40


@pytest.fixture(params=["this engine", "plain"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the loop over elements of the current engine, or that of plain Python."""
    if request.param == "plain":
        monkeypatch.setattr(snappy_stream, "walk", _plain().walk)


def _plain() -> ModuleType:
    source = Path(str(snappy_tags.__file__)).with_name("snappy_tags.py")
    spec = importlib.util.spec_from_file_location("plain_tags", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[bytes, DecodeError | None]]:
    """Decompress a payload whose blocks are read whole or in pieces."""

    def run(payload: bytes, small: int, split: int = 1 << 20, **options: Any) -> tuple[bytes, DecodeError | None]:
        monkeypatch.setattr(blocks, "SMALL", small)
        chunks = [payload[at : at + split] for at in range(0, len(payload), split)]
        output = bytearray()
        try:
            for piece in decompress("snappy", chunks, **{"limit": 1 << 30, "size": len(payload), **options}):
                output += piece
        except DecodeError as error:
            return bytes(output), error
        return bytes(output), None

    return run


def length(number: int) -> bytes:
    """Return an unsigned varint."""
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def literal(data: bytes, width: int) -> bytes:
    """Return a literal whose length takes `width` bytes after the tag."""
    tag = len(data) - 1 if not width else 59 + width
    return bytes([tag << 2]) + (len(data) - 1).to_bytes(4, "little")[:width] + data


def copy(size: int, offset: int, width: int) -> bytes:
    """Return a copy of `size` bytes from this far back, with an offset of `width` bytes."""
    if width == 1:
        return bytes([1 | (size - 4) << 2 | offset >> 8 << 5, offset & 0xFF])
    return bytes([(2 if width == 2 else 3) | (size - 1) << 2]) + offset.to_bytes(width, "little")


def some_block(draw: random.Random) -> bytes:
    """Generate a block of arbitrary elements, most of the time a valid one."""
    elements, size = b"", 0
    for _ in range(draw.randrange(1, 12)):
        kind = draw.randrange(6)
        if kind == 0 or not size:
            count = draw.choice([1, 5, 60, 61, 256, 257, 70_000, 200_000])
            widths = [width for width in range(5) if count <= (256**width if width else 60)]
            elements += literal(draw.randbytes(count), draw.choice(widths))
        else:
            width = (1, 2, 4)[kind % 3]
            count = draw.randrange(4, 12) if width == 1 else draw.randrange(1, 65)
            elements += copy(count, draw.randrange(min((1 << (11, 16, 32)[kind % 3]) - 1, size + 2)), width)
        size += count
    if draw.random() < 0.1:
        size = max(0, size + draw.randrange(-2, 3))
    block = length(size) + elements
    return block if draw.random() < 0.9 else block[: draw.randrange(1, len(block))]


def test_any_elements(engine: None, read: Callable[..., Any]) -> None:
    draw = seeded("elements")
    failed = 0
    for number in range(400):
        block = some_block(draw)
        found, error = read(block, 0, draw.choice([1 << 20, 65_537, 7_919]))
        expected, wrong = read(block, WHOLE)
        assert (error is None) == (wrong is None), number
        assert error or found == expected
        assert error is None or 0 <= error.position <= len(block)
        failed += error is not None
    assert 50 < failed < 350


@pytest.mark.parametrize("split", few([1 << 20, 4093], 1))
def test_what_an_encoder_writes(engine: None, split: int, read: Callable[..., Any]) -> None:
    data = TEXT + bytes(1_500_000) + random.Random(1).randbytes(200_000)
    raw = bytes(snappy.compress(data))
    assert read(raw, 0, split) == (data, None)
    data = TEXT + random.Random(1).randbytes(70_000)
    raw = bytes(snappy.compress(data))
    framed = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(raw)) + raw
    assert read(framed + framed[16:] + framed, 0, split) == (data * 3, None)


def test_what_comes_before_damage_is_given(read: Callable[..., Any]) -> None:
    raw = bytes(snappy.compress(TEXT))
    at, made, _ = snappy_tags.walk(raw, len(length(len(TEXT))), 1_100_000)
    found, error = read(raw[:at] + b"\x02\0\0" + raw[at:], 0)
    assert error is not None
    assert (error.struct, error.field, error.is_ours, numbers_in(error.reason)) == ("SnappyBlock", "data", False, [0])
    assert 0 < len(found) <= made < len(TEXT)
    assert TEXT.startswith(found)


def test_a_copy_from_too_far_back_is_said_to_be_that(
    engine: None, read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snappy_stream, "HISTORY", 1 << 16)
    start, more = random.Random(2).randbytes(1 << 16), random.Random(3).randbytes(1 << 17)
    end = bytes([3 << 2]) + b"last"
    for offset, reaches in ((1 << 16, True), (3 << 16, False)):
        block = length(len(start) + len(more) + 64 + 4)
        block += literal(start, 4) + literal(more, 4) + copy(64, offset, 4) + end
        found, error = read(block, 0, 10_000)
        assert (error is None) == reaches
        if error:
            assert (error.field, error.is_ours, numbers_in(error.reason)) == ("data", True, [1 << 16])
            assert found == start + more
        assert read(block, WHOLE)[1] is None


def test_a_finding_of_a_copy_from_too_far_back_says_that_it_is_the_limit_of_kdump(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A consumer decompresses the whole block, and reads the record."""
    record = craft.record(value=random.Random(2).randbytes(3 << 16) + bytes(64))
    block = length(len(record)) + literal(record[:-65], 4) + copy(64, 3 << 16, 4) + bytes([0]) + record[-1:]
    data = craft.batch([], count=1, attributes=2, payload=block)
    monkeypatch.setattr(decompress_small, "SMALL", 0)
    monkeypatch.setattr(blocks, "SMALL", 0)

    def met() -> list[Finding]:
        (batch,) = iter_regions(data)
        assert isinstance(batch, DefaultRecordBatch)
        reading = Reading(batch)
        list(records(reading))
        return list(noted_findings(target(f"{0:020}.log"), reading))

    assert not met()
    monkeypatch.setattr(snappy_stream, "HISTORY", 1 << 16)
    (finding,) = met()
    assert finding.code == "decompression-failed"
    assert 1 << 16 in numbers_in(finding.message)
    assert finding.consequence == shared_impact("ours")


def test_more_than_it_states(read: Callable[..., Any]) -> None:
    block = length(70_000) + literal(bytes(40_000), 2) + literal(bytes(40_000), 2)
    for payload, stated in ((block, [70_000]), (block[:40_006], [70_000, 40_000])):
        error = read(payload, 0)[1]
        assert (error.field, error.is_ours, numbers_in(error.reason)) == ("length", False, stated)
