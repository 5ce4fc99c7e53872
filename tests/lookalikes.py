"""The harmless counterpart of each code: something that looks like its damage, but is legal, and must not be reported.

As in tests/damages.py, each works on a copy of a real broker's log directory. Some are there as a broker left them;
their recipe only asserts that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import lz4.frame
import snappy

from kdump.format.batch import BATCH_HEADER
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.snapshot import PRODUCER_ENTRY, SNAPSHOT_HEADER
from tests.craft import message, rebase, record, split, varint, wrapper
from tests.damages import DAY_MS, INDEX, JUNK, METADATA, TIME_INDEX, TXN_INDEX, ZERO, Log

Act = Callable[[Path], object]


class Lookalike(NamedTuple):
    """Harmless counterpart. `act`: changes a copied log directory, given its root. No finding with `code` may be about
    anything below `place`."""

    code: str
    disk: str
    place: str
    what: str
    act: Act


LOOKALIKES: list[Lookalike] = []


def innocent(code: str, disk: str, place: str, what: str, act: Act) -> None:
    LOOKALIKES.append(Lookalike(code, disk, place, what, act))


def appended(
    code: str, partition: str, what: str, make: Callable[[Log], bytes], disk: str = "clean-1", base: int = 0
) -> None:
    """Add a recipe that appends bytes to a segment."""

    def act(root: Path) -> None:
        log = Log(root, partition, base)
        log.write(make(log))

    innocent(code, disk, partition, what, act)


def edited(code: str, file: str, what: str, change: Callable[[bytes], bytes], disk: str = "clean-1") -> None:
    innocent(code, disk, file, what, lambda root: (root / file).write_bytes(change((root / file).read_bytes())))


def there(code: str, disk: str, place: str, what: str, holds: Callable[[Path], object]) -> None:
    """Add a recipe for something that the broker left on the disk; `holds` checks that it is there."""

    def act(root: Path) -> None:
        assert holds(root / place), (code, place)

    innocent(code, disk, place, what, act)


def headers(path: Path) -> list[BATCH_HEADER.type]:  # type: ignore[name-defined]
    return [BATCH_HEADER.read(data) for data in split(path.read_bytes()) if data[16] == 2]


def magics(path: Path) -> list[int]:
    return [data[16] for data in split(path.read_bytes())]


PLAIN = "orders-none-0"

# --- Bytes ------------------------------------------------------------------------------------------------------------

appended(
    "crc-mismatch", PLAIN, "a batch that was moved to another offset, which its checksum does not cover",
    lambda log: rebase(log.next(offset=5), log.end),
)  # fmt: skip
appended(
    "batch-length-invalid", PLAIN, "an empty batch has the smallest length, 49", lambda log: log.next([], count=0)
)  # fmt: skip
appended("batch-truncated", PLAIN, "the last batch ends where the file ends", lambda log: log.next(), "crash-1")
appended(
    "trailing-bytes", PLAIN, "as many bytes as a header at the end: an empty batch",
    lambda log: log.next([], count=0), "crash-1",
)  # fmt: skip
appended(
    "junk-bytes", PLAIN, "letters, and a whole batch, in a value",
    lambda log: log.next([record(value=JUNK + log.next() + JUNK)]),
)  # fmt: skip
appended("zero-padding", PLAIN, "a value of 4096 zeros", lambda log: log.next([record(value=bytes(4096))]))
there(
    "magic-unknown", "legacy", "upgraded-gzip-0", "magic 0, 1 and 2 in one segment",
    lambda path: set(magics(path / f"{ZERO}.log")) == {0, 1, 2},
)  # fmt: skip
appended(
    "offset-invalid", PLAIN, "an offset just below 2147483648 above the segment's name",
    lambda log: log.next(offset=(1 << 31) - 1),
)  # fmt: skip
there("unreadable-bytes", "crash-1", "prealloc-0", "a hole in a file", lambda path: path.exists())

# --- Batches and records ----------------------------------------------------------------------------------------------

there(
    "record-count-mismatch", "clean-1", "users-0", "the cleaner left fewer records than the offsets say",
    lambda path: any(h.recordCount < h.lastOffsetDelta + 1 for h in headers(path / f"{ZERO}.log")),
)  # fmt: skip
appended(
    "record-malformed", PLAIN, "a varint of five bytes for a small number",
    lambda log: log.next(varint(10) + b"\0\0\0" + b"\x81\x80\x80\x80\0" + varint(-1) + varint(0), count=1),
)  # fmt: skip
appended(
    "decompression-failed", PLAIN, "Snappy without the framing of snappy-java",
    lambda log: log.next(codec="snappy", payload=snappy.compress(record(key=b"k", value=JUNK)), count=1),
)  # fmt: skip
appended(
    "lz4-frame-unsupported", PLAIN, "an LZ4 frame with a content size and checksums",
    lambda log: log.next(
        codec="lz4", count=1,
        payload=lz4.frame.compress(
            record(key=b"k", value=JUNK), block_linked=False, store_size=True, content_checksum=True,
            block_checksum=True,
        ),
    ),
)  # fmt: skip
there(
    "attributes-reserved", "clean-1", "users-0", "bit 6 of the attributes, the delete horizon",
    lambda path: any(h.attributes & 0x40 for h in headers(path / f"{ZERO}.log")),
)  # fmt: skip
appended(
    "offset-delta-invalid", "users-0", "the cleaner left holes between the offsets",
    lambda log: log.next([record(d, key=b"k%d" % d, value=b"v") for d in (2, 5)], lastOffsetDelta=9), base=254,
)  # fmt: skip
appended(
    "timestamp-mismatch", "logappend-0", "LogAppendTime: the records keep other timestamps than the batch",
    lambda log: log.next([record(value=b"v", timestamp=-5000)], attributes=0x08),
)  # fmt: skip
there(
    "control-batch-invalid", "clean-0", METADATA, "a snapshot's control batches of KRaft, which are no markers",
    lambda path: any(h.attributes & 0x20 for h in headers(next(path.glob("*.checkpoint")))),
)  # fmt: skip
appended(
    "producer-fields-invalid", PLAIN, "a sequence and an epoch without a producer id",
    lambda log: log.next(producerEpoch=0, baseSequence=0),
)  # fmt: skip
appended(
    "header-key-invalid", PLAIN, "an empty header key, one in two scripts, a null value, a key twice",
    lambda log: log.next(
        [record(value=b"v", headers=[(b"", b"1"), ("clé☃".encode(), None), (b"", b"2")])]
    ),
)  # fmt: skip
there(
    "size-over-limit", "clean-1", "large-0", "large batches under a larger max.message.bytes of the topic",
    lambda path: any(h.batchLength > 1048588 for h in headers(path / f"{ZERO}.log")),
)  # fmt: skip
appended(
    "message-set-invalid", "v1-broker28-gzip-0", "absolute offsets inside a wrapper v0, beside wrappers v1",
    lambda log: wrapper(0, [message(0, b"a", offset=log.end), message(0, b"b", offset=log.end + 1)],
                        offset=log.end + 1), "legacy",
)  # fmt: skip
appended(
    "null-key-compacted", PLAIN, "a record without a key in a topic that is not compacted",
    lambda log: log.next([record(value=b"v")]),
)  # fmt: skip

# --- A log ------------------------------------------------------------------------------------------------------------

there(
    "offset-not-monotonic", "clean-1", "sessions-0", "empty batches that keep the place of what was compacted",
    lambda path: any(h.recordCount == 0 for h in headers(path / f"{ZERO}.log")),
)  # fmt: skip


def start_late(root: Path) -> None:
    """Delete the first segments, like retention or DeleteRecords."""
    path = root / "clicks-0"
    for old in sorted(path.glob("*.log"))[:2]:
        for file in path.glob(f"{old.stem}.*"):
            file.unlink()


innocent("offset-gap", "clean-1", "clicks-0", "the log starts above 0", start_late)
there(
    "segment-name-mismatch", "clean-1", "users-0", "the first batch lies above the name: the cleaner took the others",
    lambda path: headers(path / f"{ZERO}.log")[0].baseOffset > 0,
)  # fmt: skip
there(
    "segment-overlap", "clean-1", "clicks-0", "a segment ends one below the next one's name",
    lambda path: len(list(path.glob("*.log"))) > 1,
)  # fmt: skip
appended(
    "leader-epoch-decreased", "users-0", "epoch -1, as the cleaner leaves it, between two others",
    lambda log: log.next(partitionLeaderEpoch=-1) + log.next(offset=log.end + 1), base=254,
)  # fmt: skip
there(
    "leader-epoch-missing", "legacy", "v1-broker28-none-0", "messages, whose format has no epoch",
    lambda path: set(magics(path / f"{ZERO}.log")) == {1},
)  # fmt: skip
edited(
    "leader-epoch-checkpoint-mismatch", "clicks-0/leader-epoch-checkpoint",
    "batches below the checkpoint's first entry", lambda _: b"0\n1\n0 200000\n",
)  # fmt: skip
appended(
    "timestamp-in-future", PLAIN, "23 hours after the file's last change: a clock that is wrong, or a time zone",
    lambda log: log.next(baseTimestamp=soon(log.path), maxTimestamp=soon(log.path)),
)  # fmt: skip


def soon(path: Path) -> int:
    return int(path.stat().st_mtime * 1000) + DAY_MS * 23 // 24


TOP = 0x7FFFFFFF
PRODUCER = {"producerId": 900, "producerEpoch": 0}
two = [record(d, key=b"k", value=b"v") for d in (0, 1)]
appended(
    "sequence-gap", PLAIN, "the sequence wraps behind 2147483647",
    lambda log: log.next(two, baseSequence=TOP - 1, **PRODUCER)
    + log.next(two, offset=log.end + 2, baseSequence=0, **PRODUCER),
)  # fmt: skip
appended(
    "sequence-duplicate", PLAIN, "the same sequence of another producer",
    lambda log: log.next(baseSequence=7, **PRODUCER)
    + log.next(offset=log.end + 1, baseSequence=7, producerId=901, producerEpoch=0),
)  # fmt: skip
appended(
    "sequence-epoch-start", PLAIN, "the first batch of a producer that the log still has",
    lambda log: log.next(baseSequence=50, producerId=900, producerEpoch=3),
)  # fmt: skip
appended(
    "producer-epoch-decreased", PLAIN, "an older epoch of another producer",
    lambda log: log.next(baseSequence=0, producerId=900, producerEpoch=3)
    + log.next(offset=log.end + 1, baseSequence=0, producerId=901, producerEpoch=2),
)  # fmt: skip
appended(
    "transaction-open", PLAIN, "a transaction that its marker ends",
    lambda log: log.next(attributes=0x10, baseSequence=0, **PRODUCER) + log.marker(900, 0, offset=log.end + 1),
)  # fmt: skip
there(
    "transaction-hanging", "clean-1", "payments-0", "an open transaction that the coordinator knows as ongoing",
    lambda path: headers(path / f"{ZERO}.log")[-1].baseOffset == 115,
)  # fmt: skip
appended(
    "transaction-invalid", "payments-0", "a plain batch of another producer, and markers without data and repeated",
    lambda log: log.next(baseSequence=0, **PRODUCER) + log.marker(9, 8, offset=log.end + 1)
    + log.marker(9, 8, offset=log.end + 2),
)  # fmt: skip

# --- Indexes ----------------------------------------------------------------------------------------------------------


def older_style(data: bytes, first: list[int]) -> bytes:
    """Return entries as Kafka 0.8 to 1.1 wrote them: with the first offset of the batch."""
    entries = [INDEX_ENTRY.read(data, at) for at in range(0, len(data), INDEX_ENTRY.size)]
    return b"".join(INDEX_ENTRY.struct.pack(offset, entry.position) for entry, offset in zip(entries, first))


there(
    "index-size-invalid", "crash-1", f"clicks-0/{400457:020}.index", "an index that is preallocated and holds entries",
    lambda path: path.stat().st_size > 1 << 15,
)  # fmt: skip
edited("index-mismatch", INDEX, "entries with the first offset of their batch", lambda data: older_style(
    data, [60, 120, 180, 240]))  # fmt: skip
edited("index-not-sorted", INDEX, "one entry for two batches", lambda data: data[:8] + data[16:])
there(
    "index-beyond-log", "clean-1", INDEX, "the last entry points at the last batch",
    lambda path: INDEX_ENTRY.read(path.read_bytes(), 24).position > 0,
)  # fmt: skip
there(
    "time-index-size-invalid", "crash-1", f"clicks-0/{400457:020}.timeindex", "preallocated, a multiple of 12 bytes",
    lambda path: path.stat().st_size > 1 << 15,
)  # fmt: skip
edited(
    "time-index-not-sorted", TIME_INDEX, "the last entry twice, as a roll writes it again",
    lambda data: data + data[-12:],
)  # fmt: skip
edited(
    "time-index-mismatch", TIME_INDEX, "an entry names the record and not the batch's last offset",
    lambda data: TIME_INDEX_ENTRY.struct.pack(TIME_INDEX_ENTRY.read(data).timestamp, 88) + data[12:],
)  # fmt: skip
there(
    "index-padding", "clean-0", f"{METADATA}/{ZERO}.index", "the preallocated index of the metadata log",
    lambda path: not any(path.read_bytes()[-4096:]),
)  # fmt: skip
there(
    "txn-index-invalid", "clean-1", TXN_INDEX, "entries of several producers by turns",
    lambda path: len({TXN_INDEX_ENTRY.read(path.read_bytes(), at).producerId for at in (0, 34)}) == 2,
)  # fmt: skip
there(
    "txn-index-mismatch", "clean-1", "users-0", "transactions without a .txnindex, for all were committed",
    lambda path: any(h.attributes & 0x30 == 0x30 for h in headers(path / f"{ZERO}.log")),
)  # fmt: skip
innocent(
    "index-missing", "clean-1", "acks0-0", "an index without an entry",
    lambda root: (root / f"acks0-0/{ZERO}.index").write_bytes(b""),
)  # fmt: skip
innocent(
    "index-orphan", "clean-1", "remote-log-index-cache", "the indexes of remote segments",
    lambda root: ((root / "remote-log-index-cache").mkdir(exist_ok=True),
                  shutil.copy(root / INDEX, root / "remote-log-index-cache/0_Qs5mI2ZHQIG0wO4XlnwcVw.index")),
)  # fmt: skip

# --- Snapshots and checkpoints ----------------------------------------------------------------------------------------


def other_producer(data: bytes) -> bytes:
    """Return a snapshot with a producer that is no longer in the log, and without the one that is."""
    from crc32c import crc32c

    body = data[: SNAPSHOT_HEADER.size] + PRODUCER_ENTRY.struct.pack(
        *PRODUCER_ENTRY.read(data, SNAPSHOT_HEADER.size)._replace(producerId=4242)
    )
    return body[:2] + crc32c(body[6:]).to_bytes(4, "big") + body[6:]


there(
    "snapshot-invalid", "crash-1", f"clicks-0/{400457:020}.snapshot", "a snapshot of no producers",
    lambda path: path.stat().st_size == SNAPSHOT_HEADER.size,
)  # fmt: skip
edited(
    "snapshot-mismatch", f"franz-gzip-0/{120:020}.snapshot", "a producer on one side only", other_producer
)  # fmt: skip
edited("checkpoint-invalid", f"{PLAIN}/leader-epoch-checkpoint", "an empty file", lambda _: b"")
edited(
    "checkpoint-beyond-log", "log-start-offset-checkpoint", "a log start at the log's end: every record is deleted",
    lambda data: data.replace(b"trimmed 0 17\n", b"trimmed 0 50\n"),
)  # fmt: skip

# --- IDs, the metadata log and the directory --------------------------------------------------------------------------

edited(
    "partition-metadata-invalid", f"{PLAIN}/partition.metadata", "no end of its last line, as an editor leaves it",
    lambda data: data.rstrip(b"\n"),
)  # fmt: skip
edited(
    "meta-properties-invalid", "meta.properties", "comments, blanks and a property that nobody knows",
    lambda data: b"# edited\n\n" + data + b"owner = ops\n",
)  # fmt: skip
there(
    "quorum-state-invalid", "clean-1", METADATA, "a broker's: it votes for nobody",
    lambda path: b'"votedId":-1' in (path / "quorum-state").read_bytes(),
)  # fmt: skip
innocent(
    "kraft-snapshot-missing", "clean-0", METADATA, "no snapshot, and a log that starts at 0",
    lambda root: [path.unlink() for path in (root / METADATA).glob("*.checkpoint")],
)  # fmt: skip
there(
    "kraft-snapshot-invalid", "clean-0", "bootstrap.checkpoint", "the bootstrap snapshot",
    lambda path: path.stat().st_size > 0,
)  # fmt: skip
there(
    "partition-duplicate", "clean-1", "", "a partition that is deleted here, and another incarnation",
    lambda path: any(path.glob("gone-0.*-delete")),
)  # fmt: skip
edited(
    "partition-missing", "replication-offset-checkpoint", "a high watermark of a topic that was deleted just before",
    lambda data: data.replace(b"\n44\n", b"\n45\n") + b"gone 0 20\n",
)  # fmt: skip
innocent(
    "directory-unknown", "clean-1", "a.b_c-d-007", "a topic with every character that a name may have",
    lambda root: shutil.copytree(
        root / "ledger-0", root / "a.b_c-d-7", ignore=shutil.ignore_patterns("partition.metadata")),
)  # fmt: skip
innocent(
    "directory-stray", "clean-1", "my-delete-0", "a topic named my-delete",
    lambda root: shutil.copytree(
        root / "ledger-0", root / "my-delete-0", ignore=shutil.ignore_patterns("partition.metadata")),
)  # fmt: skip
there(
    "compaction-interrupted", "clean-1", "users-0", "what the cleaner replaced, on its way out",
    lambda path: any(path.glob("*.log.deleted")),
)  # fmt: skip
innocent(
    "file-unknown", "clean-1", ".lock", "the lock of a broker that runs, or was killed",
    lambda root: (root / ".lock").touch(),
)  # fmt: skip
