"""Options that every command has, with the same help, unless an exception is declared here with its reason."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import click
import pytest

from kdump.cli import COMMANDS
from kdump.spark.query import plain, text
from kdump.spark.scan_command import ScanReport
from tests.command import objects, run
from tests.conftest import FIXTURES
from tests.test_output import command_of

SHARED = ("--topic", "--tz", "--format", "--json", "--columns", "--color", "--no-pager")
KAFKAS = "it has the options of kafka-dump-log, so that scripts can switch to it"
SCRIPT = "it prints a script"
NO_TIMES = "it shows no times, except in the messages of findings, which are the same for everyone"
EXCEPTIONS: dict[str, dict[str, str]] = {
    "browse": {
        "--topic": "it reads only what is displayed, and the tree is searched with /",
        **dict.fromkeys(
            ("--format", "--json", "--columns", "--no-pager"), "it draws on a terminal, and writes nothing"
        ),
        "--color": "its colors are those of the terminal; NO_COLOR applies",
    },
    "find": {"--topic": "its expression has a condition for it: topic ~ '^orders'"},
    "connect": {"--topic": "it reads the topics of Connect, and selects connectors"},
    "doctor": {"--topic": "it answers for disks; its suggestions name the commands that take a topic"},
    "explain": {"--topic": "it reads a log, and of a disk only what the log is about"},
    "schema": {"--topic": "it reads no disk", "--tz": "it shows no times"},
    "verify": {"--tz": NO_TIMES},
    "restart-plan": {"--tz": NO_TIMES},
    "salvage": {"--tz": NO_TIMES},
    "restore": {"--tz": NO_TIMES},
    "rescue": {"--topic": "the metadata of a cluster has all topics"},
    "reindex": {"--tz": NO_TIMES},
    "carve": {"--topic": "batches do not contain their topic"},
    "report": {
        **dict.fromkeys(
            ("--format", "--json", "--columns", "--color", "--no-pager"), "it writes a page, and prints three lines"
        )
    },
    "bundle": {
        "--topic": "a bundle has every partition: one that is not in it counts as missing",
        "--tz": "it shows no times",
    },
    "export": dict.fromkeys(
        ("--tz", "--format", "--json", "--color", "--no-pager"), "it writes a file, and prints one line"
    ),
    "scan": {
        "--topic": "its tables have all topics, and a partition that a later scan leaves out counts as deleted; use a "
        "condition in the query",
        "--columns": "it prints a summary of several tables",
    },
    "query": {"--topic": "the query has a condition for it", "--columns": "the query selects the columns"},
    "dump-log": dict.fromkeys(SHARED, KAFKAS),
    "completion": dict.fromkeys(SHARED, SCRIPT),
}


def options_of(name: str) -> dict[str, click.Option]:
    return {text: param for param in command_of(name).params if isinstance(param, click.Option) for text in param.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_the_shared_options(name: str) -> None:
    missing = {option for option in SHARED if option not in options_of(name)}
    assert missing == set(EXCEPTIONS.get(name, ()))


def test_no_two_options_of_a_command_fill_the_same_field() -> None:
    """Else, each would set both."""
    names = {name: [param.name for param in command_of(name).params] for name in COMMANDS}
    assert {name: fields for name, fields in names.items() if len(fields) != len(set(fields))} == {}


def test_the_exceptions_are_of_commands() -> None:
    assert set(EXCEPTIONS) <= set(COMMANDS)


@pytest.mark.parametrize("option", SHARED)
def test_an_option_means_the_same_everywhere(option: str) -> None:
    """A --topic is repeatable and takes a glob or a regular expression; --tz has the same default …"""
    found = [options_of(name)[option] for name in COMMANDS if option in options_of(name)]
    assert len({(type(each.type), each.metavar, each.multiple, str(each.default)) for each in found}) == 1
    if option == "--topic":
        assert all(str(each.help).endswith("(a glob or a /regex/); repeatable.") for each in found)
    if option in ("--tz", "--color", "--no-pager"):
        assert len({each.help for each in found}) == 1


def test_inspect_reads_only_partitions_of_a_topic() -> None:
    rows = objects("inspect", FIXTURES / "clean-1", "--topic", "/^(users|sess)/")
    assert {Path(row["file"]).parent.name for row in rows} == {"users-0", "sessions-0"}
    none = run("inspect", FIXTURES / "clean-1", "--topic", "paymnts")
    assert (none.exit_code, none.stdout) == (2, "")
    assert "--topic paymnts: no match; there are payments" in none.stderr


EAST = timezone(timedelta(hours=2))


def test_times_of_a_scan_and_a_query() -> None:
    """Both only show them in the time zone; JSON and CSV have UTC, as everywhere."""
    text_of = ScanReport(mock.Mock(), EAST)._time
    row = SimpleNamespace(timestamp=0, last=3_600_000)
    assert text_of("timestamp")(row) == "1970-01-01T02:00:00.000+02:00"
    assert text_of("last")(row) == "1970-01-01T03:00:00.000+02:00"
    moment = datetime(2026, 11, 21, 8, tzinfo=timezone.utc)
    assert text([moment], EAST) == '["2026-11-21T10:00:00.000+02:00"]'
    assert text(moment, timezone.utc) == plain(moment) == "2026-11-21T08:00:00.000Z"
