"""What the log layer raises: a path or device that cannot be read. Bad bytes are never an exception here."""

from __future__ import annotations

from collections.abc import Callable


class SourceError(Exception):
    """One line: which path, where in it, and why. The command line shows it and exits with 2."""


class Unread(str):
    """What a SourceError says, among other problems that are text: something was not read at all."""


def within(place: str, problem: str) -> str:
    """The problem with where it is; an Unread stays one."""
    return type(problem)(f"{place}: {problem}")


Refused = Callable[[SourceError], None]
"""Is told of what could not be read, and the work goes on with the rest."""


def raise_it(error: SourceError) -> None:
    """The Refused of those who want none: what cannot be read ends the work."""
    raise error
