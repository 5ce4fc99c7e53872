"""What has the cause of an item: what the catalogue lets it cover, where both are about the same bytes or offsets."""

from __future__ import annotations

import os

from kdump.check.finding import Finding
from kdump.check.rules.checkpoints import CHECKPOINT_BEYOND_LOG
from kdump.incident.doctor.answer import DAMAGE, LOG, AffectedRange, Item
from kdump.log.paths import PARTITION
from kdump.problems.catalogue import declaration

TWICE = "partition-duplicate"
"""Is found in either of two log directories."""
ANY = "*"


def place_of(what: Item | Finding) -> AffectedRange:
    """Return the place of an item or a finding."""
    topic, partition, file, begin = what.topic, what.partition, what.file, what.position
    inside = os.path.relpath(file, what.source) if file and what.source else ""
    if topic is None and (match := PARTITION.match(inside.partition(os.sep)[0])):
        topic, partition = match["topic"], int(match["partition"])
    if isinstance(what, Item):
        is_segment = file is not None and os.path.basename(file).removesuffix(".log").isdigit()
        return AffectedRange(what.source, topic, partition, file, begin if is_segment else None, begin, what.offset)
    first, last = what.offset, None if what.next_offset is None else what.next_offset - 1
    if what.code == CHECKPOINT_BEYOND_LOG.code and isinstance(what.expected, int):
        first, last = what.expected, what.offset
    is_damage = declaration(what.code).family == "bytes"
    end = what.position + what.size if is_damage else None
    return AffectedRange(what.source, topic, partition, file, begin, end, first, last)


class Causes:
    """The places of the items so far, each with the codes that it covers there."""

    def __init__(self) -> None:
        self._places: dict[tuple[object, ...], list[tuple[str, AffectedRange]]] = {}
        """By code, source, topic and partition; each with the question if it has that code itself, else ""."""

    def add(self, item: Item, *, is_reported: bool) -> None:
        """Add an item, and what it covers, which it does also if it has a cause itself."""
        if item.question == LOG:
            return
        own = [(item.code, item.question)] if is_reported and item.question != DAMAGE else []
        for code, question in (*((code, "") for code in item.covers), *own):
            for place in item.places or (place_of(item),):
                self._places.setdefault(_key(code, place), []).append((question, place))

    def has(self, code: str, question: str, *places: AffectedRange) -> bool:
        """Return True if all these places of a problem are explained."""
        codes = (code, ANY) if question == DAMAGE else (code,)
        return all(
            any(
                of != question and (code == TWICE or cause.explains(place, by_bytes=name == ANY))
                for name in codes
                for of, cause in self._places.get(_key(name, place), ())
            )
            for place in places
        )


def _key(code: str, place: AffectedRange) -> tuple[object, ...]:
    return (code, "" if code == TWICE else place.source, place.topic, place.partition)
