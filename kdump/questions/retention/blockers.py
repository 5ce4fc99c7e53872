"""Retention blockers: what keeps segments longer than the configs require, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.format.count_text import count_text
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.questions.retention import answer as answers
from kdump.questions.retention.answer import MOVE, OFFLINE, SHARE, RetentionBlocker
from kdump.questions.retention.compaction import CLEAN, DIRTY, STABLE, WATERMARK, Compaction, unreadable
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.deletion import HELD, Deletion, LogFacts
from kdump.questions.retention.observed_segments import BATCH, FILE, TIMES, ObservedSegment, latest
from kdump.questions.retention.simulated_cleaning import CleaningResult
from kdump.questions.transactions.answer import HANGING as HANGS
from kdump.questions.transactions.answer import Transaction
from kdump.state.groups import GroupCoordinatorState
from kdump.state.releases import COPY_LAG, TIMESTAMP_AFTER

DELETION, COMPACTION = "deletion", "compaction"
BYTES = "set retention.bytes, which does not depend on timestamps"
TRIM = f"raise the log start offset to the next segment's base offset with kafka-delete-records.sh, or {BYTES}"
# UnifiedLog.deleteLogStartOffsetBreachedSegments: only a segment that has a next one.
TRIM_ACTIVE = (
    "once the broker has rolled a new segment, raise the log start offset to that segment's base offset with "
    f"kafka-delete-records.sh, or {BYTES}"
)
REFUSE = "; {config} makes the broker reject such timestamps"
REPLACE = (
    "run kdump verify for details. Stop the broker; if another one with an intact copy then leads, and this one is in "
    "neither Isr nor Elr, move the directory away: after startup, the broker fetches the partition again"
)
RAISE = (
    "raise max.decompressed.message.bytes above the size of this record, then restart the broker: it cleans the "
    "partition again"
)


@dataclass
class RetentionCase:
    """One partition, with everything that is known about it."""

    source: str
    topic: str | None
    partition: int | None
    path: str
    segments: list[ObservedSegment]
    deletions: list[Deletion]
    compaction: Compaction | None
    known: PartitionContext
    log: LogFacts
    settings: Settings
    oldest: Transaction | None
    """The open transaction that blocks the last stable offset."""
    timeout: int
    options: Options
    release: KafkaRelease = NEWEST
    state: str = ""
    """Same as Partition.state."""
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
            message = "log.cleaner.enable=false: nothing is compacted, and no segments of compacted topics are deleted"
            yield _blocker(case, answers.CLEANER, COMPACTION, kept, message, fix="set log.cleaner.enable=true")


def _blocker(
    case: RetentionCase,
    kind: str,
    keeps: str,
    kept: list[ObservedSegment],
    message: str,
    *,
    at: ObservedSegment | None = None,
    fix: str | None = None,
    is_against: bool = True,
) -> RetentionBlocker:
    return RetentionBlocker(
        source=case.source,
        topic=case.topic,
        partition=case.partition,
        hold=kind,
        isAgainstPolicy=is_against,
        keeps=keeps,
        segments=len(kept),
        bytes=sum(segment.size for segment in kept),
        file=at.target.path if at is not None else case.path,
        message=message,
        fix=fix,
    )


def _blocked(case: RetentionCase, by: str) -> list[ObservedSegment]:
    pairs = zip(case.segments, case.deletions)
    return [segment for segment, deletion in pairs if deletion.state == HELD and deletion.blocked == by]


def _future(case: RetentionCase) -> Iterator[RetentionBlocker]:
    kept = _blocked(case, "future")
    if not kept:
        return
    first = next(n for n, found in enumerate(case.deletions) if found.blocked == "future")
    segment = case.segments[first]
    message = "its timestamp is in the future, and retention.ms counts from it"
    if segment.timestamp_from == FILE:
        message = "no record has a timestamp, and the file's modification time, which counts instead, is in the future"
    elif segment.timestamp_from == TIMES:
        message = "its .timeindex ends with a timestamp in the future, which a broker uses after startup"
    if len(kept) > 1:
        waiting = count_text(len(kept) - 1, "later segment that is due waits", "later segments that are due wait")
        message += f"; {waiting} for it"
    fix = (TRIM if first < len(case.segments) - 1 else TRIM_ACTIVE) + (
        REFUSE.format(config=_limit_of_timestamps(case.release)) if segment.timestamp_from == BATCH else ""
    )
    made = _blocker(case, answers.FUTURE, DELETION, kept, message, at=segment, fix=fix)
    found = latest(segment, case.options) if segment.timestamp_from == BATCH else None
    yield made._replace(
        position=segment.largest_at if segment.timestamp_from == BATCH else None,
        offset=found.offset if found is not None else None,
        timestamp=segment.timestamp,
        until=case.deletions[first].at,
    )


def _limit_of_timestamps(release: KafkaRelease) -> str:
    return f"message.timestamp.{'after' if TIMESTAMP_AFTER.applies(release) else 'difference'}.max.ms"


def _watermark(case: RetentionCase) -> Iterator[RetentionBlocker]:
    mark, end = case.log.high_watermark, case.log.log_end
    kept = _blocked(case, "highWatermark")
    if kept:
        message = (
            f"the last checkpointed high watermark (written every 5 s) is {mark}, the log end offset is {end}: the "
            "records in between were not on all in-sync replicas at that time"
        )
        yield _blocker(case, answers.WATERMARK, DELETION, kept, message, at=kept[0])._replace(offset=mark)


def _tier(case: RetentionCase) -> Iterator[RetentionBlocker]:
    kept = _blocked(case, "tier")
    if kept:
        message = f"remote storage has offsets up to {case.log.remote_end}: later segments stay until they are copied"
        lag = case.settings.copy_lag if COPY_LAG.applies(case.release) else ""
        message += f", which they are only after {lag}" if lag else ""
        message += (
            f"; the broker's copies are limited by {case.throttle}" if case.throttle and not case.moves_to else ""
        )
        fix = "look for RemoteLogManager errors in the broker's log"
        fix = f"wait for the lag, or lower it; if it is over, {fix}" if lag else fix
        stable = case.log.last_stable
        if stable is not None and stable < case.log.log_end and stable <= (kept[0].last or 0):
            message += f"; none is copied that ends above the last stable offset, {stable}"  # candidateLogSegments
            fix = "end the open transaction at the last stable offset (kdump transactions --state open)"
        yield _blocker(case, answers.TIER, DELETION, kept, message, at=kept[0], fix=fix)._replace(
            offset=case.log.remote_end
        )


def _move(case: RetentionCase) -> RetentionBlocker:
    """Return the pause of retention and compaction (LogCleanerManager.abortAndPauseCleaning), which lasts until the
    future replica has replaced this one, also after a restart of the broker."""
    kept = _blocked(case, MOVE)
    is_cleaned = case.compaction is not None and case.compaction.is_taken
    what = DELETION if kept or case.compaction is None else COMPACTION
    message = (
        f"it is moved to {case.moves_to}: until that is done, the broker neither deletes nor compacts its segments"
    )
    message += f"; the move is limited by {case.throttle}" if case.throttle else ""
    fix = "let the move end (kafka-log-dirs.sh --describe shows how far it is), or cancel it: move it to this directory"
    return _blocker(case, MOVE, what, kept, message, fix=fix, is_against=bool(kept) or is_cleaned)._replace(
        file=case.moves_to
    )


def _offline(case: RetentionCase) -> RetentionBlocker:
    """Return the pause of everything in a log directory that is offline (LogManager.handleLogDirFailure), which lasts
    until the broker is restarted."""
    kept = _blocked(case, OFFLINE)
    is_cleaned = case.compaction is not None and case.compaction.is_taken
    what = DELETION if kept or case.compaction is None else COMPACTION
    message = (
        f"the broker runs without its log directory, {case.offline}: it took it offline after an I/O error, or was "
        "not restarted since it got it; until its next startup, it neither deletes nor compacts anything here"
    )
    fix = "look for the first error about the directory in the broker's log, mend that, and restart the broker"
    return _blocker(case, OFFLINE, what, kept, message, fix=fix, is_against=bool(kept) or is_cleaned)


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
    kept = [segment for segment in case.segments[:-1] if segment.base >= offset or (segment.last or 0) >= offset]
    newest = max(each for each, _, _ in places)
    if newest == offset:
        return
    name = f"{case.topic_names.get(topic, topic)}-{partition}"
    message = (
        f"share group {group} has its only snapshot of {name} at offset {offset}: the coordinator keeps everything "
        f"from there on, up to the newest snapshot, at {newest}"
    )
    fix = (
        "let a consumer of the group acknowledge a record there, so that the coordinator writes a new snapshot, or "
        "delete the offsets of a group that is not used (kafka-share-groups.sh --delete-offsets)"
    )
    made = _blocker(case, SHARE, DELETION, kept, message, fix=fix, is_against=bool(kept))
    yield made._replace(offset=offset)


def _stable(case: RetentionCase, compaction: Compaction) -> Iterator[RetentionBlocker]:
    """Yield what stops the cleaner below the active segment: an open transaction, or the high watermark."""
    pairs = list(zip(case.segments, compaction.segments))
    by_watermark = [segment for segment, each in pairs if WATERMARK in each.because]
    if by_watermark:
        mark = case.log.high_watermark
        message = f"the cleaner stops at the high watermark, last checkpointed as {mark}"
        yield _blocker(case, answers.WATERMARK, COMPACTION, by_watermark, message)._replace(offset=mark)
    kept = [segment for segment, each in pairs if STABLE in each.because]
    row = case.oldest
    if not kept or row is None:
        return
    is_hanging = row.state == HANGS
    is_old = (row.idle if row.idle is not None else row.age or 0) > case.timeout
    message = f"the cleaner stops at the last stable offset {case.log.last_stable}, where this transaction starts"
    if is_old and not is_hanging:
        message += "; it has been open for longer than the transaction timeout allows"
    kind = answers.HANGING if is_hanging else answers.OPEN
    made = _blocker(case, kind, COMPACTION, kept, message, fix=row.abort, is_against=is_hanging or is_old)
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
    reached = [segment for segment, each in zip(case.segments, compaction.segments) if each.state in (CLEAN, DIRTY)]
    when = "when it cleans this log" + ("" if compaction.is_taken else ", which is not yet due")
    message = (
        f"the cleaner cannot read this ({broken.damage.reason}): {when}, it marks the partition uncleanable, and "
        "neither compacts it nor deletes its segments until the broker restarts"
    )
    is_against = compaction.is_taken and bool(case.settings["log.cleaner.enable"])
    kind, fix = (answers.TOO_LARGE, RAISE) if broken.damage.is_too_large else (answers.DAMAGED, REPLACE)
    made = _blocker(case, kind, COMPACTION, reached, message, at=broken, fix=fix, is_against=is_against)
    yield made._replace(position=broken.damage.position)
