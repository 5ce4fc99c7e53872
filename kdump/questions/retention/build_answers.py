"""Builds the answers from what was found in a partition."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from kdump.answer import of_fact, unknown_keys
from kdump.check.rules.timestamps import is_long_before, other_unit, utc
from kdump.cluster.read_groups import CoordinatorLog, log_records
from kdump.format.count_text import count_text, offsets_text
from kdump.format.streams_record import key_structure
from kdump.io.directory_listing import length
from kdump.io.run import ignore
from kdump.log.internal_topics import CHANGELOG, state_in
from kdump.problems.problem import Problem, title_of
from kdump.questions.find_partitions import PartitionInput
from kdump.questions.retention.answer import (
    FREE,
    HELD,
    STRAY,
    UNKNOWN,
    PartitionRetention,
    RetentionBlocker,
    SegmentRetention,
)
from kdump.questions.retention.blockers import RetentionCase
from kdump.questions.retention.compaction import NOT_CLEANED
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.deletion import HELD as IS_HELD
from kdump.questions.retention.deletion import LATER, NOW, Deletion
from kdump.questions.retention.deletion import UNKNOWN as IS_UNKNOWN
from kdump.questions.retention.observed_segments import BATCH, FILE, ObservedSegment, Tombstones
from kdump.questions.retention.remote_deletion import NOTHING_REMOTE
from kdump.questions.transactions.answer import PartitionTransactions
from kdump.state.as_of import AsOf
from kdump.state.unknown_offsets import CHECKPOINT_OF, CheckpointedOffsets

NO_TIER = "the contents of remote storage are unknown: the partition of __remote_log_metadata is not on this disk"
OF_FILE = "for {count} {segments} the file's modification time counts, which is wrong if a copy has not preserved it"
UNCOUNTED = "the records of {batches} are not counted, because recordCount cannot be true; run kdump verify for details"
OTHER_UNIT = "due because of timestamps up to {largest}: read as {unit}, they are up to {converted}"
NO_KEY = "whether retention deletes state that must stay is unknown: no record here shows whether its store has windows"
IS_STRAY = Problem("retention-stray")


COPY_DISABLED = (
    "remote.log.copy.disable=true: nothing more is copied to remote storage, and retention.*, not local.retention.*, "
    "deletes the segments here"
)


def segment_answers(case: RetentionCase, only: set[str] | None) -> Iterator[SegmentRetention]:
    """Yield the answer for each segment, in order; with `only`, just for files with these names."""
    for number, segment in enumerate(case.segments):
        if only is not None and os.path.basename(segment.target.path) not in only:
            continue
        gone, cleaned = case.deletions[number], case.compaction
        stones, markers = segment.tombstones, segment.markers if cleaned is not None else None
        in_batch = segment.is_read and segment.timestamp_from == BATCH
        yield of_fact(
            SegmentRetention,
            segment,
            gone,
            NOT_CLEANED if cleaned is None else cleaned.segments[number],
            case,
            case.place.partition,
            file=segment.target.path,
            isActive=number + 1 == len(case.segments),
            largestTimestamp=segment.timestamp if segment.is_read else None,
            timestampFrom=segment.timestamp_from if segment.is_read else None,
            timestampPosition=segment.largest_at if in_batch else None,
            timestampOffset=segment.largest_offsets[0] if in_batch else None,
            waitsFor=case.segments[gone.by].baseOffset if gone.by is not None else None,
            blockedBy=gone.blocked or None,
            tombstones=stones.total if stones is not None else None,
            tombstonesDue=stones.due if stones is not None else None,
            markers=markers.total if markers is not None else None,
            markersDue=markers.due if markers is not None else None,
        )


def _sum(segments: Iterable[ObservedSegment], name: str) -> Tombstones | None:
    """Return the sum over all segments; None if one was not examined."""
    total = Tombstones()
    for segment in segments:
        counts: Tombstones | None = getattr(segment, name)
        if counts is None:
            return None
        total.unstamped += counts.unstamped
        total.due += counts.due
        total.pending += counts.pending
        total.undecoded += counts.undecoded
        total.legacy += counts.legacy
    return total


def _verdict(case: RetentionCase, blockers: list[RetentionBlocker]) -> str:
    if any(hold.isAgainstPolicy for hold in blockers):
        return HELD
    unread = not all(segment.is_read for segment in case.segments)
    return UNKNOWN if unread or any(deletion.deletion == IS_UNKNOWN for deletion in case.deletions) else FREE


def partition_answer(
    case: RetentionCase, blockers: list[RetentionBlocker], summary: PartitionTransactions
) -> PartitionRetention:
    """Return the answer for the partition, which sums up its segments."""
    pairs = list(zip(case.segments, case.deletions))
    now = [segment for segment, each in pairs if each.deletion == NOW]
    held = [segment for segment, each in pairs if each.deletion == IS_HELD]
    stones = _sum(case.segments, "tombstones")
    markers = _sum(case.segments, "markers") if case.compaction is not None else None
    horizons = [segment.nextDeleteHorizonMs for segment in case.segments if segment.nextDeleteHorizonMs is not None]
    checkpoints = {name: each.offset for name, each in case.place.known.checkpoints.items()}
    return of_fact(
        PartitionRetention,
        case,
        case.place.partition,
        summary,
        case.compaction,
        case.drop,
        verdict=_verdict(case, blockers),
        segments=len(case.segments),
        bytes=sum(segment.size for segment in case.segments),
        deletableSegments=len(now),
        deletableBytes=sum(segment.size for segment in now),
        heldSegments=len(held),
        heldBytes=sum(segment.size for segment in held),
        nextDeletionAt=next((each.deletesAt for each in case.deletions if each.deletion in (LATER, IS_HELD)), None),
        stateLostAt=_state_lost_at(case),
        stateLostBefore=summary.logStartOffset or None if _deletes_state(case) else None,
        checkpointed=CheckpointedOffsets.of(checkpoints),
        unknown=[*summary.unknown, *unknown_keys(*map(case.place.known.unstated, CheckpointedOffsets._fields))],
        tombstones=stones.total if stones else None,
        tombstonesDue=stones.due if stones else None,
        tombstonesUnstamped=stones.unstamped if stones else None,
        markers=markers.total if markers else None,
        markersDue=markers.due if markers else None,
        nextDeleteHorizonMs=min(horizons, default=None),
        withoutHorizon=stones.legacy + (markers.legacy if markers else 0) if stones else None,
        kafkaVersion=case.release.number,
        remote=case.remote,
        notes=(*case.notes, *_notes(case)),
        **_configs(case.settings),
    )


def _state_lost_at(case: RetentionCase) -> int | None:
    """Return when the first segment of a topic goes whose records must stay; None if no rule deletes it."""
    first = case.deletions[0]
    if first.deletion not in (NOW, LATER, IS_HELD) or not _deletes_state(case):
        return None
    return case.log.now if first.deletion == NOW else first.deletesAt


def _deletes_state(case: RetentionCase) -> bool:
    """Return True if records must stay in a topic whose cleanup.policy deletes some."""
    if not state_in(case.topic) or not case.settings.deletes:
        return False
    return state_in(case.topic) != CHANGELOG or (_is_of_streams(case) and _is_windowed(case) is False)


def _is_of_streams(case: RetentionCase) -> bool:
    """Return whether Streams created the topic: others may have such a name. Source: InternalTopicConfig."""
    return "message.timestamp.type" in case.settings.own


def _is_windowed(case: RetentionCase) -> bool | None:
    """Return whether a changelog is that of a window or session store: Streams itself sets policies that delete for
    these. None if no record shows it. Source: InternalTopologyBuilder, WindowStoreBuilder (retainDuplicates)."""
    paths = tuple(segment.target.path for segment in case.segments)
    log = CoordinatorLog(case.topic or "", case.partition or 0, case.place.partition.path, paths)
    keys = (record.key for record in log_records(log, AsOf(), ignore) if not record.is_control)
    key = next((name for name in keys if name is not None), None)
    return None if key is None else key_structure(key) in ("streams-window-store", "streams-session")


class LossNote(str):
    """A note that offsets are in no log, or that segments are due because their timestamps are in another unit."""


def _by_time(deletion: Deletion) -> bool:
    return deletion.deletionRule in ("retention.ms", "local.retention.ms")


def _notes(case: RetentionCase) -> Iterator[str]:
    may_lose = state_in(case.topic) == CHANGELOG and case.settings.deletes and _is_of_streams(case)
    if may_lose and _is_windowed(case) is None:
        yield NO_KEY
    if case.settings["remote.storage.enable"] and case.settings["remote.log.copy.disable"]:
        yield COPY_DISABLED
    if case.lacks:
        yield LossNote(title_of("offsets-unreadable", offsets=offsets_text(case.lacks)))
    if any(deletion.blocked == "tierUnknown" for deletion in case.deletions):
        yield NO_TIER
    files = [segment for segment in case.segments if segment.timestamp_from == FILE and segment.size]
    if files and case.settings.deletes:
        yield OF_FILE.format(count=len(files), segments="segment" if len(files) == 1 else "segments")
    pairs = zip(case.segments, case.deletions)
    due = [segment for segment, gone in pairs if gone.deletion == NOW and _by_time(gone)]
    largest = max((segment for segment in due if segment.largest >= 0), key=lambda each: each.largest, default=None)
    if largest is not None and is_long_before(largest.largest, largest.modified):
        unit = other_unit(largest.largest, largest.modified)
        if unit is not None:
            yield LossNote(OTHER_UNIT.format(largest=utc(largest.largest), unit=unit[0], converted=utc(unit[1])))
    uncounted = sum(segment.uncounted for segment in case.segments)
    if uncounted:
        yield UNCOUNTED.format(batches=count_text(uncounted, "batch", "batches"))


def _configs(settings: Settings) -> dict[str, Any]:
    """Return the fields that state the configs, lists as text."""
    return {
        "cleanupPolicy": ",".join(settings["cleanup.policy"]),
        "isConfigKnown": settings.is_known,
        "settings": {
            name: setting._replace(value=",".join(setting.value)) if isinstance(setting.value, tuple) else setting
            for name, setting in settings.values.items()
        },
    }


def leftover(place: PartitionInput, settings: Settings) -> Iterator[RetentionBlocker | PartitionRetention]:
    """Yield the answers for a directory that is no longer a live log, which retention ignores."""
    partition, known = place.partition, place.known
    is_stray = partition.state == "stray"
    files = [segment.log for segment in partition.segments if segment.log is not None]
    size = sum(length(target.path) or 0 for target in files)
    answer = of_fact(
        PartitionRetention,
        known,
        partition,
        None,
        verdict=HELD if is_stray else FREE,
        segments=len(files),
        bytes=size,
        deletableSegments=0 if is_stray else len(files),
        deletableBytes=0 if is_stray else size,
        heldSegments=len(files) if is_stray else 0,
        heldBytes=size if is_stray else 0,
        checkpointed=CheckpointedOffsets.of({}),
        remote=NOTHING_REMOTE,
        notes=(IS_STRAY.title if is_stray else title_of("directory-note", "deleted"),),
        unknown=[
            known.checkpoint_files.why(key, "", partition.state)
            for key in ("logStartOffset", "logEndOffset", *CHECKPOINT_OF, "lastStableOffset")
        ],
        **_configs(settings),
    )
    if is_stray:
        yield RetentionBlocker(
            source=partition.source,
            topic=known.topic,
            partition=known.partition,
            hold=STRAY,
            isAgainstPolicy=True,
            keeps="deletion",
            segments=len(files),
            bytes=size,
            file=partition.path,
            message=IS_STRAY.title,
            fix=IS_STRAY.actions[0],
            problem=IS_STRAY,
        )
    yield answer
