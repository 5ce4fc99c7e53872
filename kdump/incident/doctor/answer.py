"""What `kdump doctor` answers: disks, what to do, what was examined and what was not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, OFFSET, Doc, PathText, answer
from kdump.check.finding import ERROR
from kdump.format.batch_header import BATCH_HEADER
from kdump.problems.catalogue import ORDER

STARTUP, REPLICAS, TRANSACTIONS, GROUPS, SCHEMAS, CONNECT, SPACE, DAMAGE, DIVERGENCE, LOG = QUESTIONS = (
    "startup",
    "replicas",
    "transactions",
    "groups",
    "schemas",
    "connect",
    "space",
    "damage",
    "divergence",
    "log",
)
"""The questions, in the order in which they are answered."""

STOPS, LOSES, UNKNOWN, ACT, NOTHING = "stops", "loses", "unknown", "act", "nothing"
"""Verdicts: the broker does not start; a startup loses something; it is not known whether the broker starts; something
else is to be done; nothing is."""


class Priority:
    """What to do first: lower numbers, in the order of kdump.problems.catalogue.ORDER."""

    LOSES, STOPS, CLIENTS, DEGRADED, OLD = range(1, len(ORDER) + 1)


def page_order(priority: int, severity: str) -> tuple[int, bool, int]:
    """Return the key of an item's place on the page. What is lost as it is configured is a warning, and follows what
    stops a startup."""
    is_error = severity == ERROR
    return priority if is_error else max(priority, Priority.STOPS), not is_error, priority


@answer("doctorDisk")
class ExaminedDisk(NamedTuple):
    """A log directory, as its root shows it."""

    path: Annotated[PathText, Doc("the log directory")]
    clusterId: Annotated[PathText | None, Doc("cluster.id in meta.properties")]
    nodeId: Annotated[PathText | None, Doc("node.id in meta.properties")]
    clean: Annotated[
        bool | None, Doc("whether the broker was shut down cleanly; null if no broker has run here, as in a copy")
    ]
    partitions: Annotated[int, Doc("number of partition directories")]
    process: Annotated[int | None, Doc("process that holds its .lock: a broker at work; null if there is none")]
    newer: Annotated[
        tuple[PathText, ...], Doc("what only a release newer than the newest known one writes, on the broker's disks")
    ]
    copyOf: Annotated[
        PathText | None,
        Doc(
            "another log directory that is the same one: either is a copy, and the transactions and schema IDs of a "
            "partition that is in both are counted only there; or null"
        ),
    ] = None


class AffectedRange(NamedTuple):
    """Where something is. `begin`, `end`: its bytes in `file`, None for all of it; `first`, `last`: its offsets, None
    if it has none, or if the last one is unknown."""

    source: str
    topic: str | None
    partition: int | None
    file: str | None
    begin: int | None = None
    end: int | None = None
    first: int | None = None
    last: int | None = None

    def explains(self, other: AffectedRange, *, by_bytes: bool = False) -> bool:
        """Return True if something here is the cause of what the catalogue lets it cover there: of the same bytes or
        offsets, or if one of the two is all of the other's file, directory or partition. `by_bytes`: of these alone."""
        meets = both = False
        if self.first is not None and other.first is not None:
            end = self.first if self.last is None else self.last
            other_end = other.first if other.last is None else other.last
            both, meets = True, other.first <= end and self.first <= other_end + 1
            meets &= self.last is None or other_end <= self.last + 1
        if self.file is None or other.file is None or self.file != other.file:
            is_whole = None in (self.file, other.file) or (
                self.begin is None and os.path.dirname(self.file or "") == self.source
            )
            return not by_bytes and (meets or (is_whole and not both))
        if self.begin is None:
            return not by_bytes or not other.begin or not self.file.endswith(".log")
        if other.begin is None or (both and self.first == other.first) or (meets and not by_bytes):
            return True
        # One may name the batch, the other a field of it, or the damaged batch before.
        return other.begin - BATCH_HEADER.size < self.begin <= max(other.begin, other.end or 0)


@answer("doctorItem", measures=lambda item: [("kdump_findings", 1, item.code, item.severity)])
class Item(NamedTuple):
    """Something to do. Items of one kind are one entry of the page."""

    priority: Annotated[
        int,
        Doc(
            "the page is ordered by it: 1 loses data at the next startup or within an hour of it, 2 stops the startup, "
            "3 stops clients now, 4 has degraded something, 5 is old; errors come first, and those of 2 before "
            "the warnings of 1"
        ),
    ]
    question: Annotated[str, Doc(", ".join(QUESTIONS))]
    severity: Annotated[str, Doc("error or warning")]
    code: Annotated[
        str, Doc("what it is; for damage, the code of the finding, as in findings.md; for log, the name of the message")
    ]
    source: Annotated[PathText, Doc("log directory, or the path that was passed; for log, the log")]
    title: Annotated[PathText, Doc("what is wrong", after="group")]
    topic: Annotated[str | None, Doc("topic; null if it is not about one", after="source")] = None
    partition: Annotated[int | None, Doc("partition; null if it is not about one")] = None
    group: Annotated[str | None, Doc("consumer group; null if it is not about one")] = None
    connector: Annotated[str | None, Doc("connector of Kafka Connect; null if it is not about one")] = None
    impact: Annotated[PathText, Doc("impact on brokers and consumers; empty if the title states it")] = ""
    evidence: Annotated[tuple[PathText, ...], Doc("what shows it")] = ()
    file: Annotated[PathText | None, Doc("file that shows it")] = None
    position: Annotated[int | None, Doc("where in that file", FILE_BYTE)] = None
    offset: Annotated[int | None, Doc("first offset that it is about", OFFSET)] = None
    findings: Annotated[
        int, Doc("for damage: number of findings of this kind in the partition; for log: of messages; else 1")
    ] = 1
    commands: Annotated[tuple[PathText, ...], Doc("commands that show more")] = ()
    actions: Annotated[tuple[PathText, ...], Doc("what to do")] = ()
    never: Annotated[tuple[PathText, ...], Doc("what not to do")] = ()
    commandForAll: Annotated[PathText, Doc("kdump command that shows more of all items of the same entry")] = ""
    titleForAll: str = ""
    """Title of an entry of several such items, if their titles differ."""
    named: tuple[tuple[str, ...], ...] = ()
    """What each of the actions names."""
    covers: tuple[str, ...] = ()
    """Codes of what has the same cause in the same place (Declaration.covers)."""
    places: tuple[AffectedRange, ...] = ()
    """Where it is, if that is not its file, position and offset alone."""
    logged: tuple[str, ...] = ()
    """The exceptions of which the broker's log shows one, if its startup fails."""
    transactionalId: str | None = None
    """Transactional ID of the transaction that it is about."""

    @property
    def name(self) -> str:
        """topic-partition, the topic, the group or the connector that it is about; "" if it is not about one."""
        if self.partition is not None:
            return f"{self.topic}-{self.partition}"
        if self.connector is not None:
            return f"connector {self.connector}"
        return self.topic or (f"group {self.group}" if self.group is not None else "")


@answer("doctorLargest", measures=lambda topic: [("kdump_topic_bytes", topic.bytes, topic.topic)])
class LargestTopic(NamedTuple):
    """One of the topics that take most of the space."""

    source: Annotated[PathText, Doc("log directory, or the path that was passed")]
    topic: Annotated[str, Doc("topic")]
    partitions: Annotated[int, Doc("number of its partitions here")]
    bytes: Annotated[int, Doc("length of all its files", BYTES)]
    onDisk: Annotated[int, Doc("space that they occupy, which differs for sparse files; 0 in a bundle", BYTES)]


@answer("doctorQuestion")
@dataclass
class Question:
    """A question, and how far it was examined."""

    question: Annotated[str, Doc(", ".join(QUESTIONS))]
    answer: Annotated[PathText, Doc("the answer in one sentence; empty if it was not examined")] = ""
    isComplete: Annotated[bool, Doc("whether everything was examined that the question is about")] = False
    items: Annotated[int, Doc("number of items that answer it")] = 0
    partitions: Annotated[int, Doc("partitions that were examined")] = 0
    partitionsLeft: Annotated[int, Doc("partitions that were not examined, or not completely")] = 0
    segmentsLeft: Annotated[int, Doc("segments in them whose records were not checked; only for damage")] = 0
    bytesLeft: Annotated[int, Doc("size of these segments", BYTES)] = 0
    headersLeft: Annotated[int, Doc("partitions of which not even all batch headers were read; only for damage")] = 0
    notExamined: Annotated[list[PathText], Doc("what was not examined, and why")] = field(default_factory=list)
    unread: Annotated[list[PathText], Doc("what could not be read, and why")] = field(default_factory=list)
    seconds: Annotated[float, Doc("elapsed time", "s")] = 0.0
    byBroker: list[str] = field(default_factory=list)
    """The parts of the answer, if there are several brokers."""


@answer("doctor", measures=lambda end: [("kdump_unread_paths", len(end.unread))])
@dataclass
class Page:
    """The end of the page."""

    verdict: Annotated[
        str,
        Doc(
            "stops (the broker does not start), loses (a startup loses records or directories), unknown (it is not "
            "known whether the broker starts), act (something else is to be done), nothing"
        ),
    ]
    losesWithinHour: Annotated[
        str, Doc("whether a startup loses data then or within an hour: certain, may, or no, as far as examined")
    ]
    isComplete: Annotated[bool, Doc("whether all questions were examined completely, and everything could be read")]
    interrupted: Annotated[bool, Doc("whether a signal ended the run")]
    status: Annotated[int, Doc("exit status, unless a signal ended the run")]
    errors: Annotated[int, Doc("number of items with severity error")]
    warnings: Annotated[int, Doc("number of items with severity warning")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("elapsed time", "s")]
