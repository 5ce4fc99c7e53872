"""The JSON objects of `kdump restart-plan`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key

_STEPS = Key(
    "steps",
    "array",
    "",
    "of {kind, file, position, offset, size, reason}: recover (a segment is re-read, its indexes rebuilt), scan (read "
    "for its producers), truncate, delete, sweep (a file that was to go), rename, rebuild, split, write, create; "
    "position and offset are null where they say nothing",
)
_STOPS = Key(
    "stops",
    "array",
    "",
    "of {kind, file, position, offset, message, exception, remedy}: what ends the broker (exit) or fails the log "
    "directory (offline), what its log will show, and what to do",
)
_UNREAD = Key("unread", "array", "", "what could not be read, and why: the plan may be wrong there")

RESTART_PARTITION_KEYS = (
    Key("topic", "string", "", "of the directory's name"),
    Key("partition", "number", "", "of the topic"),
    Key("path", "string", "", "the partition's directory"),
    Key("source", "string", "", "the log directory"),
    Key("state", "string", "", 'empty for a live one, else "delete", "future" or "stray", by the directory\'s name'),
    Key(
        "clean", "boolean", "", "whether the last shutdown was clean: no recovery. The metadata log is always recovered"
    ),
    Key(
        "recoveryPoint",
        "number or null",
        "offset",
        "all below it is flushed; null: the checkpoint does not have it, and all is re-read",
    ),
    Key("highWatermark", "number or null", "offset", "by replication-offset-checkpoint"),
    Key("logStartOffset", "number or null", "offset", "after the start; null: it does not get so far"),
    Key("logEndOffset", "number or null", "offset", "after the start; null: it does not get so far"),
    Key(
        "logEndIfRecovered",
        "number or null",
        "offset",
        "where bytes stay behind the log's end: where it would end if .kafka_cleanshutdown were not there",
    ),
    Key("segments", "number", "", "after the start"),
    Key("recovered", "number", "", "segments that are re-read and checked"),
    Key("bytesRead", "number", "bytes", "of segments that the start reads, for recovery and for producers"),
    Key("bytesCut", "number", "bytes", "that are no longer part of the log"),
    Key("loses", "boolean", "", "whether records go that were whole, or that consumers may have read"),
    Key("acknowledged", "number", "offsets", "below the high watermark that the log no longer reaches"),
    _STEPS,
    Key(
        "cuts",
        "array",
        "",
        "of {kind, file, position, size, offset, lastOffset, batches, records, soundBytes, damagedBatches, reason}: "
        "kind is truncated, deleted (with its segment) or hidden (it stays in the file, out of the log); batches, "
        "records and soundBytes are sound (of deleted segments by headers alone), and go for what is before; offsets "
        "are what those and damaged ones claim; records is null where compressed messages of magic 0 and 1 do not "
        "say it",
    ),
    _STOPS,
    Key("epochsBefore", "array or null", "", "of {epoch, startOffset}: leader-epoch-checkpoint; null without it"),
    Key("epochsAfter", "array or null", "", "the same after the start; null: it does not get so far"),
    Key("stray", "string", "", "why the broker takes the directory for a stray, and renames it; empty: it does not"),
    Key("remedy", "string", "", "what keeps it from being a stray, where it should not be one"),
    Key("copyFirst", "array", "", "paths to copy away before the start"),
    Key("notes", "array", "", "what else is to be said"),
    _UNREAD,
)

RESTART_DIRECTORY_KEYS = (
    Key("path", "string", "", "the directory, of log.dirs or metadata.log.dir"),
    Key("logDir", "boolean", "", "whether log.dirs names it, as far as its files tell"),
    Key("metadataLogDir", "boolean", "", "whether the node keeps its metadata log there"),
    Key("failed", "string", "", "why it cannot be listed; empty if it can"),
    Key(
        "clean",
        "boolean or null",
        "",
        "whether it was shut down cleanly; null: a controller's, or metadata.log.dir, which keep no mark; or it failed",
    ),
    Key("clusterId", "string or null", "", "of meta.properties"),
    Key("nodeId", "number or null", "", "of meta.properties"),
    Key("directoryId", "string or null", "", "of meta.properties"),
    _STEPS,
    _STOPS,
    Key("warnings", "array", "", "what the start gets over, and a person should know before"),
    _UNREAD,
)

RESTART_PLAN_KEYS = (
    Key(
        "verdict",
        "string",
        "",
        "clean (it starts, with no recovery), recovery (it starts, and recovers logs), degraded (without a log "
        "directory), stopped (it does not start)",
    ),
    Key("loses", "boolean", "", "whether records are lost, hidden or set aside"),
    Key("partitions", "number", "", "that were looked at"),
    Key("recoveredPartitions", "number", "", "of them, with segments that are re-read"),
    Key("recovered", "number", "", "segments that are re-read"),
    Key("bytesRead", "number", "bytes", "of segments that the start reads"),
    Key("bytesCut", "number", "bytes", "that are no longer part of a log after it"),
    Key("losing", "number", "", "partitions that lose records"),
    Key(
        "strays", "number", "", "partitions that are set aside: their directories get another name, and are not served"
    ),
    _STOPS,
    Key("offline", "array", "", "log directories that go offline"),
    Key(
        "withoutMetadata",
        "boolean",
        "",
        "whether no directory has a metadata log: if the controllers have none either, all partitions are set aside",
    ),
    Key("copyFirst", "array", "", "paths to copy away before the start"),
    Key("assumptions", "array", "", "what no disk says, and was taken for granted"),
    _UNREAD,
    Key("seconds", "number", "s", "how long it took"),
)

RESTART_TYPES: dict[str, tuple[Key, ...]] = {
    "restartPartition": RESTART_PARTITION_KEYS,
    "restartDirectory": RESTART_DIRECTORY_KEYS,
    "restartPlan": RESTART_PLAN_KEYS,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
