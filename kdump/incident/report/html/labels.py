"""Names and labels on the page. All text from a disk passes through here, or through escape.printable;
names are replaced by the rules of a redacted bundle."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Hashable, Iterable
from contextlib import closing, suppress
from datetime import timedelta, timezone, tzinfo

from kdump.decode.redaction.batches import Undecodable, redacted_record
from kdump.decode.redaction.files import TEXTS, redacted_file
from kdump.format.iso_time import EPOCH
from kdump.format.meta_properties import DIRECTORY_ID
from kdump.incident.report.facts import PartitionFacts, PostMortem
from kdump.io import file_system
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError
from kdump.io.source import open_source
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.file_kinds import KRAFT_SNAPSHOT, SEGMENT, by_name
from kdump.log.internal_topics import INTERNAL_TOPICS, METADATA_LOG, METADATA_TOPIC
from kdump.log.partition_directory import LIVE
from kdump.log.pseudonyms import PROPERTIES, Pseudonyms
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.questions.stats.answer import split_key
from kdump.questions.stats.totals import Stats
from kdump.render.escape import bytes_text, path_text, printable
from kdump.render.redaction import Redaction
from kdump.render.style import cut_middle
from kdump.render.times import iso

MAX_NAMES = 1 << 20
MAX_TEXT = 16 << 20
"""Maximum bytes of a text file that are looked into, as in a bundle."""
WORD = re.compile(r"\w[\w.-]*")
NUMBER = re.compile(r"[\d.-]*")
WRITTEN = re.compile(r"^#\w{3} \w{3} \d\d [\d:]+ \w+ \d{4}$", re.MULTILINE)
"""When Java has written properties."""


class CollectedNames(Pseudonyms):
    """Replacements that keep each name that they replace. Raises SourceError if there are too many."""

    def __init__(self, names: Pseudonyms) -> None:
        super().__init__(b"")
        self.found: dict[str, str] = {}
        self._names = names

    def _of(self, prefix: str, name: str) -> str:
        replacement = self._names.of(prefix, name)
        if name and not NUMBER.fullmatch(name):
            self.found.setdefault(name, replacement)
            if len(self.found) > MAX_NAMES:
                raise SourceError(f"more than {MAX_NAMES:,} names: --redact-names cannot replace all of them in texts")
        return replacement


def names_on_disk(paths: Iterable[str], names: Pseudonyms) -> dict[str, str]:
    """Return the names at and below the paths, with their replacements: those of files and directories, what is not a
    number in small text files, and all in the metadata. Raises SourceError if there are too many."""
    collected = CollectedNames(names)
    for path in paths:
        if path == "-" or is_url(path):
            continue
        alone = [(os.path.dirname(path), list[str](), [os.path.basename(path)])]
        for directory, below, here in alone if file_system.isfile(path) else file_system.walk(path):
            for name in (*below, *here):
                collected.file(name)
                stem, suffix = os.path.splitext(name)
                if suffix in LIVE:  # Kafka's message about such a file has its name without the suffix
                    collected.of("name", stem)
            for name in here:
                _of_file(os.path.join(directory, name), collected)
    return collected.found


def _of_file(path: str, names: CollectedNames) -> None:
    kind = by_name(path)[0]
    if kind is KRAFT_SNAPSHOT or (kind is SEGMENT and os.path.basename(os.path.dirname(path)) == METADATA_LOG):
        with suppress(SourceError), closing(open_source(path)) as source:
            for region in regions(Window(source)):
                for record in records(region) if isinstance(region, Batch) and is_valid(region) else ():
                    with suppress(Undecodable):
                        redacted_record(record, METADATA_TOPIC, names)
    elif kind in TEXTS:
        data = b""
        with suppress(SourceError), closing(open_source(path)) as source:
            data = source.read_at(0, MAX_TEXT)
        redacted_file(kind, data, 0, names)
        for word in WORD.findall(WRITTEN.sub("", data.decode("utf-8", "replace"))):
            if word not in PROPERTIES and word not in names.found and not DIRECTORY_ID.fullmatch(word):
                names.of("name", word)


class NamesInText:
    """Replaces names in texts: as words of their own, or before what Kafka appends to a name (-0, -value)."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        others = sorted((name for name in names if not WORD.fullmatch(name)), key=len, reverse=True)
        self._others = re.compile("|".join(map(re.escape, others))) if others else None

    def replaced(self, text: str) -> str:
        """Return the text without the names."""
        if self._others is not None:
            text = self._others.sub(lambda match: self._names[match[0]], text)
        return WORD.sub(lambda match: self._word(match[0]), text)

    def _word(self, word: str) -> str:
        for end in (len(word), *(at for at in range(len(word) - 1, 0, -1) if word[at] in "-.")):
            if word[:end] in self._names:
                return self._names[word[:end]] + word[end:]
        return word


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
                name = f"{self.file_name(os.path.dirname(os.path.abspath(facts.path)))}/{self.clean(name)}"
            else:
                name = self.clean(name)
            self.names[facts.path] = cut_middle(name, LONGEST)

    def of(self, facts: PartitionFacts) -> str:
        return self.names.get(facts.path) or cut_middle(self.clean(facts.name), LONGEST)

    def clean(self, text: str) -> str:
        """Escape text from the disk for the page, its names replaced."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda match: self._replaced[match[0]], text)
        return clean(text if self._names is None else self._names.replaced(text))

    def error(self, text: str) -> str:
        """Escape the text of an error that begins with a path."""
        names = self.redaction.names if self.redaction is not None else None
        return clean(text) if names is None else clean(names.located(text))

    def file_name(self, path: str) -> str:
        """Return the last part of a path."""
        if path in self._replaced:  # the name of a directory that was given is nowhere below it
            return self.base_name(path)
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
