"""The numbers above everything that was found on the disks: what a node still has from before must look older to a node
of the rescued cluster.

A node that has the same epoch and offset, with another record, would go on with it; one whose epoch is lower fetches
the new snapshot, whatever its end offset (ReplicatedLog.validateOffsetAndEpoch). A copy that was not found may be newer
than those that were, so that the margins are wide."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from kdump.format.numbers import parse_long
from kdump.io.errors import SourceError
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.quorum_state import quorum_state
from kdump.kafka.small_files import properties
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import LogDirectory
from kdump.questions.rescue.answer import RescueError
from kdump.state.metadata_image import MetadataImage, PartitionRegistration, QuorumImage

MORE_OFFSETS, MORE_EPOCHS, MORE_PRODUCER_IDS = 1_000_000, 1000, 1_000_000
"""How far the new numbers are above those that were found. A broker takes 1,000 producer IDs at a time."""
LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1


def new_offset(images: Iterable[QuorumImage], places: Sequence[LogDirectory], more: int = MORE_OFFSETS) -> int:
    """Return an offset above the end of each copy, each snapshot, and each broker epoch, which is the offset of a
    registration. Raises RescueError if there is none."""
    offsets = [0]
    for image in images:
        offsets.append(image.end_offset)
        offsets += [each.brokerEpoch for each in image.brokers.values()]
    offsets += [parse_long(properties(each.files.get(CLEAN_MARK)).get("brokerEpoch")) or 0 for each in places]
    return _above(max(offsets), more, LARGEST_LONG, "an offset or broker epoch")


def new_epoch(images: Iterable[QuorumImage], places: Sequence[LogDirectory], more: int = MORE_EPOCHS) -> int:
    """Return an epoch above that of each copy, each snapshot and each quorum-state. Raises RescueError if there is
    none."""
    epochs = [0]
    for image in images:
        epochs += [image.epoch, *(epoch for epoch, _ in image.epochs)]
    epochs += [quorum_state(os.path.join(place.path, METADATA_LOG)).epoch or 0 for place in places]
    return _above(max(epochs), more, LARGEST_INT, "a leader epoch")


def new_producer_id(image: MetadataImage) -> int:
    """Return the next producer ID to assign. Raises RescueError if there is none."""
    block = image.producer_ids.get("")
    next_id = 0 if block is None else block.nextProducerId
    return _above(next_id, MORE_PRODUCER_IDS, LARGEST_LONG, "the next producer ID")


def _above(highest: int, more: int, largest: int, what: str) -> int:
    # A node counts on from there.
    if highest > largest - 2 * more:
        raise RescueError(f"{what} on these disks is {highest}, above which there is no room; is that file damaged?")
    return highest + more


class LeaderEpochs:
    """The leader epochs of partitions to write: above that in the state, and above those on the disks. A leader epoch
    in the state may be behind that of the partition's own log, because records of the metadata log are left out or
    lost; a leader then truncates what its followers have."""

    def __init__(self, places: Sequence[LogDirectory]) -> None:
        self._on_disk: dict[tuple[str, int], int] = {}
        self.raised = 0
        self.highest = 0
        for topic, number, epoch in _on_disks(places):
            if epoch >= MORE_EPOCHS:
                key = topic, number
                self._on_disk[key] = max(epoch, self._on_disk.get(key, 0))

    def raise_epoch(self, topic: str, number: int, partition: PartitionRegistration) -> PartitionRegistration:
        """Return the partition with a higher leader epoch. Raises RescueError if there is none."""
        highest = max(partition.leaderEpoch, self._on_disk.get((topic, number), 0))
        self.raised += 1
        raised = _above(highest, MORE_EPOCHS, LARGEST_INT, f"the leader epoch of {topic}-{number}")
        self.highest = max(self.highest, raised)
        return partition._replace(leaderEpoch=raised)


def _on_disks(places: Sequence[LogDirectory]) -> Iterator[tuple[str, int, int]]:
    """Yield topic, number and last leader epoch of the partitions on the disks."""
    for place in places:
        for log in place.partitions:
            if log.topic is None or log.partition is None or log.path.endswith(METADATA_LOG):
                continue
            try:
                entries = checkpoint_file.epochs(os.path.join(log.path, "leader-epoch-checkpoint"))
            except (BadLine, SourceError):
                continue
            if entries:
                yield log.topic, log.partition, max(entry.epoch for entry in entries)
