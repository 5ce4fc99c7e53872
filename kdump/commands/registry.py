"""`kdump registry`: a schema registry, as its topic on the disk has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.cluster.read_groups import CoordinatorLog
from kdump.cluster.schema_registries import (
    FoundRegistries,
    RegistryLog,
    carved_logs,
    find_registries,
    read_registry,
    versions_in_deleted_logs,
)
from kdump.commands.input_files import print_error
from kdump.commands.name_options import selected_names, topic_filter, topic_option
from kdump.commands.state_options import Notes, StateOptions, parse_as_of, run_command
from kdump.commands.typed_options import CommandOptions, argument, flag, group, many, option, takes
from kdump.forensics.answers import RecordedChange
from kdump.forensics.groups_answer import change_object
from kdump.forensics.output_directory import OutputDirectory, OutputError
from kdump.forensics.registry_answer import RegisteredVersion, SchemaUsage, setting_answer, version_answer
from kdump.forensics.registry_export import export
from kdump.forensics.registry_usage import KnownSchemas, logs_with_records, usage
from kdump.format.count_text import count_text
from kdump.log import file_system
from kdump.log.errors import SourceError
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.log.run import QUIET_RUN
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.render.registry_report import RegistryReport
from kdump.render.state_tables import StateTables
from kdump.state.as_of import AsOf, Change
from kdump.state.schema_registry import LIVE, SchemaRegistry, SchemaVersion

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

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    subjects: tuple[str, ...] = many(
        "--subject", metavar="GLOB", help="Show only these subjects (a glob, a /regex/); repeatable."
    )
    ids: tuple[int, ...] = many("--id", type=int, help="Show schemas with this ID in full; repeatable.")
    deleted: bool = flag(
        "--deleted", help="Show what is deleted: softly, or for good but still in the log or a -delete directory."
    )
    usage: bool = flag("--usage", help="Show which schema IDs the records of each partition carry.")
    topics: tuple[str, ...] = topic_option("Like --usage, only for these topics")
    out: str | None = option(
        "--export", metavar="DIR", help="Write a file for each version to this new directory, for import."
    )
    carved: str | None = option(
        "--carved", metavar="DIR", help="Also look for deleted schemas in what kdump carve --out has written to DIR."
    )
    schemas_topic: str = option(
        "--schemas-topic", metavar="TOPIC", default=SCHEMAS_TOPIC, help=f"Topic of the registry.  [{SCHEMAS_TOPIC}]"
    )
    state: StateOptions = group(StateOptions)

    @property
    def shows_usage(self) -> bool:
        return self.usage or bool(self.topics)


@click.command(epilog=EXAMPLES)
@takes(RegistryOptions)
def command(options: RegistryOptions) -> None:
    """Show a schema registry as its topic _schemas has it: subjects, versions, IDs, schemas, and settings. A path is a
    log directory, a _schemas-0 directory, or a segment in it. The records are applied by the rules of Confluent's
    registry and of Karapace; no registry is contacted. Only --export writes anything."""
    shown = [name for name, on in (("--history", options.state.history), ("--usage", options.shows_usage)) if on]
    shown += ["--export"] * (options.out is not None) + ["--deleted"] * options.deleted
    if shown == ["--export", "--deleted"]:
        shown = []
    if options.carved is not None and not (options.deleted or options.shows_usage):
        raise click.UsageError("--carved needs --deleted or --usage")
    if len(shown) > 1:
        raise click.UsageError(f"{shown[0]} cannot be combined with {shown[1]}")
    moment = parse_as_of(options.state.as_of, options.state.output.zone)
    run_command(RegistryCommand(options, moment))


class RegistryCommand:
    """One run of the command."""

    def __init__(self, options: RegistryOptions, moment: AsOf) -> None:
        self.options = options
        self.moment = moment
        shown = options.state.output
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        rows = RecordedChange if options.state.history else SchemaUsage if options.shows_usage else RegisteredVersion
        self.sink = shown.sink(
            self.output,
            lambda: RegistryReport(self.output, tables, details=bool(options.ids) and rows is RegisteredVersion),
            (rows,),
        )
        self.notes = Notes(self.sink)
        self.subject = topic_filter(options.subjects, "--subject")
        self.topic = topic_filter(options.topics)
        self.ids = selected_names(options.ids, "--id")
        self.reading = options.state.reading.run(unreadable=self.notes.add_unreadable)
        self.shown = 0

    def run(self) -> None:
        options = self.options
        found = self._find()
        try:
            out = None if options.out is None else OutputDirectory(options.out, options.paths)
            for number, each in enumerate(found.registries):
                if len(found.registries) > 1:
                    self.sink.part(each.log.path)
                self._registry(each, found, out, str(number + 1) if len(found.registries) > 1 else "")
        except OutputError as error:
            raise click.UsageError(str(error)) from None
        self.sink.end()

    def _find(self) -> FoundRegistries:
        paths, topic = self.options.paths, self.options.schemas_topic
        found = FoundRegistries([], [], [])
        readable = []
        for path in paths:
            try:
                find_registries([path], topic, QUIET_RUN)
                readable.append(path)
            except SourceError as error:
                self.notes.add_unreadable(error)
        if readable:
            found = find_registries(readable, topic, self.reading)
        for log in found.older:
            print_error(f"{path_text(log.path)}: not read; another copy of it ends at the same offset or a higher one")
        if self.options.shows_usage and readable:
            found = self._with_lost(found)
        if not found.registries and not self.notes.failed:
            self.notes.add_unreadable(SourceError(f"{', '.join(paths)}: no {topic} found"))
        if self.moment.offset is not None and len(found.registries) > 1:
            raise click.UsageError("--as-of: an offset applies to a single log; pass one, or use a time")
        if self.options.carved is not None:
            carved = self._carved(self.options.carved)
            found = found._replace(
                registries=[each._replace(deleted=(*each.deleted, *carved)) for each in found.registries]
            )
        clusters = [each.cluster for each in found.registries]
        for each in found.registries:
            if clusters.count(each.cluster) > 1 and each.log.partition:
                self.notes.add(each.log.path, "a registry refuses a topic with several partitions; each is shown alone")
        return found

    def _carved(self, path: str) -> tuple[CoordinatorLog, ...]:
        try:
            return tuple(carved_logs(path, self.reading))
        except SourceError as error:
            self.notes.add_unreadable(error)
            return ()

    def _with_lost(self, found: FoundRegistries) -> FoundRegistries:
        """Return the registries with an empty one for each cluster that has none: its records still carry IDs."""
        if not found.directories:
            self.notes.add_unreadable(SourceError("--usage needs a log directory"))
            return found._replace(registries=[])
        topic, known = self.options.schemas_topic, {each.cluster for each in found.registries}
        lost = {cluster: each.path for cluster, each in found.directories if cluster not in known}
        empty = [RegistryLog(cluster, CoordinatorLog(topic, 0, path, ()), ()) for cluster, path in lost.items()]
        return found._replace(registries=[*found.registries, *empty])

    def _registry(self, found: RegistryLog, all_found: FoundRegistries, out: OutputDirectory | None, name: str) -> None:
        options, path = self.options, path_text(found.log.path)
        history = self._history(path) if options.state.history else None
        wants_gone = options.deleted or options.shows_usage or bool(options.ids)
        before = self.shown
        with Progress("registry") as progress:
            directories = [each for cluster, each in all_found.directories if cluster == found.cluster]
            logs = list(logs_with_records(directories, self.topic)) if options.shows_usage else []
            paths = [each for log in (found.log, *logs) for each in log.segments]
            progress.total = sum(file_system.getsize(each) for each in paths if file_system.isfile(each))
            run = replace(self.reading, more=progress.more)
            registry = read_registry(
                found,
                self.moment,
                on_change=history,
                keep_gone=wants_gone,
                run=run,
            )
            gone = versions_in_deleted_logs(found.deleted, registry, run) if wants_gone else []
            home = "" if not directories else directories[0].path
            known = KnownSchemas(registry, home, [version for _, version in gone])
            for each in usage(logs, known, self.notes.add, run):
                if self._has_id(each.id) and self._has_subject(each.subjects):
                    self._add(each)
        if out is not None and not options.shows_usage:
            count = export(registry, out, name, known.unresolved() if options.deleted else ())
            print_error(f"{count_text(count, 'version')} of {path} written to {path_text(str(options.out))}")
            self.shown += 1
        elif history is None and not options.shows_usage:
            self._versions(registry, path, gone)
        if self.shown == before and not any(
            (*self.subject.unmatched(), *self.ids.unmatched(), *self.topic.unmatched())
        ):
            print_error(f"{path}: nothing to show below offset {registry.end_offset}")
        if not found.log.segments and self.shown > before:
            print_error(f"{path}: no {options.schemas_topic} found, so no ID resolves")
        if found.log.segments or not options.shows_usage:
            self.notes.all(path, registry.problems)
        if self.moment.offset is not None and registry.end_offset <= self.moment.offset:
            self.notes.add(path, f"ends at offset {registry.end_offset}; this is the state at its end")
            self.notes.failed = True

    def _versions(
        self, registry: SchemaRegistry, path: str, elsewhere: list[tuple[CoordinatorLog, SchemaVersion]]
    ) -> None:
        options = self.options
        for each in registry.versions():
            self.ids.add(each.id)
            if self.subject(each.subject) and self._has_id(each.id) and (each.state != LIVE or not options.deleted):
                self._add(version_answer(path, each))
        if options.deleted or options.ids:
            gone = [(path, each) for each in registry.removed()]
            gone += [(path_text(log.path), each) for log, each in elsewhere]
            for source, each in gone:
                self.ids.add(each.id)
                if self.subject(each.subject) and self._has_id(each.id):
                    self._add(version_answer(source, each))
        if options.deleted or options.ids or options.state.output.names is not None:
            return
        for setting in registry.settings.values():
            if not options.subjects or (setting.name and self.subject(setting.name)):
                self._add(setting_answer(path, setting))

    def _has_id(self, schema_id: int | None) -> bool:
        if schema_id is not None:
            self.ids.add(schema_id)
        return not self.options.ids or schema_id in self.options.ids

    def _has_subject(self, subjects: Iterable[str]) -> bool:
        return not self.options.subjects or any(map(self.subject, subjects))

    def _add(self, answer: Any) -> None:
        self.shown += 1
        self.sink.add(answer)

    def _history(self, source: str) -> Callable[[Change], None]:
        def on_change(change: Change) -> None:
            subject = change.name.rpartition(" version ")[0] if change.entity == "schema" else change.name
            if not self._has_subject([subject]) or not self._changes_id(change):
                return
            self._add(change_object(source, change))

        return on_change

    def _changes_id(self, change: Change) -> bool:
        found = change.fields.get("id", (None, None))
        for each in found:
            self.ids.add(each)
        return not self.options.ids or any(each in self.options.ids for each in found)
