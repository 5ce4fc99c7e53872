"""Confirms findings while a broker changes the files: a finding holds if no file that it follows from has changed since
it was first looked at. Other files are checked again, a few times; files that keep changing are noted.

On a quiet disk this costs one fstat per file, and one stat per file that a finding is about."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, islice
from typing import Protocol

from kdump.check.finding import INFO, Finding
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.io.errors import went_away
from kdump.io.file_identities import stem
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.live_files import PAUSES, FileWatch, identity, is_young
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.problems.catalogue import declaration

MAX_HELD = 1000
"""Maximum number of findings held back until it is known whether their files have changed."""
MAX_RECHECKED = 10_000
"""Maximum number of findings that are checked again."""
FindingKey = tuple[str, str, int, int, str]
PlaceKey = tuple[str, str, str | None, int | None, int, int | None, str]
Look = Callable[[FileWatch], Iterator[Finding]]


class CheckedUnit(Protocol):
    """What a look needs of the unit that it checks (kdump.check.engine.units.CheckUnit)."""

    @property
    def name(self) -> str: ...

    @property
    def around(self) -> FileWatch: ...

    @property
    def partition(self) -> PartitionDirectory | None: ...

    @property
    def directory(self) -> LogDirectory | None: ...

    @property
    def options(self) -> Options: ...

    def look(self, totals: CheckTotals, watch: FileWatch) -> Iterator[Finding]: ...

    def again(self, *, around: bool) -> CheckedUnit | None: ...


def key(finding: Finding) -> FindingKey:
    """Return what identifies a finding."""
    return finding.code, finding.file, finding.position, finding.size, finding.message


def place(finding: Finding) -> PlaceKey:
    """Return what identifies a finding in the next look. What it states of batches may have grown with the log since,
    as their number, size and largest timestamp; damage is the same only if all of it is."""
    damage = finding.message if declaration(finding.code).family == "bytes" else ""
    topic, partition = finding.topic, finding.partition
    return finding.code, finding.file, topic, partition, finding.position, finding.offset, damage


def has_started(unit: CheckedUnit) -> bool:
    """Return True if the clean-shutdown file of the log directory went away since it was first looked at."""
    around = unit.around
    return around.changed(path for path in around.first if os.path.basename(path) == CLEAN_MARK)


class Doubts:
    """Decides which findings of one look follow from files that have changed since."""

    def __init__(self, unit: CheckedUnit, watch: FileWatch) -> None:
        self.unit, self.watch = unit, watch

    @cached_property
    def has_started(self) -> bool:
        """Whether a broker has started on the log directory since: no conclusion from its clean shutdown holds, such as
        that indexes are closed."""
        return has_started(self.unit)

    def sort(self, held: list[Finding]) -> tuple[list[Finding], list[Finding]]:
        """Split the findings into those that hold and those that may not."""
        if all(finding.severity == INFO for finding in held):
            return held, []
        if self._listing_changed():
            return [each for each in held if each.severity == INFO], [each for each in held if each.severity != INFO]
        changed: dict[str, bool] = {}
        holds: list[Finding] = []
        doubtful: list[Finding] = []
        for finding in held:
            (doubtful if finding.severity != INFO and self._is_in_doubt(finding, changed) else holds).append(finding)
        return holds, doubtful

    def _listing_changed(self) -> bool:
        """Return True if files were added, removed or renamed since the directory was listed."""
        place = self.unit.partition
        if place is None or place.listing.seen is None:
            return False
        seen = place.listing.seen
        return is_young(seen) or identity(place.path) != seen

    def _is_in_doubt(self, finding: Finding, changed: dict[str, bool]) -> bool:
        about = finding.file if self.unit.directory is not None else stem(finding.file)
        if about not in changed:
            changed[about] = self.watch.changed([about] if about == finding.file else self.watch.siblings(finding.file))
        if changed[about]:
            return True
        if self.has_started:
            return True
        if not declaration(finding.code).needs_log_dir and self.unit.directory is None:
            return False
        if "" not in changed:
            changed[""] = self.unit.around.any_changed()
        return changed[""]


class Looking:
    """One look at a unit. Open files with `opener`, pass each finding to `holds`, or several to `sort`, and yield from
    `rest` at the end."""

    def __init__(self, unit: CheckedUnit, *, may_resume: bool = False) -> None:
        self.may_resume = may_resume
        self.watch = FileWatch()
        self.unit = unit
        self.opener = self.watch.opening(unit.options.open_source)
        self._doubts = Doubts(unit, self.watch)
        self._doubtful: list[Finding] = []
        self.doubted: set[str] = set()
        """Codes of findings that had to be checked again."""
        self._reported: set[PlaceKey] = set()

    def holds(self, finding: Finding) -> bool:
        """Return True if the finding holds; otherwise `rest` may yield it later."""
        return bool(self.sort([finding]))

    def sort(self, findings: list[Finding]) -> list[Finding]:
        """Return those findings that hold."""
        certain, doubtful = self._doubts.sort(findings)
        self.doubted.update(finding.code for finding in doubtful)
        self._doubtful += doubtful[: MAX_RECHECKED - len(self._doubtful)]
        if len(self._reported) < MAX_RECHECKED:
            self._reported.update(place(finding) for finding in certain if finding.severity != INFO)
        return certain

    def rest(self, totals: CheckTotals) -> Iterator[Finding]:
        """Yield the doubtful findings so far that a further look has confirmed."""
        doubtful, self._doubtful = self._doubtful, []
        if doubtful:
            yield from _again(self.unit, self.watch, doubtful, self._reported, totals, may_resume=self.may_resume)

    def instead(self, totals: CheckTotals) -> Iterator[Finding]:
        """Yield all findings of a further look, if none of this one have been reported."""
        unit, before, doubtful = self.unit, self.watch, self._doubtful
        for number, pause in enumerate(PAUSES, 1):
            look = _further_look(unit, pause, doubtful, totals)
            if look is None:
                return
            again, watch, stream = look
            doubtful_keys = {place(finding) for finding in doubtful}
            findings = list(islice(stream, MAX_RECHECKED))
            _, doubtful = Doubts(again, watch).sort(findings)
            left = [each for each in doubtful if not (place(each) in doubtful_keys and _is_steady(each.file, before))]
            if not left or number == len(PAUSES):
                break
            unit, before = again, watch
        _changing(left, totals)
        leaves = set(map(id, left))
        yield from (finding for finding in findings if id(finding) not in leaves)


def stable_findings(
    unit: CheckedUnit, look: Look, totals: CheckTotals, *, at_once: bool, may_resume: bool
) -> Iterator[Finding]:
    """Yield those findings of a look at the unit that hold. `at_once`: the caller needs each finding before the look
    continues, so that none is held back; `may_resume`: the look may begin at a later segment."""
    looking = Looking(unit, may_resume=may_resume)
    totals.doubted = looking.doubted
    held: list[Finding] = []
    reports = False
    for finding in look(looking.watch):
        held.append(finding)
        if at_once or len(held) >= MAX_HELD:
            reports = True
            yield from looking.sort(held)
            held = []
    holds = looking.sort(held)
    if reports:
        yield from holds
        yield from looking.rest(totals)
    elif len(holds) == len(held):
        yield from held
    else:
        yield from looking.instead(totals)


def _again(
    unit: CheckedUnit,
    before: FileWatch,
    doubtful: list[Finding],
    reported: set[PlaceKey],
    totals: CheckTotals,
    *,
    may_resume: bool,
) -> Iterator[Finding]:
    """Yield those of the doubtful findings that remain when their files are checked again, without those already
    reported."""
    for pause in PAUSES:
        look = _further_look(unit, pause, doubtful, totals)
        if look is None:
            return
        again, watch, stream = look
        doubtful_keys = {place(finding) for finding in doubtful}
        files = {finding.file for finding in doubtful}
        # If the check resumed, the findings of the segments before are reported: only these files are of interest.
        codes = frozenset() if may_resume else {finding.code for finding in doubtful}
        findings = (each for each in stream if each.severity != INFO and (each.file in files or each.code in codes))
        holds, doubtful = Doubts(again, watch).sort(list(islice(findings, MAX_RECHECKED)))
        same = [finding for finding in doubtful if place(finding) in doubtful_keys and _is_steady(finding.file, before)]
        confirmed = [finding for finding in chain(holds, same) if place(finding) not in reported]
        reported.update(map(place, confirmed))
        yield from confirmed
        doubtful = [finding for finding in doubtful if place(finding) not in reported]
        if not doubtful:
            return
        unit, before = again, watch
    _changing(doubtful, totals)


def _further_look(
    unit: CheckedUnit, pause: float, doubtful: list[Finding], totals: CheckTotals
) -> tuple[CheckedUnit, FileWatch, Iterator[Finding]] | None:
    """Return the unit as it is after a pause of so many seconds, its FileWatch and its findings; None, after a note, if
    it is gone."""
    time.sleep(pause)
    needs_log_dir = any(declaration(finding.code).needs_log_dir for finding in doubtful)
    again = unit.again(around=needs_log_dir or has_started(unit))
    if again is None:
        totals.notes.append(went_away(unit.name))
        return None
    watch = FileWatch()
    return again, watch, again.look(CheckTotals(), watch)


def _changing(doubtful: list[Finding], totals: CheckTotals) -> None:
    """Note the files that kept changing."""
    for path in dict.fromkeys(finding.file for finding in doubtful):
        totals.notes.append(f"{path}: kept changing during the check; doubtful findings in it are not reported")


def _is_steady(path: str, before: FileWatch) -> bool:
    """Return True if a file is unchanged since the previous look, or is a segment that has only grown."""
    if path not in before.first:
        return True
    first, now = before.first[path], identity(path)
    if first is None or now is None or first == now:
        return first == now and now is not None
    return path.endswith(".log") and first[:2] == now[:2] and now.size >= first.size
