"""Output of `kdump doctor` for people: the verdict, what was not read, what to do, in order, and at the end the disks
and the questions. The first screen has the verdict, what not to do, and the first item with its first action."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdump.check.finding import ERROR
from kdump.format.count_text import count_text, first_of
from kdump.incident.doctor.answer import (
    DAMAGE,
    LOSES,
    NOTHING,
    SPACE,
    STARTUP,
    STOPS,
    UNKNOWN,
    ExaminedDisk,
    Item,
    LargestTopic,
    Page,
    Question,
    page_order,
)
from kdump.questions.restart_plan.course import CERTAIN
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.text import shell_words

NAMED = 5
"""Maximum number of partitions of an entry that are named."""
MAX_OF_KIND = 10
"""Maximum number of entries with the same code; further ones are counted. JSON has all items."""
MAX_ACTIONS = 4
"""Maximum number of actions of an entry; the page of findings has the others."""
LABEL = 9
"""Columns of the labels of an entry, with the space after them."""
STYLES = {"error": "bad", "warning": "torn"}

DoctorAnswer = ExaminedDisk | Item | LargestTopic | Question | Page


Kind = tuple[str, str, str, str]


@dataclass
class _Entry:
    """Items of one kind: the first one, and how many there are of which partitions, groups or files. `is_rest`: they
    differ from each other, and are too many to be shown."""

    first: Item
    count: int = 0
    names: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    is_rest: bool = False
    has_one_evidence: bool = True
    """Whether the evidence of all is the same."""
    has_same_actions: bool = True


class DoctorReport(Sink[DoctorAnswer]):
    """Writes everything at the end: the verdict comes first. `paths`: what is examined."""

    shows_unread = True

    def __init__(self, output: Output, paths: Sequence[str] = ()) -> None:
        self.output, self.paths = output, paths
        self._entries: dict[tuple[Kind, str], _Entry] = {}
        self._entries_of: Counter[Kind] = Counter()
        self._questions_with_errors: set[str] = set()
        self._largest: list[LargestTopic] = []
        self._questions: list[Question] = []
        self._disks: list[ExaminedDisk] = []
        self._nevers: dict[str, int] = {}
        """What not to do, with the number of the first entry that states it."""

    def add(self, answer: DoctorAnswer) -> None:
        if isinstance(answer, Item):
            self._item(answer)
        elif isinstance(answer, LargestTopic):
            self._largest.append(answer)
        elif isinstance(answer, ExaminedDisk):
            self._disks.append(answer)
        elif isinstance(answer, Question):
            self._questions.append(answer)
        else:
            self._page(answer)

    # --- what was examined ---

    def _disk(self, disk: ExaminedDisk) -> None:
        of = f"node {disk.nodeId} of cluster {disk.clusterId}" if disk.nodeId else "no node known"
        shut = {True: "clean shutdown", False: "UNCLEAN SHUTDOWN", None: "shutdown unknown"}[disk.clean]
        shut = shut if disk.process is None else f"A BROKER IS RUNNING on it (process {disk.process})"
        text = f"{disk.path}: {of}, {count_text(disk.partitions, 'partition')}; {shut}"
        self.output.text(text, disk.path, "head")

    def _limits(self) -> None:
        """Write what limits everything that follows."""
        limits: dict[str, list[str]] = {}
        for disk in self._disks:
            if disk.newer:
                limits.setdefault(f"UNKNOWN RELEASE: {first_of(disk.newer)}", []).append(disk.path)
            if disk.process is not None:
                text = "A BROKER IS RUNNING: what is stated about its startup is for a start after a kill"
                limits.setdefault(text, []).append(f"{disk.path} (process {disk.process})")
            if disk.copyOf is not None:
                text = f"A COPY of {disk.copyOf}, or that of this one: transactions and schema IDs are counted once"
                limits.setdefault(text, []).append(disk.path)
        for text, paths in limits.items():
            self.output.text(f"  {first_of(paths, NAMED)}: {text}")

    def _question(self, question: Question) -> None:
        texts = question.byBroker or [question.answer or "not examined"]
        if question.question == SPACE and self._largest:
            total = f"{size_text(sum(topic.bytes for topic in self._largest))} ({self._allocated()})"
            named = ", ".join(f"{topic.topic} {size_text(topic.bytes)}" for topic in self._largest)
            shown = shell_words(self.paths)
            texts[-1] += f"; the largest have {total}: {named}; more: kdump ls {shown} --sort size"
        label = f"  {question.question:<13}"
        style = "bad" if question.question in self._questions_with_errors else ""
        for answer in texts:
            lines = self.output.wrapped(printable(path_text(label + answer)), len(label))
            for number, line in enumerate(lines):
                self.output.line(self.output.paint(line, style) if style and number == 0 else line)
            label = " " * len(label)

    def _allocated(self) -> str:
        occupied = sum(topic.onDisk for topic in self._largest)
        return f"{size_text(occupied)} allocated" if occupied else "allocated size unknown"

    # --- the page ---

    def _item(self, item: Item) -> None:
        if item.severity == ERROR:
            self._questions_with_errors.add(item.question)
        is_of_node = item.question == STARTUP and not item.name  # the same cause on several nodes is one entry
        kind = (item.question, item.code, item.severity, "" if is_of_node else item.source)
        title = item.title if is_of_node else item.titleForAll or item.title
        if (kind, title) not in self._entries and self._entries_of[kind] >= MAX_OF_KIND:
            title = ""  # that of all others
        if (kind, title) not in self._entries:
            self._entries_of[kind] += 1
            self._entries[kind, title] = _Entry(item, is_rest=not title)
        entry = self._entries[kind, title]
        entry.count += 1
        entry.has_one_evidence &= item.evidence == entry.first.evidence
        entry.has_same_actions &= item.actions == entry.first.actions
        name = item.name or (item.file or item.source).removeprefix(f"{item.source}/")
        if len(entry.names) <= NAMED and name not in entry.names:
            entry.names.append(name)
        if item.source not in entry.sources:
            entry.sources.append(item.source)

    def _page(self, page: Page) -> None:
        entries = sorted(self._entries.values(), key=lambda each: page_order(each.first.priority, each.first.severity))
        if page.interrupted:
            self.output.text("ENDED BY A SIGNAL: this is what was known by then", "ENDED BY A SIGNAL", "bad")
        left = self._not_examined(page)
        head = ("NOT ALL WAS READ", "bad") if page.unread else ("not examined", "torn")
        short = self._short(left, page) if left and (entries or page.unread) else ""
        if short and page.unread:
            self.output.text(f"{head[0]}: {short}", *head)
        self.output.text(*self._verdict(page, len(entries)))
        self._limits()
        if short and not page.unread:
            self.output.text(f"{head[0]}: {short}", *head)
        for number, entry in enumerate(entries, 1):
            self._entry(number, entry)
        self.output.line("")
        if left:
            self.output.line(self.output.paint(*head))
        for what, text in left:
            self.output.text(f"  {what}: {text}")
        for disk in self._disks:
            self._disk(disk)
        for question in self._questions:
            self._question(question)

    def _not_examined(self, page: Page) -> list[tuple[str, str]]:
        """Return what was not examined, each with its question."""
        left = [("not read", text) for text in page.unread]
        for question in self._questions:
            left += [(question.question, text) for text in question.notExamined]
            if question.question == DAMAGE and question.bytesLeft:
                segments = count_text(question.segmentsLeft, "segment")
                partitions = count_text(question.partitionsLeft, "partition")
                text = f"the records of {size_text(question.bytesLeft)} in {segments} of {partitions}"
                headers = count_text(question.headersLeft, "partition")
                headers = f", and the headers of {headers}" if question.headersLeft else ""
                left.append((question.question, f"{text}{headers}; kdump verify reads everything"))
        return left

    def _short(self, left: list[tuple[str, str]], page: Page) -> str:
        """Return in a line what was not examined: what could not be read, or the questions."""
        first = ": ".join(left[0])
        if len(left) == 1:
            return first
        return (first if page.unread else f"some of {', '.join(dict(left))}") + "; more below the items"

    def _verdict(self, page: Page, entries: int) -> tuple[str, str, str]:
        to_do = count_text(entries, "thing to do", "things to do, in this order")
        again = "RESTART" if any(disk.process is not None for disk in self._disks) else "START"
        if page.verdict == STOPS:
            head = "THE BROKER DOES NOT START"
            return f"{head}: {to_do}", head, "bad"
        if page.verdict == UNKNOWN:
            head = "UNKNOWN WHETHER THE BROKER STARTS"
            return f"{head}: {to_do}", head, "torn"
        if page.verdict == LOSES:
            head = f"DO NOT {again} THE BROKER YET"
            is_lost = "is" if page.losesWithinHour == CERTAIN else "may be"
            return f"{head}, data {is_lost} lost then or within an hour: {to_do}", head, "bad"
        if page.verdict != NOTHING:
            return to_do.upper() if entries == 1 else f"{entries:,} THINGS TO DO, in this order", "", ""
        head = "NOTHING TO DO"
        return (head, head, "name") if page.isComplete else (f"{head} in what was examined", head, "torn")

    def _entry(self, number: int, entry: _Entry) -> None:
        item = entry.first
        self.output.line("")
        head = f"{number}. {item.severity}"
        name = own = item.name if len(entry.sources) == 1 else item.source
        if entry.count > 1:
            names = (entry.names if len(entry.sources) == 1 else entry.sources)[:NAMED]
            more = entry.count - len(names)
            name = ", ".join(names) + (f" and {more:,} more" if more > 0 else "")
        if entry.is_rest:
            found = count_text(entry.count, "more item", "more items")
            self.output.text(f"{head}: {found} [{item.code}]: {name}", head, STYLES.get(item.severity, ""), indent=3)
            self._command(item.commandForAll or item.commands[0])
            return
        about = f" {name}:" if name else ""
        title = item.title
        if entry.count > 1 and item.titleForAll:
            title = item.titleForAll
        self.output.text(f"{head}:{about} {title} [{item.code}]", head, STYLES.get(item.severity, ""), indent=3)
        if title != item.title:
            self._labelled("first", f"{item.name}: {item.title}" if item.name else item.title)
        of_first = "" if entry.count == 1 or not own else f"{own}: "
        if number == 1:
            self._never(number, item)
        named = dict(zip(item.actions, item.named))
        for line in item.actions[:MAX_ACTIONS]:
            values = named.get(line, ())
            is_clear = entry.has_same_actions or any(_names(value, own) or value == item.group for value in values)
            self._labelled("do", line if is_clear else of_first + line)
        if len(item.actions) > MAX_ACTIONS:
            others = count_text(len(item.actions) - MAX_ACTIONS, "more action")
            self._labelled("do", f"{others}: docs/findings.md#{item.code}")
        if item.impact:
            self._labelled("impact", item.impact)
        for line in item.evidence:
            is_clear = entry.has_one_evidence or _names(line, own)
            self._labelled("evidence", line if is_clear else of_first + line)
        commands = list(item.commands)
        if entry.count > 1 and item.commandForAll:
            commands = [item.commandForAll, *commands[:1]]
        for line in dict.fromkeys(commands):
            self._command(line)
        if number > 1:
            self._never(number, item)

    def _never(self, number: int, item: Item) -> None:
        """Write what not to do: for the first item, before what to do."""
        for line in item.never:
            if line not in self._nevers:
                self._labelled("never", line)
        before = sorted({self._nevers[line] for line in item.never if line in self._nevers})
        if before:
            self._labelled("never", f"as in {' and '.join(map(str, before))}")
        for line in item.never:
            self._nevers.setdefault(line, number)

    def _labelled(self, label: str, text: str) -> None:
        start = f"   {label:<{LABEL}}"
        self.output.text(start + text, label, "head", indent=len(start))

    def _command(self, line: str) -> None:
        """Write a command on one line, so that it can be copied."""
        self.output.line(f"   {self.output.paint('more', 'head')}{'':<{LABEL - 4}}{printable(path_text(line))}")


def _names(text: str, name: str) -> bool:
    """Return True if a text has a name as a whole, as in a path: not orders-0 in my-orders-0 or orders-01."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None
