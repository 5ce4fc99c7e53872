"""Messages of Kafka Streams."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

CHANGELOG = "kdump ls {disk} --topic '*-changelog'"
GROUPS = "kdump groups {disk}"

TASK_CORRUPTED = Message(
    name="streams-task-corrupted",
    texts=(
        "Get exceptions for the following tasks: {{}={cause}",
        "Tasks [{}] are corrupted and hence need to be re-initialized{}",
        "Detected the states of tasks {} are corrupted. Will close the task as dirty and re-create and bootstrap from "
        "scratch.",
        "Encountered {} fetching records from restore consumer for partitions {}, it is likely that the consumer's "
        "position has fallen out of the topic partition offset range because the topic was truncated or compacted on "
        "the broker, marking the corresponding tasks as corrupted and re-initializing it later.",
        "State store {} did not find checkpoint offsets while stores are not empty, since under EOS it has the risk of "
        "getting uncommitted data in stores we have to treat it as a task corruption error and wipe out the local "
        "state of task {} before re-bootstrapping",
    ),
    exceptions=("TaskCorruptedException",),
    source="TaskManager, StreamThread, StoreChangelogReader, ProcessorStateManager (Kafka Streams)",
    meaning="A task deletes its local state and rebuilds it from its changelog topic",
    cause="With exactly-once: an unclean stop of the application. Otherwise its position is outside the changelog, "
    "which was truncated, deleted, or created again, or the local store is damaged",
    impact="The task does not process until it is restored. What the changelog has lost is lost in the store, too",
    commands=(CHANGELOG, "kdump verify {disk} --crc", "kdump retention {disk}"),
    action="Compare the range of the changelog on the brokers' disks with the offset in the lines before. If the log "
    "is shorter than it was, look for the records on another replica first",
    never="Do not reset the application while you look for records of a changelog: that deletes its topics",
)

TASK_MIGRATED = Message(
    name="streams-task-migrated",
    texts=(
        "{}; it means all tasks belonging to this thread should be migrated.",
        "Detected that the thread is being fenced. This implies that this thread missed a rebalance and dropped out of "
        "the consumer group. Will close out all assigned tasks and rejoin the consumer group.",
    ),
    exceptions=("TaskMigratedException",),
    source="TaskManager, StreamThread (Kafka Streams)",
    meaning="The thread has lost its tasks to another one: it missed a rebalance, or its producer was fenced",
    cause="No poll within max.poll.interval.ms, a long pause, or a transaction above transaction.timeout.ms",
    impact="The thread joins again; what was not committed is processed again",
    commands=("kdump groups {disk} --history", "kdump transactions {disk} --coordinator"),
    action="If it repeats, process less between polls, or raise max.poll.interval.ms",
)

STATE_LOCKED = Message(
    name="streams-state-locked",
    texts=(
        "Unable to obtain lock as state directory is already locked by another process",
        "{}Failed to lock the state directory for task {}",
    ),
    exceptions=("LockException",),
    source="StateDirectory (Kafka Streams)",
    meaning="Another thread or process has the state of a task",
    cause="A thread that has not closed the task yet; or two instances with the same state.dir and application.id",
    impact="None if it passes with the next rebalance; otherwise the task does not start",
    action="Give each instance on a host its own state.dir",
    never="Do not delete the lock file of a running instance",
)

STORE_UNAVAILABLE = Message(
    name="streams-store-unavailable",
    texts=(
        "The state store, {}, may have migrated to another instance.",
        "Cannot get state store {} because the stream thread is {}, not RUNNING",
        "State store is not available anymore and may have been migrated to another instance; please re-discover its "
        "location from the state metadata.",
    ),
    exceptions=("InvalidStateStoreException", "StreamsNotStartedException", "StateStoreNotAvailableException"),
    source="WrappingStoreProvider, StreamThreadStateStoreProvider (Kafka Streams)",
    meaning="A query asks for a store that this instance does not have, or does not have yet",
    cause="A rebalance, a restoration that is going on, or a thread that has ended",
    impact="Queries fail until the store is open here, or are asked elsewhere",
    commands=(CHANGELOG,),
    action="Query again. If it lasts, look how long the changelog is, and for the first error of the thread",
)

STORE_FAILED = Message(
    name="streams-store-failed",
    texts=(
        "Error opening store {} at location {}",
        "Error opening store {}",
        "{}Exception caught while trying to restore state from {}",
        "{}Failed to write offset checkpoint file to [{}]. This may occur if OS cleaned the state.dir in case when it "
        "located in ${java.io.tmpdir} directory. {}",
    ),
    exceptions=("ProcessorStateException",),
    source="RocksDBStore, ProcessorStateManager (Kafka Streams)",
    meaning="A local store cannot be opened, written or restored",
    cause="A full disk, a state.dir below /tmp that was cleaned up, another process with the same state.dir, or damage",
    impact="The thread ends. Nothing is lost if the changelog topic is intact",
    commands=(CHANGELOG, "kdump verify {disk} --crc"),
    action="Read the exception. Before you delete the local state, check that the changelog on the brokers is intact",
    never="Do not put state.dir below /tmp",
)

INTERNAL_TOPIC = Message(
    name="streams-internal-topic-invalid",
    texts=(
        'Cleanup policy (cleanup.policy) of existing internal topic {topic} should not contain "delete".',
        'Cleanup policy (cleanup.policy) of existing internal topic {topic} should not contain "compact".',
        "Retention time (retention.ms) of existing internal topic {topic} is {} but should be {} or larger.",
        "Existing internal topic {topic} has invalid partitions: expected: {}; actual: {}. Use "
        "'org.apache.kafka.tools.StreamsResetter' tool to clean up invalid topics before processing.",
        "Existing internal topic {topic} has invalid partitions: expected: {}; actual: {}. Use "
        "'kafka.tools.StreamsResetter' tool to clean up invalid topics before processing.",
        "Internal topic {topic} requires {} partitions, but the existing topic on the broker has {} partitions.",
    ),
    source="InternalTopicManager (Kafka Streams)",
    meaning="A changelog or repartition topic has other configs, or another number of partitions, than the application "
    "needs",
    cause="The topic was altered, the input topics got more partitions, or the topology changed under one "
    "application.id",
    impact="The application does not start; or a changelog loses records by retention, and its stores with them",
    commands=("kdump cluster {disk} --topic {topic}", "kdump retention {disk} --topic {topic}"),
    action="Correct the config. For a changelog with cleanup.policy=delete, retention shows when its records go",
    never="Do not run StreamsResetter before you know that the state can be rebuilt from the input topics",
)

SOURCE_MISSING = Message(
    name="streams-source-topic-missing",
    texts=(
        "Missing source topics: {}. Timeout exceeded after {}ms.",
        "Missing source topics detected: {}. Will wait up to {}ms before failing.",
        "One or more source topics were missing during rebalance",
        "Missing metadata for source topics. Check the group leader logs for details.",
    ),
    exceptions=("MissingSourceTopicException",),
    source="StreamThread, StreamsRebalanceListener, AssignorError (Kafka Streams)",
    meaning="An input topic of the application does not exist",
    cause="It was deleted, is not created yet, or the application may not see it",
    impact="The application stops",
    commands=("kdump cluster {disk} --history --show topics",),
    action="cluster --history shows whether the topic existed, and when it was deleted. Create it again only once you "
    "know that its records are not needed",
    incident="deleted-topic",
)

NEGATIVE_TIMESTAMP = Message(
    name="streams-timestamp-invalid",
    texts=(
        "Input record {} has invalid (negative) timestamp. {}",
        "Skipping record due to negative extracted timestamp. topic=[{topic}] partition=[{number}] offset=[{offset}] "
        "extractedTimestamp=[{}] extractor=[{}]",
    ),
    source="FailOnInvalidTimestamp, RecordQueue (Kafka Streams)",
    meaning="A record has no valid timestamp",
    cause="A producer older than 0.10, a client that writes -1, or a topic that was created before an upgrade",
    impact="The thread ends, or the record is skipped",
    commands=("kdump inspect {path} --offset {offset} --records", "kdump verify {path}"),
    action="Look at the record. Use another TimestampExtractor if such records are meant",
)

DESERIALIZATION = Message(
    name="streams-record-undecodable",
    texts=(
        "Skipping record due to deserialization error. topic=[{topic}] partition=[{number}] offset=[{offset}]",
        "Exception caught during Deserialization, taskId: {}, topic: {topic}, partition: {number}, offset: {offset}",
        "Deserialization exception handler is set to fail upon a deserialization error. If you would rather have the "
        "streaming pipeline continue after a deserialization error, please set the {} appropriately.",
    ),
    source="RecordDeserializer, LogAndFailExceptionHandler (Kafka Streams)",
    meaning="A record cannot be decoded by the serde of the application",
    cause="A producer that writes another format, a schema that is missing, or bytes that changed",
    impact="The record is skipped, or the thread ends, as default.deserialization.exception.handler says",
    commands=("kdump inspect {path} --offset {offset} --records --full", "kdump verify {path}"),
    action="Look at the record, and whether its checksum matches. Then correct the producer or the serde",
)

THREAD_DIED = Message(
    name="streams-thread-died",
    texts=(
        "Encountered the following exception during processing and the thread is going to shut down:",
        "Encountered the following exception during processing and the registered exception handler opted to {}. The "
        "streams client is going to shut down now.{}",
        "Encountered the following exception during processing and sent shutdown request for the entire application.",
        "Global thread has died. The streams application or client will now close to ERROR.",
        "Error encountered sending record to topic {topic} for task {} due to:{cause}",
        "Exception caught in process. taskId={}, processor={}, topic={topic}, partition={number}, offset={offset}{}",
        "Failed to process stream task {} due to the following error:",
    ),
    exceptions=("StreamsException",),
    source="KafkaStreams, StreamThread, StreamTask, RecordCollectorImpl",
    meaning="A thread of the application has ended with the exception below",
    cause="The exception",
    impact="Its tasks move to other threads, which may meet the same exception; without threads the application stops",
    commands=("kdump inspect {path} --offset {offset} --records", GROUPS),
    action="Explain the exception. If it is about a record, look at it",
    general=True,
)

TASK_TIMEOUT = Message(
    name="streams-task-timed-out",
    texts=(
        "Task {} did not make progress within {} ms. Adjust `task.timeout.ms` if needed.",
        "Global task did not make progress to restore state within {} ms. Adjust `task.timeout.ms` if needed.",
        "Could not create internal topics within {} milliseconds. This can happen if the Kafka cluster is temporarily "
        "not available{}",
    ),
    source="AbstractTask, GlobalStateManagerImpl, InternalTopicManager (Kafka Streams)",
    meaning="A task could not go on for task.timeout.ms, because requests to brokers timed out",
    cause="A partition without a leader, too few in-sync replicas, or a coordinator that does not load",
    impact="The thread ends",
    commands=("kdump doctor {disk}", "kdump cluster {disk} --show partitions --problems"),
    action="Look which partition has no leader",
)
