"""Headers as columns: what is decoded is what was encoded, whatever the numbers; anything else is a DecodeError."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.errors import DecodeError
from kdump.format.header_planes import decode_headers, differences, encode_headers, planes, read_planes, signed
from tests.conftest import examples, seeded


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.one_of(st.integers(low, high), st.integers(-2, 2), st.sampled_from((low, high)))


LONG, INT, SHORT = integers(64), integers(32), integers(16)
CRC = st.integers(0, (1 << 32) - 1)
HEADERS = st.lists(
    st.tuples(LONG, INT, INT, st.just(2), CRC, SHORT, INT, LONG, LONG, LONG, SHORT, INT, INT), max_size=8
)


@pytest.mark.sampled
@examples()
@given(HEADERS)
def test_headers_return_as_they_were(rows: list[tuple[int, ...]]) -> None:
    stored = b"".join(BATCH_HEADER.struct.pack(*row) for row in rows)
    assert decode_headers(encode_headers(stored)) == stored


def ordinary(count: int, dice: random.Random) -> bytes:
    """Return headers of a busy topic: 40 idempotent producers in turn."""
    offset, time = 0, 1_700_000_000_000
    sequences: dict[int, int] = {}
    found = []
    for _ in range(count):
        producer, records = dice.randrange(1000, 1040), dice.choice((1, 1, 2, 5, 30))
        number = sequences.get(producer, 0)
        sequences[producer] = number + records
        time += dice.randrange(5)
        length = 49 + records * dice.randrange(80, 160)
        first = time - dice.randrange(30)
        row = (offset, length, 7, 2, dice.getrandbits(32), 16, records - 1, first, time, producer, 0, number, records)
        found.append(BATCH_HEADER.struct.pack(*row))
        offset += records
    return b"".join(found)


def test_ordinary_headers_take_less_than_a_fifth() -> None:
    headers = ordinary(4096, seeded("planes"))
    zstandard = pytest.importorskip("zstandard")
    assert len(zstandard.ZstdCompressor().compress(encode_headers(headers))) < 12 * 4096


def test_what_no_writer_writes_is_an_error() -> None:
    dice = seeded("damage")
    data = encode_headers(ordinary(50, dice))
    decoded = 0
    for _ in range(2000):
        damaged = bytearray(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.3 else data)
        for _ in range(dice.randrange(1, 4)):
            if damaged:
                damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        try:
            headers = decode_headers(bytes(damaged))
        except DecodeError:
            continue
        assert len(headers) % BATCH_HEADER.size == 0
        decoded += 1
    assert decoded, "a changed number is another number"


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=20))
def test_planes(numbers: list[int]) -> None:
    stored = planes(numbers)
    column, end = read_planes(stored + b"more", 0, len(numbers))
    assert (list(column), end) == (numbers, len(stored))


@given(st.lists(st.tuples(LONG, LONG), max_size=20))
def test_differences(pairs: list[tuple[int, int]]) -> None:
    actual, predicted = [one for one, _ in pairs], [other for _, other in pairs]
    stored = differences(actual, predicted)
    assert all(0 <= number < 1 << 64 for number in stored)
    assert [(one + other - number) % (1 << 64) for one, other, number in zip(signed(stored), predicted, actual)] == [
        0 for _ in pairs
    ]
