"""Salvages partitions whose compaction was interrupted: the log that a startup would serve, and nothing less."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import kdump
from kdump.check.options import Options
from kdump.log.live_files import see
from kdump.questions.restart_plan.answer import PartitionPlan
from kdump.questions.restart_plan.log_loading.log_loader import LoadParameters, load
from kdump.questions.restart_plan.node.access_rights import broker_rights
from tests import craft
from tests.each_case import each_case
from tests.questions.salvage.salvaging import Run, offsets

OLD = {0: range(8), 8: range(8, 16), 16: range(16, 20)}
"""Offsets of the segments before a compaction; the last one is active."""
NEW = {0: (1, 3, 6), 8: (9, 14)}
"""Those that the cleaner keeps, by base offset of the new segments."""


def segment(path: Path, kept: tuple[int, ...] | range) -> None:
    path.write_bytes(b"".join(craft.batch([craft.record(key=b"%d" % each)], offset=each) for each in kept))


def interrupted(root: Path, new: dict[int, tuple[int, ...]], stage: int) -> Path:
    """Write a partition whose compaction stopped at a stage of LocalLog.replaceSegments: it renames the new segments
    from .cleaned to .swap, the highest first; marks the old ones as deleted; and renames the new ones. Stages count
    these renames."""
    home = root / "t-0"
    home.mkdir(parents=True)
    for base, kept in OLD.items():
        segment(home / f"{base:020}.log", kept)
    for base, kept in new.items():
        segment(home / f"{base:020}.log.cleaned", kept)
    renames = [(f"{base:020}.log.cleaned", f"{base:020}.log.swap") for base in sorted(new, reverse=True)]
    renames += [(f"{base:020}.log", f"{base:020}.log.deleted") for base in (0, 8)]
    renames += [(f"{base:020}.log.swap", f"{base:020}.log") for base in sorted(new)]
    for before, after in renames[:stage]:
        (home / before).rename(home / after)
    return home


MERGED = {0: (1, 3, 6, 9, 14)}
CASES = [(new, stage) for new in (NEW, MERGED) for stage in range(2 * len(new) + 3)]


@each_case("new, stage", CASES)
def test_an_interrupted_compaction(new: dict[int, tuple[int, ...]], stage: int, tmp_path: Path) -> None:
    """The output is the log that a startup loads; no part of it is called complete."""
    home = interrupted(tmp_path / "disk", new, stage)
    made = Run(tmp_path / "out", home)
    is_new = stage >= len(new)
    expected = {16, 17, 18, 19} | (set(sum(new.values(), ())) if is_new else set(range(16)))
    assert made.offsets() == expected
    assert made.only.is_whole
    plan = PartitionPlan("t", 0, str(home), str(home.parent), "", clean=True)
    how = LoadParameters(Options().open, broker_rights([str(home.parent)]), True)
    served = load(plan, how, see(str(home)))
    assert {each for one in served for each in offsets(Path(one.target.path))} == expected
    (found,) = kdump.diff([str(home), str(made.out / "t-0")])
    assert found.relation == "same", found
    is_installed = is_new and any(each.name.endswith(".swap") for each in home.iterdir())
    assert any("a startup installs it" in note for note in found.copies[0].notes) == is_installed


@each_case("is_deleted, with_deleted", list(product((False, True), repeat=2)))
def test_a_damaged_swap(is_deleted: bool, with_deleted: bool, tmp_path: Path) -> None:
    """What is damaged in a .swap file comes from the segment that it replaces; from its .deleted file only on request.
    Without either it is lost."""
    home = interrupted(tmp_path / "disk", MERGED, 3 if is_deleted else 1)
    swap = home / f"{0:020}.log.swap"
    data = bytearray(swap.read_bytes())
    data[len(data) // 2] ^= 1
    swap.write_bytes(data)
    made = Run(tmp_path / "out", home, deleted=with_deleted)
    assert made.only.is_whole == (not is_deleted or with_deleted)
    assert (6 in made.offsets()) == made.only.is_whole
