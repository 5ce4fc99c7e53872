"""Actions of an operator after a finding, tried with a real broker (tools/remedy_trials.py): a damaged disk, the files
that are removed or renamed while the broker is down, and the partition that is read afterwards.

The damage comes from tests/damages.py; "" stands for an undamaged partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.craft import split
from tests.damages import DAMAGES, DOUBTS, START, ZERO, copy_disk

__all__ = ["BY_NAME", "REMEDIES", "Remedy", "copy_disk"]

BY_NAME = {damage.name: damage for damage in [*DAMAGES, *DOUBTS]}


class Remedy(NamedTuple):
    """One trial. `apply`: changes the damaged log directory, given its root. `alone`: the trial needs a startup of its
    own, because the broker may exit or because `apply` changes files of the whole directory. `unreadable`: a file,
    relative to the log directory, and the position from which 4,096 bytes cannot be read."""

    name: str
    code: str
    damage: str
    partition: str
    did: str
    apply: Callable[[Path], None]
    alone: bool = False
    unreadable: tuple[str, int] | None = None


def removed(*names: str) -> Callable[[Path], None]:
    """Return a remedy that removes these files, named relative to the log directory."""

    def apply(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return apply


def renamed(old: str, new: str) -> Callable[[Path], None]:
    """Return a remedy that renames one file."""

    def apply(root: Path) -> None:
        (root / old).rename(root / new)

    return apply


def moved_away(partition: str) -> Callable[[Path], None]:
    """Return a remedy that moves a partition directory out of the log directory."""

    def apply(root: Path) -> None:
        (root / partition).rename(root.with_name(f"away-{partition}"))

    return apply


def cut_last_batch(root: Path, segment: str) -> None:
    """Remove the last batch of a segment, and delete its .index."""
    path = root / f"{segment}.log"
    path.write_bytes(b"".join(split(path.read_bytes())[:-1]))
    (root / f"{segment}.index").unlink()


def version(path: Path) -> None:
    """Set the version of the first entry of a .txnindex to 256."""
    data = path.read_bytes()
    path.write_bytes((256).to_bytes(2, "big") + data[2:])


CLEAN = ".kafka_cleanshutdown"
PAYMENTS = f"payments-0/{ZERO}"
SNAPSHOT = f"payments-0/{120:020}.snapshot"

# fmt: off
REMEDIES = [
    Remedy("snapshot-left", "snapshot-invalid", "", "payments-0", "the damaged snapshot is left in place",
           lambda root: (root / SNAPSHOT).write_bytes(b"\0\1" + bytes(40)), True),
    Remedy("snapshot-removed", "snapshot-mismatch", "", "payments-0", "the only snapshot is deleted", removed(SNAPSHOT),
           True),
    Remedy("snapshot-removed-recovered", "snapshot-mismatch", "", "payments-0",
           "the only snapshot and .kafka_cleanshutdown are deleted", removed(SNAPSHOT, CLEAN), True),
    Remedy("snapshot-emptied", "snapshot-mismatch", "", "payments-0", "the only snapshot is replaced by an empty file",
           lambda root: (root / SNAPSHOT).write_bytes(b""), True),
    Remedy("epochs-removed", "leader-epoch-checkpoint-mismatch", "", "orders-none-0",
           "leader-epoch-checkpoint is moved away", removed("orders-none-0/leader-epoch-checkpoint")),
    Remedy("epochs-and-index-removed", "leader-epoch-checkpoint-mismatch", "", "orders-gzip-0",
           "leader-epoch-checkpoint is moved away, and the .index of every segment is deleted",
           removed("orders-gzip-0/leader-epoch-checkpoint", f"orders-gzip-0/{ZERO}.index")),
    Remedy("torn-index-removed", "batch-truncated", "torn-clean", "franz-gzip-0",
           "the .index of the last segment is deleted", removed(f"franz-gzip-0/{ZERO}.index")),
    Remedy("tail-index-removed", "trailing-bytes", "tail-clean", "franz-lz4-0",
           "the .index of the last segment is deleted", removed(f"franz-lz4-0/{ZERO}.index")),
    Remedy("zeros-index-removed", "zero-padding", "zeros-clean", "prealloc-0",
           "the .index of the last segment is deleted", removed(f"prealloc-0/{ZERO}.index")),
    Remedy("damage-index-removed", "crc-mismatch", "value-bit-earlier-segment", "clicks-0",
           "the .index of the damaged segment, which is not the last, is deleted", removed(f"clicks-0/{ZERO}.index")),
    Remedy("gap-index-removed", "index-mismatch", "", "users-0",
           "the last batch of the first segment is gone, as after compaction, and the .index of that segment is "
           "deleted", lambda root: cut_last_batch(root, f"users-0/{ZERO}"), True),
    Remedy("gap-both-removed", "index-mismatch", "", "users-0",
           "as gap-index-removed, and the .index of the last segment is deleted, too",
           lambda root: (cut_last_batch(root, f"users-0/{ZERO}"), removed(f"users-0/{254:020}.index")(root), None)[-1],
           True),
    Remedy("old-index-removed", "index-mismatch", "", "users-0", "the .index of the first of two segments is deleted",
           removed(f"users-0/{ZERO}.index"), True),
    Remedy("offset-back-index-removed", "offset-not-monotonic", "offset-back", "orders-none-0",
           "the .index of the segment is deleted", removed(f"orders-none-0/{ZERO}.index"), True),
    Remedy("txn-entry-index-removed", "txn-index-mismatch", "txn-entry-lost", "payments-0",
           "the .index of the segment is deleted, its .txnindex is left", removed(f"{PAYMENTS}.index"), True),
    Remedy("txn-version-left", "txn-index-invalid", "", "payments-0", "an entry of version 256 is left",
           lambda root: version(root / f"{PAYMENTS}.txnindex"), True),
    Remedy("txn-version-index-removed", "txn-index-invalid", "", "payments-0",
           "the .index of the segment is deleted, its .txnindex with an entry of version 256 is left",
           lambda root: (version(root / f"{PAYMENTS}.txnindex"), removed(f"{PAYMENTS}.index")(root), None)[-1], True),
    Remedy("time-index-removed", "index-missing", "", "orders-snappy-0", "the .timeindex is deleted",
           removed(f"orders-snappy-0/{ZERO}.timeindex")),
    Remedy("time-index-and-index-removed", "index-padding", "time-index-zeros-clean", "orders-lz4-0",
           "the .index is deleted, the padded .timeindex is left", removed(f"orders-lz4-0/{ZERO}.index")),
    Remedy("segment-renamed", "segment-name-mismatch", "name-above-first-offset", "users-0",
           "the .log is renamed to the base offset of its first batch, its indexes are left",
           renamed(f"users-0/{260:020}.log", f"users-0/{254:020}.log")),
    Remedy("segment-renamed-last-removed", "segment-name-mismatch", "", "clicks-0",
           "the .log before the last is renamed to the base offset of its first batch, its indexes are left, and the "
           ".index of the last segment is deleted",
           lambda root: (*(renamed(f"clicks-0/{ZERO}.{kind}", f"clicks-0/{5:020}.{kind}")(root)
                           for kind in ("index", "timeindex")),
                         removed(f"clicks-0/{11263:020}.index")(root), None)[-1], True),
    Remedy("cleaner-checkpoint-removed", "checkpoint-invalid", "cleaner-count", "sessions-0",
           "cleaner-offset-checkpoint is moved away", removed("cleaner-offset-checkpoint"), True),
    Remedy("start-checkpoint-removed", "checkpoint-invalid", "start-count", "trimmed-0",
           "log-start-offset-checkpoint is moved away", removed("log-start-offset-checkpoint"), True),
    Remedy("recovery-checkpoint-removed", "checkpoint-invalid", "recovery-count", "orders-none-0",
           "recovery-point-offset-checkpoint is moved away after a clean shutdown",
           removed("recovery-point-offset-checkpoint"), True),
    Remedy("replication-checkpoint-removed", "checkpoint-invalid", "replication-count", "orders-none-0",
           "replication-offset-checkpoint is moved away", removed("replication-offset-checkpoint"), True),
    Remedy("unreadable", "unreadable-bytes", "", "orders-none-0", "nothing, after a clean shutdown", lambda root: None,
           True, (f"orders-none-0/{ZERO}.log", 12000)),
    Remedy("unreadable-recovered", "unreadable-bytes", "", "orders-none-0", ".kafka_cleanshutdown is deleted",
           removed(CLEAN), True, (f"orders-none-0/{ZERO}.log", 12000)),
    Remedy("partition-moved-away", "crc-mismatch", "", "acks0-0",
           "the directory of the only replica is moved out of log.dirs", moved_away("acks0-0")),
    Remedy("start-line-corrected", "startup-loses", "start-beyond", "trimmed-0",
           "the segment's base offset is written in place of the log start offset above the log end",
           lambda root: (root / START).write_text((root / START).read_text().replace("trimmed 0 60", "trimmed 0 0"))),
]
# fmt: on
