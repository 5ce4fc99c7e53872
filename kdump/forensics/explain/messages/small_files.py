"""Messages about indexes, producer snapshots, leader epochs and partition.metadata."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

VERIFY = "kdump verify {path}"
PLAN = "kdump restart-plan {disk} --topic {topic}"

INVALID_OFFSET = Message(
    name="index-append-out-of-order",
    texts=(
        "Attempt to append an offset {offset} to position {position} no larger than the last offset appended "
        "({endOffset}) to {file}",
        "Attempt to append an offset ({offset}) to position {position} no larger than the last offset appended "
        "({endOffset}) to {file}.",
        "Attempt to append an offset ({offset}) to slot {position} no larger than the last offset appended "
        "({endOffset}) to {file}.",
        "Attempt to append a timestamp ({}) to slot {position} no larger than the last timestamp appended ({}) "
        "to {file}.",
    ),
    exceptions=("InvalidOffsetException",),
    source="OffsetIndex, TimeIndex",
    meaning="The broker wanted to add an index entry whose offset does not follow the last one",
    cause="The offsets in the .log go back, or the index has entries beyond the segment (of another segment, or from "
    "before a truncation)",
    impact="The append or the recovery fails; at startup the broker exits",
    commands=(VERIFY, PLAN, "kdump reindex {path}"),
    action="If verify finds only the index invalid, delete it with the broker stopped. If the offsets in the .log go "
    "back, restore the partition or salvage it",
    never="Do not delete the index of a log whose offsets go back: recovery then empties the segment",
    codes=("index-not-sorted", "index-size-invalid", "offset-not-monotonic"),
    incident="corrupt-index",
    plan=True,
)

SEGMENT_EXISTS = Message(
    name="segment-already-exists",
    texts=(
        "Trying to roll a new log segment for topic partition {partition} with start offset {offset} "
        "=max(provided offset = {}, LEO = {endOffset}) while it already exists. Existing segment is {}",
        "Trying to roll a new log segment with start offset {offset}=max(provided offset = {}, LEO = "
        "{endOffset}) while it already exists and is active with size 0. Size of time index: {}, size of offset "
        "index: {}.",
        "Trying to roll a new log segment with start offset {offset} =max(provided offset = {}, LEO = "
        "{endOffset}) while it already exists and is active with size 0. Size of time index: {}, size of offset "
        "index: {}.",
        "Newly rolled segment file {file} already exists; deleting it first",
    ),
    source="LocalLog (Log before 3.0)",
    meaning="The broker wants to begin a new segment, and a file with its name exists",
    cause="The segment's name does not match its first offset, or a file was left from before a truncation",
    impact="If it reports an error, nothing can be appended to this partition: producers and followers fail",
    commands=(VERIFY, "kdump ls {path} --segments"),
    action="If verify reports segment-name-mismatch, restore the partition from another replica",
    never="Do not rename segments by hand while the broker runs",
    codes=("segment-name-mismatch",),
    plan=True,
)

SNAPSHOT_INVALID = Message(
    name="producer-snapshot-corrupt",
    texts=(
        "Failed to load producer snapshot from '{file}': {reason}",
        "Snapshot contained an unknown file version {version}",
        "Snapshot is corrupt (CRC is no longer valid). Stored crc: {storedCrc}. Computed crc: {computedCrc}",
        "Snapshot failed schema validation: {reason}",
    ),
    exceptions=("CorruptSnapshotException",),
    source="ProducerStateManager",
    meaning="A producer snapshot is damaged; the broker deletes it, and uses an older one and the log",
    cause="The file was not flushed before a crash, or its bytes changed",
    impact="None if an older snapshot is left or the whole log is read. Otherwise the state of producers and open "
    "transactions is lost",
    commands=(VERIFY, "kdump producers {path}", "kdump transactions {path}"),
    action="Compare what producers reports before and after the startup. Nothing else is needed",
    never="Do not delete the other .snapshot files: without any, the broker loses track of open transactions",
    codes=("snapshot-invalid",),
    plan=True,
)

EPOCHS_TRUNCATED = Message(
    name="leader-epochs-truncated",
    texts=(
        "New epoch entry EpochEntry[epoch={leaderEpoch}, startOffset={offset}] caused truncation of conflicting "
        "entries {}. Cache now contains {} entries.",
        "New epoch entry EpochEntry(epoch={leaderEpoch}, startOffset={offset}) caused truncation of conflicting "
        "entries {}. Cache now contains {} entries.",
    ),
    source="LeaderEpochFileCache",
    meaning="A batch has a lower leader epoch, or a lower offset, than entries of leader-epoch-checkpoint; the entries "
    "were removed",
    cause="The file contradicts the log: it is of another time, or a batch was damaged or copied from elsewhere",
    impact="After a change of leader, replicas may truncate too much or too little",
    commands=(VERIFY, "cat {path}/leader-epoch-checkpoint", "kdump diff {path} COPY-OF-ANOTHER-REPLICA"),
    action="Compare the replica with the leader's. If they diverge, let this broker fetch the partition again",
    never="Do not edit leader-epoch-checkpoint",
    codes=("leader-epoch-checkpoint-mismatch", "leader-epoch-decreased"),
    incident="diverged-replicas",
    plan=True,
)

PARTITION_METADATA = Message(
    name="partition-metadata-unreadable",
    texts=(
        "Error while reading partition metadata file {file}",
        "Malformed line in partition metadata file [{file}]: {}",
        "Malformed line in checkpoint file ({file}/partition.metadata): {}",
        'Cannot invoke "java.lang.CharSequence.length()" because "this.text" is null',
        "Invalid topic ID in partition metadata file ({file})",
    ),
    source="PartitionMetadataFile",
    meaning="partition.metadata, which has the topic ID of a partition, cannot be parsed",
    cause="A crash left the file empty or incomplete, or it was edited",
    impact="The log directory goes offline, or the broker exits at startup",
    commands=(VERIFY, "kdump cluster {disk} --show topics", PLAN),
    action="Write the file again, with the topic ID of the cluster: 'version: 0' and 'topic_id: ID', one per line",
    never="Do not delete it: since 3.7 the broker then treats the directory as stray",
    codes=("partition-metadata-invalid",),
    plan=True,
)

CONTROL_RECORD = Message(
    name="transaction-marker-invalid",
    texts=(
        "Invalid control record type for end transaction marker {version}",
        "Invalid version found for control record: {version}. May indicate data corruption",
        "Unexpected aborted transaction version {version} in transaction index {file}, current version is {}",
        "Unexpected aborted transaction version {version} in transaction index {file}, supported version range is {} "
        "to {}",
    ),
    exceptions=("BufferUnderflowException",),
    source="EndTransactionMarker, ControlRecordType, TransactionIndex",
    meaning="A control batch or an entry of a .txnindex has a type, version or length that Kafka does not know",
    cause="The bytes changed, or a tool wrote the batch",
    impact="The broker exits when it reads this while it loads the log",
    commands=(VERIFY, "kdump transactions {path}", PLAN),
    action="Restore the partition from another replica; a .txnindex is rebuilt by recovery of its segment",
    never="Do not remove the marker from the log: its transaction would be open for ever",
    codes=("control-batch-invalid", "txn-index-invalid"),
    plan=True,
)

FUTURE_TIMESTAMP = Message(
    name="segment-kept-by-future-timestamp",
    texts=("{} contains future timestamp(s), making it ineligible to be deleted",),
    source="UnifiedLog",
    releases=f"4.1 to {LAST}",
    meaning="The largest timestamp in a segment is in the future, so retention by time does not delete the segment",
    cause="A producer's clock, or a timestamp in a wrong unit (microseconds or nanoseconds)",
    impact="The segment, and all after it, stay until that time: the disk fills",
    commands=("kdump retention {path}", "kdump inspect {path} --time 2026-01-01T00:00.. --records"),
    action="Find the producer. Set message.timestamp.after.max.ms, and delete up to an offset with "
    "kafka-delete-records.sh",
    codes=("timestamp-in-future",),
    incident="future-timestamp",
)
