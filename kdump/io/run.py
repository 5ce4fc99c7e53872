"""How a run reads, and whom it tells what while it does: one object, made by who starts the run, for all layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kdump.io.errors import OnUnreadable, raise_error

__all__ = ["Limits", "Run"]

DEFAULT_MAX_DECOMPRESSED = 256 * 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Maximum accepted lengths, in bytes; None for no limit."""

    max_batch_size: int | None = None
    max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED


def ignore(*told: object) -> None:
    """Listen to nothing."""


@dataclass(frozen=True)
class Run:
    """The limits of a run, and what it calls: `unreadable` with the SourceError for what cannot be read (raised by
    default), after which it continues with the rest; `more` with numbers of bytes read, or not needed; `expect` with
    their sum, if known in advance; `at` with the position reached and the size of what is read, or
    None; `show` with the name of a step; `begin` with each partition, plan or question before it is examined, `found`
    with each answer, or the state of a coordinator or a registry, as soon as it is known. Anything that these raise
    ends the run.

    A copy in another process tells nobody."""

    limits: Limits = Limits()
    unreadable: OnUnreadable = raise_error
    more: Callable[[int], object] = ignore
    expect: Callable[[int], object] = ignore
    at: Callable[[int, int | None], object] = ignore
    show: Callable[[str], object] = ignore
    begin: Callable[[Any], object] = ignore
    found: Callable[[Any], object] = ignore

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | LISTENERS


PLAIN_RUN = Run()
"""Tells nobody, and raises what cannot be read."""
QUIET_RUN = Run(unreadable=ignore)
"""Tells nobody, not even what cannot be read."""
LISTENERS = {name: value for name, value in vars(PLAIN_RUN).items() if callable(value)}
"""The defaults of what a run calls."""
