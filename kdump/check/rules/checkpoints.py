"""Family files, checkpoints: offset checkpoints of a log directory, compared with the logs and the partitions in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.format.count_text import first_of
from kdump.log.paths import Target
from kdump.state.other_replicas import who_has_it

CHECKPOINT_INVALID = Code(
    code="checkpoint-invalid",
    family="checkpoints",
    severity=ERROR,
    meaning="A checkpoint has a wrong version, count or line. (An empty file is valid.)",
    consequence=(
        "the broker takes the log directory offline, exits if it has no other, or ignores the contents of the "
        "checkpoint"
    ),
    fix=(
        "Stop the broker and move the file away; for leader-epoch-checkpoint, follow leader-epoch-checkpoint-mismatch "
        "instead. Without recovery-point-offset-checkpoint, startup after an unclean shutdown recovers every log from "
        "its first segment and truncates it at any damage. Without replication-offset-checkpoint, high watermarks "
        "start at the log start offsets and rise again. Without cleaner-offset-checkpoint, compaction starts from the "
        "log start. Without log-start-offset-checkpoint, deleted records that are still in a segment become readable "
        "again"
    ),
    source="CheckpointFile.read, LogManager.loadLogs, LogCleanerManager, UnifiedLog",
)

CLEANER = "cleaner-offset"
CHECKPOINT_BEYOND_LOG = Code(
    code="checkpoint-beyond-log",
    family="checkpoints",
    severity=WARNING,
    meaning="A checkpoint contains an offset outside the log.",
    consequence="the broker continues from the log's own end",
    fix=(
        "Nothing for cleaner-offset-checkpoint alone. Otherwise find out what truncated the log before the broker "
        "starts: the records above its end are lost here, and another replica may have them. If "
        "log-start-offset-checkpoint is above the log end, back the partition's directory up first: at startup the "
        "broker deletes every segment of the log"
    ),
    source=(
        "LogManager.loadLog, UnifiedLog.updateHighWatermark, LogCleanerManager.cleanableOffsets, "
        "LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd"
    ),
    unless="error for a log start offset above the log's end; info for partitions that are not in the directory",
    needs_log_dir=True,
)


def beyond_log(context: PartitionContext, log_end: int) -> Iterator[Finding]:
    """Yield findings for checkpoints of a partition above its log end offset."""
    for name, noted in context.checkpoints.items():
        if noted.offset <= log_end:
            continue
        start = name == "log-start-offset"
        message = f"{name}-checkpoint has offset {noted.offset}, but the log end offset is {log_end}"
        consequence = "at startup the broker deletes every segment of the log: back it up first" if start else None
        if name == "replication-offset":
            gone = f"offsets {log_end}..{noted.offset - 1}, which consumers may have read, are lost here"
            consequence = f"{gone}; the broker continues from the log's own end; {who_has_it(context.replicas)}"
        if name == CLEANER:
            consequence = (
                "the cleaner starts again at the log start offset: it reads the log once more; nothing is lost"
            )
        yield CHECKPOINT_BEYOND_LOG.finding(
            noted.target._replace(topic=context.topic, partition=context.partition),
            message=message,
            position=noted.position,
            size=noted.size,
            offset=noted.offset,
            expected=log_end,
            actual=noted.offset,
            severity=ERROR if start else WARNING,
            consequence=consequence,
        )


def absent_partitions(target: Target, names: Collection[str]) -> Finding:
    """Return the finding for lines of a checkpoint about partitions that are not in its log directory."""
    return CHECKPOINT_BEYOND_LOG.finding(
        target,
        message=f"partitions that are not in this log directory: {first_of(list(names))}",
        severity=INFO,
        consequence="the broker removes these lines when it next writes the file",
    )
