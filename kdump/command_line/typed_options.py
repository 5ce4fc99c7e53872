"""Options of commands, declared once: as the fields of a frozen dataclass, in the order of the help text.

    @dataclass(frozen=True)
    class DiffOptions(CommandOptions):
        paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
        topics: tuple[str, ...] = topic_option("Compare only these topics")
        exact: bool = flag("--exact", help="Also compare keys.")
        reading: ReadingOptions = added(reading_options)

click fills them by name. A field whose type is another such class takes its own fields from the same parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, fields
from functools import cache, wraps
from typing import Any, TypeVar, get_type_hints

import click

from kdump.io.command_line_paths import without_slash

OPTIONS = "__kdump_options__"
"""Attribute of a command's callback: the class of its options."""

PATHS = ("paths", "others", "disks")
"""Fields with the paths of log directories."""
URLS = (*PATHS, "sources", "path", "directory", "files", "out", "remote_url")
"""Fields whose values may be URLs, which outputs and errors repeat."""


class CommandOptions:
    """Base of the classes of options."""


T = TypeVar("T", bound=CommandOptions)
F = TypeVar("F", bound=Callable[..., Any])


def add_options(command: F, *options: Callable[[F], F]) -> F:
    """Add click's options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


ADDS = "kdump"
"""In a field's metadata: returns the decorator that adds its parameters to a command, for the name of the field."""


def argument(**more: Any) -> Any:
    """Return a field that an argument fills. `more`: as of click.argument."""
    return _field((), lambda name: click.argument(name, **more))


SECTION = "kdump_section"
"""Attribute of an option: the section of the help that it begins, which the following options continue."""


def option(*flags: str, section: str = "", **more: Any) -> Any:
    """Return a field that an option fills. `section`: of the help, which it begins; `more`: as of click.option."""
    return _field(more.get("default"), lambda name: _begins(section, click.option(*flags, name, **_numbered(more))))


def _numbered(more: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of an option, whose value is named N if it is a number."""
    kind = more.get("type")
    return {"metavar": "N", **more} if kind is int or isinstance(kind, click.types.IntParamType) else more


def flag(*flags: str, section: str = "", **more: Any) -> Any:
    """Return a field that is True if the option is given."""
    return _field(False, lambda name: _begins(section, click.option(*flags, name, is_flag=True, **more)))


def many(*flags: str, section: str = "", **more: Any) -> Any:
    """Return a field with the values of an option that may be repeated."""
    return _field((), lambda name: _begins(section, click.option(*flags, name, multiple=True, **_numbered(more))))


def added(decorator: Callable[[Any], Any]) -> Any:
    """Return a field with options of its own, which the decorator adds to a command."""
    return _field(None, lambda name: decorator)


def _begins(section: str, decorator: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the decorator, whose option begins that section."""
    if not section:
        return decorator

    def add(command: Any) -> Any:
        command = decorator(command)
        setattr(command.__click_params__[-1], SECTION, section)
        return command

    return add


def _field(default: Any, adds: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={ADDS: adds})


def group(cls: type[CommandOptions]) -> Any:
    """Return a field with the options of a class that declares them."""
    return added(lambda command: add_options(command, *declared(cls)))


def declared(cls: type[CommandOptions]) -> list[Callable[[Any], Any]]:
    """Return the decorators that add the options of the class to a command."""
    own = fields(cls)  # type: ignore[arg-type]
    return [own_field.metadata[ADDS](own_field.name) for own_field in own if ADDS in own_field.metadata]


def takes(cls: type[T]) -> Callable[[Callable[[T], Any]], Callable[..., Any]]:
    """Decorate a command's function, which gets the arguments and options of the class, and receives one instance of
    it."""

    def decorate(command: Callable[[T], Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            return command(fill(cls, values))

        setattr(call, OPTIONS, cls)
        return add_options(call, *declared(cls))

    return decorate


def fill(cls: type[T], values: dict[str, Any]) -> T:
    """Return an instance of the class. A field without a value has its default."""
    given: dict[str, Any] = {}
    for name, kind in option_types(cls).items():  # type: ignore[arg-type]  # mypy doubts that a class is hashable
        if isinstance(kind, type) and issubclass(kind, CommandOptions):
            given[name] = fill(kind, values)
        elif name in values:
            if name in URLS:
                _refuse_password(values[name])
            given[name] = tuple(map(without_slash, values[name])) if name in PATHS else values[name]
    return cls(**given)


def _refuse_password(value: str | Iterable[str] | None) -> None:
    """Raise UsageError for a URL with a password."""
    urls = [url for url in ((value,) if isinstance(value, str) else value or ()) if "://" in url]
    if urls:
        from kdump.state.secrets import PASSWORD

        if any(map(PASSWORD.search, urls)):
            raise click.UsageError(
                "a URL here has a password, which would be shown with every file: let the package that reads such URLs "
                "get it from its environment variables or files (for S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or ~/.aws)"
            )


@cache
def option_types(cls: type) -> dict[str, Any]:
    """Return the types of the class's fields."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}
