"""One file as the batches in it that can be believed, in order; what cannot is told, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdump.check import records as record_rules
from kdump.check.batch import first_offset
from kdump.check.catalogue import ERROR
from kdump.check.diagnosis import diagnose
from kdump.check.options import Options
from kdump.check.rule import Known, Part
from kdump.forensics.salvage.fates import CONTRADICTS, DAMAGED, PADDING, TORN, UNREAD
from kdump.forensics.salvage.heads import Head, Lost, Place
from kdump.format.batch import BATCH_HEADER, LOG_OVERHEAD, BatchHeader
from kdump.log import region as regions_of
from kdump.log.claim import REACH
from kdump.log.disk import Segment
from kdump.log.errors import SourceError
from kdump.log.legacy import last_record_offset, look_inside
from kdump.log.listing import length
from kdump.log.reader import regions
from kdump.log.region import Batch, BatchLegacy, BatchV2, Region, length_problem
from kdump.log.source import FileSource
from kdump.log.window import Window

UNSOUND = frozenset(
    (
        "crc-mismatch",
        "batch-length-invalid",
        "offset-invalid",
        "record-count-mismatch",
        "record-malformed",
        "decompression-failed",
        "lz4-frame-unsupported",
        "offset-delta-invalid",
        "control-batch-invalid",
        "header-key-invalid",
        "message-set-invalid",
    )
)
"""Codes of findings that stop a consumer or a broker, or make them skip records: a batch that has one is not kept. The
other errors stay as they were written, and the ledger names them."""
MOST_DELTA = 1 << 24
"""Offsets of one batch beyond which a damaged header is not believed."""
MISFIT = "its base offset, {}, does not fit between its neighbours'"
NO_OFFSETS = "its offsets cannot be"

FATE_OF = {regions_of.TORN: TORN, regions_of.PADDING: PADDING, regions_of.JUNK: DAMAGED}


Rescue = Callable[[Batch], "tuple[Batch, int] | None"]
"""Makes a sound batch of what can be decoded of a damaged one; and how many records that seems to have had."""


class Strand:
    """A walk over one file. `head` is the batch at hand, None at the end. `lost` is told of everything else, in order
    of position, before the head behind it is there."""

    def __init__(
        self,
        place: Place,
        known: Known,
        options: Options,
        lost: Callable[[Strand, Lost], None],
        met: Callable[[int], None] = lambda count: None,
        rescue: Rescue | None = None,
    ) -> None:
        self.place = place
        self.known = known
        self.options = options
        self.lost = lost
        self.met = met
        self.rescue = rescue
        self.head: Head | None = None
        self.last: int | None = None
        self.epoch: int | None = None
        self.notes: list[str] = []
        self.position = 0
        self.compacted = False
        """Whether a batch shows that the cleaner has been here."""
        self._window: Window | None = None
        self._stream: Iterator[Head] = iter(())

    @property
    def tier(self) -> int:
        """0: live segments of the copy that is followed; 1: of the others; 2: what is no live segment."""
        return 2 if self.place.spare else min(1, self.place.copy)

    def begin(self) -> None:
        self._stream = self._heads()
        self.advance()

    def advance(self) -> None:
        self.head = next(self._stream, None)

    def close(self) -> None:
        self._stream = iter(())
        if self._window is not None:
            self._window.source.close()
            self._window = None

    # -- the walk

    def _heads(self) -> Iterator[Head]:
        at = self.place.at
        try:
            self._window = window = self.options.open(at)
        except SourceError as error:
            self.lost(self, Lost(UNREAD, 0, length(at.path), "", str(error)))
            return
        source = window.source
        segment = Segment("", at.name_offset or 0, at)
        part = Part(segment, at, False, None, 0, source.size)
        try:
            for region in regions(window, name_offset=at.name_offset, limits=self.options.limits):
                head = self._judged(region, part)
                self.position = region.end
                self.met(region.size)
                if head is not None:
                    self.last, self.epoch = head.last, head.epoch if head.epoch >= 0 else self.epoch
                    yield head
            if source.error:
                self.lost(self, Lost(UNREAD, self.position, None, "", source.error))
            elif isinstance(source, FileSource) and source.grown():
                self.notes.append(f"{at.path}: changed while it was read")
        except SourceError as error:
            size = source.size
            self.lost(self, Lost(UNREAD, self.position, None if size is None else size - self.position, "", str(error)))
        finally:
            self.close()

    def _judged(self, region: Region, part: Part) -> Head | None:
        """The region as a head; None, and told, if it is none."""
        if not isinstance(region, Batch):
            self._region(region)
            return None
        batch: Batch = region
        mended: list[str] = []
        if batch.problems and batch.problems[0].code == "batch-length-invalid" and len(batch.problems) == 1:
            batch = _sized(batch)
            mended.append("batchLength")
        code, reason = self._unsound(batch)
        odd: list[str] = []
        if not code:
            for finding in record_rules.findings(part, self.known, batch):
                if finding.severity == ERROR and finding.code in UNSOUND:
                    code, reason = finding.code, finding.message
                    break
                if finding.severity == ERROR and finding.code not in odd:
                    odd.append(finding.code)
        if code:
            return self._damaged(batch, code, reason)
        base, last = first_offset(batch), last_record_offset(batch)
        if isinstance(batch, BatchLegacy) and last != batch.lastOffset:
            # Readers go by the messages inside, a broker that ends its log here by the wrapper.
            batch.header, batch.lastOffset = batch.header._replace(offset=last), last
            mended.append("offset")
        right, reason = self._fit(batch, base, last)
        if reason and self.tier == 0 and self.last is not None and last <= self.last and not self.compacted:
            lost = Lost(CONTRADICTS, region.position, region.size, "offset-not-monotonic", reason, base, last)
            self.lost(self, lost._replace(records=batch.recordCount or 0))
            return None
        if reason:
            return self._damaged(batch, "offset-not-monotonic", reason)
        if right != base:
            batch = _with(batch, baseOffset=right)
            mended.append("baseOffset")
            base, last = right, right + last - base
        epoch = self._right_epoch(batch)
        if epoch is not None:
            batch = _with(batch, partitionLeaderEpoch=epoch)
            mended.append("partitionLeaderEpoch")
        count = batch.recordCount
        self.compacted = (
            self.compacted or (count is not None and count < last - base + 1) or bool(batch.deleteHorizonMs)
        )
        return Head(self, batch, base, last, tuple(mended), tuple(odd), None, region.position, region.size)

    def _unsound(self, batch: Batch) -> tuple[str, str]:
        """Code and reason, empty if the header and the checksum can be believed."""
        if batch.problems:
            return batch.problems[0].code, batch.problems[0].reason
        if not batch.crcValid:
            text = diagnose(batch).text
            return "crc-mismatch", "its checksum does not hold" + (f": {text}" if text else "")
        if isinstance(batch, BatchLegacy):
            look_inside(batch)
            if batch.problems:
                return batch.problems[0].code, batch.problems[0].reason
            if batch.baseOffset is None or batch.lastOffset < 0:
                return "offset-invalid", NO_OFFSETS
        elif (batch.lastOffsetDelta or 0) < 0 or (batch.recordCount or 0) < 0:
            return "offset-invalid", NO_OFFSETS
        return "", ""

    # -- fields that no checksum covers

    def _fit(self, batch: Batch, base: int, last: int) -> tuple[int, str]:
        """The base offset that is right, or the reason why none is known. Its successor, or the next segment, and its
        predecessor tell where a batch belongs if it fills the gap between them exactly."""
        name = self.place.at.name_offset
        first = self.last is None
        expected = name if first else (self.last or 0) + 1
        successor = self._successor(batch.end)
        follows = successor.baseOffset if successor is not None else None
        if expected is None:
            return base, "" if base >= 0 else NO_OFFSETS
        beyond = self.place.beyond
        leaps = base > expected and (
            (follows is not None and expected <= follows <= last) or (beyond is not None and expected < beyond <= last)
        )
        if base >= expected and not leaps:
            return base, ""
        end = expected + last - base + 1
        at_end = self._window is not None and not self._window.reaches(batch.end + 1)
        if isinstance(batch, BatchV2) and (follows == end or (at_end and beyond == end)):
            return expected, ""
        if first and 0 <= base < expected and (follows == last + 1 or at_end):
            return base, ""  # it is the file's name that is wrong
        return base, MISFIT.format(base)

    def _right_epoch(self, batch: Batch) -> int | None:
        """What the leader epoch should be, where the batches before and behind agree that this one's is wrong: epochs
        never fall."""
        own = batch.partitionLeaderEpoch
        if own is None or own < 0 or self.epoch is None or own == self.epoch or not isinstance(batch, BatchV2):
            return None
        successor = self._successor(batch.end)
        return self.epoch if successor is not None and successor.partitionLeaderEpoch == self.epoch else None

    def _successor(self, position: int) -> BatchHeader | None:
        """The header of a v2 batch at `position`, if one seems to be there."""
        assert self._window is not None
        head = bytes(self._window.peek(position, BATCH_HEADER.size))
        if len(head) < BATCH_HEADER.size or head[16] != 2:
            return None
        header = BATCH_HEADER.read(head)
        return None if length_problem(header) else header

    # -- what is lost

    def _region(self, region: Region) -> None:
        unread = self._unread(region)
        fate = FATE_OF[region.kind]
        if fate == PADDING and self._hides(region):
            fate = DAMAGED
        code = "" if fate == PADDING else region.code
        if unread:
            self.lost(self, Lost(UNREAD, region.position, region.size, code, unread))
            return
        claimed = region.claimed
        first, last, records = None, None, 0
        if isinstance(claimed, BatchHeader):
            first, last, records = self._claims(claimed, region.end)
        self.lost(self, Lost(fate, region.position, region.size, code, region.reason, first, last, records))

    def _hides(self, zeros: Region) -> bool:
        """Whether zeros stand where batches were: offsets are missing behind them."""
        successor = self._successor(zeros.end)
        follows = self.place.beyond if successor is None else successor.baseOffset
        expected = self.place.at.name_offset if self.last is None else self.last + 1
        return follows is not None and expected is not None and expected < follows

    def _damaged(self, batch: Batch, code: str, reason: str) -> Head | None:
        unread = self._unread(batch)
        made = self.rescue(batch) if self.rescue is not None else None
        if made is not None:
            new, claimed = made
            base, last = first_offset(new), last_record_offset(new)
            if self._has_room(base, last, batch.end):
                return Head(self, new, base, last, (code,), (), claimed, batch.position, batch.size)
        first, last_, records = None, None, 0
        if isinstance(batch, BatchV2):
            first, last_, records = self._claims(batch.header, batch.end)
        if isinstance(batch, BatchLegacy):
            records = batch.recordCount or 1
        fate = UNREAD if unread else DAMAGED
        self.lost(self, Lost(fate, batch.position, batch.size, code, unread or reason, first, last_, records))
        return None

    def _claims(self, header: BatchHeader, end: int) -> tuple[int | None, int | None, int]:
        """First and last offset and records of a damaged header, as far as they can be. It ends at byte `end`."""
        first, delta, records = header.baseOffset, header.lastOffsetDelta, header.recordCount
        agrees = records == delta + 1 or (self.compacted and 0 <= records <= delta)
        if not agrees or not 0 <= delta < MOST_DELTA or not self._has_room(first, first + delta, end):
            return None, None, 0
        return first, first + delta, records

    def _has_room(self, first: int, last: int, end: int) -> bool:
        """Whether offsets first..last fit between what comes before and what follows at byte `end`."""
        before = self.last if self.last is not None else (self.place.at.name_offset or 0) - 1
        successor = self._successor(end)
        behind = [each for each in (self.place.beyond, successor.baseOffset if successor else None) if each is not None]
        return before < first <= last and first - before <= REACH and all(last < each for each in behind)

    def _unread(self, region: Region) -> str:
        """What of it the device did not give: the reader has seen zeros there."""
        assert self._window is not None
        look = getattr(self._window.source, "unreadable_in", None)
        found = look(region.position, region.size) if look else []
        if not found:
            return ""
        return f"the device cannot read {sum(size for _, size in found)} of its bytes, the first at {found[0][0]}"


def _sized(batch: Batch) -> Batch:
    """The batch with the length that its checksum proves."""
    batch.problems.clear()
    return _with(batch, batchLength=batch.size - LOG_OVERHEAD) if isinstance(batch, BatchV2) else batch


def _with(batch: Batch, **fields: int) -> Batch:
    """The same bytes under a header of which these fields are others, none of which the checksum covers."""
    assert isinstance(batch, BatchV2)
    made = BatchV2(batch.window, batch.position, batch.size, batch.limits, batch.header._replace(**fields))
    made._computed = batch._computed
    return made
