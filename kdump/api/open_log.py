"""`kdump.open`: reads a file or a partition directory, for use in programs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.check.options import Options
from kdump.io import file_system
from kdump.io.command_line_paths import without_slash
from kdump.io.errors import SourceError
from kdump.io.mounted_paths import mount_paths
from kdump.io.run import Run
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.entries import Item
from kdump.log.entries import entries as read_entries
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import BATCHES
from kdump.log.legacy_records import read_wrapper
from kdump.log.log_directory import directory_at
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target, target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, LegacyRecordBatch, Region
from kdump.log.walk import PartitionReader

__all__ = ["Log", "open"]


class Log:
    """A log: one segment, or all live segments of a partition directory in offset order.

    `topic` and `partition` are taken from the name of the directory, None if it does not contain them. Each iterator
    opens the files again, reads them through a window of 1 MiB, and closes them when it ends. Nothing is memory-mapped
    or written."""

    def __init__(
        self, path: str, files: list[Target], topic: str | None, partition: int | None, options: Options
    ) -> None:
        self.path, self.files, self.topic, self.partition = path, files, topic, partition
        self.options = options

    @property
    def segments(self) -> list[Log]:
        """Each of its files as a Log of its own."""
        return [Log(target.path, [target], self.topic, self.partition, self.options) for target in self.files]

    def regions(self) -> Iterator[Region]:
        """Yield all regions, in order: together they cover each file exactly. A Batch (kind "batch") could be parsed;
        torn, junk and padding regions are bytes that belong to no batch, with the reason. Positions and sizes are in
        bytes of the file.

        A batch can be read only until you request the next one. Raises SourceError if a file cannot be opened or read
        to its end."""
        reader = PartitionReader(self.options.open, Run(self.options.limits))
        for file in self.files:
            if file.kind not in BATCHES and file.kind is not None:
                raise SourceError.at(file.path, f"{file.kind.title}, which has no batches; use entries()")
            for region in reader.segment(file):
                if isinstance(region, LegacyRecordBatch):
                    read_wrapper(region)
                yield region

    def batches(self, *, damaged: bool = False) -> Iterator[Batch]:
        """Yield the valid batches (v2) and messages of magic 0 and 1; with `damaged`, also those whose checksum does
        not match or whose length is contradicted, as crcValid and `problems` show. Raises SourceError."""
        for region in self.regions():
            if isinstance(region, Batch) and (damaged or (is_valid(region) and not region.problems)):
                yield region

    def records(self, *, damaged: bool = False) -> Iterator[Record]:
        """Yield the records of those batches, control records included. Offsets, timestamps (epoch ms), keys, values
        and headers are as stored: bytes or None. If a batch cannot be decoded further, its records end there, and its
        `problems` give the reason. Raises SourceError."""
        for batch in self.batches(damaged=damaged):
            reading = Reading(batch)
            yield from records(reading)
            batch.header_problems += tuple(reading.problems[len(batch.problems) :])

    def entries(self) -> Iterator[Item]:
        """Yield the entries of a file that is not a segment (an index, a snapshot, a checkpoint) in order, Regions for
        bytes that are not an entry, and Defects. Raises SourceError, also for a file of batches."""
        for file in self.files:
            window = self.options.open(file)
            try:
                kind = file.kind or by_content(window)
                if kind in BATCHES:
                    raise SourceError.at(file.path, f"{kind.title}; use regions(), batches() or records()")
                yield from read_entries(kind, window, file.name_offset or 0)
            finally:
                window.source.close()

    def __repr__(self) -> str:
        return f"<kdump.Log {self.path!r}: {len(self.files)} file{'' if len(self.files) == 1 else 's'}>"


def open(path: str | os.PathLike[str], options: Options | None = None) -> Log:
    """Return the Log file `path`: a file (possibly compressed with gzip or zstd, or a URL that fsspec can open), or a
    partition directory.

    `options`: limits, and how files are opened. Raises SourceError if `path` does not exist or is another kind of
    directory."""
    path, options = without_slash(os.fspath(path)), options or Options()
    mount_paths([path])
    if path == "-" or "://" in path or not file_system.isdir(path):
        if path != "-" and "://" not in path and not file_system.exists(path):
            raise SourceError.at(path, "no such file or directory")
        file = target(path)
        return Log(path, [file], file.topic, file.partition, options)
    place = directory_at(path)
    if not isinstance(place, PartitionDirectory):
        raise SourceError.at(path, "not a partition directory; pass one of those in it, or a file")
    files = [segment.log for segment in place.segments if segment.log is not None]
    return Log(path, files, place.topic, place.partition, options)
