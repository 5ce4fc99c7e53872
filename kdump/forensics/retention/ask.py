"""`kdump.retention`: from paths to the answers, partition by partition, as each has been read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kdump.check.known import ids, same_broker
from kdump.check.options import Options
from kdump.check.totals import Totals
from kdump.forensics.answers import ABORTED, Note, PartitionTransactions, Transaction
from kdump.forensics.ledger import Ledger
from kdump.forensics.places import Asked, asked
from kdump.forensics.retention.answers import Hold, PartitionRetention, SegmentRetention
from kdump.forensics.retention.compaction import compaction, unreadable
from kdump.forensics.retention.configs import Given, Settings, known_names, settings
from kdump.forensics.retention.deletion import KEPT, Deletion, LogFacts, deletions, stopped
from kdump.forensics.retention.holders import Case, holds
from kdump.forensics.retention.keys import MOST_ABORTED, MOST_KEYS, drop
from kdump.forensics.retention.report import leftover, partition_answer, segment_answers
from kdump.forensics.retention.segments import Facts, SegmentFacts
from kdump.forensics.transactions import TRANSACTION_TIMEOUT
from kdump.forensics.walk import Walk
from kdump.log.disk import LogDirectory, place_of
from kdump.log.errors import SourceError
from kdump.log.internal_topics import METADATA_TOPIC, REMOTE_METADATA_TOPIC
from kdump.log.kinds import SEGMENT
from kdump.log.listing import is_url, length, parent
from kdump.log.paths import is_live, target
from kdump.log.region import Limits
from kdump.state.coordinator import Coordinator
from kdump.state.image import Metadata
from kdump.state.metadata import read_metadata, replay_metadata
from kdump.state.remote_log import RemoteLog, read_remote_log

Answer = SegmentRetention | Hold | PartitionRetention | Note
Refused = Callable[[SourceError], None]
KRAFT = "the metadata log is not kept by a topic's configs: a controller deletes what lies below its snapshots"
MOVING = "a replica that is being moved here from another log directory: the cleaner does not come to it before"
OLD_CONFIGS = "the metadata could not be read whole, and configs may be older ones"
NOT_KNOWN = "no configs of its topics are here: Kafka's defaults are assumed; --metadata or --config has better ones"


@dataclass
class Question:
    """What is asked. `now`: epoch ms, None for the clock. `timeout`: ms after which an open transaction is old.
    `metadata`: a log directory, or __cluster_metadata-0, to take the configs from. `deep`: look into records of
    compacted topics, for tombstones; `keys`: and at their keys, for what a cleaning would drop. `topic`: whether a
    topic is asked for."""

    now: int | None = None
    timeout: int = TRANSACTION_TIMEOUT
    given: Given = field(default_factory=Given)
    metadata: str | None = None
    deep: bool = True
    keys: bool = False
    topic: Callable[[str], bool] = lambda name: True
    limits: Limits = field(default_factory=Limits)


def retention(
    paths: str | Iterable[str],
    *,
    now: int | None = None,
    topics: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    metadata: str | None = None,
    deep: bool = True,
    keys: bool = False,
    timeout: int = TRANSACTION_TIMEOUT,
    refused: Refused | None = None,
) -> Iterator[Answer]:
    """What retention and the cleaner make of the partitions that `paths` mean: segments, directories of partitions, log
    directories, or directories above. Of each partition every SegmentRetention, every Hold, and PartitionRetention;
    before it a Note for what could not be taken into account. Reads as it is asked, in bounded memory.

    `now`: epoch ms that times are held against, by default the clock. `config`: values by the name of a topic's config
    or of a broker's, which count before all others; `properties`: the broker's server.properties. `metadata`: where the
    KRaft metadata is, by default on the same disk. `deep=False` does not look into records, and counts no tombstones;
    `keys=True` reads compacted logs twice more, for what the next cleaning would drop.
    Raises SourceError for what cannot be read, unless `refused` is told of it; ValueError for a config that there is
    not.
    """
    unknown = sorted(set(config or {}) - known_names())
    if unknown:
        raise ValueError(f"no config {', '.join(unknown)} here; there are {', '.join(sorted(known_names()))}")
    wanted = frozenset((topics,) if isinstance(topics, str) else topics)
    question = Question(
        now=now,
        timeout=timeout,
        given=Given(config or {}, properties or {}),
        metadata=metadata,
        deep=deep,
        keys=keys,
        topic=lambda name: not wanted or name in wanted,
    )
    return ask(paths, question, refused=refused)


def ask(
    paths: str | Iterable[str],
    question: Question,
    *,
    refused: Refused | None = None,
    met: Callable[[int], None] = lambda count: None,
    started: Callable[[Asked], None] = lambda place: None,
    total: Callable[[int], None] = lambda size: None,
) -> Iterator[Answer]:
    """As `retention`. `met` hears of bytes as they are read, of `total`; `started` of each partition."""
    now = round(time.time() * 1000) if question.now is None else question.now

    def refuse(error: SourceError) -> None:
        if refused is None:
            raise error
        refused(error)

    options = Options(
        only=frozenset({"transactions"}), limits=question.limits, now=now, transaction_timeout=question.timeout
    )
    named, only = _whole([paths] if isinstance(paths, str) else list(paths))
    places, directories = asked(named, options, refuse, everything=True)
    chosen = [place for place in places if place.known.topic is None or question.topic(place.known.topic)]
    clusters = _Clusters(question, directories, options, refuse)
    unknown: set[str] = set()
    total(sum(place.size for place in chosen))
    for place in chosen:
        started(place)
        made = _Partition(place, question, now, clusters, only.get(place.partition.path))
        if not made.config.is_known and not place.partition.state and made.directory not in unknown:
            unknown.add(made.directory)
            yield Note(made.directory or "-", NOT_KNOWN)
        if made.metadata is not None and made.metadata.problems and made.directory not in unknown:
            unknown.add(made.directory)
            yield Note(made.directory, f"{OLD_CONFIGS}: {made.metadata.problems[0]}")
        yield from made.answers(met, refuse)


def _whole(paths: list[str]) -> tuple[list[str], dict[str, set[str]]]:
    """A segment of a partition's directory says little by itself: the whole directory is read, and that segment shown.
    The paths to read, and which files of a directory were asked for."""
    found: dict[str, None] = {}
    only: dict[str, set[str]] = {}
    directories = {os.path.abspath(path) for path in paths if not is_url(path) and os.path.isdir(path)}
    for path in paths:
        directory = os.path.dirname(path)
        is_segment = path != "-" and not is_url(path) and os.path.isfile(path) and target(path).kind is SEGMENT
        if is_segment and is_live(os.path.basename(path)) and target(path).name_offset is not None:
            found[directory or "."] = None
            if os.path.abspath(directory) not in directories:
                only.setdefault(directory or ".", set()).add(os.path.basename(path))
        else:
            found[path] = None
    return list(found), only


class _Clusters:
    """The metadata of the cluster, by log directory; read once each."""

    def __init__(self, question: Question, directories: list[LogDirectory], options: Options, refuse: Refused) -> None:
        self.directories = directories
        self.options = options
        self._read: dict[str, tuple[Metadata | None, int | None]] = {}
        self._remote: dict[str, RemoteLog] = {}
        self.given: Metadata | None = None
        if question.metadata is not None:
            self.given = _named(question.metadata, question.limits, refuse)

    def of(self, directory: str) -> tuple[Metadata | None, int | None]:
        """The metadata for the partitions in a directory, and the id of its broker."""
        if directory not in self._read:
            self._read[directory] = self._of(directory)
        return self._read[directory]

    def remote(self, directory: str) -> RemoteLog:
        """How far the partitions of tiered topics are copied, as far as this disk says."""
        if directory not in self._remote:
            around = place_of(directory) if directory and not is_url(directory) else None
            here = around.partitions if isinstance(around, LogDirectory) else []
            paths = [each.path for each in here if each.topic == REMOTE_METADATA_TOPIC and not each.state]
            metadata, _ = self.of(directory)
            topic = metadata.topics.get(REMOTE_METADATA_TOPIC) if metadata is not None else None
            count = len(topic.partitions) if topic is not None else None
            self._remote[directory] = read_remote_log(paths, count, self.options.limits)
        return self._remote[directory]

    def _of(self, directory: str) -> tuple[Metadata | None, int | None]:
        around = place_of(directory) if directory and not is_url(directory) else None
        if not isinstance(around, LogDirectory):
            return self.given, None
        own = ids(around, self.options)
        node = own.get("node.id", "")
        number = int(node) if node.isdigit() else None
        if self.given is not None:
            return self.given, number
        found = read_metadata(directory, self.options.limits)
        for sibling in self.directories:
            if found is None and same_broker(own, ids(sibling, self.options)):
                found = read_metadata(sibling.path, self.options.limits)
        return found, number


def _named(path: str, limits: Limits, refuse: Refused) -> Metadata | None:
    """The metadata that a path has: the newest copy, if there are several."""
    from kdump.state.locate import metadata_in

    try:
        copies = [replay_metadata(files, limits=limits) for files, _ in metadata_in(path, refuse)]
    except SourceError as error:
        refuse(error)
        return None
    return max(copies, key=lambda copy: copy.end_offset)


class _Partition:
    """One partition, from its place to its answers."""

    def __init__(self, place: Asked, question: Question, now: int, clusters: _Clusters, only: set[str] | None) -> None:
        self.place = place
        self.question = question
        self.now = now
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
            question.given,
            was_cleaned="cleaner-offset" in place.known.checkpoints,
        )

    def answers(self, met: Callable[[int], None], refuse: Refused) -> Iterator[Answer]:
        place, partition, known = self.place, self.place.partition, self.place.known
        if known.topic == METADATA_TOPIC:
            yield Note(partition.path, KRAFT)
            return
        config = self.config
        for problem in config.problems:
            yield Note(partition.path, problem)
        if partition.state in ("delete", "stray"):
            yield from leftover(place, config)
            return
        facts = Facts(self.now, deep=self.question.deep and config.compacts)
        totals = Totals()
        oldest, summary = self._walk(facts, totals, met)
        for unread in totals.unread:
            refuse(SourceError(unread))
        for note in totals.notes:
            yield Note("", note)
        assert summary is not None
        segments = [self._facts(facts, segment) for segment in partition.segments if segment.log is not None]
        case = self._case(segments, config, summary, oldest)
        if self.question.keys and case.compaction is not None:
            yield from self._drop(case, refuse)
        found = list(holds(case))
        yield from segment_answers(case, self.only)
        yield from found
        yield partition_answer(case, found, summary)

    def _walk(
        self, facts: Facts, totals: Totals, met: Callable[[int], None]
    ) -> tuple[Transaction | None, PartitionTransactions | None]:
        """Read it: the open transaction that began first, and the partition's offsets."""
        place = self.place
        walk = Walk(place.partition, place.known, place.options, totals)
        walk.met = met
        coordinator = place.known.coordinator
        ledger = Ledger(
            walk, coordinator if isinstance(coordinator, Coordinator) else None, self.now, self.question.timeout
        )
        oldest: Transaction | None = None
        summary: PartitionTransactions | None = None
        for answer in walk.run(ledger, facts):
            if isinstance(answer, PartitionTransactions):
                summary = answer
            elif isinstance(answer, Transaction) and answer.state == ABORTED and self.question.keys:
                if answer.firstOffset is not None and self._counted < MOST_ABORTED:
                    self._counted += 1
                    ends = (answer.firstOffset, answer.markerOffset or answer.firstOffset)
                    self.aborted.setdefault(answer.producerId, []).append(ends)
            elif isinstance(answer, Transaction) and answer.markerOffset is None:
                first = answer.firstOffset
                if oldest is None or (first is not None and first < (oldest.firstOffset or 0)):
                    oldest = answer
        return oldest, summary

    def _facts(self, facts: Facts, segment: object) -> SegmentFacts:
        log = segment.log  # type: ignore[attr-defined]
        found = facts.found.get(log.path)
        if found is None:
            found = SegmentFacts(log, log.name_offset or 0, length(log.path) or 0, 0, is_read=False)
        return found

    def _drop(self, case: Case, refuse: Refused) -> Iterator[Note]:
        """Read the keys."""
        found = case.compaction
        assert found is not None
        path = self.place.partition.path
        if path == "-":
            yield Note(path, "its keys would have to be read again: a pipe cannot be")
            return
        try:
            case.drop = drop(
                case.segments, found.first_dirty, found.stop, case.settings, self.aborted, self.place.options, self.now
            )
        except SourceError as error:
            refuse(error)
            return
        if case.drop is None:
            yield Note(path, f"more than {MOST_KEYS:,} different keys: what a cleaning would drop is not counted")

    def _remote_end(self, config: Settings) -> int | None:
        if not config.is_tiered:
            return None
        known = self.place.known
        return self.clusters.remote(self.directory).end_of(known.topic_id, known.partition)

    def _case(
        self,
        segments: list[SegmentFacts],
        config: Settings,
        summary: PartitionTransactions,
        oldest: Transaction | None,
    ) -> Case:
        known = self.place.known
        first = segments[0].base
        end = max(summary.logEndOffset or 0, segments[-1].base)
        noted = known.log_start
        mark = summary.highWatermark
        described = self.metadata.topics.get(known.topic or "") if self.metadata else None
        replicas = described.partitions.get(known.partition or 0) if described else None
        if replicas is not None and len(replicas.replicas) == 1:
            mark = end  # the leader has all that there is
        log = LogFacts(
            log_start=max(noted, first) if noted is not None else first,
            log_end=end,
            high_watermark=mark,
            last_stable=summary.lastStableOffset,
            now=self.now,
            remote_end=self._remote_end(config),
        )
        checkpoint = known.checkpoints.get("cleaner-offset")
        cleaned = compaction(segments, log, config, checkpoint.offset if checkpoint else None)
        gone = deletions(segments, log, config)
        moves = self.place.partition.state == "future"
        if moves and config.compacts:
            gone = [Deletion(KEPT) for _ in segments]
        elif config.compacts and not config["log.cleaner.enable"]:
            stopped(gone, "cleanerDisabled")
        elif config.compacts and cleaned.is_taken and unreadable(segments, cleaned) is not None:
            stopped(gone, "damage")
        return Case(
            source=self.place.partition.source,
            topic=known.topic,
            partition=known.partition,
            path=self.place.partition.path,
            segments=segments,
            deletions=gone,
            compaction=cleaned if config.compacts and not moves else None,
            state=self.place.partition.state,
            notes=(MOVING,) if moves else (),
            log=log,
            settings=config,
            oldest=oldest if oldest is not None and oldest.firstOffset == summary.lastStableOffset else None,
            timeout=self.question.timeout,
            options=self.place.options,
        )
