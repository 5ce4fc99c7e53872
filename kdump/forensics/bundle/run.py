"""`kdump.bundle`: makes a bundle of log directories, or brings one up to date (docs/bundle.md)."""

from __future__ import annotations

import json
import os
import socket
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer
from kdump.check.log_dir_context import Surroundings
from kdump.check.partition_context import PartitionContext
from kdump.forensics.bundle.directory_writer import Before, BundleOptions, DirectoryWriter
from kdump.forensics.output_directory import (
    PASSING,
    OutputError,
    OutputExists,
    OutputFile,
    explained,
    lock_directory,
    refuse_output,
    replacing,
)
from kdump.format.bundle_container import ContainerReader
from kdump.format.errors import DecodeError
from kdump.log.bundle_directory import StoredDirectory
from kdump.log.bundle_manifest import FORMAT
from kdump.log.bundle_members import read_member
from kdump.log.bundle_names import CONTAINER, MANIFEST, container_name, is_bundle
from kdump.log.command_line_paths import missing
from kdump.log.errors import SourceError
from kdump.log.find_directories import find_directories
from kdump.log.live_files import PAUSES
from kdump.log.partition_directory import partition
from kdump.log.run import PLAIN_RUN, Run
from kdump.version import __version__


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


def bundle(
    paths: Iterable[str],
    out: str,
    options: BundleOptions,
    topics: tuple[str, ...] = (),
    *,
    run: Run,
    packed: str | None = None,
) -> BundleSummary:
    """Make a bundle of directories in the directory `out`, or bring the one there up to date. `topics`: the patterns
    that `options.has_records` matches; `packed`: the new tar file to pack it into, before which `on_packing` is called.
    Raises OutputError, and SourceError for a path without Kafka's files."""
    sources = [os.path.abspath(path) for path in paths]
    for path in sources:
        if is_bundle(path):
            raise SourceError(f"{path}: is a bundle")
        if not os.path.lexists(path):
            raise missing(path)
        if not os.path.isdir(path):
            raise SourceError(f"{path}: not a directory; a bundle is made of log directories")
    _refuse_without_files(sources, run)
    refuse_output(out, sources)
    if options.names is not None and topics:
        raise ValueError("the records of clients cannot be redacted")
    made_with = MadeWith(
        sources if options.names is None else list(map(options.names.path, sources)),
        "records" if options.records else "crc" if options.checksums else "headers",
        options.internal,
        options.schemas,
        list(topics),
        None if options.hash_key is None else options.hash_key.name,
        options.names.fingerprint if options.names is not None else None,
    )
    writer = _BundleWriter(out, sources, made_with, options, run)
    with _alone_in(writer.directory()):
        writer.take_over()
        writer.run()
        if packed is not None:
            run.show("packing")
            _pack(writer.out, packed, sources)
    return writer.summary


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


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member of a tar file without the name of its owner."""
    member.uid, member.gid, member.uname, member.gname = 0, 0, "", ""
    return member


def _pack(out: str, path: str, sources: Iterable[str]) -> None:
    """Pack the bundle `out` into the new tar file `path`. Raises OutputError."""
    with (
        OutputFile(path, sources).writing() as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        archive.add(os.path.join(out, MANIFEST), MANIFEST, filter=_nobodys)
        for number in sorted(name for name in os.listdir(out) if name.isdecimal()):
            for name in sorted(os.listdir(os.path.join(out, number))):
                if name.endswith(CONTAINER):
                    archive.add(os.path.join(out, number, name), f"{number}/{name}", filter=_nobodys)


class _BundleWriter:
    def __init__(
        self,
        named: str,
        sources: list[str],
        made_with: MadeWith,
        options: BundleOptions,
        run: Run,
    ) -> None:
        self.out = os.path.abspath(named)
        self.sources = sources
        self.made_with = made_with
        self.is_again = False
        """Whether the directory has a bundle whose containers are still true where nothing has changed."""
        self.options = options
        self._run = run
        self.summary = BundleSummary(named)
        self._surroundings = Surroundings(options.reading)

    def run(self) -> None:
        self._manifest(complete=False)
        for number, source in enumerate(self.sources):
            place = os.path.join(self.out, str(number))
            with explained(place):
                os.makedirs(place, exist_ok=True)
            there = {self._directory(number, *found) for found in self._walk(source)}
            with explained(place):
                for name in os.listdir(place):
                    if name.endswith(CONTAINER) and name not in there:
                        os.unlink(os.path.join(place, name))
                        self.summary.removed += self.is_again
                    elif name.endswith(PASSING):  # of a run that was killed
                        os.unlink(os.path.join(place, name))
        self._manifest(complete=True)

    def directory(self) -> str:
        """Return the directory of the bundle, which is created if necessary."""
        with explained(self.out):
            if os.path.lexists(self.out) and not os.path.isdir(self.out):
                raise OutputExists(f"{self.out} exists and is not a bundle; choose a new directory")
            os.makedirs(self.out, exist_ok=True)
        return self.out

    def take_over(self) -> None:
        """Check that what is in the directory, if anything, is a bundle of the same directories. No other run may be
        writing it."""
        path = os.path.join(self.out, MANIFEST)
        with explained(self.out):
            if not os.listdir(self.out):
                return
        if not os.path.isfile(path):
            raise OutputExists(f"{self.out} exists and is not a bundle; choose a new directory")
        try:
            with open(path, encoding="utf-8") as file:
                values = json.load(file)
            before = MadeWith(*(values[name] for name in MadeWith._fields))
            same_format = values["format"] == FORMAT
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise OutputError(f"{path} is not that of a bundle: {error}") from error
        if not before.can_become(self.made_with, has_key=self.options.has_key) or not same_format:
            raise OutputExists(
                f"{self.out} is a bundle of other directories, or made with other options; choose a new directory"
            )
        self.is_again = before == self.made_with

    def _manifest(self, *, complete: bool) -> None:
        names: list[str] = []
        hides = self.options.names
        for path in self.made_with.directories:
            name = base = os.path.basename(path) or "root"
            while name in names:
                name = f"{base}-{names.count(base) + len(names)}"
            names.append(name)
        values = {
            "format": FORMAT,
            "kdump": __version__,
            "host": socket.gethostname() if hides is None else hides.host(socket.gethostname()),
            "created": int(time.time() * 1000),
            "names": names,
            "complete": complete,
            **self.made_with._asdict(),
        }
        with replacing(os.path.join(self.out, MANIFEST)) as file:
            file.write(json.dumps(values, indent=1).encode() + b"\n")

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
                self._run.unreadable(SourceError(f"{path}: {error.strerror}"))
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
        """Write the container of a directory if it has changed, and return its name; None if it was deleted."""
        if self.options.names is not None:
            inside = self.options.names.path(inside)
        name = container_name(inside)
        member = f"{number}/{name}"
        before = self._before(member, inside) if self.is_again else None
        place = os.path.dirname(os.path.join(self.out, member))
        with explained(place), closing(self._writer(path, inside, place, before, self._run)) as writer:
            if inside and not os.path.isdir(path):
                return None
            self.summary.segmentBytes += writer.segment_bytes
            if writer.is_unchanged(status):
                self._run.more(writer.segment_bytes)
                self._count(writer, member)
                return name
            self._write(writer, member, status)
            self.summary.written += 1
            has_shrunk = writer.has_shrunk()
        for pause in PAUSES:  # a broker at work may have truncated the log between two files
            if not has_shrunk:
                break
            time.sleep(pause)
            with explained(place), closing(self._writer(path, inside, place, None, PLAIN_RUN)) as writer:
                self._write(writer, member, status)
                has_shrunk = writer.has_shrunk()
        self._count(writer, member)
        return name

    def _writer(self, path: str, inside: str, place: str, before: Before | None, run: Run) -> DirectoryWriter:
        return DirectoryWriter(path, inside, place, self.options, before, self._known, run)

    def _write(self, writer: DirectoryWriter, member: str, status: os.stat_result) -> None:
        with replacing(os.path.join(self.out, member)) as file:
            writer.write(file, status)

    def _count(self, writer: DirectoryWriter, member: str) -> None:
        for problem in writer.unread:
            self.summary.unread += 1
            self._run.unreadable(SourceError(problem))
        self.summary.directories += 1
        self.summary.leftOut += writer.left_out
        self.summary.bundleBytes += os.path.getsize(os.path.join(self.out, member))

    def _known(self, path: str) -> PartitionContext:
        return self._surroundings.of_partition(partition(path))

    def _before(self, member: str, inside: str) -> Before | None:
        """Return the directory as it is in the bundle."""
        try:
            written = os.stat(os.path.join(self.out, member)).st_mtime_ns
            directory = StoredDirectory(ContainerReader(*read_member(self.out, member)))
        except (OSError, DecodeError):
            return None
        return Before(directory, written) if directory.path == inside else None


@contextmanager
def _alone_in(out: str) -> Iterator[None]:
    """Keep other runs from writing into the bundle `out`."""
    lock = lock_directory(out, "another run is writing this bundle")
    try:
        yield
    finally:
        os.close(lock)
