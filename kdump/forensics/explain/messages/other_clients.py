"""Messages that only librdkafka or aiokafka have."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

RDKAFKA_BAD_MESSAGE = Message(
    name="librdkafka-bad-message",
    texts=(
        "MessageSet at offset {offset} ({size} bytes) failed CRC32C check (original {} != calculated {})",
        "Unsupported Message(Set) MagicByte {version} at offset {offset}",
        "Local: Bad message format",
        "Local: Invalid compressed data",
    ),
    exceptions=("_BAD_MSG", "_BAD_COMPRESSION", "INVALID_MSG"),
    source="rd_kafka_msgset_reader (librdkafka)",
    releases="librdkafka 1.x and 2.x",
    meaning="librdkafka cannot decode a batch: a checksum (with check.crcs=true), a length or compressed data",
    cause="The bytes changed on the disk, or a client wrote an invalid batch",
    impact="librdkafka skips or retries the batch, depending on the error; without check.crcs=true it does not notice "
    "changed values",
    commands=("kdump verify {path}", "kdump inspect {path} --offset {offset} --hex"),
    action="Let verify show the batch. Set check.crcs=true in consumers that must not process changed values",
    codes=("crc-mismatch", "decompression-failed"),
    incident="stuck-consumer",
)

RDKAFKA_FATAL = Message(
    name="librdkafka-fatal-error",
    texts=(
        "Fatal error: {error}: {cause}",
        "Fatal error: {cause}",
        "Fatal transaction error: {cause}",
        "{}: Fatal transaction error: {cause}",
        "{} fatal error: {error}: {cause}",
        "Local: Fatal error",
        "Local: Purged in queue",
        "Local: Purged in flight",
        "Local: Inconsistent state",
    ),
    exceptions=("_FATAL", "_INCONSISTENT", "_PURGE_QUEUE", "_PURGE_INFLIGHT"),
    source="rd_kafka_set_fatal_error (librdkafka)",
    releases="librdkafka 1.x and 2.x",
    meaning="An idempotent or transactional producer, or a static member, cannot go on",
    cause="The error in this line: a sequence that does not follow, or a newer instance",
    impact="All later calls fail; the instance must be destroyed",
    commands=("kdump producers {disk}", "kdump transactions {disk} --coordinator"),
    action="Explain the cause, and create a new instance",
    general=True,
)

AIO_CORRUPT = Message(
    name="aiokafka-corrupt-record",
    texts=(
        "Invalid CRC - TopicPartition(topic='{topic}', partition={number})",
        "Libraries for {} compression codec not found",
        "Failed fetch messages from {nodeId}: {reason}",
        "Failed fetch messages from {nodeId}",
        "Unexpected error while fetching data",
    ),
    exceptions=("CorruptRecordError", "CorruptRecordException_"),
    source="aiokafka.consumer.fetcher",
    releases="aiokafka 0.8 to 0.12",
    meaning="aiokafka cannot decode a batch",
    cause="Its checksum does not match its bytes",
    impact="The consumer raises at this offset at every call",
    commands=("kdump verify {path}", "kdump inspect {path} --offset {offset} --hex"),
    action="Let verify show the batch, and seek past it if you can do without it",
    codes=("crc-mismatch",),
    incident="stuck-consumer",
)
