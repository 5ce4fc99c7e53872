"""`kdump inspect` of every file of every disk, healthy and damaged, and every command over damaged disks: there is an
answer, and never a traceback."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from tests.command import run
from tests.conftest import DISKS, FIXTURES, few, sample, seeded
from tests.craft import write_file

LARGE = 300_000
"""Larger files are left out of the damaged runs, where smaller ones of the same kinds stand for them."""


def flip_bits(data: bytearray, dice: random.Random) -> None:
    for _ in range(3):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def truncate(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


def zero_a_block(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data))
    size = min(512, len(data) - start)
    data[start : start + size] = bytes(size)


def overwrite(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data))
    size = min(200, len(data) - start)
    data[start : start + size] = dice.randbytes(size)


def insert(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data))
    data[start:start] = dice.randbytes(dice.randrange(1, 100))


def cut_out(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data))
    del data[start : start + dice.randrange(1, 100)]


DAMAGES = [flip_bits, truncate, zero_a_block, overwrite, insert, cut_out]
FORMS = [["--json", "--records"], ["--hex"], [], ["--records"], ["--json"], ["-f", "%o %k %s %h\\n"], ["--last", "3"]]
FORMS += [["--read-committed"], ["--read-committed", "--records", "--json"]]
FORMS += [["--hex", "--decoder", "cluster-metadata"], ["--records", "--value-format", "json", "--key-format", "int64"]]


def files() -> list[Path]:
    """Return the files of brokers, without README.md and the schemas of a client."""
    found = sorted(path for root in (FIXTURES, DISKS) for path in root.rglob("*") if path.is_file())
    return [path for path in found if path.suffix not in (".md", ".avsc", ".desc")]


def inspect(path: Path, *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["inspect", str(path), *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), (path, options, result.exc_info)
    assert result.exit_code in (0, 2), (path, options)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.sampled
def test_every_sound_file() -> None:
    for path in sample(files(), 8, "sound"):
        code, out, err = inspect(path, "--json")
        assert code == 0, (path, err)
        assert '"type":"finding"' not in out, path
        assert '"crcValid":false' not in out, path


@pytest.mark.sampled
@pytest.mark.parametrize("damage", few(DAMAGES, 3), ids=lambda damage: damage.__name__)
def test_every_damaged_file(damage: Callable[[bytearray, random.Random], None], tmp_path: Path) -> None:
    dice = seeded(damage.__name__)
    for number, path in enumerate(sample(files(), 48, damage.__name__)):
        if not 0 < path.stat().st_size < LARGE:
            continue
        data = bytearray(path.read_bytes())
        damage(data, dice)
        directory = tmp_path / path.parent.name
        directory.mkdir(exist_ok=True)
        copy = write_file(directory / path.name, data)
        code, _, err = inspect(copy, *FORMS[number % len(FORMS)])
        assert code == 0 or "has no records, to which --read-committed applies" in err, (path, err)
        copy.unlink()


def test_read_only_and_unchanged(tmp_path: Path) -> None:
    """A copy without write permission gives the same output, and no file appears in its directory."""
    source = FIXTURES / "clean-1" / "payments-0"
    copy = shutil.copytree(source, tmp_path / "payments-0")
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    for path in copy.iterdir():
        path.chmod(0o444)
    copy.chmod(0o555)
    try:
        for form in FORMS:
            assert inspect(copy, *form)[0] == 0
        assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    finally:
        copy.chmod(0o755)


def damaged_copy(
    disk: Path, target: Path, damage: Callable[[bytearray, random.Random], None], dice: random.Random, share: float = 1
) -> Path:
    """Return a copy of a disk without its larger files, with this share of the others damaged."""
    for path in sorted(disk.rglob("*")):
        if path.is_file() and 0 < path.stat().st_size < LARGE:
            data = bytearray(path.read_bytes())
            if dice.random() < share:
                damage(data, dice)
            write_file(target / path.relative_to(disk), data)
    return target


DETAIL = ("", "--full", "--json")
COMMANDS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "carve": ((0, 1), ("", "--runs --json")),
    "cluster": ((0, 2), ("", "--json", "--history", "--as-of 50 --json", "--show all")),
    "connect": ((0, 2), ("", "--history --json", "--deleted")),
    "diff": ((0, 1, 2), DETAIL),
    "find": ((0, 1, 2), ("'k1' in any", "offset == 3 --json", "value.order == 3 --when")),
    "groups": ((0, 2), ("", "--json", "--history", "--as-of 50 --json", "--offsets")),
    "ls": ((0,), ("--json", "", "--quick", "--segments --json", "--by topic", "--sort oldest")),
    "producers": ((0,), ("", "--json", "--list", "--history")),
    "registry": ((0, 2), ("--history", "--usage", "--deleted --json")),
    "reindex": ((0, 1, 2), ("--full", "--json --past-damage")),
    "restart-plan": ((0, 1, 2, 3), ("", "--full --all", "--json")),
    "retention": ((0, 1, 2), ("", "--json --config cleanup.policy=compact", "--list")),
    "stats": ((0,), ("", "--detail", "--json")),
    "transactions": ((0,), ("", "--json", "--list", "--coordinator")),
    "verify": ((0, 1), ("", "--json --info", "--crc")),
}
"""The exit statuses of commands over damaged disks, and their options."""
OVER = (
    DISKS / "kafka-4.3" / "crash-1",
    DISKS / "kafka-2.8-legacy",
    FIXTURES / "registry-1",
    FIXTURES / "connect-2",
    FIXTURES / "state-1",
)


@pytest.mark.sampled
@pytest.mark.parametrize("share", [1, 0.3], ids=["every", "some"])
@pytest.mark.parametrize("damage", sample(DAMAGES, 8, "disks"), ids=lambda damage: damage.__name__)
def test_commands_over_a_disk_with_damaged_files(
    damage: Callable[[bytearray, random.Random], None], share: float, tmp_path: Path
) -> None:
    """There is an answer, without a control character, and never a traceback. A disk whose every file is damaged is not
    taken for a healthy one, nor for its own copy. (To --crc, log ends that recovery truncates are warnings.) If its
    meta.properties is intact, more of it is read."""
    name = f"{damage.__name__} {share}"
    dice = seeded(name)
    for disk in sample(OVER, 8, name):
        copy = damaged_copy(disk, tmp_path / disk.name, damage, dice, share)
        if share < 1 and (disk / "meta.properties").exists():
            shutil.copy(disk / "meta.properties", copy)
        for command, (statuses, forms) in COMMANDS.items():
            for form in sample(forms, 4, name + command):
                result = run(command, *([copy] * (1 + (command == "diff"))), *form.split())
                assert result.exit_code in statuses, (command, form, result.stderr)
                assert not any(0 < ord(c) < 32 and c != "\n" for c in result.stdout), (command, form)
        if share == 1:
            assert run("verify", copy).exit_code == 1
            assert not run("verify", copy, "--crc").stdout.startswith("OK")
            assert run("diff", disk, copy).exit_code in (1, 2)
            assert disk not in OVER[:2] or run("restart-plan", copy).exit_code != 0
