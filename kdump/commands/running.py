"""What the runs of reading commands have in common: how files are read."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from kdump.check.options import Options
from kdump.check.workers import careful_source
from kdump.log.rate import Rate
from kdump.log.region import Limits


def reading(options: dict[str, Any], **more: Any) -> Options:
    """How files are read, by what --max-rate, --max-batch-size, --max-decompressed-size and --window say; `now` is the
    clock. `more`: other fields of Options."""
    rate = Rate(options["max_rate"]) if options["max_rate"] else None
    values = {
        "limits": Limits(options["max_batch_size"], options["max_decompressed_size"]),
        "now": int(time.time() * 1000),
        "window": options["window"],
        "open_source": partial(careful_source, rate=rate),
    }
    return Options(**(values | more))
