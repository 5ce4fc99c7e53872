"""The ways from one release to another and back: real brokers and controllers are formatted, upgraded, finalised,
lowered and downgraded, and what each start does is compared with what kdump.restart_plan says of the disks before."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import kdump
from kdump.forensics.restart.plan_values import STOPPED
from kdump.format.kafka_release import parse_release
from tools.release_disks import produce, stop
from tools.trials.release import ReleaseCluster, named
from tools.trials.release_record import telling

OLD, NEW = "old", "new"
UPGRADE, DOWNGRADE, PRODUCE = "upgrade", "downgrade", "produce"


class Step(NamedTuple):
    """A start of one of the releases, and what is done with the running cluster."""

    release: str
    does: str = ""


WAYS: dict[str, tuple[str, tuple[Step, ...]]] = {
    "upgrade-and-back": (OLD, (Step(OLD, PRODUCE), Step(NEW), Step(OLD))),
    "finalised-and-back": (OLD, (Step(OLD, PRODUCE), Step(NEW, UPGRADE), Step(NEW), Step(OLD))),
    "lowered-and-back": (OLD, (Step(OLD, PRODUCE), Step(NEW, UPGRADE), Step(NEW, DOWNGRADE), Step(OLD))),
    "formatted-and-back": (NEW, (Step(NEW, PRODUCE), Step(NEW), Step(OLD))),
}
"""By name: which release formats the disks, and the starts that follow."""


class Started(NamedTuple):
    """A start. `says` and `did` are what kdump says of each node, and what the node did: starts, stops, or waits if the
    other one is missing. `why`: of kdump, and of the log; `tool`: what kafka-features.sh printed."""

    way: str
    number: int
    version: str
    does: str
    says: dict[str, str]
    did: dict[str, str]
    why: dict[str, list[str]]
    tool: str

    @property
    def differs(self) -> bool:
        return any(self.did[role] not in (self.says[role], "waits") for role in self.did)


def said(directory: Path, version: str) -> tuple[str, str]:
    """Return whether a node of this release starts on the directory, as kdump says, and why not."""
    plan = kdump.restart_plan([str(directory)], kafka_version=parse_release(version))
    stops = [f"{each.message} ({each.exception})" for each in plan.allStops]
    return "stops" if plan.verdict == STOPPED else "starts", "; ".join(stops)


def run(old: str, new: str, jars: Path, name: str) -> list[Started]:
    """Go one way, up to the first start that fails."""
    versions = {OLD: old, NEW: new}
    formats, steps = WAYS[name]
    found = []
    with tempfile.TemporaryDirectory(prefix="upgrade-") as directory:
        work = Path(directory)
        keeper, root = work / "controller", work / "broker"
        keeper.mkdir()
        for number, step in enumerate(steps):
            node = ReleaseCluster(named(f"{versions[step.release]}-kraft"), jars, work, keeper, [root])
            if not number:
                first = ReleaseCluster(named(f"{versions[formats]}-kraft"), jars, work, keeper, [root])
                first.format()
            node.ports = first.ports  # once kraft.version is 1, the address of the controller is in the metadata
            nodes = {"controller": keeper, "broker": root}
            says = {role: said(place, versions[step.release]) for role, place in nodes.items()}
            tool = ""
            with node:
                up = node.started()
                ended = {role for role in nodes if node.ended(role)}
                did = {role: "stops" if role in ended else "starts" if up else "waits" for role in nodes}
                if up and step.does == PRODUCE:
                    produce(node, "first")
                elif up and step.does:
                    line = ".".join(versions[NEW if step.does == UPGRADE else OLD].split(".")[:2])
                    printed = "\n".join(node.tool("FeatureCommand", step.does, "--release-version", line))
                    tool = " ".join(each for each in printed.split("\n") if not each.startswith("INFO ")).strip()
                if up:
                    stop(node, "broker")
                    stop(node, "controller")
                why = {role: [says[role][1], *(telling(node.log(role))[:3] if role in ended else [])] for role in nodes}
            verdicts = {role: verdict for role, (verdict, _) in says.items()}
            found.append(Started(name, number + 1, versions[step.release], step.does, verdicts, did, why, tool))
            if not up:
                break
    return found
