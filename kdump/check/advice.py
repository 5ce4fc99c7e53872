"""Sentences that codes of several families share: impacts on brokers and consumers, and actions.

In an action, these words stand for what a finding states (filled_advice.py): TOPIC, PARTITION, DIR (the partition's
directory), SEGMENT (the file), POSITION, OFFSET, NEXT-OFFSET (the first one after the batch) and PRODUCER-ID.
"""

from __future__ import annotations

# CompletedFetch.maybeEnsureValid; UnifiedLog.analyzeAndValidateRecords, which followers also call.
STOPS = (
    "a Java consumer that reaches offset {offset} stops with a KafkaException ('Record is corrupt'), unless it has "
    "check.crcs=false; a follower that fetches the batch retries there and leaves the ISR"
)
TRUNCATES = "a broker that recovers this log truncates it here, which removes everything after it, valid or not"
# CompletedFetch.fetchRecords wraps what the record iterator throws.
INVALID = "a Java consumer that reaches offset {offset} stops with a KafkaException caused by InvalidRecordException"
SALVAGE = "kdump salvage DIR --out NEW-DIRECTORY"
# With an empty log in the ISR or ELR: PartitionChangeBuilder.isValidNewLeader, AbstractFetcherThread.truncateOnFetch.
RESTORE_TOPIC = (
    "Stop the broker. If kafka-topics.sh --bootstrap-server HOST:PORT --describe --topic TOPIC then shows another "
    "broker as Leader and this one in neither Isr nor Elr, and that leader's copy is intact, move this partition's "
    "directory out of log.dirs and start the broker: it fetches the partition again. Otherwise keep the directory, "
    "because this broker's empty log could become the leader and the other replicas would truncate to it: back the "
    f"directory up and save its valid batches: {SALVAGE}"
)
ONLY_REPLICA = (
    "By the metadata on the disk no other broker has a replica: keep the directory, back it up, and save its valid "
    f"batches: {SALVAGE}"
)
FOLLOW_METADATA = "For __cluster_metadata-0, follow the incident page metadata-log instead"
RESTORE = f"{RESTORE_TOPIC}. {FOLLOW_METADATA}"
# Codes of batches of which salvage can recover records: see its damaged_records.py.
SAVE_RECORDS = (
    "If no replica has this batch intact, save the records in it that decode, whose values may be wrong: kdump salvage "
    "DIR --damaged-records --out NEW-DIRECTORY"
)
FETCH_AGAIN = (
    "if another broker leads the partition and this one is in neither Isr nor Elr, move the partition's directory "
    "away: the broker fetches it again"
)
FETCH_METADATA_AGAIN = (
    "a broker, or a controller that is not a voter, fetches the metadata again; a voter only if a majority of the "
    "other voters is up with intact logs"
)
SKIP = (
    "If you can do without these records, stop the consumer group and move it past the batch: kafka-consumer-groups.sh "
    "--bootstrap-server HOST:PORT --group GROUP --topic TOPIC:PARTITION --reset-offsets --to-offset NEXT-OFFSET "
    "--execute"
)
# LogLoader.loadSegmentFiles: a segment without its .index is recovered, whether or not the shutdown was clean.
RECOVER_ONE = (
    "stop the broker, back the partition's directory up and delete the .index of the last segment: at startup the "
    "broker recovers that segment, and no other log"
)
