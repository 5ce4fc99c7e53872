"""Family bytes: what is no sound batch."""

from kdump.check.catalogue.code import ERROR, RESTORE, SKIP, STOPS, TRUNCATES, Code

UNCLEAN = "at the end of a log's last segment, if the log was not shut down cleanly: recovery cuts it off"

APPENDS = (
    "a broker that recovers this log cuts them off; one that was shut down cleanly appends behind them, and no "
    "consumer gets to what is appended"
)

PREALLOCATED = (
    "If log.preallocate=true left the zeros in __consumer_offsets or __share_group_state: restart the brokers that "
    "have a replica, one after another, with log.preallocate=false; then elect the preferred leaders. While the groups "
    "are still served, set preallocate=false on the topic and lower its segment.ms until each replica has a new "
    "segment: that needs no restart. The committed offsets are not lost: kdump groups shows them"
)

BYTES = (
    Code(
        "crc-mismatch",
        "bytes",
        ERROR,
        "The stored checksum (CRC-32C in magic 2, CRC-32 in 0 and 1) is not that of the bytes.",
        f"{STOPS}; {TRUNCATES}",
        f"{RESTORE}. {SKIP}",
        "DefaultRecordBatch.ensureValid, LegacyRecord.ensureValid, LogSegment.recover",
    ),
    Code(
        "batch-length-invalid",
        "bytes",
        ERROR,
        "The length is below the format's minimum (49 for a batch, 14 for a message), negative, or contradicted by "
        "what follows.",
        "broker and consumer look for the next batch at the wrong place: reads stop at offset {offset}, and a broker "
        "that reads a length below the minimum as it loads the log exits; " + TRUNCATES,
        RESTORE,
        "FileLogInputStream.nextBatch, ByteBufferLogInputStream.nextBatchSize",
    ),
    Code(
        "batch-truncated",
        "bytes",
        ERROR,
        "The last batch runs past the end of the file.",
        APPENDS,
        f"Start the broker with the log recovered (without .kafka_cleanshutdown). {RESTORE}",
        "FileLogInputStream.nextBatch, LogSegment.recover",
        f"warning {UNCLEAN}",
    ),
    Code(
        "trailing-bytes",
        "bytes",
        ERROR,
        "Fewer bytes are left at the end of the file than a header has.",
        APPENDS,
        f"Start the broker with the log recovered (without .kafka_cleanshutdown). {RESTORE}",
        "FileLogInputStream.nextBatch, LogSegment.recover",
        f"warning {UNCLEAN}",
    ),
    Code(
        "junk-bytes",
        "bytes",
        ERROR,
        "Bytes between two sound batches, or behind the last, that no batch claims.",
        "reads stop in front of them; " + TRUNCATES + ", and what lies behind them is lost",
        f"{RESTORE}: the batches behind the junk are sound and can be shown by kdump inspect",
        "FileLogInputStream.nextBatch, LogSegment.recover",
    ),
    Code(
        "zero-padding",
        "bytes",
        ERROR,
        "Zeros where a batch should start, as preallocation or a lost write leaves.",
        "a broker that reads them as it loads the log exits ('Found record size 0 smaller than minimum record "
        "overhead'), and reads stop in front of them; " + TRUNCATES,
        f"{RESTORE}. {PREALLOCATED}",
        "FileLogInputStream.nextBatch, LogSegment.recover, CoordinatorLoaderImpl (KAFKA-20841)",
        "info at the end of a log's last segment, if the log was not shut down cleanly: preallocate=true leaves them; "
        "warning there after batches of __consumer_offsets and __share_group_state: a broker that becomes the leader "
        "cannot load their groups",
    ),
    Code(
        "magic-unknown",
        "bytes",
        ERROR,
        "Magic is not 0, 1 or 2 in a batch that is otherwise in its place.",
        "broker and consumer take the bytes for another format: reads stop at offset {offset}; " + TRUNCATES,
        RESTORE,
        "FileLogInputStream.nextBatch",
    ),
    Code(
        "offset-invalid",
        "bytes",
        ERROR,
        "A negative baseOffset or lastOffsetDelta.",
        "broker and consumer lose their place at this batch; if it is the last one, the log ends at a wrong offset and "
        "offsets are given out again",
        RESTORE,
        "DefaultRecordBatch, LogLoader.recoverSegment, LogSegment.readNextOffset",
    ),
    Code(
        "unreadable-bytes",
        "bytes",
        ERROR,
        "The device cannot read these bytes.",
        "the broker takes the whole log directory offline with a KafkaStorageException when it reads them",
        "Copy what can be read (ddrescue) to a sound disk before anything else; replace the disk",
        "LogDirFailureChannel; read(2), EIO",
    ),
)
