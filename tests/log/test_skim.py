"""A large record that is read without its value gives the same as the complete one, damaged or not, in pieces of any
size."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdump.check.rules.records import _bad_header, record_findings
from kdump.core.record_checks import check_records
from kdump.core.record_columns import headers
from kdump.log import batch_records, legacy_records, skim
from kdump.log.batch_records import decode_columns, records
from kdump.log.legacy_records import messages
from kdump.log.paths import target
from kdump.log.reading import Reading
from kdump.log.region import DefaultRecordBatch, LegacyRecordBatch
from kdump.questions.stats.frequent_items import known_by
from tests import craft
from tests.conftest import examples, iter_regions
from tests.each_case import each_case

DATA = st.none() | st.binary(max_size=30) | st.sampled_from([b"key", b"\xff", b"a\0b", "é".encode() * 20])
KEYS = st.sampled_from([b"", b"h", b"\xc3", b"a\0b", "é".encode() * 30, b"\0\xff"])
RECORDS = st.lists(
    st.builds(
        craft.record,
        delta=st.integers(-5, 300),
        key=DATA,
        value=DATA | st.just(b"v" * 300),
        headers=st.lists(st.tuples(KEYS, DATA), max_size=4),
        timestamp=st.integers(-(1 << 63), (1 << 63) - 1),
        attributes=st.integers(-128, 127),
    ),
    max_size=3,
)
DAMAGE = st.lists(st.tuples(st.integers(0, 200), st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF])), max_size=2)


def said(data: bytes, window: int, **options: bool) -> tuple[object, ...]:
    """Return the facts about the records of a batch and their positions, and the batch's problems."""
    (batch,) = iter_regions(data, window)
    assert isinstance(batch, DefaultRecordBatch)
    rows: list[object] = []
    headers = []
    reading = Reading(batch)
    for columns, base in decode_columns(reading, **options):
        for row in range(len(columns)):
            numbers = columns.block[11 * row : 11 * row + 11]
            start = 0 if columns.skimmed else numbers[0]
            places = [base + numbers[0], *(number - start for number in (numbers[1], numbers[7], numbers[9]))]
            key = bytes(columns.data[numbers[5] : numbers[5] + max(0, numbers[6])])
            rows.append((places, list(numbers[2:5]), numbers[6], numbers[8], numbers[10], key))
        headers.append(_bad_header(columns))
        check_records(columns, -1, 300, 0)
    first = next((bad for bad in headers if bad is not None), None)
    return rows, first, reading.problems, reading.decoded_to


@pytest.mark.sampled
@pytest.mark.parametrize("codec", ["none", "zstd"])
@examples()
@given(records=RECORDS, cut=st.integers(0, 60), damage=DAMAGE, count=st.integers(-1, 1), limit=st.integers(2, 40))
@example(records=[craft.record(value=None)], cut=6, damage=[], count=0, limit=2)  # the payload ends after the length
def test_the_same_is_said(
    codec: str, records: list[bytes], cut: int, damage: list[tuple[int, int]], count: int, limit: int
) -> None:
    content = bytearray(b"".join(records))
    for position, byte in damage:
        if position < len(content):
            content[position] = byte
    content = content[: len(content) - cut] if cut < 30 else content
    packed = craft.compress(codec, bytes(content))
    data = craft.batch(
        [], payload=packed, count=max(0, len(records) + count), attributes=craft.CODECS.index(codec), lastOffsetDelta=9
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_records, "SMALL", 0)
        whole = said(data, 61)
        patch.setattr(batch_records, "LARGE", limit)
        assert said(data, 61, values=False) == whole
        without_keys = said(data, 1 << 20, keys=False, values=False)
        assert without_keys[1:] == whole[1:]


def header_keys(data: bytes, window: int, keep: skim.Keep | None = None) -> tuple[object, ...]:
    """Return the keys of all headers and the values of records with the given keys, and the problems."""
    (batch,) = iter_regions(data, window)
    assert isinstance(batch, DefaultRecordBatch)
    found: list[object] = []
    reading = Reading(batch)
    for columns, _ in decode_columns(reading, keep=keep):
        for row in range(len(columns)):
            (_, end, *_, key_at, key_size, value_at, value_size, at, count) = columns.block[11 * row : 11 * row + 11]
            if columns.skimmed:
                end, key_at, value_at = len(columns.data), 0, max(0, key_size)
            key = bytes(columns.data[key_at : key_at + max(0, key_size)])
            wanted = key == b"key" and value_size >= 0
            value = bytes(columns.data[value_at : value_at + value_size]) if wanted else None
            found.append((key, value, [header for header, _ in headers(columns.data, at, count, end)]))
    return found, reading.problems


@pytest.mark.sampled
@examples()
@given(records=RECORDS, damage=DAMAGE, limit=st.integers(2, 40))
def test_header_keys_and_some_values_are_kept(records: list[bytes], damage: list[tuple[int, int]], limit: int) -> None:
    content = bytearray(b"".join(records))
    for position, byte in damage:
        if position < len(content):
            content[position] = byte
    data = craft.batch([], payload=bytes(content), count=len(records), lastOffsetDelta=9)
    whole = header_keys(data, 61)
    keep = skim.Keep(header_keys=True, value=lambda key: key == b"key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_records, "LARGE", limit)
        for window in (61, 67, 1 << 20):
            assert header_keys(data, window, keep) == whole


MESSAGES = st.lists(
    st.builds(
        craft.message,
        magic=st.sampled_from([0, 1, 1]),
        value=DATA | st.just(b"v" * 300),
        key=DATA | st.just(b"k" * 300),
        offset=st.integers(0, 9),
        attributes=st.sampled_from([0, 0, 0, 1, 8, 0x40]),
        timestamp=st.integers(-1, 1 << 40),
    ),
    max_size=4,
)


def inside(data: bytes, window: int, **options: bool) -> tuple[object, ...]:
    """Return the facts about the messages in a wrapper, or about a single message, and its problems."""
    (batch,) = iter_regions(data, window)
    assert isinstance(batch, LegacyRecordBatch)
    rows = []
    reading = Reading(batch)
    for found in messages(reading, **options):
        key = found.data[found.key_start : found.key_start + max(0, found.keySize)]
        name = known_by(bytes(key), max(0, found.keySize), getattr(found.data, "digest", b""))
        numbers = found.offset, found.timestamp, found.attributes, found.keySize, found.valueSize, found.crcValid
        rows.append((found.timestampType, *numbers, found.end - found.start, found.space_position, name))
    return rows, reading.problems, batch.recordCount, batch.baseOffset, batch.inner_last


@pytest.mark.sampled
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
@examples()
@given(inner=MESSAGES, magic=st.integers(0, 1), cut=st.integers(0, 60), damage=DAMAGE, limit=st.integers(20, 200))
def test_the_same_is_said_of_messages(
    codec: str, inner: list[bytes], magic: int, cut: int, damage: list[tuple[int, int]], limit: int
) -> None:
    content = bytearray(b"".join(inner))
    for position, byte in damage:
        if position < len(content):
            content[position] = byte
    content = content[: len(content) - cut] if cut < 30 else content
    data = craft.wrapper(magic, bytes(content), codec, offset=9)
    if codec == "none":
        data = craft.message(magic, bytes(content), key=b"k" * (limit * 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(legacy_records, "_columns", lambda batch: None)
        whole = inside(data, 61)
        patch.setattr(legacy_records, "KEEP", limit)
        patch.setattr(legacy_records, "HEAD", 200)
        assert inside(data, 61, values=False) == whole
        assert inside(data, 1 << 20, values=False) == whole
        without_keys = inside(data, 1 << 20, keys=False, values=False)
        assert [row[:-1] for row in without_keys[0]] == [row[:-1] for row in whole[0]]  # type: ignore[attr-defined]
        assert without_keys[1:] == whole[1:]


@each_case("value", [b"\0\0\0\0\0\7", b"\0\0\0\0\0\7" + b"rest" * 100, b"\0\0", None])
def test_a_marker_is_read_of_a_record_that_is_cut(value: bytes | None) -> None:
    made = craft.record(key=b"\0\0\0\1", value=value, headers=[(b"large", b"h" * 300)])
    data = craft.batch([made], attributes=0x30, producerId=1, producerEpoch=0)
    whole = next(records(next(iter_regions(data, 61))))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_records, "LARGE", 1)
        patch.setattr(skim, "HEAD", 64)
        cut = next(records(next(iter_regions(data, 61)), values=False))  # type: ignore[arg-type]
    assert cut.is_cut
    assert not whole.is_cut
    assert (cut.key, cut.value) == (whole.key, value and value[:64])
    assert list(record_findings(target("x"), cut)) == list(record_findings(target("x"), whole))
