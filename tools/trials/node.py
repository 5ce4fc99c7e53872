"""How the broker of a trial is configured."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

USER = 65534
"""The user ID of a broker without root's rights: nobody."""


class Node(NamedTuple):
    """How the broker is configured. `metadata`: metadata.log.dir, None where it is not set. `user`: the broker runs
    as USER, who owns its files. `combined`: it is its own controller, the only one."""

    dirs: tuple[Path, ...]
    metadata: Path | None = None
    user: bool = False
    combined: bool = False

    @property
    def paths(self) -> list[Path]:
        """All of its directories, once each."""
        return list(dict.fromkeys([*self.dirs, *([self.metadata] if self.metadata else [])]))
