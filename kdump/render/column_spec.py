"""Declares which keys of an object are columns of its table."""

from __future__ import annotations

from typing import NamedTuple


class ColumnSpec(NamedTuple):
    """A column of a table: the key, and the same fields as in Column."""

    name: str
    label: str = ""
    rank: int = 9
    least: int | None = None
