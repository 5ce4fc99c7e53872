"""Finds the objects of tiered segments (KIP-405) in a directory or a bucket, by the names that a plugin gives them.

Source: LocalTieredStorage (RemoteLogSegmentFileset): topic-partition-topicId/offset-segmentId.suffix, one object for
each file; Aiven's plugin (ObjectKeyFactory): topic-topicId/partition/offset-segmentId.log, .indexes and .rsm-manifest,
of which the second has all indexes. Any other plugin by its own pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from kdump.format.count_text import count_text
from kdump.io.directory_listing import pages, sized
from kdump.io.errors import SourceError, listing_error
from kdump.io.remote_paths import OBJECT, TOPIC_ID, remote_partition
from kdump.io.run import ignore
from kdump.log.file_kinds import SEGMENT, by_name

MANIFEST, INDEXES = "manifest", "indexes"
"""Kinds of objects that only Aiven's plugin writes."""
_AIVEN = {"rsm-manifest": MANIFEST, "indexes": INDEXES}
MAX_DEPTH = 12
"""Maximum depth of directories that are listed: no plugin writes more."""
MAX_OBJECTS = 4_000_000
"""Maximum number of objects that are kept."""
MAX_NAMED = 3
FIELDS = {
    "topic": r"[\w.-]{1,249}",
    "topicId": TOPIC_ID.pattern,
    "partition": "[0-9]{1,10}",
    "baseOffset": "[0-9]{1,20}",
    "baseOffset:020": "[0-9]{20}",
    "segmentId": TOPIC_ID.pattern,
}
"""Fields of a pattern, and what each matches."""
REQUIRED = ("topicId", "partition", "segmentId")
Place = tuple[str, int]
"""Topic ID and partition number."""


class RemoteStorage(NamedTuple):
    """Where remote storage is: a URL or directory; `layout`: see `layout_pattern`, None for the plugins that are known;
    `quick`: only names and sizes are compared."""

    url: str
    layout: re.Pattern[str] | None = None
    quick: bool = False


class RemoteObject(NamedTuple):
    """An object of a tiered segment. `kind`: the name of a FileKind, or MANIFEST or INDEXES; `size` in bytes."""

    path: str
    kind: str
    base_offset: int | None
    segment_id: str
    topic: str
    place: Place
    size: int


def has_segment(objects: Iterable[RemoteObject]) -> bool:
    """Return True if the segment itself is among its objects."""
    return any(each.kind == SEGMENT.name for each in objects)


@dataclass
class RemoteListing:
    """What is below a URL: the objects by partition, how many lists were asked for, and what is of no known name."""

    url: str
    objects: dict[Place, list[RemoteObject]] = field(default_factory=dict)
    count: int = 0
    bytes: int = 0
    lists: int = 0
    others: int = 0
    others_bytes: int = 0
    some_others: list[str] = field(default_factory=list)
    unread: list[SourceError] = field(default_factory=list)

    def by_segment(self, place: Place) -> tuple[dict[str, list[RemoteObject]], dict[str, list[RemoteObject]]]:
        """Return a partition's objects by the ID of their segment; apart, copies: objects whose names others have, too,
        in a directory that is nearer to the URL."""
        segments: dict[str, list[RemoteObject]] = {}
        copies: dict[str, list[RemoteObject]] = {}
        for each in sorted(self.objects.get(place, ()), key=lambda each: (each.path.count("/"), each.path)):
            here = segments.setdefault(each.segment_id, [])
            is_copy = any((other.kind, other.base_offset) == (each.kind, each.base_offset) for other in here)
            (copies.setdefault(each.segment_id, []) if is_copy else here).append(each)
        return segments, copies

    def expect(self, stated: int, known: Mapping[Place, Mapping[str, object]]) -> None:
        """Discard the objects if none is of a `known` segment, of which `stated` should be there: more probably the URL
        or the layout is wrong than all of them gone, and what was listed may be another cluster's."""
        if not stated or any(each.segment_id in ids for at, ids in known.items() for each in self.objects.get(at, ())):
            return
        self.objects.clear()
        if not self.unread:
            many = count_text(stated, "segment")
            why = f"{self.url}: not one object of the {many} that __remote_log_metadata states is here"
            check = "check the bucket, the prefix and --remote-layout against the configs of the brokers' plugin"
            self.unread.append(SourceError(f"{why}; {check} (if they are right, all objects are gone)"))


def layout_pattern(template: str) -> re.Pattern[str]:
    """Return what matches the path below the URL of a segment's object, as `{topic}-{topicId}/{partition}/…` writes it.
    Raises ValueError for an unknown field, or if one that identifies the segment is missing."""
    pattern, seen = "", set()
    for part in re.split(r"(\{[^{}]*\})", template):
        if not part.startswith("{"):
            pattern += re.escape(part)
            continue
        name = part[1:-1]
        if name not in FIELDS:
            raise ValueError(f"{part} is not a field: use {', '.join(f'{{{each}}}' for each in FIELDS)}")
        group = name.partition(":")[0]
        pattern += f"(?P={group})" if group in seen else f"(?P<{group}>{FIELDS[name]})"
        seen.add(group)
    missing = [f"{{{name}}}" for name in REQUIRED if name not in seen]
    if missing:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    return re.compile(pattern)


def list_objects(storage: RemoteStorage, more: Callable[[int], object] = ignore) -> RemoteListing:
    """Return the objects of segments. `more` is called with numbers of objects listed. Reads no object."""
    url, layout, _ = storage
    listing = RemoteListing(url)
    for path, size in _listed(url.rstrip("/"), listing):
        more(1)
        found = _named(path, size) if layout is None else _matched(path, size, url, layout)
        if found is None:
            listing.others += 1
            listing.others_bytes += size
            if len(listing.some_others) < MAX_NAMED:
                listing.some_others.append(path)
        elif listing.count == MAX_OBJECTS:
            listing.unread.append(
                SourceError.at(url, f"only its first {MAX_OBJECTS:,} objects of segments were listed")
            )
            break
        else:
            listing.count += 1
            listing.bytes += size
            listing.objects.setdefault(found.place, []).append(found)
    return listing


def _listed(url: str, listing: RemoteListing) -> Iterator[tuple[str, int]]:
    """Yield the objects below a URL: page by page where its store has that, else directory by directory."""
    listed = pages(url)
    if listed is None:
        yield from _walk(url, listing, 0)
        return
    try:
        for page in listed:
            listing.lists += 1
            yield from page
    except OSError as error:
        listing.unread.append(SourceError(listing_error(error, url)))


def _walk(directory: str, listing: RemoteListing, depth: int) -> Iterator[tuple[str, int]]:
    listing.lists += 1
    below = []
    try:
        for entry, size in sized(directory):
            if entry.is_directory:
                below.append(entry.path)
            else:
                yield entry.path, size
    except OSError as error:
        listing.unread.append(SourceError(listing_error(error, directory)))
    for path in below if depth < MAX_DEPTH else ():
        yield from _walk(path, listing, depth + 1)


def _named(path: str, size: int) -> RemoteObject | None:
    """Return the object with a name that a known plugin gives; None for any other."""
    directory, _, name = path.rpartition("/")
    partition, match = _partition(directory), OBJECT.fullmatch(name)
    if partition is None or match is None:
        return None
    kind = by_name(name)[0]
    stated = _AIVEN.get(match["suffix"]) if kind is None else kind.name
    if stated is None:
        return None
    topic, place = partition
    return RemoteObject(path, stated, int(match["baseOffset"]), intern(match["segmentId"]), topic, place, size)


@lru_cache(1024)
def _partition(directory: str) -> tuple[str, Place] | None:
    """Return the topic and the place that a directory names, which all its objects share."""
    named = remote_partition(directory)
    return None if named is None else (named.topic, (named.topic_id, named.partition))


def _matched(path: str, size: int, url: str, layout: re.Pattern[str]) -> RemoteObject | None:
    match = layout.fullmatch(os.path.relpath(path, url) if "://" not in url else path[len(url.rstrip("/")) + 1 :])
    if match is None:
        return None
    fields = match.groupdict()
    base = fields.get("baseOffset")
    place = fields["topicId"], int(fields["partition"])
    topic = fields.get("topic") or fields["topicId"]
    return RemoteObject(
        path, SEGMENT.name, None if base is None else int(base), fields["segmentId"], topic, place, size
    )
