"""Tests of the browser through its keys alone."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kdump.browse import background, listings
from kdump.browse import browser as browsing
from kdump.browse.lines import wrapped
from kdump.browse.save import row_commands
from kdump.render.escape import printable
from kdump.render.style import width as width_of
from tests.browse.driving import Driver, drive
from tests.browse.test_model import PAYMENTS, ZERO, listed
from tests.conftest import FIXTURES, few, numbers_in, sample, seeded
from tests.craft import batch, flip, record
from tests.test_damaged_disks import DAMAGES, LARGE

CLEAN = FIXTURES / "clean-1"
SOUND = FIXTURES / "disk-1" / "payments-0"
"""A partition with all its files."""


def test_in_and_out_and_all_panes_follow() -> None:
    async def script(at: Driver) -> None:
        assert "__cluster_metadata-0" in at.lines[1]
        await at.keys("slash")
        shown = await at.typed("pay")
        assert at.labels == ["payments-0"]
        assert "1 segment: 12.4 KiB" in shown
        shown = await at.keys("enter")
        assert at.labels[0] == "payments-0"
        assert "record batch at 0..152" in shown
        shown = await at.keys("enter", "down", "down")
        assert at.labels == ["payments-0", ZERO, "2..3"]
        assert "record batch at 306..501" in shown
        shown = await at.keys("enter", "down")
        assert at.labels == ["payments-0", ZERO, "2..3", "3 a2"]
        assert "record 1: offset 3" in shown
        await at.keys("enter", "end")
        assert at.labels[-1] == "headersCount 0"
        assert "headersCount = 0" in at.status
        await at.keys("backspace", "left", "escape")
        assert at.labels == ["payments-0", ZERO]
        await at.keys("enter", "enter")
        assert at.labels == ["payments-0", ZERO, "2..3", "3 a2"], "where it was left"

    drive(CLEAN, script)


def test_the_table_and_the_tree_follow_the_hexdump() -> None:
    async def script(at: Driver) -> None:
        await at.keys("enter", "down", "down", "enter", "enter")
        assert at.labels[-1] == "length 75"
        await at.keys("tab")
        assert at.app.focused is at.app.main.hex_pane
        await at.keys("down", "down")
        assert at.labels[-1].startswith("timestampDelta")
        assert at.app.main.table_pane.cursor == 2
        assert at.app.main.tree_pane.lines[at.app.main.tree_pane.cursor].text.strip().startswith("timestampDelta")
        await at.keys("tab", "down")
        assert at.app.focused is at.app.main.tree_pane
        assert at.labels[-1].startswith("offsetDelta")
        line = at.app.main.hex_pane.lines[at.app.main.hex_pane.cursor]
        assert "offsetDelta" in line.text

    drive(PAYMENTS / ZERO, script)


def test_enter_in_the_hexdump_goes_to_the_field() -> None:
    async def script(at: Driver) -> None:
        await at.keys("tab", "down", "down", "down", "down", "down", "enter")
        assert at.labels[-1].startswith("magic")
        assert at.labels[-2] == "header"

    drive(PAYMENTS / ZERO, script)


def test_the_aborted_transactions_of_payments_in_six_keys() -> None:
    async def script(at: Driver) -> None:
        keys = ["t", "a"]
        shown = await at.keys(*keys)
        aborted = [line for line in shown.splitlines() if " aborted " in line and "payments-0" in line]
        assert len(aborted) == 5
        row = next(n for n, line in enumerate(at.lines[3:]) if line.startswith("payments-0"))
        keys = ["down"] * row + ["enter"]
        assert 2 + len(keys) <= 6
        shown = await at.keys(*keys)
        assert at.labels == ["payments-0", ZERO, "14"]
        assert "aborted transaction of producer 9/1 (tx-a), offsets 14..23" in at.status
        assert "record batch at 1510..1669" in shown

    drive(CLEAN, script)


def test_transactions_by_their_states() -> None:
    async def script(at: Driver) -> None:
        shown = await at.keys("t")
        assert "all but committed: 6 of 18" in shown
        assert "last stable offset 114; blocked by producer 11" in shown
        assert "committed" not in "\n".join(shown.splitlines()[2:-1])
        shown = await at.keys("o")
        assert "open and hanging: 1 of 18" in shown
        assert "committed: 12 of 18" in await at.keys("c")
        assert "all: 18 of 18" in await at.keys("*")
        await at.keys("escape")
        assert at.labels == [ZERO]

    drive(PAYMENTS, script)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A partition with a flipped bit in a value of its third batch, and junk between two others."""
    target = shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    path = target / ZERO
    path.chmod(0o644)
    data = path.read_bytes()
    data = flip(data, (502 + 100) * 8)
    path.write_bytes(data[:986] + b"garbage that is no batch at all" + data[986:])
    return target


def test_next_finding_and_its_bytes(damaged: Path) -> None:
    async def script(at: Driver) -> None:
        shown = await at.keys("n")
        assert "crc-mismatch" in at.status
        assert " 1 of " in at.status
        assert at.labels == [ZERO, "4..6"]
        assert "! crc-mismatch at 502" in shown
        assert "KafkaException" in shown
        await at.keys("n")
        assert "junk-bytes" in at.status
        assert at.labels == [ZERO, "junk"]
        await at.keys("N")
        assert "crc-mismatch" in at.status
        await at.keys("N")
        assert at.status == " no earlier finding"
        shown = await at.keys("v")
        assert " findings: 3 errors, 1 warning in all" in shown.splitlines()[0]
        assert sum(line.startswith("error") for line in shown.splitlines()) >= 2
        await at.keys("down", "enter")
        assert at.labels == [ZERO, "junk"]

    drive(damaged, script)


def test_a_finding_stays_with_its_bytes(damaged: Path) -> None:
    async def script(at: Driver) -> None:
        assert "! crc-mismatch at 502" in await at.keys("n")
        shown = await at.keys("down")
        assert "bytes 794" in shown.splitlines()[11]
        assert "crc-mismatch" not in shown
        assert "crc-mismatch" not in await at.keys("down", "down")
        assert "! crc-mismatch at 502" in await at.keys("up", "up", "up")

    drive(damaged, script)


def test_a_message_that_is_wider_than_the_screen() -> None:
    async def script(at: Driver) -> None:
        await at.keys("f")
        await at.typed("--nonsense 3")
        assert at.lines[-2].startswith(" --nonsense is not a filter option; use --offset")
        assert "".join(line.ljust(80) for line in at.lines[-2:]).strip() == at.status.strip()
        await at.keys("down")
        assert "? help" in at.lines[-1]

    drive(PAYMENTS, script)


def test_a_sound_partition_has_no_finding() -> None:
    async def script(at: Driver) -> None:
        await at.keys("n")
        assert "no error or warning" in at.status
        await at.keys("v", "i", "escape")

    drive(SOUND, script)


def test_a_check_that_was_stopped_is_not_called_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(at: Driver) -> None:
        go_on = threading.Event()
        run = background.verify

        def slow(check: Any, of: Any) -> None:
            while not go_on.wait(0.01):
                of.more(0)
            run(check, of)

        monkeypatch.setattr(background, "verify", slow)
        at.press("n")
        await asyncio.sleep(0.1)
        await at.keys("escape")
        assert "STOPPED, not all was checked: 0 errors, 0 warnings so far" in at.status
        await at.keys("v")
        assert "so far" in at.lines[0]
        await at.keys("escape")
        go_on.set()
        await at.keys("n")
        assert "no error or warning" in at.status, "it was started again"

    drive(SOUND, script)


def test_what_a_check_did_not_read_comes_first(tmp_path: Path) -> None:
    shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    (tmp_path / "payments-0" / f"{5000:020}.log").symlink_to("/nowhere")

    async def script(at: Driver) -> None:
        await at.keys("v", "escape", "v")
        assert at.lines[1].startswith(" NOT READ: 1 place; ")
        await at.keys("escape", "H", "s")
        assert at.lines[1].startswith(" NOT READ: 1 place; ")
        assert f"{5000:020}.log" in "".join(line.strip() for line in at.lines[1:5])

    drive(tmp_path / "payments-0", script)


def test_going_somewhere() -> None:
    async def script(at: Driver) -> None:
        await at.keys("g")
        await at.typed("43")
        assert at.labels == [ZERO, "43", "43 b0"]
        await at.keys("g")
        await at.typed("@1510")
        assert at.labels == [ZERO, "14"]
        await at.keys("g")
        await at.typed("2026-11-21T07:58:23.3")
        assert at.labels[-1].startswith("114")
        await at.keys("g")
        await at.typed("120")
        assert "offset 120 is after the last" in at.status
        await at.keys("g")
        await at.typed("nonsense")
        assert "nonsense" in at.status
        assert at.labels[-1].startswith("114")
        await at.keys("g", "escape")
        assert at.app.focused is at.app.main.table_pane

    drive(PAYMENTS, script)


def test_searching() -> None:
    async def script(at: Driver) -> None:
        await at.keys("slash")
        await at.typed("sku-3")
        first = at.app.browser.level.row
        assert first is not None
        assert b"sku-3" in first.item.value
        await at.keys("slash", "enter")
        second = at.app.browser.level.row
        assert second is not None
        assert second.item.offset > first.item.offset
        await at.keys("slash")
        await at.typed("nowhere")
        assert "no record from here on matches 'nowhere'" in at.status

    drive(PAYMENTS / ZERO, script)


def test_filtering() -> None:
    async def script(at: Driver) -> None:
        await at.keys("f")
        shown = await at.typed("--producer-id 10 --control")
        assert "filter --producer-id 10 --control" in shown.splitlines()[0]
        assert [row.item.producerId for row in at.app.browser.level.rows] == [10] * len(at.app.browser.level.rows)
        assert all(row.item.isControlBatch for row in at.app.browser.level.rows)
        shown = await at.keys("c")
        assert "--producer-id10--control" in "".join(shown.split()), "in lines, by how long the path is"
        await at.keys("escape", "f")
        at.app.main.prompt.value = "--nope"
        await at.keys("enter")
        assert "--nope is not a filter option" in at.status
        await at.keys("f")
        at.app.main.prompt.value = "--offset 1000.."
        shown = await at.keys("enter")
        assert "the filter matches no batch or record" in shown
        await at.keys("f")
        at.app.main.prompt.value = ""
        await at.keys("enter")
        assert at.app.browser.level.rows[0].key == 0

    drive(PAYMENTS / ZERO, script)


def test_a_filter_keeps_the_place() -> None:
    async def script(at: Driver) -> None:
        await at.keys("g")
        await at.typed("4")
        await at.keys("enter", "down", "f")
        await at.typed("--producer-id 10")
        assert at.labels == [ZERO, "4..6", "4 b1"]
        await at.keys("down", "r")
        assert at.labels == [ZERO, "4..6", "5 b2"]
        await at.keys("f")
        at.app.main.prompt.value = "--producer-id 9"
        await at.keys("enter")
        assert at.labels in ([ZERO, "2..3"], [ZERO, "7..8"])

    drive(PAYMENTS, script)


def test_copying_a_record() -> None:
    async def script(at: Driver) -> None:
        await at.keys("enter", "y")
        text = at.app.clipboard
        assert json.loads(text)["type"] == "record"
        assert '{"type":"record"' in at.shown.replace(" ", "")
        assert "".join(line for line in at.lines[1:-1]).startswith(text[:60])
        await at.keys("escape", "question_mark")
        assert "Move" in at.shown

    drive(PAYMENTS / ZERO, script)


def test_a_record_that_is_too_large_to_copy(tmp_path: Path) -> None:
    path = tmp_path / "t-0" / ZERO
    path.parent.mkdir()
    path.write_bytes(batch([record(0, b"small", "é".encode() * 60_000), record(1, b"large", bytes(300_000))]))

    async def script(at: Driver) -> None:
        began = time.monotonic()
        assert "JSON" in await at.keys("enter", "y")
        assert time.monotonic() - began < 5, "wrapping takes time in proportion to the text"
        await at.keys("escape", "down")
        assert "JSON" not in await at.keys("y")
        assert "293.0 KiB is too much to copy through the terminal; to save it, press w and type json FILE" in at.status
        await at.keys("enter", "y")
        assert "too much to copy" in at.status

    drive(path, script)


@pytest.mark.parametrize("width", [1, 7, 80])
@pytest.mark.parametrize("text", ["", "a", "a" * 80, "a" * 161, "漢字" * 50 + "x", "e\u0301" * 90, "a\n\nb" * 30])
def test_wrapping(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert "".join(lines) == text.replace("\n", "")
    assert all(width_of(line) <= max(width, 2) for line in lines)


@pytest.mark.every_disk
def test_scrolling_far_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "ROWS", 6)
    monkeypatch.setattr(listings, "MAX_KEPT_ROWS", 18)

    async def script(at: Driver) -> None:
        keys = []
        for _ in range(400):
            row = at.app.browser.level.row
            assert row is not None
            if keys and keys[-1] == row.key:
                break
            keys.append(row.key)
            await at.keys("down")
        assert keys == [value["position"] for value in listed(PAYMENTS / ZERO)]
        await at.keys("home")
        assert at.app.browser.level.row is not None
        assert at.app.browser.level.row.key == 0
        await at.keys("G")
        assert at.app.browser.level.row.key == keys[-1]
        for _ in range(30):
            await at.keys("pageup")
        assert at.app.browser.level.row.key == 0

    drive(PAYMENTS / ZERO, script)


def test_the_tree_goes_on_where_the_table_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "ROWS", 8)

    async def script(at: Driver) -> None:
        await at.keys("enter", "tab", "tab")
        assert at.app.focused is at.app.main.tree_pane
        for _ in range(60):
            await at.keys("down")
        row = at.app.browser.level.row
        assert row is not None
        assert row.item.position > 6000
        assert at.app.main.tree_pane.lines[at.app.main.tree_pane.cursor].text.strip().endswith(row.label)
        await at.keys("home")
        assert at.app.browser.level.row is not None
        assert at.app.browser.level.row.key == 0

    drive(PAYMENTS, script)


def test_a_finding_in_an_index(tmp_path: Path) -> None:
    shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    index = tmp_path / "payments-0" / f"{0:020}.index"
    index.chmod(0o644)
    index.write_bytes(index.read_bytes()[:15] + b"\x07")

    async def script(at: Driver) -> None:
        await at.keys("n")
        assert "index-mismatch" in at.status
        assert at.labels[0] == index.name
        assert "! index-mismatch" in at.shown

    drive(tmp_path / "payments-0", script)


def test_keys_that_come_faster_than_answers() -> None:
    """Keys are pressed while levels are still being read: no file is used after it is closed."""
    dice = random.Random(5)
    keys = ["enter", "enter", "down", "up", "backspace", "tab", "pagedown", "G", "home", "n", "right", "escape", "r"]

    async def script(at: Driver) -> None:
        for _ in range(200):
            at.press(dice.choice(keys))
            if dice.random() < 0.3:
                await asyncio.sleep(0.002 * dice.random())
        await at.settled()
        assert at.app.is_running

    drive(CLEAN, script)


def test_markup_and_control_characters_of_keys_are_shown_as_they_are(tmp_path: Path) -> None:
    keys = [b"[red]boo[/red]", b"[@click=app.quit]x[/]", b"\x1b[31m\x07bell", "\u202egnp".encode(), b"$[bold]", b"[/"]
    parts = [record(n, key, b"[link=http://x]v[/link]\x9b") for n, key in enumerate(keys)]
    path = tmp_path / "hostile-0" / ZERO
    path.parent.mkdir()
    path.write_bytes(batch(b"".join(parts), recordCount=len(keys), lastOffsetDelta=len(keys) - 1))

    async def script(at: Driver) -> None:
        shown = await at.keys("enter")
        for text in ("[red]boo[/red]", "[@click=app.quit]x[/]", "\\x1b[31m\\x07bell", "\\u202egnp"):
            assert text in shown, text
        for _ in keys:
            await at.keys("down", "y", "escape")
            assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for line in at.lines for letter in line)
        await at.keys("slash")
        await at.typed("[bold")
        assert "[bold" in at.status

    drive(path, script, (200, 40))


def test_names_that_a_terminal_would_obey(tmp_path: Path) -> None:
    """The commands of a path with any bytes work in a shell; they are shown without control characters and surrogates,
    which cannot be written to a terminal."""
    directory = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"d\xff\x1b[31m'\\ \xe2\x80\xae"))
    shutil.copytree(PAYMENTS, os.path.join(directory, "payments-0"))

    async def script(at: Driver) -> None:
        for keys in (("c",), ("c", "y"), ("escape", "enter", "c"), ("escape", "enter", "c"), ("escape", "y", "y")):
            shown = await at.keys(*keys)
            assert printable(shown.replace("\n", "")) == shown.replace("\n", "")
        await at.keys("escape")
        for command in row_commands(at.app.browser):
            words = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True).stdout.split(b"\0")
            assert os.path.exists(words[2])

    drive(directory, script)


def test_a_file_that_shrinks_and_one_that_goes_away(tmp_path: Path) -> None:
    target = shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    (target / ZERO).chmod(0o644)
    size = (target / ZERO).stat().st_size

    async def script(at: Driver) -> None:
        await at.keys("enter", "down")
        os.truncate(target / ZERO, 400)
        await at.keys("down", "down", "enter", "escape")
        assert numbers_in(at.status.partition(";")[2])[0] == size - 400  # the bytes by which it was truncated
        await at.keys("r")
        assert len(at.app.browser.level.rows) == 3
        shutil.rmtree(target)
        await at.keys("r")
        assert "no such file" in at.status
        await at.keys("escape", "down", "enter", "t", "escape", "n")
        assert at.app.is_running

    drive(target, script)


def test_what_may_not_be_read(tmp_path: Path) -> None:
    target = shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    log = target / ZERO
    log.unlink()
    log.mkdir()

    async def script(at: Driver) -> None:
        for _ in range(7):
            await at.keys("enter", "escape", "down")
        assert at.app.is_running

    drive(target, script)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "damage", sample(DAMAGES, 12, "test_a_walk_over_damaged_files"), ids=lambda damage: damage.__name__
)
def test_a_walk_over_damaged_files(damage: Any, tmp_path: Path) -> None:
    """Press all keys on a partition in which every file is damaged: there is no traceback."""
    dice = seeded(damage.__name__)
    target = shutil.copytree(PAYMENTS, tmp_path / "payments-0")
    for path in sorted(target.iterdir()):
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        if 0 < len(data) < LARGE:
            damage(data, dice)
        path.write_bytes(data)

    async def script(at: Driver) -> None:
        for _ in sorted(target.iterdir()):
            await at.keys("enter", "enter", "enter", "G", "y", "escape", "home", "c", "escape")
            while at.app.browser.depth:
                await at.keys("backspace")
            await at.keys("down")
        await at.keys("n", "n", "v", "escape", "t", "escape", "x", "z", "z", "q")

    drive(target, script)


@pytest.mark.parametrize("size", few([pytest.param(size) for size in ((80, 24), (200, 60), (40, 12), (20, 6))], 2))
def test_sizes(size: tuple[int, int]) -> None:
    async def script(at: Driver) -> None:
        await at.keys("enter", "z", "z", "tab", "z", "z", "question_mark", "escape", "t", "escape", "v", "escape")
        assert all(len(line) <= size[0] for line in at.lines)
        assert at.lines[0].startswith(" kdump browse")

    drive(PAYMENTS, script, size)


def test_without_a_terminal_and_without_textual(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kdump", "browse", str(PAYMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "kdump: browse needs a terminal; to write to a pipe or a file, use kdump ls or kdump inspect\n"
    )
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')")
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "kdump: browse needs textual, which is not installed: pip install textual\n"
