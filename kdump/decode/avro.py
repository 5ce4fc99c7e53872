"""Avro by a schema from a file, with fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from kdump.decode.confluent import Payload
from kdump.decode.jsonable import LARGEST_NUMBER, jsonable
from kdump.decode.said import DecoderError, FormatError
from kdump.extras import how_to_install


def avro_payload(path: str) -> Payload:
    """What decodes by the schema in the file `path`: an .avsc, or a schema registry's answer that holds one. Raises
    DecoderError."""
    try:
        import fastavro
    except ImportError:
        raise DecoderError(f"Avro needs fastavro: {how_to_install('avro')}") from None
    try:
        with open(path, "rb") as file:
            schema = json.loads(file.read())
        if isinstance(schema, dict) and "type" not in schema and isinstance(schema.get("schema"), str):
            schema = json.loads(schema["schema"])
        named: dict[str, Any] = {}
        parsed = fastavro.parse_schema(schema, named_schemas=named)
    except OSError as error:
        raise DecoderError(f"{path}: {error.strerror}") from None
    except Exception as error:  # fastavro's own are of many kinds
        raise DecoderError(f"{path}: not an Avro schema: {type(error).__name__}: {error}") from None
    read = _reader(_Types(parsed, named, path).holds_itself)

    def payload(data: bytes, start: int, indexes: tuple[int, ...]) -> tuple[Any, str]:
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            value = read(stream, parsed, None)
        except Exception as error:  # whatever the bytes make fastavro stumble over
            where = min(stream.tell(), len(data))
            if isinstance(error, RecursionError):
                raise FormatError("nested too deep", where) from None
            raise FormatError(f"the schema does not fit: {type(error).__name__}: {error}"[:300], where) from None
        left = len(data) - stream.tell()
        note = f"{left} {'byte is' if left == 1 else 'bytes are'} left over: is it the schema?" if left else ""
        return jsonable(value), note

    return payload


def _reader(holds_itself: bool) -> Callable[..., Any]:
    """fastavro's reader: the compiled one, or the plain one for types that hold themselves. Values of those may be as
    deep as they are long, which Python refuses, and which crashes the compiled one."""
    from fastavro import _read_py, read

    _bound_decimals(read.LOGICAL_READERS)
    return _read_py.schemaless_reader if holds_itself else read.schemaless_reader


def _bound_decimals(readers: dict[str, Callable[..., Any]]) -> None:
    """Python takes minutes for a number of a million bytes."""
    unbound = readers["bytes-decimal"]
    if isinstance(unbound, partial):
        return

    def bound(read: Callable[..., Any], data: bytes, *schemas: Any) -> Any:
        if len(data) * 8 > LARGEST_NUMBER:
            raise ValueError(f"a decimal of {len(data)} bytes")
        return read(data, *schemas)

    readers["bytes-decimal"] = partial(bound, unbound)


class _Types:
    """What the types of a schema are like. Raises DecoderError, when it is made, for arrays whose elements take no
    bytes: a few bytes could claim any number of them."""

    def __init__(self, schema: Any, named: dict[str, Any], path: str) -> None:
        self.named = named
        self.path = path
        self.holds_itself = False
        self._weightless: dict[str, bool | None] = {}
        """By the name of the record; None: one that is being looked at."""
        self._is_weightless(schema)

    def _is_weightless(self, item: Any) -> bool:
        """Whether a value of the type may take no bytes."""
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
                raise DecoderError(f"{self.path}: an array whose elements take no bytes, which nothing bounds")
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
