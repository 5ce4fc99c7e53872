"""Text report of `kdump reindex`: one row per segment, followed by what was wrong with its indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.format.count_text import count_text, plain_count
from kdump.log.file_kinds import TXN_INDEX
from kdump.problems.problem import title_of
from kdump.questions.reindex.run import ENDINGS, Reindexed, ReindexSummary
from kdump.questions.reindex.segment import TRUNCATES, RecoveryEnd
from kdump.questions.reindex.verdict import (
    IDENTICAL,
    LEGAL,
    MISSING,
    REASONS,
    WRONG,
    Verdict,
    WrongEntry,
)
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.table import Table

MAX_SHOWN = 3
"""Maximum wrong entries per file, and damaged byte ranges per segment, that are printed unless --full is given."""


class ReindexReport(Sink[Reindexed | ReindexSummary]):
    """Writes the results of segments, one after the other. Those whose indexes are identical are only counted, unless
    `everything` is asked for or the user has `named` them. `out`: where the rebuilt indexes were written."""

    def __init__(
        self,
        output: Output,
        *,
        full: bool = False,
        everything: bool = False,
        named: tuple[str, ...] = (),
        out: str | None = None,
    ) -> None:
        self.output = output
        self.full = full
        self.everything = everything
        self.named = named
        self.out = out
        self.hidden = 0
        self.table = Table(table_columns(Reindexed), output, full=full)
        self.written = False

    def add(self, answer: Reindexed | ReindexSummary) -> None:
        if isinstance(answer, ReindexSummary):
            self._summary(answer)
        elif self.everything or answer.file in self.named or not answer.is_ordinary:
            self.write(answer)
        else:
            self.hidden += 1

    def write(self, made: Reindexed) -> None:
        """Write a segment's row, followed by its problems and notes."""
        self.written = True
        is_bad = not made.is_valid or made.is_cut or not made.is_rebuilt
        self.table.add(made, "bad" if is_bad else "")
        for ending in made.rebuilt.endings[: None if self.full else MAX_SHOWN]:
            self._line(_ending(made, ending), "" if ending.is_usual else "bad")
        if len(made.rebuilt.endings) > MAX_SHOWN and not self.full:
            self._line(f"  and {len(made.rebuilt.endings) - MAX_SHOWN} more damaged byte ranges (--full, --json)")
        for verdict in made.verdicts:
            for line in self._verdict(verdict):
                self._line(line)
        for note in made.notes:
            self._line(f"  note: {note}")

    def _summary(self, summary: ReindexSummary) -> None:
        self.table.flush()
        if not summary.segments:
            return
        if self.written:
            self.output.line("")
        names = (IDENTICAL, LEGAL, WRONG, MISSING)
        statuses = ", ".join(f"{getattr(summary, name):,} {name}" for name in names if getattr(summary, name)) or "none"
        line = f"{count_text(summary.segments, 'segment')}; indexes: {statuses}"
        if self.hidden:
            shown = count_text(self.hidden, "segment with identical indexes is", "segments with identical indexes are")
            line += f"; {shown} not shown; use --all"
        self.output.text(line)
        if summary.written:
            self.output.text(f"{count_text(summary.written, 'file')} written to {self.out}; {title_of('reindex-use')}")
        if summary.wrong or summary.missing or summary.cut or summary.refused:
            self._next(summary)

    def _next(self, summary: ReindexSummary) -> None:
        self.output.line("")
        self.output.text("next steps")
        is_wrong = summary.wrong or summary.missing
        if self.out is None and is_wrong:
            self.output.text("  " + title_of("reindex-use", "write"))
        elif is_wrong:
            self.output.text("  " + title_of("reindex-use", "replace", out=self.out))
        self.output.text("  " + title_of("reindex-use", "damaged" if summary.cut or summary.refused else "recovery"))

    def _line(self, text: str, style: str = "") -> None:
        self.table.line(printable(path_text(text)), style)

    def _verdict(self, verdict: Verdict) -> Iterator[str]:
        name = ENDINGS[verdict.kind]
        if verdict.status == MISSING and verdict.kind is TXN_INDEX:
            aborted = (
                f"{verdict.rebuiltEntries:,} transaction{'s were' if verdict.rebuiltEntries > 1 else ' was'} aborted"
            )
            yield "  " + title_of("reindex-end", "noTxnIndex", name=name, aborted=aborted)
        if verdict.status in (LEGAL, WRONG):
            for reason, count in verdict.reasons.items():
                times = f" ({count:,} times)" if count > 1 else ""
                yield f"  {name}, legal: {REASONS[reason]}{times}"
        wrong_entries = verdict.wrong[: None if self.full else MAX_SHOWN]
        for wrong in wrong_entries:
            yield f"  {name}, {wrong.severity}: {_wrong(wrong)}"
        more = verdict.wrongCount - len(wrong_entries)
        if more:
            yield f"  {name}, {more:,} more {'is' if more == 1 else 'are'} wrong or missing (--full, --json)"


def _wrong(wrong: WrongEntry) -> str:
    expected = "" if wrong.expected is None else _values(wrong.expected)
    if wrong.found is None:
        where = "" if wrong.position is None else f"byte {wrong.position}: "
        return f"{where}{wrong.what}" + (f": {expected}" if expected else "")
    line = f"entry {wrong.number} at byte {wrong.position}: {wrong.what}"
    return f"{line}; expected {expected}" if expected and expected != _values(wrong.found) else line


def _values(values: dict[str, Any]) -> str:
    return " ".join(f"{name} {value}" for name, value in values.items() if name != "version")


def _ending(made: Reindexed, ending: RecoveryEnd) -> str:
    left = made.rebuilt.size - ending.position
    case = "" if ending.is_usual else ending.does
    line = f"  at byte {ending.position} of {made.rebuilt.size}, {ending.reason}: "
    line += title_of("reindex-end", case, left=count_text(left, "byte"))
    if case == TRUNCATES and made.segmentsBehind:
        line += ", " + title_of("reindex-end", "deletes", later=plain_count(made.segmentsBehind, "segment"))
    if case == TRUNCATES and ending.sound is not None:
        line += f"; a valid batch starts at byte {ending.sound}"

    return line
