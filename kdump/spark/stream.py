"""The streaming reader: batches and records of directories that are still being written, in micro-batches.

Its offsets are file positions: how far each segment has been read. A micro-batch ends after the last complete batch. An
incomplete batch, or zeros, at the end may still become batches, and wait until a newer segment shows that nothing more
is written there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.log.bundle_names import bundle_of
from kdump.log.follow import complete_end
from kdump.log.log_directory import LogDirectory
from kdump.log.offset_index_lookup import begins_batch, open_index_lookup
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.region import BatchRun
from kdump.log.region_reader import Depth, regions
from kdump.spark.data_source_options import OptionError, ReadOptions
from kdump.spark.disk_identity import DiskIdentity
from kdump.spark.read_task import ReadTask, TaskItem, packed
from kdump.spark.segment_split import SegmentSplit, opened
from kdump.spark.table_read import TableRead

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2, which does not ask for a limit either

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the class that older versions of Spark do not have."""


Positions = dict[str, Any]
"""How many bytes of each segment have been read, by its path."""


STREAMS = ("batches", "records")


class KdumpStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads segments as they grow, and new segments. For logs that are not compacted: the log cleaner rewrites what has
    been read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        if options.table.name not in STREAMS:
            raise OptionError(f"table {options.table.name} cannot be streamed; only batches and records can")
        self.reading = TableRead(options)
        self.schema = schema
        self._frozen: Positions | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to what exists now."""
        self._frozen = self.latestOffset()

    def initialOffset(self) -> Positions:
        return {}

    def latestOffset(self, start: Positions | None = None, limit: Any = None) -> Positions:
        """Return the end of the complete batches in each segment, or what `limit` allows for a micro-batch."""
        before = start or {}
        ends = self._frozen
        if ends is None:
            limits = self.reading.options.limits
            ends = {
                target.path: whole_end(target, before.get(target.path, 0), last, limits)
                for target, last, _, _ in self._segments()
            }
        max_bytes = getattr(limit, "max_bytes", None)
        return ends if max_bytes is None else self._within(before, ends, max_bytes)

    def getDefaultReadLimit(self) -> Any:
        max_bytes = self.reading.options.max_bytes_per_trigger
        return ReadAllAvailable() if max_bytes is None else ReadMaxBytes(max_bytes)

    def _within(self, start: Positions, ends: Positions, max_bytes: int) -> Positions:
        """Return the positions after `max_bytes` more bytes, rounded up to whole batches, with each partition's
        segments in order. Partitions share equally; what one does not need goes to the others, and each gets at least
        one batch."""
        logs = {target.path: target for target, _, _, _ in self._segments()}
        reached = dict(ends)
        later: dict[str, list[str]] = {}
        for path, end in ends.items():
            if path in logs and end > start.get(path, 0):
                later.setdefault(path.rpartition("/")[0], []).append(path)
        sizes = {name: sum(ends[path] - start.get(path, 0) for path in paths) for name, paths in later.items()}
        for number, name in enumerate(sorted(later, key=lambda name: sizes[name])):
            share = max(1, max_bytes // (len(later) - number))
            for path in later[name]:
                first = start.get(path, 0)
                reached[path] = first
                if share > 0:
                    reached[path] = some_end(logs[path], first, ends[path], share, self.reading.options.limits)
                share -= reached[path] - first
                max_bytes -= reached[path] - first
        return reached

    def partitions(self, start: Positions, end: Positions) -> Sequence[InputPartition]:
        options = self.reading.options
        pieces = []
        for target, _, identity, state in self._segments():
            first, stop = start.get(target.path, 0), end.get(target.path, 0)
            for begin in range(first, stop, options.split_bytes):
                to = min(stop, begin + options.split_bytes)
                pieces.append(TaskItem(SegmentSplit(target, begin, to), identity, to - begin, state))
        return list(packed(pieces, options.split_bytes, options.parallelism))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, ReadTask):
            yield from self.reading.read(partition, to_arrow_schema(self.schema, timezone="UTC"))

    def _segments(self) -> Iterator[tuple[Target, bool, DiskIdentity, str]]:
        """Yield each segment, whether it is its partition's last, its owner, and the state of its directory."""
        for directory in self.reading.fleet().found:
            place = directory.place
            partitions = place.partitions if isinstance(place, LogDirectory) else [place]
            for partition in partitions:
                if isinstance(partition, Target):
                    yield partition, True, directory.identity, "live"
                elif isinstance(partition, PartitionDirectory):
                    logs = [segment.log for segment in partition.segments if segment.log is not None]
                    for target in logs:
                        yield target, target is logs[-1], directory.identity, partition.state or "live"


def refuse_bundles(options: ReadOptions) -> None:
    """Raise OptionError if a path is a bundle."""
    for path in options.paths:
        if bundle_of(path) is not None:
            raise OptionError(f"{path}: a bundle does not grow; read it with spark.read")


def some_end(target: Target, position: int, end: int, max_bytes: int, limits: Limits) -> int:
    """Return the end of the first batch that ends at least `max_bytes` bytes after `position`; at most `end`."""
    if end - position <= max_bytes:
        return end
    with suppress(SourceError), closing((window := opened(target)).source):
        for region in regions(
            window, name_offset=target.name_offset, start=position, limits=limits, depth=Depth.PAYLOADS
        ):
            for batch in region.batches() if isinstance(region, BatchRun) else (region,):
                if batch.end - position >= max_bytes:
                    return min(end, batch.end)
    return end


def whole_end(target: Target, position: int, last: bool, limits: Limits) -> int:
    """Return the end of the complete batches of a segment that has been read up to `position`. For a segment that is
    not the `last` one, this is the end of the file, because nothing more is written there. If the file cannot be read
    now, returns `position`, so that it is tried again later."""
    with suppress(SourceError), closing((window := opened(target)).source):
        size = window.source.size or 0
        if not last or size <= position:
            return size
        hints = open_index_lookup(target.path, target.name_offset)
        begin = next(
            (
                place
                for place, offset in zip(hints.positions[:-3:-1], hints.offsets[:-3:-1])
                if place > position and begins_batch(window, place, offset, target.name_offset)
            ),
            position,
        )
        return max(position, complete_end(target, window, begin, limits))
    return position
