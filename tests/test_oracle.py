"""Compares kdump's JSON with kafka-dump-log's output, field by field, for every file of record batches that it dumped.

These differences are expected:
- kafka-dump-log leaves out a null key and a null payload, which are null in the JSON.
- It prints U+FFFD for bytes that are not valid UTF-8. The JSON has base64, which is decoded here and shown in the same
  way. Consecutive replacement characters count as one, because Java and Python split invalid bytes differently.
- It decodes the keys and values of Kafka's own topics (it ran with the decoder's option), but inspect does not: only
  their sizes are compared.
- It prints -1 for the timestamp of magic 0, which is null in the JSON.
- A line of its output ends at a line feed in a value; values are compared up to there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from tests.conftest import ORACLE_DISKS, oracle_files, sample
from tests.craft import write_file

BATCH_LINE = re.compile(r"^(?:baseOffset|offset): \d+ ")
FIELD = re.compile(r"(\w+): (\S+)")
DECODED = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state", ".checkpoint")
BATCH_NUMBERS = {
    "count": "recordCount",
    **{name: name for name in ("baseOffset", "lastOffset", "baseSequence", "lastSequence", "producerId")},
    **{name: name for name in ("producerEpoch", "partitionLeaderEpoch", "position", "size", "magic", "crc")},
}
"""Names of a batch's numbers in kafka-dump-log and in the JSON."""


def logs(name: str) -> Iterator[tuple[Path, Path]]:
    """Yield each file of batches of a disk, after the file with what kafka-dump-log printed about it."""
    for _, printed, path in oracle_files(name):
        if path.suffix in (".log", ".checkpoint"):
            yield printed, path


def objects(path: Path, *options: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["inspect", str(path), "--json", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def entries(words: Path) -> tuple[list[str], list[str]]:
    """Return the oracle's lines about batches, and those about records, each including the parts after line feeds."""
    batches: list[str] = []
    records: list[str] = []
    for line in words.read_bytes().decode("utf-8", "replace").split("\n"):
        if line.startswith("| "):
            records.append(line[2:])
        elif BATCH_LINE.match(line):
            batches.append(line)
        elif line.startswith(("Dumping ", "Log starting offset", "Snapshot end offset", "KRaft bootstrap", "Found ")):
            continue
        elif records and line:
            records[-1] += "\n" + line
    return batches, records


def check_batch(said: str, ours: dict[str, Any]) -> None:
    theirs = dict(FIELD.findall(said))
    if ours["magic"] < 2:
        assert int(theirs["offset"]) == ours["lastOffset"]
    for name, key in BATCH_NUMBERS.items():
        if name in theirs:
            assert int(theirs[name]) == ours[key], name
    for name, key in {"isTransactional": "isTransactional", "isControl": "isControlBatch"}.items():
        if name in theirs:
            assert theirs[name] == str(ours[key]).lower(), name
    assert theirs["isvalid"] == str(ours["crcValid"]).lower()
    assert theirs["compresscodec"] == ours["compression"]
    check_time(theirs[ours["timestampType"]], ours["maxTimestamp"], ours["magic"])
    if "deleteHorizonMs" in theirs:
        horizon = ours["deleteHorizonMs"]
        assert theirs["deleteHorizonMs"] == ("OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]")


def check_time(theirs: str, ours: int | None, magic: int) -> None:
    assert int(theirs) == (-1 if magic == 0 and ours is None else ours)


def raw(ours: dict[str, Any], name: str) -> bytes:
    if ours.get(name + "Encoding") == "base64":
        return base64.b64decode(ours[name])
    return str(ours[name]).encode()


def shown(ours: dict[str, Any], name: str) -> str:
    return raw(ours, name).decode("utf-8", "replace")


def one_run(text: str) -> str:
    return re.sub("\ufffd+", "\ufffd", text)


def check_record(said: str, ours: dict[str, Any], decoded: bool) -> None:
    head = said.split(" key: ")[0].split(" payload: ")[0]
    theirs = dict(FIELD.findall(head))
    assert int(theirs["offset"]) == ours["offset"]
    check_time(theirs[ours["timestampType"]], ours["timestamp"], 0 if ours["timestampType"] == "NoTimestampType" else 1)
    assert int(theirs["keySize"]) == ours["keySize"]
    assert int(theirs["valueSize"]) == ours["valueSize"]
    if "sequence" in theirs:
        assert int(theirs["sequence"]) == ours["sequence"]
        keys = re.search(r"headerKeys: \[(.*?)\](?= |$)", said)
        assert keys is not None
        assert keys[1] == ",".join(shown(header, "key") for header in ours["headers"])
    if "isValid" in theirs:
        assert theirs["isValid"] == str(ours["crcValid"]).lower()
        assert int(theirs["crc"].rstrip("}")) == ours["crc"]
    if "control" in ours:
        check_control(said, ours)
        return
    assert (ours["key"] is None) == (ours["keySize"] == -1)
    assert (ours["value"] is None) == (ours["valueSize"] == -1)
    if decoded:
        return
    expected = ""
    if ours["key"] is not None:
        expected += f" key: {shown(ours, 'key')}"
    if ours["value"] is not None:
        expected += f" payload: {shown(ours, 'value')}"
    assert one_run(said[len(head.rstrip()) if not expected else said.index(expected[:6]) :]) == one_run(expected)


def check_control(said: str, ours: dict[str, Any]) -> None:
    control = ours["control"]
    if control["type"] in ("COMMIT", "ABORT"):
        assert f"endTxnMarker: {control['type']} coordinatorEpoch: {control['coordinatorEpoch']}" in said
        return
    name = {"LEADER_CHANGE": "LeaderChange:", "SNAPSHOT_HEADER": "SnapshotHeader", "SNAPSHOT_FOOTER": "SnapshotFooter"}
    theirs = json.loads(said.split(name[control["type"]], 1)[1])
    assert {key: control["value"][key] for key in theirs} == theirs


@pytest.mark.parametrize("name", ORACLE_DISKS)
def test_batches(name: str) -> None:
    for words, path in logs(name):
        said, _ = entries(words)
        ours = objects(path)
        assert len(said) == len(ours), path
        for line, batch in zip(said, ours):
            check_batch(line, batch)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ORACLE_DISKS)
def test_records(name: str) -> None:
    for words, path in sample(logs(name), 4, "records"):
        _, said = entries(words)
        ours = objects(path, "--records")
        assert len(said) == len(ours), path
        decoded = any(part in str(path) for part in DECODED)
        for line, record in zip(said, ours):
            check_record(line, record, decoded)


def invalid(path: Path, *options: str) -> tuple[list[int], int]:
    """Return the positions at which `verify --crc` finds a wrong checksum, and the number of batches that it read."""
    result = CliRunner().invoke(cli, ["verify", "--crc", "--json", *options, str(path)], catch_exceptions=False)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row["position"] for row in rows if row.get("code") == "crc-mismatch"], rows[-1]["batches"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", ORACLE_DISKS)
def test_verify_crc_agrees_with_isvalid(name: str, tmp_path: Path) -> None:
    """Compare batch by batch, then again with the last byte of one batch changed: only that batch may have an error.
    The batches of a metadata snapshot are not counted: they are no part of a log."""
    for words, path in sample(logs(name), 4, "checksums"):
        said = [dict(FIELD.findall(line)) for line in entries(words)[0]]
        wrong = [int(theirs["position"]) for theirs in said if theirs["isvalid"] == "false"]
        count = 0 if path.suffix == ".checkpoint" else len(said)
        assert invalid(path) == (wrong, count), path
        if not said:
            continue
        chosen = said[len(said) // 2]
        data = bytearray(path.read_bytes())
        data[int(chosen["position"]) + int(chosen["size"]) - 1] ^= 0x01
        copy = write_file(tmp_path / path.parent.name / path.name, data)
        assert invalid(copy) == (sorted({*wrong, int(chosen["position"])}), count), path
