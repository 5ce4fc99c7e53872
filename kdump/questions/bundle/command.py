"""Write a small copy of a broker's log directories, without the records, to examine elsewhere."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import click

from kdump.command_line.command_run import print_error, replace_names, report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import topic_filter
from kdump.command_line.output_options import CSV_COLUMNS_HELP, TABLE, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.io.hash_key import read_hash_key
from kdump.log.output_directory import OutputError, refuse_output
from kdump.log.pseudonyms import Pseudonyms
from kdump.query import CommandOptions, added, argument, flag, many, option
from kdump.questions.bundle.directory_writer import BundleOptions
from kdump.questions.bundle.report import BundleReport
from kdump.questions.bundle.run import BundleSummary, bundle
from kdump.render.progress import Progress
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
DEPTHS = ("headers", "crc", "records")
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
NO_INTERNAL_HELP = "Omit the records of Kafka's own topics, and of a schema registry's."


@dataclass(frozen=True)
class BundleCommandOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="LOGDIR…", nargs=-1, required=True)
    out: str = option(
        "--out",
        metavar="DIR",
        required=True,
        help="Write the bundle to this directory, or bring the one there up to date; -: write it to standard output, "
        "packed, as --tar would.",
    )
    tar: str | None = option(
        "--tar", metavar="FILE", help="Also pack it into this new file, to send it: a compressed tar."
    )
    depth: str = option(
        "--depth",
        type=click.Choice(DEPTHS),
        default="crc",
        help="How much to read of each segment: headers alone, everything to verify checksums, or also to decode the "
        "records for the findings of verify and for stats.  [crc]",
    )
    topics: tuple[str, ...] = many(
        "--records", metavar="GLOB", help="Also include the records of these topics (a glob or a /regex/); repeatable."
    )
    internal: bool = option("--no-internal", flag_value=False, default=True, help=NO_INTERNAL_HELP)
    schemas: bool = option(
        "--no-schemas", flag_value=False, default=True, help="Omit the records of a schema registry's topic."
    )
    redact: bool = flag(
        "--redact",
        help="Replace the names of topics, groups, clients, hosts and users, each with the same one everywhere; under "
        "--hash-key, also the same as in other bundles.",
    )
    hash_key: str | None = option(
        "--hash-key",
        metavar="FILE",
        help="Include 64-bit hashes of the records of compacted topics, for diff: HMACs under this key, which is the "
        "same on all brokers (16 bytes or more). The key is not in the bundle.",
    )
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
    read_once(options.paths)
    exit_with(lambda: _run(options), OutputError)


def _run(options: BundleCommandOptions) -> int:
    is_stream = options.out == "-"
    if is_stream:
        _refuse_standard_output(options)
    output = options.output.output(on_stderr=is_stream)
    sink = options.output.sink(output, lambda: BundleReport(output), (BundleSummary,), report=True)
    has_records = topic_filter(options.topics, "--records")
    if options.redact and options.topics:
        raise click.UsageError("--redact and --records cannot be combined: nothing in the records can be replaced")
    key = None if options.hash_key is None else read_hash_key(options.hash_key)
    names = Pseudonyms(secrets.token_bytes(32) if key is None else key.key) if options.redact else None
    if names is not None:
        replace_names(names)
    made = BundleOptions(
        checksums=options.depth != "headers",
        records=options.depth == "records",
        internal=options.internal,
        schemas=options.schemas,
        has_records=lambda topic: bool(options.topics) and has_records(topic),
        reading=options.reading.run(),
        names=names,
        has_key=key is not None,
        hash_key=key,
    )
    with Progress("bundle", expected=lambda: segment_bytes(options.paths, lambda topic: True)) as progress:
        try:
            summary = bundle(
                options.paths,
                partial(write_all, STDOUT) if is_stream else options.out,
                made,
                options.topics,
                run=options.reading.run(unreadable=report_unreadable, **progress.listeners),
                packed=options.tar,
            )
        except (KeyboardInterrupt, Terminated) as error:
            if is_stream:  # what is on a disk is removed; this stays where it went
                by = error if isinstance(error, Terminated) else "SIGINT"
                print_error(f"standard output: the bundle is not complete: ended by {by}")
            raise
    sink.add(summary)
    sink.end()
    output.flush()
    if not options.output.quiet:
        leaves = REPLACED if options.redact else LEAVES
        print_error(leaves + (f"; and the records of {', '.join(options.topics)}." if options.topics else "."))
    return 2 if unreadable() else 0


def _refuse_standard_output(options: BundleCommandOptions) -> None:
    """Raise click.UsageError or OutputError if the bundle cannot go to standard output."""
    if options.tar is not None or options.output.format != TABLE:
        raise click.UsageError("--out - cannot be combined with --tar, --json or --format: it writes the packed bundle")
    if os.isatty(STDOUT):
        raise click.UsageError("--out -: standard output is a terminal; redirect it to a file (.tar.zst)")
    with suppress(OSError):  # no /proc
        path = os.readlink(f"/proc/self/fd/{STDOUT}")
        if os.path.isfile(path):
            refuse_output(path, options.paths)
