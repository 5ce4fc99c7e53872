"""The work of `kdump inspect`: chooses the view, and passes it what is selected."""

from __future__ import annotations

from datetime import timezone
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import click

from kdump.command_line.command_run import print_error, unreadable_line
from kdump.command_line.output_options import CSV, JSON, TABLE
from kdump.core.row_writer import COMPILED
from kdump.decode.decoder_interface import DecoderError
from kdump.decode.record_decoder import RecordDecoder
from kdump.log.record import damage_text
from kdump.parallel_jobs import usual_jobs
from kdump.questions.inspect.fast_rows import FastView
from kdump.questions.inspect.options import HEX, TEMPLATE
from kdump.questions.inspect.outcome import exit_status
from kdump.questions.inspect.rows import Rows
from kdump.questions.inspect.selected_files import SelectedFiles
from kdump.questions.inspect.views import CsvView, HexView, JsonView, RedactedView, TableView, TemplateView, View
from kdump.render.progress import Progress
from kdump.render.record_template import TemplateError, compile_template, shows_decoded
from kdump.render.stdout import Output
from kdump.render.table import OtherColumns, UnknownColumn
from kdump.render.times import iso

if TYPE_CHECKING:
    from kdump.render.redaction import Redaction


def show(files: SelectedFiles) -> int:
    """Show everything that is selected, and return the exit status."""
    options, times = files.options, files.selection.times
    output = options.output.output(headline=False)
    if times is not None:
        first, last = (iso(end, options.output.zone) if end is not None else "" for end in times)
        print_error(f"time range {first}..{last}")
    redaction = options.redaction.redaction()  # before the first error is printed, which has names
    listed = files.listed = list(files)
    if options.form in (TABLE, HEX) and listed:  # begins with what cannot be read, as far as this is known by now
        if len(listed) > 1:
            files.try_all()
        line = unreadable_line()
        if line:
            output.line(line)
    following = options.follow and bool(listed)
    view = _view(files, output, redaction, several=len(listed) > 1 or following)
    rows = Rows(files, view)
    try:
        if options.last:
            from kdump.questions.inspect.last import show_last

            show_last(rows, options.last)
        else:
            for target in listed[:-1] if following else listed:
                if rows.left == 0:
                    break
                rows.show(target)
        if following:
            from kdump.questions.inspect.follow import follow

            with Progress(""):
                follow(rows, listed[-1])
        view.drain()
    except (UnknownColumn, OtherColumns) as error:
        raise click.UsageError(str(error)) from None
    finally:
        view.end()
        files.notes()
    return exit_status(files, is_empty=view.is_empty)


def _view(files: SelectedFiles, output: Output, redaction: Redaction | None, *, several: bool) -> View:
    """Return the view that the options choose. Raises UsageError."""
    options = files.options
    try:
        decoding = RecordDecoder(options.decoding.decode(options.paths))
        if options.count:
            from kdump.questions.inspect.record_counts import CountTable, CountView, RecordCount

            table = partial(CountTable, output)
            return CountView(output, options.output.sink(output, table, (RecordCount,), report=True), files.selection)
        if options.form == TEMPLATE:
            template = options.template or ""
            shown = decoding if shows_decoded(template) else None
            return TemplateView(output, compile_template(template, decoding), print_error, shown)
        if redaction is not None:
            return RedactedView(output, redaction, records=options.of_records)
        if options.form == JSON:
            return _quick(files, JsonView(output, records=options.of_records, decoding=decoding), decoding)
        if options.form == CSV:
            return CsvView(output, options, print_error, decoding)
        if options.form == HEX:
            return HexView(output, options, decoding, titles=several)
        return _quick(files, TableView(output, options, decoding, titles=several), decoding)
    except (UnknownColumn, TemplateError, DecoderError) as error:
        raise click.UsageError(str(error)) from None


def _quick(files: SelectedFiles, view: JsonView | TableView, decoding: RecordDecoder) -> View:
    """Return the view that writes the same rows directly from columns, if the core is compiled and rows are not needed
    one by one, as with a limit; tables only in a pipe."""
    options, output = files.options, view.output
    if options.limit or options.last or options.follow or not COMPILED:
        return view
    if not options.of_records and not files.selection.is_all:
        return view
    if isinstance(view, TableView) and (
        output.terminal or output.colour or options.output.names is not None or options.output.zone is not timezone.utc
    ):
        return view
    jobs = options.jobs or usual_jobs()
    return FastView(view, files.scan, files.coverage, decoding, records=options.of_records, jobs=jobs)


def extract(files: SelectedFiles) -> int:
    """Write the raw key or value of the single matching record, and return the exit status."""
    options, output = files.options, files.options.output.output(headline=False)
    if output.terminal:
        raise click.UsageError(
            "--extract writes raw bytes, which may contain terminal control sequences; redirect it to a file"
        )
    found = [*islice(files.records(), 1 if options.limit == 1 else 2)]
    if not found:
        files.report_refused()
        return exit_status(files, is_empty=True)
    first, *more = found
    if more:
        offsets = f"{first.offset} and {more[0].offset}"
        raise click.UsageError(f"more than one record matches (offsets {offsets} …); choose one with --offset")
    start, size = first.key_start, first.keySize
    if options.extract == "value":
        start, size = first.value_start, first.valueSize
    if size < 0:
        print_error(f"the {options.extract} of the record at offset {first.offset} is null")
        return 2
    if damage := damage_text(first):
        print_error(f"{damage}: these bytes may be damaged")
    output.write_now(memoryview(first.data)[start : start + size])
    output.flush()
    return exit_status(files, is_empty=output.is_empty)
