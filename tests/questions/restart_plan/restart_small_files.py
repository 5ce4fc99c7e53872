"""Recipes for the small files of a disk: each is emptied, zeroed, truncated, doubled and renamed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.questions.restart_plan.restart_recipe import recipe

FILES = (
    ("meta", "clean-1", "meta.properties"),
    ("mark", "clean-1", ".kafka_cleanshutdown"),
    ("recovery-point", "crash-1", "recovery-point-offset-checkpoint"),
    ("log-start", "clean-1", "log-start-offset-checkpoint"),
    ("high-watermark", "clean-1", "replication-offset-checkpoint"),
    ("cleaner", "clean-1", "cleaner-offset-checkpoint"),
    ("bootstrap", "clean-1", "bootstrap.checkpoint"),
    ("quorum-state", "clean-1", "__cluster_metadata-0/quorum-state"),
    ("metadata-topic-id", "clean-1", "__cluster_metadata-0/partition.metadata"),
    ("metadata-epochs", "clean-1", "__cluster_metadata-0/leader-epoch-checkpoint"),
    ("metadata-snapshot", "clean-1", "__cluster_metadata-0/*.checkpoint"),
    ("topic-id", "clean-1", "ledger-0/partition.metadata"),
    ("epochs", "clean-1", "ledger-0/leader-epoch-checkpoint"),
    ("snapshot", "clean-1", "payments-0/*.snapshot"),
    ("snapshot-crash", "crash-1", "payments-0/*.snapshot"),
    ("index", "clean-1", "clicks-0/*.index"),
    ("time-index", "clean-1", "clicks-0/*.timeindex"),
    ("txn-index", "clean-1", "payments-0/*.txnindex"),
)

CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda data: b"",
    "zeroed": lambda data: bytes(len(data)),
    "torn": lambda data: data[: len(data) * 2 // 3],
    "doubled": lambda data: data * 2,
}


def _last(root: Path, pattern: str) -> Path:
    return max(root.glob(pattern))


def _add(name: str, disk: str, pattern: str) -> None:
    for word, change in CHANGES.items():

        def apply(root: Path, change: Callable[[bytes], bytes] = change) -> None:
            path = _last(root, pattern)
            path.write_bytes(change(path.read_bytes()))

        apply.__name__ = f"{name}-{word}"
        recipe(disk, f"{pattern}: {word}")(apply)

    def renamed(root: Path) -> None:
        path = _last(root, pattern)
        path.rename(path.with_name(path.name + ".bak"))

    renamed.__name__ = f"{name}-renamed"
    recipe(disk, f"{pattern}: renamed to .bak")(renamed)


for _each in FILES:
    _add(*_each)
