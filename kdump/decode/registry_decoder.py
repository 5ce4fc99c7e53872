"""Decodes keys and values by the schemas of a registry's topic on a disk: the ID or GUID in each says by which.

Source: Confluent's wire formats (SchemaId: 0 and an ID, 1 and a GUID, or either in a header, which goes first). No
registry is contacted. What a schema does not fit whole is not decoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from kdump.core.record_columns import EVERY_ID
from kdump.decode.avro import needs_fastavro, schemas_payload
from kdump.decode.confluent import Payload, message_path
from kdump.decode.decoder_interface import (
    MAX_FRAMED_BYTES,
    NOTHING,
    DecodedPart,
    DecoderError,
    FormatError,
    RecordContext,
)
from kdump.decode.formats import json_value
from kdump.decode.known_schemas import HEADER, HEADERS, PREFIX, KnownSchemas, SchemaMark, mark_in, own_format_of
from kdump.decode.registry_sources import schemas_at
from kdump.io.errors import SourceError
from kdump.log.record import Record
from kdump.state.schema_registry import (
    DEFAULT_CONTEXT,
    HARD_DELETED,
    IGNORED,
    LIVE,
    SOFT_DELETED,
    SchemaVersion,
    split_subject,
)
from kdump.state.schema_registry_replay import HIGHEST

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

MAX_REFERENCES = 1000
"""Maximum number of schemas that a schema references, directly or not."""
MAX_CACHED = 500
"""Maximum number of IDs whose schemas are kept parsed."""
NUMBER_BYTES = 8
OLDER = "older than the schema's record: the ID may have been that of another schema"
FRAME = {True: 5, False: 17}
"""Bytes before the data, by whether they hold an ID, or a GUID."""
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Reading(NamedTuple):
    """A value that a schema fits. `indexes`: path to the Protobuf message, which begins at byte `start`."""

    value: Any
    indexes: tuple[int, ...] | None = None
    note: str = ""
    start: int = 0


Reader = Callable[[bytes, int, bytes, int], Reading]
"""(a key or value, start of the data in it, the bytes in which Protobuf's message indexes are, where) -> value. May
raise FormatError."""
Fit = tuple[SchemaVersion, Reading]
"""A schema that fits, and the value by it."""


class Candidate:
    """A schema by which a key or value may have been written, and its reader; a text says why there is none."""

    __slots__ = ("_make", "_reader", "version")

    def __init__(self, version: SchemaVersion, make: Callable[[KnownSchemas, SchemaVersion], Reader]) -> None:
        self.version, self._make = version, make
        self._reader: Reader | str | None = None

    def reader(self, registry: KnownSchemas) -> Reader:
        """Return the reader. Raises FormatError if there is none."""
        if self._reader is None:
            try:
                self._reader = self._make(registry, self.version)
            except DecoderError as error:
                self._reader = str(error)[:300]
        if isinstance(self._reader, str):
            raise FormatError(self._reader)
        return self._reader


class SchemaSource:
    """The schemas of a path, or of the registry on the same disk as the records, read when the first record needs them.
    `is_named`: the user has named them, so that each record is expected to have its schema there."""

    def __init__(self, place: str, read: Callable[[], KnownSchemas | None], *, is_named: bool) -> None:
        self.place, self.is_named = place, is_named
        self.highest_id = EVERY_ID if is_named else HIGHEST
        """The highest ID that the bytes of a number may be; EVERY_ID if the user expects IDs there."""
        self.problem = ""
        self._read = read
        self._known: KnownSchemas | None = None
        self._is_read = False

    def known(self) -> KnownSchemas | None:
        """Return the schemas; None if there are none."""
        if not self._is_read:
            self._is_read = True
            try:
                self._known = self._read()
            except SourceError as error:
                self.problem = str(error)
            if not self.is_named:
                self.highest_id = -1 if self._known is None else self._known.highest_id()
        return self._known


def named_source(path: str) -> SchemaSource:
    """Return the schemas at a path that the user has named. Raises DecoderError if there are none."""
    source = SchemaSource(path, lambda: schemas_at(path), is_named=True)
    if source.known() is None:
        raise DecoderError(source.problem)
    return source


class RegistryDecoder:
    """Decodes keys and values by the schemas of a registry."""

    def __init__(self, source: SchemaSource) -> None:
        self.source = source
        self._found: dict[int | bytes | None, list[Candidate]] = {}

    def make_reader(self, registry: KnownSchemas, version: SchemaVersion) -> Reader:
        """Return the reader of what was written by a schema. Raises DecoderError."""
        return _reader(registry, version)

    def skips(self, data: bytes | None, record: Record) -> bool:
        """Return whether a key or value has no schema, as may_hold_schema_ids of the core does; most have none."""
        if data is None:
            return True
        if record.header_count:
            return False
        if data[:1] == b"\0" and len(data) >= FRAME[True]:
            if self.source.is_named:
                return False
            number = int.from_bytes(data[1:5], "big")
            return not number or (len(data) == NUMBER_BYTES and number > self.source.highest_id)
        return data[:1] != b"\1" or len(data) < FRAME[False]

    def __call__(self, data: bytes, about: Callable[[], RecordContext]) -> DecodedPart:
        context = about()
        mark = mark_in(context.part, context.headers, data)
        if mark is None:
            return NOTHING
        is_named = self.source.is_named
        if not is_named and mark.where == PREFIX and (mark.id == 0 or own_format_of(context.topic)):
            return NOTHING
        registry = self.source.known()
        if registry is None:
            return DecodedPart(note=self.source.problem)
        mirrored = registry.mirrored_from(context.topic)
        if mirrored and not is_named:
            return DecodedPart(
                note=f"{_named(mark)} is of the registry of {mirrored}, from which the topic is mirrored"
            )
        candidates = self._candidates(registry, mark, context)
        if not candidates:
            if is_named or mark.where == HEADER:
                raise FormatError(f"no schema with {_named(mark)} in {self.source.place}")
            if mark.guid is not None:
                return NOTHING
            return self._other(data, f"no schema with {_named(mark)} in {self.source.place}")
        try:
            return self._decoded(registry, mark, candidates, data, context, mirrored)
        except FormatError as error:
            if is_named or mark.where == HEADER:
                raise
            return self._other(data, error.reason)

    @staticmethod
    def _other(data: bytes, reason: str) -> DecodedPart:
        """Return what is said of bytes that may hold an ID: nothing of those that have the size of a number."""
        return NOTHING if len(data) == NUMBER_BYTES else DecodedPart(note=reason)

    def _decoded(
        self,
        registry: KnownSchemas,
        mark: SchemaMark,
        candidates: list[Candidate],
        data: bytes,
        context: RecordContext,
        mirrored: str,
    ) -> DecodedPart:
        if len(data) > MAX_FRAMED_BYTES:
            raise FormatError(f"too large to decode: {len(data)} bytes, at most {MAX_FRAMED_BYTES}")
        at = start = FRAME[mark.guid is None]
        head = data
        if mark.where == HEADER:
            start, head = 0, dict(context.headers)[HEADERS[context.part]] or b""
        fits: list[Fit] = []
        reasons: list[str] = []
        for candidate in candidates:
            version = candidate.version
            try:
                fits.append((version, candidate.reader(registry)(data, start, head, at)))
            except FormatError as error:
                reasons.append(f"{_named(mark)}, {version.subject} version {version.version}: {error.reason}")
        if not fits:
            raise FormatError(reasons[0])
        version, reading = fits[0]
        shown: dict[str, Any]
        if mark.guid is None:
            shown = {"magic": 0, "schemaId": mark.id, "subject": version.subject, "version": version.version}
        else:
            guid = str(UUID(bytes=mark.guid))
            shown = {"magic": 1, "guid": guid, "subject": version.subject, "version": version.version}
        if reading.indexes is not None:
            shown["messageIndexes"] = list(reading.indexes)
        shown["data"] = reading.value
        note = _doubt(mark, fits, bool(reasons), context)
        if reading.note or mirrored:
            origin = "" if mark.guid is not None else f"mirrored from {mirrored}: the ID is that of its registry"
            note = "; ".join(filter(None, (reading.note, note, mirrored and origin)))
        return DecodedPart(shown, note=note) if note else DecodedPart(shown)

    def _candidates(self, registry: KnownSchemas, mark: SchemaMark, context: RecordContext) -> list[Candidate]:
        """Return the schemas with different texts that the mark may stand for, the likeliest first."""
        place = mark.id if mark.guid is None else mark.guid
        candidates = self._found.get(place)
        if candidates is None:
            if len(self._found) >= MAX_CACHED:
                self._found.clear()
            by_text: dict[str, SchemaVersion] = {}
            for each in registry.find_all(mark):
                by_text.setdefault(each.text, each)
            self._found[place] = candidates = [Candidate(version, self.make_reader) for version in by_text.values()]
        if len(candidates) < 2:
            return candidates
        usual = f"{context.topic}-{context.part}"

        def likeliness(candidate: Candidate) -> tuple[int, int, bool]:
            each = candidate.version
            is_newer = _is_older(context, each)
            certainty = 3 if each.state == IGNORED else 2 * is_newer + (each.state == HARD_DELETED)
            subject = 0 if split_subject(each.subject)[1] == usual else 1
            return certainty, subject, each.context != DEFAULT_CONTEXT

        return sorted(candidates, key=likeliness)


def _reader(registry: KnownSchemas, version: SchemaVersion) -> Reader:
    if version.schema_type == "JSON":
        return _json_reader(version.text)
    if version.schema_type == "PROTOBUF":
        return protobuf_reader(registry, version)
    if version.schema_type != "AVRO":
        raise DecoderError(f"schemas of type {version.schema_type[:40]} are not supported")
    payload = schemas_payload(avro_schemas(registry, version), f"{version.subject} version {version.version}")

    def read(data: bytes, start: int, head: bytes, at: int) -> Reading:
        value, left_over = payload(data, start, ())
        if left_over:
            raise FormatError(f"the schema does not fit: {left_over}")
        return Reading(value)

    return read


def avro_schemas(registry: KnownSchemas, version: SchemaVersion) -> list[Any]:
    """Return an Avro schema as JSON values, after those that it references. Raises DecoderError."""
    needs_fastavro()
    try:
        return [json.loads(reference.text) for reference in _with_references(registry, version)]
    except (ValueError, RecursionError) as error:
        raise DecoderError(f"not JSON: {type(error).__name__}: {error}") from None


def protobuf_reader(registry: KnownSchemas, version: SchemaVersion) -> Reader:
    """Return the reader of the messages of a Protobuf schema. Raises DecoderError."""
    from kdump.decode.protobuf import descriptors_payload

    payload = descriptors_payload(
        protobuf_descriptors(registry, version), f"{version.subject} version {version.version}"
    )
    return partial(_read_protobuf, payload)


def protobuf_descriptors(registry: KnownSchemas, version: SchemaVersion) -> FileDescriptorSet:
    """Return the descriptors of a Protobuf schema, after those that it references. Raises DecoderError."""
    from kdump.decode.proto_compiler import compiled

    texts: dict[str, str] = {}
    for reference in _with_references(registry, version):
        for name, place in reference.referenced():
            other = registry.version(*place)
            if other is not None and texts.setdefault(name, other.text) != other.text:
                raise DecoderError(f"two schemas are referenced as {name[:100]}")
    return compiled(version.text, texts)


def _with_references(registry: KnownSchemas, version: SchemaVersion) -> list[SchemaVersion]:
    """Return what a schema references, each after what it references itself, and the schema at the end. Raises
    DecoderError for references that are missing, in a circle, or too many."""
    versions: dict[tuple[str, int], SchemaVersion] = {}
    open_: set[tuple[str, int]] = set()
    stack = [((version.subject, version.version), version)]
    while stack:
        place, each = stack[-1]
        if place in versions:
            stack.pop()
            continue
        if place in open_:
            stack.pop()
            versions[place] = each
            continue
        open_.add(place)
        for _, needed in each.referenced():
            if needed in versions:
                continue
            other = registry.version(*needed)
            if other is None:
                raise DecoderError(f"it references {needed[0]} version {needed[1]}, which is not there")
            if needed in open_:
                raise DecoderError(f"its references are in a circle: {needed[0]} version {needed[1]}")
            stack.append((needed, other))
        if len(stack) + len(versions) > MAX_REFERENCES:
            raise DecoderError(f"it references more than {MAX_REFERENCES} schemas")
    return list(versions.values())


def _json_reader(text: str) -> Reader:
    """Return the reader of JSON values. They are not validated, but for the type of the whole value."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecoderError(f"not JSON: {type(error).__name__}: {error}") from None
    kind = schema.get("type") if isinstance(schema, dict) else None
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    names = [kind for kind in kinds if isinstance(kind, str)]
    types = tuple(each for name in names for each in JSON_TYPES.get(name, (object,)))

    def read(data: bytes, start: int, head: bytes, at: int) -> Reading:
        value = json_value(data[start:])
        is_number = isinstance(value, bool) and bool not in types and object not in types
        if types and (is_number or not isinstance(value, types)):
            raise FormatError(f"the schema does not fit: its type is {', '.join(names)[:100]}")
        return Reading(value)

    return read


def _read_protobuf(payload: Payload, data: bytes, start: int, head: bytes, indexes_at: int) -> Reading:
    """Read a Protobuf message. Its indexes are zigzag varints, or plain ones of older clients: what fits goes,
    zigzag first. Raises FormatError if the message does not fit whole."""
    readings: list[Reading] = []
    reasons: list[FormatError] = []
    for path, end in _message_paths(head, indexes_at, reasons):
        try:
            begin = start if head is not data else end
            value, unknown = payload(data, begin, path)
            if unknown:
                raise FormatError(f"the schema does not fit: {unknown}")
            readings.append(Reading(value, path, start=begin))
        except FormatError as error:
            reasons.append(error)
    if not readings:
        raise reasons[0]
    first, *others = readings
    if others and others[0] != first:
        return first._replace(note=f"message indexes {list(others[0].indexes or ())} fit, too")
    return first


def _message_paths(head: bytes, indexes_at: int, reasons: list[FormatError]) -> Iterator[tuple[tuple[int, ...], int]]:
    before = None
    for zigzag in (True, False):
        try:
            path = message_path(head, indexes_at, zigzag=zigzag)
        except FormatError as error:
            reasons.append(error)
            continue
        if path != before:
            yield path
        before = path


def _named(mark: SchemaMark) -> str:
    return f"ID {mark.id}" if mark.guid is None else f"GUID {mark.guid.hex()}"


def _is_older(context: RecordContext, version: SchemaVersion) -> bool:
    """Return whether a record is older than the record of its schema."""
    return context.timestamp is not None and version.timestamp is not None and context.timestamp < version.timestamp


def _doubt(mark: SchemaMark, fits: list[Fit], others_failed: bool, context: RecordContext) -> str:
    """Return why the schema may be another than that of the producer; empty if nothing says so."""
    version = fits[0][0]
    if len(fits) == 1 and not others_failed and version.state in (LIVE, SOFT_DELETED):
        return OLDER if mark.guid is None and _is_older(context, version) else ""
    if version.state == IGNORED:
        return f"by a schema that the registry ignores, {version.subject}: the ID was that of another already"
    if version.state == HARD_DELETED:
        return f"by a schema that is deleted for good, {version.subject}: its ID may have been given again"
    contexts = [other.context for other, _ in fits[1:] if other.context != version.context] if len(fits) > 1 else []
    others = list(dict.fromkeys(contexts))
    if others:
        return f"read with the schema of context {version.context}; those of {', '.join(others)} fit, too"
    if others_failed and version.context != DEFAULT_CONTEXT:
        return f"read with the schema of context {version.context}; others with this ID do not fit"
    return OLDER if mark.guid is None and _is_older(context, version) else ""
