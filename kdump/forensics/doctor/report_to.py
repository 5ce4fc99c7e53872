"""What the parts of an examination report to: items go to the output as soon as they are known."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kdump.forensics.doctor.answers import Item, Question
from kdump.forensics.doctor.time_limit import TimeLimit
from kdump.log.errors import SourceError, is_gone


@dataclass
class Examination:
    """The examination of one question. `emit` takes each item; `on_progress` the number of bytes that were read,
    `on_total` their sum in advance; `now` is in epoch ms."""

    question: Question
    emit: Callable[[Any], None]
    on_progress: Callable[[int], None]
    on_total: Callable[[int], None]
    limit: TimeLimit
    now: int
    timeout: int

    def item(self, priority: int, severity: str, code: str, source: str, title: str, **more: Any) -> None:
        """Report an item. `more`: other fields of Item, those that are left out are empty."""
        empty = {
            "topic": None,
            "partition": None,
            "group": None,
            "impact": "",
            "evidence": (),
            "file": None,
            "position": None,
            "offset": None,
            "findings": 1,
            "commands": (),
            "actions": (),
            "never": (),
        }
        self.question.items += 1
        question = self.question.question
        self.emit(Item(priority, question, severity, code, source, title=title, **(empty | more)))

    def unread(self, text: str) -> None:
        """Note what could not be read."""
        if text not in self.question.unread:
            self.question.unread.append(text)

    def unreadable(self, error: SourceError) -> None:
        """Note an error, unless the file has gone away: a broker is at work."""
        if not is_gone(error):
            self.unread(str(error))

    def read_some(self, count: int) -> None:
        """Report progress. Raises OutOfTime."""
        self.on_progress(count)
        self.limit.raise_if_over()


def command(*words: str) -> str:
    """Return a command line of kdump."""
    return " ".join(("kdump", *map(shlex.quote, words)))
