"""`kdump reindex` on the command line."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from kdump.all_answers import TYPES
from kdump.cli import cli
from kdump.questions.reindex.command import EXAMPLES
from tests import command, craft
from tests.conftest import DISKS, FIXTURES, sample, seeded
from tests.damages import DAMAGES as RECIPES
from tests.damages import DISK_PATHS, DOUBTS, Damage, copy_disk
from tests.test_damaged_disks import DAMAGES

FIRST = f"{0:020}"
PAYMENTS = FIXTURES / "indexed-1" / "payments-0"


run = partial(command.run, "reindex")


objects = partial(command.objects, "reindex", types=TYPES)


def test_json(tmp_path: Path) -> None:
    made, summary = objects(PAYMENTS / f"{FIRST}.log", "--out", tmp_path / "out")
    assert (made["topic"], made["partition"], made["batches"], made["validSize"]) == ("payments", 0, 76, 12674)
    assert [each["status"] for each in made["indexes"]] == ["identical"] * 3
    assert made["indexes"][0]["written"] == str(tmp_path / "out" / "payments-0" / f"{FIRST}.index")
    assert (summary["segments"], summary["identical"], summary["written"]) == (1, 3, 3)


def test_directories_whose_names_are_no_partitions(tmp_path: Path) -> None:
    """Only files to be written need names that differ."""
    for name in ("one", "two"):
        shutil.copytree(PAYMENTS, tmp_path / name)
    assert sum(each["type"] == "reindex" for each in objects(tmp_path / "one", tmp_path / "two")) == 2
    result = run(tmp_path / "one", tmp_path / "two", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "would be written to the same path" in result.stderr


def test_exit_statuses(tmp_path: Path) -> None:
    disk = Path(shutil.copytree(PAYMENTS, tmp_path / "payments-0"))
    log, index = disk / f"{FIRST}.log", disk / f"{FIRST}.index"
    assert run(disk).exit_code == 0
    assert run(disk, "-q").stdout == ""
    index.write_bytes(craft.flip(index.read_bytes(), 60))
    assert run(disk).exit_code == 1
    index.unlink()
    assert run(disk).exit_code == 1
    assert run(tmp_path / "none").exit_code == 2
    assert run(disk / f"{FIRST}.timeindex").exit_code == 2
    assert run("-").exit_code == 2
    assert run(disk, "--json", "-q").exit_code == 2
    assert run(disk, "--out", disk / "new").exit_code == 2
    assert run(disk, "--topic", "other").exit_code == 2
    shutil.copy(log, tmp_path / "renamed")
    assert "base offset" in run(tmp_path / "renamed").stderr
    shutil.copytree(PAYMENTS, tmp_path / "b" / "payments-0")
    log.write_bytes(craft.flip(log.read_bytes(), 8 * 9000))
    result = run(disk)
    assert result.exit_code == 1
    assert "do not delete the .index of a damaged segment" in result.stdout


def test_only_what_there_is_to_say_is_shown_of_a_directory() -> None:
    assert "payments" not in run(FIXTURES / "indexed-1").stdout
    assert "identical 5" in run(FIXTURES / "indexed-1", "--all").stdout
    assert "identical 5" in run(PAYMENTS / f"{FIRST}.log").stdout


def test_the_examples_of_the_help(tmp_path: Path) -> None:
    """They run in a temporary directory, because one of them writes."""
    for name in ("clean-1", "clean-2", "indexed-1"):
        (tmp_path / name).symlink_to(FIXTURES / name)
    for example, said in command.examples(EXAMPLES, tmp_path):
        assert "identical" in said, example
    assert (tmp_path / "rebuilt" / "payments-0" / f"{FIRST}.txnindex").is_file()


@pytest.mark.sampled
@pytest.mark.parametrize(
    "damage", sample(DAMAGES, 3, "test_damaged_files_give_no_traceback"), ids=lambda damage: damage.__name__
)
def test_damaged_files_give_no_traceback(damage: Callable[[bytearray, random.Random], None], tmp_path: Path) -> None:
    """Every file of a normal, of a compacted and of a legacy partition is damaged in turn."""
    dice = seeded(damage.__name__)
    sources = [PAYMENTS, FIXTURES / "clean-1" / "users-0", FIXTURES / "clean-2" / "__cluster_metadata-0"]
    sources += sorted(path for path in (FIXTURES / "legacy").iterdir() if path.is_dir())[:6]
    for number, source in enumerate(sample(sources, 3, damage.__name__)):
        disk = Path(shutil.copytree(source, tmp_path / str(number) / source.name))
        for path in sorted(disk.iterdir()):
            data = bytearray(path.read_bytes())
            if not data:
                continue
            before = bytes(data)
            damage(data, dice)
            path.write_bytes(data)
            for form in (["--full"], ["--json", "--past-damage"]):
                result = run(disk, *form)
                assert result.exit_code in (0, 1, 2), (path, form)
                assert not any(0 < ord(c) < 32 and c != "\n" for c in result.stdout)
            path.write_bytes(before)


OF_INDEXES = ("index-", "time-index-", "txn-index-")
"""Prefixes of the codes that this command reports."""
LEGAL = ("index-zeros-deleted", "index-alone")
"""Recipes among them that leave no wrong index: one in a partition that is being deleted, and one without a segment."""


@pytest.mark.every_disk
@pytest.mark.parametrize("damage", [*RECIPES, *DOUBTS], ids=lambda damage: damage.name)
def test_every_damaged_disk(damage: Damage, tmp_path: Path) -> None:
    """Neither this command nor kdump carve prints a traceback, and a wrong index is reported."""
    root = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    damage.apply(root)
    for form in (["--full"], ["--json", "--past-damage"]):
        result = run(root, *form)
        assert result.exit_code in (0, 1, 2), form
    if damage.code.startswith(OF_INDEXES) and damage.name not in LEGAL:
        assert run(root, "-q").exit_code == 1
    result = CliRunner().invoke(cli, ["carve", "--runs", str(root)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == 0
