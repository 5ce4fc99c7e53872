"""Reading from an offset on, without an index, skips what comes before by its headers."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from kdump.io.run import Limits
from kdump.log.paths import target
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth
from kdump.tables.segment_split import SegmentSplit, opened, own_regions
from tests.conftest import DISKS, sample, seeded
from tests.craft import flip, one

SEGMENTS = sorted(path for path in DISKS.glob("kafka-*/*/*/*.log") if path.stat().st_size < 1 << 20)


def batches_from(path: Path, offset: int | None, start: int = 0, stop: int | None = None) -> tuple[list[Region], int]:
    """Return the batches and other regions at or above an offset, and how many regions were read for it."""
    at = target(str(path))
    found: list[Region] = []
    read = 0
    with closing((window := opened(at)).source):
        for region in own_regions(SegmentSplit(at, start, stop), window, Limits(), Depth.CHECKSUMS, offset):
            single = list(region.batches()) if isinstance(region, BatchRun) else [region]
            read += len(single)
            found += [each for each in single if not isinstance(each, Batch) or each.lastOffset >= (offset or 0)]
    return found, read


def places(regions: list[Region]) -> list[tuple[str, int, int]]:
    return [(region.kind, region.position, region.size) for region in regions]


@pytest.mark.sampled
@pytest.mark.parametrize("path", sample(SEGMENTS, 51, "split"), ids=str)
def test_the_same_batches_without_an_index(path: Path, tmp_path: Path) -> None:
    dice = seeded(str(path))
    copy = tmp_path / path.name
    data = path.read_bytes()
    for damaged in (False, True):
        copy.write_bytes(flip(data, dice.randrange(8 * len(data))) if damaged and data else data)
        whole, _ = batches_from(copy, None)
        offsets = [each.lastOffset for each in whole if isinstance(each, Batch)]
        for offset in {0, *(dice.choice(offsets) for _ in range(3) if offsets), max(offsets, default=0) + 1}:
            expected = [each for each in whole if isinstance(each, Batch) and each.lastOffset >= offset]
            found, _ = batches_from(copy, offset)
            assert places([each for each in found if isinstance(each, Batch)]) == places(expected)
        middle = dice.randrange(len(data) + 1)
        split = places(batches_from(copy, None, 0, middle)[0]) + places(batches_from(copy, None, middle)[0])
        assert [each for each in split if each[0] == "batch"] == [each for each in places(whole) if each[0] == "batch"]


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(one(os.urandom(50_000), offset=number) for number in range(200)))
    found, read = batches_from(path, 190)
    assert [each.baseOffset for each in found if isinstance(each, Batch)] == list(range(190, 200))
    assert read < 20
