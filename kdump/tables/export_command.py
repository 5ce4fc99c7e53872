"""`kdump export`: writes records, batches, findings or other tables of a disk as Parquet or Arrow."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timezone
from functools import partial
from typing import Any, BinaryIO

import click
from click.core import ParameterSource

from kdump.check.finding import ERROR, Finding
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.input_files import print_error
from kdump.command_line.name_options import PartitionFilter, partition_option, topic_filter, topic_option
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import CommandOptions, added, argument, flag, group, option, takes
from kdump.decode.record_decoder import DecodeOptions
from kdump.format.count_text import count_text, plain_count
from kdump.io.errors import SourceError
from kdump.log.expression import Expression, ExpressionError, parse
from kdump.log.output_directory import OutputDirectory, OutputError, OutputFile
from kdump.log.paths import Target
from kdump.questions.inspect.command import FilterOptions, selection_of
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.streams import write_all
from kdump.tables.answer_tables import MAX_LINE, answer_rows
from kdump.tables.arrow import ArrowBatch, Rows, arrow_schema
from kdump.tables.declarations import FINDINGS, RECORDS, TABLES
from kdump.tables.export import Export, ExportQuery, finding_row
from kdump.tables.read_options import OptionError, ReadOptions
from kdump.tables.table_files import NoPyarrow, ParquetTable, StreamTable, TableFile, require_pyarrow

PARQUET, ARROW = ".parquet", ".arrow"
STDOUT = 1
SHOWN = 5
"""Maximum number of findings that are printed if there is no file for them."""
EXAMPLES = """
\b
Examples:
  kdump export /var/lib/kafka/payments-0 --out payments.parquet
  kdump export /var/lib/kafka --topic 'pay*' --time -2h.. --out payments
  kdump export /var/lib/kafka --table batches --out - | python3 -c '…'
  kdump export payments-0 --where 'value.amount > 100' --columns offset,time,value --out large.parquet

\b
Exit status: that of kdump verify: 0 if there is no error in what was read, 1 if there is one, 2 for a usage error, or
if something could not be read or written and the status is not 1.
"""
OUT_HELP = (
    "Write to this new file (.parquet, or .arrow for an IPC stream), to standard output (-, an IPC stream), or to a "
    "new directory with a Parquet file for each partition."
)


@dataclass(frozen=True)
class ExportOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    out: str = option("--out", metavar="FILE|DIR|-", required=True, help=OUT_HELP, section="Write")
    table: str = option(
        "--table",
        type=click.Choice(list(TABLES)),
        metavar="NAME",
        default=RECORDS.name,
        help=f"Write this table: {', '.join(TABLES)}.  [records]",
    )
    answers: bool = flag(
        "--answers",
        help="Write what other commands wrote with --json to the paths (-: standard input): a table of each type of "
        "object, to a directory if there are several.",
    )
    columns: str | None = option("--columns", metavar="NAME,…", help="Write these columns, in this order.  [all]")
    control: bool = flag("--control-records", help="Also write control records, such as transaction markers.")
    limit: int | None = option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Write at most N rows.")
    quiet: bool = flag("-q", "--quiet", help="Do not print how many rows and findings were written.")
    topics: tuple[str, ...] = topic_option("Read only partitions of these topics", section="Select")
    partitions: tuple[int, ...] = partition_option("Read only partitions")
    filters: FilterOptions = group(FilterOptions)
    where: str | None = option(
        "--where", metavar="EXPR", help="Write only records that match this expression, as of kdump find."
    )
    read_committed: bool = flag("--read-committed", help="Write only what a read_committed consumer receives.")
    by_markers: bool = flag(
        "--by-markers", help="With --read-committed, find aborted transactions by their markers instead."
    )
    no_decode: bool = flag("--no-decode", help="Omit the columns with decoded keys and values.", section="Decode")
    decoder: str | None = option("--decoder", metavar="NAME", help="Decode records with this decoder, as inspect does.")
    key_format: str | None = option("--key-format", metavar="FORMAT", help="Decode keys as this, as inspect does.")
    value_format: str | None = option("--value-format", metavar="FORMAT", help="The same for values.")
    schemas: str | None = option(
        "--schemas",
        metavar="PATH",
        help="Decode keys and values with a schema ID by this registry.  [the registry on the same disk]",
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES)
@takes(ExportOptions)
def command(options: ExportOptions) -> None:
    """Write the records of files, partition directories, log directories or parent directories as Parquet or Arrow:
    topic, partition, offset, time, key, value, headers, leader epoch, producer and, if they can be decoded, key and
    value as JSON; or batches, findings, index entries … Damage is a second table. A file is complete, or does not
    exist. Nothing is written to the disks."""
    read_once(options.paths)
    run = export_answers if options.answers else lambda options: ExportCommand(options).run()
    exit_with(lambda: run(options), OutputError, NoPyarrow, OptionError)


class ExportCommand:
    """One run of the command."""

    def __init__(self, options: ExportOptions) -> None:
        self.options = options
        self.of_topic = topic_filter(options.topics)
        self.query = ExportQuery(
            self._reading(),
            selection_of(options.filters, timezone.utc),
            self.of_topic,
            PartitionFilter(options.partitions),
            options.read_committed,
            options.by_markers,
        )
        self.severities: Counter[str] = Counter()
        self.left = options.limit
        _refuse(options, self.query)

    def _reading(self) -> ReadOptions:
        options, table = self.options, TABLES[self.options.table]
        decode = DecodeOptions(
            decoder=options.decoder,
            key_format=options.key_format,
            value_format=options.value_format,
            schemas=options.schemas,
        )
        names: tuple[str, ...] | None = None
        if options.columns is not None:
            names = tuple(name.strip() for name in options.columns.split(",") if name.strip())
            known = [column.name for column in (*table.columns, *table.on_request)]
            for name in names:
                if name not in known:
                    raise click.UsageError(f"--columns: {name!r} is not a column; use {', '.join(known)}")
        elif table is RECORDS and not options.no_decode:
            names = tuple(column.name for column in (*table.columns, *table.on_request))
        return ReadOptions(
            table,
            options.paths,
            names,
            limits=options.reading.limits,
            decode=decode,
            where=_expression(options.where),
            control=options.control or options.filters.control or table is not RECORDS,
        )

    def run(self) -> int:
        """Run the command and return its exit status. Raises OutputError, NoPyarrow and OptionError."""
        require_pyarrow()
        options = self.options
        expected = lambda: segment_bytes(options.paths, self.of_topic)  # noqa: E731
        with Progress("export", expected=expected) as progress, output_for(options.out, self.query) as output:
            self.export = Export(self.query, options.reading.run(**progress.listeners), print_error)
            self._rows(output)
            unread = self.export.totals.unread
            if unread and not output.rows and not self.severities:
                raise SourceError(unread[0])
            if not unread:
                self.of_topic.refuse_unmatched()
            output.end()
        for line in unread:
            print_error(line)
        if not options.quiet and not any(self.of_topic.unmatched()):
            print_error(output.summary(self.severities))
        return 1 if self.severities[ERROR] or self.export.unjudged else 2 if unread else 0

    def _rows(self, output: Output) -> None:
        export, query = self.export, self.query

        def put(batch: ArrowBatch) -> None:
            if self.left is not None:
                batch = replace(batch, length=min(batch.length, self.left))
                self.left -= batch.length
            if batch.length:
                output.put(export.target, batch)

        if query.table is FINDINGS:
            rows = Rows(FINDINGS, query.schema)
            for finding in export.checked(put):
                self.severities[finding.severity] += 1
                rows.add(finding_row(finding, export.identity))
                for batch in rows.take() if rows.is_full else ():
                    put(batch)
            for batch in rows.take():
                put(batch)
            return
        if query.has_regions and query.reads_all and self.left is None:
            for finding in export.checked(put):
                self._finding(output, finding)
            return
        for item in export.rows():
            if isinstance(item, Finding):
                self._finding(output, item)
            else:
                put(item)
            if self.left == 0:
                break

    def _finding(self, output: Output, finding: Finding) -> None:
        self.severities[finding.severity] += 1
        output.finding(finding_row(finding, self.export.identity))


def export_answers(options: ExportOptions) -> int:
    """Write the answers of other commands. Returns the exit status; raises OutputError, NoPyarrow and SourceError."""
    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if not given <= {"paths", "out", "answers", "quiet"}:
        raise click.UsageError("--answers takes only --out and --quiet")
    require_pyarrow()
    sources = tuple(path for path in options.paths if path != "-")
    rows: dict[str, Rows] = {}
    files: dict[str, TableFile] = {}
    with ExitStack() as stack:
        directory = None
        if options.out != "-" and not options.out.endswith((PARQUET, ARROW)):
            directory = stack.enter_context(OutputDirectory(options.out, sources).whole())

        def put(own: Rows, name: str) -> None:
            for batch in own.take():
                if name not in files:
                    if files and directory is None:
                        both = " and ".join((*files, name))
                        raise OutputError(
                            f"--out {options.out}: there are objects of types {both}; write to a directory"
                        )
                    file: Any = _StandardOutput()
                    if directory is not None:
                        file = stack.enter_context(directory.writing(name + PARQUET))
                    elif options.out != "-":
                        file = stack.enter_context(OutputFile(options.out, sources).writing())
                    is_stream = directory is None and not options.out.endswith(PARQUET)
                    files[name] = (StreamTable if is_stream else ParquetTable)(file, own.schema)
                files[name].put(batch)

        try:
            for path in options.paths:
                with click.open_file(path, "rb") as lines:
                    for table, row in answer_rows(iter(partial(lines.readline, MAX_LINE), b""), path_text(path)):
                        own = rows.setdefault(table.name, Rows(table, arrow_schema(table)))
                        if own.add(row):
                            put(own, table.name)
            for name, own in rows.items():
                put(own, name)
            if not files:
                raise SourceError(f"{path_text(options.paths[0])}: is empty")
            for written in files.values():
                written.end()
        except BaseException:
            for written in files.values():
                with suppress(Exception):
                    written.end()
            raise
    if not options.quiet:
        for name, written in files.items():
            print_error(f"{count_text(written.rows, 'row')} of {name} in {path_text(options.out)}")
    return 0


def _expression(text: str | None) -> Expression | None:
    if text is None:
        return None
    try:
        expression = parse(text)
    except ExpressionError as error:
        raise click.UsageError(f"--where: {error.lines}") from None
    if expression.needs.aborted:
        raise click.UsageError("--where: isAborted is not known here; use --read-committed")
    return expression


def _refuse(options: ExportOptions, query: ExportQuery) -> None:
    """Raise click.UsageError for options that would have no effect."""
    if not query.has_regions and not (query.selection.is_all and not options.read_committed):
        raise click.UsageError(f"--table {options.table} takes no options that select records or batches")
    if query.table is not RECORDS:
        for name in ("where", "decoder", "key_format", "value_format", "schemas", "no_decode", "control"):
            if getattr(options, name):
                typed = "control-records" if name == "control" else name.replace("_", "-")
                raise click.UsageError(f"--{typed} applies to records, not to --table {options.table}")
    if options.by_markers and not options.read_committed:
        raise click.UsageError("--by-markers requires --read-committed")
    if options.no_decode and (options.decoder or options.key_format or options.value_format or options.schemas):
        raise click.UsageError("--no-decode cannot be combined with options that decode")


class Output:
    """Where the rows go. `finding` takes rows of the table findings, which have a file of their own."""

    def __init__(self, name: str, query: ExportQuery, findings: Callable[[], AbstractContextManager[BinaryIO]]) -> None:
        self.name, self.schema, self.noun = name, query.schema, query.table.name.replace("_", " ")
        self.rows = 0
        self.stack = ExitStack()
        self.findings_name = ""
        self._open_findings = findings
        self._rows = Rows(FINDINGS, arrow_schema(FINDINGS))
        self.file: TableFile | None = None
        self._findings: TableFile | None = None

    def put(self, target: Target | None, batch: ArrowBatch) -> None:
        raise NotImplementedError

    def finding(self, row: dict[str, Any]) -> None:
        self._rows.add(row)
        if self._rows.is_full:
            self._put_findings()

    def _put_findings(self) -> None:
        for batch in self._rows.take():
            self._findings_file().put(batch)

    def _findings_file(self) -> TableFile:
        if self._findings is None:
            file = self.stack.enter_context(self._open_findings())
            self._findings = ParquetTable(file, arrow_schema(FINDINGS))
        return self._findings

    def end(self) -> None:
        """Complete the files."""
        self._put_findings()
        if self._findings is not None:
            self._findings.end()
        self.stack.close()

    def abandon(self) -> None:
        """Let pyarrow forget the files, which it would write to later."""
        for file in (self.file, self._findings):
            with suppress(Exception):
                if file is not None:
                    file.end()

    def summary(self, severities: Counter[str]) -> str:
        """Return a line about what was written."""
        line = f"{count_text(self.rows, 'row')} of {self.noun} in {self.name}"
        if self._findings is None:
            return line
        counts = ", ".join(plain_count(count, severity) for severity, count in sorted(severities.items()))
        return f"{line}; {counts} in {self.findings_name}"


class FileOutput(Output):
    """A single file, or standard output."""

    def __init__(self, path: str, query: ExportQuery, sources: tuple[str, ...]) -> None:
        stem = "kdump" if path == "-" else os.path.splitext(path)[0]
        name = f"{stem}.findings{PARQUET}"
        super().__init__(path_text(path), query, lambda: OutputFile(name, sources).writing())
        self.findings_name = path_text(name)
        if path == "-":
            self.name, self.findings_name = "standard output", "stderr"
            file: Any = _StandardOutput()
        else:
            OutputFile(name, sources)  # refused before anything is read
            file = self.stack.enter_context(OutputFile(path, sources).writing())
        self.file = (ParquetTable if path.endswith(PARQUET) else StreamTable)(file, self.schema)

    def put(self, target: Target | None, batch: ArrowBatch) -> None:
        assert self.file is not None
        self.file.put(batch)
        self.rows += batch.length

    def end(self) -> None:
        assert self.file is not None
        self.file.end()
        super().end()


class PipeOutput(FileOutput):
    """Standard output. Findings are printed, the first ones."""

    printed = 0

    def finding(self, row: dict[str, Any]) -> None:
        self.printed += 1
        if self.printed <= SHOWN:
            print_error(f"{row['file']}: {row['severity']}: {row['code']} at byte {row['position']}: {row['message']}")

    def summary(self, severities: Counter[str]) -> str:
        more = "" if not self.printed else f"; {count_text(self.printed, 'finding')}: kdump verify shows all"
        return f"{super().summary(severities)}{more}"


class _StandardOutput:
    """What pyarrow writes standard output to."""

    closed = False

    def write(self, data: bytes) -> int:
        write_all(STDOUT, memoryview(data))
        return len(data)

    def flush(self) -> None:
        pass


class DirectoryOutput(Output):
    """A directory: a file for each partition, and one with the findings."""

    def __init__(self, directory: OutputDirectory, query: ExportQuery, shown: str) -> None:
        super().__init__(path_text(shown), query, lambda: directory.writing(FINDINGS.name + PARQUET))
        self.findings_name = f"{self.name}/{FINDINGS.name}{PARQUET}"
        self.directory, self.has_files = directory, query.has_regions
        self.place: tuple[Any, ...] | None = None
        self.names: set[str] = {FINDINGS.name} if query.has_regions else set()
        self.open_file = self.stack.enter_context(ExitStack())

    def put(self, target: Target | None, batch: ArrowBatch) -> None:
        place: tuple[Any, ...] = ()
        if self.has_files and target is not None:
            place = (target.source, target.topic, target.partition) if target.topic else (target.path,)
        if self.file is None or place != self.place:
            self._close()
            self.place = place
            file = self.open_file.enter_context(self.directory.writing(self._name(target if place else None)))
            self.file = ParquetTable(file, self.schema)
        self.file.put(batch)
        self.rows += batch.length

    def _name(self, target: Target | None) -> str:
        name = self.noun.replace(" ", "_")
        if target is not None:
            stem = os.path.basename(target.path).partition(".")[0]
            name = stem if target.topic is None else f"{target.topic}-{target.partition}"
        number, stem = 1, name
        while name in self.names:  # the same partition on another disk
            number += 1
            name = f"{stem}.{number}"
        self.names.add(name)
        return name + PARQUET

    def _close(self) -> None:
        if self.file is not None:
            self.file.end()
            self.file = None
        self.open_file.close()

    def end(self) -> None:
        self._close()
        if self.has_files:
            self._findings_file()
        super().end()


@contextmanager
def output_for(path: str, query: ExportQuery) -> Iterator[Output]:
    """Open the output; of what is not complete in the end, nothing remains. Raises OutputError."""
    sources = query.reading.paths
    with ExitStack() as stack:
        if path == "-":
            if os.isatty(STDOUT):
                raise OutputError("--out -: standard output is a terminal; redirect it, or write to a file")
            output: Output = PipeOutput(path, query, sources)
        elif path.endswith((PARQUET, ARROW)):
            output = FileOutput(path, query, sources)
        else:
            directory = stack.enter_context(OutputDirectory(path, sources).whole())
            output = DirectoryOutput(directory, query, path)
        stack.enter_context(output.stack)
        try:
            yield output
        except BaseException:
            output.abandon()
            raise
