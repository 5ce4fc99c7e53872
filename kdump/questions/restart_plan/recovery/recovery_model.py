"""A model of a recovery: how long its threads take for what is on the disk.

A log directory has a pool of num.recovery.threads.per.data.dir threads, which take its logs in order; all directories
are loaded in parallel. A thread reads a batch, verifies its checksum and adds it to the indexes, while the kernel reads
ahead; after each segment, it writes a producer snapshot, which it flushes to the disk. The costs were fitted to real
recoveries (tools/recovery_trials.py, docs/restart-plan.md).

Source: kafka.log.LogManager.loadLogs; LogSegment.recover; LogLoader.recoverSegment; UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from kdump.io import file_system
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork

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
