"""The catalogue of findings: what each code means and what a broker or a consumer does about it.

The consequence is a sentence in which {offset} stands for the first offset that it hits.
"""

from __future__ import annotations

from typing import NamedTuple

ERROR, WARNING, INFO = "error", "warning", "info"


class Code(NamedTuple):
    """One code. `family` is what `verify --only` selects by."""

    code: str
    family: str
    severity: str
    meaning: str
    consequence: str


STOPS = "a consumer that reaches offset {offset} stops with CorruptRecordException"
TRUNCATES = "a broker that recovers this log truncates it here"

CATALOGUE = {
    code.code: code
    for code in (
        # ProducerStateManager.readSnapshot, loadSnapshot
        Code(
            "snapshot-invalid",
            "snapshots",
            ERROR,
            "a snapshot of producer states with a wrong version, length or checksum",
            "a broker that loads it deletes it and rebuilds the state from the log",
        ),
        # CheckpointFile.read
        Code(
            "checkpoint-invalid",
            "checkpoints",
            ERROR,
            "a checkpoint with a wrong version, count or line",
            "the broker takes the log directory offline, or ignores what the checkpoint says",
        ),
        # PartitionMetadataFile.read
        Code(
            "partition-metadata-invalid",
            "checkpoints",
            ERROR,
            "partition.metadata cannot be read",
            "the broker takes the log directory offline",
        ),
        # PropertiesUtils.readPropertiesFile, MetaProperties
        Code("meta-properties-invalid", "checkpoints", ERROR, "meta.properties cannot be read", "the broker exits"),
        # FileQuorumStateStore.readElectionState
        Code("quorum-state-invalid", "checkpoints", ERROR, "quorum-state cannot be read", "the broker exits"),
        # DefaultRecordBatch.ensureValid, LegacyRecord.ensureValid; LogSegment.recover
        Code("crc-mismatch", "bytes", ERROR, "the stored checksum is not that of the bytes", f"{STOPS}; {TRUNCATES}"),
        # FileLogInputStream.nextBatch
        Code(
            "batch-length-invalid",
            "bytes",
            ERROR,
            "the length is below the format's minimum, or contradicted by what follows",
            "broker and consumer look for the next batch at the wrong place: reads stop at offset {offset}; "
            + TRUNCATES,
        ),
        # AbstractLegacyRecordBatch.DataLogInputStream, FileLogInputStream.nextBatch
        Code(
            "magic-unknown",
            "bytes",
            ERROR,
            "magic is not 0, 1 or 2",
            "broker and consumer take the bytes for another format: reads stop at offset {offset}",
        ),
        # DefaultRecordBatch.RecordIterator
        Code(
            "record-count-mismatch",
            "records",
            ERROR,
            "recordCount differs from the records that are there",
            "a consumer that reaches offset {offset} stops with InvalidRecordException",
        ),
        # DefaultRecord.readFrom
        Code(
            "record-malformed",
            "records",
            ERROR,
            "a length or a count inside a record or message cannot be right, or bytes are left over",
            "a consumer that reaches offset {offset} stops with InvalidRecordException",
        ),
        Code(
            "decompression-failed",
            "records",
            ERROR,
            "the codec rejects the payload, it exceeds the limit, or the codec is unknown",
            "a consumer that reaches offset {offset} stops with a KafkaException",
        ),
        # Lz4BlockInputStream.FLG and BD
        Code(
            "lz4-frame-unsupported",
            "records",
            ERROR,
            "linked blocks or reserved bits in an LZ4 frame: other decoders read it, Java's does not",
            "a Java consumer that reaches offset {offset} stops with a KafkaException",
        ),
        # DefaultRecord.readHeaders
        Code(
            "header-key-invalid",
            "records",
            ERROR,
            "a header key that is null",
            "a consumer that reaches offset {offset} stops with InvalidRecordException",
        ),
        # AbstractLegacyRecordBatch.DeepRecordsIterator
        Code(
            "message-set-invalid",
            "records",
            ERROR,
            "a wrapper with a null value or no messages, a wrapper inside a wrapper, or zstd",
            "a consumer that reaches offset {offset} stops with InvalidRecordException",
        ),
        # ControlRecordType.parse, EndTransactionMarker.deserialize
        Code(
            "control-batch-invalid",
            "records",
            ERROR,
            "a control record whose key or value cannot be decoded",
            "a consumer or a broker that reaches offset {offset} stops with InvalidRecordException",
        ),
    )
}
