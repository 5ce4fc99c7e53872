"""A model of three voters that shares no code with kdump: Raft with the votes of KafkaRaftClient (4.3.1). A record is
its epoch, because in one epoch one leader appends. A random history knows what was committed."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, field

VOTERS = (1, 2, 3)


@dataclass
class Voter:
    """What a voter has on its disk. `in_set`: whether it is the voter that the others know (KIP-853); `is_blank`:
    whether it was formatted again."""

    log: list[int] = field(default_factory=list)
    epoch: int = 0
    voted: int | None = None
    leader: int | None = None
    in_set: bool = True
    is_blank: bool = False

    @property
    def length(self) -> tuple[int, int]:
        return (self.log[-1] if self.log else 0), len(self.log)


@dataclass
class Raft:
    voters: dict[int, Voter] = field(default_factory=lambda: {number: Voter() for number in VOTERS})
    committed: set[tuple[int, int]] = field(default_factory=set)
    """Offset and epoch of each committed record."""
    dynamic: bool = False
    changed: set[int] = field(default_factory=set)
    """Voters whose disks are not what they had last."""

    def elect(self, candidate: int, alive: set[int]) -> bool:
        """Let a voter ask for votes in the next epoch. Returns whether it leads."""
        own = self.voters[candidate]
        if not own.in_set or (self.dynamic and own.is_blank):  # it knows no voters
            return False
        epoch = max(self.voters[each].epoch for each in alive) + 1
        own.epoch, own.voted, own.leader = epoch, candidate, None
        votes = 1
        for number in alive - {candidate}:
            voter = self.voters[number]
            if voter.in_set and voter.epoch < epoch:
                voter.epoch, voter.voted, voter.leader = epoch, None, None
            if voter.in_set and voter.voted is None and own.length >= voter.length:
                voter.voted = candidate
                votes += 1
        if votes < 2:
            return False
        own.leader = candidate
        own.log.append(epoch)  # LeaderChangeMessage
        return True

    def replicate(self, leader: int, follower: int, end: int) -> None:
        own, led = self.voters[follower], self.voters[leader].log
        if not own.in_set or own.epoch > self.voters[leader].epoch:
            return
        own.epoch, own.leader = self.voters[leader].epoch, leader
        same = next((at for at, (one, other) in enumerate(zip(own.log, led)) if one != other), None)
        same = min(len(own.log), len(led)) if same is None else same
        own.log = led[: max(same, end)]

    def commit(self, leader: int) -> None:
        """Raft commits what a majority has, once that includes a record of the leader's own epoch."""
        led, epoch = self.voters[leader].log, self.voters[leader].epoch
        ends = []
        for voter in self.voters.values():
            same = next((at for at, (one, other) in enumerate(zip(voter.log, led)) if one != other), None)
            ends.append(min(len(voter.log), len(led)) if same is None else same)
        end = sorted(ends)[1]
        if end and led[end - 1] == epoch:
            self.committed |= set(enumerate(led[:end]))


def history(source: random.Random) -> Raft:
    """Return what a random history leaves: elections, records that some followers fetched; then the disk of a voter may
    be from a backup, or formatted."""
    raft = Raft(dynamic=source.random() < 0.5)
    backup = deepcopy(raft.voters)
    for _ in range(source.randint(1, 5)):
        alive = set(source.sample(VOTERS, source.choice((2, 3))))
        candidates = source.sample(sorted(alive), len(alive))
        leader = next((each for each in candidates if raft.elect(each, alive)), None)
        if leader is None:
            continue
        for _ in range(source.randint(0, 3)):
            led = raft.voters[leader]
            for follower in alive - {leader}:
                if source.random() < 0.7:
                    raft.replicate(leader, follower, source.randint(0, len(led.log)))
            raft.commit(leader)
            led.log.extend([led.epoch] * source.randint(0, 3))
            if source.random() < 0.3:
                backup = deepcopy(raft.voters)
    for number in VOTERS:
        fate = source.random()
        if fate < 0.3:
            raft.changed.add(number)
        if fate < 0.15:
            raft.voters[number] = deepcopy(backup[number])
        elif fate < 0.3:
            raft.voters[number] = Voter(in_set=not raft.dynamic or source.random() < 0.5, is_blank=True)
    return raft


def elected(raft: Raft, alive: set[int], source: random.Random) -> int | None:
    """Start these voters. Returns who leads; None if nobody can."""
    for _ in range(8):
        candidate = source.choice(sorted(alive))
        if raft.elect(candidate, alive):
            return candidate
    return next((each for each in sorted(alive) if raft.elect(each, alive)), None)
