"""Notes on which release's rules are applied, where the disk leaves it open and it makes a difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.answer import Note
from kdump.questions.find_partitions import PartitionInput
from kdump.state.releases import Difference


def release_doubts(places: Iterable[PartitionInput], rules: tuple[Difference, ...]) -> Iterator[Note]:
    """Yield a note for each log directory on which several releases are possible that differ in one of `rules`."""
    reported: set[tuple[str, str]] = set()
    for place in places:
        applied, source = place.known.release, place.partition.source
        if not applied.doubt or not any(rule.is_open(applied) for rule in rules):
            continue
        doubt = f"the rules of Kafka {applied.release} are applied, but {applied.doubt} (--kafka-version)"
        if (source, doubt) not in reported:
            reported.add((source, doubt))
            yield Note(source, doubt)
