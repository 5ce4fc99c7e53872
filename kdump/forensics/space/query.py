"""The query of `kdump.space`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kdump.forensics.retention.configs import ConfigOverrides


@dataclass
class SpaceQuery:
    """The query. `need`: bytes to free, None for 15 % of each file system; `now`: epoch ms, None for the current time;
    `others`: paths of other brokers; `limit`: how many topics and replicas are examined in detail; `keys`: read the
    keys of compacted topics; `topic`: returns True for the topics to include."""

    need: int | None = None
    now: int | None = None
    others: tuple[str, ...] = ()
    limit: int = 5
    keys: bool = False
    given: ConfigOverrides = field(default_factory=ConfigOverrides)
    topic: Callable[[str], bool] = lambda name: True
