"""Records that Kafka refuses, as its own classes do: docs/metadata-trials.json has what QuorumController,
MetadataLoader and KafkaRaftClient of the newest release do with over a thousand mutated logs. What follows for the
startup of a node."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.check.options import Options
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import read_metadata, replay_metadata
from kdump.cluster.metadata_refusals import refusals
from kdump.format.kafka_release import NEWEST, parse_release
from kdump.format.known_releases import known, newest
from kdump.kafka.config_def import config_problem
from kdump.kafka.server_properties import ServerProperties
from kdump.questions.restart_plan.answer import STOPPED, UNKNOWN, RestartPlan
from kdump.questions.restart_plan.node.refused_records import UNCOMMITTED
from kdump.questions.restart_plan.run import restart_plan
from tests import command
from tests.conftest import DISKS
from tests.craft import batch, record, split, with_metadata_record
from tests.each_case import each_case
from tests.state.test_metadata import (
    ABORT,
    BEGIN,
    NOTHING,
    change,
    config,
    framed,
    log,
    partition,
    printed,
    read,
    removed,
    snapshot,
    topic,
    uuid,
)
from tools import metadata_starts, metadata_trials

TRIALS: dict[str, Any] = json.loads(metadata_trials.RESULTS.read_text())
CASES = {case.name: case for case in metadata_trials.of_logs(newest())}
LEADS = bytes(2) + (1).to_bytes(4, "big") + b"\x01\x01\0"
"""A LeaderChangeMessage."""
STARTS = {start.name: start for start in metadata_trials.starts(newest())}
EACH = 12
"""Every so manieth mutation is replayed; the trials replay all."""

AROUND_RECORDS = (
    "log: batch 6 begins 5 offsets later",
    "log: batch 7 begins an offset earlier",
    "snapshot: record 4.0 is missing",
)
"""Changes that only a controller notices, by the offsets of transactions; and a batch without records."""


def test_a_sample_of_mutated_logs_is_refused_as_by_kafka(tmp_path: Path) -> None:
    does = TRIALS[NEWEST.number]["does"]
    assert set(does) == {*CASES, *STARTS}
    differ = {each["case"] for each in TRIALS[NEWEST.number]["differences"]}
    for number, name in enumerate([*[*CASES][5::EACH], *AROUND_RECORDS]):
        folder = tmp_path / str(number)
        metadata_trials.write(CASES[name], folder, newest())
        says = metadata_trials.says_of(CASES[name], folder, NEWEST)
        assert name in differ or json.loads(json.dumps(says)) == does[name], name
    for name in [*STARTS][3::EACH]:
        metadata_trials.write_disk(STARTS[name], tmp_path / name[:40], newest())
        says = metadata_trials.predicted(tmp_path / name[:40], NEWEST)
        assert name in differ or json.loads(json.dumps(says)) == does[name], name


def test_each_difference_has_a_reason() -> None:
    for name, result in TRIALS.items():
        assert result["cases"] > 900, name
        assert result["refused"] > 300, name
        assert all(each["reason"] for each in result["differences"]), name


def test_real_nodes_did_what_was_predicted() -> None:
    starts = json.loads(metadata_starts.RESULTS.read_text())
    assert len(starts) >= 40
    assert not [each["name"] for each in starts if each["differences"]]


def test_what_follows_a_refused_record_is_replayed(tmp_path: Path) -> None:
    found = read(tmp_path, l0=log([removed("Z"), topic("a", "A")], [change("A", 9)], [topic("b", "B")]))
    assert ([each.offset for each in found.refusals], sorted(found.topics)) == ([0, 2], ["a", "b"])
    place = found.refusals[1]
    assert place.file.endswith(f"{0:020}.log")
    assert place.position == len(log([removed("Z"), topic("a", "A")]))


def test_nothing_is_refused_where_records_are_unknown(tmp_path: Path) -> None:
    """What is below the first record, or damaged, may be what the next ones need. A batch that is missing between
    two others is missing for a node, too, which reads on (4.3.1 refuses the partition)."""
    assert read(tmp_path, l9=log([NOTHING, removed("A")], offset=9)).refusals == []
    (tmp_path / "__cluster_metadata-0" / f"{9:020}.log").unlink()
    path = tmp_path / "__cluster_metadata-0" / f"{0:020}.log"
    parts = split(log([NOTHING], [topic("a", "A")], [partition("A", 0, [1])]))
    path.write_bytes(parts[0] + parts[1][:-1] + b"\xff" + parts[2])
    assert replay_metadata(metadata_files(str(path.parent))).refusals == []
    path.write_bytes(parts[0] + parts[2])
    (refusal,) = replay_metadata(metadata_files(str(path.parent))).refusals
    assert (refusal.record, refusal.offset) == ("PartitionRecord", 2)


def test_records_of_an_aborted_transaction_are_refused_too(tmp_path: Path) -> None:
    data = log([topic("a", "A"), BEGIN, topic("b", "B"), partition("B", 0, [1]), removed("Z"), ABORT])
    found = read(tmp_path, l0=data)
    assert ([each.offset for each in found.refusals], list(found.topics)) == ([4], ["a"])


def test_a_snapshot_is_refused_as_well(tmp_path: Path) -> None:
    found = read(tmp_path, s4=snapshot(topic("a", "A"), topic("a", "B")))
    (refusal,) = found.refusals
    assert (refusal.offset, refusal.file.endswith(".checkpoint")) == (None, True)


def test_a_billion_partitions(tmp_path: Path) -> None:
    """A number is no size."""
    data = log([topic("a", "A"), partition("A", 10**9, [1])], [change("A", 10**9, leader=(2).to_bytes(4, "big"))])
    assert list(read(tmp_path, l0=data).topics["a"].partitions) == [10**9]


@each_case(
    "level, line, who",
    [(99, "4.3", "both"), (31, "4.3", "controller"), (31, "4.4", ""), (1, "4.0", "both"), (1, "3.9", "")],
)
def test_levels_are_those_of_the_release(tmp_path: Path, level: int, line: str, who: str) -> None:
    feature = framed(12, b"\x11metadata.version" + level.to_bytes(2, "big") + b"\0")
    own = framed(12, b"\x11metadata.version" + (20).to_bytes(2, "big") + b"\0")
    found = read(tmp_path, l0=log([feature, own]))
    said = refusals(found, parse_release(f"{line}-kraft"))
    assert [bool(each.controller) + bool(each.loader) for each in said] == {"": [], "controller": [1], "both": [2]}[who]


# What follows for a node.


def start(root: Path, roles: str | None, release: str = "4.3") -> RestartPlan:
    server = None if roles is None else ServerProperties("server.properties", {"process.roles": roles})
    return restart_plan([str(root)], Options(server=server), kafka_version=release)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A broker alone, without its topics: only its own files and the metadata log."""
    source, root = DISKS / "kafka-4.3" / "clean-1", tmp_path / "disk"
    shutil.copytree(source / "__cluster_metadata-0", root / "__cluster_metadata-0")
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    return root


def append(root: Path, *values: bytes) -> int:
    """Append records to the metadata log of a disk; return the position of the first."""
    path = max((root / "__cluster_metadata-0").glob("*.log"))
    size = path.stat().st_size
    for value in values:
        path.write_bytes(with_metadata_record(path.read_bytes(), value))
    return size


def test_a_node_halts_by_its_roles(disk: Path) -> None:
    position = append(disk, removed("?"))
    plan = start(disk, "controller,broker")
    (stop,) = plan.allStops
    assert (plan.verdict, stop.position) == (STOPPED, position)
    assert stop.exception.startswith("UnknownTopicIdException: Can't find topic with ID")
    assert start(disk, "broker").verdict != STOPPED
    (warning,) = (each for each in start(disk, "broker").warnings if "RemoveTopicRecord" in each)
    assert "a broker alone logs a fault" in warning
    result = command.run("verify", disk, "--json")
    assert '"code":"metadata-record-refused"' in result.stdout.replace('": ', '":')
    properties = disk.parent / "server.properties"
    properties.write_text("process.roles=controller,broker\nnode.id=1\n")
    rows = command.objects("doctor", disk, "--properties", properties, status=3)
    assert [each["code"] for each in rows if each.get("offset") == stop.offset] == ["startup-stops"]


def test_without_known_roles_both_outcomes_are_stated(disk: Path) -> None:
    append(disk, removed("?"))
    meta = disk / "meta.properties"
    text = meta.read_text().replace("node.id=1", "node.id=77")
    meta.write_text(re.sub("directory.id=.*", f"directory.id={printed('d')}", text))
    plan = start(disk, None)
    assert plan.verdict == UNKNOWN
    assert any("controller role halts" in each and "broker alone" in each for each in plan.unknowns)


def test_no_node_reads_past_an_unknown_type(disk: Path) -> None:
    append(disk, framed(0x7B, b"\0"))
    assert start(disk, "broker").verdict == STOPPED
    assert start(disk, "controller").verdict == STOPPED


def test_a_broker_does_not_start_with_a_topic_config_of_the_wrong_type(disk: Path) -> None:
    metadata = read_metadata(str(disk))
    assert metadata is not None
    append(disk, config(2, next(iter(metadata.topics)), "retention.ms", "abc"))
    (stop,) = start(disk, "broker").stops
    assert "Invalid value abc for configuration retention.ms" in stop.exception
    assert start(disk, "controller").verdict != STOPPED


@each_case(
    "name, value, line, problem",
    [
        ("retention.ms", "-5", "4.4", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        ("segment.bytes", "1000", "4.0", ""),
        ("segment.bytes", "+1000", "4.1", "Invalid value 1000 for configuration segment.bytes: Value must be at least"),
        ("segment.bytes", "3000000000", "4.0", "for configuration segment.bytes: Not a number of type INT"),
        ("compression.gzip.level", "10", "4.4", "Value must be between 1 and 9 or equal to -1"),
        ("min.cleanable.dirty.ratio", " .5f", "4.4", ""),
        ("min.cleanable.dirty.ratio", "20000000", "4.4", "Invalid value 2.0E7 for"),
        ("cleanup.policy", "compact,keep", "4.4", "Invalid value keep for configuration cleanup.policy: String must"),
        ("leader.replication.throttled.replicas", "0:1,0:", "3.9", "Invalid value [0:1, 0:] for configuration"),
        ("message.timestamp.type", "CreateTime", "3.3", ""),
    ],
)
def test_a_broker_does_not_start_with_a_topic_config_out_of_its_range(
    name: str, value: str, line: str, problem: str
) -> None:
    rules = known(parse_release(f"{line}-kraft").line).topic_rules
    found = config_problem(name, value, rules[name])
    assert problem in found
    assert bool(problem) == bool(found)


def test_what_only_looks_wrong_is_no_reason_to_halt(disk: Path) -> None:
    body = (0).to_bytes(4, "big") + uuid("A") + b"\x02" + (1).to_bytes(4, "big") + b"\x01\x01\x01" + bytes(12) + b"\0"
    append(disk, topic("a", "A"), framed(3, body), config(99, "x", "y", "z"))
    assert kdump.restart_plan([str(disk)], kafka_version="4.3").verdict != STOPPED


def test_a_transaction_that_a_new_controller_cannot_abort(tmp_path: Path) -> None:
    """A standby controller replays it; the one that is elected halts (ActivationRecordsGenerator)."""
    names = {"open transaction at metadata.version 7": False, "open transaction at metadata.version 13": True}
    for name, starts in names.items():
        for voters in (1, 3):
            disk = tmp_path / f"{name[-2:]}-{voters}"
            metadata_trials.write_disk(metadata_trials.Start("", CASES[name], voters), disk, newest())
            plan = kdump.restart_plan([str(disk)], kafka_version="4.4")
            assert (plan.verdict != STOPPED) == starts
            texts = [each.exception for each in plan.stops]
            assert starts or "at offset 2, but the metadata.version 3.3-IV3 does not support" in texts[0]
            assert not any(UNCOMMITTED in each.message for each in plan.stops if voters == 1)


def test_what_a_later_leader_has_followed_is_committed(tmp_path: Path) -> None:
    """A controller writes no record before all of earlier epochs are committed (KafkaRaftClient.ListenerContext)."""
    leads = batch([record(key=bytes(3) + b"\x02", value=LEADS)], offset=2, attributes=0x20, partitionLeaderEpoch=2)
    before = log([NOTHING], [removed("Z")])
    assert read(tmp_path, l0=before + leads).committed == 0
    after = batch([record(value=NOTHING)], offset=3, partitionLeaderEpoch=2)
    assert read(tmp_path, l0=before + leads + after).committed == 2
