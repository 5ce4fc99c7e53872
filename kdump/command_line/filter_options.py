"""The options that select batches and records, and the expressions that other options take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo

import click

from kdump.command_line.params import TIME_HELP, RangeParam, time_range
from kdump.format.number_range import Range
from kdump.log.expression.comparison import Comparison
from kdump.log.expression.terms import Content, Expression, Term, all_of, one_of_keys
from kdump.log.selection import Selection
from kdump.query import CommandOptions, flag, many, option


@dataclass(frozen=True)
class FilterOptions(CommandOptions):
    """Options that select batches and records; the browser's prompt takes them, too."""

    offsets: Range | None = option(
        "-o", "--offset", type=RangeParam(), help="Show only offsets N, A..B, A.. or ..B, both ends included."
    )
    positions: Range | None = option(
        "--position", type=RangeParam(), help="Show only batches at these bytes of the file."
    )
    times: str | None = option("--time", metavar="A..B", help=TIME_HELP)
    producer_ids: tuple[int, ...] = many(
        "--producer-id", type=int, help="Show only batches of this producer; repeatable."
    )
    keys: tuple[str, ...] = many("--key", help="Show only records with exactly this key; repeatable.")
    key_regex: str | None = option(
        "--key-regex",
        help="Show only records with a match of this regular expression in the key's bytes; . is any byte.",
    )
    value_regex: str | None = option("--value-regex", help="The same in the value's bytes, such as '(?i)error'.")
    headers: tuple[str, ...] = many(
        "--header", metavar="K[=V]", help="Show only records with this header; repeatable, all must match."
    )
    control: bool = flag("--control", help="Show only control batches.")
    transactional: bool = flag("--transactional", help="Show only transactional batches.")


def selection_of(filters: FilterOptions, zone: tzinfo) -> Selection:
    """Return the selection that the options describe. Raises click.UsageError."""
    times: Range | None = time_range(filters.times, zone) if filters.times is not None else None
    return Selection(
        offsets=filters.offsets,
        positions=filters.positions,
        times=times,
        producer_ids=frozenset(filters.producer_ids),
        expression=_expression(filters),
        control=filters.control,
        transactional=filters.transactional,
    )


def _expression(filters: FilterOptions) -> Expression | None:
    """Return the expression that --key, --key-regex, --value-regex and --header are short forms of."""
    terms: list[Term] = [one_of_keys(map(_bytes, filters.keys)).term] if filters.keys else []
    for name, regex in (("key", filters.key_regex), ("value", filters.value_regex)):
        if regex is not None:
            terms.append(Content(name, (), _regex(f"--{name}-regex", regex)))
    for header in filters.headers:
        key, equals, value = header.partition("=")
        terms.append(Content("header", (key,), Comparison("==" if equals else "exists", _bytes(value), is_raw=True)))
    return all_of(terms)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _regex(name: str, text: str) -> Comparison:
    comparison = Comparison("~", _bytes(text), is_raw=True)
    try:
        comparison.bytes_pattern  # noqa: B018  (compiled while the option is known)
    except re.error as error:
        raise click.UsageError(f"{name}: {error}") from None
    return comparison


def typed_expression(option_name: str, typed: str, is_aborted_advice: str = "") -> Expression:
    """Parse an expression of kdump find. `is_aborted_advice`: if the command does not know which records are aborted,
    why, and what to do instead. Raises click.UsageError."""
    from kdump.log.expression.parser import ExpressionError, parse  # inspect has no such option

    try:
        expression = parse(typed)
    except ExpressionError as error:
        raise click.UsageError(f"{option_name}: {error.lines}") from None
    if is_aborted_advice and expression.needs.aborted:
        raise click.UsageError(f"{option_name}: isAborted is not known {is_aborted_advice}")
    return expression
