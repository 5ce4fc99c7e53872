"""A layout is declared once, as a class; reading it, its JSON keys, table columns and hexdump all derive from that.

    class BatchHeader(NamedTuple):
        baseOffset: Annotated[int, Field(INT64, "offset of the first record")]

    BATCH_HEADER = layout(BatchHeader, source="…")

`Layout.read` is the quick way for layouts of fixed-size fields. `Layout.walk` is the thorough one for every layout:
it yields a Span a field, and what it decoded stays known when the bytes go wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_varint, read_varlong


class Wire(NamedTuple):
    """How a field stands in the bytes: the specification's type name, and the struct code if its size is fixed."""

    name: str
    code: str = ""

    @property
    def size(self) -> int | None:
        """Bytes, or None for a size that the bytes themselves tell."""
        return struct.calcsize(">" + self.code) if self.code else None


INT8, INT16, INT32, INT64 = Wire("INT8", "b"), Wire("INT16", "h"), Wire("INT32", "i"), Wire("INT64", "q")
UINT32 = Wire("UINT32", "I")
VARINT, VARLONG = Wire("VARINT"), Wire("VARLONG")
BYTES = Wire("BYTES")
ARRAY = Wire("ARRAY")


class Bits(NamedTuple):
    """A bit field inside an integer. `meanings` names its values; bits that mean nothing when 0 have no name for it.
    `about` says it in full, for a reader who meets it for the first time."""

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
    """One field. `unit` says how a person reads the number: epoch ms, bytes, offset, crc, or nothing.

    BYTES has the name of the field that holds its length in `sized_by` (-1 there is null); ARRAY the field that holds
    its count, and the layout of an element in `of`.
    """

    wire: Wire
    meaning: str
    unit: str = ""
    bits: tuple[Bits, ...] = ()
    sized_by: str = ""
    of: Layout[Any] | None = None
    name: str = ""

    def describe_bits(self, value: int) -> list[str]:
        """What the bits of `value` say, unnamed set bits last."""
        texts, known = [], 0
        for bits in self.bits:
            known |= bits.mask
            number = bits.of(value)
            text = bits.meanings.get(number)
            if text is None and number:
                text = f"{bits.name} {number} (unknown)"
            if text:
                texts.append(text)
        unknown = value & ~known
        if unknown and self.bits:
            texts.append(f"reserved bits 0x{unknown & 0xFFFF:x} set")
        return texts


LARGE = 1 << 20
"""Bytes of a field above which its value is not copied, if the bytes are those of a memoryview."""


class Span(NamedTuple):
    """Bytes of one field: where they lie, in the address space of the buffer that was walked, and what they are."""

    position: int
    size: int
    field: Field
    value: Any
    depth: int


T = TypeVar("T", bound=tuple[Any, ...])


class Layout(Generic[T]):
    """The fields of one structure, in order. `source` names the specification's section or Kafka's class."""

    def __init__(self, cls: type[T], source: str) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.source = source
        hints = get_type_hints(cls, include_extras=True)
        self.fields: tuple[Field, ...] = tuple(hint.__metadata__[0]._replace(name=name) for name, hint in hints.items())
        self.names: tuple[str, ...] = tuple(field.name for field in self.fields)
        codes = [field.wire.code for field in self.fields]
        # The leading fields whose sizes are fixed can be read at one go.
        fixed = next((i for i, code in enumerate(codes) if not code), len(codes))
        self.struct = struct.Struct(">" + "".join(codes[:fixed]))
        self.positions = {
            field.name: struct.calcsize(">" + "".join(codes[:i])) for i, field in enumerate(self.fields[: fixed + 1])
        }

    @property
    def size(self) -> int:
        """Bytes of the leading fixed-size fields: the whole of a fixed layout."""
        return self.struct.size

    def field(self, name: str) -> Field:
        return self.fields[self.names.index(name)]

    def read(self, data: Bytes, position: int = 0) -> T:
        """A fixed layout at `position`. Raises DecodeError when fewer than `size` bytes are left there."""
        try:
            values = self.struct.unpack_from(data, position)
        except struct.error:
            left = max(0, len(data) - position)
            raise DecodeError(self.name, self.names[0], position, f"{self.size} bytes needed, {left} left") from None
        return self.cls._make(values)  # type: ignore[attr-defined,no-any-return]

    def walk(self, data: Bytes, position: int, end: int, depth: int = 0) -> Iterator[Span]:
        """A Span for each field from `position` on, those of array elements one deeper. The value of a large field of
        a memoryview is a memoryview, too.

        Raises DecodeError at the first field that does not fit before `end`; what came before has been yielded.
        """
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
    """The layout that the NamedTuple `cls` declares with its annotations."""
    return Layout(cls, source)
