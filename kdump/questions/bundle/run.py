"""`kdump.bundle`: makes a bundle of log directories, or brings one up to date (docs/bundle.md)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer
from kdump.check.log_dir_context import Surroundings
from kdump.check.partition_context import PartitionContext
from kdump.io.bundle.names import FACTS, FORMAT, MANIFEST, container_name, is_bundle
from kdump.io.command_line_paths import missing
from kdump.io.errors import SourceError, reason
from kdump.io.link_boundary import refusal
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.find_directories import find_directories
from kdump.log.live_files import PAUSES
from kdump.log.output_directory import OutputError, OutputExists, refuse_output
from kdump.log.partition_directory import partition
from kdump.query import offered
from kdump.questions.bundle.directory_writer import Before, BundleQuery, DirectoryWriter
from kdump.questions.bundle.places import DirectoryPlace, Place, StreamPlace
from kdump.version import __version__

__all__ = ["bundle"]

STANDARD_OUTPUT = "standard output"


@answer("bundle")
@dataclass
class BundleSummary:
    """What a run of `kdump bundle` did."""

    out: Annotated[PathText, Doc("path of the bundle")]
    directories: Annotated[int, Doc("number of directories in it")] = 0
    written: Annotated[int, Doc("number of directories that were new or had changed")] = 0
    removed: Annotated[int, Doc("number of directories that no longer exist on the disk")] = 0
    segmentBytes: Annotated[int, Doc("bytes of the segments that it describes", BYTES)] = 0
    bundleBytes: Annotated[int, Doc("size of the bundle", BYTES)] = 0
    unread: Annotated[int, Doc("number of files and directories that could not be read")] = 0
    leftOut: Annotated[
        int,
        Doc(
            "with --redact, number of files, and of batches of Kafka's own topics, that this run left out: there may "
            "be names in them that it cannot find"
        ),
    ] = 0


class MadeWith(NamedTuple):
    """What has to be the same when a bundle is brought up to date."""

    directories: list[str]
    depth: str
    internal: bool
    schemas: bool
    topics: list[str]
    hashKey: str | None
    redacted: str | None
    """What tells the key of the replacements apart from others; None: names are as they are."""

    def can_become(self, other: MadeWith, *, has_key: bool) -> bool:
        """Return True if a bundle made with these can be brought up to date. Without a key of the user's, all names in
        it change."""
        if self.redacted is None or other.redacted is None or has_key:
            return self == other
        same = self._replace(directories=other.directories, redacted=other.redacted) == other
        return same and len(self.directories) == len(other.directories)


def answers(query: BundleQuery) -> BundleSummary:
    """Write a small copy of the log directories `paths` into the directory `out`, or bring the bundle there up to date;
    a function as `out` gets the bytes of a packed one. Raises OutputError, and SourceError for a path without Kafka's
    files."""
    out, run = query.out, query.run
    sources = [os.path.abspath(path) for path in query.paths]
    for path in sources:
        if is_bundle(path):
            raise SourceError.at(path, "is a bundle")
        if not os.path.lexists(path):
            raise missing(path)
        if not os.path.isdir(path):
            raise SourceError.at(path, "not a directory; a bundle is made of log directories")
    _refuse_without_files(sources, run)
    if query.names is not None and query.topics:
        raise ValueError("the records of clients cannot be redacted")
    made_with = MadeWith(
        sources if query.names is None else list(map(query.names.path, sources)),
        query.depth,
        query.internal,
        query.schemas,
        list(query.topics),
        None if query.key is None else query.key.name,
        query.names.fingerprint if query.names is not None else None,
    )
    manifest = _manifest(made_with, query)
    if not isinstance(out, str):
        stream = StreamPlace(STANDARD_OUTPUT, out, manifest["created"])
        writer = _BundleWriter(stream, sources, manifest, query, run, is_again=False)
        writer.run()
        return writer.summary
    refuse_output(out, sources)
    place = DirectoryPlace(out, sources)
    with place.locked():
        writer = _BundleWriter(place, sources, manifest, query, run, is_again=_is_again(place, made_with, query))
        writer.summary.out = out
        writer.run()
        if query.tar is not None:
            run.show("packing")
            place.pack(query.tar, sources, {**manifest, "complete": True})
    return writer.summary


bundle = offered("bundle", BundleQuery, answers)


def _manifest(made_with: MadeWith, options: BundleQuery) -> dict[str, Any]:
    """Return the manifest of a bundle that is not complete yet."""
    names: list[str] = []
    hides = options.names
    for path in made_with.directories:
        name = base = os.path.basename(path) or "root"
        while name in (*names, FACTS, MANIFEST):
            name = f"{base}-{names.count(base) + len(names)}"
        names.append(name)
    return {
        "format": FORMAT,
        "kdump": __version__,
        "host": socket.gethostname() if hides is None else hides.host(socket.gethostname()),
        "created": int(time.time() * 1000),
        "names": names,
        "complete": False,
        **made_with._asdict(),
    }


def _is_again(place: DirectoryPlace, made_with: MadeWith, options: BundleQuery) -> bool:
    """Check that what is in the directory, if anything, is a bundle of the same directories. Return True if its
    parts are still true where nothing has changed. No other run may be writing it."""
    values = place.earlier()
    if values is None:
        return False
    try:
        before = MadeWith(*(values[name] for name in MadeWith._fields))
        same_format = values["format"] == FORMAT
    except KeyError as error:
        raise OutputError(f"{place.name}/{MANIFEST} is not that of a bundle: {error}") from error
    if not before.can_become(made_with, has_key=options.key is not None) or not same_format:
        raise OutputExists(
            f"{place.name} is a bundle of other directories, or made with other options; choose a new directory"
        )
    return before == made_with


def _refuse_without_files(paths: list[str], run: Run) -> None:
    """Raise SourceError if none of the directories has files of Kafka's. One that has none may be a disk of the broker
    that is new, or not mounted."""
    refusals = []
    for path in paths:
        try:
            next(find_directories(path, run), None)
        except SourceError as error:
            refusals.append(error)
    if len(refusals) == len(paths):
        raise refusals[0]


class _BundleWriter:
    """Writes a bundle. `is_again`: there is one at `place`, which is still true where nothing has changed."""

    def __init__(
        self,
        place: Place,
        sources: list[str],
        manifest: dict[str, Any],
        options: BundleQuery,
        run: Run,
        *,
        is_again: bool,
    ) -> None:
        self.place, self.sources, self.manifest, self.is_again = place, sources, manifest, is_again
        self.options, self._run = options, run
        self.summary = BundleSummary(place.name)
        self._surroundings = Surroundings(options.reading)

    def run(self) -> None:
        self.place.manifest(self.manifest)
        for number, source in enumerate(self.sources):
            there = {self._directory(number, *directory) for directory in self._walk(source)}
            removed = self.place.keep_only(number, there)
            self.summary.removed += removed if self.is_again else 0
        self.place.manifest({**self.manifest, "complete": True})

    def _walk(self, source: str) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield each directory from `source` on, with its path in it and status. A link is followed unless it leads to
        a directory above it; more than one in a path only to what has not been seen."""
        seen: set[tuple[int, int]] = set()
        waiting: list[tuple[str, str, int, tuple[tuple[int, int], ...]]] = [(source, "", 0, ())]
        while waiting:
            path, inside, links, above = waiting.pop()
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._run.unreadable(SourceError.at(path, reason(error, path)))
                continue
            outside = refusal(path)
            if outside is not None:
                self._run.unreadable(SourceError.at(path, outside))
                continue
            identity = status.st_dev, status.st_ino
            links += bool(inside) and os.path.islink(path)
            if identity in above or (links > 1 and identity in seen):
                continue
            seen.add(identity)
            yield path, inside, status
            with suppress(OSError), os.scandir(path) as entries:
                below = sorted((entry.name for entry in entries if entry.is_dir()), reverse=True)
                waiting += [
                    (os.path.join(path, name), f"{inside}/{name}".lstrip("/"), links, (*above, identity))
                    for name in below
                ]

    def _directory(self, number: int, path: str, inside: str, status: os.stat_result) -> str | None:
        """Write the part of a directory if it has changed, and return its name; None if it was deleted."""
        if self.options.names is not None:
            inside = self.options.names.path(inside)
        name = container_name(inside)
        member = f"{number}/{name}"
        prefix = f"{self.manifest['names'][number]}/{inside}".rstrip("/")
        before = self.place.before(member, inside) if self.is_again else None
        writer = self._writer(path, inside, before, self._run)
        if inside and not os.path.isdir(path):
            return None
        self.summary.segmentBytes += writer.segment_bytes
        if writer.is_unchanged(status):
            self._run.more(writer.segment_bytes)
            self._count(writer, member)
            return name
        self._write(writer, member, prefix, status)
        self.summary.written += 1
        for pause in PAUSES:  # a broker at work may have truncated the log between two files
            if not writer.has_shrunk():
                break
            time.sleep(pause)
            writer = self._writer(path, inside, None, PLAIN_RUN)
            self._write(writer, member, prefix, status)
        self._count(writer, member)
        return name

    def _writer(self, path: str, inside: str, before: Before | None, run: Run) -> DirectoryWriter:
        return DirectoryWriter(path, inside, self.options, before, self._known, run)

    def _write(self, writer: DirectoryWriter, member: str, prefix: str, status: os.stat_result) -> None:
        with self.place.part(member) as file:
            writer.write(file, member, prefix, status)

    def _count(self, writer: DirectoryWriter, member: str) -> None:
        for problem in writer.unread:
            self.summary.unread += 1
            self._run.unreadable(SourceError(problem))
        self.summary.directories += 1
        self.summary.leftOut += writer.left_out
        self.summary.bundleBytes += self.place.size(member)

    def _known(self, path: str) -> PartitionContext:
        return self._surroundings.of_partition(partition(path))
