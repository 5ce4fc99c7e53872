"""Names and labels on the page. All text from a disk passes through here, or through escape.printable."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable

from kdump.forensics.postmortem.facts import PartitionFacts, PostMortem
from kdump.forensics.stats import Stats
from kdump.render.escape import bytes_text, path_text, printable
from kdump.render.stats_objects import split_key
from kdump.render.times import iso

LONGEST = 60
"""Maximum characters that are shown of a key or a name."""
SHOWN_KEY = 48
STDIN = "standard input"


def clean(text: str) -> str:
    """Escape text from the disk for the page."""
    return printable(path_text(text)) if text != "-" else STDIN


def short(text: str, max_length: int = LONGEST) -> str:
    """Shorten text to at most `max_length` characters, by omitting its middle."""
    if len(text) <= max_length:
        return text
    half = (max_length - 1) // 2
    return text[: max_length - 1 - half] + "…" + text[len(text) - half :]


class PartitionLabels:
    """Names of the partitions. If two log directories have the same partition, the directory's name is added."""

    def __init__(self, made: PostMortem) -> None:
        counts = Counter(_name(facts) for facts in made.partitions)
        self.names = {}
        for facts in made.partitions:
            name = _name(facts)
            if counts[name] > 1:
                above = os.path.basename(os.path.dirname(os.path.abspath(facts.path)))
                name = f"{clean(above)}/{name}"
            self.names[facts.path] = short(name)

    def of(self, facts: PartitionFacts) -> str:
        return self.names.get(facts.path) or short(clean(facts.name))


def _name(facts: PartitionFacts) -> str:
    """Return the partition's name without the unique suffix of a directory that is not live."""
    if facts.path == "-":
        return STDIN
    is_named = facts.state and facts.topic is not None
    return clean(f"{facts.topic}-{facts.partition} ({facts.state})" if is_named else facts.name)


def second(milliseconds: int | None) -> str:
    """Format a time without milliseconds; a value that is not a valid time remains a number."""
    text = iso(milliseconds)
    return text[:19] + "Z" if text.endswith("Z") else text


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return clean(os.path.basename(path) or path)


def key_name(stats: Stats, item: Hashable) -> tuple[str, str]:
    """Return topic and key of an item in the key counts."""
    topic, key, size, is_cut = split_key(stats, item)
    text = bytes_text(key, SHOWN_KEY)
    return clean(topic or "?"), f"{text}… ({size:,} bytes)" if is_cut and not text.endswith("…") else text
