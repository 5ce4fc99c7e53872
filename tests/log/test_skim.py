"""A large record that is read without its value says what the whole one says, damaged or not, cut into any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.check.records import _bad_header
from kdump.format.columns import survey
from kdump.log import payload
from kdump.log.payload import columns_of
from kdump.log.region import BatchV2
from tests import craft
from tests.conftest import iter_regions

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
    """What is said of the records of a batch, and of where they are; and its problems."""
    (batch,) = iter_regions(data, window)
    assert isinstance(batch, BatchV2)
    rows: list[object] = []
    headers = []
    for columns, base in columns_of(batch, **options):
        for row in range(len(columns)):
            numbers = columns.block[11 * row : 11 * row + 11]
            start = 0 if columns.skimmed else numbers[0]
            places = [base + numbers[0], *(number - start for number in (numbers[1], numbers[7], numbers[9]))]
            key = bytes(columns.data[numbers[5] : numbers[5] + max(0, numbers[6])])
            rows.append((places, list(numbers[2:5]), numbers[6], numbers[8], numbers[10], key))
        headers.append(_bad_header(columns))
        survey(columns, -1, 300, 0)
    first = next((bad for bad in headers if bad is not None), None)
    return rows, first, batch.problems, batch.decoded_to


@pytest.mark.parametrize("codec", ["none", "zstd"])
@given(records=RECORDS, cut=st.integers(0, 60), damage=DAMAGE, count=st.integers(-1, 1), limit=st.integers(2, 40))
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
        patch.setattr(payload, "_at_one_go", lambda batch, space, size, limit: None)
        whole = said(data, 61)
        patch.setattr(payload, "LARGE", limit)
        assert said(data, 61, values=False) == whole
        without_keys = said(data, 1 << 20, keys=False, values=False)
        assert without_keys[1:] == whole[1:]
