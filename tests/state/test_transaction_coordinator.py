"""Records of __transaction_state, compared with kafka-dump-log, and what depends on them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import kdump.cluster.transaction_coordinator as module
from kdump.cluster.metadata_log import read_metadata
from kdump.cluster.transaction_coordinator import TransactionCoordinatorState, read_coordinator
from kdump.format.transaction_record import STATES, TransactionMetadata, decode_transaction
from kdump.log.batch_records import records
from kdump.state.internal_records import MAX_PROBLEMS, MAX_VALUE_BYTES
from tests.conftest import FIXTURES, SEED, batches, numbers_in, read_regions
from tests.craft import batch, flip, record, split, write_file
from tests.each_case import each_case

CLEAN = FIXTURES / "clean-1" / "__transaction_state-0"
LOG = "00000000000000000000.log"
# kafka-4.3/clean-1/__transaction_state-0/00000000000000000000.log, offset 4
KEY = bytes.fromhex("0000000474782d62")
VALUE = bytes.fromhex(
    "0001000000000000000a00000000ea600103097061796d656e7473020000000000135f5f636f6e73756d65725f6f66667365747302"
    "0000000000000001a1fd1d0feb000001a1fd1d0f03020008000000000000000a02020002"
)


def key(transactional_id: str, version: int = 0) -> bytes:
    name = transactional_id.encode()
    return version.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name


def value(
    producer_id: int,
    epoch: int,
    state: str | int,
    partitions: dict[str, list[int]] | None = None,
    *,
    before: int | None = None,
    after: int | None = None,
) -> bytes:
    """Return a TransactionLogValue: version 1 with the producer IDs before and after an overflow, else version 0."""
    flexible = before is not None or after is not None
    number = state if isinstance(state, int) else STATES.index(state)
    data = (int(flexible)).to_bytes(2, "big") + producer_id.to_bytes(8, "big") + epoch.to_bytes(2, "big")
    data += (60000).to_bytes(4, "big") + number.to_bytes(1, "big")
    if partitions is None:
        data += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        data += count(len(partitions), 4, flexible)
        for topic, numbers in partitions.items():
            data += count(len(topic), 2, flexible) + topic.encode() + count(len(numbers), 4, flexible)
            data += b"".join(number.to_bytes(4, "big") for number in numbers) + b"\0" * flexible
    data += (2000).to_bytes(8, "big") + (1000).to_bytes(8, "big")
    tags = {0: before, 1: after}
    written = {tag: number for tag, number in tags.items() if number is not None}
    if flexible:
        data += bytes([len(written)])
        data += b"".join(bytes([tag, 8]) + number.to_bytes(8, "big", signed=True) for tag, number in written.items())
    return data


def count(number: int, size: int, flexible: bool) -> bytes:
    return bytes([number + 1]) if flexible else number.to_bytes(size, "big")


def log(*said: tuple[bytes | None, bytes | None]) -> bytes:
    """Return a segment with one record per batch, as a coordinator writes it."""
    return b"".join(batch([record(key=k, value=v)], offset=i) for i, (k, v) in enumerate(said))


def read(
    tmp_path: Path, data: bytes | dict[int, bytes], partition_count: int | None = 1
) -> TransactionCoordinatorState:
    directories = []
    for number, segment in (data if isinstance(data, dict) else {0: data}).items():
        folder = tmp_path / f"__transaction_state-{number}"
        write_file(folder / LOG, segment)
        directories.append(str(folder))
    found = read_coordinator(directories, partition_count)
    assert found is not None
    return found


# Those of a real cluster.


def test_clean_1() -> None:
    metadata = read_metadata(str(CLEAN.parent))
    assert metadata is not None
    coordinator = read_coordinator([str(CLEAN)], len(metadata.topics["__transaction_state"].partitions))
    assert coordinator is not None
    assert coordinator.is_complete
    assert {name: (known.producerId, known.state) for name, known in coordinator.by_id.items()} == {
        "tx-a": (9, "CompleteAbort"),
        "tx-b": (10, "CompleteCommit"),
        "tx-hang": (11, "Ongoing"),
        "compact-users": (13, "CompleteAbort"),
        "compact-sessions": (19, "CompleteAbort"),
    }
    # The only transaction of payments without a marker is that of tx-hang.
    assert coordinator.ongoing(11, 0, "payments", 0) is True
    assert coordinator.ongoing(11, 0, "payments", 1) is False
    assert coordinator.ongoing(11, 0, "orders-none", 0) is False
    assert coordinator.ongoing(11, 1, "payments", 0) is False
    assert [coordinator.ongoing(pid, epoch, "payments", 0) for pid in (9, 10, 12, 77) for epoch in (0, 8)] == [
        False
    ] * 8


def test_a_transaction_hangs_when_its_coordinator_has_lost_it(tmp_path: Path) -> None:
    kept = []
    for part in split((CLEAN / LOG).read_bytes()):
        [said] = records(batches(read_regions(part))[0])
        transaction = decode_transaction(said.key, said.value)
        if (transaction.transactionalId, transaction.state) != ("tx-hang", "Ongoing"):
            kept.append(part)
    assert len(kept) == 85
    coordinator = read(tmp_path, b"".join(kept))
    assert coordinator.by_id["tx-hang"].state == "Empty"
    assert coordinator.ongoing(11, 0, "payments", 0) is False
    # With more partitions than those here, it may be in another one.
    assert read(tmp_path, b"".join(kept), 2).ongoing(11, 0, "payments", 0) is None
    assert read(tmp_path, b"".join(kept), None).ongoing(11, 0, "payments", 0) is None


# Meaning of records.


def test_a_record() -> None:
    found = decode_transaction(KEY, VALUE)
    assert found == TransactionMetadata(
        "tx-b",
        producerId=10,
        producerEpoch=0,
        state="Ongoing",
        partitions={"payments": [0], "__consumer_offsets": [0]},
        transactionStartTimestampMs=1795247902467,
        transactionLastUpdateTimestampMs=1795247902699,
        transactionTimeoutMs=60000,
        previousProducerId=10,
        clientTransactionVersion=2,
    )
    assert decode_transaction(key("b"), value(5, 3, "PrepareAbort", {"t": [1, 2], "u": [0]})) == TransactionMetadata(
        "b", 5, 3, "PrepareAbort", {"t": [1, 2], "u": [0]}, 1000, 2000, 60000
    )
    assert decode_transaction(KEY, None) == TransactionMetadata("tx-b", tombstone=True)
    assert decode_transaction(key("b"), value(5, 3, "Empty")).partitions == {}


WRONG = {
    "no key": (None, VALUE, "TransactionLogKey", "type", 0, []),
    "a short key": (KEY[:1], VALUE, "TransactionLogKey", "type", 0, [2, 1]),
    "a cut key": (KEY[:5], VALUE, "TransactionLogKey", "transactionalId", 2, [4, 1]),
    "a key of another type": (key("b", 1), VALUE, "TransactionLogKey", "type", 0, [1, 0]),
    "a key of a negative type": (b"\xff\xff" + KEY[2:], VALUE, "TransactionLogKey", "type", 0, [-1]),
    "an empty value": (KEY, b"", "TransactionLogValue", "version", 0, [2, 0]),
    "a cut value": (KEY, VALUE[:12], "TransactionLogValue", "transactionTimeoutMs", 12, [4, 0]),
    "a negative version": (KEY, b"\xff\xff" + VALUE[2:], "TransactionLogValue", "version", 2, [-1, 0, 1]),
    "an unknown state": (key("b"), value(5, 3, 9, {}), "TransactionLogValue", "transactionStatus", 0, [9]),
    "no partitions": (key("b"), value(5, 3, "Ongoing"), "TransactionLogValue", "transactionPartitions", 0, []),
}


@each_case("case", WRONG)
def test_what_is_wrong(case: str) -> None:
    wrong_key, wrong_value, name, field, position, stated = WRONG[case]
    found = decode_transaction(wrong_key, wrong_value)
    assert found.problem is not None
    assert (found.problem.struct, found.problem.field, found.problem.position) == (name, field, position)
    assert numbers_in(found.problem.reason) == stated
    assert (found.transactionalId is None) == (name == "TransactionLogKey")


def test_what_stands_in_front_of_a_problem_is_kept() -> None:
    found = decode_transaction(KEY, VALUE[:40])
    assert (found.transactionalId, found.producerId, found.state, found.partitions) == ("tx-b", 10, "Ongoing", {})
    assert decode_transaction(key("b"), value(5, 3, 9, {})).state == "UNKNOWN(9)"


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    found = decode_transaction(KEY, b"\x00\x09" + VALUE[2:])
    assert numbers_in(found.note)[0] == 9
    assert found._replace(note="", newer="") == decode_transaction(KEY, VALUE)


# What a coordinator does with them.


@each_case("state", STATES)
def test_states(tmp_path: Path, state: str) -> None:
    coordinator = read(tmp_path, log((key("b"), value(5, 3, state, {"t": [1]}))))
    open_ones = {"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}
    assert coordinator.ongoing(5, 3, "t", 1) is (state in open_ones)


def test_the_last_value_wins_and_a_tombstone_forgets(tmp_path: Path) -> None:
    ongoing, done = value(5, 3, "Ongoing", {"t": [1]}), value(5, 3, "CompleteCommit", {})
    assert read(tmp_path, log((key("b"), ongoing), (key("b"), done))).ongoing(5, 3, "t", 1) is False
    assert read(tmp_path, log((key("b"), done), (key("b"), ongoing))).ongoing(5, 3, "t", 1) is True
    forgotten = read(tmp_path, log((key("b"), ongoing), (key("c"), done), (key("b"), None)))
    assert (forgotten.by_id.keys(), forgotten.ongoing(5, 3, "t", 1)) == ({"c"}, False)


def test_segments_are_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "__transaction_state-0"
    folder.mkdir()
    ongoing, done = value(5, 3, "Ongoing", {"t": [1]}), value(5, 3, "CompleteCommit", {})
    (folder / "00000000000000000009.log").write_bytes(batch([record(key=key("b"), value=done)], offset=9))
    (folder / LOG).write_bytes(log((key("b"), ongoing)))
    (folder / "00000000000000000010.log.deleted").write_bytes(log((key("b"), ongoing)))
    assert read_coordinator([str(folder)], 1).ongoing(5, 3, "t", 1) is False  # type: ignore[union-attr]


def test_epochs(tmp_path: Path) -> None:
    # The epoch of a fenced producer is increased before its transaction is aborted, with a marker of that epoch.
    coordinator = read(tmp_path, log((key("b"), value(5, 4, "PrepareAbort", {"t": [1]}))))
    assert [coordinator.ongoing(5, epoch, "t", 1) for epoch in (3, 4, 5)] == [True, True, False]


def test_a_transaction_has_its_producer_id_until_it_has_ended(tmp_path: Path) -> None:
    coordinator = read(tmp_path, log((key("b"), value(5, 32767, "PrepareCommit", {"t": [1]}, before=4, after=6))))
    assert (coordinator.by_id["b"].previousProducerId, coordinator.by_id["b"].nextProducerId) == (4, 6)
    assert [coordinator.ongoing(pid, 0, "t", 1) for pid in (4, 5, 6)] == [False, True, False]


def test_partitions_of_the_topic(tmp_path: Path) -> None:
    both = {
        0: log((key("a"), value(4, 0, "Ongoing", {"t": [0]}))),
        2: log((key("b"), value(5, 0, "Ongoing", {"t": [1]}))),
    }
    coordinator = read(tmp_path, both, 3)
    assert coordinator.partitions == {0, 2}
    assert (coordinator.ongoing(4, 0, "t", 0), coordinator.ongoing(5, 0, "t", 1)) == (True, True)
    assert coordinator.ongoing(6, 0, "t", 0) is None
    assert coordinator.ongoing(4, 0, "t", 1) is None
    whole = read(tmp_path, {**both, 1: b""}, 3)
    assert whole.ongoing(6, 0, "t", 0) is False


def test_directories_that_are_none(tmp_path: Path) -> None:
    assert read_coordinator([]) is None
    other = tmp_path / "orders-0"
    gone = tmp_path / f"__transaction_state-0.{'0' * 32}-delete"
    for folder in (other, gone):
        write_file(folder / LOG, log((KEY, VALUE)))
    assert read_coordinator([str(other), str(gone)]) is None
    missing = read_coordinator([str(tmp_path / "__transaction_state-0")], 1)
    assert missing is not None
    assert len(missing.problems) == 1
    assert missing.ongoing(1, 0, "t", 0) is None
    (tmp_path / "__transaction_state-0").mkdir()
    empty = read_coordinator([str(tmp_path / "__transaction_state-0")], 1)
    assert empty is not None
    assert (empty.is_complete, len(empty.problems)) == (False, 1)


def test_a_partition_in_two_log_directories(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(CLEAN, tmp_path / name / CLEAN.name)
    coordinator = read_coordinator([str(tmp_path / name / CLEAN.name) for name in ("one", "two")], 1)
    assert coordinator is not None
    assert "also in another log directory" in coordinator.problems[0]
    assert coordinator.ongoing(11, 0, "payments", 0) is True
    assert coordinator.ongoing(12, 0, "payments", 0) is None


# Damage.


def test_damage_is_read_past_and_leaves_doubt(tmp_path: Path) -> None:
    parts = split(log(*[(key(name), value(5 + i, 0, "Ongoing", {"t": [i]})) for i, name in enumerate("abc")]))
    coordinator = read(tmp_path, parts[0] + flip(parts[1], 700) + parts[2])
    assert coordinator.by_id.keys() == {"a", "c"}
    assert coordinator.ongoing(7, 0, "t", 2) is True
    assert coordinator.ongoing(6, 0, "t", 1) is None
    assert coordinator.problems[0].startswith(f"__transaction_state-0/{LOG} at byte {len(parts[0])}: ")
    wrong = read(tmp_path, log((KEY, b"\0"), (None, VALUE), (KEY, VALUE)))
    assert (wrong.by_id.keys(), len(wrong.problems)) == ({"tx-b"}, 2)
    # A crash leaves zeros at the end.
    assert read(tmp_path, log((KEY, VALUE)) + bytes(9000)).is_complete


@pytest.mark.sampled
def test_flipped_bits_and_truncations(tmp_path: Path) -> None:
    data = (CLEAN / LOG).read_bytes()
    chance = random.Random(2)
    for bit in chance.sample(range(len(data) * 8), 150 if SEED else 50):
        coordinator = read(tmp_path, flip(data, bit))
        # There is never an alarm that the valid log does not have.
        assert coordinator.ongoing(11, 0, "payments", 0) is not False
    ends = [0]
    for part in split(data):
        ends.append(ends[-1] + len(part))
    for size in [*chance.sample(range(len(data)), 50 if SEED else 17), *ends]:
        coordinator = read(tmp_path, data[:size])
        start = max(end for end in ends if end <= size)
        assert bool(coordinator.problems) == any(data[start:size])


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM", 10 * module.ENTRY)
    many = [(key(f"t{i}"), value(i, 0, "Ongoing", {"t": [0]})) for i in range(60)]
    coordinator = read(tmp_path, log(*many))
    assert 1 < len(coordinator.by_id) < 6
    assert len(coordinator.problems) == 1
    assert coordinator.ongoing(59, 0, "t", 0) is None
    # What is replaced or deleted makes room.
    same = [(key("t"), data) for i in range(60) for data in (value(i, 0, "Ongoing", {"t": [0]}), None)]
    assert read(tmp_path, log(*same, *[many[0]] * 60)).problems == []
    assert len(read(tmp_path, log(*[(KEY, b"")] * 300)).problems) == MAX_PROBLEMS
    large = read(tmp_path, log((KEY, VALUE + bytes(MAX_VALUE_BYTES)), many[1]))
    assert (large.by_id.keys(), len(large.problems)) == ({"t1"}, 1)
