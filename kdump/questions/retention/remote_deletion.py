"""What retention deletes in remote storage: the leader of a partition does it, by the configs of the whole log.

Source: RemoteLogManager.RLMExpirationTask of 4.3.1 (cleanupExpiredRemoteLogSegments, buildRetentionSizeData,
RemoteLogRetentionHandler): from the oldest segment on, up to the first that no rule deletes; retention.bytes counts the
segments in remote storage and the local ones that are not there (UnifiedLog.onlyLocalLogSegmentsSize)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kdump.cluster.remote_log import RemoteSegment
from kdump.format.count_text import count_text, size_text
from kdump.format.iso_time import iso
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.deletion import LOG_START

LATEST = 253_402_300_799_999
"""The last time that can be printed, epoch ms."""


def remote_notes(
    segments: Sequence[RemoteSegment], only_local: int, settings: Settings, log_start: int, now: int
) -> Iterator[str]:
    """Yield what remote storage has of a partition, and what is deleted of that at `now`, epoch ms. `only_local`: bytes
    of the local segments that are not in remote storage; `log_start`: the log start offset."""
    if not segments:
        return
    size, milliseconds, most = (
        sum(each.size for each in segments),
        settings["retention.ms"],
        settings["retention.bytes"],
    )
    has = f"remote storage has {count_text(len(segments), 'segment')}, {size_text(size)}, offsets "
    has += f"{segments[0].first}..{max(each.last for each in segments)}"
    breached = max(0, size + only_local - most) if most >= 0 else 0
    due: Counter[str] = Counter()
    later: list[str] = []
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
                later.append(f"from {iso(at)} on (retention.ms)" if 0 <= at <= LATEST else "never by retention.ms")
            if most >= 0:
                more = size + only_local - freed
                later.append(f"after {most + segment.size - more:,} more bytes (retention.bytes)")
            break
        due[rule] += 1
        freed, up_to = freed + segment.size, segment.last
    if due:
        rules = ", ".join(f"{count} by {rule}" for rule, count in due.items())
        has += f"; its leader deletes {rules} at the next check, {size_text(freed)}, up to offset {up_to}"
    if later:
        has += f"; the {'next' if due else 'first'} is due {' or '.join(later)}"
    yield has
