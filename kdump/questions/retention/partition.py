"""Determines the answers for one partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kdump.answer import Note
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.finding import Finding
from kdump.check.totals import CheckTotals
from kdump.cluster.read_groups import CoordinatorLog, read_groups
from kdump.cluster.remote_log import RemoteSegment
from kdump.format.kafka_release import KafkaRelease
from kdump.format.numbers import INT_MAX
from kdump.io.directory_listing import length, parent
from kdump.io.errors import SourceError
from kdump.io.file_system import has_records
from kdump.io.run import Run
from kdump.log.internal_topics import METADATA_TOPIC, SHARE_TOPIC
from kdump.problems.problem import title_of
from kdump.query import OLD_TRANSACTION, Query, flag, now_option, option, release_option, timeout_option, topic_option
from kdump.questions.certain_answers import is_damage
from kdump.questions.find_partitions import PartitionInput
from kdump.questions.retention.answer import MOVE, OFFLINE, PartitionRetention, RetentionBlocker, SegmentRetention
from kdump.questions.retention.blockers import RetentionCase, find_blockers
from kdump.questions.retention.build_answers import leftover, partition_answer, segment_answers
from kdump.questions.retention.clusters import Clusters
from kdump.questions.retention.compaction import Compaction, compaction, settle_tombstones, unreadable
from kdump.questions.retention.configs import Asked, ConfigOverrides, Settings, config_option, settings
from kdump.questions.retention.deletion import KEPT, Deletion, LogFacts, deletions, stopped
from kdump.questions.retention.observed_segments import ObservedSegment, RetentionObserver
from kdump.questions.retention.remote_deletion import NOTHING_REMOTE, RemoteRetention, remote_retention
from kdump.questions.retention.simulated_cleaning import MAX_ABORTED_TRANSACTIONS, simulate_cleaning
from kdump.questions.transactions.answer import ABORTED, HANGING, OPEN, PartitionTransactions, Transaction
from kdump.questions.transactions.ledger import with_transactions
from kdump.state.effective_config import COPY_RATE, MOVE_RATE, broker_config
from kdump.state.groups import GroupCoordinatorState
from kdump.state.releases import DECOMPRESSED_LIMIT

RetentionAnswer = SegmentRetention | RetentionBlocker | PartitionRetention | Note
OLD_CONFIGS = "the metadata could not be read completely, so configs may be outdated"
NOT_KNOWN = "the topic's configs are not here: Kafka's defaults are assumed; pass --metadata or --config"


@dataclass(frozen=True, kw_only=True)
class RetentionQuery(Query):
    """Which partitions to explain, by which configs, and as of when. Raises ValueError for a config that does not
    exist, or a value that a broker would reject."""

    topics: Iterable[str] = topic_option("Read only partitions of these topics")
    config: Asked | None = config_option()
    properties: Mapping[str, str] | None = None
    metadata: str | None = option(
        "--metadata",
        metavar="DIR",
        help="Read topic configs from this log directory or __cluster_metadata-0.  [the same disk]",
    )
    now: int | None = now_option("Apply retention as of this time")
    timeout: int = timeout_option(OLD_TRANSACTION)
    deep: bool = True
    keys: bool = flag("--keys", help="Also read keys, and show what the next cleaning of a compacted log would remove.")
    kafka_version: KafkaRelease | str | None = release_option("Apply the rules")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.given

    @cached_property
    def given(self) -> ConfigOverrides:
        return ConfigOverrides.asked(self.config, self.properties)


class OnePartition:
    """Determines the answers for one partition."""

    def __init__(self, place: PartitionInput, query: RetentionQuery, clusters: Clusters, only: set[str] | None) -> None:
        self.query = query
        self.now = place.options.now
        self.only = only
        self.aborted: dict[int, list[tuple[int, int]]] = {}
        self._counted = 0
        self.clusters = clusters
        self.directory = "" if place.partition.path == "-" else parent(place.partition.path)
        self.metadata, self.node_id = clusters.of(self.directory)
        self.config = settings(
            place.known.topic,
            self.metadata,
            self.node_id,
            query.given.of_node(clusters.disks.server_of(self.directory)),
            was_cleaned="cleaner-offset" in place.known.checkpoints,
        )
        known = replace(place.known, tiered=bool(self.config["remote.storage.enable"]))
        self.place = replace(place, known=known)

    def answers(self) -> Iterator[RetentionAnswer]:
        place, partition, known = self.place, self.place.partition, self.place.known
        if known.topic == METADATA_TOPIC:
            yield Note(partition.path, title_of("retention-wait", "metadata"))
            return
        config = self.config
        for problem in config.problems:
            yield Note(partition.path, problem)
        if partition.state in ("delete", "stray"):
            yield from leftover(place, config)
            return
        facts = RetentionObserver(
            self.now,
            deep=self.query.deep and config.compacts and has_records(partition.path),
            largest_record=config["max.decompressed.message.bytes"]
            if DECOMPRESSED_LIMIT.applies(known.release.release)
            else INT_MAX,
        )
        totals = CheckTotals()
        oldest, summary = self._scan(facts, totals)
        for unread in totals.unread:
            place.options.unreadable(SourceError(unread))
        for note in totals.notes:
            yield Note("", note)
        assert summary is not None
        existing = [
            segment
            for segment in partition.segments
            if segment.log is not None and (segment.log.path in facts.found or length(segment.log.path) is not None)
        ]
        if not existing:  # all of them went away meanwhile
            return
        segments = [self._facts(facts, segment) for segment in existing]
        if place.known.topic is None and not any(segment.is_read for segment in segments):  # not a log
            return
        case = self._case(segments, config, summary, oldest)
        if self.query.keys and case.compaction is not None:
            yield from self._drop(case)
        blockers = list(find_blockers(case))
        yield from segment_answers(case, self.only)
        yield from blockers
        yield partition_answer(case, blockers, summary)

    def _scan(
        self, facts: RetentionObserver, totals: CheckTotals
    ) -> tuple[Transaction | None, PartitionTransactions | None]:
        """Read the partition. Return the open transaction that began first, and the offsets of the partition."""
        place = self.place
        scan = PartitionScan(
            place.partition, place.known, place.options, totals, lambda scan: [*with_transactions(scan), facts]
        )
        oldest: Transaction | None = None
        summary: PartitionTransactions | None = None
        damages = 0
        for answer in scan.findings():
            if isinstance(answer, PartitionTransactions):
                summary = answer
            elif isinstance(answer, Finding):
                damages += is_damage(answer)
            elif isinstance(answer, Transaction) and answer.state == ABORTED and self.query.keys:
                if answer.firstOffset is not None and self._counted < MAX_ABORTED_TRANSACTIONS:
                    self._counted += 1
                    ends = (answer.firstOffset, answer.markerOffset or answer.firstOffset)
                    self.aborted.setdefault(answer.producerId, []).append(ends)
            elif isinstance(answer, Transaction) and answer.state in (OPEN, HANGING):
                first = answer.firstOffset
                if oldest is None or (first is not None and first < (oldest.firstOffset or 0)):
                    oldest = answer
        return oldest, None if summary is None else summary._replace(damages=damages)

    def _facts(self, facts: RetentionObserver, segment: object) -> ObservedSegment:
        log = segment.log  # type: ignore[attr-defined]
        observed = facts.found.get(log.path)
        if observed is None:
            observed = ObservedSegment(log, log.name_offset or 0, length(log.path) or 0, 0, is_read=False)
        return observed

    def _drop(self, case: RetentionCase) -> Iterator[Note]:
        """Read the keys, to count what a cleaning would remove."""
        state = case.compaction
        assert state is not None
        path = self.place.partition.path
        if path == "-":
            yield Note(path, "its keys cannot be counted, because a pipe cannot be read twice")
            return
        try:
            case.drop = simulate_cleaning(
                case.segments,
                state.firstDirtyOffset,
                state.stop,
                case.settings,
                self.aborted,
                self.place.options,
                self.now,
                case.release,
            )
        except SourceError as error:
            self.place.options.unreadable(error)

    def _lacks(self, start: int, first: int) -> list[tuple[int, int]]:
        """Return which offsets below the first segment no segment in remote storage has."""
        known = self.place.known
        start = known.log_start if known.log_start is not None else start
        if not known.tiered or start >= first:
            return []
        return self.clusters.remote(self.directory).lacks(known.topic_id, known.partition, start, first) or []

    def _throttle(self, name: str) -> str:
        value = broker_config(self.metadata, name, self.node_id)
        return "" if value is None else f"{name}={value}"

    def _shares(self) -> GroupCoordinatorState | None:
        """Return the share partitions in this log, if it is that of a share coordinator."""
        partition = self.place.partition
        if partition.topic != SHARE_TOPIC or partition.partition is None:
            return None
        logs = tuple(segment.log.path for segment in partition.segments if segment.log is not None)
        log = CoordinatorLog(SHARE_TOPIC, partition.partition, partition.path, logs)
        return read_groups([log], run=Run(self.place.options.limits))

    def _remote(self, config: Settings) -> tuple[int | None, RemoteSegment | None]:
        """Return the last offset in remote storage, and the copy of later ones that has begun."""
        if not config.is_tiered:
            return None, None
        at, remote = (self.place.known.topic_id, self.place.known.partition), self.clusters.remote(self.directory)
        return remote.end_of(*at), remote.copy_of(*at)

    def _remote_retention(self, segments: list[ObservedSegment], config: Settings) -> tuple[RemoteRetention, str]:
        known = self.place.known
        if not config["remote.storage.enable"] or self.place.partition.state:
            return NOTHING_REMOTE, ""
        remote = self.clusters.remote(self.directory)
        found = remote.in_log(known.topic_id, known.partition, known.lineage)
        end = remote.end_of(known.topic_id, known.partition)
        if end is None:
            return NOTHING_REMOTE, ""
        only_local = sum(segment.size for segment in segments if segment.baseOffset >= end)
        return remote_retention(found, only_local, config, known.log_start or 0, self.now, self.clusters.missing)

    def _log(self, segments: list[ObservedSegment], config: Settings, summary: PartitionTransactions) -> LogFacts:
        known, first = self.place.known, segments[0].baseOffset
        end = max(summary.logEndOffset or 0, segments[-1].baseOffset)
        described = self.metadata.topics.get(known.topic or "") if self.metadata else None
        replicas = described.partitions.get(known.partition or 0) if described else None
        is_only = replicas is not None and len(replicas.replicas) == 1
        remote_end, copying = self._remote(config)
        return LogFacts(
            log_start=first if known.log_start is None else max(known.log_start, first),
            log_end=end,
            high_watermark=end if is_only else summary.highWatermark,  # with one replica, it is the log end offset
            last_stable=summary.lastStableOffset,
            now=self.now,
            remote_end=remote_end,
            copying=copying,
        )

    def _case(
        self,
        segments: list[ObservedSegment],
        config: Settings,
        summary: PartitionTransactions,
        oldest: Transaction | None,
    ) -> RetentionCase:
        known, log = self.place.known, self._log(segments, config, summary)
        checkpoint = known.checkpoints.get("cleaner-offset")
        release = known.release.release
        cleaned = compaction(segments, log, config, checkpoint.offset if checkpoint else None, release)
        if config.compacts:
            settle_tombstones(segments, cleaned, config, release)
        gone = deletions(segments, log, config, release)
        moves = self.place.partition.state == "future"
        moves_to = self.clusters.moves_to(self.place.partition) if config["log.cleaner.enable"] else ""
        remote, note = self._remote_retention(segments, config)
        offline = self.clusters.offline_id(self.directory)
        cleaned.wouldClean = cleaned.is_taken and bool(config["log.cleaner.enable"]) and not (moves_to or offline)
        why = _stops(segments, config, cleaned, offline, moves_to)
        if moves and config.compacts and not (offline or moves_to):
            gone = [Deletion(KEPT) for _ in segments]
        elif why:
            stopped(gone, why)
        return RetentionCase(
            self.place,
            known.topic,
            known.partition,
            segments=segments,
            deletions=gone,
            compaction=cleaned if config.compacts and not moves else None,
            moves_to=moves_to,
            throttle=self._throttle(MOVE_RATE if moves_to else COPY_RATE),
            offline=offline,
            shares=self._shares(),
            lacks=self._lacks(log.log_start, segments[0].baseOffset),
            topic_names={}
            if self.metadata is None
            else {topic.id: topic.name for topic in self.metadata.topics.values()},
            notes=(title_of("directory-note", "notCleaned"),) if moves else tuple(filter(None, [note])),
            remote=remote,
            log=log,
            settings=config,
            oldest=oldest if summary.heldBy is not None else None,
            release=release,
        )


def _stops(segments: list[ObservedSegment], config: Settings, cleaned: Compaction, offline: str, moves_to: str) -> str:
    """Return what stops deletion and compaction of a log; empty if nothing does."""
    if offline or moves_to:
        return OFFLINE if offline else MOVE
    if config.compacts and not config["log.cleaner.enable"]:
        return "cleanerDisabled"
    if config.compacts and cleaned.is_taken and (broken := unreadable(segments, cleaned)):
        return "recordTooLarge" if broken.damage and broken.damage.is_too_large else "damage"
    return ""
