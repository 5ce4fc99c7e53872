"""The work of a showing command: every file in turn, the chosen regions of each, through a view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from itertools import islice

import click

from kdump.log.errors import SourceError
from kdump.log.follow import follow, newer
from kdump.log.paths import Target, other_kind, targets
from kdump.log.record import Record
from kdump.log.region import Batch, Limits, Region
from kdump.log.scan import Scan
from kdump.log.select import Selection
from kdump.log.source import FileSource
from kdump.log.window import Window
from kdump.render.columns import UnknownColumn
from kdump.render.escape import path_text, printable
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.template import TemplateError, compile_template
from kdump.render.times import iso
from kdump.render.views import HexView, JsonView, TableView, TemplateView, View


@dataclass(frozen=True)
class ShowOptions:
    """How to show; `limit` and `last` count rows."""

    form: str
    records: bool
    template: str | None
    columns: list[str] | None
    full: bool
    zone: tzinfo
    limit: int | None
    last: int | None
    follow: bool
    window: int
    use_index: bool


def complain(text: str) -> None:
    """One line on stderr."""
    click.echo(f"kdump: {printable(text)}", err=True)


class Show:
    """One run. `failed` tells afterwards whether a path could not be read."""

    def __init__(self, options: ShowOptions, selection: Selection, limits: Limits, paths: tuple[str, ...]) -> None:
        self.options = options
        self.selection = selection
        self.paths = paths
        self.failed = False
        self.output = Output()
        self.left = options.limit
        self.scan = Scan(selection, limits, options.records, options.window, options.use_index)

    def run(self) -> None:
        """Show everything that is asked for."""
        if self.selection.times is not None:
            first, last = (iso(end, self.options.zone) if end is not None else "" for end in self.selection.times)
            complain(f"time range {first}..{last}")
        files = list(self._files())
        following = self.options.follow and bool(files)
        view = self._view(len(files) > 1 or following)
        try:
            if self.options.last:
                self._last(view, files)
            else:
                for at in files[:-1] if following else files:
                    if self.left == 0:
                        break
                    self._file(view, at)
            if following:
                self._follow(view, files[-1])
            view.end()
        finally:
            self._notes()

    def extract(self, part: str) -> None:
        """The bare key or value of the one record that is chosen."""
        if self.output.terminal:
            raise click.UsageError("--extract writes bare bytes, which a terminal would obey: send it to a file")
        first, more = self._first_two()
        if first is None:
            complain("no record matches")
        elif more is not None and self.options.limit != 1:
            offsets = f"{first.offset} and {more.offset}"
            raise click.UsageError(f"more than one record matches (offsets {offsets} …): choose one by --offset")
        else:
            data = first.key if part == "key" else first.value
            if data is not None:
                if not first.batch.crcValid:
                    complain(f"the batch at {first.position} fails its checksum: these may not be the bytes written")
                self.output.write(data)
                self.output.flush()
                return
            complain(f"the {part} of the record at offset {first.offset} is null")
        self.failed = True

    def _first_two(self) -> tuple[Record | None, Record | None]:
        """The first record that is chosen, and the second, which should not be."""
        first = None
        for at in self._files():
            for region, _ in self._regions(at):
                if isinstance(region, Batch):
                    region.crcValid  # noqa: B018  (taken while the batch can be read)
                    for record in self.selection.records(region):
                        if first is not None:
                            return first, record
                        first = record
                        if self.options.limit == 1:
                            return first, None
        return first, None

    def _view(self, several: bool) -> View:
        options = self.options
        try:
            if options.form == "template":
                return TemplateView(self.output, compile_template(options.template or ""), complain)
            if options.form == "json":
                return JsonView(self.output, records=options.records)
            if options.form == "hex":
                return HexView(
                    self.output, records=options.records, full=options.full, zone=options.zone, titles=several
                )
            return TableView(
                self.output,
                records=options.records,
                names=options.columns,
                full=options.full,
                zone=options.zone,
                titles=several,
            )
        except (UnknownColumn, TemplateError) as error:
            raise click.UsageError(str(error)) from None

    def _files(self) -> Iterator[Target]:
        """Every file that is to be read; a path that cannot be is complained about, and the others go on."""
        for path in self.paths:
            kind = other_kind(path)
            if kind and path != "-":
                complain(f"{path_text(path)}: is {kind}, not a segment: inspect reads files of record batches")
                self.failed = True
                continue
            try:
                yield from self._in_range(list(targets(path)))
            except SourceError as error:
                complain(str(error))
                self.failed = True

    def _in_range(self, files: list[Target]) -> list[Target]:
        """Without the segments that the names of their neighbours put outside the offsets asked for."""
        offsets = self.selection.offsets
        if offsets is None:
            return files
        chosen = []
        for at, following in zip(files, [*files[1:], None]):
            same = following is not None and (at.topic, at.partition) == (following.topic, following.partition)
            end = following.name_offset if following is not None and same else None
            below = end is not None and offsets.first is not None and end <= offsets.first
            above = at.name_offset is not None and offsets.last is not None and at.name_offset > offsets.last
            if not (below or above):
                chosen.append(at)
        return chosen

    def _regions(self, at: Target, *, keep: bool = False) -> Iterator[tuple[Region, Window]]:
        """The chosen regions of one file, with notes on stderr about the file itself."""
        try:
            window = self.scan.open(at, keep=keep)
        except SourceError as error:
            complain(str(error))
            self.failed = True
            return
        met = self.scan.batches
        try:
            for region in self.scan.chosen(at, window):
                yield region, window
            self._ended(at, window, self.scan.batches - met)
        except SourceError as error:
            complain(str(error))
            self.failed = True
        finally:
            window.source.close()

    def _file(self, view: View, at: Target) -> None:
        view.file(at)
        with Progress(at.path, self.output) as progress:
            for region, window in self._regions(at):
                progress.at(region.position, window.source.size)
                self._show(view, at, region, window)
                view.tick()
                if self.left == 0:
                    return

    def _show(self, view: View, at: Target, region: Region, window: Window, skip: int = 0) -> int:
        if not isinstance(region, Batch):
            view.region(at, region, window)
            return 0
        records = self.selection.records(region)
        if self.options.records:
            records = islice(records, skip, None if self.left is None else skip + self.left)
        rows = view.batch(at, region, records)
        if self.left is not None:
            self.left -= rows
        return rows

    def _last(self, view: View, files: list[Target]) -> None:
        """The last rows of all files together, found from the end."""
        wanted = self.options.last or 0
        found: list[tuple[Target, Window, list[tuple[Region, int]]]] = []
        total = 0
        for at in reversed(files):
            try:
                window = self.scan.open(at, keep=True)
                regions = self.scan.last(at, window, wanted - total)
            except SourceError as error:
                complain(str(error))
                self.failed = True
                continue
            self._ended(at, window, len(regions))
            total += sum(rows for _, rows in regions)
            found.append((at, window, regions))
            if total >= wanted:
                break
        skip = max(0, total - wanted)
        for at, window, regions in reversed(found):
            if regions:
                view.file(at)
            for region, _ in regions:
                if self.options.follow and not isinstance(region, Batch) and region.end == window.source.size:
                    continue  # a tail that is still being written
                self._show(view, at, region, window, skip if isinstance(region, Batch) else 0)
                skip = 0 if isinstance(region, Batch) else skip
            window.source.close()

    def _follow(self, view: View, at: Target) -> None:
        """The last file as it grows (behind its last rows, if those were asked for), and the segments that come."""
        last = self.options.last
        following: Target | None = at
        while following is not None:
            at = following
            window = self.scan.open(at)
            if not isinstance(window.source, FileSource):
                window.source.close()
                raise click.UsageError(f"--follow needs a file, and {path_text(at.path)} is none that can grow")
            start = self._tail(at, window) if last else 0
            if not last:
                view.file(at)
            last = None
            for region in self.scan.chosen(at, window, start, follow(at, window, start, self.scan.limits, view.end)):
                self._show(view, at, region, window)
                view.tick()
            window.source.close()
            following = newer(at)

    def _tail(self, at: Target, window: Window) -> int:
        """Where the whole batches of the file end."""
        from kdump.log.reader import regions

        position = 0
        for region in regions(window, name_offset=at.name_offset, limits=self.scan.limits):
            if isinstance(region, Batch) or region.end != window.source.size:
                position = region.end
        return position

    def _ended(self, at: Target, window: Window, batches: int) -> None:
        source = window.source
        name = path_text(at.path)
        if source.error:
            complain(source.error)
            self.failed = True
        if isinstance(source, FileSource) and not self.options.follow:
            grown = source.grown()
            if grown > 0:
                complain(f"{name}: grew by {grown} bytes while it was read, which are not shown; --follow goes on")
            elif grown < 0:
                complain(f"{name}: was cut by {-grown} bytes while it was read")
        if source.size == 0:
            complain(f"{name}: is empty")
        elif not batches and self.selection.is_all:
            complain(f"{name}: no record batch in {source.size} bytes: is it a segment?")

    def _notes(self) -> None:
        scan = self.scan
        if scan.unshown:
            regions = "region" if scan.unshown == 1 else "regions"
            complain(
                f"{scan.unshown} {regions} of {scan.unshown_bytes} bytes hold no readable batch and are not shown;"
                " without a filter they are"
            )
