"""Logs for `kdump retention`, each with topic configs. docs/retention-trials.json (tools/retention_trials.py) records
what a real broker did with them, and kdump has to predict the same."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kdump.format.index import TIME_INDEX_ENTRY
from tests.craft import batch, flip, record, write_file
from tests.disks import data, marker, snapshot, txn_index

DAY, HOUR = 86_400_000, 3_600_000
RETENTION = {"cleanup.policy": "delete", "retention.ms": str(HOUR)}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"}
BOTH = {"cleanup.policy": "compact,delete", "retention.ms": str(HOUR), "min.cleanable.dirty.ratio": "0.5"}


@dataclass
class Made:
    """A partition: its segments, and other files of the broker that add to them. `cleaned`, `log_start`: offsets in the
    checkpoint files; `times`: timestamps that replace the last entry of a .timeindex, by base offset (None: no entry);
    `modified`: modification times in epoch ms, by base offset; `opened`: first offset of an open transaction."""

    segments: list[bytes]
    cleaned: int | None = None
    log_start: int | None = None
    times: dict[int, int | None] = field(default_factory=dict)
    modified: dict[int, int] = field(default_factory=dict)
    opened: int | None = None
    aborted: tuple[int, int, int, int] | None = None
    """Entry in the .txnindex of the first segment."""


class Case(NamedTuple):
    name: str
    what: str
    configs: dict[str, str]
    make: Callable[[int], Made]
    """Builds the partition; its argument is the current time in epoch ms."""


def keyed(
    offset: int,
    at: int,
    count: int = 4,
    *,
    key: bytes | None = b"k",
    value: bytes | None = b"v" * 40,
    codec: str = "none",
) -> bytes:
    """Return a batch of records with the same key and the same timestamp."""
    rows = [record(n, key, value) for n in range(count)]
    return batch(rows, codec, offset=offset, baseTimestamp=at, maxTimestamp=at)


def three(ages: tuple[int, int, int], now: int, **more: bytes | None) -> list[bytes]:
    """Return three segments with two batches each. A negative age is in the future."""
    return [keyed(n * 8, now - age, **more) + keyed(n * 8 + 4, now - age, **more) for n, age in enumerate(ages)]  # type: ignore[arg-type]


OLD = (3 * DAY, 2 * DAY, DAY)
NEW = (3 * DAY, 2 * DAY, 0)


def _cut_payload(now: int) -> list[bytes]:
    """Return segments whose first batch is compressed and damaged: its checksum does not match, and it does not
    decompress."""
    rows = [record(n, b"k%d" % n, os.urandom(60)) for n in range(4)]
    whole = batch(rows, "gzip", baseTimestamp=now - DAY, maxTimestamp=now - DAY)
    broken = whole[:80] + bytes(20) + whole[100:]
    return [broken + keyed(4, now - DAY), *three(OLD, now)[1:]]


def _flipped(now: int, byte: int) -> list[bytes]:
    """Return segments with a bit flipped in the second batch of the first one."""
    segments = three(OLD, now)
    return [flip(segments[0], 8 * (len(keyed(0, now)) + byte)), *segments[1:]]


def _tombstones(now: int) -> Made:
    """Return a log with deleted keys past their delete horizon in the clean part, followed by a dirty part."""
    rows = [record(n, b"d%d" % n, None) for n in range(3)]
    dead = batch(rows, baseTimestamp=now - DAY, maxTimestamp=now - 2 * DAY, attributes=0x40)
    return Made([dead, keyed(8, now - DAY) * 1, keyed(12, now - DAY)], cleaned=8)


def _aborted(now: int) -> Made:
    at = now - DAY
    theirs = batch(
        [record(0, b"k", b"w")],
        offset=4,
        attributes=0x10,
        producerId=5,
        producerEpoch=0,
        baseSequence=0,
        baseTimestamp=at,
        maxTimestamp=at,
    )
    end = marker(5, 5, commit=False, baseTimestamp=at, maxTimestamp=at)
    return Made([keyed(0, at) + theirs + end, keyed(8, now)], aborted=(5, 4, 5, 6))


def _begun(now: int) -> bytes:
    """Return the batch of an open transaction, a day old."""
    return data(0, 5, baseTimestamp=now - DAY, maxTimestamp=now - DAY)


# fmt: off
CASES = [
    Case("empty-policy", "cleanup.policy is empty (KIP-1161)", {"cleanup.policy": ""} | {"retention.ms": "3600000"},
         lambda now: Made(three(OLD, now))),
    Case("time", "two segments from days ago, one from now", RETENTION, lambda now: Made(three(NEW, now))),
    Case("time-active", "three segments from days ago", RETENTION, lambda now: Made(three(OLD, now))),
    Case("future", "the second of three segments has a timestamp in the next week", RETENTION,
         lambda now: Made(three((3 * DAY, -7 * DAY, DAY), now))),
    Case("size", "three segments of 600 bytes, retention.bytes=700",
         {"cleanup.policy": "delete", "retention.bytes": "700", "retention.ms": "-1"},
         lambda now: Made(three(OLD, now))),
    Case("size-future", "retention.bytes ignores timestamps",
         {"cleanup.policy": "delete", "retention.bytes": "0", "retention.ms": str(HOUR)},
         lambda now: Made(three((3 * DAY, -7 * DAY, DAY), now))),
    Case("unbounded", "no retention.ms, no retention.bytes",
         {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"},
         lambda now: Made(three(OLD, now))),
    Case("untimed", "no record has a timestamp; the first file is old, the second is not", RETENTION,
         lambda now: Made([keyed(n * 4, -1) for n in range(3)], times=dict.fromkeys((0, 4, 8)),
                          modified={0: now - DAY, 4: now - 60_000, 8: now - DAY})),
    Case("time-index", "the records are new, but the .timeindex of the first segment has an old timestamp", RETENTION,
         lambda now: Made(three((0, 0, 0), now), times={0: now - DAY})),
    Case("time-index-empty", "the records are old, and the .timeindex of the first segment is empty; its file is new",
         RETENTION, lambda now: Made(three(OLD, now), times={0: None}, modified={0: now})),
    Case("log-start", "DeleteRecords up to the second segment, and no retention",
         {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"},
         lambda now: Made(three(NEW, now), log_start=9)),
    Case("delete-open", "an open transaction in the first segment does not block deletion", RETENTION,
         lambda now: Made([_begun(now), keyed(1, now)], opened=0)),
    Case("compact", "nothing has been cleaned yet", COMPACT, lambda now: Made(three(OLD, now))),
    Case("compact-ratio", "one of three segments is dirty, but the dirty ratio must be above 0.9",
         COMPACT | {"min.cleanable.dirty.ratio": "0.9"}, lambda now: Made(three(OLD, now), cleaned=8)),
    Case("compact-overdue", "the same, but max.compaction.lag.ms has passed",
         COMPACT | {"min.cleanable.dirty.ratio": "0.9", "max.compaction.lag.ms": str(HOUR)},
         lambda now: Made(three(OLD, now), cleaned=8)),
    Case("compact-young", "min.compaction.lag.ms has not passed", COMPACT | {"min.compaction.lag.ms": str(7 * DAY)},
         lambda now: Made(three(OLD, now))),
    Case("compact-active", "one segment", COMPACT, lambda now: Made(three(OLD, now)[:1])),
    Case("compact-open", "an open transaction in the first segment", COMPACT,
         lambda now: Made([_begun(now) + keyed(1, now - DAY), keyed(8, now), keyed(12, now)], opened=0)),
    Case("compact-closed", "the same with a marker", COMPACT,
         lambda now: Made([_begun(now) + marker(1, 5, baseTimestamp=now - DAY, maxTimestamp=now - DAY),
                           keyed(8, now), keyed(12, now)])),
    Case("compact-aborted", "an aborted transaction has the newest record of the key", COMPACT, _aborted),
    Case("compact-reset", "a checkpoint above the log end", COMPACT, lambda now: Made(three(OLD, now), cleaned=99)),
    Case("compact-unkeyed", "records without a key", COMPACT, lambda now: Made(three(OLD, now, key=None))),
    Case("compact-to-the-end",
         "the same up to the high watermark, where an empty batch is left; the active segment is empty", COMPACT,
         lambda now: Made([keyed(0, now - DAY, key=None) + keyed(4, now - DAY, key=None), b""])),
    Case("compact-tombstones", "tombstones whose delete horizon has passed", COMPACT, _tombstones),
    Case("compact-crc", "a bit flips in a value", COMPACT, lambda now: Made(_flipped(now, 90))),
    Case("compact-length", "a bit flips in a batch's length", COMPACT, lambda now: Made(_flipped(now, 9))),
    Case("compact-payload", "the payload of a compressed batch is damaged", COMPACT,
         lambda now: Made(_cut_payload(now))),
    Case("compact-zeros", "zeros at the end of a segment that is not the last", COMPACT,
         lambda now: Made([three(OLD, now)[0] + bytes(300), *three(OLD, now)[1:]])),
    Case("compact-too-large", "a compressed record above max.decompressed.message.bytes",
         COMPACT | {"max.decompressed.message.bytes": "80"},
         lambda now: Made([*three(OLD, now)[:1], keyed(8, now - DAY, value=b"v" * 90, codec="gzip"), keyed(16, now)])),
    Case("compact-at-limit", "the same, not compressed, and a smaller one that is",
         COMPACT | {"max.decompressed.message.bytes": "80"},
         lambda now: Made([keyed(0, now - DAY, codec="gzip"), keyed(8, now - DAY, value=b"v" * 90), keyed(16, now)])),
    Case("both", "compact and delete: segments from days ago", BOTH, lambda now: Made(three(NEW, now))),
    Case("both-length", "the same, with a damaged length", BOTH | {"retention.ms": str(36 * HOUR)},
         lambda now: Made([*three(NEW, now)[:1], flip(three(NEW, now)[1], 8 * 9), three(NEW, now)[2]])),
]
# fmt: on


def write(folder: Path, made: Made) -> int:
    """Replace the segments of a partition directory, and return the log end offset."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("0*"):
        path.unlink()
    end = 0
    for content in made.segments:
        base = int.from_bytes(content[:8], "big") if content else end
        path = write_file(folder / f"{base:020}.log", content)
        path.with_suffix(".index").write_bytes(b"")
        last, largest = _last(content)
        largest = made.times.get(base, largest) if base in made.times else largest
        entry = b"" if largest is None else TIME_INDEX_ENTRY.struct.pack(largest, last - base)
        path.with_suffix(".timeindex").write_bytes(entry)
        if made.aborted is not None and not base:
            path.with_suffix(".txnindex").write_bytes(txn_index(made.aborted))
        if base in made.modified:
            os.utime(path, (made.modified[base] / 1000,) * 2)
        end = last + 1 if content else end
    rows = [] if made.opened is None else [(5, 0, 0, 0, 0, 1, -1, made.opened)]
    (folder / f"{end:020}.snapshot").write_bytes(snapshot(*rows))  # type: ignore[arg-type]
    return end


def _last(content: bytes) -> tuple[int, int | None]:
    """Return the last offset and the largest timestamp, from headers that may be wrong."""
    position, last, largest = 0, 0, -1
    while position + 61 <= len(content):
        base, length = struct.unpack_from(">qi", content, position)
        delta, _, newest = struct.unpack_from(">iqq", content, position + 23)
        if not 49 <= length <= len(content):
            # A batch with a wrong length is the last of its segment.
            return base + delta if length else last, max(largest, newest) if length else largest
        last, largest = base + delta, max(largest, newest)
        position += 12 + length
    return last, largest if largest >= 0 else None
