"""Show brokers, topics, configs, ACLs … from the KRaft metadata log, and when each changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import click

from kdump.answer import row_style
from kdump.cluster.find_state_logs import metadata_in
from kdump.cluster.metadata_files import MetadataFiles
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.metadata_refusals import problem_texts
from kdump.cluster.node_ids import node_ids
from kdump.command_line.command_run import print_error
from kdump.command_line.completion import listed
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import topic_filter
from kdump.command_line.params import parse_as_of
from kdump.command_line.state_options import Notes, StateOptions, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text, first_of, plain_count
from kdump.format.kafka_release import NEWEST
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.quorum_state import complete_quorum
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.query import CommandOptions, argument, flag, group, option, topic_option
from kdump.questions.cluster.answer import PARTS, Cluster, configs, summary_of
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.state_tables import HeadedTables, StateTables
from kdump.render.stdout import Output
from kdump.render.times import iso
from kdump.state.as_of import AsOf, Change
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.metadata_image import MetadataImage
from kdump.state.recorded_change import RecordedChange, change_answer

LABEL = 12


class ClusterReport(HeadedTables):
    """Writes the summary of a copy of the metadata, then its tables."""

    def add(self, answer: Any) -> None:
        if isinstance(answer, Cluster):
            write_summary(self.output, answer, self.tables.zone)
            self.written = True
        else:
            super().add(answer)


def write_summary(output: Output, cluster: Cluster, zone: tzinfo) -> None:
    """Write the head of the report, one fact per line."""
    paint = output.paint
    for label, value, marked in _lines(cluster, zone):
        for number, line in enumerate(output.wrapped(f"{label:<{LABEL}}{printable(value)}", LABEL)):
            head, rest = line[:LABEL], line[LABEL:]
            output.line((head if number else paint(head, "head")) + paint(rest, marked))


def _lines(cluster: Cluster, zone: tzinfo) -> list[tuple[str, str, str]]:
    lines: list[tuple[str, str, str]] = []
    if cluster.newer:
        lines.append(("NEWER", first_of(cluster.newer), "torn"))
    node = f", on the disk of node {cluster.nodeId}" if cluster.nodeId is not None else ""
    if cluster.clusterId is not None:
        lines.append(("cluster", f"{cluster.clusterId}{node}", ""))
    begun = (
        "from the start of the log" if cluster.snapshot is None else f"from the snapshot at offset {cluster.snapshot}"
    )
    time = f", {iso(cluster.endTimestamp, zone)}" if cluster.endTimestamp is not None else ""
    if cluster.endOffset:
        lines.append(("as of", f"offset {cluster.endOffset - 1}{time}, {begun}", ""))
        lines.append(("committed", _committed(cluster), ""))
    else:
        is_bootstrap = cluster.source.endswith("bootstrap.checkpoint")
        text = (
            "the output of kafka-storage format: the log has not started" if is_bootstrap else "before the first record"
        )
        lines.append(("as of", text, ""))
    if cluster.leaderId is not None:
        lines.append(("quorum", f"leader {cluster.leaderId}, epoch {cluster.leaderEpoch}", ""))
    if cluster.metadataVersion is not None:
        lines.append(("version", f"metadata.version {cluster.metadataVersion}", ""))
    fenced = f", {cluster.fencedBrokers} fenced" if cluster.fencedBrokers else ""
    lines.append(("brokers", f"{cluster.brokers}{fenced}", "torn" if fenced else ""))
    wrong = [
        f"{getattr(cluster, name)} {word}"
        for name, word in (
            ("offlinePartitions", "offline"),
            ("underReplicatedPartitions", "under-replicated"),
            ("underMinIsrPartitions", "under-min-isr"),
            ("reassigningPartitions", "reassigning"),
        )
        if getattr(cluster, name)
    ]
    state = f": {', '.join(wrong)}" if wrong else ", all online and in sync" if cluster.partitions else ""
    style = "bad" if cluster.offlinePartitions else "torn" if wrong else ""
    lines.append(("topics", f"{cluster.topics} with {plain_count(cluster.partitions, 'partition')}{state}", style))
    others = [
        f"{getattr(cluster, name)} {word}{'' if getattr(cluster, name) == 1 else 's'}"
        for name, word in (
            ("configs", "config"),
            ("quotas", "quota"),
            ("acls", "ACL"),
            ("scramCredentials", "SCRAM credential"),
            ("delegationTokens", "delegation token"),
        )
        if getattr(cluster, name)
    ]
    if others:
        lines.append(("also", ", ".join(others), ""))
    return lines


def _committed(cluster: Cluster) -> str:
    """Describe up to which offset the metadata is committed; its high watermark is not stored on disk."""
    committed, end = cluster.committedOffset, cluster.endOffset
    if committed is None:
        return "unknown: neither a snapshot nor a later leader is here, so the last records may still be undone"
    if committed >= end:
        return "everything"
    return f"everything below offset {committed}, by snapshots and leader epochs; later records may still be undone"


SUMMARY = "summary"
USUAL = (SUMMARY, "brokers", "topics")
FOR_PROBLEMS = ("partitions",)
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


@dataclass(frozen=True)
class ClusterOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    parts: tuple[str, ...] | None = option(
        "--show",
        metavar="PART,…",
        callback=_parts,
        shell_complete=listed(lambda: [(name, "") for name in ("all", SUMMARY, *PARTS)]),
        help=f"Show these parts: all, {SUMMARY}, {', '.join(PARTS)}.",
    )
    topics: tuple[str, ...] = topic_option("Show only these topics, in detail")
    problems: bool = flag("--problems", help="Show only topics and partitions with a problem.")
    show_secrets: bool = flag("--show-secrets", help="Also show the values of configs that contain passwords.")
    state: StateOptions = group(StateOptions)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 2))
@takes(ClusterOptions)
def command(options: ClusterOptions) -> None:
    """Show the cluster as recorded in its metadata log: brokers, topics, partitions, configs, ACLs …. A path is the log
    directory of a controller or a broker, a __cluster_metadata-0 directory, a metadata snapshot (.checkpoint), or a
    segment. Reads the newest snapshot, and the log after it. Nothing is written."""
    if options.state.history and (options.parts is not None or options.problems):
        raise click.UsageError("--history cannot be combined with --show or --problems")
    if options.topics and options.parts and not {*options.parts} & {SUMMARY, *FOR_TOPIC}:
        raise click.UsageError(f"--topic requires --show {', '.join(FOR_TOPIC)}, or no --show")
    moment = parse_as_of(options.state.as_of, options.state.output.zone)
    run_command(ClusterCommand(options, moment))


class ClusterCommand:
    """One run of the command."""

    def __init__(self, options: ClusterOptions, moment: AsOf) -> None:
        self.options, self.moment = options, moment
        output_options = options.state.output
        self.output = output_options.output()
        self.topic = topic_filter(options.topics)
        self.sink = output_options.sink(self.output, self._report, self._rows(), single="choose it with --show")
        self.notes = Notes(self.sink)
        self.parts = options.parts or self._usual()
        self.changes = 0
        if output_options.names is not None and not self._rows():
            raise click.UsageError("--columns needs a single table; choose it with --show")

    def _report(self) -> ClusterReport:
        shown = self.options.state.output
        return ClusterReport(self.output, StateTables(self.output, shown.zone, shown.names, shown.full))

    def _rows(self) -> tuple[type, ...]:
        """Return the class of the rows, if they are in a single table."""
        if self.options.state.history:
            return (RecordedChange,)
        parts = self.options.parts or (FOR_PROBLEMS if self.options.problems else ())
        rows = tuple(PARTS[part][0] for part in parts if part != SUMMARY)
        return (Cluster,) if parts == (SUMMARY,) else rows if len(rows) == 1 else ()

    def _usual(self) -> tuple[str, ...]:
        if self.options.problems:
            return FOR_PROBLEMS
        if self.options.topics:
            return FOR_TOPIC
        return (SUMMARY, *PARTS) if self.sink.is_complete else USUAL

    def run(self) -> None:
        copies: list[tuple[MetadataFiles, LogDirectory | None]] = []
        for path in self.options.paths:
            errors: list[SourceError] = []
            try:
                copies.extend(metadata_in(path, Run(unreadable=errors.append)))
            except SourceError as error:
                errors = errors or [error]  # the first gives the reason
            for each in errors:
                self.notes.add_unreadable(each)
        for files, log_directory in copies:
            if len(copies) > 1:
                self.sink.part(files.path)
            try:
                self._copy(files, log_directory)
            except SourceError as error:
                self.notes.add_unreadable(error)
        self.sink.end()

    def _copy(self, files: MetadataFiles, log_directory: LogDirectory | None) -> None:
        history = self._history(files) if self.options.state.history else None
        with Progress("cluster") as progress:
            run = self.options.state.reading.run(at=progress.at)
            metadata = replay_metadata(files, self.moment, on_change=history, room=ROOM_ALONE, run=run)
        if metadata.problems and metadata.is_empty and METADATA_TOPIC not in files.path:
            raise SourceError(f"{files.path}: no cluster metadata could be read: {metadata.problems[0]}")
        if self.moment == AsOf():
            complete_quorum(metadata, files.path)
        for topic in metadata.topics.values():
            self.topic(topic.name)
        if history is None and self.topic.is_unmatched:
            pass  # the end of the run reports it
        elif history is None:
            self._show(metadata, files, log_directory)
        self.notes.all(files.path, problem_texts(metadata, NEWEST))
        if history is not None and not self.changes and not metadata.problems:
            print_error(f"no changes below offset {metadata.end_offset}")
        if history is not None and metadata.snapshot:
            self.notes.add(files.path, f"no history before offset {metadata.snapshot}: it is only in a snapshot")
        if self.moment.offset is not None and metadata.end_offset <= self.moment.offset:
            self.notes.add(files.path, f"ends at offset {metadata.end_offset}; this is the state at its end")
            self.notes.failed = True

    def _history(self, files: MetadataFiles) -> Callable[[Change], None]:
        source = path_text(files.path)

        def on_change(change: Change) -> None:
            self.changes += 1
            if not self.options.topics or self._is_of_topic(change):
                self.sink.add(change_answer(source, change, show_secrets=self.options.show_secrets))

        return on_change

    def _is_of_topic(self, change: Change) -> bool:
        if change.entity == "topic":
            return self.topic(change.name)
        if change.entity == "partition":
            return self.topic(change.name.rpartition("-")[0])
        return change.entity == "config" and change.name.startswith("TOPIC ") and self.topic(change.name[6:])

    def _show(self, metadata: MetadataImage, files: MetadataFiles, log_directory: LogDirectory | None) -> None:
        empty = []
        for part in self.parts:
            shown = 0
            for value in self._values(part, metadata, files, log_directory):
                self.sink.add(value)
                shown += 1
            if not shown:
                empty.append(part)
        if self.options.problems and len(empty) == len(self.parts):
            print_error(f"no problems in {count_text(len(metadata.topics), 'topic')}")
        elif self.options.parts and empty and not any(self.topic.unmatched()):
            of_topics = " of these topics" if self.options.topics else ""
            print_error(f"no {' and no '.join(empty)}{of_topics} in the metadata below offset {metadata.end_offset}")

    def _values(
        self, part: str, metadata: MetadataImage, files: MetadataFiles, log_directory: LogDirectory | None
    ) -> Iterable[Any]:
        options = self.options
        if part == SUMMARY:
            identity = node_ids(log_directory) if log_directory else {}
            committed = max(files.committed or 0, metadata.committed) or None
            return [summary_of(metadata, path_text(files.path), identity, committed)]
        values = PARTS[part][1](metadata, self.topic)
        if part == "configs":
            values = configs(metadata, self.topic, options.show_secrets)
            if options.topics:
                values = (value for value in values if value.resourceType == "TOPIC")
        if options.problems and part in ("topics", "partitions"):
            values = (value for value in values if row_style(value))
        return values
