"""Writes the versions of a registry as files that a registry imports, in an order in which references resolve."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from kdump.log.output_directory import OutputDirectory
from kdump.state.schema_registry import SchemaRegistry, SchemaVersion

UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
LONGEST_NAME = 100
KEYS = ("subject", "version", "id", "schemaType", "references", "metadata", "ruleSet", "schema")


def in_order(registry: SchemaRegistry) -> Iterator[SchemaVersion]:
    """Yield all versions, each after those that it references, else in order of their records; a circle of references
    is broken anywhere."""
    rows = [
        (registry.offset_of(row), subject, version)
        for subject in registry.subjects
        for version, row in registry.rows(subject).items()
    ]
    done: set[tuple[str, int]] = set()
    for _, subject, version in sorted(rows):
        # A stack in place of recursion: references may be as deep as there are versions.
        stack = [(subject, version)]
        entered: set[tuple[str, int]] = set()
        while stack:
            place = stack[-1]
            found = None if place in done else registry.find(*place)
            if found is None:
                stack.pop()
                continue
            if place not in entered:
                entered.add(place)
                needed = (place for _, place in found.referenced())
                stack += [each for each in needed if each not in done and each not in entered]
                if stack[-1] != place:
                    continue
            stack.pop()
            done.add(place)
            yield found


def import_request(version: SchemaVersion) -> dict[str, Any]:
    """Return the body of POST /subjects/SUBJECT/versions in mode IMPORT. A registry ignores `subject` and `deleted`,
    which are for whoever imports it: a soft-deleted version has to be deleted again."""
    value = {"schemaType": "AVRO"} | version.value | {"subject": version.subject, "version": version.version}
    request = {name: value[name] for name in KEYS if value.get(name) not in (None, [], {})}
    return request | ({"deleted": True} if version.state != "live" else {})


def export(registry: SchemaRegistry, out: OutputDirectory, folder: str, deleted: Iterable[SchemaVersion] = ()) -> int:
    """Write one file for each version to `folder` (a name, or empty), and those of `deleted` ones after them. Return
    their number. Raises OutputError."""
    count = 0
    with out.synced_once():
        for version in chain(in_order(registry), deleted):
            count += 1
            subject = UNSAFE.sub("_", version.subject)[:LONGEST_NAME]
            name = f"{count:06}.{subject}.v{version.version}.json"
            line = json.dumps(import_request(version), ensure_ascii=True, indent=1)
            out.write(f"{folder}/{name}" if folder else name, line.encode() + b"\n")
    return count
