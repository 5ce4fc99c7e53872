"""Retention blockers: what keeps segments longer than the configs require, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kdump.cluster.remote_log import UNDER_WAY
from kdump.format.count_text import count_text
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.problems.advice import NO_FACTS, NO_VALUES
from kdump.problems.problem import Problem
from kdump.questions.find_partitions import PartitionInput
from kdump.questions.retention import answer as answers
from kdump.questions.retention.answer import MOVE, OFFLINE, SHARE, RetentionBlocker
from kdump.questions.retention.compaction import CLEAN, DIRTY, STABLE, WATERMARK, Compaction, unreadable
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.deletion import HELD, Deletion, LogFacts
from kdump.questions.retention.observed_segments import BATCH, FILE, TIMES, ObservedSegment, latest
from kdump.questions.retention.remote_deletion import NOTHING_REMOTE, RemoteRetention
from kdump.questions.retention.simulated_cleaning import CleaningResult
from kdump.questions.transactions.answer import HANGING as HANGS
from kdump.questions.transactions.answer import Transaction
from kdump.state.groups import GroupCoordinatorState
from kdump.state.releases import COPY_LAG, TIMESTAMP_AFTER

DELETION, COMPACTION = "deletion", "compaction"


@dataclass
class RetentionCase:
    """One partition, with everything that is known about it."""

    place: PartitionInput
    topic: str | None
    partition: int | None
    segments: list[ObservedSegment]
    deletions: list[Deletion]
    compaction: Compaction | None
    log: LogFacts
    settings: Settings
    oldest: Transaction | None
    """The open transaction that blocks the last stable offset."""
    release: KafkaRelease = NEWEST
    moves_to: str = ""
    """The -future directory that this partition is moved to, or "" if it is not, or the log cleaner is disabled."""
    throttle: str = ""
    """The config that limits the move, or the copies to remote storage, with its value."""
    offline: str = ""
    """The ID of the log directory, if its broker has taken it offline."""
    lacks: list[tuple[int, int]] = field(default_factory=list)
    """Offsets above the log start offset that are neither here nor in remote storage."""
    topic_names: dict[str, str] = field(default_factory=dict)
    """By topic ID."""
    shares: GroupCoordinatorState | None = None
    """The share partitions, if this is __share_group_state."""
    remote: RemoteRetention = NOTHING_REMOTE
    notes: tuple[str, ...] = ()
    drop: CleaningResult | None = None
    """What the next cleaning removes, if the keys were read."""


def find_blockers(case: RetentionCase) -> Iterator[RetentionBlocker]:
    """Yield all blockers, those of deletion first."""
    yield from _future(case)
    yield from _watermark(case)
    yield from _tier(case)
    if case.offline:
        yield _offline(case)
    elif case.moves_to:
        yield _move(case)
    if case.shares is not None:
        yield from _share(case, case.shares)
    if case.compaction is not None:
        yield from _stable(case, case.compaction)
        yield from _damage(case, case.compaction)
        if not case.settings["log.cleaner.enable"]:
            kept = case.segments[:-1]
            yield _blocker(case, answers.CLEANER, COMPACTION, kept)


def _blocker(
    case: RetentionCase,
    kind: str,
    keeps: str,
    kept: list[ObservedSegment],
    values: Mapping[str, object] = NO_VALUES,
    facts: Mapping[str, bool | None] = NO_FACTS,
    title: str = "",
    *,
    at: ObservedSegment | None = None,
    is_against: bool = True,
) -> RetentionBlocker:
    """Return a blocker. `values`, `facts`, and `title`, which is the case: of its Problem."""
    path = case.place.partition.path
    own = {"TOPIC": case.topic, "PARTITION": case.partition, "DIR": path, "SEGMENT": path}
    problem = Problem(
        f"retention-{kind}", {**{key: own[key] for key in own if own[key] is not None}, **values}, facts, title
    )
    return RetentionBlocker(
        source=case.place.partition.source,
        topic=case.topic,
        partition=case.partition,
        hold=kind,
        isAgainstPolicy=is_against,
        keeps=keeps,
        segments=len(kept),
        bytes=sum(segment.size for segment in kept),
        file=at.target.path if at is not None else path,
        message=problem.title,
        fix=". ".join(problem.actions) or None,
        problem=problem,
    )


def _blocked(case: RetentionCase, by: str) -> list[ObservedSegment]:
    pairs = zip(case.segments, case.deletions)
    return [segment for segment, deletion in pairs if deletion.deletion == HELD and deletion.blocked == by]


def _future(case: RetentionCase) -> Iterator[RetentionBlocker]:
    kept = _blocked(case, "future")
    if not kept:
        return
    first = next(n for n, found in enumerate(case.deletions) if found.blocked == "future")
    segment = case.segments[first]
    waiting = ""
    if len(kept) > 1:
        others = count_text(len(kept) - 1, "later segment that is due waits", "later segments that are due wait")
        waiting = f"; {others} for it"
    is_of_batch = segment.timestamp_from == BATCH
    made = _blocker(
        case,
        answers.FUTURE,
        DELETION,
        kept,
        {"waiting": waiting, "limit": _limit_of_timestamps(case.release)},
        {"lastSegment": first == len(case.segments) - 1, "ofRecords": is_of_batch},
        {FILE: "file", TIMES: "timeIndex"}.get(segment.timestamp_from, ""),
        at=segment,
    )
    found = latest(segment, case.place.options) if segment.timestamp_from == BATCH else None
    yield made._replace(
        position=segment.largest_at if segment.timestamp_from == BATCH else None,
        offset=found.offset if found is not None else None,
        timestamp=segment.timestamp,
        until=case.deletions[first].deletesAt,
    )


def _limit_of_timestamps(release: KafkaRelease) -> str:
    return f"message.timestamp.{'after' if TIMESTAMP_AFTER.applies(release) else 'difference'}.max.ms"


def _watermark(case: RetentionCase) -> Iterator[RetentionBlocker]:
    mark, end = case.log.high_watermark, case.log.log_end
    kept = _blocked(case, "highWatermark")
    if kept:
        values = {"watermark": mark, "logEnd": end}
        yield _blocker(case, answers.WATERMARK, DELETION, kept, values, at=kept[0])._replace(offset=mark)


def _tier(case: RetentionCase) -> Iterator[RetentionBlocker]:
    kept = _blocked(case, "tier")
    if kept:
        lag = case.settings.copy_lag if COPY_LAG.applies(case.release) else ""
        more = f", which they are only after {lag}" if lag else ""
        more += f"; the broker's copies are limited by {case.throttle}" if case.throttle and not case.moves_to else ""
        stable = case.log.last_stable
        is_open = stable is not None and stable < case.log.log_end and stable <= (kept[0].lastOffset or 0)
        if is_open:
            more += f"; none is copied that ends above the last stable offset, {stable}"  # candidateLogSegments
        lacking = None if is_open else case.place.known.never_copied
        copying = None if is_open or lacking is not None else case.log.copying
        is_under_way = copying is not None and case.log.now - copying.time < UNDER_WAY
        if lacking is not None:
            more += f"; {lacking:020}.snapshot is missing, without which the segment before it is never copied"
        if copying is not None:
            more += f"; {copying.text}"
        values = {"remoteEnd": case.log.remote_end, "more": more}
        facts = {
            "transactional": is_open,
            "copyLag": bool(lag),
            "withoutSnapshot": lacking is not None,
            "onlyReplica": case.place.known.facts.get("onlyReplica"),
            "copyUnderWay": is_under_way,
            "copyHangs": copying is not None and not is_under_way,
        }
        # A broker at work copies a segment after it has rolled it.
        is_new = case.place.known.running is True and lacking is None and case.log.now - kept[0].modified < UNDER_WAY
        made = _blocker(case, answers.TIER, DELETION, kept, values, facts, at=kept[0], is_against=not is_new)
        yield made._replace(offset=case.log.remote_end)


def _move(case: RetentionCase) -> RetentionBlocker:
    """Return the pause of retention and compaction (LogCleanerManager.abortAndPauseCleaning), which lasts until the
    future replica has replaced this one, also after a restart of the broker."""
    kept = _blocked(case, MOVE)
    is_cleaned = case.compaction is not None and case.compaction.is_taken
    what = DELETION if kept or case.compaction is None else COMPACTION
    throttle = f"; the move is limited by {case.throttle}" if case.throttle else ""
    values = {"target": case.moves_to, "throttle": throttle}
    return _blocker(case, MOVE, what, kept, values, is_against=bool(kept) or is_cleaned)._replace(file=case.moves_to)


def _offline(case: RetentionCase) -> RetentionBlocker:
    """Return the pause of everything in a log directory that is offline (LogManager.handleLogDirFailure), which lasts
    until the broker is restarted."""
    kept = _blocked(case, OFFLINE)
    is_cleaned = case.compaction is not None and case.compaction.is_taken
    what = DELETION if kept or case.compaction is None else COMPACTION
    return _blocker(case, OFFLINE, what, kept, {"directory": case.offline}, is_against=bool(kept) or is_cleaned)


def _share(case: RetentionCase, shares: GroupCoordinatorState) -> Iterator[RetentionBlocker]:
    """Yield the share partition from whose last snapshot on the coordinator keeps its log
    (ShareCoordinatorOffsetsManager.lastRedundantOffset)."""
    places = [
        (each.snapshotOffset, group, number)
        for group, states in shares.share.items()
        for number, each in states.items()
    ]
    if not places:
        return
    offset, group, (topic, partition) = min(places)
    kept = [segment for segment in case.segments[:-1] if max(segment.baseOffset, segment.lastOffset or 0) >= offset]
    newest = max(each for each, _, _ in places)
    if newest == offset:
        return
    name = f"{case.topic_names.get(topic, topic)}-{partition}"
    values = {"group": group, "name": name, "offset": offset, "newest": newest}
    made = _blocker(case, SHARE, DELETION, kept, values, is_against=bool(kept))
    yield made._replace(offset=offset)


def _stable(case: RetentionCase, compaction: Compaction) -> Iterator[RetentionBlocker]:
    """Yield what stops the cleaner below the active segment: an open transaction, or the high watermark."""
    pairs = list(zip(case.segments, compaction.segments))
    by_watermark = [segment for segment, each in pairs if WATERMARK in each.uncleanableBecause]
    if by_watermark:
        mark = case.log.high_watermark
        made = _blocker(case, answers.WATERMARK, COMPACTION, by_watermark, {"watermark": mark}, title="cleaner")
        yield made._replace(offset=mark)
    kept = [segment for segment, each in pairs if STABLE in each.uncleanableBecause]
    row = case.oldest
    if not kept or row is None:
        return
    is_hanging = row.state == HANGS
    is_old = (row.idle if row.idle is not None else row.age or 0) > case.place.options.transaction_timeout
    old = "; it has been open for longer than the transaction timeout allows" if is_old and not is_hanging else ""
    values = {"lastStable": case.log.last_stable, "old": old, "abort": row.abort}
    kind = answers.HANGING if is_hanging else answers.OPEN
    facts = {"abort": row.abort is not None}
    made = _blocker(case, kind, COMPACTION, kept, values, facts, is_against=is_hanging or is_old)
    yield made._replace(
        file=row.file,
        position=row.position,
        offset=row.firstOffset,
        timestamp=row.begun,
        producerId=row.producerId,
        transactionalId=row.transactionalId,
    )


def _damage(case: RetentionCase, compaction: Compaction) -> Iterator[RetentionBlocker]:
    """Yield bytes at which the cleaner fails. It marks the partition uncleanable until the broker restarts, and does so
    again after that: it neither compacts the partition nor deletes its segments."""
    broken = unreadable(case.segments, compaction)
    if broken is None:
        return
    assert broken.damage is not None
    pairs = zip(case.segments, compaction.segments)
    reached = [segment for segment, each in pairs if each.compaction in (CLEAN, DIRTY)]
    when = "when it cleans this log" + ("" if compaction.is_taken else ", which is not yet due")
    is_against = compaction.is_taken and bool(case.settings["log.cleaner.enable"])
    kind = answers.TOO_LARGE if broken.damage.is_too_large else answers.DAMAGED
    values = {"reason": broken.damage.reason, "when": when}
    facts = {"metadataLog": False, "bootstrapFile": False}
    made = _blocker(case, kind, COMPACTION, reached, values, facts, at=broken, is_against=is_against)
    yield made._replace(position=broken.damage.position)
