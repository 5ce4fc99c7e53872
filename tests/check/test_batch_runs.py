"""Checks that batches processed in bulk give the same findings, in the same order, and the same totals as batches
processed one by one."""

from __future__ import annotations

import json
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kdump
from kdump.check.engine import batch_runs
from kdump.check.engine.batch_runs import BatchRunChecker
from kdump.check.watchers import transactions as transactions_watcher
from kdump.cli import cli
from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.codec_table import CODECS
from kdump.state.transaction_marker import EndTxnMarker, marker_at
from tests import craft
from tests.conftest import DISKS, SEED, sample, seeded
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
        with self.one_by_one():
            slow = verify(path, *options)
        return quick, slow

    @contextmanager
    def one_by_one(self) -> Iterator[None]:
        """Pass every batch to the observers by itself."""
        with self.monkeypatch.context() as patch:
            patch.setattr(BatchRunChecker, "_first_suspect", lambda it, heads, first, *more: first)
            patch.setattr(batch_runs, "plain_marker", lambda heads, row: None)
            yield


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.mark.parametrize("disk", ["clean-0", "clean-1", pytest.param("crash-1", marks=pytest.mark.every_disk)])
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
    if at >= len(piece) or len(piece) < BATCH_HEADER.size:
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
@pytest.mark.parametrize("partition", ["payments-0", "users-0", *sample(["clicks-0", *CODECS.values()], 7, "codecs")])
def test_a_damaged_partition(partition: str, counted: Counted, tmp_path: Path) -> None:
    dice = seeded(partition)
    found = 0
    count = 25 if SEED else 6
    for number in range(count):
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
            has_batches = path.suffix == ".log" and craft.split(bytes(data))
            if data and (has_batches or change in DAMAGES):
                change(data, dice)
            path.write_bytes(data)
        quick, slow = counted.both(copy)
        assert quick == slow, copy
        assert verify(copy, "--jobs", "3", "--window", "2000") == quick, copy
        found += len(quick[1]) > 1
    assert found > count // 2
    assert counted.together > 0


COMMIT, ABORT = 1, 0


def marker_batch(dice: random.Random, offset: int, producer: int, epoch: int, now: int) -> bytes:
    """Return the batch of a transaction marker; one in six is not as brokers write it."""
    value = struct.pack(">hi", 0, dice.choice([0, 7, -1]))
    record = craft.record(0, struct.pack(">hh", 0, dice.choice([COMMIT, ABORT])), value)
    fields = {"producerId": producer, "producerEpoch": epoch, "baseTimestamp": now, "maxTimestamp": now}
    attributes = 0x30
    odd = dice.randrange(60)
    if odd == 0:
        record = craft.record(0, struct.pack(">hh", 0, 1), value, timestamp=5)
    elif odd == 1:
        record = craft.record(0, struct.pack(">hh", 0, 9), value)
    elif odd == 2:
        record = craft.record(0, struct.pack(">hh", 1, 1), struct.pack(">hi", 1, 3) + b"\0")
    elif odd == 3:
        record = craft.record(0, b"", value)
    elif odd == 4:
        fields["maxTimestamp"] += 1
    elif odd == 5:
        attributes |= 0x08
    elif odd == 6:
        attributes = 0x20
    elif odd == 7:
        fields["producerId"] = -1
    elif odd == 8:
        fields["baseTimestamp"] = fields["maxTimestamp"] = -1
    elif odd == 9:
        return craft.batch(b"", offset=offset, count=0, attributes=attributes, **fields)
    return craft.batch(record, offset=offset, count=1, attributes=attributes, **fields)


def transactional_log(dice: random.Random) -> bytes:
    """Return batches of four producers: transactions, and data outside of them."""
    data, offset, now = b"", 0, 1_700_000_000_000
    epochs, sequences = [0] * 4, [0] * 4
    is_second = dice.random() < 0.5  # transaction version 2: each transaction has an epoch of its own
    for _ in range(150):
        producer = dice.randrange(4)
        now += 1
        if dice.random() < 0.4:
            epochs[producer] += is_second
            sequences[producer] *= not is_second
            data += marker_batch(dice, offset, producer, epochs[producer], now)
            offset += 1
            continue
        count = dice.choice([1, 1, 1, 3])
        records = [craft.record(delta, b"k", b"v" * dice.choice([9, 400])) for delta in range(count)]
        data += craft.batch(
            records,
            offset=offset,
            attributes=0x10 * (dice.random() < 0.95),
            producerId=producer,
            producerEpoch=epochs[producer],
            baseSequence=sequences[producer] + (dice.random() < 0.03),
            baseTimestamp=now,
            maxTimestamp=now,
        )
        offset += count + (dice.random() < 0.02)
        sequences[producer] += count
    return data


def ended(path: Path) -> list[dict[str, Any]]:
    """Return the transactions of a partition, without what depends on the current time."""
    return [row._asdict() | {"age": None, "idle": None} for row in kdump.transactions(str(path))]


@pytest.mark.sampled
def test_transactions(counted: Counted, tmp_path: Path) -> None:
    """Markers as brokers write them, and batches that begin or end a transaction, are not examined one by one."""
    dice = seeded("transactions")
    markers = 0

    def noted(heads: HeaderColumns, row: int) -> EndTxnMarker:
        nonlocal markers
        markers += 1
        return marker_at(heads, row)

    count = 25 if SEED else 4
    for number in range(count):
        copy = tmp_path / str(number) / "payments-0"
        copy.mkdir(parents=True)
        data = bytearray(transactional_log(dice))
        if dice.random() < 0.3:
            dice.choice(CHANGES[:5])(data, dice)
        (copy / f"{0:020}.log").write_bytes(data)
        with counted.monkeypatch.context() as patch:
            patch.setattr(transactions_watcher, "marker_at", noted)
            quick, slow = counted.both(copy)
            transactions = ended(copy)
        assert quick == slow, copy
        with counted.one_by_one():
            assert ended(copy) == transactions
    assert markers > 30 * count
    assert counted.together > counted.alone
