"""What is known about a partition from outside its segments: its name, checkpoints, configs, and whether its open
transactions are hanging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kdump.answer import Unknown
from kdump.format.kafka_release import NEWEST_APPLIES, AppliedRelease
from kdump.kafka.index_builder import INTERVAL, LARGEST_INDEX
from kdump.kafka.small_files import CheckpointOffset
from kdump.log.internal_topics import INTERNAL_TOPICS, METADATA_TOPIC
from kdump.log.partition_directory import log_start_offset
from kdump.log.paths import Target
from kdump.state.other_replicas import OtherReplicas, replica_facts
from kdump.state.transaction_tracker import OngoingTxn
from kdump.state.unknown_offsets import CHECKPOINT_OF, NO_FILES, CheckpointFiles

NOT_CLOSED = ("delete", "stray")
"""States of directories whose logs a broker does not close (LogManager.shutdown)."""


class CheckpointedEpoch(NamedTuple):
    """A line of leader-epoch-checkpoint, with its position and size in bytes."""

    epoch: int
    startOffset: int
    position: int
    size: int


class TransactionView(Protocol):
    """Contents of the transaction coordinators' log (cluster.transaction_coordinator.TransactionCoordinatorState)."""

    def ongoing(self, producer_id: int, producer_epoch: int, topic: str, partition: int) -> bool | None: ...

    def has_changed(self) -> bool: ...

    def outcome(self, producer_id: int, producer_epoch: int, topic: str, partition: int) -> str | None: ...


@dataclass(frozen=True)
class PartitionContext:
    """What is known about a partition from outside its segments. None means unknown."""

    topic: str | None = None
    partition: int | None = None
    state: str = ""
    """delete, future or stray for a directory with that suffix; empty for a live one."""
    clean: bool | None = None
    """Whether the log directory was shut down cleanly."""
    compacted: bool | None = None
    deletes: bool | None = None
    delete_retention: int | None = None
    """delete.retention.ms of a compacted topic, in ms."""
    max_message_bytes: int | None = None
    index_interval: int = INTERVAL
    """index.interval.bytes and, below, segment.index.bytes: the topic's, or Kafka's defaults if they are unknown."""
    index_size: int = LARGEST_INDEX
    checkpoints: Mapping[str, CheckpointOffset] = field(default_factory=dict)
    """By the checkpoint's file name without '-checkpoint': recovery-point-offset, replication-offset, log-start-offset
    or cleaner-offset."""
    checkpoint_files: CheckpointFiles = NO_FILES
    """Why `checkpoints` lacks one of them."""
    epochs: tuple[CheckpointedEpoch, ...] | None = None
    """Lines of leader-epoch-checkpoint; none if a broker has none, because the file is empty or missing in its log
    directory. None if the file is invalid, or missing in a copy."""
    epochs_at: Target | None = None
    is_copy: bool = True
    """Whether files may be missing because this is not the directory of a broker."""
    running: bool | None = None
    """Whether a broker is running on the log directory."""
    topic_id: str | None = None
    """Topic ID in the cluster's metadata."""
    of_deleted_topic: bool | None = None
    """Whether its own topic ID was that of a topic, which was deleted; None if the metadata log does not show that."""
    replicas: OtherReplicas | None = None
    coordinator: TransactionView | None = None
    transaction_timeout: int = 900_000
    """Age in ms above which an open transaction is a warning."""
    now: int = 0
    """Current time, epoch ms."""
    tiered: bool = False
    """Whether segments of the topic are copied to remote storage."""
    remote_start: int | None = None
    """Of a tiered partition whose first segments are in remote storage: see RemoteLog.start_of."""
    never_copied: int | None = None
    """Of a tiered partition: the base offset of a segment whose missing producer snapshot keeps the one before it from
    remote storage (kdump.cluster.remote_log.never_copied)."""
    release: AppliedRelease = NEWEST_APPLIES
    last: bool | None = None
    """For a file that is checked alone: whether it is the newest segment of its partition."""

    @property
    def internal(self) -> bool:
        """Whether this is one of Kafka's own topics, which are written by coordinators and not by clients."""
        return self.topic in INTERNAL_TOPICS

    @property
    def facts(self) -> dict[str, bool | None]:
        """What it knows of the facts on which the actions for a finding depend (problems/facts.toml). KafkaRaftLog
        always opens the metadata log as after an unclean shutdown."""
        is_clean = False if self.topic == METADATA_TOPIC else self.clean
        known = {"clean": is_clean, "running": self.running, "tiered": self.tiered}
        return {**known, **replica_facts(self.replicas)}

    @property
    def is_cleaned(self) -> bool:
        """Whether the log is compacted, or has been: its topic's configs or cleaner-offset-checkpoint say so."""
        return bool(self.compacted) or "cleaner-offset" in self.checkpoints

    def is_hanging(self, producer_id: int, running: OngoingTxn) -> bool | None:
        """Return True if no coordinator will end an open transaction: its coordinator does not list it as Ongoing.
        Returns None if the coordinators' logs are not available or not complete, or if they have changed since they
        were read and the transaction may be a newer one (FindHangingTransactionsCommand, too, asks only about those
        that are older than the timeout)."""
        if self.coordinator is None or self.topic is None or self.partition is None:
            return None
        ongoing = self.coordinator.ongoing(producer_id, running.epoch, self.topic, self.partition)
        if ongoing is None or ongoing:
            return None if ongoing is None else False
        is_recent = self.now - max(running.timestamp, running.last_timestamp) <= self.transaction_timeout
        return None if is_recent and self.coordinator.has_changed() else True

    def outcome(self, producer_id: int, running: OngoingTxn) -> str | None:
        """Return COMMIT or ABORT: how its coordinator ended a hanging transaction; None if that is not certain."""
        if self.coordinator is None or self.topic is None or self.partition is None:
            return None
        epoch = max(running.epoch, running.last_epoch)
        return self.coordinator.outcome(producer_id, epoch, self.topic, self.partition)

    def may_be_open(self, is_last: bool) -> bool:
        """Return True if a broker may be appending to a segment, or was when it stopped: its indexes are then
        preallocated and not closed. `is_last`: it is the last one of its log. Those of the metadata log, and of a
        partition that is in deletion or stray, are never closed."""
        return is_last and (self.clean is not True or self.topic == METADATA_TOPIC or self.state in NOT_CLOSED)

    @property
    def high_watermark(self) -> int | None:
        """The last checkpointed high watermark; None if it is unknown, see `unstated`."""
        noted = self.checkpoints.get("replication-offset")
        return noted.offset if noted else None

    def unstated(self, key: str) -> Unknown | None:
        """Return why the offset of a key of CHECKPOINT_OF is unknown; None if it is known."""
        name = CHECKPOINT_OF[key]
        return None if name in self.checkpoints else self.checkpoint_files.why(key, name, self.state)

    @property
    def log_start(self) -> int | None:
        """The checkpointed log start offset, raised over what remote storage has deleted since."""
        noted = self.checkpoints.get("log-start-offset")
        return max(noted.offset, self.remote_start or 0) if noted else None

    @property
    def lineage(self) -> tuple[tuple[int, int], ...]:
        """Its leader epochs, each with its first offset."""
        return tuple((each.epoch, each.startOffset) for each in self.epochs or ())

    def log_start_offset(self, first: int | None) -> int | None:
        """Return the log start offset; `first`: base offset of the first segment, None without segments."""
        return log_start_offset(self.remote_start if self.log_start is None else self.log_start, first, self.tiered)

    def only_remote(self, first: int) -> tuple[int, int] | None:
        """Return the log start offset and `first`, the first offset of the segments here, if the log of a tiered
        partition starts in remote storage; None for any other."""
        start = self.log_start_offset(first)
        return (start, first) if self.tiered and start is not None and start < first else None
