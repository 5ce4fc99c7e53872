"""Reads a KRaft node's last quorum state in quorum-state. Source: FileQuorumStateStore."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from kdump.format.kafka_release import KafkaRelease
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.numbers import INT_MAX, LONG_MAX, int16, parse_int
from kdump.io import file_system
from kdump.kafka.checkpoint_file import BadLine, read_small
from kdump.kafka.small_files import properties
from kdump.log.paths import seen_file
from kdump.state.metadata_image import MetadataImage, QuorumLeader, Voter
from kdump.state.releases import QUORUM_STATE_1

FIELDS = (
    ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
)
"""Mandatory fields, by data_version (QuorumStateData)."""
NUMBERS = {"leaderId": INT_MAX, "leaderEpoch": INT_MAX, "votedId": INT_MAX, "appliedOffset": LONG_MAX}
"""Those that are numbers, with the largest one."""


class NoQuorumState(BadLine):
    """UncheckedIOException: quorum-state is no JSON object with a version."""


class QuorumState(NamedTuple):
    """What quorum-state states; None: nothing, or nothing that can be read. `voters`: with kraft.version 0, else
    empty."""

    leader: int | None = None
    epoch: int | None = None
    voted: int | None = None
    votedDirectory: str | None = None
    voters: tuple[int, ...] | None = None


def quorum_state(folder: str) -> QuorumState:
    """Return what the file in `folder`, a metadata log directory, states."""
    path = os.path.join(folder, "quorum-state")
    members = properties(seen_file(path) if folder and file_system.isfile(path) else None)
    leader, epoch, voted = (parse_int(members.get(name)) for name in ("leaderId", "leaderEpoch", "votedId"))
    directory = members.get("votedDirectoryId")
    try:
        numbers = [voter["voterId"] for voter in json.loads(members.get("currentVoters", "[]"))]
        voters = tuple(number for number in numbers if isinstance(number, int))
    except (ValueError, TypeError, KeyError, RecursionError):
        voters = None
    return QuorumState(
        None if leader is None or leader < 0 else leader,
        epoch,
        None if voted is None or voted < 0 else voted,
        None if directory in ("", ZERO_UUID) else directory,  # ReplicaKey.NO_DIRECTORY_ID
        voters,
    )


def complete_quorum(metadata: MetadataImage, folder: str) -> None:
    """Complete `metadata` from the quorum-state file in `folder`, a metadata log directory: the leader if its epoch is
    higher than that found in the log, and the voters if the log has none."""
    state, leader = quorum_state(folder), metadata.leader
    if state.leader is not None and state.epoch is not None and (leader is None or leader.leaderEpoch < state.epoch):
        metadata.leader = QuorumLeader(state.leader, state.epoch)
    if state.voters is not None and not metadata.voters:
        metadata.voters = {number: Voter(number) for number in state.voters}


def check_quorum_state(path: str, release: KafkaRelease) -> None:
    """Check quorum-state, if there is one, as a node reads it at startup. Raises BadLine, SourceError."""
    unreadable = f"UncheckedIOException: Error while reading the Quorum status from the file {os.path.abspath(path)}"
    if file_system.isdir(path):
        is_kept = bool(file_system.listdir(path))  # by the releases, too, that delete what they cannot read
        error = BadLine if is_kept else NoQuorumState
        raise error(0, "quorum-state is a directory", f"{unreadable}; IOException: Is a directory")
    data = read_small(path) if file_system.isfile(path) else None
    if data is None:
        return
    if not data:
        raise NoQuorumState(0, "quorum-state is empty", f"{unreadable}; EOFException: File ended prematurely.")
    try:  # Kafka reads only the first line, and ignores what follows the object
        members, _ = json.JSONDecoder().raw_decode(data.splitlines()[0].decode("utf-8").lstrip())
    except (ValueError, RecursionError) as error:
        kind = "MalformedInputException" if isinstance(error, UnicodeDecodeError) else "JsonParseException"
        if isinstance(error, json.JSONDecodeError) and (error.pos >= len(error.doc) or "Unterminated" in error.msg):
            kind = "JsonEOFException"
        raise NoQuorumState(0, f"quorum-state is not JSON: {error}", f"{unreadable}; {kind}") from error
    if not isinstance(members, dict) or "data_version" not in members:
        raise NoQuorumState(0, "quorum-state has no data_version", f"{unreadable}; IOException: Deserialized node …")
    version = members["data_version"]
    whole = int(max(-INT_MAX - 1, min(INT_MAX, version))) if isinstance(version, float) else version
    number = int16(whole) if isinstance(whole, int) and not isinstance(whole, bool) else 0  # as JsonNode.shortValue
    newest = 1 if QUORUM_STATE_1.applies(release) else 0
    unread = f"quorum-state has data_version {str(version)[:40]}, which Kafka {release.number} does not read"
    if not 0 <= number <= newest and (refused := _refused(number, release)):
        raise BadLine(0, unread, refused)
    fields = FIELDS[max(0, min(number, newest))]
    missing = next((name for name in fields if name not in members), None)
    if missing is not None:
        message = unread if number > newest else f"quorum-state has no {missing}"
        exception = f"unable to locate field '{missing}', which is mandatory in version {number}"
        raise BadLine(0, message, f"RuntimeException: QuorumStateData: {exception}")
    for name in fields:
        if name in NUMBERS and (reason := _not_a_number(members[name], NUMBERS[name])):
            raise BadLine(0, f"{name} in quorum-state is not a number", f"NumberFormatException: {reason}")


def _not_a_number(value: Any, most: int) -> str:
    """Return why Kafka reads no number from a JSON value (MessageUtil.jsonNodeToInt); empty if it does."""
    if isinstance(value, str):
        return "QuorumStateData: expected an integer or string type, but got STRING"
    if isinstance(value, int) and not isinstance(value, bool) and -most - 1 <= value <= most:
        return ""
    return f'QuorumStateData: failed to parse number: For input string: "{json.dumps(value)[:40]}"'


def _refused(version: int, release: KafkaRelease) -> str:
    """Return the exception for a data_version that this release does not know; empty if it does not look at it."""
    if release.line < (3, 7):
        return ""
    if release.line == (3, 7):
        return f"UnsupportedVersionException: Unknown data version of {version}"
    highest = "$d" if release.line == (3, 8) else "1"  # its format is wrong
    limits = f"is not within the min (0) and max ({highest}) supported version"
    return f"IllegalStateException: data_version ({version}) {limits}"
