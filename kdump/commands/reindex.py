"""`kdump reindex`: rebuilds the indexes of segments and compares the existing ones with them."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain, output_for, refuse, unread
from kdump.commands.params import limit_options
from kdump.commands.rate import RateParam
from kdump.commands.running import reading
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.output_directory import OutputError
from kdump.forensics.reindex.run import LITTLE, Reindexed, ReindexSummary, reindex
from kdump.forensics.reindex.verdict import IDENTICAL, LEGAL, MISSING, WRONG
from kdump.log.errors import SourceError
from kdump.render.escape import path_text, printable
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.reindex_report import ReindexReport

EXAMPLES = """
\b
Examples:
  kdump reindex indexed-1/payments-0/00000000000000000000.log --out rebuilt
  kdump reindex clean-1 clean-2 --topic 'ledg*' --all
  kdump reindex clean-2 --json | jq -r 'select(.type=="reindex") | .file, .indexes[].status'

\b
Exit status: 0 if a broker could have written the old indexes, 1 if an index is wrong or missing, or a segment is
damaged, 2 for a usage error, or if something could not be read or rebuilt.
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="SEGMENT…", nargs=-1, required=True)
@click.option("--out", metavar="DIR", help="Write the rebuilt indexes to this new directory.  [only compare]")
@topic_option("Rebuild only these topics")
@click.option(
    "--interval",
    type=click.IntRange(0, (1 << 31) - 1),
    help="Assume this index.interval.bytes.  [the topic's, or 4096]",
)
@click.option("--past-damage", is_flag=True, help="Also index batches after damage, which no broker does.")
@click.option("--all", "everything", is_flag=True, help="Also show segments whose indexes are identical.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON Lines: one reindex per segment, one reindexSummary.")
@click.option("--full", is_flag=True, help="Do not truncate values, and show every wrong entry that is kept.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only write files and set the exit status.")
@click.option("--max-rate", type=RateParam(), help="Read no faster than this, such as 50MB/s.")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Rebuild the .index, .timeindex and .txnindex of segments (files, partition directories, log directories) as a
    broker's recovery does, and report whether the old ones are identical, differ in a way that a broker may write, or
    are wrong: which entry, and what it should be. Nothing is written to the disks."""
    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")
    exit_with(lambda: _Run(paths, options, output_for(options)).run(), OutputError)


class _Run:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
        self.paths = paths
        self.options = options
        self.output = output
        self.report = ReindexReport(output, full=options["full"])
        self.counts: Counter[str] = Counter()
        self.unread: list[str] = []
        self.hidden = 0

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        check = reading(self.options, only=LITTLE)
        with Progress("reindex", self.output, always=not self.options["as_json"]) as progress:
            for made in reindex(
                self.paths,
                self.options["out"],
                interval=self.options["interval"],
                past_damage=self.options["past_damage"],
                wanted=matcher(self.options["topics"]),
                options=check,
                refused=self._refused,
                met=progress.more,
            ):
                self._made(made)
        self._end(time.monotonic() - began)
        self.output.flush()
        if self.unread or self.counts["refused"] or not self.counts["segments"]:
            return 2
        return int(bool(self.counts[WRONG] or self.counts[MISSING] or self.counts["cut"]))

    def _refused(self, error: SourceError) -> None:
        if refuse(error):
            self.unread.append(str(error))

    def _made(self, made: Reindexed) -> None:
        self.counts["segments"] += 1
        self.counts["cut"] += made.is_cut
        self.counts["refused"] += not made.is_rebuilt
        for verdict in made.verdicts:
            self.counts[verdict.status] += 1
            self.counts["written"] += verdict.written is not None
        if self.options["as_json"]:
            self.output.line(answer_line(made))
        elif not self.options["quiet"]:
            if self.options["everything"] or made.file in self.paths or not made.is_ordinary:
                self.report.write(made)
            else:
                self.hidden += 1

    def _end(self, seconds: float) -> None:
        counts = self.counts
        if self.options["as_json"]:
            found = ReindexSummary(
                segments=counts["segments"],
                identical=counts[IDENTICAL],
                legal=counts[LEGAL],
                wrong=counts[WRONG],
                missing=counts[MISSING],
                cut=counts["cut"],
                refused=counts["refused"],
                written=counts["written"],
                unread=unread(),
                seconds=round(seconds, 3),
            )
            self.output.line(answer_line(found))
            return
        if self.options["quiet"]:
            return
        self.report.flush()
        if not counts["segments"]:
            if not self.unread and not self.options["topics"]:
                complain("no segment found")
            return
        if self.report.written:
            self.output.line("")
        said = (
            ", ".join(f"{counts[name]:,} {name}" for name in (IDENTICAL, LEGAL, WRONG, MISSING) if counts[name])
            or "none"
        )
        text = f"{counts['segments']:,} segment{'s' * (counts['segments'] > 1)}; indexes: {said}"
        if self.hidden:
            text += f"; {self.hidden:,} segments with identical indexes are not shown; use --all to show them"
        self._say(text)
        out = self.options["out"]
        if counts["written"]:
            self._say(f"{counts['written']:,} files written to {out}")
        if counts[WRONG] or counts[MISSING] or counts["cut"] or counts["refused"]:
            self._next(out)

    def _next(self, out: str | None) -> None:
        self.output.line("")
        self._say("next steps")
        is_wrong = self.counts[WRONG] or self.counts[MISSING]
        if out is None and is_wrong:
            self._say("  run kdump reindex … --out DIR to write the rebuilt indexes to a new directory")
        elif is_wrong:
            self._say(f"  with the broker stopped, replace the old indexes with those in {out}")
        if self.counts["cut"] or self.counts["refused"]:
            self._say(
                "  do not delete the .index of a damaged segment: without it the broker recovers the segment and "
                "truncates it at the damage"
            )
        else:
            self._say(
                "  or, with the broker stopped, delete the wrong .index and that of the log's last segment: at startup "
                "the broker recovers these segments and rebuilds all three"
            )

    def _say(self, text: str) -> None:
        for line in self.output.wrapped(printable(path_text(text)), len(text) - len(text.lstrip()) + 2):
            self.output.line(line)
