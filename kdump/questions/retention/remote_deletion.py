"""What retention deletes in remote storage: the leader of a partition does it, by the configs of the whole log.

Source: RemoteLogManager.RLMExpirationTask of 4.3.1 (cleanupExpiredRemoteLogSegments, buildRetentionSizeData,
RemoteLogRetentionHandler): from the oldest segment on, up to the first that no rule deletes; retention.bytes counts the
segments in remote storage and the local ones that are not there (UnifiedLog.onlyLocalLogSegmentsSize)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, Doc, Shown
from kdump.cluster.remote_log import RemoteSegment
from kdump.format.count_text import count_text, size_text
from kdump.format.iso_time import iso
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.deletion import LOG_START

LATEST = 253_402_300_799_999
"""The last time that can be printed, epoch ms."""


class RemoteRetention(NamedTuple):
    """What remote storage has of a partition or topic, and what is deleted of that. None: not tiered, or unknown."""

    remoteSegments: Annotated[
        int | None, Doc("segments in remote storage, by __remote_log_metadata; null: not tiered, or unknown")
    ] = None
    remoteOffsets: Annotated[int | None, Doc("offsets in them: at most so many records")] = None
    remoteBytes: Annotated[int | None, Doc("their size", BYTES), Shown("remote", 4, blank=0)] = None
    remoteDueSegments: Annotated[
        int | None, Doc("those that retention.ms, retention.bytes or the log start offset delete at the next check")
    ] = None
    remoteDueBytes: Annotated[int | None, Doc("their size", BYTES)] = None
    remoteDueAt: Annotated[int | None, Doc("time from which retention.ms deletes the next", EPOCH_MS)] = None
    remoteMissing: Annotated[int | None, Doc("with --remote, those whose object is not there; else null")] = None


NOTHING_REMOTE = RemoteRetention()


def total_of(parts: Iterable[RemoteRetention]) -> RemoteRetention:
    """Return the sums over those partitions of which it is known."""
    known = [each for each in parts if each.remoteSegments is not None]
    times = [each.remoteDueAt for each in known if each.remoteDueAt is not None]
    if not known:
        return NOTHING_REMOTE
    missing = [each.remoteMissing for each in known if each.remoteMissing is not None]
    sums = (sum(values) for values in zip(*(each[:5] for each in known)))
    return RemoteRetention._make((*sums, min(times, default=None), sum(missing) if missing else None))


def remote_retention(
    segments: Sequence[RemoteSegment],
    only_local: int,
    settings: Settings,
    log_start: int,
    now: int,
    missing: frozenset[str] | None,
) -> tuple[RemoteRetention, str]:
    """Return what remote storage has of a partition, what is deleted of that at `now`, epoch ms, and a note of both,
    empty if there is nothing. `only_local`: bytes of the local segments that are not in remote storage; `log_start`:
    the log start offset; `missing`: IDs of segments without an object, None if unknown."""
    size, offsets, upper = sum(each.size for each in segments), 0, -1
    for segment in segments:
        offsets += max(0, segment.last - max(segment.first - 1, upper))
        upper = max(upper, segment.last)
    lacking = None if missing is None else sum(each.id in missing for each in segments)
    milliseconds, most = (settings[name] if settings.deletes else -1 for name in ("retention.ms", "retention.bytes"))
    breached = max(0, size + only_local - most) if most >= 0 else 0
    due: Counter[str] = Counter()
    later: list[str] = []
    due_at = None
    up_to = freed = 0
    for segment in segments:
        if segment.last < log_start:
            rule = LOG_START
        elif 0 <= milliseconds < now - segment.max_timestamp:
            rule, breached = "retention.ms", max(0, breached - segment.size)
        elif breached >= segment.size and breached > 0:
            rule, breached = "retention.bytes", breached - segment.size
        else:
            if milliseconds >= 0:
                at = segment.max_timestamp + milliseconds + 1
                due_at = at if 0 <= at <= LATEST else None
                later.append("never by retention.ms" if due_at is None else f"from {iso(at)} on (retention.ms)")
            if most >= 0:
                more = size + only_local - freed
                later.append(f"after {most + segment.size - more:,} more bytes (retention.bytes)")
            break
        due[rule] += 1
        freed, up_to = freed + segment.size, segment.last
    made = RemoteRetention(len(segments), offsets, size, due.total(), freed, due_at, lacking)
    if not segments:
        return made, ""
    note = f"remote storage has {count_text(len(segments), 'segment')}, {size_text(size)}, offsets "
    note += f"{segments[0].first}..{upper}"
    if due:
        rules = ", ".join(f"{count} by {rule}" for rule, count in due.items())
        note += f"; its leader deletes {rules} at the next check, {size_text(freed)}, up to offset {up_to}"
    if later:
        note += f"; the {'next' if due else 'first'} is due {' or '.join(later)}"
    return made, note + (f"; the objects of {count_text(lacking, 'segment')} are not there" if lacking else "")
