"""What `kdump stats` answers: the statistics of a partition, or of all together (kdump.forensics.stats counts them)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, NESTED, OFFSET, Doc, Object, PathText, answer


class At(NamedTuple):
    """Where a record is."""

    file: Annotated[PathText, Doc()]
    position: Annotated[int, Doc("of its batch")]
    offset: Annotated[int, Doc()]


class DamagedPlace(NamedTuple):
    """Bytes that are in none of the numbers."""

    file: PathText
    position: int
    size: int
    reason: str


class HeaderSums(NamedTuple):
    """Record headers."""

    number: Annotated[int, Doc(name="count")]
    bytes: Annotated[int, Doc()]


@answer("stats")
class PartitionStatistics(NamedTuple):
    """Statistics of a partition; `scope` total: of all of them."""

    scope: Annotated[str, Doc("partition, or total: the sum of all before it")]
    source: Annotated[PathText, Doc("the directory or file; empty in the total")]
    topic: Annotated[str | None, Doc("null in the total, and where no directory names it")]
    partition: Annotated[int | None, Doc("of the topic")]
    partitions: Annotated[int, Doc("how many are in it")]
    files: Annotated[int, Doc("segments that were read")]
    bytes: Annotated[int, Doc("their length", BYTES)]
    batches: Annotated[int, Doc("batches, and messages of magic 0 and 1, as verify counts them")]
    records: Annotated[int, Doc("records in sound batches, as verify counts them")]
    dataRecords: Annotated[int, Doc("of them those that are no control records, and decode: all below is of these")]
    controlRecords: Annotated[int, Doc("markers of transactions, and what KRaft writes")]
    undecodedRecords: Annotated[int, Doc("that sound batches count, and that do not decode")]
    firstOffset: Annotated[int | None, Doc("the first of sound batches; null in the total", OFFSET)]
    lastOffset: Annotated[int | None, Doc("the last of sound batches; null in the total", OFFSET)]
    oldest: Annotated[int | None, Doc("smallest timestamp of a record that has one", EPOCH_MS)]
    oldestAt: Annotated[At | None, Doc(NESTED)]
    newest: Annotated[int | None, Doc("largest timestamp of a record", EPOCH_MS)]
    newestAt: Annotated[At | None, Doc(NESTED)]
    untimedRecords: Annotated[int, Doc("without a timestamp (magic 0, -1), or with one that cannot be")]
    recordsPerSecond: Annotated[
        float | None, Doc("data records from oldest to newest; null: no time between them", "records/s")
    ]
    bytesPerSecond: Annotated[float | None, Doc("bytes of sound batches over the same time", "bytes/s")]
    peak: Annotated[Object | None, Doc("{timestamp, milliseconds, records}: the fullest bucket of `times`")]
    times: Annotated[Object, Doc("{milliseconds, buckets}: buckets so wide, of {timestamp, count}; without empty ones")]
    late: Annotated[
        Object,
        Doc(
            "{records, most (ms), mostAt, histogram}: records that are older than one before them in their "
            "partition, and by how many ms; histogram is of {from, to (null: no bound), count}, both ends "
            "included"
        ),
    ]
    batchRecords: Annotated[
        Object,
        Doc(
            "{mean, most, mostAt, ones, empty, histogram}: records of a batch; histogram is of {from, to (null: "
            "no bound), count}, both ends included"
        ),
    ]
    batchSizes: Annotated[
        Object,
        Doc(
            "{mean, most, mostAt, histogram}: bytes of a batch with its header; histogram is of {from, to (null: "
            "no bound), count}, both ends included"
        ),
    ]
    transactionalBatches: Annotated[int, Doc("control batches included")]
    transactionalRecords: Annotated[int, Doc("control records included")]
    controlBatches: Annotated[int, Doc("")]
    idempotentBatches: Annotated[int, Doc("with a producerId")]
    formats: Annotated[list[Object], Doc("of {magic, batches}")]
    timestampTypes: Annotated[list[Object], Doc("of {timestampType, records}")]
    codecs: Annotated[
        list[Object],
        Doc(
            "of {compression, batches, records, storedBytes, unpackedBytes, ratio}: bytes of records without "
            "batch headers (messages of magic 0 and 1 with theirs); of control batches only their number"
        ),
    ]
    ratio: Annotated[float | None, Doc("unpackedBytes / storedBytes of all that is compressed; null: nothing is")]
    recordBytes: Annotated[int, Doc("of data records, unpacked", BYTES)]
    headers: Annotated[HeaderSums, Doc("{…}: record headers")]
    keys: Annotated[
        Object,
        Doc(
            "{nulls, bytes, mean, most, mostAt, histogram}: sizes of keys; histogram is of {from, to (null: no "
            "bound), count}, both ends included"
        ),
    ]
    values: Annotated[
        Object,
        Doc(
            "{nulls (tombstones), bytes, mean, most, mostAt, histogram}: sizes of values; histogram is of {from, "
            "to (null: no bound), count}, both ends included"
        ),
    ]
    topKeys: Annotated[
        Object,
        Doc(
            "{error, keys}: keys is of {topic, key, keySize, records, recordsAtMost, bytes}, by records; "
            "`records` may be too low by `error`, 0 if exact; bytes are of records, and a least; key is text, or "
            "base64 with keyEncoding; of one above 128 bytes only the first 64, with isCut"
        ),
    ]
    topProducers: Annotated[
        Object, Doc("{error, producers}: of {producerId, records, recordsAtMost, bytes (of batches)}")
    ]
    damage: Annotated[list[DamagedPlace], Doc("of {…}: bytes that are in none of these numbers; at most 100")]
    damagedPlaces: Annotated[int, Doc("how many there are")]
    damagedBytes: Annotated[int, Doc("of them", BYTES)]
    paddingBytes: Annotated[int, Doc("zeros, and a torn end of the last segment", BYTES)]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("what else is not counted")]
