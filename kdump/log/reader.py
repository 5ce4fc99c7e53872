"""Any file -> regions that tile it exactly, in order.

A batch is believed when its successor begins where it ends, or when its checksum holds; so a healthy file is walked by
its headers alone, and a checksum is taken only when somebody asks for it. Where neither is so, the next sound batch
decides where this one ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdump.format.batch import LOG_OVERHEAD
from kdump.log.claim import HEADER, LEAST, REACH, Claim, claim_at, near
from kdump.log.region import JUNK, PADDING, TORN, Batch, Limits, Problem, Region, make_batch
from kdump.log.resync import LOOK_BACK, NOT_ZERO, Resync
from kdump.log.window import Window


def regions(
    window: Window, *, name_offset: int | None = None, start: int = 0, limits: Limits | None = None
) -> Iterator[Region]:
    """The regions of the file behind `window`, from `start` (the beginning of one) to its end.

    `name_offset` is the offset in the file's name, None for a name without one. A Batch can be read until the next
    region is asked for. Raises SourceError when the device does.
    """
    return Reader(window, name_offset, limits or Limits()).regions(start)


class Reader:
    """The walk over one file."""

    def __init__(self, window: Window, name_offset: int | None, limits: Limits) -> None:
        self.window = window
        self.name_offset = name_offset
        self.limits = limits
        self.resync = Resync(window, limits, name_offset)
        self.last_good: int | None = None

    def regions(self, position: int) -> Iterator[Region]:
        while True:
            self.window.release(position)
            head = self.window.view(position, HEADER)
            if not head:
                return
            for region in self._next(position, head):
                if isinstance(region, Batch):
                    # A base offset is outside the checksum; one that lies far off must not hide what comes behind it.
                    base = self.name_offset if self.name_offset is not None else self.last_good
                    if base is None or near(region.lastOffset, base):
                        self.last_good = region.lastOffset
                yield region
                position = region.end

    def _next(self, position: int, head: memoryview) -> Iterator[Region]:
        if len(head) < LEAST or not any(head[:LEAST]):
            if any(head):
                if len(head) < LEAST:
                    yield Region(TORN, position, len(head), f"{len(head)} bytes are left, fewer than a header")
                    return
            elif len(head) < LEAST:
                yield Region(PADDING, position, len(head), "zeros to the end")
                return
            yield from self._padding(position)
            return
        claim = claim_at(self.window, position, self.limits)
        if claim.header is not None and claim.error is None and self.window.reaches(claim.end):
            yield self._whole(claim)
        else:
            yield self._broken(claim)

    def _whole(self, claim: Claim) -> Region:
        """A header with a length that fits: is it right?"""
        header, position = claim.header, claim.position
        assert header is not None
        if self.resync.follows(claim) or self.resync.checksum_holds(position, claim.size, header.magic, header.crc):
            return make_batch(self.window, position, claim.size, self.limits, header)
        sound = self.resync.next_sound(position + 1, claim.end, self.last_good, claimed=True)
        if sound is None:
            return self._recovered(claim, None) or make_batch(self.window, position, claim.size, self.limits, header)
        reason = f"its length claims {claim.size} bytes, but a sound batch begins after {sound - position}"
        return self._recovered(claim, sound) or Region(JUNK, position, sound - position, reason, header)

    def _broken(self, claim: Claim) -> Region:
        """A header that cannot be, or a length that runs past the end."""
        header, error, position = claim.header, claim.error, claim.position
        claimed = header is not None and error is None
        sound = self.resync.next_sound(position + 1, None, self.last_good, claimed=claimed)
        recovered = self._recovered(claim, sound)
        if recovered is not None:
            return recovered
        end = self._end() if sound is None else sound
        if error is not None:
            return Region(JUNK, position, end - position, error.reason, header)
        assert header is not None
        if sound is None and self._may_be_torn(claim):
            reason = f"a batch of {claim.size} bytes, {claim.end - end} of them missing"
            return Region(TORN, position, end - position, reason, header)
        reason = f"its length claims {claim.size} bytes, {end - position} are there before what follows"
        return Region(JUNK, position, end - position, reason, header)

    def _may_be_torn(self, claim: Claim) -> bool:
        """Whether this is the start of a batch, and not just any bytes: its offset follows, or nothing is known."""
        base = self.last_good if self.last_good is not None else self.name_offset
        return claim.first_offset >= 0 if base is None else base - 1 < claim.last_offset < base + REACH

    def _recovered(self, claim: Claim, sound: int | None) -> Batch | None:
        """The batch whose length is wrong and whose checksum holds over the bytes up to `sound` (None: the end).
        The length is outside the checksum of every format."""
        header = claim.header
        if header is None:
            return None
        size = (self._end() if sound is None else sound) - claim.position
        if size <= HEADER - LOG_OVERHEAD or size == claim.size or size > LOOK_BACK:
            return None
        if not self.resync.checksum_holds(claim.position, size, header.magic, header.crc):
            return None
        reason = f"batchLength {header[1]} is contradicted by the checksum, which holds for {size - LOG_OVERHEAD}"
        at = claim.position + 8
        problem = Problem("batch-length-invalid", "RecordBatch", "batchLength", at, reason, size - 12, header[1])
        return make_batch(self.window, claim.position, size, self.limits, header, problem)

    def _padding(self, position: int) -> Iterator[Region]:
        """A run of zeros where a batch should start, and what follows if no batch does."""
        run_end = self._zeros_end(position)
        if run_end is None:
            yield Region(PADDING, position, self._end() - position, "zeros to the end")
            return
        # The zeros may be the first bytes of the next batch's small base offset.
        sound = self.resync.next_sound(max(position + 1, run_end - LOG_OVERHEAD), None, self.last_good, claimed=False)
        if sound is not None and sound <= run_end:
            yield Region(PADDING, position, sound - position, "zeros")
            return
        yield Region(PADDING, position, run_end - position, "zeros")
        end = self._end() if sound is None else sound
        yield Region(JUNK, run_end, end - run_end, "no batch begins here")

    def _zeros_end(self, position: int) -> int | None:
        """Position of the first byte that is not zero; None if there is none."""
        while data := self.window.view(position, self.window.size):
            match = NOT_ZERO.search(data)
            if match:
                return position + match.start()
            position += len(data)
            self.window.release(position - HEADER)
        return None

    def _end(self) -> int:
        """Where the source ends; a stream is read to there."""
        size = self.window.source.size
        position = 0
        while size is None:
            self.window.reaches(position)
            position += self.window.size
            size = self.window.source.size
        return size
