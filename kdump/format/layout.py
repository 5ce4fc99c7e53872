"""A layout is declared once, as a class; its decoding, JSON keys, table columns and hexdump all derive from that.

    class BatchHeader(NamedTuple):
        baseOffset: Annotated[int, Field(INT64, "offset of the first record")]

    BATCH_HEADER = layout(BatchHeader, source="…")

`Layout.read` is the fast method for layouts of fixed-size fields. `Layout.walk` works for every layout: it yields one
Span per field, so that the fields before invalid bytes are still decoded."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_varint, read_varlong


class Wire(NamedTuple):
    """How a field is encoded: the specification's type name, and the struct code if its size is fixed."""

    name: str
    code: str = ""

    @property
    def size(self) -> int | None:
        """Size in bytes; None if it is variable."""
        return struct.calcsize(">" + self.code) if self.code else None


INT8, INT16, INT32, INT64 = Wire("INT8", "b"), Wire("INT16", "h"), Wire("INT32", "i"), Wire("INT64", "q")
UINT32 = Wire("UINT32", "I")
VARINT, VARLONG = Wire("VARINT"), Wire("VARLONG")
BYTES = Wire("BYTES")
ARRAY = Wire("ARRAY")


class Bits(NamedTuple):
    """A bit field inside an integer. `meanings` names its values; 0 has no name if it means that the bits are not set.
    `about` is an explanation for readers who do not know the field."""

    name: str
    shift: int
    width: int
    meanings: dict[int, str]
    about: str = ""

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.shift

    def of(self, value: int) -> int:
        return (value & self.mask) >> self.shift


class Field(NamedTuple):
    """One field. `unit` is how to present the number: epoch ms, bytes, offset, crc, or empty.

    For BYTES, `sized_by` names the field with its length (-1 is null); for ARRAY, the field with its count, and `of` is
    the layout of an element."""

    wire: Wire
    meaning: str
    unit: str = ""
    bits: tuple[Bits, ...] = ()
    sized_by: str = ""
    of: Layout[Any] | None = None
    name: str = ""

    def describe_bits(self, value: int) -> list[str]:
        """Return the meanings of the bits set in `value`, unknown set bits last."""
        texts, described = [], 0
        for bits in self.bits:
            described |= bits.mask
            number = bits.of(value)
            meaning = bits.meanings.get(number)
            if meaning is None and number:
                meaning = f"{bits.name} {number} (unknown)"
            if meaning:
                texts.append(meaning)
        unknown = value & ~described
        if unknown and self.bits:
            texts.append(f"reserved bits 0x{unknown & 0xFFFF:x} set")
        return texts


LARGE = 1 << 20
"""Size in bytes of a field above which its value is not copied, if the data is a memoryview."""


class Span(NamedTuple):
    """The bytes of one field: their position, in the address space of the buffer that was walked, and their value."""

    position: int
    size: int
    field: Field
    value: Any
    depth: int


T = TypeVar("T", bound=tuple[Any, ...])


class Layout(Generic[T]):
    """The fields of one structure, in order. `source` names the specification's section or Kafka's class."""

    size: int
    """Size in bytes of the leading fixed-size fields; for a fixed layout, of all fields."""

    def __init__(self, cls: type[T], source: str) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.source = source
        hints = get_type_hints(cls, include_extras=True)
        self.fields: tuple[Field, ...] = tuple(hint.__metadata__[0]._replace(name=name) for name, hint in hints.items())
        self.names: tuple[str, ...] = tuple(field.name for field in self.fields)
        codes = [field.wire.code for field in self.fields]
        # The leading fields with a fixed size can be read in one call.
        fixed = next((i for i, code in enumerate(codes) if not code), len(codes))
        self.struct = struct.Struct(">" + "".join(codes[:fixed]))
        self.size = self.struct.size
        self.positions = {
            field.name: struct.calcsize(">" + "".join(codes[:i])) for i, field in enumerate(self.fields[: fixed + 1])
        }

    def field(self, name: str) -> Field:
        return self.fields[self.names.index(name)]

    def read(self, data: Bytes, position: int = 0) -> T:
        """Read a fixed layout at `position`. Raises DecodeError if fewer than `size` bytes are left."""
        try:
            values = self.struct.unpack_from(data, position)
        except struct.error:
            left = max(0, len(data) - position)
            raise DecodeError(self.name, self.names[0], position, f"{self.size} bytes needed, {left} left") from None
        return self.cls._make(values)  # type: ignore[attr-defined,no-any-return]

    def walk(self, data: Bytes, position: int, end: int, depth: int = 0) -> Iterator[Span]:
        """Yield a Span for each field from `position` on; those of array elements are one level deeper. In a
        memoryview, the value of a large field is also a memoryview.

        Raises DecodeError at the first field that does not fit before `end`, after yielding those before it."""
        values: dict[str, int] = {}
        for field in self.fields:
            start = position
            value: Any
            if field.wire is ARRAY:
                assert field.of is not None
                for _ in range(values[field.sized_by]):
                    for span in field.of.walk(data, position, end, depth + 1):
                        yield span
                        position = span.position + span.size
                continue
            if field.wire is VARINT:
                value, position = read_varint(data, position, end, self.name, field.name)
            elif field.wire is VARLONG:
                value, position = read_varlong(data, position, end, self.name, field.name)
            elif field.wire is BYTES:
                size = values[field.sized_by]
                if size < 0:
                    value = None
                elif position + size > end:
                    reason = f"{field.sized_by} is {size}, {end - position} bytes are left"
                    raise DecodeError(self.name, field.name, position, reason)
                else:
                    value, position = data[position : position + size], position + size
                    if size <= LARGE or not isinstance(value, memoryview):
                        value = bytes(value)
            else:
                width = field.wire.size or 0
                if position + width > end:
                    reason = f"{width} bytes needed, {end - position} left"
                    raise DecodeError(self.name, field.name, position, reason)
                (value,) = struct.unpack_from(">" + field.wire.code, data, position)
                position += width
            if isinstance(value, int):
                values[field.name] = value
            yield Span(start, position - start, field, value, depth)


def layout(cls: type[T], source: str) -> Layout[T]:
    """Return the layout that the annotations of the NamedTuple `cls` declare."""
    return Layout(cls, source)
