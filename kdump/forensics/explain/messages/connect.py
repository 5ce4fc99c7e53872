"""Messages of Kafka Connect, MirrorMaker 2, and the schema registry."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

RETENTION = "kdump retention {disk} --topic {topic}"
CONFIGS = "kdump cluster {disk} --show configs"
TASK = "curl -X POST http://WORKER:8083/connectors/NAME/tasks/N/restart"

TOPIC_NOT_COMPACTED = Message(
    name="connect-topic-not-compacted",
    texts=(
        "Topic '{topic}' supplied via the '{}' property is required to have 'cleanup.policy=compact' to guarantee "
        "consistency and durability of {}, but found the topic currently has 'cleanup.policy={}'{}",
    ),
    source="TopicAdmin, KafkaTopicBasedBackingStore (Connect)",
    meaning="Connect's topic of configs, offsets or statuses has cleanup.policy=delete: its records are deleted by age",
    cause="The brokers created it by themselves (auto.create.topics.enable), or the topic was altered",
    impact="The worker does not start. What retention has deleted is lost: connectors, or the offsets of sources, "
    "which then read everything again",
    commands=(RETENTION, CONFIGS, "kdump inspect {path} --records"),
    action="Set cleanup.policy=compact now: retention shows when the oldest segment is deleted. Copy the partition's "
    "directories first",
    never="Do not delete the topic to have Connect create it again: the offsets of the connectors are in it",
)

CONFIG_TOPIC_PARTITIONS = Message(
    name="connect-config-topic-partitions",
    texts=(
        "Topic '{topic}' supplied via the '{}' property is required to have a single partition in order to guarantee "
        "consistency of connector configurations, but found {} partitions.",
    ),
    source="KafkaConfigBackingStore (Connect)",
    meaning="Connect's topic of configs has several partitions, so its records have no order",
    cause="The brokers created it by themselves, with num.partitions",
    impact="The worker does not start",
    commands=("kdump ls {disk} --topic {topic}", "kdump inspect {path} --records"),
    action="Create a topic with one partition, copy the last record of each key into it, and configure that",
    never="Do not delete the topic before its records are copied",
)

OFFSET_FLUSH = Message(
    name="connect-offsets-not-written",
    texts=(
        "{} Failed to flush offsets to storage: {cause}",
        "Failed to flush, timed out while waiting for producer to flush outstanding {} messages",
        "{} Failed to commit offsets",
        "{} Commit of offsets timed out",
        "{} Commit of offsets failed due to exception: {cause}",
        "Failed to write offsets to secondary backing store",
        "Skipping offsets write to secondary store because primary write has failed",
    ),
    source="WorkerSourceTask, WorkerSinkTask, SourceTaskOffsetCommitter, ConnectorOffsetBackingStore (Connect)",
    meaning="A connector could not store how far it has got",
    cause="The offsets topic or __consumer_offsets has no leader or too few replicas, the producer is too slow for "
    "offset.flush.timeout.ms, or the group rebalances",
    impact="After a restart the connector goes on at the last stored offset: records are written twice",
    commands=("kdump groups {disk}", "kdump doctor {disk}"),
    action="groups shows what is stored of a sink connector; inspect --records of the offsets topic that of a source",
)

TASK_KILLED = Message(
    name="connect-task-failed",
    texts=(
        "{} Task threw an uncaught and unrecoverable exception. Task is being killed and will not recover until "
        "manually restarted. Error: {cause}",
        "{} Task threw an uncaught and unrecoverable exception. Task is being killed and will not recover until "
        "manually restarted",
        "Exiting WorkerSinkTask due to unrecoverable exception.",
        "Tolerance exceeded in error handler",
        "Unrecoverable exception from producer send callback",
        "Unrecoverable exception trying to send",
    ),
    source="WorkerTask, WorkerSinkTask, RetryWithToleranceOperator (Connect)",
    meaning="A task of a connector has stopped with the exception below",
    cause="The exception",
    impact="The task does nothing until it is restarted by hand; its offsets stay where they are",
    commands=("kdump groups {disk}", TASK),
    action="Explain the exception. If it is about a record, look at it, and restart the task",
    general=True,
)

CONVERTER = Message(
    name="record-format-unexpected",
    texts=(
        "Unknown magic byte!",
        'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
        "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
        "configuration.",
        "Converting byte[] to Kafka Connect data failed due to serialization error: {cause}",
        "Failed to deserialize data for topic {topic} to Avro: {cause}",
        "Failed to deserialize data for topic {topic} to Protobuf: {cause}",
    ),
    exceptions=("DataException",),
    source="JsonConverter, AbstractKafkaSchemaSerDe",
    meaning="A key or value is not in the format that the converter or deserializer expects",
    cause="Another producer writes another format (JSON without a schema, a string, a schema registry's five-byte "
    "header or none), or the wrong converter is configured",
    impact="A consumer or connector stops at this record, or skips it",
    commands=("kdump inspect {path} --offset {offset} --records --full", "kdump stats {path}"),
    action="Look at the bytes: a value that begins with 0 and a four-byte schema ID is a schema registry's",
)

SCHEMA_UNKNOWN = Message(
    name="schema-not-found",
    texts=(
        "Error retrieving {} schema for id {number}",
        "Error retrieving {} schema{}",
        "Schema {} not found; error code: 40403",
        "Schema not found; error code: 40403",
        "Subject '{}' not found.; error code: 40401",
    ),
    source="AbstractKafkaSchemaSerDe, SchemaRegistryClient",
    meaning="The schema registry does not have the schema of a record",
    cause="The topic _schemas lost records (cleanup.policy=delete, a restored or new cluster), or the record is of "
    "another registry",
    impact="Records with that schema ID cannot be decoded",
    commands=("kdump inspect {disk}/_schemas-0 --records", "kdump retention {disk} --topic _schemas"),
    action="Look for the schema ID in _schemas, also of a copy of the disk; register it again under the same ID "
    "(mode IMPORT)",
    never="Do not register it under a new ID: the records have the old one",
)

SCHEMAS_TOPIC = Message(
    name="schemas-topic-not-compacted",
    texts=(
        "The retention policy of the schema topic {topic} is incorrect. You must configure the topic to 'compact' "
        "cleanup policy to avoid Kafka deleting your schemas after a week.{}",
        "The retention policy of the schema topic {topic} is incorrect.{}",
    ),
    source="KafkaStore (Schema Registry)",
    meaning="The topic of the schemas has cleanup.policy=delete: schemas are deleted by age",
    cause="The brokers created it by themselves, or the topic was altered",
    impact="The registry does not start. A schema that retention has deleted is lost, and its records cannot be "
    "decoded",
    commands=(RETENTION, CONFIGS, "kdump inspect {disk}/_schemas-0 --records"),
    action="Set cleanup.policy=compact now: retention shows when the oldest segment is deleted. Copy the partition's "
    "directory first",
    never="Do not delete the topic",
)

WORKER_LEFT = Message(
    name="connect-worker-left-group",
    texts=(
        "worker poll timeout has expired. The last known action being performed by the worker is : {}",
        "worker poll timeout has expired.{}",
        "Current config state offset {} does not match group assignment {}. Forcing rebalance.",
        "Join group completed, but assignment failed and we are lagging. Reading to end of config and retrying.",
    ),
    source="WorkerCoordinator, DistributedHerder (Connect)",
    meaning="A worker has left the group of workers, or is behind in its topic of configs",
    cause="A connector that takes longer than rebalance.timeout.ms to start or stop; or workers that read different "
    "topics of configs under one group.id",
    impact="Connectors and tasks are assigned again",
    commands=("kdump groups {disk}", "kdump ls {disk} --topic '*connect*'"),
    action="If it repeats, compare config.storage.topic and group.id of all workers, and the end of that topic",
)

ZOMBIE = Message(
    name="connect-exactly-once-fenced",
    texts=(
        "Failed to perform round of zombie fencing",
        "Failed to perform zombie fencing for source connector prior to modifying offsets",
        "The task {} was unable to finish writing records to Kafka before its producer transaction expired. {}",
        "{} Failed to commit producer transaction",
        "Unable to claim write privileges for config topic. Will backoff and possibly retry if still the leader",
    ),
    source="DistributedHerder, ExactlyOnceWorkerSourceTask (Connect)",
    releases=f"3.3 to {LAST}",
    meaning="With exactly-once sources: a task's producer was fenced, or older tasks could not be fenced",
    cause="A transaction longer than transaction.timeout.ms, a coordinator that cannot be reached, or missing ACLs",
    impact="The task fails; its open transaction is aborted, and consumers of committed records wait until then",
    commands=("kdump transactions {disk} --coordinator", TASK),
    action="Look in which state the transaction of the task is",
)

CONFIG_TOPIC_READ = Message(
    name="connect-config-topic-unreadable",
    texts=(
        "Failed to read to end of config topic",
        "Failed to write to config topic; this may be due to a transient error and the request can be safely retried",
        "Timeout while reading log to end for topic '{topic}'. Retrying automatically. This may occur when brokers are "
        "unavailable or unreachable. Reason: {cause}",
        "Retriable error while reading log to end for topic '{topic}'. Retrying automatically. Reason: {cause}",
        "Unexpected exception in {}, topic={topic}",
    ),
    source="DistributedHerder, KafkaBasedLog (Connect)",
    meaning="A worker cannot read one of Connect's own topics to its end",
    cause="The partition has no leader, a batch of it is damaged, or an open transaction blocks its last stable offset",
    impact="The worker does not start, or does not see new configs",
    commands=("kdump verify {disk} --topic {topic}", "kdump transactions {disk} --topic {topic}"),
    action="Let verify read the topic, and look for open transactions in it",
    codes=("crc-mismatch", "transaction-open"),
)

CHECKPOINTS = Message(
    name="mirror-checkpoints-unavailable",
    texts=(
        "Exception encountered loading checkpoints topic {topic} - this may degrade offset translation as only "
        "checkpoints for offsets which were mirrored after the task started will be emitted",
        "Not authorized to access checkpoints topic {topic} - this may degrade offset translation as only checkpoints "
        "for offsets which were mirrored after the task started will be emitted",
        "Ignored invalid checkpoint record at offset {offset}",
        "Error querying offsets for consumer group {group} on cluster {}.",
        "Failure polling consumer state for checkpoints.",
    ),
    source="CheckpointStore, MirrorCheckpointTask (MirrorMaker 2)",
    releases=f"3.5 to {LAST}",
    meaning="MirrorMaker cannot translate committed offsets from before its start",
    cause="Its topic of checkpoints cannot be read, or has records that are none",
    impact="Groups that move to the other cluster read records again",
    commands=("kdump verify {disk} --topic {topic}", "kdump inspect {disk}/{topic}-0 --records"),
    action="Look whether the checkpoints topic and mm2-offset-syncs are compacted and intact",
)

OFFSET_SYNC = Message(
    name="mirror-group-offsets-not-synced",
    texts=(
        "Unable to sync offsets for consumer group {group}. This is likely caused by consumers currently using this "
        "group in the target cluster.",
        "Unable to sync offsets for consumer group {group}.",
        "Group {group} offset for partition {partition} may has been reset to a negative offset, just sync the offset "
        "to target.",
    ),
    source="MirrorCheckpointTask (MirrorMaker 2)",
    meaning="MirrorMaker could not write the offsets of a group into the target cluster",
    cause="The group has members there, so its offsets are its own",
    impact="The group's offsets on the target stay as they are",
    commands=("kdump groups {disk} --group {group} --history",),
    action="Stop the group's consumers on one of the two clusters",
)

MIRROR_FAILED = Message(
    name="mirror-source-failed",
    texts=(
        "Failure during poll.",
        "Could not create topic {topic}.",
        "Could not create topic-partitions for {topic}.",
        "Could not alter configuration of topic {topic}.",
        "{} caught exception in scheduled task: {}",
    ),
    source="MirrorSourceTask, MirrorSourceConnector, Scheduler (MirrorMaker 2)",
    meaning="MirrorMaker could not read a source partition, or create a topic on the target",
    cause="The exception below: a cluster that cannot be reached, missing rights, or a batch that cannot be decoded",
    impact="The topic is not mirrored; the copy is behind",
    commands=("kdump verify {disk} --topic {topic} --crc",),
    action="Explain the exception",
    general=True,
)
