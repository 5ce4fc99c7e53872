"""Family files in a partition directory: the files next to the segments, and their consistency with the whole log."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.check.engine.check_small_files import file_findings, items
from kdump.check.engine.partition_check import PartitionCheck
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rules.checkpoints import beyond_log
from kdump.check.rules.directories import partition_directory_findings
from kdump.check.rules.identity_files import other_topic_id
from kdump.check.rules.indexes import missing_indexes
from kdump.check.rules.kraft_snapshot import kraft_snapshot, missing_snapshot
from kdump.check.rules.txn_index import invalid_entries
from kdump.check.totals import CheckTotals
from kdump.log import file_kinds
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import PartitionDirectory


class PartitionDirectoryCheck:
    """Checks the files next to the segments of one partition."""

    def __init__(
        self, partition: PartitionDirectory, known: PartitionContext, options: Options, totals: CheckTotals
    ) -> None:
        self.partition = partition
        self.known = known
        self.options = options
        self.totals = totals

    def findings(self, log: PartitionCheck) -> Iterator[Finding]:
        """Yield the findings. `log`: the check of the segments, already run, which has the log start and end
        offsets."""
        partition, chosen = self.partition, self.options.chosen
        if "indexes" in chosen:
            if not partition.state:
                yield from missing_indexes(partition)
            yield from self._transaction_indexes()
        if "snapshots" in chosen:
            for target in partition.snapshots:
                yield from file_findings(target, self.options, self.totals, self.known.release.release)
        if "checkpoints" in chosen:
            for target in partition.texts:
                yield from file_findings(target, self.options, self.totals, self.known.release.release)
            yield from self._topic_id()
            yield from self._checkpoints(log)
        for target in partition.kraft_snapshots:
            yield from kraft_snapshot(target, self.known, self.options, self.totals)
        is_metadata = partition.topic == METADATA_TOPIC and "checkpoints" in chosen
        if is_metadata and log.log_start and not partition.kraft_snapshots:
            assert partition.segments[0].log is not None
            yield missing_snapshot(partition.segments[0].log, log.log_start)
        if "files" in chosen:
            yield from partition_directory_findings(partition, self.known.release.release)

    def _transaction_indexes(self) -> Iterator[Finding]:
        for segment in self.partition.segments:
            target = segment.indexes.get(file_kinds.TXN_INDEX)
            if target is not None:
                yield from invalid_entries(target, items(target, self.options, self.totals, count=False))

    def _topic_id(self) -> Iterator[Finding]:
        target = self.partition.text("partition.metadata")
        if target is None or self.known.topic_id is None:
            return
        yield from other_topic_id(target, items(target, self.options, self.totals, count=False), self.known.topic_id)

    def _checkpoints(self, log: PartitionCheck) -> Iterator[Finding]:
        log_end = self._log_end(log)
        if log_end is not None and not self.partition.state:
            yield from beyond_log(self.known, log_end)

    def _log_end(self, log: PartitionCheck) -> int | None:
        """Return the log end offset; None if it is unknown because of what could not be read. A log without a segment
        is created at its checkpointed log start offset (LogLoader.recoverLog)."""
        if self.partition.segments or self.partition.listing_errors:
            return log.log_end
        start = self.known.checkpoints.get("log-start-offset")
        return start.offset if start else 0
