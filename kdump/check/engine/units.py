"""Splits paths into independent units of work: the root of a log directory, a partition, a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kdump.check.engine.check_small_files import file_findings, items
from kdump.check.engine.neighbor_files import NeighborFiles
from kdump.check.engine.partition_scan import ObserversOf, PartitionScan
from kdump.check.engine.rule_list import rules
from kdump.check.engine.second_look import stable_findings
from kdump.check.finding import Finding, about_object
from kdump.check.log_dir_context import LogDirContext, Surroundings, own_context
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import Observer, SegmentContext, SegmentObserver
from kdump.check.rules.bytes import first_offset
from kdump.check.rules.checkpoints import beyond_log
from kdump.check.rules.directories import log_directory_findings, partition_directory_findings
from kdump.check.rules.identity_files import missing_topic_id, other_topic_id, registered
from kdump.check.rules.kraft_snapshot import kraft_snapshot, missing_snapshot, record_refused
from kdump.check.rules.missing_partitions import missing_from
from kdump.check.rules.newer_release import newer_release
from kdump.check.rules.offset_index import OffsetIndexRule, missing_indexes
from kdump.check.rules.producer_snapshots import interrupted
from kdump.check.rules.time_index import TimeIndexRule
from kdump.check.rules.txn_index import invalid_entries
from kdump.check.totals import CheckTotals
from kdump.cluster.disks import Disks
from kdump.cluster.missing_partitions import (
    Expected,
    MissingPartitions,
    PartitionKey,
    checkpointed_partitions,
    missing_partitions,
    without_directory,
)
from kdump.io import file_system
from kdump.io.directory_listing import length, parent
from kdump.io.errors import SourceError
from kdump.io.run import ignore
from kdump.log import file_kinds
from kdump.log.batch_validity import is_valid
from kdump.log.file_contents import by_content
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC
from kdump.log.live_files import FileWatch
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles, one_file, partition
from kdump.log.paths import Target, target
from kdump.log.paths import target as as_target
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.log.remote_files import REMOTE, tier
from kdump.problems.catalogue import declaration, depends_on

if TYPE_CHECKING:
    from kdump.format.kafka_release import KafkaRelease
    from kdump.state.metadata_image import MetadataImage
    from kdump.state.metadata_refusal import Refusal

HELD = 1000
"""Findings of a unit that wait for its end."""
LOG_DAMAGED = "logDamaged"
FOLLOWED = 10
"""Findings of a unit, the first ones, for which the next valid batch is looked for."""


@dataclass(frozen=True)
class CheckUnit:
    """Something that can be checked on its own. `name` is shown to the user."""

    name: str
    known: PartitionContext
    options: Options
    partition: PartitionDirectory | None = None
    target: Target | None = None
    directory: LogDirectory | None = None
    has_logs: bool = True
    """Of a log directory: whether its node loads logs from it."""
    here: frozenset[tuple[str, int]] = frozenset()
    duplicates: tuple[tuple[Target, str], ...] = ()
    metadata: MetadataImage | None = None
    ids: dict[str, str] = field(default_factory=dict)
    """Of a log directory: what its meta.properties states."""
    newer: dict[str, int | None] = field(default_factory=dict)
    """Of a log directory: what in its own metadata log is of a newer release than the newest known one, and where."""
    refused: list[tuple[Refusal, str]] = field(default_factory=list)
    """Of a log directory: the first record of its own metadata log that a node cannot apply, and which it is."""
    siblings: tuple[str, ...] = ()
    """The broker's other log directories, and directories that cannot be listed and may be such."""
    cluster: tuple[str, ...] = ()
    """The log directories of the cluster, of all its nodes that were given."""
    around: FileWatch = field(default_factory=FileWatch)
    """The files of the log directory that `known` was read from."""

    @property
    def topic(self) -> str | None:
        """The topic; None if unknown, and for a log directory."""
        of = self.partition or self.target
        return None if of is None else of.topic

    @property
    def number(self) -> int | None:
        """The number of the partition; None if unknown, and for a log directory."""
        of = self.partition or self.target
        return None if of is None else of.partition

    @cached_property
    def size(self) -> int:
        """Bytes of its segments."""
        if self.partition is None:
            return 0 if self.target is None else length(self.target.path) or 0
        logs = (segment.log for segment in self.partition.segments)
        return sum(length(log.path) or 0 for log in logs if log is not None)

    def missing(self) -> dict[PartitionKey, str]:
        """Return the partitions that this log directory lacks, each with what is known of it."""
        if self.directory is None or not self.has_logs:
            return {}
        missing = self._missing_in(self.directory)
        every = dict.fromkeys(missing.lost, True) | dict.fromkeys(missing.never, False)
        path, ids, image = self.directory.path, self.ids, self.metadata
        return {key: without_directory(path, key, ids, image, is_lost=is_lost) for key, is_lost in every.items()}

    def _missing_in(self, directory: LogDirectory) -> MissingPartitions:
        noted = checkpointed_partitions(directory.files, self.options.open_source)
        return missing_partitions(Expected.of(directory.path, self.siblings, self.ids, noted, self.metadata))

    def run(
        self, totals: CheckTotals, observers: ObserversOf | None = None, resume: tuple[int, str] | None = None
    ) -> Iterator[Finding]:
        """Yield the selected findings that are certain even if a broker is changing the files
        (kdump.check.engine.second_look). `observers`: see the scan of a partition or segment after the rules; `resume`:
        the index of the segment at which its scan begins, and the state there. Raises StateError if it does not fit."""

        def look(watch: FileWatch) -> Iterator[Finding]:
            return self.look(totals, watch, observers, resume)

        yield from stable_findings(self, look, totals, at_once=observers is not None, may_resume=resume is not None)

    def look(
        self,
        totals: CheckTotals,
        watch: FileWatch,
        observers: ObserversOf | None = None,
        resume: tuple[int, str] | None = None,
    ) -> Iterator[Finding]:
        """Yield the selected findings of a single look; `watch` records the files that it opens."""
        options = self.options
        watched = replace(self, options=replace(options, open_source=watch.opening(options.open_source)))
        followed = 0
        for finding in watched._run(totals, observers, resume):
            if options.wants(declaration(finding.code)):
                finding = finding.given(self.known.facts)
                if tier(finding.file) == REMOTE:
                    finding = about_object(finding)
                is_unknown = finding.next_offset is None and declaration(finding.code).moves_groups
                if is_unknown and followed < FOLLOWED:
                    followed += 1
                    finding = watched._followed(finding)
                yield finding

    def _followed(self, finding: Finding) -> Finding:
        """Return a finding about a batch whose header does not show the offset after it with that of the next valid
        batch, or with the fact that there is none."""
        logs = [(each.offset, each.log) for each in self.partition.segments] if self.partition is not None else []
        later = [each for each in logs if each[1] is not None and each[1].path >= finding.file]
        for offset, log in later:
            assert log is not None
            is_here = log.path == finding.file
            start = finding.position + max(finding.size, 1) if is_here else 0
            try:
                with closing((window := self.options.open(log)).source):
                    for region in regions(window, name_offset=offset, start=start, limits=self.options.limits):
                        if isinstance(region, Batch) and is_valid(region):
                            return finding._replace(next_offset=first_offset(region))
            except SourceError:
                return finding
        return finding.given({"logEndsHere": True}) if later else finding

    def again(self, *, around: bool) -> CheckUnit | None:
        """Return the same unit as it is on disk now; None if it is gone. `around`: also read the log
        directory's files again."""
        options = replace(self.options, more=ignore)  # its bytes are counted already
        if self.directory is not None:
            place = directory_at(self.directory.path)
            if not isinstance(place, LogDirectory):
                return None
            return next(_of_directory(place, options, self._disks(place), self.siblings), None)
        if self.partition is None:
            return replace(self, options=options)
        here = partition(self.partition.path, self.partition.source)
        if here.listing_errors or not any(here.files()):
            return None
        directory = directory_at(parent(here.path)) if around and self.around.first else None
        if isinstance(directory, LogDirectory):
            context = LogDirContext(directory, options, self._disks(directory))
            known, around_it = context.known(here), context.watch
        else:
            now = own_context(here, options, is_copy=self.known.is_copy)
            known, around_it = replace(self.known, epochs=now.epochs, epochs_at=now.epochs_at), self.around
        return replace(self, known=known, options=options, partition=here, around=around_it)

    def _disks(self, own: LogDirectory) -> Disks:
        """Return the log directories of the cluster as they are now."""
        directories = (directory_at(path) for path in self.cluster if path != own.path)
        others = [place for place in directories if isinstance(place, LogDirectory)]
        return self.options.disks([own, *others])

    def _run(
        self, totals: CheckTotals, observers: ObserversOf | None, resume: tuple[int, str] | None
    ) -> Iterator[Finding]:
        if self.directory is not None:
            yield from self._root(self.directory, totals)
        elif self.partition is not None:
            totals.partitions += 1
            for problem in self.partition.listing_errors:
                totals.problem(problem)
            scan = self._scan(self.partition, totals, observers)
            if resume is not None:
                scan.resume(*resume)
            for finding in scan.findings():
                if (
                    depends_on(finding.code, LOG_DAMAGED)
                    and LOG_DAMAGED not in finding.facts
                    and len(scan.later) < HELD
                ):
                    scan.later.append(finding)
                else:
                    yield finding
            known: dict[str, bool | None] = {LOG_DAMAGED: bool(scan.damaged)}
            yield from (finding.given(known) for finding in scan.later)
            if not self.options.headers_only:
                check = PartitionDirectoryCheck(self.partition, self.known, self.options, totals)
                yield from (finding.given(known) for finding in check.findings(scan))
        elif self.target is not None:
            yield from self._file(self.target, totals, observers)

    def _scan(
        self, place: PartitionDirectory, totals: CheckTotals, observers: ObserversOf | None, *, alone: bool = False
    ) -> PartitionScan:
        """Return the scan of a partition, or of a file `alone`, by the rules and these observers."""

        def every(scan: PartitionScan) -> Iterator[Observer | SegmentObserver]:
            yield from rules(scan)
            yield from observers(scan) if observers is not None else ()

        return PartitionScan(place, self.known, self.options, totals, every, alone=alone)

    def _root(self, directory: LogDirectory, totals: CheckTotals) -> Iterator[Finding]:
        options = self.options
        for file in directory.files.values():
            if file.kind is file_kinds.KRAFT_SNAPSHOT:
                yield from kraft_snapshot(file, self.known, options, totals)
            elif "checkpoints" in options.chosen:
                found = file_findings(file, options, totals, self.known.release)
                yield from (finding.given({"clean": directory.is_clean}) for finding in found)
                # The controllers know the directories of log.dirs alone.
                metadata = self.metadata if self.has_logs else None
                if file.kind is file_kinds.META_PROPERTIES and metadata is not None:
                    yield from registered(file, self.ids, metadata, bool(directory.partitions))
        if "checkpoints" in options.chosen and self.has_logs:
            missing = self._missing_in(directory)
            yield from missing_from(directory, self.ids, self.here, missing, self.metadata, options)
        for reason, offset in self.newer.items():
            log = target(os.path.join(directory.path, METADATA_LOG), source=directory.path)
            yield newer_release(log, reason, offset=offset)
        for refused, reason in self.refused if "checkpoints" in options.chosen else ():
            log = target(refused.file or os.path.join(directory.path, METADATA_LOG), source=directory.path)
            finding = record_refused(log, reason, refused.exception, refused.position, refused.offset)
            yield finding.given({"everyRelease": refused.by_every_release})
        if "files" in options.chosen:
            yield from log_directory_findings(directory, self.has_logs, self.duplicates)

    def _file(self, target: Target, totals: CheckTotals, observers: ObserversOf | None) -> Iterator[Finding]:
        kind, options = target.kind, self.options
        if kind is None and target.path != "-":
            try:
                window = options.open(target)
            except SourceError as error:
                totals.add_unreadable(error)
                return
            try:
                kind = by_content(window)
            except SourceError as error:
                totals.add_unreadable(error)
                return
            finally:
                window.source.close()
            if kind is not file_kinds.SEGMENT:  # which is what is left if nothing else fits
                target = target._replace(kind=kind)
        if kind is None or kind is file_kinds.SEGMENT:
            here = one_file(target, SegmentFiles("", 0, target), self.known.state)
            yield from self._scan(here, totals, observers, alone=True).findings()
        elif kind in (file_kinds.INDEX, file_kinds.TIME_INDEX):
            yield from self._index(target, totals)
        elif kind is file_kinds.KRAFT_SNAPSHOT:
            yield from kraft_snapshot(target, self.known, options, totals)
        elif kind is file_kinds.TXN_INDEX:
            yield from invalid_entries(target, items(target, options, totals))
        else:
            yield from file_findings(target, options, totals, self.known.release)

    def _index(self, index: Target, totals: CheckTotals) -> Iterator[Finding]:
        """Check an index: against its segment if that is in the same directory, else on its own."""
        assert index.kind is not None
        log = os.path.splitext(index.path)[0] + ".log"
        segment = SegmentFiles("", index.name_offset or 0, None, {index.kind: index})
        here = one_file(index, segment, self.known.state)
        if file_system.isfile(log):
            here = one_file(index, segment.with_log(target(log, source=index.source)), self.known.state)
            scan = PartitionScan(here, self.known, replace(self.options, only=frozenset({"indexes"})), totals, rules)
            yield from (finding for finding in scan.findings() if finding.file == index.path)
            return
        rule_type = OffsetIndexRule if index.kind is file_kinds.INDEX else TimeIndexRule
        rule = rule_type(NeighborFiles(self.options, totals).entry_runs, self.known)
        part = SegmentContext(segment, index, self.known.last is not False, None, self.known.now, None)
        rule.begin(part)
        if rule.judge is not None:
            rule.judge.read_alone()
        yield from rule.finish(part)


def units(paths: Sequence[str], options: Options) -> Iterator[CheckUnit]:
    """Yield the units for the paths, in order. Calls `options.unreadable` for each path without Kafka files."""
    yield from units_of(options.disks_at(paths), options)


def units_of(disks: Disks, options: Options) -> Iterator[CheckUnit]:
    """Yield the units for what was found, in order, one by one: what is read of a directory is still known when its
    unit is used."""
    around = Surroundings(options)
    for place in disks.found:
        if isinstance(place, LogDirectory):
            others = (directory.path for directory in disks.others(place))
            yield from _of_directory(place, options, disks, (*others, *disks.unlisted))
        elif isinstance(place, PartitionDirectory):
            yield CheckUnit(place.path, around.of_partition(place), options, partition=place)
        else:
            yield CheckUnit(place.path, around.of_file(place), options, target=place)


def _of_directory(
    directory: LogDirectory, options: Options, disks: Disks, siblings: tuple[str, ...]
) -> Iterator[CheckUnit]:
    """Yield the units of a log directory. `siblings`: the paths of the node's others, and what may be one."""
    context = LogDirContext(directory, options, disks)
    cluster = tuple(disks.of_cluster(directory.path))
    live = [place for place in directory.partitions if not place.state]
    here = frozenset((place.topic or "", place.partition or 0) for place in live)
    duplicates = []
    for sibling in disks.others(directory):
        theirs = {place.name for place in sibling.partitions if not place.state}
        for place in live:
            if place.name in theirs:
                target = Target(place.path, None, place.topic, place.partition, None, directory.path)
                duplicates.append((target, sibling.path))
    if not options.headers_only:
        known = PartitionContext(now=options.now, release=context.release)
        newer = disks.copies.newer(directory.path, disks.node_of(directory).node_id)
        yield CheckUnit(
            directory.path,
            known,
            options,
            directory=directory,
            has_logs=disks.has_logs(directory),
            here=here,
            duplicates=tuple(duplicates),
            metadata=context.metadata,
            ids=context.ids,
            newer=newer,
            refused=_refused(directory, disks, known.release.release, is_named=options.kafka_version is not None),
            siblings=siblings,
            cluster=cluster,
            around=context.watch,
        )
    for place in directory.partitions:
        known, watch = context.known(place), context.watch
        yield CheckUnit(place.path, known, options, place, siblings=siblings, cluster=cluster, around=watch)


def _refused(
    directory: LogDirectory, disks: Disks, release: KafkaRelease, *, is_named: bool
) -> list[tuple[Refusal, str]]:
    """Return the first record of the directory's own metadata log that a node of this release cannot apply. What a
    newer release has written, it applies, too: it counts only if the release `is_named`."""
    metadata = disks.copies.quorum(directory.path)
    if metadata is None:
        return []
    from kdump.cluster.metadata_refusals import refusals, refused_text

    refused = [refusal for refusal in refusals(metadata, release) if is_named or not refusal.of_newer]
    return [(refusal, refused_text(refusal, metadata)) for refusal in refused[:1]]


class PartitionDirectoryCheck:
    """Checks the files next to the segments of one partition."""

    def __init__(
        self, partition: PartitionDirectory, known: PartitionContext, options: Options, totals: CheckTotals
    ) -> None:
        self.partition, self.known, self.options, self.totals = partition, known, options, totals

    def findings(self, log: PartitionScan) -> Iterator[Finding]:
        """Yield the findings. `log`: the scan of the segments, already run, which has the log start and end
        offsets."""
        partition, chosen = self.partition, self.options.chosen
        if "indexes" in chosen:
            if not partition.state:
                yield from missing_indexes(partition, log.damaged)
            yield from self._transaction_indexes()
        if "snapshots" in chosen:
            valid = log.neighbor_files.valid_snapshots
            last = max(partition.snapshots, key=lambda target: target.name_offset or 0, default=None)
            for target in partition.snapshots:
                if target.path in valid:
                    self.totals.count_file(valid[target.path])
                else:
                    found = file_findings(target, self.options, self.totals, self.known.release)
                    is_last = self.known.clean is False and target == last
                    yield from (interrupted(each) if is_last and not length(each.file) else each for each in found)
        if "checkpoints" in chosen:
            for target in partition.texts:
                yield from file_findings(target, self.options, self.totals, self.known.release)
            yield from self._topic_id(log)
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

    def _topic_id(self, log: PartitionScan) -> Iterator[Finding]:
        partition, context = self.partition, self.known
        name = "partition.metadata"
        target = partition.text(name)
        if target is None:
            is_live = not context.is_copy and not partition.state and partition.topic != METADATA_TOPIC
            if is_live and not partition.listing_errors:
                missing = as_target(os.path.join(partition.path, name), source=partition.source)
                yield from missing_topic_id(missing, context.release.release, log.reached < 0)
        elif context.topic_id is not None:
            own = items(target, self.options, self.totals, count=False)
            yield from other_topic_id(target, own, context.topic_id, of_deleted=context.of_deleted_topic)

    def _checkpoints(self, log: PartitionScan) -> Iterator[Finding]:
        log_end = self._log_end(log)
        if log_end is not None and not self.partition.state:
            yield from beyond_log(self.known, log_end)

    def _log_end(self, log: PartitionScan) -> int | None:
        """Return the log end offset; None if it is unknown because of what could not be read. A log without a segment
        is created at its checkpointed log start offset (LogLoader.recoverLog)."""
        if self.partition.segments or self.partition.listing_errors:
            return log.stored_end
        start = self.known.checkpoints.get("log-start-offset")
        return start.offset if start else 0
