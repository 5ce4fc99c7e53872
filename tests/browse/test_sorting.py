"""Tests of sorting by a column, against Python's own sort of what inspect lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdump.browse import listings
from kdump.browse.browser import Browser
from kdump.browse.listings import MORE, Cancelled, SortOrder, chosen_order
from kdump.io.run import PLAIN_RUN, Run
from tests.browse.driving import Driver, drive
from tests.browse.test_model import PAYMENTS, ZERO, backwards, browse, forwards, listed, said, segment
from tests.conftest import FIXTURES, few
from tests.craft import flip, write_file
from tests.test_damaged_disks import DAMAGES

CLEAN = FIXTURES / "clean-1"


def in_order(found: Browser, column: str, descending: bool) -> list[Any]:
    found.settle(found.sort(found.depth, SortOrder(column, descending), PLAIN_RUN))
    return forwards(found, 7)


@pytest.mark.parametrize("name", ["clean-1/payments-0", "legacy/upgraded-gzip-0", "legacy/v1-client010-snappy-0"])
@pytest.mark.parametrize("column", ["size", "maxTimestamp", "recordCount", "compression"])
@pytest.mark.parametrize("descending", few([False, True], 1))
def test_batches(name: str, column: str, descending: bool) -> None:
    path = segment(name)
    expected = listed(path)
    have = [value for value in expected if value.get(column) is not None]
    have.sort(key=lambda value: value[column], reverse=descending)
    found = browse(path)
    rows = in_order(found, column, descending)
    assert said(found, rows) == have + [value for value in expected if value.get(column) is None]
    assert [row.key for row in backwards(found, 5)] == [row.key for row in rows]
    found.settle(found.sort(0, None, PLAIN_RUN))
    assert said(found, forwards(found, 9)) == expected


@pytest.mark.parametrize("column", ["offset", "valueSize", "key", "value"])
@pytest.mark.parametrize("descending", [False, True])
def test_records(column: str, descending: bool) -> None:
    found = browse(CLEAN / "stringkeys-0" if (CLEAN / "stringkeys-0").exists() else PAYMENTS, ZERO)
    longest = max(range(len(found.level.rows)), key=lambda n: found.level.rows[n].item.recordCount)
    found.settle(found.enter(found.depth, found.level.rows[longest], PLAIN_RUN) or [])
    plain = [row.item for row in forwards(found, 50) if row.type == "record"]
    rows = in_order(found, column, descending)
    assert rows[0].type == "header"
    expected = sorted(plain, key=lambda record: getattr(record, column), reverse=descending)
    assert [row.item.index for row in rows[1:]] == [record.index for record in expected]
    assert [row.key for row in backwards(found, 3)] == [row.key for row in rows]


def test_only_the_first_rows_are_kept_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "MAX_SORTED", 10)
    expected = sorted(listed(PAYMENTS / ZERO), key=lambda value: -value["size"])
    found = browse(PAYMENTS / ZERO)
    rows = in_order(found, "size", True)
    assert said(found, rows[:-1]) == expected[:10]
    assert rows[-1].key == MORE
    assert f"{len(expected) - 10} more rows" in rows[-1].text
    assert f"the first 10 of {len(expected)} rows" in found.level.listing.about  # type: ignore[attr-defined]
    assert [row.key for row in backwards(found, 4)] == [row.key for row in rows]


def test_rows_without_the_column_are_last(tmp_path: Path) -> None:
    data = (PAYMENTS / ZERO).read_bytes()
    path = write_file(tmp_path / ZERO, data[:986] + b"garbage that is no batch at all" + data[986:])
    for descending in (False, True):
        rows = in_order(browse(path), "size", descending)
        assert rows[-1].type == "region"
        assert [row.type for row in rows[:-1]] == ["batch"] * (len(rows) - 1)


@pytest.mark.parametrize("damage", DAMAGES[:4], ids=lambda damage: damage.__name__)
def test_damaged_files_are_sorted_without_a_traceback(damage: Any, tmp_path: Path) -> None:
    import random

    data = bytearray((PAYMENTS / ZERO).read_bytes())
    damage(data, random.Random(3))
    path = write_file(tmp_path / ZERO, data)
    found = browse(path)
    plain = {row.key for row in forwards(found, 64)}
    for column in found.level.listing.columns:
        assert {row.key for row in in_order(found, column.name, True)} == plain


def test_sorting_can_be_stopped() -> None:
    def at(position: int, size: int | None) -> None:
        raise Cancelled

    gone = Run(at=at)

    found = browse(PAYMENTS / ZERO)
    with pytest.raises(Cancelled):
        found.sort(0, SortOrder("size", True), gone)
    assert found.level.order is None


def test_typed_orders() -> None:
    columns = browse(PAYMENTS / ZERO).level.listing.columns
    assert chosen_order("size", columns) == SortOrder("size", True)
    assert chosen_order("size asc", columns) == SortOrder("size", False)
    assert chosen_order("codec", columns) == SortOrder("compression", False), "by its label"
    assert chosen_order("-codec", columns) == SortOrder("compression", True)
    for text, reason in (("sise", "did you mean size?"), ("size up", "use asc or desc"), ("zzz", "columns are")):
        with pytest.raises(ValueError, match=reason):
            chosen_order(text, columns)


def test_sorting_with_keys(tmp_path: Path) -> None:
    path = write_file(tmp_path / "payments-0" / ZERO, flip((PAYMENTS / ZERO).read_bytes(), (502 + 100) * 8))
    sizes = sorted(value["size"] for value in listed(path))

    async def script(at: Driver) -> None:
        await at.keys("enter")
        shown = await at.keys("s", "down", "down", "down", "enter")
        assert "size ▼" in shown
        assert "sorted by size, descending; all" in at.status
        rows = at.app.browser.level.rows
        assert [row.item.size for row in rows] == sizes[::-1][: len(rows)]
        row = at.app.browser.level.row
        assert row is not None
        assert "size ▲" in await at.keys("S")
        assert [row.item.size for row in at.app.browser.level.rows[:20]] == sizes[:20]
        await at.keys("G", "enter", "escape")
        assert at.app.browser.level.row is not None
        assert at.app.browser.level.row.item.size == sizes[-1]
        await at.keys("r")
        assert at.app.browser.level.order == SortOrder("size", False), "kept when it is read again"
        assert at.app.browser.level.row.item.size == sizes[-1]
        await at.keys(":")
        await at.typed("sort off")
        assert "▲" not in at.shown
        assert at.app.browser.level.row.item.size == sizes[-1], "at the same row"
        await at.keys("S")
        assert "press s to sort" in at.status

    drive(path.parent, script)


def test_the_order_of_partitions_is_kept() -> None:
    async def script(at: Driver) -> None:
        await at.keys(":")
        await at.typed("sort size")
        rows = [row for row in at.app.browser.level.rows if row.type == "partition"]
        sizes = [row.item.size for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] > sizes[-1]
        await at.keys("enter", "escape", "down", "down", "r")
        assert [row.key for row in at.app.browser.level.rows if row.type == "partition"] == [row.key for row in rows]
        await at.keys("/")
        await at.typed("^payments-0")
        await at.keys("n")
        while at.app.browser.depth:
            await at.keys("backspace")
        assert [row.key for row in at.app.browser.level.rows if row.type == "partition"][: len(rows)] == [
            row.key for row in rows
        ]
        await at.keys(":")
        await at.typed("sort name desc")
        names = [row.label for row in at.app.browser.level.rows if row.type == "partition"]
        assert names[0] > names[-1]

    drive(CLEAN, script)


def test_a_table_that_changes_while_the_columns_are_listed() -> None:
    """What was being read when the list was opened arrives below it."""

    async def script(at: Driver) -> None:
        await at.keys("s")
        browser = at.app.browser
        levels = browser.enter(0, browser.levels[0].rows[0], PLAIN_RUN)
        assert levels is not None
        browser.settle(levels)
        await at.keys("enter")
        assert at.app.is_running
        assert "the table has changed" in at.status
        assert browser.level.order is None

    drive(PAYMENTS, script)
