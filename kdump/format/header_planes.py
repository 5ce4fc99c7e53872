"""Headers of v2 batches as columns that compress to some 14 bytes a header, most of them for the checksum, the length
and the times. Each field is stored as its difference from what the header before it predicts, which is usually 0. Used
in bundles (docs/bundle.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from struct import Struct
from struct import error as StructError

from kdump.format.batch_header import BATCH_HEADER, MAX_SEQUENCE, sequence
from kdump.format.errors import DecodeError
from kdump.format.number_planes import differences, planes, read_planes, signed, wrapped

COUNT = Struct("<I")
MAGIC = 2
MAX_HEADERS = 4096
"""Number of headers that are encoded together."""

Columns = Sequence[Sequence[int]]


def encode_headers(headers: bytes | bytearray) -> bytes:
    """Return consecutive headers, each as it is in the log."""
    rows = list(BATCH_HEADER.struct.iter_unpack(headers))
    if not rows:
        return COUNT.pack(0)
    base, length, epoch, _, crc, attributes, delta, first, last, producer, its_epoch, number, count = zip(*rows)
    none = repeat(0)
    columns = (
        differences(base, _next_offsets(base, delta)),
        differences(length, none),
        differences(epoch, (0, *epoch)),
        crc,
        differences(attributes, none),
        differences(delta, none),
        differences(first, (0, *last)),
        differences(last, first),
        differences(producer, none),
        differences(its_epoch, none),
        differences(number, _next_sequences(producer, number, delta)),
        differences(count, (each + 1 for each in delta)),
    )
    return COUNT.pack(len(rows)) + b"".join(map(planes, columns))


def _next_offsets(base: Sequence[int], delta: Sequence[int]) -> list[int]:
    return [0, *(one + other + 1 for one, other in zip(base, delta))]


def _next_sequences(producer: Sequence[int], number: Sequence[int], delta: Sequence[int]) -> list[int]:
    """Return the sequence that continues that of the same producer's batch before."""
    expected: dict[int, int] = {-1: -1}
    found = []
    for who, one, more in zip(producer, number, delta):
        found.append(expected.get(who, 0))
        if who != -1:
            expected[who] = _after(one, more)
    return found


def _after(number: int, delta: int) -> int:
    return -1 if number < 0 or not 0 <= delta <= MAX_SEQUENCE else sequence(number, delta + 1)


def decode_headers(data: bytes) -> bytes:
    """Return the headers, each as it is in the log. Raises DecodeError."""
    if len(data) < COUNT.size:
        raise DecodeError("HeaderPlanes", "count", 0, f"{len(data)} bytes left")
    (count,) = COUNT.unpack_from(data)
    position = COUNT.size
    if count > MAX_HEADERS:  # planes of zeros take no bytes
        raise DecodeError("HeaderPlanes", "count", 0, f"{count} headers, more than {MAX_HEADERS}")
    if not count:
        return b""
    columns = []
    for _ in range(12):
        column, position = read_planes(data, position, count)
        columns.append(column)
    base, length, epoch, crc, attributes, delta, first, last, producer, its_epoch, number, records = columns
    pack = BATCH_HEADER.struct.pack
    expected: dict[int, int] = {-1: -1}
    offset = epoch_before = newest = 0
    found = []
    try:
        for row in zip(
            signed(base), signed(length), signed(epoch), crc, signed(attributes), signed(delta), signed(first),
            signed(last), signed(producer), signed(its_epoch), signed(number), signed(records),
        ):  # fmt: skip
            offset = wrapped(offset + row[0])
            epoch_before += row[2]
            oldest = wrapped(newest + row[6])
            newest = wrapped(oldest + row[7])
            who = row[8]
            sequence_number = expected.get(who, 0) + row[10]
            if who != -1:
                expected[who] = _after(sequence_number, row[5])
            found.append(
                pack(
                    offset, row[1], epoch_before, MAGIC, row[3], row[4], row[5], oldest, newest, who, row[9],
                    sequence_number, row[5] + 1 + row[11],
                )
            )  # fmt: skip
            offset = offset + row[5] + 1
    except StructError as error:
        raise DecodeError("HeaderPlanes", "", 0, f"header {len(found)}: {error}") from error
    return b"".join(found)
