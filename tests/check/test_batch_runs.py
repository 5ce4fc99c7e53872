"""Checks that batches processed in bulk give the same findings, in the same order, and the same totals as batches
processed one by one."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.check.engine.batch_runs import BatchRunChecker
from kdump.cli import cli
from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_header import CODECS
from tests import craft
from tests.conftest import DISKS, sample, seeded
from tests.test_damaged_disks import DAMAGES

KAFKA = DISKS / "kafka-4.3"


def verify(path: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(cli, ["verify", "--json", *options, str(path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    rows[-1].pop("seconds")
    return result.exit_code, rows


class Counted:
    """Counts the batches that were checked in bulk, and the others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.together = self.alone = 0
        self.first_suspect: Callable[..., int] = BatchRunChecker._first_suspect

    def both(self, path: Path, *options: str) -> tuple[Any, Any]:
        def counting(it: BatchRunChecker, heads: HeaderColumns, first: int, stop: int, *more: Any) -> int:
            free = self.first_suspect(it, heads, first, stop, *more)
            assert first <= free <= stop
            self.together += free - first
            self.alone += free < stop
            return free

        with self.monkeypatch.context() as patch:
            patch.setattr(BatchRunChecker, "_first_suspect", counting)
            quick = verify(path, *options)
        with self.monkeypatch.context() as patch:
            patch.setattr(BatchRunChecker, "_first_suspect", lambda it, heads, first, *more: first)
            slow = verify(path, *options)
        return quick, slow


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.mark.parametrize("disk", ["clean-0", "clean-1", "crash-1"])
def test_a_healthy_disk(disk: str, counted: Counted) -> None:
    quick, slow = counted.both(KAFKA / disk)
    assert quick == slow
    assert counted.together > 3 * counted.alone


@pytest.mark.parametrize(
    "options", [["--only", "records"], ["--only", "log"], ["--only", "files"], ["--only", "bytes"]]
)
def test_by_family(options: list[str], counted: Counted) -> None:
    quick, slow = counted.both(KAFKA / "clean-1" / "clicks-0", *options)
    assert quick == slow


def change_header(data: bytearray, dice: random.Random) -> None:
    """Change a field of a batch, and correct its checksum."""
    pieces = craft.split(bytes(data))
    number = dice.randrange(len(pieces))
    piece = bytearray(pieces[number])
    at = dice.choice([0, 7, 12, 15, 21, 22, 26, 34, 35, 42, 46, 50, 52, 56, 60])
    if at >= len(piece):
        return
    piece[at] ^= 1 << dice.randrange(8)
    pieces[number] = craft.fix_crc(bytes(piece))
    data[:] = b"".join(pieces)


def drop_or_repeat(data: bytearray, dice: random.Random) -> None:
    pieces = craft.split(bytes(data))
    number = dice.randrange(len(pieces))
    pieces[number : number + 1] = [pieces[number]] * dice.choice([0, 2])
    data[:] = b"".join(pieces)


def swap(data: bytearray, dice: random.Random) -> None:
    pieces = craft.split(bytes(data))
    one, other = dice.randrange(len(pieces)), dice.randrange(len(pieces))
    pieces[one], pieces[other] = pieces[other], pieces[one]
    data[:] = b"".join(pieces)


CHANGES = [change_header, change_header, change_header, drop_or_repeat, swap, *DAMAGES]


def made(codec: str, directory: Path) -> None:
    """Write a partition of valid batches from three producers."""
    directory.mkdir(parents=True)
    data = b""
    for number in range(40):
        records = [
            craft.record(delta, b"k", b"value" * 9, [(b"header", b"\xff"), (b"none", None)], delta * 3)
            for delta in range(3)
        ]
        producer, sequence, newest = number % 3, number // 3 * 3, 1_700_000_000_006
        fields = {"producerId": producer, "producerEpoch": 0, "baseSequence": sequence, "maxTimestamp": newest}
        data += craft.batch(records, codec, offset=3 * number, **fields)
    (directory / f"{0:020}.log").write_bytes(data)


@pytest.mark.sampled
@pytest.mark.parametrize("partition", ["payments-0", "users-0", *sample(["clicks-0", *CODECS.values()], 3, "codecs")])
def test_a_damaged_partition(partition: str, counted: Counted, tmp_path: Path) -> None:
    dice = seeded(partition)
    found = 0
    for number in range(25):
        copy = tmp_path / str(number) / partition
        if partition in CODECS.values():
            made(partition, copy)
        else:
            shutil.copytree(KAFKA / "clean-1" / partition, copy)
        for path in copy.iterdir():
            path.chmod(0o644)
        logs = sorted(path for path in copy.glob("*.log") if path.stat().st_size)
        others = sorted(path for path in copy.glob("*.*") if path.stat().st_size and path.suffix != ".log")
        for change in dice.choices(CHANGES, k=dice.randrange(1, 3)):
            path = (
                dice.choice(logs) if change in CHANGES[:5] or not others or dice.random() < 0.7 else dice.choice(others)
            )
            data = bytearray(path.read_bytes())
            if data:
                change(data, dice)
            path.write_bytes(data)
        quick, slow = counted.both(copy)
        assert quick == slow, copy
        found += len(quick[1]) > 1
    assert found > 12
    assert counted.together > 0
