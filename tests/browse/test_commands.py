"""Tests of the commands: their declaration, and the line in which they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from kdump.browse.app import BrowseApp
from kdump.browse.command_list import COMMANDS, NAMED, TYPED, find_command, help_text, parse_command
from kdump.browse.main_screen import KEYS
from kdump.browse.prompt import Cycle, file_names
from tests.browse.driving import Driver, drive
from tests.browse.test_model import PAYMENTS, ZERO
from tests.conftest import FIXTURES, ROOT
from tools.browse_capture import with_table


def test_every_command_can_be_run_and_is_described() -> None:
    shown = help_text()
    assert all(len(line) < 80 for line in shown.splitlines())
    for command in NAMED.values():
        assert callable(command.run)
        assert command.help[0].islower()
        assert not command.help.endswith(".")
        assert command.name == "command" or command.usage in shown
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))
    bound = {key for binding in BrowseApp.BINDINGS for key in binding.key.split(",")}  # type: ignore[union-attr]
    assert set(keys) <= bound


def test_the_hints_fit_a_line() -> None:
    assert len(KEYS) <= 80


def test_the_table_in_the_documentation() -> None:
    page = (ROOT / "docs" / "browse.md").read_text()
    assert page == with_table(page), "run python -m tools.browse_capture"


@pytest.mark.parametrize(
    ("line", "name", "argument"),
    [
        *(("offset 42", "offset", "42"), (":off 42", "offset", "42"), ("q", "quit", ""), ("42", "go", "42")),
        *(
            ("@306", "go", "@306"),
            ("/a b", "search", "a b"),
            ("verify", "findings", ""),
            ("  time  -2h ", "time", "-2h"),
        ),
    ],
)
def test_lines_that_are_commands(line: str, name: str, argument: str) -> None:
    assert parse_command(line) == (NAMED[name], argument)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ofset 3", "there is no command :ofset; did you mean :offset?"),
        ("Quit", "did you mean :quit?"),
        ("xyzzy", "there is no command :xyzzy; press ? for the commands"),
        ("f", "ambiguous: "),
        ("zoom 3", ":zoom takes no argument"),
    ],
)
def test_lines_that_are_not(line: str, reason: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_command(line)
    assert reason in str(raised.value)


def test_every_name_is_found_by_itself() -> None:
    assert all(find_command(name) is command for name, command in TYPED.items())


def test_typing_commands() -> None:
    async def script(at: Driver) -> None:
        await at.keys(":")
        await at.typed("offset 43")
        assert at.labels == [ZERO, "43", "43 b0"]
        await at.keys(":")
        await at.typed("@1510")
        assert at.labels == [ZERO, "14"]
        await at.keys(":")
        await at.typed("offset x")
        assert "'x' is not an offset" in at.status
        await at.keys(":")
        await at.typed("ofset 3")
        assert "did you mean :offset" in at.status
        await at.keys(":")
        await at.typed("")
        assert at.app.focused is at.app.main.table_pane
        await at.keys(":", "escape")
        assert at.app.focused is at.app.main.table_pane
        await at.keys(":")
        await at.typed("offset")
        assert "offset OFFSET" in at.status, "asks for what is missing"
        await at.typed("2")
        assert at.labels[-1].startswith("2 ")
        await at.keys(":")
        await at.typed("help")
        assert "Move" in at.shown
        await at.keys("escape", ":")
        await at.typed("q")
        assert not at.app.is_running

    drive(PAYMENTS, script)


def prompt(at: Driver) -> str:
    return at.app.main.prompt.value  # type: ignore[attr-defined, no-any-return]


def test_completion_and_history() -> None:
    async def script(at: Driver) -> None:
        await at.keys(":", "o", "tab")
        assert prompt(at) == "offset"
        assert "1 of 2: [offset]  out" in at.status
        await at.keys("tab")
        assert prompt(at) == "out"
        await at.keys("shift+tab")
        assert prompt(at) == "offset"
        await at.typed(" 7")
        assert at.labels[-1].startswith("7 ")
        await at.keys(":")
        await at.typed("offset 9")
        await at.keys(":", "up")
        assert prompt(at) == "offset 9"
        await at.keys("up", "up")
        assert prompt(at) == "offset 7"
        await at.keys("down", "down", "down")
        assert prompt(at) == ""
        await at.keys("z", "tab")
        assert prompt(at) == "zoom ", "the only one"
        await at.keys("escape", "f", "tab")
        assert prompt(at).startswith("--")
        await at.keys("escape", ":")
        await at.keys(*"nope", "tab")
        assert "no completion" in at.status

    drive(PAYMENTS, script)


def test_pasted_control_characters() -> None:
    async def script(at: Driver) -> None:
        await at.keys(":")
        at.app.post_message(events.Paste("off\x1b[31mset\x07 3"))
        await at.settled()
        assert prompt(at) == "off[31mset 3"
        await at.keys("escape")

    drive(PAYMENTS, script)


def test_the_help_scrolls_by_pages() -> None:
    async def script(at: Driver) -> None:
        first = (await at.keys("?")).splitlines()
        second = (await at.keys("pagedown")).splitlines()
        assert second[1] == first[-2], "one line is repeated"
        for _ in range(5):
            shown = await at.keys("pagedown")
        assert "Nothing is written to the disk that is read." in shown
        for _ in range(6):
            shown = await at.keys("pageup")
        assert shown.splitlines()[:-1] == first[:-1]

    drive(PAYMENTS, script)


def test_candidates_fit_the_screen() -> None:
    cycle = Cycle([f"name-{number:03}" for number in range(200)])
    assert cycle.step(-1) == "name-199"
    assert cycle.step(1) == "name-000"
    for width in (20, 40, 80, 200):
        assert len(cycle.shown(width)) <= width


def test_names_of_files(tmp_path: Path) -> None:
    for name in ("one", "other", ".hidden", "esc\x1b[31m"):
        (tmp_path / name).write_text("")
    (tmp_path / "directory").mkdir()
    place = f"{tmp_path}/"
    assert file_names(place) == [place + "directory/", place + "one", place + "other"]
    assert file_names(place + "o") == [place + "one", place + "other"]
    assert file_names(place + ".h") == [place + ".hidden"]
    assert file_names(place + "none/x") == file_names("\0") == []


def test_a_command_before_there_is_anything(tmp_path: Path) -> None:
    async def script(at: Driver) -> None:
        for command in COMMANDS:
            if command.name not in ("quit", ""):
                await at.keys(*command.keys[:1], "escape", "escape")
        assert at.app.is_running

    (tmp_path / "empty").mkdir()
    drive(tmp_path / "empty", script)


@pytest.mark.every_disk
def test_every_key_on_every_level() -> None:
    keys = [key for command in COMMANDS for key in command.keys if command.name not in ("quit", "out")]

    async def script(at: Driver) -> None:
        for _ in range(2):
            for key in keys:
                await at.keys(key, "escape")
                while len(at.app.screen_stack) > 1:
                    await at.keys("escape")
            await at.keys("end", "enter", "enter", "enter")

    drive(FIXTURES / "clean-1", script)
