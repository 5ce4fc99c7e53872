"""Output lines shared by the reports of `kdump transactions` and `kdump producers`."""

from __future__ import annotations

from typing import Any

from kdump.check.finding import INFO, Finding
from kdump.forensics.answers import Difference
from kdump.render.escape import path_text, printable
from kdump.render.findings_report import STYLE
from kdump.render.stdout import Output

MAX_FINDINGS = 100
"""Maximum findings of a partition that are printed; further ones are only counted."""


class SummaryLines:
    """Writes wrapped, indented and styled lines; holds findings back until their partition has been shown."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.waiting: list[Finding | Difference] = []
        self._unreported = 0

    def keep(self, finding: Finding | Difference) -> None:
        """Keep a finding or difference for `write`; informational findings are dropped."""
        if isinstance(finding, Finding) and finding.severity == INFO:
            return
        if len(self.waiting) < MAX_FINDINGS:
            self.waiting.append(finding)
        else:
            self._unreported += 1

    def write(self) -> bool:
        """Write the findings that were kept. Returns True if there were any."""
        for each in self.waiting:
            if isinstance(each, Finding):
                where = f"{file_text(each.file)} at byte {each.position}"
                offset = "" if each.offset is None else f", offset {each.offset}"
                text = f"  {each.severity} {each.code}, {where}{offset}: {printable(each.message)}"
                self.text(text, each.code, STYLE[each.severity])
            else:
                where = file_text(each.file) + (f" at byte {each.position}" if each.offset is not None else "")
                text = f"  differs, {printable(each.transactionalId)}, producer {each.producerId} epoch "
                text += f"{each.producerEpoch}, {where}: {printable(each.message)} (offset {each.coordinatorOffset} of "
                text += f"{file_text(each.coordinator)})"
                self.text(text, "differs", "bad")
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

    def text(self, text: str, head: str = "", paint: str = "head") -> None:
        """Write the text; the first occurrence of `head` is styled."""
        self.output.text(text, head, paint if head else "")


def place_text(partition: Any) -> str:
    """Return a partition's name, or its path if the name is not known."""
    if partition.topic is not None:
        return printable(f"{partition.topic}-{partition.partition}")
    return printable(path_text(partition.path))


def file_text(path: str) -> str:
    """Return a file's directory and name: enough to distinguish it from others on one line."""
    return printable("/".join(path_text(path).split("/")[-2:]))
