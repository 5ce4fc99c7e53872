"""kdump reads Kafka's files straight from a broker's disk, with no broker running."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kdump.engine import choose

__version__ = "0.1.0"

choose()

_LAZY = {"producers": "kdump.forensics.api", "transactions": "kdump.forensics.api"}
"""What `kdump.NAME` is, and the module that it is imported from when it is asked for. See docs/api.md."""

if TYPE_CHECKING:
    from kdump.forensics.api import producers as producers
    from kdump.forensics.api import transactions as transactions


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'kdump' has no attribute {name!r}")
