"""Reads a KRaft node's last quorum state in quorum-state. Source: FileQuorumStateStore."""

from __future__ import annotations

import json
import os

from kdump.format.numbers import parse_int
from kdump.log import file_system
from kdump.log.paths import target
from kdump.state.metadata_image import MetadataImage, QuorumLeader, Voter
from kdump.state.small_files import properties


def complete_quorum(metadata: MetadataImage, folder: str) -> None:
    """Complete `metadata` from the quorum-state file in `folder`, a metadata log directory: the leader if its epoch is
    higher than that found in the log, and the voters if the log has none."""
    path = os.path.join(folder, "quorum-state")
    quorum = properties(target(path) if file_system.isfile(path) else None)
    leader, epoch = (parse_int(quorum.get(name)) for name in ("leaderId", "leaderEpoch"))
    if leader is not None and epoch is not None and leader >= 0:
        known = metadata.leader
        if known is None or known.leaderEpoch < epoch:
            metadata.leader = QuorumLeader(leader, epoch)
    try:
        voters = json.loads(quorum.get("currentVoters", "[]"))
        numbers = [each["voterId"] for each in voters]
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if not metadata.voters:
        metadata.voters = {number: Voter(number) for number in numbers if isinstance(number, int)}
