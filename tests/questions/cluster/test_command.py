"""`kdump cluster` on the command line."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdump.all_answers import TYPES
from tests import command
from tests.command import unmatched
from tests.conftest import DISKS, FIXTURES, numbers_in
from tests.craft import write_file
from tests.state.test_cluster import ACL, SCRAM, TOKEN, feature, int32, quota
from tests.state.test_metadata import (
    CHECKPOINT,
    LOG,
    broker,
    change,
    config,
    framed,
    log,
    numbers,
    partition,
    snapshot,
    topic,
)

CLEAN = FIXTURES / "clean-1"


run = partial(command.run, "cluster")
refused = partial(command.refused, "cluster")


objects = partial(command.objects, "cluster", types=TYPES)


def disk(tmp_path: Path, *values: bytes) -> Path:
    folder = tmp_path / "__cluster_metadata-0"
    write_file(folder / LOG, log([*values]))
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=the-cluster\n")
    return tmp_path


EVERYTHING = (
    feature("metadata.version", 25),
    broker(1, "x"),
    broker(2, "y"),
    topic("a", "A"),
    partition("A", 0, [1, 2]),
    partition("A", 1, [2, 1], leader=2),
    change("A", 1, isr=numbers([2])),
    config(2, "a", "retention.ms", "1"),
    config(4, "", "listener.name.x.ssl.keystore.password", "sesame"),
    framed(18, ACL),
    framed(11, SCRAM),
    framed(10, TOKEN),
    quota("ann", 50.0),
    framed(15, int32(1) + bytes(8) + (5000).to_bytes(8, "big") + b"\0"),
)


def test_every_part(tmp_path: Path) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in objects(disk(tmp_path, *EVERYTHING)):
        found.setdefault(each["type"], []).append(each)
    [cluster] = found["cluster"]
    assert {name: cluster[name] for name in ("clusterId", "nodeId", "metadataVersion", "endOffset", "brokers")} == {
        "clusterId": "the-cluster",
        "nodeId": "4",
        "metadataVersion": "4.0-IV3",
        "endOffset": len(EVERYTHING),
        "brokers": 2,
    }
    assert (cluster["partitions"], cluster["underReplicatedPartitions"], cluster["offlinePartitions"]) == (2, 1, 0)
    assert (cluster["nextProducerId"], cluster["committedOffset"], cluster["snapshot"]) == (5000, None, None)
    assert [(b["brokerId"], b["leaders"], b["replicas"], b["outOfSync"]) for b in found["clusterBroker"]] == [
        (1, 1, 2, 1),
        (2, 1, 2, 0),
    ]
    assert [(p["partition"], p["isr"], p["state"]) for p in found["clusterPartition"]] == [
        (0, [1, 2], ""),
        (1, [2], "under-replicated"),
    ]
    [a] = found["clusterTopic"]
    assert (a["replicationFactor"], a["configs"]) == (2, {"retention.ms": "1"})
    assert found["clusterQuota"][0]["entity"] == [{"type": "user", "name": "ann"}]
    assert set(found) == {kind for kind in TYPES if kind.startswith("cluster")} - {"clusterVoter", "clusterController"}
    text = run(tmp_path, "--show", "all").stdout
    for word in ("the-cluster", "1 under-replicated", "User:ann", "SCRAM-SHA-256", "request_percentage", "id-1"):
        assert word in text


def test_secrets_are_hidden(tmp_path: Path) -> None:
    root = disk(tmp_path, *EVERYTHING)
    for options in (["--show", "all"], ["--json"], ["--history"], ["--history", "--json"]):
        out = run(root, *options).stdout
        assert "sesame" not in out
        assert "[hidden]" in out
        assert "slt" not in out
    assert "sesame" in run(root, "--show", "configs", "--show-secrets").stdout
    assert "sesame" in run(root, "--history", "--show-secrets").stdout


def test_paths(tmp_path: Path) -> None:
    folder = CLEAN / "__cluster_metadata-0"
    whole = run(folder, "--show", "topics,brokers").stdout
    assert run(CLEAN, "--show", "topics,brokers").stdout == whole
    copy = shutil.copytree(folder, tmp_path / "some copy")
    assert run(copy, "--show", "topics,brokers").stdout == whole
    [alone] = objects(folder / CHECKPOINT, "--show", "summary")
    assert (alone["snapshot"], alone["endOffset"], alone["committedOffset"]) == (327, 327, 327)
    [alone] = objects(folder / LOG, "--show", "summary")
    assert (alone["snapshot"], alone["endOffset"], alone["topics"]) == (None, 329, 44)
    [first] = objects(CLEAN / "bootstrap.checkpoint", "--show", "summary")
    assert (first["metadataVersion"], first["topics"]) == ("4.3-IV0", 0)
    both = run(CLEAN, folder / CHECKPOINT, "--show", "summary").stdout
    assert both.count("metadata.version") == 2
    assert str(folder / CHECKPOINT) in both


def test_what_the_factory_made() -> None:
    """factory.sh starts one controller and two brokers, with ledger on both brokers. Both were running for live-1, and
    shut down for clean-1."""
    live = objects(DISKS / "kafka-4.3/live-1")
    [cluster] = [each for each in live if each["type"] == "cluster"]
    assert (cluster["topics"], cluster["offlinePartitions"], cluster["underReplicatedPartitions"]) == (44, 0, 0)
    assert [(each["brokerId"], each["state"]) for each in live if each["type"] == "clusterBroker"] == [
        (1, "active"),
        (2, "active"),
    ]
    [ledger] = [each for each in live if each["type"] == "clusterPartition" and each["topic"] == "ledger"]
    assert (ledger["leader"], ledger["replicas"], ledger["isr"]) == (1, [1, 2], [1, 2])
    assert [each["voterId"] for each in live if each["type"] == "clusterVoter"] == [0]
    # The factory's unclean election: broker 2 becomes the leader of what broker 1 led.
    changes = objects(DISKS / "kafka-4.3/clean-0", "--history", "--topic", "ledger")
    leaders = [field["new"] for each in changes for field in each["fields"] if field["name"] == "leader"]
    assert leaders[0] == 1
    assert 2 in leaders[1:]


def test_topic_shows_its_details() -> None:
    kinds = {each["type"] for each in objects(CLEAN, "--topic", "clicks")}
    assert kinds == {"clusterTopic", "clusterPartition", "clusterConfig"}
    assert "segment.bytes" in run(CLEAN, "--topic", "cl*").stdout
    assert unmatched(run(CLEAN, "--topic", "none").stderr) == ["--topic none"]


def test_problems(tmp_path: Path) -> None:
    found = objects(disk(tmp_path, *EVERYTHING), "--problems")
    assert [(each["topic"], each["partition"]) for each in found] == [("a", 1)]


def test_as_of(tmp_path: Path) -> None:
    [then] = [each for each in objects(CLEAN, "--as-of", "300", "--topic", "payments") if "isr" in each]
    assert (then["leader"], then["isr"]) == (1, [1])
    [now] = [each for each in objects(CLEAN, "--topic", "payments") if "isr" in each]
    assert (now["leader"], now["isr"], now["eligibleLeaderReplicas"]) == (-1, [], [1])
    result = run(CLEAN / "__cluster_metadata-0" / CHECKPOINT, "--as-of", "300")
    assert (result.exit_code, result.stdout) == (2, "")
    assert numbers_in(result.stderr)[-1] == 327  # the end of the oldest snapshot
    result = run(CLEAN / "__cluster_metadata-0" / CHECKPOINT, "--as-of", "300", "--history")
    assert (result.exit_code, result.stdout) == (2, "")
    late = run(CLEAN, "--as-of", "9999", "--show", "summary")
    assert (late.exit_code, 329 in numbers_in(late.stderr)) == (2, True)


def test_history() -> None:
    found = objects(CLEAN, "--history", "--topic", "payments")
    assert [(each["offset"], each["entity"], each["action"]) for each in found] == [
        (50, "topic", "created"),
        (51, "partition", "created"),
        (326, "partition", "changed"),
    ]
    assert {"name": "leader", "old": 1, "new": -1} in found[2]["fields"]
    assert len(run(CLEAN, "--history").stdout.splitlines()) > 150


def test_history_behind_a_snapshot(tmp_path: Path) -> None:
    (tmp_path / f"{3:020}-0000000001.checkpoint").write_bytes(snapshot(topic("a", "A")))
    (tmp_path / f"{3:020}.log").write_bytes(log([topic("b", "B")], offset=3))
    result = run(tmp_path, "--history")
    assert 3 in numbers_in(result.stderr)
    assert len(result.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--show", "nope"],
        ["--columns", "topic"],
        ["--show", "topics", "--columns", "nope"],
        ["--history", "--show", "topics"],
        ["--as-of", "someday"],
    ],
)
def test_contradictions(options: list[str]) -> None:
    assert "Error" in refused(CLEAN, *options)


def test_what_is_not_there(tmp_path: Path) -> None:
    for path in (CLEAN / "payments-0", tmp_path, tmp_path / "none", Path("-"), DISKS / "kafka-2.8-legacy"):
        result = run(path)
        assert (result.exit_code, result.stdout) == (2, ""), path
        assert "kdump: " in result.stderr


def test_damage_is_in_the_json_too(tmp_path: Path) -> None:
    root = disk(tmp_path, topic("a", "A"), framed(2, b"\x05"), framed(99, b""), topic("b", "B"))
    found = objects(root, "--show", "topics")
    assert [each["topic"] for each in found if each["type"] == "clusterTopic"] == ["a", "b"]
    notes = [each["message"] for each in found if each["type"] == "note"]
    assert [numbers_in(note)[0] for note in notes] == [1, 2]  # their offsets
    # Very many of them are only counted on stderr.
    root = disk(tmp_path, *[framed(99, b"")] * 60)
    result = run(root)
    assert numbers_in(result.stderr.splitlines()[-1]) == [40]


def test_nothing_of_the_log_reaches_the_terminal_raw(tmp_path: Path) -> None:
    evil = "e\x1b[31m\u202e"
    root = disk(tmp_path, topic(evil, "A"), partition("A", 0, [1]), config(2, evil, evil, evil), feature(evil, 3))
    for options in (["--show", "all"], ["--history"], ["--json"], ["--topic", "*"]):
        out = run(root, *options).stdout
        assert "\x1b" not in out
        assert "\u202e" not in out
