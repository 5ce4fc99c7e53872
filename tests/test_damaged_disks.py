"""`kdump inspect` of every file of every disk, healthy and damaged: exit status 0 or 2, and never a traceback."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdump.cli import cli
from tests.conftest import DISKS, FIXTURES, SEED, few, sample, seeded

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
    for path in sample(files(), 4, "sound"):
        code, out, err = inspect(path, "--json")
        assert code == 0, (path, err)
        assert '"type":"finding"' not in out, path
        assert '"crcValid":false' not in out, path


@pytest.mark.sampled
@pytest.mark.parametrize("damage", few(DAMAGES, 3), ids=lambda damage: damage.__name__)
def test_every_damaged_file(damage: Callable[[bytearray, random.Random], None], tmp_path: Path) -> None:
    dice = seeded(damage.__name__)
    for number, path in enumerate(sample(files(), 24, damage.__name__)):
        if not 0 < path.stat().st_size < LARGE:
            continue
        data = bytearray(path.read_bytes())
        damage(data, dice)
        directory = tmp_path / path.parent.name
        directory.mkdir(exist_ok=True)
        copy = directory / path.name
        copy.write_bytes(data)
        code, _, err = inspect(copy, *FORMS[number % len(FORMS)])
        assert code == 0 or "has no records, to which --read-committed applies" in err, (path, err)
        copy.unlink()


def test_read_only_and_unchanged(tmp_path: Path) -> None:
    """A copy without write permission gives the same output, and no file appears in its directory."""
    source = FIXTURES / "clean-1" / "payments-0"
    copy = tmp_path / "payments-0"
    shutil.copytree(source, copy)
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


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(DAMAGES, 4, "disks"), ids=lambda damage: damage.__name__)
def test_verify_of_a_disk_with_every_file_damaged(
    damage: Callable[[bytearray, random.Random], None], tmp_path: Path
) -> None:
    dice = seeded(damage.__name__)
    for disk in sample((DISKS / "kafka-4.3" / "crash-1", DISKS / "kafka-2.8-legacy"), 2, damage.__name__):
        copy = tmp_path / disk.name
        left_out = () if SEED else sample(sorted(path.name for path in disk.glob("[a-z]*-0")), 2, damage.__name__)
        for path in sorted(disk.rglob("*")):
            if not path.is_file() or not 0 < path.stat().st_size < LARGE or path.parent.name in left_out:
                continue
            data = bytearray(path.read_bytes())
            damage(data, dice)
            target = copy / path.relative_to(disk)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for options in ([], ["--json", "--info"], ["--crc"]):
            result = CliRunner().invoke(cli, ["verify", str(copy), *options])
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
            assert result.exit_code == 1
        for command in ("groups", "cluster"):
            for options in ([], ["--json"], ["--history"], ["--as-of", "50", "--json"]):
                result = CliRunner().invoke(cli, [command, str(copy), *options])
                assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
                assert result.exit_code in (0, 2)
        for options in ([], ["--json", "--config", "cleanup.policy=compact"], ["--list"]):
            result = CliRunner().invoke(cli, ["retention", str(copy), *options])
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
            assert result.exit_code in (0, 1, 2)
        for command in ("transactions", "producers"):
            for options in (
                [],
                ["--json"],
                ["--list"],
                ["--coordinator" if command == "transactions" else "--history"],
            ):
                result = CliRunner().invoke(cli, [command, str(copy), *options])
                assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
                assert result.exit_code == 0
