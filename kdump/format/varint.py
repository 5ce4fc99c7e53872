"""Protocol Buffers' variable-length integers, as in Kafka's records (zigzag) and flexible messages (unsigned).

Source: org.apache.kafka.common.utils.ByteUtils. A VARINT has at most 5 bytes, a VARLONG at most 10; a longer one is an
error, as in Kafka."""

from __future__ import annotations

from kdump.format.errors import DecodeError

Bytes = bytes | bytearray | memoryview


def read_unsigned(data: Bytes, position: int, end: int, bits: int, struct: str, field: str) -> tuple[int, int]:
    """Read the unsigned varint of at most `bits` (32 or 64) bits at `position`; return its value and the next position.

    Bits of the last byte that do not fit are discarded, as in Java.
    Raises DecodeError if the bytes end inside the varint, or if it is longer than allowed."""
    value = shift = 0
    start = position
    while True:
        if position >= end:
            raise DecodeError(
                struct, field, start, f"the bytes end inside a varint, after {position - start} of its bytes"
            )
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << bits) - 1), position
        shift += 7
        if shift >= bits:
            longest = (bits + 6) // 7
            raise DecodeError(struct, field, start, f"a varint longer than {longest} bytes")


def read_varint(data: Bytes, position: int, end: int, struct: str, field: str) -> tuple[int, int]:
    """Read a zigzag VARINT (32 bits); return its value and the next position. Raises DecodeError."""
    value, position = read_unsigned(data, position, end, 32, struct, field)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Bytes, position: int, end: int, struct: str, field: str) -> tuple[int, int]:
    """Read a zigzag VARLONG (64 bits); return its value and the next position. Raises DecodeError."""
    value, position = read_unsigned(data, position, end, 64, struct, field)
    return (value >> 1) ^ -(value & 1), position


def unsigned_varint(number: int) -> bytes:
    """Return a number that is not negative as an unsigned varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def varint(number: int) -> bytes:
    """Return a number as a zigzag VARINT or VARLONG, which are the same."""
    return unsigned_varint(number << 1 if number >= 0 else ~(number << 1))
