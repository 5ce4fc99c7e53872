"""The small files of a broker's disk, checkpoints and properties, read whole and as far as they go."""

from __future__ import annotations

import os

from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.paths import Target
from kdump.state.partition_log import Open, open_window

Offsets = dict[tuple[str, int], int]


def read_entries(
    at: Target, open_: Open = open_window, broken: list[str] | None = None, problems: list[str] | None = None
) -> list[Entry]:
    """The entries of a small file, as far as it can be read. If it cannot, that is added to `problems`; if it cannot,
    or has lines that make no sense, its name is added to `broken`: `kdump verify` says why."""
    found: list[Entry] = []
    sound = at.kind is not None
    try:
        window = open_(at)
        try:
            for item in entries(at.kind, window, 0) if at.kind is not None else ():
                if not isinstance(item, Entry):
                    sound = False
                elif item.type:
                    found.append(item)
        finally:
            window.source.close()
    except SourceError as error:
        sound = False
        if problems is not None:
            problems.append(str(error))
    if not sound and broken is not None:
        broken.append(os.path.basename(at.path))
    return found


def properties(at: Target | None, broken: list[str] | None = None) -> dict[str, str]:
    """The name=value lines of meta.properties, or the members of quorum-state or .kafka_cleanshutdown; empty without
    the file."""
    return {entry.values["name"]: entry.values["value"] for entry in read_entries(at, broken=broken)} if at else {}


def offsets(at: Target | None, broken: list[str] | None = None, problems: list[str] | None = None) -> Offsets:
    """What an offset checkpoint says of each topic and partition; empty without the file."""
    rows = (entry.values for entry in read_entries(at, broken=broken, problems=problems)) if at else ()
    return {(row["topic"], row["partition"]): row["offset"] for row in rows}
