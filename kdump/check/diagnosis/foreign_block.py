"""Detects bytes of another batch inside a damaged batch: a disk block that was written to the wrong position, or that
still has its previous contents."""

from __future__ import annotations

import re

from kdump.format.batch_formats import LARGEST_HEADER
from kdump.format.batch_header import MAGIC_POSITION, BatchHeader
from kdump.format.codec_table import CODECS
from kdump.format.legacy_message import MessageHeader
from kdump.log.embedded_batch import EmbeddedBatchCheck
from kdump.log.header_candidate import REACH, HeaderCandidate, candidate_at, near
from kdump.log.region import Batch
from kdump.log.resync import Resync

BLOCK = 4096
MAX_MISMATCHES = 64
"""Maximum number of headers with a mismatching checksum that are examined: crafted bytes may contain any number."""
MAX_SEARCHED_BYTES = 4 << 20
"""Size in bytes of the largest batch that is searched for valid messages of v0 and v1, which is slow if there are many
zeros."""

LENGTH = rb"[\x00-\x7f].{3}"
TIME = rb"(?:\x00\x00[\x00-\x03].{5}|\xff{8})"
"""Pattern of a timestamp: epoch ms up to the year 2109, or -1."""
MAGIC = re.compile(
    rb"\x02(?=.{4}"  # crc
    rb"\x00[\x00-\x7f]"  # attributes
    + LENGTH  # lastOffsetDelta
    + 2 * TIME
    + rb"(?:[\x00-\x7f].{7}|\xff{8})"  # producerId
    rb"(?:[\x00-\x7f].|\xff\xff)"  # producerEpoch
    rb"(?:[\x00-\x7f].{3}|\xff{4})"  # baseSequence
    + LENGTH  # recordCount
    + rb")",
    re.DOTALL,
)
"""The magic of a v2 header, followed by plausible fields. This is searched first, because zeros, as in the fields
before it, are frequent."""


def foreign_batch(batch: Batch) -> tuple[HeaderCandidate, bool] | None:
    """Return the first batch or message that starts inside `batch` and does not belong there, and whether its checksum
    matches; None if there is none.

    A record value may legally contain a whole batch. A batch inside a record therefore counts only if it starts on a
    4 KiB boundary and no record before it contains one. If the checksum does not match, only a v2 header counts, and
    only if all its fields are plausible. Offsets must be less than 2^31 from that of `batch`.
    """
    offset = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
    name_offset = max(0, offset - REACH // 2)
    resync = Resync(batch.window, batch.limits, name_offset)
    foreign = _by_header(batch, offset, resync)
    foreign = foreign or _message_on_block(batch, offset, resync)
    if foreign is not None or batch.size > MAX_SEARCHED_BYTES:
        return foreign
    start = batch.position + batch.crc_start
    next_valid = resync.next_valid(start, batch.end, batch.position, None)
    if next_valid is None or next_valid >= batch.end:
        return None
    claim = candidate_at(batch.window, next_valid, batch.limits)
    return (claim, True) if near(claim.first_offset, offset) else None


def _message_on_block(batch: Batch, offset: int, resync: Resync) -> tuple[HeaderCandidate, bool] | None:
    """Return a valid message of v0 or v1 that starts on a block boundary."""
    first = (batch.position + batch.crc_start + BLOCK - 1) // BLOCK * BLOCK
    for position in range(first, batch.end, BLOCK):
        claim = candidate_at(batch.window, position, batch.limits)
        header = claim.header
        if claim.error or not isinstance(header, MessageHeader) or claim.end > batch.end:
            continue
        near_by = near(claim.first_offset, offset)
        if near_by and resync.checksum_matches(position, claim.size, header.magic, header.crc):
            return claim, True
    return None


def _by_header(batch: Batch, offset: int, resync: Resync) -> tuple[HeaderCandidate, bool] | None:
    before = _before_magic(offset)
    position = batch.position + batch.crc_start
    size = max(batch.window.size, 2 * LARGEST_HEADER)
    held_to = 0  # end of the last record that contains a batch
    looks = 0
    nesting = EmbeddedBatchCheck(batch.window)
    nesting.begin(batch.position)
    while batch.end - position >= LARGEST_HEADER:
        data = bytes(batch.window.view(position, min(size, batch.end - position)))
        if len(data) < LARGEST_HEADER:
            return None
        resync.walked(position + len(data))
        for match in MAGIC.finditer(data, MAGIC_POSITION):
            inside = match.start() - MAGIC_POSITION
            if not before.match(data, inside):
                continue
            claim = candidate_at(batch.window, position + inside, batch.limits)
            header = claim.header
            if claim.position < held_to or claim.error or not isinstance(header, BatchHeader):
                continue
            if not near(claim.first_offset, offset) or header.codec not in CODECS:
                continue
            if header.recordCount > header.lastOffsetDelta + 1 or not header.recordCount:
                continue
            holds = claim.end <= batch.end and resync.checksum_matches(claim.position, claim.size, 2, header.crc)
            looks += not holds
            if looks > MAX_MISMATCHES:
                return None
            if claim.position % BLOCK == 0 and not held_to:
                return claim, holds
            end = nesting.end_of_container(claim, lambda at: at == batch.end)
            if end is None:
                return claim, holds
            held_to = end
        position += len(data) - LARGEST_HEADER + 1
    return None


def _before_magic(offset: int) -> re.Pattern[bytes]:
    """Return a pattern for the fields before magic: an offset near this one, a length and a leader epoch."""
    halves = {other >> 32 for other in (max(0, offset - REACH), max(0, offset), max(0, offset) + REACH)}
    upper = b"(?:" + b"|".join(re.escape((half & 0x7FFFFFFF).to_bytes(4, "big")) for half in sorted(halves)) + b")"
    return re.compile(upper + rb".{4}" + LENGTH + rb"(?:[\x00-\x7f].{3}|\xff{4})", re.DOTALL)
