"""What a rule is: it sees the batches of one partition in order and says what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kdump.check.carried import Carrier
from kdump.check.finding import Finding
from kdump.format.heads import Heads
from kdump.log.disk import Segment
from kdump.log.internal_topics import INTERNAL_TOPICS
from kdump.log.paths import Target
from kdump.log.region import PADDING, TORN, Batch, Region
from kdump.state.marker import Marker

DAY = 86_400_000

LOST = "what lies between is lost to the damage that is reported in its place"
"""The consequence of a finding that follows from damage."""
NONE: tuple[Finding, ...] = ()


class Noted(NamedTuple):
    """An offset that a checkpoint file gives a partition, and where it says so."""

    offset: int
    at: Target
    position: int
    size: int


class EpochStart(NamedTuple):
    """A line of leader-epoch-checkpoint, and where it stands."""

    epoch: int
    startOffset: int
    position: int
    size: int


class TransactionView(Protocol):
    """What a transaction coordinator's log says (kdump.state.coordinator.Coordinator)."""

    def ongoing(self, producer_id: int, producer_epoch: int, topic: str, partition: int) -> bool | None: ...


@dataclass(frozen=True)
class Known:
    """What is known of a partition from outside its segments. None: not known."""

    topic: str | None = None
    partition: int | None = None
    state: str = ""
    """delete, future or stray for a directory of that kind."""
    clean: bool | None = None
    """Whether the log directory was shut down cleanly."""
    compacted: bool | None = None
    deletes: bool | None = None
    max_message_bytes: int | None = None
    checkpoints: Mapping[str, Noted] = field(default_factory=dict)
    """By the checkpoint's name less '-checkpoint': recovery-point-offset, replication-offset, log-start-offset,
    cleaner-offset."""
    epochs: tuple[EpochStart, ...] | None = None
    """As leader-epoch-checkpoint has them."""
    epochs_at: Target | None = None
    topic_id: str | None = None
    """What the cluster's metadata says."""
    coordinator: TransactionView | None = None
    transaction_timeout: int = 900_000
    """Ms."""
    now: int = 0
    """Epoch ms."""
    last: bool | None = None
    """Of a file that is checked alone: whether it is the newest of its partition."""

    @property
    def internal(self) -> bool:
        """Kafka's own topics: coordinators write them, not clients."""
        return self.topic in INTERNAL_TOPICS

    @property
    def log_start(self) -> int | None:
        noted = self.checkpoints.get("log-start-offset")
        return noted.offset if noted else None


class Part(NamedTuple):
    """A segment as it is being checked. `modified` is the file's last change in epoch ms, the present for what has
    none; `recovers` tells whether the broker re-reads it when it starts (LogLoader.recoverLog)."""

    segment: Segment
    target: Target
    last: bool
    recovers: bool | None
    modified: int
    size: int | None


def hides(part: Part, region: Region) -> bool:
    """Whether bytes that are no batch may have been batches that counted. What a restart cuts off the end of a log
    never did: zeros, or a batch that was being written."""
    at_end = part.last and part.size is not None and region.end == part.size
    return not (at_end and (region.kind == PADDING or (region.kind == TORN and part.recovers is not False)))


class Seen(NamedTuple):
    """A batch as the rules see it. `sound`: its checksum holds and its length is not contradicted, so that its fields
    can be believed; `damage`: where bytes lie between this batch and the one before it that are no sound batch."""

    part: Part
    batch: Batch
    sound: bool
    marker: Marker | None
    damage: int | None


class Rule(Carrier):
    """The hooks. A rule overrides those that it needs; each gives the findings that are certain by then.

    Sound batches that follow each other come together, as far as every rule has nothing to say of them: `free` tells
    that, and `take` then does what `batch` would have done for each. None of them is a control batch.

    What a rule still knows when a segment has ended it declares in `carries`, or it begins anew with each segment.
    """

    @property
    def takes_many(self) -> bool:
        """Whether batches may come together: a rule that looks at them has to say how far, by a `free` of its own."""
        return type(self).free is not Rule.free or type(self).batch is Rule.batch

    def free(self, part: Part, heads: Heads, first: int, stop: int) -> int:
        """The first of the batches first..stop that must be looked at by itself; `stop` if there is none."""
        return stop

    def take(self, part: Part, heads: Heads, first: int, stop: int) -> None:
        """The batches first..stop are as they should be."""

    def begin(self, part: Part) -> Iterable[Finding]:
        """A segment begins."""
        return NONE

    def batch(self, seen: Seen) -> Iterable[Finding]:
        return NONE

    def region(self, part: Part, region: Region) -> Iterable[Finding]:
        """Bytes that are no batch."""
        return NONE

    def finish(self, part: Part) -> Iterable[Finding]:
        """The segment has ended."""
        return NONE

    def unread(self) -> None:
        """A segment, or the rest of one, cannot be read: what it contains, and what it would end, is not known."""

    def end(self) -> Iterable[Finding]:
        """The partition has ended."""
        return NONE


class Run:
    """Findings of one kind in batches that follow each other, as one finding over all their bytes."""

    def __init__(self) -> None:
        self.first: Seen | None = None
        self.end = 0
        self.count = 0
        self.last_offset = 0

    def add(self, seen: Seen) -> None:
        if self.first is None:
            self.first = seen
            self.count = 0
        self.count += 1
        self.end = seen.batch.end
        self.last_offset = seen.batch.lastOffset

    def take(self) -> tuple[Seen, int, int, int] | None:
        """The first batch, how many, where they end, and the last offset; None if there is none."""
        if self.first is None:
            return None
        taken = (self.first, self.count, self.end, self.last_offset)
        self.first = None
        return taken
