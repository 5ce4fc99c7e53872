"""How long a broker takes to recover its logs, and when each of them is done: what is on the disk, what the disk
delivers, and what follows from them (kdump.questions.restart_plan.recovery.recovery_model).

Source: num.recovery.threads.per.data.dir is 2 by default since 4.0 (KIP-1030), before 1.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.source import open_source
from kdump.questions.restart_plan.recovery.read_speed import ASSUMED, GIVEN, MAX_TRIED, ReadSpeed, cached_bytes, measure
from kdump.questions.restart_plan.recovery.recovery_model import Rates, device_of, extremes, simulate
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork

DEFAULT_THREADS, OLD_THREADS = 2, 1
PROPERTIES = "server.properties"
"""Defaults since Kafka 4.0, and before."""
ALTERNATIVES = (1, 2, 4, 8, 16)
"""Numbers of threads for which a time is given, too."""
MAX_ASKED = 2000
"""Maximum number of segments of which it is asked how much of them is in the page cache."""
MUCH = 64 << 20
"""Bytes from which on a disk's speed is measured: below, other things take longer."""


@answer("recoveryLog")
class RecoveryLog(NamedTuple):
    """A log that is loaded, in the order of loading."""

    topic: Annotated[PathText, Doc("topic in the directory's name")]
    partition: Annotated[int, Doc("partition in the directory's name")]
    path: Annotated[PathText, Doc("partition directory")]
    source: Annotated[PathText, Doc("log directory")]
    number: Annotated[
        int | None, Doc("its place in the order in which the broker loads the directory's logs, from 1; null: unknown")
    ]
    segments: Annotated[int, Doc("number of segments")]
    recovered: Annotated[int, Doc("number of segments that recovery reads and checks")]
    bytes: Annotated[int, Doc("bytes that are read for it", BYTES)]
    startsAfter: Annotated[float | None, Doc("estimated seconds from the beginning until it is loaded", "s")]
    endsAfter: Annotated[float | None, Doc("estimated seconds from the beginning until it has been loaded", "s")]


class ThreadsTime(NamedTuple):
    """The time that another number of threads would take."""

    threads: Annotated[int, Doc("num.recovery.threads.per.data.dir")]
    seconds: Annotated[float, Doc("estimated time until all logs are loaded", "s")]


@answer("recoveryTime")
class RecoveryTime(NamedTuple):
    """How long the recovery of all log directories takes."""

    directories: Annotated[list[PathText], Doc("log directories")]
    unclean: Annotated[list[PathText], Doc("those without .kafka_cleanshutdown, whose logs are recovered")]
    logs: Annotated[int, Doc("number of logs that are loaded")]
    recoveredLogs: Annotated[int, Doc("number of logs with a segment that is recovered")]
    segments: Annotated[int, Doc("number of segments that are recovered, and whose indexes are rebuilt")]
    bytes: Annotated[int, Doc("bytes that are read for that", BYTES)]
    cachedBytes: Annotated[int, Doc("those of them that are in this machine's page cache", BYTES)]
    batches: Annotated[int, Doc("estimated number of batches in them, from the beginning of some segments")]
    threads: Annotated[int, Doc("num.recovery.threads.per.data.dir: recovery threads of each log directory")]
    threadsFrom: Annotated[
        str, Doc("option, metadata (the broker's or the cluster's dynamic config), server.properties or default")
    ]
    processors: Annotated[int | None, Doc("number of this machine's processors; null for disks in a bundle")]
    readSpeed: Annotated[int, Doc("what the disk delivers", "bytes/s")]
    readSpeedFrom: Annotated[str, Doc("measured, option or assumed")]
    seconds: Annotated[float, Doc("estimated time until all logs are loaded", "s")]
    secondsLeast: Annotated[float, Doc("lower end of the range of the estimate", "s")]
    secondsMost: Annotated[float, Doc("upper end of the range of the estimate", "s")]
    otherThreads: Annotated[
        list[ThreadsTime], Doc("the same with other numbers of threads: each an object with threads and seconds")
    ]
    unread: Annotated[list[PathText], Doc("what could not be listed or read; the estimate lacks it")]


@dataclass(frozen=True)
class RecoveryQuery:
    """What is not on the disk. `threads`: None if not given; `default_threads`: that of the release; `read_speed`:
    bytes per second, None to measure it."""

    threads: int | None = None
    threads_in_metadata: int | None = None
    threads_in_properties: int | None = None
    default_threads: int = DEFAULT_THREADS
    read_speed: int | None = None

    @property
    def effective_threads(self) -> tuple[int, str]:
        if self.threads is not None:
            return self.threads, GIVEN
        if self.threads_in_metadata is not None:
            return self.threads_in_metadata, "metadata"
        if self.threads_in_properties is not None:
            return self.threads_in_properties, PROPERTIES
        return self.default_threads, "default"


def estimate(works: Sequence[DirectoryWork], query: RecoveryQuery) -> tuple[RecoveryTime, list[RecoveryLog]]:
    """Return the time for all directories of a broker, and each of their logs."""
    total = sum(work.bytes for work in works)
    largest = list(_largest(works))
    cached = int(total * _cached_share(works))
    threads, threads_from = query.effective_threads
    streams = threads * len({device_of(work.path, number) for number, work in enumerate(works)})
    speed = _read_speed(query, largest if total - cached >= MUCH else [], streams)
    rates = Rates(
        speed.perSecond, mean_batch_size(largest), (total - cached) / total if total else 0.0, _processors(works)
    )
    span, times = simulate(works, threads, rates)
    least, most = (simulate(works, threads, each)[0] for each in extremes(rates, is_known=speed.source != ASSUMED))
    logs = [
        _recovery_log(work, log, *pair)
        for work, pairs in zip(works, times, strict=True)
        for log, pair in zip(work.logs, pairs, strict=True)
    ]
    return RecoveryTime(
        [work.path for work in works],
        [work.path for work in works if not work.clean],
        sum(len(work.logs) for work in works),
        sum(len(work.recovered) for work in works),
        sum(len(log.bases) for work in works for log in work.logs),
        total,
        cached,
        total // rates.batch_size,
        threads,
        threads_from,
        rates.processors,
        speed.perSecond,
        speed.source,
        round(span, 1),
        round(least, 1),
        round(most, 1),
        [ThreadsTime(count, round(simulate(works, count, rates)[0], 1)) for count in ALTERNATIVES if count != threads],
        [text for work in works for text in work.unread],
    ), logs


def batch_size_of(works: Sequence[DirectoryWork]) -> int:
    """Return the mean size of batches in the segments that are recovered, in bytes."""
    return mean_batch_size(_largest(works))


def _read_speed(query: RecoveryQuery, paths: list[str], streams: int) -> ReadSpeed:
    return measure(paths, streams) if query.read_speed is None else ReadSpeed(query.read_speed, GIVEN)


def _processors(works: Sequence[DirectoryWork]) -> int | None:
    """Return the number of processors of the machine with the disks; None for those in a bundle."""
    if any(file_system.tree_at(work.path) is not None for work in works):
        return None
    return os.cpu_count()


def _largest(works: Iterable[DirectoryWork]) -> Iterator[str]:
    """Yield segments that are recovered, the largest of each log, of the logs with most bytes first."""
    logs = heapq.nlargest(MAX_TRIED, (log for work in works for log in work.recovered), key=lambda log: log.bytes)
    for log in logs:
        number = max(range(len(log.sizes)), key=lambda each: log.sizes[each])
        yield f"{log.segment(number)}.log"


def _cached_share(works: Sequence[DirectoryWork]) -> float:
    """Return the share of what is read that is in the page cache, from at most MAX_ASKED of the segments."""
    segments = [(log, number) for work in works for log in work.logs for number in range(len(log.bases))]
    step = -(-len(segments) // MAX_ASKED) or 1
    size = cached = 0
    for log, number in segments[::step]:
        size += log.sizes[number]
        cached += min(log.sizes[number], cached_bytes(f"{log.segment(number)}.log")) if log.sizes[number] else 0
    return cached / size if size else 0.0


def _recovery_log(work: DirectoryWork, log: LogWork, start: float, end: float) -> RecoveryLog:
    number = log.position + 1 if work.inOrder else None
    times = (round(start, 1), round(end, 1)) if work.inOrder else (None, None)
    counts = (log.segments, len(log.bases), log.bytes)
    return RecoveryLog(log.topic, log.partition, log.path, work.path, number, *counts, *times)


SAMPLES = 32
SAMPLE_BYTES = 256 << 10
HEADER = 17
"""Bytes up to and with magic, in every format."""
DEFAULT = 16 << 10
"""Bytes of a batch if none can be read: batch.size of a producer."""


def mean_batch_size(paths: Iterable[str]) -> int:
    """Return the mean size in bytes of the batches at the beginning of SAMPLES files."""
    size = count = 0
    for number, path in enumerate(paths):
        if number >= SAMPLES:
            break
        try:
            source = open_source(path)
        except SourceError:
            continue
        try:
            data = source.read_at(0, SAMPLE_BYTES)
        except SourceError:
            continue
        finally:
            source.close()
        found = list(_batch_sizes(data))
        size, count = size + sum(found), count + len(found)
    return size // count if count else DEFAULT


def _batch_sizes(data: bytes) -> Iterable[int]:
    """Yield the sizes of batches as their headers state them, up to the first that is impossible."""
    position = 0
    while position + HEADER <= len(data):
        length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if length < HEADER - 12 or data[position + HEADER - 1] > 2:
            return
        yield 12 + length
        position += 12 + length
