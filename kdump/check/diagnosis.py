"""What the damage behind a checksum that does not hold looks like: one flipped bit, a hole, another batch's bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from kdump.check.foreign import foreign_batch
from kdump.check.place import block_edge, field_at
from kdump.format import batch as v2
from kdump.format import message as legacy
from kdump.format.checksum import checksum
from kdump.format.crc_flip import flips
from kdump.log.region import HEADER_SIZES, Batch

FLIPPED_BIT, ZEROS, BLOCK, FOREIGN, CRC_FIELD = "flipped-bit", "zeros", "block", "foreign", "crc-field"

CERTAIN = 2 << 20
"""Covered bytes up to which one flipped bit is beyond doubt: of all other damage, 1 in 256 at most looks like it."""
WORTH_A_GUESS = 128 << 20
"""Covered bytes up to which one is worth a guess: 1 in 4 looks like it there, and from 256 MiB on several bits do."""
FEWEST_ZEROS = 32
"""Bytes of zeros that are worth a word; real records and headers without damage have hardly more than half of it."""
UNLIKE = 4
"""How many times longer than all other runs one must be: where there are many, records are just like that."""
BLOCKS = (4096, 512)
"""Bytes that file systems and disks write at once."""
BY_CHANCE = 8
"""Bytes of zeros that the data itself may have on either side of a hole."""

ALL_ZEROS = re.compile(rb"\x00*")


class Diagnosis(NamedTuple):
    """What damage looks like. All empty if it looks like nothing known."""

    kind: str
    """flipped-bit, zeros, block (a hole the size of blocks), foreign (bytes of another batch), crc-field or empty."""
    text: str
    """One clause for an operator."""
    position: int | None = None
    """The first byte of the file concerned."""
    size: int = 0
    """Bytes concerned."""


UNKNOWN = Diagnosis("", "")


def diagnose(batch: Batch) -> Diagnosis:
    """What the damage to a batch or message looks like whose checksum does not hold. Reads it a few times, in pieces;
    notes nothing in it."""
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
    behind, bit = divmod(difference.bit_length() - 1, 8)
    at = batch.position + batch.crc_start - behind - 1  # in every format, what it covers begins behind it
    return _one_bit(batch, CRC_FIELD, at, bit, "in the stored checksum itself; what it covers is intact")


def _flip(batch: Batch, difference: int, covered: int) -> Diagnosis | None:
    found = next(flips(batch.magic, difference, covered), None)
    if found is None or covered > WORTH_A_GUESS:
        return None
    byte, bit = found
    at = batch.position + batch.crc_start + byte
    note = f"in {field_at(batch, at)}"
    if covered > CERTAIN:
        odds = round((1 << 32) / (8 * covered))
        note += f"; a guess: of batches this large with other damage, 1 in {odds} has such a bit too"
    return _one_bit(batch, FLIPPED_BIT, at, bit, note)


def _magic(batch: Batch) -> Diagnosis | None:
    """One bit tells v0 from v2, whose checksums differ in where they stand and in what they cover."""
    start = batch.position
    if batch.magic == 0 and batch.size >= v2.BATCH_HEADER.size:
        stored, magic = v2.BATCH_HEADER.positions["crc"], 2
        chunks: Iterator[bytes | memoryview] = batch.chunks(v2.CRC_START, batch.size)
    elif batch.magic == 2:
        stored, magic = legacy.MESSAGE_V0.positions["crc"], 0
        chunks = chain([b"\0"], batch.chunks(legacy.CRC_START + 1, batch.size))
    else:
        return None
    crc = int.from_bytes(batch.window.peek(start + stored, 4), "big")
    if checksum(magic, chunks) != crc:
        return None
    note = f"in magic, which makes a v{magic} batch one of v{batch.magic}"
    return _one_bit(batch, FLIPPED_BIT, start + v2.MAGIC_POSITION, 1, note)


def _one_bit(batch: Batch, kind: str, at: int, bit: int, note: str) -> Diagnosis | None:
    found = bytes(batch.window.peek(at, 1))
    if not found:
        return None  # the file was truncated since
    byte = found[0]
    text = f"one flipped bit: bit {bit} of the byte at {at} is {byte >> bit & 1}, "
    text += f"0x{byte:02x} should be 0x{byte ^ 1 << bit:02x} ({note})"
    return Diagnosis(kind, text, at, 1)


def _zeros(batch: Batch) -> tuple[Diagnosis | None, Diagnosis | None]:
    """The largest hole of whole blocks, and the longest run of zeros, if it is unlike the rest."""
    longest = second = 0
    longest_at = 0
    hole = (0, 0, 0)
    body = batch.position + HEADER_SIZES[batch.magic]
    for start, end in _runs(batch):
        if end - start >= BLOCKS[-1] or end == batch.end:
            hole = max(hole, _whole_blocks(batch, start, end))
        # A header may hold many zeros; those of its fields are not damage.
        length = end - max(start, body)
        if length > longest:
            longest, longest_at, second = length, max(start, body), longest
        else:
            second = max(second, length)
    size, unit, at = hole
    block = zeros = None
    if size:
        blocks = "4 KiB" if unit == BLOCKS[0] else f"{unit}-byte"
        text = f"a hole of {size} zero bytes from {at}, aligned to {blocks} blocks: "
        text += "looks like a write that never reached the disk"
        block = Diagnosis(BLOCK, text, at, size)
    if longest >= FEWEST_ZEROS and longest >= UNLIKE * second:
        edges = [
            f"{verb} on {edge}"
            for verb, edge in (("begin", block_edge(longest_at)), ("end", block_edge(longest_at + longest)))
            if edge
        ]
        text = f"{longest} zero bytes from {longest_at} to {longest_at + longest - 1}"
        text += f", which {' and '.join(edges)}" if edges else ""
        text += ": looks like data that was lost, unless a value is zeros there"
        zeros = Diagnosis(ZEROS, text, longest_at, longest)
    return block, zeros


def _whole_blocks(batch: Batch, start: int, end: int) -> tuple[int, int, int]:
    """The blocks that a run of zeros fills: bytes of the batch in them, size of a block, position; zeros if it is no
    hole of whole blocks."""
    for unit in BLOCKS:
        first = -(-start // unit) * unit
        last = end // unit * unit
        if end == batch.end and end % unit:
            # The hole may go on behind the batch: up to the end of the block, or of the file.
            beyond = bytes(batch.window.peek(end, unit - end % unit))
            if not any(beyond) and first < end:
                last = end
        if last > first and first - start <= BY_CHANCE and end - last <= BY_CHANCE:
            return last - first, unit, first
    return 0, 0, 0


def _runs(batch: Batch) -> Iterator[tuple[int, int]]:
    """Start and end, in the file, of every run of zeros in what the checksum covers that is long enough."""
    needle = bytes(FEWEST_ZEROS)
    position = batch.position + batch.crc_start
    run: int | None = None  # where zeros began that reach to the end of the last piece
    for piece in batch.chunks(batch.crc_start, batch.size):
        data = bytes(piece)
        at = 0
        if run is not None:
            at = _behind_zeros(data, 0)
            if at == len(data):
                position += at
                continue
            if position + at - run >= FEWEST_ZEROS:
                yield run, position + at
            run = None
        while (at := data.find(needle, at)) >= 0:
            start, at = at, _behind_zeros(data, at)
            if at == len(data):
                break
            yield position + start, position + at
        tail = len(data) - len(data.rstrip(b"\0"))
        position += len(data)
        if tail:
            run = position - tail
    if run is not None and position - run >= FEWEST_ZEROS:
        yield run, position


def _behind_zeros(data: bytes, at: int) -> int:
    match = ALL_ZEROS.match(data, at)
    assert match is not None
    return match.end()


def _foreign(batch: Batch) -> Diagnosis | None:
    found = foreign_batch(batch)
    if found is None:
        return None
    claim, holds = found
    edge = block_edge(claim.position)
    text = f"bytes of another batch, base offset {claim.first_offset}, begin at {claim.position}"
    text += f", on {edge}" if edge else ""
    text += ", and its checksum holds" if holds else ""
    return Diagnosis(FOREIGN, text, claim.position, min(claim.end, batch.end) - claim.position)
