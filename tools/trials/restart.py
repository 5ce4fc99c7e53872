"""Facts that `kdump restart-plan` predicts for a damaged disk, and the same facts about what a real broker did with it.

The facts of a partition are those that LogLoader logs when it has loaded the partition, and the state of its files some
seconds later."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kdump.kafka.leader_epoch_file_cache import EpochEntry, LeaderEpochFileCache
from kdump.questions.restart_plan.answer import STOPPED, PartitionPlan, RestartPlan
from tools.trials.disk import Files

Facts = dict[str, Any]
LOADED = re.compile(
    r"Completed load of Log\(dir=(?P<dir>[^,]*),.* logStartOffset=(?P<start>-?\d+), logEndOffset=(?P<end>-?\d+)\) with "
    r"(?P<segments>\d+) segments"
)
RECOVERED = re.compile(r"partition=(?P<name>\S+), dir=(?P<dir>[^\]]*)\].*Recovering unflushed segment (?P<base>\d+)")
OFFLINE = r"(?:Stopping serving logs in dir|Failed to create or validate data directory) …/(\S+)"
LINES = 8
"""Number of relevant lines that are kept from the beginning of a log, and from its end."""
CLEANED = re.compile(r"Cleaning log (\S+)-(\d+)")


def predicted_facts(plan: RestartPlan, before: dict[str, Files]) -> Facts:
    """Return the predicted facts. `before`: the files of each log directory, by its name."""
    facts: Facts = {"starts": plan.verdict != STOPPED, "offline": sorted(map(os.path.basename, plan.offline))}
    work = os.path.dirname(plan.directories[0].path)
    facts["reasons"] = [stop.exception.replace(f"{work}/", "…/") for stop in plan.allStops]
    partitions: Facts = {}
    for each in plan.partitions:
        if each.topic == "__cluster_metadata" or each.missing:
            continue
        partitions[_key(each)] = _partition(each, before.get(os.path.basename(each.source), {}))
    ends = {each.name: each.logEndOffset for each in plan.partitions if each.missing}
    facts["mayCreate"] = [each.name for each in plan.partitions if each.problem and each.problem.case == "mayBeCreated"]
    facts["created"] = {name: end for name, end in ends.items() if name not in facts["mayCreate"]}
    return facts | {"partitions": partitions}


def _key(each: PartitionPlan) -> str:
    return f"{os.path.basename(each.source)}/{os.path.basename(each.path)}"


def _partition(each: PartitionPlan, files: Files) -> Facts:
    root = os.path.basename(each.path)
    facts: Facts = {"logStart": each.logStartOffset, "logEnd": each.logEndOffset, "segments": each.segments}
    facts["recovered"] = sorted(step.offset or 0 for step in each.steps if step.kind == "recover")
    facts["stray"] = bool(each.stray) and not each.strayDeleted
    facts["deleted"] = each.strayDeleted
    here = {name.partition("/")[2] for name in files if name.startswith(root + "/")}
    left, truncated = _files_after(each, here)
    facts["truncated"] = truncated
    renamed_to = [step.reason for step in each.steps if step.kind == "rename" and step.file == each.path]
    if each.state == "future" and any("as soon as" in reason for reason in renamed_to):
        facts["truncated"] = {}  # it is filled again
    if any("-delete:" in reason for reason in renamed_to):
        return facts | {"logs": [], "snapshots": [], "epochs": []}  # another directory takes its place
    facts["logs"] = sorted(name for name in left if name.endswith(".log"))
    facts["snapshots"] = sorted(name for name in left if name.endswith(".snapshot"))
    facts["epochs"] = [[entry.epoch, entry.startOffset] for entry in each.epochsAfter or ()]
    return facts


def _files_after(each: PartitionPlan, here: set[str]) -> tuple[set[str], dict[str, int | None]]:
    """Return which names in `here` are left after the steps, and the new sizes of truncated files."""
    left = set(here)
    truncated: dict[str, int | None] = {}
    names: dict[str, str] = {}
    for step in each.steps:
        if step.file == each.path:
            continue
        name = os.path.basename(step.file)
        name = names.get(name, name)  # steps contain the original path of a file
        if step.kind in ("delete", "sweep"):
            left.discard(name)
            truncated.pop(name, None)
        elif step.kind == "rename":
            left.discard(name)
            names[name] = step.reason.split()[1].rstrip(":")
            left.add(names[name])
        elif step.kind in ("create", "rebuild", "write"):
            if step.kind == "create" and name.endswith(".log") and name in here - left:
                truncated[name] = 0  # in the place of a segment that was deleted
            left.add(name)
        elif step.kind in ("truncate", "split") and step.position is not None:
            truncated[name] = step.position
    return left, dict(sorted(truncated.items()))


def done(
    lines: list[str], started: bool, dirs: Iterable[Path], after: dict[str, Files], before: dict[str, Files]
) -> Facts:
    """Return the same facts for a broker, from the lines of its log and from the files after startup (or after it
    exited)."""
    stopped = re.findall(OFFLINE, "\n".join(lines))
    failed = {path.name for path in dirs} & set(stopped)
    telling = [x for x in lines if _tells(x)]
    log = list(dict.fromkeys(telling[:LINES] + telling[-LINES:]))
    facts: Facts = {"starts": started, "offline": sorted(failed), "log": log}
    recovered: dict[str, list[int]] = {}
    for x in lines:
        if found := RECOVERED.search(x):
            key = f"{os.path.basename(found['dir'])}/{found['name']}"
            recovered.setdefault(key, []).append(int(found["base"]))
    partitions: Facts = {}
    for x in lines:
        found = LOADED.search(x)
        if not found:
            continue
        path = Path(found["dir"])
        directory, name = path.parent.name, path.name
        stray = name.endswith("-stray") and f"{name}/partition.metadata" not in before.get(directory, {})
        stray = stray and not any(each.startswith(name + "/") for each in before.get(directory, {}))
        kept = name
        if name.endswith("-future") and not any(each.startswith(name + "/") for each in after.get(directory, {})):
            kept = name.partition(".")[0]  # it has replaced the live log
        own = name.partition(".")[0] if stray and not name.startswith(".") else name
        if stray and not any(each.startswith(own + "/") for each in before.get(directory, {})):
            tops = {each.partition("/")[0] for each in before.get(directory, {})}
            own = next((each for each in sorted(tops) if each.startswith(own + ".")), own)
        if stray and name.startswith("."):
            own = "." + name[1:].partition(".")[0]
        files = after.get(directory, {})
        moved = _moved(name, files)
        if moved:  # before 4.0, a broker finds out after it has loaded the log
            kept, stray = moved, moved.endswith("-stray")
        facts_of: Facts = {"logStart": int(found["start"]), "logEnd": int(found["end"]), "stray": stray}
        facts_of["segments"] = int(found["segments"])
        facts_of["recovered"] = sorted(recovered.get(f"{directory}/{own}", []))
        here = {each.partition("/")[2]: each for each in files if each.startswith(kept + "/")}
        was = before.get(directory, {})
        facts_of["truncated"] = {}
        for each, at in sorted(here.items()):
            installed = was.get(f"{own}/{each}.swap") or was.get(f"{own}/{each}")
            if each.endswith(".log") and installed is not None and files[at][0] < installed[0]:
                facts_of["truncated"][each] = files[at][0]
        facts_of["logs"] = sorted(each for each in here if each.endswith(".log"))
        facts_of["snapshots"] = sorted(each for each in here if each.endswith(".snapshot"))
        if moved.endswith("-delete"):  # up to 3.6
            facts_of["deleted"] = True
        partitions[f"{directory}/{own}"] = facts_of
    return facts | {
        "partitions": partitions,
        "cleaned": sorted({f"{a}-{b}" for a, b in CLEANED.findall("\n".join(lines))}),
    }


def _moved(name: str, files: Files) -> str:
    """Return the name that the directory of a partition got because the cluster does not have it, or an empty text."""
    if any(each.startswith(f"{name}/") for each in files):
        return ""
    tops = {each.partition("/")[0] for each in files if each.startswith(f"{name}.")}
    return next((each for each in sorted(tops) if each.endswith(("-stray", "-delete"))), "")


def _tells(line: str) -> bool:
    return bool(re.search(r" (ERROR|WARN) |Exception", line)) and "Failed atomic move" not in line


def epochs_of(path: Path) -> list[list[int]]:
    """Return the entries of a leader-epoch-checkpoint written by a broker."""
    lines = path.read_text().split("\n")[2:] if path.exists() else []
    return [[int(word) for word in line.split()] for line in lines if line]


def elected(predicted: list[list[int]], found: list[list[int]]) -> list[list[int]]:
    """Return the predicted epochs, plus that of the leader elected after startup, which is the last one in the file."""
    cache = LeaderEpochFileCache()
    cache.load([EpochEntry(*entry) for entry in predicted])
    if found and found[-1] not in predicted:
        cache.assign(*found[-1])
    return [list(entry) for entry in cache.entries]


def differences(said: Facts, did: Facts) -> list[str]:
    """Return the differences between prediction and broker; empty if there are none."""
    found = []
    if said["starts"] != did["starts"]:
        found.append(f"starts: predicted {said['starts']}, the broker {did['starts']}")
    if not did["starts"]:
        shown = "\n".join(did["log"])
        names = {name for reason in said["reasons"] for name in re.findall(r"\b(\w+Exception)\b", reason)}
        if names and not any(name in shown for name in names):
            found.append(f"reason: predicted {sorted(names)}, not in the broker's log")
        return found
    if said["offline"] != did["offline"]:
        found.append(f"offline: predicted {said['offline']}, the broker {did['offline']}")
    for name in sorted({*said["partitions"], *did["partitions"]}):
        one, other = said["partitions"].get(name), did["partitions"].get(name)
        if name.partition("/")[0] in did["offline"]:
            continue
        if one is None or other is None:
            found.append(f"{name}: only {'the broker' if one is None else 'predicted'}")
            continue
        deleted = name.endswith("-delete")
        for fact in (
            *("logStart", "logEnd", "segments", "recovered", "stray", "deleted", "truncated", "logs"),
            *("snapshots", "epochs"),
        ):
            if fact not in other or (deleted and fact in ("logs", "snapshots", "epochs")):
                continue
            changed = name.partition("/")[2] in did["cleaned"] and fact in (
                "truncated",
                "logs",
                "snapshots",
                "segments",
            )
            if fact == "recovered" and not Counter(other[fact]) - Counter(one[fact]):
                continue  # if an index is missing, its segment is recovered without that line
            if fact == "epochs":
                if elected(one[fact], other[fact]) != other[fact]:
                    found.append(f"{name}: epochs: predicted {one[fact]}, the broker {other[fact]}")
                continue
            if one[fact] != other[fact] and not changed:
                found.append(f"{name}: {fact}: predicted {one[fact]}, the broker {other[fact]}")
    return found


def renamed(said: Facts, name: str) -> Facts:
    """Return the predicted facts with the directory name, which may also be in a partition's, replaced with disk-1, its
    name when the broker ran."""
    partitions = {key.replace(name, "disk-1", 1): facts for key, facts in said["partitions"].items()}
    return said | {"partitions": partitions, "offline": [each.replace(name, "disk-1", 1) for each in said["offline"]]}


def recorded(record: Facts) -> Facts:
    """Return the facts about the broker from a stored result, in the form that `differences` takes."""
    partitions = {key: {"logEnd": end} for key, end in record["logEnds"].items()}
    partitions |= {key: facts["broker"] for key, facts in record["partitions"].items() if facts["broker"]}
    return {**record["broker"], "partitions": partitions}
