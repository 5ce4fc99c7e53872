"""Checks that `verify` and `restart-plan` do not contradict each other about one disk.

For every recipe of damage, and for pairs of them on one disk:

- If `restart-plan` predicts that a partition loses records, or that the broker exits or a log directory goes offline
  because of a file in a partition directory, the first line of `verify` is neither OK nor NO DAMAGE. (Only
  `restart-plan` reports what a startup does for other reasons: stray directories, IDs of directories, permissions.)
- If `verify` reports an error, the exit status of `restart-plan` is not 0, or its first line says that it did not look
  at everything, and names `kdump verify`."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Sequence
from contextlib import suppress
from filecmp import cmpfiles, dircmp
from pathlib import Path

import pytest

import kdump
from tests.command import run
from tests.conftest import DISKS, FIXTURES, few, seeded
from tests.damages import DAMAGES, DISK_PATHS, DOUBTS, Damage, copy_disk
from tests.disks import data, partition
from tests.each_case import each_case

RECIPES = [*DAMAGES, *DOUBTS]
COMFORT = ("OK", "NO DAMAGE")


def pairs(count: int, dice: random.Random) -> list[tuple[Damage, Damage]]:
    """Return pairs of recipes for one disk, most of them also for one partition."""
    found = []
    for _ in range(count):
        one = dice.choice(RECIPES)
        found.append((one, dice.choice([each for each in RECIPES if each.disk == one.disk])))
    return found


def names(recipes: Sequence[Damage]) -> str:
    return "+".join(each.name for each in recipes)


def contradiction(root: Path) -> str:
    """Return how a disk contradicts the relation; empty if it does not."""
    others = [path for path in root.parent.iterdir() if path.is_dir() and path != root]
    roots = sorted(map(str, [root, *others]))
    check, start = run("verify", *roots), run("restart-plan", *roots)
    said, predicted = (result.stdout.partition("\n")[0] for result in (check, start))
    if check.exit_code == 1 and start.exit_code == 0 and "kdump verify" not in predicted:
        return f"verify: {said}; restart-plan: {predicted}"
    if not said.startswith(COMFORT) or start.exit_code not in (1, 3):
        return ""
    for each in kdump.restart_plan(roots).partitions:
        if each.loses and not each.stray:
            return f"restart-plan: {each.name} loses records; verify: {said}"
        for stop in each.stops:
            if os.path.dirname(stop.file) == each.path:
                return f"restart-plan: {stop.message}; verify: {said}"
    return ""


def leave_out_the_unchanged(root: Path, source: Path) -> None:
    """Remove unchanged partitions: they take most of the time, and add nothing."""
    for place in root.iterdir():
        before = source / place.name
        if place.is_dir() and not place.name.startswith("__") and before.is_dir():
            found = dircmp(place, before)
            differ = cmpfiles(place, before, found.common_files, shallow=False)
            if not (found.left_only or found.right_only or differ[1] or differ[2]):
                shutil.rmtree(place)


def drawn(count: int, of_pairs: int, name: str) -> list[tuple[Damage, ...]]:
    """Return this number of recipes, and pairs of them."""
    dice = seeded(name)
    return [*((each,) for each in dice.sample(RECIPES, count)), *pairs(of_pairs, dice)]


@pytest.mark.parametrize(
    "recipes",
    [
        *(pytest.param(each, id=names(each)) for each in drawn(2, 1, "verdicts")),
        *(
            pytest.param(each, id=f"{number}-{names(each)}", marks=pytest.mark.every_disk)
            for number, each in enumerate(drawn(40, 60, "more verdicts"))
        ),
    ],
)
def test_damage(recipes: Sequence[Damage], tmp_path: Path) -> None:
    source = DISKS / DISK_PATHS[recipes[0].disk]
    root = copy_disk(source, tmp_path / "disk")
    for number, each in enumerate(recipes):
        with suppress(*((OSError, IndexError, ValueError, AssertionError) if number else ())):  # its files are gone
            each.apply(root)
    leave_out_the_unchanged(root, source)
    assert not contradiction(root)


@pytest.mark.parametrize(
    "name",
    ["99999999999999999999.log", "notes.log", "x.index", ".snapshot", "zero.log.swap", "9" * 20 + ".cleaned", "5.log"],
)
@pytest.mark.parametrize("clean", few([True, False], 1))
def test_names_that_a_broker_parses(name: str, clean: bool, tmp_path: Path) -> None:
    """Long.parseLong decides which names these are (docs/restart-trials.json records what a real broker does with
    several)."""
    root = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"))
    if not clean:
        (root / ".kafka_cleanshutdown").unlink()
    (root / "ledger-0" / name).write_bytes((root / "ledger-0" / f"{0:020}.log").read_bytes())
    assert not contradiction(root)
    said = run("verify", root).stdout
    assert "file-unknown" in said
    parsed = name == "5.log"
    assert (run("restart-plan", root).exit_code == 3) == (not parsed)
    assert ("NumberFormatException" in said) == (not parsed)


@each_case("stated", [-1, 0, 5, 13, 14, 500])
def test_what_a_broker_does_with_the_beginning_of_a_header(
    stated: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """verify says that a broker exits where restart-plan does, whatever number of bytes is left of the header."""
    root = tmp_path_factory.mktemp("disk")
    (root / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    (root / "recovery-point-offset-checkpoint").write_text("0\n1\npayments 0 3\n")
    folder = partition(root, data(0, 1, count=3))
    (folder / f"{0:020}.timeindex").touch()
    log = folder / f"{0:020}.log"
    sound = log.read_bytes()
    for size in (12, 16, 17, 18, 40, 60):
        log.write_bytes(sound + (struct.pack(">qi", 3, stated) + b"\1" * 60)[:size])
        stops = "DOES NOT START" in run("restart-plan", root, "--kafka-version", "4.3").stdout
        text = " ".join(run("verify", root).stdout.split())
        exits = "loads the log after a clean shutdown exits" in text
        exits |= "a length below 14 while loading the log exits" in text and stated < 14
        assert exits == stops, size
        assert not (stops and "the broker appends after them" in text)
