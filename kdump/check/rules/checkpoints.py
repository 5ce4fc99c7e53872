"""Family files, checkpoints: offset checkpoints of a log directory, compared with the logs and the partitions in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.format.count_text import first_of
from kdump.log.paths import Target
from kdump.state.other_replicas import who_has_it

CHECKPOINT_INVALID = Code("checkpoint-invalid")

CLEANER = "cleaner-offset"
CHECKPOINT_BEYOND_LOG = Code("checkpoint-beyond-log")


def beyond_log(context: PartitionContext, log_end: int) -> Iterator[Finding]:
    """Yield findings for checkpoints of a partition above its log end offset."""
    cases = {"log-start-offset": "logStart", "replication-offset": "highWatermark", CLEANER: "cleaner"}
    for name, noted in context.checkpoints.items():
        if noted.offset <= log_end:
            continue
        start = name == "log-start-offset"
        message = f"{name}-checkpoint has offset {noted.offset}, but the log end offset is {log_end}"
        yield CHECKPOINT_BEYOND_LOG.finding(
            noted.target._replace(topic=context.topic, partition=context.partition),
            message=message,
            position=noted.position,
            size=noted.size,
            offset=noted.offset,
            expected=log_end,
            actual=noted.offset,
            severity=ERROR if start else WARNING,
            case=cases.get(name, ""),
            values={"first": log_end, "last": noted.offset - 1, "replicas": who_has_it(context.replicas)},
        )


def absent_partitions(target: Target, names: Collection[str]) -> Finding:
    """Return the finding for lines of a checkpoint about partitions that are not in its log directory."""
    return CHECKPOINT_BEYOND_LOG.finding(
        target,
        message=f"partitions that are not in this log directory: {first_of(list(names))}",
        severity=INFO,
        case="absent",
    )
