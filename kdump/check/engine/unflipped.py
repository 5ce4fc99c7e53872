"""Corrects one flipped bit of a damaged batch, if its checksum then matches."""

from __future__ import annotations

from typing import Any

from kdump.check.diagnosis.diagnose import CERTAIN
from kdump.check.finding import ERROR
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import SegmentContext
from kdump.check.rules import records as record_rules
from kdump.check.rules.bytes import first_offset
from kdump.format.batch_header import LOG_OVERHEAD
from kdump.format.crc_flip import single_bit_flips
from kdump.format.errors import DecodeError
from kdump.io.run import Limits
from kdump.io.window import BufferWindow
from kdump.log import legacy_records
from kdump.log.partition_directory import SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import Batch, LegacyRecordBatch, length_problem, make_batch, read_header


def unflipped(batch: Batch) -> Batch | None:
    """Return the batch with one bit corrected, if that makes its checksum match and the batch valid; otherwise None."""
    if batch.lacks:
        return batch.known.repair
    difference = batch.crc ^ batch.computedCrc
    covered = batch.size - batch.crc_start
    if not difference or covered > CERTAIN or batch.problems:
        return None
    data = bytearray(b"".join(batch.chunks(0, batch.size)))
    if len(data) != batch.size:
        return None
    if difference.bit_count() == 1:
        data[batch.crc_start - 4 : batch.crc_start] = batch.computedCrc.to_bytes(4, "big")
    else:
        flip = next(single_bit_flips(batch.magic, difference, covered), None)
        if flip is None:
            return None
        data[batch.crc_start + flip.byte] ^= 1 << flip.bit
    made = batch_of(bytes(data), batch.position, batch.limits)
    return made if made is not None and made.crcValid and makes_sense(made) else None


def makes_sense(batch: Batch) -> bool:
    """Return True if the offsets of a batch are possible and its records decode without an error."""
    nowhere = Target("", None, None, None)
    part = SegmentContext(SegmentFiles("", 0, nowhere), nowhere, False, None, 0, None)
    if isinstance(batch, LegacyRecordBatch):
        legacy_records.read_wrapper(batch)
    if batch.problems or batch.baseOffset is None or batch.lastOffset < first_offset(batch):
        return False
    return not any(finding.severity == ERROR for finding in record_rules.findings(part, PartitionContext(), batch))


def batch_of(data: bytes, position: int, limits: Limits) -> Batch | None:
    """Return a batch of these bytes, as if read at byte `position`; None if its header is invalid."""
    try:
        header = read_header(data)
    except DecodeError:
        return None
    if length_problem(header) or LOG_OVERHEAD + header[1] != len(data) or header[0] < 0:
        return None
    held: Any = BufferWindow(data, position)
    return make_batch(held, position, len(data), limits, header)
