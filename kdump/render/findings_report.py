"""Text report of findings: the verdict, then the findings by partition and cause, then what was checked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdump.check.finding import ERROR, INFO, SEVERITIES, WARNING, Finding, next_command
from kdump.check.rules.missing_partitions import PARTITION_MISSING
from kdump.check.rules.newer_release import NEWER_RELEASE
from kdump.check.rules.offsets import DAMAGE_AT, OFFSET_GAP, missing_text
from kdump.check.rules.timestamps import utc
from kdump.check.summary import CheckSummary
from kdump.check.totals import CheckTotals, Coverage, missing_offsets
from kdump.format.count_text import count_text, first_of, plain_count
from kdump.problems.advice import PLACEHOLDER
from kdump.problems.catalogue import Declaration, declaration
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.table import Table
from kdump.render.wrap import wrapped

STYLE = {ERROR: "bad", WARNING: "torn", INFO: "dim"}
NEAR = 4096
"""Maximum bytes between two damaged byte ranges with a common cause: the block size of a disk."""
PLAIN_WIDTH = 120
TOLD_UNREAD = 20
"""Maximum unread paths that are printed."""
EVERYWHERE = 5
"""Number of partitions above which a common warning is printed only once."""
NAMED = 20
"""Maximum missing partitions of one log directory that are named after the first, and gaps of one damage."""
STORIES = 200
"""Maximum groups of findings with one cause that are printed per partition; further findings are only counted."""


@dataclass
class FindingGroup:
    """Findings with a common cause: the first one, the number of findings by code, and how far they extend."""

    first: Finding
    codes: Counter[str] = field(default_factory=Counter)
    end: int = 0
    last_offset: int | None = None
    gaps: list[str] = field(default_factory=list)
    """Which offsets are missing because of the damage, of the first NAMED gaps."""
    more_gaps: int = 0
    names: list[str] = field(default_factory=list)
    """Missing partitions."""

    @property
    def lost(self) -> str:
        """Which offsets are lost because of the damage."""
        return ", ".join(self.gaps) + (f" and {count_text(self.more_gaps, 'more gap')}" if self.more_gaps else "")

    def is_near(self, damage: Finding) -> bool:
        """Return True if both are damage in the same file, and at most NEAR bytes apart."""
        first = self.first
        return (
            declaration(first.code).family == "bytes"
            and first.file == damage.file
            and damage.position <= self.end + NEAR
        )

    def add(self, finding: Finding) -> None:
        self.codes[finding.code] += 1
        if finding.code == PARTITION_MISSING.code and finding.topic is not None:
            self.names.append(f"{finding.topic}-{finding.partition}")
        self.end = max(self.end, finding.position + finding.size)
        if finding.offset is not None:
            self.last_offset = max(finding.offset, self.last_offset or 0)


class PartitionFindings:
    """The findings of one partition, or of the root of a log directory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stories: list[FindingGroup] = []
        self.not_shown = 0
        self._by_case: dict[tuple[str, str, str], FindingGroup] = {}

    def add(self, finding: Finding) -> None:
        """Add a finding to a story: adjacent damage is one story, and so are findings of one code in one file
        that have the same impact."""
        damage = declaration(finding.code).family == "bytes"
        last = self.stories[-1] if self.stories else None
        if damage and last is not None and last.is_near(finding):
            last.add(finding)
            return
        key = (finding.code, finding.case, finding.file)
        story = None if damage else self._by_case.get(key)
        if story is None:
            if len(self.stories) >= STORIES:
                self.not_shown += 1
                return
            story = FindingGroup(finding)
            self.stories.append(story)
            self._by_case[key] = story
        story.add(finding)

    def explains(self, finding: Finding) -> bool:
        """Return True if the finding is a consequence of damage that was added before; it then becomes part of that
        story."""
        damage_at: Any = finding.fields.get(DAMAGE_AT)
        for story in reversed(self.stories):
            first = story.first
            damage = declaration(first.code).family == "bytes" and first.file == finding.file
            if damage and first.position <= finding.position and (damage_at is None or damage_at <= story.end):
                if finding.code == OFFSET_GAP.code and len(story.gaps) < NAMED:
                    story.gaps.append(missing_text(finding.expected - 1, finding.actual))
                elif finding.code == OFFSET_GAP.code:
                    story.more_gaps += 1
                return True
        return False


class CheckEnd(NamedTuple):
    """The end of a check: what was read, in how many seconds, and which families of findings were looked for."""

    totals: CheckTotals
    seconds: float
    families: str


def check_objects(answer: Finding | CheckEnd) -> tuple[Finding | CheckSummary]:
    """Return a finding, or the summary at the end."""
    return (CheckSummary.of(answer.totals, answer.seconds) if isinstance(answer, CheckEnd) else answer,)


class FindingsReport(Sink["Finding | CheckEnd"]):
    """Collects findings; writes the report when all are known. If nothing could be read, there is none."""

    def __init__(self, output: Output, *, info: bool) -> None:
        self.output, self.info = output, info
        self.width = min(output.width or PLAIN_WIDTH, 160)
        self.groups: list[PartitionFindings] = []
        self.hidden: Counter[str] = Counter()
        """Codes of informational findings that are only counted."""
        self.hit: set[str] = set()
        self.newer: dict[str, None] = {}
        """What only a release newer than the newest known one writes."""

    def part(self, name: str, *, was_named: bool = False) -> None:
        """Start a partition: the findings added next belong to it."""
        self.groups.append(PartitionFindings(name))

    def add(self, answer: Finding | CheckEnd) -> None:
        if isinstance(answer, Finding):
            self._finding(answer)
            return
        totals = answer.totals
        if totals.files or totals.batches or any(totals.findings.values()) or not totals.unread:
            self.write(*answer)

    def _finding(self, finding: Finding) -> None:
        if finding.code == NEWER_RELEASE.code:
            self.newer[finding.message] = None
        if finding.case == "damage" and self.groups[-1].explains(finding):
            return
        if finding.severity == INFO and not self.info and not missing_offsets(finding):
            self.hidden[finding.code] += 1
            return
        self.hit.add(self.groups[-1].name)
        self.groups[-1].add(finding)

    def write(
        self,
        totals: CheckTotals,
        seconds: float,
        families: str,
        places: int | None = None,
        hidden: Counter[str] | None = None,
    ) -> None:
        """Write the report. `places`: number of partitions and files, if not each was a `part`; `hidden`: codes of
        informational findings, if these were not added."""
        self.shows_unread = True
        self._verdict(totals, len(self.groups) if places is None else places)
        for unread in totals.unread[:TOLD_UNREAD]:
            self._text(f"  not read: {printable(path_text(unread))}", "bad")
        if len(totals.unread) > TOLD_UNREAD:
            self._text(f"  … {len(totals.unread) - TOLD_UNREAD:,} more not read (--json)", "bad")
        everywhere = self._everywhere()
        for group in self.groups:
            if group.stories:
                self._group(group)
        for (code, _), groups in everywhere.items():
            self._fold(code, groups)
        # What the code does by default is more than in its cases: it has the actions.
        self._what_to_do(sorted((groups[0][1].first for groups in everywhere.values()), key=lambda one: one.case != ""))
        self.output.line("")
        if hidden := hidden or self.hidden:
            kinds = ", ".join(f"{count} {code}" for code, count in hidden.most_common())
            self._text(f"informational: {kinds} (show with --info)", "dim")
        if totals.known:
            self._text(f"{plain_count(totals.known, 'finding')} in the baseline are not shown", "dim")
        families += ", as far as it could be read" if totals.unread else ""
        families += ", as far as it is in the bundle" if totals.withheld else ""
        if totals.coverage is not None:
            self._coverage(totals.coverage)
        self._text(f"checked {families}: {totals_text(totals, seconds if self.output.terminal else None)}", "")
        for note in totals.notes:
            self._text(f"note: {printable(path_text(note))}", "dim")

    def _coverage(self, coverage: Coverage) -> None:
        """Write how much of the segments was checked over all runs."""
        shows_time = coverage.oldest and self.output.terminal  # so that the same disk always gives the same output
        oldest = f"; the oldest check was at {utc(coverage.oldest or 0)}" if shows_time else ""
        overdue = f"; {size_text(coverage.overdue)} are overdue" if coverage.overdue else ""
        checked = f"{size_text(coverage.bytes - coverage.unchecked)} of {size_text(coverage.bytes)}"
        self._text(f"over all runs: {checked} of segments checked{oldest}{overdue}", "bad" if overdue else "")
        if coverage.too_large:
            count = count_text(coverage.too_large, "segment is", "segments are")
            self._text(f"{count} larger than the budget and can never be read: raise --budget", "bad")

    def _what_to_do(self, repeated: list[Finding]) -> None:
        """Write the action for the first finding of each code and the command that shows more; codes with the same
        action together, errors first. `repeated`: findings that are in many partitions."""
        first: dict[str, Finding] = {}
        counts: Counter[str] = Counter()
        for story in (story for group in self.groups for story in group.stories):
            first.setdefault(story.first.code, story.first)
            counts[story.first.code] += story.codes[story.first.code]
        for finding in repeated:
            first.setdefault(finding.code, finding)
        actions: dict[tuple[str, ...], list[Finding]] = {}
        for finding in sorted(first.values(), key=lambda one: SEVERITIES.index(one.severity)):
            if (
                finding.severity == INFO != declaration(finding.code).severity
            ):  # legal here: the action is for the others
                continue
            actions.setdefault(finding.actions, []).append(finding)
        if actions:
            self.output.line("")
            self.output.line(self.output.paint("what to do", "head"))
        for todo, findings in actions.items():
            of_first = " (the first)" if any(PLACEHOLDER.search(declaration(one.code).fix) for one in findings) else ""
            codes = [f"{one.code}{of_first if counts[one.code] > 1 else ''}" for one in findings]
            self._text(f"  {', '.join(codes)}", STYLE[findings[0].severity])
            for action in todo:
                self._text(f"    do:   {action}", "", 10)
            for command in dict.fromkeys(filter(None, map(next_command, findings))):
                self.output.line(f"    next: {printable(path_text(command))}")  # in one line, to be copied

    def _everywhere(self) -> dict[tuple[str, str], list[tuple[PartitionFindings, FindingGroup]]]:
        """Remove warnings that occur in more than EVERYWHERE partitions from their groups; return them by code and
        case, which has an impact of its own."""
        by_case: dict[tuple[str, str], list[tuple[PartitionFindings, FindingGroup]]] = {}
        for group in self.groups:
            for story in group.stories:
                if story.first.severity != ERROR:
                    by_case.setdefault((story.first.code, story.first.case), []).append((group, story))
        repeated = {
            case: groups for case, groups in by_case.items() if len({id(group) for group, _ in groups}) > EVERYWHERE
        }
        for groups in repeated.values():
            for group, story in groups:
                group.stories.remove(story)
        return repeated

    def _fold(self, code: str, groups: list[tuple[PartitionFindings, FindingGroup]]) -> None:
        finding = groups[0][1].first
        names = list(dict.fromkeys(os.path.basename(os.path.abspath(group.name)) for group, _ in groups))
        shown = ", ".join(printable(path_text(name)) for name in names[:EVERYWHERE])
        head = f"  {finding.severity:7} {code}"
        self.output.line("")
        self.output.line(self.output.paint(count_text(len({id(group) for group, _ in groups}), "partition"), "head"))
        self.output.line(self.output.paint(head, STYLE[finding.severity]))
        self._text(f"          {printable(finding.message)}", "")
        self._text(f"          {shown} … (--json)", "")
        self._text(f"          impact: {printable(finding.consequence)}", "dim")

    def _verdict(self, totals: CheckTotals, all_places: int) -> None:
        errors, warnings = totals.findings[ERROR], totals.findings[WARNING]
        parts = [count_text(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
        places = f"{len(self.hit)} of {plain_count(all_places, 'place')}" if all_places > 1 else ""
        word, style = verdict(errors, warnings, totals)
        counts = ", ".join(parts) + (f" in {places}" if places and parts else "")
        headline = "; ".join([word + (f": {counts}" if counts else ""), *newer(self.newer), *incomplete(totals)])
        first, *rest = wrapped(headline, self.width, "  ")
        self.output.line(self.output.paint(word, style) + first[len(word) :])
        for line in rest:
            self.output.line(line)

    def _group(self, group: PartitionFindings) -> None:
        self.output.line("")
        self.output.line(
            self.output.paint(printable(path_text(group.name)) if group.name != "-" else "standard input", "head")
        )
        for story in group.stories:
            self._story(story, group.name)
        if group.not_shown:
            self._text(f"  and {plain_count(group.not_shown, 'more finding')} (--json)", "dim")

    def _story(self, story: FindingGroup, place: str) -> None:
        finding = story.first
        count = sum(story.codes.values())
        where = os.path.basename(finding.file) if finding.file != place else ""
        head = f"  {finding.severity:7} {finding.code}"
        position = f"  {printable(path_text(where))}" if where else ""
        if finding.size or finding.position:
            position += f" at byte {finding.position}"
            if finding.size:
                position += f", {count_text(finding.size, 'byte')}"
        if finding.offset is not None:
            position += f", offset {finding.offset}"
        first, *rest = wrapped(head + position, self.width, " " * 10)
        self.output.line(self.output.paint(head, STYLE[finding.severity]) + first[len(head) :])
        for line in rest:
            self.output.line(line)
        self._text(f"          {printable(finding.message)}", "")
        if len(story.names) > 1:
            self._text(f"          also missing: {printable(first_of(story.names[1:], NAMED))}", "")
        elif count > 1:
            kinds = ", ".join(f"{number} {code}" for code, number in story.codes.most_common())
            reach = f", offset {story.last_offset}" if story.last_offset is not None else ""
            self._text(
                f"          first of {plain_count(count, 'finding')} here ({kinds}), up to byte {story.end}{reach}", ""
            )
        if story.lost:
            self._text(f"          {story.lost}", "")
        self._text(f"          impact: {printable(finding.consequence)}", "dim")

    def _text(self, text: str, style: str, hanging: int = 0) -> None:
        indent = " " * (hanging or len(text) - len(text.lstrip()))
        for line in wrapped(text, self.width, indent or "  "):
            self.output.line(self.output.paint(line, style) if style else line)


def verdict(errors: int, warnings: int, totals: CheckTotals) -> tuple[str, str]:
    """Return the verdict and its style."""
    if errors:
        return "DAMAGED", "bad"
    if totals.nothing_read:
        return "NOTHING WAS READ", "bad"
    if totals.missing:
        return "INCOMPLETE", "bad"
    if totals.unread:
        return "NOT ALL WAS READ", "bad"
    if totals.coverage is not None and totals.coverage.unchecked:
        return "NOT ALL WAS CHECKED YET", "torn"
    if not (warnings or totals.files):
        return "NOTHING TO CHECK", "torn"
    return ("NO DAMAGE", "torn") if warnings else ("OK", "name")


def newer(messages: Iterable[str]) -> list[str]:
    """Return what only a release newer than the newest known one writes, for the headline of any verdict."""
    names = [*dict.fromkeys(messages)]
    return [printable(path_text(first_of(names)))] if names else []


def incomplete(totals: CheckTotals) -> list[str]:
    """Return what is missing, and how much was not read, for the headline of any verdict."""
    unread = [f"{count_text(len(totals.unread), 'path')} not read"] if totals.unread else []
    if totals.coverage is not None and totals.coverage.unchecked:
        unread.append(
            f"{size_text(totals.coverage.unchecked)} of {size_text(totals.coverage.bytes)} were never checked"
        )
    unread += [
        f"the {what} of {count_text(count, 'partition')} are not in the bundle and were not checked"
        for what, count in totals.withheld.items()
    ]
    return [printable(totals.missing.text), *unread] if totals.missing else unread


def totals_text(totals: CheckTotals, seconds: float | None) -> str:
    """Format the totals: 12 partitions, 96 files, 1.2 GiB, 3,910 batches, 652,915 records in 2.5 s. Pass None as
    `seconds` for a pipe, so that the same disk always gives the same output."""
    parts = [count_text(totals.partitions, "partition")] if totals.partitions else []
    parts += [count_text(totals.files, "file"), size_text(totals.bytes)]
    parts += [count_text(totals.batches, "batch", "batches"), totals.records_text]
    return ", ".join(parts) + (f" in {seconds:.1f} s" if seconds is not None else "")


class CodeTable(Sink[Declaration]):
    """The catalogue of findings as a table."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.table = Table(table_columns(Declaration), output)

    def add(self, answer: Declaration) -> None:
        self.table.add(answer)

    def end(self) -> None:
        self.table.flush()
        self.output.line(
            "\n* lower in some cases; checkpoint-beyond-log and file-unknown can be higher, too: see docs/findings.md"
        )
