"""Which single bit makes two checksums differ: pure mathematics, without the bytes.

A CRC is linear over XOR. So what one flipped bit changes in it depends only on how many bits lie behind that bit: the
register takes the bit in and is then stepped once for each of those. Stepping is
multiplication by x modulo the polynomial; which power of x a difference is, is a discrete logarithm, which baby steps
and giant steps find with the square root of the work: some ten thousand steps whatever the size of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import NamedTuple

WIDTH = 32


class Polynomial(NamedTuple):
    """A CRC of 32 bits, bit-reflected as both of Kafka's are."""

    value: int
    """The polynomial without its highest term, its lowest power in the highest bit."""
    order: int
    """After how many bits the powers of x repeat: flips that far apart cannot be told."""
    odd: bool
    """Whether x + 1 divides it: then a flip always leaves a difference with an odd number of bits set."""


CRC32 = Polynomial(0xEDB88320, (1 << 32) - 1, False)
CRC32C = Polynomial(0x82F63B78, (1 << 31) - 1, True)


def polynomial(magic: int) -> Polynomial:
    """What format `magic` uses: CRC-32C in v2, CRC-32 before."""
    return CRC32C if magic > 1 else CRC32


class Flip(NamedTuple):
    """A bit: the index of its byte among those that the checksum covers; its number, 0 for the least significant."""

    byte: int
    bit: int


def flips(magic: int, difference: int, size: int) -> Iterator[Flip]:
    """The bits of `size` covered bytes that, flipped, change the checksum of format `magic` by XOR with `difference`;
    from the last on.

    There is at most one, but for v2 batches from 256 MiB and messages from 512 MiB on. Of random differences,
    size * 8 / 2^32 have one too.
    """
    poly = polynomial(magic)
    if difference == 0 or size <= 0 or (poly.odd and difference.bit_count() % 2 == 0):
        return
    power = _logarithm(poly, difference, min(8 * size, poly.order))
    while power is not None and power <= 8 * size:
        # Bit 0 of the last byte is the 8th power; its bit 7 the first, for reflected CRCs take low bits first.
        behind, past = divmod(power - 1, 8)
        yield Flip(size - 1 - behind, 7 - past)
        power += poly.order


def _logarithm(poly: Polynomial, target: int, largest: int) -> int | None:
    """The power in 1..largest of which `target` is the value, None if it is none of them."""
    stride = isqrt(largest) + 1
    baby: dict[int, int] = {}
    state = 1
    for step in range(stride):
        baby.setdefault(state, step)
        state = (state >> 1) ^ (poly.value if state & 1 else 0)
    low, second, third, high = _back(poly, stride)
    for giant in range(0, largest + 1, stride):
        small = baby.get(target)
        if small is not None:
            power = giant + small or poly.order  # the 0th power comes again as that one
            return power if power <= largest else None
        target = low[target & 0xFF] ^ second[target >> 8 & 0xFF] ^ third[target >> 16 & 0xFF] ^ high[target >> 24]
    return None


def _back(poly: Polynomial, steps: int) -> list[list[int]]:
    """A table for each byte of a register, the lowest first, that together undo `steps` steps."""
    columns = []
    state = 1
    for step in range(steps + WIDTH):
        if step >= steps:
            columns.append(state)  # the register with bit step - steps alone, stepped back
        # A step brings the polynomial in, and with it the highest bit, when the lowest goes out.
        state = (state ^ poly.value) << 1 | 1 if state >> 31 else state << 1
    tables = []
    for byte in range(0, WIDTH, 8):
        table = [0]
        for column in columns[byte : byte + 8]:
            table += [entry ^ column for entry in table]
        tables.append(table)
    return tables
