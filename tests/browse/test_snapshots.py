"""Snapshots of the screen, with textual's own plugin: `pytest --snapshot-update` writes them again, and a failure
writes a page that shows both screens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browse.driving import Driver, app_of
from tests.browse.test_model import PAYMENTS, ZERO
from tests.conftest import FIXTURES, ROOT
from tests.craft import flip
from tools.browse_capture import PICTURES, draw

SCREENS = {
    "start": ("clean-1", (80, 24), []),
    "batches": ("clean-1/payments-0", (80, 24), ["enter", *["down"] * 7]),
    "fields": (f"clean-1/payments-0/{ZERO}", (200, 60), ["down", "down", "enter", "enter", "down", "down", "down"]),
    "aborted": ("clean-1", (80, 24), ["t", "a"]),
    "help": ("clean-1/payments-0", (80, 24), ["question_mark"]),
    "offsets": ("clean-1/__consumer_offsets-0", (120, 30), ["enter", "down", "enter"]),
}
"""Path, window size and keys. None of the screens shows a modification time, which differs between machines."""


def drawn(compare: Callable[..., bool], path: str, size: tuple[int, int], keys: list[str]) -> bool:
    app = app_of(path)

    async def before(pilot: Any) -> None:
        at = Driver(pilot, app)
        await at.settled()
        await at.keys(*keys)

    return compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("name", SCREENS)
def test_screens(name: str, snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    path, size, keys = SCREENS[name]
    assert drawn(snap_compare, path, size, keys)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_documentation(name: str) -> None:
    """Checks the pictures in the documentation; `make docs` draws them again."""
    assert (ROOT / "docs" / name).read_text() == draw(name)


def test_a_finding(snap_compare: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PAYMENTS, "payments-0")
    log = Path("payments-0", ZERO)
    log.chmod(0o644)
    log.write_bytes(flip(log.read_bytes(), 602 * 8 + 5))
    assert drawn(snap_compare, "payments-0", (80, 24), ["n"])


def test_without_colour(snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    monkeypatch.setenv("NO_COLOR", "1")
    assert drawn(snap_compare, "clean-1/payments-0", (80, 24), ["enter", "enter"])
