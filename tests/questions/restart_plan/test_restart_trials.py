"""Compares kdump.restart_plan with what real brokers did: docs/broker-trials.json, made for `kdump verify`, and
docs/restart-trials.json. No broker runs here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.questions.restart_plan.answer import DELETED, STOPPED, TRUNCATED, PartitionPlan, RestartPlan
from tests.conftest import ROOT, covering
from tests.damages import DAMAGES, DOUBTS
from tests.questions.restart_plan import restart_damages
from tests.restored_disk import RestoredDisks, served
from tools.trials.cluster import KAFKA
from tools.trials.predict import plan_of as plan_of_node
from tools.trials.predict import public_directory
from tools.trials.restart import differences, recorded, renamed

TRIALS = {each["name"]: each for each in json.loads((ROOT / "docs" / "broker-trials.json").read_text())}
RESTARTS = {each["name"]: each for each in json.loads((ROOT / "docs" / "restart-trials.json").read_text())}
HOST = "librdkafka-none-0"
UNKNOWABLE = {
    "meta-cluster-id": "no disk says the id of the cluster that the broker is to join: it is an assumption",
    "cleaner-beyond": "the log cleaner did that, after the start",
    "cleaner-empty": "the log cleaner did that, after the start",
}
"""Recipes for which the plan differs from the record, and why."""


def plan_of(damage: Any, disks: RestoredDisks) -> tuple[RestartPlan, str | None]:
    here, expected = disks.damaged(damage)
    if damage.disk == "legacy":
        source, here = here, disks.get("clean-1")
        here.graft(source.root / expected.file.split("/")[0], HOST)
        return kdump.restart_plan(here.directories_of_broker, kafka_version=KAFKA), HOST
    return kdump.restart_plan(here.directories_of_broker, kafka_version=KAFKA), served(damage, expected)


def disagrees(plan: RestartPlan, partition: str | None, did: dict[str, Any]) -> list[str]:
    """Return the differences between the plan and the record of a startup."""
    broker, found = did["broker"], []
    stopped = "exits" in broker or "does not finish startup" in broker
    if stopped != (plan.verdict == STOPPED):
        return [f"verdict {plan.verdict}, the broker: {broker}"]
    if "offline" in broker and not plan.offline:
        found.append(f"nothing offline, the broker: {broker}")
    of: PartitionPlan | None = next((x for x in plan.partitions if x.name == partition and not x.state), None)
    if stopped or of is None:
        return found
    end = 0 if of.stray else of.logEndOffset
    if did["logEndAfter"] is not None and did["logEndAfter"] != end:
        found.append(f"ends at {end}, the broker's log at {did['logEndAfter']}")
    steps = {step.kind for step in of.steps}
    new = [step.file for step in of.steps if step.kind in ("rebuild", "create", "recover", "write")]
    is_empty = bool(of.stray) and "renames or deletes files" not in broker  # with its new, empty log already there
    says = {
        "truncates the log": any(cut.kind == TRUNCATED for cut in of.cuts) or is_empty or "split" in steps,
        "deletes segments": any(cut.kind == DELETED for cut in of.cuts),
        "ends the log early": any(cut.kind == "hidden" for cut in of.cuts),
        "rebuilds the index": bool(new),
        "rewrites the snapshot": any(path.endswith(".snapshot") for path in new),
    }
    for words, said in says.items():
        must = words in ("truncates the log", "deletes segments")
        if (words in broker and not said) or (must and said and words not in broker):
            found.append(f"{words}: {said}, the broker: {broker}")
    return found


EVERY = sorted([*DAMAGES, *DOUBTS], key=lambda damage: (damage.disk, damage.name))
TELLING = [damage for damage in EVERY if TRIALS[damage.name]["broker"] != "starts normally"]
QUIET = [damage for damage in EVERY if damage not in TELLING]
"""A startup does nothing about these; three of four are tested only by make test-all."""
PARTS = {"some": [*TELLING, *QUIET[::4]], "quiet": [damage for number, damage in enumerate(QUIET) if number % 4]}


def did(damage: Any) -> list[str]:
    """Return what the record says that a startup did, and to which disk."""
    return [*TRIALS[damage.name]["broker"].split(", "), damage.disk]


@pytest.mark.sampled
@pytest.mark.parametrize("part", ["some", pytest.param("quiet", marks=pytest.mark.every_disk)])
def test_every_recipe_of_verify(part: str, tmp_path: Path) -> None:
    """The plan predicts what a startup does to each damage of tests/damages.py."""
    disks = RestoredDisks(tmp_path)
    wrong = {}
    for damage in covering(PARTS[part], 24, did, part):
        plan, partition = plan_of(damage, disks)
        found = disagrees(plan, partition, TRIALS[damage.name])
        if bool(found) != (damage.name in UNKNOWABLE):
            wrong[damage.name] = found
    assert not wrong


def kinds(recipe: Any) -> list[object]:
    """Return the verdict of the plan, what the broker did, and whether the two differ."""
    record = RESTARTS[recipe.name]
    broker = record["broker"]
    return [
        (record["verdict"], record["status"], broker["starts"], bool(broker["offline"]), bool(record["differences"]))
    ]


@pytest.mark.sampled
def test_every_recipe_of_restarts() -> None:
    """The current plan equals what the broker did when docs/restart-trials.json was made, except for the explained
    differences."""
    chosen = sorted(restart_damages.chosen(), key=lambda recipe: (recipe.disk, recipe.name))
    wrong = {}
    with public_directory() as tmp:
        disks = RestoredDisks(tmp)
        for recipe in covering(chosen, 60, kinds):
            here = disks.get(recipe.disk, whole=True)
            said, _ = plan_of_node(recipe.node(here.root))
            record = RESTARTS[recipe.name]
            found = differences(renamed(said, here.root.name), recorded(record))
            if record["broker"]["starts"]:  # missing partitions are created, empty
                ends = {name: record["ends"].get(name) for name in said["created"]}
                found += [f"created: {said['created']}, the broker {ends}"] if ends != said["created"] else []
                found += [f"{name} is not empty" for name in said["mayCreate"] if record["ends"].get(name)]
            if found != record["differences"]:
                wrong[recipe.name] = found
    assert not wrong


def test_the_record_is_whole() -> None:
    """Every recipe has its result, more than a dozen kinds of damage agree, and all differences are explained."""
    assert list(RESTARTS) == [recipe.name for recipe in restart_damages.chosen()]
    assert sum(not each["differences"] for each in RESTARTS.values()) > 280
    assert all(each.get("explained") for each in RESTARTS.values() if each["differences"])
