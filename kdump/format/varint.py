"""Protocol Buffers' variable-length integers, as Kafka's records (zigzag) and flexible messages (unsigned) use them.

Source: org.apache.kafka.common.utils.ByteUtils. A VARINT takes at most 5 bytes, a VARLONG at most 10; a longer one
is an error there and here.
"""

from __future__ import annotations

from kdump.format.errors import DecodeError

Bytes = bytes | bytearray | memoryview


def read_unsigned(data: Bytes, position: int, end: int, bits: int, struct: str, field: str) -> tuple[int, int]:
    """An unsigned varint of at most `bits` (32 or 64) bits at `position`: its value and the position behind it.

    Java's int and long drop what does not fit into the last byte, and so does this.
    Raises DecodeError when the bytes end inside it, or when its last allowed byte says that another follows.
    """
    value = shift = 0
    start = position
    while True:
        if position >= end:
            raise DecodeError(struct, field, start, f"the bytes end inside a varint, {position - start} of it read")
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
    """A zigzag VARINT (32 bits): its value and the position behind it. Raises DecodeError."""
    value, position = read_unsigned(data, position, end, 32, struct, field)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Bytes, position: int, end: int, struct: str, field: str) -> tuple[int, int]:
    """A zigzag VARLONG (64 bits): its value and the position behind it. Raises DecodeError."""
    value, position = read_unsigned(data, position, end, 64, struct, field)
    return (value >> 1) ^ -(value & 1), position
