"""Other messages of Kafka's Java client and its tools."""

from __future__ import annotations

from kdump.forensics.explain.message import Message

CONSOLE = Message(
    name="console-consumer-failed",
    texts=(
        "Error processing message, terminating consumer process:",
        "Error processing message, terminating consumer process: {cause}",
        "Unknown error when running consumer: {cause}",
        "Unknown error when running consumer:",
        "Error when sending message to topic {topic} with key: {}, value: {} with error:",
    ),
    source="ConsoleConsumer, ErrorLoggingCallback",
    meaning="Kafka's console consumer or producer ends with the exception below",
    cause="The exception below it",
    impact="Only this tool",
    action="Read the exception",
    general=True,
)

UNKNOWN_SERVER = Message(
    name="unknown-server-error",
    texts=(
        "The server experienced an unexpected error when processing the request.",
        "Unexpected error code {} while fetching at offset {offset} from topic-partition {partition}",
        "Unknown server error while fetching offset {offset} for topic-partition {partition}",
        "Encountered corrupt message when fetching topic-partition {partition} at offset {offset}",
    ),
    exceptions=("UnknownServerException", "UNKNOWN_SERVER_ERROR", "UNKNOWN"),
    source="FetchCollector, Errors; librdkafka",
    meaning="The broker failed with an error that has no code of its own",
    cause="The exception is in the broker's log, at the same time",
    impact="The request fails; a consumer that meets it at one offset gets no further",
    commands=("kdump verify {path}", "kdump inspect {path} --offset {offset} --hex"),
    action="Look into the broker's log, and explain the exception there",
    codes=("batch-length-invalid", "trailing-bytes"),
    incident="stuck-consumer",
)

SEND_FAILED = Message(
    name="producer-send-failed",
    texts=(
        "Aborting producer batches due to fatal error",
        "Transiting to fatal error state due to {cause}",
        "Transiting to abortable error state due to {cause}",
        "Cannot execute transactional method because we are in an error state",
        "Producer is closed forcefully.",
    ),
    source="Sender, TransactionManager",
    meaning="The producer is in an error state, and fails all batches that wait",
    cause="The exception in this line, or an earlier one: a fenced epoch, a sequence that does not follow, or missing "
    "rights",
    impact="Nothing more is written by this producer. After a fatal error it must be closed",
    commands=("kdump producers {disk}", "kdump transactions {disk} --coordinator"),
    action="Explain the cause. After an abortable error call abortTransaction, after a fatal one close the producer",
    general=True,
)

RECONFIGURED = Message(
    name="idempotence-setting-conflict",
    texts=(
        "Got error produce response in correlation id {} on topic-partition {partition}, splitting and retrying "
        "({} attempts left). Error: {error}",
        "Got error produce response with correlation id {} on topic-partition {partition}, splitting and "
        "retrying ({} attempts left). Error: {error}",
    ),
    source="Sender",
    meaning="A batch was larger than max.message.bytes of its topic, so the producer splits it and sends the parts",
    cause="batch.size of the producer is above the topic's limit",
    impact="None, except time",
    commands=("kdump stats {path}",),
    action="Lower batch.size, or raise max.message.bytes of the topic",
    codes=("size-over-limit",),
)
