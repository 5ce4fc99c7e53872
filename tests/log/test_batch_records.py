"""Records read by the fast loop and by the declared layout, in pieces of any size, from valid and false batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import snappy
from hypothesis import given
from hypothesis import strategies as st

from kdump.core.record_columns import RecordColumns, decode, headers
from kdump.format.codec import decompress
from kdump.format.errors import DecodeError
from kdump.format.layout import Span
from kdump.format.record import RECORD
from kdump.io.run import Limits
from kdump.log import batch_records, legacy_records
from kdump.log.batch_records import records
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from tests import craft
from tests.conftest import (
    FIXTURES,
    SEED,
    batches,
    covering,
    examples,
    facts,
    kinds_of,
    numbers_in,
    read_regions,
    sample,
    segment,
    segments,
    some_segments,
)
from tests.each_case import each_case

PIECES = (1, 7, 4096)
V2_SEGMENTS = [path for path in segments() if "legacy" not in str(path) or "upgraded" in str(path)]


def payload_of(batch: Batch) -> bytes:
    """Return the decompressed records of a v2 batch, using only the codec."""
    size = batch.size - craft.HEADER
    pieces = batch.chunks(craft.HEADER, size)
    return b"".join(decompress(batch.compression, pieces, limit=1 << 28, size=size)) if size else b""


def only(data: bytes, **options: Any) -> Batch:
    """Return the single batch in `data`."""
    (batch,) = batches(read_regions(data, **options))
    return batch


def read(data: bytes, **options: Any) -> tuple[list[Record], list[str], Reading[Batch]]:
    """Return the records of a batch, the codes of its problems, and the reading."""
    reading = Reading(only(data, **options))
    found = list(records(reading))
    return found, [problem.code for problem in reading.problems], reading


# The fast loop and the layout

Row = tuple[Any, ...]
Wrong = tuple[str, int] | None


def by_layout(data: bytes, count: int) -> tuple[list[Row], Wrong]:
    """Return the records as declared by RECORD, field by field, and field and position of the first error."""
    rows: list[Row] = []
    position = 0
    for _ in range(count):
        walk = RECORD.walk(data, position, len(data))
        spans: list[Span] = []
        try:
            spans.append(next(walk))
            end = position + spans[0].size + spans[0].value
            if not position + spans[0].size <= end <= len(data):
                return rows, ("length", position)
            for span in RECORD.walk(data, position, end):
                if span.position > position:
                    spans.append(span)
                    wrong = lie(span)
                    if wrong:
                        return rows, wrong
        except DecodeError as error:
            if error.field in ("key", "value", "headerKey", "headerValue"):
                return rows, (spans[-1].field.name, spans[-1].position)
            return rows, (error.field, error.position)
        if spans[-1].position + spans[-1].size != end:
            return rows, ("length", position)
        rows.append((position, end, *values(spans)))
        position = end
    return rows, None


def lie(span: Span) -> Wrong:
    """Return rules that the layout does not contain: which sizes and counts may be negative."""
    least = {"keySize": -1, "valueSize": -1, "headersCount": 0, "headerKeySize": 0, "headerValueSize": -1}
    if span.field.name in least and span.value < least[span.field.name]:
        return span.field.name, span.position
    return None


def values(spans: list[Span]) -> Row:
    by_name = {span.field.name: span.value for span in spans if span.depth == 0}
    keys = [span.value for span in spans if span.field.name == "headerKey"]
    return (
        by_name["attributes"],
        by_name["timestampDelta"],
        by_name["offsetDelta"],
        by_name["key"],
        by_name["value"],
        list(zip(keys, [span.value for span in spans if span.field.name == "headerValue"])),
    )


def by_loop(data: bytes, count: int) -> tuple[list[Row], Wrong]:
    columns = RecordColumns(data)
    wrong = None
    try:
        decode(columns, 0, len(data), count, True)
    except DecodeError as error:
        wrong = error.field, error.position
    rows = []
    for i in range(len(columns)):
        key, value = (
            None if size < 0 else data[start : start + size]
            for start, size in (
                (columns.key_start[i], columns.key_size[i]),
                (columns.value_start[i], columns.value_size[i]),
            )
        )
        found = headers(data, columns.headers_start[i], columns.headers_count[i], columns.end[i])
        numbers = columns.attributes[i], columns.timestamp_delta[i], columns.offset_delta[i]
        rows.append((columns.start[i], columns.end[i], *numbers, key, value, found))
    return rows, wrong


def check_twins(data: bytes, count: int) -> None:
    rows, wrong = by_loop(data, count)
    expected, declared = by_layout(data, count)
    assert rows == expected
    if wrong and wrong[0] == "headersCount" and declared and declared != wrong:
        # The loop does not try a count that exceeds the remaining bytes.
        assert declared[1] > wrong[1]
    else:
        assert wrong == declared


@pytest.mark.sampled
@each_case("path", some_segments([pytest.param(p, id=str(p.relative_to(FIXTURES))) for p in V2_SEGMENTS], 8))
def test_the_loop_equals_the_layout(path: Path) -> None:
    for batch in batches(read_regions(path)):
        if isinstance(batch, DefaultRecordBatch):
            data = payload_of(batch)
            rows, wrong = by_loop(data, batch.header.recordCount)
            assert (rows, wrong) == by_layout(data, batch.header.recordCount)
            assert wrong is None
            assert [row[7] for row in rows] == [record.headers for record in records(batch)]
            assert [row[5:7] for row in rows] == [(record.key, record.value) for record in records(batch)]


PAYLOADS = [
    payload_of(batch)
    for name in ("clean-1/orders-gzip-0", "clean-1/payments-0", "clean-1/kafkajs-none-0", "clean-1/users-0")
    for batch in batches(read_regions(segment(name)))[:3]
]


@pytest.mark.sampled
@examples(400)
@given(
    st.sampled_from(PAYLOADS),
    st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=3)), max_size=4),
    st.integers(0, 400),
)
def test_the_loop_equals_the_layout_on_corrupt_bytes(data: bytes, wrong: list[tuple[int, bytes]], cut: int) -> None:
    for position, junk in wrong:
        data = craft.overwrite(data, position % max(1, len(data)), junk)[: len(data)]
    check_twins(data[: len(data) - cut], 10)


@pytest.mark.sampled
@each_case("data", PAYLOADS[::4])
def test_the_loop_equals_the_layout_for_every_flip(data: bytes) -> None:
    data = data[:220]
    for bit in sample(range(8 * len(data)), 7, data):  # the odd step reaches every bit of a byte
        check_twins(craft.flip(data, bit), 3)


@pytest.mark.sampled
@examples()
@given(st.binary(max_size=60))
def test_the_loop_equals_the_layout_on_any_bytes(data: bytes) -> None:
    check_twins(data, 5)


# Pieces


def in_pieces(size: int) -> Callable[..., Iterator[bytes]]:
    def rechunked(*args: Any, **options: Any) -> Iterator[bytes]:
        for piece in decompress(*args, **options):
            for start in range(0, len(piece), size):
                yield piece[start : start + size]

    return rechunked


def facts_in_pieces(data: bytes | Path, size: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(batch_records, "decompress", in_pieces(size))
    monkeypatch.setattr(legacy_records, "decompress", in_pieces(size))
    found = read_regions(data)
    for batch in batches(found):
        batch.window.size = size
    return [facts(region) for region in found]


SPLIT = covering(product(segments(), PIECES), 12, lambda each: [each[1], *kinds_of(each[0])], "pieces")


@pytest.mark.sampled
@each_case("path, size", SPLIT)
def test_pieces(path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [facts(region) for region in read_regions(path)]
    assert facts_in_pieces(path, size, monkeypatch) == expected


CODEC_SEGMENTS = [
    f"{where}-0"
    for where in ("clean-1/orders-none", "clean-1/orders-gzip", "clean-1/librdkafka-snappy", "clean-1/franz-zstd")
] + ["legacy/v0-client09-snappy-0", "legacy/v1-client010-gzip-0", "legacy/v1-broker28-lz4-0"]


@pytest.mark.sampled
@each_case("name", CODEC_SEGMENTS)
def test_pieces_of_corrupt_payloads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage gives the same result however the payload is split: the payload is damaged before it is compressed
    again."""
    whole = craft.split(segment(name).read_bytes())[0]
    rng = random.Random(3)
    for _ in range(60 if SEED else 7):
        hurt = repack(whole, rng)
        expected = [facts(region) for region in read_regions(hurt)]
        for size in (1, 7, 50):
            with monkeypatch.context() as patched:
                assert facts_in_pieces(hurt, size, patched) == expected


def repack(whole: bytes, rng: random.Random) -> bytes:
    """Return the batch with a few bytes of its decompressed payload overwritten, or its end removed."""
    batch = only(whole)
    if isinstance(batch, LegacyRecordBatch):
        bounds = legacy_records.value_bounds(batch)
        pieces = batch.chunks(bounds.valuePosition, bounds.valueSize)
        data = b"".join(
            decompress(batch.compression, pieces, limit=1 << 28, size=bounds.valueSize, ignore_header_checksum=True)
        )
    else:
        data = payload_of(batch)
    for _ in range(rng.randrange(1, 4)):
        data = craft.overwrite(data, rng.randrange(len(data)), rng.randbytes(rng.randrange(1, 3)))
    data = data[: rng.randrange(len(data))] if rng.random() < 0.3 else data
    if isinstance(batch, LegacyRecordBatch):
        return craft.wrapper(batch.magic, data, batch.compression, offset=batch.lastOffset)
    assert batch.recordCount is not None
    return craft.batch(data, batch.compression, count=batch.recordCount)


# Large records


@each_case("codec", craft.CODECS)
def test_a_record_larger_than_the_window(codec: str) -> None:
    value = random.Random(1).randbytes(2_500_000) + bytes(2_500_000)
    rows = [craft.record(0, b"a", b"first"), craft.record(1, b"b", value, [(b"h", value[:5000])])]
    data = craft.batch([*rows, craft.record(2, b"c", b"last")], codec)
    found, problems, _ = read(data, window_size=4096)
    assert [record.key for record in found] == [b"a", b"b", b"c"]
    assert found[1].value == value
    assert found[1].headers == [(b"h", value[:5000])]
    assert found[2].value == b"last"
    assert not problems


@each_case("codec", craft.CODECS)
def test_records_across_windows(codec: str) -> None:
    rng = random.Random(2)
    expected = [rng.randbytes(rng.randrange(3000)) for _ in range(300)]
    data = craft.batch([craft.record(i, value=value) for i, value in enumerate(expected)], codec)
    found, problems, _ = read(data, window_size=512)
    assert [record.value for record in found] == expected
    assert [record.index for record in found] == list(range(300))
    assert not problems


# False batches

TWO = [craft.record(0, b"k", b"v"), craft.record(1, None, None)]


@each_case("codec", craft.CODECS)
@each_case(
    "count, read_in_spite, code",
    [
        (3, 2, "record-count-mismatch"),
        (2147483647, 2, "record-count-mismatch"),
        (1, 1, "record-count-mismatch"),
        (0, 0, "record-count-mismatch"),
        (-1, 0, "record-count-mismatch"),
        (-2147483648, 0, "record-count-mismatch"),
    ],
)
def test_count_mismatch(codec: str, count: int, read_in_spite: int, code: str) -> None:
    data = craft.batch(TWO, codec, count=2, recordCount=count)
    found, problems, reading = read(data)
    assert [record.key for record in found] == [b"k", None][:read_in_spite]
    assert problems == [code]
    assert reading.batch.crcValid


def test_a_batch_of_nothing() -> None:
    for data in (craft.batch([]), craft.batch([], lastOffsetDelta=9)):
        found, problems, _ = read(data)
        assert (found, problems) == ([], [])
    found, problems, _ = read(craft.batch([], recordCount=2, lastOffsetDelta=1))
    assert (found, problems) == ([], ["record-count-mismatch"])


@each_case("codec", craft.CODECS)
@each_case("extra", [b"\0", b"\x01", b"junk behind", bytes(5000)])
def test_bytes_behind_the_last_record(codec: str, extra: bytes) -> None:
    found, problems, reading = read(craft.batch(b"".join(TWO) + extra, codec, count=2))
    assert len(found) == 2
    assert problems == ["record-malformed"]
    (problem,) = reading.problems
    start = 0 if codec != "none" else craft.HEADER
    assert problem.position == start + len(b"".join(TWO))
    assert problem.space == ("" if codec == "none" else codec)


@each_case(
    "record, field",
    [
        (craft.varint(-5) + bytes(9), "length"),
        (craft.varint(0), "attributes"),
        (craft.varint(200_000_000) + bytes(30), "length"),
        (b"\xff\xff\xff\xff\xff\x01" + bytes(20), "length"),
        (craft.varint(6) + b"\0\0\0" + craft.varint(-2) + craft.varint(-1) + b"\0", "keySize"),
        (craft.varint(6) + b"\0\0\0" + craft.varint(9) + craft.varint(-1) + b"\0", "keySize"),
        (craft.varint(6) + b"\0\0\0" + craft.varint(-1) + craft.varint(9) + b"\0", "valueSize"),
        (craft.varint(6) + b"\0\0\0" + craft.varint(-1) * 2 + craft.varint(-1), "headersCount"),
        (craft.varint(6) + b"\0\0\0" + craft.varint(-1) * 2 + craft.varint(1), "headersCount"),
        (craft.varint(8) + b"\0\0\0" + craft.varint(-1) * 2 + craft.varint(1) + craft.varint(-1) * 2, "headerKeySize"),
        (craft.varint(8) + b"\0\0\0" + craft.varint(-1) * 2 + craft.varint(1) + b"\0\x0a", "headerValueSize"),
        (craft.varint(8) + b"\0\0\0" + craft.varint(-1) * 2 + b"\0" + b"xx", "length"),
        (craft.varint(6) + b"\0\xff\xff\xff\xff\xff", "timestampDelta"),
    ],
)  # fmt: skip
def test_one_lie_a_field(record: bytes, field: str) -> None:
    for codec in ("none", "lz4"):
        data = craft.batch([TWO[0], record, TWO[1]], codec, count=3)
        found, problems, reading = read(data)
        assert [r.key for r in found] == [b"k"]
        assert problems == ["header-key-invalid" if field == "headerKeySize" else "record-malformed"]
        assert reading.problems[0].field == field
        assert not reading.batch.problems  # decoding does not write into a batch
        assert read(data, window_size=61)[1] == problems


@each_case("codec", craft.CODECS[1:])
def test_a_payload_that_breaks_off(codec: str) -> None:
    """The records before the error are returned, and its position in the file is reported."""
    rng = random.Random(4)
    rows = [craft.record(i, value=rng.randbytes(3000)) for i in range(100)]
    packed = craft.compress(codec, b"".join(rows))
    half = craft.batch([], codec, payload=packed[: len(packed) // 2], recordCount=100, lastOffsetDelta=99)
    found, problems, reading = read(half)
    assert 0 < len(found) < 60
    assert problems == ["decompression-failed"]
    (problem,) = reading.problems
    assert problem.space == ""
    assert craft.HEADER < problem.position <= len(half)


def test_the_limit_of_what_is_decompressed() -> None:
    data = craft.batch([craft.record(i, value=bytes(1000)) for i in range(100)], "zstd")
    found, problems, _ = read(data, limits=Limits(max_decompressed_size=50_000))
    assert len(found) == 49
    assert problems == ["decompression-failed"]


@each_case("codec", ["gzip", "snappy", "lz4", "zstd"])
@each_case("behind", [0, 30, 40_000])
def test_a_record_that_claims_more_than_the_limit(codec: str, behind: int) -> None:
    """No memory is allocated for it. It is damage if the payload cannot hold it, whatever the limit."""
    lie = craft.varint(2_000_000_000) + bytes(behind)
    for limit in (50_000, 1 << 28):
        limits = Limits(max_decompressed_size=limit)
        found, problems, reading = read(craft.batch([TWO[0], lie], codec, count=2), limits=limits)
        assert (len(found), problems) == (1, ["record-malformed"])
        (problem,) = reading.problems
        assert (problem.field, numbers_in(problem.reason)) == ("length", [2_000_000_000, behind])


@each_case("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_record_that_only_the_limit_forbids(codec: str) -> None:
    data = craft.batch([TWO[0], craft.record(1, value=bytes(60_000))], codec)
    found, problems, reading = read(data, limits=Limits(max_decompressed_size=50_000))
    assert (len(found), problems) == (1, ["decompression-failed"])
    (problem,) = reading.problems
    assert (problem.is_ours, problem.field, numbers_in(problem.reason)) == (True, "output", [50_000])


def test_an_unknown_codec() -> None:
    found, problems, reading = read(craft.batch(TWO, attributes=5))
    assert (found, problems) == ([], ["decompression-failed"])
    assert reading.batch.compression == "unknown(5)"


# What the header states about the records


def test_a_sequence_wraps() -> None:
    whole = craft.split(segment("clean-1/orders-gzip-0").read_bytes())[0]
    found, problems, reading = read(craft.patch(whole, baseSequence=2147483645))
    assert not problems
    assert [record.sequence for record in found[:5]] == [2147483645, 2147483646, 2147483647, 0, 1]
    assert reading.batch.lastSequence == len(found) - 4
    without, _, reading = read(craft.patch(whole, baseSequence=-1))
    assert {record.sequence for record in without} == {-1}
    assert reading.batch.lastSequence == -1


def test_timestamps() -> None:
    rows = [craft.record(0, timestamp=5), craft.record(1, timestamp=-7), craft.record(2, timestamp=1 << 40)]
    found, _, _ = read(craft.batch(rows, baseTimestamp=1000, maxTimestamp=99))
    assert [(record.timestamp, record.timestampType) for record in found] == [
        (1005, "CreateTime"),
        (993, "CreateTime"),
        (1000 + (1 << 40), "CreateTime"),
    ]
    found, _, _ = read(craft.batch(rows, baseTimestamp=1000, maxTimestamp=99, attributes=0x08))
    assert {(record.timestamp, record.timestampType) for record in found} == {(99, "LogAppendTime")}


def test_a_delete_horizon() -> None:
    """baseTimestamp is then the horizon, and timestamp deltas are relative to it: the timestamps are as they were."""
    (batch,) = [b for b in batches(read_regions(segment("clean-1/users-0"))) if b.hasDeleteHorizonMs]
    (record,) = records(batch)
    assert batch.deleteHorizonMs == batch.baseTimestamp
    assert record.timestampDelta is not None
    assert record.timestampDelta < 0
    assert record.timestamp == batch.maxTimestamp
    rows = [craft.record(0, b"k", None, timestamp=-86_400_000), craft.record(3, timestamp=-86_399_000)]
    data = craft.batch(rows, attributes=0x40, baseTimestamp=1_700_086_400_000, lastOffsetDelta=3)
    found, problems, crafted = read(data)
    assert [r.timestamp for r in found] == [1_700_000_000_000, 1_700_000_001_000]
    assert [r.offset for r in found] == [0, 3]
    assert crafted.batch.deleteHorizonMs == 1_700_086_400_000
    assert not problems


def test_headers() -> None:
    given = [(b"a", b"1"), (b"a", b""), (b"a", None), ("clé".encode(), b"\0\xff"), (b"", b"")]
    found, problems, _ = read(craft.batch([craft.record(0, None, None, given)], "snappy"))
    assert (found[0].key, found[0].value, found[0].headers) == (None, None, given)
    assert (found[0].keySize, found[0].valueSize) == (-1, -1)
    assert not problems


# Messages of v0 and v1


def inner(magic: int, offsets: list[int], **options: Any) -> list[bytes]:
    return [
        craft.message(magic, b"v%d" % i, key=b"k%d" % i, offset=offset, timestamp=100 + i, **options)
        for i, offset in enumerate(offsets)
    ]


@each_case("codec", ["gzip", "snappy", "lz4"])
def test_offsets_in_wrappers(codec: str) -> None:
    """Offsets are absolute in v0 and relative in v1, where the wrapper has that of the last message; a v1 wrapper with
    offset 0 has absolute ones."""
    for magic, offsets, wrapped, expected in (
        (0, [50, 51, 52], 52, [50, 51, 52]),
        (0, [50, 55], 55, [50, 55]),
        (1, [0, 1, 2], 52, [50, 51, 52]),
        (1, [0, 5], 55, [50, 55]),
        (1, [3, 7], 55, [51, 55]),
        (1, [0], 50, [50]),
        (1, [0, 1, 2], 0, [0, 1, 2]),
        (1, [50, 51, 52], 0, [50, 51, 52]),
    ):
        found, problems, reading = read(craft.wrapper(magic, inner(magic, offsets), codec, offset=wrapped))
        assert [record.offset for record in found] == expected
        assert (reading.batch.baseOffset, reading.batch.lastOffset, reading.batch.recordCount) == (
            expected[0],
            wrapped,
            len(offsets),
        )
        assert [record.timestamp for record in found] == ([None] * 9 if not magic else [100, 101, 102])[: len(found)]
        assert all(record.crcValid for record in found)
        assert not problems


def test_the_append_time_of_a_wrapper() -> None:
    data = craft.wrapper(1, inner(1, [0, 1]), offset=9, timestamp=777, attributes=0x08)
    found, problems, _ = read(data)
    assert [(record.timestamp, record.timestampType) for record in found] == [(777, "LogAppendTime")] * 2
    assert not problems
    real = batches(read_regions(segment("legacy/v1-logappend-lz4-0")))
    for batch in real:
        assert {record.timestamp for record in records(batch)} == {batch.maxTimestamp}


def test_raw_snappy_and_old_lz4() -> None:
    """Crafted like those that librdkafka and the 0.9 Java client wrote: a raw block, and a header checksum that
    includes the magic."""
    set_of = b"".join(inner(0, [0, 1]))
    raw = craft.message(0, snappy.compress(set_of), offset=1, attributes=2)
    assert [record.value for record in read(raw)[0]] == [b"v0", b"v1"]
    assert craft.compress("snappy", set_of).startswith(b"\x82SNAPPY\0")
    frame = bytearray(lz4.frame.compress(set_of, block_linked=False, store_size=False))
    frame[6] ^= 0x5A
    found, problems, _ = read(craft.message(0, bytes(frame), offset=1, attributes=3))
    assert ([record.value for record in found], problems) == ([b"v0", b"v1"], [])
    set_of = b"".join(inner(1, [0, 1]))
    frame = bytearray(lz4.frame.compress(set_of, block_linked=False, store_size=False))
    frame[6] ^= 0x5A
    assert read(craft.message(1, bytes(frame), offset=1, attributes=3))[:2] == ([], ["decompression-failed"])


Make = Callable[[int], bytes]


def set_of(*more: bytes, codec: str = "gzip") -> Make:
    """Return a wrapper with one valid message and these bytes after it."""
    return lambda magic: craft.wrapper(magic, [*inner(magic, [0]), *more], codec, offset=1)


def nested(magic: int) -> bytes:
    return craft.wrapper(magic, [*inner(magic, [0]), craft.wrapper(magic, inner(magic, [1]))], offset=1)


def nested_first(magic: int) -> bytes:
    return craft.wrapper(magic, [craft.wrapper(magic, inner(magic, [0])), *inner(magic, [1])], offset=1)


def bare(value: bytes | None, codec: int) -> Make:
    """Return a wrapper whose value is invalid."""
    return lambda magic: craft.message(magic, value, attributes=codec, offset=1)


def cut(less: int) -> Make:
    return lambda magic: craft.wrapper(magic, b"".join(inner(magic, [0, 1]))[:-less], offset=1)


@each_case("magic", [0, 1])
@each_case(
    "make, code, left",
    [
        (nested_first, "message-set-invalid", 0),
        (nested, "message-set-invalid", 1),
        (bare(None, 1), "message-set-invalid", 0),
        (lambda magic: craft.wrapper(magic, b"", offset=1), "message-set-invalid", 0),
        (set_of(codec="zstd"), "message-set-invalid", 0),
        (bare(b"", 1), "decompression-failed", 0),
        (bare(b"plain", 2), "decompression-failed", 0),
        (bare(b"plain", 7), "decompression-failed", 0),
        (cut(1), "record-malformed", 1),
        (cut(20), "record-malformed", 1),
        (set_of(bytes(5)), "record-malformed", 1),
        (set_of(craft.batch(TWO, offset=1)), "magic-unknown", 1),
        (set_of(bytes(8) + b"\xff" * 4 + bytes(30)), "batch-length-invalid", 1),
        (set_of(bytes(8) + b"\x7f" * 4 + bytes(30)), "record-malformed", 1),
    ],
)
def test_message_sets_that_lie(make: Make, code: str, left: int, magic: int) -> None:
    data = make(magic)
    for window in (1 << 20, 61):
        found, problems, reading = read(data, window_size=window)
        assert problems == [code]
        assert len(found) == left
        # A readable, empty wrapper has no messages; an unreadable one has an unknown number.
        empty = any("without messages" in problem.reason for problem in reading.problems)
        assert reading.batch.recordCount == (left or (0 if empty else None))
        # Relative offsets can be computed only with the whole wrapper.
        assert [record.offset for record in found] == ([0, 1][:left] if magic == 0 else [None] * left)


def test_a_lone_message() -> None:
    for magic in (0, 1):
        for key, value in ((None, None), (b"", b""), (b"k", b"v" * 9000)):
            for window in (1 << 20, 61):
                message = craft.message(magic, value, key=key, offset=7, timestamp=55)
                found, problems, reading = read(message, window_size=window)
                (record,) = found
                assert (record.key, record.value, record.offset) == (key, value, 7)
                assert (record.timestamp, reading.batch.maxTimestamp) == ((55, 55) if magic else (None, None))
                assert (record.crcValid, record.raw) == (True, message)
                assert not problems


@each_case("magic", [0, 1])
def test_a_lone_message_whose_sizes_lie(magic: int) -> None:
    sound = craft.message(magic, b"value", key=b"key")
    at = 18 + 8 * magic
    for position, new in ((at, -2), (at, 4), (at, 1 << 30), (at + 7, -2), (at + 7, 4), (at + 7, 6), (at + 7, 1 << 30)):
        lying = craft.fix_crc(craft.overwrite(sound, position, new.to_bytes(4, "big", signed=True)))
        found, problems, reading = read(lying)
        assert (found, problems) == ([], ["record-malformed"])
        assert reading.batch.crcValid


def test_a_wrapper_larger_than_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decompressed twice, with the same result."""
    data = craft.wrapper(1, inner(1, list(range(500))), "lz4", offset=1499)
    expected = facts(only(data))
    monkeypatch.setattr(legacy_records, "KEEP", 1000)
    assert facts(only(data)) == expected
    assert expected["inside"] == (1000, 500)
    assert expected["records"][0]["offset"] == 1000
