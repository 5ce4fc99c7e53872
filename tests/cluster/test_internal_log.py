"""The records of internal topics, read in runs of batches, are those of each batch read by itself."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdump.cluster.internal_log import LIMITS, read_records
from kdump.io.run import Limits, Run
from kdump.log.batch_records import records
from kdump.log.reading import Reading
from kdump.log.region import Batch
from tests.conftest import FIXTURES, batches, read_regions, record_facts, seeded, segments
from tests.craft import CODECS, batch, fix_crc, overwrite, record
from tests.each_case import each_case

LOGS = [path for path in segments() if path.parent.name.startswith("__")]
ENTRIES = [record(n, b"key", b"v" * 40) for n in range(5)]


def _one_by_one(path: Path, limits: Limits) -> Iterator[dict[str, Any] | None]:
    """Yield what read_records yields, from regions without runs, in pieces of 61 bytes."""
    for region in read_regions(path, name_offset=0, limits=limits):
        if region.kind == "padding" and region.end == path.stat().st_size:
            continue
        if not isinstance(region, Batch) or not region.crcValid:
            yield None
            continue
        region.window.size = 61
        reading = Reading(region)
        yield from map(record_facts, records(reading))
        if reading.problems:
            yield None


def _is_same(path: Path, limits: Limits = LIMITS) -> list[dict[str, Any] | None]:
    problems: list[str] = []
    found = [each and record_facts(each) for each in read_records(str(path), problems.append, Run(limits))]
    assert found == [*_one_by_one(path, limits)]
    assert len(problems) == found.count(None)
    return found


@each_case("path", [pytest.param(p, id=str(p.relative_to(FIXTURES))) for p in LOGS])
def test_every_internal_log(path: Path, tmp_path: Path) -> None:
    assert len(_is_same(path)) == sum(each.recordCount or 0 for each in batches(read_regions(path)))
    data, dice = path.read_bytes(), seeded(path)
    damaged = tmp_path / "00000000000000000000.log"
    for _ in range(8):
        at = dice.randrange(max(1, len(data) - 2000))
        cut = data[at : at + 2000] if dice.random() < 0.5 else data[:2000]
        for _ in range(dice.randrange(4)):
            cut = overwrite(cut, dice.randrange(len(cut)), dice.randbytes(1))
        damaged.write_bytes(cut)
        _is_same(damaged)


@each_case("codec", CODECS)
def test_batches_that_lie_about_their_records(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    for count in (0, 1, 4, 5, 6, 1 << 20, (1 << 31) - 1, -1, -(1 << 31)):
        middle = batch(ENTRIES, codec, offset=5, count=count)
        path.write_bytes(batch(ENTRIES) + middle + batch(ENTRIES, offset=10))
        _is_same(path)
    for payload in (
        b"",
        b"\0",
        b"\xff" * 5,
        b"\xfe\xff\xff\xff\x0f",
        b"".join(ENTRIES) + b"\1",
        b"".join(ENTRIES)[:-1],
    ):
        path.write_bytes(batch(ENTRIES) + batch(payload, codec, offset=5, count=5) + batch(ENTRIES, offset=10))
        _is_same(path)


def test_batches_that_are_larger_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(batch(ENTRIES * times, offset=5 * n) for n, times in enumerate((1, 9, 1))))
    found = _is_same(path, Limits(max_batch_size=len(batch(ENTRIES)), max_decompressed_size=1000))
    assert None in found


def test_hostile_lengths(tmp_path: Path) -> None:
    """Each length of a record in a batch whose checksum matches."""
    path = tmp_path / "00000000000000000000.log"
    whole = batch(ENTRIES)
    for at in (*range(61, 72), *range(72, len(whole), 13)):
        for byte in (0, 1, 0x7F, 0xFF):
            path.write_bytes(batch(ENTRIES) + fix_crc(overwrite(whole, at, bytes([byte]))) + batch(ENTRIES, offset=10))
            _is_same(path)
    for length in (0, 48, 49, 50, 1 << 30, (1 << 31) - 1):
        path.write_bytes(batch(ENTRIES) + overwrite(whole, 8, struct.pack(">i", length)) + batch(ENTRIES, offset=10))
        _is_same(path)
