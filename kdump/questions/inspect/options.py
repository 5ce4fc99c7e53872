"""The options of `kdump inspect`, and which of them exclude each other."""

from __future__ import annotations

from dataclasses import dataclass

import click

from kdump.command_line.decoding_options import DecodingOptions
from kdump.command_line.filter_options import FilterOptions
from kdump.command_line.output_options import CSV, FORMATS, JSON, TABLE, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.redact_options import RedactOptions, redact_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.io import file_system
from kdump.log.file_kinds import KINDS
from kdump.query import CommandOptions, added, argument, flag, group, option, partition_option, topic_option
from kdump.render.escape import path_text
from kdump.render.record_template import shows_decoded

HEX, TEMPLATE = "hex", "template"
"""Formats besides those of kdump.command_line.output_options."""


AS_HELP = f"Treat the files as this kind, whatever their names: {', '.join(KINDS)}."
COMMITTED_HELP = (
    "Show only what a read_committed consumer receives: no control or aborted records, and nothing at or above the "
    "last stable offset. Brokers find aborted transactions in the .txnindex files alone: what these lack is shown."
)
BY_MARKERS_HELP = (
    "With --read-committed, find aborted transactions by their markers instead: what a consumer should receive."
)


@dataclass(frozen=True)
class InspectOptions(CommandOptions):
    """The options of the command. `limit` and `last` are numbers of rows."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    records: bool = flag("--records", help="Show records instead of batches.", section="Show")
    as_hex: bool = flag("--hex", help="Show an annotated hexdump; same as --format hex.")
    template: str | None = option(
        "-f", metavar="FORMAT", help=r"Write records by a format string as in kcat: '%o %k %s\n'."
    )
    extract: str | None = option(
        "--extract",
        type=click.Choice(["key", "value"]),
        help="Write the raw key or value of the single matching record.",
    )
    limit: int | None = option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Show at most N rows.")
    last: int | None = option(
        "--last",
        metavar="N",
        type=click.IntRange(min=1),
        help="Show the last N rows; reads backward from the end of the file.",
    )
    follow: bool = flag("--follow", help="Keep reading as the last file grows, like tail -f.")
    output: OutputOptions = added(output_options(formats=(*FORMATS, HEX)))
    redaction: RedactOptions = added(redact_options("With --json: "))
    count: bool = flag("--count", help="Count the selected records instead of showing them, of each partition.")
    topics: tuple[str, ...] = topic_option("In directories, show only partitions of these topics", section="Select")
    partitions: tuple[int, ...] = partition_option("In directories, show only partitions")
    all_files: bool = flag("--all-files", help="In directories, also read .deleted, .swap and .cleaned segments.")
    filters: FilterOptions = group(FilterOptions)
    read_committed: bool = flag("--read-committed", help=COMMITTED_HELP)
    by_markers: bool = flag("--by-markers", help=BY_MARKERS_HELP)
    decoding: DecodingOptions = group(DecodingOptions)
    kind: str | None = option("--as", type=click.Choice(list(KINDS)), metavar="KIND", help=AS_HELP, section="Read")
    jobs: int | None = option(
        "--jobs", type=click.IntRange(min=1), help="Write records as JSON in this many threads.  [CPU cores, at most 4]"
    )
    no_index: bool = flag("--no-index", help="Do not use .index and .timeindex to find where to start reading.")
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)

    @property
    def of_records(self) -> bool:
        """Whether records are shown or counted, and not batches."""
        return self.records or self.count or self.template is not None

    @property
    def form(self) -> str:
        """The format of the output: one of FORMATS, HEX or TEMPLATE."""
        if self.template is not None:
            return TEMPLATE
        return HEX if self.as_hex else self.output.format

    def given(self, *names: str) -> list[str]:
        """Return those of the options that were given, as they are typed."""
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]


def refuse_contradictions(options: InspectOptions) -> None:
    """Raise UsageError for options that exclude each other, or have no effect."""
    output = options.output
    chosen = [JSON] * output.as_json + [HEX] * options.as_hex
    chosen += [output.form] if output.form and output.form not in chosen else []
    chosen += options.given("template", "extract")
    for other in options.given("template", "extract", "as_hex", "limit", "last", "follow") if options.count else ():
        raise click.UsageError(f"--count counts all selected records, and cannot be combined with {other}")
    if options.count and options.form == HEX:
        raise click.UsageError("--count cannot be combined with --format hex")
    if len(chosen) > 1:
        raise click.UsageError("choose one of --json, --hex, --format, -f and --extract")
    if output.columns is not None and options.form not in (TABLE, CSV):
        raise click.UsageError("--columns applies only to tables and CSV")
    hidden = options.redaction
    if (hidden.redact or hidden.redact_names) and options.form != JSON:
        raise click.UsageError("--redact applies only to --json")
    if options.limit and options.last:
        raise click.UsageError("choose one of --limit and --last")
    if options.extract and (options.last or output.columns is not None):
        raise click.UsageError("--extract writes one record, and cannot be combined with --last or --columns")
    if options.follow and (options.extract or options.limit):
        raise click.UsageError("--follow does not end, and cannot be combined with --extract or --limit")
    if options.by_markers and not options.read_committed:
        raise click.UsageError("--by-markers requires --read-committed")
    if options.read_committed and options.follow:
        raise click.UsageError(
            "--follow cannot be combined with --read-committed: later records decide what is committed"
        )
    if options.read_committed and options.filters.control:
        raise click.UsageError("choose one of --control and --read-committed: consumers see no control records")
    if options.follow and options.paths[-1] == "-":
        raise click.UsageError("--follow needs a file; standard input is always read to its end")
    directory = next(filter(file_system.isdir, options.paths), None)
    if options.kind and directory is not None:
        raise click.UsageError(
            f"--as applies to files, and {path_text(directory)} is a directory; name the files in it"
        )
    read_once(options.paths)
    _refuse_idle_decoders(options)


def _refuse_idle_decoders(options: InspectOptions) -> None:
    """Raise UsageError for decoders of something that is not shown, and for schemas that are not used."""
    given = options.decoding.given()
    if given and options.extract:
        raise click.UsageError(f"--extract writes raw bytes, and cannot be combined with {given[0]}")
    if given and not options.records and options.form not in (TEMPLATE, HEX):
        raise click.UsageError(f"{given[0]} applies to records; add --records")
    if given and options.template is not None and not shows_decoded(options.template):
        raise click.UsageError(f"{given[0]} has no effect: the format string contains neither %d (key) nor %D (value)")
    options.decoding.refuse_contradictions()
