"""The small files next to segments: compared with kafka-dump-log and with what a broker wrote, and damaged."""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.log.entries import Entry, entries
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import KINDS, by_name
from kdump.log.paths import target
from kdump.log.region import Defect, Region
from tests.conftest import FIXTURES, covering, numbers_in, oracle_files, seeded, window_of
from tests.craft import write_file
from tests.each_case import each_case

INDEX = struct.pack(">iiii", 39, 4224, 78, 8437)
TIME_INDEX = struct.pack(">qiqi", 1795247902867, 37, 1795247903012, 78)
# clean-1/payments-0/00000000000000000120.snapshot, written by a 4.3.1 broker
SNAPSHOT = bytes.fromhex(
    "000108772d9500000004"
    "00000000000000090008ffffffffffffffffffffffff00000000000001a1fd1d117800000000ffffffffffffffff"
    "000000000000000a000affffffffffffffffffffffff00000000000001a1fd1d11f300000000ffffffffffffffff"
    "000000000000000b000000000000000000000000007200000000000001a1fd1d1268ffffffff0000000000000072"
    "000000000000000c000000000004000000000000007700000004000001a1fd1d1276ffffffffffffffffffffffff"
)
# clean-1/payments-0/00000000000000000000.txnindex, its first entry
TXN_INDEX = struct.pack(">hqqqq", 0, 9, 14, 26, 15)
EPOCHS = b"0\n2\n0 0\n3 120\n"
OFFSETS = b"0\n2\norders 0 300\npay.ments-x 12 9223372036854775807\n"
META = b"#\n#Sat Nov 21 07:58:06 UTC 2026\nnode.id=1\ncluster.id=FN96DRb6S3GeSIQS03itlw\n"
QUORUM = b'{"clusterId":"","leaderId":0,"leaderEpoch":1,"currentVoters":[{"voterId":0}],"data_version":0}'
PARTITION = b"version: 0\ntopic_id: 4K0vBYjuR4-ZwaLaSQbaJg"
NAMES = {
    "00000000000000000100.index": INDEX,
    "00000000000000000100.timeindex": TIME_INDEX,
    "00000000000000000000.txnindex": TXN_INDEX,
    "00000000000000000120.snapshot": SNAPSHOT,
    "leader-epoch-checkpoint": EPOCHS,
    "replication-offset-checkpoint": OFFSETS,
    "meta.properties": META,
    "quorum-state": QUORUM,
    "partition.metadata": PARTITION,
    ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":19}',
}


def inspect(path: Path, *options: str, status: int = 0) -> tuple[list[dict[str, Any]], str]:
    result = CliRunner().invoke(cli, ["inspect", str(path), "--json", *options], catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def said(path: Path, *options: str) -> list[list[Any]]:
    """Return the values of the entries, except for what the name of their directory states."""
    at = target(str(path))
    of_file = {"topic": at.topic, "partition": at.partition}.items()
    return [
        [v for k, v in entry.items() if k not in ("type", "file") and (k, v) not in of_file]
        for entry in inspect(path, *options)[0]
    ]


def items(name: str, data: bytes, window: int = 4096) -> list[Any]:
    kind, base = by_name(name)
    assert kind is not None
    return list(entries(kind, window_of(data, window), base or 0))


@each_case("name, data", NAMES.items())
def test_known_by_name_and_by_content(name: str, data: bytes, tmp_path: Path) -> None:
    kind, _ = by_name(name)
    assert kind is not None
    assert by_content(window_of(data)) is kind
    for ending in (".deleted", ".swap", ".cleaned", ".deleted.gz"):
        assert by_name(name + ending)[0] is kind
    path = write_file(tmp_path / name, data)
    lost = write_file(tmp_path / "lost+found-4711", data)
    packed = write_file(tmp_path / (name + ".gz"), gzip.compress(data))
    known = said(path)
    assert known
    assert said(packed) == known
    if not name.endswith("0100.index") and not name.endswith("0100.timeindex"):
        assert said(lost) == known
    assert said(lost, "--as", kind.name)


def test_a_lone_entry_is_known_by_its_content() -> None:
    # as a clean shutdown leaves most indexes, truncated to one entry; or preallocated, followed by zeros
    for kind, data in ((KINDS["index"], INDEX[:8]), (KINDS["index"], INDEX), (KINDS["timeindex"], TIME_INDEX[:12])):
        for padding in (0, 1000):
            assert by_content(window_of(data + bytes(padding * len(data)))) is kind
    # two entries of an index are as long as three of a time index, and would be in ascending order as such
    assert by_content(window_of(struct.pack(">iiiiii", 1, 2100, 2, 4200, 3, 6300))) is KINDS["index"]
    # the beginnings of segments: base offset, length, epoch
    for begun in (struct.pack(">qi", 300, 70), struct.pack(">qii", 0, 70, 5), struct.pack(">q", 300)):
        assert by_content(window_of(begun)) is KINDS["segment"]


def test_a_damaged_snapshot_is_known_by_its_length() -> None:
    flipped = bytearray(SNAPSHOT)
    flipped[20] ^= 4
    assert by_content(window_of(bytes(flipped))) is KINDS["snapshot"]
    assert by_content(window_of(bytes(flipped) + b"x")) is KINDS["segment"]
    assert by_content(window_of(bytes(10))) is KINDS["segment"]  # the first bytes of one, at offset 0


@each_case("name", ["clean-1/bootstrap.checkpoint", "state-1/__cluster_metadata-0"])
def test_a_metadata_snapshot_without_its_name_is_decoded(name: str, tmp_path: Path) -> None:
    found = FIXTURES / name
    found = next(found.glob("*.checkpoint")) if found.is_dir() else found
    lost = write_file(tmp_path / "lost", found.read_bytes())
    for options in (("--records",), ("--records", "--last", "3")):
        known = [entry | {"file": "", "topic": "", "partition": 0} for entry in inspect(found, *options)[0]]
        assert any(entry.get("valueDecoded") for entry in known)
        assert [entry | {"file": "", "topic": "", "partition": 0} for entry in inspect(lost, *options)[0]] == known


def test_a_file_without_entries_says_so(tmp_path: Path) -> None:
    empty = struct.pack(">hIi", 1, 0x48674BC7, 0)  # clean-1/acks0-0/00000000000000000020.snapshot
    for name, data in (("00000000000000000020.snapshot", empty), ("leader-epoch-checkpoint", b"0\n0\n")):
        (tmp_path / name).write_bytes(data)
        for options in ((), ("--last", "3")):
            found, err = inspect(tmp_path / name, *options)
            assert not found
            assert f"{name}: no entries" in err
    assert "no entries" not in inspect(tmp_path / name, "--offset", "5", status=1)[1]


def test_offsets_are_relative_to_the_name(tmp_path: Path) -> None:
    path = write_file(tmp_path / "00000000000000000100.index", INDEX)
    assert said(path) == [[139, 4224], [178, 8437]]
    lost = write_file(tmp_path / "lost", INDEX)
    found, err = inspect(lost)
    assert [entry["offset"] for entry in found] == [39, 78]
    assert "offsets are relative" in err


def test_values(tmp_path: Path) -> None:
    for name, data in NAMES.items():
        (tmp_path / name).write_bytes(data)
    assert said(tmp_path / "00000000000000000100.timeindex") == [[1795247902867, 137], [1795247903012, 178]]
    assert said(tmp_path / "00000000000000000000.txnindex") == [[0, 9, 14, 26, 15]]
    assert said(tmp_path / "00000000000000000120.snapshot")[2] == [11, 0, 0, 114, 0, 1795247903336, -1, 114]
    assert said(tmp_path / "leader-epoch-checkpoint") == [[0, 0], [3, 120]]
    assert said(tmp_path / "replication-offset-checkpoint")[1] == ["pay.ments-x", 12, (1 << 63) - 1]
    assert said(tmp_path / "meta.properties") == [["node.id", "1"], ["cluster.id", "FN96DRb6S3GeSIQS03itlw"]]
    assert ["currentVoters", '[{"voterId": 0}]'] in said(tmp_path / "quorum-state")
    assert said(tmp_path / "partition.metadata")[1] == ["topic_id", "4K0vBYjuR4-ZwaLaSQbaJg"]


def test_choosing(tmp_path: Path) -> None:
    for name, data in NAMES.items():
        (tmp_path / name).write_bytes(data)
    snapshot = tmp_path / "00000000000000000120.snapshot"
    assert [entry[0] for entry in said(snapshot, "--producer-id", "11")] == [11]
    assert [entry[0] for entry in said(snapshot, "--offset", "115..")] == [12]
    assert [entry[0] for entry in said(snapshot, "--last", "2")] == [11, 12]
    assert [entry[0] for entry in said(snapshot, "-n", "1")] == [9]
    times = tmp_path / "00000000000000000100.timeindex"
    assert said(times, "--time", "1795247903000..") == [[1795247903012, 178]]
    assert inspect(times, "--key", "x", status=2)[0] == []
    assert said(times, "--position", "12..") == [[1795247903012, 178]]


@each_case("window", [4096, 61])
def test_zeros_at_the_end_are_padding(window: int) -> None:
    found = items("00000000000000000000.index", INDEX + bytes(8 * 5000), window)
    assert [type(item) for item in found] == [Entry, Entry, Region]
    assert (found[2].kind, found[2].position, found[2].size) == ("padding", 16, 40000)
    # Zeros before another entry are reported: Kafka parses them as entries.
    found = items("00000000000000000000.index", INDEX + bytes(8 * 1000) + INDEX, window)
    assert [getattr(item, "kind", "entry") for item in found] == ["entry", "entry", "padding", "entry", "entry"]
    assert (found[2].position, found[2].size) == (16, 8000)
    assert numbers_in(found[2].reason)[0] == 1000
    found = items("00000000000000000000.timeindex", TIME_INDEX + bytes(5), window)
    assert [getattr(item, "kind", "") for item in found] == ["", "", "torn"]


@each_case("name", NAMES)
@each_case("window", [4096, 61])
def test_every_cut_and_flip_is_read(name: str, window: int) -> None:
    """Damage never raises an exception; every byte of binary files is accounted for; damage to a snapshot is
    detected."""
    data = NAMES[name]
    damaged = [data[:size] for size in range(len(data))]
    for bit in seeded(name).sample(range(8 * len(data)), min(300, 8 * len(data))):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(changed))
    for bad in damaged:
        found = items(name, bad, window)
        if "." in name and name.rsplit(".", 1)[1] in ("index", "timeindex", "txnindex", "snapshot"):
            spans = [(item.position, item.size) for item in found if not isinstance(item, Defect)]
            assert sum(size for _, size in spans) == len(bad)
        if name.endswith(".snapshot"):
            codes = {item.code for item in found if isinstance(item, Defect)}
            # No checksum covers the version, and a newer release may write another one.
            assert not bad or "snapshot-invalid" in codes or (bad[:2] != data[:2] and "newer-release" in codes)


def test_hostile_numbers() -> None:
    huge = struct.pack(">hIi", 1, 0, 0x7FFFFFFF)
    problems = [item for item in items("00000000000000000000.snapshot", huge) if isinstance(item, Defect)]
    assert (problems[0].code, numbers_in(problems[0].reason)) == ("snapshot-invalid", [0x7FFFFFFF, 0])
    bad = b"0\n99999999999999999999\na b c\n\nx 0 99999999999999999999\norders 0 7\n"
    found = items("cleaner-offset-checkpoint", bad)
    assert [item.values for item in found if isinstance(item, Entry) and item.type] == [
        {"topic": "orders", "partition": 0, "offset": 7}
    ]
    assert len([item for item in found if isinstance(item, Defect)]) == 4
    assert items("quorum-state", b"[" * 100_000)


def test_declared_like_the_schema() -> None:
    """The layout of a snapshot's entries equals Kafka's schema ProducerSnapshot."""
    from kdump.format.schema import load

    (entries_node,) = [node for node in load("ProducerSnapshot").struct(1).fields if node.name == "producerEntries"]
    element = entries_node.element
    assert element is not None
    assert element.inner is not None
    fields = [(field.name, field.wire.name) for field in PRODUCER_ENTRY.fields]
    assert [(node.name, node.kind.upper()) for node in element.inner.fields] == fields


FIELD = re.compile(r"(\w+): (?:OptionalLong\[)?(-?\d+|OptionalLong.empty)\]?")


def with_entries() -> Iterator[tuple[str, Path, Path]]:
    for each in oracle_files():
        kind, _ = by_name(str(each[2]))
        if kind is not None and kind.name in ("index", "timeindex", "txnindex", "snapshot"):
            yield each


@pytest.mark.sampled
def test_oracle() -> None:
    """Compare every index and snapshot with kafka-dump-log's output, entry by entry.

    For an empty index of an empty log it prints an entry that does not exist, (offset: N position: 0); in the line of a
    snapshot it leaves out values of -1."""
    compared = 0
    for _, printed, path in covering(with_entries(), 4, lambda each: [(each[0].partition("/")[0], each[2].suffix)]):
        lines = [line for line in printed.read_text(errors="replace").splitlines() if FIELD.match(line)]
        ours = [entry for entry in inspect(path)[0] if entry["type"] != "region"]
        theirs = [dict(FIELD.findall(line)) for line in lines]
        if not ours:
            assert all(set(entry.values()) & {"0"} for entry in theirs), path
            continue
        assert len(ours) == len(theirs), path
        for mine, other in zip(ours, theirs):
            compared += 1
            check(mine, other, path)
    assert compared > 100


def check(mine: dict[str, Any], other: dict[str, str], path: Path) -> None:
    renamed = {"producerEpoch": "epoch", "lastTimestamp": "timestamp"}
    for key, value in other.items():
        if key == "firstSequence":
            assert int(value) == mine["lastSequence"] - mine["offsetDelta"]
        elif value == "OptionalLong.empty":
            assert mine[renamed.get(key, key)] == -1, path
        else:
            assert mine[renamed.get(key, key)] == int(value), (path, key)


def test_kinds_are_what_as_takes() -> None:
    result = CliRunner().invoke(cli, ["inspect", "--help"])
    said = "".join(result.stdout.split())
    assert all(name in said for name in KINDS)
