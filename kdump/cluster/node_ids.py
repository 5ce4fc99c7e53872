"""The IDs in a log directory's meta.properties. Source: MetaProperties."""

from __future__ import annotations

from kdump.kafka.small_files import properties
from kdump.log.log_directory import META, LogDirectory
from kdump.state.partition_summary import Open, open_window


def node_ids(directory: LogDirectory, open_: Open = open_window) -> dict[str, str]:
    """Return what meta.properties states, with the name node.id, which was broker.id before KRaft; empty if the file is
    missing or cannot be read."""
    found = properties(directory.files.get(META), open_=open_)
    if "broker.id" in found:
        found.setdefault("node.id", found["broker.id"])
    return found
