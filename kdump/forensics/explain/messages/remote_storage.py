"""Messages of tiered storage."""

from __future__ import annotations

from kdump.forensics.explain.message import LAST, Message

LOCAL = "kdump ls {path} --segments"

COPY_FAILED = Message(
    name="remote-copy-failed",
    texts=(
        "Error occurred while copying log segments of partition: {partition}",
        "Error occurred while copying log segments of partition: {}",
        "Retriable error occurred while processing the records. Retrying...",
        "Current task for partition {} received error but it will be scheduled",
    ),
    exceptions=("RemoteStorageException",),
    source="RemoteLogManager",
    releases=f"3.6 to {LAST}",
    meaning="A segment could not be copied to remote storage, or deleted there; the broker tries again",
    cause="The remote storage cannot be reached, rejects the request, or the plug-in failed: see the exception",
    impact="Segments that are not copied are not deleted locally: the disk fills. A copy that was begun may stay "
    "behind",
    commands=("kdump retention {path}", LOCAL, "df -h {disk}"),
    action="Mend the access to the remote storage. retention shows what the disk keeps because of it",
    never="Do not delete local segments that are not copied yet",
)

READ_FAILED = Message(
    name="remote-read-failed",
    texts=(
        "Error occurred while reading the remote data for {partition}",
        "Error occurred while reading the remote data for {}",
        "Error occurred while reading the remote log offset for {}",
        "No remote segment found for leaderEpoch: {leaderEpoch}, offset: {offset}",
        "Remote storage fetch failed for group {group}, member {member}, topic partitions {}",
        "Requested remote resource was not found",
        "Couldn't build the state from remote store for partition: {partition}, currentLeaderEpoch: "
        "{leaderEpoch}, leaderLocalLogStartOffset: {offset}, leaderLogStartOffset: {}, epoch: {}as the previous "
        "remote log segment metadata was not found",
        "Error building remote log auxiliary state for {partition}",
    ),
    exceptions=("RemoteResourceNotFoundException",),
    source="RemoteLogReader, RemoteLogManager, TierStateMachine",
    releases=f"3.6 to {LAST}",
    meaning="Records below the local log start offset could not be read from remote storage",
    cause="A segment was deleted there, is being deleted by retention, or __remote_log_metadata and the store disagree",
    impact="Consumers of old offsets, and followers that build their state, stop there",
    commands=(LOCAL, "kdump inspect {disk}/__remote_log_metadata-0 --records", "kdump retention {path}"),
    action="Look up the segment in __remote_log_metadata, and whether the store has its object. If it is lost, "
    "delete up to the next offset with kafka-delete-records.sh",
    never="Do not delete __remote_log_metadata: without it no remote segment is found",
    incident="missing-remote-segment",
)

RLMM = Message(
    name="remote-log-metadata-unavailable",
    texts=(
        "Encountered error while initializing topic-based RLMM resources",
        "Stopping the server as it failed to initialize topic-based RLMM resources",
        "Encountered error while querying or creating {topic} topic.",
        "Encountered error while querying or creating {} topic.",
        "Timed out to initialize the resources within {} ms.",
        "Existing topic partition count {} is not same as the expected partition count {}",
        "Received leadership notifications with leader partitions {}",
        "Error occurred while updating the remote log segment.",
    ),
    source="TopicBasedRemoteLogMetadataManager, ConsumerTask",
    releases=f"3.6 to {LAST}",
    meaning="The broker cannot use __remote_log_metadata, in which it keeps which segments are in remote storage",
    cause="The topic is offline, has too few replicas, or its partition count differs from the configuration",
    impact="Nothing is copied to or read from remote storage",
    commands=("kdump verify {disk}/__remote_log_metadata-0", "kdump cluster {disk} --show topics"),
    action="Bring the partitions of __remote_log_metadata online",
    never="Do not change the number of its partitions",
)
