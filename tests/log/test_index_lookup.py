"""Indexes as hints: read piece by piece, they give the same as read at once, and millions of entries take few bytes."""

from __future__ import annotations

import itertools
import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from kdump.log import offset_index_lookup
from kdump.log.offset_index_lookup import open_index_lookup
from kdump.log.paths import target
from kdump.log.start_position import last_entry_before
from tests.conftest import SEED

BASE = 7_000_000_000
LOG = f"{BASE:020}.log"


def naive_offsets(data: bytes) -> list[tuple[int, int]]:
    """Return the entries of a whole .index; none if one of them is wrong."""
    if len(data) % 8:
        return []
    rows = list(struct.iter_unpack(">ii", data))
    while rows and rows[-1] == (0, 0):
        rows.pop()
    valid = all(min(row) >= 0 for row in rows) and all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(rows))
    return [(BASE + relative, position) for relative, position in rows] if valid else []


def naive_before(data: bytes, timestamp: int) -> tuple[int, int] | None:
    if len(data) % 12:
        return None
    rows = list(struct.iter_unpack(">qi", data))
    while rows and rows[-1] == (0, 0):
        rows.pop()
    valid = all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(rows)) and (not rows or rows[0][1] >= 0)
    below = [(newest, BASE + relative) for newest, relative in rows if newest < timestamp] if valid else []
    return below[-1] if below else None


def damaged(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    kind = dice.randrange(6)
    if kind == 1 and changed:
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    elif kind == 2:
        del changed[dice.randrange(len(changed) + 1) :]
    elif kind == 3:
        changed += bytes(dice.choice([8, 24, 240, 500]))
    elif kind == 4:
        changed += bytes(240) + data[-24:]
    elif kind == 5 and len(changed) > 48:
        at = dice.randrange(len(changed) // 24) * 24
        changed[at : at + 24] = bytes(24)
    return bytes(changed)


@pytest.mark.sampled
def test_pieces_give_the_same_as_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_index_lookup, "PIECE", 100)
    dice = random.Random(5)
    log = tmp_path / "t-0" / LOG
    log.parent.mkdir()
    some = none = 0
    for _ in range(600 if SEED else 300):
        count = dice.randrange(60)
        relatives = sorted(dice.sample(range(dice.choice([100, 70_000, 1 << 31])), count))
        positions = sorted(dice.sample(range(dice.choice([100, 70_000, 1 << 31])), count))
        times = sorted(dice.randrange(1 << dice.choice([8, 41])) for _ in range(count))
        offsets = damaged(b"".join(struct.pack(">ii", *row) for row in zip(relatives, positions)), dice)
        newest = damaged(b"".join(struct.pack(">qi", *row) for row in zip(times, relatives)), dice)
        for name, data in ((".index", offsets), (".timeindex", newest)):
            log.with_suffix(name).write_bytes(data)
        found = open_index_lookup(str(log), BASE)
        expected = naive_offsets(offsets)
        assert list(zip(found.offsets, found.positions, strict=True)) == expected
        assert (len(found), list(found.positions[:-3:-1])) == (len(expected), [row[1] for row in expected[:-3:-1]])
        for timestamp in (0, 1, 200, 1 << 40, *times[:2]):
            assert last_entry_before(target(str(log)), timestamp) == naive_before(newest, timestamp)
        some += bool(expected)
        none += not expected and count > 0
    assert min(some, none) > 50


def test_entries_take_as_many_bytes_as_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 100_000
    monkeypatch.setattr(offset_index_lookup, "PIECE", 1 << 18)
    log = tmp_path / "t-0" / LOG
    log.parent.mkdir()
    log.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", n, 70 * n) for n in range(count)))
    log.with_suffix(".timeindex").write_bytes(b"".join(struct.pack(">qi", n, n) for n in range(count)))
    tracemalloc.start()
    try:
        found = open_index_lookup(str(log), BASE)
        assert (len(found), found.offsets[-1], found.positions[-1]) == (count, BASE + count - 1, 70 * (count - 1))
        assert tracemalloc.get_traced_memory()[1] < 8 * count * 1.2 + (1 << 20)
        del found
        tracemalloc.reset_peak()
        assert last_entry_before(target(str(log)), count) == (count - 1, BASE + count - 1)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
