"""Family records: what is wrong inside a batch whose checksum holds."""

from kdump.check.catalogue.code import ERROR, INVALID, RESTORE, SKIP, WARNING, Code

WRITER = "The checksum holds, so it was written like this: find the producer (kdump inspect shows its id and format)"

RECORDS = (
    Code(
        "record-count-mismatch",
        "records",
        ERROR,
        "recordCount differs from the records that are there. (Compaction may leave fewer than lastOffsetDelta + 1.)",
        INVALID,
        f"{WRITER}. {SKIP}",
        "DefaultRecordBatch.RecordIterator",
    ),
    Code(
        "record-malformed",
        "records",
        ERROR,
        "A varint too long, a negative or overlong length, or bytes left over inside a record, a message or a batch.",
        INVALID,
        f"{WRITER}. {SKIP}",
        "DefaultRecord.readFrom, LegacyRecord",
    ),
    Code(
        "decompression-failed",
        "records",
        ERROR,
        "The codec rejects the payload, it exceeds the limit, or the codec id is unknown.",
        "a consumer that reaches offset {offset} stops with a KafkaException",
        f"{WRITER}. {SKIP}",
        "DefaultRecordBatch.compressedIterator, CompressionType.forId",
    ),
    Code(
        "lz4-frame-unsupported",
        "records",
        ERROR,
        "Linked blocks or reserved bits in an LZ4 frame: other decoders read it, brokers and Java consumers do not.",
        "a Java consumer that reaches offset {offset} stops with a KafkaException",
        f"{WRITER}, and have it write independent blocks. {SKIP}",
        "Lz4BlockInputStream.FLG, BD",
    ),
    Code(
        "attributes-reserved",
        "records",
        WARNING,
        "A reserved bit is set in the attributes of a batch.",
        "brokers and consumers of today ignore it; one that gives the bit a meaning will misread the batch",
        WRITER,
        "DefaultRecordBatch.attributes; KIP-98",
        "info for the attributes of a record",
    ),
    Code(
        "offset-delta-invalid",
        "records",
        ERROR,
        "A record's offsetDelta is negative, not above the one before it, or beyond lastOffsetDelta.",
        "a consumer gets records with wrong offsets from offset {offset} on, and skips those below where it is",
        f"{WRITER}. {SKIP}",
        "LogValidator.validateRecord, DefaultRecordBatch",
    ),
    Code(
        "timestamp-mismatch",
        "records",
        ERROR,
        "maxTimestamp is not the largest of the records' timestamps (CreateTime, magic 1 wrappers and magic 2).",
        "the time index is built from maxTimestamp: a search by time misses records, and retention by time keeps or "
        "deletes the segment at the wrong moment",
        f"{WRITER}. Nothing has to be done for consumers that read by offset",
        "LogValidator.RecordBatchAndMaxTimestamp, LogSegment.append",
    ),
    Code(
        "control-batch-invalid",
        "records",
        ERROR,
        "A control record with a key under 4 bytes or a value that does not decode, or more than one in the batch of a "
        "transaction marker.",
        "a broker that rebuilds its producer state from offset {offset} exits, and a consumer that reaches it stops "
        "with InvalidRecordException",
        RESTORE,
        "ControlRecordType.parse, EndTransactionMarker.deserialize",
        "info for a control record of an unknown type outside a transaction",
    ),
    Code(
        "producer-fields-invalid",
        "records",
        WARNING,
        "A transactional batch without a producer id; or a producer id without an epoch, or, with data, without a "
        "sequence.",
        "no broker or consumer of 4.3 minds; without a producer id the transaction is never open, without a sequence "
        "the batch is not known as a duplicate",
        WRITER,
        "DefaultRecordBatch.ensureValid, ProducerAppendInfo",
    ),
    Code(
        "header-key-invalid",
        "records",
        ERROR,
        "A header key that is null.",
        INVALID,
        f"{WRITER}. {SKIP}",
        "DefaultRecord.readHeaders",
        "warning for a key that is not UTF-8 or holds a null character: consumers get it with U+FFFD in it",
    ),
    Code(
        "size-over-limit",
        "records",
        WARNING,
        "A batch larger than max.message.bytes (the topic's, or --max-message-bytes).",
        "a follower or a mirror with the same limit may refuse it; consumers read it, one batch a fetch",
        "Raise max.message.bytes, also of where it is copied to; the limit was larger when it was written",
        "UnifiedLog.append, TopicConfig.MAX_MESSAGE_BYTES_CONFIG",
    ),
    Code(
        "message-set-invalid",
        "records",
        ERROR,
        "A wrapper (magic 0, 1) inside a wrapper, with a null value, without messages or in zstd; in magic 0 a last "
        "inner offset that is not the wrapper's; in magic 1 one beyond a wrapper's offset.",
        f"{INVALID}; a broker that rebuilds its producer state from here exits",
        f"{WRITER}. {SKIP}",
        "AbstractLegacyRecordBatch.DeepRecordsIterator",
        "warning for a wrapper with a key, with messages of another magic inside, or with another last inner offset in "
        "magic 0, all of which brokers and consumers read",
    ),
    Code(
        "null-key-compacted",
        "records",
        WARNING,
        "A data record without a key in a compacted topic.",
        "the cleaner drops it at its next pass",
        "Find the producer that writes without keys: a broker refuses such records today",
        "LogValidator.validateKey, Cleaner.buildOffsetMapForSegment",
    ),
)
