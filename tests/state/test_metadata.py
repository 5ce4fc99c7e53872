"""The cluster as read from a metadata directory: compared with kafka-dump-log, crafted logs, and damage."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kdump.cluster.metadata_log as module
from kdump.cluster.internal_log import LIMITS, bounded, read_records
from kdump.cluster.metadata_log import read_metadata
from kdump.cluster.metadata_refusals import first_hidden
from kdump.format.kafka_release import NEWEST
from kdump.io.run import Limits
from kdump.log.record import Record
from kdump.state.effective_config import effective
from kdump.state.internal_records import ENTRY, MAX_PROBLEMS, MAX_VALUE_BYTES
from kdump.state.metadata_image import MetadataImage, PartitionRegistration
from kdump.state.metadata_problem import Kind
from tests.conftest import DISKS, FIXTURES, ORACLE, SEED, examples, numbers_in, seeded
from tests.craft import batch, flip, one, rebase, record, split, write_file
from tests.each_case import each_case

CLEAN = FIXTURES / "clean-1"
LOG = "00000000000000000000.log"
CHECKPOINT = "00000000000000000327-0000000001.checkpoint"
CONTROL = 0x20
HEADER = record(key=bytes.fromhex("00000003"), value=bytes.fromhex("0000000001a1fd1de11f00"))
FOOTER = record(key=bytes.fromhex("00000004"), value=bytes.fromhex("000000"))


# Crafted metadata records.


def text(value: str | None) -> bytes:
    """Return a compact nullable string of less than 127 bytes."""
    return b"\0" if value is None else bytes([len(value.encode()) + 1]) + value.encode()


def numbers(values: list[int], size: int = 4) -> bytes:
    return bytes([len(values) + 1]) + b"".join(value.to_bytes(size, "big", signed=True) for value in values)


def uuid(letter: str) -> bytes:
    return letter.encode() * 16


def printed(letter: str) -> str:
    return base64.urlsafe_b64encode(uuid(letter)).decode()[:22]


def framed(api_key: int, body: bytes, version: int = 0) -> bytes:
    return bytes([1, api_key, version]) + body


def topic(name: str, letter: str) -> bytes:
    return framed(2, text(name) + uuid(letter) + b"\0")


def removed(letter: str) -> bytes:
    return framed(9, uuid(letter) + b"\0")


def config(kind: int, resource: str, name: str, value: str | None) -> bytes:
    return framed(4, bytes([kind]) + text(resource) + text(name) + text(value) + b"\0")


def partition(letter: str, number: int, replicas: list[int], leader: int = 1, epoch: int = 5, dirs: str = "") -> bytes:
    body = number.to_bytes(4, "big") + uuid(letter) + numbers(replicas) + numbers(replicas) + b"\x01\x01"
    body += leader.to_bytes(4, "big", signed=True) + epoch.to_bytes(4, "big") + bytes(4)
    if not dirs:
        return framed(3, body + b"\0")
    return framed(3, body + bytes([len(dirs) + 1]) + b"".join(map(uuid, dirs)) + b"\0", version=1)


def change(letter: str, number: int, version: int = 0, **tagged: bytes) -> bytes:
    tags = {"isr": 0, "leader": 1, "replicas": 2, "directories": 8}
    body = number.to_bytes(4, "big") + uuid(letter) + bytes([len(tagged)])
    return framed(5, body + b"".join(bytes([tags[name], len(data)]) + data for name, data in tagged.items()), version)


def broker(number: int, dirs: str) -> bytes:
    ids = bytes([len(dirs) + 1]) + b"".join(map(uuid, dirs))
    body = number.to_bytes(4, "big") + b"\0" + uuid("i") + bytes(8) + b"\x01\x01\0\0\0"
    return framed(0, body + b"\x01\x00" + bytes([len(ids)]) + ids, version=3)


def broker_change(number: int, dirs: str) -> bytes:
    ids = bytes([len(dirs) + 1]) + b"".join(map(uuid, dirs))
    return framed(17, number.to_bytes(4, "big") + bytes(8) + b"\x01\x02" + bytes([len(ids)]) + ids, version=2)


UNREGISTER_1 = framed(1, (1).to_bytes(4, "big") + bytes(8) + b"\0")
BEGIN, END, ABORT, NOTHING = (framed(key, b"\0") for key in (23, 24, 25, 20))


def log(*batches: list[bytes], offset: int = 0) -> bytes:
    """Return a segment with these batches of metadata records."""
    data = b""
    for values in batches:
        data += batch([record(i, value=value) for i, value in enumerate(values)], offset=offset, partitionLeaderEpoch=1)
        offset += len(values)
    return data


def snapshot(*values: bytes, header: bytes = HEADER, footer: bytes = FOOTER) -> bytes:
    data = batch([header], offset=0, attributes=CONTROL) + (log([*values], offset=1) if values else b"")
    return data + batch([footer], offset=1 + len(values), attributes=CONTROL)


def read(tmp_path: Path, **files: bytes) -> MetadataImage:
    """Read a directory of these files: `s327` is the end offset of a snapshot, `l0` the base offset of a segment."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        number = int(name[1:])
        (folder / (f"{number:020}.log" if name[0] == "l" else f"{number:020}-0000000001.checkpoint")).write_bytes(data)
    found = read_metadata(str(tmp_path))
    assert found is not None
    return found


def names(found: MetadataImage) -> str:
    assert {known.id: known for known in found.topics.values()} == found.by_id
    return " ".join(found.topics)


# The oracle.


def oracle_image(words: str) -> dict[str, Any]:
    """Return topics, configs and partitions from kafka-dump-log's output for one file: a second, simpler replay."""
    ids: dict[str, str] = {}
    configs: dict[tuple[int, str], dict[str, str]] = {}
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    brokers: dict[int, list[str]] = {}
    for line in re.findall(r"^\| offset: .* payload: (.*)$", words, re.M):
        said = json.loads(line)
        data = said["data"]
        kind = said["type"]
        if kind == "TOPIC_RECORD":
            ids[data["topicId"]] = data["name"]
        elif kind == "REMOVE_TOPIC_RECORD":
            configs.pop((2, ids.pop(data["topicId"])), None)
        elif kind == "CONFIG_RECORD":
            configs.setdefault((data["resourceType"], data["resourceName"]), {})[data["name"]] = data["value"]
        elif kind == "PARTITION_RECORD":
            partitions[data["topicId"], data["partitionId"]] = data
        elif kind == "PARTITION_CHANGE_RECORD":
            known = partitions[data["topicId"], data["partitionId"]]
            epoch = known["leaderEpoch"] + ("leader" in data)
            partitions[data["topicId"], data["partitionId"]] = {**known, **data, "leaderEpoch": epoch}
        elif kind == "REGISTER_BROKER_RECORD":
            brokers[data["brokerId"]] = data["logDirs"]
    return {
        "topics": {name: topic_id for topic_id, name in ids.items()},
        "configs": {name: configs[2, name] for name in ids.values() if (2, name) in configs},
        "broker_configs": {name: found for (kind, name), found in configs.items() if kind == 4},
        "partitions": {
            (ids[topic_id], number): (data["replicas"], data["directories"], data["leader"], data["leaderEpoch"])
            for (topic_id, number), data in partitions.items()
            if topic_id in ids
        },
        "brokers": brokers,
    }


def image(found: MetadataImage) -> dict[str, Any]:
    return {
        "topics": {name: known.id for name, known in found.topics.items()},
        "configs": {name: known.configs for name, known in found.topics.items() if known.configs},
        "broker_configs": found.broker_configs,
        "partitions": {
            (name, number): (list(info.replicas), list(info.directories), info.leader, info.leaderEpoch)
            for name, known in found.topics.items()
            for number, info in known.partitions.items()
        },
        "brokers": {node_id: list(dirs) for node_id, dirs in found.broker_directories.items()},
    }


def disk(tmp_path: Path, *keep: str) -> Path:
    """Return a copy of the metadata of clean-1, with these files."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for name in keep:
        shutil.copy(CLEAN / "__cluster_metadata-0" / name, folder / name)
    return folder


@each_case("keep, end", [((LOG,), 329), ((CHECKPOINT,), 327), ((LOG, CHECKPOINT), 329)])
def test_clean_1_is_what_kafka_says(tmp_path: Path, keep: tuple[str, ...], end: int) -> None:
    disk(tmp_path, *keep)
    oracle = ORACLE / "kafka-4.3-clean-1" / "__cluster_metadata-0"
    found = read_metadata(str(tmp_path))
    assert found is not None
    assert found.problems == []
    assert found.end_offset == end
    assert len(found.topics) == 44
    # The records after the snapshot do not change this, so the output for either file contains all of it.
    words = (oracle / f"{keep[-1]}.txt").read_text(encoding="utf-8")
    assert image(found) == oracle_image(words)


def test_tiered_is_what_kafka_says() -> None:
    words = (ORACLE / "kafka-4.3-tiered" / "__cluster_metadata-0" / f"{LOG}.txt").read_text(encoding="utf-8")
    found = read_metadata(str(DISKS / "kafka-4.3-tiered" / "disk"))
    assert found is not None
    assert image(found) == oracle_image(words)
    assert len(found.topics) == 2


def test_every_healthy_disk_has_no_problems() -> None:
    ends = {"clean-0": 376, "clean-1": 329, "clean-2": 376, "crash-1": 452, "live-1": 265}
    for name, end in ends.items():
        found = read_metadata(str(DISKS / "kafka-4.3" / name))
        assert found is not None
        assert (found.problems, found.end_offset) == ([], end)


def test_topics_and_configs_of_clean_1() -> None:
    found = read_metadata(str(CLEAN))
    assert found is not None
    compacted = {name for name in found.topics if effective(found, name, "cleanup.policy", 1) == "compact"}
    assert compacted == {"users", "sessions", "__consumer_offsets", "__transaction_state"}
    assert effective(found, "large", "max.message.bytes", 1) == "8000000"
    assert effective(found, "orders-none", "max.message.bytes", 1) is None
    assert effective(found, "orders-none", "min.insync.replicas", 1) == "1"
    assert "gone" not in found.topics
    assert found.topics["payments"].id == "4K0vBYjuR4-ZwaLaSQbaJg"
    assert found.topics["payments"].partitions[0].replicas == (1,)
    assert found.topics["payments"].partitions[0].directories == found.brokers[1].logDirs


def test_no_metadata(tmp_path: Path) -> None:
    assert read_metadata(str(tmp_path)) is None
    assert read_metadata(str(tmp_path / "none")) is None
    (tmp_path / "__cluster_metadata-0").mkdir()
    assert read_metadata(str(tmp_path)) is None
    assert read_metadata(str(DISKS / "kafka-2.8-legacy")) is None
    write_file(tmp_path / "file" / "__cluster_metadata-0", b"")
    assert read_metadata(str(tmp_path / "file")) is None


# What records change.


@pytest.mark.parametrize(
    ("epoch", "epochs", "left"), [(1, (1, 1, 1), "a b c"), (2, (1, 1, 1), "a"), (2, (1, 2, 0), "a b c")]
)
def test_records_of_an_older_epoch_than_the_snapshot_are_deleted(
    tmp_path: Path, epoch: int, epochs: tuple[int, ...], left: str
) -> None:
    """KafkaRaftLog.truncateToLatestSnapshot. No checksum covers the epoch of a batch: a single lower one does not
    count."""
    folder = tmp_path / "__cluster_metadata-0"
    write_file(folder / f"{1:020}-{epoch:010}.checkpoint", snapshot(topic("a", "A")))
    values = [topic(letter.lower(), letter) for letter in "ABC"]
    batches = [one(value, offset, partitionLeaderEpoch=epochs[offset]) for offset, value in enumerate(values)]
    (folder / f"{0:020}.log").write_bytes(b"".join(batches))
    found = read_metadata(str(tmp_path))
    assert found is not None
    assert (names(found), found.end_offset) == (left, len(left.split()))
    assert any("a node deletes them" in problem.text for problem in found.problems) == (left == "a")


def test_topics_come_and_go(tmp_path: Path) -> None:
    data = log(
        [topic("a", "A"), topic("b", "B"), config(2, "a", "x", "1"), partition("A", 0, [1])],
        [removed("A"), topic("c", "C"), topic("a", "D")],
        [removed("X")],
    )
    found = read(tmp_path, l0=data)
    assert names(found) == "b c a"
    assert (found.topics["a"].id, found.topics["a"].configs, found.topics["a"].partitions) == (printed("D"), {}, {})
    assert found.end_offset == 8
    (problem,) = found.problems
    assert numbers_in(problem.text) == [7]
    assert printed("X") in problem.text


def test_a_topic_of_the_same_name_is_left_out_while_the_first_is_not_removed(tmp_path: Path) -> None:
    found = read(tmp_path, l0=log([topic("a", "A"), topic("a", "B"), topic("b", "B")]))
    assert (names(found), found.by_id.keys()) == ("a b", {printed("A"), printed("B")})
    assert [each.offset for each in found.refusals] == [1]


def test_partitions(tmp_path: Path) -> None:
    data = log(
        [topic("a", "A"), partition("A", 0, [1, 2], dirs="xy"), partition("A", 1, [2]), partition("Z", 0, [1])],
        [change("A", 0, leader=(2).to_bytes(4, "big")), change("A", 0, isr=numbers([2]))],
        [change("A", 1, version=1, replicas=numbers([3, 4]), directories=b"\x03" + uuid("p") + uuid("q"))],
        [change("A", 9)],
    )
    found = read(tmp_path, l0=data)
    assert found.topics["a"].partitions == {
        0: PartitionRegistration((1, 2), (printed("x"), printed("y")), 2, 6, isr=(2,), partitionEpoch=2),
        1: PartitionRegistration((3, 4), (printed("p"), printed("q")), 1, 5, isr=(2,), partitionEpoch=1),
    }
    assert [numbers_in(problem.text) for problem in found.problems] == [[3], [7, 9]]  # the offset, and the partition
    assert printed("Z") in found.problems[0].text


def test_configs(tmp_path: Path) -> None:
    data = log(
        # A config may come before its topic, and null removes one.
        [config(2, "a", "cleanup.policy", "compact"), topic("a", "A"), topic("b", "B"), config(2, "b", "x", "1")],
        [config(2, "b", "x", None), config(2, "b", "never.set", None), config(2, "c", "x", None)],
        [config(4, "", "log.cleanup.policy", "delete"), config(4, "", "message.max.bytes", "10")],
        [config(4, "1", "message.max.bytes", "20"), config(4, "2", "message.max.bytes", "30")],
        [config(4, "2", "message.max.bytes", None), config(4, "", "cleanup.policy", "no name of a broker's config")],
        [config(32, "a", "x", "of a group"), config(4, "1", "log.roll.ms", "7"), config(2, "b", "x", "2")],
    )
    found = read(tmp_path, l0=data)
    assert found.problems == []
    assert found.topics["a"].configs == {"cleanup.policy": "compact"}
    assert found.topics["b"].configs == {"x": "2"}
    assert effective(found, "a", "cleanup.policy", 1) == "compact"
    assert effective(found, "b", "cleanup.policy", 1) == "delete"
    assert effective(found, "b", "max.message.bytes", 1) == "20"
    assert effective(found, "b", "max.message.bytes", 2) == "10"
    assert effective(found, "b", "max.message.bytes", None) == "10"
    assert (effective(found, "b", "segment.ms", 1), effective(found, "b", "segment.ms", 2)) == ("7", None)
    assert effective(found, "b", "message.max.bytes", 1) is None
    assert effective(found, "b", "log.cleanup.policy", 1) is None
    assert effective(found, "nowhere", "cleanup.policy", 1) is None


def test_brokers(tmp_path: Path) -> None:
    data = log([broker(1, "x"), broker(2, "yz"), broker_change(2, "z"), broker_change(1, ""), broker_change(3, "q")])
    found = read(tmp_path, l0=data)
    assert found.broker_directories == {1: (printed("x"),), 2: (printed("z"),)}
    assert [numbers_in(problem.text) for problem in found.problems] == [[4, 3]]
    assert read(tmp_path, l0=log([broker(1, "x"), broker(2, "y"), UNREGISTER_1])).broker_directories == {
        2: (printed("y"),)
    }


@each_case(
    "values, left",
    [
        ([[BEGIN, topic("a", "A"), END], [topic("b", "B")]], "a b"),
        ([[BEGIN, topic("a", "A"), ABORT], [topic("b", "B")]], "b"),
        ([[topic("b", "B"), BEGIN], [topic("a", "A")], [NOTHING]], "b"),
        ([[BEGIN, topic("a", "A")], [topic("c", "C"), END, topic("b", "B")]], "a c b"),
        ([[BEGIN, topic("a", "A"), ABORT, BEGIN, topic("b", "B"), END], [BEGIN, topic("c", "C")]], "b"),
        # Kafka never writes these: a second begin without an end, an end without a begin.
        ([[BEGIN, topic("a", "A"), BEGIN, topic("b", "B"), END]], "a b"),
        ([[topic("a", "A"), ABORT, topic("b", "B"), END]], "a b"),
    ],
)
def test_metadata_transactions(tmp_path: Path, values: list[list[bytes]], left: str) -> None:
    data = log(*values)
    assert names(read(tmp_path, l0=data)) == left
    # The same in two segments.
    first = split(data)[0]
    count = len(values[0])
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    assert names(read(tmp_path, **{"l0": first, f"l{count}": data[len(first) :]})) == left


def test_a_transaction_that_damage_cuts_off_does_not_count(tmp_path: Path) -> None:
    data = log([topic("b", "B"), BEGIN, topic("a", "A")], [END])
    found = read(tmp_path, l0=flip(data, len(data) * 8 - 1))
    assert names(found) == "b"
    assert len(found.problems) == 1
    assert "checksum" in found.problems[0].text


# Snapshots, and the log after them.


def test_the_log_goes_on_where_the_snapshot_ends(tmp_path: Path) -> None:
    # The log's first records would bring "old" back if they were applied again.
    data = log([topic("old", "O"), removed("O"), topic("a", "A")], [topic("b", "B"), removed("A")])
    found = read(tmp_path, l0=data, s4=snapshot(topic("a", "A"), topic("b", "B")))
    assert (names(found), found.end_offset, found.problems) == ("b", 5, [])


def test_only_the_segments_behind_the_snapshot_are_read(tmp_path: Path) -> None:
    later = log([topic("c", "C")], offset=6)
    found = read(tmp_path, l0=b"not a log", l2=b"nor this", l5=log([NOTHING], offset=5), l6=later, s6=snapshot())
    assert (names(found), found.end_offset, found.problems) == ("c", 7, [])


def test_damage_below_the_snapshot_costs_nothing(tmp_path: Path) -> None:
    data = log([topic("a", "A")], [NOTHING], [NOTHING], [topic("b", "B")])
    found = read(tmp_path, l0=flip(data, 700), s2=snapshot(topic("a", "A")))
    assert (names(found), found.end_offset, len(found.problems)) == ("a b", 4, 1)


@each_case(
    "bad, reason",
    [
        (snapshot(topic("n", "N"), footer=HEADER), "the last record is not its footer"),
        (snapshot(topic("n", "N"), header=FOOTER), "the first record is not its header"),
        (log([topic("n", "N")]), "the first record is not its header"),
        (b"", "the first record is not its header"),
        (split(snapshot(topic("n", "N")))[0], "the last record is not its footer"),
        (b"".join(split(snapshot(topic("n", "N")))[:2]), "the last record is not its footer"),
        (snapshot(topic("n", "N"))[:-1], "torn"),
        (flip(snapshot(topic("n", "N")), 1300), "its checksum does not match"),
        (snapshot(topic("n", "N")) + bytes(20) + snapshot(), "zeros"),
    ],
)
def test_an_older_snapshot_serves_when_the_newest_is_not_sound(tmp_path: Path, bad: bytes, reason: str) -> None:
    data = log([topic("b", "B")], [topic("c", "C")], offset=3)
    found = read(tmp_path, s3=snapshot(topic("a", "A")), s4=bad, l3=data)
    assert names(found) == "a b c"
    assert len(found.problems) == 1
    assert found.problems[0].text.startswith("00000000000000000004-0000000001.checkpoint: ")
    assert reason in found.problems[0].text


def test_without_a_snapshot_the_log_says_what_it_can(tmp_path: Path) -> None:
    found = read(tmp_path, s3=b"damaged", l3=log([topic("b", "B")], offset=3))
    assert (names(found), found.end_offset) == ("b", 4)
    assert numbers_in(found.problems[1].text) == [3]


def test_a_gap_between_batches_does_not_end_the_replay(tmp_path: Path) -> None:
    parts = split(log([topic("a", "A")], [topic("b", "B")], [topic("c", "C")]))
    found = read(tmp_path, l0=parts[0] + parts[2])  # a node reads on
    assert (names(found), found.end_offset, found.gap, found.is_partial) == ("a c", 3, 1, False)
    assert found.problems == [(Kind.MISSING, f"{LOG}: offset 2, expected 1", 1, None)]
    found = read(tmp_path, l0=parts[0] + parts[1] + rebase(parts[2], 1))
    assert (names(found), found.gap_problem) == ("a b", (Kind.MISSING, f"{LOG}: offset 1, expected 2", 2, None))
    found = read(tmp_path, l0=b"", l9=log([topic("z", "Z")], offset=9), s4=snapshot(topic("y", "Y")))
    assert (names(found), found.end_offset) == ("y", 4)


@each_case("middle", [b"junk, and more of it", bytes(100)])
def test_damage_ends_the_replay(tmp_path: Path, middle: bytes) -> None:
    parts = split(log([topic("a", "A")], [topic("b", "B")]))
    found = read(tmp_path, l0=parts[0] + middle + parts[1])
    assert (names(found), found.end_offset, len(found.problems)) == ("a", 1, 1)
    # A crash leaves zeros at the end.
    assert read(tmp_path, l0=parts[0] + bytes(5000)).problems == []


def test_records_that_do_not_decode_are_skipped_and_told(tmp_path: Path) -> None:
    data = log([topic("a", "A")[:-3], topic("b", "B"), framed(99, b""), b"", topic("c", "C")])
    found = read(tmp_path, l0=data)
    assert names(found) == "b c"
    assert [numbers_in(problem.text)[0] for problem in found.problems] == [0, 2, 3]  # their offsets


def test_what_is_not_a_file_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    os.mkfifo(folder / LOG)
    (folder / CHECKPOINT).mkdir()
    found = read_metadata(str(tmp_path))
    assert found is not None
    assert [problem.text.rsplit(": ", 1)[1] for problem in found.problems] == ["not a file"] * 2


# Hostile bytes.


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM_METADATA", 10 * ENTRY)
    found = read(tmp_path, l0=log([topic(f"t{i}", chr(33 + i)) for i in range(90)]))
    assert 1 < len(found.topics) < 6
    assert found.end_offset == 90
    assert len(found.problems) == 1
    # What is removed makes room.
    churn = [value for i in range(90) for value in (topic(f"t{i}", "T"), partition("T", 0, [1]), removed("T"))]
    churn += [config(4, "", "x", str(i)) for i in range(90)]
    churn += [config(4, "", f"y{i}", value) for i in range(90) for value in ("v", None)]
    found = read(tmp_path, l0=log(churn))
    assert (found.problems, found.broker_configs) == ([], {"": {"x": "89"}})
    # With this number of aborted transactions, reading stops.
    monkeypatch.setattr(module, "MAX_ABORTED_RANGES", 10)
    found = read(tmp_path, l0=log([topic("a", "A"), *[BEGIN, NOTHING, ABORT] * 30, topic("b", "B")]))
    assert names(found) == "a"
    assert len(found.problems) == 1


def test_a_log_without_transactions_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[str] = []

    def counting(path: str, *more: Any) -> Iterator[Record | None]:
        files.append(path)
        return read_records(path, *more)

    monkeypatch.setattr(module, "read_records", counting)
    found = read(tmp_path, l0=log([topic("a", "A")]), l1=log([topic("b", "B")], offset=1))
    assert (names(found), len(files)) == ("a b", 2)
    files.clear()
    found = read(tmp_path, l0=log([topic("a", "A")]), l1=log([BEGIN, topic("b", "B"), ABORT], offset=1))
    assert (names(found), len(files)) == ("a", 4)


def test_partitions_leave_room_for_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM_METADATA", 30 * ENTRY)
    values = [topic("a", "A"), *[partition("A", i, [1], dirs="x") for i in range(90)], config(2, "a", "x", "1")]
    found = read(tmp_path, l0=log(values))
    assert 5 < len(found.topics["a"].partitions) < 20
    assert found.topics["a"].configs == {"x": "1"}
    assert len(found.problems) == 1


def test_a_damaged_compressed_segment(tmp_path: Path) -> None:
    data = gzip.compress(log([topic("a", "A")], [topic("b", "B")]))
    assert names(read(tmp_path, l0=data)) == "a b"
    assert read(tmp_path, l0=data).problems == []
    # All bytes were decompressed, and only their checksum is missing.
    assert len(read(tmp_path, l0=data[:-8]).problems) == 1


def test_problems_are_bounded(tmp_path: Path) -> None:
    assert len(read(tmp_path, l0=log([b""] * 1000)).problems) == MAX_PROBLEMS


def test_a_problem_is_not_forgotten_because_of_others(tmp_path: Path) -> None:
    """What follows from a kind of problem does not depend on how many of another kind come before it."""
    large, newer = framed(2, b"\0" * MAX_VALUE_BYTES), framed(2, b"", 99)
    found = read(tmp_path, l0=log([b""] * 300 + [large, newer]))
    kinds = [each.kind for each in found.problems]
    assert kinds[MAX_PROBLEMS:] == [Kind.TOO_LARGE, Kind.NEWER]
    assert first_hidden(found, NEWEST) == found.problems[MAX_PROBLEMS]


def test_large_records_and_batches_are_left_out(tmp_path: Path) -> None:
    large = framed(2, b"\0" * MAX_VALUE_BYTES)
    found = read(tmp_path, l0=log([large, topic("a", "A")]))
    assert (names(found), len(found.problems)) == ("a", 1)
    assert found.end_offset == 2
    bomb = batch([record(value=bytes(1 << 25)), record(1, value=topic("b", "B"))], "zstd", offset=1)
    found = read(tmp_path, l0=log([topic("a", "A")]) + bomb)
    assert (names(found), found.end_offset, len(found.problems)) == ("a", 1, 1)


def test_limits_are_never_above_those_of_the_metadata() -> None:
    assert bounded(Limits()) == LIMITS
    assert bounded(Limits(1000, 2000)) == Limits(1000, 2000)


@pytest.mark.sampled
@each_case("name", [LOG, CHECKPOINT])
def test_flipped_bits(tmp_path: Path, name: str) -> None:
    folder = disk(tmp_path, LOG, CHECKPOINT) if name == CHECKPOINT else disk(tmp_path, LOG)
    sound = read_metadata(str(tmp_path))
    assert sound is not None
    data = (folder / name).read_bytes()
    starts = {sum(map(len, split(data)[:i])) for i in range(len(split(data)))}
    chance = seeded(name)
    unseen, count = 0, 120 if SEED else 40
    for bit in chance.sample(range(len(data) * 8), count):
        (folder / name).write_bytes(flip(data, bit))
        found = read_metadata(str(tmp_path))
        assert found is not None
        assert found.topics.keys() <= sound.topics.keys() | {"gone"}
        if not found.problems:
            # No checksum covers the epoch, nor a snapshot's offsets, and neither matters here.
            at = bit // 8 - max(start for start in starts if start <= bit // 8)
            assert 12 <= at < 16 or (at < 8 and name == CHECKPOINT)
            assert image(found) == image(sound)
            unseen += 1
        elif name == CHECKPOINT:
            # The log from its start has the same contents.
            assert image(found) == image(sound)
    assert unseen < count // 3


@pytest.mark.sampled
def test_truncations(tmp_path: Path) -> None:
    folder = disk(tmp_path, LOG)
    data = (folder / LOG).read_bytes()
    ends = [0]
    for part in split(data):
        ends.append(ends[-1] + len(part))
    last = 0
    for size in [*random.Random(1).sample(range(len(data)), 60 if SEED else 20), *ends[:40]]:
        (folder / LOG).write_bytes(data[:size])
        found = read_metadata(str(tmp_path))
        assert found is not None
        start = max(end for end in ends if end <= size)
        # A few zeros may be the start of a base offset, and a crash leaves them.
        assert bool(found.problems) == any(data[start:size]), size
        last = max(last, found.end_offset)
    assert last > 200


@pytest.mark.sampled
@settings(examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=60), max_size=6), st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, values: list[bytes], junk: bytes) -> None:
    read(tmp_path, l0=log([framed(len(value) % 30, value) for value in values]) + junk, s1=junk + snapshot(*values))
