"""Options of commands as frozen dataclasses, whose fields click fills by name.

    @dataclass(frozen=True)
    class DiffOptions(CommandOptions):
        paths: tuple[str, ...]
        topics: tuple[str, ...]
        reading: ReadingOptions

A field whose type is another such class takes its own fields from the same parameters; the decorator that adds these
parameters to a command stands next to that class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache, wraps
from typing import Any, TypeVar, get_type_hints

from kdump.log.command_line_paths import without_slash

OPTIONS = "__kdump_options__"
"""Attribute of a command's callback: the class of its options."""

PATHS = ("paths", "others", "disks")
"""Fields with the paths of log directories."""


class CommandOptions:
    """Base of the classes of options."""


T = TypeVar("T", bound=CommandOptions)
F = TypeVar("F", bound=Callable[..., Any])


def add_options(command: F, *options: Callable[[F], F]) -> F:
    """Add click's options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def takes(cls: type[T]) -> Callable[[Callable[[T], Any]], Callable[..., Any]]:
    """Decorate a command's function, which then receives its arguments and options as one instance of the class."""

    def decorate(command: Callable[[T], Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            return command(fill(cls, values))

        setattr(call, OPTIONS, cls)
        return call

    return decorate


def fill(cls: type[T], values: dict[str, Any]) -> T:
    """Return an instance of the class. A field without a value has its default."""
    found: dict[str, Any] = {}
    for name, kind in option_types(cls).items():  # type: ignore[arg-type]  # mypy doubts that a class is hashable
        if isinstance(kind, type) and issubclass(kind, CommandOptions):
            found[name] = fill(kind, values)
        elif name in values:
            found[name] = tuple(map(without_slash, values[name])) if name in PATHS else values[name]
    return cls(**found)


@cache
def option_types(cls: type) -> dict[str, Any]:
    """Return the types of the class's fields."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}
