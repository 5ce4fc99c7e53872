"""Truncates at every byte and flips every bit: no exception is raised, the damage is reported in its own batch, and the
other batches stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kdump.format.batch_header import LOG_OVERHEAD
from kdump.log.batch_records import records
from kdump.log.reading import Reading
from kdump.log.region import Batch, LegacyRecordBatch, Region
from tests import craft
from tests.conftest import (
    FIXTURES,
    SEED,
    iter_regions,
    record_facts,
    sample,
    seeded,
    segment,
    segments,
    some_segments,
    tiles,
)
from tests.each_case import each_case

FLIPS, CUTS = (600, 120) if SEED else (21, 7)
"""Approximate number per file."""


def look(data: bytes) -> list[tuple[Region, dict[str, Any]]]:
    """Return every region, with everything that can be read of it."""
    found = []
    for region in iter_regions(data, name_offset=0):
        said: dict[str, Any] = {}
        if isinstance(region, Batch):
            reading = Reading(region)
            said["records"] = [record_facts(record) for record in records(reading)]
            said["crcValid"] = region.crcValid
            said["header"] = region.header  # type: ignore[attr-defined]
            said["problems"] = reading.problems
            if isinstance(region, LegacyRecordBatch):
                said["inside"] = (region.baseOffset, region.recordCount)
        found.append((region, said))
    assert tiles([region for region, _ in found], len(data))
    return found


def is_sound(region: Region, said: dict[str, Any]) -> bool:
    return isinstance(region, Batch) and said["crcValid"] and not said["problems"]


def by_span(found: list[tuple[Region, dict[str, Any]]]) -> dict[tuple[int, int], dict[str, Any]]:
    return {(region.position, region.end): said for region, said in found if is_sound(region, said)}


def steps(count: int, wanted: int) -> Iterator[int]:
    """Return about `wanted` of 0..count-1; the odd step reaches every bit of a byte."""
    step = max(1, count // wanted) | 1
    return iter(range(seeded(count).randrange(step) if SEED else 0, count, step))


def small(path: Path, limit: int = 3000) -> bytes:
    """Return the file, or the first batches of a larger one, of about `limit` bytes."""
    data = path.read_bytes()
    kept = b""
    for batch in craft.split(data):
        if kept and len(kept) + len(batch) > limit:
            break
        kept += batch
    return kept


FILES = [pytest.param(path, id=str(path.parent.relative_to(FIXTURES))) for path in segments() if path.suffix == ".log"
         and path.stem == f"{0:020}"]  # fmt: skip
CHECKSUM_START = {0: 16, 1: 16, 2: 21}
EACH = each_case("path", some_segments(FILES, 24))


def fields_outside(batch: bytes) -> list[tuple[str, int, int]]:
    """Return the fields that the checksum does not cover, and the checksum itself: name and bytes."""
    if batch[16] == 2:
        return [
            ("baseOffset", 0, 8),
            ("batchLength", 8, 12),
            ("leaderEpoch", 12, 16),
            ("magic", 16, 17),
            ("crc", 17, 21),
        ]
    return [("offset", 0, 8), ("messageSize", 8, 12), ("crc", 12, 16)]


@pytest.mark.sampled
@EACH
def test_flip(path: Path) -> None:
    data = small(path)
    check_flips(data, steps(8 * len(data), FLIPS))


@pytest.mark.sampled
@each_case("name", ["clean-1/future-0", "clean-1/users-0", "legacy/v0-librdkafka-none-0", "legacy/v1-compacted-gzip-0"])
def test_flip_every_bit(name: str) -> None:
    data = small(segment(name), 350)
    check_flips(data, sample(range(8 * len(data)), 19, name))


def check_flips(data: bytes, bits: Iterable[int]) -> None:
    """Check that every flip covered by the checksum is reported at its position, and changes nothing else."""
    before = by_span(look(data))
    spans = sorted(before)
    for bit in bits:
        at = bit // 8
        span = next((start, end) for start, end in spans if start <= at < end)
        after = look(craft.flip(data, bit))
        batch = data[slice(*span)]
        others = {other: said for other, said in before.items() if other != span}
        sound = by_span(after)
        assert {other: sound.get(other) for other in others} == others, f"bit {bit} hides another batch"
        if at - span[0] >= CHECKSUM_START[batch[16]]:
            assert not [other for other in sound if other not in others], f"bit {bit} is not seen"
            seen = [region.position for region, said in after if not is_sound(region, said)]
            assert seen[0] == span[0]
            assert all(span[0] <= position < span[1] for position in seen)


@pytest.mark.sampled
@EACH
def test_flip_outside_the_checksum(path: Path) -> None:
    """Flip bits in the first two batches and the last one, field by field, and check the result."""
    data = small(path)
    before = by_span(look(data))
    spans = sorted(before)
    for span in {spans[0], spans[min(1, len(spans) - 1)], spans[-1]}:
        others = {other: said for other, said in before.items() if other != span}
        batch = data[slice(*span)]
        for name, start, end in fields_outside(batch):
            bits = range(8 * (span[0] + start), 8 * (span[0] + end))
            for bit in sample(bits, min(27, len(bits)), path):
                after = look(craft.flip(data, bit))
                sound = by_span(after)
                assert {other: sound.get(other) for other in others} == others, f"{name}: bit {bit} hides a batch"
                (mine,) = [(region, said) for region, said in after if region.position == span[0]]
                check_field(name, batch, mine, span, before[span])


def check_field(
    name: str, batch: bytes, mine: tuple[Region, dict[str, Any]], span: tuple[int, int], was: dict[str, Any]
) -> None:
    region, said = mine
    assert region.end == span[1]
    if name in ("baseOffset", "offset", "leaderEpoch"):
        # Only the neighbors could show it: the batch with this number is valid. But if the offset of a v1 wrapper is
        # below the relative offsets inside, it contradicts itself.
        assert is_sound(region, said) or [problem.code for problem in said["problems"]] == ["message-set-invalid"]
        same = "value", "key", "headers", "timestamp"
        assert [[r[x] for x in same] for r in said["records"]] == [[r[x] for x in same] for r in was["records"]]
    elif name in ("batchLength", "messageSize"):
        # The checksum determines the correct length.
        assert isinstance(region, Batch)
        assert region.crcValid
        (problem,) = said["problems"]
        assert (problem.code, problem.expected) == ("batch-length-invalid", len(batch) - LOG_OVERHEAD)
        assert len(said["records"]) == len(was["records"])
    elif name == "crc":
        assert isinstance(region, Batch)
        assert not said["crcValid"]
        assert said["records"] == [r | {"crc": r["crc"], "crcValid": r["crcValid"]} for r in said["records"]]
        assert len(said["records"]) == len(was["records"])
    else:  # magic: another format, to which nothing conforms, or an unknown one
        assert not is_sound(region, said)


@pytest.mark.sampled
@EACH
def test_truncate(path: Path) -> None:
    """All complete batches stay; a single torn region follows (or padding, if the rest consists of zeros)."""
    data = small(path)
    before = by_span(look(data))
    spans = sorted(before)
    last = spans[-2:][0][0]
    cuts = {*steps(len(data), CUTS), *range(max(last, len(data) - 3 * CUTS), len(data))}
    for cut in sorted(cuts):
        after = look(data[:cut])
        whole = {span: said for span, said in before.items() if span[1] <= cut}
        assert by_span(after) == whole
        end = max((end for _, end in whole), default=0)
        expected = [] if end == cut else ["torn" if any(data[end:cut]) else "padding"]
        assert [region.kind for region, _ in after[len(whole) :]] == expected


@pytest.mark.sampled
@EACH
def test_lost_bytes(path: Path) -> None:
    """One byte is missing or added, anywhere: complete batches after it are found."""
    data = small(path)
    before = by_span(look(data))
    for at in steps(len(data), CUTS // 3):
        for hurt, shift in ((data[:at] + data[at + 1 :], -1), (data[:at] + b"\xa5" + data[at:], 1)):
            sound = by_span(look(hurt))
            mine = next(span for span in before if span[0] <= at < span[1])
            for (start, end), said in before.items():
                if end <= at:
                    assert sound[start, end] == said
                elif start > at and not (mine in sound and start == mine[1]):
                    # (The first zero of a batch may replace the last byte of the one before.)
                    there = sound[start + shift, end + shift]["records"]
                    assert [record["raw"] for record in there] == [record["raw"] for record in said["records"]]
