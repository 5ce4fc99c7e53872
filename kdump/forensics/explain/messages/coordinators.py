"""Messages of the coordinators of groups, share groups and transactions, and of the members of groups."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

GROUPS = "kdump groups {disk} --group {group} --history"
DESCRIBE = "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --group {group} --members --verbose"

LOADING_FAILED = Message(
    name="coordinator-load-failed",
    texts=(
        "Error loading offsets from {partition}",
        "Error loading transactions from transaction log {partition}",
        "Failed to load metadata from {partition} with epoch {leaderEpoch} due to {cause}",
        "Finished loading offsets and group metadata from {partition} in {} milliseconds for epoch "
        "{leaderEpoch}, of which {} milliseconds was spent in the scheduler.",
    ),
    source="CoordinatorRuntime, CoordinatorLoaderImpl, GroupMetadataManager, TransactionStateManager",
    meaning="A coordinator could not read its partition of __consumer_offsets, __transaction_state or "
    "__share_group_state",
    cause="Bytes in that log cannot be read: zeros from a preallocated file, a damaged batch, or a record of a newer "
    "release",
    impact="All groups, or transactional IDs, of this partition have no coordinator: consumers do not start, commits "
    "and transactions fail",
    commands=("kdump verify {path}", "kdump groups {disk}", "kdump restart-plan {disk} --topic {topic}"),
    action="Let verify show the bytes. Make a broker with an intact replica the leader of the partition",
    never="Do not delete the partition's directory: it has the committed offsets of all its groups",
    codes=("zero-padding", "crc-mismatch"),
    incident="record-size-0",
    plan=True,
    general=True,
)

COORDINATOR_UNAVAILABLE = Message(
    name="coordinator-unavailable",
    texts=(
        "Group coordinator {} is unavailable or invalid due to cause: {reason}.isDisconnected: {}. Rediscovery "
        "will be attempted.",
        "Group coordinator {} is unavailable or invalid due to cause: {reason}. isDisconnected: {}. Rediscovery "
        "will be attempted.",
        "Group coordinator {} is unavailable or invalid due to cause: {reason}. Rediscovery will be attempted.",
        "Marking the coordinator dead (node {nodeId})for group {group}.",
        "Marking the coordinator dead (node {nodeId})for group {group}: {reason}.",
        "Group Coordinator Request failed: {reason}",
        "The coordinator is not available.",
        "The coordinator is loading and hence can't process requests.",
        "This is not the correct coordinator.",
        "Broker: Coordinator not available",
        "Broker: Not coordinator",
        "Broker: Coordinator load in progress",
        "Attempt to heartbeat failed since coordinator {} is either not started or not valid",
    ),
    exceptions=(
        "CoordinatorNotAvailableException",
        "COORDINATOR_NOT_AVAILABLE",
        "CoordinatorLoadInProgressException",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NotCoordinatorException",
        "NOT_COORDINATOR",
        "GroupCoordinatorNotAvailableError",
        "NotCoordinatorForGroupError",
        "GroupLoadInProgressError",
    ),
    source="AbstractCoordinator, CoordinatorRequestManager, Errors; librdkafka; aiokafka",
    meaning="The client lost the coordinator of its group, and looks for it again",
    cause="The broker was restarted, or leadership of the partition of __consumer_offsets moved. If it lasts: the "
    "partition is offline or could not be loaded",
    impact="Commits and heartbeats fail until a coordinator is found",
    commands=(
        "kafka-topics.sh --bootstrap-server HOST:9092 --describe --topic __consumer_offsets",
        "kdump groups {disk} --group {group}",
    ),
    action="If it lasts, look who leads the partition of __consumer_offsets, for 'Failed to load' in that broker's "
    "log, and how large the partition is",
    incident="consumer-offsets-grows",
    at_info=True,
)

REBALANCE = Message(
    name="group-member-left",
    texts=(
        "Preparing to rebalance group {group} in state {} with old generation {} (__consumer_offsets-{}) "
        "(reason: {reason}) (kafka.coordinator.group.GroupCoordinator)",
        "Preparing to rebalance group {group} in state {} with old generation {} (__consumer_offsets-{}) "
        "(reason: {reason})",
        "Preparing to rebalance group {group} in state {} with old generation {} (reason: {reason}).",
        "Member {member} in group {group} has failed, removing it from the group",
        "Member {member} in group {group} has failed, removing it from the group.",
        "Member {member} in group {group} has left, removing it from the group",
        "Member {member} fenced from the group because its session expired.",
        "Member {member} fenced from the group because {reason}",
        "Attempt to heartbeat failed since group is rebalancing",
        "Attempt to heartbeat with {} and group instance id {} failed due to {error}, resetting generation",
        "Resetting generation and member id due to: {reason}",
        "Request joining group due to: {reason}",
        "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
        "assignment; it is likely that the consumer was kicked out of the group.",
        "Heartbeat failed for group {group} because it is rebalancing",
        "Heartbeat failed: local member_id was not recognized; resetting and re-joining group",
        "Heartbeat failed: {reason}",
        "The coordinator is not aware of this member.",
        "Broker: Unknown member",
        "Broker: Group rebalance in progress",
        "Broker: Specified group generation id is not valid",
        "Consumer group session timed out (in join-state {}) after {} ms without a successful response from the "
        "group coordinator (broker {}, last error was {reason}): revoking assignment and rejoining group",
    ),
    exceptions=(
        "UNKNOWN_MEMBER_ID",
        "UnknownMemberIdException",
        "UnknownMemberIdError",
        "REBALANCE_IN_PROGRESS",
        "RebalanceInProgressException",
        "ILLEGAL_GENERATION",
        "IllegalGenerationException",
        "CommitFailedException",
        "CommitFailedError",
        "FencedInstanceIdException",
        "FENCED_INSTANCE_ID",
        "FencedMemberEpochException",
        "FENCED_MEMBER_EPOCH",
        "STALE_MEMBER_EPOCH",
    ),
    source="GroupCoordinator, GroupMetadataManager, AbstractCoordinator, ConsumerCoordinator; librdkafka; aiokafka",
    meaning="A member left its group, or was removed from it, and the group's partitions are assigned again",
    cause="No heartbeat within session.timeout.ms, no poll within max.poll.interval.ms, a restart, or two members with "
    "one group.instance.id",
    impact="Consumption pauses. What was processed and not committed is processed again by the next owner",
    commands=(GROUPS, DESCRIBE),
    action="If it repeats, process less between polls (max.poll.records), or raise max.poll.interval.ms; look for "
    "pauses of garbage collection",
    never="Do not raise session.timeout.ms to many minutes: a dead member then blocks its partitions as long",
    at_info=True,
)

OFFSETS_EXPIRED = Message(
    name="group-offsets-expired",
    texts=(
        "Group {group} transitioned to Dead in generation {}",
        "Group {group} with generation {} is now empty ({})",
        "Group {group} with generation {} is now empty.",
        "Removed {} expired offsets in {} milliseconds.",
        "Failed to append {} tombstones to {partition} for expired/deleted offsets and/or metadata for group {group}.",
    ),
    source="GroupMetadataManager, GroupCoordinator",
    meaning="A group has no members, or its committed offsets have expired",
    cause="offsets.retention.minutes (7 days) counts from when the group became empty",
    impact="Once the offsets have expired, consumers begin where auto.offset.reset says",
    commands=(GROUPS, "kdump groups {disk} --group {group} --as-of=-1d"),
    action="groups --history shows the last committed offsets, as long as compaction has not removed them; set them "
    "again with kafka-consumer-groups.sh --reset-offsets --to-offset",
    never="Do not restart the consumers before that: they would commit new offsets",
    incident="offsets-reset",
    at_info=True,
)

OFFSETS_RESET = Message(
    name="consumer-offset-reset",
    texts=(
        "Resetting offset for partition {partition} to position FetchPosition{offset={offset}, offsetEpoch={}, "
        "currentLeader={}}.",
        "Resetting offset for partition {partition} to position {offset}.",
        "Resetting offset for partition {partition} to offset {offset}.",
        "Found no committed offset for partition {partition}",
        "Undefined offset with no reset policy for partitions: {}",
        "Undefined offset with no reset policy for partition: {partition}",
        "Truncation detected for partition {partition} at offset {offset}, resetting offset to the first offset "
        "known to diverge {}",
        "Truncation detected for partition {partition} at offset {offset}{}",
        "{topic} [{number}]: offset reset (at offset {offset} {}) to {}: {reason}",
        "{topic} [{number}]: no previously committed offset available: {}",
        "Resetting offset for partition TopicPartition(topic='{topic}', partition={number}) to offset {offset}.",
        "Fetch offset {offset} is out of range for partition TopicPartition(topic='{topic}', partition={}), "
        "resetting offset",
    ),
    exceptions=("NoOffsetForPartitionException", "NoOffsetForPartitionError", "LogTruncationException"),
    source="SubscriptionState, OffsetFetcher, ConsumerCoordinator; librdkafka; aiokafka",
    meaning="The consumer does not begin at a committed offset, but where auto.offset.reset says, or where its log "
    "diverges",
    cause="The group has no committed offset for the partition (a new group, a new partition, or expired offsets), or "
    "the offset is out of the log's range",
    impact="With earliest the partition is read again from its start; with latest everything before is skipped",
    commands=(GROUPS, "kdump ls {path}"),
    action="Look with groups --history what the group had committed, and when. If the offset is in the log, set it "
    "again with the group stopped: kafka-consumer-groups.sh --reset-offsets --to-offset N --execute",
    never="Do not let the group run on while you decide: it commits over the offsets that you need",
    incident="offsets-reset",
    at_info=True,
)

DEAD_LETTER_QUEUE = Message(
    name="dead-letter-queue-write-failed",
    texts=(
        "Failed to write to DLQ, proceeding to ARCHIVED regardless.",
        "DLQ is not enabled on configured DLQ topic for share group: {group}, topic: {topic}.",
        "DLQ topic does not exist and auto create is disabled on cluster for share group: {group}, topic: {topic}.",
        "Configured DLQ topic name does not comply with the DLQ topic prefix in share group: {group}, topic: {topic}, "
        "prefix: {}.",
        "Exhausted max retries to create DLQ topic without success.",
        "Exhausted max retries to produce to DLQ topic without success.",
    ),
    source="SharePartition, ShareGroupDLQStateManager",
    releases="4.4 and later",
    meaning="A share group gave up a record, which a client rejected or which was delivered too often, and the broker "
    "could not write it to the group's dead-letter queue, the topic in errors.deadletterqueue.topic.name of the group",
    cause="The topic does not exist, does not have errors.deadletterqueue.group.enable=true, or its name does not "
    "begin with errors.deadletterqueue.topic.name.prefix of the brokers (dlq. by default); or a produce request failed",
    impact="The record counts as done: no consumer of the group gets it again, and the queue has no trace of it. It "
    "stays in its own topic until retention or compaction removes it",
    commands=("kdump groups {disk} --group {group}", "kdump cluster {disk} --show configs"),
    action="Set errors.deadletterqueue.group.enable=true on the queue's topic, or create it. Note which offsets were "
    "given up before retention deletes them: the lines around this one, and the state of the group, have them",
    never="Do not conclude from an empty queue that nothing was given up",
)
