"""The bundles among the paths of a command line, which are then read like the disks that they were made from: nothing
else in kdump need know what a path is in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kdump import text
from kdump.io import file_system
from kdump.io.bundle.names import COMPRESSED, CONTAINER, HEAD, PACKED, begins_as_packed, bundle_of, is_bundle
from kdump.io.command_line_paths import without_slash
from kdump.io.errors import SourceError

if TYPE_CHECKING:  # slow to import
    from kdump.io.bundle.manifest import Manifest
    from kdump.io.bundle.tree import Bundle
    from kdump.io.window import Window

Function = TypeVar("Function", bound=Callable[..., Any])
_mounted: list[str] = []


mount_point = bundle_of
is_mount_point = is_bundle


def may_be_mounted(path: str) -> bool:
    """Return True for a path that mount_paths mounts or refuses."""
    return bundle_of(path) is not None or path.endswith(COMPRESSED)


def is_left_of_one(name: str, below: Iterable[str]) -> bool:
    """Return True if a file or directory may be what is left of something that could be mounted. `below`: the names in
    the directory 0 in it."""
    return any(ending in name for ending in PACKED) or any(each.endswith(CONTAINER) for each in below)


def mount_paths(paths: Iterable[str]) -> list[Bundle]:
    """Mount the bundles that these paths are, or are in, and return them. Raises SourceError for one that cannot be
    read."""
    bundles: list[Bundle] = []
    for path in paths:
        place = bundle_of(path)
        if place is None:
            if path.endswith(COMPRESSED):
                _refuse_compressed(path)
        elif file_system.tree_at(place) is None:
            from kdump.io.bundle.tree import open_bundle  # most runs read no bundle

            bundle = open_bundle(place, len(_mounted) + 1)
            file_system.mount(place, bundle)
            _mounted.append(place)
            bundles.append(bundle)
    return bundles


def refuse_packed(window: Window) -> None:
    """Raise SourceError for a packed bundle that is read as a file: it has another name, or is compressed."""
    if begins_as_packed(bytes(window.peek(0, HEAD))):
        name = window.source.name
        what = "a compressed bundle: decompress it, then" if name.endswith(COMPRESSED) else "a packed bundle:"
        raise SourceError.at(name, f"{what} give the path of a file whose name ends in {CONTAINER}")


def _refuse_compressed(path: str) -> None:
    if file_system.isfile(path):
        from kdump.io.source import open_source
        from kdump.io.window import Window

        with closing(open_source(path)) as source:
            refuse_packed(Window(source))


def _manifest_of(path: str) -> Manifest | None:
    tree = file_system.tree_at(path)
    return None if tree is None else getattr(tree[0], "manifest", None)


def why_not_taken(path: str) -> str:
    """Return why a command that needs the records does not take a path in a bundle, with the place to run it."""
    try:
        mount_paths([path])
        host, place = origin(path)
    except SourceError:
        host = None
    where = "docs/bundle.md lists the commands that do"
    return f"does not take a bundle: {where if host is None else f'run it on {host}, on {text.shell_word(place)}'}"


def origin(path: str) -> tuple[str | None, str]:
    """Return the host and the path there of what is in a bundle that is mounted; None and the path itself for any other
    path."""
    tree, manifest = file_system.tree_at(path), _manifest_of(path)
    if tree is None or manifest is None:
        return None, path
    name, _, rest = tree[1].partition("/")
    if len(manifest.names) == 1:
        directory, rest = manifest.directories[0], tree[1]
    else:
        directory = next((each for own, each in zip(manifest.names, manifest.directories) if own == name), name)
    return manifest.host, f"{directory}/{rest}" if rest else directory


text.on_host = lambda path: origin(path)[1]


def content_of(path: str) -> str:
    """Return what a bundle that contains a path has of its disk; empty if the path is in none. The same file can have
    more in another bundle."""
    manifest = _manifest_of(path)
    return "" if manifest is None else f"{manifest.depth} {manifest.internal} {sorted(manifest.topics)}"


def why_without_metadata(path: str) -> str | None:
    """Return why the metadata at a path is not that of the cluster: it is in a bundle with other names, or in one that
    lacks some of it. None if it is."""
    manifest = _manifest_of(path)
    if manifest is None or (manifest.redacted is None and manifest.complete and manifest.internal):
        return None
    lacks = "has other names" if manifest.redacted is not None else "is not complete"
    return f"the bundle {lacks}: make one with neither --redact nor --no-internal"


def unmount_paths() -> None:
    """Forget what an earlier run in this process has mounted."""
    while _mounted:
        file_system.unmount(_mounted.pop())


def takes_paths(function: Function) -> Function:
    """Decorate a function of the API whose first argument is a path or several: it is called with a list of them, and
    raises ValueError if there is none. They may be bundles, or in bundles; one stays mounted until the process ends."""

    @wraps(function)
    def with_list(paths: Any, *args: Any, **options: Any) -> Any:
        is_single = isinstance(paths, (str, os.PathLike))
        several = [without_slash(os.fspath(path)) for path in ([paths] if is_single else paths)]
        if not several:
            raise ValueError("no path was given")
        mount_paths(several)
        return function(several, *args, **options)

    return cast("Function", with_list)
