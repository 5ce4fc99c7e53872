"""Records of Kafka's own topics as tables, compared with what `kdump inspect` decodes and `kdump groups` replays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from kdump.cluster.transaction_coordinator import read_coordinator
from tests.conftest import FIXTURES
from tests.spark import same

DISK = FIXTURES / "clean-1"


def inspected(name: str) -> list[dict[str, Any]]:
    found = same.cli_objects("inspect", "--json", "--records", str(DISK / name))
    return [row for row in found if row["type"] == "record"]


def test_metadata_records() -> None:
    rows = same.rows("metadata_records", [DISK])
    said = inspected("__cluster_metadata-0")
    assert [row["recordOffset"] for row in rows] == [record["offset"] for record in said]
    for row, record in zip(rows, said):
        if "control" in record:
            assert row["name"] == record["control"]["type"]
            continue
        decoded = record["valueDecoded"]
        assert (row["name"], row["apiKey"], row["version"]) == (decoded["name"], decoded["type"], decoded["version"])
        assert json.loads(row["data"]) == decoded["data"]
    assert {row["problem"] for row in rows} == {None}


def test_group_offsets() -> None:
    rows = same.rows("group_offsets", [DISK])
    said = inspected("__consumer_offsets-0")
    commits = [row for row in said if (row.get("keyDecoded") or {}).get("name") == "OffsetCommitKey"]
    assert [row["recordOffset"] for row in rows] == [record["offset"] for record in commits]
    for row, record in zip(rows, commits):
        key, value = record["keyDecoded"]["data"], (record["valueDecoded"] or {}).get("data", {})
        assert (row["groupId"], row["topic"], row["partition"]) == (key["group"], key["topic"], key["partition"])
        assert (row["offset"], row["commitTimestamp"]) == (value.get("offset"), value.get("commitTimestamp"))
    # The last commit outside transactions is the group's offset.
    (group,) = same.cli_objects("groups", str(DISK), "--group", "group-consumer", "--offsets", "--json")[1:2]
    latest = [row for row in rows if (row["groupId"], row["topic"]) == (group["groupId"], group["topic"])][-1]
    assert latest["offset"] == group["offset"]
    assert any(row["producerId"] >= 0 for row in rows)


def test_transactions() -> None:
    rows = same.rows("transactions", [DISK])
    known = read_coordinator([str(DISK / "__transaction_state-0")])
    assert known is not None
    last = {row["transactionalId"]: row for row in rows}
    assert last.keys() == known.by_id.keys()
    for name, said in known.by_id.items():
        row = last[name]
        assert (row["producerId"], row["producerEpoch"], row["state"]) == (
            said.producerId,
            said.producerEpoch,
            said.state,
        )
        assert {each["topic"]: each["partitions"] for each in row["partitions"]} == said.partitions


def test_what_does_not_decode_is_said(tmp_path: Path) -> None:
    """The log of one coordinator has the name of another: every record is there, with its problem."""
    other = shutil.copytree(DISK / "__consumer_offsets-0", tmp_path / "__transaction_state-0")
    rows = same.rows("transactions", [other])
    assert rows
    assert all(row["problem"] for row in rows)
    for split in (300, 4096):
        assert same.rows("metadata_records", [DISK], splitBytes=split) == same.rows("metadata_records", [DISK])
