"""A finding: something wrong with bytes that could be read. A value, never an exception."""

from __future__ import annotations

from typing import Any, NamedTuple


class Finding(NamedTuple):
    """One finding, with its evidence. `position` and `size` are bytes of `file`; topic and partition are None where the
    directory does not tell."""

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
