"""`kdump inspect`: shows batches, records or annotated bytes of segments."""

from __future__ import annotations

import click
from click.core import ParameterSource

from kdump.command_line.exit_status import exit_with
from kdump.command_line.filter_options import selection_of
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import PartitionFilter, topic_filter
from kdump.command_line.output_options import CSV, FORMATS, JSON, TABLE
from kdump.command_line.params import read_once
from kdump.command_line.typed_options import takes
from kdump.io import file_system
from kdump.questions.inspect.show import HEX, TEMPLATE, InspectOptions, InspectRun
from kdump.questions.ls.show import LsOptions, is_log_directory, run_ls
from kdump.render.escape import path_text
from kdump.render.record_template import shows_decoded

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


@click.command(cls=HelpPage, epilog=EXAMPLES)
@takes(InspectOptions)
def command(options: InspectOptions) -> None:
    """Show the contents of segments, indexes, snapshots and checkpoints: files, partition directories (segments in
    offset order), parent directories, - for standard input, or URLs. For a log directory it shows the overview of kdump
    ls, unless an option applies to the contents of files. Files compressed with gzip or zstd are decompressed. Bytes
    that belong to no batch are shown in their place as torn, junk or padding. Nothing is written to the disk."""
    _refuse_contradictions(options)
    if _wants_ls(options):
        run_ls(LsOptions(paths=options.paths, remote=options.remote, output=options.output))
    selection = selection_of(options.filters, options.output.zone)

    def run() -> int:
        options.remote.mount(options.paths)
        of_topic = topic_filter(options.topics)
        of_partition = PartitionFilter(options.partitions)
        show = InspectRun(options, selection, of_topic, of_partition)
        if options.extract:
            show.extract(options.extract)
        else:
            show.run()
        of_topic.knows_ids |= show.coverage is not None
        is_unmatched = of_topic.is_named and any(of_topic.unmatched())
        status = show.status
        return 2 if status == 1 and is_unmatched else status

    exit_with(run)


OF_LS = {"paths", "as_json", "form", "full", "zone", "color", "remote_url", "remote_layout", "remote_key"}
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
