"""Family bytes: bytes that are not part of a valid batch."""

from kdump.check.catalogue.code import ERROR, RECOVER_ONE, RESTORE, SKIP, STOPS, TRUNCATES, Code

UNCLEAN = "at the end of a log's last segment after an unclean shutdown: recovery truncates it"

APPENDS = (
    "recovery truncates these bytes; after a clean shutdown the broker appends after them, and consumers cannot reach "
    "what it appends"
)
# Each in docs/remedy-trials.json: torn-index-removed, tail-index-removed.
CUT_TAIL = (
    "First look for the missing records on another replica: if the log was longer before, its last records are lost "
    "here. In the last segment, start the broker after an unclean shutdown; after a clean one, "
    f"{RECOVER_ONE}. In an earlier segment, recovery would delete the later ones. {RESTORE}"
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
        "The stored checksum (CRC-32C in magic 2, CRC-32 in 0 and 1) does not match the bytes.",
        f"{STOPS}; {TRUNCATES}",
        f"{RESTORE}. {SKIP}",
        "DefaultRecordBatch.ensureValid, LegacyRecord.ensureValid, CompletedFetch, AbstractFetcherThread, "
        "LogSegment.recover",
    ),
    Code(
        "batch-length-invalid",
        "bytes",
        ERROR,
        "The length is below the format's minimum (49 for a batch, 14 for a message), negative, or contradicted by "
        "the bytes after it.",
        "brokers and consumers look for the next batch at the wrong position: reads stop at offset {offset}, and a "
        "broker that meets a length below 14 while loading the log exits; " + TRUNCATES,
        RESTORE,
        "FileLogInputStream.nextBatch, ByteBufferLogInputStream.nextBatchSize",
    ),
    Code(
        "batch-truncated",
        "bytes",
        ERROR,
        "The last batch extends past the end of the file.",
        APPENDS,
        CUT_TAIL,
        "FileLogInputStream.nextBatch, LogSegment.recover",
        f"warning {UNCLEAN}",
    ),
    Code(
        "trailing-bytes",
        "bytes",
        ERROR,
        "The file ends with fewer bytes than a batch header has.",
        APPENDS,
        CUT_TAIL,
        "FileLogInputStream.nextBatch, LogSegment.recover",
        f"warning {UNCLEAN}",
    ),
    Code(
        "junk-bytes",
        "bytes",
        ERROR,
        "Bytes between two valid batches, or after the last one, that belong to no batch.",
        "reads stop before these bytes, and at startup the broker may end the log there; " + TRUNCATES,
        f"{RESTORE}. kdump inspect shows the valid batches after these bytes",
        "FileLogInputStream.nextBatch, LogSegment.recover",
    ),
    Code(
        "zero-padding",
        "bytes",
        ERROR,
        "Zeros where a batch should start, left by preallocation or a lost write.",
        "a broker that reads them while loading the log exits ('Found record size 0 smaller than minimum record "
        "overhead'), and reads stop before them; " + TRUNCATES,
        f"If kdump inspect shows valid batches after the zeros, or the log was longer before: {RESTORE}. If the zeros "
        f"reach to the end of the last segment, {RECOVER_ONE}. {PREALLOCATED}",
        "FileLogInputStream.nextBatch, LogSegment.recover, CoordinatorLoaderImpl (KAFKA-20841)",
        "info at the end of a log's last segment after an unclean shutdown: log.preallocate=true leaves them; warning "
        "there after batches of __consumer_offsets and __share_group_state: a broker that becomes the leader cannot "
        "load their groups",
    ),
    Code(
        "magic-unknown",
        "bytes",
        ERROR,
        "Magic is not 0, 1 or 2, although a batch starts there.",
        "consumers stop at offset {offset} with a KafkaException, and followers retry there and leave the ISR; "
        "recovery keeps the batch if magic is above 2, because the checksum does not cover it, and truncates the log "
        "here if it is negative",
        RESTORE,
        "FileLogInputStream.nextBatch, ByteBufferLogInputStream.nextBatchSize, LogSegment.recover",
    ),
    Code(
        "offset-invalid",
        "bytes",
        ERROR,
        "baseOffset or lastOffsetDelta is negative.",
        "brokers and consumers compute wrong offsets at this batch; if it is the last one, the log end offset is wrong "
        "and the broker assigns offsets a second time",
        RESTORE,
        "DefaultRecordBatch, LogLoader.recoverSegment, LogSegment.readNextOffset",
    ),
    Code(
        "unreadable-bytes",
        "bytes",
        ERROR,
        "The device cannot read these bytes.",
        "a fetch that includes these bytes ends in a closed connection, which consumers and followers retry without "
        "end; a broker that recovers the segment at startup exits; a failed write or flush takes the whole log "
        "directory offline",
        "First copy what is readable to another disk (ddrescue), then replace the disk. Do not start the broker on the "
        "failing disk",
        "FileRecords.writeTo, RecordBatchIterator.makeNext, LogDirFailureChannel; read(2), EIO",
    ),
)
