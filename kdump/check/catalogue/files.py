"""Family files: what the files around the segments say wrongly."""

from kdump.check.catalogue.code import ERROR, INFO, WARNING, Code

REBUILD = (
    "Stop the broker and delete the segment's .index: the broker then builds its indexes anew when it starts. Or put"
    " those in their place that kdump reindex makes"
)
UNCHECKED = (
    "a clean start does not check it: reads go wrong until the segment's .index is deleted, which makes the broker"
    " rebuild its indexes"
)
ODD = "the broker ignores the odd bytes; what wrote them may have done more"

FILES = (
    Code(
        "index-size-invalid",
        "indexes",
        WARNING,
        "The size of an .index is no multiple of 8.",
        ODD,
        REBUILD,
        "AbstractIndex.createMappedBuffer, OffsetIndex.sanityCheck",
    ),
    Code(
        "index-not-sorted",
        "indexes",
        ERROR,
        "Entries of an .index do not rise.",
        UNCHECKED,
        REBUILD,
        "OffsetIndex.sanityCheck, OffsetIndex.append",
    ),
    Code(
        "index-mismatch",
        "indexes",
        ERROR,
        "An entry of an .index points at no batch, or at one that begins behind its offset, or earlier batches reach "
        "its offset.",
        UNCHECKED,
        REBUILD,
        "OffsetIndex.lookup, LogSegment.translateOffset, FileRecords.searchForOffsetFromPosition",
    ),
    Code(
        "index-beyond-log",
        "indexes",
        ERROR,
        "An entry of an .index points behind the end of its .log.",
        UNCHECKED,
        REBUILD,
        "OffsetIndex.lookup, LogSegment.translateOffset",
    ),
    Code(
        "time-index-size-invalid",
        "indexes",
        WARNING,
        "The size of a .timeindex is no multiple of 12.",
        ODD,
        REBUILD,
        "AbstractIndex.createMappedBuffer, TimeIndex.sanityCheck",
    ),
    Code(
        "time-index-not-sorted",
        "indexes",
        ERROR,
        "Entries of a .timeindex do not rise.",
        UNCHECKED,
        REBUILD,
        "TimeIndex.sanityCheck, TimeIndex.maybeAppend",
    ),
    Code(
        "time-index-mismatch",
        "indexes",
        ERROR,
        "An entry of a .timeindex names an offset whose batch has another maxTimestamp, or an earlier batch has a "
        "larger one.",
        "a search by time begins at the wrong offset, and retention by time may use the wrong timestamp, until the "
        "segment's .index is deleted, which makes the broker rebuild both",
        REBUILD,
        "TimeIndex.lookup, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    ),
    Code(
        "index-padding",
        "indexes",
        ERROR,
        "A zeroed tail of an index, which counts as entries.",
        "a search by time finds nothing in this segment, and retention by time takes it for old, until the "
        "segment's .index is deleted, which makes the broker rebuild both",
        REBUILD,
        "AbstractIndex.trimToValidSize, OffsetIndex.lastEntry",
        "warning in an .index: reads that go through it begin at the start of the segment; info in the last segment of "
        "a log that was not shut down cleanly, in KRaft's, and in what is being deleted: preallocation",
    ),
    Code(
        "txn-index-invalid",
        "indexes",
        ERROR,
        "A .txnindex with a size that is no multiple of 34, a version above 0, or entries whose lastOffset does not "
        "rise or lies below the segment.",
        "the broker finds it corrupt when it loads the segment, and rebuilds it if the log is recovered",
        REBUILD,
        "TransactionIndex.sanityCheck, AbortedTxn",
    ),
    Code(
        "txn-index-mismatch",
        "indexes",
        ERROR,
        "An entry without an ABORT marker of that producer at its lastOffset; one with another firstOffset, or a "
        "higher lastStableOffset, than the log gives; or an ABORT of data still on disk without an entry.",
        "read_committed consumers get records of an aborted transaction, or miss committed ones",
        "Stop the broker and delete the file together with the .index of its segment: both are built anew",
        "TransactionIndex.collectAbortedTxns, LogSegment.updateTxnIndex",
    ),
    Code(
        "index-missing",
        "indexes",
        WARNING,
        "A segment without its .index.",
        "the broker rebuilds it when it starts, which takes time",
        "Nothing has to be done",
        "LogSegment.sanityCheck, LogLoader.loadSegmentFiles",
    ),
    Code(
        "index-orphan",
        "indexes",
        WARNING,
        "An index without its segment.",
        "the broker deletes it when it starts",
        "Nothing has to be done; if the segment was lost, look for it elsewhere",
        "LogLoader.loadSegmentFiles",
    ),
    Code(
        "snapshot-invalid",
        "snapshots",
        ERROR,
        "A snapshot of producer states with a wrong version, length or checksum.",
        "the broker deletes it and rebuilds the state from an older one and the log",
        "Stop the broker and delete this file",
        "ProducerStateManager.readSnapshot, loadFromSnapshot",
    ),
    Code(
        "snapshot-mismatch",
        "snapshots",
        ERROR,
        "A snapshot of producer states says something else of a producer, or of its open transaction, than the "
        "batches below its offset.",
        "the broker believes the snapshot: it refuses sound batches of the producer, or takes duplicates",
        "Stop the broker and delete this file: the state is rebuilt from an older one and the log",
        "ProducerStateManager.loadFromSnapshot, takeSnapshot",
    ),
    Code(
        "checkpoint-invalid",
        "checkpoints",
        ERROR,
        "A checkpoint with a wrong version, count or line. (An empty file is valid.)",
        "the broker takes the log directory offline, or ignores what the checkpoint says",
        "Stop the broker and move the file away. Without recovery-point-offset-checkpoint every log is recovered, "
        "without replication-offset-checkpoint high watermarks start at 0, without cleaner-offset-checkpoint "
        "compaction starts anew, without log-start-offset-checkpoint deleted records come back; "
        "leader-epoch-checkpoint is rebuilt from the segments that are recovered",
        "CheckpointFile.read",
    ),
    Code(
        "checkpoint-beyond-log",
        "checkpoints",
        WARNING,
        "A checkpoint names an offset outside the log.",
        "the broker goes on from the log's own end",
        "Nothing has to be done; but find out what cut the log",
        "LogManager.loadLog, UnifiedLog.updateHighWatermark",
        "error for a log start offset above the log's end; info for partitions that are not here",
    ),
    Code(
        "partition-metadata-invalid",
        "checkpoints",
        ERROR,
        "partition.metadata cannot be read, or names another topic id than the cluster's metadata.",
        "the broker takes the log directory offline, or takes the directory for a stray",
        "Stop the broker; compare the id with another replica's partition.metadata before you write it anew",
        "PartitionMetadataFile.read, LogManager.isStrayReplica",
        "warning for another version, which a broker of 4.3 reads all the same",
    ),
    Code(
        "meta-properties-invalid",
        "checkpoints",
        ERROR,
        "meta.properties cannot be read, or its ids differ from those of the broker's other directories.",
        "the broker exits when it starts",
        "Compare with the meta.properties of the broker's other log directories",
        "MetaPropertiesEnsemble.verify",
    ),
    Code(
        "quorum-state-invalid",
        "checkpoints",
        ERROR,
        "quorum-state cannot be read.",
        "the controller or broker exits when it starts",
        "Stop the node and move the file away: a voter then starts as if it had never voted",
        "FileQuorumStateStore.readElectionState",
    ),
    Code(
        "kraft-snapshot-missing",
        "checkpoints",
        ERROR,
        "The metadata log begins above offset 0 and no snapshot of the metadata is there.",
        "the node cannot load its metadata and exits",
        "Copy the snapshot from another node of the quorum, or let this one fetch everything anew",
        "KafkaRaftLog.recover (KafkaMetadataLog)",
    ),
    Code(
        "kraft-snapshot-invalid",
        "checkpoints",
        ERROR,
        "A snapshot of the metadata that does not begin with its header record or end with its footer record.",
        "what is missing at its end the node does not know: it exits, or goes on with a state that never was",
        "Copy the snapshot from another node of the quorum",
        "RecordsSnapshotReader, KIP-630",
    ),
    Code(
        "partition-duplicate",
        "files",
        ERROR,
        "One partition is live in two log directories of a broker.",
        "the broker does not start ('Duplicate log directories for … are found')",
        "Compare the two; move the older one away",
        "LogManager.loadLog",
    ),
    Code(
        "directory-unknown",
        "files",
        ERROR,
        "A directory in a log directory that is not named topic-partition.",
        "the broker exits when it starts",
        "Move it away; for lost+found, make the log directory a directory below the mount point",
        "LogManager.loadLogs, UnifiedLog.parseTopicPartitionName",
    ),
    Code(
        "directory-stray",
        "files",
        WARNING,
        "A directory that the broker is deleting (-delete), moving (-future), or does not know (-stray).",
        "a -delete directory is deleted when the broker runs, a -future one is filled on, or becomes the partition's if"
        " no other is there, a -stray one stays until somebody deletes it",
        "Save what is needed of it before the broker starts",
        "LogManager.loadLog, addStrayLog",
    ),
    Code(
        "compaction-interrupted",
        "files",
        WARNING,
        "A .cleaned or .swap file, which the cleaner or a split was writing.",
        "the next start deletes .cleaned files, and finishes what .swap files began",
        "Nothing has to be done",
        "LogLoader.removeTempFilesAndCollectSwapFiles",
    ),
    Code(
        "file-unknown",
        "files",
        INFO,
        "A .deleted file, or one whose name Kafka does not know.",
        "a .deleted file is deleted when the broker starts, others are ignored",
        "If it is an error, move the file out of the directory before the broker starts; otherwise nothing has to be "
        "done, and a .deleted segment can be saved until the broker starts",
        "LogLoader.removeTempFilesAndCollectSwapFiles, LogFileUtils.offsetFromFile",
        "error if the broker has to parse the name at startup (.log, an index, .snapshot, .cleaned, .swap) and it "
        "begins with no offset: the broker exits; and for a .log whose offset has not 20 digits: its records are not "
        "served",
    ),
)
