"""Declares a question once: a frozen dataclass whose fields are what may be asked. The command's options, the function
of the API with its signature, and the pages about both derive from it.

    @dataclass(frozen=True, kw_only=True)
    class ProducersQuery(Query):
        events: bool = flag("--history", help="Show events in order.")
        topics: Iterable[str] = topic_option("Read only partitions of these topics")

    producers = offered("producers", ProducersQuery, answers)

The fields of a class of options (CommandOptions) are declared alike, in the order of the help."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from contextvars import Context, copy_context
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, TypeVar, cast

from kdump.io.run import DEFAULT_MAX_DECOMPRESSED, PLAIN_RUN, Limits, Run
from kdump.io.unreadable_paths import begin

if TYPE_CHECKING:  # not needed by ls
    from kdump.format.kafka_release import KafkaRelease

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
Answers = TypeVar("Answers")
Value = TypeVar("Value")
Asks = TypeVar("Asks", bound="Query")
ADDS = "kdump"
"""In a field's metadata: what adds its parameters to a command: a Parameter, a decorator, or a class with fields of its
own."""
NOW, AS_OF, RELEASE, GLOBS = "now", "as-of", "release", "globs"
"""Types of options, besides size, time, and those of click. What is selected by globs, names or numbers must exist."""


class CommandOptions:
    """Base of the classes of options."""


def add_options(command: F, *options: Callable[[F], F]) -> F:
    """Add click's options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


class Parameter(NamedTuple):
    """An option, or an argument if it has no `flags`. `section`: of the help, which it begins; `more`: as of
    click.option, and `common`: whether an environment variable sets it for all commands."""

    flags: tuple[str, ...]
    section: str
    more: dict[str, Any]


def argument(otherwise: Any = (), **more: Any) -> Any:
    """Return a field that an argument fills, before the paths. `otherwise`: its default; `more`: as of
    click.argument."""
    return _field(otherwise, (), "", more)


def option(*flags: str, section: str = "", otherwise: Any = None, **more: Any) -> Any:
    """Return a field that an option fills. `section`: of the help, which it begins; `otherwise`: the field's default,
    if it is not the option's; `more`: as of click.option."""
    return _field(more.get("default", otherwise), flags, section, more)


def flag(*flags: str, section: str = "", **more: Any) -> Any:
    """Return a field that is True if the option is given."""
    return _field(False, flags, section, {"is_flag": True, **more})


def many(*flags: str, section: str = "", default: Iterable[Any] = (), **more: Any) -> Any:
    """Return a field with the values of an option that may be repeated. `default`: of a question, if none is given."""
    return _field(default, flags, section, {"multiple": True, **more})


def added(decorator: Callable[[Any], Any]) -> Any:
    """Return a field with options of its own, which the decorator adds to a command."""
    return field(default=None, metadata={ADDS: decorator})


def group(cls: type) -> Any:
    """Return a field with the options of a class that declares them."""
    return field(default=None, metadata={ADDS: cls})


def _field(default: Any, flags: tuple[str, ...], section: str, more: dict[str, Any]) -> Any:
    return field(default=default, metadata={ADDS: Parameter(flags, section, more)})


def topic_option(help_text: str, section: str = "") -> Any:
    """Return the field of --topic; `help_text` begins its help text."""
    return many("--topic", type=GLOBS, help=f"{help_text} (a glob or a /regex/); repeatable.", section=section)


def partition_option(help_text: str) -> Any:
    """Return the field of --partition; `help_text` begins its help text."""
    return many("--partition", type="partitions", help=f"{help_text} of this number; repeatable.")


def internal_option() -> Any:
    """Return the field of --internal and --no-internal: only Kafka's own topics (True), only others, or all (None)."""
    about = "Show only Kafka's internal topics, or only the others."
    return option("--internal/--no-internal", default=None, help=about)


def jobs_option(help_text: str) -> Any:
    """Return the field of --jobs; `help_text` begins its help text."""
    about = f"{help_text} on this many CPU cores.  [all, at most 4; 1 for small inputs]"
    return option("--jobs", type="count", help=about)


def message_size_option() -> Any:
    """Return the field of --max-message-bytes."""
    about = "Warn about batches larger than this.  [the topic's max.message.bytes, if known]"
    return option("--max-message-bytes", type="size", help=about)


class Names(NamedTuple):
    """Names that an option selects, comma-separated, as the type of a parameter: `known` returns them, each with its
    meaning; `noun`: what one of them is."""

    known: Callable[[], Iterable[tuple[str, str]]]
    noun: str

    def parse(self, typed: str | Iterable[str]) -> tuple[str, ...]:
        """Return the names, in their order. Raises ValueError for an unknown one, and if none is typed."""
        names = (*dict.fromkeys(filter(None, map(str.strip, typed.split(",") if isinstance(typed, str) else typed))),)
        known = [name for name, _ in self.known()] if names or isinstance(typed, str) else []
        unknown = sorted({*names} - {*known})
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a {self.noun}; use {', '.join(known)}")
        if not names and isinstance(typed, str):
            raise ValueError(f"{typed!r} contains no {self.noun}; use {', '.join(known)}")
        return names


def release_option(what: str) -> Any:
    """Return the field of --kafka-version; `what` begins its help text."""
    more = "of this release, such as 3.6, 3.9-zookeeper or cp-7.6.  [what the disk states]"
    return option("--kafka-version", type=RELEASE, help=f"{what} {more}")


OLD_TRANSACTION = "Treat transactions open for longer than this as old.  [15m]"
TRANSACTION_TIMEOUT = 900_000
"""Default of transaction.max.timeout.ms: no transaction is open for longer, unless it hangs."""


def timeout_option(help_text: str = "Warn about transactions open for longer than this.  [15m]") -> Any:
    """Return the field of --transaction-timeout, in milliseconds."""
    return option("--transaction-timeout", type="time", default=TRANSACTION_TIMEOUT, help=help_text)


@dataclass(frozen=True)
class FindingOptions(CommandOptions):
    """What findings depend on, besides the bytes."""

    transaction_timeout: int = timeout_option()
    max_message_bytes: int | None = message_size_option()


@dataclass(frozen=True)
class LimitOptions(CommandOptions):
    """Which batch lengths are accepted, and how much of a batch is decompressed, in bytes."""

    max_batch_size: int | None = option(
        "--max-batch-size",
        type="size",
        common=True,
        help="Treat batches longer than this as damaged.  [in Kafka's own topics 16M, which is the maximum]",
    )
    max_decompressed_size: int = option(
        "--max-decompressed-size",
        type="size",
        common=True,
        default=DEFAULT_MAX_DECOMPRESSED,
        help="Decompress at most this much of each batch.  [256M; in Kafka's own topics 16M, the maximum]",
    )

    @property
    def limits(self) -> Limits:
        return Limits(self.max_batch_size, self.max_decompressed_size)

    def run(self, **more: Any) -> Run:
        """Return a run with these limits. `more`: other fields of Run."""
        return Run(self.limits, **more)


def now_option(what: str = "Compute ages as of this time", needs: str = "") -> Any:
    """Return the field of --now, in epoch ms, which an environment variable sets, too: for disks of another day.
    `needs`: the field of a flag without which it does nothing."""
    return option("--now", type=NOW, needs=needs, help=f"{what}: ISO-8601, epoch ms, -2h.  [current time]")


def as_of_option(verb: str = "Show") -> Any:
    """Return the field of --as-of, an offset or epoch ms; `verb` begins its help text."""
    about = f"{verb} the state as of this offset or time, inclusive (ISO-8601, epoch ms, -2h)."
    return option("--as-of", type=AS_OF, help=about)


def history_option() -> Any:
    return flag("--history", help="Show which record changed what and when, with old and new values.")


@dataclass(frozen=True)
class Query:
    """A question about paths. Raises ValueError for a value that is none of the choices, and for an unknown release."""

    paths_option: ClassVar[dict[str, Any]] = {"metavar": "PATH…", "required": True}
    """How a command takes `paths`."""
    paths: str | Iterable[str] = field(metadata={ADDS: Parameter((), "", {"nargs": -1})})
    run: Run = field(default=PLAIN_RUN, kw_only=True)

    @property
    def release(self) -> KafkaRelease | None:
        """The `kafka_version`, which is parsed by now."""
        return getattr(self, "kafka_version", None)

    @cached_property
    def of_topic(self) -> Callable[[str | None], bool]:
        """The predicate for the field `topics`."""
        return selects(self.topics)  # type: ignore[attr-defined]

    @cached_property
    def of_partition(self) -> Callable[[int | None], bool]:
        """The predicate for the field `partitions`."""
        return selects(self.partitions)  # type: ignore[attr-defined]

    def __post_init__(self) -> None:
        for each in fields(self):
            more = getattr(each.metadata.get(ADDS), "more", {})
            value = getattr(self, each.name)
            if more.get("type") == RELEASE and isinstance(value, str):
                from kdump.format.kafka_release import parse_release  # not needed by ls

                object.__setattr__(self, each.name, parse_release(value))
            elif isinstance(more.get("type"), Names):
                object.__setattr__(self, each.name, more["type"].parse(value or ()))
            elif "choices" in more:
                values = (value,) if isinstance(value, str) else tuple(value or ())
                unknown = sorted({*values} - {*more["choices"]})
                if unknown:
                    known = ", ".join(more["choices"])
                    raise ValueError(f"unknown {each.name.removesuffix('s')} {', '.join(unknown)}; known are {known}")
                if isinstance(each.default, tuple):
                    object.__setattr__(self, each.name, values)


@dataclass(frozen=True)
class OptionsQuery(Query):
    """A question whose function takes the run as `options`, too."""

    options: Run | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.options is not None:
            object.__setattr__(self, "run", self.options)


@dataclass(frozen=True)
class TopicsQuery(OptionsQuery):
    """Such a question with a field `topics`, whose function takes a predicate for them as `is_selected`, too."""

    is_selected: Callable[[str], bool] = field(default=lambda topic: True, kw_only=True)

    def has_topic(self, topic: str | None) -> bool:
        return self.is_selected(topic or "") and self.of_topic(topic or "")


@dataclass(frozen=True)
class ProducerIdsQuery(Query):
    """A question with the fields `producer_ids` and `transactional_ids`."""

    @cached_property
    def _of_producer(self) -> tuple[Callable[[int], bool], Callable[[str | None], bool]]:
        return selects(self.producer_ids), selects(self.transactional_ids)  # type: ignore[attr-defined]

    @property
    def selects_producers(self) -> bool:
        return bool(self.producer_ids or self.transactional_ids)  # type: ignore[attr-defined]

    def wants_producer(self, producer_id: int, transactional_id: str | None) -> bool:
        has_id, has_name = self._of_producer
        return all((has_id(producer_id), has_name(transactional_id)))  # both are to see every producer


def refuse_unmatched(*selections: Any) -> None:
    """Raise SourceError for what a command selects by names of which none exists. Call it before anything is yielded
    that could be mistaken for a result."""
    for each in selections:
        getattr(each, "refuse_unmatched", lambda: None)()


def selects(values: Iterable[Value] | Callable[[Value], bool]) -> Callable[[Value | None], bool]:
    """Return the predicate for values that select; none selects all. What a command makes of its options decides
    itself, and reports what does not exist."""
    if callable(values):
        return cast("Callable[[Value | None], bool]", values)
    selected = frozenset[Any]((values,) if isinstance(values, str) else values)
    return lambda value: not selected or value in selected


def _in_own_context(answers: Callable[[Asks], Answers], asked: Asks) -> Answers:
    """Return the answers, with what could not be read for them (kdump.io.unreadable_paths) apart from other runs'."""
    context = copy_context()
    context.run(begin)
    found = context.run(answers, asked)
    return cast("Answers", _each(found, context)) if isinstance(found, Generator) else found


def _each(answers: Generator[Any, None, None], context: Context) -> Iterator[Any]:
    with closing(answers):
        while (answer := context.run(next, answers, None)) is not None:
            yield answer


def offered(name: str, query: Callable[P, Asks], answers: Callable[[Asks], Answers]) -> Callable[P, Answers]:
    """Return the function of the API with this name, whose parameters are the fields of the query."""
    from kdump.io.mounted_paths import takes_paths  # not needed by a class of options

    function = takes_paths(lambda *given, **fields: _in_own_context(answers, query(*given, **fields)))
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = answers.__module__, answers.__doc__
    returned = inspect.signature(answers).return_annotation
    function.__signature__ = inspect.signature(query).replace(return_annotation=returned)  # type: ignore[attr-defined]
    function.query = query  # type: ignore[attr-defined]
    return cast("Callable[P, Answers]", function)
