"""Family log: contradictions between batches that are valid one by one."""

from kdump.check.catalogue.code import ERROR, INFO, RESTORE, WARNING, Code

OLD = "info if the producer's previous batch is older than producer.id.expiration.ms"
COMPACTED = "info in a compacted log"
APPENDED = (
    "readers do not check sequence numbers; a broker checks them only in produce requests, where it would reject these "
    "with OutOfOrderSequenceException"
)
LOST_OR_FORGOTTEN = (
    "Compare with another replica (kdump diff). What no replica has was lost, or never existed: a broker that has lost "
    "the state of a producer accepts any sequence"
)

LOG = (
    Code(
        "offset-not-monotonic",
        "offsets",
        ERROR,
        "A batch's base offset is not above the previous batch's last offset.",
        "a consumer skips these records, gets offsets twice or stops; recovery that indexes such a batch fails with "
        "InvalidOffsetException and deletes this whole segment and every later one",
        f"Do not let a broker recover this log, and do not delete the .index: back the directory up first. {RESTORE}",
        "UnifiedLog.append, OffsetIndex.append, LogLoader.recoverLog",
    ),
    Code(
        "offset-gap",
        "offsets",
        WARNING,
        "Offsets are missing between two batches or two segments.",
        "consumers skip the gap without an error; the records are not on this disk",
        "Compare with another replica (kdump diff); records that no replica has are lost",
        "LogSegment.read: a gap is legal for every reader",
        "info if the log shows signs of compaction, or if damage that is reported explains the gap",
    ),
    Code(
        "segment-name-mismatch",
        "offsets",
        ERROR,
        "The first base offset is below the one in the file's name, or an offset is more than 2147483647 above it.",
        "the broker looks for the offsets below the name in the previous segment and cannot append to this one; it "
        "splits a segment with offsets too far above when it recovers it",
        "If the file was renamed, and no damage in the .log files is found, stop the broker and name it after the base "
        "offset of its first batch; the broker deletes the indexes of the old name, recovers the segment and rebuilds "
        f"them. If it is not the last segment, delete the last one's .index, too, as for index-mismatch. Otherwise: "
        f"{RESTORE}",
        "LogSegment.ensureOffsetInRange, LocalLog.splitOverflowedSegment, LogLoader.loadSegmentFiles",
    ),
    Code(
        "segment-overlap",
        "offsets",
        ERROR,
        "Two live segments of one directory share offsets.",
        "each shared offset is read from only one of the two segments: if they differ, consumers miss records or get "
        "them twice",
        "Stop the broker, compare the two (kdump inspect --records) and move the .log that does not belong out of the "
        "directory, together with its indexes",
        "LogSegments.floorSegment, LogLoader",
    ),
    Code(
        "leader-epoch-decreased",
        "epochs",
        ERROR,
        "partitionLeaderEpoch decreases from one batch to the next, not counting -1.",
        "recovery assigns the higher epoch at its first batch and removes conflicting entries of "
        "leader-epoch-checkpoint; a follower that truncates by leader epochs (KIP-101) may then truncate at the wrong "
        "offset. Consumers are not affected",
        RESTORE,
        "LeaderEpochFileCache.assign, LogLoader",
    ),
    Code(
        "leader-epoch-missing",
        "epochs",
        INFO,
        "A batch of magic 2 has leader epoch -1: none was set.",
        "brokers and consumers ignore it",
        "Do nothing",
        "RecordBatch.NO_PARTITION_LEADER_EPOCH, LogSegment.recover",
    ),
    Code(
        "leader-epoch-checkpoint-mismatch",
        "epochs",
        WARNING,
        "leader-epoch-checkpoint assigns a batch a different epoch than it has, or its entries are not in ascending "
        "order.",
        "after a leader change, followers truncate according to this checkpoint and may remove too much or too little",
        "Stop the broker, move leader-epoch-checkpoint away and delete the .index of every segment of this partition: "
        "at startup the broker recovers the segments and rebuilds the checkpoint from them. Do so only if kdump verify "
        "finds no damage in the .log files, where recovery would truncate. Without deleting the .index files it stays "
        "empty after a clean shutdown. With remote storage, restore the replica instead: a leader whose checkpoint "
        "lacks old epochs deletes their segments from remote storage",
        "LeaderEpochFileCache, LogSegment.recover, LogLoader.recoverSegment, "
        "RemoteLogManager.cleanupExpiredRemoteLogSegments",
    ),
    Code(
        "timestamp-in-future",
        "timestamps",
        WARNING,
        "A timestamp is more than a day after the file's last change.",
        "time-based retention uses the largest timestamp of a segment: this segment, and every later one, is kept "
        "until retention.ms after that time",
        "Set retention.bytes on the topic, or delete everything below an offset with kafka-delete-records.sh "
        "--bootstrap-server HOST:PORT --offset-json-file FILE. message.timestamp.after.max.ms makes brokers reject "
        "such records (by default an hour from 4.0 on)",
        "UnifiedLog.deleteRetentionMsBreachedSegments, LogValidator.validateTimestamp (KIP-937)",
    ),
    Code(
        "sequence-gap",
        "producers",
        WARNING,
        "Sequence numbers of a producer are missing between two of its batches.",
        f"records of this producer may be missing; {APPENDED}",
        LOST_OR_FORGOTTEN,
        "ProducerAppendInfo.checkSequence",
        f"{OLD}; {COMPACTED}",
    ),
    Code(
        "sequence-duplicate",
        "producers",
        WARNING,
        "A producer's sequence numbers are repeated.",
        "consumers may get these records twice; readers do not check sequence numbers, and a broker appends no batch "
        "that repeats one of a producer's last five",
        "Find out how the log was copied or restored, or whether the broker had lost the producer's state",
        "ProducerAppendInfo.checkSequence, ProducerStateEntry.findDuplicateBatch",
        OLD,
    ),
    Code(
        "sequence-epoch-start",
        "producers",
        WARNING,
        "The first batch of a new producer epoch has a sequence other than 0.",
        f"the first records of that epoch may be missing; {APPENDED}",
        LOST_OR_FORGOTTEN,
        "ProducerAppendInfo.checkSequence",
        f"{OLD}; {COMPACTED}",
    ),
    Code(
        "producer-epoch-decreased",
        "producers",
        WARNING,
        "A producer's batch has a lower producer epoch than an earlier one.",
        "a fenced producer wrote this batch; a broker that loads the log only logs a warning, and rejects such a batch "
        "with InvalidProducerEpochException only in a produce request",
        "Look at the batches of both epochs (kdump inspect --producer-id): usually two instances used one "
        "transactional ID",
        "ProducerAppendInfo.checkProducerEpoch",
        f"{OLD}; {COMPACTED}",
    ),
    Code(
        "transaction-open",
        "transactions",
        INFO,
        "A transaction has no marker by the end of the log.",
        "read_committed consumers wait at offset {offset} until the transaction ends, and the log cleaner stops there",
        "Wait for the producer or for transaction.timeout.ms. If the transaction is still open, run "
        "kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging --topic TOPIC",
        "ProducerStateManager.firstUndecidedOffset",
        "warning if it began more than --transaction-timeout before the newest batch",
    ),
    Code(
        "transaction-hanging",
        "transactions",
        WARNING,
        "The coordinator, whose log is on the same disk, does not have an open transaction as ongoing.",
        "no coordinator will end it: the last stable offset stays at {offset}, where read_committed consumers and the "
        "log cleaner stop",
        "Confirm it on the running cluster (kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging --topic "
        "TOPIC), because this disk may be older than the coordinator's state. Then abort it, which discards its "
        "records for read_committed consumers: kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic TOPIC "
        "--partition PARTITION --start-offset OFFSET. Do not delete snapshots instead",
        "KIP-664, TransactionsCommand",
    ),
    Code(
        "transaction-invalid",
        "transactions",
        ERROR,
        "A producer wrote a non-transactional data batch while its transaction was open.",
        "a broker that replays this batch to rebuild producer state exits with InvalidTxnStateException; at startup it "
        "replays every batch after the latest producer snapshot (usually none after a clean shutdown) and every "
        "segment that it recovers",
        "Look at the producer (kdump inspect --producer-id) and compare with another replica. Do not delete the .index "
        f"or the producer snapshots of this partition, which makes the broker replay the batch. {RESTORE}",
        "ProducerAppendInfo.appendDataBatch, appendEndTxnMarker",
        "warning for a marker with a lower epoch than the producer's",
    ),
)
