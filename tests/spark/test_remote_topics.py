"""Segments in remote storage have their topic from their path, or from the metadata on a disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kdump.io.file_system import add_files
from kdump.log.remote_objects import RemoteStorage
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import Store, StoreError
from kdump.tables.declarations import UNITS
from tests.conftest import DISKS, few
from tests.spark import same
from tests.spark.test_incremental import Here

TIERED = DISKS / "kafka-4.3-tiered"
ID = "wAa01FzqTkayNnf6QOm_2w"
COLUMNS = ["topic", "partition", "file"]
COPIED = TIERED / "tier" / "kafka-tiered-storage" / f"tiered-0-{ID}"


def of_segments(*paths: Path) -> set[tuple[str | None, int | None]]:
    """Return topic and partition of the copied segments, as the data source reads them, also with a filter."""
    rows = same.rows("batches", list(paths), COLUMNS)
    found = {(row["topic"], row["partition"]) for row in rows if "/tier/" in row["file"]}
    assert found
    return found


def by_scan(out: Path, *paths: Path) -> set[tuple[str | None, int | None]]:
    same.scanned(Here(), ScanQuery(tuple(map(str, paths)), records=True), Store(str(out)))
    found = set()
    for table in ("batches", "segments", "records"):
        for file in same.files_in(out, table):
            for row in pq.read_table(file, columns=COLUMNS).to_pylist():
                if "/tier/" in row["file"]:
                    found.add((row["topic"], row["partition"]))
    return found


@pytest.mark.parametrize("layout", few([f"tiered-0-{ID}", f"tiered-{ID}/0", f"{ID}/0"], 1))
def test_the_topic_is_that_of_the_path_or_of_the_metadata(layout: str, tmp_path: Path) -> None:
    shutil.copytree(COPIED, tmp_path / "tier" / layout)
    copied, disk = tmp_path / "tier", tmp_path / "disk"
    shutil.copytree(TIERED / "disk" / "__cluster_metadata-0", disk / "__cluster_metadata-0")
    shutil.copy(TIERED / "disk" / "meta.properties", disk)
    alone = ("tiered" if "tiered" in layout else ID, 0)
    assert of_segments(copied) == {alone}
    assert by_scan(tmp_path / "out", copied) == {alone}
    assert of_segments(copied, disk) == {("tiered", 0)}
    assert by_scan(tmp_path / "out", copied, disk) == {("tiered", 0)}  # a second scan, with the disk
    (segment, _) = sorted((copied / layout).glob("*.log"))
    assert of_segments(segment) == {alone}
    assert of_segments(segment, disk) == {("tiered", 0)}


@pytest.mark.every_disk
def test_objects_are_scanned_as_segments_of_their_partition(tmp_path: Path) -> None:
    """Also in tasks; unchanged ones are not read again."""
    disk, tier = (Path(shutil.copytree(TIERED / name, tmp_path / name)) for name in ("disk", "tier"))
    options = ScanQuery((str(disk),), records=True, remote=RemoteStorage(str(tier)))
    store = Store(str(tmp_path / "out"))
    try:
        assert same.scanned(Here(), options, store).kept == 0
        again = same.scanned(Here(), options, store)
        records = [
            row for file in same.files_in(tmp_path / "out", "records") for row in pq.read_table(file).to_pylist()
        ]
        offsets = [row["offset"] for row in records if row["topic"] == "tiered"]
        assert (again.read, sorted(offsets)) == (0, [*range(110_377, 260_000)])
        with pytest.raises(StoreError, match="is in"):
            same.scanned(Here(), options, Store(str(tier / "out")))
        path = next(tier.rglob("*162793*.log"))
        data = bytearray(path.read_bytes())
        data[5000] ^= 1
        path.write_bytes(data)
        assert same.scanned(Here(), options, store).read == 1
        findings = [
            row for file in same.files_in(tmp_path / "out", "findings") for row in pq.read_table(file).to_pylist()
        ]
        assert [(row["code"], row["offset"]) for row in findings if row["severity"] == "error"] == [
            ("crc-mismatch", 162_793)
        ]
        next(tier.rglob("*110377*.log")).unlink()
        assert same.scanned(Here(), options, store).read == 1
        (entry,) = (
            row
            for file in same.files_in(tmp_path / "out", UNITS.name)
            for row in pq.read_table(file).to_pylist()
            if row["topic"] == "tiered"
        )
        assert "the object of this segment" in " ".join(entry["unread"])
    finally:
        add_files({})
