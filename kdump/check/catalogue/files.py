"""Family files: errors in the files next to the segments."""

from kdump.check.catalogue.code import ERROR, INFO, WARNING, Code

# LogLoader.recoverSegment truncates the .log at damage (docs/remedy-trials.json: damage-index-removed) and deletes
# every producer snapshot above it. The snapshot that it takes is removed as stray if the next segment does not start
# there, and a clean startup without snapshots skips the log (gap-index-removed, gap-both-removed).
REBUILD = (
    "Stop the broker and replace the segment's indexes with the files that kdump reindex writes. Or, if kdump verify "
    "finds no damage in the .log files, delete the .index of this segment and of the log's last segment: at startup "
    "the broker recovers both and rebuilds their .index, .timeindex and .txnindex. In a damaged .log, recovery would "
    "truncate the segment at the damage; without the last segment's recovery, an offset gap after this segment would "
    "make the broker forget its producers and open transactions"
)
UNCHECKED = "reads that use this index fail or return wrong results; a clean startup does not check it"
IGNORED = "the broker ignores the extra bytes; whatever wrote them may have caused other damage"
PUT_BACK = (
    "Before the broker starts, put the indexes in place that kdump reindex writes: then it recovers nothing. Otherwise "
    "back the .log up first if kdump verify finds damage in it"
)
# UnifiedLog.rebuildProducerState: with no snapshot left after a clean shutdown, it skips the log. Trials:
# snapshot-removed, snapshot-emptied, snapshot-left.
EMPTY_IT = (
    "stop the broker and replace it with an empty file of the same name: the broker rejects that file, deletes it, and "
    "rebuilds the state from an older snapshot and the log. Do not delete it: if no snapshot is left after a clean "
    "shutdown, the broker does not read the log, and forgets its producers and open transactions"
)

FILES = (
    Code(
        "index-size-invalid",
        "indexes",
        WARNING,
        "The size of an .index is not a multiple of 8.",
        IGNORED,
        REBUILD,
        "AbstractIndex.createMappedBuffer, OffsetIndex.sanityCheck",
    ),
    Code(
        "index-not-sorted",
        "indexes",
        ERROR,
        "The entries of an .index are not in ascending order.",
        UNCHECKED,
        REBUILD,
        "OffsetIndex.sanityCheck, OffsetIndex.append",
    ),
    Code(
        "index-mismatch",
        "indexes",
        ERROR,
        "An .index entry's position is not the start of a batch, the batch there starts above the entry's offset, or "
        "an earlier batch reaches that offset.",
        UNCHECKED,
        REBUILD,
        "OffsetIndex.lookup, LogSegment.translateOffset, FileRecords.searchForOffsetFromPosition",
    ),
    Code(
        "index-beyond-log",
        "indexes",
        ERROR,
        "An .index entry points past the end of its .log.",
        "if it is the last entry of the last segment, the broker computes the log end offset from it and may assign "
        "offsets a second time; " + UNCHECKED,
        REBUILD,
        "OffsetIndex.lookup, LogSegment.translateOffset, LogSegment.readNextOffset",
    ),
    Code(
        "time-index-size-invalid",
        "indexes",
        WARNING,
        "The size of a .timeindex is not a multiple of 12.",
        IGNORED,
        REBUILD,
        "AbstractIndex.createMappedBuffer, TimeIndex.sanityCheck",
    ),
    Code(
        "time-index-not-sorted",
        "indexes",
        ERROR,
        "The entries of a .timeindex are not in ascending order.",
        "lookups by timestamp return wrong offsets, and time-based retention may use the wrong timestamp; a clean "
        "startup does not check it",
        REBUILD,
        "TimeIndex.sanityCheck, TimeIndex.maybeAppend",
    ),
    Code(
        "time-index-mismatch",
        "indexes",
        ERROR,
        "A .timeindex entry names an offset whose batch has a different maxTimestamp, or an earlier batch has a larger "
        "one.",
        "lookups by timestamp may return wrong offsets; time-based retention uses the last entry, and deletes the "
        "segment early if that timestamp is too old",
        REBUILD,
        "TimeIndex.lookup, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    ),
    Code(
        "index-padding",
        "indexes",
        ERROR,
        "An index ends with zeros, which count as entries.",
        "lookups by timestamp find nothing in this segment, and time-based retention uses timestamp 0: with "
        "retention.ms set and cleanup.policy=delete, the broker deletes the segment soon after startup",
        f"Before the broker starts: {REBUILD[0].lower()}{REBUILD[1:]}",
        "AbstractIndex.trimToValidSize, TimeIndex.lastEntry, LogSegment.largestTimestamp",
        "warning in an .index: reads that use it start at the beginning of the segment; info, as preallocation, in the "
        "last segment after an unclean shutdown, in the metadata log, and in directories that are being deleted",
    ),
    Code(
        "txn-index-invalid",
        "indexes",
        ERROR,
        "The size of a .txnindex is not a multiple of 34, an entry's version is above 0, or the entries' lastOffset is "
        "not ascending or is below the segment.",
        "if an entry's lastOffset is below the segment, the broker recovers the segment at startup; if an entry's "
        "version is 256 to 32767, it exits; anything else it does not detect, and read_committed consumers may read "
        "records of aborted transactions",
        REBUILD,
        "TransactionIndex.sanityCheck, AbortedTxn.version (which reads one byte), LogLoader.loadSegmentFiles",
    ),
    Code(
        "txn-index-mismatch",
        "indexes",
        ERROR,
        "An entry has no ABORT marker of that producer at its lastOffset, or a different firstOffset or a higher "
        "lastStableOffset than the log gives; or an ABORT marker of data still on disk has no entry.",
        "read_committed consumers read records of an aborted transaction, or miss committed ones",
        REBUILD,
        "TransactionIndex.collectAbortedTxns, LogSegment.updateTxnIndex",
    ),
    Code(
        "index-missing",
        "indexes",
        WARNING,
        "A segment has no .index.",
        "at startup the broker recovers the segment and rebuilds its indexes, which takes time and truncates the "
        "segment at any damage in the .log; if offsets are missing after the segment, the broker also forgets its "
        "producers and open transactions",
        PUT_BACK,
        "LogSegment.sanityCheck, LogLoader.loadSegmentFiles",
    ),
    Code(
        "index-orphan",
        "indexes",
        WARNING,
        "An index has no segment.",
        "the broker deletes it at startup",
        "If the .log was lost, look for it on another replica or in a backup; otherwise do nothing",
        "LogLoader.loadSegmentFiles",
    ),
    Code(
        "snapshot-invalid",
        "snapshots",
        ERROR,
        "A producer snapshot has a wrong version, length or checksum.",
        "when the broker loads it, it deletes it and rebuilds the state from an older snapshot and the log",
        "Leave the file in place. Do not delete it: if no snapshot is left after a clean shutdown, the broker does not "
        "read the log, and forgets its producers and open transactions",
        "ProducerStateManager.readSnapshot, loadFromSnapshot, UnifiedLog.rebuildProducerState",
    ),
    Code(
        "snapshot-mismatch",
        "snapshots",
        ERROR,
        "A producer snapshot disagrees with the batches below its offset about a producer or its open transaction.",
        "the broker uses the snapshot: it rejects valid batches from the producer, accepts duplicates, or computes a "
        "wrong last stable offset",
        f"If this is the latest snapshot, {EMPTY_IT}",
        "ProducerStateManager.loadFromSnapshot, takeSnapshot, UnifiedLog.rebuildProducerState",
    ),
    Code(
        "checkpoint-invalid",
        "checkpoints",
        ERROR,
        "A checkpoint has a wrong version, count or line. (An empty file is valid.)",
        "the broker takes the log directory offline, exits if it has no other, or ignores the contents of the "
        "checkpoint",
        "Stop the broker and move the file away; for leader-epoch-checkpoint, follow leader-epoch-checkpoint-mismatch "
        "instead. Without recovery-point-offset-checkpoint, startup after an unclean shutdown recovers every log from "
        "its first segment and truncates it at any damage. Without replication-offset-checkpoint, high watermarks "
        "start at the log start offsets and rise again. Without cleaner-offset-checkpoint, compaction starts from the "
        "log start. Without log-start-offset-checkpoint, deleted records that are still in a segment become readable "
        "again",
        "CheckpointFile.read, LogManager.loadLogs, LogCleanerManager, UnifiedLog",
    ),
    Code(
        "checkpoint-beyond-log",
        "checkpoints",
        WARNING,
        "A checkpoint contains an offset outside the log.",
        "the broker continues from the log's own end",
        "Find out what truncated the log before the broker starts: the records above its end are lost here, and "
        "another replica may have them. If log-start-offset-checkpoint is above the log end, back the partition's "
        "directory up first: at startup the broker deletes every segment of the log",
        "LogManager.loadLog, UnifiedLog.updateHighWatermark, LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd",
        "error for a log start offset above the log's end; info for partitions that are not in the directory",
    ),
    Code(
        "partition-missing",
        "checkpoints",
        WARNING,
        "A partition has no directory in the log directory whose checkpoints name it; the cluster's metadata, if it is "
        "on the disk, assigns it to this log directory.",
        "at startup the broker creates the partition again with an empty log and without an error: a follower fetches "
        "it again from the leader, but if this broker becomes the leader, the other replicas truncate to its empty log",
        "Do not start the broker before you know where the directory is: on a file system that is not mounted, in "
        "another log directory, or in a backup. If it is lost, and kafka-topics.sh --bootstrap-server HOST:PORT "
        "--describe --topic TOPIC shows another broker as Leader and this one in neither Isr nor Elr, start the "
        "broker: it fetches the partition from there. Otherwise first save the partition from another replica (kdump "
        "salvage)",
        "LogManager.getOrCreateLog, ReplicaManager.getOrCreatePartition, Partition.createLogInAssignedDirectoryId",
        "info if only the metadata names the partition: the broker probably stopped before it created it. A file or a "
        "broken link in its place takes the log directory offline",
    ),
    Code(
        "partition-metadata-invalid",
        "checkpoints",
        ERROR,
        "partition.metadata cannot be read, or its topic ID is not the one in the cluster's metadata.",
        "the broker takes the log directory offline, or exits; with another topic ID it renames the directory to "
        "-stray and serves an empty log instead",
        "Stop the broker. If the file cannot be read, write it again with the topic ID that another replica's "
        "partition.metadata or kafka-topics.sh --bootstrap-server HOST:PORT --describe --topic TOPIC shows. If the "
        "topic ID is a different one, the topic was deleted and created again: do not change the ID, and back the "
        "directory up",
        "PartitionMetadataFile.read, LogManager.loadLog, LogManager.isStrayKraftReplica",
        "warning for another version, which a broker of 4.3 reads",
    ),
    Code(
        "meta-properties-invalid",
        "checkpoints",
        ERROR,
        "meta.properties cannot be read, or its IDs differ from those of the broker's other directories.",
        "the broker exits at startup; with the cluster ID of another cluster it does not join",
        "Compare with the meta.properties of the broker's other log directories: node.id and cluster.id have to be the "
        "same in all of them, directory.id different in each",
        "MetaPropertiesEnsemble.verify",
    ),
    Code(
        "quorum-state-invalid",
        "checkpoints",
        ERROR,
        "quorum-state cannot be read.",
        "the controller or broker exits at startup",
        "Stop the node and move the file away. For a voter, first see that the other voters have elected a leader "
        "(kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT describe --status): a voter that has forgotten its "
        "vote could vote a second time in the same epoch",
        "FileQuorumStateStore.readElectionState, QuorumState.initialize",
    ),
    Code(
        "kraft-snapshot-missing",
        "checkpoints",
        ERROR,
        "The metadata log starts above offset 0, and there is no metadata snapshot.",
        "the node cannot load its metadata and exits",
        "Copy the latest .checkpoint from another node of the same cluster; it has to end at or above this log's start "
        "offset. Or, for a node that is not a voter, move __cluster_metadata-0 away: the node fetches it again. For a "
        "voter, follow the incident page metadata-log",
        "KafkaRaftLog.recover (KafkaMetadataLog)",
    ),
    Code(
        "kraft-snapshot-invalid",
        "checkpoints",
        ERROR,
        "A metadata snapshot does not start with its header record or does not end with its footer record.",
        "the node loads incomplete metadata: it exits, does not join, or continues with a state that the cluster never "
        "had",
        "Stop the node and replace the file with the .checkpoint of the same name from another node of the cluster",
        "RecordsSnapshotReader, KIP-630",
    ),
    Code(
        "partition-duplicate",
        "files",
        ERROR,
        "One partition is live in two log directories of a broker.",
        "the broker exits at startup ('Duplicate log directories for … are found')",
        "Compare the two with kdump diff, and move the one that lacks records, or is in the directory that failed, out "
        "of log.dirs; keep it as a backup",
        "LogManager.loadLog",
    ),
    Code(
        "directory-unknown",
        "files",
        ERROR,
        "A directory in a log directory is not named topic-partition.",
        "the broker exits at startup",
        "Move it out of the log directory; for lost+found, use a directory below the mount point as the log directory",
        "LogManager.loadLogs, UnifiedLog.parseTopicPartitionName",
    ),
    Code(
        "directory-stray",
        "files",
        WARNING,
        "A directory is being deleted (-delete) or moved (-future), or belongs to no known partition (-stray).",
        "after startup the broker deletes a -delete directory, and continues to fill a -future one; if the metadata "
        "assigns the partition to the -future one's log directory, it replaces the live one. A -stray directory stays "
        "until you delete it",
        "Copy what you need of it before the broker starts. If a -future directory is in the same log directory as the "
        "live one, move it away: the broker could exit",
        "LogManager.loadLog, addStrayLog, recoverAbandonedFutureLogs",
    ),
    Code(
        "compaction-interrupted",
        "files",
        WARNING,
        "A .cleaned or .swap file is left from a cleaning or a split of a segment.",
        "at the next startup the broker deletes .cleaned files; it deletes the segments that .swap files replace, "
        "without checking the .swap files, and renames these",
        "Do nothing, unless kdump verify finds damage in a .swap file or restart-plan shows losses: then back the "
        "directory up before the broker starts",
        "LogLoader.removeTempFilesAndCollectSwapFiles",
    ),
    Code(
        "file-unknown",
        "files",
        INFO,
        "A .deleted file, or a file whose name Kafka does not know.",
        "the broker deletes .deleted files at startup and ignores others",
        "If it is an error, move the file out of the directory before the broker starts; otherwise do nothing. If you "
        "need a .deleted segment, copy it before the broker starts",
        "LogLoader.removeTempFilesAndCollectSwapFiles, LogFileUtils.offsetFromFile",
        "error if the broker parses the name at startup (.log, an index, .snapshot, .cleaned, .swap) and it does not "
        "start with an offset: the broker exits; and for a .log whose offset does not have 20 digits: its records are "
        "not served",
    ),
)
