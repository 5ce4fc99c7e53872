"""What a histogram or a search for a key covers: a segment, a partition, a topic, or everything below the path."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from kdump.browse.browser import Browser, NotFound
from kdump.io import file_system
from kdump.io.directory_listing import is_url, real_path
from kdump.io.remote_paths import nameless_topic
from kdump.io.run import Run
from kdump.kafka.small_files import OffsetCheckpoints, topic_id
from kdump.log.file_kinds import BATCHES
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory, log_directory_above
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.paths import Target

SEGMENT, PARTITION, TOPIC, ALL = "segment", "partition", "topic", "all"
SCOPES = (SEGMENT, PARTITION, TOPIC, ALL)


class ScopePart(NamedTuple):
    """A partition directory, or a file of its own: its name (its path, if several have that name), topic, number, and
    segments in offset order."""

    name: str
    topic: str | None
    number: int | None
    segments: list[Target]
    state: str | None = None
    """delete, future or stray, if the directory is not live."""
    left_over: list[str] = []
    """Paths of .deleted, .swap and .cleaned segments, which are not among the segments."""
    log_start: int | None = None
    """The log start offset of the last checkpoint, if there is one for the partition."""


class Scope(NamedTuple):
    """Partitions to read. `title` describes them; `unlisted`: what is not among them, but may belong to them."""

    title: str
    parts: list[ScopePart]
    unlisted: list[str]

    @property
    def size(self) -> int:
        """Bytes of all segments, as far as they are known."""
        total = 0
        for part in self.parts:
            for target in part.segments:
                try:
                    total += 0 if is_url(target.path) else file_system.getsize(target.path)
                except OSError:
                    continue
        return total


class Here(NamedTuple):
    """The place of the browser, as the app's thread sees it: what is read, and the segment and partition at hand."""

    path: str
    segment: Target | None
    directory: str | None

    @classmethod
    def of(cls, browser: Browser) -> Here:
        level = browser.level
        row = level.row
        segment = level.file.target if level.file is not None else None
        if segment is None and row is not None and row.type == "file":
            segment = row.item
        if segment is not None and segment.kind is not None and segment.kind.name not in ("segment", "kraft-snapshot"):
            segment = None
        return cls(browser.places.path, segment, browser.directory())

    @property
    def scope(self) -> str:
        """The smallest scope at hand."""
        return SEGMENT if self.segment is not None else PARTITION if self.directory is not None else ALL


def scope_of(here: Here, name: str) -> Scope:
    """Return the partitions of a scope. Raises NotFound if there is nothing of the kind at hand, and SourceError."""
    if name == SEGMENT:
        if here.segment is None:
            raise NotFound("no segment is selected")
        target = here.segment
        part = ScopePart(_file_name(target), target.topic, target.partition, [target])
        return Scope(f"segment {part.name}", [part], [])
    if name == ALL:
        parts, unlisted = _below(here.path, None)
        return Scope(f"everything in {here.path}", parts, unlisted)
    if here.directory is None:
        if name == PARTITION or here.segment is None:
            raise NotFound(f"no {name} is selected; select a partition first")
        return scope_of(here, SEGMENT)
    place = partition(here.directory)
    if name == PARTITION or place.topic is None:
        return Scope(f"partition {place.name}", [_part(place, _checkpoints_above(place))], list(place.listing_errors))
    parts, unlisted = _below(here.path, place.topic)
    if not parts:
        parts = [_part(place, _checkpoints_above(place))]
    return Scope(f"topic {place.topic}", parts, unlisted)


def _checkpoints_above(place: PartitionDirectory) -> OffsetCheckpoints | None:
    above = log_directory_above(place.path)
    return None if above is None else OffsetCheckpoints(above)


def _below(path: str, topic: str | None) -> tuple[list[ScopePart], list[str]]:
    """Return the partitions below a path, of a topic or all of them, and what could not be listed or may be of the
    topic."""
    unlisted: list[str] = []
    partitions: list[tuple[PartitionDirectory, OffsetCheckpoints | None]] = []
    nameless: list[PartitionDirectory] = []
    for place in find_directories(path, Run(unreadable=lambda error: unlisted.append(str(error)))):
        if isinstance(place, LogDirectory):
            checkpoints = OffsetCheckpoints(place)
            partitions += [(each, checkpoints) for each in place.partitions if topic in (None, each.topic)]
        elif isinstance(place, PartitionDirectory):
            if topic in (None, place.topic):
                partitions.append((place, _checkpoints_above(place)))
            elif nameless_topic(real_path(place.path)):
                nameless.append(place)
        elif isinstance(place, Target) and topic in (None, place.topic):
            return [ScopePart(_file_name(place), place.topic, place.partition, [place])], unlisted
    ids = {topic_id(each) for each, _ in partitions} if nameless else set()
    partitions += [(replace(each, topic=topic), None) for each in nameless if each.topic in ids]
    unlisted += [
        f"{each.path}: may be of the topic; its path has only a topic ID"
        for each in nameless
        if each.topic not in ids and ids <= {None}
    ]
    unlisted += [problem for place, _ in partitions for problem in place.listing_errors]
    names = Counter(each.name for each, _ in partitions)
    remote = {each.path for each in nameless}
    parts = []
    for each, noted in partitions:
        name = each.path if names[each.name] > 1 or each.path in remote else each.name
        parts.append(_part(each, noted)._replace(name=name))
    return parts, unlisted


def _part(place: PartitionDirectory, noted: OffsetCheckpoints | None) -> ScopePart:
    segments = [segment.log for segment in place.segments if segment.log is not None]
    left_over = [target.path for target in (*place.unfinished, *place.others) if target.kind in BATCHES]
    start = noted.of(place).get("log-start-offset") if noted is not None and not place.state else None
    log_start = None if start is None else start.offset
    return ScopePart(place.name, place.topic, place.partition, segments, place.state or None, left_over, log_start)


def _file_name(target: Target) -> str:
    return target.path.rstrip("/").rpartition("/")[2]
