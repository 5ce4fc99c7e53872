"""Parquet files with the rows of several packs (kdump.spark.packs). --compact merges the small files of a table, of
whatever broker. If one of those packs is replaced later, the rows of the others are copied to a new file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count, groupby
from secrets import token_hex
from typing import NamedTuple

from kdump.log.run import PLAIN_RUN, Run
from kdump.spark.pack_writer import table_writer
from kdump.spark.packs import PACKED, Pack, TableRows, rows_in, table_file
from kdump.spark.store import Store
from kdump.spark.tables import RESULTS
from kdump.spark.task_runner import TaskRunner

SMALL = 64 * 1024 * 1024
"""Size of a file in bytes below which --compact merges it with others."""
ENOUGH = SMALL * 5 // 4
"""Size in bytes of the rows that are merged into one file: more than SMALL, because in one file they take less."""
LARGE = 16 * SMALL
"""Size of a file in bytes above which it is not written again only because a small file is left."""


class MergeTask(NamedTuple):
    """The input of a task, which writes these rows of a table to one file. `rows`: those of a pack each, by its
    stem."""

    store: Store
    table: str
    stem: str
    rows: list[tuple[str, TableRows]]

    @property
    def bytes(self) -> int:
        return sum(rows.bytes for _, rows in self.rows)


class Merged(NamedTuple):
    """What a task has written: where the rows of each pack are now."""

    table: str
    rows: list[tuple[str, TableRows]]


def merge_files(
    tasks: TaskRunner,
    store: Store,
    run: str,
    before: list[Pack],
    packs: list[Pack],
    *,
    compact: bool,
    caller: Run = PLAIN_RUN,
) -> list[Pack]:
    """Return the packs of the scan `run`, with their rows where they are after merging. `before`: the packs of the
    last finished scan; `compact`: merge small files, and what is still small then. `caller` is shown how much
    is merged. Raises StoreError, or what Spark raises."""
    names = (f"{run}-merged-{number}" for number in count())
    while planned := [
        MergeTask(store, table, next(names), rows) for table, rows in _merges(before, packs, compact=compact)
    ]:
        report = partial(_report, store, planned, caller)
        moved: dict[str, dict[str, TableRows]] = defaultdict(dict)
        for merged in tasks.run(merge, planned, report):
            for stem, rows in merged.rows:
                moved[stem][merged.table] = rows
        before = packs = [pack._replace(tables={**pack.tables, **moved[pack.stem]}) for pack in packs]
    return packs


def merge(task: MergeTask) -> Merged:
    """Run a task. Raises StoreError."""
    stem = f"{task.stem}-{token_hex(3)}"  # a task that Spark runs twice writes another file
    with table_writer(task.store, RESULTS[task.table], stem) as writer:
        for file, here in groupby((rows for _, rows in task.rows), lambda rows: rows.stem):
            ranges = [(rows.start, rows.number) for rows in here]
            writer.put(rows_in(task.store, table_file(task.table, file), ranges))
    start, found = 0, []
    for pack, rows in task.rows:
        size = writer.size * rows.number // max(1, writer.count)
        found.append((pack, TableRows(rows.number, size, stem, start)))
        start += rows.number
    return Merged(task.table, found)


def _merges(
    before: list[Pack], packs: list[Pack], *, compact: bool
) -> Iterator[tuple[str, list[tuple[str, TableRows]]]]:
    """Yield the rows that belong into one file, with their table."""
    for table in PACKED:
        old, new = _by_file(table, before), _by_file(table, packs)
        sizes = {stem: sum(rows.bytes for _, rows in here) for stem, here in new.items()}
        lost = [stem for stem in new if len(new[stem]) < len(old.get(stem, ()))]
        if not compact:
            yield from ((table, new[stem]) for stem in lost)
            continue
        chosen = {*lost, *(stem for stem in new if sizes[stem] < SMALL)}
        others = [stem for stem in new if stem not in chosen and sizes[stem] <= LARGE]
        if others and chosen and sum(map(sizes.__getitem__, chosen)) < SMALL:
            chosen.add(min(others, key=lambda stem: (sizes[stem], stem)))
        if lost or len(chosen) > 1:
            yield from (
                (table, each) for each in _divided(rows for stem in new if stem in chosen for rows in new[stem])
            )


def _by_file(table: str, packs: Iterable[Pack]) -> dict[str, list[tuple[str, TableRows]]]:
    """Return the rows of the packs' table by their file, in their order. The files are in the order of their groups, so
    that those of one broker are merged with each other first."""
    found: dict[str, list[tuple[str, TableRows]]] = defaultdict(list)
    for pack in sorted(packs, key=lambda pack: (pack.group, pack.stem)):
        if table in pack.tables:
            found[pack.tables[table].stem].append((pack.stem, pack.tables[table]))
    return {stem: sorted(here, key=lambda each: each[1].start) for stem, here in found.items()}


def _divided(every: Iterable[tuple[str, TableRows]]) -> list[list[tuple[str, TableRows]]]:
    """Divide rows among files, each with ENOUGH unless there is less."""
    found: list[list[tuple[str, TableRows]]] = [[]]
    size = 0
    for each in every:
        if size >= ENOUGH:
            found.append([])
            size = 0
        found[-1].append(each)
        size += each[1].bytes
    if size < ENOUGH and len(found) > 1:
        last = found.pop()
        found[-1] += last
    return found


def _report(store: Store, tasks: list[MergeTask], caller: Run) -> None:
    """Report the bytes of the tasks that have ended, but not in an object store, where listing files is slow."""
    if store.is_remote:
        return
    there = {table: {name.rpartition("-")[0] for name in store.list(table)} for table in {task.table for task in tasks}}
    done = sum(task.bytes for task in tasks if f".{task.stem}" in there[task.table])
    total = sum(task.bytes for task in tasks)
    caller.show(f"merging files, {100 * done // max(1, total)}%")
    caller.at(done, total)
