"""Finds the single flipped bit that explains the difference between two checksums, without reading the bytes.

A CRC is linear over XOR, so the change that one flipped bit makes depends only on the number of bits after it: the
register takes in the bit and is then stepped once for each of those. A step multiplies by x modulo the polynomial.
Finding the power of x that equals a difference is a discrete logarithm, which the baby-step giant-step algorithm
computes with the square root of the work: some ten thousand steps, whatever the size of the data."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import NamedTuple

from kdump.format.batch_formats import format_of

WIDTH = 32


class Polynomial(NamedTuple):
    """The polynomial of a 32-bit CRC, bit-reflected like both of Kafka's."""

    value: int
    """The polynomial without its highest term, with its lowest power in the highest bit."""
    order: int
    """Number of bits after which the powers of x repeat: flips that far apart cannot be distinguished."""
    detects_odd: bool
    """Whether x + 1 divides it: a flip then always makes a difference with an odd number of bits set."""


CRC32 = Polynomial(0xEDB88320, (1 << 32) - 1, False)
CRC32C = Polynomial(0x82F63B78, (1 << 31) - 1, True)


def polynomial(magic: int) -> Polynomial:
    """Return the polynomial of format `magic`: CRC-32C in v2, CRC-32 in v0 and v1."""
    return CRC32 if format_of(magic).is_message else CRC32C


class BitFlip(NamedTuple):
    """A bit: the index of its byte among the bytes that the checksum covers, and its number, 0 for the lowest."""

    byte: int
    bit: int


def single_bit_flips(magic: int, difference: int, size: int) -> Iterator[BitFlip]:
    """Yield the bits of `size` covered bytes that, if flipped, change the checksum of format `magic` by XOR with
    `difference`; the last one first.

    There is at most one, except in v2 batches of 256 MiB and more and in messages of 512 MiB and more. A random
    difference has one with a probability of size * 8 / 2^32."""
    poly = polynomial(magic)
    if difference == 0 or size <= 0 or (poly.detects_odd and difference.bit_count() % 2 == 0):
        return
    power = _logarithm(poly, difference, min(8 * size, poly.order))
    while power is not None and power <= 8 * size:
        # Bit 0 of the last byte is the 8th power, its bit 7 the first, because reflected CRCs take low bits first.
        bytes_after, past = divmod(power - 1, 8)
        yield BitFlip(size - 1 - bytes_after, 7 - past)
        power += poly.order


def _logarithm(poly: Polynomial, target: int, largest: int) -> int | None:
    """Return the power of x in 1..largest that equals `target`, None if there is none."""
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
            power = giant + small or poly.order  # the 0th power repeats at the order
            return power if power <= largest else None
        target = low[target & 0xFF] ^ second[target >> 8 & 0xFF] ^ third[target >> 16 & 0xFF] ^ high[target >> 24]
    return None


def _back(poly: Polynomial, steps: int) -> list[list[int]]:
    """Return a table for each byte of the register, the lowest first, that together undo `steps` steps."""
    columns = []
    state = 1
    for step in range(steps + WIDTH):
        if step >= steps:
            columns.append(state)  # the register with only bit step - steps set, stepped back
        # If the lowest bit is shifted out, a step XORs the polynomial in, and with it the highest bit.
        state = (state ^ poly.value) << 1 | 1 if state >> 31 else state << 1
    tables = []
    for byte in range(0, WIDTH, 8):
        table = [0]
        for column in columns[byte : byte + 8]:
            table += [entry ^ column for entry in table]
        tables.append(table)
    return tables
