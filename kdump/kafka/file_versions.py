"""Whether a version that no known release writes in a small file is that of a newer release, or damage: one flipped bit
makes version 4 of 0. A newer release writes more than one such file, and numbers its versions one by one.

Source: CheckpointFile, PartitionMetadataFile, MetaPropertiesVersion, FileQuorumStateStore,
ProducerStateManager.readSnapshot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from typing import NamedTuple

from kdump.format.known_releases import newest
from kdump.format.numbers import parse_int
from kdump.format.producer_snapshot import SNAPSHOT_HEADER, VERSIONS
from kdump.format.text_files import CHECKPOINT
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.kafka.small_files import READERS, properties
from kdump.log import file_kinds
from kdump.log.live_files import open_window
from kdump.log.paths import Target, target

LONGEST_NUMBER = 16
"""Bytes of a checkpoint in which its version is looked for."""
MAX_LOOKED_AT = 100
"""Maximum number of other files whose versions are looked at, and of directories in which they are looked for."""
CHECKPOINTS = (file_kinds.OFFSET_CHECKPOINT, file_kinds.EPOCH_CHECKPOINT)


def file_version(file: Target) -> int | None:
    """Return the version that a small file states; None if it cannot be read."""
    if file.kind not in CHECKPOINTS and file.kind is not file_kinds.PRODUCER_SNAPSHOT:
        values = properties(file)
        return parse_int(values.get("version", values.get("data_version")))
    try:
        window = open_window(file)
    except SourceError:
        return None
    with closing(window.source), suppress(SourceError):
        data = bytes(window.view(0, LONGEST_NUMBER))
        if file.kind is file_kinds.PRODUCER_SNAPSHOT:
            return int.from_bytes(data[:2], "big", signed=True) if len(data) >= SNAPSHOT_HEADER.size else None
        lines = data.decode("ascii", "replace").splitlines()
        return parse_int(lines[0]) if lines else None
    return None


class VersionEvidence(NamedTuple):
    """What else on the disk shows which release ran. `agrees`: something else is of a newer release than the newest
    known one; `is_registered`: the node registered with a release that is known."""

    agrees: bool = False
    is_registered: bool = False

    def is_newer(self, path: str) -> bool:
        """Return True if a newer release wrote the file at `path`, whose version no known release writes; False if it
        is damaged."""
        return self.damaged_version(path) is None

    def damaged_version(self, path: str) -> int | None:
        """Return the version of a damaged file at `path`, which no known release writes; None if a newer release wrote
        it."""
        file = target(path)
        highest = _highest(file)
        version = None if highest is None or self.agrees else file_version(file)
        if highest is None or version is None:
            return None
        others = set(map(file_version, islice(_of_the_kind(file), MAX_LOOKED_AT))) - {None}
        if any(other is not None and other > highest for other in others):
            return None
        return None if not others and not self.is_registered and version == highest + 1 else version


NO_EVIDENCE = VersionEvidence()


def _highest(file: Target) -> int | None:
    """Return the highest known version of the kind of a file; None if it is of another kind."""
    if file.kind is file_kinds.PRODUCER_SNAPSHOT:
        return max(VERSIONS)
    reader = CHECKPOINT if file.kind in CHECKPOINTS else READERS.get(file.kind) if file.kind is not None else None
    return newest().files[reader].highest if reader else None


def _of_the_kind(file: Target) -> Iterator[Target]:
    """Yield other files of its kind: in its directory, and of one in a partition's, in the directories next to it."""
    own = os.path.abspath(file.path)
    place, name = os.path.split(own)
    around = os.path.dirname(place)
    places = [os.path.join(around, each) for each in islice(_names(around), MAX_LOOKED_AT)] if file.topic else []
    for directory in dict.fromkeys([place, *places]):
        is_own_name = file.kind is not file_kinds.PRODUCER_SNAPSHOT and directory != place
        for each in [name] if is_own_name else _names(directory):
            path = os.path.join(directory, each)
            other = target(path)
            if path != own and other.kind is file.kind and file_system.isfile(path):
                yield other


def _names(directory: str) -> list[str]:
    try:
        return sorted(file_system.listdir(directory))
    except OSError:
        return []
