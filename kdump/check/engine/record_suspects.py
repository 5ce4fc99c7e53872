"""Finds the batches of a batch run whose records may have a problem, without looking at the others one by one."""

from __future__ import annotations

from kdump.core.column_numbers import ATTRIBUTES
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_checks import count_valid_batches, records_agree
from kdump.format.batch_header import COMPRESSION
from kdump.io.run import Limits
from kdump.log.batch_payload import payload_of


def first_record_suspect(heads: HeaderColumns, row: int, stop: int, limits: Limits, *, keyed: bool) -> int:
    """Return the first batch of row..stop (`stop` excluded) whose records may have a problem; `stop` if there is
    none. `keyed`: a null key is one."""
    while True:
        row = count_valid_batches(heads, row, stop, keyed)
        if row == stop or not heads.of(row, ATTRIBUTES) & COMPRESSION.mask:
            return row
        payload = payload_of(heads, row, limits.max_decompressed_size)
        if payload is None or not records_agree(heads, row, payload, keyed):
            return row
        row += 1
