"""Messages of requests that brokers or controllers reject, and their error codes."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, SUPPORTED, Message

CLUSTER = "kdump cluster {disk}"
CONFIGS = "kdump cluster {disk} --show configs"
PROBLEMS = "kdump cluster {disk} --show partitions --problems"
QUORUM = "kafka-metadata-quorum.sh --bootstrap-server HOST:9092 describe --replication"
GROUPS = "kdump groups {disk} --group {group} --history"
AGAIN = "Nothing, if it passes within seconds: the client repeats the request"

BROKER_ID_IN_USE = Message(
    name="broker-id-in-use",
    texts=(
        "Another broker is registered with that broker id.",
        "Another broker is registered with that broker id. If the broker was recently restarted this should "
        "self-resolve once the heartbeat manager expires the broker's session.",
        "This broker ID is already in use.",
        "Error while creating ephemeral at /brokers/ids/{nodeId}, node already exists and owner '{}' does not match "
        "current session '{}'",
    ),
    exceptions=("DUPLICATE_BROKER_REGISTRATION", "DuplicateBrokerRegistrationException", "NodeExistsException"),
    source="ClusterControlManager, KafkaZkClient",
    meaning="Another process is registered as this broker",
    cause="The broker was restarted before its session expired (broker.session.timeout.ms); or two brokers have one "
    "node.id, as with a copied configuration or disk",
    impact="The broker is not registered, and repeats it until initial.broker.registration.timeout.ms; then it exits",
    commands=("cat {disk}/meta.properties", "kdump cluster {disk} --show brokers"),
    action="Wait for the session timeout. If it lasts, look for the other process, at the endpoints of cluster --show "
    "brokers",
    never="Do not start two processes on copies of one disk: both would serve the same replicas",
)

BROKER_UNREGISTERED = Message(
    name="broker-not-registered",
    texts=("Controller does not support registering ZK brokers.", "The given broker ID was not registered."),
    exceptions=("BROKER_ID_NOT_REGISTERED", "BrokerIdNotRegisteredException", "CONTROLLER_ID_NOT_REGISTERED"),
    source="ClusterControlManager",
    releases=f"3.3 to {LAST}",
    meaning="The controller does not know the node",
    cause="It was unregistered, runs with ZooKeeper while the cluster does not migrate, or the controllers lost "
    "metadata",
    impact="The request fails; a broker of a ZooKeeper cluster does not join",
    commands=("kdump cluster {disk} --show brokers", "kdump cluster {disk} --history"),
    action="Look in the metadata whether and when the node was unregistered",
)

REGISTRATION_INVALID = Message(
    name="broker-registration-invalid",
    texts=(
        "The controller has considered the broker registration to be invalid.",
        "Broker {nodeId} is already registered with directory {topicId}",
        "No directories specified in request",
        "Reserved directory ID in request",
        "Duplicate directory ID in request",
    ),
    exceptions=("INVALID_REGISTRATION", "InvalidRegistrationException"),
    source="ClusterControlManager",
    releases=f"3.7 to {LAST}",
    meaning="The controller rejects the log directories that the broker registers with",
    cause="A directory.id that another broker has, or that occurs twice: a disk copied or moved with its "
    "meta.properties",
    impact="The broker is not registered, and exits in the end",
    commands=("cat {disk}/meta.properties", "kdump cluster {disk} --show brokers"),
    action="Compare directory.id in meta.properties with those of the other brokers in the metadata",
    never="Do not invent a directory.id: partitions that are assigned to the old one are not served",
    codes=("meta-properties-invalid",),
)

REGISTRATION_FAILED = Message(
    name="broker-registration-failed",
    texts=(
        "Unable to register broker {nodeId} because the controller returned error {cause}",
        "Unable to register broker {nodeId} because of an API version problem.",
        "Unable to register broker {nodeId} because of an authentication exception.",
        "RegistrationResponseHandler: controller returned error {cause}",
    ),
    source="BrokerLifecycleManager, ControllerRegistrationManager",
    releases=f"2.8 to {LAST}",
    meaning="The controller has not registered the node",
    cause="The error in the line",
    impact="The node repeats it until initial.broker.registration.timeout.ms (1 minute), and exits then",
    commands=("kdump cluster {disk} --show brokers", "kdump restart-plan {disk}"),
    action="Explain the error",
    general=True,
    at_info=True,
)

BROKER_EPOCH = Message(
    name="broker-epoch-stale",
    texts=(
        "Expected broker epoch {}, but got broker epoch {}",
        "No broker registration found for broker id {nodeId}",
        "Broker epoch has changed.",
        "Tried to change broker {nodeId}, but the given epoch, {}, did not match the current broker epoch, {}",
    ),
    exceptions=("StaleBrokerEpochException", "STALE_BROKER_EPOCH"),
    source="ClusterControlManager, ClusterDelta",
    releases=f"3.3 to {LAST}",
    meaning="A request, or a record of the metadata log, has another epoch of the broker than its registration",
    cause="The broker was registered again meanwhile. In a metadata record: a bug of the release, or metadata that "
    "were restored",
    impact="The request is rejected, and the broker registers again. In a metadata record: a controller halts",
    commands=("kdump cluster {disk} --show brokers", "kdump restart-plan {disk}"),
    action="Nothing, if it passes. For a metadata record, see the incident page before you restart any controller",
    incident="metadata-log",
    plan=True,
)

NODE_ASSIGNMENT = Message(
    name="node-assignment-timed-out",
    texts=("Timed out waiting for a node assignment. Call: {}",),
    source="KafkaAdminClient",
    meaning="An admin client found no broker or controller to send its request to",
    cause="No node at the bootstrap address answers, or the quorum has no leader (describeMetadataQuorum and others "
    "that only the active controller answers)",
    impact="The command fails; nothing was changed",
    commands=("kdump restart-plan {disk}", CLUSTER),
    action="Look whether the nodes run, and whether the quorum has a leader: restart-plan of the controllers' disks",
    plan=True,
)

COMMIT_FAILED = Message(
    name="offset-commit-failed",
    texts=(
        "Offset commit failed on partition {partition} at offset {offset}: {cause}",
        "Asynchronous auto-commit of offsets failed: {cause}",
        "Asynchronous auto-commit of offsets {} failed: {cause}",
        "Asynchronous auto-commit of offsets {} failed due to retriable error: {cause}",
        "Synchronous auto-commit of offsets {} failed: {cause}",
        "OffsetCommit failed for group {group} on partition {partition} with offset {offset}: {reason}",
    ),
    exceptions=("RetriableCommitFailedException",),
    source="ConsumerCoordinator, CommitRequestManager; aiokafka",
    meaning="A consumer could not commit its offset",
    cause="The coordinator did not answer in time or is loading, __consumer_offsets has too few in-sync replicas, or "
    "the member was removed from its group: see the error in the line",
    impact="The last committed offset stays: after a restart records are processed again",
    commands=(GROUPS, "kdump ls {disk} --topic __consumer_offsets", "kdump verify {disk} --topic __consumer_offsets"),
    action="groups shows what is committed. If it lasts, look at the group's partition of __consumer_offsets: leader, "
    "size, damage",
    incident="consumer-offsets-grows",
)

CONCURRENT = Message(
    name="concurrent-transactions",
    texts=(
        "The producer attempted to update a transaction while another concurrent operation on the same transaction was "
        "ongoing.",
        "Broker: Producer attempted to update a transaction while another concurrent operation on the same transaction "
        "was ongoing",
    ),
    exceptions=("ConcurrentTransactionsException", "CONCURRENT_TRANSACTIONS", "ConcurrentTransactions"),
    source="TransactionCoordinator, Errors; librdkafka",
    meaning="The coordinator has not ended the previous transaction of this transactional ID yet",
    cause="It is in PrepareCommit or PrepareAbort: a marker cannot be written, because a partition has no leader or "
    "too few in-sync replicas; or the coordinator was interrupted before it wrote Complete",
    impact="The producer repeats the request. If it lasts, it does not get on, and consumers of committed records wait",
    commands=("kdump transactions {disk} --coordinator", "kdump transactions {disk} --state open", PROBLEMS),
    action="Nothing, if it passes within seconds. Otherwise bring the partitions of the transaction online; a restart "
    "of the coordinator's broker repeats the markers",
    never="Do not abort it with kafka-transactions.sh while the coordinator is to commit it",
    incident="hanging-transaction",
)

TRANSACTION_LOG = Message(
    name="transaction-log-not-written",
    texts=(
        "The coordinator failed to write an epoch fence transition for producer {transactionalId} to the transaction "
        "log with error {error}. The epoch was increased to {} but not returned to the client",
        "The coordinator failed to write an epoch fence transition for producer {transactionalId} to the transaction "
        "log with error {error}",
        "TransactionalId {transactionalId} append transaction log for {} transition failed due to {}",
        "TransactionalId {transactionalId} append transaction log for {} transition failed due to {}, resetting "
        "pending state from {}, aborting state transition and returning {} in the callback",
        "Aborting sending of transaction markers and returning {} error to client for {transactionalId}'s "
        "EndTransaction request of {}, since appending {} to transaction log with coordinator epoch {} failed",
    ),
    source="TransactionCoordinator, TransactionStateManager",
    meaning="The transaction coordinator could not write a state to its partition of __transaction_state",
    cause="The partition has too few in-sync replicas, is moving, or its log directory is offline",
    impact="Transactions of this coordinator do not begin or end; its producers repeat or fail",
    commands=("kdump transactions {disk} --coordinator", "kdump verify {disk} --topic __transaction_state", PROBLEMS),
    action="Look at the partition of __transaction_state: its leader, its in-sync replicas, damage",
    never="Do not delete the partition's directory: it has the state of all its transactional IDs",
    at_info=True,
)

MARKER_REPEATED = Message(
    name="transaction-marker-repeated",
    texts=(
        "Epoch of producer {producerId} at offset {offset} in {partition} is {producerEpoch}, which is <= the last "
        "seen epoch {otherEpoch} (TV{})",
        "Epoch of producer {producerId} at offset {offset} in {partition} is {producerEpoch}, which is smaller than or "
        "equal to the last seen epoch {otherEpoch}",
        "Idempotent transaction marker retry detected for producer {producerId} epoch {producerEpoch}. Transaction "
        "already completed, allowing duplicate marker write.",
    ),
    source="ProducerAppendInfo",
    releases=f"4.0 to {LAST}",
    meaning="A coordinator sent the marker of a transaction again, and the partition has it already",
    cause="With transaction version 2 each marker has a new producer epoch. After a change of the coordinator, one "
    "that is in PrepareCommit or PrepareAbort is repeated (KAFKA-19999)",
    impact="The partition is complete. A release that rejects the marker keeps the transaction in Prepare, and its "
    "producer gets CONCURRENT_TRANSACTIONS; a later one writes the marker twice, which changes nothing",
    commands=("kdump transactions {path} --list", "kdump transactions {disk} --coordinator"),
    action="Compare the state of the coordinator with the partition's last marker. Update to a release with the "
    "correction",
    never="Do not look for a second producer with this transactional ID because of this line alone",
    at_info=True,
)

TOPIC_ID_MISSING = Message(
    name="topic-id-missing",
    texts=(
        "The log dir Log(dir={file}, topic={topic}, partition={number}, {}) does not have a topic ID, which is not "
        "allowed when running in KRaft mode.",
        "The log dir {} does not have a topic ID, which is not allowed when running in KRaft mode.",
        "The topicId does not exist in {}, treat it as a stray log",
        "The topicId does not exist in {}, treat it as a stray log.",
    ),
    source="LogManager",
    releases=f"3.0 to {LAST}",
    meaning="A partition has no partition.metadata, so the broker does not know of which topic it is",
    cause="The file was deleted, left out of a copy, or never written (KAFKA-16814, KAFKA-21022)",
    impact="Up to 3.7.0 the broker exits. From 3.7.1 on the directory becomes stray, and an empty partition takes its "
    "place",
    commands=("ls -l {path}", "kdump cluster {disk} --topic {topic}", "kdump restart-plan {disk}"),
    action="Write the file again before the next startup: version: 0 and topic_id: the ID that cluster shows",
    never="Do not let the broker start first: the replica is then set aside, and may be the only one",
    codes=("partition-metadata-invalid",),
    plan=True,
)

LEADER_LOADING = Message(
    name="metadata-high-watermark-unknown",
    texts=(
        "initializeNewPublishers: the loader is still catching up because we still don't know the high water mark yet.",
        "maybePublishMetadata({}): The loader is still catching up because we still don't know the high water mark "
        "yet.",
        "{}: the loader is still catching up because we still don't know the high water mark yet.",
    ),
    source="MetadataLoader",
    releases=f"3.3 to {LAST}",
    meaning="The node does not know up to where the metadata log is committed: it has no leader of the quorum yet",
    cause="An election, as at each startup. If it lasts: too few voters run or reach each other; or this node is not "
    "the voter that the quorum has, because its directory.id differs (a disk that was formatted again)",
    impact="Until then the node does not go on with its startup",
    commands=(QUORUM, "cat {disk}/meta.properties", "kdump restart-plan {disk}"),
    action="Nothing, if it passes within seconds. Otherwise compare directory.id with the voters that restart-plan "
    "shows",
    never="Do not format the controllers again",
    incident="metadata-log",
    at_info=True,
    after=10_000,
    plan=True,
)

METADATA_RECORD = Message(
    name="metadata-record-not-applicable",
    texts=(
        "Unable to apply {} record at offset {offset} on standby controller, from the batch with baseOffset "
        "{baseOffset}",
        "Unable to apply {} record at offset {offset} on active controller, from the batch with baseOffset "
        "{baseOffset}",
        "Unable to apply {} record from snapshot {} on standby controller, which was {} of {} record(s) in the batch "
        "with baseOffset {baseOffset}.",
    ),
    source="QuorumController",
    releases=f"3.3 to {LAST}",
    meaning="A controller cannot apply a record of the metadata log",
    cause="The metadata contradict themselves: a bug of the release that wrote the record, a restored or mixed log, "
    "or a newer release",
    impact="The controller halts, as does every other that reads this record, at every startup",
    commands=("kdump inspect {disk}/__cluster_metadata-0 --offset {offset} --records", "kdump restart-plan {disk}"),
    action="Copy the metadata log of all controllers. Look at the record, and which release wrote it",
    never="Do not format controllers to get rid of the record: the cluster would be lost",
    incident="metadata-log",
    plan=True,
)

CHECKSUM_AT_CLIENT = Message(
    name="checksum-failed-at-client",
    texts=(
        "kafka: error decoding packet: CRC didn't match{}",
        "kafka: error decoding packet: {cause}",
        "Broker: This message has failed its CRC checksum, exceeds the valid size, or is otherwise corrupt.",
        "This message has failed its CRC checksum, exceeds the valid size, has a null key for a compacted topic, or is "
        "otherwise corrupt.",
        "kafka server: Message contents does not match its CRC",
        "Broker: Invalid message",
    ),
    source="Errors; sarama; librdkafka; kafka-python",
    meaning="A client or a broker rejects a batch: its checksum does not match, or it is invalid in another way",
    cause="For a consumer: the bytes changed on the broker's disk, or on the way. For a producer: the same on the "
    "way, or a record without a key for a compacted topic",
    impact="A consumer stops at this offset; a producer's batch is not written",
    commands=("kdump verify {path} --crc", "kdump inspect {path} --offset {offset} --hex"),
    action="If verify finds a batch, take it from another replica (kdump diff); if not, look at the network and the "
    "client",
    never="Do not switch the check of checksums off in the client: it then gets changed values",
    codes=("crc-mismatch",),
    incident="stuck-consumer",
)

TOO_SLOW = Message(
    name="consumer-too-slow",
    texts=(
        "Local: Maximum application poll interval (max.poll.interval.ms) exceeded",
        "Application maximum poll interval ({}ms) exceeded by {}ms",
        "Application maximum poll interval ({}ms) exceeded by {}ms (adjust max.poll.interval.ms for long-running "
        "message processing): leaving group",
        "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer "
        "than the configured max.poll.interval.ms, which typically implies that the poll loop is spending too "
        "much time processing messages. You can address this either by increasing max.poll.interval.ms or by "
        "reducing the maximum size of batches returned in poll() with max.poll.records.",
        "Member {member} sending LeaveGroup request to coordinator {} due to consumer poll timeout has expired.",
    ),
    exceptions=("_MAX_POLL_EXCEEDED",),
    source="AbstractCoordinator, AbstractHeartbeatRequestManager; librdkafka",
    meaning="The consumer did not poll within max.poll.interval.ms, and leaves its group",
    cause="Processing of what one poll returned takes too long",
    impact="Its partitions go to others, and what it had not committed is processed again",
    commands=(GROUPS, "kdump stats {disk}"),
    action="Process less between polls (max.poll.records), or raise max.poll.interval.ms. stats shows how large the "
    "batches are",
)

RECORD_REJECTED = Message(
    name="record-rejected",
    texts=(
        "This record has failed the validation on broker and hence will be rejected.",
        "One or more records have been rejected due to {reason}",
        "Compacted topic cannot accept message without key in topic partition {partition}.",
        "Timestamp {} of message with offset {offset} is out of range. The timestamp should be within [{}, {}]",
        "The timestamp of the message is out of acceptable range.",
        "Broker: Broker failed to validate record",
        "Broker: Invalid timestamp",
    ),
    exceptions=("InvalidTimestampException", "INVALID_TIMESTAMP", "InvalidRecordException_"),
    source="LogValidator, Errors",
    meaning="The leader rejects a batch because of one of its records",
    cause="A record without a key in a compacted topic, a timestamp outside message.timestamp.before.max.ms and "
    "after.max.ms, or an invalid field",
    impact="Nothing of the batch is written",
    commands=("kdump cluster {disk} --topic {topic}", "kdump stats {path}"),
    action="Correct the producer. The configs of the topic are in the metadata",
)

DUPLICATE_SEQUENCE = Message(
    name="duplicate-sequence",
    texts=("The broker received a duplicate sequence number.", "Broker: Broker received a duplicate sequence number"),
    exceptions=("DuplicateSequenceException", "DUPLICATE_SEQUENCE_NUMBER"),
    source="ProducerStateEntry, Sender",
    meaning="The producer sent a batch again that is in the log, but is none of the last five",
    cause="A retry after a long time, or a sequence that began again",
    impact="None: the batch is written once",
    commands=("kdump producers {path} --producer-id {producerId} --history",),
    action="Nothing, unless it repeats for one producer",
)

COORDINATOR_FENCED = Message(
    name="transaction-coordinator-fenced",
    texts=(
        "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the current coordinator for "
        "a given producer.",
        "Invalid coordinator epoch for producerId {producerId} at offset {offset} in partition {partition}: {} "
        "(zombie), {} (current)",
    ),
    exceptions=("TransactionCoordinatorFencedException", "TRANSACTION_COORDINATOR_FENCED"),
    source="ProducerAppendInfo, TransactionMarkerRequestCompletionHandler",
    meaning="A marker of an older coordinator was rejected",
    cause="The coordinator's partition moved. Or __transaction_state was recreated, and its leader epochs began again",
    impact="None if it passes. If __transaction_state was recreated, no marker is accepted: transactions hang",
    commands=("kdump transactions {path} --list", "cat {disk}/__transaction_state-0/leader-epoch-checkpoint"),
    action="Compare the coordinator epoch in the line with the leader epochs of __transaction_state",
    incident="hanging-transaction",
)

RECORD_TOO_LARGE = Message(
    name="record-too-large-at-client",
    texts=(
        "The message is {size} bytes when serialized which is larger than {}, which is the value of the "
        "max.request.size configuration.",
        "Failed to allocate {} bytes within the configured max blocking time {} ms. Total memory: {} bytes. Available "
        "memory: {} bytes. Poolable size: {} bytes",
    ),
    exceptions=("BufferExhaustedException",),
    source="KafkaProducer, BufferPool",
    meaning="The producer cannot hold a record: it is above max.request.size, or buffer.memory is full",
    cause="A large record; or brokers that take batches more slowly than the application sends",
    impact="The record is not sent",
    commands=("kdump stats {path}", PROBLEMS),
    action="stats shows how large the topic's batches are. If the buffer is full, look for partitions without a leader",
)

GROUP_STATE = Message(
    name="group-request-rejected",
    texts=(
        "The group is not empty.",
        "The group id does not exist.",
        "The group has reached its maximum size.",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
        "There are unstable offsets that need to be cleared.",
        "The metadata field of the offset request was too large.",
        "The instance ID is still used by another member in the consumer group. That member must leave first.",
        "DeleteGroups could not complete; see the error message on the per-group result for details.",
    ),
    exceptions=(
        "NON_EMPTY_GROUP",
        "GroupNotEmptyException",
        "GROUP_ID_NOT_FOUND",
        "GroupIdNotFoundException",
        "GROUP_MAX_SIZE_REACHED",
        "GROUP_SUBSCRIBED_TO_TOPIC",
        "UNSTABLE_OFFSET_COMMIT",
        "UnstableOffsetCommitException",
        "OFFSET_METADATA_TOO_LARGE",
        "INVALID_COMMIT_OFFSET_SIZE",
        "UNRELEASED_INSTANCE_ID",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "INVALID_SESSION_TIMEOUT",
        "MEMBER_ID_REQUIRED",
        "UNSUPPORTED_ASSIGNOR",
        "INVALID_REGULAR_EXPRESSION",
        "GROUP_DELETION_FAILED",
    ),
    source="Errors, GroupMetadataManager, GroupCoordinator",
    meaning="The coordinator rejects a request because of the state of the group",
    cause="The group has members, does not exist (any more), has offsets in an open transaction, or is of another type",
    impact="The request changes nothing. With unstable offsets, a consumer waits for the transaction to end",
    commands=(GROUPS, "kdump transactions {disk} --coordinator"),
    action="groups shows type, state and members of the group, and offsets in open transactions",
)

SHARE_REJECTED = Message(
    name="share-request-rejected",
    texts=(
        "The record state is invalid. The acknowledgement of delivery could not be completed.",
        "The share session was not found.",
        "The share session epoch is invalid.",
        "The limit of share sessions has been reached.",
        "The coordinator rejected the request because the state epoch did not match.",
        "Write request leader epoch is smaller than last recorded current: {}, requested: {}.",
        "Write request state epoch is smaller than last recorded current: {}, requested: {}.",
        "Failed to initialize the share partition: {partition}",
        "Failed to initialize the share partition: {partition}. Exception occurred: {cause}.",
    ),
    exceptions=(
        "INVALID_RECORD_STATE",
        "InvalidRecordStateException",
        "SHARE_SESSION_NOT_FOUND",
        "INVALID_SHARE_SESSION_EPOCH",
        "SHARE_SESSION_LIMIT_REACHED",
        "FENCED_STATE_EPOCH",
        "FencedStateEpochException",
    ),
    source="SharePartition, ShareCoordinatorShard, Errors",
    releases=f"4.0 to {LAST}",
    meaning="A share group's request does not fit the state of its share partition",
    cause="An acknowledgement after the lock expired, a change of the leader, or a state of an older epoch",
    impact="The record is delivered again, up to group.share.delivery.count.limit times",
    commands=(GROUPS, "kdump verify {disk} --topic __share_group_state"),
    action="groups shows the state of the share partitions. If none can be initialized, look at __share_group_state",
)

TOPIC_REQUEST = Message(
    name="topic-request-rejected",
    texts=(
        "Topic with this name already exists.",
        "Topic '{topic}' already exists.",
        "Replication factor is below 1 or larger than the number of available brokers.",
        "Unable to replicate the partition {} time(s): {reason}",
        "Unable to replicate the partition {} time(s): All brokers are currently fenced or in controlled shutdown.",
        "Request parameters do not satisfy the configured policy.",
        "A partition reassignment is in progress.",
        "The request attempted to perform an operation on an invalid topic.",
        "Topic '{topic}' collides with existing topic: {}",
    ),
    exceptions=(
        "TOPIC_ALREADY_EXISTS",
        "TopicExistsException",
        "INVALID_REPLICATION_FACTOR",
        "InvalidReplicationFactorException",
        "INVALID_PARTITIONS",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_TOPIC_EXCEPTION",
        "InvalidTopicException",
        "POLICY_VIOLATION",
        "PolicyViolationException",
        "REASSIGNMENT_IN_PROGRESS",
        "NO_REASSIGNMENT_IN_PROGRESS",
        "TOPIC_DELETION_DISABLED",
        "THROTTLING_QUOTA_EXCEEDED",
        "INVALID_REQUEST",
        "InvalidRequestException",
        "RESOURCE_NOT_FOUND",
        "DUPLICATE_RESOURCE",
        "OPERATION_NOT_ATTEMPTED",
    ),
    source="ReplicationControlManager, Errors",
    meaning="The controller rejects a change of topics or partitions",
    cause="The topic exists, brokers are fenced or fewer than the replication factor, or a policy forbids it",
    impact="Nothing was changed",
    commands=("kdump cluster {disk} --show brokers", "kdump cluster {disk} --topic {topic}"),
    action="Compare the request with the brokers and topics in the metadata",
)

ELECTION = Message(
    name="election-not-possible",
    texts=(
        "Eligible topic partition leaders are not available.",
        "The preferred leader was not available.",
        "Leader election not needed for topic partition.",
        "The new ISR contains at least one ineligible replica.",
        "The AlterPartition request successfully updated the partition state but the leader has changed.",
        "Failed to alter partition to {} since the controller rejected the request with {error}. Partition state has "
        "been reset to the latest committed state {}.",
        "Failed to alter partition to {} because the partition epoch is invalid. Partition state may be out of sync, "
        "awaiting new the latest metadata.",
    ),
    exceptions=(
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "ELECTION_NOT_NEEDED",
        "INELIGIBLE_REPLICA",
        "NEW_LEADER_ELECTED",
        "STALE_CONTROLLER_EPOCH",
    ),
    source="ReplicationControlManager, Partition, Errors",
    meaning="The controller did not change the leader or the in-sync replicas of a partition as it was asked to",
    cause="No in-sync replica runs, a broker is fenced or shutting down, or the request was late",
    impact="The partition keeps its state; without a leader it is offline",
    commands=(PROBLEMS, "kdump doctor {disk}"),
    action="Start the broker with the last in-sync replica. doctor names it",
    never="Do not elect an unclean leader before you have compared the replicas",
)

REPLICA_NOT_READY = Message(
    name="replica-not-ready",
    texts=(
        "The replica is not available for the requested topic-partition. {}",
        "The broker is not available.",
        "The leader high watermark has not caught up from a recent leader election so the offsets cannot be "
        "guaranteed to be monotonically increasing.",
        "There is no listener on the leader broker that matches the listener on which metadata request was processed.",
        "Broker: Replica not available",
        "Broker: Broker not available",
    ),
    exceptions=(
        "REPLICA_NOT_AVAILABLE",
        "BROKER_NOT_AVAILABLE",
        "BrokerNotAvailableException",
        "OFFSET_NOT_AVAILABLE",
        "OffsetNotAvailableException",
        "LISTENER_NOT_FOUND",
        "OFFSET_MOVED_TO_TIERED_STORAGE",
        "REBOOTSTRAP_REQUIRED",
    ),
    source="Errors, Partition, KafkaApis",
    meaning="The broker cannot answer for the partition yet",
    cause="A leader election, a replica that is moved, or a listener that the leader does not have",
    impact="The client asks again",
    commands=(PROBLEMS,),
    action=AGAIN,
)

FETCH_SESSION = Message(
    name="fetch-session-lost",
    texts=(
        "Node {nodeId} was unable to process the fetch request with (sessionId={}, epoch={}): {error}.",
        "The fetch session ID was not found.",
        "The fetch session epoch is invalid.",
        "The fetch session encountered inconsistent topic ID usage.",
    ),
    exceptions=(
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_TOPIC_ID_ERROR",
        "INVALID_FETCH_SIZE",
    ),
    source="FetchSessionHandler, Errors",
    meaning="The broker has forgotten the fetch session of a consumer or follower",
    cause="A restart of the broker, more than max.incremental.fetch.session.cache.slots sessions, or an upgrade",
    impact="None: the next fetch opens a new one",
    action=AGAIN,
    at_info=True,
)

QUORUM_REJECTED = Message(
    name="quorum-request-rejected",
    texts=(
        "Indicates that the either the sender or recipient of a voter-only request is not one of the expected voters.",
        "The voter key doesn't match the receiving replica's key.",
        "The voter is already part of the set of voters.",
        "The voter is not part of the set of voters.",
        "Requested snapshot was not found.",
        "Requested position is not greater than or equal to zero, and less than the size of the snapshot.",
        "The latest computed high watermark {} is smaller than the current value {}, which should only happen when "
        "voter set membership changes. If the voter set has not changed this suggests that one of the voters has lost "
        "committed data.",
    ),
    exceptions=(
        "INCONSISTENT_VOTER_SET",
        "INVALID_VOTER_KEY",
        "DUPLICATE_VOTER",
        "VOTER_NOT_FOUND",
        "SNAPSHOT_NOT_FOUND",
        "POSITION_OUT_OF_RANGE",
        "UNKNOWN_CONTROLLER_ID",
        "MISMATCHED_ENDPOINT_TYPE",
        "UNSUPPORTED_ENDPOINT_TYPE",
    ),
    source="KafkaRaftClient, LeaderState, Errors",
    releases=f"3.0 to {LAST}",
    meaning="Controllers disagree about who votes, or about a snapshot",
    cause="Nodes with different controller.quorum.voters, a controller that was formatted again (another "
    "directory.id), or a voter that lost its log",
    impact="The node does not take part in the quorum; with too few others there is no leader",
    commands=(QUORUM, "kdump restart-plan {disk}", "kdump verify {disk}/__cluster_metadata-0"),
    action="Compare directory.id of each controller with the voters that restart-plan shows",
    never="Do not format a second controller before the first has joined again",
    incident="metadata-log",
    plan=True,
)

FEATURE_UPDATE = Message(
    name="feature-update-failed",
    texts=(
        "The given update version was invalid.",
        "Unable to update finalized features due to an unexpected server error.",
        "The update failed for all features since the following feature had an error: {reason}",
    ),
    exceptions=("INVALID_UPDATE_VERSION", "FEATURE_UPDATE_FAILED", "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
    source="FeatureControlManager, Errors",
    releases=f"2.8 to {LAST}",
    meaning="A feature level, such as metadata.version, was not changed",
    cause="A node does not support it, or the change would lose metadata",
    impact="The levels are as before",
    commands=(CLUSTER, "kdump cluster {disk} --show brokers"),
    action="cluster shows the levels, and what each node supports",
)

CLIENT_REJECTED = Message(
    name="client-not-supported",
    texts=(
        "The requesting client does not support the compression type of given partition.",
        "The broker does not support the requested SASL mechanism.",
        "Security features are disabled.",
        "Client sent a push telemetry request larger than the maximum size the broker will accept.",
        "Produce request specified an invalid value for required acks.",
        "Invalid receive (size = {size} larger than {limit})",
        "Invalid receive (size = {size})",
    ),
    exceptions=(
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_SASL_MECHANISM",
        "ILLEGAL_SASL_STATE",
        "SECURITY_DISABLED",
        "INVALID_REQUIRED_ACKS",
        "InvalidReceiveException",
        "INVALID_PRINCIPAL_TYPE",
        "PRINCIPAL_DESERIALIZATION_FAILURE",
        "UNACCEPTABLE_CREDENTIAL",
        "DELEGATION_TOKEN_AUTH_DISABLED",
        "DELEGATION_TOKEN_NOT_FOUND",
        "DELEGATION_TOKEN_OWNER_MISMATCH",
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_EXPIRED",
        "UNKNOWN_SUBSCRIPTION_ID",
        "TELEMETRY_TOO_LARGE",
    ),
    source="NetworkReceive, Errors",
    meaning="The broker does not support what the client asks for, or cannot read its request",
    cause="An old client, a wrong security protocol or port (a TLS handshake read as a size), or a missing setting",
    impact="The client is not served",
    commands=("kdump stats {path}", CONFIGS),
    action="Compare the client's settings and port with the listeners. stats shows which codecs the topic has",
)

STREAMS_GROUP = Message(
    name="streams-group-rejected",
    texts=(
        "The supplied topology is invalid.",
        "The supplied topology epoch is invalid.",
        "The supplied topology epoch is outdated.",
    ),
    exceptions=(
        "STREAMS_INVALID_TOPOLOGY",
        "STREAMS_INVALID_TOPOLOGY_EPOCH",
        "STREAMS_TOPOLOGY_FENCED",
        "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED",
    ),
    source="GroupMetadataManager, Errors",
    releases=f"4.1 to {LAST}",
    meaning="The coordinator rejects the topology of a Streams application",
    cause="Instances with different versions of the application in one group",
    impact="The instance does not get tasks",
    commands=(GROUPS,),
    action="Run one version, or change application.id",
)

CLEANER_BUFFER = Message(
    name="cleaner-buffer-too-small",
    texts=(
        "requirement failed: {number} messages in segment {} but offset map can fit only {limit}. You can increase "
        "log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads",
        "requirement failed: offset map is too small to fit in even a single message, so log cleaning will never make "
        "progress. You can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads",
        "offset map is too small to fit in even a single message, so log cleaning will never make progress. You can "
        "increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads",
    ),
    source="Cleaner (LogCleaner before 4.0)",
    releases=f"messages in segment: before 1.0; too small: {SUPPORTED}",
    meaning="The keys of a segment do not fit into the buffer of one cleaner thread",
    cause="log.cleaner.dedupe.buffer.size (128 MiB for all threads) takes 5 million keys a thread; a segment of small "
    "records has more",
    impact="The cleaner thread stops, or the partition is not compacted: it grows, and tombstones stay",
    commands=("kdump retention {path} --keys", "kdump ls {path} --segments"),
    action="Raise log.cleaner.dedupe.buffer.size, or lower log.cleaner.threads, and restart the broker. Lower "
    "segment.bytes of the topic",
    never="Do not delete cleaner-offset-checkpoint: the cleaner meets the same segment again",
    incident="compaction-stopped",
)

LOST_AND_FOUND = Message(
    name="lost-and-found-in-log-directory",
    texts=(
        "Found directory {file}, 'lost+found' is not in the form of topic-partition{}",
        "Found directory {file}, 'lost+found' is not in the form of topic-partition or topic-partition.uniqueId-delete "
        "(if marked for deletion).{}",
    ),
    source="LocalLog (Log before 3.0)",
    meaning="The log directory is the root of a file system, which has a directory lost+found",
    cause="log.dirs is the mount point itself",
    impact="The broker exits at startup",
    commands=("kdump restart-plan {disk}",),
    action="If lost+found is empty, move it out of the log directory: fsck makes it again when it needs it. Better, "
    "make log.dirs a subdirectory of the mount",
    never="Do not delete it before you have looked into it: fsck puts there what it saves after a crash, perhaps "
    "segments",
    codes=("directory-unknown",),
    plan=True,
)

APPEND_OFFSET = Message(
    name="append-offset-unexpected",
    texts=(
        "Unexpected offset in append to {partition}. {} {offset} is less than the next offset {endOffset}. {}",
        "Unexpected offset in append to {partition}. First offset {offset} is less than log start offset "
        "{baseOffset}. Since this is the first record to be appended to the follower's log, will start the log from "
        "offset {}.",
        "Cannot increment the log start offset to {offset} of partition {partition} since it is larger than the high "
        "watermark {endOffset}",
    ),
    exceptions=("UnexpectedAppendOffsetException",),
    source="UnifiedLog, Partition",
    meaning="A follower or a future replica gets records, or a log start offset, that do not fit the end of its log",
    cause="The replicas diverge: one of them was restored, truncated or copied; or its leader's log starts inside a "
    "batch",
    impact="The follower does not replicate the partition. With a log that begins inside a batch, it begins anew there",
    commands=("kdump ls {path} --segments", "kdump diff {path} COPY-OF-ANOTHER-REPLICA"),
    action="Compare the ends and leader epochs of the replicas with diff",
    never="Do not delete the follower's directory before you know that the leader has all committed records",
    incident="diverged-replicas",
)

ZOOKEEPER = Message(
    name="zookeeper-not-reachable",
    texts=(
        "Timed out waiting for connection while in state: {}",
        "Session expired either before or while waiting for connection",
        "ZooKeeper session expired{}",
    ),
    exceptions=("ZooKeeperClientTimeoutException", "ZooKeeperClientExpiredException", "SessionExpiredException"),
    source="ZooKeeperClient",
    releases="2.8 to 3.9",
    meaning="The broker does not reach ZooKeeper, or was too slow to keep its session",
    cause="ZooKeeper is down or cannot be reached, or a long pause of the broker (garbage collection, a slow disk)",
    impact="At startup the broker exits. Later its partitions get other leaders until it is registered again",
    commands=("kdump restart-plan {disk}",),
    action="Start ZooKeeper first. Its snapshots have the topics: a broker with an empty ZooKeeper deletes nothing, "
    "but serves nothing",
    never="Do not start a broker against an empty or another ZooKeeper",
)

JMX_NAME = Message(
    name="jmx-name-in-use",
    texts=("Error registering AppInfo mbean",),
    exceptions=("InstanceAlreadyExistsException",),
    source="AppInfoParser",
    meaning="Two clients in one process have the same client.id, so one of them has no metrics",
    cause="The same client.id was configured twice",
    impact="None for records. Quotas and metrics count both as one",
    action="Give each client its own client.id",
)

COPARTITIONING = Message(
    name="streams-copartitioning-invalid",
    texts=(
        "{}Following topics do not have the same number of partitions: [{}]",
        "{}Number of partitions [{}] of repartition topic [{topic}] doesn't match number of partitions [{}] of the "
        "source topic.",
    ),
    source="CopartitionedTopicsEnforcer (Kafka Streams)",
    meaning="Topics that an application joins have different numbers of partitions",
    cause="One of them was created or extended with another number",
    impact="The application does not start",
    commands=("kdump cluster {disk} --show topics",),
    action="Compare the topics, and write one of them into a new topic with the same number of partitions",
    never="Do not add partitions to a topic with keys: they then go to other partitions than before",
)

COORDINATOR_WRITE = Message(
    name="coordinator-record-too-large",
    texts=(
        "Failed to write a batch of {} record(s) to {partition} because it is larger than the maximum batch size of "
        "{limit} bytes. This usually means that a single record is too large. Consider increasing the maximum batch "
        "size.",
        "Failed to flush the pending records to {partition}: {cause}.",
    ),
    source="CoordinatorRuntime",
    releases=f"4.0 to {LAST}",
    meaning="A coordinator could not write to its partition of __consumer_offsets or __share_group_state",
    cause="The record of a large group is above message.max.bytes; or the partition has too few in-sync replicas",
    impact="The members of the group cannot join, or offsets are not committed",
    commands=("kdump groups {disk}", "kdump stats {path}", PROBLEMS),
    action="Raise max.message.bytes of the topic, or make the group smaller (members, topics)",
)
