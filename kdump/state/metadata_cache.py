"""The metadata of log directories, for commands that need it more than once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import see
from kdump.log.region import Limits
from kdump.log.source import Identity
from kdump.state.metadata import read_metadata
from kdump.state.metadata_image import MetadataImage


class MetadataCache:
    """Reads the metadata of each log directory once, and again if a broker has written to it since: what is examined
    later must not be compared with the topics of a minute ago."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[dict[str, Identity], MetadataImage | None]] = {}

    def __call__(
        self,
        directory: str,
        limits: Limits | None = None,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> MetadataImage | None:
        seen = see(os.path.join(directory, f"{METADATA_TOPIC}-0")).identities
        known = self._read.get(directory)
        if known is None or known[0] != seen:
            known = self._read[directory] = seen, read_metadata(directory, limits, on_progress)
        return known[1]

    def images(self) -> Iterator[tuple[str, MetadataImage]]:
        """Yield the log directories that have metadata, with what was read last."""
        for directory, (_, image) in self._read.items():
            if image is not None:
                yield directory, image
