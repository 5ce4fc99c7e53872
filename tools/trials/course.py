"""The course of a startup as kdump.restart_plan predicts it, and as a real node and its clients show it: events, the
offsets of each partition after them, and what consumers of both kinds can no longer read, or can read now."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import kdump
from kdump.check.options import Options
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import COMPACTED_TOPICS, METADATA_TOPIC
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan
from kdump.questions.restart_plan.course import CERTAIN, OFFSETS, StartupEvent
from tools.trials.cluster import Cluster
from tools.trials.disk import Files, files
from tools.trials.restart import Facts, differences, done, predicted_facts
from tools.trials.wording import once

CLIENT = Path(__file__).with_name("Course.java")
QUIET_MS = 4000
COMPACTED = "users"
RETENTION, ABORTED, FORGOTTEN = "startup-retention", "startup-transactions-aborted", "startup-producers-forgotten"
EXPIRED, MIXED_UP = "startup-offsets-expire", "startup-topic-id-of-another"
REMOTE = "startup-remote-metadata-gone"
AT_LOAD = ("logStart", "logEnd", "segments", "recovered", "stray")
"""What the log of a node says when a log is loaded; its files show what happened until the end of the course."""
SETTLED = 10
"""Seconds after the first checks in which everything that they began has happened."""


class CourseNode(Cluster):
    """The node of a course, with no configs but its own: `values`. Use it inside a `with` block, after the
    prediction."""

    start_seconds = 120

    def __init__(self, jars: Path, work: Path, dirs: Sequence[Path], configs: dict[str, str | None]) -> None:
        super().__init__(jars, work, work / "unused", dirs, combined=True)
        broker, controller = self.ports["broker"], self.ports["controller"]
        values = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(map(str, dirs)),
            "log.cleaner.dedupe.buffer.size": "20000000",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **configs,
        }
        self.values = {name: value for name, value in values.items() if value is not None}

    def _properties(self, node: int, role: str) -> str:
        return "".join(f"{name}={value}\n" for name, value in self.values.items())

    def command(self, role: str) -> list[str]:
        """Return the command with an archive of the classes that the release loads, which the first node leaves: it
        halves the time of a start."""
        java, *options = super().command(role)
        archive = self._archive if self._archive.exists() else self.work / self._archive.name
        use = "SharedArchiveFile" if archive == self._archive else "ArchiveClassesAtExit"
        return [java, f"-XX:{use}={archive}", "-XX:+UseSerialGC", *options]

    @property
    def _archive(self) -> Path:
        return self.jars / "classes.jsa"

    def stop(self) -> None:
        """Stop the node, and keep what it archived."""
        self.processes["broker"].terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.processes["broker"].wait(30)
            made = self.work / self._archive.name
            if made.exists():
                shutil.move(made, self._archive)

    def clients(self) -> list[list[str]]:
        """Return what tools/trials/Course.java prints, as words."""
        classes = self.work / "classes"
        if not classes.exists():
            path = f"{self.jars}/*"
            subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", path, CLIENT], check=True, capture_output=True)
        command = self.java("Course", self.alive(), str(QUIET_MS), COMPACTED, heap="200m")
        command[command.index("-cp") + 1] += f":{classes}"
        out = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if out.returncode:
            return [["failed", "clients", out.stderr.strip().splitlines()[-1]]]
        return [line.split(" ") for line in out.stdout.splitlines()]


# --- Prediction -------------------------------------------------------------------------------------------------------


def numbers(text: str) -> set[int]:
    """Return the offsets of ranges as text: 1..3,7..7."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("..")
        found |= {*range(int(first), int(last or first) + 1)}
    return found


def spans(offsets: Iterable[int]) -> str:
    """Return offsets as such a text."""
    parts: list[list[int]] = []
    for each in sorted(offsets):
        if parts and parts[-1][1] == each - 1:
            parts[-1][1] = each
        else:
            parts.append([each, each])
    return ",".join(f"{first}..{last}" for first, last in parts)


def plan_of(dirs: Iterable[Path], values: dict[str, str], now: int, release: str = "") -> RestartPlan:
    server = ServerProperties("server.properties", values)
    return kdump.restart_plan(map(str, dirs), Options(server=server, now=now), kafka_version=release or None)


def predicted(
    plan: RestartPlan, before: dict[str, Files], reads: Facts, window: int, *, is_steady: bool
) -> dict[str, Any]:
    """Return what the plan says of the first `window` ms. `before`: the files of each log directory; `reads`: what the
    clients of the running broker saw; `is_steady`: nothing times out meanwhile."""
    events = [each for each in plan.course.events if (each.dueMs or 0) <= window]
    events = [each for each in events if not (is_steady and each.code == ABORTED)]
    loading = predicted_facts(plan, before)
    loading["partitions"] = {
        name: {fact: facts[fact] for fact in AT_LOAD} for name, facts in loading["partitions"].items()
    }
    logs = [log for log in plan.partitions if log.topic != METADATA_TOPIC]
    names = [log.name for log in logs]
    live = [log for log in logs if not (log.missing or log.state or log.stray)]
    live += [log for log in logs if log.state == "future" and names.count(log.name) == 1]  # it takes its place
    retained = {_name(each): int(str(each.problem.values["last"])) + 1 for each in events if each.code == RETENTION}
    gone = {_name(each): each.loss for each in events if each.code == REMOTE}
    retained |= {name: loss.lastOffset + 1 for name, loss in gone.items() if loss and loss.lastOffset is not None}
    # The coordinator writes its marker to a log that has forgotten the transaction, too.
    aborted = sorted(
        {_name(each) for each in events if each.code == ABORTED or (each.code == FORGOTTEN and not is_steady)}
    )
    ends = {log.name: end + (log.name in aborted) for log in live if (end := log.logEndOffset) is not None}
    ends = {name: end for name, end in ends.items() if not _is_written(name)}
    live = [log for log in live if log.name in ends]
    starts = {log.name: retained.get(log.name, log.logStartOffset) for log in live}
    stable = {log.name: min([*_stays_open(log, aborted), ends[log.name]]) for log in live}
    return {
        "verdict": plan.verdict,
        "losesWithinHour": plan.losesWithinHour,
        "unanswered": [f"{each.step}: {each.reason}" for each in plan.unanswered],
        "events": sorted(_text(each) for each in events),
        "loading": loading,
        "retention": retained,
        "aborted": aborted,
        "stray": sorted(log.name for log in logs if log.stray),
        "created": sorted(log.name for log in logs if log.missing),
        "createdEmpty": sum(directory.newPartitions for directory in plan.directories),
        "offsets": {name: [starts[name], ends[name], stable[name]] for name in sorted(ends)}
        | {log.name: [0, 0, 0] for log in logs if log.missing and not _is_written(log.name)},
        "lost": lost_by(events, plan, reads),
        "outcomes": sorted(_name(each) for each in events if each.code == FORGOTTEN),
        "committedOffsets": _committed(events),
    }


def _is_written(name: str) -> bool:
    """Return whether coordinators append to a log of their own accord."""
    return name.rpartition("-")[0] in COMPACTED_TOPICS


def _stays_open(log: PartitionPlan, aborted: list[str]) -> list[int]:
    """Return the first offsets of the transactions that stay open."""
    left = log.hanging if log.name in aborted else log.openTransactions
    return [] if log.forgets else [log.openTransactions[each] for each in left]


def _name(event: StartupEvent) -> str:
    return str(event.topic) if event.partition is None else f"{event.topic}-{event.partition}"


def _text(event: StartupEvent) -> str:
    return f"{event.phase} {event.code}{f' {_name(event)}' if event.topic else ''}: {event.message}"


def lost_by(events: list[StartupEvent], plan: RestartPlan, reads: Facts) -> dict[str, dict[str, str]]:
    """Return which of the offsets that consumers have read are lost for certain, and which may be, by partition."""
    found: dict[str, dict[str, set[int]]] = {}
    logs = {log.name: log for log in plan.partitions if not log.state}
    for event in events:
        loss, name = event.loss, _name(event) if event.topic else ""
        had = numbers(reads.get(name, {}).get("uncommitted", ""))
        if event.code == RETENTION:
            gone = {each for each in had if each <= int(str(event.problem.values["last"]))}
        elif event.code == MIXED_UP:  # nor those after it
            found.setdefault(name, {"certain": set(), "may": set()})["certain"] |= had
            for each, kinds in reads.items():
                found.setdefault(each, {"certain": set(), "may": set()})["may"] |= numbers(kinds.get("uncommitted", ""))
            continue
        elif loss is None or event.partition is None or event.code == FORGOTTEN:
            continue
        elif loss.firstOffset is not None and loss.lastOffset is not None:
            gone = {each for each in had if loss.firstOffset <= each <= loss.lastOffset}
        else:
            log = logs.get(name)
            end = 0 if log is None or log.missing or log.stray else log.logEndOffset or 0
            gone = {each for each in had if each >= end}
        is_certain = loss is None or loss.certainty == CERTAIN
        kept = found.setdefault(name, {"certain": set(), "may": set()})
        kept["certain" if is_certain else "may"] |= gone
    return {
        name: {word: spans(offsets) for word, offsets in kinds.items() if offsets}
        for name, kinds in found.items()
        if any(kinds.values())
    }


def _committed(events: list[StartupEvent]) -> str:
    """Return whether committed offsets go: certain, may or no, and how many expire."""
    losing = [each.loss.certainty for each in events if each.loss is not None and each.loss.what == OFFSETS]
    expired = [each for each in events if each.code == EXPIRED]
    number = sum(int(str(each.problem.values["count"]).split()[0]) for each in expired)
    losing += [CERTAIN for each in expired if each.loss is None]
    return f"{min(losing)}{f' {number}' if number else ''}" if losing else "no"


# --- What happened ----------------------------------------------------------------------------------------------------


def seen_by(lines: list[list[str]]) -> dict[str, Any]:
    """Return what clients saw: offsets, reads, open transactions, groups."""
    seen: dict[str, Any] = {"offsets": {}, "reads": {}, "open": {}, "groups": {}, "last": {}, "failed": []}
    for kind, *words in lines:
        if kind == "offsets":
            seen["offsets"][words[0]] = [int(word) for word in words[1:]]
        elif kind == "read":
            seen["reads"].setdefault(words[1], {})[words[0].removeprefix("read_")] = words[2]
        elif kind == "open":
            seen["open"].setdefault(words[0], []).append(int(words[2]))
        elif kind == "group":
            seen["groups"][f"{words[0]} {words[1]}"] = int(words[2])
        elif kind == "last":
            seen["last"][words[1]] = int(words[2])
        else:
            seen["failed"].append(" ".join((kind, *words)))
    seen["failed"] = sorted(set(seen["failed"]))
    return seen


def run(node: CourseNode, dirs: Sequence[Path], before: dict[str, Files], window: int) -> dict[str, Any]:
    """Start the node, ask its clients after `window` ms, stop it, and return what its log, its files and its clients
    show."""
    began = time.monotonic()
    with node:
        is_started = node.started()
        seen = seen_by([])
        if is_started:
            time.sleep(window / 1000 + SETTLED)
            seen = seen_by(node.clients())
        lines = node.log("broker")
        after = {path.name: files(path) if path.is_dir() else {} for path in dirs}
        tops = [each for path in dirs if path.is_dir() for each in sorted(map(_top, path.iterdir()))]
        if is_started:
            node.stop()
    loading = done(lines, is_started, dirs, after, before)
    loading["partitions"] = {
        name: {fact: facts[fact] for fact in AT_LOAD}
        for name, facts in loading["partitions"].items()
        if METADATA_TOPIC not in name
    }
    loading["log"] = once(line[:240] for line in loading["log"])[:4]
    strays = sorted(name.partition(".")[0] for name in tops if name.endswith("-stray") and not _was(name, before))
    return {"loading": loading, "stray": strays, "seconds": round(time.monotonic() - began), **seen}


def _top(path: Path) -> str:
    return path.name


def _was(name: str, before: dict[str, Files]) -> bool:
    return any(path.startswith(f"{name}/") for each in before.values() for path in each)


def happened(ran: dict[str, Any], before: dict[str, Files], reference: dict[str, Any] | None) -> dict[str, Any]:
    """Return what happened, as `predicted` says it. `ran`: the result of `run`; `reference`: that of the running broker
    on the undamaged disk, and the same once its open transactions had ended."""
    ends = {name.partition("/")[2]: facts for name, facts in ran["loading"]["partitions"].items()}
    own = {name.partition(".")[0]: facts for name, facts in ends.items() if name.endswith("-future")}
    own |= {name: facts for name, facts in ends.items() if not name.endswith(("-delete", "-stray", "-future"))}
    live = {name.partition("/")[0] for each in before.values() for name in each if "/" in name}
    offsets = {name: at for name, at in sorted(ran["offsets"].items()) if not _is_written(name)}
    did = {
        "loading": ran["loading"],
        "retention": {
            name: at[0] for name, at in ran["offsets"].items() if name in own and at[0] > own[name]["logStart"]
        },
        "aborted": sorted(name for name, at in offsets.items() if name in own and at[1] > own[name]["logEnd"]),
        "stray": ran["stray"],
        "created": sorted(name for name in ran["offsets"] if name not in live and name not in own),
        "offsets": offsets,
        "failed": ran["failed"],
        "seconds": ran["seconds"],
    }
    if reference is None:
        return did
    lost, outcomes = {}, {}
    for name, reads in reference["reads"].items():
        now = ran["reads"].get(name, {})
        gone = numbers(reads.get("uncommitted", "")) - numbers(now.get("uncommitted", ""))
        if gone and name.rpartition("-")[0] not in (COMPACTED, *COMPACTED_TOPICS):
            lost[name] = spans(gone)
        hidden = numbers(reads.get("uncommitted", "")) - numbers(reference["ended"].get(name, ""))
        if leaked := hidden & numbers(now.get("committed", "")):
            outcomes[name] = spans(leaked)
    if any(ran["last"].get(key, -1) < at for key, at in reference["last"].items()):
        lost[f"{COMPACTED}-0"] = "the last record of a key"
    groups = sum(ran["groups"].get(key, -1) < at for key, at in reference["groups"].items())
    return did | {"lost": lost, "outcomes": outcomes, "committedOffsets": groups}


# --- Differences ------------------------------------------------------------------------------------------------------


def differing(said: dict[str, Any], did: dict[str, Any]) -> list[str]:
    """Return each point in which the course was another one than the predicted."""
    found = differences(said["loading"], did["loading"])
    if not did["loading"]["starts"] or not said["loading"]["starts"]:
        return found
    others = {*did["created"]} - {*said["created"]}
    if len(others) == said["createdEmpty"]:  # which it had not by its checkpoints, and are not named
        created = [name for name in did["created"] if name not in others]
        did = {**did, "created": created, "offsets": {k: at for k, at in did["offsets"].items() if k not in others}}
    if any(MIXED_UP in each for each in said["events"]):
        said = {**said, "offsets": {name: at for name, at in said["offsets"].items() if name in did["offsets"]}}
    for fact in ("retention", "aborted", "stray", "created", "offsets"):
        if said[fact] != did[fact]:
            found.append(
                f"{fact}: predicted {_other(said[fact], did[fact])}, the broker {_other(did[fact], said[fact])}"
            )
    if "lost" not in did:
        return found
    for name in sorted({*said["lost"], *did["lost"]}):
        kinds, gone = said["lost"].get(name, {}), did["lost"].get(name, "")
        certain, may = (numbers(kinds.get(word, "")) for word in ("certain", "may"))
        if gone.startswith("the"):
            found.extend([f"{name}: {gone} is lost"] if not kinds else [])
        elif name.rpartition("-")[0] not in (COMPACTED, *COMPACTED_TOPICS) and not (
            certain <= numbers(gone) <= certain | may
        ):
            found.append(f"{name}: lost: predicted {kinds}, the broker {gone or 'nothing'}")
    if said["outcomes"] != [*did["outcomes"]]:
        found.append(f"read_committed consumers: predicted {said['outcomes']}, the broker {did['outcomes']}")
    number = did["committedOffsets"]
    word, _, count = said["committedOffsets"].partition(" ")
    if (word == "no" and number) or (word == "certain" and not number) or (count and number and int(count) != number):
        found.append(f"committed offsets: predicted {said['committedOffsets']}, {number} are lost")
    has_lost = bool(did["lost"] or did["outcomes"] or number)
    is_routine = set(did["lost"]) <= set(said["retention"]) and not did["outcomes"] and bool(count or not number)
    if has_lost and said["losesWithinHour"] == "no" and not is_routine:
        found.append("the plan says that nothing is lost")
    return found


def _other(one: Any, other: Any) -> Any:
    """Return what is in one of two dictionaries alone, or differs."""
    if not isinstance(one, dict):
        return one
    return {name: value for name, value in one.items() if other.get(name) != value}
