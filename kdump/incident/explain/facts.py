"""The facts that choose a message among those with one error or text, and its actions: those that a message shows. What
a disk shows is in disk_evidence.py."""

from __future__ import annotations

from collections.abc import Mapping

from kdump.incident.explain.broker_paths import is_outside, is_windows, names_of, partition_of
from kdump.incident.explain.io_errors import IoError, key_of
from kdump.log import file_kinds
from kdump.log.file_kinds import AT_ROOT, LOCK, by_name
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.log_directory import ROOT_FILES
from kdump.log.paths import PARTITION
from kdump.problems.catalogue import conditions


def holds(when: str, facts: Mapping[str, bool]) -> bool:
    """Return whether all facts of a condition are known, and as it wants them."""
    return all(facts.get(fact) is wanted for fact, wanted in conditions(when))


def of_message(parts: Mapping[str, str], error: IoError | None = None, outer: str = "") -> dict[str, bool]:
    """Return what a message itself shows: its parts, the error of the operating system with it, and the line around
    that, which names the operation."""
    facts: dict[str, bool] = {}
    partition = partition_of(dict(parts))
    if partition is not None:
        facts["metadataLog"] = partition == METADATA_LOG
    if error is None:
        return facts
    path, words = error.file, outer.lower()
    facts["onWindows"] = (
        any(map(is_windows, (path, parts.get("directory", "")))) or key_of(error.reason) in WINDOWS_REASONS
    )
    facts["rename"] = bool(error.otherFile) or "renam" in words or "atomic move" in words
    facts["uniqueTarget"] = _has_unique_target(error)
    names = names_of(path)
    last = names[-1].removesuffix(".tmp")
    if not path:
        return facts
    kind = by_name(last)[0]
    is_partition = PARTITION.match(last) is not None and path != parts.get("directory")
    facts["markedForDeletion"] = ".deleted" in last or any(
        match["state"] == "delete" for match in map(PARTITION.match, names) if match is not None
    )
    facts["logDirectory"] = (
        path == parts.get("directory") or last in (LOCK, *ROOT_FILES) or (kind in AT_ROOT and not is_partition)
    )
    facts["partitionDirectory"] = is_partition
    facts["storeLock"] = last == "LOCK"
    facts["producerSnapshot"] = kind is file_kinds.PRODUCER_SNAPSHOT
    outside = False if facts["logDirectory"] else is_outside(path)
    if error.is_of_shell or outside is not None:
        facts["fileOfKafka"] = outside is False
    return facts


WINDOWS_REASONS = {
    "access is denied",
    "the process cannot access the file because it is being used by another process",
    "the process cannot access the file because another process has locked a portion of the file",
    "the requested operation cannot be performed on a file with a user-mapped section open",
}
"""Reasons that only Windows states, as key_of returns them."""


def _has_unique_target(error: IoError) -> bool:
    """Return True if the new name is that of a partition with a suffix that Kafka has just made up (LocalLog.
    logDeleteDirName and the like): nothing with this name can be in the way."""
    new = PARTITION.match(names_of(error.otherFile)[-1])
    return new is not None and new["state"] is not None
