"""Show or count records, batches or annotated bytes, selected by offset, time, key, value, header …"""

from __future__ import annotations

import click

from kdump.command_line.common_option import typed
from kdump.command_line.exit_status import exit_with
from kdump.command_line.filter_options import selection_of
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import PartitionFilter, topic_filter
from kdump.command_line.output_options import FORMATS
from kdump.command_line.typed_options import takes
from kdump.log.log_directory import is_log_directory
from kdump.questions.inspect.options import InspectOptions, refuse_contradictions
from kdump.questions.inspect.selected_files import SelectedFiles
from kdump.questions.inspect.show import extract, show

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


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("disk", 2))
@takes(InspectOptions)
def command(options: InspectOptions) -> None:
    """Show the contents of segments, indexes, snapshots and checkpoints: files, partition directories (segments in
    offset order), parent directories, - for standard input, or URLs. For a log directory it shows the overview of kdump
    ls, unless an option applies to the contents of files. Files compressed with gzip or zstd are decompressed. Bytes
    that belong to no batch are shown in their place as torn, junk or padding. Nothing is written to the disk."""
    refuse_contradictions(options)
    if _wants_ls(options):
        from kdump.questions.ls.command import LsOptions, run_ls
        from kdump.questions.ls.run import LsQuery

        run_ls(LsOptions(query=LsQuery(options.paths), remote=options.remote, output=options.output))
    selection = selection_of(options.filters, options.output.zone)

    def run() -> int:
        options.remote.mount(options.paths)
        of_topic = topic_filter(options.topics)
        of_partition = PartitionFilter(options.partitions)
        files = SelectedFiles(options, selection, of_topic, of_partition)
        status = extract(files) if options.extract else show(files)
        of_topic.knows_ids |= files.coverage is not None
        is_unmatched = of_topic.is_named and any(of_topic.unmatched())
        return 2 if status == 1 and is_unmatched else status

    exit_with(run)


OF_LS = {"paths", "as_json", "form", "full", "zone", "color", "remote_url", "remote_layout", "remote_key"}
"""Options that `kdump ls` has, too. All others select contents of the files."""


def _wants_ls(options: InspectOptions) -> bool:
    """Return True if all paths are log directories, and no option selects contents of their files."""
    given = typed(click.get_current_context())
    return given <= OF_LS and options.form in FORMATS and all(map(is_log_directory, options.paths))
