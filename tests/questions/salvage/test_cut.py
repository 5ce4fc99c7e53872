"""Random cuts of random partitions: what is left, and that nothing else is."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdump
from kdump.format.batch_header import BATCH_HEADER
from kdump.questions.salvage.run import salvage
from tests import craft
from tests.conftest import SEED
from tests.questions.salvage.cutting import HORIZON, Cut, Log, Made, payload, random_cut, row_of
from tests.questions.salvage.salvaging import Run

TOOLS = Path(__file__).parents[3] / "tools"
KEPT_FIELDS = ("baseOffset", "lastOffsetDelta", "partitionLeaderEpoch", "producerId", "producerEpoch", "baseSequence")


def cut_logs(root: Path, count: int, seed: str) -> Iterator[tuple[Log, Cut, Run]]:
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        log = Log(rng).fill()
        cut = random_cut(log, rng)
        source = log.write(root / str(number) / "t-0")
        yield log, cut, Run(root / str(number) / "out", source, cut=cut.request, abort_open=seed[-1] == "+")
        shutil.rmtree(root / str(number))


def check(log: Log, cut: Cut, run: Run) -> None:
    made, within = run.only, [each for each in log.batches if cut.is_within(each)]
    left = cut.left(log)
    aborted = [each.firstOffset for each in made.abortedTransactions]
    assert aborted + [each.firstOffset for each in made.openTransactions] == open_in(within)
    written = [batch for file in made.files for batch in craft.split((run.out / file).read_bytes())]
    rows = [row_of(record) for record in kdump.open(str(run.out / made.directory)).records()] if made.files else []
    assert rows[: len(left)] == left
    assert [(row.key, row.value) for row in rows[len(left) :]] == [(bytes(4), bytes(6))] * len(aborted)
    assert made.is_whole
    assert not made.lostHoles
    gone = [row for each in log.batches for row in each.rows if row not in left]
    assert sum(made.excluded.values()) == len(gone)
    lines = [line for line in run.lines if line["type"] == "salvageExcluded"]
    assert sum(line["records"] for line in lines) == len(gone)
    ranges = [range(line["offset"], line["lastOffset"] + 1) for line in lines]
    assert all(any(row.offset in each for each in ranges) for row in gone)
    assert not any(row.offset in each for each in ranges for row in left)
    text = b"".join(map(payload, written)) + b"".join(written)
    words = {row.value[:11] for row in gone if row.value and not row.is_control}
    words |= {row.key for row in gone if row.key and len(row.key) > 1 and not row.is_control}
    assert not [word for word in words if word in text]
    _keeps_headers(within, written)
    if made.files:
        assert made.logEndOffset == within[-1].last + 1 + len(aborted)
        epochs = (run.out / made.directory / "leader-epoch-checkpoint").exists()
        assert epochs == any(batch[16] > 1 for batch in written)


def open_in(within: list[Made]) -> list[int]:
    """Return the first offsets of the transactions that have no marker in these batches."""
    running: dict[int, int] = {}
    for made in within:
        header = BATCH_HEADER.read(made.data) if made.data[16] > 1 else None
        if header is not None and header.isControlBatch:
            running.pop(header.producerId, None)
        elif header is not None and header.isTransactional:
            running.setdefault(header.producerId, made.first)
    return sorted(running.values())


def _keeps_headers(within: list[Made], written: list[bytes]) -> None:
    """Check that each batch of magic 2 keeps its offsets, epochs, producer and sequence, emptied or not."""
    before = [BATCH_HEADER.read(each.data) for each in within if each.data[16] > 1]
    after = [BATCH_HEADER.read(batch) for batch in written if batch[16] > 1]
    assert len(before) <= len(after)
    for one, other in zip(before, after, strict=False):
        assert all(getattr(one, name) == getattr(other, name) for name in KEPT_FIELDS)
        remaining = ~(7 | HORIZON) if not other.recordCount else ~0
        assert one.attributes & remaining == other.attributes & remaining


def test_what_is_left_of_random_logs(tmp_path: Path) -> None:
    for seed in ("cut", "cut+"):
        for log, cut, run in cut_logs(tmp_path / seed, 20, seed):
            check(log, cut, run)
            assert seed == "cut" or not run.only.openTransactions


@pytest.mark.every_disk
def test_what_is_left_of_random_logs_today(tmp_path: Path) -> None:
    for log, cut, run in cut_logs(tmp_path, int(os.environ.get("KDUMP_EXAMPLES") or 2000), f"{SEED} cut"):
        check(log, cut, run)


@pytest.mark.jars
def test_what_is_left_is_what_the_cleaner_leaves(tmp_path: Path) -> None:
    """Compare with MemoryRecords.filterTo, batch for batch and record for record."""
    lines = []
    for log, cut, run in cut_logs(tmp_path, int(os.environ.get("KDUMP_EXAMPLES") or 2000), f"{SEED} filter"):
        batches = [made.last for made in log.batches if not cut.is_within(made)]
        gone = [row.offset for made in log.batches for row in made.rows if not cut.keeps(row)]
        source = b"".join(made.data for made in log.batches)
        output = b"".join((run.out / file).read_bytes() for file in run.only.files)
        parts = (base64.b64encode(source).decode(), *(",".join(map(str, each)) for each in (batches, gone)))
        lines.append(" ".join((*parts, base64.b64encode(output).decode())))
    answers = _java("FilterRecords.java", lines)
    assert [answer for answer in answers if answer != "same"][:3] == []


@pytest.mark.jars
def test_a_broker_loads_what_is_left_and_changes_nothing(tmp_path: Path) -> None:
    """LogLoader, after an unclean shutdown: it adds producer snapshots, allocates the indexes of the last segment, and
    leaves all else as it is."""
    lines, before, ends = [], {}, []
    for number in range(int(os.environ.get("KDUMP_EXAMPLES") or 200)):
        rng = random.Random(f"{SEED} load {number}")
        log = Log(rng).fill()
        cut, out = random_cut(log, rng), tmp_path / str(number) / "out"
        source = log.write(tmp_path / str(number) / "t-0")
        (made,) = salvage([str(source)], str(out), cut=cut.request, abort_open=number % 2 > 0)
        if made.files:
            directory = out / made.directory
            before |= {path: path.read_bytes() for path in directory.iterdir()}
            known = {"interval": 4096, "largest": 10 << 20, "clean": False, "logStart": 0, "recoveryPoint": 0}
            lines.append(json.dumps({"path": str(directory), "remote": False, **known}))
            ends.append(made.logEndOffset)
    answers = [json.loads(line) for line in _java("LoadLogs.java", lines)]
    assert [answer["thrown"] for answer in answers if answer["thrown"]] == []
    assert [answer["answer"]["logEnd"] for answer in answers] == ends
    after = {path: path.read_bytes() for path in before}
    assert [path for path in before if after[path].rstrip(b"\0") != before[path].rstrip(b"\0")] == []


def _java(program: str, lines: list[str]) -> list[str]:
    java, jars = os.environ.get("KDUMP_JAVA", "java"), Path(os.environ["KDUMP_JARS"]).resolve()
    command = [java, "-cp", f"{jars}/*", program]
    ran = subprocess.run(command, input="\n".join(lines), cwd=TOOLS, capture_output=True, text=True, check=True)
    assert len(ran.stdout.splitlines()) == len(lines)
    return ran.stdout.splitlines()
