"""Family files: directories and files that do not belong where they are, by their names.

Source: LogManager.loadLogs, LogLoader.removeTempFilesAndCollectSwapFiles."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kdump.check.finding import ERROR, WARNING, Code, Finding
from kdump.format.count_text import first_of
from kdump.format.kafka_release import KafkaRelease
from kdump.format.numbers import parse_long
from kdump.io import file_system
from kdump.log import file_kinds
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target, is_live
from kdump.state.releases import STRAY_NAMES

PARTITION_DUPLICATE = Code("partition-duplicate")
DIRECTORY_UNKNOWN = Code("directory-unknown")
DIRECTORY_STRAY = Code("directory-stray")
COMPACTION_INTERRUPTED = Code("compaction-interrupted")
FILE_UNKNOWN = Code("file-unknown")
STATES = {
    "delete": "the broker is deleting it",
    "future": "a replica that is being moved here from another log directory",
    "stray": "it belongs to no known partition",
}
PARSED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned", ".swap")
"""Extensions of the files whose offset a broker parses from the name at startup."""


def log_directory_findings(
    directory: LogDirectory, has_logs: bool, duplicates: Iterable[tuple[Target, str]]
) -> Iterator[Finding]:
    """Yield findings for what is in a log directory and no broker puts there. `has_logs`: whether its node lists it, as
    it lists those of log.dirs alone; `duplicates`: its partitions that are live in another log directory of the broker
    too, and the path of that one."""
    for path in directory.unknown if has_logs else ():
        target = Target(path, None, None, None, None, directory.path)
        yield DIRECTORY_UNKNOWN.finding(target, message=f"{os.path.basename(path)} is not named topic-partition")
    for target in directory.others:
        name = os.path.basename(target.path)
        if target.kind is file_kinds.SEGMENT and is_live(name):
            message = f"{name}: a segment in a log directory; kdump did not check it"
            yield FILE_UNKNOWN.finding(target, message=message, severity=WARNING, case="outside")
        else:
            yield FILE_UNKNOWN.finding(target, message=f"{name}: {unknown_file_reason(target.path)}")
    for target, other in duplicates:
        yield PARTITION_DUPLICATE.finding(target, message=f"it is also live in {other}")


def partition_directory_findings(partition: PartitionDirectory, release: KafkaRelease) -> Iterator[Finding]:
    """Yield findings for the name of a partition directory, and for files in it that are left over."""
    if partition.state:
        target = Target(partition.path, None, partition.topic, partition.partition, None, partition.source)
        exits = partition.state == "stray" and not STRAY_NAMES.applies(release)
        message = f"a -{partition.state} directory: {STATES[partition.state]}"
        severity, case = (ERROR, "exits") if exits else (None, partition.state)
        values = {"release": release.number}
        live = os.path.join(partition.source, f"{partition.topic}-{partition.partition}")
        is_live_here = file_system.exists(live) if partition.source else None
        facts = {"liveHere": is_live_here, "markedForDeletion": partition.state == "delete"}
        yield DIRECTORY_STRAY.finding(target, message=message, severity=severity, case=case, values=values, facts=facts)
    for target in (*partition.installed, *partition.unfinished, *partition.others):
        yield from misnamed(target)
    replaced = first_of([os.path.basename(target.path) for target in partition.replaced])
    installs = "replaces" if replaced else "installed"
    for targets, case in ((partition.installed, installs), (partition.unfinished, "deleted")):
        for target in targets:
            if not any(misnamed(target)):
                name = os.path.basename(target.path)
                yield COMPACTION_INTERRUPTED.finding(target, message=name, case=case, values={"replaced": replaced})
    for target in partition.others:
        if any(misnamed(target)):
            continue
        deleted = target.path.endswith(".deleted")
        case = "deleted" if deleted else "ignored"
        what = "a file that is being deleted" if deleted else unknown_file_reason(target.path)
        yield FILE_UNKNOWN.finding(target, message=f"{os.path.basename(target.path)}: {what}", case=case)


def misnamed(target: Target) -> Iterator[Finding]:
    """Yield a finding if a broker parses the file's name at startup and it does not start with an offset, or if the
    broker creates the log again under the name that the offset should have.

    Source: LogFileUtils.offsetFromFile, LogLoader.removeTempFilesAndCollectSwapFiles and loadSegmentFiles,
    ProducerStateManager.listSnapshotFiles."""
    name = os.path.basename(target.path)
    if not name.endswith(PARSED):
        return
    stem = name.partition(".")[0]
    offset = parse_long(stem)
    if offset is None:
        message = f"{name}: the name does not start with an offset"
        yield FILE_UNKNOWN.finding(target, message=message, severity=ERROR, case="notANumber", values={"stem": stem})
    elif name.endswith(".log") and stem != (padded := f"{'-' * (offset < 0)}{abs(offset):020}"):
        message = f"{name}: not how Kafka names a segment with offset {offset}"
        yield FILE_UNKNOWN.finding(target, message=message, severity=ERROR, case="otherName", values={"name": padded})


def unknown_file_reason(path: str) -> str:
    """Describe a file that no broker reads."""
    if path.endswith(".tmp"):
        return "a temporary file of a write that did not finish"
    return "not a name that Kafka uses"
