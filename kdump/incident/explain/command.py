"""Explain a message, or the log, of a broker or client: meaning, cause, what is on the disk, what to do."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass
from typing import Any

import click

from kdump.command_line.command_run import print_error, report_unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.incident.explain.answer import Explanation, ExplanationSummary, FindingExplanation
from kdump.incident.explain.catalogue import messages
from kdump.incident.explain.disk_evidence import DiskEvidence
from kdump.incident.explain.message import Message
from kdump.incident.explain.report import ExplainReport, MessageTable
from kdump.incident.explain.run import explain_log, explain_name, explain_text, known_names
from kdump.io import file_system
from kdump.io.directory_listing import length
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.query import CommandOptions, added, argument, flag, many
from kdump.render.escape import printable
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump explain /var/log/kafka/server.log --disk /var/lib/kafka
  kdump explain "Found record size 0 smaller than minimum record overhead (14)" --disk /var/lib/kafka
  kubectl logs kafka-0 | kdump explain - --json | jq -c 'select(.message == null)'
  kdump explain crc-mismatch

\b
Exit status: 0, or 2 for a usage error, if a message or code is not known, or if something could not be read. Unknown
messages of a log do not change it.
"""
SUGGESTED = 3
"""Maximum number of names that are suggested for a mistyped one."""
NAME = re.compile(r"[\w.$-]{1,200}")
"""What may be a code, an exception class or an error code, and not a message."""


@dataclass(frozen=True)
class ExplainOptions(CommandOptions):
    """The options of the command. `words`: logs, or a code or the words of a message."""

    words: tuple[str, ...] = argument(metavar="[CODE|FILE|TEXT|-]", nargs=-1)
    disks: tuple[str, ...] = many(
        "--disk",
        metavar="LOGDIR",
        help="Look up what the messages are about in this log directory or partition; repeatable, for all of a "
        "broker's.",
    )
    listing: bool = flag("--list", help="Print the messages that are known.")
    output: OutputOptions = added(output_options(columns=CSV_COLUMNS_HELP))
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("messages", 1))
@takes(ExplainOptions)
def command(options: ExplainOptions) -> None:
    """Explain what a broker or client logs: what it means, why Kafka logs it, what on a disk it is about, what to run,
    what to do, and what not to. Give a log (a file, also compressed, or - for standard input), a message, an exception
    class or error code, or a code of kdump verify. Repeated messages are explained once. Nothing is written."""
    output = options.output.output()
    if options.listing:
        if options.words or options.disks:
            raise click.UsageError("--list takes no argument and no --disk")
        sink = options.output.sink(output, lambda: MessageTable(output), (Message,), report=True)
        for message in messages():
            sink.add(message)
        sink.end()
        output.flush()
        return
    exit_with(ExplainCommand(options, output).run)


class ExplainCommand:
    """One run of the command."""

    def __init__(self, options: ExplainOptions, output: Output) -> None:
        self.options, self.output = options, output
        words = options.words
        if not words and not sys.stdin.isatty():
            words = ("-",)
        if not words:
            raise click.UsageError("give a log, a message or a code; kdump explain --list lists those that are known")
        self.logs = [word for word in words if word == "-" or file_system.exists(word)]
        self.text = "" if self.logs else " ".join(words)
        if self.logs and len(self.logs) < len(words):
            raise _not_there(next(word for word in words if word not in self.logs))
        for log in self.logs:
            if log != "-" and file_system.isdir(log):
                raise click.UsageError(f"{printable(log)} is a directory; give a log, and the directory with --disk")
        is_code = isinstance(explain_name(self.text), FindingExplanation)
        rows = FindingExplanation if is_code else Explanation
        self.sink: Sink[Any] = options.output.sink(
            self.output,
            lambda: ExplainReport(self.output, options.output.zone, full=options.output.full, is_pasted=not self.logs),
            (rows,),
            report=True,
        )

    def run(self) -> int:
        """Run the command and return its exit status."""
        with Progress("explain") as progress:
            disk = self._disk(progress)
            if self.logs:
                status = self._explain_logs(disk, progress)
            elif NAME.fullmatch(self.text):
                status = self._explain_name(disk)
            else:
                status = self._explain_text(disk)
            self.sink.end()
            self.output.flush()
        if status and not self.logs:
            print_error("no message that kdump knows; kdump explain --list lists them")
        return status

    def _disk(self, progress: Progress) -> DiskEvidence | None:
        if not self.options.disks:
            return None
        disk = DiskEvidence(
            self.options.disks,
            self.options.reading.run(unreadable=report_unreadable, more=progress.more, expect=progress.expect),
        )
        if not disk.places.directories and not disk.places.partitions:
            raise SourceError.at(self.options.disks[0], "no log directory or partition; --disk takes one of these")
        return disk

    def _explain_logs(self, disk: DiskEvidence | None, progress: Progress) -> int:
        status = 0
        if not self.options.disks and not any(log == "-" or log.endswith((".gz", ".zst")) for log in self.logs):
            progress.expect(sum(length(log) or 0 for log in self.logs))
        for log in self.logs:
            self.sink.part(log)
            try:
                for answer in explain_log(log, disk, zone=self.options.output.zone, run=Run(more=progress.more)):
                    if isinstance(answer, ExplanationSummary) and answer.error is not None:
                        print_error(answer.error)
                        status = 2
                    self.sink.add(answer)
            except SourceError as error:
                if len(self.logs) == 1:
                    raise
                report_unreadable(error)
                status = 2
        return status

    def _explain_name(self, disk: DiskEvidence | None) -> int:
        meaning = explain_name(self.text, disk)
        if meaning is None:
            raise SourceError(_unknown_name(self.text))
        self.sink.add(meaning)
        return 0

    def _explain_text(self, disk: DiskEvidence | None) -> int:
        explained = 0
        for answer in explain_text(self.text, disk, zone=self.options.output.zone):
            if isinstance(answer, ExplanationSummary):
                explained = answer.known
            self.sink.add(answer)
        return 0 if explained else 2


def _not_there(name: str) -> click.UsageError:
    return click.UsageError(f"{printable(name)}: no such file or directory; quote a message that has spaces")


def _unknown_name(name: str) -> str:
    similar = _similar(name)
    hint = f"did you mean {' or '.join(similar)}?" if similar else "kdump explain --list lists what is known"
    return f"{name}: not a file, and not a code, message, exception class or error code that kdump knows; {hint}"


def _similar(name: str) -> list[str]:
    by_lower = {known_name.lower(): known_name for known_name in known_names()}
    typed = name.rsplit(".", 1)[-1].lower()
    names = difflib.get_close_matches(typed.replace("_", "-"), by_lower, SUGGESTED, 0.7)
    names += difflib.get_close_matches(typed, by_lower, SUGGESTED, 0.7)
    return [by_lower[known_name] for known_name in dict.fromkeys(names)][:SUGGESTED]
