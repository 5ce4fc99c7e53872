"""--topic: which topics are asked for; a pattern that no topic matches is reported, and is exit status 2."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from kdump.log.errors import SourceError

F = TypeVar("F", bound=Callable[..., Any])
MATCHERS = "kdump.commands.topics"
"""Key of click's context: the matchers of the run."""
SHOWN = 5
"""Names that are there and that the report of a pattern lists."""


def topic_option(what: str) -> Callable[[F], F]:
    """The option, which is the same everywhere but for `what` of these topics is asked for."""
    return click.option(
        "--topic", "topics", metavar="GLOB", multiple=True, help=f"{what}: a glob, or a /regex/; repeatable."
    )


class Matcher:
    """Whether a name matches one of the patterns; any does without patterns. Remembers which patterns matched."""

    def __init__(self, patterns: tuple[str, ...], option: str) -> None:
        self.option = option
        self._unmatched = {text: _compiled(text, option) for text in patterns}
        self._patterns = list(self._unmatched.values())
        self._known: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        found = self._known.get(name)
        if found is None:
            for text in [text for text, pattern in self._unmatched.items() if pattern.search(name)]:
                del self._unmatched[text]
            found = not self._patterns or any(pattern.search(name) for pattern in self._patterns)
            self._known[name] = found
        return found

    def unmatched(self) -> Iterator[str]:
        """A line for each pattern that has matched no name so far; none if there was no name, as of a renamed file."""
        names = sorted(filter(None, self._known))
        there = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        for text in self._unmatched if self._known else ():
            yield f"{self.option} {text}: no match" + (f"; there are {there}" if names else "")

    def refuse_unmatched(self) -> None:
        """Raises SourceError if there are names, and no pattern has matched one: before anything is shown that could
        pass for an answer."""
        if self._known and self._patterns and len(self._unmatched) == len(self._patterns):
            raise SourceError(next(self.unmatched()))


def matcher(patterns: tuple[str, ...], option: str = "--topic") -> Matcher:
    """The matcher of an option's values, to whose patterns the end of the run looks (see kdump.commands.exits). Raises
    click.UsageError for a regular expression that is invalid."""
    made = Matcher(patterns, option)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(MATCHERS, []).append(made)
    return made


def unmatched() -> Iterator[str]:
    """What Matcher.unmatched has, of all matchers of the run."""
    context = click.get_current_context(silent=True)
    for made in context.meta.get(MATCHERS, ()) if context is not None else ():
        yield from made.unmatched()


def _compiled(text: str, option: str) -> re.Pattern[str]:
    is_regex = len(text) > 1 and text[0] == text[-1] == "/"
    try:
        return re.compile(text[1:-1] if is_regex else r"\A" + fnmatch.translate(text))
    except re.error as error:
        raise click.UsageError(f"{option} {text}: {error}") from None
