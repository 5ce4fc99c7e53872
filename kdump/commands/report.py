"""`kdump report`: writes a page for the post-mortem."""

from __future__ import annotations

import time
from typing import Any

import click

from kdump.check.catalogue import ERROR, WARNING
from kdump.commands.exits import exit_with
from kdump.commands.files import output_for, refuse
from kdump.commands.params import SizeParam, duration, limit_options, read_once
from kdump.commands.rate import RateParam
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.output_directory import OutputError
from kdump.log.errors import SourceError
from kdump.render.escape import path_text, printable
from kdump.render.output import Output
from kdump.render.progress import Progress

EXAMPLES = """
\b
Examples:
  kdump report /var/lib/kafka --out report.html
  kdump report broker-1 --topic 'payments*' --out payments.html --charts png

\b
Exit status: 0, whatever was found; 2 usage, or something could not be read or written (the page tells of the rest).
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--out", metavar="FILE", required=True, help="The page: a new file.")
@click.option("--charts", metavar="DIR", help="Write its charts as files, too, into this new directory.")
@click.option("--chart-format", type=click.Choice(("png", "svg")), default="png", help="What these are.  [png]")
@click.option("--title", metavar="TEXT", help="The title of the page.  [Post-mortem: the paths]")
@topic_option("Report only these topics")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only write, and exit.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Partitions read side by side.  [all cores if they are large, 4 at most]"
)
@click.option("--max-rate", type=RateParam(), help="Read no faster, all jobs together: 50MB/s.")
@click.option("--transaction-timeout", default="15m", metavar="TIME", help="An open transaction is old after.  [15m]")
@click.option("--max-message-bytes", type=SizeParam(), help="Warn of larger batches.  [the topic's, where it is known]")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Write a page for the post-mortem: files, directories of a partition, log directories, or directories above, in
    one HTML file that needs no network. The verdict; a map of each segment; bytes and records over time and over
    offsets; transactions, producers, gaps, batches, compression, keys; each finding with its bytes, what follows from
    it, and what to do. Nothing is written to the disks."""
    read_once(paths)
    exit_with(lambda: _Run(paths, options, output_for(options)).run(), OutputError)


class _Run:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
        self.paths = paths
        self.options = options
        self.output = output
        self.failed = False

    def run(self) -> int:
        """Run the command and return its exit status."""
        from kdump.check.options import Options
        from kdump.check.workers import careful_source
        from kdump.format.counted import many
        from kdump.log.region import Limits
        from kdump.render.postmortem.write import report
        from kdump.render.report import checked, incomplete, verdict

        options = self.options
        check = Options(
            limits=Limits(options["max_batch_size"], options["max_decompressed_size"]),
            transaction_timeout=duration(options["transaction_timeout"], "--transaction-timeout"),
            max_message_bytes=options["max_message_bytes"],
            now=int(time.time() * 1000),
            window=options["window"],
            open_source=careful_source,
        )
        of_topic = matcher(options["topics"])
        with Progress("report", self.output, always=True) as progress:
            try:
                made = report(
                    self.paths,
                    options["out"],
                    charts=options["charts"],
                    chart_format=options["chart_format"],
                    title=options["title"],
                    options=check,
                    topics=of_topic,
                    jobs=options["jobs"],
                    max_rate=options["max_rate"],
                    refused=self._refused,
                    met=progress.more,
                    total=progress.expect,
                    step=progress.say,
                )
            except SourceError:
                of_topic.refuse_unmatched()  # raises a more specific error
                raise
            progress.say("")
        told = made.told
        for text in told.totals.unread:
            self._refused(SourceError(text))
        if not options["quiet"]:
            counts = told.totals.findings
            said = ", ".join(many(counts[name], name) for name in (ERROR, WARNING) if counts[name])
            word, _ = verdict(counts[ERROR], counts[WARNING], told.totals)
            self.output.line("; ".join([word + (f": {said}" if said else ""), *incomplete(told.totals)]))
            charts = ""
            if options["charts"] is not None:
                charts = f"; {many(len(made.charts), 'chart')} in {printable(path_text(options['charts']))}"
            self.output.line(f"written to {printable(path_text(made.out))}{charts}")
            seconds = told.seconds if self.output.terminal else None
            self.output.line(f"read once: {checked(told.totals, seconds)}")
        self.output.flush()
        return 2 if self.failed else 0

    def _refused(self, error: SourceError) -> None:
        self.failed |= refuse(error)
