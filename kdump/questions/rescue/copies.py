"""The copies of a cluster's metadata log on the disks: which is the newest, where the others differ from it, and what
is known to be committed.

Source: KafkaRaftClient (a voter with a higher last epoch, then end offset, has the longer log; LeaderState: the high
watermark is what a majority of the voters has)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kdump.cluster.disks import Disks
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.directory_listing import real_path
from kdump.io.run import PLAIN_RUN, Run
from kdump.kafka.follower_truncation import EpochLineage
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import LogDirectory
from kdump.questions.rescue.answer import AHEAD, BEHIND, DAMAGED, DIVERGES, EMPTY, SAME, USED, RescueCopy, RescueError
from kdump.state.metadata_image import QuorumImage

MAX_COPY_PROBLEMS = 20
"""Maximum number of problems of a copy that are reported."""


class MetadataHistories:
    """The copies in log directories of one cluster. `source`: the path of the one that is used."""

    def __init__(self, disks: Disks, chosen: str | None, run: Run = PLAIN_RUN) -> None:
        self.disks = disks
        self.places = [
            place for place in disks.directories if file_system.isdir(os.path.join(place.path, METADATA_LOG))
        ]
        newest = disks.copies.newest([place.path for place in self.places], run)[0]
        self.images = {place.path: disks.copies.quorum(place.path) for place in self.places}
        if not newest:
            names = ", ".join(place.path for place in self.places)
            raise RescueError(f"{names}: no copy of the metadata log has a segment or snapshot")
        self.source = newest if chosen is None else self._chosen(chosen)

    def _chosen(self, chosen: str) -> str:
        for path, image in self.images.items():
            if image is not None and real_path(path) == real_path(chosen):
                return path
        raise RescueError(f"--copy {chosen}: not one of the log directories with a copy of the metadata log")

    @property
    def used(self) -> QuorumImage:
        image = self.images[self.source]
        assert image is not None
        return image

    def node_id(self, place: LogDirectory) -> int | None:
        return parse_int(self.disks.ids(place).get("node.id"))

    def answers(self) -> list[RescueCopy]:
        """Return the copies in the order of their paths."""
        return [self._answer(place) for place in sorted(self.places, key=lambda place: place.path)]

    def _answer(self, place: LogDirectory) -> RescueCopy:
        image = self.images[place.path]
        if image is None:
            return RescueCopy(place.path, self.node_id(place), EMPTY)
        used, own = lineage(self.used), lineage(image)
        same = own.common_end(used)
        rest = max(0, own.end - same)
        if place.path == self.source:
            state = USED
        elif rest:
            state = DIVERGES if same < used.end else AHEAD
        elif image.gap is not None:
            state = DAMAGED
        else:
            state = SAME if own.end == used.end else BEHIND
        # The epoch in which it diverges may have begun before that.
        after = [entry.epoch for entry in own.epochs if entry.startOffset > same]
        first = [entry.epoch for entry in own.epochs if entry.startOffset <= same][-1:]
        return RescueCopy(
            place.path,
            self.node_id(place),
            state,
            image.snapshot,
            image.end_offset,
            image.epoch,
            image.end_time,
            same,
            rest,
            tuple(first + after) if rest else (),
            [each.text for each in image.problems[:MAX_COPY_PROBLEMS]],
        )

    def committed(self, voters: Iterable[int]) -> int | None:
        """Return the offset below which everything in the copy that is used is known to be committed; None if nothing
        states it."""
        used = lineage(self.used)
        shared = {
            place.path: lineage(image).common_end(used)
            for place in self.places
            if (image := self.images[place.path]) is not None
        }
        offsets = [
            min(image.committed, shared[path])
            for path, image in self.images.items()
            if image is not None and image.committed and shared[path]
        ]
        wanted = set(voters)
        ends: dict[int, int] = {}
        for place in self.places:
            node = self.node_id(place)
            if node in wanted and node is not None and place.path in shared:
                ends[node] = max(ends.get(node, 0), shared[place.path])
        majority = len(wanted) // 2 + 1
        if wanted and len(ends) >= majority:
            offsets.append(sorted(ends.values(), reverse=True)[majority - 1])
        return max(offsets, default=None)


def lineage(image: QuorumImage) -> EpochLineage:
    """Return the leader epochs of a copy, from its snapshot on."""
    start = image.snapshot or 0
    entries = [EpochEntry(image.snapshot_epoch, start)] if start else []
    for epoch, offset in image.epochs:
        if offset >= start and (not entries or epoch > entries[-1].epoch):
            if entries and offset == entries[-1].startOffset:
                entries.pop()
            entries.append(EpochEntry(epoch, offset))
    return EpochLineage(tuple(entries), start, image.end_offset)
