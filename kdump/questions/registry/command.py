"""Show a schema registry from its topic _schemas: subjects, versions, IDs, schemas, their use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import click

from kdump.cluster.schema_registries import RegistryLog
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import has_unmatched
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.state_options import Notes, limit_options, run_command
from kdump.command_line.typed_options import takes
from kdump.decode.known_schemas import KnownSchemas
from kdump.format.count_text import count_text
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.query import CommandOptions, LimitOptions, added, flag, group, history_option, option
from kdump.questions.registry.answer import RegisteredVersion, RegistrySetting, SchemaUsage
from kdump.questions.registry.run import DELETED, HISTORY, USAGE, VERSIONS, RegistryQuery, answers
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.state_tables import HeadedTables, StateTables
from kdump.render.stdout import Output
from kdump.render.times import iso
from kdump.state.as_of import OffsetOfSeveralLogs
from kdump.state.recorded_change import RecordedChange
from kdump.state.schema_registry import SchemaRegistry, SchemaVersion

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


EXAMPLES = """
\b
Examples:
  kdump registry /var/lib/kafka
  kdump registry /var/lib/kafka --subject 'orders-*' --history
  kdump registry /var/lib/kafka --usage --json | jq -c 'select(.state=="none")'
  kdump registry /var/lib/kafka --export schemas

\b
Exit status: 0 on success, 2 for a usage error, if a path could not be read (the others are shown), or if a log
does not reach the offset in --as-of.
"""


@dataclass(frozen=True)
class RegistryOptions(CommandOptions):
    """The options of the command."""

    deleted: bool = flag(
        "--deleted", help="Show what is deleted: softly, or for good but still in the log or a -delete directory."
    )
    usage: bool = flag("--usage", help="Show which schema IDs the records of each partition carry.")
    history: bool = history_option()
    out: str | None = option(
        "--export", metavar="DIR", help="Write a file for each version to this new directory, for import."
    )
    query: RegistryQuery = group(RegistryQuery)
    output: OutputOptions = added(output_options())
    reading: LimitOptions = added(limit_options)

    @property
    def shows_usage(self) -> bool:
        return self.usage or bool(self.query.topics)

    @property
    def show(self) -> str:
        if self.history:
            return HISTORY
        return USAGE if self.shows_usage else DELETED if self.deleted else VERSIONS


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 3))
@takes(RegistryOptions)
def command(options: RegistryOptions) -> None:
    """Show a schema registry as its topic _schemas has it: subjects, versions, IDs, schemas, and settings. A path is a
    log directory, a _schemas-0 directory, or a segment in it. The records are applied by the rules of Confluent's
    registry and of Karapace; no registry is contacted. Only --export writes anything."""
    shown = [name for name, on in (("--history", options.history), ("--usage", options.shows_usage)) if on]
    shown += ["--export"] * (options.out is not None) + ["--deleted"] * options.deleted
    if shown == ["--export", "--deleted"]:
        shown = []
    if options.query.carved is not None and not (options.deleted or options.shows_usage):
        raise click.UsageError("--carved needs --deleted or --usage")
    if len(shown) > 1:
        raise click.UsageError(f"{shown[0]} cannot be combined with {shown[1]}")
    run_command(RegistryCommand(options))


class RegistryCommand:
    """One run of the command."""

    def __init__(self, options: RegistryOptions) -> None:
        self.options, self.query = options, replace(options.query, show=options.show)
        shown = options.output
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        rows = RecordedChange if options.history else SchemaUsage if options.shows_usage else RegisteredVersion
        self.sink = shown.sink(
            self.output,
            lambda: RegistryReport(self.output, tables, details=bool(self.query.ids) and rows is RegisteredVersion),
            (rows,),
        )
        self.notes = Notes(self.sink)
        self.shown = 0
        """Number of answers about this registry; `parts`: of registries of which one is written to a directory each."""
        self.parts = 0
        self.out: OutputDirectory | None = None

    def run(self) -> None:
        options = self.options
        try:
            self.out = None if options.out is None else OutputDirectory(options.out, options.query.paths)
            with Progress("registry") as progress:
                run = options.reading.run(
                    unreadable=self.notes.add_unreadable, begin=self._begin, found=self._end, **progress.listeners
                )
                self.notes.add_all(answers(replace(self.query, run=run)), self._add)
        except OutputError as error:
            raise click.UsageError(str(error)) from None
        except OffsetOfSeveralLogs as error:
            raise click.UsageError(f"--as-of: {error}") from None
        self.sink.end()

    def _begin(self, registry: RegistryLog) -> None:
        """Begin one of several registries."""
        self.parts += 1
        self.sink.part(registry.log.path)

    def _end(self, found: tuple[RegistryLog, KnownSchemas]) -> None:
        log, schemas = found
        options, path, registry = self.options, path_text(log.log.path), schemas.registry
        if self.out is not None:
            deleted = schemas.unresolved() if options.deleted else ()
            count = export(registry, self.out, str(self.parts) if self.parts else "", deleted)
            print_error(f"{count_text(count, 'version')} of {path} written to {path_text(str(options.out))}")
            self.shown += 1
        if not self.shown and registry.end_offset and not has_unmatched():
            print_error(f"{path}: nothing to show below offset {registry.end_offset}")
        offset = self.query.moment.offset
        self.notes.failed |= offset is not None and registry.end_offset <= offset
        self.shown = 0

    def _add(self, answer: Any) -> None:
        is_hidden = isinstance(answer, RegistrySetting) and self.options.output.names is not None
        if self.out is None and not is_hidden:
            self.shown += 1
            self.sink.add(answer)
