"""Output of `kdump explain` for people: each message with its meaning, what is on the disk, and what to do."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from kdump.format.count_text import count_text
from kdump.incident.explain.answer import Evidence, Explanation, ExplanationSummary, FindingExplanation
from kdump.incident.explain.message import Message
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.table import Table
from kdump.render.times import iso
from kdump.render.wrap import wrapped

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
        self.output, self.zone, self.full, self.is_pasted = output, zone, full, is_pasted
        self._waiting: list[Explanation] = []

    def add(self, answer: Any) -> None:
        if isinstance(answer, Explanation):
            self._waiting.append(answer)
        elif isinstance(answer, ExplanationSummary):
            self._log(answer)
        elif isinstance(answer, FindingExplanation):
            self._finding(answer)

    def end(self) -> None:
        for number, explanation in enumerate(self._waiting):
            self._explanation(explanation, number, 1)
        self._waiting = []

    def _log(self, summary: ExplanationSummary) -> None:
        explained = [explanation for explanation in self._waiting if explanation.message is not None]
        unknown = [explanation for explanation in self._waiting if explanation.message is None]
        self._waiting = []
        if not self.is_pasted:
            self._headline(summary, explained)
        for number, explanation in enumerate(explained):
            if number or not self.is_pasted:
                self.output.line("")
            self._explanation(explanation, number + 1, len(explained))
        if unknown:
            if explained or not self.is_pasted:
                self.output.line("")
            self._unknown(unknown, summary)

    def _headline(self, summary: ExplanationSummary, explained: list[Explanation]) -> None:
        name = "standard input" if summary.source == "-" else printable(path_text(summary.source))
        severe = summary.known + summary.unknown
        parts = [count_text(summary.lines, "line")]
        if severe:
            parts.append(f"{count_text(summary.known, 'message')} explained as {len(explained)}")
            parts.append(f"{summary.unknown:,} unknown" if summary.unknown else "none unknown")
        else:
            parts.append("no message above INFO, and none that kdump knows")
        sentence = ", ".join(parts)
        if summary.firstTime is not None:
            sentence += f"; {iso(summary.firstTime, self.zone)} to {iso(summary.lastTime, self.zone)}"
        if summary.error is not None:
            sentence = f"NOT READ TO ITS END ({printable(summary.error)}); {sentence}"
        self.output.text(f"{name}: {sentence}", name, "head")

    def _explanation(self, explanation: Explanation, number: int, count: int) -> None:
        head = explanation.message or "unknown"
        title = (f"{number}. " if count > 1 else "") + " ".join(part for part in (explanation.level, head) if part)
        self.output.text(title + self._when(explanation), title, LEVEL_STYLE.get(explanation.level, "head"))
        if explanation.text:
            self._quote(explanation.text, explanation.exceptions)
        self._labelled("means", explanation.meaning)
        why = explanation.reason + (f" ({explanation.source}; {explanation.releases})" if explanation.source else "")
        self._labelled("why", why)
        self._labelled("impact", explanation.impact)
        others = [name for name in (*explanation.loggedAs, explanation.causedBy) if name]
        if others:
            self._labelled("with", "also: " + ", ".join(others))
        for index, evidence in enumerate(explanation.evidence):
            self._evidence(evidence, "on disk" if index == 0 else "")
        for index, command in enumerate(explanation.commands):
            self._labelled("run" if index == 0 else "", printable(command), is_command=True)
        self._labelled("do", explanation.action)
        if explanation.never:
            self._labelled("never", explanation.never, style="bad")
        more = [f"kdump explain {code}" for code in explanation.codes]
        if explanation.incident:
            more.insert(0, f"docs/incidents/{explanation.incident}.md")
        self._labelled("more", ", ".join(more))

    def _when(self, explanation: Explanation) -> str:
        parts = []
        if explanation.count > 1:
            parts.append(count_text(explanation.count, "time"))
        if explanation.first is not None:
            time = iso(explanation.first, self.zone)
            if explanation.last is not None and explanation.last != explanation.first:
                time += f" to {iso(explanation.last, self.zone)}"
            parts.append(time)
        if explanation.line and not self.is_pasted:
            parts.append(f"{'first in ' if explanation.count > 1 else ''}line {explanation.line}")
        return f"  {', '.join(parts)}" if parts else ""

    def _quote(self, text: str, exceptions: tuple[str, ...]) -> None:
        shown = exceptions if self.full else exceptions[:MOST_EXCEPTIONS]
        for line in (text, *shown):
            short = line if self.full or len(line) <= SHORT else line[:SHORT] + "…"
            self.output.text(f"  {printable(short)}", "", "")
        if len(exceptions) > len(shown):
            self.output.text(f"  … and {count_text(len(exceptions) - len(shown), 'more exception')} (--full)", "", "")

    def _evidence(self, evidence: Evidence, label: str) -> None:
        self._labelled(label, printable(path_text(evidence.shown)))

    def _unknown(self, explanations: list[Explanation], summary: ExplanationSummary) -> None:
        kinds = len(explanations)
        title = f"unknown: {count_text(summary.unknown, 'message')} of {count_text(kinds, 'kind')}"
        self.output.text(f"{title}, which kdump does not explain; the first of each:", title, "torn")
        shown = explanations if self.full else explanations[:MAX_UNKNOWN]
        for explanation in shown:
            level = f"{explanation.level} " if explanation.level else ""
            logger = f"{printable(explanation.logger)}: " if explanation.logger else ""
            text = explanation.text if self.full or len(explanation.text) <= SHORT else explanation.text[:SHORT] + "…"
            self.output.text(f"  {level}{logger}{printable(text)}{self._when(explanation)}", explanation.level, "torn")
            for exception in explanation.exceptions[:1]:
                self.output.text(f"    {printable(exception[:SHORT])}", "", "")
        if kinds > len(shown):
            self.output.text(f"  … and {count_text(kinds - len(shown), 'more kind')} (--full)", "", "")
        if summary.notListed:
            self.output.text(f"  … and {count_text(summary.notListed, 'message')} of further kinds", "", "")

    def _finding(self, explanation: FindingExplanation) -> None:
        code = explanation.code
        unless = f" ({code.unless})" if code.unless else ""
        self.output.text(f"{code.code}: a finding of kdump verify, {code.severity}{unless}", code.code, "head")
        self._labelled("means", code.meaning)
        self._labelled("impact", code.consequence.replace("{offset}", "N"))
        for index, evidence in enumerate(explanation.evidence):
            self._evidence(evidence, "on disk" if index == 0 else "")
        for index, command in enumerate(explanation.commands):
            self._labelled("run" if index == 0 else "", printable(command), is_command=True)
        for index, action in enumerate(code.actions):
            self._labelled("do" if index == 0 else "", action.conditional)
        self._labelled("Kafka", code.source)
        if explanation.messages:
            self._labelled("logs", "messages that belong to it: " + ", ".join(explanation.messages))
        more = [f"docs/incidents/{incident}.md" for incident in explanation.incidents]
        self._labelled("more", ", ".join([f"docs/findings.md#{code.code}", *more]))

    def _labelled(self, label: str, sentence: str, *, style: str = "name", is_command: bool = False) -> None:
        if not sentence:
            return
        head = f"  {label}{':' if label else ''}".ljust(LABEL + 2)
        width = self.output.width
        if width is None or is_command:
            lines = [head + sentence]
        else:
            lines = wrapped(sentence, width, " " * len(head), head)
        if label:
            lines[0] = lines[0].replace(f"{label}:", self.output.paint(f"{label}:", style), 1)
        for line in lines:
            self.output.line(line)


class MessageTable(Sink[Message]):
    """The messages that kdump knows, as a table."""

    def __init__(self, output: Output) -> None:
        self.table = Table(table_columns(Message), output)

    def add(self, answer: Message) -> None:
        self.table.add(answer)

    def end(self) -> None:
        self.table.flush()
