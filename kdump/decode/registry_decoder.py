"""Decodes keys and values by the schemas of a registry's topic on a disk: the ID or GUID in each says by which.

Source: Confluent's wire formats (SchemaId: 0 and an ID, 1 and a GUID, or either in a header, which goes first). No
registry is contacted. What a schema does not fit whole is not decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kdump.cluster.schema_registries import SCHEMAS_TOPIC, find_registries, read_registry
from kdump.decode.avro import needs_fastavro, schemas_payload
from kdump.decode.decoder_interface import (
    MAX_FRAMED_BYTES,
    NOTHING,
    DecodedPart,
    DecoderError,
    FormatError,
    RecordContext,
)
from kdump.decode.formats import json_value
from kdump.forensics.registry_export import referenced
from kdump.forensics.registry_usage import HEADER, KnownSchemas, SchemaMark, mark_in
from kdump.log.errors import SourceError
from kdump.state.schema_registry import DEFAULT_CONTEXT, HARD_DELETED, SchemaVersion

MAX_REFERENCES = 1000
"""Maximum number of schemas that a schema references, directly or not."""
MAX_CACHED = 500
"""Maximum number of schemas that are kept parsed."""
FRAME = {True: 5, False: 17}
"""Bytes before the data, by whether they hold an ID, or a GUID."""
Reader = Callable[[bytes, int], Any]


class RegistryDecoder:
    """Decodes keys and values by the registry at `path`. The constructor raises DecoderError if there is none."""

    def __init__(self, path: str) -> None:
        self.path = path
        problems: list[str] = []
        try:
            found = find_registries([path], SCHEMAS_TOPIC, lambda error: problems.append(str(error))).registries
        except SourceError as error:
            raise DecoderError(str(error)) from None
        if len(found) != 1:
            reason = f"{len(found)} registries found, not one" if found else f"no {SCHEMAS_TOPIC} found"
            raise DecoderError(problems[0] if problems else f"{path}: {reason}")
        self.known = KnownSchemas(read_registry(found[0], keep_gone=True))
        self._found: dict[int | bytes | None, list[SchemaVersion]] = {}
        self._readers: dict[tuple[str, int, int], Reader | str] = {}

    def __call__(self, data: bytes, about: Callable[[], RecordContext]) -> DecodedPart:
        context = about()
        mark = mark_in(context.part, context.headers, data)
        if mark is None:
            return NOTHING
        versions = self._versions(mark)
        if not versions:
            raise FormatError(f"no schema with {_named(mark)} in {self.path}")
        if len(data) > MAX_FRAMED_BYTES:
            raise FormatError(f"too large to decode: {len(data)} bytes, at most {MAX_FRAMED_BYTES}")
        start = 0 if mark.where == HEADER else FRAME[mark.guid is None]
        fits: list[tuple[SchemaVersion, Any]] = []
        reasons: list[str] = []
        for version in versions:
            try:
                fits.append((version, self._read(version, data, start)))
            except FormatError as error:
                reasons.append(f"{_named(mark)}, {version.subject} version {version.version}: {error.reason}")
        if not fits:
            raise FormatError(reasons[0])
        version, value = fits[0]
        shown: dict[str, Any] = {"magic": int(mark.guid is not None)}
        shown |= {"schemaId": mark.id} if mark.guid is None else {"guid": version.guid}
        shown |= {"subject": version.subject, "version": version.version, "data": value}
        return DecodedPart(shown, note=_doubt(mark, fits, bool(reasons), context))

    def _versions(self, mark: SchemaMark) -> list[SchemaVersion]:
        """Return the versions with different texts that the mark may stand for."""
        place = mark.id if mark.guid is None else mark.guid
        found = self._found.get(place)
        if found is None:
            if len(self._found) >= MAX_CACHED:
                self._found.clear()
            by_text: dict[str, SchemaVersion] = {}
            for each in self.known.find(mark):
                by_text.setdefault(each.text, each)
            self._found[place] = found = list(by_text.values())
        return found

    def _read(self, version: SchemaVersion, data: bytes, start: int) -> Any:
        key = (version.subject, version.version, version.offset)
        reader = self._readers.get(key)
        if reader is None:
            if len(self._readers) >= MAX_CACHED:
                self._readers.clear()
            try:
                reader = self._reader(version)
            except DecoderError as error:
                reader = str(error)[:300]
            self._readers[key] = reader
        if isinstance(reader, str):
            raise FormatError(reader)
        return reader(data, start)

    def _reader(self, version: SchemaVersion) -> Reader:
        if version.schema_type == "JSON":
            return lambda data, start: json_value(data[start:])
        if version.schema_type != "AVRO":
            raise DecoderError(f"schemas of type {version.schema_type[:40]} in a registry are not supported")
        needs_fastavro()
        texts = [each.text for each in self._with_references(version)]
        try:
            schemas = [json.loads(text) for text in texts]
        except (ValueError, RecursionError) as error:
            raise DecoderError(f"not JSON: {type(error).__name__}: {error}") from None
        payload = schemas_payload(schemas, f"{version.subject} version {version.version}")

        def read(data: bytes, start: int) -> Any:
            value, left_over = payload(data, start, ())
            if left_over:
                raise FormatError("the schema does not fit: " + left_over.partition(";")[0])
            return value

        return read

    def _with_references(self, version: SchemaVersion) -> list[SchemaVersion]:
        """Return what a schema references, each after what it references itself, and the schema at the end. Raises
        DecoderError for references that are missing, in a circle, or too many."""
        found: dict[tuple[str, int], SchemaVersion] = {}
        open_: set[tuple[str, int]] = set()
        stack = [((version.subject, version.version), version)]
        while stack:
            place, each = stack[-1]
            if place in found:
                stack.pop()
                continue
            if place in open_:
                stack.pop()
                found[place] = each
                continue
            open_.add(place)
            for needed in referenced(each):
                if needed in found:
                    continue
                other = self.known.registry.find(*needed)
                if other is None:
                    raise DecoderError(f"it references {needed[0]} version {needed[1]}, which is not there")
                if needed in open_:
                    raise DecoderError(f"its references are in a circle: {needed[0]} version {needed[1]}")
                stack.append((needed, other))
            if len(stack) + len(found) > MAX_REFERENCES:
                raise DecoderError(f"it references more than {MAX_REFERENCES} schemas")
        return list(found.values())


def _named(mark: SchemaMark) -> str:
    return f"ID {mark.id}" if mark.guid is None else f"GUID {mark.guid.hex()}"


def _doubt(mark: SchemaMark, fits: list[tuple[SchemaVersion, Any]], others_failed: bool, context: RecordContext) -> str:
    """Return why the schema may be another than that of the producer; empty if nothing says so."""
    version = fits[0][0]
    if version.state == HARD_DELETED:
        return f"by a schema that is deleted for good, {version.subject}: its ID may have been given again"
    if len(fits) > 1:
        others = ", ".join(each.context for each, _ in fits[1:])
        return f"read with the schema of context {version.context}; those of {others} fit, too"
    if others_failed and version.context != DEFAULT_CONTEXT:
        return f"read with the schema of context {version.context}; others with this ID do not fit"
    if mark.guid is not None or context.timestamp is None or version.timestamp is None:
        return ""
    is_older = context.timestamp < version.timestamp
    return "older than the schema's record: the ID may have been that of another schema" if is_older else ""
