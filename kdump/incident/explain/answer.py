"""Answers of `kdump explain`: what a message of a log means, and what is on the disk where it points to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import EPOCH_MS, INLINE, NESTED, Doc, PathText, answer
from kdump.problems.catalogue import Declaration

FILE, PARTITION, DIRECTORY, BATCH, FINDING, STARTUP, PRODUCER, TRANSACTION, GROUP, TOPIC, NODE, IDENTITY = KINDS = (
    "file",
    "partition",
    "directory",
    "batch",
    "finding",
    "startup",
    "producer",
    "transaction",
    "group",
    "topic",
    "node",
    "identity",
)
"""Kinds of evidence."""
WITH_FILE = (FINDING, STARTUP, BATCH, PRODUCER)
"""Kinds of evidence that are shown with the file."""


class MessagePart(NamedTuple):
    """A named part of a message."""

    name: str
    value: str


class Evidence(NamedTuple):
    """What is on the disk where a message points to. `position` in bytes of the file at `path`."""

    kind: str
    path: PathText
    position: int | None
    offset: int | None
    text: PathText

    @property
    def shown(self) -> str:
        """The text, after the file and the byte if it does not name them."""
        name = "/".join(self.path.rstrip("/").split("/")[-2:])
        if not name or name.rsplit("/", 1)[-1] in self.text or self.kind not in WITH_FILE:
            return self.text
        return f"{name}{f' at byte {self.position}' if self.position else ''}: {self.text}"


@answer("explanation")
@dataclass
class Explanation:
    """Messages of a log that mean the same and are about the same partition, file or group."""

    message: Annotated[str | None, Doc("name of the message, as in explain.md; null if the text is not known to kdump")]
    level: Annotated[str, Doc("highest level at which it was logged; empty if the text has none")]
    logger: Annotated[PathText, Doc("class that logged it first; empty if the text has none")]
    count: Annotated[int, Doc("how often it is in the log")]
    first: Annotated[int | None, Doc("time of the first; null if unknown", EPOCH_MS)]
    last: Annotated[int | None, Doc("time of the last", EPOCH_MS)]
    line: Annotated[int, Doc("line of the first, from 1")]
    text: Annotated[PathText, Doc("text of the first; cut after 2,000 characters")]
    exceptions: Annotated[tuple[PathText, ...], Doc("lines of its exceptions, outermost first, without stack frames")]
    parts: Annotated[
        tuple[MessagePart, ...],
        Doc(f"what it is about, from the text, each {NESTED}; name: partition, file, offset, position, producerId …"),
    ]
    loggedAs: Annotated[tuple[str, ...], Doc("names of general messages that it was logged with")] = ()
    causedBy: Annotated[str | None, Doc("name of the message of the exception with it; null if there is none")] = None
    meaning: Annotated[str, Doc("what it means; empty if it is not known, as are the following")] = ""
    reason: Annotated[str, Doc("why Kafka logs it")] = ""
    impact: Annotated[str, Doc("what it costs brokers and clients")] = ""
    evidence: Annotated[
        list[Evidence],
        Doc(
            f"with --disk: what is there now, each {NESTED}; kind: {', '.join(KINDS)}; position and offset may be null"
        ),
    ] = field(default_factory=list)
    commands: Annotated[list[PathText], Doc("commands to run; capitals stand for what the text does not contain")] = (
        field(default_factory=list)
    )
    action: Annotated[str, Doc("what to do")] = ""
    never: Annotated[str, Doc("what never to do; empty if nothing is tempting")] = ""
    codes: Annotated[tuple[str, ...], Doc("findings of verify that belong to it")] = ()
    incident: Annotated[str, Doc("runbook in docs/incidents, without .md; empty if there is none")] = ""
    source: Annotated[str, Doc("classes of Kafka, or of the client, that log or throw it")] = ""
    releases: Annotated[str, Doc("releases with this text")] = ""

    @property
    def about(self) -> dict[str, str]:
        """The parts by name."""
        return dict(self.parts)


@answer("explanationSummary")
class ExplanationSummary(NamedTuple):
    """What was read."""

    source: Annotated[PathText, Doc("the log that was read; empty for a pasted message")]
    lines: Annotated[int, Doc("number of its lines")]
    known: Annotated[int, Doc("number of its messages that are explained")]
    unknown: Annotated[int, Doc("number of its messages above INFO that are not known")]
    notListed: Annotated[int, Doc("how many of the unknown ones are in no object, because they are of too many kinds")]
    firstTime: Annotated[int | None, Doc("time of its first message of these; null if unknown", EPOCH_MS)]
    lastTime: Annotated[int | None, Doc("time of its last message of these", EPOCH_MS)]
    error: Annotated[PathText | None, Doc("why the log was not read to its end; null if it was")]


@answer("findingExplanation")
@dataclass
class FindingExplanation:
    """A finding of verify: its entry in the catalogue, and what belongs to it."""

    code: Annotated[Declaration, INLINE]
    evidence: Annotated[list[Evidence], Doc(f"with --disk: where the disk has this finding, each {NESTED}")]
    commands: Annotated[list[PathText], Doc("commands to run; capitals stand for what is to be filled in")]
    messages: Annotated[tuple[str, ...], Doc("messages of Kafka that it causes, as in explain.md")] = ()
    incidents: Annotated[tuple[str, ...], Doc("runbooks in docs/incidents, without .md")] = ()
