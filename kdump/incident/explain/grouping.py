"""Groups the entries of a log: one explanation for all entries that mean the same and are about the same thing."""

from __future__ import annotations

import re
from typing import NamedTuple

from kdump.answer import of_fact
from kdump.incident.explain.answer import Explanation, MessagePart
from kdump.incident.explain.broker_paths import normalized, partition_of
from kdump.incident.explain.catalogue import Match, by_name, error_match, family_of, matches, search, without_context
from kdump.incident.explain.log_entries import LEVELS, SEVERE, SUPPRESSED, Entry
from kdump.incident.explain.message import CAUSE, Message
from kdump.log.internal_topics import METADATA_LOG

MAX_GROUPS = 2000
"""Maximum number of explanations. Further entries are added to one explanation for each message."""
MAX_UNKNOWN = 500
"""Maximum number of kinds of unknown entries. Further ones are only counted."""
LONGEST_TEXT = 2000
LONGEST_EXCEPTION = 1000
ROUTINE = ("INFO", "DEBUG", "TRACE")
"""Levels at which one explanation is enough for all that a message is about."""
SUBJECTS = ("file", "partition", "directory", "group", "transactionalId", "topic", "nodeId")
"""Parts that tell two explanations of one message apart."""
_VARIABLE = re.compile(r"[0-9a-fA-F]{8,}|\d+|[\w-]{22}|/\S+|'[^']{0,200}'|\"[^\"]{0,200}\"")


class Reading(NamedTuple):
    """What an entry is: the message that is explained, general messages around it, the message of the exception with
    it, all parts, and whether one of the messages matters at level INFO, too."""

    message: Message
    carriers: tuple[str, ...]
    inner: Message | None
    parts: dict[str, str]
    at_info: bool


def read_entry(entry: Entry, *, anywhere: bool = False) -> Reading | None:
    """Return what an entry is; None if it is not known. `anywhere`: the text was pasted, perhaps from the middle."""
    matched = list(matches(entry.text))
    _, context = without_context(entry.text)
    if not matched and anywhere:
        pasted = search(entry.text)
        matched = [] if pasted is None else [pasted]
    causes = [cause for cause in entry.causes if not cause.startswith(SUPPRESSED)] or entry.causes
    for cause in causes:
        matched += matches(cause)
    names = {match.message.name for match in matched}
    matched = [each for each in matched if not each.by_class or _means(each.message, names)]
    error = _innermost_error([entry.text, *causes], {**context, **_parts(matched)})
    if error is not None:
        matched = [*(match for match in matched if not match.message.errors), error]
    if not matched:
        return None
    return _reading(matched, context)


def _means(message: Message, logged_with: set[str]) -> bool:
    """Return True if an exception's class means the message in an entry with these."""
    return not message.inside or not logged_with.isdisjoint(message.inside)


def _innermost_error(lines: list[str], parts: dict[str, str]) -> Match | None:
    """Return the message for the operating system's error of the innermost exception that has one."""
    errors = (error_match(line, lines[0], parts) for line in reversed(lines))
    return next((error for error in errors if error is not None), None)


def _parts(matched: list[Match]) -> dict[str, str]:
    """Return the parts of all messages of an entry; of those that several have, those of the first."""
    return {name: value for match in reversed(matched) for name, value in match.parts.items()}


def _reading(matched: list[Match], context: dict[str, str]) -> Reading:
    root = next((match for match in matched if not match.message.general), matched[0])
    if matched[0].message.general:  # what failed is in the exception, and the innermost one says why
        root = next((match for match in reversed(matched) if not match.message.general), matched[0])
    root = next((match for match in reversed(matched) if match.message.decides), root)
    inner = next(
        (each for each in reversed(matched) if not each.message.general and each.message is not root.message), None
    )
    carriers = dict.fromkeys(match.message.name for match in matched if match.message is not root.message)
    if inner is not None:
        carriers.pop(inner.message.name, None)
    parts = normalized({**context, **_parts(matched), **root.parts})
    parts.pop(CAUSE, None)
    if "partition" not in parts:
        partition = partition_of(parts)
        if partition is not None:
            parts["partition"] = partition
    return Reading(
        root.message,
        tuple(carriers),
        None if inner is None else inner.message,
        parts,
        any(match.message.at_info for match in matched),
    )


class Groups:
    """The explanations of a log, and counts. `unknown_more`: unknown entries that are in no explanation; `is_pasted`:
    whether the entries were chosen by someone, who wants to know what they mean, also if they soon pass."""

    def __init__(self, *, is_pasted: bool = False) -> None:
        self.is_pasted = is_pasted
        self.known = self.unknown = self.unknown_more = 0
        self.first: int | None = None
        self.last: int | None = None
        self._known: dict[tuple[str, str], Explanation] = {}
        self._unknown: dict[str, Explanation] = {}
        self._general: set[str | None] = set()

    def add(self, entry: Entry, *, anywhere: bool = False) -> None:
        """Add an entry; one of level INFO or lower only if it is known."""
        reading = read_entry(entry, anywhere=anywhere and not entry.level)
        severe = entry.level in SEVERE or anywhere
        if reading is None and not severe:
            return
        if reading is not None and entry.level not in SEVERE and not (reading.at_info or anywhere):
            return
        if entry.time is not None:
            self.first = entry.time if self.first is None else min(self.first, entry.time)
            self.last = entry.time if self.last is None else max(self.last, entry.time)
        if reading is None:
            self._add_unknown(entry)
            return
        self.known += 1
        subject = "" if entry.level in ROUTINE else _subject(reading.parts)
        key = (reading.message.name, subject)
        if key not in self._known and len(self._known) >= MAX_GROUPS:
            key = (reading.message.name, "")
        group = self._known.get(key)
        if group is None:
            group = self._known[key] = _explanation(entry, reading.message, reading.parts)
            if reading.message.general:
                self._general.add(reading.message.name)
        _count(group, entry)
        group.loggedAs = tuple(dict.fromkeys((*group.loggedAs, *reading.carriers)))
        if group.causedBy is None and reading.inner is not None:
            group.causedBy = reading.inner.name
        missing = [MessagePart(*part) for part in reading.parts.items() if part[0] not in group.about]
        group.parts = (*group.parts, *missing)

    def add_message(self, message: Message) -> None:
        """Add a message without an entry."""
        self._known[(message.name, "")] = _explanation(Entry("", number=0), message, {})

    def _add_unknown(self, entry: Entry) -> None:
        self.unknown += 1
        shape = entry.logger + _VARIABLE.sub("#", without_context(entry.text)[0][:200])
        group = self._unknown.get(shape)
        if group is None:
            if len(self._unknown) >= MAX_UNKNOWN:
                self.unknown_more += 1
                return
            group = self._unknown[shape] = _explanation(entry, None, without_context(entry.text)[1])
        _count(group, entry)

    def explanations(self) -> list[Explanation]:
        """Return all in the order in which to look at them: errors before warnings; after them what only reports that
        something else failed; then by line, because the first error usually causes the others. A warning that is
        earlier in the log comes before an error about the same thing. The unknown ones come at the end. Drops what
        passed within the time that is usual (Message.after)."""
        for key, group in () if self.is_pasted else list(self._known.items()):
            after = by_name()[key[0]].after
            if group.first is not None and group.last is not None and group.last - group.first < after:
                self.known -= self._known.pop(key).count
        known = sorted(self._known.values(), key=self._order)
        return [*_causes_first(known), *sorted(self._unknown.values(), key=self._order)]

    def _order(self, group: Explanation) -> tuple[int, bool, int]:
        level = LEVELS.index(group.level) if group.level in LEVELS else 1
        return max(level, 1), group.message in self._general, group.line  # FATAL is as urgent as ERROR


def _causes_first(ordered: list[Explanation]) -> list[Explanation]:
    """Return explanations in their order, but for warnings: those that are earlier in the log come before the first
    error about the same thing."""
    warnings: dict[str, list[Explanation]] = {}
    for each in ordered:
        if each.level == "WARN":
            for subject in _subjects(each):
                warnings.setdefault(subject, []).append(each)
    placed: dict[int, Explanation] = {}
    for each in ordered:
        if each.level in LEVELS[: LEVELS.index("WARN")]:
            causes = (cause for subject in _subjects(each) for cause in warnings.pop(subject, ()))
            for cause in sorted(causes, key=lambda cause: cause.line):
                if cause.line < each.line:
                    placed.setdefault(id(cause), cause)
        placed.setdefault(id(each), each)
    return list(placed.values())


def _subjects(explanation: Explanation) -> set[str]:
    """Return what an explanation is about: its partition, log directory or file; of KRaft's, the metadata log."""
    about = explanation.about
    subjects = {about[name] for name in ("partition", "directory", "file") if name in about}
    message = by_name().get(explanation.message or "")
    if message is not None and family_of(message) == "kraft":
        subjects.add(METADATA_LOG)
    return subjects


def _subject(parts: dict[str, str]) -> str:
    """Return what an entry is about: the partition of a file, else the first of SUBJECTS that it has."""
    named = partition_of({name: parts[name] for name in ("file",) if name in parts})
    return named or next((parts[name] for name in SUBJECTS if name in parts), "")


def _explanation(entry: Entry, message: Message | None, parts: dict[str, str]) -> Explanation:
    return of_fact(
        Explanation,
        entry,
        *(() if message is None else (message,)),
        message=None if message is None else message.name,
        count=0,
        first=entry.time,
        last=entry.time,
        line=entry.number,
        text=entry.text[:LONGEST_TEXT],
        exceptions=tuple(line[:LONGEST_EXCEPTION] for line in entry.causes),
        parts=tuple(MessagePart(*part) for part in parts.items()),
        reason="" if message is None else message.cause,
        commands=[],
    )


def _count(group: Explanation, entry: Entry) -> None:
    group.count += 1
    if entry.level in LEVELS and (group.level not in LEVELS or LEVELS.index(entry.level) < LEVELS.index(group.level)):
        group.level = entry.level
    if entry.time is not None:
        group.first = entry.time if group.first is None else min(group.first, entry.time)
        group.last = entry.time if group.last is None else max(group.last, entry.time)
