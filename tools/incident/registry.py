"""The incidents, by the name of their page."""

from __future__ import annotations

from collections.abc import Callable

from tools.incident.disk import Disk

Damage = Callable[[Disk], None]
INCIDENTS: dict[str, Damage] = {}
"""Functions that damage a disk, by the name of their page, which contains the function's docstring."""
BASES: dict[str, str] = {}
"""Of incidents whose disk is not fixtures/disk-1: another one in fixtures, or the disk in tests/corpus, such as
releases/4.3.1-kraft/clean."""


def incident(name: str, base: str = "") -> Callable[[Damage], Damage]:
    def register(damage: Damage) -> Damage:
        INCIDENTS[name] = damage
        if base:
            BASES[name] = base
        return damage

    return register
