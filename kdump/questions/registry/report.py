"""Output of `kdump registry` for people: tables or, for chosen IDs, each schema in full."""

from __future__ import annotations

import json
from typing import Any

from kdump.questions.registry.answer import RegisteredVersion
from kdump.render.escape import printable
from kdump.render.state_tables import HeadedTables, StateTables
from kdump.render.stdout import Output
from kdump.render.times import iso

MAX_INDENTED = 200_000
"""Maximum number of characters of a schema that is shown indented."""


class RegistryReport(HeadedTables):
    """Writes versions, settings, changes or usage as tables; `details`: versions one by one, with their schemas."""

    def __init__(self, output: Output, tables: StateTables, *, details: bool) -> None:
        super().__init__(output, tables)
        self.details = details

    def add(self, answer: Any) -> None:
        if self.details and isinstance(answer, RegisteredVersion):
            self._write(answer)
        else:
            super().add(answer)

    def _write(self, version: RegisteredVersion) -> None:
        paint = self.output.paint
        if self.written:
            self.output.line("")
        self.written = True
        when = "" if version.timestamp is None else f", {iso(version.timestamp, self.tables.zone)}"
        ids = f"ID {version.id}, GUID {version.guid}"
        facts = f"{version.schemaType}, {ids}, {version.state}, offset {version.offset}{when}"
        self.output.line(printable(f"{version.subject} version {version.version}: {facts}"))
        for reference in version.references:
            named = [str(reference.get(name)) for name in ("name", "subject", "version")]
            self.output.line(printable(f"references {named[0]}: {named[1]} version {named[2]}"))
        for title, value in (("metadata", version.metadata), ("ruleSet", version.ruleSet)):
            if value is not None:
                self.output.line(printable(f"{title} {json.dumps(value, ensure_ascii=False)}"))
        for line in indented(version).splitlines():
            self.output.line(paint("    " + printable(line), ""))


def indented(version: RegisteredVersion) -> str:
    """Return the text of a schema for people: JSON with indents, other text as it is."""
    if version.schemaType == "PROTOBUF" or len(version.schema) > MAX_INDENTED:
        return version.schema
    try:
        return json.dumps(json.loads(version.schema), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return version.schema
