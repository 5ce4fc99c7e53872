"""kdump export and kdump.records: the rows are those of inspect, the findings and the exit status those of verify, and
a file is complete or does not exist."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import kdump
from kdump.cli import cli
from kdump.format.numbers import int64
from kdump.questions.export import output_files
from kdump.questions.find.answer import ABORTED, BELOW, LIVE, OPEN, SUPERSEDED, Found
from kdump.tables import arrow, c_data
from kdump.tables.as_pyarrow import as_pyarrow, as_schema
from tests.conftest import DISKS, FIXTURES, each_segment, examples, some_segments
from tests.craft import batch, flip, message, record, wrapper, write_file
from tests.disks import partition
from tests.each_case import each_case

DAMAGED = FIXTURES / "damaged-1"
Row = dict[str, Any]


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def objects(*arguments: str | Path) -> list[Row]:
    return [json.loads(line) for line in run(*arguments).stdout.splitlines()]


def as_bytes(row: Row, name: str) -> bytes | None:
    value: str | None = row[name]
    if value is None:
        return None
    return base64.b64decode(value) if row.get(f"{name}Encoding") == "base64" else value.encode()


def of_inspect(*arguments: str | Path) -> list[tuple[Any, ...]]:
    """Return what kdump inspect shows of records, without control records."""
    return [
        (
            row["file"],
            row["offset"],
            None if row["timestamp"] is None else int64(row["timestamp"]),
            as_bytes(row, "key"),
            as_bytes(row, "value"),
            [(as_bytes(header, "key"), as_bytes(header, "value")) for header in row["headers"]],
            row.get("valueDecoded"),
        )
        for row in objects("inspect", *arguments, "--records", "--json")
        if row["type"] == "record" and "control" not in row
    ]


def of_table(table: pa.Table) -> list[tuple[Any, ...]]:
    table.validate(full=True)
    return [
        (
            row["file"],
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"]],
            None if row["valueDecoded"] is None else json.loads(row["valueDecoded"]),
        )
        for row in table.to_pylist()
    ]


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 24))
def test_records_are_those_of_inspect(path: Path) -> None:
    assert of_table(pa.table(kdump.records(path))) == of_inspect(path)


SELECTIONS = [
    ["--offset", "3..40"],
    ["--time", "2026-11-21T07:58:22.476Z.."],
    ["--transactional"],
    ["--key-regex", "1"],
    ["--read-committed"],
    ["--topic", "orders-*", "--partition", "0"],
]


@each_case("options", SELECTIONS)
def test_a_selection_is_that_of_inspect(options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    result = run("export", FIXTURES / "clean-1", "--out", out, *options)
    assert result.exit_code == 0, result.output
    assert sorted(of_table(pq.read_table(out))) == sorted(of_inspect(FIXTURES / "clean-1", *options))


def test_control_records_are_written_next_to_the_others(tmp_path: Path) -> None:
    of_batch: dict[bool, set[bool]] = {}
    for number, option in enumerate(("--control-records", "--control")):
        out = tmp_path / f"{number}.parquet"
        assert run("export", FIXTURES / "clean-1" / "payments-0", "--out", out, option).exit_code == 0
        of_batch[option == "--control"] = {row["isControlBatch"] for row in pq.read_table(out).to_pylist()}
    assert of_batch == {False: {False, True}, True: {True}}
    batches = tmp_path / "batches.parquet"
    assert run("export", FIXTURES / "clean-1", "--out", batches, "--table", "batches", "--control").exit_code == 0


@pytest.mark.every_disk
def test_every_way_to_write_has_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings are those of verify, and so is the exit status."""
    pipe = io.BytesIO()
    monkeypatch.setattr(output_files, "write_all", lambda fd, data: pipe.write(data))
    monkeypatch.setattr(output_files.os, "isatty", lambda fd: False)
    statuses = set()
    for disk in (FIXTURES / "clean-1", *sorted(FIXTURES.glob("diverged-1/*"))):
        here = tmp_path / disk.name
        here.mkdir()
        pipe.seek(0)
        pipe.truncate()
        results = [
            run("export", disk, "--out", here / "one.parquet"),
            run("export", disk, "--out", here / "two.arrow"),
            run("export", disk, "--out", "-"),
            run("export", disk, "--out", here / "parts"),
        ]
        statuses |= {(result.exit_code, run("verify", disk, "-q").exit_code) for result in results}
        rows = of_table(pq.read_table(here / "one.parquet"))
        assert of_table(pa.ipc.open_stream(here / "two.arrow").read_all()) == rows
        assert of_table(pa.ipc.open_stream(pipe.getvalue()).read_all()) == rows
        files = sorted((here / "parts").iterdir())
        parts = [pq.read_table(file) for file in files if file.name != "findings.parquet"]
        assert sorted(row for part in parts for row in of_table(part)) == sorted(rows)
        assert all(len({(row["topic"], row["partition"]) for row in part.to_pylist()}) == 1 for part in parts)
        shown = [row for row in objects("verify", disk, "--json", "--info") if row["type"] == "finding"]
        found = pq.read_table(here / "parts" / "findings.parquet").to_pylist()
        assert [(row["code"], row["file"], row["position"], row["message"]) for row in found] == [
            (row["code"], row["file"], row["position"], row["message"]) for row in shown
        ]
        assert pq.read_table(here / "one.findings.parquet").to_pylist() == found
    assert {mine for mine, _ in statuses} == {verify for _, verify in statuses}
    assert all(mine == verify for mine, verify in statuses)


def test_damage_is_a_table_with_positions(tmp_path: Path) -> None:
    """With a selection, what was read of it is judged alone."""
    log = tmp_path / "payments-0" / f"{0:020}.log"
    log.parent.mkdir()
    data = bytearray((FIXTURES / "clean-1" / "payments-0" / log.name).read_bytes())
    data[100] ^= 1
    log.write_bytes(data + b"\xff" * 30)
    for number, options in enumerate([[], ["--time", "0.."], ["--table", "batches", "--offset", "0.."]]):
        out = tmp_path / f"{number}.parquet"
        result = run("export", log.parent, "--out", out, *options)
        assert result.exit_code == 1, result.output
        found = pq.read_table(tmp_path / f"{number}.findings.parquet").to_pylist()
        positions = {row["position"] for row in found if row["file"] == str(log)}
        assert positions >= ({0} if number == 1 else {0, len(data)})
        assert ("1 byte range that belongs to no batch" in result.output) == (number == 1)
        assert "crc-mismatch" in {row["code"] for row in found}
    assert {row["damaged"] for row in pq.read_table(tmp_path / "0.parquet").to_pylist()} == {True, False}
    rows = kdump.records(log.parent)
    pa.table(rows)
    assert {each.position for each in rows.findings} >= {0, len(data)}
    assert run("export", tmp_path / "none", "--out", tmp_path / "none.parquet").exit_code == 2
    assert not (tmp_path / "none.parquet").exists()


def test_what_is_wrong_with_a_selected_record_alone_is_a_finding(tmp_path: Path) -> None:
    """A message in a wrapper whose checksum matches, and a marker that does not decode."""
    good, bad = message(1, b"good", offset=0), message(1, b"bad", offset=1)
    marker = batch([record(key=b"\0\0\0\1", value=b"\0")], offset=2, attributes=0x30, producerId=1, producerEpoch=0)
    messages = wrapper(1, [good, flip(bad, 8 * len(bad) - 1)], offset=1)
    write_file(tmp_path / "a-0" / f"{0:020}.log", messages + marker)
    for offset, codes in (("0", set()), ("1", {"crc-mismatch"}), ("2", {"control-batch-invalid"})):
        out = tmp_path / f"{offset}.parquet"
        run("export", tmp_path / "a-0", "--out", out, "--control-records", "--offset", offset)
        found = tmp_path / f"{offset}.findings.parquet"
        assert {row["code"] for row in (pq.read_table(found).to_pylist() if found.exists() else ())} == codes


@each_case("out", ["rows.parquet", "rows.arrow", "rows"])
@each_case("error", [KeyboardInterrupt, OSError(28, "No space left on device"), RuntimeError])
def test_what_is_not_complete_does_not_exist(
    out: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = output_files.FileOutput.put, output_files.DirectoryOutput.put
    calls = 0

    def failing(of: Any) -> Any:
        def fail(self: Any, *arguments: Any) -> None:
            nonlocal calls
            calls += 1
            of(self, *arguments)
            if calls == 3:
                raise error

        return fail

    monkeypatch.setattr(output_files.FileOutput, "put", failing(put[0]))
    monkeypatch.setattr(output_files.DirectoryOutput, "put", failing(put[1]))
    (tmp_path / "out").mkdir()
    result = CliRunner().invoke(cli, ["export", str(FIXTURES / "clean-1"), "--out", str(tmp_path / "out" / out)])
    assert result.exit_code
    assert calls == 3
    assert [*(tmp_path / "out").iterdir()] == []


def test_what_is_refused(tmp_path: Path) -> None:
    here = FIXTURES / "clean-1" / "payments-0"
    (tmp_path / "full.parquet").write_bytes(b"")
    for options in (
        ["--out", tmp_path / "full.parquet"],
        ["--out", here / "rows.parquet"],
        ["--out", tmp_path / "x", "--columns", "offset,nothing"],
        ["--out", tmp_path / "x", "--where", "key =="],
        ["--out", tmp_path / "x", "--table", "segments", "--offset", "1"],
        ["--out", tmp_path / "x", "--table", "batches", "--where", "offset > 1"],
        ["--out", tmp_path / "x", "--by-markers"],
        ["--out", tmp_path / "x", "--decoder", "nothing"],
        ["--out", tmp_path / "x", "--schemas", tmp_path / "none"],
    ):
        result = run("export", here, *options)
        assert result.exit_code == 2, options
        assert ("option schemas" in result.output) == ("--schemas" in options)
    assert [path.name for path in tmp_path.iterdir()] == ["full.parquet"]
    with pytest.raises(ValueError, match="unknown column 'nothing'"):
        kdump.records(here, columns=["nothing"])
    with pytest.raises(kdump.SourceError):
        kdump.records(tmp_path / "none")


def test_no_table_is_written_to_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tmp_path / "answers.jsonl"
    lines.write_text(run("ls", FIXTURES / "clean-1", "--json").stdout)
    monkeypatch.setattr(output_files.os, "isatty", lambda fd: True)
    for options in ([FIXTURES / "clean-1"], ["--answers", lines]):
        result = run("export", *options, "--out", "-")
        assert result.exit_code == 2
        assert "--out -: standard output is a terminal" in result.output


def test_without_pyarrow() -> None:
    """A file needs it; a stream does not."""
    code = f"""
import sys
sys.modules["pyarrow"] = None
import kdump
from kdump.cli import cli
assert "arrow_array_stream" in repr(kdump.records({str(FIXTURES / "clean-1")!r}).__arrow_c_stream__())
cli.main(["export", {str(FIXTURES / "clean-1")!r}, "--out", "/nowhere/x.parquet"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kdump: Parquet and Arrow files need pyarrow: pip install pyarrow\n"


def test_other_tables_and_expressions(tmp_path: Path) -> None:
    for number, (table, options) in enumerate((("index_entries", []), ("segments", ["--topic", "payments"]))):
        out = tmp_path / f"{number}.parquet"
        assert run("export", FIXTURES / "clean-1", "--table", table, "--out", out, *options).exit_code == 0
        rows = pq.read_table(out).to_pylist()
        assert {row["topic"] for row in rows} == ({"payments"} if options else {row["topic"] for row in rows})
        assert rows
    out = tmp_path / "offsets.parquet"
    table = ("--table", "group_offsets", "--out", out)
    assert run("export", FIXTURES / "disk-1", *table, "--topic", "__consumer_offsets").exit_code == 0
    assert pq.read_table(out).num_rows
    out.unlink()
    assert (
        "--partition 3: no match; there is 0" in run("export", FIXTURES / "disk-1", *table, "--partition", "3").output
    )
    assert not pq.read_table(out).num_rows
    every = of_table(pa.table(kdump.records(FIXTURES / "clean-1" / "payments-0")))
    some = pa.table(kdump.records(FIXTURES / "clean-1" / "payments-0", where="offset >= 4 and offset < 9"))
    assert of_table(some) == [row for row in every if 4 <= row[1] < 9]
    both = pa.table(kdump.records(FIXTURES / "clean-1" / "payments-0", control=True))
    assert len(both) > len(every)
    assert any(row["isControlBatch"] and row["control"] for row in both.to_pylist())
    assert run("export", FIXTURES / "clean-1", "-n", "7", "--out", tmp_path / "n.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "n.parquet").num_rows == 7


EXPRESSIONS = (
    *("isAborted", "not isAborted and isTransactional", "topic ~ '^pay' and not isAborted", "value.order == 4"),
    *("key == 'u1' or value.qty > 8", "header ~ '.'", "time >= 2026-11-21T07:58:21Z", "any ~ 'sku-1'"),
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_selects_what_find_finds(expression: str) -> None:
    """The records of the log, which find searches with others."""
    found = [
        (each.target.path, each.record.offset)
        for each in kdump.find(FIXTURES / "clean-1", expression)
        if isinstance(each, Found)
        and each.target.path.endswith(".log")
        and not each.record.is_control
        and not {*each.states} - {LIVE, SUPERSEDED, ABORTED, OPEN, BELOW}
    ]
    rows = pa.table(kdump.records(FIXTURES / "clean-1", where=expression, columns=["file", "offset"])).to_pylist()
    assert sorted((row["file"], row["offset"]) for row in rows) == sorted(found)


def test_records_that_may_match_are_counted(tmp_path: Path) -> None:
    """Bytes that nothing decodes may be those of a value with the field."""
    values = (b'{"a": 1}', b'{"a": 2}', b"\x00\xff\xfe\x01\x02")
    here = partition(tmp_path, batch([record(number, value=value) for number, value in enumerate(values)]))
    result = run("export", here, "--where", "value.a == 1", "--out", tmp_path / "x.parquet")
    assert "1 record that may match is left out" in result.output
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 1


def test_the_answers_of_other_commands(tmp_path: Path) -> None:
    """Each type of object is a table with the keys that it declares."""
    lines = tmp_path / "answers.jsonl"
    for number, (name, *more) in enumerate((("groups",), ("ls", "--segments"), ("stats",), ("retention",))):
        printed = run(name, FIXTURES / "disk-1", *more, "--json").stdout
        lines.write_text(printed)
        result = run("export", "--answers", lines, "--out", tmp_path / f"{number}")
        assert result.exit_code == 0, result.output
        by_type: dict[str, list[Row]] = {}
        for line in printed.splitlines():
            row = json.loads(line)
            by_type.setdefault(row["type"], []).append(row)
        assert {path.stem for path in (tmp_path / f"{number}").iterdir()} == {*by_type}
        for kind, rows in by_type.items():
            found = pq.read_table(tmp_path / f"{number}" / f"{kind}.parquet").to_pylist()
            assert len(found) == len(rows)
            for row, shown in zip(found, rows):
                for key, value in shown.items():
                    if key != "type":
                        assert row[key] == (
                            json.dumps(value, ensure_ascii=False) if type(value) in (list, dict) else value
                        )
        assert run("export", "--answers", lines, "--out", tmp_path / "one.parquet").exit_code == 2 * (len(by_type) > 1)
        (tmp_path / "one.parquet").unlink(missing_ok=True)
    lines.write_text('{"type": "nothing"}\n')
    assert run("export", "--answers", lines, "--out", tmp_path / "one.parquet").exit_code == 2
    assert run("export", "--answers", lines, "--offset", "1", "--out", tmp_path / "one.parquet").exit_code == 2
    result = run("export", "--answers", tmp_path / "none", "--out", tmp_path / "one.parquet")
    assert (result.exit_code, result.output) == (2, f"kdump: {tmp_path / 'none'}: No such file or directory\n")
    assert not (tmp_path / "one.parquet").exists()


def test_a_stream_can_be_left_and_read_again() -> None:
    rows = kdump.records(FIXTURES / "clean-1", columns=["offset", "time", "value"])
    assert rows.columns == ("offset", "time", "value")
    assert pa.schema(rows).field("time").type == pa.timestamp("ms", "UTC")
    reader = pa.RecordBatchReader.from_stream(rows)
    first = reader.read_next_batch()
    reader.close()
    assert pa.table(rows).slice(0, len(first)).equals(pa.Table.from_batches([first]))
    rows.__arrow_c_stream__()  # nobody takes it
    del first, reader
    c_data.schema_capsule(())
    kept = len(c_data._kept)
    for _ in range(5):
        pa.table(rows)
        rows.__arrow_c_stream__()
    c_data.schema_capsule(())
    assert len(c_data._kept) <= kept + 2


def test_an_error_is_that_of_the_consumer() -> None:
    def broken() -> Iterator[arrow.ArrowBatch]:
        raise OSError("the disk is gone")
        yield

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return c_data.stream_capsule((), broken())

    with pytest.raises(OSError, match="the disk is gone"):
        pa.table(Stream())


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "string": st.text(max_size=5),
    "binary": st.binary(max_size=5),
    "array<string>": st.lists(st.none() | st.text(max_size=3), max_size=3),
    "struct<a:int,b:string>": st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.text(max_size=3)}),
    "array<struct<key:binary,value:binary>>": st.lists(
        st.fixed_dictionaries({"key": st.binary(max_size=3), "value": st.none() | st.binary(max_size=3)}), max_size=3
    ),
}


@given(st.data())
@examples(150)
def test_values_are_those_of_pyarrow(data: st.DataObject) -> None:
    """Of every type, with and without nulls, taken by their numbers, and cut at any row."""
    ddl = data.draw(st.sampled_from([*VALUES]))
    values = data.draw(st.lists(st.none() | VALUES[ddl], max_size=20))
    kind = arrow.arrow_type(ddl)
    schema = (arrow.ArrowField("x", kind),)
    order = arrow.array("i", data.draw(st.lists(st.integers(0, max(0, len(values) - 1)), max_size=30 if values else 0)))
    for made, expected in (
        (arrow.plain(values, kind), values),
        (arrow.taken(values, order, kind), [values[row] for row in order]),
        (arrow.nulls(len(values), kind), [None] * len(values)),
    ):
        length = data.draw(st.integers(0, len(expected)))
        batch = as_pyarrow(arrow.ArrowBatch(schema, length, (made,)), as_schema(schema))
        batch.validate(full=True)
        assert batch.column(0).to_pylist() == expected[:length]


@pytest.mark.every_disk
def test_every_disk(tmp_path: Path) -> None:
    for disk in sorted(path for path in DISKS.iterdir() if path.is_dir()):
        out = tmp_path / f"{disk.name}.parquet"
        assert run("export", disk, "--out", out).exit_code == run("verify", disk, "-q").exit_code
