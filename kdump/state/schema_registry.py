"""The state of a schema registry, as the records of its topic (_schemas) define it.

Source: Confluent's KafkaStoreMessageHandler and InMemoryCache; Karapace's KafkaSchemaReader. Karapace writes an empty
value where Confluent's registry writes null."""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kdump import jsonl
from kdump.format.codec.source import library
from kdump.state.internal_records import MAX_PROBLEMS, ROOM_ALONE

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
LIVE, SOFT_DELETED, HARD_DELETED, IGNORED = "live", "softDeleted", "hardDeleted", "ignored"
ROW_BYTES = 400
"""Approximate bytes that a version takes in addition to its text."""


class SkippedRecord(ValueError):
    """A registry skips the record, for this reason."""


class SchemaVersion(NamedTuple):
    """A version of a subject. `removed_at`: offset of the record that removed it for good, if one did."""

    subject: str
    version: int
    id: int
    state: str
    offset: int
    timestamp: int | None
    removed_at: int | None
    value: dict[str, Any]
    """The JSON value of its record."""

    @property
    def schema_type(self) -> str:
        kind = self.value.get("schemaType")
        return kind if isinstance(kind, str) else "AVRO"

    @property
    def context(self) -> str:
        return context_of(self.subject)

    @property
    def text(self) -> str:
        text: str = self.value["schema"]
        return text

    @property
    def references(self) -> list[dict[str, Any]]:
        found = self.value.get("references")
        return [reference for reference in found if isinstance(reference, dict)] if isinstance(found, list) else []

    def referenced(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """Yield the name of each reference, and the subject and version that it means."""
        for reference in self.references:
            subject, number = reference.get("subject"), reference.get("version")
            if isinstance(subject, str) and isinstance(number, int):
                yield str(reference.get("name")), (qualified(subject, self.subject), number)

    @property
    def guid(self) -> str:
        return guid_of(self.value)


class Setting(NamedTuple):
    """A compatibility config, a mode, a context or an association, and the record that set it."""

    kind: str
    name: str | None
    value: dict[str, Any]
    offset: int
    timestamp: int | None


class SchemaRegistry:
    """Versions by subject and by ID, and what else a registry holds. Texts are compressed, and each version is a row of
    arrays: there may be a hundred thousand. Most subjects have one version, and most IDs one subject, so that a number
    then takes the place of a dict."""

    def __init__(self) -> None:
        self.settings: dict[tuple[str, ...], Setting] = {}
        self.gone: list[tuple[int, str, int]] = []
        """What the log still has of versions that are not in the state: row, state, offset of the record that removed
        it."""
        self.duplicates: list[tuple[int, str, int, int]] = []
        """Records whose ID had another text already: offset, subject, version, ID."""
        self.problems: list[str] = []
        self.unapplied = ""
        """The first problem that is not one of the duplicates: something that may belong in the state is not there."""
        self.remarks: list[str] = []
        """About records that change nothing, and stop an old registry."""
        self.end_offset = 0
        self._rows: dict[str, int | dict[int, int]] = {}
        """By subject: rows by version, or the row of the only version."""
        self._by_id: dict[str, dict[int, int | dict[str, int]]] = {}
        """By context and ID: versions by subject, or a row with the only subject and version."""
        self._subjects: list[str] = []
        self._versions = array("q")
        self._ids = array("q")
        self._offsets = array("q")
        self._timestamps = array("q")
        self._places = array("q")
        self._hashes = array("q")
        self._deleted = bytearray()
        self._texts = PackedTexts()

    def note_skipped(self, count: int) -> None:
        """Say how many problems there are if they are too many to list."""
        if count > MAX_PROBLEMS:
            self.problems.append(f"… and {count - MAX_PROBLEMS} more such problems")

    def add_row(
        self, subject: str, version: int, value: dict[str, Any], raw: bytes, offset: int, timestamp: int | None
    ) -> int:
        """Keep a version and return its row. Raises SkippedRecord if there is no memory left for it."""
        if len(self._ids) * ROW_BYTES + self._texts.memory > ROOM_ALONE:
            raise SkippedRecord(f"too many schemas to keep in memory ({ROOM_ALONE} bytes)")
        self._subjects.append(subject)
        self._versions.append(version)
        self._ids.append(value["id"])
        self._offsets.append(offset)
        self._timestamps.append(-1 if timestamp is None else timestamp)
        self._places.append(self._texts.add(raw))
        self._hashes.append(hash(value["schema"]))
        self._deleted.append(value.get("deleted") is True)
        return len(self._ids) - 1

    def rows(self, subject: str) -> dict[int, int]:
        """Return the rows of a subject by version."""
        found = self._rows.get(subject, {})
        return found if isinstance(found, dict) else {self._versions[found]: found}

    def put(self, row: int) -> int | None:
        """Make a row the version that it is of, and return the row that was; also finds it by its ID."""
        subject, version = self._subjects[row], self._versions[row]
        known = self._rows.get(subject)
        self.put_id(row)
        if known is None:
            self._rows[subject] = row
            return None
        rows = self.rows(subject)
        before = rows.get(version)
        rows[version] = row
        self._rows[subject] = row if len(rows) == 1 else rows
        return before

    def drop(self, subject: str, version: int) -> int | None:
        """Remove a version, and return its row; None if there is none."""
        rows = self.rows(subject)
        row = rows.pop(version, None)
        if row is not None:
            self._drop_id(row)
            if rows:
                self._rows[subject] = rows
            else:
                del self._rows[subject]
        return row

    def put_id(self, row: int) -> None:
        subject, version = self._subjects[row], self._versions[row]
        ids = self._by_id.setdefault(context_of(subject), {})
        others = ids.get(self._ids[row])
        if others is None or (not isinstance(others, dict) and self._subjects[others] == subject):
            ids[self._ids[row]] = row
        elif isinstance(others, dict):
            others[subject] = version
        else:
            ids[self._ids[row]] = {self._subjects[others]: self._versions[others], subject: version}

    def _drop_id(self, row: int) -> None:
        subject, version, schema_id = self._subjects[row], self._versions[row], self._ids[row]
        ids = self._by_id.get(context_of(subject), {})
        rows = ids.get(schema_id)
        if isinstance(rows, dict):
            if rows.get(subject) == version:
                del rows[subject]
            if not rows:
                del ids[schema_id]
        elif rows is not None and (self._subjects[rows], self._versions[rows]) == (subject, version):
            del ids[schema_id]

    def offset_of(self, row: int) -> int:
        return self._offsets[row]

    def has_text(self, row: int, text: str) -> bool:
        return self._hashes[row] == hash(text)

    def is_deleted(self, row: int) -> bool:
        return bool(self._deleted[row])

    def mark_deleted(self, row: int) -> None:
        self._deleted[row] = 1

    def version(self, row: int, state: str = "", removed: int | None = None) -> SchemaVersion:
        """Return the version in this row."""
        time = self._timestamps[row]
        return SchemaVersion(
            self._subjects[row],
            self._versions[row],
            self._ids[row],
            state or (SOFT_DELETED if self._deleted[row] else LIVE),
            self._offsets[row],
            None if time == -1 else time,
            removed,
            jsonl.parsed(self._texts.get(self._places[row])),
        )

    def find(self, subject: str, version: int) -> SchemaVersion | None:
        row = self.rows(subject).get(version)
        return None if row is None else self.version(row)

    def find_id(self, context: str, schema_id: int) -> SchemaVersion | None:
        """Return a version with this ID in a context, live or soft-deleted; None if there is none."""
        for subject, version in self.versions_of_id(context, schema_id):
            schema = self.find(subject, version)
            if schema is not None and schema.id == schema_id:
                return schema
        return None

    def versions_of_id(self, context: str, schema_id: int) -> tuple[tuple[str, int], ...]:
        """Return the last version of each subject that has had this ID in a context, and is still there."""
        rows = self._by_id.get(context, {}).get(schema_id)
        if rows is None:
            return ()
        return tuple(rows.items()) if isinstance(rows, dict) else ((self._subjects[rows], self._versions[rows]),)

    def versions(self) -> Iterator[SchemaVersion]:
        """Yield the versions in the state, sorted by subject and version."""
        for subject in sorted(self._rows):
            rows = self.rows(subject)
            for version in sorted(rows):
                yield self.version(rows[version])

    def removed(self) -> Iterator[SchemaVersion]:
        """Yield what the log still has of versions that are not in the state, in order of removal."""
        for row, state, offset in self.gone:
            yield self.version(row, state, offset)

    def ids(self) -> Iterator[int]:
        """Yield the IDs that resolve, those of each context."""
        for ids in self._by_id.values():
            yield from ids

    @property
    def subjects(self) -> list[str]:
        return list(self._rows)

    @property
    def contexts(self) -> list[str]:
        return sorted(context for context, ids in self._by_id.items() if ids)


def context_of(subject: str) -> str:
    """Return the context of a subject: .emea of :.emea:orders-value, "." of orders-value."""
    return split_subject(subject)[0]


def split_subject(subject: str) -> tuple[str, str]:
    """Return the context and the rest of a subject (QualifiedSubject of Confluent's client)."""
    if not subject.startswith(":."):
        return DEFAULT_CONTEXT, subject
    context, _, rest = subject[1:].partition(":")
    return context, rest


def qualified(subject: str, parent: str) -> str:
    """Return a referenced subject as its parent means it: in the parent's context, unless it names one; `:.:` is the
    default one."""
    context = context_of(parent)
    if subject.startswith(":.:"):
        return subject[3:]
    return subject if context == DEFAULT_CONTEXT or subject.startswith(":.") else f":{context}:{subject}"


def guid_of(value: dict[str, Any]) -> str:
    """Return the GUID of a schema: the MD5 of its text, references, metadata and rules, as a UUID; of an encoded schema
    the one that is stored. Source: Schema.updateHash and MD5 of Confluent's registry."""
    stored = value.get("md5")
    if isinstance(stored, str):
        import base64
        import binascii

        try:
            digest = base64.b64decode(stored, validate=True)
        except (binascii.Error, ValueError):
            digest = b""
        if len(digest) == 16:
            return _uuid(digest)
    md5 = hashlib.md5(_bytes(value.get("schema")), usedforsecurity=False)
    if not value.keys().isdisjoint(HASHED):
        for part in _hashed(value):
            md5.update(part)
    return _uuid(md5.digest())


def _uuid(digest: bytes) -> str:
    digits = digest.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


HASHED = ("references", "metadata", "ruleSet")


def _hashed(value: dict[str, Any]) -> Iterator[bytes]:
    """Yield what a GUID is the hash of, after the text."""
    for reference in _list(value.get("references")):
        if isinstance(reference, dict):
            yield _bytes(reference.get("name")) + _bytes(reference.get("subject"))
            version = reference.get("version")
            if isinstance(version, int):
                yield (version & 0xFFFFFFFF).to_bytes(4, "big")
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        yield b"\1"
        for tag, names in sorted(_dict(metadata.get("tags")).items()):
            yield _bytes(tag) + b"".join(map(_bytes, sorted(map(str, _list(names)))))
        for name, setting in sorted(_dict(metadata.get("properties")).items()):
            yield _bytes(name) + _bytes(setting)
        yield from map(_bytes, sorted(map(str, _list(metadata.get("sensitive")))))
    rules = value.get("ruleSet")
    if isinstance(rules, dict):
        yield b"\1"
        for kind in ("migrationRules", "domainRules", "encodingRules"):
            for rule in _list(rules.get(kind)):
                yield from _hashed_rule(_dict(rule))
        yield _bytes(rules.get("enableAt"))


def _hashed_rule(rule: dict[str, Any]) -> Iterator[bytes]:
    for name in ("name", "doc", "kind", "mode", "type"):
        yield _bytes(rule.get(name))
    yield from map(_bytes, sorted(map(str, _list(rule.get("tags")))))
    for name, setting in sorted(_dict(rule.get("params")).items()):
        yield _bytes(name) + _bytes(setting)
    for name in ("expr", "onSuccess", "onFailure"):
        yield _bytes(rule.get(name))
    if rule.get("disabled") is True:
        yield b"\1"


def _bytes(value: Any) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


CHUNK_BYTES = 8 * 1024
"""A chunk is decompressed for each text that is read: LZ4, because it does that in two microseconds."""
LENGTH = struct.Struct(">I")


class PackedTexts:
    """Byte strings, each found again by the number that `add` returned for it."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._packed = 0
        self._codec = library("lz4.block", "lz4", "PackedTexts")
        self._open = bytearray()
        self._read = lru_cache(maxsize=256)(self._decompress)

    def add(self, data: bytes) -> int:
        place = len(self._chunks) << 32 | len(self._open)
        self._open += LENGTH.pack(len(data)) + data
        if len(self._open) >= CHUNK_BYTES:
            self._chunks.append(self._codec.compress(bytes(self._open)))
            self._packed += len(self._chunks[-1])
            self._open.clear()
        return place

    def get(self, place: int) -> bytes:
        number, start = place >> 32, place & 0xFFFFFFFF
        chunk = self._read(number) if number < len(self._chunks) else bytes(self._open[start:])
        start = start if number < len(self._chunks) else 0
        (length,) = LENGTH.unpack_from(chunk, start)
        return chunk[start + LENGTH.size : start + LENGTH.size + length]

    @property
    def memory(self) -> int:
        """Bytes that they take."""
        return self._packed + len(self._open)

    def _decompress(self, number: int) -> bytes:
        chunk: bytes = self._codec.decompress(self._chunks[number])
        return chunk
