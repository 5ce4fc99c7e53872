"""In whatever order bytes are read, the window returns those of the source, and keeps few of them."""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.io.source import SeekableSource, StreamSource
from kdump.io.window import Window
from kdump.log.region_reader import regions
from tests import craft
from tests.each_case import each_case

DATA = random.Random(5).randbytes(3000)
KINDS = st.sampled_from(["view", "peek", "chunks", "peeks", "reaches"])
LOOKS = st.lists(st.tuples(KINDS, st.integers(0, 3300), st.integers(0, 700)), max_size=12)


@given(LOOKS, st.sampled_from([1, 61, 256, 5000]), st.booleans())
def test_looks(looks: list[tuple[str, int, int]], size: int, stream: bool) -> None:
    file = io.BytesIO(DATA)
    window = Window(StreamSource("-", file) if stream else SeekableSource("file", file), size)
    for kind, position, count in looks:
        expected = DATA[position : position + count]
        if kind == "reaches":
            assert window.reaches(position) == (position <= len(DATA))
        elif kind in ("view", "peek"):
            assert bytes(getattr(window, kind)(position, count)) == expected
        else:
            pieces = [bytes(piece) for piece in getattr(window, kind)(position, count)]
            assert b"".join(pieces) == expected
            assert all(len(piece) <= size for piece in pieces)


@each_case("ahead", [0, 100, 150])
def test_a_source_is_read_once(ahead: int) -> None:
    """Looking ahead to the next header does not read twice."""
    window = Window(SeekableSource("file", io.BytesIO(DATA)), 256)
    position = 0
    while position < len(DATA):
        window.peek(position + ahead, 17)
        assert b"".join(window.chunks(position, 100)) == DATA[position : position + 100]
        position += 100
    assert len(DATA) <= window.bytes_read <= len(DATA) + 17 * len(DATA) // 256


@each_case("hurt", [8 * 70, 8 * 8 + 8, 8 * 16 + 5], ids=["record", "length", "magic"])
def test_a_pipe_is_not_kept_for_a_bad_batch(hurt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept neither in memory nor in a temporary file, however much follows it."""
    for module in ("embedded_batch", "region_reader", "resync"):
        monkeypatch.setattr(f"kdump.log.{module}.LOOK_BACK", 1 << 20)
    monkeypatch.setattr("kdump.io.source.MEMORY", 12 << 20)

    def refuse(**_options: object) -> None:
        raise AssertionError("a temporary file")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    zeros = 40 << 20
    data = craft.one(b"first") + craft.flip(craft.one(b"v" * 100, 1), hurt) + bytes(zeros)
    found = list(regions(Window(StreamSource("-", io.BytesIO(data)))))
    assert found[-1].end == len(data)
    assert found[0].kind == "batch"
