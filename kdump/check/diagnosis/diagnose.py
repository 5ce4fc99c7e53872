"""Diagnoses the damage if a checksum does not match: one flipped bit, a hole, bytes of another batch: a disk
block that was written to the wrong position, or that still has its previous contents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from kdump.format import batch_header as v2
from kdump.format import legacy_message as legacy
from kdump.format.batch_formats import LARGEST_HEADER, V2
from kdump.format.batch_header import MAGIC_POSITION, BatchHeader
from kdump.format.checksum import checksum
from kdump.format.codec_table import CODECS
from kdump.format.crc_flip import single_bit_flips
from kdump.format.errors import DecodeError
from kdump.format.layout import BYTES, VARLONG, Field
from kdump.format.legacy_message import MessageHeader
from kdump.format.record import RECORD
from kdump.format.varint import read_varint, read_varlong
from kdump.io.window import Window
from kdump.log.embedded_batch import EmbeddedBatchCheck
from kdump.log.header_candidate import REACH, HeaderCandidate, candidate_at, near
from kdump.log.region import Batch, LegacyRecordBatch
from kdump.log.resync import Resync

BLOCK_SIZE = 4096
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
    only if all its fields are plausible. Offsets must be less than 2^31 from that of `batch`."""
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
    first = (batch.position + batch.crc_start + BLOCK_SIZE - 1) // BLOCK_SIZE * BLOCK_SIZE
    for position in range(first, batch.end, BLOCK_SIZE):
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
            if claim.position % BLOCK_SIZE == 0 and not held_to:
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


FLIPPED_BIT, ZEROS, BLOCK, FOREIGN, CRC_FIELD = "flipped-bit", "zeros", "block", "foreign", "crc-field"

CERTAIN = 2 << 20
"""Covered bytes up to which one flipped bit is a certain diagnosis: at most 1 in 256 cases of other damage matches
it."""
POSSIBLE = 128 << 20
"""Covered bytes up to which one flipped bit is a possible diagnosis: at this size, 1 in 4 cases of other damage matches
it, and from 256 MiB on more than one bit does."""
MIN_ZEROS = 32
"""Shortest run of zero bytes that is reported; runs in undamaged data are rarely longer than half of this."""
MIN_RATIO = 4
"""How many times longer than every other run of zeros the reported one must be: if there are several long ones, they
are part of the records."""
BLOCKS = (4096, 512)
"""Block sizes of file systems and disks, in bytes."""
MAX_ZEROS_BY_CHANCE = 8
"""Maximum number of zero bytes on either side of a hole that are considered part of the data."""

ALL_ZEROS = re.compile(rb"\x00*")


class Diagnosis(NamedTuple):
    """What the damage looks like. All fields are empty if it resembles no known kind."""

    kind: str
    """flipped-bit, zeros, block (a hole the size of blocks), foreign (bytes of another batch), crc-field or empty."""
    text: str
    """Description for the user, one clause."""
    position: int | None = None
    """Position of the first affected byte in the file."""
    size: int = 0
    """Number of affected bytes."""


UNKNOWN = Diagnosis("", "")


def diagnose(batch: Batch) -> Diagnosis:
    """Diagnose the damage to a batch or message whose checksum does not match. Reads it several times, in chunks; does
    not add to its problems."""
    if batch.known.diagnosis is not None:
        return Diagnosis(*batch.known.diagnosis)
    difference = batch.crc ^ batch.computedCrc
    if not difference:
        return UNKNOWN
    covered = batch.size - batch.crc_start
    sure = _crc_field(batch, difference)
    flip = None if sure else _flip(batch, difference, covered)
    if flip and covered <= CERTAIN:
        sure = flip
    sure = sure or _magic(batch)
    if sure:
        return sure
    hole, zeros = _zeros(batch)
    return hole or _foreign(batch) or flip or zeros or UNKNOWN


def _crc_field(batch: Batch, difference: int) -> Diagnosis | None:
    if difference.bit_count() != 1:
        return None
    bytes_before, bit = divmod(difference.bit_length() - 1, 8)
    # In every format, the checksum precedes the bytes that it covers.
    position = batch.position + batch.crc_start - 1 - bytes_before
    return _one_bit(
        batch, CRC_FIELD, position, bit, "in the stored checksum itself; the bytes that it covers are intact"
    )


def _flip(batch: Batch, difference: int, covered: int) -> Diagnosis | None:
    flip = next(single_bit_flips(batch.magic, difference, covered), None)
    if flip is None or covered > POSSIBLE:
        return None
    byte, bit = flip
    position = batch.position + batch.crc_start + byte
    note = f"in {field_at(batch, position)}"
    if covered > CERTAIN:
        odds = round((1 << 32) / (8 * covered))
        note += f"; not certain: 1 in {odds} batches of this size with other damage also has such a bit"
    return _one_bit(batch, FLIPPED_BIT, position, bit, note)


def _magic(batch: Batch) -> Diagnosis | None:
    """Test for a flipped bit in magic. One bit distinguishes v0 from v2, whose checksums differ in position and in the
    bytes they cover."""
    start = batch.position
    if not batch.format.has_timestamp and batch.size >= v2.BATCH_HEADER.size:
        stored, magic = v2.BATCH_HEADER.positions["crc"], V2
        chunks: Iterator[bytes | memoryview] = batch.chunks(v2.CRC_START, batch.size)
    elif not batch.format.is_message:
        stored, magic = legacy.MESSAGE_V0.positions["crc"], 0
        chunks = chain([b"\0"], batch.chunks(legacy.CRC_START + 1, batch.size))
    else:
        return None
    crc = int.from_bytes(batch.window.peek(start + stored, 4), "big")
    if checksum(magic, chunks) != crc:
        return None
    note = f"in magic, which turns a v{magic} batch into a v{batch.magic} batch"
    return _one_bit(batch, FLIPPED_BIT, start + v2.MAGIC_POSITION, 1, note)


def _one_bit(batch: Batch, kind: str, position: int, bit: int, note: str) -> Diagnosis | None:
    stored = bytes(batch.window.peek(position, 1))
    if not stored:
        return None  # the file was truncated since
    byte = stored[0]
    description = f"one flipped bit: bit {bit} of byte {position} is {byte >> bit & 1}, "
    description += f"0x{byte:02x} should be 0x{byte ^ 1 << bit:02x} ({note})"
    return Diagnosis(kind, description, position, 1)


def _zeros(batch: Batch) -> tuple[Diagnosis | None, Diagnosis | None]:
    """Return the largest hole of whole blocks, and the longest run of zeros if it is much longer than all others."""
    longest = second = 0
    longest_at = 0
    hole = (0, 0, 0)
    body = batch.position + batch.format.header.size
    for start, end in _runs(batch):
        if end - start >= BLOCKS[-1] or end == batch.end:
            hole = max(hole, _whole_blocks(batch, start, end))
        # A header may contain many zeros in its fields, which are not damage.
        length = end - max(start, body)
        if length > longest:
            longest, longest_at, second = length, max(start, body), longest
        else:
            second = max(second, length)
    size, unit, position = hole
    block = zeros = None
    if size:
        blocks = "4 KiB" if unit == BLOCKS[0] else f"{unit}-byte"
        description = f"{size} zero bytes from byte {position} on, aligned to {blocks} blocks: "
        description += "looks like a write that never reached the disk"
        block = Diagnosis(BLOCK, description, position, size)
    if longest >= MIN_ZEROS and longest >= MIN_RATIO * second:
        edges = [
            f"{verb} on {edge}"
            for verb, edge in (("begin", block_edge(longest_at)), ("end", block_edge(longest_at + longest)))
            if edge
        ]
        description = f"{longest} zero bytes from byte {longest_at} to byte {longest_at + longest - 1}"
        description += f", which {' and '.join(edges)}" if edges else ""
        description += ": looks like lost data, unless a value contains zeros there"
        zeros = Diagnosis(ZEROS, description, longest_at, longest)
    return block, zeros


def _whole_blocks(batch: Batch, start: int, end: int) -> tuple[int, int, int]:
    """Return the blocks that a run of zeros fills: bytes of the batch in them, block size, position. Returns (0, 0, 0)
    if the run is not a hole of whole blocks."""
    for unit in BLOCKS:
        first = -(-start // unit) * unit
        last = end // unit * unit
        if end == batch.end and end % unit:
            # The hole may continue after the batch, to the end of the block or of the file.
            beyond = bytes(batch.window.peek(end, unit - end % unit))
            if not any(beyond) and first < end:
                last = end
        if last > first and first - start <= MAX_ZEROS_BY_CHANCE and end - last <= MAX_ZEROS_BY_CHANCE:
            return last - first, unit, first
    return 0, 0, 0


def _runs(batch: Batch) -> Iterator[tuple[int, int]]:
    """Yield start and end position in the file of every run of at least MIN_ZEROS zeros in the covered bytes."""
    needle = bytes(MIN_ZEROS)
    position = batch.position + batch.crc_start
    run: int | None = None  # start of the zeros that reach to the end of the last chunk
    for piece in batch.chunks(batch.crc_start, batch.size):
        data = bytes(piece)
        at = 0
        if run is not None:
            at = _after_zeros(data, 0)
            if at == len(data):
                position += at
                continue
            if position + at - run >= MIN_ZEROS:
                yield run, position + at
            run = None
        while (at := data.find(needle, at)) >= 0:
            start, at = at, _after_zeros(data, at)
            if at == len(data):
                break
            yield position + start, position + at
        tail = len(data) - len(data.rstrip(b"\0"))
        position += len(data)
        if tail:
            run = position - tail
    if run is not None and position - run >= MIN_ZEROS:
        yield run, position


def _after_zeros(data: bytes, position: int) -> int:
    match = ALL_ZEROS.match(data, position)
    assert match is not None
    return match.end()


def _foreign(batch: Batch) -> Diagnosis | None:
    foreign = foreign_batch(batch)
    if foreign is None:
        return None
    claim, holds = foreign
    edge = block_edge(claim.position)
    description = f"bytes of another batch, with base offset {claim.first_offset}, start at byte {claim.position}"
    description += f", on {edge}" if edge else ""
    description += ", and its checksum matches" if holds else ""
    return Diagnosis(FOREIGN, description, claim.position, min(claim.end, batch.end) - claim.position)


MAX_RECORDS_SKIPPED = 1 << 16
"""Maximum number of records skipped to find one; for a byte after them, the record is not determined."""
MAX_VARLONG = 10
"""Maximum size of a varlong in bytes."""


def block_edge(position: int) -> str:
    """Return which block boundary of a disk or file system `position` in a file is on; empty if none."""
    if position % 4096 == 0:
        return "a 4 KiB boundary"
    return "a 512-byte boundary" if position % 512 == 0 else ""


def field_at(batch: Batch, position: int) -> str:
    """Return what contains the byte at position `at` of the file, by the names in the layouts: a field of the header;
    key or value of a message; a field of an uncompressed record, with the record's index and, if its offsetDelta is
    before the byte, its offset; or just "the records"."""
    inside, layout = position - batch.position, batch.format.header
    if inside < layout.size:
        return _header_field(layout.positions, inside)
    if isinstance(batch, LegacyRecordBatch):
        size_at = layout.size + max(0, batch.header.keySize)
        return "key" if inside < size_at else "valueSize" if inside < size_at + legacy.VALUE_SIZE.size else "value"
    if batch.is_compressed:
        return f"the records, compressed with {batch.compression}"
    try:
        return _record_field(batch, position)
    except DecodeError:
        return "the records"


def _header_field(positions: dict[str, int], inside: int) -> str:
    return max((position, name) for name, position in positions.items() if position <= inside)[1]


def _record_field(batch: Batch, at: int) -> str:
    """Return the field and record that contain the byte at `at`. The fields before that byte are assumed to be
    undamaged, so that they lead to it. Raises DecodeError."""
    window = batch.window
    start = batch.position + batch.format.header.size
    index = 0
    while (end := _record_end(window, start, at)) <= at:
        start = end
        index += 1
        if index > MAX_RECORDS_SKIPPED:
            return "the records"
    offset = None
    values: dict[str, int] = {}
    position = start
    for field in RECORD.fields[: RECORD.names.index("headers")]:
        if field.wire is BYTES:
            position += max(0, values[field.sized_by])
        elif field.wire.size:
            position += field.wire.size
        else:
            values[field.name], position = _varint(window, position, at, field)
        if at < position:
            name = field.name
            break
        if field.name == "offsetDelta":
            offset = (batch.baseOffset or 0) + values[field.name]
    else:
        name = "headers"
    return f"{name} of record {index}" + ("" if offset is None else f", offset {offset}")


def _record_end(window: Window, start: int, position: int) -> int:
    length, after = _varint(window, start, position, RECORD.fields[0])
    return after + max(0, length)


def _varint(window: Window, position: int, at: int, field: Field) -> tuple[int, int]:
    """Return the varint at `position`, and its end. If it is invalid and contains the damaged byte at `at`, returns
    0 and the position after that byte. Raises DecodeError if it is invalid without containing it."""
    data = window.view(position, MAX_VARLONG)
    read = read_varlong if field.wire is VARLONG else read_varint
    try:
        value, size = read(data, 0, len(data), RECORD.name, field.name)
    except DecodeError:
        if position <= at < position + len(data):
            return 0, at + 1
        raise
    return value, position + size
