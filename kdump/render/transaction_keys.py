"""The JSON objects of `kdump transactions`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key

TEXT, NUMBER = "string", "number"
NULL_TEXT, NULL_NUMBER = "string or null", "number or null"
OFFSET, TIME, BYTE = "offset", "epoch ms", "byte of the file"

SOURCE = Key("source", TEXT, "", "the log directory, or the path that was given")
TOPIC = Key("topic", NULL_TEXT, "", "from the name of the directory")
PARTITION = Key("partition", NULL_NUMBER, "", "from the name of the directory")
TRANSACTIONAL_ID = Key(
    "transactionalId", NULL_TEXT, "", "as __transaction_state on the same disks has it; null: not there"
)
PRODUCER_ID = Key("producerId", NUMBER, "", "whose it is")

TRANSACTION_KEYS = (
    SOURCE,
    TOPIC,
    PARTITION,
    TRANSACTIONAL_ID,
    PRODUCER_ID,
    Key("producerEpoch", NULL_NUMBER, "", "epoch of its data; null: none is on the disk"),
    Key(
        "state",
        TEXT,
        "",
        "committed or aborted, by its marker; open: none came; hanging: none will: its coordinator does not know it",
    ),
    Key("firstOffset", NULL_NUMBER, OFFSET, "of its data; null: not known"),
    Key("lastOffset", NULL_NUMBER, OFFSET, "of its data; null: none is on the disk"),
    Key("records", NUMBER, "", "of its data, on the disk"),
    Key("batches", NUMBER, "", "of its data, on the disk"),
    Key("bytes", NUMBER, "bytes", "of its data, on the disk"),
    Key("begun", NULL_NUMBER, TIME, "the largest timestamp of its first batch"),
    Key("lastTimestamp", NULL_NUMBER, TIME, "the largest timestamp of its last batch"),
    Key("ended", NULL_NUMBER, TIME, "timestamp of the marker"),
    Key("age", NULL_NUMBER, "ms", "since it begun, where it has not ended"),
    Key("idle", NULL_NUMBER, "ms", "since its last batch, where it has not ended"),
    Key("markerOffset", NULL_NUMBER, OFFSET, "of its COMMIT or ABORT marker"),
    Key("markerEpoch", NULL_NUMBER, "", "epoch of the marker; above that of the data since transaction version 2"),
    Key("coordinatorEpoch", NULL_NUMBER, "", "of the coordinator that had the marker written"),
    Key("inTxnIndex", "boolean or null", "", "whether the .txnindex has it; null: not aborted, or no sound index"),
    Key("file", TEXT, "", "where it is said that it began: a segment, a .snapshot, a .txnindex"),
    Key("position", NUMBER, BYTE, "of its first batch, or the entry"),
    Key("markerFile", NULL_TEXT, "", "the segment that has the marker"),
    Key("markerPosition", NULL_NUMBER, BYTE, "of the marker"),
    Key("remarks", "array", "", "what is not certain, and why; what its coordinator says of an open one"),
    Key("abort", NULL_TEXT, "", "the command that ends it, where that is for a person to do"),
    Key("abortBefore3", NULL_TEXT, "", "the same for brokers before 3.0"),
)
PARTITION_TRANSACTIONS_KEYS = (
    SOURCE,
    TOPIC,
    PARTITION,
    Key("path", TEXT, "", "the directory, or the file that was given"),
    Key("logStartOffset", NULL_NUMBER, OFFSET, "by log-start-offset-checkpoint, else that of the first segment"),
    Key("logEndOffset", NULL_NUMBER, OFFSET, "behind the last sound batch"),
    Key("highWatermark", NULL_NUMBER, OFFSET, "as replication-offset-checkpoint has it, written down every 5 s"),
    Key(
        "lastStableOffset",
        NULL_NUMBER,
        OFFSET,
        "where read_committed consumers stop once all is replicated; null: the newest segment was not asked for",
    ),
    Key("heldBy", NULL_NUMBER, "", "producer id of the transaction that holds it back; null: none"),
    Key("committed", NUMBER, "", "transactions with a COMMIT marker"),
    Key("aborted", NUMBER, "", "transactions with an ABORT marker"),
    Key("open", NUMBER, "", "transactions without a marker"),
    Key("hanging", NUMBER, "", "those that their coordinator does not know as ongoing; not counted in open"),
    Key("emptyMarkers", NUMBER, "", "markers that compaction has emptied: nothing of their transactions is left"),
    Key("segments", NUMBER, "", "that were read"),
    Key("damages", NUMBER, "", "damaged stretches, which could not be taken into account"),
    Key("seededFrom", NULL_TEXT, "", "the .snapshot that told what was open where the first segment begins"),
)
COORDINATOR_KEYS = (
    SOURCE,
    Key("path", TEXT, "", "partition of __transaction_state"),
    Key("offset", NUMBER, OFFSET, "of the record that says so"),
    Key("transactionalId", TEXT, "", "transactional.id of the producer"),
    Key("producerId", NUMBER, "", "its producer id"),
    Key("producerEpoch", NUMBER, "", "its epoch"),
    Key("state", TEXT, "", "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort …"),
    Key("transactionTimeoutMs", NUMBER, "ms", "after which the coordinator aborts it"),
    Key("transactionStartTimestampMs", NULL_NUMBER, TIME, "when its last transaction began"),
    Key("transactionLastUpdateTimestampMs", NULL_NUMBER, TIME, "of the last change"),
    Key("age", NULL_NUMBER, "ms", "since it began, where it has not ended"),
    Key("partitions", "array", "", "topic-partition of each that has no marker yet"),
)
DIFFERENCE_KEYS = (
    SOURCE,
    TOPIC,
    PARTITION,
    Key("transactionalId", TEXT, "", "whose transaction it is"),
    PRODUCER_ID,
    Key("producerEpoch", NUMBER, "", "of the marker"),
    Key("offset", NULL_NUMBER, OFFSET, "of the marker; null: there is none"),
    Key("file", TEXT, "", "the segment that has the marker; the partition's directory without one"),
    Key("position", NUMBER, BYTE, "of the marker"),
    Key("coordinator", TEXT, "", "partition of __transaction_state"),
    Key("coordinatorOffset", NUMBER, OFFSET, "of the record that decided"),
    Key("message", TEXT, "", "what differs"),
)

TRANSACTION_TYPES: dict[str, tuple[Key, ...]] = {
    "transaction": TRANSACTION_KEYS,
    "transactionPartition": PARTITION_TRANSACTIONS_KEYS,
    "transactionCoordinator": COORDINATOR_KEYS,
    "transactionDifference": DIFFERENCE_KEYS,
}
