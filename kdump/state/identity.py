"""Whose a log directory is: what its meta.properties says."""

from __future__ import annotations

from kdump.log.disk import LogDirectory
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.kinds import META_PROPERTIES
from kdump.log.source import open_source
from kdump.log.window import Window


def meta_properties(directory: LogDirectory) -> dict[str, str]:
    """cluster.id, node.id (broker.id before KRaft), directory.id …; empty where the file cannot be read."""
    at = directory.files.get("meta.properties")
    if at is None:
        return {}
    try:
        window = Window(open_source(at.path))
    except SourceError:
        return {}
    try:
        found = [item.values for item in entries(META_PROPERTIES, window, 0) if isinstance(item, Entry) and item.type]
    except SourceError:
        return {}
    finally:
        window.source.close()
    return {row["name"]: row["value"] for row in found}
