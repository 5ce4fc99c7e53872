"""Output of `kdump explain` for people: each message with its meaning, what is on the disk, and what to do."""

from __future__ import annotations

from datetime import tzinfo
from textwrap import wrap
from typing import Any

from kdump.format.count_text import count_text
from kdump.incident.explain.answer import Evidence, Explanation, ExplanationSummary, FindingExplanation
from kdump.incident.explain.message import Message
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import TEXT, Column, Table
from kdump.render.times import iso

LABEL = 9
"""Width of the labels, with their indentation."""
SHORT = 300
"""Number of characters of a message that are shown without --full."""
LEVEL_STYLE = {"FATAL": "bad", "ERROR": "bad", "WARN": "torn"}
MOST_EXCEPTIONS = 3
"""Maximum number of exceptions that are shown of a message without --full."""
MAX_UNKNOWN = 20
"""Maximum number of unknown messages that are shown without --full."""


class ExplainReport(Sink[Any]):
    """Writes each explanation as it comes, after a line about the log. `several`: the log is one of several."""

    def __init__(self, output: Output, zone: tzinfo, *, full: bool, is_pasted: bool) -> None:
        self.output = output
        self.zone = zone
        self.full = full
        self.is_pasted = is_pasted
        self._waiting: list[Explanation] = []

    def add(self, answer: Any) -> None:
        if isinstance(answer, Explanation):
            self._waiting.append(answer)
        elif isinstance(answer, ExplanationSummary):
            self._log(answer)
        elif isinstance(answer, FindingExplanation):
            self._finding(answer)

    def end(self) -> None:
        for number, each in enumerate(self._waiting):
            self._explanation(each, number, 1)
        self._waiting = []

    def _log(self, summary: ExplanationSummary) -> None:
        known = [each for each in self._waiting if each.message is not None]
        unknown = [each for each in self._waiting if each.message is None]
        self._waiting = []
        if not self.is_pasted:
            self._headline(summary, known)
        for number, each in enumerate(known):
            if number or not self.is_pasted:
                self.output.line("")
            self._explanation(each, number + 1, len(known))
        if unknown:
            if known or not self.is_pasted:
                self.output.line("")
            self._unknown(unknown, summary)

    def _headline(self, summary: ExplanationSummary, known: list[Explanation]) -> None:
        name = "standard input" if summary.source == "-" else printable(path_text(summary.source))
        severe = summary.known + summary.unknown
        parts = [count_text(summary.lines, "line")]
        if severe:
            parts.append(f"{count_text(summary.known, 'message')} explained as {len(known)}")
            parts.append(f"{summary.unknown:,} unknown" if summary.unknown else "none unknown")
        else:
            parts.append("no message above INFO, and none that kdump knows")
        text = ", ".join(parts)
        if summary.firstTime is not None:
            text += f"; {iso(summary.firstTime, self.zone)} to {iso(summary.lastTime, self.zone)}"
        if summary.error is not None:
            text = f"NOT READ TO ITS END ({printable(summary.error)}); {text}"
        self.output.text(f"{name}: {text}", name, "head")

    def _explanation(self, found: Explanation, number: int, count: int) -> None:
        head = found.message or "unknown"
        title = (f"{number}. " if count > 1 else "") + " ".join(part for part in (found.level, head) if part)
        self.output.text(title + self._when(found), title, LEVEL_STYLE.get(found.level, "head"))
        if found.text:
            self._quote(found.text, found.exceptions)
        self._labelled("means", found.meaning)
        why = found.reason + (f" ({found.source}; {found.releases})" if found.source else "")
        self._labelled("why", why)
        self._labelled("impact", found.impact)
        others = [name for name in (*found.loggedAs, found.causedBy) if name]
        if others:
            self._labelled("with", "also: " + ", ".join(others))
        for index, evidence in enumerate(found.evidence):
            self._evidence(evidence, "on disk" if index == 0 else "")
        for index, command in enumerate(found.commands):
            self._labelled("run" if index == 0 else "", printable(command), is_command=True)
        self._labelled("do", found.action)
        if found.never:
            self._labelled("never", found.never, style="bad")
        more = [f"kdump explain {code}" for code in found.codes]
        if found.incident:
            more.insert(0, f"docs/incidents/{found.incident}.md")
        self._labelled("more", ", ".join(more))

    def _when(self, found: Explanation) -> str:
        parts = []
        if found.count > 1:
            parts.append(count_text(found.count, "time"))
        if found.first is not None:
            text = iso(found.first, self.zone)
            if found.last is not None and found.last != found.first:
                text += f" to {iso(found.last, self.zone)}"
            parts.append(text)
        if found.line and not self.is_pasted:
            parts.append(f"{'first in ' if found.count > 1 else ''}line {found.line}")
        return f"  {', '.join(parts)}" if parts else ""

    def _quote(self, text: str, exceptions: tuple[str, ...]) -> None:
        shown = exceptions if self.full else exceptions[:MOST_EXCEPTIONS]
        for each in (text, *shown):
            short = each if self.full or len(each) <= SHORT else each[:SHORT] + "…"
            self.output.text(f"  {printable(short)}", "", "")
        if len(exceptions) > len(shown):
            self.output.text(f"  … and {count_text(len(exceptions) - len(shown), 'more exception')} (--full)", "", "")

    def _evidence(self, evidence: Evidence, label: str) -> None:
        self._labelled(label, printable(path_text(evidence.shown)))

    def _unknown(self, found: list[Explanation], summary: ExplanationSummary) -> None:
        kinds = len(found)
        title = f"unknown: {count_text(summary.unknown, 'message')} of {count_text(kinds, 'kind')}"
        self.output.text(f"{title}, which kdump does not explain; the first of each:", title, "torn")
        shown = found if self.full else found[:MAX_UNKNOWN]
        for each in shown:
            level = f"{each.level} " if each.level else ""
            logger = f"{printable(each.logger)}: " if each.logger else ""
            text = each.text if self.full or len(each.text) <= SHORT else each.text[:SHORT] + "…"
            self.output.text(f"  {level}{logger}{printable(text)}{self._when(each)}", each.level, "torn")
            for exception in each.exceptions[:1]:
                self.output.text(f"    {printable(exception[:SHORT])}", "", "")
        if kinds > len(shown):
            self.output.text(f"  … and {count_text(kinds - len(shown), 'more kind')} (--full)", "", "")
        if summary.notListed:
            self.output.text(f"  … and {count_text(summary.notListed, 'message')} of further kinds", "", "")

    def _finding(self, found: FindingExplanation) -> None:
        code = found.code
        unless = f" ({code.unless})" if code.unless else ""
        self.output.text(f"{code.code}: a finding of kdump verify, {code.severity}{unless}", code.code, "head")
        self._labelled("means", code.meaning)
        self._labelled("impact", code.consequence.replace("{offset}", "N"))
        for index, evidence in enumerate(found.evidence):
            self._evidence(evidence, "on disk" if index == 0 else "")
        for index, command in enumerate(found.commands):
            self._labelled("run" if index == 0 else "", printable(command), is_command=True)
        self._labelled("do", code.fix)
        self._labelled("Kafka", code.source)
        if found.messages:
            self._labelled("logs", "messages that belong to it: " + ", ".join(found.messages))
        more = [f"docs/incidents/{each}.md" for each in found.incidents]
        self._labelled("more", ", ".join([f"docs/findings.md#{code.code}", *more]))

    def _labelled(self, label: str, text: str, *, style: str = "name", is_command: bool = False) -> None:
        if not text:
            return
        head = f"  {label}{':' if label else ''}".ljust(LABEL + 2)
        width = self.output.width
        if width is None or is_command:
            lines = [head + text]
        else:
            lines = wrap(
                text, width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
            ) or [head]
        if label:
            lines[0] = lines[0].replace(f"{label}:", self.output.paint(f"{label}:", style), 1)
        for line in lines:
            self.output.line(line)


class MessageTable(Sink[Message]):
    """The messages that kdump knows, as a table."""

    def __init__(self, output: Output) -> None:
        columns = [
            Column("name", "NAME", lambda message: message.name),
            Column("releases", "RELEASES", lambda message: message.releases, least=10, cuts=TEXT),
            Column("meaning", "MEANING", lambda message: message.meaning, least=20, cuts=TEXT),
        ]
        self.table = Table(columns, output)

    def add(self, answer: Message) -> None:
        self.table.add(answer)

    def end(self) -> None:
        self.table.flush()
