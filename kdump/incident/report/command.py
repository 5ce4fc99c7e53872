"""Write a post-mortem report as one HTML file: verdict, maps, charts, findings with their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import tzinfo

import click

from kdump.check.finding import ERROR, WARNING
from kdump.command_line.command_run import report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import OutputOptions
from kdump.command_line.params import read_once, zone_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.redact_options import RedactOptions, redact_options
from kdump.command_line.typed_options import takes
from kdump.incident.report.html.query import ReportQuery
from kdump.io.errors import SourceError
from kdump.log.output_directory import OutputError
from kdump.query import CommandOptions, FindingOptions, added, group, refuse_unmatched
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump report /var/lib/kafka --out report.html
  kdump report broker-1 --topic 'payments*' --out payments.html --charts charts

\b
Exit status: 0 whatever was found; 2 for a usage error, or if something could not be read or written (the page covers
the rest).
"""


@dataclass(frozen=True)
class ReportOptions(CommandOptions):
    """The options of the command."""

    query: ReportQuery = group(ReportQuery)
    zone: tzinfo = zone_option()
    redaction: RedactOptions = added(redact_options())
    output: OutputOptions = added(
        click.option("-q", "--quiet", is_flag=True, help="Print nothing; only write files and set the exit status.")
    )
    findings: FindingOptions = group(FindingOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("report", 1), to_the_end=True)
@takes(ReportOptions)
def command(options: ReportOptions) -> None:
    """Write a post-mortem report on files, partition directories, log directories, or parent directories, as one HTML
    file that needs no network. It contains the verdict; a map of each segment; bytes and records over time and over
    offsets; transactions, producers, gaps, batches, compression and keys; and each finding with its bytes, impact and
    action. Nothing is written to the disks."""
    read_once(options.query.paths)
    exit_with(lambda: run(options, options.output.output()), OutputError)


def run(options: ReportOptions, output: Output) -> int:
    """Write the page, say what it holds, and return the exit status."""
    from kdump.format.count_text import count_text
    from kdump.incident.report.html.report import answers
    from kdump.render.findings_report import incomplete, newer, totals_text, verdict

    query = options.query
    with Progress("report") as progress:
        check = options.reading.run(**vars(options.findings), unreadable=report_unreadable, **progress.listeners)
        query = replace(query, zone=options.zone, redaction=options.redaction.redaction(), run=check)
        try:
            made = answers(query)
        except SourceError:
            refuse_unmatched(query.topics)  # raises a more specific error
            raise
        progress.show("")
    facts = made.facts
    for problem in facts.totals.unread:
        report_unreadable(SourceError(problem))
    if not options.output.quiet:
        counts = facts.totals.findings
        severities = ", ".join(count_text(counts[name], name) for name in (ERROR, WARNING) if counts[name])
        word, _ = verdict(counts[ERROR], counts[WARNING], facts.totals)
        details = map(made.labels.clean, (*newer(facts.newer), *incomplete(facts.totals)))
        parts = [word + (f": {severities}" if severities else ""), *details]
        output.line("; ".join(parts))
        charts = ""
        if query.charts is not None:
            charts = f"; {count_text(len(made.charts), 'chart')} in {printable(path_text(query.charts))}"
        output.line(f"written to {printable(path_text(made.out))}{charts}")
        seconds = facts.seconds if output.terminal else None
        output.line(f"checked: {totals_text(facts.totals, seconds)}")
    output.flush()
    return 2 if unreadable() else 0
