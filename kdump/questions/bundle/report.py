"""Output of `kdump bundle` for people: one line."""

from __future__ import annotations

from kdump.format.count_text import count_text
from kdump.log.bundle_tree import Bundle
from kdump.questions.bundle.run import BundleSummary
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.times import iso


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


def bundle_note(bundle: Bundle) -> str:
    """Return what to tell the user once about a bundle that is read in place of a disk."""
    made = bundle.manifest
    sources = ", ".join(map(path_text, made.directories))
    lacks = "records of clients" if not made.topics else "records of other topics"
    what = [lacks] if made.internal else ["records"]
    what += ["results of checksums"] if made.depth == "headers" else []
    note = f"{path_text(bundle.path)}: a bundle of {sources} on {made.host}, made {iso(made.created)}"
    note += f"; it has no {' and no '.join(what)}"
    note += "; its names are replaced" if made.redacted is not None else ""
    return note if made.complete else f"{note}. IT IS NOT COMPLETE: run kdump bundle again"
