"""Reads the logs in which Kafka keeps its own state. Only this package does: others ask for the state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kdump.core.record_columns import RecordColumns
from kdump.io.errors import SourceError, unread
from kdump.io.run import PLAIN_RUN, Limits, Run, ignore
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns, records, rows_of
from kdump.log.batch_validity import CHECKSUM
from kdump.log.live_files import open_target
from kdump.log.paths import seen_file
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import PADDING, Batch, BatchRun, DefaultRecordBatch, Region
from kdump.log.region_reader import Depth
from kdump.log.walk import PartitionReader

LIMITS = Limits(max_batch_size=16 * 1024 * 1024, max_decompressed_size=16 * 1024 * 1024)
"""KRaft ends a batch at 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES); coordinators write smaller batches."""


class Malformed(str):
    """What is wrong with the records of a batch whose checksum matches: no recovery removes it."""


def bounded(limits: Limits) -> Limits:
    """Return LIMITS, lowered to `limits`: the records of these logs are kept in memory, not only shown."""
    size, decompressed = LIMITS.max_batch_size or 0, LIMITS.max_decompressed_size
    return Limits(min(limits.max_batch_size or size, size), min(limits.max_decompressed_size, decompressed))


Take = Callable[[DefaultRecordBatch, RecordColumns, int], int]
"""Takes records of a batch from that number on, without objects for them. Returns the number of the first that it does
not take."""


def read_records(
    path: str,
    note: Callable[[str], None],
    run: Run = PLAIN_RUN,
    take: Take | None = None,
    on_empty: Callable[[Batch], object] = ignore,
) -> Iterator[Record | None]:
    """Yield the records of a file in order, from valid batches only, and None for anything else, after passing a
    description to `note`; zeros at the end of the file are ignored. A record can be read until the next one is
    requested, and should be decoded only if it is not `too_large`. Calls `run.more` with numbers of bytes read.
    What `take` takes, which must not be damaged, is not yielded. Calls `on_empty` with batches that count no record.
    Never raises for the contents of the disk."""
    name = os.path.basename(path)
    problems: list[str] = []
    reader = PartitionReader(
        lambda at: Window(open_target(at)), replace(run, unreadable=lambda error: problems.append(unread(error)))
    )
    zeros = None
    try:
        for region in reader.segment(seen_file(path), Depth.CHECKSUMS):
            run.more(region.size)
            if zeros is not None:
                note(f"{name} at byte {zeros}: zeros")
                yield None
            zeros = region.position if region.kind == PADDING else None
            if zeros is not None:
                continue
            valid = _valid_batches(region)
            if valid is None:
                reason = CHECKSUM.reason if isinstance(region, Batch) else region.reason
                note(f"{name} at byte {region.position}: {region.kind}: {reason}")
                yield None
                continue
            for batch in valid:
                if batch.recordCount == 0:
                    on_empty(batch)
                reading = Reading(batch)
                yield from records(reading) if take is None else _not_taken(reading, take)
                for problem in reading.problems:
                    note(Malformed(f"{name} at byte {batch.position}: {problem.reason}"))
                if reading.problems:
                    yield None
    except SourceError as error:  # the payload of a batch is read here
        problems.append(unread(error))
    for text in problems:
        note(text)
        yield None


def _not_taken(reading: Reading[Batch], take: Take) -> Iterator[Record]:
    """Yield the records of a batch that `take` does not take: all those in a transaction or in a control batch."""
    batch = reading.batch
    if not isinstance(batch, DefaultRecordBatch) or batch.header.producerId >= 0 or batch.isControlBatch:
        yield from records(reading)
        return
    seen = 0
    for columns, base in decode_columns(reading):
        row = take(batch, columns, 0)
        while row < len(columns):
            yield from rows_of(batch, columns.only(row), base, seen + row)
            row = take(batch, columns, row + 1)
        seen += len(columns)


def _valid_batches(region: Region) -> Iterable[Batch] | None:
    if isinstance(region, BatchRun):
        return region.batches()
    return (region,) if isinstance(region, Batch) and region.crcValid else None
