"""Output of `kdump space` for people: the verdict, what fills the disk, the table of what may be done, how to do what
is needed, and what must stay."""

from __future__ import annotations

import os
from typing import Any

from kdump.format.count_text import count_text, first_of
from kdump.kafka.startup_space import SMALLEST_FILE
from kdump.problems.problem import title_of
from kdump.questions.space import answer as answers
from kdump.questions.space.answer import SpaceDirectory, SpaceKept, SpaceStep, SpaceSummary, SpaceTopic
from kdump.questions.space.disks import needed_inodes
from kdump.render.amounts import duration_text, size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import write_answers
from kdump.render.stdout import Output

VERDICTS = {"full": "DISK FULL", "low": "LOW", "enough": "ENOUGH SPACE", "unknown": "UNKNOWN"}
MAX_LINES = 8
"""Maximum number of lines of a command that are shown without --full."""
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
        self._table()
        self._how(summary)
        self._kept()

    def _verdict(self, summary: SpaceSummary) -> None:
        directories: list[SpaceDirectory] = self.found.get(SpaceDirectory, [])
        verdict = VERDICTS[summary.verdict]
        where = ", ".join(directory.path for directory in directories)
        sizes = {
            directory.mount or directory.path: directory for directory in directories if directory.total is not None
        }
        rooms = [
            f"{size_text(place.free or 0)} free of {size_text(place.total or 0)} at {mount} ({place.fileSystem})"
            for mount, place in sizes.items()
        ]
        about = rooms or list(dict.fromkeys(filter(None, (directory.unknownBecause for directory in directories))))
        text = f"{where}: {verdict}" + (f": {', '.join(about)}" if about else "")
        nodes = (f"broker {directory.nodeId}" for directory in directories if directory.nodeId is not None)
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
            topics = count_text(summary.unknownTopics, "topic")
            text = f"UNKNOWN CONFIGS of {topics}: {title_of('space-unknown', 'missing')}"
            self.output.text(text, style="torn", indent=2)
        if summary.goal or summary.isEnough is False:
            is_enough = "enough" if summary.isEnough else "NOT ENOUGH: see below what else takes space"
            if summary.missingToStart:
                size = size_text(summary.missingToStart)
                is_enough = f"MAY NOT BE ENOUGH TO START: {size} more is, for certain"
                if any(_is_without_space(directory) for directory in sizes.values()):
                    is_enough = f"NOT ENOUGH TO START: {size} more must be free first"
            steps = count_text(summary.steps, "step")
            text = f"{size_text(summary.goal or 0)} to free; {steps} below: {size_text(summary.frees)}, {is_enough}"
            self.output.text(text, style="" if summary.isEnough else "bad")

    def _full_text(self, summary: SpaceSummary, sizes: dict[str, SpaceDirectory]) -> str:
        """Return what follows from the full file systems."""
        inodes = [
            f"{directory.inodesFree:,} inodes free at {mount}"
            for mount, directory in sizes.items()
            if _lacks_inodes(directory)
        ]
        consequence = f"; {', '.join(inodes)}: remove files, however small" if inodes else ""
        if summary.broker == answers.RUNNING:
            return f", until it has to write there{consequence}"
        if summary.free is not None and summary.free >= (summary.neededToStart or 0) and len(sizes) < 2:
            return consequence
        needs = "needs" if any(_is_without_space(directory) for directory in sizes.values()) else "may need up to"
        consequence = f", and {needs} {size_text(summary.neededToStart or 0)} free to start{consequence}"
        return consequence if len(sizes) < 2 else f"{consequence}; a log directory that is full goes offline"

    def _fills(self) -> None:
        directories: list[SpaceDirectory] = self.found.get(SpaceDirectory, [])
        parts = [(name, sum(getattr(place, key) or 0 for place in directories)) for name, key in PARTS]
        # All directories of one file system state the same number.
        elsewhere = {place.mount or place.path: place.elsewhere or 0 for place in directories}
        outside = (PARTS[-1][0], sum(elsewhere.values()))
        self.output.title("what fills it")
        largest = sorted(parts[:-1], key=lambda each: -each[1])
        texts = [
            f"{name} {size_text(size)}{self._named() if name == FOREIGN else ''}"
            for name, size in (*largest, outside)
            if size
        ]
        self.output.text("  " + ", ".join(texts), indent=2)
        write_answers(self.output, self.found.get(SpaceTopic, []), full=self.full)

    def _named(self) -> str:
        """Return the names of files that are not Kafka's, which a step moves away."""
        paths = [path for step in self.found.get(SpaceStep, []) if step.step == "otherFiles" for path in step.paths]
        names = [printable(path_text(os.path.basename(path))) for path in paths]
        return f" ({first_of(names, NAMED)})" if names else ""

    def _table(self) -> None:
        """Write the rows of each file system; those that are not needed are dim."""
        steps: list[SpaceStep] = self.found.get(SpaceStep, [])
        if not steps:
            self.output.title("nothing can be freed here")
        for mount in dict.fromkeys(step.mount for step in steps):
            rows = [step for step in steps if step.mount == mount]
            self.output.title("what may be done, in this order" + (f", at {mount}" if mount else ""))
            write_answers(self.output, rows, full=self.full, style=lambda step: "dim" if step.isNeeded is False else "")

    def _how(self, summary: SpaceSummary) -> None:
        """Write how to do what is needed, or with --full everything."""
        steps: list[SpaceStep] = self.found.get(SpaceStep, [])
        shown = [step for step in steps if self.full or step.isNeeded is not False]
        if not shown:
            return
        self.output.title("how")
        if summary.broker == answers.STOPPED and any(step.paths for step in shown):
            self.output.text("  " + title_of("space-order"), style="note")
        for step in shown:
            when = NEEDS[step.needs] + ("; " if step.frees else "")
            if step.frees and step.freesAfter:
                after = " after startup" if summary.broker != answers.RUNNING else ""
                when += f"free within {duration_text(step.freesAfter)}{after}"
                when += f", {size_text(step.freesAtOnce)} at once" if step.freesAtOnce else ""
            elif step.frees:
                when += "free at once"
            self.output.text(f"  {step.number}. {step.text} ({when})", indent=5)
            lines = step.command.splitlines()
            for line in lines if self.full else lines[:MAX_LINES]:
                self.output.line(self.output.paint("       " + printable(path_text(line)), "dim"))
            if len(lines) > MAX_LINES and not self.full:
                self.output.text(f"       … and {count_text(len(lines) - MAX_LINES, 'more line')} (--full)")
            if step.undo:
                self.output.text("     afterwards:")
                self.output.line(self.output.paint("       " + printable(path_text(step.undo)), "dim"))
        if summary.broker == answers.STOPPED and not summary.missingToStart:
            self.output.text("  " + title_of("space-order", "start"), indent=2)

    def _kept(self) -> None:
        kept: list[SpaceKept] = self.found.get(SpaceKept, [])
        for is_forbidden, title in ((False, "not offered"), (True, "never")):
            rows = [row for row in kept if row.isForbidden is is_forbidden]
            if rows:
                self.output.title(title)
            for row in rows:
                size = f" ({size_text(row.allocated)})" if row.allocated is not None else ""
                self.output.text(f"  {self._short(row.path)}{size}: {row.text}", indent=4)

    def _short(self, path: str) -> str:
        """Return a path without the log directory, if there is only one."""
        directories: list[SpaceDirectory] = self.found.get(SpaceDirectory, [])
        start = f"{directories[0].path.rstrip('/')}/" if len(directories) == 1 else ""
        return path[len(start) :] if start and path.startswith(start) else path


def _is_without_space(directory: SpaceDirectory) -> bool:
    """Return whether a stopped broker does not start: restart-plan has the same answer."""
    return directory.free is not None and directory.free < SMALLEST_FILE


def _lacks_inodes(directory: SpaceDirectory) -> bool:
    return directory.inodesFree is not None and directory.inodesFree < needed_inodes(directory.partitions)
