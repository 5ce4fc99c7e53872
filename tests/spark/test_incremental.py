"""A second scan into a result gives what a scan from scratch gives, whatever has happened to the disks meanwhile.

The tasks run in this process: what is held together here is files, and no engine has a part in it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdump.spark.scan import Scanned, ScanOptions, scan
from kdump.spark.store import OWN, UNITS, Store
from kdump.spark.watch import Watch
from tests.conftest import FIXTURES
from tests.spark import same

TOPIC = "payments-0"


class Here:
    """As much of a Spark context as a scan needs."""

    defaultParallelism = 2

    def accumulator(self, value: int) -> Any:
        return SimpleNamespace(value=value, add=lambda more: None)

    def parallelize(self, groups: list[Any], count: int) -> Any:
        def mapped(work: Callable[[Any], Any]) -> Any:
            return SimpleNamespace(collect=lambda: list(map(work, groups)))

        return SimpleNamespace(map=mapped)


def run(disk: Path, out: Path) -> Scanned:
    spark: Any = SimpleNamespace(sparkContext=Here())
    # Slices of 2 KiB: a change in one part of a segment must not leave the rows of another as they were.
    return scan(spark, ScanOptions((str(disk),), records=True, split_bytes=2048), Store(str(out)))


def rows(out: Path) -> dict[str, Any]:
    """Every file of the result, with its rows; of what is known of the units all but the time that they took."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*.parquet")):
        found[str(path.relative_to(out))] = pq.ParquetFile(path).read().to_pylist()
    for path in sorted((out / UNITS).glob("*.json")):
        found[path.name] = json.loads(path.read_text()) | {"seconds": 0}
    assert not list((out / OWN).rglob(".*"))
    return found


Change = Callable[[Path, random.Random], None]


def logs(disk: Path) -> list[Path]:
    return sorted((disk / TOPIC).glob("*.log"))


def grow(disk: Path, dice: random.Random) -> None:
    """The active segment gets more of what follows in the real one, up to the end of some batch."""
    active = logs(disk)[-1]
    begin = begins(active)
    reached = begin + active.stat().st_size
    ends = [row["position"] + row["size"] for row in BATCHES if row["position"] >= reached]
    if ends:
        with open(active, "ab") as file:
            file.write(WHOLE[reached : dice.choice(ends)])


def begins(log: Path) -> int:
    """Where a segment begins in the real one."""
    return next(row["position"] for row in BATCHES if row["baseOffset"] == int(log.stem))


def roll(disk: Path, dice: random.Random) -> None:
    """The active segment is closed behind some batch, and what was behind it is in a new one."""
    active = logs(disk)[-1]
    data = active.read_bytes()
    before = begins(active)
    inside = [row for row in BATCHES if before < row["position"] < before + len(data)]
    if inside:
        row = dice.choice(inside)
        cut = row["position"] - before
        active.write_bytes(data[:cut])
        (active.parent / f"{row['baseOffset']:020}.log").write_bytes(data[cut:])


def truncate(disk: Path, dice: random.Random) -> None:
    active = logs(disk)[-1]
    os.truncate(active, dice.randrange(active.stat().st_size + 1))


def retain(disk: Path, dice: random.Random) -> None:
    """Retention takes the oldest segment."""
    if len(logs(disk)) > 1:
        logs(disk)[0].unlink()


def damage(disk: Path, dice: random.Random) -> None:
    """A bit flips in some segment; its size is as it was."""
    path = dice.choice(logs(disk))
    data = bytearray(path.read_bytes())
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)


def checkpoint(disk: Path, dice: random.Random) -> None:
    (disk / "replication-offset-checkpoint").write_text(f"0\n1\npayments 0 {dice.randrange(300)}\n")


def nothing(disk: Path, dice: random.Random) -> None:
    """As it was."""


def mend(disk: Path, dice: random.Random) -> None:
    """The partition comes back whole."""
    for path in logs(disk):
        path.unlink()
    (disk / TOPIC / f"{0:020}.log").write_bytes(WHOLE)


WHOLE = (FIXTURES / "clean-1" / TOPIC / f"{0:020}.log").read_bytes()
BATCHES: list[dict[str, Any]] = []
CHANGES: tuple[Change, ...] = (grow, roll, truncate, retain, damage, checkpoint, nothing, mend)


@pytest.fixture(autouse=True, scope="module")
def batches() -> None:
    BATCHES.extend(same.cli_batches(FIXTURES / "clean-1" / TOPIC))


def a_disk(root: Path) -> Path:
    disk = root / "disk"
    for name in (TOPIC, "users-0"):
        shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    half = BATCHES[len(BATCHES) // 2]["position"]
    (disk / TOPIC / f"{0:020}.log").write_bytes(WHOLE[:half])
    return disk


def told(changes: Iterable[Change]) -> list[str]:
    return [change.__name__ for change in changes]


@pytest.mark.parametrize("seed", range(3))
def test_what_happens_to_a_log(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.spark.scan.time.time", lambda: 1_800_000_000.0)
    dice = random.Random(seed)
    disk, out = a_disk(tmp_path), tmp_path / "out"
    run(disk, out)
    done: list[Change] = []
    for step in range(4):
        for change in dice.choices(CHANGES, k=dice.choice((1, 1, 2))):
            change(disk, dice)
            done.append(change)
        run(disk, out)
        scratch = tmp_path / f"scratch-{step}"
        run(disk, scratch)
        assert rows(out) == rows(scratch), told(done)
    assert run(disk, out).read == 1  # the root of the log directory, which is read each time


def test_a_segment_that_did_not_change_has_its_records_kept(tmp_path: Path) -> None:
    disk, out = a_disk(tmp_path), tmp_path / "out"
    dice = random.Random(3)
    roll(disk, dice)
    run(disk, out)
    assert len(logs(disk)) == 2
    before = {path: path.stat().st_mtime_ns for path in (out / "records").rglob("*.parquet")}
    grow(disk, dice)
    run(disk, out)
    kept = {path for path, time in before.items() if path.exists() and path.stat().st_mtime_ns == time}
    segments = {path.name: set(pq.ParquetFile(path).read(["file"]).column("file").to_pylist()) for path in before}
    old, active = (str(path) for path in logs(disk))
    assert {path.name for path in before if active in segments.get(path.name, ())}.isdisjoint(p.name for p in kept)
    assert {name for name, files in segments.items() if old in files} <= {path.name for path in kept}


def test_sound_batches_are_taken_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And are the same rows as those that are looked at one by one."""
    together = alone = 0
    take, batch = Watch.take, Watch.batch

    def taking(self: Watch, part: Any, heads: Any, first: int, stop: int) -> None:
        nonlocal together
        together += stop - first
        take(self, part, heads, first, stop)

    def seeing(self: Watch, seen: Any) -> Any:
        nonlocal alone
        alone += 1
        return batch(self, seen)

    monkeypatch.setattr(Watch, "take", taking)
    monkeypatch.setattr(Watch, "batch", seeing)
    disk = tmp_path / "disk"
    for name in ("orders-none-0", "orders-zstd-0", "payments-0", "logappend-0"):
        shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    monkeypatch.setattr("kdump.spark.scan.time.time", lambda: 1_800_000_000.0)
    run(disk, tmp_path / "quick")
    assert together > alone > 0
    monkeypatch.setattr(Watch, "takes_many", False)
    monkeypatch.setattr(Watch, "free", lambda self, part, heads, first, stop: first)
    together = 0
    run(disk, tmp_path / "slow")
    assert together == 0
    assert rows(tmp_path / "quick") == rows(tmp_path / "slow")
