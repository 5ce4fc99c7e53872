"""Tests of the browser on a bundle: it shows what the bundle has, and states what it lacks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdump.cli import COMMANDS, command_of
from kdump.io.mounted_paths import mount_paths, unmount_paths
from tests.browse.driving import Driver, drive
from tests.browse.test_model import ZERO, backwards, browse, everything, forwards, listed, said
from tests.command import run
from tests.conftest import FIXTURES, ROOT, few
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
    mount_paths([str(tmp_path / "b")])
    yield tmp_path / "b"
    unmount_paths()


def test_the_commands_that_take_a_bundle() -> None:
    """They are those of the documentation."""
    table = (ROOT / "docs" / "bundle.md").read_text().partition("| command | from a bundle |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    named = {name for cell, answer in rows for name in re.findall(r"`([\w-]+)", cell) if "exit status 2" not in answer}
    assert named == {name for name in COMMANDS if command_of(name).mounts}


def test_the_command_line_takes_a_bundle(bundle: Path, tmp_path: Path) -> None:
    """The directory, the packed file, and a path in it."""
    shutil.copytree(FIXTURES / "clean-1" / "payments-0", tmp_path / "other" / "payments-0")
    run("bundle", tmp_path / "other", "--out", tmp_path / "o", "--tar", tmp_path / "o.tar")
    for path in (bundle, bundle / "payments-0", tmp_path / "o.tar", tmp_path / "o.tar" / "payments-0"):
        result = run("browse", path)
        assert "browse needs a terminal" in result.stderr, "and nothing else is wrong"


@pytest.mark.parametrize("name", few(["payments-0", "__consumer_offsets-0"], 1))
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
