"""Every JSON object there is, by its type, with its keys in order: for the reference, tests, Spark and --columns.

Imports every answer, so import it only where all of them are needed."""

from __future__ import annotations

from importlib import import_module

from kdump.answer import ANSWERS, Key, keys_by_type
from kdump.index import ANSWERS as MODULES

for _name in MODULES:
    import_module(_name)
TYPES: dict[str, tuple[Key, ...]] = keys_by_type(
    *sorted(ANSWERS.values(), key=lambda answer: MODULES.index(answer.__module__))
)
"""`type` itself comes first in each object."""
