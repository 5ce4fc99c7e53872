"""Formats of --key-format and --value-format that need no schema.

Numbers are big-endian, as Kafka's serializers write them (org.apache.kafka.common.serialization)."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from kdump.decode.decoder_interface import MAX_DECODER_INPUT_BYTES, DecodedPart, FormatError, PartDecoder, RecordContext
from kdump.decode.jsonable import to_json

NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint8": ">B",
    "uint16": ">H",
    "uint32": ">I",
    "uint64": ">Q",
    "float32": ">f",
    "float64": ">d",
}
UUID_TEXT = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def number(code: str, data: bytes) -> Any:
    """Decode one number of a fixed size; `code` is that of struct."""
    size = struct.calcsize(code)
    if len(data) != size:
        raise FormatError(f"{size} {'byte' if size == 1 else 'bytes'} needed, {len(data)} found", min(size, len(data)))
    return to_json(struct.unpack(code, data)[0])


def text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8: byte 0x{data[error.start]:02x}", error.start) from None


def json_value(data: bytes) -> Any:
    if len(data) > MAX_DECODER_INPUT_BYTES:
        raise FormatError(f"too large to decode: {len(data)} bytes, at most {MAX_DECODER_INPUT_BYTES}")
    decoded = text(data)
    try:
        return to_json(json.loads(decoded, parse_constant=_no_constant))
    except json.JSONDecodeError as error:
        where = len(decoded[: error.pos].encode())
        raise FormatError(f"not JSON: {error.msg[0].lower()}{error.msg[1:]}", where) from None
    except RecursionError:
        raise FormatError("JSON nested too deeply") from None
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("the integer has too many digits") from None


def _no_constant(name: str) -> NoReturn:
    raise FormatError(f"not JSON: {name} is not a JSON number")


def uuid(data: bytes) -> str:
    """Decode a UUID in text form, as written by UUIDSerializer."""
    if not UUID_TEXT.fullmatch(data):
        raise FormatError("not a UUID in text form, as written by Kafka's UUIDSerializer")
    return data.decode()


def boolean(data: bytes) -> bool:
    """Decode a boolean as written by BooleanSerializer."""
    if data not in (b"\0", b"\1"):
        shown = f"0x{data[0]:02x}" if len(data) == 1 else f"{len(data)} bytes"
        raise FormatError(f"one byte needed, 0 or 1; {shown} found", 0)
    return data == b"\1"


FORMATS: dict[str, Callable[[bytes], Any]] = {
    "utf-8": text,
    "json": json_value,
    "hex": lambda data: data.hex(),
    "base64": lambda data: base64.b64encode(data).decode(),
    **{name: partial(number, code) for name, code in NUMBERS.items()},
    "uuid": uuid,
    "boolean": boolean,
}
"""Format -> function that converts bytes to a JSON value or raises FormatError."""


def format_decoder(name: str) -> PartDecoder:
    """Return the decoder of one of FORMATS."""
    maker = FORMATS[name]

    def decode(data: bytes, about: Callable[[], RecordContext]) -> DecodedPart:
        return DecodedPart(maker(data))

    return decode
