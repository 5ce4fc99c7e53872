"""What differs between releases of Kafka: one declaration per difference, which the rules consult.

Each names the class in which it is, and its KIP or ticket. Compared with the sources of 2.8.2, 3.0.2 to 3.9.1, 4.0.0 to
4.4.0. docs/restart-plan.md shows those of a startup as a table, docs/kafka-releases.md the others."""

from __future__ import annotations

from typing import NamedTuple

from kdump.format.kafka_release import KRAFT, NEWEST_PATCH, ZOOKEEPER, AppliedRelease, KafkaRelease, parse_release

TRIED = (
    *("2.8.2-zk", "3.3.2-zk", "3.3.2-kraft", "3.6.2-zk", "3.6.2-kraft", "3.9.1-zk", "3.9.1-kraft"),
    *("4.0.0-kraft", "4.1.0-kraft", "4.3.1-kraft", "4.4.0-kraft"),
)
"""Releases whose rules have been compared with real brokers (docs/restart-plan.md), and of which there are disks
(tests/corpus/README.md). For the others, the rules are those of their sources."""
_TRIED = {(release.line, release.mode) for release in map(parse_release, TRIED)}

_ANY = NEWEST_PATCH


class Difference(NamedTuple):
    """Something that a startup does only in some releases: from `since` on, up to `until` (inclusive); None: no limit.
    `mode`: only in this mode. `where`: Kafka's class; `ticket`: KIP or ticket, empty if it has none."""

    where: str
    does: str
    since: tuple[int, int, int] | None = None
    until: tuple[int, int, int] | None = None
    mode: str | None = None
    ticket: str = ""

    def applies(self, release: KafkaRelease) -> bool:
        """Return True if brokers of this release do it."""
        if self.mode is not None and release.mode != self.mode:
            return False
        if self.since is not None and release.order < self.since:
            return False
        return self.until is None or release.order <= self.until

    def is_open(self, applied: AppliedRelease) -> bool:
        """Return True if it depends on which of the possible releases the true one is."""
        return self.applies(applied.since) != self.applies(applied.until)

    @property
    def releases(self) -> str:
        """The releases to which it applies, in words."""
        since = _text(self.since)
        until = f"{_text(self.until)}.0" if self.until is not None and not self.until[2] else _text(self.until)
        since = until if self.since == self.until else since
        mode = "" if self.mode is None else ", ZooKeeper" if self.mode == ZOOKEEPER else ", KRaft"
        if since and until:
            return (since if since == until else f"{since} to {until}") + mode
        if since:
            return f"{since} and later{mode}"
        if until:
            return f"up to {until}{mode}"
        return "all releases" + mode


def _text(order: tuple[int, int, int] | None) -> str:
    if order is None:
        return ""
    major, minor, patch = order
    return f"{major}.{minor}" if patch in (0, _ANY) else f"{major}.{minor}.{patch}"


# --- meta.properties ---

META_CREATED = Difference(
    until=(3, 9, _ANY),
    mode=ZOOKEEPER,
    where="KafkaServer, BrokerMetadataCheckpoint",
    does="a log directory without `meta.properties` gets one, with ZooKeeper's cluster ID and the configured "
    "broker.id; a KRaft node exits",
)
META_VERSION_0 = Difference(
    until=(3, 9, _ANY),
    mode=ZOOKEEPER,
    where="KafkaServer",
    ticket="KIP-631",
    does="exits if `meta.properties` has another version than 0 (unless a migration to KRaft is enabled)",
)
META_VERSION_1 = Difference(
    until=(3, 3, _ANY),
    mode=KRAFT,
    where="MetaProperties.parse",
    ticket="KAFKA-14637",
    does="exits if `meta.properties` has version 0; later releases read both versions",
)
META_EQUAL = Difference(
    until=(3, 6, _ANY),
    where="BrokerMetadataCheckpoint.getBrokerMetadataAndOfflineDirs",
    ticket="KAFKA-14637",
    does="exits with InconsistentBrokerMetadataException if log directories differ in `meta.properties`: up to 3.3, "
    "and with ZooKeeper, in any property, such as directory.id; KRaft from 3.4 on only in cluster and node ID",
)
META_ENSEMBLE = Difference(
    since=(3, 7, 0),
    where="MetaPropertiesEnsemble",
    ticket="KIP-858",
    does="each log directory has a directory.id, which a KRaft node adds to `meta.properties`; exits if two have the "
    "same",
)

# --- KRaft metadata ---

BOOTSTRAP_READ = Difference(
    since=(3, 3, 0),
    mode=KRAFT,
    where="BootstrapDirectory",
    ticket="KIP-778",
    does="reads `bootstrap.checkpoint`, and exits if it cannot",
)
BOOTSTRAP_LEVEL = Difference(
    since=(3, 3, 0),
    until=(4, 0, 0),
    mode=KRAFT,
    where="BootstrapMetadata.fromRecords",
    ticket="KAFKA-19192",
    does="exits if `bootstrap.checkpoint` has a metadata.version that it does not know, or one before 3.3-IV0, "
    "whatever the metadata log has; 4.0.1 and later start",
)
SNAPSHOTS_REQUIRED = Difference(
    since=(3, 3, 0),
    mode=KRAFT,
    where="KafkaMetadataLog.recoverSnapshots",
    ticket="KAFKA-14240",
    does="exits if the metadata log starts above offset 0 and no snapshot reaches that offset",
)
QUORUM_STATE_1 = Difference(
    since=(3, 8, 0),
    mode=KRAFT,
    where="FileQuorumStateStore",
    ticket="KIP-853",
    does="reads `quorum-state` of data_version 1, which is written once kraft.version is 1; earlier releases exit",
)
VOTERS_COMPARED = Difference(
    until=(3, 7, _ANY),
    mode=KRAFT,
    where="QuorumState.initialize",
    ticket="KIP-853",
    does="exits if `controller.quorum.voters` has other nodes than `quorum-state`; later releases take the former",
)
QUORUM_STATE_CLEARED = Difference(
    until=(3, 7, _ANY),
    mode=KRAFT,
    where="QuorumState.initialize",
    does="deletes a `quorum-state` that is not valid JSON, and starts without it; later releases exit",
)
METADATA_MINIMUM = Difference(
    since=(4, 0, 0),
    mode=KRAFT,
    where="MetadataVersion.MINIMUM_VERSION",
    ticket="KIP-896, KAFKA-18399",
    does="needs metadata.version 3.3-IV3 or later",
)

FORMAT_IN_CHECKPOINT = Difference(
    since=(4, 4, 0),
    mode=KRAFT,
    where="Formatter, QuorumController.handleLoadBootstrap",
    ticket="KIP-1170",
    does="the first controller copies the feature levels in the metadata snapshot at offset 0, which `kafka-storage "
    "format` writes, into a new log; earlier releases ignore them, and start a new log with the levels in "
    "`bootstrap.checkpoint`, or with their newest. A `bootstrap.checkpoint` is still read",
)

# --- LogManager ---

CHECKPOINT_NUMBERS = Difference(
    since=(3, 1, 0),
    where="CheckpointFile",
    does="a number that cannot be parsed in a line of a checkpoint is not an IOException: an offset checkpoint is "
    "treated as empty, and leader-epoch-checkpoint makes the broker exit. Earlier releases take the log directory "
    "offline",
)
STORAGE_EXCEPTION = Difference(
    until=(3, 1, _ANY),
    where="LogManager.loadLogs",
    does="exits if leader-epoch-checkpoint or partition.metadata cannot be read: the KafkaStorageException is not "
    "handled. Later releases take the log directory offline",
)
REMOTE_CACHE_KNOWN = Difference(
    since=(3, 5, 0),
    where="LogManager.loadLogs",
    ticket="KAFKA-13369",
    does="ignores the directory `remote-log-index-cache`; earlier releases exit because its name is not "
    "topic-partition",
)
STRAY_NAMES = Difference(
    since=(3, 6, 1),
    where="LocalLog.parseTopicPartitionName",
    ticket="KAFKA-15605",
    does="loads directories whose name ends in `-stray`, and does not serve them; earlier releases exit",
)
STRAYS_DELETED = Difference(
    since=(3, 0, 0),
    until=(3, 6, _ANY),
    mode=KRAFT,
    where="BrokerMetadataPublisher, ReplicaManager.deleteStrayReplicas",
    ticket="KAFKA-13127",
    does="stray partitions are deleted (renamed to `-delete`, and removed after file.delete.delay.ms); if one has no "
    "topic ID, none is",
)
STRAYS_RENAMED = Difference(
    since=(3, 7, 0),
    mode=KRAFT,
    where="LogManager",
    ticket="KAFKA-14616",
    does="stray partitions are renamed to `-stray`; nothing deletes them",
)
STRAY_WITHOUT_ID_EXITS = Difference(
    since=(3, 7, 0),
    until=(3, 7, 0),
    mode=KRAFT,
    where="LogManager.findStrayReplicas",
    ticket="KAFKA-16234",
    does="exits if a partition has no partition.metadata",
)
STRAY_WITHOUT_ID = Difference(
    since=(3, 7, 1),
    mode=KRAFT,
    where="LogManager.isStrayKraftReplica",
    ticket="KAFKA-16234",
    does="a partition without partition.metadata is stray. Strays are found as logs are loaded, so that the same "
    "partition in another log directory does not make the broker exit",
)
FUTURE_RECOVERED = Difference(
    since=(3, 7, 1),
    mode=KRAFT,
    where="LogManager.recoverAbandonedFutureLogs",
    ticket="KAFKA-16082",
    does="a `-future` directory to which the cluster has assigned the partition takes the name of the live one",
)
FUTURE_BESIDE = Difference(
    until=(3, 7, 0),
    where="ReplicaManager.maybeAddLogDirFetchers",
    ticket="KAFKA-16082",
    does="continues the move of a `-future` directory next to the live one in the same log directory, and takes the "
    "log directory offline when it renames it; later brokers with ZooKeeper leave it there",
)
DIRECTORIES_ASSIGNED = Difference(
    since=(3, 7, 0),
    mode=KRAFT,
    where="LogManager.getOrCreateLog",
    ticket="KIP-858",
    does="a missing partition is created empty only in the log directory to which it is assigned; earlier releases, "
    "and brokers with ZooKeeper, create it in any, but only while no log directory is offline",
)

# --- LogLoader ---

SWAP_RENAMED = Difference(
    since=(3, 0, 0),
    where="LogLoader.load",
    ticket="KAFKA-12520",
    does="completes an interrupted compaction or split by deleting the replaced segments and renaming the `.swap` "
    "files. 2.8 deletes the indexes, recovers the `.log.swap`, and then replaces the segments",
)
EPOCHS_AT_LOAD = Difference(
    since=(3, 0, 0),
    where="LogLoader.recoverSegment",
    does="recovery of a segment without an index adds its leader epochs to the checkpoint",
)
IO_ERROR_EMPTIES = Difference(
    since=(4, 0, 0),
    where="LogLoader.recoverLog",
    ticket="KAFKA-14482",
    does="a segment whose recovery ends with an IOException, for example because a full disk does not take its "
    "producer snapshot, is emptied, and those after it are deleted; earlier releases fail instead, and keep them",
)
EPOCHS_FROM_CHECKPOINT = Difference(
    since=(3, 0, 0),
    where="LogLoader.load",
    does="leader epochs are truncated at the log start offset in the checkpoint; 2.8 truncates them at the first "
    "segment's base offset if that is larger",
)
REMOTE_LOG_START = Difference(
    since=(3, 6, 0),
    where="LogLoader.load",
    ticket="KAFKA-15351",
    does="the log start offset of a topic with remote storage is the one in the checkpoint",
)

# --- LogSegment and records ---

SEARCH_BY_BASE_OFFSET = Difference(
    since=(4, 1, 0),
    where="FileRecords.searchForOffsetFromPosition",
    ticket="KAFKA-19321",
    does="looks for an offset by the base offsets of batches; earlier releases take the first batch whose last offset "
    "is not below it. The results differ only if offsets are not in ascending order",
)
OFFSET_OF_BATCH = Difference(
    since=(4, 0, 0),
    where="LogSegment.read",
    ticket="KAFKA-17803",
    does="states the base offset of the batch with the last stable offset; earlier releases the offset itself. "
    "They differ if the log start offset is inside a batch of an open transaction",
)
MARKER_UNDERFLOW = Difference(
    since=(4, 1, 0),
    where="EndTransactionMarker.deserializeValue",
    does="exits with BufferUnderflowException if the value of a transaction marker is too short; in earlier releases "
    "it is an invalid record, at which recovery truncates",
)

TXN_INDEX_VERSION = Difference(
    since=(4, 4, 0),
    where="TransactionIndex.iterable",
    does="exits with KafkaException if the version of an entry of a `.txnindex`, an INT16, is not 0; earlier releases "
    "only if its first byte is 1 to 127",
)

DIFFERENCES = {name: value for name, value in list(globals().items()) if isinstance(value, Difference)}
"""The differences of a startup by name, in the order in which a startup reaches them."""

# --- what a running broker does ---

PRODUCER_EXPIRATION = Difference(
    since=(3, 4, 0),
    where="ProducerStateManagerConfig",
    ticket="KIP-854",
    does="forgets a producer after producer.id.expiration.ms (1 day by default) without a batch; earlier releases "
    "after transactional.id.expiration.ms (7 days)",
)
ABORTS_BY_OFFSET = Difference(
    since=(3, 0, 0),
    where="TransactionsCommand",
    ticket="KIP-664",
    does="can tell who started a transaction at an offset, so that kafka-transactions.sh abort needs only that "
    "offset; earlier releases need producer ID, producer epoch and coordinator epoch",
)
STARTS_DELETION_AT_LOG_START = Difference(
    since=(3, 0, 0),
    where="UnifiedLog.deleteOldSegments",
    does="deletes segments below the log start offset first, then by size, then by time; 2.8 first by time, then by "
    "size. The same segments are deleted, but the log may give another reason",
)
DELETE_HORIZON = Difference(
    since=(3, 1, 0),
    where="Cleaner",
    ticket="KIP-534, KAFKA-8522",
    does="the first cleaning that reaches tombstones and transaction markers writes a delete horizon into their "
    "batch. Earlier releases remove them from segments that are delete.retention.ms older than the last clean one, by "
    "the modification times of the files",
)
CLEANS_BELOW_HIGH_WATERMARK = Difference(
    since=(3, 1, 0),
    where="LogCleanerManager.cleanableOffsets",
    ticket="KAFKA-13194",
    does="does not clean above the high watermark; earlier releases only stop at the first open transaction",
)
TIMESTAMP_AFTER = Difference(
    since=(3, 6, 0),
    where="LogValidator",
    ticket="KIP-937",
    does="message.timestamp.after.max.ms limits timestamps in the future; earlier releases only have "
    "message.timestamp.difference.max.ms, for past and future",
)
EMPTY_POLICY_OF_TIERED = Difference(
    since=(4, 2, 0),
    where="UnifiedLog.deleteOldSegments",
    ticket="KIP-1161",
    does="an empty cleanup.policy applies local.retention.ms and local.retention.bytes to a topic with remote "
    "storage; earlier releases delete nothing there",
)

DECOMPRESSED_LIMIT = Difference(
    since=(4, 4, 0),
    where="DefaultRecord.readFrom, Cleaner, UnifiedLog",
    does="rejects a compressed batch with a record above max.decompressed.message.bytes (no limit by default), and "
    "fails at one that is in the log when it cleans that, or looks for a timestamp",
)
COPY_LAG = Difference(
    since=(4, 4, 0),
    mode=KRAFT,
    where="RemoteLogManager.isEligibleForUpload",
    ticket="KIP-1241",
    does="copies a segment to remote storage only once it is remote.copy.lag.ms old, or remote.copy.lag.bytes follow "
    "it; with 0 in one of them, and in earlier releases, as soon as it is rolled and below the last stable offset",
)
ONLY_LOCAL_ABOVE = Difference(
    since=(4, 4, 0),
    mode=KRAFT,
    where="UnifiedLog.onlyLocalLogSegmentsSize",
    ticket="KAFKA-20977",
    does="does not count the last segment that was copied to remote storage among those that are only here, even if "
    "it has a single offset; earlier releases count its size twice against retention.bytes",
)
EMPTY_BATCH_AT_HIGH_WATERMARK = Difference(
    since=(4, 4, 0),
    where="Cleaner.cleanInto",
    ticket="KAFKA-20452",
    does="keeps an empty batch if it ends at the high watermark; earlier ones from 4.0 on, and later patch releases "
    "of 3.9, if it ends where the cleaning does",
)
STATUS_NAMES = Difference(
    since=(4, 4, 0),
    where="DumpLogSegments.TransactionLogMessageParser",
    does="kafka-dump-log prints transactionStatus as a name: CompleteCommit, not 4",
)
TRIMMED_AT_SHUTDOWN = Difference(
    since=(4, 4, 0),
    where="LogManager.shutdown, AbstractIndex.close",
    does="truncates the preallocated indexes of the active segment, and writes its last time index entry, only as the "
    "last step of a broker's clean shutdown; earlier releases also when any log is closed, such as the metadata log, "
    "whose indexes now keep their 10 MiB, which are sparse",
)

RUNNING = {
    name: value for name, value in list(globals().items()) if isinstance(value, Difference) and name not in DIFFERENCES
}
"""The differences of a running broker by name."""


def is_tried(release: KafkaRelease) -> bool:
    """Return True if the rules of this release have been compared with real brokers of it."""
    return (release.line, release.mode) in _TRIED
