"""Family files: directories and files that do not belong where they are, by their names.

Source: LogManager.loadLogs, LogLoader.removeTempFilesAndCollectSwapFiles.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.format.count_text import first_of
from kdump.format.kafka_release import KafkaRelease
from kdump.format.numbers import parse_long
from kdump.log import file_kinds
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target, is_live
from kdump.state.releases import STRAY_NAMES

PARTITION_DUPLICATE = Code(
    code="partition-duplicate",
    family="files",
    severity=ERROR,
    meaning="One partition is live in two log directories of a broker.",
    consequence="the broker exits at startup ('Duplicate log directories for … are found')",
    fix=(
        "Compare the two with kdump diff, and move the one that lacks records, or is in the directory that failed, out "
        "of log.dirs; keep it as a backup"
    ),
    source="LogManager.loadLog",
)

DIRECTORY_UNKNOWN = Code(
    code="directory-unknown",
    family="files",
    severity=ERROR,
    meaning="A directory in a log directory is not named topic-partition.",
    consequence="the broker exits at startup",
    fix="Move it out of the log directory; for lost+found, use a directory below the mount point as the log directory",
    source="LogManager.loadLogs, UnifiedLog.parseTopicPartitionName",
)

DIRECTORY_STRAY = Code(
    code="directory-stray",
    family="files",
    severity=WARNING,
    meaning="A directory is being deleted (-delete) or moved (-future), or belongs to no known partition (-stray).",
    consequence=(
        "after startup the broker deletes a -delete directory, and continues to fill a -future one; if the metadata "
        "assigns the partition to the -future one's log directory, it replaces the live one. A -stray directory stays "
        "until you delete it"
    ),
    fix=(
        "Copy what you need of it before the broker starts. If a -future directory is in the same log directory as the "
        "live one, move it away: the broker could exit"
    ),
    source="LogManager.loadLog, addStrayLog, recoverAbandonedFutureLogs",
    unless="error for -stray up to Kafka 3.6.0, where the broker exits at startup",
)

COMPACTION_INTERRUPTED = Code(
    code="compaction-interrupted",
    family="files",
    severity=WARNING,
    meaning="A .cleaned or .swap file is left from a cleaning or a split of a segment.",
    consequence=(
        "at the next startup the broker deletes .cleaned files, and .swap files named with the same offset as one or a "
        "higher one; it renames the others, without checking them, and deletes the segments that they replace"
    ),
    fix=(
        "Do nothing, unless a finding is about a .swap file or restart-plan shows losses: then back the directory up "
        "before the broker starts. The .swap files are read here as segments, and what they replace is not"
    ),
    source="LogLoader.removeTempFilesAndCollectSwapFiles",
)

FILE_UNKNOWN = Code(
    code="file-unknown",
    family="files",
    severity=INFO,
    meaning="A .deleted file, or a file with a name that is not Kafka's.",
    consequence="the broker deletes .deleted files at startup and ignores others",
    fix=(
        "If it is an error, move the file out of the directory before the broker starts; otherwise do nothing. If you "
        "need a .deleted segment, copy it before the broker starts"
    ),
    source="LogLoader.removeTempFilesAndCollectSwapFiles, LogFileUtils.offsetFromFile",
    unless=(
        "error if the broker parses the name at startup (.log, an index, .snapshot, .cleaned, .swap) and it does not "
        "start with an offset: the broker exits; and for a .log whose offset does not have 20 digits: its records are "
        "not served; warning for a segment in a log directory, outside of a partition directory"
    ),
)
OUTSIDE = "the broker ignores it: consumers receive nothing from this file"
"""Impact of a segment in a log directory."""

STATES = {
    "delete": (
        "the broker is deleting it",
        "the broker deletes it after startup: copy what you need before",
    ),
    "future": (
        "a replica that is being moved here from another log directory",
        "after startup the broker continues to fill it, or, if the metadata assigns the partition to this log "
        "directory, replaces the live one with it",
    ),
    "stray": (
        "it belongs to no known partition",
        "the broker serves nothing from it, and keeps it until you delete it",
    ),
}
PARSED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned", ".swap")
"""Extensions of the files whose offset a broker parses from the name at startup."""

DELETES = "at the next startup the broker deletes it"
INSTALLS = "at the next startup the broker renames it, without checking it, and serves it"


def log_directory_findings(directory: LogDirectory, duplicates: Iterable[tuple[Target, str]]) -> Iterator[Finding]:
    """Yield findings for what is in a log directory and no broker puts there. `duplicates`: its partitions that are
    live in another log directory of the broker too, and the path of that one."""
    # A node lists no directory but those of log.dirs.
    for path in [] if directory.only_metadata else directory.unknown:
        target = Target(path, None, None, None, None, directory.path)
        yield DIRECTORY_UNKNOWN.finding(target, message=f"{os.path.basename(path)} is not named topic-partition")
    for target in directory.others:
        name = os.path.basename(target.path)
        if target.kind is file_kinds.SEGMENT and is_live(name):
            message = f"{name}: a segment in a log directory; kdump did not check it"
            yield FILE_UNKNOWN.finding(target, message=message, severity=WARNING, consequence=OUTSIDE)
        else:
            yield FILE_UNKNOWN.finding(target, message=f"{name}: {unknown_file_reason(target.path)}")
    for target, other in duplicates:
        yield PARTITION_DUPLICATE.finding(target, message=f"it is also live in {other}")


def partition_directory_findings(partition: PartitionDirectory, release: KafkaRelease) -> Iterator[Finding]:
    """Yield findings for the name of a partition directory, and for files in it that are left over."""
    if partition.state:
        what, follows = STATES[partition.state]
        target = Target(partition.path, None, partition.topic, partition.partition, None, partition.source)
        severity = None
        if partition.state == "stray" and not STRAY_NAMES.applies(release):
            severity, follows = ERROR, f"a broker of Kafka {release.number} exits at startup: move it away"
        message = f"a -{partition.state} directory: {what}"
        yield DIRECTORY_STRAY.finding(target, message=message, severity=severity, consequence=follows)
    for target in (*partition.installed, *partition.unfinished, *partition.others):
        yield from misnamed(target)
    replaced = first_of([os.path.basename(target.path) for target in partition.replaced])
    installs = f"{INSTALLS}; it deletes {replaced}, which kdump does not read" if replaced else INSTALLS
    for targets, does in ((partition.installed, installs), (partition.unfinished, DELETES)):
        for target in targets:
            if not any(misnamed(target)):
                yield COMPACTION_INTERRUPTED.finding(target, message=os.path.basename(target.path), consequence=does)
    for target in partition.others:
        if any(misnamed(target)):
            continue
        deleted = target.path.endswith(".deleted")
        consequence = "the broker deletes it at startup" if deleted else "the broker ignores it"
        what = "a file that is being deleted" if deleted else unknown_file_reason(target.path)
        yield FILE_UNKNOWN.finding(target, message=f"{os.path.basename(target.path)}: {what}", consequence=consequence)


def misnamed(target: Target) -> Iterator[Finding]:
    """Yield a finding if a broker parses the file's name at startup and it does not start with an offset, or if the
    broker creates the log again under the name that the offset should have.

    Source: LogFileUtils.offsetFromFile, LogLoader.removeTempFilesAndCollectSwapFiles and loadSegmentFiles,
    ProducerStateManager.listSnapshotFiles.
    """
    name = os.path.basename(target.path)
    if not name.endswith(PARSED):
        return
    stem = name.partition(".")[0]
    offset = parse_long(stem)
    if offset is None:
        follows = (
            f'the broker exits at startup with a NumberFormatException (For input string: "{stem}"): move the file out '
            "of the directory"
        )
        yield FILE_UNKNOWN.finding(
            target, message=f"{name}: the name does not start with an offset", severity=ERROR, consequence=follows
        )
    elif name.endswith(".log") and stem != (padded := f"{'-' * (offset < 0)}{abs(offset):020}"):
        follows = (
            f"at startup the broker creates an empty {padded}.log; consumers receive nothing from this file, and "
            "records of other segments from that offset on may be lost"
        )
        message = f"{name}: not how Kafka names a segment with offset {offset}"
        yield FILE_UNKNOWN.finding(target, message=message, severity=ERROR, consequence=follows)


def unknown_file_reason(path: str) -> str:
    """Describe a file that no broker reads."""
    if path.endswith(".tmp"):
        return "a temporary file of a write that did not finish"
    return "not a name that Kafka uses"
