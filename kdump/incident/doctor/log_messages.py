"""What a broker's log says: its messages, from kdump.incident.explain, next to what the disks show.

The log is read before everything else. A message whose cause another item states is evidence of that item; what is left
at the end becomes items, with what is on the disk where it points to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timezone, tzinfo

from kdump.format.count_text import count_text
from kdump.format.iso_time import iso
from kdump.incident.doctor.answer import STARTUP, Item, Priority, Question
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import Examination, OutOfTime, TimeLimit, command
from kdump.incident.explain.answer import Evidence, Explanation
from kdump.incident.explain.broker_paths import partition_of
from kdump.incident.explain.catalogue import by_name, family_of
from kdump.incident.explain.disk_evidence import DiskEvidence
from kdump.incident.explain.disk_places import DiskPlaces
from kdump.incident.explain.grouping import read_entry
from kdump.incident.explain.log_entries import LEVELS, SEVERE, Entry
from kdump.incident.explain.run import ReadLog, look_up
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.log import file_kinds
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.paths import PARTITION

READING_SHARE = 0.6
"""Maximum share of the time that is spent on reading logs: the rest is for looking at the disk."""
JOINED = 3
"""Number of kinds of messages that are shown as evidence of another item."""
SHORT = 300
"""Number of characters of a message that are shown."""
ERRORS = LEVELS[:2]


class LogMessages:
    """The messages of the logs at `paths`; - is standard input. `zone`: that of times without one, and of the times in
    evidence."""

    def __init__(self, paths: Sequence[str], zone: tzinfo = timezone.utc) -> None:
        self.paths, self.zone = paths, zone
        self.logs: list[ReadLog] = []
        self.several_brokers = False
        self._of_log: dict[int, str] = {}
        """The log of each explanation, by its id."""
        self._open: list[Explanation] = []
        """Messages whose cause no item has stated so far, in the order in which to look at them."""
        self._stated = 0
        self._by_code: dict[str, list[Explanation]] = {}
        self._by_name: dict[str, list[Explanation]] = {}
        self._of_startup: list[Explanation] = []

    def read(self, question: Question, limit: TimeLimit, run: Run) -> None:
        """Read the logs, as far as the time allows."""
        part = limit.part(READING_SHARE)

        def progress(count: int) -> None:
            run.more(count)
            part.raise_if_over()

        for number, path in enumerate(self.paths):
            log = ReadLog(path, self.zone)
            self.logs.append(log)
            try:
                log.read(Run(more=progress))
            except SourceError as error:
                question.unread.append(str(error))
            except OutOfTime:
                rest = [_name(other) for other in self.paths[number + 1 :]]
                left = f" and of {', '.join(rest)}" if rest else ""
                question.notExamined.append(
                    f"the time was over before the end of {_name(path)}{left}: run {_explain(self.paths[number:])}"
                )
                break
            else:
                if log.error is not None:
                    question.unread.append(log.error)
            finally:
                self._take(log)

    def _take(self, log: ReadLog) -> None:
        for explanation in log.groups.explanations():
            message = by_name().get(explanation.message or "")
            if message is None or explanation.level not in SEVERE:
                continue  # a routine message is of interest only next to others
            self._of_log[id(explanation)] = log.path
            self._open.append(explanation)
            self._by_name.setdefault(message.name, []).append(explanation)
            for code in message.codes:
                self._by_code.setdefault(code, []).append(explanation)
            if message.plan:
                self._of_startup.append(explanation)

    def joined(self, item: Item) -> Item:
        """Return an item with the messages whose cause it states as evidence. If the log has them as errors, the item
        is as urgent as they are."""
        predicted = messages_of(item)
        of_startup = self._of_startup if item.question == STARTUP else []
        named = (message for name in predicted for message in self._by_name.get(name, ()))
        near = [*self._by_code.get(item.code, ()), *of_startup, *named]
        stated = {id(each): each for each in near if states(item, predicted, each, several=self.several_brokers)}
        new = [message for message in self._open if id(message) in stated]
        if not new:
            return item
        self._open = [message for message in self._open if id(message) not in stated]
        self._stated += len(new)
        lines = [self._line(message) for message in new[:JOINED]]
        if len(new) > JOINED:
            lines.append(f"and {count_text(len(new) - JOINED, 'more kind')} of messages in the log")
        priority = min((item.priority, *(_priority(message) for message in new)))
        return item._replace(evidence=(*item.evidence, *lines), priority=priority)

    def report(self, disks: Disks, on: Examination, *, looks: bool = True) -> None:
        """Report what is left as items. `looks`: at the disk."""
        question = on.question
        disk = self._disk(disks, on) if looks else None
        not_looked = 0
        while self._open:
            message = self._open[0]
            try:
                if disk is not None:
                    on.limit.raise_if_over()
                paths = look_up(message, disk)
            except OutOfTime:
                disk = None
                paths = look_up(message, None)
            not_looked += disk is None
            self._open.pop(0)
            self._item(message, paths, disks, on)
        if not_looked and looks:
            question.notExamined.append(
                f"the time was over: {count_text(not_looked, 'kind')} of messages not looked up on the disks; run "
                f"{_explain(self.paths, disks.paths)}"
            )
        if disk is not None:
            self._of_other_disks(disk.places, question)
        self._unknown(question)
        question.answer = self._answer()
        question.isComplete = not (question.notExamined or question.unread)

    def _disk(self, disks: Disks, on: Examination) -> DiskEvidence:
        return DiskEvidence(
            tuple(disks.paths),
            replace(disks.options, more=on.read_some),
            checks=disks.units,
            disks=disks,
            whole=False,  # which are questions of their own
        )

    def _item(self, logged: Explanation, paths: dict[str, str], disks: Disks, on: Examination) -> None:
        log = self._of_log[id(logged)]
        name = PARTITION.match(logged.about.get("partition", ""))
        file = paths.get("file") or paths.get("path")
        place: Evidence | None = next(
            (fact for fact in logged.evidence if fact.path == file and fact.position is not None), None
        )
        on.item(
            _priority(logged),
            "error" if logged.level in ERRORS else "warning",
            logged.message or "",
            log,
            logged.meaning,
            titleForAll=logged.meaning,
            impact=logged.impact,
            topic=name["topic"] if name is not None else None,
            partition=int(name["partition"]) if name is not None else None,
            group=logged.about.get("group"),
            evidence=(self._line(logged), *(fact.shown for fact in logged.evidence)),
            file=file,
            position=None if place is None else place.position,
            offset=None if place is None else place.offset,
            findings=logged.count,
            commands=tuple(logged.commands),
            commandForAll=_explain([log], disks.paths),
            actions=(logged.action,),
            never=(logged.never,) if logged.never else (),
        )

    def _line(self, logged: Explanation) -> str:
        """Return where a message is in the log, how often, and when."""
        parts = [f"{_name(self._of_log[id(logged)])} line {logged.line}: {logged.level}"]
        if logged.count > 1:
            parts.append(count_text(logged.count, "time"))
        if logged.first is not None:
            until = f" to {iso(logged.last, self.zone)}" if logged.last != logged.first else ""
            parts.append(iso(logged.first, self.zone) + until)
        texts = [logged.text, *logged.exceptions[-1:]]  # the innermost exception says why
        shown = "; ".join(part if len(part) <= SHORT else part[:SHORT] + "…" for part in dict.fromkeys(texts))
        return f"{', '.join(parts)}: {shown}"

    def _of_other_disks(self, places: DiskPlaces, question: Question) -> None:
        """Say so if a log names none of these partitions: it then explains nothing of these disks."""
        for log in self.logs:
            named = _partitions(log.groups.explanations())
            if named and not named & places.partitions.keys():
                names = count_text(len(named), "partition")
                question.notExamined.append(
                    f"{_name(log.path)} names {names}, and none is on these disks: it may be another broker's log"
                )

    def _unknown(self, question: Question) -> None:
        for log in self.logs:
            if log.groups.unknown:
                is_one = log.groups.unknown == 1
                question.notExamined.append(
                    f"{count_text(log.groups.unknown, 'message')} above INFO {'is' if is_one else 'are'} not known: "
                    f"{_explain([log.path])}"
                )

    def _answer(self) -> str:
        texts = []
        for log in self.logs:
            if not log.lines:
                continue
            explained = [explanation for explanation in log.groups.explanations() if explanation.message is not None]
            errors = sum(explanation.level in ERRORS for explanation in explained)
            warnings = sum(explanation.level in SEVERE for explanation in explained) - errors
            answer = f"{_name(log.path)}: {count_text(log.lines, 'line')}, "
            answer += (
                f"{count_text(log.groups.known, 'message')} explained as {len(explained):,}"
                if explained
                else "none explained"
            )
            if explained:
                answer += f" ({count_text(errors, 'error')}, {count_text(warnings, 'warning')})"
            if log.groups.first is not None:
                answer += f", {iso(log.groups.first, self.zone)} to {iso(log.groups.last, self.zone)}"
            texts.append(answer)
        if self._stated:
            is_are = "is" if self._stated == 1 else "are"
            texts.append(f"{self._stated:,} of them {is_are} evidence of what other questions found")
        return "; ".join(texts)


def _partitions(messages: Iterable[Explanation]) -> set[str]:
    """Return the partitions that messages name; without internal topics, which are on most disks."""
    named = {message.about["partition"] for message in messages if "partition" in message.about}
    return {name for name in named if not name.startswith("__")}


def _priority(logged: Explanation) -> int:
    """Return how urgent a message is: first what a broker says about its startup and its storage."""
    if logged.level not in ERRORS:
        return Priority.DEGRADED
    message = by_name().get(logged.message or "")
    return Priority.STOPS if logged.level == "FATAL" or (message is not None and message.plan) else Priority.CLIENTS


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _explain(logs: Sequence[str], disks: Sequence[str] = ()) -> str:
    return command("explain", *logs, *(word for path in disks for word in ("--disk", path)))


OF_STARTUP = ("record_reads", "recovery", "startup", "identity", "storage_failures", "small_files", "kraft")
"""Families of messages whose cause is that of a startup's failure or loss, if both are about the same file."""
OF_DIRECTORY = ("startup-stops", "startup-offline")
"""Items that explain why a log directory failed."""


LOADING = "There was an error in one of the threads during logs loading"
"""What a broker logs what stops its startup with."""


def messages_of(item: Item) -> frozenset[str]:
    """Return the names of the messages that the broker logs for what an item predicts, or that its problem covers."""
    readings = [read_entry(Entry(LOADING, causes=[exception])) for exception in item.logged]
    messages = (each for reading in readings if reading is not None for each in (reading.message, reading.inner))
    return frozenset((*(each.name for each in messages if each is not None and not each.general), *item.covers))


LATER = ("startup-retention", "startup-offsets-expire")
"""What happens after a startup, and is not the cause of what it logs."""


def states(item: Item, predicted: frozenset[str], found: Explanation, *, several: bool) -> bool:
    """Return True if an item states the cause of a message: it has the code of a finding that belongs to the message,
    or is about the startup that logged it; and both are about the same partition and file, as far as they name one.

    `predicted`: the messages_of the item; `several`: whether the disks are of several brokers, so that one must be the
    broker whose paths the message names."""
    message = by_name().get(found.message or "")
    if message is None or not _same_place(item, found, several=several):
        return False
    if item.code in message.codes or found.message in predicted or (found.causedBy or "") in predicted:
        return True
    if item.question != STARTUP or not message.plan or family_of(message) not in OF_STARTUP or item.code in LATER:
        return False
    if _partition(found) is not None or _file(found.about.get("file")) == _file(item.file) != "":
        return True
    directory = found.about.get("directory", "")
    names = {os.path.basename(path.rstrip("/")) for path in (directory, item.source)}
    return "file" not in found.about and item.code in OF_DIRECTORY and len(names) == 1


def _same_place(item: Item, message: Explanation, *, several: bool) -> bool:
    about = message.about
    path = about.get("file") or about.get("directory") or ""
    if several and os.path.basename(item.source.rstrip("/")) not in path.split("/"):
        return False
    if about.get("transactionalId", item.transactionalId) != item.transactionalId:
        return False
    named, own = _partition(message), _partition_of_item(item)
    if named is not None and named != own:
        return False
    file, of_item = _file(about.get("file")), _file(item.file)
    return not (file and of_item) or file == of_item


def _partition(found: Explanation) -> str | None:
    """Return the partition that a message is about; None if it is about a file next to the partitions, or none."""
    about = found.about
    if _file(about.get("file")) and partition_of({"file": about["file"]}) is None:
        return None
    message = by_name().get(found.message or "")
    if "partition" not in about and message is not None and family_of(message) == "kraft":
        return METADATA_LOG
    return about.get("partition")


def _partition_of_item(item: Item) -> str | None:
    if item.topic is not None and item.partition is not None:
        return f"{item.topic}-{item.partition}"
    return partition_of({"file": os.path.abspath(item.file)}) if item.file else None


def _file(path: str | None) -> str:
    """Return the name of a file; empty for a path that is a directory, or nothing of Kafka's."""
    name = os.path.basename(path or "")
    return name if file_kinds.by_name(name)[0] is not None else ""
