"""The bundles among the paths of a command line, which are then read like the disks that they were made from."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.log import file_system
from kdump.log.bundle_names import is_bundle
from kdump.log.bundle_tree import Bundle, open_bundle

_mounted: list[Bundle] = []


def mount_bundles(paths: Iterable[str]) -> list[Bundle]:
    """Mount those of these paths that are bundles, and return them. Raises SourceError for one that cannot be read."""
    found: list[Bundle] = []
    for path in paths:
        if file_system.tree_at(path) is None and is_bundle(path):
            bundle = open_bundle(path, len(_mounted) + len(found) + 1)
            found.append(bundle)
            file_system.mount(path, bundle)
    _mounted.extend(found)
    return found


def unmount() -> None:
    """Forget the bundles of an earlier run in this process."""
    _mounted.clear()
    file_system.unmount_all()
