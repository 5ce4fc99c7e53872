"""The controller quorum as a node finds it at startup: the voters, whether it is one, and the state in which it starts.

With kraft.version 1 a voter is a node ID and a directory ID, from the last VotersRecord in the newest metadata snapshot
or in the log, committed or not (KIP-853). With kraft.version 0 it is a node ID, from controller.quorum.voters.

Source: KRaftControlRecordStateMachine, QuorumState.initialize, KafkaRaftClient.initialize (4.3.1)."""

from __future__ import annotations

import os
from dataclasses import replace

from kdump.cluster.disks import Disks
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.format.kafka_release import KafkaRelease
from kdump.format.numbers import INT_MAX
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.kafka.quorum_state import quorum_state
from kdump.kafka.server_properties import VOTERS, ServerProperties
from kdump.log.internal_topics import METADATA_LOG
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import (
    CANDIDATE,
    EXIT,
    FOLLOWER,
    LEADER,
    RESIGNED,
    UNATTACHED,
    DirectoryPlan,
    PartitionPlan,
    Quorum,
    QuorumVoter,
    StartupFailure,
    failure,
)
from kdump.state.as_of import AsOf
from kdump.state.metadata_image import MetadataImage, QuorumImage
from kdump.state.releases import VOTERS_COMPARED

LISTENERS = ("listeners", "advertised.listeners")


def read_quorum(directory: DirectoryPlan, plan: PartitionPlan | None, metadata: QuorumImage | None) -> Quorum:
    """Return the quorum. `directory`: metadata.log.dir; `plan`: that of the metadata log, None if there is none."""
    folder = plan.path if plan is not None else ""
    known = [] if metadata is None else [(each.voterId, each.voterDirectoryId) for each in metadata.voters.values()]
    version = (metadata.kraft_version if metadata is not None else None) or 0
    election = quorum_state(folder)
    if election.voters and not version:
        # Static voters are those of the configuration, which quorum-state repeats. The log has those of the time when a
        # leader was elected.
        known = [(number, None) for number in election.voters]
    voters = [QuorumVoter(*voter) for voter in known]
    node, own = directory.nodeId, directory.directoryId
    is_voter, other = _membership(voters, node, own)
    log_epoch = plan.lastEpoch if plan is not None else 0
    leader, epoch = election.leader, max(election.epoch or 0, log_epoch)
    if is_voter and len(voters) == 1:
        state = LEADER
    elif (election.epoch or 0) < log_epoch:
        state, leader = UNATTACHED, None
    elif leader is not None and leader == node:
        state = RESIGNED
    elif election.voted == node and node is not None and election.votedDirectory in (None, own):
        state = CANDIDATE
    else:
        state = FOLLOWER if leader is not None and leader in {each.voterId for each in voters} else UNATTACHED
    return Quorum(version, voters, is_voter, other, state, leader, epoch)


def _membership(voters: list[QuorumVoter], node: int | None, own: str | None) -> tuple[bool | None, bool]:
    """Return whether the node is a voter, and whether only its directory ID is another one."""
    if not voters or node is None:
        return None, False
    same = [voter for voter in voters if voter.voterId == node]
    if not same:
        return False, False
    other = same[0].voterDirectoryId is not None and own is not None and same[0].voterDirectoryId != own
    return not other, other


def last_epoch_stop(quorum: Quorum, directory: DirectoryPlan) -> StartupFailure | None:
    """Return the stop for the largest possible epoch: no election can follow it. A voter then writes a negative epoch;
    any other node ignores every leader as outdated, and waits."""
    if quorum.epoch < INT_MAX:
        return None
    path = os.path.join(directory.path, METADATA_LOG, "quorum-state")
    exception = "Shutting down because we were unable to register with the controller quorum."
    if quorum.isVoter:
        entry = f"EpochEntry[epoch={-INT_MAX - 1}, …]"
        exception = f"IllegalArgumentException: Received invalid partition leader epoch entry {entry}"
    return failure(EXIT, "startup-last-epoch", path, exception, epoch=quorum.epoch)


def other_voters_stop(
    server: ServerProperties | None, directory: DirectoryPlan, release: KafkaRelease
) -> StartupFailure | None:
    """Return the stop for a server.properties with other voters than those that quorum-state has."""
    path = os.path.join(directory.path, METADATA_LOG, "quorum-state")
    voters = frozenset(quorum_state(os.path.dirname(path)).voters or ())
    if server is None or not server.voters or voters in (frozenset(), server.voters):
        return None
    if not VOTERS_COMPARED.applies(release):
        return None
    named, stated = (str(sorted(numbers)) for numbers in (server.voters, voters))
    exception = (
        f"IllegalStateException: Configured voter set: {named} is different from the voter set read from the state "
        f"file: {stated}. Check if the quorum configuration is up to date, or wipe out the local state file if "
        "necessary"
    )
    values = {"stated": stated, "configured": named, "properties": server.path}
    return failure(EXIT, "startup-voters-differ", path, exception, values=values)


def no_voters_stop(quorum: Quorum, server: ServerProperties | None, directory: DirectoryPlan) -> StartupFailure | None:
    """Return the stop for the only voter of a static quorum whose properties set no voters, and for a node without
    voters that looks for a leader at itself alone: with kraft.version 0 voters come from the properties alone
    (KRaftControlRecordStateMachine)."""
    if server is None or "controller" not in (server.roles or ()) or quorum.kraftVersion:
        return None
    own = {word.partition("://")[2] for name in LISTENERS for word in server.words(name)}
    asks_itself = own.issuperset(asked := server.words("controller.quorum.bootstrap.servers")) and bool(asked)
    is_sole = [each.voterId for each in quorum.voters] == [directory.nodeId] or (not quorum.voters and asks_itself)
    if not is_sole or VOTERS in server.values or VOTERS in server.unresolved:
        return None
    exception = "The loader is still catching up because we still don't know the high water mark yet."
    return failure(EXIT, "startup-no-voters", server.path, exception, properties=server.path, node=directory.nodeId)


def sole_voter_stop(quorum: Quorum, directory: DirectoryPlan) -> StartupFailure | None:
    """Return the stop for the only voter if its directory has another ID: no node can be elected, and it waits for a
    leader for ever (KIP-853)."""
    if not quorum.hasOtherDirectory or len(quorum.voters) > 1:
        return None
    path = os.path.join(directory.path, "meta.properties")
    exception = "The loader is still catching up because we still don't know the high water mark yet."
    values = _other_directory(directory, quorum.voters[0].voterDirectoryId)
    return failure(EXIT, "startup-sole-voter-differs", path, exception, values=values)


def _other_directory(directory: DirectoryPlan, expected: str | None) -> dict[str, object]:
    ids = {"node": directory.nodeId, "own": directory.directoryId, "expected": expected}
    return {**ids, "directory": directory.path}


def quorum_warnings(
    quorum: Quorum, directory: DirectoryPlan, metadata: QuorumImage | None, *, is_controller: bool
) -> list[Problem]:
    """Return what the administrator should know before startup."""
    path = os.path.join(directory.path, METADATA_LOG, "quorum-state")
    led = metadata.leader if metadata is not None else None
    is_several = quorum.isVoter and len(quorum.voters) > 1
    if is_several and led is not None and led.leaderId == directory.nodeId and not file_system.exists(path):
        values = {"file": path, "node": directory.nodeId, "epoch": led.leaderEpoch}
        return [Problem("startup-voter-without-state", values)]
    if quorum.hasOtherDirectory and len(quorum.voters) > 1:
        own = next(voter.voterDirectoryId for voter in quorum.voters if voter.voterId == directory.nodeId)
        return [Problem("startup-voter-other-directory", _other_directory(directory, own))]
    if is_controller and quorum.kraftVersion and quorum.isVoter is False and not quorum.hasOtherDirectory:
        voters = ", ".join(str(voter.voterId) for voter in quorum.voters)
        return [Problem("startup-controller-not-voter", {"node": directory.nodeId, "voters": voters})]
    return []


def metadata_after(log: PartitionPlan, disks: Disks) -> MetadataImage | None:
    """Return what is in a metadata log after a startup, which may truncate it; None if that is unknown."""
    image = disks.copies.replayed(log.source)
    if image is None or log.logEndOffset is None or not log.cuts:
        return image
    if image.end_offset == log.logEndOffset:  # what ended the replay is truncated
        return replace(image, problems=[each for each in image.problems if each is not image.gap_problem])
    if image.end_offset <= log.logEndOffset:
        return image
    try:
        return replay_metadata(metadata_files(log.path), AsOf(offset=log.logEndOffset - 1))
    except (SourceError, OSError):
        return None
