"""Finds which of the records that a replica lacks are lost, with the comparison of `kdump diff`: the headers of batches
do not show whether the log cleaner removed a record, because a later one has its key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import NamedTuple

from kdump.check.finding import ERROR, INFO
from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.questions.diff.differences import CLEANED, LEADER_EPOCH, REWRITTEN
from kdump.questions.diff.run import Diff, diff_copies
from kdump.questions.find_copies import copy_of
from kdump.spark.replica_differences import COMPACTED, MISSING
from kdump.spark.scan_answer import ReplicaDifference
from kdump.spark.scan_sources import ScanSource, place_of
from kdump.spark.task_runner import TaskRunner
from kdump.tables.mounted_paths import mount_for_task

AT_ONCE = 16
"""Number of partitions that one task compares."""
REMOVED = "the log cleaner has removed records of one replica; this is not damage"
NO_SIGN = "there is no sign of compaction"


class Replicas(NamedTuple):
    """The replicas of a partition, by their sources, with a number that identifies the answer."""

    number: int
    topic: str
    partition: int
    sources: tuple[ScanSource, ...]


class LostRange(NamedTuple):
    """Records first..last that some replicas lack, and why the log cleaner did not remove them. By source: how many
    records each has there, and the leader epoch of its batch at the first of them."""

    first: int
    last: int
    lost: int
    reason: str
    records: dict[str, int]
    epochs: dict[str, int | None]

    def overlaps(self, first: int, last: int) -> bool:
        return self.first <= last and first <= self.last


class MissingRecords(NamedTuple):
    """What the replicas of a partition lack: `lost`, apart from what the log cleaner removed. `other`: offsets first
    to last at which they differ in another way, or cannot be compared."""

    lost: list[LostRange]
    other: list[tuple[int, int]]

    def explains(self, first: int, last: int) -> bool:
        """Return True if nothing but the log cleaner makes the replicas differ at these offsets."""
        differs = any(low <= last and first <= high for low, high in self.other)
        return not differs and not any(lost.overlaps(first, last) for lost in self.lost)


def with_lost_records(
    differences: Iterable[ReplicaDifference], sources: Mapping[str, ScanSource], tasks: TaskRunner, options: Options
) -> Iterator[ReplicaDifference]:
    """Yield the differences, given in order. Where batches are missing or were rewritten, the replicas are compared
    record by record, in tasks: what is lost is an error, and what the log cleaner removed is not missing."""
    of_partitions = ([*rows] for _, rows in groupby(differences, key=lambda row: row[:3]))
    while parts := list(islice(of_partitions, AT_ONCE * tasks.parallelism)):
        replicas: list[Replicas] = []
        for number, rows in enumerate(parts):
            names = dict.fromkeys(name for row in rows if row.kind in (COMPACTED, MISSING) for name in row.sources)
            if names and all(name in sources for name in names):
                asked = tuple(sources[name] for name in names)
                replicas.append(Replicas(number, rows[0].topic, rows[0].partition, asked))
        jobs = [replicas[first : first + AT_ONCE] for first in range(0, len(replicas), AT_ONCE)]
        answers = dict(chain.from_iterable(tasks.run([partial(missing_records, job, options) for job in jobs])))
        for number, rows in enumerate(parts):
            missing = answers.get(number)
            yield from rows if missing is None else _judged(rows, missing)


def _judged(rows: list[ReplicaDifference], missing: MissingRecords) -> Iterator[ReplicaDifference]:
    is_compacted = any(row.kind == COMPACTED for row in rows)
    known: list[tuple[int, int]] = []
    for row in rows:
        if row.kind == MISSING and missing.explains(row.firstOffset, row.lastOffset):
            if not is_compacted:
                yield row._replace(kind=COMPACTED, severity=INFO, lost=None, explanation=REMOVED)
            is_compacted = True
        elif row.kind == MISSING and any(lost.overlaps(row.firstOffset, row.lastOffset) for lost in missing.lost):
            known.append((row.firstOffset, row.lastOffset))
            yield row._replace(severity=ERROR)
        else:
            yield row
    [of] = [row for row in rows if row.kind in (COMPACTED, MISSING)][:1]
    for lost in missing.lost:
        if not any(lost.overlaps(*offsets) for offsets in known):
            yield _lost(of, lost)


def _lost(of: ReplicaDifference, lost: LostRange) -> ReplicaDifference:
    """Return the row of records that are lost. `of`: another one of the partition."""
    which = [number for number, source in enumerate(of.sources) if source in lost.records]
    names = [
        of.sources[number] if of.brokers[number] is None else f"broker {of.brokers[number]}"
        for number in which
        if not lost.records[of.sources[number]]
    ]
    records = count_text(lost.lost, "record")
    return of._replace(
        kind=MISSING,
        severity=ERROR,
        firstOffset=lost.first,
        lastOffset=lost.last,
        brokers=[of.brokers[number] for number in which],
        sources=[of.sources[number] for number in which],
        leaderEpochs=[lost.epochs[of.sources[number]] for number in which],
        records=[lost.records[of.sources[number]] for number in which],
        lost=lost.lost,
        lastOffsets=[of.lastOffsets[number] for number in which],
        explanation=f"{', '.join(names)} {'lacks' if len(names) == 1 else 'lack'} {records}: {lost.reason}",
    )


def missing_records(replicas: Sequence[Replicas], options: Options) -> list[tuple[int, MissingRecords | None]]:
    """Return what the replicas of each partition lack, by its number; None if they cannot be compared."""
    mount_for_task(source.path for each in replicas for source in each.sources)
    surroundings = Surroundings(options)
    return [(each.number, _of_partition(each, options, surroundings)) for each in replicas]


def _of_partition(replicas: Replicas, options: Options, surroundings: Surroundings) -> MissingRecords | None:
    key = replicas.topic, replicas.partition
    copies = []
    try:
        for source in replicas.sources:
            place = place_of(source)
            for each in place.partitions if isinstance(place, LogDirectory) else [place]:
                if isinstance(each, PartitionDirectory) and (each.topic, each.partition) == key and not each.state:
                    copies.append(copy_of(each, surroundings.of_partition(each)))
    except SourceError:
        return None
    if len(copies) != len(replicas.sources):
        return None
    made = diff_copies(copies, options)
    if not made.is_read or any(copy.lacks for copy in made.copies):
        return None
    return _missing(made, [source.path for source in replicas.sources])


def _missing(made: Diff, names: list[str]) -> MissingRecords:
    lost: dict[tuple[int, int], LostRange] = {}
    other: list[tuple[int, int]] = []
    for pair, comparison in made.pairs.items():
        for difference in comparison.differences:
            first, last = difference.first, difference.last
            if difference.kind == MISSING and difference.lacking is not None:
                lacks, has = names[pair[difference.lacking]], names[pair[1 - difference.lacking]]
                found = lost.setdefault(
                    (first, last), LostRange(first, last, difference.records, difference.reason or NO_SIGN, {}, {})
                )
                batch = comparison.batches_at.get(first, (None, None))[1 - difference.lacking]
                found.records.update({lacks: 0, has: difference.records})
                found.epochs.update({lacks: None, has: None if batch is None else batch.leaderEpoch})
            elif difference.kind not in (CLEANED, REWRITTEN, LEADER_EPOCH):
                other.append((first, last))
    return MissingRecords(sorted(lost.values(), key=lambda each: each[:2]), other)
