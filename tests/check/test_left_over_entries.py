"""Entries that a truncation leaves in a preallocated index, after those that count: AbstractIndex.truncateToEntries
changes only the number of entries that the running broker knows."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from tests.command import run
from tests.conftest import FIXTURES
from tools.incident.batches import changed

PREALLOCATED = 4096
CLEAN = ".kafka_cleanshutdown"
FIRST = f"{0:020}"


def rows(log: bytes) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return an entry of each index for every batch but the first."""
    offsets, times, position, newest = [], [], 0, -1
    while position < len(log):
        header = BATCH_HEADER.read(log, position)
        last = header.baseOffset + header.lastOffsetDelta
        if position:
            offsets.append((last, position))
        if header.maxTimestamp > newest:
            newest = header.maxTimestamp
            times.append((newest, last))
        position += header.size
    return offsets, times


def packed(layout: object, entries: list[tuple[int, int]]) -> bytes:
    data = b"".join(layout.struct.pack(*entry) for entry in entries)  # type: ignore[attr-defined]
    return data + bytes(PREALLOCATED // 24 * 24 - len(data))


def truncated(tmp_path: Path, seed: int, *, clean: bool = False) -> Path:
    """Create a log directory with a partition that was truncated at a batch and has grown again with other batches,
    under a broker at work; or, with `clean`, after a clean shutdown."""
    dice = random.Random(seed)
    disk = tmp_path / f"disk-{seed}"
    shutil.copytree(FIXTURES / "disk-1", disk)
    if not clean:
        (disk / CLEAN).unlink()
    folder = disk / "payments-0"
    log = (folder / f"{FIRST}.log").read_bytes()
    before = rows(log)
    starts = [position for _, position in before[0]]
    cut, skipped = dice.choice(starts[5:20]), dice.choice(starts[30:40])
    kept = log[:cut]
    end = before[0][starts.index(cut) - 1][0] + 1
    while skipped < len(log):  # the new leader's log continues with other batches
        header = BATCH_HEADER.read(log, skipped)
        kept += changed(log[skipped : skipped + header.size], baseOffset=end)
        end += header.lastOffsetDelta + 1
        skipped += header.size
    (folder / f"{FIRST}.log").write_bytes(kept)
    count = starts.index(cut)
    new, new_times = rows(kept)
    upto = dice.randrange(count, min(len(new), count + 5))
    index = new[:upto] + before[0][upto:]
    (folder / f"{FIRST}.index").write_bytes(packed(INDEX_ENTRY, index))
    few = len([each for each in new_times if each[1] <= (index[upto - 1][0] if upto else -1)])
    (folder / f"{FIRST}.timeindex").write_bytes(packed(TIME_INDEX_ENTRY, new_times[:few] + before[1][few:]))
    return disk


def found(disk: Path) -> list[tuple[str, str]]:
    """Return severity and code of the findings about the indexes; there are others, about the truncated log."""
    lines = run("verify", disk, "--topic", "payments", "--json").stdout.splitlines()
    of_indexes = ("index-", "time-index-")
    return [
        (row["severity"], row["code"]) for row in map(json.loads, lines) if row.get("code", "").startswith(of_indexes)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_they_are_no_damage(tmp_path: Path, seed: int) -> None:
    codes = found(truncated(tmp_path, seed))
    assert {severity for severity, _ in codes} == {"info"}
    assert ("info", "index-padding") in codes
    assert {code for _, code in codes} & {"index-mismatch", "index-not-sorted", "index-beyond-log"}


def test_after_a_clean_shutdown_they_are(tmp_path: Path) -> None:
    assert "error" in {severity for severity, _ in found(truncated(tmp_path, 1, clean=True))}


def test_a_wrong_entry_before_valid_ones_is(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    shutil.copytree(FIXTURES / "disk-1", disk)
    (disk / CLEAN).unlink()
    folder = disk / "payments-0"
    entries, _ = rows((folder / f"{FIRST}.log").read_bytes())
    entries[20] = (entries[20][0], entries[20][1] + 1)
    (folder / f"{FIRST}.index").write_bytes(packed(INDEX_ENTRY, entries))
    assert ("error", "index-mismatch") in found(disk)
