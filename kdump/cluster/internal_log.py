"""Reads the logs in which Kafka keeps its own state. Only this package does: others ask for the state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kdump.log.batch_records import records
from kdump.log.batch_validity import CHECKSUM
from kdump.log.errors import SourceError, unread
from kdump.log.live_files import open_target
from kdump.log.partition_reader import PartitionReader
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.log.region import PADDING, Batch, BatchRun, Region
from kdump.log.region_reader import CHECKED
from kdump.log.run import PLAIN_RUN, Limits, Run
from kdump.log.window import Window

LIMITS = Limits(max_batch_size=16 * 1024 * 1024, max_decompressed_size=16 * 1024 * 1024)
"""KRaft ends a batch at 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES); coordinators write smaller batches."""


def bounded(limits: Limits) -> Limits:
    """Return LIMITS, lowered to `limits`: the records of these logs are kept in memory, not only shown."""
    size, decompressed = LIMITS.max_batch_size or 0, LIMITS.max_decompressed_size
    return Limits(min(limits.max_batch_size or size, size), min(limits.max_decompressed_size, decompressed))


def read_records(path: str, note: Callable[[str], None], run: Run = PLAIN_RUN) -> Iterator[Record | None]:
    """Yield the records of a file in order, from valid batches only, and None for anything else, after passing a
    description to `note`; zeros at the end of the file are ignored. A record can be read until the next one is
    requested, and should be decoded only if it is not `too_large`. Calls `run.more` with numbers of bytes read.
    Never raises for the contents of the disk."""
    name = os.path.basename(path)
    problems: list[str] = []
    reader = PartitionReader(
        lambda at: Window(open_target(at)),
        replace(run, unreadable=lambda error: problems.append(unread(error))),
        run_mode=CHECKED,
    )
    zeros = None
    try:
        for region in reader.segment(target(path, source=os.path.dirname(path))):
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
                yield from records(batch)
                for problem in batch.problems:
                    note(f"{name} at byte {batch.position}: {problem.reason}")
                if batch.problems:
                    yield None
    except SourceError as error:  # the payload of a batch is read here
        problems.append(unread(error))
    for text in problems:
        note(text)
        yield None


def _valid_batches(region: Region) -> Iterable[Batch] | None:
    if isinstance(region, BatchRun):
        return region.batches()
    return (region,) if isinstance(region, Batch) and region.crcValid else None
