"""The output of `kdump inspect --json --redact`: JSON Lines without what is in records and, on request, names."""

from __future__ import annotations

from collections.abc import Iterable

from kdump import jsonl
from kdump.answer import Object, answer_object
from kdump.check.finding import Finding
from kdump.check.rules.records import noted_and_count_findings, noted_findings, record_findings
from kdump.log.entries import Entry
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Region
from kdump.log.window import Window
from kdump.render.inspect_objects import batch_object, entry_object, region_object
from kdump.render.redaction import Redaction, redacted_record
from kdump.render.stdout import Output

PATHS = ("file", "source")
"""Keys whose values are paths."""


class RedactedView:
    """As JsonView, in the same order."""

    def __init__(self, output: Output, redaction: Redaction, *, records: bool) -> None:
        self.output, self.redaction, self.records = output, redaction, records

    def file(self, target: Target) -> None:
        pass

    def entry(self, target: Target, entry: Entry) -> int:
        if not entry.type:
            return 0
        self._write(entry_object(target, entry))
        return 1

    def finding(self, finding: Finding) -> None:
        self._findings([finding])

    def batch(self, target: Target, batch: Batch, records: Iterable[Record]) -> int:
        if not self.records:
            self._write(batch_object(target, batch))
            self._findings(noted_and_count_findings(target, batch))
            return 1
        noted = list(noted_findings(target, batch))
        self._findings(noted)
        rows = 0
        for record in records:
            self.output.line(jsonl.line(redacted_record(self.redaction, target, record)))
            if record.is_control or record.crc is not None:
                self._findings(record_findings(target, record))
            rows += 1
        self._findings(finding for finding in noted_and_count_findings(target, batch) if finding not in noted)
        return rows

    def region(self, target: Target, region: Region, window: Window) -> None:
        self._write(region_object(target, region))

    def _findings(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._write(answer_object(finding))

    def _write(self, out: Object) -> None:
        for name in PATHS:
            if name in out:
                out[name] = self.redaction.path(out[name])
        if isinstance(out.get("topic"), str):
            out["topic"] = self.redaction.topic(out["topic"])
        self.output.line(jsonl.line(out))

    def tick(self) -> None:
        self.output.tick()

    def end(self) -> None:
        self.output.flush()
