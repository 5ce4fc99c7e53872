"""A message of Kafka's broker or of a client, as `kdump explain` knows it: text, meaning, cause, and what to do.

A text is written as Kafka writes it, with named parts in braces: {partition}, {file}, {offset} … PARTS lists them.
`{}` is a part that does not matter, and `{cause}` another message, such as that of an exception, at the end of this
one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from kdump.answer import TEXT, Doc, Shown, answer
from kdump.format.kafka_release import NEWEST
from kdump.problems.catalogue import Action

LAST = ".".join(map(str, NEWEST.line))
SUPPORTED = f"2.8 to {LAST}"
"""All releases that are known."""
LONGEST_PART = 1000
"""Maximum number of characters of a part of a message, except for one at its end."""
ANY = re.compile(r"[^\n]*")
_NUMBER = re.compile(r"-?\d{1,20}(?!\d)")
_NAME = re.compile(r"[\w.-]{1,249}")
_PARTITION = re.compile(r"[\w.-]{1,249}-\d{1,10}(?!\d)")
_ID = re.compile(r"[\w-]{22}(?![\w-])")

PARTS: dict[str, re.Pattern[str]] = {
    "partition": _PARTITION,
    "topic": _NAME,
    "file": ANY,
    "directory": ANY,
    "otherFile": ANY,
    "offset": _NUMBER,
    "endOffset": _NUMBER,
    "baseOffset": _NUMBER,
    "position": _NUMBER,
    "size": _NUMBER,
    "limit": _NUMBER,
    "producerId": _NUMBER,
    "producerEpoch": _NUMBER,
    "otherEpoch": _NUMBER,
    "sequence": _NUMBER,
    "lastSequence": _NUMBER,
    "leaderEpoch": _NUMBER,
    "storedCrc": _NUMBER,
    "computedCrc": _NUMBER,
    "number": _NUMBER,
    "timestamp": _NUMBER,
    "nodeId": _NUMBER,
    "otherNodeId": _NUMBER,
    "clusterId": ANY,
    "otherClusterId": ANY,
    "topicId": _ID,
    "otherTopicId": _ID,
    "group": ANY,
    "member": ANY,
    "transactionalId": ANY,
    "version": ANY,
    "error": ANY,
    "reason": ANY,
    "cause": ANY,
    "empty": re.compile(r"\{\}"),
}
"""The named parts of messages, and the expressions that they match; {empty} is a set of Java without elements."""
NUMBERS = frozenset(name for name, expression in PARTS.items() if expression is _NUMBER)
"""The parts that are numbers."""
CAUSE = "cause"
_PART = re.compile(r"\{(\w*)\}")


@answer("logMessage")
@dataclass(frozen=True, kw_only=True)
class Message:
    """A message. Texts about it are sentences without a final period, except for `commands`, which are command lines,
    in which parts of the message stand in braces."""

    name: Annotated[str, Doc("name by which kdump explain finds it"), Shown("NAME")]
    texts: Annotated[tuple[str, ...], Doc("Kafka's text in all its wordings, with named parts in braces")] = ()
    exceptions: Annotated[
        tuple[str, ...], Doc("exception classes and error codes that mean the same without a text")
    ] = ()
    source: Annotated[str, Doc("classes of Kafka that log or throw it")]
    releases: Annotated[
        str, Doc("releases of Kafka or of the client with this text"), Shown("RELEASES", least=10, cuts=TEXT)
    ] = SUPPORTED
    meaning: Annotated[str, Doc("what it means"), Shown("MEANING", least=20, cuts=TEXT)]
    cause: Annotated[str, Doc("why Kafka logs it")]
    impact: Annotated[str, Doc("what it costs brokers and clients")]
    commands: Annotated[tuple[str, ...], Doc("commands to run; parts of the message stand in braces")] = ()
    action: Annotated[str, Doc("what to do; a condition that --disk decides is at the beginning of a sentence")]
    never: Annotated[str, Doc("what never to do; empty if nothing is tempting")] = ""
    codes: Annotated[tuple[str, ...], Doc("findings of verify that belong to it")] = ()
    incident: Annotated[str, Doc("runbook in docs/incidents, without .md; empty if there is none")] = ""
    plan: Annotated[bool, Doc("whether --disk also predicts the next startup of its partition or directory")] = False
    inside: tuple[str, ...] = ()
    """The messages that its exceptions have to be logged with to mean it: any library throws such exceptions."""
    errors: tuple[str, ...] = ()
    """The reasons of the operating system that it explains, also without a text of Kafka around them."""
    when: str = ""
    """The facts (facts.toml) that choose it among the messages with these errors or texts."""
    actions: tuple[Action, ...] = ()
    """The sentences of `action`, with their conditions."""
    general: bool = False
    """Whether it only reports that something failed: what it is about is in the exception with it."""
    decides: bool = False
    """Whether it is the cause of whatever it is logged with: the operating system's error."""
    at_info: bool = False
    """Whether Kafka logs it at level INFO, too."""
    prepared: bool = False
    """Whether --disk shows the transactions that their coordinators have not completed."""
    snapshots: bool = False
    """Whether --disk shows which segments have no producer snapshot at their base offset."""
    after: int = 0
    """Milliseconds for which it has to be repeated before it means anything."""

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Its wordings, the longest first: of two that fit, the longer one has more of the text."""
        return tuple(sorted(map(Pattern, self.texts), key=lambda pattern: -pattern.weight))


class Pattern:
    """One wording of a message: literal texts, and the parts between them. `needle`: its longest literal text, which
    every such message contains; `weight`: number of characters in the literal texts.

    Parts are found from left to right, each up to the next occurrence of the text after it, without going back: so the
    time is that of reading the text once, whatever the text is."""

    def __init__(self, text: str) -> None:
        self.text = text
        *first, last = _PART.split(text)[::2]
        self.literals = [*first, last.rstrip(".")]  # text that was pasted often has no period
        self.has_period = last == "."
        self.names = _PART.findall(text)
        self.needle = max(self.literals, key=len)
        self.weight = sum(map(len, self.literals))

    def match(self, text: str) -> dict[str, str] | None:
        """Return the named parts if the text is of this wording, else None."""
        if self.needle not in text or not text.startswith(self.literals[0]):
            return None
        return self._parts(text, len(self.literals[0]))

    def search(self, text: str) -> dict[str, str] | None:
        """As `match`, for a text that begins anywhere in `text`."""
        if self.needle not in text:
            return None
        first = self.literals[0]
        if not first:
            return self._parts(text, max(text.rfind(" ", 0, text.find(self.literals[1])) + 1, 0))
        position = text.find(first)
        for _ in range(MOST_STARTS):
            if position < 0:
                break
            parts = self._parts(text, position + len(first), anywhere=True)
            if parts is not None:
                return parts
            position = text.find(first, position + 1)
        return None

    def _parts(self, text: str, position: int, *, anywhere: bool = False) -> dict[str, str] | None:
        """Return the named parts of a text whose first literal text ends at `position`."""
        parts: dict[str, str] = {}
        for number, name in enumerate(self.names):
            expression = PARTS.get(name, ANY)
            literal = self.literals[number + 1]
            if expression is ANY:
                if not literal or (number + 1 == len(self.names) and not (anywhere and literal.strip("."))):
                    end = _line_end(text, position)
                    end = text.rfind(literal, position, end) if literal else end
                    end -= self.has_period and text[end - 1 : end] == "."
                else:
                    end = text.find(literal, position)
                if end < 0 or (literal and end - position > LONGEST_PART) or (name not in OPTIONAL and end == position):
                    return None
            else:
                match = expression.match(text, position)
                if match is None:
                    return None
                end = match.end()
                if not text.startswith(literal, end):
                    end = text.rfind(literal, position + 1, end)
                    if end < 0 or expression.fullmatch(text, position, end) is None:
                        return None
                if self.has_period and number + 1 == len(self.names):  # a name of a topic may contain one
                    end -= text[end - 1 : end] == "."
            value = text[position:end]
            if name and parts.setdefault(name, value) != value:
                return None
            position = end + len(literal)
        return parts if anywhere or _END.match(text, position) else None


MOST_STARTS = 20
"""Maximum number of occurrences of its first words at which a message is looked for."""
OPTIONAL = ("", CAUSE)
"""Parts that may be empty."""
_END = re.compile(r"[\s.,;:)\]]*(?:\n|$)")


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
