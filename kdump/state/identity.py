"""Whose a log directory is, and what a node of the quorum knew last: meta.properties and quorum-state.

Source: MetaProperties, FileQuorumStateStore.
"""

from __future__ import annotations

import json
import os

from kdump.log.disk import LogDirectory
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.kinds import META_PROPERTIES, QUORUM_STATE, Kind
from kdump.log.source import open_source
from kdump.log.window import Window
from kdump.state.image import Metadata, QuorumLeader, Voter


def meta_properties(directory: LogDirectory) -> dict[str, str]:
    """cluster.id, node.id (broker.id before KRaft), directory.id …; empty where the file cannot be read."""
    at = directory.files.get("meta.properties")
    return _properties(at.path, META_PROPERTIES) if at else {}


def complete_quorum(metadata: Metadata, folder: str) -> None:
    """Leader and voters out of the quorum-state in a directory of the metadata log, where the log behind the snapshot
    does not say them."""
    said = _properties(os.path.join(folder, "quorum-state"), QUORUM_STATE)
    leader, epoch = (_number(said.get(name)) for name in ("leaderId", "leaderEpoch"))
    if leader is not None and epoch is not None and leader >= 0:
        known = metadata.leader
        if known is None or known.leaderEpoch < epoch:
            metadata.leader = QuorumLeader(leader, epoch)
    try:
        voters = json.loads(said.get("currentVoters", "[]"))
        numbers = [each["voterId"] for each in voters]
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if not metadata.voters:
        metadata.voters = {number: Voter(number) for number in numbers if isinstance(number, int)}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() and len(text) < 12 else None


def _properties(path: str, kind: Kind) -> dict[str, str]:
    if not os.path.isfile(path):
        return {}
    try:
        window = Window(open_source(path))
    except SourceError:
        return {}
    try:
        found = [item.values for item in entries(kind, window, 0) if isinstance(item, Entry) and item.type]
    except SourceError:
        return {}
    finally:
        window.source.close()
    return {row["name"]: row["value"] for row in found}
