"""Loads the KRaft metadata log, which comes before all other logs and is recovered at every startup, also after a clean
shutdown; and checks the files in its directory without which a node does not start.

Source: KafkaRaftLog (4.3; KafkaMetadataLog before): createLog, recoverSnapshots, truncateToLatestSnapshot;
FileQuorumStateStore; RecordsSnapshotReader."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from kdump.format.batch_formats import FORMATS
from kdump.format.kafka_release import KafkaRelease
from kdump.kafka.checkpoint_file import BadLine, topic_id
from kdump.kafka.errors import CorruptRecord
from kdump.kafka.file_log_input_stream import UP_TO_MAGIC, read_batches
from kdump.kafka.file_records import ensure_valid
from kdump.kafka.log_segment import LogSegment
from kdump.kafka.quorum_state import NoQuorumState, check_quorum_state
from kdump.log.live_files import SeenDirectory
from kdump.log.paths import seen_file
from kdump.log.withheld_bytes import withheld_bytes
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import EXIT, PartitionPlan, StartupFailed, Step, failure
from kdump.questions.restart_plan.log_loading.log_loader import LoadParameters, load
from kdump.questions.restart_plan.log_loading.removed_bytes import bytes_of_deleted_segment
from kdump.state.releases import FORMAT_IN_CHECKPOINT, QUORUM_STATE_CLEARED, SNAPSHOTS_REQUIRED

SNAPSHOT = re.compile(r"(\d{20})-(\d{10}).*(\.checkpoint|\.checkpoint\.part|\.checkpoint\.deleted)$")


class SnapshotId(NamedTuple):
    """A metadata snapshot, in Kafka's order: by leader epoch, then by end offset (OffsetAndEpoch.compareTo)."""

    epoch: int
    offset: int
    name: str


def load_metadata_log(plan: PartitionPlan, how: LoadParameters, seen: SeenDirectory) -> None:
    """Load the metadata log from its files as they were `seen`, and fill in its plan. Raises StartupFailed, KafkaError,
    SourceError, OSError."""
    segments = load(plan, how, seen)
    plan.lastEpoch = plan.epochsAfter[-1].epoch if plan.epochsAfter else 0
    topic_id(os.path.join(plan.path, "partition.metadata"), plan.newer, how.release, how.evidence.is_newer)
    newest = _snapshots(plan, seen, how.release)
    if newest is not None:
        _truncate_to_snapshot(plan, newest, segments)
        _readable(plan, os.path.join(plan.path, newest.name), how, is_bootstrap=newest.offset == 0)
    path = os.path.join(plan.path, "quorum-state")
    try:
        check_quorum_state(path, how.release)
    except BadLine as error:
        if not QUORUM_STATE_CLEARED.applies(how.release) or not isinstance(error, NoQuorumState):
            problem = "startup-quorum-state-unreadable"
            stop = failure(EXIT, problem, path, error.exception, error.position, reason=error)
            raise StartupFailed(stop) from error
        plan.steps.append(Step("delete", path, error.position, None, 0, f"{error}: cleared"))


def _truncate_to_snapshot(plan: PartitionPlan, newest: SnapshotId, segments: list[LogSegment]) -> None:
    """Empty the log if the newest snapshot has a newer epoch than the log, or the same epoch and a higher end offset
    (truncateToLatestSnapshot)."""
    end, latest = plan.logEndOffset or 0, plan.lastEpoch
    if newest[:2] <= (latest, end):
        return
    ends = f"the newest snapshot ends at offset {newest.offset}, "
    why = f"after the log end offset {end}" if newest.offset > end else f"in epoch {newest.epoch}, the log in {latest}"
    reason = f"{ends}{why}: the log is emptied, and starts there"
    plan.steps.append(Step("truncate", plan.path, None, newest.offset, 0, reason))
    if newest.offset <= end:
        plan.cuts += [bytes_of_deleted_segment(segment, segment.size, reason) for segment in segments if segment.size]
    plan.logStartOffset = plan.logEndOffset = plan.coveredTo = newest.offset
    plan.epochsAfter, plan.segments, plan.lastEpoch = (), 1, newest.epoch
    plan.notes.append(f"the metadata is loaded from {newest.name}; the rest is fetched from the controllers")


def _snapshots(plan: PartitionPlan, seen: SeenDirectory, release: KafkaRelease) -> SnapshotId | None:
    """Delete metadata snapshots that are unfinished or below the log start offset (recoverSnapshots); return the newest
    one that stays, None if there is none. Raises StartupFailed."""
    start, kept = plan.logStartOffset or 0, list[SnapshotId]()
    for name in seen.files:
        match = SNAPSHOT.match(name)
        if not match:
            continue
        offset = int(match[1])
        if match[3] != ".checkpoint" or offset < start:
            reason = "below the log start offset" if match[3] == ".checkpoint" else "unfinished, or marked for deletion"
            plan.steps.append(
                Step("delete", os.path.join(plan.path, name), None, offset, 0, f"a metadata snapshot, {reason}")
            )
        else:
            kept.append(SnapshotId(int(match[2]), offset, name))
    newest = max(kept, default=None)
    if start > 0 and newest is None and SNAPSHOTS_REQUIRED.applies(release):
        word = "than" if release.line >= (4, 4) else "then"  # in Kafka's text
        exception = f"there must be a snapshot at an offset larger {word} the current log start offset {start}"
        exception = f"IllegalStateException: Inconsistent snapshot state: {exception}"
        raise StartupFailed(
            failure(
                EXIT, "startup-metadata-snapshot-missing", plan.path, exception, offset=start, values={"start": start}
            )
        )
    return newest


def _readable(plan: PartitionPlan, path: str, how: LoadParameters, *, is_bootstrap: bool) -> None:
    """Check a metadata snapshot: it must begin with a control batch, contain other batches, and be valid up to its last
    complete batch, because a node does not recover snapshots. `is_bootstrap`: it ends at offset 0, written by
    `kafka-storage format` with the voters (KIP-853) and, since 4.4, feature levels: a node takes what it finds there,
    and what is missing is added to the plan's warnings. Raises StartupFailed, SourceError."""
    window = how.open(seen_file(path))

    def refuse(exception: str, position: int, case: str = "", reason: object = "") -> StartupFailed:
        code = "startup-metadata-snapshot-unreadable"
        return StartupFailed(failure(EXIT, code, path, exception, position, case=case, reason=reason, size=size))

    try:
        size, control, data, number, end = window.source.size or 0, None, 0, -1, 0
        if 0 < size < UP_TO_MAGIC:  # RecordsIterator.createMemoryRecords
            raise refuse("NullPointerException", 0, "short")
        for number, head in enumerate(read_batches(window, 0, size, whole=True)):
            _known_magic(head.position, head.magic)
            ensure_valid(window, head)
            end = head.end
            is_control = head.header is not None and head.header.isControlBatch
            control = is_control if number == 0 else control
            data += not is_control
            plan.bytesRead += head.size
        if size - end >= UP_TO_MAGIC:  # Kafka checks the magic before the length
            withheld = withheld_bytes(window.source)
            if withheld is not None:
                withheld.require(end, magic=True)
            _known_magic(end, window.view(end, UP_TO_MAGIC)[-1])
    except CorruptRecord as error:
        raise refuse(error.exception, error.position, reason=error) from error
    finally:
        window.source.close()
    if is_bootstrap:
        loses_levels = number < 1 and not plan.logEndOffset and FORMAT_IN_CHECKPOINT.applies(how.release)
        if number < 0 or loses_levels:
            case = "" if number >= 0 else "nothing" if loses_levels else "noVoters"
            plan.problems.append(Problem("startup-format-checkpoint-incomplete", {"file": path}, case=case))
        return
    if not control and how.release.line >= (3, 5):
        exception = "IllegalStateException: First batch is not a control batch with at least one record"
        raise refuse(exception, 0, "noHeader")
    if not data:
        exception = "IllegalStateException: Tried to change broker …, but that broker was not registered."
        raise refuse(exception, size, "onlyHeader")


def _known_magic(position: int, magic: int) -> None:
    """Check a batch's magic as ByteBufferLogInputStream.nextBatchSize does. Raises CorruptRecord."""
    if magic not in FORMATS:
        raise CorruptRecord(position, f"Invalid magic found in record: {magic}")
