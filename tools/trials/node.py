"""Configuration of the broker in a trial."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

USER = 65534
"""User ID of a broker without root permissions: nobody."""


class Node(NamedTuple):
    """Configuration of the broker. `metadata`: metadata.log.dir, None if not set; `user`: the broker runs as USER, who
    owns its files; `combined`: the broker is its own controller, the only one; `configs`: other lines of its
    server.properties; `wait`: seconds after startup in which it does what is looked for."""

    dirs: tuple[Path, ...]
    metadata: Path | None = None
    user: bool = False
    combined: bool = False
    configs: str = ""
    wait: float = 2

    @property
    def paths(self) -> list[Path]:
        """All of its directories, without repetitions."""
        return list(dict.fromkeys([*self.dirs, *([self.metadata] if self.metadata else [])]))
