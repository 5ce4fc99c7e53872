"""kdump scan --table-format iceberg: Iceberg's own readers find what the Parquet files contain, after each scan."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdump.spark import scan_command as command
from kdump.spark import table_formats
from kdump.spark.arrow import arrow_schema
from kdump.spark.scan import ScanOptions
from kdump.spark.store import Store, StoreError
from kdump.spark.table_formats import parquet_files
from kdump.spark.tables import RESULTS
from tests.conftest import FIXTURES
from tests.spark.test_incremental import run


def by_iceberg(out: Path, name: str) -> pa.Table:
    """Return the table as a reader finds it that knows only its directory."""
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(str(out / table_formats.PLACE / name)).scan().to_arrow()


def by_parquet(out: Path, name: str) -> list[str]:
    """Return the same from the Parquet files."""
    names = arrow_schema(RESULTS[name]).names
    rows = []
    for file in parquet_files(str(out / name)):
        for row in pq.ParquetFile(file.path).read().to_pylist():
            rows.append(str([row[column] for column in names]))
    return sorted(rows)


@pytest.mark.every_disk
def test_each_scan_is_a_version(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(FIXTURES / "clean-2", disk)
    shutil.copytree(FIXTURES / "clean-1" / "payments-0", disk / "payments-0")
    (disk / "meta.properties").unlink()
    store = Store(str(out))
    before = 0
    for version in (1, 2, 3):
        run(disk, out, brokers={str(disk): "the left/one %41"}, split_bytes=1 << 20)
        made = table_formats.publish(store, "iceberg")
        assert {"segments", "batches", "records", "findings", "checkpoints"} <= set(made)
        for name in made:
            found = by_iceberg(out, name)
            assert found.schema.names == arrow_schema(RESULTS[name]).names
            assert sorted(str(list(row.values())) for row in found.to_pylist()) == by_parquet(out, name)
            place = out / table_formats.PLACE / name / "metadata"
            assert (place / table_formats.HINT).read_text() == str(version)
            said = json.loads((place / f"v{version}.metadata.json").read_text())
            assert len(said["snapshots"]) == 1
            assert len(list(place.glob("*.json"))) == 1
            avro = list(place.glob("*.avro"))
            assert len([path for path in avro if path.name.startswith("snap-")]) == 1
            assert len(avro) <= 4, version
        rows = by_iceberg(out, "batches")
        assert set(rows["broker"].to_pylist()) == {"the left/one %41"}
        assert rows.num_rows != before
        before = rows.num_rows
        log = next((disk / "payments-0").glob("*.log"))
        log.write_bytes(log.read_bytes()[: 900 * (3 - version)])  # the next scan finds fewer rows
    assert (out / "batches").is_dir()


@pytest.mark.every_disk
def test_what_a_filter_leaves(tmp_path: Path) -> None:
    from pyiceberg.table import StaticTable

    out = tmp_path / "out"
    run(FIXTURES / "clean-2", out, records=False)
    table_formats.publish(Store(str(out)), "iceberg")
    table = StaticTable.from_metadata(str(out / table_formats.PLACE / "batches"))
    every = by_iceberg(out, "batches").to_pylist()
    offsets = [row["baseOffset"] for row in every if row["topic"] == "ledger"]
    assert offsets
    for fields in (("topic", "baseOffset"), ("baseOffset",)):
        found = table.scan("topic = 'ledger' and broker = '2'", selected_fields=fields).to_arrow()
        assert found["baseOffset"].to_pylist() == offsets
    found = table.scan("baseOffset >= 2 and topic = 'ledger'").to_arrow()
    assert found["baseOffset"].to_pylist() == [offset for offset in offsets if offset >= 2]
    for nothing in ("baseOffset >= 1000000", "broker = '3'"):
        assert table.scan(nothing).to_arrow().num_rows == 0


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.memory", None)
    with pytest.raises(StoreError, match=r"pip install 'pyiceberg\[sql-sqlite\]'$"):
        table_formats.require(Store(str(tmp_path)), "iceberg")


@pytest.mark.every_disk
def test_not_on_a_url() -> None:
    with pytest.raises(StoreError, match="local directory"):
        table_formats.require(Store("memory://out"), "iceberg")


def test_the_option_is_there() -> None:
    option: Any = next(each for each in command.command.params if each.name == "table_format")
    assert list(option.type.choices) == ["parquet", "delta", "iceberg"]
    assert ScanOptions((), tables=()).records is False
