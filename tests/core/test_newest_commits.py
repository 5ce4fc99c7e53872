"""A commit that is kept as bytes decodes, without a problem or a note, to a key and a value of an offset commit."""

from __future__ import annotations

import random
import struct

from kdump.core.newest_commits import MAX_BYTES, NewestCommits
from kdump.core.record_columns import RecordColumns, decode_all
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.coordinator_record import decode_coordinator_record
from kdump.format.numbers import LONG_MAX
from tests.conftest import SEED
from tests.craft import batch, record
from tests.each_case import each_case

KEY = struct.pack(">hh", 1, 5) + b"group" + struct.pack(">h6si", 6, b"orders", 3)
HEAD = struct.pack(">qi", 7, 2)
VALUES = [
    struct.pack(">hqh4sq", 0, 7, 4, b"meta", 9),
    struct.pack(">hqhqq", 1, 7, 0, 9, 10),
    struct.pack(">hqh4sq", 2, 7, 4, b"meta", 9),
    struct.pack(">h12sh4sq", 3, HEAD, 4, b"meta", 9),
    struct.pack(">h12sB4sqB", 4, HEAD, 5, b"meta", 9, 0),
    struct.pack(">h12sB4sqBBB16s", 4, HEAD, 5, b"meta", 9, 1, 0, 16, bytes(range(16))),
]
BATCH = BATCH_HEADER.read(batch([record()]), 0)


def put(commits: NewestCommits, key: bytes, value: bytes, data_type: type = bytes) -> bool:
    """Put a record with this key and value at offset 5."""
    columns = RecordColumns(data_type(record(5, key, value)))
    decode_all(columns, 0, len(columns.data), 1)
    return commits.put(columns, 0, BATCH, LONG_MAX, LONG_MAX) == 1


def check(key: bytes, value: bytes) -> bool:
    """Assert that a commit decodes if it is kept. Returns whether it is."""
    commits = NewestCommits(MAX_BYTES)
    is_kept = put(commits, key, value)
    assert put(commits, key, value, bytearray) == is_kept
    assert list(commits.take()) == ([(key, 5, value)] if is_kept else [])
    if is_kept:
        decoded = decode_coordinator_record("group-coordinator", key, value)
        assert decoded.key.number == 1
        assert decoded.value is not None
        for part in decoded:
            assert part is not None
            assert part.decoded is not None
            assert (part.problem, part.note, part.decoded.rest) == (None, "", b"")
    return is_kept


@each_case("value", VALUES, ids=range(len(VALUES)))
def test_damaged_commits(value: bytes) -> None:
    assert check(KEY, value)
    for size in range(len(KEY)):
        assert not check(KEY[:size], value)
    for size in range(len(value)):
        assert not check(KEY, value[:size])
    for bit in range(8 * len(KEY + value)):
        flipped = bytearray(KEY + value)
        flipped[bit // 8] ^= 1 << bit % 8
        check(bytes(flipped[: len(KEY)]), bytes(flipped[len(KEY) :]))
    dice = random.Random(f"{SEED} {value!r}")
    for _ in range(2000):
        changed = bytearray(KEY + value)
        for _ in range(dice.randrange(1, 4)):
            changed[dice.randrange(len(changed))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        cut = dice.choice((len(KEY), dice.randrange(len(changed))))
        check(bytes(changed[:cut]), bytes(changed[cut:]))


def test_the_newest_replaces_the_others() -> None:
    commits = NewestCommits(MAX_BYTES)
    other = KEY[:-1] + b"\4"
    for key, value in ((KEY, VALUES[0]), (other, VALUES[1]), (KEY, VALUES[3])):
        assert put(commits, key, value)
    assert list(commits.take()) == [(KEY, 5, VALUES[3]), (other, 5, VALUES[1])]
    assert not list(commits.take())


def test_room() -> None:
    commits = NewestCommits(300)
    assert put(commits, KEY, VALUES[0])
    assert not put(commits, KEY[:-1] + b"\4", VALUES[0])
    assert put(commits, KEY, VALUES[3])
    assert not put(commits, KEY + bytes(1 << 17), VALUES[3])
    assert not put(commits, KEY, VALUES[3] + bytes(1 << 17))


def test_limits() -> None:
    """Of an offset and of a time; both are those of the records, and the time is the batch's if it was appended."""
    columns = RecordColumns(b"".join(record(number, KEY, VALUES[0], timestamp=number) for number in range(9)))
    decode_all(columns, 0, len(columns.data), 9)
    header = BATCH_HEADER.read(batch([record()], offset=100, baseTimestamp=1000, maxTimestamp=1008), 0)
    for appended, expected in ((0, [9, 5, 5, 4]), (8, [9, 5, 9, 0])):
        timed = header._replace(attributes=appended)
        limits = [(LONG_MAX, LONG_MAX), (104, LONG_MAX), (LONG_MAX, 1004 + 4 * (appended == 8)), (LONG_MAX, 1003)]
        assert [NewestCommits(MAX_BYTES).put(columns, 0, timed, *each) for each in limits] == expected
    commits = NewestCommits(MAX_BYTES)
    assert commits.put(columns, 3, header, 105, LONG_MAX) == 6
    assert list(commits.take()) == [(KEY, 105, VALUES[0])]
