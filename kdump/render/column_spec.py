"""Declares which keys of an object are columns of its table."""

from __future__ import annotations

from typing import NamedTuple

from kdump.render.table import NAME, PATH, TEXT, VALUE


class ColumnSpec(NamedTuple):
    """A column of a table: the key, and the same fields as in Column."""

    name: str
    label: str = ""
    rank: int = 9
    least: int | None = None

    @property
    def cuts(self) -> str:
        """How cells are shortened; the key decides, so that all tables do the same."""
        return NAME if self.name in NAMES else PATH if self.name in PATHS else TEXT if self.name in TEXTS else VALUE


NAMES = frozenset(
    (
        *("groupId", "memberId", "instanceId", "topic", "transactionalId", "name", "entity", "resourceName"),
        *("principal", "tokenId", "subject", "subjects"),
    )
)
PATHS = frozenset(("source", "path", "file"))
TEXTS = frozenset(("message", "remark", "remarks", "doubt"))
"""Keys whose values identify what a row is about, and keys of our own sentences."""
