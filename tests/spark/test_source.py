"""The data source in a real session: every table, its schema, filters, object stores."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.spark.data_source import parse
from kdump.tables.declarations import TABLES
from kdump.tables.filters import pushed_filters
from kdump.tables.table_read import TableRead
from tests.conftest import FIXTURES, few
from tests.craft import write_file
from tests.spark import same
from tests.spark.test_equal import SPLITS, check, disks, without_large

DISK = FIXTURES / "clean-2"


def load(spark: Any, table: str, *paths: Any, **options: Any) -> Any:
    reader = spark.read.format("kdump").option("table", table)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load([str(path) for path in paths] if len(paths) > 1 else str(paths[0]))


def texts(rows: Any) -> list[str]:
    """Return the rows as sorted texts."""
    return sorted(str(row.asDict(recursive=True) if hasattr(row, "asDict") else row) for row in rows)


def a_snapshot() -> bytes:
    """Return a snapshot with two producers, as a broker writes it."""
    rows = [(7, 0, 41, 41, 1, 1_700_000_000_000, -1, -1), (8, 3, -1, 60, 0, 1_700_000_000_001, 2, 60)]
    entries = b"".join(PRODUCER_ENTRY.struct.pack(*row) for row in rows)
    body = len(rows).to_bytes(4, "big") + entries
    return (1).to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


QUICK = ("batches",)
"""What stands for all in `make test`."""


@pytest.mark.parametrize(
    "table", [pytest.param(name, marks=() if name in QUICK else pytest.mark.every_disk) for name in TABLES]
)
def test_a_table(spark: Any, table: str, tmp_path: Path) -> None:
    names = [column.name for column in TABLES[table].columns if column.type != "timestamp"]
    write_file(tmp_path / "ledger-0" / f"{7:020}.snapshot", a_snapshot())
    paths = [FIXTURES / "clean-1", DISK, FIXTURES / "diverged-1", tmp_path]
    frame = load(spark, table, *paths)
    expected = same.rows(table, paths, names)
    assert len(expected) > 1
    assert texts(frame.select(*names).collect()) == texts({name: row[name] for name in names} for row in expected)
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    assert types == {column.name: column.type for column in TABLES[table].columns}
    assert frame.schema["file"].metadata["comment"]


@pytest.mark.every_disk
def test_a_schema_chooses_columns(spark: Any) -> None:
    found = spark.read.format("kdump").option("table", "batches").schema("lastOffset bigint, codec string")
    with pytest.raises(Exception, match="no column 'codec'"):
        found.load(str(DISK)).collect()
    found = spark.read.format("kdump").option("table", "batches").schema("lastOffset int")
    with pytest.raises(Exception, match="lastOffset of table batches has type bigint, not int"):
        found.load(str(DISK)).collect()
    frame = spark.read.format("kdump").option("table", "batches").schema("lastOffset bigint, topic string")
    rows = frame.load(str(DISK / "ledger-0")).collect()
    assert [row.lastOffset for row in rows] == [row["lastOffset"] for row in same.cli_batches(DISK / "ledger-0")]
    by_option = load(spark, "batches", DISK / "ledger-0", columns="lastOffset, topic")
    assert by_option.columns == ["lastOffset", "topic"]
    assert by_option.collect() == rows


def test_a_bad_option_is_told(spark: Any) -> None:
    for options, said in (
        ({"table": "rows"}, "no table 'rows'"),
        ({"splitSize": "1"}, "no option 'splitSize'"),
        ({"splitBytes": "0"}, "splitBytes"),
        ({"maxDecompressedSize": "0"}, "maxDecompressedSize"),
    ):
        with pytest.raises(Exception, match=f"(?i){said}"):
            spark.read.format("kdump").options(**{"table": "batches", **options}).load(str(DISK)).collect()


@pytest.mark.parametrize("path", few(["nowhere/*", "nowhere", "file:///nowhere"], 1))
def test_a_path_that_does_not_exist_is_an_error(spark: Any, path: str, tmp_path: Path) -> None:
    path = path if ":" in path else str(tmp_path / path)
    for paths in ([path], [str(DISK), path]):
        with pytest.raises(Exception, match=r"no such file or directory|no path matches"):
            spark.read.format("kdump").option("table", "batches").load(paths).collect()
    (tmp_path / "empty").mkdir()
    assert load(spark, "batches", tmp_path / "empty").collect() == []


@pytest.mark.every_disk
def test_a_table_in_the_catalog(spark: Any, tmp_path: Path) -> None:
    """Its options are found again when it is read, and to drop it leaves the disk as it is."""
    disk = shutil.copytree(DISK, tmp_path / "it's a disk%")
    files = sorted(disk.rglob("*"))
    expected = texts(load(spark, "batches", disk, columns="topic,lastOffset").collect())
    options = "table 'batches', columns 'topic,lastOffset'"
    quoted = str(disk).replace("'", "\\'")
    for made in (
        f"OPTIONS ({options}, path '{quoted}')",
        f"OPTIONS ({options}) LOCATION '{quoted}' COMMENT 'x' TBLPROPERTIES ('a' = 'b')",
    ):
        spark.sql(f"CREATE TABLE kept USING kdump {made}")
        try:
            assert texts(spark.sql("SELECT * FROM kept").collect()) == expected
            assert texts(spark.sql("SELECT * FROM kept WITH (splitBytes '3000')").collect()) == expected
            with pytest.raises(Exception, match="splitBytes"):
                spark.sql("SELECT * FROM kept WITH (splitBytes '0')").collect()
        finally:
            spark.sql("DROP TABLE kept")
        assert sorted(disk.rglob("*")) == files
    for made, problem in (
        (f"OPTIONS (tabel 'batches') LOCATION '{quoted}'", "no option 'tabel'"),
        (f"LOCATION '{quoted}'", "no table is set"),
        (f"OPTIONS ({options}, storageOptions '{{}}') LOCATION '{quoted}'", "storageOptions may contain secrets"),
    ):
        with pytest.raises(Exception, match=problem):
            spark.sql(f"CREATE TABLE kept USING kdump {made}")
    spark.sql(f"CREATE TEMPORARY VIEW seen USING kdump OPTIONS ({options}, path '{quoted}')")
    assert texts(spark.table("seen").collect()) == expected


def test_what_a_filter_makes_unnecessary_is_not_planned() -> None:
    from pyspark.sql.datasource import EqualTo, In, StringEndsWith, StringStartsWith

    every = {path.parent.name for path in DISK.glob("*/*.log")}
    owner = same.rows("batches", [DISK])[0]["broker"]
    assert owner is not None
    for filters, expected in (
        ([StringStartsWith(("topic",), "led")], {"ledger-0"}),
        ([StringStartsWith(("topic",), "le"), StringStartsWith(("topic",), "ledger")], {"ledger-0"}),
        ([StringStartsWith(("topic",), "l"), EqualTo(("topic",), "ledger")], {"ledger-0"}),
        ([StringStartsWith(("topic",), "x")], set()),
        ([StringEndsWith(("topic",), "x")], every),
        ([EqualTo(("broker",), owner)], every),
        ([In(("broker",), ("x", owner)), EqualTo(("topic",), "ledger")], {"ledger-0"}),
        ([EqualTo(("broker",), "x")], set()),
        ([EqualTo(("broker",), owner), EqualTo(("broker",), "x")], set()),
    ):
        reading = TableRead(parse({"table": "batches", "path": str(DISK)}), pushed_filters(filters))
        planned = {Path(piece.input.target.path).parent.name for task in reading.parts() for piece in task}
        assert planned == expected, filters


def test_filters_are_handed_down_and_hold(spark: Any) -> None:
    frame = load(spark, "records", FIXTURES / "clean-1", columns="topic,partition,offset,timestamp,time,producerId,key")
    every = [row.asDict() for row in frame.collect()]
    for text, keep in (
        ("topic = 'payments' and offset between 3 and 9", lambda r: r["topic"] == "payments" and 3 <= r["offset"] <= 9),
        ("topic in ('users', 'sessions')", lambda r: r["topic"] in ("users", "sessions")),
        ("topic like 'pay%'", lambda r: r["topic"] == "payments"),
        ("producerId = 11", lambda r: r["producerId"] == 11),
        ("timestamp < 1700000000000", lambda r: r["timestamp"] is not None and r["timestamp"] < 1700000000000),
        (
            "time >= timestamp'2026-01-01' and not (topic = 'users')",
            lambda r: r["time"] is not None and r["time"].year >= 2026 and r["topic"] != "users",
        ),
    ):
        expected = [row for row in every if keep(row)]
        assert expected
        assert texts(frame.where(text).collect()) == texts(expected), text
    plan = frame.where("topic = 'payments'")._jdf.queryExecution().executedPlan().toString()
    assert plan.count("payments") >= 1


def test_spark_finds_the_source_by_its_module() -> None:
    from pkgutil import iter_modules

    import pyspark_kdump
    from kdump.spark.data_source import KdumpSource

    assert "pyspark_kdump" in {module.name for module in iter_modules() if module.name.startswith("pyspark_")}
    assert pyspark_kdump.DefaultSource is KdumpSource
    assert KdumpSource.name() == "kdump"


@pytest.mark.every_disk
@pytest.mark.parametrize("split", [SPLITS[1], pytest.param(SPLITS[0], marks=pytest.mark.every_disk)])
@pytest.mark.parametrize("disk", disks(("clean-2",)))
def test_in_a_session(spark: Any, disk: Path, split: int | None, tmp_path: Path) -> None:
    # test_equal reads the large files: here a row takes 0.2 ms in the driver, and a task of 4 KiB takes 30 ms.
    disk = without_large(disk, tmp_path / disk.name)

    def read(table: str, paths: list[Path], **options: Any) -> list[dict[str, Any]]:
        # A wrong clock may produce a timestamp that Python's own type cannot represent.
        names = [column.name for column in TABLES[table].columns if not column.of]
        reader = spark.read.format("kdump").options(table=table, columns=",".join(names), **options)
        frame = reader.load([str(path) for path in paths]).repartition(16)  # the driver holds one part at a time
        return [row.asDict(recursive=True) for row in frame.toLocalIterator()]

    check(disk, split, read)
