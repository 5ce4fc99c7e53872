"""Names and labels on the page. All text from a disk passes through here, or through escape.printable."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Hashable
from datetime import timedelta, timezone, tzinfo

from kdump.format.iso_time import EPOCH
from kdump.incident.report.facts import PartitionFacts, PostMortem
from kdump.incident.report.html.names_on_disk import NamesInText, names_on_disk
from kdump.log.internal_topics import INTERNAL_TOPICS
from kdump.questions.stats.answer import split_key
from kdump.questions.stats.totals import Stats
from kdump.render.escape import bytes_text, path_text, printable
from kdump.render.redaction import Redaction
from kdump.render.style import cut_middle
from kdump.render.times import iso

LONGEST = 60
"""Maximum characters that are shown of a key or a name."""
SHOWN_KEY = 48
STDIN = "standard input"


def clean(text: str) -> str:
    """Escape text from the disk for the page."""
    return printable(path_text(text)) if text != "-" else STDIN


class PageLabels:
    """How partitions, keys, times and other texts are shown. If two log directories have the same partition, the
    directory's name is added. `redaction` replaces keys and, if it has names, the names of topics and transactional IDs
    wherever they stand, and the paths."""

    def __init__(self, made: PostMortem, redaction: Redaction | None = None, zone: tzinfo = timezone.utc) -> None:
        self.redaction, self.zone = redaction, zone
        self._replaced, self._names = _replacements(made, redaction)
        self._pattern = _any_of(self._replaced)
        counts = Counter(_name(facts) for facts in made.partitions)
        self.names = {}
        for facts in made.partitions:
            name = _name(facts)
            if counts[name] > 1:
                above = os.path.basename(os.path.dirname(os.path.abspath(facts.path)))
                name = f"{above}/{name}"
            self.names[facts.path] = cut_middle(self.clean(name), LONGEST)

    def of(self, facts: PartitionFacts) -> str:
        return self.names.get(facts.path) or cut_middle(self.clean(facts.name), LONGEST)

    def clean(self, text: str) -> str:
        """Escape text from the disk for the page, its names replaced."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda match: self._replaced[match[0]], text)
        return clean(text if self._names is None else self._names.replaced(text))

    def file_name(self, path: str) -> str:
        """Return the last part of a path."""
        return self.clean(os.path.basename(path) or path)

    def base_name(self, path: str) -> str:
        """Return the name of a path that was given."""
        if path == "-":
            return STDIN
        name = os.path.basename(os.path.abspath(path))
        return clean(self.redaction.path(name) if self.redaction is not None else name)

    def key_name(self, stats: Stats, item: Hashable) -> tuple[str, str]:
        """Return topic and key of an item in the key counts."""
        topic, key, size, is_cut = split_key(stats, item)
        if self.redaction is not None:
            return self.clean(topic or "?"), f"{self.redaction.payload(key)} ({size:,} bytes)"
        shown = bytes_text(key, SHOWN_KEY)
        return clean(topic or "?"), f"{shown}… ({size:,} bytes)" if is_cut and not shown.endswith("…") else shown

    def time(self, milliseconds: int | None) -> str:
        """Format a time with milliseconds."""
        return iso(milliseconds, self.zone)

    def utc_offset(self, milliseconds: int) -> int:
        """Return how far the zone is ahead of UTC at that time, in ms; 0 if the time is outside the calendar."""
        try:
            offset = (EPOCH + timedelta(milliseconds=milliseconds)).astimezone(self.zone).utcoffset()
        except (OverflowError, ValueError):
            return 0
        return round(offset.total_seconds()) * 1000 if offset is not None else 0

    def second(self, milliseconds: int | None) -> str:
        """Format a time without milliseconds; a value that is not a valid time remains a number."""
        return _MILLISECONDS.sub("", iso(milliseconds, self.zone))


def utc_offset_text(offset: int) -> str:
    """Return the name of a zone that is `offset` ms ahead of UTC: UTC, UTC+01:00."""
    if not offset:
        return "UTC"
    hours, minutes = divmod(abs(offset) // 60_000, 60)
    return f"UTC{'+' if offset > 0 else '-'}{hours:02}:{minutes:02}"


_MILLISECONDS = re.compile(r"(?<=:\d\d)\.\d{3}(?=Z|[+-])")


def _name(facts: PartitionFacts) -> str:
    """Return the partition's name without the unique suffix of a directory that is not live."""
    if facts.path == "-":
        return STDIN
    is_named = facts.state and facts.topic is not None
    return f"{facts.topic}-{facts.partition} ({facts.state})" if is_named else facts.name


def _replacements(made: PostMortem, redaction: Redaction | None) -> tuple[dict[str, str], NamesInText | None]:
    """Return the paths that are to be replaced in any text, with their replacements, and what replaces names."""
    names = redaction.names if redaction is not None else None
    if names is None:
        return {}, None
    found = names_on_disk(made.paths, names)
    paths: dict[str, str] = {}
    for facts in (*made.partitions, *made.others):
        if facts.topic is not None and facts.topic not in INTERNAL_TOPICS:
            found[facts.topic] = names.topic(facts.topic)
        for row in facts.transactions:
            if row.transactionalId:
                found[row.transactionalId] = names.transactional_id(row.transactionalId)
    for path in (*made.paths, *(identified.path for identified in made.directories)):
        directory = os.path.dirname(path) if path != "-" else ""
        for text in (path, directory, os.path.abspath(path), os.path.dirname(os.path.abspath(path))):
            if text and text not in ("-", "/"):
                paths.setdefault(text, names.path(text))
    return paths, NamesInText(found)


def _any_of(texts: dict[str, str]) -> re.Pattern[str] | None:
    """Return a pattern for any of the texts, where it is not part of a longer name; the longest first."""
    if not texts:
        return None
    ordered = sorted(texts, key=len, reverse=True)
    return re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, ordered)) + r")(?!\w|\.\w)")
