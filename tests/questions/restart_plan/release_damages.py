"""Recipes for damage to the small disks of every release: see tests/corpus/README.md and tools/release_trials.py.

They find segments, offsets and IDs on the disk, because those differ between the releases. Each changes a copy of a
log directory, `clean` or `crash`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from kdump.format.batch_header import BATCH_HEADER, LOG_OVERHEAD
from kdump.format.index import TXN_INDEX_ENTRY
from kdump.format.varint import read_varint
from tests.craft import flip, message, patch, rebase, split
from tests.damages import META, RECOVERY, REPLICATION, START, Change, Log, behind, bit, cut, put
from tests.questions.restart_plan.restart_recipe import (
    Recipe,
    Step,
    batch,
    changed,
    copied,
    directory,
    edit,
    files,
    gone,
    in_log,
    renamed,
    replaced,
    written,
)

CLEANER = "cleaner-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
TOPIC_ID = "plain-0/partition.metadata"
MARK = ".kafka_cleanshutdown"
ID = "0123456789abcdef0123456789abcdef"
METADATA = "__cluster_metadata-0"
BOOTSTRAP = "bootstrap.checkpoint"
"""What kafka-storage has written, up to 4.3."""
FORMAT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
"""What kafka-storage has written into the metadata snapshot at offset 0, on a controller."""
LAST, INDEX, OLD = "plain-0/@-1.log", "plain-0/@-1.index", b"of an old client"
SNAPSHOTS, TXN_INDEX = "payments-0/*.snapshot", "payments-0/@0.txnindex"


def at_recovery_point(change: Change) -> Step:
    """Return a step that changes the first batch of the segment that contains the recovery point."""

    def step(root: Path) -> None:
        lines = (root / RECOVERY).read_text().split("\n")
        point = next(int(line.split()[2]) for line in lines[2:] if line.split()[:2] == ["plain", "0"])
        base = max(base for path in (root / "plain-0").glob("*.log") if (base := int(path.stem)) <= point)
        batch(f"plain-0/{base:020}.log", 0, change)(root)

    return step


def last_batch(change: Callable[[bytes, Log], bytes]) -> Step:
    def apply(log: Log) -> None:
        log.batches[-1] = change(log.batches[-1], log)

    return in_log(LAST, apply)


def of_old_clients(root: Path) -> None:
    """Rewrite the first two segments of a partition in message formats 0 and 1."""
    numbers = sorted(int(path.stem) for path in (root / "plain-0").glob("*.log"))
    for magic in (0, 1):
        offsets = range(numbers[magic], numbers[magic + 1])
        written(f"plain-0/@{magic}.log", b"".join(message(magic, OLD, offset=offset) for offset in offsets))(root)
        gone(f"plain-0/@{magic}.index", f"plain-0/@{magic}.timeindex")(root)


def outside_transaction(log: Log) -> bytes:
    header = next(data for data in reversed(log.batches) if not data[22] & 0x20)
    return patch(rebase(header, log.end), attributes=0, baseSequence=100)


def empty_segment(root: Path) -> None:
    (path,) = files(root, LAST)
    end = Log(root, "plain-0", int(path.stem)).end
    for suffix in (".log", ".index", ".timeindex"):
        (root / f"plain-0/{end:020}{suffix}").touch()


def second_lost(root: Path) -> None:
    (path,) = files(root, "plain-0/@1.log")
    gone(f"plain-0/{path.stem}.*")(root)


def swap_of_two(root: Path) -> None:
    first, following = files(root, "plain-0/@0.log")[0], files(root, "plain-0/@1.log")[0]
    first.with_name(first.name + ".swap").write_bytes(first.read_bytes() + following.read_bytes())


def all_of(number: int, to: str, do: Callable[[str, str], Step] = copied) -> tuple[Step, ...]:
    """Return steps that copy or rename a segment with its indexes."""
    return tuple(do(f"plain-0/@{number}{suffix}", to) for suffix in (".index", ".timeindex", ".log"))


def beyond(root: Path) -> None:
    size = files(root, LAST)[0].stat().st_size
    changed(INDEX, lambda data: data[:-4] + struct.pack(">i", size + 1000))(root)


def start_within(root: Path) -> None:
    (path,) = files(root, "plain-0/@-2.log")
    (root / START).write_text(f"0\n1\nplain 0 {int(path.stem) + 15}\n")


def keys(change: Callable[[dict[str, str]], object]) -> Step:
    """Return a step that changes the keys and values of meta.properties."""

    def step(root: Path) -> None:
        lines = (root / META).read_text().splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        change(found)
        (root / META).write_text("".join(f"{key}={value}\n" for key, value in found.items()))

    return step


def metadata_bit(log: Log) -> None:
    number = len(log.batches) * 2 // 3
    log.batches[number] = bit(2)(log.batches[number])


def formatted_with(level: int) -> Step:
    """Return a step that changes the level of metadata.version in bootstrap.checkpoint, whose checksums Kafka does not
    verify."""
    feature = b"metadata.version"

    def change(data: bytes) -> bytes:
        before, after = data.split(feature)
        return before + feature + level.to_bytes(2, "big") + after[2:]

    return changed(BOOTSTRAP, change)


def never_started(root: Path) -> None:
    """Remove what the controller has written after it was formatted."""
    for path in (root / FORMAT).parent.iterdir():
        if path.name != Path(FORMAT).name:
            path.unlink()


def without_level(data: bytes) -> bytes:
    """Return the snapshot without the level of metadata.version, its first feature."""
    header, features, footer = split(data)
    size, start = read_varint(features, BATCH_HEADER.size, len(features), "Record", "length")
    kept = features[: BATCH_HEADER.size] + features[start + size :]
    count = BATCH_HEADER.read(features).recordCount - 1
    return header + patch(kept, recordCount=count, batchLength=len(kept) - LOG_OVERHEAD) + footer


RECIPES: list[Recipe] = []


def recipe(name: str, disk: str, what: str, *steps: Step, needs: str = "") -> None:
    RECIPES.append(Recipe(name, disk, what, steps, needs))


def version_7(file: str) -> Step:
    return changed(file, put(0, b"7"))


def newest_snapshot(root: Path) -> None:
    edit(max((root / "payments-0").glob("*.snapshot")), bit(3))


# fmt: off
recipe("clean", "clean", "nothing: a clean shutdown")
recipe("crash", "crash", "nothing: after kill -9")

# --- the clean shutdown file and the recovery points ---
recipe("mark-lost", "clean", ".kafka_cleanshutdown is gone", gone(MARK))
recipe("mark-left", "crash", ".kafka_cleanshutdown is there, although the broker was killed: a torn tail stays",
       written(MARK, b'{"version":0,"brokerEpoch":7}'), changed(LAST, cut(20)))
recipe("recovery-lost", "crash", "recovery-point-offset-checkpoint is gone: every segment is recovered", gone(RECOVERY))
recipe("recovery-emptied", "crash", "recovery-point-offset-checkpoint is emptied", written(RECOVERY))
recipe("recovery-garbled", "crash", "a line of recovery-point-offset-checkpoint has no number",
       replaced(RECOVERY, b"plain 0 ", b"plain 0 x"))
recipe("recovery-version", "clean", "recovery-point-offset-checkpoint has version 7", version_7(RECOVERY))

# --- batches ---
recipe("value-bit-clean", "clean", "a bit flips in a value of the last segment", batch(LAST, 1, bit(3)))
recipe("value-bit-below", "crash", "a bit flips in a value of the first segment, far below the recovery point",
       batch("plain-0/@0.log", 1, bit(3)))
recipe("value-bit-at-recovery-point", "crash",
       "a bit flips in a value below the recovery point, in the segment that contains it", at_recovery_point(bit(3)))
recipe("value-bit-above", "crash", "a bit flips in a value above the recovery point; whole segments follow",
       batch("plain-0/@-2.log", 2, bit(3)))
recipe("value-bit-recovery-lost", "crash", "a bit flips in the second segment, and the recovery point is gone",
       gone(RECOVERY), batch("plain-0/@1.log", 2, bit(3)))
recipe("torn-clean", "clean", "the last batch is incomplete, after a clean shutdown", changed(LAST, cut(20)))
recipe("torn-crash", "crash", "the last batches of three partitions are incomplete",
       *(changed(f"{name}/@-1.log", cut(20)) for name in ("plain-0", "codecs-0", "payments-0")))
recipe("torn-earlier", "crash", "a segment above the recovery point, with others after it, ends in the middle of a "
       "batch", changed("plain-0/@-2.log", cut(20)))
recipe("zeros-clean", "clean", "4096 zeros after the last batch, after a clean shutdown",
       changed(LAST, behind(bytes(4096))))
recipe("zeros-crash", "crash", "4096 zeros after the last batch", changed(LAST, behind(bytes(4096))))
recipe("zeros-tail", "crash", "the last 600 bytes are zeros, as after a power loss",
       changed(LAST, lambda data: data[:-600] + bytes(600)))
recipe("junk-crash", "crash", "text after the last batch",
       changed(LAST, behind(b"not a batch at all, but a line of text. " * 4)))
recipe("offset-back", "crash", "the base offset of the last batch is lower than the one before",
       last_batch(lambda data, log: rebase(data, log.last.baseOffset - 20)))
recipe("offset-too-far", "crash", "the base offset of the last batch is 2^31 too high",
       last_batch(lambda data, log: rebase(data, log.last.baseOffset + (1 << 31))))
recipe("record-count", "crash", "the last batch says that it has one record more than it has",
       last_batch(lambda data, log: patch(data, recordCount=log.last.recordCount + 1)))
recipe("epoch-back", "crash", "the leader epoch of the last batch is 0, after newer ones",
       last_batch(lambda data, log: patch(data, crc=False, partitionLeaderEpoch=0)))
recipe("magic-1", "crash", "a message of format 1 after the last batch",
       in_log(LAST, lambda log: message(1, OLD, offset=log.end)))
recipe("magic-0-clean", "clean", "a message of format 0 after the last batch, after a clean shutdown",
       in_log(LAST, lambda log: message(0, OLD, offset=log.end)))
recipe("formats-0-and-1", "clean", "two segments of messages of formats 0 and 1, without indexes: the topic of an old "
       "client", of_old_clients)
recipe("formats-0-and-1-crash", "crash", "the same after kill -9, and the recovery point is gone",
       gone(RECOVERY), of_old_clients)
recipe("magic-3", "crash", "a batch of format 3 after the last batch",
       in_log(LAST, lambda log: put(16, b"\3")(log.next())))
recipe("outside-transaction", "crash", "a batch of a transactional producer outside of its transaction, above the "
       "recovery point", in_log("payments-0/@-1.log", outside_transaction))

# --- segments ---
recipe("empty-segment", "clean", "an empty segment after the last one", empty_segment)
recipe("segment-lost", "clean", "the second of four segments is gone", second_lost)
recipe("segment-lost-first", "clean", "the first segment is gone, but not its indexes", gone("plain-0/@0.log"))
recipe("partition-emptied", "clean", "all files of a partition are gone, but not its directory", gone("plain-0/*"))
recipe("partition-gone", "clean", "the directory of a partition is gone", gone("plain-0"))
recipe("segment-directory", "clean", "the only segment of a partition is a directory", directory("codecs-0/@-1.log"))
recipe("foreign-log", "clean", "a file notes.log in a partition's directory",
       written("plain-0/notes.log", b"do not delete\n"))
recipe("swap-of-two", "clean", "a .swap of two segments, whose originals are still there: a compaction that was almost "
       "finished", swap_of_two)
recipe("swap-complete", "clean", "a .swap with its index, time index and transaction index, and without the original",
       *all_of(1, ".swap", renamed))
recipe("swap-crash", "crash", "a .swap whose original is still there, after kill -9", copied("plain-0/@0.log", ".swap"))
recipe("cleaned", "clean", ".cleaned files: a compaction that was not finished", *all_of(0, ".cleaned"))
recipe("swap-and-cleaned", "clean", ".swap files above .cleaned ones: an unfinished split",
       *all_of(0, ".cleaned"), *all_of(2, ".swap"))

# --- indexes ---
recipe("index-lost-clean", "clean", "the .index of a segment before the last is gone, and a bit flips in that segment",
       gone("plain-0/@1.index"), batch("plain-0/@1.log", 2, bit(3)))
recipe("index-lost-below", "crash", "the .index of a segment below the recovery point is gone, and a bit flips in that "
       "segment", gone("plain-0/@0.index"), batch("plain-0/@0.log", 2, bit(3)))
recipe("time-index-lost", "clean", "the .timeindex of the second and the last segment are gone",
       gone("plain-0/@1.timeindex", "plain-0/@-1.timeindex"))
recipe("txn-index-lost", "clean", "the .txnindex of a segment is gone", gone(TXN_INDEX))
recipe("index-past-the-end", "clean", "the last entry of the .index of the last segment points after the end of the "
       "segment", beyond)
recipe("index-zeros", "clean", "the last entry of the .index of the last segment is zeros",
       changed(INDEX, lambda data: data[:-8] + bytes(8)))
recipe("index-unaligned", "clean", "the size of an .index is not a multiple of 8", changed("plain-0/@1.index", cut(3)))
recipe("time-index-unaligned", "clean", "the size of the .timeindex of the last segment is not a multiple of 12",
       changed("plain-0/@-1.timeindex", behind(b"\1\2\3")))
recipe("time-index-back", "clean", "the last entry of a .timeindex is older than the one before",
       changed("plain-0/@1.timeindex", lambda data: data[:-12] + bytes(4) + b"\1" * 4 + data[-4:]))
recipe("txn-index-version", "clean", "an entry of a .txnindex has version 7", changed(TXN_INDEX, put(0, b"\0\7")))
recipe("txn-index-below", "clean", "an entry of a .txnindex ends before its segment begins",
       changed(TXN_INDEX, lambda data: TXN_INDEX_ENTRY.struct.pack(0, 9, 0, -5, 0) + data))
recipe("index-directory", "clean", "an .index is a directory", directory("codecs-0/@-1.index"))

# --- producer snapshots ---
recipe("snapshots-lost", "clean", "the snapshots of a partition with an open transaction are gone", gone(SNAPSHOTS))
recipe("snapshots-lost-crash", "crash", "the snapshots of two partitions are gone",
       gone(SNAPSHOTS, "plain-0/*.snapshot"))
recipe("snapshot-bit", "clean", "a bit flips in the newest snapshot", newest_snapshot)
recipe("snapshots-corrupt", "crash", "all snapshots of a partition are corrupt", changed(SNAPSHOTS, bit(3)))
recipe("snapshot-name", "clean", "a .snapshot whose name is not a number", written("plain-0/notes.snapshot"))

# --- the checkpoints ---
recipe("start-version", "clean", "log-start-offset-checkpoint has version 7", version_7(START))
recipe("start-beyond", "clean", "a log start offset is after the log end", written(START, b"0\n1\nplain 0 9000\n"))
recipe("start-beyond-crash", "crash", "a log start offset is after the log end, after kill -9",
       written(START, b"0\n1\nplain 0 9000\n"))
recipe("start-within", "crash", "the log start offset is above the recovery point", start_within)
recipe("replication-version", "clean", "replication-offset-checkpoint has version 7", version_7(REPLICATION))
recipe("replication-count", "clean", "replication-offset-checkpoint has one line fewer than it says",
       changed(REPLICATION, lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n"))
recipe("cleaner-version", "clean", "cleaner-offset-checkpoint has version 7", version_7(CLEANER))

# --- leader epochs and topic IDs ---
recipe("epochs-lost", "crash", "leader-epoch-checkpoint is gone", gone(f"plain-0/{EPOCHS}"))
recipe("epochs-version", "clean", "leader-epoch-checkpoint has version 7", version_7(f"plain-0/{EPOCHS}"))
recipe("epochs-garbled", "clean", "a line of leader-epoch-checkpoint has no number",
       replaced(f"plain-0/{EPOCHS}", b"0 0\n", b"0 zero\n"))
recipe("epochs-beyond", "crash", "leader-epoch-checkpoint has an epoch that starts after the log end",
       written(f"plain-0/{EPOCHS}", b"0\n2\n0 0\n1 9000\n"))
recipe("topic-id-lost", "clean", "partition.metadata is gone", gone(TOPIC_ID), needs=TOPIC_ID)
recipe("topic-id-other", "clean", "partition.metadata has the ID of another topic",
       copied("codecs-0/partition.metadata", TOPIC_ID), needs=TOPIC_ID)
recipe("topic-id-text", "clean", "partition.metadata is text", written(TOPIC_ID, b"nothing of the kind\n"),
       needs=TOPIC_ID)

# --- meta.properties ---
recipe("meta-lost", "clean", "meta.properties is gone", gone(META))
recipe("meta-emptied", "clean", "meta.properties is emptied", written(META))
recipe("meta-cluster", "clean", "meta.properties has the ID of another cluster",
       keys(lambda found: found.update({"cluster.id": "A" + found["cluster.id"][1:]})))
recipe("meta-node", "clean", "meta.properties has the ID of another node",
       keys(lambda found: found.update({key: "5" for key in ("broker.id", "node.id") if key in found})))
recipe("meta-version", "clean", "meta.properties has version 7", keys(lambda found: found.update(version="7")))
recipe("meta-no-node", "clean", "meta.properties has no node ID",
       keys(lambda found: [found.pop(key, None) for key in ("broker.id", "node.id")]))

# --- directories ---
recipe("lost-and-found", "clean", "a directory lost+found", directory("lost+found"))
recipe("backup", "clean", "a copy of a partition, named plain-0.bak", copied("plain-0", ".bak"))
recipe("partition-unknown", "clean", "a partition that the cluster does not have: number 7 of a topic with one "
       "partition", copied("plain-0", "plain-7"))
recipe("delete-directory", "clean", "a partition with the suffix -delete", renamed("plain-0", f".{ID}-delete"))
recipe("stray-directory", "clean", "a partition with the suffix -stray", renamed("plain-0", f".{ID}-stray"))
recipe("future-alone", "clean", "a partition with the suffix -future, and not the live one",
       renamed("plain-0", f".{ID}-future"))
recipe("future-beside", "clean", "a copy of a partition with the suffix -future next to the live one",
       copied("plain-0", f".{ID}-future"))

# --- the metadata of a broker with KRaft ---
recipe("metadata-bit", "clean", "a bit flips in the metadata log",
       in_log(f"{METADATA}/@-1.log", metadata_bit), needs=METADATA)
recipe("metadata-lost", "clean", "the metadata log is gone", gone(METADATA), needs=METADATA)
recipe("quorum-emptied", "clean", "quorum-state is emptied", written(f"{METADATA}/quorum-state"),
       needs=f"{METADATA}/quorum-state")
recipe("bootstrap-newer", "clean", "bootstrap.checkpoint has metadata.version 33, which is new in 4.4",
       formatted_with(33), needs=BOOTSTRAP)
recipe("bootstrap-older", "clean", "bootstrap.checkpoint has metadata.version 1, which 4.0 does not know any more",
       formatted_with(1), needs=BOOTSTRAP)

# --- a controller ---
recipe("controller", "controller", "nothing: a controller after a clean stop", needs=FORMAT)
recipe("format-new", "controller", "a controller that was formatted and never started", never_started, needs=FORMAT)
recipe("format-emptied", "controller", "the snapshot at offset 0 is emptied", written(FORMAT), needs=FORMAT)
recipe("format-emptied-new", "controller", "never started, and the snapshot at offset 0 is emptied",
       never_started, written(FORMAT), needs=FORMAT)
recipe("format-cut-new", "controller", "never started, and the snapshot at offset 0 ends within its second batch",
       never_started, changed(FORMAT, lambda data: data[: len(data) // 2]), needs=FORMAT)
recipe("format-cut", "controller", "the snapshot at offset 0 ends within its second batch",
       changed(FORMAT, lambda data: data[: len(data) // 2]), needs=FORMAT)
recipe("format-sixteen-new", "controller", "never started, and the snapshot at offset 0 has 16 bytes: less than a "
       "batch's header", never_started, changed(FORMAT, lambda data: data[:16]), needs=FORMAT)
recipe("format-footer-new", "controller", "never started, and the snapshot at offset 0 has lost its footer",
       never_started, changed(FORMAT, cut(10)), needs=FORMAT)
recipe("format-bit", "controller", "a bit flips in the snapshot at offset 0",
       changed(FORMAT, lambda data: flip(data, 8 * (len(data) // 2))), needs=FORMAT)
recipe("format-zeros", "controller", "the snapshot at offset 0 is zeros",
       changed(FORMAT, lambda data: bytes(len(data))), needs=FORMAT)
recipe("format-level-lost", "controller", "the snapshot at offset 0 does not have the level of metadata.version",
       changed(FORMAT, without_level), needs=FORMAT)
recipe("format-level-lost-new", "controller", "never started, and the snapshot at offset 0 does not have the level of "
       "metadata.version", never_started, changed(FORMAT, without_level), needs=FORMAT)
# fmt: on
