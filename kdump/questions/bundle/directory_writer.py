"""Writes the part of one directory: its files' status, and the contents of those that are Kafka's, which are copied
from an earlier part if it has them."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from typing import NamedTuple

from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.decode.redaction.batches import redacted_batch
from kdump.decode.redaction.files import redacted_file
from kdump.format.errors import DecodeError
from kdump.io.bundle.index import MAX_FILE, MAX_FILES, Bytes, StoredDirectory, StoredFile, head_of, row_of
from kdump.io.errors import SourceError, is_only_noted, reason
from kdump.io.frames import FRAME, Writable
from kdump.io.hash_key import HashKey, read_hash_key
from kdump.io.run import LISTENERS, Limits, Run
from kdump.io.sorted_lines import SortedLines
from kdump.io.source import Source
from kdump.io.window import Window
from kdump.io.withheld import KNOWN, FileStatus, Log
from kdump.log.file_kinds import BATCHES, CLEAN_SHUTDOWN, INDEXES, KRAFT_SNAPSHOT, PRODUCER_SNAPSHOT, FileKind, by_name
from kdump.log.internal_topics import INTERNAL_TOPICS, METADATA_TOPIC, SCHEMAS_TOPIC
from kdump.log.partition_directory import partition
from kdump.log.paths import Target, target
from kdump.log.pseudonyms import Pseudonyms
from kdump.log.region import Batch
from kdump.log.stored_verdicts import SUMS
from kdump.query import Query, flag, many, option
from kdump.questions.bundle.log_writer import (
    KEEP_ALL,
    KEEP_CONTROL,
    KEEP_SCHEMAS,
    KEEP_WITHOUT_SECRETS,
    Keep,
    RecordHasher,
    keep_records,
    write_log,
)
from kdump.questions.bundle.part_writer import PLAIN, LineTooLong, PartWriter, Spool, pieces
from kdump.questions.bundle.records_writer import RecordsWriter
from kdump.questions.bundle.sorted_rows import SortedRows
from kdump.questions.carve.search import Search
from kdump.questions.stats.totals import newest, newest_before

DEPTHS = ("headers", "crc", "records")
MAX_SMALL_FILE = 16 << 20
"""Maximum bytes of a checkpoint or another small text file; a broker with 100,000 partitions has half as many."""
COMPRESSED = (".gz", ".zst")
SEGMENTS = (".log", ".log.swap", ".log.cleaned", ".log.deleted")
"""Ends of the names of segments to which an index may belong."""
MAX_REDACTED = 64 << 20
"""Maximum bytes of a file that is redacted: they are in memory, and indexes have 10 MiB at most by default."""
LEFT_OUT = "it is not in the bundle, because there may be a name in it"
YOUNG = 2_000_000_000
"""Nanoseconds after a change in which a file may change again without its times showing it."""


class Refused(SourceError):
    """A file is left out whenever it is read, unless it changes."""


@dataclass(frozen=True, kw_only=True)
class BundleQuery(Query):
    """What a bundle is to have, and where it goes."""

    paths_option = {**Query.paths_option, "metavar": "LOGDIR…"}

    out: str | Callable[[bytes], object] = option(
        "--out",
        metavar="DIR",
        required=True,
        otherwise=MISSING,
        help="Write the bundle to this directory, or bring the one there up to date; -: write it to standard output, "
        "packed, as --tar would.",
    )
    tar: str | None = option(
        "--tar", metavar="FILE", help="Also pack it into this new file, to send it: a compressed tar."
    )
    depth: str = option(
        "--depth",
        choices=DEPTHS,
        default="crc",
        help="How much to read of each segment: headers alone, everything to verify checksums, or also to decode the "
        "records for the findings of verify and for stats.  [crc]",
    )
    topics: Iterable[str] = many(
        "--records", type="globs", help="Also include the records of these topics (a glob or a /regex/); repeatable."
    )
    internal: bool = option(
        "--no-internal",
        flag_value=False,
        default=True,
        help="Omit the records of Kafka's own topics, and of a schema registry's.",
    )
    schemas: bool = option(
        "--no-schemas", flag_value=False, default=True, help="Omit the records of a schema registry's topic."
    )
    redact: bool = flag(
        "--redact",
        help="Replace the names of topics, groups, clients, hosts and users, each with the same one everywhere; under "
        "--hash-key, also the same as in other bundles.",
    )
    hash_key: str | None = option(
        "--hash-key",
        metavar="FILE",
        help="Include 64-bit hashes of the records of compacted topics, for diff: HMACs under this key, which is the "
        "same on all brokers (16 bytes or more). The key is not in the bundle.",
    )

    @cached_property
    def key(self) -> HashKey | None:
        return None if self.hash_key is None else read_hash_key(self.hash_key)

    @cached_property
    def names(self) -> Pseudonyms | None:
        """What replaces the names; None if they stay."""
        return Pseudonyms(secrets.token_bytes(32) if self.key is None else self.key.key) if self.redact else None

    @cached_property
    def reading(self) -> Options:
        """How the writers of its parts read, who tell nobody."""
        return replace(Options.given(self.run), **LISTENERS)

    def has_records(self, topic: str) -> bool:
        return bool(self.topics) and self.of_topic(topic)


class Before(NamedTuple):
    """A directory as it was when its part was written at `written` (epoch ns)."""

    directory: StoredDirectory
    written: int


class DirectoryWriter:
    """Writes one part. `inside`: the path of the directory in the bundle; `before`: the directory as it is in the
    bundle: what has not changed since is copied."""

    def __init__(
        self,
        path: str,
        inside: str,
        options: BundleQuery,
        before: Before | None,
        known: Callable[[str], PartitionContext],
        run: Run,
    ) -> None:
        self.path, self.inside, self.options, self.before = path, inside, options, before
        self.known = known
        """Returns what is known about the partition in a directory."""
        self._run = run
        self.error: str | None = None
        self.unread: list[str] = []
        """What could not be read."""
        self.newest = -1
        """The largest timestamp of a record in the segments so far."""
        self.left_out = 0
        """Number of files and batches in which a name might be that cannot be found."""
        self.segment_bytes = 0
        """Bytes of the segments."""
        self._listing = SortedRows()
        """Files as _Listed, segments last: a broker at work appends a batch before what its indexes have about it."""
        self._list()

    def _list(self) -> None:
        for name, file in self._scanned():
            if len(self._listing) == MAX_FILES:
                self.error = f"it has more than {MAX_FILES:,} files, and no more are in the bundle"
                self.unread.append(f"{self.path}: {self.error}")
                break
            if file.name.endswith((".log", ".log.swap")) and file.seen is not None:
                self.segment_bytes += file.seen.size
            order = "1" if by_name(file.name)[0] in BATCHES else "0"
            self._listing.add(order + file.name, (name, *file[:4]))

    def _scanned(self) -> Iterator[tuple[str, StoredFile]]:
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield entry.name, self._renamed(_stored(entry))
        except OSError as error:
            self.error = error.strerror
            self.unread += [] if is_only_noted(error, self.path) else [f"{self.path}: {reason(error, self.path)}"]

    def _files(self) -> Iterator[tuple[str, StoredFile]]:
        """Yield the files as they were listed, each with its name on the disk."""
        for _, (name, *file) in self._listing:
            shown, status, target, followed = file
            yield name, StoredFile(shown, FileStatus(*status), target, followed and FileStatus(*followed))

    def _renamed(self, file: StoredFile) -> StoredFile:
        """Return the file with the names that the bundle is to have."""
        names = self.options.names
        if names is None:
            return file
        return file._replace(name=names.file(file.name), target=file.target and names.path(file.target))

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return True if the part in the bundle is still true. `status`: that of the directory."""
        if self.before is None or self.error is not None:
            return False
        there = self.before.directory
        if there.error is not None or there.status != FileStatus.of(status) or len(there) != len(self._listing):
            return False
        refused = []
        try:
            for name, file in self._files():
                kept = self._kept(file)
                if kept is None or (kept.status, kept.followed) != (file.status, file.followed):
                    return False
                if kept.refused:
                    refused.append((name, kept))
        except DecodeError:
            return False
        for name, kept in refused:
            self._refused(name, kept)
        return True

    def has_shrunk(self) -> bool:
        """Return True if a file is now smaller than when it was listed, or gone: what was read of the others may be
        from before."""
        for name, file in self._files():
            if file.seen is None or not stat.S_ISREG(file.seen.mode):
                continue
            try:
                size = os.stat(os.path.join(self.path, name)).st_size
            except OSError:
                return True
            if size < file.seen.size:
                return True
        return False

    def _kept(self, file: StoredFile) -> StoredFile | None:
        """Return the file in the bundle if its contents have not changed since. Raises DecodeError."""
        if self.before is None:
            return None
        old = self.before.directory.find(file.name)
        if old is None or (old.error is not None and not old.refused):
            return None
        if _lasting(old) != _lasting(file):
            return None
        is_old = file.seen is None or file.is_directory or file.seen.mtimeNs + YOUNG < self.before.written
        return old if is_old else None

    def write(self, out: Writable, name: str, prefix: str, status: os.stat_result) -> None:
        """Write the part. `name`: its own; `prefix`: the path of the directory in the tar file."""
        part = PartWriter(out, name, prefix)
        part.directory(FileStatus.of(status))
        rows = SortedRows()
        for own, file in self._files():
            stored = self._copied(own, file, part) or self._written(own, file, part)
            rows.add(stored.name, row_of(stored))
        index = Spool()
        index.row("", head_of(self.inside, FileStatus.of(status), self.error, len(rows)))
        for shown, row in rows:
            index.row(shown, row)
        part.finish(index)

    def _copied(self, name: str, file: StoredFile, part: PartWriter) -> StoredFile | None:
        """Return the file as it is in the bundle, with its contents copied; None if it has changed since, or if they
        are damaged."""
        if self.before is None:
            return None
        try:
            old = self._kept(file)
            if old is None:
                return None
            frames, contents = self.before.directory.frames, old.contents
            known = contents.known if isinstance(contents, Log) else {}
            sums = SortedLines(frames, known[KNOWN]).find(SUMS) if KNOWN in known else None
            if sums is not None and newest_before(sums) != self._newest_before(file):
                return None
            for extent in (*(() if contents is None else (contents.data,)), *known.values()):
                for _ in pieces(frames, extent):
                    pass  # so that damage is found before anything of it is written
            if contents is not None:
                data = part.copied(frames, contents.data, file.name, file.seen or file.status)
                contents = contents._replace(data=data)
            if isinstance(contents, Log):
                self._run.more(contents.data.size)
                copied = {what: part.copied(frames, extent, file.name, PLAIN, what) for what, extent in known.items()}
                contents = contents._replace(known=copied)
            if sums is not None and _is_live_segment(file):
                self.newest = newest(sums)
            if old.refused:
                self._refused(name, old)
            return old._replace(status=file.status, followed=file.followed, contents=contents)
        except (DecodeError, OSError, ValueError):
            return None

    def _newest_before(self, file: StoredFile) -> int:
        """Return the largest timestamp of a record in the segments before a file."""
        return self.newest if _is_live_segment(file) else -1

    def _written(self, name: str, file: StoredFile, part: PartWriter) -> StoredFile:
        """Return the file with its contents, which are written to the part."""
        kind, _ = by_name(name)
        if kind is None or name.endswith((".deleted", *COMPRESSED)):
            return file
        if kind is CLEAN_SHUTDOWN and file.is_directory:  # to a broker it is the same
            return file
        source_target = target(os.path.join(self.path, name), source=self.path)
        try:
            if file.seen is None:
                raise Refused(f"{source_target.path}: a broken link")
            if not stat.S_ISREG(file.seen.mode):  # to read a pipe would not end
                raise Refused(f"{source_target.path}: not a file")
            if kind in BATCHES:
                return self._segment(file, source_target, kind is KRAFT_SNAPSHOT, part)
            limit = MAX_FILE if kind in INDEXES or kind is PRODUCER_SNAPSHOT else MAX_SMALL_FILE
            if file.seen.size > limit:
                raise Refused(f"{source_target.path}: {file.seen.size} bytes are too many for such a file")
            source = self.options.reading.open(source_target).source
            if self.options.names is not None:
                return self._redacted(file, kind, source, part)
            contents, size = self._bytes(file, source, part)
            return _with_size(file, size)._replace(contents=contents)
        except SourceError as error:
            reason = self._error(str(error).removeprefix(f"{source_target.path}: "))
            self.unread.append(str(error))
            return file._replace(contents=None, error=reason, refused=isinstance(error, Refused))

    def _segment(self, file: StoredFile, segment: Target, is_snapshot: bool, part: PartWriter) -> StoredFile:
        records = self._records_writer(file, segment)
        try:
            contents = write_log(
                segment,
                self.options.reading.open(segment),
                part,
                file.name,
                file.seen or file.status,
                self._keep(is_snapshot),
                checksums=self.options.depth != "headers",
                limits=self.options.reading.limits,
                records=records,
                hashes=self._record_hasher(),
                run=self._run,
            )
            # What stat showed may be older than what was read.
            stored = file._replace(contents=self._without_error(contents))
            Spool().row(file.name, row_of(stored))
        except LineTooLong:
            raise Refused(f"{segment.path}: it is damaged in more places than a bundle can describe") from None
        if records is not None and _is_live_segment(file):
            self.newest = records.newest
        return stored

    def _refused(self, name: str, file: StoredFile) -> None:
        """Say again that a file is left out, in a run that does not read it."""
        if file.error == LEFT_OUT:
            self.left_out += 1
        else:
            self.unread.append(f"{os.path.join(self.path, name)}: {file.error}")

    def _error(self, message: str) -> str:
        return message if self.options.names is None else self.options.names.error(message)

    def _without_error(self, log: Log) -> Log:
        return log if log.error is None else log._replace(error=self._error(log.error))

    def _redacted(self, file: StoredFile, kind: FileKind, source: Source, part: PartWriter) -> StoredFile:
        """Write a file's contents with other names. Its size stays what it is on the disk."""
        assert self.options.names is not None
        with closing(source):
            data = source.read_at(0, MAX_REDACTED + 1)
            if len(data) <= MAX_REDACTED and not _has_batch(source, self.options.reading.limits):
                contents = redacted_file(kind, data, self._segment_size(source.name), self.options.names)
            else:
                contents = None
        if contents is None:
            self.left_out += 1
            return file._replace(error=LEFT_OUT, refused=True)
        spool = Spool()
        spool.write(contents)
        stored = _with_size(file, len(data))
        extent = part.small(file.name, spool, file.seen or file.status)
        return stored._replace(contents=Bytes(extent, len(contents)))

    def _segment_size(self, index: str) -> int:
        """Return the size of the segment that an index is one of, as it is now: a broker at work appends to it before
        the index, which has been read."""
        base = os.path.basename(index).partition(".")[0]
        sizes = [0]
        for ending in SEGMENTS:
            with suppress(OSError):
                sizes.append(os.stat(os.path.join(self.path, base + ending)).st_size)
        return max(sizes)

    def _record_hasher(self) -> RecordHasher | None:
        key = self.options.key
        return RecordHasher(key) if key is not None and self.known(self.path).compacted else None

    def _records_writer(self, file: StoredFile, segment: Target) -> RecordsWriter | None:
        if self.options.depth != "records":
            return None
        keyed = bool(self.known(self.path).compacted)
        return RecordsWriter(segment, self.options.reading, keyed=keyed, before=self._newest_before(file))

    def _keep(self, is_snapshot: bool) -> Keep:
        topic = partition(self.path).topic
        # The path may be a link with another name.
        if is_snapshot or METADATA_TOPIC in (topic, partition(os.path.realpath(self.path)).topic):
            topic = METADATA_TOPIC
        if self.options.names is not None:
            is_kept = topic in INTERNAL_TOPICS or (topic == SCHEMAS_TOPIC and self.options.schemas)
            return self._keep_redacted(topic if is_kept else None, self.options.names)
        if topic == SCHEMAS_TOPIC and self.options.internal and self.options.schemas:
            return KEEP_SCHEMAS
        if topic in INTERNAL_TOPICS and not self.options.internal:
            return KEEP_CONTROL
        if topic in INTERNAL_TOPICS:
            return KEEP_WITHOUT_SECRETS if topic == METADATA_TOPIC else KEEP_ALL
        return keep_records(topic) if topic and self.options.has_records(topic) else KEEP_CONTROL

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

    def _bytes(self, file: StoredFile, source: Source, part: PartWriter) -> tuple[Bytes, int]:
        """Write a file's bytes without the zeros at its end: indexes are preallocated. Returns also the number of bytes
        read."""
        spool = Spool()
        with closing(source):
            if _has_batch(source, self.options.reading.limits):
                raise Refused(f"{source.name}: contains record batches, which is not what its name says")
            while data := source.read_at(spool.position, FRAME):
                spool.write(data)
        return Bytes(part.small(file.name, spool, file.seen or file.status)), spool.position


def _has_batch(source: Source, limits: Limits) -> bool:
    """Return True if there is a whole batch anywhere in a file: a segment that was renamed, or blocks that a file
    system wrote to the wrong file; or if there are too many headers to check them all."""
    search = Search(Window(source), Run(limits))
    return next(search.batches(), None) is not None or search.unchecked > 0


def _with_size(file: StoredFile, size: int) -> StoredFile:
    """Return the file with the size that was read, in case it has changed since it was listed."""
    if file.followed is not None:
        return file._replace(followed=file.followed._replace(size=size))
    return file._replace(status=file.status._replace(size=size))


def _lasting(file: StoredFile) -> tuple[FileStatus, str | None, FileStatus | None]:
    """Return the status of a file without what it occupies, which changes when a file system writes its cache to the
    disk, and the times do not."""
    followed = None if file.followed is None else file.followed._replace(allocated=0)
    return file.status._replace(allocated=0), file.target, followed


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
