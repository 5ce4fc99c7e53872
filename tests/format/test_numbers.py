"""Numbers are added and parsed like in Java: examples of Integer.parseInt and Long.parseLong, compared with struct."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kdump.format.numbers import LONG_MAX, LONG_MIN, int32, int64, minus, parse_int, parse_long, plus
from kdump.format.text_files import epoch_checkpoint, offset_checkpoint
from kdump.kafka.checkpoint_file import read_checkpoint
from kdump.log.file_kinds import PRODUCER_SNAPSHOT, SEGMENT, by_name
from tests.craft import write_file
from tests.each_case import each_case
from tests.edges import INT64


@given(INT64, INT64)
def test_sums_wrap(one: int, other: int) -> None:
    for found, exact in ((plus(one, other), one + other), (minus(one, other), one - other)):
        assert LONG_MIN <= found <= LONG_MAX
        assert struct.pack(">q", found) == (exact % (1 << 64)).to_bytes(8, "big")
    assert int32(one) == struct.unpack(">i", struct.pack(">q", one)[4:])[0]
    assert int64(one) == one


@given(INT64 | st.integers())
def test_what_fits_is_parsed(number: int) -> None:
    assert parse_long(str(number)) == (number if LONG_MIN <= number <= LONG_MAX else None)
    assert parse_int(f"{number:+}") == (number if -(1 << 31) <= number < 1 << 31 else None)


@each_case("text", [None, "", "²", "𝟏", "1_0", " 7", "7 ", "7\n", "0x1", "1.0", "--1", "+", "9" * 5000])
def test_what_is_no_number(text: str | None) -> None:
    assert parse_int(text) is None
    assert parse_long(text) is None


def test_names_of_files() -> None:
    assert by_name(f"{LONG_MAX:020}.log") == (SEGMENT, LONG_MAX)
    assert by_name(f"{LONG_MAX:020}.snapshot.deleted") == (PRODUCER_SNAPSHOT, LONG_MAX)
    for number in (LONG_MAX + 1, 10**20 - 1):
        assert by_name(f"{number:020}.log") == by_name(f"{number:020}.snapshot") == (None, None)
    assert by_name("٣" * 20 + ".log") == (None, None)


def test_checkpoints() -> None:
    """partition and epoch are ints, offsets longs."""
    lines = f"0\n3\nt 0 {LONG_MAX}\nt {1 << 31} 0\nt 0 {LONG_MAX + 1}\n".encode()
    assert [line.values.get("offset") for line in offset_checkpoint(lines)][2:5] == [LONG_MAX, None, None]
    lines = f"0\n2\n{(1 << 31) - 1} {LONG_MAX}\n{1 << 31} 0\n".encode()
    assert [line.values.get("startOffset") for line in epoch_checkpoint(lines)][2:4] == [LONG_MAX, None]


def test_a_checkpoint_line_that_begins_with_a_space(tmp_path: Path) -> None:
    """Java's split leaves an empty word before it."""
    path = write_file(tmp_path / "leader-epoch-checkpoint", b"0\n1\n 7\n")
    assert list(epoch_checkpoint(path.read_bytes()))[2].values == {}
    found = read_checkpoint(str(path), epoch_checkpoint)
    assert (found.entries, str(found.error)) == ([], 'For input string: ""')
