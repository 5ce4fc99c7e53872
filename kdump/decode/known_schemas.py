"""What may be a schema ID in a key or value, and the schemas of a registry that it may stand for.

Source: Confluent's wire formats: 0 and an ID of 4 bytes, 1 and a GUID of 16 bytes, or either in a header (SchemaId,
HeaderSchemaIdSerializer)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdump.io import file_system
from kdump.log.internal_topics import system_topic
from kdump.log.record import Record
from kdump.state.schema_registry import DEFAULT_CONTEXT, HARD_DELETED, SchemaRegistry, SchemaVersion

PREFIX, HEADER = "prefix", "header"
HEADERS = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
ID = struct.Struct(">I")
GUID_BYTES = 16
OWN_FORMATS = {
    "mm2": "the topic has the name of one of MirrorMaker's, whose records begin with a version",
    "streams": "the topic has the name of one of Kafka Streams, which stores more than the values",
}
"""Topics whose records begin with other numbers, by what the name of their decoder begins with."""


class SchemaMark(NamedTuple):
    """An ID, or the bytes of a GUID, in a key or value."""

    part: str
    where: str
    id: int | None
    guid: bytes | None


def marks_of(record: Record) -> Iterator[SchemaMark]:
    """Yield what may be a schema ID in the record; a header goes before the first bytes, as for Confluent's
    deserializers."""
    headers = record.headers if record.header_count else []
    for part, data in (("key", record.key), ("value", record.value)):
        mark = None if data is None else mark_in(part, headers, data)
        if mark is not None:
            yield mark


def mark_in(part: str, headers: list[tuple[bytes, bytes | None]], data: bytes) -> SchemaMark | None:
    """Return what may be a schema ID in a key or value; None if there is nothing."""
    if headers:
        named = dict(headers).get(HEADERS[part])
        mark = None if named is None else _mark(part, HEADER, named)
        if mark is not None:
            return mark
    return _mark(part, PREFIX, data)


def _mark(part: str, where: str, data: bytes) -> SchemaMark | None:
    first = data[:1]
    if first == b"\0" and len(data) >= 1 + ID.size:
        return SchemaMark(part, where, ID.unpack_from(data, 1)[0], None)
    if first == b"\1" and len(data) >= 1 + GUID_BYTES:
        return SchemaMark(part, where, None, data[1 : 1 + GUID_BYTES])
    return None


def own_format_of(topic: str | None) -> str | None:
    """Return why the records of a topic with this name begin with other numbers than IDs; None if they do not."""
    system = system_topic(topic)
    return None if system is None else OWN_FORMATS.get(system.decoder.partition("-")[0])


class KnownSchemas:
    """The schemas of a registry, by ID in any context and by GUID, those that are deleted for good included. `home`:
    the log directory of its topic, empty if it is not from a disk; `deleted`: versions that only its deleted logs
    have."""

    def __init__(self, registry: SchemaRegistry, home: str = "", deleted: Iterable[SchemaVersion] = ()) -> None:
        self.registry, self.home = registry, home
        self._deleted = list(deleted)
        self.gone: dict[int, list[SchemaVersion]] = {}
        self.ignored: dict[int, list[SchemaVersion]] = {}
        for gone in (*registry.removed(), *self._deleted):
            if gone.state == HARD_DELETED:
                self.gone.setdefault(gone.id, []).append(gone)
            else:
                self.ignored.setdefault(gone.id, []).append(gone)
        self._guids: dict[bytes, list[SchemaVersion]] | None = None
        self._aliases: dict[str, str] = {}

    def find(self, mark: SchemaMark) -> list[SchemaVersion]:
        """Return the versions that a mark may stand for, of the default context first; those of deleted ones only if
        there are no others."""
        if mark.id is not None:
            return self._alive(mark.id) or self.gone.get(mark.id, [])
        if self._guids is None:
            self._guids = {}
            for candidate in (*self.registry.versions(), *self.registry.removed(), *self._deleted):
                self._guids.setdefault(bytes.fromhex(candidate.guid.replace("-", "")), []).append(candidate)
        return self._guids.get(mark.guid or b"", [])

    def find_all(self, mark: SchemaMark) -> list[SchemaVersion]:
        """Like `find`, with those that are deleted for good or ignored behind the others."""
        if mark.id is None:
            return self.find(mark)
        return [*self._alive(mark.id), *self.gone.get(mark.id, []), *self.ignored.get(mark.id, [])]

    def version(self, subject: str, number: int) -> SchemaVersion | None:
        """Return a version of a subject, the last deleted one if there is no other."""
        gone = (version for versions in self.gone.values() for version in reversed(versions))
        return self.registry.find(subject, number) or next(
            (candidate for candidate in gone if (candidate.subject, candidate.version) == (subject, number)), None
        )

    def unresolved(self) -> Iterator[SchemaVersion]:
        """Yield the last deleted version of each ID that does not resolve in its context, unless its subject has
        another version with that number."""
        found: dict[tuple[str, int], SchemaVersion] = {}
        for versions in self.gone.values():
            for version in versions:
                found[version.context, version.id] = version
        for place, version in sorted(found.items(), key=lambda item: item[1].offset):
            if not self.registry.find_id(*place) and not self.registry.find(version.subject, version.version):
                yield version

    def only(self, number: int) -> SchemaVersion | None:
        """Return a version of the only schema with an ID; None if there is none, or others with the ID."""
        versions = self.find_all(SchemaMark("value", PREFIX, number, None))
        return versions[0] if versions and all(each.text == versions[0].text for each in versions) else None

    def highest_id(self) -> int:
        """Return the highest ID; -1 if there is none."""
        return max((*self.registry.ids(), *self.gone, *self.ignored), default=-1)

    def mirrored_from(self, topic: str | None) -> str:
        """Return the alias of the cluster from which MirrorMaker mirrors a topic of this registry's cluster; empty if
        none is known."""
        if not self.home or topic is None:
            return ""
        source = self._aliases.get(topic)
        if source is None:
            ends = [number for number, letter in enumerate(topic) if letter == "." and number]
            source = self._aliases[topic] = next((topic[:end] for end in ends if self._is_mirrored(topic[:end])), "")
        return source

    def _is_mirrored(self, alias: str) -> bool:
        names = (f"{alias}.checkpoints.internal-0", f"{alias}.heartbeats-0")
        return any(file_system.isdir(os.path.join(self.home, name)) for name in names)

    def _alive(self, schema_id: int) -> list[SchemaVersion]:
        contexts = sorted(self.registry.contexts, key=lambda context: (context != DEFAULT_CONTEXT, context))
        return [version for version in (self.registry.find_id(context, schema_id) for context in contexts) if version]
