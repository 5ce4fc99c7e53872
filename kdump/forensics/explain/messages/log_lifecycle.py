"""Messages of retention, the log cleaner, and deleted topics."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

RETENTION = "kdump retention {path}"

UNCLEANABLE = Message(
    name="log-cleaner-gave-up-partition",
    texts=(
        "Unexpected exception thrown when cleaning log {}. Marking its partition ({partition}) as uncleanable",
        "Unexpected exception thrown when cleaning log {}.",
    ),
    source="LogCleaner",
    meaning="The log cleaner failed in this partition, and leaves it alone until the broker is restarted",
    cause="The exception below it: usually a batch that fails its checksum or cannot be decoded",
    impact="The partition is not compacted: it grows, and tombstones stay. If it is __consumer_offsets, loading groups "
    "takes longer and longer",
    commands=("kdump verify {path}", f"{RETENTION} --keys"),
    action="Let verify find the batch. Restore the partition from another replica; after the restart the cleaner "
    "resumes",
    never="Do not delete cleaner-offset-checkpoint to get it going: the cleaner meets the same batch again",
    codes=("crc-mismatch", "decompression-failed", "offset-not-monotonic"),
    incident="compaction-stopped",
    general=True,
)

CLEANER_DIED = Message(
    name="log-cleaner-died",
    texts=("Error due to",),
    source="ShutdownableThread (of the log cleaner, fetchers and others)",
    meaning="A thread of the broker has stopped: the log cleaner, a replica fetcher, or the expiration of requests",
    cause="The exception below it, if there is one. Without an exception, the broker is shutting down",
    impact="If it is kafka-log-cleaner-thread: nothing is compacted on this broker until a restart",
    commands=("kdump verify {disk} --crc", f"{RETENTION}"),
    action="Read the exception. For the log cleaner, mend the partition that it names, and restart the broker",
    codes=("crc-mismatch",),
    incident="compaction-stopped",
    general=True,
)

CLEANER_CHECKPOINT = Message(
    name="cleaner-checkpoint-beyond-log",
    texts=(
        "The last checkpoint dirty offset for partition {partition} is {offset}, which is larger than the log "
        "end offset {endOffset}. Resetting to the log start offset {baseOffset}.",
        "Resetting first dirty offset of {partition} to log start offset {baseOffset} since the checkpointed "
        "offset {offset} is invalid.",
    ),
    source="LogCleanerManager",
    meaning="cleaner-offset-checkpoint has an offset for this partition that the log does not have; the cleaner begins "
    "at the log's start",
    cause="The log was truncated or its start moved, or the checkpoint is of another disk or time",
    impact="The cleaner reads the partition once more from its start. No record is lost by that",
    commands=(RETENTION, "kdump verify {path}", "cat {disk}/cleaner-offset-checkpoint"),
    action="Find out why the log is shorter than it was, if the offset is above the log end offset",
    codes=("checkpoint-beyond-log",),
    incident="compaction-stopped",
)

SEGMENT_DELETED = Message(
    name="segment-deleted",
    texts=(
        "Deleting segment LogSegment(baseOffset={baseOffset}, size={size}, lastModifiedTime={}, "
        "largestRecordTimestamp={}) due to {reason}",
        "Deleting segments due to {reason}: {}",
        "Deleting segment files {}",
        "Incremented log start offset to {offset} due to {reason}",
    ),
    source="UnifiedLog, LocalLog",
    meaning="The broker deletes a segment, or moves the log start offset: that is how retention works",
    cause="retention.ms, retention.bytes, kafka-delete-records.sh, a log start offset received from the leader, or a "
    "truncation; the message names the reason",
    impact="Records below the new log start offset are gone. Consumers that had not read them get OffsetOutOfRange",
    commands=(RETENTION, "kdump groups {disk} --topic {topic}"),
    action="Nothing, if the reason is meant. Otherwise raise retention of the topic at once: files are kept for "
    "file.delete.delay.ms (one minute) with the suffix .deleted",
    at_info=True,
)

OFFSET_OUT_OF_RANGE = Message(
    name="offset-out-of-range",
    texts=(
        "fetch failed due to requested offset not available on the broker: Broker: Offset out of range{}",
        "Fetch offset {offset} is out of range for partition TopicPartition(topic='{topic}', partition={number}), "
        "resetting offset",
        "Received request for offset {offset} for partition {partition}, but we only have log segments upto "
        "{endOffset}.",
        "Received request for offset {offset} for partition {partition}, but we only have log segments in the "
        "range {baseOffset} to {endOffset}.",
        "Received request for offset {offset} for leader epoch {leaderEpoch} and partition {partition} which "
        "does not exist in remote tier.",
        "Fetch position FetchPosition{offset={offset}, {} is out of range for partition {partition}, resetting offset",
        "Fetch position FetchPosition{offset={offset}, {} is out of range for partition {partition}, raising "
        "error to the application since no reset policy is configured",
        "Fetch position FetchPosition{offset={offset}, {} is out of range for partition {partition}",
        "Fetch offset {offset} is out of range for partition {partition}, resetting offset",
        "Offsets out of range with no configured reset policy for partitions: {{partition}={offset}}",
        "Offsets out of range with no configured reset policy for partitions: {{}}",
        "Broker: Offset out of range",
    ),
    exceptions=("OffsetOutOfRangeException", "OFFSET_OUT_OF_RANGE", "OffsetOutOfRangeError"),
    source="LocalLog, UnifiedLog, FetchCollector, OffsetFetcher",
    meaning="A consumer or a follower asks for an offset that the log does not have (any more, or yet)",
    cause="Retention or kafka-delete-records.sh removed it; or the log is shorter than it was, after a truncation, an "
    "unclean leader election, or a topic that was created again",
    impact="auto.offset.reset decides: earliest reads everything again, latest skips, none stops",
    commands=(
        "kdump ls {path}",
        "kdump groups {disk} --topic {topic}",
        RETENTION,
        "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --group {group}",
    ),
    action="Compare the offset with the log start and log end offset. Below the start, the consumer was slower than "
    "retention; above the end, records are lost",
    never="Do not change auto.offset.reset to latest to silence it: records are then skipped silently",
    incident="offsets-reset",
    at_info=True,
)

DIRECTORY_DELETED = Message(
    name="partition-deleted",
    texts=(
        "Log for partition {partition} is renamed to {file} and is scheduled for deletion",
        "Deleted log for partition {partition} in {file}.",
    ),
    source="LogManager",
    meaning="The partition was deleted, or moved to another broker: its directory is removed after "
    "file.delete.delay.ms",
    cause="The topic was deleted, or the replica was reassigned",
    impact="All records of this replica are gone after a minute",
    commands=("kdump cluster {disk} --history --topic {topic}", "kdump ls {disk}"),
    action="If the topic was deleted by mistake: stop this broker with kill -9 within a minute, and copy the directory "
    "that ends in -delete",
    never="Do not create the topic again first: brokers that come back then delete or set aside their old copies",
    incident="deleted-topic",
    at_info=True,
)
