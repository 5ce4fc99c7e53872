"""Messages of the recovery of logs, which a broker does at startup after an unclean shutdown."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

PLAN = "kdump restart-plan {disk} --topic {topic}"
VERIFY = "kdump verify {path}"

RECOVERING_SEGMENT = Message(
    name="recovering-unflushed-segment",
    texts=(
        "Recovering unflushed segment {baseOffset}. {} recovered for {partition}.",
        "Recovering unflushed segment {baseOffset}",
    ),
    source="LogLoader (Log before 3.0)",
    meaning="The broker re-reads every batch of this segment, and rebuilds its indexes",
    cause="There was no .kafka_cleanshutdown in the log directory, so segments from the recovery point on are not "
    "trusted",
    impact="Startup takes longer. At the first batch that is not valid the log is truncated",
    commands=(PLAN,),
    action="Wait. Run restart-plan before the startup to see what recovery will remove",
    never="Do not kill the broker because it recovers: the next startup begins again",
    incident="flipped-bit-before-recovery",
    at_info=True,
)

INVALID_MESSAGES = Message(
    name="recovery-found-invalid-batch",
    texts=(
        "Found invalid messages in log segment {file} at byte offset {position}.",
        "Found invalid messages in log segment {file} at byte offset {position}: {cause}",
    ),
    source="LogSegment.recover",
    meaning="Recovery found a batch in this segment that is not valid, and truncates the segment there",
    cause="The broker was not shut down cleanly, and the batch fails its checksum or its size cannot be true",
    impact="Everything after this byte is removed from the log, including valid batches and later segments",
    commands=(VERIFY, PLAN, "kdump diff {path} COPY-OF-ANOTHER-REPLICA"),
    action="If a backup or another replica has what was truncated, compare them before the replica becomes the leader. "
    "Bytes at the end of the last segment that were never acknowledged are no loss",
    never="Do not start more brokers of the same cluster after an outage before you have looked at their restart "
    "plans: each may truncate the only good copy",
    codes=("crc-mismatch", "zero-padding", "batch-length-invalid"),
    incident="flipped-bit-before-recovery",
    plan=True,
)

CORRUPTION_TRUNCATED = Message(
    name="recovery-truncated-log",
    texts=("Corruption found in segment {baseOffset}, truncating to offset {offset}",),
    source="LogLoader (Log before 3.0)",
    meaning="Recovery has truncated this log: its log end offset is now the one that is named, and later segments were "
    "deleted",
    cause="The segment has bytes that are not a valid batch: a partial write at the end, or damage further up",
    impact="If records at or above that offset had been acknowledged and no other replica has them, they are lost. "
    "Consumers that were further get OffsetOutOfRange",
    commands=(PLAN, "kdump ls {path}", "kdump groups {disk} --topic {topic}"),
    action="If the partition has other replicas, the leader has the records, and this one fetches them again. If not, "
    "look in file system snapshots and freed blocks (kdump carve)",
    never="Do not make this replica the leader with unclean leader election: the others would truncate to its end",
    codes=("batch-truncated", "crc-mismatch", "junk-bytes"),
    incident="torn-tail",
    plan=True,
)

INVALID_OFFSET_RECOVERY = Message(
    name="recovery-emptied-segment",
    texts=(
        "Found invalid offset during recovery. Deleting the corrupt segment and creating an empty one with "
        "starting offset {offset}",
    ),
    source="LogLoader (Log before 3.0)",
    meaning="Recovery found a batch whose offset is below the segment's base offset, and replaced the segment by an "
    "empty one",
    cause="A base offset is wrong, which no checksum covers, or the file belongs to another segment or partition",
    impact="All records of this segment and of those after it are removed from the log, valid or not",
    commands=(PLAN, "kdump carve DEVICE-OR-IMAGE --out NEW-DIRECTORY"),
    action="Stop the broker, and get the records from another replica or a backup",
    never="Do not write to the file system before you have carved it: the blocks of the deleted segment are free",
    codes=("offset-not-monotonic", "segment-name-mismatch"),
    plan=True,
)

NO_OFFSET_INDEX = Message(
    name="offset-index-missing",
    texts=(
        "Could not find offset index file corresponding to log file {file}, recovering segment and rebuilding "
        "index files...",
    ),
    source="LogLoader (Log before 3.0)",
    meaning="A segment has no .index, so the broker recovers that segment and rebuilds its indexes, even after a clean "
    "shutdown",
    cause="The file was deleted, or left out of a copy or a backup",
    impact="Startup reads the whole segment. If it has damage, it is truncated there. Producer snapshots above it are "
    "deleted",
    commands=(VERIFY, PLAN),
    action="Nothing, if the startup went on. Before the next copy of a directory, take all files of each segment",
    never="Do not delete all .index files to repair something: each segment is then recovered, and may be truncated",
    codes=("index-missing",),
    incident="corrupt-index",
    plan=True,
)

CORRUPT_INDEX = Message(
    name="index-corrupt",
    texts=(
        "Found a corrupted index file corresponding to log file {file} due to {reason}, recovering segment and "
        "rebuilding index files...",
        "Found a corrupted index file corresponding to log file {file} due to {reason}}, recovering segment and "
        "rebuilding index files...",
        "Corrupt index found, index file ({file}) has non-zero size but the last offset is {offset} which is "
        "less than the base offset {baseOffset}.",
        "Corrupt index found, index file {file} has non-zero size but the last offset is {offset} which is less "
        "than the base offset {baseOffset}",
        "Corrupt time index found, time index file ({file}) has non-zero size but the last timestamp is {} which "
        "is less than the first timestamp {}",
        "Corrupt time index found, time index file ({file}) has non-zero size but the last offset is {offset} "
        "which is less than the first offset {baseOffset}",
        "Index file {file} is corrupt, found {size} bytes which is neither positive nor a multiple of {limit}.",
        "Index file {file} is corrupt, found {size} bytes which is neither positive nor a multiple of {limit}",
        "Time index file {file} is corrupt, found {size} bytes which is not positive or not a multiple of {limit}",
    ),
    exceptions=("CorruptIndexException",),
    source="LogLoader, OffsetIndex, TimeIndex, TransactionIndex",
    meaning="An index contradicts itself, so the broker recovers its segment and rebuilds the indexes",
    cause="The index was not flushed before a crash, or was copied while the broker wrote it",
    impact="The segment is re-read, and truncated where it is damaged. No record is lost if the .log is intact",
    commands=(VERIFY, "kdump reindex {path}"),
    action="Nothing, if the startup went on. With the broker stopped, reindex writes the indexes that it would build",
    never="Do not delete the .log next to the index",
    codes=("index-not-sorted", "index-size-invalid", "time-index-not-sorted", "txn-index-invalid"),
    incident="corrupt-index",
    plan=True,
)

ORPHANED_INDEX = Message(
    name="index-orphaned",
    texts=("Found an orphaned index file {file}, with no corresponding log file.",),
    source="LogLoader (Log before 3.0)",
    meaning="There is an index without its segment; the broker deletes it",
    cause="The segment's .log was deleted by hand, or a deletion was interrupted by a crash",
    impact="None for the index. If the .log was there before, its records are gone: look for an offset gap",
    commands=(VERIFY, "kdump ls {path} --segments"),
    action="Nothing, if no segment is missing. Otherwise restore the segment or the partition",
    codes=("index-orphan", "offset-gap"),
    plan=True,
)

DELETING_ALL = Message(
    name="log-end-below-log-start",
    texts=(
        "Deleting all segments because logEndOffset ({endOffset}) is smaller than logStartOffset {offset}. This "
        "could happen if segment files were deleted from the file system.",
    ),
    source="LogLoader (Log before 3.0)",
    meaning="The log ends below its own log start offset, so the broker deletes all of it and starts again there",
    cause="Segments were deleted by hand, or log-start-offset-checkpoint is of another disk or time",
    impact="All records of this replica are deleted, valid or not",
    commands=("kdump ls {path} --segments", "cat {disk}/log-start-offset-checkpoint", PLAN),
    action="Stop the broker before its deleted files are swept (file.delete.delay.ms, one minute). Restore the "
    "directory, and correct log-start-offset-checkpoint",
    never="Do not delete segments by hand to free space: use retention or kafka-delete-records.sh",
    codes=("checkpoint-beyond-log",),
    incident="disk-full",
    plan=True,
)

SEGMENT_TOO_LARGE = Message(
    name="segment-above-2-gib",
    texts=("The size of segment {file} ({size}) is larger than the maximum allowed segment size of {limit}",),
    source="FileRecords",
    meaning="A segment is larger than 2 GiB, which no broker can open",
    cause="Something appended to the file: a copy or restore that concatenated files, or a tool",
    impact="The broker exits at startup",
    commands=(VERIFY, "kdump salvage {path} --out NEW-DIRECTORY"),
    action="Restore the partition from another replica, or salvage it into segments of the usual size",
    never="Do not truncate the file to 2 GiB: that may split a batch, and hides what was appended",
    codes=("segment-too-large",),
    plan=True,
)

LOADING_FAILED = Message(
    name="log-loading-failed",
    texts=(
        "There was an error in one of the threads during logs loading: {cause}",
        "There was an error in one of the threads during logs loading",
        "Error while loading log dir {directory}",
        "Error while loading logs in {directory}",
    ),
    source="LogManager",
    meaning="A log could not be loaded at startup",
    cause="The exception in this line, or below it, of one partition directory; since 3.x, with an I/O error the log "
    "directory goes offline, with any other the broker exits",
    impact="The broker does not start, or starts without this log directory",
    commands=("kdump restart-plan {disk}", "kdump verify {path}"),
    action="restart-plan names the file that stops the startup, and all others that would stop it after that",
    never="Do not move directories away one by one until it starts: each may be the only copy of its partition",
    incident="record-size-0",
    plan=True,
    general=True,
)
