"""`kdump inspect`: shows batches, records or annotated bytes of segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import click
from click.core import ParameterSource

from kdump.command_line.decoding_options import DecodingOptions
from kdump.command_line.exit_status import exit_with
from kdump.command_line.filter_options import FilterOptions, selection_of
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import PartitionFilter, partition_option, topic_filter, topic_option
from kdump.command_line.output_options import CSV, FORMATS, JSON, TABLE, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.redact_options import RedactOptions, redact_options
from kdump.command_line.typed_options import CommandOptions, added, argument, flag, group, option, takes
from kdump.io import file_system
from kdump.log.file_kinds import KINDS
from kdump.parallel_jobs import usual_jobs
from kdump.questions.inspect.record_counts import CountTable, RecordCount
from kdump.questions.inspect.show import HEX, TEMPLATE, InspectRun, ShowOptions
from kdump.questions.ls.show import LsOptions, is_log_directory, run_ls
from kdump.render.escape import path_text
from kdump.render.record_template import shows_decoded

AS_HELP = f"Treat the files as this kind, whatever their names: {', '.join(KINDS)}."
COMMITTED_HELP = (
    "Show only what a read_committed consumer receives: no control or aborted records, and nothing at or above the "
    "last stable offset. Brokers find aborted transactions in the .txnindex files alone: what these lack is shown."
)
BY_MARKERS_HELP = (
    "With --read-committed, find aborted transactions by their markers instead: what a consumer should receive."
)
EXAMPLES = """
\b
Examples:
  kdump inspect payments-0 --records --offset 40..60
  kdump inspect payments-0 --records --json | jq -r .key
  kdump inspect payments-0 --hex --offset 42
  kdump inspect 00000000000000000000.log
  kdump inspect __consumer_offsets-7 --records --last 20
  kdump inspect 00000000000000000000.log --offset 42 --extract value > poison

\b
Exit status: 0 on success; 1 if no record or batch matches; 2 for a usage error, an offset outside the log, or if
something could not be read (the rest is shown). A search for keys, values or headers without a match also ends with 2
if damage kept it from comparing all records.
"""


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
    reading: ReadingOptions = added(reading_options)

    @property
    def form(self) -> str:
        """The format of the output: one of FORMATS, HEX or TEMPLATE."""
        if self.template is not None:
            return TEMPLATE
        return HEX if self.as_hex else self.output.format

    def given(self, *names: str) -> list[str]:
        """Return those of the options that were given, as they are typed."""
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]


@click.command(cls=HelpPage, epilog=EXAMPLES)
@takes(InspectOptions)
def command(options: InspectOptions) -> None:
    """Show the contents of segments, indexes, snapshots and checkpoints: files, partition directories (segments in
    offset order), parent directories, - for standard input, or URLs. For a log directory it shows the overview of kdump
    ls, unless an option applies to the contents of files. Files compressed with gzip or zstd are decompressed. Bytes
    that belong to no batch are shown in their place as torn, junk or padding. Nothing is written to the disk."""
    _refuse_contradictions(options)
    if _wants_ls(options):
        run_ls(LsOptions(paths=options.paths, output=options.output))
    selection = selection_of(options.filters, options.output.zone)

    def run() -> int:
        of_topic = topic_filter(options.topics)
        of_partition = PartitionFilter(options.partitions)
        show = InspectRun(
            _show_options(options), selection, options.reading.limits, options.paths, of_topic, of_partition
        )
        if options.extract:
            show.extract(options.extract)
        else:
            show.run()
        of_topic.knows_ids |= show.coverage is not None
        is_unmatched = of_topic.is_named and any(of_topic.unmatched())
        status = show.status
        return 2 if status == 1 and is_unmatched else status

    exit_with(run)


OF_LS = {"paths", "as_json", "form", "full", "zone", "color", "pager"}
"""Options that `kdump ls` has, too. All others select contents of the files."""


def _wants_ls(options: InspectOptions) -> bool:
    """Return True if all paths are log directories, and no option selects contents of their files."""
    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    return given <= OF_LS and options.form in FORMATS and all(map(is_log_directory, options.paths))


def _refuse_contradictions(options: InspectOptions) -> None:
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


def _show_options(options: InspectOptions) -> ShowOptions:
    return ShowOptions(
        form=options.form,
        records=options.records or options.count or options.template is not None,
        template=options.template,
        columns=options.output.names,
        full=options.output.full,
        zone=options.output.zone,
        color=options.output.color,
        pager=options.output.pager and not options.follow,
        limit=options.limit,
        last=options.last,
        follow=options.follow,
        all_files=options.all_files,
        window=options.reading.run().window,
        use_index=not options.no_index,
        jobs=options.jobs or usual_jobs(),
        kind=options.kind,
        decode=options.decoding.decode(options.paths),
        read_committed=options.read_committed,
        by_markers=options.by_markers,
        redaction=options.redaction.redaction(),
        count=(lambda output: options.output.sink(output, partial(CountTable, output), (RecordCount,), report=True))
        if options.count
        else None,
    )
