"""Replays the records of a schema registry's topic, which cluster/schema_registries.py reads.
Source: see kdump.state.schema_registry.

A record that a registry skips changes nothing, and is noted as a problem."""

from __future__ import annotations

import json
from typing import Any

from kdump import jsonl
from kdump.format.count_text import plain_count
from kdump.log.record import Record
from kdump.state.as_of import Change, ChangeListener, differences
from kdump.state.internal_records import MAX_PROBLEMS
from kdump.state.schema_registry import (
    GLOBAL_CONTEXT,
    HARD_DELETED,
    IGNORED,
    LIVE,
    SOFT_DELETED,
    SchemaRegistry,
    Setting,
    SkippedRecord,
    context_of,
    split_subject,
)

MAX_RECORD_BYTES = 1024 * 1024
"""Maximum size in bytes of a key or value that is decoded; that of a batch, by default."""
HIGHEST = (1 << 31) - 1
DEEPEST = 50
"""Maximum depth of keys and values: what shows them is recursive. (A schema in them is a text.)"""
SETTINGS = {"CONFIG": "config", "MODE": "mode", "CONTEXT": "context", "ASSOC": "association"}
"""Kinds of settings by the type of their keys."""
ASSOCIATION_KEY = ("tenant", "resourceNamespace", "resourceType", "resourceName", "associationType", "subject")
FIELDS = ("id", "schemaType", "references", "metadata", "ruleSet", "schema")
"""Fields of a schema that --history shows."""


class RegistryReplay:
    """Applies records to `registry`; calls `on_change` with each change. `keep_gone`: remember what is deleted for
    good."""

    on_change: ChangeListener | None = None

    def __init__(self, registry: SchemaRegistry, *, keep_gone: bool = False) -> None:
        self.registry, self.keep_gone = registry, keep_gone
        self.offset = 0
        self.timestamp: int | None = None
        self.record = ""
        self.skipped = 0

    def note(self, problem: str) -> None:
        self.registry.unapplied = self.registry.unapplied or problem
        self._list(problem)

    def _list(self, problem: str) -> None:
        self.skipped += 1
        if len(self.registry.problems) < MAX_PROBLEMS:
            self.registry.problems.append(problem)

    def apply(self, record: Record) -> None:
        """Apply a record. Never raises for what is in it."""
        assert record.offset is not None
        self.offset, self.timestamp = record.offset, record.timestamp
        self.registry.end_offset = max(self.registry.end_offset, record.offset + 1)
        if record.is_control:
            return
        try:
            if max(record.keySize, record.valueSize) > MAX_RECORD_BYTES:
                raise SkippedRecord(
                    f"too large: key {plain_count(record.keySize, 'byte')}"
                    f", value {plain_count(record.valueSize, 'byte')}"
                )
            self._apply(record.key, record.value)
        except SkippedRecord as reason:
            self.note(f"at offset {self.offset}: skipped: {reason}")

    def register(self, value: dict[str, Any]) -> None:
        """Apply a version as an export states it, like the record that a registry writes of it."""
        self.offset = self.registry.end_offset
        self.registry.end_offset += 1
        raw = json.dumps(value, separators=(",", ":")).encode()
        try:
            if len(raw) > MAX_RECORD_BYTES:
                raise SkippedRecord(f"too large: {plain_count(len(raw), 'byte')}")
            self._schema(value | {"magic": 1}, raw)
        except SkippedRecord as reason:
            self.note(f"version {self.offset}: skipped: {reason}")

    def _apply(self, raw_key: bytes | None, raw: bytes | None) -> None:
        key = _object(raw_key, "key")
        if key is None:
            raise SkippedRecord("no key")
        self.record = kind = str(key.get("keytype"))
        if kind == "NOOP":
            return
        if kind == "SCHEMA":
            self._schema(key, raw)
            return
        if kind not in SETTINGS and kind not in ("DELETE_SUBJECT", "CLEAR_SUBJECT"):
            raise SkippedRecord(f"unknown key type {kind[:40]!r}")
        value = _object(raw, "value")
        if kind in SETTINGS:
            self._setting(kind, key, value)
        elif value is not None:
            subject = value.get("subject")
            if not isinstance(subject, str):
                raise SkippedRecord("its value has no subject")
            if kind == "DELETE_SUBJECT":
                self._delete_subject(subject, _number(value, "version"))
            else:
                self._clear_subject(subject)

    def _schema(self, key: dict[str, Any], raw: bytes | None) -> None:
        subject, version = key.get("subject"), _number(key, "version")
        if key.get("magic") not in (0, 1) or isinstance(key.get("magic"), bool):
            raise SkippedRecord(f"unknown magic {str(key.get('magic'))[:20]} in its key")
        if not isinstance(subject, str):
            raise SkippedRecord("its key has no subject")
        value = _object(raw, "value")
        if value is None:
            self._tombstone(subject, version)
            return
        assert raw is not None
        schema_id, text = _number(value, "id"), value.get("schema")
        if not isinstance(text, str):
            raise SkippedRecord("its value has no schema")
        registry = self.registry
        for other, number in registry.versions_of_id(context_of(subject), schema_id)[:1]:
            row = registry.rows(other).get(number)
            if row is not None and not registry.has_text(row, text):
                self._duplicate(subject, version, value, raw)
                return
        row = registry.add_row(subject, version, value, raw, self.offset, self.timestamp)
        before = registry.put(row)
        if before is not None and not registry.has_text(before, text):
            self._gone(before)
        if self.on_change is not None:
            old = None if before is None else self._fields(before)
            self._report(subject, version, old, self._fields(row))

    def _duplicate(self, subject: str, version: int, value: dict[str, Any], raw: bytes) -> None:
        registry = self.registry
        if len(registry.duplicates) < MAX_PROBLEMS:
            registry.duplicates.append((self.offset, subject, version, value["id"]))
        if self.keep_gone or self.on_change is not None:
            row = registry.add_row(subject, version, value, raw, self.offset, self.timestamp)
            if self.keep_gone:
                registry.gone.append((row, IGNORED, self.offset))
            if self.on_change is not None:
                fields = {name: (None, new) for name, new in self._fields(row).items()}
                self._change("schema", _name(subject, version), "ignored", fields)
        self._list(
            f"at offset {self.offset}: {subject} version {version} is ignored: ID {value['id']} is that of another"
            " schema already"
        )

    def _tombstone(self, subject: str, version: int) -> None:
        row = self.registry.drop(subject, version)
        if row is None:
            return
        self._gone(row)
        if self.on_change is not None:
            self._report(subject, version, self._fields(row), None)

    def _gone(self, row: int) -> None:
        if self.keep_gone:
            self.registry.gone.append((row, HARD_DELETED, self.offset))

    def _delete_subject(self, subject: str, last: int) -> None:
        registry, is_any = self.registry, False
        for version, row in registry.rows(subject).items():
            is_any = is_any or version <= last
            if version <= last and not registry.is_deleted(row):
                registry.mark_deleted(row)
                registry.put_id(row)
                if self.on_change is not None:
                    fields = {"state": (LIVE, SOFT_DELETED)}
                    self._change("schema", _name(subject, version), "changed", fields)
        if not is_any:  # its versions were deleted for good and compacted, or the log lacks them
            self._change("subject", subject, "ignored", {"version": (None, last)})
            if len(self.registry.remarks) < MAX_PROBLEMS:
                self.registry.remarks.append(
                    f"at offset {self.offset}: DELETE_SUBJECT of {subject}, of which no version is left below it: a"
                    " registry ignores it; one before 5.2 may stop there with a NullPointerException"
                )

    def _clear_subject(self, subject: str) -> None:
        """Remove the soft-deleted versions of a subject or, if only a context is named, of its subjects."""
        registry = self.registry
        context, rest = split_subject(subject)
        names = [subject]
        if not rest:
            everywhere = context == GLOBAL_CONTEXT
            names = [each for each in registry.subjects if everywhere or context_of(each) == context]
        for name in names:
            for version in [each for each, row in registry.rows(name).items() if registry.is_deleted(row)]:
                self._tombstone(name, version)

    def _setting(self, record: str, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        kind, settings = SETTINGS[record], self.registry.settings
        name = key.get("context" if kind == "context" else "subject")
        if name is not None and not isinstance(name, str):
            raise SkippedRecord("its key has no subject")
        names = [str(key.get(field)) for field in ASSOCIATION_KEY] if kind == "association" else [name or ""]
        place = (kind, *names)
        before = settings.pop(place, None)
        if value is not None:
            settings[place] = Setting(kind, name, value, self.offset, self.timestamp)
        if self.on_change is not None and (before is not None or value is not None):
            fields = differences(None if before is None else before.value, value)
            action = "removed" if value is None else "created" if before is None else "changed"
            self._change(kind, name or "(global)", action, fields)

    def _fields(self, row: int) -> dict[str, Any]:
        version = self.registry.version(row)
        return {"state": version.state} | {name: version.value[name] for name in FIELDS if name in version.value}

    def _report(self, subject: str, version: int, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        action = "removed" if new is None else "created" if old is None else "changed"
        self._change("schema", _name(subject, version), action, differences(old, new))

    def _change(self, entity: str, name: str, action: str, fields: dict[str, tuple[Any, Any]]) -> None:
        if self.on_change is not None:
            self.on_change(Change(self.offset, self.timestamp, self.record, entity, name, action, fields))


def _name(subject: str, version: int) -> str:
    return f"{subject} version {version}"


def _object(data: bytes | None, part: str) -> dict[str, Any] | None:
    """Return a JSON object; None if there is no value, or the empty one that Karapace writes."""
    if not data:
        return None
    try:
        value = jsonl.parsed(data)
    except RecursionError:
        raise SkippedRecord(f"its {part} is nested too deeply") from None
    except ValueError as error:
        raise SkippedRecord(f"its {part} is not JSON: {error}"[:200]) from None
    if value is None or value == "":
        return None
    if not isinstance(value, dict):
        raise SkippedRecord(f"its {part} is not a JSON object")
    if data.count(b"[") + data.count(b"{") > DEEPEST and _is_deeper(value, DEEPEST):
        raise SkippedRecord(f"its {part} is nested too deeply")
    return value


def _is_deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    return not depth or any(
        _is_deeper(member, depth - 1) for member in (value.values() if isinstance(value, dict) else value)
    )


def _number(value: dict[str, Any], name: str) -> int:
    """Return a number that a registry reads as an int of Java."""
    number = value.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise SkippedRecord(f"its {name} is not a number")
    if not 0 <= number <= HIGHEST:
        raise SkippedRecord(f"its {name} {str(number)[:40]} is not between 0 and {HIGHEST}")
    return number
