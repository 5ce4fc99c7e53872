"""The scan pipeline: finds the sources of a fleet, plans each group of them, and reads what has changed, all in tasks.
What this process keeps of it does not grow with partitions or segments. kdump.spark.summary then derives from the
tables what no single file shows.

Files of the result are never changed: one with rows that no longer hold is written again without them, together with
others like it. --compact puts all small files of a table together, as does a scan after which there are many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from secrets import token_hex
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kdump.check.options import Options
from kdump.io.fault_tolerant import careful_source
from kdump.io.file_system import add_files
from kdump.io.run import LISTENERS, PLAIN_RUN, Run
from kdump.spark.delta_tables import (
    KEEP,
    LAYOUT,
    LAYOUT_NAME,
    FinishedScan,
    TableFile,
    batches_of,
    commit,
    files_of,
    finish,
    finished_scans,
    latest,
    sweep,
)
from kdump.spark.read_chunk import ChunkResult, ScanSetup, read_chunk_file
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.scan_plan import RUNS, GroupTask, plan_group, put_dead
from kdump.spark.scan_sources import Sources, find_remote, find_sources, merged, named, paths_of
from kdump.spark.store import Store
from kdump.spark.task_runner import TaskRunner
from kdump.spark.unit_sums import UnitSums
from kdump.spark.unit_writer import table_writer
from kdump.spark.units import ENDING, OWNER, WRITTEN, Files, entries, file_schema, new_run
from kdump.tables.declarations import RECORDS, UNITS
from kdump.tables.read_options import SPLIT, ReadOptions

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


CHUNKS_PER_CORE = 4
"""Number of chunks for each core that a plan aims at, so that the cores finish at about the same time."""


@dataclass
class ScanResult:
    """Outcome of a scan: its sources, the files of the tables that its tasks write, the versions of all tables with
    these, the numbers of units that were read, unchanged (`kept`) or no longer there (`gone`), and the log directories
    with the newest copy of a cluster's metadata (`metadata`). `before`: the last finished scan; `sums`: what the
    entries of the units add up to, once that was computed."""

    sources: Sources
    paths: tuple[str, ...]
    files: Files
    versions: dict[str, Any]
    before: FinishedScan | None
    run: str
    """Name of the scan."""
    read: int = 0
    continued: int = 0
    """How many of the units in `read` were read from a later segment than the first."""
    kept: int = 0
    gone: int = 0
    metadata: frozenset[str] = frozenset()
    sums: UnitSums | None = None

    @property
    def has_changed(self) -> bool:
        """Whether it is something else than the last finished scan."""
        return self.before is None or not self.versions.items() <= self.before.versions.items()

    @property
    def result_run(self) -> str:
        """Name of the scan that the result is that of: an earlier one if nothing has changed."""
        return self.run if self.before is None or self.has_changed else self.before.run

    def names(self, table: str) -> list[str]:
        """Return the names of the files of a table."""
        return [file.name for file in self.files.get(table, ())]


def scan(tasks: TaskRunner, query: ScanQuery, store: Store) -> ScanResult:
    """Read what has changed, and write its rows, for `finish_scan`. `at` of the run is called with the bytes read so
    far and the total, `show` with what is done with them if that is not reading. Raises StoreError, or what Spark
    raises."""
    run, given = query.run, tuple(query.paths)
    check = Options.as_of(run, open_source=careful_source, **LISTENERS)
    parallelism = tasks.parallelism
    reading = ReadOptions(RECORDS, given, limits=run.limits, split_bytes=query.split_size or SPLIT)
    paths = paths_of(given)
    unlisted: list[tuple[str, str]] = []
    if query.remote is not None:
        ((objects, unlisted),) = tasks.run([partial(find_remote, paths, query.remote)])
        add_files(objects, query.remote.url)
    found_sources = tasks.run([partial(find_sources, path, check, dict(query.brokers)) for path in paths])
    sources = named(merged(sorted(found_sources, key=lambda each: paths.index(each.path))), tasks)
    sources.unreadable += unlisted
    store.begin([*(source.path for source in sources.sources), *([query.remote.url] if query.remote else ())])
    scans = finished_scans(store)
    before = scans[-1] if scans else None
    files_before = {} if query.from_scratch else _files_before(store, before)
    name = new_run()
    since = name[:-1] if query.from_scratch else before.run if before else ""
    setup = ScanSetup(store, check, reading, query.of_disks, query.has_records, name, since)
    plans = tasks.run([partial(plan_group, group) for group in _groups(setup, sources, files_before, parallelism)])
    chunks = sorted((chunk for plan in plans for chunk in plan.chunks), key=lambda chunk: -chunk.size)
    sizes = {chunk.stem: chunk.size for chunk in chunks}
    total = sum(sizes.values())
    results: list[ChunkResult] = tasks.run(
        [partial(read_chunk_file, setup, chunk) for chunk in chunks], lambda: run.at(_done(store, sizes), total)
    )
    results += [plan.written for plan in plans if plan.written is not None]
    added = {table: [file for result in results for file in result.files.get(table, ())] for table in WRITTEN}
    restarted = put_dead(setup, "restarted", [key for result in results for key in result.restarted])
    dead = [name for name in (*(plan.dead for plan in plans), restarted) if name is not None]
    files = rewrite_files(tasks, store, name, files_before, added, dead, compact=query.compact, caller=run)
    versions = {} if before is None else dict(before.versions)
    for table, own in files.items():
        is_same = table in versions and own == files_before.get(table) and latest(store, table) == versions[table]
        if not is_same and (own or table in versions):
            versions[table] = commit(store, table, file_schema(WRITTEN[table]), own)
    store.remove(RUNS)
    return ScanResult(
        sources,
        given,
        files,
        versions,
        before,
        name,
        read=sum(result.read for result in results),
        continued=sum(result.continued for result in results),
        kept=sum(plan.kept for plan in plans) + sum(result.copied for result in results),
        gone=sum(plan.gone for plan in plans),
        metadata=sources.newest({path: age for plan in plans for path, age in plan.metadata.items()}),
    )


def _files_before(store: Store, before: FinishedScan | None) -> Files:
    """Return the files of the last finished scan; none if one is missing, so that everything is read again. Raises
    StoreError."""
    if before is None:
        return {}
    by_table = {table: files_of(store, table, before.versions.get(table)) for table in WRITTEN}
    is_complete = all({file.name for file in files} <= {*store.list(table)} for table, files in by_table.items())
    return by_table if is_complete else {}


def finish_scan(store: Store, done: ScanResult, keep: int = KEEP) -> None:
    """Make what a scan has written the result, with whatever was derived from it. `keep`: for how many ms earlier scans
    can still be read. Raises StoreError."""
    if not done.has_changed:
        sweep(store, finished_scans(store))  # what a killed scan has left
        return
    versions = {**done.versions, LAYOUT_NAME: LAYOUT}
    now = int(time.time() * 1000)
    finish(store, FinishedScan(0, done.run, now, [*done.paths], done.read, done.kept, done.gone, versions), keep)


def _groups(setup: ScanSetup, sources: Sources, files: Files, parallelism: int) -> list[GroupTask]:
    """Return the groups to plan: those of the sources, the paths that could not be read, and the groups of the scan
    before that are no longer there."""
    groups = sources.groups()
    earlier = tuple(file.name for file in files.get(UNITS.name, ()))
    old = {entry["group"] for entry in entries(setup.store, earlier, ["group"])}
    names = sorted({*groups, *old, *([UNREADABLE] if sources.unreadable else [])})
    chunks = max(1, CHUNKS_PER_CORE * parallelism // max(1, len(groups)))
    return [
        GroupTask(
            setup,
            name,
            tuple(groups.get(name, ())),
            tuple(sources.unreadable) if name == UNREADABLE else (),
            earlier,
            number,
            chunks,
        )
        for number, name in enumerate(names)
    ]


UNREADABLE = "unreadable"
"""Group of the paths that could not be read."""


def _done(store: Store, sizes: dict[str, int]) -> int:
    """Return the bytes of the chunks that have been read; 0 if the result is in an object store, where listing files is
    slow."""
    names = [] if store.is_remote else store.list(UNITS.name)
    stems = {name.rpartition("-")[0].rpartition("-")[0] for name in names if not name.startswith(".")}
    return sum(sizes.get(stem, 0) for stem in stems)
