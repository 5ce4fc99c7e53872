"""Checks that messages, alone or in a wrapper, read as columns, equal those read one by one, and that anything unusual
is read one by one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from kdump.log import legacy_records
from kdump.log.region import LegacyRecordBatch
from kdump.questions.inspect import show as inspect_run
from tests import craft
from tests.conftest import SEED, each_segment, facts, iter_regions, sample, some_segments
from tests.each_case import each_case


def both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[dict[str, Any]], int]:
    """Return the facts of every region, after checking that both ways give the same, and the number of wrappers read as
    columns."""
    quick, ordinary = [], 0
    for region in iter_regions(data):
        quick.append(facts(region))
        ordinary += isinstance(region, LegacyRecordBatch) and region.inner is not None
    with monkeypatch.context() as patch:
        patch.setattr(legacy_records, "_columns", lambda batch: None)
        slow = [facts(region) for region in iter_regions(data)]
    assert quick == slow
    return quick, ordinary


@each_case("path", each_segment("legacy/"))
def test_real_segments(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    found, ordinary = both(data, monkeypatch)
    wrappers = sum("inside" in said and len(said["records"]) > 1 for said in found)
    assert ordinary >= wrappers * 0.9 or "snappy" in path.parent.name or "lz4" in path.parent.name


@pytest.mark.sampled
@each_case("magic", [0, 1])
@each_case("codec", ["gzip", "snappy", "lz4"])
def test_damaged_insides(magic: int, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flip each bit of the messages inside, in a wrapper whose own checksum matches."""
    inner = [craft.message(magic, b"value", offset=i, key=None if i else b"k") for i in range(3)]
    payload = b"".join(inner)
    for bit in sample(range(8 * len(payload)), 19, codec):  # the odd step reaches every bit of a byte
        both(craft.wrapper(magic, craft.flip(payload, bit), codec, offset=2), monkeypatch)
    for cut in sample(range(len(payload)), 11, codec):
        both(craft.wrapper(magic, payload[:cut], codec, offset=2), monkeypatch)
    _, ordinary = both(craft.wrapper(magic, payload, codec, offset=2), monkeypatch)
    assert ordinary == 1


@pytest.mark.sampled
@each_case("magic", [0, 1])
def test_odd_insides(magic: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fields have other values, and the checksums match."""
    dice = random.Random(magic)
    for _ in range(300 if SEED else 33):
        inner = []
        for offset in range(3):
            attributes = dice.choice([0, 0, 0, 1, 8, -128])
            timestamp = dice.choice([0, -1, (1 << 63) - 1, -(1 << 63), 1_500_000_000_000])
            value = dice.choice([None, b"", b"value"])
            of = dice.choice([magic, magic, magic, 1 - magic])
            place = dice.choice([offset, 0, -1, 1 << 62])
            inner.append(craft.message(of, value, offset=place, attributes=attributes, timestamp=timestamp))
        fields = {"offset": dice.choice([0, 2, 1, 100]), "attributes": dice.choice([0, 8])}
        both(craft.wrapper(magic, inner, dice.choice(["gzip", "lz4"]), **fields), monkeypatch)


@pytest.mark.sampled
@each_case("path", some_segments(each_segment("legacy/"), 12))
def test_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and JSON written from the columns, verify and stats give the same as code that reads the messages one by
    one."""
    inspect = ["inspect", "--records"]
    for arguments in (
        inspect,
        [*inspect, "--offset", "1.."],
        [*inspect, "--json"],
        [*inspect, "--json", "--key", "k3"],
    ):
        found = []
        for quick in (True, False):
            monkeypatch.setattr(inspect_run, "COMPILED", quick)
            found.append(CliRunner().invoke(cli, [*arguments, str(path)]).stdout)
        assert found[0] == found[1]
    for answer in ("verify", "stats"):
        one_by_one(path, answer, monkeypatch)


def one_by_one(path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare a command's answer with the one that it gives without columns."""
    found = []
    for quick in (True, False):
        with monkeypatch.context() as patch:
            if not quick:
                patch.setattr(legacy_records, "read_message_set", lambda payload, magic: None)
            lines = CliRunner().invoke(cli, [command, "--json", str(path)]).stdout.splitlines()
            found.append([json.loads(line) | {"seconds": 0} for line in lines])
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.sampled
@each_case("magic", [0, 1])
def test_odd_messages_in_stats_and_tables(magic: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timestamps, keys and values that no producer sends, and append time; in wrappers, and each alone."""
    dice = random.Random(magic)
    path = tmp_path / f"{0:020}.log"
    for _ in range(20 if SEED else 3):
        data = b""
        for number in range(40):
            stamps = [0, -1, (1 << 63) - 1, -(1 << 63), 1 << 55, 1_500_000_000_000 + number]
            inner = [
                craft.message(
                    magic,
                    dice.choice([None, b"", b"value", b"\xff\x00"]),
                    key=dice.choice([None, b"", b"k%d" % i, "ü".encode()]),
                    offset=3 * number + i if magic == 0 or number % 2 else i,
                    attributes=dice.choice([0, 8 * magic, 0x40]) if number % 2 else 0,
                    timestamp=dice.choice(stamps),
                )
                for i in range(3)
            ]
            if number % 2:
                data += b"".join(inner)
                continue
            attributes = dice.choice([0, 8]) if magic else 0
            stamp = dice.choice(stamps)
            data += craft.wrapper(magic, inner, "gzip", offset=3 * number + 2, attributes=attributes, timestamp=stamp)
        path.write_bytes(data)
        for command in ("stats", "verify"):
            one_by_one(path, command, monkeypatch)
        for form, lines in (("table", 121), ("json", 120)):
            rows = []
            for quick in (True, False):
                monkeypatch.setattr(inspect_run, "COMPILED", quick)
                rows.append(CliRunner().invoke(cli, ["inspect", "--records", "--format", form, str(path)]).stdout)
            assert rows[0] == rows[1]
            assert rows[0].count("\n") == lines


@each_case("base, offset", [((1 << 63) - 2, -5), (-(1 << 63), 1)])
def test_offsets_beyond_64_bits_in_stats(
    base: int, offset: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They overflow, as in Java."""
    path = tmp_path / f"{0:020}.log"
    inner = [craft.message(1, b"v" * i, offset=base + i, timestamp=i) for i in range(2)]
    path.write_bytes(craft.message(1, b"v", offset=3) + craft.wrapper(1, inner, offset=offset))
    one_by_one(path, "stats", monkeypatch)
