"""What a broker has open when it starts: its producer snapshots, its log start offset, and damage."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import kdump
from kdump.format.kafka_release import parse_release
from kdump.questions.producers.answer import Producer
from kdump.questions.transactions.answer import PartitionTransactions, Transaction
from kdump.questions.transactions.ledger import ENDED_BEFORE, NOT_IN_INDEX, NOT_IN_SNAPSHOT, NOT_LOADED, REPAIRED
from tests import naive
from tests.command import objects, run
from tests.conftest import FIXTURES, SEED
from tests.craft import flip, write_file
from tests.disks import data, marker, partition, snapshot
from tools.incident.disk import PAYMENTS, ZERO

SEEDS = 600 if SEED else 12
COMMITS = [data(0, 5), marker(1, 5), data(2, 6), data(3, 5)]
"""A transaction that was committed, and two that are open from offsets 2 and 3."""


def taken(offset: int, **open_from: int) -> tuple[str, bytes]:
    """Return the name and content of a producer snapshot with producers p5, p6 …"""
    rows = [(int(name[1:]), 0, -1, -1, 0, 1, -1, first) for name, first in open_from.items()]
    return f"{offset:020}.snapshot", snapshot(*rows)


def log_directory(root: Path, *segments: bytes, clean: bool = True, start: int | None = None) -> Path:
    folder = partition(root, *segments)
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\n")
    if clean:
        (root / ".kafka_cleanshutdown").touch()
    if start is not None:
        (root / "log-start-offset-checkpoint").write_text(f"0\n1\npayments 0 {start}\n")
    return folder


def states(folder: Path) -> dict[int, str]:
    return {row.firstOffset or 0: row.state for row in kdump.transactions(str(folder)) if isinstance(row, Transaction)}


def summary(folder: Path) -> PartitionTransactions:
    (last,) = (row for row in kdump.transactions(str(folder)) if isinstance(row, PartitionTransactions))
    return last


def held(folder: Path) -> tuple[int | None, int | None]:
    """Return the last stable offset and who holds it; every command states the same."""
    row = summary(folder)
    (retained,) = (each for each in objects("retention", folder) if each["type"] == "retention")
    assert retained["lastStableOffset"] == row.lastStableOffset
    open_from = {
        each.firstOffset
        for each in kdump.transactions(str(folder), states=frozenset({"open"}))
        if isinstance(each, Transaction)
    }
    found = [
        each
        for each in objects("verify", "--info", folder, status=run("verify", folder).exit_code)
        if each.get("code") == "transaction-open"
    ]
    assert {each["offset"] for each in found} == open_from
    stored = {each.currentTxnFirstOffset for each in kdump.producers(str(folder)) if isinstance(each, Producer)}
    assert stored - {None, -1} == open_from
    shown = run("inspect", "--read-committed", folder).stderr
    assert (f"last stable offset {row.lastStableOffset}," in shown) == (row.heldBy is not None)
    return row.lastStableOffset, row.heldBy


def test_below_the_log_start_nothing_is_open(tmp_path: Path) -> None:
    for start, expected in ((2, (2, 6)), (3, (3, 5)), (4, (4, None))):
        folder = log_directory(tmp_path / str(start), b"".join(COMMITS), start=start)
        write_file(folder / taken(1)[0], taken(1)[1])
        assert held(folder) == expected
    assert summary(folder).belowLogStart == 2


def test_a_transaction_across_the_log_start(tmp_path: Path) -> None:
    """A broker has it if it loads a snapshot above the log start, and waits at the log start for its end."""
    name, content = taken(4, p5=3, p6=2)
    folder = log_directory(tmp_path, b"".join(COMMITS), start=3)
    (folder / name).write_bytes(content)
    row = summary(folder)
    assert (row.lastStableOffset, row.heldBy, row.open) == (3, 6, 2)


def test_a_damaged_marker_ended_before_the_next_snapshot(tmp_path: Path) -> None:
    damaged = flip(flip(COMMITS[1], 8 * 70), 8 * 70 + 3)
    folder = log_directory(tmp_path, b"".join(COMMITS[:2]), b"".join(COMMITS[2:]))
    (folder / f"{ZERO}.log").write_bytes(COMMITS[0] + damaged)
    (folder / taken(4)[0]).write_bytes(taken(4, p5=3, p6=2)[1])
    assert held(folder) == (2, 6)
    row = next(row for row in kdump.transactions(str(folder)) if isinstance(row, Transaction))
    assert (row.state, row.firstOffset) == ("committed", 0)
    assert row.remarks == (ENDED_BEFORE.format(name=f"{2:020}.snapshot"), NOT_IN_INDEX)
    (folder / f"{ZERO}.log").write_bytes(COMMITS[0] + flip(COMMITS[1], 8 * 70))
    row = next(row for row in kdump.transactions(str(folder)) if isinstance(row, Transaction))
    assert (row.state, row.markerOffset, row.remarks) == ("committed", 1, (REPAIRED,))


def test_the_loaded_snapshot_differs_from_the_log(tmp_path: Path) -> None:
    """No command aborts what a broker does not have."""
    folder = log_directory(tmp_path, b"".join(COMMITS))
    name, content = taken(4, p6=2)
    (folder / name).write_bytes(content)
    assert held(folder) == (2, 6)
    lost = next(row for row in kdump.transactions(str(folder)) if isinstance(row, Transaction) and row.state == "lost")
    assert (lost.firstOffset, lost.abort) == (3, None)
    assert lost.remarks == (NOT_LOADED.format(why=NOT_IN_SNAPSHOT.format(name=name)),)
    (folder / name).write_bytes(taken(4, p5=3, p6=2, p7=1)[1])
    assert held(folder) == (1, 7)


def test_without_a_snapshot_after_a_clean_shutdown(tmp_path: Path) -> None:
    folder = log_directory(tmp_path, b"".join(COMMITS))
    assert held(folder) == (4, None)
    (folder / f"{ZERO}.index").unlink()  # the segment is recovered
    assert held(folder) == (2, 6)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert held(folder) == (2, 6)


@pytest.mark.parametrize("rest", [0, 96])
def test_entries_of_the_index_above_the_log_end_end_nothing(rest: int, tmp_path: Path) -> None:
    log = FIXTURES / "clean-1" / PAYMENTS / f"{ZERO}.log"
    folder = log_directory(tmp_path, log.read_bytes()[: 4894 + rest])
    shutil.copy(log.with_suffix(".txnindex"), folder)
    (folder / f"{ZERO}.index").unlink()
    assert held(folder) == (42, 9)


RELEASES = {"3.9.1": 2, "4.3.1": 1}


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_start_inside_a_batch(release: str, tmp_path: Path) -> None:
    """From 4.0 on, the offset is that of the batch (KAFKA-17803)."""
    folder = log_directory(tmp_path, data(0, 1, transactional=False) + data(1, 5, count=3), start=2)
    write_file(folder / taken(4, p5=1)[0], taken(4, p5=1)[1])
    (row,) = (
        row
        for row in kdump.transactions(str(folder), run=kdump.Options(kafka_version=parse_release(release)))
        if isinstance(row, PartitionTransactions)
    )
    assert (row.lastStableOffset, row.heldBy, row.startLogEndOffset) == (RELEASES[release], 5, 4)


def test_what_a_broker_reads_without_checking_it(tmp_path: Path) -> None:
    """What a 4.3.1 broker did with each (tools/stable_offset_trials.py)."""
    first, end, plain = data(0, 5), marker(1, 5), data(0, 1, transactional=False)
    cases = {
        # the log; last stable offset, who holds it, log end
        "magic of a marker": (b"".join((first, flip(end, 8 * 16 + 1), data(2, 6))), (2, 6, 3)),
        "base offset of a batch before the open one": (
            b"".join((plain, flip(data(1, 1, transactional=False), 8 * 3), data(2, 6), data(3, 6))),
            (4, None, 4),
        ),
        "data that is cut": (b"".join((first, end, data(2, 6)[:-4])), (2, None, 2)),
        "value of the last batch": (b"".join((first, end, flip(data(2, 6), 8 * 66))), (2, 6, 3)),
    }
    for number, (log, expected) in enumerate(cases.values()):
        folder = log_directory(tmp_path / str(number), log)
        write_file(folder / taken(9)[0], b"")  # it is above the log end
        options = kdump.Options(kafka_version=parse_release("4.3.1"))
        (row,) = (row for row in kdump.transactions(str(folder), run=options) if isinstance(row, PartitionTransactions))
        assert (row.lastStableOffset, row.heldBy, row.startLogEndOffset) == expected, list(cases)[number]


def test_a_marker_with_bytes_after_its_record_stops_the_startup(tmp_path: Path) -> None:
    end = marker(1, 5)
    longer = end[:8] + (len(end) - 11).to_bytes(4, "big") + end[12:] + b"\0"
    folder = log_directory(tmp_path, data(0, 5) + longer)
    write_file(folder / taken(9)[0], b"")
    (stop,) = kdump.restart_plan([str(tmp_path)]).partitions[0].stops
    assert (stop.position, stop.exception) == (
        len(data(0, 5)),
        "InvalidRecordException: Incorrect declared batch size, records still remaining in file",
    )


def test_a_startup_looks_for_the_transactions_that_it_sees_ending(tmp_path: Path) -> None:
    """The batch before them has magic 0 and a codec: its base offset is in a message that is none."""
    damaged = bytearray(data(1, 6))
    damaged[16:18] = b"\0\1"
    folder = log_directory(
        tmp_path,
        data(0, 1, transactional=False) + bytes(damaged) + data(2, 5) + data(3, 1, transactional=False),
        marker(4, 5),
    )
    write_file(folder / taken(4)[0], taken(4, p5=2)[1])
    (stop,) = kdump.restart_plan([str(tmp_path)], kafka_version="4.3.1").partitions[0].stops
    assert stop.position == len(data(0, 1, transactional=False))


def test_where_a_transaction_begins_is_found_in_earlier_segments(tmp_path: Path) -> None:
    """doctor reads from the newest snapshot on, and further back if a transaction is open from before."""
    folder = log_directory(tmp_path, data(0, 5), data(1, 1, transactional=False), data(2, 1, transactional=False))
    (folder / taken(3)[0]).write_bytes(taken(3, p5=0)[1])
    (item,) = (each for each in objects("doctor", tmp_path, status=1) if each.get("code") == "transaction-open")
    assert (item["file"], item["position"]) == (str(folder / f"{ZERO}.log"), 0)


# --- Random damage, compared with the startup that restart-plan simulates ---------------------------------------------


def random_log(root: Path, dice: random.Random) -> tuple[Path, int]:
    """Write a partition with transactions of three producers, shut down cleanly. Returns it and its log end offset."""
    end, segments, running = 0, [b""], set()
    for _ in range(dice.randrange(30, 70)):
        producer = dice.choice((1, 5, 6, 7))
        if producer in running and dice.random() < 0.4:
            segments[-1] += marker(end, producer, commit=dice.random() < 0.5)
            running.remove(producer)
            end += 1
        else:
            count = dice.randrange(1, 4)
            segments[-1] += data(end, producer, count=count, transactional=producer != 1)
            running |= {producer} - {1}
            end += count
        if dice.random() < 0.08:
            segments.append(b"")
    folder = log_directory(root, *filter(None, segments))
    _, left = naive.ended(naive.batches(*sorted(folder.glob("*.log"))))
    name, content = taken(end, **{f"p{producer}": first for producer, first in left.items()})
    (folder / name).write_bytes(content)
    return folder, end


def damage(folder: Path, end: int, dice: random.Random) -> str:
    kind = dice.choice(("flip", "flip", "flip", "snapshot", "no snapshot", "tail", "log start"))
    logs, snapshots = (sorted(folder.glob(f"*.{ending}")) for ending in ("log", "snapshot"))
    if kind == "tail":
        os.truncate(logs[-1], max(1, logs[-1].stat().st_size - dice.randrange(1, 90)))
    elif kind == "log start":
        start = dice.randrange(1, end + 1)
        (folder.parent / "log-start-offset-checkpoint").write_text(f"0\n1\npayments 0 {start}\n")
    elif kind == "no snapshot" and snapshots:
        dice.choice(snapshots).unlink()
    elif kind == "flip" or snapshots:
        path = dice.choice(logs if kind == "flip" else snapshots)
        path.write_bytes(flip(path.read_bytes(), dice.randrange(8 * path.stat().st_size)))
    return kind


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_startup_has_the_same_open_transactions(seed: int, tmp_path: Path) -> None:
    dice = random.Random(f"{SEED}{seed}")
    folder, end = random_log(tmp_path, dice)
    done = [damage(folder, end, dice) for _ in range(dice.choice((1, 2, 2, 3)))]
    (plan,) = kdump.restart_plan([str(tmp_path)]).partitions
    row = summary(folder)
    if plan.logEndOffset is not None:  # else it does not start
        opened = row.open + row.hanging
        assert (row.startLogEndOffset, opened) == (plan.logEndOffset, len(plan.openTransactions)), done
