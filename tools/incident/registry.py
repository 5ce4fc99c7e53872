"""The incidents, by the name of their page."""

from __future__ import annotations

from collections.abc import Callable

from tools.incident.disk import Disk

Damage = Callable[[Disk], None]
INCIDENTS: dict[str, Damage] = {}
"""Functions that damage a disk, by the name of their page, which contains the function's docstring."""


def incident(name: str) -> Callable[[Damage], Damage]:
    def register(damage: Damage) -> Damage:
        INCIDENTS[name] = damage
        return damage

    return register
