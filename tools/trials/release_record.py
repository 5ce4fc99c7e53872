"""Which startups of tools/release_trials.py there are, and how their results are stored: what differs from the startup
on the same disk without damage."""

from __future__ import annotations

import importlib
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import kdump
from kdump.format.kafka_release import parse_release
from tools.trials.disk import files
from tools.trials.release import RELEASES
from tools.trials.restart import Facts, differences, predicted_facts
from tools.trials.wording import once

Result = dict[str, Any]

CROSSINGS = [
    ("2.8.2-zk", "3.9.1-zk"),
    ("3.3.2-kraft", "3.9.1-kraft"),
    ("3.3.2-kraft", "4.0.0-kraft"),
    ("3.9.1-zk", "4.3.1-kraft"),
    ("3.9.1-kraft", "4.0.0-kraft"),
    ("3.9.1-kraft", "4.3.1-kraft"),
    ("4.0.0-kraft", "4.3.1-kraft"),
    ("3.9.1-zk", "2.8.2-zk"),
    ("3.9.1-zk", "3.6.2-zk"),
    ("3.9.1-kraft", "3.6.2-kraft"),
    ("4.0.0-kraft", "3.9.1-kraft"),
    ("4.1.0-kraft", "3.9.1-kraft"),
    ("4.1.0-kraft", "4.0.0-kraft"),
    ("4.3.1-kraft", "4.0.0-kraft"),
    ("4.3.1-kraft", "4.1.0-kraft"),
    ("4.3.1-kraft", "4.4.0-kraft"),
    ("4.4.0-kraft", "4.3.1-kraft"),
]
"""Upgrades and downgrades: the release of the disk, and the one that is started on it."""

NODE = "the broker's configuration has another ID, which is not on the disk: the plan assumes that it has the disk's"
EXPLAINED = {
    "meta-cluster": NODE.replace("broker's configuration", "cluster"),
    "meta-node": NODE,
    "offset-back": "the topic's index.interval.bytes, which is in ZooKeeper: the plan assumes the default",
    "start-within": "the first retention check deletes segments below the log start offset; the trials switch it off",
}
"""Why a prediction differs from what the broker did, by recipe."""

LINES, WIDTH = 6, 240
"""Number and length of the lines of a broker's log that are stored."""
NOISE = re.compile(
    r"could not be established|connection to broker|Failed atomic move|^java.io.IOException: Connection to"
)


class Start(NamedTuple):
    """A startup: of which release the disk is, which is started on it, and the recipe."""

    release: str
    started_by: str
    recipe: Any

    @property
    def key(self) -> str:
        crossing = "" if self.release == self.started_by else f"-by-{self.started_by}"
        return f"{self.release}{crossing}-{self.recipe.name}"

    @property
    def ground(self) -> str:
        """Return the key of the startup on the same disk without damage."""
        return self.key.removesuffix(self.recipe.name) + str(self.recipe.disk)

    @property
    def is_undamaged(self) -> bool:
        return self.key == self.ground


def starts(disks: Path, more: Sequence[str] = ()) -> list[Start]:
    """Return all startups, in the order in which they are stored. `more`: names of further releases with disks."""
    recipes = importlib.import_module("tests.questions.restart_plan.release_damages").RECIPES
    found = [
        Start(name, name, recipe)
        for name in (*RELEASES, *more)
        for recipe in recipes
        if recipe.fits(disks / name / recipe.disk)
    ]
    undamaged = [recipe for recipe in recipes if recipe.name in ("clean", "crash")]
    return found + [Start(disk, by, recipe) for disk, by in CROSSINGS for recipe in undamaged]


def telling(lines: list[str]) -> list[str]:
    """Return the lines of a broker's log that are stored: errors, or else warnings, the first of each kind."""
    quiet = [line for line in lines if not NOISE.search(line)]
    errors = [
        line
        for line in quiet
        if line.startswith("ERROR ") or re.match(r"(Caused by: )?[\w.$]+(Exception|Error)\b", line)
    ]
    return [line[:WIDTH] for line in once(errors or [line for line in quiet if line.startswith("WARN ")])[:LINES]]


def reduced(start: Start, did: Facts, results: dict[str, Result]) -> Result:
    """Return what is stored of a startup, without the partitions and files of which the same is true without damage."""
    result: Result = {"key": start.key, "release": start.release, "startedBy": start.started_by}
    result |= {"name": start.recipe.name, "disk": start.recipe.disk, "what": start.recipe.what}
    broker = {name: did[name] for name in ("starts", "offline", "log", "cleaned")}
    partitions, changed = did["partitions"], did["files"]
    if not start.is_undamaged:
        ground = results[start.ground]
        same = ground["partitions"]
        partitions = {key: facts for key, facts in partitions.items() if same.get(key) != facts}
        partitions |= {key: None for key in same if key not in did["partitions"]}
        changed = {
            word: [path for path in paths if path not in ground["files"][word]] for word, paths in changed.items()
        }
    return result | {"broker": broker, "partitions": partitions, "files": changed}


def recorded(start: Start, result: Result, results: dict[str, Result]) -> Facts:
    """Return the facts about a broker from a stored result, in the form that `differences` takes."""
    partitions = dict(result["partitions"])
    if not start.is_undamaged:
        partitions = results[start.ground]["partitions"] | partitions
    return {**result["broker"], "partitions": {key: facts for key, facts in partitions.items() if facts is not None}}


def predicted(start: Start, disks: Path) -> Facts:
    """Return the facts that kdump predicts for a startup."""
    damages = importlib.import_module("tests.damages")
    with tempfile.TemporaryDirectory() as name:
        root = damages.copy_disk(disks / start.release / start.recipe.disk, Path(name) / "broker")
        start.recipe.apply(root)
        plan = kdump.restart_plan([str(root)], kafka_version=parse_release(start.started_by))
        return predicted_facts(plan, {"broker": files(root)}) | {"verdict": plan.verdict, "status": plan.status}


def compared(start: Start, disks: Path, result: Result, results: dict[str, Result]) -> list[str]:
    """Return the differences between the current prediction and what the broker did."""
    return differences(predicted(start, disks), recorded(start, result, results))
