"""Messages about records that a broker or a client cannot read."""

from __future__ import annotations

from kdump.check.advice import RESTORE, SKIP
from kdump.forensics.explain.message import Message

VERIFY = "kdump verify {path}"
SALVAGE = "kdump salvage {path} --out NEW-DIRECTORY"

RECORD_SIZE_BELOW_MINIMUM = Message(
    name="record-size-below-minimum",
    texts=(
        "Found record size {size} smaller than minimum record overhead ({limit}) in file {file}.",
        "Record size {size} is less than the minimum record overhead ({limit})",
        "Found record size {size} smaller than minimum record overhead ({limit}).",
    ),
    source="FileLogInputStream, ByteBufferLogInputStream",
    meaning="Where a batch should begin in the segment, its size field is too small: usually zeros, from a file system "
    "that lost a write, or from a preallocated file",
    cause="A batch starts with a base offset and a size of at least 14 bytes. Kafka cannot tell where the next batch "
    "begins, and gives up on the file",
    impact="A broker that reads these bytes while it loads the log exits at every startup. A follower, a consumer or a "
    "coordinator that gets there stops",
    commands=(VERIFY, "kdump restart-plan {disk} --topic {topic}", SALVAGE),
    action="Let verify show where the bytes are. At the end of the last segment nothing is lost: delete the .index of "
    "that segment with the broker stopped, and startup truncates them. Elsewhere, restore the partition from another "
    "replica, or salvage it",
    never="Do not delete the .log, and do not start the broker again and again: every startup reads the same bytes",
    codes=("zero-padding", "batch-length-invalid"),
    incident="record-size-0",
    plan=True,
)

RECORD_CORRUPT = Message(
    name="record-corrupt",
    texts=(
        "Record is corrupt (stored crc = {storedCrc}, computed crc = {computedCrc})",
        "Record batch for partition {partition} at offset {offset} is invalid, cause: {reason}",
        "Record for partition {partition} at offset {offset} is invalid, cause: {reason}",
        "Record batch is corrupt (the size {size} is smaller than the minimum allowed overhead {limit})",
    ),
    exceptions=("CorruptRecordException", "CorruptMessageException", "CORRUPT_MESSAGE"),
    source="DefaultRecordBatch, LegacyRecord, CompletedFetch",
    meaning="The checksum stored in a batch does not match its bytes: they changed after the producer wrote them",
    cause="Producer, broker, follower and consumer each compute the checksum. A broker does so for what it appends and "
    "for what it recovers, but not for what it sends to consumers",
    impact="Consumers stop at this batch and get no further. A follower cannot copy it, and leaves the ISR",
    commands=(VERIFY, "kdump inspect {path} --offset {offset} --hex", "kdump diff {path} COPY-OF-ANOTHER-REPLICA"),
    action=f"Look whether another replica has the batch intact. {RESTORE}. {SKIP}",
    never="Do not set check.crcs=false to get past it: the records that you then process may be anything. Do not "
    "delete .kafka_cleanshutdown: recovery would truncate the log here, with everything after it",
    codes=("crc-mismatch",),
    incident="flipped-bit-after-shutdown",
)

FETCH_NEXT_RECORD = Message(
    name="consumer-cannot-read-record",
    texts=(
        "Received exception when fetching the next record from {partition}. If needed, please seek past the "
        "record to continue consumption.",
    ),
    source="CompletedFetch (Fetcher before 3.5) of the Java consumer",
    meaning="The consumer got bytes for this partition that it cannot decode, and returns no more records of it",
    cause="A batch fails its checksum, cannot be decompressed, or has a record that contradicts its header. The cause "
    "is in the lines below it",
    impact="The group stays at this offset: every restart reads the same batch again",
    commands=(VERIFY, "kdump inspect {path} --hex"),
    action=f"Find the batch with verify, and compare it with another replica. {SKIP}",
    never="Do not reset the group to the latest offset: that skips all records up to there, not only the damaged ones",
    codes=("crc-mismatch", "decompression-failed", "batch-length-invalid"),
    incident="stuck-consumer",
    general=True,
)

DESERIALIZATION_FAILED = Message(
    name="record-deserialization-failed",
    texts=(
        "Error deserializing {} for partition {partition} at offset {offset}. If needed, please seek past the "
        "record to continue consumption.",
        "Error deserializing key/value for partition {partition} at offset {offset}. If needed, please seek past "
        "the record to continue consumption.",
    ),
    exceptions=("RecordDeserializationException", "SerializationException"),
    source="CompletedFetch (Fetcher before 3.5) of the Java consumer",
    meaning="The batch is valid, but the application's deserializer rejects the key or value of one record",
    cause="The producer wrote another format or schema, or the record was meant for another application",
    impact="The consumer throws at this offset at every poll, until it seeks past it",
    commands=("kdump inspect {path} --offset {offset} --records --hex",),
    action="Look at the bytes. Then let the application skip the record (seek to the offset after it), or write it "
    "to a dead letter topic",
    never="Do not treat this as damage on the broker's disk: restoring a replica changes nothing",
    incident="undecodable-record",
)

INVALID_RECORD = Message(
    name="record-contents-malformed",
    texts=(
        "Found invalid record count {size} in magic v{} batch",
        "Incorrect declared batch size, premature EOF reached",
        "Incorrect declared batch size, records still remaining in file",
        "Invalid record size: expected to read {size} bytes in record payload, but instead read {limit}",
        "Invalid negative header key size {size}",
        "Invalid magic found in record: {version}",
        "Found invalid compressed record set with no inner records",
        "Found invalid wrapper offset in compressed v1 message set, wrapper offset '{offset}' is less than the "
        "last inner message offset '{endOffset}' and it is not zero.",
        "Inner messages must not be compressed",
        "Invalid wrapper compressionType found in legacy deep record iterator {}",
        "Invalid value size found for {}control record key. Must have at least {limit} bytes, but found only {size}",
        "Encountered corrupt message when fetching offset {offset} for topic-partition {partition}",
        "Failed to decompress record stream",
        "Unknown compression type id: {version}",
    ),
    exceptions=("InvalidRecordException", "INVALID_RECORD"),
    source="DefaultRecordBatch, DefaultRecord, AbstractLegacyRecordBatch, CompletedFetch, ControlRecordType",
    meaning="The records in a batch contradict its header, or each other: the batch cannot be decoded",
    cause="A client with a bug wrote it (its checksum then matches), or the bytes changed on the disk",
    impact="Consumers stop at this batch. A broker that has to decode it (recovery, the log cleaner, a coordinator) "
    "fails, too",
    commands=(VERIFY, "kdump inspect {path} --offset {offset} --hex"),
    action=f"Let verify show which batch it is, and whether its checksum matches. {SKIP}",
    never="Do not restore from another replica before you have compared them: if a client wrote the batch, every "
    "replica has it",
    codes=("record-malformed", "record-count-mismatch", "decompression-failed", "message-set-invalid"),
    incident="stuck-consumer",
)

RECORD_ABOVE_DECOMPRESSED_LIMIT = Message(
    name="record-above-decompressed-limit",
    texts=("Invalid record size: {size} exceeds the configured maximum record size of {limit}.",),
    source="DefaultRecord, AbstractLegacyRecordBatch",
    releases="4.4 and later",
    meaning="A record in a compressed batch is larger, decompressed, than max.decompressed.message.bytes of its topic",
    cause="A producer sent such a record, which the broker refused; or the config was set, or lowered, after the "
    "record had been written. Without compression, the config does not apply",
    impact="A batch that is refused is not in the log. One that is in the log stays readable for consumers and "
    "followers; but the log cleaner fails at it, and neither compacts the partition nor deletes its segments until the "
    "broker restarts, and a lookup of an offset by timestamp fails there",
    commands=("kdump retention {path}", VERIFY),
    action="If such records are intended, raise max.decompressed.message.bytes of the topic (the default, 2147483639, "
    "is no limit), and restart a broker whose cleaner has given up the partition",
    never="Do not treat this as damage on the disk: the batch is intact, and every replica has it",
    incident="record-too-large",
)

RECORD_TOO_LARGE = Message(
    name="record-too-large",
    texts=(
        "The message is {size} bytes when serialized which is larger than the maximum request size you have "
        "configured with the max_request_size configuration",
        "Unable to produce message: Broker: Message size too large",
        "The record batch size in the append to {partition} is {size} bytes which exceeds the maximum configured "
        "value of {limit}.",
        "Message batch size is {size} bytes in append to partition {partition} which exceeds the maximum "
        "configured size of {limit}.",
        "The message is {size} bytes when serialized which is larger than {limit}, which is the value of the "
        "max.request.size configuration.",
        "The message is {size} bytes when serialized which is larger than the total memory buffer you have "
        "configured with the buffer.memory configuration.",
        "The request included a message larger than the max message size the server will accept.",
        "Broker: Message size too large",
    ),
    exceptions=(
        "RecordTooLargeException",
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "MSG_SIZE_TOO_LARGE",
        "MessageSizeTooLargeError",
    ),
    source="UnifiedLog, LogValidator, KafkaProducer, librdkafka",
    meaning="A batch is larger than max.message.bytes of its topic, or a record larger than the producer's limit; it "
    "was not written",
    cause="The limits of producer (max.request.size), topic (max.message.bytes) and broker (message.max.bytes) differ",
    impact="The record is not in the log, and its send fails. Records before and after it are written",
    commands=(
        "kdump stats {path}",
        "kafka-configs.sh --bootstrap-server HOST:9092 --describe --all --topic {topic}",
    ),
    action="Raise max.message.bytes of the topic, and then max.request.size of the producer; or send less in one "
    "record",
    never="Do not raise max.message.bytes without the memory of brokers and consumers in mind: each fetch must hold a "
    "whole batch",
    codes=("size-over-limit",),
    incident="record-too-large",
)

SEGMENT_READ = Message(
    name="record-batch-read-failed",
    texts=(
        "Failed to load record batch at position {position} from FileRecords(size={size}, file={file}, start={}, "
        "end={})",
        "Failed to read record batch at position {position} from FileRecords(size={size}, file={file}, start={}, "
        "end={})",
    ),
    source="FileLogInputStream.FileChannelRecordBatch",
    meaning="The broker could not read a batch from a segment: the device returned an error, or the file is shorter "
    "than it was",
    cause="A read of the file failed. The cause below it names the error of the operating system",
    impact="The fetch or the recovery that needed the batch fails; with an input/output error the log directory goes "
    "offline",
    commands=(VERIFY, "dmesg --ctime | tail -50"),
    action="Look for errors of the device. Copy the partition from another replica; if there is none, salvage what can "
    "be read",
    never="Do not run fsck on the file system before you have an image of the device: it may remove what is readable",
)

FETCH_FAILED = Message(
    name="fetch-processing-failed",
    texts=(
        "Error processing fetch with max size {size} from {} on partition {topicId}:{partition}: {}",
        "Error processing fetch with max size {size} from {} on partition {partition}: {}",
    ),
    source="ReplicaManager",
    meaning="The broker could not read what a consumer or a follower asked for",
    cause="The exception below it: usually bytes at the end of the segment that are not a batch",
    impact="Whoever fetches there gets an error, retries, and gets no further",
    commands=(VERIFY, "kdump inspect {path} --offset {offset}"),
    action="Let verify show what is at that offset. The pages of the incidents say how to remove it",
    codes=("trailing-bytes", "batch-truncated", "batch-length-invalid"),
    incident="record-size-0",
    plan=True,
    general=True,
)
