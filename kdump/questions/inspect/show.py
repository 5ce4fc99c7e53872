"""The work of `kdump inspect`: passes the selected regions of each file to a view.

The output of `kdump inspect --json --redact`: JSON Lines without what is in records and, on request, names."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timezone
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import click

from kdump.answer import Object
from kdump.command_line.decoding_options import DecodingOptions
from kdump.command_line.filter_options import FilterOptions
from kdump.command_line.input_files import Files, print_error, unreadable_line
from kdump.command_line.name_options import partition_option, topic_option
from kdump.command_line.output_options import CSV, FORMATS, JSON, TABLE, OutputOptions, output_options
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.redact_options import RedactOptions, redact_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import CommandOptions, added, argument, flag, group, option
from kdump.core.row_writer import COMPILED
from kdump.decode.decoder_interface import DecoderError
from kdump.decode.record_decoder import RecordDecoder
from kdump.format.count_text import plain_count
from kdump.format.errors import DecodeError
from kdump.format.number_range import Range
from kdump.io.errors import SourceError, is_gone
from kdump.io.run import QUIET_RUN, Run
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.entries import Entry, Item, entries
from kdump.log.file_kinds import BATCHES, KINDS, FileKind
from kdump.log.follow import FollowedLog
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, BatchRun, Problem, Region
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Selection
from kdump.log.torn_batch import torn_batch
from kdump.parallel_jobs import usual_jobs
from kdump.questions.inspect.fast_rows import FastRows
from kdump.questions.inspect.record_counts import CountTable, CountView, RecordCount
from kdump.questions.inspect.views import CsvView, HexView, JsonView, TableView, TemplateView, View
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.render.record_template import TemplateError, compile_template, shows_decoded
from kdump.render.redaction import Redaction, redacted_record
from kdump.render.stdout import Output
from kdump.render.table import OtherColumns, UnknownColumn
from kdump.render.times import iso

if TYPE_CHECKING:
    from kdump.questions.read_committed import ReadCommitted


PATHS = ("file", "source")
"""Keys whose values are paths."""


class RedactedView(JsonView):
    """JSON Lines in which the redaction replaces what it applies to. Nothing is decoded."""

    def __init__(self, output: Output, redaction: Redaction, *, records: bool) -> None:
        super().__init__(output, records=records)
        self.redaction = redaction

    def _record(self, target: Target, record: Record, decoding: RecordDecoder | None) -> None:
        super()._write(redacted_record(self.redaction, target, record))

    def _write(self, answer: Object) -> None:
        for name in PATHS:
            if name in answer:
                answer[name] = self.redaction.path(answer[name])
        if isinstance(answer.get("topic"), str):
            answer["topic"] = self.redaction.topic(answer["topic"])
        if isinstance(answer.get("name"), str) and isinstance(answer.get("value"), str):
            answer["name"], answer["value"] = self.redaction.property(answer["name"], answer["value"])
        super()._write(answer)


HEX, TEMPLATE = "hex", "template"
"""Formats besides those of kdump.command_line.output_options."""


AS_HELP = f"Treat the files as this kind, whatever their names: {', '.join(KINDS)}."
COMMITTED_HELP = (
    "Show only what a read_committed consumer receives: no control or aborted records, and nothing at or above the "
    "last stable offset. Brokers find aborted transactions in the .txnindex files alone: what these lack is shown."
)
BY_MARKERS_HELP = (
    "With --read-committed, find aborted transactions by their markers instead: what a consumer should receive."
)


@dataclass(frozen=True)
class InspectOptions(CommandOptions):
    """The options of the command. `limit` and `last` are numbers of rows."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    records: bool = flag("--records", help="Show records instead of batches.", section="Show")
    as_hex: bool = flag("--hex", help="Show an annotated hexdump; same as --format hex.")
    template: str | None = option(
        "-f", metavar="FORMAT", help=r"Write records by a format string as in kcat: '%o %k %s\n'."
    )
    extract: str | None = option(
        "--extract",
        type=click.Choice(["key", "value"]),
        help="Write the raw key or value of the single matching record.",
    )
    limit: int | None = option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Show at most N rows.")
    last: int | None = option(
        "--last",
        metavar="N",
        type=click.IntRange(min=1),
        help="Show the last N rows; reads backward from the end of the file.",
    )
    follow: bool = flag("--follow", help="Keep reading as the last file grows, like tail -f.")
    output: OutputOptions = added(output_options(formats=(*FORMATS, HEX)))
    redaction: RedactOptions = added(redact_options("With --json: "))
    count: bool = flag("--count", help="Count the selected records instead of showing them, of each partition.")
    topics: tuple[str, ...] = topic_option("In directories, show only partitions of these topics", section="Select")
    partitions: tuple[int, ...] = partition_option("In directories, show only partitions")
    all_files: bool = flag("--all-files", help="In directories, also read .deleted, .swap and .cleaned segments.")
    filters: FilterOptions = group(FilterOptions)
    read_committed: bool = flag("--read-committed", help=COMMITTED_HELP)
    by_markers: bool = flag("--by-markers", help=BY_MARKERS_HELP)
    decoding: DecodingOptions = group(DecodingOptions)
    kind: str | None = option("--as", type=click.Choice(list(KINDS)), metavar="KIND", help=AS_HELP, section="Read")
    jobs: int | None = option(
        "--jobs", type=click.IntRange(min=1), help="Write records as JSON in this many threads.  [CPU cores, at most 4]"
    )
    no_index: bool = flag("--no-index", help="Do not use .index and .timeindex to find where to start reading.")
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)

    @property
    def form(self) -> str:
        """The format of the output: one of FORMATS, HEX or TEMPLATE."""
        if self.template is not None:
            return TEMPLATE
        return HEX if self.as_hex else self.output.format

    def given(self, *names: str) -> list[str]:
        """Return those of the options that were given, as they are typed."""
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]


def notes_of(target: Target, note: str) -> None:
    print_error(f"{path_text(target.path)}: {note}")


def _furthest(progress: Progress, position: int, size: int | None) -> None:
    progress.at(max(position, progress.done), size)


class InspectRun:
    """One run of the command."""

    def __init__(
        self,
        options: InspectOptions,
        selection: Selection,
        of_topic: Callable[[str], bool],
        of_partition: Callable[[int | None], bool],
    ) -> None:
        self.options, self.selection, limits = options, selection, options.reading.limits
        self.records = options.records or options.count or options.template is not None
        """Whether records are shown or counted, and not batches."""
        self.columns, self.full, self.zone = options.output.names, options.output.full, options.output.zone
        self.decode, self.redaction = options.decoding.decode(options.paths), options.redaction.redaction()
        self.output = Output(options.output.color)
        self.left = options.limit
        self.committed: ReadCommitted | None = None
        if options.read_committed:
            from kdump.questions.read_committed import ReadCommitted

            self.committed = ReadCommitted(limits, print_error, by_markers=options.by_markers)
            self.selection = replace(selection, gate=self.committed)
        self.scan = RegionScan(self.selection, limits, self.records, options.reading.run().window, not options.no_index)
        self.coverage = SearchCoverage(self.selection) if self.selection.looks_at_content else None
        """What a search for keys, values or headers has read; None for everything else."""
        self._searched: dict[str, None] = {}
        """The directories in which it has read segments."""
        self.files = Files(
            options.paths,
            KINDS.get(options.kind or ""),
            self.scan,
            of_topic,
            follow=options.follow,
            all_files=options.all_files,
            coverage=self.coverage,
            of_partition=of_partition,
        )
        self.quick: FastRows | None = None
        """Writes the records of the current file directly from their columns; None if that is not possible."""
        self._quick: FastRows | None = None
        self._nothing = False
        self._inputs: list[Target] = []
        self._extracts = False
        self._has_committed = False
        """Whether a file was shown as a read_committed consumer sees it."""
        self._csv: CsvView | None = None
        self._counts: CountView | None = None

    @property
    def status(self) -> int:
        """The exit status: 2 if something selected by name, path or offset could not be shown; 1 if a filter leaves
        nothing, which is then reported (--read-committed is a view of the log and not a filter)."""
        if self._nothing:
            return 2
        if self.coverage is not None:
            return self._search_status(self.coverage)
        if self.files.failed:
            return 2
        self.output.flush()
        is_empty = self.output.is_empty if self._csv is None else self._csv.rows.is_empty
        if self._counts is not None:
            is_empty = not self._counts.counts
        if replace(self.selection, gate=None).is_all or not is_empty:
            return 0
        outside = self._outside()
        print_error(outside or self._gap() or "nothing matches")
        return 2 if outside else 1

    def _search_status(self, coverage: SearchCoverage) -> int:
        """The exit status of a search for content: 1 if nothing matches in all that was to be searched, 2 if nothing
        matches in the part of it that could be."""
        if self.selection.offsets is None:  # else, what may have a selected offset was shown
            coverage.omitted(self.scan)
        if not coverage.matched and self.selection.offsets is None:
            coverage.remote += self._only_remote()
        is_all = coverage.is_complete and not self.files.failed
        outside = "" if coverage.matched else self._outside()
        gaps = coverage.gaps()
        if gaps:
            print_error(f"NOT SEARCHED: {'; '.join(gaps)}")
        if not coverage.matched and (coverage.files or not self.files.failed):
            # With --last, batches are read more than once, so their number would be wrong.
            batches = None if self.options.last else self.scan.batches
            print_error(outside or coverage.result(batches, is_complete=is_all))
        left_out = coverage.left_out()
        if left_out:
            print_error(left_out)
        if self.files.failed or outside:
            return 2
        return 0 if coverage.matched else 1 if is_all else 2

    def _outside(self) -> str:
        """Return a message if the selected offsets are outside the log, with the log's first or end offset; else an
        empty string."""
        offsets, scan = self.selection.offsets, self.scan
        low = [*self.files.named, *([scan.lowest] if scan.lowest is not None else [])]
        high = [*self.files.named, *([scan.highest + 1] if scan.highest is not None else [])]
        if offsets is None or not low:
            return ""
        if offsets.first is not None and offsets.first >= max(high, default=0):
            return f"offset {offsets.first} does not exist: the log end offset is {max(high)}"
        if offsets.last is not None and offsets.last < min(low):
            return f"offset {offsets.last} does not exist: the first offset here is {min(low)}"
        return ""

    def _gap(self) -> str:
        """Return a message if no record has the selected offsets, with the offset of the next one; else an empty
        string."""
        offsets = self.selection.offsets
        if offsets is None or offsets.first is None or self.selection != Selection(offsets=offsets):
            return ""
        following = self._next_record(offsets.first)
        if following is None:
            return ""
        last = "" if offsets.last in (None, offsets.first) else f"..{offsets.last}"
        return f"offset {offsets.first}{last}: no record: compaction removed it, or it is lost; the next is {following}"

    def _next_record(self, offset: int) -> int | None:
        """Return the offset of the first record at `offset` or above; None if there is none, or it cannot be read."""
        scan = RegionScan(Selection(offsets=Range(offset, None)), self.scan.limits, keeps=True)
        for target in self._inputs:
            try:
                window = scan.open(target)
                with closing(window.source):
                    for region in scan.chosen(target, window):
                        offsets = (record.offset for record in records(region)) if isinstance(region, Batch) else ()
                        following = [number for number in offsets if number is not None and number >= offset]
                        if following:
                            return min(following)
            except (SourceError, DecodeError):
                return None
        return None

    def run(self) -> None:
        """Show everything that is selected."""
        if self.selection.times is not None:
            first, last = (iso(end, self.zone) if end is not None else "" for end in self.selection.times)
            print_error(f"time range {first}..{last}")
        files = self._inputs = list(self.files)
        self._say_unread(files)
        following = self.options.follow and bool(files)
        view = self._view(len(files) > 1 or following)
        self._quicken(view)
        try:
            if self.options.last:
                self._last(view, files)
            else:
                for target in files[:-1] if following else files:
                    if self.left == 0:
                        break
                    self._file(view, target)
            if following:
                with Progress(""):
                    self._follow(view, files[-1])
            self._drained()
        except (UnknownColumn, OtherColumns) as error:
            raise click.UsageError(str(error)) from None
        finally:
            view.end()
            self.files.report_refused()
            self.files.notes()
            self._left_out()

    def _say_unread(self, files: list[Target]) -> None:
        """Begin output for people with what cannot be read, as far as this shows before the files are read."""
        if self.options.form not in (TABLE, HEX) or not files:
            return
        if len(files) > 1:
            self.files.try_all(files)
        line = unreadable_line()
        if line:
            self.output.line(line)

    def _open(self, target: Target, *, keep: bool = False) -> tuple[Window, FileKind] | None:
        """Return the opened file and its kind; None if it cannot be read. With --read-committed, also finds out what a
        read_committed consumer sees of it."""
        opened = self.files.open(target, keep=keep or self.committed is not None)
        if opened is None:
            return None
        window, kind = opened
        conditions = self.selection.conditions_on_records(kind)
        if self._extracts and kind not in BATCHES:
            conditions.append("--extract")
        if conditions:
            window.source.close()
            self.files.refuse(target, kind, conditions)
            return None
        if self.committed is None or kind not in BATCHES:
            return opened
        self._drained()
        try:
            with Progress(f"{target.path}: transactions") as progress:
                self.committed.turn_to(target, window, Run(more=progress.more))
        except SourceError as error:
            self.files.report_unreadable(error)
            window.source.close()
            return None
        window.source.keep = keep
        self._has_committed = True
        return opened

    def _left_out(self) -> None:
        # With --last, batches are read more than once, so the counts would be wrong.
        if self.committed is not None and self._has_committed and not self.options.last:
            self.committed.end()

    def extract(self, part: str) -> None:
        """Write the raw key or value of the single matching record."""
        if self.output.terminal:
            raise click.UsageError(
                "--extract writes raw bytes, which may contain terminal control sequences; redirect it to a file"
            )
        self.coverage = self.files.coverage = None
        self._extracts = True
        first, more = self._first_two()
        if first is None:
            self.files.report_refused()
            return
        if more is not None and self.options.limit != 1:
            offsets = f"{first.offset} and {more.offset}"
            raise click.UsageError(f"more than one record matches (offsets {offsets} …); choose one with --offset")
        else:
            start, size = first.key_start, first.keySize
            if part == "value":
                start, size = first.value_start, first.valueSize
            if size >= 0:
                if not first.batch.crcValid:
                    print_error(
                        f"the batch at byte {first.position} does not match its checksum: these bytes may be damaged"
                    )
                self.output.write_now(memoryview(first.data)[start : start + size])
                self.output.flush()
                return
            print_error(f"the {part} of the record at offset {first.offset} is null")
        self._nothing = True

    def _first_two(self) -> tuple[Record | None, Record | None]:
        """Return the first matching record, and the second, which should not exist."""
        first = None
        for target in self.files:
            opened = self._open(target)
            if opened is None:
                continue
            window, kind = opened
            try:
                for region in self.scan.chosen(target, window) if kind in BATCHES else ():
                    if isinstance(region, Batch):
                        region.crcValid  # noqa: B018  (taken while the batch can be read)
                        for record in self.selection.records(region):
                            if first is not None:
                                return first, record
                            first = record
                            if self.options.limit == 1:
                                return first, None
            except SourceError as error:
                self.files.report_unreadable(error)
            finally:
                window.source.close()
        return first, None

    def _view(self, several: bool) -> View:
        options = self.options
        try:
            self.decoding = decoding = RecordDecoder(self.decode)
            if options.count:
                table = partial(CountTable, self.output)
                sink = options.output.sink(self.output, table, (RecordCount,), report=True)
                self._counts = CountView(self.output, sink, self.selection)
                return self._counts
            if options.form == TEMPLATE:
                parts = compile_template(options.template or "", decoding)
                shown = decoding if shows_decoded(options.template or "") else None
                return TemplateView(self.output, parts, print_error, shown)
            if self.redaction is not None:
                return RedactedView(self.output, self.redaction, records=self.records)
            if options.form == JSON:
                return JsonView(self.output, records=self.records, decoding=decoding)
            if options.form == CSV:
                self._csv = CsvView(
                    self.output, records=self.records, names=self.columns, complain=print_error, decoding=decoding
                )
                return self._csv
            if options.form == HEX:
                return HexView(
                    self.output,
                    records=self.records,
                    full=self.full,
                    zone=self.zone,
                    titles=several,
                    decoding=decoding,
                )
            return TableView(
                self.output,
                records=self.records,
                names=self.columns,
                full=self.full,
                zone=self.zone,
                titles=several,
                decoding=decoding,
            )
        except (UnknownColumn, TemplateError, DecoderError) as error:
            raise click.UsageError(str(error)) from None

    def _quicken(self, view: View) -> None:
        """Choose the fast path: JSON, and tables in a pipe, are written directly from columns if the core is compiled.
        Not possible if rows are needed one by one: with a limit or, per file, with a decoder of keys and values."""
        options = self.options
        if options.limit or options.last or options.follow or self.redaction is not None:
            return
        is_plain = not self.output.terminal and not self.output.colour
        in_table = is_plain and self.columns is None and self.zone is timezone.utc
        if not COMPILED or not (self.records or self.selection.is_all):
            return
        if isinstance(view, JsonView) or (isinstance(view, TableView) and in_table):
            self._quick = FastRows(
                self.output,
                view,
                self.selection,
                self.coverage,
                records=self.records,
                jobs=options.jobs or usual_jobs(),
            )

    def _begin(self, target: Target) -> None:
        """Choose for this file whether records are written directly from columns."""
        decoder = self.decoding.decoder(target) if self.records else None
        self.quick = self._quick if self._quick is not None and self._quick.decode_by(decoder) else None
        self.scan.whole_runs = self.quick is not None
        if self.quick is None or decoder is not None:
            self._drained()

    def _drained(self) -> None:
        """Wait until the fast path has written its output, so that the output can be used here."""
        if self._quick is not None:
            self._quick.drain()

    def _items(self, target: Target, window: Window, kind: FileKind) -> Iterator[Item]:
        """Yield the selected items of one file: regions, or entries and the regions among them."""
        if kind in BATCHES:
            yield from self.scan.chosen(target, window)
            return
        for item in entries(kind, window, target.name_offset or 0):
            self.scan.run.at(getattr(item, "position", 0), window.source.size)
            if isinstance(item, Problem) or (
                self.selection.entry(item.position, item.values)
                if isinstance(item, Entry) and item.type
                else self.selection.is_all
            ):
                yield item

    def _file(self, view: View, target: Target) -> None:
        view.file(target)
        opened = self._open(target)
        if opened is None:
            return
        window, kind = opened
        target = target._replace(kind=kind)
        self._begin(target)
        self._counted(target, kind)
        before, shown = self.scan.batches, 0
        try:
            with Progress(target.path) as progress:

                def at(position: int, size: int | None) -> None:
                    progress.at(position, size)
                    if self.quick is None or self.quick.pool is None:  # else threads write
                        view.tick()

                self.scan.run = Run(at=at)
                for item in self._items(target, window, kind):
                    self._show(view, target, item, window)
                    shown += not isinstance(item, Entry) or bool(item.type)
                    if self.left == 0:
                        return
            self.files.ended(target, window, kind, self.scan.batches - before if kind in BATCHES else shown)
        except SourceError as error:
            self.files.report_unreadable(error)
        finally:
            window.source.close()

    def _counted(self, target: Target, kind: FileKind) -> None:
        if self.coverage is not None and kind in BATCHES:
            self.coverage.files += 1
            if target.source != target.path:  # the search is of the directory
                self._searched[os.path.dirname(target.path)] = None

    def _only_remote(self) -> Iterator[str]:
        """Yield the offsets of tiered partitions that were searched without them."""
        from kdump.check.log_dir_context import Surroundings
        from kdump.check.options import Options
        from kdump.log.log_directory import directory_at
        from kdump.log.partition_directory import PartitionDirectory

        surroundings = Surroundings(Options.of(QUIET_RUN))
        for path in self._searched:
            place = None if path == "-" or "://" in path else directory_at(path)
            offsets = surroundings.only_remote(place) if isinstance(place, PartitionDirectory) else None
            if offsets is not None:
                yield f"offsets {offsets[0]}..{offsets[1] - 1} of {os.path.basename(path)}"

    def _show(self, view: View, target: Target, item: Item, window: Window, skip: int = 0) -> None:
        if isinstance(item, BatchRun):
            assert self.quick is not None
            self.quick.batch_run(target, item)
            return
        self._drained()
        if isinstance(item, Problem):
            from kdump.check.engine.check_small_files import file_finding

            view.finding(file_finding(target, item))
            return
        if isinstance(item, Entry):
            rows = view.entry(target, item)
        elif self.quick is not None and isinstance(item, Batch) and not item.isControlBatch:
            rows = self.quick.batch(target, item)
            if self.coverage is not None:
                self.coverage.batch(target.path, item, rows)
        elif isinstance(item, Batch):
            records = self.selection.records(item)
            if self.records:
                records = islice(records, skip, None if self.left is None else skip + self.left)
            rows = view.batch(target, item, records)
            if self.coverage is not None:
                self.coverage.batch(target.path, item, rows)
        else:
            rows = self._region(view, target, item, window)
            if self.coverage is not None:
                self.coverage.region(item)
        if self.left is not None:
            self.left -= rows

    def _region(self, view: View, target: Target, region: Region, window: Window) -> int:
        """Show bytes that are not a valid batch. If the end of the file truncates a batch, also show its complete
        records, unless the file may be growing, or only the last rows were requested. Returns the number of rows."""
        torn = None
        if self.records and not (self.options.follow or self.options.last):
            torn = torn_batch(region, window, self.scan.limits)
        complete = 0 if torn is None else torn.complete_records
        if torn is None or not complete:
            view.region(target, region, window)
            return 0
        note = f"; {complete} of its {plain_count(torn.recordCount or 0, 'record')} are complete"
        note += ", but no checksum covers them"
        view.region(target, region.with_reason(region.reason + note), window)
        return view.batch(target, torn, islice(self.selection.records(torn), self.left))

    def _last(self, view: View, files: list[Target]) -> None:
        """Show the last rows of all files together, found by reading backward from the end."""
        requested = self.options.last or 0
        files_with_rows: list[tuple[Target, Window, list[tuple[Item, int]]]] = []
        total = 0
        for target in reversed(files):
            opened = self._open(target, keep=True)
            if opened is None:
                continue
            window, kind = opened
            self._counted(target, kind)
            try:
                with Progress(target.path) as progress:
                    # Positions decrease where the last rows are read again.
                    self.scan.run = Run(at=partial(_furthest, progress))
                    rows = self._last_of(target, window, kind, requested - total)
            except SourceError as error:
                self.files.report_unreadable(error)
                continue
            self.files.ended(
                target, window, kind, sum(not isinstance(item, Entry) or bool(item.type) for item, _ in rows)
            )
            target = target._replace(kind=kind)
            total += sum(count for _, count in rows)
            files_with_rows.append((target, window, rows))
            if total >= requested:
                break
        skip = max(0, total - requested)
        for target, window, rows in reversed(files_with_rows):
            if rows:
                view.file(target)
            for item, count in rows:
                tail = isinstance(item, Region) and not count and item.end == window.source.size
                if not (self.options.follow and tail):  # a broker may still be writing it
                    self._show(view, target, item, window, skip if count else 0)
                skip = 0 if count else skip
            window.source.close()

    def _last_of(self, target: Target, window: Window, kind: FileKind, count: int) -> list[tuple[Item, int]]:
        """Return the items with the last `count` rows of one file, each with its number of rows."""
        if kind in BATCHES:
            return list(self.scan.last(target, window, count))
        kept: deque[tuple[Item, int]] = deque()
        total = 0
        for item in self._items(target, window, kind):
            rows = int(isinstance(item, Entry) and bool(item.type))
            kept.append((item, rows))
            total += rows
            while kept and total - kept[0][1] >= count:
                total -= kept.popleft()[1]
        return list(kept)

    def _follow(self, view: View, target: Target) -> None:
        """Show the last file as it grows (after its last rows, if --last was given), and then what follows it."""
        log = FollowedLog(target, self.scan.limits, view.end, notes_of)
        log.skim_previous()
        is_shown = bool(self.options.last)
        while log.has_moved and log.target is not None:
            try:
                window = self.scan.open(log.target)
            except SourceError as error:
                if not is_gone(error):
                    raise
                log.resume()
                continue
            if not isinstance(window.source, FileSource):
                window.source.close()
                raise click.UsageError(f"--follow needs a file that can grow, which {path_text(target.path)} cannot")
            if is_shown:
                log.position, is_shown = log.skim(target, window), False
            elif log.position == 0:
                view.file(log.target)
            file = log.target
            for region in self.scan.chosen(file, window, log.position, log.regions(window)):
                self._show(view, file, region, window)
                view.tick()
            window.source.close()
