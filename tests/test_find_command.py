"""The way to the right command: help by question, mistyped names, `kdump help`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kdump.cli import COMMANDS, cli, sections
from kdump.command_line.find_command import SECTIONS
from kdump.command_line.guide import QUESTIONS, by_section
from kdump.command_line.help_page import OPTIONS, common_options
from kdump.version import __version__
from tests.conftest import FIXTURES, ROOT, few
from tests.shell import run as shell
from tools import guide


def kdump(*words: str | Path) -> Result:
    result = CliRunner().invoke(cli, [*map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def test_help_lists_every_command_under_a_question() -> None:
    found = list(sections())
    assert [title for title, _ in found] == list(SECTIONS.values())
    assert [row for _, rows in found for row in rows] == list(COMMANDS.items())
    text = kdump("--help").stdout
    places = [text.index(f"\n{title}\n") for title in SECTIONS.values()]
    assert places == sorted(places)
    assert all(f"\n  {name} " in text for name in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    {
        "veriffy": ["verify"],
        "Verify": ["verify"],
        "trasactions": ["transactions"],
        "restart_plan": ["restart-plan"],
        "dump": ["dump-log"],
        "kafka-dump-log": ["dump-log"],
        "consumer-groups": ["groups"],
        "index": ["reindex"],
        "lag": ["groups"],
        "topics": ["cluster"],
        "SQL": ["query"],
    }.items(),
)
def test_a_mistyped_command(typed: str, meant: list[str]) -> None:
    result = kdump(typed, FIXTURES)
    assert (result.exit_code, result.stdout) == (2, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"Error: no such command: {typed}; did you mean kdump {meant[0]}")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_with_one_letter_too_many(name: str) -> None:
    for at in (1, len(name)):
        typed = name[:at] + "x" + name[at:]
        assert f"kdump {name}" in kdump(typed).stderr


def test_a_word_that_resembles_nothing() -> None:
    assert kdump("zzz").stderr.endswith("Error: no such command: zzz; kdump --help lists the commands\n")
    assert "\x1b" not in kdump("\x1b[31m").stderr


def test_a_path_in_place_of_a_command(tmp_path: Path) -> None:
    """A directory is examined, a file inspected."""
    disk = FIXTURES / "clean-1"
    assert kdump(disk, "--quiet").exit_code == kdump("doctor", disk, "--quiet").exit_code == 1
    segment = disk / "payments-0" / f"{0:020}.log"
    assert kdump(segment).stdout == kdump("inspect", segment).stdout != ""
    for path, why in ((tmp_path / "gone", "no such file or directory"), (tmp_path / "fifo", "neither a file nor")):
        if path.name == "fifo":
            os.mkfifo(path)
        result = kdump(path)
        assert (result.exit_code, why in result.stderr) == (2, True)


@pytest.mark.parametrize("words", [[], ["help"], ["--json"]])
def test_help_of_all(words: list[str]) -> None:
    assert kdump("help", *words).stdout == kdump("--help").stdout


def test_help_by_topic() -> None:
    """Two pages stand beside the help of commands; the tables of README and docs/index.md have the same words."""
    options, questions = kdump("help", "options").stdout, kdump("help", "questions").stdout
    assert all(f" {param.long}" in options for param in common_options().values())
    asked = [line.strip() for line in questions.splitlines() if line.startswith("    ")]
    assert sorted(asked) == sorted(each.command for each in QUESTIONS)
    assert [line for line in questions.splitlines() if line[:1].strip()] == [title for title, _ in by_section()]
    typed = {words[1] for words in map(str.split, asked) if words[0] == "kdump"}
    assert typed <= {*COMMANDS}
    assert len(typed) > 25, "most commands answer what people ask in other words than their help has"
    assert {name: (ROOT / name).read_text() for name in guide.tables()} == guide.tables()
    for name in COMMANDS:
        words = ("-", "kdump", "kubectl", "cat", "ssh", "eval")
        lines = [line for line in kdump(name, "--help").stdout.splitlines() if line]
        assert lines[1].strip().startswith(words), "a page begins with the commonest uses"
        own = kdump(name, "--help").stdout.partition(f"{OPTIONS} (")[0]
        assert len(re.findall(r"^  --(?:tz|color|no-pager|max-rate|idle|max-batch-size)\b", own, re.M)) == 0


ASKED = {
    "downgrade": "restart-plan",
    "how long recovery takes": "restart-plan",
    "in which order to start": "restart-plan",
    "remote storage": "verify",
    "Count records": "stats",
    "Find records": "find",
    "for DuckDB, Polars or pandas": "export",
}
"""What people asked, and did not find: the words for it in `kdump --help`, and the command."""


def test_help_names_what_people_ask() -> None:
    lines = {name: " ".join(about.split()) for _, rows in sections() for name, about in rows}
    text = " ".join(kdump("--help").stdout.split())
    for words, name in ASKED.items():
        assert words in lines[name], words
    assert "Kubernetes" in text
    questions = kdump("help", "questions").stdout
    assert all(words in questions for words in ("Kubernetes", "Tiered storage", "mirror", "downgrade", "per hour"))
    readme, index = ((ROOT / name).read_text() for name in ("README.md", "docs/index.md"))
    assert all(about.replace("\n", " ") in readme for about in COMMANDS.values())
    assert all(each.question in index for each in QUESTIONS)


def test_the_options_of_inspect_are_grouped() -> None:
    titles = re.findall(r"^(\w[\w ]*):$", kdump("inspect", "--help").stdout, re.M)
    assert titles[:4] == ["Show", "Select", "Decode", "Read"]


def test_environment_variables_set_the_shared_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed takes precedence, also another option for the same thing."""
    disk = FIXTURES / "clean-2"
    plain = kdump("ls", disk).stdout
    for name, value in (("TZ", "+02:00"), ("MAX_RATE", "1G"), ("IDLE", ""), ("FULL", "1"), ("MAX_BATCH_SIZE", "16M")):
        monkeypatch.setenv(f"KDUMP_{name}", value)
    assert ("09:59:35.925+02:00" in kdump("ls", disk).stdout) == ("07:59:35.925Z" in plain) is True
    assert kdump("ls", disk, "--tz", "UTC").stdout == plain
    assert kdump("inspect", disk, "--tz", "UTC").stdout == plain, "a variable chooses no contents of files"
    monkeypatch.setenv("KDUMP_FORMAT", "json")
    assert kdump("ls", disk).stdout == kdump("ls", disk, "--json").stdout
    assert kdump("ls", disk, "--format", "table", "--tz", "UTC").stdout == plain
    assert kdump("verify", disk, "--quiet").stdout == ""
    assert kdump("ls", disk, "--columns", "topic").stdout.splitlines()[-1] == "ledger"
    hex_dump = kdump("inspect", disk / "ledger-0", "--hex")
    assert (hex_dump.exit_code, "batch at 0" in hex_dump.stdout.lower()) == (0, True), hex_dump.stdout[:200]
    monkeypatch.setenv("KDUMP_FORMAT", "csv")
    assert kdump("ls", disk, "--json").stdout.startswith("{")
    monkeypatch.setenv("KDUMP_COLUMNS", "topic,size")
    assert kdump("ls", disk).stdout.splitlines()[0] == "topic,size"
    assert kdump("ls", disk, "--columns", "topic").stdout.splitlines()[0] == "topic"
    monkeypatch.setenv("KDUMP_FORMAT", "json")
    assert kdump("ls", disk).stdout == kdump("ls", disk, "--json").stdout
    monkeypatch.delenv("KDUMP_FORMAT")
    assert kdump("ls", disk).stdout.splitlines()[-1].split()[0] == "ledger"
    assert kdump("verify", disk).stdout.startswith("OK"), "a report has no columns"
    monkeypatch.delenv("KDUMP_COLUMNS")
    monkeypatch.setenv("KDUMP_QUIET", "1")
    assert (kdump("verify", disk).stdout, kdump("verify", disk, "--json").stdout[:1]) == ("", "{")
    monkeypatch.delenv("KDUMP_QUIET")
    monkeypatch.setenv("KDUMP_TZ", "nowhere")
    assert "KDUMP_TZ" in kdump("ls", disk).stderr


def test_help_of_a_command() -> None:
    for name in ("verify", "dump-log"):
        result = kdump("help", name)
        assert (result.exit_code, result.stdout) == (0, kdump(name, "--help").stdout)
    assert kdump("help", "verfy").exit_code == 2
    assert "did you mean kdump verify" in kdump("help", "verfy").stderr


def test_version() -> None:
    printed = {kdump(option).stdout for option in ("-v", "-V", "--version")}
    assert len(printed) == 1
    assert f"version {__version__}" in printed.pop()


OF_DISKS = (
    *("ls", "inspect", "stats", "verify", "restart-plan", "diff", "groups", "cluster", "transactions"),
    "producers",
)
OF_DISKS += ("find", "retention", "space", "salvage", "reindex", "carve", "bundle")
PLACES = {"/var/lib/kafka/clicks-0": "clean-1/users-0", "/var/lib/kafka": "clean-1", "/mnt/broker-1": "diverged-1"}
PLACES |= {"/mnt/broker-2": "diverged-2", "/mnt/broker-3": "clean-2"}
PLACES = {name: str(FIXTURES / disk) for name, disk in PLACES.items()}
"""The disks that stand for those of the examples."""
ELSEWHERE = re.compile(
    r"/(etc|data|mnt/controller|disk1|var/log)|-delete |\b0{20}|\.bundle --with|^ssh |broker-1\.tar\.zst$|payments/"
)
"""Paths of examples that no disk of the tests has."""


@pytest.mark.parametrize("command", few(OF_DISKS, 2))
def test_the_examples_of_help_run(command: str, tmp_path: Path) -> None:
    """In a directory of disks, one of which is /var/lib/kafka."""
    for path in (FIXTURES / "clean-1").iterdir():
        (tmp_path / path.name).symlink_to(path)
    for name, path in (("__consumer_offsets-7", "__consumer_offsets-0"), ("clicks-0", "users-0")):
        (tmp_path / name).symlink_to(FIXTURES / "clean-1" / path)
    for name in ("disk.img", "xaa", "xab"):
        (tmp_path / name).symlink_to(FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log")
    lines = [line.strip() for line in kdump(command, "--help").stdout.splitlines()]
    lines = [line for line in lines if line.startswith(("kdump ", "cat "))]
    lines = [line for line in lines if not ELSEWHERE.search(line)]
    assert len(lines) > 1
    for number, line in enumerate(lines):
        out = tmp_path / f"out-{number}"
        for typed, there in (PLACES | {"/tmp/saved": str(out)}).items():
            line = line.replace(typed, there)
        said = shell(line, tmp_path)
        assert said or "jq" in line, line
        assert not re.search("^Usage:|Traceback|^Error|: not found|no such file", said, re.M), (line, said)
