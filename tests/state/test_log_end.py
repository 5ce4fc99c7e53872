"""The log end offset of a log whose last batch is damaged: every command has the one that restart-plan predicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run
from tests.damages import copy_disk
from tests.disks import FIXTURES

LAST, SIZE = 21980, 5521
"""Position and size of the last batch of orders-none-0, which has the offsets 240..299."""
NAME = "orders-none-0"
LOG = f"{0:020}.log"
HEADER = (0, 7, 12, 17, 21, 23, 35, 57, 60)
"""Bytes of the header, without those by which a broker does not find the batch that its index leads to."""


def damaged(root: Path, at: int, flip: int, *gone: str) -> Path:
    """Return a copy of the disk in which bits of a byte of that batch are flipped, and files are `gone`."""
    disk = copy_disk(FIXTURES / "disk-1", root / "disk")
    log = disk / NAME / LOG
    contents = bytearray(log.read_bytes())
    contents[LAST + at] ^= flip
    log.write_bytes(contents)
    for name in gone:
        (disk / name).unlink()
    return disk


def ends(command: str, *arguments: str | Path) -> list[int | None]:
    lines = map(json.loads, run(command, *arguments, "--json").stdout.splitlines())
    return [each["logEndOffset"] for each in lines if "logEndOffset" in each and each.get("topic") == "orders-none"]


@pytest.mark.parametrize(
    ("gone", "end"), [((), 300), ((".kafka_cleanshutdown",), 240), ((f"{NAME}/{LOG[:-4]}.index",), 240)]
)
def test_a_log_whose_last_batch_is_damaged_ends_where_its_broker_ends_it(
    tmp_path: Path, gone: tuple[str, ...], end: int
) -> None:
    disk = damaged(tmp_path, SIZE - 1, 1, *gone)
    assert ends("restart-plan", disk, "--all") == [end]
    for command in ("ls", "transactions", "producers", "retention"):
        assert ends(command, disk) == [end], command
    found = [json.loads(line) for line in run("verify", disk / NAME, "--json").stdout.splitlines()]
    assert [each for each in found if each.get("code") == "checkpoint-beyond-log"] == [] or end < 300
    text = run("verify", disk / NAME).stdout
    assert ("are lost here" in text) is (end < 300)
    assert ("log end offset is" in text) is (end < 300)


def test_a_lost_transaction_names_the_snapshot_that_does_not_list_it(tmp_path: Path) -> None:
    disk = copy_disk(FIXTURES / "connect-1", tmp_path / "disk")
    log = disk / "lines-0" / LOG
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")  # the last marker
    text = run("transactions", disk / "lines-0").stdout
    assert f"{38:020}.snapshot, which it loads, does not list it" in text
    assert "offsets 0..37," in text


@pytest.mark.parametrize("at", HEADER)
def test_a_damaged_header_ends_the_log_where_its_broker_ends_it(tmp_path: Path, at: int) -> None:
    disk = damaged(tmp_path, at, 2)
    planned = ends("restart-plan", disk, "--all")
    assert [ends(command, disk) for command in ("ls", "transactions")] == [planned] * 2
