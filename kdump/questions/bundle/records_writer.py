"""Decodes the records of a segment that are not to be in a bundle, and writes what verify and stats need to know about
them: findings of single batches, and sums over all records."""

from __future__ import annotations

from kdump.check.engine.batch_runs import FLAGS, first_record_suspect
from kdump.check.options import Options
from kdump.check.rules.records import decoded_findings
from kdump.core.batch_scan import FURTHEST
from kdump.core.column_numbers import BATCH_START, NEWEST
from kdump.core.header_columns import is_plain_batch
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.legacy_records import read_wrapper
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import Batch, BatchRun, LegacyRecordBatch, Region
from kdump.log.stored_verdicts import SUMS, RecordVerdict, StoredFinding, verdict_row
from kdump.log.walk import RegionObserver
from kdump.questions.bundle.part_writer import Spool
from kdump.questions.stats.run import StatsReader
from kdump.questions.stats.totals import Stats, sums_row


class RecordsWriter(RegionObserver):
    """What is found out about one segment. `keyed`: null keys are a finding; `before`: the largest timestamp of the
    records in the segments before it, epoch ms, -1 for none."""

    def __init__(self, target: Target, options: Options, *, keyed: bool, before: int) -> None:
        self.target = target
        self.limits = options.limits
        self.keyed, self.before = keyed, before
        self.stats = Stats(target.path)
        self.stats.sums[NEWEST] = before
        self.reader = StatsReader(self.stats, options)
        self.reader.path = target.path
        self._lines = Spool()

    @property
    def newest(self) -> int:
        """The largest timestamp of a record so far."""
        return self.stats.sums[NEWEST]

    def region(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            self._add_run(region)
        elif isinstance(region, Batch) and is_valid(region):
            if isinstance(region, LegacyRecordBatch):
                read_wrapper(region)
            self._judge(region)

    def _add_run(self, batches: BatchRun) -> None:
        heads = batches.headers
        row = 0
        while row < len(heads):
            stop = is_plain_batch(heads, row, len(heads), FLAGS, FURTHEST)
            row = first_record_suspect(heads, row, stop, self.limits, keyed=self.keyed)
            if row < len(heads):
                self._judge(batches.batch(heads.of(row, BATCH_START)))
            row += 1

    def _judge(self, batch: Batch) -> None:
        reading = Reading(batch)
        findings = tuple(
            StoredFinding(*(getattr(finding, name) for name in StoredFinding._fields))
            for finding in decoded_findings(self.target, reading, keyed=self.keyed)
        )
        count = sum(1 for _ in records(batch, values=False)) if reading.problems else None
        if findings or reading.problems:
            self._lines.row(batch.position, verdict_row(RecordVerdict(findings, tuple(reading.problems), count)))

    def end(self) -> Spool:
        """Return the lines, with the sums."""
        self._lines.row(SUMS, sums_row(self.stats, self.before))
        return self._lines
