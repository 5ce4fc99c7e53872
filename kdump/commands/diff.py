"""`kdump diff`: finds where replicas, or other copies of a partition, diverge."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain, output_for, refuse, unread
from kdump.commands.params import ZoneParam, limit_options
from kdump.commands.rate import RateParam
from kdump.commands.running import reading
from kdump.commands.state_options import Teller
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.copies import CopyGroup
from kdump.forensics.diff import LITTLE, Diff, diff
from kdump.forensics.diff_answer import DiffSummary
from kdump.forensics.differences import DIVERGENT, PREFIX, SAME
from kdump.log.errors import SourceError
from kdump.render import jsonl
from kdump.render.diff_objects import diff_object, difference_objects
from kdump.render.diff_report import DiffReport
from kdump.render.escape import printable
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.progress import Progress

MOST_LONE = 5
"""Maximum number of partitions without a counterpart that are listed by name."""
EXAMPLES = """
\b
Examples:
  kdump diff diverged-1/ledger-0 diverged-2/ledger-0
  kdump diff diverged-1 diverged-2 clean-2 --topic 'led*'
  kdump diff diverged-1 diverged-2 --json | jq 'select(.type=="diff") | .firstDivergentOffset'

\b
Exit status: 0 if the copies are the same, 1 if they differ (or one is a prefix of another), 2 for a usage error, or if
something could not be read or compared.
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="A B…", nargs=-1, required=True)
@topic_option("Compare only these topics")
@click.option("--all", "everything", is_flag=True, help="Also list the partitions that are the same.")
@click.option(
    "--json", "as_json", is_flag=True, help="Write JSON Lines: differences, one diff per partition, one diffSummary."
)
@click.option("--full", is_flag=True, help="Do not truncate values, and show every difference.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only set the exit status.")
@click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Show times in this time zone.  [UTC]")
@click.option("--max-rate", type=RateParam(), help="Read all copies together no faster than this, such as 50MB/s.")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Compare replicas, or other copies of a partition: files, partition directories, or log directories, which are
    compared partition by partition. Reports whether the copies are the same, one is a prefix of another, or they
    diverge; at which offset and in which leader epochs; and what a broker does about it. Copies that differ only by
    compression, batching, compaction, retention or segment boundaries are the same. Nothing is written to the disks."""
    if len(paths) < 2:
        raise click.UsageError("at least two paths are needed")
    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")
    if "-" in paths and (paths.count("-") > 1 or len(paths) > 2):
        raise click.UsageError("standard input (-) can be given only once, and compared with only one other path")
    exit_with(lambda: _Run(paths, options, output_for(options)).run())


class _Run:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
        self.paths = paths
        self.options = options
        self.output = output
        self.teller = Teller(output, options["as_json"])
        self.report = DiffReport(output, options["zone"], full=options["full"])
        self.counts: Counter[str | None] = Counter()
        self.unread: list[str] = []
        self.gone = 0
        """Number of comparisons without a result because segments were deleted during the run."""
        self.has_gone = False
        """Whether a path was deleted during the run, so that nothing may be left to compare."""
        self.lone: list[str] = []
        self.lone_differ = False
        self.of_topic = matcher(options["topics"])

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        check = reading(self.options, only=LITTLE)
        with Progress("diff", self.output, always=not self.options["as_json"]) as progress:
            for found in diff(
                self.paths, check, wanted=self.of_topic, refused=self._refused, met=progress.more, lone=self._lone
            ):
                self._found(found)
        self._end(time.monotonic() - began)
        self.output.flush()
        if self.unread or self.counts[None] > self.gone:
            return 2
        if not sum(self.counts.values()):
            return 0 if self.has_gone else 2
        return int(bool(self.counts[PREFIX] or self.counts[DIVERGENT] or self.lone_differ))

    def _refused(self, error: SourceError) -> None:
        if refuse(error):
            self.unread.append(str(error))
        else:
            self.has_gone = True

    def _lone(self, group: CopyGroup, is_difference: bool) -> None:
        assert group.key is not None
        self.lone.append(f"{group.key[0]}-{group.key[1]} is only in {group.copies[0].path}")
        self.lone_differ = self.lone_differ or is_difference

    def _found(self, found: Diff) -> None:
        self.counts[found.relation] += 1
        self.gone += found.relation is None and found.has_gone
        for copy in found.copies:
            for text in copy.unread:
                if text not in self.unread:
                    self._refused(SourceError(text))
        if self.options["quiet"]:
            return
        if self.options["as_json"]:
            for value in (*difference_objects(found), diff_object(found)):
                self.output.line(jsonl.line(value))
        elif found.relation == SAME and found.copies[0].path not in self.paths and not found.is_odd:
            if self.options["everything"]:
                self.report.short(found)
        elif found.topic is not None or not all(copy.unread for copy in found.copies):  # else no logs
            self.report.write(found)

    def _end(self, seconds: float) -> None:
        total = sum(self.counts.values())
        if self.options["quiet"]:
            return
        for number, text in enumerate(self.lone):
            self.teller.note("", text, quiet=number >= MOST_LONE)
        if len(self.lone) > MOST_LONE:
            complain(f"… and {len(self.lone) - MOST_LONE} more partitions that are only in one of the paths")
        if not total and not self.unread and not self.has_gone and not any(self.of_topic.unmatched()):
            complain("no partition is in more than one of the paths")
        names = ((SAME, "same"), (PREFIX, "prefix"), (DIVERGENT, "divergent"), (None, "unknown"))
        if self.options["as_json"]:
            summary = DiffSummary(
                partitions=total,
                same=self.counts[SAME],
                prefix=self.counts[PREFIX],
                divergent=self.counts[DIVERGENT],
                unknown=self.counts[None],
                lone=len(self.lone),
                unread=unread(),
                seconds=round(seconds, 3),
            )
            self.output.line(answer_line(summary))
        elif total > 1 or (self.counts[SAME] and not self.report.written and total):
            parts = [f"{self.counts[relation]:,} {name}" for relation, name in names if self.counts[relation]]
            if self.report.written:
                self.output.line("")
            self.output.line(printable(f"{total:,} partition{'s' * (total > 1)} compared: {', '.join(parts)}"))
