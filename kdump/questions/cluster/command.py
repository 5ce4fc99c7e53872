"""Show brokers, topics, configs, ACLs … from the KRaft metadata log, and when each changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

import click

from kdump.answer import Note
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import TopicFilter, has_unmatched
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.state_options import Notes, limit_options, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text, first_of, plain_count
from kdump.io.run import Run
from kdump.query import CommandOptions, LimitOptions, added, group
from kdump.questions.cluster.answer import PARTS, Cluster
from kdump.questions.cluster.run import FOR_PROBLEMS, FOR_TOPIC, SUMMARY, ClusterQuery, ReadCopy, answers
from kdump.render.escape import printable
from kdump.render.progress import Progress
from kdump.render.state_tables import HeadedTables, StateTables
from kdump.render.stdout import Output
from kdump.render.times import iso
from kdump.state.recorded_change import RecordedChange

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


USUAL = (SUMMARY, "brokers", "topics")
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


@dataclass(frozen=True)
class ClusterOptions(CommandOptions):
    """The options of the command."""

    query: ClusterQuery = group(ClusterQuery)
    output: OutputOptions = added(output_options())
    reading: LimitOptions = added(limit_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 2))
@takes(ClusterOptions)
def command(options: ClusterOptions) -> None:
    """Show the cluster as recorded in its metadata log: brokers, topics, partitions, configs, ACLs …. A path is the log
    directory of a controller or a broker, a __cluster_metadata-0 directory, a metadata snapshot (.checkpoint), or a
    segment. Reads the newest snapshot, and the log after it. Nothing is written."""
    query = options.query
    if query.history and (query.show or query.problems):
        raise click.UsageError("--history cannot be combined with --show or --problems")
    if query.topics and query.show and not {*query.asked} & {SUMMARY, *FOR_TOPIC}:
        raise click.UsageError(f"--topic requires --show {', '.join(FOR_TOPIC)}, or no --show")
    run_command(ClusterCommand(options))


class ClusterCommand:
    """One run of the command."""

    def __init__(self, options: ClusterOptions) -> None:
        self.options, self.query, shown = options, options.query, options.output
        self.output = shown.output()
        self.sink = shown.sink(self.output, self._report, self._rows(), single="choose it with --show")
        self.notes = Notes(self.sink)
        if not (self.query.show or self.query.problems or self.query.topics or self.sink.is_complete):
            self.query = replace(self.query, show=USUAL)
        self.copy: ReadCopy | None = None
        """The copy whose answers come, `rows`: their classes, until it is told which parts have none."""
        self.rows: set[type] = set()
        self.changes = 0
        if shown.names is not None and not self._rows():
            raise click.UsageError("--columns needs a single table; choose it with --show")

    def _report(self) -> ClusterReport:
        shown = self.options.output
        return ClusterReport(self.output, StateTables(self.output, shown.zone, shown.names, shown.full))

    def _rows(self) -> tuple[type, ...]:
        """Return the class of the rows, if they are in a single table."""
        query = self.options.query
        if query.history:
            return (RecordedChange,)
        parts = query.asked or (FOR_PROBLEMS if query.problems else ())
        rows = tuple(PARTS[part][0] for part in parts if part != SUMMARY)
        return (Cluster,) if parts == (SUMMARY,) else rows if len(rows) == 1 else ()

    def run(self) -> None:
        with Progress("cluster") as progress:
            run = self.options.reading.run(
                at=progress.at, begin=self.sink.part, found=self._found, unreadable=self.notes.add_unreadable
            )
            self.notes.add_all(self._answers(run), self._add)
        self.sink.end()

    def _add(self, answer: Any) -> None:
        self.rows.add(type(answer))
        self.sink.add(answer)

    def _answers(self, run: Run) -> Iterator[Any]:
        for answer in answers(replace(self.query, run=run), changed=self.sink.add):
            if isinstance(answer, Note):
                self._tell_empty()
            yield answer
        self._tell_empty()

    def _found(self, copy: ReadCopy) -> None:
        self._tell_empty()
        self.copy, self.rows = copy, set()
        self.changes += copy.changes
        offset = self.query.moment.offset
        self.notes.failed |= offset is not None and copy.metadata.end_offset <= offset

    def _tell_empty(self) -> None:
        """Say what there is none of in the copy."""
        query, copy, self.copy = self.options.query, self.copy, None
        if copy is None:
            return
        metadata, end = copy.metadata, copy.metadata.end_offset
        empty = [part for part in self.query.parts if (Cluster if part == SUMMARY else PARTS[part][0]) not in self.rows]
        if query.history:
            if not self.changes and not metadata.problems:
                print_error(f"no changes below offset {end}")
        elif getattr(query.topics, "is_unmatched", False):
            pass  # the end of the run reports it
        elif query.problems and len(empty) == len(self.query.parts):
            print_error(f"no problems in {count_text(len(metadata.topics), 'topic')}")
        elif query.show and empty and not has_unmatched(TopicFilter):
            of_topics = " of these topics" if query.topics else ""
            print_error(f"no {' and no '.join(empty)}{of_topics} in the metadata below offset {end}")
