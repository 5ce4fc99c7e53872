"""A problem: its code, what it states, and which facts are known. Its sentences are those of the catalogue."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import NamedTuple

from kdump.problems.advice import NO_FACTS, NO_VALUES, actions, fill
from kdump.problems.catalogue import Declaration, declaration


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
        return self._text(self.declared.impacts.get(self.case, self.declared.consequence))

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do, in order."""
        declared = self.declared
        cases = dict.fromkeys((*declared.impacts, *declared.titles), False) | {self.case: True}
        return tuple(map(self._text, actions(self.code, {**cases, **self.facts})))

    @property
    def never(self) -> tuple[str, ...]:
        """What not to do."""
        return tuple(map(self._text, self.declared.never))

    def _text(self, text: str) -> str:
        values = {name: Value(value) if isinstance(value, str) else value for name, value in self.values.items()}
        return fill(text.format_map(values) if "{" in text else text, self.values)


def title_of(code: str, case: str = "", **values: object) -> str:
    """Return what is wrong, or what a step does, in a case of the catalogue."""
    return Problem(code, values, case=case).title


class Value(str):
    """The value of a field: {file:q} is quoted for a shell."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return shlex.quote(self) if spec == "q" else super().__format__(spec)
