"""kdump scan --table-format delta: Delta's own reader finds what the Parquet files contain, after each scan."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from kdump.spark import scan_command as command
from kdump.spark import table_formats
from kdump.spark.scan import ScanOptions, scan
from kdump.spark.store import Store, StoreError
from kdump.spark.tables import TABLES
from kdump.spark.task_runner import SparkTasks
from tests.conftest import FIXTURES


def by_delta(path: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(str(path))


def rows(table: Any, columns: list[str]) -> list[str]:
    return sorted(str([row[name] for name in columns]) for row in table.to_pylist())


def by_parquet(spark: Any, out: Path, name: str, columns: list[str]) -> list[str]:
    frame = spark.read.schema(TABLES[name].ddl()).parquet(str(out / name)).select(*columns)
    return sorted(str([row[name] for name in columns]) for row in frame.collect())


@pytest.mark.every_disk
def test_each_scan_is_a_version(spark: Any, tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(FIXTURES / "clean-2", disk)
    store = Store(str(out))
    names = {"batches": ["broker", "topic", "baseOffset", "crc"], "checkpoints": ["file", "topic", "offset"]}
    counts = []
    for version in range(2):
        scan(SparkTasks(spark), ScanOptions((str(disk),), brokers={str(disk): "the left/one"}), store)
        made = table_formats.publish(store, "delta")
        assert {"segments", "batches", "checkpoints"} <= set(made)
        for name, columns in names.items():
            table = by_delta(out / name)
            assert table.version() == version
            found = rows(table.to_pyarrow_table(), columns)
            assert found == by_parquet(spark, out, name, columns)
            assert len(found) > 2
        counts.append(by_delta(out / "batches").count())
        log = next((disk / "ledger-0").glob("*.log"))
        log.write_bytes(log.read_bytes()[:900])  # the second scan finds fewer rows
    assert counts[1] == counts[0] - 1
    assert not any(path.name.startswith(".") for path in out.rglob("*.parquet"))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(StoreError, match=r"pip install deltalake$"):
        table_formats.require(Store(str(tmp_path)), "delta")


def test_not_on_a_url() -> None:
    with pytest.raises(StoreError, match="local directory"):
        table_formats.require(Store("memory://out"), "delta")


def test_the_option_is_there() -> None:
    assert "delta" in str(next(each for each in command.command.params if each.name == "table_format").type)
