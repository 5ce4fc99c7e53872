"""A batch that the end of its file truncates: its complete records are shown by inspect, in the table records, and
saved by salvage and carve."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kdump
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.varint import read_varint
from tests import craft
from tests.command import objects, run
from tests.conftest import FIXTURES, sample

FIRST = f"{0:020}.log"
HEADER = BATCH_HEADER.size


def ends(batch: bytes) -> list[int]:
    """Return where each record of an uncompressed batch ends."""
    found, at = [], HEADER
    while at < len(batch):
        size, start = read_varint(batch, at, len(batch), "Record", "length")
        at = start + size
        found.append(at)
    return found


def of_records(rows: list[dict[str, object]], first: int) -> list[tuple[object, ...]]:
    return [
        tuple(row[name] for name in ("offset", "timestamp", "key", "value", "headers"))
        for row in rows
        if row["type"] == "record" and int(str(row["offset"])) >= first
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("share", range(6))
def test_the_complete_records_before_the_end(share: int, tmp_path: Path) -> None:
    data = (FIXTURES / "disk-1" / "orders-none-0" / FIRST).read_bytes()
    *before, last = craft.split(data)
    first, start = int.from_bytes(last[:8], "big"), sum(map(len, before))
    (tmp_path / "whole.log").write_bytes(data)
    known = of_records(objects("inspect", tmp_path / "whole.log", "--records"), first)
    bounds = ends(last)
    edges = [HEADER, bounds[0] - 1, bounds[0], bounds[-2], bounds[-1] - 1]
    for size in sorted({*edges, *sample(range(HEADER, len(last)), 1200, "torn")})[share::6]:
        place = tmp_path / str(size)
        log = craft.write_file(place / "t-0" / FIRST, data[: start + size])
        complete = sum(end <= size for end in bounds)
        rows = objects("inspect", log, "--records")
        assert of_records(rows, first) == known[:complete], size
        damaged = [row["offset"] for row in rows if row.get("damaged")]
        assert damaged == [offset for offset, *_ in known[:complete]]
        assert of_table(log) == [(row["offset"], row.get("damaged", False)) for row in rows if row["type"] == "record"]
        assert not any(row["type"] == "finding" for row in rows)
        (torn,) = [row for row in rows if row["type"] == "region"]
        assert (f"{complete} of its {len(bounds)} records are complete" in str(torn["reason"])) == bool(complete)
        objects("salvage", place / "t-0", "--out", place / "saved", "--damaged-records", status=1)
        carved = objects("carve", log, "--out", place / "carved")
        marks = [(row["position"], row["records"], row["recordCount"]) for row in carved if row["type"] == "tornBatch"]
        assert marks == ([(start, complete, len(bounds))] if complete else []), size
        for out in ("saved", "carved"):
            assert of_records(objects("inspect", place / out, "--records"), first) == known[:complete], (out, size)
            assert objects("verify", place / out)[-1]["findings"]["error"] == 0


def of_table(log: Path, *options: str) -> list[tuple[int, bool]]:
    """Return the offsets of the records in the table that export writes, and whether they are damaged."""
    out = log.parent.parent / "rows.parquet"
    if options:
        assert run("export", log, "--out", out, *options).exit_code < 2
    table = pq.read_table(out) if options else pa.table(kdump.records(log))
    return [(row["offset"], row["damaged"]) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--offset", "2.."), [(2, False), (3, True), (4, True)]),
        (("--offset", "..3"), [(0, False), (1, False), (2, False), (3, True)]),
        (("--offset", "2..", "--producer-id", "999"), []),  # of which its header says the same
        (("--producer-id", "-1"), [(0, False), (1, False), (2, False)]),  # what it lacks is unknown, and left out
    ],
)
def test_a_selection_of_its_records(options: tuple[str, ...], expected: list[tuple[int, bool]], tmp_path: Path) -> None:
    batch = craft.batch([craft.record(number, b"k", b"1") for number in range(3)])
    log = craft.write_file(tmp_path / "t-0" / FIRST, batch + craft.rebase(batch, 3)[:-4])
    rows = [row for row in objects("inspect", log, "--records", *options) if row["type"] == "record"]
    assert [(row["offset"], row.get("damaged", False)) for row in rows] == expected
    assert of_table(log, *options) == expected
    for offset, is_damaged in expected:
        extracted = run("inspect", log, "--offset", str(offset), "--extract", "value")
        assert (extracted.stdout, "is incomplete" in extracted.stderr) == ("1", is_damaged)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4", "snappy"])
def test_a_compressed_batch_has_none(codec: str, tmp_path: Path) -> None:
    data = craft.batch([craft.record(number, b"k", b"value %d" % number) for number in range(50)], codec)
    log = craft.write_file(tmp_path / "t-0" / FIRST, craft.one(b"", 0) + craft.rebase(data, 1)[:-3])
    assert [row["type"] for row in objects("inspect", log, "--records")] == ["record", "region"]
    assert [row["batches"] for row in objects("carve", log) if row["type"] == "carveSummary"] == [1]


def test_a_wrong_length_is_not_the_end_of_the_file(tmp_path: Path) -> None:
    """Valid batches follow: the file does not end within this one."""
    wrong = craft.patch(craft.batch([craft.record(0, b"k", b"1")], offset=1), crc=False, batchLength=100_000)
    log = craft.write_file(tmp_path / "t-0" / FIRST, craft.one(b"", 0) + wrong + craft.one(b"", 2))
    assert [row["type"] for row in objects("carve", log)].count("batch") == 2


def test_a_torn_batch_larger_than_the_window(tmp_path: Path) -> None:
    records = [craft.record(number, b"k", bytes(700_000)) for number in range(10)]
    log = craft.write_file(tmp_path / "t-0" / FIRST, craft.batch(records)[:-1_000_000])
    assert [row["records"] for row in objects("carve", log, "--out", tmp_path / "out") if row["type"] == "run"] == [8]
    assert len(of_records(objects("inspect", log, "--records"), 0)) == 8
