"""What the parts of an examination report to: items go to the output as soon as they are known. And the time that is
spent on a question."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kdump.check.finding import ERROR, Finding, problem_of
from kdump.format.count_text import count_text
from kdump.incident.doctor.answer import Item, Question
from kdump.incident.doctor.causes import place_of
from kdump.io.errors import ReadingStopped, SourceError, is_gone
from kdump.io.run import Run
from kdump.problems.catalogue import OLD, ORDER, USUAL, declaration
from kdump.problems.problem import Problem, asks_nothing
from kdump.text import shell_words

AnyRun = TypeVar("AnyRun", bound=Run)
PLACE = ("topic", "partition", "file", "position", "offset")
TEXTS = ("impact", "actions", "named", "never", "covers")
AS_READ = "; as far as the files could be read"
"""At the end of an answer that would otherwise say more than is known."""


class OutOfTime(Exception):
    """The time for a question is over: what it has found so far is its answer."""


class TimeLimit:
    """So many seconds from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def is_over(self) -> bool:
        return self._clock() >= self._end

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - self._clock())

    def part(self, share: float) -> TimeLimit:
        """Return a limit of a share of what is left."""
        return TimeLimit(self.left * share, self._clock)

    def raise_if_over(self) -> None:
        """Raise OutOfTime if the time is over."""
        if self.is_over:
            raise OutOfTime

    def stop_reading(self) -> None:
        """Raise ReadingStopped if the time is over: a check then ends before the next batch, and draws no conclusion
        from what it did not read."""
        if self.is_over:
            raise ReadingStopped("out of time")


@dataclass
class Examination:
    """The examination of one question. `emit` takes each item; `run` is that of the caller; `now` is in epoch ms;
    `unlisted`: which directories could not be listed, and why; `is_running`: whether a broker runs on a path."""

    question: Question
    emit: Callable[[Any], None]
    run: Run
    limit: TimeLimit
    now: int
    timeout: int
    unlisted: list[str] = field(default_factory=list)
    is_running: Callable[[str], bool | None] = lambda _: None
    has_cause: Callable[..., bool] = lambda code, question, *places: False
    """Whether an item explains a problem, given its code and question, at all of its places."""

    @property
    def is_partial(self) -> bool:
        """Whether something could not be read of what the question is about."""
        return bool(self.question.unread or self.unlisted)

    def answer(self, sentence: str, label: str) -> None:
        """Add to the answer of the question. `label`: what the sentence is about (Disks.cluster_label)."""
        before = f"{self.question.answer}; " if self.question.answer else ""
        self.question.answer = before + (f"{label}: {sentence}" if label else sentence)

    def item(self, priority: int, severity: str, code: str, source: str, title: str, **more: Any) -> None:
        """Report an item. `more`: other fields of Item."""
        self.question.items += 1
        self.emit(Item(priority, self.question.question, severity, code, source, title, **more))

    def report(
        self,
        problem: Problem | Finding,
        source: str,
        severity: str = "",
        urgency: str = "",
        *,
        at: object = None,
        **more: Any,
    ) -> None:
        """Report a problem as an item. `severity`, `urgency`: in place of those of the catalogue; `at`: what has the
        topic, the partition, the file and the position in it, as far as it has them; `more`: other fields of Item."""
        problem = problem.given({"running": self.is_running(source)})
        declared = declaration(problem.code)
        severity = severity or declared.severity
        stated = problem_of(problem) if isinstance(problem, Finding) else problem
        texts: dict[str, Any] = {name: getattr(stated, name) for name in TEXTS}
        is_old = severity != ERROR and asks_nothing(stated)
        urgency = urgency or (OLD if is_old else declared.urgency or USUAL[severity])
        place = {name: getattr(at, name) for name in PLACE if hasattr(at, name)}
        texts |= {"title": problem.title, "titleForAll": declared.meaning}
        self.item(ORDER.index(urgency) + 1, severity, problem.code, source, **{**texts, **place, **more})

    def is_explained(self, finding: Finding) -> bool:
        """Return True if an item explains a finding."""
        return self.has_cause(finding.code, self.question.question, place_of(finding))

    def out_of_time(self, *words: str, before: str = "") -> None:
        """Note that the time was over, before something or with partitions left, and with which command to go on."""
        left = f" before {before}:" if before else f": {count_text(self.question.partitionsLeft, 'partition')} left;"
        self.question.notExamined.append(f"the time was over{left} run {command(*words)}")

    def unread(self, what: str) -> None:
        """Note what could not be read."""
        if what not in self.question.unread:
            self.question.unread.append(what)

    def unreadable(self, error: SourceError) -> None:
        """Note an error, unless the file has gone away: a broker is at work."""
        if not is_gone(error):
            self.unread(str(error))

    def reporting(self, options: AnyRun) -> AnyRun:
        """Return the options, which report to this examination what was read, and what cannot be."""
        return replace(options, unreadable=self.unreadable, more=self.read_some)

    def read_some(self, count: int) -> None:
        """Report progress. Raises OutOfTime."""
        self.run.more(count)
        self.limit.raise_if_over()


def command(*words: str) -> str:
    """Return a command line of kdump."""
    return shell_words(("kdump", *words))
