"""Output of `kdump bundle` for people: one line."""

from __future__ import annotations

from kdump.format.count_text import count_text
from kdump.questions.bundle.run import BundleSummary
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output


class BundleReport(Sink[BundleSummary]):
    """Writes what is in the bundle, and what this run did."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def add(self, answer: BundleSummary) -> None:
        described = f"{size_text(answer.segmentBytes)} of segments in {size_text(answer.bundleBytes)}"
        directories = count_text(answer.directories, "directory", "directories")
        done = directories
        if answer.written != answer.directories:
            done = f"{answer.written:,} of {directories} had changed"
        removed = f", {answer.removed:,} were removed" if answer.removed else ""
        unread = f"; {count_text(answer.unread, 'path')} could not be read" if answer.unread else ""
        left = (
            f"; {count_text(answer.leftOut, 'file or batch', 'files and batches')} left out" if answer.leftOut else ""
        )
        self.output.line(f"{printable(path_text(answer.out))}: {described}; {done}{removed}{unread}{left}")
