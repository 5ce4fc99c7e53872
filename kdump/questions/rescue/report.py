"""Text report of `kdump rescue`: what is rescued, the copies, what is left out and invented, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import Any

from kdump.format.count_text import count_text
from kdump.questions.rescue.answer import (
    DAMAGED,
    DIVERGES,
    KEPT,
    OTHER,
    RescueController,
    RescueCopy,
    RescueDirectory,
    RescueInvention,
    RescueLoss,
    RescueRecord,
    RescueStep,
    RescueSummary,
    RescueTopic,
    RescueUnknown,
)
from kdump.questions.rescue.topic_configs import BROKER_MIN_ISR, KAFKAS_OWN, MIN_ISR
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import write_answers
from kdump.render.stdout import Output
from kdump.render.times import iso

MAX_SHOWN = 20
"""Maximum number of lines of the ledger that are printed unless --full is given; the ledger has all."""


class RescueReport(Sink[Any]):
    """Collects the answers, and writes them at the end."""

    def __init__(self, output: Output, zone: tzinfo, *, full: bool = False) -> None:
        self.output, self.zone, self.full = output, zone, full
        self.answers: list[Any] = []

    def add(self, answer: Any) -> None:
        self.answers.append(answer)

    def _all(self, cls: type) -> list[Any]:
        return [answer for answer in self.answers if isinstance(answer, cls)]

    def end(self) -> None:
        summaries: list[RescueSummary] = self._all(RescueSummary)
        if not summaries:
            return
        copies: list[RescueCopy] = self._all(RescueCopy)
        if summaries[0].fromData:
            self._rebuilt(summaries[0], self._all(RescueLoss))
        else:
            self._head(summaries[0], copies)
            self._copies(copies)
        records = (record_text(each) for each in self._all(RescueRecord) if each.fate != KEPT)
        self._section("records that are not kept", records)
        self._section("records that are LOST", map(loss_text, self._all(RescueLoss)))
        self._section("topics", map(topic_text, self._all(RescueTopic)))
        self._section("directories that are not used as they are", map(directory_text, self._all(RescueDirectory)))
        unknowns = (f"{each.what}: {each.reason}" for each in self._all(RescueUnknown))
        self._section("not known, and to be set again", unknowns)
        self._title("invented")
        for each in self._all(RescueInvention):
            was = "" if each.was is None else f"{_value(each.was)} becomes "
            self.output.text(f"  {each.what}: {was}{_value(each.now)}; {each.reason}")
        self._title("controllers")
        for controller in self._all(RescueController):
            self._controller(controller)
        self._title("next steps")
        for number, step in enumerate(self._all(RescueStep), 1):
            self.output.text(f"  {number}. {step.text}")
            if step.command is not None:
                self.output.line(f"       {printable(path_text(step.command))}")  # on one line, so that you can copy it

    def _rebuilt(self, summary: RescueSummary, losses: list[RescueLoss]) -> None:
        verb = "REBUILT" if summary.out is not None else "NOTHING WRITTEN (--dry-run)"
        lost = []
        if summary.lostPartitions:
            lost.append(f"{count_text(summary.lostPartitions, 'partition')} LOST, without a copy")
        if summary.lostOffsets:
            lost.append(f"{count_text(summary.lostOffsets, 'offset')} of replicas LOST, which no leader has")
        damaged = sum(loss.nodeId is not None and loss.lastOffset is None for loss in losses)
        if damaged:
            lost.append(f"{count_text(damaged, 'partition')} DAMAGED")
        if summary.notUsed:
            lost.append(f"{_directories(summary)} NOT USED")
        what = ", ".join(lost) or "every record of every copy is kept"
        self.output.text(f"{verb}: the metadata, from the partitions on these disks: {what}", verb, "bad")
        self.output.text("users, ACLs, quotas and other configs are LOST; see below", "LOST", "bad")
        self._counts(summary)

    def _head(self, summary: RescueSummary, copies: list[RescueCopy]) -> None:
        left = summary.leftOut + summary.dependents
        lost = f"{count_text(left, 'record')} LEFT OUT" if left else "no record left out"
        own = sum(copy.ownOffsets for copy in copies)
        if own:
            lost += f", {count_text(own, 'record')} of other copies NOT USED"
        damaged = sum(copy.state == DAMAGED for copy in copies)
        if damaged:
            lost += f", {count_text(damaged, 'other copy', 'other copies')} DAMAGED"
        if summary.damagedOffset is not None:
            lost += f", the end of this copy is DAMAGED from offset {summary.damagedOffset} on"
        if summary.notUsed:
            lost += f", {_directories(summary)} NOT IN IT"
        if summary.losesAtStart:
            verb = "THE FIRST START LOSES RECORDS" + ("" if summary.losesLeast else " IN THE WRONG ORDER")
            amount = count_text(summary.losesAtStart, "offset")
            self.output.text(f"{verb}: up to {amount}: {summary.worstAtStart}; see the steps below", verb, "bad")
        verb = "RESCUED" if summary.out is not None else "NOTHING WRITTEN (--dry-run)"
        when = "" if summary.endTimestamp is None else f", {iso(summary.endTimestamp, self.zone)}"
        source = path_text(summary.source or "")
        self.output.text(
            f"{verb}: the metadata of {source} up to offset {summary.endOffset - 1}{when}: {lost}", verb, "bad"
        )
        self._counts(summary)

    def _counts(self, summary: RescueSummary) -> None:
        counts = [
            *(count_text(summary.brokers, "broker"), count_text(summary.topics, "topic")),
            *(count_text(summary.partitions, "partition"), count_text(summary.configs, "config")),
            *(count_text(summary.acls, "ACL"), count_text(summary.scramCredentials, "SCRAM credential")),
        ]
        level = "" if summary.metadataVersion is None else f", metadata.version {summary.metadataVersion}"
        quorum = "dynamic" if summary.kraftVersion else "static"
        self.output.text(
            f"cluster {summary.clusterId}, Kafka {summary.release}{level}, {quorum} quorum: {', '.join(counts)}"
        )
        if summary.fromData:
            pass
        elif summary.committedOffset is None:
            self.output.text(
                "nothing shows how far this copy is committed: its last records may never have been", "nothing", "bad"
            )
        elif summary.committedOffset < summary.endOffset:
            rest = f"offsets {summary.committedOffset}..{summary.endOffset - 1}"
            self.output.text(f"{rest} are kept, but nothing shows that they were ever committed", rest, "bad")
        for note in summary.notes:
            self.output.text(f"note: {note}")
        if summary.out is not None:
            self.output.text(
                f"written to {path_text(summary.out)}; what was done with each record is in "
                f"{path_text(summary.ledger or '')}"
            )

    def _copies(self, copies: list[RescueCopy]) -> None:
        self._title("copies of the metadata log")
        write_answers(
            self.output,
            copies,
            full=self.full,
            style=lambda copy: "bad" if copy.state in (DIVERGES, DAMAGED) else "",
        )
        for copy in copies:
            for problem in copy.problems if self.full else copy.problems[:3]:
                self.output.text(f"  {path_text(copy.path)}: {problem}")

    def _section(self, title: str, rows: Iterable[str]) -> None:
        """Write a section, unless it is empty."""
        every = list(rows)
        if every:
            self._title(title)
        for line in every if self.full else every[:MAX_SHOWN]:
            self.output.text(f"  {line}")
        if len(every) > MAX_SHOWN and not self.full:
            self.output.text(f"  … and {len(every) - MAX_SHOWN:,} more lines in the ledger (--full)")

    def _controller(self, controller: RescueController) -> None:
        parts = [controller.endpoint or "address not known"]
        parts += [f"directory.id {controller.directoryId}"] if controller.directoryId is not None else []
        parts.append("its disk is lost" if controller.found is None else f"old copy in {path_text(controller.found)}")
        self.output.text(f"  {controller.nodeId}: {', '.join(parts)}")

    def _title(self, title: str) -> None:
        self.output.line("")
        self.output.line(self.output.paint(title, "head"))


def loss_text(loss: RescueLoss) -> str:
    """Return which records are lost, and why."""
    if loss.nodeId is None:
        return f"{loss.topic}-{loss.partition}: all: {loss.reason}; node {loss.leader} leads"
    meanings = {True: "committed", False: "not known to be committed", None: "whether committed is not known"}
    offsets = f"from offset {loss.firstOffset} on"
    if loss.lastOffset is not None:
        offsets = f"offsets {loss.firstOffset}..{loss.lastOffset}"
    return (
        f"{loss.topic}-{loss.partition}: {offsets} of node {loss.nodeId} "
        f"({meanings[loss.committed]}): node {loss.leader} leads, up to {loss.leaderEndOffset}: {loss.reason}"
    )


def topic_text(topic: RescueTopic) -> str:
    """Return what is rebuilt of a topic."""
    replicas = str(topic.replicas) if topic.fewest == topic.replicas else f"{topic.fewest} to {topic.replicas}"
    parts = [f"{topic.topic}: ID {topic.topicId}", f"{count_text(topic.partitions, 'partition')}, replicas: {replicas}"]
    parts += [f"ID from {topic.idFrom}"] if topic.idFrom != "partition.metadata" else []
    is_default = KAFKAS_OWN in topic.shown
    taken = {MIN_ISR: " (taken to be: see the notes)"} if is_default and topic.topic in BROKER_MIN_ISR else {}
    configs = [f"{name}={value}{taken.get(name, '')}" for name, value in topic.configs.items()]
    parts += [", ".join(configs)] if configs else []
    return "; ".join(parts)


def directory_text(directory: RescueDirectory) -> str:
    """Return what becomes of a directory."""
    return f"{path_text(directory.path)}, node {directory.nodeId}, {directory.state}: {directory.reason}"


def record_text(record: RescueRecord) -> str:
    """Return what was done with records, and why."""
    where = f"offsets {record.offset}..{record.lastOffset}"
    if record.offset is None:
        where = "in the snapshot"
    elif record.lastOffset is None:
        where = f"from offset {record.offset} on"
    elif record.lastOffset == record.offset:
        where = f"offset {record.offset}"
    if record.fate == OTHER:
        return f"{where} of {path_text(record.file)}: {record.reason}"
    parts = [f"{where}, {record.fate}"]
    if record.record:
        parts.append(f": {record.record}" + (f" of {record.about}" if record.about else ""))
    if record.reason:
        parts.append(f": {record.reason}")
    if record.because is not None:
        parts.append(f"; because offset {record.because} is left out")
    if record.dependents:
        parts.append(f"; {count_text(record.dependents, 'later record')} cannot be applied without it")
    if record.later:
        parts.append(f"; {count_text(record.later, 'later record')} about the same applied without it")
    return "".join(parts)


def _directories(summary: RescueSummary) -> str:
    return count_text(summary.notUsed, "partition directory", "partition directories")


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
