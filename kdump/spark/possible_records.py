"""Number of records of a batch, in SQL."""

from __future__ import annotations

from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, MAX_EXPANSION, MIN_RECORD_SIZE

POSSIBLE_RECORDS = f"""
  if(recordCount > 0 and (magic < 2 or bigint(recordCount) * {MIN_RECORD_SIZE} <= (size - {BATCH_HEADER.size}) *
     coalesce(get(array{MAX_EXPANSION}, attributes & {COMPRESSION.mask}), {max(MAX_EXPANSION)})), recordCount, 0)
"""
"""Of a row of the table batches, what Batch.possible_records is: 0 if it is unknown, negative, or more than it has room
for (kdump.format.batch_header.max_records)."""
