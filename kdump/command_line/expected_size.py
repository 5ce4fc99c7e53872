"""How much a command will read: an estimate for its progress, from names and sizes of files alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from kdump.io import file_system
from kdump.log.paths import target

TopicPredicate = Callable[[str], bool]
"""Selects partitions by their topic."""


def segment_bytes(paths: Iterable[str], is_selected: TopicPredicate) -> int:
    """Return the total size in bytes of the segments at these paths and below them."""
    return sum(sum(_sizes(path, is_selected).values()) for path in paths)


def compared_bytes(paths: Iterable[str], is_selected: TopicPredicate) -> int:
    """Return the bytes that a comparison of each partition that is at several paths reads: each copy is read once for
    every other copy."""
    sides = [_sizes(path, is_selected) for path in paths]
    if all(len(side) == 1 for side in sides):  # copies of one partition, whatever their names
        return (len(sides) - 1) * sum(sum(side.values()) for side in sides)
    total = 0
    for name in set().union(*sides):
        copies = [side[name] for side in sides if name in side]
        total += (len(copies) - 1) * sum(copies)
    return total


def _sizes(path: str, is_selected: TopicPredicate) -> dict[str, int]:
    """Return the total size of the segments of each partition directory at a path, by its name."""
    if not file_system.isdir(path):
        return {"": _size(path)}
    sizes: dict[str, int] = {}
    for directory, _, names in file_system.walk(path):
        logs = [os.path.join(directory, name) for name in names if name.endswith((".log", ".log.swap"))]
        topic = target(logs[0]).topic if logs else None
        if logs and (topic is None or is_selected(topic)):
            name = os.path.basename(os.path.abspath(directory))
            sizes[name] = sizes.get(name, 0) + sum(map(_size, logs))
    return sizes


def _size(path: str) -> int:
    try:
        return file_system.getsize(path)
    except (OSError, ValueError):  # deleted in the meantime, or a URL
        return 0
