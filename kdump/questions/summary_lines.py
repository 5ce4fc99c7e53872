"""Output lines shared by the reports of `kdump transactions` and `kdump producers`."""

from __future__ import annotations

from typing import Any

from kdump.check.finding import INFO, Finding
from kdump.render.escape import path_text, printable
from kdump.render.findings_report import STYLE
from kdump.render.stdout import Output

MAX_FINDINGS = 100
"""Maximum findings of a partition that are printed; further ones are only counted."""


class SummaryLines:
    """Writes wrapped, indented and styled lines; holds findings back until their partition has been shown."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.waiting: list[tuple[str, str, str]] = []
        self._unreported = 0

    def keep_finding(self, finding: Finding) -> None:
        """Keep a finding for `write`; informational ones are dropped."""
        if finding.severity != INFO:
            where = f"{file_text(finding.file)} at byte {finding.position}"
            offset = "" if finding.offset is None else f", offset {finding.offset}"
            line = f"  {finding.severity} {finding.code}, {where}{offset}: {printable(finding.message)}"
            self.keep(line, finding.code, STYLE[finding.severity])

    def keep(self, line: str, head: str, paint: str) -> None:
        """Keep a line for `write`."""
        if len(self.waiting) < MAX_FINDINGS:
            self.waiting.append((line, head, paint))
        else:
            self._unreported += 1

    def write(self) -> bool:
        """Write the lines that were kept. Returns True if there were any."""
        for line, head, paint in self.waiting:
            self.text(line, head, paint)
        if self._unreported:
            self.text(f"  … and {self._unreported} more; run kdump verify to list all")
        wrote = bool(self.waiting)
        self.waiting, self._unreported = [], 0
        return wrote

    def damages(self, count: int | None) -> None:
        """Write the number of damaged byte ranges that could not be taken into account."""
        if count:
            ranges = "1 damaged byte range" if count == 1 else f"{count} damaged byte ranges"
            self.text(f"  {ranges} could not be considered", ranges, "torn")

    def text(self, line: str, head: str = "", paint: str = "head") -> None:
        """Write the text; the first occurrence of `head` is styled."""
        self.output.text(line, head, paint if head else "")


def place_text(partition: Any) -> str:
    """Return a partition's name, or its path if the name is not known."""
    if partition.topic is not None:
        return printable(f"{partition.topic}-{partition.partition}")
    return printable(path_text(partition.path))


def file_text(path: str) -> str:
    """Return a file's directory and name: enough to distinguish it from others on one line."""
    return printable("/".join(path_text(path).split("/")[-2:]))
