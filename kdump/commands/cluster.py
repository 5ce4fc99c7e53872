"""`kdump cluster`: the cluster according to its KRaft metadata."""

from __future__ import annotations

from typing import Any

import click

from kdump.commands.completion_words import listed
from kdump.commands.files import complain, output_for
from kdump.commands.state_options import Teller, as_of, carry_out, column_names, common
from kdump.commands.topics import matcher, topic_option
from kdump.log.disk import LogDirectory
from kdump.log.errors import SourceError
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.region import Limits
from kdump.render.cluster_objects import PARTS, cluster_object, configs
from kdump.render.cluster_report import write_summary
from kdump.render.escape import path_text, printable
from kdump.render.group_objects import change_object
from kdump.render.output import Output
from kdump.render.state_tables import StateTables, style
from kdump.render.style import painter
from kdump.state.identity import complete_quorum, meta_properties
from kdump.state.image import Metadata
from kdump.state.locate import metadata_in
from kdump.state.metadata import replay_metadata
from kdump.state.metadata_files import MetadataFiles
from kdump.state.moment import Change, Moment
from kdump.state.records import ROOM_ALONE

SUMMARY = "summary"
USUAL = (SUMMARY, "brokers", "topics")
FOR_TOPIC = ("topics", "partitions", "configs")
EXAMPLES = """
\b
Examples:
  kdump cluster /var/lib/kafka
  kdump cluster /var/lib/kafka --show partitions --problems
  kdump cluster /var/lib/kafka --topic payments --as-of 2026-11-20T03:00
  kdump cluster /var/lib/kafka --topic payments --history

\b
Exit status: 0 on success, 2 for a usage error, if a path could not be read (the others are shown), or if the metadata
does not cover --as-of.
"""


def _parts(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    known = (SUMMARY, *PARTS)
    if not names:
        raise click.BadParameter(f"{value!r} has no part: all, {', '.join(known)}")
    if names == ("all",):
        return known
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is not a part; use all, {', '.join(known)}")
    return names


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--show",
    "parts",
    metavar="PART,…",
    callback=_parts,
    shell_complete=listed(lambda: [(name, "") for name in ("all", SUMMARY, *PARTS)]),
    help=f"Show these parts: all, {SUMMARY}, {', '.join(PARTS)}.",
)
@topic_option("Show only these topics, in detail")
@click.option("--problems", is_flag=True, help="Show only topics and partitions with a problem.")
@click.option("--show-secrets", is_flag=True, help="Also show the values of configs that contain passwords.")
@common
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show the cluster as recorded in its metadata log: brokers, topics, partitions, configs, ACLs …. A path is the log
    directory of a controller or a broker, a __cluster_metadata-0 directory, a metadata snapshot (.checkpoint), or a
    segment. Reads the newest snapshot, and the log after it. Nothing is written."""
    if options["history"] and (options["parts"] is not None or options["problems"]):
        raise click.UsageError("--history cannot be combined with --show or --problems")
    if options["topics"] and options["parts"] and not {*options["parts"]} & {SUMMARY, *FOR_TOPIC}:
        raise click.UsageError(f"--topic requires --show {', '.join(FOR_TOPIC)}, or no --show")
    moment = as_of(options["as_of"], options["zone"])
    output = output_for(options)
    run = _Run(options, moment, output)
    carry_out(run, paths, output)


class _Run:
    """One run of the command."""

    def __init__(self, options: dict[str, Any], moment: Moment, output: Output) -> None:
        self.options = options
        self.moment = moment
        self.output = output
        self.teller = Teller(output, options["as_json"])
        self.topic = matcher(options["topics"])
        self.limits = Limits(options["max_batch_size"], options["max_decompressed_size"])
        names = column_names(options["columns"], options["as_json"])
        self.tables = StateTables(output, options["zone"], names, options["full"])
        self.parts = options["parts"] or self._usual()
        tables = [part for part in self.parts if part != SUMMARY]
        if names is not None and len(tables) != 1 and not options["history"]:
            raise click.UsageError("--columns needs a single table; choose it with --show")

    def _usual(self) -> tuple[str, ...]:
        if self.options["topics"] or self.options["problems"]:
            return FOR_TOPIC if not self.options["problems"] else ("partitions",)
        return (SUMMARY, *PARTS) if self.options["as_json"] else USUAL

    def run(self, paths: tuple[str, ...]) -> None:
        copies: list[tuple[MetadataFiles, LogDirectory | None]] = []
        for path in paths:
            refused: list[SourceError] = []
            try:
                copies.extend(metadata_in(path, refused.append))
            except SourceError as error:
                refused = refused or [error]  # the first gives the reason
            for each in refused:
                self.teller.refuse(each)
        for number, (files, around) in enumerate(copies):
            if len(copies) > 1 and not self.options["as_json"]:
                head = painter(self.output.colour)(printable(path_text(files.path)) + ":", "head")
                self.output.line(("\n" if number else "") + head)
            try:
                self._copy(files, around)
            except SourceError as error:
                self.teller.refuse(error)

    def _copy(self, files: MetadataFiles, around: LogDirectory | None) -> None:
        told = self._history(files) if self.options["history"] else None
        metadata = replay_metadata(files, self.moment, told=told, room=ROOM_ALONE, limits=self.limits)
        if metadata.problems and metadata.is_empty and METADATA_TOPIC not in files.path:
            raise SourceError(f"{files.path}: no cluster metadata could be read: {metadata.problems[0]}")
        if self.moment == Moment():
            complete_quorum(metadata, files.path)
        for topic in metadata.topics.values():
            self.topic(topic.name)
        if told is None and self.topic.is_unmatched:
            pass  # the end of the run reports it
        elif told is None:
            self._show(metadata, files, around)
        elif self.changes is not None:
            self.changes.flush()
        self.teller.notes(files.path, metadata.problems)
        if told is not None and metadata.snapshot:
            self.teller.note(files.path, f"no history before offset {metadata.snapshot}: it is only in a snapshot")
        if self.moment.offset is not None and metadata.end_offset <= self.moment.offset:
            self.teller.note(files.path, f"ends at offset {metadata.end_offset}; this is the state at its end")
            self.teller.failed = True

    def _history(self, files: MetadataFiles) -> Any:
        source = path_text(files.path)
        self.changes = None if self.options["as_json"] else self.tables.open("change")

        def told(change: Change) -> None:
            if self.options["topics"] and not self._is_of_topic(change):
                return
            value = change_object(source, change, show_secrets=self.options["show_secrets"])
            if self.changes is None:
                self.teller.json(value)
            else:
                self.changes.add(value, style(value))

        return told

    def _is_of_topic(self, change: Change) -> bool:
        if change.entity == "topic":
            return self.topic(change.name)
        if change.entity == "partition":
            return self.topic(change.name.rpartition("-")[0])
        return change.entity == "config" and change.name.startswith("TOPIC ") and self.topic(change.name[6:])

    def _show(self, metadata: Metadata, files: MetadataFiles, around: LogDirectory | None) -> None:
        written = False
        for part in self.parts:
            if part == SUMMARY:
                identity = meta_properties(around) if around else {}
                cluster = cluster_object(metadata, path_text(files.path), identity, files.committed)
                if self.options["as_json"]:
                    self.teller.json(cluster)
                else:
                    write_summary(self.output, cluster, self.options["zone"])
                    written = True
                continue
            kind, make = PARTS[part]
            values = make(metadata, self.topic)
            if part == "configs":
                values = configs(metadata, self.topic, self.options["show_secrets"])
                if self.options["topics"]:
                    values = (value for value in values if value["resourceType"] == "TOPIC")
            if self.options["problems"] and part in ("topics", "partitions"):
                values = (value for value in values if style(value))
            if self.options["as_json"]:
                for value in values:
                    self.teller.json(value)
                continue
            rows = list(values)
            if rows:
                if written:
                    self.output.line("")
                self.tables.write(kind, rows)
                written = True
        if not written and not self.options["as_json"] and not any(self.topic.unmatched()):
            complain("nothing matches" if metadata.topics else "no topics")
