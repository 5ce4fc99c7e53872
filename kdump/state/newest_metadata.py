"""Chooses the newest of several copies of the cluster's metadata: each node has one, and some may end earlier."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.state.metadata_image import MetadataImage


def newest_metadata(copies: Iterable[tuple[str, MetadataImage | None]]) -> tuple[str, MetadataImage | None]:
    """Return the copy with the highest end offset, and its log directory; a copy without topics only if no other has
    any. "" and None if there is none. `copies`: log directories with their metadata, None if they have none. At most
    two are in memory at a time."""
    source, newest = "", None
    for path, found in copies:
        if found is not None and (newest is None or _rank(found) > _rank(newest)):
            source, newest = path, found
    return source, newest


def _rank(image: MetadataImage) -> tuple[bool, int]:
    return bool(image.topics), image.end_offset
