"""Hypothesis strategies for disks with numbers near the limits of 32 and 64 bits: segments, and the small files and
file names next to them. Most checksums match; it is the numbers that are hostile."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.producer_snapshot import CRC_START, PRODUCER_ENTRY, SNAPSHOT_HEADER
from tests import craft

SHORT, INT, LONG = 1 << 15, 1 << 31, 1 << 63
BASE = 1_700_000_000_000
POWERS = (0, 31, 32, 56, 60, 61, 62, 63)
EDGES = sorted(
    {
        number
        for power in POWERS
        for sign in (1, -1)
        for near in (-2, -1, 0, 1, 2)
        if -LONG <= (number := sign * (1 << power) + near) < LONG
    }
    | {BASE}
)
"""Powers of two at which a comparison or a sum in kdump may overflow, and their neighbors."""


def edges(lowest: int, highest: int) -> st.SearchStrategy[int]:
    """Return a strategy for numbers of lowest..highest, most of them near the edges."""
    near = [number for number in (*EDGES, lowest, highest) if lowest <= number <= highest]
    return st.sampled_from(near) | st.integers(lowest, highest)


INT64 = edges(-LONG, LONG - 1)
INT32 = edges(-INT, INT - 1)
INT16 = edges(-SHORT, SHORT - 1)
DATA = st.none() | st.sampled_from([b"", b"k", b"key-1", b"\xff\0", b"v" * 40])


@st.composite
def records(draw: st.DrawFn, number: int) -> bytes:
    """Return record `number` of a batch: its deltas are correct, or arbitrary."""
    delta = number if draw(st.integers(0, 3)) else draw(INT32)
    timestamp = draw(st.sampled_from([0, 1, -1]) | INT64)
    headers = draw(st.lists(st.tuples(st.sampled_from([b"", b"h"]), DATA), max_size=2))
    return craft.record(delta, draw(DATA), draw(DATA), headers, timestamp)


HEADER: dict[str, st.SearchStrategy[int]] = {
    "lastOffsetDelta": INT32,
    "baseTimestamp": INT64,
    "maxTimestamp": INT64,
    "producerId": INT64,
    "producerEpoch": INT16,
    "baseSequence": INT32,
    "partitionLeaderEpoch": INT32,
    "recordCount": st.sampled_from([0, -1, 1, 2, 1000, INT - 1, -INT]),
    "attributes": st.sampled_from([0, 8, 0x10, 0x18, 0x20, 0x30, 0x40, 0x50, 0x80, -0x8000]),
}


@st.composite
def batches(draw: st.DrawFn, following: int) -> bytes:
    """Return a v2 batch at offset `following`, or at any offset."""
    offset = following if draw(st.integers(0, 3)) else draw(INT64)
    payload = [draw(records(number)) for number in range(draw(st.integers(0, 3)))]
    codec = draw(st.sampled_from(["none", "none", "none", "gzip", "zstd"]))
    names = draw(st.lists(st.sampled_from(sorted(HEADER)), max_size=3, unique=True))
    fields: dict[str, Any] = {name: draw(HEADER[name]) for name in names}
    if "attributes" in fields:
        fields["attributes"] |= craft.CODECS.index(codec)
    count = fields.pop("recordCount", len(payload))
    made = craft.batch([b"".join(payload)], codec, offset=offset, count=count, **{"lastOffsetDelta": 0} | fields)
    if "lastOffsetDelta" not in fields:
        made = craft.patch(made, lastOffsetDelta=max(0, len(payload) - 1))
    return made if draw(st.integers(0, 9)) else craft.overwrite(made, 17, bytes(4))


@st.composite
def messages(draw: st.DrawFn, following: int) -> bytes:
    """Return a message of v0 or v1, or a wrapper with up to three messages inside, at offset `following` or at any
    offset."""
    magic = draw(st.sampled_from([0, 1]))
    offset = following if draw(st.booleans()) else draw(INT64)
    when = draw(st.just(BASE) | INT64)
    if draw(st.booleans()):
        return craft.message(magic, draw(DATA), key=draw(DATA), offset=offset, timestamp=when)
    inner = draw(st.lists(st.sampled_from([0, 1]) | INT64, min_size=1, max_size=3))
    inside = [craft.message(magic, b"value", offset=each, timestamp=draw(st.just(BASE) | INT64)) for each in inner]
    attributes = draw(st.sampled_from([0, 8])) if magic else 0
    return craft.wrapper(magic, inside, offset=offset, attributes=attributes, timestamp=when)


@st.composite
def segments(draw: st.DrawFn, name: int) -> bytes:
    """Return up to five batches or messages: those of a healthy log from offset `name`, except for some numbers."""
    parts, offset = [], name
    for _ in range(draw(st.integers(1, 5))):
        parts.append(draw(batches(offset) if draw(st.integers(0, 3)) else messages(offset)))
        offset = min(LONG - 1, offset + 3)
    return b"".join(parts)


def name_of(offset: int) -> str:
    return f"{offset:020}"


NAMES = st.sampled_from([0, 0, 0, 5, INT, (1 << 62) - 1, 1 << 62, LONG - INT, LONG - 4, LONG - 1, LONG, 10**20 - 1])
NUMBERS = INT64.map(str) | st.sampled_from(["9" * 20, "²", "٣", "1_0", " 7", "+5", "-0", "9" * 5000, "0x1", ""])
"""Strategy for text where a text file should have a number."""


def index(entries: list[tuple[int, ...]], layout: Any) -> bytes:
    return b"".join(layout.struct.pack(*entry) for entry in entries)


def snapshot(entries: list[tuple[int, ...]]) -> bytes:
    """Return a producer snapshot."""
    body = struct.pack(">i", len(entries)) + index(entries, PRODUCER_ENTRY)
    crc = int.from_bytes(craft.fix_crc(bytes(16) + b"\2" + bytes(4) + body)[17:21], "big")
    made = SNAPSHOT_HEADER.struct.pack(1, crc, len(entries)) + index(entries, PRODUCER_ENTRY)
    assert made[CRC_START:] == body
    return made


PRODUCERS = st.lists(st.tuples(INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64), max_size=2).map(snapshot)
SMALL_FILES: dict[str, st.SearchStrategy[bytes]] = {
    "{name}.index": st.lists(st.tuples(INT32, INT32), max_size=3).map(lambda rows: index(rows, INDEX_ENTRY)),
    "{name}.timeindex": st.lists(st.tuples(INT64, INT32), max_size=3).map(lambda rows: index(rows, TIME_INDEX_ENTRY)),
    "{name}.txnindex": st.lists(st.tuples(st.just(0), INT64, INT64, INT64, INT64), max_size=2).map(
        lambda rows: index(rows, TXN_INDEX_ENTRY)
    ),
    "{name}.snapshot": PRODUCERS,
    "leader-epoch-checkpoint": st.lists(st.tuples(NUMBERS, NUMBERS), max_size=2).map(
        lambda rows: f"0\n{len(rows)}\n".encode() + "".join(f"{a} {b}\n" for a, b in rows).encode()
    ),
    "partition.metadata": NUMBERS.map(lambda number: f"version: {number}\ntopic_id: abcdefghijklmnopqrstuv\n".encode()),
    "../recovery-point-offset-checkpoint": NUMBERS.map(lambda number: f"0\n1\nt 0 {number}\n".encode()),
    "../replication-offset-checkpoint": NUMBERS.map(lambda number: f"0\n1\nt 0 {number}\n".encode()),
    "../log-start-offset-checkpoint": NUMBERS.map(lambda number: f"0\n1\nt {number} 0\n".encode()),
    "../meta.properties": NUMBERS.map(lambda number: f"version=1\nnode.id={number}\ncluster.id=c\n".encode()),
}
Disk = dict[str, bytes]
"""Contents of files by path, relative to a log directory."""


@st.composite
def disks(draw: st.DrawFn) -> Disk:
    """Return a log directory with one partition: one or two segments, and some of the small files; and `other`, a
    segment whose name is not an offset."""
    found: Disk = {"other": draw(segments(draw(st.sampled_from([0, 1 << 62, LONG - 2]))))}
    for base in sorted(set(draw(st.lists(NAMES, min_size=1, max_size=2)))):
        found[f"t-0/{name_of(base)}.log"] = draw(segments(min(base, LONG - 1)))
    chosen = draw(st.lists(st.sampled_from(sorted(SMALL_FILES)), max_size=4, unique=True))
    for each in chosen:
        path = f"t-0/{each.format(name=name_of(draw(NAMES)))}".replace("t-0/../", "")
        found[path] = draw(SMALL_FILES[each])
    return found


THREE = [craft.record(number, b"k", b"v") for number in range(3)]
LAST = craft.batch(THREE, offset=LONG - 2)
"""A batch whose last offset exceeds a long."""
KNOWN: list[Disk] = [
    {"other": LAST + craft.batch(THREE, offset=3), f"t-0/{name_of(0)}.log": LAST},
    {"other": LAST + LAST, f"t-0/{name_of(LONG - 2)}.log": LAST + craft.batch(THREE, offset=LONG - 2, codec="gzip")},
    {"other": craft.batch(THREE, count=0), f"t-0/{name_of(0)}.log": craft.batch(THREE, codec="gzip", count=0)},
    {
        "other": craft.wrapper(1, [craft.message(1, b"v", offset=each) for each in (-LONG, LONG - 1)], offset=1),
        f"t-0/{name_of(10**20 - 1)}.snapshot": snapshot([]),
        f"t-0/{name_of(0)}.log": craft.batch(THREE) + craft.overwrite(LAST, 17, bytes(4)),
        f"t-0/{name_of(10**20 - 1)}.log": LAST,
    },
    {
        "other": craft.batch([craft.record(0, timestamp=LONG - 1)], baseTimestamp=LONG - 1, maxTimestamp=-2),
        f"t-0/{name_of(0)}.log": craft.batch([craft.record(0, timestamp=-LONG)], baseTimestamp=-1, maxTimestamp=-1),
    },
]
"""Disks that have revealed such defects."""


def lay_out(disk: Disk, root: Path) -> None:
    """Write the files of a disk below `root`, which is new. Their times are old: a command pauses over a file that was
    written just now."""
    for path, data in disk.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    for written in (root, *root.rglob("*")):
        os.utime(written, (1_700_000_000, 1_700_000_000))
