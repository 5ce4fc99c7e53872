"""The ledger of transactions, compared with the output of kafka-dump-log, the coordinator's log and a naive
implementation; and crafted logs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
import kdump.state.transaction_tracker as tracker
from kdump.answer import Note
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
from kdump.format.transaction_record import STATES
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.problems.problem import title_of
from kdump.questions.producers.answer import Producer
from kdump.questions.transactions.answer import CoordinatorTransaction, Difference, PartitionTransactions, Transaction
from kdump.questions.transactions.ledger import (
    DAMAGE_WITHIN,
    EPOCHS,
    LATER,
    LOST_BEGIN,
    MARKER_DUE,
    NO_DATA,
    NO_DATA_BELOW,
    NO_DATA_COMPACTED,
    NOT_IN_IT,
    ONLY_INDEX,
)
from tests import craft, naive
from tests.command import run
from tests.conftest import DISKS, FIXTURES, ORACLE, SEED, numbers_in, sample, seeded
from tests.craft import batch, flip, split, write_file
from tests.disks import PAYMENTS, coordinator, cut, data, marker, partition, snapshot, txn_index
from tests.each_case import each_case
from tests.state.test_metadata import log as metadata_log
from tests.state.test_metadata import partition as metadata_partition
from tests.state.test_metadata import topic as metadata_topic

NOW = 1_700_000_900_000
"""15 minutes after the batches that tests.craft makes."""


def ask(*paths: Path | str, **question: Any) -> list[Any]:
    return list(kdump.transactions(map(str, paths), **{"now": NOW, **question}))


def torn_bits(data: bytes) -> bytes:
    """Return a batch with two flipped bits in its first record, which nothing repairs."""
    return flip(flip(data, 8 * 70), 8 * 70 + 3)


def rows(answers: list[Any]) -> list[Transaction]:
    return [each for each in answers if isinstance(each, Transaction)]


def whole(root: Path) -> None:
    """The cluster's metadata has one partition of __transaction_state, so the coordinator's log is complete."""
    folder = root / "__cluster_metadata-0"
    folder.mkdir()
    said = [metadata_topic("__transaction_state", "t"), metadata_partition("t", 0, [1])]
    (folder / f"{0:020}.log").write_bytes(metadata_log(said))


# --- Real disks -------------------------------------------------------------------------------------------------------


def prepared(oracle: Path) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """Return what kafka-dump-log prints about __transaction_state: decisions, and the transactions ongoing at the
    end."""
    decided, last = set(), {}
    for line in oracle.read_text().splitlines():
        match = re.search(r" key: (\{.*\}) payload: (\{.*\})$", line)
        if not match:
            continue
        name, said = json.loads(match[1])["data"]["transactionalId"], json.loads(match[2])["data"]
        state = STATES[said["transactionStatus"]]
        places = [(p["topic"], n) for p in said["transactionPartitions"] or () for n in p["partitionIds"]]
        last[name] = (state, said, places)
        if state.startswith("Prepare"):
            outcome = {"PrepareCommit": "committed", "PrepareAbort": "aborted"}[state]
            decided |= {(name, said["producerId"], said["producerEpoch"], outcome, *place) for place in places}
    ongoing = {
        (name, said["producerId"], said["producerEpoch"], *place)
        for name, (state, said, places) in last.items()
        for place in places
        if state == "Ongoing"
    }
    return decided, ongoing


def test_clean_1_agrees_with_its_coordinator() -> None:
    """Every marker was decided, and every decision has its marker, except for those that compaction has removed."""
    disk = DISKS / "kafka-4.3" / "clean-1"
    decided, ongoing = prepared(ORACLE / "kafka-4.3-clean-1" / "__transaction_state-0" / f"{0:020}.log.txt")
    answers = ask(disk)
    found = {
        (row.transactionalId, row.producerId, row.markerEpoch, row.state, row.topic, row.partition)
        for row in rows(answers)
        if row.markerOffset is not None
    }
    open_ = {
        (row.transactionalId, row.producerId, row.producerEpoch, row.topic, row.partition)
        for row in rows(answers)
        if row.markerOffset is None
    }
    assert found <= decided
    assert open_ == ongoing != set()
    missing = decided - found
    # sessions is compacted with delete.retention.ms=1, which removes a producer's first COMMIT; nothing else is
    # missing.
    assert {(name, epoch, topic) for name, _, epoch, _, topic, _ in missing} == {("compact-sessions", 1, "sessions")}
    assert not [each for each in answers if isinstance(each, (Difference, Finding, Note))]
    said = {each.transactionalId: each for each in answers if isinstance(each, CoordinatorTransaction)}
    assert said["tx-hang"].state == "Ongoing"
    assert said["tx-hang"].partitions == ("payments-0",)


def test_clean_1_agrees_with_the_words_of_each_txnindex() -> None:
    disk, words = DISKS / "kafka-4.3" / "clean-1", ORACLE / "kafka-4.3-clean-1"
    found = {
        (f"{row.topic}-{row.partition}", row.producerId, row.firstOffset, row.markerOffset)
        for row in rows(ask(disk))
        if row.state == "aborted" and row.inTxnIndex
    }
    said = set()
    for path in words.glob("*/*.txnindex.txt"):
        for match in re.finditer(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+)", path.read_text()):
            said.add((path.parent.name, *map(int, match.groups())))
    assert found == said
    assert len(found) >= 7


@pytest.mark.parametrize("name", ["clean-1", "crash-1", "live-1"])
def test_last_stable_offset_and_words_of_the_snapshot(name: str) -> None:
    """Transactions that are open in the log are those in the snapshots (currentTxnFirstOffset)."""
    disk = DISKS / "kafka-4.3" / name
    places = {each.topic: each for each in ask(disk) if isinstance(each, PartitionTransactions)}
    assert (places["payments"].lastStableOffset, places["payments"].heldBy) == (114, 11)
    assert all(each.lastStableOffset == each.logEndOffset for each in places.values() if each.topic != "payments")
    # The same partitions, before they were copied from a running broker, or after the broker was killed.
    paths = list((ORACLE / "kafka-4.3-clean-1").glob("*/*.snapshot.txt"))
    assert len(paths) > 40
    for path in paths:
        held = re.findall(r"currentTxnFirstOffset: OptionalLong\[(\d+)\]", path.read_text())
        assert held == (["114"] if path.parent.name == "payments-0" else []), path


@pytest.mark.sampled
@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.every_disk)])
def test_every_disk_as_the_naive_twin_has_it(large: bool) -> None:
    total = 0
    for root in (DISKS, FIXTURES):
        for folder in sample(sorted({path.parent for path in root.rglob("*.log")}), 1 if large else 9):
            logs = sorted(folder.glob("*.log"))
            if not re.fullmatch(r"[\w.-]+-\d+", folder.name) or any(len(p.name) != 24 for p in logs):
                continue
            if (sum(path.stat().st_size for path in logs) > 1 << 20) != large:
                continue
            done, open_ = naive.ended(naive.batches(*logs))
            found = rows(ask(folder))
            total += len(done)
            assert [
                (
                    r.producerId,
                    r.markerEpoch,
                    r.firstOffset,
                    r.lastOffset,
                    r.records,
                    r.markerOffset,
                    r.state == "aborted",
                )
                for r in found
                if r.markerOffset is not None
            ] == [each[:-1] for each in done], folder
            assert {r.producerId: r.firstOffset for r in found if r.markerOffset is None} == open_, folder
    assert large or total > (60 if SEED else 5)


# --- Segments ---------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@each_case("at", sample(range(1, 76), 8, "segments"))
def test_segments_say_what_the_whole_log_says(tmp_path: Path, at: int) -> None:
    expected = [(r.producerId, r.firstOffset, r.markerOffset, r.state, r.records) for r in rows(ask(PAYMENTS))]
    folder = partition(tmp_path, *cut(at))
    answers = ask(folder)
    assert [(r.producerId, r.firstOffset, r.markerOffset, r.state, r.records) for r in rows(answers)] == expected
    assert not [each for each in answers if isinstance(each, Finding)]
    second = sorted(folder.glob("*.log"))[1]
    base = int(second.stem)
    alone = rows(ask(second))
    # Its snapshot has the first offsets of the open transactions: only their records are unknown.
    assert [(r.producerId, r.firstOffset, r.markerOffset, r.state) for r in alone] == [
        row[:4] for row in expected if (row[2] is None and row[0] == 11) or (row[2] or 0) >= base
    ]
    began_before = LOST_BEGIN.format(name=f"{base:020}.snapshot")
    assert all((began_before in r.remarks) == ((r.firstOffset or 0) < base) for r in alone)


def test_an_earlier_segment_alone_knows_that_more_may_come(tmp_path: Path) -> None:
    folder = partition(tmp_path, *cut(30))
    first = sorted(folder.glob("*.log"))[0]
    answers = ask(first)
    summary = answers[-1]
    assert summary.lastStableOffset is None
    held = [row for row in rows(answers) if row.state == "open"]
    assert held
    assert all(LATER in row.remarks and row.abort is None for row in held)


def test_begun_below_the_log_start_without_a_snapshot(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(100, 1) + marker(101, 7) + marker(102, 1))
    found = rows(ask(folder))
    assert [(row.producerId, row.firstOffset) for row in found] == [(7, None), (1, 100)]
    assert found[0].remarks == (NO_DATA_BELOW.format(first=100),)


def test_an_abort_below_the_log_start_by_its_txnindex(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(100, 1) + marker(101, 7, commit=False) + marker(102, 1))
    (folder / f"{100:020}.txnindex").write_bytes(txn_index((7, 42, 101, 100)))
    first = rows(ask(folder))[0]
    assert (first.state, first.firstOffset, first.markerOffset, first.inTxnIndex) == ("aborted", 42, 101, True)


def test_markers_without_data(tmp_path: Path) -> None:
    """A producer may add a partition and write nothing to it; compaction may leave a marker, or an empty batch of
    one."""
    log = data(0, 1) + marker(1, 1, 1) + marker(2, 2)
    log += batch([], offset=3, count=0, attributes=0x30, producerId=3, producerEpoch=0)
    answers = ask(partition(tmp_path, log))
    assert [row.remarks for row in rows(answers)] == [(), (NO_DATA,)]
    assert answers[-1].emptyMarkers == 1
    folder = partition(tmp_path, log, name="__consumer_offsets-0")
    assert [row.remarks for row in rows(ask(folder))] == [(), (NO_DATA_COMPACTED,)]


# --- What is open -----------------------------------------------------------------------------------------------------


def disk_with(root: Path, *said: Any) -> Path:
    partition(root, data(0, 1) + marker(1, 1, 1) + data(2, 1, 1, 3, baseSequence=0))
    coordinator(root, *said)
    whole(root)
    return root


@pytest.mark.parametrize(("older", "state"), [(0, "open"), (1, "hanging")])
def test_a_transaction_after_the_coordinator_was_read_does_not_hang(older: int, state: str, tmp_path: Path) -> None:
    """Unless it is older than transactions may be."""
    known = ("tx", 1, 2, "CompleteAbort", {})
    root = disk_with(tmp_path, known)
    run = Options(found=lambda _: coordinator(root, known, ("tx", 1, 3, "Ongoing", {"payments": [0]})))
    answers = kdump.transactions(str(root), now=NOW + older, run=run)
    assert rows(list(answers))[-1].state == state


def test_hanging_when_the_coordinator_does_not_know_it(tmp_path: Path) -> None:
    root = disk_with(tmp_path, ("tx", 1, 2, "CompleteAbort", {}))
    row = rows(ask(root, states=["open", "hanging"]))[0]
    assert (row.state, row.transactionalId, row.firstOffset, row.records) == ("hanging", "tx", 2, 3)
    assert row.age == row.idle == 900_000
    tool = "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic payments --partition 0"
    assert row.abort == f"{tool} --start-offset 2"
    # The epoch is that of the producer's last batch; the coordinator's epoch is that of its last marker.
    assert row.abortBefore3 == f"{tool} --producer-id 1 --producer-epoch 1 --coordinator-epoch 0"
    (remark,) = row.remarks
    assert " CompleteAbort," in remark
    assert numbers_in(remark) == [2]
    assert NOT_IN_IT in remark
    summary = ask(root)[-1]
    assert (summary.lastStableOffset, summary.heldBy, summary.hanging, summary.open) == (2, 1, 1, 0)


HERE = {"payments": [0]}


@each_case(
    "said, outcome",
    [
        ([(2, "PrepareCommit", HERE), (2, "CompleteCommit", {})], "COMMIT"),
        ([(2, "PrepareAbort", HERE), (2, "CompleteAbort", {})], "ABORT"),
        ([(2, "PrepareAbort", HERE), (3, "PrepareCommit", HERE), (3, "Empty", {})], "ABORT"),
        ([(2, "PrepareCommit", {"payments": [1]}), (2, "CompleteCommit", {})], None),
        ([(1, "PrepareCommit", HERE), (1, "CompleteCommit", {})], None),
        ([(1, "PrepareAbort", HERE), (1, "CompleteAbort", {})], "ABORT"),
        ([(0, "PrepareCommit", HERE), (0, "CompleteCommit", {})], None),
    ],
)
def test_what_its_coordinator_committed_is_not_to_be_aborted(
    said: list[Any], outcome: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its commit was acknowledged, but the marker is missing here: transactions, doctor and retention agree."""
    root = disk_with(tmp_path_factory.mktemp("disk"), *(("tx", 1, *record) for record in said))
    row = rows(ask(root, states=["hanging"]))[0]
    assert (row.outcome, row.abort is None) == (outcome, outcome == "COMMIT")
    page = " ".join(run("doctor", root).stdout.split())
    assert ("do not abort it" in page.lower()) == (outcome != "ABORT")
    assert ("its coordinator committed it, do not" in page.lower()) == (outcome is None)
    assert ("kafka-transactions.sh --bootstrap-server HOST:PORT abort" in page) == (outcome != "COMMIT")


def test_open_and_overdue(tmp_path: Path) -> None:
    root = disk_with(tmp_path, ("tx", 1, 1, "Ongoing", {"payments": [0]}))
    row = rows(ask(root))[-1]
    assert (row.state, row.abort) == ("open", None)
    assert re.search(r"the broker that leads __transaction_state-\d+ aborts it once it runs", row.remarks[0])
    assert row.abort is None  # begun at 1000, with a timeout of 60 s
    root = disk_with(tmp_path / "prepared", ("tx", 1, 2, "PrepareCommit", {"payments": [0]}))
    row = rows(ask(root))[-1]
    assert (row.state, row.abort) == ("open", None)
    assert MARKER_DUE in row.remarks[0]


def test_unknown_coordinator_is_no_verdict(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(0, 1))
    old = rows(ask(folder, now=NOW + 1))[0]
    assert old.state == "open"
    assert old.abort is not None
    assert old.remarks == (title_of("transaction-note", TOPIC="payments"),)
    young = rows(ask(folder, now=NOW))[0]
    assert (young.abort, young.remarks) == (None, ())


# --- Differences ------------------------------------------------------------------------------------------------------


def test_the_marker_is_not_what_was_decided(tmp_path: Path) -> None:
    partition(tmp_path, data(0, 1) + marker(1, 1, 1, commit=False))
    coordinator(tmp_path, ("tx", 1, 1, "PrepareCommit", {"payments": [0]}), ("tx", 1, 1, "CompleteCommit", {}))
    (found,) = (each for each in ask(tmp_path) if isinstance(each, Difference))
    assert (found.producerId, found.offset, found.coordinatorOffset) == (1, 1, 0)
    assert re.findall("ABORT|COMMIT", found.message) == ["ABORT", "COMMIT"]  # the marker, and the decision


def test_no_marker_though_the_coordinator_is_done(tmp_path: Path) -> None:
    partition(tmp_path, data(0, 1))
    coordinator(tmp_path, ("tx", 1, 1, "PrepareCommit", {"payments": [0]}), ("tx", 1, 1, "CompleteCommit", {}))
    (found,) = (each for each in ask(tmp_path) if isinstance(each, Difference))
    assert (found.producerId, found.offset, found.coordinatorOffset) == (1, None, 0)


def test_a_decision_whose_markers_are_not_written_yet(tmp_path: Path) -> None:
    """In transaction version 1, the marker on the disk is that of the previous transaction."""
    partition(tmp_path, data(0, 1) + marker(1, 1) + data(2, 1, baseSequence=1))
    here: Any = {"payments": [0]}
    states = ["PrepareCommit", "CompleteCommit", "PrepareAbort"]
    coordinator(tmp_path, *(("tx", 1, 0, state, here if state[0] == "P" else {}) for state in states))
    answers = ask(tmp_path)
    assert not [each for each in answers if isinstance(each, Difference)]
    assert MARKER_DUE in rows(answers)[1].remarks[0]


def test_transaction_version_1_keeps_its_epoch(tmp_path: Path) -> None:
    """All transactions of a producer have one epoch: the last marker counts, because it belongs to the last
    decision."""
    log = b"".join(data(2 * i, 1, baseSequence=i) + marker(2 * i + 1, 1, commit=i != 1) for i in range(3))
    partition(tmp_path, log)
    here: Any = {"payments": [0]}
    states = ["PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort", "PrepareCommit", "CompleteCommit"]
    coordinator(tmp_path, *(("tx", 1, 0, state, here if state[0] == "P" else {}) for state in states))
    answers = ask(tmp_path)
    assert [row.state for row in rows(answers)] == ["committed", "aborted", "committed"]
    assert not [each for each in answers if isinstance(each, Difference)]


@each_case(
    "entry, field", [((1, 2, 3, 4), "firstOffset"), ((1, 0, 3, 9), "lastStableOffset"), ((1, 0, 5, 4), "marker")]
)
def test_a_txnindex_that_the_log_contradicts(tmp_path: Path, entry: Any, field: str) -> None:
    folder = partition(tmp_path, data(0, 1, count=2) + data(2, 1, baseSequence=2) + marker(3, 1, commit=False))
    assert not [each for each in ask(folder) if isinstance(each, Finding)]
    (folder / f"{0:020}.txnindex").write_bytes(txn_index(entry))
    found = [each for each in ask(folder) if isinstance(each, Finding)]
    assert {each.code for each in found} == {"txn-index-mismatch"}
    assert field in found[0].message


@each_case("stable, is_wrong", [(4, False), (5, True), (6, False), (7, True), (8, True)])
def test_a_txnindex_that_a_follower_wrote(tmp_path: Path, stable: int, is_wrong: bool) -> None:
    """A follower appends a marker together with the transaction that begins after it, and already counts the latter."""
    plain = craft.batch([craft.record(delta, value=b"v") for delta in range(2)], offset=4, lastOffsetDelta=1)
    log = data(0, 1, count=3) + marker(3, 1, commit=False) + plain + data(6, 2) + data(7, 2, baseSequence=1)
    folder = partition(tmp_path, log)
    (folder / f"{0:020}.txnindex").write_bytes(txn_index((1, 0, 3, stable)))
    found = [each for each in ask(folder) if isinstance(each, Finding)]
    assert [each.code for each in found] == ["txn-index-mismatch"] * is_wrong


@each_case("said, is_wrong", [(-1, True), (1, True), (2, False), (3, True)])
def test_a_snapshot_that_says_something_else_is_open(tmp_path: Path, said: int, is_wrong: bool) -> None:
    log = data(0, 1) + marker(1, 1, 1) + data(2, 1, 1)
    folder = partition(tmp_path, log)
    (folder / f"{3:020}.snapshot").write_bytes(snapshot((1, 1, 0, 2, 0, NOW - 900_000, 0, said)))
    found = [each for each in ask(folder) if isinstance(each, Finding)]
    assert [each.code for each in found] == ["snapshot-mismatch"] * is_wrong
    if is_wrong:
        assert "currentTxnFirstOffset" in found[0].message
        assert (found[0].expected, found[0].actual) == (2, said)


def test_a_snapshot_of_what_began_below_the_log_is_right(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(100, 1) + data(101, 1, baseSequence=1))
    entry = (1, 0, 1, 101, 0, NOW - 900_000, 0, 42)
    (folder / f"{102:020}.snapshot").write_bytes(snapshot(entry))
    assert not [each for each in ask(folder) if isinstance(each, Finding)]


# --- Damage, and the hostile ------------------------------------------------------------------------------------------


def test_a_marker_that_is_damaged(tmp_path: Path) -> None:
    """The .txnindex shows that the transaction was aborted; without it nothing does."""
    log = [data(0, 1), marker(1, 1, commit=False), data(2, 2), marker(3, 2)]
    folder = partition(tmp_path, b"".join(log))
    write_file(folder / f"{0:020}.log", log[0] + torn_bits(log[1]) + log[2] + log[3])
    answers = ask(folder)
    found = {row.producerId: row for row in rows(answers)}
    assert (found[1].state, found[1].markerOffset, found[1].remarks) == ("aborted", 1, (ONLY_INDEX,))
    assert found[1].file.endswith(".txnindex")
    assert found[2].state == "committed"
    assert (answers[-1].damages, answers[-1].lastStableOffset) == (1, 4)
    (folder / f"{0:020}.txnindex").unlink()
    answers = ask(folder)
    (held,) = (row for row in rows(answers) if row.state == "open")
    assert held.remarks[0] == DAMAGE_WITHIN
    assert [each.code for each in answers if isinstance(each, Finding)] == ["crc-mismatch"]


def test_what_follows_a_damaged_marker_is_another_transaction(tmp_path: Path) -> None:
    log = [data(0, 1), marker(1, 1, 1, commit=False), data(2, 1, 1), marker(3, 1, 2)]
    folder = partition(tmp_path, b"".join(log))
    (folder / f"{0:020}.log").write_bytes(log[0] + torn_bits(log[1]) + log[2] + log[3] + bytes(512))
    answers = ask(folder)
    assert [(r.state, r.firstOffset, r.lastOffset, r.records, r.markerOffset, r.inTxnIndex) for r in rows(answers)] == [
        ("aborted", 0, 0, 1, 1, True),
        ("committed", 2, 2, 1, 3, None),
    ]
    assert rows(answers)[1].remarks == ()


def test_two_transactions_that_damage_has_made_one(tmp_path: Path) -> None:
    log = [data(0, 1), marker(1, 1, 1), data(2, 1, 1), marker(3, 1, 2, commit=False)]
    folder = partition(tmp_path, b"".join(log))
    (folder / f"{0:020}.log").write_bytes(log[0] + torn_bits(log[1]) + log[2] + log[3])
    row = rows(ask(folder))[0]
    assert DAMAGE_WITHIN in row.remarks
    assert EPOCHS.format(first=0, last=1) in row.remarks


def test_zeros_at_the_end_are_no_damage(tmp_path: Path) -> None:
    folder = partition(tmp_path, data(0, 1) + bytes(4096))
    answers = ask(folder)
    assert answers[-1].damages == 0
    assert DAMAGE_WITHIN not in rows(answers)[0].remarks


def test_endless_open_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "MAX_OPEN_TRANSACTIONS", 10)
    folder = partition(tmp_path, b"".join(data(i, i) for i in range(50)))
    answers = ask(folder)
    assert len(rows(answers)) == 10
    assert [numbers_in(each.message) for each in answers if isinstance(each, Note)] == [[10]]
    assert answers[-1].lastStableOffset == 0


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        ask(tmp_path / "nothing")
    told: list[SourceError] = []
    assert ask(tmp_path / "nothing", run=Run(unreadable=told.append)) == []
    assert len(told) == 1
    shutil.copy(PAYMENTS.with_suffix(".txnindex"), tmp_path)
    ask(tmp_path / PAYMENTS.with_suffix(".txnindex").name, run=Run(unreadable=told.append))
    assert len(told) == 2


def test_a_state_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="unknown state opened"):
        kdump.transactions(str(PAYMENTS), states="opened")
    with pytest.raises(ValueError, match="live, expired, unknown"):
        kdump.producers(str(PAYMENTS), states=["dead"])
    assert [row.producerId for row in rows(ask(PAYMENTS, states="open"))] == [11]


def test_a_damaged_snapshot_is_not_believed(tmp_path: Path) -> None:
    folder = partition(tmp_path, *cut(30))
    at = next(folder.glob("*.snapshot"))
    at.write_bytes(flip(at.read_bytes(), 100))
    second = sorted(folder.glob("*.log"))[1]
    answers = ask(second)
    assert answers[-1].seededFrom is None
    assert any(row.firstOffset is None or not row.remarks for row in rows(answers))


def test_a_snapshot_of_many(tmp_path: Path) -> None:
    """Only the open transactions of a snapshot are kept."""
    folder = partition(tmp_path, data(100, 1) + marker(101, 5, 0))
    entries = [(i, 0, -1, -1, 0, 1, -1, 50 - i if i == 5 else -1) for i in range(1000)]
    (folder / f"{100:020}.snapshot").write_bytes(snapshot(*entries))
    (first, *_) = rows(ask(folder))
    assert (first.producerId, first.firstOffset) == (5, 45)
    assert first.file.endswith(".snapshot")
    assert (folder / f"{100:020}.snapshot").read_bytes()[first.position :][:8] == (5).to_bytes(8, "big")


def test_split_is_of_the_real_file() -> None:
    assert b"".join(split(PAYMENTS.read_bytes())) == PAYMENTS.read_bytes()


# --- What a coordinator repeats, or has not completed -----------------------------------------------------------------


def history(seed: int, version: int) -> tuple[bytes, list[str], int]:
    """Return the log of a partition with transactions of three producers, as brokers of this transaction version write
    it, the outcome of each transaction, and how often a new coordinator wrote a marker again: in version 2 the marker
    of each transaction has a new epoch."""
    random = seeded(f"history {seed} {version}")
    log, outcomes, repeated, end = [], [], 0, 0
    epochs = dict.fromkeys((1, 2, 3), 0)
    for term in range(12):
        producer = random.choice([1, 2, 3])
        commit = random.random() < 0.7
        has_data = version == 2 or random.random() < 0.8  # version 1 adds partitions before it writes
        if has_data:
            log.append(data(end, producer, epochs[producer], 2))
            end += 2
        epochs[producer] += version == 2
        log.append(marker(end, producer, epochs[producer], commit=commit, coordinator=term))
        end += 1
        outcomes.append("committed" if commit else "aborted")
        for again in range(random.choice([0, 0, 1, 2]) if version == 2 else 0):
            log.append(marker(end, producer, epochs[producer], commit=commit, coordinator=term + 1 + again))
            end += 1
            repeated += 1
    return b"".join(log), outcomes, repeated


@each_case("version", [1, 2])
def test_a_repeated_marker_is_no_transaction(version: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    for seed in range(20 if SEED else 5):
        log, outcomes, repeated = history(seed, version)
        folder = partition(tmp_path_factory.mktemp("log"), log)
        *transactions, end = ask(folder)
        assert [row.state for row in rows(transactions)] == outcomes
        assert (end.committed, end.aborted) == (outcomes.count("committed"), outcomes.count("aborted"))
        assert end.repeatedMarkers == repeated
        found = [each for each in kdump.producers([str(folder)]) if isinstance(each, Producer)]
        assert sum(each.commits + each.aborts for each in found) == len(outcomes)


@each_case("state", [*STATES])
def test_what_a_coordinator_has_not_completed_is_named(
    state: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By transactions, doctor, and explain of the error that its producer gets; nothing else is. A coordinator that
    writes may have completed it a moment later."""
    root = tmp_path_factory.mktemp("disk")
    partition(root, data(0, 1) + marker(1, 1, 1))
    coordinator(root, ("tx-7", 1, 1, state, {"payments": [0]}))
    named = state.startswith("Prepare")
    assert ("tx-7, producer 1, epoch 1" in run("transactions", root).stdout) == named
    page = run("doctor", root).stdout
    assert ("the transaction of tx-7 is in" in page, "1 NOT COMPLETED" in page) == (named, named)
    text = run("explain", "CONCURRENT_TRANSACTIONS", "--disk", root).stdout
    assert ("transactional ID tx-7: producer 1 epoch 1" in text) == named
    monkeypatch.setattr(TransactionCoordinatorState, "has_changed", lambda self: True)
    for now, is_old in (("1970-01-01T00:01:00Z", False), ("1970-01-01T01:00:00Z", True)):
        page = run("doctor", root, "--now", now).stdout
        assert ("the transaction of tx-7 is in" in page) == (named and is_old)
