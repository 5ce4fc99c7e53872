"""A harmless counterpart of each finding code: something that looks like the damage, but is legal, so that kdump must
not report it.

As in tests/damages.py, each recipe works on a copy of a real broker's log directory. Some counterparts are on the disk
already; their recipes only assert that."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import lz4.frame
import snappy

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.producer_snapshot import PRODUCER_ENTRY, SNAPSHOT_HEADER
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.segment_limits import MAX_SEGMENT_SIZE
from tests.craft import message, rebase, record, split, varint, with_metadata_record, wrapper
from tests.damages import DAY_MS, INDEX, JUNK, METADATA, TIME_INDEX, TXN_INDEX, ZERO, Log, producer

Change = Callable[[Path], object]


class Lookalike(NamedTuple):
    """A harmless counterpart. `change` changes a copied log directory, given its root. No finding with `code` may
    be about anything at or below `path`."""

    code: str
    disk: str
    path: str
    description: str
    change: Change


LOOKALIKES: list[Lookalike] = []


def harmless(code: str, disk: str, path: str, description: str, change: Change) -> None:
    LOOKALIKES.append(Lookalike(code, disk, path, description, change))


def rolled(root: Path) -> Path:
    """Give the tiered partition a next segment, so that the one before is to be copied; return the snapshot there."""
    for suffix in ("log", "index", "timeindex"):
        (root / f"tiered-0/{260000:020}.{suffix}").write_bytes(b"")
    return root / f"tiered-0/{260000:020}.snapshot"


def appended(
    code: str, partition: str, description: str, make: Callable[[Log], bytes], disk: str = "clean-1", base: int = 0
) -> None:
    """Add a recipe that appends bytes to a segment, which a broker does after it has removed its clean mark."""

    def apply(root: Path) -> None:
        (root / CLEAN_MARK).unlink(missing_ok=True)
        log = Log(root, partition, base)
        log.write(make(log))

    harmless(code, disk, partition, description, apply)


def edited(code: str, file: str, description: str, change: Callable[[bytes], bytes], disk: str = "clean-1") -> None:
    harmless(code, disk, file, description, lambda root: (root / file).write_bytes(change((root / file).read_bytes())))


def on_disk(code: str, disk: str, path: str, description: str, condition: Callable[[Path], object]) -> None:
    """Add a recipe for something that a broker left on the disk; `condition` asserts that it is there."""

    def apply(root: Path) -> None:
        assert condition(root / path), (code, path)

    harmless(code, disk, path, description, apply)


def headers(path: Path) -> list[BATCH_HEADER.type]:  # type: ignore[name-defined]
    return [BATCH_HEADER.read(data) for data in split(path.read_bytes()) if data[16] == 2]


def magics(path: Path) -> list[int]:
    return [data[16] for data in split(path.read_bytes())]


PLAIN = "orders-none-0"

# fmt: off
# --- Bytes ------------------------------------------------------------------------------------------------------------

appended("crc-mismatch", PLAIN, "a batch with another base offset, which its checksum does not cover",
         lambda log: rebase(log.next(offset=5), log.end))
appended("batch-length-invalid", PLAIN, "an empty batch, whose length of 49 is the minimum",
         lambda log: log.next([], count=0))
appended("batch-truncated", PLAIN, "the last batch ends at the end of the file", lambda log: log.next(), "crash-1")
appended("trailing-bytes", PLAIN, "the last 61 bytes are an empty batch, which is only a header",
         lambda log: log.next([], count=0), "crash-1")
appended("junk-bytes", PLAIN, "a record value that contains text and a complete batch",
         lambda log: log.next([record(value=JUNK + log.next() + JUNK)]))
appended("zero-padding", PLAIN, "a record value of 4096 zero bytes", lambda log: log.next([record(value=bytes(4096))]))
on_disk("magic-unknown", "legacy", "upgraded-gzip-0", "batches of magic 0, 1 and 2 in one segment",
        lambda path: set(magics(path / f"{ZERO}.log")) == {0, 1, 2})
appended("offset-invalid", PLAIN, "the largest offset that fits the segment: base offset + 2147483647",
         lambda log: log.next(offset=(1 << 31) - 1))
on_disk("unreadable-bytes", "crash-1", "prealloc-0", "a sparse file", lambda path: path.exists())

# --- Batches and records ----------------------------------------------------------------------------------------------

on_disk("record-count-mismatch", "clean-1", "users-0",
        "fewer records than offsets in a batch, because the log cleaner removed some",
        lambda path: any(h.recordCount < h.lastOffsetDelta + 1 for h in headers(path / f"{ZERO}.log")))
appended("record-malformed", PLAIN, "a small number encoded as a varint of five bytes",
         lambda log: log.next(varint(10) + b"\0\0\0" + b"\x81\x80\x80\x80\0" + varint(-1) + varint(0), count=1))
appended("decompression-failed", PLAIN, "Snappy without snappy-java's framing",
         lambda log: log.next(codec="snappy", payload=snappy.compress(record(key=b"k", value=JUNK)), count=1))
appended(
    "lz4-frame-unsupported", PLAIN, "an LZ4 frame with content size, block checksums and content checksum",
    lambda log: log.next(
        codec="lz4", count=1,
        payload=lz4.frame.compress(
            record(key=b"k", value=JUNK), block_linked=False, store_size=True, content_checksum=True,
            block_checksum=True,
        ),
    ),
)
on_disk("attributes-reserved", "clean-1", "users-0", "attribute bit 6 set: the batch has a delete horizon",
        lambda path: any(h.attributes & 0x40 for h in headers(path / f"{ZERO}.log")))
appended("offset-delta-invalid", "users-0", "offset gaps within a batch, left by the log cleaner",
         lambda log: log.next([record(d, key=b"k%d" % d, value=b"v") for d in (2, 5)], lastOffsetDelta=9), base=254)
appended("timestamp-mismatch", "logappend-0",
         "LogAppendTime: the timestamps of the records differ from that of the batch",
         lambda log: log.next([record(value=b"v", timestamp=-5000)], attributes=0x08))
on_disk("control-batch-invalid", "clean-0", METADATA,
        "KRaft control batches in a metadata snapshot, which are not transaction markers",
        lambda path: any(h.attributes & 0x20 for h in headers(next(path.glob("*.checkpoint")))))
appended("producer-fields-invalid", PLAIN, "a sequence and a producer epoch without a producer ID",
         lambda log: log.next(producerEpoch=0, baseSequence=0))
appended("header-key-invalid", PLAIN, "header keys that are empty, not ASCII or repeated, and a null header value",
         lambda log: log.next([record(value=b"v", headers=[(b"", b"1"), ("clé☃".encode(), None), (b"", b"2")])]))
on_disk("size-over-limit", "clean-1", "large-0", "large batches that the topic's max.message.bytes allows",
        lambda path: any(h.batchLength > 1048588 for h in headers(path / f"{ZERO}.log")))
appended(
    "message-set-invalid", "v1-broker28-gzip-0", "absolute offsets inside a v0 wrapper, in a log with v1 wrappers",
    lambda log: wrapper(0, [message(0, b"a", offset=log.end), message(0, b"b", offset=log.end + 1)],
                        offset=log.end + 1), "legacy",
)
appended("null-key-compacted", PLAIN, "a record without a key in a topic that is not compacted",
         lambda log: log.next([record(value=b"v")]))

# --- A log ------------------------------------------------------------------------------------------------------------

on_disk("offset-not-monotonic", "clean-1", "sessions-0",
        "empty batches that compaction keeps in place of removed records",
        lambda path: any(h.recordCount == 0 for h in headers(path / f"{ZERO}.log")))


def start_late(root: Path) -> None:
    """Delete the first segments, like retention or DeleteRecords."""
    path = root / "clicks-0"
    for old in sorted(path.glob("*.log"))[:2]:
        for file in path.glob(f"{old.stem}.*"):
            file.unlink()


harmless("offset-gap", "clean-1", "clicks-0", "the log start offset is above 0", start_late)
on_disk("segment-name-mismatch", "clean-1", "users-0",
        "the first batch is above the base offset in the file name: the log cleaner removed those before it",
        lambda path: headers(path / f"{ZERO}.log")[0].baseOffset > 0)
on_disk("segment-overlap", "clean-1", "clicks-0", "a segment ends at the offset before the base offset of the next one",
        lambda path: len(list(path.glob("*.log"))) > 1)
appended("leader-epoch-decreased", "users-0",
         "a batch with leader epoch -1, as the log cleaner can leave it, among batches with an epoch",
         lambda log: log.next(partitionLeaderEpoch=-1) + log.next(offset=log.end + 1), base=254)
on_disk("leader-epoch-missing", "legacy", "v1-broker28-none-0", "v1 messages, a format without leader epochs",
        lambda path: set(magics(path / f"{ZERO}.log")) == {1})
edited("leader-epoch-checkpoint-mismatch", "clicks-0/leader-epoch-checkpoint",
       "batches below the first entry of leader-epoch-checkpoint", lambda _: b"0\n1\n0 200000\n")
appended("timestamp-in-future", PLAIN, "a timestamp 23 hours after the file's last change: a wrong clock or time zone",
         lambda log: log.next(baseTimestamp=soon(log.path), maxTimestamp=soon(log.path)))


appended("timestamp-in-past", PLAIN, "a timestamp nine years before the file's last change: an import",
         lambda log: log.next(baseTimestamp=soon(log.path) - 9 * YEAR_MS, maxTimestamp=soon(log.path) - 9 * YEAR_MS))
YEAR_MS = 365 * DAY_MS


def soon(path: Path) -> int:
    return int(path.stat().st_mtime * 1000) + DAY_MS * 23 // 24


TOP = 0x7FFFFFFF
PRODUCER = {"producerId": 900, "producerEpoch": 0}
two = [record(d, key=b"k", value=b"v") for d in (0, 1)]
appended(
    "sequence-gap", PLAIN, "a sequence that wraps to 0 after 2147483647",
    lambda log: log.next(two, baseSequence=TOP - 1, **PRODUCER)
    + log.next(two, offset=log.end + 2, baseSequence=0, **PRODUCER),
)
appended(
    "sequence-duplicate", PLAIN, "the same sequence from another producer",
    lambda log: log.next(baseSequence=7, **PRODUCER)
    + log.next(offset=log.end + 1, baseSequence=7, producerId=901, producerEpoch=0),
)
appended("sequence-epoch-start", PLAIN, "the oldest batch of a producer in the log, with a sequence above 0",
         lambda log: log.next(baseSequence=50, producerId=900, producerEpoch=3))
appended(
    "producer-epoch-decreased", PLAIN, "a lower epoch from another producer",
    lambda log: log.next(baseSequence=0, producerId=900, producerEpoch=3)
    + log.next(offset=log.end + 1, baseSequence=0, producerId=901, producerEpoch=2),
)
appended("transaction-open", PLAIN, "a transaction with a COMMIT marker",
         lambda log: log.next(attributes=0x10, baseSequence=0, **PRODUCER) + log.marker(900, 0, offset=log.end + 1))
on_disk("transaction-hanging", "clean-1", "payments-0", "an open transaction that is ongoing for the coordinator, too",
        lambda path: headers(path / f"{ZERO}.log")[-1].baseOffset == 115)
appended(
    "transaction-invalid", "payments-0",
    "a non-transactional batch of another producer, and repeated markers without data",
    lambda log: log.next(baseSequence=0, **PRODUCER) + log.marker(9, 8, offset=log.end + 1)
    + log.marker(9, 8, offset=log.end + 2),
)

# --- Indexes ----------------------------------------------------------------------------------------------------------


def older_style(data: bytes, first: list[int]) -> bytes:
    """Return entries as Kafka 0.8 to 1.1 wrote them: with the first offset of the batch."""
    entries = [INDEX_ENTRY.read(data, at) for at in range(0, len(data), INDEX_ENTRY.size)]
    return b"".join(INDEX_ENTRY.struct.pack(offset, entry.position) for entry, offset in zip(entries, first))


on_disk("index-size-invalid", "crash-1", f"clicks-0/{400457:020}.index", "a preallocated index with entries",
        lambda path: path.stat().st_size > 1 << 15)
edited("index-mismatch", INDEX, "entries with the first offset of each batch, as Kafka 0.8 to 1.1 wrote them",
       lambda data: older_style(data, [60, 120, 180, 240]))
edited("index-not-sorted", INDEX, "one index entry for two batches", lambda data: data[:8] + data[16:])
on_disk("index-beyond-log", "clean-1", INDEX, "the last entry has the position of the last batch",
        lambda path: INDEX_ENTRY.read(path.read_bytes(), 24).position > 0)
on_disk("time-index-size-invalid", "crash-1", f"clicks-0/{400457:020}.timeindex",
        "a preallocated time index, whose size is a multiple of 12 bytes", lambda path: path.stat().st_size > 1 << 15)
edited("time-index-not-sorted", TIME_INDEX, "the last entry repeated, as rolling a segment may write it",
       lambda data: data + data[-12:])
edited("time-index-mismatch", TIME_INDEX,
       "an entry with the offset of the record instead of the last offset of its batch",
       lambda data: TIME_INDEX_ENTRY.struct.pack(TIME_INDEX_ENTRY.read(data).timestamp, 88) + data[12:])
on_disk("index-padding", "clean-0", f"{METADATA}/{ZERO}.index", "the preallocated index of the metadata log",
        lambda path: not any(path.read_bytes()[-4096:]))
on_disk("txn-index-invalid", "clean-1", TXN_INDEX, "entries of several producers, alternating",
        lambda path: len({TXN_INDEX_ENTRY.read(path.read_bytes(), at).producerId for at in (0, 34)}) == 2)
on_disk("txn-index-mismatch", "clean-1", "users-0",
        "committed transactions without a .txnindex, which only lists aborted ones",
        lambda path: any(h.attributes & 0x30 == 0x30 for h in headers(path / f"{ZERO}.log")))
harmless("index-missing", "clean-1", "acks0-0", "an empty .index",
         lambda root: (root / f"acks0-0/{ZERO}.index").write_bytes(b""))
harmless("index-missing", "clean-1", "acks0-0", "an empty last segment, whose indexes the first append creates",
         lambda root: (root / f"acks0-0/{999_999:020}.log").write_bytes(b""))
harmless("segment-too-large", "crash-1", f"clicks-0/{400457:020}.log",
         "a preallocated segment of the largest size that a broker opens",
         lambda root: os.truncate(root / f"clicks-0/{400457:020}.log", MAX_SEGMENT_SIZE))
harmless(
    "index-orphan", "clean-1", "remote-log-index-cache", "cached indexes of segments in remote storage",
    lambda root: ((root / "remote-log-index-cache").mkdir(exist_ok=True),
                  shutil.copy(root / INDEX, root / "remote-log-index-cache/0_Qs5mI2ZHQIG0wO4XlnwcVw.index")),
)

# --- Snapshots and checkpoints ----------------------------------------------------------------------------------------


def other_producer(data: bytes) -> bytes:
    """Return a snapshot with a producer that is no longer in the log, and without the one that is."""
    from crc32c import crc32c

    body = data[: SNAPSHOT_HEADER.size] + PRODUCER_ENTRY.struct.pack(
        *PRODUCER_ENTRY.read(data, SNAPSHOT_HEADER.size)._replace(producerId=4242)
    )
    return body[:2] + crc32c(body[6:]).to_bytes(4, "big") + body[6:]


on_disk("snapshot-invalid", "crash-1", f"clicks-0/{400457:020}.snapshot", "a producer snapshot without producers",
        lambda path: path.stat().st_size == SNAPSHOT_HEADER.size)
edited("snapshot-mismatch", f"franz-gzip-0/{120:020}.snapshot",
       "a producer that is only in the snapshot, and one that is only in the log", other_producer)
edited("snapshot-mismatch", f"users-0/{254:020}.snapshot",
       "a producer with a later timestamp in the snapshot: the cleaner removed the last record of its last batch",
       producer(4, timestamp=1_795_247_905_232 + 137))
harmless("snapshot-missing", "clean-1", "orders-gzip-0", "no .snapshot after a clean shutdown, and no open transaction",
         lambda root: [path.unlink() for path in (root / "orders-gzip-0").glob("*.snapshot")])
harmless("tier-snapshot-missing", "tiered", "tiered-0", "a segment that is to be copied, and the .snapshot at its end",
         lambda root: rolled(root).stat())
edited("newer-release", f"franz-gzip-0/{120:020}.snapshot",
       "a producer snapshot of version 0, of a development version", lambda data: b"\0\0" + data[2:])
edited("checkpoint-invalid", f"{PLAIN}/leader-epoch-checkpoint", "an empty leader-epoch-checkpoint", lambda _: b"")
edited("checkpoint-beyond-log", "log-start-offset-checkpoint",
       "a log start offset equal to the log end offset: all records were deleted",
       lambda data: data.replace(b"trimmed 0 17\n", b"trimmed 0 50\n"))

# --- IDs, the metadata log and the directory --------------------------------------------------------------------------

edited("partition-metadata-invalid", f"{PLAIN}/partition.metadata",
       "a last line without a newline, as an editor may leave it", lambda data: data.rstrip(b"\n"))
edited("meta-properties-invalid", "meta.properties", "comments, blanks and an unknown property",
       lambda data: b"# edited\n\n" + data + b"owner = ops\n")
on_disk("quorum-state-invalid", "clean-1", METADATA, "the quorum-state of a broker, which does not vote",
        lambda path: b'"votedId":-1' in (path / "quorum-state").read_bytes())
harmless("kraft-snapshot-missing", "clean-0", METADATA, "a metadata log that starts at offset 0, without a snapshot",
         lambda root: [path.unlink() for path in (root / METADATA).glob("*.checkpoint")])
on_disk("kraft-snapshot-invalid", "clean-0", "bootstrap.checkpoint", "the bootstrap snapshot",
        lambda path: path.stat().st_size > 0)
edited("metadata-record-refused", f"{METADATA}/{0:020}.log", "a config of a type of resource that no release has",
       lambda data: with_metadata_record(data, b"\x01\x04\x00\x63\x02x\x02y\x02z\x00"))
on_disk("partition-duplicate", "clean-1", "",
        "a partition directory marked for deletion, and a newer partition of that name",
        lambda path: any(path.glob("gone-0.*-delete")))
edited("partition-missing", "replication-offset-checkpoint",
       "a checkpointed high watermark of a topic that has just been deleted",
       lambda data: data.replace(b"\n44\n", b"\n45\n") + b"gone 0 20\n")
harmless(
    "directory-unknown", "clean-1", "a.b_c-d-007", "a topic name with all kinds of legal characters",
    lambda root: (
        shutil.copytree(root / "ledger-0", root / "a.b_c-d-7") / "partition.metadata"
    ).write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"),
)
harmless(
    "directory-stray", "legacy", "my-delete-0", "a topic named my-delete",
    lambda root: shutil.copytree(root / "v1-client010-none-0", root / "my-delete-0"),
)
on_disk("compaction-interrupted", "clean-1", "users-0", "segments that the log cleaner replaced, marked for deletion",
        lambda path: any(path.glob("*.log.deleted")))
harmless("file-unknown", "clean-1", ".lock", "the lock file of a broker that is running or was killed",
         lambda root: (root / ".lock").touch())
# fmt: on
