"""All messages that `kdump explain` knows, from the files in kdump/problems/messages/, and the one that a text
is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from kdump.incident.explain.broker_paths import normalized
from kdump.incident.explain.facts import holds, of_message
from kdump.incident.explain.io_errors import io_error, key_of
from kdump.incident.explain.message import CAUSE, LAST, Message, Pattern
from kdump.problems.catalogue import action, filled

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FAMILIES: dict[str, str] = {
    "record_reads": "Records that cannot be read",
    "recovery": "Recovery of logs at startup",
    "startup": "Startup of the broker",
    "identity": "Identity of disks and nodes",
    "storage_failures": "Failures of storage",
    "small_files": "Indexes, snapshots and checkpoints",
    "log_lifecycle": "Retention, the log cleaner, and deleted topics",
    "replication": "Replication",
    "producers": "Producers and transactions",
    "coordinators": "Coordinators and groups",
    "kraft": "The metadata log",
    "remote_storage": "Remote storage",
    "connections": "Connections",
    "requests": "Requests that are rejected",
    "connect": "Connect, MirrorMaker and the schema registry",
    "streams": "Kafka Streams",
    "java_client": "Kafka's Java client",
    "other_clients": "librdkafka and aiokafka",
}
"""The files of messages, and the title of each."""

_EXCEPTION = re.compile(
    r"(?:Caused by: |Suppressed: |Exception in thread \"[^\"]{0,200}\" |\[CIRCULAR REFERENCE: )?"
    r"(?P<package>(?:[\w$]{1,100}[./]){0,12})(?P<name>[\w$]{0,100}(?:Exception|Error|Fault|Failure)|[A-Z]{2,}(?:_[A-Z]+)+)"
    r"(?::\s|\b(?=\s*$)|$)"
)
"""The class of an exception, and what is before its message."""
_CONTEXT = re.compile(r"(?:(?:global-)?stream-(?:thread|client|task) )?\[(?P<text>[^\]\n]{1,600})\]:? ")
"""What a component of Kafka writes before its messages: [LogLoader partition=orders-0, dir=/data] …"""
_FACT = re.compile(
    r"(?P<name>partition|dir|groupId|transactionalId|topic)=(?P<value>[^,\n]{1,400})|GroupId (?P<group>[^,\n]{1,400})"
)
_FACT_PARTS = {"partition": "partition", "dir": "directory", "groupId": "group", "transactionalId": "transactionalId"}
DEEPEST = 6
"""Maximum number of messages inside each other."""


class Match(NamedTuple):
    """A message in a text: what it is, and its named parts. `by_class`: whether only an exception's class shows it."""

    message: Message
    parts: dict[str, str]
    by_class: bool = False


@cache
def messages() -> tuple[Message, ...]:
    """Return all messages, by family."""
    return tuple(message for members in by_family().values() for message in members)


@cache
def by_family() -> dict[str, tuple[Message, ...]]:
    """Return the messages of each file of FAMILIES."""
    directory = resources.files("kdump.problems") / "messages"
    return {
        family: tuple(
            _message(name, {field: _value(value) for field, value in fields.items()})
            for name, fields in tomllib.loads((directory / f"{family}.toml").read_text("utf-8")).items()
        )
        for family in FAMILIES
    }


def _message(name: str, fields: dict[str, Any]) -> Message:
    actions = tuple(map(action, fields.pop("actions", ()) or (fields.pop("action"),)))
    return Message(name=name, actions=actions, action=". ".join(one.conditional for one in actions), **fields)


def _value(value: Any) -> Any:
    """Return a field of a message: prose is wrapped in the file."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    if not isinstance(value, str):
        return value
    return filled(value).replace("{newest}", LAST)


@cache
def _families() -> dict[str, str]:
    return {message.name: family for family, members in by_family().items() for message in members}


def family_of(message: Message) -> str:
    """Return the file of FAMILIES that a message is in."""
    return _families()[message.name]


@cache
def by_name() -> dict[str, Message]:
    """Return the messages by name."""
    return {message.name: message for message in messages()}


@cache
def by_error() -> dict[str, list[Message]]:
    """Return the messages that explain a reason of the operating system: those with a condition first."""
    by_reason: dict[str, list[Message]] = {}
    for message in sorted(messages(), key=lambda message: not message.when):
        for reason in message.errors:
            by_reason.setdefault(key_of(reason), []).append(message)
    return by_reason


def error_match(text: str, outer: str = "", parts: dict[str, str] | None = None) -> Match | None:
    """Return the message that explains the error of the operating system in a line, by its reason, its files and
    operation; None if it has none that is known. `outer`: the line around it, with its parts."""
    error = io_error(text, by_error())
    if error is None:
        return None
    own = normalized({**(parts or {}), **error.parts})
    error = error._replace(file=own.get("file", "") if error.file else "")
    facts = of_message(own, error, f"{outer} {text}")
    message = next((each for each in by_error()[key_of(error.reason)] if holds(each.when, facts)), None)
    return None if message is None else Match(message, normalized(error.parts))


@cache
def by_exception() -> dict[str, tuple[str, Message]]:
    """Return the messages that an exception class, or an error code, means without a text, by its name without the
    package; each after the package, "" if it may be any."""
    every = ((name.rpartition("."), message) for message in messages() for name in message.exceptions)
    return {name: (package, message) for (package, _, name), message in every}


def _thrown(package: str, name: str) -> Message | None:
    """Return the message that an exception class means. `package`: the text before its name, "" if it has none."""
    needed, message = by_exception().get(name, ("", None))
    return message if not (needed and package) or package.rstrip("./") == needed else None


def find(name: str) -> Message | None:
    """Return the message with that name, exception class or error code, None if there is none."""
    package, _, simple = name.rpartition(".")
    return by_name().get(name) or _thrown(package, simple)


def without_context(text: str) -> tuple[str, dict[str, str]]:
    """Return the text without what components of Kafka write before their messages, and the parts in that."""
    parts: dict[str, str] = {}
    for _ in range(4):
        context = _CONTEXT.match(text)
        if context is None:
            break
        for fact in _FACT.finditer(context["text"]):
            if fact["group"] is not None:
                parts["group"] = fact["group"]
            elif fact["name"] in _FACT_PARTS:
                parts[_FACT_PARTS[fact["name"]]] = fact["value"]
        text = text[context.end() :]
    return text, parts


def matches(text: str) -> Iterator[Match]:
    """Yield the messages that a text is: one, and then those inside it."""
    for _ in range(DEEPEST):
        match = _match(text)
        if match is None:
            return
        yield match
        if CAUSE not in match.parts:
            return
        text = match.parts[CAUSE]
        if " " not in text:  # a class or an error code, at the end of a sentence
            text = text.rstrip(".")


def alternatives(text: str) -> list[Match]:
    """Return all messages with a wording that the text begins with: first those with the longest."""
    text, context = without_context(text)
    exception = _EXCEPTION.match(text)
    texts = [text] if exception is None else [text[exception.end() :], text]
    best: dict[str, tuple[int, Match]] = {}
    for candidate in texts:
        for message, pattern in _wordings(candidate):
            before = best.get(message.name)
            if before is None or before[0] < pattern.weight:
                parts = pattern.match(candidate)
                if parts is not None and _applies(message, {**context, **parts}):
                    best[message.name] = pattern.weight, Match(message, normalized({**context, **parts}))
    return [match for _, match in sorted(best.values(), key=lambda each: -each[0])]


def _applies(message: Message, parts: dict[str, str]) -> bool:
    return not message.when or holds(message.when, of_message(normalized(parts)))


BEGINNING = 4
"""Number of characters of a text that select the wordings it is compared with."""


@cache
def _by_beginning() -> dict[str, list[tuple[Message, Pattern]]]:
    """Return the wordings by their beginning; those that begin with a part, or shortly before one, under ""."""
    patterns: dict[str, list[tuple[Message, Pattern]]] = {}
    for message in messages():
        for pattern in message.patterns:
            first = pattern.literals[0]
            patterns.setdefault(first[:BEGINNING] if len(first) >= BEGINNING else "", []).append((message, pattern))
    return patterns


def _wordings(text: str) -> Iterator[tuple[Message, Pattern]]:
    """Yield the wordings that the text may be."""
    yield from _by_beginning().get(text[:BEGINNING], ())
    yield from _by_beginning().get("", ())


def _match(text: str) -> Match | None:
    fitting = alternatives(text)
    if fitting:
        return fitting[0]
    error = error_match(text)
    if error is not None:
        return error
    stripped, context = without_context(text)
    exception = _EXCEPTION.match(stripped)
    if exception is not None:
        thrown = _thrown(exception["package"], exception["name"])
        if thrown is not None:
            return Match(thrown, context, by_class=True)
        inner = stripped[exception.end() :]
        if inner != stripped and _EXCEPTION.match(inner):
            return _match(inner)  # RuntimeException: java.nio.file.NoSuchFileException: …
    return None


def search(text: str) -> Match | None:
    """Return the message with the longest wording that occurs anywhere in the text: for text that was pasted without
    its beginning."""
    best: tuple[int, Match] | None = None
    _, context = without_context(text)
    for message in messages():
        for pattern in message.patterns:
            if best is not None and len(pattern.needle) <= best[0]:
                continue
            parts = pattern.search(text)
            if parts is not None and _applies(message, {**context, **parts}):
                best = len(pattern.needle), Match(message, normalized(parts))
    if best is not None:
        return best[1]
    by_words = _by_words(text)
    if by_words is not None:
        return Match(by_words, {})
    words = re.findall(
        r"\b((?:\w{1,100}\.){0,12})([A-Z]\w{2,80}(?:Exception|Error)|[A-Z]{2,40}(?:_[A-Z]{1,40}){1,8})\b", text
    )
    thrown = next(filter(None, (_thrown(*word) for word in words)), None)
    return None if thrown is None else Match(thrown, {}, by_class=True)


WORDS = 16
"""Minimum number of characters that identify a message of which only a part was pasted."""


def _by_words(text: str) -> Message | None:
    """Return the message with the longest literal text that is at least half of the text (less of it occurs in other
    messages, too), or that the text is a part of."""
    best: tuple[int, Message | None] = (WORDS - 1, None)
    pasted = text.strip()
    for message in messages():
        for pattern in message.patterns:
            for literal in pattern.literals:
                words = literal.strip(" .,:;()[]'\"")
                if len(words) > best[0] and 2 * len(words) >= len(pasted) and words in text:
                    best = len(words), message
                elif best[1] is None and len(pasted) >= WORDS and pasted in literal:
                    best = best[0], message
    return best[1]
