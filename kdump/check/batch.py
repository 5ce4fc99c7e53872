"""What is wrong with one batch -> findings."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.check.catalogue import CATALOGUE
from kdump.check.finding import Finding
from kdump.format.control import decode_control
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Problem

OUR_REASONS = ("--max-decompressed-size", "is not installed")
OURS = "kdump could not look inside; nothing is known of what a consumer does"
"""Where a limit, or a library that is missing, is ours, nothing follows for a broker or a consumer."""


def findings(target: Target, batch: Batch, problems: list[Problem] | None = None) -> Iterator[Finding]:
    """The checksum, if it does not hold, and what decoding met so far (`problems`: only these)."""
    if problems is None:
        problems = batch.problems
        if not batch.crcValid:
            yield crc_mismatch(target, batch)
    for problem in problems:
        where = f"{problem.struct}.{problem.field} at {problem.position}"
        if problem.space:
            where += f" of the payload (decompressed from {problem.space})"
        size = problem.size or batch.end - max(batch.position, problem.position)
        inside = not problem.space and size > 0
        position, size = (problem.position, size) if inside else (batch.position, batch.size)
        yield _finding(target, batch, problem.code, position, size, problem, f"{where}: {problem.reason}")


def file_finding(target: Target, problem: Problem) -> Finding:
    """What is wrong with a file without batches."""
    entry = CATALOGUE[problem.code]
    message = f"{problem.struct}.{problem.field} at {problem.position}: {problem.reason}"
    return Finding(
        problem.code,
        entry.severity,
        target.topic,
        target.partition,
        target.path,
        problem.position,
        problem.size or 0,
        None,
        problem.expected,
        problem.actual,
        message,
        entry.consequence,
    )


def crc_mismatch(target: Target, batch: Batch) -> Finding:
    kind = "CRC-32C" if batch.magic > 1 else "CRC-32"
    message = f"stored {kind} 0x{batch.crc:08x}, the bytes give 0x{batch.computedCrc:08x}"
    problem = Problem("crc-mismatch", "RecordBatch", "crc", batch.position, "", batch.computedCrc, batch.crc)
    return _finding(target, batch, "crc-mismatch", batch.position, batch.size, problem, message)


def _finding(
    target: Target, batch: Batch, code: str, position: int, size: int, problem: Problem, message: str
) -> Finding:
    entry = CATALOGUE[code]
    offset = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
    return Finding(
        code,
        entry.severity,
        target.topic,
        target.partition,
        target.path,
        position,
        size,
        offset,
        problem.expected,
        problem.actual,
        message,
        OURS if any(words in problem.reason for words in OUR_REASONS) else entry.consequence.format(offset=offset),
    )


def record_findings(target: Target, record: Record) -> Iterator[Finding]:
    """What is wrong with one record alone: a control record that does not decode."""
    if record.crcValid is False and record.batch.is_compressed:
        problem = Problem("crc-mismatch", "Message", "crc", record.batch.position, "", None, record.crc)
        message = f"offset {record.offset}: the stored CRC-32 0x{record.crc:08x} of the inner message does not hold"
        yield _finding(target, record.batch, problem.code, record.batch.position, record.batch.size, problem, message)
    if not record.is_control:
        return
    control = decode_control(record.key, record.value)
    if control.problem is not None:
        problem = Problem.of(control.problem)
        message = f"offset {record.offset}: {problem.struct}.{problem.field}: {problem.reason}"
        batch = record.batch
        yield _finding(target, batch, problem.code, batch.position, batch.size, problem, message)
