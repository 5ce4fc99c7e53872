"""What a scan has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kdump.check.options import Options
from kdump.spark.fleet import Fleet
from kdump.spark.scan_task import UnitJob


@dataclass
class ScanResult:
    """Outcome of a scan: the entries of all units, and the numbers of units that were read, unchanged (`kept`) or no
    longer there (`gone`)."""

    fleet: Fleet
    check: Options
    jobs: list[UnitJob]
    entries: list[dict[str, Any]]
    read: int = 0
    continued: int = 0
    """How many of the units in `read` were read from a later segment than the first."""
    kept: int = 0
    gone: int = 0
