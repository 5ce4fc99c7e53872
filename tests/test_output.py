"""The options for output that all commands share: formats, colors, and the classes that the options fill."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import pytest

from kdump.cli import COMMANDS, cli
from kdump.command_line.typed_options import OPTIONS, ParsedParam, fill, option_types
from kdump.query import ADDS, CommandOptions
from kdump.questions.salvage.command import SalvageCommand, SalvageOptions
from kdump.render.sink import csv_cell
from kdump.render.stdout import ALWAYS, AUTO, NEVER, Output
from kdump.state.as_of import AsOf
from tests.command import refused, run
from tests.conftest import DISKS, FIXTURES, few
from tools.json_reference import CSV

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
CLEAN, CRASH = FIXTURES / "clean-1", FIXTURES / "crash-1"
LOG, INDEXED = CLEAN / "payments-0", FIXTURES / "indexed-1" / "payments-0"
DISK, NOW = FIXTURES / "disk-1", ("--now", "2026-11-21")
OFFSETS = min(CLEAN.glob("__consumer_offsets-*"))
EXPLAINED = Path(__file__).parents[1] / "docs" / "explain-server.log.gz"
ROWS: dict[str, tuple[list[Any], list[str]]] = {
    "schema": ([], ["struct"]),
    "schema of one": (["BatchHeader"], ["structField"]),
    "doctor": ([DISK, *NOW], ["doctorItem"]),
    "doctor --log": ([EXPLAINED, DISK, *NOW], ["doctorItem"]),
    "ls": ([CLEAN], ["partitionLog"]),
    "ls of a partition": ([LOG], ["logSegment"]),
    "ls --by topic": ([CLEAN], ["topicLogs"]),
    "inspect": ([LOG], ["batch"]),
    "inspect --records": ([LOG], ["record"]),
    "inspect --count": ([CLEAN, "--key", "a3"], ["recordCount"]),
    "inspect --records of offsets": ([OFFSETS], ["record"]),
    "inspect of an index": ([*INDEXED.glob("*.index")], ["indexEntry"]),
    "inspect of a snapshot": ([*INDEXED.glob("*.snapshot")], ["producerState"]),
    "transactions": ([DISK, *NOW], ["transaction"]),
    "transactions --coordinator": ([DISK, *NOW], ["transactionCoordinator"]),
    "transactions of a coordinator": ([DISK / "__transaction_state-0", *NOW], ["transactionCoordinator"]),
    "producers": ([DISK, *NOW], ["producer"]),
    "producers --history": ([CRASH, *NOW], ["producerEvent"]),
    "retention": ([CLEAN, *NOW], ["retention"]),
    "retention --list": ([LOG, *NOW], ["retentionSegment"]),
    "retention --holds": ([DISK, *NOW], ["retentionHold"]),
    "space": ([DISKS / "kafka-4.3" / "clean-1", *NOW], ["spaceStep"]),
    "groups": ([CLEAN], ["group"]),
    "groups --offsets": ([CLEAN], ["groupOffset", "groupShare"]),
    "groups --members": ([FIXTURES / "state-1"], ["groupMember"]),
    "groups --history": ([CLEAN], ["change"]),
    "registry": ([FIXTURES / "registry-1"], ["schemaVersion"]),
    "registry --usage": ([FIXTURES / "registry-1"], ["schemaUsage"]),
    "connect": ([FIXTURES / "connect-1"], ["connector"]),
    "connect --show tasks": ([FIXTURES / "connect-1"], ["connectorTask"]),
    "connect --show offsets": ([FIXTURES / "connect-1"], ["connectorOffset"]),
    "connect --show checkpoints": ([FIXTURES / "connect-2"], ["mirrorCheckpoint"]),
    "connect --history": ([FIXTURES / "connect-1"], ["change"]),
    "registry --history": ([FIXTURES / "registry-1"], ["change"]),
    "cluster --show topics": ([CLEAN], ["clusterTopic"]),
    "cluster --show partitions": ([CLEAN], ["clusterPartition"]),
    "cluster --show summary": ([CLEAN], ["cluster"]),
    "cluster --history": ([CLEAN], ["change"]),
    "explain": (["org.apache.kafka.common.errors.CorruptRecordException", "--disk", CLEAN], ["explanation"]),
    "explain of a log": ([EXPLAINED], ["explanation"]),
    "explain of a finding": (["crc-mismatch", "--disk", CLEAN], ["findingExplanation"]),
    "explain --list": ([], ["logMessage"]),
    "verify": ([CRASH], ["finding"]),
    "verify --list": ([], ["code"]),
    "stats": ([FIXTURES / "diverged-1"], ["stats"]),
    "stats --by hour": ([FIXTURES / "diverged-1"], ["periodCount"]),
    "stats --by key": ([LOG], ["keyCount"]),
    "stats --by producer": ([LOG], ["producerCount"]),
    "rescue": ([FIXTURES / "disk-1", "--dry-run"], ["rescueCopy"]),
    "salvage": ([LOG, "--out", "OUT"], ["salvage"]),
    "bundle": ([LOG.parent, "--out", "OUT"], ["bundle"]),
    "diff": ([FIXTURES / "diverged-1", FIXTURES / "diverged-2"], ["diff"]),
    "reindex": ([LOG], ["reindex"]),
    "restart-plan": ([FIXTURES / "clean-2"], ["restartPartition"]),
    "find": (["key ~ '3$'", LOG.parent, "--when"], ["match"]),
    "carve": ([LOG], ["batch"]),
    "carve --runs": ([LOG], ["run"]),
}
"""Of every command: what it is called with, and the types of the objects that are the rows of its CSV."""


def command_of(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def cell(value: Any) -> str:
    """What a reader of CSV makes of a value."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", few(ROWS, 6))
def test_csv_has_the_values_of_json(name: str, tmp_path: Path) -> None:
    arguments, types = ROWS[name]
    arguments = [tmp_path / "out" if each == "OUT" else each for each in arguments]
    command, *options = name.partition(" of ")[0].split()
    objects = [json.loads(line) for line in run(command, *options, *arguments, "--json").stdout.splitlines()]
    expected = [each for each in objects if each["type"] in types]
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    text = run(command, *options, *arguments, "--format", "csv").stdout
    found = list(csv.DictReader(io.StringIO(text)))
    columns = text.partition("\n")[0].split(",")
    assert expected
    assert {key for each in expected for key in each} - {"type"} <= set(columns)
    for row, each in zip(found, expected, strict=True):
        for key in columns:
            value = each.get(key)
            if isinstance(value, (list, dict, float, int)):
                assert json.loads(row[key]) == value
            else:
                assert row[key] == cell(value)


def test_the_documented_rows() -> None:
    tried = {name.partition(" of ")[0]: tuple(types) for name, (_, types) in ROWS.items() if " of " not in name}
    names = {"schema STRUCT": ("structField",), "ls --segments": ("logSegment",)}
    assert CSV.items() <= (tried | names).items()
    assert {name.split()[0] for name in tried} == {name.split()[0] for name in CSV}


def test_every_command_with_csv_is_tried() -> None:
    has = {
        name
        for name in COMMANDS
        for param in command_of(name).params
        if param.name == "form" and "csv" in param.type.choices  # type: ignore[attr-defined]
    }
    assert {name.split()[0] for name in ROWS} == has - {
        "query",
        "restore",
    }  # which are in tests/spark and tests/questions/restore


@pytest.mark.parametrize(
    "value", ["", " a", "a,b", 'say "a"', "a\nb", "a\rb", "ä", "plain", None, 3, 1.5, True, [], {}]
)
def test_a_cell(value: Any) -> None:
    (row,) = csv.reader(io.StringIO(f"x,{csv_cell(value)}\n", newline=""))
    assert row[1] == cell(value)
    assert csv_cell("") != csv_cell(None)


def test_csv_has_one_table() -> None:
    log, index = (next(INDEXED.glob(name)) for name in ("*.log", "*.index"))
    for arguments, said in (
        (["inspect", log, index], "indexEntry has other columns than batch"),
        (["ls", CLEAN, LOG], "logSegment has other columns than partitionLog"),
        (["groups", CLEAN, "--group", "*"], "--format csv needs a single table; add --offsets or --members"),
        (["cluster", CLEAN], "--format csv needs a single table; choose it with --show"),
    ):
        assert said in refused(arguments[0], *arguments[1:], "--format", "csv")


def test_csv_of_nothing() -> None:
    result = run("inspect", LOG, "--records", "--key", "no such key", "--format", "csv")
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 1)
    assert "nothing matches" in result.stderr


def test_csv_of_damage(tmp_path: Path) -> None:
    """Damage has no row; it is on stderr."""
    damaged = tmp_path / "00000000000000000000.log"
    data = bytearray((INDEXED / damaged.name).read_bytes())
    data[200] ^= 1
    damaged.write_bytes(data[:-5])
    types = [json.loads(line)["type"] for line in run("inspect", damaged, "--json").stdout.splitlines()]
    result = run("inspect", damaged, "--format", "csv")
    assert len(result.stdout.splitlines()) == 1 + types.count("batch")
    assert len(result.stderr.splitlines()) == len(types) - types.count("batch") > 1


def test_columns_of_csv() -> None:
    text = run("verify", "--list", "--format", "csv", "--columns", "severity, code").stdout
    assert text.startswith("severity,code\n")
    assert "unknown column 'nonsense'" in run("verify", CRASH, "--format", "csv", "--columns", "nonsense").stderr
    assert "applies only to --format csv" in run("verify", CRASH, "--columns", "code").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--json", "--format", "csv"], "choose one of --json and --format csv"),
        (["--json", "--quiet"], "choose one of --quiet and --json"),
        (["--format", "csv", "--quiet"], "choose one of --quiet and --format csv"),
        (["--json", "--columns", "code"], "--columns applies only to tables and CSV"),
    ],
)
def test_contradictions(options: list[str], said: str) -> None:
    result = run("verify", *options, CRASH)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [([], "segments"), (["--format", "jsonl"], "jsonl"), (["--write", "jsonl", "--format", "json"], "jsonl")],
)
def test_earlier_values_of_format(options: list[str], expected: str, tmp_path: Path) -> None:
    """--format used to be the format of what salvage writes."""
    parent = click.Context(cli, **cli.context_settings)
    with command_of("salvage").make_context("salvage", [str(tmp_path), "--out", "x", *options], parent) as context:
        assert SalvageCommand(fill(SalvageOptions, context.params), Output()).write == expected


@pytest.mark.parametrize("name", ["ls", "inspect", "inspect --records", "verify", "stats", "diff", "transactions"])
def test_colors_change_nothing_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    command, *options = name.split()
    plain, colored = (run(command, *options, *ROWS[name][0], "--color", color).stdout for color in (NEVER, ALWAYS))
    assert ESCAPE.search(colored)
    assert ESCAPE.sub("", colored) == plain


def test_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b[" in run("verify", CRASH, "--color", "always").stdout
    assert run("verify", CRASH, "--color", "never").stdout == run("verify", CRASH).stdout
    assert "\x1b[" not in run("verify", CRASH, "--color", "always", "--json").stdout
    for color, variables, is_colored in (
        (AUTO, {"FORCE_COLOR": "1"}, True),
        (AUTO, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (ALWAYS, {"NO_COLOR": "1"}, True),
        (NEVER, {"FORCE_COLOR": "1"}, False),
    ):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert Output(color).colour == is_colored


TYPED = [name for name in COMMANDS if hasattr(command_of(name).callback, OPTIONS)]


@pytest.mark.parametrize("name", TYPED)
def test_options_are_what_click_passes(name: str) -> None:
    """Every parameter of the command fills a field of that name, whose type is what click converts it to."""
    command = command_of(name)
    types = dict(fields_of(getattr(command.callback, OPTIONS)))
    params = {param.name: param for param in command.params if param.expose_value and not param.is_eager}
    assert set(params) <= set(types)
    for key, param in params.items():
        if not param.callback and not isinstance(param.type, ParsedParam):
            assert any(accepts(types[key], kind) for kind in (type_of(param), *asked(param))), key


def accepts(field: Any, given: Any) -> bool:
    """Return True if a field of that type may have what is given; a question may accept more, in Python."""
    kinds = parts(given) - {type(None)}
    return Any in kinds or kinds <= parts(field)


def parts(kind: Any) -> set[Any]:
    return set(get_args(kind)) if get_origin(kind) in (Union, UnionType) else {kind}


def asked(param: click.Parameter) -> Iterator[Any]:
    """Yield the types that the field of a question may have."""
    kind = type_of(param)
    if param.name in ("now", "as_of"):
        yield int | None
        yield int | AsOf | None
    elif param.name == "kafka_version":
        yield kind | str
    elif param.name == "show":
        yield Iterable[str]
    elif param.name == "out":
        yield kind | Callable[[bytes], object]
    elif param.multiple or param.nargs == -1:
        yield Iterable[kind.__args__[0]]
        yield Iterable[kind.__args__[0] | os.PathLike[str]]
        yield str | Iterable[str]


def fields_of(cls: type) -> list[tuple[str, Any]]:
    if not issubclass(cls, CommandOptions):
        names = {
            name: value for kind in reversed(cls.__mro__) for name, value in vars(sys.modules[kind.__module__]).items()
        }
        return [(each.name, eval(str(each.type), names)) for each in fields(cls) if ADDS in each.metadata]
    found = []
    for name, kind in option_types(cls).items():
        found += fields_of(kind) if isinstance(kind, type) and is_dataclass(kind) else [(name, kind)]
    return found


def type_of(param: click.Parameter) -> Any:
    """Return the type that the field of a parameter has."""
    if getattr(param, "is_flag", False):
        return bool if not param.secondary_opts else bool | None
    numbers: dict[str, Any] = {"integer": int, "integer range": int, "float range": float}
    plain: dict[str, Any] = {**numbers, "text": str, "choice": str, "file": str}
    kind = plain.get(param.type.name) or get_type_hints(type(param.type).convert)["return"]
    if param.multiple or param.nargs == -1:
        return tuple[kind, ...]
    return kind if param.required or has_default(param) else kind | None


def has_default(param: click.Parameter) -> bool:
    return isinstance(param.default, (str, int))  # without one, a value of click's own in some releases


COLUMN_NAMES = {
    "batch": ([LOG], []),
    "record": ([CLEAN / "franz-lz4-0"], ["--records"]),
    "indexEntry": ([*INDEXED.glob("*.index")], []),
    "timeIndexEntry": ([*INDEXED.glob("*.timeindex")], []),
    "producerState": ([*INDEXED.glob("*.snapshot")], []),
}


@pytest.mark.parametrize("kind", COLUMN_NAMES)
def test_every_key_of_json_is_a_column_of_inspect(kind: str) -> None:
    paths, options = COLUMN_NAMES[kind]
    objects = [json.loads(line) for line in run("inspect", *paths, *options, "--json").stdout.splitlines()]
    objects = [each for each in objects if each["type"] == kind]
    assert objects
    for name in objects[0]:
        result = run("inspect", *paths, *options, "--columns", name)
        assert result.exit_code == 0, (name, result.stderr)
        _, *rows = result.stdout.splitlines()
        assert len(rows) == len(objects)
        if name in ("type", "file", "position", "offset", "baseOffset", "valueSize", "keyEncoding"):
            assert [row.strip() for row in rows] == [str(each[name]) for each in objects]


@pytest.mark.parametrize(
    ("command", "options", "typed", "similar"),
    [
        ("inspect", [LOG], "foo", ""),
        ("inspect", [LOG], "key_size", "keySize"),
        ("inspect", [LOG, "--format", "csv"], "basOffset", "baseOffset"),
        ("inspect", [LOG], "nodeId", ""),
        ("groups", [CLEAN], "Lag", "lag"),
        ("transactions", [DISK, *NOW], "producer", "producerId"),
        ("ls", [CLEAN], "watermark", "highWatermark"),
        ("retention", [CLEAN, *NOW], "bytes_held", ""),
        ("verify", [CRASH, "--format", "csv"], "pos", "position"),
    ],
)
def test_an_unknown_column_is_one_line_with_similar_names(
    command: str, options: list[Any], typed: str, similar: str
) -> None:
    result = run(command, *options, "--columns", typed)
    assert (result.exit_code, result.stdout) == (2, "")
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"Error: unknown column '{typed}'; ")
    assert similar in line
    assert len(line) < 250


def test_inspect_has_no_title_for_files_without_a_match() -> None:
    result = run("inspect", CLEAN, "--records", "--key", "no such key")
    assert (result.exit_code, result.stdout) == (1, "")
    for form in ([], ["--hex"]):
        found = run("inspect", CLEAN, "--records", "--offset", "118", "--producer-id", "4000", *form).stdout
        titles = [line for line in found.splitlines() if line.endswith(".log:")]
        everything = run("inspect", CLEAN, "--records", "--offset", "118", "--producer-id", "4000", "--json").stdout
        files = dict.fromkeys(json.loads(line)["file"] for line in everything.splitlines())
        assert titles == [f"{each}:" for each in files]
