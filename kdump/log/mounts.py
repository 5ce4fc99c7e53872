"""The bundles among the paths of a command line, which are then read like the disks that they were made from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kdump.log import file_system
from kdump.log.bundle_names import bundle_of

if TYPE_CHECKING:  # slow to import
    from kdump.log.bundle_tree import Bundle

_mounted: list[str] = []


def mount_bundles(paths: Iterable[str]) -> list[Bundle]:
    """Mount the bundles that these paths are, or are in, and return them. Raises SourceError for one that cannot be
    read."""
    found: list[Bundle] = []
    for place in filter(None, map(bundle_of, paths)):
        if file_system.tree_at(place) is None:
            from kdump.log.bundle_tree import open_bundle  # most runs read no bundle

            bundle = open_bundle(place, len(_mounted) + 1)
            file_system.mount(place, bundle)
            _mounted.append(place)
            found.append(bundle)
    return found


def unmount_bundles() -> None:
    """Forget the bundles of an earlier run in this process."""
    while _mounted:
        file_system.unmount(_mounted.pop())
