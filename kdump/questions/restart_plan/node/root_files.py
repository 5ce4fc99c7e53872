"""The files at the root of a log directory that startup creates, locks and deletes. If it cannot, the directory goes
offline, or the node exits.

Source: LogManager (lockLogDirs, recoveryPointCheckpoints, loadLogs), CheckpointFile, CleanShutdownFileHandler.delete,
ReplicaManager.highWatermarkCheckpoints, KafkaRaftManager (createDataDir, lockDataDir)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.format.count_text import size_text
from kdump.format.kafka_release import KafkaRelease
from kdump.io import file_system
from kdump.kafka.startup_space import SMALLEST_FILE, needed_to_start
from kdump.log.file_kinds import CLEAN_MARK, LOCK
from kdump.log.internal_topics import METADATA_LOG
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import EXIT, OFFLINE, DirectoryPlan, StartupFailure, failure
from kdump.questions.restart_plan.node.access_rights import (
    ENTER,
    READ,
    WRITE,
    Rights,
    denied,
    free_space,
    not_opened,
    read_only,
    temporary_file_stop,
)
from kdump.state.releases import IO_ERROR_EMPTIES

OFFSETS = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
CLEANER = "cleaner-offset-checkpoint"


def _lock_stop(directory: DirectoryPlan, rights: Rights) -> StartupFailure | None:
    """Return the stop if the broker cannot open or create .lock."""
    path = os.path.join(directory.path, LOCK)
    error = rights.open_error(path, READ | WRITE)
    return None if error is None else not_opened(path, "write", error, rights)


def write_stops(directory: DirectoryPlan, rights: Rights) -> Iterator[StartupFailure]:
    """Yield the stop for what a broker cannot write or list at the root of a log directory, if any."""
    writes = rights.can(directory.path, WRITE | ENTER)
    locked = _lock_stop(directory, rights)
    for name in (*OFFSETS, CLEANER):
        path = os.path.join(directory.path, name)
        if not writes and not file_system.lexists(path):
            # The file is created before the broker can take a log directory offline.
            yield denied(path, "write", f"AccessDeniedException: {path}", rights)._replace(kind=EXIT)
            return
    if not rights.can(directory.path, READ):
        exception = f"IOException: {os.path.abspath(directory.path)} is not a readable log directory."
        yield denied(directory.path, "list", exception, rights)
    elif locked is not None:
        yield locked
    elif not writes:
        path = os.path.join(directory.path, OFFSETS[2] + ".tmp")
        yield denied(path, "write", f"FileNotFoundException: {path} (Permission denied)", rights)
    else:
        # In the order in which they are written: after 5 s, and after a minute.
        stops = (temporary_file_stop(os.path.join(directory.path, name), rights) for name in reversed(OFFSETS))
        yield from filter(None, stops)


def write_warning(directory: DirectoryPlan, rights: Rights) -> Problem | None:
    """Return what to know about a file that a broker writes only if the log cleaner has something to do; None if
    there is nothing."""
    stop = temporary_file_stop(os.path.join(directory.path, CLEANER), rights)
    if stop is None:
        return None
    return Problem("startup-cleaner-checkpoint", {"message": stop.message, "remedy": stop.remedy})


def clean_shutdown_file_stop(directory: DirectoryPlan, rights: Rights) -> StartupFailure | None:
    """Return the stop if .kafka_cleanshutdown cannot be deleted: no log in the directory is then loaded."""
    path = os.path.join(directory.path, CLEAN_MARK)
    if not rights.can(directory.path, WRITE | ENTER):
        return denied(path, "delete", f"AccessDeniedException: {path}", rights)
    if file_system.isdir(path) and not file_system.islink(path) and file_system.listdir(path):
        exception = f"DirectoryNotEmptyException: {path}"
        return failure(OFFLINE, "startup-directory-in-place", path, exception, case="cleanShutdown")
    return None


def read_only_stop(directory: DirectoryPlan) -> StartupFailure | None:
    """Return the stop for a directory on a file system mounted read-only, where not even root can write."""
    if not read_only(directory.path):
        return None
    kind, path = OFFLINE, os.path.join(directory.path, LOCK)
    if any(not file_system.lexists(os.path.join(directory.path, name)) for name in (*OFFSETS, CLEANER)):
        kind = EXIT  # the file is created before the broker can take a log directory offline
    if directory.metadataLogDir:
        kind, path = EXIT, os.path.join(directory.path, METADATA_LOG)
    exception = f"FileSystemException: {path}: Read-only file system"
    return failure(kind, "startup-read-only", path, exception, directory=directory.path)


def full_stop(directory: DirectoryPlan, rights: Rights, release: KafkaRelease) -> StartupFailure | None:
    """Return the stop for a directory on a file system without free space. A node writes leader-epoch-checkpoint and
    quorum-state in metadata.log.dir before anything else. After an unclean shutdown, recovery rebuilds indexes, which
    are mapped into memory: the JVM reports a page that cannot be allocated as an InternalError. Either way, the node
    exits. After a clean shutdown, it starts: see `full_warning`.

    With a little free space, but too little for a producer snapshot, the exception is an IOException: see
    IO_ERROR_EMPTIES."""
    what = _lacks(directory, rights)
    if not what or (not directory.metadataLogDir and directory.clean is not False):
        return None
    path = os.path.join(directory.path, METADATA_LOG, "leader-epoch-checkpoint")
    exception = f"KafkaStorageException: Error while writing to checkpoint file {path}; IOException: No space left on"
    exception += " device"
    if not directory.metadataLogDir:
        path = directory.path
        exception = "InternalError: a fault occurred in a recent unsafe memory access operation in compiled Java code"
    facts = {"emptiesSegments": IO_ERROR_EMPTIES.applies(release)}
    values = {"directory": directory.path, "lacking": what}
    return failure(EXIT, "startup-disk-full", path, exception, facts=facts, values=values)


def full_warning(directory: DirectoryPlan, rights: Rights, logs: int) -> Problem | None:
    """Return the warning for a log directory with `logs` live partitions whose broker starts although there is no free
    space, or may not start because there is little; None if there is none."""
    what = _lacks(directory, rights)
    if what:
        return Problem("startup-disk-full-later", {"directory": directory.path, "lacking": what})
    free = free_space(directory.path, as_root=rights.is_root)
    needed = needed_to_start(logs, is_clean=bool(directory.clean))
    if free is None or free[0] >= needed:
        return None
    values = {"directory": directory.path, "free": size_text(free[0]), "needed": size_text(needed)}
    return Problem("startup-disk-nearly-full", values)


def _lacks(directory: DirectoryPlan, rights: Rights) -> str:
    free = free_space(directory.path, as_root=rights.is_root)
    if free is None or (free[0] >= SMALLEST_FILE and (free[1] is None or free[1] > 0)):
        return ""
    return "free space" if free[0] < SMALLEST_FILE else "free inodes"


def metadata_stops(directory: DirectoryPlan, rights: Rights) -> Iterator[StartupFailure]:
    """Yield the stop for what a node cannot write at the root of metadata.log.dir, if any: the node exits."""
    log = os.path.join(directory.path, METADATA_LOG)
    if not file_system.lexists(log) and not rights.can(directory.path, WRITE | ENTER):
        yield denied(log, "write", f"AccessDeniedException: {log}", rights)._replace(kind=EXIT)
    elif not directory.logDir:
        locked = _lock_stop(directory, rights)
        if locked is not None:
            yield locked._replace(kind=EXIT)
