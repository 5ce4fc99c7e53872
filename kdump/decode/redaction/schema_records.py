"""Records of a schema registry's topic, for bundles: without secrets and, if names are replaced, with other names of
subjects, contexts, types and fields. A schema with other names still reads the same bytes.

Each record is made anew from what is known of it, so that nothing else is left."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from kdump.log.pseudonyms import Pseudonyms
from kdump.log.record import Record
from kdump.state.schema_registry import split_subject
from kdump.state.secrets import is_secret

KEY_TYPES = ("SCHEMA", "CONFIG", "MODE", "CONTEXT", "ASSOC", "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP")
NUMBERS = ("version", "id", "magic")
LEVELS = re.compile(r"NONE|(BACKWARD|FORWARD|FULL)(_TRANSITIVE)?|READONLY(_OVERRIDE)?|READWRITE|IMPORT|FORWARD")
"""Values of compatibilityLevel and mode."""
NAMED = ("tenant", "resourceNamespace", "resourceName", "resourceId", "alias")
WORDS = ("keytype", "resourceType", "associationType", "lifecycle")
HEADERS = (b"X-Registry-Version", b"X-Origin-Host")
"""Keys of the headers that Karapace writes."""
MASK = "***"
AVRO_TYPES = frozenset(
    [
        *("null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "error", "enum"),
        *("array", "map", "fixed"),
    ]
)
LOGICAL_TYPES = re.compile(r"[a-z-]{1,40}")
NUMBER_KEYWORDS = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "size", "precision", "scale"),
    ]
)
SCHEMA_KEYWORDS = frozenset(
    ["items", "additionalProperties", "additionalItems", "not", "contains", "if", "then", "else"]
)
LIST_KEYWORDS = frozenset(["oneOf", "anyOf", "allOf", "prefixItems"])
NAMED_KEYWORDS = frozenset(["properties", "definitions", "$defs", "patternProperties"])
PROTO_WORDS = frozenset(
    [
        *("syntax", "edition", "package", "import", "public", "weak", "message", "enum", "oneof", "map"),
        *("repeated", "optional", "required", "reserved", "to", "max", "extensions", "extend", "group"),
        *("service", "rpc", "returns", "stream", "true", "false", "double", "float", "int32", "int64", "uint32"),
        *("uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
        *("google", "protobuf", "Timestamp", "Duration", "Any", "Struct", "Value", "ListValue", "NullValue"),
        *("Empty", "FieldMask", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value"),
        *("UInt32Value", "BoolValue", "StringValue", "BytesValue"),
    ]
)
PROTO_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<other>[-+]?[0-9][\w.+-]*|[{}()<>\[\];=,.:])",
    re.DOTALL,
)


class Unclear(Exception):
    """Raised for a record that a registry would not write, or in which a name may be that cannot be found."""


def kept_schema_record(record: Record, names: Pseudonyms | None) -> tuple[bytes | None, bytes | None]:
    """Return the key and the value of a record of a registry's topic, without secrets, and with other names if `names`
    are given. Raises Unclear."""
    if {key for key, _ in record.headers} - set(HEADERS):
        raise Unclear
    key = _object(record.key)
    if key is None or str(key.get("keytype")) not in KEY_TYPES:
        raise Unclear
    value = _object(record.value)
    try:
        if names is None:
            kept = value if value is None else _without_secrets(value)
            return record.key, record.value if kept == value else _bytes(kept)
        new_value = None if value is None else _Names(names).value(value)
        return _bytes(_Names(names).key(key)), record.value and _bytes(new_value)
    except RecursionError:
        raise Unclear from None


def _object(data: bytes | None) -> dict[str, Any] | None:
    if not data or data in (b"null", b'""'):
        return None
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        raise Unclear from None
    if not isinstance(parsed, dict):
        raise Unclear
    return parsed


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _without_secrets(value: Any) -> Any:
    """Return the value of a record in which the properties of metadata and the parameters of rules that are secrets,
    or are said to be, are masked, and without the hash that was made with them."""
    if isinstance(value, list):
        return [_without_secrets(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    sensitive = value.get("sensitive")
    for name, each in value.items():
        if name == "properties" and isinstance(each, dict) and isinstance(sensitive, list):
            each = {key: MASK if key in sensitive else text for key, text in each.items()}
        found[name] = MASK if isinstance(each, str) and each != MASK and is_secret(name) else _without_secrets(each)
    if found != value:
        found.pop("md5", None)
    return found


class _Names:
    """Replaces names in keys, values and schemas."""

    def __init__(self, names: Pseudonyms) -> None:
        self.names = names

    def key(self, key: dict[str, Any]) -> dict[str, Any]:
        return dict(self._plain(key))

    def value(self, value: dict[str, Any]) -> dict[str, Any]:
        renamed = dict(self._plain(value))
        schema = value.get("schema")
        if schema is None:
            return renamed
        kind = value.get("schemaType") or "AVRO"
        writers: dict[str, Callable[[str], str]] = {"AVRO": self._avro, "JSON": self._json, "PROTOBUF": self.protobuf}
        if not isinstance(schema, str) or not isinstance(kind, str) or kind not in writers:
            raise Unclear
        references = value.get("references") or []
        if not isinstance(references, list) or not all(isinstance(reference, dict) for reference in references):
            raise Unclear
        renamed["schemaType"] = kind
        renamed["references"] = [self._reference(reference, kind) for reference in references]
        renamed["schema"] = writers[kind](schema)
        return renamed

    def _plain(self, value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the fields but for those of a schema."""
        for name, each in value.items():
            if name == "subject":
                yield name, each if each is None else self.subject(each)
            elif name == "context":
                yield name, self._context(each)
            elif (
                (name in NUMBERS and isinstance(each, int))
                or (name in ("deleted", "frozen") and isinstance(each, bool))
                or (name in ("compatibilityLevel", "mode") and isinstance(each, str) and LEVELS.fullmatch(each))
            ):
                yield name, each
            elif name in WORDS and isinstance(each, str):
                yield name, each if re.fullmatch(r"[A-Za-z_]{1,20}", each) else self.names.of("name", each)
            elif name in NAMED and isinstance(each, str):
                yield name, self.names.of("name", each)

    def subject(self, subject: Any) -> str:
        if not isinstance(subject, str):
            raise Unclear
        context, rest = split_subject(subject)
        suffix = next((ending for ending in ("-value", "-key") if rest.endswith(ending)), "")
        name = rest[: len(rest) - len(suffix)]
        start = "" if not subject.startswith(":.") else f":{self._context(context)}:"
        return start + (self.names.topic(name) + suffix if suffix else self.names.of("subject", name))

    def _context(self, context: Any) -> str:
        if not isinstance(context, str):
            raise Unclear
        return "." + self.names.of("context", context.lstrip("."))

    def _reference(self, reference: dict[str, Any], kind: str) -> dict[str, Any]:
        name, version = reference.get("name"), reference.get("version")
        if not isinstance(name, str) or not isinstance(version, int):
            raise Unclear
        name = {"AVRO": self.dotted, "PROTOBUF": self._file, "JSON": self._word}[kind](name)
        return {"name": name, "subject": self.subject(reference.get("subject")), "version": version}

    def _word(self, name: str) -> str:
        """Return the replacement of a name, which is valid as a name in each kind of schema."""
        return self.names.of("n", name).replace("-", "_")

    def dotted(self, name: str) -> str:
        return ".".join(map(self._word, name.split(".")))

    def _file(self, path: str) -> str:
        return path if path.startswith("google/protobuf/") else self._word(path) + ".proto"

    def _avro(self, schema: str) -> str:
        return json.dumps(self.avro(_parsed(schema)), separators=(",", ":"))

    def avro(self, schema: Any) -> Any:
        if isinstance(schema, str):
            return schema if schema in AVRO_TYPES else self.dotted(schema)
        if isinstance(schema, list):
            return [self.avro(each) for each in schema]
        if not isinstance(schema, dict):
            raise Unclear
        renamed: dict[str, Any] = {}
        for key, value in schema.items():
            if key in ("type", "items", "values"):
                renamed[key] = self.avro(value)
            elif key in ("name", "namespace") and isinstance(value, str):
                renamed[key] = self.dotted(value)
            elif key == "fields" and isinstance(value, list):
                renamed[key] = [self.avro(each) for each in value]
            elif key == "symbols" and isinstance(value, list):
                renamed[key] = [self._word(str(each)) for each in value]
            elif (key == "logicalType" and isinstance(value, str) and LOGICAL_TYPES.fullmatch(value)) or (
                key in NUMBER_KEYWORDS and isinstance(value, int)
            ):
                renamed[key] = value
        return renamed

    def _json(self, schema: str) -> str:
        return json.dumps(self.json_schema(_parsed(schema)), separators=(",", ":"))

    def json_schema(self, schema: Any) -> Any:
        if isinstance(schema, (bool, list)):
            return schema if isinstance(schema, bool) else [self.json_schema(each) for each in schema]
        if not isinstance(schema, dict):
            raise Unclear
        renamed: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "type":
                kinds = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
                kept = [each for each in kinds if re.fullmatch("object|array|string|number|integer|boolean|null", each)]
                renamed[key] = kept if isinstance(value, list) else "".join(kept)
            elif key in SCHEMA_KEYWORDS or (key in LIST_KEYWORDS and isinstance(value, list)):
                renamed[key] = self.json_schema(value)
            elif key in NAMED_KEYWORDS and isinstance(value, dict):
                renamed[key] = {self._word(name): self.json_schema(each) for name, each in value.items()}
            elif key == "required" and isinstance(value, list):
                renamed[key] = [self._word(str(each)) for each in value]
            elif key == "$ref" and isinstance(value, str):
                renamed[key] = "/".join(
                    part if part in ("#", "definitions", "$defs", "") else self._word(part) for part in value.split("/")
                )
            elif key in NUMBER_KEYWORDS and isinstance(value, (int, float)):
                renamed[key] = value
        return renamed

    def protobuf(self, schema: str) -> str:
        """Return the text of a Protobuf schema with other names, without comments and options."""
        tokens = list(_proto_tokens(schema))
        out: list[str] = []
        position = 0
        while position < len(tokens):
            kind, token = tokens[position]
            position += 1
            starts = not out or out[-1] in (";", "{", "}")
            if (token == "option" and starts) or token == "[":
                position = _end_of_option(tokens, position, ";" if token == "option" else "]")
            elif kind == "text" and out[-2:] == ["syntax", "="]:
                out.append(token if token.strip("\"'") in ("proto2", "proto3") else '""')
            elif kind == "text":
                out.append(f'"{self._file(token[1:-1]) if out[-1] in IMPORTS else self._word(token[1:-1])}"')
            else:
                out.append(token if kind == "other" or token in PROTO_WORDS else self._word(token))
        return " ".join(out).replace(" . ", ".").replace(" ;", ";").replace(" .", ".") + "\n"


IMPORTS = ("import", "public", "weak")


def _parsed(schema: str) -> Any:
    try:
        return json.loads(schema)
    except (ValueError, RecursionError):
        raise Unclear from None


def _proto_tokens(schema: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(schema):
        match = PROTO_TOKEN.match(schema, position)
        if match is None:
            raise Unclear
        position = match.end()
        if match.lastgroup is not None:
            yield match.lastgroup, match[0]


def _end_of_option(tokens: list[tuple[str, str]], position: int, end: str) -> int:
    """Return the position after an option; it may have braces and brackets in it."""
    depth = 0
    while position < len(tokens):
        token = tokens[position][1]
        position += 1
        if token == end and not depth:
            return position
        depth += (token in ("{", "[")) - (token in ("}", "]"))
    raise Unclear
