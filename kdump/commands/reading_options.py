"""How the commands that read files open them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from kdump.check.options import Options
from kdump.check.workers import careful_source
from kdump.commands.params import LimitOptions
from kdump.log.rate_limit import RateLimit


@dataclass(frozen=True)
class ReadingOptions(LimitOptions):
    """Limits for reading files. `max_rate`: in bytes per second."""

    max_rate: int | None = None

    def check_options(self, **more: Any) -> Options:
        """Return the Options for reading files; `now` is the current time. `more`: other fields of Options."""
        rate = RateLimit(self.max_rate) if self.max_rate else None
        values: dict[str, Any] = {
            "limits": self.limits,
            "now": int(time.time() * 1000),
            "window": self.window,
            "open_source": partial(careful_source, rate=rate),
        }
        return Options(**(values | more))
