"""Tests of the browser on a bundle: it shows what the bundle has, and states what it lacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdump.log.mounts import mount_bundles, unmount_bundles
from tests.browse.driving import Driver, drive
from tests.browse.test_model import ZERO, backwards, browse, everything, forwards, listed, said
from tests.command import run
from tests.conftest import FIXTURES
from tests.craft import flip


@pytest.fixture
def bundle(tmp_path: Path) -> Iterator[Path]:
    """A bundle of two partitions, one of them damaged, without records of clients."""
    disk = tmp_path / "disk"
    for name in ("payments-0", "__consumer_offsets-0"):
        shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    log = disk / "payments-0" / ZERO
    log.chmod(0o644)
    data = flip(log.read_bytes(), (502 + 100) * 8)
    log.write_bytes(data[:986] + b"garbage that is no batch at all" + data[986:])
    run("bundle", disk, "--out", tmp_path / "b")
    mount_bundles([str(tmp_path / "b")])
    yield tmp_path / "b"
    unmount_bundles()


@pytest.mark.parametrize("name", ["payments-0", "__consumer_offsets-0"])
def test_a_bundle_is_shown_as_inspect_lists_it(bundle: Path, name: str) -> None:
    path = bundle / name / ZERO
    expected = listed(path)
    assert len(expected) > 5
    found = browse(bundle, name, ZERO)
    assert said(found, forwards(found, 5)) == expected
    assert said(found, backwards(found, 7)) == expected
    for row in forwards(found, 64):
        everything(found, row)


def test_what_a_bundle_lacks(bundle: Path) -> None:
    async def script(at: Driver) -> None:
        await at.keys("end")
        row = at.app.browser.level.row
        assert row is not None
        assert row.label == "payments-0"
        shown = await at.keys("enter", "enter")
        assert "baseOffset" in shown, "the header is in the bundle"
        assert "the records of this batch are not in the bundle" in await at.keys("enter")
        await at.keys("backspace", "g")
        await at.typed("43")
        assert at.labels[1:3] == [ZERO, "43"]
        await at.keys("escape", "escape", "escape", "home", "enter", "enter")
        assert "OffsetCommit" in await at.keys("enter")

    drive(bundle, script)
