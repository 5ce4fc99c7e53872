"""Selects the core: compiled modules, or the same files as plain Python (forced by KDUMP_ENGINE=plain)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

COMPILED, PLAIN = "compiled", "plain"


class Plain:
    """Import finder that loads the .py file of a kdump module even if there is a compiled one in the same directory."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if not name.startswith("kdump.") or not path:
            return None
        file = os.path.join(path[0], name.rpartition(".")[2] + ".py")
        return spec_from_file_location(name, file) if os.path.isfile(file) else None


def choose() -> None:
    """Apply KDUMP_ENGINE. Call this before a module of the core is imported."""
    if os.environ.get("KDUMP_ENGINE") == PLAIN:
        sys.meta_path.insert(0, Plain)


def check_choice() -> None:
    """Raise ImportError if KDUMP_ENGINE is set to a core that does not exist."""
    engine = os.environ.get("KDUMP_ENGINE") or COMPILED
    if engine not in (COMPILED, PLAIN):
        raise ImportError(f"KDUMP_ENGINE={engine}: no such core; use {PLAIN}, or {COMPILED}, which is the default")


def running() -> str:
    """Return which core is in use: `compiled` or `plain`."""
    from kdump.core import record_columns

    return COMPILED if record_columns.COMPILED else PLAIN
