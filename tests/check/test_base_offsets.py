"""A flipped bit in a base offset, which no checksum covers: verify states that no offset is missing where salvage
corrects it, and no other finding follows from it."""

from __future__ import annotations

import json
import struct
from itertools import product
from pathlib import Path

import pytest

from tests.command import objects, run
from tests.conftest import sample, seeded
from tests.craft import batch, record, write_file
from tests.each_case import each_case

NOW = 1_700_000_000_000
SHAPES = ((2, 2, 2, 2, 2), (1, 1, 1, 1, 1), (3, 1, 5, 1, 4))
"""Numbers of records in the batches of a log."""
FLIPS = [flip for flip in product(SHAPES, (0, 1000), range(5), range(63)) if flip[2:] != (4, 0)]
"""Not the lowest bit of the last: the offset that seems to be missing may be that of a transaction marker."""


def log(shape: tuple[int, ...], base: int) -> list[tuple[int, bytes]]:
    """Return base offsets and bytes of batches with as many records."""
    batches = []
    for count in shape:
        records = [record(delta=delta, value=b"%d" % (base + delta)) for delta in range(count)]
        time = NOW + len(batches)
        batches.append((base, batch(records, offset=base, baseTimestamp=time, maxTimestamp=time)))
        base += count
    return batches


def partition(root: Path, batches: list[tuple[int, bytes]], name: int) -> Path:
    write_file(root / f"{name:020}.log", b"".join(base.to_bytes(8, "big") + data[8:] for base, data in batches))
    return root


def indexed(root: Path, batches: list[tuple[int, bytes]], name: int, written: list[int]) -> None:
    """Write the indexes of the log as it was, with entries for the batches with these numbers."""
    offsets, times, position = b"", b"", 0
    for number, (base, data) in enumerate(batches):
        last = base + int.from_bytes(data[23:27], "big") - name
        if number in written:
            offsets += struct.pack(">ii", last, position)
            times += struct.pack(">qi", NOW + number, last)
        position += len(data)
    write_file(root / f"{name:020}.index", offsets)
    write_file(root / f"{name:020}.timeindex", times)


@pytest.mark.sampled
@pytest.mark.parametrize(("shape", "name", "number", "bit"), sample(FLIPS, 100, "base offsets"))
def test_a_flipped_bit_is_no_gap(shape: tuple[int, ...], name: int, number: int, bit: int, tmp_path: Path) -> None:
    batches = log(shape, name)
    indexed(tmp_path / "f-0", batches, name, sorted({*seeded(f"{name} {number} {bit}").sample(range(1, 5), 2), 4}))
    right, data = batches[number]
    batches[number] = right ^ 1 << bit, data
    place = partition(tmp_path / "f-0", batches, name)
    *findings, _ = objects("verify", place, status=1)
    assert [(each["code"], each["expected"]) for each in findings] == [("offset-not-monotonic", right)]
    assert findings[0]["message"].endswith("no offset is missing")
    assert "offsets missing" not in run("verify", place).stdout
    saved = run("salvage", place, "--out", tmp_path / "out").stdout.splitlines()
    assert "complete" in saved[0]
    assert "baseOffset corrected in 1 batch" in saved[1]


def messages(root: Path, *batches: tuple[int, list[tuple[int, bytes]]]) -> list[str]:
    """Return what verify says of a partition of these segments: their names and batches."""
    for name, those in batches:
        partition(root, those, name)
    found = run("verify", root, "--ignore", "index-missing", "--json").stdout.splitlines()
    return [each["message"] for each in map(json.loads, found) if each["type"] == "finding"]


def test_a_log_that_begins_above_its_name_may_have_the_flipped_bit_there(tmp_path: Path) -> None:
    """1 may have been 0, as 6 may have been 4: nothing decides."""
    (first,), (last,) = log((3,), 1), log((2,), 6)
    assert messages(tmp_path / "f-0", (0, [first, last])) == ["offsets 4..5 are missing between 3 and 6"]


def test_the_name_of_the_last_segment_decides_beside_a_gap(tmp_path: Path) -> None:
    (first, second), (last,) = log((2, 2), 0), log((2,), 20)
    of_first = [first, (8, second[1])]
    gap = "offsets 2..7 are missing between 1 and 8"
    flipped = (14, last[1])
    said = messages(tmp_path / "f-0", (0, of_first), (10, [flipped]))
    assert said == ["base offset 14, but the batches around it show 10: no offset is missing", gap]


@pytest.mark.every_disk
@each_case("seed", range(120))
def test_it_is_salvages_answer(seed: int, tmp_path: Path) -> None:
    """Also of logs with gaps, where another batch may have the flipped bit instead, and nothing decides: verify states
    that no offset is missing of the batch that salvage corrects, and of no other, unless it is right."""
    random = seeded(f"base offsets {seed}")
    name = base = random.choice([0, 0, 16, 100])
    batches: list[tuple[int, bytes]] = []
    for _ in range(random.randrange(2, 7)):
        ((_, data),) = log((random.choice([1, 1, 2, 3, 4, 5, 8]),), base)
        batches.append((base, data))
        base += int.from_bytes(data[23:27], "big") + 1 + random.choice([0, 0, 0, 1, 2, 3, 4, 8, 16, 32, 64])
    flipped, right = random.randrange(2 * len(batches)), {}
    if flipped < len(batches):
        right = {sum(len(data) for _, data in batches[:flipped]): batches[flipped][0]}
        batches[flipped] = (
            batches[flipped][0] ^ 1 << random.choice([0, 1, 2, 3, 4, 5, 6, 10, 20, 40]),
            batches[flipped][1],
        )
    place = partition(tmp_path / "f-0", batches, name)
    result = run("verify", place, "--ignore", "index-missing", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    says = {
        row["position"]: row["expected"] for row in rows if str(row.get("message")).endswith("no offset is missing")
    }
    run("salvage", place, "--out", tmp_path / "out")
    spans = [json.loads(line) for line in (tmp_path / "out" / "ledger.jsonl").read_text().splitlines()]
    corrected = {span["position"]: span["offset"] for span in spans if "baseOffset" in span.get("mended", ())}
    assert says in (corrected, right), batches


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_gap_stays_a_gap(lost: int, tmp_path: Path) -> None:
    """Also where one flipped bit would explain it: what follows continues after the gap."""
    batches, gap = log((2, 2, 2, 2, 2), 0), ("offset-gap", 2 * lost, 2 * lost + 2)
    batches[lost : lost + 1] = []
    place = partition(tmp_path / "f-0", batches, 0)
    *findings, _ = objects("verify", place, "--ignore", "index-missing")
    assert [(each["code"], each["expected"], each["actual"]) for each in findings] == [gap]


def test_a_second_gap_decides_nothing(tmp_path: Path) -> None:
    batches = log((2, 2, 2, 2, 2), 0)
    batches = [*batches[:1], *batches[2:4], (8 ^ 64, batches[4][1])]
    place = partition(tmp_path / "f-0", batches, 0)
    *findings, _ = objects("verify", place, "--ignore", "index-missing")
    assert [(each["code"], each["expected"], each["actual"]) for each in findings] == [
        ("offset-gap", 2, 4),
        ("offset-gap", 8, 72),
    ]


def test_the_batch_after_it_is_in_the_next_segment(tmp_path: Path) -> None:
    """The state between two segments has what is not decided yet."""
    batches = log((2, 2, 2, 2), 0)
    batches[1] = 2 ^ 1 << 40, batches[1][1]
    place = partition(tmp_path / "f-0", batches[:2], 0)
    partition(place, batches[2:], 4)
    *findings, _ = objects("verify", place, "--ignore", "index-missing", status=1)
    assert [(each["code"], each["expected"]) for each in findings] == [("offset-not-monotonic", 2)]


@pytest.mark.parametrize("size", [100, 1_100_000])
def test_a_gap_behind_records_that_do_not_decode_is_a_gap(size: int, tmp_path: Path) -> None:
    """Whatever the window that their batch is read through: its checksum matches, so it is no damage that a gap could
    follow from."""
    bad = batch([record(value=bytes(size))[:-1] + b"\x02"], offset=0, recordCount=2, lastOffsetDelta=1)
    place = partition(tmp_path / "f-0", [(0, bad), (4, log((2,), 4)[0][1])], 0)
    *findings, _ = objects("verify", place, "--ignore", "index-missing", status=1)
    assert ("offset-gap", "warning") in [(each["code"], each["severity"]) for each in findings]
