"""The bundles among the paths of a command line, which are then read like the disks that they were made from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kdump.io import file_system
from kdump.io.command_line_paths import without_slash
from kdump.log.bundle_names import COMPRESSED, bundle_of

if TYPE_CHECKING:  # slow to import
    from kdump.log.bundle_manifest import Manifest
    from kdump.log.bundle_tree import Bundle

Function = TypeVar("Function", bound=Callable[..., Any])
_mounted: list[str] = []


def mount_bundles(paths: Iterable[str]) -> list[Bundle]:
    """Mount the bundles that these paths are, or are in, and return them. Raises SourceError for one that cannot be
    read."""
    bundles: list[Bundle] = []
    for path in paths:
        place = bundle_of(path)
        if place is None:
            if path.endswith(COMPRESSED):
                from kdump.log.packed_bundles import refuse_compressed

                refuse_compressed(path)
        elif file_system.tree_at(place) is None:
            from kdump.log.bundle_tree import open_bundle  # most runs read no bundle

            bundle = open_bundle(place, len(_mounted) + 1)
            file_system.mount(place, bundle)
            _mounted.append(place)
            bundles.append(bundle)
    return bundles


def manifest_of(path: str) -> Manifest | None:
    """Return the manifest of the mounted bundle in which a path is; None if it is in none."""
    tree = file_system.tree_at(path)
    return None if tree is None else getattr(tree[0], "manifest", None)


def origin(path: str) -> tuple[str | None, str]:
    """Return the host and the path there of what is in a bundle that is mounted; None and the path itself for any other
    path."""
    tree, manifest = file_system.tree_at(path), manifest_of(path)
    if tree is None or manifest is None:
        return None, path
    name, _, rest = tree[1].partition("/")
    if len(manifest.names) == 1:
        directory, rest = manifest.directories[0], tree[1]
    else:
        directory = next((each for own, each in zip(manifest.names, manifest.directories) if own == name), name)
    return manifest.host, f"{directory}/{rest}" if rest else directory


def unmount_bundles() -> None:
    """Forget the bundles of an earlier run in this process."""
    while _mounted:
        file_system.unmount(_mounted.pop())


def takes_bundles(function: Function) -> Function:
    """Decorate a function of the API whose first argument is a path or several: it is called with a list of them, and
    raises ValueError if there is none. They may be bundles, or in bundles; one stays mounted until the process ends."""

    @wraps(function)
    def with_bundles(paths: Any, *args: Any, **options: Any) -> Any:
        is_single = isinstance(paths, (str, os.PathLike))
        several = [without_slash(os.fspath(path)) for path in ([paths] if is_single else paths)]
        if not several:
            raise ValueError("no path was given")
        mount_bundles(several)
        return function(several, *args, **options)

    return cast("Function", with_bundles)
