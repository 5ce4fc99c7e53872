"""The disks of bench/broker.py: kdump finds on them what they were made for, and nothing wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.broker import COMMANDS
from bench.broker_disks import DISKS, make
from kdump.cli import cli

SMALL = {"partitions": 4, "keys": 4000, "group offsets": 200, "overlapping transactions": 1200}


@pytest.mark.every_disk
@pytest.mark.parametrize("name", DISKS)
def test_a_disk_is_sound_and_its_commands_succeed(name: str, tmp_path: Path) -> None:
    disk = make(tmp_path, name, SMALL.get(name, 100))
    result = CliRunner().invoke(cli, ["verify", "--json", str(disk)])
    found = [json.loads(line) for line in result.stdout.splitlines()]
    wrong = [each["code"] for each in found if each["type"] == "finding" and each["severity"] != "info"]
    assert not wrong, result.stdout[:2000]
    for command in COMMANDS[name]:
        result = CliRunner().invoke(cli, [*command.format(out=tmp_path / "out").split(), str(disk)])
        assert result.exit_code in (0, 1), (command, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit)
