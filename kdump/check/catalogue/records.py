"""Family records: problems inside a batch whose checksum matches."""

from kdump.check.catalogue.code import ERROR, INVALID, RESTORE, SKIP, WARNING, Code

WRITER = (
    "The checksum matches, so the batch was written this way and the other replicas have the same bytes: find the "
    "producer (kdump inspect shows its ID and format)"
)

RECORDS = (
    Code(
        "record-count-mismatch",
        "records",
        ERROR,
        "recordCount differs from the number of records in the batch. (After compaction there may be fewer than "
        "lastOffsetDelta + 1.)",
        f"{INVALID}; if recordCount is 0, it skips the batch without an error",
        f"{WRITER}. {SKIP}",
        "DefaultRecordBatch.RecordIterator",
    ),
    Code(
        "record-malformed",
        "records",
        ERROR,
        "A varint is too long, a length is negative or too large, or bytes are left over inside a record, a message or "
        "a batch.",
        f"{INVALID}, or in magic 0 and 1 with an IllegalArgumentException; in a compacted topic the log cleaner marks "
        "the partition uncleanable",
        f"{WRITER}. {SKIP}",
        "DefaultRecord.readFrom, LegacyRecord",
    ),
    Code(
        "decompression-failed",
        "records",
        ERROR,
        "The codec rejects the payload, the payload exceeds kdump's limit, or the codec ID is unknown.",
        "a Java consumer that reaches offset {offset} stops with a KafkaException, or with an IllegalArgumentException "
        "if the codec ID is unknown; in a compacted topic the log cleaner marks the partition uncleanable",
        f"If the payload exceeds kdump's limit, raise it (kdump verify --max-decompressed-size). {WRITER}. {SKIP}",
        "DefaultRecordBatch.compressedIterator, CompressionType.forId",
    ),
    Code(
        "lz4-frame-unsupported",
        "records",
        ERROR,
        "An LZ4 frame has linked blocks or reserved bits set: other decoders read it, brokers and Java consumers do "
        "not.",
        "a Java consumer that reaches offset {offset} stops with a KafkaException",
        f"{WRITER}, and have it write independent blocks. {SKIP}",
        "Lz4BlockInputStream.FLG, BD",
    ),
    Code(
        "attributes-reserved",
        "records",
        WARNING,
        "A reserved bit is set in the attributes of a batch.",
        "current brokers and consumers ignore it; a later version that assigns a meaning to the bit would misread the "
        "batch",
        WRITER,
        "DefaultRecordBatch.attributes; KIP-98",
        "info for the attributes of a record",
    ),
    Code(
        "offset-delta-invalid",
        "records",
        ERROR,
        "A record's offsetDelta is negative, not above the previous one, or above lastOffsetDelta.",
        "from offset {offset} on, a consumer receives records with wrong offsets and skips those below its position",
        f"{WRITER}. {SKIP}",
        "LogValidator.validateRecord, DefaultRecordBatch",
    ),
    Code(
        "timestamp-mismatch",
        "records",
        ERROR,
        "maxTimestamp is not the largest of the records' timestamps (CreateTime, magic 1 wrappers and magic 2).",
        "the time index is built from maxTimestamp: lookups by timestamp miss records, and time-based retention "
        "deletes the segment too early or too late",
        f"{WRITER}. If the segment would expire too early, raise retention.ms: kafka-configs.sh --bootstrap-server "
        "HOST:PORT --alter --topic TOPIC --add-config retention.ms=MS. Consumers that read by offset are not affected",
        "LogValidator.RecordBatchAndMaxTimestamp, LogSegment.append",
    ),
    Code(
        "control-batch-invalid",
        "records",
        ERROR,
        "A control record has a key of less than 4 bytes or a value that does not decode, or the batch of a "
        "transaction marker has more than one record.",
        "a broker that rebuilds its producer state from offset {offset} exits (at startup: if the batch is above the "
        "latest producer snapshot, or its segment is recovered), and a read_committed consumer stops there",
        f"Compare with another replica: the checksum matches, so it may have the same bytes. {RESTORE}",
        "ControlRecordType.parse, EndTransactionMarker.deserialize, ProducerAppendInfo.append, CompletedFetch",
        "warning for more than one record; info for a control record of an unknown type outside a transaction",
    ),
    Code(
        "producer-fields-invalid",
        "records",
        WARNING,
        "A transactional batch has no producer ID; or a batch with a producer ID has no epoch or, if it has data, no "
        "sequence.",
        "brokers and consumers of Kafka 4.3 ignore it; without a producer ID the batch opens no transaction, without a "
        "sequence it is not detected as a duplicate",
        WRITER,
        "DefaultRecordBatch.ensureValid, ProducerAppendInfo",
    ),
    Code(
        "header-key-invalid",
        "records",
        ERROR,
        "A header key is null.",
        INVALID,
        f"{WRITER}. {SKIP}",
        "DefaultRecord.readHeaders",
        "warning for a key that is not UTF-8 or contains a null character: consumers receive it with U+FFFD in it",
    ),
    Code(
        "size-over-limit",
        "records",
        WARNING,
        "A batch larger than max.message.bytes (the topic's, or --max-message-bytes).",
        "consumers and followers read it, one batch per fetch: a broker applies the limit only to produce requests; a "
        "mirror whose target topic has the same limit fails with RecordTooLargeException if one record is above it",
        "Do nothing, or raise max.message.bytes of the topic that this one is mirrored to. The limit was larger when "
        "the batch was written, or recompression made it larger",
        "UnifiedLog.appendAsFollower (ignoreRecordSize), TopicConfig.MAX_MESSAGE_BYTES_CONFIG",
    ),
    Code(
        "message-set-invalid",
        "records",
        ERROR,
        "A wrapper (magic 0 and 1) is inside a wrapper, has a null value, has no messages or uses zstd; in magic 1 its "
        "last inner offset is above its own; in magic 0 they differ.",
        f"{INVALID}; a broker that rebuilds its producer state from here exits",
        f"{WRITER}. {SKIP}",
        "AbstractLegacyRecordBatch.DeepRecordsIterator",
        "warning for a wrapper with a key, with inner messages of another magic, or with a different last inner offset "
        "in magic 0: brokers and consumers read all of these",
    ),
    Code(
        "null-key-compacted",
        "records",
        WARNING,
        "A data record in a compacted topic has no key.",
        "the log cleaner removes the record when it cleans the segment",
        "If the record matters, copy it now (kdump inspect --records --json). Brokers reject records without a key in "
        "a compacted topic, so either the topic was not compacted when this one was written, or the copy is old",
        "LogValidator.validateKey, Cleaner.shouldRetainRecord",
    ),
)
