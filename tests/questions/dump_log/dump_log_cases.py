"""Files and options for the real kafka-dump-log 4.3.1; tests/golden/dump-log contains what it printed.

`build` creates the files from real ones, each changed in one place, and from crafted records. dump_log_golden.py runs
Kafka's tool on them and writes the golden files; test_dump_log.py runs kdump."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from tests import craft
from tests.conftest import FIXTURES, ROOT
from tests.craft import batch, fix_crc, flip, message, one, overwrite, patch, record, sized, split, varint, wrapper
from tests.damages import entry

GOLDEN = ROOT / "tests" / "golden" / "dump-log"
SEGMENT = "00000000000000000000"
PAYMENTS = f"payments-0/{SEGMENT}"
TOPICS = ("payments-0", "__consumer_offsets-0", "__transaction_state-0", "__share_group_state-0")
TOPICS += ("__cluster_metadata-0", "__remote_log_metadata-0")
DECODERS = ("offsets", "transaction-log", "cluster-metadata", "share-group-state", "remote-log-metadata")
CLASSES = "org.apache.kafka.tools.api."


class Case(NamedTuple):
    """A run. `differs`: reason why kdump's standard output differs although Kafka's tool succeeds; `status`: kdump's
    exit status and the reason, if it differs from Kafka's."""

    name: str
    arguments: tuple[str, ...]
    differs: str = ""
    status: tuple[int, str] | None = None


def source(path: str) -> bytes:
    own = GOLDEN / "files" / path
    return (own if own.exists() else FIXTURES / "clean-1" / path).read_bytes()


def log(path: str) -> list[bytes]:
    """Return the batches of a real segment."""
    return split(source(f"{path}/{SEGMENT}.log"))


MALFORMED = (0x41, 0x80, 0xA0, 0xC0, 0xC3, 0xE0, 0xED, 0xF0, 0xF5)
"""Bytes whose sequences cover all cases of Java's UTF-8 decoder."""


def malformed() -> Iterator[bytes]:
    yield b"key: \0\x01\x1b[31m\x7f\xc2\x85\r\n | offset: 1"
    for size in (1, 2, 3):
        for values in itertools.product(MALFORMED, repeat=size):
            yield bytes(values)
    for tail in itertools.product((0x80, 0xBF, 0x41), repeat=3):
        yield from (bytes([lead, *tail]) for lead in (0xF0, 0xF1, 0xF4, 0xF5))


def utf8() -> bytes:
    texts = list(malformed())
    parts = []
    for at in range(0, len(texts), 200):
        some = texts[at : at + 200]
        records = [record(i, text, text, [(text, None)] if i % 9 == 0 else []) for i, text in enumerate(some)]
        parts.append(batch(records, offset=at))
    return b"".join(parts)


Rows = Sequence[tuple["bytes | None", "bytes | None"]]


def text16(text: bytes | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text


def records_of(rows: Rows, attributes: int = 0) -> bytes:
    return b"".join(
        batch([record(0, key, value)], offset=at, attributes=attributes) for at, (key, value) in enumerate(rows)
    )


def coordinator() -> bytes:
    """Return records for --offsets-decoder: a valid offset commit, and invalid records."""
    key = struct.pack(">h", 1) + text16(b'group \xed\xa0\x80\x1b\x7f"\\\n\x0b') + text16("tópico".encode()) + bytes(4)
    value = struct.pack(">hqi", 3, 42, -1) + text16(b"\x1f/") + struct.pack(">q", 1)
    group = struct.pack(">h", 2) + text16(b"g")
    member = text16(b"m") + text16(None) + text16(b"c") + text16(b"h") + struct.pack(">ii", 1, 2)
    subscription = struct.pack(">hi", 1, 1) + text16(b"t") + struct.pack(">ii", -1, 0)
    assignment = struct.pack(">hi", 9, 0) + struct.pack(">i", 1) + b"u"
    blob = [struct.pack(">i", len(data)) + data for data in (subscription, assignment, b"\0", b"")]
    head = struct.pack(">h", 3) + text16(b"consumer") + struct.pack(">i", 7) + text16(b"range") + text16(None)
    classic = head + struct.pack(">qi", 5, 2) + member + blob[0] + blob[1] + member + blob[2] + blob[3]
    rows: list[tuple[bytes | None, bytes | None]] = [
        (key, value),
        (key, None),
        (key, value + b"left over"),
        (key, struct.pack(">h", 99) + value[2:]),
        (key, struct.pack(">h", -2) + value[2:]),
        (key, value[:9]),
        (key, b"\0"),
        (key[:9], value),
        (b"\0\1\xff\xff", value),
        (b"\0\1\x7f\xff", value),
        (b"\x12\x34", value),
        (b"\0", value),
        (b"", value),
        (group, classic),
        (group, classic[:-1]),
        (group, head + struct.pack(">qi", 5, 1 << 28)),
        (None, value),
        (key, value),
    ]
    return records_of(rows)


def metadata() -> bytes:
    """Return records for --cluster-metadata-decoder, valid and invalid ones."""
    entity = bytes([2, 5]) + b"user" + bytes([2]) + b"u" + bytes([0])
    quotas = [
        bytes([1, 14, 0]) + entity + bytes([3]) + b"ab" + struct.pack(">d", number) + bytes([0, 0])
        for number in (0.0, 1.5, 1e7, 9999999.0, 1.25e-4, 0.001, -3e300, 123456.789, float("nan"), float("inf"))
    ]
    rows = [
        *quotas,
        quotas[0] + b"garbage",
        quotas[0][:-3],
        b"\0" + quotas[0][1:],
        b"\x09" + quotas[0][1:],
        b"\xff\xff\xff\xff\xff\xff",
        bytes([1, 99, 0]),
        bytes([1, 0xFF, 0xFF, 0x7F, 0]),
        b"\x01",
        b"",
    ]
    return records_of([(None, row) for row in [*rows, None]])


def remote() -> bytes:
    """Return records for --remote-log-metadata-decoder: of each kind, and invalid ones."""
    partition = bytes([3]) + b"tt" + bytes(range(16)) + struct.pack(">i", 3) + b"\0"
    segment = partition + bytes(range(16, 32)) + b"\0"

    def added(start: int, end: int, epochs: bytes, state: int, custom: bytes = b"\0", tags: bytes = b"\0") -> bytes:
        said = bytes([1, 0, 0]) + segment + struct.pack(">qqiqq", start, end, 1, 5, 6) + epochs
        return said + struct.pack(">i", 100) + custom + bytes([state]) + tags

    def epoch(number: int, offset: int) -> bytes:
        return struct.pack(">iq", number, offset) + b"\0"

    two = bytes([3]) + epoch(9, 7) + epoch(2, 0)
    rows: list[bytes | None] = [
        added(0, 9, two, 0),
        added(0, 9, two, 3, bytes([4]) + b"abc", bytes([1, 0, 1, 1])),
        added(-1, 9, two, 0),
        added(5, 4, two, 0),
        added(0, 9, bytes([1]), 0),
        added(0, 9, two, 7),
        bytes([1, 1, 0]) + segment + struct.pack(">iq", 1, 2) + bytes([3]) + b"xy" + bytes([1, 0]),
        bytes([1, 2, 0]) + partition + struct.pack(">iq", 1, 2) + bytes([2, 0]),
        bytes([1, 2, 0]) + partition + struct.pack(">iq", 1, 2) + bytes([9, 0]),
        bytes([1, 3, 0]) + bytes(16) + struct.pack(">qqiqq", -4, -5, 1, 5, 6) + two + struct.pack(">i", 1) + b"\0\1\0",
        bytes([1, 4, 0]),
        None,
    ]
    return records_of([(None, row) for row in rows])


def newer() -> bytes:
    """Return metadata records in versions that do not exist yet: without structs, with an array of structs, and with an
    empty array of structs."""
    quota, rest = bytes([1, 14, 9]), bytes([3]) + b"ab" + struct.pack(">d", 1.5) + bytes([0, 0])
    entity = bytes([2, 5]) + b"user" + bytes([2]) + b"u" + bytes([0])
    tag = bytes([1, 9, 1]) + b"t"
    rows = [
        bytes([1, 12, 9]) + bytes([3]) + b"mv" + struct.pack(">h", 7) + b"\0",
        bytes([1, 12, 9]) + bytes([3]) + b"mv" + struct.pack(">h", 7) + tag,
        quota + entity + rest,
        quota + bytes([1]) + rest,
        quota + bytes([1]) + rest + b"more",
    ]
    return records_of([(None, row) for row in rows])


def newer_remote() -> bytes:
    """Return remote log metadata in versions that do not exist yet; all records contain structs."""
    partition = bytes([3]) + b"tt" + bytes(range(16)) + struct.pack(">i", 3) + b"\0"
    update = partition + bytes(range(16, 32)) + b"\0" + struct.pack(">iq", 1, 2) + bytes([0, 1, 0])
    gone = partition + struct.pack(">iq", 1, 2) + bytes([2, 0])
    return records_of([(None, bytes([1, 1, 9]) + update), (None, bytes([1, 2, 9]) + gone)])


def control() -> bytes:
    """Return control records of every type, and of unknown types."""

    def key(number: int) -> bytes:
        return struct.pack(">hh", 0, number)

    voters = bytes([0, 0, 2]) + struct.pack(">i", 1) + bytes(range(16)) + bytes([2, 4]) + b"PLA" + bytes([2]) + b"h"
    voters += struct.pack(">H", 9093) + b"\0" + struct.pack(">hh", 0, 1) + bytes([0, 0, 0])
    rows: list[tuple[bytes | None, bytes | None]] = [
        (key(0), struct.pack(">hi", 0, 5)),
        (key(1), struct.pack(">hi", 0, -1)),
        (key(2), struct.pack(">hi", 0, 1) + bytes([1, 1, 0])),
        (key(3), struct.pack(">hq", 0, 77) + b"\0"),
        (key(4), struct.pack(">h", 0) + b"\0"),
        (key(5), struct.pack(">hh", 0, 1) + b"\0"),
        (key(6), voters),
        (key(7), b"what"),
        (key(-1), None),
    ]
    return records_of(rows, attributes=0x20)


Change = Callable[[list[bytes]], "list[bytes]"]


def at(index: int, change: Callable[[bytes], bytes]) -> Change:
    return lambda parts: [change(part) if i == index else part for i, part in enumerate(parts)]


def length(number: int) -> Change:
    return at(3, lambda part: overwrite(part, 8, struct.pack(">i", number)))


DAMAGED: dict[str, tuple[str, Change]] = {
    "truncated": ("payments-0", lambda parts: [*parts[:-1], parts[-1][:-7]]),
    "truncated-header": ("payments-0", lambda parts: [*parts[:5], parts[5][:12]]),
    "truncated-legacy": ("v1", lambda parts: [*parts[:2], parts[2][:30]]),
    "zeros-behind": ("payments-0", lambda parts: [*parts[:4], bytes(500)]),
    "few-zeros-behind": ("payments-0", lambda parts: [*parts[:4], bytes(9)]),
    "zeros-between": ("payments-0", lambda parts: [*parts[:3], bytes(100), *parts[3:6]]),
    "junk-behind": ("payments-0", lambda parts: [*parts[:3], bytes(range(200, 256))]),
    "crc": ("payments-0", at(3, lambda part: flip(part, 8 * 40))),
    "value-flipped": ("payments-0", at(3, lambda part: flip(part, 8 * (len(part) - 20)))),
    "length-zero": ("payments-0", length(0)),
    "length-negative": ("payments-0", length(-5)),
    "length-long": ("payments-0", length(1 << 30)),
    "length-short-v2": ("payments-0", length(20)),
    "header-zeroed": ("payments-0", at(3, lambda part: part[:12] + bytes(80) + part[92:])),
    "delta-negative": ("payments-0", at(3, lambda part: fix_crc(part[:65] + varint(-3) + part[66:]))),
    "magic-5": ("payments-0", at(3, lambda part: overwrite(part, 16, b"\x05"))),
    "magic-negative": ("payments-0", at(3, lambda part: overwrite(part, 16, b"\x80"))),
    "codec-unknown": ("payments-0", at(3, lambda part: patch(part, attributes=7))),
    "codec-unknown-empty": ("payments-0", at(3, lambda part: patch(part, attributes=7, recordCount=0))),
    "offset-negative": ("payments-0", at(3, lambda part: craft.rebase(part, -7))),
    "deltas-wrap": ("payments-0", at(3, lambda part: patch(part, baseOffset=(1 << 63) - 1, baseSequence=2147483647))),
    "sequence-negative": ("payments-0", at(3, lambda part: patch(part, baseSequence=-9, lastOffsetDelta=-1))),
    "horizon": ("payments-0", at(3, lambda part: patch(part, attributes=0x50))),
    "time-wraps": ("payments-0", at(3, lambda part: patch(part, baseTimestamp=-(1 << 63), maxTimestamp=-5))),
    "count-zero": ("payments-0", at(3, lambda part: patch(part, recordCount=0))),
    "count-negative": ("payments-0", at(3, lambda part: patch(part, recordCount=-1))),
    "count-more": ("payments-0", at(3, lambda part: patch(part, recordCount=9))),
    "count-less": ("payments-0", at(3, lambda part: patch(part, recordCount=1))),
    "record-length": ("payments-0", at(3, lambda part: fix_crc(overwrite(part, 61, b"\x7e")))),
    "lz4-broken": ("payments-0", at(4, lambda part: fix_crc(overwrite(part, 90, b"\xff\xff\xff\xff")))),
    "gap": ("payments-0", lambda parts: parts[:3] + parts[6:9]),
    "wrapper-broken": ("v1", at(1, lambda part: fix_crc(part[:-20] + bytes(20)))),
    "legacy-crc": ("v0", at(1, lambda part: flip(part, 8 * 40))),
}
LEGACY = {"v0": "legacy/v0-client09-none-0", "v1": "legacy/v1-client010-gzip-0"}
CRAFTED: dict[str, Callable[[], bytes]] = {
    "utf8": utf8,
    "coordinator": coordinator,
    "metadata": metadata,
    "remote": remote,
    "newer": newer,
    "newer-remote": newer_remote,
    "control": control,
    "header-key-null": lambda: one(b"a") + _null_header() + one(b"b", offset=2),
    "legacy-lone": lambda: b"".join(message(i % 2, b"v\xff", key=[None, b""][i % 2], offset=i) for i in range(3)),
    "legacy-append": lambda: wrapper(1, [message(1, b"a")], "snappy", attributes=8),
    "legacy-null": lambda: message(1, None, key=None),
    "empty": lambda: b"",
}

CRAFTED_DECODERS = {
    "coordinator": "offsets",
    "metadata": "cluster-metadata",
    "newer": "cluster-metadata",
    "remote": "remote-log-metadata",
    "newer-remote": "remote-log-metadata",
}


def _null_header() -> bytes:
    body = b"\0" + varint(0) + varint(0) + sized(b"k") + sized(b"v") + varint(1) + varint(-1) + sized(b"x")
    return batch([varint(len(body)) + body], offset=1)


INDEXES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "index-sound": (f"{SEGMENT}.index", lambda data: data),
    "index-zeros": (f"{SEGMENT}.index", lambda data: data + bytes(80)),
    "index-torn": (f"{SEGMENT}.index", lambda data: data + b"\1\2\3"),
    "index-empty": (f"{SEGMENT}.index", lambda data: b""),
    "index-tiny": (f"{SEGMENT}.index", lambda data: b"\0\0\0"),
    "index-wrong": (f"{SEGMENT}.index", entry(INDEX_ENTRY, 1, relativeOffset=2)),
    "index-astray": (f"{SEGMENT}.index", entry(INDEX_ENTRY, 1, position=4225)),
    "index-beyond": (f"{SEGMENT}.index", entry(INDEX_ENTRY, 1, position=1 << 20)),
    "index-below": (f"{SEGMENT}.index", entry(INDEX_ENTRY, 1, relativeOffset=-4)),
    "index-negative": (f"{SEGMENT}.index", entry(INDEX_ENTRY, 0, position=-2147478993)),
    "timeindex-sound": (f"{SEGMENT}.timeindex", lambda data: data),
    "timeindex-zeros": (f"{SEGMENT}.timeindex", lambda data: data + bytes(120)),
    "timeindex-torn": (f"{SEGMENT}.timeindex", lambda data: data[:-1]),
    "timeindex-empty": (f"{SEGMENT}.timeindex", lambda data: b""),
    "timeindex-wrong": (f"{SEGMENT}.timeindex", entry(TIME_INDEX_ENTRY, 0, timestamp=5)),
    "timeindex-falls": (f"{SEGMENT}.timeindex", entry(TIME_INDEX_ENTRY, 2, timestamp=5)),
    "timeindex-beyond": (f"{SEGMENT}.timeindex", entry(TIME_INDEX_ENTRY, 2, relativeOffset=5000)),
    "txnindex-sound": (f"{SEGMENT}.txnindex", lambda data: data),
    "txnindex-empty": (f"{SEGMENT}.txnindex", lambda data: b""),
    "txnindex-torn": (f"{SEGMENT}.txnindex", lambda data: data[:-3]),
    "txnindex-version-1": (f"{SEGMENT}.txnindex", entry(TXN_INDEX_ENTRY, 1, version=1)),
    "txnindex-version-256": (f"{SEGMENT}.txnindex", entry(TXN_INDEX_ENTRY, 1, version=256)),
    "txnindex-version-negative": (f"{SEGMENT}.txnindex", entry(TXN_INDEX_ENTRY, 1, version=-300)),
    "snapshot-sound": (f"{SEGMENT[:-3]}120.snapshot", lambda data: data),
    "snapshot-crc": (f"{SEGMENT[:-3]}120.snapshot", lambda data: flip(data, 8 * 30)),
    "snapshot-version": (f"{SEGMENT[:-3]}120.snapshot", lambda data: b"\0\7" + data[2:]),
    "snapshot-torn": (f"{SEGMENT[:-3]}120.snapshot", lambda data: data[:-3]),
    "snapshot-tiny": (f"{SEGMENT[:-3]}120.snapshot", lambda data: data[:5]),
    "snapshot-empty": (f"{SEGMENT[:-3]}120.snapshot", lambda data: b""),
}


def build(root: Path) -> None:
    """Write the files of all cases below `root`."""

    def write(path: str, data: bytes) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)

    names = [f"{PAYMENTS}{suffix}" for suffix in (".log", ".index", ".timeindex", ".txnindex")]
    names += [f"{topic}/{SEGMENT}.log" for topic in TOPICS] + [f"payments-0/{SEGMENT[:-3]}120.snapshot"]
    names += [f"__cluster_metadata-0/{SEGMENT[:-3]}327-0000000001.checkpoint", "bootstrap.checkpoint"]
    for path in names:
        write(path, source(path))
    write("payments-0/leader-epoch-checkpoint", b"0\n1\n0 0\n")
    for name, (topic, change) in DAMAGED.items():
        directory = FIXTURES / LEGACY.get(topic, f"clean-1/{topic}")
        write(f"{name}/{SEGMENT}.log", b"".join(change(split((directory / f"{SEGMENT}.log").read_bytes())[:12])))
    for name, make in CRAFTED.items():
        write(f"{name}/{SEGMENT}.log", make())
    write("odd/poison.log", source(f"{PAYMENTS}.log")[:153])
    write("odd/odd.checkpoint", source("bootstrap.checkpoint"))
    for name, (file, edit) in INDEXES.items():
        write(f"{name}/{SEGMENT}.log", source(f"{PAYMENTS}.log"))
        write(f"{name}/{SEGMENT}.index", source(f"{PAYMENTS}.index"))
        write(f"{name}/{file}", edit(source(f"payments-0/{file}")))


READ_ALL = "Kafka's tool ends here, kdump goes on"


def cases() -> Iterator[Case]:
    """Yield every run."""
    some = ("--files", f"{PAYMENTS}.log", "--max-bytes", "1500")
    yield Case("plain", ("--files", f"{PAYMENTS}.log"))
    yield Case("deep", (*some, "--deep-iteration"))
    yield Case("print", (*some, "--print-data-log"))
    yield Case("skip", (*some, "--print-data-log", "--skip-record-metadata"))
    yield Case("skip-deep", (*some, "--deep-iteration", "--skip-record-metadata"))
    yield Case("skip-alone", (*some, "--skip-record-metadata"))
    for number in (0, 17, 153, 154, 171, 306, 12674, 99999, -1):
        yield Case(f"max-bytes-{number}", ("--files", f"{PAYMENTS}.log", "--max-bytes", str(number)))
    yield Case("max-message-size", ("--files", f"{PAYMENTS}.index", "--max-message-size", "900000"))
    for name in ("String", "Integer", "Long"):
        for part in ("key", "value"):
            yield Case(f"{part}-{name}", (*some, f"--{part}-decoder-class", f"{CLASSES}{name}Decoder"))
    yield Case(
        "value-Default",
        (*some, "--value-decoder-class", f"{CLASSES}DefaultDecoder"),
        "Kafka's tool prints the identity of a Java array, another one each time",
    )
    yield Case("class-left-out", (*some, "--value-decoder-class"))
    yield Case("class-unknown", (*some, "--value-decoder-class", "com.example.Decoder"))
    before_4 = (*some, "--value-decoder-class", "kafka.serializer.StringDecoder")
    yield Case("class-before-4", before_4, status=(0, "the names that classes had before Kafka 4 are known"))
    for topic, decoder in itertools.product(TOPICS, DECODERS):
        limit = ("--max-bytes", "1500") if topic == "payments-0" else ("--max-bytes", "2500")
        yield Case(f"{topic}-{decoder}", ("--files", f"{topic}/{SEGMENT}.log", f"--{decoder}-decoder", *limit))
    for path in (f"__cluster_metadata-0/{SEGMENT[:-3]}327-0000000001.checkpoint", "bootstrap.checkpoint"):
        yield Case(Path(path).stem, ("--files", path, "--cluster-metadata-decoder", "--max-bytes", "1500"))
    for name in DAMAGED:
        status = (0, "zeros to the end are told, and no damage that stops a dump") if name == "zeros-behind" else None
        yield Case(name, ("--files", f"{name}/{SEGMENT}.log", "--print-data-log"), status=status)
    yield Case("codec-unknown-plain", ("--files", f"codec-unknown/{SEGMENT}.log"))
    for name in CRAFTED:
        by = CRAFTED_DECODERS.get(name)
        yield Case(name, ("--files", f"{name}/{SEGMENT}.log", f"--{by}-decoder" if by else "--print-data-log"))
    yield from odd_cases()
    for name, (file, _) in INDEXES.items():
        yield Case(name, ("--files", f"{name}/{file}"))
        if name.startswith(("index", "timeindex")):
            for option in ("--verify-index-only", "--index-sanity-check"):
                yield Case(name + option, ("--files", f"{name}/{file}", option))


def odd_cases() -> Iterator[Case]:
    """Yield runs about usage, file names and several files."""
    log = f"{PAYMENTS}.log"
    few = ("--max-bytes", "200")
    yield Case("no-arguments", ())
    yield Case("no-files", ("--print-data-log",))
    yield Case("option-unknown", ("--files", log, "--nope"))
    yield Case("option-short", ("--file", log))
    yield Case("number-bad", ("--files", log, "--max-bytes", "many"))
    yield Case("one-dash", ("-files", log, "-print-data-log", *few))
    yield Case("equals", (f"--files={log}", *few))
    yield Case("files-twice", ("--files", log, "--files", log, *few), status=(0, READ_ALL))
    yield Case("argument", ("--files", log, "stray.log", *few))
    yield Case(
        "several", ("--files", ",".join(f"{PAYMENTS}{suffix}" for suffix in (".log", ".index", ".txnindex")), *few)
    )
    yield Case("missing", ("--files", f"{log},payments-0/{SEGMENT[:-1]}1.log,{log}", *few))
    yield Case("missing-snapshot", ("--files", f"payments-0/{SEGMENT}.snapshot"))
    yield Case("missing-index", ("--files", f"payments-0/{SEGMENT[:-1]}1.index"))
    yield Case(
        "missing-txnindex", ("--files", f"payments-0/{SEGMENT[:-1]}1.txnindex"), status=(1, "the file is not there")
    )
    yield Case("unknown-suffix", ("--files", "payments-0/leader-epoch-checkpoint,a.txt,noext,,payments-0//,,"))
    yield Case("path-normal", ("--files", f"payments-0//{SEGMENT}.log", *few))
    yield Case("files-empty", ("--files", ""))
    yield Case("files-comma", ("--files", ","))
    yield Case(
        "name-bad", ("--files", "odd/poison.log"), status=(0, "a segment under another name is dumped all the same")
    )
    yield Case("checkpoint-name-bad", ("--files", "odd/odd.checkpoint"), status=(0, "as above"))
