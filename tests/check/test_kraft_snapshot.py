"""Checks that a damaged metadata snapshot is not reported like a damaged log: no broker recovers it, and its findings
have their own consequences."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from tests import craft
from tests.conftest import FIXTURES

SNAPSHOT = FIXTURES / "clean-1/__cluster_metadata-0/00000000000000000327-0000000001.checkpoint"


@pytest.mark.parametrize(
    ("damage", "code", "consequence"),
    [
        (lambda data: craft.flip(data, 8 * 300), "crc-mismatch", "exits (CorruptRecordException)"),
        (lambda data: data[:-5], "batch-truncated", "a state that the cluster never had"),
        (lambda data: data[:-40], "trailing-bytes", "a state that the cluster never had"),
        (lambda data: data + bytes(512), "zero-padding", "exits (CorruptRecordException)"),
        (lambda data: data + b"junk" * 99, "junk-bytes", "exits (CorruptRecordException)"),
    ],
)
def test_what_a_node_does_about_it(tmp_path: Path, damage, code, consequence):
    (tmp_path / SNAPSHOT.name).write_bytes(damage(SNAPSHOT.read_bytes()))
    result = CliRunner().invoke(cli, ["verify", "--json", str(tmp_path / SNAPSHOT.name)])
    (found,) = [row for row in map(json.loads, result.stdout.splitlines()) if row["type"] == "finding"]
    assert (found["code"], found["severity"]) == (code, "error")
    assert consequence in found["consequence"]
