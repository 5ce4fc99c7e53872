"""Write a small copy of a broker's log directories, without the records, to examine elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import click

from kdump.command_line.command_run import print_error, replace_names, report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, TABLE, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.log.output_directory import OutputError, refuse_output
from kdump.query import CommandOptions, added, group
from kdump.questions.bundle.directory_writer import BundleQuery
from kdump.questions.bundle.run import BundleSummary, answers
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.signals import Terminated
from kdump.streams import write_all

EXAMPLES = """
\b
Examples:
  kdump bundle /var/lib/kafka --out broker-1.bundle
  kdump bundle /var/lib/kafka --out broker-1.bundle --tar broker-1.tar.zst --idle
  ssh broker-1 ./kdump bundle /var/lib/kafka --out - > broker-1.tar.zst
  kdump verify broker-1.tar.zst

\b
Exit status: 0, or 2 for a usage error, or if something could not be read or
written.
"""
STDOUT = 1
LEAVES = (
    "The bundle has the names of topics, groups, transactional IDs, clients, hosts and principals, committed offsets "
    "with their metadata, values of configs, and the schemas of a registry. It has no SCRAM credentials, delegation "
    "tokens or sensitive configs"
)
REPLACED = (
    "The names of topics, groups, transactional IDs, clients, members, hosts, racks, users, files and paths, and those "
    "in schemas, are replaced in the bundle. It has the names of Kafka's own topics and of configs, values of configs "
    "that are numbers or words of Kafka's, committed offsets without their metadata, IDs of topics, producers and "
    "nodes, times and sizes"
)


class BundleReport(Sink[BundleSummary]):
    """Writes what is in the bundle, and what this run did."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def add(self, answer: BundleSummary) -> None:
        described = f"{size_text(answer.segmentBytes)} of segments in {size_text(answer.bundleBytes)}"
        directories = count_text(answer.directories, "directory", "directories")
        done = directories
        if answer.written != answer.directories:
            done = f"{answer.written:,} of {directories} had changed"
        removed = f", {answer.removed:,} were removed" if answer.removed else ""
        unread = f"; {count_text(answer.unread, 'path')} could not be read" if answer.unread else ""
        left = (
            f"; {count_text(answer.leftOut, 'file or batch', 'files and batches')} left out" if answer.leftOut else ""
        )
        self.output.line(f"{printable(path_text(answer.out))}: {described}; {done}{removed}{unread}{left}")


@dataclass(frozen=True)
class BundleCommandOptions(CommandOptions):
    """The options of the command."""

    query: BundleQuery = group(BundleQuery)
    output: OutputOptions = added(
        output_options(
            json="Write the summary as JSON.",
            columns=CSV_COLUMNS_HELP,
            full="",
            quiet="Print nothing; only write the bundle and set the exit status.",
            zone=False,
        )
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("report", 2), to_the_end=True, mounts=False)
@takes(BundleCommandOptions)
def command(options: BundleCommandOptions) -> None:
    """Write what other commands need to know about a broker's log directories into a small directory, without the
    records: batch headers, the result of each checksum, small files, transaction markers, and Kafka's own topics and
    that of a schema registry, without credentials. The commands take it in place of the log directory, on any host. A
    second run into the same directory reads only what has changed. Nothing is written to the disks."""
    read_once(options.query.paths)
    exit_with(lambda: _run(options), OutputError)


def _run(options: BundleCommandOptions) -> int:
    query, out = options.query, options.query.out
    is_stream = out == "-"
    if is_stream:
        _refuse_standard_output(options)
        out = partial(write_all, STDOUT)
    output = options.output.output(on_stderr=is_stream)
    sink = options.output.sink(output, lambda: BundleReport(output), (BundleSummary,), report=True)
    if query.redact and query.topics:
        raise click.UsageError("--redact and --records cannot be combined: nothing in the records can be replaced")
    with Progress("bundle", expected=lambda: segment_bytes(query.paths, lambda topic: True)) as progress:
        run = options.reading.run(unreadable=report_unreadable, **progress.listeners)
        query = replace(query, out=out, run=run)
        if query.names is not None:
            replace_names(query.names)
        try:
            summary = answers(query)
        except (KeyboardInterrupt, Terminated) as error:
            if is_stream:  # what is on a disk is removed; this stays where it went
                by = error if isinstance(error, Terminated) else "SIGINT"
                print_error(f"standard output: the bundle is not complete: ended by {by}")
            raise
    sink.add(summary)
    sink.end()
    output.flush()
    if not options.output.quiet:
        leaves = REPLACED if query.redact else LEAVES
        print_error(leaves + (f"; and the records of {', '.join(query.topics)}." if query.topics else "."))
    return 2 if unreadable() else 0


def _refuse_standard_output(options: BundleCommandOptions) -> None:
    """Raise click.UsageError or OutputError if the bundle cannot go to standard output."""
    if options.query.tar is not None or options.output.format != TABLE:
        raise click.UsageError("--out - cannot be combined with --tar, --json or --format: it writes the packed bundle")
    if os.isatty(STDOUT):
        raise click.UsageError("--out -: standard output is a terminal; redirect it to a file (.tar.zst)")
    with suppress(OSError):  # no /proc
        path = os.readlink(f"/proc/self/fd/{STDOUT}")
        if os.path.isfile(path):
            refuse_output(path, list(options.query.paths))
