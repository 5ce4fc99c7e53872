"""The controller quorum as a node finds it at startup: the voters, whether it is one, and the state in which it starts.

With kraft.version 1 a voter is a node ID and a directory ID, from the last VotersRecord in the newest metadata snapshot
or in the log, committed or not (KIP-853). With kraft.version 0 it is a node ID, from controller.quorum.voters.

Source: KRaftControlRecordStateMachine, QuorumState.initialize, KafkaRaftClient.initialize (4.3.1).
"""

from __future__ import annotations

import os

from kdump.format.kafka_release import KafkaRelease
from kdump.format.numbers import INT_MAX
from kdump.io import file_system
from kdump.kafka.quorum_state import quorum_state
from kdump.kafka.server_properties import VOTERS, ServerProperties
from kdump.log.internal_topics import METADATA_LOG
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
)
from kdump.state.metadata_image import MetadataImage
from kdump.state.releases import VOTERS_COMPARED


def read_quorum(directory: DirectoryPlan, plan: PartitionPlan | None, metadata: MetadataImage | None) -> Quorum:
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
    message = f"the epoch {quorum.epoch} is the largest one: no leader can be elected after it"
    exception = "Shutting down because we were unable to register with the controller quorum."
    if quorum.isVoter:
        entry = f"EpochEntry[epoch={-INT_MAX - 1}, …]"
        exception = f"IllegalArgumentException: Received invalid partition leader epoch entry {entry}"
    remedy = f"move {path} out of the directory: the node learns leader and epoch again (a controller may vote twice)"
    return StartupFailure(EXIT, path, None, None, message, exception, remedy)


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
    message = f"it has the voters {stated}, {server.path} the voters {named}"
    exception = (
        f"IllegalStateException: Configured voter set: {named} is different from the voter set read from the state "
        f"file: {stated}. Check if the quorum configuration is up to date, or wipe out the local state file if "
        "necessary"
    )
    remedy = f"set {VOTERS} to the cluster's voters; if it is right, move {path} out of the directory"
    return StartupFailure(EXIT, path, None, None, message, exception, remedy)


def sole_voter_stop(quorum: Quorum, directory: DirectoryPlan) -> StartupFailure | None:
    """Return the stop for the only voter if its directory has another ID: no node can be elected, and it waits for a
    leader for ever (KIP-853)."""
    if not quorum.hasOtherDirectory or len(quorum.voters) > 1:
        return None
    own = quorum.voters[0].voterDirectoryId
    path = os.path.join(directory.path, "meta.properties")
    message = (
        f"the only voter of the quorum is node {directory.nodeId} with directory {own}, but {directory.path} is "
        f"directory {directory.directoryId}, as after formatting a new disk: no leader is elected, and the node never "
        "comes up"
    )
    exception = "The loader is still catching up because we still don't know the high water mark yet."
    remedy = (
        f"if this is the disk of that voter, and only its meta.properties is new, set directory.id={own} there; "
        "otherwise restore the disk of the voter"
    )
    return StartupFailure(EXIT, path, None, None, message, exception, remedy)


def quorum_warnings(
    quorum: Quorum, directory: DirectoryPlan, metadata: MetadataImage | None, *, is_controller: bool
) -> list[str]:
    """Return what the administrator should know before startup."""
    path = os.path.join(directory.path, METADATA_LOG, "quorum-state")
    led = metadata.leader if metadata is not None else None
    is_several = quorum.isVoter and len(quorum.voters) > 1
    if is_several and led is not None and led.leaderId == directory.nodeId and not file_system.exists(path):
        return [
            f"{path} is missing, and node {directory.nodeId} led epoch {led.leaderEpoch}: if the other voters still "
            "name it as the leader, it exits (IllegalStateException: … inconsistent with current leader); start it "
            "again when they have elected another one"
        ]
    if quorum.hasOtherDirectory and len(quorum.voters) > 1:
        own = next(voter.voterDirectoryId for voter in quorum.voters if voter.voterId == directory.nodeId)
        warning = (
            f"node {directory.nodeId} is no voter: the quorum has it with directory {own}, but {directory.path} is "
            f"directory {directory.directoryId}, as after formatting a new disk. It neither votes nor leads"
        )
        warning += "; kafka-metadata-quorum.sh remove-controller and add-controller make it a voter again"
        return [warning]
    if is_controller and quorum.kraftVersion and quorum.isVoter is False and not quorum.hasOtherDirectory:
        voters = ", ".join(str(voter.voterId) for voter in quorum.voters)
        return [
            f"node {directory.nodeId} is no voter (the voters are {voters}): it neither votes nor leads until "
            "kafka-metadata-quorum.sh add-controller makes it one"
        ]
    return []
