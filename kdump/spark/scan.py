"""The scan pipeline: finds the sources of a fleet, plans each group of them, and reads what has changed, all in tasks.
What this process keeps of it does not grow with partitions or segments. kdump.spark.summary then derives from the
tables what no single file shows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from kdump.check.options import Options
from kdump.log.fault_tolerant import careful_source
from kdump.log.run import PLAIN_RUN, Limits, Run
from kdump.spark.data_source_options import SPLIT, ReadOptions
from kdump.spark.merged_files import merge_files
from kdump.spark.packs import UNITS, Pack, all_packs, commit, committed, finish_commit, new_run, refuse_old
from kdump.spark.read_chunk import ChunkResult, ChunkTask, read_chunk_file
from kdump.spark.scan_plan import RUNS, GroupTask, plan_group
from kdump.spark.scan_setup import ScanSetup, task_read_limits
from kdump.spark.scan_sources import FindTask, Sources, find_sources, merged, named, paths_of
from kdump.spark.store import Store
from kdump.spark.tables import RECORDS
from kdump.spark.task_runner import TaskRunner
from kdump.spark.unit_sums import UnitSums

ALL = (
    *("segments", "batches", "producers", "findings", "index_entries", "producer_states", "checkpoints"),
    *("group_offsets", "transactions", "metadata_records"),
)
"""Tables that a scan writes by default; records have to be requested."""
CHUNKS_PER_CORE = 4
"""Number of chunks for each core that a plan aims at, so that the cores finish at about the same time."""


@dataclass(frozen=True)
class ScanOptions:
    """What a scan reads and writes. Sizes in bytes, times in ms."""

    paths: tuple[str, ...]
    tables: tuple[str, ...] = ALL
    records: bool = False
    brokers: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    transaction_timeout: int = 900_000
    max_message_bytes: int | None = None
    split_bytes: int = SPLIT
    from_scratch: bool = False
    """Read everything again, regardless of earlier scans."""
    compact: bool = False
    """Put small files together."""


@dataclass
class ScanResult:
    """Outcome of a scan: its sources, its packs, the numbers of units that were read, unchanged (`kept`) or no longer
    there (`gone`), and the log directories with the newest copy of a cluster's metadata (`metadata`). `sums`: what the
    entries of the units add up to, once that was computed."""

    sources: Sources
    packs: list[Pack]
    run: str
    """Name of the scan."""
    read: int = 0
    continued: int = 0
    """How many of the units in `read` were read from a later segment than the first."""
    kept: int = 0
    gone: int = 0
    metadata: frozenset[str] = frozenset()
    sums: UnitSums | None = None


def scan(tasks: TaskRunner, options: ScanOptions, store: Store, run: Run = PLAIN_RUN) -> ScanResult:
    """Read what has changed, and write its rows. `run.at` is called with the bytes read so far
    and the total, `run.show` with what is done with them if that is not reading. Raises StoreError, or what Spark
    raises."""
    check = Options(
        limits=options.limits,
        transaction_timeout=options.transaction_timeout,
        max_message_bytes=options.max_message_bytes,
        now=int(time.time() * 1000),
        open_source=careful_source,
    )
    setup = ScanSetup(
        store,
        check,
        ReadOptions(RECORDS, options.paths, limits=options.limits, split_bytes=options.split_bytes),
        options.tables,
        options.records,
        new_run(),
        options.from_scratch,
        options.compact,
        task_read_limits(tasks.parallelism),
    )
    paths = paths_of(options.paths)
    found = tasks.run(find_sources, [FindTask(path, check, options.brokers, setup.limits) for path in paths])
    sources = named(merged(sorted(found, key=lambda each: paths.index(each.path))), tasks, setup.limits)
    store.begin([source.path for source in sources.sources])
    refuse_old(store)
    before = committed(store)
    finish_commit(store, before)
    plans = tasks.run(plan_group, _groups(setup, sources, tasks.parallelism))
    chunks = sorted((chunk for plan in plans for chunk in plan.chunks), key=lambda chunk: -chunk.size)
    sizes = {chunk.stem: chunk.size for chunk in chunks}
    total = sum(sizes.values())
    results: list[ChunkResult] = tasks.run(
        read_chunk_file,
        [ChunkTask(setup, chunk) for chunk in chunks],
        lambda: run.at(_done(store, sizes), total),
    )
    results += [plan.written for plan in plans if plan.written is not None]
    packs = [pack for plan in plans for pack in plan.packs] + [result.pack for result in results]
    packs = merge_files(tasks, store, setup.run, before, packs, compact=options.compact, caller=run)
    commit(store, packs)
    store.remove(RUNS)
    return ScanResult(
        sources,
        sorted(packs),
        setup.run,
        read=sum(result.read for result in results),
        continued=sum(result.continued for result in results),
        kept=sum(plan.kept for plan in plans),
        gone=sum(plan.gone for plan in plans),
        metadata=sources.newest({path: age for plan in plans for path, age in plan.metadata.items()}),
    )


def _groups(setup: ScanSetup, sources: Sources, parallelism: int) -> list[GroupTask]:
    """Return the groups to plan: those of the sources, the paths that could not be read, and the groups of earlier
    scans that are no longer there."""
    packs: dict[str, list[Pack]] = {}
    for pack in all_packs(setup.store):
        packs.setdefault(pack.group, []).append(pack)
    groups = sources.groups()
    names = sorted({*groups, *packs, *([UNREADABLE] if sources.unreadable else [])})
    chunks = max(1, CHUNKS_PER_CORE * parallelism // max(1, len(groups)))
    return [
        GroupTask(
            setup,
            name,
            tuple(groups.get(name, ())),
            tuple(sources.unreadable) if name == UNREADABLE else (),
            tuple(packs.get(name, ())),
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
    names = [] if store.is_remote else store.list(UNITS)
    stems = {name.rpartition("-")[0].rpartition("-")[0] for name in names if not name.startswith(".")}
    return sum(sizes.get(stem, 0) for stem in stems)
