"""Recipes for brokers with several directories (metadata.log.dir, directories that are missing or not directories), for
disks from the time of ZooKeeper, and for file names that Kafka parses as numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.damages import META, METADATA, RECOVERY, REPLICATION, START, ZERO, Log, behind, bit, cut
from tests.questions.restart_plan.restart_damages import CLICKS, EARLY, ID, MARK, ORDERS, QUORUM
from tests.questions.restart_plan.restart_recipe import (
    OWN_ID,
    SECOND_ID,
    Node,
    Step,
    batch,
    changed,
    copied,
    directory,
    gone,
    in_log,
    link,
    metadata_apart,
    recipe,
    renamed,
    replaced,
    second,
    written,
)

SECOND = ("orders-lz4-0", "orders-zstd-0")
SNAPSHOT = f"{METADATA}/{327:020}-{1:010}.checkpoint"


def alone(root: Path) -> Node:
    return Node((root,))


def combined(root: Path) -> Node:
    """Return a node that is its own controller."""
    return Node((root,), combined=True)


def two(root: Path) -> Node:
    return Node((root, second(root, *SECOND)))


def three(root: Path) -> Node:
    """Return a node with two log directories, and metadata.log.dir in a third."""
    return Node((root, second(root, *SECOND)), metadata_apart(root))


def three_combined(root: Path) -> Node:
    return three(root)._replace(combined=True)


def first_lost(root: Path) -> Node:
    """Return a node whose second log directory is the first in log.dirs, and with a metadata.log.dir."""
    return Node((second(root, *SECOND), root), metadata_apart(root))


def future(root: Path) -> Node:
    """Create a -future copy in a second log directory."""
    other = second(root)
    copied("orders-zstd-0", f"second/orders-zstd-0.{ID}-future")(root)
    return Node((root, other))


def damaged_swap(name: str) -> Step:
    """Return a step that creates a .log.swap with a damaged batch in the middle."""

    def damaged(data: bytes) -> bytes:
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]

    def step(root: Path) -> None:
        for path in sorted(root.glob(name)):
            path.with_name(path.name + ".swap").write_bytes(damaged(path.read_bytes()))

    return step


def without_topics(root: Path) -> None:
    """Truncate the metadata log before its first topic, and remove its snapshots and indexes."""
    log = Log(root, METADATA)
    known = next(number for number, data in enumerate(log.batches) if b"orders" in data or b"payments" in data)
    first = next((number for number, data in enumerate(log.batches) if b"clicks" in data), known)
    log.batches = log.batches[: min(first, known)]
    log.write()
    gone(*(f"{METADATA}/*{suffix}" for suffix in (".checkpoint", ".snapshot", ".index", ".timeindex")))(root)


def overflowed(root: Path) -> None:
    """Give a log one segment, named 0, of two batches whose offsets are too far from its name, without indexes."""
    log = Log(root, "ledger-0")
    first = log.batches[0]
    log.batches = [offset.to_bytes(8, "big") + first[8:] for offset in ((1 << 31) + 1, (1 << 31) + 1000)]
    log.write()
    gone(f"ledger-0/{ZERO}.index", f"ledger-0/{ZERO}.timeindex", "ledger-0/*.snapshot")(root)


def as_magic_0(attributes: int, magic: int = 0) -> Step:
    """Return a step that makes the batch before an open transaction one of another magic, whose attributes are the
    first byte of its checksum."""

    def change(log: Log) -> None:
        number = next(number for number, data in enumerate(log.batches) if data[7] == 112)
        data = log.batches[number]
        log.batches[number] = data[:16] + bytes((magic, attributes)) + data[18:]

    return in_log(f"payments-0/{ZERO}.log", change)


VOTER = (replaced(QUORUM, b'"voterId":0', b'"voterId":1'), replaced(QUORUM, b'"leaderId":0', b'"leaderId":1'))
LARGEST = replaced(QUORUM, b'"leaderEpoch":1', b'"leaderEpoch":2147483647')
LAST_SWAP = f"users-0/{254:020}.log"
SHORT = int.to_bytes(300, 8, "big") + int.to_bytes(14, 4, "big") + bytes(4) + b"\x02"

# fmt: off
recipe("metadata-dir", "clean-1", "two log directories, and the metadata in a third", three)
recipe("metadata-dir-crash", "crash-1", "two log directories, and the metadata in a third, after kill -9", three)
recipe("metadata-dir-of-two", "clean-1", "one log directory, and the metadata in another",
       lambda root: Node((root,), metadata_apart(root)))
recipe("metadata-dir-unformatted", "clean-1", "the metadata in a third directory, whose meta.properties is gone",
       three, gone(f"apart/{META}"))
recipe("metadata-dir-garbled", "clean-1", "the metadata in a third directory, whose meta.properties has no number for "
       "node.id", three, replaced(f"apart/{META}", b"node.id=1", b"node.id=x"))
recipe("metadata-dir-file", "clean-1", "metadata.log.dir is a file", three, gone("apart/"), written("apart/"))
recipe("metadata-dir-missing", "clean-1", "metadata.log.dir is missing", three, gone("apart/"))
recipe("metadata-lost", "clean-1", "the metadata log is lost, metadata.log.dir is formatted again, and the controller "
       "is another node", three, gone(f"apart/{METADATA}"))
recipe("metadata-lost-combined", "clean-1", "the metadata log is lost, and the node is its own controller",
       three_combined, gone(f"apart/{METADATA}"))
recipe("metadata-log-lost", "clean-1", "the metadata log of the only log directory is lost", gone(METADATA))
recipe("metadata-twice", "clean-1", "a metadata log in two directories", three, copied(f"apart/{METADATA}", METADATA))
recipe("metadata-second", "clean-1", "the metadata log is in the second of two log directories, and metadata.log.dir "
       "is not set", two, renamed(METADATA, f"second/{METADATA}"))
recipe("one-missing", "clean-1", "one of three log directories is missing",
       lambda root: Node((root, second(root, *SECOND), root.with_name(root.name + "-third"))))
recipe("one-is-a-file", "clean-1", "one of two log directories is a file",
       two, gone("second/"), written("second/", b"not mounted\n"))
recipe("one-is-a-file-crash", "crash-1", "one of two log directories is a file, after kill -9",
       two, gone("second/"), written("second/", b"not mounted\n"))
recipe("one-not-mounted", "clean-1", "one of two log directories is empty, like a mount point without its disk",
       two, gone("second/*"))
recipe("linked-twice", "clean-1", "the second log directory is a link to the first",
       lambda root: Node((root, root.with_name(root.name + "-second"))), lambda root: link("second/", str(root))(root))
recipe("meta-directory", "clean-1", "meta.properties is a directory", directory(META))
recipe("directory-id-twice", "clean-1", "two log directories with one directory.id",
       two, replaced(f"second/{META}", SECOND_ID, OWN_ID), gone(f"second/{RECOVERY}", f"second/{REPLICATION}"))
recipe("directory-id-lost", "clean-1", "the second of two log directories has no directory.id",
       two, replaced(f"second/{META}", b"directory.id=" + SECOND_ID, b""))
recipe("clean-shutdown-directory", "clean-1", ".kafka_cleanshutdown is an empty directory", directory(MARK))
recipe("clean-shutdown-full-directory", "clean-1", ".kafka_cleanshutdown is a directory with a file in it",
       directory(MARK), written(f"{MARK}/file"))
recipe("clean-shutdown-full-of-two", "clean-1", "two log directories, in one .kafka_cleanshutdown is a directory with "
       "a file in it", two, directory(f"second/{MARK}"), written(f"second/{MARK}/file"))
recipe("clean-shutdown-dangling", "clean-1", ".kafka_cleanshutdown is a link to nothing", gone(MARK),
       link(MARK, "nothing"))
recipe("segment-name-short", "clean-1", "a segment named 5.log, without zeros",
       copied(f"{ORDERS}.log", "orders-none-0/5.log"))
recipe("segment-name-zero", "clean-1", "the only segment is named 0.log",
       renamed(f"{ORDERS}.log", "orders-none-0/0.log"))
recipe("segment-name-negative", "clean-1", "a segment named -5.log", copied(f"{ORDERS}.log", "orders-none-0/-5.log"))
recipe("segment-name-short-crash", "crash-1", "a segment named 5.log, after kill -9",
       copied(f"{ORDERS}.log", "orders-none-0/5.log"))
recipe("index-name-short", "clean-1", "an index named 5.index, without zeros",
       copied(f"{ORDERS}.index", "orders-none-0/5.index"))
recipe("segment-name-dots", "clean-1", "a segment whose name has a second dot",
       copied(f"{ORDERS}.log", f"{ORDERS}.copy.log"))
recipe("segment-name-huge", "clean-1", "a segment named above 2^63", written("orders-none-0/99999999999999999999.log"))
recipe("snapshot-name", "clean-1", "a .snapshot whose name is not a number",
       written("orders-none-0/producers.snapshot"))
recipe("snapshot-no-name", "clean-1", "a .snapshot without a name", written("orders-none-0/.snapshot"))
recipe("snapshot-name-short", "clean-1", "a .snapshot with a short name",
       copied("payments-0/*.snapshot", "payments-0/7.snapshot"))
recipe("snapshot-directory", "clean-1", "a .snapshot is a directory", directory("payments-0/*.snapshot"))
recipe("cleaned-name", "clean-1", "a .cleaned file whose name is not a number", written("orders-none-0/x.log.cleaned"))
recipe("swap-damaged-alone", "clean-1", "a damaged .log.swap without its .index.swap", damaged_swap(f"{CLICKS}.log"))
recipe("swap-damaged", "clean-1", "a damaged .log.swap with its .index.swap", damaged_swap(f"{CLICKS}.log"),
       copied(f"{CLICKS}.index", ".swap"), copied(f"{CLICKS}.timeindex", ".swap"))
recipe("swap-damaged-crash", "crash-1", "a damaged .log.swap without its .index.swap, after kill -9, and the recovery "
       "point is gone", damaged_swap(f"{CLICKS}.log"), gone(RECOVERY))
recipe("swap-last-alone", "clean-1", "a .log.swap of the last segment without its .index.swap",
       copied(f"{ORDERS}.log", ".swap"))
recipe("swap-index-alone", "clean-1", "only an .index.swap", copied(f"{ORDERS}.index", ".swap"))
recipe("future-complete", "clean-1", "a complete -future copy in a second log directory, next to the live one in the "
       "first", future)
recipe("future-behind", "crash-1", "a -future copy without its end in a second log directory, next to the live one in "
       "the first", future, changed(f"second/orders-zstd-0.{ID}-future/{ZERO}.log", cut(400)))
recipe("future-assigned", "clean-1", "a live partition in a second log directory, a -future copy in the one that the "
       "cluster has assigned", lambda root: Node((root, second(root, "orders-zstd-0"))),
       copied("second/orders-zstd-0", f"orders-zstd-0.{ID}-future"))
recipe("future-no-topic-id", "clean-1", "a -future copy without partition.metadata, alone",
       renamed("orders-zstd-0", f".{ID}-future"), gone(f"orders-zstd-0.{ID}-future/partition.metadata"))
recipe("zookeeper-era", "legacy", "a log directory from a broker with ZooKeeper, started with 4.3.1",
       replaced(META, b"HkYyt9CIRQ62s6Jy8r-a_g", b"FN96DRb6S3GeSIQS03itlw"))
recipe("cut-below-start", "crash-1", "the log start offset is above a segment that is truncated: the rest of that "
       "segment is deleted too", gone(RECOVERY), written(START, b"0\n1\nclicks 0 300000\n"),
       batch(f"{EARLY}.log", 3, bit(100)))
recipe("tail-cut-start-within", "clean-1", "the last batch of a log is incomplete, and the log start offset is in the "
       "segment before", written(START, b"0\n1\nclicks 0 27900\n"), changed(f"{EARLY}.log", cut(20)))


def metas(name: str, what: str, change: Callable[[bytes], bytes]) -> None:
    """Add recipes with this change to meta.properties: of a second log directory, or of metadata.log.dir."""
    recipe(f"meta-{name}-of-two", "clean-1", f"two log directories; in the second, meta.properties {what}",
           two, changed(f"second/{META}", change))
    recipe(f"meta-{name}-metadata-dir", "clean-1", f"the metadata in a third directory, whose meta.properties {what}",
           three, changed(f"apart/{META}", change))


metas("emptied", "is empty", lambda data: b"")
metas("zeroed", "has only zeros", lambda data: bytes(len(data)))
metas("torn", "has lost its last third", lambda data: data[: len(data) * 2 // 3])
metas("version-lost", "has lost version=1", lambda data: data.replace(b"version=1\n", b""))
metas("no-cluster", "has version 0 and no cluster.id", lambda data: b"version=0\nbroker.id=1\n")
metas("escape", "has an invalid escape", behind(b"x=\\u00\n"))
recipe("meta-version-lost", "clean-1", "meta.properties has lost version=1", replaced(META, b"version=1\n", b""))
recipe("meta-space-after", "clean-1", "a space after node.id in meta.properties",
       replaced(META, b"node.id=1", b"node.id=1 "))
recipe("meta-as-java-reads-it", "clean-1", "meta.properties with escapes, continued lines, other separators and digits",
       replaced(META, b"node.id=1", b"no\\de.\\\n  id : \\u0661"), replaced(META, b"version=1", b"version +01 "))
recipe("metadata-dir-lost-and-found", "clean-1", "lost+found in a separate metadata.log.dir",
       three, directory("apart/lost+found"))
recipe("metadata-without-topics", "clean-1", "the metadata log ends before its first topic, and the controller is "
       "another node", alone, without_topics)
recipe("metadata-without-topics-combined", "clean-1", "the metadata log ends before its first topic, and the node is "
       "its own controller", combined, without_topics, *VOTER)
recipe("snapshot-epoch-newer", "clean-1", "the newest metadata snapshot has a newer epoch than the log, and ends "
       "below the log end", renamed(SNAPSHOT, f"{METADATA}/{327:020}-{2:010}.checkpoint"))
recipe("snapshot-epoch-older", "clean-1", "a metadata snapshot above the log end has an older epoch than the log",
       renamed(SNAPSHOT, f"{METADATA}/{9999:020}-{0:010}.checkpoint"))
recipe("quorum-epoch-largest", "clean-1", "quorum-state has the largest epoch, and the controller is another node",
       LARGEST)
recipe("quorum-epoch-largest-combined", "clean-1", "quorum-state has the largest epoch, and the node is its own "
       "controller", combined, LARGEST, *VOTER)
recipe("index-position-negative", "clean-1", "a position in the .index of the only segment is negative",
       changed(f"{ORDERS}.index", lambda data: data[:-4] + b"\xa0\xac\x43\xa0"))
recipe("overflow-missing-index", "clean-1", "all offsets of a segment are too far from its name, and its indexes are "
       "gone", overflowed)
recipe("overflow-missing-index-crash", "crash-1", "all offsets of a segment are too far from its name, after kill -9",
       overflowed)
recipe("magic-0-gzip", "clean-1", "the magic of a batch before an open transaction is 0: a compressed message without "
       "a value", as_magic_0(1))
recipe("magic-0-zstd", "clean-1", "the magic of a batch before an open transaction is 0: a message of magic 0 "
       "compressed with zstd", as_magic_0(4))
recipe("magic-0-codec", "clean-1", "the magic of a batch before an open transaction is 0: an unknown codec",
       as_magic_0(5))
recipe("swaps-damaged-crash", "crash-1", ".swap files of both segments, the first damaged, after kill -9: a snapshot "
       "between them is replaced", damaged_swap(f"users-0/{ZERO}.log"), copied(LAST_SWAP, ".swap"))
recipe("short-batch", "clean-1", "the last bytes are a batch of magic 2 that is shorter than a header",
       changed(f"{ORDERS}.log", behind(SHORT.ljust(26, b"\0"))))
recipe("magic-negative-codec", "clean-1", "the magic of a batch before an open transaction is -126: an unknown codec",
       as_magic_0(6, magic=130))
recipe("magic-negative-gzip", "clean-1", "the magic of a batch before an open transaction is -126: a compressed "
       "message", as_magic_0(1, magic=130))
recipe("first-is-a-file", "clean-1", "one of two log directories is a file, and the first in log.dirs; "
       "metadata.log.dir is set", first_lost, gone("second/"), written("second/", b"not mounted\n"))
# fmt: on
