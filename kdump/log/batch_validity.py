"""Whether a batch is valid, and the reason if it is not. Every command decides it here, except where the answer is what
Kafka's own recovery does with the bytes (kdump.questions.restart_plan, kdump.questions.reindex)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kdump.format.batch_header import max_records
from kdump.format.count_text import plain_count
from kdump.format.errors import CRC_MISMATCH, OFFSET_INVALID, RECORD_COUNT_MISMATCH
from kdump.log.region import Batch, DefaultRecordBatch, Defect, LegacyRecordBatch, last_record_offset


class Invalid(NamedTuple):
    """Why a batch is not valid. `code`: the code of the finding that verify has for it (docs/findings.md); `reason`: in
    words, about the batch."""

    code: str
    reason: str


CHECKSUM = Invalid(CRC_MISMATCH, "its checksum does not match")
OFFSETS = Invalid(OFFSET_INVALID, "its offsets are impossible")


def is_valid(batch: Batch) -> bool:
    """Return True if a batch is valid (see `invalidity`)."""
    return has_valid_header(batch) and bool(batch.crcValid)


def invalidity(batch: Batch) -> Invalid | None:
    """Return why a batch is not valid; None if it is: its checksum matches (RecordBatch.isValid), and nothing
    contradicts what no checksum covers, its length, magic and base offset. Reads all of it.

    A valid batch is part of the log: its offsets count for where that begins and ends. Whether they fit those of the
    batches around it, and whether its records decode, or a wrapper's messages, is not decided here."""
    return damage_of(batch) or (None if has_possible_offsets(batch) else OFFSETS)


def has_valid_header(batch: Batch) -> bool:
    """Return True if a batch is valid as far as its header shows. Reads nothing."""
    return not batch.header_problems and has_possible_offsets(batch)


def damage_of(batch: Batch) -> Invalid | None:
    """Return what contradicts the bytes of a batch, except for its offsets; None if nothing does."""
    for problem in batch.header_problems:
        return Invalid(problem.code, problem.reason)
    return None if batch.crcValid else CHECKSUM


def records_unknown(batch: Batch) -> Invalid | None:
    """Return why the records of a batch cannot be told apart, or their offsets not known; None if they can: the bytes
    are not damaged, the record count is possible, and the messages inside it (magic 0 and 1) can be parsed."""
    damage = damage_of(batch)
    if damage is None and isinstance(batch, LegacyRecordBatch):
        from kdump.log.legacy_records import read_wrapper

        read_wrapper(batch)
        damage = next((Invalid(problem.code, problem.reason) for problem in batch.problems), None)
    return damage or impossible_count(batch) or (None if _have_possible_offsets(batch) else OFFSETS)


def impossible_count(batch: Batch) -> Invalid | None:
    """Return why the record count of a header cannot be true, whatever the records are; None if it can be. The records
    of such a batch are counted nowhere (Batch.possible_records)."""
    if not isinstance(batch, DefaultRecordBatch) or batch.recordCount == batch.possible_records:
        return None
    count = batch.header.recordCount
    reason = f"recordCount {count} is negative"
    if count > 0:
        max_count = max_records(batch.size - batch.headerSize, batch.header.codec)
        reason = f"recordCount is {count}, but the batch has room for at most {plain_count(max_count, 'record')}"
    return Invalid(RECORD_COUNT_MISMATCH, reason)


def count_problem(batch: DefaultRecordBatch, reason: str, expected: int | None = None) -> Defect:
    """Return the problem of a record count that is not the number of records; `expected`: that number, if known."""
    position, actual = batch.position + batch.layout.positions["recordCount"], batch.header.recordCount
    return Defect(RECORD_COUNT_MISMATCH, "RecordBatch", "recordCount", position, reason, expected, actual, size=4)


def undecoded_count_problem(batch: Batch, problems: Sequence[Defect] = ()) -> Defect | None:
    """Return the problem of a record count that cannot be true; None if it can be, or if `problems`, which decoding has
    noted, have one with the count."""
    impossible = impossible_count(batch)
    if impossible is None or any(problem.code == RECORD_COUNT_MISMATCH for problem in problems):
        return None
    assert isinstance(batch, DefaultRecordBatch)
    return count_problem(batch, impossible.reason)


def cleaner_trace(batch: Batch) -> str:
    """Return what shows that the log cleaner has rewritten a valid batch: fewer records than offsets, or a delete
    horizon; empty if nothing does. The offsets of a wrapper are known only once it has been read."""
    base, last, count = batch.baseOffset, last_record_offset(batch), batch.recordCount
    if base is None or count is None or not 0 <= base <= last:
        return ""
    if count < last - base + 1:
        return f"its batch {base}..{last} has {count} of {plain_count(last - base + 1, 'record')}"
    return f"its batch {base}..{last} has a delete horizon" if batch.hasDeleteHorizonMs else ""


def has_possible_offsets(batch: Batch) -> bool:
    """Return True if the offsets of a batch ascend from at least 0, as far as they are known: those in a wrapper are
    once it has been read."""
    return batch.lastOffset >= 0 and (batch.baseOffset is None or _have_possible_offsets(batch))


def _have_possible_offsets(batch: Batch) -> bool:
    """Return True if the offsets of the records ascend from at least 0. Of a wrapper, its own does not count."""
    base = batch.baseOffset
    return base is not None and 0 <= base <= last_record_offset(batch)
