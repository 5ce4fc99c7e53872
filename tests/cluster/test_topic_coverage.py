"""Half of a topic: what is said of keys, of lag and of Connect if some partitions of a topic with state are on other
disks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kdump.all_answers import TYPES
from kdump.cluster.topic_coverage import TopicCoverage, partition_of
from kdump.format.transaction_record import decode_transaction
from tests import command
from tests.conftest import seeded
from tests.craft import batch, record, write_file
from tests.each_case import each_case
from tests.questions.connect.test_command import commit as connect_commit
from tests.questions.connect.test_command import connector, offset, status
from tests.questions.groups.test_command import with_partition
from tests.registry_disk import write
from tests.state.test_groups import LOG, commit, modern, segment
from tests.state.test_metadata import change, partition, topic
from tests.state.test_metadata import log as metadata_log
from tests.state.test_transaction_coordinator import key, value

COUNT = 3
NAMES = [f"name-{number}" for number in range(12)]


def write_metadata(root: Path, *records: bytes, node: int = 1) -> None:
    write_file(root / "__cluster_metadata-0" / LOG, metadata_log([*records]))
    (root / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id=c\n")


def of_topic(name: str, letter: str, count: int = COUNT, **more: Any) -> list[bytes]:
    replicas = more.pop("replicas", [1])
    return [topic(name, letter), *(partition(letter, number, replicas, **more) for number in range(count))]


@each_case("here", [set[int](), {0}, {1}, {0, 2}, {0, 1, 2}])
def test_a_key_is_absent_only_if_its_partition_is_here(here: set[int]) -> None:
    covered, unknown = TopicCoverage("t", frozenset(here), COUNT), TopicCoverage("t", frozenset(here), None)
    assert (covered.is_complete, covered.is_partial) == (len(here) == COUNT, len(here) < COUNT)
    assert not unknown.is_complete
    assert not unknown.is_partial
    for name in NAMES:
        number = partition_of(name, COUNT)
        assert covered.lacks(name) == (
            "" if number in here else f"it would be in t-{number}, which is not on these disks"
        )
    assert bool(covered.lacks(None)) == covered.is_partial


@each_case("seed", range(3))
def test_what_is_not_found_may_be_on_another_disk(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of groups and of transactional IDs: a disk with some partitions answers for those of their keys alone."""
    root, random = tmp_path_factory.mktemp("disk"), seeded(f"half of a topic {seed}")
    here = set(random.sample(range(COUNT), random.randrange(1, COUNT)))
    write_metadata(root, *of_topic("__consumer_offsets", "O"), *of_topic("__transaction_state", "T"))
    exist = set(random.sample(NAMES, 6))
    for number in here:
        mine = [name for name in exist if partition_of(name, COUNT) == number]
        write_file(root / f"__consumer_offsets-{number}" / LOG, segment(*(commit(name, "t", 0, 1) for name in mine)))
        log = [record(i, key=key(name), value=value(1, 0, "Empty", None)) for i, name in enumerate(mine)]
        write_file(root / f"__transaction_state-{number}" / LOG, batch(log) if log else b"")
    for name in NAMES:
        number = partition_of(name, COUNT)
        for topic_name, arguments in (
            ("__consumer_offsets", ("groups", root, "--group", name)),
            ("__transaction_state", ("transactions", root, "--coordinator", "--transactional-id", name)),
        ):
            result = command.run(*arguments)
            assert f"only {len(here)} of {COUNT} partitions of {topic_name} on these disks" in result.stderr
            assert ("no match" in result.stderr) == (number not in here or name not in exist)
            assert (f"it would be in {topic_name}-{number}" in result.stderr) == (number not in here)
    assert f"in {len(here)} of {COUNT} partitions of __consumer_offsets" in command.run("doctor", root).stdout
    for pattern in ("zz*", "/zz/"):
        assert f"no match: only {len(here)} of" in command.run("groups", root, "--group", pattern).stderr


def test_decoded_ids_are_those_that_are_hashed() -> None:
    assert decode_transaction(key("name-1"), None).transactionalId == "name-1"


@pytest.mark.every_disk
@each_case("seed", range(6))
def test_whose_log_end_it_is(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The lag is a minimum unless the leader's copy is there or, without a leader, one with all committed records, or
    all copies are."""
    random = seeded(f"lag of a follower {seed}")
    for _ in range(6):
        root = tmp_path_factory.mktemp("disks")
        replicas = random.sample([1, 2, 3], random.randrange(1, 4))
        leader, isr = random.choice([-1, *replicas]), random.sample(replicas, random.randrange(len(replicas) + 1))
        nodes = random.sample([1, 2, 3], random.randrange(1, 4))
        records = [*of_topic("t", "A", 1, replicas=replicas), *of_topic("__consumer_offsets", "O", 1)]
        tagged = bytes([len(isr) + 1]) + b"".join(each.to_bytes(4, "big") for each in isr)
        records.append(change("A", 0, isr=tagged, leader=leader.to_bytes(4, "big", signed=True)))
        for node in nodes:
            write_metadata(root / str(node), *records, node=node)
            with_partition(root / str(node), "t-0", 0, 9)
        write_file(root / str(nodes[0]) / "__consumer_offsets-0" / LOG, segment(commit("g", "t", 0, 4)))
        has_all = {leader} if leader >= 0 else set(isr)
        expected = not has_all & set(nodes) and not set(replicas) <= set(nodes)
        result = command.run("groups", *sorted(root.iterdir()), "--json")
        group, position = (
            each
            for each in command.objects("groups", *sorted(root.iterdir()), types=TYPES)
            if each["type"] in ("group", "groupOffset")
        )
        assert (group["lag"], group["lagIsMinimum"], position["lagIsMinimum"]) == (6, expected, expected)
        assert ("the lag is a minimum" in result.stderr) == expected
        page = command.run("doctor", *sorted(root.iterdir())).stdout
        assert ("g (at least 6)" in page) == expected
        assert ("g (6)" in page) != expected


@each_case("there", ["all", "none", "only the group's metadata"])
def test_an_unknown_lag_is_not_none(there: str, tmp_path: Path) -> None:
    write_metadata(tmp_path, *of_topic("t", "A", 2), *of_topic("__consumer_offsets", "O", 1))
    steps = [commit("g", "t", 0, 10), commit("g", "t", 1, 10)]
    steps = steps if there != "only the group's metadata" else [modern(3, "g", b"\0\0\0\1\0\0\0\0\0\0\0\0\0")]
    write_file(tmp_path / "__consumer_offsets-0" / LOG, segment(*steps))
    for number in range(2 if there == "all" else 0):
        with_partition(tmp_path, f"t-{number}", 0, 9)
    page = command.run("doctor", tmp_path).stdout
    assert ("none is behind" in page) == (there != "none")
    assert ("none is known to be behind; 1 with partitions whose log is not on these disks" in page) == (
        there == "none"
    )


def test_a_part_of_connect(tmp_path: Path) -> None:
    """A connector is not unknown to Connect because its configs are on another disk."""
    steps = [connector("c", topics="t"), connect_commit("c", 0)]
    write(
        tmp_path,
        {
            "connect-configs-0": [*steps],
            "connect-offsets-1": [offset("c", {"p": 1}, {"o": 2})],
            "connect-status-0": [status("connector-c", "RUNNING")],
        },
    )
    write_metadata(
        tmp_path,
        *of_topic("connect-configs", "C", 1),
        *of_topic("connect-offsets", "O"),
        *of_topic("connect-status", "S", 1),
    )
    assert command.run("connect", tmp_path).stderr.splitlines() == [
        "kdump: connect-*: only 1 of 3 partitions of connect-offsets on these disks: the offsets of sources of the "
        "others are not known"
    ]
    shutil.rmtree(tmp_path / "connect-configs-0")
    assert (
        "no partition of connect-configs is on these disks: the configs of connectors are not known"
        in command.run("connect", tmp_path).stderr
    )


def test_a_registry_on_another_disk(tmp_path: Path) -> None:
    write_metadata(tmp_path, *of_topic("_schemas", "S", 1, replicas=[2, 3], leader=2))
    result = command.run("registry", tmp_path)
    assert "no _schemas found; by the metadata on these disks, it is assigned to brokers 2, 3" in result.stderr
