"""Messages of replication: followers, leaders, and the in-sync replicas."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

DESCRIBE = "kafka-topics.sh --bootstrap-server HOST:9092 --describe --topic {topic}"
DIFF = "kdump diff {path} COPY-OF-ANOTHER-REPLICA"

NOT_ENOUGH_REPLICAS = Message(
    name="not-enough-replicas",
    texts=(
        "The size of the current ISR {} is insufficient to satisfy the min.isr requirement of {limit} for "
        "partition {partition}, live replica(s) broker.id are : {}",
        "The size of the current ISR {} is insufficient to satisfy the min.isr requirement of {limit} for "
        "partition {partition}",
        "Messages are rejected since there are fewer in-sync replicas than required.",
        "Messages are written to the log, but to fewer in-sync replicas than required.",
        "Broker: Not enough in-sync replicas",
    ),
    exceptions=(
        "NotEnoughReplicasException",
        "NOT_ENOUGH_REPLICAS",
        "NotEnoughReplicasAfterAppendException",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NotEnoughReplicasError",
    ),
    source="Partition, Errors",
    meaning="Fewer replicas are in sync than min.insync.replicas; producers with acks=all are rejected",
    cause="A broker is down or slow, or a follower cannot fetch (for example because of a damaged batch)",
    impact="Nothing can be produced with acks=all. Nothing is lost",
    commands=(DESCRIBE, "kdump cluster {disk} --show partitions --topic {topic}", "kdump verify {path}"),
    action="Bring the missing replicas back: look in their logs for why they do not fetch",
    never="Do not lower min.insync.replicas before you know that the remaining replica is intact",
)

FETCHER_TRUNCATES = Message(
    name="follower-truncates",
    texts=(
        "Truncating partition {partition} with TruncationState(offset={offset}, completed={}) due to leader "
        "epoch and offset {}",
        "Truncating partition {partition} with TruncationState(offset={offset}, truncationCompleted={}) due to "
        "leader epoch and offset {}",
        "Truncating partition {partition} to offset {offset} below high watermark {endOffset}",
        "Truncating {partition}{} to offset {offset} below high watermark {endOffset}",
        "Truncating to offset {offset}",
        "Truncating {partition} to {offset} has no effect as the largest offset in the log is {endOffset}",
        "Truncating to {offset} has no effect as the largest offset in the log is {endOffset}",
        "Reset fetch offset for partition {partition} from {offset} to current leader's latest offset {endOffset}",
        "Reset fetch offset for partition {partition} from {offset} to current leader's start offset {endOffset}",
    ),
    source="ReplicaFetcherThread, AbstractFetcherThread, UnifiedLog, LocalLog",
    meaning="This replica removes the end of its log, because the leader has other records there, or none",
    cause="A change of leader. Records that only this replica had were not acknowledged with acks=all, unless the "
    "election was unclean or the leader lost its disk",
    impact="Below the high watermark, records that consumers may have read are lost on this replica",
    commands=(DIFF, "kdump ls {path}", "cat {path}/leader-epoch-checkpoint"),
    action="If it is below the high watermark, stop the other replicas that have not truncated yet, and compare them",
    never="Do not enable unclean.leader.election.enable to get a partition back before you have copied all replicas",
    codes=("leader-epoch-checkpoint-mismatch",),
    incident="diverged-replicas",
    at_info=True,
)

FETCHER_FAILED = Message(
    name="follower-stopped-fetching",
    texts=(
        "Error while processing data for partition {partition} at offset {offset}",
        "Error while processing data for partition {partition}",
        "Unexpected error occurred while processing data for partition {partition} at offset {offset}",
        "Unexpected error occurred while processing data for partition {partition}",
        "Found invalid messages during fetch for partition {partition} offset {offset}",
        "Partition {partition} marked as failed",
        "Error getting offset for partition {partition}",
        "Error in response for fetch request {}",
        "Unable to start fetching {partition} with topic ID {topicId} due to a storage error {cause}",
        "Unable to start fetching {partition} with topic ID {topicId} due to {reason}",
        "Unable to start fetching {partition} with topic ID {topicId}",
        "Skipped the become-follower state change {} for partition {partition} {}",
    ),
    source="AbstractFetcherThread, ReplicaManager",
    meaning="This broker does not replicate a partition (any more)",
    cause="The exception below it: a batch from the leader that is damaged or does not fit, or a log that could not be "
    "opened",
    impact="The replica leaves the ISR. A partition that is marked as failed is not retried until a restart or a new "
    "leader",
    commands=("kdump verify {path}", DIFF, DESCRIBE),
    action="Read the exception. If the batch on the leader is damaged, elect a replica that has it intact",
    never="Do not delete this replica's directory while it may have the only intact copy",
    codes=("crc-mismatch",),
    incident="flipped-bit-after-shutdown",
    plan=True,
    general=True,
)

NOT_LEADER = Message(
    name="not-leader-or-follower",
    texts=(
        "Topic {topic} not found in cluster metadata",
        "Log for partition {partition} is not available on broker {nodeId}",
        "For requests intended only for the leader, this error indicates that the broker is not the current "
        "leader. For requests intended for any replica, this error indicates that the broker is not a replica of "
        "the topic partition.",
        "Error while fetching metadata with correlation id {} : {{topic}={error}}",
        "Got error produce response with correlation id {} on topic-partition {partition}, retrying ({} attempts "
        "left). Error: {error}",
        "Received invalid metadata error in produce request on partition {partition} due to {reason}. Going to "
        "request metadata update now",
        "The metadata response from the cluster reported a recoverable issue with correlation id {} : "
        "{{topic}={error}}",
    ),
    exceptions=(
        "NotLeaderOrFollowerException",
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_LEADER_FOR_PARTITION",
        "NotLeaderForPartitionError",
        "LEADER_NOT_AVAILABLE",
        "LeaderNotAvailableError",
        "UNKNOWN_LEADER_EPOCH",
        "FENCED_LEADER_EPOCH",
        "UnknownTopicOrPartitionException",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UnknownTopicOrPartitionError",
        "ReplicaNotAvailableException",
    ),
    source="Partition, ReplicaManager, NetworkClient, Sender",
    meaning="The broker that was asked does not lead (or have) the partition, or the topic does not exist",
    cause="A change of leader or a new topic: clients then refresh their metadata. If it lasts: no replica is alive, "
    "or the topic was deleted",
    impact="None if it passes within seconds",
    commands=(DESCRIBE, "kdump cluster {disk} --show partitions --topic {topic}"),
    action="If it lasts, look who the leader is, and in that broker's log for why it does not serve the partition",
)

ISR_SHRUNK = Message(
    name="isr-changed",
    texts=(
        "Shrinking ISR from {} to {}. Leader: (highWatermark: {offset}, endOffset: {endOffset}). Out of sync "
        "replicas: {}",
        "Failed to update ISR to {} {}",
        "Failed to enqueue ISR change state {}",
    ),
    source="Partition",
    meaning="A follower has not caught up within replica.lag.time.max.ms and is no longer in sync",
    cause="The follower is down, slow, or cannot fetch a batch",
    impact="With too few replicas in sync, producers with acks=all are rejected",
    commands=(DESCRIBE, DIFF),
    action="Look into the follower's log",
    at_info=True,
)

APPEND_FAILED = Message(
    name="append-failed",
    texts=(
        "Error processing append operation on partition {topicId}:{partition}",
        "Error processing append operation on partition {partition}",
        "Error processing append operation on partition {partition}{}",
    ),
    source="ReplicaManager",
    meaning="The leader could not append a batch, or rejects it",
    cause="The exception below it: a sequence that does not follow, an invalid batch, or an error of the file",
    impact="The producer gets the error",
    commands=("kdump producers {path}", "kdump verify {path}"),
    action="Read the exception",
    codes=("snapshot-mismatch", "segment-name-mismatch"),
    plan=True,
    general=True,
)
