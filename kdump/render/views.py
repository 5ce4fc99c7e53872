"""What a showing command writes for each region: one view a format, all with the same few methods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import Protocol

from kdump.check.batch import findings, record_findings
from kdump.check.finding import Finding
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Region
from kdump.log.window import Window
from kdump.render import jsonl
from kdump.render.columns import batch_columns, record_columns
from kdump.render.escape import path_text, printable
from kdump.render.hexdump import Hexdump
from kdump.render.objects import batch_object, finding_object, record_object, region_object
from kdump.render.output import Output
from kdump.render.table import Table
from kdump.render.template import Part, render


class View(Protocol):
    """`batch` gets those of the batch's records that are asked for, and says how many rows it wrote."""

    def file(self, target: Target) -> None:
        """The next file begins."""

    def batch(self, target: Target, batch: Batch, records: Iterable[Record]) -> int: ...

    def region(self, target: Target, region: Region, window: Window) -> None:
        """Bytes that are no batch."""

    def tick(self) -> None:
        """Called now and then while there is nothing to write."""

    def end(self) -> None:
        """Nothing more comes."""


class TableView:
    """A table of batches, or of records."""

    def __init__(
        self, output: Output, *, records: bool, names: list[str] | None, full: bool, zone: tzinfo, titles: bool
    ) -> None:
        columns = record_columns(zone, names, full) if records else batch_columns(zone, names)
        self.table = Table(columns, output, full=full, chosen=names is not None)
        self.records = records
        self.titles = titles

    def file(self, target: Target) -> None:
        if self.titles:
            self.table.restart()
            self.table.output.line(self.table.paint(printable(path_text(target.path)) + ":", "head"))

    def batch(self, target: Target, batch: Batch, records: Iterable[Record]) -> int:
        if not self.records:
            self.table.add(batch, "" if batch.crcValid else "bad")
            self._findings(findings(target, batch))
            return 1
        noted = list(findings(target, batch))
        self._findings(noted)
        rows = 0
        style = "" if batch.crcValid else "bad"
        for record in records:
            self.table.add(record, style or ("control" if record.is_control else ""))
            self._findings(record_findings(target, record))
            rows += 1
        self._findings(finding for finding in findings(target, batch) if finding not in noted)
        return rows

    def region(self, target: Target, region: Region, window: Window) -> None:
        text = f"{region.kind}: {region.size} bytes at {region.position}..{region.end - 1}"
        if region.claimed is not None and region.kind == "torn":
            text += f", offset {region.claimed[0]}"
        self.table.line(f"{text}: {region.reason}" if region.reason else text, region.kind)

    def _findings(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self.table.line(f"  ! {finding.code} at {finding.position}: {finding.message}", "bad")

    def tick(self) -> None:
        self.table.tick()

    def end(self) -> None:
        self.table.flush()
        self.table.output.flush()


class JsonView:
    """JSON Lines: batches, or records."""

    def __init__(self, output: Output, *, records: bool) -> None:
        self.output = output
        self.records = records

    def file(self, target: Target) -> None:
        pass

    def batch(self, target: Target, batch: Batch, records: Iterable[Record]) -> int:
        noted = list(findings(target, batch))
        if not self.records:
            self.output.line(jsonl.line(batch_object(target, batch)))
            self._findings(noted)
            return 1
        self._findings(noted)
        rows = 0
        for record in records:
            self.output.line(jsonl.line(record_object(target, record)))
            if record.is_control:
                self._findings(record_findings(target, record))
            rows += 1
        self._findings(finding for finding in findings(target, batch) if finding not in noted)
        return rows

    def region(self, target: Target, region: Region, window: Window) -> None:
        self.output.line(jsonl.line(region_object(target, region)))

    def _findings(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self.output.line(jsonl.line(finding_object(finding)))

    def tick(self) -> None:
        self.output.tick()

    def end(self) -> None:
        self.output.flush()


class HexView:
    """Annotated hexdumps. A row is a batch, or, where records are counted, a record."""

    def __init__(self, output: Output, *, records: bool, full: bool, zone: tzinfo, titles: bool) -> None:
        self.output = output
        self.dump = Hexdump(output, full=full, zone=zone)
        self.records = records
        self.titles = titles

    def file(self, target: Target) -> None:
        if self.titles:
            self.output.line(self.dump.paint(printable(path_text(target.path)) + ":", "head"))

    def batch(self, target: Target, batch: Batch, records: Iterable[Record]) -> int:
        rows = 0

        def counted() -> Iterable[Record]:
            nonlocal rows
            for record in records:
                rows += 1
                yield record

        self.dump.batch(batch, counted())
        return rows if self.records else 1

    def region(self, target: Target, region: Region, window: Window) -> None:
        self.dump.region(region, window)

    def tick(self) -> None:
        self.output.tick()

    def end(self) -> None:
        self.output.flush()


class TemplateView:
    """Records by a format string; damage is told by `complain`, for the output has no place for it."""

    def __init__(self, output: Output, parts: list[bytes | Part], complain: Complain) -> None:
        self.output = output
        self.parts = parts
        self.complain = complain

    def file(self, target: Target) -> None:
        pass

    def batch(self, target: Target, batch: Batch, records: Iterable[Record]) -> int:
        rows = 0
        for record in records:
            self.output.write(render(self.parts, target, record, terminal=self.output.terminal))
            rows += 1
        for finding in findings(target, batch):
            self.complain(f"{path_text(target.path)}: {finding.code} at {finding.position}: {finding.message}")
        return rows

    def region(self, target: Target, region: Region, window: Window) -> None:
        self.complain(f"{path_text(target.path)}: {region.kind} at {region.position}: {region.reason}")

    def tick(self) -> None:
        self.output.tick()

    def end(self) -> None:
        self.output.flush()


class Complain(Protocol):
    """A line for the person at the terminal, beside the output."""

    def __call__(self, text: str) -> None: ...
