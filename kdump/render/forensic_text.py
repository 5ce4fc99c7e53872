"""Lines that the reports of `kdump transactions` and `kdump producers` have in common."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from kdump.check.catalogue import INFO
from kdump.check.finding import Finding
from kdump.forensics.answers import Difference
from kdump.render.escape import path_text, printable
from kdump.render.output import Output
from kdump.render.report import STYLE
from kdump.render.style import painter

MOST = 100
"""Findings of a partition that are told; of those beyond only the number."""


class Lines:
    """Wrapped, indented and marked lines on an output; findings wait until their partition has been shown."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.paint = painter(output.colour)
        self.waiting: list[Finding | Difference] = []
        self._untold = 0

    def keep(self, said: Finding | Difference) -> None:
        """To be written by `write`; what is legal is not."""
        if isinstance(said, Finding) and said.severity == INFO:
            return
        if len(self.waiting) < MOST:
            self.waiting.append(said)
        else:
            self._untold += 1

    def write(self) -> bool:
        """Write the findings that wait; whether there were any."""
        for each in self.waiting:
            if isinstance(each, Finding):
                where = f"{file_text(each.file)} at {each.position}"
                offset = "" if each.offset is None else f", offset {each.offset}"
                text = f"  {each.severity} {each.code}, {where}{offset}: {printable(each.message)}"
                self.text(text, each.code, STYLE[each.severity])
            else:
                where = file_text(each.file) + (f" at {each.position}" if each.offset is not None else "")
                text = f"  differs, {printable(each.transactionalId)}, producer {each.producerId} epoch "
                text += f"{each.producerEpoch}, {where}: {printable(each.message)} (offset {each.coordinatorOffset} of "
                text += f"{file_text(each.coordinator)})"
                self.text(text, "differs", "bad")
        if self._untold:
            self.text(f"  … and {self._untold} more: kdump verify tells all")
        told = bool(self.waiting)
        self.waiting, self._untold = [], 0
        return told

    def damages(self, count: int) -> None:
        """What could not be taken into account."""
        if count:
            many = "1 damaged stretch" if count == 1 else f"{count} damaged stretches"
            self.text(f"  {many} could not be taken into account", many, "torn")

    def text(self, text: str, head: str = "", paint: str = "head") -> None:
        """The text, in as many lines as it takes; `head` is painted where it comes first."""
        indent = " " * (len(text) - len(text.lstrip()))
        width = self.output.width
        lines = [text]
        if width is not None:
            rest = indent + "  "
            lines = wrap(text.lstrip(), width, initial_indent=indent, subsequent_indent=rest, break_on_hyphens=False)
        for number, line in enumerate(lines):
            self.output.line(line.replace(head, self.paint(head, paint), 1) if head and number == 0 else line)


def place_text(partition: Any) -> str:
    """A partition by its name; what was given by its path, where that does not say one."""
    if partition.topic is not None:
        return printable(f"{partition.topic}-{partition.partition}")
    return printable(path_text(partition.path))


def file_text(path: str) -> str:
    """A file by its directory and name: what tells it from others, and fits a line."""
    return printable("/".join(path_text(path).split("/")[-2:]))
