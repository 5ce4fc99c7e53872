"""Find records by what they mean, wherever they are on the disks, and report what was not searched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import click

from kdump.answer import Object
from kdump.command_line.command_run import print_error, print_unreported, report_unreadable, unreadable
from kdump.command_line.decoding_options import DecodingOptions
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import JSON, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.redact_options import RedactOptions, redact_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.decode.decoder_interface import DecoderError
from kdump.decode.record_decoder import RecordDecoder
from kdump.io.run import ignore
from kdump.log.expression.parser import ExpressionError, parse
from kdump.log.expression.terms import Expression
from kdump.log.output_directory import OutputError, OutputFile
from kdump.query import CommandOptions, added, group, jobs_option, option
from kdump.questions.find.answer import Answer, Match, SearchCoverage
from kdump.questions.find.report import FoundByTemplate, FoundObjects, FoundTable, RedactedNames, coverage_lines
from kdump.questions.find.run import answers
from kdump.questions.find.search import FindQuery
from kdump.questions.find.search_report import Collected, Names, SignatureError, json_text, page, sign, verify
from kdump.render.progress import Progress
from kdump.render.record_template import TemplateError
from kdump.render.redaction import Redaction
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import UnknownColumn

EXAMPLES = """
\b
Examples:
  kdump find "key == 'user-42'" /var/lib/kafka
  kdump find "value.amount > 100 and not isAborted" /var/lib/kafka --live
  kdump find "'4711' in any" /var/lib/kafka --json
  kdump find "header.trace ~ '^ab'" /var/lib/kafka/payments-0 -f '%o %k\\n'

\b
EXPR compares fields with values, joined by and, or, not and parentheses:
  key, value, header.NAME   as bytes and as decoded; key.a.b, value.a.b: fields of the decoded
  any                       key, value, names and values of headers: 'TEXT' in any
  offset, partition, topic, time, producer, size
  isAborted, isTransactional, isControl
  == != < <= > >=, ~ (regular expression), in (text within); null is a tombstone's value

\b
Exit status: 0 if records match; 1 if none does, and everything was searched; 2 for a usage error, if something could
not be read, or if nothing matches in what could be searched.
"""


@dataclass(frozen=True)
class FindOptions(CommandOptions):
    """The options of the command."""

    query: FindQuery = group(FindQuery)
    jobs: int | None = jobs_option("Search partitions")
    output: OutputOptions = added(output_options(json="Write JSON Lines: match objects, and one searchCoverage."))
    template: str | None = option(
        "-f", metavar="FORMAT", help=r"Write records by a format string as in kcat: '%o %k %s\n'."
    )
    report: str | None = option(
        "--report",
        metavar="FILE",
        help="Also write a search report: what was searched, every file with its SHA-256, and what was found, without "
        "its contents. FILE.json and FILE.html.",
    )
    sign: str | None = option("--sign", metavar="KEY", help="Sign the report by the Ed25519 key in this PEM file.")
    verify: str | None = option(
        "--verify", metavar="FILE", help="Verify the signature of a search report instead, and print its public key."
    )
    redaction: RedactOptions = added(redact_options("With --json: "))
    decoding: DecodingOptions = group(DecodingOptions)
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("records", 2))
@takes(FindOptions)
def command(options: FindOptions) -> None:
    """Find records by what they mean, in all files of log directories, bundles, partition directories and segments:
    also in deleted segments and partitions, in aborted transactions, in damaged batches, and in bytes that are no part
    of the log. Each is shown with what it is. What was searched, and what could not be, is printed to stderr; with
    --json, it is the last line. Nothing is written to the disk."""
    if options.verify is not None:
        exit_with(lambda: _verify(options), SignatureError)
    typed, paths = options.query.expression, options.query.paths
    if typed is None or not paths:
        raise click.UsageError(f"Missing argument '{'EXPR' if typed is None else 'PATH…'}'.")
    if options.sign is not None and options.report is None:
        raise click.UsageError("--sign signs the file of --report")
    read_once(paths)
    options.decoding.refuse_contradictions()
    hidden = options.redaction
    if (hidden.redact or hidden.redact_names) and options.output.format != JSON and options.report is None:
        raise click.UsageError("--redact applies only to --json and --report")
    if options.template is not None and (options.output.form or options.output.as_json):
        raise click.UsageError("choose one of --json, --format and -f")
    try:
        expression = parse(str(typed), zone=options.output.zone)
    except ExpressionError as error:
        raise click.UsageError(error.lines) from None
    exit_with(lambda: _run(options, expression), OutputError, SignatureError)


def _verify(options: FindOptions) -> int:
    """Verify a report and return the exit status."""
    report, public = verify(options.verify or "")
    print_error(f"search report of {report['written']}, of {report['matchCount']:,} matches: it is as it was signed")
    click.echo(public)
    return 0


def _run(options: FindOptions, expression: Expression) -> int:
    """Run the command and return its exit status."""
    query, output = options.query, options.output.output(headline=False)
    paths = tuple(query.paths)
    options.remote.mount(paths)
    decode = options.decoding.decode(paths)
    coverage: SearchCoverage | None = None
    redaction = options.redaction.redaction()
    collected = None if options.report is None else Collected()
    written = () if options.report is None else _report_files(options.report, paths)
    try:
        sink = _sink(options, expression, output, redaction)
        with Progress("find") as progress:

            def more(count: int) -> None:
                progress.more(count)
                sink.tick()

            begin = ignore if collected is None else collected.file
            run = options.reading.run(
                query.now, unreadable=report_unreadable, more=more, expect=progress.expect, begin=begin
            )
            for answer in answers(replace(query, expression=expression, jobs=options.jobs, decode=decode, run=run)):
                if isinstance(answer, SearchCoverage):
                    coverage = answer
                elif collected is not None:
                    collected.match(answer)
                if redaction is None or options.output.format == JSON:
                    sink.add(answer)
        sink.end()
    except (DecoderError, TemplateError, UnknownColumn) as error:
        raise click.UsageError(str(error)) from None
    output.flush()
    assert coverage is not None
    names = Names() if redaction is None else RedactedNames(redaction)
    if collected is not None:
        _write_report(options, collected.report(coverage, paths, names, live=query.live), written)
    print_unreported()
    unread = frozenset(unreadable())
    is_read = not unread
    if is_read or coverage.bytes:
        rest = [gap for gap in coverage.notSearched if gap.reason not in unread]
        above = len(coverage.notSearched) - len(rest)
        for line in coverage_lines(names.coverage(coverage._replace(notSearched=rest)), above):
            print_error(line)
    if not is_read:
        return 2
    return 0 if coverage.matches else 1 if coverage.isComplete else 2


def _write_report(options: FindOptions, report: Object, files: Iterable[OutputFile]) -> None:
    if options.sign is not None:
        sign(report, options.sign)
    for file, content in zip(files, (json_text(report), page(report))):
        with file.writing() as out:
            out.write(content)
        print_error(f"wrote {file.path}")


def _report_files(named: str, paths: tuple[str, ...]) -> tuple[OutputFile, OutputFile]:
    """Return the files of a report, as JSON and as a page. Raises OutputError."""
    stem = named[: -len(".json")] if named.endswith((".json", ".html")) else named
    return OutputFile(f"{stem}.json", paths), OutputFile(f"{stem}.html", paths)


def _sink(options: FindOptions, expression: Expression, output: Output, redaction: Redaction | None) -> Sink[Answer]:
    if options.template is not None:
        decoder = RecordDecoder(options.decoding.decode(tuple(options.query.paths)))
        return FoundByTemplate(output, options.template, decoder)
    form = options.output
    return form.sink(
        output,
        lambda: FoundTable(
            output, form.zone, form.names, full=form.full, when=options.query.when, asked=expression.numbers
        ),
        (Match,),
        objects=FoundObjects(redaction),
    )
