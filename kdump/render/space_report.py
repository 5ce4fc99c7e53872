"""Output of `kdump space` for people: the verdict, what fills the disk, the steps in the order in which to take them,
other values of retention, and what must stay."""

from __future__ import annotations

import os
from typing import Any

from kdump.forensics.space import answers
from kdump.forensics.space.answers import (
    SpaceCandidate,
    SpaceDirectory,
    SpaceKept,
    SpaceStep,
    SpaceSummary,
    SpaceTopic,
)
from kdump.forensics.space.startup_room import needed_inodes
from kdump.forensics.space.startup_steps import UNKNOWN_CONFIGS
from kdump.format.count_text import count_text, first_of
from kdump.render.amounts import duration_text, size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import Column, Table

VERDICTS = {"full": "DISK FULL", "low": "LOW", "enough": "ENOUGH SPACE", "unknown": "UNKNOWN"}
MAX_LINES = 8
"""Maximum number of lines of a command that are shown without --full."""
COSTS = {
    answers.NOTHING: "costs nothing",
    answers.DUE: "costs nothing that retention keeps",
    answers.RECORDS: "costs records",
    answers.REPLICA: "costs a replica",
    answers.JUDGE: "you decide what it costs",
}
TITLES = {
    "reservedBlocks": "hand over the blocks reserved for root",
    "postponeCleaning": "postpone the log cleaner's work",
    "retention": "lower retention",
    "retentionDue": "wait for retention",
    "compaction": "compaction",
    "replicas": "give up replicas that are complete elsewhere",
    "otherFiles": "move away files that are not Kafka's",
    "deleted": "remove deleted files",
    "stray": "remove a stray directory",
    "oldestSegments": "remove segments that are due, so that the broker can start",
}
NEEDS = {"stopped": "broker stopped", "running": "broker running", "any": "broker stopped or running"}
FOREIGN = "not Kafka's"
NAMED = 3
"""Maximum number of files that are not Kafka's which are named."""
PARTS = (
    ("live partitions", "liveBytes"),
    ("deleted", "deletedBytes"),
    ("stray", "strayBytes"),
    ("future", "futureBytes"),
    ("metadata log", "metadataBytes"),
    (FOREIGN, "otherBytes"),
    ("files with further hard links", "linkedBytes"),
    ("outside these directories", "elsewhere"),
)


class SpaceReport(Sink[Any]):
    """Writes everything at the end, because the verdict comes first. There are few answers: those of the largest
    topics."""

    def __init__(self, output: Output, *, full: bool) -> None:
        self.output = output
        self.full = full
        self.found: dict[type, list[Any]] = {}

    def add(self, answer: Any) -> None:
        self.found.setdefault(type(answer), []).append(answer)

    def end(self) -> None:
        if SpaceSummary not in self.found:
            return
        summary: SpaceSummary = self.found[SpaceSummary][0]
        self._verdict(summary)
        self._fills()
        self._steps(summary)
        self._candidates()
        self._kept()

    def _verdict(self, summary: SpaceSummary) -> None:
        directories: list[SpaceDirectory] = self.found.get(SpaceDirectory, [])
        verdict = VERDICTS[summary.verdict]
        where = ", ".join(each.path for each in directories)
        sizes = {each.mount or each.path: each for each in directories if each.total is not None}
        rooms = [
            f"{size_text(each.free or 0)} free of {size_text(each.total or 0)} at {mount} ({each.fileSystem})"
            for mount, each in sizes.items()
        ]
        about = rooms or list(dict.fromkeys(filter(None, (each.unknownBecause for each in directories))))
        text = f"{where}: {verdict}" + (f": {', '.join(about)}" if about else "")
        nodes = (f"broker {each.nodeId}" for each in directories if each.nodeId is not None)
        if summary.broker == answers.UNKNOWN:
            text += "; it shows neither the free space of the broker's disk nor whether the broker is running"
        else:
            text += f"; {next(nodes, 'the broker')} is {summary.broker}"
        if summary.verdict == "full":
            text += self._full_text(summary, sizes)
        if summary.unread:
            text += f"; {count_text(summary.unread, 'path')} could not be read"
        if summary.metadataProblem is not None:
            text += f"; configs may be outdated: {summary.metadataProblem}"
        if summary.isEnough is None:
            text += "; run kdump space on the broker's host, or state with --need how much is to be freed"
        style = {"full": "bad", "enough": "head"}.get(summary.verdict, "torn")
        self.output.text(text, style=style, indent=2)
        if summary.unknownTopics:
            text = (
                f"UNKNOWN CONFIGS of {count_text(summary.unknownTopics, 'topic')}: the metadata here does not have "
                f"them, or not the newest: {UNKNOWN_CONFIGS}"
            )
            self.output.text(text, style="torn", indent=2)
        if summary.goal or summary.isEnough is False:
            is_enough = "enough" if summary.isEnough else "NOT ENOUGH: see below what else takes space"
            if summary.missingToStart:
                is_enough = f"NOT ENOUGH TO START: {size_text(summary.missingToStart)} more must be free first"
            steps = count_text(summary.steps, "step")
            text = f"{size_text(summary.goal or 0)} to free; {steps} below: {size_text(summary.frees)}, {is_enough}"
            self.output.text(text, style="" if summary.isEnough else "bad")

    def _full_text(self, summary: SpaceSummary, sizes: dict[str, SpaceDirectory]) -> str:
        """Return what follows from the full file systems."""
        inodes = [f"{each.inodesFree:,} inodes free at {mount}" for mount, each in sizes.items() if _lacks_inodes(each)]
        text = f"; {', '.join(inodes)}: remove files, however small" if inodes else ""
        if summary.broker == answers.RUNNING:
            return f", until it has to write there{text}"
        if summary.free is not None and summary.free >= (summary.neededToStart or 0) and len(sizes) < 2:
            return text
        text = f", and needs {size_text(summary.neededToStart or 0)} free to start{text}"
        return text if len(sizes) < 2 else f"{text}; a log directory that is full goes offline"

    def _fills(self) -> None:
        directories: list[SpaceDirectory] = self.found.get(SpaceDirectory, [])
        parts = [(name, sum(getattr(each, key) or 0 for each in directories)) for name, key in PARTS]
        # All directories of one file system state the same number.
        elsewhere = {each.mount or each.path: each.elsewhere or 0 for each in directories}
        outside = (PARTS[-1][0], sum(elsewhere.values()))
        self.output.title("what fills it")
        largest = sorted(parts[:-1], key=lambda each: -each[1])
        texts = [
            f"{name} {size_text(size)}{self._named() if name == FOREIGN else ''}"
            for name, size in (*largest, outside)
            if size
        ]
        self.output.text("  " + ", ".join(texts), indent=2)
        topics: list[SpaceTopic] = self.found.get(SpaceTopic, [])
        if not topics:
            return
        table = Table(
            [
                Column("topic", "  topic", lambda each: "  " + printable(path_text(each.topic)), least=14),
                Column("partitions", "partitions", lambda each: f"{each.partitions:,}", True, 5),
                Column("allocated", "on disk", lambda each: size_text(each.allocated), True),
                Column("policy", "policy", lambda each: each.cleanupPolicy, False, 6),
                Column("ms", "retention.ms", lambda each: _ms(each), True, 8),
                Column("bytes", "retention.bytes", lambda each: _bytes(each.retentionBytes), True, 7),
                Column("due", "due now", lambda each: _some(each.dueNow), True, 8),
                Column("later", "within 24 h", lambda each: _some(each.dueIn24h), True, 4),
            ],
            self.output,
            full=self.full,
        )
        for each in topics:
            table.add(each)
        table.flush()

    def _named(self) -> str:
        """Return the names of files that are not Kafka's, which a step moves away."""
        paths = [path for each in self.found.get(SpaceStep, []) if each.step == "otherFiles" for path in each.paths]
        names = [printable(path_text(os.path.basename(path))) for path in paths]
        return f" ({first_of(names, NAMED)})" if names else ""

    def _steps(self, summary: SpaceSummary) -> None:
        steps: list[SpaceStep] = self.found.get(SpaceStep, [])
        self.output.title("steps, in this order" if steps else "nothing can be freed here")
        if any(each.step == "oldestSegments" for each in steps):
            text = (
                "  Take them before you start the broker: it needs room to start, and deletes segments only afterwards."
            )
            self.output.text(text, style="note", indent=2)
        for each in steps:
            about = f" of {each.topic}" if each.topic else ""
            frees = ("about " if each.isEstimate else "") + size_text(each.frees)
            frees = f"frees {frees}, " if each.frees else ""
            title = f"{each.number}. {TITLES[each.step]}{about}: {frees}{COSTS[each.cost]}"
            self.output.text(f"  {title}", style="name", indent=5)
            when = NEEDS[each.needs] + ("; " if each.frees else "")
            if not each.frees:
                pass
            elif each.freesAfter is None:
                when += "free once the log cleaner has cleaned it"
            elif each.freesAfter == 0:
                when += "free at once"
            else:
                after = " after startup" if summary.broker != answers.RUNNING and each.how != "files" else ""
                when += f"free within {duration_text(each.freesAfter)}{after}"
            self.output.text(f"     {each.text} ({when})", indent=5)
            lines = each.command.splitlines()
            shown = lines if self.full else lines[:MAX_LINES]
            for line in shown:
                self.output.line(self.output.paint("       " + printable(path_text(line)), "dim"))
            if each.undo:
                self.output.text("     afterwards:")
                self.output.line(self.output.paint("       " + printable(path_text(each.undo)), "dim"))
            if len(lines) > len(shown):
                self.output.text(f"       … and {count_text(len(lines) - len(shown), 'more line')} (--full)")
        if steps and summary.broker == answers.STOPPED and not summary.missingToStart:
            self.output.text("  Then see in kdump restart-plan what a startup does, and start the broker.", indent=2)

    def _candidates(self) -> None:
        found: list[SpaceCandidate] = self.found.get(SpaceCandidate, [])
        if not found:
            return
        self.output.title("what lower retention frees at once (the active segment stays)")
        table = Table(
            [
                Column("topic", "  topic", lambda each: "  " + printable(path_text(each.topic)), least=14),
                Column("config", "config", lambda each: each.config),
                Column("current", "now", lambda each: _value(each, each.current), True, 6),
                Column("value", "to", lambda each: _value(each, each.value), True),
                Column("set", "value", lambda each: str(each.value), True, 8),
                Column("frees", "frees", lambda each: size_text(each.frees), True),
                Column("segments", "segments", lambda each: f"{each.segments:,}", True, 4),
                Column("leaves", "leaves", lambda each: size_text(each.leaves), True, 5),
                Column("step", "", lambda each: "<- step above" if each.isRecommended else "", False, 7),
            ],
            self.output,
            full=self.full,
        )
        for each in found:
            table.add(each)
        table.flush()
        self.output.text(
            "  set one: kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name TOPIC "
            "--add-config CONFIG=VALUE",
            style="dim",
            indent=4,
        )

    def _kept(self) -> None:
        found: list[SpaceKept] = self.found.get(SpaceKept, [])
        for is_forbidden, title in ((False, "not offered"), (True, "never")):
            rows = [each for each in found if each.isForbidden is is_forbidden]
            if rows:
                self.output.title(title)
            for each in rows:
                size = f" ({size_text(each.allocated)})" if each.allocated is not None else ""
                self.output.text(f"  {self._short(each.path)}{size}: {each.text}", indent=4)

    def _short(self, path: str) -> str:
        """Return a path without the log directory, if there is only one."""
        directories: list[SpaceDirectory] = self.found.get(SpaceDirectory, [])
        start = f"{directories[0].path.rstrip('/')}/" if len(directories) == 1 else ""
        return path[len(start) :] if start and path.startswith(start) else path


def _lacks_inodes(directory: SpaceDirectory) -> bool:
    return directory.inodesFree is not None and directory.inodesFree < needed_inodes(directory.partitions)


def _some(size: int) -> str:
    return size_text(size) if size else ""


def _ms(topic: SpaceTopic) -> str:
    if "delete" not in topic.cleanupPolicy:
        return ""
    text = "none" if topic.retentionMs < 0 else duration_text(topic.retentionMs)
    return text if topic.isConfigKnown else f"{text}?"


def _bytes(size: int) -> str:
    return "" if size < 0 else size_text(size)


def _value(candidate: SpaceCandidate, value: int) -> str:
    if value < 0:
        return "none"
    return duration_text(value) if candidate.config.endswith(".ms") else size_text(value)
