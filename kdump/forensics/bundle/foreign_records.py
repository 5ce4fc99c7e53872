"""Recognizes records in files that should have none: a segment that was renamed, or blocks that a file system wrote to
the wrong file. A bundle takes indexes and checkpoints as they are, so it must not take these."""

from __future__ import annotations

import re

from kdump.format.batch_header import BATCH_HEADER, CRC_START, LOG_OVERHEAD, MIN_BATCH_LENGTH
from kdump.format.checksum import castagnoli

LIKELY_HEADER = re.compile(rb"(?s)(?=.{16}\x02.{4}\x00[\x00-\x7f].{38})")
"""A header of magic 2 with attributes of which only the first seven bits are used."""


def has_batch(data: bytes) -> bool:
    """Return True if there is a whole v2 batch with a valid checksum anywhere in `data`."""
    for match in LIKELY_HEADER.finditer(data):
        start = match.start()
        header = BATCH_HEADER.read(data, start)
        end = start + LOG_OVERHEAD + header.batchLength
        if header.batchLength < MIN_BATCH_LENGTH or end > len(data) or not 0 <= header.recordCount <= end - start:
            continue
        if castagnoli(data[start + CRC_START : end]) == header.crc:
            return True
    return False
