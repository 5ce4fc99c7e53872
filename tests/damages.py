"""Recipes for damage: each changes a copy of a real broker's log directory so that one code of the catalogue is
reported.

A recipe declares the finding that it provokes and where that finding must point. Recipes change as little as possible:
fields are changed in place and keep their size, new batches go to the end of a log (which no index, snapshot or
checkpoint covers), and checksums are corrected unless they are what is tested."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from filecmp import cmpfiles
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lz4.frame
import zstandard
from crc32c import crc32c

from kdump.format.batch_header import BATCH_HEADER, BatchHeader
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.producer_snapshot import CRC_START, PRODUCER_ENTRY, SNAPSHOT_HEADER
from kdump.log.segment_limits import MAX_SEGMENT_SIZE
from tests.craft import (
    batch,
    compress,
    fix_crc,
    flip,
    message,
    overwrite,
    patch,
    rebase,
    record,
    split,
    varint,
    with_metadata_record,
    wrapper,
)

DISK_PATHS = {
    "clean-0": "kafka-4.3/clean-0",
    "clean-1": "kafka-4.3/clean-1",
    "crash-1": "kafka-4.3/crash-1",
    "legacy": "kafka-2.8-legacy",
    "tiered": "kafka-4.3-tiered/disk",
}
"""Path of each disk below conftest's DISKS. clean-0 is the controller's."""

ZERO = f"{0:020}"
METADATA = "__cluster_metadata-0"
JUNK = bytes(range(0x61, 0x7B)) * 4
DAY_MS = 86_400_000
YEAR_2100 = 4_102_444_800_000


class Expected(NamedTuple):
    """Expected finding. `file`: relative to the log directory; `position`: first byte of the damaged batch, entry or
    line, 0 if the finding is about a whole file or a directory."""

    code: str
    severity: str
    file: str
    position: int = 0


class Damage(NamedTuple):
    """Recipe. `apply`: changes a copied log directory, given its root; `also`: codes that may be reported as well."""

    name: str
    code: str
    disk: str
    what: str
    apply: Callable[[Path], Expected]
    also: tuple[str, ...] = ()


DAMAGES: list[Damage] = []
DOUBTS: list[Damage] = []
"""Recipes of the same kind for damage that the catalogue leaves open: what does a broker do with it?"""


OLD = 1_700_000_000


def aged(root: Path) -> Path:
    """Make all files old, so that no command waits for them to change again."""
    for path in [root, *root.rglob("*")]:
        os.utime(path, (OLD, OLD), follow_symlinks=False)
    return root


def copy_disk(source: Path, target: Path) -> Path:
    """Return a writable copy of a disk, or of a file of it; preallocated files stay sparse."""
    before = os.umask(0o022)
    try:
        if source.is_file() and not source.is_symlink() and source.stat().st_size < 1 << 20:
            shutil.copyfile(source, target)
        elif source.is_dir() and not target.exists() and _is_small(source):
            for folder, _, names in os.walk(source):
                made = target / Path(folder).relative_to(source)
                made.mkdir()
                for name in names:
                    shutil.copyfile(Path(folder, name), made / name)
        else:
            subprocess.run(["cp", "-r", "--no-preserve=mode", "--", source, target], check=True)
    finally:
        os.umask(before)
    return target


def _is_small(source: Path) -> bool:
    """Return True if a directory is copied without a process: few files, none of them sparse, or a link or pipe."""
    every = [path for path in source.rglob("*") if path.is_symlink() or not path.is_dir()]
    return len(every) < 150 and all(
        path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 16 for path in every
    )


def copy_some(source: Path, target: Path, *names: str) -> Path:
    """Return a copy of a disk, like `copy_disk`, with only these of its partitions; names may have wildcards."""
    target.mkdir()
    for path in source.iterdir():
        if path.is_file():
            copy_disk(path, target / path.name)
        elif any(fnmatch(path.name, name) for name in names):
            (target / path.name).mkdir()
            for file in path.iterdir():
                copy_disk(file, target / path.name / file.name)
    return target


ALIKE = ("aiokafka-", "franz-", "kafkajs-", "kafkapython-", "librdkafka-")
"""How names of topics begin that differ from others only in the client that wrote them."""


def leave_out_alike(disk: Path, source: Path) -> None:
    """Remove partitions of a copy that are as in its source, where there are others like them."""
    with suppress(PermissionError):
        for place in [path for path in disk.iterdir() if path.name.startswith(ALIKE)]:
            before = source / place.name
            names = os.listdir(place)
            is_alike = before.is_dir() and set(names) == set(os.listdir(before))
            if is_alike and cmpfiles(place, before, names, shallow=False)[0] == names:
                shutil.rmtree(place)


def second_directory(root: Path) -> Path:
    """Return the path where a recipe puts the broker's second log directory (partition-duplicate): next to the
    first."""
    return root.with_name(root.name + "-second")


# --- A segment as a list of batches -----------------------------------------------------------------------------------


class Log:
    """A segment of a copied disk: batches that can be changed, and new ones that could follow them."""

    def __init__(self, root: Path, partition: str, base: int = 0) -> None:
        self.file = f"{partition}/{base:020}.log"
        self.path = root / self.file
        self.batches = split(self.path.read_bytes())

    def position(self, index: int) -> int:
        return sum(map(len, self.batches[:index]))

    @property
    def last(self) -> BatchHeader:
        return BATCH_HEADER.read(self.batches[-1])

    @property
    def end(self) -> int:
        """The log end offset."""
        if self.batches[-1][16] > 1:
            return self.last.lastOffset + 1
        return int.from_bytes(self.batches[-1][:8], "big") + 1

    @property
    def epoch(self) -> int:
        """Newest leader epoch in the partition's checkpoint."""
        lines = (self.path.parent / "leader-epoch-checkpoint").read_text().split()
        return int(lines[-2])

    def next(self, records: Iterable[bytes] | bytes = (record(key=b"k", value=b"appended"),), **fields: Any) -> bytes:
        """Return a v2 batch that could follow: same timestamp, newest epoch, no producer."""
        time = self.last.maxTimestamp
        said = {"offset": self.end, "baseTimestamp": time, "maxTimestamp": time, "partitionLeaderEpoch": self.epoch}
        return batch(records, **(said | fields))

    def same_producer(self, sequence: int, **fields: Any) -> bytes:
        """Return a batch of the producer of the last one, with this sequence."""
        last = self.last
        return self.next(
            **({"producerId": last.producerId, "producerEpoch": last.producerEpoch, "baseSequence": sequence} | fields)
        )

    def marker(self, producer: int, epoch: int, commit: bool = True, **fields: Any) -> bytes:
        key, value = struct.pack(">hh", 0, commit), struct.pack(">hi", 0, 0)
        records = fields.pop("records", [record(key=key, value=value)])
        return self.next(records, attributes=0x30, producerId=producer, producerEpoch=epoch, **fields)

    def write(self, tail: bytes = b"") -> None:
        self.path.write_bytes(b"".join(self.batches) + tail)


# --- Kinds of recipes -------------------------------------------------------------------------------------------------

Change = Callable[[bytes], bytes]


def add(name: str, code: str, disk: str, what: str, apply: Callable[[Path], Expected], *also: str) -> None:
    DAMAGES.append(Damage(name, code, disk, what, apply, also))


def changed(
    name: str,
    code: str,
    disk: str,
    where: tuple[str, int, int],
    what: str,
    change: Change,
    *also: str,
    severity: str = "error",
    points_at: int | None = None,
) -> None:
    """Add a recipe that changes a batch. `where`: partition, base offset of the segment, and number of the batch, from
    0. The finding points at this batch or at number `points_at`."""

    def apply(root: Path) -> Expected:
        partition, base, index = where
        log = Log(root, partition, base)
        position = log.position(index if points_at is None else points_at)
        log.batches[index] = change(log.batches[index])
        log.write()
        return Expected(code, severity, log.file, position)

    add(name, code, disk, what, apply, *also)


def appended(
    name: str,
    code: str,
    disk: str,
    where: str | tuple[str, int],
    what: str,
    make: Callable[[Log], bytes | list[bytes]],
    *also: str,
    severity: str = "error",
) -> None:
    """Add a recipe that appends bytes or batches to a segment; the finding points at the last of them."""

    def apply(root: Path) -> Expected:
        partition, base = (where, 0) if isinstance(where, str) else where
        log = Log(root, partition, base)
        new = make(log)
        new = [new] if isinstance(new, bytes) else new
        position = log.position(len(log.batches)) + sum(map(len, new[:-1]))
        log.write(b"".join(new))
        return Expected(code, severity, log.file, position)

    add(name, code, disk, what, apply, *also)


def edited(
    name: str,
    code: str,
    disk: str,
    file: str,
    what: str,
    change: Change,
    *also: str,
    position: int | Callable[[bytes], int] = 0,
    severity: str = "error",
) -> None:
    """Add a recipe that changes a file other than a log as a whole. `position` may depend on the original contents."""

    def apply(root: Path) -> Expected:
        path = root / file
        data = path.read_bytes()
        path.write_bytes(change(data))
        return Expected(code, severity, file, position(data) if callable(position) else position)

    add(name, code, disk, what, apply, *also)


def done(
    name: str, code: str, disk: str, file: str, what: str, act: Callable[[Path], Any], *also: str, severity: str
) -> None:
    """Add a recipe that creates, deletes or renames files or directories; the finding is about `file`."""

    def apply(root: Path) -> Expected:
        act(root)
        return Expected(code, severity, file)

    add(name, code, disk, what, apply, *also)


# --- Changes ----------------------------------------------------------------------------------------------------------


def bit(number: int) -> Change:
    """Return a change that flips a bit `number` bytes before the end: in a value, where only the checksum can detect
    it."""
    return lambda data: flip(data, 8 * (len(data) - number))


def field(crc: bool = True, **fields: int) -> Change:
    return lambda data: patch(data, crc, **fields)


def plus(name: str, number: int, crc: bool = True) -> Change:
    return lambda data: patch(data, crc, **{name: getattr(BATCH_HEADER.read(data), name) + number})


def put(position: int, data: bytes) -> Change:
    return lambda old: overwrite(old, position, data)


def refit(position: int, data: bytes) -> Change:
    return lambda old: fix_crc(overwrite(old, position, data))


def entry(layout: Any, index: int, start: int = 0, **fields: int) -> Change:
    """Return a change of some fields of an entry in an index or a snapshot."""

    def change(data: bytes) -> bytes:
        position = start + index * layout.size
        return overwrite(data, position, layout.struct.pack(*layout.read(data, position)._replace(**fields)))

    return change


def swapped(size: int, index: int) -> Change:
    """Return a change that swaps entry `index` with the next one."""
    start = index * size
    return lambda data: (
        data[:start] + data[start + size : start + 2 * size] + data[start : start + size] + data[start + 2 * size :]
    )


def producer(index: int, **fields: int) -> Change:
    """Return a change of some fields of an entry in a producer snapshot, with a matching checksum."""

    def change(data: bytes) -> bytes:
        data = entry(PRODUCER_ENTRY, index, SNAPSHOT_HEADER.size, **fields)(data)
        return overwrite(data, 2, crc32c(data[CRC_START:]).to_bytes(4, "big"))

    return change


def line(old: bytes, new: bytes) -> Change:
    def change(data: bytes) -> bytes:
        assert data.count(old) == 1, (old, data)
        return data.replace(old, new)

    return change


def find(text: bytes) -> Callable[[bytes], int]:
    return lambda data: data.index(text)


def cut(number: int) -> Change:
    return lambda data: data[:-number]


def behind(tail: bytes) -> Change:
    return lambda data: data + tail


def first(number: int) -> Callable[[Log], bytes]:
    """Return the first bytes of a batch that was not written completely."""
    return lambda log: log.next([record(value=b"never finished " * 20)])[:number]


def records(*parts: bytes, **fields: Any) -> Callable[[Log], bytes]:
    return lambda log: log.next(list(parts), **fields)


# fmt: off
# --- Bytes ------------------------------------------------------------------------------------------------------------

GAP = "offset-gap"
LOST = (GAP, "sequence-gap")
"""Codes that may also be reported for an unreadable batch."""

LIBRDKAFKA = ("librdkafka-none-0", 0, 1)

changed("value-bit", "crc-mismatch", "clean-1", ("orders-none-0", 0, 2), "a bit flips in a value", bit(100))
changed("value-bit-earlier-segment", "crc-mismatch", "clean-1", ("clicks-0", 0, 30),
        "a bit flips in a segment before the last", bit(100))
changed("value-bit-below-recovery-point", "crc-mismatch", "crash-1", ("clicks-0", 11263, 40),
        "a bit flips below the recovery point, after an unclean shutdown", bit(100))
changed("value-bit-above-recovery-point", "crc-mismatch", "crash-1", ("clicks-0", 138377, 20),
        "a bit flips above the recovery point, in a segment before the last", bit(100))
changed("value-bit-last-segment", "crc-mismatch", "crash-1", ("clicks-0", 400457, 20),
        "a bit flips in the last segment, after an unclean shutdown", bit(100))
changed("attributes-bit", "crc-mismatch", "clean-1", ("kafkapython-snappy-0", 0, 1),
        "a bit flips in the attributes: LogAppendTime", lambda data: flip(data, 8 * 22 + 4))
changed("crc-magic-0", "crc-mismatch", "legacy", ("v0-client09-none-0", 0, 60), "a bit flips in a message v0", bit(9))
changed("crc-magic-1-wrapper", "crc-mismatch", "legacy", ("v1-client010-gzip-0", 0, 1),
        "a bit flips in the checksum of a wrapper", lambda data: flip(data, 8 * 13))
appended("crc-magic-1-inner", "crc-mismatch", "legacy", "v1-client010-snappy-0",
         "a message inside a wrapper has a wrong checksum, but the wrapper's is right",
         lambda log: wrapper(1, flip(message(1, b"inner"), 8 * 13), "snappy", offset=log.end))

changed("length-too-small", "batch-length-invalid", "clean-1", LIBRDKAFKA,
        "batchLength is 48, one less than the minimum", field(False, batchLength=48), *LOST)
changed("length-contradicted", "batch-length-invalid", "clean-1", ("aiokafka-none-0", 0, 1),
        "batchLength reaches 100 bytes into the next batch", plus("batchLength", 100, False), *LOST)
changed("length-negative", "batch-length-invalid", "clean-1", ("franz-none-0", 0, 1), "batchLength is -1",
        field(False, batchLength=-1), *LOST)
changed("length-past-the-end", "batch-length-invalid", "clean-1", ("kafkapython-none-0", 0, 1),
        "batchLength is 2 GB, with valid batches after it", field(False, batchLength=0x7F000000), *LOST)
changed("length-too-small-recovery", "batch-length-invalid", "crash-1", LIBRDKAFKA,
        "batchLength is 48, after an unclean shutdown", field(False, batchLength=48), *LOST)
changed("length-too-small-magic-0", "batch-length-invalid", "legacy", ("v0-broker28-none-0", 0, 60),
        "messageSize of a message v0 is 13, one less than the minimum", put(8, struct.pack(">i", 13)), GAP)

appended("torn-clean", "batch-truncated", "clean-1", "franz-gzip-0", "a truncated batch at the end", first(200))
appended("torn-crash", "batch-truncated", "crash-1", "franz-gzip-0",
         "a truncated batch at the end, after an unclean shutdown", first(200), severity="warning")
appended("torn-earlier-segment", "batch-truncated", "crash-1", ("clicks-0", 28000),
         "a truncated batch at the end of a segment before the last, above the recovery point", first(200))
changed("last-batch-cut", "batch-truncated", "clean-1", ("franz-snappy-0", 0, 2),
        "the last batch lacks its last 100 bytes, but index, snapshot and checkpoints include it", cut(100),
        "time-index-mismatch", "snapshot-mismatch", "checkpoint-beyond-log")
appended("tail-clean", "trailing-bytes", "clean-1", "franz-lz4-0", "10 bytes of a batch at the end", first(10))
appended("tail-30-clean", "trailing-bytes", "clean-1", "franz-zstd-0", "30 bytes of a batch at the end", first(30))
appended("tail-crash", "trailing-bytes", "crash-1", "franz-lz4-0",
         "10 bytes of a batch at the end, after an unclean shutdown", first(10), severity="warning")


def junk_between(disk: str, partition: str, root: Path) -> Expected:
    log = Log(root, partition)
    log.batches.insert(1, JUNK)
    log.write()
    return Expected("junk-bytes", "error", log.file, log.position(1))


for disk, partition in (("clean-1", "kafkapython-gzip-0"), ("crash-1", "kafkapython-gzip-0")):
    add(f"junk-{disk[:5]}", "junk-bytes", disk, "104 letters between two batches",
        partial(junk_between, disk, partition))

appended("zeros-clean", "zero-padding", "clean-1", "prealloc-0", "4096 zeros at the end", lambda _: bytes(4096))
appended("zeros-crash", "zero-padding", "crash-1", "prealloc-0", "4096 zeros at the end, after an unclean shutdown",
         lambda _: bytes(4096), severity="info")
appended("zeros-earlier-segment", "zero-padding", "crash-1", ("clicks-0", 190793),
         "4096 zeros at the end of a segment before the last, above the recovery point", lambda _: bytes(4096))
changed("zeros-for-a-batch", "zero-padding", "clean-1", ("kafkajs-none-0", 0, 1), "zeros in place of a batch",
        lambda data: bytes(len(data)), *LOST)
changed("magic-3", "magic-unknown", "clean-1", ("librdkafka-gzip-0", 0, 1), "magic is 3", field(False, magic=3), *LOST)
changed("magic-3-recovery", "magic-unknown", "crash-1", ("librdkafka-gzip-0", 0, 1),
        "magic is 3, after an unclean shutdown", field(False, magic=3), *LOST)
appended("base-offset-negative", "offset-invalid", "clean-1", "librdkafka-snappy-0", "baseOffset is -1",
         lambda log: log.next(offset=-1), "offset-not-monotonic", "segment-name-mismatch")
appended("last-offset-delta-negative", "offset-invalid", "clean-1", "aiokafka-zstd-0",
         "lastOffsetDelta of an empty batch is -41", lambda log: log.next([], lastOffsetDelta=-41),
         "offset-not-monotonic")

# --- Batches and records ----------------------------------------------------------------------------------------------

changed("count-too-small", "record-count-mismatch", "clean-1", ("librdkafka-none-0", 0, 1),
        "recordCount is one less than the records", plus("recordCount", -1), "record-malformed")
changed("count-too-large", "record-count-mismatch", "clean-1", ("aiokafka-lz4-0", 0, 1),
        "recordCount is one more than the records", plus("recordCount", 1), "record-malformed")
changed("count-zero", "record-count-mismatch", "clean-1", ("kafkapython-none-0", 0, 1),
        "recordCount is 0 with 40 records", field(recordCount=0), "record-malformed")
changed("count-negative", "record-count-mismatch", "clean-1", ("franz-none-0", 0, 1), "recordCount is -1",
        field(recordCount=-1), "record-malformed")

LONG_VARINT = b"\xff" * 5 + b"\x01"
appended("varint-too-long", "record-malformed", "clean-1", "aiokafka-none-0",
         "a record's length is a varint of six bytes", lambda log: log.next(LONG_VARINT + bytes(20), count=1))
appended("record-length-negative", "record-malformed", "clean-1", "aiokafka-snappy-0", "a record's length is -5",
         lambda log: log.next(varint(-5) + bytes(20), count=1))
appended("value-too-long", "record-malformed", "clean-1", "librdkafka-lz4-0", "a value is longer than its record",
         lambda log: log.next(varint(12) + b"\0\0\0" + varint(-1) + varint(500) + bytes(7), count=1))
appended("record-with-rest", "record-malformed", "clean-1", "librdkafka-snappy-0",
         "bytes are left over inside a record",
         lambda log: log.next(varint(10) + b"\0\0\0" + varint(-1) + varint(1) + b"v" + varint(0) + bytes(3), count=1))
appended("header-count-negative", "record-malformed", "clean-1", "librdkafka-gzip-0", "a record has -1 headers",
         lambda log: log.next(varint(7) + b"\0\0\0" + varint(-1) + varint(1) + b"v" + varint(-1), count=1))
appended("key-too-long-magic-1", "record-malformed", "legacy", "v1-broker28-none-0",
         "the key of a message v1 is longer than the message",
         lambda log: fix_crc(overwrite(message(1, b"value", key=b"key", offset=log.end), 26, struct.pack(">i", 1000))))

appended("gzip-garbage", "decompression-failed", "clean-1", "acks0-0", "the payload is not gzip",
         lambda log: log.next(codec="gzip", payload=JUNK, count=1))
appended("zstd-cut", "decompression-failed", "clean-1", "ledger-0", "a zstd frame lacks its end",
         lambda log: log.next(codec="zstd", payload=compress("zstd", record(value=JUNK))[:-20], count=1))
appended("codec-unknown", "decompression-failed", "clean-1", "kafkajs-gzip-0", "the codec ID is 5",
         lambda log: log.next(attributes=5))


def bomb(log: Log, size: int = 300 << 20) -> bytes:
    """Return a batch with one record of 300 MiB of zeros."""
    body = b"\0\0\0" + varint(-1) + varint(size)
    compressor = zstandard.ZstdCompressor(1).compressobj()
    payload = compressor.compress(varint(len(body) + size + 1) + body)
    block = bytes(1 << 20)
    payload += b"".join(compressor.compress(block) for _ in range(size >> 20))
    payload += compressor.compress(b"\0") + compressor.flush()
    return log.next(codec="zstd", payload=payload, count=1)


appended("zstd-bomb", "decompression-failed", "clean-1", "kafkapython-zstd-0",
         "a few kilobytes decompress to a record of 300 MiB", bomb)


def linked(log: Log) -> bytes:
    value = bytes(range(256)) * 600
    payload = lz4.frame.compress(record(value=value), block_linked=True, block_size=4, store_size=False)
    return log.next(codec="lz4", payload=payload, count=1)


appended("lz4-linked", "lz4-frame-unsupported", "clean-1", "kafkapython-lz4-0", "linked LZ4 blocks", linked)

appended("attribute-bit-7", "attributes-reserved", "clean-1", "orders-gzip-0", "bit 7 of a batch's attributes is set",
         lambda log: log.next(attributes=0x80), severity="warning")
appended("record-attributes", "attributes-reserved", "clean-1", "orders-snappy-0",
         "a bit of a record's attributes is set", records(record(key=b"k", value=b"v", attributes=1)), severity="info")

TWO = partial(record, key=b"k", value=b"v")
appended("delta-repeated", "offset-delta-invalid", "clean-1", "franz-gzip-0", "two records have the same offset",
         records(TWO(0), TWO(0)))
appended("delta-beyond-last", "offset-delta-invalid", "clean-1", "franz-lz4-0",
         "a record's offset is above the batch's last", records(TWO(0), TWO(5)))
appended("delta-negative", "offset-delta-invalid", "clean-1", "franz-snappy-0",
         "a record's offset is below the batch's first", records(TWO(-3), TWO(1)))

changed("max-timestamp", "timestamp-mismatch", "clean-1", ("kafkapython-zstd-0", 0, 0),
        "maxTimestamp is 1 ms more than the largest", plus("maxTimestamp", 1))
changed("max-timestamp-too-small", "timestamp-mismatch", "clean-1", ("aiokafka-zstd-0", 0, 1),
        "maxTimestamp is 10 ms less than the largest", plus("maxTimestamp", -10))
changed("wrapper-timestamp", "timestamp-mismatch", "legacy", ("v1-broker28-gzip-0", 0, 0),
        "the timestamp of a wrapper v1 is not its messages' largest", refit(18, struct.pack(">q", 1_400_000_000_000)))

PAYMENTS = "payments-0"
OPEN = ("transaction-open",)


def control(key: bytes, value: bytes, count: int = 1) -> Callable[[Log], bytes]:
    """Return a marker of producer 9, which has no open transaction."""
    return lambda log: log.marker(9, 8, records=[record(i, key=key, value=value) for i in range(count)])


COMMIT, MARKER = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0)
appended("control-key-short", "control-batch-invalid", "clean-1", PAYMENTS, "the key of a marker has 2 bytes",
         control(b"\0\0", MARKER))
appended("control-value-short", "control-batch-invalid", "clean-1", PAYMENTS, "the value of a marker has 1 byte",
         control(COMMIT, b"\0"))
appended("control-two-records", "control-batch-invalid", "clean-1", PAYMENTS, "a marker has two records",
         control(COMMIT, MARKER, 2), severity="warning")
appended("control-type-unknown", "control-batch-invalid", "clean-1", PAYMENTS, "a control record of type 99",
         control(struct.pack(">hh", 0, 99), b""))
appended("transactional-without-producer", "producer-fields-invalid", "clean-1", "aiokafka-lz4-0",
         "a transactional batch with producerId -1", lambda log: log.next(attributes=0x10), *OPEN,
         "transaction-hanging", severity="warning")
appended("producer-without-epoch", "producer-fields-invalid", "clean-1", "aiokafka-none-0",
         "producerId 99 with producerEpoch -1", lambda log: log.next(producerId=99, baseSequence=0),
         severity="warning")
appended("producer-without-sequence", "producer-fields-invalid", "clean-1", "aiokafka-snappy-0",
         "producerId 99 with baseSequence -1", lambda log: log.next(producerId=99, producerEpoch=0),
         severity="warning")


def null_header(log: Log) -> bytes:
    body = b"\0\0\0" + varint(-1) + varint(1) + b"v" + varint(1) + varint(-1) + varint(-1)
    return log.next(varint(len(body)) + body, count=1)


appended("header-key-null", "header-key-invalid", "clean-1", "librdkafka-none-0", "a null header key", null_header)
appended("header-key-latin-1", "header-key-invalid", "clean-1", "kafkapython-none-0", "a header key that is not UTF-8",
         records(record(value=b"v", headers=[(b"cl\xe9", b"1")])), severity="warning")
appended("header-key-nul", "header-key-invalid", "clean-1", "franz-none-0", "a header key with a null character",
         records(record(value=b"v", headers=[(b"a\0b", b"1")])), severity="warning")
appended("batch-of-1.1-MB", "size-over-limit", "clean-1", "orders-zstd-0",
         "a batch larger than the topic's max.message.bytes", records(record(key=b"k", value=JUNK * 10600)),
         severity="warning")


def legacy(
    name: str, partition: str, what: str, make: Callable[[int], bytes], *also: str, severity: str = "error"
) -> None:
    """Add a recipe that appends a wrapper; `make` is given its offset."""
    appended(
        name, "message-set-invalid", "legacy", partition, what, lambda log: make(log.end), *also, severity=severity
    )


legacy("wrapper-in-wrapper", "v1-broker28-gzip-0", "a wrapper inside a wrapper",
       lambda end: wrapper(1, [wrapper(1, [message(1, b"inner")])], offset=end))
legacy("wrapper-null", "v1-broker28-lz4-0", "a wrapper with a null value",
       lambda end: message(1, None, offset=end, attributes=1))
legacy("wrapper-empty", "v1-broker28-snappy-0", "a wrapper without messages", lambda end: wrapper(1, b"", offset=end))
legacy("wrapper-zstd", "v1-client010-gzip-0", "a message v1 compressed with zstd",
       lambda end: wrapper(1, [message(1, b"inner")], "zstd", offset=end))
legacy("wrapper-offset-magic-0", "v0-client09-gzip-0", "the last message inside a wrapper v0 has another offset",
       lambda end: wrapper(0, [message(0, b"a", offset=end), message(0, b"b", offset=end + 1)], offset=end + 5), GAP,
       severity="warning")
legacy("wrapper-offset-magic-1", "v1-client010-lz4-0", "a relative offset in a wrapper v1 exceeds the wrapper's",
       lambda end: wrapper(1, [message(1, b"a", offset=0), message(1, b"b", offset=500)], offset=end),
       "offset-not-monotonic")
legacy("wrapper-inner-magic", "v0-client09-lz4-0", "a message v1 inside a wrapper v0",
       lambda end: wrapper(0, [message(1, b"inner", offset=end)], offset=end), severity="warning")
legacy("wrapper-with-key", "v1-client010-none-0", "a wrapper with a key",
       lambda end: message(1, compress("gzip", message(1, b"inner")), offset=end, key=b"key", attributes=1),
       severity="warning")
appended("null-key", "null-key-compacted", "clean-1", ("users-0", 254), "a record without a key in a compacted topic",
         records(record(value=b"lost")), severity="warning")

# --- A log ------------------------------------------------------------------------------------------------------------

BACK = "offset-not-monotonic"
appended("offset-back", BACK, "clean-1", "orders-none-0", "offset 100 again, after 299",
         lambda log: log.next(offset=100))
appended("offset-back-recovery", BACK, "crash-1", "orders-none-0", "offset 100 again, after an unclean shutdown",
         lambda log: log.next(offset=100, partitionLeaderEpoch=0))
changed("offset-bit", BACK, "clean-1", ("aiokafka-lz4-0", 0, 1),
        "a bit flips in a baseOffset, which no checksum covers: 44 instead of 40", lambda data: rebase(data, 44))
appended("gap", GAP, "clean-1", "librdkafka-lz4-0", "ten offsets are missing before the last batch",
         lambda log: log.next(offset=log.end + 10), severity="warning")
appended("gap-compacted", GAP, "clean-1", ("sessions-0", 254), "ten offsets are missing in a compacted log",
         lambda log: log.next(offset=log.end + 10), severity="info")


def lose_segment(root: Path) -> None:
    for path in (root / "clicks-0").glob(f"{190793:020}.*"):
        path.unlink()


done("segment-lost", GAP, "crash-1", f"clicks-0/{243209:020}.log",
     "a segment between two others is gone with its indexes", lose_segment, severity="warning")


def misname(root: Path) -> None:
    for suffix in (".log", ".index"):
        (root / f"users-0/{254:020}{suffix}").rename(root / f"users-0/{260:020}{suffix}")
    (root / f"users-0/{254:020}.timeindex").unlink()
    (root / f"users-0/{260:020}.timeindex").touch()


done("name-above-first-offset", "segment-name-mismatch", "clean-1", f"users-0/{260:020}.log",
     "a segment that starts at 254 is named 260", misname, GAP, severity="error")
for disk in ("clean-1", "crash-1"):
    appended(f"offset-too-far-{disk[:5]}", "segment-name-mismatch", disk, "orders-gzip-0",
             "an offset 2147483648 above the segment's name", lambda log: log.next(offset=1 << 31), GAP)


def overlap(root: Path) -> None:
    log = Log(root, "librdkafka-snappy-0")
    stem = log.path.with_name(f"{80:020}")
    stem.with_suffix(".log").write_bytes(log.batches[2])
    stem.with_suffix(".index").touch()
    stem.with_suffix(".timeindex").write_bytes(struct.pack(">qi", BATCH_HEADER.read(log.batches[2]).maxTimestamp, 39))


done("overlap", "segment-overlap", "clean-1", f"librdkafka-snappy-0/{80:020}.log",
     "a second segment from 80 on contains the same records as the first one", overlap, BACK, severity="error")


def overlap_stale(root: Path) -> None:
    log = Log(root, "librdkafka-gzip-0")
    header = BATCH_HEADER.read(log.batches[2])
    times = {"baseTimestamp": header.maxTimestamp, "maxTimestamp": header.maxTimestamp}
    left = [record(delta, key=b"k", value=b"left by the cleaner") for delta in (0, 20, 39)]
    stem = log.path.with_name(f"{80:020}")
    stem.with_suffix(".log").write_bytes(batch(left, offset=80, lastOffsetDelta=39, **times))
    stem.with_suffix(".index").touch()
    stem.with_suffix(".timeindex").write_bytes(struct.pack(">qi", header.maxTimestamp, 39))


done("overlap-stale", "segment-overlap", "clean-1", f"librdkafka-gzip-0/{80:020}.log",
     "a second segment from 80 on contains three of the forty records of the first one", overlap_stale, BACK, *LOST,
     "sequence-duplicate", severity="error")

EPOCHS = "leader-epoch-checkpoint-mismatch"
for disk in ("clean-1", "crash-1"):
    changed(f"epoch-falls-{disk[:5]}", "leader-epoch-decreased", disk, ("aiokafka-gzip-0", 0, 1),
            "leader epoch 3 between two batches of epoch 0", field(False, partitionLeaderEpoch=3), EPOCHS, points_at=2)
changed("epoch-missing", "leader-epoch-missing", "clean-1", ("aiokafka-gzip-0", 0, 1), "a batch with leader epoch -1",
        field(False, partitionLeaderEpoch=-1), severity="info")
changed("epoch-unknown", EPOCHS, "clean-1", ("kafkajs-gzip-0", 0, 2),
        "the last batch has leader epoch 5, which is not in the checkpoint", field(False, partitionLeaderEpoch=5),
        severity="warning")
edited("epochs-not-rising", EPOCHS, "clean-1", "franz-zstd-0/leader-epoch-checkpoint",
       "the checkpoint has two entries of epoch 0", lambda _: b"0\n2\n0 0\n0 60\n", position=8, severity="warning")
edited("epochs-falling", EPOCHS, "clean-1", "kafkapython-zstd-0/leader-epoch-checkpoint",
       "the checkpoint's start offsets decrease", lambda _: b"0\n3\n0 0\n1 60\n2 50\n", position=13,
       severity="warning")
for disk in ("clean-1", "crash-1"):
    appended(f"year-2100-{disk[:5]}", "timestamp-in-future", disk, "orders-lz4-0", "a record of the year 2100",
             lambda log: log.next(baseTimestamp=YEAR_2100, maxTimestamp=YEAR_2100), "time-index-mismatch",
             severity="warning")

appended("sequence-gap", "sequence-gap", "clean-1", "orders-snappy-0", "sequence 305 instead of 300",
         lambda log: log.same_producer(305), severity="warning")
appended(
    "sequence-gap-old", "sequence-gap", "clean-1", "kafkajs-gzip-0", "sequence 125 instead of 120, two days later",
    lambda log: log.same_producer(
        125, baseTimestamp=log.last.maxTimestamp + 2 * DAY_MS, maxTimestamp=log.last.maxTimestamp + 2 * DAY_MS
    ),
    "time-index-mismatch",
    severity="info",
)
appended("sequence-gap-compacted", "sequence-gap", "clean-1", ("users-0", 254),
         "sequence 9 instead of 1, in a compacted log", lambda log: log.same_producer(9), severity="info")
appended("sequence-again", "sequence-duplicate", "clean-1", "orders-zstd-0", "sequence 299 again",
         lambda log: log.same_producer(299), severity="warning")
appended("sequence-new-epoch", "sequence-epoch-start", "clean-1", "orders-gzip-0",
         "a new producer epoch starts with sequence 7", lambda log: log.same_producer(7, producerEpoch=1),
         severity="warning")
appended("producer-epoch-falls", "producer-epoch-decreased", "clean-1", "orders-lz4-0",
         "a batch of producer epoch 0 after one of epoch 1",
         lambda log: [log.same_producer(0, producerEpoch=1), log.same_producer(300, offset=log.end + 1)],
         "sequence-gap", "sequence-duplicate", severity="warning")


def in_payments(
    name: str, code: str, what: str, make: Callable[[Log], bytes], position: int | None, severity: str, *also: str
) -> None:
    """Add a recipe that appends to the log with the open transaction of producer 11, which begins at byte 12430."""

    def apply(root: Path) -> Expected:
        log = Log(root, PAYMENTS)
        end = log.position(len(log.batches))
        log.write(make(log))
        return Expected(code, severity, log.file, end if position is None else position)

    add(name, code, "clean-1", what, apply, *OPEN, *also)


IN_TRANSACTION: dict[str, Any] = {"producerId": 11, "producerEpoch": 0, "baseSequence": 1}
in_payments("transaction-goes-on", "transaction-open", "one more batch in the open transaction",
            lambda log: log.next(attributes=0x10, **IN_TRANSACTION), 12430, "info")
in_payments(
    "transaction-old", "transaction-open", "a batch 20 minutes after the open transaction began",
    lambda log: log.next(
        baseTimestamp=log.last.maxTimestamp + 1_200_000, maxTimestamp=log.last.maxTimestamp + 1_200_000
    ),
    12430, "warning", "time-index-mismatch",
)
in_payments("data-outside-transaction", "transaction-invalid",
            "a non-transactional batch while its producer's transaction is open",
            lambda log: log.next(**IN_TRANSACTION), None, "error")
in_payments("marker-of-old-epoch", "transaction-invalid", "a marker of producer epoch 3, after epoch 8",
            lambda log: log.marker(9, 3), None, "warning")
appended("transaction-unknown", "transaction-hanging", "clean-1", "aiokafka-zstd-0",
         "a transaction of producer 77 that is not in the coordinator's log",
         lambda log: log.next(attributes=0x10, producerId=77, producerEpoch=0, baseSequence=0), *OPEN,
         severity="warning")

# --- Indexes ----------------------------------------------------------------------------------------------------------

INDEX = f"orders-none-0/{ZERO}.index"
TIME_INDEX = f"orders-none-0/{ZERO}.timeindex"
edited("index-size", "index-size-invalid", "clean-1", INDEX, "3 bytes too many", behind(b"\0\1\2"), position=32,
       severity="warning")
edited("index-falls", "index-not-sorted", "clean-1", INDEX, "an entry for offset 7 points to the last batch",
       entry(INDEX_ENTRY, 1, relativeOffset=7, position=21980), position=8)
edited("index-inside-batch", "index-mismatch", "clean-1", INDEX, "an entry points one byte after a batch's start",
       entry(INDEX_ENTRY, 1, position=11007), position=8)
edited("index-offset-too-small", "index-mismatch", "clean-1", INDEX, "an entry for offset 50 points at the batch of 60",
       entry(INDEX_ENTRY, 0, relativeOffset=50), position=0)
edited("index-past-the-end", "index-beyond-log", "clean-1", INDEX, "the last entry points past the end of the log",
       entry(INDEX_ENTRY, 3, position=99999), position=24)
edited("index-inside-batch-recovery", "index-mismatch", "crash-1", f"clicks-0/{11263:020}.index",
       "an entry points one byte after a batch's start, below the recovery point",
       lambda data: entry(INDEX_ENTRY, 5, position=INDEX_ENTRY.read(data, 40).position + 1)(data), position=40)
edited("index-inside-batch-above", "index-mismatch", "crash-1", f"clicks-0/{138377:020}.index",
       "an entry points one byte after a batch's start, above the recovery point",
       lambda data: entry(INDEX_ENTRY, 5, position=INDEX_ENTRY.read(data, 40).position + 1)(data), position=40)
edited("time-index-size", "time-index-size-invalid", "clean-1", TIME_INDEX, "5 bytes too many", behind(b"\0\1\2\3\4"),
       position=48, severity="warning")
edited(
    "time-index-falls", "time-index-not-sorted", "clean-1", TIME_INDEX,
    "an entry with a smaller timestamp than the one before it names the last offset",
    lambda data: entry(
        TIME_INDEX_ENTRY, 1, timestamp=TIME_INDEX_ENTRY.read(data).timestamp - 1000, relativeOffset=299
    )(data), position=12,
)
edited("time-index-timestamp", "time-index-mismatch", "clean-1", TIME_INDEX, "an entry's timestamp is 1 ms too small",
       lambda data: entry(TIME_INDEX_ENTRY, 1, timestamp=TIME_INDEX_ENTRY.read(data, 12).timestamp - 1)(data),
       position=12)
edited("time-index-offset", "time-index-mismatch", "clean-1", TIME_INDEX,
       "an entry's offset is two batches after the right one", entry(TIME_INDEX_ENTRY, 0, relativeOffset=179),
       position=0)
edited("index-zeros-clean", "index-padding", "clean-1", f"orders-lz4-0/{ZERO}.index", "64 zeros at the end",
       behind(bytes(64)), position=16, severity="warning")
edited("time-index-zeros-clean", "index-padding", "clean-1", f"orders-lz4-0/{ZERO}.timeindex", "120 zeros at the end",
       behind(bytes(120)), position=24)
edited("index-zeros-earlier-segment", "index-padding", "crash-1", f"clicks-0/{11263:020}.index",
       "64 zeros at the end, in a segment before the last, below the recovery point", behind(bytes(64)), position=728,
       severity="warning")
edited("index-zeros-deleted", "index-padding", "clean-1", f"sessions-0/{67:020}.index.deleted",
       "64 zeros at the end of an index that is to be deleted", behind(bytes(64)), position=8, severity="info")

TXN_INDEX = f"{PAYMENTS}/{ZERO}.txnindex"
edited("txn-size", "txn-index-invalid", "clean-1", TXN_INDEX, "5 bytes too many", behind(b"\0\1\2\3\4"), position=170)
edited("txn-version", "txn-index-invalid", "clean-1", TXN_INDEX, "an entry of version 1",
       entry(TXN_INDEX_ENTRY, 2, version=1), position=68)
edited("txn-swapped", "txn-index-invalid", "clean-1", TXN_INDEX, "entries 1 and 2 are swapped", swapped(34, 1),
       position=68)
edited("txn-no-marker", "txn-index-mismatch", "clean-1", TXN_INDEX,
       "an entry for a transaction of producer 9 that was committed",
       lambda data: data[:68] + TXN_INDEX_ENTRY.struct.pack(0, 9, 42, 54, 55) + data[68:], position=68)
edited("txn-entry-lost", "txn-index-mismatch", "clean-1", TXN_INDEX,
       "the entry of the transaction that was aborted at 68 is gone", lambda data: data[:68] + data[102:])


def lose_txn_index(root: Path) -> Expected:
    (root / TXN_INDEX).unlink()
    log = Log(root, PAYMENTS)
    offsets = [BATCH_HEADER.read(data).baseOffset for data in log.batches]
    return Expected("txn-index-mismatch", "error", log.file, log.position(offsets.index(26)))


add("txn-index-lost", "txn-index-mismatch", "clean-1",
    "the .txnindex is gone, with five aborted transactions in the log", lose_txn_index)
done("index-lost", "index-missing", "clean-1", f"orders-none-0/{ZERO}.log", "the .index is gone",
     lambda root: (root / INDEX).unlink(), severity="warning")
done("segment-of-2-gib", "segment-too-large", "clean-1", f"logappend-0/{ZERO}.log",
     "zeros make the .log one byte larger than a broker opens",
     lambda root: os.truncate(root / f"logappend-0/{ZERO}.log", MAX_SEGMENT_SIZE + 1), "zero-padding",
     severity="error")
done("index-alone", "index-orphan", "clean-1", f"orders-gzip-0/{500:020}.index", "an .index without a segment",
     lambda root: (root / f"orders-gzip-0/{500:020}.index").touch(), severity="warning")

# --- Snapshots and checkpoints ----------------------------------------------------------------------------------------

for topic, name, what, change in (
    ("gzip", "snapshot-bit", "a bit flips", lambda data: flip(data, 8 * 30)),
    ("snappy", "snapshot-version", "version 9", put(0, struct.pack(">h", 9))),
    ("lz4", "snapshot-cut", "the last 20 bytes are gone", cut(20)),
    ("zstd", "snapshot-empty", "an empty file", lambda _: b""),
):
    edited(name, "snapshot-invalid", "clean-1", f"orders-{topic}-0/{300:020}.snapshot", what, change)
edited("snapshot-bit-recovery", "snapshot-invalid", "crash-1", f"orders-gzip-0/{300:020}.snapshot",
       "a bit flips, after an unclean shutdown", lambda data: flip(data, 8 * 30))
done("snapshot-none", "snapshot-missing", "clean-1", f"payments-0/{0:020}.log",
     "there is no .snapshot, and a transaction is open",
     lambda root: [path.unlink() for path in (root / "payments-0").glob("*.snapshot")], severity="error")
edited("snapshot-sequence", "snapshot-mismatch", "clean-1", f"orders-gzip-0/{300:020}.snapshot",
       "lastSequence is 298 instead of 299", producer(0, lastSequence=298), position=10)
edited("snapshot-behind", "snapshot-mismatch", "clean-1", f"orders-zstd-0/{300:020}.snapshot",
       "the state after the last batch but one", producer(0, lastSequence=239, lastOffset=239), position=10)

RECOVERY, REPLICATION = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
START, CLEANER = "log-start-offset-checkpoint", "cleaner-offset-checkpoint"
for file, name in ((RECOVERY, "recovery"), (REPLICATION, "replication"), (START, "start"), (CLEANER, "cleaner")):
    edited(f"{name}-version", "checkpoint-invalid", "clean-1", file, "version 7", lambda data: b"7" + data[1:])
    edited(f"{name}-count", "checkpoint-invalid", "clean-1", file, "the count is one more than the entries",
           lambda data: b"0\n%d\n" % (int(data.split()[1]) + 1) + data.split(b"\n", 2)[2], position=2)
for file, name, old, new in (
    (RECOVERY, "recovery", b"trimmed 0 50\n", b"trimmed 0 fifty\n"),
    (REPLICATION, "replication", b"trimmed 0 50\n", b"trimmed 50\n"),
    (START, "start", b"trimmed 0 17\n", b"trimmed zero 17\n"),
    (CLEANER, "cleaner", b"sessions 0 254\n", b"sessions 0 254 254\n"),
):
    edited(f"{name}-line", "checkpoint-invalid", "clean-1", file, "an invalid line", line(old, new),
           position=find(old))
edited("recovery-not-utf-8", "checkpoint-invalid", "clean-1", RECOVERY, "a topic's name that is not UTF-8",
       line(b"trimmed 0 50\n", b"trimm\xe9d 0 50\n"), position=find(b"trimmed 0 50\n"))
EPOCH_FILE = "orders-none-0/leader-epoch-checkpoint"
edited("epoch-version", "checkpoint-invalid", "clean-1", EPOCH_FILE, "version 7", lambda _: b"7\n1\n0 0\n")
edited("epoch-count", "checkpoint-invalid", "clean-1", EPOCH_FILE, "the count is 2, with 1 entry",
       lambda _: b"0\n2\n0 0\n", position=2)
edited("epoch-negative", "checkpoint-invalid", "clean-1", EPOCH_FILE, "a negative start offset",
       lambda _: b"0\n2\n0 0\n1 -5\n", position=8)
edited("epoch-line", "checkpoint-invalid", "clean-1", EPOCH_FILE, "an invalid line", lambda _: b"0\n1\n0 zero\n",
       position=4)

BEYOND = "checkpoint-beyond-log"
edited("start-beyond", BEYOND, "clean-1", START, "the log start 60 of a log that ends at 50",
       line(b"trimmed 0 17\n", b"trimmed 0 60\n"), position=find(b"trimmed 0 17\n"))
edited("start-beyond-recovery", BEYOND, "crash-1", START,
       "the log start 60 of a log that ends at 50, after an unclean shutdown",
       line(b"trimmed 0 17\n", b"trimmed 0 60\n"), position=find(b"trimmed 0 17\n"))
edited("recovery-beyond", BEYOND, "clean-1", RECOVERY, "the recovery point 400 of a log that ends at 300",
       line(b"orders-none 0 300\n", b"orders-none 0 400\n"), position=find(b"orders-none 0 300\n"), severity="warning")
edited("recovery-beyond-crash", BEYOND, "crash-1", RECOVERY,
       "the recovery point 400 of a log that ends at 300, after an unclean shutdown",
       line(b"orders-none 0 300\n", b"orders-none 0 400\n"), position=find(b"orders-none 0 300\n"), severity="warning")
edited("replication-beyond", BEYOND, "clean-1", REPLICATION, "the high watermark 400 of a log that ends at 300",
       line(b"orders-lz4 0 300\n", b"orders-lz4 0 400\n"), position=find(b"orders-lz4 0 300\n"), severity="warning")
edited("cleaner-beyond", BEYOND, "clean-1", CLEANER, "the cleaner's offset 999 of a log that ends at 255",
       line(b"users 0 254\n", b"users 0 999\n"), position=find(b"users 0 254\n"), severity="warning")


def partition_gone(root: Path, checkpoint: str = REPLICATION) -> Expected:
    """Remove a partition; the finding is about the checkpoint's line."""
    shutil.rmtree(root / "orders-none-0")
    return Expected(
        "partition-missing", "warning", checkpoint, (root / checkpoint).read_bytes().index(b"orders-none 0 ")
    )


add("partition-gone", "partition-missing", "clean-1", "the directory of a partition is gone", partition_gone)
add("partition-gone-crash", "partition-missing", "crash-1",
    "the directory of a partition is gone, after an unclean shutdown", partition_gone)

# --- IDs, the metadata log and the directory --------------------------------------------------------------------------

PARTITION = "orders-snappy-0/partition.metadata"
for name, what, change in (
    ("partition-metadata-garbage", "no such file format", lambda _: b"garbage\n"),
    ("partition-metadata-version", "version 9", line(b"version: 0", b"version: 9")),
    ("partition-metadata-empty", "an empty file", lambda _: b""),
    (
        "partition-metadata-other-id", "the topic ID of another topic",
        line(b"LwBeI2NwS1e94oOXZaaFig", b"AwBeI2NwS1e94oOXZaaFig"),
    ),
):
    edited(name, "partition-metadata-invalid", "clean-1", PARTITION, what, change)
META = "meta.properties"
for name, what, change in (
    ("meta-version", "version 9", line(b"version=1", b"version=9")),
    ("meta-no-node-id", "no node.id", line(b"node.id=1\n", b"")),
    ("meta-node-id", "the node.id of another broker", line(b"node.id=1\n", b"node.id=7\n")),
    (
        "meta-directory-id", "a directory.id that is not in the metadata log",
        line(b"NC0LDPpABlNgsHloSKd7mg", b"AC0LDPpABlNgsHloSKd7mg"),
    ),
):
    edited(name, "meta-properties-invalid", "clean-1", META, what, change)
QUORUM = f"{METADATA}/quorum-state"
for disk in ("clean-0", "clean-1"):
    edited(f"quorum-garbage-{disk}", "quorum-state-invalid", disk, QUORUM, "not JSON", lambda _: b"garbage")
edited("quorum-version", "quorum-state-invalid", "clean-0", QUORUM, "data_version 9",
       line(b'"data_version":0', b'"data_version":9'))
edited("quorum-empty", "quorum-state-invalid", "clean-0", QUORUM, "an empty file", lambda _: b"")

SNAPSHOT = f"{METADATA}/{327:020}-0000000001.checkpoint"


def lose_kraft_snapshot(root: Path) -> None:
    """Delete the metadata snapshot at whose end the log starts."""
    log = Log(root, METADATA)
    log.batches = [data for data in log.batches if BATCH_HEADER.read(data).baseOffset >= 327]
    log.write()
    (root / SNAPSHOT).unlink()
    for suffix in (".index", ".timeindex", ".log"):
        path = log.path.with_suffix(suffix)
        if suffix != ".log":
            size = path.stat().st_size
            path.write_bytes(b"")
            os.truncate(path, size if size > 1 << 20 else 0)
        path.rename(path.with_name(f"{327:020}{suffix}"))


for disk in ("clean-0", "clean-1"):
    done(f"kraft-snapshot-lost-{disk}", "kraft-snapshot-missing", disk, f"{METADATA}/{327:020}.log",
         "the metadata log starts at 327, and the snapshot up to there is gone", lose_kraft_snapshot, severity="error")
    edited(f"metadata-unknown-topic-{disk}", "metadata-record-refused", disk, f"{METADATA}/{0:020}.log",
           "a record at the end of the metadata log removes a topic that does not exist",
           lambda data: with_metadata_record(data, b"\x01\x09\x00" + b"?" * 16 + b"\x00"), position=len)
    edited(f"kraft-snapshot-no-footer-{disk}", "kraft-snapshot-invalid", disk, SNAPSHOT,
           "the last batch, the footer, is gone", lambda data: b"".join(split(data)[:-1]))
    edited(f"kraft-snapshot-cut-{disk}", "kraft-snapshot-invalid", disk, SNAPSHOT,
           "only the first batch, the header, is left", lambda data: split(data)[0])
    edited(f"kraft-snapshot-no-header-{disk}", "kraft-snapshot-invalid", disk, SNAPSHOT,
           "the first batch, the header, is gone", lambda data: b"".join(split(data)[1:]))
    edited(f"kraft-snapshot-bit-{disk}", "crc-mismatch", disk, SNAPSHOT, "a bit flips in a batch of the snapshot",
           lambda data: flip(data, 8 * (len(split(data)[0]) + 100)), position=lambda data: len(split(data)[0]))
    edited(f"kraft-snapshot-torn-{disk}", "batch-truncated", disk, SNAPSHOT,
           "the last 5 bytes of the snapshot are gone", lambda data: data[:-5],
           position=lambda data: len(data) - len(split(data)[-1]))
    edited(f"kraft-snapshot-zeros-{disk}", "zero-padding", disk, SNAPSHOT, "512 zeros after the snapshot",
           behind(bytes(512)), position=len)
    edited(f"kraft-snapshot-junk-{disk}", "junk-bytes", disk, SNAPSHOT, "text after the snapshot", behind(JUNK * 2),
           position=len)


def two_directories(root: Path) -> None:
    """Add a second log directory of the same broker, with a partition that the first one also has."""
    second = second_directory(root)
    second.mkdir()
    shutil.copytree(root / "orders-none-0", second / "orders-none-0")
    meta = (root / META).read_bytes().replace(b"NC0LDPpABlNgsHloSKd7mg", b"SECONDpABlNgsHloSKd7mg")
    (second / META).write_bytes(meta)
    shutil.copy(root / ".kafka_cleanshutdown", second)


def second_epoch(root: Path) -> None:
    """Give the second batch another leader epoch, which no checksum covers, and remove the checkpoint."""
    log = root / "ledger-0" / f"{ZERO}.log"
    data = bytearray(log.read_bytes())
    start = 12 + int.from_bytes(data[8:12], "big")
    data[start + 12 : start + 16] = (4).to_bytes(4, "big")
    log.write_bytes(data)
    (root / "ledger-0/leader-epoch-checkpoint").unlink()


done("two-directories", "partition-duplicate", "clean-1", "orders-none-0",
     "a second log directory has the same partition", two_directories, severity="error")
done("lost-and-found", "directory-unknown", "clean-1", "lost+found", "fsck's directory on the broker's disk",
     lambda root: (root / "lost+found").mkdir(), severity="error")

ID = "0123456789abcdef0123456789abcdef"
for kind in ("delete", "stray"):
    done(f"directory-{kind}", "directory-stray", "clean-1", f"orders-zstd-0.{ID}-{kind}",
         f"a partition directory that ends in -{kind}",
         lambda root, kind=kind: shutil.copytree(root / "orders-zstd-0", root / f"orders-zstd-0.{ID}-{kind}"),
         severity="warning")
done("directory-future", "directory-stray", "clean-1", f"orders-zstd-0.{ID}-future",
     "a partition that was moving here from another log directory",
     lambda root: (root / "orders-zstd-0").rename(root / f"orders-zstd-0.{ID}-future"), severity="warning")
for kind in ("cleaned", "swap"):
    done(
        f"compaction-{kind}", "compaction-interrupted", "clean-1", f"users-0/{ZERO}.log.{kind}",
        f"the cleaner's .{kind} files next to the segment",
        lambda root, kind=kind: [
            shutil.copy(root / f"users-0/{ZERO}{suffix}", root / f"users-0/{ZERO}{suffix}.{kind}")
            for suffix in (".log", ".index", ".timeindex")
        ],
        severity="warning",
    )
done("file-notes", "file-unknown", "clean-1", "orders-none-0/notes.txt", "a text file",
     lambda root: (root / "orders-none-0/notes.txt").write_text("do not delete\n"), severity="info")
done("file-deleted", "file-unknown", "clean-1", f"orders-none-0/{ZERO}.log.deleted", "a segment to be deleted",
     lambda root: shutil.copy(root / f"orders-none-0/{ZERO}.log", root / f"orders-none-0/{ZERO}.log.deleted"),
     severity="info")
done("directory-file", "file-unknown", "clean-1", "notes.txt", "a text file next to the partitions",
     lambda root: (root / "notes.txt").write_text("do not delete\n"), severity="info")
done("partition-metadata-lost", "partition-metadata-invalid", "clean-1", PARTITION, "the file is gone",
     lambda root: (root / PARTITION).unlink(), severity="error")
done("epoch-checkpoint-lost-crash", EPOCHS, "crash-1", "ledger-0/leader-epoch-checkpoint",
     "the leader-epoch-checkpoint of a log with two epochs is gone", second_epoch, severity="warning")

# --- What the catalogue leaves open -----------------------------------------------------------------------------------

settled = len(DAMAGES)
done("time-index-lost", "index-missing", "clean-1", f"orders-none-0/{ZERO}.log", "the .timeindex is gone",
     lambda root: (root / TIME_INDEX).unlink(), severity="warning")
done("epoch-checkpoint-lost", EPOCHS, "clean-1", "orders-none-0", "the leader-epoch-checkpoint is gone",
     lambda root: (root / EPOCH_FILE).unlink(), severity="info")
done("meta-lost", "meta-properties-invalid", "clean-1", META, "the file is gone", lambda root: (root / META).unlink(),
     severity="error")
edited("meta-cluster-id", "meta-properties-invalid", "clean-1", META, "the ID of another cluster",
       line(b"FN96DRb6S3GeSIQS03itlw", b"AN96DRb6S3GeSIQS03itlw"))
done("quorum-lost", "quorum-state-invalid", "clean-0", METADATA, "the controller's quorum-state is gone",
     lambda root: (root / QUORUM).unlink(), severity="info")
done("directory-future-beside", "directory-stray", "clean-1", f"orders-zstd-0.{ID}-future",
     "a -future directory next to the live one in one log directory",
     lambda root: shutil.copytree(root / "orders-zstd-0", root / f"orders-zstd-0.{ID}-future"), severity="error")
for checkpoint, name in ((RECOVERY, "recovery"), (REPLICATION, "replication"), (START, "start"), (CLEANER, "cleaner")):
    edited(f"{name}-empty", "checkpoint-invalid", "clean-1", checkpoint, "an empty file", lambda _: b"")
edited("epoch-empty", "checkpoint-invalid", "clean-1", EPOCH_FILE, "an empty file", lambda _: b"")
DOUBTS += DAMAGES[settled:]
del DAMAGES[settled:]
# fmt: on
