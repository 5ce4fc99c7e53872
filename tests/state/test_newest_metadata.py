"""The newest copy of the metadata among those of several nodes."""

from __future__ import annotations

import itertools

from kdump.state.metadata import read_metadata
from kdump.state.metadata_image import MetadataImage
from kdump.state.newest_metadata import newest_metadata
from tests.conftest import FIXTURES
from tests.each_case import each_case


def copy(end_offset: int, *, has_topics: bool) -> MetadataImage:
    found = read_metadata(str(FIXTURES / "disk-1")) if has_topics else MetadataImage()
    assert found is not None
    found.end_offset = end_offset
    return found


@each_case("order", itertools.permutations(range(4)))
def test_the_highest_end_offset_wins_and_topics_before_none(order: tuple[int, ...]) -> None:
    """A freshly formatted node has a log without topics, whatever its length."""
    copies = [
        ("older", copy(5, has_topics=True)),
        ("newest", copy(9, has_topics=True)),
        ("empty", copy(99, has_topics=False)),
        ("none", None),
    ]
    source, found = newest_metadata(copies[number] for number in order)
    assert (source, found) == copies[1]


def test_without_topics_anywhere() -> None:
    only = copy(3, has_topics=False)
    assert newest_metadata([("a", None), ("b", only)]) == ("b", only)
    assert newest_metadata([("a", None)]) == ("", None)
