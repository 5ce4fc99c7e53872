"""Decodes Avro with a schema from a file, using fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date, datetime, time
from functools import partial
from typing import Any

from kdump.decode.confluent import Payload
from kdump.decode.decoder_interface import DecoderError, FormatError
from kdump.decode.jsonable import DEEPEST, LARGEST_NUMBER, finite, to_json
from kdump.extras import how_to_install

MAX_ZERO_BYTE_VALUES = 1000
"""Maximum number of values that take no bytes within one value of a type: this bounds the number of values decoded per
byte."""


def avro_payload(path: str) -> Payload:
    """Return the function that decodes by the schema in the file `path`: an .avsc, or a schema registry's response that
    contains one. Raises DecoderError."""
    needs_fastavro()
    try:
        with open(path, "rb") as file:
            schema = json.loads(file.read())
        if isinstance(schema, dict) and "type" not in schema and isinstance(schema.get("schema"), str):
            schema = json.loads(schema["schema"])
    except OSError as error:
        raise DecoderError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DecoderError(f"{path}: not an Avro schema: {type(error).__name__}: {error}") from None
    return schemas_payload([schema], path, hint="; is this the right schema?")


def needs_fastavro() -> None:
    """Raise DecoderError if fastavro is not installed."""
    try:
        import fastavro  # noqa: F401
    except ImportError:
        raise DecoderError(f"Avro needs the package fastavro: {how_to_install('avro')}") from None


def parsed_schemas(schemas: list[Any], path: str) -> tuple[Any, dict[str, Any]]:
    """Return the last of these schemas as fastavro parses it, and the types with names of all of them. `path`: where
    they are from. Raises DecoderError."""
    needs_fastavro()
    import fastavro

    named: dict[str, Any] = {}
    try:
        for schema in schemas:
            parsed = fastavro.parse_schema(schema, named_schemas=named)
    except Exception as error:  # fastavro raises many types
        raise DecoderError(f"{path}: not an Avro schema: {type(error).__name__}: {error}") from None
    # The reader finds names within types, but not those that are the whole schema, or branches of it.
    if isinstance(parsed, list):
        return [named.get(each, each) if isinstance(each, str) else each for each in parsed], named
    return named.get(parsed, parsed) if isinstance(parsed, str) else parsed, named


def schemas_payload(schemas: list[Any], path: str, newest: Any = None, hint: str = "") -> Payload:
    """Return the function that decodes by the last of these schemas, which may name types of those before it. `path`:
    where they are from; `newest`: resolve values to this parsed schema, and do not convert them to JSON; `hint`: what
    to say of bytes that are left over. Raises DecoderError."""
    parsed, named = parsed_schemas(schemas, path)
    try:
        types = _Types(parsed, named, path)
        read = _reader(types.holds_itself)
        convert = to_json if types.holds_itself or types.has_free_parts else converter(parsed, named) or _same
        convert = convert if newest is None else _same
    except DecoderError:
        raise
    except Exception as error:  # a schema that fastavro accepts, and that is none
        raise DecoderError(f"{path}: not an Avro schema: {type(error).__name__}: {error}") from None

    def payload(data: bytes, start: int, indexes: tuple[int, ...]) -> tuple[Any, str]:
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            value = read(stream, parsed, newest)
        except Exception as error:  # fastavro raises many types for invalid bytes
            where = min(stream.tell(), len(data))
            if isinstance(error, RecursionError):
                raise FormatError("nested too deeply", where) from None
            raise FormatError(f"does not match the schema: {type(error).__name__}: {error}"[:300], where) from None
        left = len(data) - stream.tell()
        if left:
            return convert(value), f"{left} {'byte' if left == 1 else 'bytes'} left over{hint}"
        return convert(value), ""

    return payload


def _same(value: Any) -> Any:
    return value


Converter = Callable[[Any], Any]
SIMPLE: dict[str, Converter | None] = {
    **dict.fromkeys(("null", "boolean", "int", "long", "string", "enum")),
    **dict.fromkeys(("float", "double"), finite),
}
"""Converters of types. The values of those without one are JSON values already: fastavro decodes text strictly, so that
it has no lone surrogates."""
LOGICAL: dict[str, Converter] = {
    **dict.fromkeys(("bytes-decimal", "fixed-decimal", "string-uuid"), str),
    "int-date": date.isoformat,
    **dict.fromkeys(("int-time-millis", "long-time-micros"), time.isoformat),
    **dict.fromkeys(("long-timestamp-millis", "long-timestamp-micros"), datetime.isoformat),
    **dict.fromkeys(("long-local-timestamp-millis", "long-local-timestamp-micros"), datetime.isoformat),
}
"""Converters of logical types, by fastavro's names of them."""


class _TooDeep(Exception):
    """A schema is nested so deeply that to_json is to refuse its values."""


def converter(schema: Any, named: dict[str, Any]) -> Converter | None:
    """Return the function that converts the values of a schema, which is not recursive, to JSON as to_json does, but
    only those that need it; None if none do. It changes the values in place."""
    try:
        return _Converters(named).of(schema, 0)
    except _TooDeep:
        return to_json


class _Converters:
    """Makes the converters of a schema, once for each type with a name: it may be used very often."""

    def __init__(self, named: dict[str, Any]) -> None:
        self.named = named
        self._of_name: dict[str, Converter | None] = {}

    def of(self, schema: Any, depth: int) -> Converter | None:
        if depth > DEEPEST:
            raise _TooDeep
        if isinstance(schema, str):
            if schema not in self.named:
                return SIMPLE.get(schema, to_json)
            if schema not in self._of_name:
                self._of_name[schema] = self.of(self.named[schema], depth)
            return self._of_name[schema]
        if isinstance(schema, list):
            return self._of_union([each for each in schema if each != "null"], depth)
        kind = schema.get("type")
        if "logicalType" in schema:
            convert: Converter = LOGICAL.get(f"{kind}-{schema['logicalType']}", to_json)
            return convert
        if not isinstance(kind, str):
            return self.of(kind, depth + 1)
        if kind in ("record", "error"):
            return _of_record({each["name"]: self.of(each["type"], depth + 1) for each in schema["fields"]})
        if kind == "array":
            return _of_array(self.of(schema["items"], depth + 1))
        if kind == "map":
            return _of_map(self.of(schema["values"], depth + 1))
        return SIMPLE.get(kind, to_json)

    def _of_union(self, branches: list[Any], depth: int) -> Converter | None:
        found = [self.of(branch, depth + 1) for branch in branches]
        if not any(found):
            return None
        only = found[0] if len(found) == 1 else None
        return to_json if only is None else lambda value: None if value is None else only(value)


def _of_record(fields: dict[str, Converter | None]) -> Converter | None:
    floats = [name for name, convert in fields.items() if convert is finite]
    changed = [(name, convert) for name, convert in fields.items() if convert not in (None, finite)]

    def convert_record(value: dict[str, Any]) -> dict[str, Any]:
        for name in floats:
            number = value[name]
            if number - number:  # NaN, if it is not finite; a call for each would take several times as long
                value[name] = finite(number)
        for name, convert in changed:
            value[name] = convert(value[name])
        return value

    return convert_record if floats or changed else None


def _of_array(convert: Converter | None) -> Converter | None:
    return None if convert is None else lambda value: list(map(convert, value))


def _of_map(convert: Converter | None) -> Converter | None:
    return None if convert is None else lambda value: {key: convert(item) for key, item in value.items()}


def _reader(holds_itself: bool) -> Callable[..., Any]:
    """Return fastavro's reader: the compiled one or, for recursive types, the one in pure Python. Values of recursive
    types may be nested as deeply as they are long: Python then raises RecursionError, and the compiled reader
    crashes."""
    from fastavro import _read_py, read

    _bound_decimals(read.LOGICAL_READERS)
    return _read_py.schemaless_reader if holds_itself else read.schemaless_reader


def _bound_decimals(readers: dict[str, Callable[..., Any]]) -> None:
    """Limit the size of decimals in `readers`: Python takes minutes for a number of a million bytes."""
    unbound = readers["bytes-decimal"]
    if isinstance(unbound, partial):
        return

    def bound(read: Callable[..., Any], data: bytes, *schemas: Any) -> Any:
        if len(data) * 8 > LARGEST_NUMBER:
            raise ValueError(f"a decimal of {len(data)} bytes is too large")
        return read(data, *schemas)

    readers["bytes-decimal"] = partial(bound, unbound)


class _Types:
    """Properties of the types in a schema. `holds_itself`: a type is recursive.

    The constructor raises DecoderError for arrays whose elements take no bytes, because a few bytes could claim any
    number of them, and for types with more than MAX_ZERO_BYTE_VALUES parts that take no bytes, such as a chain of
    records in which each contains the next one twice."""

    def __init__(self, schema: Any, named: dict[str, Any], path: str) -> None:
        self.named, self.path = named, path
        self.holds_itself = False
        self.has_free_parts = False
        """Whether values may have more parts than bytes."""
        self._weightless: dict[str, bool | None] = {}
        """By record name; None while the record is being examined."""
        self._free: dict[str, int] = {}
        """Number of parts that take no bytes, by record name; 0 while the record is being examined."""
        self._is_weightless(schema)
        self.has_free_parts = self._free_parts(schema) > 0 or any(self._free.values())

    def _free_parts(self, item: Any) -> int:
        """Return how many values that take no bytes are in each value of the type. (A union, and each element of an
        array or map, takes at least one byte, so the types in these are counted separately.)"""
        if isinstance(item, str):
            if item not in self.named:
                return int(item == "null")
            return self._free[item] if item in self._free else self._free_parts(self.named[item])
        if isinstance(item, list):
            for branch in item:
                self._free_parts(branch)
            return 0
        kind = item.get("type")
        if kind in ("array", "map"):
            self._free_parts(item["items" if kind == "array" else "values"])
            return 0
        if kind in ("record", "error"):
            self._free[item["name"]] = 0
            count = sum(self._free_parts(field["type"]) for field in item["fields"])
            count += bool(self._weightless[item["name"]])
            if count > MAX_ZERO_BYTE_VALUES:
                explanation = (
                    f"{item['name']} has {count} parts that take no bytes, at most {MAX_ZERO_BYTE_VALUES} are supported"
                )
                raise DecoderError(f"{self.path}: {explanation}")
            self._free[item["name"]] = count
            return count
        if kind == "fixed":
            return int(item.get("size") == 0)
        return self._free_parts(kind) if isinstance(kind, (str, list, dict)) else 0

    def _is_weightless(self, item: Any) -> bool:
        """Return True if a value of the type may take no bytes."""
        if isinstance(item, str):
            if item not in self.named:
                return item == "null"
            if item not in self._weightless:
                return self._is_weightless(self.named[item])
            self.holds_itself |= self._weightless[item] is None
            return bool(self._weightless[item])
        if isinstance(item, list):
            for branch in item:
                self._is_weightless(branch)
            return False
        kind = item.get("type")
        if kind == "array":
            if self._is_weightless(item["items"]):
                explanation = (
                    "arrays whose elements take no bytes are not supported, because the data does not bound them"
                )
                raise DecoderError(f"{self.path}: {explanation}")
            return False
        if kind == "map":
            self._is_weightless(item["values"])
            return False
        if kind in ("record", "error"):
            self._weightless[item["name"]] = None
            fields = [self._is_weightless(field["type"]) for field in item["fields"]]
            self._weightless[item["name"]] = all(fields)
            return all(fields)
        if kind == "fixed":
            return bool(item.get("size") == 0)
        return self._is_weightless(kind) if isinstance(kind, (str, list, dict)) else False
