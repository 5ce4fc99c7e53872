"""The streaming reader: batches and records of a directory that is still being written, micro-batch by micro-batch.

Its offsets are positions: how far each segment has been read. A micro-batch ends with the last batch that is wholly
there; a torn tail, or zeros, may yet be written, and wait until a newer segment shows that nothing more comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kdump.log.disk import LogDirectory, Partition
from kdump.log.errors import SourceError
from kdump.log.index import begins_batch, read_hints
from kdump.log.paths import Target
from kdump.log.reader import WALKED, regions
from kdump.log.region import Batch, Limits, Stretch
from kdump.spark.fleet import Identity, find
from kdump.spark.options import OptionError, ReadOptions
from kdump.spark.parts import Part, Piece, packed
from kdump.spark.reading import Reading
from kdump.spark.walk import Slice, opened

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2, which asks for no limit either

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing of the kind there."""


Positions = dict[str, Any]
"""How far each segment has been read, by its path: bytes."""


STREAMS = ("batches", "records")


class KdumpStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads segments as they grow, and those that come. For logs that are not compacted: the cleaner writes anew what
    has been read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        if options.table.name not in STREAMS:
            raise OptionError(f"the table {options.table.name} does not stream: batches and records do")
        self.reading = Reading(options)
        self.schema = schema
        self._frozen: Positions | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all that the query will read."""
        self._frozen = self.latestOffset()

    def initialOffset(self) -> Positions:
        return {}

    def latestOffset(self, start: Positions | None = None, limit: Any = None) -> Positions:
        """How far there are whole batches now, or as far as `limit` lets a micro-batch go."""
        before = start or {}
        ends = self._frozen
        if ends is None:
            limits = self.reading.options.limits
            ends = {at.path: whole_end(at, before.get(at.path, 0), last, limits) for at, last, _, _ in self._segments()}
        most = getattr(limit, "max_bytes", None)
        return ends if most is None else self._within(before, ends, most)

    def getDefaultReadLimit(self) -> Any:
        most = self.reading.options.max_bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def _within(self, start: Positions, ends: Positions, most: int) -> Positions:
        """As far as `most` bytes go, each partition's segments in order. Partitions share alike, what one does not need
        is the others', and each gets one batch at least."""
        logs = {at.path: at for at, _, _, _ in self._segments()}
        reached = dict(ends)
        behind: dict[str, list[str]] = {}
        for path, end in ends.items():
            if path in logs and end > start.get(path, 0):
                behind.setdefault(path.rpartition("/")[0], []).append(path)
        sizes = {name: sum(ends[path] - start.get(path, 0) for path in paths) for name, paths in behind.items()}
        for number, name in enumerate(sorted(behind, key=lambda name: sizes[name])):
            share = max(1, most // (len(behind) - number))
            for path in behind[name]:
                first = start.get(path, 0)
                reached[path] = first
                if share > 0:
                    reached[path] = some_end(logs[path], first, ends[path], share, self.reading.options.limits)
                share -= reached[path] - first
                most -= reached[path] - first
        return reached

    def partitions(self, start: Positions, end: Positions) -> Sequence[InputPartition]:
        options = self.reading.options
        pieces = []
        for at, _, identity, state in self._segments():
            first, stop = start.get(at.path, 0), end.get(at.path, 0)
            for begin in range(first, stop, options.split_bytes):
                to = min(stop, begin + options.split_bytes)
                pieces.append(Piece(Slice(at, begin, to), identity, to - begin, state))
        return list(packed(pieces, options.split_bytes, options.parallelism))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Part):
            yield from self.reading.read(partition, to_arrow_schema(self.schema, timezone="UTC"))

    def _segments(self) -> Iterator[tuple[Target, bool, Identity, str]]:
        """The live segments, and whether each is the last of its partition."""
        self.reading.use_storage()
        options = self.reading.options
        for found in find(options.paths, self.reading.check, options.broker, options.brokers).found:
            place = found.place
            partitions = place.partitions if isinstance(place, LogDirectory) else [place]
            for each in partitions:
                if isinstance(each, Target):
                    yield each, True, found.identity, "live"
                elif isinstance(each, Partition):
                    logs = [segment.log for segment in each.segments if segment.log is not None]
                    for at in logs:
                        yield at, at is logs[-1], found.identity, each.state or "live"


def some_end(at: Target, position: int, end: int, most: int, limits: Limits) -> int:
    """The end of the first batch that ends `most` bytes behind `position` or more, at most `end`."""
    if end - position <= most:
        return end
    try:
        window = opened(at)
    except SourceError:
        return end
    try:
        for region in regions(window, name_offset=at.name_offset, start=position, limits=limits, stretches=WALKED):
            for each in region.batches() if isinstance(region, Stretch) else (region,):
                if each.end - position >= most:
                    return min(end, each.end)
    except SourceError:
        pass
    finally:
        window.source.close()
    return end


def whole_end(at: Target, position: int, last: bool, limits: Limits) -> int:
    """Where the batches of a segment end that are whole, from `position` on, up to which it has been read: the end of
    the file if it is not the `last`, for nothing more is written there. What cannot be read now is left for later."""
    try:
        window = opened(at)
    except SourceError:
        return position
    try:
        size = window.source.size or 0
        if not last or size <= position:
            return size
        hints = read_hints(at.path, at.name_offset)
        begin = next(
            (
                place
                for place, offset in zip(hints.positions[:-3:-1], hints.offsets[:-3:-1])
                if place > position and begins_batch(window, place, offset, at.name_offset)
            ),
            position,
        )
        end = position
        for region in regions(window, name_offset=at.name_offset, start=begin, limits=limits, stretches=WALKED):
            if isinstance(region, (Batch, Stretch)) or region.end != size:
                end = region.end
        return end
    except SourceError:
        return position
    finally:
        window.source.close()
