"""The cluster's metadata in the log directories of a run. Two facts are kept apart:

- what a node replays when it starts: the log in its metadata.log.dir;
- the newest known state of the cluster: of the copies on all disks, the one with the highest leader epoch, then with
  the highest end offset. A node catches up with it before it uses it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from kdump.io import file_system
from kdump.io.directory_listing import is_url, real_path
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.io.source import Identity
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.live_files import see

if TYPE_CHECKING:  # a check of a single file does not need the cluster's state
    from kdump.cluster.metadata_log import TopicTimes
    from kdump.state.left_out_records import RecordChoice
    from kdump.state.metadata_image import MetadataImage, QuorumImage


def may_have_log(directory: str) -> bool:
    """Return False if a log directory has no metadata log: most have none, and reading one is slow to import."""
    if is_url(directory):
        return True
    try:
        file_system.stat(os.path.join(directory, METADATA_LOG))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # read_metadata says why
        pass
    return True


class Age(NamedTuple):
    """How new a copy is: the newest has the highest. One without topics is newer only than others without any, because
    that is what a node has after its disk was formatted again. Of equal copies, the one with fewer problems counts."""

    has_topics: bool
    epoch: int
    end_offset: int
    problems: int

    @classmethod
    def of(cls, image: MetadataImage) -> Age:
        return cls(bool(image.topics), image.epoch, image.end_offset, -len(image.problems))


class _Copy(NamedTuple):
    """What is known of a copy whose files were as `seen` when it was read. `age` is None if there is none; `image`
    returns None if it is no longer in memory. `has_newer`, `quorum`: see the methods of these names."""

    seen: dict[str, Identity]
    age: Age | None = None
    has_newer: bool = False
    quorum: QuorumImage | None = None
    image: Callable[[], MetadataImage | None] = lambda: None


class MetadataCopies:
    """Reads the metadata of each log directory once, and again if a broker has written to it since: what is examined
    later must not be compared with the topics of a minute ago. The newest copy of each cluster stays in memory, the
    others while they are in use. `choices`: what is left out of each copy, so that its image has what is needed to
    write it again."""

    def __init__(self, limits: Limits = PLAIN_RUN.limits, choices: Mapping[str, RecordChoice] | None = None) -> None:
        self.limits = limits
        self.choices = choices
        self._copies: dict[str, _Copy] = {}
        self._kept: dict[str, MetadataImage] = {}
        self._times: dict[str, tuple[dict[str, Identity], TopicTimes]] = {}

    def replayed(self, directory: str, run: Run = PLAIN_RUN) -> MetadataImage | None:
        """Return what a node replays from the metadata log in this directory; None if there is none."""
        age, image = self._look(directory, run)
        if image is None and age is not None:  # it was read, and is no longer in memory
            del self._copies[directory]
            _, image = self._look(directory, run)
        return image

    def quorum(self, directory: str) -> QuorumImage | None:
        """Return the quorum of what a node replays; None without a metadata log."""
        self._look(directory, PLAIN_RUN)
        return self._copies[directory].quorum

    def newer(self, directory: str, node: int | None) -> dict[str, int | None]:
        """Return what in the copy in this directory only a release newer than the newest known one writes, as newer_in
        does."""
        from kdump.cluster.release_evidence import newer_in

        self._look(directory, PLAIN_RUN)
        image = self.replayed(directory) if self._copies[directory].has_newer else None
        return {} if image is None else newer_in(image, node)

    def topic_times(self, directory: str, topic_id: str) -> tuple[int | None, int | None, bool]:
        """Return when a topic was created and when it was deleted, in epoch ms, by the metadata log in this directory;
        None where it has no such record; and whether it has all its records."""
        seen = see(os.path.join(directory, METADATA_LOG)).identities
        known = self._times.get(directory)
        if known is None or (topic_id not in known[1][0] and seen != known[0]):
            from kdump.cluster.metadata_log import topic_times

            known = self._times[directory] = seen, topic_times(directory, Run(self.limits))
        created, deleted, is_complete = known[1]
        return created.get(topic_id), deleted.get(topic_id), is_complete

    def newest(self, directories: Iterable[str], run: Run = PLAIN_RUN) -> tuple[str, MetadataImage | None]:
        """Return the log directory with the newest copy, and the copy; "" and None if there is none. At most two are in
        memory at a time. Copies that are equal are taken in the order of their real paths, those of
        bundles last."""
        source, newest, image = "", None, None
        # A bundle has no secrets.
        ordered = sorted(
            set(directories), key=lambda path: (file_system.tree_at(path) is not None, real_path(path), path)
        )
        for directory in ordered:
            age, replayed = self._look(directory, run)
            if age is not None and (newest is None or age > newest):
                source, newest, image = directory, age, replayed
        for directory in ordered:
            self._kept.pop(directory, None)
        if newest is None:
            return "", None
        image = image or self.replayed(source, run)
        if image is not None:
            self._kept[source] = image
        return source, image

    def ages(self) -> dict[str, Age]:
        """Return how new each copy is that was read and has topics, by log directory."""
        return {path: copy.age for path, copy in self._copies.items() if copy.age is not None and copy.age.has_topics}

    def _look(self, directory: str, run: Run) -> tuple[Age | None, MetadataImage | None]:
        """Return how new a copy is, and the copy if it is in memory. Reads it at first, and if it has changed since."""
        seen = see(os.path.join(directory, METADATA_LOG)).identities
        copy = self._copies.get(directory)
        if copy is not None and copy.seen == seen:
            return copy.age, copy.image()
        copy = self._copies[directory] = _Copy(seen)
        if not may_have_log(directory):
            return None, None
        from kdump.cluster.metadata_log import read_metadata
        from kdump.cluster.release_evidence import newer_in

        choice = None if self.choices is None else self.choices[directory]
        image = read_metadata(directory, replace(run, limits=self.limits), choice)
        if image is not None:
            has_newer = bool(newer_in(image, *image.brokers, *image.controllers))
            copy = _Copy(seen, Age.of(image), has_newer, image.quorum(), ref(image))
            self._copies[directory] = copy
        return copy.age, image
