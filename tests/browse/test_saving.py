"""Tests of saving: what is in the file, and where none may be written."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdump.browse.command_list import NAMED
from kdump.browse.commands import run_command
from kdump.browse.save import parse_saved
from kdump.log.output_directory import PASSING
from tests.browse.driving import Driver, drive
from tests.browse.test_model import PAYMENTS, ZERO
from tests.conftest import FIXTURES
from tests.craft import batch, flip, message, record, split, wrapper, write_file


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        *(("x.bin", ("", "x.bin")), ("value x.bin", ("value", "x.bin")), ("header:a b c", ("header:a", "b c"))),
        *(("./value", ("", "./value")), ("a b", ("", "a b")), ("json  x", ("json", "x"))),
    ],
)
def test_what_is_typed(text: str, parsed: tuple[str, str]) -> None:
    assert parse_saved(text) == parsed


@pytest.mark.parametrize("text", ["value", "header:a", "value "])
def test_a_missing_file_name(text: str) -> None:
    with pytest.raises(ValueError, match="type a file name"):
        parse_saved(text)


async def saved(at: Driver, what: str) -> None:
    at.press("w")
    await at.settled()
    at.app.main.prompt.value = what
    await at.keys("enter")


def test_every_part(tmp_path: Path) -> None:
    large = os.urandom((1 << 20) + 5)
    parts = [record(0, b"k1", large, [(b"h", b"one"), (b"h", b"two"), (b"n", None)]), record(1, None, None)]
    disk = tmp_path / "disk"
    path = disk / "t-0" / ZERO
    path.parent.mkdir(parents=True)
    data = batch(b"".join(parts), recordCount=2, lastOffsetDelta=1)
    path.write_bytes(data + b"garbage")

    async def script(at: Driver) -> None:
        out = tmp_path / "out"
        await saved(at, f"{out}/batch")
        assert (out / "batch").read_bytes() == data
        await at.keys("enter")
        for part, expected in (("value", large), ("key", b"k1"), ("header:h", b"two"), ("bytes", parts[0])):
            await saved(at, f"{part} {out}/{part}")
            assert (out / part).read_bytes() == expected, part
        assert f"saved the record at offset 0, {len(parts[0]):,} bytes, to {out}/bytes" in at.status
        await saved(at, f"{out}/default")
        assert (out / "default").read_bytes() == large
        await saved(at, f"json {out}/json")
        assert json.loads((out / "json").read_text())["offset"] == 0
        await saved(at, f"header:n {out}/none")
        assert "is null" in at.status
        await saved(at, f"header:z {out}/none")
        assert "has no header 'z'; its headers: h, n" in at.status
        await at.keys("enter", "end")
        await at.keys(*["up"] * 20)
        row = at.app.browser.level.row
        assert row is not None
        await saved(at, f"{out}/field")
        assert (out / "field").read_bytes() == row.item.data[: row.item.size]
        await at.keys("escape", "down")
        await saved(at, f"{out}/none")
        assert "the value of offset 1 is null" in at.status
        await at.keys("escape", "down")
        await saved(at, f"{out}/junk")
        assert (out / "junk").read_bytes() == b"garbage"
        await saved(at, f"value {out}/none")
        assert "select a record" in at.status
        assert not (out / "none").exists()
        assert [each.name for each in out.iterdir() if each.name.endswith("part")] == []

    drive(path, script)


def test_a_file_is_overwritten_only_after_a_yes(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("mine")
    (tmp_path / "link").symlink_to(path)

    async def script(at: Driver) -> None:
        await saved(at, str(path))
        assert "exists: overwrite it? y: yes" in at.status
        await at.keys("n")
        assert "not saved" in at.status
        await saved(at, str(path))
        await at.keys("escape")
        assert path.read_text() == "mine"
        await saved(at, str(tmp_path / "link"))
        assert "not a regular file" in at.status
        await saved(at, str(tmp_path))
        assert "not a regular file" in at.status
        await saved(at, str(path))
        await at.keys("y")
        assert path.read_bytes() == split((PAYMENTS / ZERO).read_bytes())[0]
        await saved(at, "/proc/nowhere/x")
        assert "cannot be written" in at.status

    drive(PAYMENTS / ZERO, script)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_at_the_name_of_the_unfinished_file(link: Any, tmp_path: Path) -> None:
    """The file that it leads to is not written to."""
    (tmp_path / "file").write_text("mine")
    source = shutil.copytree(PAYMENTS, tmp_path / "disk" / "payments-0")
    before = (source / ZERO).read_bytes()
    link(source / ZERO, tmp_path / f"file{PASSING}")

    async def script(at: Driver) -> None:
        await saved(at, str(tmp_path / "file"))
        await at.keys("y")
        assert (source / ZERO).read_bytes() == before
        assert (tmp_path / "file").read_bytes() == split(before)[0]

    drive(source / ZERO, script)


def test_the_question_stays_until_it_is_answered(tmp_path: Path) -> None:
    """Whatever arrives in the meantime neither hides it nor changes what is saved."""
    path = tmp_path / "file"
    path.write_text("mine")

    async def script(at: Driver) -> None:
        await saved(at, str(path))
        assert "overwrite it?" in at.status
        at.app.main.trouble("the check has ended")
        at.app.main.look("elsewhere", lambda job: at.app.browser.to_offset(10, job.run))
        await at.settled()
        at.app.main.show_progress()
        assert "overwrite it?" in at.status
        await at.keys("y")
        assert path.read_bytes() == split((PAYMENTS / ZERO).read_bytes())[0]
        path.write_text("mine")
        await saved(at, str(path))
        await at.keys("n")
        assert path.read_text() == "mine"
        assert "not saved" in at.status

    drive(PAYMENTS / ZERO, script)


def test_a_key_for_another_screen_is_not_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")

    async def script(at: Driver) -> None:
        run_command(at.app.main, NAMED["save"], str(path))
        at.app.action_run("help")
        await at.settled()
        await at.keys("y", "escape")
        assert path.read_text() == "mine"
        assert "exists: not saved" in at.status

    drive(PAYMENTS / ZERO, script)


def test_nothing_is_written_next_to_the_source(tmp_path: Path) -> None:
    disk = shutil.copytree(FIXTURES / "clean-1", tmp_path / "disk")
    before = sorted(str(each) for each in disk.rglob("*"))

    async def script(at: Driver) -> None:
        await at.keys("/")
        await at.typed("^payments-0")
        await at.keys("enter", "enter")
        for place in (disk, disk / "payments-0", disk / "new", disk / "payments-0" / ZERO):
            await saved(at, str(place / "x" if place.suffix == "" else place))
            assert "refusing to write" in at.status or "not a directory" in at.status.lower(), place
        await at.keys("y")
        assert sorted(str(each) for each in disk.rglob("*")) == before

    drive(disk, script)


def test_a_damaged_batch_is_saved_with_a_warning(tmp_path: Path) -> None:
    path = write_file(tmp_path / "payments-0" / ZERO, flip((PAYMENTS / ZERO).read_bytes(), (502 + 100) * 8))

    async def script(at: Driver) -> None:
        await at.keys("g")
        await at.typed("@502")
        await saved(at, str(tmp_path / "out" / "b"))
        assert "does not match its checksum" in at.status
        assert (tmp_path / "out" / "b").read_bytes() == split(path.read_bytes())[3]
        os.truncate(path, 600)
        await saved(at, str(tmp_path / "out" / "c"))
        assert "truncated" in at.status
        assert not (tmp_path / "out" / "c").exists()

    drive(path, script)


def test_a_damaged_message_in_a_valid_wrapper_is_saved_with_a_warning(tmp_path: Path) -> None:
    good, bad = message(1, b"good", offset=0), message(1, b"bad", offset=1)
    write_file(tmp_path / "a-0" / ZERO, wrapper(1, [good, flip(bad, 8 * len(bad) - 1)], offset=1))

    async def script(at: Driver) -> None:
        await at.keys("enter")
        for name, is_damaged in (("good", False), ("bae", True)):
            await saved(at, f"value {tmp_path / name}")
            assert (tmp_path / name).read_bytes() == name.encode()
            assert ("the message at offset 1 in the batch at byte 0 does not match" in at.status) == is_damaged
            await at.keys("down")

    drive(tmp_path / "a-0" / ZERO, script)
