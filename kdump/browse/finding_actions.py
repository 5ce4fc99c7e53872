"""Actions that cover a whole partition, or all of them: showing findings and transactions, and moving to them."""

from __future__ import annotations

from collections.abc import Callable

from kdump.browse import background_verify as checks
from kdump.browse.background_jobs import Job
from kdump.browse.background_verify import BackgroundVerify
from kdump.browse.hex_pane import spot
from kdump.browse.list_screens import FindingsScreen, TransactionsScreen
from kdump.browse.navigation import Navigation
from kdump.check.finding import Finding
from kdump.forensics.answers import Transaction
from kdump.log.selection import Selection
from kdump.render.escape import path_text, printable


class FindingActions(Navigation):
    """Runs the checks of kdump verify and the analysis of kdump transactions."""

    def next_key(self, text: str, then: Callable[[str], None]) -> None:
        """Show a question, and call `then` with the character of the next key, unless that is Esc or has none."""
        self.question, self.takes_key = printable(path_text(f" {text}  (Esc cancels)")), then
        self.show_status(self.message)

    def _unfilter(self) -> str:
        """Switch the filter off, because it may hide the target of a jump. Returns a note for the status line."""
        if not self.options:
            return ""
        self.options, self.browser.places.selection = "", Selection()
        return " (filter switched off)"

    def _here(self) -> str:
        """Return the path that a check covers: the current partition's directory, or else the browsed path."""
        browser = self.browser
        inside = browser.depth > 0 and browser.directory()
        return inside or browser.places.path

    def _checked(self, *, again: bool = False) -> BackgroundVerify:
        """Return the check that covers the current place; start one if there is none. `again`: also if it was
        stopped."""
        path = self._here()
        if self.check is not None and self.check.covers(path) and not (again and self.check.stopped):
            return self.check
        check = self.check = BackgroundVerify(path)

        def hear(finding: Finding) -> None:
            if check.add(finding) and check is self.check and self.awaited:
                self._step(self.awaited)

        def work(job: Job) -> None:
            def size(count: int) -> None:
                job.total = count

            limits = self.browser.places.limits
            checks.run(check, limits, lambda finding: self.jobs.call_in_app(hear, finding), job.add, size)

        def done(_: None) -> None:
            check.running = False
            if self.awaited:
                self._step(self.awaited)
            elif not check.serious:
                self.trouble(check.summary())

        self.jobs.start("check", f"checking {printable(path_text(path))}", work, done)
        return check

    def run_next(self, argument: str) -> None:
        self._checked()
        self._step(1)

    def run_previous(self, argument: str) -> None:
        self._checked()
        self._step(-1)

    def _step(self, direction: int) -> None:
        check = self.check
        assert check is not None
        finding = check.step(direction)
        self.awaited = 0
        if finding is not None:
            self._to_finding(finding)
        elif direction > 0 and check.running:
            self.awaited = direction
        elif direction > 0 and check.stopped:
            self._checked(again=True)
            self._step(direction)
        elif not check.serious:
            self.trouble(check.summary())
        else:
            self.trouble(f"no further finding: {check.summary()}" if direction > 0 else "no earlier finding")

    def _to_finding(self, finding: Finding) -> None:
        self.finding = finding
        assert self.check is not None
        note = self._unfilter()
        serious = [n for n, each in enumerate(self.check.findings) if each.severity != "info"]
        number = serious.index(self.check.place) + 1 if self.check.place in serious else 0
        description = (
            f" {number} of {len(serious)}{'…' if self.check.running else ''}{note}: {finding.severity} {finding.code}"
        )

        def then() -> None:
            self.dumped = None
            self.found = spot(self.browser.level, self.browser.level.row)
            self.message = (
                printable(f"{description}: {finding.message}"),
                "bad" if finding.severity == "error" else "torn",
            )

        browser = self.browser
        self._look(
            "going to the finding",
            lambda job: browser.reach(finding.file, position=finding.position, on_progress=job.report_progress),
            then,
        )

    def run_findings(self, argument: str) -> None:
        check = self._checked()

        def chosen(number: int | None) -> None:
            if number is not None:
                check.place = number
                self._to_finding(check.findings[number])

        self.push_screen(FindingsScreen(check), chosen)

    def run_transactions(self, argument: str) -> None:
        places = self.browser.places

        def chosen(found: Transaction | None) -> None:
            if found is None:
                return
            note = self._unfilter()
            description = f" {found.state} transaction of producer {found.producerId}/{found.producerEpoch}"
            description += f" ({found.transactionalId})" if found.transactionalId else ""
            description += f", offsets {found.firstOffset}..{found.lastOffset}, {found.records} records"
            description += f", marker at {found.markerOffset}" if found.markerOffset is not None else ""

            def then() -> None:
                self.message = (printable(description + note), "")

            browser = self.browser
            self._look(
                "going to the transaction",
                lambda job: browser.reach(found.file, position=found.position, on_progress=job.report_progress),
                then,
            )

        self.push_screen(TransactionsScreen(self._here(), places.limits, places.maker.zone, self.jobs), chosen)
