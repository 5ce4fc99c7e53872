"""Estimates the recovery of a broker's log directories, and follows a running one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from kdump.cluster.disks import Disks
from kdump.cluster.release_evidence import disk_release
from kdump.format.kafka_release import KafkaRelease, parse_release
from kdump.format.numbers import parse_int
from kdump.io.run import PLAIN_RUN, Run
from kdump.kafka.server_properties import ServerProperties
from kdump.kafka.small_files import properties
from kdump.log.lock_holder import lock_holder
from kdump.log.log_directory import META
from kdump.log.mounted_bundles import takes_bundles
from kdump.log.paths import target
from kdump.questions.restart_plan.node.directories import node_directories
from kdump.questions.restart_plan.recovery.recovery_progress import ENDS, RecoveryFollower, RecoveryProgress
from kdump.questions.restart_plan.recovery.recovery_threads import PROC, process_start
from kdump.questions.restart_plan.recovery.recovery_time import (
    DEFAULT_THREADS,
    OLD_THREADS,
    RecoveryLog,
    RecoveryQuery,
    RecoveryTime,
    batch_size_of,
    estimate,
)
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, directory_work
from kdump.state.metadata_image import MetadataImage

THREADS_CONFIG = "num.recovery.threads.per.data.dir"
TWO_THREADS_SINCE = (4, 0, 0)
"""Release since which that is 2 by default (KIP-1030)."""


@takes_bundles
def recovery_time(
    paths: Iterable[str],
    query: RecoveryQuery | None = None,
    *,
    kafka_version: KafkaRelease | str | None = None,
    run: Run = PLAIN_RUN,
    server: ServerProperties | None = None,
) -> tuple[RecoveryTime, list[RecoveryLog]]:
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
    return time_of(works, query or RecoveryQuery(), metadata, release, server)


def time_of(
    works: Sequence[DirectoryWork],
    query: RecoveryQuery,
    metadata: MetadataImage | None,
    release: KafkaRelease,
    server: ServerProperties | None = None,
) -> tuple[RecoveryTime, list[RecoveryLog]]:
    """Return the same as `recovery_time`, to callers that know what is to be recovered, and the release."""
    known = None if metadata is None else _threads_in_metadata(metadata, works)
    default = DEFAULT_THREADS if release.order >= TWO_THREADS_SINCE else OLD_THREADS
    stated = None if server is None else parse_int(server.values.get(THREADS_CONFIG))
    stated = stated if stated is not None and stated > 0 else None
    query = replace(query, threads_in_metadata=known, threads_in_properties=stated, default_threads=default)
    return estimate(works, query)


def recovery_works(paths: Iterable[str], run: Run = PLAIN_RUN, disks: Disks | None = None) -> list[DirectoryWork]:
    """Return what is to be recovered in each log directory. Raises SourceError."""
    paths = list(paths)
    found = node_directories(paths, disks or Disks.at(paths, nested=False))
    chosen = [each.path for each in found if each.logDir and not each.failed]
    return [directory_work(path, run) for path in chosen]


def follow_recovery(
    works: Sequence[DirectoryWork],
    interval: float,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    proc: str = PROC,
) -> Iterator[RecoveryProgress]:
    """Yield how far the recovery is, every `interval` seconds, until it has ended. The broker is the process that holds
    the lock of a log directory; without one, only what changes from now on is seen."""
    follower = RecoveryFollower(works, since=int(clock() * 1e9), batch_size=batch_size_of(works), proc=proc)
    is_first = True
    while True:
        if follower.process is None:
            process = next(filter(None, (lock_holder(work.path) for work in works)), None)
            started = None if process is None else process_start(process)
            if process is not None and started is not None:
                follower.process, follower.since = process, started
        progress = follower.look(clock())
        yield progress
        if progress.state in ENDS:
            return
        sleep(min(interval, 1.0) if is_first else interval)
        is_first = False


def _threads_in_metadata(metadata: MetadataImage, works: Sequence[DirectoryWork]) -> int | None:
    """Return the number of threads in the dynamic configs of the broker, or of all brokers; None without one."""
    metas = (properties(target(os.path.join(work.path, META))) for work in works)
    for name in (next((meta["node.id"] for meta in metas if "node.id" in meta), ""), ""):
        value = parse_int(metadata.broker_configs.get(name, {}).get(THREADS_CONFIG))
        if value is not None and value > 0:
            return value
    return None
