"""Makes click's options of the fields of a class of options or of a question (kdump.query), and fills them by name:

    @dataclass(frozen=True)
    class DiffOptions(CommandOptions):
        paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
        topics: tuple[str, ...] = topic_option("Compare only these topics")
        exact: bool = flag("--exact", help="Also compare keys.")
        reading: ReadingOptions = added(reading_options)

A field whose type is another such class takes its own fields from the same parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields
from datetime import timezone
from functools import cache, wraps
from types import FunctionType
from typing import Any, TypeVar, get_type_hints

import click

from kdump.command_line.command_run import this_run
from kdump.command_line.common_option import CommonOption
from kdump.command_line.name_options import PartitionFilter, selected_names, topic_filter
from kdump.command_line.params import DurationParam, Param, SecondsParam, SizeParam, parse_as_of, parse_now
from kdump.format.numbers import LONG_MAX
from kdump.io.command_line_paths import without_slash
from kdump.query import ADDS, AS_OF, GLOBS, NOW, RELEASE, CommandOptions, Names, Parameter, Query, add_options

OPTIONS = "__kdump_options__"
"""Attribute of a command's callback: the class of its options."""

PATHS = ("paths", "others", "disks")
"""Fields with the paths of log directories."""
URLS = (*PATHS, "path", "directory", "files", "out", "remote_url")
"""Fields whose values may be URLs, which outputs and errors repeat."""


SECTION = "kdump_section"
"""Attribute of an option: the section of the help that it begins, which the following options continue."""
KINDS: dict[str, dict[str, Any]] = {
    "size": {"type": SizeParam()},
    "time": {"type": DurationParam()},
    "seconds": {"type": SecondsParam()},
    NOW: {"metavar": "TIME", "envvar": "KDUMP_NOW"},
    AS_OF: {"metavar": "OFFSET|TIME"},
    GLOBS: {"metavar": "GLOB"},
    "names": {},
    "numbers": {"type": int},
    "partitions": {"type": click.IntRange(min=0), "metavar": "N"},
    "count": {"type": click.IntRange(min=1)},
    "int": {"type": click.IntRange(0, (1 << 31) - 1)},
    "offset": {"type": click.IntRange(0, LONG_MAX)},
}
"""Attributes of options by the types of kdump.query, without that of releases."""
T = TypeVar("T")


class ParsedParam(Param):
    """What a function parses that raises ValueError."""

    name = "TEXT"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def listed(values: Callable[[], Iterable[tuple[str, str]]]) -> Callable[..., list[Any]]:
    """Return a `shell_complete` for a comma-separated list of names, each with its meaning."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        head, comma, last = incomplete.rpartition(",")
        names = [(name, meaning) for name, meaning in values() if name.startswith(last) and name not in head.split(",")]
        return [CompletionItem(f"{head}{comma}{name}", help=meaning) for name, meaning in names]

    return complete


def _add(name: str, parameter: Parameter) -> Callable[[Any], Any]:
    """Return the decorator that adds an option, or an argument, which fills the field of this name."""
    flags, section, more = parameter
    kind = more.get("type")
    if kind == RELEASE:
        from kdump.command_line.release_option import ReleaseParam  # not needed by ls

        more = more | {"type": ReleaseParam()}
    elif isinstance(kind, str):
        more = {**more, "type": None, **KINDS[kind]}
    elif isinstance(kind, FunctionType):
        more = more | {"type": ParsedParam(kind)}
    elif isinstance(kind, Names):
        more = more | {"type": ParsedParam(kind.parse), "shell_complete": listed(kind.known)}
    if "choices" in more:
        more = {**more, "type": click.Choice(more["choices"])}
    if "common" in more:
        more = {**more, "cls": CommonOption}
    more = {name: value for name, value in more.items() if name not in ("choices", "common", "needs")}
    if more.get("type") is int or isinstance(more.get("type"), click.types.IntParamType):
        more = {"metavar": "N", **more}
    if not flags:
        return click.argument(name, **more)

    def add(command: Any) -> Any:
        command = click.option(*flags, name, **more)(command)
        if section:
            setattr(command.__click_params__[-1], SECTION, section)
        return command

    return add


def _comes_late(each: Field[Any]) -> bool:
    """Return False for the arguments of a question before its paths, which are the rest of the arguments."""
    adds = each.metadata.get(ADDS)
    return not isinstance(adds, Parameter) or bool(adds.flags) or "nargs" in adds.more


def declared(cls: type) -> list[Callable[[Any], Any]]:
    """Return the decorators that add the options of the class to a command."""
    decorators: list[Callable[[Any], Any]] = []
    for each in sorted(fields(cls), key=_comes_late):
        adds = each.metadata.get(ADDS)
        if isinstance(adds, Parameter):
            if each.name == "paths" and issubclass(cls, Query):
                adds = adds._replace(more=adds.more | cls.paths_option)
            decorators.append(_add(each.name, adds))
        elif adds is not None:
            decorators += declared(adds) if isinstance(adds, type) else [adds]
    return decorators


def takes(cls: type[T]) -> Callable[[Callable[[T], Any]], Callable[..., Any]]:
    """Decorate a command's function, which gets the arguments and options of the class, and receives one instance of
    it."""

    def decorate(command: Callable[[T], Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            run = this_run()
            run.options = fill(cls, values)
            return command(run.options)

        setattr(call, OPTIONS, cls)
        return add_options(call, *declared(cls))

    return decorate


def fill(cls: type[T], values: dict[str, Any]) -> T:
    """Return an instance of the class. A field without a value has its default."""
    given: dict[str, Any] = {}
    types: dict[str, Any] = option_types(cls) if issubclass(cls, CommandOptions) else {}  # type: ignore[arg-type]
    for each in fields(cls):  # type: ignore[arg-type]  # mypy doubts that it is a dataclass
        name, adds = each.name, each.metadata.get(ADDS)
        kind = adds if isinstance(adds, type) else types.get(name)
        if isinstance(kind, type) and (kind is adds or issubclass(kind, CommandOptions)):
            given[name] = fill(kind, values)  # type: ignore[arg-type]
        elif name in values and (types or adds is not None):
            if name in URLS:
                _refuse_password(values[name])
            value = tuple(map(without_slash, values[name])) if name in PATHS else values[name]
            if isinstance(adds, Parameter) and issubclass(cls, Query):
                value = _asked(adds, value, values)
                if value in (None, ()) and each.default is not MISSING:
                    continue
            given[name] = value
    return cls(**given)


def _asked(parameter: Parameter, value: Any, values: dict[str, Any]) -> Any:
    """Return the value that a question gets of an option: what selects reports what does not exist."""
    kind = parameter.more.get("type")
    if kind == GLOBS:
        return topic_filter(value, parameter.flags[0])
    if kind in ("names", "numbers"):
        return selected_names(value, parameter.flags[0])
    if kind == "partitions":
        return PartitionFilter(value)
    if kind == AS_OF:
        return parse_as_of(value, values["zone"])
    if kind == NOW:
        needs = parameter.more["needs"]
        return parse_now(value, values.get("zone", timezone.utc)) if not needs or values[needs] else None
    return value


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
