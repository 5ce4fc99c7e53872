"""Files of the result are never changed: one with rows that no longer hold is written again without them, together with
others like it. --compact puts all small files of a table together, as does a scan after which there are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from secrets import token_hex
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kdump.io.run import PLAIN_RUN, Run
from kdump.spark.delta_tables import TableFile, batches_of
from kdump.spark.store import Store
from kdump.spark.task_runner import TaskRunner
from kdump.spark.unit_writer import table_writer
from kdump.spark.units import ENDING, OWNER, WRITTEN, Files

SMALL = 64 * 1024 * 1024
"""Size of a file in bytes below which it is put together with others."""
MANY = 64
"""Number of small files of a table from which on they are put together without --compact, too."""


class RewriteTask(NamedTuple):
    """What a task does: files of a table that it writes to one, if any of them has rows of the units that are listed
    in the files `dead` of the store (then only those), or all with `merge`. `new`: names of files of this scan, of
    which no row is dead."""

    store: Store
    table: str
    name: str
    files: list[TableFile]
    new: frozenset[str]
    dead: tuple[str, ...]
    merge: bool


class Rewritten(NamedTuple):
    """The files that a task has replaced, and the one with what is left of them, if anything is."""

    table: str
    old: list[TableFile]
    new: TableFile | None


def rewrite_files(
    tasks: TaskRunner,
    store: Store,
    scan: str,
    before: Files,
    added: Files,
    dead: Sequence[str],
    *,
    compact: bool,
    caller: Run = PLAIN_RUN,
) -> Files:
    """Return the files of the result, given those of the scan before, those that were added, and the names of files
    that list whose rows are not part of it. Raises StoreError, or what Spark raises."""
    names = (f"{scan}-merged-{number}" for number in count())
    planned = []
    for table in WRITTEN:
        old, new = before.get(table, []), added.get(table, [])
        every = [*old, *new]
        merge = compact or sum(file.size < SMALL for file in every) >= MANY
        chosen = every if merge else old if dead else []
        few = [file for file in chosen if file.size < SMALL]
        bins = [*_divided(few), *([file] for file in chosen if file.size >= SMALL and dead)]
        planned += [
            RewriteTask(
                store,
                table,
                next(names),
                files,
                frozenset(file.name for file in new),
                tuple(dead),
                merge and len(files) > 1,
            )
            for files in bins
            if dead or len(files) > 1
        ]
    result: dict[str, dict[str, TableFile]] = {
        table: {file.name: file for file in (*before.get(table, ()), *added.get(table, ()))} for table in WRITTEN
    }
    report = partial(caller.show, f"writing {len(planned)} files again")
    done = tasks.run([partial(rewrite, task) for task in planned], report)
    for rewritten in done:
        for file in rewritten.old:
            del result[rewritten.table][file.name]
        if rewritten.new is not None:
            result[rewritten.table][rewritten.new.name] = rewritten.new
    return {table: sorted(files.values()) for table, files in result.items()}


def rewrite(task: RewriteTask) -> Rewritten:
    """Run a task. Raises StoreError."""
    owners = {owner for name in task.dead for owner in (task.store.read(name) or b"").decode().split()}
    dead = pa.array(sorted(owners), pa.string())
    chosen = task.files if task.merge else [file for file in task.files if _has_any(task, file, dead)]
    if not chosen:
        return Rewritten(task.table, [], None)
    name = f"{task.name}-{token_hex(3)}{ENDING}"  # a task that Spark runs twice writes another file
    with table_writer(task.store, WRITTEN[task.table], name) as writer:
        for file in chosen:
            for batch in batches_of(task.store, task.table, file.name):
                left = batch if file.name in task.new else batch.filter(pc.invert(pc.is_in(batch[OWNER.name], dead)))
                writer.hold_owned(left)
    if not writer.count:
        task.store.remove(f"{task.table}/{name}")
        return Rewritten(task.table, chosen, None)
    return Rewritten(task.table, chosen, TableFile(name, writer.size, writer.count))


def _has_any(task: RewriteTask, file: TableFile, dead: pa.Array) -> bool:
    return file.name not in task.new and any(
        pc.any(pc.is_in(batch[OWNER.name], dead)).as_py()
        for batch in batches_of(task.store, task.table, file.name, [OWNER.name])
    )


def _divided(every: Iterable[TableFile]) -> list[list[TableFile]]:
    """Divide files among tasks, each with at least SMALL bytes unless there is less."""
    bins: list[list[TableFile]] = []
    size = SMALL
    for file in sorted(every):
        if size >= SMALL:
            bins.append([])
            size = 0
        bins[-1].append(file)
        size += file.size
    return bins
