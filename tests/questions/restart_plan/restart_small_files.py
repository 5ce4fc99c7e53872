"""Recipes for the small files of a disk: each is emptied, zeroed, truncated, doubled and renamed."""

from __future__ import annotations

from collections.abc import Callable

from tests.questions.restart_plan.restart_recipe import Step, edit, recipe, renamed


def newest(pattern: str, change: Callable[[bytes], bytes]) -> Step:
    return lambda root: edit(max(root.glob(pattern)), change)


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


for _name, _disk, _pattern in FILES:
    for _word, _change in CHANGES.items():
        recipe(f"{_name}-{_word}", _disk, f"{_pattern}: {_word}", newest(_pattern, _change))
    recipe(
        f"{_name}-renamed",
        _disk,
        f"{_pattern}: renamed to .bak",
        lambda root, pattern=_pattern: renamed(str(max(root.glob(pattern)).relative_to(root)), ".bak")(root),
    )
