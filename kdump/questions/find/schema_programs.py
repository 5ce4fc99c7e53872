"""Programs by which the core reads what an Avro or Protobuf schema describes without decoding it, and the bytes of
which a value that meets a comparison has one."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kdump.core.column_numbers import (
    NODE_ANY,
    NODE_ARRAY,
    NODE_BLOCK,
    NODE_BYTES,
    NODE_CHOICE,
    NODE_DOUBLE,
    NODE_FIXED,
    NODE_ITEMS,
    NODE_MAP,
    NODE_MESSAGE,
    NODE_NULL,
    NODE_RECORD,
    NODE_SAME,
    NODE_STRING,
    NODE_TEXT,
    NODE_UNION,
    NODE_VARINT,
)
from kdump.decode.avro import parsed_schemas
from kdump.decode.decoder_interface import DecoderError
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.registry_decoder import avro_schemas, protobuf_descriptors
from kdump.format.varint import unsigned_varint, varint
from kdump.log.expression.comparison import Comparison, number_of, plain_number
from kdump.log.expression.terms import Content
from kdump.state.schema_registry import SchemaVersion

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

Path = tuple[str, ...] | None
"""The way from here to what is compared; empty: all that is below; None: it is elsewhere."""
UNSIGNED, SIGNED, ZIGZAG = 0, 1, 2
BITS_64 = -(1 << 63), (1 << 63) - 1
BITS_32 = -(1 << 31), (1 << 31) - 1
LARGEST, DEEPEST = 10_000, 50
"""Maximum size of a program, and depth of a schema."""
FRAME = ("magic", "schemaId", "guid", "subject", "version", "messageIndexes")
"""Fields of a decoded value that are not of its schema."""
INTEGERS = {"int", "signed", "unsigned"}
"""Types that are varints."""
WITH_DIGITS = INTEGERS | {"double"}
"""Types of which the core knows the digits."""
TIMES = {"time", "millis"}
"""Types of times: with any fraction, and with milliseconds, whose text ends with three zeros."""
NUMBERS = WITH_DIGITS | TIMES | {"float", "fixed32", "fixed64"}
"""Types whose text is not in the bytes."""
OF_NUMBERS = re.compile(r"[-+0-9.:eETZ]*")
"""Text that a number or a time may contain."""
NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")
MOST_DIGITS, DIGITS_OF_TIME, DIGITS_OF_YEAR = 18, 9, 4
"""Maximum digits that are looked for in numbers; in a row in the text of a time, and in it before the fraction."""
GOOGLE = ".google.protobuf."
WRAPPERS = {f"{GOOGLE}{name}Value" for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool")}
WRAPPERS |= {f"{GOOGLE}StringValue", f"{GOOGLE}BytesValue"}
"""Messages that are shown as the one value in them."""
TIME_MESSAGES = {f"{GOOGLE}Timestamp": 253_402_300_800, f"{GOOGLE}Duration": 315_576_000_000}
"""Messages that are shown as text, and the number of seconds up to which they are."""
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
LOGICAL_TIMES = {
    "int-date": 2_932_896,
    "int-time-millis": 86_399_999,
    "long-time-micros": 86_399_999_999,
    **dict.fromkeys(("long-timestamp-millis", "long-local-timestamp-millis"), LATEST),
    **dict.fromkeys(("long-timestamp-micros", "long-local-timestamp-micros"), LATEST * 1000),
}
"""Avro's logical types of times, with the highest value that has a text."""
OTHERS = {f"{GOOGLE}{name}" for name in ("Any", "Struct", "Value", "ListValue", "FieldMask")}
"""Messages that are shown as something else."""
MESSAGE, STRING, BYTES, ENUM = 11, 9, 12, 14
SCALARS: dict[int, tuple[int, str, tuple[int, ...]]] = {
    1: (1, "double", (NODE_DOUBLE,)),
    2: (5, "float", (NODE_FIXED, 4)),
    3: (0, "signed", (NODE_VARINT, SIGNED, *BITS_64)),
    4: (0, "unsigned", (NODE_VARINT, UNSIGNED, *BITS_64)),
    5: (0, "signed", (NODE_VARINT, SIGNED, *BITS_32)),
    6: (1, "fixed64", (NODE_FIXED, 8)),
    7: (5, "fixed32", (NODE_FIXED, 4)),
    8: (0, "boolean", (NODE_VARINT, UNSIGNED, 0, 1)),
    STRING: (2, "string", (NODE_TEXT,)),
    BYTES: (2, "bytes", (NODE_ANY,)),
    13: (0, "unsigned", (NODE_VARINT, UNSIGNED, 0, (1 << 32) - 1)),
    15: (5, "fixed32", (NODE_FIXED, 4)),
    16: (1, "fixed64", (NODE_FIXED, 8)),
    17: (0, "int", (NODE_VARINT, ZIGZAG, *BITS_32)),
    18: (0, "int", (NODE_VARINT, ZIGZAG, *BITS_64)),
}
"""Types of Protobuf's fields: wire type, type here, and node."""
PRIMITIVES: dict[str, tuple[Any, ...]] = {
    "null": ("null", NODE_NULL),
    "boolean": ("boolean", NODE_VARINT, UNSIGNED, 0, 1),
    "bytes": ("bytes", NODE_BYTES),
    "string": ("string", NODE_STRING),
    "float": ("float", NODE_FIXED, 4),
    "double": ("double", NODE_DOUBLE),
    **dict.fromkeys(("int", "long"), ("int", NODE_VARINT, ZIGZAG, *BITS_64)),
}
"""Types of Avro: type here, and node."""


NOTHING = array("q", (NODE_NULL,))
"""The program of a schema whose values are decoded: none fits."""


class Program:
    """A program, and the types of what is compared. Making one raises ValueError for what is not known."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.leaves: set[str] = set()
        self.symbols: list[str] = []

    def node(self, *numbers: int) -> int:
        """Add a node and return its number."""
        if len(self.numbers) > LARGEST:
            raise ValueError(LARGEST)
        start = len(self.numbers)
        self.numbers.extend(numbers)
        return start

    def leaf(self, kind: str, path: Path, symbols: Sequence[str] = ()) -> None:
        """Take note of a value's type, if it is compared."""
        if path == ():
            self.leaves.add(kind)
            self.symbols += symbols


def _below(path: Path, name: str) -> Path:
    """Return the path from a field with this name on."""
    return path if not path else path[1:] if path[0] == name else None


class AvroProgram(Program):
    """The program of an Avro schema as fastavro parses it, in which names are full."""

    def __init__(self, schema: Any, path: Path) -> None:
        super().__init__()
        self._schemas: dict[str, Any] = {}
        self._done: dict[tuple[str, Path], int] = {}
        self._add(schema, path, 0)

    def _add(self, schema: Any, path: Path, depth: int) -> int:
        """Add the nodes of a schema and return the number of the first."""
        if depth > DEEPEST:
            raise ValueError(depth)
        if isinstance(schema, list):
            start = self.node(NODE_UNION, len(schema), *[0] * len(schema))
            for number, branch in enumerate(schema):
                self.numbers[start + 2 + number] = self._add(branch, path, depth + 1)
            return start
        if not isinstance(schema, dict):
            return self._named(str(schema), path, depth)
        kind = schema.get("type")
        if isinstance(kind, (dict, list)):
            return self._add(kind, path, depth + 1)
        logical = f"{kind}-{schema['logicalType']}" if "logicalType" in schema else ""
        if logical in LOGICAL_TIMES:
            self.leaf("time" if logical.endswith("micros") else "millis", path)
            return self.node(NODE_VARINT, ZIGZAG, 0, LOGICAL_TIMES[logical])
        if logical and (path == () or logical == "string-uuid"):  # not any text is a UUID
            raise ValueError(logical)
        if "name" in schema:
            self._schemas[schema["name"]] = schema
        if kind == "record":
            fields = schema["fields"]
            start = self.node(NODE_RECORD, len(fields), *[0] * len(fields))
            self._done[schema["name"], path] = start
            for number, field in enumerate(fields):
                self.numbers[start + 2 + number] = self._add(field["type"], _below(path, field["name"]), depth + 1)
            return start
        if kind in ("array", "map"):
            start = self.node(NODE_ARRAY if kind == "array" else NODE_MAP, 0)
            below = path[1:] if path and kind == "map" else path
            self.numbers[start + 1] = self._add(schema["items" if kind == "array" else "values"], below, depth + 1)
            return start
        if kind == "enum":
            self.leaf("enum", path, schema["symbols"])
            return self.node(NODE_VARINT, ZIGZAG, 0, len(schema["symbols"]) - 1)
        if kind == "fixed":
            self.leaf("bytes", path)
            return self.node(NODE_FIXED, schema["size"])
        return self._named(str(kind), path, depth)

    def _named(self, kind: str, path: Path, depth: int) -> int:
        """Add the node of a primitive type, or of one with a name. Raises KeyError for a name that is not known."""
        if (kind, path) in self._done:
            return self.node(NODE_SAME, self._done[kind, path])
        if kind in self._schemas:
            return self._add(self._schemas[kind], path, depth + 1)
        leaf, *node = PRIMITIVES[kind]
        self.leaf(leaf, path)
        return self.node(*node)


class ProtobufProgram(Program):
    """The program of a Protobuf schema: of each message that the indexes before a value may name."""

    def __init__(self, descriptors: FileDescriptorSet, path: Path) -> None:
        super().__init__()
        self._messages: dict[str, DescriptorProto] = {}
        self._enums: dict[str, tuple[int, list[str]]] = {}
        """How many numbers from 0 on have a name, and all names."""
        self._done: dict[tuple[str, Path], int] = {}
        for file in descriptors.file:
            package = f".{file.package}" if file.package else ""
            self._collect(package, file.message_type, file.enum_type)
        main = descriptors.file[-1]
        package = f".{main.package}" if main.package else ""
        start = self.node(NODE_CHOICE, len(main.message_type), *[0] * len(main.message_type))
        for number, message in enumerate(main.message_type):
            self.numbers[start + 2 + number] = self._message(f"{package}.{message.name}", path, 0)

    def _collect(self, above: str, messages: Sequence[DescriptorProto], enums: Sequence[Any]) -> None:
        for enum in enums:
            numbers, names = {value.number for value in enum.value}, [value.name for value in enum.value]
            named = next(number for number in range(len(numbers) + 1) if number not in numbers)
            self._enums[f"{above}.{enum.name}"] = named, names
        for message in messages:
            self._messages[f"{above}.{message.name}"] = message
            self._collect(f"{above}.{message.name}", message.nested_type, message.enum_type)

    def _message(self, name: str, path: Path, depth: int) -> int:
        """Add the nodes of a message and return the number of the first."""
        if (name, path) in self._done:
            return self._done[name, path]
        if depth > DEEPEST or name in OTHERS:
            raise ValueError(name)
        fields = self._messages[name].field
        tags = [(field.number << 3 | wire, field, wire) for field in fields for wire in _wire_types(field)]
        start = self.node(NODE_MESSAGE, len(tags), *[0] * 2 * len(tags))
        self._done[name, path] = start
        for number, (tag, field, wire) in enumerate(tags):
            item = self._field(name, field, path, depth)
            is_packed = wire == 2 and field.type not in (MESSAGE, STRING, BYTES)
            item = self.node(NODE_ITEMS, item) if is_packed else item
            self.numbers[start + 2 + 2 * number] = tag
            self.numbers[start + 3 + 2 * number] = self.node(NODE_BLOCK, item) if wire == 2 else item
        return start

    def _field(self, name: str, field: FieldDescriptorProto, path: Path, depth: int) -> int:
        """Add the node of a field, or of an item of it."""
        if name in TIME_MESSAGES:
            return self.node(NODE_VARINT, SIGNED, 0, (TIME_MESSAGES[name] if field.number == 1 else 1_000_000_000) - 1)
        if name in WRAPPERS:
            below = path
        elif self._messages[name].options.map_entry:
            below = None if field.number == 1 else path[1:] if path else path
        else:
            below = _below(path, field.name)
        if field.label == field.LABEL_REQUIRED:
            raise ValueError(field.name)
        if field.type == MESSAGE:
            if field.type_name in TIME_MESSAGES:
                self.leaf("time", below)
            return self._message(field.type_name, below, depth + 1)
        if field.type == ENUM:
            named, names = self._enums[field.type_name]
            self.leaf("enum", below, names)
            return self.node(NODE_VARINT, SIGNED, 0, named - 1)
        _, kind, node = SCALARS[field.type]  # KeyError: a group
        self.leaf(kind, below)
        return self.node(*node)


def _wire_types(field: FieldDescriptorProto) -> tuple[int, ...]:
    """Return the wire types in which a field may be written."""
    wire = 2 if field.type == MESSAGE else 0 if field.type == ENUM else SCALARS[field.type][0]
    return (wire, 2) if wire != 2 and field.label == field.LABEL_REPEATED else (wire,)


def needles_of(test: Comparison) -> list[bytes]:
    """Return bytes of which text that meets the comparison has one; empty if that cannot be known."""
    if test.operator not in ("==", "in") or test.literal is None or not test.data:
        return []
    if test.operator == "in":
        return [test.data]
    number = plain_number(test.literal)
    return [test.data] if number is None else [number.encode(), *(data for data in test.encodings if data != test.data)]


def digits_of(test: Comparison) -> tuple[int, int] | None:
    """Return a text of digits that integers are to contain, as a power of ten and a number."""
    text = str(test.literal)
    is_digits = test.operator == "in" and len(text) <= MOST_DIGITS and text.isascii() and text.isdigit()
    return (10 ** len(text), int(text)) if is_digits else None


def program_needles(program: Program, test: Comparison, digits: tuple[int, int] | None) -> list[bytes]:
    """Return bytes of which a value that meets the comparison has one, if no integer of a varint has the `digits`.
    Raises ValueError if that cannot be known."""
    leaves, found, text = program.leaves, needles_of(test), str(test.literal)
    if not found or isinstance(test.literal, bool):
        raise ValueError(test.literal)
    if "bytes" in leaves:
        found += _base64_needles(text, is_whole=test.operator == "==")
    if test.operator == "in":
        is_digits = digits is not None and digits_of(test) == digits
        of_numbers = leaves & NUMBERS - (WITH_DIGITS if is_digits else set())
        if is_digits and len(text) > DIGITS_OF_TIME:
            of_numbers -= TIMES
        if is_digits and len(text) > DIGITS_OF_YEAR and not text.endswith("00"):
            of_numbers -= {"millis"}
        if of_numbers and (OF_NUMBERS.fullmatch(text) or any(text in name for name in NOT_NUMBERS)):
            raise ValueError(text)
        if any(text in symbol for symbol in (*program.symbols, *(("true", "false") if "boolean" in leaves else ()))):
            raise ValueError(text)
        return found
    if text in program.symbols or (leaves & {"float", "double"} and text in NOT_NUMBERS):
        raise ValueError(text)
    number = plain_number(test.literal)
    if leaves & TIMES and number is None and OF_NUMBERS.fullmatch(text.rstrip("s")):
        raise ValueError(text)
    return found if number is None else [*found, *_encodings(number, leaves)]


def _encodings(number: str, leaves: set[str]) -> Iterator[bytes]:
    """Yield how a number is written as values of these types; as text, it may be in the notation of decimals."""
    value = number_of(number)
    if "string" in leaves:
        yield from (b"E+", b"E-")
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        if "int" in leaves and value < 1 << 63:
            yield varint(value)
        if leaves & {"signed", "unsigned"}:
            yield unsigned_varint(value & (1 << 64) - 1)
        if "fixed64" in leaves:
            yield struct.pack("<Q", value & (1 << 64) - 1)
        if "fixed32" in leaves:
            yield struct.pack("<I", value & (1 << 32) - 1)
    for code, kind in (("<f", "float"), ("<d", "double")):
        if kind in leaves:
            yield struct.pack(code, float(number))


def _base64_needles(text: str, *, is_whole: bool) -> Iterator[bytes]:
    """Yield bytes of which those have one whose text in Base64 is a text, or has it in it: the groups of four
    characters that are certainly whole, for each place where the first may begin. Raises ValueError if there is
    none."""
    if not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text) or (is_whole and len(text) % 4):
        return
    for first in (0,) if is_whole else range(4):
        groups = text[first : first + (len(text) - first) // 4 * 4]
        if not groups:
            raise ValueError(text)
        try:
            yield base64.b64decode(groups, validate=True)
        except binascii.Error:
            continue  # no Base64 has it at this place


class Programs:
    """The programs of the schemas in a registry by which none of some comparisons is met without certain bytes; made
    when the first value needs them. `needles`: those bytes, which are added to it."""

    def __init__(self, known: KnownSchemas | None, contents: list[Content], needles: list[bytes]) -> None:
        self._known, self._contents, self._needles = known, contents, needles
        self._made: dict[int, array[int]] = {}
        every = {digits for content in contents if (digits := digits_of(content.test)) is not None}
        self.digits = every.pop() if len(every) == 1 else None
        """The digits that integers must not contain, as a power of ten and a number; None: whatever they contain."""

    def of(self, number: int) -> array[int]:
        """Return the program of the schema with an ID; a node that fits nothing if it has none."""
        program = self._made.get(number)
        if program is None:
            version = None if self._known is None else self._known.only(number)
            if version is None:
                return NOTHING  # not kept: any number may be in the bytes
            program = self._made[number] = self._make(version)
        return program

    def _make(self, version: SchemaVersion) -> array[int]:
        found: list[bytes] = []
        numbers = NOTHING
        try:
            for content in self._contents:
                if content.path and content.path[0] in FRAME:
                    raise ValueError(content.path)
                program = self._program(version, content)
                found += program_needles(program, content.test, self.digits)
                numbers = program.numbers
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, DecoderError):
            return NOTHING
        self._needles += [needle for needle in found if needle not in self._needles]
        return numbers

    def _program(self, version: SchemaVersion, content: Content) -> Program:
        assert self._known is not None
        if version.schema_type == "PROTOBUF":
            return ProtobufProgram(protobuf_descriptors(self._known, version), content.path)
        if version.schema_type != "AVRO" or any(True for _ in version.referenced()):
            raise ValueError(version.schema_type)
        parsed, _ = parsed_schemas(avro_schemas(self._known, version), version.subject)
        return AvroProgram(parsed, content.path)
