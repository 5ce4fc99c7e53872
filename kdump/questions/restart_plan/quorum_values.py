"""The controller quorum as the files of a node state it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import Doc, PathText

LEADER, RESIGNED, CANDIDATE, FOLLOWER, UNATTACHED = "leader", "resigned", "candidate", "follower", "unattached"
"""States in which a node starts: leader at once, because it is the only voter; it led, and waits for an election; it
voted for itself, and asks for votes again; it follows the leader that it knew; it knows no leader."""


class QuorumVoter(NamedTuple):
    """A voter; its directory ID is null with kraft.version 0."""

    voterId: int
    voterDirectoryId: PathText | None


class Quorum(NamedTuple):
    """The quorum as this node's files state it."""

    kraftVersion: Annotated[int, Doc("finalized kraft.version")]
    voters: Annotated[list[QuorumVoter], Doc("the voters; empty if no file states them")]
    isVoter: Annotated[bool | None, Doc("whether this node is one of them; null if unknown")]
    hasOtherDirectory: Annotated[
        bool, Doc("whether its node ID is that of a voter, but its directory ID is not: then it is an observer")
    ]
    state: Annotated[str, Doc("state in which it starts: leader, resigned, candidate, follower, unattached")]
    leaderId: Annotated[int | None, Doc("leader in quorum-state; null if there is none")]
    epoch: Annotated[int, Doc("epoch in which it starts")]

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1
