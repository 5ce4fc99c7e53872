"""kdump rescue --from-data: a cluster's metadata from its brokers' partition directories. docs/rescue-trials.json has
what real clusters did with the result."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations, product
from os import scandir as os_scandir
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.cluster.remote_log import read_remote_log
from kdump.format.kafka_release import parse_release
from kdump.format.kafka_uuid import uuid_text
from kdump.format.known_releases import known
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine
from kdump.questions.rescue.answer import Rescue, RescueError
from kdump.questions.rescue.coordinators import partition_count
from kdump.questions.rescue.numbers import MORE_EPOCHS, MORE_PRODUCER_IDS
from kdump.questions.rescue.rescuer import NewController
from kdump.questions.rescue.run import rescue
from kdump.state.metadata_image import PartitionRegistration
from tests import command
from tests.conftest import FIXTURES, ROOT
from tests.craft import flip, one, write_file
from tests.questions.rescue.test_command import (
    CLUSTER,
    LEVEL,
    disk,
    hashes,
    log_of,
    of_snapshot,
    topic,
)
from tests.questions.rescue.test_command import partition as one_partition
from tests.test_memory import MEASURE
from tools.metadata_trials import IDS

LOG = "__cluster_metadata-0"
CONTROLLER = NewController(1, "localhost", 9093)
REQUEST: dict[str, Any] = {"controllers": (CONTROLLER,), "kafka_version": "4.3", "from_data": True}
HOLD = {"retention.ms": "-1", "retention.bytes": "-1"}


def data(*batches: tuple[int, int], **fields: int) -> bytes:
    """Return batches of one record at these offsets, each with its leader epoch."""
    return b"".join(one(b"value", offset, partitionLeaderEpoch=epoch, **fields) for offset, epoch in batches)


def log(
    path: Path, name: str, topic_id: str | None, batches: bytes, epochs: Sequence[tuple[int, int]] = ((0, 0),)
) -> Path:
    """Write a partition directory; `epochs`: leader epochs and their start offsets."""
    folder = path / name
    write_file(folder / f"{0:020}.log", batches)
    if topic_id is not None:
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    rows = "".join(f"{epoch} {offset}\n" for epoch, offset in epochs)
    (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{rows}")
    return folder


def checkpoint(path: Path, name: str, **offsets: int) -> None:
    """Write an offset checkpoint; the names are those of partition directories, with _ for -."""
    rows = "".join(f"{each.replace('_', ' ')} {offset}\n" for each, offset in offsets.items())
    (path / f"{name}-checkpoint").write_text(f"0\n{len(offsets)}\n{rows}")


def rebuilt(
    tmp_path: Path, *disks: Path, **asked: object
) -> tuple[Rescue, dict[str, dict[int, PartitionRegistration]]]:
    """Rebuild the metadata, and return the report and the partitions that a controller reads in what is written."""
    made = rescue([str(each) for each in disks], out=str(tmp_path / "out"), **{**REQUEST, **asked})
    image = of_snapshot(made)
    return made, {name: dict(each.partitions) for name, each in image.topics.items()}


def test_leader_and_replicas(tmp_path: Path) -> None:
    """The replica with the highest leader epoch leads, then the longest; those with the same log are in sync."""
    one_, two, three = (disk(tmp_path / str(node), node, None) for node in (11, 12, 13))
    same = data((0, 0), (1, 0), (2, 3))
    log(one_, "a-0", IDS["T"], same, ((0, 0), (3, 2)))
    log(two, "a-0", IDS["T"], same, ((0, 0), (3, 2)))
    log(three, "a-0", IDS["T"], data((0, 0), (1, 0)))
    # Longer, but its last records are of an older epoch.
    log(one_, "b-0", IDS["U"], data(*((offset, 0) for offset in range(9))))
    log(two, "b-0", IDS["U"], data((0, 0), (1, 0), (2, 1)), ((0, 0), (1, 2)))
    before = hashes(one_, two, three)
    made, topics = rebuilt(tmp_path, one_, two, three)
    a, b = topics["a"][0], topics["b"][0]
    assert (a.replicas, a.isr, a.leader) == ((11, 12, 13), (11, 12), 11)
    assert (b.replicas, b.isr, b.leader) == ((12, 11), (12,), 12)
    assert a.leaderEpoch == 3 + MORE_EPOCHS
    assert a.directories == tuple(IDS["DEFGT"[node % 5]] for node in (11, 12, 13))
    (loss,) = made.losses
    assert (loss.topic, loss.nodeId, loss.firstOffset, loss.lastOffset, loss.committed) == ("b", 11, 2, 8, None)
    assert (made.summary.lostOffsets, made.summary.lostPartitions) == (7, 0)
    assert hashes(one_, two, three) == before


def test_a_high_watermark_shows_what_was_committed(tmp_path: Path) -> None:
    for number, (mark, committed) in enumerate(((2, False), (3, True))):
        one_, two = (disk(tmp_path / f"{number}-{node}", node, None) for node in (11, 12))
        log(one_, "b-0", IDS["U"], data(*((offset, 0) for offset in range(9))))
        checkpoint(one_, "replication-offset", b_0=mark)
        log(two, "b-0", IDS["U"], data((0, 0), (1, 0), (2, 1)), ((0, 0), (1, 2)))
        made, _ = rebuilt(tmp_path / str(number), one_, two)
        assert [each.committed for each in made.losses] == [committed]


def test_partitions_without_a_copy(tmp_path: Path) -> None:
    """Gaps, and partitions that only checkpoints or committed offsets name, begin empty, and are named."""
    one_ = disk(tmp_path / "d", 11, None)
    for number in (0, 2):
        log(one_, f"a-{number}", IDS["T"], data((0, 7)), ((7, 0),))
    checkpoint(one_, "recovery-point-offset", a_0=1, a_3=5)
    made, topics = rebuilt(tmp_path, one_)
    assert sorted(topics["a"]) == [0, 1, 2, 3]
    assert [(each.partition, each.nodeId, each.leader) for each in made.losses] == [(1, None, 11), (3, None, 11)]
    assert topics["a"][1].isr == (11,)
    assert topics["a"][1].leaderEpoch == 7 + MORE_EPOCHS
    assert made.topics[0].lost == [1, 3]
    assert made.summary.lostPartitions == 2


def test_directories_that_are_not_live(tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "a-0", IDS["T"], data((0, 0)))
    log(one_, f"gone-0.{'0' * 32}-delete", IDS["D"], data((0, 0)))
    log(one_, f"old-0.{'1' * 32}-stray", IDS["E"], data((0, 0)))
    log(one_, f"moved-0.{'2' * 32}-future", IDS["F"], data((0, 0)))
    log(one_, f"a-0.{'3' * 32}-future", IDS["T"], data((0, 0)))
    made, topics = rebuilt(tmp_path, one_)
    assert sorted(topics) == ["a", "moved"]
    states = {
        Path(each.path).name.partition(".")[0]: each.state for each in made.directories if "3333" not in each.path
    }
    assert states == {"gone-0": "delete", "old-0": "stray", "moved-0": "used"}
    assert [each.state for each in made.directories if "3333" in each.path] == ["future"]
    commands = [each.command for each in made.steps if each.command and each.command.startswith("mv ")]
    assert len(commands) == 1
    assert commands[0].endswith(str(one_ / "moved-0"))
    made, topics = rebuilt(tmp_path / "2", one_, with_stray=True)
    assert sorted(topics) == ["a", "moved", "old"]


def test_a_live_directory_that_clients_made_since_is_named(tmp_path: Path) -> None:
    """After a controller was formatted anew, a topic is created again, and its old directory is stray."""
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, f"a-0.{'1' * 32}-stray", IDS["E"], data((0, 0), (1, 0)))
    log(one_, "a-0", IDS["T"], b"")
    made, _ = rebuilt(tmp_path / "out", one_, with_stray=True)
    (unused,) = made.directories
    assert unused.state == "stray"
    assert unused.reason.endswith("move it away, and run this again")


def test_two_topics_with_one_name(tmp_path: Path) -> None:
    """The one with newer records is rebuilt, or the one that --configs states."""
    one_, two = (disk(tmp_path / str(node), node, None) for node in (11, 12))
    log(one_, "a-0", IDS["T"], data((0, 0), baseTimestamp=1000, maxTimestamp=1000))
    log(two, "a-0", IDS["U"], data((0, 0), baseTimestamp=2000, maxTimestamp=2000))
    made, topics = rebuilt(tmp_path, one_, two)
    assert (made.topics[0].topicId, topics["a"][0].replicas) == (IDS["U"], (12,))
    assert [(each.state, each.nodeId) for each in made.directories] == [("otherId", 11)]
    listing = tmp_path / "topics.txt"
    listing.write_text(f"Topic: a\tTopicId: {IDS['T']}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n")
    made, topics = rebuilt(tmp_path / "2", one_, two, configs=str(listing))
    assert (made.topics[0].topicId, topics["a"][0].replicas) == (IDS["T"], (11,))


def test_one_id_under_two_names(tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "a-0", IDS["T"], data((0, 0)))
    log(one_, "a-1", IDS["T"], data((0, 0)))
    log(one_, "b-0", IDS["T"], data((0, 0)))
    made, topics = rebuilt(tmp_path, one_)
    assert list(topics) == ["a"]
    assert [(each.state, Path(each.path).name) for each in made.directories] == [("otherName", "b-0")]


@pytest.mark.parametrize("metadata", [None, b"", b"version: 0\ntopic_id: nonsense\n"])
def test_partition_metadata_is_missing_or_damaged(metadata: bytes | None, tmp_path: Path) -> None:
    """The ID is taken from another replica, or made; a command writes it."""
    one_, two = (disk(tmp_path / str(node), node, None) for node in (11, 12))
    log(one_, "a-0", IDS["T"], data((0, 0)))
    for name in ("a-0", "b-0"):
        folder = log(two, name, None, data((0, 0)))
        if metadata is not None:
            (folder / "partition.metadata").write_bytes(metadata)
    made, topics = rebuilt(tmp_path, one_, two)
    assert topics["a"][0].replicas == (11, 12)
    assert made.topics[0].topicId == IDS["T"]
    assert made.topics[1].idFrom == "made"
    commands = [each.command for each in made.steps if each.command and each.command.startswith("printf ")]
    assert len(commands) == 2
    for each in commands:
        subprocess.run(each, shell=True, check=True)
    made, _ = rebuilt(tmp_path / "2", one_, two)
    assert [each.idFrom for each in made.topics] == ["partition.metadata"] * 2
    assert not made.directories


def test_what_the_logs_show(tmp_path: Path) -> None:
    """The configs of Kafka's own topics, and those that a log was written with."""
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "plain-0", IDS["T"], data((0, 0), (1, 0)))
    closed = log(one_, "gaps-0", IDS["U"], data((0, 0), (5, 0)))
    (closed / f"{9:020}.log").write_bytes(data((9, 0)))
    log(one_, "cleaned-0", IDS["V"], data((0, 0)))
    checkpoint(one_, "cleaner-offset", cleaned_0=1)
    log(one_, "appended-0", IDS["W"], data((0, 0), attributes=8))
    log(one_, "__consumer_offsets-0", IDS["X"], b"")
    log(one_, "__transaction_state-0", IDS["a"], b"")
    made, _ = rebuilt(tmp_path, one_)
    configs = {each.topic: each.configs for each in made.topics}
    assert configs["plain"] == HOLD
    assert configs["gaps"] == configs["cleaned"] == {**HOLD, "cleanup.policy": "compact"}
    assert configs["appended"] == {**HOLD, "message.timestamp.type": "LogAppendTime"}
    assert configs["__consumer_offsets"]["cleanup.policy"] == "compact"
    assert configs["__transaction_state"]["min.insync.replicas"] == "1"
    by_default = "__transaction_state is taken to have min.insync.replicas=1, by the default of transaction.state.log"
    assert any(each.startswith(by_default) for each in made.summary.notes)  # no file of a partition has it
    image = of_snapshot(made)
    assert {name: each.configs for name, each in image.topics.items()} == configs
    assert image.features["metadata.version"] == 30


def test_a_tiered_topic_stays_tiered(tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    shutil.copytree(FIXTURES / "tiered" / "__remote_log_metadata-0", one_ / "__remote_log_metadata-0")
    remote = read_remote_log([str(one_ / "__remote_log_metadata-0")], None)
    folder = log(one_, "tiered-0", min(topic_id for topic_id, _ in remote.ends), b"")
    (folder / f"{0:020}.log").rename(folder / f"{9:020}.log")
    checkpoint(one_, "log-start-offset", tiered_0=0)
    made, _ = rebuilt(tmp_path, one_)
    (tiered,) = (each for each in made.topics if each.topic == "tiered")
    assert tiered.configs == {**HOLD, "remote.storage.enable": "true"}


def test_producer_ids_are_above_all(tmp_path: Path) -> None:
    """In batches of any segment, in producer snapshots, and in the coordinator's log."""
    source = tmp_path / "d"
    disk(source, 1, None)
    for each in (FIXTURES / "disk-1").iterdir():
        if each.is_dir() and each.name != LOG:
            shutil.copytree(each, source / each.name)
    made, _ = rebuilt(tmp_path, source)
    logs = [each for each in source.rglob("*.log") if each.stat().st_size]
    shown = (row for each in logs for row in command.objects("inspect", each))
    highest = max(row["producerId"] for row in shown if row.get("producerId") is not None)
    assert highest > 0
    assert of_snapshot(made).producer_ids[""].nextProducerId > highest + MORE_PRODUCER_IDS
    closed = log(source, "other-0", IDS["T"], data((0, 0), producerId=77_000, producerEpoch=0, baseSequence=0))
    (closed / f"{1:020}.log").write_bytes(data((1, 0)))
    made, _ = rebuilt(tmp_path / "2", source)
    assert of_snapshot(made).producer_ids[""].nextProducerId == 77_001 + MORE_PRODUCER_IDS


def test_a_damaged_log_does_not_lead(tmp_path: Path) -> None:
    """Without a clean shutdown, a broker cuts a log at the damage."""
    one_, two = (disk(tmp_path / str(node), node, None) for node in (11, 12))
    whole = data(*((offset, 0) for offset in range(9)))
    size = len(whole) // 9
    log(one_, "a-0", IDS["T"], whole[:size] + b"\xff" * size + whole[2 * size :])
    log(two, "a-0", IDS["T"], whole[: 5 * size])
    made, topics = rebuilt(tmp_path, one_, two)
    assert topics["a"][0].leader == 12
    assert not made.losses
    made, topics = rebuilt(tmp_path / "2", one_)
    (loss,) = made.losses
    assert (loss.nodeId, loss.firstOffset, loss.lastOffset, loss.leaderEndOffset) == (11, 1, None, 1)
    arguments = ("--from-data", "--kafka-version", "4.3", "--controller", "1@localhost:9093", "--dry-run")
    text = command.run("rescue", one_, *arguments).stdout
    assert "1 partition DAMAGED" in text
    assert "a-0: from offset 1 on of node 11" in text


def test_configs_of_a_file(tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    for name in ("a-0", "b-0", "c-0"):
        log(one_, name, IDS["TUV"["abc".index(name[0])]], data((0, 0)))
    listing = tmp_path / "configs.txt"
    listing.write_text(
        "Dynamic configs for topic a are:\n"
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
        "All configs for topic c are:\n"
        "  compression.type=producer sensitive=false synonyms={DEFAULT_CONFIG:compression.type=producer}\n"
        "Default configs for brokers in the cluster are:\n"
        "  log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2}\n"
        "SCRAM credential configs for user-principal 'ann' are SCRAM-SHA-256=iterations=4096\n"
        f"Topic: b\tTopicId: {IDS['U']}\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: "
        "cleanup.policy=compact,delete,retention.ms=5\n"
        "\tTopic: b\tPartition: 0\tLeader: 12\tReplicas: 12,11\tIsr: 12,11\tElr: \tLastKnownElr: \n"
        "\tTopic: b\tPartition: 1\tLeader: 12\tReplicas: 12\tIsr: 12\tElr: N/A\tLastKnownElr: N/A\n"
    )
    made, topics = rebuilt(tmp_path, one_, configs=str(listing))
    configs = {each.topic: each.configs for each in made.topics}
    assert configs == {
        "a": {"cleanup.policy": "compact,delete"},
        "b": {"cleanup.policy": "compact,delete", "retention.ms": "5"},
        "c": {},
    }
    assert (topics["b"][0].replicas, topics["b"][0].isr, topics["b"][0].leader) == ((12, 11), (11,), 11)
    assert (topics["b"][1].replicas, topics["b"][1].leader) == ((12,), 12)
    assert of_snapshot(made).configs[4, ""] == {"log.cleaner.threads": "2"}
    assert any("SCRAM credential" in each for each in made.summary.notes)
    assert any("which become those of b;" in each for each in made.summary.notes)  # server.properties may have them
    as_json = tmp_path / "configs.json"
    as_json.write_text(json.dumps({"topics": {"a": {"retention.ms": "7"}}, "brokers": {"11": {"x": "y"}}}))
    made, _ = rebuilt(tmp_path / "2", one_, configs=str(as_json))
    assert [each.configs for each in made.topics] == [{"retention.ms": "7"}, HOLD, HOLD]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "line 1 is not one of"),
        ("{", "Expecting"),
        ('{"topics": []}', "not an object"),
        ('{"topics": {"a": {"retention.ms": 7}}}', "not a string"),
        ('{"users": {}}', "neither topics nor brokers"),
        ('{"topics": {"a": {"retention.ms": "abc"}}}', "ConfigException"),
        ("\xff\xfe", "line 1"),
    ],
)
def test_a_file_of_configs_that_is_none(text: str, reason: str, tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "a-0", IDS["T"], data((0, 0)))
    (tmp_path / "file").write_text(text)
    with pytest.raises(RescueError, match=reason):
        rebuilt(tmp_path, one_, configs=str(tmp_path / "file"))
    assert not (tmp_path / "out").exists()


def test_an_id_in_the_file_that_no_directory_has(tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "a-0", IDS["T"], data((0, 0)))
    listing = tmp_path / "configs.txt"
    for number, (topic_id, count, message) in enumerate(
        [
            (IDS["U"], 1, "which none of its directories has"),
            (IDS["T"], 99_999_999, "99,999,999 partitions are more than"),
        ]
    ):
        listing.write_text(f"Topic: a\tTopicId: {topic_id}\tPartitionCount: {count}\tReplicationFactor: 1\tConfigs: \n")
        with pytest.raises(RescueError, match=message):
            rebuilt(tmp_path / str(number), one_, configs=str(listing))


def test_bad_input(tmp_path: Path) -> None:
    """One line, status 2, and nothing is written."""
    good = disk(tmp_path / "good", 11, None)
    log(good, "a-0", IDS["T"], data((0, 0)))
    other = disk(tmp_path / "other", 12, None, cluster="A" * 22)
    log(other, "a-0", IDS["T"], data((0, 0)))
    nameless = tmp_path / "nameless"
    log(nameless, "a-0", IDS["T"], data((0, 0)))
    zookeeper = tmp_path / "zookeeper"
    log(zookeeper, "a-0", IDS["T"], data((0, 0)))
    (zookeeper / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    twice = shutil.copytree(good, tmp_path / "copy")
    with_log = disk(tmp_path / "with-log", 1, log_of((1, [LEVEL, topic("t", "T")])))
    version, controller = ("--kafka-version", "4.3"), ("--controller", "1@localhost:9093")
    for arguments, reason in (
        ((good, *controller), "name the oldest one"),
        ((good, *version), "no controller is known"),
        ((good, other, *version, *controller), "different clusters"),
        ((good, nameless, *version, *controller), "no valid meta.properties"),
        ((zookeeper, *version, *controller), "ZooKeeper"),
        ((good, twice, *version, *controller), "or that of this one; pass one of them"),
        ((good, with_log, *version, *controller), "without --from-data"),
        ((good, *version, *controller, "--copy", good), "uses none"),
        ((good, *version, *controller, "--configs", tmp_path / "none"), "none"),
        ((good, "--kafka-version", "3.6", *controller, "--dynamic-quorum"), "has none"),
    ):
        before = hashes(tmp_path)
        result = command.run("rescue", *arguments, "--from-data", "--out", tmp_path / "out")
        assert result.exit_code == 2, arguments
        assert reason in result.stderr
        assert len(result.stderr.strip().splitlines()) == (4 if "Usage" in result.stderr else 1)
        assert hashes(tmp_path) == before
        assert not (tmp_path / "out").exists()


def test_flipped_bits_in_partition_metadata(tmp_path: Path) -> None:
    """Whatever a damaged file states, it is an ID or none, and no traceback."""
    text = f"version: 0\ntopic_id: {IDS['T']}\n".encode()
    for bit in range(0, 8 * len(text), 5):
        one_ = disk(tmp_path / str(bit), 11, None)
        folder = log(one_, "a-0", None, data((0, 0)))
        (folder / "partition.metadata").write_bytes(flip(text, bit))
        made = rescue(str(one_), **REQUEST)
        assert [each.topic for each in made.topics] == ["a"]


def test_small_files_as_brokers_write_them_are_read_as_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of a byte of leader-epoch-checkpoint and partition.metadata has the same result in both ways."""
    path, never = tmp_path / "file", re.compile(rb"(?!)")
    epochs_file, id_file = b"0\n2\n0 0\n3 17\n", f"version: 0\ntopic_id: {IDS['T']}\n".encode()
    for read, data_ in ((checkpoint_file.epochs, epochs_file), (checkpoint_file.topic_id, id_file)):
        for at, byte in product(range(len(data_)), b"07 -\n\r\xffZ"):
            path.write_bytes(data_[:at] + bytes([byte]) + data_[at + 1 :])
            found: list[object] = []
            for plain in (checkpoint_file.PLAIN_EPOCHS, checkpoint_file.PLAIN_ID), (never, never):
                monkeypatch.setattr(checkpoint_file, "PLAIN_EPOCHS", plain[0])
                monkeypatch.setattr(checkpoint_file, "PLAIN_ID", plain[1])
                try:
                    found.append(read(str(path)))
                except BadLine as error:
                    found.append(str(error))
            monkeypatch.undo()
            assert found[0] == found[1], (data_, at, byte)


@pytest.mark.slow
@pytest.mark.every_disk
def test_memory(tmp_path: Path) -> None:
    """10,000 replicas; 200,000 take less than 250 MiB."""
    disks = [disk(tmp_path / str(node), node, None) for node in (11, 12)]
    for path, number, partition in product(disks, range(50), range(100)):
        log(path, f"topic-{number}-{partition}", uuid_text(b"memory of topics"[:14] + number.to_bytes(2, "big")), b"")
    for path in disks:
        names = {f"topic-{number}_{partition}": 0 for number, partition in product(range(50), range(100))}
        for name in ("recovery-point-offset", "replication-offset", "log-start-offset"):
            checkpoint(path, name, **names)
    asked = ["--from-data", "--kafka-version", "4.3", "--controller", CONTROLLER, "--quiet"]
    peaks = []
    for paths in (disks[:1], disks):
        out = tmp_path / "peak"
        arguments = [sys.executable, "-m", "kdump", "rescue", *paths, "--dry-run", *asked]
        subprocess.run([sys.executable, "-IS", "-c", MEASURE, out, *map(str, arguments)], check=True, cwd=ROOT)
        peaks.append(int(out.read_text().split()[1]))
    assert peaks[1] - peaks[0] < 5000, f"{peaks} KiB: more than 1 KiB for each replica"


def test_bundles_have_what_the_disks_have(tmp_path: Path) -> None:
    """Also a stray directory and one without an ID; the commands are for the host of the disk."""
    one_, two = (disk(tmp_path / str(node), node, None) for node in (11, 12))
    same = data((0, 0), (1, 0), (2, 3), producerId=7)
    for path in (one_, two):
        log(path, "a-0", IDS["T"], same, ((0, 0), (3, 2)))
    log(one_, f"b-0.{7:032x}-stray", IDS["U"], same)
    log(two, "c-1", None, flip(same, len(same) - 1) + same)
    checkpoint(one_, "replication-offset", a_0=2)
    bundles = [tmp_path / "b" / f"{path.name}.tar" for path in (one_, two)]
    for path, packed in zip((one_, two), bundles):
        depth = "headers" if path == two else "crc"
        command.run("bundle", path, "--out", packed.with_suffix(".dir"), "--tar", packed, "--quiet", "--depth", depth)
    asked = ("--from-data", "--with-stray", "--kafka-version", "4.3", "--controller", CONTROLLER, "--json")
    made = [
        command.objects("rescue", *paths, "--out", tmp_path / f"out-{number}", *asked, status=1)
        for number, paths in enumerate(((one_, two), bundles))
    ]
    states = [(tmp_path / f"out-{number}" / "controller-1" / LOG).glob("*.checkpoint") for number in range(2)]
    assert [each.read_bytes() for each in states[0]] == [each.read_bytes() for each in states[1]]
    commands = [[each["command"] for each in rows if each["type"] == "rescueDirectory"] for rows in made]
    assert commands[0] == commands[1] != []
    ledgers = [[each for each in rows if each["type"] == "rescueInvention"] for rows in made]
    assert ledgers[0] == ledgers[1]
    texts = [each["text"] for each in made[1] if each["type"] == "rescueStep"]
    assert any(f"what is named {one_} below" in text for text in texts)


def test_json_and_report(tmp_path: Path) -> None:
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "a-1", IDS["T"], data((0, 0)))
    log(one_, f"old-0.{'1' * 32}-stray", IDS["E"], data((0, 0)))
    arguments = [one_, "--from-data", "--kafka-version", "4.3", "--controller", "1@localhost:9093", "--dry-run"]
    found = command.objects("rescue", *arguments, status=1, types=TYPES)
    types = {each["type"] for each in found}
    assert types >= {"rescueSummary", "rescueTopic", "rescueLoss", "rescueDirectory", "rescueUnknown", "rescueStep"}
    text = command.run("rescue", *arguments).stdout
    assert "1 partition LOST, without a copy, 1 partition directory NOT USED" in text
    assert "NOT REBUILT" in text


@pytest.mark.parametrize("metadata", [None, [LEVEL, topic("a", "T"), one_partition("T", replicas=[11, 12, 13])]])
def test_no_order_of_paths_or_listings_changes_what_is_written(
    metadata: list[bytes] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [disk(tmp_path / str(node), node, metadata and log_of((1, metadata))) for node in (11, 12, 13)]
    for number, each in enumerate(disks):
        log(each, "a-0", IDS["T"], data((0, 0), *([(1, 0)] * number)))
        log(each, "b-0", IDS["U"], data((0, 0)))
    asked = REQUEST if metadata is None else {"controllers": REQUEST["controllers"]}
    answers = []
    for number, paths in enumerate(permutations(map(str, disks))):
        order = Random(number)
        monkeypatch.setattr(os, "scandir", lambda path=".", order=order: shuffled(path, order))
        out = tmp_path / f"out-{number}"
        made = rescue(list(paths), out=str(out), **asked)
        files = {path.removeprefix(str(out)): text for path, text in hashes(out).items() if "ledger" not in path}
        answers.append(
            (files, replace(made.summary, source=None, ledger=None, out=None), [each.text for each in made.steps])
        )
    for each in answers[1:]:
        assert each == answers[0]


@contextmanager
def shuffled(path: str, order: Random) -> Iterator[Iterator[os.DirEntry[str]]]:
    with os_scandir(path) as entries:
        yield iter(order.sample(found := list(entries), len(found)))


def test_controllers_that_are_left_without_a_log(tmp_path: Path) -> None:
    """A controller's directory keeps its directory.id; one of a log without topics is moved away."""
    one_, controller = disk(tmp_path / "11", 11, None), disk(tmp_path / "1", 1, log_of((1, [LEVEL])))
    log(one_, "a-0", IDS["T"], data((0, 0)))
    shutil.copytree(controller / LOG, one_ / LOG)
    made, _ = rebuilt(tmp_path, one_, controller)
    assert made.controllers[0].directoryId == IDS["DEFGT"[1]]
    assert made.summary.newEpoch > 1
    commands = [each.command for each in made.steps if each.command and each.command.startswith("mv ")]
    assert [Path(each.split()[1]).parent.name for each in commands] == ["1", "11"]


def test_a_combined_node_with_two_log_directories(tmp_path: Path) -> None:
    """Its controller's log goes into a log directory of the node; a partition is in one of the two."""
    one_, two = (disk(tmp_path / name, 11, None, directory=IDS[name]) for name in ("D", "E"))
    log(one_, "a-0", IDS["T"], data((0, 0)))
    log(two, "a-1", IDS["T"], data((0, 0)))
    log(two, "a-0", IDS["T"], data((0, 0), (1, 0)))
    made, topics = rebuilt(tmp_path, one_, two, controllers=(NewController(11, "localhost", 9093),))
    assert made.controllers[0].found == str(one_)
    assert [each.directories for each in topics["a"].values()] == [(IDS["E"],), (IDS["E"],)]
    assert [(each.state, each.path) for each in made.directories] == [("twice", str(one_ / "a-0"))]


def test_features_and_directories_of_an_old_release(tmp_path: Path) -> None:
    """Before 3.7, partitions have no log directories, and before 3.3 a snapshot has no feature levels."""
    one_ = disk(tmp_path / "d", 11, None)
    log(one_, "a-0", IDS["T"], data((0, 0)))
    for number in ("3.2", "3.6", "3.9", "4.0", "4.4"):
        made, topics = rebuilt(tmp_path / number, one_, kafka_version=number)
        assert bool(topics["a"][0].directories) == (number not in ("3.2", "3.6"))
        assert set(of_snapshot(made).features) == {
            each for each, level in known(parse_release(number).line).new_levels.items() if level
        } - {"kraft.version"}


def test_the_number_of_partitions_of_a_coordinators_log(tmp_path: Path) -> None:
    """The partition of a group is the hash of its name modulo their number; with another one, its offsets are lost."""
    assert partition_count({"a": 97 % 50, "ab": 3105 % 50, "": 0}, 6) == 50
    assert partition_count({"polygenelubricants": 0}, 3) == 3  # its hash code is -2^31
    assert partition_count({"a": 3, "b": 3}, 4) == 4  # none fits
    source = disk(tmp_path / "d", 11, None)
    shutil.copytree(FIXTURES / "clean-1" / "__consumer_offsets-0", source / "__consumer_offsets-0")
    made, topics = rebuilt(tmp_path, source)
    assert sorted(topics["__consumer_offsets"]) == [0]
    assert any("__consumer_offsets is taken to have 1 partition:" in each for each in made.summary.notes)
    assert not any("min.insync.replicas" in each for each in made.summary.notes)
    # Groups have offsets of topics of which no directory is left.
    assert any("NOT REBUILT" in each for each in made.summary.notes)
