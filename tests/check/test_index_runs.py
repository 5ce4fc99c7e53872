"""Checks that index entries compared with many batches at a time give the same findings as entries compared one by one,
and that most are compared so."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from kdump.kafka import offset_index_judge, time_index_judge
from kdump.kafka.index_judge import IndexJudge
from tests import craft
from tests.check.test_batch_runs import verify
from tests.conftest import SEED, seeded

NOW = 1_700_000_000_000
LOG, INDEX, TIME_INDEX = (f"{0:020}{ending}" for ending in (".log", ".index", ".timeindex"))
SHAPES = {INDEX: struct.Struct(">ii"), TIME_INDEX: struct.Struct(">qi")}


def made(directory: Path, dice: random.Random, every: int, count: int = 400, gap: int = 3) -> None:
    """Write a partition of valid batches with an index entry for each, or for one in `every`; `gap` offsets are missing
    now and then."""
    directory.mkdir(parents=True)
    data, offset, newest, largest, indexed = b"", 0, NOW, (-1, 0), -1
    offsets, times = b"", b""
    for number in range(count):
        size = dice.randrange(1, 4)
        newest += dice.choice([0, 0, 5, 900])
        moment = newest - dice.choice([0, 0, 0, 40])
        last = offset + size - 1
        largest = (moment, last) if moment > largest[0] else largest
        if number and number % every == 0:
            offsets += SHAPES[INDEX].pack(last, len(data))
            times += SHAPES[TIME_INDEX].pack(*largest) if largest[0] > indexed else b""
            indexed = largest[0]
        records = [craft.record(delta, value=b"v" * size) for delta in range(size)]
        data += craft.batch(records, offset=offset, baseTimestamp=moment, maxTimestamp=moment)
        offset = last + 1 + dice.choice([0] * 9 + [gap])
    for name, content in ((LOG, data), (INDEX, offsets), (TIME_INDEX, times)):
        (directory / name).write_bytes(content)


def changed(data: bytes, shape: struct.Struct, dice: random.Random) -> bytes:
    """Return the entries with one change."""
    rows = [list(row) for row in shape.iter_unpack(data[: len(data) // shape.size * shape.size])]
    number, other = dice.randrange(len(rows)), dice.randrange(len(rows))
    kind = dice.randrange(8)
    if kind < 3:
        rows[number][kind % 2] += dice.choice([-9, -1, 1, 9, 70, -70, 100_000])
    elif kind == 3:
        rows[number], rows[other] = rows[other], rows[number]
    elif kind == 4:
        rows[number : number + dice.randrange(5)] = []
    elif kind == 5:
        rows[number:number] = [rows[other]]
    elif kind == 6:
        rows[number] = [0, 0]
    found = b"".join(shape.pack(*row) for row in rows)
    return found + dice.choice([bytes(24), bytes(30), b"\1\2\3"]) if kind == 7 else found


def one_by_one(monkeypatch: pytest.MonkeyPatch, path: Path, *options: str) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(offset_index_judge, "matching_positions", lambda *given: 0)
        patch.setattr(
            time_index_judge, "matching_timestamps", lambda heads, first, stop, newest, *more: (0, first, newest)
        )
        return verify(path, *options)


@pytest.mark.sampled
@pytest.mark.parametrize("every", [1, 2, 7])
def test_the_same_findings(every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = seeded(f"index runs {every}")
    kinds = set()
    for number in range(40 if SEED else 12):
        directory = tmp_path / str(number) / "t-0"
        made(directory, dice, every, 400 if SEED else 200)
        for name, shape in SHAPES.items():
            data = (directory / name).read_bytes()
            for _ in range(dice.randrange(3)):
                data = changed(data, shape, dice)
            (directory / name).write_bytes(data)
        if number % 4 == 3:  # batches that are not valid, and an order that no broker writes
            log = bytearray((directory / LOG).read_bytes())
            log[dice.randrange(len(log))] ^= 1
            (directory / LOG).write_bytes(log)
        options = dice.choice([(), ("--only", "indexes"), ("--window", "3000")])
        quick = verify(directory, *options)
        assert quick == one_by_one(monkeypatch, directory, *options), (directory, options)
        kinds |= {each["code"] for each in quick[1] if each["type"] == "finding"}
    assert kinds >= {"index-mismatch", "index-not-sorted", "time-index-mismatch", "time-index-not-sorted"}


@pytest.mark.parametrize("every", [1, 3])
def test_few_entries_are_compared_one_by_one(every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "t-0", seeded("few"), every, 5_000, gap=0)
    single = []
    following = IndexJudge.advance
    monkeypatch.setattr(IndexJudge, "advance", lambda *given: single.append(1) or following(*given))
    code, rows = verify(tmp_path / "t-0")
    assert (code, [each["code"] for each in rows if each["type"] == "finding"]) == (0, [])
    assert len(single) < 100


def test_an_offset_that_fits_no_number(tmp_path: Path) -> None:
    made(tmp_path / "t-0", seeded("far"), 1, 20)
    for name in (LOG, INDEX, TIME_INDEX):
        (tmp_path / "t-0" / name).rename(tmp_path / "t-0" / name.replace("0" * 20, str((1 << 63) - 1).zfill(20)))
    assert verify(tmp_path / "t-0")[0] == 1
