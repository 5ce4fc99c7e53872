"""Reads a KRaft node's last quorum state in quorum-state. Source: FileQuorumStateStore."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from kdump.format.numbers import parse_int
from kdump.kafka.small_files import properties
from kdump.log import file_system
from kdump.log.paths import target
from kdump.state.metadata_image import MetadataImage, QuorumLeader, Voter

NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero UUID: the candidate's directory is unknown (ReplicaKey.NO_DIRECTORY_ID)."""


class QuorumState(NamedTuple):
    """What quorum-state states; None: nothing, or nothing that can be read. `voters`: with kraft.version 0."""

    leader: int | None = None
    epoch: int | None = None
    voted: int | None = None
    votedDirectory: str | None = None
    voters: tuple[int, ...] | None = None


def quorum_state(folder: str) -> QuorumState:
    """Return what the file in `folder`, a metadata log directory, states."""
    path = os.path.join(folder, "quorum-state")
    found = properties(target(path) if folder and file_system.isfile(path) else None)
    leader, epoch, voted = (parse_int(found.get(name)) for name in ("leaderId", "leaderEpoch", "votedId"))
    directory = found.get("votedDirectoryId")
    try:
        numbers = [each["voterId"] for each in json.loads(found.get("currentVoters", "[]"))]
        voters = tuple(number for number in numbers if isinstance(number, int))
    except (ValueError, TypeError, KeyError, RecursionError):
        voters = None
    return QuorumState(
        None if leader is None or leader < 0 else leader,
        epoch,
        None if voted is None or voted < 0 else voted,
        None if directory in ("", NO_DIRECTORY) else directory,
        voters,
    )


def complete_quorum(metadata: MetadataImage, folder: str) -> None:
    """Complete `metadata` from the quorum-state file in `folder`, a metadata log directory: the leader if its epoch is
    higher than that found in the log, and the voters if the log has none."""
    state, known = quorum_state(folder), metadata.leader
    if state.leader is not None and state.epoch is not None and (known is None or known.leaderEpoch < state.epoch):
        metadata.leader = QuorumLeader(state.leader, state.epoch)
    if state.voters is not None and not metadata.voters:
        metadata.voters = {number: Voter(number) for number in state.voters}
