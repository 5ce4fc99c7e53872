"""If something requested does not exist, every command prints one line and ends with exit status 2."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import click
import pytest

from kdump.cli import COMMANDS, cli
from kdump.command_line.name_options import MAX_NAMES, SelectedNames, nearest
from tests import craft
from tests.command import run, unmatched
from tests.conftest import FIXTURES, few, numbers_in, sample

DISK = FIXTURES / "disk-1"
MORE = {
    **dict.fromkeys(("salvage", "report", "bundle", "scan", "export"), ("--out", "OUT")),
    "query": ("select 1",),
    "rescue": ("--dry-run",),
    "restore": ("--to", "localhost:1"),
}
"""What a command needs in addition to paths."""
AS_KAFKA = "dump-log"
"""Works like Kafka's tool: it prints that it ignores a file with an unknown name, and ends with 0."""
NO_PATH = ("schema", "completion", "browse", AS_KAFKA)
"""Commands that need no path or, for browse, a terminal."""
ASSUMES = "Kafka's defaults are assumed"
"""A note of retention, printed whenever it finds no metadata."""
NOT_HERE = " are not known"
"""In the note that some of a topic's partitions are not on these disks, which comes before what is not there."""
SPARK = ("scan", "query")
"""Commands that start Spark, which takes seconds: see tests/spark."""
LOGS = "explain"
"""Reads logs, of which any text may be one: see tests/incident/explain/test_command.py."""
ANYTHING = ("carve",)
"""Searches files of any kind; if it finds no batch, it ends with 1."""


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def of_topics() -> list[str]:
    """Return the commands that have --topic."""
    return [name for name, command in commands().items() if any("--topic" in param.opts for param in command.params)]


def of_paths() -> list[str]:
    """Return the commands that read paths, whatever the name of the parameter."""
    return [
        name
        for name, command in commands().items()
        if name not in (*NO_PATH, *SPARK, LOGS) and any(isinstance(param, click.Argument) for param in command.params)
    ]


def test_commands_are_found_by_what_they_take() -> None:
    assert {"verify", "restart-plan", "ls"} <= {*of_topics()}
    assert {"verify", "inspect", *of_topics()} <= {*of_paths()}


def refused(command: str, *arguments: str | Path, out: Path) -> str:
    """Return the single line of a run that ends with 2 and writes nothing."""
    more = [text.replace("OUT", str(out)) for text in MORE.get(command, ())]
    if command == "find":
        arguments = ("isControl", *arguments)
    result = run(command, *arguments, *more)
    lines = [line for line in result.stderr.splitlines() if ASSUMES not in line and NOT_HERE not in line]
    assert (result.exit_code, len(lines)) == (2, 1), result.output
    assert not result.stdout
    assert not out.exists() or not [*out.iterdir()]
    return lines[0]


@pytest.mark.parametrize("command", of_topics())
def test_a_topic_that_is_not_there(command: str, tmp_path: Path) -> None:
    paths = [DISK, DISK] if command == "diff" else [DISK]
    line = refused(command, *paths, "--topic", "paymnts", out=tmp_path / "out")
    assert unmatched(line) == ["--topic paymnts"]
    line = refused(command, *paths, "--topic", "/^pay$/", out=tmp_path / "out")
    assert unmatched(line) == ["--topic /^pay$/"]


@pytest.mark.parametrize("command", of_topics())
def test_one_of_several_topics_is_not_there(command: str, tmp_path: Path) -> None:
    """The others are shown, and the exit status is not 0."""
    paths = [DISK, DISK] if command == "diff" else [DISK]
    if command == "groups":
        paths = [FIXTURES / "state-1"]
    more = [text.replace("OUT", str(tmp_path / "out")) for text in MORE.get(command, ())]
    result = run(command, *paths, "--topic", "paymnts", "--topic", "user*", *more)
    assert result.exit_code != 0
    assert unmatched(result.stderr) == ["--topic paymnts"]


@pytest.mark.sampled
@pytest.mark.parametrize("command", sample(of_topics(), 7, "globs"))
def test_globs_and_regular_expressions(command: str, tmp_path: Path) -> None:
    """All commands do the same: a glob matches complete names, a regular expression any part of a name."""
    paths = [DISK, DISK] if command == "diff" else [DISK]
    patterns = ("payments", "pay*", "[op]ay*s", "/^pay/", "/ment/")
    for number, pattern in enumerate(patterns[::3] if command == "report" else patterns):
        more = [text.replace("OUT", str(tmp_path / f"out-{number}")) for text in MORE.get(command, ())]
        assert unmatched(run(command, *paths, "--topic", pattern, *more).stderr) == [], pattern
    for pattern in ("ayments", "payment", "PAYMENTS"):
        refused(command, *paths, "--topic", pattern, out=tmp_path / "out")
    more = [text.replace("OUT", str(tmp_path / "out")) for text in MORE.get(command, ())]
    assert run(command, *paths, "--topic", "/(/", *more).exit_code == 2


NO_LOGS = ("missing", "empty", "text", "zeros", "nothing", "a directory of text", "a directory above one")


@pytest.mark.parametrize("command", of_paths())
def test_a_path_without_kafkas_files(command: str, tmp_path: Path) -> None:
    """A directory of any name: that of a partition, as disk-1, makes it none."""
    for what, name in product(NO_LOGS, ("path", "disk-1")):
        path = tmp_path / what / name
        path.parent.mkdir(exist_ok=True)
        without_kafkas_files(path, what)
        if command in ANYTHING and what not in ("missing", "empty"):
            assert run(command, path).exit_code == 1, path
            continue
        line = refused(command, *([path, path] if command == "diff" else [path]), out=tmp_path / "out")
        assert str(path) in line


def without_kafkas_files(path: Path, what: str) -> None:
    if what in ("empty", "a directory of text", "a directory above one"):
        path.mkdir()
    if what == "a directory above one":
        path = path / "log4j-2"
        path.mkdir()
    if what != "empty" and what != "missing":
        content = {"zeros": bytes(5000), "nothing": b""}.get(what, b"of no interest\n" * 400)
        (path / "notes.txt" if what.startswith("a dir") else path).write_bytes(content)


def test_a_filter_that_nothing_matches() -> None:
    """The exit status is that of grep, unless the offsets do not exist."""
    payments = DISK / "payments-0"
    for filters in (
        ["--key", "nobody"],
        ["--time", "..1999-01-01"],
        ["--producer-id", "999"],
        ["--position", "9999999.."],
    ):
        for form in ([], ["--records"], ["--json"], ["--hex"], ["--records", "--json"], ["--records", "--limit", "1"]):
            result = run("inspect", payments, *filters, *form)
            said = "kdump: nothing matches" + (" in 1 file, 76 batches" if filters[0] == "--key" else "")
            assert (result.exit_code, result.stdout, result.stderr.splitlines()[-1]) == (1, "", said)
    assert run("inspect", payments, "--key", "nobody", "--extract", "value").exit_code == 1


@pytest.mark.parametrize("form", [[], ["--records"], ["--json"], ["--hex"], ["--records", "--json"], ["--last", "2"]])
def test_an_offset_that_does_not_exist(form: list[str], tmp_path: Path) -> None:
    """It is above the log end offset, or below the log start offset; inside a gap, there is only no match."""
    log = tmp_path / "t-0" / f"{10:020}.log"
    log.parent.mkdir()
    log.write_bytes(craft.one(b"a", 10) + craft.one(b"b", 11) + craft.one(b"c", 20))
    for path in (log.parent, log):
        for asked, stated in (
            ("21", [21, 21]),  # the offset that does not exist, and the one that bounds those that do
            ("500..", [500, 21]),
            ("3..9", [9, 10]),
        ):
            result = run("inspect", path, "--offset", asked, *form)
            assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
            assert numbers_in(result.stderr) == stated
        assert run("inspect", path, "--offset", "12..15", *form).exit_code == 1
        assert run("inspect", path, "--offset", "20..", *form).exit_code == 0
    (log.parent / f"{21:020}.log").write_bytes(b"")
    assert run("inspect", log.parent, "--offset", "21", *form).exit_code == 2


def test_an_offset_that_does_not_exist_as_of() -> None:
    assert run("cluster", DISK, "--as-of", "999999").exit_code == 2
    assert run("groups", DISK / "__consumer_offsets-0", "--as-of", "999999").exit_code == 2


IDS = {"--producer-id": ("9", "-1"), "--transactional-id": ("tx-a", "tx-")}
"""An option that selects by name, with a value that exists in payments-0 of DISK, and one that does not."""


@pytest.mark.parametrize("option", IDS)
@pytest.mark.parametrize("command", few(["transactions", "producers"], 1))
def test_a_producer_that_is_not_there(command: str, option: str) -> None:
    """One line lists those that exist, whatever the output format, also if another given producer exists."""
    there, missing = IDS[option]
    column = "producerId"
    for path in (DISK, DISK / "payments-0"):
        for form in ([], ["--json"], ["--columns", column]) if path != DISK else ([],):
            result = run(command, path, option, missing, *form)
            (line,) = result.stderr.splitlines()
            assert (result.exit_code, unmatched(line)) == (2, [f"{option} {missing}"])
            assert there in line.partition("there are ")[2].replace(",", "").split()
            assert "--json" in form or not result.stdout
            both = run(command, path, option, missing, option, there, *form)
            assert (both.exit_code, both.stderr) == (2, result.stderr)
            assert run(command, path, option, there, *form).exit_code == 0
    assert run("producers", DISK, option, missing, "--history").exit_code == 2
    assert run("transactions", DISK, option, missing, "--coordinator").exit_code == 2


def test_a_partition_that_is_not_there() -> None:
    for command in ("verify", "stats", "inspect"):
        result = run(command, DISK, "--partition", "7")
        assert (result.exit_code, result.stdout) == (2, ""), command
        assert "--partition 7: no match; there is 0" in result.stderr
        assert run(command, DISK, "--partition", "7", "--partition", "0", "--json").stdout


def test_every_option_that_names_something_is_tried() -> None:
    """A new option of this kind must report what it does not find, so each has a test here."""
    tried = {"--topic", "--group", "--partition", *IDS}
    named = {"--topic", "--group", "--partition", *IDS}
    found = {
        opt
        for name, command in commands().items()
        if name not in ("inspect", "export", AS_KAFKA)  # where they select records, like grep
        for param in command.params
        for opt in param.opts
    }
    assert found & named == tried


def test_the_nearest_names_come_first() -> None:
    assert nearest("paymnts", ["__consumer_offsets", "a", "b", "c", "d", "e", "payments"])[0] == "payments"
    assert "__consumer_offsets" not in nearest("zzz", ["__consumer_offsets", "a", "b", "c", "d", "e"])
    assert nearest(4711, [1, 2, 3, 4, 5, 4710, 4800]) == ["3", "4", "5", "4710", "4800"]
    many = SelectedNames([7], "--producer-id")
    for number in range(100, 100 + 2 * MAX_NAMES):
        many.add(number)
    assert len(many._there) == MAX_NAMES
    many.add(7)
    assert not [*many.unmatched()]


@pytest.mark.parametrize("command", of_topics())
def test_a_topic_of_files_that_name_none(command: str, tmp_path: Path) -> None:
    """The run with --topic does not succeed, because the file's topic is unknown. An error of the path comes first."""
    (tmp_path / "renamed").write_bytes((DISK / "payments-0" / f"{0:020}.log").read_bytes())
    more = [text.replace("OUT", str(tmp_path / "out")) for text in MORE.get(command, ())]
    paths = [tmp_path / "renamed"] * (2 if command == "diff" else 1)
    result = run(command, *paths, "--topic", "payments", *more)
    lines = [line for line in result.stderr.splitlines() if ASSUMES not in line and NOT_HERE not in line]
    assert (result.exit_code, len(lines)) == (2, 1), result.stderr


def test_a_topic_before_there_was_any() -> None:
    result = run("cluster", DISK, "--as-of", "0", "--topic", "payments")
    assert (result.exit_code, unmatched(result.stderr)) == (2, ["--topic payments"])


@pytest.mark.parametrize("command", ["transactions", "producers", "diff", "stats", "retention", "reindex", "inspect"])
def test_a_partition_without_a_segment(command: str, tmp_path: Path) -> None:
    """There are bytes, in a file whose name is not that of a segment: the partition is not called empty, and two are
    not called equal."""
    path = tmp_path / "t-0"
    path.mkdir()
    (path / "99999999999999999999.log").write_bytes((DISK / "payments-0" / f"{0:020}.log").read_bytes())
    assert "no " in refused(command, *([path] * (2 if command == "diff" else 1)), out=tmp_path / "out")


def test_a_log_of_records_that_are_no_metadata(tmp_path: Path) -> None:
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / f"{0:020}.log").write_bytes((DISK / "payments-0" / f"{0:020}.log").read_bytes())
    assert "no cluster metadata" in refused("cluster", tmp_path / "copied", out=Path("unused"))


@pytest.mark.parametrize("command", ["ls", "stats"])
def test_a_kind_of_topics_of_which_there_is_none(command: str) -> None:
    """The option is not a name that may be wrong, but a question, and the answer is that there are none."""
    result = run(command, DISK / "payments-0", "--internal")
    assert (result.exit_code, result.stderr) == (0, "kdump: no partition of Kafka's internal topics found\n")


def test_a_group_that_is_not_there() -> None:
    line = refused("groups", DISK, "--group", "nobody", out=Path("unused"))
    assert unmatched(line) == ["--group nobody"]


@pytest.mark.parametrize("form", [[], ["--records", "--json"], ["--hex"], ["--json"]])
def test_a_path_that_is_not_there_after_the_limit(form: list[str], tmp_path: Path) -> None:
    result = run("inspect", DISK / "payments-0", tmp_path / "nowhere", "--limit", "1", *form)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert str(tmp_path / "nowhere") in result.stderr
    assert result.stdout


def test_properties_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("log.retention.hour=2\n")
    result = run("retention", DISK, "--properties", path)
    told = f"kdump: --properties {path}: sets none of the configs used here, such as log.retention.ms"
    assert (result.exit_code, result.stderr.splitlines()[0]) == (1, told)
    path.write_text("log.retention.hours=2\n")
    assert "--properties" not in run("retention", DISK, "--properties", path).stderr


def test_an_empty_list_of_parts() -> None:
    for value in ("", ","):
        assert run("cluster", DISK, "--show", value).exit_code == 2
    result = run("cluster", DISK, "--show", "brokers", "--topic", "payments")
    assert (result.exit_code, result.stdout) == (2, "")
    line = refused("cluster", DISK, "--show", "summary,topics", "--topic", "nope", out=Path("unused"))
    assert unmatched(line) == ["--topic nope"]


@pytest.mark.parametrize("name", ["-x-0", "--payments-0", "-0"])
def test_a_path_that_begins_with_a_dash(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    done = run("ls", name)
    assert done.exit_code == 2
    assert f"write ./{name}, and ./* for all" in done.stderr
    assert run("ls", f"./{name}").exit_code in (0, 2)
    assert "write ./" not in run("ls", "--no-such-option").stderr
