"""A finding: something wrong with bytes that could be read. A value, never an exception."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.check.catalogue import CATALOGUE
from kdump.log.paths import Target


class Finding(NamedTuple):
    """One finding, with its evidence. `position` and `size` are bytes of `file`; topic and partition are None where the
    directory does not tell; `source` is the log directory, or the path that was given."""

    code: str
    severity: str
    topic: str | None
    partition: int | None
    file: str
    position: int
    size: int
    offset: int | None
    expected: Any
    actual: Any
    message: str
    consequence: str
    source: str = ""


def found(
    code: str,
    target: Target,
    message: str,
    *,
    position: int = 0,
    size: int = 0,
    offset: int | None = None,
    expected: Any = None,
    actual: Any = None,
    severity: str | None = None,
    consequence: str | None = None,
) -> Finding:
    """A finding in the file `target`; what is not said of it is what the catalogue says of its code."""
    entry = CATALOGUE[code]
    return Finding(
        code,
        severity or entry.severity,
        target.topic,
        target.partition,
        target.path,
        position,
        size,
        offset,
        expected,
        actual,
        message,
        consequence or entry.consequence.format(offset="?" if offset is None else offset),
        target.source,
    )
