"""Recipes for damage to the small disks of every release: see tests/corpus/README.md and tools/release_trials.py.

They find segments, offsets and IDs on the disk, because those differ between the releases. Each changes a copy of a
log directory, `clean` or `crash`.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kdump.format.batch_header import BATCH_HEADER, LOG_OVERHEAD
from kdump.format.index import TXN_INDEX_ENTRY
from kdump.format.varint import read_varint
from tests.craft import flip, message, patch, rebase, split
from tests.damages import META, RECOVERY, REPLICATION, START, Log
from tests.questions.restart_plan.restart_recipe import edit

CLEANER = "cleaner-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
TOPIC_ID = "partition.metadata"
MARK = ".kafka_cleanshutdown"
ID = "0123456789abcdef0123456789abcdef"


class Recipe(NamedTuple):
    """Recipe. `apply`: changes a copied log directory, given its root; `needs`: a file that a disk must have."""

    name: str
    disk: str
    what: str
    apply: Callable[[Path], None]
    needs: str

    def fits(self, root: Path) -> bool:
        """Return True if the disk has what the recipe changes."""
        return not self.needs or (root / self.needs).exists()


RECIPES: list[Recipe] = []


def recipe(disk: str, what: str, needs: str = "") -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Register a function as a recipe; its name, with hyphens, is the recipe's."""

    def add(apply: Callable[[Path], None]) -> Callable[[Path], None]:
        RECIPES.append(Recipe(apply.__name__.replace("_", "-"), disk, what, apply, needs))
        return apply

    return add


def bases(root: Path, partition: str) -> list[int]:
    """Return the base offsets of a partition's segments, ascending."""
    return sorted(int(path.stem) for path in (root / partition).glob("*.log"))


def log(root: Path, partition: str, number: int = -1) -> Log:
    """Return a segment by its number; -1 is the last."""
    return Log(root, partition, bases(root, partition)[number])


def path_of(root: Path, partition: str, suffix: str, number: int = -1) -> Path:
    return root / partition / f"{bases(root, partition)[number]:020}{suffix}"


def unflushed(root: Path, partition: str) -> int:
    """Return the number of the segment that contains the recovery point."""
    lines = (root / RECOVERY).read_text().split("\n")
    topic, _, number = partition.rpartition("-")
    point = next(int(line.split()[2]) for line in lines[2:] if line.split()[:2] == [topic, number])
    return max(n for n, base in enumerate(bases(root, partition)) if base <= point)


def break_value(segment: Log, index: int) -> None:
    """Flip a bit in the last record of one batch."""
    segment.batches[index] = flip(segment.batches[index], 8 * (len(segment.batches[index]) - 3))
    segment.write()


# --- nothing ---


@recipe("clean", "nothing: a clean shutdown")
def clean(root: Path) -> None:
    pass


@recipe("crash", "nothing: after kill -9")
def crash(root: Path) -> None:
    pass


# --- the clean shutdown file and the recovery points ---


@recipe("clean", ".kafka_cleanshutdown is gone")
def mark_lost(root: Path) -> None:
    (root / MARK).unlink()


@recipe("crash", ".kafka_cleanshutdown is there, although the broker was killed: a torn tail stays")
def mark_left(root: Path) -> None:
    (root / MARK).write_bytes(b'{"version":0,"brokerEpoch":7}')
    edit(path_of(root, "plain-0", ".log"), lambda data: data[:-20])


@recipe("crash", "recovery-point-offset-checkpoint is gone: every segment is recovered")
def recovery_lost(root: Path) -> None:
    (root / RECOVERY).unlink()


@recipe("crash", "recovery-point-offset-checkpoint is emptied")
def recovery_emptied(root: Path) -> None:
    (root / RECOVERY).write_bytes(b"")


@recipe("crash", "a line of recovery-point-offset-checkpoint has no number")
def recovery_garbled(root: Path) -> None:
    edit(root / RECOVERY, lambda data: data.replace(b"plain 0 ", b"plain 0 x"))


@recipe("clean", "recovery-point-offset-checkpoint has version 7")
def recovery_version(root: Path) -> None:
    edit(root / RECOVERY, lambda data: b"7" + data[1:])


# --- batches ---


@recipe("clean", "a bit flips in a value of the last segment")
def value_bit_clean(root: Path) -> None:
    break_value(log(root, "plain-0"), 1)


@recipe("crash", "a bit flips in a value of the first segment, far below the recovery point")
def value_bit_below(root: Path) -> None:
    break_value(log(root, "plain-0", 0), 1)


@recipe("crash", "a bit flips in a value below the recovery point, in the segment that contains it")
def value_bit_at_recovery_point(root: Path) -> None:
    break_value(log(root, "plain-0", unflushed(root, "plain-0")), 0)


@recipe("crash", "a bit flips in a value above the recovery point; whole segments follow")
def value_bit_above(root: Path) -> None:
    break_value(log(root, "plain-0", -2), 2)


@recipe("crash", "a bit flips in the second segment, and the recovery point is gone")
def value_bit_recovery_lost(root: Path) -> None:
    (root / RECOVERY).unlink()
    break_value(log(root, "plain-0", 1), 2)


@recipe("clean", "the last batch is incomplete, after a clean shutdown")
def torn_clean(root: Path) -> None:
    edit(path_of(root, "plain-0", ".log"), lambda data: data[:-20])


@recipe("crash", "the last batches of three partitions are incomplete")
def torn_crash(root: Path) -> None:
    for name in ("plain-0", "codecs-0", "payments-0"):
        edit(path_of(root, name, ".log"), lambda data: data[:-20])


@recipe("crash", "a segment above the recovery point, with others after it, ends in the middle of a batch")
def torn_earlier(root: Path) -> None:
    edit(path_of(root, "plain-0", ".log", -2), lambda data: data[:-20])


@recipe("clean", "4096 zeros after the last batch, after a clean shutdown")
def zeros_clean(root: Path) -> None:
    edit(path_of(root, "plain-0", ".log"), lambda data: data + bytes(4096))


@recipe("crash", "4096 zeros after the last batch")
def zeros_crash(root: Path) -> None:
    edit(path_of(root, "plain-0", ".log"), lambda data: data + bytes(4096))


@recipe("crash", "the last 600 bytes are zeros, as after a power loss")
def zeros_tail(root: Path) -> None:
    edit(path_of(root, "plain-0", ".log"), lambda data: data[:-600] + bytes(600))


@recipe("crash", "text after the last batch")
def junk_crash(root: Path) -> None:
    edit(path_of(root, "plain-0", ".log"), lambda data: data + b"not a batch at all, but a line of text. " * 4)


@recipe("crash", "the base offset of the last batch is lower than the one before")
def offset_back(root: Path) -> None:
    segment = log(root, "plain-0")
    segment.batches[-1] = rebase(segment.batches[-1], segment.last.baseOffset - 20)
    segment.write()


@recipe("crash", "the base offset of the last batch is 2^31 too high")
def offset_too_far(root: Path) -> None:
    segment = log(root, "plain-0")
    segment.batches[-1] = rebase(segment.batches[-1], segment.last.baseOffset + (1 << 31))
    segment.write()


@recipe("crash", "the last batch says that it has one record more than it has")
def record_count(root: Path) -> None:
    segment = log(root, "plain-0")
    segment.batches[-1] = patch(segment.batches[-1], recordCount=segment.last.recordCount + 1)
    segment.write()


@recipe("crash", "the leader epoch of the last batch is 0, after newer ones")
def epoch_back(root: Path) -> None:
    segment = log(root, "plain-0")
    segment.batches[-1] = patch(segment.batches[-1], crc=False, partitionLeaderEpoch=0)
    segment.write()


@recipe("crash", "a message of format 1 after the last batch")
def magic_1(root: Path) -> None:
    segment = log(root, "plain-0")
    segment.write(message(1, b"of an old client", offset=segment.end))


@recipe("clean", "a message of format 0 after the last batch, after a clean shutdown")
def magic_0_clean(root: Path) -> None:
    segment = log(root, "plain-0")
    segment.write(message(0, b"of an old client", offset=segment.end))


@recipe("clean", "two segments of messages of formats 0 and 1, without indexes: the topic of an old client")
def formats_0_and_1(root: Path) -> None:
    of_old_clients(root)


@recipe("crash", "the same after kill -9, and the recovery point is gone")
def formats_0_and_1_crash(root: Path) -> None:
    (root / RECOVERY).unlink()
    of_old_clients(root)


def of_old_clients(root: Path) -> None:
    """Rewrite the first two segments of a partition in message formats 0 and 1."""
    numbers = bases(root, "plain-0")
    for magic in (0, 1):
        segment = log(root, "plain-0", magic)
        offsets = range(numbers[magic], numbers[magic + 1])
        segment.batches = [message(magic, b"of an old client", offset=at) for at in offsets]
        segment.write()
        for suffix in (".index", ".timeindex"):
            path_of(root, "plain-0", suffix, magic).unlink()


@recipe("crash", "a batch of format 3 after the last batch")
def magic_3(root: Path) -> None:
    segment = log(root, "plain-0")
    new = segment.next()
    segment.write(new[:16] + b"\3" + new[17:])


@recipe("crash", "a batch of a transactional producer outside of its transaction, above the recovery point")
def outside_transaction(root: Path) -> None:
    segment = log(root, "payments-0")
    found = [patch(each, crc=True) for each in segment.batches]
    header = next(each for each in reversed(found) if not each[22] & 0x20)
    segment.write(patch(rebase(header, segment.end), attributes=0, baseSequence=100))


# --- segments ---


@recipe("clean", "an empty segment after the last one")
def empty_segment(root: Path) -> None:
    end = log(root, "plain-0").end
    for suffix in (".log", ".index", ".timeindex"):
        (root / f"plain-0/{end:020}{suffix}").touch()


@recipe("clean", "the second of four segments is gone")
def segment_lost(root: Path) -> None:
    base = bases(root, "plain-0")[1]
    for path in (root / "plain-0").glob(f"{base:020}.*"):
        path.unlink()


@recipe("clean", "the first segment is gone, but not its indexes")
def segment_lost_first(root: Path) -> None:
    path_of(root, "plain-0", ".log", 0).unlink()


@recipe("clean", "all files of a partition are gone, but not its directory")
def partition_emptied(root: Path) -> None:
    for path in (root / "plain-0").iterdir():
        path.unlink()


@recipe("clean", "the directory of a partition is gone")
def partition_gone(root: Path) -> None:
    shutil.rmtree(root / "plain-0")


@recipe("clean", "the only segment of a partition is a directory")
def segment_directory(root: Path) -> None:
    path = path_of(root, "codecs-0", ".log")
    path.unlink()
    path.mkdir()


@recipe("clean", "a file notes.log in a partition's directory")
def foreign_log(root: Path) -> None:
    (root / "plain-0/notes.log").write_text("do not delete\n")


@recipe("clean", "a .swap of two segments, whose originals are still there: a compaction that was almost finished")
def swap_of_two(root: Path) -> None:
    first, second = (path_of(root, "plain-0", ".log", number) for number in (0, 1))
    first.with_name(first.name + ".swap").write_bytes(first.read_bytes() + second.read_bytes())


@recipe("clean", "a .swap with its index, time index and transaction index, and without the original")
def swap_complete(root: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = path_of(root, "plain-0", suffix, 1) if suffix != ".log" else None
        if path:
            path.rename(path.with_name(path.name + ".swap"))
    path = path_of(root, "plain-0", ".log", 1)
    path.rename(path.with_name(path.name + ".swap"))


@recipe("crash", "a .swap whose original is still there, after kill -9")
def swap_crash(root: Path) -> None:
    path = path_of(root, "plain-0", ".log", 0)
    shutil.copy(path, path.with_name(path.name + ".swap"))


@recipe("clean", ".cleaned files: a compaction that was not finished")
def cleaned(root: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = path_of(root, "plain-0", suffix, 0)
        shutil.copy(path, path.with_name(path.name + ".cleaned"))


@recipe("clean", ".swap files above .cleaned ones: an unfinished split")
def swap_and_cleaned(root: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        one, other = (path_of(root, "plain-0", suffix, number) for number in (0, 2))
        shutil.copy(one, one.with_name(one.name + ".cleaned"))
        shutil.copy(other, other.with_name(other.name + ".swap"))


# --- indexes ---


@recipe("clean", "the .index of a segment before the last is gone, and a bit flips in that segment")
def index_lost_clean(root: Path) -> None:
    path_of(root, "plain-0", ".index", 1).unlink()
    break_value(log(root, "plain-0", 1), 2)


@recipe("crash", "the .index of a segment below the recovery point is gone, and a bit flips in that segment")
def index_lost_below(root: Path) -> None:
    path_of(root, "plain-0", ".index", 0).unlink()
    break_value(log(root, "plain-0", 0), 2)


@recipe("clean", "the .timeindex of the second and the last segment are gone")
def time_index_lost(root: Path) -> None:
    for number in (1, -1):
        path_of(root, "plain-0", ".timeindex", number).unlink()


@recipe("clean", "the .txnindex of a segment is gone")
def txn_index_lost(root: Path) -> None:
    path_of(root, "payments-0", ".txnindex", 0).unlink()


@recipe("clean", "the last entry of the .index of the last segment points after the end of the segment")
def index_past_the_end(root: Path) -> None:
    size = path_of(root, "plain-0", ".log").stat().st_size
    edit(path_of(root, "plain-0", ".index"), lambda data: data[:-4] + struct.pack(">i", size + 1000))


@recipe("clean", "the last entry of the .index of the last segment is zeros")
def index_zeros(root: Path) -> None:
    edit(path_of(root, "plain-0", ".index"), lambda data: data[:-8] + bytes(8))


@recipe("clean", "the size of an .index is not a multiple of 8")
def index_unaligned(root: Path) -> None:
    edit(path_of(root, "plain-0", ".index", 1), lambda data: data[:-3])


@recipe("clean", "the size of the .timeindex of the last segment is not a multiple of 12")
def time_index_unaligned(root: Path) -> None:
    edit(path_of(root, "plain-0", ".timeindex"), lambda data: data + b"\1\2\3")


@recipe("clean", "the last entry of a .timeindex is older than the one before")
def time_index_back(root: Path) -> None:
    edit(path_of(root, "plain-0", ".timeindex", 1), lambda data: data[:-12] + bytes(4) + b"\1" * 4 + data[-4:])


@recipe("clean", "an entry of a .txnindex has version 7")
def txn_index_version(root: Path) -> None:
    edit(path_of(root, "payments-0", ".txnindex", 0), lambda data: struct.pack(">h", 7) + data[2:])


@recipe("clean", "an entry of a .txnindex ends before its segment begins")
def txn_index_below(root: Path) -> None:
    entry = TXN_INDEX_ENTRY.struct.pack(0, 9, 0, -5, 0)
    edit(path_of(root, "payments-0", ".txnindex", 0), lambda data: entry + data)


@recipe("clean", "an .index is a directory")
def index_directory(root: Path) -> None:
    path = path_of(root, "codecs-0", ".index")
    path.unlink()
    path.mkdir()


# --- producer snapshots ---


@recipe("clean", "the snapshots of a partition with an open transaction are gone")
def snapshots_lost(root: Path) -> None:
    for path in (root / "payments-0").glob("*.snapshot"):
        path.unlink()


@recipe("crash", "the snapshots of two partitions are gone")
def snapshots_lost_crash(root: Path) -> None:
    for name in ("payments-0", "plain-0"):
        for path in (root / name).glob("*.snapshot"):
            path.unlink()


@recipe("clean", "a bit flips in the newest snapshot")
def snapshot_bit(root: Path) -> None:
    edit(max((root / "payments-0").glob("*.snapshot")), lambda data: flip(data, 8 * (len(data) - 3)))


@recipe("crash", "all snapshots of a partition are corrupt")
def snapshots_corrupt(root: Path) -> None:
    for path in (root / "payments-0").glob("*.snapshot"):
        edit(path, lambda data: flip(data, 8 * (len(data) - 3)))


@recipe("clean", "a .snapshot whose name is not a number")
def snapshot_name(root: Path) -> None:
    (root / "plain-0/notes.snapshot").write_bytes(b"")


# --- the checkpoints ---


@recipe("clean", "log-start-offset-checkpoint has version 7")
def start_version(root: Path) -> None:
    edit(root / START, lambda data: b"7" + data[1:])


@recipe("clean", "a log start offset is after the log end")
def start_beyond(root: Path) -> None:
    edit(root / START, lambda _: b"0\n1\nplain 0 9000\n")


@recipe("crash", "a log start offset is after the log end, after kill -9")
def start_beyond_crash(root: Path) -> None:
    edit(root / START, lambda _: b"0\n1\nplain 0 9000\n")


@recipe("crash", "the log start offset is above the recovery point")
def start_within(root: Path) -> None:
    base = bases(root, "plain-0")[-2]
    edit(root / START, lambda _: f"0\n1\nplain 0 {base + 15}\n".encode())


@recipe("clean", "replication-offset-checkpoint has version 7")
def replication_version(root: Path) -> None:
    edit(root / REPLICATION, lambda data: b"7" + data[1:])


@recipe("clean", "replication-offset-checkpoint has one line fewer than it says")
def replication_count(root: Path) -> None:
    edit(root / REPLICATION, lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n")


@recipe("clean", "cleaner-offset-checkpoint has version 7")
def cleaner_version(root: Path) -> None:
    edit(root / CLEANER, lambda data: b"7" + data[1:])


# --- leader epochs and topic IDs ---


@recipe("crash", "leader-epoch-checkpoint is gone")
def epochs_lost(root: Path) -> None:
    (root / "plain-0" / EPOCHS).unlink()


@recipe("clean", "leader-epoch-checkpoint has version 7")
def epochs_version(root: Path) -> None:
    edit(root / "plain-0" / EPOCHS, lambda data: b"7" + data[1:])


@recipe("clean", "a line of leader-epoch-checkpoint has no number")
def epochs_garbled(root: Path) -> None:
    edit(root / "plain-0" / EPOCHS, lambda data: data.replace(b"0 0\n", b"0 zero\n"))


@recipe("crash", "leader-epoch-checkpoint has an epoch that starts after the log end")
def epochs_beyond(root: Path) -> None:
    edit(root / "plain-0" / EPOCHS, lambda _: b"0\n2\n0 0\n1 9000\n")


@recipe("clean", "partition.metadata is gone", f"plain-0/{TOPIC_ID}")
def topic_id_lost(root: Path) -> None:
    (root / "plain-0" / TOPIC_ID).unlink()


@recipe("clean", "partition.metadata has the ID of another topic", f"plain-0/{TOPIC_ID}")
def topic_id_other(root: Path) -> None:
    shutil.copy(root / "codecs-0" / TOPIC_ID, root / "plain-0" / TOPIC_ID)


@recipe("clean", "partition.metadata is text", f"plain-0/{TOPIC_ID}")
def topic_id_text(root: Path) -> None:
    (root / "plain-0" / TOPIC_ID).write_text("nothing of the kind\n")


# --- meta.properties ---


def keys(root: Path, change: Callable[[dict[str, str]], object]) -> None:
    """Change the keys and values of meta.properties."""
    lines = (root / META).read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    change(found)
    (root / META).write_text("".join(f"{key}={value}\n" for key, value in found.items()))


@recipe("clean", "meta.properties is gone")
def meta_lost(root: Path) -> None:
    (root / META).unlink()


@recipe("clean", "meta.properties is emptied")
def meta_emptied(root: Path) -> None:
    (root / META).write_bytes(b"")


@recipe("clean", "meta.properties has the ID of another cluster")
def meta_cluster(root: Path) -> None:
    keys(root, lambda found: found.update({"cluster.id": "A" + found["cluster.id"][1:]}))


@recipe("clean", "meta.properties has the ID of another node")
def meta_node(root: Path) -> None:
    keys(root, lambda found: found.update({key: "5" for key in ("broker.id", "node.id") if key in found}))


@recipe("clean", "meta.properties has version 7")
def meta_version(root: Path) -> None:
    keys(root, lambda found: found.update(version="7"))


@recipe("clean", "meta.properties has no node ID")
def meta_no_node(root: Path) -> None:
    keys(root, lambda found: [found.pop(key, None) for key in ("broker.id", "node.id")])


# --- directories ---


@recipe("clean", "a directory lost+found")
def lost_and_found(root: Path) -> None:
    (root / "lost+found").mkdir()


@recipe("clean", "a copy of a partition, named plain-0.bak")
def backup(root: Path) -> None:
    shutil.copytree(root / "plain-0", root / "plain-0.bak")


@recipe("clean", "a partition that the cluster does not have: number 7 of a topic with one partition")
def partition_unknown(root: Path) -> None:
    shutil.copytree(root / "plain-0", root / "plain-7")


@recipe("clean", "a partition with the suffix -delete")
def delete_directory(root: Path) -> None:
    (root / "plain-0").rename(root / f"plain-0.{ID}-delete")


@recipe("clean", "a partition with the suffix -stray")
def stray_directory(root: Path) -> None:
    (root / "plain-0").rename(root / f"plain-0.{ID}-stray")


@recipe("clean", "a partition with the suffix -future, and not the live one")
def future_alone(root: Path) -> None:
    (root / "plain-0").rename(root / f"plain-0.{ID}-future")


@recipe("clean", "a copy of a partition with the suffix -future next to the live one")
def future_beside(root: Path) -> None:
    shutil.copytree(root / "plain-0", root / f"plain-0.{ID}-future")


# --- the metadata log of a broker with KRaft ---

METADATA = "__cluster_metadata-0"


@recipe("clean", "a bit flips in the metadata log", METADATA)
def metadata_bit(root: Path) -> None:
    segment = log(root, METADATA)
    number = len(segment.batches) * 2 // 3
    segment.batches[number] = flip(segment.batches[number], 8 * (len(segment.batches[number]) - 2))
    segment.write()


@recipe("clean", "the metadata log is gone", METADATA)
def metadata_lost(root: Path) -> None:
    shutil.rmtree(root / METADATA)


@recipe("clean", "quorum-state is emptied", f"{METADATA}/quorum-state")
def quorum_emptied(root: Path) -> None:
    (root / METADATA / "quorum-state").write_bytes(b"")


# --- what kafka-storage has written into bootstrap.checkpoint, up to 4.3 ---

BOOTSTRAP = "bootstrap.checkpoint"


def formatted_with(root: Path, level: int) -> None:
    """Change the level of metadata.version in bootstrap.checkpoint, whose checksums Kafka does not verify."""
    feature = b"metadata.version"
    before, after = (root / BOOTSTRAP).read_bytes().split(feature)
    (root / BOOTSTRAP).write_bytes(before + feature + level.to_bytes(2, "big") + after[2:])


@recipe("clean", "bootstrap.checkpoint has metadata.version 33, which is new in 4.4", BOOTSTRAP)
def bootstrap_newer(root: Path) -> None:
    formatted_with(root, 33)


@recipe("clean", "bootstrap.checkpoint has metadata.version 1, which 4.0 does not know any more", BOOTSTRAP)
def bootstrap_older(root: Path) -> None:
    formatted_with(root, 1)


# --- what kafka-storage has written into the metadata snapshot at offset 0, on a controller ---


FORMAT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


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


@recipe("controller", "nothing: a controller after a clean stop", FORMAT)
def controller(root: Path) -> None:
    pass


@recipe("controller", "a controller that was formatted and never started", FORMAT)
def format_new(root: Path) -> None:
    never_started(root)


@recipe("controller", "the snapshot at offset 0 is emptied", FORMAT)
def format_emptied(root: Path) -> None:
    (root / FORMAT).write_bytes(b"")


@recipe("controller", "never started, and the snapshot at offset 0 is emptied", FORMAT)
def format_emptied_new(root: Path) -> None:
    never_started(root)
    format_emptied(root)


@recipe("controller", "never started, and the snapshot at offset 0 ends within its second batch", FORMAT)
def format_cut_new(root: Path) -> None:
    never_started(root)
    edit(root / FORMAT, lambda data: data[: len(data) // 2])


@recipe("controller", "the snapshot at offset 0 ends within its second batch", FORMAT)
def format_cut(root: Path) -> None:
    edit(root / FORMAT, lambda data: data[: len(data) // 2])


@recipe("controller", "never started, and the snapshot at offset 0 has 16 bytes: less than a batch's header", FORMAT)
def format_sixteen_new(root: Path) -> None:
    never_started(root)
    edit(root / FORMAT, lambda data: data[:16])


@recipe("controller", "never started, and the snapshot at offset 0 has lost its footer", FORMAT)
def format_footer_new(root: Path) -> None:
    never_started(root)
    edit(root / FORMAT, lambda data: data[:-10])


@recipe("controller", "a bit flips in the snapshot at offset 0", FORMAT)
def format_bit(root: Path) -> None:
    edit(root / FORMAT, lambda data: flip(data, 8 * (len(data) // 2)))


@recipe("controller", "the snapshot at offset 0 is zeros", FORMAT)
def format_zeros(root: Path) -> None:
    edit(root / FORMAT, lambda data: bytes(len(data)))


@recipe("controller", "the snapshot at offset 0 does not have the level of metadata.version", FORMAT)
def format_level_lost(root: Path) -> None:
    edit(root / FORMAT, without_level)


@recipe("controller", "never started, and the snapshot at offset 0 does not have the level of metadata.version", FORMAT)
def format_level_lost_new(root: Path) -> None:
    never_started(root)
    format_level_lost(root)
