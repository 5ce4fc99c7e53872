"""A model of a partition on three brokers that shares no code with kdump: a controller that fences and elects as
ReplicationControlManager and PartitionChangeBuilder (4.3.1) do, and replicas as lists of records, each an epoch and
whether it was acknowledged. A random history leaves its metadata and logs consistent, as a cluster does."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

BROKERS = (1, 2, 3)
NOBODY = -1


@dataclass
class Partition:
    """The partition as the controllers have it, and the log of each broker: the leader epoch of each record."""

    elr_enabled: bool
    unclean: bool
    least: int
    leader: int = 1
    epoch: int = 0
    isr: list[int] = field(default_factory=lambda: [1, 2, 3])
    elr: list[int] = field(default_factory=list)
    last_known: list[int] = field(default_factory=list)
    alive: set[int] = field(default_factory=lambda: set(BROKERS))
    logs: dict[int, list[int]] = field(default_factory=lambda: {broker: [] for broker in BROKERS})
    marks: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 0))
    first_leader: int = NOBODY
    """The first leader of a start."""

    # --- the controllers ---

    def change(self, isr: list[int], *, unclean_shutdown: int = NOBODY, alive: set[int]) -> None:
        """PartitionChangeBuilder.build with this target ISR."""
        elr, last_known = list(self.elr), list(self.last_known)
        if self.elr_enabled and len(isr) >= self.least:
            elr = []
        elif self.elr_enabled:
            elr = [each for each in dict.fromkeys((*self.elr, *self.isr)) if each not in (*isr, unclean_shutdown)]
        valid = isr or elr
        ordered = [self.leader, *BROKERS]
        leader = next((each for each in ordered if each in valid and each in alive), NOBODY)
        was_unclean = False
        if leader == NOBODY and self.elr_enabled and not isr and not elr and len(last_known) == 1:
            leader = last_known[0] if last_known[0] in alive else NOBODY
            was_unclean = leader != NOBODY
        if leader == NOBODY and self.unclean:
            leader = next((each for each in BROKERS if each in alive), NOBODY)
            was_unclean = leader != NOBODY
        if leader in elr:
            isr, elr = [leader], [each for each in elr if each != leader]
        elif was_unclean:
            isr = [leader]
        if was_unclean or not self.elr_enabled:
            elr = []
        if leader == NOBODY and not last_known and self.elr_enabled and leader != self.leader:
            last_known = [self.leader]
        elif leader != NOBODY:
            last_known = []
        if leader != self.leader:
            self.epoch += 1
            self.leader = leader
        self.isr = isr if isr or self.elr_enabled else self.isr
        self.elr, self.last_known = elr, last_known

    def fence(self, broker: int) -> None:
        self.alive.discard(broker)
        if broker in self.isr:
            self.change([each for each in self.isr if each != broker], alive=self.alive - {broker})
        self.replicate()

    def register(self, broker: int, *, clean: bool) -> None:
        """handleBrokerShutdown: of the incarnation before."""
        self.alive.discard(broker)
        if not self.elr_enabled or clean:
            self.fence(broker)
            return
        for _ in range(2):
            if broker in self.isr or broker in self.elr:
                self.elr = [each for each in self.elr if each != broker]
                isr = [each for each in self.isr if each != broker]
                self.change(isr, unclean_shutdown=broker, alive=self.alive - {broker})

    def unfence(self, broker: int) -> None:
        self.alive.add(broker)
        if self.leader == NOBODY:
            self.change(list(self.isr), alive=self.alive)
        self.replicate()

    # --- the brokers ---

    @property
    def led(self) -> list[int]:
        return self.logs[self.leader]

    def follow(self, broker: int, end: int) -> None:
        """Truncate to what the leader has, and fetch up to an offset."""
        log, led = self.logs[broker], self.led
        same = next((at for at, (own, its) in enumerate(zip(log, led)) if own != its), min(len(log), len(led)))
        self.logs[broker] = log[:same] + led[same : max(same, end)]

    def replicate(self, down: frozenset[int] = frozenset()) -> None:
        """Let all running followers fetch everything, and join the ISR."""
        if self.leader == NOBODY or self.leader in down:
            return
        for broker in self.alive - down - {self.leader}:
            self.follow(broker, len(self.led))
            if broker not in self.isr:
                self.change([*self.isr, broker], alive=self.alive)
        self.commit()

    def commit(self) -> None:
        if self.leader == NOBODY or not self.isr or (self.elr_enabled and len(self.isr) < self.least):
            return
        mark = min(len(self.logs[each]) for each in self.isr)
        for broker in self.alive:
            self.marks[broker] = min(mark, len(self.logs[broker]))

    def append(self, count: int) -> None:
        if self.leader != NOBODY:
            self.led.extend([self.epoch] * count)
            for broker in self.isr:
                self.follow(broker, len(self.led))
            self.commit()


@dataclass
class Failure:
    """A partition whose brokers are down, and how the last shutdown of each was."""

    partition: Partition
    clean: dict[int, bool]
    missing: set[int]
    """Brokers whose disks were replaced."""


def failed(source: random.Random) -> Failure:
    """Return what a random history leaves, with disks replaced or restored from a backup."""
    partition = Partition(source.random() < 0.5, source.random() < 0.3, source.choice((1, 2)))
    clean: dict[int, bool] = {}
    backup = {broker: list(log) for broker, log in partition.logs.items()}
    for _ in range(source.randint(1, 9)):
        event = source.random()
        if event < 0.45:
            partition.append(source.randint(1, 5))
        elif event < 0.55:
            backup = {broker: list(log) for broker, log in partition.logs.items()}
        elif event < 0.8 and partition.alive:
            broker = source.choice(sorted(partition.alive))
            clean[broker] = source.random() < 0.5
            partition.fence(broker)
        else:
            broker = source.choice(BROKERS)
            if broker not in partition.alive:
                partition.register(broker, clean=clean.get(broker, False))
                partition.unfence(broker)
    clean |= dict.fromkeys(partition.alive, False)
    missing = set()
    for broker in BROKERS:
        fate = source.random()
        if fate < 0.2:
            missing.add(broker)
            partition.logs[broker], partition.marks[broker] = [], 0
            clean[broker] = False
        elif fate < 0.3:
            partition.logs[broker] = backup[broker]
            partition.marks[broker] = min(partition.marks[broker], len(backup[broker]))
    return Failure(partition, clean, missing)


def started(failure: Failure, order: tuple[int, ...], source: random.Random) -> Partition:
    """Start the brokers in this order: the controllers fence those that failed with them, in an order of their own,
    before one registers again."""
    partition = failure.partition
    down = set(partition.alive)
    fences = sorted(down, key=lambda _: source.random())
    for broker in fences:
        partition.alive.discard(broker)
        if broker in partition.isr:
            others = set(fences[fences.index(broker) + 1 :])  # they have failed, and are not fenced yet
            partition.change([each for each in partition.isr if each != broker], alive=others)
    partition.alive = set()
    for broker in order:
        partition.register(broker, clean=failure.clean[broker])
        partition.unfence(broker)
        partition.first_leader = partition.leader if partition.first_leader == NOBODY else partition.first_leader
    return partition
