"""Write records, batches, findings and other tables as Parquet or Arrow, for DuckDB, Polars or pandas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timezone
from functools import cache, partial
from importlib import import_module
from typing import Any

import click

from kdump.answer import Key
from kdump.check.finding import ERROR, Finding
from kdump.command_line.command_run import print_error
from kdump.command_line.common_option import typed
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.filter_options import FilterOptions, selection_of, typed_expression
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import PartitionFilter, topic_filter
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.decode.record_decoder import DecodeOptions
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError, reason
from kdump.log.output_directory import OutputError
from kdump.query import CommandOptions, added, argument, flag, group, option, partition_option, topic_option
from kdump.questions.export.output_files import Output, answer_files, output_for
from kdump.questions.export.run import Export, ExportQuery, finding_row
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.tables.arrow import ArrowBatch, Rows
from kdump.tables.declarations import (
    BIGINT,
    BOOLEAN,
    FINDINGS,
    RECORDS,
    REJECTED,
    STRING,
    TABLES,
    SparkTable,
    columns_of,
)
from kdump.tables.read_options import OptionError, ReadOptions
from kdump.tables.record_rows import schema_fields
from kdump.tables.table_files import NoPyarrow, require_pyarrow

MAX_LINE = 64 << 20
"""Maximum number of bytes of a line."""
DOUBLE = "double"


@cache
def table_of(type_name: str) -> SparkTable | None:
    """Return the table for objects of this type; None if no command writes such objects. A nested object or array is a
    column with its JSON."""
    keys: tuple[Key, ...] | None = import_module("kdump.all_answers").TYPES.get(type_name)
    if keys is None:
        return None
    kinds = {key.name: _kind(key) for key in keys}
    return SparkTable(type_name, "", tuple(columns_of(keys, types=kinds)))


def _kind(key: Key) -> str:
    kind = key.type.removesuffix(" or null")
    if kind == "number":
        return DOUBLE if key.is_float else BIGINT
    return BOOLEAN if kind == "boolean" else STRING


def answer_rows(lines: Iterable[bytes], source: str) -> Iterator[tuple[SparkTable, dict[str, Any]]]:
    """Yield the objects in the lines as rows, each with its table. Raises SourceError for a line that no command has
    written."""
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            table = table_of(row["type"])
        except (ValueError, KeyError, TypeError, RecursionError):
            table = None
        if table is None:
            raise SourceError.at(source, f"line {number} is not a line that kdump --json writes")
        yield table, {column.name: _value(row.get(column.name), column.type) for column in table.columns}


def _value(value: Any, kind: str) -> Any:
    if kind == STRING:
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if kind == BOOLEAN:
        return value if isinstance(value, bool) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if not is_number else float(value) if kind == DOUBLE else int(value)


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
    control_records: bool = flag("--control-records", help="Also write control records, such as transaction markers.")
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
    schema_of: str | None = option(
        "--schema-of",
        metavar="TOPIC",
        help="Add the fields of this topic's newest Avro or Protobuf schema as columns; what does not fit goes to a "
        "second table, rejected. Without --topic, only this topic is read.",
    )
    schemas: str | None = option(
        "--schemas",
        metavar="PATH",
        help="Decode keys and values with a schema ID by this registry.  [the registry on the same disk]",
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("records", 3), to_the_end=True)
@takes(ExportOptions)
def command(options: ExportOptions) -> None:
    """Write the records of files, partition directories, log directories or parent directories as Parquet or Arrow:
    topic, partition, offset, time, key, value, headers, leader epoch, producer and, if they can be decoded, key and
    value as JSON; or batches, findings, index entries … Damage is a second table. A file is complete, or does not
    exist. Nothing is written to the disks."""
    read_once(options.paths)
    exit_with(
        lambda: export_answers(options) if options.answers else ExportCommand(options).run(),
        *(OutputError, NoPyarrow, OptionError),
    )


class ExportCommand:
    """One run of the command."""

    def __init__(self, options: ExportOptions) -> None:
        self.options = options
        of_schema = () if options.schema_of is None else (options.schema_of,)
        self.of_topic = topic_filter(options.topics or of_schema)
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
        options, table, fields = self.options, TABLES[self.options.table], None
        if options.schema_of is not None and table is RECORDS:
            fields = schema_fields(options.paths, options.schema_of, options.schemas)
            table = fields.table
        decode = DecodeOptions(
            decoder=options.decoder,
            key_format=options.key_format,
            value_format=options.value_format,
            schemas=options.schemas,
        )
        where = None if options.where is None else typed_expression("--where", options.where)
        names: tuple[str, ...] | None = None
        known = tuple(column.name for column in table.every_column)
        if options.columns is not None:
            names = tuple(name.strip() for name in options.columns.split(",") if name.strip())
            for name in names:
                if name not in known:
                    raise click.UsageError(f"--columns: {name!r} is not a column; use {', '.join(known)}")
        elif table is RECORDS and not options.no_decode:  # with a schema, its columns are what is decoded
            names = known
        return ReadOptions(
            table,
            options.paths,
            names,
            limits=options.reading.limits,
            decode=decode,
            where=where,
            control=options.control_records or options.filters.control or table.name != RECORDS.name,
            fields=fields,
        )

    def run(self) -> int:
        """Run the command and return its exit status. Raises OutputError, NoPyarrow and OptionError."""
        require_pyarrow()
        options = self.options
        with (
            Progress("export", expected=lambda: segment_bytes(options.paths, self.of_topic)) as progress,
            output_for(options.out, self.query, print_error) as output,
        ):
            self.export = Export(self.query, options.reading.run(**progress.listeners), print_error)
            self.export.on_rejected = partial(output.second, REJECTED)
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
        output.second(FINDINGS, finding_row(finding, self.export.identity))


def export_answers(options: ExportOptions) -> int:
    """Write the answers of other commands. Returns the exit status; raises OutputError, NoPyarrow and SourceError."""
    if not typed(click.get_current_context()) <= {"paths", "out", "answers", "quiet"}:
        raise click.UsageError("--answers takes only --out and --quiet")
    require_pyarrow()
    sources = tuple(path for path in options.paths if path != "-")
    with answer_files(options.out, sources) as files:
        for path in options.paths:
            for table, row in answer_rows(_lines(path), path_text(path)):
                files.add(table, row)
        files.end()
        if not files.rows:
            raise SourceError(f"{path_text(options.paths[0])}: is empty", options.paths[0])
    if not options.quiet:
        for name, count in files.rows.items():
            print_error(f"{count_text(count, 'row')} of {name} in {path_text(options.out)}")
    return 0


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file, or of standard input (-). Raises SourceError."""
    try:
        with click.open_file(path, "rb") as file:
            yield from iter(partial(file.readline, MAX_LINE), b"")
    except OSError as error:
        raise SourceError.at(path, reason(error, path)) from None


def _refuse(options: ExportOptions, query: ExportQuery) -> None:
    """Raise click.UsageError for options that would have no effect."""
    if not query.has_regions and not (query.selection.is_all and not options.read_committed):
        raise click.UsageError(f"--table {options.table} takes no options that select records or batches")
    if not query.is_of_records:
        of_records = ("where", "schema_of", "decoder", "key_format", "value_format", "schemas", "no_decode")
        for name in (*of_records, "control_records"):
            if getattr(options, name):
                raise click.UsageError(f"--{name.replace('_', '-')} applies to records, not to --table {options.table}")
    if options.by_markers and not options.read_committed:
        raise click.UsageError("--by-markers requires --read-committed")
    if options.no_decode and (options.decoder or options.key_format or options.value_format or options.schemas):
        raise click.UsageError("--no-decode cannot be combined with options that decode")
