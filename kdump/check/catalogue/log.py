"""Family log: what batches that are sound one by one say wrongly together."""

from kdump.check.catalogue.code import ERROR, INFO, RESTORE, WARNING, Code

OLD = "info where the producer's batch before is older than producer.id.expiration.ms"
COMPACTED = "info in a compacted log"
APPENDED = (
    "nothing that reads the log minds: the broker checks it only of what a producer sends, which it refuses with "
)

LOG = (
    Code(
        "offset-not-monotonic",
        "offsets",
        ERROR,
        "A base offset at or below the last offset before it.",
        "a consumer gets these offsets twice, or stops; a broker that indexes them fails with InvalidOffsetException",
        RESTORE,
        "LogValidator, UnifiedLog.append, OffsetIndex.append",
    ),
    Code(
        "offset-gap",
        "offsets",
        WARNING,
        "Offsets are missing between two batches or two segments.",
        "consumers step over the gap; the records are not on this disk",
        "Compare with another replica (kdump inspect at these offsets); records that no replica has are lost",
        "LogSegment.read: a gap is legal for every reader",
        "info where the log shows signs of compaction, and where damage that is reported lies in the gap",
    ),
    Code(
        "segment-name-mismatch",
        "offsets",
        ERROR,
        "The first base offset lies below the one in the file's name, or an offset more than 2147483647 above it.",
        "the broker looks for these offsets in another segment, and cannot index them",
        "Give the file the name that its first batch asks for, if it was renamed; else restore the replica",
        "LogSegment.ensureOffsetInRange, LocalLog.logFile",
    ),
    Code(
        "segment-overlap",
        "offsets",
        ERROR,
        "Two live segments of one directory share offsets.",
        "the offsets of the one are never read from the other: consumers miss, or get twice, what differs",
        "Compare the two; move the one away that does not belong while the broker is down",
        "LogSegments.floorSegment, LogLoader",
    ),
    Code(
        "leader-epoch-decreased",
        "epochs",
        ERROR,
        "partitionLeaderEpoch falls from one batch to the next (-1 aside).",
        "a broker that recovers this log drops entries of leader-epoch-checkpoint for it; a follower that truncates by "
        "leader epochs (KIP-101) then cuts at the wrong offset",
        RESTORE,
        "LeaderEpochFileCache.assign, LogLoader",
    ),
    Code(
        "leader-epoch-missing",
        "epochs",
        INFO,
        "A batch of magic 2 without a leader epoch, as the cleaner leaves when it rewrites magic 0 and 1.",
        "nothing follows",
        "Nothing has to be done",
        "RecordBatch.NO_PARTITION_LEADER_EPOCH, Cleaner",
    ),
    Code(
        "leader-epoch-checkpoint-mismatch",
        "epochs",
        WARNING,
        "leader-epoch-checkpoint gives a batch another epoch than it has, or its entries do not rise.",
        "after a change of leader, followers truncate by the checkpoint's word and may cut too much or too little",
        "Stop the broker and move leader-epoch-checkpoint away: it is rebuilt from the segments that are recovered",
        "LeaderEpochFileCache, LeaderEpochCheckpointFile",
    ),
    Code(
        "timestamp-in-future",
        "timestamps",
        WARNING,
        "A timestamp more than a day later than the file's last change.",
        "retention by time counts from the largest timestamp of a segment: this one is kept until then",
        "Set retention.bytes, or use kafka-delete-records.sh; message.timestamp.after.max.ms refuses such records",
        "UnifiedLog.deleteRetentionMsBreachedSegments, LogValidator.validateTimestamp (KIP-937)",
    ),
    Code(
        "sequence-gap",
        "producers",
        WARNING,
        "Sequence numbers of a producer are missing between two of its batches.",
        f"records of this producer are missing; {APPENDED}OutOfOrderSequenceException",
        "Compare with another replica; what it has not either was lost",
        "ProducerAppendInfo.checkSequence",
        f"{OLD}; {COMPACTED}",
    ),
    Code(
        "sequence-duplicate",
        "producers",
        WARNING,
        "Sequence numbers of a producer come again.",
        f"consumers may get these records twice; {APPENDED}DuplicateSequenceException",
        "Find out how the log was copied or restored: a broker never appends a batch twice",
        "ProducerAppendInfo.checkSequence, ProducerStateEntry.findDuplicateBatch",
        OLD,
    ),
    Code(
        "sequence-epoch-start",
        "producers",
        WARNING,
        "The first batch of a new producer epoch has a sequence other than 0.",
        f"the first records of that epoch are missing; {APPENDED}OutOfOrderSequenceException",
        "Compare with another replica; what it has not either was lost",
        "ProducerAppendInfo.checkSequence",
        f"{OLD}; {COMPACTED}",
    ),
    Code(
        "producer-epoch-decreased",
        "producers",
        WARNING,
        "A batch of a producer has an older epoch than one before it.",
        "a fenced producer has written; a broker that loads the log says so and goes on, and refuses such a batch with "
        "InvalidProducerEpochException only when a producer sends it",
        "Look at both producers (kdump inspect --producer-id): two instances shared one transactional id",
        "ProducerAppendInfo.checkProducerEpoch",
        f"{OLD}; {COMPACTED}",
    ),
    Code(
        "transaction-open",
        "transactions",
        INFO,
        "A transaction without a marker by the end of the log.",
        "read_committed consumers wait at offset {offset} until it ends",
        "Wait for its producer or for transaction.timeout.ms; if neither ends it, kafka-transactions.sh find-hanging",
        "ProducerStateManager.firstUndecidedOffset",
        "warning where it began more than --transaction-timeout before the newest batch",
    ),
    Code(
        "transaction-hanging",
        "transactions",
        WARNING,
        "An open transaction that the coordinator, whose log is on the same disk, does not know as ongoing.",
        "nobody will end it: the last stable offset stays at {offset}, read_committed consumers and the cleaner are "
        "stuck there",
        "kafka-transactions.sh abort --topic TOPIC --partition N --start-offset OFFSET",
        "KIP-664, TransactionsCommand",
    ),
    Code(
        "transaction-invalid",
        "transactions",
        ERROR,
        "A non-transactional data batch of a producer whose transaction is open.",
        "a broker that rebuilds its producer state from this batch, as the end of the log is after every start, exits "
        "with InvalidTxnStateException",
        "Look at the producer (kdump inspect --producer-id)",
        "ProducerAppendInfo.appendDataBatch, appendEndTxnMarker",
        "warning for a marker with an older epoch than the producer's",
    ),
)
