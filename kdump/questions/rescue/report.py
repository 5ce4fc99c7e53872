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
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import PATH, Column, Table
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
        return [each for each in self.answers if isinstance(each, cls)]

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
        damaged = sum(each.nodeId is not None and each.lastOffset is None for each in losses)
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
        own = sum(each.ownOffsets for each in copies)
        if own:
            lost += f", {count_text(own, 'record')} of other copies NOT USED"
        damaged = sum(each.state == DAMAGED for each in copies)
        if damaged:
            lost += f", {count_text(damaged, 'other copy', 'other copies')} DAMAGED"
        if summary.damagedOffset is not None:
            lost += f", the end of this copy is DAMAGED from offset {summary.damagedOffset} on"
        if summary.notUsed:
            lost += f", {_directories(summary)} NOT IN IT"
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
        table = Table(
            [
                Column("nodeId", "node", lambda each: _number(each.nodeId), True),
                Column("state", "state", lambda each: each.state),
                Column("endOffset", "end offset", lambda each: _number(each.endOffset), True),
                Column("leaderEpoch", "epoch", lambda each: _number(each.leaderEpoch), True),
                Column("sameUntil", "same until", lambda each: _number(each.sameUntil), True),
                Column("ownOffsets", "only here", lambda each: _number(each.ownOffsets or None), True),
                Column("path", "log directory", lambda each: printable(path_text(each.path)), least=20, cuts=PATH),
            ],
            self.output,
            full=self.full,
        )
        for each in copies:
            table.add(each, "bad" if each.state in (DIVERGES, DAMAGED) else "")
        table.flush()
        for each in copies:
            for problem in each.problems if self.full else each.problems[:3]:
                self.output.text(f"  {path_text(each.path)}: {problem}")

    def _section(self, title: str, rows: Iterable[str]) -> None:
        """Write a section, unless it is empty."""
        every = list(rows)
        if every:
            self._title(title)
        for each in every if self.full else every[:MAX_SHOWN]:
            self.output.text(f"  {each}")
        if len(every) > MAX_SHOWN and not self.full:
            self.output.text(f"  … and {len(every) - MAX_SHOWN:,} more lines in the ledger (--full)")

    def _controller(self, each: RescueController) -> None:
        parts = [each.endpoint or "address not known"]
        parts += [f"directory.id {each.directoryId}"] if each.directoryId is not None else []
        parts.append("its disk is lost" if each.found is None else f"old copy in {path_text(each.found)}")
        self.output.text(f"  {each.nodeId}: {', '.join(parts)}")

    def _title(self, text: str) -> None:
        self.output.line("")
        self.output.line(self.output.paint(text, "head"))


def loss_text(each: RescueLoss) -> str:
    """Return which records are lost, and why."""
    if each.nodeId is None:
        return f"{each.topic}-{each.partition}: all: {each.reason}; node {each.leader} leads"
    known = {True: "committed", False: "not known to be committed", None: "whether committed is not known"}
    offsets = f"from offset {each.firstOffset} on"
    if each.lastOffset is not None:
        offsets = f"offsets {each.firstOffset}..{each.lastOffset}"
    return (
        f"{each.topic}-{each.partition}: {offsets} of node {each.nodeId} "
        f"({known[each.committed]}): node {each.leader} leads, up to {each.leaderEndOffset}: {each.reason}"
    )


def topic_text(each: RescueTopic) -> str:
    """Return what is rebuilt of a topic."""
    replicas = str(each.replicas) if each.fewest == each.replicas else f"{each.fewest} to {each.replicas}"
    parts = [f"{each.topic}: ID {each.topicId}", f"{count_text(each.partitions, 'partition')}, replicas: {replicas}"]
    parts += [f"ID from {each.idFrom}"] if each.idFrom != "partition.metadata" else []
    parts += [", ".join(f"{name}={value}" for name, value in each.configs.items())] if each.configs else []
    return "; ".join(parts)


def directory_text(each: RescueDirectory) -> str:
    """Return what becomes of a directory."""
    return f"{path_text(each.path)}, node {each.nodeId}, {each.state}: {each.reason}"


def record_text(each: RescueRecord) -> str:
    """Return what was done with records, and why."""
    where = f"offsets {each.offset}..{each.lastOffset}"
    if each.offset is None:
        where = "in the snapshot"
    elif each.lastOffset is None:
        where = f"from offset {each.offset} on"
    elif each.lastOffset == each.offset:
        where = f"offset {each.offset}"
    if each.fate == OTHER:
        return f"{where} of {path_text(each.file)}: {each.reason}"
    parts = [f"{where}, {each.fate}"]
    if each.record:
        parts.append(f": {each.record}" + (f" of {each.about}" if each.about else ""))
    if each.reason:
        parts.append(f": {each.reason}")
    if each.because is not None:
        parts.append(f"; because offset {each.because} is left out")
    if each.dependents:
        parts.append(f"; {count_text(each.dependents, 'later record')} cannot be applied without it")
    if each.later:
        parts.append(f"; {count_text(each.later, 'later record')} about the same applied without it")
    return "".join(parts)


def _directories(summary: RescueSummary) -> str:
    return count_text(summary.notUsed, "partition directory", "partition directories")


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
