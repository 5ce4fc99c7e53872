"""Writes the container of one directory: its files' status, and the contents of those that are Kafka's."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO

from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.forensics.bundle.log_writer import (
    KEEP_ALL,
    KEEP_CONTROL,
    KEEP_RECORDS,
    KEEP_WITHOUT_SECRETS,
    Keep,
    write_log,
)
from kdump.forensics.bundle.record_hasher import RecordHasher
from kdump.forensics.bundle.records_writer import RecordsWriter
from kdump.forensics.bundle.redact.batches import redacted_batch
from kdump.forensics.bundle.redact.files import redacted_file
from kdump.forensics.bundle.redact.pseudonyms import Pseudonyms
from kdump.forensics.carve.search import Search
from kdump.forensics.record_sums import newest, newest_before
from kdump.format.bundle_container import ContainerReader, ContainerWriter, Frame
from kdump.format.errors import DecodeError
from kdump.log.bundle_index import MAX_FILE, PIECE, Bytes, FileStatus, Log, StoredDirectory, StoredFile, index_of
from kdump.log.errors import SourceError
from kdump.log.file_kinds import BATCHES, INDEXES, KRAFT_SNAPSHOT, PRODUCER_SNAPSHOT, FileKind, by_name
from kdump.log.hash_key import HashKey
from kdump.log.internal_topics import INTERNAL_TOPICS, METADATA_TOPIC
from kdump.log.partition_directory import partition
from kdump.log.paths import Target, target
from kdump.log.region import Batch, Limits
from kdump.log.source import Source
from kdump.log.window import Window

MAX_SMALL_FILE = 16 << 20
"""Maximum bytes of a checkpoint or another small text file; a broker with 100,000 partitions has half as many."""
COMPRESSED = (".gz", ".zst")
MAX_REDACTED = 64 << 20
"""Maximum bytes of a file that is redacted: they are in memory, and indexes have 10 MiB at most by default."""
LEFT_OUT = "it is not in the bundle, because there may be a name in it"
YOUNG = 2_000_000_000
"""Nanoseconds after a change in which a file may change again without its times showing it."""


@dataclass(frozen=True)
class BundleOptions:
    """What a bundle is to have. `checksums`: verify them; `records`: decode records and keep what is found out about
    them; `internal`: Kafka's own topics are complete, `has_records`: and those of other topics for which it is true;
    `names`: replacements of all names, None if they stay; `has_key`: their key is one of the user's, and the same in
    the next run; `hash_key`: that under which records of compacted topics are hashed that are not in the bundle."""

    checksums: bool
    records: bool
    internal: bool
    has_records: Callable[[str], bool]
    reading: Options
    names: Pseudonyms | None = None
    has_key: bool = False
    hash_key: HashKey | None = None


class DirectoryWriter:
    """Writes one container. `inside`: the path of the directory in the bundle; `before`: the directory as it was there,
    with its container, when that was written at `written` (epoch ns): what has not changed since is copied."""

    def __init__(
        self,
        path: str,
        inside: str,
        options: BundleOptions,
        before: tuple[StoredDirectory, ContainerReader, int] | None,
        known: Callable[[str], PartitionContext],
        on_progress: Callable[[int], None],
    ) -> None:
        self.path = path
        self.inside = inside
        self.options = options
        self.before = before
        self.known = known
        """Returns what is known about the partition in a directory."""
        self.on_progress = on_progress
        self.error: str | None = None
        self.unread: list[str] = []
        """What could not be read."""
        self.newest = -1
        """The largest timestamp of a record in the segments so far."""
        self.left_out = 0
        """Number of files and batches in which a name might be that cannot be found."""
        self._named: dict[str, str] = {}
        """Names of the files on the disk, by those in the bundle."""
        self.files = self._listed()

    def _listed(self) -> list[StoredFile]:
        found = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    try:
                        file = self._renamed(_stored(entry))
                    except FileNotFoundError:
                        continue
                    self._named[file.name] = entry.name
                    found.append(file)
        except OSError as error:
            self.error = error.strerror
            self.unread.append(f"{self.path}: {error.strerror}")
        return sorted(found, key=lambda file: file.name)

    def _renamed(self, file: StoredFile) -> StoredFile:
        """Return the file with the names that the bundle is to have."""
        names = self.options.names
        if names is None:
            return file
        return file._replace(name=names.file(file.name), target=file.target and names.path(file.target))

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return True if the container in the bundle is still true. `status`: that of the directory."""
        if self.before is None or self.error is not None or self.before[0].error is not None:
            return False
        if self.before[0].status != FileStatus.of(status):
            return False
        there = self.before[0].files
        if len(there) != len(self.files):
            return False
        return all(self._kept(file) is not None for file in self.files)

    def has_shrunk(self) -> bool:
        """Return True if a file is now smaller than when it was listed, or gone: what was read of the others may be
        from before."""
        for file in self.files:
            if file.seen is None or not stat.S_ISREG(file.seen.mode):
                continue
            try:
                size = os.stat(os.path.join(self.path, self._named[file.name])).st_size
            except OSError:
                return True
            if size < file.seen.size:
                return True
        return False

    def _kept(self, file: StoredFile) -> StoredFile | None:
        """Return the file in the bundle if it has not changed since."""
        if self.before is None:
            return None
        old = self.before[0].files.get(file.name)
        if old is None or old.error is not None or (old.status, old.target, old.followed) != (
            file.status, file.target, file.followed
        ):  # fmt: skip
            return None
        is_old = file.seen is None or file.is_directory or file.seen.mtimeNs + YOUNG < self.before[2]
        return old if is_old else None

    def write(self, out: BinaryIO, status: os.stat_result) -> None:
        """Write the container."""
        container = ContainerWriter(out)
        files = {}
        # Segments last: a broker at work appends a batch before what its indexes have about it.
        for file in sorted(self.files, key=lambda file: by_name(file.name)[0] in BATCHES):
            files[file.name] = self._copied(file, container) or self._written(file, container)
        container.finish(index_of(StoredDirectory(self.inside, FileStatus.of(status), files, self.error)))

    def _copied(self, file: StoredFile, container: ContainerWriter) -> StoredFile | None:
        """Return the file as it is in the bundle, with its frames copied; None if it has changed since, or if they are
        damaged."""
        old = self._kept(file)
        if old is None or self.before is None:
            return None
        try:
            sums = self._sums(old, self.before[1])
            if sums is not None and newest_before(sums) != self._newest_before(file):
                return None
            copied = self._copy(old, self.before[1], container)
            if sums is not None and _is_live_segment(file):
                self.newest = newest(sums)
            return copied
        except (DecodeError, OSError, ValueError):
            return None

    def _sums(self, old: StoredFile, reader: ContainerReader) -> Any:
        """Return the sums over the records of a segment that is in the bundle. Raises DecodeError or ValueError."""
        if not isinstance(old.contents, Log) or old.contents.records is None:
            return None
        return json.loads(reader.read(old.contents.records.sums))

    def _newest_before(self, file: StoredFile) -> int:
        """Return the largest timestamp of a record in the segments before a file."""
        return self.newest if _is_live_segment(file) else -1

    def _copy(self, old: StoredFile, reader: ContainerReader, container: ContainerWriter) -> StoredFile:

        def copy(frame: Frame) -> Frame:
            return container.copy(reader.stored(frame), frame.size)

        contents = old.contents
        if isinstance(contents, Bytes):
            contents = contents._replace(frames=tuple(map(copy, contents.frames)))
        elif isinstance(contents, Log):
            blocks = tuple(
                block._replace(
                    frame=copy(block.frame),
                    complete=block.complete and copy(block.complete),
                    payload=tuple(map(copy, block.payload)),
                )
                for block in contents.blocks
            )
            known = contents.records
            if known is not None:
                verdicts = tuple((position, copy(frame)) for position, frame in known.verdicts)
                known = known._replace(verdicts=verdicts, sums=copy(known.sums))
            hashes = contents.hashes
            if hashes is not None:
                hashes = hashes._replace(frames=tuple((position, copy(frame)) for position, frame in hashes.frames))
            contents = contents._replace(blocks=blocks, records=known, hashes=hashes)
            self.on_progress(contents.size)
        return old._replace(contents=contents)

    def _written(self, file: StoredFile, container: ContainerWriter) -> StoredFile:
        """Return the file with its contents, which are written to the container."""
        name = self._named[file.name]
        kind, _ = by_name(name)
        if kind is None or file.seen is None or not stat.S_ISREG(file.seen.mode):
            return file
        if name.endswith((".deleted", *COMPRESSED)):
            return file
        at = target(os.path.join(self.path, name), source=self.path)
        try:
            if kind in BATCHES:
                records = self._records_writer(file, at, container)
                contents = write_log(
                    at,
                    self.options.reading.open(at),
                    container,
                    self._keep(kind is KRAFT_SNAPSHOT),
                    checksums=self.options.checksums,
                    limits=self.options.reading.limits,
                    records=records,
                    hashes=self._record_hasher(container),
                    on_progress=self.on_progress,
                )
                if records is not None and _is_live_segment(file):
                    self.newest = records.newest
                # What stat showed may be older than what was read.
                return file._replace(contents=self._without_error(contents))
            limit = MAX_FILE if kind in INDEXES or kind is PRODUCER_SNAPSHOT else MAX_SMALL_FILE
            if file.seen.size > limit:
                raise SourceError(f"{at.path}: {file.seen.size} bytes are too many for such a file")
            source = self.options.reading.open(at).source
            if self.options.names is not None:
                return self._redacted(file, kind, source, container)
            found, size = self._bytes(source, container)
            return _with_size(file, size)._replace(contents=found)
        except SourceError as error:
            self.unread.append(str(error))
            return file._replace(error=self._error(str(error).removeprefix(f"{at.path}: ")))

    def _error(self, text: str) -> str:
        return text if self.options.names is None else self.options.names.error(text)

    def _without_error(self, log: Log) -> Log:
        return log if log.error is None else log._replace(error=self._error(log.error))

    def _redacted(self, file: StoredFile, kind: FileKind, source: Source, container: ContainerWriter) -> StoredFile:
        """Write a file's contents with other names. Its size stays what it is on the disk."""
        assert self.options.names is not None
        with closing(source):
            data = source.read_at(0, MAX_REDACTED + 1)
            if len(data) <= MAX_REDACTED and not _has_batch(source, self.options.reading.limits):
                contents = redacted_file(kind, data, self._segment_size(file.name), self.options.names)
            else:
                contents = None
        if contents is None:
            self.left_out += 1
            return file._replace(error=LEFT_OUT)
        pieces = [contents[at : at + PIECE].rstrip(b"\0") for at in range(0, len(contents), PIECE)]
        frames = tuple(map(container.add, pieces))
        return _with_size(file, len(data))._replace(contents=Bytes(frames, len(contents)))

    def _segment_size(self, index: str) -> int:
        """Return the size of the segment that an index is one of."""
        segment = index.partition(".")[0] + ".log"
        sizes = [file.seen.size for file in self.files if file.seen is not None and file.name.startswith(segment)]
        return max(sizes, default=0)

    def _record_hasher(self, container: ContainerWriter) -> RecordHasher | None:
        key = self.options.hash_key
        return RecordHasher(container, key) if key is not None and self.known(self.path).compacted else None

    def _records_writer(self, file: StoredFile, at: Target, container: ContainerWriter) -> RecordsWriter | None:
        if not self.options.records:
            return None
        keyed = bool(self.known(self.path).compacted)
        return RecordsWriter(container, at, self.options.reading, keyed=keyed, before=self._newest_before(file))

    def _keep(self, is_snapshot: bool) -> Keep:
        topic = partition(self.path).topic
        # The path may be a link with another name.
        if is_snapshot or METADATA_TOPIC in (topic, partition(os.path.realpath(self.path)).topic):
            topic = METADATA_TOPIC
        if self.options.names is not None:
            return self._keep_redacted(topic if topic in INTERNAL_TOPICS else None, self.options.names)
        if topic in INTERNAL_TOPICS and not self.options.internal:
            return KEEP_CONTROL
        if topic in INTERNAL_TOPICS:
            return KEEP_WITHOUT_SECRETS if topic == METADATA_TOPIC else KEEP_ALL
        return KEEP_RECORDS if topic and self.options.has_records(topic) else KEEP_CONTROL

    def _keep_redacted(self, topic: str | None, names: Pseudonyms) -> Keep:
        """Return what to keep of `topic`, one of Kafka's own, or of one of a client's if it is None."""
        is_client = topic is None or not self.options.internal

        def bytes_of(batch: Batch) -> bytes | None:
            if is_client and not batch.isControlBatch:
                return None
            kept = redacted_batch(batch, topic, names)
            self.left_out += kept is None
            return kept

        return Keep(bytes_of, only_control=is_client, hides=topic is not None)

    def _bytes(self, source: Source, container: ContainerWriter) -> tuple[Bytes, int]:
        """Write a file's bytes in pieces, each without the zeros at its end: indexes are preallocated. Returns also the
        number of bytes read."""
        pieces: list[Frame] = []
        size = 0
        with closing(source):
            if _has_batch(source, self.options.reading.limits):
                raise SourceError(f"{source.name}: contains record batches, which is not what its name says")
            while data := source.read_at(size, PIECE):
                pieces.append(container.add(data.rstrip(b"\0")))
                size += len(data)
        while pieces and not pieces[-1].size:
            pieces.pop()
        return Bytes(tuple(pieces)), size


def _has_batch(source: Source, limits: Limits) -> bool:
    """Return True if there is a whole batch anywhere in a file: a segment that was renamed, or blocks that a file
    system wrote to the wrong file; or if there are too many headers to check them all."""
    search = Search(Window(source), limits)
    return next(search.batches(), None) is not None or search.unchecked > 0


def _with_size(file: StoredFile, size: int) -> StoredFile:
    """Return the file with the size that was read, in case it has changed since it was listed."""
    if file.followed is not None:
        return file._replace(followed=file.followed._replace(size=size))
    return file._replace(status=file.status._replace(size=size))


def _is_live_segment(file: StoredFile) -> bool:
    return re.fullmatch(r"\d{20}\.log", file.name) is not None


def _stored(entry: os.DirEntry[str]) -> StoredFile:
    own = FileStatus.of(entry.stat(follow_symlinks=False))
    if not entry.is_symlink():
        return StoredFile(entry.name, own)
    try:
        followed = FileStatus.of(entry.stat())
    except OSError:
        followed = None
    return StoredFile(entry.name, own, os.readlink(entry.path), followed)
