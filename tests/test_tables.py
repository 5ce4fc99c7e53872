"""Tables on terminals of 60 to 200 columns: no two rows look alike because a name was shortened, and no column is wider
than what is in it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

from kdump.all_answers import TYPES
from kdump.answer import ANSWERS, NAME, NUMBER, PATH, TEXT, VALUE, Doc, answer_keys, shown_keys
from kdump.answer import Shown as Declared
from kdump.answer import columns as declare
from kdump.render.state_tables import table_columns as columns_of
from kdump.render.stdout import Output
from kdump.render.style import cut_middle, cut_start, width
from kdump.render.table import CUTS, GAP, SAMPLE, Column, Table, TableRow
from tests.command import run
from tests.conftest import FIXTURES, ROOT, few, sample

DISK, CLEAN, STATE, CRASH = (FIXTURES / name for name in ("disk-1", "clean-1", "state-1", "crash-1"))
A, B = FIXTURES / "diverged-1", FIXTURES / "diverged-2"
NOW = ("--now", "2026-11-21")
WIDTHS = (60, 72, 80, 100, 132, 160, 200)
COMMANDS: tuple[tuple[str | Path, ...], ...] = (
    ("ls", CLEAN, DISK),
    ("ls", CLEAN, "--segments"),
    ("ls", CLEAN, "--by", "topic"),
    ("inspect", CLEAN / "payments-0", CRASH / "payments-0"),
    ("inspect", CLEAN, "--records", "-n", "300"),
    ("inspect", CLEAN, "--columns", "file,position,crc,maxTimestamp,compression"),
    ("inspect", FIXTURES / "indexed-1"),
    ("transactions", DISK, CLEAN, *NOW),
    ("transactions", DISK / "payments-0", *NOW),
    ("transactions", DISK, "--coordinator", *NOW),
    ("producers", DISK, CLEAN, *NOW),
    ("producers", CRASH / "payments-0", *NOW),
    ("producers", CRASH, "--history", *NOW),
    ("retention", CLEAN, DISK, *NOW),
    ("retention", DISK, "--holds", *NOW),
    ("retention", DISK, "--list", *NOW),
    ("groups", CLEAN, STATE),
    ("groups", STATE, "--offsets"),
    ("groups", STATE, "--members"),
    ("groups", CLEAN, "--offsets"),
    ("groups", STATE, "--history"),
    *(("cluster", STATE, "--show", part) for part in ("topics", "partitions", "brokers", "configs", "acls", "quotas")),
    *(("cluster", STATE, "--show", part) for part in ("scram", "tokens", "features", "controllers", "voters")),
    ("cluster", CLEAN, "--history"),
    ("stats", CLEAN),
    ("diff", A, B),
    ("diff", A / "ledger-0", B / "ledger-0", CLEAN / "payments-0"),
    ("reindex", CLEAN),
    ("restart-plan", FIXTURES / "clean-2", "--all"),
    ("restart-plan", DISK, "--all"),
    ("carve", CLEAN / "payments-0", "--runs"),
    ("find", "key ~ '3'", CLEAN),
    ("verify", "--list"),
)


class Shown:
    """Rows of the tables that a command writes: their table, the row, and the lines that were written of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        self.rows: list[tuple[Table, TableRow, list[str]]] = []
        self._lines: list[str] = []
        write, write_line = Table._write, Table._write_line
        shown = self

        def on_row(table: Table, row: TableRow) -> None:
            shown._lines = []
            write(table, row)
            shown.rows.append((table, row, shown._lines))

        def on_line(table: Table, cells: list[str], style: str) -> None:
            texts = [table._pad(i, cell) for i, cell in zip(table._shown, cells)]
            shown._lines.append(GAP.join(texts).rstrip())
            write_line(table, cells, style)

        monkeypatch.setattr(Output, "width", property(lambda self: columns))
        monkeypatch.setattr(Table, "_write", on_row)
        monkeypatch.setattr(Table, "_write_line", on_line)

    def check(self, columns: int) -> None:
        """Assert what holds for every table."""
        tables: dict[int, list[tuple[Table, TableRow, list[str]]]] = {}
        for each in self.rows:
            tables.setdefault(id(each[0]), []).append(each)
        for rows in tables.values():
            table = rows[0][0]
            fitted = [table._fitted(row) for _, row, _ in rows]
            for place, i in enumerate(table._shown):
                self._check_column(table, i, [row.cells[i] for _, row, _ in rows], [each[place] for each in fitted])
            self._check_rows(table, rows, columns)

    def check_left_out(self, printed: str) -> None:
        """Assert that columns with contents for which there is no room are named at the end."""
        left = {table.columns[i].label for table, row, _ in self.rows for i in table._hidden if row.cells[i]}
        left -= {table.columns[i].label for table, _, _ in self.rows for i in table._hidden if table.chosen}
        last = " ".join(printed.split()).rpartition(" columns more (" if len(left) > 1 else " column more (")[2]
        assert not left or all(label in last.partition("):")[0] for label in left), (left, last)

    @staticmethod
    def _check_column(table: Table, i: int, texts: list[str], cells: list[list[str]]) -> None:
        column = table.columns[i]
        assert table._widths is not None
        is_last = i == table._shown[-1] and not column.right
        longest = max(map(width, (column.label, *texts)))
        assert is_last or table._widths[i] <= longest, f"{column.name} is {table._widths[i]} wide for {longest}"
        if column.cuts in CUTS:
            assert len({tuple(cell) for cell in cells}) == len(set(texts)), f"two {column.name} look alike"
        if column.cuts == TEXT:
            assert ["".join(cell).replace(" ", "") for cell in cells] == [text.replace(" ", "") for text in texts]

    @staticmethod
    def _check_rows(table: Table, rows: list[tuple[Table, TableRow, list[str]]], columns: int) -> None:
        identity = [i for i, column in enumerate(table.columns) if column.cuts in CUTS]
        by_text: dict[str, tuple[str, ...]] = {}
        for _, row, lines in rows:
            name = tuple(row.cells[i] for i in identity)
            assert by_text.setdefault("\n".join(lines), name) == name
        first = [row for _, row, _ in rows[:SAMPLE]]
        needed = [
            max(width(text) for text in (column.label, *(row.cells[i] for row in first)))
            for i, column in enumerate(table.columns)
        ]
        assert table._widths is not None
        if table._least(table._shown, needed) <= columns:
            assert sum(table._widths[i] for i in table._shown) + len(GAP) * (len(table._shown) - 1) <= columns


@pytest.mark.sampled
@pytest.mark.parametrize(
    "words", few(map(pytest.param, COMMANDS), 12), ids=lambda words: "-".join(str(w).rsplit("/", 1)[-1] for w in words)
)
def test_every_table_at_every_width(words: tuple[str | Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    command, *arguments = words
    seen = False
    for columns in sample([*WIDTHS], 15, f"widths {words}"):
        with monkeypatch.context() as patch:
            shown = Shown(patch, columns)
            printed = run(str(command), *arguments).stdout
            shown.check(columns)
            shown.check_left_out(printed)
            seen = seen or bool(shown.rows)
    assert seen or command == "cluster"


def names(rng: random.Random, count: int) -> Iterator[str]:
    """Yield names that differ at the beginning, in the middle, at the end, or not at all."""
    parts = [["eu-", "us-", "ünï-", "日本-"], ["orders." * n for n in (1, 5, 20)], ["a", "b", "retry-1", "retry-2"]]
    for _ in range(count):
        yield "".join(rng.choice(part) for part in rng.sample(parts, 3)) + str(rng.randrange(4))


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [NAME, PATH])
def test_names_of_any_kind(cuts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in sample(range(30), 11, cuts):
        rng = random.Random(seed)
        made = [*names(rng, SAMPLE + 60)]
        for columns in (20, 33, 60, 80, 120, 200):
            with monkeypatch.context() as patch:
                shown = Shown(patch, columns)
                table = Table(
                    [
                        Column("name", "name", made.__getitem__, least=8, cuts=cuts),
                        Column("count", "count", lambda n: str(n % 3), right=True),
                        Column("value", "value", lambda n: "v" * (n % 90), rank=4, least=6),
                        Column("remark", "", lambda n: "it is so " * (n % 5), least=12, cuts=TEXT),
                    ],
                    Output(),
                )
                for number in range(len(made)):
                    table.add(number)
                table.flush()
                shown.check(columns)


@pytest.mark.parametrize(
    ("text", "room", "middle", "start"),
    [
        ("payments-0", 10, "payments-0", "payments-0"),
        ("payments-0", 7, "pay…s-0", "…ents-0"),
        ("payments-0", 2, "p…", "…0"),
        ("payments-0", 1, "…", "…"),
        ("日本語-payments", 9, "日本…ents", "…payments"),
    ],
)
def test_how_names_are_shortened(text: str, room: int, middle: str, start: str) -> None:
    assert (cut_middle(text, room), cut_start(text, room)) == (middle, start)
    assert width(cut_middle(text, room)) <= room


def test_what_identifies_is_never_left_out() -> None:
    """A column that tells rows apart has the highest rank; a column of sentences is wrapped, and says how far."""
    optional = {("groupMember", "instanceId"), ("change", "groupId"), ("change", "entity")}
    optional |= {
        ("transaction", "transactionalId"),
        ("producer", "transactionalId"),
        ("producerEvent", "transactionalId"),
    }
    optional |= {("transactionCoordinator", "path"), ("schemaUsage", "subjects")}
    tables = {kind: columns_of(ANSWERS[kind], timezone.utc) for kind in TYPES if shown_keys(ANSWERS[kind])}
    assert len(tables) > 30
    for kind, columns in tables.items():
        for column in columns:
            if column.cuts in (NAME, PATH) and (kind, column.name) not in optional:
                assert column.rank == 9, (kind, column.name)
            if column.cuts == TEXT:
                assert column.least or kind in ("group",), (kind, column.name)
            assert column.cuts in (VALUE, NAME, PATH, TEXT)
    assert all(column.rank >= 1 for columns in tables.values() for column in columns)


def test_a_wrapped_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "width", property(lambda self: 40))
    made: Any = [("1", "hanging", "no coordinator will end it: abort it with kafka-transactions.sh")]
    lines: list[str] = []
    monkeypatch.setattr(Output, "line", lambda self, text: lines.append(text))
    columns = [
        Column("offset", "offset", lambda row: row[0], right=True),
        Column("state", "state", lambda row: row[1]),
        Column("remark", "remark", lambda row: row[2], least=20, cuts=TEXT),
    ]
    table = Table(columns, Output())
    table.add(made[0])
    table.flush()
    assert lines == [
        "offset  state    remark",
        "     1  hanging  no coordinator will end",
        "                 it: abort it with",
        "                 kafka-transactions.sh",
    ]


BY_HAND = {
    "questions/inspect/columns.py": "the type, which every row has",
    "questions/stats/report.py": "the columns of --by depend on what is counted",
    "spark/query.py": "the columns are the query's",
}
"""Modules with columns that no answer declares, and why."""


def test_tables_are_declared() -> None:
    made = {str(path.relative_to(ROOT / "kdump")): path.read_text() for path in (ROOT / "kdump").rglob("*.py")}
    made = {name: text for name, text in made.items() if "from kdump.render.table import" in text}
    calls = {name: count for name, text in made.items() if (count := len(re.findall(r"\bColumn\(", text)))}
    assert calls.keys() == {*BY_HAND, "render/state_tables.py"}
    assert sum(calls.values()) <= 10


@declare(both=Declared(cell=lambda row: f"{row.first}/{row.second}", after="first", right=True))
class Row(NamedTuple):
    first: Annotated[int, Declared(" "), NUMBER]
    second: Annotated[int, Doc("a key that is no column")]


def test_a_column_that_is_no_key() -> None:
    assert [key.name for key in answer_keys(Row)] == ["second"]
    assert [(column.label, column.right, column.cell(Row(1000, 2))) for column in columns_of(Row)] == [
        ("", True, "1,000"),
        ("both", True, "1000/2"),
    ]
