"""`kdump reindex` on the command line."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from kdump.all_answers import TYPES
from tests import command, craft
from tests.conftest import FIXTURES

FIRST = f"{0:020}"
PAYMENTS = FIXTURES / "indexed-1" / "payments-0"


run = partial(command.run, "reindex")
refused = partial(command.refused, "reindex")


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
    assert "would be written to the same path" in refused(tmp_path / "one", tmp_path / "two", "--out", tmp_path / "out")


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
