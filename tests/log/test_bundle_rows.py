"""Long lists in the index of a bundle: a segment with as many blocks as there may be, and what no writer writes."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any

import pytest

from kdump.format.container import ContainerReader, ContainerWriter, Frame
from kdump.format.errors import DecodeError
from kdump.io.bundle import rows as bundle_rows
from kdump.io.bundle.rows import TABLE, Located, RowsReader, RowsWriter, StoredRows, TooManyRows, located_of, rows_of
from tests.each_case import each_case

MIB = 1 << 20
STEP = 10


def row(number: int) -> Located:
    return Located(number * STEP + 5, Frame(number * 100, 100, 200, number))


def written(count: int) -> tuple[ContainerReader, StoredRows]:
    file = io.BytesIO()
    container = ContainerWriter(file)
    rows = RowsWriter(container)
    for number in range(count):
        rows.add(row(number))
    found = rows.end()
    container.finish(0)
    data = file.getvalue()
    return ContainerReader(lambda position, size: data[position : position + size], len(data)), found


def reader(container: ContainerReader, stored: Any) -> RowsReader[Located]:
    return RowsReader(container, rows_of(json.loads(json.dumps(stored)), located_of), located_of)


@each_case("count", [0, 1, 100, 5000])
def test_what_was_written_is_read(count: int) -> None:
    container, stored = written(count)
    assert len(json.dumps(stored.rest)) < 2 * TABLE
    assert (len(stored.tables) > 5) == (count == 5000)
    rows = reader(container, stored)
    expected = [row(number) for number in range(count)]
    assert list(rows.after(0)) == expected
    assert rows.find(4) is None
    for number in range(0, count, 7):
        assert rows.find(number * STEP + 5) == rows.find(number * STEP + 14) == row(number)
        assert next(rows.after(number * STEP + 8)) == row(number)
    if count:
        start = count * 2 // 3
        assert list(rows.after(start * STEP + 5)) == expected[start:]
        assert list(rows.after(1 << 60)) == expected[-1:]


@pytest.mark.every_disk
def test_memory_does_not_grow_with_the_rows() -> None:
    tracemalloc.start()
    try:
        container, stored = written(10_000)
        writing = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        assert sum(1 for _ in reader(container, stored).after(0)) == 10_000
        assert tracemalloc.get_traced_memory()[1] - before < MIB
    finally:
        tracemalloc.stop()
    assert writing < 3 * MIB, "the container itself is in memory here"


def test_a_list_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_rows, "MAX_TABLES", 3)
    with pytest.raises(TooManyRows):
        written(5000)


def line(*positions: int) -> bytes:
    return b"\n".join(json.dumps([position, [8, 1, 1, 1]]).encode() for position in positions)


@each_case(
    "data",
    [
        b"",
        b"[]",
        b"1",
        b"[" * 10_000,
        b"\n" * 50_000,
        line(11, 12),
        line(10, 10),
        line(10, 12, 11),
        line(10, 30),
        line(10, 40),
        b"[10,[1,2,3]]",
        b"[10,[-1,2,3,4]]",
        b"[10.0,[1,2,3,4]]",
        b'["10",[1,2,3,4]]',
        line(10) + b" " * (bundle_rows.MAX_TABLE + 1),
    ],
)
def test_a_table_that_no_writer_wrote(data: bytes) -> None:
    file = io.BytesIO()
    container = ContainerWriter(file)
    frame = container.add(data)
    container.finish(0)
    everything = file.getvalue()
    there = ContainerReader(lambda position, count: everything[position : position + count], len(everything))
    rows = reader(there, [[[10, frame]], [[30, [8, 1, 1, 1]]]])
    with pytest.raises(DecodeError):
        list(rows.after(0))
    with pytest.raises(DecodeError):
        reader(there, [[[10, frame]], [[30, [8, 1, 1, 1]]]]).find(12)


@each_case(
    "value",
    [
        [],
        [[], [], []],
        [[[10, [8, 1, 1, 1]], [10, [8, 1, 1, 1]]], []],
        [[[10, [8, 1, 1, 1]]], [[10, [8, 1, 1, 1]]]],
        [[], [[10, [8, 1, 1, 1]], [9, [8, 1, 1, 1]]]],
        [[[number, [8, 1, 1, 1]] for number in range(2049)], []],
        [{}, 5],
    ],
)
def test_a_list_that_no_writer_wrote(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        rows_of(value, located_of)
