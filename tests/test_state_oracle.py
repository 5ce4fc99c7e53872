"""Compares the state of state-1 with the output of Kafka's own tools while that broker was running:
kafka-consumer-groups, kafka-topics and kafka-acls."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kdump.cli import cli
from tests.conftest import FIXTURES

STATE = FIXTURES / "state-1"
ORACLE = Path(__file__).parent / "oracle" / "state-1"


def said(name: str) -> list[list[str]]:
    """Return the rows of a tool's tables, without headings and sentences."""
    lines = (ORACLE / name).read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith(("GROUP ", "Consumer group"))]


def objects(command: str, kind: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, [command, str(STATE), "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stderr == ""
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return [each for each in found if each["type"] == kind]


def test_offsets() -> None:
    ours = {(o["groupId"], o["topic"], o["partition"]): o for o in objects("groups", "groupOffset")}
    theirs = {(row[0], row[1], int(row[2])): row for row in said("groups-offsets.txt")}
    assert {at: each["offset"] for at, each in ours.items()} == {at: int(row[3]) for at, row in theirs.items()}
    users = ours["tx-open", "users", 0]
    assert [str(users[name]) for name in ("offset", "logEndOffset", "lag")] == theirs["tx-open", "users", 0][3:6]
    # No tool of Kafka shows this one.
    assert users["pending"] == [
        {"producerId": 1000, "offset": 200, "recordOffset": users["pending"][0]["recordOffset"]}
    ]


def test_states() -> None:
    ours = {each["groupId"]: each for each in objects("groups", "group") if each["groupType"] != "share"}
    theirs = {row[0]: row[-2:] for row in said("groups-state.txt")}
    assert {name: [each["state"], str(each["members"])] for name, each in ours.items()} == theirs


def test_members() -> None:
    [member] = objects("groups", "groupMember")
    [row] = said("groups-members.txt")
    names = ("groupId", "memberId", "instanceId", "clientHost", "clientId")
    assert [member[name] for name in names] == row[:5]
    assigned = sorted(f"{each['topic']}:{each['partitions'][0]}" for each in member["assigned"])
    assert (str(member["memberEpoch"]), ";".join(assigned)) == (row[6], row[7])
    assert member["target"] == member["assigned"]


def test_partitions() -> None:
    pattern = (
        r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S*)\tIsr: (\S*)\tElr: (\S*)\tLastKnownElr: (\S*)"
    )
    theirs = {match[:2]: match[2:] for match in re.findall(pattern, (ORACLE / "topics.txt").read_text())}
    names = ("replicas", "isr", "eligibleLeaderReplicas", "lastKnownElr")
    ours = {
        (each["topic"], str(each["partition"])): (
            str(each["leader"]),
            *(",".join(map(str, each[name])) for name in names),
        )
        for each in objects("cluster", "clusterPartition")
    }
    assert len(ours) == 44
    assert ours == theirs


def test_topic_ids_and_configs() -> None:
    pattern = r"^Topic: (\S+)\tTopicId: (\S+)\tPartitionCount: (\d+)\tReplicationFactor: (\d+)\tConfigs: (\S*)"
    ours = {each["topic"]: each for each in objects("cluster", "clusterTopic")}
    theirs = re.findall(pattern, (ORACLE / "topics.txt").read_text(), re.M)
    assert {name for name, *_ in theirs} == ours.keys()
    for name, topic_id, count, factor, configs in theirs:
        each = ours[name]
        assert [each["topicId"], str(each["partitions"]), str(each["replicationFactor"])] == [topic_id, count, factor]
        # The tool also shows the brokers' configs.
        assert {f"{key}={value}" for key, value in each["configs"].items()} <= set(configs.split(","))


def test_acls() -> None:
    text = (ORACLE / "acls.txt").read_text()
    theirs = set()
    for block in text.strip().split("\n\n"):
        resource = re.search(r"resourceType=(\w+), name=(\S+), patternType=(\w+)", block)
        assert resource is not None
        for entry in re.findall(r"principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)", block):
            theirs.add((*resource.groups(), *entry))
    names = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
    assert {tuple(each[name] for name in names) for each in objects("cluster", "clusterAcl")} == theirs


def test_quotas_and_users() -> None:
    assert [(each["name"], each["value"]) for each in objects("cluster", "clusterQuota")] == [
        ("producer_byte_rate", 1000.0),
        ("request_percentage", 50.0),
    ]
    assert [(u["name"], u["mechanism"], u["iterations"]) for u in objects("cluster", "clusterScram")] == [
        ("ann", "SCRAM-SHA-256", 4096)
    ]
