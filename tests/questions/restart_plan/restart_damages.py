"""More recipes for damage, of the kinds that decide what a broker does at its next startup: see tests/damages.py.

Each changes a copy of a log directory, without declaring findings. `CHOSEN` lists the recipes of tests/damages.py on
which tools/restart_trials.py also starts a broker.
"""

from __future__ import annotations

import importlib
import shutil
import struct
from pathlib import Path

from kdump.format.index import TXN_INDEX_ENTRY
from tests.craft import flip, record
from tests.damages import (
    DAMAGES,
    DOUBTS,
    META,
    RECOVERY,
    REPLICATION,
    START,
    TXN_INDEX,
    ZERO,
    Damage,
    Log,
    copy_disk,
    line,
)
from tests.questions.restart_plan.restart_recipe import RECIPES, Recipe, edit, recipe, second

ID = "0123456789abcdef0123456789abcdef"


def break_value(root: Path, partition: str, base: int, index: int) -> None:
    """Flip a bit in a value of one batch."""
    log = Log(root, partition, base)
    log.batches[index] = flip(log.batches[index], 8 * (len(log.batches[index]) - 100))
    log.write()


@recipe("clean-1", "nothing: a clean shutdown")
def clean(root: Path) -> None:
    pass


@recipe("crash-1", "nothing: after kill -9")
def crash(root: Path) -> None:
    pass


@recipe("clean-1", ".kafka_cleanshutdown is gone")
def clean_shutdown_lost(root: Path) -> None:
    (root / ".kafka_cleanshutdown").unlink()


@recipe("crash-1", "recovery-point-offset-checkpoint is gone: all segments are re-read")
def recovery_point_lost(root: Path) -> None:
    (root / RECOVERY).unlink()


@recipe("crash-1", "a line of recovery-point-offset-checkpoint has no number")
def recovery_point_garbled(root: Path) -> None:
    edit(root / RECOVERY, line(b"trimmed 0 50\n", b"trimmed 0 fifty\n"))


@recipe("crash-1", "a bit flips in the second of ten segments, and the recovery point is gone")
def damage_in_the_middle(root: Path) -> None:
    (root / RECOVERY).unlink()
    break_value(root, "clicks-0", 11263, 3)


@recipe("crash-1", "the last 3000 bytes of the last segment are zeros, as after a power loss")
def tail_of_zeros(root: Path) -> None:
    edit(root / f"clicks-0/{400457:020}.log", lambda data: data[:-3000] + bytes(3000))


@recipe("crash-1", "only the first 10,758 bytes of the last segment are left")
def tail_lost(root: Path) -> None:
    edit(root / f"clicks-0/{400457:020}.log", lambda data: data[:-540_000])
    edit(root / "replication-offset-checkpoint", lambda data: data.replace(b"clicks 0 ", b"clicks 0 4"[:-1]))


@recipe("crash-1", "three partitions end in the middle of a batch")
def torn_tails(root: Path) -> None:
    for name in ("orders-none-0", "orders-zstd-0", "payments-0"):
        edit(root / name / f"{ZERO}.log", lambda data: data[:-20])


@recipe("crash-1", "the .index of a segment below the recovery point is gone, and a bit flips in that segment")
def index_lost_below(root: Path) -> None:
    (root / f"clicks-0/{11263:020}.index").unlink()
    break_value(root, "clicks-0", 11263, 40)


@recipe(
    "crash-1", "an .index is gone, a bit flips in its segment, and the recovery point is gone: it is recovered twice"
)
def index_lost_above(root: Path) -> None:
    (root / RECOVERY).unlink()
    (root / f"clicks-0/{11263:020}.index").unlink()
    break_value(root, "clicks-0", 11263, 40)


@recipe("clean-1", "the .index of a segment before the last is gone, and a bit flips in that segment")
def index_lost_clean(root: Path) -> None:
    (root / f"clicks-0/{0:020}.index").unlink()
    break_value(root, "clicks-0", 0, 30)


@recipe("clean-1", "an entry of a .txnindex ends before its segment begins")
def txn_index_below(root: Path) -> None:
    entry = TXN_INDEX_ENTRY.struct.pack(0, 9, 0, -5, 0)
    edit(root / TXN_INDEX, lambda data: entry + data)


@recipe("clean-1", "an entry of a .txnindex has version 256")
def txn_index_version_256(root: Path) -> None:
    edit(root / TXN_INDEX, lambda data: struct.pack(">h", 256) + data[2:])


@recipe("crash-1", "all snapshots of a partition are gone")
def snapshots_lost(root: Path) -> None:
    for path in (root / "clicks-0").glob("*.snapshot"):
        path.unlink()


@recipe("crash-1", "all snapshots of a partition are corrupt")
def snapshots_corrupt(root: Path) -> None:
    for path in (root / "clicks-0").glob("*.snapshot"):
        edit(path, lambda data: data[:-1] + b"\x55")


@recipe("clean-1", "the snapshots of a partition with an open transaction are gone")
def snapshots_lost_clean(root: Path) -> None:
    for path in (root / "payments-0").glob("*.snapshot"):
        path.unlink()


@recipe("crash-1", "the log start offset is in the fifth segment")
def log_start_within(root: Path) -> None:
    edit(root / START, lambda _: b"0\n2\nclicks 0 150000\ntrimmed 0 17\n")


@recipe("crash-1", "leader-epoch-checkpoint is gone, and the log will be recovered")
def epochs_lost(root: Path) -> None:
    (root / "ledger-0/leader-epoch-checkpoint").unlink()


@recipe("crash-1", "leader-epoch-checkpoint has an epoch that starts after the log end")
def epochs_beyond(root: Path) -> None:
    (root / "orders-none-0/leader-epoch-checkpoint").write_bytes(b"0\n3\n0 0\n1 250\n7 900\n")


@recipe("clean-1", "an empty segment after the last one")
def empty_segment(root: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        (root / f"orders-none-0/{300:020}{suffix}").touch()


@recipe("clean-1", "a .swap of two segments: a compaction that was almost finished")
def swap_of_two(root: Path) -> None:
    folder = root / "clicks-0"
    first, following = folder / f"{0:020}.log", folder / f"{11263:020}.log"
    (folder / f"{0:020}.log.swap").write_bytes(first.read_bytes() + following.read_bytes())


@recipe("clean-1", ".swap files above .cleaned ones: an unfinished split")
def swap_and_cleaned(root: Path) -> None:
    folder = root / "users-0"
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(folder / f"{0:020}{suffix}", folder / f"{0:020}{suffix}.cleaned")
        shutil.copy(folder / f"{254:020}{suffix}", folder / f"{254:020}{suffix}.swap")


@recipe("clean-1", "a file notes.log in a partition's directory")
def foreign_log(root: Path) -> None:
    (root / "orders-none-0/notes.log").write_text("do not delete\n")


@recipe("clean-1", "a desktop's trash directory, whose name ends like a partition's")
def trash_directory(root: Path) -> None:
    (root / ".Trash-1000").mkdir()


@recipe("clean-1", "a copy of a partition next to it, named orders-none-0.bak")
def backup_directory(root: Path) -> None:
    shutil.copytree(root / "orders-none-0", root / "orders-none-0.bak")


@recipe("clean-1", "a partition that the cluster does not have: number 7 of a topic with one partition")
def partition_unknown(root: Path) -> None:
    shutil.copytree(root / "orders-none-0", root / "orders-none-7")


@recipe("clean-1", "the directory of a partition is gone, and so are the checkpoints that name it")
def partition_and_checkpoints_gone(root: Path) -> None:
    shutil.rmtree(root / "orders-none-0")
    for name in (RECOVERY, REPLICATION):
        (root / name).unlink()


@recipe("clean-1", "recovery-point-offset-checkpoint has version 7, and no transaction is open")
def recovery_version_no_transaction(root: Path) -> None:
    edit(root / RECOVERY, lambda data: b"7" + data[1:])
    shutil.rmtree(root / "payments-0")


@recipe("clean-1", "two log directories, one with a leader-epoch-checkpoint of version 7")
def one_of_two_fails(root: Path) -> None:
    other = second(root, "orders-lz4-0", "orders-zstd-0")
    (other / "orders-lz4-0/leader-epoch-checkpoint").write_bytes(b"7\n1\n0 0\n")


@recipe("clean-1", "two log directories, one without meta.properties")
def one_of_two_unformatted(root: Path) -> None:
    (second(root, "orders-lz4-0") / META).unlink()


@recipe("clean-1", "two log directories of different clusters")
def two_clusters(root: Path) -> None:
    edit(second(root, "orders-lz4-0") / META, line(b"FN96DRb6S3GeSIQS03itlw", b"AN96DRb6S3GeSIQS03itlw"))


@recipe("clean-1", "two log directories, only one of which was shut down cleanly")
def one_of_two_unclean(root: Path) -> None:
    (second(root, "orders-lz4-0", "orders-zstd-0") / ".kafka_cleanshutdown").unlink()


@recipe("clean-1", "a bit flips in the metadata log")
def metadata_damaged(root: Path) -> None:
    log = Log(root, "__cluster_metadata-0")
    number = len(log.batches) - 3
    log.batches[number] = flip(log.batches[number], 8 * (len(log.batches[number]) - 2))
    log.write()


@recipe("crash-1", "an offset decreases in a segment whose .index is gone: rebuilding the index fails")
def index_lost_offset_back(root: Path) -> None:
    log = Log(root, "orders-none-0")
    log.write(log.next(offset=100, partitionLeaderEpoch=0))
    (root / f"orders-none-0/{ZERO}.index").unlink()


@recipe("crash-1", "a transaction marker with a short key, in a log that will be recovered")
def marker_recovery(root: Path) -> None:
    log = Log(root, "payments-0")
    log.write(log.marker(9, 8, records=[record(key=b"\0\0", value=struct.pack(">hi", 0, 0))]))


@recipe("crash-1", "a batch outside of the open transaction of its producer, in a log that will be recovered")
def transaction_recovery(root: Path) -> None:
    log = Log(root, "payments-0")
    log.write(log.next(producerId=11, producerEpoch=0, baseSequence=1))


@recipe("clean-1", "a -future directory without the live one that it was to replace")
def future_alone(root: Path) -> None:
    (root / "orders-zstd-0").rename(root / f"orders-zstd-0.{ID}-future")


@recipe("clean-1", "a topic's name in recovery-point-offset-checkpoint is not UTF-8")
def recovery_point_not_utf8(root: Path) -> None:
    edit(root / RECOVERY, lambda data: data.replace(b"orders-none", b"orders\xffnone"))


@recipe("clean-1", "a name in cleaner-offset-checkpoint is not UTF-8")
def cleaner_not_utf8(root: Path) -> None:
    (root / "cleaner-offset-checkpoint").write_bytes(b"0\n1\norders\xff 0 5\n")


def to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@recipe("clean-1", "the .index is a directory")
def index_directory(root: Path) -> None:
    to_directory(root / f"orders-none-0/{ZERO}.index")


@recipe("clean-1", "the .timeindex is a directory")
def time_index_directory(root: Path) -> None:
    to_directory(root / f"orders-none-0/{ZERO}.timeindex")


@recipe("clean-1", "the only segment is a directory")
def segment_directory(root: Path) -> None:
    to_directory(root / f"orders-none-0/{ZERO}.log")


@recipe("clean-1", "leader-epoch-checkpoint is a directory")
def epoch_directory(root: Path) -> None:
    to_directory(root / "orders-none-0/leader-epoch-checkpoint")


@recipe("clean-1", "zeros after the end of quorum-state, as after a power loss")
def quorum_zeros(root: Path) -> None:
    edit(root / "__cluster_metadata-0/quorum-state", lambda data: data + bytes(64))


@recipe("clean-1", "__cluster_metadata-0 is a file")
def metadata_file(root: Path) -> None:
    shutil.rmtree(root / "__cluster_metadata-0")
    (root / "__cluster_metadata-0").touch()


@recipe("clean-1", "quorum-state has no leaderEpoch")
def quorum_no_epoch(root: Path) -> None:
    edit(root / "__cluster_metadata-0/quorum-state", lambda data: data.replace(b"leaderEpoch", b"leaderAeon"))


NAMES = """
value-bit value-bit-below-recovery-point value-bit-above-recovery-point value-bit-last-segment length-negative
length-too-small-recovery last-batch-cut torn-clean torn-crash torn-earlier-segment zeros-clean zeros-crash
zeros-earlier-segment junk-clean junk-crash offset-back offset-back-recovery offset-too-far-crash segment-lost
epoch-falls-crash epochs-falling start-beyond start-beyond-recovery recovery-version recovery-line start-count
epoch-version epoch-line replication-count index-lost time-index-lost index-past-the-end index-alone snapshot-bit
snapshot-bit-recovery partition-metadata-lost partition-metadata-garbage partition-metadata-empty
partition-metadata-other-id meta-lost meta-no-node-id meta-node-id quorum-garbage-clean-1 kraft-snapshot-lost-clean-1
two-directories lost-and-found directory-delete directory-stray directory-future-beside compaction-cleaned
compaction-swap file-deleted data-outside-transaction control-key-short partition-gone partition-gone-crash
"""
CHOSEN = NAMES.split()


def chosen() -> list[Recipe]:
    """Return all recipes for the comparison, those of this module and its siblings first."""
    for name in ("nodes", "permissions", "small_files", "random", "tiered", "reports"):
        importlib.import_module(f"tests.questions.restart_plan.restart_{name}")
    known: dict[str, Damage] = {damage.name: damage for damage in [*DAMAGES, *DOUBTS]}
    others = [known[name] for name in CHOSEN]
    return RECIPES + [Recipe(each.name, each.disk, each.what, each.apply) for each in others]


__all__ = ["CHOSEN", "RECIPES", "Recipe", "chosen", "copy_disk"]
