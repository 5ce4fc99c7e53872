"""What commands say of a log whose compaction was interrupted: the same as after the startup that completes it."""

from __future__ import annotations

import os
import re
import shutil
from itertools import product
from pathlib import Path

import pytest

from tests import craft
from tests.command import objects, run
from tests.conftest import FIXTURES, sample
from tests.each_case import each_case

COMMANDS = (
    *("ls --by segment --json", "ls --json", "inspect --json --records", "inspect --json --key x"),
    *("stats --json", "transactions --json", "producers --json", "retention --json", "groups --json"),
    *("transactions --coordinator --json", "connect --json", "registry --json"),
    "verify --json --ignore compaction-interrupted,file-unknown",
)
LOGS = (
    *("clean-1/users-0", "clean-1/payments-0", "connect-1/__consumer_offsets-0", "connect-1/connect-configs-0"),
    *("connect-1/connect-offsets-0", "connect-1/connect-status-0", "registry-1/_schemas-0"),
    "disk-1/__transaction_state-0",
)
OTHERS = re.compile(
    r'"(?:deletedSize|unfinishedSize|swapSegments|onDisk|age|idle|stateLostAt|info)":-?\d+|"seconds":[\d.]+|'
    r"kdump: \d+ .deleted.* not searched.*\n"
    r'|"committedRecords":\d+'
)
"""What differs: left-overs are counted, and time passes. What read_committed consumers receive depends on the
.txnindex, which these disks lack, and which the startup that installs a segment writes."""


def disk(root: Path, name: str) -> Path:
    """Copy the disk of a log, which gets two segments with indexes."""
    shutil.copytree(FIXTURES / name.partition("/")[0], root)
    home = root / name.partition("/")[2]
    for path in home.glob("*.*index"):
        path.unlink()
    if len(logs := sorted(home.glob("*.log"))) == 1:
        batches = craft.split(logs[0].read_bytes())
        half = len(batches) // 2
        first = int.from_bytes(batches[half][:8], "big")
        logs[0].write_bytes(b"".join(batches[:half]))
        (home / f"{first:020}.log").write_bytes(b"".join(batches[half:]))
    made = root.parent / f"{root.name}-indexes"
    assert run("reindex", home, "--out", made).exit_code in (0, 1)
    for path in made.rglob("*.*index"):
        shutil.copy(path, home)
    return home


def interrupt(home: Path, is_live: bool) -> None:
    """Undo the last renames of a compaction that wrote the first segment; what it replaced is live, or marked as
    deleted."""
    for path in sorted(home.glob(f"{0:020}.*")):
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            path.rename(f"{path}.swap")
            if path.suffix != ".txnindex":
                path.with_name(path.name + ("" if is_live else ".deleted")).write_bytes(b"")


@pytest.mark.sampled
@each_case("name, is_live", sample(product(LOGS, (False, True)), 7, "compaction"))
def test_commands_say_what_they_say_after_the_startup(name: str, is_live: bool, tmp_path: Path) -> None:
    home = disk(tmp_path / "disk", name)
    before = [said(command, home) for command in COMMANDS]
    interrupt(home, is_live)
    for command, expected in zip(COMMANDS, before):
        assert said(command, home) == expected, command


@pytest.mark.every_disk
@each_case("name, is_live", list(product(("clean-1/payments-0", "connect-1/__consumer_offsets-0"), (False, True))))
def test_so_do_they_of_a_bundle(name: str, is_live: bool, tmp_path: Path) -> None:
    home = disk(tmp_path / "disk", name)
    texts = []
    for number in range(2):
        for path in home.iterdir():
            os.utime(path, (1_700_000_000, 1_700_000_000))
        bundle = tmp_path / f"bundle-{number}"
        made = run("bundle", home.parent, "--out", bundle)
        texts.append([made.stdout.partition(" in ")[0]])
        texts[-1] += [run(*command.split(" "), bundle / home.name).stdout for command in COMMANDS[:1] + COMMANDS[5:9]]
        texts[-1] = [OTHERS.sub("", text).replace(".swap", "").replace(str(bundle), "") for text in texts[-1]]
        if not number:
            interrupt(home, is_live)
    assert texts[0] == texts[1]


def test_what_is_replaced_is_not_searched(tmp_path: Path) -> None:
    home = disk(tmp_path / "disk", "clean-1/users-0")
    interrupt(home, is_live=True)
    assert "1 .deleted, .swap or .cleaned segment not searched" in run("inspect", "--key", "x", home).stderr


@each_case("is_live", [False, True])
def test_the_estimate_of_a_startup_counts_it(is_live: bool, tmp_path: Path) -> None:
    home = disk(tmp_path / "disk", "connect-1/__consumer_offsets-0")
    interrupt(home, is_live)
    rows = objects("restart-plan", "--estimate", home.parent)
    assert [each["segments"] for each in rows if each.get("topic") == "__consumer_offsets"] == [2]


@each_case("is_live", [False, True])
def test_a_damaged_swap_file_is_damage(is_live: bool, tmp_path: Path) -> None:
    """The startup installs it without checking it."""
    home = disk(tmp_path / "disk", "clean-1/payments-0")
    interrupt(home, is_live)
    path = home / f"{0:020}.log.swap"
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    found = run("verify", home)
    assert found.exit_code == 1
    assert "crc-mismatch" in found.stdout
    assert path.name in found.stdout


def said(command: str, home: Path) -> tuple[int, str, str]:
    """Return the exit status and the output."""
    now = 1_700_000_000
    for path in home.iterdir():
        os.utime(path, (now, now))
    os.utime(home, (now, now))
    path = home.parent if command.startswith(("groups", "connect", "registry", "transactions --c")) else home
    result = run(*command.split(" "), path)
    return result.exit_code, *(OTHERS.sub("", text).replace(".swap", "") for text in (result.stdout, result.stderr))
