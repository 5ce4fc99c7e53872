"""Reads files without batches, and checks those that are checked on their own: checkpoints, property files and producer
snapshots."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from kdump.check.finding import Finding, codes_in
from kdump.check.options import Options
from kdump.check.rules import checkpoints, identity_files, newer_release, producer_snapshots
from kdump.check.rules.identity_files import content, version_evidence
from kdump.check.rules.producer_snapshots import invalid_region
from kdump.check.totals import CheckTotals
from kdump.format.errors import NEWER_RELEASE
from kdump.format.kafka_release import NEWEST_APPLIES, AppliedRelease
from kdump.io.errors import SourceError
from kdump.log import file_kinds
from kdump.log.entries import Entry, Item, entries
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import FileKind
from kdump.log.paths import Target
from kdump.log.region import Defect, Region

CODES = {
    **codes_in(vars(checkpoints)),
    **codes_in(vars(identity_files)),
    **codes_in(vars(newer_release)),
    **codes_in(vars(producer_snapshots)),
}
"""The codes that reading such a file may note by name (log/entries.py)."""
NOTHING_NEWER = "nothing else on the disk is of a newer one"
CODE_OF_DAMAGE: dict[FileKind | None, str] = {
    file_kinds.OFFSET_CHECKPOINT: checkpoints.CHECKPOINT_INVALID.code,
    file_kinds.EPOCH_CHECKPOINT: checkpoints.CHECKPOINT_INVALID.code,
    file_kinds.PRODUCER_SNAPSHOT: producer_snapshots.SNAPSHOT_INVALID.code,
}
"""The code for a version of a file that no release writes, where reading notes that of a newer release."""


def items(target: Target, options: Options, totals: CheckTotals, *, count: bool = True) -> Iterator[Item]:
    """Yield everything in a file without batches. An error that prevents reading it is added to the totals."""
    try:
        yield from read(target, options, totals, count=count)
    except SourceError as error:
        totals.add_unreadable(error)


def read(target: Target, options: Options, totals: CheckTotals, *, count: bool = True) -> Iterator[Item]:
    """Yield everything in a file without batches. Raises SourceError."""
    window = options.open(target)
    with closing(window.source):
        kind = target.kind or by_content(window)
        if count:
            totals.count_file(window.source.size)
        yield from entries(kind, window, target.name_offset or 0)


def file_findings(
    target: Target, options: Options, totals: CheckTotals, applied: AppliedRelease = NEWEST_APPLIES
) -> Iterator[Finding]:
    """Yield findings for a checkpoint, a producer snapshot or another small file on its own, as a release reads it."""
    properties: dict[str, str] = {}
    found: list[Finding] = []
    is_version, is_newer, has_count = False, False, False
    try:
        for item in read(target, options, totals):
            if isinstance(item, Defect):
                is_version = item.field == "version"
                version = version_evidence(applied).damaged_version(target.path) if item.code == NEWER_RELEASE else None
                if version is not None:
                    reason = f"version {version}, which no known release writes; {NOTHING_NEWER}"
                    item = replace(item, code=CODE_OF_DAMAGE.get(target.kind, item.code), reason=reason)
                is_newer |= item.code == NEWER_RELEASE
                found.append(file_finding(target, item))
            elif isinstance(item, Entry) and item.what == "count":
                has_count = True
            elif isinstance(item, Entry) and item.type == "property" and len(properties) < 1000:
                properties[item.values["name"]] = item.values["value"]
            elif isinstance(item, Region) and not is_newer and target.kind is file_kinds.PRODUCER_SNAPSHOT:
                yield invalid_region(target, item)
    except SourceError as error:
        totals.add_unreadable(error)
        return  # nothing follows from a file that was not read
    yield from (each.given({"versionOnly": is_version and has_count and len(found) == 1}) for each in found)
    if not found:
        yield from content(target, properties, applied)


def file_finding(target: Target, problem: Defect) -> Finding:
    """Return the finding for a problem in a file without batches."""
    if problem.code == NEWER_RELEASE:
        text = f"{os.path.basename(target.path)} {problem.reason}"
        return newer_release.newer_release(target, text, problem.position or 0, problem.size or 0)
    return CODES[problem.code].finding(
        target,
        message=f"{problem.struct}.{problem.field} at byte {problem.position}: {problem.reason}",
        position=problem.position,
        size=problem.size or 0,
        expected=problem.expected,
        actual=problem.actual,
    )
