"""How long a broker takes to recover its logs, and when each of them is done: what is on the disk, what the disk
delivers, and what follows from them.

A log directory has a pool of num.recovery.threads.per.data.dir threads, which take its logs in order; all directories
are loaded in parallel. A thread reads a batch, verifies its checksum and adds it to the indexes, while the kernel reads
ahead; after each segment, it writes a producer snapshot, which it flushes to the disk. The costs were fitted to real
recoveries (tools/recovery_trials.py, docs/restart-plan.md).

Source: num.recovery.threads.per.data.dir is 2 by default since 4.0 (KIP-1030), before 1; kafka.log.LogManager.loadLogs;
LogSegment.recover; LogLoader.recoverSegment; UnifiedLog.rebuildProducerState."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, Doc, PathText, answer
from kdump.cluster.disks import Disks
from kdump.cluster.release_evidence import disk_release
from kdump.format.kafka_release import NEWEST, KafkaRelease, parse_release
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.mounted_paths import takes_paths
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import open_source
from kdump.kafka.server_properties import ServerProperties
from kdump.kafka.small_files import properties
from kdump.log.log_directory import META
from kdump.log.paths import target
from kdump.questions.restart_plan.recovery.read_speed import ASSUMED, GIVEN, MAX_TRIED, ReadSpeed, cached_bytes, measure
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork, recovery_works
from kdump.state.metadata_image import MetadataImage

PER_BYTE = 1.25e-9
"""Seconds of a thread per byte: reading from the page cache and computing the checksum."""
PER_BATCH = 1.75e-6
PER_HEADER = 1.5e-6
"""Seconds of a thread per batch of which only the header is read, from the page cache."""
SEEK = 55e-6
"""Seconds until the disk delivers one page. Where pages between headers are skipped, the kernel reads none ahead."""
PER_SEGMENT = 0.012
"""Seconds of a thread per recovered segment: indexes are enlarged, mapped and trimmed, a dozen lines are logged."""
PER_FLUSH = 0.001
"""Seconds until the producer snapshot of a recovered segment has been flushed to the disk."""
SHARED_FLUSH = 0.012
"""Seconds more, if several threads flush: ext4 lets one wait for those of others (max_batch_time of its journal)."""
PER_LOG = 0.002
"""Seconds of a thread per log, whether it is recovered or not."""
WARM_UP = 0.55
"""Seconds until the JVM has compiled what recovery executes."""
OVERLAP = 0.1
"""Part of the shorter of reading and computing that does not run in parallel with the longer."""
PROCESSOR_SHARE = 1.3
"""Seconds of all processors per second that a recovery thread computes: the JVM also collects garbage and compiles."""
PAGE = 4096
SPEED_FACTOR = 1.3
"""By how much the speed of a disk may differ from what was measured or given."""
SLOW_DISK, FAST_DISK = 50_000_000, 500_000_000
"""Bytes per second between which a disk is expected of which nothing is known."""
COST_FACTOR = 1.5
"""By how much the costs of another machine may differ from those that were fitted."""
FLUSH_FACTOR = 3.0
"""The same for waiting until the disk has written a snapshot, or delivered a page."""


class Rates(NamedTuple):
    """What the time depends on besides bytes and segments. `uncached`: share of the bytes that the disk delivers.
    `processors`: None if unknown. `cost`, `flush`: factors of what threads compute, and of how long they wait for a
    page or a flush."""

    read_speed: int
    batch_size: int
    uncached: float
    processors: int | None = None
    cost: float = 1.0
    flush: float = 1.0


def extremes(rates: Rates, *, is_known: bool) -> tuple[Rates, Rates]:
    """Return the rates with which recovery takes least and most time. `is_known`: whether the read speed is."""
    fast = int(rates.read_speed * SPEED_FACTOR) if is_known else max(rates.read_speed, FAST_DISK)
    slow = int(rates.read_speed / SPEED_FACTOR) if is_known else min(rates.read_speed, SLOW_DISK)
    return (
        rates._replace(read_speed=fast, cost=rates.cost / COST_FACTOR, flush=rates.flush / FLUSH_FACTOR),
        rates._replace(read_speed=max(1, slow), cost=rates.cost * COST_FACTOR, flush=rates.flush * FLUSH_FACTOR),
    )


Times = list[tuple[float, float]]
"""When each log of a directory is begun and done, in seconds after the first."""


def simulate(works: Sequence[DirectoryWork], threads: int, rates: Rates) -> tuple[float, list[Times]]:
    """Return the seconds until all logs are loaded, and for each directory the times of its logs. Directories on one
    device share what it delivers, and all threads share the processors."""
    devices = [device_of(work.path, number) for number, work in enumerate(works)]
    writers: dict[int, int] = {}
    for work, device in zip(works, devices, strict=True):
        writers[device] = writers.get(device, 0) + min(threads, len(work.recovered))
    schedules = [
        _schedule(work, threads, rates, PER_FLUSH + SHARED_FLUSH * (writers[device] > 1))
        for work, device in zip(works, devices, strict=True)
    ]
    spans: dict[int, float] = {}
    delivered: dict[int, float] = {}
    for work, device, (_, span) in zip(works, devices, schedules, strict=True):
        spans[device] = max(spans.get(device, 0.0), span)
        busy_disk = sum(reading(log, rates) + seeking(log, rates) / threads for log in work.logs)
        delivered[device] = delivered.get(device, 0.0) + busy_disk
    longest = max(spans.values(), default=0.0)
    computed = sum(computing(log, rates) for work in works for log in work.logs)
    busy = computed * PROCESSOR_SHARE / rates.processors / longest if rates.processors and longest else 0.0
    factors = {device: max(1.0, busy, delivered[device] / span) if span else 1.0 for device, span in spans.items()}
    scaled = [
        [(start * factors[device], end * factors[device]) for start, end in times]
        for device, (times, _) in zip(devices, schedules, strict=True)
    ]
    return max((span * factors[device] for device, span in spans.items()), default=0.0), scaled


def _schedule(work: DirectoryWork, threads: int, rates: Rates, flush: float) -> tuple[Times, float]:
    """Return when a directory's threads begin and end each log, and when they have ended all."""
    free = [WARM_UP * rates.cost if work.logs else 0.0] * max(1, min(threads, len(work.logs)))
    times = []
    for log in work.logs:
        start = heapq.heappop(free)
        end = start + log_seconds(log, rates, flush)
        heapq.heappush(free, end)
        times.append((start, end))
    return times, max(free)


def log_seconds(log: LogWork, rates: Rates, flush: float) -> float:
    """Return how long a thread takes to load a log if nothing else uses the disk and the processors. `flush`: seconds
    until a snapshot has been flushed."""
    waiting = flush * log.recovered * rates.flush + seeking(log, rates)
    shorter, longer = sorted((computing(log, rates), reading(log, rates)))
    return waiting + longer + OVERLAP * shorter


def computing(log: LogWork, rates: Rates) -> float:
    """Return the seconds that a thread computes for a log."""
    count = log.bytes + log.againBytes
    headers = log.producerBytes / rates.batch_size
    batches = count / rates.batch_size * PER_BATCH + headers * PER_HEADER
    return (count * PER_BYTE + batches + log.recovered * PER_SEGMENT + PER_LOG) * rates.cost


def reading(log: LogWork, rates: Rates) -> float:
    """Return the seconds that the disk needs to deliver a log. What is read a second time is in the page cache; of a
    batch whose header alone is read, one page is delivered."""
    share = min(1.0, PAGE / rates.batch_size)
    return (log.bytes * rates.uncached + log.producerBytes * share) / rates.read_speed


def seeking(log: LogWork, rates: Rates) -> float:
    """Return the seconds that a thread waits for pages with headers, between which others are skipped."""
    if rates.batch_size <= 2 * PAGE:
        return 0.0
    return log.producerBytes / rates.batch_size * SEEK * rates.flush


def device_of(path: str, number: int) -> int:
    """Return the device of a directory; one of its own, which `number` tells from others, if it is unknown."""
    try:
        return -number - 1 if file_system.tree_at(path) is not None else file_system.stat(path).st_dev
    except OSError:
        return -number - 1


THREADS_CONFIG = "num.recovery.threads.per.data.dir"
METADATA, PROPERTIES, OF_RELEASE = "metadata", "server.properties", "default"
"""Where the number of threads is from, if it is not GIVEN."""
DEFAULT_THREADS, OLD_THREADS = 2, 1
"""Defaults since TWO_THREADS_SINCE, and before."""
TWO_THREADS_SINCE = (4, 0, 0)
ALTERNATIVES = (1, 2, 4, 8, 16)
"""Numbers of threads for which a time is given, too."""
MAX_ASKED = 2000
"""Maximum number of segments of which it is asked how much of them is in the page cache."""
MUCH = 64 << 20
"""Bytes from which on a disk's speed is measured: below, other things take longer."""


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


class RecoveryQuery(NamedTuple):
    """What is not on the disk. `threads`: None if not given; `read_speed`: bytes per second, None to measure it."""

    threads: int | None = None
    read_speed: int | None = None


NOTHING_GIVEN = RecoveryQuery()


@takes_paths
def recovery_time(
    paths: Iterable[str],
    query: RecoveryQuery = NOTHING_GIVEN,
    *,
    kafka_version: KafkaRelease | str | None = None,
    run: Run = PLAIN_RUN,
    server: ServerProperties | None = None,
) -> tuple[RecoveryTime, list[LogWork]]:
    """Estimate how long a broker needs to load the logs of its log directories, and when it loads each of them.
    Segments are read only in samples: for the disk's speed, and for the size of batches. `kafka_version`: the release
    that is started, which decides the default number of threads; by default the one that ran on the disk. `run.begin`
    is called after each partition; `server`: the node's server.properties. Raises ValueError for a release that is not
    known, and SourceError for a path that is not a log directory."""
    paths = list(paths)
    disks = Disks.at(paths, nested=False, server=server)
    works = recovery_works(paths, run, disks)
    _, metadata = disks.newest_metadata(*(work.path for work in works))
    release = parse_release(kafka_version) if isinstance(kafka_version, str) else kafka_version
    if release is None:
        release = disk_release([work.path for work in works], metadata).release
    return estimate(works, query, metadata, release, server), [log for work in works for log in work.logs]


def estimate(
    works: Sequence[DirectoryWork],
    query: RecoveryQuery,
    metadata: MetadataImage | None = None,
    release: KafkaRelease = NEWEST,
    server: ServerProperties | None = None,
) -> RecoveryTime:
    """Return the time for all directories of a broker, and note in each log when it is loaded."""
    total = sum(work.bytes for work in works)
    largest = list(_largest(works))
    cached = int(total * _cached_share(works))
    threads, threads_from = recovery_threads(works, query, metadata, release, server)
    if query.read_speed is not None:
        speed = ReadSpeed(query.read_speed, GIVEN)
    else:
        devices = {device_of(work.path, number) for number, work in enumerate(works)}
        speed = measure(largest if total - cached >= MUCH else [], threads * len(devices))
    rates = Rates(
        speed.perSecond, mean_batch_size(largest), (total - cached) / total if total else 0.0, _processors(works)
    )
    span, times = simulate(works, threads, rates)
    least, most = (simulate(works, threads, rate)[0] for rate in extremes(rates, is_known=speed.source != ASSUMED))
    for work, pairs in zip(works, times, strict=True):
        for log, (start, end) in zip(work.logs, pairs, strict=True):
            if log.number is not None:
                log.startsAfter, log.endsAfter = round(start, 1), round(end, 1)
    return RecoveryTime(
        [work.path for work in works],
        [work.path for work in works if not work.clean],
        sum(len(work.logs) for work in works),
        sum(len(work.recovered) for work in works),
        sum(log.recovered for work in works for log in work.logs),
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
        [problem for work in works for problem in work.unread],
    )


def recovery_threads(
    works: Sequence[DirectoryWork],
    query: RecoveryQuery,
    metadata: MetadataImage | None,
    release: KafkaRelease,
    server: ServerProperties | None,
) -> tuple[int, str]:
    """Return the number of threads, and where it is from: dynamic configs of the broker precede those of all
    brokers."""
    if query.threads is not None:
        return query.threads, GIVEN
    values = []
    if metadata is not None:
        nodes = (properties(target(os.path.join(work.path, META))).get("node.id") for work in works)
        for name in (next(filter(None, nodes), ""), ""):
            values.append((metadata.broker_configs.get(name, {}).get(THREADS_CONFIG), METADATA))
    if server is not None:
        values.append((server.values.get(THREADS_CONFIG), PROPERTIES))
    for value, origin in values:
        number = parse_int(value)
        if number is not None and number > 0:
            return number, origin
    return DEFAULT_THREADS if release.order >= TWO_THREADS_SINCE else OLD_THREADS, OF_RELEASE


def batch_size_of(works: Sequence[DirectoryWork]) -> int:
    """Return the mean size of batches in the segments that are recovered, in bytes."""
    return mean_batch_size(_largest(works))


def _processors(works: Sequence[DirectoryWork]) -> int | None:
    """Return the number of processors of the machine with the disks; None for those in a bundle."""
    if any(file_system.tree_at(work.path) is not None for work in works):
        return None
    return os.cpu_count()


def _largest(works: Iterable[DirectoryWork]) -> Iterator[str]:
    """Yield segments that are recovered, the largest of each log, of the logs with most bytes first."""
    logs = heapq.nlargest(MAX_TRIED, (log for work in works for log in work.recovered), key=lambda log: log.bytes)
    for log in logs:
        number = max(range(log.recovered), key=log.sizes.__getitem__)
        yield f"{log.segment(number)}.log"


def _cached_share(works: Sequence[DirectoryWork]) -> float:
    """Return the share of what is read that is in the page cache, from at most MAX_ASKED of the segments."""
    segments = [(log, number) for work in works for log in work.logs for number in range(log.recovered)]
    step = -(-len(segments) // MAX_ASKED) or 1
    size = cached = 0
    for log, number in segments[::step]:
        size += log.sizes[number]
        cached += min(log.sizes[number], cached_bytes(f"{log.segment(number)}.log")) if log.sizes[number] else 0
    return cached / size if size else 0.0


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
        batches = list(_batch_sizes(data))
        size, count = size + sum(batches), count + len(batches)
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
