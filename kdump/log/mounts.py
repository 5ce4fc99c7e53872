"""The bundles among the paths of a command line, which are then read like the disks that they were made from."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.log import file_system
from kdump.log.bundle_names import bundle_of
from kdump.log.bundle_tree import Bundle, open_bundle

_mounted: list[str] = []


def mount_bundles(paths: Iterable[str]) -> list[Bundle]:
    """Mount the bundles that these paths are, or are in, and return them. Raises SourceError for one that cannot be
    read."""
    found: list[Bundle] = []
    for path in paths:
        place = bundle_of(path)
        if place is not None and file_system.tree_at(place) is None:
            bundle = open_bundle(place, len(_mounted) + 1)
            file_system.mount(place, bundle)
            _mounted.append(place)
            found.append(bundle)
    return found


def unmount_bundles() -> None:
    """Forget the bundles of an earlier run in this process."""
    while _mounted:
        file_system.unmount(_mounted.pop())
