"""A problem: its code, what it states, and which facts are known. Its sentences are those of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from kdump.problems.advice import NO_FACTS, NO_VALUES, PLACEHOLDER, cases_of, chosen_texts, impact, open_actions
from kdump.problems.catalogue import PAST_IT, Action, Declaration, action, declaration, lowered
from kdump.text import host_word, shell_word

FIELD = re.compile(rf"\{{(\w+)(:q)?\}}|{PLACEHOLDER.pattern}")
"""A field of a text, {file:q} if it is quoted for a shell, or a word for what the problem is about."""

NEEDS_DISK = re.compile(r"\bkdump\s+(?:salvage|reindex|carve|bundle|dump-log)\s")
"""A command that takes no bundle."""


class Problem(NamedTuple):
    """A problem of the catalogue. `values`: of the fields in its texts, and of the words for what it is about (DIR,
    TOPIC, …); `facts`: what is known of those on which its actions depend; `case`: which of the catalogue's cases
    it is, empty for the usual one."""

    code: str
    values: Mapping[str, object] = NO_VALUES
    facts: Mapping[str, bool | None] = NO_FACTS
    case: str = ""

    @property
    def declared(self) -> Declaration:
        return declaration(self.code)

    @property
    def title(self) -> str:
        """What is wrong, with what the problem states."""
        return self._text(self.declared.titles.get(self.case, self.declared.title))

    @property
    def impact(self) -> str:
        """What follows for brokers and consumers; empty if the title states it."""
        return self._text(impact(self.code, self.case, has_offset=self.values.get("offset") is not None))

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do, in order."""
        return self._chosen(self._actions)

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """What each of the actions names: the values in it."""
        texts = chosen_texts(self._actions, self._known)
        names = ([match[1] or match[0] for match in FIELD.finditer(text)] for text in texts)
        return tuple(tuple(str(self.values[name]) for name in each if name in self.values) for each in names)

    @property
    def never(self) -> tuple[str, ...]:
        """What not to do; of an object in remote storage, nothing is known."""
        return () if self.facts.get("object") else self._chosen(map(action, self.declared.never))

    @property
    def covers(self) -> tuple[str, ...]:
        """The codes of what has the same cause, in the same place."""
        return self._chosen(map(action, self.declared.covers))

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return "; ".join((self.title, *map(lowered, self.actions)))

    def given(self, facts: Mapping[str, bool | None]) -> Problem:
        """Return the problem with more facts; what it has stated itself stays."""
        return self._replace(facts={**facts, **self.facts})

    @property
    def _actions(self) -> tuple[Action, ...]:
        return self.declared.object_actions if self.facts.get("object") else self.declared.actions

    @property
    def _known(self) -> dict[str, bool | None]:
        """The facts, of which cases are some."""
        cases = dict.fromkeys((*self.declared.impacts, *self.declared.titles), False)
        return {**cases, **dict.fromkeys(cases_of(self.case), True), **self.facts}

    def _chosen(self, texts: Iterable[Action]) -> tuple[str, ...]:
        return tuple(map(self._text, chosen_texts(texts, self._known)))

    def _text(self, text: str) -> str:
        return FIELD.sub(partial(self._value, word_of(text)), text)

    def _value(self, word: Callable[[str], str], match: re.Match[str]) -> str:
        name = match[1] or match[0]
        if name not in self.values and not match[1]:
            return name  # a word for what it is about, which is not known
        value = str(self.values[name])
        return word(value) if match[2] or not (match[1] or name == PAST_IT) else value


def word_of(text: str) -> Callable[[str], str]:
    """Return what quotes a path in a text: with a command that takes no bundle, for the host of the disk."""
    return host_word if NEEDS_DISK.search(text) else shell_word


def asks_nothing(problem: Problem) -> bool:
    """Return True if the first thing to do about a problem is nothing."""
    return any(first.nothing and not first.when for first in open_actions(problem._actions, problem._known)[:1])


def next_of(code: str, values: Mapping[str, object]) -> str:
    """Return the command that shows more of a problem; empty if there is none."""
    return Problem(code, values)._text(declaration(code).next)


def title_of(code: str, case: str = "", **values: object) -> str:
    """Return what is wrong, or what a step does, in a case of the catalogue."""
    return Problem(code, values, case=case).title
