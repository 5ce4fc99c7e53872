"""Checks that results computed from the headers of many batches equal those from single headers, in both engines."""

from __future__ import annotations

from array import array
from itertools import islice
from operator import attrgetter

import pytest

from kdump.core.arrow_buffers import batch_checksums, batch_last_sequences, batch_numbers
from kdump.core.batch_scan import read_one_header
from kdump.core.column_numbers import ATTRIBUTES, BASE_TIMESTAMP, BATCH_END, BATCH_START, LAST_OFFSET, RECORD_COUNT
from kdump.core.header_columns import HeaderColumns, add_producers, batch_ages, by_codec
from kdump.core.record_checks import invalid_header
from kdump.core.record_columns import RecordColumns, decode
from kdump.format.batch_header import BATCH_HEADER, BatchHeader
from kdump.log.region import DefaultRecordBatch
from tests.conftest import iter_regions, segments

FIELDS = (
    ("size", (BATCH_END, BATCH_START)),
    ("lastOffset", (LAST_OFFSET,)),
    ("attributes", (ATTRIBUTES,)),
    ("baseTimestamp", (BASE_TIMESTAMP,)),
    ("recordCount", (RECORD_COUNT,)),
)


def headers_of(data: bytes) -> list[BatchHeader]:
    found, at = [], 0
    while at < len(data):
        found.append(BATCH_HEADER.read(data, at))
        at += found[-1].size
    return found


def columns_of(data: bytes, shift: int) -> HeaderColumns:
    """Return the headers of the batches that fill `data`."""
    heads, at = HeaderColumns(data, shift), 0
    while at < len(data):
        one = read_one_header(data[at:], 0)
        one.block[BATCH_START] += at
        one.block[BATCH_END] += at
        heads.block += one.block
        heads.count += 1
        at = one.block[BATCH_END]
    return heads


@pytest.fixture(scope="module")
def stretch() -> bytes:
    """Return valid batches of every codec and kind, of producers with every sequence number, including the
    wraparound."""
    made = b""
    for path in segments():
        for batch in islice(iter_regions(path, 1 << 20), 5):
            if isinstance(batch, DefaultRecordBatch) and batch.crcValid and not batch.problems and batch.size < 100_000:
                made += b"".join(batch.chunks(0, batch.size))
    one = bytearray(made[: BATCH_HEADER.read(made).size])
    for sequence, last in ((2147483647, 0), (2147483647, 1), (2147483640, 7), (2147483640, 8), (0, 2147483647)):
        one[23:27], one[53:57] = last.to_bytes(4, "big"), sequence.to_bytes(4, "big")
        made += one
    return made


@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (3, 8), (0, None)])
def test_columns(stretch: bytes, bounds: tuple[int, int | None]) -> None:
    heads = columns_of(stretch, 1000)
    first, stop = bounds[0], len(heads) if bounds[1] is None else bounds[1]
    headers = headers_of(stretch)[first:stop]
    assert len(headers) == stop - first
    for name, columns in FIELDS:
        out = array("q", [7])
        batch_numbers(out, heads, first, stop, *columns)
        assert out.tolist() == [7, *map(attrgetter(name), headers)], name
    out = array("q")
    batch_numbers(out, heads, first, stop, BATCH_START, -1, heads.shift)
    assert out.tolist() == [heads.of(row, BATCH_START) + 1000 for row in range(first, stop)]
    for fill, name in ((batch_checksums, "crc"), (batch_last_sequences, "lastSequence")):
        out = array("q", [7])
        fill(out, heads, first, stop)
        assert out.tolist() == [7, *map(attrgetter(name), headers)], name


def test_sums(stretch: bytes) -> None:
    heads = columns_of(stretch, 0)
    headers = headers_of(stretch)
    assert len({header.codec for header in headers}) > 2
    for sums in by_codec(heads, 2, len(heads)):
        mine = [header for header in headers[2:] if header.codec == sums.codec]
        said = (len(mine), sum(header.recordCount for header in mine), sum(header.size for header in mine))
        assert (sums.batches, sums.records, sums.bytes) == said
    seen = batch_ages(heads, 2, len(heads))
    timed = [header for header in headers[2:] if header.maxTimestamp >= 0]
    assert seen.newest == max(header.maxTimestamp for header in timed)
    assert seen.oldest == min(header.baseTimestamp for header in timed if header.baseTimestamp >= 0)
    assert seen.negative == sum(header.maxTimestamp < 0 and header.recordCount > 0 for header in headers[2:])
    assert batch_ages(heads, 0, 0) == (-1, -1, 0)


def test_sums_by_producer(stretch: bytes) -> None:
    heads = columns_of(stretch, 0)
    mine: dict[tuple[int, int], list[BatchHeader]] = {}
    for header in headers_of(stretch):
        if header.producerId >= 0:
            mine.setdefault((header.producerId, header.producerEpoch), []).append(header)
    assert len(mine) > 2
    sums: dict[tuple[int, int], list[int]] = {}
    for first, stop in ((0, 1), (1, 1), (1, 7), (7, len(heads))):
        add_producers(sums, heads, first, stop)
    assert sums == {
        key: [
            len(own),
            sum(header.recordCount for header in own),
            sum(header.size for header in own),
            min(header.maxTimestamp for header in own),
            max(header.maxTimestamp for header in own),
            min(header.baseOffset for header in own),
            max(header.lastOffset for header in own),
        ]
        for key, own in mine.items()
    }


def record(key: bytes) -> bytes:
    body = b"\0\0\0\1\1" + b"\2" + bytes([2 * len(key)]) + key + b"\1"
    return bytes([2 * len(body)]) + body


def is_text(key: bytes) -> bool:
    try:
        return "\0" not in key.decode()
    except UnicodeDecodeError:
        return False


def test_header_keys_are_text_as_python_has_it() -> None:
    edges = [0, 1, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC]
    edges += [0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    keys = [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in edges for b in edges]
    keys += [bytes([a, b, c]) for a in edges for b in edges for c in (0x41, 0x80, 0xBF, 0xC2)]
    keys += [bytes([a, b, c, 0x80]) for a in edges for b in edges for c in (0x7F, 0x80)]
    keys += [b"", "clé".encode(), "鍵🔑".encode(), b"a\0b"]
    for key in keys:
        columns = RecordColumns(record(key))
        assert decode(columns, 0, len(columns.data), 1, True) == len(columns.data)
        assert invalid_header(columns, 0) == is_text(key), key
