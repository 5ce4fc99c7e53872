"""Random recipes, each with its own seed: several kinds of damage at once, and logs with other ends, log start offsets
and recovery points."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

from tests.damages import DAMAGES, DOUBTS, RECOVERY, START
from tests.questions.restart_plan.restart_recipe import RECIPES, recipe

SEVERAL, MOVED = 16, 16
STARTING = {
    "clean-1": """
        clean-shutdown-lost index-lost-clean txn-index-below snapshots-lost-clean empty-segment swap-of-two
        swap-and-cleaned trash-directory partition-unknown metadata-damaged future-alone quorum-zeros
        clean-shutdown-directory segment-name-short segment-name-zero segment-name-negative index-name-short
        snapshot-name-short swap-damaged-alone swap-damaged swap-last-alone swap-index-alone tail-cut-start-within
        last-batch-cut torn-clean junk-clean offset-back start-beyond index-lost time-index-lost index-past-the-end
        snapshot-bit partition-metadata-lost directory-delete compaction-cleaned compaction-swap epochs-falling
        epochs-zeroed index-torn time-index-doubled snapshot-torn
    """,
    "crash-1": """
        recovery-point-lost recovery-point-garbled damage-in-the-middle tail-of-zeros tail-lost torn-tails
        index-lost-below index-lost-above snapshots-lost snapshots-corrupt log-start-within epochs-lost epochs-beyond
        segment-name-short-crash swap-damaged-crash cut-below-start value-bit-last-segment torn-crash
        torn-earlier-segment zeros-crash junk-crash offset-back-recovery segment-lost snapshot-bit-recovery
        snapshot-crash-torn
    """,
}
"""Recipes that leave a disk on which a broker starts, by disk."""


def several(number: int) -> None:
    """Add a recipe that applies three to six others; those whose files an earlier one has removed are skipped."""
    dice = random.Random(f"several {number}")
    disk = dice.choice(sorted(STARTING))
    names = dice.sample(STARTING[disk].split(), dice.randint(3, 6))

    def apply(root: Path) -> None:
        every = {each.name: each.apply for each in (*RECIPES, *DAMAGES, *DOUBTS)}
        for name in names:
            if name in every:
                with suppress(FileNotFoundError, FileExistsError, IndexError, ValueError, AssertionError):
                    every[name](root)

    recipe(f"several-{number}", disk, ", ".join(names), apply)


def moved(number: int) -> None:
    """Add a recipe that truncates logs, and gives them other log start offsets and recovery points."""
    dice = random.Random(f"moved {number}")
    disk = dice.choice(sorted(STARTING))
    seed = dice.random()

    def apply(root: Path) -> None:
        dice = random.Random(seed)
        folders = sorted(path for path in root.glob("*-0") if not path.name.startswith("__"))
        starts, points = [], []
        for folder in dice.sample(folders, 12):
            topic = folder.name.rpartition("-")[0]
            logs = sorted(folder.glob("*.log"))
            if dice.random() < 0.5:
                last = dice.choice(logs)
                last.write_bytes(last.read_bytes()[: dice.randrange(last.stat().st_size + 1)])
            if dice.random() < 0.5:
                starts.append(f"{topic} 0 {dice.randrange(330)}\n")
            if dice.random() < 0.5:
                points.append(f"{topic} 0 {dice.randrange(330)}\n")
        (root / START).write_text(f"0\n{len(starts)}\n{''.join(starts)}")
        (root / RECOVERY).write_text(f"0\n{len(points)}\n{''.join(points)}")

    recipe(f"moved-{number}", disk, "ends, log starts and recovery points of twelve partitions, at random", apply)


for _number in range(SEVERAL):
    several(_number)
for _number in range(MOVED):
    moved(_number)
