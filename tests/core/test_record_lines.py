"""Lines written from columns equal those of the plain writer, for any record, in pieces of any size."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump import jsonl
from kdump.decode.decoder_interface import DecodedPart, DecodedRecord
from kdump.log.batch_records import records
from kdump.log.paths import Target, target
from kdump.log.reading import Reading
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.log.selection import Selection
from kdump.questions.inspect import fast_rows
from kdump.questions.inspect.fast_rows import FastRows
from kdump.questions.inspect.views import JsonView
from kdump.render import escape, inspect_json, line_parts
from kdump.render.inspect_json import record_object
from kdump.render.line_parts import DecodedLines
from kdump.render.stdout import Output
from tests import craft
from tests.conftest import batches, each_segment, examples, read_regions, some_segments
from tests.each_case import each_case

AT = target("/kafka/orders-0/00000000000000000000.log")


def plain(target: Target, batch: Batch) -> list[bytes]:
    return [jsonl.line(record_object(target, record)).encode() for record in records(batch)]


def quick(target: Target, batch: DefaultRecordBatch, room: int = 1 << 20) -> list[bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_rows, "ROOM", room)
        held = io.BytesIO()
        stream = io.TextIOWrapper(held)
        output = Output(stream=stream)
        FastRows(output, JsonView(output, records=True), Selection(), records=True).batch(target, Reading(batch))
        output.flush()
    return [line for line in held.getvalue().splitlines() if line.startswith(b'{"type":"record"')]


READINGS = (
    DecodedRecord(DecodedPart({"name": "k\u2028\ud800"}), DecodedPart(None, problem="p", note="\x7f"), {"id": "name"}),
    DecodedRecord(DecodedPart(), DecodedPart([1, "\n"])),
    DecodedRecord(DecodedPart(), DecodedPart()),
)


def check_decoded(target: Target, batch: Batch) -> None:
    """Assert that DecodedLines writes the lines of jsonl, or none."""
    made = DecodedLines()
    for number, record in enumerate(records(batch)):
        reading = READINGS[number % len(READINGS)]
        line = made.line(target, record, reading)
        if line is not None or (batch.crcValid and record.end - record.start < 1000):
            expected = jsonl.line(record_object(target, record, reading)) + "\n"
            assert line == expected.encode("utf-8", "backslashreplace")


def only(data: bytes) -> DefaultRecordBatch:
    (batch,) = batches(read_regions(data))
    assert isinstance(batch, DefaultRecordBatch)
    return batch


@pytest.mark.sampled
@each_case("path", some_segments(each_segment(), 24))
def test_real_records(path: Any) -> None:
    at = target(str(path))
    for batch in batches(read_regions(path)):
        if isinstance(batch, DefaultRecordBatch) and not batch.isControlBatch:
            assert quick(at, batch) == plain(at, batch)
            check_decoded(at, batch)


MARKED = '"\\/\b\f\n\r\t\0\x1b\x7f\x80\x9f\xa0\u07ff\u0800\u200d\u200e\u2010\u2028\u202f\u2066\u206a\ufeff\U00010000'
TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from(MARKED), max_size=30).map(str.encode)
OVERLONG = [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"]
BEYOND = [b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\x80"]
CUT = [b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"ok\xc3("]
ODD = st.sampled_from([*OVERLONG, *BEYOND, *CUT])
DATA = st.one_of(TEXT, ODD, st.binary(max_size=40), st.tuples(TEXT, ODD, TEXT).map(b"".join))
HEADERS = st.lists(st.tuples(DATA, st.none() | DATA), max_size=4)
RECORD = st.builds(
    craft.record,
    delta=st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(0, 100),
    key=st.none() | DATA,
    value=st.none() | DATA,
    headers=HEADERS,
    timestamp=st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-1000, 1000),
    attributes=st.integers(-128, 127),
)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "baseOffset": st.integers(0, 1 << 40) | st.integers((1 << 62) - 2, (1 << 63) - 1),
        "baseTimestamp": LONG,
        "maxTimestamp": LONG,
        "baseSequence": st.integers(-(1 << 31), (1 << 31) - 1) | st.integers((1 << 31) - 5, (1 << 31) - 1),
        "attributes": st.sampled_from([0, 8]),
        "lastOffsetDelta": st.just(5),
    },
)


def test_a_special_byte_at_each_place_of_a_block() -> None:
    """Blocks of eight bytes are escaped at once: each pattern of quotes, and each special character at each place."""
    quotes = [bytes(34 if mask >> bit & 1 else 97 + bit for bit in range(8)) for mask in range(256)]
    places = [(size, place) for size in range(27) for place in range(size)]
    special = [b"x" * place + mark.encode() + b'"' * (size - place) for mark in MARKED for size, place in places]
    texts = [*quotes, *(text + b"\\" + text[:5] for text in quotes), *special, *(bytes([34]) * n for n in range(27))]
    batch = only(craft.batch([craft.record(value=text) for text in texts]))
    assert quick(AT, batch, 1 << 23) == plain(AT, batch)


@pytest.mark.sampled
@examples(25)
@given(st.lists(RECORD, min_size=1, max_size=5), FIELDS, st.booleans())
def test_any_record(parts: list[bytes], fields: dict[str, int], sound: bool) -> None:
    data = craft.batch(parts, **fields)
    if not sound:
        data = data[:17] + bytes(4) + data[21:]
    batch = only(data)
    assert quick(AT, batch) == plain(AT, batch)
    check_decoded(AT, batch)


@pytest.mark.every_disk
@pytest.mark.sampled
@examples(25)
@given(st.lists(RECORD, min_size=1, max_size=8))
def test_any_room(parts: list[bytes]) -> None:
    """However small the buffer, and also for a line that is longer than the buffer."""
    batch = only(craft.batch([*parts, craft.record(value=b"\x01" * 3000)]))
    for room in (0, 700, 3000):
        assert quick(AT, batch, room) == plain(AT, batch)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(line_parts, "LONGEST_DECODED", room + 1)
            lines = DecodedLines()
            found = [lines.line(AT, record, READINGS[2]) for record in records(batch)]
        for line, expected in zip(found, plain(AT, batch)):
            assert line in (None, expected + b"\n")


@pytest.mark.sampled
@examples(25)
@given(st.lists(RECORD, min_size=1, max_size=3), st.booleans(), st.integers(1, 5))
def test_a_line_in_pieces(content: list[bytes], sound: bool, large: int) -> None:
    """Keys, values and headers are split anywhere."""
    data = craft.batch(content)
    batch = only(data if sound else craft.overwrite(data, 17, b"\1\2\3\4"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect_json, "LARGE", large)
        patch.setattr(inspect_json, "PIECE", 3)
        patch.setattr(escape, "PIECE", 3)
        found = [b"".join(inspect_json.record_line(AT, record)) for record in records(batch)]
    assert [line[:-1] for line in found] == plain(AT, batch)
