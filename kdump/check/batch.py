"""Findings for one batch: its checksum, and the problems that decoding noted."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.check.catalogue.code import TRUNCATES
from kdump.check.finding import Finding, found
from kdump.format.control import decode_control
from kdump.log.batch_validity import undecoded_count_problem
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Problem

OUR_REASONS = ("--max-decompressed-size", "is not installed", "that kdump keeps")
OURS = "kdump could not decode it; whether a consumer can read it is unknown"
"""Impact if the cause is kdump's own limit or a missing library: brokers and consumers may read the batch."""


WRAPPER = f"consumers check the checksums of the messages inside it, not this one; {TRUNCATES}"
"""Source: CompletedFetch.maybeEnsureValid, LogSegment.recover."""


def findings_so_far(target: Target, batch: Batch) -> Iterator[Finding]:
    """Yield findings for a checksum that does not match and for the problems that decoding has noted so far."""
    if not batch.crcValid:
        yield crc_mismatch(target, batch)
    for problem in batch.problems:
        yield batch_finding(target, batch, problem)


def findings(target: Target, batch: Batch) -> Iterator[Finding]:
    """Yield findings for the checksum, for the problems noted in the batch, and for a record count that cannot be true.
    Call this after its records have been read, if they are wanted."""
    yield from findings_so_far(target, batch)
    yield from count_findings(target, batch)


def count_findings(target: Target, batch: Batch) -> Iterator[Finding]:
    """Yield a finding for a record count that cannot be true, unless decoding has noted a problem with the count."""
    problem = undecoded_count_problem(batch)
    if problem is not None:
        yield batch_finding(target, batch, problem)


def batch_finding(target: Target, batch: Batch, problem: Problem) -> Finding:
    """Return the finding for a problem that decoding noted. Its position and size are those of the problem if its bytes
    are in the file, else those of the batch."""
    where = f"{problem.struct}.{problem.field} at byte {problem.position}"
    if problem.space:
        where += f" of the payload (decompressed from {problem.space})"
    size = problem.size or batch.end - max(batch.position, problem.position)
    inside = not problem.space and size > 0
    position, size = (problem.position, size) if inside else (batch.position, batch.size)
    return found(
        problem.code,
        target,
        f"{where}: {problem.reason}",
        position=position,
        size=size,
        offset=first_offset(batch),
        expected=problem.expected,
        actual=problem.actual,
        consequence=OURS if any(words in problem.reason for words in OUR_REASONS) else None,
    )


def first_offset(batch: Batch) -> int:
    """Return the first offset of the batch, or its last if the first is unknown."""
    return batch.lastOffset if batch.baseOffset is None else batch.baseOffset


def file_finding(target: Target, problem: Problem) -> Finding:
    """Return the finding for a problem in a file without batches."""
    return found(
        problem.code,
        target,
        f"{problem.struct}.{problem.field} at byte {problem.position}: {problem.reason}",
        position=problem.position,
        size=problem.size or 0,
        expected=problem.expected,
        actual=problem.actual,
    )


def crc_mismatch(target: Target, batch: Batch, looks_like: str = "", consequence: str | None = None) -> Finding:
    """Return the finding for a checksum that does not match. `looks_like`: clause that describes the probable
    damage."""
    kind = "CRC-32C" if batch.magic > 1 else "CRC-32"
    message = f"stored {kind} 0x{batch.crc:08x}, computed 0x{batch.computedCrc:08x}"
    if batch.magic < 2 and batch.is_compressed:
        consequence = WRAPPER
    return found(
        "crc-mismatch",
        target,
        f"{message}: {looks_like}" if looks_like else message,
        position=batch.position,
        size=batch.size,
        offset=first_offset(batch),
        expected=batch.computedCrc,
        actual=batch.crc,
        consequence=consequence,
    )


def record_findings(target: Target, record: Record) -> Iterator[Finding]:
    """Yield findings for a single record: the checksum of an inner message, a control record that does not decode."""
    batch = record.batch
    if record.crcValid is False and batch.is_compressed:
        message = f"offset {record.offset}: the stored CRC-32 0x{record.crc:08x} of the inner message does not match"
        yield _of_record(target, batch, "crc-mismatch", message, record.crc)
    if not record.is_control:
        return
    control = decode_control(record.key, record.value)
    is_marker = control.type in ("COMMIT", "ABORT")  # their value has six bytes
    if control.problem is not None and (is_marker or not record.is_cut):
        problem = control.problem
        message = f"offset {record.offset}: {problem.struct}.{problem.field}: {problem.reason}"
        yield _of_record(target, batch, problem.code, message)


def _of_record(target: Target, batch: Batch, code: str, message: str, actual: int | None = None) -> Finding:
    return found(
        code, target, message, position=batch.position, size=batch.size, offset=first_offset(batch), actual=actual
    )
