"""One entry of the catalogue, and the sentences that several entries share."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import Doc, answer

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

FAMILIES: dict[str, tuple[str, ...]] = {
    "bytes": (),
    "records": (),
    "log": ("offsets", "epochs", "timestamps", "producers", "transactions"),
    "files": ("indexes", "snapshots", "checkpoints"),
}
"""The families that `verify --only` accepts, each with the families inside it."""


@answer("code")
class Code(NamedTuple):
    """One code. `severity` is the usual one, `unless` states when another one applies; `consequence` is a sentence in
    which {offset} stands for the first offset affected; `fix` starts with a verb; `source` names the Kafka classes that
    contain the rule."""

    code: Annotated[str, Doc("code of the finding")]
    family: Annotated[str, Doc("its family, as selected with --only")]
    severity: Annotated[str, Doc("usual severity: error, warning or info; see unless")]
    meaning: Annotated[str, Doc("condition under which it is reported")]
    consequence: Annotated[str, Doc("impact on brokers and consumers")]
    fix: Annotated[str, Doc("action to take")]
    source: Annotated[str, Doc("Kafka's classes that contain the rule", name="kafka")]
    unless: Annotated[str, Doc("when another severity applies; empty if never", after="severity")] = ""


# CompletedFetch.maybeEnsureValid; UnifiedLog.analyzeAndValidateRecords, which followers also call.
STOPS = (
    "a Java consumer that reaches offset {offset} stops with a KafkaException ('Record is corrupt'), unless it has "
    "check.crcs=false; a follower that fetches the batch retries there and leaves the ISR"
)
TRUNCATES = "a broker that recovers this log truncates it here, which removes everything after it, valid or not"
# CompletedFetch.fetchRecords wraps what the record iterator throws.
INVALID = "a Java consumer that reaches offset {offset} stops with a KafkaException caused by InvalidRecordException"
# With an empty log in the ISR or ELR: PartitionChangeBuilder.isValidNewLeader, AbstractFetcherThread.truncateOnFetch.
RESTORE = (
    "Stop the broker. If kafka-topics.sh --bootstrap-server HOST:PORT --describe --topic TOPIC then shows another "
    "broker as Leader and this one in neither Isr nor Elr, and that leader's copy is intact, move this partition's "
    "directory out of log.dirs and start the broker: it fetches the partition again. Otherwise keep the directory, "
    "because this broker's empty log could become the leader and the other replicas would truncate to it: back the "
    "directory up and run kdump salvage on the copy. For __cluster_metadata-0, follow the incident page metadata-log "
    "instead"
)
SKIP = (
    "If you can do without these records, stop the consumer group and move it past the batch: kafka-consumer-groups.sh "
    "--bootstrap-server HOST:PORT --group GROUP --topic TOPIC:PARTITION --reset-offsets --to-offset OFFSET --execute"
)
# LogLoader.loadSegmentFiles: a segment without its .index is recovered, whether or not the shutdown was clean.
RECOVER_ONE = (
    "stop the broker, back the partition's directory up and delete the .index of the last segment: at startup the "
    "broker recovers that segment, and no other log"
)
