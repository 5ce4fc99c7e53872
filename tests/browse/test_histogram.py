"""Tests of the histogram of time, against counts of what inspect lists."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kdump.browse import time_histogram
from kdump.browse.listings import Cancelled
from kdump.browse.scopes import ScopePart
from kdump.browse.time_histogram import TimeBins, read_times
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.paths import target
from tests.browse.driving import Driver, drive
from tests.browse.test_bundle import bundle as bundle
from tests.browse.test_model import PAYMENTS, ZERO, listed, segment
from tests.conftest import FIXTURES, seeded
from tests.craft import batch, record, write_file
from tests.test_damaged_disks import DAMAGES

CLEAN = FIXTURES / "clean-1"


def bins_of(*paths: Path, zone: Any = timezone.utc) -> TimeBins:
    bins = TimeBins(zone)
    parts = [ScopePart(path.name, None, None, [target(str(path))]) for path in paths]
    read_times(parts, bins, PLAIN_RUN)
    return bins


def expected_of(*paths: Path, width: int) -> dict[int, tuple[int, int, int, str, int]]:
    """By start of the bin: records, bytes, batches, and path and position of the first batch."""
    found: dict[int, tuple[int, int, int, str, int]] = {}
    for path in paths:
        for value in listed(path):
            if value["type"] != "batch" or (value["maxTimestamp"] or -1) < 0:
                continue
            start = value["maxTimestamp"] // width * width
            records, size, batches, first, at = found.get(start, (0, 0, 0, str(path), value["position"]))
            found[start] = (records + (value["recordCount"] or 0), size + value["size"], batches + 1, first, at)
    return found


@pytest.mark.parametrize("max_bins", [4096, 7, 1])
@pytest.mark.parametrize("step", [0, 2, 4])
def test_bins_are_what_inspect_lists(max_bins: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_histogram, "MAX_BINS", max_bins)
    paths = [PAYMENTS / ZERO, segment("clean-1/users-0"), segment("clean-1/orders-zstd-0")]
    bins = bins_of(*paths)
    shown = bins.snapshot(step)
    assert len(shown) <= max(max_bins, 1)
    found = {each.start: (each.records, each.bytes, each.batches, each.path, each.position) for each in shown}
    assert found == expected_of(*paths, width=shown[0].width)
    assert bins.records == sum(each.records for each in shown)


def test_bins_begin_at_midnight_of_the_time_zone(tmp_path: Path) -> None:
    hour = 3_600_000
    midnight = 20_000 * 24 * hour
    times = [midnight - 5 * hour, midnight + 19 * hour, midnight + 20 * hour]
    path = tmp_path / ZERO
    path.write_bytes(
        b"".join(batch(record(), offset=n, baseTimestamp=at, maxTimestamp=at) for n, at in enumerate(times))
    )
    bins = bins_of(path, zone=timezone(timedelta(hours=5, minutes=30)))
    days = bins.snapshot(5)
    assert [(each.start - midnight + 5.5 * hour, each.batches) for each in days] == [(0, 1), (24 * hour, 2)]


def test_old_formats_and_damage_are_counted_apart(tmp_path: Path) -> None:
    for name in ("legacy/upgraded-gzip-0", "legacy/v1-client010-snappy-0", "legacy/v0-0"):
        if not (FIXTURES / name).exists():
            continue
        values = [value for value in listed(segment(name)) if value["type"] == "batch"]
        bins = bins_of(segment(name))
        assert bins.batches == len(values)
        timed = [value for value in values if (value["maxTimestamp"] or -1) >= 0]
        assert bins.untimed == len(values) - len(timed)
    path = tmp_path / ZERO
    data = (PAYMENTS / ZERO).read_bytes()
    path.write_bytes(data[:986] + b"garbage that is no batch at all" + data[986:])
    assert bins_of(path).others == 31
    dice = seeded("histogram")
    for damage in DAMAGES[:5]:
        damaged = bytearray(data)
        damage(damaged, dice)
        path.write_bytes(damaged)
        counted = Counter(value["type"] for value in listed(path))
        assert bins_of(path).batches == counted["batch"]


def test_reading_is_stopped() -> None:
    def gone(count: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        read_times([ScopePart("", None, None, [target(str(PAYMENTS / ZERO))])], TimeBins(timezone.utc), Run(more=gone))


def test_a_bin_leads_to_its_first_batch() -> None:
    async def script(at: Driver) -> None:
        shown = await at.keys("enter", "H")
        assert "histogram of time, segment 00000000000000000000.log: records per 1 s" in shown
        assert "time (UTC)" in shown
        assert "120 records in 76 batches, 12.4 KiB" in shown
        assert "█" in shown
        await at.keys("down", "enter")
        row = at.app.browser.level.row
        assert row is not None
        found = expected_of(PAYMENTS / ZERO, width=1000)
        assert row.item.position == found[sorted(found)[1]][4]
        assert "first batch of 1 s from 2026-11-21T07:58:23.000Z on" in at.status
        await at.keys("'", "'")
        assert at.app.browser.level.row is not None
        assert at.app.browser.level.row.key == 0

    drive(PAYMENTS, script)


def test_scopes_widths_and_measures() -> None:
    async def script(at: Driver) -> None:
        shown = await at.keys("H")
        assert "everything in " in shown.splitlines()[0] or "partition __cluster_metadata-0" in shown.splitlines()[0]
        await at.keys("escape", ":")
        shown = await at.typed("histogram all")
        assert "everything in" in shown.splitlines()[0]
        assert " per 1 min" in await at.keys("+")
        assert " per 1 h" in await at.keys("+", "+")
        assert "bytes per 1 h" in await at.keys("b")
        assert "bytes per 10 min" in await at.keys("-")
        await at.keys("escape", "/")
        await at.typed("^payments-0")
        assert "partition payments-0" in await at.keys("H")
        assert "topic payments" in await at.keys("s")
        assert "everything" in await at.keys("s")
        assert "partition payments-0" in await at.keys("s")
        await at.keys("escape", ":")
        await at.typed("histogram week")
        assert "'week' is not a scope" in at.status

    drive(CLEAN, script, (120, 30))


def test_a_damaged_timestamp_does_not_hide_the_others(tmp_path: Path) -> None:
    data = batch(record(), baseTimestamp=1_700_000_000_000, maxTimestamp=1_700_000_000_000)
    late = batch(record(), offset=1, baseTimestamp=(1 << 62), maxTimestamp=(1 << 62))
    none = batch(record(), offset=2, baseTimestamp=-1, maxTimestamp=-1)
    path = write_file(tmp_path / "t-0" / ZERO, data + late + none)

    async def script(at: Driver) -> None:
        shown = await at.keys("H")
        assert "2023-11-14T22:13:20" in shown
        assert "without batches" in shown
        assert "1 batch has no timestamp" in shown
        await at.keys("down", "enter", "end", "enter")
        assert at.app.browser.level.row is not None
        assert at.app.browser.level.row.label == "1"

    drive(path, script)


def test_a_bundle_has_the_histogram_of_its_disk(bundle: Path) -> None:
    disk = bundle.parent / "disk"
    for name in ("payments-0", "__consumer_offsets-0"):
        one, other = bins_of(disk / name / ZERO), bins_of(bundle / name / ZERO)
        assert [each._replace(path="") for each in one.snapshot(0)] == [
            each._replace(path="") for each in other.snapshot(0)
        ]
        assert one.others == other.others


def test_directories_that_are_not_live_are_not_counted(tmp_path: Path) -> None:
    for name in ("t-0", "t-1", f"t-1.{'0' * 32}-delete"):
        write_file(tmp_path / name / ZERO, batch(record()))

    async def script(at: Driver) -> None:
        await at.keys("H")
        shown = await at.keys("s")
        assert "topic t" in shown
        assert "2 records in 2 batches" in shown
        assert "1 directory not live, not counted" in shown

    drive(tmp_path, script)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    bins = TimeBins(timezone.utc)
    missing = ScopePart("", None, None, [target(str(tmp_path / "t-0" / f"{5:020}.log"))])
    read_times([missing], bins, PLAIN_RUN)
    assert "No such file" in bins.unread[0]
