"""How many records of a partition consumers receive: without markers, what is below the log start offset, and, with
isolation.level=read_committed, what kdump.questions.read_committed leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.io.errors import SourceError
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.questions.read_committed import ReadCommitted
from kdump.questions.stats.totals import Stats


class ReadableRecords(NamedTuple):
    """Numbers of records for any consumer, and for a read_committed one; None if not known."""

    any: int | None
    committed: int | None


UNKNOWN = ReadableRecords(None, None)


def readable_records(
    segments: list[Target], start: int | None, stats: Stats, options: Options, surroundings: Surroundings
) -> ReadableRecords:
    """Return how many of the data records that `stats` has counted in the segments of a log consumers receive. `start`:
    the log start offset; `surroundings`: see surroundings_of_gates. Reads again only what is below the log start
    offset, and logs with transactions. What cannot be read is unknown, and noted."""
    if stats.unknown or start is None:
        return UNKNOWN
    try:
        readable = stats.dataRecords
        if stats.firstOffset is not None and stats.firstOffset < start:
            for batch in _data(segments, options, None):
                if batch.baseOffset is not None and batch.baseOffset >= start:
                    break
                readable -= batch.possible_records - _from(batch, start)
        if not stats.transactionalBatches:
            return ReadableRecords(readable, readable)
        gate = ReadCommitted(options.limits, lambda line: None, surroundings=surroundings)
        hidden = sum(_from(batch, start) for batch in _data(segments, options, gate) if not gate.sees(batch))
    except SourceError as error:
        stats.note(f"{error}; how many records consumers receive is unknown")
        return UNKNOWN
    return ReadableRecords(readable, readable - hidden)


def _data(segments: Iterable[Target], options: Options, gate: ReadCommitted | None) -> Iterator[Batch]:
    """Yield the valid batches of data. Raises SourceError."""
    for target in segments:
        window = options.open(target)
        with closing(window.source):
            if gate is not None:
                gate.turn_to(target, window)
            for region in regions(window, name_offset=target.name_offset, limits=options.limits):
                if isinstance(region, Batch) and is_valid(region) and not region.isControlBatch:
                    yield region


def _from(batch: Batch, start: int) -> int:
    """Return the number of records of a batch at or above an offset."""
    if batch.baseOffset is not None and batch.baseOffset >= start:
        return batch.possible_records
    if batch.lastOffset < start:
        return 0
    if batch.baseOffset is not None and batch.possible_records == batch.lastOffset - batch.baseOffset + 1:
        return batch.lastOffset - start + 1  # every offset has a record
    offsets = [record.offset for record in records(batch, values=False)]
    if len(offsets) < batch.possible_records:
        raise SourceError(f"the records of the batch with offset {start}, the log start, are not known")
    return sum(offset is not None and offset >= start for offset in offsets)
