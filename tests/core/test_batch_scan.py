"""Checks that batch runs contain the same batches as reading one by one, in valid and in damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kdump.core.batch_scan import checksum_holds, scan_valid_batches
from kdump.log.region import BatchRun
from kdump.log.region_reader import Depth, regions
from tests import craft
from tests.conftest import each_segment, examples, facts, sample, segment, some_segments, window_of
from tests.each_case import each_case

KINDS = (Depth.PAYLOADS, Depth.CHECKSUMS)


def expanded(data: bytes, depth: Depth, size: int = 1 << 20, name_offset: int | None = 0) -> list[dict[str, Any]]:
    """Return the facts of every region, with batch runs expanded after comparing them with their batches."""
    found = []
    for region in regions(window_of(data, size), name_offset=name_offset, depth=depth):
        if not isinstance(region, BatchRun):
            found.append(facts(region))
            continue
        inside = list(region.batches())
        assert (inside[0].position, inside[-1].end, len(inside)) == (region.position, region.end, region.run.batches)
        assert region.run.records == sum(batch.recordCount or 0 for batch in inside)
        assert region.run.first_offset == inside[0].baseOffset
        assert region.run.last_offset == inside[-1].lastOffset
        shift = region.position - region.start
        assert all(
            region.checksum_matches(batch.position - shift, batch.end - shift) == batch.crcValid for batch in inside
        )
        found += [facts(batch) for batch in inside]
    return found


def check(data: bytes, name_offset: int | None = 0) -> None:
    plain = expanded(data, "", name_offset=name_offset)
    for kind in KINDS:
        for size in (1 << 20, 4096):
            assert expanded(data, kind, size, name_offset) == plain


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 8))
def test_whole(path: Path) -> None:
    check(path.read_bytes(), None)


@pytest.mark.sampled
@each_case("name", ["clean-1/payments-0", "clean-1/users-0", "clean-1/orders-zstd-0", "legacy/upgraded-gzip-0"])
def test_damaged(name: str) -> None:
    data = segment(name).read_bytes()[:6000]
    for bit in sample(range(0, 8 * len(data), 8 * len(data) // 150 | 1), 31, name):
        check(craft.flip(data, bit))
    for cut in sample(range(0, len(data), len(data) // 30 | 1), 12, name):
        check(data[:cut])
        check(data[:cut] + data[cut + 1 :])
        check(data[:cut] + b"\0" * 70 + data[cut:])


def test_it_is_used() -> None:
    """A valid file is a single stretch: the end of the file, or the next header, is where the last batch ends."""
    data = b"".join(craft.one(b"x" * 900, offset) for offset in range(50))
    for kind in (Depth.CHECKSUMS, Depth.PAYLOADS):
        (found,) = regions(window_of(data), name_offset=0, depth=kind)
        assert isinstance(found, BatchRun)
        assert found.run.batches == 50
        *_, last = regions(window_of(craft.flip(data, 8 * len(data) - 1)), name_offset=0, depth=kind)
        assert not isinstance(last, BatchRun)


BATCHES = [craft.one(b"v" * size, offset) for offset, size in enumerate((0, 1, 7, 300, 450, 511, 600))]
FREE = {"source_end": 1 << 40, "largest": 1 << 40, "lowest": 0, "highest": 1 << 40, "budget": 1 << 40, "check": True}


@pytest.mark.sampled
@examples()
@given(st.binary(max_size=1200), st.integers(0, 3))
def test_checksum(value: bytes, shift: int) -> None:
    """Of any length, at any position, with the table or the library."""
    batch = craft.one(value)
    data = bytes(shift) + batch + bytes(shift)
    assert crc32c(batch[21:]) == int.from_bytes(batch[17:21], "big")
    assert checksum_holds(data, shift, shift + len(batch))
    found = scan_valid_batches(data, shift, latest=-1, **FREE)
    assert found is not None
    assert (found.stop, found.batches, found.records) == (shift + len(batch), 1, 1)
    wrong = bytearray(data)
    wrong[shift + len(batch) - 1] ^= 1
    assert not checksum_holds(bytes(wrong), shift, shift + len(batch))
    assert scan_valid_batches(bytes(wrong), shift, latest=-1, **FREE) is None


def test_where_a_run_ends() -> None:
    data = b"".join(BATCHES)
    behind = [sum(map(len, BATCHES[: i + 1])) for i in range(len(BATCHES))]

    def ends(data: bytes = data, latest: int = -1, **change: Any) -> int:
        found = scan_valid_batches(data, 0, latest=latest, **{**FREE, **change})
        return found.stop if found else 0

    assert ends() == len(data)
    assert ends(check=False) == behind[-2]
    assert ends(check=False, source_end=len(data) - 1) == behind[-3]
    assert ends(latest=0) == 0
    assert ends(highest=3) == behind[3]
    assert ends(lowest=1) == 0
    assert ends(largest=len(BATCHES[3])) == behind[3]
    assert ends(budget=0) == behind[-2]
    for fields in ({"baseOffset": 2}, {"lastOffsetDelta": -1}, {"recordCount": -1}, {"baseOffset": -5}, {"magic": 3}):
        hurt = [*BATCHES[:3], craft.patch(BATCHES[3], **fields), *BATCHES[4:]]
        assert ends(b"".join(hurt)) == behind[2]
