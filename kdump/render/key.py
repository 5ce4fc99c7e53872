"""What a key of a JSON object is."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A key of a JSON object: its JSON type, its unit, what it means, and whether it may be absent."""

    name: str
    type: str
    unit: str
    meaning: str
    optional: bool = False
