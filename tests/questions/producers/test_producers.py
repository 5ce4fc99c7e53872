"""Producers of a partition: what a broker would rebuild, compared with kafka-dump-log's output for its snapshots;
sequence errors, compared with verify; and crafted logs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
import kdump.state.producer_state as state
from kdump.answer import Note
from kdump.check.engine.units import units
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.questions.producers.answer import PartitionProducers, Producer, ProducerEvent
from kdump.questions.producers.ledger import NO_STATE, NOT_IN_SNAPSHOT, PART
from tests.conftest import DISKS, ORACLE, ROOT
from tests.craft import flip
from tests.disks import PAYMENTS, cut, data, marker, partition, snapshot

NOW = 1_700_000_000_000
"""Timestamp of the batches that tests.craft makes."""
DAY = 86_400_000


def ask(*paths: Path | str, **question: Any) -> list[Any]:
    return list(kdump.producers(map(str, paths), **{"now": NOW, **question}))


def rows(answers: list[Any]) -> dict[int, Producer]:
    return {each.producerId: each for each in answers if isinstance(each, Producer)}


def events(answers: list[Any]) -> list[tuple[int, int, str]]:
    return [(each.offset, each.producerId, each.event) for each in answers if isinstance(each, ProducerEvent)]


def words(path: Path) -> dict[int, dict[str, int]]:
    """Return the text of kafka-dump-log for each producer of a snapshot."""
    found = {}
    for line in path.read_text().splitlines()[1:]:
        said = {name: int(number) for name, number in re.findall(r"(\w+): (?:OptionalLong\[)?(-?\d+)", line)}
        found[said["producerId"]] = {
            "epoch": said["producerEpoch"],
            "lastSequence": said.get("lastSequence", -1),
            "lastOffset": said.get("lastOffset", -1),
            "offsetDelta": said.get("offsetDelta", 0),
            "timestamp": said["lastTimestamp"],
            "coordinatorEpoch": said["coordinatorEpoch"],
            "currentTxnFirstOffset": said.get("currentTxnFirstOffset", -1),
        }
    return found


FIELDS = (
    *("epoch", "lastSequence", "lastOffset", "offsetDelta", "timestamp", "coordinatorEpoch"),
    "currentTxnFirstOffset",
)


def known(row: Producer) -> dict[str, int | None]:
    """Return the producer state that a broker would have."""
    return {name: getattr(row, name) for name in FIELDS}


# --- Real disks -------------------------------------------------------------------------------------------------------


def test_the_log_gives_what_the_broker_wrote_down(tmp_path: Path) -> None:
    """Replay every partition without its snapshots, and compare with kafka-dump-log's output for the snapshot at its
    end."""
    compared = 0
    different = set()
    for path in sorted((ORACLE / "kafka-4.3-clean-1").glob("*/*.snapshot.txt")):
        said, name = words(path), path.parent.name
        here = DISKS / "kafka-4.3" / "clean-1" / name
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        for log in here.glob("*.log"):
            if log.name < path.name:  # the segments below the snapshot's offset
                shutil.copy(log, folder)
        if not any(folder.iterdir()):
            continue  # this disk has only its snapshot
        answers = ask(folder)
        end = answers[-1].logEndOffset
        if not said or end != int(path.name.partition(".")[0]):
            continue
        found = {number: known(row) for number, row in rows(answers).items()}
        for number, entry in said.items():
            compared += 1
            if found.get(number) != entry:
                different.add((name, number))
        assert set(found) <= set(said), name
    assert compared >= 30
    assert different == set()


def test_what_the_broker_begins_with() -> None:
    """After a clean shutdown, the state is that of the newest snapshot, entry by entry, without contradictions."""
    root = DISKS / "kafka-4.3" / "clean-1"
    paths = sorted((ORACLE / "kafka-4.3-clean-1").glob("*/*.snapshot.txt"))
    compared = 0
    for path in paths:
        if path.parent.name in NOT_ASKED:
            continue
        answers = ask(root / path.parent.name, now=1_795_248_000_000)
        summary = answers[-1]
        assert isinstance(summary, PartitionProducers)
        if summary.stateOffset == int(path.name.partition(".")[0]) == summary.logEndOffset:
            told = {number: known(row) for number, row in rows(answers).items() if row.inSnapshot}
            assert told == words(path), path
            compared += 1
        assert not [each for each in answers if isinstance(each, (Finding, Note))], path

    assert compared >= 35


NOT_ASKED = ("__cluster_metadata-0", "__transaction_state-0")
"""Logs without producers."""


def test_producers_of_payments() -> None:
    found = rows(ask(DISKS / "kafka-4.3" / "clean-1", topics=["payments"], now=1_795_248_000_000))
    assert {number: row.transactionalId for number, row in found.items()} == {
        9: "tx-a",
        10: "tx-b",
        11: "tx-hang",
        12: None,
    }
    assert (found[9].commits, found[9].aborts, found[9].firstEpoch, found[9].lastEpoch) == (5, 3, 0, 8)
    assert (found[11].currentTxnFirstOffset, found[11].state) == (114, "live")


# --- What does not follow ---------------------------------------------------------------------------------------------

BROKEN = [
    ("gaps", "gap", "sequence-gap", [data(0, 1, transactional=False), data(1, 1, transactional=False, baseSequence=5)]),
    ("duplicates", "duplicate", "sequence-duplicate", [data(i, 1, transactional=False) for i in range(2)]),
    ("fenced", "fenced", "producer-epoch-decreased", [data(i, 1, 3 - i, transactional=False) for i in range(2)]),
    (
        *("epochStarts", "epochStart", "sequence-epoch-start"),
        [data(i, 1, i, transactional=False, baseSequence=i) for i in range(2)],
    ),
]


@pytest.mark.parametrize(("count", "event", "code", "log"), BROKEN)
def test_what_verify_finds_is_counted_and_told(
    tmp_path: Path, count: str, event: str, code: str, log: list[bytes]
) -> None:
    folder = partition(tmp_path, b"".join(log))
    answers = ask(folder)
    assert getattr(rows(answers)[1], count) == getattr(answers[-1], count) == 1
    assert [each.code for each in answers if isinstance(each, Finding)] == [code]
    options = Options(now=NOW, only=frozenset({"producers"}))
    found = [each for unit in units((str(folder),), options) for each in unit.run(CheckTotals())]
    assert [each.code for each in found] == [code]
    told = [each for each in ask(folder, events=True) if isinstance(each, ProducerEvent)]
    assert [each.event for each in told] == ["first", event]
    assert (told[1].offset, told[1].position) == (1, len(log[0]))
    assert found[0].message.endswith(told[1].message)
    assert rows(ask(folder, broken=True)).keys() == {1}


def test_forgotten_and_back(tmp_path: Path) -> None:
    """The producer was idle for longer than producer.id.expiration.ms: any sequence may follow."""
    late = {"baseTimestamp": NOW + 2 * DAY, "maxTimestamp": NOW + 2 * DAY}
    log = data(0, 1, transactional=False) + data(1, 1, transactional=False, baseSequence=77, **late)
    answers = ask(partition(tmp_path, log), events=True)
    assert events(answers) == [(0, 1, "first"), (1, 1, "forgotten")]


def test_history_of_epochs(tmp_path: Path) -> None:
    log = data(0, 1) + marker(1, 1, 1) + data(2, 1, 1) + marker(3, 1, 2, commit=False) + data(4, 1, 5) + marker(5, 2)
    answers = ask(partition(tmp_path, log), events=True)
    # The markers themselves start epochs 1 and 2 (transaction version 2); 5 is a restarted producer.
    assert events(answers) == [(0, 1, "first"), (1, 1, "COMMIT"), (3, 1, "ABORT"), (4, 1, "epoch"), (5, 2, "COMMIT")]
    row = rows(answers)[1]
    assert (row.firstEpoch, row.lastEpoch, row.commits, row.aborts, row.currentTxnFirstOffset) == (0, 5, 1, 1, 4)


def test_a_broken_sequence_behind_a_zombie_is_told_once(tmp_path: Path) -> None:
    log = [data(0, 1, 1, transactional=False), data(1, 1, 0, transactional=False, baseSequence=9)]
    log.append(data(2, 1, 1, transactional=False, baseSequence=1))
    row = rows(ask(partition(tmp_path, b"".join(log))))[1]
    assert (row.fenced, row.gaps, row.duplicates, row.epochStarts) == (1, 0, 0, 0)


# --- What a broker would know -----------------------------------------------------------------------------------------


def test_expired(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(0, 1, transactional=False) + data(1, 2))
    assert {n: r.state for n, r in rows(ask(folder, now=NOW + DAY)).items()} == {1: "expired", 2: "live"}  # 2 is open
    assert {n: r.state for n, r in rows(ask(folder, now=NOW + DAY - 1)).items()} == {1: "live", 2: "live"}
    assert rows(ask(folder, now=NOW + 1000, expiration=1000))[1].state == "expired"


def entry(producer: int, *, epoch: int = 0, last: int = -1, timestamp: int = NOW, txn: int = -1) -> tuple[int, ...]:
    return (producer, epoch, 4 if last >= 0 else -1, last, 0, timestamp, 7, txn)


def test_a_snapshot_and_the_log_behind_it(tmp_path: Path) -> None:
    log = data(0, 1, transactional=False) + data(1, 2, transactional=False) + data(2, 3, transactional=False)
    folder = partition(tmp_path, log)
    (folder / f"{2:020}.snapshot").write_bytes(snapshot(entry(1, last=0, epoch=0), entry(9)))
    answers = ask(folder)
    found = rows(answers)
    assert {number: row.state for number, row in found.items()} == {1: "live", 2: "unknown", 3: "live", 9: "live"}
    assert (found[1].coordinatorEpoch, found[1].lastSequence) == (7, 4)  # from the snapshot, not from the log
    assert (found[2].epoch, found[2].batches, found[2].inSnapshot) == (None, 1, False)
    assert found[2].remarks[0] == NOT_IN_SNAPSHOT.format(name=f"{2:020}.snapshot")
    assert (found[3].lastOffset, found[3].inSnapshot) == (2, False)
    assert (found[9].batches, found[9].inSnapshot) == (0, True)
    assert found[9].file.endswith(".snapshot")
    assert (answers[-1].stateOffset, answers[-1].snapshotOnly, answers[-1].live) == (2, 1, 3)
    mismatch = [each for each in answers if isinstance(each, Finding)]
    assert [each.code for each in mismatch] == ["snapshot-mismatch"]  # lastSequence 4, but 0 in the log


def test_what_lies_below_the_log_the_snapshot_knows(tmp_path: Path) -> None:
    """One transaction began below the log start and continues; a marker of version 1 does not change the sequence."""
    log = data(100, 9, transactional=False) + data(101, 1) + marker(102, 2, coordinator=8)
    folder = partition(tmp_path, log)
    (folder / f"{101:020}.snapshot").write_bytes(snapshot(entry(1, last=50, txn=40), entry(2, last=60, txn=60)))
    found = rows(ask(folder))
    assert (found[1].lastOffset, found[1].lastSequence, found[1].currentTxnFirstOffset) == (101, 0, 40)
    assert (found[2].lastOffset, found[2].lastSequence, found[2].currentTxnFirstOffset) == (60, 4, -1)
    assert found[2].coordinatorEpoch == 8
    assert found[9].state == "unknown"


def test_snapshots_that_a_broker_would_not_take(tmp_path: Path) -> None:
    batches = [data(i, i, transactional=False) for i in range(1, 5)]
    folder = partition(tmp_path, b"".join(batches[:2]), b"".join(batches[2:]))
    good = snapshot(entry(1, last=1))
    for newest, content in ((4, good), (5, flip(good, 70)), (9, good)):
        # 4 is below 9 and not the base offset of a segment, 5 is damaged, 9 is above the log end offset, 1 is not above
        # the log start offset.
        for offset in {1, 3, 4, newest}:
            (folder / f"{offset:020}.snapshot").write_bytes(content if offset == newest else good)
        assert ask(folder)[-1].stateOffset == (4 if newest == 4 else 3)
    (folder / f"{3:020}.snapshot").unlink()
    assert ask(folder)[-1].stateFrom == "log"


def test_shut_down_cleanly_without_a_snapshot(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(0, 1, transactional=False))
    (tmp_path / "meta.properties").write_text("version=1\n")
    (tmp_path / ".kafka_cleanshutdown").write_text("{}")
    answers = ask(folder)
    assert (answers[-1].stateFrom, rows(answers)[1].state) == ("nothing", "unknown")
    assert rows(answers)[1].remarks[0] == NO_STATE
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert ask(folder)[-1].stateFrom == "log"


def test_an_earlier_segment_alone_is_no_state(tmp_path: Path) -> None:
    first = sorted(partition(tmp_path, *cut(40)).glob("*.log"))[0]
    answers = ask(first)
    assert {row.state for row in rows(answers).values()} == {"unknown"}
    assert all(row.remarks[0] == PART for row in rows(answers).values())


def test_segments_say_what_the_whole_log_says(tmp_path: Path) -> None:
    expected = {n: (*known(r).values(), r.batches, r.records) for n, r in rows(ask(PAYMENTS)).items()}
    for at in (1, 30, 60):
        folder = partition(tmp_path / str(at), *cut(at), snapshots=False)
        assert {n: (*known(r).values(), r.batches, r.records) for n, r in rows(ask(folder)).items()} == expected


# --- Damage, and the hostile ------------------------------------------------------------------------------------------


def test_damage_between(tmp_path: Path) -> None:
    log = [data(i, 1, transactional=False, baseSequence=i) for i in range(3)]
    folder = partition(tmp_path, b"".join(log))
    (folder / PAYMENTS.name).write_bytes(log[0] + flip(log[1], 8 * 65) + log[2])
    answers = ask(folder, events=True)
    assert answers[-1].damages == 1
    told = [each for each in answers if isinstance(each, ProducerEvent)]
    assert [each.event for each in told] == ["first", "gap"]
    assert "there is damage between the two" in told[1].message


def test_more_producers_than_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_PRODUCERS", 100)
    folder = partition(tmp_path, b"".join(data(i, i, transactional=False) for i in range(1000)))
    answers = ask(folder)
    assert sorted(rows(answers)) == list(range(900, 1000))
    summary = next(each for each in answers if isinstance(each, PartitionProducers))
    assert summary.forgotten == 900
    assert any(isinstance(each, Note) and "900" in each.message for each in answers)


def test_a_snapshot_that_recovery_rebuilds_is_not_loaded(tmp_path: Path) -> None:
    """After an unclean shutdown, snapshots above the first segment that is recovered are rebuilt from the batches."""
    disk = shutil.copytree(ROOT / "fixtures" / "crash-1", tmp_path / "disk")
    shutil.copy(DISKS / "kafka-4.3" / "crash-1" / "meta.properties", disk)
    (disk / "payments-0" / f"{0:020}.index").touch()  # without it, the segment is recovered
    for clean in (False, True):
        if clean:
            (disk / ".kafka_cleanshutdown").touch()
        (found,) = (x for x in ask(disk) if isinstance(x, PartitionProducers) and x.topic == "payments")
        assert found.stateOffset == (120 if clean else None)
