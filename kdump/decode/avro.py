"""Avro by a schema from a file, with fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

from kdump.decode.confluent import Payload
from kdump.decode.jsonable import jsonable
from kdump.decode.said import DecoderError, FormatError


def avro_payload(path: str) -> Payload:
    """What decodes by the schema in the file `path`: an .avsc, or a schema registry's answer that holds one. Raises
    DecoderError."""
    try:
        import fastavro
    except ImportError:
        raise DecoderError("Avro needs fastavro: pip install 'kdump[avro]'") from None
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
    _refuse_weightless(parsed, named, path)

    def payload(data: bytes, start: int, indexes: tuple[int, ...]) -> tuple[Any, str]:
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            value = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # whatever the bytes make fastavro stumble over
            where = min(stream.tell(), len(data))
            raise FormatError(f"the schema does not fit: {type(error).__name__}: {error}"[:300], where) from None
        left = len(data) - stream.tell()
        note = f"{left} {'byte is' if left == 1 else 'bytes are'} left over: is it the schema?" if left else ""
        return jsonable(value), note

    return payload


def _refuse_weightless(schema: Any, named: dict[str, Any], path: str) -> None:
    """Raises DecoderError for arrays whose elements take no bytes: a few bytes could claim any number of them."""
    seen: set[str] = set()

    def walk(item: Any) -> bool:
        """Whether a value of the schema may take no bytes."""
        if isinstance(item, str):
            if item in named and item not in seen:
                seen.add(item)
                return walk(named[item])
            return item == "null"
        if isinstance(item, list):
            for branch in item:
                walk(branch)
            return False
        kind = item.get("type")
        if kind == "array":
            if walk(item["items"]):
                raise DecoderError(f"{path}: an array whose elements take no bytes, which nothing bounds")
            return False
        if kind == "map":
            walk(item["values"])
            return False
        if kind in ("record", "error", "request"):
            seen.add(item.get("name", ""))
            weightless = [walk(field["type"]) for field in item.get("fields", [])]
            return all(weightless)
        if kind == "fixed":
            return bool(item.get("size") == 0)
        return walk(kind) if isinstance(kind, (str, list, dict)) and kind != "enum" else False

    walk(schema)
