"""One source file: its regions, which of its batches are valid, and which bytes the device cannot read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdump.check.diagnosis.diagnose import diagnose
from kdump.check.finding import ERROR
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import SegmentContext
from kdump.check.rules import records as record_rules
from kdump.check.rules.bytes import first_offset
from kdump.check.rules.records import OFFSET_DELTA_INVALID
from kdump.format import errors
from kdump.format.batch_formats import LARGEST_HEADER, format_at
from kdump.format.batch_header import CRC_START, LOG_OVERHEAD, MAGIC_POSITION, BatchHeader
from kdump.format.checksum import checksum
from kdump.format.numbers import LONG_MAX
from kdump.io.directory_listing import length
from kdump.io.source import StreamSource
from kdump.io.window import Window
from kdump.log.batch_validity import CHECKSUM, damage_of, records_unknown
from kdump.log.partition_directory import SegmentFiles
from kdump.log.reading import Reading
from kdump.log.region import (
    Batch,
    DefaultRecordBatch,
    Defect,
    LegacyRecordBatch,
    Region,
    as_magic_2,
    last_record_offset,
    length_problem,
    magic_problem,
    make_batch,
    read_header,
    without_problems,
)
from kdump.log.region_reader import regions
from kdump.questions.salvage.source.file_parts import InputFile

UNSOUND = frozenset(
    (
        *(errors.CRC_MISMATCH, errors.BATCH_LENGTH_INVALID, errors.OFFSET_INVALID, errors.RECORD_COUNT_MISMATCH),
        *(*errors.IN_CODEC, errors.RECORD_MALFORMED, errors.HEADER_KEY_INVALID, errors.MESSAGE_SET_INVALID),
        *("offset-delta-invalid", "control-batch-invalid"),
    )
)
"""Codes of findings that stop a consumer or a broker, or make them skip records: a batch with one of them is not kept.
Batches with other errors are written unchanged, and the ledger lists the codes."""

UNCOVERED = {errors.BATCH_LENGTH_INVALID: "batchLength", errors.MAGIC_UNKNOWN: "magic"}
"""Header fields that no checksum covers and that the batch itself corrects, by the code of their findings."""

Rescue = Callable[[Batch], "tuple[Batch, int, tuple[str, ...]] | None"]
"""Returns a valid batch of the records that decode in a damaged one, how many records that one seems to have had, and
what was corrected so that it is exact; None if no record decodes."""
CORRECTED_BIT = "one flipped bit corrected, the checksum matches"


class CheckedBatch(NamedTuple):
    """A batch, and whether it is valid: `code` and `reason` are empty if it is. `base` and `last`: its first and last
    offset; `mended`: names of fields that were corrected from the batch itself; `odd`: codes of errors that remain;
    `decodes`: whether nothing contradicts its bytes or its records, as far as they were read."""

    batch: Batch
    base: int = -1
    last: int = -1
    mended: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    code: str = ""
    reason: str = ""
    decodes: bool = True


class SourceFile:
    """A source file that is being read. Its window is open between `open` and `close`."""

    def __init__(self, place: InputFile, known: PartitionContext, options: Options) -> None:
        self.place, self.known, self.options = place, known, options
        self._window: Window | None = None
        self._part: SegmentContext | None = None

    @property
    def window(self) -> Window:
        """The open window. Raises AssertionError if the file is not open."""
        assert self._window is not None
        return self._window

    def open(self, ahead: int | None = None) -> None:
        """Open the file. `ahead`: bytes to read at once, by default a whole window. Raises SourceError."""
        target = self.place.target
        self.place.sizes.setdefault(target.path, length(target.path) or 0)
        self._window = window = self.options.open(target)
        if ahead is not None:
            window.ahead = min(ahead, window.size)
        self._part = SegmentContext(
            SegmentFiles("", target.name_offset or 0, target), target, False, None, 0, window.source.size
        )

    def close(self) -> None:
        if self._window is not None:
            self._window.source.close()
            self._window = None

    @property
    def is_seekable(self) -> bool:
        """Whether it can be read again, from any position: standard input and compressed files cannot."""
        return self.place.target.path != "-" and not isinstance(self.window.source, StreamSource)

    def regions(self) -> Iterator[Region]:
        """Yield its regions in order of position. The batch that follows damage may have any offset."""
        name = self.place.target.name_offset
        return regions(self.window, name_offset=name, limits=self.options.limits, unordered=True)

    def batch_at(self, position: int, size: int) -> Batch:
        """Return a batch that was found before at this position, with this size."""
        data = self.window.view(position, LARGEST_HEADER)
        other = as_magic_2(data)
        problem: Defect | None = None
        if other is not None and other.size == size:
            covered = self.window.peeks(position + CRC_START, size - CRC_START)
            if checksum(other.magic, covered) == other.crc:
                problem = magic_problem(position, data[MAGIC_POSITION])
                return make_batch(self.window, position, size, self.options.limits, other, problem)
        header = read_header(data)
        if header[1] != size - LOG_OVERHEAD:
            field, length = header._fields[1], size - LOG_OVERHEAD
            problem = Defect(errors.BATCH_LENGTH_INVALID, "RecordBatch", field, position + 8, "", length, header[1])
        return make_batch(self.window, position, size, self.options.limits, header, problem)

    def check(self, batch: Batch) -> CheckedBatch:
        """Check whether the batch is valid, except for the order of its offsets in the file. Reads all of it."""
        assert self._part is not None
        mended: tuple[str, ...] = ()
        if len(batch.problems) == 1 and (field := UNCOVERED.get(batch.problems[0].code)):
            batch, mended = _sized(batch), (field,)
        code, reason = _invalid_reason(batch)
        odd: list[str] = []
        reading = Reading(batch)
        for finding in record_rules.findings(self._part, self.known, reading) if not code else ():
            is_loaded = isinstance(batch, LegacyRecordBatch) and finding.code == OFFSET_DELTA_INVALID.code
            if finding.severity == ERROR and finding.code in UNSOUND and not is_loaded:
                code, reason = finding.code, finding.message
                break
            if finding.severity == ERROR and finding.code not in odd:
                odd.append(finding.code)
        if code:
            return CheckedBatch(
                batch, code=code, reason=reason, decodes=batch.crcValid and not (reading.problems or batch.problems)
            )
        if take_last_offset(batch):
            mended += ("offset",)
        return CheckedBatch(batch, first_offset(batch), batch.lastOffset, mended, tuple(odd))

    def successor(self, position: int) -> BatchHeader | None:
        """Return the header of a v2 batch at byte `position`; None if there is no plausible one."""
        head = bytes(self.window.peek(position, LARGEST_HEADER))
        following = format_at(head)
        if following is None or following.is_message:
            return None
        header: BatchHeader = following.header.read(head)
        return None if length_problem(header) else header

    def unread(self, region: Region) -> str:
        """Return which bytes of a region the device cannot read (the reader gets zeros instead); empty if none."""
        look = getattr(self.window.source, "unreadable_in", None)
        ranges = look(region.position, region.size) if look else []
        if not ranges:
            return ""
        return (
            f"the device cannot read {sum(size for _, size in ranges)} of its bytes, the first is byte {ranges[0][0]}"
        )


def take_last_offset(batch: Batch) -> bool:
    """Give a wrapper the offset of its last message; return True if it had another one. Consumers use the offsets of
    the messages; a broker whose log ends here uses the wrapper's."""
    last = last_record_offset(batch)
    if not isinstance(batch, LegacyRecordBatch) or last == batch.lastOffset:
        return False
    batch.header, batch.lastOffset = batch.header._replace(offset=last), last
    return True


def without_sign(batch: Batch, expected: int) -> Batch | None:
    """Return a batch without the sign of its base offset, if that is then the expected one and nothing else is damaged;
    else None."""
    if not isinstance(batch, DefaultRecordBatch) or batch.header.baseOffset & LONG_MAX != expected:
        return None
    return with_fields(batch, baseOffset=expected) if batch.header.baseOffset < 0 and damage_of(batch) is None else None


def is_one_bit(difference: int) -> bool:
    """Return True if two numbers of that exclusive or differ in one bit."""
    return difference > 0 and difference & (difference - 1) == 0


def with_fields(batch: Batch, **fields: int) -> Batch:
    """Return the batch with these header fields replaced. The checksum must not cover any of them."""
    assert isinstance(batch, DefaultRecordBatch)
    made = DefaultRecordBatch(batch.window, batch.position, batch.size, batch.limits, batch.header._replace(**fields))
    made._computed = batch._computed
    return made


def _sized(batch: Batch) -> Batch:
    """Return the batch with the length and the magic that its checksum confirms."""
    if not isinstance(batch, DefaultRecordBatch):
        return without_problems(batch)
    return with_fields(batch, batchLength=batch.size - LOG_OVERHEAD)


def _invalid_reason(batch: Batch) -> tuple[str, str]:
    """Return code and reason of an invalid header or checksum; empty if both are valid."""
    invalid = records_unknown(batch)
    if invalid is None:
        return "", ""
    diagnosis = diagnose(batch).text if invalid is CHECKSUM else ""
    return invalid.code, f"{invalid.reason}: {diagnosis}" if diagnosis else invalid.reason
