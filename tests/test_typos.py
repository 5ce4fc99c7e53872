"""What is asked for and does not exist is one line and exit status 2, in every command."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from kdump.cli import COMMANDS, cli
from tests import craft
from tests.command import run
from tests.conftest import FIXTURES, sample

DISK = FIXTURES / "disk-1"
MORE = {"salvage": ("--out", "OUT"), "report": ("--out", "OUT"), "scan": ("--out", "OUT"), "query": ("select 1",)}
"""What a command needs besides paths."""
AS_KAFKA = "dump-log"
"""Does as Kafka's tool does: it prints that it ignores a file of an unknown name, and ends with 0."""
NO_PATH = ("schema", "completion", "browse", AS_KAFKA)
"""Without a path; or, to browse, without a terminal."""
ASSUMES = "Kafka's defaults are assumed"
"""A note of retention, wherever it finds no metadata."""
SPARK = ("scan", "query")
"""Start Spark, which takes seconds: see tests/spark."""
ANYTHING = ("carve",)
"""Searches files of any kind; where it finds no batch, it ends with 1."""


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def of_topics() -> list[str]:
    """The commands that have --topic."""
    return [name for name, command in commands().items() if any("--topic" in param.opts for param in command.params)]


def of_paths() -> list[str]:
    """The commands that read paths, whatever the parameter is called."""
    return [
        name
        for name, command in commands().items()
        if name not in (*NO_PATH, *SPARK) and any(isinstance(param, click.Argument) for param in command.params)
    ]


def test_commands_are_found_by_what_they_take() -> None:
    assert {"verify", "restart-plan", "ls"} <= {*of_topics()}
    assert {"verify", "inspect", *of_topics()} <= {*of_paths()}


def refused(command: str, *arguments: str | Path, out: Path) -> str:
    """The one line for a run that ends with 2. Nothing was written."""
    more = [text.replace("OUT", str(out)) for text in MORE.get(command, ())]
    result = run(command, *arguments, *more)
    lines = [line for line in result.stderr.splitlines() if ASSUMES not in line]
    assert (result.exit_code, len(lines)) == (2, 1), result.output
    assert "SOUND" not in result.stdout
    assert not out.exists() or not [*out.iterdir()]
    return lines[0]


@pytest.mark.parametrize("command", of_topics())
def test_a_topic_that_is_not_there(command: str, tmp_path: Path) -> None:
    paths = [DISK, DISK] if command == "diff" else [DISK]
    line = refused(command, *paths, "--topic", "paymnts", out=tmp_path / "out")
    assert line.startswith("kdump: --topic paymnts: no match")
    line = refused(command, *paths, "--topic", "/^pay$/", out=tmp_path / "out")
    assert "--topic /^pay$/: no match" in line


@pytest.mark.parametrize("command", of_topics())
def test_one_of_several_topics_is_not_there(command: str, tmp_path: Path) -> None:
    """The others are shown; the status still tells, unless it tells of more."""
    paths = [DISK, DISK] if command == "diff" else [DISK]
    if command == "groups":
        paths = [FIXTURES / "state-1"]
    more = [text.replace("OUT", str(tmp_path / "out")) for text in MORE.get(command, ())]
    result = run(command, *paths, "--topic", "paymnts", "--topic", "user*", *more)
    assert result.exit_code != 0
    assert "--topic paymnts: no match" in result.stderr
    assert result.stderr.count("no match") == 1


@pytest.mark.sampled
@pytest.mark.parametrize("command", sample(of_topics(), 3, "globs"))
def test_globs_and_regular_expressions(command: str, tmp_path: Path) -> None:
    """The same everywhere: a glob matches whole names, a regular expression any part."""
    paths = [DISK, DISK] if command == "diff" else [DISK]
    for number, pattern in enumerate(("payments", "pay*", "[op]ay*s", "/^pay/", "/ment/")):
        more = [text.replace("OUT", str(tmp_path / f"out-{number}")) for text in MORE.get(command, ())]
        assert "no match" not in run(command, *paths, "--topic", pattern, *more).stderr, pattern
    for pattern in ("ayments", "payment", "PAYMENTS"):
        refused(command, *paths, "--topic", pattern, out=tmp_path / "out")
    more = [text.replace("OUT", str(tmp_path / "out")) for text in MORE.get(command, ())]
    assert run(command, *paths, "--topic", "/(/", *more).exit_code == 2


@pytest.mark.parametrize("command", of_paths())
@pytest.mark.parametrize("what", ["missing", "empty", "text", "zeros", "nothing", "a directory of text"])
def test_a_path_without_kafkas_files(command: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "path"
    if what in ("empty", "a directory of text"):
        path.mkdir()
    if what != "empty" and what != "missing":
        content = {"zeros": bytes(5000), "nothing": b""}.get(what, b"of no interest\n" * 400)
        (path / "notes.txt" if what.startswith("a dir") else path).write_bytes(content)
    if command in ANYTHING and what not in ("missing", "empty"):
        assert run(command, path).exit_code == 1
        return
    line = refused(command, *([path, path] if command == "diff" else [path]), out=tmp_path / "out")
    assert str(path) in line


def test_a_filter_that_nothing_matches() -> None:
    """As grep has it, unless the offsets do not exist."""
    payments = DISK / "payments-0"
    for filters in (
        ["--key", "nobody"],
        ["--time", "..1999-01-01"],
        ["--producer-id", "999"],
        ["--position", "9999999.."],
    ):
        for form in ([], ["--records"], ["--json"], ["--hex"], ["--records", "--json"], ["--records", "--limit", "1"]):
            result = run("inspect", payments, *filters, *form)
            assert (result.exit_code, result.stdout, result.stderr.splitlines()[-1]) == (
                1,
                "",
                "kdump: nothing matches",
            )
    assert run("inspect", payments, "--key", "nobody", "--extract", "value").exit_code == 1


@pytest.mark.parametrize("form", [[], ["--records"], ["--json"], ["--hex"], ["--records", "--json"], ["--last", "2"]])
def test_an_offset_that_does_not_exist(form: list[str], tmp_path: Path) -> None:
    """Above the log end offset, or below the log start offset; but in a gap nothing matches."""
    log = tmp_path / "t-0" / f"{10:020}.log"
    log.parent.mkdir()
    log.write_bytes(craft.one(b"a", 10) + craft.one(b"b", 11) + craft.one(b"c", 20))
    for path in (log.parent, log):
        for asked, line in (
            ("21", "offset 21 does not exist: the log end offset is 21"),
            ("500..", "offset 500 does not exist: the log end offset is 21"),
            ("3..9", "offset 9 does not exist: the first offset here is 10"),
        ):
            result = run("inspect", path, "--offset", asked, *form)
            assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"kdump: {line}\n")
        assert run("inspect", path, "--offset", "12..15", *form).exit_code == 1
        assert run("inspect", path, "--offset", "20..", *form).exit_code == 0
    (log.parent / f"{21:020}.log").write_bytes(b"")
    assert run("inspect", log.parent, "--offset", "21", *form).exit_code == 2


def test_an_offset_that_does_not_exist_as_of() -> None:
    assert run("cluster", DISK, "--as-of", "999999").exit_code == 2
    assert run("groups", DISK / "__consumer_offsets-0", "--as-of", "999999").exit_code == 2


def test_a_group_that_is_not_there() -> None:
    assert "--group nobody: no match" in refused("groups", DISK, "--group", "nobody", out=Path("unused"))
