"""Options that select by name, such as --topic and --producer-id. A value that matches nothing is reported with the
most similar existing names, and the exit status is 2."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import click

from kdump.command_line.command_run import NameSelection, this_run
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.io.remote_paths import looks_like_topic_id, with_only_ids

Name = TypeVar("Name", int, str)
SHOWN = 5
"""Maximum number of existing names listed for a value that matches nothing."""
MAX_NAMES = 10_000
"""Maximum number of existing names kept for that list."""


class TopicFilter:
    """Predicate: True if a name matches one of the patterns, or if there are no patterns. Keeps track of the patterns
    that have matched."""

    def __init__(self, patterns: tuple[str, ...], option: str) -> None:
        self.option, self.typed = option, patterns
        self._unmatched = {pattern: _compiled(pattern, option) for pattern in patterns}
        self._patterns = list(self._unmatched.values())
        self._known: dict[str, bool] = {}
        self.absent: Callable[[str, re.Pattern[str]], str] = lambda typed, pattern: ""
        """Returns what is known of a pattern that has matched no name, such as that not all could be looked at."""
        self.knows_ids = any(map(looks_like_topic_id, patterns))
        """Whether topics that have only an ID are known of: one was given, or the command itself states them."""

    def __call__(self, name: str) -> bool:
        matches = self._known.get(name)
        if matches is None:
            for typed in [typed for typed, pattern in self._unmatched.items() if pattern.search(name)]:
                del self._unmatched[typed]
            matches = not self._patterns or any(pattern.search(name) for pattern in self._patterns)
            self._known[name] = matches
        return matches

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __iter__(self) -> Iterator[str]:
        return iter(self.typed)

    @property
    def is_named(self) -> bool:
        return any(self._known)

    def unmatched(self) -> Iterator[str]:
        """Yield a line for each pattern that has matched no name so far."""
        ids = self._ids()
        names = [name for name in self._known if name and name not in ids]
        for pattern, compiled in self._unmatched.items():
            near = nearest(pattern.strip("/^$*"), names)
            line = _no_match(self.option, pattern, near, len(names), self.absent(pattern, compiled))
            yield f"{line}; {_not_compared(ids)}" if ids else line

    def left_out(self) -> str:
        """Return the topics that were not selected, and may be: only their IDs are known. Empty if there are none."""
        ids = [] if self.knows_ids or self._unmatched else [name for name in self._ids() if not self._known[name]]
        return f"--topic: {_not_compared(ids)}" if ids else ""

    def _ids(self) -> list[str]:
        return [name for name in self._known if self.option == "--topic" and looks_like_topic_id(name)]

    @property
    def is_unmatched(self) -> bool:
        """Whether there are names but no pattern has matched any so far."""
        return bool(self._known and self._patterns and len(self._unmatched) == len(self._patterns))

    def refuse_unmatched(self) -> None:
        """Raise SourceError if there are names but no pattern has matched any. Call it before showing anything that
        could be mistaken for a result."""
        if self.is_unmatched:
            raise SourceError(next(self.unmatched()))


class SelectedNames(Generic[Name]):
    """The values of an option that selects by exact names or numbers, and the predicate for them, which is to be called
    with each one that exists. No value selects all."""

    def __init__(self, values: Iterable[Name], option: str) -> None:
        self.option = option
        self._missing: dict[Name, None] = dict.fromkeys(values)
        self._selected: frozenset[Name] = frozenset(self._missing)
        self.absent: Callable[[Name], str] = lambda value: ""
        """Returns what is known of a value that does not exist, such as that not all could be looked at."""
        self._there: dict[Name, None] = {}

    def __call__(self, name: Name | None) -> bool:
        self.add(name)
        return not self._selected or name in self._selected

    def __iter__(self) -> Iterator[Name]:
        return iter(self._selected)

    def __bool__(self) -> bool:
        return bool(self._selected)

    @property
    def is_named(self) -> bool:
        return bool(self._there)

    def add(self, name: Name | None) -> None:
        if not self._missing or name is None:
            return
        self._missing.pop(name, None)
        if len(self._there) < MAX_NAMES:
            self._there[name] = None

    def unmatched(self) -> Iterator[str]:
        """Yield a line for each value that has not been added so far."""
        for value in self._missing:
            near = nearest(value, self._there)
            yield _no_match(self.option, str(value), near, len(self._there), self.absent(value))


def nearest(typed: int | str, names: Iterable[Any]) -> list[str]:
    """Return a few of the names: those most similar to `typed` first, or the nearest numbers in ascending order."""
    numbers = sorted(names)
    if isinstance(typed, int):
        return [str(number) for number in sorted(sorted(numbers, key=lambda number: abs(number - typed))[:SHOWN])]
    import difflib  # only for this error

    alike = difflib.get_close_matches(typed, numbers, SHOWN)
    others = sorted((name for name in numbers if name not in alike), key=lambda name: name.startswith("__"))
    return [*alike, *others][:SHOWN]


def _no_match(option: str, pattern: str, names: list[str], count: int, absent: str) -> str:
    """Return a line such as: --topic paymnts: no match; there are payments, users"""
    existing = ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")
    line = f"{option} {pattern}: no match{absent and ': ' + absent}"
    return f"{line}; there {'is' if count == 1 else 'are'} {existing}" if existing else line


def _not_compared(ids: list[str]) -> str:
    return f"not compared: {with_only_ids(count_text(len(ids), 'topic'), ids)}: select it with --topic ID"


def exact_name(pattern: str) -> str | None:
    """Return the name that a value stands for; None if it is a glob or a regular expression."""
    is_regex = len(pattern) > 1 and pattern[0] == pattern[-1] == "/"
    return None if is_regex or re.search(r"[*?\[]", pattern) else pattern


def topic_filter(patterns: tuple[str, ...], option: str = "--topic") -> TopicFilter:
    """Return the filter for the values of an option. The end of the run reports the patterns that matched nothing (see
    kdump.command_line.exit_status). Raises click.UsageError for an invalid regular expression."""
    return _registered(TopicFilter(patterns, option))


def selected_names(values: Iterable[Name], option: str) -> SelectedNames[Name]:
    """Return the values of an option. The end of the run reports those that do not exist."""
    return _registered(SelectedNames(values, option))


class PartitionFilter:
    """Predicate for the values of --partition: True for one of them, for None, and if there are no values. The end of
    the run reports those that no partition has."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = frozenset(numbers)
        self._selected = selected_names(numbers, "--partition")

    def __call__(self, number: int | None) -> bool:
        self._selected.add(number)
        return not self._numbers or number is None or number in self._numbers

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def refuse_unmatched(self) -> None:
        """Like TopicFilter.refuse_unmatched."""
        lines = list(self._selected.unmatched())
        if self._selected.is_named and len(lines) == len(self._numbers):
            raise SourceError(lines[0])


S = TypeVar("S", bound=NameSelection)


def has_unmatched(of: type[NameSelection] | tuple[()] = ()) -> bool:
    """Return True if a value of an option that selects matches nothing so far; `of`: only in those."""
    return any(any(made.unmatched()) for made in this_run().selections if not of or isinstance(made, of))


def explain_absent(option: str, absent: Callable[[Any], str]) -> None:
    """Take what is known of a value of this option that does not exist."""
    for made in this_run().selections:
        if isinstance(made, SelectedNames) and made.option == option:
            made.absent = absent


def _registered(made: S) -> S:
    this_run().selections.append(made)
    return made


def unmatched(*, is_answered: bool) -> Iterator[str]:
    """Yield the lines of NameSelection.unmatched of all selections in this run. If the run has no result for another
    reason (not `is_answered`), yield only those of selections that have seen a name: a missing path has none."""
    for made in this_run().selections:
        if is_answered or made.is_named:
            yield from made.unmatched()


def left_out() -> Iterator[str]:
    """Yield the lines of TopicFilter.left_out of all filters in this run."""
    yield from filter(None, (made.left_out() for made in this_run().selections if isinstance(made, TopicFilter)))


def _compiled(pattern: str, option: str) -> re.Pattern[str]:
    is_regex = len(pattern) > 1 and pattern[0] == pattern[-1] == "/"
    try:
        return re.compile(pattern[1:-1] if is_regex else r"\A" + fnmatch.translate(pattern))
    except re.error as error:
        raise click.UsageError(f"{option} {pattern}: {error}") from None
