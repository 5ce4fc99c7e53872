"""Tests of marks: a random walk with marks, compared with a model that remembers what was shown."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.browse.driving import Driver, drive
from tests.browse.test_model import PAYMENTS, ZERO
from tests.conftest import FIXTURES
from tests.craft import split

CLEAN = FIXTURES / "clean-1"


def test_marks_lead_back_across_partitions() -> None:
    async def script(at: Driver) -> None:
        await at.keys("/")
        await at.typed("^payments-0")
        await at.keys("enter", "enter", "down", "enter", "m", "a")
        here = at.labels
        assert " mark a: payments-0 › " in at.status
        await at.keys("escape", "escape", "escape", "home", "m", "1", "'", "a")
        assert at.labels == here
        assert "mark a: payments-0" in at.status
        await at.keys("'", "'")
        assert at.labels == ["__cluster_metadata-0"]
        await at.keys("'", "'")
        assert at.labels == here, "and there again"
        await at.keys("'", "1")
        assert at.labels == ["__cluster_metadata-0"]
        await at.keys("'", "x")
        assert "mark 'x' is not set; set are ' 1 a" in at.status
        shown = await at.keys("M")
        assert "marks of this session" in shown
        assert "payments-0" in shown
        await at.keys("down", "down", "enter")
        assert at.labels == here
        await at.keys("M", "d", "d", "d", "d", "enter", "escape", "M")
        assert "no mark is set" in at.status
        await at.keys("m", "escape", "'", "escape", "m", "/")
        assert "'/' is not a mark" in at.status

    drive(CLEAN, script)


@pytest.mark.every_disk
def test_a_random_walk() -> None:
    """After any moves, sorts and filters, a mark leads to the row that it was set on."""
    dice = random.Random(26)
    moves = [
        *("enter", "enter", "enter", "down", "down", "pagedown", "up", "backspace", "escape", "G", "home", "S"),
        "tab",
    ]
    lines = ["sort size", "sort offset desc", "sort off", "offset 43", "filter --producer-id 9", "filter --control"]

    async def script(at: Driver) -> None:
        model: dict[str, tuple[str, object]] = {}

        def here() -> tuple[str, object]:
            browser = at.app.browser
            level = browser.level
            if level.row is not None and level.row.type == "field":
                level = browser.levels[browser.depth - 1]
            row = level.row
            assert row is not None
            inside = (row.item.batch.position, row.item.index) if row.type == "record" else row.key
            return level.path, level.owner.item.position if row.type == "header" and level.owner else inside

        async def checked(letter: str) -> None:
            await at.keys("'", letter)
            path, inside = model[letter]
            level = at.app.browser.level
            row = level.row
            assert row is not None
            key = (row.item.batch.position, row.item.index) if row.type == "record" else row.key
            assert (level.path, key) == (path, inside), letter

        for _ in range(80):
            roll = dice.random()
            row = at.app.browser.level.row
            if roll < 0.15 and row is not None and row.type not in ("note", "entry"):
                letter = dice.choice("abc")
                model[letter] = here()
                await at.keys("m", letter)
            elif roll < 0.3 and model:
                await checked(dice.choice(sorted(model)))
            elif roll < 0.4:
                await at.keys(":")
                await at.typed(dice.choice(lines))
            else:
                await at.keys(dice.choice(moves))
        for letter in sorted(model):
            await checked(letter)
        assert len(model) == 3

    drive(CLEAN, script)


def test_a_mark_in_a_file_that_has_changed(tmp_path: Path) -> None:
    target = shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    log = target / ZERO
    log.chmod(0o644)
    batches = split(log.read_bytes())

    async def script(at: Driver) -> None:
        await at.keys("enter", "down", "down", "enter", "m", "a", "escape", "escape")
        log.write_bytes(b"".join(batches[5:]))
        await at.keys("'", "a")
        assert "the file has changed: offset" in at.status
        os.truncate(log, 0)
        await at.keys("'", "a")
        log.unlink()
        await at.keys("'", "a")
        assert "no longer exists" in at.status
        assert at.app.is_running

    drive(target, script)
