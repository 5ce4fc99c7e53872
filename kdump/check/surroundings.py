"""Family files in a partition directory: the files next to the segments, and their consistency with the whole log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

from kdump.check.batch import file_finding
from kdump.check.catalogue import ERROR, WARNING
from kdump.check.finding import Finding, found
from kdump.check.identity import content
from kdump.check.kraft_snapshot import kraft_snapshot
from kdump.check.options import Options
from kdump.check.partition import PartitionCheck, missing_indexes
from kdump.check.rule import PartitionContext
from kdump.check.totals import CheckTotals
from kdump.format.numbers import parse_long
from kdump.log import file_kinds
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.region import Problem, Region

STATES = {
    "delete": (
        "the broker is deleting it",
        "the broker deletes it after startup: copy what you need before",
    ),
    "future": (
        "a replica that is being moved here from another log directory",
        "after startup the broker continues to fill it, or, if the metadata assigns the partition to this log "
        "directory, replaces the live one with it",
    ),
    "stray": (
        "it belongs to no known partition",
        "the broker serves nothing from it, and keeps it until you delete it",
    ),
}
PARSED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned", ".swap")
"""Extensions of the files whose offset a broker parses from the name at startup."""

SWAPS = (
    "at the next startup the broker deletes the segments that it replaces, without checking it, and renames it to take "
    "their place"
)


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
            for at in partition.snapshots:
                yield from file_findings(at, self.options, self.totals)
        if "checkpoints" in chosen:
            for at in partition.texts:
                yield from file_findings(at, self.options, self.totals)
            yield from self._topic_id()
            yield from self._checkpoints(log)
        for at in partition.kraft_snapshots:
            yield from kraft_snapshot(at, self.known, self.options, self.totals)
        is_metadata = partition.topic == METADATA_TOPIC and "checkpoints" in chosen
        if is_metadata and log.log_start and not partition.kraft_snapshots:
            assert partition.segments[0].log is not None
            message = f"the metadata log starts at offset {log.log_start}, and there is no .checkpoint"
            yield found("kraft-snapshot-missing", partition.segments[0].log, message, offset=log.log_start)
        if "files" in chosen:
            yield from self._leftovers()

    def _leftovers(self) -> Iterator[Finding]:
        partition = self.partition
        if partition.state:
            what, follows = STATES[partition.state]
            at = Target(partition.path, None, partition.topic, partition.partition, None, partition.source)
            yield found("directory-stray", at, f"a -{partition.state} directory: {what}", consequence=follows)
        for at in (*partition.unfinished, *partition.others):
            yield from misnamed(at)
        for at in partition.unfinished:
            if not any(misnamed(at)):
                does = SWAPS if at.path.endswith(".swap") else "at the next startup the broker deletes it"
                yield found("compaction-interrupted", at, os.path.basename(at.path), consequence=does)
        for at in partition.others:
            if any(misnamed(at)):
                continue
            deleted = at.path.endswith(".deleted")
            consequence = "the broker deletes it at startup" if deleted else "the broker ignores it"
            what = "a file that is being deleted" if deleted else stranger(at.path)
            yield found("file-unknown", at, f"{os.path.basename(at.path)}: {what}", consequence=consequence)

    def _transaction_indexes(self) -> Iterator[Finding]:
        for segment in self.partition.segments:
            at = segment.beside.get(file_kinds.TXN_INDEX)
            if at is not None:
                yield from transaction_index(at, self.options, self.totals)

    def _topic_id(self) -> Iterator[Finding]:
        at = self.partition.text("partition.metadata")
        if at is None or self.known.topic_id is None:
            return
        for item in _items(at, self.options, self.totals, count=False):
            if isinstance(item, Entry) and item.values.get("name") == "topic_id":
                said = item.values["value"]
                if said != self.known.topic_id:
                    message = f"topic_id is {said}, but {self.known.topic_id} in the cluster's metadata"
                    yield found(
                        "partition-metadata-invalid",
                        at,
                        message,
                        position=item.position,
                        size=item.size,
                        expected=self.known.topic_id,
                        actual=said,
                        consequence="the broker treats the directory as stray, left from a deleted topic",
                    )

    def _checkpoints(self, log: PartitionCheck) -> Iterator[Finding]:
        log_end = self._log_end(log)
        if log_end is None or self.partition.state:
            return
        for name, noted in self.known.checkpoints.items():
            if noted.offset <= log_end:
                continue
            start = name == "log-start-offset"
            message = f"{name}-checkpoint has offset {noted.offset}, but the log end offset is {log_end}"
            consequence = "at startup the broker deletes every segment of the log: back it up first" if start else None
            if name == "replication-offset":
                gone = f"offsets {log_end}..{noted.offset - 1}, which consumers may have read, are lost here"
                consequence = f"{gone}; another replica may have them, but the broker continues from the log's own end"
            yield found(
                "checkpoint-beyond-log",
                noted.at._replace(topic=self.known.topic, partition=self.known.partition),
                message,
                position=noted.position,
                size=noted.size,
                offset=noted.offset,
                expected=log_end,
                actual=noted.offset,
                severity=ERROR if start else WARNING,
                consequence=consequence,
            )

    def _log_end(self, log: PartitionCheck) -> int | None:
        """Return the log end offset; None if it is unknown because of what could not be read. A last segment without a
        batch ends at its base offset (LogSegment.readNextOffset), also if the batches before it end lower; a log
        without a segment is created at its checkpointed log start offset (LogLoader.recoverLog)."""
        if log.end_unread or self.partition.refused:
            return log.log_end
        if self.partition.segments:
            return max(self.partition.segments[-1].offset, log.log_end or 0)
        start = self.known.checkpoints.get("log-start-offset")
        return start.offset if start else 0


def _items(
    at: Target, options: Options, totals: CheckTotals, *, count: bool = True
) -> Iterator[Entry | Region | Problem]:
    """Yield everything in a file without batches. An error that prevents reading it is added to the totals."""
    try:
        yield from _read(at, options, totals, count=count)
    except SourceError as error:
        totals.refused(error)


def _read(
    at: Target, options: Options, totals: CheckTotals, *, count: bool = True
) -> Iterator[Entry | Region | Problem]:
    """Yield everything in a file without batches. Raises SourceError."""
    window = options.open(at)
    with closing(window.source):
        kind = at.kind or file_kinds.by_content(window)
        if count:
            totals.files += 1
            totals.bytes += window.source.size or 0
        yield from entries(kind, window, at.name_offset or 0)


def file_findings(at: Target, options: Options, totals: CheckTotals) -> Iterator[Finding]:
    """Yield findings for a checkpoint, a producer snapshot or another small file on its own."""
    said: dict[str, str] = {}
    sound = True
    try:
        for item in _read(at, options, totals):
            if isinstance(item, Problem):
                sound = False
                yield file_finding(at, item)
            elif isinstance(item, Entry) and item.type == "property" and len(said) < 1000:
                said[item.values["name"]] = item.values["value"]
            elif isinstance(item, Region) and at.kind is file_kinds.PRODUCER_SNAPSHOT:
                yield found("snapshot-invalid", at, item.reason, position=item.position, size=item.size)
    except SourceError as error:
        totals.refused(error)
        return  # nothing follows from a file that was not read
    if sound:
        yield from content(at, said)


def transaction_index(at: Target, options: Options, totals: CheckTotals, *, count: bool = False) -> Iterator[Finding]:
    """Yield findings for a .txnindex on its own. `count`: add the file to the totals, if no check of its segment has
    done so."""
    last = -1 if at.name_offset is None else at.name_offset - 1
    for item in _items(at, options, totals, count=count):
        if isinstance(item, Region):
            yield found("txn-index-invalid", at, item.reason, position=item.position, size=item.size)
        if not isinstance(item, Entry):
            continue
        values = item.values
        reason = ""
        if values["version"] > 0:
            reason = f"version {values['version']}, expected 0"
        elif values["lastOffset"] <= last:
            reason = f"lastOffset {values['lastOffset']}, expected more than {last}"
        if reason:
            yield found("txn-index-invalid", at, reason, position=item.position, size=item.size)
        last = max(last, values["lastOffset"])


def misnamed(at: Target) -> Iterator[Finding]:
    """Yields a finding if a broker parses the file's name at startup and it does not start with an offset, or if the
    broker creates the log again under the name that the offset should have.

    Source: LogFileUtils.offsetFromFile, LogLoader.removeTempFilesAndCollectSwapFiles and loadSegmentFiles,
    ProducerStateManager.listSnapshotFiles.
    """
    name = os.path.basename(at.path)
    if not name.endswith(PARSED):
        return
    text = name.partition(".")[0]
    offset = parse_long(text)
    if offset is None:
        follows = (
            f'the broker exits at startup with a NumberFormatException (For input string: "{text}"): move the file out '
            "of the directory"
        )
        yield found(
            "file-unknown", at, f"{name}: the name does not start with an offset", severity=ERROR, consequence=follows
        )
    elif name.endswith(".log") and text != (padded := f"{'-' * (offset < 0)}{abs(offset):020}"):
        follows = (
            f"at startup the broker creates an empty {padded}.log; consumers receive nothing from this file, and "
            "records of other segments from that offset on may be lost"
        )
        message = f"{name}: not how Kafka names a segment with offset {offset}"
        yield found("file-unknown", at, message, severity=ERROR, consequence=follows)


def stranger(path: str) -> str:
    """Describe a file that no broker reads."""
    if path.endswith(".tmp"):
        return "a temporary file of a write that did not finish"
    return "not a name that Kafka uses"
