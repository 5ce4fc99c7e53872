"""Runs kdump verify on a path in the background of kdump browse."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from kdump.check.engine.units import units
from kdump.check.finding import ERROR, INFO, Finding
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.format.count_text import count_text
from kdump.log.directory_listing import is_inside, real_path
from kdump.log.fault_tolerant import careful_source
from kdump.log.run import Run

MAX_FINDINGS = 10_000
"""Maximum number of findings that are kept."""


@dataclass
class BackgroundVerify:
    """One verify run over `path`. `place`: index of the current finding, -1 before the first; `left_out`: number of
    findings above MAX_FINDINGS; `info`: number of informational findings that are kept."""

    path: str
    findings: list[Finding] = field(default_factory=list)
    place: int = -1
    running: bool = True
    stopped: bool = False
    """Whether the user ended it before all was checked."""
    left_out: int = 0
    info: int = 0
    totals: CheckTotals = field(default_factory=CheckTotals)

    def covers(self, path: str) -> bool:
        return is_inside(real_path(path), real_path(self.path))

    def add(self, finding: Finding) -> bool:
        """Add a finding. Return True if it is an error or a warning; informational findings are listed, but skipped by
        `step`."""
        if len(self.findings) >= MAX_FINDINGS:
            self.left_out += 1
            return False
        self.findings.append(finding)
        self.info += finding.severity == INFO
        return finding.severity != INFO

    def step(self, direction: int) -> Finding | None:
        """Return the next or previous error or warning and make it current; None if there is none."""
        place = self.place + direction
        while 0 <= place < len(self.findings):
            if self.findings[place].severity != INFO:
                self.place = place
                return self.findings[place]
            place += direction
        return None

    @property
    def serious(self) -> int:
        return len(self.findings) - self.info

    @property
    def serious_text(self) -> str:
        errors = sum(each.severity == ERROR for each in self.findings)
        return f"{count_text(errors, 'error')}, {count_text(self.serious - errors, 'warning')}"

    def summary(self) -> str:
        """Return a one-line summary."""
        if self.running:
            return f"checking {self.path} …"
        totals, unread = self.totals, self.totals.unread
        read = f"{count_text(totals.partitions, 'partition')}, {count_text(totals.files, 'file')}, "
        read += f"{count_text(totals.batches, 'batch', 'batches')} read"
        if self.stopped:
            return f"STOPPED, not all was checked: {self.serious_text} so far in {self.path}: {read}"
        found = self.serious_text if self.serious else "no error or warning"
        if not unread:
            return f"{found} in {self.path}: {read}"
        return f"NOT READ: {count_text(len(unread), 'place')}; {found} in the rest of {self.path}: {read}; {unread[0]}"


def run(
    check: BackgroundVerify,
    run: Run,
) -> None:
    """Run the check. `run.found` is called with each finding. Raises Cancelled from `run.more`."""
    options = Options.of(
        run, now=int(time.time() * 1000), open_source=careful_source, unreadable=check.totals.add_unreadable
    )
    work = list(units((check.path,), options))
    run.expect(sum(unit.size for unit in work))
    for unit in work:
        run.more(0)
        for finding in unit.run(check.totals):
            run.found(finding)
