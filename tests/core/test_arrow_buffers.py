"""Checks that data collected from columns equals the records, in both engines."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from kdump.core.arrow_buffers import ArrowLists, ArrowStrings, header_lists, numbers, numbers_from, pieces
from kdump.core.column_numbers import KEY_START, OFFSET_DELTA, TIMESTAMP_DELTA, VALUE_START
from kdump.core.record_columns import RecordColumns
from kdump.format.numbers import int64
from kdump.log.batch_records import decode_columns, records
from kdump.log.region import DefaultRecordBatch
from tests.conftest import each_segment, iter_regions, some_segments
from tests.each_case import each_case


def string(held: ArrowStrings, number: int) -> bytes | None:
    return bytes(held.data[held.ends[number] : held.ends[number + 1]]) if held.there[number] else None


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 12))
@each_case("window", [1 << 20, 300])
def test_every_record(path: Path, window: int) -> None:
    keys, values, lists = ArrowStrings(), ArrowStrings(), ArrowLists()
    offsets, timestamps, sequence = array("q"), array("q"), array("q")
    expected = []
    for batch in iter_regions(path, window):
        if not isinstance(batch, DefaultRecordBatch):
            continue
        for record in records(batch):
            delta = record.timestampDelta or 0
            said = (record.offset, batch.baseTimestamp + delta, record.sequence, record.key, record.value)
            expected.append((*said, record.headers))
        bases = [array("q", [base]) for base in (batch.baseOffset, batch.baseTimestamp, batch.baseSequence)]
        for columns, _ in decode_columns(batch):
            batch_of = array("i", bytes(4 * len(columns)))
            numbers_from(offsets, columns, OFFSET_DELTA, bases[0], batch_of)
            numbers_from(timestamps, columns, TIMESTAMP_DELTA, bases[1], batch_of)
            numbers_from(sequence, columns, OFFSET_DELTA, bases[2], batch_of, True)
            pieces(keys, columns, KEY_START)
            pieces(values, columns, VALUE_START)
            header_lists(lists, columns)
    found = []
    for row in range(len(offsets)):
        pairs = range(lists.ends[row], lists.ends[row + 1])
        headers = [(string(lists.keys, each), string(lists.values, each)) for each in pairs]
        numbers_of = (offsets[row], timestamps[row], sequence[row])
        found.append((*numbers_of, string(keys, row), string(values, row), headers))
    assert found == expected
    assert len(lists.ends) == len(keys.ends) == len(expected) + 1


def test_one_by_one_is_the_same() -> None:
    strings, lists = ArrowStrings(), ArrowLists()
    for value in (b"", None, b"abc"):
        strings.add(value)
    lists.add([(b"k", None), (b"", b"v")])
    lists.add([])
    assert [string(strings, row) for row in range(len(strings))] == [b"", None, b"abc"]
    assert list(lists.ends) == [0, 2, 2]
    assert [string(lists.values, row) for row in range(2)] == [None, b"v"]


def test_sums_wrap_as_javas() -> None:
    columns = RecordColumns(b"")
    columns.block, columns.count = array("q", [0, 0, 0, 1, 2147483647, 0, -1, 0, -1, 0, 0]), 1
    out, rows = array("q"), array("q")
    batch_of = array("i", [0])
    numbers_from(out, columns, TIMESTAMP_DELTA, array("q", [(1 << 63) - 1]), batch_of)
    assert list(out) == [-(1 << 63)] == [int64(1 << 63)]
    numbers_from(rows, columns, OFFSET_DELTA, array("q", [2]), batch_of, True)
    numbers_from(rows, columns, OFFSET_DELTA, array("q", [-1]), batch_of, True)
    assert list(rows) == [1, -1]


def test_nothing_is_nothing() -> None:
    columns, strings, lists, out = RecordColumns(b""), ArrowStrings(), ArrowLists(), array("q")
    pieces(strings, columns, KEY_START)
    header_lists(lists, columns)
    numbers(out, columns, OFFSET_DELTA)
    numbers_from(out, columns, OFFSET_DELTA, out, array("i"))
    assert (len(strings), len(lists.ends), len(out)) == (0, 1, 0)
