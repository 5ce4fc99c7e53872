"""More recipes for damage, of the kinds that decide what a broker does at its next startup: see tests/damages.py.

Each changes a copy of a log directory, without declaring findings. `CHOSEN` lists the recipes of tests/damages.py on
which tools/restart_trials.py also starts a broker."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from pathlib import Path

from kdump.format.index import TXN_INDEX_ENTRY
from tests.craft import record
from tests.damages import (
    DAMAGES,
    DOUBTS,
    META,
    METADATA,
    RECOVERY,
    REPLICATION,
    START,
    TXN_INDEX,
    ZERO,
    Damage,
    behind,
    bit,
    copy_disk,
    cut,
    line,
    put,
)
from tests.questions.restart_plan.restart_recipe import (
    RECIPES,
    Recipe,
    batch,
    changed,
    copied,
    directory,
    gone,
    in_log,
    recipe,
    renamed,
    replaced,
    second,
    written,
)

ID = "0123456789abcdef0123456789abcdef"
MARK = ".kafka_cleanshutdown"
CLEANER = "cleaner-offset-checkpoint"
ORDERS, CLICKS, PAYMENTS = f"orders-none-0/{ZERO}", f"clicks-0/{ZERO}", f"payments-0/{ZERO}.log"
EARLY, LAST = f"clicks-0/{11263:020}", f"clicks-0/{400457:020}.log"
USERS = (f"users-0/{0:020}", f"users-0/{254:020}")
SUFFIXES = (".log", ".index", ".timeindex")
EPOCHS = "leader-epoch-checkpoint"
QUORUM = f"{METADATA}/quorum-state"


def swap_of_two(root: Path) -> None:
    first, following = (root / f"{name}.log" for name in (CLICKS, EARLY))
    first.with_name(f"{first.name}.swap").write_bytes(first.read_bytes() + following.read_bytes())


def of_two(*partitions: str) -> Callable[[Path], None]:
    """Return a step that adds a second log directory with these partitions."""

    def step(root: Path) -> None:
        second(root, *partitions)

    return step


# fmt: off
recipe("clean", "clean-1", "nothing: a clean shutdown")
recipe("crash", "crash-1", "nothing: after kill -9")
recipe("clean-shutdown-lost", "clean-1", ".kafka_cleanshutdown is gone", gone(MARK))
recipe("recovery-point-lost", "crash-1", "recovery-point-offset-checkpoint is gone: all segments are re-read",
       gone(RECOVERY))
recipe("recovery-point-garbled", "crash-1", "a line of recovery-point-offset-checkpoint has no number",
       changed(RECOVERY, line(b"trimmed 0 50\n", b"trimmed 0 fifty\n")))
recipe("damage-in-the-middle", "crash-1", "a bit flips in the second of ten segments, and the recovery point is gone",
       gone(RECOVERY), batch(f"{EARLY}.log", 3, bit(100)))
recipe("tail-of-zeros", "crash-1", "the last 3000 bytes of the last segment are zeros, as after a power loss",
       changed(LAST, lambda data: data[:-3000] + bytes(3000)))
recipe("tail-lost", "crash-1", "only the first 10,758 bytes of the last segment are left",
       changed(LAST, cut(540_000)), replaced(REPLICATION, b"clicks 0 ", b"clicks 0 "))
recipe("torn-tails", "crash-1", "three partitions end in the middle of a batch",
       *(changed(f"{name}/{ZERO}.log", cut(20)) for name in ("orders-none-0", "orders-zstd-0", "payments-0")))
recipe("index-lost-below", "crash-1", "the .index of a segment below the recovery point is gone, and a bit flips in "
       "that segment", gone(f"{EARLY}.index"), batch(f"{EARLY}.log", 40, bit(100)))
recipe("index-lost-above", "crash-1", "an .index is gone, a bit flips in its segment, and the recovery point is gone: "
       "it is recovered twice", gone(RECOVERY, f"{EARLY}.index"), batch(f"{EARLY}.log", 40, bit(100)))
recipe("index-lost-clean", "clean-1", "the .index of a segment before the last is gone, and a bit flips in that "
       "segment", gone(f"{CLICKS}.index"), batch(f"{CLICKS}.log", 30, bit(100)))
recipe("txn-index-below", "clean-1", "an entry of a .txnindex ends before its segment begins",
       changed(TXN_INDEX, lambda data: TXN_INDEX_ENTRY.struct.pack(0, 9, 0, -5, 0) + data))
recipe("txn-index-version-256", "clean-1", "an entry of a .txnindex has version 256",
       changed(TXN_INDEX, put(0, b"\1\0")))
recipe("snapshots-lost", "crash-1", "all snapshots of a partition are gone", gone("clicks-0/*.snapshot"))
recipe("snapshots-corrupt", "crash-1", "all snapshots of a partition are corrupt",
       changed("clicks-0/*.snapshot", lambda data: data[:-1] + b"\x55"))
recipe("snapshots-lost-clean", "clean-1", "the snapshots of a partition with an open transaction are gone",
       gone("payments-0/*.snapshot"))
recipe("log-start-within", "crash-1", "the log start offset is in the fifth segment",
       written(START, b"0\n2\nclicks 0 150000\ntrimmed 0 17\n"))
recipe("epochs-lost", "crash-1", "leader-epoch-checkpoint is gone, and the log will be recovered",
       gone(f"ledger-0/{EPOCHS}"))
recipe("epochs-beyond", "crash-1", "leader-epoch-checkpoint has an epoch that starts after the log end",
       written(f"orders-none-0/{EPOCHS}", b"0\n3\n0 0\n1 250\n7 900\n"))
recipe("empty-segment", "clean-1", "an empty segment after the last one",
       *(written(f"orders-none-0/{300:020}{suffix}") for suffix in SUFFIXES))
recipe("swap-of-two", "clean-1", "a .swap of two segments: a compaction that was almost finished", swap_of_two)
recipe("swap-and-cleaned", "clean-1", ".swap files above .cleaned ones: an unfinished split",
       *(copied(name + suffix, to) for name, to in zip(USERS, (".cleaned", ".swap")) for suffix in SUFFIXES))
recipe("foreign-log", "clean-1", "a file notes.log in a partition's directory",
       written("orders-none-0/notes.log", b"do not delete\n"))
recipe("trash-directory", "clean-1", "a desktop's trash directory, whose name ends like a partition's",
       directory(".Trash-1000"))
recipe("backup-directory", "clean-1", "a copy of a partition next to it, named orders-none-0.bak",
       copied("orders-none-0", ".bak"))
recipe("partition-unknown", "clean-1", "a partition that the cluster does not have: number 7 of a topic with one "
       "partition", copied("orders-none-0", "orders-none-7"))
recipe("partition-and-checkpoints-gone", "clean-1", "the directory of a partition is gone, and so are the checkpoints "
       "that name it", gone("orders-none-0", RECOVERY, REPLICATION))
recipe("recovery-version-no-transaction", "clean-1", "recovery-point-offset-checkpoint has version 7, and no "
       "transaction is open", changed(RECOVERY, put(0, b"7")), gone("payments-0"))
recipe("one-of-two-fails", "clean-1", "two log directories, one with a leader-epoch-checkpoint of version 7",
       of_two("orders-lz4-0", "orders-zstd-0"), written(f"second/orders-lz4-0/{EPOCHS}", b"7\n1\n0 0\n"))
recipe("one-of-two-unformatted", "clean-1", "two log directories, one without meta.properties",
       of_two("orders-lz4-0"), gone(f"second/{META}"))
recipe("two-clusters", "clean-1", "two log directories of different clusters",
       of_two("orders-lz4-0"), replaced(f"second/{META}", b"FN96DRb6S3GeSIQS03itlw", b"AN96DRb6S3GeSIQS03itlw"))
recipe("one-of-two-unclean", "clean-1", "two log directories, only one of which was shut down cleanly",
       of_two("orders-lz4-0", "orders-zstd-0"), gone(f"second/{MARK}"))
recipe("metadata-damaged", "clean-1", "a bit flips in the metadata log", batch(f"{METADATA}/{ZERO}.log", -3, bit(2)))
recipe("index-lost-offset-back", "crash-1", "an offset decreases in a segment whose .index is gone: rebuilding the "
       "index fails", in_log(f"{ORDERS}.log", lambda log: log.next(offset=100, partitionLeaderEpoch=0)),
       gone(f"{ORDERS}.index"))
recipe("marker-recovery", "crash-1", "a transaction marker with a short key, in a log that will be recovered",
       in_log(PAYMENTS, lambda log: log.marker(9, 8, records=[record(key=b"\0\0", value=struct.pack(">hi", 0, 0))])))
recipe("transaction-recovery", "crash-1", "a batch outside of the open transaction of its producer, in a log that "
       "will be recovered", in_log(PAYMENTS, lambda log: log.next(producerId=11, producerEpoch=0, baseSequence=1)))
recipe("future-alone", "clean-1", "a -future directory without the live one that it was to replace",
       renamed("orders-zstd-0", f".{ID}-future"))
recipe("recovery-point-not-utf8", "clean-1", "a topic's name in recovery-point-offset-checkpoint is not UTF-8",
       replaced(RECOVERY, b"orders-none", b"orders\xffnone"))
recipe("cleaner-not-utf8", "clean-1", "a name in cleaner-offset-checkpoint is not UTF-8",
       written(CLEANER, b"0\n1\norders\xff 0 5\n"))
recipe("index-directory", "clean-1", "the .index is a directory", directory(f"{ORDERS}.index"))
recipe("time-index-directory", "clean-1", "the .timeindex is a directory", directory(f"{ORDERS}.timeindex"))
recipe("segment-directory", "clean-1", "the only segment is a directory", directory(f"{ORDERS}.log"))
recipe("epoch-directory", "clean-1", "leader-epoch-checkpoint is a directory", directory(f"orders-none-0/{EPOCHS}"))
recipe("quorum-zeros", "clean-1", "zeros after the end of quorum-state, as after a power loss",
       changed(QUORUM, behind(bytes(64))))
recipe("metadata-file", "clean-1", "__cluster_metadata-0 is a file", gone(METADATA), written(METADATA))
recipe("quorum-no-epoch", "clean-1", "quorum-state has no leaderEpoch", replaced(QUORUM, b"leaderEpoch", b"leaderAeon"))
# fmt: on

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
    return RECIPES + [Recipe(damage.name, damage.disk, damage.what, (damage.apply,)) for damage in others]


__all__ = ["CHOSEN", "RECIPES", "Recipe", "chosen", "copy_disk"]
