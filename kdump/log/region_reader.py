"""Any file -> regions that tile it exactly, in order.

A batch is accepted if the next one begins where it ends, with exactly the next offset, or if its checksum matches. So
most of an intact file is read by its headers alone, and checksums are computed only on request. If neither is the case,
the next valid batch determines where this one ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from kdump.core.batch_scan import FURTHEST, ValidRun, read_one_header, scan_valid_batches
from kdump.core.column_numbers import BASE_OFFSET, BATCH_END, LAST_OFFSET, MAGIC_AT, RECORD_COUNT
from kdump.format.batch_formats import CORE_MAGICS, FORMATS, LARGEST_HEADER
from kdump.format.batch_header import LOG_OVERHEAD, MIN_RECORD_SIZE, BatchHeader
from kdump.format.count_text import plain_count
from kdump.format.errors import BATCH_LENGTH_INVALID, TRAILING_BYTES
from kdump.format.legacy_message import MessageHeader
from kdump.io.errors import SourceError
from kdump.io.mounted_paths import refuse_packed
from kdump.io.run import Limits
from kdump.io.window import LARGE, Window
from kdump.log.embedded_batch import LOOK_BACK
from kdump.log.header_candidate import LEAST, REACH, HeaderCandidate, candidate_at, candidate_in, near
from kdump.log.region import (
    ATTRIBUTES_AT,
    JUNK,
    PADDING,
    TORN,
    Batch,
    BatchRun,
    Defect,
    Region,
    as_magic_2,
    magic_problem,
    make_batch,
    short_view,
)
from kdump.log.resync import NOT_ZERO, Resync
from kdump.log.withheld import withheld_segment


class Depth(IntEnum):
    """How deep a file is read, each deeper than the one before (see `regions`)."""

    HEADERS = 0
    PAYLOADS = 1
    CHECKSUMS = 2
    BATCHES = 3


MAX_UNRECOGNIZED_REGIONS = 1000
"""Maximum regions of junk and padding that are buffered to see whether a file without a Kafka name is a log."""


def regions(
    window: Window,
    *,
    name_offset: int | None = None,
    start: int = 0,
    limits: Limits | None = None,
    depth: Depth = Depth.BATCHES,
    unordered: bool = False,
    after: int | None = None,
) -> Iterator[Region]:
    """Yield the regions of the file in `window`, from `start` (the beginning of one) to its end. `after`: the
    last offset of the batch before the last one before `start`: batches after damage are above it.

    `name_offset` is the offset in the file's name, None for a name without one. A Batch can be read until the next
    region is requested. Except with depth BATCHES, a BatchRun takes the place of v2 batches that are valid beyond
    doubt: with PAYLOADS by their headers, with CHECKSUMS by their checksums. With HEADERS, offsets may be missing
    between a batch and the next one, and only the headers of a run can be read: little more is read of large batches.
    `unordered`: the batch after damage may have any offset; by default, its offset must be above those before it and
    near the file's name. Raises SourceError if the device fails, and instead of any region if the file does not look
    like Kafka's (see Window.is_nameless)."""
    withheld = withheld_segment(window.source)
    if withheld is not None:
        return withheld.stored_regions(start, limits or Limits(), runs=depth != Depth.BATCHES)
    reader = Reader(window, name_offset, limits or Limits(), depth, unordered=unordered)
    reader.last_good = after
    reading = reader.regions(start)
    return _recognized(window, reading) if window.is_nameless and start == 0 else reading


def _recognized(window: Window, reading: Iterator[Region]) -> Iterator[Region]:
    """Yield the regions once one of them, a batch or the beginning of one, shows that the file is a log."""
    refuse_packed(window)
    unrecognized: list[Region] = []
    for region in reading:
        unrecognized.append(region)
        if region.kind not in (JUNK, PADDING) or len(unrecognized) == MAX_UNRECOGNIZED_REGIONS:
            yield from unrecognized
            yield from reading
            return
    if window.source.error is None:
        problem = f"no record batch in {window.source.size} bytes" if window.source.size else "is empty"
        raise SourceError.at(window.source.name, f"{problem}, and its name is not that of a segment (<20 digits>.log)")


class Reader:
    """Reads the regions of one file."""

    def __init__(
        self,
        window: Window,
        name_offset: int | None,
        limits: Limits,
        depth: Depth = Depth.BATCHES,
        *,
        unordered: bool = False,
    ) -> None:
        self.window = window
        self.in_runs, self.headers_only = depth != Depth.BATCHES, depth == Depth.HEADERS
        self.checks = depth == Depth.CHECKSUMS
        self.reach = REACH if self.headers_only else 1
        """By how much the offset of a batch may be above that of the one before it that it confirms."""
        self.name_offset, self.limits = name_offset, limits
        self.resync = Resync(window, limits, name_offset, unordered=unordered)
        self.latest: int | None = None
        self.last_good: int | None = None
        self.contradicting_offset: int | None = None

    def regions(self, position: int) -> Iterator[Region]:
        while True:
            self.window.release(position)
            self.resync.walked(position)
            head = self.window.view(position, LARGEST_HEADER)
            if not head:
                return
            is_in_core = self.in_runs and len(head) == LARGEST_HEADER and head[MAGIC_AT] in CORE_MAGICS
            run = self._batch_run(position) if is_in_core else None
            for region in (run,) if run is not None else self._next(position, head):
                if self.headers_only:
                    self.window.seek_headers(region.size // (run.run.batches if run is not None else 1))
                yield region
                position = region.end

    def _batch_run(self, position: int) -> BatchRun | None:
        """Return the batches from `position` on that are in the window and valid beyond doubt, and record their
        offsets. They are the same batches that would be returned one by one."""
        window, name = self.window, self.name_offset
        buffer, start = window.at_hand(position, LARGEST_HEADER)
        size = LOG_OVERHEAD + int.from_bytes(buffer[start + 8 : start + 12], "big", signed=True)
        if start + size + LARGEST_HEADER > len(buffer) and size <= max(window.ahead, LARGE):
            buffer, start = window.at_hand(position, size + LARGEST_HEADER)  # with the next header
        if start < 0 or (name is not None and name > FURTHEST):
            return None
        lowest, highest = (0, 2 * FURTHEST - 1) if name is None else (name, name + REACH - 1)
        if start + max(size, LARGEST_HEADER) > len(buffer):
            return self._large(position, buffer[start : start + LARGEST_HEADER], lowest, highest)
        end = window.source.size
        run = scan_valid_batches(
            buffer,
            start,
            source_end=len(buffer) if end is None else end - position + start,
            largest=min(self.limits.max_batch_size or FURTHEST, FURTHEST),
            latest=-1 if self.latest is None else self.latest,
            lowest=lowest,
            highest=highest,
            budget=self.resync.work_left,
            check=self.checks,
            reach=self.reach,
        )
        if run is None:
            return None
        self._adopt(run)
        return BatchRun(self.limits, position, start, run, self.checks)

    def _large(self, position: int, header: bytes, lowest: int, highest: int) -> BatchRun | None:
        """Return a batch that is not in the window, if only headers are needed and the next one confirms it."""
        if not self.headers_only or len(header) < LARGEST_HEADER:
            return None
        heads = read_one_header(header, position)
        size, count = heads.of(0, BATCH_END), heads.of(0, RECORD_COUNT)
        first, last = heads.of(0, BASE_OFFSET), heads.of(0, LAST_OFFSET)
        latest = -1 if self.latest is None else self.latest
        if not latest < first <= last or not lowest <= last <= highest or not 0 <= count * MIN_RECORD_SIZE < size:
            return None
        if size > (self.limits.max_batch_size or FURTHEST) or not self.resync.follows(position + size, last, REACH):
            return None
        run = ValidRun(size, heads, count, first, last, latest, 0)
        self._adopt(run)
        return BatchRun(self.limits, position, 0, run, False)

    def _adopt(self, run: ValidRun) -> None:
        """Record the offsets of a batch run."""
        if run.batches > 1:
            self.last_good = run.before
        elif self.latest is not None:
            self.last_good = self.latest
        self.latest = run.last_offset
        self.resync.work_left -= run.unchained

    def _next(self, position: int, head: memoryview) -> Iterable[Region]:
        """Return the regions at a position, whose first bytes are `head`: one, or two if padding precedes junk."""
        if not any(head[:LEAST]):
            return self._padding(position)
        claim = candidate_in(head, position, self.limits)
        header = claim.header
        if not isinstance(header, BatchHeader) and len(head) > ATTRIBUTES_AT and not head[ATTRIBUTES_AT]:
            other = self._of_magic_2(position, head)
            if other is not None:
                return (other,)
        if header is None or claim.error is not None or not self.window.reaches(claim.end):
            return (self._broken(claim),)
        if self.resync.follows(claim.end, claim.last_offset):
            return (self._batch(claim),)
        if self.resync.checksum_matches(position, claim.size, header.magic, header.crc):
            return (self._batch(claim, header.crc),)
        return (self._contradicted(claim),)

    def _batch(self, claim: HeaderCandidate, crc: int | None = None) -> Batch:
        """Return an accepted batch; `crc` is its checksum if that was computed."""
        assert claim.header is not None
        self._learn(claim.first_offset, claim.last_offset)
        return make_batch(self.window, claim.position, claim.size, self.limits, claim.header, crc=crc)

    def _of_magic_2(self, position: int, head: memoryview) -> Batch | None:
        """Return the batch at a position that has another magic than 2, if its checksum is that of a v2 batch."""
        header, stored = as_magic_2(head), head[MAGIC_AT] if len(head) > MAGIC_AT else 2
        largest = self.limits.max_batch_size
        if header is None or (largest is not None and header.size > largest):
            return None
        if not self.window.reaches(position + header.size):
            return None
        if not self.resync.checksum_matches(position, header.size, 2, header.crc):
            return None
        self._learn(header.baseOffset, header.lastOffset)
        problem = magic_problem(position, stored)
        return make_batch(self.window, position, header.size, self.limits, header, problem, header.crc)

    def _learn(self, first: int, last: int) -> None:
        """Record the offsets of an accepted batch. Checksums do not cover base offsets: trust an offset only after a
        larger one follows, so that a wrong one does not hide later batches. For the same reason, ignore the file's name
        if the first two batches contradict it consistently: the file has been renamed."""
        name = self.name_offset
        if first < 0 or last < first or (name is not None and not (near(last, name) and name <= last)):
            if (
                name is not None
                and self.latest is None
                and self.contradicting_offset is not None
                and self.contradicting_offset < first
            ):
                self.name_offset = None
                self.resync.forget_name()
            self.contradicting_offset = last
            return
        if self.latest is not None and self.latest < first:
            self.last_good = self.latest
        elif self.last_good is not None:
            self.last_good = min(self.last_good, first - 1) if first else None
        self.latest = last

    def _contradicted(self, claim: HeaderCandidate) -> Region:
        """Return the region for a header that fits, but that neither the next batch nor the checksum confirms."""
        header, position = claim.header, claim.position
        assert header is not None
        next_valid = self.resync.next_valid(position + 1, claim.end + LOOK_BACK, position, self.last_good)
        recovered = self._recovered(claim, next_valid)
        if recovered is not None:
            return recovered
        if (next_valid is None or claim.end <= next_valid) and self._fits_in(claim):
            return make_batch(self.window, position, claim.size, self.limits, header)
        if next_valid is None:
            next_valid = self.resync.next_valid(position + 1, None, position, self.last_good)
        end = self._end() if next_valid is None else next_valid
        if next_valid is None or claim.end <= next_valid:
            return self._junk(position, end, "its checksum does not match, and its offset is impossible here", header)
        reason = f"its header states {plain_count(claim.size, 'byte')}, but a valid batch starts after {end - position}"
        return self._junk(position, end, reason, header, BATCH_LENGTH_INVALID if self._fits_in(claim) else "")

    def _broken(self, claim: HeaderCandidate) -> Region:
        """Return the region for an invalid header, or for a length that extends past the end."""
        header, error, position = claim.header, claim.error, claim.position
        head = bytes(self.window.peek(position, LARGEST_HEADER))  # the search may read a pipe past it
        next_valid = self.resync.next_valid(position + 1, None, position, self.last_good)
        recovered = self._recovered(claim, next_valid)
        if recovered is not None:
            return recovered
        end = self._end() if next_valid is None else next_valid
        if next_valid is None and error is not None and error.code == TRAILING_BYTES:
            torn = Region(TORN, position, end - position, error.reason, code=error.code)
            torn.broker_view = short_view(head)
            return torn
        if error is not None:
            code = error.code if self._in_place(claim, head, end) else ""
            return self._junk(position, end, error.reason, header, code)
        assert header is not None
        if next_valid is None and self._fits_in(claim):
            reason = f"a batch of {plain_count(claim.size, 'byte')}, of which the last {claim.end - end} are missing"
            return Region(TORN, position, end - position, reason, header)
        follows = "the end of the file" if next_valid is None else "the next valid batch"
        reason = f"its header states {plain_count(claim.size, 'byte')}, but {follows} comes after {end - position}"
        return self._junk(position, end, reason, header, BATCH_LENGTH_INVALID if self._fits_in(claim) else "")

    def _junk(
        self, position: int, end: int, reason: str, header: BatchHeader | MessageHeader | None, code: str = ""
    ) -> Region:
        if end - position < LEAST and not any(self.window.peek(position, end - position)):
            return Region(PADDING, position, end - position, "zeros")
        return Region(JUNK, position, end - position, reason, header, code)

    def _in_place(self, claim: HeaderCandidate, head: bytes, end: int) -> bool:
        """Return True if the invalid bytes up to `end` are a batch except for one wrong field: its offset fits or, if
        the magic is wrong, its length leads to the next batch."""
        if claim.header is not None:
            return self._fits_in(claim)
        length = int.from_bytes(head[8:12], "big", signed=True)
        return len(head) >= LEAST and claim.position + LOG_OVERHEAD + length == end

    def _fits_in(self, claim: HeaderCandidate) -> bool:
        """Return True if the offset suggests a batch: it is in range of the known offsets, or none is known."""
        base = self.last_good if self.last_good is not None else self.name_offset
        return claim.first_offset >= 0 if base is None else base - 1 < claim.last_offset < base + REACH

    def _recovered(self, claim: HeaderCandidate, next_valid: int | None) -> Batch | None:
        """Return the batch if its length is wrong, but its checksum matches the bytes up to `next_valid` (None: the
        end). The checksum does not cover the length in any format."""
        header = claim.header
        if header is None or (next_valid is None and self.window.source.size is None):
            return None
        size = (self._end() if next_valid is None else next_valid) - claim.position
        if size < FORMATS[header.magic].header.size or size == claim.size or size > LOOK_BACK:
            return None
        if not self.resync.checksum_matches(claim.position, size, header.magic, header.crc):
            return None
        field_at = claim.position + 8
        field = header._fields[1]
        reason = f"{field} is {header[1]}, but the checksum matches a length of {size - LOG_OVERHEAD}"
        problem = Defect(BATCH_LENGTH_INVALID, "RecordBatch", field, field_at, reason, size - LOG_OVERHEAD, header[1])
        return make_batch(self.window, claim.position, size, self.limits, header, problem)

    def _padding(self, position: int) -> Iterator[Region]:
        """Yield the zeros where a batch should start, and the junk after them if no batch follows."""
        run_end = self._zeros_end(position)
        if run_end is None:
            yield Region(PADDING, position, self._end() - position, "zeros to the end")
            return
        # The zeros may be the first bytes of the next batch's small base offset.
        begin = max(position + 1, run_end - LOG_OVERHEAD)
        boundary = position if run_end - position <= LARGEST_HEADER else run_end
        next_valid = self.resync.next_valid(begin, None, boundary, self.last_good)
        if next_valid is not None and next_valid <= run_end:
            yield Region(PADDING, position, next_valid - position, "zeros")
            return
        if next_valid is None:
            for start in range(max(position + 1, run_end - LOG_OVERHEAD), run_end + 1):
                claim = candidate_at(self.window, start, self.limits)
                if claim.header and not claim.error and not self.window.reaches(claim.end) and self._fits_in(claim):
                    yield Region(PADDING, position, start - position, "zeros")
                    return  # the torn batch itself is the next region
        yield Region(PADDING, position, run_end - position, "zeros")
        end = self._end() if next_valid is None else next_valid
        yield Region(JUNK, run_end, end - run_end, "no batch starts here")

    def _zeros_end(self, position: int) -> int | None:
        """Return the position of the first byte that is not zero, None if there is none."""
        zeros = bytes(self.window.size)
        while True:
            position = self.window.source.next_data(position)
            data = self.window.view(position, self.window.size)
            if not data:
                return None
            # Many times faster than searching or comparing a view, which matters: there may be gigabytes of zeros.
            match = None if zeros.startswith(data) else NOT_ZERO.search(data)
            if match:
                return position + match.start()
            position += len(data)
            self.window.release(position - LARGEST_HEADER)

    def _end(self) -> int:
        """Return the size of the source; reads a stream to its end."""
        size = self.window.source.size
        position = 0
        while size is None:
            self.window.reaches(position)
            position += self.window.size
            size = self.window.source.size
        return size
