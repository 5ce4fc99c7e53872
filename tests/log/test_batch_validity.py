"""Everything that reads a damaged segment rejects the same batches, because one function decides which are valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kdump
from kdump.check.options import Options
from kdump.log.batch_validity import CHECKSUM, OFFSETS, Invalid, invalidity, records_unknown
from kdump.log.paths import target
from kdump.log.region import Batch
from kdump.questions.diff.run import diff
from kdump.questions.stats import run as read_stats
from kdump.questions.stats.totals import Stats
from tests import craft
from tests.command import run
from tests.conftest import SEED, iter_regions, numbers_in, seeded, segment
from tests.each_case import each_case

FILES = ("clean-1/payments-0", "clean-1/orders-zstd-0", "legacy/v1-client010-gzip-0", "legacy/v0-client09-none-0")


def test_why_a_batch_is_invalid() -> None:
    def why(data: bytes) -> Invalid | None:
        (region,) = iter_regions(data)
        assert isinstance(region, Batch)
        return invalidity(region)

    good = craft.one(b"value", 7)
    assert why(good) is None
    assert why(craft.flip(good, 8 * 70)) is CHECKSUM
    assert why(craft.patch(good, lastOffsetDelta=-2)) is OFFSETS
    assert why(craft.rebase(good, -1)) is OFFSETS
    assert why(craft.rebase(craft.message(1, b"value"), -1)) is OFFSETS
    negative = craft.patch(good, recordCount=-5)
    assert why(negative) is None
    (region,) = iter_regions(negative)
    assert isinstance(region, Batch)
    unknown = records_unknown(region)
    assert unknown is not None
    assert (unknown.code, numbers_in(unknown.reason)) == ("record-count-mismatch", [-5])


@pytest.mark.sampled
@each_case("name", FILES)
def test_all_reject_the_same_batches(name: str, tmp_path: Path) -> None:
    data = segment(name).read_bytes()
    dice = seeded(f"validity {name}")
    for number in range(6 if SEED else 3):
        path = tmp_path / f"{number}" / "t-0" / f"{0:020}.log"
        path.parent.mkdir(parents=True)
        damaged = data
        for _ in range(3):
            damaged = craft.flip(damaged, dice.randrange(8 * len(data)))
        path.write_bytes(damaged)
        batches = [each for each in iter_regions(path) if isinstance(each, Batch)]
        invalid = {each.position: each.end for each in batches if invalidity(each) is not None}

        read = {batch.position for batch in kdump.open(path.parent).batches()}
        counted = read_stats.read([target(str(path))], Stats("", None, None), Options())
        (compared,) = diff([str(path.parent), str(path.parent)], Options())
        lines = map(json.loads, run("verify", path.parent, "--json").stdout.splitlines())
        errors = [row["position"] for row in lines if row["type"] == "finding" and row["severity"] == "error"]
        assert read.isdisjoint(invalid)
        assert {each.place.position for each in counted.missed} >= invalid.keys()
        assert {each.place.position for each in compared.copies[0].damages} >= invalid.keys()
        for position, end in invalid.items():
            assert any(position <= at < end for at in errors), position
