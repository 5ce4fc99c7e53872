"""Finds out whether bytes of a segment are withheld: only then what reads it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdump.io.source import BYTES, Source

if TYPE_CHECKING:
    from kdump.io.withheld import StoredSegment
    from kdump.log.withheld_segment import WithheldSegment


def withheld_segment(source: Source) -> WithheldSegment | None:
    """Return the reader of a segment of which bytes are withheld; None for any other source."""
    stored = _stored(source)
    if stored is None:
        return None
    from kdump.log.withheld_segment import WithheldSegment

    stored.reader = stored.reader or WithheldSegment(stored)
    return stored.reader  # type: ignore[no-any-return]


def with_bytes(opener: Callable[[str], Source]) -> Callable[[str], Source]:
    """Return a function that opens paths as `opener` does, but segments without some of their bytes as SegmentBytes."""

    def opened(path: str) -> Source:
        source = opener(path)
        stored = _stored(source)
        if stored is None:
            return source
        from kdump.log.withheld_bytes import SegmentBytes

        return SegmentBytes(stored)

    return opened


def _stored(source: Source) -> StoredSegment | None:
    if BYTES not in source.lacks:
        return None
    from kdump.io.withheld import StoredSegment

    assert isinstance(source, StoredSegment)
    return source
