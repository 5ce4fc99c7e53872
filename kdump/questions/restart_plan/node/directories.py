"""The directories of one node: log.dirs and metadata.log.dir, some of which may be missing or unreadable.

No file on the disk states which of them are in log.dirs, and which is metadata.log.dir: the node's server.properties
does. But a broker creates checkpoints in each of its log directories at startup, and the metadata log in only one
directory.

Source: MetaPropertiesEnsemble.Loader, KafkaRaftServer.initializeLogDirs; AbstractKafkaConfig.metadataLogDir, which is
the first of log.dirs unless it is set."""

from __future__ import annotations

import os

from kdump.cluster.disks import Disks
from kdump.io import file_system
from kdump.io.directory_listing import is_url, names, real_path
from kdump.io.errors import SourceError, Unlisted, reason
from kdump.io.run import Run
from kdump.log.file_kinds import CLEAN_MARK, LOCK
from kdump.log.find_directories import find_directories
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC
from kdump.log.log_directory import COPY_OF_PARTITIONS, LogDirectory, directory_at
from kdump.log.paths import UnlistedCollector
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import MISSING, NO_DIRECTORY, DirectoryPlan

NOT_LOG_DIRECTORY = "not a directory; pass a broker's log directory"


def is_other_file(path: str) -> bool:
    """Return True for standard input, or a file with a suffix, such as a segment or a broker's log: that is not taken
    for what has the place of a log directory."""
    return path == "-" or bool(file_system.isfile(path) and os.path.splitext(path)[1])


def node_directories(paths: list[str], disks: Disks) -> list[DirectoryPlan]:
    """Return the plans to fill in, in the order of their real paths, without duplicates and copies. `disks`: the log
    directories of the run. Raises SourceError for a path that is not a log directory, unless it is missing or failed
    and other log directories are given."""
    plans: list[DirectoryPlan] = []
    errors: list[SourceError] = []
    for path in dict.fromkeys(paths):
        if is_url(path) or is_other_file(path):
            raise SourceError.at(path, NOT_LOG_DIRECTORY)
        try:
            names(path)
        except OSError as error:
            failed = _failure(error)
            plans.append(DirectoryPlan(path, None, failed=failed))
            action = "" if isinstance(error, PermissionError) else "; pass a broker's log directory"
            errors.append(SourceError.at(path, f"{failed if action else reason(error, path)}{action}"))
        else:
            plans += _log_directories(path, disks, several=len(paths) > 1)
    if all(plan.failed and not file_system.isdir(plan.path) for plan in plans):
        raise errors[0]
    plans = _without_copies(sorted(plans, key=lambda plan: real_path(plan.path)), disks)
    _roles(plans, disks)
    return plans


def _without_copies(plans: list[DirectoryPlan], disks: Disks) -> list[DirectoryPlan]:
    """Return the plans but for those of copies, whose meta.properties states what that of another one does, with a
    directory.id, which name them: a node with both exits. The same directory by two paths, and two that
    server.properties names, are not taken for copies."""
    by_path = {plan.path: plan for plan in plans}
    for plan in plans:
        original = by_path.get(disks.copy_of.get(plan.path, ""))
        if original is None or real_path(plan.path) == real_path(original.path):
            continue
        server = disks.server_of(plan.path, original.path)
        ids, others = (disks.ids(disks.below(each.path)[0]) for each in (plan, original))
        is_named = server is not None and server.names(plan.path) and server.names(original.path)
        if ids == others and "directory.id" in ids and not is_named:
            original.copies.append(plan.path)
            del by_path[plan.path]
    return list(by_path.values())


def _failure(error: OSError) -> str:
    """Return why a broker cannot list the directory."""
    if isinstance(error, FileNotFoundError):
        return MISSING
    return NO_DIRECTORY if isinstance(error, NotADirectoryError) else error.strerror or "unreadable"


def _log_directories(path: str, disks: Disks, several: bool) -> list[DirectoryPlan]:
    """Return the plan of the one log directory at or below `path`. `several`: other paths were given too. Raises
    SourceError."""
    place = next((directory for directory in disks.directories if directory.path == path), None) or directory_at(path)
    if place is None and several and set(names(path)) <= {LOCK, "lost+found"}:
        return [_directory(LogDirectory(path), disks)]  # a new disk: log.dirs may name it
    errors: list[SourceError] = []
    collector = UnlistedCollector(Run(unreadable=errors.append))
    directories: list[LogDirectory] = []
    if isinstance(place, LogDirectory):
        directories.append(place)
    else:
        directories += [place for place in find_directories(path, collector.run) if isinstance(place, LogDirectory)]
    if not directories and errors:
        raise errors[0]
    if not directories:
        raise SourceError.at(path, "not a log directory; a partition alone does not show how its broker was shut down")
    if len(directories) > 1:
        listed = ", ".join(directory.path for directory in directories[:4])
        raise SourceError.at(
            path, f"contains {len(directories)} log directories ({listed} …); pass those of one broker"
        )
    holds_metadata = several and any(partition.topic == METADATA_TOPIC for partition in directories[0].partitions)
    if not holds_metadata and directories[0].is_copy_of_partitions:
        advice = "it does not show how the broker was shut down; pass a log directory"
        raise SourceError.at(directories[0].path, f"{COPY_OF_PARTITIONS}: {advice}")
    plan = _directory(directories[0], disks)
    plan.unlisted = collector.apart_from([directories[0].path])
    plan.unread += [str(error) for error in errors if isinstance(error, Unlisted) and error.path in plan.unlisted]
    return [plan]


def _directory(place: LogDirectory, disks: Disks) -> DirectoryPlan:
    # A broker checks only that something has this name, and follows links.
    clean = file_system.exists(os.path.join(place.path, CLEAN_MARK))
    process = place.process  # one that is starting has not deleted the file yet, but a moment later it has
    plan = DirectoryPlan(place.path, clean and process is None)
    plan.logDir = disks.has_logs(place)
    plan.metadataLogDir = file_system.exists(os.path.join(place.path, METADATA_LOG))
    if process is not None:
        values = {"process": process, "file": os.path.join(place.path, LOCK)}
        plan.problems.append(Problem("startup-running", values))
    return plan


def _roles(plans: list[DirectoryPlan], disks: Disks) -> None:
    """Choose one directory as metadata.log.dir, and at least one as log directory: a controller's may be both."""
    if not any(plan.logDir and not plan.failed for plan in plans):
        for plan in plans:
            plan.logDir = True
    for plan in plans:
        if not plan.logDir:
            plan.clean = None
    holding = [plan for plan in plans if plan.metadataLogDir]
    # A directory that is not in log.dirs; else, of several metadata logs, the newest. If none is found, a directory
    # that failed, else the first.
    server = disks.server_of(*(plan.path for plan in plans))
    chosen = min(holding or plans, key=lambda plan: (plan.logDir, not plan.failed and not holding))
    others = [plan.path for plan in holding if plan.logDir == chosen.logDir]
    if len(others) > 1:
        newest, _ = disks.copies.newest(others)
        chosen = next((plan for plan in holding if plan.path == newest), chosen)
    if server is not None:
        chosen = next((plan for plan in plans if real_path(plan.path) == server.metadata_log_dir), chosen)
    for plan in plans:
        plan.metadataLogDir = plan is chosen
