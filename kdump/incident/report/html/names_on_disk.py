"""The names that may be in a text about a disk, and their replacements, by the rules of a redacted bundle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import closing, suppress

from kdump.decode.redaction.batches import Undecodable, redacted_record
from kdump.decode.redaction.files import TEXTS, redacted_file
from kdump.format.meta_properties import DIRECTORY_ID
from kdump.io import file_system
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError
from kdump.io.source import open_source
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.file_kinds import KRAFT_SNAPSHOT, SEGMENT, by_name
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC
from kdump.log.pseudonyms import PROPERTIES, Pseudonyms
from kdump.log.region import Batch
from kdump.log.region_reader import regions

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
