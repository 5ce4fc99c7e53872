"""Reads the segments of one partition in several processes, ahead of the rules, which see all batches in order.

A segment is divided into pieces, at entries of its index. A worker process validates the batches of a piece, and
returns their headers and which of them have doubtful records: rules rarely need more. It stops before a batch that
needs a closer look. The reader of the segment continues there by itself, as it does between pieces, and checks that
each piece continues what it has read. So an index that is wrong costs time, and changes nothing else.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from kdump.check.engine.record_suspects import record_suspects
from kdump.core.batch_scan import ValidRun
from kdump.core.column_numbers import BASE_OFFSET, BATCH_END, BATCH_START, HEADER_WIDTH, LAST_OFFSET, RECORD_COUNT
from kdump.core.header_columns import HeaderColumns, rows_of, total
from kdump.io.directory_listing import is_url, length
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import FaultTolerantSource, careful_source
from kdump.io.file_system import tree_at
from kdump.io.low_impact_reads import limit_rate, rate_for_workers
from kdump.io.run import Limits
from kdump.io.source import FileSource, Source
from kdump.io.token_bucket import TokenBucket
from kdump.io.window import Window
from kdump.log.live_files import open_target
from kdump.log.offset_index_lookup import open_index_lookup
from kdump.log.paths import Target
from kdump.log.region import BatchRun
from kdump.log.region_reader import Depth, regions
from kdump.parallel_jobs import begin_worker, keep_freed_memory, stop_workers, worker_context
from kdump.signals import uninterrupted

if TYPE_CHECKING:  # slow to import
    from concurrent.futures import Future, ProcessPoolExecutor

PIECE = 16 << 20
"""Size in bytes of a piece; what is smaller is not worth another process."""
MAX_BATCHES = 40_000
"""Number of batches after which a worker stops: it returns 96 bytes for each."""


class Piece(NamedTuple):
    """Bytes start..stop-1 of a segment, and how to read it: `window` bytes at once; with `deep`, records are checked
    too; `keyed`: none may have a null key."""

    target: Target
    start: int
    stop: int
    limits: Limits
    window: int
    deep: bool
    keyed: bool


class PieceRun(NamedTuple):
    """A batch run at `position`: the numbers of HeaderColumns, relative to its start; how many bytes are of batches
    that only their checksums confirm; with `deep`, the numbers of the batches whose records may have a problem."""

    position: int
    numbers: bytes
    unchained: int
    suspects: list[int] | None


class PieceScan(NamedTuple):
    """The batch runs of a piece, each where the one before ends. `device` and `inode` are those of the file."""

    device: int
    inode: int
    runs: list[PieceRun]


def scan(piece: Piece) -> PieceScan:
    """Validate the batches of a piece, up to the first that needs a closer look."""
    runs: list[PieceRun] = []
    try:
        with closing(open_target(piece.target, careful_source)) as source:
            if not isinstance(source, FaultTolerantSource):  # compressed
                return PieceScan(0, 0, runs)
            identity = source.identity()
            window = Window(source, piece.window)
            name_offset, batches = piece.target.name_offset, 0
            for region in regions(
                window, name_offset=name_offset, start=piece.start, limits=piece.limits, depth=Depth.CHECKSUMS
            ):
                if not isinstance(region, BatchRun) or source.unreadable or region.position >= piece.stop:
                    break
                heads = region.headers
                heads.count = bisect_left(heads.column(BATCH_START), piece.stop - heads.shift)
                suspects = record_suspects(heads, piece.limits, keyed=piece.keyed) if piece.deep else None
                numbers = rows_of(heads, 0, len(heads)).tobytes()
                runs.append(PieceRun(region.position, numbers, region.run.unchained, suspects))
                batches += len(heads)
                if batches > MAX_BATCHES:
                    break
            return PieceScan(identity.device, identity.inode, runs)
    except SourceError:  # which the reader of the segment reports when it gets there
        return PieceScan(0, 0, [])


def pieces(targets: Iterable[Target], limits: Limits, window: int, *, deep: bool, keyed: bool) -> Iterator[Piece]:
    """Yield the pieces of the segments, in order."""
    for target in targets:
        if target.path == "-" or is_url(target.path) or tree_at(target.path) is not None:
            continue
        size = length(target.path) or 0
        positions = open_index_lookup(target.path, target.name_offset).positions if size >= 2 * PIECE else ()
        starts = [0]
        while (entry := bisect_left(positions, starts[-1] + PIECE)) < bisect_left(positions, size - PIECE):
            starts.append(positions[entry])
        for start, stop in zip(starts, [*starts[1:], size]):
            if stop - start >= PIECE:
                yield Piece(target, start, stop, limits, window, deep, keyed)


class SegmentScans:
    """Scans of pieces by a pool of worker processes, at most `ahead` of them ahead of the reader."""

    def __init__(
        self, pool: ProcessPoolExecutor, targets: Iterable[Target], planned: Iterator[Piece], ahead: int
    ) -> None:
        self._pool = pool
        self._order = {target.path: number for number, target in enumerate(targets)}
        self._planned = planned
        self._ahead = ahead
        self._waiting: deque[tuple[Piece, Future[PieceScan]]] = deque()
        self._piece: Piece | None = None
        self._runs: deque[PieceRun] = deque()
        """What is left of the scan of that piece."""

    def runs(self, target: Target, source: Source) -> Callable[[int], Iterator[BatchRun]]:
        """Return a function that yields the batch runs of a segment from a position on, as far as there are scans. It
        must be called with ascending positions, and for the segments in order."""

        def runs_from(position: int) -> Iterator[BatchRun]:
            while self._reach(target, source, position):
                batch_run = self._next_run(source, position)
                if batch_run is not None:
                    yield batch_run
                    position = batch_run.end

        return runs_from

    def _next_run(self, source: Source, position: int) -> BatchRun | None:
        """Return the batches of the next run that start at `position` or after it; None if there are none."""
        assert self._piece is not None
        run = self._runs.popleft()
        heads = HeaderColumns(b"", run.position)
        heads.block = array("q", run.numbers)
        heads.count = len(heads.block) // HEADER_WIDTH
        first = bisect_left(heads.column(BATCH_START), position - run.position)
        if first == len(heads):
            return None
        if run.position + heads.of(first, BATCH_START) != position:  # the index is wrong
            self._runs.clear()
            return None
        return scanned_run(source, self._piece.limits, heads, first, run.unchained, run.suspects)

    def _reach(self, target: Target, source: Source, position: int) -> bool:
        """Continue with the piece of a segment that contains a position. Returns False if nothing of it is left."""
        if self._piece is None or self._piece.target.path != target.path or self._piece.stop <= position:
            self._piece = None
            self._runs.clear()
            number = self._order.get(target.path, -1)
            while self._submit() and self._piece is None:
                piece, future = self._waiting[0]
                its_number = self._order[piece.target.path]
                if its_number > number or (its_number == number and piece.start > position):
                    return False
                self._waiting.popleft()
                if its_number < number or piece.stop <= position:
                    future.cancel()
                    continue
                self._piece = piece
                self._runs.extend(self._result(future, source))
        return bool(self._runs)

    def _submit(self) -> bool:
        """Keep the workers busy. Returns False once there is nothing left to wait for."""
        while len(self._waiting) < self._ahead and (piece := next(self._planned, None)) is not None:
            try:
                with uninterrupted():  # so that stop_workers finds every worker that was started
                    self._waiting.append((piece, self._pool.submit(scan, piece)))
            except BrokenExecutor:
                self._planned = iter(())
        return bool(self._waiting)

    def _result(self, future: Future[PieceScan], source: Source) -> list[PieceRun]:
        """Wait for a scan. Returns nothing if it is of another file, or the system has ended the worker."""
        try:
            piece_scan = future.result()
        except BrokenExecutor:
            return []
        is_same = isinstance(source, FileSource) and source.identity()[:2] == (piece_scan.device, piece_scan.inode)
        return piece_scan.runs if is_same else []


def _begin(rate: TokenBucket | None) -> None:
    begin_worker()
    limit_rate(rate)
    keep_freed_memory()


@contextmanager
def segment_scans(targets: Iterable[Target], jobs: int, planned: Iterator[Piece]) -> Iterator[SegmentScans | None]:
    """Scan pieces in `jobs` processes within the block; None if there are fewer than two, or processes cannot be
    started because disks are full or read-only or there is no /dev/shm."""
    first = list(islice(planned, 2)) if jobs > 1 else []
    if len(first) < 2:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor

    context = worker_context()
    try:
        pool = ProcessPoolExecutor(jobs, context, _begin, (rate_for_workers(context),))
    except OSError:
        yield None
        return
    try:
        yield SegmentScans(pool, targets, chain(first, planned), jobs + 1)
    finally:
        stop_workers(pool)


class _ReadLater(HeaderColumns):
    """The columns of batches at `shift` of a source, of which `size` bytes are read when they are first needed."""

    __slots__ = ("_data", "_size", "_source")

    def __init__(self, source: Source, shift: int, size: int) -> None:
        self._source = source
        self._size = size
        self._data: bytes | None = None
        self.shift = shift
        self.grouped = None

    @property
    def data(self) -> bytes:  # type: ignore[override]
        """Raises SourceError if the file has become shorter."""
        if self._data is None:
            data = self._source.read_at(self.shift, self._size)
            if len(data) < self._size:
                raise SourceError(f"{self._source.name}: truncated at byte {self.shift + len(data)} while it was read")
            self._data = data
        return self._data


def scanned_run(
    source: Source, limits: Limits, headers: HeaderColumns, first: int, unchained: int, suspects: list[int] | None
) -> BatchRun:
    """Return the batch run of `headers` (without their bytes) from batch number `first` on. `unchained`: bytes of the
    batches that only their checksums confirm; `suspects`: numbers of the batches whose records may have a problem, None
    if they were not checked."""
    count = len(headers)
    start, size = headers.of(first, BATCH_START), headers.of(count - 1, BATCH_END) - headers.of(first, BATCH_START)
    columns = _ReadLater(source, headers.shift + start, size)
    columns.block, columns.count = rows_of(headers, first, count), count - first
    valid = ValidRun(
        size,
        columns,
        total(columns, RECORD_COUNT, 0, len(columns)),
        columns.of(0, BASE_OFFSET),
        columns.of(len(columns) - 1, LAST_OFFSET),
        columns.of(len(columns) - 2, LAST_OFFSET) if len(columns) > 1 else -1,
        unchained,
    )
    run = BatchRun(limits, columns.shift, 0, valid, True)
    run.suspects = None if suspects is None else [suspect - first for suspect in suspects if suspect >= first]
    return run
